"""Values of a formula's expressions on a frame: numbers, truths or categories, one per record."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import partial, reduce
from typing import Any, cast

import numpy as np
import pandas as pd

from margrave.errors import InputError, did_you_mean, other_column
from margrave.formula import (
    Call,
    Category,
    Chain,
    ColumnName,
    Compare,
    Logic,
    Missing,
    Negative,
    Node,
    Not,
    Number,
    Power,
    Text,
    columns_in,
    quoting_hint,
    time_part,
    written,
)
from margrave.inference.columns import (
    column_of,
    days_of,
    is_date,
    is_number,
    is_truth,
    levels_of,
    some,
)
from margrave.inference.datasets import TRUTHS
from margrave.schema.parts import Hour, Weekday
from margrave.types import BoolArray, FloatArray, IntArray

SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "&": np.logical_and, "|": np.logical_or,
}  # fmt: skip
_MIRRORED = str.maketrans("<>", "><")

#: Functions whose values are several columns, which an encoder makes.
SPLINES = ("bs", "cr")


#: Parts of dates and times, of whole seconds since 1970.
_DATE_PARTS: Mapping[str, Callable[[IntArray], Any]] = {
    "year": lambda s: s.astype("datetime64[s]").astype("datetime64[Y]").astype(np.int64) + 1970,
    "month": lambda s: s.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64) % 12 + 1,
    Weekday.kind: Weekday.codes_at,
    Hour.kind: Hour.codes_at,
}


def date_part(part: str, days: FloatArray) -> FloatArray:
    """Return the year, month (1 to 12), weekday (0 is Monday) or hour of days since 1970, or NaN.

    >>> date_part("year", np.array([0.0, 365.5])).tolist(), date_part("weekday", np.array([4.0]))
    ([1970.0, 1971.0], array([0.]))
    >>> date_part("hour", np.array([18262 + 13 / 24])).tolist()
    [13.0]
    """
    # Days before and after 1970 that have a year, a month and a weekday: about 270,000 years.
    max_days = 1e8
    if (np.abs(days) > max_days).any():
        raise InputError(
            "A formula takes the year of a number that is not a date.",
            remedy="Give days since 1970.",
        )
    missing = np.isnan(days)
    # A day's fraction is rounded to milliseconds: 13 hours of a day are not exact in binary.
    seconds = np.floor(np.rint(np.where(missing, 0.0, days) * 86_400_000) / 1000).astype(np.int64)
    return np.where(missing, np.nan, _DATE_PARTS[part](seconds).astype(np.float64))


def _center(x: FloatArray) -> FloatArray:
    return x - x.mean() if len(x) else x


def _standardize(x: FloatArray) -> FloatArray:
    return _center(x) / x.std() if len(x) else x


def _cut(x: FloatArray, bins: tuple[float, ...], **named: bool) -> Any:
    exact = 2.0**53  # whole numbers up to here are named without a fraction
    edges = [int(e) if e.is_integer() and abs(e) <= exact else e for e in bins]
    return pd.cut(x, edges, **named)


NUMERIC: Mapping[str, Callable[..., Any]] = {
    **{f"np.{name}": getattr(np, name) for name in ("log", "log2", "log10", "log1p", "exp", "sqrt", "abs", "floor")},
    "np.maximum": np.maximum, "np.minimum": np.minimum, **{part: partial(date_part, part) for part in _DATE_PARTS},
    "center": _center, "standardize": _standardize,
}  # fmt: skip


class Evaluator:
    """A frame, and the values of expressions on it. Only nodes of the formula's tree are run."""

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
            case ColumnName(name):
                return column_values(self.frame[name])
            case Missing(column, present):
                return self.frame[column.name].isna().to_numpy() ^ present
            case Chain(first, rest):
                terms = ((sign, self.numbers(part)) for sign, part in rest)
                return reduce(lambda x, t: SIGNS[t[0]](x, t[1]), terms, self.numbers(first))
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
            case Category(ColumnName(name), _) if name in self.frame.attrs.get(TRUTHS, ()):
                return np.asarray(self.frame[name] == 1, dtype=np.bool_)
            case Call("I", (operand,), _) | Category(operand, _):
                return self._of(operand)
            case Call("pd.cut", (operand,), options):
                return _cut(self.numbers(operand), **cast(Any, dict(options)))
            case Call(function, arguments, _) if function in NUMERIC:
                return NUMERIC[function](*[self.numbers(argument) for argument in arguments])
        raise InputError(
            f"{written(node)} cannot stand inside of another expression.", remedy="Make it a term."
        )

    def _compared(self, left: Node, sign: str, right: Node) -> BoolArray:
        if isinstance(left, Text):
            left, right, sign = right, left, sign.translate(_MIRRORED)
        if isinstance(right, Text):
            return self._with_text(left, sign, right.value)
        values, other = self.of(left), self.of(right)
        if isinstance(other, pd.Categorical) and not isinstance(values, pd.Categorical):
            return self._compared(right, sign.translate(_MIRRORED), left)
        if not isinstance(values, pd.Categorical):
            return np.asarray(SIGNS[sign](values, other))
        if isinstance(right, Number):
            return self._with_level(left, values, sign, right.value)
        if isinstance(other, pd.Categorical) and sign in ("==", "!="):
            return np.asarray(SIGNS[sign](*(v.astype(object).astype(str) for v in (values, other))))
        raise InputError(
            f"{written(left)} and {written(right)} cannot be compared by {sign}.",
            remedy="Compare with a value.",
        )

    def _with_text(self, node: Node, sign: str, text: str) -> BoolArray:
        if isinstance(node, ColumnName) and is_date(self.frame[node.name]):
            return np.asarray(SIGNS[sign](self.of(node), _day(text, node)))
        values = None if isinstance(node, Text) else self.of(node)
        if not isinstance(values, pd.Categorical):
            raise InputError(
                f"{written(node)} does not hold texts, and the formula compares it with {text!r}.",
                remedy="Compare numbers with numbers, such as age > 65; write true and false as ill == True.",
            )
        return self._with_level(node, values, sign, text)

    def _with_level(
        self, node: Node, values: pd.Categorical, sign: str, level: str | float
    ) -> BoolArray:
        place = place_of(values, level)
        if place is None and not self._has_open_levels(node):
            raise unknown_level(node, values, level)
        if sign in ("==", "!="):
            return np.asarray(SIGNS[sign](values.codes, -2 if place is None else place))
        if not values.ordered or place is None:
            raise InputError(
                f"{written(node)} has no order, so it is not compared by {sign}.",
                remedy="Use == or !=.",
            )
        return np.asarray(SIGNS[sign](values.codes, place))

    def _has_open_levels(self, node: Node) -> bool:
        """Return whether a column's levels are only those that occur in this frame."""
        if not isinstance(node, ColumnName):
            return False
        return not isinstance(self.frame[node.name].dtype, pd.CategoricalDtype)


