"""The objective of a record: a weighted sum of linear queries, and a number for each of its codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from margrave.domain import Domain
from margrave.marginal import LinearQuery
from margrave.types import Attribute, FloatArray, IntArray

BoolMatrix = NDArray[np.bool_]
#: A number for every code of some attributes in each problem, of shape (problems, codes).
Bonus = Mapping[Attribute, FloatArray]


@dataclass(frozen=True, eq=False)
class Objective:
    """``value(x) = Σ_j weights[j] · q_j(x) + Σ_a bonus[a][x_a]``, with q_j(x) = 1 where record x is counted, else 0.

    ``bonus`` may differ from problem to problem, of which there are ``problems``; the queries are the same in all.
    Equal queries are one with the sum of their weights, and what a query says of an attribute whose every code it
    allows is dropped (``of``).

    >>> domain = Domain.of({"age": 3, "sex": 2})
    >>> young, woman = LinearQuery(("age",), ((0, 1),)), LinearQuery(("age", "sex"), ((1,), (1,)))
    >>> Objective.of(domain, [(young, 1.0), (woman, 2.0), (young, 1.0)]).values(np.array([[1, 1], [0, 1], [2, 1]]))
    array([4., 2., 0.])
    """

    domain: Domain
    queries: tuple[LinearQuery, ...]
    weights: FloatArray
    bonus: Bonus = field(default_factory=dict)
    problems: int = 1

    @staticmethod
    def of(
        domain: Domain, weighted: Iterable[tuple[LinearQuery, float]], bonus: Bonus | None = None
    ) -> Objective:
        """Return the objective of weighted queries, without those that cancel or count every
        record.
        """
        sums: dict[LinearQuery, float] = {}
        for query, weight in weighted:
            reduced = _reduced(domain, query)
            sums[reduced] = sums.get(reduced, 0.0) + weight
        left = {q: w for q, w in sums.items() if w and q.clique}
        given = {} if bonus is None else dict(bonus)
        problems = {len(b) for b in given.values()} or {1}
        return Objective(
            domain,
            tuple(left),
            np.array(list(left.values()), dtype=np.float64),
            given,
            problems.pop(),
        )

    @cached_property
    def allows(self) -> dict[Attribute, BoolMatrix]:
        """For each attribute a matrix: whether query j allows the code (all codes, where it does not name it)."""
        allowed = {
            a: np.ones((len(self.queries), self.domain.size(a)), dtype=np.bool_)
            for a in self.domain
        }
        for j, query in enumerate(self.queries):
            for attribute, codes in zip(query.clique, query.codes, strict=True):
                allowed[attribute][j] = False
                allowed[attribute][j, list(codes)] = True
        return allowed

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes that make a difference, in the domain's order."""
        return self.domain.clique([*(a for q in self.queries for a in q.clique), *self.bonus])

    def misses(self, rows: IntArray) -> IntArray:
        """Return the number of attributes whose code excludes each record, of shape (records,
        attributes), from each query.
        """
        wrong = np.zeros((len(rows), len(self.queries)), dtype=np.int64)
        for i, attribute in enumerate(self.domain):
            wrong += ~self.allows[attribute].T[rows[:, i]]
        return wrong

    def values(self, rows: IntArray, misses: IntArray | None = None) -> FloatArray:
        """Return the value of one record per problem; or, with a single problem or no bonus, of any
        number of records.

        ``misses`` are those of the records, where they are known.
        """
        misses = self.misses(rows) if misses is None else misses
        value = np.asarray((misses == 0) @ self.weights, dtype=np.float64)
        for attribute, numbers in self.bonus.items():
            codes = rows[:, self.domain.index(attribute)]
            value += (
                numbers[0][codes] if self.problems == 1 else numbers[np.arange(len(rows)), codes]
            )
        return value

    def problem(self, number: int) -> Objective:
        """Return one of the problems on its own."""
        bonus = {a: b[number : number + 1] for a, b in self.bonus.items()}
        return Objective(self.domain, self.queries, self.weights, bonus)

    def repeated(self, times: int) -> Objective:
        """Return every problem so many times, one after the other."""
        bonus = {a: np.repeat(b, times, axis=0) for a, b in self.bonus.items()}
        return Objective(self.domain, self.queries, self.weights, bonus, self.problems * times)

    @property
    def bound(self) -> FloatArray:
        """An upper bound per problem: all queries of positive weight are met, with the best codes.

        A record lies in at most one of the single cells of a marginal.
        """
        best: dict[object, float] = {}
        for j, (query, weight) in enumerate(zip(self.queries, self.weights.tolist(), strict=True)):
            key: object = query.clique if query.is_cell else j
            best[key] = max(best.get(key, 0.0), weight)
        tops = (b.max(axis=1) for b in self.bonus.values())
        return np.full(self.problems, sum(best.values())) + sum(tops, np.zeros(self.problems))


def _reduced(domain: Domain, query: LinearQuery) -> LinearQuery:
    pairs = zip(query.clique, query.codes, strict=True)
    kept = [(a, codes) for a, codes in pairs if len(codes) < domain.size(a)]
    if len(kept) == len(query.clique):
        return query
    return LinearQuery(tuple(a for a, _ in kept), tuple(codes for _, codes in kept))
