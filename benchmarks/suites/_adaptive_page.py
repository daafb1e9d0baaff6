"""The tables and figures of docs/research/adaptive.md, from stored rows."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from benchmarks.core import charts
from benchmarks.core.page import Page, markdown
from benchmarks.core.results import View
from benchmarks.core.store import Row
from benchmarks.core.suite import DEFAULT
from benchmarks.suites._adaptive_claims import (
    ALL,
    CLAIMS,
    EPSILONS,
    HOW,
    METRICS,
    Point,
    compare,
    points,
)
from benchmarks.suites._adaptive_missing import missing

WIDTH, HEIGHT, TOP, ROW = 1060.0, 200.0, 78.0, 290.0
TICKS = {e: f"{e:g}" for e in (0.1, 0.15, 0.25, 0.5, 1.0)}
"""Not 0.2, for which there is no room."""


class Panel(NamedTuple):
    """A task, the contenders that are drawn, and the metric."""

    task: str
    contenders: Sequence[str]
    metric: str = "max"


_STANDARD, _REFERENCES = (
    ("mwem", "pep", "rap-softmax", "gem", "dual-query"),
    ("aim", "mst", "independent"),
)
_PUBLIC = ("gem", "gem-pub-tenth", "gem-pub-reduced", "pmw-pub-tenth", "pep-pub-tenth")
_WHOLE = ("gem", "gem-marginals", "mwem", "mwem-marginals", "aim")
_AT_STAR = ("gem", "rap-softmax", "rap", "dual-query", "fem")


def _states(*tables: str) -> list[tuple[str, ...]]:
    return [("gem", f"gem-pub-{t}", f"pmw-pub-{t}", f"pep-pub-{t}") for t in tables]


LAYOUTS: dict[str, list[list[Panel]]] = {
    "figure1": [[Panel(t, _STANDARD) for t in ALL]],
    "figure2": [[*(Panel("acs", names) for names in _states("ca", "us")), Panel("adult", _PUBLIC)]],
    "figure3": [[Panel(t, _STANDARD, m) for t in ALL] for m in METRICS],
    "figure4": [[Panel("acs", names, m) for names in _states("ca", "us", "oh")] for m in METRICS],
    "figure5": [[Panel("adult", _PUBLIC, m) for m in METRICS]],
    "figure6": [[Panel(t, ("rap-softmax", "rap"), m) for t in ALL] for m in METRICS],
    "figure7": [
        [Panel(t, ("mwem", "mwem-forgetful"), m) for m in METRICS]
        for t in ("acs_reduced", "adult_reduced")
    ],
    "figure8": [[Panel("adult_star", _AT_STAR, m) for m in METRICS]],
    "defaults": [[Panel(t, (*_STANDARD, *_REFERENCES)) for t in ALL]],
    "marginals": [[Panel(t, _WHOLE) for t in (*("acs_reduced", "adult_reduced"), "adult")]],
}
"""Rows of panels by the paper's numbers; the last two figures are ours."""
TUNED = ("figure1", "figure3", "figure6", "figure7", "figure8")
"""Drawn with the best of a grid; the others as the library sets them."""
CAPTIONS = {
    "defaults": "The library's defaults, with AIM, MST and independent columns; the largest error",
    "marginals": "Single queries, as in the paper, and whole marginals. Under replacement, as here, a marginal "
    "costs twice as much for the same noise. Under add/remove it costs the same",
    "figure1": "Figure 1, the largest error, tuned",
    "figure2": "Figure 2, with public records: California, other states, and ADULT; the library's defaults",
    "figure3": "Figure 3, all three errors, tuned",
    "figure4": "Figure 4, public records of California, of other states, and of Ohio; the library's defaults",
    "figure5": "Figure 5, ADULT with all columns public, or seven; the library's defaults",
    "figure6": "Figure 6, RAP with and without softmax; tuned. The error of RAP is that of the released "
    "distribution. In the paper it is that of the relaxed records, whose answers may belong to no table",
    "figure7": "Figure 7, MWEM with and without past queries; tuned",
    "figure8": "Figure 8, ADULT\\*; tuned",
}  # fmt: skip


def page(view: View) -> Page:
    """Return all tables and figures; ``missing`` lists all that has no row."""
    scaled = [row for row in view.all if row["task"] == "scaling"]
    figures = {name: figure(view, name) for name in LAYOUTS}
    drawn = [name for name, svg in figures.items() if svg]
    captions = (
        f"{text}:\n\n![{n}](adaptive/{n}.svg)" for n, text in CAPTIONS.items() if n in drawn
    )
    per_task = (f"{view.title(t)}:\n\n{runs_of(view, t)}" for t in view.tasks if view.present(t))
    tables = {
        "stored": stored(view), "orderings": orderings(view), "numbers": numbers(view),
        "plain": plain(view), "scaling": scaling(view, scaled), "runs": "\n\n".join(per_task),
        "commits": commits(view), "figures": "\n\n".join(captions),
        "missing": missing(view, [n for n in figures if n not in drawn], scaled=bool(scaled)),
    }  # fmt: skip
    return Page(tables, figures)


