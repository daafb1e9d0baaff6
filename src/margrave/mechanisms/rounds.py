"""Rounds of adaptive measurement: choose what the estimate misses most, measure it (Liu, Vietri, Wu 2021, Algorithm 1).

The mechanisms of that family (MWEM, PEP, GEM, RAP, PMW^Pub ...) differ in the fit that comes after. What they ask
is the same, and is here: single queries, as the paper does, or whole marginals, at the price of one of their cells
where a row comes or goes, and of two where one is replaced (``sensitivity``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np

from margrave.errors import InputError
from margrave.marginal import TOTAL, LinearQuery, Queries
from margrave.mechanisms.common import FOR_TOTAL, Memory, Step, ask_total, total_steps
from margrave.mechanisms.penalty import expected_noise
from margrave.models.protocol import Model
from margrave.privacy import Gaussian, MarginalGap, Private, QueryGap, Unit, size_is_public
from margrave.schema.domain import Domain
from margrave.transcript import Answer, Measurement, Transcript
from margrave.typing import Clique, FloatArray
from margrave.workload import Workload

Granularity = Literal["query", "marginal"]

Fitting = Callable[[Collection[Clique]], list[Clique]]
"""Marginals -> those of them that the model has room for."""

LEAST_ROUNDS, MOST_ROUNDS = 10, 400
"""The fewest rounds of single queries, and the most rounds, where no number is given."""


def best_rounds(rho: Fraction, records: float, queries: Queries, *, informed: bool = False) -> int:
    """How many rounds a budget is worth: ``T = 3 d / 2 + c · n · sqrt(rho · log|X|) / log|Q|``, d the columns.

    T rounds leave an approximation error of about sqrt(log|X| / T) and noise of about sqrt(T / rho) log|Q| / n; the sum
    is least where T is proportional to the second part. c = 0.065 was found on ADULT (reduced). The first part is for
    what has to be learned before that counts, the columns themselves; ``informed``: public records have told them.
    From ``LEAST_ROUNDS`` to ``MOST_ROUNDS``.

    **Privacy:** none spent; ``records`` is public, or a noisy answer.
    """
    domain = queries.domain
    cells = sum(math.log(s) for s in domain.sizes)
    columns = 0.0 if informed else 1.5 * len(domain)
    rounds = columns + 0.065 * records * math.sqrt(rho * max(cells, 1.0)) / math.log(max(len(queries), 3))
    return int(min(max(rounds, LEAST_ROUNDS), MOST_ROUNDS))


def best_marginal_rounds(rho: Fraction, records: float, queries: Queries, *, each: int = 1) -> int:
    """Return how many rounds of whole marginals a budget is worth: ``0.3 (n · sqrt(rho · log|X|) / cells)^(2/3)``.

    The argument is that of ``best_rounds``: T rounds leave an approximation error, which falls with T, and noise. The
    noise of a marginal is ``cells · sqrt(T / rho) / n``, where ``cells`` is the geometric mean over the marginals: the
    choice counts noise against a marginal, so that small ones are taken first. The approximation error fell as 1 / T
    on NLTCS (0.046, 0.020 and 0.010 after 16, 40 and 70 rounds of RAP), faster than the bound sqrt(log|X| / T), which
    holds for any table. The sum of a / T and b · sqrt(T) is least at T = (2 a / b)^(2/3).

    The constant is the largest that leaves the defaults of ACS (reduced) as they are up to epsilon = 1, where 25 rounds
    instead of 15 raised the mean error by a sixth. NLTCS then has 32 rounds at epsilon = 1 and 133 at 10.

    Args:
        rho: The budget.
        records: Number of records, public or a noisy answer.
        queries: The cells of the marginals.
        each: Number of marginals that a round measures.

    Returns:
        The number of rounds, which can be 0.

    Privacy:
        None spent.
    """
    domain = queries.domain
    information = sum(math.log(s) for s in domain.sizes)
    cells = math.exp(sum(math.log(max(domain.possible(r), 1)) for r in queries.cliques) / len(queries.cliques))
    signal = max(records, 0.0) * math.sqrt(rho * max(information, 1.0)) / cells
    return int(0.3 * min(signal, 1e9) ** (2 / 3) / each)


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """How the budget goes to rounds: each of the ``count`` chooses and measures ``each`` queries, or marginals.

    ``alpha`` is the paper's: a round's rho goes to choosing and to measuring as alpha² to (1 − alpha)². Where the
    number of records is private it is asked first, for ``FOR_TOTAL`` of the budget. ``anneal``: where a round taught
    less than its noise, only half of the rounds that were left are left, and each of them gets twice as much.
    ``informed``: the estimate begins with public records, so that fewer rounds of single queries are worth it
    (``best_rounds``). ``weights``: the workload's, which count where whole marginals are chosen; 1 for those that it
    does not name. ``limit``: the most rounds of whole marginals where no count is given.
    """

    queries: Queries
    whole: bool
    count: int | None = None
    each: int = 1
    alpha: Fraction = Fraction(1, 2)
    anneal: bool = False
    informed: bool = False
    weights: Mapping[Clique, float] = field(default_factory=dict)
    limit: int = MOST_ROUNDS

    def __post_init__(self) -> None:
        whole = all(isinstance(n, int | np.integer) for n in (self.each, 1 if self.count is None else self.count))
        if not whole or self.each < 1 or (self.count is not None and self.count < 1) or not 0 < self.alpha < 1:
            raise InputError("Rounds need a whole count of at least 1, of 1 query or more each, and alpha in (0, 1).")
        if self.whole and self.queries.sets:
            raise InputError(
                "Sets of codes are single queries, and rounds measure whole marginals.",
                remedy='Say granularity="query", or give a workload instead of queries.',
            )
        there_are = len(self.queries.cliques) if self.whole else len(self.queries)
        object.__setattr__(self, "each", min(self.each, there_are))

    @staticmethod
    def of(workload: Workload, domain: Domain, queries: Queries | None, granularity: str, **more: Any) -> Rounds:
        """Rounds on the marginals of a workload, or their cells; or on queries, which stand in its place."""
        asked = queries_of(domain, workload.cliques, queries)
        if queries is None and not is_whole(granularity) and len(set(workload.weights.values())) > 1:
            raise InputError(
                "The workload's marginals have weights, and a round of single queries has no use for them.",
                remedy='Say granularity="marginal", or give all of them the same weight.',
            )
        weights = workload.weights if queries is None else {}
        return Rounds(queries=asked, whole=is_whole(granularity), weights=weights, **more)

    @property
    def choosing(self) -> Fraction:
        """The share of a round's rho that chooses; none where each of them measures all marginals that there are."""
        if self.whole and len(self.queries.cliques) == self.each:
            return Fraction(0)
        return self.alpha**2 / (self.alpha**2 + (1 - self.alpha) ** 2)

    @property
    def least(self) -> int:
        """The fewest rounds where no count is given; of whole marginals so many that they reach all columns.

        That is one per column, as in MWEM+PGM, for marginals of three columns and more. Of smaller ones each column
        meets four others on average (twice as many pairs), unless there are fewer marginals.
        """
        if not self.whole:
            return LEAST_ROUNDS
        columns, marginals = len(self.queries.domain), self.queries.cliques
        met = sum(len(r) * (len(r) - 1) for r in marginals) / len(marginals)
        return max(columns, min(len(marginals), math.ceil(4 * columns / max(met, 1.0))))

    @property
    def most(self) -> int:
        """The most rounds where no count is given; of whole marginals no more than measure each of them once."""
        if not self.whole:
            return MOST_ROUNDS
        return max(self.least, min(self.limit, math.ceil(len(self.queries.cliques) / self.each)))

    def reads(self) -> list[Clique]:
        """The marginals of the queries, and a column in which all records can be counted."""
        return list(dict.fromkeys([*self.queries.cliques, TOTAL.counted_in(self.queries.domain)]))

    def steps(self, rho: Fraction, unit: Unit) -> list[Step]:
        """The number of records, if it is private, and the rounds: at the most that there may be."""
        left = rho if size_is_public(unit) else rho * (1 - FOR_TOTAL)
        count = self.count or self.most
        share = left / count * (1 - self.choosing) / self.each
        scale = Gaussian.scale_for(share, unit) if self.whole else Gaussian.scale_for(share, unit, self.queries[0])
        what = "chosen marginals" if self.whole else "chosen queries"
        rounds = Step(
            what,
            self.queries.cliques,
            count * self.each,
            scale,
            adaptive=True,
            at_most=self.anneal or (self.count is None and self.least < self.most),
            single=not self.whole,
        )
        return [*total_steps(self.queries.domain, rho, unit), rounds]

    def begin(self, private: Private) -> int:
        """Ask for the number of records where it is private; how many rounds there will be."""
        private.prepare(self.reads())
        ask_total(private)
        return self.worth(private.remaining, private.transcript.total())

    def worth(self, rho: Fraction, records: float) -> int:
        """Return how many rounds there are for a budget and so many records."""
        if self.count is not None:
            return self.count
        if not self.whole:
            return best_rounds(rho, records, self.queries, informed=self.informed)
        return min(max(self.least, best_marginal_rounds(rho, records, self.queries, each=self.each)), self.most)

    def ask(
        self,
        private: Private,
        model: Model,
        left: int,
        *,
        rng: np.random.Generator,
        memory: Memory | None = None,
        fitting: Fitting = list,
    ) -> list[FloatArray]:
        """One round of the ``left`` that are left: choose by the exponential mechanism, then measure.

        ``memory`` is told what whole marginals were chosen by, for error bounds on those passed over. ``fitting``
        leaves those that the model has room for. What comes back is for ``left_after``.

        **Privacy:** ``remaining / left`` (zCDP), to the last fraction.
        """
        rho = private.remaining / left
        spent_choosing, spent_measuring = rho * self.choosing, rho * (1 - self.choosing)
        if self.whole:
            candidates = fitting(self.queries.cliques)
            prices = spent_choosing, spent_measuring
            marginals, estimates = self._worst_marginals(private, model, candidates, *prices, rng)
            private.measure(marginals, Gaussian(rho=spent_measuring))
            if memory is not None and self.choosing:
                memory.note(estimates, private.transcript)
        else:
            worst = self._worst_queries(private, model, spent_choosing, rng)
            private.measure_queries(worst, Gaussian(rho=spent_measuring))
        return self._latest(model, private.transcript) if self.anneal else []

    def left_after(self, left: int, before: list[FloatArray], model: Model, transcript: Transcript) -> int:
        """How many rounds are left after one of ``left``, whose answers have moved the model from ``before``.

        Half of the others, at least one, where they moved it by less than the noise would be (AIM's rule, there with
        a fourfold budget): what is chosen and measured at this price is noise for the most part.

        **Privacy:** none spent; it sees noisy answers and models of them.
        """
        left -= 1
        if not self.anneal or left < 2:
            return left
        moved = sum(float(np.abs(a - b).sum()) for a, b in zip(self._latest(model, transcript), before, strict=True))
        cells = [1 if isinstance(e, Answer) else model.domain.possible(e.clique) for e in self._asked(transcript)]
        noise = sum(expected_noise(e.scale, c) for e, c in zip(self._asked(transcript), cells, strict=True))
        return left // 2 if moved <= noise else left

    def _asked(self, transcript: Transcript) -> Sequence[Answer | Measurement]:
        """What the last round measured."""
        return (transcript.measurements if self.whole else transcript.answers)[-self.each :]

    def _latest(self, model: Model, transcript: Transcript) -> list[FloatArray]:
        """What a model says of it."""
        return [
            np.asarray(e.query.count(model.project(e.query.clique).values))
            if isinstance(e, Answer)
            else model.project(e.clique).values
            for e in self._asked(transcript)
        ]

    def _worst_queries(
        self, private: Private, model: Model, rho: Fraction, rng: np.random.Generator
    ) -> list[LinearQuery]:
        """Queries whose answers are far off, none of them twice in a round."""
        estimates = self._estimates(model, rng)
        chosen: list[int] = []
        for _ in range(self.each):
            score = QueryGap(estimates, without=frozenset(chosen))
            (found,) = private.select_query(self.queries, score, rho=rho / self.each)
            chosen.append(found.number)
        return [self.queries[number] for number in chosen]

    def _worst_marginals(
        self,
        private: Private,
        model: Model,
        left: list[Clique],
        rho: Fraction,
        measuring: Fraction,
        rng: np.random.Generator,
    ) -> tuple[list[Clique], dict[Clique, FloatArray]]:
        """Marginals that are far off in sum, beyond what the noise of measuring them would be; the estimates of all."""
        domain, scale = private.domain, Gaussian.scale_for(measuring / self.each, private.unit)
        estimates = model.answer(left, rng=rng, scale=scale)
        if not self.choosing:
            return left, estimates
        chosen: list[Clique] = []
        for _ in range(min(self.each, len(left))):
            score = MarginalGap(
                estimates,
                weights={r: self.weights.get(r, 1.0) for r in left},
                penalties={r: expected_noise(scale, domain.possible(r)) for r in left},
            )
            chosen.append(private.select(left, score, rho=rho / self.each))
            left.remove(chosen[-1])
        return chosen, estimates

    def _estimates(self, model: Model, rng: np.random.Generator) -> dict[Clique, FloatArray]:
        """The model's answers to the queries, in records."""
        answers = model.answer(self.queries.cliques, rng=rng)
        return {r: np.asarray(self.queries.answer(r, v), dtype=np.float64) for r, v in answers.items()}


