"""The ledger file: what all runs on a data set may spend together, and have spent, kept across processes.

A run reserves its whole budget under the lock before it asks anything, so that one which would not fit fails before it
starts, and no two can exceed the cap together. Each debit is then written, and synced, before its answer is drawn.
Closing a run gives back what it reserved and did not spend. A run that was killed keeps its reservation until it is
resumed to its end, or closed by the custodian.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from unicodedata import normalize

from margrave.errors import BudgetError, InputError, LedgerError
from margrave.privacy.budget import Budget, affordable
from margrave.privacy.chained import ChainedFile, Event
from margrave.privacy.ledger_state import (
    DatasetState,
    LedgerState,
    RunState,
    damaged,
    dataset_name,
    exact_text,
)
from margrave.privacy.unit import Unit, parse_unit, unit_name, unit_of
from margrave.transcript import Debit

FORM = "margrave-ledger"


class LedgerFile:
    """A ledger file at ``path``. Every call opens it, locks it, reads it whole and closes it again.

    **Privacy:** rho-zCDP adds up over runs, also when a run depends on the results of those before, so the cap bounds
    the loss of one unit by all releases of the data set together. The file holds names, amounts and days, nothing of
    any row. Raises ``LedgerError`` for a file that is missing, damaged or locked.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def init(self, dataset: str, *, unit: Unit | str, cap: Budget, replace: bool = False) -> DatasetState:
        """Set the cap of a data set for one unit of privacy, a unit or its name; the file is made if it is not there.

        A cap that something was charged against stays for good; before that, ``replace`` sets another in its place.
        Raises ``InputError`` if the data set has a cap already. **Privacy:** none spent.
        """
        name, unit = dataset_name(dataset), unit_of(unit)
        event = {
            "event": "dataset",
            "dataset": name,
            "unit": unit_name(unit),
            "rho": exact_text(cap.rho),
            "epsilon": cap.epsilon,
            "delta": cap.delta,
            "day": _today(),
        }
        if not os.path.isdir(self.path.absolute().parent):
            raise InputError(f"The folder {self.path.parent} does not exist.", remedy="Make it first.")
        with _Books.opened(self.path, create=True) as books, books.locked():
            _check_new(books, name, replace=replace)
            books.add(event)
            return books.state.dataset(name)

    def datasets(self) -> tuple[DatasetState, ...]:
        """Every data set with its cap, what is charged against it, and its runs. **Privacy:** none spent."""
        with _Books.opened(self.path, write=False) as books, books.locked(shared=True):
            return tuple(books.state.dataset(name) for name in books.state.datasets)

    def close(self, run: str) -> RunState:
        """Close a run that will not be resumed: what it was debited stays charged, the rest of its reservation is
        given back. If it is still in progress, its next question is refused. **Privacy:** none spent.
        """
        with _Books.opened(self.path) as books, books.locked():
            found = books.state.runs.get(run)
            if found is None:
                raise InputError(f"{self.path} has no run {run!r}.", remedy="margrave ledger show names them.")
            if found.closed:
                raise InputError(f"The run {run} is closed already.", remedy="Nothing was changed.")
            books.add({"event": "close", "run": run})
            return books.state.runs[run]

    def identity(self) -> str:
        """The random identity that the file was given when it was made."""
        with _Books.opened(self.path, write=False) as books, books.locked(shared=True):
            return books.identity

    def check_room(self, dataset: str | None, unit: Unit, rho: Fraction, delta: float | None = None) -> None:
        """Raise what ``begin`` would, without reserving anything. **Privacy:** none spent.

        ``delta`` is the one at which an error says what epsilon would fit; the cap's own without.
        """
        with _Books.opened(self.path, write=False) as books, books.locked(shared=True):
            _room(books, dataset, unit, rho, delta)

    def begin(
        self, dataset: str | None, unit: Unit, rho: Fraction, *, run: str | None = None, journal: str | None = None
    ) -> OpenRun:
        """Reserve ``rho`` of the data set's cap for a new run.

        Raises ``InputError`` for an unknown data set or another unit than its own, ``BudgetError`` if the cap does not
        leave room: nothing is reserved then. **Privacy:** none spent yet.
        """
        books = _Books(self.path)
        try:
            with books.locked():
                name = _room(books, dataset, unit, rho)
                run = run or new_run()
                books.add(
                    {
                        "event": "open",
                        "run": run,
                        "dataset": name,
                        "rho": exact_text(rho),
                        "day": _today(),
                        "journal": journal,
                    }
                )
            return OpenRun(books, run)
        except BaseException:
            books.close()
            raise

    def resume(self, run: str) -> OpenRun | None:
        """A run that was begun before, closed or not; None if it is not in the file."""
        books = _Books(self.path)
        try:
            with books.locked():
                known = run in books.state.runs
        except BaseException:
            books.close()
            raise
        if not known:
            books.close()
        return OpenRun(books, run) if known else None


