"""The order in which a junction tree's attributes are drawn: all of them, or those on the way to some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from margrave.models.graphical.junction_tree import JunctionTree
from margrave.types import Attribute, Clique


@dataclass(frozen=True)
class Step:
    """An attribute to draw given ``parents`` drawn before it, by the marginal of ``node``, which holds them all."""

    attribute: Attribute
    parents: Clique
    node: int


def all_steps(tree: JunctionTree) -> list[Step]:
    """Return the steps that draw every attribute."""
    found = []
    for attribute, parents in zip(tree.order, tree.parents, strict=True):
        node = tree.node_of((*parents, attribute))
        assert node is not None  # a family lies in a node
        found.append(Step(attribute, parents, node))
    return found


def steps_to(tree: JunctionTree, columns: Iterable[Attribute]) -> list[Step]:
    """Return steps that draw some attributes, and others only where nodes on the way share them.

    They have the same distribution as after ``all_steps``: given a separator, the two sides of the
    tree are independent, so the marginals of the nodes on the way, without their other attributes, make up the joint
    one.

    >>> from margrave.domain import Domain
    >>> domain = Domain.of(dict.fromkeys("abcde", 2))
    >>> tree = JunctionTree.of(domain, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")])
    >>> [s.attribute for s in steps_to(tree, "b")], sorted(s.attribute for s in steps_to(tree, "ac"))
    (['b'], ['a', 'b', 'c'])
    """
    aim = set(columns)
    links = _subtree(tree, aim)
    needed = aim.union(
        *(set(tree.cliques[i]) & set(tree.cliques[j]) for i, near in links.items() for j in near)
    )
    drawn: set[Attribute] = set()
    steps = list[Step]()
    for node in _outward(links):
        own = [a for a in tree.cliques[node] if a in needed]
        parents = tuple(a for a in own if a in drawn)
        for attribute in (a for a in own if a not in drawn):
            steps.append(Step(attribute, parents, node))
            parents = (*parents, attribute)
        drawn.update(own)
    return steps


def _subtree(tree: JunctionTree, aim: set[Attribute]) -> dict[int, set[int]]:
    """Return the smallest part of the tree that holds some attributes: each of its nodes with its neighbors."""
    links: dict[int, set[int]] = {i: set() for i in range(len(tree.cliques))}
    for i, p in enumerate(tree.parent):
        if p >= 0:
            links[i].add(p)
            links[p].add(i)
    leaves = [i for i, near in links.items() if len(near) == 1]
    while leaves:
        leaf = leaves.pop()
        if len(links[leaf]) != 1:
            continue  # the last node
        (near,) = links[leaf]
        if aim.intersection(tree.cliques[leaf]) <= set(tree.cliques[near]):
            del links[leaf]
            links[near].discard(leaf)
            if len(links[near]) == 1:
                leaves.append(near)
    return links


def _outward(links: dict[int, set[int]]) -> Iterator[int]:
    waiting, seen = [min(links)], {min(links)}
    while waiting:
        node = waiting.pop()
        yield node
        waiting += sorted(links[node] - seen, reverse=True)
        seen |= links[node]
