"""Account, provenance and model as plain data, and back, with everything checked on the way back."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from margrave.account import Account, Debit, LedgerHead
from margrave.domain import Domain
from margrave.errors import InputError, ReleaseError
from margrave.models.protocol import ModelState
from margrave.provenance import FitSpec, Provenance, PublicFacts
from margrave.release.plain_values import (
    as_flag,
    as_fraction,
    as_list,
    as_number,
    as_table,
    as_text,
    as_whole,
)
from margrave.transcript import Hindsight, Transcript
from margrave.types import AnyArray
from margrave.unit import Unit, parse_unit
from margrave.workload import AllKWay, Workload

Plain = dict[str, Any]


def _nothing(name: str) -> AnyArray:
    raise ReleaseError("An array named in the manifest is missing.")


class Shelf:
    """The arrays of a manifest under numbered names.

    Args:
        fetch: Reads an array by its name when it is first looked up.
    """

    def __init__(self, fetch: Callable[[str], AnyArray] = _nothing) -> None:
        self.arrays: dict[str, AnyArray] = {}
        self._fetch = fetch

    def put(self, array: AnyArray) -> str:
        """Store an array, and return its name."""
        name = f"{len(self.arrays):06d}"
        self.arrays[name] = array
        return name

    def get(self, name: object) -> AnyArray:
        """Return the array of that name."""
        if not isinstance(name, str):
            raise ReleaseError("An array is named by something that is not text.")
        if name not in self.arrays:
            self.arrays[name] = self._fetch(name)
        return self.arrays[name]


def account_from_plain(plain: Plain) -> Account:
    """Return the account of its plain data. ``Release.verify`` checks that it adds up."""
    # Digits of all debits together: exact sums of longer ones take minutes.
    max_amounts_characters = 200_000
    listed = as_list(plain["debits"])
    digits = sum(len(as_text(d["rho"]) + as_text(d.get("delta", ""))) for d in listed)
    if digits > max_amounts_characters:
        raise ReleaseError(f"The debits have more than {max_amounts_characters:,} digits together.")
    debits = tuple(
        Debit(as_text(d["what"]), as_fraction(d["rho"]), as_fraction(d.get("delta", "0")))
        for d in listed
    )
    return Account(
        unit=_unit(plain["unit"]),
        rho_budget=as_fraction(plain["rho_budget"]),
        epsilon=as_number(plain["epsilon"]),
        delta=as_number(plain["delta"]),
        debits=debits,
        private=as_flag(plain["private"]),
        sampler=as_text(plain["sampler"]),
        ledger=_ledger_head(plain["ledger"]) if "ledger" in plain else None,
        preflight=_preflight(plain.get("preflight", "custodian")),
        threshold_delta=as_number(plain.get("threshold_delta", 0.0)),
    )


def _ledger_head(plain: Plain) -> LedgerHead:
    charged, delta = as_text(plain["charged"]), as_text(plain.get("charged_delta", "0/1"))
    if not all(re.fullmatch("[0-9]+/[0-9]+", amount) for amount in (charged, delta)):
        raise ReleaseError("The charge against the ledger is not an exact fraction.")
    return LedgerHead(
        id=as_text(plain["id"]),
        dataset=as_text(plain["dataset"]),
        lines=as_whole(plain["lines"]),
        head=as_text(plain["head"]),
        charged=charged,
        charged_delta=delta if "charged_delta" in plain else "",
    )


def _preflight(value: object) -> str:
    if (found := as_text(value)) not in ("custodian", "sealed", "source"):
        raise ReleaseError("The account does not say who checked the rows.")
    return found


def _unit(value: object) -> Unit:
    try:
        return parse_unit(as_text(value))
    except InputError:
        raise ReleaseError("The unit of privacy is not one of margrave's units.") from None


def provenance_from_plain(plain: object, domain: Domain) -> Provenance:
    """Return the provenance of its plain data. A workload must fit the domain."""
    table = as_table(plain)
    return Provenance(
        mechanism=as_text(table["name"]),
        parameters=as_table(table["parameters"]),
        workload=_workload(table["workload"], domain),
        fit=_fit(table["fit"]),
        public=_public(table["public"]),
        refit=_fit(table["refit"]),
        stopped_early=as_flag(table["stopped_early"]),
    )


def _workload(plain: object, domain: Domain) -> Workload | AllKWay | None:
    if plain is None:
        return None
    table = as_table(plain)
    try:
        if "ways" in table:
            return AllKWay(as_whole(table["ways"]))
        pairs = [as_list(pair) for pair in as_list(table["marginals"])]
        weights = {tuple(as_text(a) for a in as_list(c)): as_number(w) for c, w in pairs}
        purposes = tuple(as_text(t) for t in as_list(table.get("purposes", [])))
        return Workload(Workload.of(domain, weights).weights, purposes)
    except (InputError, ValueError):
        raise ReleaseError("The workload of the release does not fit its schema.") from None


def _fit(plain: object) -> FitSpec | None:
    if plain is None:
        return None
    table = as_table(plain)
    name = table["name"]
    return FitSpec(
        words=as_text(table["words"]),
        name=None if name is None else as_text(name),
        parameters=as_table(table["parameters"]),
        public=_public(table["public"]),
    )


def _public(plain: object) -> PublicFacts | None:
    if plain is None:
        return None
    table = as_table(plain)
    return PublicFacts(
        rows=as_whole(table["rows"]),
        columns=tuple(as_text(c) for c in as_list(table["columns"])),
        sha256=as_text(table["sha256"]),
        attestation=as_text(table["attestation"]),
        notes=tuple(as_text(n) for n in as_list(table["notes"])),
        same_records=as_flag(table["same_records"]),
    )


def versions_from_plain(plain: object) -> dict[str, str]:
    """Return the versions of a release's libraries."""
    return {name: as_text(version) for name, version in as_table(plain).items()}


def hindsight_to_plain(hindsight: Sequence[Hindsight], shelf: Shelf) -> list[Plain]:
    """Return one table per choice; the distances go on the shelf."""
    return [
        {"selection": h.selection, "surprise": h.surprise, "drift": shelf.put(h.drift)}
        for h in hindsight
    ]


def hindsight_from_plain(
    plain: object, shelf: Shelf, transcript: Transcript
) -> tuple[Hindsight, ...]:
    """Return the hindsight of its plain data, at most once per choice of the transcript."""
    selections, found = transcript.selections, {}
    for entry in as_list(plain):
        number, drift = as_whole(entry["selection"]), shelf.get(entry["drift"])
        if number >= len(selections):
            raise ReleaseError("The release looks back on a choice that was not made.")
        fits = drift.dtype == np.float64 and drift.shape == (len(selections[number].candidates),)
        if not fits or number in found or (drift < 0).any() or np.isinf(drift).any():
            raise ReleaseError("The hindsight of a choice does not fit its candidates.")
        found[number] = Hindsight(number, as_number(entry["surprise"]), drift)
    return tuple(found.values())


def model_to_plain(state: ModelState, shelf: Shelf) -> Plain:
    """Return kind and facts; the arrays go on the shelf."""
    return {
        "kind": state.kind,
        "facts": dict(state.facts),
        "arrays": {name: shelf.put(array) for name, array in sorted(state.arrays.items())},
    }


def model_from_plain(plain: Plain, shelf: Shelf) -> ModelState:
    """Return the state of a model. The model's own loader checks its meaning."""
    facts = as_table(plain["facts"])
    arrays = {as_text(name): shelf.get(where) for name, where in plain["arrays"].items()}
    return ModelState(as_text(plain["kind"]), facts, arrays)
