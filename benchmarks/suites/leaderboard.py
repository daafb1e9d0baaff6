"""Every mechanism on the tables, workloads and budgets of AIM's Figures 1 to 3.

The error is that of the paper: the mean over the workload of ``c_r ‖M_r(D) − M_r‖₁ / n``, of the
synthetic rows; of the answers, where a mechanism makes no rows. It is computed without noise, so
nothing here may be released.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from benchmarks.core import charts
from benchmarks.core import library as lib
from benchmarks.core.page import Page, markdown
from benchmarks.core.process import clock
from benchmarks.core.results import View
from benchmarks.core.store import Row
from benchmarks.core.suite import Case, Cell, Contender, Places, Suite, Task
from benchmarks.suites._aim import aim_task

Made = Callable[[lib.Workload], lib.Mechanism]
EPSILONS = (0.01, 0.0316, 0.1, 0.316, 1.0, 3.16, 10.0, 31.6, 100.0)
#: Mechanisms of the figures that know the workload, among which the paper's text counts the best.
AWARE = ("aim", "mwem-pgm", "rap", "gem")
#: Epsilons of the contenders that are in no figure of the paper.
FEW = (0.1, 1.0, 10.0)
WORKLOADS = {"all": "ALL-3WAY", "target": "TARGET", "skewed": "SKEWED"}


@dataclass(frozen=True)
class Place:
    """A table: its target, the largest epsilon, and the trials of a run at any epsilon below 31.6."""

    target: str
    largest: float
    trials: int


PLACES = {
    "titanic": Place("Survived", 100.0, 5),
    "nltcs": Place("eating", 100.0, 3),
    "salary": Place("annual-salary", 100.0, 2),
    "adult": Place("income>50K", 100.0, 2),
    "fire": Place("Priority", 10.0, 1),
}
TASKS: Mapping[str, Task] = {
    f"{table} {workload}": replace(
        aim_task(f"aim/{table}"), title=f"{table}, {title}", facts={"table": table}
    )
    for table in PLACES
    for workload, title in WORKLOADS.items()
}


def workload_of(task: str, domain: lib.Domain) -> lib.Workload:
    """Return the workload of a task: all triples, those with the target, or skewed draws."""
    table, kind = task.split()
    if kind == "all":
        return lib.Workload.all_kway(domain, 3)
    if kind == "target":
        return lib.Workload.around(domain, PLACES[table].target, 3)
    return lib.Workload.skewed(domain, 3)


def _authors(workload: lib.Workload) -> lib.Mechanism:
    runs = {"growing": True, "alpha": Fraction(9, 10), "max_model_mb": 25.0}
    return lib.MWEMPGM(workload=workload, measure_one_way=False, **runs)


#: The mechanisms of Figures 1 to 3, with their colors on light and dark pages.
FIGURES: Mapping[str, tuple[str, tuple[str, str], Made]] = {
    "aim": ("AIM", ("#b3261e", "#ff8a80"), lambda w: lib.AIM(workload=w)),
    "mst": ("MST", ("#1a5fb4", "#8ab4f8"), lambda w: lib.MST()),
    "mwem-pgm": ("MWEM+PGM", ("#2e7d32", "#81c995"), _authors),
    "privbayes-pgm": (
        "PrivBayes+PGM",
        ("#8d6e63", "#d7ccc8"),
        lambda w: lib.PrivBayes.as_published("McKenna"),
    ),
    "privmrf": ("PrivMRF", ("#c2185b", "#f48fb1"), lambda w: lib.PrivMRF()),
    "rap": ("RAP", ("#7b4fa3", "#c58af9"), lambda w: lib.RAP(workload=w)),
    "gem": ("GEM", ("#b26a00", "#fdd663"), lambda w: lib.GEM(workload=w)),
    "independent": ("Independent", ("#5d6672", "#9aa4af"), lambda w: lib.Independent()),
    "gaussian": (
        "Gaussian (answers)",
        ("#00796b", "#78d9cf"),
        lambda w: lib.GaussianMechanism(workload=w),
    ),
}
OTHERS: Mapping[str, tuple[str, Made]] = {
    "aim-published": ("AIM, as published", lambda w: lib.AIM.as_published(workload=w)),
    "privbayes": ("PrivBayes, defaults", lambda w: lib.PrivBayes()),
    "privbayes-published": ("PrivBayes, as published", lambda w: lib.PrivBayes.as_published()),
    "privmrf-published": ("PrivMRF, as published", lambda w: lib.PrivMRF.as_published()),
    "privsyn": ("PrivSyn", lambda w: lib.PrivSyn()),
    "privsyn-published": ("PrivSyn, as published", lambda w: lib.PrivSyn.as_published()),
    "privsyn-genetic": ("PrivSyn, genetic fit", lambda w: lib.PrivSyn(fit=lib.GeneticFit())),
    "hdmm": ("HDMM+PGM", lambda w: lib.HDMM(workload=w)),
    "residual-planner": ("ResidualPlanner (answers)", lambda w: lib.ResidualPlanner(workload=w)),
    "mwem-pgm-half": ("MWEM+PGM, defaults", lambda w: lib.MWEMPGM(workload=w)),
    "mwem-pgm-columns": (
        "MWEM+PGM, columns first, 9/10 measure",
        lambda w: lib.MWEMPGM(workload=w, alpha=Fraction(9, 10)),
    ),
    "mwem-pgm-published": (
        "MWEM+PGM, Algorithm 1",
        lambda w: lib.MWEMPGM.as_published(workload=w),
    ),
    "mwem-relaxed": (
        "MWEM + relaxed projection",
        lambda w: lib.MWEMPGM(
            workload=w, measure_one_way=False, max_model_mb=None, fit=lib.RelaxedFit()
        ),
    ),
    "aim-mixture": ("AIM with a mixture", lambda w: lib.AIMMixture(workload=w)),
    "mwem": ("MWEM", lambda w: lib.MWEM(workload=w)),
    "pep": ("PEP", lambda w: lib.PEP(workload=w)),
    "private-gsd": ("Private-GSD", lambda w: lib.PrivateGSD(workload=w)),
    "privpgd": ("PrivPGD", lambda w: lib.PrivPGD()),
    "dual-query": ("DualQuery", lambda w: lib.DualQuery(workload=w)),
    "fem": ("FEM", lambda w: lib.FEM(workload=w)),
}
CONTENDERS = {
    **{name: Contender(label, colors) for name, (label, colors, _) in FIGURES.items()},
    **{name: Contender(label) for name, (label, _) in OTHERS.items()},
    "rows": Contender("Some of the real rows, by expectation"),
}
MAKERS: Mapping[str, Made] = {name: found[-1] for name, found in {**FIGURES, **OTHERS}.items()}


def cells(repeats: int | None = None) -> Iterable[Cell]:
    """Return the runs of the figures by trial, and then those of all other mechanisms."""
    for trial in range(repeats or max(p.trials for p in PLACES.values())):
        for task in TASKS:
            place = PLACES[task.split()[0]]
            for epsilon in (e for e in EPSILONS if e <= place.largest):
                trials = repeats or (1 if epsilon > 10 else place.trials)
                if trial < trials:
                    yield from (Cell(task, name, {}, epsilon, trial, "figures") for name in FIGURES)
    yield from (Cell(task, "rows", {}, None, 0, "subsample") for task in TASKS)
    for trial in range(repeats or 1):
        for task in (f"{table} all" for table in PLACES):
            for epsilon in FEW:
                yield from (Cell(task, name, {}, epsilon, trial, "others") for name in OTHERS)


def measure(cell: Cell, places: Places) -> Row:
    """Return the error of one release, its seconds and what it measured."""
    case = TASKS[cell.task].case(places.data)
    workload = workload_of(cell.task, case.table.schema.domain)
    start = clock()[1]
    if cell.contender == "rows":
        return {"expected": _expected(case, workload), "cpu_s": round(clock()[1] - start, 1)}
    release, _ = case.release(MAKERS[cell.contender](workload), cell)
    seconds = clock()[1] - start
    return {
        "error": _error(case, release, workload),
        "cpu_s": round(seconds, 1), "measured": len(set(release.transcript.cliques)),
    }  # fmt: skip


def _error(case: Case, release: lib.Release, workload: lib.Workload) -> float:
    if isinstance(release.model, lib.Model):
        real = lib.MemoryTable(case.table.schema, case.table.codes)
        return lib.evaluate(real, release, workload).workload_error
    true = lib.count_cliques(case.table.codes, workload.cliques)
    answers = release.model.answer(workload.cliques)
    errors = [c * np.abs(true[r] - answers[r]).sum() for r, c in workload.weights.items()]
    return float(sum(errors)) / (case.table.n * sum(workload.weights.values()))


def _expected(case: Case, workload: lib.Workload) -> list[list[float]]:
    """Return shares of the table's rows, and the expected errors of so many rows drawn with replacement."""
    subsampling, weight = lib.Subsampling(case.table.n), sum(workload.weights.values())
    for r in workload.cliques:
        (counts,) = lib.count_cliques(case.table.codes, [r]).values()
        subsampling.add(counts, workload.weights[r] / weight)
    shares = np.geomspace(1e-4, 1e4, 81)
    rows = [max(1, round(share * case.table.n)) for share in shares]
    return [[k / case.table.n, subsampling.error(k)] for k in dict.fromkeys(rows)]


