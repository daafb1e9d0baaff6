"""Counting marginals by margrave: one question to a table in memory."""

from __future__ import annotations

import time

from counts import checksum, closure
from job import Job

import margrave
from margrave import Schema, read_table


def main() -> None:
    job = Job.from_command_line()
    moment = time.perf_counter()
    schema = Schema.coded(job.domain())
    table = read_table(job["data"], schema)
    moment = job.stage("prepare", moment)
    cliques = closure(schema.domain.attributes, job["degree"])
    counts = table.count(cliques)
    job.stage("count", moment)
    digest = checksum(counts[clique] for clique in cliques)
    job.finish(version=margrave.__version__, marginals=len(cliques), checksum=digest)


if __name__ == "__main__":
    main()
