"""Numbers and ratios in words: one place for both."""

from __future__ import annotations

import math
from decimal import Decimal

#: Ratios above this are not printed as a percentage.
MAX_RATIO = 10.0


def figure(value: float, digits: int = 0) -> str:
    """Return a number as people write it, without an exponent.

    Args:
        value: The number.
        digits: The number of significant digits. 0 means four, or all whole digits of a larger number.
            Numbers from 10^15 on have four.

    >>> figure(17_930.4), figure(10_273.0, 3), figure(0.012345), figure(5.6e-19), figure(1.983e18)
    ('17,930', '10,300', '0.01235', '6 in 10^19', '1.983 times 10^18')
    """
    # Smaller numbers have too many zeros to be read, and larger ones too many digits.
    least, most = 1e-4, 1e15
    value += 0.0
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    size = math.floor(math.log10(abs(value)))
    if abs(value) < least:
        return f"{value / 10.0**size:.0f} in 10^{-size}"
    if abs(value) >= most:
        mantissa, exponent = f"{value:.3e}".split("e")
        return f"{mantissa} times 10^{int(exponent)}"
    if not digits and abs(value) >= 1000:
        return f"{value:,.0f}"
    rounded = Decimal(f"{value:.{(digits or 4) - 1}e}")
    return f"{rounded.normalize():,f}"


def percent(ratio: float, form: str = ".2g") -> str:
    """Return a ratio as a percentage, or say that it is above ten, below minus ten, or unknown.

    >>> percent(0.1234), percent(1.6), percent(250.0), percent(math.nan)
    ('12 %', '160 %', 'more than ten times', 'unknown')
    """
    if math.isnan(ratio):
        return "unknown"
    if abs(ratio) > MAX_RATIO:
        return "more than ten times" if ratio > 0 else "less than minus ten times"
    text = f"{100 * ratio:{form}}"
    return f"{figure(100 * ratio, 2) if 'e' in text else text} %"


def quotient(part: float, whole: float) -> float:
    """Return part / whole; NaN if the whole is 0 or the result is not finite."""
    try:
        found = part / whole
    except (ZeroDivisionError, OverflowError):
        return math.nan
    return found if math.isfinite(found) else math.nan


def change(new: float, old: float) -> str:
    """Return how far new is from old: in percent of old, or as it is if old is too near zero for that.

    >>> change(103.0, 100.0), change(99.99, 100.0), change(-50.0, 0.2), change(1.0, 0.0)
    ('+3.0 %', '+0.0 %', '-50.2', '+1')
    """
    ratio = quotient(new - old, abs(old))
    return (
        f"{new - old:+.4g}"
        if math.isnan(ratio) or abs(ratio) > MAX_RATIO
        else percent(ratio, "+z.1f")
    )
