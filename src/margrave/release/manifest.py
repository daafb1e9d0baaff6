"""Transcript, account and model as plain data, and back, with everything checked against the domain on the way back."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.errors import InputError, ReleaseError
from margrave.marginal import HalfSpace, LinearQuery, Queries, Query, SingleQuery
from margrave.models.protocol import ModelState
from margrave.schema.domain import Domain
from margrave.transcript import (
    Account,
    Answer,
    Debit,
    Entry,
    Hindsight,
    Measurement,
    PublicReading,
    PublicTotal,
    QuerySelection,
    Selection,
    Transcript,
)
from margrave.typing import AnyArray, Clique

#: Digits of all debits together: exact sums of longer ones take minutes.
MAX_AMOUNTS_CHARACTERS = 200_000
_FRACTION = re.compile(r"[0-9]{1,4000}(/[0-9]{1,4000})?")

#: Counts are 64-bit integers.
MAX_COUNT = 2**63 - 1
#: The range of noise scales, in records, that the samplers accept.
MIN_SCALE, MAX_SCALE = 2.0**-100, 2.0**50
#: The largest scale of a public marginal's cell: its square is still a finite number.
MAX_PUBLIC_SCALE = 2.0**500
#: The range of the terms of a score other than 0: products and ratios of them stay finite.
MIN_TERM, MAX_TERM = 1e-100, 1e100
#: The largest rho that a budget can hold.
MAX_RHO = 10**12

Plain = dict[str, Any]


def _nothing(name: str) -> AnyArray:
    raise ReleaseError("An array named in the manifest is missing.")


class Shelf:
    """Arrays put aside under numbered names while the manifest is written, and looked up when it is read.

    ``fetch`` reads an array by its name when it is first looked up.
    """

    def __init__(self, fetch: Callable[[str], AnyArray] = _nothing) -> None:
        self.arrays: dict[str, AnyArray] = {}
        self._fetch = fetch

    def put(self, array: AnyArray) -> str:
        """The name to find the array by."""
        name = f"{len(self.arrays):06d}"
        self.arrays[name] = array
        return name

    def get(self, name: object) -> AnyArray:
        """The array of that name."""
        if not isinstance(name, str):
            raise ReleaseError("An array is named by something that is not text.")
        if name not in self.arrays:
            self.arrays[name] = self._fetch(name)
        return self.arrays[name]


def account_from_plain(plain: Plain) -> Account:
    """The books back; ``Release.verify`` says whether they add up."""
    listed = _list(plain["debits"])
    if sum(len(_text(d["rho"])) for d in listed) > MAX_AMOUNTS_CHARACTERS:
        raise ReleaseError(f"The debits have more than {MAX_AMOUNTS_CHARACTERS:,} digits together.")
    debits = tuple(Debit(_text(d["what"]), _fraction(d["rho"])) for d in listed)
    if not isinstance(plain["private"], bool):
        raise ReleaseError("The account does not say whether the noise was private.")
    return Account(
        unit=_text(plain["unit"]),
        rho_budget=_fraction(plain["rho_budget"]),
        epsilon=_number(plain["epsilon"]),
        delta=_number(plain["delta"]),
        debits=debits,
        private=plain["private"],
        sampler=_text(plain["sampler"]),
    )


def transcript_to_plain(transcript: Transcript, shelf: Shelf) -> list[Plain]:
    """One table of facts per entry, in order; arrays go on the shelf.

    The queries of a choice are written once: a later choice among the same ones names the first's place.
    """
    seen: dict[int, int] = {}
    return [_entry_to_plain(entry, shelf, seen, place) for place, entry in enumerate(transcript)]


def _entry_to_plain(entry: Entry, shelf: Shelf, seen: dict[int, int], place: int) -> Plain:
    match entry:
        case PublicTotal():
            return {"type": "public-total", "total": entry.total}
        case Measurement():
            return {
                "type": "measurement",
                "clique": list(entry.clique),
                "values": shelf.put(entry.values),
                "scale": entry.scale,
                "rho": str(entry.rho),
                "query": {a: shelf.put(g) for a, g in sorted(entry.query.groups.items())},
            }
        case Selection():
            return {
                "type": "selection",
                "candidates": [list(c) for c in entry.candidates],
                "chosen": list(entry.chosen),
                "epsilon": entry.epsilon,
                "sensitivity": entry.sensitivity,
                "rho": str(entry.rho),
                "terms": {name: shelf.put(v) for name, v in sorted(entry.terms.items())},
                "readable": [list(c) for c in entry.readable],
                "public": entry.public,
                "vouched": entry.vouched,
            }
        case PublicReading():
            return {
                "type": "public-reading",
                "clique": list(entry.clique),
                "values": shelf.put(entry.values),
                "scales": shelf.put(entry.scales),
                "source": entry.source,
            }
        case Answer():
            return {
                "type": "answer" if isinstance(entry.query, LinearQuery) else "half-space",
                **entry.query.plain(),
                "value": entry.value,
                "scale": entry.scale,
                "rho": str(entry.rho),
            }
        case QuerySelection():
            first = seen.setdefault(id(entry.queries), place)
            return {
                "type": "query-selection",
                "queries": _queries_to_plain(entry.queries, shelf) if first == place else first,
                "number": entry.number,
                "sign": entry.sign,
                "epsilon": entry.epsilon,
                "sensitivity": entry.sensitivity,
                "rho": str(entry.rho),
                "signed": entry.signed,
                "without": sorted(entry.without),
            }


def _queries_to_plain(queries: Queries, shelf: Shelf) -> Plain:
    return {
        "cliques": [list(c) for c in queries.cliques],
        "sets": {a: shelf.put(sets) for a, sets in sorted(queries.sets.items())},
    }


def transcript_from_plain(plain: object, shelf: Shelf, domain: Domain) -> Transcript:
    """The entries back; cliques, shapes and scales must fit the domain."""
    entries: list[Entry] = []
    for entry in _list(plain):
        entries.append(_entry_from_plain(entry, shelf, domain, entries))
    return Transcript(tuple(entries))


def _entry_from_plain(plain: Plain, shelf: Shelf, domain: Domain, before: Sequence[Entry]) -> Entry:
    kind = plain["type"]
    if kind == "public-total":
        total = plain["total"]
        if not isinstance(total, int) or isinstance(total, bool) or not 0 <= total <= MAX_COUNT:
            raise ReleaseError(f"The public total is not a count from 0 to {MAX_COUNT}.")
        return PublicTotal(total)
    if kind == "measurement":
        return _measurement(plain, shelf, domain)
    if kind == "selection":
        return _selection(plain, shelf, domain)
    if kind == "public-reading":
        return _reading(plain, shelf, domain)
    if kind in ("answer", "half-space"):
        return _answer(plain, _half_space(plain, domain) if kind == "half-space" else _sets(plain, domain), domain)
    if kind == "query-selection":
        return _query_selection(plain, _queries(plain["queries"], shelf, domain, before))
    raise ReleaseError("The transcript holds an entry of an unknown type.")


def _measurement(plain: Plain, shelf: Shelf, domain: Domain) -> Measurement:
    clique = _clique(plain["clique"], domain)
    query = Query({a: _groups(shelf.get(name), domain.size(a)) for a, name in plain["query"].items()})
    query = query.within(clique)  # older releases name the groups of all columns
    values = shelf.get(plain["values"])
    shape = query.domain(domain.project(clique)).shape(clique)
    scale = _scale(plain["scale"])
    if values.dtype != np.int64 or values.shape != shape:
        raise ReleaseError(f"The measurement of {', '.join(clique)} does not fit the domain.")
    return Measurement(clique, values, scale, _fraction(plain["rho"]), query)


def _groups(groups: AnyArray, size: int) -> AnyArray:
    if groups.dtype != np.int64 or groups.shape != (size,) or groups.min() < 0 or groups.max() >= size:
        raise ReleaseError("A grouping of codes does not fit the domain.")
    return groups


def _selection(plain: Plain, shelf: Shelf, domain: Domain) -> Selection:
    candidates = tuple(_clique(c, domain) for c in _list(plain["candidates"]))
    chosen = _clique(plain["chosen"], domain)
    terms = {_text(name): shelf.get(where) for name, where in plain["terms"].items()}
    readable = tuple(_clique(c, domain) for c in _list(plain.get("readable", [])))
    public = plain.get("public", False)
    if not isinstance(public, bool) or not set(readable) <= set(candidates) or (public and chosen not in readable):
        raise ReleaseError("A choice among public readings does not fit its candidates.")
    if chosen not in candidates or any(v.shape != (len(candidates),) for v in terms.values()):
        raise ReleaseError("A selection does not fit its candidates.")
    if not all(_are_terms(v) for v in terms.values()):
        raise ReleaseError("The score of a selection has terms that are not numbers of an ordinary size.")
    return Selection(
        candidates=candidates,
        chosen=chosen,
        epsilon=_number(plain["epsilon"]),
        sensitivity=_number(plain["sensitivity"]),
        rho=_fraction(plain["rho"]),
        terms=terms,
        readable=readable,
        public=public,
        vouched=_text(plain.get("vouched", "")),
    )


def _reading(plain: Plain, shelf: Shelf, domain: Domain) -> PublicReading:
    clique = _clique(plain["clique"], domain)
    values, scales = (shelf.get(plain[name]) for name in ("values", "scales"))
    fits = all(a.dtype == np.float64 and a.shape == domain.shape(clique) for a in (values, scales))
    if not fits or not (np.abs(values) <= MAX_COUNT).all() or not _are_scales(scales):
        raise ReleaseError(f"The public reading of {', '.join(clique)} does not fit the domain.")
    return PublicReading(clique, values, scales, _text(plain["source"]))


def _sets(plain: Plain, domain: Domain) -> LinearQuery:
    codes = tuple(tuple(_whole(code) for code in _list(codes)) for codes in _list(plain["codes"]))
    return LinearQuery(_clique(plain["clique"], domain), codes)


def _half_space(plain: Plain, domain: Domain) -> HalfSpace:
    return HalfSpace(
        clique=_clique(plain["clique"], domain),
        coefficients=tuple(_real(c) for c in _list(plain["coefficients"])),
        lines=tuple(_whole(k) for k in _list(plain["lines"])),
        threshold=_real(plain["threshold"]),
        slope=None if plain["slope"] is None else _real(plain["slope"]),
    )


def _answer(plain: Plain, query: SingleQuery, domain: Domain) -> Answer:
    value, scale = plain["value"], _scale(plain["scale"])
    try:
        query.check(domain)
    except InputError:
        raise ReleaseError("A single query does not fit the domain.") from None
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MAX_COUNT:
        raise ReleaseError("The answer of a single query is not a count.")
    return Answer(query, value, scale, _fraction(plain["rho"]))


def _queries(plain: object, shelf: Shelf, domain: Domain, before: Sequence[Entry]) -> Queries:
    """The queries that a choice was made among: stated here, or by an earlier choice."""
    if isinstance(plain, dict):
        cliques = tuple(_clique(c, domain) for c in _list(plain["cliques"]))
        try:
            return Queries(domain, cliques, {_text(a): shelf.get(name) for a, name in plain["sets"].items()})
        except InputError:
            raise ReleaseError("The queries of a choice do not fit the domain.") from None
    earlier = before[place] if (place := _whole(plain)) < len(before) else None
    if not isinstance(earlier, QuerySelection):
        raise ReleaseError("A choice does not say among which queries it was made.")
    return earlier.queries


def _query_selection(plain: Plain, queries: Queries) -> QuerySelection:
    number, without = _whole(plain["number"]), frozenset(_whole(n) for n in _list(plain["without"]))
    if number >= len(queries) or number in without or any(n >= len(queries) for n in without):
        raise ReleaseError("A choice does not fit its queries.")
    if plain["sign"] not in (1, -1) or not isinstance(plain["signed"], bool):
        raise ReleaseError("A choice has no sign.")
    return QuerySelection(
        queries=queries,
        number=number,
        sign=int(plain["sign"]),
        epsilon=_number(plain["epsilon"]),
        sensitivity=_number(plain["sensitivity"]),
        rho=_fraction(plain["rho"]),
        signed=plain["signed"],
        without=without,
    )


def hindsight_to_plain(hindsight: Sequence[Hindsight], shelf: Shelf) -> list[Plain]:
    """One table of facts per choice told about; distances go on the shelf."""
    return [{"selection": h.selection, "surprise": h.surprise, "drift": shelf.put(h.drift)} for h in hindsight]


def hindsight_from_plain(plain: object, shelf: Shelf, transcript: Transcript) -> tuple[Hindsight, ...]:
    """The distances back; each choice at most once, with a distance, or none known, per candidate."""
    selections, told = transcript.selections, {}
    for entry in _list(plain):
        number, drift = entry["selection"], shelf.get(entry["drift"])
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(selections):
            raise ReleaseError("The release looks back on a choice that was not made.")
        fits = drift.dtype == np.float64 and drift.shape == (len(selections[number].candidates),)
        if not fits or number in told or (drift < 0).any() or np.isinf(drift).any():
            raise ReleaseError("What the release tells of a choice does not fit its candidates.")
        told[number] = Hindsight(number, _number(entry["surprise"]), drift)
    return tuple(told.values())


def model_to_plain(state: ModelState, shelf: Shelf) -> Plain:
    """Kind and facts, with the arrays on the shelf."""
    return {
        "kind": state.kind,
        "facts": dict(state.facts),
        "arrays": {name: shelf.put(array) for name, array in sorted(state.arrays.items())},
    }


def model_from_plain(plain: Plain, shelf: Shelf) -> ModelState:
    """Kind, facts and arrays back; the model's own loader checks what they mean."""
    facts = plain["facts"]
    if not isinstance(facts, dict):
        raise ReleaseError("The model's facts are not a table of names.")
    arrays = {_text(name): shelf.get(where) for name, where in plain["arrays"].items()}
    return ModelState(_text(plain["kind"]), facts, arrays)


