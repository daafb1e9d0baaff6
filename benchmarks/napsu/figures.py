"""The figures of docs/napsu.md, in the order of the paper's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import charts
import numpy as np
from benchmarks.napsu.charts import LABELS, LEGEND
from benchmarks.napsu.experiment import (
    ABLATION,
    ADULT,
    LEVEL,
    LEVELS,
    MAIN,
    ByEpsilon,
    Experiment,
    averaged,
    relative_width,
)
from benchmarks.napsu.summary import Cell, wilson
from benchmarks.napsu.tasks import EPSILONS
from charts import Dot

WIDTH, HEIGHT = 1060.0, 220.0


def toy_figures(small: Experiment) -> dict[str, str]:
    """Figures 1, 3 (a) and 3 (b) of the paper."""
    if not small.cells:
        return {}
    found, ablation = small.of(*MAIN), small.of(*ABLATION)
    shares, times = (0.2, 0.4, 0.6, 0.8, 0.95), (1, 2, 3, 4, 5, 6)
    return {
        "toy-coverage": by_coefficient(small, found, coverage, "coverage of 95 % intervals", (0.2, 1.0), shares, LEVEL),
        "toy-intervals": toy_intervals(small),
        "toy-widths": by_coefficient(small, found, width, "median relative width", (0.5, 6.0), times, 1.0),
        "toy-ablation": by_coefficient(
            small, ablation, coverage, "coverage of 95 % intervals", (0.2, 1.0), shares, LEVEL
        ),
    }


def by_coefficient(
    small: Experiment, found: Mapping[str, ByEpsilon], number: Callable[[Experiment, Cell, float, int], Dot],
    what: str, up: tuple[float, float], ticks: Sequence[float], line: float,
) -> str:  # fmt: skip
    """A panel for each coefficient, with one number of every contender and epsilon."""
    parts = []
    row = charts.panels(3, WIDTH, HEIGHT, (0, len(EPSILONS)), up)
    for j, (panel, name) in enumerate(zip(row, ("intercept, 0", "a, 1", "b, 0"), strict=True)):
        series = {n: {e: number(small, cell, e, j) for e, cell in by.items()} for n, by in found.items()}
        parts += charts.dots(LEGEND, panel, f"{what}: {name}", EPSILONS, series, ticks, line=line)
    return charts.picture(LEGEND, list(found), parts, WIDTH, HEIGHT, f"Toy experiment: {what}")


def coverage(small: Experiment, cell: Cell, epsilon: float, j: int) -> Dot:
    """Of one coefficient, with Wilson's interval."""
    hits = small.covered(cell, epsilon)[:, j]
    return float(hits.mean()), *wilson(int(hits.sum()), len(hits))


def width(small: Experiment, cell: Cell, epsilon: float, j: int) -> Dot:
    """The median relative width of one coefficient, and the middle half of the repeats."""
    low, middle, high = np.nanquantile(small.widths(cell, epsilon)[:, j], (0.25, 0.5, 0.75)).tolist()
    return middle, low, high


def toy_intervals(small: Experiment) -> str:
    """The intervals of the coefficient 1 at ε = 0.5, by two contenders."""
    names = [n for n in ("laplace", "naive") if 0.5 in small.cells.get(n, {})]
    parts = []
    for panel, name in zip(charts.panels(2, WIDTH, HEIGHT, (0, 100), (0.2, 1.8)), names, strict=False):
        cell = small.cells[name][0.5]
        low, high = (cell.estimate + s * cell.half(LEVEL) for s in (-1, 1))
        told = list(zip(low[:, 1].tolist(), high[:, 1].tolist(), strict=True))
        title = f"{LABELS[name]}: 95 % intervals of the coefficient of a, ε = 0.5"
        parts += charts.intervals(LEGEND, panel, title, name, told, 1.0, (0.5, 1, 1.5))
    return charts.picture(LEGEND, names, parts, WIDTH, HEIGHT, "Intervals in the toy experiment")


def adult_figures(large: Experiment) -> dict[str, str]:
    """Figure 4 of the paper."""
    if not large.real:
        return {}
    found = large.of(*ADULT)
    parts: list[str] = []
    for panel, epsilon in zip(charts.panels(4, WIDTH, HEIGHT, (0, 1), (0, 1)), EPSILONS, strict=True):
        series = {n: calibration(large, by[epsilon], epsilon) for n, by in found.items() if epsilon in by}
        parts += charts.curves(LEGEND, panel, f"coverage, ε = {epsilon:g}", series)
    figures = {"adult-coverage": charts.picture(LEGEND, list(found), parts, WIDTH, HEIGHT, "Coverage by level, Adult")}
    panel = replace(charts.panels(1, WIDTH, HEIGHT, (0, len(EPSILONS)), (0.9, 64.0))[0], log=True)
    dots: dict[str, dict[float, Dot]] = {
        n: {e: relative_width(large, c, e) for e, c in by.items()} for n, by in found.items()
    }
    parts = charts.dots(LEGEND, panel, "width of 95 % intervals over that of the real table", EPSILONS, dots,
                        (1, 2, 4, 8, 16, 32, 64), line=1.0)  # fmt: skip
    figures["adult-widths"] = charts.picture(LEGEND, list(found), parts, WIDTH, HEIGHT, "Widths, Adult")
    return figures


def calibration(large: Experiment, cell: Cell, epsilon: float) -> list[tuple[float, Dot]]:
    """Coverage at every level, averaged over coefficients and repeats, with the bootstrap's intervals over repeats."""
    return [(level, averaged(large.covered(cell, epsilon, level))) for level in LEVELS]
