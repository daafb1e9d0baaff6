"""Spanning trees of pairs of columns, chosen privately."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction

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
    tree: list[Clique] = []
    for _ in range(edges):
        part = connected_parts(private.domain, [*measured, *tree])
        joining = [r for r in estimates if part[r[0]] != part[r[1]]]
        if capacity is not None:
            joining = capacity.up_to(capacity.cells(), joining, [*one_way(capacity.domain), *tree])
        if not joining:
            break
        score = MarginalGap(
            {r: estimates[r] for r in joining},
            weights=dict.fromkeys(joining, 1.0),
            penalties=dict.fromkeys(joining, 0.0),
            query=query,
        )
        tree.append(private.select(joining, score, rho=rho / edges))
        progress("choosing pairs", len(tree) / edges)
    return tree


def joinable(domain: Domain, measured: Collection[Clique], pairs: Collection[Clique]) -> int:
    """Return how many pairs join what the ``given`` cliques leave apart, as far as pairs can."""
    apart, joined = connected_parts(domain, measured), connected_parts(domain, [*measured, *pairs])
    return len(set(apart.values())) - len(set(joined.values()))


def connected_parts(domain: Domain, cliques: Collection[Clique]) -> dict[Attribute, Attribute]:
    """Return each attribute's connected part of the cliques' graph, named after an attribute."""
    part = {a: a for a in domain}
    for clique in cliques:
        gone = {part[a] for a in clique}
        part.update({a: part[clique[0]] for a, p in part.items() if p in gone})
    return part


def forest(
    gains: Mapping[Clique, float], capacity: Capacity, measured: Collection[Clique]
) -> list[Clique]:
    """Return pairs of positive gain that form no cycle, the largest gains first.

    Pairs that the capacity has no room for, beside what is measured, are left out.

    **Privacy:** none spent; the gains are noisy answers.
    """
    ranked = sorted((r for r, gain in gains.items() if gain > 0), key=lambda r: -gains[r])
    part = {a: a for a in capacity.domain}
    selected: list[Clique] = []
    for a, b in ranked:
        if part[a] == part[b] or not capacity.up_to(
            capacity.cells(), [(a, b)], [*measured, *selected]
        ):
            continue
        selected.append((a, b))
        gone, kept = part[a], part[b]
        part.update({c: kept for c, p in part.items() if p == gone})
    return selected
