"""Means, proportions, quantiles, totals, counts and correlations, of all records or by group.

Rows with a missing value in a column that an estimand uses are left out of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np
import pandas as pd
from scipy.linalg import block_diag

from margrave._fields import is_number as is_real
from margrave.errors import InputError
from margrave.formula import ColumnName, Functions, time_part, written
from margrave.inference.columns import (
    check_correlated,
    check_count,
    check_in_schema,
    column_of,
    indicator,
    is_date,
    is_number,
    is_truth,
    label_of,
    levels_of,
    numbers_in,
    numeric_column,
    value_of,
)
from margrave.inference.datasets import FUNCTIONS, ROWS, TOTAL, TRUTHS, WHOLE_NUMBERS, size_of
from margrave.inference.expressions import group_column
from margrave.inference.fitted import Basis, Estimand, EstimateTerm, Fitted
from margrave.inference.subset import SubsetEstimand, check_no_point
from margrave.release.conditions import means_missing
from margrave.schema import Integer, Schema
from margrave.types import Clique, FloatArray

#: Groups of one analysis.
MAX_GROUPS = 50


@dataclass(frozen=True)
class _Quantity(SubsetEstimand):
    """One number, which is about all columns that it uses.

    Attributes:
        additive: Groups add up to the whole: a group without records counts as 0.
    """

    additive: ClassVar[bool] = False

    def _fitted(
        self, name: str, columns: Clique, estimate: float, variance: float, *, days: bool = False,
        **facts: Any,
    ) -> Fitted:  # fmt: skip
        used = tuple(dict.fromkeys([*columns, *self.conditions]))
        where = tuple(self.conditions.items())
        known: dict[str, Any] = {
            "by_value": columns,
            "exposed": used,
            "notes": self.subset_notes,
            "kind": "quantity",
            "tests_zero": False,
        }
        value = facts.pop("conditions", ())
        basis = Basis(
            used, {name: EstimateTerm(used, used)}, conditions=where + value, **known | facts
        )
        return Fitted.of((name,), [float(estimate)], [[float(variance)]], days=days, basis=basis)


@dataclass(frozen=True)
class _OfNumbers(_Quantity):
    """A quantity of a column of numbers or dates."""

    column: str

    def check(self, frame: pd.DataFrame, schema: Schema | None = None) -> None:
        """Raise `InputError` unless the column holds numbers or dates."""
        self.check_where(frame, schema)
        numbers_in(frame, self.column)


@dataclass(frozen=True)
class Mean(_OfNumbers):
    """The mean x̄ of a column of numbers or dates, with variance s² / n. Dates are days since 1970.

    Example:
        >>> fitted = Mean("x")(pd.DataFrame({"x": [1.0, 2.0, 3.0]}))
        >>> fitted.names, fitted.estimates.tolist(), round(float(fitted.variances[0]), 6)
        (('mean(x)',), [2.0], 0.333333)
    """

    def __call__(self, frame: pd.DataFrame) -> Fitted:
        frame = self.part(frame)
        x = numbers_in(frame, self.column)
        return self._fitted(
            f"mean({self.column})", (self.column,), x.mean(), x.var(ddof=1) / len(x),
            days=is_date(frame[self.column]), ends="shift" if self.conditions else "shares",
            lies="within",
        )  # fmt: skip


@dataclass(frozen=True)
class _OfValue(_Quantity):
    """A quantity of the records with one value of a column."""

    column: str
    value: Any

    def check(self, frame: pd.DataFrame, schema: Schema | None = None) -> None:
        """Raise `InputError` unless the column may hold the value."""
        self.check_where(frame, schema)
        column = column_of(frame, self.column)
        check_in_schema(schema, column, self.column, self.value)
        if schema is not None:
            condition = f"{written(ColumnName(self.column))} > 3"
            remedy = f'Use a condition: in OLS("{condition} ~ 1") the intercept is its share.'
            check_no_point(schema, self.column, self.value, remedy)
        if self.value is not None:
            value_of(column, self.column, self.value)

    def with_missing(self, schema: Schema) -> Self:
        """Return the analysis with None in place of the schema's missing-value codes."""
        found = super().with_missing(schema)
        missing = self.value is not None and means_missing(schema, self.column, self.value)
        return replace(found, value=None) if missing else found

    def _name_in(self, frame: pd.DataFrame) -> str:
        """Return the name of the estimate, with the value as the frame spells it."""
        if self.value is None:
            return f"{self.column} missing"
        column = column_of(frame, self.column)
        spelled = is_truth(column) or levels_of(column) is not None
        value = value_of(column, self.column, self.value) if spelled else self.value
        return f"{self.column} = {label_of(value)}"

    def _of_value(self, name: str, estimate: float, variance: float, **facts: Any) -> Fitted:
        value = ((self.column, self.value),)
        return self._fitted(
            name, (self.column,), estimate, variance, by_value=(), conditions=value, **facts
        )


