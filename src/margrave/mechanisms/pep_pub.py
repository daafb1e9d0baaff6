"""PEP^Pub: private entropy projection on public records (Liu, Vietri, Wu 2021)."""

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
from margrave.models import EntropyProjectionFit, Fit
from margrave.privacy import Private, Unit
from margrave.public import Public
from margrave.release import Release
from margrave.schema.domain import Domain
from margrave.typing import Clique
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class PEPPub:
    """PEP on the support of a public table: of the weights on its records that explain the answers, those nearest it.

    Round t moves ``D_{t−1}`` to weights that differ by gamma at most from every answer, and as little as can be from
    the public shares ``P``: D_t(x) ∝ P(x) exp(Σ_i lambda_i q_i(x)). Records that the public table lacks get no weight,
    so its support bounds how close the release can come: see ``margrave.evaluate.best_mixture_error``. It takes domains
    of any size.

    ``public``: the public table, which must have all columns. It is told in the certificate, by its hash.
    ``workload``: None means all three-way marginals. ``queries``: None means every cell of the workload's
    marginals. ``granularity``: "marginal" chooses and measures whole marginals; "query", the papers' form, single
    queries at the same price. ``rounds``: None means one per column of marginals, of queries as many as the budget
    is worth (``best_rounds``). ``alpha``: choosing and measuring get alpha² to (1 − alpha)² of each round's budget.
    ``gamma``: the tolerance in standard deviations of an answer's noise (``EntropyProjectionFit.gamma_of_paper`` is
    the paper's). ``max_iterations``: steps in a round at most; 25 in the paper's experiments. ``fit``: another
    estimator in the place of these weights.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit. The public records are not protected.

    Source: Liu, Vietri, Wu (2021), Algorithms 1 and 2 and Appendix F.2.
    """

    public: Public | None = None
    workload: Workload | None = None
    queries: Queries | None = None
    granularity: str = parameter("marginal", 'What a round measures: a whole "marginal" or a single "query".')
    rounds: int | None = parameter(None, "Rounds; by default one per column, or what queries are worth.", above=0)
    alpha: Fraction = parameter(
        Fraction(1, 2), "Choosing and measuring get alpha² to (1 − alpha)² of a round.", above=0
    )
    gamma: float = parameter(1.0, "How far off answers may stay, in deviations of their noise.", above=-1e-9)
    max_iterations: int = parameter(25, "Steps of the projection in a round, at most.", above=0)
    fit: Fit | None = None

    def __post_init__(self) -> None:
        if self.rounds is not None and self.rounds < 1:
            raise InputError("PEP^Pub needs at least one round.")
        is_whole(self.granularity)
        object.__setattr__(self, "alpha", exact_alpha(self.alpha))
        self.estimator()

    def estimator(self) -> Fit:
        """The entropy projection of these parameters, or what was given in their place."""
        own = EntropyProjectionFit(public=self.public, gamma=self.gamma, max_iterations=self.max_iterations)
        return self.fit or own

    def reads(self, domain: Domain) -> Collection[Clique]:
        """The marginals of the queries, and a column in which all records can be counted."""
        return self._rounds(domain).reads()

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """The number of records, if it is private, and the rounds."""
        return self._rounds(domain).steps(rho, unit)

    def config(self) -> dict[str, Any]:
        """The parameters."""
        return {
            "name": "pep-pub",
            "workload": workload_config(self.workload),
            "queries": queries_config(self.queries),
            "granularity": self.granularity,
            "rounds": self.rounds,
            "alpha": float(self.alpha),
            "gamma": self.gamma,
            "max_iterations": self.max_iterations,
            "public": None if self.public is None else self.public.facts(),
            "fit": repr(self.estimator()),
        }

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Choose, measure, project, T times."""
        rng = np.random.default_rng() if rng is None else rng
        progress = progress or silent
        domain, fit, memory = private.domain, self.estimator(), Memory()
        given(self.public, domain).needs(domain, "PEP^Pub")
        fit(domain, private.transcript, rng=rng)  # public records that cannot be cost nothing
        rounds = self._rounds(domain)
        count = rounds.begin(private)
        model = fit(domain, private.transcript, rng=rng)
        for t in range(count):
            rounds.ask(private, model, count - t, rng=rng, memory=memory)
            model = fit(domain, private.transcript, rng=rng, warm=model)
            progress("measuring", (t + 1) / count)
        return release_of(private, model, self.config(), memory)

    def _rounds(self, domain: Domain) -> Rounds:
        cliques = workload_or_default(self.workload, domain).cliques
        queries = queries_of(domain, cliques, self.queries)
        return Rounds(queries=queries, whole=is_whole(self.granularity), count=self.rounds, alpha=self.alpha)
