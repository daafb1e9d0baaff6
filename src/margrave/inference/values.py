"""Expressions of formulas on a frame, evaluated node by node: numbers, truths or categories, one for each record."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import reduce
from typing import Any, cast

import numpy as np
import pandas as pd

from margrave.errors import InputError
from margrave.formula import (
    Call,
    Category,
    Chain,
    Column,
    Compare,
    Logic,
    Missing,
    Negative,
    Node,
    Not,
    Number,
    Power,
    Text,
    written,
)
from margrave.inference.kinds import days_of, is_date, is_number, is_truth, levels_of, some
from margrave.typing import BoolArray, FloatArray

SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "&": np.logical_and, "|": np.logical_or,
}  # fmt: skip

#: Functions of which the values are several columns, which an encoder makes.
SPLINES = ("bs", "cr")

#: Days before and after 1970 that have a year, a month and a weekday here: about 270,000 years.
MAX_DAYS = 1e8


def _date_part(days: FloatArray, part: Callable[[Any], Any]) -> FloatArray:
    """Return a part of dates given as days since 1970, NaN where one is missing."""
    if (np.abs(days) > MAX_DAYS).any():
        raise InputError("A formula takes the year of a number that is not a date.", remedy="Give days since 1970.")
    missing = np.isnan(days)
    whole = np.floor(np.where(missing, 0.0, days)).astype("datetime64[D]")
    return np.where(missing, np.nan, part(whole).astype(np.float64))


def year(days: FloatArray) -> FloatArray:
    """Return the year of days since 1970.

    >>> year(np.array([0.0, 365.5])).tolist(), month(np.array([31.0])).tolist()
    ([1970.0, 1971.0], [2.0])
    """
    return _date_part(days, lambda d: d.astype("datetime64[Y]").astype(np.int64) + 1970)


def month(days: FloatArray) -> FloatArray:
    """Return the month, 1 to 12."""
    return _date_part(days, lambda d: d.astype("datetime64[M]").astype(np.int64) % 12 + 1)


def weekday(days: FloatArray) -> FloatArray:
    """Return the day of the week: 0 is Monday.

    >>> weekday(np.array([0.0, 4.0])).tolist()
    [3.0, 0.0]
    """
    return _date_part(days, lambda d: (d.astype(np.int64) + 3) % 7)


def _center(x: FloatArray) -> FloatArray:
    return x - x.mean() if len(x) else x


def _standardize(x: FloatArray) -> FloatArray:
    return _center(x) / x.std() if len(x) else x


def _cut(x: FloatArray, bins: tuple[float, ...], **named: bool) -> Any:
    return pd.cut(x, [int(edge) if edge.is_integer() else edge for edge in bins], **named)


NUMERIC: Mapping[str, Callable[..., Any]] = {
    **{f"np.{name}": getattr(np, name) for name in ("log", "log2", "log10", "log1p", "exp", "sqrt", "abs", "floor")},
    "np.maximum": np.maximum, "np.minimum": np.minimum, "year": year, "month": month, "weekday": weekday,
    "center": _center, "standardize": _standardize,
}  # fmt: skip


class Evaluation:
    """A frame, and the values of expressions on it."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    def of(self, node: Node) -> Any:
        """Return an array of numbers or truths, or a categorical.

        Raises:
            InputError: The columns' kinds do not fit the expression.
        """
        with np.errstate(all="ignore"):
            return self._of(node)

    def numbers(self, node: Node) -> FloatArray:
        """Return numbers; truths count as 1 and 0."""
        values = self.of(node)
        if isinstance(values, pd.Categorical):
            raise InputError(
                f"{written(node)} is not a number, and the formula takes it for one.",
                remedy=f"Compare it, as {written(node)} == 'value', or write C({written(node)}) as a term.",
            )
        return np.asarray(values, dtype=np.float64)

    def truths(self, node: Node) -> BoolArray:
        """Return truths; numbers may be 1 and 0."""
        values = self.of(node)
        if not isinstance(values, pd.Categorical):
            if values.dtype == np.dtype(bool):
                return np.asarray(values)
            if np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
                return np.asarray(values == 1.0)
        raise InputError(
            f"{written(node)} is not true or false, and the formula takes it for that.",
            remedy="Write a comparison, such as age > 65.",
        )

    def _of(self, node: Node) -> Any:
        match node:
            case Number(value):
                return np.full(len(self.frame), value)
            case Column(name):
                return column_values(self.frame[name])
            case Missing(column, present):
                return self.frame[column.name].isna().to_numpy() ^ present
            case Chain(first, rest):
                return reduce(lambda x, part: SIGNS[part[0]](x, self.numbers(part[1])), rest, self.numbers(first))
            case Power(base, exponent):
                return np.power(self.numbers(base), exponent)
            case Negative(operand):
                return -self.numbers(operand)
            case Compare(first, rest):
                sides = [first, *(side for _, side in rest)]
                pairs = zip(sides[:-1], (sign for sign, _ in rest), sides[1:], strict=True)
                return reduce(np.logical_and, [self._compared(*pair) for pair in pairs])
            case Logic(sign, parts):
                return reduce(SIGNS[sign], [self.truths(part) for part in parts])
            case Not(operand):
                return ~self.truths(operand)
            case Call("I", (operand,), _) | Category(operand, _):
                return self._of(operand)
            case Call("pd.cut", (operand,), options):
                return _cut(self.numbers(operand), **cast(Any, dict(options)))
            case Call(function, arguments, _) if function in NUMERIC:
                return NUMERIC[function](*[self.numbers(argument) for argument in arguments])
        raise InputError(f"{written(node)} cannot stand inside of another expression.", remedy="Make it a term.")

    def _compared(self, left: Node, sign: str, right: Node) -> BoolArray:
        if isinstance(left, Text):
            left, right = right, left
            sign = sign.translate(str.maketrans("<>", "><"))
        if isinstance(right, Text):
            return self._with_text(left, sign, right.value)
        values, other = self.of(left), self.of(right)
        if isinstance(other, pd.Categorical) and not isinstance(values, pd.Categorical):
            return self._compared(right, sign.translate(str.maketrans("<>", "><")), left)
        if isinstance(values, pd.Categorical):
            if isinstance(right, Number):
                return self._with_level(left, values, sign, right.value)
            if isinstance(other, pd.Categorical) and sign in ("==", "!="):
                return np.asarray(SIGNS[sign](*(v.astype(object).astype(str) for v in (values, other))))
            raise InputError(
                f"{written(left)} and {written(right)} cannot be compared by {sign}.", remedy="Compare with a value."
            )
        return np.asarray(SIGNS[sign](values, other))

    def _with_text(self, node: Node, sign: str, text: str) -> BoolArray:
        if isinstance(node, Column) and is_date(self.frame[node.name]):
            return np.asarray(SIGNS[sign](self.of(node), _day(text, node)))
        values = None if isinstance(node, Text) else self.of(node)
        if not isinstance(values, pd.Categorical):
            raise InputError(
                f"{written(node)} does not hold texts, and the formula compares it with {text!r}.",
                remedy="Compare numbers with numbers, such as age > 65; write true and false as ill == True.",
            )
        return self._with_level(node, values, sign, text)

    def _with_level(self, node: Node, values: pd.Categorical, sign: str, level: str | float) -> BoolArray:
        place = place_of(values, level)
        if place is None and not self._open(node):
            raise unknown_level(node, values, level)
        if sign in ("==", "!="):
            return np.asarray(SIGNS[sign](values.codes, -2 if place is None else place))
        if not values.ordered or place is None:
            raise InputError(
                f"{written(node)} has no order, so it is not compared by {sign}.", remedy="Use == or !=."
            )
        return np.asarray(SIGNS[sign](values.codes, place))

    def _open(self, node: Node) -> bool:
        """Whether a column's levels are only those that occur in this frame."""
        return isinstance(node, Column) and not isinstance(self.frame[node.name].dtype, pd.CategoricalDtype)


