"""Elimination orders: the variable to sum out next, and the size of the junction tree.

Optimal triangulation is NP-hard. The greedy rules are the usual ones (Koller and Friedman 2009,
Section 9.4.3.2): eliminate the variable with the smallest clique, or with the least weighted fill.
The smaller tree is used. All of it depends on the cliques and sizes only, which are public.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from margrave.domain import Domain
from margrave.types import Clique, FloatArray

#: Sets of attributes: attribute v is bit v % 64 of word v // 64. Row v of a graph holds the
#: neighbors of v.
Masks = NDArray[np.uint64]

RULES = 2

NONE, ONE = np.uint64(0), np.uint64(1)

#: A de Bruijn sequence: all windows of six bits differ, so its product with a power of two
#: identifies the exponent.
_SEQUENCE = np.uint64(0x03F79D71B4CB0A89)

_PLACES = np.argsort([((int(_SEQUENCE) << i) % 2**64) >> 58 for i in range(64)])


@njit(cache=True, nogil=True)
def _first(word):  # type: ignore[no-untyped-def]
    return _PLACES[((word & (~word + ONE)) * _SEQUENCE) >> np.uint64(58)]


@njit(cache=True, nogil=True)
def _bit(v):  # type: ignore[no-untyped-def]
    return ONE << np.uint64(v & 63)


@njit(cache=True, nogil=True)
def _cost(v, joined, log_sizes, rule):  # type: ignore[no-untyped-def]
    words = joined.shape[1]
    weight, fill = log_sizes[v], 0.0
    for k in range(words):
        rest = joined[v, k]
        while rest != NONE:
            i = 64 * k + _first(rest)
            rest &= rest - ONE
            weight += log_sizes[i]
            if rule == 1:
                for m in range(k, words):
                    apart = (rest if m == k else joined[v, m]) & ~joined[i, m]
                    while apart != NONE:
                        fill += log_sizes[i] * log_sizes[64 * m + _first(apart)]
                        apart &= apart - ONE
    # ties, above all those without fill, go to the smaller clique
    return fill + 1e-3 * weight if rule == 1 else weight


@njit(cache=True, nogil=True)
def _eliminate(joined, log_sizes, rule, left, cost, stale, order):  # type: ignore[no-untyped-def]
    """Eliminate the attributes ``left`` greedily; fill ``order``, return the cells of all maximal
    cliques.

    Afterwards ``joined[v]`` holds the neighbors of v at its elimination. ``left``, ``cost`` (of all
    attributes that are not ``stale``) and ``stale`` are used up.
    """
    words = joined.shape[1]
    placed = 0
    while True:
        best = -1
        for k in range(words):
            rest = left[k]
            while rest != NONE:
                v = 64 * k + _first(rest)
                if stale[k] & rest & (~rest + ONE) != NONE:
                    cost[v] = _cost(v, joined, log_sizes, rule)
                rest &= rest - ONE
                if best < 0 or cost[v] < cost[best]:
                    best = v
        if best < 0:
            return _maximal_cells(order[:placed], joined, log_sizes)
        order[placed] = best
        placed += 1
        left[best >> 6] &= ~_bit(best)
        around = joined[best]
        for k in range(words):
            stale[k] = around[k]
        if rule == 1:  # fill of what two newly joined neighbors have in common changes too
            for k in range(words):
                rest = around[k]
                while rest != NONE:
                    u = 64 * k + _first(rest)
                    rest &= rest - ONE
                    for m in range(k, words):
                        apart = (rest if m == k else around[m]) & ~joined[u, m]
                        while apart != NONE:
                            w = 64 * m + _first(apart)
                            apart &= apart - ONE
                            for i in range(words):
                                stale[i] |= joined[u, i] & joined[w, i]
        for k in range(words):
            rest = around[k]
            while rest != NONE:
                u = 64 * k + _first(rest)
                rest &= rest - ONE
                for m in range(words):
                    joined[u, m] |= around[m]
                joined[u, u >> 6] &= ~_bit(u)
                joined[u, best >> 6] &= ~_bit(best)


@njit(cache=True, nogil=True)
def _absorbed(order, joined):  # type: ignore[no-untyped-def]
    """Return which cliques {v} ∪ joined(v) lie in an earlier one, and the next attribute each v's
    clique absorbs.

    Attributes outside ``order`` count as absorbed. A clique lies in an earlier one exactly if some
    v whose next-eliminated neighbor it belongs to has one member more (Blair and Peyton 1993). The
    first such v in the order absorbs it; −1 if v absorbs none.
    """
    n, words = joined.shape
    position = np.empty(n, np.int64)
    for i in range(len(order)):
        position[order[i]] = i
    degree = np.zeros(n, np.int64)
    parent = np.full(n, -1, np.int64)
    for v in order:
        for k in range(words):
            rest = joined[v, k]
            while rest != NONE:
                u = 64 * k + _first(rest)
                rest &= rest - ONE
                degree[v] += 1
                if parent[v] < 0 or position[u] < position[parent[v]]:
                    parent[v] = u
    absorbed = np.ones(n, np.uint8)
    absorbed[order] = 0
    following = np.full(n, -1, np.int64)
    for v in order:
        up = parent[v]
        if up >= 0 and degree[v] == degree[up] + 1 and not absorbed[up]:
            absorbed[up] = 1
            following[v] = up
    return absorbed, following


@njit(cache=True, nogil=True)
def _weight(v, joined, log_sizes):  # type: ignore[no-untyped-def]
    weight = log_sizes[v]
    for k in range(joined.shape[1]):
        rest = joined[v, k]
        while rest != NONE:
            weight += log_sizes[64 * k + _first(rest)]
            rest &= rest - ONE
    return weight


@njit(cache=True, nogil=True)
def _maximal_cells(order, joined, log_sizes):  # type: ignore[no-untyped-def]
    absorbed, _ = _absorbed(order, joined)
    total = 0.0
    for v in range(len(joined)):
        if not absorbed[v]:
            total += np.exp(_weight(v, joined, log_sizes))
    return total


@njit(cache=True, nogil=True)
def _constrained(order, joined, log_sizes, zeros, cliques, separators):  # type: ignore[no-untyped-def]
    """Return the maximal cliques, and separators, that contain a whole row of ``zeros``; the cells
    of other cliques.

    A clique absorbs eliminated variables one after the other; the neighbors of the last are its
    separator.
    """
    words = joined.shape[1]
    absorbed, following = _absorbed(order, joined)
    n_cliques, n_separators, total = 0, 0, 0.0
    for v in range(len(joined)):
        if absorbed[v]:
            continue
        last = v
        while following[last] >= 0:
            last = following[last]
        clique = joined[v].copy()
        clique[v >> 6] |= _bit(v)
        inside, shared = False, False
        for z in range(len(zeros)):
            whole, split = True, True
            for k in range(words):
                whole = whole and zeros[z, k] & ~clique[k] == NONE
                split = split and zeros[z, k] & ~joined[last, k] == NONE
            inside, shared = inside or whole, shared or split
        if not inside:
            total += np.exp(_weight(v, joined, log_sizes))
            continue
        cliques[n_cliques] = clique
        n_cliques += 1
        if shared:
            separators[n_separators] = joined[last]
            n_separators += 1
    return n_cliques, n_separators, total


@njit(cache=True, nogil=True)
def _parts(joined):  # type: ignore[no-untyped-def]
    n, words = joined.shape
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
            for k in range(words):
                rest = joined[v, k]
                while rest != NONE:
                    u = 64 * k + _first(rest)
                    rest &= rest - ONE
                    ends += 1
                    if part[u] < 0:
                        part[u] = parts
                        waiting[reached] = u
                        reached += 1
        is_tree[parts] = ends == 2 * (reached - 1)
        parts += 1
    return part, is_tree[:parts]


@njit(cache=True, nogil=True)
def _cells_with(joined, log_sizes, members, starts, cells):  # type: ignore[no-untyped-def]
    """Return the size of the junction tree with each candidate clique added in turn.

    Parts of the graph that a candidate does not touch keep their size. If all are trees, least fill
    keeps them so, and an edge between two adds one clique, which absorbs isolated ends. (Columns of
    one code cost no fill, so this need not hold for them.) Costs at the start are those without the
    candidate, except near it. Candidates that join only the same two attributes lead to the same
    graph.
    """
    n, words = joined.shape
    part, is_tree = _parts(joined)
    within = np.zeros((len(is_tree), words), np.uint64)
    for v in range(n):
        within[part[v], v >> 6] |= _bit(v)
    costs = np.empty((RULES, n))
    before = np.empty((RULES, len(is_tree)))
    work, cost, order = joined.copy(), np.empty(n), np.empty(n, np.int64)
    left, stale = np.empty(words, np.uint64), np.zeros(words, np.uint64)
    for rule in range(RULES):
        for v in range(n):
            costs[rule, v] = _cost(v, joined, log_sizes, rule)
        for p in range(len(is_tree)):
            work[:] = joined
            cost[:] = costs[rule]
            left[:] = within[p]
            stale[:] = NONE
            before[rule, p] = _eliminate(work, log_sizes, rule, left, cost, stale, order)
    forest = is_tree.all() and log_sizes.min() > 0.0
    touched, near, inside = (
        np.empty(len(is_tree), np.bool_),
        np.empty(words, np.uint64),
        np.empty(words, np.uint64),
    )
    with_edge = np.zeros((n, n))  # the size with one edge more, where it is known
    for c in range(len(starts) - 1):
        clique = members[starts[c] : starts[c + 1]]
        touched[:] = False
        near[:] = NONE
        edges, first, second = 0, 0, 0
        for i in clique:
            touched[part[i]] = True
            near[i >> 6] |= _bit(i)
        for i in clique:
            for j in clique:
                if i < j and joined[i, j >> 6] & _bit(j) == NONE:
                    edges, first, second = edges + 1, i, j
                    for k in range(words):
                        near[k] |= joined[i, k] & joined[j, k]
        if edges == 0:  # the same graph
            cells[c] = min(before[0].sum(), before[1].sum())
            continue
        if edges == 1 and with_edge[first, second] > 0.0:
            cells[c] = with_edge[first, second]
            continue
        if forest and len(clique) == 2 and touched.sum() == 2:
            cells[c] = before[1].sum() + np.exp(log_sizes[clique[0]] + log_sizes[clique[1]])
            for v in clique:
                if not joined[v].any():
                    cells[c] -= np.exp(log_sizes[v])
            continue
        inside[:] = NONE
        for p in range(len(is_tree)):
            if touched[p]:
                inside |= within[p]
        cells[c] = np.inf
        for rule in range(RULES):
            work[:] = joined
            for i in clique:
                for j in clique:
                    if i != j:
                        work[i, j >> 6] |= _bit(j)
            cost[:] = costs[rule]
            left[:] = inside
            stale[:] = near
            size = _eliminate(work, log_sizes, rule, left, cost, stale, order)
            for p in range(len(is_tree)):
                if not touched[p]:
                    size += before[rule, p]
            cells[c] = min(cells[c], size)
        if edges == 1:
            with_edge[first, second] = cells[c]


def graph_of(domain: Domain, cliques: Collection[Clique]) -> Masks:
    """Return the graph that joins the attributes of each clique, measured or constrained."""
    n = len(domain)
    joined = [0] * n
    for clique in (*cliques, *(z.clique for z in domain.zeros)):
        index = [domain.index(a) for a in clique]
        for i in index:
            joined[i] |= sum(1 << j for j in index) & ~(1 << i)
    return _words(joined, n)


def mask_of(members: Iterable[int], n: int) -> Masks:
    return _words([sum(1 << v for v in members)], n).ravel()


def _words(rows: Sequence[int], n: int) -> Masks:
    size = 8 * -(-n // 64)
    data = b"".join(row.to_bytes(size, "little") for row in rows)
    return np.array(np.frombuffer(data, "<u8"), np.uint64).reshape(len(rows), size // 8)


def members_of(mask: Masks) -> list[int]:
    bits = np.unpackbits(mask.astype("<u8").view(np.uint8), bitorder="little")
    found: list[int] = np.flatnonzero(bits).tolist()
    return found


def log_sizes(domain: Domain) -> FloatArray:
    return np.log(np.array(domain.sizes, dtype=np.float64))


class Sizes:
    """The size of a junction tree in possible cells, from an elimination order; walks skip
    impossible ones.

    Separators are held in full, so their impossible cells count. Sizes of cliques are cached.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain, self.log_sizes = domain, log_sizes(domain)
        n = len(domain)
        self.every = mask_of(range(n), n)
        self.zeros = np.zeros((len(domain.zeros), len(self.every)), np.uint64)
        for i, z in enumerate(domain.zeros):
            self.zeros[i] = mask_of([domain.index(a) for a in z.clique], n)
        self._cliques, self._separators = np.empty((2, n, len(self.every)), np.uint64)
        self._known: dict[tuple[bool, bytes], float] = {}

    def eliminated(self, joined: Masks, rule: int, order: NDArray[np.int64]) -> float:
        """Eliminate by a rule: fill ``order``, and ``joined`` with the neighbors of each at its
        elimination.
        """
        left, stale, cost = self.every.copy(), self.every.copy(), np.empty(len(order))
        cells = float(_eliminate(joined, self.log_sizes, rule, left, cost, stale, order))
        if not len(self.zeros):
            return cells
        n_cliques, n_separators, total = _constrained(
            order, joined, self.log_sizes, self.zeros, self._cliques, self._separators
        )
        total += sum(self._cells(row, separator=False) for row in self._cliques[:n_cliques])
        return float(
            total + sum(self._cells(row, separator=True) for row in self._separators[:n_separators])
        )

    def _cells(self, row: Masks, *, separator: bool) -> float:
        key = (separator, row.tobytes())
        if key not in self._known:
            clique = tuple(self.domain.attributes[i] for i in members_of(row))
            self._known[key] = float(counted_cells(self.domain, clique, separator=separator))
        return self._known[key]


