"""The ledger: the cap of each data set, and all that its runs have spent, kept across processes.

A run reserves its whole budget in one transaction before its first question, so that a run that does not fit fails
before it starts, and no two can exceed the cap together. Each debit is committed before its answer is drawn, and the
hash of each answer before the answer is given. Closing a run gives back what it reserved and did not spend. A run that
was killed keeps its reservation until it is resumed to its end, or closed by the custodian.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from margrave._fields import shown_value
from margrave._io import given_path
from margrave.account import Account, Debit, LedgerHead
from margrave.accounting.budget import Budget
from margrave.accounting.ledger_checks import check_new, check_room, contradiction, dataset_of
from margrave.accounting.ledger_state import DatasetState, RunState, dataset_name, exact_text
from margrave.accounting.open_ledger import OpenLedger
from margrave.accounting.store import Event, Mode
from margrave.errors import InputError, LedgerError, MargraveError
from margrave.unit import Unit, unit_name, unit_of

#: Resuming a copy beside its journal would draw a second answer under the same debit.
ONE_JOURNAL = (
    "It was resumed from a copy of its journal too, and two answers would cost twice as much as one. Nothing was"
    " given. Go on with the journal that is ahead."
)


class Ledger:
    """A ledger file. Every call opens it, checks every line, and closes it again.

    Args:
        path: The file; ``init`` makes it.

    Raises:
        LedgerError: By every method, if the file is missing, damaged or in use.

    Privacy:
        rho-zCDP adds up over runs, also if a run depends on the results of earlier ones. So the cap bounds the loss
        of one unit by all releases of the data set together. The file holds names, amounts, days and hashes of
        answers. No method spends anything.

    Example:
        >>> from tempfile import mkdtemp
        >>> ledger = Ledger(Path(mkdtemp()) / "visits.ledger")
        >>> ledger.init("visits", unit="add-remove-row", cap=Budget.zcdp(Fraction(1, 2))).remaining
        Fraction(1, 2)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = given_path(path, "ledger", "visits.ledger")

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    def init(
        self, dataset: str, *, unit: Unit | str, cap: Budget, replace: bool = False
    ) -> DatasetState:
        """Set the cap of a data set, and make the file if it is missing.

        Args:
            dataset: A name of your choice, of 1 to 300 characters.
            unit: The unit of privacy of every run on it, or its name.
            cap: The budget of all its runs together.
            replace: Replace a cap that nothing is charged against. From its first run on a cap stays.

        Returns:
            The data set.

        Raises:
            InputError: The data set has a cap already, under this or a similar name, or ``cap`` is not a budget.
        """
        if not isinstance(cap, Budget):
            raise InputError(
                f"cap is {shown_value(cap)}, which is not a budget.",
                remedy="Give Budget.approx(epsilon, delta) or Budget.zcdp(rho), from margrave.",
            )
        name, unit = dataset_name(dataset), unit_of(unit)
        event = {
            "event": "dataset",
            "dataset": name,
            "unit": unit_name(unit),
            "rho": exact_text(cap.rho),
            "epsilon": cap.epsilon,
            "delta": cap.delta,
            **({"threshold_delta": cap.threshold_delta} if cap.threshold_delta else {}),
            "day": today(),
        }
        with self._open("rwc") as books:
            check_new(books, name, replace=replace)
            books.add(event)
            return books.state.dataset(name)

    def datasets(self) -> tuple[DatasetState, ...]:
        """Return every data set with its cap, what is charged against it, and its runs."""
        with self._open("ro") as books:
            return tuple(books.state.dataset(name) for name in books.state.datasets)

    def identity(self) -> str:
        """Return the random identity that the file was given when it was made: 16 hexadecimal digits."""
        with self._open("rw", write=False) as books:
            return books.identity

    def close(self, run: str) -> RunState:
        """Close a run that will not be resumed, and return it.

        Its debits stay charged and the rest of its reservation is given back. If it is still in progress, its next
        question is refused.

        Raises:
            InputError: The ledger has no run of this name, or it is closed.
        """
        with self._open("rw") as books:
            state = books.state.runs.get(run)
            if state is None:
                raise InputError(
                    f"{self.path} has no run {run!r}.", remedy="margrave ledger show names them."
                )
            if state.closed:
                raise InputError(f"The run {run} is closed already.", remedy="Nothing was changed.")
            books.add({"event": "close", "run": run})
            return books.state.runs[run]

    def recover(self) -> int:
        """Take back the unfinished line of a run that was interrupted, and return the number of lines."""
        with self._open("rw") as books:
            return books.lines

    def verify(self, accounts: Mapping[str, Account]) -> dict[str, str]:
        """Check that the ledger still has the lines that releases were made under.

        Args:
            accounts: The ``account`` of each release, by the name to report it by.

        Returns:
            A sentence for each release that contradicts the ledger.
        """
        with self._open("ro") as books:
            sentences = {name: contradiction(books, account) for name, account in accounts.items()}
        return {name: sentence for name, sentence in sentences.items() if sentence}

    def register_schema(self, dataset: str, schema_hash: str) -> None:
        """Register a schema, by its SHA-256, for the sealed runs on a data set.

        Raises:
            InputError: The data set is unknown.
            LedgerError: The hash is not one.
        """
        event = {"event": "schema", "dataset": dataset, "sha256": schema_hash, "day": today()}
        with self._open("rw") as books:
            if schema_hash not in dataset_of(books, dataset).schemas:
                books.add(event)

    def schema_is_registered(self, dataset: str, schema_hash: str) -> bool:
        """Return True if the schema with this SHA-256 is registered for the data set."""
        with self._open("rw", write=False) as books:
            return schema_hash in dataset_of(books, dataset).schemas

    def record_attempt(self, dataset: str, outcome: str) -> None:
        """Record a sealed run that was tried, also one that was refused.

        Args:
            dataset: The data set.
            outcome: How it ended: one of a few public texts, which hold nothing of the rows.

        Raises:
            InputError: The data set is unknown.
        """
        event = {"event": "attempt", "dataset": dataset, "outcome": outcome, "day": today()}
        with self._open("rw") as books:
            dataset_of(books, dataset)
            books.add(event)

    def check_cap(
        self,
        dataset: str | None,
        unit: Unit,
        rho: Fraction,
        delta: float | None = None,
        threshold_delta: Fraction = Fraction(0),
    ) -> None:
        """Raise what ``begin`` would raise, without reserving anything.

        ``delta`` is the one at which the error states the largest epsilon that fits (default: the cap's).
        """
        with self._open("rw", write=False) as books:
            check_room(books, dataset, unit, rho, delta, threshold_delta)

    def begin(
        self,
        dataset: str | None,
        unit: Unit,
        rho: Fraction,
        *,
        run: str | None = None,
        journal: str | None = None,
        threshold_delta: Fraction = Fraction(0),
    ) -> OpenRun:
        """Reserve ``rho`` (zCDP), and the delta of its thresholds, of the data set's cap for a new run.

        Raises:
            InputError: The data set is unknown, or its unit is another.
            BudgetError: The cap does not leave room. Nothing is reserved.
        """
        run, books, added = run or new_run(), OpenLedger(self.path, "rw"), False
        try:
            with books.kept_open(), books.transaction():
                event = {
                    "event": "open",
                    "run": run,
                    "dataset": check_room(books, dataset, unit, rho, None, threshold_delta),
                    "rho": exact_text(rho),
                    **({"delta": str(threshold_delta)} if threshold_delta else {}),
                    "day": today(),
                    "journal": journal,
                }
                books.add(event)
                added = True
        except BaseException:
            if added:  # an interrupt right after the commit leaves a reservation that nobody knows
                with suppress(MargraveError):
                    self.close(run)
            raise
        return OpenRun(books, run)

    def resume(self, run: str) -> OpenRun | None:
        """Return a run that was begun before, closed or not; None if it is not in the file."""
        books = OpenLedger(self.path, "rw")
        with books.kept_open(), books.transaction():
            exists = run in books.state.runs
        if not exists:
            books.close()
        return OpenRun(books, run) if exists else None

    @contextmanager
    def _open(self, mode: Mode, *, write: bool | None = None) -> Iterator[OpenLedger]:
        books = OpenLedger(self.path, mode)
        try:
            with books.transaction(write=mode != "ro" if write is None else write):
                yield books
        finally:
            books.close()


