"""A million records from a model that margrave fitted to the marginals of the tree task: the sampling matters."""

from __future__ import annotations

import time

import numpy as np
from fixed import transcript_of
from job import Job

import margrave
from margrave import GraphicalFit, Schema


def main() -> None:
    job = Job.from_command_line()
    schema = Schema.coded(job.domain())
    transcript = transcript_of(job, schema.domain)
    rng = np.random.default_rng(job["seed"])
    moment = time.perf_counter()
    model = GraphicalFit()(schema.domain, transcript, rng=rng)
    moment = job.stage("fit", moment)
    codes = model.sample(job["rows"], rng=rng)
    moment = job.stage("sample", moment)
    records = schema.decode(codes, rng=rng)
    job.stage("decode", moment)
    answers = model.answer(transcript.cliques)
    job.write_marginals(transcript.cliques, [answers[clique] for clique in transcript.cliques])
    job.write_records(records)
    job.finish(version=margrave.__version__)


if __name__ == "__main__":
    main()
