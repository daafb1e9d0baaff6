"""What every column kind checks of its own declaration: one helper a question, one clear error each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from margrave.errors import SchemaError

POLICIES = {
    "clip": "moved to the nearest cell",
    "other": "counted as the open category",
    "missing": "counted as missing",
    "refuse": "an error before anything is spent",
}
"""What becomes of a value outside the schema."""

MAX_BINS = 1 << 22
#: The largest bound of a column of real numbers: differences of two stay finite.
MAX_BOUND = 10**300


def fail(column: str, what: str, remedy: str) -> SchemaError:
    """An error about one column."""
    return SchemaError(f"Column {column!r}: {what}", remedy=remedy)


def name(value: Any, what: str = "column") -> str:
    """A usable name."""
    if not isinstance(value, str) or not value.strip() or len(value) > 300 or not value.isprintable():
        raise SchemaError(
            f"The name of a {what} is not usable.",
            remedy="A name is text of 1 to 300 printable characters, not blank.",
        )
    return value


def flag(column: str, key: str, value: Any) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise fail(column, f"{key} is not true or false.", f"Write {key} = true or {key} = false.")
    return value


def whole(column: str, key: str, value: Any, low: int, high: int) -> int:
    """A whole number between two bounds."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise fail(column, f"{key} is not a whole number.", f"Write {key} = 5, say.")
    if not low <= value <= high:
        raise fail(column, f"{key} is out of range.", f"It lies between {low} and {high}.")
    return value


def real(column: str, key: str, value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise fail(column, f"{key} is not a number.", f"Write {key} = 0.5, say.")
    if not abs(value) <= MAX_BOUND:
        raise fail(column, f"{key} is not a finite number.", "Give a bound that every value is sure to keep.")
    return float(value)


def listed(column: str, key: str, value: Any) -> tuple[Any, ...]:
    """A list."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise fail(column, f"{key} is not a list.", f"Write {key} = [...].")
    return tuple(value)


def policy(column: str, value: Any, allowed: Sequence[str], *, missing: bool, other: bool = False) -> str:
    """The policy for values outside; it needs the state that it sends them to."""
    if value not in allowed:
        raise fail(
            column, "outside names no policy of this kind of column.", f"Choose one of: {', '.join(allowed)}."
        )
    if value == "missing" and not missing:
        raise fail(column, "outside is 'missing', but it has no missing state.", "Add missing = true.")
    if value == "other" and not other:
        raise fail(column, "outside is 'other', but it has no open category.", "Add other = true.")
    return str(value)


def categories(column: str, value: Any) -> tuple[str, ...]:
    """At least one text, no text twice; whole numbers are taken as their text."""
    found = []
    for entry in listed(column, "categories", value):
        written = str(entry) if isinstance(entry, int) and not isinstance(entry, bool) else entry
        if not isinstance(written, str) or len(written) > 10_000:
            raise fail(column, "a category is not text.", 'Write categories = ["a", "b"].')
        if not written.strip():
            raise fail(column, "a category is empty.", "Leave it out and add missing = true.")
        found.append(written)
    if not found:
        raise fail(column, "it has no categories.", "List the categories that may occur.")
    if len(set(found)) < len(found):
        twice = next(c for i, c in enumerate(found) if c in found[:i])
        raise fail(column, f"category {twice!r} is listed twice.", "List it once.")
    seen: dict[str, str] = {}
    for written in found:
        if (first := seen.setdefault(written.strip(), written)) != written:
            raise fail(
                column, f"categories {first!r} and {written!r} differ by blanks alone, which are not read.", "List one."
            )
    return tuple(found)
