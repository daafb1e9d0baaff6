"""DualQuery: queries by multiplicative weights, and for each round's sample the record that answers it best."""

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
from margrave.mechanisms.rounds import MOST_ROUNDS, queries_config
from margrave.models import Objective, Oracle, empirical
from margrave.parameters import check_parameters
from margrave.privacy import Private, Unit, sensitivity
from margrave.privacy.choice import price_of
from margrave.release import Release
from margrave.schema.domain import Codes, Domain
from margrave.typing import Clique
from margrave.workload import Workload

STARTS = 16
"""Starts of the coordinate ascent for each record."""


@dataclass(frozen=True, kw_only=True)
class DualQuery:
    """T rounds: sample queries by multiplicative weights, add the record that has most of them. Their mean is released.

    With x_1 … x_{t−1} the records so far and every query's complement a query too, round t draws ``samples`` queries:

        P[q] ∝ exp(eta · Σ_{τ<t} (q(D) / n − q(x_τ))) = exp(eta (t − 1) / n · (q(D) − n · mean_τ q(x_τ)))
        x_t = argmax_x Σ_{q drawn} q(x)

    The first round's draw is uniform whatever the table is, so it is made without the gate and costs nothing. Round t
    is ``samples`` choices at the temperature eta (t − 1) / n, which with s the sensitivity of one count cost

        rho_t = samples · (2 s eta (t − 1) / n)² / 8,    Σ_t rho_t = samples (s eta / n)² / 2 · (T − 1) T (2T − 1) / 6.

    So ``eta``, ``samples`` and the budget decide T: as many rounds as the budget affords, but two at least and
    ``MOST_ROUNDS`` at most. The whole budget then goes to the T rounds in proportion to (t − 1)². The eta of a run is
    thus what T rounds afford: a little above the one given, far above it at ``MOST_ROUNDS``, and far below it where
    not even two rounds are affordable at that. The certificate has it, as ``eta_used``. With ``rounds`` given, eta
    follows from the budget alone.

    The defaults of ``eta`` and ``samples`` did best of the paper's on one table (ADULT of seven columns) at epsilon
    0.25 and 1. ``workload``: all cells of its marginals are the queries; None means all three-way marginals.
    ``queries``: other ones. ``nodes``: the most nodes of branch and bound for a record; 0: coordinate ascent alone,
    without SciPy.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit. Where the number of records is private,
    a fiftieth of it measures that first.

    Source: Gaboardi, Gallego Arias, Hsu, Roth, Wu (2014), Dual Query; for zCDP Liu, Vietri, Wu (2021), Appendix B.
    """

    workload: Workload | None = None
    queries: Queries | None = None
    eta: float = parameter(2.0, "How much queries that are far off are preferred, without rounds.", above=0)
    samples: int = parameter(25, "Queries that are chosen in a round.", above=0)
    rounds: int | None = parameter(None, "Rounds; by default as many as the budget affords.", above=1)
    nodes: int = parameter(200, "Nodes of branch and bound at most for a record; 0: coordinate ascent.", least=0)

    def __post_init__(self) -> None:
        check_parameters(self)
        either(self.workload, self.queries)
        if self.rounds is not None and self.eta != 2.0:
            raise InputError(
                "DualQuery has an eta and a number of rounds, and the budget gives each from the other.",
                remedy="Give one of them.",
            )
        if not (self.eta > 0 and np.isfinite(self.eta)) or self.samples < 1 or self.nodes < 0:
            raise InputError("DualQuery needs an eta above 0, at least 1 sample, and nodes of 0 or more.")
        if self.rounds is not None and self.rounds < 2:
            raise InputError("DualQuery needs at least two rounds: the first one learns nothing.")

    def reads(self, domain: Domain) -> Collection[Clique]:
        """The marginals of the queries, and a column for the number of records."""
        return reads(asked(domain, self.workload, self.queries))

    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[Step]:
        """Nothing is measured but the number of records, where it is private."""
        return total_steps(domain, rho, unit)

    def config(self) -> dict[str, Any]:
        """The parameters."""
        return {
            "name": "dual-query",
            "workload": workload_config(self.workload, self.queries),
            "queries": queries_config(self.queries),
            "eta": self.eta,
            "samples": self.samples,
            "rounds": self.rounds,
            "nodes": self.nodes,
        }

    def affordable(self, rho: Fraction, records: float, unit: Unit) -> int:
        """The most rounds that cost at most rho at this eta: from 2 to ``MOST_ROUNDS``.

        **Privacy:** none spent; ``records`` is public, or a noisy answer.
        """
        moved = sensitivity(unit, LinearQuery((), ())).l1
        second = price_of(Fraction(self.eta) / Fraction(records), moved, self.samples)
        rounds = 2
        while rounds < MOST_ROUNDS and second * _squares(rounds) <= rho:
            rounds += 1
        return rounds

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise what would keep a run from its end, before the table is read."""
        asked(domain, self.workload, self.queries)
        self._oracle(domain).ready()

    @property
    def at_once(self) -> int:
        """How many queries a round chooses."""
        return self.samples

    def turns(self, domain: Domain, rho: Fraction, records: float, unit: Unit) -> int:
        """How many rounds there would be, for so many records."""
        return self.rounds or self.affordable(rho, records, unit)

    def seeks(self, domain: Domain, rounds: int) -> int | None:
        """How many codes are tried, each by each query; None with branch and bound, which nothing foretells."""
        return None if self.nodes else rounds * self.samples * STARTS * sum(domain.sizes)

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Draw queries, find the record, T times."""
        rng = np.random.default_rng() if rng is None else rng
        progress = progress or silent
        domain = private.domain
        queries = asked(domain, self.workload, self.queries)
        oracle = self._oracle(domain)
        oracle.ready()
        records = begin(private, queries)
        left, rounds = private.remaining, self.rounds or self.affordable(private.remaining, records, private.unit)
        rows, counted = np.empty((rounds, len(domain)), dtype=np.int64), np.zeros(len(queries))
        for t in range(rounds):
            if t == 0:
                drawn = self._uniform(queries, rng)
            else:
                rho = left * t**2 / _squares(rounds - 1)
                drawn = wanted(choose(private, queries, counted / t, records, rho, self.samples))
            rows[t] = oracle.best(Objective.of(domain, drawn), rng=rng).rows[0]
            counted += shares_of(queries, rows[t : t + 1])
            progress("choosing", (t + 1) / rounds)
        model = empirical(Codes(domain, rows.T), private.transcript.total())
        used = self._eta(left, records, rounds, private.unit)
        return release_of(private, model, {**self.config(), "eta_used": used})

    def _eta(self, rho: Fraction, records: float, rounds: int, unit: Unit) -> float:
        """The eta at which so many rounds cost rho: of the formula of the cost, with all of it spent."""
        moved = float(sensitivity(unit, LinearQuery((), ())).l1)
        return records / moved * math.sqrt(2.0 * float(rho) / (self.samples * _squares(rounds - 1)))

    def _oracle(self, domain: Domain) -> Oracle:
        """What finds the records."""
        return Oracle(domain, starts=STARTS, nodes=self.nodes)

    def _uniform(self, queries: Queries, rng: np.random.Generator) -> list[tuple[LinearQuery, float]]:
        """The first round's queries and complements: each as likely as any other."""
        places = rng.integers(2 * len(queries), size=self.samples).tolist()
        return [(queries[p // 2], 1.0 if p % 2 else -1.0) for p in places]


def _squares(m: int) -> int:
    """1 + 4 + … + m²."""
    return m * (m + 1) * (2 * m + 1) // 6
