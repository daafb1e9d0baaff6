"""Rounds of adaptive measurement (Liu, Vietri, Wu 2021, Algorithm 1).

The mechanisms of that family (MWEM, PEP, GEM, RAP, PMW^Pub ...) differ in the fit that comes after.
Their questions are here: single queries, as in the paper, or whole marginals, at the price of one of
their cells where a row comes or goes, and of two where one is replaced (``sensitivity``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import TOTAL, LinearQuery, QueryFamily
from margrave.mechanisms.common import PlannedMeasurement, SelectionLoad
from margrave.mechanisms.parts.budget import after_total, measure_total, total_steps
from margrave.mechanisms.parts.choice import select_marginal
from margrave.mechanisms.parts.default_rounds import (
    MAX_ROUNDS,
    MIN_ROUNDS,
    default_marginal_rounds,
    default_rounds,
)
from margrave.mechanisms.parts.penalty import expected_noise
from margrave.mechanisms.parts.selection_log import SelectionLog
from margrave.models.protocol import Answerer
from margrave.privacy import Gaussian, Private, QueryGap
from margrave.transcript import Answer, Measurement, Transcript
from margrave.types import Clique, FloatArray, Generator
from margrave.workload import Workload

#: The queries that a round selects from and measures.
GRANULARITIES = ("query", "marginal")

#: Marginals -> those of them that the model has room for.
Fitting = Callable[[Collection[Clique]], list[Clique]]


@dataclass(frozen=True, kw_only=True)
class RoundSchedule:
    """Rounds of a budget: each selects and measures ``queries_per_round`` queries, or marginals.

    Args:
        queries: The queries, or the cells of the marginals.
        whole: Whether whole marginals are measured.
        count: The number of rounds; None for what the budget is worth.
        queries_per_round: How many queries, or marginals, a round measures.
        alpha: The paper's alpha: a round's rho goes to selecting and to measuring as alpha² to (1 −
            alpha)².
        anneal: Whether only half of the remaining rounds are kept, with twice the budget each,
            after a round that improved the model by less than its noise.
        warm_public: Whether the estimate begins with public records, so that fewer rounds of single
            queries are worth it (``default_rounds``).
        weights: The workload's, which count where whole marginals are selected; 1 for those that it
            does not name.
        limit: The most rounds of whole marginals where no count is given.

    Raises:
        InputError: A number is out of range, or the rounds measure whole marginals and the queries
            are sets of codes.

    Privacy:
        If the number of records is private, it is measured first, for ``TOTAL_BUDGET_SHARE`` of the
        budget.
    """

    queries: QueryFamily
    whole: bool
    count: int | None = None
    queries_per_round: int = 1
    alpha: Fraction = Fraction(1, 2)
    anneal: bool = False
    warm_public: bool = False
    weights: Mapping[Clique, float] = field(default_factory=dict)
    limit: int = MAX_ROUNDS

    def __post_init__(self) -> None:
        counts = (self.queries_per_round, 1 if self.count is None else self.count)
        counted = all(isinstance(n, int | np.integer) and n >= 1 for n in counts)
        if not counted or not 0 < self.alpha < 1:
            raise InputError(
                "Rounds need a whole count of at least 1, of 1 query or more each, and alpha in (0, 1)."
            )
        if self.whole and self.queries.sets:
            raise InputError(
                "Sets of codes are single queries, and rounds measure whole marginals.",
                remedy='Say granularity="query", or give a workload instead of queries.',
            )
        there_are = len(self.queries.cliques) if self.whole else len(self.queries)
        object.__setattr__(self, "queries_per_round", min(self.queries_per_round, there_are))

    @staticmethod
    def of(
        workload: Workload,
        domain: Domain,
        queries: QueryFamily | None,
        granularity: str,
        **more: Any,
    ) -> RoundSchedule:
        """Return rounds on the marginals of a workload, on their cells, or on queries in its place."""
        asked, whole = query_family(domain, workload.cliques, queries), granularity == "marginal"
        if queries is None and not whole and len(set(workload.weights.values())) > 1:
            raise InputError(
                "The workload's marginals have weights, and a round of single queries has no use for them.",
                remedy='Say granularity="marginal", or give all of them the same weight.',
            )
        weights = workload.weights if queries is None else {}
        return RoundSchedule(queries=asked, whole=whole, weights=weights, **more)

    @property
    def choosing(self) -> Fraction:
        """The share of a round's rho that selects; none where each round measures all marginals."""
        if self.whole and len(self.queries.cliques) == self.queries_per_round:
            return Fraction(0)
        return self.alpha**2 / (self.alpha**2 + (1 - self.alpha) ** 2)

    @property
    def least(self) -> int:
        """The fewest rounds where no count is given. Whole marginals reach all columns with them.

        That is one per column, as in MWEM+PGM, for marginals of three columns and more. Of smaller
        ones each column meets four others on average (twice as many pairs), unless there are fewer
        marginals.
        """
        if not self.whole:
            return MIN_ROUNDS
        columns, marginals = len(self.queries.domain), self.queries.cliques
        met = sum(len(r) * (len(r) - 1) for r in marginals) / len(marginals)
        return max(columns, min(len(marginals), math.ceil(4 * columns / max(met, 1.0))))

    @property
    def most(self) -> int:
        """The most rounds where no count is given: enough to measure each whole marginal once."""
        if not self.whole:
            return MAX_ROUNDS
        once = math.ceil(len(self.queries.cliques) / self.queries_per_round)
        return max(self.least, min(self.limit, once))

    def reads(self) -> list[Clique]:
        """Return the marginals of the queries, and a column in which all records can be counted."""
        total = TOTAL.counting_clique(self.queries.domain)
        return list(dict.fromkeys([*self.queries.cliques, total]))

    def steps(self, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return the number of records, if it is private, and the most rounds that there may be."""
        count = self.count or self.most
        share = after_total(rho, unit) / count * (1 - self.choosing) / self.queries_per_round
        one = () if self.whole else (self.queries[0],)
        rounds = PlannedMeasurement(
            "chosen marginals" if self.whole else "chosen queries",
            self.queries.cliques,
            count * self.queries_per_round,
            Gaussian.scale_for(share, unit, *one),
            adaptive=True,
            at_most=self.anneal or (self.count is None and self.least < self.most),
            single=not self.whole,
        )
        return [*total_steps(self.queries.domain, rho, unit), rounds]

    def begin(self, private: Private) -> int:
        """Measure the number of records if it is private, and return the number of rounds."""
        measure_total(private)
        return self.worth(private.remaining, private.transcript.total())

    def worth(self, rho: Fraction, records: float) -> int:
        """Return how many rounds there are for a budget and so many records."""
        if self.count is not None:
            return self.count
        if not self.whole:
            return default_rounds(rho, records, self.queries, warm_public=self.warm_public)
        each = self.queries_per_round
        worth = default_marginal_rounds(rho, records, self.queries, queries_per_round=each)
        return min(max(self.least, worth), self.most)

    def load(self, rho: Fraction, records: float) -> SelectionLoad:
        """Return how often the rounds select, for a budget and so many records."""
        return SelectionLoad(
            rounds=self.worth(rho, records),
            queries=not self.whole,
            per_round=self.queries_per_round,
        )

    def select_and_measure(
        self,
        private: Private,
        model: Answerer,
        left: int,
        *,
        rng: Generator,
        memory: SelectionLog | None = None,
        fitting: Fitting = list,
    ) -> list[FloatArray]:
        """Select by the exponential mechanism and measure: one round of the ``left`` that are left.

        ``memory`` keeps what whole marginals were selected by, for error bounds on those passed
        over. ``fitting`` leaves those that the model has room for. The result is for
        ``left_after``.

        **Privacy:** ``remaining / left`` (zCDP), to the last fraction.
        """
        rho = private.remaining / left
        for_choosing, for_measuring = rho * self.choosing, rho * (1 - self.choosing)
        if self.whole:
            candidates = fitting(self.queries.cliques)
            scale = Gaussian.scale_for(for_measuring / self.queries_per_round, private.unit)
            estimates = model.answer(candidates, rng=rng, scale=scale)
            marginals = self._worst_marginals(private, candidates, estimates, for_choosing, scale)
            private.measure(marginals, Gaussian(rho=for_measuring))
            if memory is not None and self.choosing:
                memory.note(estimates, private.transcript)
        else:
            family = self._within(fitting(self.queries.cliques))
            worst = self._worst_queries(private, model, family, for_choosing, rng)
            private.measure_queries(worst, Gaussian(rho=for_measuring))
        return self._latest(model, private.transcript) if self.anneal else []

    def left_after(
        self, left: int, before: list[FloatArray], model: Answerer, transcript: Transcript
    ) -> int:
        """Return how many rounds are left after one of ``left`` that moved the model from ``before``.

        Half of the others, at least one, where they moved it by less than the noise would be (AIM's
        rule, there with a fourfold budget): what is selected and measured at this price is noise
        for the most part.

        **Privacy:** none spent; it rests on noisy answers and models of them.
        """
        left -= 1
        if not self.anneal or left < 2:
            return left
        after = self._latest(model, transcript)
        change = sum(float(np.abs(a - b).sum()) for a, b in zip(after, before, strict=True))
        noise = sum(
            expected_noise(e.scale, 1 if isinstance(e, Answer) else model.domain.possible(e.clique))
            for e in self._asked(transcript)
        )
        return left // 2 if change <= noise else left

    def _asked(self, transcript: Transcript) -> Sequence[Answer | Measurement]:
        entries = transcript.measurements if self.whole else transcript.answers
        return entries[-self.queries_per_round :]

    def _latest(self, model: Answerer, transcript: Transcript) -> list[FloatArray]:
        return [
            np.asarray(e.query.count(model.project(e.query.clique).values))
            if isinstance(e, Answer)
            else model.project(e.clique).values
            for e in self._asked(transcript)
        ]

    def _worst_queries(
        self,
        private: Private,
        model: Answerer,
        queries: QueryFamily,
        rho: Fraction,
        rng: Generator,
    ) -> list[LinearQuery]:
        """Select queries whose answers are far off, none of them twice in a round."""
        marginals = model.answer(queries.cliques, rng=rng)
        estimates = {
            r: np.asarray(queries.answer(r, v), dtype=np.float64) for r, v in marginals.items()
        }
        chosen: list[int] = []
        for _ in range(self.queries_per_round):
            score = QueryGap(estimates, without=frozenset(chosen))
            (found,) = private.select_query(queries, score, rho=rho / self.queries_per_round)
            chosen.append(found.number)
        return [queries[number] for number in chosen]

    def _within(self, cliques: Sequence[Clique]) -> QueryFamily:
        known = self.queries
        return (
            known if len(cliques) == len(known.cliques) else replace(known, cliques=tuple(cliques))
        )

    def _worst_marginals(
        self,
        private: Private,
        candidates: Sequence[Clique],
        estimates: Mapping[Clique, FloatArray],
        rho: Fraction,
        scale: float,
    ) -> list[Clique]:
        """Select marginals that are far off in sum, beyond the noise of measuring them."""
        if not self.choosing:
            return list(candidates)
        weights = {r: self.weights.get(r, 1.0) for r in candidates}
        noise = {r: expected_noise(scale, private.domain.possible(r)) for r in candidates}
        each, chosen = rho / self.queries_per_round, list[Clique]()
        for _ in range(min(self.queries_per_round, len(candidates))):
            left = {r: estimates[r] for r in candidates if r not in chosen}
            chosen.append(select_marginal(private, left, weights, noise, rho=each))
        return chosen


def query_family(
    domain: Domain, cliques: Collection[Clique], queries: QueryFamily | None
) -> QueryFamily:
    """Return the queries given, which must be of this domain, or every cell of the workload."""
    if queries is None:
        return QueryFamily.cells(domain, tuple(cliques))
    if difference := domain.difference(queries.domain):
        raise InputError(
            f"The queries are of another domain than the table: {difference}.",
            remedy="Make them for the schema's.",
        )
    return queries


def check_exclusive(workload: Workload | None, queries: QueryFamily | None) -> None:
    """Raise `InputError` if a workload and queries are both given."""
    if workload is not None and queries is not None:
        raise InputError(
            "A workload and queries are both given.", remedy="Queries stand in its place: give one."
        )
