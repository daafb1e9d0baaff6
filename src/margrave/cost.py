"""About how much memory and time a run takes: runs that were measured, scaled by public sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.mechanisms import Mechanism
from margrave.mechanisms.common import PlannedMeasurement, SelectionLoad
from margrave.models import Cost, FitLoad
from margrave.models.cost import cells_worth_noise, process_cost
from margrave.types import Clique


@dataclass(frozen=True, kw_only=True)
class RunCost:
    """The estimate for a run. It rests on public inputs, and ``rows``, a guess."""

    domain: Domain
    mechanism: Mechanism
    reads: Sequence[Clique]
    steps: Sequence[PlannedMeasurement]
    rho: Fraction
    unit: Unit
    rows: int
    max_model_mb: float

    @cached_property
    def cells(self) -> int:
        """The number of cells that are counted behind the gate, at most."""
        counted = self.mechanism.counted_cells(self.domain)
        return sum(map(self.domain.cells, self.reads)) if counted is None else counted

    @property
    def samples_posterior(self) -> bool:
        """True if a posterior is sampled at the end. It takes longer than planned if its chains mix slowly."""
        fit = self.mechanism.estimator()
        return fit is not None and fit.samples_posterior

    def total(self) -> tuple[float | None, float]:
        """Return processor seconds and MB, at most, about: None for a time that cannot be foretold."""
        seconds_per_value = 100e-9  # reading and drawing a column of a record
        seconds_per_tried_code = 1e-8  # one code of one record, for one query
        bytes_per_value = 22.0  # reading a column, encoding it, and its codes
        bytes_per_query = (
            120.0  # a candidate that is a single query: its number, its score, its chance
        )
        selection = self.mechanism.selection(self.domain, self.rho, max(self.rows, 1), self.unit)
        fit = self._fit(selection)
        table = self.rows * len(self.domain) * bytes_per_value + self.cells * 8
        queries = self.cells * bytes_per_query * selection.queries
        mb = process_cost().mb + (table + queries) / 2**20 + fit.mb
        if selection.codes_tried is None:
            return None, mb
        tried = selection.codes_tried * seconds_per_tried_code
        values = self.rows * len(self.domain) * seconds_per_value
        parts = (
            process_cost().seconds,
            values,
            self._counting(selection),
            self._selecting(selection),
        )
        return float(sum(parts)) + fit.seconds + tried, mb

    def _counting(self, selection: SelectionLoad) -> float:
        seconds_per_count = 2.5e-9  # one row in one marginal
        seconds_per_noise = 15e-6  # one cell, by the exact sampler
        noisy = 0.0
        for s in self.steps:
            cells = median_cells(self.domain, s)
            if (s.adaptive or s.at_most) and not s.single:
                cells = min(cells, max(1.0, cells_worth_noise(self.rows, s.scale / s.weight)))
            noisy += self._marginals(s, selection) * cells
        return self.rows * len(self.reads) * seconds_per_count + noisy * seconds_per_noise

    @staticmethod
    def _marginals(step: PlannedMeasurement, selection: SelectionLoad) -> int:
        if not (step.adaptive and selection.rounds):
            return step.marginals
        return min(step.marginals, selection.rounds * max(selection.per_round, 1))

    def _selecting(self, selection: SelectionLoad) -> float:
        seconds_per_candidate = 60e-6  # in a round: its score, and the size of the model with it
        seconds_per_scored_cell = 20e-9  # its estimate, noise and error
        seconds_per_open_pair = 0.4e-6  # a pair that may still join a tree, for each edge
        seconds_per_query = 130e-9  # the same where single queries are candidates
        repeated_share = 0.15  # of it, for each further selection by the same scores
        if not selection.per_round:
            return 0.0
        if selection.queries:
            repeated = 1 + repeated_share * (selection.per_round - 1)
            return selection.rounds * self.cells * seconds_per_query * repeated
        adaptive = [s for s in self.steps if s.adaptive]
        among = max((len(s.cliques) for s in adaptive), default=0)
        among = among if selection.candidates is None else min(selection.candidates, among)
        trees = [
            s for s in self.steps if not (s.adaptive or s.single) and s.marginals < len(s.cliques)
        ]
        scored = selection.rounds * among + sum(len(s.cliques) for s in trees)
        open_pairs = sum(s.marginals * len(s.cliques) for s in trees)
        cells = scored * self.cells / max(len(self.reads), 1)
        cells_seconds = seconds_per_scored_cell * cells
        return seconds_per_candidate * scored + cells_seconds + seconds_per_open_pair * open_pairs

    def _fit(self, selection: SelectionLoad) -> Cost:
        fit = self.mechanism.estimator()
        if fit is None:
            return Cost()
        adaptive = [s for s in self.steps if s.adaptive]
        measured = sum(self._marginals(s, selection) for s in self.steps)
        many = bool(selection.rounds) and not adaptive
        scaled = self.steps[-1:] if many else adaptive
        load = FitLoad(
            candidates=self.reads,
            cells=self.cells,
            measured=measured,
            measured_in_few_rounds=measured if many else 0,
            rounds=selection.rounds,
            rows=self.rows,
            scale=min((s.scale / s.weight for s in scaled), default=0.0),
            max_model_mb=self.max_model_mb,
        )
        return fit.cost(self.domain, load)


def median_cells(domain: Domain, step: PlannedMeasurement) -> float:
    """Return how many counts the median marginal has; 1 for single queries and sums."""
    single = step.single or step.sums
    return 1.0 if single else float(np.median(domain.cells_each(step.cliques)))
