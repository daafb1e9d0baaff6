"""Run benchmarks, list stored runs, and write pages from them.

    python -m benchmarks run adaptive --minutes 60
    python -m benchmarks run public --only task=titanic,fire contender=aim,aim-pub --repeats 2
    python -m benchmarks run adaptive --only contender=gem --set rounds=40
    python -m benchmarks list adaptive --only contender=gem epsilon=1
    python -m benchmarks list adaptive --left
    python -m benchmarks page adaptive

A run that is stored is not repeated, so a command that was stopped goes on where it was. Errors
are computed from the private table, without noise: nothing here is for a release.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.core.results import View
from benchmarks.core.runner import commit_of, left, run
from benchmarks.core.store import Row, Store
from benchmarks.core.suite import (
    HERE,
    Cell,
    Places,
    label,
    matches,
    override,
    suite_of,
    suites,
    title_of,
    values_of,
)

WAIT_S = 5.0
"""Seconds for which rows of short runs wait to be written together."""


def main(words: Sequence[str] | None = None) -> int:
    """Carry out one command and return its exit status."""
    options = parse(words)
    names = suites() if options.suite == "all" else [options.suite]
    if len(names) == 1 and (why := unknown(names[0], options)):
        print(why, file=sys.stderr)
        return 2
    return max([options.command(name, options) for name in names])


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=formatter
    )
    commands = parser.add_subparsers(required=True, metavar="run | list | page")
    runs = commands.add_parser("run", help="run what is not stored")
    runs.set_defaults(command=run_suite)
    lists = commands.add_parser("list", help="list stored runs, or those left to run")
    lists.set_defaults(command=list_suite)
    lists.add_argument("--left", action="store_true", help="list the runs that are not stored")
    lists.add_argument("--json", action="store_true", help="print every row as a line of JSON")
    pages = commands.add_parser("page", help="write the pages, or print the tables")
    pages.set_defaults(command=page_suite)
    pages.add_argument("--docs", type=Path, default=HERE.parent / "docs" / "research")
    for command in (runs, lists):
        command.add_argument("--only", nargs="+", default=[], metavar="KEY=V,V",
                             help="task, contender, epsilon, repeat, stage, or a setting")  # fmt: skip
        command.add_argument("--set", nargs="+", default=[], metavar="KEY=V",
                             help="epsilon, or an entry of the setting of every run")  # fmt: skip
        command.add_argument(
            "--repeats", type=int, help="repeats of each run (default: the suite's)"
        )
        command.add_argument("--again", action="store_true", help="retry runs without a result")
        command.add_argument("--fresh", action="store_true", help="count rows of this commit only")
    runs.add_argument("--minutes", type=float, help="begin no run after so many")
    runs.add_argument("--timeout", type=float, default=3600.0, help="seconds of one run")
    runs.add_argument("--data", type=Path, default=default_data(), help="default: $MARGRAVE_DATA")
    runs.add_argument("--envs", type=Path, default=HERE / ".envs", help="environments of scripts")
    for command in (runs, lists, pages):
        command.add_argument("suite", nargs="?", choices=[*suites(), "all"], default="all")
        command.add_argument("--results", type=Path, default=HERE / "results")
    return parser.parse_args(words)


def default_data() -> Path:
    """Return the folder of the tables: MARGRAVE_DATA, or ../shared/data."""
    return Path(os.environ.get("MARGRAVE_DATA", HERE.parents[1] / "shared" / "data"))


def all_cells(name: str, options: argparse.Namespace) -> list[Cell]:
    """Return the cells of a suite, with the changes of ``--set``."""
    suite = suite_of(name)
    changes = dict(value_of(text) for text in options.set)
    return override(suite, suite.cells(options.repeats), changes)


def selected_cells(name: str, options: argparse.Namespace) -> list[Cell]:
    """Return the cells of a suite that the options ask for."""
    cells = all_cells(name, options)
    return [c for c in cells if matches({**c.columns, "stage": c.stage}, filters(options.only))]


def unknown(name: str, options: argparse.Namespace) -> str:
    """Return a sentence on a key or value of ``--only`` that no run of a suite has, planned or stored; or ""."""
    asked = filters(getattr(options, "only", []))
    if not asked:
        return ""
    planned = [values_of({**c.columns, "stage": c.stage}) for c in all_cells(name, options)]
    columns = [*planned, *map(values_of, rows_of(name, options))]
    for key, values in asked.items():
        known = dict.fromkeys(found[key] for found in columns if key in found)
        if not known:
            keys = dict.fromkeys(key for found in planned for key in found)
            return f"No run of {name} has {key!r}. --only takes {', '.join(keys)}."
        for value in values:
            if value not in known:
                return f"No run of {name} has {key}={value}. It can be: {', '.join(known)}."
    return ""


def value_of(text: str) -> tuple[str, Any]:
    """Return a key and its value: a number, true or false, or else a text."""
    key, _, value = text.partition("=")
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value


def filters(texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the allowed values of each key."""
    pairs = (text.partition("=") for text in texts)
    return {key: values.split(",") for key, _, values in pairs}


def rows_of(name: str, options: argparse.Namespace) -> list[Row]:
    """Return the stored rows of a suite; with ``--fresh`` those of this commit."""
    rows = Store(options.results / f"{name}.parquet").rows()
    commit = commit_of()[0] if getattr(options, "fresh", False) else None
    return [row for row in rows if commit is None or row.get("commit") == commit]


def run_suite(name: str, options: argparse.Namespace) -> int:
    """Run the remaining cells of a suite."""
    cells = selected_cells(name, options)
    remaining = left(cells, rows_of(name, options), again=options.again)
    print(f"{name}: {len(remaining)} of {len(cells)} runs are left", flush=True)
    store = Store(options.results / f"{name}.parquet", wait_s=WAIT_S)
    places = Places(options.data, store, options.envs, timeout=options.timeout)
    try:
        return 1 if run(suite_of(name), remaining, places, options.minutes) else 0
    finally:
        store.flush()


def list_suite(name: str, options: argparse.Namespace) -> int:
    """Print stored rows as JSON or counted, or the cells that are left."""
    rows = rows_of(name, options)
    if options.left:
        print(*left(selected_cells(name, options), rows, again=options.again), sep="\n")
        return 0
    rows = [row for row in rows if matches(row, filters(options.only))]
    if options.json:
        print(*(json.dumps(row) for row in rows), sep="\n")
        return 0
    counts = Counter(
        (r["task"], r["contender"], label(r["setting"]), r.get("epsilon"), r["outcome"])
        for r in rows
    )
    print(f"{name}, {len(rows)} runs. {title_of(name)}")
    for (task, contender, setting, epsilon, outcome), n in counts.items():
        budget = "" if epsilon is None else f" epsilon {epsilon:g}"
        print(f"  {n:4} {outcome:9} {task} {contender}{budget} {setting}".rstrip())
    return 0


def page_suite(name: str, options: argparse.Namespace) -> int:
    """Write the page of a suite, or print its tables."""
    suite = suite_of(name)
    page = suite.page(View(suite, rows_of(name, options)))
    if suite.document is None:
        print(page.text())
    else:
        page.write(options.docs, suite.document)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # end quietly where a reader such as head does
    sys.exit(main())
