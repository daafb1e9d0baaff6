"""Questions answered by a choice: one marginal, some linear queries, one half-space. By the exponential mechanism."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from weakref import ref

import numpy as np

from margrave._card import counted
from margrave._fields import is_whole
from margrave.accounting.accountant import exact_rho
from margrave.accounting.question import Answers, Question
from margrave.errors import InputError
from margrave.marginal import HalfSpace, QueryFamily
from margrave.privacy.copies import (
    own_gap,
    own_half_space,
    own_half_space_gap,
    own_queries,
    own_score,
    readable_of,
    terms_of,
    voucher,
)
from margrave.privacy.exponential import epsilon_of, temperature_of
from margrave.privacy.half_space_gap import HalfSpaceGap
from margrave.privacy.noise import Randomness
from margrave.privacy.requests.request import (
    Counts,
    PublicKnowledge,
    Request,
    TrueCounts,
    check_scores,
    place,
    queries_in_words,
)
from margrave.privacy.scores import MarginalGap, QueryGap, Score, lipschitz_of
from margrave.transcript import HalfSpaceSelection, QuerySelection, Selection
from margrave.types import Clique, FloatArray, IntArray


@dataclass(frozen=True)
class ChoicePrice:
    """The price of a selection: ``epsilon = sqrt(8 rho)``, rounded down, for a score of this
    ``sensitivity``.
    """

    rho: Fraction
    epsilon: Fraction
    sensitivity: Fraction

    @classmethod
    def of(cls, rho: Fraction, sensitivity: Fraction | int) -> ChoicePrice:
        """Return the price of one choice at rho (zCDP)."""
        return cls(rho, epsilon_of(rho), Fraction(sensitivity))

    @property
    def temperature(self) -> Fraction:
        """The factor of scores in the exponent."""
        return temperature_of(self.epsilon, self.sensitivity)

    def to_dict(self) -> dict[str, float]:
        """Return epsilon and the sensitivity."""
        return {"epsilon": float(self.epsilon), "sensitivity": float(self.sensitivity)}


def exact_price(rho: Fraction) -> Fraction:
    """Return the rho of a choice, as an exact positive fraction."""
    return exact_rho(rho, "The rho of a choice")


@dataclass(frozen=True, eq=False)
class ScoredMarginals:
    """The gate's own copies of candidates and the public parts of their scores.

    Later selections by the same ``MarginalGap`` object, among fewer candidates, need no new copies.
    """

    candidates: tuple[Clique, ...]
    terms: Mapping[str, FloatArray]
    readable: tuple[Clique, ...]
    original: Callable[[], Score | None]

    @classmethod
    def of(cls, own: Score, original: Score, candidates: tuple[Clique, ...]) -> ScoredMarginals:
        """Return the public parts of a score, which was copied from the ``original``."""
        terms, readable = terms_of(own, candidates), readable_of(own, candidates)
        reusable = type(original) is MarginalGap
        return cls(candidates, terms, readable, ref(original) if reusable else lambda: None)

    @cached_property
    def _places(self) -> dict[Clique, int]:
        return {r: i for i, r in enumerate(self.candidates)}

    def places_of(self, score: Score, candidates: Sequence[Clique]) -> IntArray | None:
        """Return the places of candidates; None for another score, unknown candidates, or one named twice."""
        if self.original() is not score:
            return None
        try:
            places = np.fromiter(map(self._places.__getitem__, candidates), np.int64)
        except (KeyError, TypeError):
            return None
        return places if places.size and np.bincount(places).max() == 1 else None


@dataclass(frozen=True, eq=False)
class SelectMarginal(Request[Selection]):
    """One of the candidates. Those that can be read from public data are candidates twice.

    ``score`` is None if the scores are known, and ``places`` are then those of the candidates.
    """

    scored: ScoredMarginals
    score: Score | None
    places: IntArray | None
    price: ChoicePrice
    vouched: str

    @classmethod
    def of(
        cls,
        known: PublicKnowledge,
        candidates: Iterable[Clique],
        score: Score,
        rho: Fraction,
        last: ScoredMarginals | None = None,
    ) -> SelectMarginal:
        """Check and price the question. ``last`` are the marginals whose scores are known."""
        listed, rho = list(candidates), exact_price(rho)
        if last is not None and (places := last.places_of(score, listed)) is not None:
            largest = Fraction(float(last.terms["weight"][places].max()))
            price = ChoicePrice.of(rho, largest * known.sensitivity().l1)
            return cls(last, None, places, price, "")
        asked = known.candidates(listed)
        original, named = score, voucher(score, known.vouched)
        score = own_score(score, asked, known.vouched, known.unit)
        score.check(known.domain, asked)
        if not named:
            known.check_total()
        scored = ScoredMarginals.of(score, original, asked)
        moved = lipschitz_of(score) * known.sensitivity().l1
        return cls(scored, score, None, ChoicePrice.of(rho, moved), named)

    @cached_property
    def candidates(self) -> tuple[Clique, ...]:
        """The candidates, in the order of their scores."""
        everything = self.scored.candidates
        if self.places is None:
            return everything
        return tuple(everything[i] for i in self.places.tolist())

    @cached_property
    def terms(self) -> Mapping[str, FloatArray]:
        """The public parts of the scores."""
        if self.places is None:
            return self.scored.terms
        return {name: values[self.places] for name, values in self.scored.terms.items()}

    @property
    def counted(self) -> Sequence[Clique]:
        """The candidates, unless their scores are known."""
        return () if self.score is None else self.candidates

    def question(self) -> Question:
        """Return the candidates, the price and the public parts of the scores.

        The answer is the place of the choice among the candidates, those to read last.
        """
        readable = self.scored.readable
        return Question(
            what=f"choose one of {counted(len(self.candidates), 'marginal')}",
            rho=self.price.rho,
            asked={
                "kind": "select",
                "candidates": self.candidates,
                **self.price.to_dict(),
                "terms": {name: values.tolist() for name, values in sorted(self.terms.items())},
                **({"readable": [list(c) for c in readable]} if readable else {}),
                **({"vouched": self.vouched} if self.vouched else {}),
            },
            shapes=((),),
        )

    def draw(self, counts: Counts, source: Randomness) -> Answers:
        """Draw the place."""
        values, grid = self._scores(counts)
        check_scores(values, len(self.candidates) + len(self.scored.readable))
        chosen = place(values, source, self.price.temperature * grid)
        return (np.array(chosen, dtype=np.int64),)

    def _scores(self, counts: Counts) -> tuple[Sequence[int] | IntArray, Fraction]:
        if self.score is None:
            assert isinstance(counts, TrueCounts)
            assert self.places is not None
            values, grid = counts.scores
            if isinstance(values, np.ndarray):
                return values[self.places], grid
            return [values[i] for i in self.places.tolist()], grid
        scores = self.score(self.candidates, {c: counts[c] for c in self.candidates})
        if isinstance(counts, TrueCounts):
            counts.keep(self.scored, *scores)
        return scores

    def entries(self, answers: Answers) -> tuple[Selection, ...]:
        """Return the one entry."""
        chosen, readable = int(answers[0]), self.scored.readable
        return (
            Selection(
                self.candidates,
                (*self.candidates, *readable)[chosen],
                float(self.price.epsilon),
                float(self.price.sensitivity),
                self.price.rho,
                self.terms,
                readable,
                public=chosen >= len(self.candidates),
                vouched=self.vouched,
            ),
        )


@dataclass(frozen=True, eq=False)
class SelectQueries(Request[QuerySelection]):
    """``times`` draws, with replacement, among linear queries."""

    queries: QueryFamily
    score: QueryGap
    times: int
    price: ChoicePrice

    @classmethod
    def of(
        cls,
        known: PublicKnowledge,
        queries: QueryFamily,
        score: QueryGap,
        rho: Fraction,
        times: int,
        last: QueryFamily | None = None,
    ) -> SelectQueries:
        """Check and price the question. ``last`` are the queries of the choice before it, if there was one."""
        queries = own_queries(queries, known.domain, last)
        score = own_gap(score, queries)
        if not is_whole(times, 1):
            raise InputError(
                "None of the queries is to be chosen.", remedy="Give times of 1 or more."
            )
        known.cliques(queries.cliques)
        rho = exact_price(rho)
        score.check(queries)
        known.check_total()
        moved = known.sensitivity(queries[0]).l1
        return cls(queries, score, int(times), ChoicePrice.of(rho / int(times), moved))

    @property
    def counted(self) -> Sequence[Clique]:
        """The cliques of the queries."""
        return self.queries.cliques

    def question(self) -> Question:
        """Return the queries, which of them are candidates, how often, and the price.

        The answer is one array of places.
        """
        without, signed = self.score.without, self.score.signed
        queries = queries_in_words(len(self.queries) - len(without))
        sets = {
            a: [np.flatnonzero(codes).tolist() for codes in of_a]
            for a, of_a in sorted(self.queries.sets.items())
        }
        return Question(
            what=f"choose {self.times} of {queries}{' and complements' if signed else ''}",
            rho=self.price.rho * self.times,
            asked={
                "kind": "select-query",
                "cliques": [list(c) for c in self.queries.cliques],
                "sets": sets,
                "without": sorted(without),
                "signed": signed,
                "times": self.times,
                **self.price.to_dict(),
            },
            shapes=((self.times,),),
        )

    def draw(self, counts: Counts, source: Randomness) -> Answers:
        """Draw the places, each by itself."""
        values, grid = self.score(self.queries, {c: counts[c] for c in self.queries.cliques})
        sides = 2 if self.score.signed else 1
        check_scores(values, sides * (len(self.queries) - len(self.score.without)))
        temperature = self.price.temperature * grid
        drawn = [place(values, source, temperature) for _ in range(self.times)]
        return (np.array(drawn, dtype=np.int64),)

    def entries(self, answers: Answers) -> tuple[QuerySelection, ...]:
        """Return one entry per draw."""
        numbers = self.score.candidates(self.queries)
        return tuple(
            QuerySelection(
                self.queries,
                number=int(numbers[chosen % len(numbers)]),
                sign=-1 if chosen >= len(numbers) else 1,
                epsilon=float(self.price.epsilon),
                sensitivity=float(self.price.sensitivity),
                rho=self.price.rho,
                signed=self.score.signed,
                without=self.score.without,
            )
            for chosen in answers[0].tolist()
        )


@dataclass(frozen=True, eq=False)
class SelectHalfSpace(Request[HalfSpaceSelection]):
    """One of some half-spaces, in all of which a row counts as much at most."""

    queries: tuple[HalfSpace, ...]
    cliques: tuple[Clique, ...]
    score: HalfSpaceGap
    price: ChoicePrice

    @classmethod
    def of(
        cls,
        known: PublicKnowledge,
        queries: Iterable[HalfSpace],
        score: HalfSpaceGap,
        rho: Fraction,
    ) -> SelectHalfSpace:
        """Check and price the question."""
        own = tuple(own_half_space(q) for q in queries)
        for query in own:
            query.check(known.domain)
        cliques = known.cliques(q.clique for q in own)
        if len({q.max_contribution for q in own}) > 1:
            raise InputError(
                "The half-spaces count a row differently.",
                remedy="Give all of them a slope, or none.",
            )
        score = own_half_space_gap(score)
        score.check(own)
        moved = Fraction(known.sensitivity(own[0]).l1, own[0].max_contribution)
        price = ChoicePrice.of(exact_price(rho), moved)
        return cls(own, tuple(dict.fromkeys(cliques)), score, price)

    @property
    def counted(self) -> Sequence[Clique]:
        """The cliques of the half-spaces."""
        return self.cliques

    def question(self) -> Question:
        """Return the half-spaces, their estimates and the price. The answer is the place of the choice."""
        return Question(
            what=f"choose one of {counted(len(self.queries), 'half-space')}",
            rho=self.price.rho,
            asked={
                "kind": "select-half-space",
                "queries": [q.to_dict() for q in self.queries],
                "estimates": self.score.estimates.tolist(),
                **self.price.to_dict(),
            },
            shapes=((),),
        )

    def draw(self, counts: Counts, source: Randomness) -> Answers:
        """Draw the place."""
        values, grid = self.score(self.queries, {q.clique: counts[q.clique] for q in self.queries})
        check_scores(values, len(self.queries))
        chosen = place(values, source, self.price.temperature * grid)
        return (np.array(chosen, dtype=np.int64),)

    def entries(self, answers: Answers) -> tuple[HalfSpaceSelection, ...]:
        """Return the one entry."""
        epsilon, moved = float(self.price.epsilon), float(self.price.sensitivity)
        return (HalfSpaceSelection(self.queries, int(answers[0]), epsilon, moved, self.price.rho),)
