# /// script
# dependencies = ["dpmm==0.1.9", "pyarrow<20"]
# [tool.benchmarks]
# jobs = ["aim", "mst", "import"]
# module = "dpmm.models.aim"
# ///
"""AIM and MST by dpmm at its defaults, except that AIM's workload is all three-way marginals."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import Any

import pyarrow as pa
from job import Job, main
from numpy.random import RandomState


def aim(job: Job) -> None:
    """Run AIM with none of its candidates dropped for their size."""
    from dpmm.models.aim import AIMGM

    cells = 10**12  # its default of 10,000 would silently drop the larger marginals
    # one job is what its default comes to on two cores
    model = AIMGM(
        epsilon=job["epsilon"], delta=job["delta"], degree=job["degree"], max_cells=cells,
        max_model_size=job["max_model_mb"], n_jobs=1,
    )  # fmt: skip
    run(job, model)


def mst(job: Job) -> None:
    """Run MST."""
    from dpmm.models.mst import MSTGM

    run(job, MSTGM(epsilon=job["epsilon"], delta=job["delta"], n_jobs=1))


def run(job: Job, model: Any) -> None:
    """Fit, draw one record per row of the table, and write them."""
    moment = time.perf_counter()
    frame = job.table().to_pandas().astype(int)
    model.set_random_state(RandomState(job["seed"]))
    model.set_domain(job.domain())
    count_rounds(model, job)
    moment = job.stage("prepare", moment)
    model.fit(frame)
    moment = job.stage("fit", moment)
    synthetic = model.generate(n_records=len(frame))
    job.stage("sample", moment)
    records = synthetic[list(frame.columns)].astype("int64")
    job.write_records(pa.Table.from_pandas(records, preserve_index=False))
    cliques = [list(clique) for clique in model.generator.cliques]
    rounds = {"rounds": len(cliques) - frame.shape[1]} if job["job"] == "aim" else {}
    job.finish(version=version("dpmm"), measurements=cliques, **rounds)


def count_rounds(model: Any, job: Job) -> None:
    """Write a line at each selection, through the instance: the package stays as published."""
    select = getattr(model.generator, "worst_approximated", None)
    if select is None:  # MST
        return

    def counted(candidates: Any, *arguments: Any, **keywords: Any) -> Any:
        chosen = select(candidates, *arguments, **keywords)
        job.progress(candidates=len(candidates), chosen=list(chosen))
        return chosen

    model.generator.worst_approximated = counted


if __name__ == "__main__":
    main({"aim": aim, "mst": mst})
