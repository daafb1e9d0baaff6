"""The search for the best record: coordinate ascent from several starts, then mixed-integer programming."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from margrave.errors import InputError
from margrave.models.oracle.ascent import EQUAL, Ascent
from margrave.models.oracle.objective import Objective
from margrave.models.oracle.program import need_solver, solve
from margrave.models.oracle.sites import Sites
from margrave.schema.domain import Domain
from margrave.typing import FloatArray, IntArray

SEARCHED = 10_000
"""Nodes after which the search for any possible record ends."""


@dataclass(frozen=True, eq=False)
class Found:
    """One record for each problem, what it is worth, and what no record is worth more than."""

    rows: IntArray
    values: FloatArray
    bounds: FloatArray

    @property
    def gaps(self) -> FloatArray:
        """How much better the best record may be: 0 where it was found."""
        return np.maximum(self.bounds - self.values, 0.0)


@dataclass(frozen=True, eq=False)
class Oracle:
    """Finds records that are worth most, by ``Objective``.

    Coordinate ascent from ``starts`` random records for each problem; then, where that has not reached what can be
    reached, a mixed-integer program with at most ``nodes`` nodes of branch and bound, which stops at the relative gap
    ``gap``. With ``nodes`` 0 there is none, and SciPy is not needed. Limits are nodes, not seconds: a seed gives the
    same records on every machine. What makes no difference is random, each possible choice as likely as coordinate
    ascent takes it.

    **Privacy:** none spent: it sees queries that noisy choices have named, and the domain.
    """

    domain: Domain
    starts: int = 4
    nodes: int = 0
    gap: float = 1e-4

    def ready(self) -> None:
        """An InputError where SciPy is missing or no record is found possible: to be asked before anything is."""
        if self.nodes or not self._sites.free:
            need_solver()
        nothing = any(not len(site.choices) for site in self._sites.sites)
        if nothing or (not self._sites.free and self._possible is None):
            raise InputError(
                "No record was found that satisfies all constraints of the schema together.",
                remedy="Leave some of them out, or give their columns fewer codes.",
            )

    @cached_property
    def _sites(self) -> Sites:
        return Sites.of(self.domain)

    @cached_property
    def _possible(self) -> IntArray | None:
        """Some record that is possible, where they cannot be drawn."""
        return solve(Objective.of(self.domain, []), nodes=SEARCHED)[0]

    def random(self, rows: int, rng: np.random.Generator) -> IntArray:
        """Possible records: each as likely, where what the constraints hold together is small enough to be listed."""
        if self._sites.free:
            return self._sites.uniform(rows, rng)
        some = np.repeat(self._some(), rows, axis=0)
        return Ascent(Objective.of(self.domain, []).repeated(rows), self._sites).climb(some, rng)

    def _some(self) -> IntArray:
        if self._possible is None:
            raise InputError("No record satisfies all constraints.", remedy="Ask ready() first.")
        return self._possible[None]

    def best(self, objective: Objective, *, rng: np.random.Generator) -> Found:
        """A record for every problem of the objective."""
        repeated = objective.repeated(self.starts)
        rows = self._planted(objective, self.random(repeated.problems, rng), rng)
        rows = Ascent(repeated, self._sites).climb(rows, rng)
        values = repeated.values(rows).reshape(-1, self.starts)
        top = np.argmax(values, axis=1)
        rows = rows.reshape(-1, self.starts, len(self.domain))[np.arange(len(top)), top]
        found = Found(rows, values.max(axis=1), objective.bound)
        return self._improved(objective, found, rng) if self.nodes else found

    def _planted(self, objective: Objective, rows: IntArray, rng: np.random.Generator) -> IntArray:
        """Every second start where a query that is wanted counts it: far from all of them, nothing shows the way."""
        some = np.flatnonzero(objective.weights > 0)
        if some.size and self._sites.free:
            seeds = rng.choice(some, size=(len(rows) + 1) // 2)
            for j in np.unique(seeds):
                at = 2 * np.flatnonzero(seeds == j)
                rows[at] = self._sites.planted(rows[at], objective.queries[j], rng)
        return rows

    def _improved(self, objective: Objective, found: Found, rng: np.random.Generator) -> Found:
        """What programming finds beyond, and proves."""
        rows, bounds = found.rows.copy(), found.bounds.copy()
        for i in np.flatnonzero(found.gaps > EQUAL):
            one, value = objective.problem(int(i)), float(found.values[i])
            more = value + max(self.gap * abs(value), 10 * EQUAL)
            better, bound = solve(one, nodes=self.nodes, gap=self.gap, above=more)
            bounds[i] = min(bounds[i], bound)
            if better is not None and one.values(better[None])[0] > value:
                rows[i] = Ascent(one, self._sites).climb(better[None], rng)[0]
        return Found(rows, objective.values(rows), bounds)
