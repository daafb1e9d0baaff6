"""Forests: for wide tables, forests of dependent pairs, all selected from one noisy score per pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

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
from margrave.mechanisms.parts.budget import split
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.dense_pairs import allocation
from margrave.mechanisms.parts.noisy_scores import noisy_scores
from margrave.mechanisms.parts.tree import forest
from margrave.models import Fit, GraphicalFit, projected_error
from margrave.privacy import Gaussian, MarginalGap, Private
from margrave.release import Release
from margrave.types import Clique, FloatArray, Generator


@dataclass(frozen=True, kw_only=True)
class Forests(Mechanism):
    """Measure all columns, score all pairs once, then measure one forest of pairs after the other.

    A third of the budget measures the columns, a tenth the scores e_ab = ‖M_ab(D) − M_ab(independent)‖₁,
    and forests share the rest. A forest joins columns by pairs of the largest

        e_ab − ‖M_ab(p) − M_ab(independent)‖₁ − noise_ab

    where p is the model so far: what it explains is not measured again. Shares of pairs are ∝ cells^(2/3).
    No forest costs a selection.

    Args:
        forests: The number of forests.
        max_model_mb: Pairs that would take the model beyond it are not selected.
        fit: Any estimator.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.
    """

    forests: int = option(4, "Number of forests of pairs that are measured.", above=0)
    max_model_mb: float = option(5.0, "Size of the model at most, in MB.", above=0)
    fit: Fit = field(default_factory=GraphicalFit)

    name = "forests"
    use = "wide tables: forests of pairs by one noisy score per pair"

    def reads(self, domain: Domain) -> list[Clique]:
        """Return all one-way and two-way marginals."""
        return [*one_way(domain), *two_way(domain)]

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return a third for the columns, then the pairs of all forests, with the largest noise."""
        d, pairs = len(domain), two_way(domain)
        columns, _, rest = self._shares(rho) if pairs else (rho, rho, rho)
        first = PlannedMeasurement.of("every column", one_way(domain), columns / d, unit)
        if not pairs:
            return [first]
        cliques = [*one_way(domain), *pairs]
        weights = sorted(allocation(domain, cliques).values())
        least = Fraction(weights[0] / sum(weights[-d:])) * rest / self.forests
        count = self.forests * (d - 1) + 1  # the last forest may make way for the columns
        scale = Gaussian.scale_for(least, unit)
        return [first, PlannedMeasurement("forests of pairs", cliques, count, scale, at_most=True)]

    def selection(self, domain: Domain, rho: Fraction, records: int, unit: Unit) -> SelectionLoad:
        """Return that nothing is selected privately."""
        return SelectionLoad(per_round=0)

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        self.check_fit(domain, one_way(domain), adaptive=True)

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure columns, score pairs, and measure forests of them."""
        domain, rng, progress = self.begin(private, rng, progress)
        pairs = two_way(domain)
        columns, scores, _ = self._shares(private.rho) if pairs else (private.rho,) * 3
        private.measure(one_way(domain), Gaussian(rho=columns))
        if pairs:
            self._measure_pairs(private, pairs, scores, rng, progress)
        progress("fitting", 1.0)
        return self.release(private, self.fit(domain, private.transcript, rng=rng))

    def _measure_pairs(
        self,
        private: Private,
        pairs: list[Clique],
        rho: Fraction,
        rng: Generator,
        progress: Progress,
    ) -> None:
        domain = private.domain
        left = self.fit.distinguished(domain, private.transcript)
        capacity = Capacity(self.fit, left, self.max_model_mb)
        state = self.fit.update(self.fit.init(domain, rng=rng), private.transcript, rng=rng)
        independent = self.fit.model(state).answer(pairs)
        score = MarginalGap(independent, dict.fromkeys(pairs, 1.0), dict.fromkeys(pairs, 0.0))
        errors = dict(zip(pairs, noisy_scores(private, pairs, score, rho).tolist(), strict=True))
        estimates: Mapping[Clique, FloatArray] = independent
        for t in range(self.forests):
            share = private.remaining / (self.forests - t)
            scale = Gaussian.scale_for(share / len(domain), private.unit)
            noise = projected_error(estimates, scale, left)
            measured = set(private.transcript.cliques)
            gains = {
                r: errors[r] - float(np.abs(estimates[r] - independent[r]).sum()) - noise[r]
                for r in pairs
                if r not in measured
            }
            selected = forest(gains, capacity, measured)
            if selected:
                shares = split(share, [*allocation(domain, selected).values()])
                for r, each in zip(selected, shares, strict=True):
                    private.measure([r], Gaussian(rho=each))
            if selected and t + 1 < self.forests:
                state = self.fit.update(state, private.transcript, rng=rng)
                estimates = self.fit.model(state).answer(pairs, rng=rng, scale=scale)
            progress("measuring pairs", float(1 - private.remaining / private.rho))
        if private.remaining > 0:
            private.measure(one_way(domain), Gaussian(rho=private.remaining))

    @staticmethod
    def _shares(rho: Fraction) -> tuple[Fraction, Fraction, Fraction]:
        """Return the budgets of the columns, of the scores, and of all forests."""
        return rho / 3, rho / 10, rho - rho / 3 - rho / 10
