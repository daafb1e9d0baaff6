"""A junction tree laid out for differentiation: per node a matrix of its queries, and how it meets its neighbors."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from margrave.models.graphical.junction_tree import JunctionTree
from margrave.models.max_entropy.canonical import Canonical
from margrave.structural_zeros import joined
from margrave.types import Attribute, Clique, FloatArray, IntArray

#: The codes that a query selects.
Cell = Mapping[Attribute, int]

#: Layouts in the cache.
REMEMBERED = 8
_LAYOUTS: dict[Hashable, TreeLayout] = {}

Code = tuple[Attribute, int]

#: Log potential of an impossible cell: its exponential is 0, and derivatives stay finite.
IMPOSSIBLE = -1e4


@dataclass(frozen=True, eq=False)
class Level:
    """Those of a node's queries that have equally many attributes outside the separator, ``own`` among the node's.

    A query (S, v) is split into R, outside the separator, and Q, inside. ``sums`` adds up the parameters of queries
    with the same codes of R and some of those of Q, ``apart`` undoes that. ``others`` (queries, codes y, all of the
    node's) marks the queries that tie R at v to further attributes outside at y, with ``codes`` the attributes and
    codes of each y (as many for each query: what is lacking has none, and is marked by ``lacks``).
    """

    own: IntArray
    sums: FloatArray
    apart: FloatArray
    others: FloatArray
    codes: tuple[tuple[tuple[tuple[Attribute, int], ...], ...], ...]
    lacks: FloatArray


@dataclass(frozen=True, eq=False)
class Odds:
    """The map from a node's own queries to its log odds, one entry or row for each query.

    The log odds of (S, v) are those of cell ``up``, S at v and the rest at reference codes, against
    cell ``down``, where R is at reference codes too. If R is one attribute, ``first`` is 1, and
    queries with the same attribute and the same codes of Q form a group. ``group`` is the group of
    a query, ``members`` (groups, queries) marks them, ``within`` the cells of the separator that
    agree with a group's Q. ``levels`` come with the largest R first.
    """

    up: IntArray
    down: IntArray
    first: FloatArray
    group: IntArray
    members: FloatArray
    within: FloatArray
    levels: tuple[Level, ...]


@dataclass(frozen=True, eq=False)
class Node:
    """One clique of the tree; its cells have the separator's attributes first, so that they are (separator, rest).

    ``queries`` is (cells, own queries); ``own`` is where those stand among all, ``whole`` where those of the whole
    subtree do: own ones first, then each child's. ``meets[i]`` is (cells, child i's separator cells): which one a cell
    lies in.
    """

    parent: int
    separator_cells: int
    base: FloatArray
    queries: FloatArray
    own: slice
    whole: slice
    children: tuple[int, ...]
    meets: tuple[FloatArray, ...]
    odds: Odds


@dataclass(frozen=True, eq=False)
class TreeLayout:
    """The nodes, root first and parents before children, and the order in which they take the queries.

    ``order[k]`` is the kept query that stands at place k: subtrees are contiguous.
    """

    nodes: tuple[Node, ...]
    order: IntArray

    @property
    def groups(self) -> tuple[slice, ...]:
        """Where each node's groups of odds stand among all, in the order of the nodes."""
        ends = np.cumsum([0, *(len(n.odds.members) for n in self.nodes)]).tolist()
        return tuple(slice(a, b) for a, b in pairwise(ends))

    @property
    def work(self) -> int:
        """Multiplications of one covariance matrix: Σ cells · (queries of the subtree)²."""
        return sum(len(n.base) * (n.whole.stop - n.whole.start) ** 2 for n in self.nodes)


def layout(canonical: Canonical) -> TreeLayout:
    """Return the tree of the cliques and the structural zeros, rooted where covariances cost least.

    One object for all canonical queries that are alike, so that what is compiled for it serves again.
    """
    domain = canonical.domain
    zeros = tuple((z.clique, z.possible.tobytes()) for z in domain.zeros)
    key = (
        domain.attributes,
        domain.sizes,
        zeros,
        canonical.cliques,
        tuple(canonical.reference[a] for a in domain),
    )
    if key not in _LAYOUTS:
        while len(_LAYOUTS) >= REMEMBERED:
            _LAYOUTS.pop(next(iter(_LAYOUTS)))
        _LAYOUTS[key] = _least_work(canonical)
    return _LAYOUTS[key]


