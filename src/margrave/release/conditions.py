"""Values of a column in the user's terms, as codes: what ``condition`` is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from margrave.errors import InputError, did_you_mean
from margrave.schema import Categorical, Column, Ordinal, Schema
from margrave.schema.column import abbreviate
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.numeric import Numeric
from margrave.schema.parts import TimePart
from margrave.schema.reading_output import for_reading_output
from margrave.types import Attribute

Value = str | int | float | bool | date | datetime | None
#: A value, a list of values, or a range that includes its ends; an end that is None is open.
Condition = Value | list[Value] | tuple[Value, Value]


def codes_by_column(
    schema: Schema, values: Mapping[Attribute, Condition]
) -> dict[Attribute, tuple[int, ...]]:
    """Return the codes of the conditions on several columns."""
    if not isinstance(values, Mapping):
        raise InputError(
            f"The condition is of type {type(values).__name__}, not a mapping of columns to values.",
            remedy='Give such as {"sex": "F", "age": (30, 40)}.',
        )
    return {a: codes_of(schema, a, wanted) for a, wanted in values.items()}


def codes_of(schema: Schema, attribute: Attribute, condition: Condition) -> tuple[int, ...]:
    """Return the codes of a value, a list of values, or a range (low, high) with None for an open
    end.
    """
    column = for_reading_output(schema.column(attribute))
    if isinstance(condition, tuple):
        if len(condition) != 2 or condition == (None, None):
            raise InputError(
                f"The range for column {attribute!r} does not have two ends.",
                remedy="Give (low, high), None for one that is open.",
            )
        return _range(column, *condition)
    values = condition if isinstance(condition, list) else [condition]
    if not values:
        raise InputError(
            f"Column {attribute!r} is held to no value at all.", remedy="Name at least one."
        )
    return tuple(sorted({_code(column, value) for value in values}))


def widened(schema: Schema, attribute: Attribute, condition: Condition) -> str | None:
    """Return the condition that bins allow, in words, if it is wider than the given one; else None.

    A binned column has no finer codes: a value stands for its whole bin, a range for the bins it
    touches.

    >>> from margrave.schema import Integer
    >>> schema = Schema([Integer("age", 0, 99, bins=20)])
    >>> widened(schema, "age", ("30", "40")), widened(schema, "age", 32), widened(schema, "age", (30, 44))
    ('30 to 44', '30 to 34', None)
    """
    column = for_reading_output(schema.column(attribute))
    if not isinstance(column, NUMERIC_KINDS):
        return None
    taken = [c for c in codes_of(schema, attribute, condition) if c < column.cells.count]
    spans = [column.cells.spans()[c] for c in taken]
    if not isinstance(condition, tuple):
        labels = column.labels()
        return ", ".join(labels[c] for c in taken) if any(s[0] != s[1] for s in spans) else None
    low, high = min(s[0] for s in spans), max(s[1] for s in spans)
    first, last = condition
    whole = (first is None or _point(column, first) <= low) and (
        last is None or high <= _point(column, last)
    )
    return None if whole else f"{_shown(column, low)} to {_shown(column, high)}"


def _point(column: Numeric, value: Value) -> float:
    return float(column.points(pa.array([value]))[0][0])


def _shown(column: Numeric, point: float) -> str:
    value = column.written(np.array([point]), np.array([False]))[0].as_py()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _code(column: Column, value: Value) -> int:
    code, outside = _encode(column, value)
    if outside and (meant := _other_case(column, value)) is not None:
        code, outside = _encode(column, meant)
    if outside:
        _check_within(column, value)
        raise InputError(
            f"Column {column.name!r} has no value {value!r} in the schema.",
            remedy=f"{did_you_mean(value, column.labels())}It has {abbreviate(column.labels())}.",
        )
    return code


def _check_within(column: Column, value: Value) -> None:
    """Raise ``InputError`` for a value beyond the bounds of a column on a line."""
    if not isinstance(column, NUMERIC_KINDS):
        return
    point, low, high = (_point(column, v) for v in (value, column.low, column.high))
    if point < low or point > high:
        end, bound = ("below the lower", low) if point < low else ("above the upper", high)
        raise InputError(
            f"The value {value!r} of column {column.name!r} is {end} bound, {_shown(column, bound)}.",
            remedy=f"Give a value from {_shown(column, low)} to {_shown(column, high)}.",
        )


def _other_case(column: Column, value: Value) -> str | None:
    if not isinstance(value, str) or not isinstance(column, Categorical | Ordinal):
        return None
    found = [c for c in column.categories if c.lower() == value.strip().lower()]
    return found[0] if len(found) == 1 else None


def _range(column: Column, low: Value, high: Value) -> tuple[int, ...]:
    on_a_line = ("integer", "real", "date", "timestamp", "elapsed", "coded")
    greatest = column.size - column.missing - 1
    if isinstance(column, Ordinal | TimePart):
        first, last = (
            (0 if low is None else _code(column, low)),
            (greatest if high is None else _code(column, high)),
        )
    elif column.kind in on_a_line:
        clipping: Any = replace(column, outside="clip")  # type: ignore[type-var]
        first, below = (0, True) if low is None else _encode(clipping, low)
        last, above = (greatest, True) if high is None else _encode(clipping, high)
        if below and above and first == last:
            raise InputError(
                f"The range for column {column.name!r} lies outside its bounds.",
                remedy=f"It has {abbreviate(column.labels())}.",
            )
    else:
        raise InputError(
            f"Column {column.name!r} has no order, so it takes no range.",
            remedy="List the values instead.",
        )
    if first > last:
        raise InputError(
            f"The range for column {column.name!r} ends before it begins.",
            remedy="Exchange its ends.",
        )
    return tuple(range(first, last + 1))


def _encode(column: Column, value: Value) -> tuple[int, bool]:
    try:
        encoded = column.encode(pa.array([value]))
    except pa.ArrowException:
        raise InputError(f"Column {column.name!r} cannot be held to {value!r}.") from None
    nowhere = bool(encoded.unreadable[0]) or (bool(encoded.empty[0]) and not column.missing)
    if nowhere:
        raise InputError(
            f"{value!r} is not a value of column {column.name!r}.",
            remedy=f"It has {abbreviate(column.labels())}.",
        )
    return int(encoded.codes[0]), bool(encoded.outside[0])
