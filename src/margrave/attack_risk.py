"""The risk that a budget leaves: how well an attacker can decide whether one unit is among the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from margrave.types import FloatArray


@dataclass(frozen=True)
class AttackRisk:
    """Bounds for every attack that decides which of two neighboring tables a release came from.

    The attacker may know everything else: all other rows, and the code that made the release.

    Args:
        advantage: True-positive rate minus false-positive rate, at most, from 0 to 1.
        power: True-positive rate at the false-positive rate ``at``, at most.
        at: The false-positive rate.
    """

    advantage: float
    power: float
    at: float = 0.01

    def sentence(self) -> str:
        """Return the risk in a sentence."""
        if self.power > 0.995:
            return "A budget this large does not stop an attacker from always being right about the two tables."
        return (
            "An attacker who knows everything except which of the two tables was used, and who wrongly accuses in"
            f" {100 * self.at:g} of 100 cases, is right in at most {hundredths(self.power)} of 100. The advantage over"
            " guessing, which is the share of right accusations less that of wrong ones, is at most"
            f" {hundredths(self.advantage)} points of 100."
        )

    def to_dict(self) -> dict[str, float]:
        """Return plain data that fits in JSON."""
        return {"advantage": self.advantage, "power": self.power, "at": self.at}


@lru_cache(maxsize=64)
def attack_risk(rho: Fraction, *, at: float = 0.01, threshold_delta: float = 0.0) -> AttackRisk:
    """Return the risk that a budget leaves.

    rho-zCDP implies (e, d(e))-differential privacy for every e. Each pair bounds the true-positive
    rate b at the false-positive rate a: ``b <= exp(e) a + d`` and ``1 - a <= exp(e) (1 - b) + d``.
    Every pair is true, so the smallest bound over a grid of e is.

    Args:
        rho: The budget (zCDP).
        at: The false-positive rate, from 0 to 1.
        threshold_delta: The part of delta that thresholds spend. It adds to every d(e).

    Privacy:
        None spent. A function of the budget.

    References:
        Kairouz, Oh, Viswanath (2015), The composition theorem for differential privacy, Section 2.

    >>> risk = attack_risk(Fraction(15, 1000))
    >>> round(risk.advantage, 3), round(risk.power, 3)
    (0.102, 0.017)
    """
    loss = float(rho)
    # far beyond the mean loss, in steps finer than its deviation
    e = np.linspace(0.0, min(loss + 12.0 * math.sqrt(2.0 * loss), 600.0), 2001)
    d = np.minimum(_deltas(loss, e) + threshold_delta, 1.0)
    power = np.minimum(np.exp(e) * at + d, 1.0 - np.exp(-e) * np.maximum(1.0 - at - d, 0.0))
    advantage = (np.expm1(e) + 2.0 * d) / (np.exp(e) + 1.0)
    return AttackRisk(_rounded_up(advantage.min()), _rounded_up(max(power.min(), at)), at)


def _deltas(rho: float, epsilons: FloatArray) -> FloatArray:
    """Return a delta for each epsilon: ``Budget``'s conversion at the best order of a grid."""
    t = np.exp(np.linspace(-8.0, 8.0, 801))[:, None]
    logs = t * ((1 + t) * rho - epsilons) - t * np.log1p(1 / t) - np.log1p(t)
    return np.asarray(np.exp(np.minimum(logs.min(axis=0), 0.0)))


def hundredths(bound: float) -> str:
    """Return an upper bound on a share in hundredths, rounded up to a tenth.

    >>> hundredths(0.10163), hundredths(0.017), hundredths(1.0)
    ('10.2', '1.7', '100.0')
    """
    return f"{math.ceil(round(1000 * bound, 6)) / 10:.1f}"


def _rounded_up(value: float) -> float:
    return min(1.0, math.ceil(value * 1e6) / 1e6)
