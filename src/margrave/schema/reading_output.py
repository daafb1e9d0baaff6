"""Columns as readers of synthetic tables, and of the values that people name."""

from __future__ import annotations

from dataclasses import fields

from margrave.schema.column import Column
from margrave.schema.elapsed import Elapsed
from margrave.schema.numeric import Date, Timestamp
from margrave.schema.parsing import DateReader
from margrave.schema.parts import TimePart, with_words


class _DateOut(Date):
    """A date column that reads what margrave writes as well as its format."""

    @property
    def _reader(self) -> DateReader:
        return DateReader(self.format, output=True)


class _TimestampOut(Timestamp):
    """A column of times that reads what margrave writes as well as its format."""

    @property
    def _reader(self) -> DateReader:
        return DateReader(self.format, output=True)


class _ElapsedOut(Elapsed):
    """A column of elapsed time that reads the dates that margrave writes as well as its format."""

    @property
    def moments(self) -> Date | Timestamp:
        read = for_reading_output(super().moments)
        assert isinstance(read, Date | Timestamp)
        return read


def for_reading_output(column: Column, *, alone: bool = False) -> Column:
    """Return the column as a reader of synthetic tables, and of what people ask of them.

    margrave writes dates in ISO 8601 whatever a column's ``format``: that says how the real table writes them, Parquet
    has no patterns, and a pattern may drop part of a time. So the way back has to read both. The real table is still
    read by its format alone. Parts are read from their words too; one that stands
    ``alone`` is a column of the synthetic table.
    """
    kinds = ((Date, _DateOut), (Timestamp, _TimestampOut), (Elapsed, _ElapsedOut))
    made = next((out for kind, out in kinds if isinstance(column, kind)), None)
    if isinstance(column, TimePart):
        return with_words(column, column.name if alone else column.part_of)
    if made is None:
        return column
    read: Column = made(**{f.name: getattr(column, f.name) for f in fields(made)})
    return read
