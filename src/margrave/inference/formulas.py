"""Formulas of the ready models: the columns that they name, what their coefficients are about, and their outcomes."""

from __future__ import annotations

from collections.abc import Collection
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from margrave.errors import InputError
from margrave.formula import (
    Call,
    Category,
    Column,
    Formula,
    Node,
    columns_in,
    expand,
    factors_of,
    gives_truth,
    needed_in,
    parse,
    written,
)
from margrave.inference.kinds import is_number, is_truth, levels_of, some, value_of
from margrave.inference.values import SPLINES, Evaluation, complete, infinite, place_of, unknown_level


def check_formula(formula: str, columns: Collection[str]) -> Formula:
    """Return a formula's tree.

    Raises:
        InputError: The formula cannot be read, or names something that is not a column.

    >>> str(check_formula("income~age+C(sex)", ["income", "age", "sex"]))
    'income ~ age + C(sex)'
    """
    tree = parse(formula)
    for name in columns_of(formula):
        if name not in columns:
            raise InputError(
                f"The formula names {name!r}, which is not a column.",
                remedy=f"The columns are: {', '.join(columns)}.",
            )
    return tree


def check_terms(right: Node, frame: pd.DataFrame) -> None:
    """Raise `InputError` if the terms are too many, or the columns' kinds do not fit them. Looks at types alone."""
    evaluation = Evaluation(frame.iloc[:0])
    for term in expand(right)[1]:
        for node in term.values():
            if isinstance(node, Call) and node.function in SPLINES:
                evaluation.numbers(node.arguments[0])
            else:
                _check_reference(node, evaluation.of(node))


def _check_reference(node: Node, values: Any) -> None:
    coding = node.coding if isinstance(node, Category) else None
    if coding is None or coding.name != "Treatment" or coding.option is None:
        return
    if isinstance(values, pd.Categorical) and len(values.categories) and place_of(values, coding.option) is None:
        raise unknown_level(node, values, coding.option)


def columns_of(formula: str) -> tuple[str, ...]:
    """Return the columns that a formula names, each once, the outcome's first.

    >>> columns_of("stay ~ C(sex, Treatment('m')) : bs(age, df=4) + Q('zip code') + `a b`")
    ('stay', 'sex', 'age', 'zip code', 'a b')
    """
    tree = parse(formula)
    return tuple(dict.fromkeys([*columns_in(tree.left), *columns_in(tree.right)]))


def by_value_in(formula: str) -> tuple[str, ...]:
    """Return the columns that a formula names outside of ``C(...)``, each once.

    >>> by_value_in("stay ~ age + C(ward) + C(age)")
    ('stay', 'age')
    """
    tree = parse(formula)
    return tuple(dict.fromkeys(n for side in (tree.left, tree.right) for n in columns_in(side, coded=False)))


def outcome_column(formula: str) -> str | None:
    """Return the column that is a formula's outcome, None if the outcome is an expression."""
    left = parse(formula).left
    return left.name if isinstance(left, Column) else None


def leans_on(formula: str, coefficient: str, apart: Collection[str]) -> bool:
    """Return whether a coefficient of a formula is about the relation of these columns.

    It is if one of them is in its term, or all are in the outcome. An intercept depends on every slope.

    >>> leans_on("y ~ x + C(z)", "C(z)[T.x]", ("y", "z")), leans_on("y ~ x + C(z)", "C(z)[T.x]", ("y", "x"))
    (True, False)
    """
    tree = parse(formula)
    if coefficient == "Intercept" or set(apart) <= set(columns_in(tree.left)):
        return True
    return not set(inside(formula, coefficient)).isdisjoint(apart)


def inside(formula: str, coefficient: str) -> tuple[str, ...]:
    """Return the columns of a coefficient's term; all of the right side's if a level's name cannot be read."""
    try:
        nodes: list[Node] = [node for node, _ in factors_of(coefficient)]
    except InputError:
        nodes = [parse(formula).right]
    return tuple(dict.fromkeys(n for node in nodes for n in columns_in(node)))


def outcome(frame: pd.DataFrame, left: Node, success: Any) -> pd.Series:
    """Return zeros and ones of a logistic regression's outcome, NaN if a column that it needs is missing.

    ``left`` is a column or a comparison of columns, ``column.isna()`` among them. A column of numbers holds 0 and 1;
    ``success`` names the value that counts as 1 in any other, which may be left out if there are two: then the
    second one does.
    """
    if isinstance(left, Column):
        column = frame[left.name]
        return _ones(column, left.name, success).astype(float).where(column.notna())
    if success is not None:
        raise InputError("A comparison needs no value that counts as 1.", remedy="Leave success out.")
    if not gives_truth(left):
        raise InputError(
            f"The outcome {written(left)!r} is not a comparison.", remedy='Write one such as "age > 65 ~ sex".'
        )
    return _series(frame, left, Evaluation(frame).truths(left))


def _series(frame: pd.DataFrame, node: Node, values: Any) -> pd.Series:
    """Return values as a series of numbers, NaN if a column that the expression needs is missing."""
    found = np.where(complete(frame, needed_in(node)), np.asarray(values, dtype=np.float64), np.nan)
    return pd.Series(found, index=frame.index)


def _ones(column: pd.Series, name: str, success: Any) -> pd.Series:
    if success is not None:
        return column == value_of(column, name, success)
    levels = levels_of(column)
    if levels is not None:
        if len(levels) != 2:
            raise InputError(
                f"Column {name!r} has {len(levels)} values, and a logistic regression needs two.",
                remedy=f"Name the one that counts as 1 (success) among: {some(levels)}.",
            )
        return column == levels[1]
    if not (is_number(column) and column.dropna().isin([0, 1]).all()):
        raise InputError(
            f"Column {name!r} holds other values than 0 and 1.",
            remedy="Name the value that counts as 1 (success), or write a comparison.",
        )
    return column == 1


def measured(frame: pd.DataFrame, left: Node) -> pd.Series:
    """Return the outcome of a linear regression, NaN if a column that it needs is missing; truths are 1 and 0."""
    if isinstance(left, Column) and not is_truth(frame[left.name]) and levels_of(frame[left.name]) is not None:
        raise InputError(f"Column {left.name!r} is not a number, so it cannot be an outcome.", remedy="Use Logistic.")
    found = _series(frame, left, Evaluation(frame).numbers(left))
    if np.isinf(found).any():
        raise infinite(written(left))
    return found


def need_statsmodels() -> None:
    """Raise `InputError` if a library of regressions is not installed."""
    for library in ("statsmodels", "formulaic"):
        if find_spec(library) is None:
            raise InputError(
                f"Regressions need {library}, which is not installed.", remedy="pip install 'margrave[inference]'"
            )
