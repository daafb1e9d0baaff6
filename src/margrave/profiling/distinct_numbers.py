"""The distinct numbers of a column with their numbers of rows.

**Privacy:** NOT private: for drafts, which the gate refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from margrave.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class DistinctNumbers:
    """Distinct numbers in ascending order, with their numbers of rows.

    Args:
        points: The numbers.
        rows: The number of rows of each.
        first: The place of each among the numbers that were counted.
    """

    points: FloatArray
    rows: IntArray
    first: IntArray

    @classmethod
    def of(cls, numbers: FloatArray | IntArray, rows: IntArray) -> DistinctNumbers:
        """Return the counts of numbers of which some may be equal, from the number of rows of each.

        Example:
            >>> found = DistinctNumbers.of(np.array([2.0, 1.0, 2.0]), np.array([1, 5, 1]))
            >>> found.points.tolist(), found.rows.tolist(), found.commonest
            ([1.0, 2.0], [5, 2], 1.0)
        """
        points, first, places = np.unique(numbers, return_index=True, return_inverse=True)
        counts = np.bincount(places, weights=rows, minlength=len(points))
        return cls(points.astype(np.float64), counts.astype(np.int64), first)

    def __len__(self) -> int:
        """Return the number of distinct numbers."""
        return len(self.points)

    @cached_property
    def total(self) -> int:
        """The number of rows."""
        return int(self.rows.sum())

    @property
    def commonest(self) -> float:
        """The most frequent number; of equals, the first that was counted."""
        most = np.flatnonzero(self.rows == self.rows.max())
        return float(self.points[most[np.argmin(self.first[most])]])
