"""The two searches for the records of least loss, and when they stop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrave.models.genetic import kernels
from margrave.models.genetic.statistics import Statistics
from margrave.types import AnyArray, IntArray

#: Choices of one entry that a mutation tries at most.
SIBLINGS = 256


class Limits(NamedTuple):
    """When a search ends: after so many generations, or ``window`` of them that lowered the loss by a smaller share.

    The share is of the loss, or of what the true counts would have by the noise, if that is more.
    """

    generations: int
    window: int
    tolerance: float


def evolve_queries(
    statistics: Statistics,
    rows: IntArray,
    limits: Limits,
    *,
    crossover: float,
    rng: np.random.Generator,
) -> IntArray:
    """Return one data set whose records improve in turn, each by the best of its children."""
    rows = rows.copy()
    gains, turns, state = _state(statistics, rows, rng)
    tried = np.empty(min(SIBLINGS, int(statistics.layout.sizes.max(initial=1))), dtype=np.int64)
    losses = [statistics.loss(rows)]  # of no answers it is 0, and the search over
    while len(losses) <= limits.generations and not _settled(
        statistics, losses, limits.window, limits.tolerance
    ):
        order = rng.permutation(len(rows))
        change = kernels.generation(
            rows, order, crossover, statistics.layout, gains, turns, state, tried
        )
        losses.append(losses[-1] + change)
    return rows


def evolve(
    statistics: Statistics,
    elite: IntArray,
    limits: Limits,
    *,
    mutations: int,
    crossovers: int,
    rng: np.random.Generator,
) -> IntArray:
    """Return an elite of data sets, of shape (elite, records, sites), after generations of
    children; best first.

    A child differs from its parent in one entry of one record: a random choice, or one of another of the elite.
    """
    rows = np.concatenate([elite, elite])
    turns, state = _turns(statistics), _seed(rng)
    gains = np.array([statistics.gains(r) for r in rows])
    start = np.array([statistics.loss(r) for r in elite])
    slots = np.argsort(start, kind="stable")
    losses = start[slots]
    best, done = [float(losses[0])], 0
    while done < limits.generations and not _settled(statistics, best, 1, limits.tolerance):
        turn = min(limits.window, limits.generations - done)
        kernels.evolve(
            rows, gains, turns, losses, slots, turn, mutations, crossovers, statistics.layout, state
        )
        best.append(float(losses[0]))
        done += turn
    return np.asarray(rows[slots])


def _settled(statistics: Statistics, losses: list[float], window: int, tolerance: float) -> bool:
    if len(losses) <= window:
        return losses[-1] <= 0.0
    before = losses[-1 - window]
    return before - losses[-1] <= tolerance * max(before, statistics.answers)


def _state(
    statistics: Statistics, rows: IntArray, rng: np.random.Generator
) -> tuple[AnyArray, AnyArray, AnyArray]:
    return statistics.gains(rows), _turns(statistics), _seed(rng)


def _turns(statistics: Statistics) -> AnyArray:
    return 2.0 * statistics.weights * statistics.step**2


def _seed(rng: np.random.Generator) -> AnyArray:
    return rng.integers(1 << 63, size=1).astype(np.uint64)
