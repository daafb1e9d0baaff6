"""Figure 3 of the PrivPGD paper: the cost, to other statistics, of hiding one.

The ACS income table of 2018 in at most 32 bins a column, 80 % of the rows to learn from and the
others to test on; eps = 2.5, delta = 1e-5, replacing a row. A statistic is the share of the rows
with <θ, z> > b, of three random columns, θ standard normal, b such that 20 to 80 % are beyond.
Weight 0 is the release without constraint. The share costs a twenty-fifth of rho; with
``--set split=paper`` the pairs have what the paper leaves them, 0.65 of rho instead of 0.96.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet

from benchmarks.core import charts
from benchmarks.core import library as lib
from benchmarks.core.page import Page
from benchmarks.core.process import clock
from benchmarks.core.results import View
from benchmarks.core.store import Row
from benchmarks.core.suite import Cell, Contender, Places, Suite, Table, Task, kway
from benchmarks.core.tables import codes_of

BINS, STATISTICS, COLUMNS, PARTICLES, SLOPE = 32, 3, 3, 10_000, 20.0
"""The paper's slope of the smooth threshold is 5."""
WEIGHTS = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1.0)
TARGET, EPSILON, DELTA = "Income50k", 2.5, 1e-5
SPLITS = {
    "default": lib.PrivPGD().constraint_fraction,
    "paper": lib.PrivPGD.constraint_fraction_of_paper(EPSILON, DELTA),
}
"""The part of rho that the share costs."""

LEGEND = charts.Legend(
    {"hidden": "the hidden share", "counting_error": "counting queries",
     "thresholding_error": "thresholding queries", "two_way_l1": "L1 of pairs",
     "downstream": "downstream error"},
    {"hidden": ("#c4622d", "#e8925f"), "counting_error": ("#17697a", "#5fb8c6"),
     "thresholding_error": ("#3f8f4f", "#7cc98b"), "two_way_l1": ("#7a4fa3", "#b892dc"),
     "downstream": ("#a98212", "#cfae4a")},
)  # fmt: skip
PANELS = {
    "absolute error of the hidden share": ("hidden",),
    "absolute error of random queries": ("counting_error", "thresholding_error"),
    "pairs, and learning": ("two_way_l1", "downstream"),
}


def acs(data: Path) -> Table:
    """Return the table, names in alphabetical order, in at most 32 equal bins a column."""
    table = pyarrow.parquet.read_table(data / "acs" / "acs_income_2018_us_100k.parquet")
    columns: dict[str, np.ndarray] = {}
    for name in table.column_names:
        values, codes = np.unique(np.asarray(table[name]), return_inverse=True)
        columns[name] = codes * BINS // len(values) if len(values) > BINS else codes
    sizes = {name: int(codes.max()) + 1 for name, codes in columns.items()}
    whole = codes_of(sizes, list(columns.values()))
    order, cut = np.random.default_rng(0).permutation(len(whole)), len(whole) * 4 // 5
    return Table(whole.take(order[:cut]), test=whole.take(order[cut:]), target=TARGET)


def statistic(rows: lib.Codes, rng: np.random.Generator) -> tuple[dict[str, float], float]:
    """Return random coefficients of random columns, and a threshold."""
    others = [a for a in rows.domain if a != TARGET]
    names = [str(a) for a in rng.choice(others, COLUMNS, replace=False)]
    coefficients = {a: float(rng.standard_normal()) for a in names}
    places = {a: (2.0 * rows.column(a) + 1.0) / (2.0 * rows.domain.size(a)) for a in names}
    score = sum(c * places[a] for a, c in coefficients.items())
    return coefficients, float(np.quantile(score, rng.uniform(0.2, 0.8)))


def share(query: lib.HalfSpace, rows: lib.Codes) -> float:
    """Return the share of records beyond the threshold."""
    count = query.count(lib.count_cliques(rows, [query.clique])[query.clique])
    return float(count) / len(rows)


