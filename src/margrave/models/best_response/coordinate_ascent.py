"""Coordinate ascent: many records at once, each changed at one site after the other to what is worth most."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from margrave.models.best_response.blocks import Block, Blocks
from margrave.models.best_response.objective import Objective
from margrave.types import FloatArray, IntArray

#: Values that differ by less count as equal.
EQUAL = 1e-9


class GainTable(NamedTuple):
    """Look-up tables for visits of one site: its attributes, and the queries on any of them (None:
    all).

    ``wrong[i]`` gives for each code of its i-th attribute whether it excludes a record from each of
    these queries; ``kept`` counts the codes of each choice that do; ``none`` is a row of zeros.
    ``weighted`` are the weights of the queries that a choice does not exclude. ``bonus`` is the
    value of its codes by themselves in each problem.
    """

    columns: list[int]
    named: IntArray | None
    wrong: list[IntArray]
    none: IntArray
    kept: IntArray
    weighted: FloatArray
    bonus: FloatArray


@dataclass(eq=False)
class CoordinateAscent:
    """Coordinate ascent on one objective, with one record for each of its problems.

    Among choices that are worth the same one is taken at random, each as likely: where nothing makes a difference the
    record is as random as it can be.
    """

    objective: Objective
    sites: Blocks

    def climb(self, rows: IntArray, rng: np.random.Generator) -> IntArray:
        """Return the records after sweeps until none improves. They must be possible, and stay
        possible.
        """
        # Visits of every site at most.
        max_sweeps = 40
        rows = rows.copy()
        misses = self.objective.misses(rows)
        value = self.objective.values(rows, misses)
        for _ in range(max_sweeps):
            for i in rng.permutation(len(self.sites.sites)):
                self._visit(self.sites.sites[i], self._tables[i], rows, misses, rng)
            before, value = value, self.objective.values(rows, misses)
            if not (value > before + EQUAL).any():
                break
        return rows

    def _visit(
        self,
        site: Block,
        table: GainTable,
        rows: IntArray,
        misses: IntArray,
        rng: np.random.Generator,
    ) -> None:
        """Give every record the best choice of a site, in place; and how many codes keep it out of each query then."""
        before = sum(
            (wrong[rows[:, i]] for i, wrong in zip(table.columns, table.wrong, strict=True)),
            table.none,
        )
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

    def _bonus(self, site: Block) -> FloatArray:
        given = [
            (i, self.objective.bonus[a])
            for i, a in enumerate(site.clique)
            if a in self.objective.bonus
        ]
        whole = np.zeros((1, len(site.choices)))
        return whole + sum(
            (numbers[:, site.choices[:, i]] for i, numbers in given), np.zeros((1, 1))
        )

    @cached_property
    def _tables(self) -> list[GainTable]:
        tables = []
        for site in self.sites.sites:
            members = set(site.clique)
            naming = [
                j for j, q in enumerate(self.objective.queries) if not members.isdisjoint(q.clique)
            ]
            named = np.array(naming, dtype=np.int64)
            wrong = [(~self.objective.allows[a][named]).T.astype(np.int64) for a in site.clique]
            none = np.zeros((1, len(named)), dtype=np.int64)
            kept = sum((w[site.choices[:, i]] for i, w in enumerate(wrong)), none)
            tables.append(
                GainTable(
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
