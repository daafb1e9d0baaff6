"""Step 5: a tree of counts over the grid, made consistent, not negative, and pruned."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from margrave.learning.line import UnitLine
from margrave.schema.column_queries import LineCells
from margrave.schema.parsing import Mask
from margrave.transcript import ColumnAnswer
from margrave.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class CountTree:
    """Nodes over the cells of a grid: those of a level split the cells into groups of equal number.

    Args:
        edges: Coordinates of the cells' edges, k + 1 of them.
        line: The line.
    """

    edges: FloatArray
    line: UnitLine
    fanout: ClassVar[int] = 4

    @property
    def cells(self) -> int:
        """The number of cells."""
        return len(self.edges) - 1

    @cached_property
    def levels(self) -> list[IntArray]:
        """For each level, coarsest first, the first cell of every node, and the number of cells."""
        depth = max(1, math.ceil(math.log(self.cells, self.fanout) - 1e-9)) if self.cells > 1 else 1
        spans = [self.fanout ** (depth - level) for level in range(1, depth + 1)]
        return [np.append(np.arange(0, self.cells, span), self.cells) for span in spans]

    def queries(self) -> list[LineCells]:
        """Return a query per level. The outer nodes hold what lies beyond the range."""
        return [self._query(level) for level in self.levels]

    def _query(self, level: IntArray) -> LineCells:
        inner = self.edges[level[1:-1]]
        if not len(inner):  # one node: an edge that splits nothing off
            inner = self.edges[:1]
        return LineCells(tuple(self.line.points(inner).tolist()))

    def counts(self, answers: list[ColumnAnswer]) -> list[FloatArray]:
        """Return the noisy counts of the nodes of every level."""
        found = []
        for level, answer in zip(self.levels, answers, strict=True):
            counts = answer.values[:-1].astype(np.float64)
            found.append(counts if len(counts) == len(level) - 1 else np.array([counts.sum()]))
        return found

    def estimate(self, counts: list[FloatArray], sigmas: list[float]) -> FloatArray:
        """Return the estimated count of every cell.

        Args:
            counts: The noisy counts of the nodes of every level.
            sigmas: The noise scale of each level.
        """
        values, variances = self._upward(counts, sigmas)
        parents = np.maximum(
            self._projected(values[0][None, :], np.array([max(values[0].sum(), 0.0)]))[0], 0
        )
        starts, whole = self.levels[0], np.zeros(len(parents), dtype=np.bool_)
        for depth in range(1, len(self.levels)):
            below = self.levels[depth]
            of = np.searchsorted(starts, below[:-1], side="right") - 1
            place = np.arange(len(of)) - np.searchsorted(of, of)
            children = np.full((len(parents), self.fanout), -np.inf)
            children[of, place] = values[depth]
            widths = np.zeros_like(children)
            widths[of, place] = np.diff(self.edges[below])
            flat = self._are_flat(children, widths, float(variances[depth].mean())) | whole
            even = parents[:, None] * widths / widths.sum(axis=1, keepdims=True)
            split = np.where(flat[:, None], even, self._projected(children, parents))
            parents, starts, whole = split[of, place], below, flat[of]
        return self._fading(parents, values, variances)

    def trimmed(
        self,
        masses: FloatArray,
        counts: list[FloatArray],
        sigmas: list[float],
        public: tuple[bool, bool] = (False, False),
    ) -> tuple[CountTree, FloatArray]:
        """Return the tree without the cells at both ends that hold nothing but noise, and its counts.

        The values at an end are taken to be spread evenly. Up to some place sums from the end inwards hold no more
        than one deviation, and up to another no more than three. The range then ends half their distance before the
        first place, but not before the last place where a sum is not positive. Counts of cells that are left out go to
        the cells up to the second place, by width. An end at a public bound keeps its cells if noise could hide that
        the values inside are as dense up to the bound.

        Args:
            masses: The estimated count of every cell.
            counts: The noisy counts of the nodes of every level.
            sigmas: The noise scale of each level.
            public: Whether the lower and the upper bound is public.
        """
        values, variances = self._upward(counts, sigmas)
        below, above = (self._sums_from_end(values, variances, top=top) for top in (False, True))
        first, inner_first = self._end(*below, 1)
        last, inner_last = self._end(*above, -1)
        if first >= last:
            return self, masses
        density = masses[first:last].sum() / (self.edges[last] - self.edges[first])
        hidden = [3.0 * below[1][first], 3.0 * above[1][self.cells - last]]
        lengths = [self.edges[first] - self.edges[0], self.edges[-1] - self.edges[last]]
        stays = [p and density * n <= h for p, n, h in zip(public, lengths, hidden, strict=True)]
        if stays[0]:
            first = inner_first = 0
        if stays[1]:
            last = inner_last = self.cells
        kept, widths = masses[first:last].copy(), np.diff(self.edges)[first:last]
        for lost, near in (
            (masses[:first], slice(0, max(inner_first - first, 1))),
            (masses[last:], slice(min(inner_last, last - 1) - first, None)),
        ):
            near = slice(max(near.start, 0), near.stop)
            kept[near] += lost.sum() * widths[near] / widths[near].sum()
        return CountTree(self.edges[first : last + 1], self.line), kept

    def reaching(
        self, low: float | None, high: float | None, masses: FloatArray
    ) -> tuple[CountTree, FloatArray]:
        """Return the tree with an empty cell at each end that lies within a public bound, and its counts.

        So no value lies beyond a public bound. Values in an empty cell belong to the bin beside it.

        Args:
            low, high: The public bounds as coordinates; None without one.
            masses: The estimated count of every cell.
        """
        before = [low] if low is not None and low < self.edges[0] else []
        after = [high] if high is not None and high > self.edges[-1] else []
        edges = np.concatenate([before, self.edges, after])
        return CountTree(edges, self.line), np.pad(masses, (len(before), len(after)))

    def _end(self, sums: FloatArray, deviations: FloatArray, side: int) -> tuple[int, int]:
        """Return the places of the edge where the values end, and of the one where they are plain to see.

        Args:
            sums: The estimated count of the first k cells from an end, for every k.
            deviations: Their deviations.
            side: 1 for the lower end, -1 for the upper one.
        """
        none, near, far = (
            int(np.flatnonzero(sums <= level * deviations)[-1]) for level in (0.0, 1.0, 3.0)
        )
        edges = side * self.edges[::side]
        end = max(edges[near] - (edges[far] - edges[near]) / 2, edges[none])
        place = int(np.searchsorted(edges, end, side="right")) - 1
        return (place, far) if side == 1 else (self.cells - place, self.cells - far)

    def _fading(
        self, masses: FloatArray, values: list[FloatArray], variances: list[FloatArray]
    ) -> FloatArray:
        """Return the counts of cells with those of silent ends fading with the distance from the mass.

        Counts that are made nonnegative leave noise in every empty cell, however far from the mass. Sums of cells
        from an end inwards are noise before they exceed three deviations. An end is silent up to the last of these
        sums that is not positive. Its counts fade by a factor e over the length from there to the first sum above
        noise, or over three times the distance from zero, if that is longer and zero lies within the range: tails of
        amounts fall by octaves.
        """
        least = 3.0
        faded, places = masses.copy(), (self.edges[:-1] + self.edges[1:]) / 2
        for top in (False, True):
            sums, deviations = self._sums_from_end(values, variances, top=top)
            loud = np.flatnonzero(sums > least * deviations)
            if not len(loud):
                continue
            silent = int(np.flatnonzero(sums[: loud[0] + 1] <= 0)[-1])
            edges = self.edges[::-1] if top else self.edges
            length = float(abs(edges[loud[0]] - edges[silent]))
            if self.edges[0] <= 0 <= self.edges[-1]:
                length = max(length, 3.0 * float(abs(edges[silent])))
            beyond = places - edges[silent] if top else edges[silent] - places
            with np.errstate(over="ignore"):  # the cell of zero alone is tiny
                faded *= np.exp(-np.maximum(beyond, 0.0) / length)
        left = float(faded.sum())
        return faded * (float(masses.sum()) / left) if left > 0 else masses

    def _sums_from_end(
        self, values: list[FloatArray], variances: list[FloatArray], *, top: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return the estimated count of the first k cells from an end for every k, and its deviation.

        Each is the sum of as few nodes as possible.
        """
        bounds, found = self.levels[0][[0, -1]], np.zeros((2, 2))
        for level, counts, spread in zip(self.levels, values, variances, strict=True):
            running = np.concatenate(
                [np.zeros((2, 1)), np.cumsum([counts, spread], axis=1)], axis=1
            )
            if top:  # the nearest node of the level above that begins here or later
                above = np.maximum(np.searchsorted(bounds, level), 1)
                rest = running[:, np.searchsorted(level, bounds[above])] - running
            else:
                above = (
                    np.minimum(np.searchsorted(bounds, level, side="right"), len(bounds) - 1) - 1
                )
                rest = running - running[:, np.searchsorted(level, bounds[above])]
            found, bounds = found[:, above] + rest, level
        if top:
            found = found[:, ::-1]
        return found[0], np.sqrt(np.maximum(found[1], 0.0))

    def _upward(
        self, counts: list[FloatArray], sigmas: list[float]
    ) -> tuple[list[FloatArray], list[FloatArray]]:
        """Combine each node's own count with the sum of its children's, by inverse variance."""
        values = [c.copy() for c in counts]
        variances = [np.full(len(c), s**2) for c, s in zip(counts, sigmas, strict=True)]
        for depth in range(len(counts) - 2, -1, -1):
            of = np.searchsorted(self.levels[depth], self.levels[depth + 1][:-1], side="right") - 1
            total = np.bincount(of, values[depth + 1])
            spread = np.bincount(of, variances[depth + 1])
            own = variances[depth]
            values[depth] = (values[depth] * spread + total * own) / (own + spread)
            variances[depth] = own * spread / (own + spread)
        return values, variances

    @staticmethod
    def _are_flat(children: FloatArray, widths: FloatArray, variance: float) -> Mask:
        """Return for each node whether its children do not differ from counts by their widths."""
        real = np.isfinite(children)
        known = np.where(real, children, 0.0)
        expected = known.sum(axis=1, keepdims=True) * widths / widths.sum(axis=1, keepdims=True)
        deviation = (np.where(real, known - expected, 0.0) ** 2).sum(axis=1)
        degrees = np.maximum(real.sum(axis=1) - 1, 0)
        flat = deviation <= variance * (degrees + 2 * np.sqrt(2 * degrees))
        return np.asarray(flat & (degrees > 0))  # an only child may have different children

    @staticmethod
    def _projected(children: FloatArray, totals: FloatArray) -> FloatArray:
        """Return the nearest rows that are not negative and have the given sums."""
        ordered = -np.sort(-children, axis=1)
        sums = np.cumsum(np.where(np.isfinite(ordered), ordered, 0.0), axis=1)
        shifts = (sums - totals[:, None]) / np.arange(1, children.shape[1] + 1)
        active = np.maximum((ordered > shifts).sum(axis=1), 1)
        shift = shifts[np.arange(len(children)), active - 1]
        return np.asarray(np.maximum(children - shift[:, None], 0.0))

    def leaves(self, masses: FloatArray) -> FloatArray:
        """Return the edges between cells of different density.

        Args:
            masses: The estimated count of every cell.
        """
        density = masses / np.maximum(np.diff(self.edges), 1e-300)  # the cell of zero alone is tiny
        changes = np.abs(np.diff(density)) > 1e-9 * np.maximum(density[1:], density[:-1])
        return np.asarray(self.edges[np.concatenate([[True], changes, [True]])])
