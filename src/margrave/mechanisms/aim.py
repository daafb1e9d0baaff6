"""AIM: an adaptive and iterative mechanism (McKenna, Mullins, Sheldon, Miklau 2022)."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from margrave.mechanisms.common import Progress, option
from margrave.mechanisms.parts.aim_plan import AIMPlan
from margrave.mechanisms.parts.annealing import AnnealedBudget
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.choice import select_marginal
from margrave.mechanisms.parts.penalty import PENALTIES, PROJECTED, expected_error
from margrave.mechanisms.parts.selection_log import SelectionLog
from margrave.models import Fit, GraphicalFit
from margrave.privacy import Gaussian, Private
from margrave.release import Release
from margrave.types import Generator
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class AIM(AIMPlan):
    """Round by round, measure the marginal whose error matters most and can be reduced most.

    Candidates are the downward closure of the workload; the score of r in round t is

        w_r · ( ||M_r(D) − M_r(p_{t−1})||_1 − noise_r ),    w_r = Σ_s c_s |r ∩ s|

    and the budget of a round is quadrupled (noise halved) when a round improved the model by less
    than its noise.

    Args:
        workload: The marginals that matter; None means all three-way marginals. Those of purposes
            (``Workload.first``) are measured after the columns, and then sums for them (``parts.purpose_sums``).
        max_model_mb: The size of the model at most; it opens as the budget is spent.
        rounds: Number of rounds the initial per-round budget is sized for; by default 16 per column.
        alpha: The share of a round's budget that measures.
        penalty: The noise that counts against a marginal: "projected", what is left of it in counts
            (``projected_error``), or "full", sqrt(2/pi) · scale_t · cells_r.
        column_error: Columns are measured again if their mean expected projected error is above this
            share of the row count, with up to half of the budget, or all of it where the rows are very few
            (``parts.opening``). None, the paper's form, never does.
        shortlist: The number of candidates that a round scores (``parts.shortlist``); 0 scores all, as the paper.
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
        0.2, "Largest error of columns before other marginals, as a share of the rows.", above=0
    )
    shortlist: int | None = option(
        None,
        "Candidates that a round scores; 0: all. By default 64 of more than 3,000, or of 300 large ones.",
        least=0,
    )
    generalized: bool = option(
        False, "Select by the generalized exponential mechanism, for uneven weights."
    )
    fit: Fit = field(default_factory=GraphicalFit)

    name = "aim"
    use = "the default: selects the marginals of a workload that matter"

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Run Algorithm 4. Numbers are its lines: the paper's text names 7, 12 to 14 and 17, the others follow."""
        domain, rng, progress = self.begin(private, rng, progress)
        workload, memory = self.workload_on(domain), SelectionLog()
        state, model, rho = self.opening(domain).measure(private, rng, progress)  # 7: Algorithm 2
        left = self.fit.distinguished(domain, private.transcript)
        weights = {r: workload.relevance(r) for r in workload.closure()}  # 8: w_r
        budget = AnnealedBudget(private, rho, self.alpha)
        scoring = self.scoring(domain)
        candidates = scoring.begin(private, weights, model, left, budget.scale)
        while budget.another_round():  # 10, and line 8 of Algorithm 3
            known, scale = private.transcript, budget.scale  # sigma_t
            capacity = Capacity.released(self.fit, domain, known, self.max_model_mb)
            scored = candidates.pick(capacity, known.cliques, budget.spent_after, scale, rng)  # 13
            estimates = model.answer(scored, rng=rng, scale=scale)  # M_r(p_{t-1})
            noise = expected_error(self.penalty, estimates, scale, left)
            chosen = select_marginal(  # 14: by Equation 1
                private,
                estimates,
                weights,
                noise,
                rho=budget.selecting,
                generalized=self.generalized,
            )
            private.measure([chosen], Gaussian(rho=budget.measuring))  # 15
            memory.note(estimates, private.transcript)
            state = self.fit.update(state, private.transcript, rng=rng)  # 16
            model = self.fit.model(state)
            learned = float(np.abs(model.project(chosen).values - estimates[chosen]).sum())
            candidates.note(estimates, noise, scale, chosen, learned)
            budget.anneal(learned, noise[chosen])  # 17: Algorithm 3
            progress("measuring", budget.spent)
        return self.release(private, self.fit(domain, private.transcript, rng=rng), memory)  # 19
