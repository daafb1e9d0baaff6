"""The gate's own copies of the queries, scores and noise that it is handed.

A question comes from code outside the gate: a mechanism, perhaps of another library. Its objects would otherwise
meet true counts. A subclass may override what it counts or how sensitive it is. An attribute of an instance may hide a
method, an array of another class sees every array that it is combined with, and a mapping may change after the check.
So the gate takes exact types only. It checks and uses copies made of plain numbers, texts, dictionaries and arrays.

A score of another type is handed true counts as it is, and states its own sensitivity. The gate takes one only if the
custodian vouched for its type, and the certificate names it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import index
from typing import TypeVar

import numpy as np

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import HalfSpace, LinearMap, LinearQuery, QueryFamily, SingleQuery
from margrave.marginal.linear_queries import BoolMatrix
from margrave.privacy.dependence import Dependence
from margrave.privacy.half_space_gap import HalfSpaceGap
from margrave.privacy.noise import Gaussian
from margrave.privacy.relative_gap import RelativeGap
from margrave.privacy.scores import Improvement, MarginalGap, QueryGap, Score
from margrave.schema.column_queries import (
    ClippedSum,
    ColumnQuery,
    DecimalCells,
    LineCells,
    column_query_from_dict,
)
from margrave.types import Clique, FloatArray, IntArray
from margrave.unit import Unit, replaces_rows

K = TypeVar("K")
V = TypeVar("V")
W = TypeVar("W")

VOUCHING = (
    "If you have checked the sensitivity of a score of your own, vouch for it: protect(..., vouched=[{}]), or"
    " synthesize with the same argument. The certificate then names it."
)


def own_noise(noise: Gaussian) -> Gaussian:
    """Copy the noise of a question."""
    if type(noise) is not Gaussian:
        raise InputError(
            f"The noise is {noise!r}.",
            remedy="Give Gaussian(rho=Fraction(1, 10)) or Gaussian(scale=5.0), say.",
        )
    return Gaussian(noise.rho, noise.scale)


def own_query(query: LinearMap) -> LinearMap:
    """Copy the linear map of a question."""
    _check_type("query of marginals", query, (LinearMap,))
    return LinearMap(_mapped(query.groups, _integers), _mapped(query.matrices, _integers))


def own_column_query(query: ColumnQuery) -> ColumnQuery:
    """Copy a query about a raw column."""
    _check_type("query about a column", query, (LineCells, DecimalCells, ClippedSum))
    return column_query_from_dict(query.to_dict())


def own_single_query(query: SingleQuery) -> SingleQuery:
    """Copy one counting query."""
    _check_type("query", query, (LinearQuery, HalfSpace))
    clique = tuple(str(a) for a in query.clique)
    if isinstance(query, LinearQuery):
        return LinearQuery(clique, tuple(tuple(_whole(c) for c in codes) for codes in query.codes))
    return HalfSpace(
        clique,
        tuple(_number(c) for c in query.coefficients),
        tuple(_whole(k) for k in query.lines),
        _number(query.threshold),
        None if query.slope is None else _number(query.slope),
    )


def own_queries(queries: QueryFamily, domain: Domain, last: QueryFamily | None) -> QueryFamily:
    """Copy the queries of a choice, or return the ``last`` copy if they are the same."""
    _check_type("queries", queries, (QueryFamily,))
    if difference := domain.difference(queries.domain):
        raise InputError(
            f"The queries are of another domain than the table: {difference}.",
            remedy="Make them for the schema's.",
        )
    if last is not None and _same(queries, last):
        return last
    return QueryFamily(domain, tuple(queries.cliques), _mapped(queries.sets, _matrix))


def own_gap(score: QueryGap, queries: QueryFamily) -> QueryGap:
    """Copy the score of a choice among queries."""
    _check_type("score of queries", score, (QueryGap,))
    without = frozenset(_whole(n) for n in score.without)
    return QueryGap(_mapped(score.estimates, _floats, queries.cliques), bool(score.signed), without)


def own_score(
    score: Score, candidates: Collection[Clique], vouched: Collection[type], unit: Unit
) -> Score:
    """Copy the library's own scores, for the candidates only; return one that was vouched for as it is."""
    if is_exactly(score, vouched):
        return score
    known = (MarginalGap, Improvement, Dependence, RelativeGap)
    _check_type("score", score, known, VOUCHING.format(type(score).__name__))
    assert isinstance(score, MarginalGap | Improvement | Dependence | RelativeGap)
    if isinstance(score, Dependence):
        return Dependence(_mapped(score.left, _names, candidates), replaces_rows(unit))
    estimates = _mapped(score.estimates, _floats, candidates)
    weights, penalties = (_mapped(m, _number, candidates) for m in (score.weights, score.penalties))
    if isinstance(score, Improvement):
        return Improvement(
            estimates, _mapped(score.publics, _floats, candidates), weights, penalties
        )
    if isinstance(score, RelativeGap):
        return RelativeGap(estimates, weights, penalties, _number(score.margin))
    return MarginalGap(estimates, weights, penalties, own_query(score.query))


