"""Do AIM's error bounds hold, and how tight are they? Runs of AIM against the true marginals, one JSON line a run.

    python benchmarks/bounds.py aim/adult --epsilon 0.1 1 10 --runs 5 [--data DIR] [--results DIR]
    python benchmarks/bounds.py --table

All three-way marginals, 80 MB, delta 1e-9, add or remove one row. Lines go to results/bounds/TABLE_epsE.jsonl; --table
prints the tables of docs/bounds.md. True errors are not private: nothing here is for a release.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import measure
import numpy as np
import prepare
from environments import HERE, REPOSITORY
from run import commit_of, default_data
from tasks import DELTA, MODEL_MB

import margrave
from margrave import AIM, Release, Schema, Table, Workload
from margrave.errors import ModelTooLargeError
from margrave.evaluate import evaluate
from margrave.models.protocol import Model
from margrave.release import Bound

Facts = dict[str, Any]
Clique = tuple[str, ...]
LEVEL = 0.95


def main() -> int:
    options = parse()
    if options.table:
        print(table(options.results))
        return 0
    for epsilon in options.epsilon:
        found = options.results / f"aim_{options.name.split('/')[-1]}_eps{epsilon:g}.jsonl"
        for seed in range(len(found.read_text().splitlines()) if found.exists() else 0, options.runs):
            line = run_once(options.name, epsilon, seed, options.data)
            append(found, line)
            print(json.dumps(line["bounds"], indent=1), flush=True)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", default="aim/adult", help="the table, such as aim/adult or aim/fire")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--runs", type=int, default=1, help="in all: those stored count")
    parser.add_argument("--data", type=Path, default=default_data(), help="default: $MARGRAVE_DATA, or ../shared/data")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "bounds")
    parser.add_argument("--table", action="store_true", help="print what is stored, and run nothing")
    return parser.parse_args()


def run_once(name: str, epsilon: float, seed: int, data: Path) -> Facts:
    """One release, its bounds in both forms, and the errors that they should cover."""
    source, described = data / f"{name}.parquet", data / f"{name}.schema.json"
    schema = Schema.coded(prepare.read_sizes(described))
    workload = Workload.all_kway(schema.domain, 3)
    started, moment = datetime.datetime.now(datetime.UTC), time.perf_counter()
    mechanism = AIM(workload=workload, max_model_mb=MODEL_MB)
    release = margrave.synthesize(source, schema, epsilon=epsilon, delta=DELTA, mechanism=mechanism, seed=seed)
    fitted = time.perf_counter()
    found = {
        "ours": release.bounds(level=LEVEL),
        "paper": release.bounds(level=LEVEL, paper=True),
        "ours, joint": release.bounds(level=LEVEL, joint=True),
    }
    bounded = time.perf_counter()
    real = margrave.read_table(source, schema)
    errors = errors_of(release.model, real, [b.clique for b in found["ours"] if b.records is not None])
    compared = evaluate(real, release, workload)
    commit, dirty = commit_of(REPOSITORY)
    return {
        "data": name,
        "epsilon": epsilon,
        "delta": DELTA,
        "seed": seed,
        "level": LEVEL,
        "date": started.isoformat(timespec="seconds"),
        "commit": commit,
        "dirty": dirty,
        "machine": measure.machine(),
        "version": margrave.__version__,
        "rounds": len(release.transcript.selections),
        "rows": real.rows(),
        "release_s": round(fitted - moment, 3),
        "bounds_s": round((bounded - fitted) / len(found), 3),
        "workload_error": round(compared.workload_error, 5),
        "matching_share": compared.matching_share,
        "bounds": {form: judged(bounds, errors, real.rows()) for form, bounds in found.items()},
        "alike": alike(found["ours"], found["paper"], errors, real.rows()),
        "intervals": intervals(release, real, [b.clique for b in found["ours"] if b.supported]),
    }


def errors_of(model: Model, real: Table, cliques: Sequence[Clique]) -> dict[Clique, float]:
    """The true L1 errors of the model, in records, by its exact marginals; without those that are out of reach."""
    errors = {}
    for start in range(0, len(cliques), 64):
        batch = cliques[start : start + 64]
        true = real.count(batch)
        errors |= {c: float(np.abs(true[c] - m).sum()) for c, m in answers(model, batch).items()}
    return errors


def answers(model: Model, cliques: Sequence[Clique]) -> dict[Clique, Any]:
    """Exact marginals, in halves where they are too large together."""
    try:
        return model.answer(cliques)
    except ModelTooLargeError:
        half = len(cliques) // 2
        return answers(model, cliques[:half]) | answers(model, cliques[half:]) if half else {}


def judged(bounds: Sequence[Bound], errors: dict[Clique, float], rows: int) -> Facts:
    """Supported and unsupported: how many bounds, how many hold or say nothing, the median ratio to the error."""
    facts: Facts = {"all_hold": all(errors[b.clique] <= b.records for b in bounds if b.records and b.clique in errors)}
    for name, wanted in (("supported", True), ("unsupported", False)):
        ours = [b for b in bounds if b.supported == wanted]
        told = [(b.records, errors[b.clique]) for b in ours if b.records is not None and b.clique in errors]
        facts[name] = {
            "marginals": len(ours),
            "bounded": len(told),
            "held": sum(error <= bound for bound, error in told),
            "median_ratio": median([bound / error for bound, error in told if error > 0]),
            "median_bound": median([bound / rows for bound, _ in told]),
            "median_error": median([error / rows for _, error in told]),
            "vacuous": sum(bound >= 2 * rows for bound, _ in told),
        }
    return facts


def alike(ours: Sequence[Bound], paper: Sequence[Bound], errors: dict[Clique, float], rows: int) -> Facts:
    """Both forms on the marginals of which the paper's says something: median ratios to the error; how many looser."""
    facts: Facts = {}
    theirs = {b.clique: b.records for b in paper if b.records is not None and b.records < 2 * rows}
    for name, wanted in (("supported", True), ("unsupported", False)):
        same = [b for b in ours if b.supported == wanted and b.clique in theirs and errors.get(b.clique, 0) > 0]
        facts[name] = {
            "marginals": len(same),
            "ours": median([b.records / errors[b.clique] for b in same if b.records is not None]),
            "paper": median([theirs[b.clique] / errors[b.clique] for b in same]),
            "looser": sum(b.records is None or b.records > theirs[b.clique] * (1 + 1e-9) for b in same),
        }
    return facts


