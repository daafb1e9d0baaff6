"""The state that the lines of a ledger add up to: data sets with their caps, runs with what they reserved and spent."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction
from typing import Any, ClassVar

from margrave._card import Card, Facts
from margrave.account import Debit
from margrave.accounting.budget import Budget, epsilon_for, max_epsilon, thresholds_in_words
from margrave.errors import InputError
from margrave.unit import parse_unit, unit_name


@dataclass(frozen=True)
class RunState:
    """One run: its reservation, its debits, and the hash of each answer that was given.

    Attributes:
        run: The run's random name.
        dataset: The data set that it is charged to.
        day: The UTC day on which it began.
        reserved: Its whole budget (zCDP), held until the run is closed.
        journal: The path of its journal, if it has one.
        debits: One debit a question, in order.
        answers: The SHA-256 of each answer, written before the answer was given.
        closed: Whether the rest of the reservation was given back.
        debited: The sum of the debits.
        reserved_delta, debited_delta: The same of the delta that thresholds spend.
    """

    run: str
    dataset: str
    day: str
    reserved: Fraction
    journal: str | None = None
    debits: tuple[Debit, ...] = ()
    answers: tuple[str, ...] = ()
    closed: bool = False
    debited: Fraction = Fraction(0)
    reserved_delta: Fraction = Fraction(0)
    debited_delta: Fraction = Fraction(0)

    @property
    def charged(self) -> Fraction:
        """The amount that counts against the cap: the reservation of an open run, the debits of a closed one."""
        return self.debited if self.closed else self.reserved

    @property
    def charged_delta(self) -> Fraction:
        """The delta that counts against the cap's delta for thresholds, likewise."""
        return self.debited_delta if self.closed else self.reserved_delta

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON."""
        return {
            "run": self.run,
            "day": self.day,
            "state": "closed" if self.closed else "open",
            "reserved": _amount(self.reserved),
            "debited": _amount(self.debited),
            **_delta("reserved_delta", self.reserved_delta),
            **_delta("debited_delta", self.debited_delta),
            "journal": self.journal,
            "debits": [
                {"what": d.what, "rho": str(d.rho), **d.delta_to_dict()} for d in self.debits
            ],
        }


@dataclass(frozen=True)
class SealedAttempt:
    """A run of a sealed gate that was tried on ``day``, refused ones included, and its ``outcome``."""

    day: str
    outcome: str


@dataclass(frozen=True, repr=False)
class DatasetState(Card):
    """One data set: its unit of privacy, its cap, and its runs in the order in which they began.

    ``schemas`` are the SHA-256 of the schemas registered for a sealed gate; ``attempts`` are its runs.
    """

    dataset: str
    unit: str
    cap: Budget
    day: str
    runs: tuple[RunState, ...] = ()
    schemas: tuple[str, ...] = ()
    attempts: tuple[SealedAttempt, ...] = ()

    #: Advice for runs on columns with categories, if no delta is left for thresholds.
    reuse_learned: ClassVar[str] = (
        "A run can take the categories that an earlier release learned, at no cost: margrave schema of RELEASE -o"
        " learned.toml."
    )

    def _facts(self) -> Facts:
        spent = epsilon_or_zero(self.charged, self.cap.conversion_delta)
        line = f"{self.dataset}: epsilon {spent:.4g} of {self.cap.epsilon:.4g} charged"
        return Facts(line, self.facts)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Its unit, its cap, what is charged and what remains, in words."""
        cap, outcomes = self.cap, Counter(attempt.outcome for attempt in self.attempts)
        spent = epsilon_or_zero(self.charged, cap.conversion_delta)
        fits = max_epsilon(self.remaining, cap.conversion_delta)
        rest = visible_delta(self.remaining_delta, cap)
        learns = rest > 0
        only = "" if learns else ", if it learns no categories"
        if learns and (most := learning_delta(rest)) < learning_delta(cap.conversion_delta / 10):
            only = (
                f", if it learns no categories; one that learns them needs delta {most:g} or less"
            )
        left = (
            f"a run of epsilon {fits:g} at delta {cap.conversion_delta:g} would fit{only}"
            if fits
            else "too little for any run"
        )
        thresholds = (
            f"delta {float(self.charged_delta):g} charged, {rest:g} remains"
            f"{'' if learns or not fits else f'. {self.reuse_learned}'}"
        )
        return [
            ("protected", f"{self.unit}, since {self.day}"),
            (
                "cap",
                f"rho {float(cap.rho):.6g}: epsilon {cap.epsilon:.6g}, delta {cap.delta:g}"
                f"{thresholds_in_words(cap.threshold_delta)}",
            ),
            ("charged", f"rho {float(self.charged):.6g}: epsilon {spent:.6g} at that delta"),
            ("remaining", f"rho {float(self.remaining):.6g}: {left}"),
            *([("thresholds", thresholds)] if cap.threshold_delta else []),
            *[("schema", digest) for digest in self.schemas],
            *[("sealed runs", f"{n:,} {outcome}") for outcome, n in outcomes.items()],
        ]

    @property
    def charged(self) -> Fraction:
        """The sum over the runs (zCDP adds up): never above the cap's room."""
        return sum((r.charged for r in self.runs), Fraction(0))

    @property
    def charged_delta(self) -> Fraction:
        """The sum over the runs of the delta for thresholds: never above the cap's room."""
        return sum((r.charged_delta for r in self.runs), Fraction(0))

    @property
    def remaining(self) -> Fraction:
        """The largest budget of a further run."""
        return max(self.cap.rho - self.charged, Fraction(0))

    @property
    def remaining_delta(self) -> Fraction:
        """The most delta that thresholds of a further run may spend."""
        return max(Fraction(self.cap.threshold_delta) - self.charged_delta, Fraction(0))

    @property
    def unfinished(self) -> tuple[RunState, ...]:
        """The runs that hold a reservation: in progress now, or killed."""
        return tuple(r for r in self.runs if not r.closed)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON; amounts exactly, and as decimals."""
        spent = epsilon_or_zero(self.charged, self.cap.conversion_delta)
        thresholds = Fraction(self.cap.threshold_delta)
        return {
            "dataset": self.dataset,
            "unit": self.unit,
            "since": self.day,
            "cap": {
                **_amount(self.cap.rho),
                "epsilon": self.cap.epsilon,
                "delta": self.cap.delta,
                **_delta("threshold_delta", thresholds),
            },
            "charged": {
                **_amount(self.charged),
                "epsilon": spent,
                **_delta("threshold_delta", self.charged_delta, thresholds),
            },
            "remaining": {
                **_amount(self.remaining),
                **_delta("threshold_delta", self.remaining_delta, thresholds),
            },
            "runs": [r.to_dict() for r in self.runs],
            "schemas": list(self.schemas),
            "attempts": [{"day": a.day, "outcome": a.outcome} for a in self.attempts],
        }


def visible_delta(left: Fraction, cap: Budget) -> float:
    """Return the delta that a cap leaves for thresholds; 0 for a rest that is due to rounding."""
    return float(left) if left > Fraction(cap.threshold_delta) / 2**40 else 0.0


def learning_delta(left: float) -> float:
    """Return the largest delta of a run whose thresholds, a tenth of it, may spend ``left``; three digits, rounded
    down.
    """
    with localcontext(prec=3, rounding=ROUND_DOWN):
        return float(+Decimal(10 * left))


@dataclass
class LedgerState:
    """All data sets and runs, as of the last line applied.

    ``charged`` and ``charged_delta`` are the running sums of each data set.
    """

    datasets: dict[str, DatasetState] = field(default_factory=dict)
    runs: dict[str, RunState] = field(default_factory=dict)
    charged: dict[str, Fraction] = field(default_factory=dict)
    charged_delta: dict[str, Fraction] = field(default_factory=dict)
    attempts: dict[str, list[SealedAttempt]] = field(default_factory=dict)

    def dataset(self, name: str) -> DatasetState:
        """Return a data set with its runs and attempts, which are kept apart so that a line is applied quickly."""
        runs = tuple(r for r in self.runs.values() if r.dataset == name)
        attempts = tuple(self.attempts.get(name, ()))
        return replace(self.datasets[name], runs=runs, attempts=attempts)

    def apply(self, event: Mapping[str, Any]) -> dict[str, str]:
        """Apply the event of one line, and return the running sums that the line has to state, if any.

        Raises:
            ValueError: No ledger could hold this line; the text completes "line 7 ...".
        """
        match event.get("event"):
            case "dataset":
                return self._sum(self._dataset(event))
            case "open":
                return self._sum(self._open(event))
            case "debit":
                self._debit(event)
            case "answer":
                self._answer(event)
            case "close":
                run = self._running(event)
                self.runs[run.run] = replace(run, closed=True)
                self.charged[run.dataset] -= run.reserved - run.debited
                self.charged_delta[run.dataset] -= run.reserved_delta - run.debited_delta
                return self._sum(run.dataset)
            case "schema":
                state = self._of_dataset(event)
                schemas = (*state.schemas, _sha256(event))
                self.datasets[state.dataset] = replace(state, schemas=schemas)
            case "attempt":
                attempt = SealedAttempt(_text(event, "day"), _text(event, "outcome"))
                self.attempts.setdefault(self._of_dataset(event).dataset, []).append(attempt)
            case _:
                raise ValueError("is of an unknown kind")
        return {}

    def _sum(self, dataset: str) -> dict[str, str]:
        sums = {"charged": exact_sum(self.charged[dataset])}
        if self.datasets[dataset].cap.threshold_delta:
            sums["charged_delta"] = exact_sum(self.charged_delta[dataset])
        return sums

    def _dataset(self, event: Mapping[str, Any]) -> str:
        name, day = _text(event, "dataset"), _text(event, "day")
        rho, epsilon, delta = _fraction(event), _number(event, "epsilon"), _number(event, "delta")
        thresholds = _number(event, "threshold_delta") if "threshold_delta" in event else 0.0
        if self.charged.get(name):
            raise ValueError("sets a cap a second time")
        try:
            cap = Budget(rho, epsilon, delta, thresholds)
        except InputError:
            raise ValueError("sets a cap that contradicts itself") from None
        try:
            unit = unit_name(parse_unit(_text(event, "unit")))
        except InputError:
            raise ValueError("has no unit of privacy") from None
        before = self.datasets.get(name, DatasetState(name, unit, cap, day))
        self.datasets[name] = replace(before, unit=unit, cap=cap, day=day)
        self.charged[name] = self.charged_delta[name] = Fraction(0)
        return name

    def _open(self, event: Mapping[str, Any]) -> str:
        name, run = self._of_dataset(event).dataset, _text(event, "run")
        journal = event.get("journal")
        if run in self.runs:
            raise ValueError("begins a run twice")
        if journal is not None and not isinstance(journal, str):
            raise ValueError("names a journal that is not text")
        state = RunState(run, name, _text(event, "day"), _fraction(event), journal)
        self.runs[run] = replace(state, reserved_delta=_delta_of(event))
        cap = self.datasets[name].cap
        self.charged[name] += self.runs[run].reserved
        self.charged_delta[name] += self.runs[run].reserved_delta
        if self.charged[name] > cap.room or self.charged_delta[name] > cap.threshold_room:
            raise ValueError("exceeds the cap")
        return name

    def _debit(self, event: Mapping[str, Any]) -> None:
        run = self._running(event)
        debit = Debit(_text(event, "what"), _fraction(event), _delta_of(event))
        debited, deltas = run.debited + debit.rho, run.debited_delta + debit.delta
        exceeds = debited > run.reserved or deltas > run.reserved_delta
        if event.get("number") != len(run.debits) or exceeds:
            raise ValueError("is out of order, or spends more than was reserved")
        debits = (*run.debits, debit)
        self.runs[run.run] = replace(run, debits=debits, debited=debited, debited_delta=deltas)

    def _answer(self, event: Mapping[str, Any]) -> None:
        run, number = self._running(event), event.get("number")
        if number != len(run.answers) or number >= len(run.debits):
            raise ValueError("is out of order, or gives an answer that was not debited")
        self.runs[run.run] = replace(run, answers=(*run.answers, _sha256(event)))

    def _running(self, event: Mapping[str, Any]) -> RunState:
        run = self.runs.get(_text(event, "run"))
        if run is None or run.closed:
            raise ValueError("is about a run that is closed or unknown")
        return run

    def _of_dataset(self, event: Mapping[str, Any]) -> DatasetState:
        state = self.datasets.get(_text(event, "dataset"))
        if state is None:
            raise ValueError("is about an unknown data set")
        return state


def epsilon_or_zero(rho: Fraction, delta: float) -> float:
    """Return ``epsilon_for(rho, delta)``, or 0 if nothing was spent."""
    return epsilon_for(rho, delta) if rho else 0.0


def exact_text(rho: Fraction) -> str:
    """Return an amount as text that can be read back. Raise ``InputError`` for one of more than 4,000 digits."""
    if max(rho.numerator, rho.denominator) >= 10**4000:
        raise InputError("An amount of rho has more than 4,000 digits.", remedy="Round it down.")
    return str(rho)


def exact_sum(rho: Fraction) -> str:
    """Return a sum of amounts exactly, however many digits it has."""
    return "/".join(f"{Decimal(part):f}" for part in rho.as_integer_ratio())


def dataset_name(name: object) -> str:
    """Return a usable name of a data set, or raise ``InputError``."""
    if not isinstance(name, str) or not name.strip() or len(name) > 300 or not name.isprintable():
        raise InputError(
            "The name of the data set is not usable.",
            remedy="Give 1 to 300 printable characters, not blank.",
        )
    return name


def _amount(rho: Fraction) -> dict[str, Any]:
    return {"rho": str(rho), "decimal": float(rho)}


def _delta(name: str, amount: Fraction, column: Fraction | None = None) -> dict[str, Any]:
    """Return a delta for thresholds as plain data; nothing if ``column``, or it, is 0."""
    exact = {"exact": str(amount), "decimal": float(amount)}
    return {name: exact} if (amount if column is None else column) else {}


def _text(event: Mapping[str, Any], key: str) -> str:
    if not isinstance(text := event.get(key), str):
        raise ValueError(f"has no {key}")
    return text


def _sha256(event: Mapping[str, Any]) -> str:
    if not re.fullmatch("[0-9a-f]{64}", text := _text(event, "sha256")):
        raise ValueError("has no SHA-256")
    return text


def _delta_of(event: Mapping[str, Any]) -> Fraction:
    return _fraction(event, "delta") if "delta" in event else Fraction(0)


def _fraction(event: Mapping[str, Any], key: str = "rho") -> Fraction:
    fraction = re.compile(r"[0-9]{1,4000}(/[0-9]{1,4000})?")
    text = _text(event, key)
    if not fraction.fullmatch(text):  # Fraction itself would expand 1e999999999
        raise ValueError("has an amount that is not an exact fraction")
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
