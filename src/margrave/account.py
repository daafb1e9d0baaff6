"""The account of a run: its budget, its debits, and where they stand in a ledger."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from margrave._card import Card, Facts, counted
from margrave._other_names import AnswersNames
from margrave.errors import InputError, did_you_mean
from margrave.unit import Unit, rows_per_person, unit_name, unit_of


@dataclass(frozen=True, repr=False)
class Debit(Card):
    """One line of the ledger: a question in words, its price (zCDP), and the delta that a threshold spends."""

    what: str
    rho: Fraction
    delta: Fraction = Fraction(0)

    def _facts(self) -> Facts:
        return Facts(f"{self.what}, {self._price}")

    @property
    def _price(self) -> str:
        delta = f", delta {float(self.delta):.6g}" if self.delta else ""
        return f"rho {float(self.rho):.6g}{delta}"

    def delta_to_dict(self) -> dict[str, str]:
        """Return the delta as plain data, exactly; nothing if there is none."""
        return {"delta": str(self.delta)} if self.delta else {}


@dataclass(frozen=True)
class LedgerHead:
    """The position in a ledger of the last line of a run: a witness of all lines up to it.

    Attributes:
        id: The random identity of the ledger.
        dataset: The data set that the run is charged to.
        lines: The number of lines, this one included.
        head: The SHA-256 of the chain of these lines.
        charged: What they charge against the data set's cap (zCDP), reservations of open runs included, as an exact
            fraction ``n/d``. It may have thousands of digits.
        charged_delta: What they charge against the cap's delta for thresholds, likewise; "" if the cap has none.
    """

    id: str
    dataset: str
    lines: int
    head: str
    charged: str
    charged_delta: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON."""
        return {name: value for name, value in vars(self).items() if value != ""}


@dataclass(frozen=True, repr=False)
class Account(AnswersNames, Card):
    """The account of one run: its budget and its debits.

    Args:
        unit: The unit of privacy.
        rho_budget: The budget (zCDP).
        epsilon: The budget as (epsilon, delta).
        delta: The budget as (epsilon, delta).
        debits: The price of every question, in order.
        private: False if the noise did not come from the operating system's randomness, as in tests.
        sampler: The sampler of the noise, in words.
        ledger: The last line of the run in the data set's ledger; None for a run without one.
        preflight: Who checked the rows before: "custodian", by the schema's preconditions; "sealed", if no
            table was refused for its rows; "source", the class of another distribution that read them.
        threshold_delta: The part of delta that thresholds may spend; rho implies epsilon at the rest.

    Raises:
        InputError: ``unit`` is not a unit of privacy, or ``preflight`` is unknown.
    """

    unit: Unit
    rho_budget: Fraction
    epsilon: float
    delta: float
    debits: tuple[Debit, ...]
    private: bool
    sampler: str = ""
    ledger: LedgerHead | None = None
    preflight: str = "custodian"
    threshold_delta: float = 0.0

    def __post_init__(self) -> None:
        if self.preflight not in ("custodian", "sealed", "source"):
            raise InputError(f"The rows were checked by {self.preflight!r}, which is unknown.")
        object.__setattr__(self, "unit", unit_of(self.unit))

    def _hint(self, name: str) -> str:
        if name == "rho":
            return "It is account.rho_budget, of which account.rho_spent was spent."
        return did_you_mean(name, [n for n in dir(self) if not n.startswith("_")]).strip()

    def _facts(self) -> Facts:
        private = "" if self.private else ", NOT PRIVATE"
        line = (
            f"epsilon={self.epsilon:g}, delta={self.delta:g},"
            f" rho {float(self.rho_spent):.6g} of {float(self.rho_budget):.6g} spent{private}"
        )
        rows = [("protected", str(self.unit)), *((d.what, d._price) for d in self.debits)]
        return Facts(line, rows, ["account.to_dict() has the exact figures."])

    @property
    def rho_spent(self) -> Fraction:
        """The sum of the debits."""
        return sum((d.rho for d in self.debits), Fraction(0))

    @property
    def delta_spent(self) -> Fraction:
        """The sum of the deltas that thresholds spent."""
        return sum((d.delta for d in self.debits), Fraction(0))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON: the unit by its name, fractions as text that ``Fraction`` reads.

        >>> from margrave.unit import AddRemoveRow
        >>> debits = (Debit("measure sex", Fraction(1, 8)),)
        >>> Account(AddRemoveRow(), Fraction(1), 6.2, 1e-9, debits, private=True).to_dict()["debits"]
        [{'what': 'measure sex', 'rho': '1/8'}]
        """
        return {
            "unit": unit_name(self.unit),
            "rho_budget": str(self.rho_budget),
            "epsilon": self.epsilon,
            "delta": self.delta,
            **self.threshold_delta_to_dict(),
            "debits": [
                {"what": d.what, "rho": str(d.rho), **d.delta_to_dict()} for d in self.debits
            ],
            "private": self.private,
            "sampler": self.sampler,
            **({} if self.ledger is None else {"ledger": self.ledger.to_dict()}),
            **({} if self.preflight == "custodian" else {"preflight": self.preflight}),
        }

    def threshold_delta_to_dict(self) -> dict[str, float]:
        """Return the delta for thresholds as plain data; nothing if there is none."""
        return {"threshold_delta": self.threshold_delta} if self.threshold_delta else {}

    @property
    def left_out(self) -> str:
        """A sentence on the rows that were not counted; empty if the unit does not limit a person's rows."""
        most = rows_per_person(self.unit)
        if most is None:
            return ""
        return (
            f"All counts, numbers, intervals and bounds are of at most {counted(most, 'row')} of each person."
            " Further rows were left out at random before anything was counted. So totals, means and shares of the"
            " whole table can differ by more than the intervals say."
        )
