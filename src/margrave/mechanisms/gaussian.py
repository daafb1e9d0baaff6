"""The Gaussian mechanism on a workload: noisy answers, no synthetic records."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.mechanisms.common import Mechanism, PlannedMeasurement, Progress
from margrave.mechanisms.parts.budget import split
from margrave.models import AnswersFit, Fit
from margrave.privacy import Gaussian, Private
from margrave.release import Release
from margrave.types import Clique, Generator
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class GaussianMechanism(Mechanism):
    """Every marginal of the workload, with the split that minimizes the expected workload error.

    minimize Σ_r c_r cells_r scale_r subject to Σ_r 1 / (2 scale_r²) = rho gives rho_r ∝ (c_r
    cells_r)^(2/3)

    Args:
        workload: The marginals; None means all three-way marginals.
        fit: By default the release answers those marginals and all below them; ``refit`` makes a
            model of them where one is small enough.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    References:
        Zhang et al. (2021), PrivSyn, Section 4.2; the baseline of the AIM paper.
    """

    workload: Workload | None = None
    fit: Fit = field(default_factory=AnswersFit)

    name = "gaussian"

    def reads(self, domain: Domain) -> list[Clique]:
        """Return the workload."""
        return list(self.workload_on(domain).cliques)

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return each marginal with its share."""
        return [
            PlannedMeasurement.of(", ".join(clique), [clique], share, unit)
            for clique, share in self._shares(domain, rho).items()
        ]

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        self.check_fit(domain, self.reads(domain))

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure each marginal with its share."""
        domain, rng, progress = self.begin(private, rng, progress)
        shares = self._shares(domain, private.rho)
        for i, (clique, rho) in enumerate(shares.items()):
            private.measure([clique], Gaussian(rho=rho))
            progress("measuring", (i + 1) / len(shares))
        return self.release(private, self.fit(domain, private.transcript, rng=rng))

    def _shares(self, domain: Domain, rho: Fraction) -> dict[Clique, Fraction]:
        weights = self.workload_on(domain).weights
        shares = split(rho, [(c * domain.cells(r)) ** (2 / 3) for r, c in weights.items()])
        return dict(zip(weights, shares, strict=True))
