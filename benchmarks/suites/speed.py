"""Seconds, memory and error of the same jobs by margrave and by other libraries.

Every run is a fresh process in the library's own environment (``contenders/run_NAME.py``) with
the same table, workload and privacy, scored by the same functions. ``--set cold=true`` empties
margrave's cache of compiled kernels first.
"""

from __future__ import annotations

import hashlib
import math
import os
import statistics
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.contenders.job import (
    checksum,
    closure,
    measurement_loss,
    read_marginals,
    write_marginals,
)
from benchmarks.core import library as lib
from benchmarks.core.page import Page
from benchmarks.core.process import Job, run_job, scripts
from benchmarks.core.results import View
from benchmarks.core.store import Row
from benchmarks.core.suite import (
    Case,
    Cell,
    Contender,
    Places,
    Setting,
    Suite,
    Table,
    Task,
    kway,
    label,
)
from benchmarks.core.tables import counts, load_codes, read_codes

DELTA, MODEL_MB, SEED = 1e-9, 80, 20240601
"""The seed of the noisy marginals and of the large table: everyone gets the same."""
SIGMA = 50.0
ONE_WAY = tuple((a,) for a in range(15))
TREE = (
    (0, 5), (0, 12), (1, 6), (2, 13), (3, 4), (3, 13), (4, 6),
    (5, 7), (6, 12), (7, 9), (7, 14), (8, 13), (10, 14), (11, 14),
)  # fmt: skip
"""Columns of aim/adult: the spanning tree of largest mutual information, 4,779 cells."""
TRIPLES = (
    (0, 1, 3), (0, 1, 5), (0, 1, 14), (0, 3, 5), (0, 3, 14), (0, 5, 12),
    (0, 6, 14), (0, 9, 10), (0, 10, 14), (0, 12, 14), (1, 5, 6), (1, 6, 14),
    (1, 7, 14), (2, 3, 11), (2, 3, 13), (2, 7, 9), (2, 7, 11), (2, 7, 14),
    (2, 9, 14), (2, 11, 14), (3, 5, 7), (4, 9, 12), (5, 6, 14), (5, 9, 14),
    (5, 10, 12), (7, 9, 10), (7, 9, 14), (7, 10, 12), (8, 12, 13), (10, 12, 14),
)  # fmt: skip
"""Thirty triples taken at random within a junction tree of 10 million cells, 80 MB."""
MBI: tuple[Setting, ...] = tuple(
    {"estimator": "MirrorDescent", "iterations": n, "x64": x64, "curve": n == 1000}
    for n, x64 in ((50, False), (250, False), (1000, False), (1000, True))
)
"""Single precision is mbi's default, double its advice for large tables."""
FIT: tuple[Setting, ...] = ({}, {"steps": 16})
"""The default pulls a little towards independence; more steps come closer to least squares."""
CONTENDERS = {name: Contender(name, environment=name) for name in scripts()}


def _task(
    title: str, job: str, settings: Mapping[str, Sequence[Setting]], data: str = "aim/adult", *,
    score: str = "nothing", cliques: Sequence[Sequence[int]] = (), rows: int | None = None,
    timeout: float = 3600.0, **arguments: Any,
) -> Task:  # fmt: skip
    facts = {"job": job, "data": data, "score": score, "cliques": cliques, "rows": rows,
             "settings": settings, "timeout": timeout, "arguments": arguments}  # fmt: skip
    return Task(title, lambda folder: Table(load_codes(folder, data)), kway(3), DELTA,
                lib.AddRemoveRow(), tuple(settings), facts)  # fmt: skip


def _once(*names: str) -> dict[str, Sequence[Setting]]:
    return dict.fromkeys(names, ({},))


def _aim(data: str, epsilon: float, *peers: str, sizes: Sequence[int] = ()) -> Task:
    settings = _once("margrave", *peers)
    if sizes:
        settings["margrave"] = [{"max_model_mb": mb} for mb in sizes]
    limit = f"{sizes[0]} to {sizes[-1]} MB" if sizes else f"{MODEL_MB} MB"
    title = f"AIM on {data}, all three-way marginals, epsilon {epsilon:g}, {limit}"
    return _task(title, "aim", settings, data, score="records", epsilon=epsilon, delta=DELTA,
                 degree=3, max_model_mb=MODEL_MB, timeout=1800.0 if sizes else 3600.0)  # fmt: skip


def _gan(job: str, data: str) -> Task:
    """Return a task of a generative network alone: its errors compare with AIM's on the table."""
    name = {"dpctgan": "DP-CTGAN", "patectgan": "PATE-CTGAN"}[job]
    return _task(f"{name} on {data}, epsilon 1", job, _once("smartnoise"), data, score="records",
                 epsilon=1.0, delta=DELTA, timeout=1800.0)  # fmt: skip


