"""Runs that are killed, cut off from power, or denied the disk at a chosen point of their writing, and what is left.

Run as a program it tries many such points, each in a child process of its own, and prints what it found as JSON:
``python faults.py KIND [--every N]``. The rules are checked by ``check_left`` after the fault and by ``check_resumed``
once the run was resumed to its end.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from margrave.data import MemoryTable
from margrave.errors import MargraveError
from margrave.privacy import AddRemoveRow, Budget, Gaussian, LedgerFile, MarginalGap, Private, protect
from margrave.privacy.chained import ChainedFile
from margrave.privacy.journal import FORM, Stored
from margrave.schema import Codes, Schema

SCHEMA = Schema.coded({"a": 2, "b": 3, "c": 4})
BUDGET = Budget.zcdp(Fraction(1, 3))
CAP = Budget.zcdp(Fraction(1, 2))  # room for one run, and not for two
KILLS = ("kill", "power", "zeros")
DENIALS = {
    "full": lambda: OSError(errno.ENOSPC, "No space left on device"),
    "broken": lambda: OSError(errno.EIO, "Input/output error"),
    "memory": MemoryError,
    "interrupt": KeyboardInterrupt,
}


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
    """Stands in for the calls that write. At point ``at`` it kills the process, or from there on denies what is asked.

    ``power`` first undoes what was not synced: files end where they were last synced, or half way to what was written
    since, and names whose folder was not synced are gone. ``zeros`` leaves blocks of zeros for what was not synced.
    """

    def __init__(self, kind: str, at: int, folder: Path) -> None:
        self.kind, self.at, self.point, self.folder = kind, at, 0, folder
        self.write, self.fsync = os.write, os.fsync
        self.ftruncate, self.unlink = os.ftruncate, os.unlink
        self.names = set(folder.iterdir())  # as they are on the disk
        self.synced = {p: p.read_bytes() for p in self.names}
        os.write, os.fsync = self._write, self._fsync
        os.ftruncate, os.unlink = self._ftruncate, self._unlink

    def _reached(self) -> bool:
        self.point += 1
        if self.kind in DENIALS and self.point >= self.at:
            if self.kind in ("memory", "interrupt") and self.point > self.at:
                return False  # these come once; a disk stays full
            raise DENIALS[self.kind]()
        return self.point == self.at

    def _crash(self) -> None:
        if self.kind != "kill":
            for path in list(self.folder.iterdir()):
                if path not in self.names:
                    self.unlink(path)
                    continue
                written, kept = path.read_bytes(), self.synced.get(path, b"")
                rest = written[len(kept) :]
                path.write_bytes(kept + (b"\0" * len(rest) if self.kind == "zeros" else rest[: len(rest) // 2]))
        os.kill(os.getpid(), signal.SIGKILL)

    def _write(self, file: int, data: Any) -> int:
        if self._reached():
            self._crash()
        half = len(data) // 2
        if self.kind in KILLS and self.point + 1 == self.at:
            self.write(file, data[:half])
        if self._reached():
            self._crash()
        if self.kind == "full" and self.point + 1 == self.at:
            return self.write(file, data[:half])  # the rest finds no room
        done = self.write(file, data)
        if self._reached():
            self._crash()
        return done

    def _fsync(self, file: int) -> None:
        if self._reached():
            self._crash()
        self.fsync(file)
        path = Path(os.readlink(f"/proc/self/fd/{file}"))
        if path.is_dir():
            self.names = set(path.iterdir())
        else:
            self.synced[path] = path.read_bytes()
        if self._reached():
            self._crash()

    def _ftruncate(self, file: int, length: int) -> None:
        if self._reached():
            self._crash()
        self.ftruncate(file, length)

    def _unlink(self, path: Any, **more: Any) -> None:
        if self._reached():
            self._crash()
        self.unlink(path, **more)


def child(folder: Path, kind: str, at: int) -> tuple[list[Any], str]:
    """Begin or resume the run in a process of its own; what it was told, and how it ended ("" for well)."""
    read, write = os.pipe()
    if (process := os.fork()) == 0:
        os.close(read)
        say = os.write
        ended = ""
        try:
            if kind:
                Disk(kind, at, folder)
            journal = folder / "journal"
            with protect(
                table(),
                unit=AddRemoveRow(),
                budget=BUDGET,
                ledger=folder / "ledger",
                dataset="d",
                journal=journal,
                resume=journal.exists(),
            ) as private:
                mechanism(private, lambda answer: say(write, json.dumps(answer).encode() + b"\n"))
        except BaseException as error:
            ended = f"{type(error).__name__}: {error}"
        say(write, json.dumps({"ended": ended}).encode() + b"\n")
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as heard:
        told = [json.loads(line) for line in heard]
    os.waitpid(process, 0)
    ended = told.pop()["ended"] if told and isinstance(told[-1], dict) else "killed"
    return told, ended


def stored(folder: Path) -> tuple[int, list[list[str]]]:
    """How many debits the ledger shows, and the answers in the journal."""
    (dataset,) = LedgerFile(folder / "ledger").datasets()
    assert dataset.charged <= CAP.rho
    debits = sum(len(r.debits) for r in dataset.runs)
    path = folder / "journal"
    if not path.exists():
        return debits, []
    file = ChainedFile(path, FORM, write=False)
    try:
        return debits, Stored.of(file).answers
    finally:
        file.close()


def check_left(folder: Path, told: list[Any]) -> None:
    """After a fault: both files can be read, and show no less than was answered."""
    debits, answers = stored(folder)
    assert debits >= len(answers) >= len(told), f"{debits} debits, {len(answers)} stored, {len(told)} told"
    assert debits - len(answers) <= 1, "a debit for a question not yet asked"


def check_resumed(folder: Path, histories: list[list[Any]]) -> None:
    """After the run was resumed to its end: everybody heard the same answers, and they were paid once."""
    longest = max(histories, key=len)
    assert len(longest) == 5, "the run did not end"
    for told in histories:
        assert told == longest[: len(told)], "a question was answered twice, differently"
    (dataset,) = LedgerFile(folder / "ledger").datasets()
    closed = [r for r in dataset.runs if r.debits]
    assert [r.closed for r in closed] == [True], "not one run, closed"
    assert closed[0].debited == BUDGET.rho == dataset.charged, "not paid once"
    assert len(closed[0].debits) == len(stored(folder)[1]) == 5


def attempt(kind: str, at: int) -> bool:
    """One fault, a second one while resuming, and a run to the end; whether the first point was reached at all."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        LedgerFile(folder / "ledger").init("d", unit=AddRemoveRow(), cap=CAP)
        told, ended = child(folder, kind, at)
        reached = ended != ""
        check_left(folder, told)
        histories, before = [told], stored(folder)[1]
        again, _ = child(folder, kind, 1 + at % 23)
        check_left(folder, again)
        assert stored(folder)[1][: len(before)] == before, "a stored answer was changed"
        histories.append(again)
        again, ended = child(folder, "", 0)
        assert ended == "", ended
        histories.append(again)
        check_resumed(folder, histories)
    return reached


def main() -> None:
    """Try every point, or one of so many, until the run ends before it."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("kind", choices=[*KILLS, *DENIALS])
    arguments.add_argument("--every", type=int, default=1)
    options = arguments.parse_args()
    protect(table(), unit=AddRemoveRow(), budget=BUDGET)  # the self-test of the sampler, once for all children
    failed, at, points = [], 1, 0
    while True:
        try:
            reached = attempt(options.kind, at)
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
