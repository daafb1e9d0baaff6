"""Read the results and print a Markdown table: one line for each task, contender and variant.

    python benchmarks/report.py [TASK ...] [--results DIR] [--commands] [--all]
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Line = dict[str, Any]
Key = tuple[str, str, str, bool]

HEADINGS = (
    "task", "contender", "version", "runs", "wall s", "mean", "CPU s", "CPU ratio", "peak MB", "error", "mean", "ratio",
    "rounds", "outcome",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help="default: all that have results")
    parser.add_argument("--results", type=Path, default=Path(__file__).resolve().parent / "results")
    parser.add_argument("--commands", action="store_true", help="list the commands too")
    parser.add_argument("--all", action="store_true", help="margrave's runs of earlier commits too")
    options = parser.parse_args()
    lines = read(options.results, options.tasks)
    if not options.all:
        lines = current(lines)
    print(table(lines))
    if options.commands:
        print("\n" + "\n".join(f"    {command}" for command in dict.fromkeys(line["command"] for line in lines)))


def read(folder: Path, tasks: Sequence[str] = ()) -> list[Line]:
    """The stored lines, oldest first within each task."""
    names = tasks or sorted(path.stem for path in folder.glob("*.jsonl"))
    paths = [folder / f"{name}.jsonl" for name in names]
    return [json.loads(text) for path in paths if path.exists() for text in path.read_text().splitlines()]


def current(lines: Sequence[Line]) -> list[Line]:
    """Without margrave's runs of commits before its last one of that task: medians over commits would mean nothing."""
    last = {line["task"]: line["commit"] for line in lines if line["contender"] == "margrave"}
    return [line for line in lines if line["contender"] != "margrave" or line["commit"] == last[line["task"]]]


def table(lines: Iterable[Line]) -> str:
    """Medians, means, and ratios of medians to margrave's warm runs of the same task (above 1: margrave takes less)."""
    groups = group(lines)
    rows = [row(key, runs, groups) for key, runs in groups.items()]
    cells = [HEADINGS, tuple("---" for _ in HEADINGS), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)


def group(lines: Iterable[Line]) -> dict[Key, list[Line]]:
    groups: dict[Key, list[Line]] = {}
    for line in lines:
        key = (line["task"], line["contender"], line["variant"], line["cold"])
        groups.setdefault(key, []).append(line)
    return groups


def row(key: Key, runs: list[Line], groups: dict[Key, list[Line]]) -> tuple[str, ...]:
    task, contender, variant, cold = key
    ours = groups.get((task, "margrave", "", False), [])
    name = " ".join(word for word in (contender, variant, "(cold)" if cold else "") if word)
    bound = all(line["outcome"] == "timed out" for line in runs)
    at_least = "≥ " if bound else ""
    return (
        task,
        name,
        latest(runs, "version"),
        str(len(runs)),
        at_least + number(median(runs, "wall_s")),
        at_least + number(mean(runs, "wall_s")),
        at_least + number(median(runs, "cpu_s")),
        at_least + ratio(median(runs, "cpu_s"), median(ours, "cpu_s")),
        number(median(runs, "peak_mb")),
        number(median(runs, "error")),
        number(mean(runs, "error")),
        ratio(median(runs, "error"), median(ours, "error")),
        number(rounds(runs)),
        outcomes(runs),
    )


def values(runs: Iterable[Line], name: str) -> list[float]:
    """Of the runs that have it. Times count for runs that finished; if none did, for those stopped, as lower bounds."""
    runs = list(runs)
    finished = [line for line in runs if line["outcome"] == "finished"]
    stopped = [line for line in runs if line["outcome"] == "timed out"]
    return [line[name] for line in finished or stopped if line.get(name) is not None]


def median(runs: Iterable[Line], name: str) -> float | None:
    found = values(runs, name)
    return statistics.median(found) if found else None


def mean(runs: Iterable[Line], name: str) -> float | None:
    found = values(runs, name)
    return statistics.fmean(found) if found else None


def rounds(runs: Iterable[Line]) -> float | None:
    runs = list(runs)
    return median(runs, "rounds") if values(runs, "rounds") else median(runs, "rounds_seen")


def latest(runs: Sequence[Line], name: str) -> str:
    return str(next((line[name] for line in reversed(runs) if line.get(name)), "-"))


def outcomes(runs: Iterable[Line]) -> str:
    counted: dict[str, int] = {}
    for line in runs:
        counted[line["outcome"]] = counted.get(line["outcome"], 0) + 1
    return ", ".join(f"{n} {outcome}" for outcome, n in counted.items())


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def ratio(value: float | None, ours: float | None) -> str:
    return "-" if value is None or not ours else f"{value / ours:.3g}"


if __name__ == "__main__":
    main()
