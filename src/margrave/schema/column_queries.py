"""Queries about one raw column: what a learner measures before the column has bins or categories.

Each query counts or sums the values of one column. A value reaches a query as a point on the
column's line (``Integer.points`` and so on), NaN for a missing value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any, ClassVar

import numpy as np

from margrave.errors import InputError
from margrave.types import FloatArray, IntArray


@dataclass(frozen=True)
class LineCells:
    """Counts of the values between edges.

    The cells are: below the first edge, ``[edges[i], edges[i + 1])`` for each i, from the last edge
    on, and the missing values. A row lies in one cell.

    Args:
        edges: Finite and increasing, at least one.

    >>> LineCells((0.0, 10.0)).tally(np.array([-1.0, 0.0, 9.0, 10.0, np.nan])).tolist()
    [1, 2, 1, 1]
    """

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        edges = tuple(float(e) for e in self.edges)
        if not edges or not all(map(isfinite, edges)) or any(a >= b for a, b in pairwise(edges)):
            raise InputError("The edges of a column query are not finite and increasing.")
        object.__setattr__(self, "edges", edges)

    @property
    def size(self) -> int:
        """The number of answers: one more than there are edges, and the missing values."""
        return len(self.edges) + 2

    @cached_property
    def _edges(self) -> FloatArray:
        return np.array(self.edges)

    def tally(self, values: FloatArray, counts: IntArray | None = None) -> IntArray:
        """Return the true counts of values that occur once each, or ``counts`` times. For the gate only."""
        cells = np.searchsorted(self._edges, values, side="right")
        cells[np.isnan(values)] = self.size - 1
        return _in_cells(cells, counts, self.size)

    def to_dict(self) -> dict[str, Any]:
        """Return the query as plain data."""
        return {"kind": "line-cells", "edges": list(self.edges)}


@dataclass(frozen=True)
class DecimalCells:
    """Counts of the values by their number of decimals: 0 to 5, more, and missing.

    A value has k decimals if k is the least number for which value · 10^k is whole.

    >>> DecimalCells().tally(np.array([3.0, 0.5, 0.25, 1 / 3, np.nan])).tolist()
    [1, 1, 1, 0, 0, 0, 1, 1]
    """

    max_decimals: ClassVar[int] = 5

    @property
    def size(self) -> int:
        """The number of answers."""
        return self.max_decimals + 3

    def tally(self, values: FloatArray, counts: IntArray | None = None) -> IntArray:
        """Return the true counts of values that occur once each, or ``counts`` times. For the gate only."""
        cells = np.full(len(values), self.max_decimals + 1, dtype=np.int64)
        # A warning on standard error would depend on the rows.
        with np.errstate(over="ignore", invalid="ignore"):
            for k in reversed(range(self.max_decimals + 1)):
                cells[np.rint(values * 10**k) / 10**k == values] = k
        cells[np.isnan(values)] = self.size - 1
        return _in_cells(cells, counts, self.size)

    def to_dict(self) -> dict[str, Any]:
        """Return the query as plain data."""
        return {"kind": "decimal-cells"}


@dataclass(frozen=True)
class ClippedSum:
    """The sum of ``clip(value, low, high) − center`` over the values, in whole steps.

    A value contributes a whole number of steps, at most ``max_contribution`` either way; a missing value
    contributes 0. The answer is one number, in steps.

    Args:
        low, high: The bounds, finite, low < high.
        center: A point between them.

    >>> query = ClippedSum(0.0, 8.0, 4.0)
    >>> float(query.tally(np.array([99.0, 6.0, np.nan]))[0] * query.step)
    6.0
    """

    low: float
    high: float
    center: float
    max_contribution: ClassVar[int] = 1 << 20

    def __post_init__(self) -> None:
        low, high, center = float(self.low), float(self.high), float(self.center)
        if not (isfinite(low) and isfinite(high) and low < high and low <= center <= high):
            raise InputError("The bounds of a clipped sum are not finite, or not low < high.")
        if not isfinite(high - low):
            raise InputError("The bounds of a clipped sum are too far apart.")
        for key, value in (("low", low), ("high", high), ("center", center)):
            object.__setattr__(self, key, value)
        # the least normal float: below it, quotients by a step are not exact to a unit
        if self.step < np.finfo(float).tiny:
            raise InputError("The bounds of a clipped sum are too close together.")

    @property
    def size(self) -> int:
        """The number of answers."""
        return 1

    @property
    def step(self) -> float:
        """The size of a step, in the column's unit."""
        return max(self.high - self.center, self.center - self.low) / self.max_contribution

    @property
    def max_change(self) -> int:
        """The most steps by which the contributions of two rows differ."""
        least, greatest = self._steps(np.array([self.low, self.high]))
        return int(greatest - least)

    def tally(self, values: FloatArray, counts: IntArray | None = None) -> IntArray:
        """Return the true sum, in steps, of values that occur once each, or ``counts`` times. For the gate only."""
        steps = self._steps(values)
        return np.array([(steps if counts is None else steps * counts).sum()], dtype=np.int64)

    def _steps(self, values: FloatArray) -> IntArray:
        steps = np.rint((np.clip(values, self.low, self.high) - self.center) / self.step)
        steps = np.clip(
            np.where(np.isnan(values), 0.0, steps), -self.max_contribution, self.max_contribution
        )
        return np.asarray(steps.astype(np.int64))

    def to_dict(self) -> dict[str, Any]:
        """Return the query as plain data."""
        return {"kind": "clipped-sum", "low": self.low, "high": self.high, "center": self.center}


def _in_cells(cells: IntArray, counts: IntArray | None, size: int) -> IntArray:
    if counts is None:
        return np.bincount(cells, minlength=size).astype(np.int64)
    found = np.zeros(size, dtype=np.int64)
    np.add.at(found, cells, counts)
    return found


ColumnQuery = LineCells | DecimalCells | ClippedSum


def column_query_from_dict(plain: dict[str, Any]) -> ColumnQuery:
    """Return the query that ``to_dict`` wrote.

    Raises:
        InputError: If it is not the plain data of a query.
    """
    try:
        match plain:
            case {"kind": "line-cells", "edges": [*edges], **rest} if not rest:
                return LineCells(tuple(edges))
            case {"kind": "decimal-cells", **rest} if not rest:
                return DecimalCells()
            case {"kind": "clipped-sum", "low": low, "high": high, "center": center, **rest} if (
                not rest
            ):
                return ClippedSum(low, high, center)
    except InputError:
        raise
    except (TypeError, ValueError):
        pass
    raise InputError("This is not the plain data of a column query.")
