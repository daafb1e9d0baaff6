"""Tables of 30 to 300 columns: error, seconds and memory, and what the plan says of them."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.core import library as lib
from benchmarks.core.page import Page, markdown
from benchmarks.core.process import run
from benchmarks.core.results import View
from benchmarks.core.store import Row
from benchmarks.core.suite import HERE, Cell, Contender, Places, Suite, Table, Task, kway
from benchmarks.core.tables import codes_of, read_codes
from benchmarks.suites._wide_job import DELTA, EPSILON, MECHANISMS

SOURCES, WIDTHS = ("misc/fars", "misc/lendingclub_10k"), (30, 50, 100, 200, 300)
#: A column of more values has bins of equally many rows, or its most frequent values and the rest.
MAX_CODES, BINS = 100, 32
DRAWN_ANEW, SEED, TRIPLES = 0.1, 0, 1500


def widened(data: Path, name: str, width: int) -> Table:
    """Return the first columns of a table, then noisy copies of them in turn."""
    stored = pq.read_table(data / f"{name}.parquet")
    rng = np.random.default_rng(SEED)
    kept = [_codes(column.combine_chunks()) for column in stored.columns]
    columns = {}
    for i in range(width):
        codes = kept[i % len(kept)]
        if i >= len(kept):
            anew = rng.random(len(codes)) < DRAWN_ANEW
            codes = np.where(anew, rng.permutation(codes), codes)
        columns[f"c{i}"] = codes
    sizes = {a: int(kept[i % len(kept)].max()) + 1 for i, a in enumerate(columns)}
    return Table(codes_of(sizes, [*columns.values()]))


def _codes(column: pa.Array) -> NDArray[np.int64]:
    """Return ranks of values, missing ones last; of many values, ranks of bins or of the most frequent."""
    ranked = column.dictionary_encode()
    order = pc.array_sort_indices(ranked.dictionary).to_numpy()
    rank = np.argsort(order)
    missing = column.is_null().to_numpy(zero_copy_only=False)
    codes = rank[ranked.indices.fill_null(0).to_numpy()]
    if len(order) > MAX_CODES:
        counts = np.bincount(codes[~missing], minlength=len(order))
        if pa.types.is_string(column.type):
            frequent = np.argsort(np.argsort(-counts, kind="stable"))
            codes = np.minimum(frequent, BINS - 1)[codes]
        else:
            before = np.cumsum(counts) - counts
            codes = np.unique(before * BINS // counts.sum(), return_inverse=True)[1][codes]
    return np.where(missing, codes.max() + 1, codes)


TASKS = {
    f"{name.split('/')[1]}-{width}": Task(
        f"{name}, {width} columns", partial(widened, name=name, width=width), kway(3), DELTA
    )
    for name in SOURCES
    for width in WIDTHS
}
CONTENDERS = {
    "forests": Contender("Forests"),
    "mst": Contender("MST"),
    "aim": Contender("AIM, 5 MB"),
}


def cells(repeats: int | None = None) -> Iterable[Cell]:
    """Return Forests and MST at every width, and AIM at the two narrowest."""
    for task in TASKS:
        narrow = int(task.rpartition("-")[2]) in WIDTHS[:2]
        for name in MECHANISMS:
            if name != "aim" or narrow:
                yield from (Cell(task, name, {}, EPSILON, r) for r in range(repeats or 1))


def measure(cell: Cell, places: Places) -> Row:
    """Return seconds and memory of one process, and the errors of its records."""
    codes = TASKS[cell.task].case(places.data).table.codes
    with tempfile.TemporaryDirectory(prefix="margrave-wide-") as folder:
        source, log = Path(folder) / "table.parquet", Path(folder) / "log"
        sizes = dict(zip(codes.domain, codes.domain.sizes, strict=True))
        table = pa.table({a: codes.column(a) for a in codes.domain})
        pq.write_table(table.replace_schema_metadata({"sizes": json.dumps(sizes)}), source)
        job = "benchmarks.suites._wide_job"
        command = [sys.executable, "-m", job, str(source), cell.contender, str(cell.repeat), folder]
        search = f"{HERE.parent / 'src'}:{HERE.parent}"
        used = run(command, log, places.timeout, PYTHONPATH=search)
        row: Row = {"wall_s": used.wall_s, "cpu_s": used.cpu_s, "peak_mb": used.peak_mb}
        if used.timed_out:
            return row | {"outcome": "timed out"}
        if used.status:
            return row | {"outcome": "failed", "why": log.read_text()[-300:]}
        row |= json.loads((Path(folder) / "facts.json").read_text())
        return row | errors(codes, read_codes(Path(folder) / "records.parquet", codes.domain))


def errors(real: lib.Codes, synthetic: lib.Codes) -> Row:
    """Return the error of all columns, and those of random pairs and triples."""
    rng, names = np.random.default_rng(SEED), real.domain.attributes
    row: Row = {"error_1way": lib.workload_error(real, synthetic, [(a,) for a in names])}
    for degree, name in ((2, "error_2way"), (3, "error")):
        drawn = [rng.choice(len(names), degree, replace=False) for _ in range(TRIPLES)]
        cliques = {tuple(names[i] for i in sorted(d)) for d in drawn}
        row[name] = lib.workload_error(real, synthetic, sorted(cliques))
    return row


def page(view: View) -> Page:
    """Return errors, seconds and memory by table and mechanism, beside those of the plan."""
    body = []
    for (task, name), rows in view.groups("task", "contender").items():
        done = [row for row in rows if row["outcome"] == "finished"]
        found = [
            f"{statistics.fmean(row[key] for row in done):{form}}" if done else ""
            for key, form in KEYS.items()
        ]
        body.append((task, CONTENDERS[name].label, len(rows), *found))
    return Page({"wide": markdown(("table", "", "runs", *KEYS), body)})


KEYS = {
    "error": ".4f", "error_2way": ".4f", "error_1way": ".4f", "cpu_s": ".0f", "planned_s": ".0f",
    "peak_mb": ",.0f", "planned_mb": ",.0f", "plan_cpu_s": ".1f", "measured": ".0f",
}  # fmt: skip
SUITE = Suite(TASKS, CONTENDERS, cells, measure, page)
