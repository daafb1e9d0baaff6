"""A signed measure made a probability measure: the one on the same points that is nearest in sliced Wasserstein-1.

On a line W1 of two measures is the area between their distribution functions, which signed measures have too
(Boedihardjo, Strohmer, Vershynin 2022). Directions and points are fixed, so that all is sorted once.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from margrave._kernel import kernel
from margrave.marginal.simplex import clip_and_rescale
from margrave.types import AnyArray, FloatArray

#: Positions of points on lines that are stored: larger marginals use fewer directions.
ENTRIES = 4_000_000

#: Directions of a marginal at least.
MIN_DIRECTIONS = 12


#: Steps of Adam.
STEPS = 5000

#: The recipes of a projection: margrave's, and that of PrivPGD's authors.
QUICK, PUBLISHED = "quick", "published"


@dataclass(frozen=True)
class ProjectedLines:
    """Points on some lines: ``order[p]`` sorts them along direction p, ``gaps[p, j]`` is from the j-th to the next."""

    order: AnyArray
    gaps: AnyArray

    @staticmethod
    def of(points: FloatArray, directions: FloatArray) -> ProjectedLines:
        """Return the lines; ``points`` has a row for each coordinate, ``directions`` a column."""
        order = np.empty((len(directions), points.shape[1]), dtype=np.int32)
        gaps = np.zeros(order.shape)
        for p, direction in enumerate(directions):
            line = direction @ points
            order[p] = np.argsort(line, kind="stable")
            gaps[p, :-1] = np.diff(line[order[p]])
        return ProjectedLines(order, gaps)

    def distance(self, one: FloatArray, other: FloatArray) -> float:
        """Return SW1 of two measures on the points: the mean over the directions of Σ_j |F(j) −
        G(j)| · gap_j.
        """
        total = 0.0
        for order, gaps in zip(self.order, self.gaps, strict=True):
            total += float(np.abs(np.cumsum((one - other)[order])) @ gaps)
        return total / len(self.order)


def directions_of(dimensions: int, count: int, rng: np.random.Generator) -> FloatArray:
    """Return directions drawn evenly from the sphere; in one dimension the only one."""
    if dimensions == 1:
        return np.ones((1, 1))
    found = rng.standard_normal((count, dimensions))
    return np.asarray(found / np.linalg.norm(found, axis=1)[:, None], dtype=np.float64)


def projected(
    points: FloatArray,
    shares: FloatArray,
    rng: np.random.Generator,
    *,
    directions: int = 200,
    steps: int = STEPS,
    recipe: str = QUICK,
) -> FloatArray:
    """Return the probability measure on ``points`` nearest to signed ``shares``.

    minimize SW1(w, shares) over w >= 0, Σ w = 1, the integral over the sphere by ``directions`` drawn from it

    On a line it is exact: a monotone regression of the distribution function. Else Adam on logits, from the positive
    part of the shares, each step by some of the directions in turn. Of d points, 200 · d places are kept. The
    ``PUBLISHED`` recipe takes 1750 steps of all directions, each of which costs ten of these.

    Source: Donhauser, Abad, Hulkund, Yang (2024), PrivPGD, Section 3.2, equation 5, and Appendix A.
    """
    # Directions of one step, in turn.
    directions_at_once = 20
    # Positions that a projection reads at most, about: larger marginals take fewer steps.
    max_positions = 2e10
    # Least share of the mass at the start of a cell, because its logit must be finite.
    min_share = 1e-9
    if len(shares) == 1:
        return np.ones(1)
    if len(points) == 1:
        return on_a_line(points[0], shares)
    count = min(directions, max(MIN_DIRECTIONS, ENTRIES // len(shares)))
    lines = ProjectedLines.of(points, directions_of(len(points), count, rng))
    at_once = count if recipe == PUBLISHED else min(count, directions_at_once)
    taken = max(1, min(steps, int(max_positions / (at_once * len(shares)))))
    start = clip_and_rescale(shares) + min_share
    rates = _published_rates() if recipe == PUBLISHED else _rates(taken)
    found: FloatArray = _descend(
        lines.order, lines.gaps, shares, start / start.sum(), rates, at_once
    )
    return found


def _rates(steps: int) -> FloatArray:
    """Return the rates of the steps, from 0.3 to 0.0003."""
    rates = np.full(steps, 0.001 ** (1.0 / steps))
    rates[0] = 0.3
    return np.asarray(np.multiply.accumulate(rates), dtype=np.float64)


def _published_rates() -> FloatArray:
    """Return the paper's: 0.1, times 0.8 after every 100 steps."""
    return np.asarray(0.1 * 0.8 ** (np.arange(1750) // 100), dtype=np.float64)


def quantized(shares: FloatArray, particles: int) -> FloatArray:
    """Return shares that are multiples of 1 / particles: each rounded down or up, the largest rests up."""
    counts = np.floor(shares * particles)
    missing = particles - int(counts.sum())
    counts[np.argsort(counts - shares * particles, kind="stable")[:missing]] += 1.0
    return np.asarray(counts / particles, dtype=np.float64)


def on_a_line(line: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the exact projection for points on one line: the nearest monotone distribution
    function in L1.
    """
    order = np.argsort(line, kind="stable")
    gaps, wanted = np.diff(line[order]), np.cumsum(shares[order])[:-1]
    heap: list[
        tuple[float, float]
    ] = []  # where the slope of that minimum changes, the highest first, and by how much
    best = np.empty(len(wanted))
    for j, (value, gap) in enumerate(zip(wanted, gaps, strict=True)):
        heapq.heappush(heap, (-float(value), 2.0 * float(gap)))
        left = float(gap)
        while left > 0.0 and len(heap) > 1 and heap[0][1] <= left:
            left -= heapq.heappop(heap)[1]
        heap[0] = (heap[0][0], heap[0][1] - left)
        best[j] = -heap[0][0]
    rising = np.minimum.accumulate(best[::-1])[::-1]
    found = np.empty(len(shares))
    found[order] = np.diff(np.clip(rising, 0.0, 1.0), prepend=0.0, append=1.0)
    return found


@kernel(fastmath={"reassoc", "contract", "arcp"})
def _descend(order, gaps, shares, start, rates, at_once):  # type: ignore[no-untyped-def]
    """Adam on the logits of a distribution, from ``start``, one step per rate."""
    count, n = order.shape
    logits, weights = np.log(start), start.copy()
    mean, square, gradient, signed = np.zeros(n), np.zeros(n), np.empty(n), np.empty(n)
    fade, fade_squares, at = 1.0, 1.0, 0
    for rate in rates:
        gradient[:] = 0.0
        for _line in range(at_once):
            above = 0.0
            for j in range(n):
                k = order[at, j]
                above += weights[k] - shares[k]
                signed[j] = gaps[at, j] if above > 0.0 else -gaps[at, j]
            slope = 0.0
            for j in range(n - 1, -1, -1):
                slope += signed[j]
                gradient[order[at, j]] += slope
            at = (at + 1) % count
        middle = 0.0
        for k in range(n):
            middle += weights[k] * gradient[k]
        fade *= 0.9
        fade_squares *= 0.999
        top = -np.inf
        for k in range(n):
            g = weights[k] * (gradient[k] - middle) / at_once
            mean[k] = 0.9 * mean[k] + 0.1 * g
            square[k] = 0.999 * square[k] + 0.001 * g * g
            logits[k] -= (
                rate
                * (mean[k] / (1.0 - fade))
                / (np.sqrt(square[k] / (1.0 - fade_squares)) + 1e-15)
            )
            top = max(top, logits[k])
        total = 0.0
        for k in range(n):
            weights[k] = np.exp(logits[k] - top)
            total += weights[k]
        for k in range(n):
            weights[k] /= total
    return weights
