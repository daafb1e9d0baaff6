"""RAP++: marginals of categories, thresholds over numbers, and relaxed records (Vietri et al. 2022)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.marginal import TOTAL
from margrave.mechanisms.common import Mechanism, PlannedMeasurement, Progress, one_way, option
from margrave.mechanisms.parts.budget import after_total, measure_total, total_steps
from margrave.mechanisms.parts.choice import measure_worst
from margrave.mechanisms.parts.mixed_rounds import MixedRounds
from margrave.mechanisms.parts.penalty import FULL, expected_error
from margrave.mechanisms.parts.selection_log import SelectionLog
from margrave.mechanisms.parts.thresholds import RandomThresholds, measure_thresholds
from margrave.models import AnnealedFit, Fit
from margrave.models.entries import EntryKind
from margrave.privacy import Gaussian, Private
from margrave.release import Release
from margrave.types import Clique, Generator
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class RAPPlus(Mechanism):
    """Rounds of marginals, then rounds of random thresholds: select what the records answer worst, measure it, train.

    A random threshold asks for the rows with <h, x> > b in some numbers x (`RandomThresholds`). A number is a column
    with an order and three codes or more.

    Args:
        workload: The marginals; None means all pairs of the columns that are not numbers.
        epochs: Rounds of thresholds. Those of marginals are as many as there are columns that are not numbers.
        thresholds_per_epoch: Thresholds that a round selects and measures, one after the other.
        candidates: Random thresholds that a round selects from.
        columns: Numbers in a threshold at most.
        label: A column of two codes. Each threshold then counts the rows of one of them, as in the paper.
        fit: The records; ``AnnealedFit()`` trains numbers as points.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit. The thresholds get the share of columns that are
        numbers. Half of each round selects.

    References:
        Vietri, Archambeau, Aydore, Brown, Kearns, Roth, Siva, Tang, Wu (2022), Private synthetic data for multitask
        learning and marginal queries.
    """

    workload: Workload | None = None
    epochs: int = option(10, "Rounds of thresholds.", above=0)
    thresholds_per_epoch: int = option(5, "Thresholds measured in a round.", above=0)
    candidates: int = option(200, "Random thresholds a round selects from.", above=0)
    columns: int = option(2, "Numbers in a threshold at most.", above=0)
    label: str | None = option(None, "Column of two codes whose rows thresholds count apart.")
    fit: Fit = field(default_factory=AnnealedFit)

    name = "rap-plus"
    use = "numbers with many bins: random thresholds over several"
    default_ways = None
    weighs_marginals = False

    def planned(self, domain: Domain) -> MixedRounds:
        """Return the marginals and thresholds on a domain, and their rounds."""
        workload = None if self.workload is None else self.workload_on(domain)
        return MixedRounds(workload, RandomThresholds(domain, self.columns, self.label))

    def reads(self, domain: Domain) -> Collection[Clique]:
        """Return the marginals, those in which thresholds are counted, and one that counts the rows."""
        return self.planned(domain).cliques

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return the row count, if it is private, the rounds of marginals, and those of thresholds."""
        planned, steps = self.planned(domain), total_steps(domain, rho, unit)
        for_marginals, for_thresholds = planned.budgets(after_total(rho, unit))
        if rounds := planned.marginal_rounds:
            scale = Gaussian.scale_for(for_marginals / rounds / 2, unit)
            steps.append(PlannedMeasurement.rounds(planned.marginals, rounds, scale, at_most=False))
        if spaces := planned.thresholds.cliques:
            count = self.epochs * min(self.thresholds_per_epoch, self.candidates)
            scale = Gaussian.scale_for(for_thresholds / count / 2, unit, TOTAL)
            what = "chosen thresholds"
            steps.append(PlannedMeasurement(what, spaces, count, scale, adaptive=True, single=True))
        return steps

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        planned = self.planned(domain)
        kinds = {EntryKind.HALF_SPACE} if planned.thresholds.cliques else set()
        marginals = [*one_way(domain), *planned.marginals]
        self.check_fit(domain, marginals, adaptive=True, kinds=kinds)

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure marginals, then thresholds; train after each round."""
        domain, rng, progress = self.begin(private, rng, progress)
        measure_total(private)
        planned, memory = self.planned(domain), SelectionLog()
        for_marginals, for_thresholds = planned.budgets(private.remaining)
        rounds, epochs = planned.marginal_rounds, self.epochs if planned.thresholds.cliques else 0
        drawn = [planned.thresholds.draw(self.candidates, rng) for _ in range(epochs)]
        state = self.fit.update(self.fit.init(domain, rng=rng), private.transcript, rng=rng)
        for t in range(rounds + epochs):
            model = self.fit.model(state)
            if t < rounds:
                rho = for_marginals / rounds / 2
                left = [r for r in planned.marginals if r not in private.transcript.cliques]
                estimates, scale = model.answer(left), Gaussian.scale_for(rho, private.unit)
                noise = expected_error(FULL, estimates, scale, domain)
                measure_worst(
                    private, estimates, memory, penalties=noise, selecting=rho, measuring=rho
                )
            else:
                rho = for_thresholds / epochs
                count = self.thresholds_per_epoch
                measure_thresholds(private, model, drawn[t - rounds], count, rho)
            done = (t + 1) / (rounds + epochs)
            state = self.fit.update(state, private.transcript, rng=rng, done=done)
            progress("measuring", done)
        return self.release(private, self.fit.finish(state, private.transcript, rng=rng), memory)
