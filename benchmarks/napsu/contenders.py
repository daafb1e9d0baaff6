"""The contenders: from one release's noisy answers to estimates with their variances and degrees of freedom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.napsu.tasks import M, Task
from measure import clock, spent

from margrave import NAPSUMQ, Budget, GraphicalFit, MaxEntropyFit, MemoryTable, Release, ReplaceRow, protect
from margrave.inference import Analysis, Fitted, analyse
from margrave.models import Model
from margrave.privacy import Gaussian
from margrave.schema import Codes, Domain
from margrave.transcript import Measurement, Transcript

Facts = dict[str, Any]

EXACT = 0.01
"""The noise, in records, that an inference without noise-awareness is told of in the place of the true one."""


class Asked(MaxEntropyFit):
    """For NAPSU-MQ's questions alone: a quick model, since every contender refits the answers for itself."""

    def __call__(self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Any = None) -> Model:
        return GraphicalFit()(domain, transcript, rng=rng, warm=warm)


def ask(task: Task, epsilon: float, repeat: int) -> Release:
    """One private run of NAPSU-MQ on the real table: noise from the operating system."""
    table = MemoryTable(task.schema, task.codes(epsilon, repeat))
    budget = Budget.approx(epsilon, task.delta)
    with protect(table, unit=ReplaceRow(), budget=budget) as private:
        return NAPSUMQ(workload=task.workload, connect=False, fit=Asked()).run(private)


def posterior(fit: MaxEntropyFit, *, exact: bool = False) -> Contender:
    """Data sets from the maximum-entropy posterior; with ``exact`` as if the answers had no noise."""

    def run(task: Task, release: Release, repeat: int) -> Facts:
        start = clock()
        known = replace(release, transcript=without_noise(release.transcript)) if exact else release
        fitted = known.refit(fit, seed=repeat)
        middle = clock()
        found = analyse(fitted, task.fit, M, rows=task.n, seed=repeat, method="posterior", remedy="drop")
        posterior = {k: v for k, v in fitted.model.facts.items() if k != "why"}
        return {**combined(task, found), "posterior": posterior, **spent(fit=(start, middle), draws=(middle, clock()))}

    return run


def without_noise(transcript: Transcript) -> Transcript:
    """The same answers, said to be exact."""
    return Transcript(tuple(replace(e, scale=EXACT) if isinstance(e, Measurement) else e for e in transcript))


def bootstrap(*, correct: bool) -> Contender:
    """Refits of answers simulated from the graphical model; ``correct``: less the bias that they show."""

    def run(task: Task, release: Release, repeat: int) -> Facts:
        start = clock()
        fitted = release.refit(GraphicalFit(), seed=repeat)
        found = analyse(
            fitted, task.fit, M, rows=task.n, seed=repeat, method="bootstrap", remedy="drop", correct=correct
        )
        return {**combined(task, found), **spent(draws=(start, clock()))}

    return run


def naive(task: Task, release: Release, repeat: int) -> Facts:
    """One table of the graphical model, as Release.sample gives it, analysed as if it were real."""
    start = clock()
    fitted = release.refit(GraphicalFit(), seed=repeat)
    found = task.fit(fitted.sample(task.n, seed=repeat).to_pandas())
    return {**ordinary(task, found), **spent(fit=(start, clock()))}


def repeated(runs: int) -> Contender:
    """That many runs of their own, each with its part of the budget: a graphical model and a data set from each.

    Nothing of the shared answers is used: these are measured here, with the noise of each √runs times as large.
    """

    def run(task: Task, release: Release, repeat: int) -> Facts:
        start = clock()
        epsilon = release.account.epsilon
        table = MemoryTable(task.schema, task.codes(epsilon, repeat))
        with protect(table, unit=ReplaceRow(), budget=Budget.approx(epsilon, task.delta)) as private:
            public = private.transcript
            parts = [private.measure(task.marginals, Gaussian(rho=private.rho / runs)) for _ in range(runs)]
        rng = np.random.default_rng([repeat, runs])
        models = [GraphicalFit()(task.schema.domain, public + part, rng=rng) for part in parts]
        tables = [decoded(task, m.sample(task.n, rng=rng, independent=True)) for m in models]
        found = analyse(tables, task.fit, n=task.n, remedy="drop")
        return {**combined(task, found), "scale": parts[0].measurements[0].scale, **spent(fit=(start, clock()))}

    return run


def real(task: Task, release: Release, repeat: int) -> Facts:
    """The real table, without privacy."""
    return ordinary(task, task.real(release.account.epsilon, repeat))


Contender = Callable[[Task, Release, int], Facts]

CONTENDERS: dict[str, Contender] = {
    "real": real,
    "naive": naive,
    "laplace": posterior(MaxEntropyFit(sampler="laplace", accept=True)),
    "exact": posterior(MaxEntropyFit(sampler="laplace", accept=True), exact=True),
    "bootstrap": bootstrap(correct=True),
    "plain": bootstrap(correct=False),
    "pgm5": repeated(5),
    "pgm10": repeated(10),
    "pgm20": repeated(20),
    # a hundred data sets need some 150 independent draws; the library's own limits cost four times as much
    "nuts": posterior(MaxEntropyFit(sampler="nuts", r_hat=1.05, effective=150.0, accept=True)),
    "nuts-full": posterior(MaxEntropyFit(sampler="nuts", accept=True)),  # the same posterior; run on a few repeats
}
BY_TASK = {
    "toy": ("real", "naive", "laplace", "exact", "bootstrap", "plain"),
    "adult": ("real", "naive", "laplace", "bootstrap", "plain", "pgm5", "pgm10", "pgm20", "nuts"),
}


def combined(task: Task, found: Analysis) -> Facts:
    """What the rules say of every coefficient, and what the first data set alone would have said."""
    at = [found.names.index(n) if n in found.names else None for n in task.names]
    estimates = [None if j is None else found.estimates[j] for j in at]
    assert found.covariances is not None
    first, spread = found.points[0], np.diag(found.covariances[0])
    return {
        "estimates": [
            None
            if e is None or not e.known
            else {
                "estimate": e.estimate, "variance": e.variance, "df": e.df, "within": e.within, "between": e.between,
                "used": e.used, "floored": e.floored,
            }
            for e in estimates
        ],
        "data_sets": found.data_sets,
        "one": [None if j is None else single(first[j], spread[j]) for j in at],
    }  # fmt: skip


def ordinary(task: Task, found: Fitted) -> Facts:
    """Estimates of one table taken as real: normal intervals."""
    place = {n: j for j, n in enumerate(found.names)}
    values = [(found.estimates[place[n]], found.variances[place[n]]) if n in place else None for n in task.names]
    return {"estimates": [None if v is None else single(*v) for v in values]}


def single(estimate: float, variance: float) -> Facts | None:
    """One coefficient of one table; None where it blew up."""
    if not (np.isfinite(estimate) and np.isfinite(variance)) or variance > 1e6:
        return None
    return {"estimate": float(estimate), "variance": float(variance)}


def decoded(task: Task, codes: Codes) -> pd.DataFrame:
    """A table of codes as a frame."""
    return pd.DataFrame({a: codes.column(a) for a in task.schema.domain})
