"""JAM-PGM: joint adaptive measurements, private or public (Fuentes et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.mechanisms.common import PlannedMeasurement, Progress, option
from margrave.mechanisms.parts.budget import after_total, measure_total, total_steps
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.penalty import FULL, PENALTIES, expected_error
from margrave.mechanisms.parts.public import check_public_table, scaled
from margrave.mechanisms.parts.readings import ReadsPublic, read, trust_alike
from margrave.mechanisms.parts.selection_log import SelectionLog
from margrave.models import Fit, GraphicalFit
from margrave.privacy import Gaussian, Improvement, Private
from margrave.public_table import PublicTable
from margrave.release import Release
from margrave.transcript import Transcript
from margrave.types import Generator
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class JAMPGM(ReadsPublic):
    """Round by round, measure a marginal with noise or read it from public data.

    Candidates are the downward closure of the workload, once to be measured and once to be read;
    with n private and n' public records the scores in round t are

        to measure r:   ||M_r(D) − M_r(p)||_1 − sqrt(2/pi) · scale_t · cells_r
        to read r:      ||M_r(D) − M_r(p)||_1 − ||M_r(D) − (n/n') M_r(public)||_1

    A reading costs nothing but the selection. The rest of its round goes to the later ones.

    Args:
        public: The public table; marginals of columns that it lacks can only be measured.
        workload: None means all three-way marginals, which count alike whatever their weights.
        rounds: T; None means four per column.
        alpha: The share of a round that measures.
        equal_weights: The paper's form: the estimate trusts all evidence alike. Without, a
            measurement counts by its noise, and a reading by that of its round. ``refit`` does so.
        penalty: The noise that counts against measuring: "full", or "projected" as in ``AIM``.
        max_model_mb: The size of the model at most; it opens as the budget is spent.
        fit: Any estimator that takes public marginals.

    Privacy:
        The whole budget, exactly. The public table is not protected.

    References:
        Fuentes et al. (2024), Joint selection: adaptively incorporating public information for
        private synthetic data, Algorithm 2.
    """

    public: PublicTable | None = None
    workload: Workload | None = None
    rounds: int | None = option(None, "Rounds; by default four per column.", above=0)
    alpha: Fraction = option(Fraction(4, 5), "Share of a round's budget that measures.", share=True)
    equal_weights: bool = option(
        False, "Weigh measurements and public marginals equally in the estimate, as the paper does."
    )
    penalty: str = option(
        FULL,
        'Noise that counts against measuring: "full", as the paper, or "projected".',
        choices=PENALTIES,
    )
    max_model_mb: float = option(80.0, "Size of the model at most, in MB.", above=0)
    fit: Fit = field(default_factory=GraphicalFit)

    name = "jam-pgm"
    use = "a public table: reads a marginal there or measures it"
    weighs_marginals = False

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return the number of records, if it is private, and the rounds: fewer where some read."""
        rounds, cliques = self.rounds or 4 * len(domain), self.workload_on(domain).cliques
        scale = Gaussian.scale_for(self.alpha * after_total(rho, unit) / rounds, unit)
        return [*total_steps(domain, rho, unit), PlannedMeasurement.rounds(cliques, rounds, scale)]

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Run Algorithm 2."""
        domain, rng, progress = self.begin(private, rng, progress)
        closure = self.workload_on(domain).closure()
        capacity = Capacity(self.fit, domain, self.max_model_mb)
        public = check_public_table(self.public, domain)
        measure_total(private)
        publics = scaled(public, domain, closure, private.transcript.total())
        rounds, readings, memory = self.rounds or 4 * len(domain), Transcript(), SelectionLog()
        evidence = private.transcript
        state = self.fit.update(self.fit.init(domain, rng=rng), evidence, rng=rng)
        model = self.fit.model(state)  # initialize p
        for t in range(rounds):
            rho = private.remaining / (rounds - t)  # rho_t
            scale = Gaussian.scale_for(self.alpha * rho, private.unit)  # sigma_t
            share = float(1 - private.remaining / private.rho)
            fitting = set(capacity.within(closure, [e.clique for e in evidence.evidence], share))
            candidates = [r for r in closure if len(r) == 1 or r in fitting]  # C_t
            estimates = model.answer(candidates, rng=rng, scale=scale)
            score = Improvement(  # Equation 4
                estimates,
                publics={r: publics[r] for r in candidates if r in publics},
                weights=dict.fromkeys(candidates, 1.0),
                penalties=expected_error(self.penalty, estimates, scale, domain),
            )
            chosen = private.select(candidates, score, rho=(1 - self.alpha) * rho)  # select
            to_read = private.transcript.selections[-1].public
            if to_read:  # measure publicly
                readings += read(chosen, publics[chosen], scale, public)
            if not to_read or t == rounds - 1:  # measure privately
                private.measure([chosen], Gaussian(rho=self.alpha * rho))
                memory.note(estimates, private.transcript)
            evidence = private.transcript + readings
            evidence = trust_alike(evidence) if self.equal_weights else evidence
            state = self.fit.update(state, evidence, rng=rng)  # estimate
            model = self.fit.model(state)
            progress("measuring", (t + 1) / rounds)
        last = self.fit(domain, evidence, rng=rng)
        return self.release(private, last, memory, readings=readings)
