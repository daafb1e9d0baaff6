"""Values as they arrive (text, numbers, dates, from any frame), read one by one by the schema's type.

Each reader is a function of the single value: what a value becomes depends on no other row, nor on the type that some
engine guessed for its column. So 3, 3.0 and "3" are one value. Nothing here raises for a value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from margrave.types import AnyArray, FloatArray

Mask = NDArray[np.bool_]

EPOCH = datetime(1970, 1, 1)
#: Missing-value codes that files use, in lower case.
MARKS = frozenset({"na", "n/a", "nan", "null", "?", "<na>", "nat"})
#: Characters that ``str.strip`` removes.
SPACES = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u2028\u2029\u202f\u205f\u3000"
)
#: Beginning of the dates and times that margrave writes.
WRITTEN = re.compile(r"\d{4}-\d\d-\d\d($|[ T]\d\d:)")
#: Prefix for a value without a text (nested, or not valid Unicode). Bytes that are not a text
#: follow it in hexadecimal, so that different ones stay different.
ODD = "\x00?"
#: Prefix for a date or time that was a Python object: the column's format does not apply to it.
MOMENT = "\x00t"
#: Ticks a second.
TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def plain(array: pa.Array) -> pa.Array:
    """Return the values without a dictionary, run-length encoding or extension type around them."""
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif pa.types.is_run_end_encoded(array.type):
            array = pc.run_end_decode(array)
        elif pa.types.is_string_view(array.type):
            array = array.cast(pa.large_string())
        else:
            return array


def text(value: Any) -> str | None:
    """Return one value as text; None if it is empty. The text depends on the value alone, not on
    its type.

    Whole numbers have no decimal point, durations are in seconds. Dates and times are written as
    2020-12-31 and 2020-12-31 23:00:00 in UTC, with a fraction only if there is one.

    >>> text(3.0), text(Decimal("1.50")), text(datetime(2020, 1, 1)), text(bytearray(b"a")), text(timedelta(hours=1))
    ('3', '1.5', '2020-01-01 00:00:00', 'a', '3600')
    """
    # Further types whose equal values have equal texts. The text of an unknown type may hold a
    # memory address, which would make every row a value, or a person, of its own.
    written_alike = (UUID, IPv4Address, IPv6Address, Fraction, Enum)
    if isinstance(value, pa.Scalar):
        value = _one(value)
    if value is None:
        return None
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating | Decimal):
        return _number_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            return text(bytes(value).decode())
        except UnicodeDecodeError:
            return ODD + bytes(value).hex()
    if isinstance(value, date | time | timedelta | np.datetime64 | np.timedelta64):
        try:
            return _temporal_value(value)
        except (ValueError, OverflowError):
            return ODD
    if isinstance(value, int | np.integer):
        return str(int(value))
    kind = type(value)
    if kind.__module__.partition(".")[0] == "pandas":
        return _pandas_text(value, kind.__name__)
    return str(value) if isinstance(value, written_alike) else ODD


def _pandas_text(value: Any, kind: str) -> str | None:
    if kind == "NAType":
        return None
    if kind == "Interval":  # its ends are floats as soon as one is missing in its column
        ends = f"{text(value.left)}, {text(value.right)}"
        return f"{'[' if value.closed_left else '('}{ends}{']' if value.closed_right else ')'}"
    return str(value) if kind == "Period" else ODD


def _number_text(value: float | np.floating | Decimal) -> str | None:
    if value != value:
        return None
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, Decimal):
        if value == 0:
            return "0"
        if abs(value.adjusted()) > 100:
            return str(value)
        written = f"{value:f}"
        return written.rstrip("0").rstrip(".") if "." in written else written
    near = float(value)
    return str(int(near)) if abs(near) < 2**53 and near.is_integer() else repr(near)


def _temporal_value(value: date | time | timedelta | np.datetime64 | np.timedelta64) -> str | None:
    if value != value:  # NaT
        return None
    if isinstance(value, timedelta):
        value = (
            value.to_timedelta64() if hasattr(value, "to_timedelta64") else np.timedelta64(value)
        )
    if isinstance(value, np.datetime64 | np.timedelta64):
        unit = np.datetime_data(value.dtype)[0]
        kind = "datetime64" if isinstance(value, np.datetime64) else "timedelta64"
        if kind == "datetime64" and unit in ("Y", "M", "W", "D"):
            return str(value.astype("datetime64[D]"))
        unit = "s" if unit in ("W", "D", "h", "m") else unit
        if unit not in TICKS:  # how many seconds a month has, nobody can say
            return ODD
        written: str | None = _temporal_text(pa.array(np.array([value.astype(f"{kind}[{unit}]")])))[
            0
        ].as_py()
        return written
    if not isinstance(value, datetime):
        return _short(value.isoformat())
    moment = in_utc(value)
    return ODD if moment is None else _short(moment.isoformat(" "))


def _short(written: str) -> str:
    return written.rstrip("0").rstrip(".") if "." in written else written


def distinct(
    array: pa.Array, *, marked: bool = False
) -> tuple[NDArray[np.int64], list[str | None]]:
    """Return the distinct texts of a column, and for every row the position of its text.

    The last text is None: empty.
    """
    rows, texts = distinct_texts(array, marked=marked)
    return rows, texts.to_numpy(zero_copy_only=False).tolist()


def distinct_texts(array: pa.Array, *, marked: bool = False) -> tuple[NDArray[np.int64], pa.Array]:
    """Return what ``distinct`` does, with the texts as an Arrow array.

    >>> rows, texts = distinct_texts(pa.array([3.0, 0.5, None, 3.0]))
    >>> rows.tolist(), texts.to_pylist()
    ([0, 1, 2, 0], ['3', '0.5', None])
    """
    array = plain(array)
    try:
        coded = array.dictionary_encode()
        indices, values = coded.indices, coded.dictionary
    except (pa.ArrowException, NotImplementedError):  # nested values
        indices, values = pa.array(np.arange(len(array))), array
    texts = texts_of(values)
    texts = texts if marked else unmarked(texts)
    rows = pc.fill_null(indices, len(texts)).to_numpy(zero_copy_only=False)
    nothing = pa.nulls(1, pa.large_string())
    return rows.astype(np.int64, copy=False), pa.concat_arrays([texts, nothing])


def texts_to_read(
    array: pa.Array, *, marked: bool = False
) -> tuple[NDArray[np.int64] | slice, pa.Array]:
    """Return what ``distinct_texts`` does, or for a column of texts the text of every row.

    >>> rows, texts = texts_to_read(pa.array(["3", "0.5", " ", "3"]))
    >>> rows, texts.to_pylist()
    (slice(None, None, None), ['3', '0.5', None, '3'])
    """
    array = plain(array)
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return distinct_texts(array, marked=marked)
    texts = texts_of(array)
    return slice(None), texts if marked else unmarked(texts)


def texts_of(values: pa.Array) -> pa.Array:
    """Return the ``text`` of each value, at once for the kinds that Arrow writes alike."""
    kind = values.type
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        values = _temporal_text(values)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        try:
            values.validate(full=True)
        except pa.ArrowInvalid:  # not Unicode
            return _texts_one_by_one(values)
        blank = pc.equal(pc.binary_length(pc.utf8_trim(values, SPACES)), 0)
        return pc.if_else(blank, None, values).cast(pa.large_string())
    if pa.types.is_integer(kind):
        return values.cast(pa.large_string())
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return _float_texts(values.cast(pa.float64()))
    return _texts_one_by_one(values)


def _texts_one_by_one(values: pa.Array) -> pa.Array:
    return pa.array([text(v) for v in _listed(values)], pa.large_string())


def _float_texts(values: pa.Array) -> pa.Array:
    # Magnitudes that Arrow and Python write alike, without an exponent; whole ones are of any size.
    least, beyond = 1e-3, 1e10
    points = np.asarray(values.to_numpy(zero_copy_only=False))
    size = np.abs(points)
    with np.errstate(invalid="ignore"):  # a signaling NaN
        whole = (size < 2**53) & (np.floor(points) == points)
    short = ~whole & (size >= least) & (size < beyond)
    texts = pc.if_else(pa.array(short), values, None).cast(pa.large_string())
    as_whole = pa.array(np.where(whole, points, 0.0).astype(np.int64)).cast(pa.large_string())
    texts = pc.if_else(pa.array(whole), as_whole, texts)
    rest = ~whole & ~short
    others = _texts_one_by_one(values.filter(pa.array(rest)))
    return pc.replace_with_mask(texts, pa.array(rest), others) if rest.any() else texts


def unmarked(array: pa.Array) -> pa.Array:
    """Return texts without the prefix ``MOMENT``."""
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return array
    marked = pc.starts_with(array, MOMENT)
    return pc.replace_substring_regex(array, "^" + MOMENT, "") if pc.any(marked).as_py() else array


def _temporal_text(array: pa.Array) -> pa.Array:
    """Return dates and times in ISO 8601, in UTC, with the fraction that there is; durations in
    seconds.
    """
    kind = array.type
    if pa.types.is_duration(kind):
        ticks = Decimal(TICKS[kind.unit])
        return pa.array(
            [
                None if v is None else _number_text(v / ticks)
                for v in array.cast(pa.int64()).to_pylist()
            ]
        )
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        array = array.cast(pa.timestamp(kind.unit))
    whole = pc.replace_substring_regex(array.cast(pa.string()), r"\.0+$", "")
    return pc.replace_substring_regex(whole, r"(\.\d*[1-9])0+$", r"\1")


def _listed(array: pa.Array) -> list[object]:
    try:
        values: list[object] = array.to_pylist()
        return values
    except Exception:  # invalid Unicode, or a number outside the Python type
        return [_one(scalar) for scalar in array]


def _one(scalar: pa.Scalar) -> object:
    try:
        return scalar.as_py()
    except Exception:
        return ODD


def number(written: str | None) -> float:
    """Return a text as a number; NaN if it is not a finite one.

    >>> number(" 1e3 "), number("1_000"), number("ten"), number("inf")
    (1000.0, nan, nan, nan)
    """
    if written is None or "_" in written:
        return math.nan
    try:
        found = float(written)
        return found if math.isfinite(found) else math.nan
    except ValueError:
        return {"true": 1.0, "false": 0.0}.get(written.strip().lower(), math.nan)


def numbers(array: pa.Array) -> tuple[FloatArray, Mask]:
    """Return every row as a float, NaN where there is no number, and which rows are empty."""
    array = plain(array)
    kind = array.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        # Floats keep NaN for a value, integers get it for a null. Infinite floats are empty too.
        if np.isinf(values).any():
            values = np.where(np.isinf(values), np.nan, values)
        return values, np.isnan(values)
    rows, texts = texts_to_read(array)
    bare = pc.utf8_trim(texts, SPACES)
    return numbers_of(bare)[rows], are_empty(bare)[rows]


def numbers_of(texts: pa.Array) -> FloatArray:
    """Return the ``number`` of texts without blanks around them: plain ones at once, others one by one.

    >>> numbers_of(pa.array(["1.5", "+2", "ten", None])).tolist()
    [1.5, 2.0, nan, nan]
    """
    form = r"\A-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,2})?\z"
    at_once = pc.fill_null(pc.match_substring_regex(texts, form), False)
    try:
        found = pc.if_else(at_once, texts, None).cast(pa.float64())
    except pa.ArrowInvalid:  # one is too large
        found, at_once = pa.nulls(len(texts), pa.float64()), pa.scalar(False)
    rest = pc.and_(pc.invert(at_once), texts.is_valid())
    values = np.array(found.to_numpy(zero_copy_only=False), dtype=np.float64)
    others = texts.filter(rest).dictionary_encode()
    read = np.array([number(t) for t in others.dictionary.to_pylist()], dtype=np.float64)
    values[rest.to_numpy(zero_copy_only=False)] = read[others.indices.to_numpy()]
    return np.where(np.isinf(values), np.nan, values)


def are_empty(texts: pa.Array) -> Mask:
    """Return which texts without blanks around them are empty: nulls, and NaN in any case."""
    nan = pc.equal(pc.ascii_lower(texts), "nan")
    return np.asarray(pc.fill_null(nan, True).to_numpy(zero_copy_only=False))


def in_utc(moment: datetime) -> datetime | None:
    """Return a moment in UTC without a time zone; None if UTC has no year for it."""
    if moment.tzinfo is None:
        return moment
    try:
        return moment.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        return None


def units_since(moment: datetime | None, seconds: int) -> float:
    """Return whole units since 1970, rounded down; NaN for None."""
    moment = None if moment is None else in_utc(moment)
    if moment is None:
        return math.nan
    since = moment - EPOCH
    return float((since.days * 86400 + since.seconds) // seconds)


def parse_moment(written: str) -> datetime | None:
    """Return an ISO 8601 date or time; None if it is not one."""
    try:
        return datetime.fromisoformat(written.strip())
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True)
class DateReader:
    """A reader of single dates and times in text.

    Args:
        pattern: Their format, for ``strptime``; None for ISO 8601.
        output: Whether what margrave writes is read too.

    Example:
        >>> DateReader("%d/%m/%Y")("31/12/2023"), DateReader()("12/2023")
        (datetime.datetime(2023, 12, 31, 0, 0), None)
    """

    pattern: str | None = None
    output: bool = False

    def __call__(self, written: str) -> datetime | None:
        """Return the date or time; None if the text is not one."""
        if self.pattern is None:
            return parse_moment(written)
        bare = written.strip()
        if self.output and WRITTEN.match(bare) and (found := parse_moment(bare)) is not None:
            return found
        try:
            return datetime.strptime(bare, self.pattern)
        except (ValueError, OverflowError):
            return None


def at_midnight(day: date) -> datetime:
    """Return a date as a moment."""
    return day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)


def arrow_of(values: Iterable[object]) -> pa.Array:
    """Return Python values of mixed types as an array of texts; dates and times get the prefix
    ``MOMENT``.
    """
    return pa.array([_safe_text(v) for v in values], pa.string())


def _safe_text(value: object) -> str | None:
    value = _one(value) if isinstance(value, pa.Scalar) else value
    try:
        written = text(value)
        if written is not None:
            written.encode("utf-8")
        moment = isinstance(value, date | np.datetime64) and written not in (None, ODD)
        return f"{MOMENT}{written}" if moment else written
    except Exception:
        return ODD


def chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """Return the pieces of a column."""
    if not isinstance(column, pa.ChunkedArray):
        return [column]
    return list(column.chunks) or [pa.nulls(0, column.type)]


def joined(pieces: list[AnyArray]) -> AnyArray:
    """Return the pieces of a column as one array."""
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int64)
