"""AIM on aim/fire with and without structural zeros (McKenna et al. 2022, Appendix D): error, and rows in zeros.

    python benchmarks/zeros.py [--epsilon E] [--repeats N] [--data DIR] [--output FILE]

The codes of aim/fire have no public documentation of what they stand for, so the allowed combinations below are READ
FROM THE ROWS of the full table. They stand in for declarations that a custodian would make from public knowledge (which
zip codes a city has). This is for the benchmark only: constraints mined from rows are not private, and a release made
so must not be published.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import measure
import numpy as np
import prepare
import score
from run import default_data
from tasks import DELTA, MODEL_MB

from margrave import AIM, AddRemoveRow, Budget, MemoryTable, Release, Schema, Workload, protect
from margrave.schema import Allowed, Codes

PAIRS = (
    ("City", "Zipcode of Incident"),
    ("Neighborhooods - Analysis Boundaries", "Zipcode of Incident"),
    ("Neighborhooods - Analysis Boundaries", "Supervisor District"),
    ("Neighborhooods - Analysis Boundaries", "Station Area"),
    ("Neighborhooods - Analysis Boundaries", "Battalion"),
    ("Neighborhooods - Analysis Boundaries", "Fire Prevention District"),
    ("Battalion", "Station Area"),
    ("Battalion", "Fire Prevention District"),
    ("Call Type", "Call Type Group"),
)
"""Columns that describe one place, or one call, more or less finely; nine pairs, as in the paper."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, action="append", help="may be given again (default: 0.1, 1 and 10)")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--variant", nargs="+", choices=["plain", "zeros"], default=["plain", "zeros"])
    parser.add_argument("--data", type=Path, default=default_data(), help="default: $MARGRAVE_DATA, or ../shared/data")
    parser.add_argument("--output", type=Path, help="append one JSON line a run to this file")
    options = parser.parse_args()
    table = options.data / "aim" / "fire.parquet"
    sizes = prepare.read_sizes(table.with_suffix(".schema.json"))
    codes = prepare.read_codes(table, list(sizes))
    plain = Schema.coded(sizes)
    declared = Schema(plain.columns, constraints=[seen(codes, list(sizes), pair) for pair in PAIRS])
    ruled_out = sum(int((~z.possible).sum()) for z in declared.domain.zeros)
    print(f"{len(PAIRS)} pairs, {ruled_out} combinations that do not occur (mined: for the benchmark only)")
    for epsilon in options.epsilon or (0.1, 1.0, 10.0):
        for repeat in range(options.repeats):
            for name in options.variant:
                line = run(plain if name == "plain" else declared, declared, codes, epsilon)
                line = {"variant": name, "epsilon": epsilon, "repeat": repeat, "impossible": ruled_out, **line}
                print(json.dumps(line), flush=True)
                if options.output:
                    with options.output.open("a") as file:
                        file.write(json.dumps(line) + "\n")
    return 0


def seen(codes: prepare.Codes, names: list[str], pair: tuple[str, str]) -> Allowed:
    """The combinations of two columns that rows have. Not private: see above."""
    rows = np.unique(codes[[names.index(c) for c in pair]], axis=1).T
    return Allowed(list(pair), rows.tolist())


def run(schema: Schema, declared: Schema, codes: prepare.Codes, epsilon: float) -> dict[str, Any]:
    """One release: its workload error on as many records as the table has, and how many of them are impossible."""
    real = Codes(schema.domain, codes)
    mechanism = AIM(workload=Workload.all_kway(schema.domain, 3), max_model_mb=MODEL_MB)
    start, cpu = time.perf_counter(), time.process_time()
    budget = Budget.approx(epsilon, DELTA)
    with protect(MemoryTable(schema, real), unit=AddRemoveRow(), budget=budget) as private:
        release: Release = mechanism.run(private)
    wall_s, cpu_s = time.perf_counter() - start, time.process_time() - cpu
    drawn = release.model.sample(codes.shape[1], rng=np.random.default_rng(0))
    records = drawn.values.astype(np.int64)
    violating = np.zeros(len(drawn), dtype=bool)
    for zeros in declared.domain.zeros:
        violating |= ~zeros.possible[tuple(drawn.column(a) for a in zeros.clique)]
    error = score.workload_error(codes, records, list(schema.domain.sizes), 3)
    if not math.isfinite(error):
        raise ValueError("the error is not a number")
    return {
        "error": error,
        "violating_rows": int(violating.sum()),
        "rows": len(drawn),
        "measured": len(release.transcript.measurements),
        "wall_s": round(wall_s, 2),
        "cpu_s": round(cpu_s, 2),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": measure.machine(),
    }


if __name__ == "__main__":
    sys.exit(main())
