"""Combining rules for m analyses of m data sets, each from its own draw of the posterior.

Each data set holds ``rows`` records of a population drawn from the posterior given the noisy
answers, which is that of ``total`` real records. Data set i gives an estimate q_i and variance v_i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from margrave.errors import InputError
from margrave.inference.columns import first_names
from margrave.inference.estimate import MARK, Estimate
from margrave.ratios import figure
from margrave.types import FloatArray


def combine(
    estimates: Sequence[float] | FloatArray,
    variances: Sequence[float] | FloatArray,
    *,
    rows: float | None = None,
    total: float | None = None,
    name: str = "estimate",
    data_sets: int | None = None,
    center: float | None = None,
    bias_correct: bool = True,
    floor: bool = True,
    runs: bool = False,
) -> Estimate:
    """Return the estimate of a scalar from m fully synthetic data sets.

    With q̄ = mean q_i, v̄ = mean v_i, b = Σ (q_i − q̄)² / (m − 1), ratio = rows / total::

        T  = (1 + 1/m) b − v̄        b holds the posterior's variance and, once too often, a data set's own
        T  = floor v̄                where that is larger, with floor = ratio + (1 + ratio) / m
        df = (m − 1) min(1, T / ((1 + 1/m) b))², and at least 1

    Raghunathan, Reiter and Rubin put no bound on T; Reiter's correction for T < 0 is ``ratio v̄``.
    A noise-aware posterior is never narrower than that of the real records, ratio v̄, and the mean of m
    data sets adds (1 + ratio) v̄ / m. So every T below their sum is an underestimate by chance and is
    raised too. The floor also keeps df at (m − 1) (ratio / (1 + ratio))² or more, where without it an
    interval with T near 0 has a df near 0 and no end. Both only widen or steady the interval: in
    simulations its coverage is at least nominal for every m and ratio
    (``docs/research/intervals.md``). Without ``rows`` and ``total``
    there is no floor, and T < 0 leaves the interval unknown. As ``rows`` grows, v̄ vanishes.

    Args:
        estimates: q_i, shape (m,), m at least 2.
        variances: v_i, shape (m,), not negative.
        rows: Records of each data set.
        total: Real records.
        name: Name of the estimate.
        data_sets: Data sets drawn, if some of them are not used here.
        center: q̂, the mean estimate from as many tables of the distribution that was refitted
            (`Draws.released`). Then q̄ − q̂ is the bias of refitting, the estimate is 2 q̂ − q̄, and
            (q̄ − q̂)² is added to T: a correction may be off by as much as it corrects.
        bias_correct: False leaves the estimate q̄ and its T, and only records the bias.
        runs: The data sets are of independent runs, each around the real records, and not of draws of one posterior.
            Then T = b / m + ratio v̄ and df = (m − 1) (T / (b / m))²; ``rows`` and ``total`` are needed.
        floor: False is the published rule: T and df = (m − 1) (T / ((1 + 1/m) b))² have no bounds, and
            T < 0 leaves the interval unknown.

    Raises:
        InputError: There are fewer than two values, or one is not finite, or a variance negative.

    Privacy:
        None spent: data sets of a release are post-processing.

    Example:
        >>> found = combine([1.0, 2.0, 3.0], [0.1, 0.2, 0.3], rows=100, total=100)
        >>> found.estimate, round(found.variance, 4), round(found.df, 4)
        (2.0, 1.1333, 1.445)

    References:
        Raghunathan, Reiter, Rubin 2003; Reiter 2002 (the correction and df); Reiter 2003 (``runs``, his rule for
        partially synthetic data); Efron, Tibshirani 1993, Chapter 10 (the bias of refits).
    """
    # Degrees of freedom of the Cauchy distribution, whose intervals are wide enough for any m.
    min_df = 1.0
    q, v = np.asarray(estimates, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    if q.shape != v.shape or q.ndim != 1 or len(q) < 2:
        raise InputError(
            "Rules that combine data sets need estimates and variances from at least two.",
            remedy="Draw more.",
        )
    bias = 0.0 if center is None else float(q.mean()) - center
    if not (np.isfinite(q).all() and np.isfinite(v).all() and (v >= 0).all() and np.isfinite(bias)):
        raise InputError(
            "An estimate is not finite, or a variance is negative.", remedy="Leave it out."
        )
    m, ratio = len(q), ratio_of(rows, total)
    within, between = float(v.mean()), float(q.var(ddof=1))
    spread = (1.0 + 1.0 / m) * between
    variance, least = spread - within, floor_of(ratio, m) * within if floor else 0.0
    if runs:
        spread, least = between / m, 0.0
        variance = np.nan if ratio is None else spread + ratio * within
    floored = floor and variance < least
    unknown = variance <= 0 and (ratio is None or not floor)
    variance = max(np.nan if unknown else variance, least)
    share = variance / spread if spread > 0 else 1.0
    share = share if runs else min(share, 1.0)
    df = max((m - 1) * share**2, min_df) if floor else (m - 1) * share**2
    estimate = float(q.mean())
    if bias_correct and center is not None:
        estimate, variance = center - bias, variance + bias**2
    return Estimate(
        name, estimate, variance, df, within, between, m, data_sets or m, ratio, floored, bias, bias_correct
    )  # fmt: skip


@dataclass(frozen=True)
class WaldTest:
    """A test of several values at once.

    Attributes:
        names: The quantities tested.
        statistic: F distributed under the null, with ``df`` degrees of freedom.
        df: Degrees of freedom of numerator and denominator.
        pvalue: Probability of a larger statistic under the null.
        method: ``"full"`` or ``"proportional"``.
        marked: The quantities tested that are marked: the test is not reliable either.
        reasons: The notes that say why, of a test that is marked.
    """

    names: tuple[str, ...]
    statistic: float
    df: tuple[float, float]
    pvalue: float
    method: str
    marked: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def flagged(self) -> bool:
        """True if an estimate that is tested is marked."""
        return bool(self.marked)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        numbers = {"statistic": self.statistic, "df": list(self.df), "pvalue": self.pvalue}
        marks = {
            "flagged": self.flagged,
            "marked": list(self.marked),
            "reasons": list(self.reasons),
        }
        return {"names": list(self.names), **numbers, "method": self.method, **marks}

    def __str__(self) -> str:
        first, second = self.df
        text = (
            f"F({first:g}, {second:.1f}) = {figure(self.statistic)}, p = {figure(self.pvalue, 3)}"
        )
        if not self.marked:
            return text
        verb = "is" if len(self.marked) == 1 else "are"
        own = [reason for reason in self.reasons if not reason.startswith(MARK)]  # in no note
        return " ".join(
            [f"{text} {MARK} Not reliable: {first_names(self.marked)} {verb} not.", *own]
        )


def wald(
    estimates: FloatArray,
    covariances: FloatArray,
    null: FloatArray | float = 0.0,
    *,
    rows: float | None = None,
    total: float | None = None,
    method: str = "full",
    names: Sequence[str] = (),
    center: FloatArray | None = None,
    runs: bool = False,
) -> WaldTest:
    """Test that k quantities have the values ``null``.

    With B and V̄ the matrices of b and v̄, and A = (1 + 1/m) B:

    ``"full"``: the covariance T = A − V̄ as it is, no direction of it below the floor of `combine` times V̄. With
    d = q̄ − null and G = T^(−1/2) A T^(−1/2)::

        W  = dᵀ T⁻¹ d,    ν = (m − 1) (k + k²) / (tr(G²) + tr(G)²),   k ≤ ν ≤ m − 1
        F  = W (ν − k + 1) / (k ν)  ~  F(k, ν − k + 1)

    ν matches the total variance of T to that of a Wishart matrix; for k = 1 it is the df of `combine`.

    ``"proportional"``: Reiter's test. It takes B and V̄ to be proportional, so that one number is estimated instead
    of a matrix. With r = tr(A V̄⁻¹) / k and t = k (m − 1) > 4::

        F = dᵀ V̄⁻¹ d / (k (r − 1))  ~  F(k, w),    w = 4 + (t − 4) (1 − (1 − 2/t) / r)²

    with r − 1 at least that floor. w gives the mean and variance of (r t / χ²_t − 1) to a scaled w / χ²_w. Noise
    added for privacy is not proportional to V̄: in simulations at the level 0.05 this test rejects a true null in
    up to 0.15 of cases, ``"full"`` in no more than 0.05. It is for comparison, and for data sets without noise.

    Args:
        estimates: Shape (m, k).
        covariances: Shape (m, k, k).
        null: A number, or shape (k,).
        rows: Records of each data set.
        total: Real records.
        method: ``"full"`` or ``"proportional"``.
        names: The k names, for the result.
        center: q̂ as for `combine`, shape (k,): 2 q̂ − q̄ is tested in the place of q̄, and with
            c = q̄ − q̂ the matrix c cᵀ is added to T.
        runs: As for `combine`: A = B / m and T = A + ratio V̄, and ν has no upper bound. ``"full"`` alone.

    Raises:
        InputError: There are too few data sets, or the covariance is singular or not positive, or ``method`` or
            the row counts do not go with ``runs``.

    Privacy:
        None spent.

    References:
        Krishnamoorthy and Yu 2004 (who match sums of Wishart matrices so), applied to the covariance of
        Raghunathan, Reiter and Rubin 2003. Reiter 2005, in the manner of Li, Raghunathan and Rubin 1991.
    """
    q, v = np.asarray(estimates, dtype=np.float64), np.asarray(covariances, dtype=np.float64)
    m, k = _check_wald(q, v, method)
    ratio = ratio_of(rows, total)
    within = v.mean(axis=0)
    half = _inverse_root(within)
    mean = q.mean(axis=0)
    bias = np.zeros(k) if center is None else mean - center
    d, c = half @ (mean - 2.0 * bias - null), half @ bias
    spread, shift = _spread(q, half, ratio, runs)
    if method == "full":
        statistic, second = _full(d, c, spread, shift, m, ratio)
    elif not runs:
        statistic, second = _proportional(d, c, spread, m, ratio)
    else:
        raise InputError(
            "The proportional test is not for independent runs.", remedy="Use method='full'."
        )
    p = float(special.fdtrc(k, second, statistic))
    return WaldTest(tuple(names), statistic, (float(k), second), p, method)


def _length(d: FloatArray, c: FloatArray, variances: FloatArray) -> float:
    return float(
        (d * d / variances).sum()
        - (d * c / variances).sum() ** 2 / (1.0 + (c * c / variances).sum())
    )


def _spread(
    q: FloatArray, half: FloatArray, ratio: float | None, runs: bool
) -> tuple[FloatArray, float]:
    """Return A in units of V̄, and the multiple of V̄ that T has besides."""
    m, k = q.shape
    between = half @ np.cov(q, rowvar=False).reshape(k, k) @ half
    if not runs:
        return np.asarray((1.0 + 1.0 / m) * between), -1.0
    if ratio is None:
        raise InputError(
            "The rule of independent runs needs the numbers of records.",
            remedy="Give rows and total.",
        )
    return np.asarray(between / m), ratio


def _full(
    d: FloatArray, c: FloatArray, spread: FloatArray, shift: float, m: int, ratio: float | None
) -> tuple[float, float]:
    k, most = len(d), float(m - 1) if shift < 0 else 1e9
    values, vectors = np.linalg.eigh(spread + shift * np.eye(k))
    if ratio is None and values[0] <= 0:
        raise InputError(
            "The covariance of these estimates is not positive.",
            remedy="Name the number of real records, or draw more data sets.",
        )
    total = np.maximum(values, floor_of(ratio, m) if shift < 0 else 0.0)
    statistic = _length(vectors.T @ d, vectors.T @ c, total)
    g = vectors.T @ spread @ vectors / np.sqrt(np.outer(total, total))
    nu = (m - 1) * (k + k * k) / float(np.trace(g @ g) + np.trace(g) ** 2)
    nu = min(max(nu, float(k)), most)
    return statistic * (nu - k + 1) / (k * nu), nu - k + 1


def _proportional(
    d: FloatArray, c: FloatArray, spread: FloatArray, m: int, ratio: float | None
) -> tuple[float, float]:
    k, t = len(d), len(d) * (m - 1)
    r = max(float(np.trace(spread)) / k, 1.0 + floor_of(ratio, m))
    if r <= 1.0:
        raise InputError(
            "The variance of these estimates is not positive.",
            remedy="Name the number of real records, or draw more data sets.",
        )
    w = 4.0 + (t - 4.0) * (1.0 - (1.0 - 2.0 / t) / r) ** 2
    return _length(d, c, np.full(k, r - 1.0)) / k, w


def total_covariance(
    estimates: FloatArray,
    covariances: FloatArray,
    *,
    rows: float | None = None,
    total: float | None = None,
    center: FloatArray | None = None,
    runs: bool = False,
) -> FloatArray:
    """Return T = (1 + 1/m) B − V̄ (k × k), no direction of it below the floor of `combine` times V̄, plus c cᵀ.

    Args:
        estimates: Shape (m, k).
        covariances: Shape (m, k, k).
        rows: Records of each data set.
        total: Real records.
        center: q̂ as for `wald`, shape (k,); c = q̄ − q̂.
        runs: As for `combine`: T = B / m + ratio V̄.
    """
    q, within = np.asarray(estimates), np.asarray(covariances).mean(axis=0)
    k = q.shape[1]
    half = _inverse_root(within)
    spread, shift = _spread(q, half, ratio_of(rows, total), runs)
    values, vectors = np.linalg.eigh(spread + shift * np.eye(k))
    root = np.linalg.solve(half, vectors)
    bias = np.zeros(k) if center is None else q.mean(axis=0) - center
    floor = 0.0 if runs else floor_of(ratio_of(rows, total), len(q))
    return np.asarray(root * np.maximum(values, floor) @ root.T + np.outer(bias, bias))


def _check_wald(q: FloatArray, v: FloatArray, method: str) -> tuple[int, int]:
    if q.ndim != 2 or v.shape != (*q.shape, q.shape[-1]):
        raise InputError(
            f"Estimates of shape {q.shape} do not go with covariances of shape {v.shape}."
        )
    m, k = q.shape
    if method not in ("full", "proportional"):
        raise InputError(f"There is no test {method!r}.", remedy="Choose full or proportional.")
    if m <= k + 1 or k * (m - 1) <= 4:
        raise InputError(
            f"A test of {k} values together needs more than {m} data sets.",
            remedy=f"Draw at least {max(k + 2, 4 // k + 2)}, better 100.",
        )
    return m, k


def _inverse_root(within: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(within)
    if values[0] <= 1e-12 * max(values[-1], 0.0) or values[-1] <= 0:
        raise InputError(
            "The covariance of these estimates is singular.",
            remedy="Test fewer of them, none implied by others.",
        )
    return np.asarray(vectors / np.sqrt(values) @ vectors.T)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Pooled draws of the posteriors from all data sets.

    Attributes:
        names: The k quantities.
        draws: Shape (all draws, k).
        data_sets: Number of data sets.
    """

    names: tuple[str, ...]
    draws: FloatArray
    data_sets: int

    def interval(self, level: float = 0.95) -> FloatArray:
        """Return the central credible interval of every quantity, shape (k, 2)."""
        tail = (1.0 - level) / 2.0
        return np.asarray(np.quantile(self.draws, [tail, 1.0 - tail], axis=0).T)

    @property
    def mean(self) -> FloatArray:
        """The posterior mean of every quantity, shape (k,)."""
        return np.asarray(self.draws.mean(axis=0))


