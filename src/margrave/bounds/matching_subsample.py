"""The price of privacy in rows: how many, drawn from a table without privacy, would be as far from it as a release."""

from __future__ import annotations

import math

import numpy as np

from margrave.types import AnyArray, FloatArray, IntArray

_log_gamma = np.frompyfunc(math.lgamma, 1, 1)


class Subsampling:
    """The workload error of k rows drawn from a table with replacement, in expectation, as a function of k.

    For one cell of share p it is, with s = floor(k p) + 1 (De Moivre's mean absolute deviation of a binomial),

        E|X/k − p| = (2/k) · s · Binom(k, s) · p^s · (1 − p)^(k−s+1)

    A cell adds its share's error times the weight of its marginal, and cells of equal counts are taken together.

    **Privacy:** as private as the counts it is made of: not at all where they are real ones.
    Source: McKenna, Mullins, Sheldon, Miklau 2022 (AIM), Appendix C.

    >>> coin = Subsampling(4)
    >>> coin.add(np.array([2, 2]), weight=1.0)
    >>> round(coin.error(1), 9), round(coin.error(2), 9)  # one draw is off by a half in both cells, two half the time
    (1.0, 0.5)
    >>> coin.matching(0.5)
    2
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._weights: dict[int, float] = {}

    def add(self, counts: IntArray, weight: float) -> None:
        """Add one marginal of the workload with its share of the workload's weight."""
        values, cells = np.unique(counts[counts > 0], return_counts=True)
        for count, number in zip(values.tolist(), cells.tolist(), strict=True):
            self._weights[count] = self._weights.get(count, 0.0) + weight * number

    def error(self, k: int) -> float:
        """Return the expected workload error of k rows (0 to 2, for weights that sum to 1)."""
        counts = np.array(list(self._weights), dtype=np.float64)
        weights = np.array(list(self._weights.values()))
        return float(weights @ mean_deviation(k, counts / self.rows)) if counts.size else 0.0

    def matching(self, error: float) -> int | None:
        """Return the least k whose expected error is at most this; None if no number of rows has so
        little.

        Logarithms of factorials are rounded: expected errors have nine digits up to a million rows, six at 10^8.
        More rows are never worse: the share in k rows is the mean of the shares in all their subsets of k − 1.
        """
        # Rows at which the search ends: more than any table has.
        max_subsample_rows = 1 << 40
        error *= 1.0 + 1e-9  # logarithms of factorials are rounded
        if not self._weights or self.error(max_subsample_rows) > error:
            return None
        low, high = 0, 1
        while self.error(high) > error:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.error(middle) > error else (low, middle)
        return high


def mean_deviation(k: int, shares: FloatArray) -> FloatArray:
    """Return E|X/k − p| for X binomial with k draws, for every share p.

    >>> mean_deviation(2, np.array([0.5, 1.0])).round(9).tolist()
    [0.25, 0.0]
    """
    deviation = np.zeros(shares.shape)
    some = (shares > 0) & (shares < 1)
    p = shares[some]
    s = np.floor(k * p) + 1.0
    log_choose = _log_factorial(np.float64(k)) - _log_factorial(s) - _log_factorial(k - s)
    log_mass = log_choose + s * np.log(p) + (k - s + 1.0) * np.log1p(-p)
    deviation[some] = 2.0 / k * s * np.exp(log_mass)
    return deviation


def _log_factorial(n: AnyArray | np.float64) -> FloatArray:
    return np.asarray(_log_gamma(n + 1.0), dtype=np.float64)
