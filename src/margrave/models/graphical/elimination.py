"""Elimination orders: which variable to sum out next, and how large the junction tree becomes.

Triangulating a graph optimally is NP-hard; the greedy rules here are the usual good ones (Koller and Friedman 2009,
Section 9.4.3.2): eliminate the variable whose clique is smallest, or whose elimination adds the least weighted fill.
Both are tried and the smaller tree is kept. Everything here is a function of the cliques and sizes alone: public.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import permutations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from margrave.schema.domain import Domain
from margrave.typing import Clique, FloatArray

Adjacency = NDArray[np.uint8]

RULES = 2


@njit(cache=True, nogil=True)
def _eliminate(adjacency, log_sizes, rule, order, neighbours):  # type: ignore[no-untyped-def]
    """Greedy elimination; fills ``order`` and ``neighbours`` and returns the cells of all maximal cliques.

    ``adjacency`` is overwritten. ``neighbours[v]`` marks the neighbours of v when it was eliminated.
    """
    n = len(log_sizes)
    done = np.zeros(n, np.uint8)
    stale = np.ones(n, np.uint8)
    cost = np.zeros(n)
    members = np.empty(n, np.int64)
    for step in range(n):
        best = -1
        for v in range(n):
            if done[v]:
                continue
            if stale[v]:
                weight = log_sizes[v]
                count = 0
                for u in range(n):
                    if adjacency[v, u]:
                        members[count] = u
                        count += 1
                        weight += log_sizes[u]
                if rule == 1:
                    fill = 0.0
                    for i in range(count):
                        for j in range(i + 1, count):
                            if not adjacency[members[i], members[j]]:
                                fill += log_sizes[members[i]] * log_sizes[members[j]]
                    # ties, above all those without fill, go to the smaller clique
                    cost[v] = fill + 1e-3 * weight
                else:
                    cost[v] = weight
                stale[v] = 0
            if best < 0 or cost[v] < cost[best]:
                best = v
        order[step] = best
        done[best] = 1
        count = 0
        for u in range(n):
            neighbours[best, u] = adjacency[best, u]
            if adjacency[best, u]:
                members[count] = u
                count += 1
        for i in range(count):
            u = members[i]
            adjacency[u, best] = 0
            adjacency[best, u] = 0
            stale[u] = 1
            for j in range(count):
                if i != j and not adjacency[u, members[j]]:
                    adjacency[u, members[j]] = 1
                    if rule == 1:  # fill of common neighbours changed
                        for w in range(n):
                            if adjacency[u, w] and adjacency[members[j], w]:
                                stale[w] = 1
    return _maximal_cells(order, neighbours, log_sizes)


@njit(cache=True, nogil=True)
def _absorbed(order, neighbours):  # type: ignore[no-untyped-def]
    """Which cliques {v} ∪ neighbours(v) lie in an earlier one, and the next attribute that each v's clique takes up.

    A clique lies in an earlier one exactly if some v whose next-eliminated neighbour it belongs to has one member
    more (Blair and Peyton 1993). The first such v in the order takes it up; −1 where v takes up none.
    """
    n = len(order)
    position = np.empty(n, np.int64)
    for i in range(n):
        position[order[i]] = i
    degree = np.zeros(n, np.int64)
    for v in range(n):
        for u in range(n):
            degree[v] += neighbours[v, u]
    absorbed = np.zeros(n, np.uint8)
    following = np.full(n, -1, np.int64)
    for i in range(n):
        v, parent = order[i], -1
        for u in range(n):
            if neighbours[v, u] and (parent < 0 or position[u] < position[parent]):
                parent = u
        if parent >= 0 and degree[v] == degree[parent] + 1 and not absorbed[parent]:
            absorbed[parent] = 1
            following[v] = parent
    return absorbed, following


@njit(cache=True, nogil=True)
def _maximal_cells(order, neighbours, log_sizes):  # type: ignore[no-untyped-def]
    """Sum of the cells of the cliques {v} ∪ neighbours(v) that lie in no earlier one."""
    n = len(order)
    absorbed, _ = _absorbed(order, neighbours)
    total = 0.0
    for v in range(n):
        if not absorbed[v]:
            weight = log_sizes[v]
            for u in range(n):
                if neighbours[v, u]:
                    weight += log_sizes[u]
            total += np.exp(weight)
    return total


@njit(cache=True, nogil=True)
def _constrained(order, neighbours, log_sizes, zeros, cliques, separators):  # type: ignore[no-untyped-def]
    """The maximal cliques that hold a whole row of ``zeros``, and their separators that do; the cells of other cliques.

    Rows of the last two arguments mark members. A clique takes the eliminated variables that it absorbs, one after the
    other; what the last of them still borders on is its separator.
    """
    n = len(order)
    absorbed, following = _absorbed(order, neighbours)
    n_cliques, n_separators, total = 0, 0, 0.0
    for v in range(n):
        if absorbed[v]:
            continue
        last = v
        while following[last] >= 0:
            last = following[last]
        inside, shared, weight = False, False, log_sizes[v]
        for u in range(n):
            if neighbours[v, u]:
                weight += log_sizes[u]
        for z in range(len(zeros)):
            whole, split = True, True
            for u in range(n):
                if zeros[z, u]:
                    whole = whole and (u == v or neighbours[v, u] != 0)
                    split = split and neighbours[last, u] != 0
            inside, shared = inside or whole, shared or split
        if not inside:
            total += np.exp(weight)
            continue
        cliques[n_cliques] = neighbours[v]
        cliques[n_cliques, v] = 1
        n_cliques += 1
        if shared:
            separators[n_separators] = neighbours[last]
            n_separators += 1
    return n_cliques, n_separators, total


@njit(cache=True, nogil=True)
def _parts(adjacency):  # type: ignore[no-untyped-def]
    """Which connected part of the graph each attribute is in, and which parts are trees."""
    n = len(adjacency)
    part, waiting = np.full(n, -1, np.int64), np.empty(n, np.int64)
    is_tree = np.zeros(n, np.uint8)
    parts = 0
    for start in range(n):
        if part[start] >= 0:
            continue
        part[start], waiting[0] = parts, start
        reached, seen, ends = 1, 0, 0
        while seen < reached:
            v = waiting[seen]
            seen += 1
            for u in range(n):
                if adjacency[v, u]:
                    ends += 1
                    if part[u] < 0:
                        part[u] = parts
                        waiting[reached] = u
                        reached += 1
        is_tree[parts] = ends == 2 * (reached - 1)
        parts += 1
    return part, is_tree[:parts]


@njit(cache=True, nogil=True)
def _cells_of(adjacency, log_sizes, rule, inside):  # type: ignore[no-untyped-def]
    """The size of the junction tree of some attributes that no other is joined to."""
    places = np.flatnonzero(inside)
    work = np.empty((len(places), len(places)), np.uint8)
    for i in range(len(places)):
        for j in range(len(places)):
            work[i, j] = adjacency[places[i], places[j]]
    order, neighbours = np.empty(len(places), np.int64), np.empty(work.shape, np.uint8)
    return _eliminate(work, log_sizes[places], rule, order, neighbours)


@njit(cache=True, nogil=True)
def _cells_with(adjacency, log_sizes, members, starts, cells):  # type: ignore[no-untyped-def]
    """The size of the junction tree with each candidate clique added in turn.

    Parts of the graph that a candidate does not touch keep theirs. Where all are trees, least fill keeps them so, and
    an edge between two makes one clique more, which takes up the ends that stood alone. (Columns of one code cost no
    fill: there it may not keep them.)
    """
    part, is_tree = _parts(adjacency)
    before = np.empty((2, len(is_tree)))
    for p in range(len(is_tree)):
        for rule in range(2):
            before[rule, p] = _cells_of(adjacency, log_sizes, rule, part == p)
    forest = is_tree.all() and log_sizes.min() > 0.0
    work = adjacency.copy()
    for c in range(len(starts) - 1):
        clique = members[starts[c] : starts[c + 1]]
        touched, joined = np.zeros(len(is_tree), np.uint8), True
        for v in clique:
            touched[part[v]] = 1
        for i in clique:
            for j in clique:
                joined = joined and (i == j or adjacency[i, j] != 0)
        if joined:  # the same graph
            cells[c] = min(before[0].sum(), before[1].sum())
            continue
        if forest and len(clique) == 2 and touched.sum() == 2:
            cells[c] = before[1].sum() + np.exp(log_sizes[clique[0]] + log_sizes[clique[1]])
            for v in clique:
                if not adjacency[v].any():
                    cells[c] -= np.exp(log_sizes[v])
            continue
        for i in clique:
            for j in clique:
                work[i, j] = i != j
        inside = touched[part] > 0
        cells[c] = np.inf
        for rule in range(2):
            apart = before[rule][touched == 0].sum()
            cells[c] = min(cells[c], apart + _cells_of(work, log_sizes, rule, inside))
        for i in clique:
            for j in clique:
                work[i, j] = adjacency[i, j]


def adjacency_of(domain: Domain, cliques: Collection[Clique]) -> Adjacency:
    """The graph in which the attributes of a clique, measured or structurally constrained, are joined."""
    adjacency = np.zeros((len(domain), len(domain)), dtype=np.uint8)
    for clique in (*cliques, *(z.clique for z in domain.zeros)):
        for i, j in permutations([domain.index(a) for a in clique], 2):  # few: an index of arrays takes longer to make
            adjacency[i, j] = 1
    return adjacency


def log_sizes(domain: Domain) -> FloatArray:
    """Logarithms of the numbers of codes."""
    return np.log(np.array(domain.sizes, dtype=np.float64))


class Sizes:
    """The size of a junction tree in cells, from an elimination: impossible ones do not count, for no walk visits them.

    Separators are held in full, so what they hold of impossible cells counts. Sizes of cliques are remembered.
    """

    def __init__(self, domain: Domain) -> None:
        n = len(domain)
        self.domain, self.log_sizes = domain, log_sizes(domain)
        self.zeros = np.zeros((len(domain.zeros), n), np.uint8)
        for i, z in enumerate(domain.zeros):
            self.zeros[i, [domain.index(a) for a in z.clique]] = 1
        self._cliques, self._separators = np.empty((n, n), np.uint8), np.empty((n, n), np.uint8)
        self._known: dict[tuple[bool, bytes], float] = {}

    def eliminated(
        self, adjacency: Adjacency, rule: int, order: NDArray[np.int64], neighbours: Adjacency
    ) -> float:
        """Eliminate by a rule; ``adjacency`` is overwritten, ``order`` and ``neighbours`` are filled."""
        cells = float(_eliminate(adjacency, self.log_sizes, rule, order, neighbours))
        if not len(self.zeros):
            return cells
        n_cliques, n_separators, total = _constrained(
            order, neighbours, self.log_sizes, self.zeros, self._cliques, self._separators
        )
        total += sum(self._cells(row, separator=False) for row in self._cliques[:n_cliques])
        return float(total + sum(self._cells(row, separator=True) for row in self._separators[:n_separators]))

    def _cells(self, row: NDArray[np.uint8], *, separator: bool) -> float:
        key = (separator, row.tobytes())
        if key not in self._known:
            clique = tuple(self.domain.attributes[i] for i in np.flatnonzero(row))
            self._known[key] = float(counted_cells(self.domain, clique, separator=separator))
        return self._known[key]


def counted_cells(domain: Domain, clique: Clique, *, separator: bool) -> int:
    """What a node of a junction tree adds to its size: its possible cells; a separator: its impossible ones.

    A node counts no less than the largest declaration inside it: that is held in full, and every cell of it looked at.
    """
    possible = domain.possible(clique)
    if separator:
        return domain.cells(clique) - possible
    held = (domain.cells(z.clique) for z in domain.zeros if set(z.clique) <= set(clique))
    return max(possible, *held, 0)


def eliminate(
    domain: Domain, cliques: Collection[Clique]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """The better of the greedy orders, and each attribute's neighbours when it is eliminated (both by position)."""
    n = len(domain)
    sizes, adjacency = Sizes(domain), adjacency_of(domain, cliques)
    best: tuple[float, NDArray[np.int64], Adjacency] | None = None
    for rule in range(RULES):
        order, neighbours = np.empty(n, np.int64), np.empty((n, n), np.uint8)
        cells = sizes.eliminated(adjacency.copy(), rule, order, neighbours)
        if best is None or cells < best[0]:
            best = (cells, order, neighbours)
    assert best is not None
    _, order, neighbours = best
    return tuple(order.tolist()), tuple(tuple(np.flatnonzero(row).tolist()) for row in neighbours)


