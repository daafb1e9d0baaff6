"""The experiments of "Privacy-preserving data release leveraging optimal transport" (2024).

Contenders are as the library sets them, with all pairs for a workload where they take one. "real"
are the private rows themselves, "bootstrap" as many of them drawn with replacement: neither is
private, nor has an epsilon.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.core import charts
from benchmarks.core import library as lib
from benchmarks.core.page import Page, markdown
from benchmarks.core.process import clock, stage_seconds
from benchmarks.core.results import View
from benchmarks.core.store import Row
from benchmarks.core.suite import Case, Cell, Contender, Places, Suite, Table, Task, kway, recipe
from benchmarks.core.tables import codes_of, columns_of

EPSILONS = (2.5, 1.0, 0.2)
ORDER = ("privpgd", "private-gsd", "mst", "aim", "gem", "rap", "privpgd-apart", "privpgd-paper")
"""Cheap ones first."""
BASE, REFERENCES = ORDER[0], ("real", "bootstrap")
METRICS = {
    "downstream": "downstream", "covariance_error": "covariance",
    "centred_covariance_error": "covariance, rows centered", "counting_error": "boxes",
    "thresholding_error": "half-spaces", "sliced_wasserstein": "SW1", "two_way_l1": "L1 of pairs",
}  # fmt: skip
"""Numerators, as in the paper's tables; the rows hold the relative errors too."""
RELATIVE = {"covariance": "covariance, relative", "counting": "boxes, relative",
            "thresholding": "half-spaces, relative"}  # fmt: skip
CUT = 4.0
"""Ratios beyond 2^4 are drawn at the edge, as in the paper."""
NEAR = 1.25
"""Ratios to the paper's number up to which ours is near enough."""
WIDTH, HEIGHT, TOP, ROW, TICKS = 1060.0, 200.0, 64.0, 284.0, (-4, -2, 0, 2, 4)
_FIRST = ("downstream", "centred_covariance_error", "counting_error", "thresholding_error")
KINDS = {"queries": _FIRST, "pairs": ("sliced_wasserstein", "two_way_l1")}
FIGURES = {f"{kind}-{e:g}": (KINDS[kind], e) for e in EPSILONS for kind in KINDS}
"""Figures 1, 4 and 5 of the paper, and 2, 6 and 7."""

PAPER = tomllib.loads(Path(__file__).with_name("privpgd_paper.toml").read_text(encoding="utf-8"))
PAPERS_NAME = {"diabetes": "Diab.", "diabetes7": "Diab.", "acs": "Inc."}
"""The paper's tables that ours stand for."""
AS_LARGE = ("diabetes", "diabetes7")
"""The tables with the paper's number of rows: noise has the same weight."""

BINS = 32
"""The largest number of codes of a column."""
RUNS, DELTA = 5, 1e-5
SEED = 2024
"""Of the split of the rows, which is the same in every run. It is public."""


# Tables: codes by the paper's rule, a target, and four fifths of the rows private


def read(name: str, without: Sequence[str], data: Path) -> Table:
    """Return a table in bins. Rows in which anything is missing are left out, as in the paper."""
    table = pq.read_table(data / f"{name}.parquet").drop_columns(list(without))
    whole = np.all([np.asarray(column.is_valid()) for column in table.columns], axis=0)
    columns, complete = columns_of(data, name), table.filter(pa.array(whole))
    to_bins = {a: column_codes(complete[a], columns[a]) for a in complete.column_names}
    codes = codes_of(
        {a: size for a, (_, size) in to_bins.items()}, [c for c, _ in to_bins.values()]
    )
    order, cut = np.random.default_rng(SEED).permutation(len(codes)), len(codes) * 4 // 5
    private, test = (codes.take(np.sort(part)) for part in (order[:cut], order[cut:]))
    target = json.loads((data / f"{name}.schema.json").read_text())["target"]
    return Table(private, test=test, target=target)


def column_codes(values: pa.ChunkedArray, column: Mapping[str, Any]) -> tuple[NDArray[Any], int]:
    """Return a column's codes, and how many: codes as they are, numbers in bins, names in order."""
    if column["type"] == "coded":
        size = int(column["domain_size"])
        return to_groups(np.asarray(values, dtype=np.int64), size), min(size, BINS)
    if column["type"] in ("integer", "float"):
        numbers, whole = np.asarray(values, dtype=np.float64), column["type"] == "integer"
        return to_bins(numbers, column["min"], column["max"], whole=whole)
    return named(values, column.get("categories"))


