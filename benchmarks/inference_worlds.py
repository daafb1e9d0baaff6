"""Populations whose truth is known, what is estimated in them, and the ordinary analyses of a table of records.

Every analysis gives an estimate and its sampling variance from records with weights, as if they were a simple random
sample; the truth is the same analysis of the population itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import prepare
from numpy.typing import NDArray

from margrave import AIM, MST, GaussianMechanism, GraphicalFit, Schema, Workload
from margrave.mechanisms import Mechanism
from margrave.schema import Codes, Domain

Array = NDArray[np.float64]
Records = Mapping[str, Array]
Estimate = tuple[float, float]
Analysis = Callable[[Records, Array], Estimate]
"""Columns and weights -> an estimate and its variance."""


def mean(column: str) -> Analysis:
    """The mean code of a column."""

    def run(x: Records, w: Array) -> Estimate:
        n, center = w.sum(), np.average(x[column], weights=w)
        return float(center), float((w * (x[column] - center) ** 2).sum() / n / n)

    return run


def share(column: str, least: int) -> Analysis:
    """The share of records with at least this code."""

    def run(x: Records, w: Array) -> Estimate:
        n, p = w.sum(), float(w[x[column] >= least].sum() / w.sum())
        return p, float(max(p * (1 - p), 0.25 / n) / n)  # none seen is not none at all

    return run


def log_odds(left: str, a: int, right: str, b: int) -> Analysis:
    """The log odds ratio of two columns, each cut at a code; half a record is added to every cell."""

    def run(x: Records, w: Array) -> Estimate:
        pair = 2 * (x[left] >= a) + (x[right] >= b)
        cells = np.bincount(pair.astype(np.int64), weights=w, minlength=4) + 0.5
        return float(np.log(cells[0] * cells[3] / cells[1] / cells[2])), float((1 / cells).sum())

    return run


def linear(outcome: str, *columns: str, of: str) -> Analysis:
    """One coefficient of least squares, with the variance that holds when errors are uneven (White 1980)."""

    def run(x: Records, w: Array) -> Estimate:
        design = np.column_stack([np.ones(len(w)), *(x[c] for c in columns)])
        bread = np.linalg.pinv((design * w[:, None]).T @ design)
        beta = bread @ (design.T @ (w * x[outcome]))
        error = x[outcome] - design @ beta
        variance = bread @ ((design * (w * error**2)[:, None]).T @ design) @ bread
        i = 1 + columns.index(of)
        return float(beta[i]), float(variance[i, i])

    return run


def logistic(outcome: str, *columns: str, of: str) -> Analysis:
    """One coefficient of a logistic regression by Newton's method, with the sandwich variance."""

    def run(x: Records, w: Array) -> Estimate:
        plain = np.column_stack([x[c] for c in columns])
        spread = np.sqrt(np.average((plain - np.average(plain, axis=0, weights=w)) ** 2, axis=0, weights=w))
        spread = np.where(spread > 0, spread, 1.0)  # standardised, since Newton's method starts at 0
        design = np.column_stack([np.ones(len(w)), (plain - np.average(plain, axis=0, weights=w)) / spread])
        beta = np.zeros(design.shape[1])
        for _ in range(60):
            p = 1 / (1 + np.exp(-np.clip(design @ beta, -30, 30)))
            bread = np.linalg.pinv((design * (w * p * (1 - p))[:, None]).T @ design)
            step = bread @ (design.T @ (w * (x[outcome] - p)))
            beta += step * min(1.0, 3.0 / max(1e-9, np.abs(step).max()))
            if np.abs(step).max() < 1e-9:
                break
        variance = bread @ ((design * (w * (x[outcome] - p) ** 2)[:, None]).T @ design) @ bread
        i = columns.index(of)
        return float(beta[1 + i] / spread[i]), float(variance[1 + i, 1 + i] / spread[i] ** 2)

    return run


@dataclass(frozen=True, eq=False)
class World:
    """A population, how a table is drawn from it, and what is asked. ``cells`` are codes with their weights."""

    schema: Schema
    columns: Mapping[str, NDArray[np.int64]]
    weights: Array
    asked: Mapping[str, Analysis]

    def table(self, rows: int, rng: np.random.Generator) -> Codes:
        """Records drawn independently from the population."""
        chosen = rng.choice(len(self.weights), size=rows, p=self.weights / self.weights.sum())
        return Codes.of(self.schema.domain, {a: c[chosen] for a, c in self.columns.items()})

    def truth(self) -> list[float]:
        """Every estimand of the population."""
        large = self.weights * (1e9 / self.weights.sum())
        return [run({a: c.astype(float) for a, c in self.columns.items()}, large)[0] for run in self.asked.values()]

    def analyse(self, codes: Codes) -> list[Estimate]:
        """Every estimate from a table, with its variance; equal records are counted once."""
        names = [a for a in self.schema.domain if a in self._used()]
        shape = self.schema.domain.shape(tuple(names))
        cells, counts = np.unique(np.ravel_multi_index([codes.column(a) for a in names], shape), return_counts=True)
        rows = np.unravel_index(cells, shape)
        records = {a: rows[i].astype(np.float64) for i, a in enumerate(names)}
        return [run(records, counts.astype(np.float64)) for run in self.asked.values()]

    def _used(self) -> set[str]:
        if self.schema.domain.cells() <= 100_000:
            return set(self.schema.domain)
        return {name for key in self.asked for name in key.replace("~", " ").replace("+", " ").split()}


