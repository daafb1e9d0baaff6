"""An open ledger: its lines, and the state that they add up to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from margrave.account import LedgerHead
from margrave.accounting.ledger_state import LedgerState, RunState, exact_sum
from margrave.accounting.store import ChainedFile, Event, Line, Mode, last_copy
from margrave.errors import LedgerError


class OpenLedger:
    """An open ledger file, and the state that its lines add up to."""

    def __init__(self, path: Path, mode: Mode) -> None:
        self.path, self.state = path, LedgerState()
        self._last: dict[str, tuple[int, str, Fraction, Fraction]] = {}
        self._uncommitted: dict[str, tuple[int, str, Fraction, Fraction]] = {}
        self._file = ChainedFile(path, "ledger", mode=mode)

    @property
    def identity(self) -> str:
        """The random identity of the file."""
        return self._file.id

    @property
    def lines(self) -> int:
        """The number of lines."""
        return self._file.lines

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[None]:
        """Hold the file, with the lines of all other processes applied to the state."""
        with self._file.transaction(write=write) as lines:
            for line in lines:
                try:
                    sums = self.state.apply(line[1])
                    if any(line[1].get(name) != total for name, total in sums.items()):
                        raise ValueError("states another sum than its lines come to")
                except ValueError as error:
                    raise LedgerError(
                        f"{self.path}, line {line[0]} {error}.",
                        remedy=f"Restore {last_copy('ledger')}",
                    ) from None
                self._mark(line)
            yield
        self._last |= self._uncommitted
        self._uncommitted = {}

    def add(self, event: Event) -> None:
        """Append a line that is consistent with the lines before, with the running sum. In a transaction."""
        try:
            event = event | self.state.apply(event)
        except ValueError as error:
            raise LedgerError(f"A line to be written to {self.path} {error}.") from None
        self._mark(self._file.append(event))

    def _mark(self, line: Line) -> None:
        number, event, head = line
        if event["event"] in ("open", "debit", "answer"):
            run = self.state.runs[event["run"]]
            charged = self.state.charged[run.dataset], self.state.charged_delta[run.dataset]
            self._uncommitted[run.run] = (number, head, *charged)

    def head_of(self, run: RunState) -> LedgerHead:
        """Return the position of a run's last committed line before its closing."""
        number, head, charged, delta = self._last[run.run]
        has_delta = bool(self.state.datasets[run.dataset].cap.threshold_delta)
        sums = exact_sum(charged), exact_sum(delta) if has_delta else ""
        return LedgerHead(self.identity, run.dataset, number, head, *sums)

    def line(self, number: int) -> tuple[Event, str]:
        """Return the event and the head of a line, in a transaction."""
        return self._file.line(number)

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """Close the file if the block fails."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()
