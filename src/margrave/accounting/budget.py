"""The privacy budget, and the two ways of stating it: (epsilon, delta) and rho (zero-concentrated)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from numbers import Integral, Real
from typing import Any

from margrave._card import Card, Facts
from margrave._fields import is_number, shown_value
from margrave.errors import InputError

# Fifty digits: the rounding of the few operations below is thirty orders of magnitude under that of the last step.
_EXACT = Context(prec=50)

#: The relative distance within which the best t lies from the one that floating point finds.
_RELATIVE_TOLERANCE = Decimal("1e-6")

MIN_EPSILON, MAX_EPSILON = 1e-6, 1e12
#: Above this a run is refused.
MAX_STATED_EPSILON = 1e4
MIN_RHO, MAX_RHO = 1e-15, 1e12


@dataclass(frozen=True, repr=False)
class Budget(Card):
    """A bound on all that is spent: rho-zCDP, and the (epsilon, delta) that it implies.

    Make one with ``Budget.approx`` or ``Budget.zcdp``. A budget built by hand raises ``InputError``
    if ``rho`` is more than ``epsilon`` and ``delta`` allow. ``threshold_delta`` is the part of
    ``delta`` that thresholds may spend (``Private.discover``); rho implies epsilon at the rest.
    """

    rho: Fraction
    epsilon: float
    delta: float
    threshold_delta: float = 0.0

    def __new__(cls, *places: Any, **names: Any) -> Budget:
        """Return an empty budget. Raise ``InputError`` for a call without rho, such as Budget(epsilon=1.0)."""
        if names and not places and "rho" not in names:
            raise InputError(
                "Budget() needs rho.",
                remedy="Make the budget with Budget.approx(epsilon, delta) or Budget.zcdp(rho, delta).",
            )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        _number("rho", self.rho, MIN_RHO, MAX_RHO)
        plain = (
            Fraction(_exact(self.rho) or 0),
            _number("epsilon", self.epsilon, 0.0, 1e300),
            _probability(self.delta),
            _number("threshold_delta", self.threshold_delta, 0.0, 1.0),
        )
        for name, value in zip(
            ("rho", "epsilon", "delta", "threshold_delta"), plain, strict=True
        ):  # what a release can be saved with
            object.__setattr__(self, name, value)
        at = self.conversion_delta
        implied = epsilon_for(self.rho, at)
        if not (implied <= self.epsilon or _implies(self.rho, self.epsilon, at)):
            raise InputError(
                f"rho = {float(self.rho):.6g} implies epsilon = {implied:.6g} at delta = {at:g}, not"
                f" {self.epsilon:g}.",
                remedy="Make the budget with Budget.approx(epsilon, delta) or Budget.zcdp(rho, delta).",
            )

    def _facts(self) -> Facts:
        thresholds = thresholds_in_words(self.threshold_delta)
        stated = f"epsilon={self.epsilon:g}, delta={self.delta:g}{thresholds}"
        return Facts(f"rho={float(self.rho):.6g}, {stated}")

    @property
    def conversion_delta(self) -> float:
        """The part of ``delta`` at which rho implies epsilon: all but ``threshold_room``, rounded down."""
        return _conversion_delta(self.delta, self.threshold_delta)

    @cached_property
    def room(self) -> Fraction:
        """The most rho that runs under this cap may reserve: ``rho``, and its parts' rounding if epsilon covers it."""
        room = _with_room(self.rho)
        return room if _implies(room, self.epsilon, self.conversion_delta) else self.rho

    @property
    def threshold_room(self) -> Fraction:
        """The most delta for thresholds that runs under this cap may reserve, likewise. ``delta`` covers it."""
        return _with_room(Fraction(self.threshold_delta))

    @staticmethod
    def approx(epsilon: float, delta: float, threshold_delta: float = 0.0) -> Budget:
        """Return the largest rho whose zCDP implies (epsilon, delta)-differential privacy, rounded
        down, together with thresholds that spend ``threshold_delta`` of delta.

        **Privacy:** none spent. Raises ``InputError`` for epsilon outside [1e-6, 1e12], delta outside (0, 1) or
        threshold_delta outside [0, delta). Source: Canonne, Kamath, Steinke 2020, Proposition 12.

        >>> budget = Budget.approx(epsilon=1.0, delta=1e-9)
        >>> round(float(budget.rho), 6)
        0.014973
        >>> round(float(Budget.approx(1.0, 1e-9, threshold_delta=1e-10).rho), 6)
        0.014884
        """
        epsilon = _number("epsilon", epsilon, MIN_EPSILON, MAX_EPSILON, MAX_STATED_EPSILON)
        at = _conversion_delta(delta, threshold_delta)
        return Budget(Fraction(rho_for(epsilon, at)), epsilon, delta, threshold_delta)

    @staticmethod
    def zcdp(rho: Fraction | float, delta: float = 1e-9, threshold_delta: float = 0.0) -> Budget:
        """Return a budget of rho-zCDP; ``epsilon`` restates it at the delta that thresholds leave, rounded up.

        A float counts as the exact binary fraction that it is, and epsilon then covers the rounding of floats that
        add up to it. **Privacy:** none spent. Raises ``InputError`` for
        rho outside [1e-15, 1e12], delta outside (0, 1) or threshold_delta outside [0, delta).

        >>> Budget.zcdp(Fraction(1, 10)).rho
        Fraction(1, 10)
        """
        _number("rho", rho, MIN_RHO, MAX_RHO)
        exact = Fraction(_exact(rho) or 0)
        room = exact if isinstance(rho, int | Fraction) else _with_room(exact)
        epsilon = epsilon_for(room, _conversion_delta(delta, threshold_delta))
        return Budget(exact, epsilon, delta, threshold_delta)


