"""Independent: every column on its own. The baseline that anything cleverer must beat."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.mechanisms.common import Mechanism, PlannedMeasurement, Progress, one_way, option
from margrave.models import Fit, GraphicalFit
from margrave.privacy import Private
from margrave.release import Release
from margrave.types import Clique, Generator


@dataclass(frozen=True, kw_only=True)
class Independent(Mechanism):
    """All one-way marginals with Gaussian noise, and a model in which columns are independent.

    Columns that the schema's constraints join are as independent as these allow; ``max_model_mb``
    bounds their model.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    References:
        The baseline of McKenna, Mullins, Sheldon, Miklau (2022), Section 6.1.
    """

    max_model_mb: float = option(1000.0, "Size of the model at most, in MB.", above=0)
    fit: Fit = field(default_factory=GraphicalFit)

    name = "independent"
    use = "a baseline: every column by itself"

    def reads(self, domain: Domain) -> list[Clique]:
        """Return all one-way marginals."""
        return one_way(domain)

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return an equal share for every column."""
        return [PlannedMeasurement.columns(domain, rho, unit)]

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        self.check_fit(domain, one_way(domain))

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure every column, then fit."""
        _, rng, progress = self.begin(private, rng, progress)
        return self.release_columns(private, rng, progress)
