"""Private-GSD: noisy answers of many queries, and a genetic search for the records that give them (Liu et al. 2023)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from margrave.errors import InputError
from margrave.mechanisms.adaptive import AdaptiveMeasurements
from margrave.mechanisms.common import (
    Progress,
    Step,
    check_fit,
    parameter,
    release_of,
    silent,
    split,
)
from margrave.mechanisms.rounds import is_whole
from margrave.models import Fit, GeneticFit
from margrave.privacy import Gaussian, Private, Unit
from margrave.release import Release
from margrave.schema.domain import Domain
from margrave.typing import Clique


@dataclass(frozen=True, kw_only=True)
class PrivateGSD(AdaptiveMeasurements):
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

    adaptive: bool = parameter(False, "Measure the worst in rounds, instead of the whole workload at once.")
    fit: Fit = field(default_factory=GeneticFit)

    name: ClassVar[str] = "private-gsd"
    ways: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_whole(self.granularity) and not self.adaptive:
            raise InputError("Single queries are measured in rounds only.", remedy="Set adaptive=True (--adaptive).")
        if self.queries is not None and not self.adaptive:
            raise InputError("Linear queries are measured in rounds only.", remedy="Set adaptive=True.")

    def estimator(self) -> Fit:
        """The genetic search."""
        return self.fit

    def reads(self, domain: Domain) -> Collection[Clique]:
        """The workload; in rounds, also a column in which all records can be counted."""
        return super().reads(domain) if self.adaptive else self._workload(domain).cliques

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """Every marginal with its share, or the rounds."""
        if self.adaptive:
            return super().steps(domain, rho, unit)
        shares = self._shares(domain, rho)
        alike = {share: [r for r, other in shares.items() if other == share] for share in shares.values()}
        if len(alike) == 1:
            return [Step.of("the workload", list(shares), rho / len(shares), unit)]
        return [Step.of(", ".join(clique), [clique], share, unit) for clique, share in shares.items()]

    def config(self) -> dict[str, Any]:
        """The parameters."""
        return {**super().config(), "adaptive": self.adaptive}

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise what would keep a run from its end, before the table is read."""
        if self.adaptive:
            super().check(domain, unit)
        else:
            check_fit(self.fit, domain, self.reads(domain))

    def turns(self, domain: Domain, rho: Fraction, records: float, unit: Unit) -> int:
        """No rounds, where all is measured at once."""
        return super().turns(domain, rho, records, unit) if self.adaptive else 0

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure, and search; T times, where it is adaptive."""
        if self.adaptive:
            return super().run(private, rng=rng, progress=progress)
        return self._at_once(private, rng, progress)

    def _at_once(
        self, private: Private, rng: np.random.Generator | None, progress: Progress | None
    ) -> Release:
        rng, progress, domain = np.random.default_rng() if rng is None else rng, progress or silent, private.domain
        self.check(domain, private.unit)
        private.prepare(self.reads(domain))
        for clique, rho in self._shares(domain, private.rho).items():
            private.measure([clique], Gaussian(rho=rho))
        progress("measuring", 0.5)
        model = self.fit(domain, private.transcript, rng=rng)
        progress("fitting", 1.0)
        return release_of(private, model, self.config())

    def _shares(self, domain: Domain, rho: Fraction) -> dict[Clique, Fraction]:
        """Shares in proportion to weight^(2/3), summing to rho exactly."""
        weights = self._workload(domain).weights
        return dict(zip(weights, split(rho, [w ** (2 / 3) for w in weights.values()]), strict=True))