TASKS = {"acs": Task("ACS Income", acs, kway(2), DELTA)}
CONTENDERS = {"privpgd": Contender("PrivPGD")}


def cells(repeats: int | None = None) -> Iterable[Cell]:
    """Return every weight, for one statistic after the other."""
    for repeat in range(repeats or STATISTICS):
        yield from (Cell("acs", "privpgd", {"weight": w}, EPSILON, repeat) for w in WEIGHTS)


def measure(cell: Cell, places: Places) -> Row:
    """Return the errors of one release that hides the statistic of its repeat."""
    case, setting = TASKS["acs"].case(places.data), cell.setting
    table, rng = case.table, np.random.default_rng(cell.repeat)
    coefficients, threshold = statistic(table.codes, rng)
    query = lib.HalfSpace.of(table.codes.domain, coefficients, threshold)
    slope, particles = setting.get("slope", SLOPE), setting.get("particles", PARTICLES)
    make = lib.ParticleFit.of_paper if setting.get("fit") == "paper" else lib.ParticleFit
    hidden = lib.HideShare(
        coefficients=coefficients, threshold=threshold, weight=setting["weight"], slope=slope
    )
    part = SPLITS[setting.get("split", "default")]
    constraints, fit = (hidden,) if setting["weight"] else (), make(particles=particles)
    mechanism = lib.PrivPGD(fit=fit, constraints=constraints, constraint_fraction=part)
    start, release = clock()[1], case.release(mechanism, cell)[0]
    seconds, synthetic = clock()[1] - start, release.model.sample(particles, rng=rng)
    real = lib.MemoryTable(table.schema, table.codes)
    errors = lib.geometry_errors(real, synthetic, target=TARGET, test=table.test)
    truth, estimate = share(query, table.codes), share(query, synthetic)
    return {
        "slope": slope, "part": float(part), "statistic": query.describe, "share": truth,
        "hidden": abs(estimate - truth), "cpu_s": seconds, **errors.to_dict(),
    }  # fmt: skip


def page(view: View) -> Page:
    """Return the figure of the default setting."""
    own = [
        row
        for row in view.all
        if set(row["setting"]) == {"weight"} and row["outcome"] == "finished"
    ]
    return Page({}, {"hide": picture(own) if own else ""})


def picture(rows: Sequence[Row]) -> str:
    """Return the means over statistics by weight, with whiskers from least to greatest."""
    weights = sorted({row["setting"]["weight"] for row in rows})
    places = {w: w or min(x for x in weights if x) / 10.0 for w in weights}
    ends = (min(places.values()) / 2.0, max(places.values()) * 2.0)
    parts = []
    frames = charts.panels(3, 1060.0, 220.0, ends, (0, 1))
    for panel, (title, names) in zip(frames, PANELS.items(), strict=True):
        series = {
            n: {
                places[w]: _dot([r[n] for r in rows if r["setting"]["weight"] == w])
                for w in weights
            }
            for n in names
        }
        top = max(d[2] for s in series.values() for d in s.values())
        step = 10.0 ** math.floor(math.log10(top))
        step = next(s for s in (step / 5, step / 2, step, step * 2) if top / s <= 5)
        ticks = [i * step for i in range(math.ceil(top / step) + 1)]
        labels = {p: f"{w:g}" for w, p in places.items()}
        scaled, below = replace(panel, up=(0, ticks[-1]), log_across=True), "weight λ"
        ticks = [round(t, 12) for t in ticks]
        parts += charts.lines(LEGEND, scaled, title, series, ticks, labels, below=below)
    what = "What hiding one share costs"
    return charts.picture(LEGEND, list(LEGEND.labels), parts, 1060.0, 220.0, what)


def _dot(values: Sequence[float]) -> charts.Dot:
    return sum(values) / len(values), min(values), max(values)


SUITE = Suite(
    TASKS,
    CONTENDERS,
    cells,
    measure,
    page,
    "hiding",
    options=("slope", "particles", "fit", "split"),
)
