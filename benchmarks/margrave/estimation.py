"""Estimation from fixed noisy marginals by margrave: GraphicalFit at its defaults, or as the variant says."""

from __future__ import annotations

import time

import numpy as np
from fixed import transcript_of
from job import Job

import margrave
from margrave import Domain, GraphicalFit


def main() -> None:
    job = Job.from_command_line()
    domain = Domain.of(job.domain())
    transcript = transcript_of(job, domain)
    fit = GraphicalFit(**job.get("fit", {}))
    moment = time.perf_counter()
    model = fit(domain, transcript, rng=np.random.default_rng(job["seed"]))
    moment = job.stage("fit", moment)
    # again from nothing: what is left once compiled kernels are loaded
    fit(domain, transcript, rng=np.random.default_rng(job["seed"]))
    moment = job.stage("fit_again", moment)
    answers = model.answer(transcript.cliques)
    job.stage("answer", moment)
    job.write_marginals(transcript.cliques, [answers[clique] for clique in transcript.cliques])
    cells = fit.cells(domain, transcript.cliques)
    job.finish(version=margrave.__version__, tree_cells=int(cells), total=model.total)


if __name__ == "__main__":
    main()
