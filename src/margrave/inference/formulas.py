"""Formulas: which columns they name, and their designs."""

from __future__ import annotations

import ast
import io
import keyword
import re
import tokenize
from collections.abc import Collection
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from margrave.errors import InputError
from margrave.inference.dates import PARTS, month, weekday, year  # noqa: F401 — for formulas, which see what is here
from margrave.release.evidence import codes_of
from margrave.schema import Schema
from margrave.schema.column import some_of
from margrave.schema.discrete import NO, YES

_KNOWN = frozenset({"np", "pd", "Treatment", "Sum", "Poly", "Helmert", "Diff"})
"""Names in formulas that are neither columns nor called: NumPy and pandas, and codings of categories."""

OUTCOME = "outcome_"

_WHOLE = ("integer", "coded")

_MISSING = ("isna", "isnull", "notna", "notnull")
_ASKED = re.compile(rf"(`[^`]*`|\b\w+)\.({'|'.join(_MISSING)})\(\)")
"""Where an outcome asks for missing values, which are then none that leave a record out."""

_DATES = re.compile(r"\.dt\b")

_WHOLE_LEVEL = re.compile(r"(\[(?:T\.)?-?\d+)\.0\]")
"""The level of a category that is a whole number, written as one with fractions."""

_LEVEL = re.compile(r"\[[^\]]*\]")
"""The level of a category in a coefficient's name."""


def check_formula(formula: str, columns: Collection[str]) -> tuple[str, str]:
    """The two sides of a formula whose names are all columns; ``InputError`` names one that is not.

    >>> check_formula("income ~ age + C(sex) + np.log(hours)", ["income", "age", "sex", "hours"])
    ('income', 'age + C(sex) + np.log(hours)')
    """
    left, tilde, right = formula.partition("~") if isinstance(formula, str) else ("", "", "")
    if not tilde or not left.strip() or not right.strip() or "~" in right:
        raise InputError(f"{formula!r} is no formula.", remedy='Write one such as "income ~ age + C(sex)".')
    if _DATES.search(formula):
        raise InputError(
            f"{formula!r} takes a date apart by .dt, and dates are days since 1970 in formulas.",
            remedy=f"Write C(year(visit)) for C(visit.dt.year); there are {', '.join(PARTS)}.",
        )
    for name in (n for side in (left, right) for n in names_in(side, formula)):
        if name not in columns:
            raise InputError(
                f"The formula names {name!r}, which is no column.",
                remedy=f"The columns are: {', '.join(columns)}.",
            )
    return left.strip(), right.strip()


def names_in(side: str, formula: str, *, coded: bool = True) -> list[str]:
    """The columns that one side of a formula names, quoted ones too: Q("hours a week") or `hours a week`.

    Without ``coded``, those inside ``C(...)`` are left out: categories there, whatever their values are.

    >>> names_in("C(sex, Treatment('m')) : bs(age, df=4) + Q('zip code') + `a b`", "")
    ['sex', 'age', 'zip code', 'a b']
    >>> names_in("C(sex, Treatment('m')) : bs(age, df=4)", "", coded=False)
    ['age']
    """
    plainly = "".join(f"Q({part!r})" if i % 2 else part for i, part in enumerate(side.split("`")))
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(f"({plainly})").readline))
    except (tokenize.TokenError, SyntaxError):
        raise InputError(f"{formula!r} is no formula.", remedy="Close its brackets and quotes.") from None
    words = [t for t in tokens if t.type not in (tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER)]
    found: list[str] = []
    open_brackets: list[bool] = []  # of each, whether it is that of a C(...)
    for i, token in enumerate(words):
        before = words[i - 1].string if i else ""
        after = words[i + 1].string if i + 1 < len(words) else ""
        if token.string == "(":
            open_brackets.append(before == "C")
        elif token.string == ")" and open_brackets:
            open_brackets.pop()
        quoted = token.type == tokenize.STRING and before == "(" and i > 1 and words[i - 2].string == "Q"
        plain = token.type == tokenize.NAME and before != "." and after not in ("(", "=")
        if any(open_brackets) and not coded:
            continue
        if quoted:
            found.append(str(ast.literal_eval(token.string)))
        elif plain and token.string not in _KNOWN and not keyword.iskeyword(token.string):
            found.append(token.string)
    return found


def columns_of(formula: str) -> tuple[str, ...]:
    """The columns that a formula names, each once, the outcome's first."""
    left, _, right = formula.partition("~")
    return tuple(dict.fromkeys([*names_in(left, formula), *names_in(right, formula)]))


def by_value_in(formula: str) -> tuple[str, ...]:
    """Those that it names outside of ``C(...)``, each once.

    >>> by_value_in("stay ~ age + C(ward) + C(age)")
    ('stay', 'age')
    """
    left, _, right = formula.partition("~")
    sides = (left, right)
    return tuple(dict.fromkeys(n for side in sides for n in names_in(side, formula, coded=False)))


