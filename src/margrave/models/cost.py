"""About what fitting takes, from public sizes: runs that were measured, scaled."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from margrave.domain import Domain
from margrave.types import Clique

#: Model sizes count 8 bytes a cell, as in the papers.
CELLS_PER_MB = 2**20 // 8


@dataclass(frozen=True)
class Cost:
    """Processor seconds and memory in MB. Measured on two cores of a small server: orders of magnitude."""

    seconds: float = 0.0
    mb: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.seconds + other.seconds, self.mb + other.mb)


@dataclass(frozen=True, kw_only=True)
class FitLoad:
    """The work that a run gives its fit, from public inputs and a guess of the number of rows.

    Attributes:
        candidates: Every marginal that may be measured.
        cells: Their cells together.
        measured: Number of marginals measured, at most.
        rounds: Number of estimates between measurements; 0 if all is measured at once.
        rows: The guess.
        scale: The least noise scale of a round; 0 without rounds.
        measured_in_few_rounds: Number of marginals that rounds measure many at a time; 0 if they measure one each.
        max_model_mb: The limit of the mechanism; 0 if it has none.
    """

    candidates: Collection[Clique]
    cells: int
    measured: int
    rounds: int
    rows: int
    max_model_mb: float
    scale: float = 0.0
    measured_in_few_rounds: int = 0


def cells_worth_noise(rows: int, scale: float) -> float:
    """Return about how many cells a marginal has at most whose noise is not larger than any error, 2 · rows."""
    return 2.5 * rows / scale  # the noise of a cell is 0.8 scales on average


def calibration_cost(domain: Domain, load: FitLoad) -> Cost:
    """Return the cost of a junction tree that is calibrated again and again.

    The time counts rounds alone: what is measured at once makes small trees. Each round adds some times the cells
    that are worth their noise, up to the limit.
    """
    seconds_per_round = 0.03
    cells_per_marginal_cell = 8
    seconds_per_cell = 4e-9
    round_calibrations = 40
    final_calibrations = 450
    counts = 64 * load.cells / 2**20
    model = min(load.max_model_mb * CELLS_PER_MB, domain.cells()) / CELLS_PER_MB
    mb = min(model, counts)
    if not load.rounds:
        return Cost(mb=mb)
    largest = min(load.max_model_mb * CELLS_PER_MB, domain.cells())
    if load.measured_in_few_rounds:
        return Cost(mb=mb) + _cost_of_few_rounds(load, largest)
    if load.scale:
        worth = cells_worth_noise(load.rows, load.scale)
        largest = min(largest, load.rounds * worth * cells_per_marginal_cell)
    each = seconds_per_round + round_calibrations * largest / 2 * seconds_per_cell
    return Cost(load.rounds * each + final_calibrations * largest * seconds_per_cell, mb)


def _cost_of_few_rounds(load: FitLoad, largest: float) -> Cost:
    """Return the cost of rounds with many marginals each. A pass visits the cells of the model and the measurements."""
    passes = 1000
    seconds_per_model_cell = 10e-9
    seconds_per_measured_cell = 65e-9
    seconds_per_marginal = 10e-6
    seconds_per_estimate = 120e-6  # of a candidate between two rounds
    bytes_per_model_cell = 240
    cells_per_marginal_cell = 8
    each = min(load.cells / len(load.candidates), cells_worth_noise(load.rows, load.scale))
    measured = load.measured_in_few_rounds * each
    largest = min(largest, measured * cells_per_marginal_cell)
    a_pass = largest * seconds_per_model_cell + measured * seconds_per_measured_cell
    a_pass += load.measured_in_few_rounds * seconds_per_marginal
    estimates = load.rounds * len(load.candidates) * seconds_per_estimate
    return Cost(passes * a_pass + estimates, largest * bytes_per_model_cell / 2**20)
