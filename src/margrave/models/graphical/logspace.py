"""Calibration in logarithms: slower, and exact where factors cancel that are too far apart for floats.

Noise, or rows, that contradict structural zeros pull potentials against each other without bound: their sum in a node
is moderate, each alone is not. Here they are added before anything is exponentiated. Nodes are held in full, so this
is for the few models that need it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from margrave.models.graphical.junction_tree import JunctionTree
from margrave.typing import Clique, FloatArray

WIDE = 300.0
"""Potentials of one factor this far apart may be lost when multiplied with others: exp(−700) is no float."""

MAX_CELLS = 1 << 25
"""The largest junction tree whose tables are held in full."""


def wide(potentials: Iterable[FloatArray]) -> bool:
    """Whether the possible cells of some factor are further apart than ``WIDE``."""
    for theta in potentials:
        possible = theta[theta > -np.inf]
        if possible.size and float(np.ptp(possible)) > WIDE:
            return True
    return False


def log_calibrate(
    tree: JunctionTree, potentials: Mapping[Clique, FloatArray]
) -> tuple[float, list[FloatArray]]:
    """log Σ exp(Σ theta), and the logarithm of every node's marginal distribution, axes in the node's order.

    If nothing is possible, the first is −inf and the tables are of no use.
    """
    domain = tree.domain
    tables = [np.zeros(domain.shape(c)) for c in tree.cliques]
    for clique, theta in potentials.items():
        node = tree.node_of(clique)
        assert node is not None
        tables[node] += _spread(theta, clique, tree.cliques[node])
    told: list[FloatArray] = [np.zeros(())] * len(tables)
    for i in range(len(tables) - 1, 0, -1):
        told[i] = _summed(tables[i], tree.cliques[i], tree.separators[i])
        tables[tree.parent[i]] += _spread(told[i], tree.separators[i], tree.cliques[tree.parent[i]])
    log_partition = float(_summed(tables[0], tree.cliques[0], ()))
    if log_partition == -np.inf:
        return log_partition, tables
    tables[0] -= log_partition
    for i in range(1, len(tables)):
        parent = tree.parent[i]
        believed = _summed(tables[parent], tree.cliques[parent], tree.separators[i])
        tables[i] += _spread(_less(believed, told[i]), tree.separators[i], tree.cliques[i])
    return log_partition, tables


def conditionals(tree: JunctionTree, tables: list[FloatArray]) -> dict[Clique, FloatArray]:
    """Potentials of the same distribution that cancel nowhere: of each node, log P(node | what its parent shares)."""
    found = {}
    for table, clique, separator in zip(tables, tree.cliques, tree.separators, strict=True):
        shared = _summed(table, clique, separator) if separator else np.zeros(())
        found[clique] = _less(table, _spread(shared, separator, clique))
    return found


def marginal_of(tree: JunctionTree, tables: list[FloatArray], clique: Clique) -> FloatArray:
    """The probabilities of a clique that lies in a node."""
    node = tree.node_of(clique)
    assert node is not None
    return np.exp(_summed(tables[node], tree.cliques[node], clique))


def _less(left: FloatArray, right: FloatArray) -> FloatArray:
    """left − right, −inf where left is."""
    return np.where(left > -np.inf, left - np.where(right > -np.inf, right, 0.0), -np.inf)


def _spread(values: FloatArray, clique: Clique, onto: Clique) -> FloatArray:
    """An array with axes in the clique's order (the domain's), in the shape of a larger clique."""
    sizes = iter(values.shape)
    return values.reshape([next(sizes) if a in clique else 1 for a in onto])


def _summed(table: FloatArray, clique: Clique, onto: Clique) -> FloatArray:
    """log Σ exp over all axes but those of ``onto``."""
    axes = tuple(i for i, a in enumerate(clique) if a not in onto)
    if not axes:
        return table
    top = table.max(axis=axes, keepdims=True)
    top = np.where(top > -np.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        summed: FloatArray = np.log(np.exp(table - top).sum(axis=axes)) + top.reshape(
            [n for i, n in enumerate(table.shape) if i not in axes]
        )
    return summed
