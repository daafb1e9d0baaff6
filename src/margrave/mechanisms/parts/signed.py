"""Mechanisms that select queries and measure none: DualQuery and FEM.

A query and its complement, "not counted by it", are both candidates: a signed score is positive for
the one of the two that the records so far have too little of. The selected ones go to an oracle
that finds records with as many of them as can be.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from margrave.accounting import Unit
from margrave.domain import Codes, Domain
from margrave.marginal import TOTAL, LinearQuery, QueryFamily
from margrave.marginal.counting import count_cliques
from margrave.mechanisms.common import Mechanism, PlannedMeasurement, SelectionLoad
from margrave.mechanisms.parts.budget import total_steps
from margrave.mechanisms.parts.schedule import check_exclusive, query_family
from margrave.models import BestResponse
from margrave.privacy import Private, QueryGap
from margrave.transcript import QuerySelection
from margrave.types import Clique, FloatArray, IntArray


class SelectOnly(Mechanism):
    """The common part of DualQuery and FEM: their queries, the oracle, and the plan."""

    #: The most nodes of branch and bound for a record; 0: coordinate ascent alone, without SciPy.
    max_nodes: int = 0

    #: Starts of the coordinate ascent for each record.
    starts = 4

    @property
    def queries_per_round(self) -> int:
        """The number of queries that a round selects."""
        return 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_exclusive(self.workload, self.queries)

    def family(self, domain: Domain) -> QueryFamily:
        """Return the queries given, of this domain, or every cell of the workload."""
        return query_family(domain, self.workload_on(domain).cliques, self.queries)

    def oracle(self, domain: Domain) -> BestResponse:
        """Return what finds the records."""
        return BestResponse(domain, starts=self.starts, nodes=self.max_nodes)

    def reads(self, domain: Domain) -> list[Clique]:
        """Return the marginals of the queries, and a column in which all records can be counted."""
        cliques = self.family(domain).cliques
        return list(dict.fromkeys([*cliques, TOTAL.counting_clique(domain)]))

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return nothing but the number of records, where it is private."""
        return total_steps(domain, rho, unit)

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        self.family(domain)
        self.oracle(domain).ready()

    @abstractmethod
    def rounds_for(self, rho: Fraction, records: float, unit: Unit) -> int:
        """Return the number of rounds of a budget.

        **Privacy:** none spent; ``records`` is public, or a noisy answer.
        """

    @abstractmethod
    def searches(self, rounds: int) -> int:
        """Return how often a record is scored by a query in so many rounds, per code and start."""

    def selection(self, domain: Domain, rho: Fraction, records: int, unit: Unit) -> SelectionLoad:
        """Return the rounds, and the codes that they try without branch and bound."""
        rounds = self.rounds_for(rho, records, unit)
        codes = self.searches(rounds) * self.starts * sum(domain.sizes)
        return SelectionLoad(
            rounds=rounds,
            queries=True,
            per_round=self.queries_per_round,
            codes_tried=None if self.max_nodes else codes,
        )


def select_signed(
    private: Private,
    queries: QueryFamily,
    shares: FloatArray,
    records: float,
    rho: Fraction,
    times: int,
) -> tuple[QuerySelection, ...]:
    """Select queries, or complements, that the records lack: P[q] ∝ exp(... (q(D) − n share_q))."""
    estimates = {
        r: records * shares[start:stop].reshape(queries.shape(r))
        for r, start, stop in zip(queries.cliques, queries.starts, queries.starts[1:], strict=False)
    }
    return private.select_query(queries, QueryGap(estimates, signed=True), rho=rho, times=times)


def answer_shares(queries: QueryFamily, rows: IntArray) -> FloatArray:
    """Return the share of some records, of shape (records, attributes), that each query counts."""
    codes = Codes(queries.domain, rows.T)
    answers = queries.answers(count_cliques(codes, queries.cliques))
    return np.asarray(answers / len(rows), dtype=np.float64)


def as_objective(chosen: Iterable[QuerySelection]) -> list[tuple[LinearQuery, float]]:
    """Return a record's worth: 1 for each query that counts it, −1 for a selected complement."""
    return [(c.chosen, float(c.sign)) for c in chosen]
