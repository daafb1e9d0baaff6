"""Marginals of a graphical model that lie in no node: which tables to build, and in what order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Protocol

import numpy as np

from margrave.domain import Domain
from margrave.marginal.lattice import marginals_of
from margrave.models.graphical.junction_tree import JunctionTree
from margrave.types import Clique, FloatArray


class NodeTables(Protocol):
    """A calibrated junction tree."""

    @property
    def domain(self) -> Domain: ...

    @property
    def tree(self) -> JunctionTree: ...

    def node_marginals(self, node: int, cliques: Sequence[Clique]) -> list[FloatArray]:
        """Return marginals that lie in one node."""


class VariableElimination:
    """Which tables to build to answer cliques that may lie in no node, sharing what they share.

    With v the last attribute of U in sampling order, P(U) is the sum over v's parents outside U of
    P((U without v) with v's parents) · P(v | parents). The same recursion answers the larger table, until a node holds
    it. Sets of attributes are bit masks here, by position in the domain: hundreds of cliques are planned in a round.
    """

    def __init__(self, model: NodeTables, cliques: Sequence[Clique], limit: int) -> None:
        domain, tree = model.domain, model.tree
        self.model, self.domain, self.limit = model, domain, limit
        self.nodes = [self._mask(c) for c in tree.cliques]
        self.nodes_of: list[list[int]] = [[] for _ in domain]
        for node, mask in enumerate(self.nodes):
            for i in _members(mask):
                self.nodes_of[i].append(node)
        self.rank = {domain.index(a): i for i, a in enumerate(tree.order)}
        self.parents = {
            domain.index(a): self._mask(p) for a, p in zip(tree.order, tree.parents, strict=True)
        }
        self.known_cells: dict[int, int] = {0: 1}
        self.steps: dict[int, tuple[int, int] | None] = {}
        self.cells = 0
        self.fits = all(self._add(self._mask(c)) for c in sorted(cliques, key=len, reverse=True))

    def add(self, clique: Clique) -> bool:
        """Plan one more marginal; False, with nothing changed, when that is too much."""
        steps, cells = len(self.steps), self.cells
        if self._add(self._mask(clique)):
            return True
        for mask in list(self.steps)[steps:]:
            del self.steps[mask]
        self.cells = cells
        return False

    def _mask(self, clique: Clique) -> int:
        return sum(1 << self.domain.index(a) for a in clique)

    def _cells(self, mask: int) -> int:
        found = self.known_cells.get(mask)
        if found is None:
            low = mask & -mask
            found = self.known_cells[mask] = (
                self._cells(mask ^ low) * self.domain.sizes[low.bit_length() - 1]
            )
        return found

    def _add(self, mask: int) -> bool:
        """Plan one table and what it needs, a source before what is made from it; False when that is too much."""
        if mask in self.steps:
            return True
        if self._homes(mask):
            self.cells += self._cells(mask)
            self.steps[mask] = None
            return self.cells <= self.limit
        last = max(_members(mask), key=self.rank.__getitem__)
        source = mask & ~(1 << last) | self.parents[last]
        self.cells += self._cells(
            source | 1 << last
        )  # the cost of the product, not only of the result
        if self.cells > self.limit or not self._add(source):
            return False
        self.steps[mask] = (source, last)
        return True

    def _homes(self, mask: int) -> list[int]:
        """Return the nodes that hold all attributes of a mask."""
        near = min(
            (self.nodes_of[i] for i in _members(mask)), key=len, default=range(len(self.nodes))
        )
        return [node for node in near if mask & self.nodes[node] == mask]

    def run(self, cliques: Sequence[Clique]) -> dict[Clique, FloatArray]:
        """Return all tables of the plan, then those asked for."""
        conditionals = {step[1] for step in self.steps.values() if step is not None}
        families = {v: self.parents[v] | 1 << v for v in conditionals}
        ready = self._inside(
            [m for m, step in self.steps.items() if step is None] + list(families.values())
        )
        given = {v: self._given(v, ready[f]) for v, f in families.items()}
        for mask, step in self.steps.items():
            if step is not None:
                ready[mask] = self._extend(mask, *step, ready[step[0]], given[step[1]])
        return {c: ready[self._mask(c)] for c in cliques}

    def _inside(self, masks: Sequence[int]) -> dict[int, FloatArray]:
        names = self.domain.attributes
        by_node: dict[int, list[int]] = {}
        for mask in dict.fromkeys(masks):
            node = min(
                self._homes(mask),
                key=lambda i: self._cells(self.nodes[i]),
            )
            by_node.setdefault(node, []).append(mask)
        ready: dict[int, FloatArray] = {}
        for node, inside in by_node.items():
            inside.sort(key=lambda m: -m.bit_count())
            largest = [m for i, m in enumerate(inside) if not any(m & o == m for o in inside[:i])]
            cliques = {m: tuple(names[i] for i in _members(m)) for m in inside}
            ready.update(
                zip(
                    largest,
                    self.model.node_marginals(node, [cliques[m] for m in largest]),
                    strict=True,
                )
            )
            tables = {cliques[m]: ready[m] for m in largest}
            smaller = {cliques[m]: m for m in inside if m not in ready}
            summed = marginals_of(tables, smaller)
            ready.update({smaller[c]: values for c, values in summed.items()})
        return ready

    def _given(self, v: int, family: FloatArray) -> FloatArray:
        table = np.moveaxis(family, _members(self.parents[v] | 1 << v).index(v), -1)
        sums = table.sum(axis=-1, keepdims=True)
        given: FloatArray = np.divide(table, sums, out=np.zeros(table.shape), where=sums > 0)
        return given

    def _extend(
        self, mask: int, source: int, last: int, table: FloatArray, keys: FloatArray
    ) -> FloatArray:
        parents = self.parents[last]
        kept, summed, others = parents & mask, parents & ~mask, source & ~parents
        axes, parent_axes = _members(source), _members(parents)
        left_order = _members(kept) + _members(others) + _members(summed)
        right_order = _members(kept) + _members(summed)
        left = table.transpose([axes.index(i) for i in left_order])
        right = keys.transpose([*(parent_axes.index(i) for i in right_order), len(parent_axes)])
        batch, rows, inner = self._cells(kept), self._cells(others), self._cells(summed)
        size = self.domain.sizes[last]
        product = left.reshape(batch, rows, inner) @ right.reshape(batch, inner, size)
        order = [*_members(kept), *_members(others), last]
        shaped = product.reshape([self.domain.sizes[i] for i in order])
        return np.ascontiguousarray(shaped.transpose([order.index(i) for i in _members(mask)]))


@cache
def _members(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]
