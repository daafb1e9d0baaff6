"""Design matrices: formulaic's encoders of categories and splines, on values that were evaluated here.

formulaic's own parser and evaluation run Python. Neither is reached: its terms are made from our tree, and its one
place of evaluation looks values up.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pandas as pd
from formulaic import SimpleFormula
from formulaic.errors import FactorEvaluationError
from formulaic.materializers import PandasMaterializer
from formulaic.materializers.types import FactorValues
from formulaic.parser.types import Factor, Term
from formulaic.transforms import C, basis_spline, natural_cubic_spline
from formulaic.transforms.contrasts import (
    Contrasts,
    DiffContrasts,
    HelmertContrasts,
    PolyContrasts,
    SumContrasts,
    TreatmentContrasts,
)
from interface_meta import override

from margrave._card import counted
from margrave.errors import InputError
from margrave.formula import (
    Call,
    Category,
    ColumnName,
    Node,
    expand,
    needed_in,
    parse_factor,
    written,
)
from margrave.inference.columns import some
from margrave.inference.datasets import COMMONEST
from margrave.inference.expressions import (
    SPLINES,
    Evaluator,
    categories_of,
    check_columns,
    complete_rows,
    infinite_value,
    place_of,
    unknown_level,
)
from margrave.types import BoolArray, FloatArray


class NamedPolyContrasts(PolyContrasts):  # type: ignore[misc]
    """Orthogonal polynomials whose first three degrees have names."""

    FACTOR_FORMAT_REDUCED = "{name}{field}"
    NAME_ALIASES = {1: ".Linear", 2: ".Quadratic", 3: ".Cubic"}  # noqa: RUF012 — as formulaic has it


class NamedDiffContrasts(DiffContrasts):  # type: ignore[misc]
    """Differences between neighboring levels, each named by the lower one."""

    @override
    def get_coding_column_names(self, levels: Any, reduced_rank: bool = True) -> Any:
        return list(levels[:-1] if reduced_rank else levels)


class ClosedMaterializer(PandasMaterializer):  # type: ignore[misc]
    """Encodes factors whose values are those of our tree. No text of a factor is evaluated."""

    REGISTER_NAME = "margrave-closed"
    REGISTER_INPUTS = ()
    #: Values of factors that were evaluated before, by the factors' texts.
    values: Mapping[str, FactorValues] = {}

    @override
    def _evaluate(self, expr: str, metadata: Any, spec: Any) -> tuple[Any, set[Any]]:
        if expr in self.values:
            return self.values[expr], set()
        node = parse_factor(expr)
        check_columns(node, self.data.columns)
        return factor_values(node, self.data), set()

    @override
    def _lookup(self, name: str) -> tuple[Any, set[Any]]:
        return self._evaluate(name, None, None)


#: By factor of numbers taken as categories: its reference alone, or all levels of another coding.
Levels = Mapping[str, tuple[str, ...]]


def design(
    right: Node, frame: pd.DataFrame, y: FloatArray, levels: Levels = MappingProxyType({})
) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
    """Return outcome (n), design matrix (n × k) and its columns' names, for records that lack nothing.

    Dates and times enter as days since 1970, with fractions. Whole numbers name their categories
    without fractions: ``C(k)[T.2]``. ``levels`` are those of `fixed_levels`.

    Raises:
        InputError: The columns' kinds do not fit the formula, or the data sets have other levels.
        ValueError: No record has all values, or has a reference, or one has an infinite value.
    """
    intercept, terms = expand(right)
    factors = {text: node for term in terms for text, node in term.items()}
    if not factors and not intercept:
        raise InputError(
            "The formula has no terms.", remedy="Name a column, or write 1 for the mean."
        )
    needed = tuple(dict.fromkeys(n for f in factors.values() for n in needed_in(f)))
    complete = ~np.isnan(y) & complete_rows(frame, needed)
    part, found = frame, dict[str, FactorValues]()
    for _ in range(2):  # a function may make a value missing: the logarithm of a negative number
        part, y = part[complete], y[complete]
        if not len(part):
            raise ValueError("no record has all values that the formula needs")
        found = {text: factor_values(node, part, levels) for text, node in factors.items()}
        complete = _present(found, len(part))
        if complete.all():
            break
    _check_width(terms, found)
    x, names = _encoded(intercept, _ordered(terms, found), part, found)
    return y, x, names


def _check_width(terms: list[dict[str, Node]], found: Mapping[str, FactorValues]) -> None:
    """Raise ``InputError`` for a design of more columns than a regression can use."""
    max_columns = 1000
    width = {text: _columns_of(values) for text, values in found.items()}
    widths = [math.prod(width[text] for text in term) for term in terms]
    if sum(widths) > max_columns:
        widest = ":".join(terms[int(np.argmax(widths))])
        raise InputError(
            f"The formula makes {sum(widths):,} columns, more than {max_columns:,}; the term {widest} alone makes"
            f" {max(widths):,}.",
            remedy="Leave that term out, or use columns with fewer categories.",
        )


def _columns_of(values: FactorValues) -> int:
    """Return the number of columns of a factor: of its levels, of a spline's basis, or 1."""
    plain = values.__wrapped__
    if isinstance(plain, dict):
        return len(plain)
    levels = getattr(getattr(plain, "dtype", None), "categories", None)
    return 1 if levels is None else len(levels)


