"""The figures of docs/transport.md: log2 ratios of errors to PrivPGD's, table by table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import charts
from benchmarks.transport.contenders import CONTENDERS, LABELS
from benchmarks.transport.errors import METRICS
from benchmarks.transport.summary import BASE, CUT, Results
from benchmarks.transport.tasks import EPSILONS, SOURCES, TITLES
from charts import Dot, Legend

WIDTH, HEIGHT, TOP, ROW = 1060.0, 200.0, 64.0, 284.0
TICKS = (-4, -2, 0, 2, 4)
COLOURS = {
    "privpgd": ("#17697a", "#5fb8c6"), "aim": ("#1f2630", "#e6e8ea"), "mst": ("#b39bc9", "#8f74b0"),
    "private-gsd": ("#c4622d", "#e8925f"), "gem": ("#3b5fa8", "#85a3e0"), "rap": ("#3f8f4f", "#7cc98b"),
    "privpgd-apart": ("#a98212", "#cfae4a"), "privpgd-paper": ("#6a7683", "#9fabb7"),
}  # fmt: skip
LEGEND = Legend({n: LABELS[n] for n in COLOURS}, COLOURS)

FIRST = ("downstream", "centred_covariance_error", "counting_error", "thresholding_error")
SECOND = ("sliced_wasserstein", "two_way_l1")
NAMES = {f"{kind}-{e:g}": (metrics, e) for e in EPSILONS for kind, metrics in (("queries", FIRST), ("pairs", SECOND))}
"""Figures 1, 4 and 5 of the paper, and 2, 6 and 7."""


def figures(results: Results) -> dict[str, str]:
    """Those that have anything to show."""
    made = {name: figure(results, metrics, e, name) for name, (metrics, e) in NAMES.items()}
    return {name: text for name, text in made.items() if text}


def figure(results: Results, metrics: Sequence[str], epsilon: float, name: str) -> str:
    """Two panels in a row."""
    tasks = [t for t in SOURCES if results.finished(t, BASE, epsilon)]
    shown: list[str] = []
    parts: list[str] = []
    for place, metric in enumerate(metrics):
        frame = charts.panels(2, WIDTH, HEIGHT, (0, max(1, len(tasks))), (-CUT, CUT))[place % 2]
        panel = replace(frame, top=TOP + ROW * (place // 2))
        series = {n: ratios(results, tasks, n, epsilon, metric) for n in CONTENDERS if n != BASE}
        series = {n: s for n, s in series.items() if s}
        shown += [n for n in series if n not in shown]
        labels = {i: TITLES[t] for i, t in enumerate(tasks)}
        title = f"{METRICS[metric]}, ε = {epsilon:g}: log2 of the ratio to PrivPGD"
        parts += charts.dots(LEGEND, panel, title, list(labels), series, TICKS, line=0.0, below="", labels=labels)
    tall = TOP - charts.TOP + ROW * ((len(metrics) - 1) // 2) + HEIGHT
    return charts.picture(LEGEND, shown, parts, WIDTH, tall, name) if shown else ""


def ratios(
    results: Results, tasks: Sequence[str], contender: str, epsilon: float, metric: str
) -> dict[float, Dot]:
    """By the place of the table."""
    found = {float(i): results.ratio(t, contender, epsilon, metric) for i, t in enumerate(tasks)}
    return {place: dot for place, dot in found.items() if dot is not None}
