"""PrivBayes: a Bayesian network, chosen privately, and the marginals of its families (Zhang et al. 2014, 2017)."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from margrave.mechanisms.common import Progress, option
from margrave.mechanisms.parts.budget import measure_start
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.choice import measure_worst
from margrave.mechanisms.parts.network_families import GrowingNetwork, family_cells
from margrave.mechanisms.parts.network_plan import NetworkPlan
from margrave.mechanisms.parts.selection_log import SelectionLog
from margrave.models import Fit, GraphicalFit
from margrave.privacy import Dependence, Gaussian, Private
from margrave.release import Release
from margrave.types import Generator


@dataclass(frozen=True, kw_only=True)
class PrivBayes(NetworkPlan):
    """Grow a Bayesian network column by column, and measure each column with its parents.

    The first column is drawn uniformly. Then, d - 1 times, a column X that is not in the network and parents P in it
    are selected by the exponential mechanism, on one of two scores:

        gap          ||M_XP(D) − M_XP(p)||_1: the error of the estimate p from all answers so far
        dependence   ||M_XP(D) − M_X(D) ⊗ M_P(D) / n||_1: the paper's, 2n times its R

    P is maximal such that the mean count in a cell of (X, P) is at least theta times the mean size of its noise,
    within public limits on families (``parts.network_families``). With "gap" a marginal is measured as soon as it is
    selected; with "dependence" all of them after the last selection. A column that cannot have parents is drawn
    uniformly, and its share measures the columns that are in no family, or else families again.

    Args:
        network_share: Beta: the share of the budget that selects, after the one-way marginals.
        theta: The usefulness that a marginal needs, by a row count that is public or measured.
        one_way_share: The share that measures all one-way marginals first. 0 is the paper's form.
        max_parents: The most parents of a column.
        score: "gap" or "dependence".
        max_model_mb: Only families that keep the model within it are candidates.
        fit: Any estimator. `NetworkFit` is the paper's, `GraphicalFit` that of PrivBayes+PGM.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    References:
        Zhang, Cormode, Procopiuc, Srivastava, Xiao (2017), PrivBayes: private data release via Bayesian networks;
        McKenna, Sheldon, Miklau (2019) for PrivBayes+PGM.
    """

    network_share: Fraction = option(
        Fraction(1, 10), "Share of the budget that selects the network.", share=True
    )
    theta: float = option(2.0, "Mean count of a cell at least, in mean sizes of noise.", above=0)
    one_way_share: Fraction = option(
        Fraction(1, 5), "Share of the budget that measures every column first.", least=0, below=1
    )
    max_parents: int = option(4, "Parents of a column at most.", above=0)
    score: str = option(
        "gap",
        'Score of columns with their parents: "gap", or "dependence", as the paper.',
        choices=("gap", "dependence"),
    )
    max_model_mb: float = option(80.0, "Size of the model at most, in MB.", above=0)
    fit: Fit = field(default_factory=GraphicalFit)

    name = "privbayes"
    use = "a quick release: each column with its parents in a network"

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Select the network (GreedyBayes) and measure its families (NoisyConditionals); fit."""
        domain, rng, progress = self.begin(private, rng, progress)
        d, memory, at_once = len(domain), SelectionLog(), self.score == "gap"
        measure_start(private, self.one_way_share)
        selecting = self.network_share * private.remaining / max(1, d - 1)  # epsilon_1 / (d - 1)
        measured = (1 - self.network_share) * private.remaining  # epsilon_2
        measuring = measured / max(1, d - 1)
        records, unit = private.transcript.total(), private.unit
        useful = family_cells(domain, self.theta, measured, records, unit, nested=not at_once)
        cells = min(useful, self.max_cells)
        scale, state = Gaussian.scale_for(measuring, unit), self.fit.init(domain, rng=rng)
        left = self.fit.distinguished(domain, private.transcript)
        capacity = Capacity(self.fit, left, self.max_model_mb)
        network = GrowingNetwork(domain, capacity, self.max_parents, cells)
        network.add_alone(rng)  # the first column
        for t in range(1, d):  # GreedyBayes
            if not (candidates := network.candidates()):
                network.add_alone(rng)
                continue
            if at_once:
                state = self.fit.update(state, private.transcript, rng=rng)
                estimates = self.fit.model(state).answer(list(candidates), rng=rng, scale=scale)
                (chosen,) = measure_worst(
                    private, estimates, memory, selecting=selecting, measuring=measuring
                )
            else:
                chosen = private.select(list(candidates), Dependence(candidates), rho=selecting)
            network.add(chosen)
            progress("choosing parents", t / d)
        if rest := network.rest(measured=at_once):  # NoisyConditionals
            private.measure(rest, Gaussian(rho=private.remaining))
        progress("fitting", 1.0)
        return self.release(private, self.fit(domain, private.transcript, rng=rng), memory)
