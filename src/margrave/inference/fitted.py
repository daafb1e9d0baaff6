"""The result of an analysis on one data set: estimates, their variances, and the columns they use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import linalg

from margrave.errors import InputError
from margrave.release.conditions import Condition
from margrave.schema import Schema
from margrave.types import AnyArray, Clique, FloatArray

_FORMS = (
    "Return (estimates, variances), with names as keys of dicts or Series; (estimates, covariance matrix); a dict of"
    " name: (estimate, variance); or a statsmodels result."
)
_TEST = (
    "Return what it tests, with a variance: of the means of a and b, (a.mean() - b.mean(), a.var() / len(a) + b.var() /"
    " len(b)); of a correlation, use Correlation. The analysis has the p-value."
)


@dataclass(frozen=True)
class EstimateTerm:
    """The columns that one estimate is about.

    Attributes:
        columns: All columns that the estimate uses.
        joins: The columns on whose joint distribution it depends.
        pivots: Columns whose relation with any other column of the analysis it depends on.
        levels: By column of categories, the levels that it compares: "" is the column's first
            level, and None means every level.
    """

    columns: Clique
    joins: Clique
    pivots: Clique = ()
    levels: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)

    def depends_on(self, columns: Clique) -> bool:
        """Return whether the estimate depends on a column, or on the relation of several."""
        if len(columns) == 1:
            return columns[0] in self.columns
        return set(columns) <= set(self.joins) or not set(self.pivots).isdisjoint(columns)

    def union(self, other: EstimateTerm) -> EstimateTerm:
        """Return the term with the levels of both."""
        levels = dict(self.levels)
        for column, own in other.levels.items():
            before = levels.get(column, ())
            both = None if own is None or before is None else (*before, *own)
            levels[column] = both and tuple(dict.fromkeys(both))
        return replace(self, levels=levels)


@dataclass(frozen=True)
class Basis:
    """The parts of columns that an analysis uses. The caveats are derived from this.

    Attributes:
        columns: All columns that it uses, in order.
        terms: By name of an estimate, the columns that it is about.
        by_value: Columns whose numbers enter, not only their categories.
        exposed: Columns in which a value beyond the schema's bounds could change an estimate.
        needed: Columns of a regression whose missing values leave a record out of all estimates.
        conditions: Values that columns are held to: those of ``where``, and a counted value.
        bounds: The least and greatest possible value of an estimate, None for no bound.
        lies: Whether estimates lie between the schema's bounds of the first column (``"within"``),
            or have the sign that all of its values have (``"signed"``).
        notes: Sentences that belong to every result.
        kind: The kind of estimates, which decides how bins matter to them: a ``"quantity"`` each,
            ``"coefficients"`` of one regression, or results of any ``"function"``.
        ends: Whether the first column's bins bound the estimate: by moving one data set
            (``"shift"``), or exactly, by the shares of the bins (``"shares"``); or whether the estimate is
            in the bin of the real one (``"bins"``).
        by_moments: The estimates are a function of counts, and of sums and sums of products of the columns' numbers.
        tests_zero: The value 0 is a hypothesis, as for coefficients and correlations.
    """

    columns: Clique
    terms: Mapping[str, EstimateTerm]
    by_value: Clique = ()
    exposed: Clique = ()
    needed: Clique = ()
    conditions: tuple[tuple[str, Condition], ...] = ()
    bounds: tuple[float | None, float | None] | None = None
    lies: Literal["", "within", "signed"] = ""
    notes: tuple[str, ...] = ()
    kind: Literal["quantity", "coefficients", "function"] = "function"
    ends: Literal["", "shift", "shares", "bins"] = ""
    by_moments: bool = False
    tests_zero: bool = True

    @staticmethod
    def union(fitted: Sequence[Fitted]) -> Basis | None:
        """Return the basis of the same analysis on several data sets; None if it has none."""
        bases = [f.basis for f in fitted if f.basis is not None]
        if not bases:
            return None
        terms: dict[str, EstimateTerm] = {}
        for name, term in (item for basis in bases for item in basis.terms.items()):
            terms[name] = terms[name].union(term) if name in terms else term
        return replace(bases[0], terms=terms)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Estimates of k quantities from one data set. Quantities it does not determine are absent.

    Attributes:
        names: The k names.
        estimates: Shape (k,).
        variances: Shape (k,).
        covariance: Shape (k, k), or None if unknown.
        converged: False if the numbers cannot be trusted.
        partial: Names may be absent because the data set does not determine them.
        full_rank: A warning of a singular design has been dealt with.
        days: The estimates are dates, in days since 1970.
        basis: The columns that the analysis uses; None if unknown.
        formula: The formula of a statsmodels result, or "".
    """

    names: tuple[str, ...]
    estimates: FloatArray
    variances: FloatArray
    covariance: FloatArray | None = None
    converged: bool = True
    partial: bool = False
    full_rank: bool = False
    days: bool = False
    basis: Basis | None = None
    formula: str = ""

    @staticmethod
    def of(names: tuple[str, ...], estimates: Any, covariance: Any, **facts: Any) -> Fitted:
        """Return estimates with their covariance matrix (k × k); ``facts`` are other attributes."""
        matrix = np.asarray(covariance, dtype=np.float64)
        points = np.asarray(estimates, dtype=np.float64)
        return Fitted(names, points, np.diag(matrix).copy(), matrix, **facts)

    def only(self, keep: AnyArray) -> Fitted:
        """Return the quantities that the mask ``keep`` (k) selects."""
        matrix = None if self.covariance is None else self.covariance[np.ix_(keep, keep)]
        return replace(
            self, names=selected(self.names, keep), estimates=self.estimates[keep],
            variances=self.variances[keep], covariance=matrix, partial=True,
        )  # fmt: skip


