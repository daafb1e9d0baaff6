"""The Gaussian mechanism on a workload: noisy answers, no synthetic records."""

from __future__ import annotations

from dataclasses import dataclass

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.mechanisms.common import option
from margrave.mechanisms.parts.noise_design import ERROR, NoisePlan, marginals
from margrave.mechanisms.planned_noise import PlannedNoise
from margrave.types import Clique
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class GaussianMechanism(PlannedNoise):
    """Every marginal of the workload with its own noise, and the least-squares answers.

    The shares of the budget minimize the expected workload error of least squares over all marginals,
    which help each other where they overlap. They are found by L-BFGS and never worse than those of
    PrivSyn, which treat each marginal alone: minimize Σ_r c_r cells_r scale_r subject to
    Σ_r 1 / (2 scale_r²) = rho, so that rho_r ∝ (c_r cells_r)^(2/3). A marginal that others answer well
    enough is not measured.

    Args:
        workload: The marginals; None means all three-way marginals.
        overlaps: False takes PrivSyn's shares.
        fit: By default the release answers those marginals and all below them, consistent and without
            bias; ``refit`` makes a model of them where one is small enough.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    References:
        Zhang et al. (2021), PrivSyn, Section 4.2; the baseline of the AIM paper.
    """

    workload: Workload | None = None
    overlaps: bool = option(True, "Size the noise for least squares over overlapping marginals.")

    name = "gaussian"
    use = "noisy answers without records"
    max_marginals = 250_000

    def reads(self, domain: Domain) -> list[Clique]:
        """Return the workload."""
        return list(self.workload_on(domain).cliques)

    def plan(self, domain: Domain, unit: Unit) -> NoisePlan:
        """Return the marginals to measure, with their weights."""
        weights = self.workload_on(domain).weights
        questions = marginals(weights)
        if not self.overlaps:
            alone = tuple((c * domain.cells(r)) ** (2 / 3) for r, c in weights.items())
            return NoisePlan(questions, alone)
        return NoisePlan.of(domain, weights, questions, unit, ERROR)

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        self.check_width(self.workload_on(domain))
        self.check_fit(domain, self.reads(domain))
