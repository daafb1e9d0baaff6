"""The harness against independent computations: the counted regression, and the rules that combine data sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm
from benchmarks.napsu.tasks import Task, adult, toy
from scipy import stats

from margrave.inference import Logistic, analyse


def check(data: Path) -> None:
    """An AssertionError where anything differs."""
    small = toy()
    regression(small)
    separated()
    rules(small)
    if (data / "napsu").exists():
        regression(adult(data))


def regression(task: Task) -> None:
    """The counted regression is that of statsmodels on single records."""
    codes = task.codes(1.0, 0)
    frame = pd.DataFrame({a: codes.column(a) for a in task.schema.domain})
    cells = np.ravel_multi_index(
        tuple(frame[a].to_numpy() for a in task.regressors), task.schema.domain.shape(task.regressors)
    )
    theirs = sm.GLM(frame[task.outcome].to_numpy(), task.design[cells], family=sm.families.Binomial()).fit()
    ours = task.fit(frame)
    assert ours.names == task.names
    np.testing.assert_allclose(ours.estimates, theirs.params, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.covariance, theirs.cov_params(), rtol=1e-5)
    print(f"{task.name}: {dict(zip(ours.names, np.round(ours.estimates, 4).tolist(), strict=True))}")


def separated() -> None:
    """A cell without successes: the standard deviation is beyond 1000, as the paper's remedy expects."""
    task = toy()
    codes = task.codes(1.0, 0)
    frame = pd.DataFrame({a: codes.column(a) for a in "abc"})
    frame.loc[frame.a == 1, "c"] = 0
    found = task.fit(frame)
    assert found.variances[found.names.index("a")] > 1e6 > found.variances[found.names.index("b")]
    assert task.fit(frame[frame.a == 0]).names == ("intercept", "b")


def rules(task: Task) -> None:
    """The intervals of ``analyse`` are those of the paper's formulas, by the counted and the library's regression."""
    rng, tables = np.random.default_rng(0), []
    for _ in range(30):
        p = 1 / (1 + np.exp(-(rng.normal(0, 0.2) + rng.normal(1, 0.2))))
        a, b = rng.integers(0, 2, (2, task.n))
        tables.append(pd.DataFrame({"a": a, "b": b, "c": (rng.random(task.n) < np.where(a, p, 0.5)).astype(int)}))
    ours = analyse(tables, task.fit, n=task.n)
    theirs = analyse(tables, Logistic("c ~ a + b"), n=task.n)
    q = np.array([task.fit(t).estimates for t in tables])
    v = np.array([task.fit(t).variances for t in tables]).mean(axis=0)
    between = (1 + 1 / 30) * q.var(axis=0, ddof=1)
    total, df = between - v, 29 * (1 - v / between) ** 2
    for j, e in enumerate(ours):
        np.testing.assert_allclose(e.interval(), theirs.estimates[j].interval(), rtol=1e-5)
        if total[j] > v[j]:  # where our floor does not act
            half = stats.t.ppf(0.975, df[j]) * np.sqrt(total[j])
            np.testing.assert_allclose(e.interval(), (q[:, j].mean() - half, q[:, j].mean() + half), rtol=1e-8)
    assert (total > v).any()
    print(ours)
