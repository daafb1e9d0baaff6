"""Dates and times of many texts at once: those in plain forms by Arrow, the others one by one.

**Privacy:** values of rows, for their readers. Each text is read by itself alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from margrave.schema.parsing import (
    MOMENT,
    SPACES,
    TICKS,
    DateReader,
    Mask,
    are_empty,
    in_utc,
    plain,
    texts_to_read,
    unmarked,
)
from margrave.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Moments:
    """The moments of some texts.

    Args:
        times: The moments in UTC, in microseconds; NaT for a text that is not a date or time.
        offset: Whether a text states an offset from UTC, other than zero.
    """

    times: NDArray[np.datetime64]
    offset: bool = False

    @property
    def days(self) -> IntArray:
        """The ordinals of the days."""
        day_of_epoch = datetime(1970, 1, 1).toordinal()
        return self.times.astype("datetime64[D]").astype(np.int64) + day_of_epoch

    @property
    def unit(self) -> str:
        """The unit of the times: second, minute or hour; "" if all are midnights."""
        for name, unit in (("", "D"), ("hour", "h"), ("minute", "m")):
            if (self.times.astype(f"datetime64[{unit}]") == self.times).all():
                return name
        return "second"


def moments(array: pa.Array, seconds: int, read: DateReader) -> tuple[FloatArray, Mask]:
    """Return dates as whole numbers of units since 1970, NaN for a value that is not a date, and which rows are empty.

    Values with a time zone are taken in UTC.

    Args:
        array: The values.
        seconds: The length of a unit.
        read: The reader of texts.
    """
    array = plain(array)
    kind = array.type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return _of_texts(array, seconds, read)
    ticks = _ticks(kind)
    empty = array.is_null().to_numpy(zero_copy_only=False)
    bits = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    raw = pc.fill_null(array.view(bits), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    whole = raw * 86400 // seconds if ticks == 0 else raw // (ticks * seconds)
    return np.where(empty, np.nan, whole.astype(np.float64)), empty


def _of_texts(array: pa.Array, seconds: int, read: DateReader) -> tuple[FloatArray, Mask]:
    rows, texts = texts_to_read(array, marked=True)
    bare = pc.utf8_trim(texts, SPACES)
    times = moments_of(pc.fill_null(bare, ""), read).times
    objects = pc.fill_null(pc.starts_with(texts, MOMENT), False)
    if pc.any(objects).as_py():
        written = pc.utf8_trim(unmarked(texts.filter(objects)), SPACES)
        times[objects.to_numpy(zero_copy_only=False)] = moments_of(written, DateReader()).times
    units = times.astype(np.int64) // (seconds * TICKS["us"])
    values = np.where(np.isnat(times), np.nan, units.astype(np.float64))
    return values[rows], are_empty(bare)[rows]


def _ticks(kind: pa.DataType) -> int:
    if pa.types.is_date32(kind):
        return 0
    return TICKS["ms" if pa.types.is_date64(kind) else kind.unit]


def moments_of(texts: pa.Array, read: DateReader) -> Moments:
    """Return the moments of texts without blanks around them.

    Args:
        texts: Texts, of which none is null.
        read: The reader of a single one.

    Example:
        >>> found = moments_of(pa.array(["31/12/2023", "31/02/2023", "1/1/2024"]), DateReader("%d/%m/%Y"))
        >>> found.times.astype("datetime64[D]").tolist()
        [datetime.date(2023, 12, 31), None, datetime.date(2024, 1, 1)]
    """
    times, at_once = _plain_moments(texts, read)
    rest = texts.filter(pa.array(~at_once)).dictionary_encode()
    found = [read(text) for text in rest.dictionary.to_pylist()]
    in_order = [None if moment is None else in_utc(moment) for moment in found]
    times[~at_once] = np.array(in_order, dtype="datetime64[us]")[rest.indices.to_numpy()]
    return Moments(times, any(moment is not None and moment.utcoffset() for moment in found))


def _plain_moments(texts: pa.Array, read: DateReader) -> tuple[NDArray[np.datetime64], Mask]:
    """Return the moments of texts that have all their digits, NaT for others, and which these are."""
    form = _form(read)
    nothing = np.full(len(texts), np.datetime64("NaT"), dtype="datetime64[us]")
    if form is None or not len(texts):
        return nothing, np.zeros(len(texts), dtype=np.bool_)
    if read.pattern is None and (found := _iso_moments(texts, form)) is not None:
        return found
    fields = pc.extract_regex(texts, form)
    found = fields.is_valid().to_numpy(zero_copy_only=False)
    parts = {field.name: fields.field(field.name) for field in fields.type}

    def part(name: str, default: int = 0) -> IntArray:
        if name not in parts:
            return np.full(len(texts), default, dtype=np.int64)
        digits = parts[name]
        written = pc.if_else(pc.equal(pc.binary_length(digits), 0), str(default), digits)
        numbers = pc.fill_null(written, str(default)).cast(pa.int64())
        return np.asarray(numbers.to_numpy(zero_copy_only=False))

    years = part("Y", 1900)
    if "y" in parts:  # as strptime has it
        short = part("y")
        years = np.where(short < 69, 2000 + short, 1900 + short)
    months, days = part("m", 1), part("d", 1)
    found = found & (years > 0)
    month = ((years - 1970) * 12 + months - 1).astype("datetime64[M]")
    day = month.astype("datetime64[D]") + (days - 1)
    found &= day.astype("datetime64[M]") == month  # 31 February is a text of its own
    seconds = (part("H") * 60 + part("M")) * 60 + part("S")
    times = day.astype("datetime64[us]") + (seconds * 1_000_000).astype("timedelta64[us]")
    return np.where(found, times, nothing), found


def _iso_moments(texts: pa.Array, form: str) -> tuple[NDArray[np.datetime64], Mask] | None:
    """Return what ``_plain_moments`` does of ISO 8601; None if a text of the form is not a moment."""
    plain = pc.match_substring_regex(texts, form)
    try:
        times = pc.if_else(plain, texts, None).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:  # such as 31 February
        return None
    first = np.datetime64("0001-01-01")
    moments = np.array(times.to_numpy(zero_copy_only=False), dtype="datetime64[us]")
    found = plain.to_numpy(zero_copy_only=False) & (moments >= first)
    return np.where(found, moments, np.datetime64("NaT")), found


def _form(read: DateReader) -> str | None:
    """Return the expression of texts with all digits of a format; None if it has more than those."""
    groups = {
        "%Y": "(?P<Y>[0-9]{4})", "%y": "(?P<y>[0-9]{2})", "%m": "(?P<m>0[1-9]|1[0-2])",
        "%d": "(?P<d>0[1-9]|[12][0-9]|3[01])", "%H": "(?P<H>[01][0-9]|2[0-3])",
        "%M": "(?P<M>[0-5][0-9])", "%S": "(?P<S>[0-5][0-9])",
    }  # fmt: skip
    if read.pattern is None:
        date = "-".join(groups[p] for p in ("%Y", "%m", "%d"))
        return (
            rf"\A{date}(?:[ T]{groups['%H']}(?::{groups['%M']}(?::{groups['%S']}(?:\.0+)?)?)?)?\z"
        )
    pieces: list[Any] = re.split(r"(%.)", read.pattern)
    unknown = any(p.startswith("%") and p not in groups for p in pieces)
    if unknown or read.output or {"%Y", "%y"} <= set(pieces):
        return None
    return rf"\A{''.join(groups.get(p, re.escape(p)) for p in pieces)}\z"
