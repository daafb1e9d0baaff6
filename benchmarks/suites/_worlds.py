"""Populations whose truth is known, and the ordinary analyses of a table of records.

Every analysis returns an estimate and its sampling variance from records with weights, as if they
were a simple random sample. The truth is the same analysis of the population itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.core.library import Codes
from benchmarks.core.suite import Table
from benchmarks.core.tables import codes_of, load_codes

Array = NDArray[np.float64]
Records = Mapping[str, Array]
Estimate = tuple[float, float]
Analysis = Callable[[Records, Array], Estimate]
"""From columns and weights to an estimate and its variance."""


def mean(column: str) -> Analysis:
    """Return the analysis of the mean code of a column."""

    def run(x: Records, w: Array) -> Estimate:
        n, center = w.sum(), np.average(x[column], weights=w)
        return float(center), float((w * (x[column] - center) ** 2).sum() / n / n)

    return run


def share(column: str, least: int) -> Analysis:
    """Return the analysis of the share of records with at least this code."""

    def run(x: Records, w: Array) -> Estimate:
        n, p = w.sum(), float(w[x[column] >= least].sum() / w.sum())
        return p, float(max(p * (1 - p), 0.25 / n) / n)  # a sample without one is no proof of none

    return run


def log_odds(left: str, a: int, right: str, b: int) -> Analysis:
    """Return the analysis of a log odds ratio, with half a record added to every cell."""

    def run(x: Records, w: Array) -> Estimate:
        pair = 2 * (x[left] >= a) + (x[right] >= b)
        cells = np.bincount(pair.astype(np.int64), weights=w, minlength=4) + 0.5
        return float(np.log(cells[0] * cells[3] / cells[1] / cells[2])), float((1 / cells).sum())

    return run


def linear(outcome: str, *columns: str, of: str) -> Analysis:
    """Return the analysis of a least squares coefficient, robust to uneven errors (White 1980)."""

    def run(x: Records, w: Array) -> Estimate:
        design = np.column_stack([np.ones(len(w)), *(x[c] for c in columns)])
        bread = np.linalg.pinv((design * w[:, None]).T @ design)
        beta = bread @ (design.T @ (w * x[outcome]))
        return _coefficient(
            1 + columns.index(of), beta, bread, design, w, x[outcome] - design @ beta
        )

    return run


def logistic(outcome: str, *columns: str, of: str) -> Analysis:
    """Return the analysis of a logistic coefficient by Newton's method, with its sandwich."""

    def run(x: Records, w: Array) -> Estimate:
        plain = np.column_stack([x[c] for c in columns])
        center = np.average(plain, axis=0, weights=w)
        spread = np.sqrt(np.average((plain - center) ** 2, axis=0, weights=w))
        spread = np.where(spread > 0, spread, 1.0)  # standardized: Newton's method starts at 0
        design = np.column_stack([np.ones(len(w)), (plain - center) / spread])
        beta = np.zeros(design.shape[1])
        for _ in range(60):
            p = 1 / (1 + np.exp(-np.clip(design @ beta, -30, 30)))
            bread = np.linalg.pinv((design * (w * p * (1 - p))[:, None]).T @ design)
            step = bread @ (design.T @ (w * (x[outcome] - p)))
            beta += step * min(1.0, 3.0 / max(1e-9, np.abs(step).max()))
            if np.abs(step).max() < 1e-9:
                break
        i = columns.index(of)
        estimate, variance = _coefficient(1 + i, beta, bread, design, w, x[outcome] - p)
        return estimate / float(spread[i]), variance / float(spread[i] ** 2)

    return run


def _coefficient(
    i: int, beta: Array, bread: Array, design: Array, w: Array, error: Array
) -> Estimate:
    variance = bread @ ((design * (w * error**2)[:, None]).T @ design) @ bread
    return float(beta[i]), float(variance[i, i])


@dataclass(frozen=True, eq=False)
class World(Table):
    """A population: ``codes`` with their weights, and the estimands by name."""

    weights: Array = field(default_factory=lambda: np.ones(1))
    estimands: Mapping[str, Analysis] = field(default_factory=dict)

    def drawn(self, rows: int, rng: np.random.Generator) -> Codes:
        """Return records drawn independently from the population."""
        chosen = rng.choice(len(self.weights), size=rows, p=self.weights / self.weights.sum())
        return self.codes.take(chosen)

    def truth(self) -> list[float]:
        """Return every estimand of the population."""
        large = self.weights * (1e9 / self.weights.sum())
        columns = {a: self.codes.column(a).astype(float) for a in self.codes.domain}
        return [run(columns, large)[0] for run in self.estimands.values()]

    def analyze(self, codes: Codes) -> list[Estimate]:
        """Return every estimate from a table. Equal records are counted once."""
        names = [a for a in self.codes.domain if a in self._used()]
        shape = self.codes.domain.shape(tuple(names))
        flat = np.ravel_multi_index([codes.column(a) for a in names], shape)
        cells, counts = np.unique(flat, return_counts=True)
        rows = np.unravel_index(cells, shape)
        records = {a: rows[i].astype(np.float64) for i, a in enumerate(names)}
        return [run(records, counts.astype(np.float64)) for run in self.estimands.values()]

    def _used(self) -> set[str]:
        if self.codes.domain.cells() <= 100_000:
            return set(self.codes.domain)
        words = (key.replace("~", " ").replace("+", " ").split() for key in self.estimands)
        return {word for some in words for word in some}


