"""Step 2: the range of a column, from noisy counts on a logarithmic grid."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from margrave.learning.hysteresis import grown
from margrave.learning.line import UnitLine
from margrave.learning.tail import Tail
from margrave.schema.bins import EXACT
from margrave.schema.column_queries import LineCells
from margrave.schema.parsing import Mask
from margrave.transcript import ColumnAnswer
from margrave.types import FloatArray


@dataclass(frozen=True, eq=False)
class Extent:
    """A range of coordinates ``[low, high)``, and what the grid says of its inside.

    Args:
        low, high: The range; ``high`` is the first coordinate beyond it if the line has a unit.
        edges, counts: The grid within the range, and its noisy counts, not negative.
        rows: The noisy number of values that are not missing.
        hidden: Values that may lie beyond the range without showing.
        dense: The number of cells that hold mass.
        tails: The counts at the lower and the upper end; None at zero, and between public bounds.
    """

    low: float
    high: float
    edges: FloatArray
    counts: FloatArray
    rows: float
    hidden: float
    dense: int
    tails: tuple[Tail | None, Tail | None] = (None, None)

    #: Noise scales at which the count of a cell shows that values lie there.
    seed: ClassVar[float] = 4.5


def logarithmic_grid(line: UnitLine) -> FloatArray:
    """Return the edges of half-octaves on both sides of zero, up to 2^100, and of zero alone."""
    octaves = 100
    halves = 2.0 ** (np.arange(0 if line.is_whole else -2 * octaves, 2 * octaves + 1) / 2)
    positive = np.unique(np.ceil(halves)) if line.is_whole else halves
    if line.is_whole:  # [a, b) on the right; the mirror image of its whole numbers on the left
        return np.concatenate([1.0 - positive[::-1], positive])
    tiny = np.nextafter(0.0, 1.0)
    return np.concatenate([-positive[::-1], [0.0, tiny], positive])


def range_query(line: UnitLine) -> LineCells:
    """Return the counts on the logarithmic grid."""
    return LineCells(tuple(line.points(logarithmic_grid(line)).tolist()))


def extent_of(answer: ColumnAnswer, line: UnitLine) -> Extent | None:
    """Return the range that holds the mass, or None if no cell shows any."""
    grid = logarithmic_grid(line)
    edges = np.concatenate([[2 * grid[0]], grid, [2 * grid[-1]]])
    counts, sigma = answer.values[:-1].astype(np.float64), answer.scale
    kept = grown(counts, sigma, seed=Extent.seed) | _octaves(counts, sigma)
    if not kept.any():
        return None
    kept, lost = _without_islands(kept, counts, 6.0 * sigma)
    first, last = int(np.argmax(kept)), len(kept) - 1 - int(np.argmax(kept[::-1]))
    while last > first and counts[last] < sigma:  # the empty half of an octave
        last -= 1
    while first < last and counts[first] < sigma:
        first += 1
    rows = max(float(counts.sum()), 1.0)
    # the tail is extrapolated on the side away from zero
    if edges[last] > 0:
        last += _grows(counts[: last + 1][::-1], sigma) and last + 1 < len(counts)
    if edges[first + 1] <= 0:
        first -= _grows(counts[first:], sigma) and first > 0
    low, high = float(edges[first]), float(edges[last + 1])
    if 0 < low < high / 16:
        low = 0.0
    if high <= 0 and -high < -low / 16:
        high = 1.0 if line.is_whole else 0.0
    inside, hidden = slice(first, last + 1), 2 * sigma + lost
    own = np.concatenate([edges[inside], [high]])
    own[0], own[-1] = low, high
    down = up = None
    if edges[last] > 0:
        up = Tail.of(counts[last::-1], counts[last + 1 :], sigma)
    if edges[first + 1] <= 0:
        down = Tail.of(counts[first:], counts[:first][::-1], sigma)
    shown = np.maximum(counts[inside], 0)
    return Extent(low, high, own, shown, rows, hidden, int(kept.sum()), (down, up))


def rows_to_show(scale: float) -> int:
    """Return the rows that some octave, from a value to its double, must hold for a range to be found.

    Args:
        scale: The noise scale of each count of the grid, in records.
    """
    return math.ceil(Extent.seed * math.sqrt(2) * scale)


def range_advice(column: str, answer: ColumnAnswer) -> str:
    """Return why a column has no range, from the counts on the logarithmic grid."""
    if len(answer.values) == range_query(UnitLine(0)).size and extent_of(answer, UnitLine(0)):
        return (
            f"{column!r} has whole numbers of 2^53 (9e15) or more, which are not exact: divide them, or leave the"
            " column out."
        )
    return (
        f"A range needs about {rows_to_show(answer.scale):,} rows between some value and its double; dates and times"
        " are counted from 1970, elapsed times from their start."
    )


def _without_islands(kept: Mask, counts: FloatArray, least: float) -> tuple[Mask, float]:
    """Return the cells without islands of few rows apart from the largest one, and the rows on these islands.

    One cell of many reaches a threshold of 4.5 noise scales by noise once in a thousand columns, and would set the
    range by itself.
    """
    ends = np.flatnonzero(np.diff(np.concatenate([[0], kept.astype(np.int8), [0]])))
    islands = [slice(start, stop) for start, stop in zip(ends[::2], ends[1::2], strict=True)]
    sums = [float(counts[island].sum()) for island in islands]
    left, lost = kept.copy(), 0.0
    for island, rows in zip(islands, sums, strict=True):
        if rows < least and rows < max(sums):
            left[island] = False
            lost += max(rows, 0.0)
    return left, lost


def _octaves(counts: FloatArray, sigma: float) -> Mask:
    """Return the half-octaves in octaves with mass, for both ways of pairing them."""
    kept = np.zeros(len(counts), dtype=np.bool_)
    for start in (0, 1):
        pairs = counts[start : start + (len(counts) - start) // 2 * 2].reshape(-1, 2).sum(axis=1)
        mass = np.repeat(grown(pairs, sigma * np.sqrt(2), seed=Extent.seed), 2)
        kept[start : start + len(mass)] |= mass
    return np.asarray(kept)


def _grows(counts: FloatArray, sigma: float) -> bool:
    """Return whether rows are expected beyond the end, given the counts from the end inwards."""
    if len(counts) < 4:
        return False
    last, before = float(counts[:2].sum()), float(counts[2:4].sum())
    if before <= 3 * sigma * np.sqrt(2) or last <= 0:
        return False
    ratio = last / before
    return ratio < 0.7 and last * ratio / (1 - ratio) > 2 * sigma * np.sqrt(2)


def are_exact(extent: Extent, line: UnitLine) -> bool:
    """Return whether all coordinates of a range are exact: whole ones are below 2^53."""
    return not line.is_whole or (extent.low >= 1 - EXACT and extent.high <= EXACT)


def in_points(extent: Extent, line: UnitLine) -> Extent:
    """Return a range in points, for a line without a unit."""
    low, high = (float(p) for p in line.points(np.array([extent.low, extent.high])))
    return replace(extent, low=low, high=high, edges=line.points(extent.edges))


def given_extent(low: float, high: float) -> Extent:
    """Return a range between public bounds."""
    edges = np.array([low, high])
    return Extent(low, high, edges, np.ones(1), 0.0, 0.0, 1)


def bounded(extent: Extent, low: float | None, high: float | None) -> Extent:
    """Return the part of a range within public bounds."""
    start = extent.low if low is None else max(extent.low, low)
    stop = extent.high if high is None else min(extent.high, high)
    if stop <= start:
        start, stop = (low, low + 1) if low is not None else (stop - 1, stop)
    edges = np.clip(extent.edges, start, stop)
    width = np.diff(edges)
    edges = np.concatenate([edges[:-1][width > 0], [stop]])
    edges[0] = start
    counts = extent.counts[width > 0] if (width > 0).any() else np.ones(len(edges) - 1)
    down, up = extent.tails
    if down is not None and low is not None and start < 0:
        down = down.within(start, low)
    if up is not None and high is not None and stop > 0:
        up = up.within(stop, high)
    return replace(extent, low=start, high=stop, edges=edges, counts=counts, tails=(down, up))
