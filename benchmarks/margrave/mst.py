"""MST by margrave at its defaults."""

from __future__ import annotations

from job import Job
from release import synthesize

from margrave import MST, Schema


def main() -> None:
    job = Job.from_command_line()
    synthesize(job, Schema.coded(job.domain()), MST())


if __name__ == "__main__":
    main()