_SIZES = (5, 20, 80, 320)
_BOTH, _ESTIMATORS = _once("margrave", "mbi"), {"margrave": FIT, "mbi": MBI}
TASKS: dict[str, Task] = {
    "aim_adult_eps1": _aim("aim/adult", 1.0, "dpmm", "opendp"),
    "aim_adult_eps10": _aim("aim/adult", 10.0, "dpmm", "opendp"),
    "mst_adult_eps1": _task("MST on aim/adult, epsilon 1", "mst",
                            _once("margrave", "dpmm", "opendp"), score="records", epsilon=1.0,
                            delta=DELTA),
    "dpctgan_titanic_eps1": _gan("dpctgan", "aim/titanic"),
    "patectgan_titanic_eps1": _gan("patectgan", "aim/titanic"),
    "dpctgan_adult_eps1": _gan("dpctgan", "aim/adult"),
    "aim_titanic_eps1": _aim("aim/titanic", 1.0),
    "aim_fire_eps0.1": _aim("aim/fire", 0.1),
    "aim_fire_eps1": _aim("aim/fire", 1.0),
    "aim_fire_eps10": _aim("aim/fire", 10.0),
    "capacity_fire_eps1": _aim("aim/fire", 1.0, sizes=_SIZES),
    "capacity_adult_eps10": _aim("aim/adult", 10.0, sizes=_SIZES),
    "estimation_tree": _task("fit all columns and a spanning tree of 14 pairs, noise 50",
                             "estimation", _ESTIMATORS, score="loss", cliques=ONE_WAY + TREE),
    "estimation_triples": _task("fit 30 triples in a tree of 9.9 million cells, noise 50",
                                "estimation", _ESTIMATORS, score="loss", cliques=TRIPLES),
    "count_1m": _task("all 575 marginals of up to three columns of 1,000,000 rows", "count", _BOTH,
                      score="checksum", rows=1_000_000, degree=3),
    "sample_1m": _task("1,000,000 records from a model fitted as in estimation_tree", "sample",
                       _BOTH, score="loss", cliques=ONE_WAY + TREE, rows=None, n=1_000_000),
    "import": _task("start Python and import the package", "import",
                    _once("margrave", "mbi", "dpmm", "opendp"), timeout=120.0),
    "weights": _task("a round of MWEM and PEP on 10^power cells", "weights",
                     {"margrave": [{"power": p} for p in (5, 6, 7, 8)]}),
    "particles": _task("epochs of PrivPGD's descent on all pairs of aim/adult", "particles",
                       {"margrave": [{"step": "adam"}, {"step": "transport"}], "torch": ({},)},
                       particles=100_000, epochs=4),
}  # fmt: skip


def cells(repeats: int | None = None) -> Iterable[Cell]:
    """Return every contender of every task: margrave, its parts alone, then the peers."""
    every = [
        Cell(name, who, setting, task.facts["arguments"].get("epsilon"), r, stage_of(name, who))
        for name, task in TASKS.items() for who, settings in task.facts["settings"].items()
        for setting in settings for r in range(repeats or 1)
    ]  # fmt: skip
    return sorted(every, key=lambda cell: ("default", "parts", "peers").index(cell.stage))


def stage_of(task: str, contender: str) -> str:
    """Return the stage at which a contender runs a task."""
    if contender != "margrave":
        return "peers"
    return "parts" if task in ("weights", "particles") else "default"


def measure(cell: Cell, places: Places) -> Row:
    """Return usage and score of one run in a fresh process."""
    task, load = TASKS[cell.task], os.getloadavg()
    seconds = min(places.timeout, task.facts["timeout"])
    here = Places(places.data, places.store, places.environments, places.cache, seconds)
    script, setting = scripts()[cell.contender], dict(cell.setting)
    cold = setting.pop("cold", False)
    arguments = inputs(cell, here) | setting | {"job": task.facts["job"], "seed": cell.repeat}
    with tempfile.TemporaryDirectory(prefix="margrave-bench-") as scratch:
        job = run_job(script, arguments, Path(scratch) / "out", here, cold=cold)
        row = job.facts | job.outcome
        if row["outcome"] == "finished":
            try:
                row |= scores(cell, arguments, job, here)
            except (OSError, KeyError, ValueError, lib.MargraveError) as problem:
                row |= {"outcome": "failed", "why": f"unusable output: {problem}"}
    row.pop("checksum", None)
    usage = {"wall_s": round(job.usage.wall_s, 3), "cpu_s": round(job.usage.cpu_s, 3),
             "peak_mb": round(job.usage.peak_mb, 1), "load_start": list(load),
             "load_end": list(os.getloadavg()), "timeout_s": seconds}  # fmt: skip
    return usage | row