# Figures


def figure(view: View, name: str) -> str:
    """Return rows of panels, each with a scale of its own; nothing without a point."""
    labels: dict[str, None] = {}
    parts: list[str] = []
    rows = LAYOUTS[name]
    for i, row in enumerate(rows):
        frames = charts.panels(len(row), WIDTH, HEIGHT, (0.09, 1.1), (0, 1))
        for frame, panel in zip(frames, row, strict=True):
            series = dots(view, panel, "tuned" if name in TUNED else "default")
            top, ticks = scale([d[2] for s in series.values() for d in s.values()])
            placed = replace(frame, up=(0, top), log_across=True, top=TOP + ROW * i)
            title = f"{view.title(panel.task)}: {METRICS[panel.metric]}"
            parts += charts.lines(view.legend, placed, title, series, ticks, TICKS)
            labels |= dict.fromkeys(series)
    height = TOP - charts.TOP + ROW * (len(rows) - 1) + HEIGHT
    return charts.picture(view.legend, list(labels), parts, WIDTH, height, name) if labels else ""


def dots(view: View, panel: Panel, how: str) -> dict[str, dict[float, charts.Dot]]:
    """Return the mean and a standard error to each side, by contender and epsilon."""
    entries = {}
    for name in panel.contenders:
        result = points(view, how, panel.task, name, panel.metric)
        if result:
            entries[name] = {
                e: (p.mean, p.mean - p.error, p.mean + p.error) for e, p in result.items()
            }
    return entries


def scale(values: Sequence[float]) -> tuple[float, list[float]]:
    """Return a top just above the values, and a few round numbers below it."""
    top = max(values, default=1.0) * 1.05
    power = 10.0 ** math.floor(math.log10(top))
    step = next(s * power for s in (0.2, 0.25, 0.5, 1.0, 2.0) if s * power * 6 >= top)
    return top, [i * step for i in range(int(top / step) + 1)]


def orderings(view: View) -> str:
    """Return each claim that runs can be held against, and whether it holds."""
    body, pairs = [], ((c, task) for c in CLAIMS for task in c.tasks)
    for claim, task in pairs:
        for how in HOW:
            result = {m: compare(view, claim, task, how, m) for m in METRICS}
            if result["max"].verdicts:
                first = (claim.words, view.title(task), claim.where, how)
                errors = (
                    f"**{result['max'].outcome}**",
                    result["mean"].outcome,
                    result["rmse"].outcome,
                )
                body.append((*first, result["max"].measured, *errors))
    return markdown(
        ("the paper", "table", "where", "rounds", "max error", "", "mean", "RMSE"), body
    )


# Tables


def stored(view: View) -> str:
    """Return how many runs there are of each table, and at which epsilons."""
    parts = []
    for task in view.tasks:
        names = view.present(task)
        finished = [row for name in names for row in view.finished(task, name)]
        if finished:
            at = ", ".join(f"{e:g}" for e in sorted({row["epsilon"] for row in finished}))
            title = view.title(task)
            parts.append(f"{title}, {len(finished)} runs of {len(names)} contenders at ε = {at}")
    return f"Stored so far: {'; '.join(parts)}."


def numbers(view: View) -> str:
    """Return the errors on every table: by default, and tuned where a grid was run."""
    parts = []
    for task in view.tasks:
        labels = [(how.capitalize(), errors(view, task, how)) for how in HOW]
        parts += [f"### {view.title(task)}"] * any(text for _, text in labels)
        parts += [f"{how}:\n\n{text}" for how, text in labels if text]
    return "\n\n".join(parts)


def errors(view: View, task: str, how: str) -> str:
    """Return max and mean errors of every contender by epsilon."""
    by_name = {
        name: {m: points(view, how, task, name, m) for m in ("max", "mean")}
        for name in view.tasks[task].contenders
    }
    by_name = {name: by for name, by in by_name.items() if by["max"]}
    if how == "tuned" and not any(view.contenders[name].grid(task) for name in by_name):
        return ""
    body: list[tuple[object, ...]] = []
    epsilons = [e for e in EPSILONS if any(e in by["max"] for by in by_name.values())]
    for name, by in by_name.items():
        cells = (f"{plus_minus(by['max'].get(e), 4)}{best(by['max'].get(e))}" for e in epsilons)
        body.append((view.label(name), "max", *cells))
        body.append(("", "mean · 10³", *(plus_minus(by["mean"].get(e), 3, 1e3) for e in epsilons)))
    return markdown(("", "error", *(f"ε = {e:g}" for e in epsilons)), body)


def plus_minus(point: Point | None, digits: int, times: float = 1.0) -> str:
    """Return a mean and its standard error."""
    if point is None:
        return ""
    return f"{times * point.mean:.{digits}f} ± {times * point.error:.{digits}f}"


def best(point: Point | None) -> str:
    """Return the setting that was the best, in brackets."""
    words = {"rounds": "T = {}", "queries_per_round": "K = {}", "eta": "η = {:g}",
             "samples": "{} samples"}  # fmt: skip
    texts = [words[k].format(v) for k, v in point.setting.items()] if point else []
    return f" ({', '.join(texts)})" if texts else ""


