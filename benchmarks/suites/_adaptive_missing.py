"""The list, for docs/research/adaptive.md, of all that has not been run yet."""

from __future__ import annotations

from collections.abc import Callable, Collection

from benchmarks.core.results import View
from benchmarks.core.suite import DEFAULT
from benchmarks.suites._adaptive_claims import CLAIMS, EPSILONS, HOW, METRICS, RUNS, compare


def missing(view: View, figures: Collection[str], *, scaled: bool) -> str:
    """Return a list: tables, contenders, settings, repeats, claims, figures not run yet."""
    some = [t for t in view.tasks if view.present(t)]
    each = f"defaults with fewer than {RUNS} runs at each of {len(EPSILONS)} ε"
    parts: dict[str, str] = {
        "tables": ", ".join(view.title(t) for t in view.tasks if t not in some),
        "contenders": joined(view, some, absent),
        "the paper's grids, for *tuned*": joined(view, view.tasks, untuned),
        each: few(view),
        "findings of the paper": findings(view),
        "the paper's figures": ", ".join(
            n.removeprefix("figure") for n in figures if n.startswith("figure")
        ),
        "speed": "" if scaled else "MWEM and PEP from 10^5 to 10^8 cells",
    }
    lines = [f"- {what}: {text}" for what, text in parts.items() if text]
    return "\n".join(["Not run yet:", "", *lines]) if lines else "Nothing is left to run."


def joined(view: View, tasks: Collection[str], text: Callable[[View, str], str]) -> str:
    """Return the texts of all tasks that have one."""
    return "; ".join(filter(None, (text(view, task) for task in tasks)))


def absent(view: View, task: str) -> str:
    """Return the contenders of a table that have no row."""
    present = view.present(task)
    labels = [view.label(n) for n in view.tasks[task].contenders if n not in present]
    return f"{view.title(task)}: {' · '.join(labels)}" if labels else ""


def untuned(view: View, task: str) -> str:
    """Return how many settings of the grids were not run on a table."""
    names = view.present(task)
    total = sum(len(view.contenders[n].grid(task)) for n in names)
    run = {
        (n, *sorted(row["setting"].items()))
        for n in names for row in view.finished(task, n)
        if row["setting"] in view.contenders[n].grid(task)
    }  # fmt: skip
    left = total - len(run)
    which = "all" if not run else left
    return f"{view.title(task)}, {which} of {total} settings" if left else ""


def few(view: View) -> str:
    """Return the tables where a contender's default was not run often enough."""
    short, enough = [], RUNS * len(EPSILONS)
    for task in view.tasks:
        runs = [len(view.finished(task, n, setting=DEFAULT)) for n in view.present(task)]
        if runs and min(runs) < enough:
            low, high = min(runs), max(runs)
            often = f"{low} to {high}" if low < high else str(low)
            short.append(f"{view.title(task)} ({often} of {enough} for each contender)")
    return ", ".join(short)


def findings(view: View) -> str:
    """Return the claims that no two contenders' runs can be held against, with the tables."""
    tables: dict[str, list[str]] = {}
    pairs = ((c, task) for c in CLAIMS for task in c.tasks)
    for claim, task in pairs:
        result = (compare(view, claim, task, how, m) for how in HOW for m in METRICS)
        if not any(f.verdicts for f in result):
            tables.setdefault(claim.words, []).append(view.title(task))
    return "; ".join(f"{words} ({', '.join(of)})" for words, of in tables.items())