def world(
    sizes: Mapping[str, int],
    rows: Sequence[Array],
    weights: Array,
    estimands: Mapping[str, Analysis],
) -> World:
    """Return a world from the codes of its cells."""
    return World(
        codes_of(sizes, [np.asarray(r) for r in rows]), weights=weights, estimands=estimands
    )


def clinic(data: Path | None = None) -> World:
    """Return five columns with every pair dependent, and nothing beyond pairs."""
    sizes = {"age": 6, "sex": 2, "smoker": 2, "exposure": 3, "outcome": 2}
    codes = np.indices(tuple(sizes.values())).reshape(5, -1)
    a, s, k, e, y = codes[0] - 2.5, codes[1], codes[2], codes[3] - 1, codes[4]
    theta = -0.12 * a**2 + 0.1 * a * s + 0.2 * (s - 0.5) * (k - 0.5) - 0.15 * a * k + 0.15 * a * e
    theta = theta + 0.5 * k * e - 0.4 * e**2 - 1.0 * k
    theta = theta + y * (-2.0 + 0.25 * a + 0.3 * s + 0.8 * k + 0.4 * e)
    four = ("age", "sex", "smoker", "exposure")
    estimands = {
        "mean age": mean("age"),
        "share outcome": share("outcome", 1),
        "share age = 5": share("age", 5),
        "log odds smoker outcome": log_odds("smoker", 1, "outcome", 1),
        **{f"logistic outcome ~ {c}": logistic("outcome", *four, of=c) for c in four},
        **{f"linear exposure ~ {c}": linear("exposure", *four[:3], of=c) for c in four[:3]},
    }
    return world(sizes, list(codes), np.exp(theta), estimands)


def ward(data: Path | None = None) -> World:
    """Return three columns of few codes with every pair dependent, and nothing beyond pairs."""
    sizes = {"ward": 3, "smoker": 2, "stay": 5}
    codes = np.indices(tuple(sizes.values())).reshape(3, -1)
    w, k, y = codes
    theta = -0.6 * w - 0.9 * k - 0.5 * y + 0.2 * w * k + 0.25 * w * y + 0.2 * k * y
    estimands = {
        "mean stay": mean("stay"),
        "share smoker": share("smoker", 1),
        "share ward = 2": share("ward", 2),
        "share stay = 4": share("stay", 4),
        **{
            f"linear stay ~ {c}": linear("stay", "ward", "smoker", of=c) for c in ("ward", "smoker")
        },
    }
    return world(sizes, list(codes), np.exp(theta), estimands)


def chain(data: Path | None = None) -> World:
    """Return five columns that depend on each other along a tree, two with long tails."""
    sizes = {"a": 16, "b": 12, "y": 2, "z": 4, "w": 5}
    i, j = np.arange(16), np.arange(12)
    second = _rows(np.exp(-0.6 * np.abs(j - 0.6 * i[:, None])))
    risk = 1 / (1 + np.exp(1 - 0.25 * i))
    third = np.stack([1 - risk, risk], axis=1)
    fourth = _rows(np.exp(-0.7 * np.abs(np.arange(4) - j[:, None] / 4)))
    fifth = np.array([[0.5, 0.3, 0.15, 0.04, 0.01], [0.2, 0.2, 0.3, 0.2, 0.1]])
    joint = np.einsum("a,ab,ay,bz,yw->abyzw", np.exp(-0.5 * i), second, third, fourth, fifth)
    estimands = {
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
    return world(sizes, list(np.indices(joint.shape).reshape(5, -1)), joint.ravel(), estimands)


def _rows(table: Array) -> Array:
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def adult(data: Path) -> World:
    """Return the records of ``aim/adult`` as a population, to be drawn with replacement."""
    codes = load_codes(data, "aim/adult")
    income, risks = "income>50K", ("age", "education-num", "hours-per-week", "sex")
    hours = (*risks[:2], "sex")
    estimands = {
        "mean age": mean("age"),
        f"share {income}": share(income, 1),
        f"log odds sex {income}": log_odds("sex", 1, income, 1),
        **{f"logistic {income} ~ {c}": logistic(income, *risks, of=c) for c in risks},
        **{f"linear hours-per-week ~ {c}": linear("hours-per-week", *hours, of=c) for c in hours},
    }
    return World(codes, weights=np.ones(len(codes)), estimands=estimands)
