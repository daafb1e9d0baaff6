"""Values of a column in the user's terms, as codes: what ``condition`` is given."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from margrave.errors import InputError, did_you_mean
from margrave.release.condition_forms import date_form, month_form, several_form
from margrave.schema import Categorical, Column, Ordinal, Schema
from margrave.schema.column import abbreviate
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.elapsed import Elapsed
from margrave.schema.missing_codes import stand_for_missing
from margrave.schema.numeric import Numeric
from margrave.schema.parsing import DateReader, Mask, plain, units_since
from margrave.schema.parts import TimePart, source_name
from margrave.schema.reading_output import for_reading_output
from margrave.schema.sources import spans_of_codes
from margrave.types import Attribute, FloatArray

Value = str | int | float | bool | date | datetime | None
#: A value, a list of values, or a range that includes its ends; an end that is None is open.
Condition = Value | list[Value] | tuple[Value, Value]


def codes_by_column(
    schema: Schema, values: Mapping[Attribute, Condition]
) -> dict[Attribute, tuple[int, ...]]:
    """Return the codes of the conditions on several columns."""
    return {a: codes_of(schema, a, wanted) for a, wanted in values.items()}


def codes_of(schema: Schema, attribute: Attribute, condition: Condition) -> tuple[int, ...]:
    """Return the codes of a value, a list of values, or a range (low, high) with None for an open
    end.
    """
    try:
        return _codes_of(schema, attribute, condition)
    except InputError:
        _check_one_column(schema, attribute, condition)
        raise


def _codes_of(schema: Schema, attribute: Attribute, condition: Condition) -> tuple[int, ...]:
    column = for_reading_output(schema.column(attribute))
    for value in condition if isinstance(condition, list | tuple) else [condition]:
        check_not_label(schema, attribute, value)
    if isinstance(condition, tuple):
        if len(condition) != 2 or condition == (None, None):
            raise InputError(
                f"The range for column {attribute!r} does not have two ends.",
                remedy="Give (low, high), None for one that is open.",
            )
        return _range(column, *condition)
    values = condition if isinstance(condition, list) else [condition]
    if not values:
        raise InputError(
            f"No value is given for column {attribute!r}.", remedy="Name at least one."
        )
    return tuple(sorted({_code(column, value) for value in values}))


def _check_one_column(schema: Schema, attribute: Attribute, condition: Condition) -> None:
    """Raise ``InputError`` if a condition has one of another column in its text: ``sex=F, age=30``."""
    values = condition if isinstance(condition, list | tuple) else [condition]
    between = ".." if isinstance(condition, tuple) else "|"
    text = f"{attribute}={between.join('' if v is None else str(v) for v in values)}"
    names = "|".join(re.escape(name) for name in schema.domain)
    parts = re.split(rf"(?:\s*[,;&]\s*|\s+)(?:and\s+)?(?=(?:{names})\s*=)", text)
    if len(parts) > 1:
        written = " ".join(f'--where "{part}"' for part in parts)
        raise InputError(
            f"{text[:80]!r} has {len(parts)} conditions in one.",
            remedy=f"Write each by itself: {written}. In Python each column is a key of its own.",
        )


def check_not_label(schema: Schema, attribute: Attribute, value: Any) -> None:
    """Raise ``InputError`` for the label of a category in place of the category.

    >>> from margrave.schema import Categorical
    >>> from margrave.schema.sources import ColumnSource
    >>> sources = {"s": ColumnSource(labels={"1": "M", "2": "F"})}
    >>> check_not_label(Schema([Categorical("s", ["1", "2"])], sources=sources), "s", "F")
    Traceback (most recent call last):
    margrave.errors.InputError: Column 's' has no value 'F' in the schema. 'F' is the label of 2: write 2 in its place.
    """
    text = value.strip().lower() if isinstance(value, str) else ""
    labels = schema.source(attribute).labels if text else {}
    own = [category for category, label in labels.items() if label.strip().lower() == text]
    if not own:
        return
    with suppress(InputError):
        _code(for_reading_output(schema.column(attribute)), value)
        return
    raise InputError(
        f"Column {attribute!r} has no value {value!r} in the schema.",
        remedy=f"{value!r} is the label of {' and '.join(own)}: write {' or '.join(own)} in its place.",
    )


def with_missing(
    schema: Schema, values: Mapping[Attribute, Condition]
) -> dict[Attribute, Condition]:
    """Return conditions with None in place of the missing-value codes that the schema declares.

    >>> from margrave.schema import Integer
    >>> from margrave.schema.sources import ColumnSource
    >>> sources = {"visits": ColumnSource(missing_codes=["-9"])}
    >>> schema = Schema([Integer("visits", 0, 15, missing=True)], sources=sources)
    >>> with_missing(schema, {"visits": "-9"}), with_missing(schema, {"visits": [3, -9]})
    ({'visits': None}, {'visits': [3, None]})
    """
    if not isinstance(values, Mapping):
        raise InputError(
            f"The condition is of type {type(values).__name__}, not a mapping of columns to values.",
            remedy='Give such as {"sex": "F", "age": (30, 40)}.',
        )
    return {a: _with_missing(schema, a, condition) for a, condition in values.items()}


def _with_missing(schema: Schema, attribute: Attribute, condition: Condition) -> Condition:
    if isinstance(condition, tuple) or condition is None:
        return condition
    if isinstance(condition, list):
        return [None if means_missing(schema, attribute, v) else v for v in condition]
    return None if means_missing(schema, attribute, condition) else condition


def means_missing(schema: Schema, attribute: Attribute, value: Any) -> bool:
    """Return True for a value that the schema reads as missing: a missing-value code, or an empty text."""
    column, text = schema.column(attribute), str(value).strip()
    if not column.missing or not text:
        return column.missing
    codes = () if isinstance(column, Elapsed) else schema.source(source_name(column)).missing_codes
    spans = spans_of_codes(column, codes)
    moment = DateReader(getattr(column, "format", None), output=True)(text) if spans else None
    at = None if moment is None else units_since(moment, 1)
    return bool(stand_for_missing(column, pa.array([text]), codes)[0]) or (
        at is not None and any(first <= at <= last for first, last in spans)
    )


@dataclass(frozen=True, eq=False)
class Cut:
    """A condition on a column that is finer than its bins.

    Attributes:
        column: The column.
        spans: The values that it asks for: pairs of a first and a last point.
        shares: The share of each code's values among them, one number per code.
        condition: The condition.
        whole: The bins that it touches, in words.
    """

    column: Numeric
    spans: tuple[tuple[float, float], ...]
    shares: FloatArray
    condition: Condition
    whole: str

    def holds(self, values: pa.ChunkedArray) -> Mask:
        """Return a mask of the values that meet the condition."""
        if not self.spans:
            return np.ones(len(values), dtype=np.bool_)
        points, empty = self.column.points(plain(values.combine_chunks()))
        inside = [(points >= low) & (points <= high) for low, high in self.spans]
        wanted = self.condition if isinstance(self.condition, list) else [self.condition]
        missing = any(
            v is None or np.isnan(_point(self.column, v))
            for v in wanted
            if not isinstance(v, tuple)
        )
        return np.asarray(np.where(empty, missing, np.logical_or.reduce(inside)))

    def __str__(self) -> str:
        asked = in_words({self.column.name: self.condition})
        if not self.spans:
            return f"{asked} stands for the whole of its bin: {self.whole}."
        how = "evenly" if self.column.cells.leaves is None else "with the weights of its parts"
        return (
            f"{asked} cuts a bin. Within a bin values are drawn {how}, so the answer takes the share of the bin that"
            f" values drawn so have. Whole bins are exact: {self.whole}."
        )


def cut_of(schema: Schema, attribute: Attribute, condition: Condition) -> Cut | None:
    """Return a condition that is finer than the bins of its column; None if it takes whole bins.

    Real numbers and times are rarely equal to a value, so a value of them stands for its whole bin.

    >>> from margrave.schema import Integer
    >>> schema = Schema([Integer("age", 0, 99, bins=20)])
    >>> cut = cut_of(schema, "age", ("30", "40"))
    >>> cut.whole, cut.shares[6:9].tolist(), cut_of(schema, "age", (30, 44))
    ('30 to 44', [1.0, 1.0, 0.2], None)
    """
    column = for_reading_output(schema.column(attribute))
    if not isinstance(column, NUMERIC_KINDS):
        return None
    codes = [c for c in codes_of(schema, attribute, condition) if c < column.cells.count]
    if isinstance(condition, tuple):
        wanted = [_ends(column, condition)]
    else:
        values = condition if isinstance(condition, list) else [condition]
        points = [_point(column, v) for v in values if v is not None]
        wanted = [(p, p) for p in points if not np.isnan(p)]  # "" is missing, as null is
    shares = np.minimum(
        sum((column.cells.shares(*w) for w in set(wanted)), np.zeros(column.cells.count)), 1.0
    )
    if all(shares[codes] >= 1.0):
        return None
    if isinstance(condition, tuple):
        spans = [column.cells.spans()[c] for c in codes]
        low, high = min(s[0] for s in spans), max(s[1] for s in spans)
        whole = f"{_shown(column, low)} to {_shown(column, high)}"
    else:
        labels = column.labels()
        whole = ", ".join(labels[c] for c in codes)
    on_points = not isinstance(condition, tuple) and (
        not column.cells.whole or column.kind == "timestamp"
    )
    if on_points or not any(shares[codes] > 0):
        shares, wanted = np.ones_like(shares), []
    padded = np.concatenate([shares, np.ones(column.size - column.cells.count)])
    return Cut(column, tuple(wanted), padded, condition, whole)


def cuts_of(schema: Schema, values: Mapping[Attribute, Condition]) -> tuple[Cut, ...]:
    """Return the conditions that are finer than the bins of their columns."""
    found = (cut_of(schema, a, condition) for a, condition in values.items())
    return tuple(cut for cut in found if cut is not None)


def beyond_words(schema: Schema, values: Mapping[Attribute, Condition]) -> tuple[str, ...]:
    """Return a sentence for each end of a range beyond the bounds of its column.

    >>> from margrave.schema import Integer
    >>> beyond_words(Schema([Integer("age", 18, 95)]), {"age": (80, 130)})
    ('age from 80 to 130 goes beyond the upper bound: no value of the release lies above 95.',)
    """
    found = list[str]()
    for name, condition in values.items():
        column = for_reading_output(schema.column(name))
        if not isinstance(condition, tuple) or not isinstance(column, NUMERIC_KINDS):
            continue
        asked = f"{in_words({name: condition})} goes beyond the"
        (low, high), least, greatest = _ends(column, condition), *_bounds(column)
        if -np.inf < low < least:
            found.append(
                f"{asked} lower bound: no value of the release lies below {_shown(column, least)}."
            )
        if greatest < high < np.inf:
            found.append(
                f"{asked} upper bound: no value of the release lies above {_shown(column, greatest)}."
            )
    return tuple(found)


def in_words(conditions: Mapping[str, Condition]) -> str:
    """Return conditions in words.

    >>> in_words({"sex": "F", "age": (30, 40), "ward": ["a", None]})
    'sex = F, age from 30 to 40 and ward = a or missing'
    >>> in_words({"pay": (1000, None), "age": (None, 30)})
    'pay from 1000 and age up to 30'
    """
    texts = [f"{name} {_in_words(condition)}" for name, condition in conditions.items()]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def _in_words(condition: Condition) -> str:
    if isinstance(condition, tuple):
        low, high = condition
        if low is None or high is None:
            return f"up to {high}" if low is None else f"from {low}"
        return f"from {low} to {high}"
    values = condition if isinstance(condition, list) else [condition]
    texts = ["missing" if v is None else str(v) for v in values]
    return f"= {' or '.join([*texts[:12], '...'] if len(texts) > 12 else texts)}"


def range_form(name: str, value: object) -> str:
    """Return how a range is written, if a text looks like one; "" for any other value.

    >>> range_form("age", "40-50")
    "A range is written {'age': (40, 50)} in Python, and age=40..50 on the command line."
    """
    number = r"-?\d+(?:\.\d+)?"
    if isinstance(value, slice | range):
        return f"A range is written {{{name!r}: ({value.start!r}, {value.stop!r})}}, with both ends in it."
    text = value.strip() if isinstance(value, str) else ""
    found = re.fullmatch(rf"(\S+?)\s*\.\.+\s*(\S+)|({number})\s*[-–:]\s*({number})", text)
    if found is None:
        return ""
    low, high = (end for end in found.groups() if end is not None)
    ends = ", ".join(e if re.fullmatch(number, e) else repr(e) for e in (low, high))
    command = f"{name}={low}..{high} on the command line"
    return f"A range is written {{{name!r}: ({ends})}} in Python, and {command}."


def _ends(column: Numeric, condition: tuple[Value, Value]) -> tuple[float, float]:
    """Return the ends of a range as points, infinite for an open one."""
    low, high = condition
    return (
        -np.inf if low is None else _point(column, low),
        np.inf if high is None else _point(column, high),
    )


def _point(column: Numeric, value: Value) -> float:
    return float(column.points(pa.array([value]))[0][0])


def _bounds(column: Numeric) -> tuple[float, float]:
    return _point(column, column.low), _point(column, column.high)


def _shown(column: Numeric, point: float) -> str:
    value = column.written(np.array([point]), np.array([False]))[0].as_py()
    if isinstance(value, datetime) and not value.second:
        return value.isoformat(" ", timespec="minutes")  # as in labels
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _code(column: Column, value: Value) -> int:
    code, outside = _encode(column, value)
    if outside and (meant := _other_case(column, value)) is not None:
        code, outside = _encode(column, meant)
    if outside:
        _check_within(column, value)
        raise InputError(
            f"Column {column.name!r} has no value {value!r} in the schema.",
            remedy=f"{several_form(column, value) or did_you_mean(value, column.labels())}It has"
            f" {abbreviate(column.labels())}.{_missing_form(column)}",
        )
    return code


def _check_within(column: Column, value: Value) -> None:
    """Raise ``InputError`` for a value beyond the bounds of a column on a line."""
    if not isinstance(column, NUMERIC_KINDS):
        return
    point, (low, high) = _point(column, value), _bounds(column)
    if point < low or point > high:
        end, bound = ("below the lower", low) if point < low else ("above the upper", high)
        raise InputError(
            f"The value {value!r} of column {column.name!r} is {end} bound, {_shown(column, bound)}.",
            remedy=_within(column, "a value") + _missing_form(column),
        )


def _missing_form(column: Column) -> str:
    """Return how a missing value is written, for a column that may lack values."""
    form = f"{{{column.name!r}: None}} in Python, and {column.name}= on the command line"
    return f" Missing values are written {form}." if column.missing else ""


def _within(column: Column, what: str) -> str:
    """Return which values a column on a line takes, in a sentence."""
    if not isinstance(column, NUMERIC_KINDS):
        return f"It has {abbreviate(column.labels())}."
    low, high = (_shown(column, end) for end in _bounds(column))
    return f"Give {what} from {low} to {high}."


def _other_case(column: Column, value: Value) -> str | None:
    if not isinstance(value, str) or not isinstance(column, Categorical | Ordinal):
        return None
    found = [c for c in column.categories if c.lower() == value.strip().lower()]
    return found[0] if len(found) == 1 else None


def _range(column: Column, low: Value, high: Value) -> tuple[int, ...]:
    on_a_line = ("integer", "real", "date", "timestamp", "elapsed", "coded")
    greatest = column.size - column.missing - 1
    if isinstance(column, Ordinal | TimePart):
        first, last = (
            (0 if low is None else _code(column, low)),
            (greatest if high is None else _code(column, high)),
        )
    elif column.kind in on_a_line:
        clipping: Any = replace(column, outside="clip")  # type: ignore[type-var]
        first, below = (0, True) if low is None else _encode(clipping, low)
        last, above = (greatest, True) if high is None else _encode(clipping, high)
        if below and above and first == last:
            raise InputError(
                f"The range for column {column.name!r} lies outside its bounds.",
                remedy=_within(column, "values"),
            )
    else:
        raise InputError(
            f"Column {column.name!r} has no order, so it takes no range.",
            remedy="List the values instead.",
        )
    if first > last:
        raise InputError(
            f"The range for column {column.name!r} ends before it begins.",
            remedy="Exchange its ends.",
        )
    codes = range(first, last + 1)
    if not isinstance(column, NUMERIC_KINDS):
        return tuple(codes)
    ends = _ends(column, (low, high))
    shares = column.cells.shares(*ends)
    found = tuple(c for c in codes if shares[c] > 0)
    if not found and column.cells.whole and ends[0] < ends[1]:
        raise InputError(
            f"The range for column {column.name!r} has no value of the release.",
            remedy=f"Ask for a longer one. The bin has the values {column.labels()[first]}.",
        )
    return found or tuple(codes)


def _encode(column: Column, value: Value) -> tuple[int, bool]:
    try:
        encoded = column.encode(pa.array([value]))
    except pa.ArrowException:
        raise InputError(
            f"Column {column.name!r} cannot be held to {reprlib.repr(value)}.",
            remedy=range_form(column.name, value)
            or "Give a value, a list of values, or (low, high).",
        ) from None
    nowhere = bool(encoded.unreadable[0]) or (bool(encoded.empty[0]) and not column.missing)
    if nowhere:
        raise InputError(
            f"{reprlib.repr(value)} is not a value of column {column.name!r}.",
            remedy=month_form(column, value)
            or range_form(column.name, value)
            or f"{date_form(column)}{_within(column, 'a value')}{_missing_form(column)}",
        )
    return int(encoded.codes[0]), bool(encoded.outside[0])
