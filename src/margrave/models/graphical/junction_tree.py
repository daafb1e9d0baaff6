"""Junction trees: maximal cliques of a triangulated graph, joined so that what two share, all between them share."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from margrave.domain import Domain
from margrave.models.graphical.elimination import counted_cells, eliminate
from margrave.types import Clique


@dataclass(frozen=True)
class JunctionTree:
    """A rooted tree of cliques: node 0 is the root, and every node's parent comes before it.

    ``separators[i]`` is what node i shares with its parent (empty where the graph is disconnected, and for the root).
    ``order`` is a sampling order of the attributes, each with its ``parents``: given them, it is independent of all
    attributes before it.
    """

    domain: Domain
    cliques: tuple[Clique, ...]
    parent: tuple[int, ...]
    separators: tuple[Clique, ...]
    order: tuple[str, ...]
    parents: tuple[Clique, ...]

    @staticmethod
    def of(domain: Domain, cliques: Collection[Clique]) -> JunctionTree:
        """Return a junction tree with a node around each of the cliques."""
        order, neighbors = eliminate(domain, cliques)
        names = domain.attributes
        every = [frozenset((v, *neighbors[v])) for v in order]
        maximal = [c for i, c in enumerate(every) if not any(c < d for d in every[:i])]
        # the root is walked once, the others twice: the largest comes first
        maximal.sort(key=lambda c: -domain.cells(names[v] for v in c))
        nodes, parent = _spanning_tree(maximal)
        as_clique = [tuple(names[v] for v in sorted(c)) for c in nodes]
        shared = [nodes[i] & nodes[p] if p >= 0 else frozenset() for i, p in enumerate(parent)]
        return JunctionTree(
            domain,
            tuple(as_clique),
            tuple(parent),
            tuple(tuple(names[v] for v in sorted(s)) for s in shared),
            tuple(names[v] for v in reversed(order)),
            tuple(tuple(names[u] for u in neighbors[v]) for v in reversed(order)),
        )

    def cells(self) -> int:
        """Return the possible cells of all cliques together, and the impossible ones of separators.

        Walks skip combinations that structural zeros rule out; separators are arrays of all their combinations.
        """
        nodes = sum(counted_cells(self.domain, c, separator=False) for c in self.cliques)
        return nodes + sum(counted_cells(self.domain, s, separator=True) for s in self.separators)

    def table_cells(self) -> int:
        """Return the cells of all cliques together, were their tables held in full."""
        return sum(self.domain.cells(c) for c in self.cliques)

    def node_of(self, clique: Clique) -> int | None:
        """Return the smallest node that contains a clique, if there is one."""
        wanted = set(clique)
        found = [i for i, c in enumerate(self.cliques) if wanted <= set(c)]
        return min(found, key=lambda i: self.domain.cells(self.cliques[i]), default=None)


def _spanning_tree(cliques: list[frozenset[int]]) -> tuple[list[frozenset[int]], list[int]]:
    nodes, parent = [cliques[0]], [-1]
    waiting = {i: (len(cliques[i] & cliques[0]), 0) for i in range(1, len(cliques))}
    while waiting:
        best = max(waiting, key=lambda i: (waiting[i][0], -i))
        _, joined = waiting.pop(best)
        here = len(nodes)
        nodes.append(cliques[best])
        parent.append(joined)
        for i, (shared, _) in waiting.items():
            overlap = len(cliques[i] & cliques[best])
            if overlap > shared:
                waiting[i] = (overlap, here)
    return nodes, parent
