"""Learned columns whose bounds may leave out values that count, which no interval of an analysis includes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from margrave.inference.caveats.clipping import Excess, numeric_columns
from margrave.inference.caveats.context import Context
from margrave.inference.caveats.stated import mean_of, quantiles_by_estimate
from margrave.inference.estimate import Caveat, Estimate
from margrave.inference.probe import Names
from margrave.release.beyond_bounds import (
    bounds_of_another_run_words,
    columns_of_another_run,
    hidden_rows_words,
    open_bounds,
    possible_limits,
)
from margrave.release.number import TOLERANCE, ColumnNumber
from margrave.release.numbers import open_ends_words
from margrave.schema.numeric import Numeric
from margrave.schema.parsing import plain
from margrave.schema.remedies import bounds_remedy


@dataclass(frozen=True, eq=False)
class Beyond:
    """A learned column with hidden values that may move its mean.

    Attributes:
        column: The column.
        decisive: They may move it by more than half the tolerance of a reliable number.
        names: The estimates that values beyond the bounds would change.
        words: How far they may move it.
    """

    column: Numeric
    decisive: bool
    names: Names
    words: str


def beyond_learned(context: Context) -> tuple[Beyond, ...]:
    """Return the learned columns of an analysis whose hidden values count beside the noise of their mean.

    A quantile that the numbers of the release state has an open end there instead.
    """
    basis, trial, found = context.basis, context.trial, []
    if basis is None:
        return ()
    for column in numeric_columns(context):
        learned = bool(column.mean) and column.name in basis.exposed
        mean = mean_of(context, column.name) if learned else None
        if mean is None or not mean.may_hide_values:
            continue
        points, empty = column.points(plain(trial.table[column.name].combine_chunks()))
        values = points[~(empty | np.isnan(points))]
        if not len(values):
            continue
        tolerance = TOLERANCE * max(float(values.std()), abs(float(column.mean[0])))
        below, above = mean.beyond_below or 0.0, mean.beyond_above or 0.0
        top = above >= below
        beyond = Excess(column, top, 0.0).beyond(trial.table)
        changed = trial.changed(partial(trial.of, beyond))
        names = changed - context.once(quantiles_by_estimate).keys()
        decisive = max(below, above) > tolerance / 2
        found.append(Beyond(column, decisive, names, hidden_rows_words(mean, column)))
    return tuple(found)


def by_another_run(context: Context) -> dict[str, tuple[str, ...]]:
    """Return, for each estimate, the columns under another run's bounds whose hidden values would change it.

    The numbers of the release call means and totals under such bounds not reliable, so this is the same verdict.
    """
    found: dict[str, tuple[str, ...]] = dict.fromkeys(context.names, ())
    release, basis, trial = context.release, context.basis, context.trial
    if release is None or basis is None:
        return found
    for column in columns_of_another_run(release.schema):
        limits = possible_limits(column, release.schema.sources)
        for top, limit in zip((False, True), limits, strict=True):
            if column.name in basis.exposed and np.isinf(limit):
                beyond = Excess(column, top, 0.0).beyond(trial.table)
                for name in trial.changed(partial(trial.of, beyond)):
                    found[name] = tuple(dict.fromkeys([*found[name], column.name]))
    return found


def open_quantiles(context: Context) -> dict[str, ColumnNumber]:
    """Return, by estimate, the quantiles that may lie beyond a bound which this release learned."""
    others = context.once(by_another_run)
    numbers = context.once(quantiles_by_estimate)
    return {name: n for name, n in numbers.items() if n.is_open and not others[name]}


def check(context: Context) -> Iterator[Caveat]:
    """Yield the columns under learned bounds whose hidden values count."""
    others = context.once(by_another_run)
    for columns in dict.fromkeys(filter(None, others.values())):
        names = tuple(n for n, own in others.items() if own == columns)
        assert context.release is not None
        (text,) = bounds_of_another_run_words(context.release.schema, columns, context.about(names))
        yield Caveat("beyond_learned", names, True, text)
    quantiles = context.once(open_quantiles)
    for sentence in open_ends_words(tuple(quantiles.values())):
        yield Caveat("beyond_learned", tuple(quantiles), True, sentence)
    for beyond in context.once(beyond_learned):
        if beyond.names:
            chosen = tuple(n for n in context.names if n in beyond.names)
            assert context.release is not None
            keys = open_bounds(context.release.schema, [beyond.column.name])
            text = (
                f"{beyond.words} No answer shows whether there are any, because the noise could hide them. Intervals of"
                f" {context.about(chosen)} do not include them. `margrave numbers` and release.numbers() state an"
                f" interval of the mean that does. In the schema of the next release, {bounds_remedy(keys)} Or give the"
                " release a larger budget."
            )
            yield Caveat("beyond_learned", chosen, beyond.decisive, text)


def marked(context: Context, estimate: Estimate) -> list[str]:
    """Return the columns whose hidden values may move an estimate by more than its interval says."""
    own = (
        b.column.name
        for b in context.once(beyond_learned)
        if b.decisive and estimate.name in b.names
    )
    quantile = context.once(open_quantiles).get(estimate.name)
    of_quantile = [] if quantile is None else [quantile.column]
    return [*own, *of_quantile, *context.once(by_another_run)[estimate.name]]