@dataclass(frozen=True)
class Proportion(_OfValue):
    """The share p of records with a value among those with any: variance p̃ (1 − p̃) / n.

    p̃ = (count + ½) / (n + 1), so that a value without records keeps some uncertainty. The value
    None is the missing one: the share of all records that lack a value.
    """

    def __call__(self, frame: pd.DataFrame) -> Fitted:
        has = indicator(column_of(self.part(frame), self.column), self.column, self.value).dropna()
        n, count = len(has), int(has.sum())
        check_count(n, f"column {self.column!r}")
        shrunk = (count + 0.5) / (n + 1.0)
        variance = shrunk * (1.0 - shrunk) / n
        return self._of_value(self._name_in(frame), count / n, variance, bounds=(0.0, 1.0))


@dataclass(frozen=True)
class Quantile(_OfNumbers):
    """The p-quantile of a column of numbers or dates (days since 1970), with Woodruff's variance.

    The variance is ((u − l) / (2 z))², with l and u the sample quantiles at p ∓ z sqrt(p (1 − p) /
    n) and z = 1.96: the interval of the rank, carried over to values.

    References:
        Woodruff 1952; Francisco and Fuller 1991 (the variance).
    """

    p: float = 0.5

    def __post_init__(self) -> None:
        if not is_real(self.p) or not 0.0 < self.p < 1.0:
            percent = is_real(self.p) and 1.0 < self.p < 100.0
            p = f"{self.p:g}" if is_real(self.p) else repr(self.p)
            of_percent = f" Write {self.p / 100:g} for {p} %." if percent else ""
            raise InputError(
                f"There is no {p}-quantile.", remedy=f"p lies between 0 and 1.{of_percent}"
            )

    def __call__(self, frame: pd.DataFrame) -> Fitted:
        z = 1.959963984540054  # the 97.5 % point of the normal distribution
        frame = self.part(frame)
        x = numbers_in(frame, self.column)
        half = z * np.sqrt(self.p * (1.0 - self.p) / len(x))
        low, mid, high = np.quantile(x, np.clip([self.p - half, self.p, self.p + half], 0.0, 1.0))
        name = f"quantile({self.column}, {self.p:g})"
        caveat = (
            "The combining rules take estimates to be normally distributed. A quantile's is far from that if the column"
            " takes few values, in the tails, and in small tables."
        )
        return self._fitted(
            name, (self.column,), mid, ((high - low) / (2.0 * z)) ** 2,
            days=is_date(frame[self.column]), notes=(*self.subset_notes, caveat), lies="within", ends="bins",
        )  # fmt: skip


@dataclass(frozen=True)
class Total(_Quantity):
    """The total of a column of numbers over all records; those that lack a value add nothing.

    With N the number of real records that a data set stands for, n its own and x̄ their mean:
    N x̄, with variance N² s² / n. N differs among the data sets as far as the noise leaves it
    open, so intervals include its uncertainty. A public number of records has none.

    The interval is for N μ, what as many records of the population have on average. It is too
    wide for the total of the very records in the table, by what sampling adds. For a population
    of another, known size M, take M times the interval of `Mean`.

    Example:
        >>> fitted = Total("x")(pd.DataFrame({"x": [1.0, 2.0, 3.0]}))
        >>> fitted.names, fitted.estimates.tolist(), round(float(fitted.variances[0]), 6)
        (('total(x)',), [6.0], 3.0)
    """

    column: str
    additive: ClassVar[bool] = True

    def check(self, frame: pd.DataFrame, schema: Schema | None = None) -> None:
        """Raise `InputError` unless the column holds numbers."""
        self.check_where(frame, schema)
        numeric_column(frame, self.column)
        if is_date(frame[self.column]):
            raise InputError(
                f"Column {self.column!r} holds dates, which have no total.",
                remedy="Ask for their mean.",
            )

    def __call__(self, frame: pd.DataFrame) -> Fitted:
        self.check(frame)
        x = numeric_column(self.part(frame, empty=True), self.column)
        name, (total, rows) = f"total({self.column})", size_of(frame)
        if rows < 2:
            raise ValueError(f"{name} of {rows} records has no variance")
        mean = float(x.sum()) / rows
        variance = (float((x**2).sum()) / rows - mean**2) * rows / (rows - 1)
        return self._fitted(
            name, (self.column,), total * mean, total**2 * variance / rows, ends="shift",
            lies="signed",
        )  # fmt: skip


