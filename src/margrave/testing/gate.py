"""A gate that notes every question, a table that refuses to be counted outside one, and whole runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.accounting import Budget, Unit
from margrave.domain import Domain
from margrave.marginal import HalfSpace, LinearQuery, QueryFamily
from margrave.mechanisms import Mechanism
from margrave.privacy import Gaussian as Noise
from margrave.privacy import Private, Randomness, protect
from margrave.release import Release
from margrave.testing.tables import require
from margrave.transcript import HalfSpaceSelection, QuerySelection, Transcript
from margrave.types import Clique, IntArray

MakeMechanism = Callable[[Domain], Mechanism]


@dataclass(frozen=True)
class GateCall:
    """One question to the rows, its charge, and its privacy loss (if a replay adds that up)."""

    kind: str
    charged: Fraction
    loss: Fraction


class WatchedGate:
    """A gate that forwards every question of a mechanism and records it.

    ``inside`` is True while a question is at the gate. ``loss`` returns the privacy loss so far.
    """

    def __init__(
        self, private: Private, loss: Callable[[], Fraction] = lambda: Fraction(0)
    ) -> None:
        self.private = private
        self.inside = False
        self.questions: list[GateCall] = []
        self._loss = loss

    def __getattr__(self, name: str) -> Any:
        return getattr(self.private, name)

    def prepare(self, cliques: Iterable[Clique]) -> None:
        self._passed("prepare", lambda: self.private.prepare(cliques))

    def measure(self, cliques: Iterable[Clique], noise: Noise, **more: Any) -> Transcript:
        found: Transcript = self._passed(
            "measure", lambda: self.private.measure(cliques, noise, **more)
        )
        return found

    def select(self, candidates: Iterable[Clique], score: Any, *, rho: Fraction) -> Clique:
        found: Clique = self._passed(
            "select", lambda: self.private.select(candidates, score, rho=rho)
        )
        return found

    def measure_queries(self, queries: Iterable[LinearQuery], noise: Noise) -> Transcript:
        found: Transcript = self._passed(
            "measure", lambda: self.private.measure_queries(queries, noise)
        )
        return found

    def select_query(
        self, queries: QueryFamily, score: Any, *, rho: Fraction, times: int = 1
    ) -> tuple[QuerySelection, ...]:
        found: tuple[QuerySelection, ...] = self._passed(
            "select", lambda: self.private.select_query(queries, score, rho=rho, times=times)
        )
        return found

    def measure_scores(self, candidates: Iterable[Clique], score: Any, noise: Noise) -> Transcript:
        found: Transcript = self._passed(
            "measure", lambda: self.private.measure_scores(candidates, score, noise)
        )
        return found

    def select_half_space(
        self, queries: Iterable[HalfSpace], score: Any, *, rho: Fraction
    ) -> HalfSpaceSelection:
        found: HalfSpaceSelection = self._passed(
            "select", lambda: self.private.select_half_space(queries, score, rho=rho)
        )
        return found

    def _passed(self, kind: str, work: Callable[[], Any]) -> Any:
        left, lost, self.inside = self.private.remaining, self._loss(), True
        try:
            return work()
        finally:
            self.inside = False
            if kind != "prepare":
                self.questions.append(
                    GateCall(kind, left - self.private.remaining, self._loss() - lost)
                )


class SpyTable:
    """A table that refuses to be counted outside a question, and notes what is."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.gate: WatchedGate | None = None
        self.counted: set[Clique] = set()
        self.scans = 0

    @property
    def schema(self) -> Any:
        return self.table.schema

    @property
    def domain(self) -> Domain:
        domain: Domain = self.table.domain
        return domain

    def count(self, cliques: Iterable[Clique]) -> dict[Clique, IntArray]:
        asked = list(cliques)
        require(
            self.gate is not None and self.gate.inside,
            "It counted the table outside a question to the gate.",
        )
        self.counted.update(asked)
        self.scans += 1
        found: dict[Clique, IntArray] = self.table.count(asked)
        return found

    def rows(self) -> int:
        require(self.gate is None, "It counted the rows outside a question to the gate.")
        return int(self.table.rows())

    def bounded(self, rows_per_person: int) -> SpyTable:
        self.table = self.table.bounded(rows_per_person)
        return self


def run_on(
    mechanism: Mechanism,
    table: Any,
    unit: Unit,
    budget: Budget,
    randomness: Randomness,
    *,
    seed: int = 0,
    progress: Callable[[str, float], None] | None = None,
) -> Release:
    """Return the release of one whole run; the gate is closed at the end."""
    with protect(table, unit=unit, budget=budget, randomness=randomness) as private:
        return mechanism.run(private, rng=np.random.default_rng(seed), progress=progress)
