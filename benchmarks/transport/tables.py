"""The tables of docs/transport.md."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from benchmarks.adaptive.tables import markdown
from benchmarks.transport import paper
from benchmarks.transport.contenders import CONTENDERS, LABELS, REFERENCES
from benchmarks.transport.errors import METRICS
from benchmarks.transport.summary import BASE, Results, mean_of
from benchmarks.transport.tasks import EPSILONS, SOURCES, TITLES

NEAR = 1.25
"""So many times the paper's number is near enough."""


def tables(results: Results) -> dict[str, str]:
    """All of them, by their names in the page."""
    made = {f"errors-{e:g}": errors(results, e) for e in EPSILONS}
    return made | {"references": references(results), "bar": bar(results), "runs": runs(results)}


def errors(results: Results, epsilon: float) -> str:
    """Tables 1 to 6: every contender on every table, the paper's number behind a stroke."""
    body = [
        (TITLES[task], LABELS[name], *line(results, task, name, epsilon))
        for task in SOURCES for name in CONTENDERS if results.finished(task, name, epsilon)
    ]  # fmt: skip
    return markdown(("", "", "runs", *METRICS.values(), "CPU, s"), body)


def line(results: Results, task: str, name: str, epsilon: float | None) -> list[str]:
    """Runs, means of the errors, and the median of the CPU seconds of a run but the first of a process."""
    done = results.finished(task, name, epsilon)
    cells = [cell(results, task, name, epsilon, metric) for metric in METRICS]
    seconds = [x["fit_cpu_s"] for x in done if x["earlier"]] or [x["fit_cpu_s"] for x in done]
    return [str(len(done)), *cells, f"{median(seconds):.2g}"]


def cell(results: Results, task: str, name: str, epsilon: float | None, metric: str) -> str:
    """A mean, and the paper's."""
    found, known = mean_of(results.values(task, name, epsilon, metric)), paper.said(task, epsilon, name, metric)
    told = "" if found is None else f"{found:.3g}" if metric == "downstream" else f"{found:.2g}"
    return told if known is None else f"{told} / {known:g}"


def references(results: Results) -> str:
    """The rows themselves, and a sample of as many: relative errors beside their numerators."""
    shown = {**METRICS, "covariance": "covariance, relative", "counting": "boxes, relative",
             "thresholding": "half-spaces, relative"}  # fmt: skip
    body = [
        (TITLES[task], LABELS[name], *(cell(results, task, name, None, metric) for metric in shown))
        for task in SOURCES for name in REFERENCES if results.finished(task, name, None)
    ]  # fmt: skip
    return markdown(("", "", *shown.values()), body)


def bar(results: Results) -> str:
    """PrivPGD's errors over the paper's, on the tables that have as many rows as the paper's."""
    body = []
    for task in paper.AS_LARGE:
        for epsilon in EPSILONS:
            found = [mean_of(results.values(task, BASE, epsilon, m)) for m in paper.METRICS]
            known = [paper.said(task, epsilon, BASE, m) for m in paper.METRICS]
            if None not in found:
                ratios = [ratio(x, y) for x, y in zip(found, known, strict=True)]
                body.append((TITLES[task], f"{epsilon:g}", *ratios))
    return markdown(("", "ε", *(METRICS[m] for m in paper.METRICS)), body)


def ratio(found: float | None, known: float | None) -> str:
    """In bold where it is beyond ``NEAR``."""
    if found is None or known is None:
        return ""
    told = f"{found / known:.2f}"
    return f"**{told}**" if found / known > NEAR else told


def runs(results: Results) -> str:
    """How many runs of each there are at each epsilon, and what became of others."""
    return markdown(
        ("", *(TITLES[t] for t in SOURCES)),
        [(LABELS[n], *(stored(results, t, n) for t in SOURCES)) for n in (*CONTENDERS, *REFERENCES)],
    )


def stored(results: Results, task: str, name: str) -> str:
    """Runs at each epsilon, and the outcomes of those without errors."""
    budgets: Sequence[float | None] = [None] if name in REFERENCES else EPSILONS
    counts = " · ".join(str(len(results.finished(task, name, e))) for e in budgets)
    other = sorted({x["outcome"] for x in results.lines.get((task, name), [])} - {"finished"})
    return f"{counts} ({', '.join(other)})" if other else counts