def cells_with(domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]) -> FloatArray:
    """Cells of the junction tree of ``cliques`` with each candidate added in turn.

    O(candidates · p³) at worst, p the attributes of the parts that a candidate touches; O(candidates) for a forest's.
    """
    if domain.zeros:
        return _cells_with_zeros(domain, cliques, candidates)
    cells = np.empty(len(candidates))
    members = np.array([domain.index(a) for c in candidates for a in c], dtype=np.int64)
    starts = np.cumsum([0, *(len(c) for c in candidates)], dtype=np.int64)
    _cells_with(adjacency_of(domain, cliques), log_sizes(domain), members, starts, cells)
    return np.round(cells)


def _cells_with_zeros(
    domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
) -> FloatArray:
    n = len(domain)
    sizes, before = Sizes(domain), adjacency_of(domain, cliques)
    order, neighbours = np.empty(n, np.int64), np.empty((n, n), np.uint8)
    found = []
    for candidate in candidates:
        index = [domain.index(a) for a in candidate]
        joined = before.copy()
        joined[np.ix_(index, index)] = 1
        np.fill_diagonal(joined, 0)
        found.append(
            min(sizes.eliminated(joined.copy(), rule, order, neighbours) for rule in range(RULES))
        )
    return np.asarray(np.round(found), dtype=np.float64)
