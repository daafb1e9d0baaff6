"""From stored lines to means over runs: of the library's defaults, and of the best of a grid."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.adaptive.contenders import BY_TASK
from benchmarks.adaptive.errors import METRICS
from benchmarks.adaptive.grids import DEFAULT, Setting, grid
from benchmarks.adaptive.tasks import EPSILONS
from stored import Facts, read_lines

HOW = ("default", "tuned")
"""With the library's number of rounds, or with the best of the paper's grid."""

FEWEST = 2
"""Runs of one setting below which it does not count."""


@dataclass(frozen=True)
class Point:
    """The mean of an error over the runs of one setting, and its standard error."""

    mean: float
    error: float
    runs: int
    setting: Setting


@dataclass(frozen=True, eq=False)
class Results:
    """The stored lines of one task, by contender."""

    task: str
    lines: dict[str, list[Facts]]

    @staticmethod
    def read(folder: Path, task: str) -> Results:
        """What is stored of a task."""
        found = {name: list(read_lines(folder / f"{task}_{name}.jsonl")) for name in BY_TASK[task]}
        return Results(task, {name: lines for name, lines in found.items() if lines})

    def points(self, contender: str, metric: str, epsilon: float) -> list[Point]:
        """One for every setting with enough finished runs."""
        by: dict[tuple[tuple[str, float], ...], list[float]] = {}
        for line in self.finished(contender):
            if line["epsilon"] == epsilon:
                by.setdefault(tuple(line["setting"].items()), []).append(line["errors"][metric])
        return [point_of(dict(s), values) for s, values in by.items() if len(values) >= FEWEST]

    def finished(self, contender: str) -> list[Facts]:
        """The lines that have errors."""
        return [x for x in self.lines.get(contender, []) if x["outcome"] == "finished"]

    def default(self, contender: str, metric: str) -> dict[float, Point]:
        """As the library sets it, by epsilon."""
        found = {e: [p for p in self.points(contender, metric, e) if p.setting == DEFAULT] for e in EPSILONS}
        return {e: points[0] for e, points in found.items() if points}

    def tuned(self, contender: str, metric: str) -> dict[float, Point]:
        """The best mean of the paper's grid, by epsilon; the defaults of a contender without a grid.

        The best is told by the true error: what no user can do, but what the paper reports.
        """
        options = grid(contender, self.task)
        if not options:
            return self.default(contender, metric)
        found = {e: [p for p in self.points(contender, metric, e) if p.setting in options] for e in EPSILONS}
        return {e: min(points, key=lambda p: p.mean) for e, points in found.items() if points}

    def of(self, how: str, contender: str, metric: str) -> dict[float, Point]:
        """ "tuned" or "default"."""
        return self.tuned(contender, metric) if how == "tuned" else self.default(contender, metric)


def point_of(setting: Setting, values: list[float]) -> Point:
    """The mean and its standard error; that of a single run is not known."""
    spread = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return Point(statistics.fmean(values), spread, len(values), setting)


def read_all(folder: Path, tasks: Iterable[str]) -> dict[str, Results]:
    """Of several tasks."""
    return {task: Results.read(folder, task) for task in tasks}


assert set(METRICS) == {"max", "mean", "rmse"}
