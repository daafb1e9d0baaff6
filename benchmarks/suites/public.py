"""Public data on the tables of the JAM-PGM paper.

The error is the mean over all three-way marginals of Σ|p_real − p_synthetic|, of records of the
release, replacing a row, delta = 1e-9, as in the paper. ``adult_100`` has public records of women
only, ``adult_025`` the private table's share of them. Of the last four tables a part is drawn off
and is public. "times" are AIM and AIMPub in turn: the mechanisms, and whole processes.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from benchmarks.core import charts
from benchmarks.core import library as lib
from benchmarks.core.page import Page
from benchmarks.core.process import clock, stage_seconds
from benchmarks.core.results import View
from benchmarks.core.store import Row
from benchmarks.core.suite import (
    DEFAULT,
    Case,
    Cell,
    Contender,
    Places,
    Suite,
    Table,
    Task,
    kway,
    recipe,
)
from benchmarks.core.tables import load_codes

EPSILONS = (0.03, 0.1, 0.31, 1.0, 3.16, 10.0)
FURTHER = ("nltcs", "br2000", "acs")
"""The paper does not have these."""
FIGURES = {
    "adult": ("adult_100", "adult_075", "adult_050", "adult_025"),
    "others": ("titanic", "salary", "fire", "taxi"),
    "further": FURTHER,
}
ROUNDS = ("gem-columns", "gem", "rap-columns", "rap")
"""One round a column beside the default, in the table of rounds alone."""
SCALE = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)

EPSILONS, RUNS, DELTA = EPSILONS, 5, 1e-9
TIMED = ("aim", "aim-pub")


def pair(private: str, public: str, data: Path) -> Table:
    """Return private and public records, each from a file."""
    return Table(load_codes(data, private), {"": as_public(load_codes(data, public))})


def draw_off(name: str, rows: int, column: str | None, data: Path) -> Table:
    """Draw public records off a table: those with code 0 in a column first, if one is named."""
    records = load_codes(data, name)
    order = np.random.default_rng(2024).permutation(len(records))
    if column is not None:
        order = order[np.argsort(records.column(column)[order] != 0, kind="stable")]
    private = records.take(np.sort(order[rows:]))
    return Table(private, {"": as_public(records.take(order[:rows]))})


def as_public(codes: lib.Codes) -> lib.PublicTable:
    """Return records as a public table."""
    return lib.PublicTable(codes, "the benchmark's public part of the table")


def _pair(title: str, private: str, public: str) -> Task:
    source = (f"jam/{private}", f"jam/{public}")
    return Task(title, lambda data: pair(*source, data), kway(3), DELTA)


def _drawn(title: str, name: str, rows: int, column: str | None = None) -> Task:
    return Task(title, lambda data: draw_off(name, rows, column, data), kway(3), DELTA)


TASKS: dict[str, Task] = {
    "adult_025": _pair("ADULT, 25 % women", "adult_priv", "adult_pub025"),
    "adult_050": _pair("ADULT, 50 % women", "adult_priv", "adult_pub050"),
    "adult_075": _pair("ADULT, 75 % women", "adult_priv", "adult_pub075"),
    "adult_100": _pair("ADULT, women only", "adult_priv", "adult_pub100"),
    "titanic": _pair("TITANIC", "titanic_priv", "titanic_pub"),
    "salary": _pair("SALARY", "salary_priv", "salary_pub"),
    "fire": _pair("FIRE", "fire_priv", "fire_pub"),
    "taxi": _drawn("NIST-TAXI", "jam/nist_taxi", 2500),  # the paper's split is lost
    "nltcs": _drawn("NLTCS", "aim/nltcs", 2157),
    "br2000": _drawn("BR2000", "privmrf/br2000", 3800, "0"),
    "acs": _drawn("ACS", "privmrf/acs", 4746, "0"),
}


def a_round_a_column(kind: Any) -> Any:
    """Return how to make a mechanism with one round per column."""
    return lambda case, setting: kind(rounds=len(case.table.codes.domain), **setting)


CONTENDERS: dict[str, Contender] = {
    "aim": Contender("AIM", ("#1f2630", "#e6e8ea"), recipe(lib.AIM)),
    "jam-pgm": Contender("JAM-PGM", ("#c4622d", "#e8925f"), recipe(lib.JAMPGM, public="")),
    "aim-pub": Contender("AIMPub", ("#17697a", "#5fb8c6"), recipe(lib.AIMPub, public="")),
    "jam-pgm-equal": Contender("JAM-PGM, equal weights", ("#a98212", "#cfae4a"),
                               recipe(lib.JAMPGM, public="", equal_weights=True)),
    "gem": Contender("GEM", ("#7a4fa3", "#b892dc"), recipe(lib.GEM)),
    "rap": Contender("RAP", ("#8a5a3b", "#c79a78"), recipe(lib.RAP)),
    "gem-pub": Contender("GEM Pub", ("#3f8f4f", "#7cc98b"), recipe(lib.GEMPub, public="")),
    "pmw-pub": Contender("PMW Pub", ("#b5366b", "#e283a9"), recipe(lib.PMWPub, public="")),
    "gem-columns": Contender("GEM, one round per column", make=a_round_a_column(lib.GEM)),
    "rap-columns": Contender("RAP, one round per column", make=a_round_a_column(lib.RAP)),
}  # fmt: skip


def cells(repeats: int | None = None) -> Iterable[Cell]:
    """Return AIM, JAM-PGM and AIMPub repeat by repeat, then the others, then the times."""
    stages = {"default": ("aim", "jam-pgm", "aim-pub"),
              "more": [c for c in CONTENDERS if c not in ("aim", "jam-pgm", "aim-pub")],
              "times": ("times",)}  # fmt: skip
    for stage, names in stages.items():
        timed = [t for t in TASKS if t not in FURTHER]
        tasks = timed if stage == "times" else list(TASKS)
        for run, task, epsilon, name in product(range(repeats or RUNS), tasks, EPSILONS, names):
            if home_of(task, name) == task:
                yield Cell(task, name, {}, epsilon, run, stage)


def measure(cell: Cell, places: Places) -> Row:
    """Return the error of one run, its seconds, and its numbers of marginals."""
    case = TASKS[cell.task].case(places.data)
    return times(case, cell) if cell.contender == "times" else one(case, cell)


def one(case: Case, cell: Cell) -> Row:
    """Return the error of a run. The repeat seeds the fits, and no noise."""
    table, start = case.table, clock()
    result, rng = case.release(CONTENDERS[cell.contender].make(case, cell.setting), cell)
    fitted = clock()
    synthetic = result.model.sample(table.n, rng=rng)
    return {
        "error": lib.workload_error(table.codes, synthetic, case.cliques),
        **stage_seconds(fit=(start, fitted), scoring=(fitted, clock())),
        "measurements": len(result.transcript.measurements),
        "public_marginals": len(result.transcript.readings),
    }


def times(case: Case, cell: Cell) -> Row:
    """Return the CPU seconds of both, one after the other: as mechanisms, and as processes."""
    runs = {name: one(case, Cell(cell.task, name, {}, cell.epsilon, cell.repeat)) for name in TIMED}
    alone = {name: row["fit_cpu_s"] for name, row in runs.items()}
    return {"alone_s": alone, "process_s": whole_processes(case, cell)}


def whole_processes(case: Case, cell: Cell) -> dict[str, float]:
    """Return CPU seconds of ``margrave synthesize``: a table is read, records are written."""
    taken: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        case.table.schema.save(f"{folder}/schema.toml")
        for name, records in (
            ("private", case.table.codes),
            ("public", case.table.publics[""].codes),
        ):
            arrays = {a: records.column(a) for a in records.domain}
            pyarrow.parquet.write_table(pyarrow.table(arrays), f"{folder}/{name}.parquet")
        options = (f"--schema {folder}/schema.toml --unit replace-row --delta {DELTA} --overwrite "
                   f"--epsilon {cell.epsilon} -o {folder}/records.parquet").split()  # fmt: skip
        extra = ["--public", f"{folder}/public.parquet", "--attestation", "a part of the table"]
        for name in TIMED:
            command = [sys.executable, "-m", "margrave", "synthesize", f"{folder}/private.parquet"]
            command += [*options, "-m", name, *(extra if name == "aim-pub" else [])]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            taken[name] = round(seconds, 2)
    return taken


# The page


def home_of(task: str, contender: str) -> str:
    """Return the task whose results count: without public data the four ADULT tables are one."""
    alone = contender in ("aim", "gem", "rap") and task.startswith("adult")
    return "adult_025" if alone else task


def mean(rows: Sequence[Row], column: str = "error") -> float:
    """Return the mean of a column."""
    return float(np.mean([row[column] for row in rows]))


def at(view: View, task: str, contender: str, epsilon: float) -> list[Row]:
    """Return the runs of a contender as the library sets it, at one epsilon."""
    return view.finished(home_of(task, contender), contender, epsilon, DEFAULT)


def main_contenders(view: View) -> list[str]:
    """Return the contenders of the table of errors, and of the figures."""
    return [name for name in view.contenders if not name.endswith("-columns")]


def page(view: View) -> Page:
    """Return all tables and figures."""
    figures = {name: figure(view, FIGURES[name]) for name in FIGURES}
    links = [f"![{name}](jam/{name}.svg)" for name, svg in figures.items() if svg]
    tables = {
        "errors": "\n".join(errors(view)), "figures": "\n\n".join(links),
        "worst": verdict(view, list(view.tasks)), "further": verdict(view, FURTHER),
        "rounds": "\n".join(by_rounds(view)),
        "times": longer(view, [row for row in view.all if row["contender"] == "times"]),
    }  # fmt: skip
    return Page(tables, figures)


def errors(view: View) -> Iterator[str]:
    """Return a row for each table and epsilon: mean error, runs and CPU seconds of everyone."""
    names = [
        c for c in main_contenders(view) if any(view.rows(home_of(t, c), c) for t in view.tasks)
    ]
    yield f"| public records | ε | {' | '.join(view.label(c) for c in names)} |"
    yield "|---|---:|" + "---:|" * len(names)
    for task, epsilon in product(view.tasks, EPSILONS):
        cells = [at(view, task, c, epsilon) for c in names]
        if any(cells):
            best = min(mean(c) for c in cells if c)
            texts = " | ".join(cell(c, best) for c in cells)
            yield f"| {view.title(task)} | {epsilon:g} | {texts} |"


def cell(rows: Sequence[Row], best: float) -> str:
    """Return a mean error, in bold if it is the best."""
    if not rows:
        return ""
    text = f"{mean(rows):.3f}" if mean(rows) >= 0.02 else f"{mean(rows):.4f}"
    text = f"**{text}**" if mean(rows) == best else text
    return f"{text} ({len(rows)}; {mean(rows, 'fit_cpu_s'):.0f} s)"


def by_rounds(view: View) -> Iterator[str]:
    """Return a row wherever RAP has run on its own table: rounds and errors, beside AIM's error."""
    yield f"| table | ε | AIM | {' | '.join(view.label(c) for c in ROUNDS)} |"
    yield "|---|---:|---:|" + "---:|" * len(ROUNDS)
    for task, epsilon in product(view.tasks, EPSILONS):
        aim, *cells = (at(view, task, c, epsilon) for c in ("aim", *ROUNDS))
        if cells[-1] and home_of(task, "rap") == task:
            texts = (f"{mean(c):.4f} ({mean(c, 'measurements'):.0f})" if c else "" for c in cells)
            first = f"{mean(aim):.4f}" if aim else ""
            title = view.title(task).split(",")[0]  # none of these has public records
            yield f"| {title} | {epsilon:g} | {first} | {' | '.join(texts)} |"


