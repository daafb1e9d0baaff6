"""Junction trees: every clique has a node, what two nodes share all between them share, and sizes are told alike."""

from __future__ import annotations

from itertools import combinations
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrave.domain import Domain, StructuralZeros
from margrave.models import GraphicalFit
from margrave.models.graphical.elimination import RULES, Sizes, graph_of, members_of, sizes_with
from margrave.models.graphical.junction_tree import JunctionTree
from margrave.types import Clique
from tests.support.strategies import (
    clique_lists,
    domain_of,
    generators,
    graphs,
    seeded,
    some_cliques,
)

Graph = tuple[Domain, list[Clique]]


def path_to_root(tree: JunctionTree, node: int) -> list[int]:
    path = [node]
    while tree.parent[path[-1]] >= 0:
        path.append(tree.parent[path[-1]])
    return path


@seeded(150)
@given(graph=graphs())
def test_the_tree_is_a_junction_tree(graph: Graph) -> None:
    domain, cliques = graph
    tree = JunctionTree.of(domain, cliques)
    nodes = [set(c) for c in tree.cliques]
    assert set().union(*nodes) == set(domain)
    assert all(c == domain.clique(c) for c in (*tree.cliques, *tree.separators))
    for clique in cliques:
        home = tree.node_of(clique)
        assert home is not None
        assert set(clique) <= nodes[home]
    # no node inside another; parents first; separators are what is shared
    assert not any(a <= b for i, a in enumerate(nodes) for j, b in enumerate(nodes) if i != j)
    assert tree.parent[0] == -1
    for i in range(1, len(nodes)):
        assert 0 <= tree.parent[i] < i
        assert set(tree.separators[i]) == nodes[i] & nodes[tree.parent[i]]
    assert tree.separators[0] == ()


@seeded(150)
@given(graph=graphs())
def test_what_two_nodes_share_all_between_them_share(graph: Graph) -> None:
    tree = JunctionTree.of(*graph)
    nodes = [set(c) for c in tree.cliques]
    for i, j in combinations(range(len(nodes)), 2):
        up, down = path_to_root(tree, i), path_to_root(tree, j)
        between = set(up) ^ set(down) | {next(n for n in up if n in down)}
        assert all(nodes[i] & nodes[j] <= nodes[k] for k in between)


@seeded(150)
@given(graph=graphs())
def test_the_order_is_a_sampling_order(graph: Graph) -> None:
    tree = JunctionTree.of(*graph)
    assert sorted(tree.order) == sorted(graph[0])
    seen: set[str] = set()
    for attribute, parents in zip(tree.order, tree.parents, strict=True):
        assert set(parents) <= seen
        assert parents == graph[0].clique(parents)
        assert tree.node_of((*parents, attribute)) is not None
        seen.add(attribute)
    # every two attributes of a measured clique are tied directly: one is a parent of the other
    parents_of = dict(zip(tree.order, tree.parents, strict=True))
    for clique in graph[1]:
        for a, b in combinations(clique, 2):
            assert a in parents_of[b] or b in parents_of[a]


@seeded(150)
@given(graph=graphs(), data=st.data())
def test_the_kernel_and_the_tree_tell_the_same_size(graph: Graph, data: st.DataObject) -> None:
    domain, cliques = graph
    candidates = data.draw(clique_lists(domain, most=5))
    sizes = sizes_with(domain, cliques, candidates)
    assert sizes.shape == (len(candidates),)
    fit = GraphicalFit()
    assert np.array_equal(fit.sizes_with(domain, cliques, candidates), sizes)
    for clique, size in zip(candidates, sizes, strict=True):
        tree = JunctionTree.of(domain, [*cliques, clique])
        assert tree.cells() == sum(domain.cells(c) for c in tree.cliques)
        assert size == pytest.approx(tree.cells(), rel=1e-9)
        assert fit.cells(domain, [*cliques, clique]) == tree.cells()


def greedy_by_hand(domain: Domain, cliques: list[Clique], rule: int) -> list[set[str]]:
    """The rules as the docstring tells them, without any bookkeeping of what is stale."""
    ties = {a: set().union(*(set(c) for c in cliques if a in c)) - {a} for a in domain}
    found = []
    left = list(domain)
    while left:

        def cost(v: str) -> float:
            weight = log(domain.cells((v, *ties[v])))
            fill = sum(
                np.log(domain.size(a)) * np.log(domain.size(b))
                for a, b in combinations(sorted(ties[v]), 2)
                if b not in ties[a]
            )
            return weight if rule == 0 else float(fill + 1e-3 * weight)

        best = min(left, key=lambda v: (round(cost(v), 9), left.index(v)))
        found.append({best, *ties[best]})
        for a in ties[best]:
            ties[a] = (ties[a] | ties[best]) - {a, best}
        left.remove(best)
    return [c for c in found if not any(c < d for d in found)]


