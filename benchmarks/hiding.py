"""Figure 3 of the PrivPGD paper: what it costs other statistics to hide one. ``python benchmarks/hiding.py``.

The ACS income table of 2018, 11 columns of at most 32 bins, 80 % of the rows to learn from and the others to test on;
eps = 2.5, delta = 1e-5, replacing a row. A statistic is the share of the rows for which <θ, z> > b, of three random
columns, θ standard normal, b such that 20 to 80 % of the rows are beyond. One run for each statistic and weight;
weight 0 is the release without constraint. The share is asked for, with a twenty-fifth of rho; with
``--split paper`` the pairs have what the paper leaves them, 0.65 of rho instead of 0.96.

The errors are of the private rows, without noise: nothing here is for a release.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import charts
import numpy as np
import pyarrow.parquet
from charts import Dot, Legend
from environments import HERE
from run import default_data

from margrave.data import MemoryTable
from margrave.evaluate import geometry_errors
from margrave.marginal import HalfSpace
from margrave.marginal.counting import count_cliques
from margrave.mechanisms import PrivPGD
from margrave.models import ParticleFit
from margrave.models.particles import HideShare
from margrave.privacy import Budget, ReplaceRow, protect
from margrave.schema import Codes, Domain, Schema

BINS, STATISTICS, COLUMNS = 32, 3, 3
WEIGHTS = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1.0)
TARGET = "Income50k"
EPSILON, DELTA = 2.5, 1e-5
SPLITS = {"default": PrivPGD().for_constraints, "paper": PrivPGD.for_constraints_of_paper(EPSILON, DELTA)}
"""The part of rho that the share costs."""

LABELS = {
    "hidden": "the hidden share", "counting_error": "counting queries", "thresholding_error": "thresholding queries",
    "two_way_l1": "L1 of pairs", "downstream": "downstream error",
}  # fmt: skip
LEGEND = Legend(LABELS, dict(zip(LABELS, (
    ("#c4622d", "#e8925f"), ("#17697a", "#5fb8c6"), ("#3f8f4f", "#7cc98b"), ("#7a4fa3", "#b892dc"),
    ("#a98212", "#cfae4a"),
), strict=True)))  # fmt: skip
PANELS = (("hidden",), ("counting_error", "thresholding_error"), ("two_way_l1", "downstream"))
TITLES = ("absolute error of the hidden share", "absolute error of random queries", "pairs, and learning")


def acs(folder: Path) -> Codes:
    """The table, names in alphabetical order, in at most 32 equal bins a column."""
    table = pyarrow.parquet.read_table(folder / "acs_income_2018_us_100k.parquet")
    columns: dict[str, Any] = {}
    for name in table.column_names:
        own, codes = np.unique(np.asarray(table[name]), return_inverse=True)
        columns[name] = codes * BINS // len(own) if len(own) > BINS else codes
    domain = Schema.coded({name: int(codes.max()) + 1 for name, codes in columns.items()}).domain
    return Codes.of(domain, columns)


def statistic(rows: Codes, rng: np.random.Generator) -> tuple[dict[str, float], float]:
    """Random coefficients of random columns, and a threshold."""
    domain = rows.domain
    names = [str(a) for a in rng.choice([a for a in domain if a != TARGET], COLUMNS, replace=False)]
    coefficients = {a: float(rng.standard_normal()) for a in names}
    score = sum(c * (2.0 * rows.column(a) + 1.0) / (2.0 * domain.size(a)) for a, c in coefficients.items())
    return coefficients, float(np.quantile(score, rng.uniform(0.2, 0.8)))


def share(query: HalfSpace, rows: Codes) -> float:
    """The share of records beyond."""
    return float(query.count(count_cliques(rows, [query.clique])[query.clique])) / len(rows)


def hide(
    folder: Path, seed: int, slope: float, fit: ParticleFit, weights: Sequence[float], part: Fraction
) -> Iterable[dict[str, Any]]:
    """A line of errors for every weight, with one random statistic."""
    rng = np.random.default_rng(seed)
    whole = acs(folder)
    order = np.random.default_rng(0).permutation(len(whole))
    rows, test = whole.take(order[: len(whole) * 4 // 5]), whole.take(order[len(whole) * 4 // 5 :])
    coefficients, threshold = statistic(rows, rng)
    query = HalfSpace.of(rows.domain, coefficients, threshold)
    table = MemoryTable(_schema(rows.domain), rows)
    for weight in weights:
        begin = time.process_time()
        hidden = HideShare(coefficients=coefficients, threshold=threshold, weight=weight, slope=slope)
        with protect(table, unit=ReplaceRow(), budget=Budget.approx(EPSILON, DELTA)) as gate:
            constraints = (hidden,) if weight else ()
            release = PrivPGD(fit=fit, constraints=constraints, for_constraints=part).run(gate, rng=rng)
        cpu = time.process_time() - begin
        synthetic = release.model.sample(fit.particles, rng=rng)
        errors = geometry_errors(table, synthetic, target=TARGET, test=test)
        truth, found = share(query, rows), share(query, synthetic)
        yield {
            "job": "hide", "seed": seed, "slope": slope, "weight": weight, "part": float(part),
            "statistic": query.words, "share": truth,
            "hidden": abs(found - truth), "cpu_s": cpu, **errors.to_dict(),
        }  # fmt: skip


def _schema(domain: Domain) -> Schema:
    return Schema.coded(dict(zip(domain, domain.sizes, strict=True)))


def picture(lines: Sequence[dict[str, Any]]) -> str:
    """The means over statistics by weight, with whiskers from the least to the greatest."""
    weights = sorted({line["weight"] for line in lines})
    places = {w: w or min(x for x in weights if x) / 10.0 for w in weights}  # no weight stands left of the smallest
    ends = (min(places.values()) / 2.0, max(places.values()) * 2.0)
    parts = []
    for panel, names, title in zip(charts.panels(3, 1060.0, 220.0, ends, (0, 1)), PANELS, TITLES, strict=True):
        series = {n: {places[w]: _dot([x[n] for x in lines if x["weight"] == w]) for w in weights} for n in names}
        top = max(d[2] for s in series.values() for d in s.values())
        step = 10.0 ** math.floor(math.log10(top))
        step = next(s for s in (step / 5, step / 2, step, step * 2) if top / s <= 5)
        ticks = [i * step for i in range(math.ceil(top / step) + 1)]
        labels = {p: f"{w:g}" for w, p in places.items()}
        scaled = replace(panel, up=(0, ticks[-1]), log_across=True)
        parts += charts.lines(LEGEND, scaled, title, series, [round(t, 12) for t in ticks], labels, below="weight λ")
    return charts.picture(LEGEND, list(LABELS), parts, 1060.0, 220.0, "What hiding one share costs")


def _dot(values: Sequence[float]) -> Dot:
    return sum(values) / len(values), min(values), max(values)


def run(
    folder: Path, out: Path, figure: Path | None, slope: float, fit: ParticleFit, statistics: int, part: Fraction
) -> None:
    """All runs, each line written as soon as it is known; then the figure."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", encoding="utf-8") as file:
        for seed in range(statistics):
            for line in hide(folder, seed, slope, fit, WEIGHTS, part):
                print(json.dumps(line), file=file, flush=True)
                print(json.dumps(line), flush=True)
    if figure is not None:
        figure.parent.mkdir(parents=True, exist_ok=True)
        figure.write_text(picture([json.loads(x) for x in out.read_text("utf-8").splitlines()]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--particles", type=int, default=100_000)
    parser.add_argument("--slope", type=float, default=20.0, help="of the smooth threshold; the paper's is 5")
    parser.add_argument("--statistics", type=int, default=STATISTICS)
    parser.add_argument("--fit", choices=["default", "paper"], default="default")
    parser.add_argument("--split", choices=sorted(SPLITS), default="default", help="of rho: the share, the pairs")
    parser.add_argument("--out", type=Path, help="default: results/privpgd/hide.jsonl, or hide_paper_split.jsonl")
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    make = ParticleFit.of_paper if given.fit == "paper" else ParticleFit
    fit = make(particles=given.particles)
    name = "hide.jsonl" if given.split == "default" else f"hide_{given.split}_split.jsonl"
    out = given.out or HERE / "results" / "privpgd" / name
    run(given.data / "acs", out, given.figure, given.slope, fit, given.statistics, SPLITS[given.split])


if __name__ == "__main__":
    main()
