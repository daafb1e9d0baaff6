"""Plain values of a release file: each is checked, and anything else is a ReleaseError."""

from __future__ import annotations

import re
import sys
from fractions import Fraction
from typing import Any

from margrave.errors import ReleaseError

#: Counts are 64-bit integers.
MAX_COUNT = 2**63 - 1


def as_fraction(value: object) -> Fraction:
    """Return an exact fraction from 0 to ``MAX_RHO``."""
    fraction = re.compile(r"[0-9]{1,4000}(/[0-9]{1,4000})?")
    # The largest rho that a budget can hold.
    max_rho = 10**12
    text = as_text(value)
    if not fraction.fullmatch(text):  # Fraction itself would expand 1e999999999
        raise ReleaseError("An amount of budget is not an exact fraction.")
    top, _, bottom = text.partition("/")
    if not int(bottom or 1) or int(top) > max_rho * int(bottom or 1):
        raise ReleaseError(f"An amount of budget is not a fraction from 0 to {max_rho:g}.")
    return Fraction(text)


def as_number(value: object) -> float:
    """Return a finite number of 0 or more."""
    number = as_real(value)
    if number < 0:
        raise ReleaseError("A number that should not be negative is.")
    return number


def as_real(value: object) -> float:
    """Return a finite number."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not abs(value) <= sys.float_info.max
    ):
        raise ReleaseError("Something that should be a finite number is not.")
    return float(value)


def as_whole(value: object) -> int:
    """Return a whole number from 0 to ``MAX_COUNT``."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_COUNT:
        raise ReleaseError(f"A number should be whole, from 0 to {MAX_COUNT}, and is not.")
    return value


def as_text(value: object) -> str:
    """Return text."""
    if not isinstance(value, str):
        raise ReleaseError("Something that should be text is not.")
    return value


def as_list(value: object) -> list[Any]:
    """Return a list."""
    if not isinstance(value, list):
        raise ReleaseError("Something that should be a list is not.")
    return value


def as_table(value: object) -> dict[str, Any]:
    """Return a table of names."""
    if not isinstance(value, dict):
        raise ReleaseError("Something that should be a table of names is not.")
    return value


def as_flag(value: object) -> bool:
    """Return True or False."""
    if not isinstance(value, bool):
        raise ReleaseError("Something that should be true or false is not.")
    return value
