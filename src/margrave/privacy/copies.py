"""The gate's own copies of the queries, scores and noise that it is handed.

A question comes from code outside the gate: a mechanism, perhaps of another library. Its objects would otherwise
meet true counts. A subclass may override what it counts or how sensitive it is. An attribute of an instance may hide a
method, an array of another class sees every array that it is combined with, and a mapping may change after the check.
So the gate takes exact types only. It checks and uses copies made of plain numbers, texts, dictionaries and arrays.

A score of another type is handed true counts as it is, and states its own sensitivity. The gate takes one only if the
custodian vouched for its type, and the certificate names it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from operator import index
from typing import TypeVar

import numpy as np

from margrave.errors import InputError
from margrave.marginal import HalfSpace, LinearQuery, Queries, Query, SingleQuery
from margrave.marginal.linear import BoolMatrix
from margrave.privacy.noise import Gaussian
from margrave.privacy.scores import Improvement, MarginalGap, QueryGap, Score
from margrave.schema.domain import Domain
from margrave.typing import Clique, FloatArray, IntArray

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
            f"The noise is {noise!r}.", remedy="Give Gaussian(rho=Fraction(1, 10)) or Gaussian(scale=5.0), say."
        )
    return Gaussian(noise.rho, noise.scale)


def own_query(query: Query) -> Query:
    """Copy the groups of codes of a question."""
    _check_type("query of marginals", query, (Query,))
    return Query(_mapped(query.groups, _integers))


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


def own_queries(queries: Queries, domain: Domain, last: Queries | None) -> Queries:
    """Copy the queries of a choice, or return the ``last`` copy if they are the same."""
    _check_type("queries", queries, (Queries,))
    if difference := domain.difference(queries.domain):
        raise InputError(
            f"The queries are of another domain than the table: {difference}.", remedy="Make them for the schema's."
        )
    if last is not None and _same(queries, last):
        return last
    return Queries(domain, tuple(queries.cliques), _mapped(queries.sets, _matrix))


def own_gap(score: QueryGap, queries: Queries) -> QueryGap:
    """Copy the score of a choice among queries."""
    _check_type("score of queries", score, (QueryGap,))
    without = frozenset(_whole(n) for n in score.without)
    return QueryGap(_mapped(score.estimates, _floats, queries.cliques), bool(score.signed), without)


def own_score(score: Score, candidates: Collection[Clique], vouched: Collection[type]) -> Score:
    """Copy the library's own scores, for the candidates only; return one that was vouched for as it is."""
    if is_exactly(score, vouched):
        return score
    _check_type("score", score, (MarginalGap, Improvement), VOUCHING.format(type(score).__name__))
    assert isinstance(score, MarginalGap | Improvement)
    estimates = _mapped(score.estimates, _floats, candidates)
    weights, penalties = (_mapped(m, _number, candidates) for m in (score.weights, score.penalties))
    if isinstance(score, Improvement):
        return Improvement(estimates, _mapped(score.publics, _floats, candidates), weights, penalties)
    return MarginalGap(estimates, weights, penalties, own_query(score.query))


def voucher(score: Score, vouched: Collection[type]) -> str:
    """Return the full name of a score that was vouched for; "" for the library's own."""
    return f"{type(score).__module__}.{type(score).__qualname__}" if is_exactly(score, vouched) else ""


def check_vouched(vouched: Iterable[type[Score]]) -> tuple[type, ...]:
    """Return the types of scores that the custodian vouches for."""
    types = tuple(vouched)
    if not all(isinstance(t, type) for t in types):
        raise InputError(
            "vouched holds something other than a class of scores.", remedy="Give the classes: vouched=[MyScore]."
        )
    return types


def is_exactly(given: object, known: Collection[type]) -> bool:
    """Return whether an object is of one of these types. ``in`` would ask the type, which may lie about being equal."""
    return any(type(given) is kind for kind in known)


def _check_type(what: str, given: object, known: tuple[type, ...], more: str = "") -> None:
    if not is_exactly(given, known):
        names = " or ".join(t.__name__ for t in known)
        raise InputError(
            f"The {what} is of the type {type(given).__name__}, which the gate does not show true counts.",
            remedy=f"Use margrave's own {names}, not a subclass. {more}".rstrip(),
        )


def _mapped(
    mapping: Mapping[K, V], convert: Callable[[V], W], keys: Iterable[K] | None = None
) -> dict[K, W]:
    """A dictionary of converted values: of these keys, as far as they are there, or of all."""
    return {k: convert(mapping[k]) for k in (mapping if keys is None else keys) if k in mapping}


def _same(queries: Queries, last: Queries) -> bool:
    if type(queries.cliques) is not tuple or queries.cliques != last.cliques:
        return False
    sets = queries.sets
    return sets.keys() == last.sets.keys() and all(np.array_equal(sets[a], kept) for a, kept in last.sets.items())


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


def _floats(values: FloatArray) -> FloatArray:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError("An estimate of a score is not an array of numbers.") from None


def _integers(values: IntArray) -> IntArray:
    plain = np.asarray(values)
    return plain.astype(np.int64) if plain.dtype.kind in "iu" else np.zeros(0, dtype=np.int64)  # check_query refuses it


def _matrix(values: BoolMatrix) -> BoolMatrix:
    return np.array(values) if isinstance(values, np.ndarray) else values  # which Queries refuses
