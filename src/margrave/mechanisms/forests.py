"""Forests: for wide tables, forests of dependent pairs, all selected from one noisy score per pair."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.mechanisms.common import (
    Mechanism,
    PlannedMeasurement,
    Progress,
    SelectionLoad,
    one_way,
    option,
    two_way,
)
from margrave.mechanisms.parts.budget import measure_shares
from margrave.mechanisms.parts.capacity import Capacity, fit_within
from margrave.mechanisms.parts.noisy_scores import noisy_scores
from margrave.mechanisms.parts.tree import forest
from margrave.models import Fit, GraphicalFit, projected_error
from margrave.privacy import Gaussian, MarginalGap, Private
from margrave.release import Release
from margrave.types import Clique, Generator


@dataclass(frozen=True, kw_only=True)
class Forests(Mechanism):
    """Measure all columns, score all pairs once, then measure one forest of pairs after the other.

    A third of the budget measures the columns, a tenth the scores e_ab = ‖M_ab(D) − M_ab(independent)‖₁. A forest
    joins columns by pairs of the largest positive

        e_ab − ‖M_ab(p) − M_ab(independent)‖₁ − noise_ab

    where p is the model so far and noise the expected projected error. No forest costs a selection. Its pairs share
    the budget ∝ noise^(2/3). Forest t of k may fill t/k of the largest model. A tenth of the budget, and what the
    forests leave, measures the columns again: many more triples depend on a column than on a pair.

    Args:
        forests: The number of forests.
        max_model_mb: Pairs that would take the model beyond it are not selected, and rare codes that do are left out.
        fit: Any estimator.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.
    """

    forests: int = option(4, "Number of forests of pairs that are measured.", above=0)
    max_model_mb: float = option(20.0, "Size of the model at most, in MB.", above=0)
    fit: Fit = field(default_factory=GraphicalFit)

    name = "forests"
    use = "wide tables: forests of pairs by one noisy score per pair"
    #: The least share of the budget that a pair gets, in those of a forest's mean pair.
    least_share: ClassVar[Fraction] = Fraction(1, 4)

    def reads(self, domain: Domain) -> list[Clique]:
        """Return all one-way and two-way marginals."""
        return [*one_way(domain), *two_way(domain)]

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return the columns, the pairs of all forests with the largest noise, and the columns again."""
        if not (pairs := two_way(domain)):
            return [PlannedMeasurement.columns(domain, rho, unit)]
        columns, scores, each = self._shares(domain, rho)
        planned = self.forests * (len(domain) - 1)
        least = self.least_share / (1 + self.least_share) * each
        scale = Gaussian.scale_for(least, unit)
        chosen = PlannedMeasurement("forests of pairs", pairs, planned, scale, at_most=True)
        last = PlannedMeasurement.columns(domain, rho - columns - scores - planned * each, unit)
        again = replace(last, what="every column again", at_most=True)
        return [PlannedMeasurement.columns(domain, columns, unit), chosen, again]

    def selection(self, domain: Domain, rho: Fraction, records: int, unit: Unit) -> SelectionLoad:
        """Return the forests, of which nothing is selected privately."""
        return SelectionLoad(rounds=self.forests, per_round=0)

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        self.check_fit(domain, one_way(domain), adaptive=True)

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure columns, score pairs, and measure forests of them."""
        domain, rng, progress = self.begin(private, rng, progress)
        if not (pairs := two_way(domain)):
            return self.release_columns(private, rng, progress)
        columns, scores, each = self._shares(domain, private.rho)
        private.measure(one_way(domain), Gaussian(rho=columns))
        left = self.fit.distinguished(domain, private.transcript)
        state = self.fit.update(self.fit.init(domain, rng=rng), private.transcript, rng=rng)
        estimates = independent = self.fit.model(state).answer(pairs)
        errors = noisy_scores(private, pairs, MarginalGap.plain(independent), scores)
        scale = Gaussian.scale_for(each, private.unit)
        for t in range(1, self.forests + 1):
            measured = private.transcript.cliques
            waiting = {r: estimates[r] for r in pairs if r not in measured}
            noise = projected_error(waiting, scale, left)
            gains = {
                r: errors[r] - float(np.abs(estimates[r] - independent[r]).sum()) - noise[r]
                for r in waiting
            }
            open_mb = self.max_model_mb * t / self.forests
            capacity = Capacity.released(self.fit, domain, private.transcript, open_mb)
            if not (selected := forest(gains, capacity, measured)):
                break
            weights = {r: max(noise[r], 1.0) ** (2 / 3) for r in selected}
            measure_shares(private, weights, each * len(selected), least=self.least_share)
            if t < self.forests:
                state = self.fit.update(state, private.transcript, rng=rng)
                estimates = self.fit.model(state).answer(pairs, rng=rng, scale=scale)
            progress("measuring pairs", float(1 - private.remaining / private.rho))
        private.measure(one_way(domain), Gaussian(rho=private.remaining))
        progress("fitting", 1.0)
        fit = fit_within(self.fit, domain, private.transcript, self.max_model_mb)
        return self.release(private, fit(domain, private.transcript, rng=rng))

    def _shares(self, domain: Domain, rho: Fraction) -> tuple[Fraction, Fraction, Fraction]:
        """Return the budgets of the columns at first, of the scores, and of a pair on average."""
        forests = rho - rho / 3 - rho / 5
        return rho / 3, rho / 10, forests / (self.forests * (len(domain) - 1))