def leans_on(formula: str, coefficient: str, apart: Collection[str]) -> bool:
    """Whether a coefficient of a formula is about the relation of these columns.

    It is where one of them is in its term, or all are in the outcome; an intercept depends on every slope.

    >>> leans_on("y ~ x + C(z)", "C(z)[T.x]", ("y", "z")), leans_on("y ~ x + C(z)", "C(z)[T.x]", ("y", "x"))
    (True, False)
    """
    left, _, right = formula.partition("~")
    if coefficient == "Intercept" or set(apart) <= set(names_in(left, formula)):
        return True
    try:
        inside = names_in(_LEVEL.sub("", coefficient), formula)
    except InputError:  # a level's name with brackets or quotes of its own
        inside = names_in(right, formula)
    return bool(set(inside) & set(apart))


def design(formula: str, frame: pd.DataFrame) -> tuple[Any, Any, tuple[str, ...]]:
    """Outcome, design matrix and names of its columns, of the records that miss nothing.

    Dates and times enter as days since 1970, with fractions. Whole numbers name their categories alike, whether
    others are missing or not: ``C(k)[T.2]``.
    """
    import statsmodels.formula.api as smf  # a second to load, and not every analysis needs it

    model = smf.ols(formula, plain(frame))
    names = tuple(_WHOLE_LEVEL.sub(r"\1]", name) for name in model.exog_names)
    return np.asarray(model.endog), np.asarray(model.exog), names


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame in the types that formulas take: dates and times as days since 1970, and no nullable types."""
    found = {c: days_of(frame[c]) for c in frame.columns if is_date(frame[c])}
    for name in (c for c in frame.columns if isinstance(frame[c].dtype, pd.api.extensions.ExtensionDtype)):
        column = frame[name]
        if isinstance(column.dtype, pd.BooleanDtype):
            found[name] = column.astype(object).astype(pd.CategoricalDtype([False, True]))
        elif is_number(column):
            found[name] = column.astype(float)
    return frame.assign(**found)


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


def outcome(frame: pd.DataFrame, left: str, success: Any) -> pd.Series:
    """Zeros and ones of a logistic regression's outcome, NaN where a column it names is missing.

    ``left`` is a column or a comparison of columns, ``column.isna()`` among them. A column of numbers holds 0 and 1;
    ``success`` names the value that counts as 1 in any other, which may be left out where there are two: then the
    second one does.
    """
    if left in frame.columns:
        column = frame[left]
        given = column.isna()
        ones = _ones(column, left, success)
    else:
        if success is not None:
            raise InputError("A comparison needs no value that counts as 1.", remedy="Leave success out.")
        given = frame[names_in(_ASKED.sub("True", left), left)].isna().any(axis=1)
        try:
            ones = frame.eval(left, engine="python")
        except Exception as error:
            why = str(error).splitlines()[0]
            raise InputError(f"The outcome {left!r} cannot be used ({why}).", remedy="Mend it.") from error
        if getattr(ones, "dtype", None) != np.dtype(bool):
            raise InputError(f"The outcome {left!r} is no comparison.", remedy='Write one such as "age > 65 ~ sex".')
    return ones.astype(float).where(~given)


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
    if schema.column(name).kind in _WHOLE and float(value) % 1:
        raise InputError(
            f"Column {name!r} holds whole numbers, and {value!r} is none.",
            remedy=f"It has {some_of(schema.column(name).labels())}.",
        )


def zero_one(frame: pd.DataFrame, left: str) -> pd.Series | None:
    """The outcome of a linear regression as 0 and 1, where it is a truth or a comparison; else None."""
    if left in frame.columns:
        column = frame[left]
        if not is_truth(column):
            return None
        return (column == True).astype(float).where(column.notna())  # noqa: E712
    return outcome(frame, left, None) if _is_comparison(left) else None


def _is_comparison(left: str) -> bool:
    try:
        tree = ast.parse(re.sub("`[^`]*`", "quoted", left).strip(), mode="eval").body
    except SyntaxError:
        return False
    return _gives_truths(tree)


def _gives_truths(tree: ast.expr) -> bool:
    """Whether an expression of columns is true or false for each record, as its form tells."""
    if isinstance(tree, ast.UnaryOp):
        return isinstance(tree.op, ast.Not) and _gives_truths(tree.operand)
    if isinstance(tree, ast.BinOp):
        sides = (tree.left, tree.right)
        return isinstance(tree.op, ast.BitAnd | ast.BitOr) and any(_gives_truths(side) for side in sides)
    if isinstance(tree, ast.Call):
        return isinstance(tree.func, ast.Attribute) and tree.func.attr in _MISSING
    return isinstance(tree, ast.Compare | ast.BoolOp)


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


def need_statsmodels() -> None:
    """A clear error where the library is not installed."""
    if find_spec("statsmodels") is None:
        raise InputError(
            "Regressions need statsmodels, which is not installed.", remedy="pip install 'margrave[inference]'"
        )
