"""Intervals of means, totals and quantiles of one column, by the unbiased counts of its codes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from margrave.bounds import tail_bounds
from margrave.bounds.gls import GLSEstimate
from margrave.bounds.weighted_sums import WeightedSums
from margrave.types import FloatArray


@dataclass(frozen=True)
class Interval:
    """An estimate between two ends; the estimate is None if the counts do not determine it."""

    estimate: float | None
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """The estimated count of every code of a column, with intervals of statistics of these counts.

    Args:
        estimate: The least squares estimate of a marginal of one column.
        level: Probability with which each interval holds.
        sums: Weighted sums that were measured beside the counts; totals and means come from both.
    """

    estimate: GLSEstimate
    level: float
    sums: WeightedSums | None = None

    @property
    def counts(self) -> FloatArray:
        """The count of every code; unbiased, and possibly negative."""
        return self.estimate.values

    @cached_property
    def deviations(self) -> float:
        """Half-width of an interval in standard deviations of a linear statistic."""
        scale, cells = self.estimate.least_scale, self.estimate.noisy_cells
        if self.sums is not None:
            scale, cells = min(scale, self.sums.least_scale), cells + self.sums.noisy_cells
        return tail_bounds.cell_tail(1.0, scale, cells, 1.0 - self.level)

    def sum_of(self, weights: FloatArray) -> float:
        """Return the estimate of a weighted sum of the counts, one weight per code."""
        by_counts = float(weights @ self.counts)
        return by_counts if self.sums is None else by_counts + self.sums.correction(weights)

    def covariance(self, first: FloatArray, second: FloatArray) -> float:
        """Return the covariance of the estimates of two weighted sums of the counts."""
        by_counts = self.estimate.covariance(first, second)
        return by_counts if self.sums is None else by_counts - self.sums.removed(first, second)

    def total(self, weights: FloatArray) -> Interval:
        """Return the interval of a weighted sum of the counts, one weight per code."""
        middle = self.sum_of(weights)
        half = self.deviations * max(0.0, self.covariance(weights, weights)) ** 0.5
        return Interval(middle, middle - half, middle + half)

    def mean(self, values: FloatArray, among: FloatArray) -> Interval:
        """Return the interval of the mean of a value of each code over some of the records.

        For the true mean μ, the sum of (value − μ) × count over these records is 0. So its estimate
        is noise alone, and the interval has every μ for which it is not larger than noise can be.

        Args:
            values: The value of every code.
            among: 1 for every code whose records count, 0 for the others.

        References:
            Fieller (1954), Some problems in interval estimation.
        """
        covariance, squared = self.covariance, self.deviations**2
        weighted = values * among
        least, greatest = float(values[among > 0].min()), float(values[among > 0].max())
        total, size = self.sum_of(weighted), self.sum_of(among)
        a = size**2 - squared * covariance(among, among)
        b = total * size - squared * covariance(weighted, among)
        c = total**2 - squared * covariance(weighted, weighted)
        if size <= 0 or a <= 0:
            return Interval(None, least, greatest)
        root = max(0.0, b**2 - a * c) ** 0.5
        ends = np.clip([total / size, (b - root) / a, (b + root) / a], least, greatest)
        return Interval(*(float(end) for end in ends))

    def shares(self) -> list[Interval]:
        """Return the interval of every code's share of all records: ``mean`` of a 0/1 variable.

        A negative count has the interval of a count of zero, which is wider once both are cut at zero: of a short
        interval beside zero, a count far below it would be the only reason.
        """
        squared, size = self.deviations**2, float(self.counts.sum())
        constant = self.estimate.eigenvalues[()]
        a = size**2 - squared * constant * self.counts.size
        if size <= 0 or a <= 0:
            return [Interval(None, 0.0, 1.0)] * self.counts.size
        counts = np.maximum(self.counts, 0.0)
        b = counts * size - squared * constant
        c = counts**2 - squared * self.estimate.spread**2
        root = np.sqrt(np.maximum(0.0, b**2 - a * c))
        ends = np.clip([counts / size, (b - root) / a, (b + root) / a], 0.0, 1.0)
        return [Interval(*(float(end) for end in three)) for three in ends.T]

    def quantile_codes(self, q: float, codes: int) -> tuple[int, int]:
        """Return the first and the last code in which a quantile can lie.

        The quantile lies in the first code up to which there are q of the records. The number of
        records up to a code, less q times all, is a weighted sum of the counts.

        Args:
            q: The share of the records below, between 0 and 1.
            codes: Number of codes that are ordered; the missing state is not among them.
        """
        up_to = np.arange(1, codes + 1)
        excess = np.cumsum(self.counts[:codes]) - q * self.counts[:codes].sum()
        weights, size = up_to - q * codes, self.counts.size
        squares = up_to * (1 - q) ** 2 + (codes - up_to) * q**2
        total, contrast = (self.estimate.eigenvalues[r] for r in ((), self.estimate.clique))
        variance = total * weights**2 / size + contrast * np.maximum(squares - weights**2 / size, 0)
        half = self.deviations * np.sqrt(variance)
        first = int((excess + half >= 0).argmax())
        beneath = np.flatnonzero(excess - half <= 0)
        last = int(beneath[-1]) + 1 if len(beneath) else 0
        return first, max(first, min(last, codes - 1))


def quantile_place(counts: FloatArray, q: float) -> tuple[int, float]:
    """Return the code of a quantile, and the fraction of the code's records below it.

    Args:
        counts: The counts of ordered codes. Noise may make some negative; the number of records up
            to a code is made to grow from code to code.
        q: The share of the records below, between 0 and 1.
    """
    excess = np.cumsum(counts) - q * counts.sum()
    rising = (np.maximum.accumulate(excess) + np.minimum.accumulate(excess[::-1])[::-1]) / 2
    code = int((rising >= 0).argmax())
    before = float(rising[code - 1]) if code else min(-q * float(counts.sum()), 0.0)
    step = float(rising[code]) - before
    return code, float(np.clip(-before / step, 0.0, 1.0)) if step > 0 else 1.0
