"""The cells of a number line between two public bounds: bins, and point masses (``atoms``).

Cells are in the order of the line, a point mass before the bin that starts at it. A bin is
``[start, stop)``; the last bin of a line of real numbers is closed. A bin is dropped if all of its
values are point masses, and a value drawn for a bin is never a point mass. Coordinates are floats;
whole numbers (days and seconds too) are exact below 2**53.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from margrave.schema.parsing import Mask
from margrave.types import FloatArray, IntArray

#: Largest whole number up to which all are exact as floats.
EXACT = 1 << 53


@dataclass(frozen=True, eq=False)
class _BinLayout:
    """Arrays by cell: start, stop, whether it is a point mass, and whether the stop belongs to it."""

    of_atom: IntArray
    of_bin: IntArray
    starts: FloatArray
    stops: FloatArray
    atom: Mask
    closed: Mask


@dataclass(frozen=True, eq=False)
class Leaves:
    """Parts of bins, with the public weights by which values are drawn inside a bin.

    Args:
        edges: Increasing, k + 1 of them; every edge of a bin is one of them.
        weights: k numbers from 0 on. A bin whose parts have no weight is drawn evenly.
    """

    edges: FloatArray
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class Binning:
    """The bins and point masses of one number line.

    ``edges`` has one number more than there are bins. The last is the upper bound; for ``whole``
    numbers it is the first number beyond the bound. ``decimals`` (of real numbers) makes drawn
    values multiples of 10**-decimals if the bin contains one. Inside a bin values are drawn evenly,
    or by ``leaves``.

    >>> cells = Binning(np.array([0.0, 10.0, 21.0]), atoms=np.array([0.0]), whole=True)
    >>> cells.count, cells.locate(np.array([0.0, 1.0, 10.0, 20.0, 99.0])).tolist()
    (3, [0, 1, 2, 2, 2])
    """

    edges: FloatArray
    atoms: FloatArray
    whole: bool
    decimals: int | None = None
    leaves: Leaves | None = None

    @cached_property
    def _layout(self) -> _BinLayout:
        bins = np.flatnonzero(self._inhabited())
        n_atoms, n = len(self.atoms), len(self.atoms) + len(bins)
        starts = np.concatenate([self.atoms, self.edges[:-1][bins]])
        stops = np.concatenate([self.atoms, self.edges[1:][bins]])
        atom = np.arange(n) < n_atoms
        order = np.lexsort((~atom, starts))
        rank = np.empty(n, dtype=np.int64)
        rank[order] = np.arange(n)
        of_bin = np.zeros(
            len(self.edges) - 1, dtype=np.int64
        )  # a bin without values is never looked up
        of_bin[bins] = rank[n_atoms:]
        closed = ~atom & (stops == self.edges[-1]) & (not self.whole)
        return _BinLayout(
            rank[:n_atoms], of_bin, starts[order], stops[order], atom[order], closed[order]
        )

    def _inhabited(self) -> Mask:
        starts, stops = self.edges[:-1], self.edges[1:]
        if self.whole:
            inside = np.searchsorted(self.atoms, stops) - np.searchsorted(self.atoms, starts)
            return np.asarray(stops - starts > inside)
        only_atoms = (np.nextafter(starts, np.inf) >= stops) & np.isin(starts, self.atoms)
        only_atoms[-1] &= self.edges[-1] in self.atoms
        return ~only_atoms

    @property
    def count(self) -> int:
        """The number of cells."""
        return len(self._layout.starts)

    def locate(self, values: FloatArray) -> IntArray:
        """Return the cell of every value; values beyond a bound go to the nearest cell. NaN is not
        allowed.
        """
        top = self.edges[-1] - 1 if self.whole else self.edges[-1]
        values = np.clip(np.rint(values) if self.whole else values, self.edges[0], top)
        found = self._layout.of_bin[np.searchsorted(self.edges[1:-1], values, side="right")]
        if len(self.atoms):
            nearest = np.minimum(np.searchsorted(self.atoms, values), len(self.atoms) - 1)
            found = np.where(self.atoms[nearest] == values, self._layout.of_atom[nearest], found)
        return found

    def spans(self) -> list[tuple[float, float, bool, bool]]:
        """Return the first and last value (or bound) of every cell, and whether each belongs to it."""
        at = self._layout
        starts, stops = at.starts, at.stops
        entered, reached = at.atom | ~np.isin(starts, self.atoms), at.atom | at.closed
        if self.whole:
            first, last = self._ranks
            starts = np.where(at.atom, starts, self._unrank(first))
            stops = np.where(at.atom, stops, self._unrank(last - 1))
            entered = reached = np.ones(self.count, dtype=np.bool_)
        return list(
            zip(starts.tolist(), stops.tolist(), entered.tolist(), reached.tolist(), strict=True)
        )

    @cached_property
    def extremes(self) -> tuple[FloatArray, FloatArray]:
        """The least and the greatest value that ``draw`` returns for each cell.

        >>> least, greatest = Binning(np.array([0.0, 10.0, 21.0]), atoms=np.array([0.0]), whole=True).extremes
        >>> least.tolist(), greatest.tolist()
        ([0.0, 1.0, 10.0], [0.0, 9.0, 20.0])
        """
        at = self._layout
        entered, reached = (
            ~np.isin(at.starts, self.atoms),
            at.closed & ~np.isin(at.stops, self.atoms),
        )
        least = np.where(at.atom | entered, at.starts, np.nextafter(at.starts, np.inf))
        greatest = np.where(at.atom | reached, at.stops, np.nextafter(at.stops, -np.inf))
        if self.whole or self.decimals is not None:
            first, last = self._ranks
            several = last > first
            least = np.where(several, self._unrank(first), least)
            greatest = np.where(several, self._unrank(last - 1), greatest)
        return least, greatest

    def draw(self, cells: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return a value for every given cell: the point mass, or a draw over the values of the bin,
        uniform or by the leaves.
        """
        at = self._layout
        if self.leaves is not None:
            return self._parts.draw(self._part_of(cells, rng), rng)
        values = at.starts[cells]
        if self.whole or self.decimals is not None:
            first, last = (r[cells] for r in self._ranks)
            drawn = self._unrank(rng.integers(first, np.maximum(last, first + 1)))
            values = np.where(last > first, drawn, values)
            rest = ~at.atom[cells] & (last == first)  # a bin narrower than the decimals
        else:
            rest = ~at.atom[cells]
        if rest.any():
            values[rest] = self._between(cells[rest], rng)
        return values

    @cached_property
    def means(self) -> FloatArray:
        """The mean of ``draw`` for each cell.

        >>> Binning(np.array([0.0, 10.0, 21.0]), atoms=np.array([0.0]), whole=True).means.tolist()
        [0.0, 5.0, 15.0]
        """
        least, greatest = self.extremes
        if self.leaves is None:
            return np.asarray((least + greatest) / 2)
        first, last = self._part_ranges
        sums = np.concatenate(
            [[0.0], np.cumsum(self._part_weights * self._parts.means[self._part_cells])]
        )
        weights = self._cumulated[last] - self._cumulated[first]
        inside = (sums[last] - sums[first]) / np.where(weights > 0, weights, 1.0)
        means = np.where(self._layout.atom, self._layout.starts, inside)
        return np.asarray(np.clip(means, least, greatest))

    @cached_property
    def variances(self) -> FloatArray:
        """The variance of ``draw`` for each cell.

        >>> Binning(np.array([0.0, 10.0, 21.0]), atoms=np.array([0.0]), whole=True).variances.round(2).tolist()
        [0.0, 6.67, 10.0]
        """
        least, greatest = self.extremes
        if self.leaves is None:
            step = 1.0 / self._scale if self.whole or self.decimals is not None else 0.0
            width = greatest - least
            return np.where(width > 0, ((width + step) ** 2 - step**2) / 12, 0.0)
        first, last = self._part_ranges
        cells, parts = np.repeat(np.arange(self.count), last - first), self._part_cells
        squares = (self._parts.means[parts] - self.means[cells]) ** 2 + self._parts.variances[parts]
        sums = np.bincount(cells, self._part_weights * squares, minlength=self.count)
        weights = np.bincount(cells, self._part_weights, minlength=self.count)
        return np.asarray(sums / np.where(weights > 0, weights, 1.0))

    def shares(self, low: float, high: float) -> FloatArray:
        """Return the share of the values of ``draw`` from ``low`` to ``high``, both included, for each cell.

        >>> cells = Binning(np.array([0.0, 10.0, 20.0]), atoms=np.array([0.0]), whole=True)
        >>> cells.shares(4, 12).round(2).tolist()
        [0.0, 0.67, 0.3]
        """
        at = self._layout
        low, high = max(low, float(self.edges[0])), min(high, float(self.edges[-1]))
        point = (at.starts >= low) & (at.starts <= high)
        if self.leaves is not None:
            inside = self._part_weights * self._parts.shares(low, high)[self._part_cells]
            sums = np.concatenate([[0.0], np.cumsum(inside)])
            first, last = self._part_ranges
            whole = self._cumulated[last] - self._cumulated[first]
            found = (sums[last] - sums[first]) / np.where(whole > 0, whole, 1.0)
            found[np.isclose(found, 1.0, rtol=0.0, atol=1e-12)] = 1.0  # sums of all leaves, rounded
            return np.where(at.atom, point, np.clip(found, 0.0, 1.0))
        width = at.stops - at.starts
        length = np.maximum(np.minimum(at.stops, high) - np.maximum(at.starts, low), 0.0)
        found = np.where(width > 0, length / np.where(width > 0, width, 1.0), point)
        if self.whole or self.decimals is not None:
            first, last = self._ranks
            begin, end = self._ceiling(np.array([low, np.nextafter(high, np.inf)]))
            begin, end = (p - np.searchsorted(self._bare, p) for p in (begin, end))
            inside = np.maximum(np.minimum(last, end) - np.maximum(first, begin), 0)
            found = np.where(last > first, inside / np.maximum(last - first, 1), found)
        return np.asarray(np.where(at.atom, point, found), dtype=np.float64)

    @property
    def finest(self) -> Binning:
        """The cells within which values are drawn evenly: the leaves, or the bins themselves."""
        return self if self.leaves is None else self._parts

    @cached_property
    def _parts(self) -> Binning:
        assert self.leaves is not None
        return Binning(self.leaves.edges, self.atoms, self.whole, self.decimals)

    @cached_property
    def _part_cells(self) -> IntArray:
        """The cell of each leaf among the parts."""
        return self._parts._layout.of_bin

    @cached_property
    def _part_ranges(self) -> tuple[IntArray, IntArray]:
        """For each cell the first leaf, and the one after the last; equal for a point mass."""
        assert self.leaves is not None
        at = self._layout
        first = np.searchsorted(self.leaves.edges, at.starts)
        last = np.where(at.atom, first, np.searchsorted(self.leaves.edges, at.stops))
        return first, last

    @cached_property
    def _part_weights(self) -> FloatArray:
        """The weight of each leaf: 0 if all of its values are point masses; by width in a bin without weights."""
        assert self.leaves is not None
        lives = self._parts._inhabited()
        weights = np.where(lives, self.leaves.weights, 0.0)
        widths = np.where(lives, np.diff(self.leaves.edges), 0.0)
        for first, last in zip(*self._part_ranges, strict=True):
            if last > first and not weights[first:last].sum() > 0:
                weights[first:last] = widths[first:last]
        return weights

    @cached_property
    def _cumulated(self) -> FloatArray:
        return np.concatenate([[0.0], np.cumsum(self._part_weights)])

    def _part_of(self, cells: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw a cell of the parts for every cell."""
        first, last = (r[cells] for r in self._part_ranges)
        low, high = self._cumulated[first], self._cumulated[last]
        points = np.minimum(low + rng.random(len(cells)) * (high - low), np.nextafter(high, low))
        leaves = np.searchsorted(self._cumulated, points, side="right") - 1
        parts = self._part_cells[np.minimum(leaves, len(self._part_cells) - 1)]
        if not len(self.atoms):
            return np.asarray(parts)
        of_atom = np.searchsorted(self.atoms, self._layout.starts[cells])
        own = self._parts._layout.of_atom[np.minimum(of_atom, len(self.atoms) - 1)]
        return np.where(self._layout.atom[cells], own, parts)

    def _between(self, cells: IntArray, rng: np.random.Generator) -> FloatArray:
        low, high = self._layout.starts[cells], self._layout.stops[cells]
        below = np.nextafter(high, -np.inf)
        end = np.where(self._layout.closed[cells], high, low)
        values = np.clip(low + rng.random(len(low)) * (high - low), low, below)
        for _ in range(3):
            hit = np.isin(values, self.atoms)
            if not hit.any():
                break
            values[hit] = np.where(values < below, np.nextafter(values, np.inf), end)[hit]
        return values

    @cached_property
    def _scale(self) -> float:
        return 1.0 if self.whole else 10.0 ** (self.decimals or 0)

    @cached_property
    def _bare(self) -> IntArray:
        points = np.rint(self.atoms * self._scale)
        return np.unique(points[points / self._scale == self.atoms].astype(np.int64))

    @cached_property
    def _ranks(self) -> tuple[IntArray, IntArray]:
        at = self._layout
        first = self._ceiling(at.starts)
        last = self._ceiling(np.where(at.closed, np.nextafter(at.stops, np.inf), at.stops))
        before, until = (p - np.searchsorted(self._bare, p) for p in (first, last))
        return before, np.where(at.atom, before, until)

    def _ceiling(self, values: FloatArray) -> IntArray:
        points = np.ceil(values * self._scale)
        points -= (points - 1) / self._scale >= values
        points += points / self._scale < values
        return points.astype(np.int64)

    def _unrank(self, ranks: IntArray) -> FloatArray:
        gaps = self._bare - np.arange(len(self._bare))
        points = ranks + np.searchsorted(gaps, ranks, side="right")
        return np.asarray(points / self._scale, dtype=np.float64)


def equal_width(low: float, high: float, bins: int, *, whole: bool) -> FloatArray:
    """Return the edges of bins of one width; of whole numbers, no more bins than there are values.

    >>> equal_width(0, 8, 3, whole=True).tolist()
    [0.0, 3.0, 6.0, 9.0]
    >>> equal_width(1, 2, 32, whole=True).tolist()
    [1.0, 2.0, 3.0]
    """
    if whole:
        values = int(high) - int(low) + 1
        bins = min(bins, values)
        return np.array([int(low) + i * values // bins for i in range(bins + 1)], dtype=np.float64)
    edges = low + (high - low) * (np.arange(bins + 1) / bins)
    edges[-1] = high
    return np.asarray(edges, dtype=np.float64)


def given_edges(low: float, high: float, edges: Sequence[float], *, whole: bool) -> FloatArray:
    """Return the given edges with both bounds."""
    inner = [e for e in edges if low < e < high]
    return np.array([low, *inner, high + 1 if whole else high], dtype=np.float64)
