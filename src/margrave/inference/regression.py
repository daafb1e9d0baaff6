"""Linear and logistic regression by a formula, which is data: parsed to a closed tree, never run."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from importlib.util import find_spec
from itertools import chain
from typing import Any, Self

import numpy as np
import pandas as pd

from margrave._card import counted
from margrave.errors import InputError
from margrave.formula import (
    Call,
    Category,
    ColumnName,
    Formula,
    Functions,
    Node,
    Number,
    check_outcome,
    columns_in,
    expand,
    gives_truth,
    has_columns_alone,
    needed_in,
    parse,
    written,
)
from margrave.inference.columns import (
    SCHEMA,
    check_in_schema,
    check_not_person_id,
    has_open_levels,
    ignored_in,
    is_number,
    is_truth,
    label_of,
    levels_of,
    some,
    value_of,
)
from margrave.inference.datasets import FUNCTIONS
from margrave.inference.expressions import (
    SPLINES,
    Evaluator,
    check_columns,
    complete_rows,
    infinite_value,
    place_of,
    unknown_level,
)
from margrave.inference.fitted import Basis, Fitted, estimable, selected
from margrave.inference.regression_terms import Levels, needed_by, terms_of
from margrave.inference.subset import SubsetEstimand
from margrave.release.conditions import check_not_label
from margrave.schema import Coded, Column, Schema
from margrave.types import Clique, FloatArray


@dataclass(frozen=True)
class _Regression(SubsetEstimand):
    """A regression by a formula. Coefficients that a data set does not determine are absent.

    Attributes:
        levels: By factor of numbers taken as categories, the levels that `with_levels` fixed.
    """

    formula: str
    levels: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict, kw_only=True, hash=False, compare=False, repr=False
    )

    def check(self, frame: pd.DataFrame, schema: Schema | None = None) -> None:
        """Raise `InputError` unless the formula names columns of kinds that fit."""
        _need_libraries()
        self.check_where(frame, schema)
        known = parse(self.formula)
        check_not_person_id([*columns_in(known.left), *columns_in(known.right)], frame)
        tree = check_formula(self.formula, list(frame.columns), ignored_in(frame))
        self._outcome(frame, tree.left)
        check_terms(tree.right, frame, schema)

    @property
    def leveled(self) -> Clique:
        """The columns of ``C(...)``, and those that choose the records."""
        _need_libraries()
        from margrave.inference.design import categories_in

        inside = [columns_in(n) for n in categories_in(parse(self.formula).right).values()]
        return tuple(dict.fromkeys([*chain(*inside), *self.conditions])) if inside else ()

    def with_levels(self, frame: pd.DataFrame) -> Self:
        """Return the regression with the reference of numbers taken as categories fixed: their commonest value."""
        from margrave.inference.design import fixed_levels

        if not set(self.leveled) <= set(frame.columns):
            return self  # the run reports it
        part = self.part(frame, empty=True)
        return replace(self, levels=fixed_levels(parse(self.formula).right, part))

    def __call__(self, frame: pd.DataFrame) -> Fitted:
        _need_libraries()
        from margrave.inference.design import design, references

        frame = self.part(frame)
        tree = check_formula(self.formula, list(frame.columns))
        outcome = self._outcome(frame, tree.left).to_numpy()
        y, x, names = design(tree.right, frame, outcome, self.levels)
        alone, independent = estimable(x)
        if not alone.any():
            _check_splines(tree.right)
            raise InputError(
                f"No coefficient of {tree} is determined: its terms have one value, or add up to each other.",
                remedy="Leave out terms that are the same for every record.",
            )
        fitted = self._fit(y, x[:, independent], selected(names, independent))
        fitted = fitted.only(alone[independent])
        stated = references(tree.right, frame, fitted.names, self.levels)
        return replace(
            fitted,
            basis=self._basis(
                tree, fitted.names, frame.attrs.get(FUNCTIONS, {}),
                notes=(*self.subset_notes, *stated),
            ),
        )  # fmt: skip

    @abstractmethod
    def _outcome(self, frame: pd.DataFrame, left: Node) -> pd.Series:
        """Return the outcome as numbers, NaN if a column that it needs is missing."""

    @abstractmethod
    def _fit(self, y: FloatArray, x: FloatArray, names: tuple[str, ...]) -> Fitted: ...

    def _basis(
        self, tree: Formula, names: tuple[str, ...], functions: Functions, **facts: Any
    ) -> Basis:
        where = tuple(self.conditions)

        def named(*, coded: bool) -> Clique:
            sides = (
                columns_in(s, coded=coded, functions=functions) for s in (tree.left, tree.right)
            )
            return tuple(dict.fromkeys(chain.from_iterable(sides)))

        by_value = named(coded=False)
        known = {"conditions": tuple(self.conditions.items()), "notes": self.subset_notes} | facts
        return Basis(
            tuple(dict.fromkeys([*named(coded=True), *where])),
            terms_of(tree, names, where, tuple(functions.items()), tuple(self.levels.items())), by_value,
            (*by_value, *where), needed_by(tree, functions), kind="coefficients", **known,
        )  # fmt: skip


@dataclass(frozen=True)
class OLS(_Regression):
    """Linear regression by a formula: ``OLS("hours ~ age + C(sex)")``.

    Dates and times enter as days since 1970; true and false, and comparisons, as 1 and 0.

    Attributes:
        formula: ``outcome ~ terms``; see the page on inference for its grammar.
        robust: Use variances that hold with unequal spread (HC1).
    """

    robust: bool = False

    def _outcome(self, frame: pd.DataFrame, left: Node) -> pd.Series:
        column = frame[left.name] if isinstance(left, ColumnName) else None
        if column is not None and not is_truth(column) and levels_of(column) is not None:
            levels = levels_of(column) or []
            right = written(parse(self.formula).right)
            one = f" == {label_of(levels[0])!r}" if len(levels) > 2 else ""
            formula = json.dumps(f"{written(left)}{one} ~ {right}", ensure_ascii=False)
            do = "Compare one of its values with the others" if one else "Use a logistic regression"
            raise InputError(
                f"Column {column.name!r} is not a number, so it cannot be an outcome.",
                remedy=f"{do}: margrave analyze logistic RELEASE {formula} (in Python Logistic({formula})).",
            )
        found = _series(frame, left, Evaluator(frame).numbers(left))
        if np.isinf(found).any():
            raise infinite_value(written(left))
        return found

    def _fit(self, y: FloatArray, x: FloatArray, names: tuple[str, ...]) -> Fitted:
        import statsmodels.regression.linear_model as linear

        result = linear.OLS(y, x).fit(cov_type="HC1" if self.robust else "nonrobust")
        return Fitted.of(names, result.params, result.cov_params())

    def _basis(
        self, tree: Formula, names: tuple[str, ...], functions: Functions, **facts: Any
    ) -> Basis:
        facts["by_moments"] = has_columns_alone(tree) and not self.conditions
        return super()._basis(tree, names, functions, **facts)


@dataclass(frozen=True)
class Logistic(_Regression):
    """Logistic regression by a formula, whose coefficients are log odds ratios.

    ``Logistic("income ~ age + C(race)", success=">50K")``, or with a comparison on the left,
    ``Logistic("age > 65 ~ C(sex)")``. A separated outcome is a fit that did not converge.

    Attributes:
        formula: ``outcome ~ terms``; see the page on inference for its grammar.
        success: The value of the outcome that counts as 1. By default the second of two values;
            a column of numbers holds 0 and 1.
        robust: Use variances that hold with unequal spread (HC1).
    """

    success: Any = None
    robust: bool = False

    def check(self, frame: pd.DataFrame, schema: Schema | None = None) -> None:
        """Raise `InputError` unless the columns fit and the outcome has two values."""
        left = parse(self.formula).left
        if schema is not None and isinstance(left, ColumnName) and left.name in schema.domain:
            check_not_label(schema, left.name, self.success)
        super().check(frame, schema)
        if not isinstance(left, ColumnName):
            return
        if self.success is not None:
            check_in_schema(schema, frame[left.name], left.name, self.success)
        elif schema is not None and not _is_binary(schema.column(left.name)):
            raise self._not_binary(left.name, schema)

    def _outcome(self, frame: pd.DataFrame, left: Node) -> pd.Series:
        if isinstance(left, ColumnName):
            column = frame[left.name]
            ones = self._ones(column, left.name, frame.attrs.get(SCHEMA))
            return ones.astype(float).where(column.notna())
        if self.success is not None:
            raise InputError(
                "A comparison needs no value that counts as 1.", remedy="Leave success out."
            )
        if not gives_truth(left):
            raise InputError(
                f"The outcome {written(left)!r} is not a comparison.",
                remedy='Write one such as "age > 65 ~ sex".',
            )
        return _series(frame, left, Evaluator(frame).truths(left))

    def _ones(self, column: pd.Series, name: str, schema: Schema | None) -> pd.Series:
        if self.success is not None:
            return column == value_of(column, name, self.success)
        levels = levels_of(column)
        if levels is not None:
            if len(levels) != 2 and not has_open_levels(column):
                value = label_of(levels[0]) if levels else ""
                raise InputError(
                    f"Column {name!r} has {counted(len(levels), 'value')}, and a logistic regression needs two.",
                    remedy=f"Name the one that counts as 1 (success) among: {some(levels)}. Or compare:"
                    f' "{written(ColumnName(name))} == {value!r} ~ ...".',
                )
            return column.isin(levels[1:])
        if not (is_number(column) and column.dropna().isin([0, 1]).all()):
            raise self._not_binary(name, schema)
        return column == 1

    def _not_binary(self, name: str, schema: Schema | None) -> InputError:
        right, column = written(parse(self.formula).right), written(ColumnName(name))
        middle = "VALUE" if schema is None else _middle(schema.column(name))
        return InputError(
            f"Column {name!r} holds other values than 0 and 1.",
            remedy=f'Write a comparison, such as "{column} > {middle} ~ {right}". Or name the value that counts as 1:'
            " --success (in Python success=).",
        )

    def _fit(self, y: FloatArray, x: FloatArray, names: tuple[str, ...]) -> Fitted:
        import statsmodels.discrete.discrete_model as discrete
        from statsmodels.tools.sm_exceptions import PerfectSeparationError

        robust, k = "HC1" if self.robust else "nonrobust", len(names)
        try:
            with np.errstate(all="ignore"):
                result = discrete.Logit(y, x).fit(disp=0, cov_type=robust)
                converged = bool(result.mle_retvals["converged"])
                return Fitted.of(names, result.params, result.cov_params(), converged=converged)
        except (np.linalg.LinAlgError, PerfectSeparationError):
            return Fitted.of(names, np.full(k, np.nan), np.full((k, k), np.nan), converged=False)

    def _basis(
        self, tree: Formula, names: tuple[str, ...], functions: Functions, **facts: Any
    ) -> Basis:
        if not isinstance(tree.left, ColumnName):
            return super()._basis(tree, names, functions, **facts)
        outcome, success, conditions = tree.left.name, self.success, dict(self.conditions)
        if success is not None:
            conditions[outcome] = success
        facts["conditions"] = tuple(conditions.items())
        found = super()._basis(tree, names, functions, **facts)
        levels: Levels = {outcome: None if success is None else (label_of(success),)}
        terms = {n: replace(t, levels={**levels, **t.levels}) for n, t in found.terms.items()}
        return replace(found, terms=terms)


def _is_binary(column: Column) -> bool:
    """Return False if the schema gives a column of numbers other values than 0 and 1."""
    low, high = getattr(column, "low", None), getattr(column, "high", None)
    if isinstance(column, Coded):
        low, high = 0, column.codes - 1
    return (low is None or low >= 0) and (high is None or high <= 1)


def _middle(column: Column) -> str:
    """Return the middle of a column's range in the schema, as a formula writes it; "VALUE" without a range."""
    if isinstance(column, Coded):
        return str(column.codes // 2)
    low, high = getattr(column, "low", None), getattr(column, "high", None)
    if low is None or high is None:
        return "VALUE"
    if isinstance(low, date):
        return f"'{low + (high - low) / 2:%Y-%m-%d}'"
    whole = column.kind == "integer"
    return (
        str(low + (high - low) // 2) if whole else written(Number(float(f"{(low + high) / 2:.3g}")))
    )


def check_formula(formula: str, columns: Collection[str], ignored: Collection[str] = ()) -> Formula:
    """Return a formula's tree.

    Raises:
        InputError: The formula cannot be read, names something that is not a column, or has the outcome on both sides.

    Example:
        >>> str(check_formula("income~age+C(sex)", ["income", "age", "sex"]))
        'income ~ age + C(sex)'
    """
    tree = parse(formula)
    for side in (tree.left, tree.right):
        check_columns(side, columns, ignored)
    check_outcome(tree)
    return tree


def _check_splines(right: Node) -> None:
    """Raise `InputError` for a spline that sums to the intercept, which leaves no coefficient determined."""
    intercept, terms = expand(right)
    for node in (node for term in terms for node in term.values() if intercept):
        match node:
            case Call("cr", _, options) if "constraints" not in dict(options):
                remedy = written(replace(node, options=(*options, ("constraints", "center"))))
            case Call("bs", _, options) if dict(options).get("include_intercept"):
                rest = tuple(o for o in options if o[0] != "include_intercept")
                remedy = written(replace(node, options=rest))
            case _:
                continue
        raise InputError(
            f"The columns of {written(node)} add up to the intercept, so that no coefficient is determined.",
            remedy=f'Write {remedy}, or remove the intercept by "- 1".',
        )


def check_terms(right: Node, frame: pd.DataFrame, schema: Schema | None = None) -> None:
    """Raise `InputError` if there are too many terms, or they do not fit the columns' types or the schema."""
    evaluation = Evaluator(frame.iloc[:0])
    for node in (node for term in expand(right)[1] for node in term.values()):
        if isinstance(node, Call) and node.function in SPLINES:
            evaluation.numbers(node.arguments[0])
            continue
        if isinstance(node, Category) and isinstance(node.operand, ColumnName):
            _check_few_values(node, node.operand.name, schema)
        values, coding = evaluation.of(node), node.coding if isinstance(node, Category) else None
        if coding is None or coding.name != "Treatment" or coding.option is None:
            continue
        if isinstance(node, Category) and isinstance(node.operand, ColumnName):
            column = frame[node.operand.name]
            if is_number(column) and not is_truth(column):
                check_in_schema(schema, column, node.operand.name, coding.option)
        known = isinstance(values, pd.Categorical) and len(values.categories)
        if known and place_of(values, coding.option) is None:
            raise unknown_level(node, values, coding.option)


def _check_few_values(node: Category, column: str, schema: Schema | None) -> None:
    """Raise `InputError` for a category of every real number or time, of which each data set has its own."""
    if schema is None or column not in schema.domain:
        return
    remedies = {
        "real": f"Group them: C(pd.cut({column}, [0, 10, 20])).",
        "timestamp": f"Take a part of them: C(hour({column})).",
    }
    if (remedy := remedies.get(schema.column(column).kind)) is not None:
        raise InputError(
            f"{written(node)} has a category for every value of {column!r}.", remedy=remedy
        )


def _series(frame: pd.DataFrame, node: Node, values: Any) -> pd.Series:
    """Return values as numbers, NaN if a column that the expression needs is missing."""
    complete = complete_rows(frame, needed_in(node))
    found = np.where(complete, np.asarray(values, dtype=np.float64), np.nan)
    return pd.Series(found, index=frame.index)


def _need_libraries() -> None:
    for library in ("statsmodels", "formulaic"):
        if find_spec(library) is None:
            raise InputError(
                f"Regressions need {library}, which is not installed.",
                remedy="pip install 'margrave[inference]'",
            )
