"""The common part of numeric columns: settings, cells, codes and labels on a line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from margrave.schema import validators
from margrave.schema.bins import Binning, Leaves, equal_width, given_edges
from margrave.schema.column import Encoded, set_fields, with_missing, with_missing_code
from margrave.schema.parsing import Mask
from margrave.types import FloatArray, IntArray

#: Default number of bins.
BINS = 32


class Line(ABC):
    """A column whose values have coordinates on a line, which is cut into cells."""

    name: str
    low: Any
    high: Any
    bins: int | None
    edges: Sequence[Any] | None
    atoms: Sequence[Any]
    leaf_edges: Sequence[float]
    leaf_weights: Sequence[float]
    mean: Sequence[float]
    outside: str
    missing: bool
    #: True if coordinates are whole numbers.
    whole: ClassVar[bool] = True

    @abstractmethod
    def point(self, value: Any) -> float:
        """Return the coordinate of a value."""

    @abstractmethod
    def points(self, values: pa.Array) -> tuple[FloatArray, Mask]:
        """Return the coordinate of every value, NaN if it cannot be read, and which values are empty."""

    @abstractmethod
    def written(self, values: FloatArray, null: Mask) -> pa.Array:
        """Return values from points of the line, and null where ``null`` is true."""

    @cached_property
    def cells(self) -> Binning:
        """The cells of its line."""
        low, high = self.point(self.low), self.point(self.high)
        if self.edges is None:
            edges = equal_width(low, high, self.bins or BINS, whole=self.whole)
        else:
            edges = given_edges(low, high, [self.point(e) for e in self.edges], whole=self.whole)
        atoms = np.unique(np.array([self.point(a) for a in self.atoms], dtype=np.float64))
        leaves = None
        if self.leaf_edges:
            leaves = Leaves(np.array(self.leaf_edges), np.array(self.leaf_weights))
        return Binning(edges, atoms, self.whole, self._decimals(), leaves)

    def _decimals(self) -> int | None:
        return None

    @property
    def size(self) -> int:
        """The cells and the missing state."""
        return self.cells.count + self.missing

    def encode(self, values: pa.Array) -> Encoded:
        """Return the code of every value.

        Values between two points of the line are rounded; a time counts as the unit that it lies in.
        """
        return self.encode_points(*self.points(values))

    def encode_points(self, points: FloatArray, empty: Mask) -> Encoded:
        """Return the code of every point of the line; NaN cannot be read."""
        unreadable = np.isnan(points)
        home = self.cells.count if self.missing else None
        low, high = self.cells.edges[0], self.cells.edges[-1] - self.whole
        safe = np.where(unreadable, low, points)
        outside = (safe < low) | (safe > high)
        codes = self.cells.locate(safe)
        if self.outside == "missing":
            codes = np.where(outside, home or 0, codes)
        return with_missing_code(
            codes, empty, outside, unreadable, home, self.with_decimals(points)
        )

    def with_decimals(self, points: FloatArray) -> Mask | None:
        """Return which points are not whole numbers; None if points of this column are not rounded."""
        if not self.whole:
            return None
        # A whole number that a computation left off by its last digits counts as whole.
        tolerance = 1e-9
        distance = np.abs(points - np.rint(points))
        return np.asarray(distance > tolerance * np.maximum(1.0, np.abs(points)))

    def decode(self, codes: IntArray, rng: np.random.Generator) -> pa.Array:
        """Return a value from the cell of every code."""
        return self.written(*self.draw_points(codes, rng))

    def draw_points(self, codes: IntArray, rng: np.random.Generator) -> tuple[FloatArray, Mask]:
        """Return a point of the line for every code, and which codes say missing."""
        null = codes >= self.cells.count
        return self.cells.draw(np.where(null, 0, codes).astype(np.int64), rng), np.asarray(null)

    def ranges(self, show: Callable[[float], str], unit: str = "") -> list[str]:
        """Return the range of every cell in words, with a unit, and the label of missing values."""

        def span(low: float, high: float, entered: bool, reached: bool) -> str:
            if low == high:
                return show(low)
            if self.whole:
                return f"{show(low)} to {show(high)}"
            return f"{'[' if entered else '('}{show(low)}, {show(high)}{']' if reached else ')'}"

        return with_missing([f"{span(*s)}{unit}" for s in self.cells.spans()], self.missing)


def settle(column: Line, bound: Callable[[str, Any], Any]) -> None:
    """Check the settings that all numeric kinds share, and store them in one form."""
    allowed = ("clip", "missing", "refuse")
    name = validators.name(column.name)
    low, high = bound("low", column.low), bound("high", column.high)
    if low > high:
        raise validators.column_error(name, "low is above high.", "Exchange them.")
    missing = validators.flag(name, "missing", column.missing)
    edges, bins = column.edges, column.bins
    if edges is not None:
        if bins is not None:
            raise validators.column_error(
                name, "it has both bins and edges.", "Keep one of the two."
            )
        edges = tuple(bound("edges", e) for e in validators.listed(name, "edges", edges))
        if any(a >= b for a, b in pairwise(edges)):
            raise validators.column_error(name, "edges do not increase.", "Sort them, each once.")
    if not edges:
        default = BINS if edges is None else 1
        few = edges is None and isinstance(low, int) and high - low < BINS
        edges = None
        if bins is not None or not few:  # a few whole numbers have a code each
            bins = default if bins is None else bins
            bins = validators.whole(name, "bins", bins, 1, validators.MAX_BINS)
    atoms = tuple(
        sorted({bound("atoms", a) for a in validators.listed(name, "atoms", column.atoms)})
    )
    for key, values in (("edges", edges or ()), ("atoms", atoms)):
        if any(not low <= v <= high for v in values):
            raise validators.column_error(
                name, f"{key} lie outside its bounds.", "Widen low and high, or take them out."
            )
    outside = validators.policy(name, column.outside or "clip", allowed, missing=missing)
    set_fields(column, low=low, high=high, bins=bins, edges=edges, atoms=atoms, outside=outside)
    _settle_leaves(column)


def _settle_leaves(column: Line) -> None:
    """Check the leaves: numbers of the line, whose edges hold all edges of the bins."""
    name = column.name
    edges, weights = (
        tuple(
            validators.real(name, key, v)
            for v in validators.listed(name, key, getattr(column, key))
        )
        for key in ("leaf_edges", "leaf_weights")
    )
    mean = tuple(
        validators.real(name, "mean", v) for v in validators.listed(name, "mean", column.mean)
    )
    if mean and (len(mean) != 3 or not mean[1] <= mean[0] <= mean[2]):
        raise validators.column_error(
            name, "mean is not an estimate and the ends of its interval.", "Take mean out."
        )
    set_fields(column, leaf_edges=edges, leaf_weights=weights, mean=mean)
    if not edges and not weights:
        return
    if len(edges) != len(weights) + 1 or len(weights) > validators.MAX_BINS:
        raise validators.column_error(
            name, "leaf_edges has not one number more than leaf_weights.", "Take both out."
        )
    if any(a >= b for a, b in pairwise(edges)) or any(w < 0 for w in weights):
        raise validators.column_error(
            name, "leaf_edges do not increase, or a weight is negative.", "Take both out."
        )
    bins = column.cells.edges
    if edges[0] != bins[0] or edges[-1] != bins[-1] or not np.isin(bins, edges).all():
        raise validators.column_error(
            name, "leaf_edges lack an edge of its bins.", "Take leaf_edges and leaf_weights out."
        )
