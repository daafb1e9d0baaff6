"""The plan of AIM with public data: the private columns, then the rounds of its first budget."""

from __future__ import annotations

from fractions import Fraction

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.mechanisms.common import PlannedMeasurement, SelectionLoad, one_way
from margrave.mechanisms.parts.annealing import expected_rounds
from margrave.mechanisms.parts.budget import after_total, total_steps
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.public import still_private
from margrave.mechanisms.parts.readings import ReadsPublic
from margrave.models import Fit
from margrave.privacy import Gaussian


class AIMPubPlan(ReadsPublic):
    """The part of AIM with public data that is known before a run. Its fields are those of AIMPub."""

    fit: Fit
    rounds: int | None
    alpha: Fraction

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return the number of records, if it is private, the private columns, then rounds."""
        rounds, workload = self._first_budget(domain), self.workload_on(domain)
        scale = Gaussian.scale_for(self.alpha * after_total(rho, unit) / rounds, unit)
        askable = set(workload.closure())
        if self.public is not None:
            askable = set(still_private(self.public, askable, unit))
        starts = [r for r in one_way(domain) if r in askable]
        columns = PlannedMeasurement("every column", starts, len(starts), scale)
        chosen = PlannedMeasurement.rounds(workload.cliques, rounds - len(starts), scale)
        return [*total_steps(domain, rho, unit), *([columns] if starts else []), chosen]

    def selection(self, domain: Domain, rho: Fraction, records: int, unit: Unit) -> SelectionLoad:
        """Return the rounds that annealing makes."""
        return SelectionLoad(rounds=expected_rounds(domain, self.steps(domain, rho, unit), records))

    def _first_budget(self, domain: Domain) -> int:
        """Return how many measurements the budget is meant for: more than there are columns."""
        whole = domain.cells() <= Capacity(self.fit, domain, self.max_model_mb).cells()
        return max(self.rounds or (16 if whole else 6) * len(domain), len(domain) + 1)
