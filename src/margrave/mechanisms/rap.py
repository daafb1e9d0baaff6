"""RAP: relaxed adaptive projection (Aydore et al. 2021), in its box and with softmax (Liu, Vietri, Wu 2021)."""

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
    one_way,
    parameter,
    release_of,
    silent,
    workload_config,
    workload_or_default,
)
from margrave.mechanisms.rounds import Rounds, exact_alpha, is_whole, queries_config
from margrave.models import RelaxedFit
from margrave.models.protocol import fit_config
from margrave.parameters import check_parameters
from margrave.privacy import Private, Unit
from margrave.release import Release
from margrave.schema.domain import Domain
from margrave.typing import Clique
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class RAP:
    """T rounds: choose K queries that relaxed records answer worst, measure them, move the records to all answers.

    ``workload``: None means all three-way marginals; ``queries``: linear queries instead of its cells. ``granularity``:
    a round asks for "query" (cells), as the paper does, or for whole "marginal". ``each``: K. ``rounds``: T, from the
    budget by default. ``alpha``: how a round's budget goes to choosing and to measuring, as alpha² to (1 − alpha)².
    ``fit``: the records; ``RelaxedFit()`` keeps each a distribution (RAP^softmax), ``RelaxedFit(box=True)`` is RAP.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit.

    Source: Aydore et al. (2021), Algorithm 2; Liu, Vietri, Wu (2021), Appendix B.2. Departure: queries are chosen by
    the exponential mechanism one after the other, which is the same as report-noisy-max with Gumbel noise.
    """

    workload: Workload | None = None
    queries: Queries | None = None
    granularity: str = parameter("marginal", 'What a round measures: a whole "marginal" or a single "query".')
    each: int = parameter(1, "Marginals a round, or queries.", above=0)
    rounds: int | None = parameter(None, "Rounds; by default one per column (of pairs two), or by the budget.", above=0)
    alpha: Fraction = parameter(Fraction(1, 2), "Choosing and measuring get alpha² to (1 − alpha)² of a round.")
    fit: RelaxedFit = field(default_factory=RelaxedFit)

    def __post_init__(self) -> None:
        check_parameters(self)
        if (self.rounds is not None and self.rounds < 1) or self.each < 1:
            raise InputError("RAP needs at least one round, of at least one query.")
        is_whole(self.granularity)
        object.__setattr__(self, "alpha", exact_alpha(self.alpha))

    def reads(self, domain: Domain) -> Collection[Clique]:
        """The marginals of the queries, and a column in which all records can be counted."""
        return self._rounds(domain).reads()

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """Equal shares for all rounds."""
        return self._rounds(domain).steps(rho, unit)

    def config(self) -> dict[str, Any]:
        """The parameters."""
        return {
            "name": "rap",
            "workload": workload_config(self.workload, self.queries),
            "queries": queries_config(self.queries),
            "granularity": self.granularity,
            "each": self.each,
            "rounds": self.rounds,
            "alpha": float(self.alpha),
            **fit_config(self.fit),
        }

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Choose, measure, move the records, T times."""
        rng = np.random.default_rng() if rng is None else rng
        progress = progress or silent
        domain = private.domain
        check_size(self.fit, domain, one_way(domain))
        rounds, memory = self._rounds(domain), Memory()
        count = rounds.begin(private)
        model = self.fit(domain, private.transcript, rng=rng)
        for t in range(count):
            rounds.ask(private, model, count - t, rng=rng, memory=memory)
            model = self.fit(domain, private.transcript, rng=rng, warm=model)
            progress("measuring", (t + 1) / count)
        return release_of(private, self.fit.distribution(model), self.config(), memory)

    def _rounds(self, domain: Domain) -> Rounds:
        workload = workload_or_default(self.workload, domain)
        shared = {"count": self.rounds, "each": self.each, "alpha": self.alpha}
        return Rounds.of(workload, domain, self.queries, self.granularity, **shared)