@dataclass(frozen=True)
class Count(_OfValue):
    """The number of records with a value, None for the missing one: N times their share.

    N, and the population, are those of `Total`. The variance is N² p̃ (1 − p̃) / n with
    p̃ = (count + ½) / (n + 1), so that a value without records keeps some uncertainty.
    """

    additive: ClassVar[bool] = True

    def __call__(self, frame: pd.DataFrame) -> Fitted:
        part = self.part(frame, empty=True)
        count = indicator(column_of(part, self.column), self.column, self.value).sum()
        total, rows = size_of(frame)
        shrunk = (count + 0.5) / (rows + 1.0)
        variance = total**2 * shrunk * (1.0 - shrunk) / rows
        name = f"count({self._name_in(frame)})"
        return self._of_value(name, total * count / rows, variance, bounds=(0.0, None))


@dataclass(frozen=True)
class Correlation(_Quantity):
    """Pearson's correlation r of two columns of numbers or dates, of the records that have both.

    With u and v the standardized columns, the variance is that of the influences u v − r (u² + v²)
    / 2, over n: right for any distribution, about (1 − r²)² / n for a normal one.

    Example:
        >>> frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [2.0, 1.0, 4.0, 3.0]})
        >>> fitted = Correlation("x", "y")(frame)
        >>> fitted.names, round(float(fitted.estimates[0]), 6)
        (('corr(x, y)',), 0.6)
    """

    x: str
    y: str

    def __post_init__(self) -> None:
        if self.x == self.y:
            raise InputError(f"{self.x!r} is given twice.", remedy="Name two columns.")

    def check(self, frame: pd.DataFrame, schema: Schema | None = None) -> None:
        """Raise `InputError` unless both columns hold numbers or dates."""
        self.check_where(frame, schema)
        check_correlated(frame, self.x, self.y)

    def __call__(self, frame: pd.DataFrame) -> Fitted:
        frame = self.part(frame)
        both = np.stack([numeric_column(frame, self.x), numeric_column(frame, self.y)])
        both = both[:, np.isfinite(both).all(axis=0)]
        check_count(both.shape[1], f"both {self.x!r} and {self.y!r}")
        with np.errstate(invalid="ignore"):  # NaN of a constant column is reported
            u, v = (both - both.mean(axis=1, keepdims=True)) / both.std(axis=1, keepdims=True)
        r = float((u * v).mean())
        variance = float(np.mean((u * v - r * (u**2 + v**2) / 2.0) ** 2)) / both.shape[1]
        name = f"corr({self.x}, {self.y})"
        return self._fitted(
            name, (self.x, self.y), r, variance, bounds=(-1.0, 1.0), tests_zero=True
        )


