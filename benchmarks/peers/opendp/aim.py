"""AIM by OpenDP's mbi extra at its defaults, which are the task's workload and size limit."""

from __future__ import annotations

from typing import Any

import opendp.prelude as dp
from job import Job
from shared import synthesize


def main() -> None:
    job = Job.from_command_line()

    def counted(domain: Any, loss: Any, *, potentials: Any = None) -> Any:
        """Its own default estimator, with a progress line: called once before the first round and once a round."""
        model = dp.mbi.mirror_descent(domain, loss, potentials=potentials)
        job.progress(measurements=len(loss), cliques=len(model.cliques))
        return model

    algorithm = dp.mbi.AIM(queries=job["degree"], max_size=float(job["max_model_mb"]), estimator=counted)
    synthesize(job, algorithm)


if __name__ == "__main__":
    main()
