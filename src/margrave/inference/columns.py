"""Columns of a data frame: their kinds, their numbers, and values as they hold them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd

from margrave._card import listed_within
from margrave.errors import InputError, did_you_mean, other_column
from margrave.formula import ColumnName, written
from margrave.release.conditions import check_not_label, codes_of, range_form
from margrave.schema import Learn, Schema
from margrave.schema.categorical import NO, TRUTHS, YES
from margrave.schema.column import abbreviate
from margrave.types import FloatArray

#: Attribute of a frame: the schema, which may name columns that the frame does not have.
SCHEMA = "schema"


def column_of(frame: pd.DataFrame, name: str) -> pd.Series:
    """Return the column of that name. Raises `InputError` if the frame has none."""
    check_not_person_id([name], frame)
    if not isinstance(name, str) or name not in frame.columns:
        raise InputError(
            f"There is no column {name!r}.",
            remedy=other_column(name, [*map(str, frame.columns)], ignored_in(frame)),
        )
    return frame[name]


def ignored_in(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return the columns that the schema of a frame leaves out; none without a schema."""
    return tuple(getattr(frame.attrs.get(SCHEMA), "ignore", ()))


def check_not_person_id(names: Iterable[str], frame: pd.DataFrame) -> None:
    """Raise `InputError` if one of some names is the person ID column, which no data set has."""
    person = getattr(frame.attrs.get(SCHEMA), "person", None)
    if person is not None and person in [*names]:
        raise InputError(
            f"{person!r} is the person ID column, which is never synthesized.",
            remedy=f"Name another column. The columns are: {', '.join(map(str, frame.columns))}.",
        )


def numeric_column(frame: pd.DataFrame, name: str) -> pd.Series:
    """Return a column's numbers; dates are days since 1970, and missing values NaN."""
    column = column_of(frame, name)
    if is_date(column):
        column = days_of(column)
    if not is_number(column):
        raise InputError(
            f"Column {name!r} holds no numbers.",
            remedy="For a column of categories, ask for a proportion.",
        )
    return column.astype(float)


def check_correlated(frame: pd.DataFrame, x: str, y: str) -> None:
    """Raise `InputError` unless both columns hold numbers or dates."""
    for group, number in ((x, y), (y, x)):
        values = column_of(frame, number)
        if levels_of(column_of(frame, group)) is None or not (is_number(values) or is_date(values)):
            continue
        formula = f"{written(ColumnName(number))} ~ C({written(ColumnName(group))})"
        raise InputError(
            f"Column {group!r} holds no numbers.",
            remedy=f"Compare the means of {number!r} by group: margrave analyze mean RELEASE {number} --by {group} (in"
            f' Python By(Mean({json.dumps(number)}), {json.dumps(group)})). Or write the regression ols "{formula}".',
        )
    numeric_column(frame, x)
    numeric_column(frame, y)


def numbers_in(frame: pd.DataFrame, name: str) -> FloatArray:
    """Return a column's numbers without the missing ones.

    Raises:
        ValueError: A frame with rows has fewer than two.
    """
    x = numeric_column(frame, name).dropna().to_numpy(dtype=np.float64)
    if len(frame):
        check_count(len(x), f"column {name!r}")
    return np.asarray(x)


def check_count(n: int, columns: str) -> None:
    """Raise `ValueError` if the n records with a value of some columns are too few for a variance."""
    if n < 2:
        raise ValueError(f"{'only one record has' if n else 'no record has'} a value of {columns}")


def value_of(column: pd.Series, name: str, value: Any) -> Any:
    """Return a value, or its text, as the column holds it. Truths are written as in a schema.

    Raises:
        InputError: The column cannot hold the value.
    """
    if is_truth(column):
        return _truth(name, value)
    levels = levels_of(column)
    if levels is not None:
        found = [v for v in levels if v == value or str(v).lower() == str(value).lower()]
        exact = [v for v in found if v == value or str(v) == str(value)]
        if not found:
            raise InputError(
                f"Column {name!r} has no value {value!r}.",
                remedy=f"{did_you_mean(value, map(str, levels))}Its values: {some(levels)}.",
            )
        return (exact or found)[0]
    binary = is_number(column) and column.dropna().isin([0, 1]).all()
    if binary and str(value).strip().lower() in (*YES, *NO):
        return float(_truth(name, value))
    try:
        return pd.Timestamp(value) if is_date(column) else float(value)
    except (TypeError, ValueError):
        raise InputError(
            f"Column {name!r} cannot hold {value!r}.",
            remedy=range_form(name, value) or "Name a value of its kind.",
        ) from None


def indicator(column: pd.Series, name: str, value: Any) -> pd.Series:
    """Return 1 for rows with a value, 0 for others, NaN for missing ones.

    The value None selects the missing ones: then no row is NaN.
    """
    if value is None:
        return column.isna().astype(float)
    has: pd.Series = (column == value_of(column, name, value)).astype(float).where(column.notna())
    return has


