"""What is to be run, in which order: short and telling runs first, and nothing that is stored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.adaptive.contenders import CONTENDERS, PLAIN
from benchmarks.adaptive.grids import DEFAULT, Setting, coarse, settings

ORDER = (1.0, 0.1, 0.25, 0.5, 0.15, 0.2)
"""Epsilons: both ends first, then the middle."""

COST = {name: place for place, name in enumerate([*CONTENDERS, PLAIN])}


class Job(NamedTuple):
    """One run: of which contender, with what setting, at which epsilon, and which of its repeats."""

    contender: str
    setting: Setting
    epsilon: float
    run: int


def jobs(
    task: str, contenders: Iterable[str], epsilons: Collection[float], runs: int, only: Sequence[str] = ()
) -> list[Job]:
    """All runs in the order of work: defaults, then every third of the grid, then the rest of it.

    Within each: epsilon by epsilon, run by run, the cheap contenders first. ``only`` names the settings wanted:
    "default", "coarse", or numbers of rounds, which need not be on the grid.
    """
    wanted = []
    for name in contenders:
        options = settings(name, task)
        few = coarse([s for s in options if s])
        known = {s["rounds"] for s in options if "rounds" in s}
        extra = [{"rounds": int(t)} for t in only if known and t.isdigit() and int(t) not in known]
        for setting in [*options, *extra]:
            stage = 0 if setting == DEFAULT else 1 if setting in few else 2
            if not only or asked(setting, stage, only):
                wanted += [(stage, Job(name, setting, e, r)) for e in epsilons for r in range(runs)]
    return [job for _, job in sorted(wanted, key=_place)]


def asked(setting: Setting, stage: int, only: Sequence[str]) -> bool:
    """Whether a setting is one of those named."""
    names = {str(setting.get("rounds")), *(("default",) if stage == 0 else ("coarse",) if stage == 1 else ())}
    return not names.isdisjoint(only)


def _place(entry: tuple[int, Job]) -> tuple[int, float, int, int, int]:
    stage, job = entry
    rank = ORDER.index(job.epsilon) if job.epsilon in ORDER else len(ORDER)
    questions = int(job.setting.get("rounds", 0)) * int(job.setting.get("each", 1))
    return stage, rank, job.run, COST[job.contender], questions


def left(wanted: Iterable[Job], stored: Iterable[Mapping[str, Any]], *, again: bool = False) -> list[Job]:
    """Those without a line, nor an earlier run of the same kind that timed out. ``again``: only finished ones count."""
    lines = [x for x in stored if x["outcome"] == "finished" or not again]
    done = {_key(x["contender"], x["setting"], x["epsilon"], x["run"]) for x in lines}
    slow = {_key(x["contender"], x["setting"], x["epsilon"], 0) for x in lines if x["outcome"] == "timed out"}
    return [j for j in wanted if _key(*j) not in done and _key(*j[:3], 0) not in slow]


def _key(contender: str, setting: Setting, epsilon: float, run: int) -> tuple[Any, ...]:
    return contender, tuple(sorted(setting.items())), epsilon, run
