"""AIM with public data: marginals that public records answer well are not measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import sqrt

import numpy as np

from margrave.mechanisms.common import Progress, one_way, option
from margrave.mechanisms.parts.aim_pub_plan import AIMPubPlan
from margrave.mechanisms.parts.annealing import AnnealedBudget
from margrave.mechanisms.parts.budget import measure_total
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.choice import select_marginal
from margrave.mechanisms.parts.public import check_public_table, not_public
from margrave.mechanisms.parts.public_readings import PublicReadings
from margrave.mechanisms.parts.selection_log import SelectionLog
from margrave.models import Fit, GraphicalFit, projected_error
from margrave.privacy import Gaussian, Private
from margrave.public_table import PublicTable
from margrave.release import Release
from margrave.types import Generator
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class AIMPub(AIMPubPlan):
    """AIM that starts from public marginals and is free to leave them.

    1. Every column is measured, as in AIM.
    2. Public marginals are raked to the columns and get a scale for each cell (``PublicPrior``).
       Those expected to bring the estimate closest to the truth are read (``PublicReadings``).
    3. AIM's rounds follow, in a model of at most sqrt(share of the budget that is spent) ·
       ``max_model_mb``: rounds are fewer than AIM's, with more budget each. A reading counts by its scales,
       which are taken anew with every measurement, until its pairs of columns are measured.

    Args:
        public: The public table; marginals of columns that it lacks can only be measured. If it
            holds columns of the private records (``same_records``), only others are measured.
        rounds: Number of measurements the initial budget is sized for; by default 6 per column, or
            AIM's 16 where the whole domain fits into the model. Other parameters are AIM's.

    Privacy:
        The whole budget, exactly. The public table is not protected.

    References:
        McKenna et al. (2022), AIM; Fuentes et al. (2024), JAM-PGM, Section 6.
    """

    public: PublicTable | None = None
    workload: Workload | None = None
    max_model_mb: float = option(80.0, "Size of the model at most, in MB.", above=0)
    rounds: int | None = option(
        None,
        "Rounds the first budget is meant for; by default 6 per column, 16 where the whole domain fits into the model.",
        above=0,
    )
    alpha: Fraction = option(
        Fraction(9, 10), "Share of a round's budget that measures.", share=True
    )
    fit: Fit = field(default_factory=GraphicalFit)

    name = "aim-pub"
    use = "a public table: AIM that starts from its marginals"
    own_columns = True

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure single columns, read public marginals, then run AIM's rounds."""
        # The most cells that are computed at the end to see how far estimates were off. Readings
        # join many marginals, so that a few of these would take most of a run; AIM's models need
        # a third of it on such tables, and have no limit.
        max_hindsight_cells = 100_000_000
        domain, rng, progress = self.begin(private, rng, progress)
        public = check_public_table(self.public, domain, own_columns=True)
        workload = self.workload_on(domain)
        closure, capacity = workload.closure(), Capacity(self.fit, domain, self.max_model_mb)
        relevance = {r: workload.relevance(r) for r in closure}
        askable = not_public(public, closure, private)
        starts = [r for r in one_way(domain) if r in set(askable)]
        measure_total(private)
        memory = SelectionLog(max_hindsight_cells)
        rho = private.remaining / self._first_budget(domain)
        budget = AnnealedBudget(private, rho, self.alpha)
        private.measure(starts, Gaussian(rho=budget.measuring * len(starts)))
        readings = PublicReadings.of(public, capacity, closure, private.transcript, budget.scale)
        state = readings.choose(private.transcript, relevance, rng)
        model = self.fit.model(state)
        while budget.another_round():
            spent, scale = budget.spent_after, budget.scale
            share, keep = sqrt(spent), readings.keeping(spent)
            candidates = readings.candidates(askable, private.transcript.cliques, share, keep)
            estimates = model.answer(candidates, rng=rng, scale=scale)
            noise = projected_error(estimates, scale, domain)
            chosen = select_marginal(private, estimates, relevance, noise, rho=budget.selecting)
            private.measure([chosen], Gaussian(rho=budget.measuring))
            memory.note(estimates, private.transcript)
            known = readings.revise(private.transcript, share, keep)
            state = self.fit.update(state, private.transcript + known, rng=rng)
            model = self.fit.model(state)
            learned = np.abs(model.project(chosen).values - estimates[chosen]).sum()
            budget.anneal(float(learned), noise[chosen])
            progress("measuring", budget.spent)
        last = self.fit(domain, private.transcript + readings.evidence, rng=rng)
        return self.release(private, last, memory, readings=readings.evidence)