def check_in_schema(schema: Schema | None, column: pd.Series, name: str, value: Any) -> None:
    """Raise `InputError` for a number, date, label or missing value that is not a value of the schema."""
    if schema is None:
        return
    check_not_label(schema, name, value)
    own = schema.column(name)
    if isinstance(own, Learn):
        return
    remedy = f"It has {abbreviate(own.labels())}."
    if value is None:
        if not own.missing:
            raise InputError(f"Column {name!r} lacks no value, by the schema.", remedy=remedy)
    elif not is_truth(column) and (is_number(column) or is_date(column)):
        codes_of(schema, name, value)
        if own.kind in ("integer", "coded") and not _is_whole(value):
            raise InputError(
                f"Column {name!r} holds whole numbers, and {value!r} is not one.", remedy=remedy
            )


def _is_whole(value: Any) -> bool:
    try:
        return float(value) % 1 == 0
    except (TypeError, ValueError, OverflowError):
        return False


def levels_of(column: pd.Series) -> list[Any] | None:
    """Return the values of a column of categories or texts; None for any other kind."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return list(column.cat.categories)
    text = pd.api.types.is_string_dtype(column.dtype) or column.dtype == np.dtype(object)
    return sorted(column.dropna().unique(), key=str) if text and not is_number(column) else None


def has_open_levels(column: pd.Series) -> bool:
    """Return whether a column has no rows, and texts of which no list is known: a column to learn."""
    return not len(column) and column.dtype == np.dtype(object)


def is_truth(column: pd.Series) -> bool:
    """Return whether a column holds true and false, also if some are missing."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = column.cat.categories
        return list(levels) == [False, True] and levels.dtype == np.dtype(bool)
    if column.dtype == np.dtype(object):
        return bool(pd.api.types.infer_dtype(column, skipna=True) == "boolean")
    return bool(column.dtype == np.dtype(bool) or isinstance(column.dtype, pd.BooleanDtype))


def _truth(name: str, value: Any) -> bool:
    text = str(value).strip().lower()
    if text not in (*YES, *NO):
        raise InputError(
            f"Column {name!r} holds true and false, not {value!r}.", remedy="Name true or false."
        )
    return text in YES


def label_of(value: Any) -> str:
    """Return a value as the schema and the rows of a release write it.

    >>> label_of(True), label_of(3)
    ('true', '3')
    """
    return TRUTHS[not value] if isinstance(value, bool | np.bool_) else str(value)


def is_number(column: pd.Series) -> bool:
    """Return whether a column holds numbers or truth values."""
    return bool(pd.api.types.is_numeric_dtype(column.dtype))


def is_date(column: pd.Series) -> bool:
    """Return whether a column holds dates or times."""
    return bool(pd.api.types.is_datetime64_any_dtype(column.dtype))


def days_of(dates: pd.Series) -> pd.Series:
    """Return dates and times as days since 1970, with fractions.

    They are counted in microseconds: in nanoseconds, pandas ends in 2262.
    """
    return (dates.dt.as_unit("us") - pd.Timestamp(0).as_unit("us")) / pd.Timedelta(days=1)


def date_text(day: float) -> str:
    """Return a number of days since 1970 as a date and time.

    >>> date_text(18262.5)
    '2020-01-01 12:00'
    """
    try:
        return (datetime(1970, 1, 1) + timedelta(days=day)).isoformat(" ", "minutes")
    except (ValueError, OverflowError):
        return f"day {day:.4g}"


def first_few(values: Any) -> str:
    """Return values in one line, the first three of more than four.

    >>> first_few("abcdef")
    'a, b, c and 3 more'
    """
    texts = [str(v) for v in values]
    few = texts if len(texts) <= 4 else texts[:3]
    more = len(texts) - len(few)
    return ", ".join(few) + (f" and {more:,} more" if more else "")


def first_names(names: Sequence[str]) -> str:
    """Return names of estimates in one line: those of groups as their quantity, and the values of the first groups.

    >>> first_names(["mean(stay) | ward = a", "mean(stay) | ward = b"]), first_names(["stay", "ward"])
    ('mean(stay) | ward = a, b', 'stay, ward')
    """
    quantity, _, group = names[0].partition(" | ")
    stem = f"{quantity} | {group.partition(' = ')[0]} = "
    if len(names) < 2 or not all(name.startswith(stem) for name in names):
        return first_few(names)
    return stem + listed_within([name.removeprefix(stem) for name in names])


def some(values: Any, between: str = ", ") -> str:
    """Return at most a dozen values in one line."""
    texts = [str(v) for v in values]
    return between.join(texts[:12]) + (f"{between}..." if len(texts) > 12 else "")
