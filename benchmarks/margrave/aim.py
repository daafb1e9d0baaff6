"""AIM by margrave at its defaults, which are the task's workload and size limit."""

from __future__ import annotations

from job import Job
from release import synthesize

from margrave import AIM, Schema, Workload


def main() -> None:
    job = Job.from_command_line()
    schema = Schema.coded(job.domain())
    workload = Workload.all_kway(schema.domain, job["degree"])
    synthesize(job, schema, AIM(workload=workload, max_model_mb=job["max_model_mb"]))


if __name__ == "__main__":
    main()