def page(view: View) -> Page:
    """Return both rankings, the ratios to AIM's error, the figures, and what was not run."""
    every = [(task, epsilon) for task in view.tasks for epsilon in EPSILONS]
    triples = [(f"{table} all", epsilon) for table in PLACES for epsilon in FEW]
    tables = {
        "ranking": _ranking(view, FIGURES, every), "all": _ranking(view, MAKERS, triples),
        "best": _best(view), "errors": _errors(view), "left": _left(view),
        "matching": _matching(view), "seconds": _seconds(view),
    }  # fmt: skip
    return Page(tables, {kind: _figure(view, kind) for kind in WORKLOADS})


def _mean(view: View, task: str, name: str, epsilon: float) -> float | None:
    errors = [row["error"] for row in view.finished(task, name, epsilon)]
    return statistics.fmean(errors) if errors else None


def _ranking(view: View, names: Iterable[str], settings: Iterable[tuple[str, float]]) -> str:
    """Return, by contender, the geometric mean of its error over AIM's, and how often AIM is better.

    Contenders that lack more than a fifth of the settings stand below the others.
    """
    body, settings = [], list(settings)
    for name in names:
        ratios, seconds = [], []
        for task, epsilon in settings:
            own, aim = (_mean(view, task, n, epsilon) for n in (name, "aim"))
            if own is not None and aim is not None:
                rows = view.finished(task, name, epsilon)
                seconds.append(statistics.median(row["cpu_s"] for row in rows))
                ratios.append(own / aim)
        if ratios:
            ahead = sum(r > 1 for r in ratios)
            better = "" if name == "aim" else f"{ahead} of {len(ratios)}"
            body.append((
                view.label(name), len(ratios), f"{statistics.geometric_mean(ratios):.2f}",
                f"{min(ratios):.2f} to {max(ratios):.2f}", better, f"{statistics.median(seconds):.1f}",
            ))  # fmt: skip
    most = max((line[1] for line in body), default=0)
    body.sort(key=lambda line: (line[1] < 0.8 * most, float(line[2])))
    head = ("mechanism", "settings", "error over AIM's", "range", "AIM better in", "CPU s (median)")
    return markdown(head, body)


