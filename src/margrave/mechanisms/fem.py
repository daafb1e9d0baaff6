"""FEM: follow the perturbed leader, with the exponential mechanism."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.errors import InputError
from margrave.marginal import LinearQuery, Queries
from margrave.mechanisms.choices import asked, begin, choose, either, reads, shares_of, wanted
from margrave.mechanisms.common import (
    Progress,
    Step,
    parameter,
    release_of,
    silent,
    total_steps,
    workload_config,
)
from margrave.mechanisms.rounds import queries_config
from margrave.models import Objective, Oracle, empirical
from margrave.parameters import check_parameters
from margrave.privacy import Private, Unit
from margrave.release import Release
from margrave.schema.domain import Codes, Domain
from margrave.typing import Clique, IntArray
from margrave.workload import Workload

STARTS = 4
"""Starts of the coordinate ascent for each record."""

FEWEST, MOST = 20, 200
"""How many rounds are planned where no number is given, at least and at most."""


@dataclass(frozen=True, kw_only=True)
class FEM:
    """T rounds: choose the query that the last round's records answer worst, find records for all queries so far.

    With every query's complement a query too, and D_t the ``samples`` records of round t, each for noise of its own:

        P[q_t] ∝ exp(epsilon_t / (2 s) · (q(D) − n q(D_{t−1})))
        x = argmax_x Σ_{i ≤ t} q_i(x) − <x, noise>,    noise ~ Exp(mean sigma) for every code of every column

    s is the sensitivity of one count; D_0 are random records. The mean of D_1 … D_T is released. All of the budget
    goes to the T choices, in equal parts.

    ``rounds``: None means 0.15 n sqrt(rho), from 20 to 200. That rule, ``samples`` and ``sigma`` were found on one
    table (ADULT of seven columns) at epsilon 0.25 and 1; the paper tells none. ``workload``: all cells of its marginals
    are the queries; None means all three-way marginals. ``queries``: other ones. ``nodes``: the most nodes of branch
    and bound for each record; 0: coordinate ascent alone, without SciPy.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit. Where the number of records is private,
    a fiftieth of it measures that first.

    Source: Vietri, Tian, Bun, Steinke, Wu (2020), New oracle-efficient algorithms for private synthetic data release;
    for zCDP Liu, Vietri, Wu (2021), Appendix B.
    """

    workload: Workload | None = None
    queries: Queries | None = None
    rounds: int | None = parameter(None, "Rounds; by default by a rule from the budget.", above=0)
    samples: int = parameter(100, "Records that are found in a round.", above=0)
    sigma: float = parameter(4.0, "The mean of the noise that perturbs each code.", above=0)
    nodes: int = parameter(0, "Nodes of branch and bound at most for a record; 0: coordinate ascent.", least=0)

    def __post_init__(self) -> None:
        check_parameters(self)
        either(self.workload, self.queries)
        if (self.rounds is not None and self.rounds < 1) or self.samples < 1 or self.nodes < 0:
            raise InputError("FEM needs at least 1 round, at least 1 sample, and nodes of 0 or more.")
        if not (self.sigma > 0 and np.isfinite(self.sigma)):
            raise InputError("FEM needs a sigma above 0.")

    def reads(self, domain: Domain) -> Collection[Clique]:
        """The marginals of the queries, and a column for the number of records."""
        return reads(asked(domain, self.workload, self.queries))

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """Nothing is measured but the number of records, where it is private."""
        return total_steps(domain, rho, unit)

    def config(self) -> dict[str, Any]:
        """The parameters."""
        return {
            "name": "fem",
            "workload": workload_config(self.workload, self.queries),
            "queries": queries_config(self.queries),
            "rounds": self.rounds,
            "samples": self.samples,
            "sigma": self.sigma,
            "nodes": self.nodes,
        }

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise what would keep a run from its end, before the table is read."""
        asked(domain, self.workload, self.queries)
        self._oracle(domain).ready()

    def turns(self, domain: Domain, rho: Fraction, records: float, unit: Unit) -> int:
        """How many rounds there would be, for so many records."""
        return self.rounds or planned(rho, records)

    def seeks(self, domain: Domain, rounds: int) -> int | None:
        """How many codes are tried, each by each query so far; None with branch and bound, which nothing foretells."""
        return None if self.nodes else rounds**2 // 2 * self.samples * STARTS * sum(domain.sizes)

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Choose a query, find the records, T times."""
        rng = np.random.default_rng() if rng is None else rng
        progress = progress or silent
        domain = private.domain
        queries = asked(domain, self.workload, self.queries)
        oracle = self._oracle(domain)
        oracle.ready()
        records = begin(private, queries)
        rounds = self.rounds or planned(private.remaining, records)
        rows, found = oracle.random(self.samples, rng), []
        chosen: list[tuple[LinearQuery, float]] = []
        for t in range(rounds):
            rho = private.remaining / (rounds - t)
            chosen += wanted(choose(private, queries, shares_of(queries, rows), records, rho, 1))
            rows = self._leaders(domain, oracle, chosen, rng)
            found.append(rows)
            progress("choosing", (t + 1) / rounds)
        model = empirical(Codes(domain, np.concatenate(found).T), private.transcript.total())
        return release_of(private, model, self.config())

    def _oracle(self, domain: Domain) -> Oracle:
        """What finds the records."""
        return Oracle(domain, starts=STARTS, nodes=self.nodes)

    def _leaders(
        self, domain: Domain, oracle: Oracle, chosen: list[tuple[LinearQuery, float]], rng: np.random.Generator
    ) -> IntArray:
        """The best records, each by noise of its own."""
        noise = {a: -rng.exponential(self.sigma, (self.samples, domain.size(a))) for a in domain}
        return oracle.best(Objective.of(domain, chosen, noise), rng=rng).rows


def planned(rho: Fraction, records: float) -> int:
    """The rounds of a run without a number: ``0.15 n sqrt(rho)``, from ``FEWEST`` to ``MOST``.

    **Privacy:** none spent; ``records`` is public, or a noisy answer.
    """
    return int(min(max(0.15 * records * math.sqrt(rho), FEWEST), MOST))
