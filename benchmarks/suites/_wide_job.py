"""Release a wide table, and draw as many records: the process that `wide` measures."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.core import library as lib
from benchmarks.core.process import clock

EPSILON, DELTA = 1.0, 1e-9
MECHANISMS = {
    "forests": lib.Forests,
    "mst": lib.MST,
    "aim": lambda: lib.AIM(max_model_mb=5.0),
}


def main(source: str, name: str, seed: str, output: str) -> None:
    """Write the records and, beside them, seconds, memory and what was measured."""
    stored = pq.read_table(source)
    sizes = json.loads(stored.schema.metadata[b"sizes"])
    schema = lib.Schema.coded(sizes)
    mechanism = MECHANISMS[name]()
    start = clock()[1]
    budget = lib.Budget.approx(EPSILON, DELTA)
    run = lib.Run(schema=schema, budget=budget, mechanism=mechanism)
    plan = run.plan(rows=stored.num_rows)
    planned = clock()[1]
    release = lib.synthesize(source, schema, epsilon=EPSILON, delta=DELTA, mechanism=mechanism)
    released = clock()[1]
    codes = release.model.sample(stored.num_rows, rng=np.random.default_rng(int(seed)))
    facts = {
        "plan_cpu_s": planned - start, "release_cpu_s": released - planned,
        "planned_s": plan.seconds, "planned_mb": plan.memory_mb,
        "job_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
        "measured": len(release.transcript.measurements),
    }  # fmt: skip
    columns = {a: codes.column(a) for a in codes.domain}
    pq.write_table(pa.table(columns), Path(output) / "records.parquet")
    (Path(output) / "facts.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main(*sys.argv[1:])
