"""Columns of numbers whose spread the noise hides, and the estimates that are noise for the most part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from margrave.inference.caveats.clipping import numeric_columns
from margrave.inference.caveats.context import Context
from margrave.inference.caveats.merged_codes import valued
from margrave.inference.caveats.stated import mean_of
from margrave.inference.estimate import Caveat
from margrave.inference.probe import Trial
from margrave.ratios import percent
from margrave.release.hidden_spread import hidden_spread_words
from margrave.schema.numeric import Numeric
from margrave.schema.parsing import plain
from margrave.types import Clique


def mostly_noise(context: Context) -> dict[str, tuple[str, ...]]:
    """Return, for each estimate, the columns whose noise it mostly consists of.

    Nothing shows the bias of independent runs, each of which keeps noise in nearly empty bins: of these, the columns
    whose mean that noise moves.
    """
    # Share of an estimate's variance that is due to privacy.
    min_share = 0.9
    found: dict[str, tuple[str, ...]] = dict.fromkeys(context.names, ())
    release, trial = context.release, context.trial
    if release is None or context.basis is None:
        return found
    noisy = {e.name for e in context.estimates if release.runs or e.fmi_privacy > min_share}
    names = {c for c in valued(context.basis, release.schema) if noisy and _is_noise(context, c)}
    for column in (c for c in numeric_columns(context) if c.name in names):
        spread = _farther_out(column, trial)
        for name in noisy & trial.changed(lambda: trial.of(spread)):  # noqa: B023
            if context.summed(name) != column.name:
                found[name] += (column.name,)
    return found


def check(context: Context) -> Iterator[Caveat]:
    """Yield the columns whose spread the noise hides."""
    by_name, release = context.once(mostly_noise), context.release
    for columns in dict.fromkeys(filter(None, by_name.values())):
        names = tuple(n for n, own in by_name.items() if own == columns)
        assert release is not None
        assert release.transcript is not None
        if release.runs:
            yield Caveat("mostly noise", names, True, _words_of_runs(context, columns, names))
            continue
        least = min(e.fmi_privacy for e in context.estimates if e.name in names)
        hidden = " ".join(
            hidden_spread_words(release.schema, release.transcript, c) for c in columns
        )
        yield Caveat(
            "mostly noise", names, True,
            f"{context.about(names)}: mostly noise, which makes up {percent(least, '.0f')}"
            f"{' or more' if len(names) > 1 else ''} of the variance, and not reliable. {hidden}",
        )  # fmt: skip


def _is_noise(context: Context, name: str) -> bool:
    release = context.release
    assert release is not None
    if not release.runs:
        return name in release.hidden_spreads
    mean = mean_of(context, name) if name in release.schema.domain else None
    if mean is None or mean.synthetic is None:
        return False
    return mean.estimate is None or abs(mean.synthetic - mean.estimate) > (mean.noise or 0.0)


def _words_of_runs(context: Context, columns: Clique, names: Clique) -> str:
    means = (mean_of(context, column) for column in columns)
    each = " and ".join(f"{m.column}, {m.words}," for m in means if m is not None)
    return (
        f"{context.about(names)}: the fit of each run keeps noise in nearly empty bins, and so does their mean. By more"
        f" than the noise it differs from the mean of {each} by the noisy counts. No interval of independent runs"
        " includes that. Make the next release of fewer runs, or with a larger budget."
    )


def _farther_out(column: Numeric, trial: Trial) -> pa.Table:
    """Return the data set with values beyond a standard deviation from the mean twice as far from it."""
    at = trial.table.column_names.index(column.name)
    points, empty = column.points(plain(trial.table[column.name].combine_chunks()))
    empty = empty | np.isnan(points)
    points = np.where(empty, column.cells.means[0], points)
    if empty.all():
        return trial.table
    mean, deviation = points[~empty].mean(), points[~empty].std()
    far = np.abs(points - mean) >= deviation
    moved = np.where(far, 2 * points - mean, points)
    return trial.table.set_column(at, column.name, column.written(moved, empty))
