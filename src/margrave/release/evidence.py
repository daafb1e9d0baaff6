"""Values of a column in the user's terms, as codes: what ``condition`` is given."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from margrave.errors import InputError
from margrave.schema import Categorical, Column, Ordinal, Schema
from margrave.schema.column import some_of
from margrave.schema.elements import LINES
from margrave.schema.numeric import Numeric, reading_output
from margrave.typing import Attribute

Value = str | int | float | bool | date | datetime | None
Condition = Value | list[Value] | tuple[Value, Value]
"""A value, a list of values, or a range whose ends belong to it; an end that is None is open."""

ON_A_LINE = ("integer", "real", "date", "timestamp", "coded")


def codes_of(schema: Schema, attribute: Attribute, wanted: Condition) -> tuple[int, ...]:
    """The codes that a value, a list of values, or a range (low, high) stands for, of which one end may be None.

    Dates may be written in ISO 8601, as all that margrave shows, or to the column's ``format``. A category that the
    column does not have as it is written is the one that differs by case alone, if that is one.

    >>> codes_of(Schema.coded({"age": 9}), "age", (3, 5)), codes_of(Schema.coded({"age": 9}), "age", [8, 2])
    ((3, 4, 5), (2, 8))
    """
    column = reading_output(schema.column(attribute))
    if isinstance(wanted, tuple):
        if len(wanted) != 2 or wanted == (None, None):
            raise InputError(
                f"The range for column {attribute!r} does not have two ends.",
                remedy="Give (low, high), None for one that is open.",
            )
        return _range(column, *wanted)
    values = wanted if isinstance(wanted, list) else [wanted]
    if not values:
        raise InputError(f"Column {attribute!r} is held to no value at all.", remedy="Name at least one.")
    return tuple(sorted({_code(column, value) for value in values}))


def widened(schema: Schema, attribute: Attribute, wanted: Condition) -> str | None:
    """What a column on a line is held to, in words, where that is more than was asked; else None.

    Such a column knows its bins and nothing finer: a value means its whole bin, and a range the bins that it touches.

    >>> from margrave.schema import Integer
    >>> schema = Schema([Integer("age", 0, 99, bins=20)])
    >>> widened(schema, "age", ("30", "40")), widened(schema, "age", 32), widened(schema, "age", (30, 44))
    ('30 to 44', '30 to 34', None)
    """
    column = reading_output(schema.column(attribute))
    if not isinstance(column, LINES):
        return None
    taken = [c for c in codes_of(schema, attribute, wanted) if c < column.cells.count]
    spans = [column.cells.spans()[c] for c in taken]
    if not isinstance(wanted, tuple):
        labels = column.labels()
        return ", ".join(labels[c] for c in taken) if any(s[0] != s[1] for s in spans) else None
    low, high = min(s[0] for s in spans), max(s[1] for s in spans)
    first, last = wanted
    whole = (first is None or _point(column, first) <= low) and (last is None or high <= _point(column, last))
    return None if whole else f"{_shown(column, low)} to {_shown(column, high)}"


def _point(column: Numeric, value: Value) -> float:
    return float(column.points(pa.array([value]))[0][0])


def _shown(column: Numeric, point: float) -> str:
    """A point of a column's line, as its labels write it."""
    value = column.written(np.array([point]), np.array([False]))[0].as_py()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _code(column: Column, value: Value) -> int:
    code, outside = _encode(column, value)
    if outside and (meant := _other_case(column, value)) is not None:
        code, outside = _encode(column, meant)
    if outside:
        raise InputError(
            f"Column {column.name!r} has no value {value!r} in the schema.",
            remedy=f"It has {some_of(column.labels())}.",
        )
    return code


def _other_case(column: Column, value: Value) -> str | None:
    """The one value that is this one but for case, if there is one: an analysis takes it likewise."""
    if not isinstance(value, str) or not isinstance(column, Categorical | Ordinal):
        return None
    found = [c for c in column.categories if c.lower() == value.strip().lower()]
    return found[0] if len(found) == 1 else None


def _range(column: Column, low: Value, high: Value) -> tuple[int, ...]:
    """Every code from the one that holds ``low`` to the one that holds ``high``; ends beyond the bounds move in."""
    greatest = column.size - column.missing - 1
    if column.kind == "ordinal":
        first, last = (0 if low is None else _code(column, low)), (greatest if high is None else _code(column, high))
    elif column.kind in ON_A_LINE:
        clipping: Any = replace(column, outside="clip")  # type: ignore[type-var]
        first, below = (0, True) if low is None else _encode(clipping, low)
        last, above = (greatest, True) if high is None else _encode(clipping, high)
        if below and above and first == last:
            raise InputError(
                f"The range for column {column.name!r} lies outside its bounds.",
                remedy=f"It has {some_of(column.labels())}.",
            )
    else:
        raise InputError(
            f"Column {column.name!r} has no order, so it takes no range.", remedy="List the values instead."
        )
    if first > last:
        raise InputError(
            f"The range for column {column.name!r} ends before it begins.", remedy="Exchange its ends."
        )
    return tuple(range(first, last + 1))


def _encode(column: Column, value: Value) -> tuple[int, bool]:
    """The code of one value, and whether it lies outside the column."""
    try:
        encoded = column.encode(pa.array([value]))
    except pa.ArrowException:
        raise InputError(f"Column {column.name!r} cannot be held to {value!r}.") from None
    nowhere = bool(encoded.unreadable[0]) or (bool(encoded.empty[0]) and not column.missing)
    if nowhere:
        raise InputError(
            f"{value!r} is no value of column {column.name!r}.", remedy=f"It has {some_of(column.labels())}."
        )
    return int(encoded.codes[0]), bool(encoded.outside[0])