def counted_cells(domain: Domain, clique: Clique, *, separator: bool) -> int:
    """Return the size of a node of a junction tree: its possible cells; for a separator its
    impossible ones.

    A node counts at least the largest declaration inside it, which is held in full.
    """
    possible = domain.possible(clique)
    if separator:
        return domain.cells(clique) - possible
    held = (domain.cells(z.clique) for z in domain.zeros if set(z.clique) <= set(clique))
    return max(possible, *held, 0)


def eliminate(
    domain: Domain, cliques: Collection[Clique]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Return the better of the greedy orders, and each attribute's neighbors at its elimination."""
    sizes, graph = Sizes(domain), graph_of(domain, cliques)
    best: tuple[float, NDArray[np.int64], Masks] | None = None
    for rule in range(RULES):
        order, joined = np.empty(len(domain), np.int64), graph.copy()
        cells = sizes.eliminated(joined, rule, order)
        if best is None or cells < best[0]:
            best = (cells, order, joined)
    assert best is not None
    _, order, joined = best
    return tuple(order.tolist()), tuple(tuple(members_of(row)) for row in joined)


def sizes_with(
    domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
) -> FloatArray:
    """Return the cells of the junction tree of ``cliques`` with each candidate added in turn.

    O(candidates · p³) at worst, p the attributes of the parts that a candidate touches;
    O(candidates) for a forest's.
    """
    if domain.zeros:
        return _cells_with_zeros(domain, cliques, candidates)
    cells = np.empty(len(candidates))
    members = np.array([domain.index(a) for c in candidates for a in c], dtype=np.int64)
    starts = np.cumsum([0, *(len(c) for c in candidates)], dtype=np.int64)
    _cells_with(graph_of(domain, cliques), log_sizes(domain), members, starts, cells)
    return np.round(cells)


def _cells_with_zeros(
    domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
) -> FloatArray:
    sizes, before = Sizes(domain), graph_of(domain, cliques)
    order = np.empty(len(domain), np.int64)
    found = []
    for candidate in candidates:
        joined = before | graph_of(domain, [candidate])
        found.append(min(sizes.eliminated(joined.copy(), rule, order) for rule in range(RULES)))
    return np.asarray(np.round(found), dtype=np.float64)