def _least_work(canonical: Canonical) -> TreeLayout:
    domain = canonical.domain
    tree = JunctionTree.of(domain, [*canonical.cliques, *(z.clique for z in domain.zeros)])
    candidates = [_rooted(canonical, tree, root) for root in range(len(tree.cliques))]
    return min(candidates, key=lambda layout: layout.work)


def _rooted(canonical: Canonical, tree: JunctionTree, root: int) -> TreeLayout:
    links: list[list[int]] = [[] for _ in tree.cliques]
    for i, p in enumerate(tree.parent):
        if p >= 0:
            links[i].append(p)
            links[p].append(i)
    parent, visit = {root: -1}, [root]
    for i in visit:  # breadth first: a parent comes before its children
        for j in links[i]:
            if j not in parent:
                parent[j] = i
                visit.append(j)
    place = {node: k for k, node in enumerate(visit)}
    children = [[place[j] for j in links[i] if parent[j] == i] for i in visit]
    home: dict[Clique, int] = {}
    for s in canonical.subsets:
        holds = [i for i in visit if set(s) <= set(tree.cliques[i])]
        home[s] = min(
            place[i] for i in holds
        )  # nearest the root: it then has an attribute outside the separator
    parents = [place.get(parent[i], -1) for i in visit]
    return _laid_out(canonical, [tree.cliques[i] for i in visit], parents, children, home)


def _laid_out(
    canonical: Canonical,
    cliques: list[Clique],
    parents: list[int],
    children: list[list[int]],
    home: dict[Clique, int],
) -> TreeLayout:
    domain = canonical.domain
    kept = np.full(canonical.size, -1)
    kept[canonical.kept] = np.arange(len(canonical.kept))
    orders: list[Clique] = []
    own: list[tuple[FloatArray, IntArray]] = []
    odds: list[Odds] = []
    separators: list[Clique] = []
    for k, clique in enumerate(cliques):
        separator = () if parents[k] < 0 else tuple(a for a in clique if a in cliques[parents[k]])
        ordered = (*separator, *(a for a in clique if a not in separator))
        matrix, positions = canonical.indicators(ordered, [s for s, i in home.items() if i == k])
        is_kept = kept[positions] >= 0
        odds.append(
            _odds(canonical, ordered, separator, [canonical.query(j) for j in positions[is_kept]])
        )
        orders.append(ordered)
        separators.append(separator)
        own.append((matrix[:, is_kept], kept[positions[is_kept]]))
    starts, at, order = {}, 0, []
    stack = [0]
    while stack:  # depth first: a subtree's queries stand together
        k = stack.pop()
        starts[k] = at
        at += len(own[k][1])
        order.append(own[k][1])
        stack.extend(reversed(children[k]))
    ends = {k: starts[k] + len(own[k][1]) for k in range(len(cliques))}
    for k in reversed(range(len(cliques))):
        for c in children[k]:
            ends[k] = max(ends[k], ends[c])
    nodes = []
    for k, ordered in enumerate(orders):
        inside = [z for z in domain.zeros if set(z.clique) <= set(ordered)]
        base = np.where(joined(inside, ordered, domain.size).ravel(), 0.0, IMPOSSIBLE)
        meets = tuple(_meets(canonical, ordered, separators[c]) for c in children[k])
        mine = slice(starts[k], starts[k] + len(own[k][1]))
        nodes.append(
            Node(
                parents[k],
                domain.cells(separators[k]),
                base,
                own[k][0],
                mine,
                slice(starts[k], ends[k]),
                tuple(children[k]),
                meets,
                odds[k],
            )
        )
    return TreeLayout(tuple(nodes), np.concatenate(order))


