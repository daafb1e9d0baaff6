"""The zCDP that (epsilon, delta) allow, for contenders whose interface asks for rho."""

from __future__ import annotations

from math import exp, inf, log, log1p


def delta_of(rho: float, epsilon: float) -> float:
    """The least delta for which rho-zCDP implies (epsilon, delta)-DP (Canonne, Kamath, Steinke 2020, Corollary 13).

    min over alpha > 1 of exp((alpha - 1)(alpha rho - epsilon) + alpha log(1 - 1/alpha)) / (alpha - 1). The derivative
    of the logarithm in alpha, (2 alpha - 1) rho - epsilon + log(1 - 1/alpha), increases, so its root is bisected.
    """
    low, high = 1.0 + 1e-12, (epsilon + 1.0) / (2.0 * rho) + 2.0
    for _ in range(200):
        alpha = (low + high) / 2.0
        if (2.0 * alpha - 1.0) * rho - epsilon + log1p(-1.0 / alpha) < 0.0:
            low = alpha
        else:
            high = alpha
    exponent = (high - 1.0) * (high * rho - epsilon) + high * log1p(-1.0 / high) - log(high - 1.0)
    return min(1.0, exp(exponent)) if exponent < 700.0 else inf


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho, to relative 1e-12 and from below, with delta_of(rho, epsilon) <= delta."""
    low, high = 0.0, epsilon + 1.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2.0
        if delta_of(middle, epsilon) <= delta:
            low = middle
        else:
            high = middle
    return low
