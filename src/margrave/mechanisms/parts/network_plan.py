"""The plan of PrivBayes: the columns that it measures first, and the families that it may measure."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.mechanisms.common import Mechanism, PlannedMeasurement, SelectionLoad, one_way
from margrave.mechanisms.parts.budget import start_steps
from margrave.mechanisms.parts.network_families import all_families
from margrave.privacy import Gaussian
from margrave.types import Clique


class NetworkPlan(Mechanism):
    """The part of PrivBayes that is known before a run. Its fields are those of PrivBayes."""

    network_share: Fraction
    one_way_share: Fraction
    max_parents: int
    score: str

    #: Cells of a family at most. Numbers of families bound the parents too: 4 for up to 23 columns, 1 beyond 66.
    max_cells: ClassVar[int] = 1 << 14

    def reads(self, domain: Domain) -> list[Clique]:
        """Return the one-way marginals, and every family that may be a candidate."""
        return [*one_way(domain), *all_families(domain, self.max_parents, self.max_cells)]

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return the columns, or the number of records if it is private, and the families."""
        start, left = start_steps(domain, rho, unit, self.one_way_share)
        d, at_once, reads = len(domain), self.score == "gap", self.reads(domain)
        scale = Gaussian.scale_for(left * (1 - self.network_share) / d, unit)
        what = "columns with their parents"
        return [*start, PlannedMeasurement(what, reads, d, scale, at_once, at_most=True)]

    def selection(self, domain: Domain, rho: Fraction, records: int, unit: Unit) -> SelectionLoad:
        """Return one selection for each column but the first."""
        return SelectionLoad(rounds=len(domain) - 1)

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        self.check_fit(domain, one_way(domain), adaptive=self.score == "gap")
