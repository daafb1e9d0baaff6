"""Private-GSD: noisy answers, and a genetic search for records that give them (Liu et al. 2023)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.mechanisms.adaptive import AdaptiveMeasurements
from margrave.mechanisms.common import PlannedMeasurement, Progress, SelectionLoad, option
from margrave.mechanisms.parts.budget import split
from margrave.models import Fit, GeneticFit
from margrave.privacy import Gaussian, Private
from margrave.release import Release
from margrave.types import Clique, Generator


@dataclass(frozen=True, kw_only=True)
class PrivateGSD(AdaptiveMeasurements):
    """Measure a workload at once, or its worst in rounds; a genetic search finds records.

    At once, the shares of the budget are in proportion to weight^(2/3) of the marginals, which for
    equal scales of error minimizes their weighted sum.

    Args:
        adaptive: In each of ``rounds``, the marginal or query that the records answer worst is
            selected and measured, and the search goes on from those records.
        granularity: A round asks for a whole "marginal" or a single "query".
        queries: Linear queries instead of the workload's cells, for rounds alone.
        alpha: A round's budget goes to selecting and to measuring as alpha² to (1 − alpha)².
        workload: The marginals; None means all two-way marginals, as in the paper.
        fit: The search, and its size.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    References:
        Liu, Tang, Vietri, Wu (2023), Generating private synthetic data with genetic algorithms.
    """

    adaptive: bool = option(
        False, "Measure the worst in rounds, instead of the whole workload at once."
    )
    fit: Fit = field(default_factory=GeneticFit)

    name = "private-gsd"
    use = "many marginals of equal importance"
    default_ways = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.granularity == "query" and not self.adaptive:
            raise InputError(
                "Single queries are measured in rounds only.",
                remedy="Set adaptive=True (--adaptive).",
            )
        if self.queries is not None and not self.adaptive:
            raise InputError(
                "Linear queries are measured in rounds only.", remedy="Set adaptive=True."
            )

    def estimator(self) -> Fit:
        """Return the genetic search."""
        return self.fit

    def reads(self, domain: Domain) -> Collection[Clique]:
        """Return the workload; in rounds, also a column in which all records can be counted."""
        return super().reads(domain) if self.adaptive else self.workload_on(domain).cliques

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return every marginal with its share, or the rounds."""
        if self.adaptive:
            return super().steps(domain, rho, unit)
        shares = self._shares(domain, rho)
        if len(set(shares.values())) == 1:
            return [PlannedMeasurement.of("the workload", list(shares), rho / len(shares), unit)]
        return [
            PlannedMeasurement.of(", ".join(clique), [clique], share, unit)
            for clique, share in shares.items()
        ]

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        if self.adaptive:
            super().check(domain, unit)
        else:
            self.check_fit(domain, self.reads(domain))

    def selection(self, domain: Domain, rho: Fraction, records: int, unit: Unit) -> SelectionLoad:
        """Return no rounds, where all is measured at once."""
        return super().selection(domain, rho, records, unit) if self.adaptive else SelectionLoad()

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure, and search; T times, where it is adaptive."""
        if self.adaptive:
            return super().run(private, rng=rng, progress=progress)
        domain, rng, progress = self.begin(private, rng, progress)
        for clique, rho in self._shares(domain, private.rho).items():
            private.measure([clique], Gaussian(rho=rho))
        progress("measuring", 0.5)
        model = self.fit(domain, private.transcript, rng=rng)
        progress("fitting", 1.0)
        return self.release(private, model)

    def _shares(self, domain: Domain, rho: Fraction) -> dict[Clique, Fraction]:
        """Return shares in proportion to weight^(2/3), that sum to rho exactly."""
        weights = self.workload_on(domain).weights
        return dict(zip(weights, split(rho, [w ** (2 / 3) for w in weights.values()]), strict=True))
