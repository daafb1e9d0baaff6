"""Region graphs, and convex generalized belief propagation on them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from margrave.marginal import maximal
from margrave.marginal.axes import other_axes
from margrave.types import Clique, FloatArray


def intersections(clique: Clique, cliques: Iterable[Clique]) -> set[Clique]:
    """Return what a clique has in common with each of the others, but for the empty set."""
    return {tuple(a for a in clique if a in other) for other in map(frozenset, cliques)} - {()}


def regions_of(cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """Return the cliques and all their intersections, larger ones first.

    >>> regions_of([("a", "b"), ("b", "c")])
    (('a', 'b'), ('b', 'c'), ('b',))
    """
    found: set[Clique] = set()
    for clique in cliques:
        # Intersections with two regions are intersections with a third: theirs.
        found |= {clique, *intersections(clique, found)}
    found.discard(())
    return tuple(sorted(found, key=lambda c: (-len(c), c)))


@dataclass(eq=False)
class RegionGraph:
    """Regions with counting number 1 each, and the messages along the edges between them.

    Edges lead from each region to the largest regions inside it. Beliefs are
    tau_r ∝ exp(theta_r + Σ_{c inside r} m_rc − Σ_{p around r} m_pr). At the minimum over the messages m of
    Σ_r log Σ exp(theta_r + …) they agree wherever regions overlap, and maximize <theta, tau> + Σ_r H(tau_r).
    """

    regions: tuple[Clique, ...]
    messages: dict[tuple[Clique, Clique], FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.around: dict[Clique, list[Clique]] = {r: [] for r in self.regions}
        #: The axes of the larger region that the smaller one lacks, by edge.
        self.edges: dict[tuple[Clique, Clique], tuple[int, ...]] = {}
        for p in self.regions:
            for c in maximal([c for c in self.regions if set(c) < set(p)]):
                self.edges[p, c] = other_axes(p, c)
                self.around[c].append(p)

    def beliefs(
        self, theta: Mapping[Clique, FloatArray], *, tolerance: float, max_sweeps: int
    ) -> tuple[dict[Clique, FloatArray], float]:
        """Return the pseudo-marginals tau of potentials, and the value of the minimum.

        The messages of the call before are the start. Sweeps end when one lowers the value by at most ``tolerance``.
        The value is minus infinity if some region has no possible cell.
        """
        logs = {r: np.array(t) for r, t in theta.items()}
        for (p, c), message in self.messages.items():
            logs[p] += np.expand_dims(message, self.edges[p, c])
            logs[c] -= message
        value, tables = 0.0, dict[Clique, FloatArray]()
        for r, log in logs.items():
            tables[r], log_mass = _shares(log)
            value += log_mass
        inner = [r for r in self.regions if self.around[r]]
        for _ in range(max_sweeps):
            if value == -np.inf:
                break
            change = sum(self._reconcile(r, tables) for r in inner)
            value += change
            if not change < -tolerance:
                break
        return tables, value

    def _reconcile(self, region: Clique, tables: dict[Clique, FloatArray]) -> float:
        """Make a region and all around it agree on their geometric mean; return the change of the value.

        It minimizes the value over all messages into the region, exactly.
        """
        around = self.around[region]
        known = {p: tables[p].sum(axis=self.edges[p, region]) for p in around}
        logs = {p: log_of(marginal) for p, marginal in known.items()}
        mean = (log_of(tables[region]) + sum(logs.values())) / (1 + len(around))
        agreed, log_mass = _shares(mean)
        if log_mass == -np.inf:
            return -np.inf
        possible = agreed > 0.0
        log_agreed = log_of(agreed)
        for p, marginal in known.items():
            ratio = np.divide(agreed, marginal, out=np.zeros_like(agreed), where=possible)
            tables[p] = tables[p] * np.expand_dims(ratio, self.edges[p, region])
            step = np.subtract(log_agreed, logs[p], out=np.zeros_like(agreed), where=possible)
            self.messages[p, region] = self.messages.get((p, region), 0.0) + step
        tables[region] = agreed
        return (1 + len(around)) * log_mass


def log_of(values: FloatArray) -> FloatArray:
    """Return logarithms, minus infinity for 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))


def _shares(logs: FloatArray) -> tuple[FloatArray, float]:
    """Return the shares of exp(logs), and the logarithm of their sum."""
    top = float(logs.max())
    if top == -np.inf:
        return np.zeros_like(logs), top
    shares = np.exp(logs - top)
    mass = float(shares.sum())
    shares /= mass
    # Products of two such shares do not underflow.
    min_share = 1e-100
    np.maximum(shares, min_share, out=shares, where=logs > -np.inf)
    return shares, top + math.log(mass)
