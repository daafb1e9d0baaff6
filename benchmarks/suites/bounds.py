"""Do AIM's error bounds hold, and how tight are they? AIM against the true marginals."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.core import library as lib
from benchmarks.core.page import Page, markdown
from benchmarks.core.process import clock
from benchmarks.core.results import View
from benchmarks.core.store import Row
from benchmarks.core.suite import Cell, Clique, Contender, Places, Suite
from benchmarks.suites._aim import DELTA, MODEL_MB, aim_task

LEVEL, BATCH = 0.95, 64
EPSILONS, KINDS = (0.1, 1.0, 10.0), ("supported", "unsupported")
TASKS = {f"aim/{name}": aim_task(f"aim/{name}") for name in ("adult", "fire")}
CONTENDERS = {"aim": Contender("AIM")}


def cells(repeats: int | None = None) -> Iterable[Cell]:
    """Return twenty runs for each table and epsilon."""
    for task in TASKS:
        for epsilon in EPSILONS:
            yield from (Cell(task, "aim", {}, epsilon, r) for r in range(repeats or 20))


def measure(cell: Cell, places: Places) -> Row:
    """Return the bounds of one release in three forms, against the errors they should cover."""
    case = TASKS[cell.task].case(places.data)
    mechanism = lib.AIM(workload=case.workload, max_model_mb=MODEL_MB)
    start, release = clock()[0], case.release(mechanism, cell)[0]
    fitted = clock()[0]
    forms = {"ours": {}, "paper": {"paper": True}, "ours, joint": {"joint": True}}
    results = {name: release.bounds(level=LEVEL, **options) for name, options in forms.items()}
    bounded, n = clock()[0], case.table.n
    cliques = [b.clique for b in results["ours"] if b.records is not None]
    errors = errors_of(release.model, case.table.codes, cliques)
    real = lib.MemoryTable(case.table.schema, case.table.codes)
    compare = lib.evaluate(real, release, case.workload)
    supported = [b.clique for b in results["ours"] if b.supported]
    return {
        "delta": DELTA, "level": LEVEL, "rounds": len(release.transcript.selections), "rows": n,
        "release_s": round(fitted - start, 3), "bounds_s": round((bounded - fitted) / len(results), 3),
        "workload_error": round(compare.workload_error, 5),
        "matching_share": compare.matching_share,
        "bounds": {form: judge(bounds, errors, n) for form, bounds in results.items()},
        "alike": compare_forms(results["ours"], results["paper"], errors, n),
        "intervals": intervals(release, case.table.codes, supported),
    }  # fmt: skip


def errors_of(model: lib.Model, real: lib.Codes, cliques: Sequence[Clique]) -> dict[Clique, float]:
    """Return the true L1 errors of the model, in records, of the marginals within reach."""
    errors: dict[Clique, float] = {}
    for start in range(0, len(cliques), BATCH):
        batch = cliques[start : start + BATCH]
        true, results = lib.count_cliques(real, batch), answers(model, batch)
        errors |= {c: float(np.abs(true[c] - m).sum()) for c, m in results.items()}
    return errors


def answers(model: lib.Model, cliques: Sequence[Clique]) -> Mapping[Clique, Any]:
    """Return exact marginals, in halves if they are too large together."""
    try:
        results: Mapping[Clique, Any] = model.answer(cliques)
        return results
    except lib.ModelTooLargeError:
        half = len(cliques) // 2
        if not half:
            return {}
        return {**answers(model, cliques[:half]), **answers(model, cliques[half:])}


def judge(bounds: Sequence[lib.Bound], errors: Mapping[Clique, float], rows: int) -> Row:
    """Return how many bounds there are, hold, or say nothing, and their ratios to the error."""
    pairs = {b.clique: (b.records, errors[b.clique]) for b in bounds
             if b.records is not None and b.clique in errors}  # fmt: skip
    row: Row = {"all_hold": all(error <= bound for bound, error in pairs.values() if bound)}
    for kind in KINDS:
        own = [b for b in bounds if b.supported == (kind == "supported")]
        some = [pairs[b.clique] for b in own if b.clique in pairs]
        row[kind] = {
            "marginals": len(own), "bounded": len(some),
            "held": sum(error <= bound for bound, error in some),
            "median_ratio": median([bound / error for bound, error in some if error > 0]),
            "median_bound": median([bound / rows for bound, _ in some]),
            "median_error": median([error / rows for _, error in some]),
            "vacuous": sum(bound >= 2 * rows for bound, _ in some),
        }  # fmt: skip
    return row


def compare_forms(
    ours: Sequence[lib.Bound], paper: Sequence[lib.Bound], errors: Mapping[Clique, float], rows: int
) -> Row:
    """Return both forms on the marginals that the paper's bounds, and how many are looser."""
    row: Row = {}
    theirs = {b.clique: b.records for b in paper if b.records is not None and b.records < 2 * rows}
    for kind in KINDS:
        own = [b for b in ours if b.supported == (kind == "supported")]
        same = [b for b in own if b.clique in theirs and errors.get(b.clique, 0) > 0]
        ratios = [b.records / errors[b.clique] for b in same if b.records is not None]
        looser = (b.records is None or b.records > theirs[b.clique] * (1 + 1e-9) for b in same)
        row[kind] = {
            "marginals": len(same), "ours": median(ratios), "looser": sum(looser),
            "paper": median([theirs[b.clique] / errors[b.clique] for b in same]),
        }  # fmt: skip
    return row


