"""DualQuery: queries by multiplicative weights, and records that answer them best."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np

from margrave.accounting import Unit
from margrave.domain import Codes
from margrave.errors import InputError
from margrave.marginal import QueryFamily
from margrave.mechanisms.common import Progress, option
from margrave.mechanisms.parts.budget import measure_total
from margrave.mechanisms.parts.growing_rounds import affordable, eta_for, squares, uniform
from margrave.mechanisms.parts.signed import SelectOnly, answer_shares, as_objective, select_signed
from margrave.models import Objective, empirical
from margrave.privacy import Private
from margrave.release import Release
from margrave.types import Generator
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class DualQuery(SelectOnly):
    """T rounds: sample queries by multiplicative weights, add the record that has most of them.

    With x_1 … x_{t−1} the records so far and every query's complement a query too, round t draws
    ``samples`` queries and adds the record that most of them count:

        P[q] ∝ exp(eta · Σ_{τ<t} (q(D) / n − q(x_τ))),    x_t = argmax_x Σ_{q drawn} q(x)

    The first draw is uniform whatever the table is: it is made without the gate and costs nothing.
    Round t is ``samples`` selections at the temperature eta (t − 1) / n, which with s the
    sensitivity of one count cost rho_t = samples · (2 s eta (t − 1) / n)² / 8. So eta, ``samples``
    and the budget decide T, from 2 to ``MAX_ROUNDS``. The whole budget then goes to the T rounds in
    proportion to (t − 1)²; the certificate states the eta that this affords, as ``eta_used``.

    Args:
        workload: All cells of its marginals are the queries; None means all three-way marginals.
        queries: Other queries, in the place of a workload.
        eta: How much queries that are far off are preferred. This and ``samples`` did best of the
            paper's on one table (ADULT of seven columns) at epsilon 0.25 and 1.
        samples: Queries that are selected in a round.
        rounds: T; eta then follows from the budget alone.
        max_nodes: Nodes of branch and bound at most; 0: coordinate ascent alone, without SciPy.

    Privacy:
        The whole budget, exactly; a fiftieth measures the number of records if it is private.

    References:
        Gaboardi et al. (2014), Dual Query; for zCDP Liu, Vietri, Wu (2021), Appendix B.
    """

    workload: Workload | None = None
    queries: QueryFamily | None = None
    eta: float = option(
        2.0, "Preference for queries with a large error, without rounds.", above=0, below=inf
    )
    samples: int = option(25, "Queries that are chosen in a round.", above=0)
    rounds: int | None = option(None, "Rounds; by default as many as the budget affords.", above=1)
    max_nodes: int = option(
        200, "Nodes of branch and bound at most for a record; 0: coordinate ascent.", least=0
    )

    name = "dual-query"
    use = "records from selections alone, without measurements"
    weighs_marginals = False
    starts = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rounds is not None and self.eta != 2.0:
            raise InputError(
                "DualQuery has an eta and a number of rounds, and the budget gives each from the other.",
                remedy="Give one of them.",
            )

    @property
    def queries_per_round(self) -> int:
        """The number of queries that a round selects."""
        return self.samples

    def rounds_for(self, rho: Fraction, records: float, unit: Unit) -> int:
        """Return T, or the most rounds that rho affords at this eta: from 2 to ``MAX_ROUNDS``."""
        if self.rounds is not None:
            return self.rounds
        return affordable(self.eta, self.samples, rho, records, unit)

    def searches(self, rounds: int) -> int:
        """Return that each round scores one record by its sample."""
        return rounds * self.samples

    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Draw queries, find the record, T times."""
        domain, rng, progress = self.begin(private, rng, progress)
        queries, oracle = self.family(domain), self.oracle(domain)
        records = measure_total(private)
        left = private.remaining
        rounds = self.rounds_for(left, records, private.unit)
        rows, counted = np.empty((rounds, len(domain)), dtype=np.int64), np.zeros(len(queries))
        for t in range(rounds):
            if t == 0:
                drawn = uniform(queries, self.samples, rng)
            else:
                rho = left * t**2 / squares(rounds - 1)
                drawn = as_objective(
                    select_signed(private, queries, counted / t, records, rho, self.samples)
                )
            rows[t] = oracle.best(Objective.of(domain, drawn), rng=rng).rows[0]
            counted += answer_shares(queries, rows[t : t + 1])
            progress("choosing", (t + 1) / rounds)
        model = empirical(Codes(domain, rows.T), private.transcript.total())
        used = eta_for(left, self.samples, rounds, records, private.unit)
        return self.release(private, model, eta_used=used)
