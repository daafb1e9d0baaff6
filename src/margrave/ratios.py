"""Ratios in words: one place, since a percentage of a number near zero says nothing."""

from __future__ import annotations

import math

#: Ratios above this are not printed as a percentage.
MAX_RATIO = 10.0


def percent(ratio: float, form: str = ".2g") -> str:
    """Return a ratio as a percentage, or say that it is above ten, below minus ten, or unknown.

    >>> percent(0.1234), percent(250.0), percent(math.nan)
    ('12 %', 'more than ten times', 'unknown')
    """
    if math.isnan(ratio):
        return "unknown"
    if abs(ratio) > MAX_RATIO:
        return "more than ten times" if ratio > 0 else "less than minus ten times"
    return f"{100 * ratio:{form}} %"


def quotient(part: float, whole: float) -> float:
    """Return part / whole; NaN if the whole is 0 or the result is not finite."""
    try:
        found = part / whole
    except (ZeroDivisionError, OverflowError):
        return math.nan
    return found if math.isfinite(found) else math.nan


def change(new: float, old: float) -> str:
    """Return how far new is from old: in percent of old, or as it is if old is too near zero for that.

    >>> change(103.0, 100.0), change(-50.0, 0.2), change(1.0, 0.0)
    ('+3.0 %', '-50.2', '+1')
    """
    ratio = quotient(new - old, abs(old))
    return (
        f"{new - old:+.4g}"
        if math.isnan(ratio) or abs(ratio) > MAX_RATIO
        else percent(ratio, "+.1f")
    )
