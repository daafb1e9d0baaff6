"""Coordinate ascent: many records at once, each changed at one site after the other to what is worth most."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from margrave.models.oracle.objective import BoolMatrix, Objective
from margrave.models.oracle.sites import Site, Sites
from margrave.typing import FloatArray, IntArray

SWEEPS = 40
"""The most times that every site is visited."""
EQUAL = 1e-9
"""Values that differ by less are equal."""


@dataclass(eq=False)
class Ascent:
    """Coordinate ascent on one objective, with one record for each of its problems.

    Among choices that are worth the same one is taken at random, each as likely: where nothing makes a difference the
    record is as random as it can be.
    """

    objective: Objective
    sites: Sites

    def climb(self, rows: IntArray, rng: np.random.Generator) -> IntArray:
        """The records after as many sweeps as improve any of them; they must be possible, and stay so."""
        rows = rows.copy()
        misses, value = self.objective.misses(rows), self.objective.values(rows)
        for _ in range(SWEEPS):
            for i in rng.permutation(len(self.sites.sites)):
                misses = self._visit(i, rows, misses, rng)
            before, value = value, self.objective.values(rows)
            if not (value > before + EQUAL).any():
                break
        return rows

    def _visit(self, i: int, rows: IntArray, misses: IntArray, rng: np.random.Generator) -> IntArray:
        """Give every record the best choice of a site; how many codes keep it out of each query afterwards."""
        site, (named, kept, weighted) = self.sites.sites[i], self._tables[i]
        columns = [self.objective.domain.index(a) for a in site.clique]
        before = self._kept_out(site, named, rows)
        elsewhere = (misses[:, named] - before) == 0
        worth = elsewhere @ weighted + self._bonus(site)
        allowed = site.allowed(self.objective.domain, rows)
        if allowed is not None:
            worth = np.where(allowed, worth, -np.inf)
        best = worth >= worth.max(axis=1, keepdims=True) - EQUAL
        chosen = np.argmax(np.where(best, rng.random(best.shape), -1.0), axis=1)
        rows[:, columns] = site.choices[chosen]
        misses[:, named] += kept[:, chosen].T - before
        return misses

    def _kept_out(self, site: Site, named: IntArray, rows: IntArray) -> IntArray:
        """How many codes of the site keep each record out of each query that names it."""
        wrong = np.zeros((len(rows), len(named)), dtype=np.int64)
        for a in site.clique:
            wrong += ~self.objective.allows[a][named].T[rows[:, self.objective.domain.index(a)]]
        return wrong

    def _bonus(self, site: Site) -> FloatArray:
        """What the codes of each choice are worth by themselves, in each problem."""
        given = [(i, self.objective.bonus[a]) for i, a in enumerate(site.clique) if a in self.objective.bonus]
        whole = np.zeros((1, len(site.choices)))
        return whole + sum((numbers[:, site.choices[:, i]] for i, numbers in given), np.zeros((1, 1)))

    @cached_property
    def _tables(self) -> list[tuple[IntArray, IntArray, FloatArray]]:
        """For each site the queries that name it, how many codes of each choice keep out of each, and the weights of
        those that each choice does not keep out of."""
        tables = []
        for site in self.sites.sites:
            members = set(site.clique)
            naming = [j for j, q in enumerate(self.objective.queries) if not members.isdisjoint(q.clique)]
            named = np.array(naming, dtype=np.int64)
            kept = np.zeros((len(named), len(site.choices)), dtype=np.int64)
            for i, a in enumerate(site.clique):
                kept += ~_columns(self.objective.allows[a][named], site.choices[:, i])
            tables.append((named, kept, np.where(kept == 0, self.objective.weights[named, None], 0.0)))
        return tables


def _columns(matrix: BoolMatrix, codes: IntArray) -> BoolMatrix:
    taken: BoolMatrix = matrix[:, codes]
    return taken
