"""The experiments of the NAPSU-MQ paper. One JSON line a contender and repeat; what is stored is not run again.

    python -m benchmarks.napsu toy                                   # every contender of the toy experiment
    python -m benchmarks.napsu adult --contender laplace naive       # some contenders on Adult
    python -m benchmarks.napsu adult --contender nuts --repeats 5    # minutes a run: last
    python -m benchmarks.napsu check                                 # the harness against statsmodels and the formulas

Every repeat is one private run of NAPSU-MQ by the gate. Its noisy answers are kept in results/napsu/TASK_answers.jsonl,
and all contenders start from them, but for "pgm5", "pgm10", "pgm20", which measure on their own. The truth is not
private: nothing here is for a release. Then: python -m benchmarks.napsu.page writes docs/napsu.md and its figures.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from pathlib import Path

import measure
from benchmarks.napsu import store
from benchmarks.napsu.check import check
from benchmarks.napsu.contenders import BY_TASK, CONTENDERS, Facts, ask
from benchmarks.napsu.tasks import EPSILONS, Task, task_of
from environments import HERE, REPOSITORY
from measure import clock, spent
from run import commit_of, default_data
from stored import append, read_lines

import margrave
from margrave import Release
from margrave.errors import MargraveError


def main() -> int:
    options = parse()
    if options.task == "check":
        check(options.data)
        return 0
    task = task_of(options.task, options.data)
    for epsilon in options.epsilon:
        for name in options.contender or BY_TASK[task.name]:
            for repeat in range(task.repeats if options.repeats is None else options.repeats):
                run_once(task, name, epsilon, repeat, options.results)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.napsu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=["toy", "adult", "check"])
    parser.add_argument("--contender", nargs="+", choices=sorted(CONTENDERS), help="default: all of the task")
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--repeats", type=int, help="default: 100 (toy), 20 (adult)")
    parser.add_argument("--data", type=Path, default=default_data(), help="default: $MARGRAVE_DATA, or ../shared/data")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "napsu")
    return parser.parse_args()


def run_once(task: Task, name: str, epsilon: float, repeat: int, results: Path) -> None:
    """One contender on one repeat, unless its line is there."""
    path = results / f"{task.name}_{name}.jsonl"
    if any(same(line, epsilon, repeat) for line in read_lines(path)):
        return
    release = answered(task, epsilon, repeat, results / f"{task.name}_answers.jsonl")
    start = clock()
    try:
        found: Facts = {"outcome": "finished", **CONTENDERS[name](task, release, repeat)}
    except MargraveError as error:
        found = {"outcome": "refused", "why": str(error), **spent(fit=(start, clock()))}
    append(path, {**header(task, epsilon, repeat), "contender": name, **found, "load": os.getloadavg()[0]})
    print(f"{task.name} epsilon {epsilon:g} {name} {repeat}: {found['outcome']}", flush=True)


def answered(task: Task, epsilon: float, repeat: int, path: Path) -> Release:
    """The noisy answers of this repeat: those stored, or else new ones."""
    for line in read_lines(path):
        if same(line, epsilon, repeat):
            return store.release_of(task, line)
    release = ask(task, epsilon, repeat)
    append(path, {**header(task, epsilon, repeat), **store.answers_of(release)})
    return release


def same(line: Facts, epsilon: float, repeat: int) -> bool:
    """Whether a line is of this repeat."""
    return bool(line["repeat"] == repeat and line["epsilon"] == epsilon)


def header(task: Task, epsilon: float, repeat: int) -> Facts:
    """What every line begins with; ``repeat`` seeds the toy's table, the fits and the draws, and no noise."""
    commit, dirty = commit_of(REPOSITORY)
    return {
        "task": task.name, "epsilon": epsilon, "repeat": repeat,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "commit": commit, "dirty": dirty,
        "version": margrave.__version__, "machine": measure.machine(),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