def _clique(value: object, domain: Domain) -> Clique:
    names = tuple(_text(v) for v in _list(value))
    if any(n not in domain for n in names) or domain.clique(names) != names:
        raise ReleaseError("A marginal names columns that are not in the schema, or not in its order.")
    return names


def _fraction(value: object) -> Fraction:
    text = _text(value)
    if not _FRACTION.fullmatch(text):  # Fraction itself would expand 1e999999999
        raise ReleaseError("An amount of budget is not an exact fraction.")
    top, _, bottom = text.partition("/")
    if not int(bottom or 1) or int(top) > MAX_RHO * int(bottom or 1):
        raise ReleaseError(f"An amount of budget is not a fraction from 0 to {MAX_RHO:g}.")
    return Fraction(text)


def _scale(value: object) -> float:
    scale = _number(value)
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise ReleaseError(f"A noise scale is not from {MIN_SCALE:g} to {MAX_SCALE:g}.")
    return scale


def _are_terms(values: AnyArray) -> bool:
    sizes = np.abs(values.astype(np.float64))
    return bool(((sizes == 0) | ((sizes >= MIN_TERM) & (sizes <= MAX_TERM))).all())


def _are_scales(scales: AnyArray) -> bool:
    """Return whether all are noise scales of public marginals; an infinite one marks a cell without evidence."""
    return bool((((scales >= MIN_SCALE) & (scales <= MAX_PUBLIC_SCALE)) | (scales == np.inf)).all())


def _number(value: object) -> float:
    number = _real(value)
    if number < 0:
        raise ReleaseError("A number that should not be negative is.")
    return number


def _real(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise ReleaseError("Something that should be a finite number is not.")
    return float(value)


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_COUNT:
        raise ReleaseError(f"A number should be whole, from 0 to {MAX_COUNT}, and is not.")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ReleaseError("Something that should be text is not.")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ReleaseError("Something that should be a list is not.")
    return value