def _odds(canonical: Canonical, ordered: Clique, separator: Clique, queries: list[Cell]) -> Odds:
    domain = canonical.domain
    shape, outer = domain.shape(ordered), domain.shape(separator)
    up, down = [], []
    for query in queries:
        at = {**canonical.reference, **query}
        back = {**canonical.reference, **{a: v for a, v in query.items() if a in separator}}
        up.append(int(np.ravel_multi_index([at[a] for a in ordered], shape)))
        down.append(int(np.ravel_multi_index([back[a] for a in ordered], shape)))
    inside = [frozenset((a, v) for a, v in q.items() if a in separator) for q in queries]
    outside = [frozenset((a, v) for a, v in q.items() if a not in separator) for q in queries]
    rank = {a: (domain.size(a), i) for i, a in enumerate(ordered)}
    levels = [
        _level(inside, outside, size, rank)
        for size in sorted({len(r) for r in outside}, reverse=True)
    ]
    kinds = [
        (next(iter(r))[0], q) if len(r) == 1 else None for r, q in zip(outside, inside, strict=True)
    ]
    groups = list(dict.fromkeys(kind for kind in kinds if kind is not None))
    within = np.zeros((len(groups), *outer))
    for g, (_, place) in enumerate(groups):
        at = dict(place)
        within[(g, *(at.get(a, slice(None)) for a in separator))] = 1.0
    return Odds(
        up=np.array(up, dtype=np.int64),
        down=np.array(down, dtype=np.int64),
        first=np.array([float(kind is not None) for kind in kinds]),
        group=np.array(
            [0 if kind is None else groups.index(kind) for kind in kinds], dtype=np.int64
        ),
        members=np.array([[float(kind == g) for kind in kinds] for g in groups]).reshape(
            len(groups), len(kinds)
        ),
        within=within.reshape(len(groups), domain.cells(separator)),
        levels=tuple(levels),
    )


def _level(
    inside: list[frozenset[Code]],
    outside: list[frozenset[Code]],
    size: int,
    rank: Mapping[Attribute, tuple[int, int]],
) -> Level:
    """Return the queries with ``size`` attributes outside the separator.

    Averages are over attributes with fewer codes than one of R: their shares are known well enough to be fixed. Were
    averages taken both ways, a rare code's tie to a common one would move the common one's odds.
    """
    own = [i for i, r in enumerate(outside) if len(r) == size]
    sums = np.array(
        [[float(outside[t] == outside[s] and inside[t] <= inside[s]) for t in own] for s in own]
    )
    codes, ties = [], []
    for s in own:
        highest = max(rank[a] for a, _ in outside[s])
        larger = [
            t
            for t, r in enumerate(outside)
            if r > outside[s]
            and inside[t] <= inside[s]
            and all(rank[a] < highest for a, _ in r - outside[s])
        ]
        choices = list(
            dict.fromkeys([frozenset[Code](), *(outside[t] - outside[s] for t in larger)])
        )
        codes.append(tuple(tuple(sorted(y)) for y in choices))
        tied = [{t for t in larger if outside[t] - outside[s] <= y} for y in choices]
        ties.append([[float(t in marked) for t in range(len(outside))] for marked in tied])
    most = max(len(c) for c in codes)
    others, lacks = np.zeros((len(own), most, len(outside))), np.full((len(own), most), IMPOSSIBLE)
    for i, marks in enumerate(ties):
        others[i, : len(marks)] = marks
        lacks[i, : len(marks)] = 0.0
    return Level(
        np.array(own, dtype=np.int64), sums, np.linalg.inv(sums), others, tuple(codes), lacks
    )


def _meets(canonical: Canonical, ordered: Clique, separator: Clique) -> FloatArray:
    shape = canonical.domain.shape(ordered)
    codes = np.indices(shape).reshape(len(ordered), -1)
    at = np.zeros(codes.shape[1], dtype=np.int64)
    for a in separator:
        at = at * canonical.domain.size(a) + codes[ordered.index(a)]
    return np.eye(canonical.domain.cells(separator))[at]