def _present(found: Mapping[str, FactorValues], rows: int) -> BoolArray:
    """Return a mask of the records with a value of every factor. Raises `ValueError` for infinity."""
    present = np.ones(rows, dtype=np.bool_)
    for text, values in found.items():
        plain = values.__wrapped__
        for column in plain.values() if isinstance(plain, dict) else [plain]:
            present &= ~np.asarray(pd.isna(column))
            if not isinstance(column, pd.Series) and np.isinf(column).any():
                raise infinite_value(text)
    return present


def factor_values(
    node: Node, frame: pd.DataFrame, levels: Levels = MappingProxyType({})
) -> FactorValues:
    """Return a factor's values for formulaic: numbers, a spline's columns, or categories with their coding."""
    evaluation = Evaluator(frame)
    if isinstance(node, Call) and node.function in SPLINES:
        return _spline(node, evaluation.numbers(node.arguments[0]))
    values = evaluation.of(node)
    categorical = isinstance(values, pd.Categorical)
    if not (isinstance(node, Category) or categorical or values.dtype == np.dtype(bool)):
        return FactorValues(values, kind="numerical", spans_intercept=False)
    coded = categories_of(values)
    if not len(coded.categories):
        raise InputError(f"{written(node)} has no values.", remedy="Leave it out.")
    if not categorical and values.dtype != np.dtype(bool):
        return C(pd.Series(coded), contrasts=_of_numbers(node, coded, levels))
    own, commonest = values if categorical else coded, commonest_of(node, frame)
    return C(pd.Series(coded), contrasts=_contrasts(node, own, coded, commonest))


def fixed_levels(right: Node, frame: pd.DataFrame) -> Levels:
    """Return the levels of numbers taken as categories that all data sets must share.

    The levels of numbers are the values that occur. So a first value that is rare would be the reference of some
    data sets alone, and coefficients of one name would mean different things. The reference is the commonest value of
    the release, unless it is half as common here as another. Codings that compare all levels need the same levels in
    every data set.
    """
    found = dict[str, tuple[str, ...]]()
    for text, node in categories_in(right).items():
        values = Evaluator(frame).of(node)
        if isinstance(values, pd.Categorical) or values.dtype == np.dtype(bool):
            continue
        coded = categories_of(values)
        counts = np.bincount(coded.codes[coded.codes >= 0], minlength=len(coded.categories))
        every = tuple(coded.categories)
        if node.coding is not None and node.coding.name != "Treatment":
            found[text] = every
        elif every and (node.coding is None or node.coding.option is None):
            most, stated = int(counts.argmax()), commonest_of(node, frame)
            if stated in every and 2 * counts[every.index(stated)] >= counts[most]:
                most = every.index(stated)
            found[text] = (every[most],)
    return found


def categories_in(right: Node) -> dict[str, Category]:
    """Return the factors that take values as categories, by their texts."""
    factors = {text: node for term in expand(right)[1] for text, node in term.items()}
    return {text: node for text, node in factors.items() if isinstance(node, Category)}


def commonest_of(node: Node, frame: pd.DataFrame) -> str | None:
    """Return the commonest level of a factor that is a column of texts, if the frame states it."""
    plain = node.operand if isinstance(node, Category) else node
    known = frame.attrs.get(COMMONEST, {})
    return known.get(plain.name) if isinstance(plain, ColumnName) else None


def references(
    right: Node, frame: pd.DataFrame, names: Collection[str], fixed: Levels
) -> tuple[str, ...]:
    """Return a sentence on the reference levels that are the commonest levels, if there are any."""
    factors = {text: node for term in expand(right)[1] for text, node in term.items()}
    levels = [
        f"{text} is {level!r}"
        for text, node in factors.items()
        if getattr(node, "coding", None) is None and any(f"{text}[T." in name for name in names)
        if (level := next(iter(fixed.get(text, ())), commonest_of(node, frame))) is not None
    ]
    another = "C(column, Treatment('level')) names another"
    return (
        (f"The reference level of {', of '.join(levels)}: the commonest. {another}.",)
        if levels
        else ()
    )