class OpenRun:
    """One run's side of the ledger file."""

    def __init__(self, books: _Books, run: str) -> None:
        self._books, self._run = books, run
        self._before = len(self.state.debits)

    @property
    def state(self) -> RunState:
        """The run as of the last look at the file."""
        return self._books.state.runs[self._run]

    def debit(self, number: int, debit: Debit) -> None:
        """Have debit ``number`` (0, 1, …) on the disk; one that is there from before a crash is not written again.

        Raises ``LedgerError`` if the run was closed meanwhile or the stored debit is another: nothing is spent then.
        """
        event: Event = {"event": "debit", "run": self._run, "number": number}
        event |= {"what": debit.what, "rho": exact_text(debit.rho)}
        with self._books.locked():
            stored = self.state.debits
            if number < len(stored):
                if stored[number] != debit:
                    raise LedgerError(f"Debit {number} of the run {self._run} is another than this one.")
                if number >= self._before:
                    raise LedgerError(
                        f"Debit {number} of the run {self._run} was written while this one was under way.",
                        remedy="It was resumed from a copy of its journal too: two answers would cost as much as one."
                        " Nothing was spent. Go on with one of the two alone.",
                    )
                return
            if self.state.closed:
                raise LedgerError(
                    f"The run {self._run} was closed in {self._books.path}.", remedy="Begin a new one."
                )
            self._books.add(event)

    def finish(self) -> None:
        """Give back what was reserved and not spent, unless that was done before."""
        with self._books.locked():
            if not self.state.closed:
                self._books.add({"event": "close", "run": self._run})

    def give_up(self) -> None:
        """Close the run after a failure. The file is opened anew: what this object knows of it may be wrong."""
        self.release()
        with suppress(InputError):  # it is closed already
            LedgerFile(self._books.path).close(self._run)

    def release(self) -> None:
        """Let go of the file; the run stays as it is."""
        self._books.close()


class _Books:
    """The open file and what its lines add up to."""

    def __init__(self, path: Path, *, write: bool = True, create: bool = False) -> None:
        self._create, self.path, self.state = create, path, LedgerState()
        self._sound = True  # whether the state is that of the file
        self._file = ChainedFile(path, FORM, write=write, create=create)

    @staticmethod
    @contextmanager
    def opened(path: Path, *, write: bool = True, create: bool = False) -> Iterator[_Books]:
        books = _Books(path, write=write, create=create)
        try:
            yield books
        finally:
            books.close()

    @contextmanager
    def locked(self, *, shared: bool = False) -> Iterator[None]:
        """Hold the file, with every line in it taken into account."""
        if not self._sound:
            raise LedgerError(f"{self.path} could not be written a moment ago.", remedy="Open it anew.")
        with self._file.locked(shared=shared):
            for line, event in self._file.news():
                try:
                    self.state.apply(event)
                except ValueError as error:
                    raise damaged(self.path, line, error) from None
            if self._file.head is None:
                if not self._create:
                    raise LedgerError(f"{self.path} is empty.", remedy="Begin it with margrave ledger init.")
                self._file.begin()
            yield

    @property
    def identity(self) -> str:
        assert self._file.head is not None
        return str(self._file.head["id"])

    def add(self, event: Event) -> None:
        """Write a line that adds up with those before. If it fails half way, this object does nothing more."""
        self._sound = False
        try:
            self.state.apply(event)
        except ValueError as error:
            raise LedgerError(f"What was to be written to {self.path} {error}.") from None
        self._file.append(event)
        self._sound = True

    def close(self) -> None:
        self._file.close()


