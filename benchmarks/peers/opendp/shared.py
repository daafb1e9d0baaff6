"""OpenDP's contingency tables for a coded table: budget in, records out."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import Any

import opendp.prelude as dp
import polars as pl
from job import Job
from zcdp import rho_of


def synthesize(job: Job, algorithm: Any) -> None:
    """Release a contingency table under add/remove of one row and write records drawn in both of its ways.

    Integer cut points 0, 1, ..., k - 2 make k cells that are exactly the codes 0 ... k - 1. Giving the codes as keys
    would add a cell for null to every column, a larger domain than the one the other contenders get.
    """
    dp.enable_features("contrib")
    moment = time.perf_counter()
    domain = job.domain()
    frame = pl.from_arrow(job.table()).cast(pl.Int64)
    # All cells are public, so its accountant refuses a delta: the zCDP that (epsilon, delta) allow is given instead.
    rho = rho_of(job["epsilon"], job["delta"])
    context = dp.Context.compositor(
        data=frame.lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
    )
    cuts = {name: list(range(size - 1)) for name, size in domain.items()}
    query = context.query(rho=rho).select(*domain).contingency_table(cuts=cuts, algorithm=algorithm)
    moment = job.stage("prepare", moment)
    table = query.release()
    moment = job.stage("fit", moment)
    job.write_records(table.synthesize(rows=len(frame)).to_arrow())
    moment = job.stage("sample", moment)
    job.write_records(table.synthesize(rows=len(frame), method="sample").to_arrow(), "records_sampled")
    measured = [list(clique) for clique in table.marginals.cliques()]
    entries = len(table.marginals.flatten())
    job.finish(version=version("opendp"), rho=rho, rounds=entries - len(domain), measured=measured)
