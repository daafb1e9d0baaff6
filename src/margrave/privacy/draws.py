"""What is drawn from true counts once they are paid for: noisy marginals, noisy queries, choices.

These run behind the gate alone, inside ``sanitized``. Whatever a source of randomness or a score gives in a wrong
shape or type is no answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from margrave.errors import MargraveError
from margrave.marginal import Queries, Query, SingleQuery
from margrave.privacy.noise import Randomness
from margrave.privacy.question import Answers
from margrave.privacy.scores import QueryGap, Score
from margrave.typing import Clique, IntArray

Counts = Mapping[Clique, IntArray]


def noisy(counts: Counts, source: Randomness, asked: Sequence[Clique], scale: float, query: Query) -> Answers:
    """Marginals with noise, one array each."""
    return tuple(_with_noise(query.apply(clique, counts[clique]), source, scale) for clique in asked)


def noisy_queries(
    counts: Counts, source: Randomness, asked: Sequence[SingleQuery], cliques: Sequence[Clique], scale: float
) -> Answers:
    """Single queries with noise, each counted from its clique, in one array."""
    truth = np.array([q.count(counts[c]) for q, c in zip(asked, cliques, strict=True)], dtype=np.int64)
    return (_with_noise(truth, source, scale),)


def chosen(
    counts: Counts, source: Randomness, asked: Sequence[Clique], score: Score, temperature: Fraction
) -> Answers:
    """The place of one candidate, those that can be read from public data last."""
    values, grid = score(asked, {c: counts[c] for c in asked})
    if len(values) != len(asked) + len(score.readable(asked)):
        raise MargraveError("The score does not have one value per candidate.")
    return (np.array(_place(values, source, temperature * grid), dtype=np.int64),)


def chosen_queries(
    counts: Counts, source: Randomness, queries: Queries, score: QueryGap, temperature: Fraction, times: int
) -> Answers:
    """The places of so many candidates in one array, each drawn by itself."""
    values, grid = score(queries, {c: counts[c] for c in queries.cliques})
    sides = 2 if score.signed else 1
    if values.shape != (sides * (len(queries) - len(score.without)),):
        raise MargraveError("The score does not have one value per candidate.")
    drawn = [_place(values, source, temperature * grid) for _ in range(times)]
    return (np.array(drawn, dtype=np.int64),)


def _with_noise(truth: IntArray, source: Randomness, scale: float) -> IntArray:
    values = source.gaussian(truth, scale)
    if values.dtype != np.int64 or values.shape != truth.shape:
        raise MargraveError("The noise has the wrong shape or type.")
    return values


def _place(values: Sequence[int] | IntArray, source: Randomness, temperature: Fraction) -> int:
    return range(len(values))[source.choose(values, temperature)]  # no place beyond the last
