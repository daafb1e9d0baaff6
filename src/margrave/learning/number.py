"""Learn a number, date or time: unit, range, zoom, grid, tree, interval, and bins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.learning.bins import bins_of
from margrave.learning.decimals import decimals_of
from margrave.learning.extent import (
    Extent,
    are_exact,
    bounded,
    extent_of,
    given_extent,
    in_points,
    range_query,
)
from margrave.learning.grid import grid_of
from margrave.learning.interval import LearnedMean, mean_of
from margrave.learning.line import UnitLine
from margrave.learning.noisy_column import NoisyColumn
from margrave.learning.shares import LearningShares
from margrave.learning.tail import surplus_of
from margrave.learning.tree import CountTree
from margrave.learning.zoom import zoom_of
from margrave.schema.column_queries import ClippedSum, DecimalCells
from margrave.schema.elapsed import Elapsed, span_of
from margrave.schema.learn import Learn
from margrave.schema.numeric import UNITS, Integer, Numeric, Real, Timestamp
from margrave.schema.parsing import EPOCH
from margrave.types import FloatArray


@dataclass(frozen=True, eq=False)
class LearnedNumber:
    """A learned number, date or time.

    Args:
        column: The column that was to be learned.
        tree: The tree over its range.
        masses: The estimated count of each cell.
        mean: The mean with its uncertainty.
        widest: The range before a zoom, in coordinates.
    """

    column: Learn
    tree: CountTree
    masses: FloatArray
    mean: LearnedMean
    widest: tuple[float, float]

    @property
    def line(self) -> UnitLine:
        """The column's line."""
        return self.tree.line

    def clipped_sum(self) -> ClippedSum | None:
        """Return the sum that makes the mean better; None if the range is one point.

        It takes in what a zoom cut off.
        """
        low, high = self.line.points(np.array(self.widest))
        if not low < high:
            return None
        return ClippedSum(float(low), float(high), float(np.clip(self.mean.estimate, low, high)))

    def with_sum(self, noisy: NoisyColumn, rho: Fraction) -> LearnedNumber:
        """Return it with the mean improved by a clipped sum, bought with rho (zCDP)."""
        query = self.clipped_sum()
        if query is None:
            return self
        return replace(self, mean=self.mean.with_sum(noisy.measure(query, rho)))

    def declared(self, joint_scale: float) -> Numeric:
        """Return the column with bounds, bins and leaves.

        Args:
            joint_scale: The noise scale of the mechanism's first measurements, in records.
        """
        edges, points = self.tree.edges, self.line.means(self.tree.edges)
        starts = edges[bins_of(self.masses, points, joint_scale, self.column.max_bins)]
        starts, atoms = _without_tiny_cell(starts)
        leaves = np.unique(np.concatenate([self.tree.leaves(self.masses), starts]))
        leaves, _ = _without_tiny_cell(leaves)
        mass = np.concatenate([[0.0], np.cumsum(self.masses)])
        weights = np.diff(mass[np.searchsorted(edges, leaves)])
        return self._column(starts, leaves, weights, atoms)

    def _column(
        self, edges: FloatArray, leaves: FloatArray, weights: FloatArray, atoms: tuple[float, ...]
    ) -> Numeric:
        mean, total = self._stated_mean(), max(float(weights.sum()), 1.0)
        shares = tuple(float(f"{w / total:.6g}") for w in weights)
        if self.column.of == "real":
            return self._real(edges, leaves, np.array(shares), atoms)
        value = _value_of(self.column)
        low, high = value(edges[0]), value(edges[-1] - 1)
        made = self.column.reader
        own: dict[str, Any] = {"bins": None, "edges": [value(e) for e in edges[1:-1]]}
        leaf: dict[str, Any] = {"leaf_edges": leaves.tolist(), "leaf_weights": shares}
        return replace(made, low=low, high=high, missing=True, mean=mean, **own, **leaf)

    def _real(
        self, edges: FloatArray, leaves: FloatArray, shares: FloatArray, atoms: tuple[float, ...]
    ) -> Real:
        """Return a column of real numbers, which ends at its public bounds exactly. Its last bin is closed."""
        bins, cells = self.line.points(edges), self.line.points(leaves)
        low, high = float(bins[0]), float(bins[-1])
        if self.line.is_whole:  # between the last value and the next
            high = float(self.line.points(edges[-1:] - 0.5)[0])
        if self.column.low is not None:
            low = self.column.low
        if self.column.high is not None:
            high = self.column.high
            if len(bins) > 2 and bins[-2] == high:  # its last bin is a point
                atoms, shares[-1] = (*atoms, high), 0.0
        inside = np.concatenate([[True], (cells[1:-1] > low) & (cells[1:-1] < high)])
        return Real(
            self.column.name, low, high, edges=[e for e in bins[1:-1].tolist() if low < e < high],
            atoms=atoms, decimals=self.line.decimals, missing=True, mean=self._stated_mean(),
            leaf_edges=[low, *cells[:-1][inside][1:].tolist(), high],
            leaf_weights=np.add.reduceat(shares, np.flatnonzero(inside)).tolist(),
        )  # fmt: skip

    def _stated_mean(self) -> tuple[float, float, float]:
        low, high = self.mean.interval
        return self.mean.estimate, low, high


