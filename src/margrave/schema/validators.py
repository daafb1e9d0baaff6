"""Checks of a column's own declaration."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from margrave.errors import InputError, SchemaError

#: Out-of-range policies, with what becomes of a value outside the schema.
POLICIES = {
    "clip": "moved to the nearest cell",
    "other": "counted as the open category",
    "missing": "counted as missing",
    "refuse": "an error before anything is spent",
}

MAX_BINS = 1 << 22


def column_error(column: str, what: str, remedy: str) -> SchemaError:
    """Return an error about one column."""
    return SchemaError(f"Column {column!r}: {what}", remedy=remedy)


def name(value: Any, what: str = "column") -> str:
    """Return a usable name."""
    if (
        not isinstance(value, str)
        or not value.strip()
        or len(value) > 300
        or not value.isprintable()
    ):
        raise SchemaError(
            f"The name of a {what} is not usable.",
            remedy="A name is text of 1 to 300 printable characters, not blank.",
        )
    return value


def flag(column: str, key: str, value: Any) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise column_error(
            column, f"{key} is not true or false.", f"Write {key} = true or {key} = false."
        )
    return value


def whole(column: str, key: str, value: Any, low: int, high: int) -> int:
    """Return a whole number between two bounds."""
    if isinstance(value, np.integer):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise column_error(column, f"{key} is not a whole number.", f"Write {key} = 5, say.")
    if not low <= value <= high:
        raise column_error(column, f"{key} is out of range.", f"It lies between {low} and {high}.")
    return value


def real(column: str, key: str, value: Any) -> float:
    """Return a finite number."""
    # The largest bound of a column of real numbers: differences of two stay finite.
    max_bound = 10**300
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise column_error(column, f"{key} is not a number.", f"Write {key} = 0.5, say.")
    if not abs(value) <= max_bound:
        raise column_error(
            column,
            f"{key} is not a finite number.",
            "Give a bound that every value is sure to keep.",
        )
    return float(value)


def listed(column: str, key: str, value: Any) -> tuple[Any, ...]:
    """Return a list, also of an array or a Series."""
    to_list = next((getattr(value, m) for m in ("tolist", "to_list") if hasattr(value, m)), None)
    value = value if to_list is None else to_list()
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise column_error(column, f"{key} is not a list.", f"Write {key} = [...].")
    return tuple(value)


def policy(
    column: str, value: Any, allowed: Sequence[str], *, missing: bool, other: bool = False
) -> str:
    """Return the out-of-range policy. The state that it uses must exist."""
    if value not in allowed:
        raise column_error(
            column,
            "outside names no policy of this kind of column.",
            f"Choose one of: {', '.join(allowed)}.",
        )
    if value == "missing" and not missing:
        raise column_error(
            column, "outside is 'missing', but it has no missing state.", "Add missing = true."
        )
    if value == "other" and not other:
        raise column_error(
            column, "outside is 'other', but it has no open category.", "Add other = true."
        )
    return str(value)


def categories(column: str, value: Any) -> tuple[str, ...]:
    """Return at least one distinct text; whole numbers become their text."""
    found = []
    for entry in listed(column, "categories", value):
        written = (
            str(entry)
            if isinstance(entry, int | np.integer) and not isinstance(entry, bool)
            else entry
        )
        if not isinstance(written, str) or len(written) > 10_000:
            raise column_error(column, "a category is not text.", 'Write categories = ["a", "b"].')
        if not written.strip():
            raise column_error(
                column, "a category is empty.", "Leave it out and add missing = true."
            )
        found.append(written)
    if not found:
        raise column_error(column, "it has no categories.", "List the categories that may occur.")
    if len(set(found)) < len(found):
        twice = next(c for i, c in enumerate(found) if c in found[:i])
        raise column_error(column, f"category {twice!r} is listed twice.", "List it once.")
    seen: dict[str, str] = {}
    for written in found:
        if (first := seen.setdefault(written.strip(), written)) != written:
            raise column_error(
                column,
                f"categories {first!r} and {written!r} differ by blanks alone, which are not read.",
                "List one.",
            )
    return tuple(found)


def no_schema(value: object) -> InputError:
    """Return the error of an argument that is not a schema, or of a text in place of its path."""
    what = f"of type {type(value).__name__}, which is not a schema"
    text = ""
    if isinstance(value, str) and "\n" in value:
        what = "a text of several lines, not the path of a file"
        text = " For a text: margrave.Schema.from_toml(text)."
    return InputError(
        f"The schema is {what}.", remedy=f'Give margrave.Schema.load("schema.toml").{text}'
    )


def no_text(path: Path, content: bytes) -> SchemaError:
    """Return the error of a file named as a schema that is not text: often a release, which holds one."""
    if path.suffix.lower() == ".margrave":
        return SchemaError(
            f"{path} is a release, which has its schema inside.",
            remedy=f"Write that to a file, and name the file: margrave schema of {path} -o {path.stem}.toml (in Python"
            " margrave.Release.load(...).schema).",
        )
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
    if re.search(rb"^\s*\[+\s*(schema|column)\s*\]", content, re.MULTILINE):
        return SchemaError(
            f"The schema {path} is not text in UTF-8 (line {line}).",
            remedy="Save it as UTF-8: the editor offers it as the encoding.",
        )
    return SchemaError(
        f"{path} is not a schema, which is text in UTF-8.",
        remedy="Name a .toml file; margrave schema draft writes one.",
    )
