"""The journal of one run: each question before it is answered, and each answer before it is given.

A run that was killed goes on from its journal: the mechanism runs again from its start, and the gate gives the stored
answers to the first questions, after checking that each question is the one that was answered. Nothing is measured
twice. A question that was charged and whose answer is not here was never answered to anybody, so it is answered under
the same charge.

Answers are written in a fixed width: neither the length of the file nor a disk that fills up depends on the noise.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from margrave.errors import InputError, LedgerError
from margrave.privacy.chained import ChainedFile, Event
from margrave.privacy.question import Answers, Plain, Question

FORM = "margrave-journal"


@dataclass
class Stored:
    """What a journal holds: its first line, the questions, the answers in base64, and whether the run ended."""

    path: Path
    head: Plain = field(default_factory=dict)
    questions: list[Plain] = field(default_factory=list)
    answers: list[list[str]] = field(default_factory=list)
    rows: int | None = None
    finished: bool = False

    @staticmethod
    def of(file: ChainedFile) -> Stored:
        """All of a file, whose lock is held."""
        stored = Stored(file.path)
        for line, event in file.news():
            try:
                stored._take(event)
            except (KeyError, TypeError, ValueError):
                raise LedgerError(f"{file.path}, line {line} is no line of a journal.") from None
        stored.head = file.head or {}
        if stored.head and not all(isinstance(stored.head.get(k), str) for k in ("run", "day")):
            raise LedgerError(f"{file.path} does not say which run it is of.")
        return stored

    def _take(self, event: Event) -> None:
        match event["event"]:
            case "rows" if self.rows is None and not self.questions:
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
        """Raise if there is a run in the file, which nobody asked to resume."""
        if not self.head:
            return
        run, day, count = self.head["run"], self.head["day"], len(self.answers)
        if self.finished:
            raise LedgerError(
                f"{self.path} holds the finished run {run} of {day}.",
                remedy="Its release can be made again at no cost: --resume (in Python resume=True). For a new run name"
                " another journal, or remove this one.",
            )
        closing = "" if self.head.get("ledger") is None else f", and close the run: margrave ledger close LEDGER {run}"
        raise LedgerError(
            f"{self.path} holds the unfinished run {run} of {day}: {count} questions are answered and paid for.",
            remedy="Go on with it at no further cost by the same command with --resume (in Python resume=True). Or give"
            f" it up: remove the journal{closing}. What was debited stays spent.",
        )

    def check_same(self, facts: Mapping[str, Any]) -> None:
        """Raise if the run in the file is of other facts."""
        for name, value in json.loads(json.dumps(facts)).items():
            if self.head.get(name) != value:
                raise LedgerError(
                    f"{self.path} is the journal of another run: {_difference(name, self.head.get(name), value)}.",
                    remedy="Resume with all that the run was begun with, or begin a new one with another journal."
                    " Nothing was spent.",
                )


def look(path: str | Path, *, resume: bool) -> Plain:
    """The first line of the journal to resume from, and nothing for a new run; raises where neither can be.

    **Privacy:** none spent, and nothing is written.
    """
    if not os.path.exists(path):
        if resume:
            raise LedgerError(f"There is no journal {path} to resume from.", remedy="Name it, or leave resume out.")
        return {}
    file = ChainedFile(path, FORM, write=False)
    try:
        file.lock(shared=True)
        stored = Stored.of(file)
    finally:
        file.close()
    if not resume:
        stored.check_free()
    return stored.head


class Journal:
    """The open journal of a run, which nobody else can open meanwhile.

    ``facts`` are what the run is of: a journal of others is refused. ``run`` is the run's name.
    """

    def __init__(self, path: str | Path, run: str, day: str, facts: Mapping[str, Any], *, resume: bool) -> None:
        self.path = Path(path)
        if not os.path.isdir(self.path.absolute().parent):
            raise InputError(f"The folder {self.path.parent} does not exist.", remedy="Make it first.")
        self._next = 0
        look(path, resume=resume)
        mine = False  # whether it is this object that begins it, and may take it away again
        self._file = ChainedFile(path, FORM, write=True, create=True)
        try:
            self._file.lock()
            self.stored = Stored.of(self._file)
            mine = not self.stored.head
            if mine:
                self._file.begin({"run": run, "day": day, **facts})
                self.stored.head = self._file.head or {}
            elif not resume:
                self.stored.check_free()
            self.stored.check_same(facts)
        except BaseException:
            if mine:
                self.discard()
            self._file.close()
            raise

    @property
    def run(self) -> str:
        """The run's name."""
        return str(self.stored.head["run"])

    # The run.

    def public_rows(self, total: int) -> None:
        """Write down the public number of rows, or check that it is the one of the run's beginning."""
        if self.stored.rows is None:
            self._file.append({"event": "rows", "total": total})
            self.stored.rows = total
        elif self.stored.rows != total:
            raise LedgerError(
                f"{self.path} was begun on a table of {self.stored.rows:,} rows, and this one has {total:,}.",
                remedy="Resume on the table that the run was begun on.",
            )

    def recall(self, question: Question) -> Answers | None:
        """The stored answer of the next question; None if it has none. A question other than the stored one is refused.

        **Privacy:** none spent.
        """
        if self._next < len(self.stored.questions):
            stored, mine = self.stored.questions[self._next], question.plain()
            for name in ("kind", *mine):
                if stored.get(name) != mine[name]:
                    raise LedgerError(
                        f"Question {self._next + 1} of {self.path} is another than is asked now: its {name} differs"
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
            flat = [np.frombuffer(base64.b64decode(text, validate=True), dtype="<i8") for text in texts]
            return tuple(v.astype(np.int64).reshape(s) for v, s in zip(flat, shapes, strict=True))
        except (binascii.Error, ValueError):
            raise LedgerError(f"Answer {number + 1} of {self.path} does not fit its question.") from None

    def ask(self, question: Question) -> None:
        """Have the question on the disk, before it is charged; it may be there already."""
        if self._next == len(self.stored.questions):
            plain = question.plain()
            self._file.append({"event": "question", "number": self._next, "question": plain})
            self.stored.questions.append(plain)

    def store(self, answer: Answers) -> None:
        """Have the answer to the question asked last on the disk, before anybody sees it."""
        texts = [base64.b64encode(np.ascontiguousarray(v, dtype="<i8").tobytes()).decode() for v in answer]
        self._file.append({"event": "answer", "number": self._next, "values": texts})
        self.stored.answers.append(texts)
        self._next += 1

    def finish(self) -> None:
        """Write that the run has ended well. Raises if it asked less than was stored: that was another run."""
        if self._next < len(self.stored.questions):
            raise LedgerError(
                f"The run ended after {self._next} questions, and {self.path} holds {len(self.stored.questions)}.",
                remedy="Resume with the margrave that began the run.",
            )
        if not self.stored.finished:
            self._file.append({"event": "finish"})
            self.stored.finished = True

    def discard(self) -> None:
        """Remove a journal in which nothing was asked."""
        with suppress(OSError):
            self.path.unlink()

    def release(self) -> None:
        """Let go of the file."""
        self._file.close()


def _difference(name: str, stored: object, mine: object) -> str:
    """Which fact differs; the two values where they are short."""
    if isinstance(stored, dict) and isinstance(mine, dict):
        for key in (*mine, *stored):
            if stored.get(key) != mine.get(key):
                return _difference(f"{name} {key}" if name != "facts" else key, stored.get(key), mine.get(key))
    shown = all(isinstance(v, str | int | float) and len(str(v)) <= 60 for v in (stored, mine))
    return f"its {name} is {stored}, not {mine}" if shown else f"its {name} differs"
