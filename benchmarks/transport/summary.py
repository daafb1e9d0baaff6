"""From stored lines to means over runs, and to ratios against PrivPGD."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from benchmarks.transport.contenders import CONTENDERS, REFERENCES
from benchmarks.transport.tasks import SOURCES
from charts import Dot
from stored import Facts, read_lines

BASE = "privpgd"
CUT = 4.0
"""Ratios beyond 2^4 are drawn at the edge, as in the paper."""


@dataclass(frozen=True, eq=False)
class Results:
    """The stored lines by task and contender."""

    lines: dict[tuple[str, str], list[Facts]]

    @staticmethod
    def read(folder: Path) -> Results:
        """What is stored."""
        names = [(task, name) for task in SOURCES for name in (*REFERENCES, *CONTENDERS)]
        return Results({key: list(read_lines(folder / f"{'_'.join(key)}.jsonl")) for key in names})

    def finished(self, task: str, contender: str, epsilon: float | None) -> list[Facts]:
        """The lines that have errors."""
        lines = self.lines.get((task, contender), [])
        return [x for x in lines if x["outcome"] == "finished" and x["epsilon"] == epsilon]

    def values(self, task: str, contender: str, epsilon: float | None, metric: str) -> list[float]:
        """One error in every run."""
        return [x["errors"][metric] for x in self.finished(task, contender, epsilon)]

    def ratio(self, task: str, contender: str, epsilon: float, metric: str) -> Dot | None:
        """log2 of the mean over PrivPGD's mean, and of one standard deviation to each side of it."""
        base, values = (self.values(task, name, epsilon, metric) for name in (BASE, contender))
        if not base or not values or not fmean(base):
            return None
        mean, spread = fmean(values), stdev(values) if len(values) > 1 else 0.0
        value, low, high = (log2(x / fmean(base)) for x in (mean, mean - spread, mean + spread))
        return value, low, high


def log2(ratio: float) -> float:
    """Cut at both ends; of nothing, the lower end."""
    return max(-CUT, min(CUT, math.log2(ratio))) if ratio > 0 else -CUT


def mean_of(values: Sequence[float]) -> float | None:
    """None of no values."""
    return fmean(values) if values else None
