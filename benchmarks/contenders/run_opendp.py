# /// script
# dependencies = ["opendp[mbi]==0.16.0", "pandas", "pyarrow>=18"]
# [tool.benchmarks]
# jobs = ["aim", "mst", "import"]
# module = "opendp.prelude"
# ///
"""AIM and MST by OpenDP's mbi extra at its defaults. It imports pandas, which it does not declare."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import Any

import opendp.prelude as dp
import polars as pl
from job import Job, main, rho_of


def aim(job: Job) -> None:
    """Run AIM; its workload and size limit are the task's."""

    def counted(domain: Any, loss: Any, *, potentials: Any = None) -> Any:
        """Return its own estimate, with a line before the first round and at each round."""
        model = dp.mbi.mirror_descent(domain, loss, potentials=potentials)
        job.progress(measurements=len(loss), cliques=len(model.cliques))
        return model

    size = float(job["max_model_mb"])
    run(job, dp.mbi.AIM(queries=job["degree"], max_size=size, estimator=counted))


def mst(job: Job) -> None:
    """Run MST."""
    run(job, dp.mbi.MST())


def run(job: Job, algorithm: Any) -> None:
    """Release a contingency table under add/remove of one row, and write records of both kinds.

    Integer cut points 0, 1, ..., k - 2 make k cells that are exactly the codes 0 ... k - 1. The
    codes as keys would add a cell for null to every column: a larger domain than the others'.
    """
    dp.enable_features("contrib")
    moment, domain = time.perf_counter(), job.domain()
    frame = pl.from_arrow(job.table()).cast(pl.Int64)
    # All cells are public, so its accountant refuses a delta: it gets the zCDP that both allow.
    rho, unit = rho_of(job["epsilon"], job["delta"]), dp.unit_of(contributions=1)
    context = dp.Context.compositor(
        data=frame.lazy(), privacy_unit=unit, privacy_loss=dp.loss_of(rho=rho)
    )
    cuts = {name: list(range(size - 1)) for name, size in domain.items()}
    query = context.query(rho=rho).select(*domain).contingency_table(cuts=cuts, algorithm=algorithm)
    moment = job.stage("prepare", moment)
    table = query.release()
    moment = job.stage("fit", moment)
    job.write_records(table.synthesize(rows=len(frame)).to_arrow())
    moment = job.stage("sample", moment)
    sampled = table.synthesize(rows=len(frame), method="sample").to_arrow()
    job.write_records(sampled, "records_sampled")
    measurements = [list(clique) for clique in table.marginals.cliques()]
    rounds = len(table.marginals.flatten()) - len(domain)
    job.finish(version=version("opendp"), rho=rho, rounds=rounds, measurements=measurements)


if __name__ == "__main__":
    main({"aim": aim, "mst": mst})
