"""Mechanisms that plan all questions, and the noise of each, before the rows are read."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.mechanisms.common import Mechanism, PlannedMeasurement, Progress, SelectionLoad
from margrave.mechanisms.parts.noise_design import NoisePlan
from margrave.models import Fit, LeastSquaresFit
from margrave.privacy import Private
from margrave.release import Release
from margrave.types import Generator
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class PlannedNoise(Mechanism):
    """A mechanism that asks what its plan says, and then fits.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.
    """

    fit: Fit = field(default_factory=LeastSquaresFit)

    #: The most marginals of a workload. To plan their noise takes half a minute.
    max_marginals: ClassVar[int] = 90_000

    @abstractmethod
    def plan(self, domain: Domain, unit: Unit) -> NoisePlan:
        """Return the questions, with their weights in the budget."""

    def check_width(self, workload: Workload) -> None:
        """Raise `InputError` if a plan for all marginals of the workload takes minutes."""
        if len(workload.weights) > self.max_marginals:
            raise InputError(
                f"The workload has {len(workload.weights):,} marginals, and {self.name} plans"
                f" {self.max_marginals:,} at most.",
                remedy="Choose the mechanism forests, which serves wide tables, or name a workload of fewer marginals.",
            )

    def selection(self, domain: Domain, rho: Fraction, records: int, unit: Unit) -> SelectionLoad:
        """Return that nothing is selected privately."""
        return SelectionLoad(per_round=0)

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return each question with its share."""
        return self.plan(domain, unit).steps(domain, rho, unit)

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Ask every question with its noise, then fit."""
        domain, rng, progress = self.begin(private, rng, progress)
        self.plan(domain, private.unit).ask(private, progress)
        return self.release(private, self.fit(domain, private.transcript, rng=rng))
