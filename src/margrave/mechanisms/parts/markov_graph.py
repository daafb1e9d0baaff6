"""Markov graphs of dependent columns, and the marginals inside their cliques."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from margrave.domain import Domain
from margrave.mechanisms.common import one_way, two_way
from margrave.mechanisms.parts.capacity import Capacity
from margrave.models.graphical.junction_tree import JunctionTree
from margrave.types import Clique, FloatArray, Generator


def markov_graph(
    dependences: Mapping[Clique, float], capacity: Capacity, *, per_cell: float = 1e-8
) -> list[Clique]:
    """Return the cliques of a triangulated graph, whose edges are greedily chosen pairs.

    Each edge is the pair with the largest rise of Σ_edges dependence − ``per_cell`` · cells. The
    last edge is the last that fits and raises the sum. A pair that does not fit beside some edges
    is not tried beside more of them.

    **Privacy:** none spent; the dependences are noisy answers.
    """
    fit, domain, edges = capacity.fit, capacity.domain, one_way(capacity.domain)
    waiting = sorted((r for r in dependences if dependences[r] > 0), key=lambda r: -dependences[r])
    cells = float(fit.cells(domain, edges))
    while True:
        best: Clique = ()
        most, after = 0.0, cells
        for pair in list(waiting):
            if dependences[pair] <= most:
                break  # no later pair has a larger rise: another edge frees no cells
            size = float(fit.sizes_with(domain, edges, [pair])[0])
            rise = dependences[pair] - per_cell * (size - cells)
            if size > capacity.cells():
                waiting.remove(pair)
            elif rise > most:
                best, most, after = pair, rise, size
        if not best:
            return list(JunctionTree.of(domain, edges).cliques)
        edges.append(best)
        waiting.remove(best)
        cells = after


def small_marginals(
    domain: Domain, cliques: Collection[Clique], cells: float, ways: int
) -> list[Clique]:
    """Return the marginals of 2 to ``ways`` columns within cliques that have at most ``cells`` cells.

    They have fewer columns if the domain has more than 30,000 marginals of a size, since all are
    counted ahead. Pairs remain.
    """
    most = 30_000
    sizes = [k for k in range(2, ways + 1) if math.comb(len(domain), k) <= most]
    found = (r for k in sizes or [2] for c in cliques for r in combinations(c, k))
    return [r for r in dict.fromkeys(found) if domain.cells(r) <= cells]


def all_marginals(domain: Domain, cells: float, ways: int) -> list[Clique]:
    """Return all columns and pairs, and the wider marginals of ``small_marginals`` in the whole domain."""
    wider = small_marginals(domain, [domain.attributes], cells, ways)
    return list(dict.fromkeys([*one_way(domain), *two_way(domain), *wider]))


def merit(column: int, parents: Sequence[int], dependence: FloatArray) -> float:
    """Return how well parents predict a column: the merit of correlation-based feature selection.

    Σ_i D(x, i) / sqrt(max(1, |Π| + Σ_{i<j} D(i, j))), for the dependence D of columns.
    """
    between = sum(dependence[i, j] for i, j in combinations(parents, 2))
    toward = sum(dependence[column, i] for i in parents)
    return float(toward / math.sqrt(max(1.0, len(parents) + between)))


def first_marginals(
    domain: Domain,
    cliques: Collection[Clique],
    dependences: Mapping[Clique, float],
    useful: Collection[Clique],
) -> list[Clique]:
    """Return at most one marginal per column, which together cover all columns.

    A Bayes net grows within each clique. A column's marginal joins it to its parents, by the net in
    which their merit is largest. Columns without useful marginals are measured alone.

    **Privacy:** none spent; the dependences are noisy answers.
    """
    matrix = np.zeros((len(domain), len(domain)))
    for (a, b), value in dependences.items():
        i, j = domain.index(a), domain.index(b)
        matrix[i, j] = matrix[j, i] = value
    best: dict[int, tuple[float, Clique]] = {}
    for clique in cliques:
        members = [domain.index(a) for a in clique]
        for column, value, family in _bayes_net(domain, members, matrix, frozenset(useful)):
            if value > best.get(column, (0.0, ()))[0]:
                best[column] = value, family
    families = list(dict.fromkeys(family for _, family in best.values()))
    covered = {a for family in families for a in family}
    return [*families, *((a,) for a in domain if a not in covered)]


def _bayes_net(
    domain: Domain, members: Sequence[int], dependence: FloatArray, useful: frozenset[Clique]
) -> Iterator[tuple[int, float, Clique]]:
    """Yield columns with the merit of their parents among earlier columns, and the marginal of all.

    The net starts with the most dependent column. Then it takes the column of largest merit.
    """
    most_parents = max(map(len, useful), default=1) - 1
    placed = [max(members, key=lambda i: dependence[i, members].sum())]
    best: dict[int, tuple[float, Clique]] = {i: (0.0, ()) for i in members if i not in placed}
    while best:
        *others, newest = placed
        for column in best:
            for k in range(most_parents):
                for some in combinations(others, k):
                    parents = [*some, newest]
                    names = [domain.attributes[i] for i in sorted([column, *parents])]
                    value = merit(column, parents, dependence)
                    if value > best[column][0] and tuple(names) in useful:
                        best[column] = value, tuple(names)
        column = max(best, key=lambda i: best[i][0])
        value, family = best.pop(column)
        if family:
            yield column, value, family
        placed.append(column)


def drawn(marginals: Sequence[Clique], count: int, rng: Generator) -> list[Clique]:
    """Draw at most ``count`` marginals: r with a weight of |r|² / number of marginals of its size.

    **Privacy:** none spent; the draw depends on no row.
    """
    if len(marginals) <= count:
        return list(marginals)
    ways = np.array([len(r) for r in marginals])
    weights = ways**2 / np.bincount(ways)[ways]
    places = rng.choice(len(marginals), size=count, replace=False, p=weights / weights.sum())
    return [marginals[i] for i in sorted(places.tolist())]
