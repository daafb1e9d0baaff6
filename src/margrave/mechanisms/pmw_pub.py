"""PMW^Pub: multiplicative weights on public records (Liu, Vietri, Steinke, Ullman, Wu 2021)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.errors import InputError
from margrave.marginal import Queries
from margrave.mechanisms.common import (
    Memory,
    Progress,
    Step,
    parameter,
    release_of,
    silent,
    workload_config,
    workload_or_default,
)
from margrave.mechanisms.library import given
from margrave.mechanisms.rounds import Rounds, exact_alpha, is_whole, queries_config, queries_of
from margrave.models import Fit, MultiplicativeWeightsFit
from margrave.models.weights import averaged
from margrave.privacy import Private, Unit
from margrave.public import Public
from margrave.release import Release
from margrave.schema.domain import Domain
from margrave.typing import Clique
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class PMWPub:
    """MWEM on the support of a public table: one weight for each of its distinct records, at first their shares there.

    Records that the public table lacks get no weight, so its support bounds how close the release can come: see
    ``margrave.evaluate.best_mixture_error``. It takes domains of any size.

    ``public``: the public table, which must have all columns. It is told in the certificate, by its hash.
    ``workload``: None means all three-way marginals. ``queries``: None means every cell of the workload's
    marginals. ``granularity``: "marginal" chooses and measures whole marginals; "query", the papers' form, single
    queries at the same price. ``rounds``: None means one per column of marginals, of queries as many as the budget
    is worth (``best_rounds``). ``alpha``: choosing and measuring get alpha² to (1 − alpha)² of each round's budget.
    ``passes``: how often a round's update goes over all answers so far; 0 uses its own alone. ``average``: release
    the average over rounds (Hardt et al.) and not the last (Liu et al.). ``fit``: another estimator in the place of
    these weights.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit. The public records are not protected.

    Source: Liu, Vietri, Steinke, Ullman, Wu (2021), Leveraging Public Data for Practical Private Query Release.
    """

    public: Public | None = None
    workload: Workload | None = None
    queries: Queries | None = None
    granularity: str = parameter("marginal", 'What a round measures: a whole "marginal" or a single "query".')
    rounds: int | None = parameter(None, "Rounds; by default one per column, or what queries are worth.", above=0)
    alpha: Fraction = parameter(
        Fraction(1, 2), "Choosing and measuring get alpha² to (1 − alpha)² of a round.", above=0
    )
    passes: int = parameter(100, "How often a round goes over all answers so far; 0: its own only.", above=-1)
    average: bool = parameter(False, "Whether the average over rounds is released, not the last.")
    fit: Fit | None = None

    def __post_init__(self) -> None:
        if self.rounds is not None and self.rounds < 1:
            raise InputError("PMW^Pub needs at least one round.")
        is_whole(self.granularity)
        object.__setattr__(self, "alpha", exact_alpha(self.alpha))
        self.estimator()

    def estimator(self) -> Fit:
        """The multiplicative weights of these parameters, or what was given in their place."""
        return self.fit or MultiplicativeWeightsFit(public=self.public, passes=self.passes, average=self.average)

    def reads(self, domain: Domain) -> Collection[Clique]:
        """The marginals of the queries, and a column in which all records can be counted."""
        return self._rounds(domain).reads()

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """The number of records, if it is private, and the rounds."""
        return self._rounds(domain).steps(rho, unit)

    def config(self) -> dict[str, Any]:
        """The parameters."""
        return {
            "name": "pmw-pub",
            "workload": workload_config(self.workload),
            "queries": queries_config(self.queries),
            "granularity": self.granularity,
            "rounds": self.rounds,
            "alpha": float(self.alpha),
            "passes": self.passes,
            "average": self.average,
            "public": None if self.public is None else self.public.facts(),
            "fit": repr(self.estimator()),
        }

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Choose, measure, move the weights, T times."""
        rng = np.random.default_rng() if rng is None else rng
        progress = progress or silent
        domain, fit, memory = private.domain, self.estimator(), Memory()
        given(self.public, domain).needs(domain, "PMW^Pub")
        fit(domain, private.transcript, rng=rng)  # public records that cannot be cost nothing
        rounds = self._rounds(domain)
        count = rounds.begin(private)
        model = fit(domain, private.transcript, rng=rng)
        for t in range(count):
            rounds.ask(private, model, count - t, rng=rng, memory=memory)
            model = fit(domain, private.transcript, rng=rng, warm=model)
            progress("measuring", (t + 1) / count)
        return release_of(private, averaged(model), self.config(), memory)

    def _rounds(self, domain: Domain) -> Rounds:
        cliques = workload_or_default(self.workload, domain).cliques
        queries = queries_of(domain, cliques, self.queries)
        return Rounds(queries=queries, whole=is_whole(self.granularity), count=self.rounds, alpha=self.alpha)
