"""How far off answers are: the largest, the mean and the root mean square error over all cells, as shares of n."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.adaptive.tasks import Task, shares
from numpy.typing import NDArray

from margrave.models import Model

METRICS = {"max": "max error", "mean": "mean error", "rmse": "root mean squared error"}


def between(answers: NDArray[np.float64], truth: NDArray[np.float64]) -> dict[str, float]:
    """The three errors of answers, in the order of the truth."""
    gaps = np.abs(answers - truth)
    if not np.isfinite(gaps).all():
        raise ValueError("answers are not finite")
    return {"max": float(gaps.max()), "mean": float(gaps.mean()), "rmse": float(np.sqrt(np.mean(gaps**2)))}


def errors_of(task: Task, model: Model, seed: int) -> dict[str, Any]:
    """Of the model's own answers, as in the paper, and of as many records of it as the table has. Not private."""
    rng = np.random.default_rng([seed, 1])
    answered = model.answer(task.cliques, rng=rng)
    answers = np.concatenate([np.asarray(answered[c], dtype=np.float64).ravel() for c in task.cliques])
    records = model.sample(task.n, rng=rng)
    return {
        "errors": between(answers / model.total, task.truth),
        "records": between(shares(records, task.cliques), task.truth),
    }
