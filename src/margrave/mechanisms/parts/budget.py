"""Shares of a budget, and the one that the number of records costs where it is private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from margrave.accounting import Unit, size_is_public
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import TOTAL
from margrave.mechanisms.common import PlannedMeasurement, one_way
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


def measure_shares(
    private: Private, weights: Mapping[Clique, float], rho: Fraction, *, least: Fraction | int = 0
) -> None:
    """Measure each marginal with its share of rho, in proportion to the weights.

    Weights count as ``least`` times their mean at least.

    **Privacy:** rho, to the last fraction.
    """
    floor = float(least) * float(np.mean([*weights.values()]))
    shares = split(rho, [max(w, floor) for w in weights.values()])
    for r, share in zip(weights, shares, strict=True):
        private.measure([r], Gaussian(rho=share))


def check_shares(**shares: Fraction) -> None:
    """Raise `InputError` if shares of a budget, by their parameters' names, leave nothing of it."""
    if sum(shares.values()) >= 1:
        raise InputError(
            f"{' and '.join(shares)} leave nothing for the marginals.",
            remedy="Give shares whose sum is below 1.",
        )


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


def start_steps(
    domain: Domain, rho: Fraction, unit: Unit, one_way_share: Fraction
) -> tuple[list[PlannedMeasurement], Fraction]:
    """Return what ``measure_start`` measures, and what it leaves of a budget."""
    if not one_way_share:
        return total_steps(domain, rho, unit), after_total(rho, unit)
    columns = PlannedMeasurement.columns(domain, one_way_share * rho, unit)
    return [columns], (1 - one_way_share) * rho


def measure_start(private: Private, one_way_share: Fraction) -> None:
    """Measure all columns, or only the number of records if the share is 0.

    **Privacy:** the share of the whole budget, or that of ``measure_total``.
    """
    if one_way_share:
        private.measure(one_way(private.domain), Gaussian(rho=one_way_share * private.rho))
    else:
        measure_total(private)


def measure_total(private: Private) -> float:
    """Measure the number of records if it is private, and return it.

    **Privacy:** ``TOTAL_BUDGET_SHARE`` of the whole budget, or nothing.
    """
    if not size_is_public(private.unit):
        private.measure_queries([TOTAL], Gaussian(rho=private.rho * TOTAL_BUDGET_SHARE))
    return private.transcript.total()
