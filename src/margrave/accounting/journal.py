"""The journal of one run: each question before it is answered, and each answer before it is given.

A run that was killed goes on from its journal: the mechanism runs again from its start, and the gate gives the stored
answers to the first questions, after checking that each question is the one that was answered. Nothing is measured
twice. A question that was charged and has no stored answer was never answered to anybody, so it is answered under the
same charge.

Answers are written in a fixed width: neither the size of the file nor a disk that fills up depends on the noise.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from margrave._card import counted
from margrave.accounting.question import Answers, Plain, Question
from margrave.accounting.store import ChainedFile, Event, Line
from margrave.errors import LedgerError


@dataclass
class JournalState:
    """The content of a journal: its first line, the questions, the answers in base64, and whether the run ended."""

    path: Path
    head: Plain = field(default_factory=dict)
    questions: list[Plain] = field(default_factory=list)
    answers: list[list[str]] = field(default_factory=list)
    rows: int | None = None
    finished: bool = False

    def apply(self, lines: Sequence[Line]) -> None:
        """Apply lines that were read. Raise ``LedgerError`` for one that no journal could hold."""
        for number, event, _ in lines:
            try:
                self._apply(event)
            except (KeyError, TypeError, ValueError):
                raise LedgerError(
                    f"{self.path}, line {number} is not a line of a journal."
                ) from None

    def _apply(self, event: Event) -> None:
        match event["event"]:
            case "run" if not self.head and all(isinstance(event[k], str) for k in ("run", "day")):
                self.head = event
            case "rows" if self.head and self.rows is None and not self.questions:
                self.rows = int(event["total"])
            case "question" if event["number"] == len(self.questions) == len(self.answers):
                self.questions.append(dict(event["question"]))
            case "answer" if event["number"] == len(self.answers) == len(self.questions) - 1:
                self.answers.append([str(values) for values in event["values"]])
            case "finish" if len(self.answers) == len(self.questions) and not self.finished:
                self.finished = True
            case _:
                raise ValueError

    def check_free(self) -> None:
        """Raise if the file holds a run, which nobody asked to resume."""
        if not self.head:
            return
        run, day, count = self.head["run"], self.head["day"], len(self.answers)
        if self.finished:
            raise LedgerError(
                f"{self.path} holds the finished run {run} of {day}.",
                remedy="Its release can be made again at no cost: --resume (in Python resume=True). For a new run name"
                " another journal, or remove this one.",
            )
        closing = (
            ""
            if self.head.get("ledger") is None
            else f", and close the run: margrave ledger close LEDGER {run}"
        )
        raise LedgerError(
            f"{self.path} holds the unfinished run {run} of {day}: {counted(count, 'question')}"
            f" {'is' if count == 1 else 'are'} answered and paid for.",
            remedy="Go on with it at no further cost by the same command with --resume (in Python resume=True). Or give"
            f" it up: remove the journal{closing}. Its debits stay charged.",
        )

    def check_same(self, facts: Mapping[str, Any]) -> None:
        """Raise if the run in the file has other facts."""
        mine = json.loads(json.dumps(facts))
        for name in sorted(
            mine, key=lambda name: name == "rho"
        ):  # it follows from epsilon and delta
            value = mine[name]
            if self.head.get(name) != value:
                raise LedgerError(
                    f"{self.path} is the journal of another run: {_difference(name, self.head.get(name), value)}.",
                    remedy="Resume with all that the run was begun with, or begin a new one, which is charged anew,"
                    " with another journal. Nothing was spent.",
                )


def read_header(path: str | Path, *, resume: bool) -> Plain:
    """Return the first line of the journal to resume from, or {} for a new run.

    Raises:
        LedgerError: The journal has no run to resume, or has one and a new run is to begin.
    """
    stored = _state_of(path)
    if not resume:
        stored.check_free()
    elif not stored.head:
        raise LedgerError(
            f"The journal {path} to resume from does not exist, or is empty.",
            remedy="Name it, or leave --resume (in Python resume) out.",
        )
    return stored.head


def holds_run(path: str | Path) -> bool:
    """Return True if a journal holds a run that can be resumed.

    Raises:
        LedgerError: The journal is damaged or in use.
    """
    return bool(_state_of(path).head)


def holds_answers(path: str | Path, answers: Answers) -> bool:
    """Return True if a journal holds all of some noisy answers.

    Raises:
        LedgerError: The journal is damaged or in use.
    """
    stored = {text for texts in _state_of(path).answers for text in texts}
    return stored.issuperset(encoded(answers))


def _state_of(path: str | Path) -> JournalState:
    stored = JournalState(Path(path))
    if os.path.exists(path):
        file = ChainedFile(path, "journal", mode="rwc")
        try:
            with file.transaction(write=False) as lines:
                stored.apply(lines)
        finally:
            file.close()
    return stored


def encoded(answer: Answers) -> list[str]:
    """Return an answer as the journal keeps it: each array as 64-bit integers in base64."""
    return [
        base64.b64encode(np.ascontiguousarray(v, dtype="<i8").tobytes()).decode() for v in answer
    ]


def answer_hash(texts: Sequence[str]) -> str:
    """Return the SHA-256 of an encoded answer."""
    return hashlib.sha256(" ".join(texts).encode()).hexdigest()


class Journal:
    """The open journal of a run. No other process can open it meanwhile.

    Args:
        path: The file; made if it is missing or empty.
        run: The name of a new run.
        day: The day on which it begins.
        facts: What the run is about, plain and public. A journal with other facts is refused.
        resume: Go on with the run in the file.

    Raises:
        LedgerError: The file is damaged or in use, holds another run, or one that nobody asked to resume.
        InputError: Its folder does not exist.
    """

    def __init__(
        self, path: str | Path, run: str, day: str, facts: Mapping[str, Any], *, resume: bool
    ) -> None:
        self.path, self.stored, self._next = Path(path), JournalState(Path(path)), 0
        read_header(path, resume=resume)
        self._file = ChainedFile(path, "journal", mode="rwc", hold=True)
        try:
            with self._file.transaction() as lines:
                self.stored.apply(lines)
                if not self.stored.head:
                    self.stored.head = {"event": "run", "run": run, "day": day, **facts}
                    self._file.append(self.stored.head)
                elif not resume:
                    self.stored.check_free()
                self.stored.check_same(facts)
        except BaseException:
            self.discard() if self._file.begun else self.release()
            raise

    @property
    def run(self) -> str:
        """The run's name."""
        return str(self.stored.head["run"])

    def public_rows(self, total: int) -> None:
        """Record the public number of rows, or check that it is the recorded one."""
        if self.stored.rows is None:
            self._append({"event": "rows", "total": total})
            self.stored.rows = total
        elif self.stored.rows != total:
            raise LedgerError(
                f"{self.path} was begun on a table of {self.stored.rows:,} rows, and this one has {total:,}.",
                remedy="Resume on the table that the run was begun on.",
            )

    def recall(self, question: Question) -> Answers | None:
        """Return the stored answer of the next question; None if the journal ends before it.

        Raises:
            LedgerError: The question is not the stored one. Nothing is spent.
        """
        if self._next < len(self.stored.questions):
            stored, mine = self.stored.questions[self._next], question.plain()
            for name in ("kind", *mine):
                if stored.get(name) != mine[name]:
                    raise LedgerError(
                        f"Question {self._next + 1} differs from the one in {self.path}: its {name} differs"
                        f" (stored: {stored.get('what')}; now: {question.what}).",
                        remedy="Resume with the margrave, the libraries and the machine that began the run. Nothing was"
                        " spent.",
                    )
        elif self.stored.finished:
            raise LedgerError(
                f"{self.path} holds a finished run, which has no answer to further questions.",
                remedy="Begin a new run with another journal.",
            )
        if self._next >= len(self.stored.answers):
            return None
        self._next += 1
        return self._decoded(self._next - 1, question.shapes)

    def _decoded(self, number: int, shapes: Sequence[tuple[int, ...]]) -> Answers:
        texts = self.stored.answers[number]
        try:
            flat = [
                np.frombuffer(base64.b64decode(text, validate=True), dtype="<i8") for text in texts
            ]
            return tuple(v.astype(np.int64).reshape(s) for v, s in zip(flat, shapes, strict=True))
        except (binascii.Error, ValueError):
            raise LedgerError(
                f"Answer {number + 1} of {self.path} does not fit its question."
            ) from None

    def ask(self, question: Question) -> None:
        """Commit the question before it is charged, unless it is there."""
        if self._next == len(self.stored.questions):
            plain = question.plain()
            self._append({"event": "question", "number": self._next, "question": plain})
            self.stored.questions.append(plain)

    def store(self, answer: Answers) -> None:
        """Commit the answer to the last question, before anybody sees it."""
        texts = encoded(answer)
        self._append({"event": "answer", "number": self._next, "values": texts})
        self.stored.answers.append(texts)
        self._next += 1

    def finish(self) -> None:
        """Record that the run has ended well. Raise ``LedgerError`` if it asked less than is stored."""
        if self._next < len(self.stored.questions):
            raise LedgerError(
                f"The run ended after {counted(self._next, 'question')}, and {self.path} holds"
                f" {len(self.stored.questions)}.",
                remedy="Resume with the margrave that began the run.",
            )
        if not self.stored.finished:
            self._append({"event": "finish"})
            self.stored.finished = True

    def _append(self, event: Event) -> None:
        with self._file.transaction():
            self._file.append(event)

    def discard(self) -> None:
        """Remove a journal in which nothing was asked."""
        self.release()
        with suppress(OSError):
            self.path.unlink()

    def release(self) -> None:
        """Close the file."""
        self._file.close()


def _difference(name: str, stored: object, mine: object) -> str:
    """Name the fact that differs, with the two values if they are short."""
    if isinstance(stored, dict) and isinstance(mine, dict):
        for key in (*mine, *stored):
            if stored.get(key) != mine.get(key):
                return _difference(
                    f"{name} {key}" if name != "facts" else key, stored.get(key), mine.get(key)
                )
    if name.startswith("mechanism workload"):
        return "it serves another workload or other purposes (--workload and --for)"
    short = all(isinstance(v, str | int | float) and len(str(v)) <= 60 for v in (stored, mine))
    return f"its {name} is {stored}, not {mine}" if short else f"its {name} differs"
