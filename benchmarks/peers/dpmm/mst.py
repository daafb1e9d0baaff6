"""MST by dpmm at its defaults."""

from __future__ import annotations

import time
from importlib.metadata import version

import pyarrow as pa
from dpmm.models.mst import MSTGM
from job import Job
from numpy.random import RandomState


def main() -> None:
    job = Job.from_command_line()
    moment = time.perf_counter()
    frame = job.table().to_pandas().astype(int)
    model = MSTGM(epsilon=job["epsilon"], delta=job["delta"], n_jobs=1)
    model.set_random_state(RandomState(job["seed"]))
    model.set_domain(job.domain())
    moment = job.stage("prepare", moment)
    model.fit(frame)
    moment = job.stage("fit", moment)
    synthetic = model.generate(n_records=len(frame))
    job.stage("sample", moment)
    records = synthetic[list(frame.columns)].astype("int64")
    job.write_records(pa.Table.from_pandas(records, preserve_index=False))
    job.finish(version=version("dpmm"), measured=[list(clique) for clique in model.generator.cliques])


if __name__ == "__main__":
    main()
