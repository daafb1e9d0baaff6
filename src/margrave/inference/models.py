"""Ready analyses: called on a frame they give estimates. Records that miss what an analysis uses are left out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from margrave.errors import InputError
from margrave.inference.columns import column_of, enough, numbers_of, scalar
from margrave.inference.fits import Fitted, estimable
from margrave.inference.formulas import (
    by_value_in,
    check_formula,
    check_terms,
    columns_of,
    leans_on,
    measured,
    need_statsmodels,
    outcome,
    outcome_column,
)
from margrave.inference.kinds import check_held, holds, is_date, value_of
from margrave.inference.parts import OfPart, Where
from margrave.inference.terms import joined_by
from margrave.parameters import is_number as is_real
from margrave.release.evidence import widened
from margrave.schema import Schema
from margrave.typing import Clique, FloatArray

_WOODRUFF = 1.959963984540054  # the 95 % interval of the rank


@dataclass(frozen=True)
class OfOneColumn(OfPart):
    """What an analysis of a single column says of itself: its one estimate is about that column."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column, and those of the part."""
        return tuple(dict.fromkeys([self.column, *self.held]))

    def joins(self, name: str) -> Clique:
        """All of them."""
        return self.columns

    def leans(self, name: str, apart: Clique) -> bool:
        """Its one estimate is about its one column."""
        return True

    def by_value(self, schema: Schema) -> tuple[str, ...]:
        """The columns that it takes by value, and not as categories."""
        return (self.column, *self.finer(schema))


@dataclass(frozen=True)
class Mean(OfOneColumn):
    """The mean of a column of numbers or dates: x̄, with the variance s² / n. Dates count as days since 1970.

    >>> fitted = Mean("x")(pd.DataFrame({"x": [1.0, 2.0, 3.0]}))
    >>> fitted.names, fitted.estimates.tolist(), round(float(fitted.variances[0]), 6)
    (('mean(x)',), [2.0], 0.333333)
    """

    column: str
    where: Where = field(default=None, kw_only=True, hash=False)

    def check(self, frame: pd.DataFrame, schema: Schema | None = None) -> None:
        """The column is there and holds numbers or dates."""
        self.check_part(frame, schema)
        numbers_of(frame, self.column)

    def __call__(self, frame: pd.DataFrame) -> Fitted:
        frame = self.part(frame)
        x = numbers_of(frame, self.column)
        days = is_date(frame[self.column])
        return scalar(f"mean({self.column})", x.mean(), x.var(ddof=1) / len(x), days=days)


@dataclass(frozen=True)
class Proportion(OfOneColumn):
    """The share p of records with a value, among those that have any: variance p̃ (1 − p̃) / n.

    p̃ = (count + ½) / (n + 1), so that a value that no record has still leaves some uncertainty. The value None is the
    missing one: the share of all records that lack a value.
    """

    column: str
    value: Any
    where: Where = field(default=None, kw_only=True, hash=False)
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def check(self, frame: pd.DataFrame, schema: Schema | None = None) -> None:
        """The column is there and may hold the value."""
        self.check_part(frame, schema)
        column = column_of(frame, self.column)
        if self.value is not None:
            value_of(column, self.column, self.value)
        check_held(schema, column, self.column, self.value)

    def by_value(self, schema: Schema) -> tuple[str, ...]:
        """The column, where the value shares its code with others."""
        shared = self.value is not None and widened(schema, self.column, self.value) is not None
        return (*((self.column,) if shared else ()), *self.finer(schema))

    def __call__(self, frame: pd.DataFrame) -> Fitted:
        has = holds(column_of(self.part(frame), self.column), self.column, self.value).dropna()
        n, count = len(has), int(has.sum())
        enough(n, self.column)
        shrunk = (count + 0.5) / (n + 1.0)
        name = f"{self.column} missing" if self.value is None else f"{self.column} = {self.value}"
        return scalar(name, count / n, shrunk * (1.0 - shrunk) / n)


@dataclass(frozen=True)
class Quantile(OfOneColumn):
    """The p-quantile of a column of numbers or dates (days since 1970), with Woodruff's variance.

    The variance is ((u − l) / (2 z))², l and u the sample quantiles at p ∓ z sqrt(p (1 − p) / n), z = 1.96: the
    interval of the rank, carried over to values. Source: Woodruff 1952; Francisco and Fuller 1991 (the variance).
    """

    column: str
    p: float = 0.5
    where: Where = field(default=None, kw_only=True, hash=False)

    def __post_init__(self) -> None:
        if not is_real(self.p) or not 0.0 < self.p < 1.0:
            raise InputError(f"There is no {self.p!r}-quantile.", remedy="p lies between 0 and 1.")

    @property
    def notes(self) -> tuple[str, ...]:
        """The caveat of every quantile, and which records."""
        return (
            *super().notes,
            f"{self._name}: the combining rules take estimates to be normal. That of a quantile is far from it where"
            " the column takes few values, in the tails, and in small tables; within a bin of the schema, values are"
            " drawn evenly, so a quantile is known no better than its bin.",
        )

    @property
    def _name(self) -> str:
        return f"quantile({self.column}, {self.p:g})"

    def check(self, frame: pd.DataFrame, schema: Schema | None = None) -> None:
        """The column is there and holds numbers or dates."""
        self.check_part(frame, schema)
        numbers_of(frame, self.column)

    def __call__(self, frame: pd.DataFrame) -> Fitted:
        frame = self.part(frame)
        x = numbers_of(frame, self.column)
        half = _WOODRUFF * np.sqrt(self.p * (1.0 - self.p) / len(x))
        low, mid, high = np.quantile(x, np.clip([self.p - half, self.p, self.p + half], 0.0, 1.0))
        days = is_date(frame[self.column])
        return scalar(self._name, mid, ((high - low) / (2.0 * _WOODRUFF)) ** 2, days=days)


