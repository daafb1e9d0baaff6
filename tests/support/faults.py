"""Runs that are killed, cut off from power, denied the disk, or copied at a chosen point of their writing.

Run as a program it tries many such points, each in a child process of its own, and prints what it found as JSON:
``python -m tests.support.faults KIND [--every N]``. The points are all calls by which SQLite changes the disk: each
write (and half
of it), sync, truncation, deletion, and sync of a folder. The rules are checked by ``check_left`` after the fault and by
``check_resumed`` once the run was resumed to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from margrave.accounting import AddRemoveRow, Budget, Ledger
from margrave.accounting.journal import JournalState
from margrave.accounting.store import ChainedFile
from margrave.data import MemoryTable
from margrave.domain import Codes
from margrave.errors import MargraveError
from margrave.privacy import Gaussian, MarginalGap, Private, protect
from margrave.schema import Schema
from tests.support.vfs import FULL, IOERR_DELETE, IOERR_FSYNC, IOERR_WRITE, Watched

SCHEMA = Schema.coded({"a": 2, "b": 3, "c": 4})
BUDGET = Budget.zcdp(Fraction(1, 3))
CAP = Budget.zcdp(Fraction(1, 2))  # room for one run, and not for two
KILLS = ("kill", "power", "reordered", "zeros")
DENIALS = ("full", "broken", "memory", "interrupt")
COPIES = ("copy",)
BROKEN = {"write": IOERR_WRITE, "truncate": IOERR_WRITE, "delete": IOERR_DELETE}


def table() -> MemoryTable:
    codes = np.array([[0, 1, 1, 0, 1], [2, 1, 0, 0, 1], [3, 3, 0, 1, 2]])
    return MemoryTable(SCHEMA, Codes.of(SCHEMA.domain, dict(zip("abc", codes, strict=True))))


def mechanism(private: Private, tell: Callable[[Any], None]) -> None:
    """Five questions that follow from the answers before; every answer is told as soon as it is given."""
    share = private.rho / 5
    first = private.measure([("a",), ("b",)], Gaussian(rho=share)).measurements
    tell([m.values.tolist() for m in first])
    for _ in range(2):
        odd = sum(int(m.values.sum()) for m in private.transcript.measurements) % 2
        candidates = [("a", "b"), ("b", "c")] + [("a", "c")] * odd
        score = MarginalGap(
            {c: np.zeros(private.domain.shape(c)) for c in candidates},
            dict.fromkeys(candidates, 1.0),
            dict.fromkeys(candidates, 0.0),
        )
        chosen = private.select(candidates, score, rho=share)
        tell(list(chosen))
        last = private.measure([chosen], Gaussian(rho=share)).measurements[0]
        tell(last.values.tolist())


class Disk:
    """Stands below SQLite. At point ``at`` it kills the process, or from there on denies what is asked.

    ``power`` undoes what was not synced: files are as they were last synced, names whose folder was not synced are
    gone, and deleted names are back. ``reordered`` lets every second unsynced write reach the disk, and ``zeros``
    leaves zeros in their places.
    """

    def __init__(self, kind: str, at: int, folder: Path) -> None:
        self.kind, self.at, self.point, self.folder = kind, at, 0, folder
        self.names = set(folder.iterdir())  # as they are on the disk
        self.synced = {p: p.read_bytes() for p in self.names}
        self.waiting: dict[Path, list[tuple[int, bytes]]] = {}
        self.fsync = os.fsync
        os.fsync = self._python_fsync
        Watched(self._see, self._wrote)

    def _reached(self) -> bool:
        self.point += 1
        return self.point == self.at

    def _see(self, call: str, path: str, offset: int, data: bytes) -> int:
        if self._reached() and self.kind in KILLS:
            self._crash()
        if call == "write" and self._reached() and self.kind in KILLS:
            with open(path, "r+b") as file:
                file.seek(offset)
                file.write(data[: len(data) // 2])
            self._crash()
        if self.point >= self.at and self.kind == "full" and call == "write":
            return FULL
        if self.point >= self.at and self.kind == "broken":
            return BROKEN.get(call, IOERR_FSYNC)
        return 0

    def _wrote(self, call: str, name: str, offset: int, data: bytes) -> None:
        path = Path(name)
        if call == "write":
            self.waiting.setdefault(path, []).append((offset, data))
        elif call == "sync":
            self.synced[path], self.waiting[path] = path.read_bytes(), []
        elif call == "folder":
            self.names = set(self.folder.iterdir())

    def _python_fsync(self, file: int) -> None:
        if self._reached() and self.kind in KILLS:
            self._crash()
        self.fsync(file)
        self.names = set(self.folder.iterdir())

    def _crash(self) -> None:
        if self.kind != "kill":
            for path in set(self.folder.iterdir()) - self.names:
                path.unlink()
            for path in self.names:
                path.write_bytes(self._after_power_cut(path))
        os.kill(os.getpid(), signal.SIGKILL)

    def _after_power_cut(self, path: Path) -> bytes:
        content = bytearray(self.synced.get(path, b""))
        if self.kind != "power":
            step = 1 if self.kind == "zeros" else 2
            for offset, data in self.waiting.get(path, [])[::step]:
                content.extend(bytes(max(0, offset - len(content))))
                content[offset : offset + len(data)] = (
                    bytes(len(data)) if self.kind == "zeros" else data
                )
        return bytes(content)


def failing_statements(kind: str, at: int) -> None:
    """Let statement ``at`` of SQLite raise, once: every odd point before it ran, every even one after it."""
    error = {"memory": MemoryError, "interrupt": KeyboardInterrupt}[kind]
    count = [0]

    class Connection(sqlite3.Connection):
        def execute(self, *given: Any) -> sqlite3.Cursor:
            count[0] += 1
            if count[0] == at:
                raise error
            found = super().execute(*given)
            count[0] += 1
            if count[0] == at:
                raise error
            return found

    connect = sqlite3.connect
    sqlite3.connect = lambda *given, **more: connect(*given, factory=Connection, **more)  # type: ignore[assignment]


def child(folder: Path, kind: str = "", at: int = 0) -> tuple[list[Any], str]:
    """Begin or resume the run in a process of its own; what it was told, and how it ended ("" for well)."""
    resume = bool(stored(folder)[2].head)
    read, write = os.pipe()
    if (process := os.fork()) == 0:
        os.close(read)
        say = os.write
        ended = ""
        try:
            if kind in ("memory", "interrupt"):
                failing_statements(kind, at)
            elif kind:
                Disk(kind, at, folder)
            journal = folder / "journal"
            with protect(
                table(),
                unit=AddRemoveRow(),
                budget=BUDGET,
                ledger=folder / "ledger",
                dataset="d",
                journal=journal,
                resume=resume,
            ) as private:
                mechanism(private, lambda answer: say(write, json.dumps(answer).encode() + b"\n"))
        except BaseException as error:
            ended = f"{type(error).__name__}: {error}"
        say(write, json.dumps({"ended": ended}).encode() + b"\n")
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as heard:
        told = [json.loads(line) for line in heard]
    status = os.waitpid(process, 0)[1]
    assert status == 0 or os.WTERMSIG(status) == signal.SIGKILL, f"it died otherwise: {status}"
    ended = told.pop()["ended"] if told and isinstance(told[-1], dict) else "killed"
    return told, ended


def stored(folder: Path) -> tuple[int, int, JournalState]:
    """Return the number of debits and of answers in the ledger, and the state of the journal, both recovered."""
    Ledger(folder / "ledger").recover()
    (dataset,) = Ledger(folder / "ledger").datasets()
    assert dataset.charged <= CAP.rho
    state = JournalState(folder / "journal")
    if state.path.exists():
        file = ChainedFile(state.path, "journal", mode="rwc")
        with file.transaction(write=False) as lines:
            state.apply(lines)
        file.close()
    return (
        sum(len(r.debits) for r in dataset.runs),
        sum(len(r.answers) for r in dataset.runs),
        state,
    )


def check_left(folder: Path, told: list[Any]) -> None:
    """After a fault: both files can be read, and show no less than was answered."""
    debits, given, journal = stored(folder)
    answers = len(journal.answers)
    assert debits >= answers >= given >= len(told), (
        f"{debits} debits, {answers} stored, {given} in the ledger, {len(told)} told"
    )
    assert debits - answers <= 1, "a debit for a question not yet asked"


def check_alike(histories: list[list[Any]]) -> list[Any]:
    """Everybody heard the same answers. Return the longest history."""
    longest = max(histories, key=len)
    for told in histories:
        assert told == longest[: len(told)], "a question was answered twice, differently"
    return longest


def check_resumed(folder: Path, histories: list[list[Any]]) -> None:
    """After the run was resumed to its end: everybody heard the same answers, and they were paid once."""
    assert len(check_alike(histories)) == 5, "the run did not end"
    (dataset,) = Ledger(folder / "ledger").datasets()
    closed = [r for r in dataset.runs if r.debits]
    assert [r.closed for r in closed] == [True], "not one run, closed"
    assert closed[0].debited == BUDGET.rho == dataset.charged, "not paid once"
    assert len(closed[0].debits) == len(closed[0].answers) == len(stored(folder)[2].answers) == 5


def attempt(kind: str, at: int, folder: Path) -> bool:
    """One fault, a second one while resuming, and a run to the end; whether the first point was reached at all."""
    told, ended = child(folder, kind, at)
    reached = ended != ""
    check_left(folder, told)
    histories, before = [told], stored(folder)[2].answers
    again, _ = child(folder, kind, 1 + at % 97)
    check_left(folder, again)
    assert stored(folder)[2].answers[: len(before)] == before, "a stored answer was changed"
    histories.append(again)
    again, ended = child(folder)
    assert ended == "", ended
    check_resumed(folder, [*histories, again])
    return reached


def attempt_copy(at: int, folder: Path) -> bool:
    """Copy the journal at a kill; resume the journal, kill it again, and resume the copy, as a backup would be."""
    told, ended = child(folder, "kill", at)
    backup = folder.with_name(folder.name + "-backup")
    shutil.copytree(folder, backup)
    histories = [told, child(folder, "kill", 1 + at % 397)[0]]
    newest = folder.with_name(folder.name + "-newest")
    shutil.copytree(folder, newest)
    for name in ("journal", "journal-journal"):
        (folder / name).unlink(missing_ok=True)
        if (backup / name).exists():
            shutil.copy(backup / name, folder / name)
    told_by_copy, ended_by_copy = child(folder)
    check_alike([*histories, told_by_copy])
    if (
        ended_by_copy
    ):  # refused (a copy without a run asks for a second reservation): the journal itself goes on
        assert ended_by_copy.startswith(("LedgerError: ", "BudgetError: ")), ended_by_copy
        for name in ("journal", "journal-journal"):
            (folder / name).unlink(missing_ok=True)
            if (newest / name).exists():
                shutil.copy(newest / name, folder / name)
        told_by_copy, last = child(folder)
        assert last == "", last
    check_resumed(folder, [*histories, told_by_copy])
    return ended != ""


def main() -> None:
    """Try every point, or one of so many, until the run ends before it."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("kind", choices=[*KILLS, *DENIALS, *COPIES])
    arguments.add_argument("--every", type=int, default=1)
    options = arguments.parse_args()
    protect(
        table(), unit=AddRemoveRow(), budget=BUDGET
    )  # the self-test of the sampler, once for all children
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # all syncs are simulated
    failed, at, points = [], 1, 0
    while True:
        try:
            with tempfile.TemporaryDirectory(dir=memory) as name:
                folder = Path(name) / "files"
                folder.mkdir()
                Ledger(folder / "ledger").init("d", unit=AddRemoveRow(), cap=CAP)
                play = attempt_copy if options.kind in COPIES else partial(attempt, options.kind)
                reached = play(at, folder)
        except (AssertionError, MargraveError) as error:
            reached = True
            failed.append(f"{options.kind} at {at}: {error}")
        if not reached or len(failed) > 9:
            break
        points += 1
        at += options.every
    print(json.dumps({"points": points, "failed": failed}))  # noqa: T201
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