class Estimand(ABC):
    """An analysis that states the columns it uses: called on a frame, it returns `Fitted`."""

    @abstractmethod
    def check(self, frame: pd.DataFrame, schema: Schema | None = None) -> None:
        """Raise `InputError` if the columns do not fit. Looks at types alone, before any draw."""

    def with_missing(self, schema: Schema) -> Estimand:
        """Return the analysis with None in place of the schema's missing-value codes."""
        return self

    @property
    def leveled(self) -> Clique:
        """The columns that fix the levels of numbers taken as categories; none without such levels."""
        return ()

    def with_levels(self, frame: pd.DataFrame) -> Estimand:
        """Return the analysis with those levels fixed to those of one frame, the same in every data set."""
        return self

    @abstractmethod
    def __call__(self, frame: pd.DataFrame) -> Fitted:
        """Return estimates, variances and the basis. A `ValueError` concerns this data set only."""


def selected(names: Sequence[str], keep: AnyArray) -> tuple[str, ...]:
    """Return the names that a mask selects."""
    return tuple(n for n, k in zip(names, keep, strict=True) if k)


def read_fit(found: Any) -> Fitted:
    """Return what a fit returned in one form.

    Raises:
        InputError: The result has none of the forms that `analyze` lists.
    """
    if isinstance(found, Fitted):
        return found
    values = list(found.values()) if isinstance(found, Mapping) else [found]
    for result in (v for v in values if hasattr(v, "pvalue") and not hasattr(v, "params")):
        raise InputError(
            f"The fit returned a {type(result).__name__}: a test, and its p-value is not a variance.",
            remedy=_TEST,
        )
    if hasattr(found, "params") and hasattr(found, "cov_params"):
        return _of_result(found)
    if isinstance(found, Mapping):
        return _of_mapping(found)
    if isinstance(found, tuple | list) and len(found) == 2:
        return _of_pair(*found)
    raise InputError(f"The fit returned a {type(found).__name__}.", remedy=_FORMS)


def _of_result(result: Any) -> Fitted:
    params = np.asarray(result.params, dtype=np.float64)
    if params.ndim != 1:
        raise InputError(
            "The fit returned a result with several equations.",
            remedy="Return (estimates, variances) instead.",
        )
    model = getattr(result, "model", None)
    names = getattr(result.params, "index", None)
    names = getattr(model, "exog_names", None) if names is None else names
    names = [f"q{i + 1}" for i in range(len(params))] if names is None else names
    fitted = Fitted.of(
        tuple(map(str, names))[: len(params)], params, result.cov_params(),
        converged=_converged(result), formula=str(getattr(model, "formula", "") or ""),
    )  # fmt: skip
    exog = np.asarray(getattr(model, "exog", None))
    if exog.ndim == 2 and exog.shape[1] == len(params) and np.issubdtype(exog.dtype, np.number):
        return replace(fitted.only(estimable(exog)[0]), full_rank=True)
    return fitted


