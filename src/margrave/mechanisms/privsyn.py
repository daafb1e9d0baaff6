"""PrivSyn: the pairs whose dependence is worth their noise, and records by a gradual update."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.mechanisms.common import (
    Mechanism,
    PlannedMeasurement,
    Progress,
    one_way,
    option,
    two_way,
)
from margrave.mechanisms.parts.budget import measure_shares
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.dense_pairs import allocation, dense_pairs, join_pairs
from margrave.mechanisms.parts.noisy_scores import noisy_scores
from margrave.models import Fit, GUMFit
from margrave.privacy import Dependence, Gaussian, Private
from margrave.release import Release
from margrave.types import Clique, Generator


@dataclass(frozen=True, kw_only=True)
class PrivSyn(Mechanism):
    """Pairs selected at once by noisy dependence, joined into cliques, and records moved to them.

    A tenth of the budget measures the dependence ‖M_ab − M_a ⊗ M_b / n‖₁ of all pairs, a tenth all
    columns, and the rest the selected pairs, with shares ∝ cells^(2/3).

    Args:
        clique_columns: Selected pairs that form a clique of at most ``clique_columns`` columns are
            measured as one marginal. 2, the default, joins none, which is more accurate on small tables.
        clique_cells: Cliques have fewer cells than this.
        max_model_mb: Pairs that would take the model beyond it are not selected.
        fit: Any estimator.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    References:
        Zhang, Wang, Li, Honorio, Backes, He, Chen, Zhang (2021), PrivSyn.
    """

    clique_columns: int = option(
        2, "Largest clique, in columns, that selected pairs are joined to; 2 joins none.", least=2
    )
    clique_cells: int = option(5000, "Form only cliques of fewer cells.", above=0)
    max_model_mb: float = option(1000.0, "Size of the model at most, in MB.", above=0)
    fit: Fit = field(default_factory=GUMFit)

    name = "privsyn"
    use = "many pairs at once, in cycles too, and records in seconds"

    def reads(self, domain: Domain) -> list[Clique]:
        """Return all one-way and two-way marginals, and the cliques that may be formed."""
        return [*one_way(domain), *two_way(domain), *self._joinable(domain)]

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return a tenth for the columns and eight tenths for the pairs, with the largest noise."""
        d, pairs = len(domain), two_way(domain)
        if not pairs:
            return [PlannedMeasurement.columns(domain, rho, unit)]
        columns = PlannedMeasurement.columns(domain, rho / 10, unit)
        cliques = [*one_way(domain), *pairs, *self._joinable(domain)]
        weights = [*allocation(domain, cliques).values()]
        # each clique in the place of pairs has a column that those before lack
        most = sum(weights[: d + len(pairs)]) + d * max(weights)
        least = rho * 8 / 10 * Fraction(min(weights) / most)
        scale = Gaussian.scale_for(least, unit)
        what = "chosen pairs and cliques"
        return [columns, PlannedMeasurement(what, cliques, max(d, len(pairs)), scale, at_most=True)]

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        self.check_fit(domain, one_way(domain))

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure dependence and columns, select pairs, join them, measure them, fit."""
        domain, rng, progress = self.begin(private, rng, progress)
        if not (pairs := two_way(domain)):
            return self.release_columns(private, rng, progress)
        tenth = private.rho / 10
        dependence = noisy_scores(private, pairs, Dependence(), tenth)
        private.measure(one_way(domain), Gaussian(rho=tenth))
        progress("measuring", 0.3)
        scale = Gaussian.scale_for(private.remaining, private.unit)
        capacity = Capacity(self.fit, domain, self.max_model_mb)
        selected = dense_pairs(domain, dependence, scale, capacity)
        cliques = join_pairs(selected, self._joinable(domain)) or one_way(domain)
        measure_shares(private, allocation(domain, cliques), private.remaining)
        progress("fitting", 1.0)
        return self.release(private, self.fit(domain, private.transcript, rng=rng))

    def _joinable(self, domain: Domain) -> list[Clique]:
        sizes = range(min(self.clique_columns, len(domain)), 2, -1)
        cliques = [r for k in sizes for r in combinations(domain.attributes, k)]
        return [r for r in cliques if domain.cells(r) < self.clique_cells]
