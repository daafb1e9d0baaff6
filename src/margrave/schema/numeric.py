"""Columns on a line between public bounds, cut into cells: whole and real numbers, dates, times.

Bins have equal width or given edges. ``atoms`` are point masses: values with a cell of their own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from margrave.schema import validators
from margrave.schema.bins import EXACT
from margrave.schema.line import Line, settle
from margrave.schema.parsing import EPOCH, DateReader, Mask, at_midnight, numbers, units_since
from margrave.schema.text_moments import moments
from margrave.types import FloatArray

UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


@dataclass(frozen=True)
class Integer(Line):
    """Whole numbers from ``low`` to ``high``; one code each if there are at most ``bins`` of them.

    >>> Integer("age", 0, 99, bins=3, atoms=[0]).labels()
    ['0', '1 to 32', '33 to 65', '66 to 99']
    >>> Integer("rooms", 1, 4).labels()
    ['1', '2', '3', '4']
    """

    name: str
    low: int
    high: int
    bins: int | None = None
    edges: Sequence[int] | None = None
    atoms: Sequence[int] = ()
    leaf_edges: Sequence[float] = ()
    leaf_weights: Sequence[float] = ()
    mean: Sequence[float] = ()
    missing: bool = False
    outside: str = ""
    kind: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        settle(self, lambda key, v: validators.whole(self.name, key, v, -EXACT + 1, EXACT - 1))

    def point(self, value: int | float) -> float:
        """Return the coordinate of a value."""
        return float(value)

    @property
    def type(self) -> pa.DataType:
        """Whole numbers."""
        return pa.int64()

    def labels(self) -> list[str]:
        """Return the range of every cell."""
        return self.ranges(lambda v: str(int(v)))

    def points(self, values: pa.Array) -> tuple[FloatArray, Mask]:
        """Return every value as a number, NaN if it cannot be read, and which values are empty."""
        return numbers(values)

    def written(self, values: FloatArray, null: Mask) -> pa.Array:
        """Return points of the line as whole numbers."""
        return pa.array(values.astype(np.int64), pa.int64(), mask=null)


@dataclass(frozen=True)
class Real(Line):
    """Real numbers from ``low`` to ``high``; decoded values have ``decimals`` decimals.

    >>> Real("price", 0, 10, bins=2, atoms=[0]).labels()
    ['0', '(0, 5)', '[5, 10]']
    """

    name: str
    low: float
    high: float
    bins: int | None = None
    edges: Sequence[float] | None = None
    atoms: Sequence[float] = ()
    leaf_edges: Sequence[float] = ()
    leaf_weights: Sequence[float] = ()
    mean: Sequence[float] = ()
    decimals: int | None = None
    missing: bool = False
    outside: str = ""
    kind: ClassVar[str] = "real"
    whole: ClassVar[bool] = False

    def __post_init__(self) -> None:
        settle(self, lambda key, v: validators.real(self.name, key, v))
        if self.low == self.high:
            raise validators.column_error(
                self.name, "low equals high.", "Give it two bounds, or leave the column out."
            )
        if self.decimals is not None:
            validators.whole(self.name, "decimals", self.decimals, 0, 15)
            if max(abs(self.low), abs(self.high)) * 10**self.decimals > EXACT:
                raise validators.column_error(
                    self.name, "decimals go beyond the precision of its bounds.", "Give fewer."
                )
        if (np.diff(self.cells.edges) <= 0).any():
            raise validators.column_error(
                self.name, "its bounds are too close for so many bins.", "Give it fewer bins."
            )

    def _decimals(self) -> int | None:
        return self.decimals

    def point(self, value: int | float) -> float:
        """Return the coordinate of a value."""
        return float(value)

    @property
    def type(self) -> pa.DataType:
        """Real numbers of 64 bits."""
        return pa.float64()

    def labels(self) -> list[str]:
        """Return the interval of every cell."""
        short = [f"{e:.6g}" for e in self.cells.edges]
        return self.ranges(repr if len(set(short)) < len(short) else lambda v: f"{v:.6g}")

    def points(self, values: pa.Array) -> tuple[FloatArray, Mask]:
        """Return every value as a number, NaN if it cannot be read, and which values are empty."""
        return numbers(values)

    def written(self, values: FloatArray, null: Mask) -> pa.Array:
        """Return points of the line as they are."""
        return pa.array(values, pa.float64(), mask=null)


@dataclass(frozen=True)
class Date(Line):
    """Days from ``low`` to ``high``. Text is read in ISO 8601, or to ``format`` (as of ``strptime``).

    >>> Date("visit", date(2020, 1, 1), date(2020, 12, 31), bins=2).labels()
    ['2020-01-01 to 2020-07-01', '2020-07-02 to 2020-12-31']
    """

    name: str
    low: date
    high: date
    bins: int | None = None
    edges: Sequence[date] | None = None
    atoms: Sequence[date] = ()
    leaf_edges: Sequence[float] = ()
    leaf_weights: Sequence[float] = ()
    mean: Sequence[float] = ()
    format: str | None = None
    missing: bool = False
    outside: str = ""
    kind: ClassVar[str] = "date"

    def __post_init__(self) -> None:
        settle(self, lambda key, v: _day(self.name, key, v))
        check_format(self.name, self.format, datetime(2001, 12, 23))

    def point(self, value: date) -> float:
        """Return the coordinate of a value: days since 1970."""
        return float((datetime(value.year, value.month, value.day) - EPOCH).days)

    @property
    def type(self) -> pa.DataType:
        """Days."""
        return pa.date32()

    def labels(self) -> list[str]:
        """Return the range of every cell."""
        return self.ranges(lambda v: (EPOCH + timedelta(days=v)).date().isoformat())

    def points(self, values: pa.Array) -> tuple[FloatArray, Mask]:
        """Return the coordinate of every value, NaN if it cannot be read, and which values are empty."""
        return moments(values, 86400, self._reader)

    @property
    def _reader(self) -> DateReader:
        return DateReader(self.format)

    def written(self, values: FloatArray, null: Mask) -> pa.Array:
        """Return points of the line (days since 1970) as dates."""
        return pa.array(values.astype(np.int32), pa.int32(), mask=null).cast(pa.date32())


@dataclass(frozen=True)
class Timestamp(Line):
    """Times from ``low`` to ``high``, whole multiples of ``unit`` (second, minute, hour or day), without a time zone.

    Values that carry a time zone are taken in UTC; those between two multiples are rounded down. A date as ``high`` is
    the end of its day.

    >>> Timestamp("seen", datetime(2020, 1, 1), datetime(2020, 1, 1, 3), unit="hour", bins=2).labels()
    ['2020-01-01 00:00 to 2020-01-01 01:00', '2020-01-01 02:00 to 2020-01-01 03:00']
    """

    name: str
    low: datetime
    high: datetime
    bins: int | None = None
    edges: Sequence[datetime] | None = None
    atoms: Sequence[datetime] = ()
    leaf_edges: Sequence[float] = ()
    leaf_weights: Sequence[float] = ()
    mean: Sequence[float] = ()
    unit: str = "second"
    format: str | None = None
    missing: bool = False
    outside: str = ""
    kind: ClassVar[str] = "timestamp"

    def __post_init__(self) -> None:
        validators.name(self.name)
        if not isinstance(self.unit, str) or self.unit not in UNITS:
            raise validators.column_error(
                self.name, "unit is unknown.", f"Choose one of: {', '.join(UNITS)}."
            )
        settle(self, lambda key, v: _moment(self.name, key, v, self.unit, self._seconds))
        check_format(self.name, self.format, datetime(2001, 12, 23, 4, 5, 6))

    @property
    def _seconds(self) -> int:
        return UNITS[self.unit]

    def point(self, value: date) -> float:
        """Return the coordinate of a value: units since 1970, rounded down."""
        return units_since(at_midnight(value), self._seconds)

    @property
    def type(self) -> pa.DataType:
        """Microseconds, without a time zone."""
        return pa.timestamp("us")

    def labels(self) -> list[str]:
        """Return the range of every cell."""
        shown = "seconds" if self._seconds == 1 else "minutes"
        return self.ranges(
            lambda v: (EPOCH + timedelta(seconds=v * self._seconds)).isoformat(" ", timespec=shown),
        )

    def points(self, values: pa.Array) -> tuple[FloatArray, Mask]:
        """Return the coordinate of every value, NaN if it cannot be read, and which values are empty."""
        return moments(values, self._seconds, self._reader)

    @property
    def _reader(self) -> DateReader:
        return DateReader(self.format)

    def written(self, values: FloatArray, null: Mask) -> pa.Array:
        """Return points of the line (units since 1970) as times."""
        ticks = values.astype(np.int64) * (self._seconds * 1_000_000)
        return pa.array(ticks, pa.int64(), mask=null).cast(self.type)


Numeric = Integer | Real | Date | Timestamp


def _day(column: str, key: str, value: Any) -> date:
    if isinstance(value, datetime) or not isinstance(value, date):
        meant = _meant(value)
        raise validators.column_error(
            column,
            f"{key} is not a date.",
            f"Write {key} = {meant} in a file, without quotes, or"
            f" {key}=date({meant.year}, {meant.month}, {meant.day}) in Python.",
        )
    return value


def _meant(value: Any) -> date:
    """Return the date that a text has, or one to show the form."""
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        return date(2020, 12, 31)


def _moment(column: str, key: str, value: Any, unit: str, seconds: int) -> datetime:
    if isinstance(value, date) and not isinstance(value, datetime):
        last = UNITS["day"] - seconds if key == "high" else 0  # the highest day counts to its end
        value = at_midnight(value) + timedelta(seconds=last)
    if not isinstance(value, datetime):
        raise validators.column_error(
            column,
            f"{key} is not a time.",
            f"Write {key} = 2020-12-31T23:00:00 in a file, without quotes, or {key}=datetime(2020, 12, 31, 23) in"
            " Python.",
        )
    if value.tzinfo is not None:
        raise validators.column_error(
            column, f"{key} has a time zone.", "Write the time in UTC, without an offset."
        )
    since = value - EPOCH
    if since.microseconds or (since.days * 86400 + since.seconds) % seconds:
        raise validators.column_error(
            column,
            f"{key} is not a multiple of its unit, the {unit}.",
            "Round it, or choose a smaller unit.",
        )
    return value


def check_format(column: str, pattern: Any, example: datetime) -> None:
    """Raise ``SchemaError`` unless a pattern of dates reads what it writes."""
    if pattern is None:
        return
    try:
        read = datetime.strptime(example.strftime(pattern), pattern)
    except (ValueError, TypeError, OverflowError, UnicodeError, re.error):
        read = None
    if read is None or read.date() != example.date():
        raise validators.column_error(
            column, "format does not describe a date.", 'Write format = "%d/%m/%Y", say.'
        )
