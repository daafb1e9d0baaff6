"""MST: measure a maximum spanning tree of two-way marginals (McKenna, Miklau, Sheldon 2021)."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.marginal import LinearMap
from margrave.mechanisms.common import (
    Mechanism,
    PlannedMeasurement,
    Progress,
    one_way,
    option,
    two_way,
)
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.rare_codes import rare_codes
from margrave.mechanisms.parts.tree import spanning_tree
from margrave.models import Fit, GraphicalFit
from margrave.models.entries import EntryKind
from margrave.privacy import Gaussian, Private
from margrave.release import Release
from margrave.types import Clique, Generator


@dataclass(frozen=True, kw_only=True)
class MST(Mechanism):
    """One-way marginals, and the two-way marginals of a spanning tree of the most dependent pairs.

    A third of the budget each. The tree is grown edge by edge: of the pairs that join two parts,
    one is selected by the exponential mechanism on ||M_ab(D) − M_ab(independent)||_1.

    Args:
        rare_threshold: A code is rare if the noisy count of its column is below so many noise
            scales. The rare codes of a column are merged in the pairs if there are two or more of
            them. Only the one-way marginal separates them. Columns of structural zeros keep their
            codes. 0 merges nothing, negative counts included.
        max_model_mb: Pairs that would take the model beyond it are not selected.
        fit: Any estimator.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    References:
        McKenna, Miklau, Sheldon (2021), Winning the NIST contest, Section 4, with
        ``rare_threshold=3``.
    """

    rare_threshold: float = option(
        3.0, "Merge codes counted below so many noise scales; 0 merges none.", least=0
    )
    max_model_mb: float = option(1000.0, "Size of the model at most, in MB.", above=0)
    fit: Fit = field(default_factory=GraphicalFit)

    name = "mst"
    use = "a quick release: all columns and a tree of pairs"

    def reads(self, domain: Domain) -> list[Clique]:
        """Return all one-way and two-way marginals."""
        return [*one_way(domain), *two_way(domain)]

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return a third for the columns and a third for the tree's pairs."""
        if not (pairs := two_way(domain)):
            return [PlannedMeasurement.columns(domain, rho, unit)]
        columns = PlannedMeasurement.columns(domain, rho / 3, unit)
        scale = Gaussian.scale_for(rho / 3 / (len(domain) - 1), unit)
        return [columns, PlannedMeasurement("the tree's pairs", pairs, len(domain) - 1, scale)]

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        kinds = {EntryKind.MERGED} if self.rare_threshold > 0 else set()
        self.check_fit(domain, one_way(domain), adaptive=True, kinds=kinds)

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure one-way marginals, select the tree, measure its edges, fit."""
        domain, rng, progress = self.begin(private, rng, progress)
        if not (pairs := two_way(domain)):
            return self.release_columns(private, rng, progress)
        third = private.rho / 3
        singles = private.measure(one_way(domain), Gaussian(rho=third))
        merged = LinearMap(rare_codes(domain, singles.measurements, self.rare_threshold))
        independent = self.fit(domain, singles, rng=rng).answer(pairs)
        estimates = {r: merged.apply(r, independent[r]) for r in pairs}
        coarse = Domain(domain.attributes, merged.domain(domain).sizes, domain.zeros)
        capacity = Capacity(self.fit, coarse, self.max_model_mb)
        tree = spanning_tree(
            private, estimates, third, query=merged, capacity=capacity, progress=progress
        )
        if not tree:
            return self.release_columns(private, rng, progress)
        private.measure(tree, Gaussian(rho=private.remaining), query=merged)
        progress("fitting", 1.0)
        return self.release(private, self.fit(domain, private.transcript, rng=rng))
