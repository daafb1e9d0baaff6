"""NAPSU-MQ: noise-aware synthetic data from marginal queries (Räisä, Jälkö, Kaski, Honkela 2023)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from margrave.errors import InputError, ModelTooLargeError
from margrave.marginal import maximal
from margrave.mechanisms.common import (
    Progress,
    Step,
    one_way,
    parameter,
    release_of,
    silent,
    workload_config,
)
from margrave.mechanisms.mst import parts, spanning_tree
from margrave.models import GraphicalFit, MaxEntropyFit
from margrave.models.specs import fit_config
from margrave.parameters import check_parameters
from margrave.privacy import Gaussian, Private, Unit
from margrave.release import Release
from margrave.schema.domain import Domain
from margrave.typing import Clique
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class NAPSUMQ:
    """A few marginals with equal noise, and the posterior of the maximum-entropy model given what was answered.

    ``workload``: the marginals that the analyses to come rest on, all of them measured with the same noise whatever
    their weights. ``connect``: pairs that join the other columns to them in a tree are chosen and measured too, as MST
    chooses them; without a workload, a tree of all columns. ``choosing`` is the share of the budget that this takes:
    half of it for the columns on their own, half for the choices; where nothing is to be chosen, all goes to the
    marginals, and to those columns that are in none.

    ``release.draws(m)`` then gives data sets whose differences show what the noise and the sampling of the records
    leave open, and ``margrave.analyse`` intervals for what holds in the population. A workload, or columns, of more
    parameters than a posterior can have are refused before anything is spent: a release without one is what other
    mechanisms make, more accurately. Pairs that would make too many are no candidates. Constraints can still make the
    posterior of what was chosen intractable; the model is then one best estimate, and ``config`` says so.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit; of k marginals each has 1 / k of its part.

    Source: Räisä, Jälkö, Kaski, Honkela (2023), Algorithm 1; its experiments choose pairs by MST too, at no cost.
    """

    workload: Workload | None = None
    connect: bool = parameter(True, "Choose pairs that join columns in no workload marginal.")
    choosing: Fraction = parameter(Fraction(1, 3), "Share of the budget for choosing pairs, below 1.", above=0)
    fit: MaxEntropyFit = field(default_factory=lambda: MaxEntropyFit())

    def __post_init__(self) -> None:
        check_parameters(self)
        if not 0 < self.choosing < 1:
            raise InputError(f"choosing is {self.choosing}.", remedy="It is a share of the budget, such as 1/3.")
        object.__setattr__(self, "choosing", Fraction(self.choosing).limit_denominator(10**6))

    def reads(self, domain: Domain) -> Collection[Clique]:
        """The workload, every column, and where pairs are to be chosen, every pair."""
        pairs = self._candidates(domain) if self.connect else []
        return list(dict.fromkeys([*self._given(domain), *one_way(domain), *pairs]))

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """Columns and marginals; the choices take their share."""
        given, joins = self._given(domain), self._joins(domain)
        if not joins:
            return [Step.of("every marginal", self._whole(domain), rho / len(self._whole(domain)), unit)]
        every = [*given, *self._candidates(domain)]
        each = Gaussian.scale_for((1 - self.choosing) * rho / (len(given) + joins), unit)
        return [
            Step.of("every column", one_way(domain), self.choosing * rho / 2 / len(domain), unit),
            Step("the marginals", every, len(given) + joins, each),
        ]

    def config(self) -> dict[str, Any]:
        """The parameters."""
        return {
            "name": "napsu-mq", "workload": None if self.workload is None else workload_config(self.workload),
            "connect": self.connect, "choosing": str(self.choosing), **fit_config(self.fit),
        }  # fmt: skip

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise what would keep a run from its end, before the table is read."""
        self.fit.ready()
        self._refuse_large(domain)

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Measure, choosing what joins the columns where asked to; then find the posterior."""
        rng, progress = np.random.default_rng() if rng is None else rng, progress or silent
        domain = private.domain
        self.check(domain, private.unit)
        private.prepare(self.reads(domain))
        if self._joins(domain):
            given, candidates = self._given(domain), self._candidates(domain)
            half = self.choosing * private.rho / 2
            singles = private.measure(one_way(domain), Gaussian(rho=half))
            estimates = GraphicalFit()(domain, singles, rng=rng).answer(candidates)
            tree = spanning_tree(private, estimates, half, given=given, progress=progress)
            private.measure([*given, *tree], Gaussian(rho=private.remaining))
        else:
            private.measure(self._whole(domain), Gaussian(rho=private.rho))
        progress("finding the posterior", 1.0)
        fits = self.fit.takes(domain, private.transcript)
        fit = self.fit if fits else GraphicalFit()
        lacking = {} if fits else {"posterior": "not tractable", **fit_config(fit)}
        return release_of(private, fit(domain, private.transcript, rng=rng), {**self.config(), **lacking})

    def _given(self, domain: Domain) -> list[Clique]:
        """The maximal marginals of the workload."""
        return [] if self.workload is None else list(maximal(Workload.of(domain, self.workload.weights).cliques))

    def _whole(self, domain: Domain) -> list[Clique]:
        """The workload, and every column that is in none of it."""
        given = self._given(domain)
        covered = {a for c in given for a in c}
        return [*given, *((a,) for a in domain if a not in covered)]

    def _joins(self, domain: Domain) -> int:
        """How many pairs are to be chosen: one less than the parts that the workload leaves and pairs can join."""
        if not self.connect:
            return 0
        given = self._given(domain)
        apart, joined = parts(domain, given), parts(domain, [*given, *self._candidates(domain)])
        return len(set(apart.values())) - len(set(joined.values()))

    def _candidates(self, domain: Domain) -> list[Clique]:
        """Pairs so small that the posterior has few enough parameters whichever of them are chosen."""
        edges = len(set(parts(domain, self._given(domain)).values())) - 1
        room = self.fit.room(domain, [*self._whole(domain), *one_way(domain)])
        pairs = combinations(domain.attributes, 2)
        return [r for r in pairs if edges and (domain.size(r[0]) - 1) * (domain.size(r[1]) - 1) <= room / edges]

    def _refuse_large(self, domain: Domain) -> None:
        """A ModelTooLargeError for marginals that no posterior can be sampled of, before anything is spent."""
        whole = self._whole(domain)
        if not self.fit.tractable(domain, whole):
            widest = max(domain, key=domain.size)
            have, their = ("marginal has", "its") if len(whole) == 1 else (f"{len(whole)} marginals have", "their")
            raise ModelTooLargeError(
                f"The workload's {have} too many cells for a posterior of all {their} parameters;"
                f" column {widest!r} has the most codes, {domain.size(widest):,}.",
                remedy="Ask for fewer or smaller marginals, give the column fewer bins, or use another mechanism, whose"
                " release draws by the bootstrap.",
            )