# Inputs, from fixed seeds


def inputs(cell: Cell, places: Places) -> Row:
    """Return the arguments of a job, with the files that it reads. Some are made here."""
    facts = TASKS[cell.task].facts
    table = places.data / f"{facts['data']}.parquet"
    arguments = {**facts["arguments"], "data": str(table),
                 "schema": str(table.with_suffix(".schema.json"))}  # fmt: skip
    if "n" in arguments:
        arguments["rows"] = arguments.pop("n")
    if cell.epsilon is not None:
        arguments["epsilon"] = cell.epsilon
    if facts["rows"]:
        arguments["data"] = str(resampled(table, facts["rows"], places.cache))
    if facts["cliques"]:
        case = TASKS[cell.task].case(places.data)
        path, digest = noisy_marginals(case, facts["cliques"], places.cache)
        more = {"measurements": str(path), "measurements_sha256": digest, "sigma": SIGMA}
        arguments |= more
    if facts["job"] == "particles":
        arguments["targets"] = str(places.cache / "targets.npz")
        if cell.contender != "margrave":
            expected = {**arguments, "job": "targets"}
            run_job(scripts()["margrave"], expected, places.cache / "targets", places)
    return arguments


def noisy_marginals(case: Case, cliques: Sequence[Sequence[int]], cache: Path) -> tuple[Path, str]:
    """Return counts with rounded Gaussian noise, and their digest.

    Rounded, because the noise of a release is discrete; seeded, because every contender must get
    the same. Such noise is good for comparisons only, not for privacy.
    """
    names, rng = case.table.codes.domain.attributes, np.random.default_rng(SEED)
    named = [tuple(names[a] for a in clique) for clique in cliques]
    exact = lib.count_cliques(case.table.codes, named)
    noisy = [np.rint(exact[c] + SIGMA * rng.standard_normal(exact[c].shape)) for c in named]
    noisy = [y.astype(np.int64) for y in noisy]
    digest = hashlib.sha256(b"".join(y.tobytes() for y in noisy)).hexdigest()[:16]
    cache.mkdir(parents=True, exist_ok=True)
    write_marginals(cache / f"marginals-{digest}.npz", named, noisy)
    return cache / f"marginals-{digest}.npz", digest


def resampled(table: Path, rows: int, cache: Path) -> Path:
    """Return a file of rows drawn with replacement, with the columns' own types."""
    path = cache / f"{table.parent.name}-{table.stem}-{rows}-{SEED}.parquet"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        stored, rng = pq.read_table(table), np.random.default_rng(SEED)
        drawn = stored.take(pa.array(rng.integers(0, stored.num_rows, rows)))
        pq.write_table(drawn, path.with_suffix(".partial"))
        path.with_suffix(".partial").rename(path)
    return path


# Scores


def scores(cell: Cell, arguments: Row, job: Job, places: Places) -> Row:
    """Return the measure of quality as ``error``. A ValueError reports unusable output."""
    kind, case = TASKS[cell.task].facts["score"], TASKS[cell.task].case(places.data)
    if kind == "records":
        return record_scores(case, job.out)
    if kind == "checksum":
        return checksum_scores(case, arguments, job)
    return loss_scores(case, arguments, job.out) if kind == "loss" else {}


def record_scores(case: Case, out: Path) -> Row:
    """Return workload errors of the records, and of those drawn another way if there are."""
    row: Row = {}
    real = case.table.codes
    for path in sorted(out.glob("records*.parquet")):
        codes, suffix = read_codes(path, real.domain), path.stem.removeprefix("records")
        row[f"records{suffix}"] = len(codes)
        for degree, name in ((3, "error"), (2, "error_2way"), (1, "error_1way")):
            cliques = combinations(real.domain.attributes, degree)
            row[name + suffix] = round(lib.workload_error(real, codes, cliques), 5)
    if "error" not in row:
        raise ValueError("no records were written")
    return row


def checksum_scores(case: Case, arguments: Row, job: Job) -> Row:
    """Return an error of 0 if the counts are right."""
    codes = read_codes(Path(arguments["data"]), case.table.codes.domain)
    cliques = closure(codes.domain.attributes, arguments["degree"])
    if job.facts["checksum"] != checksum(counts(codes, clique) for clique in cliques):
        raise ValueError("the counts are wrong")
    return {"error": 0.0}


