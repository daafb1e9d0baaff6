"""Numbers of releases made from a file alone: learned columns on real tables.

Each run is ``synthesize --accept-draft`` with add/remove row and delta = 1e-9: bounds, bins and
categories are learned under the budget. True means and deciles are computed without noise, so
nothing here may be released.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.core import library as lib
from benchmarks.core.page import Page, markdown
from benchmarks.core.process import clock, stage_seconds
from benchmarks.core.results import View
from benchmarks.core.store import Row
from benchmarks.core.suite import Cell, Contender, Places, Suite, Table, Task, kway

DELTA = 1e-9
TABLES = {
    "misc/diamonds": "diamonds", "uci/bank_full": "bank_full",
    "acs/acs_income_2018_us_100k": "acs income", "misc/nycflights13": "nycflights13",
    "uci/credit_default": "credit default", "misc/stroke_kaggle": "stroke",
    "misc/lendingclub_10k": "lending club", "misc/kddcup99": "kddcup99",
}  # fmt: skip


def _no_codes(data: Path) -> Table:
    raise ValueError("these tables are read raw")


TASKS = {name: Task(title, _no_codes, kway(3), DELTA) for name, title in TABLES.items()}
CONTENDERS = {"draft": Contender("accepted draft")}


def cells(repeats: int | None = None) -> Iterable[Cell]:
    """Return two runs of each table at epsilon 1 and 3, the tables of fewer columns first."""
    for epsilon in (1.0, 3.0):
        for repeat in range(repeats or 2):
            yield from (Cell(name, "draft", {}, epsilon, repeat) for name in TABLES)


def measure(cell: Cell, places: Places) -> Row:
    """Return one row of figures per number of a table."""
    raw = pq.read_table(places.data / f"{cell.task}.parquet")
    start = clock()
    schema = lib.draft_schema(raw).confirmed()
    release = lib.synthesize(
        raw, schema, epsilon=cell.budget, delta=DELTA, seed=cell.repeat, unlearnable="drop"
    )
    end = clock()
    means = {n["column"]: n for n in release.numbers().to_pylist() if n["statistic"] == "mean"}
    drawn = release.sample(len(raw), seed=cell.repeat)
    numbers = [c.name for c in schema.to_learn if c.of in ("integer", "real")]
    seconds = stage_seconds(run=(start, end))
    figures = [
        {"column": name, **_figures(raw[name], drawn[name], means[name])}
        for name in numbers
        if name in means
    ]
    return {
        "rows": len(raw), "numbers": figures, "unlearned": len(numbers) - len(figures),
        "cells": [_of_cells(raw, drawn, name, release) for name in _open(schema, means, drawn)],
        "wall_s": seconds["run_wall_s"], "cpu_s": seconds["run_cpu_s"],
    }  # fmt: skip


def _figures(real: Any, drawn: Any, stated: dict[str, Any]) -> Row:
    """Compare one column: its mean, its deciles, and what the release says of the mean."""
    values, own = (_floats(c) for c in (real, drawn))
    mean, sd = float(values.mean()), float(values.std())
    tolerance = 0.05 * (sd if abs(mean) > 3 * sd else max(sd, abs(mean)))
    edges = np.unique(np.quantile(values, np.linspace(0.1, 0.9, 9)))
    shares = [
        np.bincount(np.searchsorted(edges, v, "right"), minlength=len(edges) + 1) / len(v)
        for v in (values, own)
    ]
    return {
        "within": bool(abs(own.mean() - mean) <= tolerance),
        "reliable": bool(stated["reliable"]),
        "holds": bool(stated["low"] <= mean <= stated["high"]),
        "error_sd": float(abs(own.mean() - mean) / max(sd, 1e-300)),
        "deciles": float(np.abs(shares[0] - shares[1]).sum() / 2),
    }


def _floats(column: Any) -> np.ndarray:
    values = np.array([float(v) for v in column.drop_null().to_pylist()])
    return values[np.isfinite(values)] if len(values) else np.zeros(1)


def _open(schema: lib.Schema, means: dict[str, Any], drawn: Any) -> Sequence[str]:
    return [c.name for c in schema.to_learn if c.name in drawn.column_names]


def _of_cells(raw: Any, drawn: Any, name: str, release: lib.Release) -> Row:
    """Return the error of the share of missing values, and whether there are any."""
    true = raw[name].null_count / len(raw)
    return {"column": name, "missing": true, "error": drawn[name].null_count / len(drawn) - true}


def page(view: View) -> Page:
    """Return the figures of all tables by epsilon."""
    body = []
    for (epsilon, task), rows in view.groups("epsilon", "task").items():
        # without columns of one value, which have no deviation to compare with
        found = [n for r in rows for n in r["numbers"] if n["error_sd"] < 1e6]
        empty = [c["error"] for r in rows for c in r["cells"] if c["missing"] == 0]
        reliable = [n for n in found if n["reliable"]]
        held = [n["holds"] for n in reliable]
        body.append((
            f"{epsilon:g}", TABLES[task], f"{rows[0]['rows']:,}", len(rows), len(found),
            sum(r["unlearned"] for r in rows), _share(n["within"] for n in found),
            _share(n["reliable"] for n in found), _share(n["holds"] for n in found), _share(held),
            sum(not n["within"] for n in reliable),
            f"{statistics.fmean(n['error_sd'] for n in found):.3f}" if found else "",
            f"{statistics.fmean(n['deciles'] for n in found):.3f}" if found else "",
            _share(abs(e) <= 0.0005 for e in empty),
            f"{statistics.fmean(r['cpu_s'] for r in rows):.0f}",
        ))  # fmt: skip
    head = (
        "ε", "table", "rows", "runs", "numbers", "not learned", "synthetic mean within tolerance",
        "marked reliable", "intervals hold", "of reliable", "reliable and outside", "error, sd",
        "TV of deciles", "no missing made", "CPU, s",
    )  # fmt: skip
    return Page({"learning": markdown(head, body)})


def _share(flags: Iterable[bool]) -> str:
    listed = list(flags)
    return f"{sum(listed) / len(listed):.2f}" if listed else ""


SUITE = Suite(TASKS, CONTENDERS, cells, measure, page, document="learning")