@pytest.mark.parametrize("rule", range(RULES))
@seeded(150)
@given(rng=generators())
def test_the_kernel_is_the_greedy_rule(rule: int, rng: np.random.Generator) -> None:
    """Sizes are distinct primes: two costs are equal only where it makes no difference which is taken first."""
    domain = domain_of(
        rng.permutation([2, 3, 5, 7, 11, 13, 17, 19, 23])[: rng.integers(1, 10)].tolist()
    )
    _check_greedy(domain, some_cliques(domain, rng, 12, 4), rule)


@pytest.mark.parametrize("rule", range(RULES))
@pytest.mark.parametrize("columns", [64, 65, 130])
def test_the_kernel_is_the_greedy_rule_beyond_a_word(rule: int, columns: int) -> None:
    rng = np.random.default_rng(columns)
    primes = [p for p in range(2, 800) if all(p % q for q in range(2, p))][:columns]
    domain = domain_of(rng.permutation(primes).tolist())
    for most in (30, 90):
        _check_greedy(domain, some_cliques(domain, rng, most, 3), rule)


def _check_greedy(domain: Domain, cliques: list[Clique], rule: int) -> None:
    order, joined = np.empty(len(domain), np.int64), graph_of(domain, cliques)
    cells = Sizes(domain).eliminated(joined, rule, order)
    own = [{domain.attributes[u] for u in (v, *members_of(joined[v]))} for v in order]
    kept = [c for c in own if not any(c < d for d in own)]
    assert cells == pytest.approx(sum(domain.cells(c) for c in kept), rel=1e-9)
    assert sorted(map(sorted, kept)) == sorted(map(sorted, greedy_by_hand(domain, cliques, rule)))


def test_a_chain_and_a_cycle_have_the_sizes_one_can_work_out() -> None:
    domain = domain_of([2, 3, 5, 7])
    chain = [("c0", "c1"), ("c1", "c2"), ("c2", "c3")]
    assert JunctionTree.of(domain, chain).cells() == 6 + 15 + 35
    # closing the cycle needs one chord: c0-c2 makes triangles of 30 and 70 cells, c1-c3 of 42 and 105
    assert JunctionTree.of(domain, [*chain, ("c0", "c3")]).cells() == 30 + 70
    assert sizes_with(domain, chain, [("c0", "c3"), ("c0",), ("c0", "c1")]).tolist() == [
        100.0,
        56.0,
        56.0,
    ]


def test_disconnected_columns_get_empty_separators() -> None:
    domain = domain_of([2, 3, 4])
    tree = JunctionTree.of(domain, [("c0", "c1")])
    assert sorted(tree.cliques) == [("c0", "c1"), ("c2",)]
    assert tree.separators == ((), ())
    assert JunctionTree.of(domain, []).cells() == 2 + 3 + 4
    assert tree.node_of(("c0", "c2")) is None


def test_structural_zeros_join_their_columns() -> None:
    plain = domain_of([2, 3, 4])
    zeros = StructuralZeros(("c0", "c2"), np.array([[True] * 4, [False] * 4]))
    domain = Domain(plain.attributes, plain.sizes, (zeros,))
    assert JunctionTree.of(domain, []).node_of(("c0", "c2")) is not None
    assert GraphicalFit().cells(domain, []) == 8 + 3
    assert GraphicalFit().sizes_with(domain, [], [("c1",)]).tolist() == [11.0]


def test_the_smallest_node_answers() -> None:
    domain = domain_of([2, 30, 3, 4])
    tree = JunctionTree.of(domain, [("c0", "c1"), ("c0", "c2", "c3")])
    home = tree.node_of(("c0",))
    assert home is not None
    assert tree.cliques[home] == ("c0", "c2", "c3")


@pytest.mark.parametrize("least", [1, 2])
def test_sizes_by_connected_parts_are_those_of_the_whole_graph(least: int) -> None:
    """Random graphs of several parts, trees among them, with columns of one code or without."""
    rng = np.random.default_rng(least)
    for _ in range(60):
        d = int(rng.integers(2, 11))
        domain = Domain.of({f"c{i:02}": int(rng.integers(least, 9)) for i in range(d)})
        some = [int(rng.integers(1, min(4, d + 1))) for _ in range(int(rng.integers(0, d + 1)))]
        cliques = [
            domain.clique(rng.choice(domain.attributes, k, replace=False).tolist()) for k in some
        ]
        candidates = [c for k in (1, 2, 3) for c in combinations(domain.attributes, k)]
        expected = []
        for candidate in candidates:
            graph, order = graph_of(domain, [*cliques, candidate]), np.empty(d, np.int64)
            sizes = [Sizes(domain).eliminated(graph.copy(), r, order) for r in range(RULES)]
            expected.append(round(min(sizes)))
        assert sizes_with(domain, cliques, candidates).tolist() == expected
