"""What AIM's penalty does: all of the noise, as in the paper, against the noise that survives.

    python benchmarks/penalty.py aim/salary --epsilon 0.1 1 --runs 10 [--data DIR] [--results FILE]
    python benchmarks/penalty.py --table

All three-way marginals, 80 MB, delta 1e-9, add or remove one row; one JSON line for a table, an epsilon and a penalty.
The error is the mean over the workload of Σ|p_real − p_synthetic|, of as many records as the table has: not private.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import prepare
from environments import HERE, REPOSITORY
from run import commit_of, default_data
from tasks import DELTA, MODEL_MB

import margrave
from margrave import AIM, Schema, Workload
from margrave.evaluate import evaluate

PENALTIES = ("full", "surviving")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", help="tables, such as aim/adult")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--data", type=Path, default=default_data(), help="default: $MARGRAVE_DATA, or ../shared/data")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "penalty.jsonl")
    parser.add_argument("--table", action="store_true", help="print what is stored, and run nothing")
    options = parser.parse_args()
    if options.table:
        print(table([json.loads(line) for line in options.results.read_text(encoding="utf-8").splitlines()]))
        return
    for name in options.name:
        for epsilon in options.epsilon:
            for penalty in PENALTIES:
                line = run(options.data, name, epsilon, penalty, options.runs)
                print(json.dumps(line), flush=True)
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")


def run(data: Path, name: str, epsilon: float, penalty: str, runs: int) -> dict[str, Any]:
    """So many releases of one table: their errors, and the means of processor seconds and rounds."""
    schema = Schema.coded(prepare.read_sizes(data / f"{name}.schema.json"))
    workload = Workload.all_kway(schema.domain, 3)
    real = margrave.read_table(data / f"{name}.parquet", schema)
    mechanism = AIM(workload=workload, max_model_mb=MODEL_MB, penalty=penalty)
    errors, seconds, rounds = [], [], []
    for seed in range(runs):
        begun = time.process_time()
        release = margrave.synthesize(real, schema, epsilon=epsilon, delta=DELTA, mechanism=mechanism, seed=seed)
        seconds.append(time.process_time() - begun)
        rounds.append(len(release.transcript.selections))
        errors.append(round(evaluate(real, release, workload).workload_error, 5))
    commit, dirty = commit_of(REPOSITORY)
    return {
        "data": name,
        "epsilon": epsilon,
        "penalty": penalty,
        "errors": errors,
        "cpu_s": round(statistics.mean(seconds), 1),
        "rounds": round(statistics.mean(rounds), 1),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit,
        "dirty": dirty,
    }


def table(lines: Sequence[dict[str, Any]]) -> str:
    """Mean errors of both penalties, their ratio, and what they cost, by table and epsilon."""
    rows = ["| table | epsilon | runs | full | surviving | ratio | rounds | CPU s |", "| --- " * 8 + "|"]
    for key in dict.fromkeys((line["data"], line["epsilon"]) for line in lines):
        two = [[x for x in lines if (x["data"], x["epsilon"], x["penalty"]) == (*key, p)] for p in PENALTIES]
        if not all(two):
            continue
        errors = [[e for x in found for e in x["errors"]] for found in two]
        means = [statistics.mean(found) for found in errors]
        runs = " and ".join(dict.fromkeys(str(len(found)) for found in errors))
        cost = [
            " and ".join(f"{statistics.mean(x[what] for x in found):.{digits}f}" for found in two)
            for what, digits in (("rounds", 0), ("cpu_s", 1))
        ]
        numbers = [f"{key[1]:g}", runs, *(f"{m:.3g}" for m in means), f"{means[1] / means[0]:.2f}", *cost]
        rows.append(f"| {key[0].removeprefix('aim/')} | {' | '.join(numbers)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
