"""Values of a column in the user's terms, as codes: what ``condition`` is given."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from margrave.errors import InputError
from margrave.schema import Column, Schema
from margrave.schema.column import some_of
from margrave.typing import Attribute

Value = str | int | float | bool | date | datetime | None
Condition = Value | list[Value] | tuple[Value, Value]

ON_A_LINE = ("integer", "real", "date", "timestamp", "coded")


def codes_of(schema: Schema, attribute: Attribute, wanted: Condition) -> tuple[int, ...]:
    """The codes that a value, a list of values, or a range (low, high) stands for.

    >>> codes_of(Schema.coded({"age": 9}), "age", (3, 5)), codes_of(Schema.coded({"age": 9}), "age", [8, 2])
    ((3, 4, 5), (2, 8))
    """
    column = schema.column(attribute)
    if isinstance(wanted, tuple):
        if len(wanted) != 2:
            raise InputError(
                f"The range for column {attribute!r} does not have two ends.", remedy="Give (low, high)."
            )
        return _range(column, *wanted)
    values = wanted if isinstance(wanted, list) else [wanted]
    if not values:
        raise InputError(f"Column {attribute!r} is held to no value at all.", remedy="Name at least one.")
    return tuple(sorted({_code(column, value) for value in values}))


def _code(column: Column, value: Value) -> int:
    code, outside = _encode(column, value)
    if outside:
        raise InputError(
            f"Column {column.name!r} has no value {value!r} in the schema.",
            remedy=f"It has {some_of(column.labels())}.",
        )
    return code


def _range(column: Column, low: Value, high: Value) -> tuple[int, ...]:
    """Every code from the one that holds ``low`` to the one that holds ``high``; ends beyond the bounds move in."""
    if column.kind == "ordinal":
        first, last = _code(column, low), _code(column, high)
    elif column.kind in ON_A_LINE:
        clipping: Any = replace(column, outside="clip")  # type: ignore[type-var]
        (first, below), (last, above) = _encode(clipping, low), _encode(clipping, high)
        if below and above and first == last:
            raise InputError(f"The range for column {column.name!r} lies outside its bounds.")
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
