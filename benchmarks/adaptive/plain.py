"""Runs the plain implementation of GEM in its own environment, a fresh process a run, and scores its answers."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import measure
import numpy as np
from benchmarks.adaptive.errors import between
from benchmarks.adaptive.tasks import Task
from benchmarks.adaptive.work import Job
from environments import HERE, python_for
from run import last_words
from stored import Facts

SCRIPT = HERE / "adaptive" / "plain_gem.py"


def run(task: Task, job: Job, envs: Path, timeout: float, most_s: float | None = None) -> Facts:
    """One run: the same codes, queries, T and budget as the library's. ``most_s``: end the rounds after so long."""
    python = python_for("torch", envs)
    with tempfile.TemporaryDirectory(prefix="margrave-bench-") as scratch:
        out = Path(scratch)
        arguments = write_inputs(task, out) | dict(job.setting)
        arguments |= {"epsilon": job.epsilon, "delta": task.delta, "seed": job.run, "out": str(out), "most_s": most_s}
        environment = {**os.environ, "PYTHONPATH": str(HERE / "common"), "PYTHONUNBUFFERED": "1"}
        usage = measure.run([python, str(SCRIPT), json.dumps(arguments)], out / "log.txt", environment, timeout)
        took = {"process_wall_s": usage.wall_s, "process_cpu_s": usage.cpu_s, "peak_mb": usage.peak_mb}
        if usage.timed_out or usage.status != 0:
            why = last_words(out / "log.txt").replace(str(out), "TMP").replace(str(HERE), "benchmarks")
            return {"outcome": "timed out" if usage.timed_out else "failed", "why": why, **took}
        said = json.loads((out / "result.json").read_text())
        answers = np.load(out / "answers.npy").astype(np.float64)
    outcome = "finished" if said["rounds"] == job.setting["rounds"] else "stopped"
    return {"outcome": outcome, "errors": between(answers, task.truth), **said, **took}


def write_inputs(task: Task, out: Path) -> Facts:
    """The codes and the columns of each marginal as npz."""
    domain = task.codes.domain
    cliques = np.array([[domain.index(a) for a in c] for c in task.cliques])
    path = out / "codes.npz"
    np.savez(path, codes=task.codes.values, sizes=np.array(domain.sizes), cliques=cliques)
    return {"codes": str(path)}