def check_columns(node: Node, columns: Collection[str], ignored: Collection[str] = ()) -> None:
    """Raise `InputError` if an expression names something that is not a column."""
    known = [*map(str, columns)]
    for name in columns_in(node):
        if name not in columns:
            hint = quoting_hint(name, known)
            raise InputError(
                f"The formula names {name!r}, which is not a column.",
                remedy=f"{hint}The columns are: {', '.join(known)}."
                if hint
                else other_column(name, known, ignored),
            )


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
        raise InputError(
            f"Column {column.name!r} holds values that formulas do not take.",
            remedy="Leave it out.",
        )
    return pd.Categorical(column, categories=levels)


def group_column(frame: pd.DataFrame, name: str) -> pd.Series:
    """Return the column that makes groups: one of the frame, or ``hour(x)`` or ``weekday(x)`` of one.

    Raises:
        InputError: The frame has no such column, or it does not hold dates or times.
    """
    function, column = (None if name in frame else time_part(name)) or ("", name)
    words = {p.kind: p.words for p in (Hour, Weekday)}.get(function)
    if words is None:
        return column_of(frame, name)
    if not is_date(column_of(frame, column)):
        raise InputError(
            f"Column {column!r} has no {function}.", remedy="Name a column of dates or times."
        )
    part = date_part(function, column_values(frame[column]))
    codes = np.where(np.isnan(part), -1, part).astype(np.int64)
    values = pd.Categorical.from_codes(codes, categories=list(words), ordered=True)
    return pd.Series(values, index=frame.index, name=name)


def complete_rows(frame: pd.DataFrame, names: tuple[str, ...]) -> BoolArray:
    """Return a mask of the rows that have a value in each of these columns."""
    return np.asarray(frame[list(names)].notna().all(axis=1).to_numpy(dtype=np.bool_))


def categories_of(values: Any) -> pd.Categorical:
    """Return values as categories with texts as levels; whole numbers have no fraction."""
    if isinstance(values, pd.Categorical):
        return values.rename_categories(_labels(list(values.categories)))
    values = np.asarray(values)
    truths = values.dtype == np.dtype(bool)
    levels = np.array([False, True]) if truths else np.unique(values[~np.isnan(values)])
    return pd.Categorical(values, categories=levels).rename_categories(_labels(levels.tolist()))


def _labels(levels: list[Any]) -> list[str]:
    return [
        str(int(v)) if isinstance(v, float) and v.is_integer() and abs(v) < 1e15 else str(v)
        for v in levels
    ]


def place_of(values: pd.Categorical, level: Any) -> int | None:
    """Return the place of a level, which may be given as its text; None if there is none."""
    levels = list(values.categories)
    truth, text = isinstance(level, bool), _labels([level])[0]
    exact = [i for i, v in enumerate(levels) if v == level and isinstance(v, bool) == truth]
    alike = [i for i, v in enumerate(_labels(levels)) if v == text]
    return next(iter(exact or alike), None)


def unknown_level(node: Node, values: pd.Categorical, level: Any) -> InputError:
    """Return the error of a level that a categorical does not have."""
    levels = _labels(list(values.categories))
    return InputError(
        f"{written(node)} has no value {level!r}.",
        remedy=f"{did_you_mean(level, levels)}Its values: {some(levels)}.",
    )


def _day(text: str, node: Node) -> float:
    try:
        return float(days_of(pd.Series([pd.Timestamp(datetime.fromisoformat(text))]))[0])
    except (ValueError, OverflowError, TypeError):
        raise InputError(
            f"{written(node)} holds dates, and the formula compares it with {text!r}.",
            remedy="Write the date as '2020-12-31'.",
        ) from None


def infinite_value(text: str) -> ValueError:
    """Return the error of an expression that is infinite for a record of this data set."""
    return ValueError(
        f"{text} is infinite for a record: use a function that is finite, such as np.log1p"
    )
