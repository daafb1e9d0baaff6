"""The experiments of the GEM and PEP paper. One JSON line a run; what is stored is not run again.

    python -m benchmarks.adaptive all --list                           # what would run, in order; nothing is run
    python -m benchmarks.adaptive adult_reduced --rounds default       # every contender as the library sets it
    python -m benchmarks.adaptive adult --contender gem --rounds 100   # one T; --rounds coarse: a third of the grid
    python -m benchmarks.adaptive acs --minutes 60                     # defaults, some of each grid, then the rest
    python -m benchmarks.adaptive adult --contender gem-plain --epsilon 1 --runs 1 --envs DIR

Errors are of the private table, without noise: nothing here is for a release. Then: python -m benchmarks.adaptive.page
writes docs/adaptive.md and its figures.
"""

from __future__ import annotations

import argparse
import datetime
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import measure
from benchmarks.adaptive import plain
from benchmarks.adaptive.contenders import BY_TASK, CONTENDERS, PLAIN, Missing, run
from benchmarks.adaptive.errors import errors_of
from benchmarks.adaptive.grids import label
from benchmarks.adaptive.tasks import EPSILONS, RUNS, TASKS, Task
from benchmarks.adaptive.work import Job, jobs, left
from environments import HERE, REPOSITORY
from measure import clock, spent
from run import commit_of, default_data
from stored import Facts, append, read_lines

import margrave
from margrave.errors import MargraveError


def main() -> int:
    options, start = parse(), time.monotonic()
    failed = 0
    for task in TASKS if options.task == "all" else [options.task]:
        names = [n for n in BY_TASK[task] if n in (options.contender or BY_TASK[task])]
        wanted = jobs(task, names, options.epsilon, options.runs, options.rounds or ())
        stored = [x for name in names for x in read_lines(path_of(options, task, name))]
        todo = left(wanted, stored, again=options.again)
        print(f"{task}: {len(todo)} of {len(wanted)} runs are left", flush=True)
        if options.list:
            for job in todo:
                print(f"  {job.contender}, {label(job.setting)}, epsilon {job.epsilon:g}, run {job.run}")
        elif todo and not over(start, options):
            failed += work(TASKS[task](options.data), todo, options, start)
    return 1 if failed else 0


def over(start: float, options: argparse.Namespace) -> bool:
    """Whether the time is up."""
    return bool(options.minutes and time.monotonic() - start > 60 * options.minutes)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.adaptive", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=[*TASKS, "all"])
    parser.add_argument("--contender", nargs="+", metavar="NAME", help="default: all of the task")
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--rounds", nargs="+", metavar="T", help='"default", "coarse", numbers; default: everything')
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--minutes", type=float, help="begin no run after so many")
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds before a run is given up")
    parser.add_argument("--plain-seconds", type=float, help="gem-plain: no more rounds after so many")
    parser.add_argument("--again", action="store_true", help="try again what was refused, failed or timed out")
    parser.add_argument("--list", action="store_true", help="say what would be run")
    parser.add_argument("--data", type=Path, default=default_data(), help="default: $MARGRAVE_DATA, or ../shared/data")
    parser.add_argument("--envs", type=Path, default=HERE / ".envs", help="where gem-plain's environment is or is made")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "adaptive")
    options = parser.parse_args()
    there = [n for task, names in BY_TASK.items() if options.task in (task, "all") for n in names]
    if not set(options.contender or ()) <= set(there):
        parser.error(f"{options.task} is run by {', '.join(dict.fromkeys(there))}")
    if any(t not in ("default", "coarse") and not t.isdigit() for t in options.rounds or ()):
        parser.error('--rounds takes "default", "coarse" and numbers')
    return options


def path_of(options: argparse.Namespace, task: str, contender: str) -> Path:
    """Where a contender's lines are."""
    return Path(options.results / f"{task}_{contender}.jsonl")


def work(task: Task, todo: list[Job], options: argparse.Namespace, start: float) -> int:
    """Run after run; how many failed. A mechanism that this version lacks is left out, and a failure is a line too."""
    missing, failed = set[str](), 0
    made: Counter[str] = Counter()
    for job in todo:
        path = path_of(options, task.name, job.contender)
        if over(start, options):
            print("the time is up", flush=True)
            break
        if job.contender in missing or given_up(job, path):
            continue
        try:
            line = run_once(task, job, options)
        except Missing as error:
            missing.add(job.contender)
            print(f"{job.contender}: not in this version ({error})", flush=True)
            continue
        line["earlier"] = made[job.contender]
        made[job.contender] += 1
        failed += line["outcome"] == "failed"
        append(path, line)
        print(told(line), flush=True)
    return failed


def given_up(job: Job, path: Path) -> bool:
    """Whether a run of the same kind has timed out meanwhile."""
    return not left([job], (x for x in read_lines(path) if x["outcome"] == "timed out" and x["run"] != job.run))


def run_once(task: Task, job: Job, options: argparse.Namespace) -> Facts:
    """One run as a line, whatever becomes of it."""
    header = header_of(task, job)
    if job.contender == PLAIN:
        found = plain.run(task, job, options.envs, options.timeout, options.plain_seconds)
        return {**header, **found, "load": os.getloadavg()[0]}
    start = clock()
    deadline(options.timeout)
    try:
        release = run(task, job.contender, job.setting, job.epsilon, job.run)
        fitted = clock()
        deadline(0)
        found: Facts = {
            "outcome": "finished", **errors_of(task, release.model, job.run), "rounds": rounds_of(release),
            "total": release.model.total, **spent(fit=(start, fitted), scoring=(fitted, clock())),
        }  # fmt: skip
    except Missing:
        raise
    except Exception as error:
        late = clock()[0] - start[0] >= options.timeout
        outcome = "timed out" if late else "refused" if isinstance(error, MargraveError) else "failed"
        found = {"outcome": outcome, "why": f"{type(error).__name__}: {error}"[:300], **spent(fit=(start, clock()))}
    finally:
        deadline(0)
    return {**header, **found, "load": os.getloadavg()[0]}


def deadline(seconds: float) -> None:
    """Raise a TimeoutError after so many seconds; 0: no more."""

    def late(*_: Any) -> None:
        raise TimeoutError("it took too long")

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def rounds_of(release: margrave.Release) -> int:
    """How often something was chosen privately."""
    return len(release.transcript.selections) + len(release.transcript.query_selections)


def header_of(task: Task, job: Job) -> Facts:
    """What every line begins with; ``run`` seeds the fits, and no noise."""
    commit, dirty = commit_of(REPOSITORY)
    return {
        "task": task.name, "contender": job.contender, "setting": dict(job.setting), "epsilon": job.epsilon,
        "run": job.run, "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "commit": commit,
        "dirty": dirty, "version": margrave.__version__, "machine": measure.machine(),
    }  # fmt: skip


def told(line: Facts) -> str:
    """A line in words."""
    who = f"{line['contender']}, {label(line['setting'])}, run {line['run']}"
    what = f"{line['task']} epsilon {line['epsilon']:g} {who}"
    if "errors" not in line:
        return f"{what}: {line['outcome']}: {line['why']}"
    found = line["errors"]
    return f"{what}: max {found['max']:.4f}, mean {found['mean']:.2e}, {line['fit_wall_s']:.1f} s"


if __name__ == "__main__":
    assert set(CONTENDERS) >= {n for names in BY_TASK.values() for n in names if n != PLAIN}
    sys.exit(main())
