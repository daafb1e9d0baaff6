"""The values that a constraint names in one column (a value, a range, missing), and their codes.

An element is a value, ``None`` for missing, or a pair (low, high) for a range that includes its
ends; an end that is None is open. A binned column is named in whole bins, because half of a bin has
no code. In a learned column, whose bins and categories nobody chose, an element may name a part of a
bin, or a category that was not learned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from margrave._card import counted
from margrave.errors import SchemaError
from margrave.schema.categorical import OTHER, Categorical, Coded, Ordinal
from margrave.schema.column import Column, abbreviate
from margrave.schema.numeric import UNITS, Date, Integer, Real, Timestamp
from margrave.schema.parsing import arrow_of
from margrave.schema.parts import TimePart
from margrave.schema.reading_output import for_reading_output
from margrave.schema.validators import column_error

Scalar = str | int | float | bool | date | datetime
Range = tuple[Scalar | None, Scalar | None]
Element = Scalar | Range | None

NUMERIC_KINDS = (Integer, Real, Date, Timestamp)


def element(value: Any, where: str) -> Element:
    """Return a checked element in its plain form; NumPy's scalars become Python's."""
    if isinstance(value, tuple):
        if len(value) != 2 or value == (None, None) or any(isinstance(v, tuple) for v in value):
            raise SchemaError(
                f"{where}: a range does not have two ends.", remedy="Write (low, high)."
            )
        low, high = (element(v, where) for v in value)
        return (low, high)  # type: ignore[return-value]
    plain = value.item() if isinstance(value, np.generic) else value
    usable = plain is None or isinstance(plain, str | bool | int | float | date)
    number = isinstance(plain, int | float)
    if not usable or (number and not -1e300 < plain < 1e300):  # NaN is neither
        raise SchemaError(
            f"{where}: an entry is not a value, a range or missing.",
            remedy="Write a text, a number, a date, true or false, (low, high), or None for missing.",
        )
    if isinstance(plain, datetime) and (plain.tzinfo is not None or plain.microsecond):
        raise SchemaError(
            f"{where}: a time has a zone or a fraction of a second.",
            remedy="Write whole seconds in UTC.",
        )
    return plain  # type: ignore[no-any-return]


def elements(value: Any, where: str) -> list[Element]:
    """Return one element, or a list of them, as a list: a tuple would be a range."""
    listed = value if isinstance(value, list | set | frozenset) else [value]
    if not listed:
        raise SchemaError(
            f"{where}: a column is held to no value at all.", remedy="Name at least one."
        )
    return [element(v, where) for v in listed]


def codes_of(
    column: Column, found: Sequence[Element], *, learned: bool = False
) -> list[tuple[int, ...]]:
    """Return the codes that the element of each combination means.

    If the column is ``learned``: the codes of all cells that hold a value of the element.

    SchemaError for one that the column cannot hold, or that splits a bin. It numbers the combination and quotes
    nothing: the list may come from a file.
    """
    first: dict[tuple[str, Element], int] = {}
    for number, value in enumerate(found, 1):
        first.setdefault(_keyed(value), number)
    called = [(e, f"a value in combination {number}") for (_, e), number in first.items()]
    known = dict(zip(first, _codes(column, called, learned), strict=True))
    return [known[_keyed(e)] for e in found]


def union_of(column: Column, found: Sequence[Element], *, learned: bool = False) -> tuple[int, ...]:
    """Return the codes that elements mean together. All numbers of a bin may be listed one by one.

    If the column is ``learned``: the codes of the cells whose values are all among the elements.
    """
    if isinstance(column, NUMERIC_KINDS):
        spans = sorted(_span(column, e, None) for e in found if e is not None)
        merged: list[tuple[float, float]] = []
        for low, high in spans:
            if merged and low <= merged[-1][1] + column.cells.whole:
                merged[-1] = (merged[-1][0], max(merged[-1][1], high))
            else:
                merged.append((low, high))
        within = _all_inside if learned else _within
        codes = {c for low, high in merged for c in within(column, low, high, None)}
        codes.update(c for e in found if e is None for c in _missing(column))
    else:
        codes = {c for own in _codes(column, [(e, None) for e in found], learned) for c in own}
        if learned and _is_open(column):
            codes.discard(column.labels().index(OTHER))  # it holds values that nobody named
    return tuple(sorted(codes))


def _keyed(value: Element) -> tuple[str, Element]:
    return (type(value).__name__, value)


def _codes(
    column: Column, found: Sequence[tuple[Element, str | None]], learned: bool
) -> list[tuple[int, ...]]:
    if isinstance(column, NUMERIC_KINDS):
        within = _touched if learned else _within
        return [_missing(column) if e is None else within(column, *_span(column, e, called), called)
                for e, called in found]  # fmt: skip
    plain = [(e, called) for e, called in found if e is not None and not isinstance(e, tuple)]
    single = iter(_listed(column, plain, learned))
    return [
        _missing(column)
        if e is None
        else _between(column, e, called)
        if isinstance(e, tuple)
        else (next(single),)
        for e, called in found
    ]


def _missing(column: Column) -> tuple[int, ...]:
    if not column.missing:
        raise column_error(
            column.name,
            "a constraint speaks of missing values, but it has none.",
            "Add missing = true.",
        )
    return (column.size - 1,)


def _is_open(column: Column) -> bool:
    return isinstance(column, Categorical) and column.other


def _listed(
    column: Column, values: Sequence[tuple[Scalar, str | None]], learned: bool = False
) -> list[int]:
    encoded = for_reading_output(column).encode(arrow_of([value for value, _ in values]))
    strict = not (learned and _is_open(column))  # else what was not learned is in the open category
    for i, (value, called) in enumerate(values):
        if (strict and encoded.outside[i]) or encoded.empty[i] or encoded.unreadable[i]:
            raise _not_held(column, value, called)
    codes: list[int] = encoded.codes.tolist()
    return codes


def _between(column: Column, ends: Range, called: str | None) -> tuple[int, ...]:
    if not isinstance(column, Ordinal | Coded | TimePart):
        raise column_error(
            column.name,
            "a constraint gives it a range, but it has no order.",
            "List the values instead.",
        )
    last = column.size - 1 - column.missing
    low, high = (None if e is None else _listed(column, [(e, called)])[0] for e in ends)
    codes = tuple(range(low or 0, (last if high is None else high) + 1))
    if not codes:
        raise column_error(
            column.name, "a range of a constraint ends before it begins.", "Exchange its ends."
        )
    return codes


def _span(column: Any, value: Element, called: str | None) -> tuple[float, float]:
    low, high = value if isinstance(value, tuple) else (value, value)
    first = -math.inf if low is None else _point(column, low, called)
    last = math.inf if high is None else _point(column, high, called)
    if isinstance(column, Timestamp) and isinstance(high, date) and not isinstance(high, datetime):
        last += 86400 // UNITS[column.unit] - 1  # a day ends when it is over
    if first > last:
        raise column_error(
            column.name, "a range of a constraint ends before it begins.", "Exchange its ends."
        )
    return first, last


def _point(column: Any, value: Scalar, called: str | None) -> float:
    timed = isinstance(column, Date | Timestamp)
    if (
        isinstance(value, date)
        if timed
        else isinstance(value, int | float) and not isinstance(value, bool)
    ):
        return float(column.point(value))
    if isinstance(value, str):
        point = float(column.points(pa.array([value], pa.string()))[0][0])
        if math.isfinite(point):
            return point
    raise _not_held(column, value, called)


def _within(column: Any, low: float, high: float, called: str | None) -> tuple[int, ...]:
    cells = column.cells
    starts, stops = np.array([s[:2] for s in cells.spans()], dtype=np.float64).reshape(-1, 2).T
    inside = (low <= starts) & (stops <= high)
    if cells.whole:
        touched = (low <= stops) & (starts <= high)
    elif low == high and not (inside & (starts == stops)).any():  # no atom: somewhere within a bin
        touched = np.arange(cells.count) == cells.locate(np.array([low]))[0]
        touched &= (cells.edges[0] <= low) & (low <= cells.edges[-1])
    else:
        touched = (low < stops) & (starts < high)
    split = np.flatnonzero(touched & ~inside)
    if split.size:
        taken = f"the bin {column.labels()[split[0]]}" if called is None else f"a bin, by {called}"
        raise column_error(
            column.name,
            f"a constraint takes a part of {taken}.",
            "Give the column edges where the constraint begins and ends, or atoms for single values.",
        )
    if not inside.any():
        raise column_error(
            column.name,
            "a constraint speaks of values that all lie outside its bounds.",
            _some(column),
        )
    return tuple(np.flatnonzero(inside).tolist())


def _touched(column: Any, low: float, high: float, called: str | None) -> tuple[int, ...]:
    """Return the cells that hold a value from ``low`` to ``high``; beyond the bounds, the nearest cell."""
    cells = column.cells
    starts, stops = np.array([s[:2] for s in cells.spans()], dtype=np.float64).reshape(-1, 2).T
    codes = np.flatnonzero((low <= stops) & (starts <= high)).tolist()
    codes += cells.locate(np.clip([low, high], cells.edges[0], cells.edges[-1])).tolist()
    return tuple(sorted(set(codes)))


def _all_inside(column: Any, low: float, high: float, called: str | None) -> tuple[int, ...]:
    starts, stops = np.array([s[:2] for s in column.cells.spans()]).reshape(-1, 2).T
    return tuple(np.flatnonzero((low <= starts) & (stops <= high)).tolist())


def _not_held(column: Column, value: Scalar, called: str | None) -> SchemaError:
    named = _shown(value) if called is None else called
    return column_error(
        column.name, f"a constraint names {named}, which it cannot hold.", _some(column)
    )


def _shown(value: Scalar) -> str:
    written = repr(value) if isinstance(value, str | bool) else str(value)
    return written if len(written) <= 60 else f"{written[:57]}..."


def _some(column: Column) -> str:
    if isinstance(column, Categorical | Ordinal):  # its categories may come from a file
        return f"It has the {counted(len(column.categories), 'category')} that the schema lists."
    return f"It has {abbreviate(column.labels())}."


def code_name(column: Column, code: int) -> str:
    """Return a code as an error names it: a category by its place in the list, which may come from
    a file.
    """
    if isinstance(column, Categorical | Ordinal) and code < len(column.categories):
        return f"category {code + 1}"
    return repr(column.labels()[code])