def queries_of(domain: Domain, cliques: Collection[Clique], queries: Queries | None) -> Queries:
    """The queries given, which are to be of this domain, or every cell of the workload's marginals."""
    if queries is None:
        return Queries.cells(domain, tuple(cliques))
    if difference := domain.difference(queries.domain):
        raise InputError(
            f"The queries are of another domain than the table: {difference}.", remedy="Make them for the schema's."
        )
    return queries


def queries_config(queries: Queries | None) -> Any:
    """A set of queries as plain data: its marginals, how many sets of codes columns have, and its hash."""
    if queries is None:
        return "all cells"
    sets = {a: len(found) for a, found in queries.sets.items()}
    cliques = [list(c) for c in queries.cliques]
    return {"count": len(queries), "cliques": cliques, "sets": sets, "sha256": queries.hash()}


def exact_alpha(alpha: Fraction) -> Fraction:
    """The parameter alpha as an exact fraction; an ``InputError`` unless it lies between 0 and 1."""
    if not 1e-6 <= alpha <= 1 - 1e-6:
        raise InputError(f"alpha is {float(alpha)}.", remedy="It lies between 0 and 1.")
    return Fraction(alpha).limit_denominator(10**6)


def check_rounds(rounds: int | None, name: str) -> None:
    """Raise ``InputError`` for a number of rounds below one; None leaves it to the mechanism."""
    if rounds is not None and rounds < 1:
        raise InputError(f"{name} needs at least one round.")


def is_whole(granularity: str) -> bool:
    """Whether whole marginals are measured, and not single queries; anything else is an ``InputError``."""
    if granularity not in get_args(Granularity):
        raise InputError(f"A round cannot measure a {granularity!r}.", remedy='It measures a "query" or a "marginal".')
    return granularity == "marginal"
