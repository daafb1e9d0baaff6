"""The gradual update: records move a little towards one marginal after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from margrave.models.gum import kernels
from margrave.models.gum.targets import CountTarget, WorkOrder
from margrave.models.sampling import deal
from margrave.types import AnyArray, FloatArray, IntArray


class PassSchedule(NamedTuple):
    """The number of passes, and the step of each: ``alpha · decay^⌊pass / period⌋``."""

    passes: int
    alpha: float
    decay: float
    period: int

    def step(self, done: int) -> float:
        """Return the step after ``done`` passes."""
        return float(self.alpha * self.decay ** (done // self.period))


@dataclass(frozen=True, eq=False)
class Chooser:
    """The choices of a block in each of its parts, and running sums of their weights."""

    order: IntArray
    starts: IntArray
    reach: FloatArray

    @staticmethod
    def of(parts: IntArray, weights: FloatArray) -> Chooser:
        """Return the chooser for the part and the weight, above 0, of each choice."""
        order = np.argsort(parts, kind="stable")
        starts = np.searchsorted(parts[order], np.arange(int(parts.max()) + 2))
        return Chooser(order, starts, np.concatenate([[0.0], np.cumsum(weights[order])]))

    def draw(self, numbers: AnyArray, rng: np.random.Generator) -> IntArray:
        """Return a choice in each part of these numbers, drawn by the weights."""
        first, end = self.starts[numbers], self.starts[numbers + 1]
        if len(self.order) == len(self.starts) - 1:
            return np.asarray(self.order[first])
        low, high = self.reach[first], self.reach[end]
        at = np.searchsorted(self.reach, low + rng.random(len(numbers)) * (high - low), "right") - 1
        return np.asarray(self.order[np.clip(at, first, end - 1)])


def records_of(
    targets: Sequence[CountTarget],
    weights: Sequence[FloatArray],
    records: int,
    schedule: PassSchedule,
    rng: np.random.Generator,
) -> AnyArray:
    """Return records near some targets, as choices, of shape (records, blocks).

    Args:
        targets: Consistent counts that sum to ``records``.
        weights: One for each choice of each block, above 0: its chance where no target separates it.
        records: The number of records.
        schedule: The passes.
        rng: Randomness.
    """
    order = WorkOrder.of(targets)
    rows = np.zeros((records, len(weights)), dtype=np.int32)
    together = np.zeros(records, dtype=np.int64)
    for t, own in enumerate(weights):
        rows[:, t] = deal(together, own[None, :], rng)
    for group in order.groups:
        first = {t: target for target in reversed(group) for t in target.places}
        for t, target in first.items():
            rows[:, t] = _appended(rows, t, target.onto(t), weights[t], rng)
        places = list(first)
        updated = gradual_update(rows, group, weights, schedule, rng)
        # groups share no column, so the order of one group's records is not to follow another's
        rows[:, places] = updated[rng.permutation(records)][:, places]
    for t, target in reversed(order.appended):
        rows[:, t] = _appended(rows, t, target, weights[t], rng)
    return rows


def _appended(
    rows: AnyArray, place: int, target: CountTarget, weights: FloatArray, rng: np.random.Generator
) -> IntArray:
    table, parts = target.by_others(place)
    # a cell of the other columns that has no count gets the block's weights
    otherwise = np.bincount(parts, weights=weights)
    table = np.where(table.sum(axis=1, keepdims=True) > 0, table, otherwise)
    dealt = deal(target.without(place).cells(rows), table, rng)
    return Chooser.of(parts, weights).draw(dealt, rng)


@dataclass(frozen=True, eq=False)
class _Layout:
    """A target for compiled loops, its counts rounded to whole records."""

    columns: IntArray
    starts: IntArray
    parts: IntArray
    shape: tuple[int, ...]
    counts: FloatArray
    choosers: tuple[Chooser, ...]

    @staticmethod
    def of(target: CountTarget, weights: Sequence[FloatArray]) -> _Layout:
        strides = np.cumprod([1, *target.counts.shape[:0:-1]])[::-1]
        sums = np.floor(np.cumsum(target.counts) + 0.5)
        return _Layout(
            np.array(target.places, dtype=np.int64),
            np.cumsum([0, *map(len, target.parts[:-1])]),
            np.concatenate([p * s for p, s in zip(target.parts, strides, strict=True)]),
            target.counts.shape,
            np.diff(sums, prepend=0.0),
            tuple(
                Chooser.of(p, weights[t]) for t, p in zip(target.places, target.parts, strict=True)
            ),
        )


def gradual_update(
    rows: AnyArray,
    targets: Sequence[CountTarget],
    weights: Sequence[FloatArray],
    schedule: PassSchedule,
    rng: np.random.Generator,
) -> AnyArray:
    """Return the records after some passes over the targets, the worst one first in each.

    For one target, cells with too many records give some to cells with too few. Half of these
    records become copies of a record in their new cell. The others change only the target's columns,
    as all do whose new cell is empty.
    """
    rows = rows.copy()
    layouts = [_Layout.of(t, weights) for t in targets]
    cells = np.empty(len(rows), dtype=np.int64)
    errors = [float(np.abs(_counts(rows, x, cells) - x.counts).sum()) for x in layouts]
    for done in range(schedule.passes):
        for i in sorted(range(len(layouts)), key=lambda i: -errors[i]):
            errors[i] = _move(rows, layouts[i], schedule.step(done), cells, rng)
    return rows


def _counts(rows: AnyArray, layout: _Layout, cells: IntArray) -> IntArray:
    counts = np.empty(len(layout.counts), dtype=np.int64)
    kernels.find_cells(rows, layout.columns, layout.starts, layout.parts, cells, counts)
    return counts


def _move(
    rows: AnyArray, layout: _Layout, alpha: float, cells: IntArray, rng: np.random.Generator
) -> float:
    """Move records towards one target; return the distance from it before."""
    counts = _counts(rows, layout, cells)
    added, freed = np.empty_like(counts), np.empty_like(counts)
    moved = kernels.find_moves(counts, layout.counts, alpha, rng.random(), added, freed)
    copies = np.minimum(
        np.where(counts > 0, (added + rng.integers(2, size=len(added))) // 2, 0), counts
    )
    copied = int(copies.sum())
    donors, places = np.empty(copied, dtype=np.int64), np.empty(int(freed.sum()), dtype=np.int64)
    uniform = rng.random(len(rows), dtype=np.float32)
    kernels.find_records(cells, counts, copies, freed, uniform, donors, places)
    places = rng.permutation(places)[:moved]
    rows[places[:copied]] = rows[rng.permutation(donors)]
    codes = np.unravel_index(np.repeat(np.arange(len(added)), added - copies), layout.shape)
    for t, chooser, own in zip(layout.columns, layout.choosers, codes, strict=True):
        rows[places[copied:], t] = chooser.draw(own, rng)
    return float(np.abs(counts - layout.counts).sum())