def verdict(view: View, tasks: Sequence[str]) -> str:
    """Return how AIMPub compares to the better of AIM and JAM-PGM, over all settings."""
    ratios = []
    for task, epsilon in product(tasks, EPSILONS):
        aim, jam, own = (at(view, task, c, epsilon) for c in ("aim", "jam-pgm", "aim-pub"))
        if aim and jam and own:
            ratios.append((mean(own) / min(mean(aim), mean(jam)), task, epsilon))
    if not ratios:
        return "Not run yet."
    ratios.sort()
    over = [f"{view.title(t)} at ε = {e:g} ({r:.2f})" for r, t, e in reversed(ratios) if r > 1.02]
    middle = float(np.exp(np.mean([np.log(r) for r, _, _ in ratios])))
    return (
        f"Over {len(ratios)} settings AIMPub's mean error is {middle:.2f} times the smaller of AIM's and JAM-PGM's"
        f" (geometric mean; from {ratios[0][0]:.2f} to {ratios[-1][0]:.2f}). Above 1.02: {'; '.join(over) or 'none'}."
    )


def longer(view: View, rows: Sequence[Row]) -> str:
    """Return how many times as long as AIM AIMPub takes, from runs side by side."""
    kinds = {"alone_s": "AIMPub alone takes",
             "process_s": "a whole run, from its start to written rows, takes"}  # fmt: skip
    texts = (compare(view, rows, column, words) for column, words in kinds.items())
    return "\n\n".join(texts) if rows else "Not run yet."


