"""Records piled up at the end of a column's range, where the schema may have moved values from beyond it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa

from margrave.inference.kinds import some
from margrave.models.protocol import Model
from margrave.ratios import percent
from margrave.release.draws import Draws
from margrave.schema import Integer, Real
from margrave.schema.numeric import Numeric
from margrave.schema.values import plain
from margrave.typing import FloatArray

PILED = 0.005
"""A share of the records in the last cell beyond what the cells beside it lead to expect that is worth a note."""
TIMES = 1.5
"""How many times what is expected the last cell has to hold: distributions do rise towards a bound."""
SCALE = 11
"""Whole numbers of so many values at most may be a scale, whose ends are answers like others."""
SURE = 0.05
"""The share of the draws in which a pile may be smaller, so that noise is none."""
ENOUGH = 20
"""Draws that are looked at."""


@dataclass(frozen=True, eq=False)
class Pile:
    """An end of a column that may hold values from beyond: its ``share`` of the records, by the draws.

    Values outside the bounds are counted in the nearest cell where the schema says ``outside = "clip"``. Whether
    there were any nobody tells, but they show: with d_0 the density of the last cell and d_1, d_2 those of the bins
    before it, a pile is d_0 far above d_1 · min(d_1 / d_2, 2), which is how the column goes on. A lower bound of 0
    is taken for a natural one, and of whole numbers 1. The ends of a short scale are none, but where it falls
    towards one and that is far above d_1.
    """

    column: Numeric
    top: bool
    share: float

    @staticmethod
    def of(columns: Iterable[Numeric], draws: Draws) -> tuple[Pile, ...]:
        """Those of some columns."""
        able = [c for c in columns if c.outside == "clip"]
        each = [[_shares(c, model) for c in able] for model in islice(draws.models(), ENOUGH)] if able else []
        found = (
            _pile(column, [shares[i] for shares in each], top) for i, column in enumerate(able) for top in (False, True)
        )
        return tuple(pile for pile in found if pile is not None)

    @property
    def cell(self) -> int:
        """The code of the last cell."""
        return self.column.cells.count - 1 if self.top else 0

    def beyond(self, table: pa.Table) -> pa.Table:
        """A data set with the values of the pile as far outside as the range is wide."""
        name, values = self.column.name, plain(table[self.column.name].combine_chunks())
        points, empty = self.column.points(values)
        low, high = (float(ends[at]) for ends, at in zip(self.column.cells.extremes, (0, -1), strict=True))
        span = max(high - low, 1.0)
        moved = np.where(self.column.encode(values).codes == self.cell, high + span if self.top else low - span, points)
        at = table.column_names.index(name)
        return table.set_column(at, name, self.column.written(np.where(empty, low, moved), empty))

    def note(self, names: Sequence[str]) -> str:
        """What a reader must know."""
        end, beyond = ("last", "above") if self.top else ("first", "below")
        label = self.column.labels()[self.cell]
        return (
            f"{self.column.name}: {percent(self.share)} of the records are in its {end} cell, {label}, far more"
            f" than the cells beside it lead to expect. By the schema (outside = 'clip') values {beyond} it were"
            f" counted there. If there were such, {some(names)} may be off by any amount, which no interval tells. What"
            " helps are wider bounds in the schema of the next release."
        )


def _pile(column: Numeric, each: Sequence[FloatArray], top: bool) -> Pile | None:
    """The pile at one end of a column, by the shares of its cells in each of the draws."""
    if not top and isinstance(column, Integer | Real) and (column.low == 0 or (column.cells.whole and column.low == 1)):
        return None
    held, expected = np.array([_last(column, shares, top) for shares in each]).T
    sure = np.quantile(held - expected, SURE) > PILED and held.mean() > TIMES * expected.mean()
    return Pile(column, top, float(held.mean())) if sure else None


def _shares(column: Numeric, model: Model) -> FloatArray:
    """How often each cell occurs by one of the distributions, missing values left out."""
    counts = model.project((column.name,)).values[: column.cells.count]
    return np.asarray(counts / max(float(counts.sum()), 1e-300))


def _last(column: Numeric, shares: FloatArray, top: bool) -> tuple[float, float]:
    """The share of the last cell, and what the bins before it lead to expect."""
    least, greatest = column.cells.extremes
    widths = greatest - least + column.cells.whole
    inward = slice(None, None, -1) if top else slice(None)
    shares, widths, atom = shares[inward], widths[inward], np.isin(least, column.cells.atoms)[inward]
    bins = np.flatnonzero(~atom)
    if atom[0]:
        return float(shares[0]), 0.0
    if len(bins) < 2:
        return float(shares[0]), float(shares[0])
    before = shares[bins[1:3]] / widths[bins[1:3]]
    steps = min(before[0] / before[1], 2.0) if len(before) == 2 and before[1] > 0 else 1.0
    if column.cells.whole and len(shares) <= SCALE and (widths == 1).all():
        if len(before) < 2 or steps > 1.0:
            return float(shares[0]), float(shares[0])
        steps = 1.0
    return float(shares[0]), float(before[0] * steps * widths[0])
