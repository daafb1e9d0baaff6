"""Columns of a frame: their kinds, and values as they hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from margrave.errors import InputError
from margrave.release.evidence import codes_of
from margrave.schema import Schema
from margrave.schema.column import some_of
from margrave.schema.discrete import NO, YES

_WHOLE = ("integer", "coded")


def value_of(column: pd.Series, name: str, value: Any) -> Any:
    """A value as the column holds it, from the value or its text. Truths may be written as in a schema's table."""
    if is_truth(column):
        return _truth(name, value)
    levels = levels_of(column)
    if levels is not None:
        found = [level for level in levels if level == value or str(level).lower() == str(value).lower()]
        exact = [level for level in found if level == value or str(level) == str(value)]
        if not found:
            raise InputError(f"Column {name!r} has no value {value!r}.", remedy=f"Its values: {some(levels)}.")
        return (exact or found)[0]
    if str(value).strip().lower() in (*YES, *NO) and is_number(column) and column.dropna().isin([0, 1]).all():
        return float(_truth(name, value))
    try:
        return pd.Timestamp(value) if is_date(column) else float(value)
    except (TypeError, ValueError):
        raise InputError(f"Column {name!r} cannot hold {value!r}.", remedy="Name a value of its kind.") from None


def holds(column: pd.Series, name: str, value: Any) -> pd.Series:
    """1 where a column holds a value, 0 where another, NaN where it lacks any. None asks where it lacks one."""
    if value is None:
        return column.isna().astype(float)
    has: pd.Series = (column == value_of(column, name, value)).astype(float).where(column.notna())
    return has


def check_held(schema: Schema | None, column: pd.Series, name: str, value: Any) -> None:
    """An InputError for a number or date that the schema's column cannot hold; ``value_of`` checks texts."""
    if schema is not None and value is None and not schema.column(name).missing:
        raise InputError(
            f"Column {name!r} lacks no value, by the schema.", remedy=f"It has {some_of(schema.column(name).labels())}."
        )
    if value is None or schema is None or is_truth(column) or not (is_number(column) or is_date(column)):
        return
    codes_of(schema, name, value)
    if schema.column(name).kind in _WHOLE and not _is_whole_number(value):
        raise InputError(
            f"Column {name!r} holds whole numbers, and {value!r} is not one.",
            remedy=f"It has {some_of(schema.column(name).labels())}.",
        )


def _is_whole_number(value: Any) -> bool:
    try:
        return float(value) % 1 == 0
    except (TypeError, ValueError, OverflowError):
        return False


def levels_of(column: pd.Series) -> list[Any] | None:
    """The values of a column of categories, or of one of texts, in which a frame of the analyst's own may hold them.

    None for numbers, dates and truths of a type of their own.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return list(column.cat.categories)
    if is_number(column) or not (pd.api.types.is_string_dtype(column.dtype) or column.dtype == np.dtype(object)):
        return None
    return sorted(column.dropna().unique(), key=str)


def is_truth(column: pd.Series) -> bool:
    """True and false, also where some are missing."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return list(column.cat.categories) == [False, True] and column.cat.categories.dtype == np.dtype(bool)
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


def is_number(column: pd.Series) -> bool:
    """Numbers, truth values among them."""
    return bool(pd.api.types.is_numeric_dtype(column.dtype))


def is_date(column: pd.Series) -> bool:
    """Dates or times."""
    return bool(pd.api.types.is_datetime64_any_dtype(column.dtype))


def some(values: Any, between: str = ", ") -> str:
    """The values in a line, cut after a dozen."""
    texts = [str(v) for v in values]
    return between.join(texts[:12]) + (f"{between}..." if len(texts) > 12 else "")


def days_of(dates: pd.Series) -> pd.Series:
    """Dates and times as days since 1970, with fractions."""
    return (dates - pd.Timestamp(0)) / pd.Timedelta(days=1)


def day_in_words(day: float) -> str:
    """A number of days since 1970 as a date and time.

    >>> day_in_words(18262.5)
    '2020-01-01 12:00'
    """
    try:
        return f"{pd.Timestamp(day, unit='D'):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):
        return f"day {day:.4g}"