def loss_scores(case: Case, arguments: Row, out: Path) -> Row:
    """Return the loss of fitted marginals; for records, their distance from the model's."""
    cliques, fitted = read_marginals(out / "marginals.npz")
    expected, noisy = read_marginals(Path(arguments["measurements"]))
    if cliques != expected:
        raise ValueError("the fitted marginals are not those of the measurements")
    loss = measurement_loss(fitted, noisy, arguments["sigma"])
    if not math.isfinite(loss):
        raise ValueError("the fitted marginals are not finite")
    row: Row = {"error": round(loss, 3), "fitted_total": float(fitted[0].sum()),
                "measurements_sha256": arguments["measurements_sha256"]}  # fmt: skip
    if (out / "records.parquet").exists():
        codes = read_codes(out / "records.parquet", case.table.codes.domain)
        counts = lib.count_cliques(codes, cliques)
        gaps = [
            np.abs(counts[c] / len(codes) - mu.reshape(counts[c].shape) / mu.sum()).sum()
            for c, mu in zip(cliques, fitted, strict=True)
        ]
        row |= {"records": len(codes), "loss": row["error"]}
        row["error"] = round(float(np.mean(gaps)), 6)
    return row


# The table


HEADINGS = ("task", "contender", "version", "runs", "wall s", "mean", "CPU s", "CPU ratio",
            "peak MB", "error", "mean", "ratio", "rounds", "outcome")  # fmt: skip


def page(view: View) -> Page:
    """Return a line for each task, contender and setting.

    Medians, means, and ratios of medians to margrave's default (above 1: margrave takes less).
    Only margrave's runs of its last commit count, task by task.
    """
    rows = view.all
    last = {row["task"]: row["commit"] for row in rows if row["contender"] == "margrave"}
    current = [r for r in rows if r["contender"] != "margrave" or r["commit"] == last[r["task"]]]
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in current:
        groups.setdefault((row["task"], row["contender"], label(row["setting"])), []).append(row)
    body = [
        line(key, runs, groups.get((key[0], "margrave", ""), [])) for key, runs in groups.items()
    ]
    cells = [HEADINGS, tuple("---" for _ in HEADINGS), *body]
    return Page({"speed": "\n".join("| " + " | ".join(c) + " |" for c in cells)})


def line(key: tuple[str, str, str], runs: Sequence[Row], ours: Sequence[Row]) -> tuple[str, ...]:
    """Return one line. The times of runs that were stopped are lower bounds."""
    task, contender, setting = key
    bound = "≥ " if all(row["outcome"] == "timed out" for row in runs) else ""
    wall, cpu, error = (values(runs, name) for name in ("wall_s", "cpu_s", "error"))
    version = next((row["version"] for row in reversed(runs) if row.get("version")), "-")
    outcomes = dict.fromkeys(row["outcome"] for row in runs)
    counts = {o: sum(row["outcome"] == o for row in runs) for o in outcomes}
    rounds = values(runs, "rounds") or values(runs, "rounds_seen")
    return (
        task, f"{contender} {setting}".rstrip(), str(version), str(len(runs)),
        bound + number(median(wall)), bound + number(mean(wall)), bound + number(median(cpu)),
        bound + ratio(median(cpu), median(values(ours, "cpu_s"))),
        number(median(values(runs, "peak_mb"))), number(median(error)), number(mean(error)),
        ratio(median(error), median(values(ours, "error"))), number(median(rounds)),
        ", ".join(f"{n} {outcome}" for outcome, n in counts.items()),
    )  # fmt: skip


def values(runs: Iterable[Row], name: str) -> list[float]:
    """Return a column of the runs that finished; if none did, of those that were stopped."""
    rows = list(runs)
    finished = [row for row in rows if row["outcome"] == "finished"]
    stopped = [row for row in rows if row["outcome"] == "timed out"]
    return [row[name] for row in finished or stopped if name in row]


def median(numbers: Sequence[float]) -> float | None:
    """Return the median; None without values."""
    return statistics.median(numbers) if numbers else None


def mean(numbers: Sequence[float]) -> float | None:
    """Return the mean; None without values."""
    return statistics.fmean(numbers) if numbers else None


def number(value: float | None) -> str:
    """Return four digits, or all before the point."""
    return "-" if value is None else f"{value:.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def ratio(value: float | None, ours: float | None) -> str:
    """Return a value over margrave's."""
    return "-" if value is None or not ours else f"{value / ours:.3g}"


SUITE = Suite(
    TASKS, CONTENDERS, cells, measure, page, options=("cold", "max_model_mb", "particles")
)
