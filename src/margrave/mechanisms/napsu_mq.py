"""NAPSU-MQ: noise-aware synthetic data from marginal queries (Räisä et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.mechanisms.common import Mechanism, PlannedMeasurement, Progress, one_way, option
from margrave.mechanisms.parts.connection import Connection
from margrave.mechanisms.parts.tree import spanning_tree
from margrave.models import Fit, GraphicalFit, MaxEntropyFit
from margrave.models.specs import fit_config
from margrave.privacy import Gaussian, Private
from margrave.release import Release
from margrave.types import Clique, Generator
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class NAPSUMQ(Mechanism):
    """A few marginals with equal noise, and the posterior of the maximum-entropy model.

    ``release.draws(m)`` then gives data sets whose differences show what the noise and the sampling
    of the records leave open, and ``margrave.analyze`` intervals for what holds in the population.
    A workload, or columns, of more parameters than a posterior can have are refused before anything
    is spent: a release without one is what other mechanisms make, more accurately. Pairs that would
    make too many are not candidates. Constraints can still make the posterior of what was selected
    intractable; the model is then one best estimate, and ``config`` says so.

    Args:
        workload: The marginals that the analyses to come rest on, all of them measured with the
            same noise whatever their weights; each of k has 1 / k of their part.
        connect_columns: Select and measure pairs too that join the other columns to them in a tree,
            as MST selects them; without a workload, a tree of all columns.
        select_fraction: The share of the budget that this takes: half of it for the columns on
            their own, half for the selections. Where nothing is to be selected, all goes to the
            marginals, and to those columns that are in none.
        fit: The maximum-entropy model and its posterior.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    References:
        Räisä, Jälkö, Kaski, Honkela (2023), Algorithm 1; its experiments select pairs by MST too,
        at no cost.
    """

    workload: Workload | None = None
    connect_columns: bool = option(True, "Choose pairs that join columns in no workload marginal.")
    select_fraction: Fraction = option(
        Fraction(1, 3), "Share of the budget for choosing pairs, below 1.", share=True
    )
    fit: Fit = field(default_factory=lambda: MaxEntropyFit())

    name = "napsu-mq"
    use = "inference: a posterior over models of a few chosen marginals"
    default_ways = None

    def connection(self, domain: Domain) -> Connection:
        """Return the marginals on a domain, and the pairs that can join them."""
        return Connection(self.workload, domain, self.fit, self.connect_columns)

    def reads(self, domain: Domain) -> list[Clique]:
        """Return the workload, every column, and where pairs are to be selected, every pair."""
        made = self.connection(domain)
        return list(dict.fromkeys([*made.marginals, *one_way(domain), *made.pairs]))

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return columns and marginals; the selections take their share."""
        made = self.connection(domain)
        if not made.joins:
            each = rho / len(made.whole)
            return [PlannedMeasurement.of("every marginal", made.whole, each, unit)]
        each, count = self.select_fraction * rho / 2 / len(domain), len(made.marginals) + made.joins
        scale = Gaussian.scale_for((1 - self.select_fraction) * rho / count, unit)
        return [
            PlannedMeasurement.of("every column", one_way(domain), each, unit),
            PlannedMeasurement("the marginals", [*made.marginals, *made.pairs], count, scale),
        ]

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        self.check_fit(domain, self.connection(domain).whole)

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Select pairs that join columns, measure, and find the posterior (Algorithm 1)."""
        domain, rng, progress = self.begin(private, rng, progress)
        made = self.connection(domain)
        if made.joins:
            half = self.select_fraction * private.rho / 2
            singles = private.measure(one_way(domain), Gaussian(rho=half))
            estimates = GraphicalFit()(domain, singles, rng=rng).answer(made.pairs)
            tree = spanning_tree(
                private, estimates, half, measured=made.marginals, progress=progress
            )
            private.measure([*made.marginals, *tree], Gaussian(rho=private.remaining))
        else:
            private.measure(made.whole, Gaussian(rho=private.rho))
        progress("finding the posterior", 1.0)
        fit, facts = self.fit, dict[str, Any]()
        if not fit.takes(domain, private.transcript):
            fit = GraphicalFit()
            facts = {"posterior": "not tractable", **fit_config(fit)}
        return self.release(private, fit(domain, private.transcript, rng=rng), **facts)
