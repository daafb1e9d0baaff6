"""Pairs of columns that are worth their noise, all selected at once, and the cliques that they form."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from margrave.domain import Domain
from margrave.mechanisms.common import one_way
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.penalty import expected_noise
from margrave.types import Clique


def allocation(domain: Domain, cliques: Collection[Clique]) -> dict[Clique, float]:
    """Return weights of shares of a budget that minimize the noise of all cells: cells^(2/3)."""
    return {r: domain.cells(r) ** (2 / 3) for r in cliques}


def total_noise(scale: float, weights: Collection[float]) -> float:
    """Return the expected L1 noise of all cells of some marginals together.

    Args:
        scale: The noise scale of one cell if a single marginal got the whole budget.
        weights: The marginals' shares of the budget, from ``allocation``.

    Example:
        >>> two = allocation(Domain.of({"a": 2, "b": 4}), [("a", "b"), ("b",)]).values()
        >>> shares = [weight / sum(two) for weight in two]
        >>> noise = sum(expected_noise(3.0 / s**0.5, c) for s, c in zip(shares, [8, 4]))
        >>> round(noise, 6) == round(total_noise(3.0, two), 6)
        True
    """
    return expected_noise(scale, 1) * float(sum(weights) ** 1.5)


def dense_pairs(
    domain: Domain, dependence: Mapping[Clique, float], scale: float, capacity: Capacity
) -> list[Clique]:
    """Return pairs by a greedy search for the least error, and at least one of every column.

        minimize total_noise(selected) + Σ_others dependence

    Args:
        domain: The columns.
        dependence: For each pair its noisy dependence: the error of independent columns.
        scale: The noise scale of one cell if a single pair got the whole budget.
        capacity: Pairs that it has no room for are left out.

    References:
        Zhang et al. (2021), PrivSyn, DenseMarg.
    """
    weights = allocation(domain, dependence)
    selected: dict[Clique, None] = {}
    while True:
        spent = [weights[r] for r in selected]
        left = [r for r in dependence if r not in selected]
        left = capacity.within(left, [*one_way(domain), *selected])
        noise = {r: total_noise(scale, [*spent, weights[r]]) for r in left}
        best = max(left, key=lambda r: dependence[r] - noise[r], default=None)
        if best is None or dependence[best] <= noise[best] - total_noise(scale, spent):
            break
        selected[best] = None
    for a in domain:
        own = [r for r in dependence if a in r]
        if not any(r in selected for r in own):
            own = capacity.within(own, [*one_way(domain), *selected])
            selected.update(dict.fromkeys(sorted(own, key=dependence.__getitem__)[-1:]))
    return [*selected]


def join_pairs(pairs: Sequence[Clique], cliques: Sequence[Clique]) -> list[Clique]:
    """Return the cliques whose pairs are all there, in place of these, and the other pairs.

    A clique is taken if at most two of its columns are in those before.

    Example:
        >>> join_pairs([("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")], [("a", "b", "c")])
        [('a', 'b', 'c'), ('c', 'd')]
    """
    known = set(pairs)
    taken: list[Clique] = []
    for r in cliques:
        complete = all(p in known for p in combinations(r, 2))
        if complete and len({a for t in taken for a in t}.intersection(r)) <= 2:
            taken.append(r)
    inside = {p for r in taken for p in combinations(r, 2)}
    return [*taken, *(p for p in pairs if p not in inside)]