def to_bins(
    values: NDArray[np.float64], low: float, high: float, *, whole: bool
) -> tuple[NDArray[np.int64], int]:
    """Return equal bins of the range. Whole numbers of a short range keep a code each."""
    if whole and high - low < BINS:
        return (values - low).astype(np.int64), int(high - low) + 1
    at = np.floor((values - low) / (high - low) * BINS).astype(np.int64)
    if at.min(initial=0) < 0 or at.max(initial=0) > BINS:
        raise ValueError("a column holds values outside the range of its schema file")
    return np.minimum(at, BINS - 1), BINS


def named(values: pa.ChunkedArray, categories: Sequence[Any] | None) -> tuple[NDArray[Any], int]:
    """Return places among the categories, in groups; without a list, among the sorted values."""
    texts = values.to_pylist()
    order = sorted(set(texts)) if categories is None else list(categories)
    place = {text: i for i, text in enumerate(order)}
    codes = np.array([place[t] for t in texts], dtype=np.int64)
    return to_groups(codes, len(order)), min(len(order), BINS)


def to_groups(codes: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return at most ``BINS`` groups of neighboring codes, as equal in number as can be."""
    return codes if size <= BINS else codes * BINS // size


def _task(title: str, name: str, *, regression: bool = False, without: Sequence[str] = ()) -> Task:
    facts = {"regression": regression}
    return Task(title, partial(read, name, without), kway(2), DELTA, facts=facts)


TASKS: dict[str, Task] = {
    "diabetes": _task("Diabetes", "privpgd/diabetes130_balanced"),
    "diabetes7": _task("Diabetes (7)", "privpgd/diabetes130_balanced",
                       without=("time_in_hospital",)),
    "acs": _task("ACS Income", "acs/acs_income_2018_us_100k"),
    "diamonds": _task("Diamonds", "misc/diamonds", regression=True),
    "adult": _task("Adult", "aim/adult"),
    "flights": _task("Flights", "misc/nycflights13", regression=True,
                     without=("year", "tailnum", "time_hour")),
}  # fmt: skip


# Contenders and metrics


CONTENDERS: dict[str, Contender] = {
    "privpgd": Contender("PrivPGD", ("#17697a", "#5fb8c6"), recipe(lib.PrivPGD)),
    "aim": Contender("AIM", ("#1f2630", "#e6e8ea"), recipe(lib.AIM, workload=True)),
    "mst": Contender("MST", ("#b39bc9", "#8f74b0"), recipe(lib.MST)),
    "private-gsd": Contender("Private-GSD", ("#c4622d", "#e8925f"), recipe(lib.PrivateGSD)),
    "gem": Contender("GEM", ("#3b5fa8", "#85a3e0"), recipe(lib.GEM, workload=True)),
    "rap": Contender("RAP softmax", ("#3f8f4f", "#7cc98b"), recipe(lib.RAP, workload=True)),
    "privpgd-apart": Contender("PrivPGD, pairs apart", ("#a98212", "#cfae4a"),
                               recipe(lib.PrivPGD, fit=lib.ParticleFit(make_consistent=False))),
    "privpgd-paper": Contender("PrivPGD, the paper's descent", ("#6a7683", "#9fabb7"),
                               recipe(lib.PrivPGD, fit=lib.ParticleFit.of_paper())),
    "real": Contender("the private rows"),
    "bootstrap": Contender("bootstrap, not private"),
}  # fmt: skip


def cells(repeats: int | None = None) -> Iterable[Cell]:
    """Return all runs, task by task: those without privacy, then repeat by repeat."""
    n = repeats or RUNS
    for task in TASKS:
        yield Cell(task, "real")
        yield from (Cell(task, "bootstrap", repeat=r) for r in range(n))
        yield from (Cell(task, c, {}, e, r) for r in range(n) for e in EPSILONS for c in ORDER)


def measure(cell: Cell, places: Places) -> Row:
    """Return the errors and seconds of one run."""
    case = TASKS[cell.task].case(places.data)
    start, synthetic = clock(), records(case, cell)
    fitted = clock()
    size = {"rows": case.table.n, "columns": len(case.table.codes.domain)}
    errors = errors_of(case, synthetic)
    return {
        **size,
        "errors": errors,
        **stage_seconds(fit=(start, fitted), scoring=(fitted, clock())),
    }


def records(case: Case, cell: Cell) -> lib.Codes:
    """Return one record per private row. The repeat seeds fits and draws."""
    table = case.table
    if cell.epsilon is None:
        rng = np.random.default_rng([cell.repeat, table.n])
        drawn = rng.integers(0, table.n, table.n)
        return table.codes if cell.contender == "real" else table.codes.take(drawn)
    release, rng = case.release(CONTENDERS[cell.contender].make(case, cell.setting), cell)
    result: lib.Codes = release.model.sample(table.n, rng=rng)
    return result


def errors_of(case: Case, synthetic: lib.Codes) -> dict[str, float]:
    """Return all geometry errors, and the covariance error that the paper's tables seem to have."""
    table = case.table
    real = lib.MemoryTable(table.schema, table.codes)
    regression = case.task.facts["regression"]
    result = lib.geometry_errors(
        real, synthetic, target=table.target, test=table.test, regression=regression
    )
    centered = centered_covariance_error(table.codes, synthetic)
    return {**result.to_dict(), "centred_covariance_error": centered}


def centered_covariance_error(real: lib.Codes, synthetic: lib.Codes) -> float:
    """Return ‖H (cov D − cov D') H‖ with H = I − 11ᵀ/d.

    Those are covariances of rows without their own mean over columns: a direction in which all
    columns grow together counts for nothing.
    """
    d = len(real.domain)
    keep = np.eye(d) - 1 / d
    return float(np.linalg.norm(keep @ (covariance(real) - covariance(synthetic)) @ keep))


def covariance(codes: lib.Codes) -> NDArray[np.float64]:
    """Return the covariances of the centers of the codes in the unit interval."""
    sizes = zip(codes.domain, codes.domain.sizes, strict=True)
    places = [lib.centers(k)[codes.column(a)] for a, k in sizes]
    return np.atleast_2d(np.cov(np.array(places), bias=True))


# The page


def paper_number(task: str, epsilon: float | None, contender: str, metric: str) -> float | None:
    """Return the paper's number, if it has one. All forms of PrivPGD are its PrivPGD."""
    name = PAPERS_NAME.get(task)
    if contender == "real":
        return PAPER["real"].get(name) if metric == "downstream" else None
    if name is None or epsilon is None or metric not in PAPER["metrics"]:
        return None
    row = PAPER[name][f"{epsilon:g}"].get(BASE if contender.startswith(BASE) else contender)
    return None if row is None else float(row[PAPER["metrics"].index(metric)])


def values(view: View, task: str, who: str, epsilon: float | None, metric: str) -> list[float]:
    """Return one error in every run."""
    return [row["errors"][metric] for row in view.finished(task, who, epsilon)]


def log_ratio(view: View, task: str, who: str, epsilon: float, metric: str) -> charts.Dot | None:
    """Return log2 of the mean over PrivPGD's mean, and of a standard deviation around it."""
    base, own = (values(view, task, name, epsilon, metric) for name in (BASE, who))
    if not base or not own or not fmean(base):
        return None
    mean, spread = fmean(own), stdev(own) if len(own) > 1 else 0.0
    value, low, high = (log2(x / fmean(base)) for x in (mean, mean - spread, mean + spread))
    return value, low, high


def log2(ratio: float) -> float:
    """Return the logarithm, cut at both ends; the lower end for nothing."""
    return max(-CUT, min(CUT, math.log2(ratio))) if ratio > 0 else -CUT


def page(view: View) -> Page:
    """Return all tables and figures."""
    figures = {name: figure(view, *of, name) for name, of in FIGURES.items()}
    entries = {n: f"![{n}](transport/{n}.svg)" if svg else "" for n, svg in figures.items()}
    tables = {f"errors-{e:g}": errors(view, e) for e in EPSILONS}
    tables |= {"references": references(view), "bar": bar(view), "runs": runs(view), **entries}
    return Page({name: text or "Not run yet." for name, text in tables.items()}, figures)


def errors(view: View, epsilon: float) -> str:
    """Return every contender on every table, the paper's number behind a stroke."""
    body = [
        (view.title(task), view.label(name), *line(view, task, name, epsilon))
        for task in view.tasks for name in ORDER if view.finished(task, name, epsilon)
    ]  # fmt: skip
    return markdown(("", "", "runs", *METRICS.values(), "CPU, s"), body)


def line(view: View, task: str, name: str, epsilon: float) -> list[str]:
    """Return runs, mean errors, and the median CPU seconds of runs but the first of a process."""
    done = view.finished(task, name, epsilon)
    seconds = [r["fit_cpu_s"] for r in done if r["earlier"]] or [r["fit_cpu_s"] for r in done]
    cells = [cell(view, task, name, epsilon, metric) for metric in METRICS]
    return [str(len(done)), *cells, f"{median(seconds):.2g}"]


def cell(view: View, task: str, name: str, epsilon: float | None, metric: str) -> str:
    """Return a mean, and the paper's."""
    paper, result = (
        paper_number(task, epsilon, name, metric),
        values(view, task, name, epsilon, metric),
    )
    mean = fmean(result) if result else None
    text = "" if mean is None else f"{mean:.3g}" if metric == "downstream" else f"{mean:.2g}"
    return text if paper is None else f"{text} / {paper:g}"


def references(view: View) -> str:
    """Return the rows themselves and their bootstrap, with relative errors too."""
    entries = {**METRICS, **RELATIVE}
    body = [
        (view.title(task), view.label(name), *(cell(view, task, name, None, metric) for metric in entries))
        for task in view.tasks for name in REFERENCES if view.finished(task, name, None)
    ]  # fmt: skip
    return markdown(("", "", *entries.values()), body)


def bar(view: View) -> str:
    """Return PrivPGD's errors over the paper's, on the tables that are as large."""
    body = []
    for task, epsilon in ((task, epsilon) for task in AS_LARGE for epsilon in EPSILONS):
        result = {m: values(view, task, BASE, epsilon, m) for m in PAPER["metrics"]}
        if all(result.values()):
            ratios = (
                ratio(fmean(v), paper_number(task, epsilon, BASE, m)) for m, v in result.items()
            )
            body.append((view.title(task), f"{epsilon:g}", *ratios))
    return markdown(("", "ε", *(METRICS[m] for m in PAPER["metrics"])), body)


def ratio(ours: float, paper: float | None) -> str:
    """Return a ratio, in bold beyond ``NEAR``."""
    if paper is None:
        return ""
    text = f"{ours / paper:.2f}"
    return f"**{text}**" if ours / paper > NEAR else text


def runs(view: View) -> str:
    """Return how many runs of each there are at each epsilon, and the outcomes of others."""
    names = (*ORDER, *REFERENCES)
    body = [(view.label(n), *(stored(view, t, n) for t in view.tasks)) for n in names]
    return markdown(("", *(task.title for task in view.tasks.values())), body)


def stored(view: View, task: str, name: str) -> str:
    """Return the runs at each epsilon."""
    budgets: Sequence[float | None] = [None] if name in REFERENCES else EPSILONS
    counts = " · ".join(str(len(view.finished(task, name, e))) for e in budgets)
    other = sorted({row["outcome"] for row in view.rows(task, name)} - {"finished"})
    return f"{counts} ({', '.join(other)})" if other else counts


def figure(view: View, metrics: Sequence[str], epsilon: float, name: str) -> str:
    """Return two panels in a row, a metric each: ratios by table."""
    tasks = [t for t in view.tasks if view.finished(t, BASE, epsilon)]
    legend = charts.Legend.of(view.contenders)
    entries: dict[str, None] = {}
    parts: list[str] = []
    for place, metric in enumerate(metrics):
        frame = charts.panels(2, WIDTH, HEIGHT, (0, max(1, len(tasks))), (-CUT, CUT))[place % 2]
        panel = replace(frame, top=TOP + ROW * (place // 2))
        series = {n: ratios(view, tasks, n, epsilon, metric) for n in ORDER if n != BASE}
        series = {n: s for n, s in series.items() if s}
        entries |= dict.fromkeys(series)
        labels = {i: view.title(t) for i, t in enumerate(tasks)}
        title = f"{METRICS[metric]}, ε = {epsilon:g}: log2 of the ratio to PrivPGD"
        parts += charts.dots(
            legend, panel, title, list(labels), series, TICKS, line=0.0, below="", labels=labels
        )
    height = TOP - charts.TOP + ROW * ((len(metrics) - 1) // 2) + HEIGHT
    return charts.picture(legend, list(entries), parts, WIDTH, height, name) if entries else ""


def ratios(
    view: View, tasks: Sequence[str], who: str, epsilon: float, metric: str
) -> dict[float, charts.Dot]:
    """Return the ratios by the place of the table."""
    result = {float(i): log_ratio(view, t, who, epsilon, metric) for i, t in enumerate(tasks)}
    return {place: dot for place, dot in result.items() if dot is not None}


SUITE = Suite(TASKS, CONTENDERS, cells, measure, page, "transport")