def own_measured_score(
    score: Dependence | MarginalGap, candidates: Collection[Clique], unit: Unit
) -> Dependence | MarginalGap:
    """Copy a score that is measured with noise: plain distances, so that all are on one grid."""
    _check_type("score to measure", score, (Dependence, MarginalGap))
    own = own_score(score, candidates, (), unit)
    assert isinstance(own, Dependence | MarginalGap)
    if isinstance(own, MarginalGap):
        plain = set(own.weights.values()) <= {1.0} and set(own.penalties.values()) <= {0.0}
        if not plain:
            raise InputError(
                "The gaps to measure have weights or penalties.",
                remedy="Give all the weight 1 and the penalty 0, and apply them to the answers.",
            )
    return own


def own_half_space_gap(score: HalfSpaceGap) -> HalfSpaceGap:
    """Copy the score of a choice among half-spaces."""
    _check_type("score of half-spaces", score, (HalfSpaceGap,))
    return HalfSpaceGap(_floats(score.estimates))


def own_half_space(query: HalfSpace) -> HalfSpace:
    """Copy a half-space that may be chosen."""
    _check_type("query to choose", query, (HalfSpace,))
    own = own_single_query(query)
    assert isinstance(own, HalfSpace)
    return own


def terms_of(score: Score, candidates: Sequence[Clique]) -> dict[str, FloatArray]:
    """Return a score's public parts; InputError where another formula's have the names that error
    bounds go by.

    A bound on what was passed over solves the score for the distance, which it can of these formulas alone.
    """
    terms = {
        str(name): np.asarray(values, dtype=np.float64)
        for name, values in score.terms(candidates).items()
    }
    if any(values.shape != (len(candidates),) for values in terms.values()):
        raise InputError("The terms of the score are not one number per candidate.")
    bounded = is_exactly(score, (MarginalGap, Improvement, RelativeGap))
    if not bounded and not terms.keys().isdisjoint(("weight", "penalty", "margin")):
        raise InputError(
            f'The terms of {type(score).__name__} are named "weight", "penalty" or "margin", as those of'
            " MarginalGap, of which error bounds are made.",
            remedy="Use other names: no error bound exists for another score.",
        )
    return terms


def readable_of(score: Score, candidates: Sequence[Clique]) -> tuple[Clique, ...]:
    """Return the candidates that can be read from public data instead; InputError for others."""
    readable = tuple(score.readable(candidates))
    if not set(readable) <= set(candidates):
        raise InputError(
            "The score reads marginals that are not candidates.", remedy="Name candidates only."
        )
    return readable


def voucher(score: Score, vouched: Collection[type]) -> str:
    """Return the full name of a score that was vouched for; "" for the library's own."""
    return (
        f"{type(score).__module__}.{type(score).__qualname__}" if is_exactly(score, vouched) else ""
    )


def check_vouched(vouched: Iterable[type[Score]]) -> tuple[type, ...]:
    """Return the types of scores that the custodian vouches for."""
    types = tuple(vouched)
    if not all(isinstance(t, type) for t in types):
        raise InputError(
            "vouched holds something other than a class of scores.",
            remedy="Give the classes: vouched=[MyScore].",
        )
    return types


def is_exactly(value: object, known: Collection[type]) -> bool:
    """Return whether an object is of one of these types. ``in`` would ask the type, which may lie about being equal."""
    return any(type(value) is kind for kind in known)


def _check_type(what: str, value: object, known: tuple[type, ...], more: str = "") -> None:
    if not is_exactly(value, known):
        names = " or ".join(t.__name__ for t in known)
        raise InputError(
            f"The {what} is of the type {type(value).__name__}, which the gate does not show true counts.",
            remedy=f"Use margrave's own {names}, not a subclass. {more}".rstrip(),
        )


def _mapped(
    mapping: Mapping[K, V], convert: Callable[[V], W], keys: Iterable[K] | None = None
) -> dict[K, W]:
    return {k: convert(mapping[k]) for k in (mapping if keys is None else keys) if k in mapping}


def _same(queries: QueryFamily, last: QueryFamily) -> bool:
    if type(queries.cliques) is not tuple or queries.cliques != last.cliques:
        return False
    sets = queries.sets
    return sets.keys() == last.sets.keys() and all(
        np.array_equal(sets[a], kept) for a, kept in last.sets.items()
    )


def _whole(value: int) -> int:
    try:
        return int(index(value))
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"A question has {value!r} where a whole number is expected.") from None


def _number(value: float) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"A question has {value!r} where a number is expected.") from None


def _names(names: Clique) -> Clique:
    return tuple(str(name) for name in names)


def _floats(values: FloatArray) -> FloatArray:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError("An estimate of a score is not an array of numbers.") from None


def _integers(values: IntArray) -> IntArray:
    plain = np.asarray(values)
    return (
        plain.astype(np.int64) if plain.dtype.kind in "iu" else np.zeros(0, dtype=np.int64)
    )  # LinearMap.check refuses it


def _matrix(values: BoolMatrix) -> BoolMatrix:
    return (
        np.array(values) if isinstance(values, np.ndarray) else values
    )  # which QueryFamily refuses