def mix(posteriors: Sequence[Any], names: Sequence[str] = ()) -> Mixture:
    """Pool the draws of the posteriors that a Bayesian analysis gave.

    The pooled draws estimate the posterior given the noisy answers, without any assumption of normality, *as the
    data sets grow*. With as many records as the real table has they are too wide, since each data set adds its own
    sampling and its own posterior's width. Draw data sets of some ten times as many records (``rows=``).

    Args:
        posteriors: One array (draws × k) for each data set, all of one shape.
        names: The k names; by default q1, q2, ...

    Privacy:
        None spent.

    References:
        Gelman et al. 2014, Section 18.2; consistency as the data sets grow: Räisä, Jälkö, Honkela 2023.
    """
    arrays = [np.asarray(p, dtype=np.float64) for p in posteriors]
    arrays = [a[:, None] if a.ndim == 1 else a for a in arrays]
    shapes = {a.shape for a in arrays}
    if len(arrays) < 2 or len(shapes) != 1 or arrays[0].ndim != 2 or not arrays[0].size:
        raise InputError(
            "Posteriors to mix are arrays (draws × quantities) of one shape, from at least two data sets.",
            remedy="Take as many draws from each.",
        )
    k = arrays[0].shape[1]
    names = tuple(names) or tuple(f"q{i + 1}" for i in range(k))
    if len(names) != k:
        raise InputError(f"{len(names)} names are given for {k} quantities.")
    return Mixture(names, np.concatenate(arrays), len(arrays))


def floor_of(ratio: float | None, m: int) -> float:
    """Return the least T of m data sets as a multiple of v̄; 0 if the ratio of records is unknown.

    >>> floor_of(1.0, 100), floor_of(None, 100)
    (1.02, 0.0)
    """
    return 0.0 if ratio is None else ratio + (1.0 + ratio) / m


def ratio_of(rows: float | None, total: float | None) -> float | None:
    """Return records of a data set over real records; None if either is unknown."""
    if rows is None or total is None:
        return None
    if rows <= 0 or total <= 0:
        raise InputError("The numbers of records are not positive.", remedy="Draw some records.")
    return float(rows) / float(total)
