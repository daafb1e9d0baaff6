"""A million records from a model that mbi fitted to the marginals of the tree task: only the sampling matters."""

from __future__ import annotations

import time
from importlib.metadata import version

import jax
import mbi
import numpy as np
import pyarrow as pa
from job import Job


def main() -> None:
    job = Job.from_command_line()
    domain = mbi.Domain.fromdict(job.domain())
    cliques, noisy = job.measurements()
    measurements = [
        mbi.LinearMeasurement(y.ravel(), clique, stddev=job["sigma"])
        for clique, y in zip(cliques, noisy, strict=True)
    ]
    moment = time.perf_counter()
    model = mbi.estimation.MirrorDescent().estimate(domain, measurements)
    jax.block_until_ready(model.marginals)
    moment = job.stage("fit", moment)
    records = model.synthetic_data(rows=job["rows"])
    job.stage("sample", moment)
    job.write_marginals(cliques, [np.asarray(model.project(clique).datavector()) for clique in cliques])
    job.write_records(pa.table({name: np.asarray(column) for name, column in records.to_dict().items()}))
    job.finish(version=version("mbi"))


if __name__ == "__main__":
    main()
