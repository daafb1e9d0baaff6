"""Values of elapsed columns: from two dates of a row to a number, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from margrave.schema import validators
from margrave.schema.column import Column
from margrave.schema.elapsed import Elapsed, since_of, span_of
from margrave.schema.learn import Learn
from margrave.schema.missing_codes import stand_for_missing
from margrave.schema.numeric import UNITS, Date, Timestamp
from margrave.schema.parsing import Mask, chunks
from margrave.schema.parts import source_name
from margrave.schema.reading_output import for_reading_output
from margrave.schema.sources import ColumnSource
from margrave.types import FloatArray

Pieces = Mapping[str, list[pa.Array]]


def with_settled_elapsed(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return the columns, in which elapsed ones may be missing where the column that they count from may be.

    Raises:
        SchemaError: If a column counts time from one that is not a column of dates or times.
    """
    by_name = {c.name: c for c in columns}
    return tuple(_settled(c, by_name) if since_of(c) else c for c in columns)


def _settled(column: Column, by_name: Mapping[str, Column]) -> Column:
    start = by_name.get(str(since_of(column)))
    if start is None or start.kind not in (Date.kind, Timestamp.kind):
        raise validators.column_error(
            column.name,
            f"it is the time since {since_of(column)!r}, which is not a column of dates or times of the schema.",
            "Keep that column as a date or timestamp, or write one of these kinds here and take since out.",
        )
    if isinstance(column, Elapsed) and start.missing and not column.missing:
        return replace(column, missing=True)
    return column


def names_behind(column: Column) -> tuple[str, ...]:
    """Return the names of a column, of the table's column that it is read from, and of the one that it counts from."""
    return column.name, source_name(column), since_of(column) or column.name


def names_to_read(columns: Sequence[Column], names: Iterable[str]) -> list[str]:
    """Return names of a table's columns with those of the columns that they count from."""
    wanted = list(names)
    starts = [since for c in columns if c.name in wanted and (since := since_of(c))]
    return list(dict.fromkeys([*wanted, *starts]))


def with_elapsed(
    pieces: Pieces, columns: Sequence[Column], sources: Mapping[str, ColumnSource]
) -> dict[str, list[pa.Array]]:
    """Return values of a table's columns, in which the time since another column replaces a date or time.

    Args:
        pieces: The columns' values, with those of the columns that they count from.
        columns: The columns of the schema.
        sources: The sources of the columns, with their missing-value codes.

    Returns:
        The same values. Those of elapsed columns are floats: null for an empty date, NaN for one that cannot be read.
    """
    by_name = {c.name: c for c in columns}
    found = dict(pieces)
    for column in columns:
        if (since := since_of(column)) is None or column.name not in pieces:
            continue
        reader = _reader(column)
        start, first = _line_of(by_name[since]), ColumnSource()
        begun, unbegun = _read(start, pieces[since], sources.get(since, first))
        ended, unended = _read(reader.moments, pieces[column.name], sources.get(column.name, first))
        units = ended - _in_units(start, begun, reader.unit)
        found[column.name] = [pa.array(units, pa.float64(), mask=unbegun | unended)]
    return found


def with_moments(table: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """Return a table in which numbers of elapsed columns are dates and times again.

    A sum beyond the calendar is its last or first date. A row without a date to count from has none.
    """
    by_name = {c.name: for_reading_output(c) for c in columns}
    for column in (c for c in columns if isinstance(c, Elapsed) and c.name in table.column_names):
        start = _line_of(by_name[column.since])
        begun, unbegun = _read(start, chunks(table[column.since]), ColumnSource())
        units = np.concatenate(
            [
                np.empty(0),
                *(
                    c.to_numpy(zero_copy_only=False)
                    for c in chunks(table[column.name].cast(pa.float64()))
                ),
            ]
        )
        empty = unbegun | np.isnan(begun) | np.isnan(units)
        points = np.where(empty, 0.0, _in_units(start, begun, column.unit) + units)
        written = column.moments.written(np.clip(points, *span_of(column.unit)), empty)
        at = table.column_names.index(column.name)
        table = table.set_column(at, pa.field(column.name, written.type), written)
    return table


def as_written(column: Column) -> Column:
    """Return a column as synthetic tables have it: one of dates or times for an elapsed one, to be learned."""
    if not since_of(column):
        return column
    line = _reader(column).moments
    return Learn(column.name, line.kind, unit=getattr(line, "unit", None), format=line.format)


def _reader(column: Any) -> Elapsed:
    reader = column.reader if isinstance(column, Learn) else column
    assert isinstance(reader, Elapsed)
    return reader


def _line_of(column: Any) -> Date | Timestamp:
    line = column.reader if isinstance(column, Learn) else column
    assert isinstance(line, Date | Timestamp)
    return line


def _read(
    line: Date | Timestamp, pieces: Sequence[pa.Array], source: ColumnSource
) -> tuple[FloatArray, Mask]:
    read = [_points(line, piece, source.missing_codes) for piece in pieces]
    points = np.concatenate([np.empty(0), *(p for p, _ in read)])
    return points, np.concatenate([np.empty(0, np.bool_), *(e for _, e in read)])


def _points(
    line: Date | Timestamp, piece: pa.Array, missing_codes: Sequence[str]
) -> tuple[FloatArray, Mask]:
    points, empty = line.points(piece)
    if missing_codes:
        empty = empty | stand_for_missing(line, piece, missing_codes)
    return points, empty


def _in_units(line: Date | Timestamp, points: FloatArray, unit: str) -> FloatArray:
    """Return points of a line in whole units of another length, rounded down."""
    seconds = UNITS["day"] if isinstance(line, Date) else UNITS[line.unit]
    return np.asarray(np.floor_divide(points * seconds, UNITS[unit]))