@dataclass(frozen=True)
class OfFormula(OfPart):
    """What a regression says of itself: each coefficient is about the columns of its term and of the outcome."""

    formula: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the formula names, and those of the part."""
        return tuple(dict.fromkeys([*columns_of(self.formula), *self.held]))

    def leans(self, name: str, apart: Clique) -> bool:
        """Whether a coefficient is about the relation of these columns."""
        return leans_on(self.formula, name, apart) or not self.held.keys().isdisjoint(apart)

    def joins(self, name: str) -> Clique:
        """The columns whose relation all at once a coefficient is about."""
        return tuple(dict.fromkeys([*joined_by(self.formula, name), *self.held]))

    def by_value(self, schema: Schema) -> tuple[str, ...]:
        """The columns that the formula names outside of ``C(...)``."""
        return tuple(dict.fromkeys([*by_value_in(self.formula), *self.finer(schema)]))


@dataclass(frozen=True)
class OLS(OfFormula):
    """Linear regression by a formula: ``OLS("hours ~ age + C(sex)")``.

    Coefficients that a data set does not determine are left out for it. ``robust``: variances that hold with unequal
    spread (HC1). Dates and times enter as days since 1970, true and false, and comparisons, as 1 and 0.
    """

    formula: str
    robust: bool = False
    where: Where = field(default=None, kw_only=True, hash=False)

    def check(self, frame: pd.DataFrame, schema: Schema | None = None) -> None:
        """The formula names columns, and the outcome is a number."""
        need_statsmodels()
        self.check_part(frame, schema)
        tree = check_formula(self.formula, list(frame.columns))
        measured(frame, tree.left)
        check_terms(tree.right, frame)

    def __call__(self, frame: pd.DataFrame) -> Fitted:
        self.check(frame)
        frame = self.part(frame)
        import statsmodels.regression.linear_model as linear

        from margrave.inference.design import design

        tree = check_formula(self.formula, list(frame.columns))
        y, x, names = design(tree.right, frame, measured(frame, tree.left).to_numpy())
        alone, kept = estimable(x)
        result = linear.OLS(y, x[:, kept]).fit(cov_type="HC1" if self.robust else "nonrobust")
        return Fitted.of(_where(names, kept), result.params, result.cov_params()).only(alone[kept])


@dataclass(frozen=True)
class Logistic(OfFormula):
    """Logistic regression by a formula: ``Logistic("income ~ age + C(race)", success=">50K")``, or with a comparison
    on the left, ``Logistic("age > 65 ~ C(sex)")``. Coefficients are log odds ratios.

    ``success`` is the value of the outcome that counts as 1; where a column has two values and it is left out, the
    second counts, and a column of numbers holds 0 and 1. Coefficients that a data set does not determine are left out
    for it; where the outcome is separated the fit says that it did not converge.
    """

    formula: str
    success: Any = None
    robust: bool = False
    where: Where = field(default=None, kw_only=True, hash=False)

    def check(self, frame: pd.DataFrame, schema: Schema | None = None) -> None:
        """The formula names columns, and the outcome has two values."""
        need_statsmodels()
        self.check_part(frame, schema)
        tree = check_formula(self.formula, list(frame.columns))
        outcome(frame, tree.left, self.success)
        check_terms(tree.right, frame)
        column = outcome_column(self.formula)
        if self.success is not None and column is not None:
            check_held(schema, frame[column], column, self.success)

    def __call__(self, frame: pd.DataFrame) -> Fitted:
        need_statsmodels()
        frame = self.part(frame)
        from margrave.inference.design import design

        tree = check_formula(self.formula, list(frame.columns))
        y, x, names = design(tree.right, frame, outcome(frame, tree.left, self.success).to_numpy())
        alone, kept = estimable(x)
        return _logit(y, x[:, kept], _where(names, kept), self.robust).only(alone[kept])


def _logit(y: FloatArray, x: FloatArray, names: tuple[str, ...], robust: bool) -> Fitted:
    import statsmodels.discrete.discrete_model as discrete
    from statsmodels.tools.sm_exceptions import PerfectSeparationError

    try:
        with np.errstate(all="ignore"):
            result = discrete.Logit(y, x).fit(disp=0, cov_type="HC1" if robust else "nonrobust")
            return Fitted.of(
                names, result.params, result.cov_params(), converged=bool(result.mle_retvals["converged"])
            )
    except (np.linalg.LinAlgError, PerfectSeparationError):
        k = len(names)
        return Fitted.of(names, np.full(k, np.nan), np.full((k, k), np.nan), converged=False)


def _where(names: Sequence[str], keep: Any) -> tuple[str, ...]:
    return tuple(n for n, k in zip(names, keep, strict=True) if k)
