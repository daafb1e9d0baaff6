"""One experiment as stored: every contender's coverage and widths, against what its intervals should hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from benchmarks.napsu.charts import LABELS
from benchmarks.napsu.summary import Array, Cell, bootstrapped, cells, matched, median_of_medians
from benchmarks.napsu.tasks import toy
from charts import Dot

LEVEL = 0.95
LEVELS = (*np.round(np.arange(0.05, 0.96, 0.05), 2).tolist(), 0.99)

MAIN = ("nuts", "laplace", "naive", "bootstrap", "plain")
ABLATION = ("laplace", "laplace, one", "exact", "exact, one")
ADULT = ("nuts", "laplace", "naive", "bootstrap", "plain", "pgm5", "pgm10", "pgm20")

FEWEST = 5
"""Repeats below which coverage and widths are not shown."""

ByEpsilon = dict[float, Cell]


class Experiment:
    """All contenders of one task that have lines."""

    def __init__(self, results: Path, task: str) -> None:
        names = [*(n for n in LABELS if ", one" not in n), "nuts-full"]
        found = {name: cells(results, task, name) for name in names}
        for name in ("laplace", "exact"):
            found[f"{name}, one"] = cells(results, task, name, field="one")
        self.stored: dict[str, ByEpsilon] = {name: c for name, c in found.items() if c}
        enough = {n: {e: c for e, c in by.items() if len(c.lines) >= FEWEST} for n, by in self.stored.items()}
        self.cells: dict[str, ByEpsilon] = {name: by for name, by in enough.items() if by}
        self.real = found["real"]
        self.task = task

    def of(self, *names: str) -> dict[str, ByEpsilon]:
        """Those of the contenders that there are, where they have enough repeats to say anything."""
        return {n: self.cells[n] for n in names if n in self.cells}

    def truth(self, cell: Cell, epsilon: float) -> Array:
        """What the intervals should hold: the population's coefficients, or the real table's."""
        known = toy().truth if self.task == "toy" else None
        return np.array(known) if known is not None else matched(cell, self.real[epsilon]).estimate

    def covered(self, cell: Cell, epsilon: float, level: float = LEVEL) -> Array:
        """1 where an interval holds the truth: (repeats × coefficients)."""
        return cell.covered(self.truth(cell, epsilon), level).astype(np.float64)

    def widths(self, cell: Cell, epsilon: float) -> Array:
        """Over those of the real table."""
        return cell.half(LEVEL) / matched(cell, self.real[epsilon]).half(LEVEL)


def averaged(hits: Array) -> Dot:
    """The mean, and its interval over repeats."""
    return float(hits.mean()), *bootstrapped(hits.mean(axis=1), np.mean)


def relative_width(large: Experiment, cell: Cell, epsilon: float) -> Dot:
    """The median of medians, and its interval over repeats."""
    widths = large.widths(cell, epsilon)
    return median_of_medians(widths), *bootstrapped(widths, median_of_medians)