def compare(view: View, rows: Sequence[Row], column: str, words: str) -> str:
    """Return AIMPub's CPU time over AIM's: the median, all together, and those above twice."""
    taken: dict[tuple[str, float], list[Row]] = {}
    for row in rows:
        taken.setdefault((row["task"], row["epsilon"]), []).append(row[column])
    pairs = {key: (mean(both, "aim"), mean(both, "aim-pub")) for key, both in taken.items()}
    ratios = sorted(
        (own / aim, view.title(t), e, own - aim) for (t, e), (aim, own) in pairs.items()
    )
    over = [
        f"{t} at ε = {e:g} ({r:.1f}, {s:.1f} s more)" for r, t, e, s in reversed(ratios) if r > 2
    ]
    ratio, total = float(np.median([r for r, *_ in ratios])), sum(s for *_, s in ratios)
    aim = sum(aim for aim, _ in pairs.values())
    often = sorted({len(both) for both in taken.values()})
    few = f"{often[0]} run{'s' * (often[0] > 1)}"
    runs = f"{often[0]} to {often[-1]} runs" if len(often) > 1 else few
    return (
        f"Side by side at {len(ratios)} settings, {runs} of each: {words} {ratio:.2f} times AIM's processor time in the"
        f" median, {ratios[-1][0]:.1f} times at most, and {1 + total / aim:.2f} times for all together."
        f" More than twice: {'; '.join(over) or 'none'}."
    )


