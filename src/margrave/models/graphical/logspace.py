"""Calibration in logarithms: slower, and exact where factors cancel that are too far apart for floats.

Noise, or rows, that contradict structural zeros pull potentials against each other without bound: their sum in a node
is moderate, each alone is not. Here they are added before anything is exponentiated. Nodes are held in full, so this
is for the few models that need it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from margrave.marginal.axes import expand_axes, logsumexp_onto
from margrave.models.graphical.junction_tree import JunctionTree
from margrave.types import Clique, FloatArray

#: Cells of the largest junction tree whose tables are held in full.
MAX_CELLS = 1 << 25


def needs_log_space(potentials: Iterable[FloatArray]) -> bool:
    """Return True if the possible cells of some factor are further apart than ``MAX_LOG_RANGE``."""
    # Range of one factor's potentials beyond which products with others may underflow: exp(−700)
    # is 0.
    max_log_range = 300.0
    for theta in potentials:
        possible = theta[theta > -np.inf]
        if possible.size and float(np.ptp(possible)) > max_log_range:
            return True
    return False


def log_calibrate(
    tree: JunctionTree, potentials: Mapping[Clique, FloatArray]
) -> tuple[float, list[FloatArray]]:
    """Return log Σ exp(Σ theta), and the logarithm of every node's marginal distribution, axes in
    the node's order.

    If nothing is possible, the first is −inf and the tables are of no use.
    """
    domain = tree.domain
    tables = [np.zeros(domain.shape(c)) for c in tree.cliques]
    for clique, theta in potentials.items():
        node = tree.node_of(clique)
        assert node is not None
        tables[node] += expand_axes(theta, clique, tree.cliques[node])
    messages: list[FloatArray] = [np.zeros(())] * len(tables)
    for i in range(len(tables) - 1, 0, -1):
        messages[i] = logsumexp_onto(tables[i], tree.cliques[i], tree.separators[i])
        tables[tree.parent[i]] += expand_axes(
            messages[i], tree.separators[i], tree.cliques[tree.parent[i]]
        )
    log_partition = float(logsumexp_onto(tables[0], tree.cliques[0], ()))
    if log_partition == -np.inf:
        return log_partition, tables
    tables[0] -= log_partition
    for i in range(1, len(tables)):
        parent = tree.parent[i]
        belief = logsumexp_onto(tables[parent], tree.cliques[parent], tree.separators[i])
        tables[i] += expand_axes(_less(belief, messages[i]), tree.separators[i], tree.cliques[i])
    return log_partition, tables


def conditionals(tree: JunctionTree, tables: list[FloatArray]) -> dict[Clique, FloatArray]:
    """Return potentials of the same distribution without cancellation: log P(node | separator) for
    each node.
    """
    found = {}
    for table, clique, separator in zip(tables, tree.cliques, tree.separators, strict=True):
        shared = logsumexp_onto(table, clique, separator) if separator else np.zeros(())
        found[clique] = _less(table, expand_axes(shared, separator, clique))
    return found


def marginal_of(tree: JunctionTree, tables: list[FloatArray], clique: Clique) -> FloatArray:
    """Return the probabilities of a clique that lies in a node."""
    node = tree.node_of(clique)
    assert node is not None
    return np.exp(logsumexp_onto(tables[node], tree.cliques[node], clique))


def _less(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.where(left > -np.inf, left - np.where(right > -np.inf, right, 0.0), -np.inf)