def learn_number(column: Learn, noisy: NoisyColumn, rho: Fraction) -> LearnedNumber | None:
    """Return what rho buys about a column, or None if its noise hides where the values lie.

    Args:
        column: A number, date or time.
        noisy: The raw column.
        rho: The price of all questions (zCDP).
    """
    line, left = UnitLine(0), rho
    if column.of == "real":
        line = UnitLine(decimals_of(noisy.measure(DecimalCells(), rho * LearningShares.decimals)))
        left -= rho * LearningShares.decimals
    low, high = _bounds(column, line)
    if low is not None and high is not None:
        extent: Extent | None = given_extent(low, high)
    else:
        extent = extent_of(noisy.measure(range_query(line), rho * LearningShares.extent), line)
        left -= rho * LearningShares.extent
    if extent is None:
        return None
    extent = _representable(column, bounded(extent, low, high))
    if not are_exact(extent, line):
        if column.of != "real":
            return None
        extent, line = in_points(extent, line), UnitLine(None)
    widest = extent.low, extent.high
    extent, cut, spent = _zoomed(column, extent, line, noisy, rho)
    left -= spent
    tree = CountTree(grid_of(extent, line), line)
    answers = [noisy.measure(q, left / len(tree.levels)) for q in tree.queries()]
    sigmas = [a.scale for a in answers]
    counts = tree.counts(answers)
    masses = tree.estimate(counts, sigmas)
    weights = [
        tail.weight(*surplus_of(tree, counts, sigmas, top=tail is extent.tails[1]))
        for tail in extent.tails
        if tail is not None
    ]
    hidden = max(extent.hidden, *weights) if weights else extent.hidden
    mean = mean_of(tree, masses, sigmas, hidden, cut)
    if column.is_moment:
        public = low is not None, high is not None
        tree, masses = tree.trimmed(masses, counts, sigmas, public)
    tree, masses = tree.reaching(*_bounds(column, line), masses)
    return LearnedNumber(column, tree, masses, mean, widest)


def _zoomed(
    column: Learn, extent: Extent, line: UnitLine, noisy: NoisyColumn, rho: Fraction
) -> tuple[Extent, float, Fraction]:
    """Return the range after its zooms, the bias of a mean that they may cause, and their price.

    Dates and times are far from zero, where the cells of the first range are years wide. So they have a second zoom
    if the first one leaves an eighth of the range or less.
    """
    cut, spent, whole = 0.0, Fraction(0), extent.high - extent.low
    shares = (LearningShares.zoom, LearningShares.second_zoom)
    for share in shares if column.is_moment else shares[:1]:
        zoom = zoom_of(extent, line)
        if zoom is None or (spent and extent.high - extent.low > whole / 8):
            break
        extent, own = zoom.applied(extent, noisy.measure(zoom.query, rho * share))
        cut, spent = cut + own, spent + rho * share
    return extent, cut, spent


def _bounds(column: Learn, line: UnitLine) -> tuple[float | None, float | None]:
    """Return the public bounds as coordinates; the upper one is the first beyond whole numbers."""
    low = None if column.low is None else line.coordinate(column.reader.point(column.low))
    high = None if column.high is None else line.coordinate(column.reader.point(column.high))
    return low, None if high is None else high + line.is_whole


def _representable(column: Learn, extent: Extent) -> Extent:
    """Return the part of a range of dates or times that has years; of numbers the range."""
    if column.of in ("date", "timestamp"):
        seconds = 86400 if column.of == "date" else UNITS[str(column.unit)]
        low = np.ceil((datetime.min - EPOCH).total_seconds() / seconds) + 1
        high = np.floor((datetime.max - EPOCH).total_seconds() / seconds) - 1
    elif column.of == Elapsed.kind:
        first, last = span_of(str(column.unit))
        low, high = first - last, last - first
    else:
        return extent
    return bounded(extent, low, high)


def _value_of(column: Learn) -> Callable[[float], Any]:
    """Return the map from coordinates to values of a whole column."""
    reader = column.reader
    if isinstance(reader, Integer):
        return int
    seconds = UNITS[reader.unit] if isinstance(reader, Timestamp) else 86400
    timed = isinstance(reader, Timestamp)

    def value(coordinate: float) -> Any:
        moment = EPOCH + timedelta(seconds=int(coordinate) * seconds)
        return moment if timed else moment.date()

    return value


def _without_tiny_cell(edges: FloatArray) -> tuple[FloatArray, tuple[float, ...]]:
    """Return edges without the one just above zero; zero is then a point mass."""
    tiny = np.nextafter(0.0, 1.0)
    alone = edges == tiny
    if not alone.any():
        return edges, ()
    return edges[~alone], (0.0,)
