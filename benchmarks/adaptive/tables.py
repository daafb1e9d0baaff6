"""The tables of docs/adaptive.md."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.adaptive.contenders import BY_TASK
from benchmarks.adaptive.errors import METRICS
from benchmarks.adaptive.grids import DEFAULT, grid, label
from benchmarks.adaptive.names import LABELS
from benchmarks.adaptive.orderings import compared, rows
from benchmarks.adaptive.summary import HOW, Point, Results
from benchmarks.adaptive.tasks import EPSILONS, TITLES
from stored import Facts, read_lines

ABOUT_SCALING = (
    "MWEM and PEP on tables of 50,000 random records whose columns have ten codes each. *Base* is the process before "
    "its first question:\n\n"
)


def tables(results: Mapping[str, Results], folder: Path) -> dict[str, str]:
    """All of them, by their names in the page. What has no line is in none of them, and in ``missing``."""
    lines = list(read_lines(folder / "scaling.jsonl"))
    return {
        "stored": stored(results),
        "orderings": orderings(results),
        "numbers": numbers(results),
        "plain": plain(results["adult"]),
        "scaling": ABOUT_SCALING + scaling(lines) if lines else "",
        "runs": "\n\n".join(f"{TITLES[t]}:\n\n{runs(found)}" for t, found in results.items() if found.lines),
        "commits": commits(results),
    }


def markdown(head: Sequence[str], body: Sequence[Sequence[object]]) -> str:
    """A table; nothing where it has no lines."""
    if not body:
        return ""
    out = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*out, *("| " + " | ".join(map(str, line)) + " |" for line in body)])


def stored(results: Mapping[str, Results]) -> str:
    """How many runs there are of each table, and at which epsilons."""
    parts = []
    for task, found in results.items():
        done = [x for name in found.lines for x in found.finished(name)]
        if done:
            at = ", ".join(f"{e:g}" for e in sorted({x["epsilon"] for x in done}))
            parts.append(f"{TITLES[task]}, {len(done)} runs of {len(found.lines)} contenders at ε = {at}")
    return f"Stored so far: {'; '.join(parts)}."


def orderings(results: Mapping[str, Results]) -> str:
    """Each of the paper's findings that can be held against runs: what was measured of it, and whether it holds."""
    body = []
    for ordering, task in rows(results):
        for how in HOW:
            found = {m: compared(ordering, results[task], how, m) for m in METRICS}
            if found["max"].verdicts:
                outcomes = f"**{found['max'].outcome}**", found["mean"].outcome, found["rmse"].outcome
                body.append(
                    (ordering.words, TITLES[task], ordering.where, how, found["max"].measured, *outcomes)
                )
    return markdown(("the paper", "table", "where", "rounds", "max error", "", "mean", "RMSE"), body)


def numbers(results: Mapping[str, Results]) -> str:
    """The errors on every table that was run: by default, and tuned where something of a grid was."""
    parts = []
    for task, found in results.items():
        shown = [(how.capitalize(), errors(found, how)) for how in HOW]
        parts += [f"### {TITLES[task]}"] * any(text for _, text in shown)
        parts += [f"{how}:\n\n{text}" for how, text in shown if text]
    return "\n\n".join(parts)


def errors(found: Results, how: str) -> str:
    """Max and mean errors of every contender by epsilon. Contenders without a grid are tuned beside others only."""
    points = {name: {m: found.of(how, name, m) for m in ("max", "mean")} for name in BY_TASK[found.task]}
    points = {name: by for name, by in points.items() if by["max"]}
    if how == "tuned" and not any(grid(name, found.task) for name in points):
        return ""
    body: list[tuple[object, ...]] = []
    epsilons = [e for e in EPSILONS if any(e in by["max"] for by in points.values())]
    for name, by in points.items():
        cells = (f"{told(by['max'].get(e), 4)}{chosen(by['max'].get(e), how)}" for e in epsilons)
        body.append((LABELS[name], "max", *cells))
        body.append(("", "mean · 10³", *(told(by["mean"].get(e), 3, 1000) for e in epsilons)))
    return markdown(("", "error", *(f"ε = {e:g}" for e in epsilons)), body)


def told(point: Point | None, digits: int, times: float = 1.0) -> str:
    """A mean and its standard error."""
    return "" if point is None else f"{times * point.mean:.{digits}f} ± {times * point.error:.{digits}f}"


def chosen(point: Point | None, how: str) -> str:
    """Which setting was the best."""
    return "" if point is None or how == "default" or point.setting == DEFAULT else f" ({label(point.setting)})"


