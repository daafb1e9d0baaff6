"""Dates and times as the time since another column: a number in questions, a date or time in tables.

The model has the beginning of a stay and its length. Two noisy dates would often be in the wrong order.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import ClassVar

import pyarrow as pa

from margrave.schema import validators
from margrave.schema.numeric import UNITS, Date, Integer, Timestamp, check_format
from margrave.schema.parsing import EPOCH, Mask, numbers
from margrave.types import FloatArray


@dataclass(frozen=True)
class Elapsed(Integer):
    """The whole units of time since the date or time of another column of the row.

    In questions it is a whole number. Synthetic tables hold the date or time again: the other column's value and
    this number of units.

    Args:
        since: The column of dates or times that it counts from.
        unit: The unit of time: "day" for a column of dates; "second", "minute" or "hour" for one of times.
        format: The pattern of its dates and times in text, as of ``strptime``.

    A row without a value in ``since`` has none here either. With ``low=0`` the column is never before ``since``:
    ``outside`` says what becomes of rows in which it is.

    >>> Elapsed("left", 0, 6, since="came", bins=2).labels()
    ['0 to 2 days', '3 to 6 days']
    """

    since: str = ""
    unit: str = "day"
    format: str | None = None
    kind: ClassVar[str] = "elapsed"

    def __post_init__(self) -> None:
        check_since(self.name, self.since)
        if not isinstance(self.unit, str) or self.unit not in UNITS:
            raise validators.column_error(
                self.name, "unit is unknown.", f"Choose one of: {', '.join(UNITS)}."
            )
        check_format(self.name, self.format, datetime(2001, 12, 23, 4, 5, 6))
        super().__post_init__()

    def points(self, values: pa.Array) -> tuple[FloatArray, Mask]:
        """Return every number of units, NaN if it cannot be read, and which values are empty.

        In an array of floats, nulls are empty and NaN means that a value cannot be read.
        """
        if values.type != pa.float64():
            return numbers(values)
        empty = values.is_null().to_numpy(zero_copy_only=False)
        return values.to_numpy(zero_copy_only=False), empty

    def labels(self) -> list[str]:
        """Return the range of every cell, with the unit."""
        one = f"1 {self.unit}"
        labels = self.ranges(lambda v: str(int(v)), f" {self.unit}s")
        return [one if label == f"{one}s" else label for label in labels]

    @property
    def moments(self) -> Date | Timestamp:
        """A column that reads and writes its dates or times, with bounds of no meaning."""
        if self.unit == "day":
            return Date(self.name, EPOCH.date(), EPOCH.date(), format=self.format)
        return Timestamp(self.name, EPOCH, EPOCH, unit=self.unit, format=self.format)


def span_of(unit: str) -> tuple[float, float]:
    """Return the first and the last date that a table can hold, in units since 1970.

    >>> span_of("day")
    (-719162.0, 2932896.0)
    """
    days = UNITS["day"] // UNITS[unit]
    first, last = ((d - EPOCH.date()).days for d in (date.min, date.max))
    return float(first * days), float((last + 1) * days - 1)


def check_since(name: str, since: object) -> None:
    """Raise ``SchemaError`` unless an elapsed column names another column."""
    if not since or since == validators.name(name):
        raise validators.column_error(
            name, "it does not say since which column.", 'Write since = "admitted", say.'
        )
    validators.name(since, "column that time is counted from")


def since_of(column: object) -> str | None:
    """Return the column that a column counts time from; None for another kind."""
    return getattr(column, "since", None)
