"""ResidualPlanner: the best noise for a workload of marginals (Xiao, He, Zhang, Kifer 2023)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.marginal import TOTAL
from margrave.mechanisms.common import option
from margrave.mechanisms.parts.noise_design import ERROR, VARIANCE, NoisePlan, interactions
from margrave.mechanisms.planned_noise import PlannedNoise
from margrave.models.entries import EntryKind
from margrave.types import Clique
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class ResidualPlanner(PlannedNoise):
    """The interactions of a workload's columns, each with the noise that serves the workload best.

    The interaction of A is R_A = ⊗_{i∈A} (I − 1·1ᵀ / n_i) M_A. Noise of variance σ_A² on R_A gives the cells
    of a marginal r the variance Σ_{A⊆r} σ_A² p_A / Π_{i∈r∖A} n_i², with p_A = Π_{i∈A} (n_i − 1) / n_i. If v_A
    is the weight of σ_A² in the sum of variances, σ_A² ∝ √(p_A / v_A) minimizes it.

    The gate measures N·R_A with N = Π_{i∈A} n_i. These are whole numbers, with independent noise of scale N·σ_A.
    One row at cell x adds ⊗_{i∈A} (e_x − 1 / n_i) to R_A, of squared norm Π_{i∈A} ((1 − 1 / n_i)² +
    (n_i − 1) / n_i²) = p_A for every x. So the price is N² p_A / (2 N² σ_A²) = p_A / (2 σ_A²). Noise outside
    the space of R_A carries no information, and the fit removes it. The remaining noise has the covariance
    σ_A² ⊗ (I − 1·1ᵀ / n_i), that of the paper's σ_A² ⊗ Sub Subᵀ after the inverse of Sub, at the same price.

    Under replacement a row changes R_A by a squared norm of up to 2 p_A (1 + 1 / (min n_i − 1)), but never all
    interactions by as much at once. One whole marginal costs less than its interactions there. So whole
    marginals are candidates too, and L-BFGS splits the budget among both.

    Args:
        workload: The marginals; None means all three-way marginals.
        objective: "variance" minimizes Σ_r c_r² Σ_cells variance, as in the paper; "error" minimizes
            the expected workload error, Σ_r c_r Σ_cells standard deviation.
        fit: By default the release answers those marginals and all below them, without bias and
            consistent. Another fit that uses weighted linear maps makes records.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    References:
        Xiao, He, Zhang, Kifer (2023), An Optimal and Scalable Matrix Mechanism for Noisy Marginals
        under Convex Loss Functions.
    """

    workload: Workload | None = None
    objective: str = option(
        VARIANCE, "Minimize the squared or the absolute error.", choices=(VARIANCE, ERROR)
    )

    name = "residual-planner"
    use = "noisy answers without records, of the least variance"

    def reads(self, domain: Domain) -> Collection[Clique]:
        """Return the workload's closure, and the marginal that counts the records."""
        return dict.fromkeys([*self.workload_on(domain).closure(), TOTAL.counting_clique(domain)])

    def plan(self, domain: Domain, unit: Unit) -> NoisePlan:
        """Return the interactions, and the marginals, to measure."""
        self.check_width(workload := self.workload_on(domain))
        weights = workload.weights
        questions = interactions(domain, weights, unit)
        return NoisePlan.of(domain, weights, questions, unit, self.objective)

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        plan = self.plan(domain, unit)
        mapped = any(q.interactions for q in plan.questions)
        kinds = {EntryKind.WEIGHTED_MAP} if mapped else set()
        self.check_fit(domain, plan.cliques, kinds=kinds)