def runs_of(view: View, task: str) -> str:
    """Return the stored runs of every contender, and the cost and error of a default run."""
    body = []
    for name in view.present(task):
        rows, grid = view.rows(task, name), view.contenders[name].grid(task)
        finished = view.finished(task, name)
        tried = {tuple(r["setting"].items()) for r in finished if r["setting"] in grid}
        share = f"{len(tried)} of {len(grid)}" if grid else "none"
        without = len(rows) - len(finished) or ""
        body.append((view.label(name), len(finished), share, without, *cost(finished)))
    head = ("", "runs", "settings of the grid", "without a result", "rounds", "wall, s", "CPU, s",
            "max error")  # fmt: skip
    return markdown(head, body)


def cost(finished: Sequence[Row]) -> tuple[str, ...]:
    """Return medians of rounds and seconds at epsilon = 1 by default, and the mean error.

    The first run of a process compiles: it counts only where there is no other.
    """
    every = [row for row in finished if row["epsilon"] == 1.0 and row["setting"] == DEFAULT]
    rows = [row for row in every if row["earlier"]] or every
    if not rows:
        return "", "", "", ""
    rounds, *seconds = (median_of(rows, k) for k in ("rounds", "fit_wall_s", "fit_cpu_s"))
    error = statistics.fmean(row["errors"]["max"] for row in every)
    times = (f"{s:.0f}" if s >= 10 else f"{s:.2g}" for s in seconds)
    return f"{rounds:g}", *times, f"{error:.4f}"


def median_of(rows: Sequence[Row], name: str) -> float:
    """Return the median of a column."""
    return statistics.median(row[name] for row in rows)


def plain(view: View) -> str:
    """Return GEM and its plain implementation at equal T: errors, and seconds a round.

    A run that was stopped counts for the rounds it had, and not for its error.
    """
    by: dict[tuple[int, float, str], list[Row]] = {}
    for name in ("gem-plain", "gem-paper", "gem"):
        for row in view.rows("adult", name):
            if row["outcome"] in ("finished", "stopped"):
                key = (int(row["setting"].get("rounds", 0)), row["epsilon"], name)
                by.setdefault(key, []).append(row)
    body = []
    for key in sorted(by, key=lambda key: (key[:2], key[2] != "gem-plain")):
        (t, epsilon, name), rows, base = key, by[key], by.get((*key[:2], "gem-plain"))
        if base:
            finished = [row["errors"]["max"] for row in rows if row["outcome"] == "finished"]
            wall, cpu = (a_round(rows, kind) for kind in ("wall", "cpu"))
            error = f"{statistics.fmean(finished):.4f}" if finished else "stopped"
            rounds = f"{median_of(rows, 'rounds'):g} of {t}"
            times = (f"{wall:.3g}", f"{cpu:.3g}", f"{cpu / a_round(base, 'cpu'):.2f}")
            label = view.label(name)
            body.append((label, f"{epsilon:g}", len(rows), rounds, error, *times))
    head = ("", "ε", "runs", "rounds", "max error", "wall per round, s", "CPU per round, s",
            "CPU / plain")  # fmt: skip
    return markdown(head, body)


def a_round(rows: Sequence[Row], kind: str) -> float:
    """Return the median, over runs, of the seconds of a round."""
    return statistics.median(row[f"fit_{kind}_s"] / row["rounds"] for row in rows)


def scaling(view: View, rows: Sequence[Row]) -> str:
    """Return time a round and memory against the bytes of the histogram."""
    body = [
        (view.label(r["contender"]), f"{r['setting']['cells']:.0e}", r["outcome"],
         f"{r['histogram_mb']:.4g}", f"{r['peak_mb']:.4g}",
         f"{(r['peak_mb'] - r['base_mb']) / r['histogram_mb']:.1f}",
         *(f"{r[k]:.3g}" if k in r else "" for k in ("round_s", "round_cpu_s")))
        for r in sorted(rows, key=lambda r: (r["contender"], r["setting"]["cells"]))
    ]  # fmt: skip
    head = ("", "cells", "", "histogram, MB", "peak, MB", "(peak − base) / histogram",
            "wall, s per round", "CPU")  # fmt: skip
    about = ("MWEM and PEP on tables of 50,000 random records whose columns have ten codes each. "
             "*Base* is the process before its first question:\n\n")  # fmt: skip
    return about + markdown(head, body) if rows else ""


def commits(view: View) -> str:
    """Return by which versions of margrave the rows were made, and where."""
    count: Counter[tuple[str, str]] = Counter()
    names = ((task, name) for task in view.tasks for name in view.present(task))
    for row in (row for pair in names for row in view.rows(*pair)):
        commit = f"{row['commit'][:10]}{', changed' if row['dirty'] else ''}"
        machine = row["machine"]
        count[commit, f"{machine['cores']} cores, {machine['cpu']}"] += 1
    return markdown(("commit", "machine", "runs"), [(*key, n) for key, n in sorted(count.items())])
