"""One release by margrave from a coded table, under add/remove of one row: what its AIM and MST scripts share."""

from __future__ import annotations

import time

import pyarrow.parquet as pq
from job import Job

import margrave
from margrave.mechanisms import Mechanism
from margrave.schema import Schema


def synthesize(job: Job, schema: Schema, mechanism: Mechanism) -> None:
    """Release, draw as many records as the table has, and write them."""
    moment = time.perf_counter()
    release = margrave.synthesize(
        job["data"],
        schema,
        epsilon=job["epsilon"],
        delta=job["delta"],
        mechanism=mechanism,
        seed=job["seed"],
        progress=lambda what, share: job.progress(what=what, share=round(share, 4)),
    )
    moment = job.stage("fit", moment)
    records = release.sample(pq.read_metadata(job["data"]).num_rows, seed=job["seed"])
    job.stage("sample", moment)
    job.write_records(records)
    job.finish(
        version=margrave.__version__,
        rounds=len(release.transcript.selections),
        measured=[list(m.clique) for m in release.transcript.measurements],
    )