def column_values(column: pd.Series) -> Any:
    """Return a column's numbers, truths (a missing one is False) or categories; dates are days since 1970."""
    if is_date(column):
        return days_of(column).to_numpy(dtype=np.float64, na_value=np.nan)
    if is_truth(column):
        return (column == True).to_numpy(dtype=np.bool_, na_value=False)  # noqa: E712
    if is_number(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.array
    levels = levels_of(column)
    if levels is None:
        raise InputError(f"Column {column.name!r} holds values that formulas do not take.", remedy="Leave it out.")
    return pd.Categorical(column, categories=levels)


def complete(frame: pd.DataFrame, names: tuple[str, ...]) -> BoolArray:
    """Return which records lack a value of none of these columns."""
    return np.asarray(frame[list(names)].notna().all(axis=1).to_numpy(dtype=np.bool_))


def categories_of(values: Any) -> pd.Categorical:
    """Return values as categories with texts as levels; whole numbers have no fraction."""
    if isinstance(values, pd.Categorical):
        return values.rename_categories(_labels(list(values.categories)))
    values = np.asarray(values)
    levels = np.array([False, True]) if values.dtype == np.dtype(bool) else np.unique(values[~np.isnan(values)])
    return pd.Categorical(values, categories=levels).rename_categories(_labels(levels.tolist()))


def _labels(levels: list[Any]) -> list[str]:
    return [str(int(v)) if isinstance(v, float) and v.is_integer() and abs(v) < 1e15 else str(v) for v in levels]


def place_of(values: pd.Categorical, level: Any) -> int | None:
    """Return the place of a level among a categorical's, which may be given as a text; None if it has none."""
    levels = list(values.categories)
    exact = [i for i, own in enumerate(levels) if own == level and isinstance(own, bool) == isinstance(level, bool)]
    text = _labels([level])[0]
    alike = [i for i, own in enumerate(_labels(levels)) if own == text]
    return next(iter(exact or alike), None)


def unknown_level(node: Node, values: pd.Categorical, level: Any) -> InputError:
    """Return the error of a level that a categorical does not have."""
    return InputError(
        f"{written(node)} has no value {level!r}.", remedy=f"Its values: {some(_labels(list(values.categories)))}."
    )


def _day(text: str, node: Node) -> float:
    try:
        return float(days_of(pd.Series([pd.Timestamp(datetime.fromisoformat(text))]))[0])
    except (ValueError, OverflowError, TypeError):
        raise InputError(
            f"{written(node)} holds dates, and the formula compares it with {text!r}.",
            remedy="Write the date as '2020-12-31'.",
        ) from None


def is_missing(values: Any) -> BoolArray:
    """Return which values are missing."""
    return np.asarray(pd.isna(values))


def infinite(text: str) -> ValueError:
    """Return the error of an expression that is infinite for a record of this data set."""
    return ValueError(f"{text} is infinite for a record: use a function that is finite, such as np.log1p")