def new_run() -> str:
    """A name that no other run has."""
    return secrets.token_hex(6)


def _check_new(books: _Books, name: str, *, replace: bool) -> None:
    """Refuse a second cap, unless nothing was charged against the first and another is asked for."""
    if name not in books.state.datasets:
        alike = next((n for n in books.state.datasets if _folded(n) == _folded(name)), None)
        if alike is not None:
            raise InputError(
                f"{books.path} has a cap for {alike!r}, which {name!r} differs from by case, blanks or the form of its"
                " letters.",
                remedy=f"Two caps for one table bound nothing: name it {alike!r}, or give another table another name.",
            )
        return
    if books.state.charged[name]:
        raise InputError(
            f"{books.path} has a cap for {name!r} already, and runs are charged against it.",
            remedy="From its first run on a cap stays as it is.",
        )
    if not replace:
        raise InputError(
            f"{books.path} has a cap for {name!r} already; nothing is charged against it.",
            remedy="To set another in its place, say so: --replace, in Python replace=True.",
        )


def _room(books: _Books, dataset: str | None, unit: Unit, rho: Fraction, delta: float | None = None) -> str:
    """The data set's name, if it has a cap for this unit that leaves room."""
    known = ", ".join(repr(n) for n in books.state.datasets) or "none"
    if dataset is None:
        raise InputError(
            f"A ledger is given without saying which data set of it this is: {known}.", remedy="Name the data set."
        )
    if dataset not in books.state.datasets:
        raise InputError(
            f"{books.path} has no data set {dataset!r}; it has: {known}.",
            remedy="Set its cap first, with margrave ledger init.",
        )
    found = books.state.dataset(dataset)
    if found.unit != unit_name(unit):
        raise InputError(
            f"The cap of {dataset!r} is for the unit to {parse_unit(found.unit)}; this run's unit is to {unit}.",
            remedy="Keep to that unit. A cap for this one under another name (margrave ledger init) does not bound the"
            " two together: both are spent on the same rows, and docs/ledger.md tells what they come to."
            f"{'' if found.charged else ' Nothing is charged yet: --replace sets one for this unit instead.'}",
        )
    if rho > found.remaining:
        held = found.unfinished
        waiting = (
            f" Of that, {float(sum(r.reserved for r in held)):.6g} is held by unfinished runs"
            f" ({', '.join(r.run for r in held[:3])}{', …' if len(held) > 3 else ''})."
        )
        fits, at = affordable(found.remaining, delta or found.cap.delta), f"{delta or found.cap.delta:g}"
        most = f"at delta {at} that is epsilon {fits:g} at most" if fits else "that is too little for any run"
        raise BudgetError(
            f"The cap of {dataset!r} is rho = {float(found.cap.rho):.6g}, of which {float(found.charged):.6g} is"
            f" charged; this run needs {float(rho):.6g} and {float(found.remaining):.6g} remains: {most}."
            f"{waiting if held else ''}",
            remedy="Spend less, or resume or close the unfinished runs." if held else "Spend less.",
        )
    return dataset


def _folded(name: str) -> str:
    """A name for comparison."""
    return normalize("NFKC", name).strip().casefold()


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