@dataclass(frozen=True)
class By(Estimand):
    """A quantity for each value of a column of categories: ``By(Mean("stay"), "ward")``.

    Dates and times have groups too: ``By(Mean("fare"), "weekday(pickup)")``, or ``hour``.

    The estimates are ``mean(stay) | ward = a`` and so on, with the values of the schema: a column of truths has the
    groups ``false`` and ``true``. A group with too few records in a data
    set is left out there, but its total is 0. Records without a group are in none.

    Example:
        >>> frame = pd.DataFrame({"x": [1.0, 3.0, 5.0, 9.0], "g": ["a", "a", "b", "b"]})
        >>> fitted = By(Mean("x"), "g")(frame)
        >>> fitted.names, fitted.estimates.tolist()
        (('mean(x) | g = a', 'mean(x) | g = b'), [2.0, 7.0])
    """

    model: Mean | Proportion | Quantile | Total | Count
    column: str

    def __post_init__(self) -> None:
        model, column = cast(object, self.model), cast(object, self.column)
        if not isinstance(model, Estimand):
            named = isinstance(model, str) and isinstance(column, str)
            of, by = map(json.dumps, (model, column) if named else ("stay", "ward"))
            raise InputError(
                "The first argument of By is not a quantity.",
                remedy=f"Give By(Mean({of}), {by}), say.",
            )
        if not isinstance(model, _Quantity):
            raise InputError(
                f"By gives a quantity for each group, and {type(model).__name__} is not one.",
                remedy='For a regression, write the groups as a term, "y ~ x * C(group)", or analyze each group with'
                ' where={"group": "a"}.',
            )
        if not isinstance(column, str):
            raise InputError(
                f"The column of By is of type {type(column).__name__}, not text.",
                remedy="Give the name of one column.",
            )

    def with_missing(self, schema: Schema) -> By:
        """Return the analysis with None in place of the schema's missing-value codes."""
        return replace(self, model=self.model.with_missing(schema))

    def check(self, frame: pd.DataFrame, schema: Schema | None = None) -> None:
        """Raise `InputError` unless the model fits, and the groups' column has few values."""
        group_kinds = ("categorical", "ordinal", "boolean", "integer", "coded", "hour", "weekday")
        self.model.check(frame, schema)
        group_column(frame, self.column)
        if schema is None or self.column not in frame:
            return
        column = schema.column(self.column)
        if column.kind not in group_kinds:
            raise _no_groups(self.column, "holds no categories")
        count = column.size - column.missing
        if isinstance(column, Integer):
            count = column.high - column.low + 1
        if count > MAX_GROUPS:
            raise _no_groups(self.column, f"has {count} values")

    def __call__(self, frame: pd.DataFrame) -> Fitted:
        found = list(self._groups(frame))
        if not found:
            raise ValueError(f"no group of column {self.column!r} has enough records")
        names = tuple(f"{f.names[0]} | {self.column} = {label_of(level)}" for level, f in found)
        estimates = np.array([f.estimates[0] for _, f in found])
        matrix = block_diag(*(f.covariance for _, f in found)) + self._shared(estimates, frame)
        basis = found[0][1].basis
        assert basis is not None  # every quantity has one
        group = _grouped_by(frame, self.column)
        columns = tuple(dict.fromkeys([*basis.columns, group]))
        terms = {
            name: EstimateTerm(columns, columns, levels={group: (label_of(level),)})
            for name, (level, _) in zip(names, found, strict=True)
        }
        groups = (group,) if group in frame and levels_of(frame[group]) is None else ()
        basis = replace(
            basis, columns=columns, terms=terms, exposed=columns,
            by_value=(*basis.by_value, *groups), ends="shift" if basis.ends == "shares" else basis.ends,
        )  # fmt: skip
        return Fitted.of(names, estimates, matrix, partial=True, days=found[0][1].days, basis=basis)

    def _groups(self, frame: pd.DataFrame) -> Iterator[tuple[Any, Fitted]]:
        column = group_column(frame, self.column)
        truths = is_truth(column) or self.column in frame.attrs.get(TRUTHS, ())
        known = frame.attrs.get(WHOLE_NUMBERS, {}).get(self.column)
        for level in [False, True] if truths else known or _levels(column, self.column):
            part = frame[(column == level).fillna(False).astype(bool)]
            part.attrs = {**frame.attrs, **dict(zip((TOTAL, ROWS), size_of(frame), strict=True))}
            try:
                found = self.model(part) if self.model.additive or len(part) else None
            except InputError:
                raise
            except ValueError:  # too few records
                found = None
            if found is not None:
                yield level, found

    def _shared(self, estimates: FloatArray, frame: pd.DataFrame) -> FloatArray:
        """Return the covariance between groups: −t_a t_b / n for totals of n records, else 0."""
        k = len(estimates)
        if not self.model.additive:
            return np.zeros((k, k))
        return np.asarray((np.eye(k) - 1.0) * np.outer(estimates, estimates) / size_of(frame)[1])


def _grouped_by(frame: pd.DataFrame, name: str) -> str:
    """Return the schema's column that makes the groups: of ``hour(x)`` the part, if there is one."""
    call = None if name in frame else time_part(name)
    known: Functions = frame.attrs.get(FUNCTIONS, {})
    return name if call is None else known.get(call, call[1])


def _levels(column: pd.Series, name: str) -> list[Any]:
    levels = levels_of(column)
    if levels is None and is_number(column) and not (column.dropna() % 1).any():
        levels = sorted(int(v) for v in column.dropna().unique())
    if levels is None:
        raise _no_groups(name, "holds no categories")
    if len(levels) > MAX_GROUPS:
        raise _no_groups(name, f"has {len(levels)} values")
    return levels


def _no_groups(name: str, why: str) -> InputError:
    return InputError(
        f"Column {name!r} {why}, which makes no groups.",
        remedy=f"Name one of at most {MAX_GROUPS} categories, or choose records in a function: frame[frame.age > 65].",
    )