def figure(view: View, tasks: Sequence[str]) -> str:
    """Return a panel for each table: error over epsilon, both axes logarithmic."""
    parts: list[str] = []
    names: dict[str, None] = {}
    ticks = {e: f"{e:g}" for e in EPSILONS}
    legend = charts.Legend.of(view.contenders)
    frames = charts.panels(len(tasks), 1060, 230, (0.025, 12), (0.05, 1.5))
    for panel, task in zip(frames, tasks, strict=True):
        series = {c: {e: at(view, task, c, e) for e in EPSILONS} for c in main_contenders(view)}
        dots = {c: {e: dot(rows) for e, rows in by.items() if rows} for c, by in series.items()}
        dots = {c: by for c, by in dots.items() if by}
        high = max((d[2] for s in dots.values() for d in s.values()), default=1.0)
        low = min((d[1] for s in dots.values() for d in s.values()), default=0.1)
        scale = [t for t in SCALE if 0.8 * low <= t <= 1.3 * high]
        framed = replace(panel, up=(0.8 * low, 1.3 * high), log=True, log_across=True)
        parts += charts.lines(legend, framed, view.title(task), dots, scale, ticks)
        names |= dict.fromkeys(dots)
    if not names:
        return ""
    return charts.picture(legend, list(names), parts, 1060, 230, "3-way error over epsilon")


def dot(rows: Sequence[Row]) -> charts.Dot:
    """Return the mean, and the least and largest run."""
    values = [row["error"] for row in rows]
    return mean(rows), min(values), max(values)


SUITE = Suite(TASKS, CONTENDERS, cells, measure, page, "jam", options=("rounds",))
