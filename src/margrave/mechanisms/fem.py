"""FEM: follow the perturbed leader, with the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from margrave.accounting import Unit
from margrave.domain import Codes
from margrave.marginal import LinearQuery, QueryFamily
from margrave.mechanisms.common import Progress, option
from margrave.mechanisms.parts.budget import measure_total
from margrave.mechanisms.parts.signed import SelectOnly, answer_shares, as_objective, select_signed
from margrave.models import Objective, empirical
from margrave.privacy import Private
from margrave.release import Release
from margrave.types import Generator
from margrave.workload import Workload

#: The fewest and the most rounds where no number is given.
MIN_ROUNDS, MAX_ROUNDS = 20, 200


@dataclass(frozen=True, kw_only=True)
class FEM(SelectOnly):
    """T rounds: select the query that the last records answer worst, find records for all so far.

    With every query's complement a query too, and D_t the ``samples`` records of round t, each for
    noise of its own:

        P[q_t] ∝ exp(epsilon_t / (2 s) · (q(D) − n q(D_{t−1})))
        x = argmax_x Σ_{i ≤ t} q_i(x) − <x, noise>,    noise ~ Exp(mean sigma) for every code of every column

    s is the sensitivity of one count; D_0 are random records. The mean of D_1 … D_T is released.
    All of the budget goes to the T selections, in equal parts.

    Args:
        workload: All cells of its marginals are the queries; None means all three-way marginals.
        queries: Other queries, in the place of a workload.
        rounds: None means 0.15 n sqrt(rho), from 20 to 200. That rule, ``samples`` and ``sigma``
            were found on one table (ADULT of seven columns) at epsilon 0.25 and 1; the paper states
            none.
        samples: Records that are found in a round.
        sigma: The mean of the noise that perturbs each code.
        max_nodes: The most nodes of branch and bound for a record; 0: coordinate ascent alone,
            without SciPy.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit. Where the number of records is
        private, a fiftieth of it measures that first.

    References:
        Vietri, Tian, Bun, Steinke, Wu (2020), New oracle-efficient algorithms for private synthetic
        data release; for zCDP Liu, Vietri, Wu (2021), Appendix B.
    """

    workload: Workload | None = None
    queries: QueryFamily | None = None
    rounds: int | None = option(None, "Rounds; by default by a rule from the budget.", above=0)
    samples: int = option(100, "Records that are found in a round.", above=0)
    sigma: float = option(
        4.0, "The mean of the noise that perturbs each code.", above=0, below=math.inf
    )
    max_nodes: int = option(
        0, "Nodes of branch and bound at most for a record; 0: coordinate ascent.", least=0
    )

    name = "fem"
    use = "records from selections alone, some more in each round"
    weighs_marginals = False

    def rounds_for(self, rho: Fraction, records: float, unit: Unit) -> int:
        """Return T, or ``0.15 n sqrt(rho)``, from ``MIN_ROUNDS`` to ``MAX_ROUNDS``."""
        rule = min(max(0.15 * records * math.sqrt(rho), MIN_ROUNDS), MAX_ROUNDS)
        return self.rounds or int(rule)

    def searches(self, rounds: int) -> int:
        """Return that each round scores its records by every query so far."""
        return rounds**2 // 2 * self.samples

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Select a query, find the records, T times."""
        domain, rng, progress = self.begin(private, rng, progress)
        queries, oracle = self.family(domain), self.oracle(domain)
        records = measure_total(private)
        rounds = self.rounds_for(private.remaining, records, private.unit)
        rows, found = oracle.random(self.samples, rng), []  # D_0
        chosen: list[tuple[LinearQuery, float]] = []
        for t in range(rounds):
            rho = private.remaining / (rounds - t)
            shares = answer_shares(queries, rows)
            chosen += as_objective(select_signed(private, queries, shares, records, rho, 1))  # q_t
            noise = {
                a: -rng.exponential(self.sigma, (self.samples, domain.size(a))) for a in domain
            }
            rows = oracle.best(Objective.of(domain, chosen, noise), rng=rng).rows  # D_t
            found.append(rows)
            progress("choosing", (t + 1) / rounds)
        model = empirical(Codes(domain, np.concatenate(found).T), private.transcript.total())
        return self.release(private, model)
