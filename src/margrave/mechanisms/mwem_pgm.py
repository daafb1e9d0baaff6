"""MWEM+PGM: MWEM's loop around a graphical model (McKenna et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.mechanisms.common import Mechanism, PlannedMeasurement, Progress, one_way, option
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.choice import select_marginal
from margrave.mechanisms.parts.selection_log import SelectionLog
from margrave.models import Fit, GraphicalFit
from margrave.privacy import Gaussian, Private
from margrave.release import Release
from margrave.types import Clique, Generator
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class MWEMPGM(Mechanism):
    """T rounds: select the marginal that is worst approximated, measure it whole, estimate again.

    The score of r is c_r (||M_r(D) − M_r(p_{t−1})||_1 − cells_r), with the workload's weight c_r
    and its possible cells.

    Args:
        workload: The marginals that matter; None means all three-way marginals.
        rounds: T; None means one per column.
        measure_one_way: First measure all one-way marginals with one round's budget. False is the
            paper's form: a uniform start.
        max_model_mb: Only marginals that keep the model within it are candidates. None is the
            paper's form: no limit but what can be estimated at all, ``MAX_MODEL_MB``.
        growing: Round t of T allows t / T of ``max_model_mb``, as in the authors' runs.
        alpha: The share of a round's budget that measures. The rest selects.
        generalized: Select by the generalized exponential mechanism. Its noise follows the weight
            of each marginal, not the largest.
        fit: Any estimator.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    References:
        McKenna, Mullins, Sheldon, Miklau (2022), Algorithm 1; Hardt, Ligett, McSherry (2012).
    """

    workload: Workload | None = None
    rounds: int | None = option(None, "Rounds; by default one per column.", above=0)
    measure_one_way: bool = option(True, "Measure every column first.")
    max_model_mb: float | None = option(80.0, "Size of the model at most, in MB.", above=0)
    growing: bool = option(False, "Let the size limit grow to its value round by round.")
    alpha: Fraction = option(Fraction(1, 2), "Share of a round's budget that measures.", share=True)
    generalized: bool = option(
        False, "Select by the generalized exponential mechanism, for uneven weights."
    )
    fit: Fit = field(default_factory=GraphicalFit)

    name = "mwem-pgm"
    use = "a fixed number of rounds, each with one selected marginal"

    def reads(self, domain: Domain) -> list[Clique]:
        """Return the workload, and one-way marginals for the start and where nothing else fits."""
        columns = one_way(domain) if self._reads_columns else []
        return list(dict.fromkeys([*columns, *self.workload_on(domain).cliques]))

    @property
    def _reads_columns(self) -> bool:
        """True if one-way marginals may be measured: in the paper's form another always fits."""
        return self.measure_one_way or self.max_model_mb is not None

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return equal shares for the columns and for each round, alpha of which measures."""
        rounds, cliques = self.rounds or len(domain), self.workload_on(domain).cliques
        share = rho / (rounds + self.measure_one_way)
        scale = Gaussian.scale_for(self.alpha * share, unit)
        chosen = PlannedMeasurement.rounds(cliques, rounds, scale, at_most=False)
        columns = PlannedMeasurement.columns(domain, share, unit)
        return [columns, chosen] if self.measure_one_way else [chosen]

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        workload = self.workload_on(domain).cliques
        least = one_way(domain) if self._reads_columns else [min(workload, key=domain.cells)]
        self.check_fit(domain, least, adaptive=True)

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Run Algorithm 1."""
        domain, rng, progress = self.begin(private, rng, progress)
        workload = self.workload_on(domain)
        rounds, memory = self.rounds or len(domain), SelectionLog()
        rho = private.rho / (rounds + self.measure_one_way)
        if self.measure_one_way:
            private.measure(one_way(domain), Gaussian(rho=rho))
        state = self.fit.update(self.fit.init(domain, rng=rng), private.transcript, rng=rng)
        model = self.fit.model(state)  # initialize p_0
        scale = Gaussian.scale_for(self.alpha * rho, private.unit)
        for t in range(rounds):
            known = private.transcript
            measured = known.cliques
            capacity = Capacity.released(self.fit, domain, known, self.max_model_mb)
            open_share = (t + 1) / rounds if self.growing else 1.0
            within = capacity.within(workload.cliques, measured, open_share)
            candidates = within or one_way(domain)
            estimates = model.answer(candidates, rng=rng, scale=scale)
            chosen = select_marginal(
                private,
                estimates,
                weights={r: workload.weights.get(r, 1.0) for r in candidates},
                penalties={r: float(domain.possible(r)) for r in candidates},
                rho=(1 - self.alpha) * rho,
                generalized=self.generalized,
            )
            private.measure([chosen], Gaussian(rho=self.alpha * rho))  # measure
            memory.note(estimates, private.transcript)
            state = self.fit.update(state, private.transcript, rng=rng)
            model = self.fit.model(state)  # estimate p_t
            progress("measuring", (t + 1) / rounds)
        last = self.fit(domain, private.transcript, rng=rng)
        return self.release(private, last, memory)