def _converged(result: Any) -> bool:
    retvals = getattr(result, "mle_retvals", None)
    own = getattr(result, "converged", None)
    own = retvals.get("converged") if own is None and isinstance(retvals, Mapping) else own
    return own is None or bool(own)


def _of_mapping(found: Mapping[Any, Any]) -> Fitted:
    try:
        pairs = np.array([[float(a) for a in pair] for pair in found.values()], dtype=np.float64)
    except (TypeError, ValueError):
        pairs = np.empty(0)
    if pairs.shape != (len(found), 2):
        raise InputError("The fit returned a dict whose values are not pairs.", remedy=_FORMS)
    return Fitted(tuple(map(str, found)), pairs[:, 0].copy(), pairs[:, 1].copy())


def _of_pair(estimates: Any, spread: Any) -> Fitted:
    names, values = _named(estimates)
    if isinstance(spread, pd.Series | Mapping):
        others, spread = _named(spread)
    elif isinstance(spread, pd.DataFrame) and names is not None:
        same = list(spread.index) == list(spread.columns)
        others, spread = tuple(map(str, spread.index)) if same else None, spread.to_numpy()
    else:
        others, spread = names, _numbers(spread)
    if others != names:
        if names is None or others is None or sorted(names) != sorted(others):
            raise InputError(
                "The fit named its estimates and their variances differently.", remedy=_FORMS
            )
        order = [others.index(n) for n in names]
        spread = spread[order] if spread.ndim == 1 else spread[np.ix_(order, order)]
    k = len(values)
    names = numbered(k) if names is None else names
    if spread.shape == (k, k):
        return Fitted.of(names, values, spread)
    if spread.size != k or spread.ndim > 1:
        raise InputError(
            f"The fit returned {k} estimates and variances of shape {spread.shape}.", remedy=_FORMS
        )
    return Fitted(names, values, np.atleast_1d(spread))


def numbered(k: int) -> tuple[str, ...]:
    """Return names for k estimates without names."""
    return ("estimate",) if k == 1 else tuple(f"q{i + 1}" for i in range(k))


def _named(values: Any) -> tuple[tuple[str, ...] | None, FloatArray]:
    if isinstance(values, pd.Series):
        return tuple(map(str, values.index)), _numbers(values)
    if isinstance(values, Mapping):
        return tuple(map(str, values)), _numbers(list(values.values()))
    found = np.atleast_1d(_numbers(values))
    if found.ndim != 1:
        raise InputError("The fit returned estimates that are not a vector.", remedy=_FORMS)
    return None, found


def _numbers(values: Any) -> FloatArray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("The fit returned values that are not numbers.", remedy=_FORMS) from None


def estimable(exog: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return two masks of a design's columns: those with a coefficient of their own, and a basis.

    A column has one if it lies outside the span of the others. A category without records gives
    a column of zeros; if it is the reference, its dummies and the intercept are determined only
    together. The second mask selects a largest independent set of columns.
    """
    # Singular values of a scaled design below this share of the largest count as 0.
    rank_tolerance = 1e-9
    x = np.asarray(exog, dtype=np.float64)
    norms = np.sqrt((x * x).sum(axis=0))
    triangle = np.linalg.qr(x / np.where(norms > 0, norms, 1.0), mode="r")
    _, singular, right = np.linalg.svd(triangle, full_matrices=True)
    rank = int((singular > rank_tolerance * max(float(singular.max(initial=0.0)), 1.0)).sum())
    alone = np.abs(right[rank:]).max(axis=0, initial=0.0) < np.sqrt(rank_tolerance)
    independent = np.zeros(exog.shape[1], dtype=np.bool_)
    independent[linalg.qr(triangle, mode="r", pivoting=True)[1][:rank]] = True
    return alone, independent
