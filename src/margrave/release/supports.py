"""How far a marginal that lies in a measured one can be from a reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrave.release import tails
from margrave.release.unbiased import Estimate
from margrave.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Support:
    """An unbiased estimate of a marginal, beside a reference's counts of it.

    ‖M(D) − reference‖₁ ≤ ‖estimate − reference‖₁ + ‖noise‖₁; and, as real counts are not negative, also
    ≤ ‖possible − reference‖₁ + ‖noise‖₁ − ‖estimate − possible‖₁, with ``possible`` the estimate's positive part:
    |z − y| = |z − y'| + |y' − y| wherever z ≥ 0 and y' = max(y, 0). Structural zeros have no part in it, since rows
    that violate a constraint stay in the counts.
    """

    estimate: Estimate
    apart: float  # ‖estimate − reference‖₁
    possible_apart: float  # ‖possible − reference‖₁
    spent: float  # ‖estimate − possible‖₁
    merged: float  # what the reference has in cells of merged codes
    outside: float  # what it has outside its largest cell

    @staticmethod
    def of(estimate: Estimate, reference: FloatArray) -> Support:
        """The distances."""
        coarse = np.asarray(estimate.query.apply(estimate.clique, reference))
        possible = np.maximum(estimate.values, 0.0)
        return Support(
            estimate,
            _l1(estimate.values - coarse),
            _l1(possible - coarse),
            _l1(estimate.values - possible),
            _merged_mass(estimate, coarse),
            float(coarse.sum() - coarse.max()),
        )

    def bound(self, miss: float, *, paper: bool) -> float:
        """With probability 1 − miss, the L1 distance of the real marginal from the reference is at most this.

        Where codes were merged, what lies in merged cells comes on top, twice: for counts a, b of the codes of one
        cell, Σ |a_i − b_i| ≤ |Σ a_i − Σ b_i| + 2 Σ b_i.
        """
        e = self.estimate
        if paper:
            return self.apart + tails.paper_l1_tail(e.values.size, e.widest, miss) + 2.0 * self.merged
        noise = tails.l1_tail(e.values.size, e.spread, e.widest, e.least_scale, e.noisy_cells, miss)
        nearer = self.possible_apart + max(0.0, noise - self.spent)
        return min(self.apart + noise, nearer) + 2.0 * self.merged


def _merged_mass(estimate: Estimate, coarse: FloatArray) -> float:
    if not estimate.groups:
        return 0.0
    sizes = np.ones(coarse.shape)
    for axis, a in enumerate(estimate.clique):
        if a in estimate.groups:
            members = np.bincount(estimate.groups[a], minlength=coarse.shape[axis])
            sizes = sizes * members.reshape([-1 if i == axis else 1 for i in range(coarse.ndim)])
    return float(np.maximum(coarse, 0.0)[sizes > 1].sum())


def _l1(values: FloatArray) -> float:
    return float(np.abs(values).sum())
