"""Columns of rows as files of other programs hold them: six kinds of values, with titles and value labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from margrave.errors import InputError
from margrave.schema import Boolean, Categorical, Ordinal, Schema, Timestamp
from margrave.schema.column import Column
from margrave.schema.parsing import ODD, chunks, plain, texts_of


@dataclass(frozen=True)
class FileColumn:
    """One column of a file.

    Args:
        name: The column's name.
        values: Booleans, whole numbers (int64), real numbers (float64), days (date32), moments (timestamp in
            microseconds, UTC) or texts (large_string).
        title: What the column is, in words; "" if the schema has none.
        labels: What its categories mean, by their text; empty if the schema has none.
        categories: All of its categories, in the schema's order; empty for other kinds of columns.
        level: The level of measurement: "nominal", "ordinal", "scale", or "unknown" without a schema.
    """

    name: str
    values: pa.Array = field(repr=False)
    title: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    categories: tuple[str, ...] = ()
    level: str = "unknown"

    @property
    def has_numbers(self) -> bool:
        """True if its values are whole or real numbers."""
        return bool(pa.types.is_integer(self.values.type) or pa.types.is_floating(self.values.type))

    @property
    def has_texts(self) -> bool:
        """True if its values are texts."""
        return bool(pa.types.is_large_string(self.values.type))

    @property
    def has_moments(self) -> bool:
        """True if its values are days or moments."""
        return bool(pa.types.is_temporal(self.values.type))


def file_columns(
    table: pa.Table, schema: Schema | None, *, as_numbers: bool = False
) -> list[FileColumn]:
    """Return the columns of a table as a file holds them.

    Args:
        table: The rows.
        schema: Their schema, which has titles and value labels and defines which times are days.
        as_numbers: Whether categories that are all whole numbers become whole numbers.

    Raises:
        InputError: A column has values that are not booleans, numbers, dates, times or texts.

    Example:
        >>> found = file_columns(
        ...     pa.table({"sex": ["2", None]}), Schema([Categorical("sex", ["1", "2"])]), as_numbers=True
        ... )
        >>> found[0].values.to_pylist(), found[0].level
        ([2, None], 'nominal')
    """
    known = {} if schema is None else {c.name: c for c in schema.columns}
    made = []
    rows = plain_times(table, schema)
    for name, pieces in zip(rows.column_names, rows.columns, strict=True):
        column = known.get(name)
        values = pa.concat_arrays([_values(name, piece) for piece in chunks(pieces)])
        if as_numbers and has_whole_categories(column):
            values = _whole(values)
        described: dict[str, Any] = {}
        if schema is not None and column is not None:
            source = schema.source(column.name)
            described = {"title": source.title, "labels": source.labels, "level": _level(column)}
            described["categories"] = categories_of(column)
        made.append(FileColumn(name, values, **described))
    return made


def plain_times(table: pa.Table, schema: Schema | None) -> pa.Table:
    """Return the table with times in the shortest type that holds them: days if the schema's unit is a day, seconds."""
    known = () if schema is None else schema.columns
    days = {c.name for c in known if isinstance(c, Timestamp) and c.unit == "day"}
    for i, (name, kind) in enumerate(zip(table.schema.names, table.schema.types, strict=True)):
        if not pa.types.is_timestamp(kind):
            continue
        column = table.column(i)
        for short in (*([pa.date32()] if name in days else []), pa.timestamp("s", kind.tz)):
            shorter = column.cast(short, safe=False)
            if shorter.cast(kind).equals(column):  # else some value has more to it
                table = table.set_column(i, name, shorter)
                break
    return table


def categories_of(column: Column) -> tuple[str, ...]:
    """Return the categories of a column, the open one included; none for a column of another kind."""
    if not isinstance(column, Categorical | Ordinal):
        return ()
    return tuple(column.labels()[: column.size - column.missing])


def has_whole_categories(column: Column | None) -> bool:
    """Return True if all categories of a column are whole numbers of at most nine digits.

    >>> [has_whole_categories(Categorical("c", c)) for c in (["1", "-2"], ["01", "2"], ["1", "b"])]
    [True, False, False]
    """
    if not isinstance(column, Categorical | Ordinal):
        return False
    return _are_whole(pa.array(categories_of(column)))


def _values(name: str, piece: pa.Array) -> pa.Array:
    values = plain(piece)
    kind = values.type
    if pa.types.is_boolean(kind) or pa.types.is_date32(kind):
        return values
    if pa.types.is_date64(kind):
        return values.cast(pa.date32())
    if pa.types.is_timestamp(kind):
        return pc.floor_temporal(values, unit="microsecond").cast(pa.timestamp("us"))
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return values.cast(pa.int64())
    # A decimal number of more digits is kept as a text.
    max_digits = 15
    if pa.types.is_floating(kind) or (pa.types.is_decimal(kind) and kind.precision <= max_digits):
        numbers = values.cast(pa.float64())
        return pc.if_else(pc.is_nan(numbers), None, numbers)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return values.cast(pa.large_string())
    texts = texts_of(values).cast(pa.large_string())
    if pc.any(pc.starts_with(texts, ODD)).as_py():
        raise InputError(
            f"Column {name!r} has values of the type {kind}, which are not numbers, dates, times or texts.",
            remedy="Name a .parquet file, or leave the column out.",
        )
    return texts


def _whole(values: pa.Array) -> pa.Array:
    if not pa.types.is_large_string(values.type):
        return values
    return values.cast(pa.int64()) if _are_whole(values) else values


def _are_whole(texts: pa.Array) -> bool:
    # Stata has value labels for numbers of 32 bits.
    whole = pc.match_substring_regex(texts, r"\A(0|-?[1-9][0-9]{0,8})\z")
    return bool(pc.all(whole, min_count=0).as_py())


def _level(column: Column) -> str:
    if isinstance(column, Ordinal):
        return "ordinal"
    texts = isinstance(column, Boolean) or pa.types.is_string(column.type)
    return "nominal" if texts or column.kind == "coded" else "scale"
