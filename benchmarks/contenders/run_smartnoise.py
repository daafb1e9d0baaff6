# /// script
# dependencies = ["smartnoise-synth==1.0.8", "torch==2.13.0", "packaging", "pyarrow>=18"]
# [tool.benchmarks]
# jobs = ["dpctgan", "patectgan", "import"]
# module = "snsynth"
# ///
"""DP-CTGAN and PATE-CTGAN by SmartNoise at its defaults, on codes as categories.

It imports packaging, which it does not declare. It reads the categories and their frequencies from the rows without
noise, and PATE-CTGAN's teachers share one network: its epsilon is what it claims, not what is proved.
"""

from __future__ import annotations

import time
from importlib.metadata import version

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from job import Job, main


def dpctgan(job: Job) -> None:
    """Train a conditional GAN whose critic has clipped gradients and Gaussian noise."""
    run(job, "dpctgan")


def patectgan(job: Job) -> None:
    """Train a conditional GAN whose student sees noisy votes of teachers."""
    run(job, "patectgan")


def run(job: Job, name: str) -> None:
    """Fit, draw one record per row of the table, and write them."""
    from snsynth import Synthesizer

    torch.manual_seed(job["seed"])
    np.random.seed(job["seed"])  # noqa: NPY002 (the package draws from it)
    moment = time.perf_counter()
    frame = job.table().to_pandas().astype(int)
    model = Synthesizer.create(name, epsilon=job["epsilon"], delta=job["delta"], cuda=False)
    moment = job.stage("prepare", moment)
    model.fit(frame, categorical_columns=list(frame.columns), preprocessor_eps=0.0)
    moment = job.stage("fit", moment)
    synthetic = pd.DataFrame(model.sample(len(frame)), columns=frame.columns)
    job.stage("sample", moment)
    records = synthetic.astype("int64")
    job.write_records(pa.Table.from_pandas(records, preserve_index=False))
    job.finish(version=version("smartnoise-synth"), torch=torch.__version__)


if __name__ == "__main__":
    main({"dpctgan": dpctgan, "patectgan": patectgan})
