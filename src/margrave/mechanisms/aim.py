"""AIM: an adaptive and iterative mechanism (McKenna, Mullins, Sheldon, Miklau 2022)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
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
)
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.choice import select_marginal
from margrave.mechanisms.parts.penalty import PENALTIES, PROJECTED, budget_factor, expected_error
from margrave.mechanisms.parts.purpose_sums import PurposeSums
from margrave.mechanisms.parts.selection_log import SelectionLog
from margrave.mechanisms.parts.shortlist import Shortlist
from margrave.models import Answerer, Fit, GraphicalFit, projected_error
from margrave.privacy import Gaussian, Private
from margrave.release import Release
from margrave.types import Clique, FloatArray, Generator
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class AIM(Mechanism):
    """Round by round, measure the marginal whose error matters most and can be reduced most.

    Candidates are the downward closure of the workload; the score of r in round t is

        w_r · ( ||M_r(D) − M_r(p_{t−1})||_1 − noise_r ),    w_r = Σ_s c_s |r ∩ s|

    and the budget of a round is quadrupled (noise halved) when a round improved the model by less
    than its noise.

    Args:
        workload: The marginals that matter; None means all three-way marginals. Those of purposes
            (``Workload.first``) are measured after the columns, and then sums for them (``parts.purpose_sums``).
        max_model_mb: The size of the model at most; it opens as the budget is spent.
        rounds: Number of rounds the initial per-round budget is sized for; by default 16 per
            column. It is one more than there are columns at least, which are measured first.
        alpha: The share of a round's budget that measures.
        penalty: The noise that counts against a marginal: "projected", what is left of it in counts
            (``projected_error``), or "full", sqrt(2/pi) · scale_t · cells_r.
        column_error: Columns are measured again if their mean expected projected error is above this
            share of the row count, and the budget of a round grows by the same factor. None, the paper's form,
            never measures them again. It applies if there are four rounds or more per column.
        shortlist: The number of candidates that a round scores (``parts.shortlist``); 0 scores all, as the paper.
            By default it is 64 if there are more than 3,000 candidates, and else 0.
        generalized: Select by the generalized exponential mechanism, which the paper mentions. Its
            noise follows the weight of each marginal, not the largest.
        fit: Any estimator.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    References:
        McKenna, Mullins, Sheldon, Miklau (2022), AIM, Algorithms 2-4.
    """

    workload: Workload | None = None
    max_model_mb: float = option(80.0, "Size of the model at most, in MB.", above=0)
    rounds: int | None = option(
        None, "Rounds the first budget is meant for; by default 16 per column.", above=0
    )
    alpha: Fraction = option(
        Fraction(9, 10), "Share of a round's budget that measures.", share=True
    )
    penalty: str = option(
        PROJECTED,
        'Noise that counts against a marginal: "projected" or "full", as the paper.',
        choices=PENALTIES,
    )
    column_error: float | None = option(
        0.4, "Largest error of columns before other marginals, as a share of the rows.", above=0
    )
    shortlist: int | None = option(
        None,
        "Candidates that a round scores; 0: all. By default 64 of more than 3,000.",
        least=0,
    )
    generalized: bool = option(
        False, "Select by the generalized exponential mechanism, for uneven weights."
    )
    fit: Fit = field(default_factory=GraphicalFit)

    name = "aim"
    use = "the default: selects the marginals of a workload that matter"
    rounds_per_column = 16
    #: The share of the largest model that the marginals of purposes may fill before the rounds.
    purpose_share: ClassVar[float] = 0.5
    #: The number of candidates up to which all are scored by default.
    scored_at_most: ClassVar[float] = 3000
    #: Cells of marginals that are counted for a run with a shortlist, beside columns and pairs.
    max_counted_cells: ClassVar[int] = 1 << 25

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return the columns, and rounds of the first budget; rounds with less noise cost more."""
        starts, rounds = self._first(domain)
        workload, sums = self.workload_on(domain), self._sums(domain)
        each = self.alpha * (rho - sums.rho(rho)) / rounds
        columns = PlannedMeasurement.of("every column", starts, each, unit)
        first = [PlannedMeasurement.of("purposes, at most", workload.first, each, unit)]
        left = rounds - len(starts) - len(workload.first)
        chosen = PlannedMeasurement.rounds(workload.cliques, left, columns.scale)
        return [columns, *(first if workload.first else []), *sums.steps(rho, unit), chosen]

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        self.check_fit(domain, self._first(domain)[0], adaptive=True)

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Run Algorithm 4."""
        domain, rng, progress = self.begin(private, rng, progress)
        workload = self.workload_on(domain)
        relevance = {r: workload.relevance(r) for r in workload.closure()}  # w_r
        starts, rounds = self._first(domain)
        sums = self._sums(domain)
        rho, memory = (private.rho - sums.rho(private.rho)) / rounds, SelectionLog()
        private.measure(starts, Gaussian(rho=self.alpha * rho * len(starts)))  # Algorithm 2
        state = self.fit.update(self.fit.init(domain, rng=rng), private.transcript, rng=rng)
        model = self.fit.model(state)
        left = self.fit.distinguished(domain, private.transcript)
        capacity = Capacity(self.fit, left, self.max_model_mb)
        rho = self._measure_more(private, model.answer(starts), capacity, rho, sums)
        if len(private.transcript.measurements) > len(starts):
            state = self.fit.update(state, private.transcript, rng=rng)
            model = self.fit.model(state)
            left = self.fit.distinguished(domain, private.transcript)
            progress("measuring", float(1 - private.remaining / private.rho))
        shortlist = self._shortlist(private, relevance, model, left, rho)
        while private.remaining > 0:
            if private.remaining <= 2 * rho:  # Algorithm 3, line 8: the last round
                rho = private.remaining
            share = float(1 - (private.remaining - rho) / private.rho)
            known = private.transcript
            measured = known.cliques
            capacity = Capacity.released(self.fit, domain, known, self.max_model_mb)
            scale = Gaussian.scale_for(self.alpha * rho, private.unit)
            if shortlist is None:
                candidates = capacity.within(list(relevance), measured, share)  # C_t, line 12
            else:
                candidates = shortlist.pick(capacity, measured, share, scale, rng)
            estimates = model.answer(candidates, rng=rng, scale=scale)
            noise = expected_error(self.penalty, estimates, scale, left)
            weights = {r: relevance[r] for r in candidates}
            for_choosing, general = (1 - self.alpha) * rho, self.generalized
            chosen = select_marginal(  # Select, by Equation 1
                private, estimates, weights, noise, rho=for_choosing, generalized=general
            )
            private.measure([chosen], Gaussian(rho=self.alpha * rho))  # Measure
            memory.note(estimates, private.transcript)
            state = self.fit.update(state, private.transcript, rng=rng)  # Estimate
            model = self.fit.model(state)
            learned = np.abs(model.project(chosen).values - estimates[chosen]).sum()
            if shortlist is not None:
                shortlist.note(estimates, noise, scale, chosen, float(learned))
            if learned <= noise[chosen]:  # Anneal, Algorithm 3
                rho *= 4
            progress("measuring", float(1 - private.remaining / private.rho))
        last = self.fit(domain, private.transcript, rng=rng)
        return self.release(private, last, memory)

    def counted_first(self, domain: Domain) -> Collection[Clique]:
        """Return all candidates, or columns, pairs and purposes if a shortlist leaves others out."""
        reads = self.reads(domain)
        if self._counts_all(domain):
            return reads
        return [*self.workload_on(domain).first, *(r for r in reads if len(r) <= 2)]

    def counted_cells(self, domain: Domain) -> int | None:
        """Return the cells that a shortlist leaves to be counted at most; None for all."""
        if self._counts_all(domain):
            return None
        return max(self.max_counted_cells, sum(map(domain.cells, self.counted_first(domain))))

    def selection(self, domain: Domain, rho: Fraction, records: int, unit: Unit) -> SelectionLoad:
        """Return the rounds, and the candidates that each scores."""
        load = super().selection(domain, rho, records, unit)
        scored = self._scored_a_round(len(self.reads(domain)))
        return replace(load, candidates=scored) if scored else load

    def _counts_all(self, domain: Domain) -> bool:
        reads = self.reads(domain)
        few = sum(map(domain.cells, reads)) <= self.max_counted_cells
        return few or not self._scored_a_round(len(reads))

    def _scored_a_round(self, candidates: int) -> int:
        """Return the number of candidates that a round scores; 0 for all."""
        if self.shortlist is None:
            return 64 if candidates > self.scored_at_most else 0
        return self.shortlist if self.shortlist < candidates else 0

    def _shortlist(
        self,
        private: Private,
        relevance: Mapping[Clique, float],
        model: Answerer,
        left: Domain,
        rho: Fraction,
    ) -> Shortlist | None:
        """Measure the scores of pairs, and count the candidates of a run with a shortlist.

        Returns:
            The shortlist; None if all candidates are scored.
        """
        if not (size := self._scored_a_round(len(relevance))):
            return None
        scale = Gaussian.scale_for(self.alpha * rho, private.unit)
        columns = model.answer([r for r in relevance if len(r) == 1])
        errors = projected_error(columns, scale, left)
        shortlist = Shortlist(private.domain, relevance, columns, errors, size)
        shortlist.measure(private)
        if not self._counts_all(private.domain):
            # Later rounds have less noise: a quarter of it is that of two doublings.
            private.prepare(shortlist.limit(self.max_counted_cells, scale / 4))
        return shortlist

    def _measure_more(
        self,
        private: Private,
        columns: Mapping[Clique, FloatArray],
        capacity: Capacity,
        rho: Fraction,
        sums: PurposeSums,
    ) -> Fraction:
        """Measure what the paper does not: purposes, their sums, and columns of few rows again.

        Returns:
            The budget of a round: ``rho``, or a multiple of it if the columns needed more.
        """
        first, starts = self.workload_on(private.domain).first, list(columns)
        if purposes := capacity.beside(first, starts, self.purpose_share):
            private.measure(purposes, Gaussian(rho=self.alpha * rho * len(purposes)))
        sums.measure(private, columns, purposes)
        # with fewer rounds, columns would take more of them than planned
        few_rounds = private.rho < rho * (4 * len(starts) + 2 * len(first))
        if self.column_error is None or few_rounds:
            return rho
        scale = Gaussian.scale_for(self.alpha * rho, private.unit)
        error = self.column_error * private.transcript.total()
        factor = budget_factor(columns, scale, error, capacity.domain)
        if factor > 1:
            again = self.alpha * rho * (factor - 1) * len(starts)
            again = again if again + rho * factor <= private.remaining else private.remaining
            private.measure(starts, Gaussian(rho=again))
        return rho * factor

    def _sums(self, domain: Domain) -> PurposeSums:
        return PurposeSums.of(self.workload_on(domain), domain, self.fit)

    def _first(self, domain: Domain) -> tuple[list[Clique], int]:
        """Return the columns, measured first, and how many measurements the budget is meant for."""
        closure = set(self.workload_on(domain).closure())
        starts = [r for r in one_way(domain) if r in closure]
        named = len(starts) + len(self.workload_on(domain).first)
        return starts, max(self.rounds or self.rounds_per_column * len(domain), named + 1)