def intervals(release: lib.Release, real: lib.Codes, cliques: Sequence[Clique]) -> Row:
    """Return how many cells, and whole marginals, are inside their intervals."""
    true = lib.count_cliques(real, cliques)
    inside = cells = whole = 0
    for clique in cliques:
        alone = release.intervals(clique, level=LEVEL)
        inside += int((np.abs(alone.estimate - true[clique]) <= alone.half_width).sum())
        cells += true[clique].size
        all_cells = release.intervals(clique, level=LEVEL, simultaneous=True)
        whole += bool((np.abs(all_cells.estimate - true[clique]) <= all_cells.half_width).all())
    return {"cells": cells, "inside": inside, "marginals": len(cliques), "whole": whole}


def median(values: Sequence[float]) -> float | None:
    """Return the median; None without values."""
    return round(statistics.median(values), 5) if values else None


def page(view: View) -> Page:
    """Return the tables of docs/research/bounds.md: shares over all runs, medians of runs' medians."""
    body, inside = [], []
    for (task, epsilon), own in sorted(view.groups("task", "epsilon").items()):
        name = task.split("/")[-1]
        body += [(name, f"{epsilon:g}", len(own), *line(kind, own)) for kind in KINDS]
        cells, hits = (sum(row["intervals"][k] for row in own) for k in ("cells", "inside"))
        inside.append(f"{100 * hits / cells:.1f} % ({name}, {epsilon:g})")
    head = ("table", "epsilon", "runs", "marginals", "valid", "bound / error, margrave", "the paper's",
            "on the same, margrave", "the paper's", "no information, margrave", "the paper's")  # fmt: skip
    text = f"In their 95 % intervals, of the cells of supported marginals: {', '.join(inside)}."
    return Page({"bounds": markdown(head, body), "intervals": text})


def line(kind: str, rows: Sequence[Row]) -> tuple[str, ...]:
    """Return one kind of marginals, in all runs of a table at an epsilon."""
    ours, paper = ([row["bounds"][form][kind] for row in rows] for form in ("ours", "paper"))
    bounded, held = (sum(run[key] for run in ours) for key in ("bounded", "held"))
    same = [row["alike"][kind] for row in rows if row["alike"][kind]["marginals"]]
    ratios = [_middle(form, "median_ratio") for form in (ours, paper)]
    ratios += [_middle(same, form) for form in ("ours", "paper")]
    useful = [sum(run["bounded"] - run["vacuous"] for run in form) for form in (ours, paper)]
    marginals = [sum(run["marginals"] for run in form) for form in (ours, paper)]
    empty = [f"{100 * (1 - some / n):.1f} %" for some, n in zip(useful, marginals, strict=True)]
    count = f"{statistics.median(run['marginals'] for run in ours):.0f} {kind}"
    share = "all" if held == bounded else f"{100 * held / bounded:.2f} %"
    return count, share, *ratios, *empty


def _middle(runs: Sequence[Row], column: str) -> str:
    values = [run[column] for run in runs if column in run]
    return f"{statistics.median(values):.1f}" if values else ""


SUITE = Suite(TASKS, CONTENDERS, cells, measure, page)
