"""What mechanisms share that choose queries and measure none: DualQuery and FEM.

A query and its complement, "not counted by it", are both candidates: a signed score says which of the two the records
so far have too little of. The chosen ones go to an oracle that finds records with as many of them as can be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fractions import Fraction

import numpy as np

from margrave.errors import InputError
from margrave.marginal import TOTAL, LinearQuery, Queries
from margrave.marginal.counting import count_cliques
from margrave.mechanisms.common import ask_total, workload_or_default
from margrave.mechanisms.rounds import queries_of
from margrave.privacy import Private, QueryGap
from margrave.schema.domain import Codes, Domain
from margrave.transcript import QuerySelection
from margrave.typing import Clique, FloatArray, IntArray
from margrave.workload import Workload


def asked(domain: Domain, workload: Workload | None, queries: Queries | None) -> Queries:
    """The queries given, of this domain; or every cell of the workload, which is all three-way marginals by default."""
    return queries_of(domain, workload_or_default(workload, domain).cliques, queries)


def either(workload: Workload | None, queries: Queries | None) -> None:
    """Raise ``InputError`` where a workload and queries are both given."""
    if workload is not None and queries is not None:
        raise InputError("A workload and queries are both given.", remedy="Queries stand in its place: give one.")


def reads(queries: Queries) -> Collection[Clique]:
    """The marginals of the queries, and a column in which all records can be counted."""
    return list(dict.fromkeys([*queries.cliques, TOTAL.counted_in(queries.domain)]))


def begin(private: Private, queries: Queries) -> float:
    """The number of records: public, or asked for ``FOR_TOTAL`` of the budget."""
    private.prepare(reads(queries))
    ask_total(private)
    return private.transcript.total()


def choose(
    private: Private, queries: Queries, shares: FloatArray, records: float, rho: Fraction, times: int
) -> tuple[QuerySelection, ...]:
    """Queries, or complements, that the records so far have too little of: ``P[q] ∝ exp(... (q(D) − n share_q))``."""
    estimates = {
        r: records * shares[start:stop].reshape(queries.shape(r))
        for r, start, stop in zip(queries.cliques, queries.starts, queries.starts[1:], strict=False)
    }
    return private.select_query(queries, QueryGap(estimates, signed=True), rho=rho, times=times)


def shares_of(queries: Queries, rows: IntArray) -> FloatArray:
    """The share of some records, of shape (records, attributes), that each query counts."""
    codes = Codes(queries.domain, rows.T)
    return np.asarray(queries.answers(count_cliques(codes, queries.cliques)) / len(rows), dtype=np.float64)


def wanted(chosen: Iterable[QuerySelection]) -> list[tuple[LinearQuery, float]]:
    """What a record is worth by them: 1 for each query that counts it, −1 for each whose complement was chosen."""
    return [(c.chosen, float(c.sign)) for c in chosen]
