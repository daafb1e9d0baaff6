"""How time and memory of a whole call grow with the number of rows, and whether the dry run said so before.

``python -m tests.support.scale 1000000`` writes a Parquet file of so many rows to a temporary folder, and
synthesizes it in a
process of its own. Printed as JSON: the processor time and the largest memory of that process, the memory that
``margrave plan`` names, and the size of the table in memory.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import margrave
from margrave import AddRemoveRow, Budget
from margrave.mechanisms import MST
from margrave.planning import plan_of
from margrave.schema import Boolean, Categorical, Integer, Real, Schema

SCHEMA = Schema(
    (
        *(Integer(f"count{i}", 0, 99, bins=20, outside="clip") for i in range(4)),
        *(Real(f"amount{i}", 0.0, 1000.0, bins=16, missing=True) for i in range(4)),
        *(Categorical(f"kind{i}", [f"kind {k}" for k in range(12)], other=True) for i in range(4)),
        *(Boolean(f"flag{i}", missing=True) for i in range(3)),
    )
)
BATCH = 250_000
BUDGET = Budget.approx(1.0, 1e-9)


def write(path: Path, rows: int) -> float:
    """A made-up table with columns that hang together; its size in memory, in MB."""
    rng, size, writer = np.random.default_rng(rows), 0, None
    for start in range(0, rows, BATCH):
        many = min(BATCH, rows - start)
        level = rng.integers(100, size=many)
        columns: dict[str, Any] = {}
        for i in range(4):
            columns[f"count{i}"] = (level + rng.integers(30, size=many)) % 120
            columns[f"amount{i}"] = pa.array(
                level * 10.0 + rng.normal(size=many), mask=rng.random(many) < 0.05
            )
            words = np.array([f"kind {k}" for k in range(15)])
            columns[f"kind{i}"] = words[(level // 8 + rng.integers(3, size=many)) % 15]
            if i < 3:
                columns[f"flag{i}"] = pa.array(level > 50 + 10 * i, mask=rng.random(many) < 0.1)
        batch = pa.table(columns)
        size += batch.nbytes
        writer = writer or pq.ParquetWriter(path, batch.schema)
        writer.write_table(batch)
    if writer is not None:
        writer.close()
    return size / 2**20


def synthesize(path: Path) -> dict[str, float]:
    """What the whole call takes, in this process."""
    start = time.process_time()
    margrave.synthesize(path, SCHEMA, epsilon=BUDGET.epsilon, delta=BUDGET.delta, mechanism=MST())
    return {"cpu_s": time.process_time() - start, "peak_mb": peak_mb()}


def peak_mb() -> float:
    """The largest memory of this process. What ``getrusage`` says is not it: that begins with the parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        (peak,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2 ** (
        20 if sys.platform == "darwin" else 10
    )


def measured(rows: int) -> dict[str, float]:
    """One size: figures of a process that did nothing else, what the dry run says, and the table's size."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        data_mb = write(path, rows)
        command = [sys.executable, __file__, "--child", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = plan_of(SCHEMA.domain, MST(), budget=BUDGET, unit=AddRemoveRow(), rows=rows)
    return {
        "rows": rows,
        "data_mb": data_mb,
        "planned_mb": said.memory_mb,
        **json.loads(done.stdout),
    }


if __name__ == "__main__":
    found = (
        synthesize(Path(sys.argv[2])) if sys.argv[1] == "--child" else measured(int(sys.argv[1]))
    )
    print(json.dumps(found))  # noqa: T201