def _best(view: View) -> str:
    """Return, by table, in how many settings AIM has the least error of the mechanisms with records."""
    eight = [name for name in FIGURES if name != "gaussian"]
    body = []
    for title, tasks in {
        **{table: [t for t in view.tasks if t.split()[0] == table] for table in PLACES},
        "all": list(view.tasks),
        "all, ALL-3WAY alone": [t for t in view.tasks if t.endswith(" all")],
    }.items():
        counts = [
            _times_first(view, tasks, names, low, high)
            for names in (AWARE, eight)
            for low, high in ((0.01, 100.0), (0.1, 10.0))
        ]
        body.append((title, *counts))
    head = (
        "table",
        "of four, all ε",
        "ε from 0.1 to 10",
        "of all eight, all ε",
        "ε from 0.1 to 10",
    )
    return markdown(head, body)


def _times_first(
    view: View, tasks: Iterable[str], names: Iterable[str], low: float, high: float
) -> str:
    """Return in how many settings AIM's mean error is the least, of those that all named have run."""
    first = []
    for task in tasks:
        for epsilon in (e for e in EPSILONS if low <= e <= high):
            errors = {name: _mean(view, task, name, epsilon) for name in names}
            found = [e for e in errors.values() if e is not None]
            if len(found) == len(errors):
                first.append(errors["aim"] == min(found))
    return f"{sum(first)} of {len(first)}" if first else ""


