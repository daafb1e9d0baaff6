"""Elimination orders: the variable to sum out next, and the size of the junction tree.

Optimal triangulation is NP-hard. The greedy rules are the usual ones (Koller and Friedman 2009,
Section 9.4.3.2): eliminate the variable with the smallest clique, or with the least weighted fill.
The smaller tree is used. All of it depends on the cliques and sizes only, which are public.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from margrave._kernel import kernel, run_or_compile
from margrave.domain import Domain
from margrave.types import Clique, FloatArray, IntArray

#: Sets of attributes: attribute v is bit v % 64 of word v // 64. Row v of a graph holds the
#: neighbors of v.
Masks = NDArray[np.uint64]

RULES = 2

NONE, ONE = np.uint64(0), np.uint64(1)

#: A de Bruijn sequence: all windows of six bits differ, so its product with a power of two
#: identifies the exponent.
_SEQUENCE = np.uint64(0x03F79D71B4CB0A89)

_PLACES = np.argsort([((int(_SEQUENCE) << i) % 2**64) >> 58 for i in range(64)])


@kernel(forceinline=True)
def _bit(v):  # type: ignore[no-untyped-def]
    return ONE << np.uint64(v & 63)


@kernel(forceinline=True)
def _has(masks, row, v):  # type: ignore[no-untyped-def]
    return (masks[row, v >> 6] >> np.uint64(v & 63)) & ONE != NONE


@kernel(forceinline=True)
def _members(masks, row, out):  # type: ignore[no-untyped-def]
    """Write the members of a set to ``out``, ascending, and return their number."""
    count = 0
    for k in range(masks.shape[1]):
        rest = masks[row, k]
        while rest != NONE:
            lowest = rest & (~rest + ONE)
            out[count] = 64 * k + _PLACES[(lowest * _SEQUENCE) >> np.uint64(58)]
            rest ^= lowest
            count += 1
    return count


@kernel(forceinline=True)
def _cost(v, joined, log_sizes, rule, near):  # type: ignore[no-untyped-def]
    weight, fill = log_sizes[v], 0.0
    degree = _members(joined, v, near)
    for a in range(degree):
        i = near[a]
        weight += log_sizes[i]
        if rule == 1:
            for b in range(a + 1, degree):
                if not _has(joined, i, near[b]):
                    fill += log_sizes[i] * log_sizes[near[b]]
    # ties, above all those without fill, go to the smaller clique
    return fill + 1e-3 * weight if rule == 1 else weight


@kernel(forceinline=True)
def _exponential(x):  # type: ignore[no-untyped-def]
    return math.exp(min(x, 709.0))  # beyond, it is an error in the interpreter


@kernel
def _eliminate(joined, log_sizes, rule, left, cost, order, cells, following, room):  # type: ignore[no-untyped-def]
    """Eliminate the attributes of ``left`` greedily; return the cells of all maximal cliques.

    Afterwards ``joined[v]`` holds the neighbors of v at its elimination, ``cells[v]`` the size of the
    clique {v} ∪ joined[v], and ``following[v]`` the attribute whose clique that of v absorbs, −1 if
    none. An absorbed clique has 0 cells, as has an attribute outside ``left``. A clique lies in an
    earlier one exactly if some v whose next-eliminated neighbor it belongs to has one member more
    (Blair and Peyton 1993). The first such v in the order absorbs it.

    Row 0 of ``left`` holds the attributes, row 1 those whose ``cost`` is not known. Row 1 is used up,
    as are the rows of ``room``.
    """
    words = joined.shape[1]
    members, near, degrees, waiting, changed = room[0], room[1], room[2], room[3], room[4]
    for v in range(len(joined)):
        cells[v] = 0.0
    alive, stale = np.int64(0), np.int64(1)
    placed, waits = 0, 0
    remaining = _members(left, alive, members)
    while remaining > 0:
        for a in range(_members(left, stale, changed)):
            v = changed[a]
            cost[v] = _cost(v, joined, log_sizes, rule, near)
        place, least = 0, cost[members[0]]
        for a in range(1, remaining):
            if cost[members[a]] < least:
                place, least = a, cost[members[a]]
        best = members[place]
        remaining -= 1
        for a in range(place, remaining):
            members[a] = members[a + 1]
        degree = _members(joined, best, near)
        weight = log_sizes[best]
        for a in range(degree):
            weight += log_sizes[near[a]]
        absorbed, kept = False, 0
        for q in range(waits):
            v = waiting[q]
            if not _has(joined, v, best):
                waiting[kept] = v
                kept += 1
            elif (
                degrees[v] == degree + 1 and not absorbed
            ):  # best is the first of its neighbors to go
                absorbed = True
                following[v] = best
        waiting[kept], waits = best, kept + 1
        if not absorbed:
            cells[best] = _exponential(weight)
        order[placed] = best
        placed += 1
        following[best], degrees[best] = -1, degree
        for k in range(words):
            left[stale, k] = joined[best, k]
        for a in range(degree):
            u = near[a]
            if rule == 1:  # fill of what two newly joined neighbors have in common changes too
                for b in range(a + 1, degree):
                    w = near[b]
                    if not _has(joined, u, w):
                        for k in range(words):
                            left[stale, k] |= joined[u, k] & joined[w, k]
        for a in range(degree):
            u = near[a]
            for k in range(words):
                joined[u, k] |= joined[best, k]
            joined[u, u >> 6] &= ~_bit(u)
            joined[u, best >> 6] &= ~_bit(best)
    total = 0.0
    for v in range(len(joined)):
        total += cells[v]
    return total


@kernel
def _constrained(joined, log_sizes, zeros, cells, following, cliques, separators):  # type: ignore[no-untyped-def]
    """Return the maximal cliques, and separators, that contain a whole row of ``zeros``; the cells
    of other cliques.

    A clique absorbs eliminated variables one after the other; the neighbors of the last are its
    separator.
    """
    words = joined.shape[1]
    n_cliques, n_separators, total = 0, 0, 0.0
    for v in range(len(joined)):
        if cells[v] == 0.0:
            continue
        last = v
        while following[last] >= 0:
            last = following[last]
        for k in range(words):
            cliques[n_cliques, k] = joined[v, k]
            separators[n_separators, k] = joined[last, k]
        cliques[n_cliques, v >> 6] |= _bit(v)
        inside, shared = False, False
        for z in range(len(zeros)):
            whole, split = True, True
            for k in range(words):
                whole = whole and zeros[z, k] & ~cliques[n_cliques, k] == NONE
                split = split and zeros[z, k] & ~joined[last, k] == NONE
            inside, shared = inside or whole, shared or split
        if not inside:
            total += cells[v]
            continue
        n_cliques += 1
        if shared:
            n_separators += 1
    return n_cliques, n_separators, total


@kernel
def _sizes_with(  # type: ignore[no-untyped-def]
    joined, log_sizes, members, starts, part, within, costs, before, forest,
    touched, work, cost, order, cells, following, room, with_edge, sizes,
):  # fmt: skip
    """Fill ``sizes`` with the size of the junction tree with each candidate clique added in turn.

    Parts of the graph that a candidate does not touch keep their size ``before``. If all are trees,
    least fill keeps them so, and an edge between two adds one clique, which absorbs isolated ends.
    (Columns of one code cost no fill, so this need not hold for them.) Costs at the start are those
    without the candidate, except near it. Candidates that join only the same two attributes lead to
    the same graph, whose size is in ``with_edge``.
    """
    n, words = joined.shape
    graph, left = work[:n], work[n : n + 2]
    for rule in range(RULES):
        for v in range(n):
            costs[rule, v] = _cost(v, joined, log_sizes, rule, order)
        for p in range(len(within)):
            for v in range(n):
                cost[v] = costs[rule, v]
                for k in range(words):
                    work[v, k] = joined[v, k]
            for k in range(words):
                left[0, k], left[1, k] = within[p, k], NONE
            before[rule, p] = _eliminate(
                graph, log_sizes, rule, left, cost, order, cells, following, room
            )
    for c in range(len(starts) - 1):
        low, high = starts[c], starts[c + 1]
        for p in range(len(within)):
            touched[p] = 0
        for k in range(words):
            work[n + 2, k] = NONE
            work[n + 3, k] = NONE
        edges, first, second = 0, members[low], members[low]
        for a in range(low, high):
            i = members[a]
            touched[part[i]] = 1
            work[n + 3, i >> 6] |= _bit(i)
            for k in range(words):
                work[n + 2, k] |= within[part[i], k]
            for b in range(low, high):
                j = members[b]
                if i < j and not _has(joined, i, j):
                    edges, first, second = edges + 1, i, j
                    for k in range(words):
                        work[n + 3, k] |= joined[i, k] & joined[j, k]
        if edges == 1 and with_edge[first, second] > 0.0:
            sizes[c] = with_edge[first, second]
            continue
        if forest and high - low == 2 and part[first] != part[second]:
            sizes[c] = _exponential(log_sizes[first] + log_sizes[second])
            for p in range(len(within)):
                sizes[c] += before[1, p]
            for v in (first, second):
                if costs[0, v] == log_sizes[v]:  # it has no neighbors
                    sizes[c] -= _exponential(log_sizes[v])
            continue
        for rule in range(RULES):
            size = 0.0
            if edges:
                for v in range(n):
                    cost[v] = costs[rule, v]
                    for k in range(words):
                        work[v, k] = joined[v, k]
                for a in range(low, high):
                    i = members[a]
                    for b in range(low, high):
                        j = members[b]
                        if i != j:
                            work[i, j >> 6] |= _bit(j)
                for k in range(words):
                    left[0, k] = work[n + 2, k]
                    left[1, k] = work[n + 3, k]
                size = _eliminate(graph, log_sizes, rule, left, cost, order, cells, following, room)
            for p in range(len(within)):
                if edges == 0 or not touched[p]:
                    size += before[rule, p]
            if rule == 0 or size < sizes[c]:
                sizes[c] = size
        if edges == 1:
            with_edge[first, second] = sizes[c]


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
        n = len(order)
        left, (cost, cells) = np.stack([self.every, self.every]), np.empty((2, n))
        following, room = np.empty(n, np.int64), np.empty((5, n), np.int64)
        total = float(
            run_or_compile(
                _eliminate, n**3,
                joined, self.log_sizes, rule, left, cost, order, cells, following, room,
            )
        )  # fmt: skip
        if not len(self.zeros):
            return total
        n_cliques, n_separators, total = _constrained(
            joined, self.log_sizes, self.zeros, cells, following, self._cliques, self._separators
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
    graph, sizes, n = graph_of(domain, cliques), log_sizes(domain), len(domain)
    index = {a: i for i, a in enumerate(domain)}
    members = np.fromiter(map(index.__getitem__, chain.from_iterable(candidates)), np.int64)
    starts = np.zeros(len(candidates) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, candidates), np.int64, len(candidates)), out=starts[1:])
    part, trees = _parts(graph)
    within = _words(
        [sum(1 << v for v in np.flatnonzero(part == p).tolist()) for p in range(len(trees))], n
    )
    (cost, cells), (order, following) = np.empty((2, n)), np.empty((2, n), np.int64)
    costs, before = np.empty((RULES, n)), np.empty((RULES, len(trees)))
    room, work = np.empty((5, n), np.int64), np.empty((n + 4, graph.shape[1]), np.uint64)
    found = np.empty(len(candidates))
    run_or_compile(
        _sizes_with, len(candidates) * n**3,
        graph, sizes, members, starts, part, within, costs, before,
        bool(trees.all() and sizes.min() > 0.0), np.empty(len(trees), np.uint8), work,
        cost, order, cells, following, room, np.zeros((n, n)), found,
    )  # fmt: skip
    return np.round(found)


def _parts(graph: Masks) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return the number of each attribute's connected part, and which parts are trees."""
    bits = np.unpackbits(graph.astype("<u8").view(np.uint8), axis=1, bitorder="little")
    joined = bits[:, : len(graph)].astype(np.bool_)
    degrees = joined.sum(axis=1)
    np.fill_diagonal(joined, True)
    part = np.arange(len(graph))
    while (lower := np.where(joined, part, len(part)).min(axis=1)).tolist() != part.tolist():
        part = lower
    numbers, sizes = np.unique(part, return_inverse=True)[1], np.bincount(part)
    ends = np.bincount(numbers, degrees)
    return numbers.astype(np.int64), ends == 2 * (sizes[sizes > 0] - 1)


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
