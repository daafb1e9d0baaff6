"""The plan of repeated runs: the plan of one run, as often as there are runs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.mechanisms.common import Mechanism, PlannedMeasurement, SelectionLoad
from margrave.models import Fit
from margrave.types import Clique


class RepeatedPlan(Mechanism):
    """The part of Repeated that is known before a run. Its fields are those of Repeated."""

    mechanism: Mechanism
    runs: int

    def estimator(self) -> Fit | None:
        """Return the fit of each run."""
        return self.mechanism.estimator()

    def reads(self, domain: Domain) -> Collection[Clique]:
        """Return what each run may ask for."""
        return self.mechanism.reads(domain)

    def counted_first(self, domain: Domain) -> Collection[Clique]:
        """Return what a run counts when it begins."""
        return self.mechanism.counted_first(domain)

    def counted_cells(self, domain: Domain) -> int | None:
        """Return how many cells a run counts at most; None if it counts all that it may ask for."""
        return self.mechanism.counted_cells(domain)

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return the steps of all runs, one run after the other."""
        return self.mechanism.steps(domain, rho / self.runs, unit) * self.runs

    def selection(self, domain: Domain, rho: Fraction, records: int, unit: Unit) -> SelectionLoad:
        """Return the selections of all runs."""
        load = self.mechanism.selection(domain, rho / self.runs, records, unit)
        return replace(load, rounds=load.rounds * self.runs)

    def expected(self, domain: Domain, rho: Fraction, records: int, unit: Unit) -> int | None:
        """Return how many marginals all runs would measure; None if that is not known."""
        each = self.mechanism.expected(domain, rho / self.runs, records, unit)
        return None if each is None else each * self.runs

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if a run cannot succeed. Reads no data."""
        self.mechanism.check(domain, unit)
