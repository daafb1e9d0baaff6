"""The runner: measures cells that are not stored, one by one, until the time is up."""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.core.library import VERSION, MargraveError
from benchmarks.core.process import Script, clock, machine, stage_seconds
from benchmarks.core.store import Row
from benchmarks.core.suite import HERE, Cell, Places, Suite

GRACE_S = 60.0
"""Seconds after the timeout at which this process gives a run up that watches its own time."""


def left(cells: Iterable[Cell], rows: Sequence[Row], *, again: bool = False) -> list[Cell]:
    """Return the cells that have no row, and no repeat that timed out.

    Args:
        cells: All wanted cells, in the order of work.
        rows: The stored rows.
        again: Whether to count finished rows only, and so to retry the others.
    """
    counted = [row for row in rows if not again or row["outcome"] == "finished"]
    stored = [(Cell.of(row), row["outcome"]) for row in counted]
    done = {(cell.kind, cell.repeat) for cell, _ in stored}
    slow = {cell.kind for cell, outcome in stored if outcome == "timed out"}
    return [c for c in cells if (c.kind, c.repeat) not in done and c.kind not in slow]


def run(suite: Suite, cells: Sequence[Cell], places: Places, minutes: float | None = None) -> int:
    """Run cells in their order and store a row for each, whatever becomes of it.

    Returns:
        How many failed.
    """
    start, failed = time.monotonic(), 0
    slow, counts = set[Any](), Counter[str]()
    for cell in cells:
        if minutes is not None and time.monotonic() - start > 60 * minutes:
            print("the time is up", flush=True)
            break
        if cell.kind in slow:
            continue
        prepare(suite, cell, places)
        need = suite.needs(cell)
        if need is not None and left([need], places.store.rows()):
            places.store.add(run_cell(suite, need, places))
        row = run_cell(suite, cell, places) | {"earlier": counts[cell.contender]}
        counts[cell.contender] += 1
        places.store.add(row)
        failed += row["outcome"] == "failed"
        slow |= {cell.kind} if row["outcome"] == "timed out" else set()
        print(f"{cell}: {summary(row)}", flush=True)
    return failed


def prepare(suite: Suite, cell: Cell, places: Places) -> None:
    """Make the environment of a cell's contender, which is no part of its run."""
    contender = suite.contenders.get(cell.contender)
    if contender is not None and contender.environment is not None:
        Script.of(contender.environment).python(places.environments)


def run_cell(suite: Suite, cell: Cell, places: Places) -> Row:
    """Return the row of one run. An error becomes an outcome."""
    begun, start = datetime.datetime.now(datetime.UTC), clock()
    try:
        with deadline(places.timeout + GRACE_S):
            result: Row = {"outcome": "finished", **suite.measure(cell, places)}
    except Exception as error:
        late = isinstance(error, TimeoutError)
        kind = "refused" if isinstance(error, MargraveError) else "failed"
        why = f"{type(error).__name__}: {error}"[:300]
        result = {"outcome": "timed out" if late else kind, "why": why}
        result |= stage_seconds(fit=(start, clock()))
    return {**cell.columns, **origin(begun), **result}


def origin(begun: datetime.datetime) -> Row:
    """Return when, where and by which version of margrave a run was made."""
    commit, dirty = commit_of()
    return {
        "date": begun.isoformat(timespec="seconds"),
        "commit": commit,
        "dirty": dirty,
        "version": VERSION,
        "machine": machine(),
        "load": os.getloadavg()[0],
    }


def commit_of() -> tuple[str | None, bool]:
    """Return the commit, and whether the package differs from it."""

    def git(*words: str) -> str | None:
        command = ["git", "-C", str(HERE.parent), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else None

    return git("rev-parse", "--verify", "--quiet", "HEAD"), bool(
        git("status", "--porcelain", "--", "src")
    )


class deadline:
    """Context that raises TimeoutError after ``seconds`` seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        def late(*_: Any) -> None:
            raise TimeoutError("it took too long")

        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_: Any) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)


def summary(row: Row) -> str:
    """Return the result of a run in one line."""
    if row["outcome"] != "finished":
        return f"{row['outcome']}: {row.get('why', '')}"
    errors = (
        row.get("errors") if isinstance(row.get("errors"), dict) else {"error": row.get("error")}
    )
    parts = [f"{k} {v:.4g}" for k, v in (errors or {}).items() if v is not None]
    seconds = {k: v for k, v in row.items() if k in ("fit_cpu_s", "cpu_s")}
    return ", ".join([*parts, *(f"{v:.1f} s of CPU" for v in seconds.values())]) or "finished"
