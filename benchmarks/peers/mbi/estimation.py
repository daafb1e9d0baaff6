"""Estimation from fixed noisy marginals by mbi: one estimator at its defaults, one number of iterations."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import Any

import jax
import mbi
import numpy as np
from job import Array, Clique, Job
from loss import measurement_loss


class Curve:
    """The loss against time, at every callback, without the time that evaluating it takes."""

    def __init__(self, cliques: list[Clique], noisy: list[Array], sigma: float) -> None:
        self.cliques, self.noisy, self.sigma = cliques, noisy, sigma
        self.points: list[tuple[float, float]] = []
        self.evaluating = 0.0
        self.start = time.perf_counter()

    def __call__(self, marginals: Any) -> None:
        jax.block_until_ready(marginals)  # JAX returns before it has computed
        now = time.perf_counter()
        fitted = [project(marginals, clique) for clique in self.cliques]
        loss = measurement_loss(fitted, self.noisy, self.sigma)
        self.points.append((round(now - self.start - self.evaluating, 4), round(loss, 3)))
        self.evaluating += time.perf_counter() - now


def project(model: Any, clique: Clique) -> Array:
    return np.asarray(model.project(clique).datavector(), dtype=np.float64)


def main() -> None:
    job = Job.from_command_line()
    jax.config.update("jax_enable_x64", job["x64"])  # False is JAX's and so mbi's default
    domain = mbi.Domain.fromdict(job.domain())
    cliques, noisy = job.measurements()
    sigma = job["sigma"]
    measurements = [
        mbi.LinearMeasurement(y.ravel(), clique, stddev=sigma) for clique, y in zip(cliques, noisy, strict=True)
    ]
    estimator = getattr(mbi.estimation, job["estimator"])()
    curve = Curve(cliques, noisy, sigma) if job["curve"] else None
    moment = time.perf_counter()
    model = estimator.estimate(domain, measurements, iters=job["iterations"], callback_fn=curve)
    jax.block_until_ready(model.marginals)
    job.stage("fit", moment)
    job.write_marginals(cliques, [project(model, clique) for clique in cliques])
    size = mbi.junction_tree.hypothetical_model_size(domain, cliques)
    job.finish(
        version=version("mbi"),
        tree_cells=round(size * 2**20 / 8),
        total=float(model.total),
        curve=curve.points if curve else None,
        evaluating_s=round(curve.evaluating, 3) if curve else 0.0,
    )


if __name__ == "__main__":
    main()
