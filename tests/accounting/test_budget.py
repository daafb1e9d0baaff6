"""Budgets: conversions against an oracle of sixty digits and against two other accountants; never on the wrong side."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from margrave.accounting import (
    AddRemovePerson,
    AddRemoveRow,
    Budget,
    ReplacePerson,
    ReplaceRow,
    Unit,
    sensitivity,
)
from margrave.errors import InputError
from margrave.privacy import Gaussian

POINTS = [
    (1.0, 1e-9),
    (0.1, 1e-9),
    (10.0, 1e-5),
    (1e-3, 1e-12),
    (1e-6, 1e-6),
    (100.0, 1e-9),
    (5.0, 0.5),
    (0.5, 0.99),
    (1.0, 1e-300),
    (1e6, 1e-9),
    (3.0, 1e-7),
    (0.7, 0.01),
]


def log_delta(rho: Any, epsilon: Any) -> Any:
    """The oracle: the Proposition's minimum over alpha, found by nested thirds in sixty digits."""
    rho, epsilon = mpmath.mpf(rho), mpmath.mpf(epsilon)

    def at(log_t: Any) -> Any:
        alpha = 1 + mpmath.e**log_t
        return (
            (alpha - 1) * (alpha * rho - epsilon)
            - mpmath.log(alpha - 1)
            + alpha * (mpmath.log(alpha - 1) - mpmath.log(alpha))
        )

    low, high = mpmath.mpf(-60), mpmath.mpf(60)
    for _ in range(130):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if at(left) < at(right) else (left, high)
    return at((low + high) / 2)


@pytest.mark.parametrize(("epsilon", "delta"), POINTS)
def test_rho_is_below_the_truth_by_a_hair(epsilon: float, delta: float) -> None:
    rho = Budget.approx(epsilon, delta).rho
    with mpmath.workdps(60):
        exact = mpmath.mpf(rho.numerator) / rho.denominator
        target = mpmath.log(mpmath.mpf(delta))
        assert log_delta(exact, epsilon) <= target
        assert log_delta(exact * (1 + mpmath.mpf("1e-14")), epsilon) > target


@pytest.mark.parametrize(("epsilon", "delta"), POINTS)
def test_epsilon_is_above_the_truth_by_a_hair(epsilon: float, delta: float) -> None:
    rho = (
        Fraction(Budget.approx(epsilon, delta).rho) * 3 / 2
    )  # not a point where the two conversions meet
    found = Budget.zcdp(rho, delta).epsilon
    with mpmath.workdps(60):
        exact = mpmath.mpf(rho.numerator) / rho.denominator
        target = mpmath.log(mpmath.mpf(delta))
        assert log_delta(exact, found) <= target
        assert log_delta(exact, mpmath.mpf(found) * (1 - mpmath.mpf("1e-14"))) > target


def test_a_delta_that_covers_all_needs_no_epsilon() -> None:
    assert Budget.zcdp(Fraction(1, 10**6), 0.99).epsilon == 0.0


def test_there_and_back_does_not_grow() -> None:
    budget = Budget.approx(1.0, 1e-9)
    again = Budget.zcdp(budget.rho, 1e-9)
    assert again.rho == budget.rho
    assert again.epsilon == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(
    "epsilon",
    [
        0,
        0.0,
        -1.0,
        math.nan,
        math.inf,
        -math.inf,
        1e-7,
        1e13,
        10**400,
        -(10**400),
        True,
        "1",
        None,
        1j,
    ],
)
def test_no_epsilon(epsilon: Any) -> None:
    with pytest.raises(InputError, match=r"epsilon is .* Give"):
        Budget.approx(epsilon, 1e-9)


@pytest.mark.parametrize(
    "delta", [0, 0.0, 1, 1.0, -1e-9, 2.0, math.nan, math.inf, 1e-301, 5e-324, True, "1e-9", None]
)
def test_no_delta(delta: Any) -> None:
    for make in (lambda: Budget.approx(1.0, delta), lambda: Budget.zcdp(Fraction(1), delta)):
        with pytest.raises(InputError, match=r"delta is .* Give"):
            make()


@pytest.mark.parametrize(
    "rho", [0, 0.0, -1, math.nan, math.inf, 1e-16, 1e13, Fraction(-1, 3), 10**900, True, "1"]
)
def test_no_rho(rho: Any) -> None:
    with pytest.raises(InputError, match=r"rho is .* Give"):
        Budget.zcdp(rho, 1e-9)


def test_a_float_rho_is_the_fraction_that_it_is() -> None:
    assert Budget.zcdp(0.1, 1e-9).rho == Fraction(0.1) != Fraction(1, 10)


def test_a_fraction_between_floats_is_never_rounded_up() -> None:
    third = Budget.approx(Fraction(1, 3), Fraction(1, 3))  # type: ignore[arg-type]
    assert third.epsilon <= Fraction(1, 3)
    assert third.delta <= Fraction(1, 3)


UNITS: list[Unit] = [AddRemoveRow(), ReplaceRow(), AddRemovePerson(3), ReplacePerson(2)]


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_three_accountants_agree(unit: Unit, epsilon: float) -> None:
    """Noise bought here is handed to accountants that know only add/remove: they see scale / sensitivity."""
    delta, marginals = 1e-6, 4
    rho = Budget.approx(epsilon, delta).rho
    scale = Gaussian.scale_for(rho / marginals, unit)
    multiplier = scale / math.sqrt(sensitivity(unit).l2_squared)
    event = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(multiplier), marginals)
    renyi = (
        RdpAccountant([1 + 10 ** (i / 40 - 4) for i in range(400)])
        .compose(event)
        .get_epsilon(delta)
    )
    assert renyi == pytest.approx(epsilon, rel=2e-3)
    tight = (
        PLDAccountant(value_discretization_interval=1e-3 * epsilon)
        .compose(event)
        .get_epsilon(delta)
    )
    assert 0.8 * epsilon < tight <= epsilon * (1 + 1e-3)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 0.9999, math.nan])
def test_a_budget_made_by_hand_cannot_promise_less_than_it_spends(epsilon: float) -> None:
    honest = Budget.approx(1.0, 1e-9)
    assert Budget(honest.rho, 1.0, 1e-9) == honest
    assert Budget(honest.rho, 1.5, 1e-9).epsilon == 1.5
    with pytest.raises(InputError, match=r"implies epsilon = 1 at delta|epsilon is nan\."):
        Budget(honest.rho, epsilon, 1e-9)
