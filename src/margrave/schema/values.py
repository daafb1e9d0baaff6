"""Values as they arrive (text, numbers, dates, from any frame), read one by one by the schema's type.

Each reader is a function of the single value: what a value becomes depends on no other row, nor on the type that some
engine guessed for its column. So 3, 3.0 and "3" are one value. Nothing here raises for a value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from margrave.typing import AnyArray, FloatArray

Mask = NDArray[np.bool_]

EPOCH = datetime(1970, 1, 1)
MARKS = frozenset({"na", "n/a", "nan", "null", "?", "<na>", "nat"})
"""Texts that files write for a missing value, in lower case."""
WRITTEN = re.compile(r"\d{4}-\d\d-\d\d($|[ T]\d\d:)")
"""How dates and times begin in what margrave writes."""
ODD = "\x00?"
"""Stands for a value that has no text (nested, or not valid Unicode): no category and no number is written so.

Bytes that are no text are written so and in hexadecimal: different ones stay different."""


def plain(array: pa.Array) -> pa.Array:
    """The values themselves, without a dictionary, runs or an extension type around them."""
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


def text(value: object) -> str | None:
    """One value as text; None if it is empty. Whole numbers are written without a point, whatever their type."""
    if value is None:
        return None
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating | Decimal):
        return _number_text(value)
    if isinstance(value, bytes):
        try:
            return text(value.decode())
        except UnicodeDecodeError:
            return ODD + value.hex()
    try:
        written = str(value)
    except Exception:
        return ODD
    return None if written in ("nan", "NaT", "<NA>") else written


def _number_text(value: float | np.floating | Decimal) -> str | None:
    if value != value:
        return None
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, Decimal):
        return str(int(value)) if abs(value) < 10**18 and value == int(value) else str(value)
    near = float(value)
    return str(int(near)) if abs(near) < 2**53 and near.is_integer() else repr(near)


def distinct(array: pa.Array) -> tuple[NDArray[np.int64], list[str | None]]:
    """The distinct texts of a column, and for every row the position of its own (the last text is None: empty)."""
    array = plain(array)
    if pa.types.is_temporal(array.type):
        array = _temporal_text(array)
    try:
        coded = array.dictionary_encode()
        indices, values = coded.indices, coded.dictionary
    except (pa.ArrowException, NotImplementedError):  # nested values
        indices, values = pa.array(np.arange(len(array))), array
    texts = [*(text(v) for v in _listed(values)), None]
    rows = pc.fill_null(indices, len(texts) - 1).to_numpy(zero_copy_only=False)
    return rows.astype(np.int64, copy=False), texts


def _temporal_text(array: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        array = array.cast(pa.timestamp(array.type.unit))
    try:
        return array.cast(pa.string())
    except pa.ArrowException:
        return array.cast(pa.int64(), safe=False) if not pa.types.is_interval(array.type) else array


def _listed(array: pa.Array) -> list[object]:
    """Python values; one that cannot be made is odd, and takes no other with it."""
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
    """A text as a number; NaN if it is not one.

    >>> number(" 1e3 "), number("1_000"), number("ten")
    (1000.0, nan, nan)
    """
    if written is None or "_" in written:
        return math.nan
    try:
        return float(written)
    except ValueError:
        return {"true": 1.0, "false": 0.0}.get(written.strip().lower(), math.nan)


def numbers(array: pa.Array) -> tuple[FloatArray, Mask]:
    """Every row as a float, NaN where there is no number, and which rows are empty."""
    array = plain(array)
    kind = array.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        # Floats keep NaN for a value, integers get it for a null: both are empty.
        return values, np.isnan(values)
    return _by_text(array, number)


def moments(
    array: pa.Array, seconds: int, parse: Callable[[str], datetime | None]
) -> tuple[FloatArray, Mask]:
    """Every row as a whole number of units (of so many seconds) since 1970, NaN where there is no date.

    ``parse`` reads a text. Values with a time zone are taken in UTC.
    """
    array = plain(array)
    kind = array.type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return _by_text(array, lambda written: units_since(parse(written or ""), seconds))
    ticks = _ticks(kind)
    empty = array.is_null().to_numpy(zero_copy_only=False)
    bits = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    raw = pc.fill_null(array.view(bits), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    whole = raw * 86400 // seconds if ticks == 0 else raw // (ticks * seconds)
    return np.where(empty, np.nan, whole.astype(np.float64)), empty


def _ticks(kind: pa.DataType) -> int:
    """Ticks a second of a temporal type; 0 for days."""
    if pa.types.is_date32(kind):
        return 0
    return 1000 if pa.types.is_date64(kind) else {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]


def in_utc(moment: datetime) -> datetime | None:
    """A moment without its time zone, in UTC if it has one; None for one that UTC has no year for."""
    if moment.tzinfo is None:
        return moment
    try:
        return moment.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        return None


def units_since(moment: datetime | None, seconds: int) -> float:
    """Whole units since 1970, rounded down; NaN for None."""
    moment = None if moment is None else in_utc(moment)
    if moment is None:
        return math.nan
    since = moment - EPOCH
    return float((since.days * 86400 + since.seconds) // seconds)


def parse_moment(written: str) -> datetime | None:
    """An ISO 8601 date or time; None if it is not one."""
    try:
        return datetime.fromisoformat(written.strip())
    except (ValueError, OverflowError):
        return None


def parser(pattern: str | None, *, output: bool = False) -> Callable[[str], datetime | None]:
    """A reader of dates written to a pattern, or in ISO 8601 where there is none.

    ``output``: what margrave writes is read too, 2020-12-31 or 2020-12-31 23:00:00, and before the pattern: a pattern
    that takes such a text for another day would misread all that margrave shows.
    """
    if pattern is None:
        return parse_moment

    def parse(written: str) -> datetime | None:
        if output and WRITTEN.match(written.strip()) and (found := parse_moment(written)) is not None:
            return found
        try:
            return datetime.strptime(written.strip(), pattern)
        except (ValueError, OverflowError):
            return None

    return parse


def at_midnight(day: date) -> datetime:
    """A date as a moment."""
    return day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)


def _by_text(array: pa.Array, read: Callable[[str | None], float]) -> tuple[FloatArray, Mask]:
    rows, texts = distinct(array)
    values = np.array([read(t) for t in texts], dtype=np.float64)
    empty = np.array([t is None or t.strip().lower() == "nan" for t in texts], dtype=np.bool_)
    return values[rows], empty[rows]


def arrow_of(values: Iterable[object]) -> pa.Array:
    """Python values of any and mixed types as an array of texts."""
    return pa.array([_safe_text(v) for v in values], pa.string())


def _safe_text(value: object) -> str | None:
    try:
        written = text(value)
        if written is not None:
            written.encode("utf-8")
        return written
    except Exception:
        return ODD


def chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """The pieces of a column."""
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]


def joined(pieces: list[AnyArray]) -> AnyArray:
    """Pieces of one column in one array; none at all are no rows."""
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int64)
