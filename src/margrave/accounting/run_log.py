"""The files of a run: the data set's ledger, the run's journal, both or neither.

The order is: question in the journal, debit in the ledger, noise drawn, answer in the journal, hash of the answer in
the ledger, answer given. Each is on the disk before the next begins. A crash can overcharge but never undercharge, and
a copy of the journal cannot give a second answer under one debit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from margrave._card import counted
from margrave.account import Debit, LedgerHead
from margrave.accounting.journal import Journal, answer_hash, encoded, read_header
from margrave.accounting.ledger import Ledger, OpenRun, new_run, today
from margrave.accounting.question import Answers, Question
from margrave.errors import InputError, LedgerError
from margrave.unit import Unit


class Books:
    """The ledger and the journal of one run, for the gate. Without either, nothing is written."""

    def __init__(self, journal: Journal | None = None, run: OpenRun | None = None) -> None:
        self._journal, self._run = journal, run
        self._new: Question | None = None  # the question that waits for an answer
        self._number = 0  # of debits
        self._ended, self._owner = False, os.getpid()

    @property
    def advice(self) -> str:
        """A sentence on what can be done after a failure."""
        if self._journal is None:
            return ""
        return f" Resume the run from {self._journal.path} once the cause is gone: nothing is charged twice."

    def note_of_loss(self, spent: Fraction, rho: Fraction) -> str:
        """Return what was spent before a failure; it is public, and without a journal lost."""
        lost = " A journal would have kept the answers for a run that goes on."
        return f"rho {float(spent):.6g} of {float(rho):.6g} had been spent.{self.advice or lost}"

    @property
    def head(self) -> LedgerHead | None:
        """The position of the run in the ledger, for the certificate."""
        return None if self._run is None else self._run.head

    def recall(self, question: Question) -> Answers | None:
        """Return the answer that a resumed run was given before; None if it is still to be drawn.

        Raises:
            LedgerError: The question is not the one that was answered, or the answer is not the one that was given.
        """
        self._check_process()
        answer = None if self._journal is None else self._journal.recall(question)
        if answer is not None and self._run is not None:
            self._run.answer(self._number, answer_hash(encoded(answer)))
        self._new = question if answer is None else None
        return answer

    def charge(self, debit: Debit) -> None:
        """Commit the debit of the last question; it may be there from before a crash."""
        self._check_process()
        if self._journal is not None and self._new is not None:
            self._journal.ask(self._new)
        if self._run is not None:
            self._run.debit(self._number, debit)
        self._number += 1

    def _check_process(self) -> None:
        if self._owner != os.getpid():
            raise LedgerError(
                "The run belongs to another process: a fork cannot go on with it. Nothing was spent.",
                remedy="Ask all questions in the process that called protect.",
            )

    def store(self, answer: Answers) -> Answers:
        """Return the answer once it, and its hash in the ledger, are committed."""
        if self._journal is not None:
            self._journal.store(answer)
        if self._run is not None:
            self._run.answer(self._number - 1, answer_hash(encoded(answer)))
        return answer

    def public_rows(self, total: int) -> None:
        """Record the number of rows, where the unit makes it public."""
        if self._journal is not None:
            self._journal.public_rows(total)

    def finish(self) -> None:
        """End the run well: what it reserved and did not spend is given back."""
        if self._ended or self._owner != os.getpid():  # a fork must not end its parent's run
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
        """End the run after a failure. With questions in a journal it can be resumed, and keeps its reservation."""
        if self._ended or self._owner != os.getpid():  # a fork must not end its parent's run
            return
        self._ended = True
        try:
            if self._journal is None or not self._journal.stored.questions:
                with suppress(LedgerError):  # the first failure is the one to report
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
    threshold_delta: Fraction = Fraction(0),
) -> dict[str, Any]:
    """Run all checks of ``open_books`` that need no write, and return the journal's header, or {}.

    ``delta`` is the one at which an error states the largest epsilon that fits.
    """
    if dataset is not None and ledger is None:
        raise InputError(
            f"The data set {dataset!r} is named without a ledger.",
            remedy="Name the ledger file: --ledger FILE, in Python ledger=.",
        )
    if resume and journal is None:
        raise InputError(
            "There is nothing to resume from.",
            remedy="Name the run's journal: --journal FILE, in Python journal=.",
        )
    header = {} if journal is None else read_header(journal, resume=resume)
    if ledger is not None and not header:
        Ledger(ledger).check_cap(dataset, unit, rho, delta, threshold_delta)
    return header


def open_books(
    unit: Unit,
    rho: Fraction,
    facts: Mapping[str, Any],
    *,
    ledger: str | Path | None,
    dataset: str | None,
    journal: str | Path | None,
    resume: bool,
    threshold_delta: Fraction = Fraction(0),
) -> Books:
    """Open the journal of a run, new or resumed, and reserve ``rho`` (zCDP) and ``threshold_delta`` in the ledger.

    Raises:
        InputError, LedgerError, BudgetError: Neither a reservation nor a new journal is left then.
    """
    check_books(
        unit, rho, ledger=ledger, dataset=dataset, journal=journal, resume=resume,
        threshold_delta=threshold_delta,
    )  # fmt: skip
    file = None if ledger is None else Ledger(ledger)
    reserved: dict[str, Any] = {"rho": rho, "threshold_delta": threshold_delta}
    if journal is None:
        return Books(run=None if file is None else file.begin(dataset, unit, **reserved))
    where = {"dataset": dataset, "ledger": None if file is None else file.identity()}
    opened = Journal(journal, new_run(), today(), {**where, **facts}, resume=resume)
    try:
        return Books(
            opened, None if file is None else _joined(file, opened, dataset, unit, reserved)
        )
    except BaseException:
        opened.release() if resume else opened.discard()
        raise


def _joined(
    file: Ledger, journal: Journal, dataset: str | None, unit: Unit, reserved: Mapping[str, Any]
) -> OpenRun:
    """Return the journal's run in the ledger: begun if it is new there, else checked against the journal."""
    run = file.resume(journal.run)
    if run is None:
        if journal.stored.questions:
            raise _older(f"{file.path} does not know the run {journal.run} of {journal.path}.")
        path = str(journal.path.absolute())
        return file.begin(dataset, unit, **reserved, run=journal.run, journal=path)
    try:
        _check_joined(run, journal, file.path)
    except BaseException:
        run.release()
        raise
    return run