class OpenRun:
    """The lines of one run in an open ledger."""

    def __init__(self, books: OpenLedger, run: str) -> None:
        self._books, self._run = books, run
        self._before = len(self.state.debits)

    @property
    def state(self) -> RunState:
        """The run as of the last transaction."""
        return self._books.state.runs[self._run]

    @property
    def head(self) -> LedgerHead:
        """The position of the run's last line in the ledger, which its release states. Closing does not move it."""
        return self._books.head_of(self.state)

    def debit(self, number: int, debit: Debit) -> None:
        """Commit debit ``number`` (0, 1, …), unless it is there from before a crash.

        Raises:
            LedgerError: The run was closed meanwhile, or the stored debit is another. Nothing is spent.
        """
        event: Event = {"event": "debit", "run": self._run, "number": number, "what": debit.what}
        event |= {"rho": exact_text(debit.rho), **debit.delta_to_dict()}
        with self._books.transaction():
            stored = self.state.debits
            if number >= len(stored):
                self._add(event)
            elif stored[number] != debit:
                raise LedgerError(
                    f"Debit {number} of the run {self._run} does not match the recorded debit."
                )
            elif number >= self._before:
                raise LedgerError(
                    f"Debit {number} of the run {self._run} was written while this one was under way.",
                    remedy=ONE_JOURNAL,
                )

    def answer(self, number: int, sha256: str) -> None:
        """Commit the hash of answer ``number``, unless it is there. Only then may the answer be given.

        Raises:
            LedgerError: Another answer was given under this debit, or the run was closed meanwhile.
        """
        with self._books.transaction():
            stored = self.state.answers
            if number >= len(stored):
                self._add({"event": "answer", "run": self._run, "number": number, "sha256": sha256})
            elif stored[number] != sha256:
                raise LedgerError(
                    f"Another answer was given under debit {number} of the run {self._run}.",
                    remedy=ONE_JOURNAL,
                )

    def _add(self, event: Event) -> None:
        if self.state.closed:
            raise LedgerError(
                f"The run {self._run} was closed in {self._books.path}.", remedy="Begin a new one."
            )
        self._books.add(event)

    def finish(self) -> None:
        """Give back what was reserved and not spent, unless that was done before."""
        with self._books.transaction():
            if not self.state.closed:
                self._books.add({"event": "close", "run": self._run})

    def give_up(self) -> None:
        """Close the run after a failure. The file is opened anew, because this object may not know its state."""
        self.release()
        with suppress(InputError):  # it is closed already
            Ledger(self._books.path).close(self._run)

    def release(self) -> None:
        """Close the file; the run stays as it is."""
        self._books.close()


def new_run() -> str:
    """Return a random name for a run."""
    return secrets.token_hex(6)


def today() -> str:
    """Return the day in UTC."""
    return datetime.now(UTC).date().isoformat()
