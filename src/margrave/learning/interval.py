"""Steps 6 and 7: the mean with an interval, from the tree and from a clipped sum."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from margrave.learning.tree import CountTree
from margrave.schema.column_queries import ClippedSum
from margrave.transcript import ColumnAnswer
from margrave.types import FloatArray


@dataclass(frozen=True)
class LearnedMean:
    """An estimated mean of the values that are not missing.

    Args:
        estimate: The mean.
        variance: Of noise and of its bias.
        cut: What a zoom may have cut off the mean, on either side.
        below, above: What values hidden beyond the range may add to either end of an interval.
        sd: The estimated standard deviation of the values.
        rows: The estimated number of values.
    """

    estimate: float
    variance: float
    cut: float
    below: float
    above: float
    sd: float
    rows: float

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of a 95 % interval."""
        half = self._half
        return self.estimate - half - self.below, self.estimate + half + self.above

    @property
    def _half(self) -> float:
        return 1.96 * math.sqrt(self.variance) + self.cut

    @property
    def tolerance(self) -> float:
        """The largest half-width of a reliable mean: 5 % of it, or 0.05 standard deviations.

        5 % means nothing of values far from zero with a small spread.
        """
        if abs(self.estimate) > 3 * self.sd:
            return 0.05 * self.sd
        return max(0.05 * abs(self.estimate), 0.05 * self.sd)

    @property
    def wants_sum(self) -> bool:
        """True if the noise of the tree, or a zoom, leaves too much for a reliable mean."""
        return self._half > 0.8 * self.tolerance

    def with_sum(self, answer: ColumnAnswer) -> LearnedMean:
        """Return the mean combined with a clipped sum by inverse variance."""
        query = answer.query
        assert isinstance(query, ClippedSum)
        each = query.step / self.rows
        other, spread = query.center + float(answer.values[0]) * each, (answer.scale * each) ** 2
        weight = spread / (spread + self.variance + self.cut**2)
        estimate = weight * self.estimate + (1 - weight) * other
        variance = weight**2 * self.variance + (1 - weight) ** 2 * spread
        return replace(self, estimate=estimate, variance=variance, cut=weight * self.cut)


def mean_of(
    tree: CountTree, masses: FloatArray, sigmas: list[float], hidden: float, cut: float
) -> LearnedMean:
    """Return the mean of a tree's estimate, with the spread of trees drawn from it.

    Args:
        tree, masses: The tree and its estimated counts.
        sigmas: The noise scale of each level.
        hidden: Values that may lie beyond the range, times how far beyond, in distances of its end from zero.
        cut: What a zoom may have cut off the mean, on either side.
    """
    # trees drawn again, and the factor on their deviation that makes intervals hold
    draws, inflation = 12, 1.6
    points, rows = tree.line.means(tree.edges), max(float(masses.sum()), 1.0)
    estimate = float((masses * points).sum()) / rows
    second = ((points - estimate) ** 2 + tree.line.variances(tree.edges)) * masses
    rng = np.random.default_rng([len(masses), len(sigmas)])
    errors = []
    for _ in range(draws):
        noisy = [
            np.add.reduceat(masses, level[:-1]) + sigma * rng.standard_normal(len(level) - 1)
            for level, sigma in zip(tree.levels, sigmas, strict=True)
        ]
        drawn = tree.estimate(noisy, sigmas)
        errors.append(float((drawn * points).sum()) / max(float(drawn.sum()), 1.0) - estimate)
    variance = inflation**2 * (float(np.var(errors)) + float(np.mean(errors)) ** 2)
    low, high = (float(p) for p in tree.line.points(tree.edges[[0, -1]]))
    reach = high - low
    return LearnedMean(
        estimate,
        variance,
        cut,
        below=hidden * max(min(-low, reach), 0.0) / rows,
        above=hidden * max(min(high, reach), 0.0) / rows,
        sd=math.sqrt(float(second.sum()) / rows),
        rows=rows,
    )
