"""The search for the best record: coordinate ascent from several starts, then mixed-integer programming."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.models.best_response.blocks import Blocks
from margrave.models.best_response.coordinate_ascent import EQUAL, CoordinateAscent
from margrave.models.best_response.milp import need_solver, solve
from margrave.models.best_response.objective import Objective
from margrave.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class BestRecords:
    """One record for each problem, what it is worth, and what no record is worth more than."""

    rows: IntArray
    values: FloatArray
    bounds: FloatArray

    @property
    def gaps(self) -> FloatArray:
        """Upper bounds on how much better the best record is: 0 if it was found."""
        return np.maximum(self.bounds - self.values, 0.0)


@dataclass(frozen=True, eq=False)
class BestResponse:
    """Finds records with the largest ``Objective``.

    Coordinate ascent starts from ``starts`` random records for each problem. If that does not reach
    the upper bound, a mixed-integer program follows, with at most ``nodes`` nodes of branch and
    bound and the relative gap ``gap``. With ``nodes=0`` there is none, and SciPy is not needed.
    Limits are nodes, not seconds: a seed gives the same records on every machine. Choices that do
    not matter are random.

    **Privacy:** none spent: it sees the domain and queries that noisy selections named.
    """

    domain: Domain
    starts: int = 4
    nodes: int = 0
    gap: float = 1e-4

    def ready(self) -> None:
        """Raise ``InputError`` if SciPy is missing or no possible record is found. Call it before
        anything is spent.
        """
        if self.nodes or not self._sites.free:
            need_solver()
        nothing = any(not len(site.choices) for site in self._sites.sites)
        if nothing or (not self._sites.free and self._possible is None):
            raise InputError(
                "No record was found that satisfies all constraints of the schema together.",
                remedy="Leave some of them out, or give their columns fewer codes.",
            )

    @cached_property
    def _sites(self) -> Blocks:
        return Blocks.of(self.domain)

    @cached_property
    def _possible(self) -> IntArray | None:
        """Some record that is possible, where they cannot be drawn."""
        # Nodes after which the search for any possible record ends.
        max_nodes = 10_000
        return solve(Objective.of(self.domain, []), nodes=max_nodes)[0]

    def random(self, rows: int, rng: np.random.Generator) -> IntArray:
        """Return random possible records, uniform if the constraints' combinations are few enough
        to be listed.
        """
        if self._sites.free:
            return self._sites.uniform(rows, rng)
        some = np.repeat(self._some(), rows, axis=0)
        return CoordinateAscent(Objective.of(self.domain, []).repeated(rows), self._sites).climb(
            some, rng
        )

    def _some(self) -> IntArray:
        if self._possible is None:
            raise InputError("No record satisfies all constraints.", remedy="Ask ready() first.")
        return self._possible[None]

    def best(self, objective: Objective, *, rng: np.random.Generator) -> BestRecords:
        """Return a record for every problem of the objective."""
        repeated = objective.repeated(self.starts)
        rows = self._planted(objective, self.random(repeated.problems, rng), rng)
        rows = CoordinateAscent(repeated, self._sites).climb(rows, rng)
        values = repeated.values(rows).reshape(-1, self.starts)
        top = np.argmax(values, axis=1)
        rows = rows.reshape(-1, self.starts, len(self.domain))[np.arange(len(top)), top]
        found = BestRecords(rows, values.max(axis=1), objective.bound)
        return self._improved(objective, found, rng) if self.nodes else found

    def _planted(self, objective: Objective, rows: IntArray, rng: np.random.Generator) -> IntArray:
        some = np.flatnonzero(objective.weights > 0)
        if some.size and self._sites.free:
            seeds = rng.choice(some, size=(len(rows) + 1) // 2)
            for j in np.unique(seeds):
                at = 2 * np.flatnonzero(seeds == j)
                rows[at] = self._sites.seed_from(rows[at], objective.queries[j], rng)
        return rows

    def _improved(
        self, objective: Objective, found: BestRecords, rng: np.random.Generator
    ) -> BestRecords:
        rows, bounds = found.rows.copy(), found.bounds.copy()
        for i in np.flatnonzero(found.gaps > EQUAL):
            one, value = objective.problem(int(i)), float(found.values[i])
            more = value + max(self.gap * abs(value), 10 * EQUAL)
            better, bound = solve(one, nodes=self.nodes, gap=self.gap, above=more)
            bounds[i] = min(bounds[i], bound)
            if better is not None and one.values(better[None])[0] > value:
                rows[i] = CoordinateAscent(one, self._sites).climb(better[None], rng)[0]
        return BestRecords(rows, objective.values(rows), bounds)