# rho-zCDP implies (epsilon, delta) for every alpha > 1 with
#     delta = exp((alpha − 1)(alpha rho − epsilon)) / (alpha − 1) · (1 − 1/alpha)^alpha.
# With t = alpha − 1 the logarithm of the right-hand side is
#     t((1 + t) rho − epsilon) − t log(1 + 1/t) − log(1 + t),
# which is linear in rho and in epsilon: each t gives one in terms of the other, and EVERY t gives a true statement.
# So t is searched for in floating point (it only decides how tight the answer is), and the answer at that t is
# computed in fifty digits and rounded once, in the safe direction. The logarithm is convex in t, so epsilon(t) is
# quasi-convex and rho(t) quasi-concave, also as functions of log t, and golden section finds the optimum.


@lru_cache
def rho_for(epsilon: float, delta: float) -> float:
    """Return ``max_t (log delta + t epsilon + t log(1 + 1/t) + log(1 + t)) / (t (1 + t))``, rounded
    down.
    """
    log_delta = math.log(delta)

    def negated(log_t: float) -> float:
        t = math.exp(log_t)
        return -(log_delta + t * epsilon + t * math.log1p(1 / t) + math.log1p(t)) / t / (1 + t)

    with localcontext(_EXACT):
        t = Decimal(math.exp(_argmin(negated)))
        return _float_down((Decimal(delta).ln() + t * Decimal(epsilon) + _gain(t)) / (t * (1 + t)))


@lru_cache
def epsilon_for(rho: Fraction, delta: float) -> float:
    """Return ``min_t (1 + t) rho − (log delta + t log(1 + 1/t) + log(1 + t)) / t``, rounded up; at
    least 0.
    """
    best = _best_log_t(float(rho), math.log(delta))
    with localcontext(_EXACT):
        t = Decimal(math.exp(best))
        exact_rho = Decimal(rho.numerator) / Decimal(rho.denominator)
        lowest = (1 + t) * exact_rho - (Decimal(delta).ln() + _gain(t)) / t
        return max(0.0, -_float_down(-lowest))


def _best_log_t(rho: float, log_delta: float) -> float:
    """Return the log t at which ``epsilon_for`` is smallest."""

    def objective(log_t: float) -> float:
        t = math.exp(log_t)
        return (1 + t) * rho - (log_delta + math.log1p(t)) / t - math.log1p(1 / t)

    return _argmin(objective)


