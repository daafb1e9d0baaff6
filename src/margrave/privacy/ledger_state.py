"""What the lines of a ledger file add up to: data sets with their caps, runs with what they reserved and spent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from margrave.errors import InputError, LedgerError
from margrave.privacy.budget import Budget, epsilon_for
from margrave.privacy.unit import parse_unit, unit_name
from margrave.transcript import Debit

_FRACTION = re.compile(r"[0-9]{1,4000}(/[0-9]{1,4000})?")


@dataclass(frozen=True)
class RunState:
    """One run: what it reserved, what it was charged question by question, and whether it is closed.

    ``day`` is when it began (UTC); ``journal`` is where its answers are kept, if it was told to keep them.
    """

    run: str
    dataset: str
    day: str
    reserved: Fraction
    journal: str | None = None
    debits: tuple[Debit, ...] = ()
    closed: bool = False
    debited: Fraction = Fraction(0)

    @property
    def charged(self) -> Fraction:
        """What counts against the cap: all that was reserved while the run is open, what was debited afterwards."""
        return self.debited if self.closed else self.reserved


@dataclass(frozen=True)
class DatasetState:
    """One data set: its unit of privacy, its cap, and its runs in the order in which they began."""

    dataset: str
    unit: str
    cap: Budget
    day: str
    runs: tuple[RunState, ...] = ()

    @property
    def charged(self) -> Fraction:
        """The sum over the runs (zCDP adds up): never above the cap."""
        return sum((r.charged for r in self.runs), Fraction(0))

    @property
    def remaining(self) -> Fraction:
        """What a further run may ask for."""
        return self.cap.rho - self.charged

    @property
    def unfinished(self) -> tuple[RunState, ...]:
        """The runs that hold a reservation: in progress now, or killed."""
        return tuple(r for r in self.runs if not r.closed)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that fits in JSON; amounts exactly, and as decimals."""
        return {
            "dataset": self.dataset,
            "unit": self.unit,
            "since": self.day,
            "cap": {**_amount(self.cap.rho), "epsilon": self.cap.epsilon, "delta": self.cap.delta},
            "charged": {**_amount(self.charged), "epsilon": epsilon_or_zero(self.charged, self.cap.delta)},
            "remaining": _amount(self.remaining),
            "runs": [
                {
                    "run": r.run,
                    "day": r.day,
                    "state": "closed" if r.closed else "open",
                    "reserved": _amount(r.reserved),
                    "debited": _amount(r.debited),
                    "journal": r.journal,
                    "debits": [{"what": d.what, "rho": str(d.rho)} for d in r.debits],
                }
                for r in self.runs
            ],
        }


@dataclass
class LedgerState:
    """All data sets and runs, as of the last line applied."""

    datasets: dict[str, DatasetState] = field(default_factory=dict)
    runs: dict[str, RunState] = field(default_factory=dict)
    charged: dict[str, Fraction] = field(default_factory=dict)  # by data set, so that reading stays linear

    def dataset(self, name: str) -> DatasetState:
        """A data set with its runs; they are kept apart so that a debit is written in a moment."""
        return replace(
            self.datasets[name], runs=tuple(r for r in self.runs.values() if r.dataset == name)
        )

    def apply(self, event: Mapping[str, Any]) -> None:
        """Take one line into account. ``ValueError`` says what no ledger of margrave's could hold."""
        match event.get("event"):
            case "dataset":
                self._dataset(event)
            case "open":
                self._open(event)
            case "debit":
                self._debit(event)
            case "close":
                run = self._running(event)
                self.runs[run.run] = replace(run, closed=True)
                self.charged[run.dataset] -= run.reserved - run.debited
            case _:
                raise ValueError("is of an unknown kind")

    def _dataset(self, event: Mapping[str, Any]) -> None:
        name, day = _text(event, "dataset"), _text(event, "day")
        rho, epsilon, delta = _fraction(event), _number(event, "epsilon"), _number(event, "delta")
        if self.charged.get(name):
            raise ValueError("sets a cap a second time")
        try:
            cap = Budget(rho, epsilon, delta)
        except InputError:
            raise ValueError("sets a cap that contradicts itself") from None
        try:
            unit = unit_name(parse_unit(_text(event, "unit")))
        except InputError:
            raise ValueError("has no unit of privacy") from None
        self.datasets[name], self.charged[name] = DatasetState(name, unit, cap, day), Fraction(0)

    def _open(self, event: Mapping[str, Any]) -> None:
        name, run, journal = _text(event, "dataset"), _text(event, "run"), event.get("journal")
        if name not in self.datasets or run in self.runs:
            raise ValueError("begins a run twice, or of an unknown data set")
        if journal is not None and not isinstance(journal, str):
            raise ValueError("names a journal that is no text")
        self.runs[run] = RunState(run, name, _text(event, "day"), _fraction(event), journal)
        self.charged[name] += self.runs[run].reserved
        if self.charged[name] > self.datasets[name].cap.rho:
            raise ValueError("exceeds the cap")

    def _debit(self, event: Mapping[str, Any]) -> None:
        run, debit = self._running(event), Debit(_text(event, "what"), _fraction(event))
        if event.get("number") != len(run.debits) or run.debited + debit.rho > run.reserved:
            raise ValueError("is out of order, or spends more than was reserved")
        self.runs[run.run] = replace(
            run, debits=(*run.debits, debit), debited=run.debited + debit.rho
        )

    def _running(self, event: Mapping[str, Any]) -> RunState:
        run = self.runs.get(_text(event, "run"))
        if run is None or run.closed:
            raise ValueError("is about a run that is closed or unknown")
        return run


def epsilon_or_zero(rho: Fraction, delta: float) -> float:
    """``epsilon_for``, and 0 where nothing was spent."""
    return epsilon_for(rho, delta) if rho else 0.0


def exact_text(rho: Fraction) -> str:
    """A fraction as the text that is read back; one too long for that is refused before anything is drawn."""
    if max(rho.numerator, rho.denominator) >= 10**4000:
        raise InputError("An amount of rho has more than 4,000 digits.", remedy="Round it down.")
    return str(rho)


def dataset_name(name: object) -> str:
    """A usable name of a data set."""
    if not isinstance(name, str) or not name.strip() or len(name) > 300 or not name.isprintable():
        raise InputError(
            "The name of the data set is not usable.", remedy="Give 1 to 300 printable characters, not blank."
        )
    return name


def damaged(path: object, line: int, error: ValueError) -> LedgerError:
    """The error for a line that ``apply`` refused."""
    return LedgerError(f"{path}, line {line} {error}.", remedy="Restore the last sound copy of the file.")


def _amount(rho: Fraction) -> dict[str, Any]:
    return {"rho": str(rho), "decimal": float(rho)}


def _text(event: Mapping[str, Any], key: str) -> str:
    if not isinstance(text := event.get(key), str):
        raise ValueError(f"has no {key}")
    return text


def _fraction(event: Mapping[str, Any]) -> Fraction:
    text = _text(event, "rho")
    if not _FRACTION.fullmatch(text):  # Fraction itself would expand 1e999999999
        raise ValueError("has an amount that is no exact fraction")
    try:
        rho = Fraction(text)
    except ZeroDivisionError:
        raise ValueError("divides by zero") from None
    if rho <= 0:
        raise ValueError("has an amount that is not above zero")
    return rho


def _number(event: Mapping[str, Any], key: str) -> float:
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e300:
        raise ValueError(f"has no {key}")
    return float(value)
