"""Counting marginals by mbi: one projection of its Dataset for each clique, as its mechanisms do."""

from __future__ import annotations

import time
from importlib.metadata import version

import mbi
import numpy as np
from counts import checksum, closure
from job import Job


def main() -> None:
    job = Job.from_command_line()
    moment = time.perf_counter()
    table = job.table()
    domain = mbi.Domain.fromdict(job.domain())
    columns = {name: table[name].to_numpy().astype(np.int64) for name in domain.attributes}
    dataset = mbi.Dataset(columns, domain)
    moment = job.stage("prepare", moment)
    cliques = closure(tuple(domain.attributes), job["degree"])
    counts = [dataset.project(clique).datavector() for clique in cliques]
    job.stage("count", moment)
    job.finish(version=version("mbi"), marginals=len(cliques), checksum=checksum(counts))


if __name__ == "__main__":
    main()
