"""MWEM: multiplicative weights on every cell of the domain (Hardt, Ligett, McSherry 2012)."""

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
    check_size,
    one_way,
    parameter,
    release_of,
    silent,
    workload_config,
    workload_or_default,
)
from margrave.mechanisms.rounds import Rounds, check_rounds, exact_alpha, is_whole, queries_config
from margrave.models import Fit, MultiplicativeWeightsFit
from margrave.models.protocol import fit_config
from margrave.models.weights import averaged
from margrave.parameters import check_parameters
from margrave.privacy import Private, Unit
from margrave.release import Release
from margrave.schema.domain import Domain
from margrave.typing import Clique
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class MWEM:
    """T rounds: choose the query that the weights miss most, measure it, move the weights of the records it counts.

    Round t measures ``a_t = q_t(D) + noise`` and moves ``D_t(x) ∝ D_{t−1}(x) exp(q(x) (a − q(D)) / 2)``, in shares,
    for the answers so far. It holds one weight for every cell of the domain.

    ``workload``: None means all three-way marginals. ``queries``: None means every cell of the workload's
    marginals. ``granularity``: "marginal" chooses and measures whole marginals; "query", the papers' form, single
    queries at the same price, which on a table of 48,842 rows left a smaller largest error at epsilon 0.1 and twice
    the mean error at any. ``rounds``: None means one per column for marginals (two for pairs), for queries what the
    budget is worth (``best_rounds``). ``alpha``: choosing and measuring get alpha² to (1 − alpha)² of each round.
    ``passes``: how often a round's update goes over all answers so far; 0 uses its own alone. ``average``: release
    the average over rounds (Hardt et al.) and not the last (Liu et al.). ``anneal``: halve the rounds that are left
    where one taught less than its noise (``Rounds``). ``fit``: another estimator in the place of these weights.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit.

    Source: Hardt, Ligett, McSherry (2012); Liu, Vietri, Wu (2021), Algorithm 1 and Appendix B.2.
    """

    workload: Workload | None = None
    queries: Queries | None = None
    granularity: str = parameter("marginal", 'What a round measures: a whole "marginal" or a single "query".')
    rounds: int | None = parameter(None, "Rounds; by default one per column (of pairs two), or by the budget.", above=0)
    alpha: Fraction = parameter(
        Fraction(1, 2), "Choosing and measuring get alpha² to (1 − alpha)² of a round.", above=0
    )
    passes: int = parameter(100, "How often a round goes over all answers so far; 0: its own only.", least=0)
    average: bool = parameter(False, "Whether the average over rounds is released, not the last.")
    anneal: bool = parameter(False, "Whether rounds that teach less than their noise make way for fewer, dearer ones.")
    max_model_mb: float | None = parameter(1024.0, "Size of the model at most, in MB.", above=0)
    fit: Fit | None = None

    def __post_init__(self) -> None:
        check_parameters(self)
        check_rounds(self.rounds, type(self).__name__)
        is_whole(self.granularity)
        object.__setattr__(self, "alpha", exact_alpha(self.alpha))
        if self.fit is not None and (self.passes, self.average) != (100, False):
            raise InputError("passes and average are MWEM's own.", remedy="Leave them, or the fit, out.")
        self.estimator()

    def estimator(self) -> Fit:
        """The multiplicative weights of these parameters, or what was given in their place."""
        return self.fit or MultiplicativeWeightsFit(passes=self.passes, average=self.average)

    def reads(self, domain: Domain) -> Collection[Clique]:
        """The marginals of the queries, and a column in which all records can be counted."""
        return self._rounds(domain).reads()

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """The number of records, if it is private, and the rounds."""
        return self._rounds(domain).steps(rho, unit)

    def config(self) -> dict[str, Any]:
        """The parameters."""
        return {
            "name": "mwem",
            "workload": workload_config(self.workload, self.queries),
            "queries": queries_config(self.queries),
            "granularity": self.granularity,
            "rounds": self.rounds,
            "alpha": float(self.alpha),
            "passes": self.passes,
            "average": self.average,
            "anneal": self.anneal,
            "max_model_mb": self.max_model_mb,
            **fit_config(self.estimator()),
        }

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Choose, measure, move the weights, T times."""
        rng = np.random.default_rng() if rng is None else rng
        progress = progress or silent
        domain, fit, memory = private.domain, self.estimator(), Memory()
        check_size(fit, domain, one_way(domain), self.max_model_mb)
        fit(domain, private.transcript, rng=rng)  # what leaves no record possible costs nothing
        rounds = self._rounds(domain)
        left = rounds.begin(private)
        model = fit(domain, private.transcript, rng=rng)
        while left:
            before = rounds.ask(private, model, left, rng=rng, memory=memory)
            model = fit(domain, private.transcript, rng=rng, warm=model)
            left = rounds.left_after(left, before, model, private.transcript)
            progress("measuring", float(1 - private.remaining / private.rho))
        return release_of(private, averaged(model), self.config(), memory)

    def _rounds(self, domain: Domain) -> Rounds:
        workload = workload_or_default(self.workload, domain)
        shared = {"count": self.rounds, "alpha": self.alpha, "anneal": self.anneal}
        return Rounds.of(workload, domain, self.queries, self.granularity, **shared)
