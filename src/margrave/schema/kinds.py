"""The kinds of columns: one table of them, for the schema's file and for the check of a schema's columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from margrave.errors import SchemaError
from margrave.schema.categorical import Boolean, Categorical, Coded, Ordinal
from margrave.schema.column import Column
from margrave.schema.elapsed import Elapsed
from margrave.schema.learn import Learn
from margrave.schema.numeric import Date, Integer, Real, Timestamp
from margrave.schema.parts import Hour, Weekday

#: Each kind of a declared column, by its name in the schema's file. ``Learn`` is the kind of columns to learn.
KINDS: dict[str, type[Any]] = {
    c.kind: c
    for c in (
        Categorical,
        Ordinal,
        Boolean,
        Integer,
        Real,
        Date,
        Timestamp,
        Elapsed,
        Coded,
        Hour,
        Weekday,
    )
}


def checked_columns(value: Any) -> tuple[Column, ...]:
    """Return the columns of a schema."""
    one = isinstance(value, str | Mapping) or not isinstance(value, Iterable)
    listed = () if one else tuple(value)
    if one or not all(isinstance(column, (*KINDS.values(), Learn)) for column in listed):
        raise SchemaError(
            "The columns of the schema are not a list of columns.",
            remedy='Give Schema([Integer("age", 0, 99), ...]), or Schema.load("schema.toml").',
        )
    return listed