def _check_joined(run: OpenRun, journal: Journal, ledger: Path) -> None:
    state, stored = run.state, journal.stored
    if len(state.debits) < len(stored.answers) or len(state.answers) < len(stored.answers) - 1:
        raise _older(
            f"{ledger} shows {counted(len(state.debits), 'debit')} and {counted(len(state.answers), 'answer')} of the"
            f" run {state.run}, and {journal.path} holds {counted(len(stored.answers), 'answer')}."
        )
    priced = [(q.get("what"), q.get("rho"), q.get("delta", "0")) for q in stored.questions]
    if len(state.debits) > len(priced) or any(
        (d.what, str(d.rho), str(d.delta)) != p for d, p in zip(state.debits, priced, strict=False)
    ):
        raise _older(
            f"{ledger} shows other debits of the run {state.run} than the questions in {journal.path}.",
            "journal",
        )
    hashes = [answer_hash(texts) for texts in stored.answers]
    if hashes[: len(state.answers)] != list(state.answers):
        raise _older(
            f"{ledger} shows that the run {state.run} gave answers that {journal.path} does not hold.",
            "journal",
        )
    if state.closed and not stored.finished:
        raise LedgerError(
            f"The run {state.run} was closed in {ledger} before it had ended.",
            remedy=f"It cannot go on. Begin a new one, with another journal than {journal.path}.",
        )


def _older(message: str, file: str = "ledger") -> LedgerError:
    return LedgerError(
        message,
        remedy=f"The {file} was put back to an older state: restore the newest one. Nothing was spent.",
    )
