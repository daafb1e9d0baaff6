"""Adaptive measurements: select what the model answers worst and measure it (Liu et al. 2021)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.marginal import QueryFamily
from margrave.mechanisms.common import (
    Mechanism,
    PlannedMeasurement,
    Progress,
    SelectionLoad,
    one_way,
    option,
)
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.schedule import GRANULARITIES, RoundSchedule, check_exclusive
from margrave.mechanisms.parts.selection_log import SelectionLog
from margrave.models import Fit
from margrave.models.entries import kinds_asked
from margrave.privacy import Private
from margrave.release import Release
from margrave.types import Clique, Generator
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class AdaptiveMeasurements(Mechanism):
    """T rounds: select q_t by the exponential mechanism on |q(D) − q(D_{t−1})|, measure it, fit D_t.

    Mechanisms differ in the family of distributions and the loss: the ``estimator``. The parameters
    are shared.

    Source: Liu, Vietri, Wu (2021), Iterative methods for private synthetic data, Algorithm 1.
    """

    workload: Workload | None = None
    queries: QueryFamily | None = None
    granularity: str = option(
        "marginal",
        'Unit of measurement of a round: a whole "marginal" or a single "query".',
        choices=GRANULARITIES,
    )
    rounds: int | None = option(None, "Rounds; by default as many as the budget is worth.", above=0)
    alpha: Fraction | None = option(
        Fraction(1, 2), "Choosing and measuring get alpha² to (1 − alpha)² of a round.", share=True
    )

    #: True if it starts from public records, and plans fewer rounds.
    warm_public = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_exclusive(self.workload, self.queries)

    @property
    def share(self) -> Fraction:
        """The alpha in use."""
        return Fraction(1, 2) if self.alpha is None else self.alpha

    @property
    def asks_marginals(self) -> bool:
        """False if a round asks for a single query."""
        return self.queries is None and self.granularity == "marginal"

    @abstractmethod
    def estimator(self) -> Fit:
        """Return the fit that learns a model from the answers so far."""

    def schedule(self, domain: Domain, **more: Any) -> RoundSchedule:
        """Return the rounds of these parameters."""
        shared = {"count": self.rounds, "alpha": self.share, "warm_public": self.warm_public}
        return RoundSchedule.of(
            self.workload_on(domain), domain, self.queries, self.granularity, **shared, **more
        )

    def reads(self, domain: Domain) -> Collection[Clique]:
        """Return the marginals of the queries, and a column in which all records can be counted."""
        return self.schedule(domain).reads()

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return the number of records, if it is private, and the rounds."""
        return self.schedule(domain).steps(rho, unit)

    def config(self) -> dict[str, Any]:
        """Return the parameters, with the alpha in use."""
        return {**super().config(), "alpha": float(self.share)}

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        rounds, capacity = self.schedule(domain), Capacity(self.estimator(), domain)
        smallest = capacity.smallest(rounds.queries.cliques)
        kinds = () if rounds.whole else kinds_asked(rounds.queries)
        self.check_fit(domain, [*one_way(domain), smallest], adaptive=True, kinds=kinds)

    def selection(self, domain: Domain, rho: Fraction, records: int, unit: Unit) -> SelectionLoad:
        """Return how many rounds there would be at most, for so many records."""
        return self.schedule(domain).load(rho, records)

    def expected(self, domain: Domain, rho: Fraction, records: int, unit: Unit) -> int | None:
        """Return how many marginals or queries would be measured of so many records."""
        load = self.schedule(domain).load(rho, records)
        return load.rounds * load.per_round

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Run Algorithm 1."""
        domain, rng, progress = self.begin(private, rng, progress)
        rounds, fit, memory = self.schedule(domain), self.estimator(), SelectionLog()
        capacity = Capacity(fit, domain, self.max_model_mb)
        left, done = rounds.begin(private), 0
        state = fit.update(fit.init(domain, rng=rng), private.transcript, rng=rng)
        model = fit.model(state)  # initialize D_0
        while left:  # for t = 1, ..., T
            fitting = partial(capacity.within, measured=private.transcript.counted)
            before = rounds.select_and_measure(  # Sample; Measure
                private, model, left, rng=rng, memory=memory, fitting=fitting
            )
            done += 1
            share = done / (done + left - 1)
            state = fit.update(state, private.transcript, rng=rng, done=share)  # Update
            model = fit.model(state)  # D_t
            left = rounds.left_after(left, before, model, private.transcript)
            progress("measuring", float(1 - private.remaining / private.rho))
        model = fit.finish(state, private.transcript, rng=rng)  # H: the last one, or an average
        return self.release(private, model, memory)
