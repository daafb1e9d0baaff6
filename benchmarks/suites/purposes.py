"""Coverage of regressions that are named before the run: ``--for "ols ..."`` from a file alone.

Each run learns bounds and categories under the budget, with add/remove row and delta = 1e-9, and
analyzes the release. The true coefficients are those of the real rows, computed without noise, so
nothing here may be released.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.core import library as lib
from benchmarks.core.page import Page, markdown
from benchmarks.core.process import clock, stage_seconds
from benchmarks.core.results import View
from benchmarks.core.store import Row
from benchmarks.core.suite import Cell, Contender, Places, Suite, Table, Task, kway

DELTA = 1e-9
FORMULAS = {
    "uci/adult": "`hours-per-week` ~ age + `education-num` + C(sex, Treatment('Male'))",
    "misc/diamonds": "price ~ carat + depth + C(cut, Treatment('Ideal'))",
}


def _no_codes(data: Path) -> Table:
    raise ValueError("these tables are read raw")


TASKS = {name: Task(name.split("/")[1], _no_codes, kway(3), DELTA) for name in FORMULAS}
CONTENDERS = {"named": Contender("named by --for"), "unnamed": Contender("not named")}


def cells(repeats: int | None = None) -> Iterable[Cell]:
    """Return 20 runs of the regression that is named, and 5 of one that is not."""
    for name in FORMULAS:
        for repeat in range(repeats or 20):
            yield Cell(name, "named", {}, 1.0, repeat)
        for repeat in range(repeats or 5):
            yield Cell(name, "unnamed", {}, 1.0, repeat)


def measure(cell: Cell, places: Places) -> Row:
    """Return the coefficients of one run, each with its interval and the real one."""
    formula = FORMULAS[cell.task]
    raw = pq.read_table(places.data / f"{cell.task}.parquet")
    real = lib.OLS(formula)(raw.to_pandas())
    truth = dict(zip(real.names, real.estimates, strict=True))
    purposes = [f"ols {formula}"] if cell.contender == "named" else []
    schema = lib.draft_schema(raw).confirmed()
    start = clock()
    release = lib.synthesize(
        raw, schema, epsilon=cell.budget, delta=DELTA, seed=cell.repeat, purposes=purposes
    )
    end = clock()
    found = lib.analyze(release, lib.OLS(formula), m=50, seed=cell.repeat)
    names = [n for n in found.names if n != "Intercept"]
    seconds = stage_seconds(run=(start, end))
    return {
        "coefficients": [_compared(found[n], truth.get(n), raw, formula) | {"name": n} for n in names],
        "planned": _planned(schema, purposes, cell.budget, len(raw)),
        "wall_s": seconds["run_wall_s"], "cpu_s": seconds["run_cpu_s"],
    }  # fmt: skip


def _compared(estimate: lib.Estimate, truth: float | None, raw: pa.Table, formula: str) -> Row:
    """Return whether an interval has the real coefficient, and its half-width as a plan states it."""
    low, high = estimate.conf_int()
    outcome = formula.split("~")[0].strip().strip("`")
    spread = _deviation(raw, estimate.name.removeprefix("Q('").removesuffix("')")) / _deviation(
        raw, outcome
    )
    return {
        "holds": truth is not None and bool(low <= truth <= high),
        "flagged": bool(estimate.flagged),
        "half_width": float((high - low) / 2 * spread),
    }


def _deviation(raw: pa.Table, name: str) -> float:
    """Return a number's standard deviation; 1 for what is not a column, such as a level of a factor."""
    return float(np.std(raw[name].to_numpy())) if name in raw.column_names else 1.0


def _planned(schema: lib.Schema, purposes: list[str], epsilon: float, rows: int) -> float | None:
    """Return the half-width of the widest coefficient that ``margrave plan`` states."""
    if not purposes:
        return None
    run = lib.Run(
        schema=schema, budget=lib.Budget.approx(epsilon, DELTA, threshold_delta=DELTA / 10), unit=lib.AddRemoveRow(),
        mechanism=lib.AIM(), purposes=tuple(purposes),
    )  # fmt: skip
    made = run.plan(rows)
    return made.purposes[0].half_width


def page(view: View) -> Page:
    """Return coverage and widths by table and contender."""
    body = []
    for (task, contender), rows in view.groups("task", "contender").items():
        found = [c for r in rows for c in r["coefficients"]]
        every = [c for c in found if not math.isnan(c["half_width"])]
        plain = [c for c in every if not c["flagged"]]
        widest = [np.nanmax([c["half_width"] for c in r["coefficients"]]) for r in rows]
        planned = [r["planned"] for r in rows if r.get("planned") is not None]
        body.append((
            TASKS[task].title, CONTENDERS[contender].label, len(rows), len(every), len(found) - len(every),
            f"{sum(c['flagged'] for c in every) / len(every):.2f}",
            f"{sum(c['holds'] for c in every) / len(every):.2f}",
            f"{sum(c['holds'] for c in plain) / len(plain):.2f}" if plain else "",
            f"{statistics.fmean(widest):.3f}", f"{planned[0]:.3f}" if planned else "",
            f"{statistics.fmean(r['cpu_s'] for r in rows):.0f}",
        ))  # fmt: skip
    head = (
        "table", "regression", "runs", "coefficients", "without an interval", "marked", "intervals hold", "of unmarked",
        "widest half-width, sd", "planned", "CPU, s",
    )  # fmt: skip
    return Page({"purposes": markdown(head, body)})


SUITE = Suite(TASKS, CONTENDERS, cells, measure, page, document="learning")
