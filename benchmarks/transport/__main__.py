"""The experiments of the PrivPGD paper. One JSON line a run; what is stored is not run again.

    python -m benchmarks.transport all --list                           # what would run, in order; nothing is run
    python -m benchmarks.transport diabetes --runs 5                    # every contender at every epsilon
    python -m benchmarks.transport acs --contender privpgd aim --epsilon 1 --minutes 30

Errors are of the private rows, without noise: nothing here is for a release. Then: python -m benchmarks.transport.page
writes docs/transport.md and its figures.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import measure
from benchmarks.adaptive.__main__ import deadline
from benchmarks.transport.contenders import CONTENDERS, REFERENCES, records
from benchmarks.transport.errors import errors_of
from benchmarks.transport.tasks import EPSILONS, SOURCES, Task, load
from environments import HERE, REPOSITORY
from measure import clock, spent
from run import commit_of, default_data
from stored import Facts, append, read_lines

import margrave
from margrave.errors import MargraveError

RESULTS = HERE / "results" / "transport"


class Job(NamedTuple):
    """One run: of which contender, at which epsilon (None: without privacy), and which of its repeats."""

    contender: str
    epsilon: float | None
    run: int


def main() -> int:
    options, start = parse(), time.monotonic()
    failed = 0
    for name in SOURCES if options.task == "all" else [options.task]:
        wanted = jobs(options.contender, options.epsilon, options.runs)
        todo = left(wanted, (x for c in options.contender for x in read_lines(options.results / f"{name}_{c}.jsonl")))
        print(f"{name}: {len(todo)} of {len(wanted)} runs are left", flush=True)
        if options.list:
            for job in todo:
                print(f"  {job.contender}, epsilon {job.epsilon}, run {job.run}")
        elif todo and not over(start, options):
            failed += work(load(name, options.data), todo, options, start)
    return 1 if failed else 0


def over(start: float, options: argparse.Namespace) -> bool:
    """Whether the time is up."""
    return bool(options.minutes and time.monotonic() - start > 60 * options.minutes)


def parse() -> argparse.Namespace:
    everyone = [*REFERENCES, *CONTENDERS]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.transport", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=[*SOURCES, "all"])
    parser.add_argument("--contender", nargs="+", metavar="NAME", choices=everyone, default=everyone)
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--minutes", type=float, help="begin no run after so many")
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds before a run is given up")
    parser.add_argument("--list", action="store_true", help="say what would be run")
    parser.add_argument("--data", type=Path, default=default_data(), help="default: $MARGRAVE_DATA, or ../shared/data")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def jobs(contenders: Iterable[str], epsilons: Iterable[float], runs: int) -> list[Job]:
    """All runs: repeat by repeat, epsilon by epsilon, contenders as they are named. The real rows need one run."""
    names, budgets = list(contenders), list(epsilons)
    free = [Job(n, None, r) for n in names if n in REFERENCES for r in range(1 if n == "real" else runs)]
    return free + [Job(n, e, r) for r in range(runs) for e in budgets for n in names if n in CONTENDERS]


def left(wanted: Iterable[Job], stored: Iterable[Mapping[str, Any]]) -> list[Job]:
    """Those without a line, whatever became of it."""
    done = {(x["contender"], x["epsilon"], x["run"]) for x in stored}
    return [job for job in wanted if tuple(job) not in done]


def work(task: Task, todo: list[Job], options: argparse.Namespace, start: float) -> int:
    """Run after run; how many failed. A failure is a line too."""
    failed = 0
    made: Counter[str] = Counter()
    for job in todo:
        if over(start, options):
            print("the time is up", flush=True)
            break
        line = {**run_once(task, job, options.timeout), "earlier": made[job.contender]}
        made[job.contender] += 1
        failed += line["outcome"] == "failed"
        append(options.results / f"{task.name}_{job.contender}.jsonl", line)
        print(told(line), flush=True)
    return failed


def run_once(task: Task, job: Job, timeout: float) -> Facts:
    """One run as a line, whatever becomes of it."""
    start = clock()
    deadline(timeout)
    try:
        synthetic = records(task, *job)
        deadline(0)
        fitted = clock()
        found: Facts = {"outcome": "finished", "errors": errors_of(task, synthetic)}
        found |= spent(fit=(start, fitted), scoring=(fitted, clock()))
    except Exception as error:
        late = clock()[0] - start[0] >= timeout
        outcome = "timed out" if late else "refused" if isinstance(error, MargraveError) else "failed"
        found = {"outcome": outcome, "why": f"{type(error).__name__}: {error}"[:300], **spent(fit=(start, clock()))}
    finally:
        deadline(0)
    return {**header(task, job), **found, "load": os.getloadavg()[0]}


def header(task: Task, job: Job) -> Facts:
    """What every line begins with."""
    commit, dirty = commit_of(REPOSITORY)
    return {
        "task": task.name, **job._asdict(), "rows": len(task.private), "columns": len(task.private.domain),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "commit": commit, "dirty": dirty,
        "version": margrave.__version__, "machine": measure.machine(),
    }  # fmt: skip


def told(line: Facts) -> str:
    """A line in words."""
    what = f"{line['task']} {line['contender']} epsilon {line['epsilon']} run {line['run']}"
    if "errors" not in line:
        return f"{what}: {line['outcome']}: {line['why']}"
    shown = ", ".join(f"{k} {v:.2g}" for k, v in line["errors"].items())
    return f"{what}: {shown}; {line['fit_cpu_s']:.1f} s of CPU"


if __name__ == "__main__":
    sys.exit(main())
