"""Bins for columns with a long tail, such as costs: round edges that grow, where equal bins would be of little use.

**Privacy:** NOT private: for drafts, which the gate refuses.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal

import numpy as np

from margrave.profiling.distinct_numbers import DistinctNumbers
from margrave.schema.line import BINS


def growing_edges(
    values: DistinctNumbers,
    atoms: Collection[float],
    low: float,
    high: float,
    *,
    whole: bool,
) -> list[Decimal]:
    """Round edges that grow, at most one fewer than there are bins by default; none where equal bins will do.

    >>> rows = np.ones(25, dtype=np.int64)
    >>> [int(e) for e in growing_edges(DistinctNumbers.of(2 ** np.arange(25), rows), (), 0, 2e7, whole=True)][:6]
    [2, 3, 5, 10, 20, 30]
    >>> growing_edges(DistinctNumbers.of(np.arange(25), rows), (), 0, 25, whole=True)
    []
    """
    # Round numbers of each power of ten, finest first.
    round_numbers = (
        (10, 12, 15, 20, 25, 30, 40, 50, 60, 80),
        (10, 15, 20, 30, 50, 70),
        (10, 20, 30, 50),
        (10, 20, 50),
        (10,),
    )
    # Equal bins that hold half of the values of a long tail.
    max_bins = 2
    # Distinct values below which no tail is detected.
    min_values = 20
    # The share of the values below the first edge.
    first_share = 0.05
    rest = ~np.isin(values.points, list(atoms))
    points, below = values.points[rest], np.cumsum(values.rows[rest])
    if low < 0 or len(points) < min_values:
        return []
    median = float(points[np.searchsorted(below, below[-1] / 2)])
    if median - low >= max_bins * (high - low) / BINS:
        return []
    origin = Decimal(0) if low < median / 10 else Decimal(repr(low))
    start = float(points[np.searchsorted(below, below[-1] * first_share)]) - float(origin)
    found: list[Decimal] = []
    for series in round_numbers:
        found = _edges(series, origin, max(start, (high - low) / 1e9), low, high, whole)
        if len(found) < BINS:
            break
    return found


def _edges(
    series: Sequence[int], origin: Decimal, start: float, low: float, high: float, whole: bool
) -> list[Decimal]:
    """Round numbers beyond the origin, from the greatest that is not above ``start`` to ``high``."""
    first, last = (Decimal(v).adjusted() for v in (start, high - float(origin)))
    every = [Decimal(m).scaleb(power - 1) for power in range(first, last + 1) for m in series]
    near = max(e for e in every if e <= Decimal(start))
    inside = (origin + e for e in every if e >= near)
    return [e for e in inside if low < e < high and not (whole and e % 1)]
