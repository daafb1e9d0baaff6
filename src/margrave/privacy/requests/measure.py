"""Questions answered by noisy numbers: marginals, single queries, scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from margrave.accounting.question import Answers, Question
from margrave.accounting.sensitivities import Sensitivity, sensitivity
from margrave.domain import Domain
from margrave.errors import InputError, MargraveError
from margrave.marginal import LinearMap, SingleQuery
from margrave.privacy.copies import own_measured_score, own_noise, own_query, own_single_query
from margrave.privacy.dependence import Dependence
from margrave.privacy.noise import Gaussian, NoisePrice, Randomness
from margrave.privacy.requests.request import (
    Counts,
    PublicKnowledge,
    Request,
    check_scores,
    frozen,
    names,
    queries_in_words,
    with_noise,
)
from margrave.privacy.scores import PER_RECORD, MarginalGap, lipschitz_of
from margrave.transcript import Answer, Measurement, ScoreMeasurement
from margrave.types import Clique


@dataclass(frozen=True, eq=False)
class MeasureMarginals(Request[Measurement]):
    """``query(M_clique(D))`` with noise, for each clique."""

    cliques: tuple[Clique, ...]
    query: LinearMap
    answers: Domain
    price: NoisePrice

    @classmethod
    def of(
        cls, known: PublicKnowledge, cliques: Iterable[Clique], noise: Gaussian, query: LinearMap
    ) -> MeasureMarginals:
        """Check and price the question."""
        asked, query, noise = known.cliques(cliques), own_query(query), own_noise(noise)
        query.check(known.domain)
        price = noise.price(sensitivity_of_all(known, query, asked), len(asked))
        return cls(asked, query, query.domain(known.domain), price)

    @property
    def counted(self) -> Sequence[Clique]:
        """The cliques."""
        return self.cliques

    def question(self) -> Question:
        """Return the cliques, the noise scale and the map; a clique that is named twice is paid twice."""
        matrices = {a: matrix.tolist() for a, matrix in sorted(self.query.matrices.items())}
        return Question(
            what=f"measure {names(self.cliques)}",
            rho=self.price.rho_each * len(self.cliques),
            asked={
                "kind": "measure",
                "cliques": [list(c) for c in self.cliques],
                "scale": self.price.scale,
                "query": {a: groups.tolist() for a, groups in sorted(self.query.groups.items())},
                **({"matrices": matrices} if matrices else {}),
            },
            shapes=tuple(self.answers.shape(c) for c in self.cliques),
        )

    def draw(self, counts: Counts, source: Randomness) -> Answers:
        """Draw one array per marginal."""
        return tuple(
            with_noise(self.query.apply(clique, counts[clique]), source, self.price.scale)
            for clique in self.cliques
        )

    def entries(self, answers: Answers) -> tuple[Measurement, ...]:
        """Return one entry per marginal."""
        scale, rho = self.price
        return tuple(
            Measurement(clique, frozen(values), scale, rho, self.query.within(clique))
            for clique, values in zip(self.cliques, answers, strict=True)
        )


def sensitivity_of_all(
    known: PublicKnowledge, query: LinearMap, cliques: Sequence[Clique]
) -> Sensitivity:
    """Return the sensitivity of a map of each of some marginals: one noise scale fits no two.

    Raises:
        InputError: If they differ in it, or the map changes columns that a marginal lacks.
    """
    if query.is_partition:
        return known.sensitivity(query)
    unused = [a for a in query.matrices if any(a not in c for c in cliques)]
    marginals = [known.domain.project(c) for c in cliques]
    distinct = {query.others_vary(d): d for d in marginals}  # all else is the same
    moved = set[Sensitivity]()
    if not unused:
        moved = {sensitivity(known.unit, query, d) for d in distinct.values()}
    if len(moved) != 1:
        raise InputError(
            "The map changes these marginals by different amounts.",
            remedy="Measure those with the same columns with matrices, and equal sensitivities, together.",
        )
    return moved.pop()


@dataclass(frozen=True, eq=False)
class MeasureQueries(Request[Answer]):
    """``q(D)`` with noise, for each single query."""

    queries: tuple[SingleQuery, ...]
    cliques: tuple[Clique, ...]
    price: NoisePrice

    @classmethod
    def of(
        cls, known: PublicKnowledge, queries: Iterable[SingleQuery], noise: Gaussian
    ) -> MeasureQueries:
        """Check and price the question."""
        asked, noise = tuple(own_single_query(q) for q in queries), own_noise(noise)
        for query in asked:
            query.check(known.domain)
        cliques = known.cliques(q.counting_clique(known.domain) for q in asked)
        if len({q.max_contribution for q in asked}) > 1:
            # their noise differs, and so does its price
            raise InputError(
                "The queries count a row differently.", remedy="Ask for each kind by itself."
            )
        return cls(asked, cliques, noise.price(known.sensitivity(asked[0]), len(asked)))

    @property
    def counted(self) -> Sequence[Clique]:
        """The marginals that the queries are counted from."""
        return self.cliques

    def question(self) -> Question:
        """Return the queries and the noise scale. The answer is one array with a number per query."""
        number, on = len(self.queries), names(tuple(dict.fromkeys(q.clique for q in self.queries)))
        return Question(
            what=f"measure {queries_in_words(number)} on {on}",
            rho=self.price.rho_each * number,
            asked={
                "kind": "measure-queries",
                "queries": [q.to_dict() for q in self.queries],
                "scale": self.price.scale,
            },
            shapes=((number,),),
        )

    def draw(self, counts: Counts, source: Randomness) -> Answers:
        """Draw all answers, in one array."""
        asked = zip(self.queries, self.cliques, strict=True)
        truth = np.array([q.count(counts[c]) for q, c in asked], dtype=np.int64)
        return (with_noise(truth, source, self.price.scale),)

    def entries(self, answers: Answers) -> tuple[Answer, ...]:
        """Return one entry per query."""
        scale, rho = self.price
        asked = zip(self.queries, answers[0], strict=True)
        return tuple(Answer(query, int(value), scale, rho) for query, value in asked)


@dataclass(frozen=True, eq=False)
class MeasureScores(Request[ScoreMeasurement]):
    """The scores of all candidates with noise. They are whole numbers of 2^-10 records."""

    candidates: tuple[Clique, ...]
    score: Dependence | MarginalGap
    sensitivity: Fraction
    price: NoisePrice

    @classmethod
    def of(
        cls,
        known: PublicKnowledge,
        candidates: Iterable[Clique],
        score: Dependence | MarginalGap,
        noise: Gaussian,
    ) -> MeasureScores:
        """Check and price the question."""
        asked = known.candidates(candidates)
        own, noise = own_measured_score(score, asked, known.unit), own_noise(noise)
        own.check(known.domain, asked)
        if isinstance(own, MarginalGap):
            known.check_total()
        moved = lipschitz_of(own) * known.sensitivity().l1
        parts = math.ceil(moved * PER_RECORD)  # of which plain scores move by whole numbers
        moves = Sensitivity(parts, parts**2)
        return cls(asked, own, moved, noise.in_parts(PER_RECORD).price(moves, len(asked)))

    @property
    def counted(self) -> Sequence[Clique]:
        """The candidates."""
        return self.candidates

    @property
    def rho(self) -> Fraction:
        """The price of all scores (zCDP)."""
        return self.price.rho_each * len(self.candidates)

    @property
    def scale(self) -> float:
        """The standard deviation of the noise, in records."""
        return self.price.scale / PER_RECORD

    def question(self) -> Question:
        """Return the candidates, the score and the noise scale. The answer is one array with a number per candidate."""
        number, terms = len(self.candidates), self.score.terms(self.candidates)
        scores = "1 score" if number == 1 else f"{number:,} scores"
        return Question(
            what=f"measure {scores} of {names(self.candidates)}",
            rho=self.rho,
            asked={
                "kind": "measure-scores",
                "candidates": [list(c) for c in self.candidates],
                "score": self.score.name,
                "scale": self.scale,
                "sensitivity": float(self.sensitivity),
                "terms": {term: values.tolist() for term, values in sorted(terms.items())},
            },
            shapes=((number,),),
        )

    def draw(self, counts: Counts, source: Randomness) -> Answers:
        """Draw all scores in units of 2^-10, in one array."""
        values, grid = self.score(self.candidates, {c: counts[c] for c in self.candidates})
        check_scores(values, len(self.candidates))
        if grid != Fraction(1, PER_RECORD):
            raise MargraveError("The score is on another grid.")
        return (with_noise(np.array(values, dtype=np.int64), source, self.price.scale),)

    def entries(self, answers: Answers) -> tuple[ScoreMeasurement, ...]:
        """Return the one entry."""
        values = np.asarray(answers[0] / PER_RECORD, dtype=np.float64)
        return (
            ScoreMeasurement(
                self.candidates,
                frozen(values),
                self.scale,
                float(self.sensitivity),
                self.rho,
                self.score.name,
                self.score.terms(self.candidates),
            ),
        )
