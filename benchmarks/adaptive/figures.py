"""The figures of docs/adaptive.md, by the numbers of the paper's."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import charts
from benchmarks.adaptive.errors import METRICS
from benchmarks.adaptive.names import LEGEND
from benchmarks.adaptive.summary import Point, Results
from benchmarks.adaptive.tasks import TITLES
from charts import Dot

WIDTH, HEIGHT, TOP, ROW = 1060.0, 200.0, 78.0, 290.0
TICKS = {e: f"{e:g}" for e in (0.1, 0.15, 0.25, 0.5, 1.0)}
"""Not 0.2, for which there is no room."""

STANDARD = ("mwem", "pep", "rap-softmax", "gem", "dual-query")
REFERENCES = ("aim", "mst", "independent")
PUBLIC = ("gem", "gem-pub-tenth", "gem-pub-reduced", "pmw-pub-tenth", "pep-pub-tenth")
ORDER = ("acs_reduced", "adult_reduced", "acs", "adult")

CAPTIONS = {
    "defaults": "As the library sets them, beside AIM, MST and independent columns; the largest error",
    "marginals": "Single queries, as in the paper, and whole marginals. Where rows are replaced, as here, a marginal "
    "costs twice as much at the same noise, and where they are added or removed the same",
    "figure1": "Figure 1, the largest error, tuned",
    "figure2": "Figure 2, with public records: California, other states, and ADULT; as the library sets them",
    "figure3": "Figure 3, all three errors, tuned",
    "figure4": "Figure 4, public records of California, of other states, and of Ohio; as the library sets them",
    "figure5": "Figure 5, ADULT with all columns public, or seven; as the library sets them",
    "figure6": "Figure 6, RAP with and without softmax; tuned. The error of RAP is that of the distribution which is "
    "released; in the paper it is that of the relaxed records, whose answers need not belong to any table",
    "figure7": "Figure 7, MWEM with and without past queries; tuned",
    "figure8": "Figure 8, ADULT\\*; tuned",
}
"""By the paper's numbers; the first two are ours."""

AS_SET = ("defaults", "marginals", "figure2", "figure4", "figure5")
"""Shown as the library sets them: ours, and those with public data, whose grids nobody has run."""

Cell = tuple[str, Sequence[str], str]
"""A panel: the task, the contenders, the metric."""


def states(*tables: str) -> dict[str, tuple[str, ...]]:
    """The contenders of Figures 2a and 4 for each public table."""
    return {t: ("gem", f"gem-pub-{t}", f"pmw-pub-{t}", f"pep-pub-{t}") for t in tables}


def layouts() -> dict[str, list[list[Cell]]]:
    """Rows of panels, by the name of the figure."""
    three = list(METRICS)
    return {
        "figure1": [[(t, STANDARD, "max") for t in ORDER]],
        "figure2": [[("acs", names, "max") for names in states("ca", "us").values()] + [("adult", PUBLIC, "max")]],
        "figure3": [[(t, STANDARD, m) for t in ORDER] for m in three],
        "figure4": [[("acs", names, m) for names in states("ca", "us", "oh").values()] for m in three],
        "figure5": [[("adult", PUBLIC, m) for m in three]],
        "figure6": [[(t, ("rap-softmax", "rap"), m) for t in ORDER] for m in three],
        "figure7": [[(t, ("mwem", "mwem-forgetful"), m) for m in three] for t in ORDER[:2]],
        "figure8": [[("adult_star", ("gem", "rap-softmax", "rap", "dual-query", "fem"), m) for m in three]],
        "defaults": [[(t, (*STANDARD, *REFERENCES), "max") for t in ORDER]],
        "marginals": [
            [(t, ("gem", "gem-marginals", "mwem", "mwem-marginals", "aim"), "max") for t in (*ORDER[:2], "adult")]
        ],
    }


def figures(results: Mapping[str, Results]) -> dict[str, str]:
    """Those that have anything to show."""
    made = {}
    for name, rows in layouts().items():
        how = "default" if name in AS_SET else "tuned"
        text = figure(results, rows, how, name)
        if text:
            made[name] = text
    return made


def captioned(drawn: Collection[str]) -> str:
    """The figures that there are, each below its caption."""
    return "\n\n".join(f"{words}:\n\n![{n}](adaptive/{n}.svg)" for n, words in CAPTIONS.items() if n in drawn)


def figure(results: Mapping[str, Results], rows: Sequence[Sequence[Cell]], how: str, name: str) -> str:
    """Rows of panels in one picture, each with a scale of its own."""
    shown: list[str] = []
    parts: list[str] = []
    for i, row in enumerate(rows):
        frames = charts.panels(len(row), WIDTH, HEIGHT, (0.09, 1.1), (0, 1))
        for frame, (task, names, metric) in zip(frames, row, strict=True):
            series = {n: results[task].of(how, n, metric) for n in names}
            drawn = {n: {e: dot(p) for e, p in s.items()} for n, s in series.items() if s}
            top, ticks = scale([d[2] for s in drawn.values() for d in s.values()])
            panel = replace(frame, up=(0, top), log_across=True, top=TOP + ROW * i)
            parts += charts.lines(LEGEND, panel, f"{TITLES[task]}: {METRICS[metric]}", drawn, ticks, TICKS)
            shown += [n for n in drawn if n not in shown]
    tall = TOP - charts.TOP + ROW * (len(rows) - 1) + HEIGHT
    return charts.picture(LEGEND, shown, parts, WIDTH, tall, name) if shown else ""


def dot(point: Point) -> Dot:
    """A mean and one standard error to each side."""
    return point.mean, point.mean - point.error, point.mean + point.error


def scale(values: Sequence[float]) -> tuple[float, list[float]]:
    """A top just above the values, and a few round numbers below it."""
    most = max(values, default=1.0) * 1.05
    power = 10.0 ** math.floor(math.log10(most))
    step = next(s * power for s in (0.2, 0.25, 0.5, 1.0, 2.0) if s * power * 6 >= most)
    return most, [i * step for i in range(int(most / step) + 1)]
