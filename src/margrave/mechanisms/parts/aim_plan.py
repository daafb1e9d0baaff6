"""The plan of AIM's runs: what is measured first, and what a round scores and counts."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from typing import ClassVar

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.mechanisms.common import Mechanism, PlannedMeasurement, SelectionLoad
from margrave.mechanisms.parts.annealing import expected_rounds
from margrave.mechanisms.parts.candidates import Scoring
from margrave.mechanisms.parts.opening import Opening
from margrave.models import Fit
from margrave.types import Clique


class AIMPlan(Mechanism):
    """The part of AIM and AIM-mixture that is known before a run. Their fields are AIM's."""

    fit: Fit
    rounds: int | None
    alpha: Fraction
    column_error: float | None
    shortlist: int | None

    #: Rounds that the first budget is sized for by default, per column.
    rounds_per_column: ClassVar[int] = 16
    #: The number of candidates up to which all are scored by default.
    scored_at_most: ClassVar[float] = 3000

    def opening(self, domain: Domain) -> Opening:
        """Return what is measured before the rounds."""
        return Opening(
            workload=self.workload_on(domain),
            domain=domain,
            fit=self.fit,
            max_model_mb=self.max_model_mb,
            measurements=self.rounds or self.rounds_per_column * len(domain),
            alpha=self.alpha,
            column_error=self.column_error,
        )

    def scoring(self, domain: Domain) -> Scoring:
        """Return what rounds score, and what is counted for them."""
        return Scoring(self.workload_on(domain), domain, self.shortlist, self.scored_at_most)

    def counted_first(self, domain: Domain) -> Collection[Clique]:
        """Return all candidates, or columns, pairs and purposes if a shortlist leaves others out."""
        return self.scoring(domain).counted_first()

    def counted_cells(self, domain: Domain) -> int | None:
        """Return the cells that a shortlist leaves to be counted at most; None for all."""
        return self.scoring(domain).counted_cells()

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return the columns, and rounds of the first budget; rounds with less noise cost more."""
        return self.opening(domain).steps(rho, unit)

    def selection(self, domain: Domain, rho: Fraction, records: int, unit: Unit) -> SelectionLoad:
        """Return the rounds that annealing makes, and the candidates that each scores."""
        rounds = expected_rounds(domain, self.steps(domain, rho, unit), records)
        return SelectionLoad(rounds=rounds, candidates=self.scoring(domain).per_round or None)

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        self.check_fit(domain, self.opening(domain).columns, adaptive=True)
