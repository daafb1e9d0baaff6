"""What an analysis of one data set may return, read into one form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from scipy import linalg

from margrave.errors import InputError
from margrave.typing import AnyArray, FloatArray

REMEDY = (
    "Return (estimates, variances), with names as keys of dicts or Series; (estimates, covariance matrix); a dict of"
    " name: (estimate, variance); or a statsmodels result."
)
TEST = (
    "Return what it tests, with a variance: of the means of a and b, (a.mean() - b.mean(), a.var() / len(a) + b.var() /"
    " len(b)); of a correlation, the ready model Correlation. The analysis has the p-value."
)
_RANK = 1e-9


@dataclass(frozen=True, eq=False)
class Fitted:
    """Estimates of k named quantities from one data set, their variances, and their covariance where it is known.

    Quantities that this data set cannot tell about are left out. ``converged``: whether the numbers are what they
    claim to be; a fit that did not converge is reported, as are estimates that are not finite. ``chosen``: names
    may be lacking, because the data set does not determine them. ``ranked``: what the design does not determine
    is left out already, so that a warning of a singular one is no news. ``days``: the estimates are dates, as
    days since 1970.
    """

    names: tuple[str, ...]
    estimates: FloatArray
    variances: FloatArray
    covariance: FloatArray | None = None
    converged: bool = True
    chosen: bool = False
    ranked: bool = False
    days: bool = False

    @staticmethod
    def of(names: tuple[str, ...], estimates: Any, covariance: Any, *, converged: bool = True) -> Fitted:
        """Estimates with their covariance matrix."""
        matrix = np.asarray(covariance, dtype=np.float64)
        return Fitted(names, np.asarray(estimates, dtype=np.float64), np.diag(matrix).copy(), matrix, converged)

    def only(self, keep: AnyArray) -> Fitted:
        """Those quantities that ``keep`` marks."""
        names = tuple(n for n, k in zip(self.names, keep, strict=True) if k)
        matrix = None if self.covariance is None else self.covariance[np.ix_(keep, keep)]
        return replace(
            self,
            names=names,
            estimates=self.estimates[keep],
            variances=self.variances[keep],
            covariance=matrix,
            chosen=True,
        )


@runtime_checkable
class Result(Protocol):
    """The part of a statsmodels result that is read."""

    params: Any

    def cov_params(self) -> Any:
        """The covariance of the parameters."""
        ...


def read_fit(found: Any) -> Fitted:
    """One form for all that a fit may return; ``InputError`` for anything else."""
    if isinstance(found, Fitted):
        return found
    if isinstance(found, Result):
        return _of_result(found)
    for part in (found, *(found.values() if isinstance(found, Mapping) else ())):
        if getattr(part, "pvalue", None) is not None:  # SciPy's tests are tuples, many of them of two
            kind = type(part).__name__
            raise InputError(f"The fit returned a {kind}: a test, and its p-value is no variance.", remedy=TEST)
    if isinstance(found, Mapping):
        return _of_mapping(found)
    if isinstance(found, tuple | list) and len(found) == 2:
        return _of_pair(*found)
    raise InputError(f"The fit returned a {type(found).__name__}.", remedy=REMEDY)


def _of_result(result: Any) -> Fitted:
    """A statsmodels result, without the coefficients that its design does not determine."""
    params = np.asarray(result.params, dtype=np.float64)
    if params.ndim != 1:
        raise InputError(
            "The fit returned a result with several equations.", remedy="Return (estimates, variances) instead."
        )
    model = getattr(result, "model", None)
    index = getattr(result.params, "index", None)
    names = index if index is not None else getattr(model, "exog_names", None)
    named = tuple(f"q{i + 1}" for i in range(len(params))) if names is None else tuple(map(str, names))
    returned = getattr(result, "mle_retvals", None)
    told = getattr(result, "converged", None)
    told = returned.get("converged") if told is None and isinstance(returned, Mapping) else told
    fitted = Fitted.of(named[: len(params)], params, result.cov_params(), converged=told is None or bool(told))
    exog = np.asarray(getattr(model, "exog", None))
    if exog.ndim == 2 and exog.shape[1] == len(params) and np.issubdtype(exog.dtype, np.number):
        return replace(fitted.only(estimable(exog)[0]), ranked=True)
    return fitted


def _of_mapping(found: Mapping[Any, Any]) -> Fitted:
    try:
        pairs = np.array([[float(a) for a in pair] for pair in found.values()], dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("The fit returned a dict of something else than pairs.", remedy=REMEDY) from None
    if pairs.shape != (len(found), 2) or not len(found):
        raise InputError("The fit returned a dict of something else than pairs.", remedy=REMEDY)
    return Fitted(tuple(map(str, found)), pairs[:, 0].copy(), pairs[:, 1].copy())


def _of_pair(estimates: Any, spread: Any) -> Fitted:
    names, values = _named(estimates)
    if isinstance(spread, pd.Series | Mapping):
        others, variances = _named(spread)
        if names is None or others is None or sorted(names) != sorted(others):
            raise InputError("The fit named its estimates and its variances differently.", remedy=REMEDY)
        order = [others.index(n) for n in names]
        return _checked(names, values, variances[order])
    if isinstance(spread, pd.DataFrame) and names is not None:
        if sorted(map(str, spread.index)) != sorted(names) or list(spread.index) != list(spread.columns):
            raise InputError("The fit named its estimates and its covariance differently.", remedy=REMEDY)
        order = [list(map(str, spread.index)).index(n) for n in names]
        spread = spread.to_numpy()[np.ix_(order, order)]
    return _checked(names, values, _numbers(spread))


def _checked(names: tuple[str, ...] | None, values: FloatArray, spread: FloatArray) -> Fitted:
    k = len(values)
    names = numbered(k) if names is None else names
    if spread.shape == (k, k) and spread.ndim == 2:
        return Fitted.of(names, values, spread)
    if spread.ndim == 0:
        spread = spread[None]
    if spread.shape != (k,):
        raise InputError(
            f"The fit returned {k} estimates and variances of shape {spread.shape}.", remedy=REMEDY
        )
    return Fitted(names, values, spread)


def numbered(k: int) -> tuple[str, ...]:
    """The names of k estimates that came without."""
    return ("estimate",) if k == 1 else tuple(f"q{i + 1}" for i in range(k))


def _named(values: Any) -> tuple[tuple[str, ...] | None, FloatArray]:
    if isinstance(values, pd.Series):
        return tuple(map(str, values.index)), _numbers(values)
    if isinstance(values, Mapping):
        return tuple(map(str, values)), _numbers(list(values.values()))
    found = np.atleast_1d(_numbers(values))
    if found.ndim != 1:
        raise InputError("The fit returned estimates that are no vector.", remedy=REMEDY)
    return None, found


def _numbers(values: Any) -> FloatArray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("The fit returned something else than numbers.", remedy=REMEDY) from None


def estimable(exog: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Which columns of a design lie outside the span of the others, and a largest independent set of columns.

    Only the coefficients of the former have a value of their own. A category that no record has gives a column of
    zeros; where it is the reference, all its dummies and the intercept are determined only together.
    """
    k = exog.shape[1]
    x = np.asarray(exog, dtype=np.float64)
    norms = np.sqrt((x * x).sum(axis=0))
    triangle = np.linalg.qr(x / np.where(norms > 0, norms, 1.0), mode="r")
    _, singular, right = np.linalg.svd(triangle, full_matrices=True)
    rank = int((singular > _RANK * max(float(singular.max(initial=0.0)), 1.0)).sum())
    alone = np.abs(right[rank:]).max(axis=0, initial=0.0) < np.sqrt(_RANK)
    independent = np.zeros(k, dtype=np.bool_)
    pivots = linalg.qr(triangle, mode="r", pivoting=True)[1]
    independent[pivots[:rank]] = True
    return alone, independent
