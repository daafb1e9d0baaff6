"""Spanning trees of pairs of columns, chosen privately."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from itertools import compress

import numpy as np

from margrave.domain import Domain
from margrave.marginal import IDENTITY, LinearMap
from margrave.mechanisms.common import Progress, no_progress, one_way
from margrave.mechanisms.parts.capacity import Capacity
from margrave.privacy import MarginalGap, Private
from margrave.types import Attribute, Clique, FloatArray


def spanning_tree(
    private: Private,
    estimates: Mapping[Clique, FloatArray],
    rho: Fraction,
    *,
    measured: Collection[Clique] = (),
    query: LinearMap = IDENTITY,
    capacity: Capacity | None = None,
    progress: Progress = no_progress,
) -> list[Clique]:
    """Return pairs that join what ``given`` cliques leave apart, each chosen privately by its gap.

    Edge by edge: of the pairs that join two parts, one by the exponential mechanism on ||M_ab(D) −
    estimate_ab||_1. Pairs that the ``capacity`` has no room for, beside all columns and the tree so
    far, are left out. The tree ends where none is left.

    **Privacy:** rho at most, in equal shares of the edges.
    """
    edges = joinable(private.domain, measured, estimates)
    pairs, index = list(estimates), {a: i for i, a in enumerate(private.domain)}
    ends = np.array([[index[a], index[b]] for a, b in pairs], dtype=np.int64).reshape(-1, 2)
    score = MarginalGap.plain(estimates, query)
    if capacity is not None and capacity.holds_any_forest() and not measured:
        capacity = None
    parts = connected_parts(private.domain, measured)
    part = np.array([index[parts[a]] for a in private.domain])
    tree: list[Clique] = []
    for _ in range(edges):
        apart = part[ends[:, 0]] != part[ends[:, 1]]
        pairs, ends = [*compress(pairs, apart.tolist())], ends[apart]
        joining = pairs
        if capacity is not None:
            joining = capacity.up_to(capacity.cells(), pairs, [*one_way(capacity.domain), *tree])
        if not joining:
            break
        chosen = private.select(joining, score, rho=rho / edges)
        tree.append(chosen)
        kept, gone = (part[index[a]] for a in chosen)
        part[part == gone] = kept
        progress("choosing pairs", len(tree) / edges)
    return tree


def joinable(domain: Domain, measured: Collection[Clique], pairs: Collection[Clique]) -> int:
    """Return how many pairs join what the ``given`` cliques leave apart, as far as pairs can."""
    apart, joined = connected_parts(domain, measured), connected_parts(domain, [*measured, *pairs])
    return len(set(apart.values())) - len(set(joined.values()))


def connected_parts(domain: Domain, cliques: Collection[Clique]) -> dict[Attribute, Attribute]:
    """Return each attribute's connected part of the cliques' graph, named after an attribute."""
    part = {a: a for a in domain}
    members = {a: [a] for a in domain}
    for clique in cliques:
        for a in clique[1:]:
            kept, gone = part[clique[0]], part[a]
            if kept != gone:
                members[kept] += (moved := members.pop(gone))
                part.update(dict.fromkeys(moved, kept))
    return part


def forest(
    gains: Mapping[Clique, float], capacity: Capacity, measured: Collection[Clique]
) -> list[Clique]:
    """Return pairs of positive gain that form no cycle, the largest gains first.

    Pairs that the capacity has no room for, beside what is measured, are left out.

    **Privacy:** none spent; the gains are noisy answers.
    """
    # Pairs that are sized at once: those that do not fit yet never will.
    block = 64
    ranked = sorted((r for r, gain in gains.items() if gain > 0), key=lambda r: -gains[r])
    part = {a: a for a in capacity.domain}
    selected: list[Clique] = []

    def fitting(pairs: list[Clique]) -> list[Clique]:
        joining = [r for r in pairs if part[r[0]] != part[r[1]]]
        return joining and capacity.up_to(capacity.cells(), joining, [*measured, *selected])

    for start in range(0, len(ranked), block):
        for r in fitting(ranked[start : start + block]):
            for a, b in fitting([r]):
                selected.append((a, b))
                gone, kept = part[a], part[b]
                part.update({c: kept for c, p in part.items() if p == gone})
    return selected
