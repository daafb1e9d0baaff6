"""AIM by dpmm at its defaults, except for the workload: all three-way marginals instead of two-way ones."""

from __future__ import annotations

import time
from importlib.metadata import version

import pyarrow as pa
from dpmm.models.aim import AIMGM
from job import Job
from numpy.random import RandomState


def count_rounds(model: AIMGM, job: Job) -> None:
    """Write a progress line at each selection, through the instance so that the package stays as published."""
    select = model.generator.worst_approximated

    def counted(candidates, *arguments, **keywords):
        chosen = select(candidates, *arguments, **keywords)
        job.progress(candidates=len(candidates), chosen=list(chosen))
        return chosen

    model.generator.worst_approximated = counted


def main() -> None:
    job = Job.from_command_line()
    moment = time.perf_counter()
    frame = job.table().to_pandas().astype(int)
    model = AIMGM(
        epsilon=job["epsilon"],
        delta=job["delta"],
        degree=job["degree"],
        max_cells=10**12,  # its default of 10,000 would silently drop the larger marginals of the workload
        max_model_size=job["max_model_mb"],
        n_jobs=1,  # what its default comes to on two cores
    )
    model.set_random_state(RandomState(job["seed"]))
    model.set_domain(job.domain())
    count_rounds(model, job)
    moment = job.stage("prepare", moment)
    model.fit(frame)
    moment = job.stage("fit", moment)
    synthetic = model.generate(n_records=len(frame))
    moment = job.stage("sample", moment)
    records = synthetic[list(frame.columns)].astype("int64")
    job.write_records(pa.Table.from_pandas(records, preserve_index=False))
    cliques = [list(clique) for clique in model.generator.cliques]
    job.finish(version=version("dpmm"), rounds=len(cliques) - frame.shape[1], measured=cliques)


if __name__ == "__main__":
    main()
