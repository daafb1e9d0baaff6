"""Step 3: a narrow range is found by 64 equal cells of a wide one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from margrave.learning.extent import Extent
from margrave.learning.hysteresis import grown
from margrave.learning.line import UnitLine
from margrave.schema.column_queries import LineCells
from margrave.transcript import ColumnAnswer
from margrave.types import FloatArray


@dataclass(frozen=True)
class Zoom:
    """Equal cells of a range."""

    edges: FloatArray
    line: UnitLine

    @property
    def query(self) -> LineCells:
        """The counts of the cells; the outer ones hold what lies beyond the range."""
        return LineCells(tuple(self.line.points(self.edges[1:-1]).tolist()))

    def applied(self, extent: Extent, answer: ColumnAnswer) -> tuple[Extent, float]:
        """Return the narrower range, and the bias of a mean that its cut can cause; or the range as it is."""
        counts, sigma = answer.values[:-1].astype(np.float64), answer.scale
        kept = grown(counts, sigma, seed=3.5)
        rows = max(float(counts.sum()), 1.0)
        seen = replace(extent, edges=self.edges, counts=np.maximum(counts, 0), rows=rows)
        if not kept.any():
            return extent, 0.0
        first = max(int(np.argmax(kept)) - 1, 0)
        last = min(len(kept) - 1 - int(np.argmax(kept[::-1])) + 1, len(kept) - 1)
        inside = slice(first, last + 1)
        outside = len(kept) - (last + 1 - first)
        beyond = rows - counts[inside].sum() + 2 * sigma * np.sqrt(max(outside, 1))
        if outside == 0 or beyond > 0.05 * rows:
            return seen, 0.0
        low, high = float(self.edges[first]), float(self.edges[last + 1])
        cut = max(low - extent.low, extent.high - high)
        narrow = replace(
            seen,
            low=low,
            high=high,
            edges=self.edges[first : last + 2],
            counts=np.maximum(counts[inside], 0),
            hidden=0.0,
            tails=(None, None),
        )
        return narrow, float(self.line.points(np.array([max(beyond, 0.0) / rows * cut / 4]))[0])


def zoom_of(extent: Extent, line: UnitLine) -> Zoom | None:
    """Return the cells of a zoom, or None if the range is not worth one."""
    width = extent.high - extent.low
    if extent.dense > 6 or (line.is_whole and width <= 64):
        return None
    edges = line.rounded(np.linspace(extent.low, extent.high, 65))
    return Zoom(edges, line) if len(edges) > 8 else None
