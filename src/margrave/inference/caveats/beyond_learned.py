"""Learned columns whose bounds may leave out values that count, which no interval of an analysis includes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from margrave.inference.caveats.clipping import Excess, numeric_columns
from margrave.inference.caveats.context import Context
from margrave.inference.estimate import Caveat, Estimate
from margrave.inference.probe import Names
from margrave.release.beyond_bounds import beyond_bounds, beyond_bounds_words
from margrave.release.number import TOLERANCE
from margrave.schema.numeric import Numeric
from margrave.schema.parsing import plain


@dataclass(frozen=True, eq=False)
class Beyond:
    """A learned column with hidden values that may move its mean.

    Attributes:
        column: The column.
        decisive: They may move it by more than half the tolerance of a reliable number.
        names: The estimates that values beyond the bounds would change.
    """

    column: Numeric
    decisive: bool
    names: Names


def beyond_learned(context: Context) -> tuple[Beyond, ...]:
    """Return the learned columns of an analysis whose hidden values count beside its noise."""
    basis, trial, found = context.basis, context.trial, []
    if basis is None:
        return ()
    for column in numeric_columns(context):
        parts = beyond_bounds(column) if column.name in basis.exposed else None
        if parts is None or not beyond_bounds_words([column]):
            continue
        points, empty = column.points(plain(trial.table[column.name].combine_chunks()))
        values = points[~(empty | np.isnan(points))]
        if not len(values):
            continue
        tolerance = TOLERANCE * max(float(values.std()), abs(float(column.mean[0])))
        top = parts.above >= parts.below
        beyond = Excess(column, top, 0.0).beyond(trial.table)
        names = trial.changed(partial(trial.of, beyond))
        found.append(Beyond(column, max(parts.below, parts.above) > tolerance / 2, names))
    return tuple(found)


def check(context: Context) -> Iterator[Caveat]:
    """Yield the learned columns whose hidden values count."""
    for beyond in context.once(beyond_learned):
        if beyond.names:
            chosen = tuple(n for n in context.names if n in beyond.names)
            (words,) = beyond_bounds_words([beyond.column])
            text = (
                f"{words} The interval of {context.about(chosen)} includes no such values: `margrave numbers` and"
                " release.numbers() state one of the mean that does. In the schema of the next release, declare"
                " public bounds, with finer edges where values concentrate; or give the release a larger budget."
            )
            yield Caveat("beyond_learned", chosen, beyond.decisive, text)


def marked(context: Context, estimate: Estimate) -> list[str]:
    """Return the columns whose hidden values may move an estimate by more than its interval says."""
    return [
        b.column.name
        for b in context.once(beyond_learned)
        if b.decisive and estimate.name in b.names
    ]
