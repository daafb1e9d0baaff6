"""AIM or MST by dpmm, at its defaults but for the workload: coded table in, synthetic records out.

One JSON argument: {"mechanism", "data", "schema", "epsilon", "delta", "max_model_mb", "out"}.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from dpmm.models.aim import AIMGM
from dpmm.models.mst import MSTGM


def main() -> None:
    job = json.loads(sys.argv[1])
    frame = pq.read_table(job["data"]).to_pandas().astype(int)
    columns = json.loads(Path(job["schema"]).read_text())["columns"]
    domain = {c["name"]: int(c["domain_size"]) for c in columns}
    if job["mechanism"] == "aim":
        # its defaults would drop three-way marginals (degree 2) and marginals above 10,000 cells
        model = AIMGM(
            epsilon=job["epsilon"], delta=job["delta"], degree=3, max_cells=10**12, max_model_size=job["max_model_mb"], n_jobs=1
        )
    else:
        model = MSTGM(epsilon=job["epsilon"], delta=job["delta"], n_jobs=1)
    model.set_domain(domain)
    model.fit(frame)
    facts = {"measured": len(model.generator.cliques or [])}
    synthetic = model.generate(n_records=len(frame))
    out = Path(job["out"])
    records = pa.Table.from_pandas(synthetic[list(frame.columns)].astype("int64"), preserve_index=False)
    pq.write_table(records, out / "records.parquet")
    (out / "facts.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main()