def _of_numbers(node: Node, coded: pd.Categorical, levels: Levels) -> Contrasts:
    """Return the contrasts of numbers, whose levels are the values that occur.

    Raises:
        InputError: A coding that compares all levels has others than are fixed.
        ValueError: The reference does not occur.
    """
    coding = node.coding if isinstance(node, Category) else None
    fixed, own = levels.get(written(node), ()), tuple(coded.categories)
    if coding is not None and coding.name != "Treatment":
        if fixed and fixed != own:
            raise InputError(
                f"{written(node)} compares all values that occur, and the data sets differ in them: {some(own)} in one"
                f" and {some(fixed)} in another.",
                remedy="Leave rare values out by where, or write the category without a coding.",
            )
        return _contrasts(node, coded, coded, None)
    option, commonest = None if coding is None else coding.option, next(iter(fixed), None)
    wanted = commonest if option is None else option
    if wanted is not None and place_of(coded, wanted) is None:
        value = f"{wanted:g}" if isinstance(wanted, float) else wanted
        raise ValueError(
            f"no record has {value}, the reference of {written(node)}; its values are {some(own)}"
        )
    return _contrasts(node, coded, coded, commonest)


def _contrasts(
    node: Node, own: pd.Categorical, coded: pd.Categorical, commonest: str | None
) -> Contrasts:
    coding = node.coding if isinstance(node, Category) else None
    name, option = ("Treatment", None) if coding is None else (coding.name, coding.option)
    levels = list(coded.categories)
    if name == "Treatment":
        wanted = commonest if option is None else option
        place = 0 if wanted is None else place_of(own, wanted)
        if place is None:
            raise unknown_level(node, coded, option)
        return TreatmentContrasts(base=levels[place])
    if name == "Poly":
        if isinstance(option, tuple) and len(option) != len(levels):
            raise InputError(
                f"{written(node)} gives {counted(len(option), 'score')} for {counted(len(levels), 'value')}.",
                remedy="Give one for each.",
            )
        return NamedPolyContrasts(scores=option)
    return {"Sum": SumContrasts, "Helmert": HelmertContrasts, "Diff": NamedDiffContrasts}[name]()


def _spline(node: Call, x: FloatArray) -> FactorValues:
    """Return a spline's columns, numbered from 0."""
    encoders = {"bs": basis_spline, "cr": natural_cubic_spline}
    options = {k: list(v) if isinstance(v, tuple) else v for k, v in node.options}
    options |= {k: int(cast(float, v)) for k, v in node.options if k in ("df", "degree")}
    if np.isinf(x).any() or np.isnan(x).any():
        return FactorValues(x, kind="numerical", spans_intercept=False)
    try:
        columns = list(encoders[node.function](x, **options, _state={}).values())
    except (ValueError, TypeError, IndexError, np.linalg.LinAlgError) as error:
        raise InputError(
            f"{written(node)} cannot be made ({str(error).splitlines()[0] if str(error) else type(error).__name__}).",
            remedy="Change its degrees of freedom, knots or bounds.",
        ) from None
    return FactorValues(
        dict(enumerate(columns)),
        kind="numerical",
        spans_intercept=False,
        format="{name}[{field}]",
        encoded=False,
    )


def _ordered(
    terms: list[dict[str, Node]], found: Mapping[str, FactorValues]
) -> list[dict[str, Node]]:
    """Return the terms of categories alone, then the others by their numbers, of each the shorter ones first."""
    numeric = {
        text
        for text, values in found.items()
        if values.__formulaic_metadata__.kind.value == "numerical"
    }
    by_numbers: dict[frozenset[str], list[dict[str, Node]]] = {frozenset(): []}
    for term in terms:
        by_numbers.setdefault(frozenset(term.keys() & numeric), []).append(term)
    return [term for same in by_numbers.values() for term in sorted(same, key=len)]


def _encoded(
    intercept: bool,
    terms: list[dict[str, Node]],
    frame: pd.DataFrame,
    found: Mapping[str, FactorValues],
) -> tuple[FloatArray, tuple[str, ...]]:
    first = [Term([Factor("1", eval_method="literal")])] if intercept else []
    others = [Term([Factor(text, eval_method="python") for text in term]) for term in terms]
    formula = SimpleFormula([*first, *others], _ordering="none")
    materializer = ClosedMaterializer(frame, context={})
    materializer.values = found
    try:
        made = materializer.get_model_matrix(formula, output="numpy", na_action="raise")
    except FactorEvaluationError as error:
        raise (error.__cause__ if isinstance(error.__cause__, InputError) else error) from None
    return np.asarray(made, dtype=np.float64), tuple(made.model_spec.column_names)
