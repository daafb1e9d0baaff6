"""Where the gate writes down what it does: the data set's ledger file, the run's journal, both or neither.

The order is: question in the journal, debit in the ledger file, noise drawn, answer in the journal, answer given; each
is on the disk before the next begins. So a kill leaves a debit too many, never an answer too many.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from margrave.errors import InputError, LedgerError
from margrave.privacy.journal import Journal, look
from margrave.privacy.ledger_file import LedgerFile, OpenRun, new_run
from margrave.privacy.question import Answers, Question
from margrave.privacy.unit import Unit
from margrave.transcript import Debit


class Books:
    """The books of one run, for the gate. Without a ledger file and a journal, nothing is written anywhere."""

    def __init__(self, journal: Journal | None = None, run: OpenRun | None = None) -> None:
        self._journal, self._run = journal, run
        self._new: Question | None = None  # the question that waits for an answer
        self._number = 0
        self._ended, self._owner = False, os.getpid()

    @property
    def advice(self) -> str:
        """What can be done after a failure, in words."""
        if self._journal is None:
            return ""
        return f" Resume the run from {self._journal.path} once the cause is gone: nothing is charged twice."

    def recall(self, question: Question) -> Answers | None:
        """The answer that a resumed run was given before; None if it is still to be drawn.

        Raises ``LedgerError`` if the question is not the one that was answered. **Privacy:** none spent.
        """
        self._check_process()
        answer = None if self._journal is None else self._journal.recall(question)
        self._new = question if answer is None else None
        return answer

    def charge(self, debit: Debit) -> None:
        """Have the debit of the question just asked on the disk; it may be there from before a crash."""
        self._check_process()
        if self._journal is not None and self._new is not None:
            self._journal.ask(self._new)
        if self._run is not None:
            self._run.debit(self._number, debit)
        self._number += 1

    def _check_process(self) -> None:
        """A fork has a copy of the run: each of the two would spend all that is left of its budget."""
        if self._owner != os.getpid():
            raise LedgerError(
                "The run belongs to another process: a fork cannot go on with it. Nothing was spent.",
                remedy="Ask all questions in the process that called protect.",
            )

    def store(self, answer: Answers) -> Answers:
        """The answer, once it is on the disk."""
        if self._journal is not None:
            self._journal.store(answer)
        return answer

    def public_rows(self, total: int) -> None:
        """Write down the number of rows, where the unit makes it public."""
        if self._journal is not None:
            self._journal.public_rows(total)

    def finish(self) -> None:
        """The run ended well: what it reserved and did not spend is given back."""
        if self._ended or self._owner != os.getpid():  # a forked child must not end its parent's run
            return
        self._ended = True
        try:
            if self._journal is not None:
                self._journal.finish()
            if self._run is not None:
                self._run.finish()
        finally:
            self._release()

    def abandon(self) -> None:
        """The run ended otherwise. With answers in a journal it can be resumed, and keeps its reservation."""
        if self._ended or self._owner != os.getpid():  # a forked child must not end its parent's run
            return
        self._ended = True
        try:
            if self._journal is None or not self._journal.stored.questions:
                with suppress(LedgerError):  # what went wrong before is what should be heard of
                    if self._run is not None:
                        self._run.give_up()
                    if self._journal is not None:
                        self._journal.discard()
        finally:
            self._release()

    def _release(self) -> None:
        if self._run is not None:
            self._run.release()
        if self._journal is not None:
            self._journal.release()


def check_books(
    unit: Unit,
    rho: Fraction,
    *,
    ledger: str | Path | None,
    dataset: str | None,
    journal: str | Path | None,
    resume: bool,
    delta: float | None = None,
) -> dict[str, Any]:
    """Raise what ``open_books`` would, as far as it can be told without writing; the journal's first line, if any.

    ``delta`` is for the words of an error alone: at which an epsilon that would fit is told.

    **Privacy:** none spent.
    """
    if dataset is not None and ledger is None:
        raise InputError(f"The data set {dataset!r} is named without a ledger.", remedy="Name the ledger file.")
    if resume and journal is None:
        raise InputError("There is nothing to resume from.", remedy="Name the run's journal.")
    head = {} if journal is None else look(journal, resume=resume)
    if ledger is not None and not head:
        LedgerFile(ledger).check_room(dataset, unit, rho, delta)
    return head


def open_books(
    unit: Unit,
    rho: Fraction,
    facts: Mapping[str, Any],
    *,
    ledger: str | Path | None,
    dataset: str | None,
    journal: str | Path | None,
    resume: bool,
) -> Books:
    """The books of a run, new or resumed: the journal locked, and ``rho`` reserved in the ledger file.

    Raises ``InputError``, ``LedgerError`` or ``BudgetError``, and leaves neither a reservation nor a new journal then.
    **Privacy:** none spent yet.
    """
    check_books(unit, rho, ledger=ledger, dataset=dataset, journal=journal, resume=resume)
    file = None if ledger is None else LedgerFile(ledger)
    if journal is None:
        return Books(run=None if file is None else file.begin(dataset, unit, rho))
    where = {"dataset": dataset, "ledger": None if file is None else file.identity()}
    day = datetime.now(UTC).date().isoformat()
    opened = Journal(journal, new_run(), day, {**where, **facts}, resume=resume)
    try:
        return Books(opened, None if file is None else _joined(file, opened, dataset, unit, rho))
    except BaseException:
        if not resume:
            opened.discard()
        opened.release()
        raise


def _joined(file: LedgerFile, journal: Journal, dataset: str | None, unit: Unit, rho: Fraction) -> OpenRun:
    """The journal's run in the ledger file: begun now if it is new there, and checked against the journal if not."""
    run = file.resume(journal.run)
    if run is None:
        if journal.stored.questions:
            raise LedgerError(
                f"{file.path} does not know the run {journal.run} of {journal.path}.",
                remedy="It was put back to an older state: restore the newest one. Nothing was spent.",
            )
        return file.begin(dataset, unit, rho, run=journal.run, journal=str(journal.path.absolute()))
    try:
        _check_joined(run, journal, file.path)
    except BaseException:
        run.release()
        raise
    return run


def _check_joined(run: OpenRun, journal: Journal, ledger: Path) -> None:
    state, stored = run.state, journal.stored
    if len(state.debits) < len(stored.answers):
        raise LedgerError(
            f"{ledger} shows {len(state.debits)} debits of the run {state.run}, and {journal.path} holds"
            f" {len(stored.answers)} answers.",
            remedy="The ledger was put back to an older state: restore the newest one. Nothing was spent.",
        )
    priced = [(q.get("what"), q.get("rho")) for q in stored.questions]
    if len(state.debits) > len(priced) or any(
        (d.what, str(d.rho)) != p for d, p in zip(state.debits, priced, strict=False)
    ):
        raise LedgerError(
            f"{ledger} shows other debits of the run {state.run} than the questions in {journal.path}.",
            remedy="The journal was put back to an older state: restore the newest one. Nothing was spent.",
        )
    if state.closed and not stored.finished:
        raise LedgerError(
            f"The run {state.run} was closed in {ledger} before it had ended.",
            remedy=f"It cannot go on. Begin a new one, with another journal than {journal.path}.",
        )
