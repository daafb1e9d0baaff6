"""The paper's two experiments, as data: the table, what is measured of it, and the regression whose intervals count."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import prepare
from benchmarks.napsu.regression import Array, logistic

from margrave import Schema, Workload
from margrave.inference import Fitted
from margrave.schema import Codes

EPSILONS = (0.1, 0.3, 0.5, 1.0)
M = 100
"""Data sets from each posterior."""

ADULT_PAIRS = (
    # those the regression needs, and one more, as in the paper's published experiment
    ("age", "income"), ("race", "income"), ("gender", "income"), ("race", "gender"), ("hours-per-week", "income"),
    # the maximum spanning tree of what remains: see pairs.py
    ("age", "marital-status"), ("education", "income"), ("age", "workclass"),
    ("capital-gain", "income"), ("capital-loss", "income"),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Task:
    """``codes(epsilon, repeat)`` is the real table of one repeat, ``n`` its rows.

    ``design`` has a row for every cell of the columns ``regressors``, in their order, and a column for every name.
    ``truth`` holds the coefficients of the population; None where those of the real table stand for it.
    """

    name: str
    schema: Schema
    n: int
    codes: Callable[[float, int], Codes]
    marginals: tuple[tuple[str, ...], ...]
    repeats: int
    names: tuple[str, ...]
    regressors: tuple[str, ...]
    outcome: str
    design: Array
    truth: tuple[float, ...] | None

    @property
    def delta(self) -> float:
        """1 / n²."""
        return 1.0 / self.n**2

    @property
    def workload(self) -> Workload:
        """The marginals, of equal weight."""
        return Workload.of(self.schema.domain, dict.fromkeys(self.marginals, 1.0))

    def fit(self, frame: pd.DataFrame) -> Fitted:
        """The regression of one table as if it were the real one."""
        shape = self.schema.domain.shape(self.regressors)
        cells = np.ravel_multi_index(tuple(frame[a].to_numpy() for a in self.regressors), shape)
        outcome = frame[self.outcome].to_numpy().astype(np.float64)
        trials = np.bincount(cells, minlength=len(self.design)).astype(np.float64)
        successes = np.bincount(cells, weights=outcome, minlength=len(self.design))
        return logistic(self.names, self.design, trials, successes)

    def real(self, epsilon: float, repeat: int) -> Fitted:
        """The regression of the real table."""
        codes = self.codes(epsilon, repeat)
        return self.fit(pd.DataFrame({a: codes.column(a) for a in (*self.regressors, self.outcome)}))


def toy() -> Task:
    """Section 5.1: two fair coins, and a third column by logistic regression on them with coefficients (1, 0)."""
    schema, n = Schema.coded({"a": 2, "b": 2, "c": 2}), 2000

    def codes(epsilon: float, repeat: int) -> Codes:
        rng = np.random.default_rng([round(1000 * epsilon), repeat])
        x = rng.integers(0, 2, (2, n))
        c = (rng.random(n) < 1.0 / (1.0 + np.exp(-x[0]))).astype(np.int64)
        return Codes.of(schema.domain, {"a": x[0], "b": x[1], "c": c})

    a, b = (m.ravel() for m in np.meshgrid([0.0, 1.0], [0.0, 1.0], indexing="ij"))
    return Task(
        name="toy", schema=schema, n=n, codes=codes, marginals=(("a", "b", "c"),), repeats=100,
        names=("intercept", "a", "b"), regressors=("a", "b"), outcome="c",
        design=np.column_stack([np.ones(4), a, b]), truth=(0.0, 1.0, 0.0),
    )  # fmt: skip


def adult(data: Path) -> Task:
    """Section 5.2: income on age, race and gender, in Adult reduced to ten columns."""
    described = data / "napsu" / "adult_reduced.schema.json"
    sizes = prepare.read_sizes(described)
    labels = {c["name"]: c["categories"] for c in json.loads(described.read_text())["columns"]}
    schema = Schema.coded(sizes)
    columns = prepare.read_codes(data / "napsu" / "adult_reduced.parquet", list(sizes))
    table = Codes.of(schema.domain, dict(zip(sizes, columns, strict=True)))
    races = [r for r in labels["race"] if r != "White"]
    regressors = ("age", "race", "gender")
    cells = np.stack(np.unravel_index(np.arange(schema.domain.cells(regressors)), schema.domain.shape(regressors)))
    age = np.array([_middle(text) for text in labels["age"]])[cells[0]]
    dummies = [cells[1] == labels["race"].index(r) for r in races]
    male = cells[2] == labels["gender"].index("Male")
    return Task(
        name="adult", schema=schema, n=len(table), codes=lambda epsilon, repeat: table, marginals=ADULT_PAIRS,
        repeats=20, names=("intercept", "age", *races, "Male"), regressors=regressors, outcome="income",
        design=np.column_stack([np.ones(cells.shape[1]), age, *dummies, male]).astype(np.float64), truth=None,
    )  # fmt: skip


def _middle(interval: str) -> float:
    """The middle of a text such as (16.9, 31.6]."""
    low, high = interval.strip("(]").split(",")
    return (float(low) + float(high)) / 2.0


def task_of(name: str, data: Path) -> Task:
    """One of the two."""
    return toy() if name == "toy" else adult(data)
