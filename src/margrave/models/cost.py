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

    The time counts rounds alone: what is measured at once makes small trees. Rounds add the cells that are worth
    their noise. Cycles of marginals join columns, so the model grows exponentially with these, up to its limit.
    """
    least_growth, columns_per_doubling = 3, 5  # cells of the model to those of its marginals
    seconds_per_round = 0.015
    seconds_per_cell = 3e-9
    round_calibrations = 30
    mean_share = 0.4  # of the largest model, that of a round
    final_calibrations = 300
    bytes_per_model_cell = 56
    cells = load.measured * load.cells / max(len(load.candidates), 1)
    largest = min(load.max_model_mb * CELLS_PER_MB, domain.cells())
    if not load.rounds:
        return Cost(mb=min(largest, 8 * cells) * 8 / 2**20)
    joined = least_growth * 2 ** min(len(domain) / columns_per_doubling, 64)
    if load.measured_in_few_rounds:
        return _cost_of_few_rounds(domain, load, min(largest, cells * joined))
    if load.scale:
        worth = cells_worth_noise(load.rows, load.scale)
        largest = min(largest, load.rounds * worth * joined)
    each = seconds_per_round + round_calibrations * largest * mean_share * seconds_per_cell
    seconds = load.rounds * each + final_calibrations * largest * seconds_per_cell
    return Cost(seconds, largest * bytes_per_model_cell / 2**20)


def _cost_of_few_rounds(domain: Domain, load: FitLoad, largest: float) -> Cost:
    """Return the cost of rounds with many marginals each, between which every candidate is estimated and sized."""
    seconds_per_cell = 12e-9  # tables of hundreds of cliques are not in the cache
    seconds_per_marginal = 10e-6  # in a calibration, beside its cells
    seconds_per_estimate = 100e-6  # of a candidate
    seconds_per_size = 2e-9  # of a candidate, for each pair of columns
    round_calibrations = 25  # of the largest model: half of it is open in the mean round
    # Codes that the columns measured again show enlarge the last model.
    final_calibrations = 150 + len(domain)
    bytes_per_estimated_cell = 32  # independent, of two rounds, and one of them as it is computed
    bytes_per_model_cell = 40
    calibrations = round_calibrations * load.rounds + final_calibrations
    each = largest * seconds_per_cell + load.measured * seconds_per_marginal
    candidate = seconds_per_estimate + seconds_per_size * len(domain) ** 2
    estimates = load.rounds * len(load.candidates) * candidate
    mb = load.cells * bytes_per_estimated_cell + largest * bytes_per_model_cell
    return Cost(calibrations * each + estimates, mb / 2**20)
