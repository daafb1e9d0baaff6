"""The policy file: what the custodian allows a release to be, checked before anything is spent."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from margrave._io import read_input
from margrave.accounting.budget import Budget
from margrave.accounting.ledger import Ledger
from margrave.errors import InputError, PolicyError, did_you_mean
from margrave.unit import Unit, parse_unit, unit_name

if TYPE_CHECKING:
    from margrave.schema import Schema

RULES = (
    "version",
    "max_epsilon",
    "max_delta",
    "units",
    "forbidden_columns",
    "require_ledger",
    "ledger",
    "dataset",
)
VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The rules of a policy file; one that is not given forbids nothing.

    ``max_epsilon`` and ``max_delta`` bound the (epsilon, delta) of one release; each says nothing without the other.
    ``units`` are those allowed, written as on the command line. ``forbidden_columns`` may be no columns of a schema,
    however their letters are capitalized; a column that the schema ignores, or that only names persons, is never
    synthesized and is not forbidden. ``require_ledger`` asks for a ledger file, ``ledger`` for the one with this
    identity (``margrave ledger show`` prints it), and ``dataset`` for this data set of it. ``name`` is what errors call
    the policy.
    """

    max_epsilon: float = math.inf
    max_delta: float = 1.0
    units: tuple[str, ...] | None = None
    forbidden_columns: tuple[str, ...] = ()
    require_ledger: bool = False
    ledger: str | None = None
    dataset: str | None = None
    name: str = "The policy"

    def __post_init__(self) -> None:
        for rule in ("max_epsilon", "max_delta"):
            value = getattr(self, rule)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise InputError(
                    f"{self.name}: {rule} is {value!r}.", remedy=f"Write {rule} = a number above 0."
                )
        if (self.max_epsilon < math.inf) != (self.max_delta < 1.0):
            raise InputError(
                f"{self.name} bounds epsilon or delta alone: a large value of the other then buys anything.",
                remedy="Write both, such as max_epsilon = 1.0 and max_delta = 1e-6.",
            )
        if not isinstance(self.require_ledger, bool):
            raise InputError(
                f"{self.name}: require_ledger is not true or false.", remedy="Write one of the two."
            )
        for rule in ("ledger", "dataset"):
            value = getattr(self, rule)
            if value is not None and (not isinstance(value, str) or not value.strip()):
                raise InputError(
                    f"{self.name}: {rule} is not a text.", remedy=f'Write {rule} = "...".'
                )
        if self.units is not None:
            units = tuple(unit_name(parse_unit(u)) for u in _texts(self.name, "units", self.units))
            object.__setattr__(self, "units", units)
        columns = _texts(self.name, "forbidden_columns", self.forbidden_columns)
        object.__setattr__(self, "forbidden_columns", columns)

    @staticmethod
    def load(path: str | Path) -> Policy:
        """Return the policy in a TOML file; ``InputError`` for whatever is wrong with it. An
        unknown rule is wrong.
        """
        try:
            read = tomllib.loads(read_input(path).decode("utf-8"))
        except OSError as error:
            why = error.strerror or "no file of that name"
            raise InputError(
                f"The policy {path} cannot be read ({why}).", remedy="Name another file."
            ) from None
        except (ValueError, RecursionError):
            raise InputError(
                f"The policy {path} is not TOML in UTF-8.", remedy="Mend it."
            ) from None
        rules = read.get("policy")
        if set(read) != {"policy"} or not isinstance(rules, dict):
            raise InputError(
                f"The policy {path} is not one [policy] table.", remedy="Begin it with [policy]."
            )
        return Policy._of(path, rules)

    @staticmethod
    def _of(path: str | Path, rules: Mapping[str, Any]) -> Policy:
        for rule in rules:
            if rule not in RULES:
                raise InputError(
                    f"The policy {path} has an unknown rule {rule[:60]!r}.",
                    remedy=f"{did_you_mean(rule, RULES)}The rules are: {', '.join(RULES)}.",
                )
        version = rules.get("version")
        if isinstance(version, bool) or version != VERSION:
            raise InputError(
                f"The policy {path} has no version that this margrave reads.",
                remedy=f"Write version = {VERSION}.",
            )
        return Policy(
            **{k: v for k, v in rules.items() if k != "version"}, name=f"The policy {path}"
        )

    def check(
        self,
        schema: Schema,
        unit: Unit,
        budget: Budget,
        *,
        ledger: str | Path | None,
        dataset: str | None,
    ) -> None:
        """Raise ``PolicyError`` for the first rule that a release would break. **Privacy:** none spent."""
        if budget.epsilon > self.max_epsilon:
            self._refuse(
                "max_epsilon",
                f"epsilon is {budget.epsilon:.9g}, and {self.max_epsilon:g} is the most for one release",
                f"Ask for epsilon {self.max_epsilon:g} or less.",
            )
        if budget.delta > self.max_delta:
            self._refuse(
                "max_delta",
                f"delta is {budget.delta:.9g}, and {self.max_delta:g} is the most for one release",
                f"Ask for delta {self.max_delta:g} or less.",
            )
        if self.units is not None and unit_name(unit) not in self.units:
            allowed = ", ".join(self.units) or "none"
            self._refuse(
                "units", f"the unit is {unit_name(unit)}", f"Choose one that it allows: {allowed}."
            )
        self._check_columns(schema)
        for rule in ("require_ledger", "ledger", "dataset"):
            if getattr(self, rule) and ledger is None:
                self._refuse(
                    rule,
                    "no ledger file is given",
                    "Name it and the data set: --ledger FILE --dataset ID (in Python ledger=, dataset=).",
                )
        if (
            self.ledger is not None
            and ledger is not None
            and Ledger(ledger).identity() != self.ledger
        ):
            self._refuse(
                "ledger", f"{ledger} is another ledger than {self.ledger}", "Name that one."
            )
        if self.dataset is not None and dataset != self.dataset:
            self._refuse(
                "dataset", f"the data set is {dataset!r}", f"Charge the run to {self.dataset!r}."
            )

    def _check_columns(self, schema: Schema) -> None:
        forbidden = {_folded(c) for c in self.forbidden_columns}
        if forbidden and (named := [n for n in schema.table_names if _folded(n) in forbidden]):
            self._refuse(
                "forbidden_columns",
                f"the schema has the column {named[0]!r}",
                "Take its [[column]] table out of the schema, and name it in ignore.",
            )

    def _refuse(self, rule: str, what: str, remedy: str) -> None:
        raise PolicyError(
            f"{self.name} forbids this release by {rule}: {what}.",
            remedy=f"{remedy} Nothing was spent.",
        )


def load_policy(policy: Policy | str | Path | None) -> Policy:
    """Return the policy itself, the one in a file, or one without rules."""
    if policy is None:
        return Policy()
    return policy if isinstance(policy, Policy) else Policy.load(policy)


def _texts(name: str, rule: str, values: object) -> tuple[str, ...]:
    if not isinstance(values, list | tuple) or not all(isinstance(v, str) for v in values):
        raise InputError(
            f"{name}: {rule} is not a list of texts.", remedy=f'Write {rule} = ["..."].'
        )
    return tuple(values)


def _folded(name: str) -> str:
    return name.strip().casefold()
