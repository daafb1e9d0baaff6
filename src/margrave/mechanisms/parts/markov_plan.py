"""The plan of PrivMRF: its first and its selected marginals, and their largest noise."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.mechanisms.common import Mechanism, PlannedMeasurement, one_way
from margrave.mechanisms.parts.budget import after_total, total_steps
from margrave.mechanisms.parts.markov_graph import all_marginals
from margrave.privacy import Gaussian
from margrave.types import Clique


class MarkovPlan(Mechanism):
    """The part of PrivMRF that is known before a run. Its fields are those of PrivMRF."""

    ways: int
    max_cells: int
    graph_share: Fraction
    selection_share: Fraction

    selected_per_column: ClassVar[Fraction] = Fraction(4, 5)

    def reads(self, domain: Domain) -> list[Clique]:
        """Return all columns and pairs, and the wider marginals that it may measure."""
        return all_marginals(domain, self.max_cells, self.ways)

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return a private row count, the first marginals, and the selected ones."""
        if len(domain) == 1:
            return [PlannedMeasurement.columns(domain, rho, unit)]
        reads, columns, scale = self.reads(domain), len(domain), self._scale(domain, rho, unit)
        first = PlannedMeasurement("first marginals", reads, columns, scale, at_most=True)
        rounds = PlannedMeasurement.rounds(reads, self._selected(domain), scale)
        return [*total_steps(domain, rho, unit), first, rounds]

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        self.check_fit(domain, one_way(domain), adaptive=True)

    def _selected(self, domain: Domain) -> int:
        return int(self.selected_per_column * len(domain))

    def _scale(self, domain: Domain, rho: Fraction, unit: Unit) -> float:
        """Return the largest noise scale of a marginal: as if each column had one first."""
        measuring = after_total(rho, unit) * (1 - self.graph_share - self.selection_share)
        return Gaussian.scale_for(measuring / (len(domain) + self._selected(domain)), unit)
