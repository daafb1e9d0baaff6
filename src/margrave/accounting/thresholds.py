"""Thresholds: noisy counts below them are not released, so that a value of one unit's rows alone stays hidden.

A value that only the protected unit has is released with a chance that is paid in delta. It depends on the unit, the
noise scale and the threshold alone, never on rows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from statistics import NormalDist

from margrave.errors import InputError
from margrave.unit import Unit, rows_per_person


@functools.lru_cache(maxsize=256)
def threshold_for(unit: Unit, scale: float, delta: Fraction) -> int:
    """Return the least threshold at which noise of this scale hides the values of one unit but for ``delta``.

    It is at least one more than the rows of a unit.

    Args:
        unit: The unit of privacy.
        scale: The noise scale, in records.
        delta: The chance, above 0.

    Raises:
        InputError: ``scale`` is above 100,000 records, or ``delta`` below 1e-300.

    Privacy:
        None spent: the result is a function of public values.

    >>> from margrave.unit import AddRemoveRow
    >>> threshold_for(AddRemoveRow(), 71.0, Fraction(1, 10**9))
    428
    """
    if not 0 < scale <= 1e5:  # a threshold would be above half a million records
        raise InputError(
            f"The noise has the scale {scale:g}, at which no threshold shows any value.",
            remedy="Give the question more rho.",
        )
    if not Fraction(1e-300) <= delta < 1:
        raise InputError(
            "The delta of a threshold is not from 1e-300 to below 1.",
            remedy="Give a Fraction such as Fraction(1e-10), out of the budget's threshold_delta.",
        )
    k = rows_per_person(unit) or 1
    apart = 1 if _is_exact(k) else k
    threshold = max(_normal(scale, delta) + k, _normal(scale, delta / k) + apart, k + 1)
    while chance_of_release(unit, scale, threshold) > delta:
        threshold += 1
    while threshold > k + 1 and chance_of_release(unit, scale, threshold - 1) <= delta:
        threshold -= 1
    return threshold


def chance_of_release(unit: Unit, scale: float, threshold: int) -> Fraction:
    """Return the largest chance that a value which only one unit has reaches the threshold, rounded up.

    The unit brings at most k rows. They are ``c`` rows of one value and others of other values: whether
    k values of one row or one value of k rows are worse depends on the noise. So the chance is the
    maximum over all partitions of k, up to 30 rows. Above, it is bounded by k times the
    chance of a value of k rows.

    A row that takes the place of another brings its own value and takes that of the other away. Both
    are the same event, seen from one table and from the other, so the chance is that of adding a row.
    """
    k = rows_per_person(unit) or 1
    with _fifty_digits():
        if _is_exact(k):
            worst = _worst_partition(_tails(scale, threshold, k))
        else:
            worst = min(Decimal(1), k * upper_tail(scale, threshold - k))
        return Fraction(_rounded_up(worst))


def _is_exact(k: int) -> bool:
    """Return whether persons of k rows have the exact chance, not a bound above it."""
    return k <= 30


def _fifty_digits() -> AbstractContextManager[Context]:
    """Return a context in which the rounding of a million operations is far below that of ``_rounded_up``.

    It is a fresh one: the exponents of a caller's context may end where tails begin.
    """
    return localcontext(Context(prec=50))


def _rounded_up(value: Decimal) -> Decimal:
    """Return a value that covers the rounding of all operations before."""
    return value * (1 + Decimal("1e-30"))


def _worst_partition(chances: Sequence[Decimal]) -> Decimal:
    """Return the largest chance that one value is released at least, over partitions of all rows.

    ``chances[c - 1]`` is the chance of a value with c rows.
    """
    worst = [Decimal(0)]  # of so many rows
    for rows in range(1, len(chances) + 1):
        tries = ((chances[c - 1], worst[rows - c]) for c in range(1, rows + 1))
        worst.append(max(one + rest - one * rest for one, rest in tries))
    return worst[-1]


def _tails(scale: float, threshold: int, k: int) -> list[Decimal]:
    """Return ``P[N >= threshold - c]`` for c = 1, …, k, rounded up."""
    tails = [upper_tail(scale, threshold - 1)]
    for c in range(2, k + 1):
        tails.append(tails[-1] + _rounded_up(_weight(scale, threshold - c) / _mass(scale)))
    return tails


@functools.lru_cache(maxsize=256)
def upper_tail(scale: float, least: int) -> Decimal:
    """Return the chance that discrete Gaussian noise of this scale is ``least`` or more, rounded up.

    Terms are summed until they fall below 1e-20 of the sum. Their ratios decrease, so the rest is at
    most a geometric series.

    Args:
        scale: The noise scale.
        least: A whole number above 0.
    """
    with _fifty_digits():
        precision = 1 / Decimal(scale) ** 2
        weight = _weight(scale, least)
        ratio = (-(2 * least + 1) * precision / 2).exp()  # of the next weight to this one
        step = (-precision).exp()  # of the next ratio to this one
        total = Decimal(0)
        while weight > total * Decimal("1e-20"):
            total += weight
            weight *= ratio
            ratio *= step
        return _rounded_up((total + weight / (1 - ratio)) / _mass(scale))


def _weight(scale: float, value: int) -> Decimal:
    with _fifty_digits():
        return (-Decimal(value * value) / (2 * Decimal(scale) ** 2)).exp()


def _mass(scale: float) -> Decimal:
    """Return the sum of all weights, rounded down: as it is, or after Poisson summation."""
    with _fifty_digits():
        square = Decimal(scale) ** 2
        if scale < 1:
            return _theta(1 / (2 * square))
        pi = Decimal("3.1415926535897932384626433832795028841971693993751")  # rounded down
        return (2 * pi * square).sqrt() * _theta(2 * pi**2 * square)


def _theta(rate: Decimal) -> Decimal:
    """Return the sum of ``exp(-rate n²)`` over whole numbers n, without the terms below 1e-40."""
    total, n = Decimal(1), 1
    while (term := (-rate * n * n).exp()) > Decimal("1e-40"):
        total, n = total + 2 * term, n + 1
    return total


def _normal(scale: float, delta: Fraction) -> int:
    """Return about the value that noise exceeds with the chance delta."""
    return math.floor(-scale * NormalDist().inv_cdf(float(delta)))
