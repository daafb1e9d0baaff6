"""What docs/adaptive.md cannot show yet, since nobody has run it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from benchmarks.adaptive.contenders import BY_TASK
from benchmarks.adaptive.errors import METRICS
from benchmarks.adaptive.figures import layouts
from benchmarks.adaptive.grids import grid
from benchmarks.adaptive.names import LABELS
from benchmarks.adaptive.orderings import compared, rows
from benchmarks.adaptive.summary import HOW, Results
from benchmarks.adaptive.tasks import EPSILONS, RUNS, TITLES


def missing(results: Mapping[str, Results], drawn: Collection[str], *, scaled: bool) -> str:
    """A list: tables, contenders, settings, repeats, findings, figures. Empty parts are left out."""
    parts = {
        "tables": ", ".join(TITLES[t] for t, found in results.items() if not found.lines),
        "contenders": "; ".join(filter(None, (absent(found) for found in results.values() if found.lines))),
        "the paper's grids, which *tuned* needs": "; ".join(filter(None, map(untuned, results.values()))),
        f"defaults with fewer than {RUNS} runs at each of {len(EPSILONS)} ε": few(results),
        "findings of the paper": findings(results),
        "the paper's figures": ", ".join(n[6:] for n in layouts() if n.startswith("figure") and n not in drawn),
        "speed": "" if scaled else "MWEM and PEP from 10^5 to 10^8 cells",
    }
    told = [f"- {what}: {text}" for what, text in parts.items() if text]
    return "\n".join(["Not run yet:", "", *told]) if told else "Nothing is left to run."


def absent(found: Results) -> str:
    """Contenders of a table without a line."""
    names = [LABELS[n] for n in BY_TASK[found.task] if n not in found.lines]
    return f"{TITLES[found.task]}: {' · '.join(names)}" if names else ""


def untuned(found: Results) -> str:
    """Of a table that was run, how many of the grids' settings were not."""
    names = [n for n in BY_TASK[found.task] if n in found.lines]
    options = {n: grid(n, found.task) for n in names}
    wanted = sum(map(len, options.values()))
    run = {(n, *sorted(x["setting"].items())) for n in names for x in found.finished(n) if x["setting"] in options[n]}
    left = wanted - len(run)
    return f"{TITLES[found.task]}, {'all' if not run else left} of {wanted} settings" if left else ""


def few(results: Mapping[str, Results]) -> str:
    """The tables where some contender that was run was not run five times at each epsilon."""
    short = []
    for task, found in results.items():
        made = [sum(not x["setting"] for x in found.finished(n)) for n in found.lines]
        if made and min(made) < RUNS * len(EPSILONS):
            often = f"{min(made)} to {max(made)}" if min(made) < max(made) else str(min(made))
            short.append(f"{TITLES[task]} ({often} of {RUNS * len(EPSILONS)} for each that was run)")
    return ", ".join(short)


def findings(results: Mapping[str, Results]) -> str:
    """Orderings that no two contenders' runs tell of, with the tables."""
    tables: dict[str, list[str]] = {}
    for ordering, task in rows(results):
        found = (compared(ordering, results[task], how, m) for how in HOW for m in METRICS)
        if not any(f.verdicts for f in found):
            tables.setdefault(ordering.words, []).append(TITLES[task])
    return "; ".join(f"{words} ({', '.join(of)})" for words, of in tables.items())
