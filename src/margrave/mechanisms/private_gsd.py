"""Private-GSD: noisy answers of many queries, and a genetic search for the records that give them (Liu et al. 2023)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.errors import InputError
from margrave.marginal import Queries
from margrave.mechanisms.common import (
    Memory,
    Progress,
    Step,
    check_size,
    parameter,
    release_of,
    silent,
    split,
    workload_config,
    workload_or_default,
)
from margrave.mechanisms.rounds import Rounds, check_rounds, exact_alpha, is_whole, queries_config
from margrave.models import Fit, GeneticFit
from margrave.models.protocol import fit_config
from margrave.parameters import check_parameters
from margrave.privacy import Gaussian, Private, Unit
from margrave.release import Release
from margrave.schema.domain import Domain
from margrave.typing import Clique
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class PrivateGSD:
    """Measure every marginal of a workload at once, or the worst in rounds; a genetic search finds records for them.

    At once, the shares of the budget are in proportion to weight^(2/3) of the marginals, which for equal scales of
    error minimises their weighted sum. ``adaptive``: in each of ``rounds``, the marginal or query that the records
    answer worst is chosen and measured, and the search goes on from those records. ``granularity``: a round asks for a
    whole "marginal" or a single "query"; ``queries``: linear queries instead of the workload's cells, for rounds alone.
    ``alpha``: a round's budget goes to choosing and to measuring as alpha² to (1 − alpha)². ``workload``: None means
    all two-way marginals, as in the paper. ``fit``: the search, and its size.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit.

    Source: Liu, Tang, Vietri, Wu (2023), Generating private synthetic data with genetic algorithms. Departures: the
    search is ``GeneticFit``'s, which says how the paper's is had; rounds measure whole marginals by default.
    """

    workload: Workload | None = None
    queries: Queries | None = None
    adaptive: bool = parameter(False, "Measure the worst in rounds, instead of the whole workload at once.")
    granularity: str = parameter("marginal", 'What a round measures: a whole "marginal" or a single "query".')
    rounds: int | None = parameter(None, "Rounds; by default one per column (of pairs two), or by the budget.", above=0)
    alpha: Fraction = parameter(
        Fraction(1, 2), "Choosing and measuring get alpha² to (1 − alpha)² of a round.", above=0
    )
    fit: Fit = field(default_factory=GeneticFit)

    def __post_init__(self) -> None:
        check_parameters(self)
        check_rounds(self.rounds, "Private-GSD")
        if not is_whole(self.granularity) and not self.adaptive:
            raise InputError("Single queries are measured in rounds only.", remedy="Set adaptive=True (--adaptive).")
        if self.queries is not None and not self.adaptive:
            raise InputError("Linear queries are measured in rounds only.", remedy="Set adaptive=True.")
        object.__setattr__(self, "alpha", exact_alpha(self.alpha))

    def reads(self, domain: Domain) -> Collection[Clique]:
        """The workload; in rounds, also a column in which all records can be counted."""
        return self._rounds(domain).reads() if self.adaptive else self._workload(domain).cliques

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """Every marginal with its share, or the rounds."""
        if self.adaptive:
            return self._rounds(domain).steps(rho, unit)
        shares = self._shares(domain, rho)
        alike = {share: [r for r, other in shares.items() if other == share] for share in shares.values()}
        if len(alike) == 1:
            return [Step.of("the workload", list(shares), rho / len(shares), unit)]
        return [Step.of(", ".join(clique), [clique], share, unit) for clique, share in shares.items()]

    def config(self) -> dict[str, Any]:
        """The parameters."""
        return {
            "name": "private-gsd",
            "workload": workload_config(self.workload, self.queries, ways=2),
            "queries": queries_config(self.queries),
            "adaptive": self.adaptive,
            "granularity": self.granularity,
            "rounds": self.rounds,
            "alpha": float(self.alpha),
            **fit_config(self.fit),
        }

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure, and search; T times, where it is adaptive."""
        rng = np.random.default_rng() if rng is None else rng
        progress = progress or silent
        domain = private.domain
        check_size(self.fit, domain, self.reads(domain))
        return (self._in_rounds if self.adaptive else self._at_once)(private, rng, progress)

    def _at_once(self, private: Private, rng: np.random.Generator, progress: Progress) -> Release:
        private.prepare(self.reads(private.domain))
        for clique, rho in self._shares(private.domain, private.rho).items():
            private.measure([clique], Gaussian(rho=rho))
        progress("measuring", 0.5)
        model = self.fit(private.domain, private.transcript, rng=rng)
        progress("fitting", 1.0)
        return release_of(private, model, self.config())

    def _in_rounds(self, private: Private, rng: np.random.Generator, progress: Progress) -> Release:
        domain, rounds, memory = private.domain, self._rounds(private.domain), Memory()
        count = rounds.begin(private)
        model = self.fit(domain, private.transcript, rng=rng)
        for t in range(count):
            rounds.ask(private, model, count - t, rng=rng, memory=memory)
            model = self.fit(domain, private.transcript, rng=rng, warm=model)
            progress("measuring", (t + 1) / count)
        return release_of(private, model, self.config(), memory)

    def _workload(self, domain: Domain) -> Workload:
        return workload_or_default(self.workload, domain, ways=2)

    def _shares(self, domain: Domain, rho: Fraction) -> dict[Clique, Fraction]:
        """Shares in proportion to weight^(2/3), summing to rho exactly."""
        weights = self._workload(domain).weights
        return dict(zip(weights, split(rho, [w ** (2 / 3) for w in weights.values()]), strict=True))

    def _rounds(self, domain: Domain) -> Rounds:
        workload = self._workload(domain)
        return Rounds.of(workload, domain, self.queries, self.granularity, count=self.rounds, alpha=self.alpha)
