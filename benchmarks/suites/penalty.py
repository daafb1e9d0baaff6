"""AIM's penalty: all of the noise, as in the paper, against the expected projected error."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import replace

from benchmarks.core import library as lib
from benchmarks.core.page import Page, markdown
from benchmarks.core.process import clock
from benchmarks.core.results import View
from benchmarks.core.store import Row
from benchmarks.core.suite import Cell, Contender, Places, Suite, recipe
from benchmarks.suites._aim import MODEL_MB, aim_task

RUNS = 5
TASKS = {f"aim/{name}": aim_task(f"aim/{name}") for name in ("nltcs", "titanic", "salary", "adult")}
CONTENDERS = {
    penalty: Contender(
        penalty, make=recipe(lib.AIM, workload=True, max_model_mb=MODEL_MB, penalty=penalty)
    )
    for penalty in ("full", "projected")
}


def cells(repeats: int | None = None) -> Iterable[Cell]:
    """Return every table, epsilon and penalty. A repeat is a batch of runs."""
    for task in TASKS:
        for epsilon in (0.1, 1.0, 10.0):
            for repeat in range(repeats or 1):
                yield from (Cell(task, penalty, {}, epsilon, repeat) for penalty in CONTENDERS)


def measure(cell: Cell, places: Places) -> Row:
    """Return the errors of some releases, and their mean CPU seconds and rounds."""
    case, runs = TASKS[cell.task].case(places.data), int(cell.setting.get("runs", RUNS))
    real = lib.MemoryTable(case.table.schema, case.table.codes)
    mechanism, errors, seconds, rounds = CONTENDERS[cell.contender].make(case, {}), [], [], []
    for run in range(runs):
        start = clock()[1]
        one = replace(cell, repeat=cell.repeat * runs + run)
        release, _ = case.release(mechanism, one)
        seconds.append(clock()[1] - start)
        rounds.append(len(release.transcript.selections))
        errors.append(round(lib.evaluate(real, release, case.workload).workload_error, 5))
    return {
        "errors": errors, "cpu_s": round(statistics.mean(seconds), 1),
        "rounds": round(statistics.mean(rounds), 1),
    }  # fmt: skip


def page(view: View) -> Page:
    """Return mean errors of both penalties, their ratio, and their cost."""
    body = []
    for task, epsilon in view.groups("task", "epsilon"):
        two = [view.finished(task, name, epsilon) for name in CONTENDERS]
        if all(two):
            errors = [[e for row in some for e in row["errors"]] for some in two]
            full, projected = map(statistics.mean, errors)
            runs = " and ".join(dict.fromkeys(str(len(some)) for some in errors))
            cost = [
                " and ".join(f"{statistics.mean(r[what] for r in some):.{digits}f}" for some in two)
                for what, digits in (("rounds", 0), ("cpu_s", 1))
            ]
            means = (f"{full:.3g}", f"{projected:.3g}", f"{projected / full:.2f}")
            body.append((task.removeprefix("aim/"), f"{epsilon:g}", runs, *means, *cost))
    head = ("table", "epsilon", "runs", "full", "projected", "ratio", "rounds", "CPU s")
    return Page({"penalty": markdown(head, body)})


SUITE = Suite(TASKS, CONTENDERS, cells, measure, page, options=("runs",))
