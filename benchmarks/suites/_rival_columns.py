"""One column learned by the rivals: PrivTree, and quantiles by noisy bisection.

Both get the whole budget of a column and public bounds. Neither needs a mechanism: the result is a distribution
on the line, from which values are drawn. Noise is floating, so nothing here may be released.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bounds:
    """Public bounds of a column: [low, high), and whether its values are whole.

    Args:
        low, high: The bounds.
        whole: Whether values are whole numbers.
    """

    low: float
    high: float
    whole: bool

    @staticmethod
    def wide(values: Floats, *, whole: bool) -> Bounds:
        """Return bounds at the least power of ten that all values lie within, and zero if none is negative.

        They are read off the rows, which favors who gets them.
        """
        power = 10.0 ** np.ceil(np.log10(max(float(np.abs(values).max()), 1e-6)))
        return Bounds(-power if values.min() < 0 else 0.0, power + whole, whole)

    def clipped(self, values: Floats) -> Floats:
        """Return values with those beyond the bounds moved to the nearest one."""
        top = self.high - 1 if self.whole else np.nextafter(self.high, self.low)
        return np.clip(values, self.low, top)


@dataclass(frozen=True)
class Pieces:
    """A distribution that is even within each piece of a line.

    Args:
        starts, stops: The ends of each piece.
        masses: Not negative.
        whole: Whether values are whole numbers; a piece then holds those from its start to below its stop.
    """

    starts: Floats
    stops: Floats
    masses: Floats
    whole: bool

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Return n values."""
        piece = rng.choice(len(self.masses), n, p=self.masses / self.masses.sum())
        start, stop = self.starts[piece], self.stops[piece]
        values = start + rng.random(n) * (stop - start)
        return np.floor(values) if self.whole else values


def privtree(values: Floats, bounds: Bounds, rho: float, rng: np.random.Generator) -> Pieces:
    """Return PrivTree's leaves with noisy counts; half of the budget is for each (zCDP).

    The threshold is 0, nodes are halved, and epsilon is the largest whose square is twice the budget of the
    structure. Counts are the nearest that are not negative and have the sum of the noisy ones.

    References:
        Zhang, Xiao, Xie (2016), PrivTree: a differentially private algorithm for hierarchical decompositions.
    """
    ordered, epsilon = np.sort(values), sqrt(rho)
    scale, max_depth = 3 / epsilon, 60
    decay = scale * log(2)
    leaves, nodes = [], [(bounds.low, bounds.high, 0)]
    while nodes:
        low, high, depth = nodes.pop()
        count = float(np.subtract(*np.searchsorted(ordered, (high, low))))
        middle = np.ceil((low + high) / 2) if bounds.whole else (low + high) / 2
        biased = max(count - depth * decay, -decay)
        divides = low < middle < high and depth < max_depth
        if divides and biased + rng.laplace(0, scale) > 0:
            nodes += [(low, middle, depth + 1), (middle, high, depth + 1)]
        else:
            leaves.append((low, high, count))
    starts, stops, counts = np.array(sorted(leaves)).T
    noisy = counts + rng.normal(0, 1 / sqrt(rho), len(counts))
    return Pieces(starts, stops, projected(noisy, max(float(noisy.sum()), 1.0)), bounds.whole)


def bisection(values: Floats, bounds: Bounds, rho: float, rng: np.random.Generator) -> Pieces:
    """Return 32 parts of equal mass between noisy quantiles, each part halved by the exponential mechanism.

    Epsilon doubles from level to level. Ties are broken: a value is spread over its whole number, or over one of
    65,536 equal cells.

    References:
        Kaplan, Schnapp, Stemmer (2022), Differentially private approximate quantiles.
    """
    levels, cells = 5, 65_536
    width = 1.0 if bounds.whole else (bounds.high - bounds.low) / cells
    spread = (
        bounds.low + (np.floor((values - bounds.low) / width) + rng.random(len(values))) * width
    )
    ordered = np.sort(np.clip(spread, bounds.low, bounds.high))
    weights = 4.0 ** np.arange(levels)
    edges = np.array([bounds.low, bounds.high])
    for share in weights / weights.sum():
        epsilon = sqrt(8 * rho * share)
        middles = [_halved(ordered, *ends, epsilon, rng) for ends in pairwise(edges)]
        edges = np.sort(np.concatenate([edges, middles]))
    return Pieces(edges[:-1], edges[1:], np.ones(len(edges) - 1), bounds.whole)


def _halved(
    ordered: Floats, low: float, high: float, epsilon: float, rng: np.random.Generator
) -> float:
    """Return a noisy median of the values between two ends; a row more or less moves its utility by a half."""
    first, last = np.searchsorted(ordered, (low, high))
    points = np.concatenate([[low], ordered[first:last], [high]])
    ranks = np.arange(len(points) - 1)
    with np.errstate(divide="ignore"):
        score = np.log(np.diff(points)) - epsilon * np.abs(ranks - (last - first) / 2)
    at = int(np.argmax(score + rng.gumbel(size=len(score))))
    return float(rng.uniform(points[at], points[at + 1]))


def projected(counts: Floats, total: float) -> Floats:
    """Return the nearest counts that are not negative and have a sum.

    >>> projected(np.array([5.0, 3.0, -2.0]), 6.0).tolist()
    [4.0, 2.0, 0.0]
    """
    ordered = -np.sort(-counts)
    shifts = (np.cumsum(ordered) - total) / np.arange(1, len(counts) + 1)
    active = max(int((ordered > shifts).sum()), 1)
    return np.asarray(np.maximum(counts - shifts[active - 1], 0.0))
