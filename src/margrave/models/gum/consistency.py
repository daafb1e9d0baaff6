"""Marginals that overlap, adjusted until they agree on what they share and have no negative count."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

import numpy as np

from margrave.domain import Domain
from margrave.marginal import project_array
from margrave.marginal.axes import expand_axes
from margrave.marginal.simplex import project_to_simplex
from margrave.models.terms import Term
from margrave.types import AnyArray, Clique, FloatArray

#: Which cells of each marginal are possible: one array of 0 and 1 with its axes.
Possible = Mapping[Clique, AnyArray]


def shared_sets(domain: Domain, cliques: Collection[Clique]) -> list[Clique]:
    """Return every set of columns that is the intersection of two cliques or more, small ones first.

    The first is the empty set, whose marginal is the row count. Columns of one code are left out.

    Example:
        >>> domain = Domain.of({"a": 2, "b": 2, "c": 2, "d": 2})
        >>> shared_sets(domain, [("a", "b", "c"), ("b", "c", "d"), ("c", "d")])
        [(), ('c',), ('b', 'c'), ('c', 'd')]
    """
    common: dict[Clique, frozenset[str]] = {}
    often: dict[Clique, int] = {}
    for clique in dict.fromkeys(cliques):
        varying = [a for a in clique if domain.size(a) > 1]
        for ways in range(1, len(varying) + 1):
            for subset in combinations(varying, ways):
                common[subset] = common.get(subset, frozenset(varying)) & frozenset(varying)
                often[subset] = often.get(subset, 0) + 1
    closed = [s for s in common if often[s] > 1 and len(common[s]) == len(s)]
    return [(), *sorted(closed, key=lambda s: (len(s), domain.clique(s)))]


def agreeing(
    domain: Domain, terms: Sequence[Term], total: float, possible: Possible
) -> list[FloatArray]:
    """Return the marginals with equal sums over every set of columns that some of them share.

    For each shared set S, small ones first, the sums of the marginals r that contain it are averaged
    with weights 1 / (scale_r² · cells of r in each cell of S), and the difference is spread evenly
    over these cells. The sums of the empty set become ``total``. Later sets leave the sums of earlier
    ones as they are if all cells are possible. Otherwise they agree only nearly.

    Args:
        domain: The attributes.
        terms: Noisy marginals, one for each clique.
        total: The row count.
        possible: The possible cells. The others get the count 0.

    Returns:
        One array for each marginal, in the order of ``terms``.

    Example:
        >>> domain = Domain.of({"a": 2, "b": 2})
        >>> one = Term(("a",), np.array([8.0, 2.0]), np.ones(2))
        >>> pair = Term(("a", "b"), np.array([[3.0, 2.0], [3.0, 2.0]]), np.ones((2, 2)))
        >>> [v.round(6).tolist() for v in agreeing(domain, [one, pair], 10.0, {})]
        [[7.0, 3.0], [[4.0, 3.0], [2.0, 1.0]]]

    References:
        Qardaji, Yang, Li (2014), PriView; Zhang et al. (2021), PrivSyn.
    """
    masks = [possible.get(t.clique, np.ones(t.values.shape)) for t in terms]
    found = [t.values * mask for t, mask in zip(terms, masks, strict=True)]
    for shared in shared_sets(domain, [t.clique for t in terms]):
        inside = [i for i, t in enumerate(terms) if set(shared) <= set(t.clique)]
        sums = {i: project_array(found[i], terms[i].clique, shared) for i in inside}
        cells = {i: project_array(masks[i], terms[i].clique, shared) for i in inside}
        weights = {i: _over(terms[i].scale ** -2.0, cells[i]) for i in inside}
        weighted = np.sum([weights[i] * sums[i] for i in inside], axis=0)
        mean = _over(weighted, np.sum([*weights.values()], axis=0)) if shared else total
        for i in inside:
            spread = expand_axes(_over(mean - sums[i], cells[i]), shared, terms[i].clique)
            found[i] = found[i] + spread * masks[i]
    return found


def consistent(
    domain: Domain, terms: Sequence[Term], total: float, possible: Possible, *, rounds: int
) -> list[Term]:
    """Return the marginals as counts of one table, nearly: not negative, and in agreement.

    Agreement and Norm-Sub alternate. Norm-Sub sets negative counts to 0 and takes the excess from
    the positive ones equally, until the sum is ``total``: the nearest such marginal.

    Args:
        domain: The attributes.
        terms: Noisy marginals, one for each clique.
        total: The row count, above 0.
        possible: The possible cells of each clique.
        rounds: How often the two alternate at most.

    Returns:
        Marginals of the same cliques and scales. No count is negative, and each sums to ``total``.
    """
    # Largest share of the records that another round must move, else rounds stop.
    share_tolerance = 1e-6
    for _ in range(rounds):
        values = agreeing(domain, terms, total, possible)
        after = [
            Term(t.clique, norm_sub(v, total, possible.get(t.clique)), t.scales)
            for t, v in zip(terms, values, strict=True)
        ]
        moved = [np.abs(a.values - b.values).sum() for a, b in zip(after, terms, strict=True)]
        terms = after
        if max(moved, default=0.0) <= share_tolerance * total:
            break
    return list(terms)


def norm_sub(values: FloatArray, total: float, possible: AnyArray | None = None) -> FloatArray:
    """Return the nearest counts that are not negative and sum to ``total``; 0 in impossible cells.

    Example:
        >>> norm_sub(np.array([7.0, -2.0, 6.0]), 10.0).round(9).tolist()
        [5.5, 0.0, 4.5]
    """
    inside = np.ones(values.shape, dtype=bool) if possible is None else possible.astype(bool)
    found = np.zeros(values.shape)
    found[inside] = total * project_to_simplex(values[inside] / total)
    return found


def _over(numbers: AnyArray | float, divisors: AnyArray) -> AnyArray:
    shape = np.broadcast_shapes(np.shape(numbers), divisors.shape)
    return np.divide(numbers, divisors, out=np.zeros(shape), where=divisors > 0)
