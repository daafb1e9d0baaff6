"""About what a process and its fits take, from public sizes: runs that were measured, scaled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from margrave.domain import Domain
from margrave.types import Clique, FloatArray

#: Model sizes count 8 bytes a cell, as in the papers.
CELLS_PER_MB = 2**20 // 8


@dataclass(frozen=True)
class Cost:
    """Processor seconds and memory in MB. Measured on two cores of a small server: orders of magnitude."""

    seconds: float = 0.0
    mb: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.seconds + other.seconds, self.mb + other.mb)


def process_cost() -> Cost:
    """Return the cost of importing the libraries, opening files, and code compiled."""
    return Cost(seconds=2.2, mb=350.0)


@dataclass(frozen=True, kw_only=True)
class FitLoad:
    """The work that a run gives its fit, from public inputs and a guess of the number of rows.

    Attributes:
        candidates: Every marginal that may be measured.
        cells: Their cells together.
        measured: Number of marginals measured, about.
        rounds: Number of estimates between measurements; 0 if all is measured at once.
        rows: The guess.
        scale: The least noise scale of a round; 0 without rounds.
        measured_in_few_rounds: Number of marginals that rounds measure many at a time; 0 if they measure one each.
        max_model_mb: The limit of the mechanism; 0 if it has none.
        model_cells: Cells of the model, if what is measured is known; else 0.
    """

    candidates: Sequence[Clique]
    cells: int
    measured: int
    rounds: int
    rows: int
    max_model_mb: float
    scale: float = 0.0
    measured_in_few_rounds: int = 0
    model_cells: int = 0


def cells_worth_noise(rows: int, scale: float) -> float:
    """Return about how many cells a marginal has at most whose noise is not larger than any error, 2 · rows."""
    return 2.5 * rows / scale  # the noise of a cell is 0.8 scales on average


def halvings_above_noise(
    domain: Domain, cliques: Sequence[Clique], rows: int, scale: float
) -> FloatArray:
    """Return how often the cells of each marginal can double before they are not worth their noise; 0 if never."""
    worth = cells_worth_noise(rows, scale) / np.asarray(domain.cells_each(cliques))
    return np.log2(np.maximum(worth, 1.0))


def marginals_per_halving(domain: Domain) -> float:
    """Return about how many more marginals are worth measuring if the noise halves."""
    per_column = 0.65
    return per_column * len(domain)


def calibration_cost(domain: Domain, load: FitLoad) -> Cost:
    """Return the cost of a junction tree that is calibrated again and again.

    The time counts rounds, and a model whose size is known: what a run measures at once makes small trees. Rounds add
    the cells that are worth their noise. Cycles of marginals join columns, so the model grows exponentially with
    these, up to its limit. The calibrations of a fit grow with the root of its answers, as those of a conjugate
    gradient do with the root of the condition of a problem.
    """
    seconds_per_round = 0.015
    bytes_per_model_cell = 56
    cells = load.measured * load.cells / max(len(load.candidates), 1)
    largest = min(load.max_model_mb * CELLS_PER_MB, domain.cells())
    if load.model_cells:
        seconds = fit_seconds(load.model_cells, load.cells)
        return Cost(seconds, load.model_cells * bytes_per_model_cell / 2**20)
    if not load.rounds:
        return Cost(mb=min(largest, 8 * cells) * 8 / 2**20)
    joined = _growth(len(domain))
    if load.measured_in_few_rounds:
        return _cost_of_few_rounds(domain, load, largest)
    if load.scale:
        worth = cells_worth_noise(load.rows, load.scale)
        largest = min(largest, load.rounds * worth * joined)
    cells = _expected_cells(domain, load, load.rounds)
    seconds = load.rounds * seconds_per_round + fit_seconds(largest, cells, rounds=load.rounds)
    return Cost(seconds, largest * bytes_per_model_cell / 2**20)


def fit_seconds(
    model_cells: float, measured_cells: float, *, rounds: int = 0, tables: float = 0.0
) -> float:
    """Return the processor seconds of fitting a junction tree.

    Args:
        model_cells: Cells of the tree.
        measured_cells: Noisy counts that it is fitted to.
        rounds: Earlier rounds, each with an estimate of its own.
        tables: Marginals of the tree, if there are hundreds.

    Tables of hundreds of marginals take time beside that of their cells. The estimate of a round goes on from the one
    before, in a smaller model: its share of calibrations counts those of the largest model.
    """
    seconds_per_cell = 5e-9
    seconds_per_table = 70e-6
    calibrations_per_root = 1.9
    least_of_round, round_share = 3, 0.0155
    last = calibrations_per_root * math.sqrt(measured_cells)
    calibrations = last + rounds * (least_of_round + round_share * last)
    return calibrations * (model_cells * seconds_per_cell + tables * seconds_per_table)


def _growth(joining: float) -> float:
    """Return the ratio of the cells of a model to those of its marginals, of which ``joining`` join others."""
    least_growth, columns_per_doubling = 3, 5
    return least_growth * math.exp2(min(joining / columns_per_doubling, 64))


def _expected_cells(domain: Domain, load: FitLoad, marginals: float) -> float:
    """Return about how many cells the columns and selected marginals have: more of those further above their noise."""
    cells = np.asarray(domain.cells_each(load.candidates))
    above = np.ones(len(cells))
    if load.scale:
        above = halvings_above_noise(domain, load.candidates, load.rows, load.scale)
    each = float((above * cells).sum()) / max(float(above.sum()), 1.0)
    return sum(domain.sizes) + marginals * each


def _cost_of_few_rounds(domain: Domain, load: FitLoad, limit: float) -> Cost:
    """Return the cost of rounds with many marginals each, between which every candidate is estimated and sized.

    As many pairs are measured as are worth their noise. Those beyond a tree of all columns join columns.
    """
    seconds_per_estimate = 100e-6  # of a candidate
    seconds_per_size = 2e-9  # of a candidate, for each pair of columns
    bytes_per_estimated_cell = 32  # independent, of two rounds, and one of them as it is computed
    bytes_per_model_cell = 40
    columns, pairs = len(domain), [c for c in load.candidates if len(c) > 1]
    above = halvings_above_noise(domain, pairs, load.rows, load.scale) if pairs else np.zeros(1)
    measured = marginals_per_halving(domain) * float(above.mean())
    measured = min(measured, load.measured_in_few_rounds)
    cells = _expected_cells(domain, load, measured)
    largest = min(limit, cells * _growth(max(0.0, measured - columns)))
    fits = fit_seconds(largest, cells, rounds=load.rounds, tables=columns + measured)
    candidate = seconds_per_estimate + seconds_per_size * columns**2
    estimates = load.rounds * len(load.candidates) * candidate
    mb = load.cells * bytes_per_estimated_cell + largest * bytes_per_model_cell
    return Cost(fits + estimates, mb / 2**20)
