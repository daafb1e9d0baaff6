"""PrivMRF: a Markov graph first, then marginals inside its cliques (Cai, Lei, Wei, Xiao 2021)."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import ClassVar

from margrave.mechanisms.common import Progress, option
from margrave.mechanisms.parts import markov_graph as graphs
from margrave.mechanisms.parts.budget import check_shares, measure_total
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.choice import measure_largest, measure_worst
from margrave.mechanisms.parts.markov_plan import MarkovPlan
from margrave.mechanisms.parts.noisy_scores import noisy_dependences
from margrave.mechanisms.parts.penalty import useful_cells
from margrave.mechanisms.parts.selection_log import SelectionLog
from margrave.models import Fit, GraphicalFit
from margrave.privacy import Gaussian, Private
from margrave.release import Release
from margrave.types import Generator


@dataclass(frozen=True, kw_only=True)
class PrivMRF(MarkovPlan):
    """Fix a Markov graph by noisy dependences, then measure useful marginals inside its cliques.

    First one marginal per column at most, by the merit of its other columns as predictors of it. Then four fifths of
    a marginal per column, selected in rounds by ||M_r(D) − M_r(p_{t−1})||_1. All have the same noise. A marginal is
    useful if theta times its noise is at most the row count.

    Args:
        theta: The least ratio of the row count to the noise of a useful marginal, in sum.
        ways: The most columns of a marginal. A size of more than 30,000 marginals is left out.
        max_cells: The most cells of a marginal of two columns or more. All are counted ahead.
        candidates: The most candidates of a round, drawn at random.
        noisy_scores: Measure the scores of all candidates, as the paper, and select none by the exponential mechanism.
        graph_share: The share of the budget for the graph, without that of a private row count.
        selection_share: The share of the same budget that selects. The rest measures marginals.
        max_model_mb: The size of the graph's cliques together at most.
        fit: Any estimator.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    References:
        Cai, Lei, Wei, Xiao (2021), Data synthesis via differentially private Markov random fields.
    """

    theta: float = option(6.0, "Row count by noise of a useful marginal, at least.", above=0)
    ways: int = option(4, "Columns of a marginal at most.", least=2)
    max_cells: int = option(10_000, "Cells of a marginal of several columns at most.", above=0)
    candidates: int = option(400, "Candidates of a round at most.", above=0)
    noisy_scores: bool = option(False, "Select by noisy scores of all candidates.")
    graph_share: Fraction = option(
        Fraction(1, 10), "Share of the budget for the graph.", share=True
    )
    selection_share: Fraction = option(
        Fraction(1, 10), "Share of the budget that selects.", share=True
    )
    max_model_mb: float = option(80.0, "Size of the model at most, in MB.", above=0)
    fit: Fit = field(default_factory=GraphicalFit)

    name = "privmrf"
    use = "a quick release: marginals inside a graph of columns"
    default_ways = None
    max_rounds: ClassVar[int] = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shares(graph_share=self.graph_share, selection_share=self.selection_share)

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Fix the graph, measure its first marginals, then select and measure others."""
        domain, rng, progress = self.begin(private, rng, progress)
        if len(domain) == 1:
            return self.release_columns(private, rng, progress)
        records, rho = measure_total(private), private.remaining
        dependences = noisy_dependences(private, rho * self.graph_share)
        capacity, memory = Capacity(self.fit, domain, self.max_model_mb), SelectionLog()
        graph = graphs.markov_graph(dependences, capacity)
        scale = self._scale(domain, private.rho, private.unit)
        cells = min(useful_cells(records, scale, self.theta), self.max_cells)
        useful = graphs.small_marginals(domain, graph, cells, self.ways)
        first = graphs.first_marginals(domain, graph, dependences, useful)
        count = min(self._selected(domain), len(set(useful).difference(first)))
        measuring = rho * (1 - self.graph_share - self.selection_share) / (len(first) + count)
        private.measure(first, Gaussian(rho=measuring * len(first) if count else private.remaining))
        state = self.fit.update(self.fit.init(domain, rng=rng), private.transcript, rng=rng)
        measure = measure_largest if self.noisy_scores else partial(measure_worst, memory=memory)
        rounds = min(max(len(domain) // 2, 1), self.max_rounds, count)
        for t in range(rounds):
            measured = private.transcript.cliques
            left = capacity.within([r for r in useful if r not in measured], measured)
            if not (candidates := graphs.drawn(left, self.candidates, rng)):
                break
            m = min(count * (t + 1) // rounds - count * t // rounds, len(candidates))
            estimates = self.fit.model(state).answer(candidates, rng=rng, scale=scale)
            selecting = rho * self.selection_share / count
            measure(private, estimates, count=m, selecting=selecting, measuring=measuring)
            state = self.fit.update(state, private.transcript, rng=rng)
            progress("measuring", (t + 1) / rounds)
        if private.remaining > 0:  # too few candidates
            again = len(first) + count - len(private.transcript.measurements)
            private.measure(first[:again], Gaussian(rho=private.remaining))
        progress("fitting", 1.0)
        return self.release(private, self.fit(domain, private.transcript, rng=rng), memory)