def intervals(release: Release, real: Table, cliques: Sequence[Clique]) -> Facts:
    """The share of cells inside their intervals, and of marginals with every cell inside simultaneous ones."""
    true = real.count(cliques)
    inside = cells = whole = 0
    for clique in cliques:
        alone = release.intervals(clique, level=LEVEL)
        inside += int((np.abs(alone.estimate - true[clique]) <= alone.half_width).sum())
        cells += true[clique].size
        together = release.intervals(clique, level=LEVEL, simultaneous=True)
        whole += bool((np.abs(together.estimate - true[clique]) <= together.half_width).all())
    return {"cells": cells, "inside": inside, "marginals": len(cliques), "whole": whole}


def median(values: Sequence[float]) -> float | None:
    return round(statistics.median(values), 5) if values else None


def append(path: Path, line: Facts) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        stream.write(json.dumps(line) + "\n")


def table(results: Path) -> str:
    """The tables of docs/bounds.md: shares over all runs, medians of the runs' medians."""
    rows = [
        "| table | epsilon | runs | marginals | held | bound / error, ours | the paper's | on the same, ours |"
        " the paper's | says nothing, ours | the paper's |",
        "|" + " --- |" * 11,
    ]
    inside = []
    for path in sorted(results.glob("*.jsonl")):
        lines = [json.loads(text) for text in path.read_text().splitlines()]
        name, epsilon = lines[0]["data"].split("/")[-1], f"{lines[0]['epsilon']:g}"
        rows += [_row(name, epsilon, kind, lines) for kind in ("supported", "unsupported")]
        cells, covered = (sum(line["intervals"][k] for line in lines) for k in ("cells", "inside"))
        inside.append(f"{100 * covered / cells:.1f} % ({name}, {epsilon})")
    return "\n".join([*rows, "", f"In their 95 % intervals, of the cells of supported marginals: {', '.join(inside)}."])


def _row(name: str, epsilon: str, kind: str, lines: Sequence[Facts]) -> str:
    """One kind of marginals, in all runs of a table at an epsilon."""
    ours, paper = ([line["bounds"][form][kind] for line in lines] for form in ("ours", "paper"))
    told, held = (sum(run[key] for run in ours) for key in ("bounded", "held"))
    same = [line["alike"][kind] for line in lines if line["alike"][kind]["marginals"]]
    ratios = [_middle(run["median_ratio"] for run in form) for form in (ours, paper)]
    ratios += [_middle(run[form] for run in same) for form in ("ours", "paper")]
    nothing = []
    for form in (ours, paper):
        some = sum(run["bounded"] - run["vacuous"] for run in form)
        nothing.append(f"{100 * (1 - some / sum(run['marginals'] for run in form)):.1f} %")
    marginals = f"{statistics.median(run['marginals'] for run in ours):.0f} {kind}"
    share = "all" if held == told else f"{100 * held / told:.2f} %"
    return "| " + " | ".join([name, epsilon, str(len(lines)), marginals, share, *ratios, *nothing]) + " |"


def _middle(values: Iterable[float | None]) -> str:
    found = [v for v in values if v is not None]
    return f"{statistics.median(found):.1f}" if found else ""


if __name__ == "__main__":
    sys.exit(main())
