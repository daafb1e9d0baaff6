"""Tables larger than memory: seconds and memory of all 455 triples of 15 columns, by the number of rows."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.core.page import Page, markdown
from benchmarks.core.process import run
from benchmarks.core.results import View
from benchmarks.core.store import Row
from benchmarks.core.suite import HERE, Cell, Contender, Places, Suite, Task, kway
from benchmarks.suites._rows_job import CHECKED, COLUMNS, OPENERS, SIZES

ROWS = {"1e6": 1_000_000, "1e7": 10_000_000, "1e8": 100_000_000}
ROWS_PER_PERSON, PIECE = 10, 1_000_000


def unread(data: Path) -> None:
    """Raise an error: the process that is measured reads the table."""
    raise NotImplementedError


TASKS = {name: Task(f"{name} rows", unread, kway(3)) for name in ROWS}  # type: ignore[arg-type]
CONTENDERS = {
    "memory": Contender("in memory"),
    "batches": Contender("batch by batch"),
    "persons": Contender("batch by batch, 3 rows of each person"),
    "spark-1": Contender("Spark, one task at a time"),
    "spark-2": Contender("Spark, two tasks at a time"),
    "dask": Contender("Dask, two workers"),
    "ray": Contender("Ray, two workers"),
}
LARGE = ("batches", "spark-2")


def cells(repeats: int | None = None) -> Iterable[Cell]:
    """Return every way of counting each table; of the largest, batches and Spark alone."""
    for name in ROWS:
        for way in CONTENDERS:
            stage = "engine" if way in OPENERS else "default"
            stage = "large" if name == "1e8" else stage
            if stage != "large" or way in LARGE:
                yield from (Cell(name, way, {}, None, r, stage) for r in range(repeats or 1))


def made(rows: int, cache: Path) -> Path:
    """Return a Parquet file of dependent codes, from a fixed seed."""
    path = cache / f"rows-{rows}.parquet"
    if path.exists():
        return path
    cache.mkdir(parents=True, exist_ok=True)
    partial, rng = path.with_suffix(".partial"), np.random.default_rng(0)
    kinds = [*((c, pa.uint8()) for c in COLUMNS), ("who", pa.int64())]
    with pq.ParquetWriter(partial, pa.schema(kinds)) as writer:
        for start in range(0, rows, PIECE):
            n = min(PIECE, rows - start)
            common = rng.random(n, dtype=np.float32)
            codes = [
                ((common + rng.random(n, dtype=np.float32)) / 2 * s).astype(np.uint8) for s in SIZES
            ]
            persons = rng.integers(1, rows // ROWS_PER_PERSON + 1, n)
            writer.write_table(pa.table([*codes, persons], names=[c for c, _ in kinds]))
    partial.rename(path)
    return path


def measure(cell: Cell, places: Places) -> Row:
    """Return seconds and memory of one process, whose counts DuckDB confirms."""
    source = made(ROWS[cell.task], places.cache)
    with tempfile.TemporaryDirectory(prefix="margrave-rows-") as folder:
        out = Path(folder) / "counts.npz"
        command = [sys.executable, "-m", "benchmarks.suites._rows_job", str(source), cell.contender]
        used = run([*command, str(out)], Path(folder) / "log", places.timeout, PYTHONPATH=search())
        row: Row = {"wall_s": used.wall_s, "cpu_s": used.cpu_s, "peak_mb": used.peak_mb}
        if used.timed_out:
            return row | {"outcome": "timed out"}
        if used.status:
            return row | {"outcome": "failed", "why": (Path(folder) / "log").read_text()[-300:]}
        with np.load(out) as found:
            row |= {key: float(found[key]) for key in (*SCANS, "driver_mb")}
            row["cpu_s"] = max(used.cpu_s, float(found["total_cpu_s"]))
        return row | confirmed(source, out, cell.contender)


def search() -> str:
    """Return the folders from which the process imports."""
    return f"{HERE.parent / 'src'}:{HERE.parent}"


def confirmed(source: Path, out: Path, way: str) -> Row:
    """Return that DuckDB counts the same; with persons, that it counts as many rows."""
    with np.load(out) as found, duckdb.connect() as connection:
        for clique in CHECKED:
            counts = found["-".join(clique)]
            if way == "persons":
                query = "SELECT sum(least(n, 3)) FROM (SELECT count(*) n FROM read_parquet(?) GROUP BY who)"
                (rows,) = connection.execute(query, [str(source)]).fetchone() or (0,)
                right = counts.sum() == rows
                return {"outcome": "finished"} if right else {"outcome": "failed", "why": "rows"}
            query = f"SELECT {', '.join(clique)}, count(*) FROM read_parquet(?) GROUP BY ALL"
            expected = np.zeros_like(counts)
            for *codes, number in connection.execute(query, [str(source)]).fetchall():
                expected[tuple(codes)] = number
            if not np.array_equal(counts, expected):
                return {"outcome": "failed", "why": f"the counts of {clique} are wrong"}
    return {"outcome": "finished", "checked": len(CHECKED)}


def page(view: View) -> Page:
    """Return seconds and memory by rows and way."""
    body = [
        (task, CONTENDERS[way].label, len(own), *(least(own, key) for key in KEYS))
        for (task, way), own in view.groups("task", "contender").items()
    ]
    heads = (
        "rows",
        "",
        "runs",
        "CPU, s",
        "CPU of the scans, s",
        "wall of the scans, s",
        "peak, MB",
    )
    return Page({"rows": markdown((*heads, "the driver's peak, MB"), body)})


def least(rows: Sequence[Row], key: str) -> str:
    """Return the least of some figures."""
    found = [row[key] for row in rows if row.get(key) is not None]
    return f"{min(found):,.0f}" if found else ""


SCANS = ("scans_cpu_s", "scans_wall_s")
KEYS = ("cpu_s", *SCANS, "peak_mb", "driver_mb")
SUITE = Suite(TASKS, CONTENDERS, cells, measure, page)
