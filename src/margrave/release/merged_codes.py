"""Columns of numbers whose relations are lost with codes that were merged because they are rare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from margrave.schema.numeric import Numeric
from margrave.types import FloatArray


def loses_relation(column: Numeric, merged: Sequence[Sequence[int]], counts: FloatArray) -> bool:
    """Return whether merged codes hold so much of a column's variance that it matters to a slope on the column.

    The slope is too small by the share of the variance that lies within merged codes.

    Args:
        column: The column.
        merged: Its sets of codes that share one count in every marginal of several columns.
        counts: The count of each code; negative ones count as 0.

    Returns:
        True if the share is more than 5 %.

    Privacy:
        None spent.

    Example:
        >>> from margrave.schema import Integer
        >>> loses_relation(Integer("age", 0, 3), [(2, 3)], np.ones(4))
        True
        >>> loses_relation(Integer("age", 0, 3), [(2, 3)], np.array([9.0, 9.0, 1.0, 0.0]))
        False
    """
    min_variance_lost = 0.05
    middle, kinds = np.mean(column.cells.extremes, axis=0), np.arange(column.cells.count)
    sizes = np.maximum(counts[: column.cells.count], 0.0)
    for codes in merged:
        kinds[[c for c in codes if c < len(kinds)]] = codes[0]
    within = sum(_scatter(sizes[kinds == k], middle[kinds == k]) for k in np.unique(kinds))
    return within > min_variance_lost * _scatter(sizes, middle)


def _scatter(counts: FloatArray, values: FloatArray) -> float:
    n = counts.sum()
    return float(counts @ (values - counts @ values / n) ** 2) if n > 0 else 0.0
