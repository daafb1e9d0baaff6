"""Hours of the day and days of the week of a column of dates or times: parts with codes of their own.

A part is a column of the schema, and not of the table: it is read from the values of another column. In
synthetic tables the two are one column again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

import numpy as np
import pyarrow as pa

from margrave.schema import validators
from margrave.schema.categorical import Lookup, encode_texts, spelled
from margrave.schema.column import Column, Encoded, set_fields, with_missing, with_missing_code
from margrave.schema.learn import Learn
from margrave.schema.numeric import Date, Timestamp, check_format
from margrave.schema.parsing import DateReader
from margrave.schema.text_moments import moments
from margrave.types import IntArray


@dataclass(frozen=True)
class TimePart(ABC):
    """A part of the dates or times of another column.

    Args:
        name: The part's name, such as "pickup.hour".
        part_of: The table's column that it is read from.
        format: The pattern of dates and times in text, as of ``strptime``.
        missing: Whether values may be missing.

    If ``part_of`` is a column of the schema too, ``format`` and ``missing`` are those of that column.
    """

    name: str
    part_of: str
    format: str | None = None
    missing: bool = False
    #: The words of the codes.
    words: ClassVar[tuple[str, ...]] = ()
    kind: ClassVar[str] = ""
    outside: ClassVar[str] = "clip"

    def __post_init__(self) -> None:
        name = validators.name(self.name)
        validators.name(self.part_of, "column that a part is read from")
        set_fields(self, missing=validators.flag(name, "missing", self.missing))
        check_format(name, self.format, datetime(2001, 12, 23, 4, 5, 6))

    @property
    def size(self) -> int:
        """The values of the part and the missing state."""
        return len(self.words) + self.missing

    @property
    def type(self) -> pa.DataType:
        """Text."""
        return pa.string()

    def labels(self) -> list[str]:
        """Return the values of the part in words."""
        return with_missing(list(self.words), self.missing)

    def encode(self, values: pa.Array) -> Encoded:
        """Return the code of the part of every date or time."""
        seconds, empty = moments(values, 1, DateReader(self.format))
        unreadable = np.isnan(seconds)
        codes = self.codes_at(np.where(unreadable, 0, seconds).astype(np.int64))
        nothing = np.zeros(len(codes), dtype=np.bool_)
        home = len(self.words) if self.missing else None
        return with_missing_code(codes, empty, nothing, unreadable, home)

    @staticmethod
    @abstractmethod
    def codes_at(seconds: IntArray) -> IntArray:
        """Return the code of every moment, given in seconds since 1970."""

    def decode(self, codes: IntArray, rng: np.random.Generator) -> pa.Array:
        """Return the words of every code."""
        return spelled(self.words, self.missing, codes, pa.string())


@dataclass(frozen=True)
class Hour(TimePart):
    """The hour of the day of a column of times.

    >>> Hour("seen.hour", "seen").encode(pa.array(["2020-01-01 17:59", "2020-01-02"])).codes.tolist()
    [17, 0]
    """

    words: ClassVar[tuple[str, ...]] = tuple(f"{hour:02}:00" for hour in range(24))
    kind: ClassVar[str] = "hour"

    @staticmethod
    def codes_at(seconds: IntArray) -> IntArray:
        """Return the hour of every moment, 0 to 23."""
        return seconds // 3600 % 24


@dataclass(frozen=True)
class Weekday(TimePart):
    """The day of the week of a column of dates or times.

    >>> Weekday("seen.weekday", "seen").encode(pa.array(["2020-01-01", "2020-01-05"])).codes.tolist()
    [2, 6]
    """

    words: ClassVar[tuple[str, ...]] = (
        "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
    )  # fmt: skip
    kind: ClassVar[str] = "weekday"

    @staticmethod
    def codes_at(seconds: IntArray) -> IntArray:
        """Return the weekday of every moment, 0 for Monday."""
        return (seconds // 86400 + 3) % 7


class _Words(TimePart):
    """A part that is read from its words, or the number of its code, as well as from dates and times."""

    def encode(self, values: pa.Array) -> Encoded:
        """Return the code of every value."""
        by_time = super().encode(values)
        short = Lookup((*self.words, *map(str, range(len(self.words)))))

        def find(text: str) -> int | None:
            place = short(text.strip().capitalize())
            return None if place is None else place % len(self.words)

        home = len(self.words) if self.missing else None
        by_word = encode_texts(values, find, home or 0, home)
        named = ~by_word.outside & ~by_word.empty
        return replace(
            by_time,
            codes=np.where(named, by_word.codes, by_time.codes),
            unreadable=by_time.unreadable & ~named,
        )


class _HourOut(_Words, Hour):
    """An hour that is read from its words too."""


class _WeekdayOut(_Words, Weekday):
    """A weekday that is read from its words too."""


def with_words(part: TimePart, part_of: str) -> TimePart:
    """Return the part as a reader of its words too, in a column ``part_of``."""
    made = _HourOut if isinstance(part, Hour) else _WeekdayOut
    return made(part.name, part_of, part.format, part.missing)


def parts_of(column: Column, names: Collection[str]) -> list[Column]:
    """Return the hour and the weekday of a column of times, unless the table has columns of their names.

    >>> [c.name for c in parts_of(Learn("seen", "timestamp"), ["seen"])]
    ['seen.hour', 'seen.weekday']
    """
    if column.kind != Timestamp.kind:
        return []
    parts = (of(f"{column.name}.{of.kind}", column.name, missing=True) for of in (Hour, Weekday))
    return [part for part in parts if part.name not in names]


def source_name(column: Column) -> str:
    """Return the name of the table's column that a column is read from."""
    return column.part_of if isinstance(column, TimePart) else column.name


