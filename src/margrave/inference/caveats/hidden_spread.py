"""Columns of numbers whose spread the noise hides, and the estimates that are noise for the most part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from margrave.inference.caveats.clipping import numeric_columns
from margrave.inference.caveats.context import Context
from margrave.inference.caveats.merged_codes import valued
from margrave.inference.estimate import Caveat
from margrave.inference.probe import Trial
from margrave.ratios import percent
from margrave.release.hidden_spread import hidden_spread_words
from margrave.schema.numeric import Numeric
from margrave.schema.parsing import plain


def mostly_noise(context: Context) -> dict[str, tuple[str, ...]]:
    """Return, for each estimate, the columns whose noise it mostly consists of."""
    # Share of an estimate's variance that is due to privacy.
    min_share = 0.9
    found: dict[str, tuple[str, ...]] = dict.fromkeys(context.names, ())
    release, trial = context.release, context.trial
    noisy = {e.name for e in context.estimates if e.fmi_privacy > min_share}
    if release is None or context.basis is None or not noisy:
        return found
    names = set(valued(context.basis, release.schema)).intersection(release.hidden_spreads)
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
        least = min(e.fmi_privacy for e in context.estimates if e.name in names)
        hidden = " ".join(
            hidden_spread_words(release.schema, release.transcript, c) for c in columns
        )
        yield Caveat(
            "mostly noise", names, True,
            f"{context.about(names)}: mostly noise, which makes up {percent(least, '.0f')}"
            f"{' or more' if len(names) > 1 else ''} of the variance, and not reliable. {hidden}",
        )  # fmt: skip


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