def _matching(view: View) -> str:
    """Return the share of the real rows with AIM's error in expectation, by table and workload (Figure 5)."""
    shares = {task: [_share(view, task, e) for e in FEW] for task in view.tasks}
    body = []
    for table in PLACES:
        cells = [" · ".join(map(_percent, shares[f"{table} {kind}"])) for kind in WORKLOADS]
        body.append((table, *cells))
    medians = []
    for kind in WORKLOADS:
        columns = zip(*(shares[f"{table} {kind}"] for table in PLACES), strict=True)
        known = [[s for s in column if s is not None] for column in columns]
        medians.append(" · ".join(_percent(statistics.median(c) if c else None) for c in known))
    return markdown(("table", *WORKLOADS.values()), [*body, ("median", *medians)])


def _seconds(view: View) -> str:
    """Return AIM's median CPU seconds on all triples, by table and epsilon (Figure 6)."""
    body = []
    for table in PLACES:
        found = [view.finished(f"{table} all", "aim", e) for e in EPSILONS]
        line = [
            f"{statistics.median(r['cpu_s'] for r in rows):.1f}" if rows else "" for rows in found
        ]
        body.append((table, *line))
    return markdown(("ε", *(f"{e:g}" for e in EPSILONS)), body)


def _share(view: View, task: str, epsilon: float) -> float | None:
    """Return the share of the rows whose expected error is AIM's, by linear interpolation of logarithms."""
    error, stored = _mean(view, task, "aim", epsilon), view.finished(task, "rows")
    if error is None or not stored:
        return None
    share, expected = np.log(np.array(stored[0]["expected"])).T
    return float(np.exp(np.interp(-np.log(error), -expected, share)))


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.2g} %" if share < 1 else f"{100 * share:.0f} %"


def _errors(view: View) -> str:
    """Return the mean errors of all contenders on all triples, at three epsilons."""
    tasks = [task for task in view.tasks if task.endswith(" all")]
    body = []
    for name, contender in view.contenders.items():
        line = []
        for task in tasks:
            found = [_mean(view, task, name, epsilon) for epsilon in FEW]
            line.append(" · ".join("–" if e is None else f"{e:.3g}" for e in found))
        if any(text.strip("· –") for text in line):
            body.append((contender.label, *line))
    return markdown(("mechanism", *(t.split()[0] for t in tasks)), body)


def _left(view: View) -> str:
    """Return what was not run, in words."""
    planned = {(c.task, c.contender, c.epsilon, c.repeat) for c in cells()}
    keys = [(r["task"], r["contender"], r.get("epsilon"), r["repeat"]) for r in view.all]
    further = sum(key not in planned for key in keys)
    failed = sum(r["outcome"] != "finished" for r in view.all)
    hours, accelerated = (
        sum(r.get("cpu_s") or 0.0 for r in rows) / 3600
        for rows in (view.all, [r for r in view.all if r.get("accelerator")])
    )
    return (
        f"{len(planned.intersection(keys)):,} of {len(planned):,} planned runs are stored, and {further:,} further"
        f" repeats ({hours:.1f} CPU hours together, {accelerated:.1f} of them beside an"
        f" accelerator); {failed} of the stored ones failed, were refused or timed out."
    )


def _figure(view: View, kind: str) -> str:
    """Return the errors of the paper's mechanisms by epsilon, a panel for each table."""
    labels = {e: f"{e:g}" for e in (0.01, 0.1, 1.0, 10.0, 100.0)}
    frames = charts.panels(len(PLACES), 1500.0, 240.0, (0.01, 100.0), (0.003, 2.0))
    parts: list[str] = []
    shown: dict[str, None] = {}
    for frame, table in zip(frames, PLACES, strict=True):
        series = {}
        for name in FIGURES:
            errors = {e: _spread(view, f"{table} {kind}", name, e) for e in EPSILONS}
            series[name] = {e: dot for e, dot in errors.items() if dot is not None}
        series = {name: dots for name, dots in series.items() if dots}
        shown |= dict.fromkeys(series)
        scaled = replace(frame, log=True, log_across=True)
        parts += charts.lines(view.legend, scaled, table, series, (0.01, 0.1, 1.0), labels)
    what = f"Workload error by epsilon, {WORKLOADS[kind]}"
    return charts.picture(view.legend, list(shown), parts, 1500.0, 240.0, what) if shown else ""


def _spread(view: View, task: str, name: str, epsilon: float) -> charts.Dot | None:
    errors = [row["error"] for row in view.finished(task, name, epsilon)]
    return (statistics.fmean(errors), min(errors), max(errors)) if errors else None


SUITE = Suite(TASKS, CONTENDERS, cells, measure, page, document="leaderboard")
