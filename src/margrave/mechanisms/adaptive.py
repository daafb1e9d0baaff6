"""Adaptive measurements: choose what the model answers worst, measure it, learn from it, T times (Liu et al. 2021)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np

from margrave.marginal import Queries
from margrave.mechanisms.choices import either
from margrave.mechanisms.common import (
    CELLS_PER_MB,
    LARGEST_MODEL_MB,
    Memory,
    Progress,
    Step,
    check_fit,
    one_way,
    parameter,
    release_of,
    silent,
    workload_config,
    workload_or_default,
)
from margrave.mechanisms.rounds import (
    Rounds,
    check_rounds,
    exact_alpha,
    is_whole,
    queries_config,
)
from margrave.models.entries import kinds_asked
from margrave.models.protocol import Fit, Model
from margrave.models.specs import fit_config
from margrave.parameters import check_parameters
from margrave.privacy import Private, Unit
from margrave.release import Release
from margrave.schema.domain import Domain
from margrave.typing import Clique
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class AdaptiveMeasurements(ABC):
    """T rounds: choose q_t by the exponential mechanism on |q(D) − q(D_{t−1})|, measure it, and learn D_t from all.

    What differs is the family of distributions and the loss: ``estimator`` is that of a mechanism, and ``released``
    what it makes of the last model. The parameters are those that all of them have.

    Source: Liu, Vietri, Wu (2021), Iterative methods for private synthetic data, Algorithm 1.
    """

    workload: Workload | None = None
    queries: Queries | None = None
    granularity: str = parameter("marginal", 'What a round measures: a whole "marginal" or a single "query".')
    rounds: int | None = parameter(None, "Rounds; by default as many as the budget is worth.", above=0)
    alpha: Fraction | None = parameter(
        Fraction(1, 2), "Choosing and measuring get alpha² to (1 − alpha)² of a round.", above=0
    )

    name: ClassVar[str]
    ways: ClassVar[int] = 3
    informed: ClassVar[bool] = False
    """Whether it begins with public records, and plans fewer rounds."""

    def __post_init__(self) -> None:
        check_parameters(self)
        check_rounds(self.rounds, type(self).__name__)
        is_whole(self.granularity)
        either(self.workload, self.queries)
        if self.alpha is not None:
            object.__setattr__(self, "alpha", exact_alpha(self.alpha))

    @property
    def share(self) -> Fraction:
        """alpha, or what it is by default."""
        return Fraction(1, 2) if self.alpha is None else self.alpha

    @property
    def most_mb(self) -> float | None:
        """The size of the model at most; None for no limit but what can be estimated at all."""
        return None

    @abstractmethod
    def estimator(self) -> Fit:
        """What learns a model from the answers so far."""

    def released(self, model: Model) -> Model:
        """What is released of the last round's model."""
        return model

    def reads(self, domain: Domain) -> Collection[Clique]:
        """The marginals of the queries, and a column in which all records can be counted."""
        return self._rounds(domain).reads()

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """The number of records, if it is private, and the rounds."""
        return self._rounds(domain).steps(rho, unit)

    def config(self) -> dict[str, Any]:
        """The parameters."""
        return {
            "name": self.name,
            "workload": workload_config(self.workload, self.queries, ways=self.ways),
            "queries": queries_config(self.queries),
            "granularity": self.granularity,
            "rounds": self.rounds,
            "alpha": float(self.share),
            **fit_config(self.estimator()),
        }

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise what would keep a run from its end, before the table is read."""
        rounds = self._rounds(domain)  # queries of another domain, weights that nothing can be made of
        kinds = () if rounds.whole else kinds_asked(rounds.queries)
        check_fit(self.estimator(), domain, one_way(domain), self.most_mb, adaptive=True, kinds=kinds)

    def turns(self, domain: Domain, rho: Fraction, records: float, unit: Unit) -> int:
        """How many rounds there would be at most, for so many records."""
        return self._rounds(domain).worth(rho, records)

    def expected(self, domain: Domain, rho: Fraction, records: float, unit: Unit) -> int:
        """Return how many marginals or queries would be measured of so many records."""
        rounds = self._rounds(domain)
        return rounds.worth(rho, records) * rounds.each

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Choose, measure, learn, T times."""
        memory = Memory()
        for _, model in self.adapt(private, memory, rng, progress):
            last = model
        return release_of(private, self.released(last), self.config(), memory)

    def adapt(
        self, private: Private, memory: Memory, rng: np.random.Generator | None, progress: Progress | None
    ) -> Iterator[tuple[float, Model]]:
        """The rounds: after each, what share of them is done, and its model."""
        rng, progress = np.random.default_rng() if rng is None else rng, progress or silent
        domain, fit = private.domain, self.estimator()
        self.check(domain, private.unit)
        rounds, done = self._rounds(domain), 0
        left = rounds.begin(private)
        model = fit(domain, private.transcript, rng=rng)
        while left:
            fitting = partial(self._fitting, fit, domain, private.transcript.cliques)
            before = rounds.ask(private, model, left, rng=rng, memory=memory, fitting=fitting)
            model = fit(domain, private.transcript, rng=rng, warm=model)
            left, done = rounds.left_after(left, before, model, private.transcript), done + 1
            progress("measuring", float(1 - private.remaining / private.rho))
            yield done / (done + left), model

    def _fitting(
        self, fit: Fit, domain: Domain, measured: Collection[Clique], left: Collection[Clique]
    ) -> list[Clique]:
        """Those that the model has room for beside what was measured; the smallest, where there is none."""
        limit = (LARGEST_MODEL_MB if self.most_mb is None else self.most_mb) * CELLS_PER_MB
        sizes = fit.cells_with(domain, tuple(measured), tuple(left))
        found = [r for r, size in zip(left, sizes, strict=True) if size <= limit]
        return found or [min(zip(left, sizes, strict=True), key=itemgetter(1))[0]]

    def _workload(self, domain: Domain) -> Workload:
        return workload_or_default(self.workload, domain, ways=self.ways)

    def _rounds(self, domain: Domain, **more: Any) -> Rounds:
        shared = {"count": self.rounds, "alpha": self.share, "informed": self.informed, **more}
        return Rounds.of(self._workload(domain), domain, self.queries, self.granularity, **shared)
