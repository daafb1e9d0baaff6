"""The tables of the paper on NAPSU-MQ, and the regressions whose intervals count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.core import library as lib
from benchmarks.core.suite import Table
from benchmarks.core.tables import columns_of, load_codes

Array = NDArray[np.float64]

MAX_STEPS, DEVIANCE_TOLERANCE = 100, 1e-8
"""Of Newton's method; the tolerance is that of statsmodels, so that separated data agree too."""


@dataclass(frozen=True, eq=False)
class Experiment(Table):
    """A table and the regression whose intervals count.

    ``design`` has a row for every cell of the columns ``regressors``, and a column for every
    name. ``draw`` makes the real table of a repeat at an epsilon; by default it is the same.
    """

    names: Sequence[str] = ()
    regressors: tuple[str, ...] = ()
    outcome: str = ""
    design: Array | None = None
    draw: Callable[[float, int], lib.Codes] | None = None

    def real(self, epsilon: float, repeat: int) -> lib.Codes:
        """Return the real table of one repeat."""
        return self.codes if self.draw is None else self.draw(epsilon, repeat)

    def fit(self, frame: pd.DataFrame) -> lib.Fitted:
        """Return the regression of one table as if it were the real one."""
        assert self.design is not None
        shape = self.codes.domain.shape(self.regressors)
        cells = np.ravel_multi_index(tuple(frame[a].to_numpy() for a in self.regressors), shape)
        outcome = frame[self.outcome].to_numpy().astype(np.float64)
        trials = np.bincount(cells, minlength=len(self.design)).astype(np.float64)
        successes = np.bincount(cells, weights=outcome, minlength=len(self.design))
        return logistic(self.names, self.design, trials, successes)


def frame_of(codes: lib.Codes) -> pd.DataFrame:
    """Return codes as a frame."""
    return pd.DataFrame({a: codes.column(a) for a in codes.domain})


def toy(data: Path | None = None) -> Experiment:
    """Return section 5.1: two fair coins, and a column that depends on the first, (0, 1, 0)."""
    domain, n = lib.Schema.coded({"a": 2, "b": 2, "c": 2}).domain, 2000

    def draw(epsilon: float, repeat: int) -> lib.Codes:
        rng = np.random.default_rng([round(1000 * epsilon), repeat])
        x = rng.integers(0, 2, (2, n))
        c = (rng.random(n) < 1.0 / (1.0 + np.exp(-x[0]))).astype(np.int64)
        return lib.Codes.of(domain, {"a": x[0], "b": x[1], "c": c})

    a, b = (m.ravel() for m in np.meshgrid([0.0, 1.0], [0.0, 1.0], indexing="ij"))
    design = np.column_stack([np.ones(4), a, b])
    return Experiment(
        draw(0.0, 0), names=("intercept", "a", "b"), regressors=("a", "b"), outcome="c",
        design=design, draw=draw,
    )  # fmt: skip


def adult(data: Path) -> Experiment:
    """Return section 5.2: income on age, race and gender, in Adult reduced to ten columns."""
    codes = load_codes(data, "napsu/adult_reduced")
    labels = {a: c["categories"] for a, c in columns_of(data, "napsu/adult_reduced").items()}
    regressors = ("age", "race", "gender")
    shape = codes.domain.shape(regressors)
    cells = np.stack(np.unravel_index(np.arange(int(np.prod(shape))), shape))
    races = [r for r in labels["race"] if r != "White"]
    age = np.array([_middle(text) for text in labels["age"]])[cells[0]]
    dummies = [cells[1] == labels["race"].index(r) for r in races]
    male = cells[2] == labels["gender"].index("Male")
    design = np.column_stack([np.ones(cells.shape[1]), age, *dummies, male]).astype(np.float64)
    names = ("intercept", "age", *races, "Male")
    return Experiment(codes, names=names, regressors=regressors, outcome="income", design=design)


def _middle(interval: str) -> float:
    low, high = interval.strip("(]").split(",")
    return (float(low) + float(high)) / 2.0


def logistic(names: Sequence[str], design: Array, trials: Array, successes: Array) -> lib.Fitted:
    """Return the maximum likelihood fit of ``successes`` of ``trials`` at each row of a design.

    It equals the regression on single records. Coefficients that the rows with trials do not
    determine are left out.
    """
    seen = trials > 0
    x, t, s = design[seen], trials[seen], successes[seen]
    alone, independent = lib.estimable(x)
    points, covariance, converged = _newton(x[:, independent], t, s)
    remaining = tuple(n for n, k in zip(names, independent, strict=True) if k)
    fitted = lib.Fitted.of(remaining, points, covariance, converged=converged)
    return fitted.only(alone[independent])


def _newton(x: Array, t: Array, s: Array) -> tuple[Array, Array, bool]:
    beta, last = np.zeros(x.shape[1]), np.inf
    for _ in range(MAX_STEPS):
        eta = x @ beta
        p = 1.0 / (1.0 + np.exp(-eta))
        deviance = 2.0 * float((t * np.logaddexp(0.0, eta) - s * eta).sum())
        try:
            covariance = np.linalg.inv((x.T * (t * p * (1.0 - p))) @ x)
        except np.linalg.LinAlgError:
            break
        if abs(last - deviance) < DEVIANCE_TOLERANCE:
            return beta, covariance, True
        last, beta = deviance, beta + covariance @ (x.T @ (s - t * p))
    return beta, np.full((len(beta), len(beta)), np.nan), False