def clinic() -> World:
    """Five columns with every pair dependent and nothing beyond pairs: all pairs together describe it completely."""
    sizes = {"age": 6, "sex": 2, "smoker": 2, "exposure": 3, "outcome": 2}
    codes = np.indices(tuple(sizes.values())).reshape(5, -1)
    a, s, k, e, y = codes[0] - 2.5, codes[1], codes[2], codes[3] - 1, codes[4]
    theta = -0.12 * a**2 + 0.1 * a * s + 0.2 * (s - 0.5) * (k - 0.5) - 0.15 * a * k + 0.15 * a * e + 0.5 * k * e
    theta = theta - 0.4 * e**2 - 1.0 * k + y * (-2.0 + 0.25 * a + 0.3 * s + 0.8 * k + 0.4 * e)
    four = ("age", "sex", "smoker", "exposure")
    asked = {
        "mean age": mean("age"),
        "share outcome": share("outcome", 1),
        "share age = 5": share("age", 5),
        "log odds smoker outcome": log_odds("smoker", 1, "outcome", 1),
        **{f"logistic outcome ~ {c}": logistic("outcome", *four, of=c) for c in four},
        **{f"linear exposure ~ {c}": linear("exposure", *four[:3], of=c) for c in four[:3]},
    }
    return World(Schema.coded(sizes), dict(zip(sizes, codes, strict=True)), np.exp(theta), asked)


def chain() -> World:
    """Five columns that depend on each other along a tree, two of them with long tails of rare codes."""
    sizes = {"a": 16, "b": 12, "y": 2, "z": 4, "w": 5}
    i, j = np.arange(16), np.arange(12)
    first = np.exp(-0.5 * i)
    second = _rows(np.exp(-0.6 * np.abs(j - 0.6 * i[:, None])))
    risk = 1 / (1 + np.exp(1 - 0.25 * i))
    third = np.stack([1 - risk, risk], axis=1)
    fourth = _rows(np.exp(-0.7 * np.abs(np.arange(4) - j[:, None] / 4)))
    fifth = np.array([[0.5, 0.3, 0.15, 0.04, 0.01], [0.2, 0.2, 0.3, 0.2, 0.1]])
    joint = np.einsum("a,ab,ay,bz,yw->abyzw", first, second, third, fourth, fifth)
    codes = np.indices(joint.shape).reshape(5, -1)
    asked = {
        "mean a": mean("a"),
        "mean b": mean("b"),
        "mean w": mean("w"),
        "share y": share("y", 1),
        "share a >= 8": share("a", 8),
        "log odds a y": log_odds("a", 3, "y", 1),
        "logistic y ~ a": logistic("y", "a", of="a"),
        "linear b ~ a": linear("b", "a", of="a"),
        "linear z ~ b": linear("z", "b", of="b"),
        "linear w ~ y": linear("w", "y", of="y"),
    }
    return World(Schema.coded(sizes), dict(zip(sizes, codes, strict=True)), joint.ravel(), asked)


def _rows(table: Array) -> Array:
    return table / table.sum(axis=1, keepdims=True)


def adult(data: Path) -> World:
    """The records of ``aim/adult`` as a population, to be drawn with replacement; regressions on its codes."""
    table = data / "aim" / "adult.parquet"
    sizes = prepare.read_sizes(table.with_suffix(".schema.json"))
    codes = prepare.read_codes(table, list(sizes))
    income, risks = "income>50K", ("age", "education-num", "hours-per-week", "sex")
    hours = (*risks[:2], "sex")
    asked = {
        "mean age": mean("age"),
        f"share {income}": share(income, 1),
        f"log odds sex {income}": log_odds("sex", 1, income, 1),
        **{f"logistic {income} ~ {c}": logistic(income, *risks, of=c) for c in risks},
        **{f"linear hours-per-week ~ {c}": linear("hours-per-week", *hours, of=c) for c in hours},
    }
    return World(Schema.coded(sizes), dict(zip(sizes, codes, strict=True)), np.ones(codes.shape[1]), asked)


@cache
def world_of(name: str, data: Path) -> World:
    """A population by its name."""
    return adult(data) if name == "adult" else {"clinic": clinic, "chain": chain}[name]()


def mechanism_of(name: str, domain: Domain) -> Mechanism:
    """All pairs measured; or what a mechanism chooses."""
    pairs = Workload.all_kway(domain, 2)
    made: dict[str, Callable[[], Mechanism]] = {
        "pairs": lambda: GaussianMechanism(workload=pairs, fit=GraphicalFit()),
        "mst": MST,
        "aim": AIM,
    }
    return made[name]()