def runs(found: Results) -> str:
    """What is stored of every contender, and what a default run took and came to."""
    body = []
    for name in (n for n in BY_TASK[found.task] if n in found.lines):
        lines, options = found.lines[name], grid(name, found.task)
        done = found.finished(name)
        tried = {tuple(x["setting"].items()) for x in done if x["setting"] in options}
        share = f"{len(tried)} of {len(options)}" if options else "none"
        body.append((LABELS[name], len(done), share, len(lines) - len(done) or "", *cost(done)))
    head = ("", "runs", "settings of the grid", "without a result", "rounds", "wall, s", "CPU, s", "max error")
    return markdown(head, body)


def cost(done: Sequence[Facts]) -> tuple[str, ...]:
    """Rounds and seconds at epsilon = 1 by default, without the first run of a process if there are more; the error.

    Medians; the error is the mean of all.
    """
    every = [x for x in done if x["epsilon"] == 1.0 and x["setting"] == DEFAULT]
    lines = [x for x in every if x["earlier"]] or every
    keys = ("rounds", "fit_wall_s", "fit_cpu_s")
    if not lines:
        return "", "", "", ""
    rounds, wall, cpu = (statistics.median(x[k] for x in lines) for k in keys)
    return f"{rounds:g}", seconds(wall), seconds(cpu), f"{statistics.fmean(x['errors']['max'] for x in every):.4f}"


def seconds(value: float) -> str:
    """Two digits, or all before the point."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def plain(found: Results) -> str:
    """GEM and its plain implementation at equal T: errors, seconds, and CPU times a round over those of the plain one.

    A run that was stopped tells of the rounds it had, and not of its error.
    """
    by: dict[tuple[int, float, str], list[Facts]] = {}
    for name in ("gem-plain", "gem-paper", "gem"):
        for line in (x for x in found.lines.get(name, []) if x["outcome"] in ("finished", "stopped")):
            by.setdefault((int(line["setting"].get("rounds", 0)), line["epsilon"], name), []).append(line)
    body = []
    for (t, epsilon, name), lines in sorted(by.items(), key=lambda entry: (entry[0][:2], entry[0][2] != "gem-plain")):
        if (t, epsilon, "gem-plain") in by:
            done = [x["errors"]["max"] for x in lines if x["outcome"] == "finished"]
            rounds = statistics.median(x["rounds"] for x in lines)
            wall, cpu = (a_round(lines, kind) for kind in ("wall", "cpu"))
            ratio = cpu / a_round(by[t, epsilon, "gem-plain"], "cpu")
            error = f"{statistics.fmean(done):.4f}" if done else "stopped"
            numbers = (error, f"{wall:.3g}", f"{cpu:.3g}", f"{ratio:.2f}")
            body.append((LABELS[name], f"{epsilon:g}", len(lines), f"{rounds:g} of {t}", *numbers))
    return markdown(("", "ε", "runs", "rounds", "max error", "wall a round, s", "CPU a round, s", "CPU / plain"), body)


def a_round(lines: Sequence[Facts], kind: str) -> float:
    """Seconds of a run over its rounds: the median of several runs."""
    return statistics.median(x[f"fit_{kind}_s"] / x["rounds"] for x in lines)


def scaling(lines: Sequence[Facts]) -> str:
    """Time a round and memory against the bytes of the histogram."""
    body = [
        (LABELS[x["contender"]], f"{x['cells']:.0e}", x["outcome"], f"{x['histogram_mb']:.4g}", f"{x['peak_mb']:.4g}",
         f"{(x['peak_mb'] - x['base_mb']) / x['histogram_mb']:.1f}",
         *(f"{x[k]:.3g}" if k in x else "" for k in ("round_s", "round_cpu_s")))
        for x in sorted(lines, key=lambda x: (x["contender"], x["cells"]))
    ]  # fmt: skip
    head = ("", "cells", "", "histogram, MB", "peak, MB", "(peak − base) / histogram", "wall, s a round", "CPU")
    return markdown(head, body)


def commits(results: Mapping[str, Results]) -> str:
    """By which versions of margrave the lines were made, and where."""
    count: dict[tuple[str, str], int] = {}
    for found in results.values():
        for line in (x for lines in found.lines.values() for x in lines):
            commit = f"{line['commit'][:10]}{', changed' if line['dirty'] else ''}"
            key = (commit, f"{line['machine']['cores']} cores, {line['machine']['cpu']}")
            count[key] = count.get(key, 0) + 1
    return markdown(("commit", "machine", "runs"), [(*key, n) for key, n in sorted(count.items())])
