"""Shares of a budget, and the one that the number of records costs where it is private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from margrave.accounting import Unit, size_is_public
from margrave.domain import Domain
from margrave.marginal import TOTAL
from margrave.mechanisms.common import PlannedMeasurement
from margrave.privacy import Gaussian, Private
from margrave.types import Clique

#: The share of the budget that the number of records costs, if it is private and no marginal
#: answers it.
TOTAL_BUDGET_SHARE = Fraction(1, 50)


def split(rho: Fraction, weights: Sequence[float]) -> list[Fraction]:
    """Return shares of rho in proportion to the weights. They sum to rho exactly."""
    scale = 2.0**40 / max(weights)
    parts = [max(1, round(w * scale)) for w in weights]
    total = sum(parts)
    return [rho * Fraction(p, total) for p in parts]


def measure_shares(private: Private, weights: Mapping[Clique, float], rho: Fraction) -> None:
    """Measure each marginal with its share of rho, in proportion to the weights.

    **Privacy:** rho, to the last fraction.
    """
    for r, share in zip(weights, split(rho, [*weights.values()]), strict=True):
        private.measure([r], Gaussian(rho=share))


def after_total(rho: Fraction, unit: Unit) -> Fraction:
    """Return what the number of records leaves of a budget."""
    return rho if size_is_public(unit) else rho * (1 - TOTAL_BUDGET_SHARE)


def total_steps(domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
    """Return the measurement of the number of records; none if it is public."""
    if size_is_public(unit):
        return []
    scale = Gaussian.scale_for(rho * TOTAL_BUDGET_SHARE, unit, TOTAL)
    counted = [TOTAL.counting_clique(domain)]
    return [PlannedMeasurement("the number of records", counted, 1, scale, single=True)]


def measure_total(private: Private) -> float:
    """Measure the number of records if it is private, and return it.

    **Privacy:** ``TOTAL_BUDGET_SHARE`` of the whole budget, or nothing.
    """
    if not size_is_public(private.unit):
        private.measure_queries([TOTAL], Gaussian(rho=private.rho * TOTAL_BUDGET_SHARE))
    return private.transcript.total()