def _implies(rho: Fraction, epsilon: float, delta: float) -> bool:
    """Return whether the best t proves, in fifty digits, that rho-zCDP implies (epsilon, delta)."""
    if not 0 < epsilon <= MAX_EPSILON:
        return False
    with localcontext(_EXACT):
        exact_rho, log_delta = (
            Decimal(rho.numerator) / Decimal(rho.denominator),
            Decimal(delta).ln(),
        )

        def excess(t: Decimal) -> Decimal:
            return (1 + t) * exact_rho - (log_delta + _gain(t)) / t - Decimal(epsilon)

        about = Decimal(math.exp(_best_log_t(float(rho), math.log(delta))))
        low, high = about * (1 - _RELATIVE_TOLERANCE), about * (1 + _RELATIVE_TOLERANCE)
        for _ in range(60):
            left, right = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, right) if excess(left) < excess(right) else (left, high)
        return excess((low + high) / 2) <= 0


def max_epsilon(rho: Fraction, delta: float) -> float:
    """Return an epsilon of three digits that rho is enough for at this delta, about the largest; 0
    if there is none.

    >>> Budget.approx(max_epsilon(Fraction(1, 10), 1e-9), 1e-9).rho <= Fraction(1, 10)
    True
    """
    if rho < MIN_RHO:
        return 0.0
    most = Decimal(epsilon_for(rho, delta))
    step = Decimal(1).scaleb(most.adjusted() - 2) if most else Decimal(1)
    for digits in (int(most / step), int(most / step) - 1):  # epsilon_for rounds up
        epsilon = float(digits * step)
        if epsilon >= MIN_EPSILON and Fraction(rho_for(epsilon, delta)) <= rho:
            return epsilon
    return 0.0


def _gain(t: Decimal) -> Decimal:
    return t * (1 + 1 / t).ln() + (1 + t).ln()


def _argmin(function: Callable[[float], float], low: float = -60.0, high: float = 60.0) -> float:
    step = (math.sqrt(5) - 1) / 2
    left, right = high - step * (high - low), low + step * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(80):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - step * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + step * (high - low)
            at_right = function(right)
    return (low + high) / 2


def _float_down(value: Decimal) -> float:
    # One part in 10^30 towards the safe side covers the rounding of all the operations before.
    safe = value - abs(value) * Decimal("1e-30")
    nearest = float(safe)
    return nearest if Decimal(nearest) <= safe else math.nextafter(nearest, -math.inf)


def _number(
    name: str, stated: Fraction | float, low: float, high: float, advised: float | None = None
) -> float:
    value = _exact(stated)
    if value is None or not low <= value <= high:
        raise InputError(
            f"{name} is {_words(stated)}.",
            remedy=f"Give a number from {low:g} to {high if advised is None else advised:g}.",
        )
    nearest = float(value)
    return nearest if nearest <= value else math.nextafter(nearest, 0.0)


def _probability(stated: Fraction | float) -> float:
    delta = _exact(stated)
    if delta is None or not 1e-300 <= delta < 1:
        raise InputError(
            f"delta is {_words(stated)}.",
            remedy="Give a number between 0 and 1 (at least 1e-300), chosen without looking at the table: 1e-9, say.",
        )
    return _number("delta", delta, 1e-300, 1)


def _exact(value: object) -> int | float | Fraction | None:
    """Return a number of Python or NumPy as Python's own, exactly; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    if isinstance(value, int | float | Fraction):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def _with_room(amount: Fraction) -> Fraction:
    """Return the largest sum that a cap admits. Floats round equal parts of it: 3 * 0.1 exceeds 0.3."""
    return amount * (1 + Fraction(1, 2**50))


def _conversion_delta(delta: Fraction | float, threshold_delta: float) -> float:
    """Return ``delta`` less the room of ``threshold_delta``, of what both are as floats, rounded down."""
    whole, part = _probability(delta), _number("threshold_delta", threshold_delta, 0.0, 1.0)
    left = Fraction(whole) - _with_room(Fraction(part))
    if left < Fraction(1e-300):
        raise InputError(
            f"threshold_delta is {part:g}, which leaves nothing of delta = {whole:g} to restate rho with.",
            remedy="Give thresholds a tenth of delta, say.",
        )
    return _number("delta", left, 1e-300, 1)


def _words(value: object) -> str:
    if isinstance(value, str):
        return f"the text {value!r:.80}, not a number"
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return f"{float(value):g}" if -(10**300) < value < 10**300 else "far out of range"
    return repr(value) if is_number(value) else shown_value(value)


def thresholds_in_words(threshold_delta: float) -> str:
    """Return the delta for thresholds in words, in brackets; an empty text for zero."""
    return f" ({threshold_delta:g} of it for thresholds)" if threshold_delta else ""