def functions_of(columns: Sequence[Column]) -> dict[tuple[str, str], str]:
    """Return the names of parts by function and column.

    >>> functions_of([Hour("pickup.hour", "pickup")])
    {('hour', 'pickup'): 'pickup.hour'}
    """
    return {(c.kind, c.part_of): c.name for c in columns if isinstance(c, TimePart)}


def parts_by_column(columns: Sequence[Column]) -> dict[str, tuple[TimePart, ...]]:
    """Return the parts of each column that has some, by its name."""
    names = {c.name for c in columns if not isinstance(c, TimePart)}
    found: dict[str, tuple[TimePart, ...]] = {}
    for part in (c for c in columns if isinstance(c, TimePart) and c.part_of in names):
        found[part.part_of] = (*found.get(part.part_of, ()), part)
    return found


def with_settled_parts(columns: Sequence[Column], person: str | None) -> tuple[Column, ...]:
    """Return the columns, in which parts have the format and the missing state of the column that they are of.

    Raises:
        SchemaError: If a part is of a column without such a part, or a column has one part twice.
    """
    by_name = {c.name: c for c in columns}
    parts = [c for c in columns if isinstance(c, TimePart)]
    seen: Mapping[tuple[str, str], str] = {(p.part_of, p.kind): p.name for p in reversed(parts)}
    for part in parts:
        first = seen[part.part_of, part.kind]
        if first != part.name:
            raise validators.column_error(
                part.name, f"{first!r} is the same part.", "Keep one of the two."
            )
        if part.part_of == part.name and not isinstance(part, _Words):
            raise validators.column_error(
                part.name, "it is a part of itself.", f'Call it "{part.part_of}.{part.kind}".'
            )
        if part.part_of == person:
            raise validators.column_error(
                part.name, "it is a part of the person ID column.", "Take it out."
            )
        whole = by_name.get(part.part_of)
        if whole not in (None, part) and not _has_part(whole, part):
            raise validators.column_error(
                part.name,
                f"{part.part_of!r} has no {part.kind}.",
                "An hour is part of a timestamp of seconds, minutes or hours; a weekday also of a date.",
            )
    return tuple(
        _settled(c, by_name.get(c.part_of)) if isinstance(c, TimePart) else c for c in columns
    )


def _has_part(column: Column, part: TimePart) -> bool:
    if not isinstance(column, Date | Timestamp | Learn):
        return False
    if column.kind == Timestamp.kind:
        return not isinstance(part, Hour) or getattr(column, "unit", None) != "day"
    return column.kind == Date.kind and isinstance(part, Weekday)


def _settled(part: TimePart, whole: Column | None) -> TimePart:
    if not isinstance(whole, Date | Timestamp | Learn):
        return part
    return replace(part, format=whole.format, missing=whole.missing)
