# /// script
# dependencies = ["mbi==2.0.0", "pyarrow>=18"]
# [tool.benchmarks]
# jobs = ["estimation", "count", "sample", "import"]
# module = "mbi"
# ///
"""Estimation, counting and sampling by mbi: mirror descent, its recommended estimator."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import Any

import jax
import mbi
import numpy as np
import pyarrow as pa
from job import Array, Clique, Job, checksum, closure, main, measurement_loss


class Curve:
    """The loss against time, at every callback, without the time that evaluating it takes."""

    def __init__(self, cliques: list[Clique], noisy: list[Array], sigma: float) -> None:
        self.cliques, self.noisy, self.sigma = cliques, noisy, sigma
        self.points: list[tuple[float, float]] = []
        self.evaluating, self.start = 0.0, time.perf_counter()

    def __call__(self, marginals: Any) -> None:
        jax.block_until_ready(marginals)  # JAX returns before it has computed
        now = time.perf_counter()
        fitted = [project(marginals, clique) for clique in self.cliques]
        loss = measurement_loss(fitted, self.noisy, self.sigma)
        self.points.append((round(now - self.start - self.evaluating, 4), round(loss, 3)))
        self.evaluating += time.perf_counter() - now


def project(model: Any, clique: Clique) -> Array:
    """Return a marginal of a model."""
    return np.asarray(model.project(clique).datavector(), dtype=np.float64)


def inputs(job: Job) -> tuple[Any, list[Clique], list[Array], list[Any]]:
    """Return the domain, the cliques, the noisy counts, and these as measurements."""
    cliques, noisy = job.measurements()
    pairs = zip(cliques, noisy, strict=True)
    linear = [mbi.LinearMeasurement(y.ravel(), c, stddev=job["sigma"]) for c, y in pairs]
    return mbi.Domain.fromdict(job.domain()), cliques, noisy, linear


def estimation(job: Job) -> None:
    """Fit fixed noisy marginals with one number of iterations."""
    jax.config.update("jax_enable_x64", job["x64"])  # False is JAX's and so mbi's default
    domain, cliques, noisy, measurements = inputs(job)
    estimator = getattr(mbi.estimation, job["estimator"])()
    curve = Curve(cliques, noisy, job["sigma"]) if job["curve"] else None
    moment, iterations = time.perf_counter(), job["iterations"]
    model = estimator.estimate(domain, measurements, iters=iterations, callback_fn=curve)
    jax.block_until_ready(model.marginals)
    job.stage("fit", moment)
    job.write_marginals(cliques, [project(model, clique) for clique in cliques])
    size = mbi.junction_tree.hypothetical_model_size(domain, cliques)
    facts = {"curve": curve.points, "evaluating_s": round(curve.evaluating, 3)} if curve else {}
    cells, total = round(size * 2**20 / 8), float(model.total)
    job.finish(version=version("mbi"), tree_cells=cells, total=total, **facts)


def count(job: Job) -> None:
    """Count marginals: one projection of the data set for each clique, as its mechanisms do."""
    moment, table = time.perf_counter(), job.table()
    domain = mbi.Domain.fromdict(job.domain())
    columns = {name: table[name].to_numpy().astype(np.int64) for name in domain.attributes}
    dataset = mbi.Dataset(columns, domain)
    moment = job.stage("prepare", moment)
    cliques = closure(tuple(domain.attributes), job["degree"])
    counts = [dataset.project(clique).datavector() for clique in cliques]
    job.stage("count", moment)
    job.finish(version=version("mbi"), marginals=len(cliques), checksum=checksum(counts))


def sample(job: Job) -> None:
    """Draw records from a model of the noisy marginals: only the sampling matters."""
    domain, cliques, _, measurements = inputs(job)
    moment = time.perf_counter()
    model = mbi.estimation.MirrorDescent().estimate(domain, measurements)
    jax.block_until_ready(model.marginals)
    moment = job.stage("fit", moment)
    records = model.synthetic_data(rows=job["rows"])
    job.stage("sample", moment)
    job.write_marginals(cliques, [project(model, clique) for clique in cliques])
    job.write_records(pa.table({a: np.asarray(c) for a, c in records.to_dict().items()}))
    job.finish(version=version("mbi"))


if __name__ == "__main__":
    main({"estimation": estimation, "count": count, "sample": sample})
