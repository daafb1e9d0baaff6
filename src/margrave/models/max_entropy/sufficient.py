"""The estimate of the canonical queries from noisy marginals, and its covariance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from margrave.errors import InputError
from margrave.models.max_entropy.canonical import Canonical
from margrave.models.terms import Term
from margrave.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Sufficient:
    """ŝ ~ N(s, K): the generalized least-squares estimate of s = a(D) from all noisy marginals, and its covariance.

    Each marginal is linear in the queries, M_r(D) = A_r (N, s), and y_r ~ N(M_r(D), scale²): so ŝ with
    K = (Σ A_rᵀ A_r / scale²)⁻¹ says all that the measurements say. The paper observes one cell for each query
    (``of_canonical_queries``); this takes in unequal scales, overlapping marginals and all cells.

    ``total`` is the number of records N: ``public``, or itself estimated. In that case ``total_slope`` is
    Cov(ŝ, N̂) / Var(N̂), and ŝ, K are given N = N̂.
    """

    mean: FloatArray
    covariance: FloatArray
    total: float
    total_variance: float
    total_slope: FloatArray
    public: bool


def sufficient(
    canonical: Canonical, terms: Sequence[Term], public_total: float | None
) -> Sufficient:
    """Return the estimate of all kept queries; ``public_total`` is None where the number of records
    is not public.
    """
    p = canonical.size
    precision, weighted = np.zeros((p + 1, p + 1)), np.zeros(p + 1)
    for term in terms:
        at, block, vector = _normal_equations(canonical, term)
        precision[np.ix_(at, at)] += block
        weighted[at] += vector
    kept = 1 + canonical.kept
    own = precision[np.ix_(kept, kept)]
    cross, rhs = precision[kept, 0], weighted[kept]
    covariance = np.linalg.inv(own)
    covariance = (covariance + covariance.T) / 2
    along = -covariance @ cross  # how ŝ moves with the number of records
    if public_total is None:
        variance = 1.0 / max(precision[0, 0] - cross @ covariance @ cross, 1e-300)
        total = max(1.0, variance * (weighted[0] - cross @ covariance @ rhs))
    else:
        total, variance = max(1.0, public_total), 0.0
    public = public_total is not None
    return Sufficient(covariance @ rhs + along * total, covariance, total, variance, along, public)


def of_canonical_queries(
    canonical: Canonical, terms: Sequence[Term], *, public_total: bool
) -> list[Term]:
    """Return the terms in which one cell for each canonical query is known, as in the paper.

    The cell of a query is in the first maximal clique that contains its columns. It has the query's codes, and the
    reference codes of the other columns. If the row count is not public, the cells of reference codes alone are
    known too, because the row count follows from them. Cliques with columns of structural zeros keep all cells.

    Args:
        canonical: The queries.
        terms: Noisy marginals. All cells of marginals inside others become unknown.
        public_total: True if the row count is public.

    Returns:
        The terms of maximal cliques. Unknown cells have an infinite scale.

    Privacy:
        None spent; post-processing of noisy answers. One record is in one cell of a marginal, so
        noise on the known cells alone would have the same scale.

    References:
        Räisä, Jälkö, Kaski, Honkela (2023), Appendix C.
    """
    owner = {s: next(c for c in canonical.cliques if set(s) <= set(c)) for s in canonical.subsets}
    tied = {a for z in canonical.domain.zeros for a in z.clique}
    found = []
    for term in terms:
        known = np.full(term.values.shape, bool(tied & set(term.clique)))
        known[tuple(canonical.reference[a] for a in term.clique)] |= not public_total
        for s in (s for s, clique in owner.items() if clique == term.clique):
            known[np.ix_(*(canonical.codes(a, free=a in s) for a in term.clique))] = True
        if term.clique in canonical.cliques:
            found.append(replace(term, scales=np.where(known, term.scales, np.inf)))
    return found


def _normal_equations(canonical: Canonical, term: Term) -> tuple[IntArray, FloatArray, FloatArray]:
    domain, clique = canonical.domain, term.clique
    if any(set(z.clique) & set(clique) for z in domain.zeros):
        return _constrained_equations(canonical, term)
    shape, cells = domain.shape(clique), domain.cells(clique)
    weight, values = term.scales**-2.0, term.values
    for axis, a in enumerate(clique):
        weight = np.take(weight, canonical.order(a), axis=axis)
        values = np.take(values, canonical.order(a), axis=axis)
    block = np.diag(weight.ravel()).reshape(shape + shape)
    vector = weight * values
    for axis in range(len(clique)):
        block = _transposed(_transposed(block, axis), len(clique) + axis)
        vector = _transposed(vector, axis)
    return canonical.columns_of(clique).ravel(), block.reshape(cells, cells), vector.ravel()


def _constrained_equations(
    canonical: Canonical, term: Term
) -> tuple[IntArray, FloatArray, FloatArray]:
    found = canonical.answers(term.clique)
    if found is None:
        raise InputError(
            f"The constraints make cells of {', '.join(term.clique)} depend on others in a way that this posterior"
            " cannot represent.",
            remedy="Draw by the bootstrap instead: method='bootstrap' (margrave analyze --method bootstrap).",
        )
    positions, answers, here = found
    weight = term.scales.ravel()[here] ** -2.0
    block = answers.T @ (weight[:, None] * answers)
    vector = answers.T @ (weight * term.values.ravel()[here])
    return np.concatenate([[0], 1 + positions]), block, vector


def _transposed(table: FloatArray, axis: int) -> FloatArray:
    """Multiply by Bᵀ along an axis, where B takes (summed, codes after the first) to the counts of
    all codes.

    The first code's count is the sum less the others, so Bᵀ keeps the first and subtracts it from
    the others.
    """
    first = np.take(table, [0], axis=axis)
    rest = np.take(table, range(1, table.shape[axis]), axis=axis)
    return np.concatenate([first, rest - first], axis=axis)
