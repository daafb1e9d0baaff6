"""The cells at the ends of a numeric column, in which values from beyond its bounds are counted."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from margrave.schema import Column, ColumnSource, Integer, Real
from margrave.schema.numeric import Numeric
from margrave.types import FloatArray

#: Share of the records in the last cell, beyond what its neighbors predict, that matters.
MIN_EXCESS_SHARE = 0.005

#: The last cell also has to hold this many times what is predicted: some distributions rise.
MIN_EXCESS_FACTOR = 1.5


def may_clip(column: Column, source: ColumnSource) -> bool:
    """Return True if the end cells may hold values from beyond the bounds.

    They hold none if the schema does not move values to the bounds, or cites the document that states these. Such
    bounds are those of all legal values, and many records may lie at one of them.

    >>> may_clip(Integer("score", 1, 20), ColumnSource()), may_clip(Integer("score", 1, 20), ColumnSource(cite="p. 3"))
    (True, False)
    """
    return column.outside == "clip" and not source.cite


def remedy_words(tops: Iterable[bool]) -> str:
    """Return which key of a column to change where values may have been clipped, and how.

    Args:
        tops: For each such end, True for the upper one.

    >>> remedy_words([True]).partition(".")[0]
    'If such values exist, raise high in the schema of the next release'
    """
    keys = " and ".join("raise high" if top else "lower low" for top in tops)
    return (
        f"If such values exist, {keys} in the schema of the next release. If none can, write outside = "
        '"refuse" there, or cite the document that states the whole range.'
    )


def has_natural_end(column: Numeric, top: bool) -> bool:
    """Return True for a lower bound of 0, and of whole numbers 1: no value is expected below it."""
    whole_from_one = column.cells.whole and column.low == 1
    return not top and isinstance(column, Integer | Real) and (column.low == 0 or whole_from_one)


def last_cell(
    column: Numeric, shares: FloatArray, top: bool, noise: float = 0.0
) -> tuple[float, float]:
    """Return the share of the last cell, and the share that the bins before it predict.

    The prediction is the largest within the noise: the bin beside the last cell may hold more, and the one before
    that less.
    A column with one code per value is not expected to fall towards its end. A few values are taken for those of a
    scale, whose ends are ordinary answers. If the value beside the last is the rarest of all others, they are taken
    for a count that is cut off.

    Args:
        column: A numeric column.
        shares: The share of each of its cells among the records that are not missing.
        top: Whether the last cell is the one at the upper bound.
        noise: How far the share of a cell may be off.
    """
    # Values of a scale, at most.
    max_scale_values = 11
    least, greatest = column.cells.extremes
    inward = slice(None, None, -1) if top else slice(None)
    decimals = 0 if column.cells.whole else column.cells.decimals
    step = 0.0 if decimals is None else 10.0**-decimals
    shares, widths = shares[inward], (greatest - least + step)[inward]
    atom = np.isin(least, column.cells.atoms)[inward]
    inner = np.flatnonzero(~atom)
    last = float(shares[0])
    if atom[0]:
        return last, 0.0
    if len(inner) < 2:
        return last, last
    beside = inner[1:3]
    before = np.maximum(shares[beside] + np.array([noise, -noise])[: len(beside)], 0.0)
    before /= widths[beside]
    trend = 1.0
    if len(before) == 2 and before[0] > 0:
        trend = min(before[0] / before[1], 2.0) if before[1] > 0 else 2.0
    if (greatest == least).all():
        # one code per value may be the whole of a code book: the value beside is as much as can be expected
        others = shares[2:] - noise
        if len(shares) <= max_scale_values and not (others.size and before[0] <= others.min()):
            return last, last
        trend = max(trend, 1.0)
    return last, float(before[0] * trend * widths[0])
