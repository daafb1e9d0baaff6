"""Tail bounds of discrete Gaussian noise, with a failure probability fixed beforehand.

Two facts about discrete Gaussian noise X of scale σ are used. It is sub-Gaussian of that scale: E
exp(tX) ≤ exp(t²σ²/2) (Canonne, Kamath, Steinke 2020). With a little continuous noise added it is
almost Gaussian: for U ~ N(0, η²) and s² = σ²η² / (σ² + η²), the density of X + U is at most 1 + 2θ
times that of N(0, σ² + η²), where θ = Σ_{k≥1} exp(−2π²k²s²) (complete the square, and use Poisson's
summation formula). Here s² is chosen so that over all noisy cells together the factor is at most
exp(SLACK); every scale then grows by at most κ = 1 / sqrt(1 − s²/σ²), 0.2 % at σ = 20.
"""

from __future__ import annotations

import math
from statistics import NormalDist

#: Log of the factor by which probabilities grow between Gaussian noise and discrete noise: 1 %.
SLACK = 0.0101

#: E|Z| of a standard normal.
MEAN_ABS = math.sqrt(2.0 / math.pi)

_NORMAL = NormalDist()


def inflation(scale: float, noisy_cells: int) -> float | None:
    """Return κ, the growth of scales if discrete noise stands for Gaussian; None if the scale is
    too small.

    ``scale`` is the least of all, ``noisy_cells`` the number of noisy cells in the statistic. With
    s² = log(200 cells) / 2π², θ < 1.001 / (200 cells), and (1 + 2θ)^cells < exp(SLACK).
    """
    width = math.log(200.0 * noisy_cells) / (2.0 * math.pi**2)
    return None if scale**2 <= 2.0 * width else 1.0 / math.sqrt(1.0 - width / scale**2)


def l1_tail(
    cells: int, spread: float, widest: float, least_scale: float, noisy_cells: int, miss: float
) -> float:
    """Return t with P(‖e‖₁ > t) ≤ miss, for a linear function e of the noise.

    ``spread`` is the standard deviation of each cell of e, ``widest²`` the largest eigenvalue of
    its covariance. The smaller of two bounds:

        sqrt(2 cells (cells log 2 + log(1/miss))) · widest                              all sign vectors, sub-Gaussian
        κ (sqrt(2/π) · spread · cells + sqrt(2 cells (log(1/miss) + SLACK)) · widest)   concentration around the mean

    The second is Gaussian concentration (‖·‖₁ is sqrt(cells)-Lipschitz) carried over to discrete
    noise X: by convexity E exp(u‖AX‖₁) ≤ E exp(u‖A(X+U)‖₁) ≤ exp(SLACK) · E exp(u‖AG‖₁).
    """
    surprise = math.log(1.0 / miss)
    signs = math.sqrt(2.0 * cells * (cells * math.log(2.0) + surprise)) * widest
    grown = inflation(least_scale, noisy_cells)
    if grown is None:
        return signs
    mean = MEAN_ABS * spread * cells
    return min(signs, grown * (mean + math.sqrt(2.0 * cells * (surprise + SLACK)) * widest))


def paper_l1_tail(cells: int, scale: float, miss: float) -> float:
    """Return AIM's Theorem 2: sqrt(2 log 2) · scale · cells + λ · scale · sqrt(2 cells), λ =
    sqrt(log(1/miss)).
    """
    return scale * (
        math.sqrt(2.0 * math.log(2.0)) * cells + math.sqrt(2.0 * cells * math.log(1.0 / miss))
    )


def cell_tail(spread: float, least_scale: float, noisy_cells: int, miss: float) -> float:
    """Return t with P(|e| > t) ≤ miss, for one linear function e of the noise with standard
    deviation ``spread``.

    The smaller of the sub-Gaussian sqrt(2 log(2/miss)) · spread and (κ z + 2 sqrt(κ² − 1)) ·
    spread. The second adds U and allows it two standard deviations to one side, which hold with
    probability Φ(2). So z is the normal quantile with miss · Φ(2) / (2 exp(SLACK)) above it.
    """
    rough = math.sqrt(2.0 * math.log(2.0 / miss))
    grown = inflation(least_scale, noisy_cells)
    if grown is None:
        return rough * spread
    z = -_NORMAL.inv_cdf(miss * _NORMAL.cdf(2.0) / (2.0 * math.exp(SLACK)))
    return min(rough, grown * z + 2.0 * math.sqrt(grown**2 - 1.0)) * spread


def paper_l1_beneath(observed: float, scale: float, cells: int, miss: float) -> float:
    """Return an upper bound of ‖x‖₁ with probability 1 − miss from ‖x + noise‖₁: observed + λ ·
    scale · sqrt(cells).

    λ = sqrt(2 log(1/miss)). It holds for any sub-Gaussian noise, as |x + X| ≥ sign(x) (x + X).
    Source: the proof of AIM's Theorem 4.
    """
    return observed + math.sqrt(2.0 * cells * math.log(1.0 / miss)) * scale


def l1_beneath(observed: float, scale: float, cells: int, miss: float) -> float:
    """Return the bound of ``paper_l1_beneath`` less the noise's own share of the observed norm.

    ‖x + G‖₁ has the mean Σ h(x_i), h(u) = E|u + N(0, scale²)|, and stays above it less λ · scale ·
    sqrt(cells). As the inverse of h is concave, ‖x‖₁ ≤ cells · h⁻¹(T / cells), where T is the
    observed norm plus that allowance. For discrete noise G = X + U, and ‖U‖₁, at most its mean and
    2 η sqrt(cells) with probability 1 − e⁻², is allowed for too. The paper's form is used if it is
    smaller, or the scale too small for this one. Both fail if less than some number is observed, so
    the smaller one fails no more often than the likelier of the two.
    """
    grown, papers = inflation(scale, cells), paper_l1_beneath(observed, scale, cells, miss)
    if grown is None:
        return papers
    added = scale * math.sqrt(grown**2 - 1.0)
    scale *= grown
    surprise = math.log(1.0 / miss) + SLACK - math.log1p(-math.exp(-2.0))
    allowance = math.sqrt(2.0 * cells * surprise) * scale
    allowance += added * (MEAN_ABS * cells + 2.0 * math.sqrt(cells))
    return min(papers, cells * scale * _inverse_folded((observed + allowance) / (cells * scale)))


def _folded(u: float) -> float:
    return u * math.erf(u / math.sqrt(2.0)) + MEAN_ABS * math.exp(-u * u / 2.0)


def _inverse_folded(mean: float) -> float:
    if mean <= MEAN_ABS:
        return 0.0
    low, high = 0.0, mean  # E|u + Z| ≥ u
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _folded(middle) < mean else (low, middle)
    return high


def choice_gap(candidates: int, epsilon: float, sensitivity: float, miss: float) -> float:
    """Return by how much the exponential mechanism's selection may score below the best, with
    probability 1 − miss.

    With probability weights exp(a q), a = epsilon / (2 sensitivity), the candidates that score at
    least c below the best are selected with probability at most k e^{−ac} / (1 + k e^{−ac}), k =
    candidates − 1.
    """
    if candidates < 2:
        return 0.0
    odds = (candidates - 1) * (1.0 - miss) / miss
    return max(0.0, 2.0 * sensitivity / epsilon * math.log(odds))


def paper_choice_gap(candidates: int, epsilon: float, sensitivity: float, miss: float) -> float:
    """Return (2 sensitivity / epsilon) (log(candidates) + log(1/miss)), as in AIM's Theorem 4."""
    return 2.0 * sensitivity / epsilon * (math.log(candidates) + math.log(1.0 / miss))
