"""Coordinate ascent: many records at once, each changed at one site after the other to what is worth most."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from margrave.models.oracle.objective import Objective
from margrave.models.oracle.sites import Site, Sites
from margrave.typing import FloatArray, IntArray

SWEEPS = 40
"""The most times that every site is visited."""
EQUAL = 1e-9
"""Values that differ by less are equal."""


class Table(NamedTuple):
    """What a visit of a site looks up: where its attributes are, and the queries that name any (None: all of them).

    ``wrong[i]`` says by the code of its i-th attribute whether that keeps a record out of each of these queries,
    ``kept`` how many codes of each choice do; ``none`` is a row of zeros. ``weighted`` are the weights of the queries
    that a choice does not keep out of, ``bonus`` what its codes are worth by themselves in each problem.
    """

    columns: list[int]
    named: IntArray | None
    wrong: list[IntArray]
    none: IntArray
    kept: IntArray
    weighted: FloatArray
    bonus: FloatArray


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
        misses = self.objective.misses(rows)
        value = self.objective.values(rows, misses)
        for _ in range(SWEEPS):
            for i in rng.permutation(len(self.sites.sites)):
                self._visit(self.sites.sites[i], self._tables[i], rows, misses, rng)
            before, value = value, self.objective.values(rows, misses)
            if not (value > before + EQUAL).any():
                break
        return rows

    def _visit(self, site: Site, table: Table, rows: IntArray, misses: IntArray, rng: np.random.Generator) -> None:
        """Give every record the best choice of a site, in place; and how many codes keep it out of each query then."""
        before = sum((wrong[rows[:, i]] for i, wrong in zip(table.columns, table.wrong, strict=True)), table.none)
        missed = misses if table.named is None else misses[:, table.named]
        worth = (missed == before) @ table.weighted + table.bonus
        allowed = site.allowed(self.objective.domain, rows)
        if allowed is not None:
            worth = np.where(allowed, worth, -np.inf)
        best = worth >= worth.max(axis=1, keepdims=True) - EQUAL
        chosen = np.where(best, rng.random(best.shape), -1.0).argmax(axis=1)
        rows[:, table.columns] = site.choices[chosen]
        change = table.kept[chosen] - before
        if table.named is None:
            misses += change
        else:
            misses[:, table.named] += change

    def _bonus(self, site: Site) -> FloatArray:
        """What the codes of each choice are worth by themselves, in each problem."""
        given = [(i, self.objective.bonus[a]) for i, a in enumerate(site.clique) if a in self.objective.bonus]
        whole = np.zeros((1, len(site.choices)))
        return whole + sum((numbers[:, site.choices[:, i]] for i, numbers in given), np.zeros((1, 1)))

    @cached_property
    def _tables(self) -> list[Table]:
        """What each site's visits look up."""
        tables = []
        for site in self.sites.sites:
            members = set(site.clique)
            naming = [j for j, q in enumerate(self.objective.queries) if not members.isdisjoint(q.clique)]
            named = np.array(naming, dtype=np.int64)
            wrong = [(~self.objective.allows[a][named]).T.astype(np.int64) for a in site.clique]
            none = np.zeros((1, len(named)), dtype=np.int64)
            kept = sum((w[site.choices[:, i]] for i, w in enumerate(wrong)), none)
            tables.append(
                Table(
                    columns=[self.objective.domain.index(a) for a in site.clique],
                    named=None if len(named) == len(self.objective.queries) else named,
                    wrong=wrong,
                    none=none,
                    kept=kept,
                    weighted=np.where(kept.T == 0, self.objective.weights[named, None], 0.0),
                    bonus=self._bonus(site),
                )
            )
        return tables
