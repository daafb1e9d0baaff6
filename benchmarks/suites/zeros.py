"""AIM on aim/fire with and without structural zeros (McKenna et al. 2022, Appendix D).

The codes of aim/fire have no public documentation, so the allowed combinations are READ FROM THE
ROWS. They stand in for what a custodian would declare from public knowledge (which zip codes a
city has). Constraints mined from rows are not private: no release may be made so.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks.core import library as lib
from benchmarks.core.page import Page, markdown
from benchmarks.core.process import clock, stage_seconds
from benchmarks.core.results import View
from benchmarks.core.store import Row
from benchmarks.core.suite import Case, Cell, Contender, Places, Suite, Table, Task, kway
from benchmarks.core.tables import load_codes
from benchmarks.suites._aim import DELTA, MODEL_MB, aim_task

NAME, _HOOD = "aim/fire", "Neighborhooods - Analysis Boundaries"
PAIRS = (
    ("City", "Zipcode of Incident"), (_HOOD, "Zipcode of Incident"), (_HOOD, "Supervisor District"),
    (_HOOD, "Station Area"), (_HOOD, "Battalion"), (_HOOD, "Fire Prevention District"),
    ("Battalion", "Station Area"), ("Battalion", "Fire Prevention District"),
    ("Call Type", "Call Type Group"),
)  # fmt: skip
"""Columns that describe one place, or one call, more or less finely; nine pairs, as in the paper."""


def declared(data: Path) -> Table:
    """Return the table with the combinations that its rows have. Not private: see above."""
    codes = load_codes(data, NAME)
    sizes = dict(zip(codes.domain, codes.domain.sizes, strict=True))
    rules = []
    for pair in PAIRS:
        rows = np.unique(np.stack([codes.column(a) for a in pair]), axis=1).T
        rules.append(lib.Allowed(list(pair), rows.tolist()))
    schema = lib.Schema(lib.Schema.coded(sizes).columns, constraints=rules)
    return Table(lib.Codes(schema.domain, codes.values), declaration=schema)


DECLARED = Task(NAME, declared, kway(3), DELTA, lib.AddRemoveRow())
TASKS = {NAME: aim_task(NAME)}
CONTENDERS = {"plain": Contender("without zeros"), "zeros": Contender("with zeros")}


def cells(repeats: int | None = None) -> Iterable[Cell]:
    """Return both variants at every epsilon."""
    for epsilon in (0.1, 1.0, 10.0):
        for repeat in range(repeats or 1):
            yield from (Cell(NAME, name, {}, epsilon, repeat) for name in CONTENDERS)


def measure(cell: Cell, places: Places) -> Row:
    """Return the error of one release, and how many of its records are impossible."""
    zeros = DECLARED.case(places.data)
    case: Case = zeros if cell.contender == "zeros" else TASKS[NAME].case(places.data)
    start, mechanism = clock(), lib.AIM(workload=case.workload, max_model_mb=MODEL_MB)
    release, _ = case.release(mechanism, cell)
    end, n = clock(), case.table.n
    drawn = release.model.sample(n, rng=np.random.default_rng(0))
    constraints, violating = zeros.table.codes.domain.zeros, np.zeros(n, dtype=bool)
    for constraint in constraints:
        at = tuple(drawn.column(a) for a in constraint.clique)
        violating |= ~constraint.possible[at]
    seconds = stage_seconds(run=(start, end))
    return {
        "impossible": sum(int((~c.possible).sum()) for c in constraints),
        "error": lib.workload_error(case.table.codes, drawn, case.cliques),
        "violating_rows": int(violating.sum()), "rows": n,
        "measurements": len(release.transcript.measurements),
        "wall_s": seconds["run_wall_s"], "cpu_s": seconds["run_cpu_s"],
    }  # fmt: skip


def page(view: View) -> Page:
    """Return mean errors and seconds of both variants by epsilon."""
    body = []
    for (epsilon, name), own in view.groups("epsilon", "contender").items():
        means = [statistics.fmean(r[k] for r in own) for k in ("error", "violating_rows", "cpu_s")]
        error, violating, seconds = means
        numbers = (f"{error:.4f}", f"{violating:.0f}", f"{seconds:.0f}")
        body.append((f"{epsilon:g}", CONTENDERS[name].label, len(own), *numbers))
    return Page({"zeros": markdown(("ε", "", "runs", "error", "rows in zeros", "CPU, s"), body)})


SUITE = Suite(TASKS, CONTENDERS, cells, measure, page)
