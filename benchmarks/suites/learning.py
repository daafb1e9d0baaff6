"""Numbers of releases made from a file alone: learned columns on real tables.

Each run is ``synthesize --accept-draft`` with delta = 1e-9: bounds, bins and categories are learned under the
budget. True means and deciles are computed without noise, so nothing here may be released.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.core import library as lib
from benchmarks.core.process import clock, stage_seconds
from benchmarks.core.store import Row
from benchmarks.core.suite import Cell, Contender, Places, Suite, Table, Task, kway
from benchmarks.suites._learned_columns import measured
from benchmarks.suites._learned_release import figures
from benchmarks.suites._learning_page import page

DELTA = 1e-9
RELEASED = {
    "misc/diamonds": "diamonds", "uci/bank_full": "bank_full",
    "acs/acs_income_2018_us_100k": "acs income", "misc/nycflights13": "nycflights13",
    "uci/credit_default": "credit default", "misc/stroke_kaggle": "stroke",
    "misc/lendingclub_10k": "lending club", "misc/kddcup99": "kddcup99",
}  # fmt: skip
PERSONS = {"uci/diabetes130": ("diabetes130", "patient_nbr", lib.AddRemovePerson(5))}
COLUMNS_ALONE = {
    "uci/adult": "adult", "uci/bank_additional_full": "bank_additional_full", "misc/cps_hdmm": "cps",
    "uci/online_shoppers": "online shoppers", "misc/compas_two_years": "compas", "uci/german_credit": "german credit",
}  # fmt: skip
LONG = ("misc/lendingclub_10k", "misc/kddcup99")
RUNS = 5


def _no_codes(data: Path) -> Table:
    raise ValueError("these tables are read raw")


TASKS = {
    **{n: Task(t, _no_codes, kway(3), DELTA) for n, t in {**RELEASED, **COLUMNS_ALONE}.items()},
    **{
        name: Task(title, _no_codes, kway(3), DELTA, unit, facts={"person": person})
        for name, (title, person, unit) in PERSONS.items()
    },
}
CONTENDERS = {
    "draft": Contender("accepted draft"),
    "columns": Contender("columns alone"),
    "given": Contender("draft against learned schema"),
}


def cells(repeats: int | None = None) -> Iterable[Cell]:
    """Return columns alone, releases of each table, and their times, at epsilon 1 and 3; the long ones last."""
    runs = repeats or RUNS
    short = [name for name in (*RELEASED, *PERSONS) if name not in LONG]
    for epsilon in (1.0, 3.0):
        for name in (*RELEASED, *COLUMNS_ALONE):
            yield from (Cell(name, "columns", {}, epsilon, r) for r in range(runs))
    for epsilon in (1.0, 3.0):
        for repeat in range(runs):
            yield from (Cell(name, "draft", {}, epsilon, repeat) for name in short)
    yield from (Cell(n, "given", {}, 1.0, r) for r in range(min(runs, 3)) for n in short)
    for epsilon in (1.0, 3.0):
        yield from (Cell(name, "draft", {}, epsilon, 0, "long") for name in LONG)


def measure(cell: Cell, places: Places) -> Row:
    """Return the figures of one run."""
    raw = pq.read_table(places.data / f"{cell.task}.parquet")
    schema = _accepted(raw, TASKS[cell.task].facts.get("person"))
    if cell.contender == "columns":
        return measured(raw, schema, cell.budget, DELTA, cell.repeat)
    if cell.contender == "given":
        return _times(cell, raw, schema)
    start = clock()
    release = _synthesized(cell, raw, schema)
    seconds = stage_seconds(run=(start, clock()))
    drawn = release.sample(len(raw), seed=cell.repeat)
    own = figures(raw, release, drawn, list(schema.to_learn))
    return own | {"wall_s": seconds["run_wall_s"], "cpu_s": seconds["run_cpu_s"]}


def _accepted(raw: pa.Table, person: str | None) -> lib.Schema:
    """Return the accepted draft, with a column that identifies persons if one is named."""
    drafted = lib.draft_schema(raw).confirmed()
    if person is None:
        return drafted
    return replace(
        drafted, columns=[c for c in drafted.columns if c.name != person], person=person,
        ignore=[n for n in drafted.ignore if n != person],
        sources={n: s for n, s in drafted.sources.items() if n != person},
    )  # fmt: skip


def _synthesized(cell: Cell, raw: pa.Table, schema: lib.Schema) -> lib.Release:
    return lib.synthesize(
        raw, schema, epsilon=cell.budget, delta=DELTA, seed=cell.repeat, unlearnable="drop",
        unit=TASKS[cell.task].unit if schema.person else None, progress=False,
    )  # fmt: skip


def _times(cell: Cell, raw: pa.Table, schema: lib.Schema) -> Row:
    """Return the seconds of a run that learns its columns, and of one with what the first run learned.

    The first run, which compiles, is not timed.
    """
    learned = _synthesized(cell, raw, schema).schema
    found = []
    for own in (schema, learned):
        start = clock()
        _synthesized(cell, raw, own)
        found.append(clock()[1] - start[1])
    return {"rows": len(raw), "draft_cpu_s": found[0], "given_cpu_s": found[1]}


SUITE = Suite(TASKS, CONTENDERS, cells, measure, page, document="learning")
