"""The transcript as plain data, and back with every entry checked against the domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from margrave.domain import Domain
from margrave.errors import InputError, ReleaseError
from margrave.marginal import HalfSpace, LinearMap, LinearQuery, QueryFamily, SingleQuery
from margrave.release.plain_values import (
    MAX_COUNT,
    as_fraction,
    as_list,
    as_number,
    as_real,
    as_text,
    as_whole,
)
from margrave.release.serialization import Shelf
from margrave.schema.column_queries import column_query_from_dict
from margrave.transcript import (
    Answer,
    ColumnAnswer,
    Discovery,
    Entry,
    HalfSpaceSelection,
    Measurement,
    PublicReading,
    PublicTotal,
    QuerySelection,
    ScoreMeasurement,
    Selection,
    Transcript,
)
from margrave.types import AnyArray, Clique

#: The range of noise scales, in records, that the samplers accept.
MIN_SCALE, MAX_SCALE = 2.0**-100, 2.0**50
#: The range of the terms of a score other than 0: products and ratios of them stay finite.
MIN_TERM, MAX_TERM = 1e-100, 1e100

Plain = dict[str, Any]


def transcript_to_plain(transcript: Transcript, shelf: Shelf) -> list[Plain]:
    """Return one table per entry, in order; arrays go on the shelf.

    The queries of a choice are written once. A later choice among the same ones has their place.
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
                **_matrices_to_plain(entry.query, shelf),
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
                **entry.query.to_dict(),
                "value": entry.value,
                "scale": entry.scale,
                "rho": str(entry.rho),
            }
        case ScoreMeasurement():
            return {
                "type": "scores",
                "candidates": [list(c) for c in entry.candidates],
                "values": shelf.put(entry.values),
                "scale": entry.scale,
                "sensitivity": entry.sensitivity,
                "rho": str(entry.rho),
                "score": entry.score,
                "terms": {name: shelf.put(v) for name, v in sorted(entry.terms.items())},
            }
        case ColumnAnswer():
            return {
                "type": "column-answer",
                "column": entry.column,
                "query": entry.query.to_dict(),
                "values": shelf.put(entry.values),
                "scale": entry.scale,
                "rho": str(entry.rho),
            }
        case Discovery():
            return {
                "type": "discovery",
                "column": entry.column,
                "values": list(entry.values),
                "counts": shelf.put(entry.counts),
                "listed": entry.listed,
                "threshold": entry.threshold,
                "scale": entry.scale,
                "rho": str(entry.rho),
                "delta": str(entry.delta),
            }
        case HalfSpaceSelection():
            return {
                "type": "half-space-selection",
                "queries": [q.to_dict() for q in entry.queries],
                "number": entry.number,
                "epsilon": entry.epsilon,
                "sensitivity": entry.sensitivity,
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


def _matrices_to_plain(query: LinearMap, shelf: Shelf) -> Plain:
    matrices = {a: shelf.put(m) for a, m in sorted(query.matrices.items())}
    return {"matrices": matrices} if matrices else {}


def _queries_to_plain(queries: QueryFamily, shelf: Shelf) -> Plain:
    return {
        "cliques": [list(c) for c in queries.cliques],
        "sets": {a: shelf.put(sets) for a, sets in sorted(queries.sets.items())},
    }


def transcript_from_plain(plain: object, shelf: Shelf, domain: Domain) -> Transcript:
    """Return the transcript of its plain data. Cliques, shapes and scales must fit the domain."""
    entries: list[Entry] = []
    for entry in as_list(plain):
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
        return _answer(
            plain,
            _half_space(plain, domain) if kind == "half-space" else _sets(plain, domain),
            domain,
        )
    if kind == "scores":
        return _scores(plain, shelf, domain)
    if kind == "column-answer":
        return _column_answer(plain, shelf)
    if kind == "discovery":
        return _discovery(plain, shelf)
    if kind == "half-space-selection":
        return _half_space_selection(plain, domain)
    if kind == "query-selection":
        return _query_selection(plain, _queries(plain["queries"], shelf, domain, before))
    raise ReleaseError("The transcript holds an entry of an unknown type.")


def _measurement(plain: Plain, shelf: Shelf, domain: Domain) -> Measurement:
    clique = _clique(plain["clique"], domain)
    query = LinearMap(
        {a: _groups(shelf.get(name), domain.size(a)) for a, name in plain["query"].items()},
        {as_text(a): shelf.get(name) for a, name in plain.get("matrices", {}).items()},
    )
    if not {*query.groups, *query.matrices} <= set(clique):
        raise ReleaseError("A linear map names a column that its marginal lacks.")
    try:
        query.check(domain)
    except InputError:
        raise ReleaseError("A linear map does not fit the domain.") from None
    values = shelf.get(plain["values"])
    shape = query.domain(domain.project(clique)).shape(clique)
    scale = _scale(plain["scale"])
    if values.dtype != np.int64 or values.shape != shape:
        raise ReleaseError(f"The measurement of {', '.join(clique)} does not fit the domain.")
    return Measurement(clique, values, scale, as_fraction(plain["rho"]), query)


def _groups(groups: AnyArray, size: int) -> AnyArray:
    if (
        groups.dtype != np.int64
        or groups.shape != (size,)
        or groups.min() < 0
        or groups.max() >= size
    ):
        raise ReleaseError("A grouping of codes does not fit the domain.")
    return groups


def _selection(plain: Plain, shelf: Shelf, domain: Domain) -> Selection:
    candidates = tuple(_clique(c, domain) for c in as_list(plain["candidates"]))
    chosen = _clique(plain["chosen"], domain)
    terms = {as_text(name): shelf.get(where) for name, where in plain["terms"].items()}
    readable = tuple(_clique(c, domain) for c in as_list(plain.get("readable", [])))
    public = plain.get("public", False)
    if (
        not isinstance(public, bool)
        or not set(readable) <= set(candidates)
        or (public and chosen not in readable)
    ):
        raise ReleaseError("A choice among public readings does not fit its candidates.")
    if chosen not in candidates or any(v.shape != (len(candidates),) for v in terms.values()):
        raise ReleaseError("A selection does not fit its candidates.")
    if not all(_are_terms(v) for v in terms.values()):
        raise ReleaseError(
            "The score of a selection has terms that are not numbers of an ordinary size."
        )
    return Selection(
        candidates=candidates,
        chosen=chosen,
        epsilon=as_number(plain["epsilon"]),
        sensitivity=as_number(plain["sensitivity"]),
        rho=as_fraction(plain["rho"]),
        terms=terms,
        readable=readable,
        public=public,
        vouched=as_text(plain.get("vouched", "")),
    )


def _reading(plain: Plain, shelf: Shelf, domain: Domain) -> PublicReading:
    clique = _clique(plain["clique"], domain)
    values, scales = (shelf.get(plain[name]) for name in ("values", "scales"))
    fits = all(a.dtype == np.float64 and a.shape == domain.shape(clique) for a in (values, scales))
    if not fits or not (np.abs(values) <= MAX_COUNT).all() or not _are_scales(scales):
        raise ReleaseError(f"The public reading of {', '.join(clique)} does not fit the domain.")
    return PublicReading(clique, values, scales, as_text(plain["source"]))


def _sets(plain: Plain, domain: Domain) -> LinearQuery:
    codes = tuple(
        tuple(as_whole(code) for code in as_list(codes)) for codes in as_list(plain["codes"])
    )
    return LinearQuery(_clique(plain["clique"], domain), codes)


def _half_space(plain: Plain, domain: Domain) -> HalfSpace:
    return HalfSpace(
        clique=_clique(plain["clique"], domain),
        coefficients=tuple(as_real(c) for c in as_list(plain["coefficients"])),
        lines=tuple(as_whole(k) for k in as_list(plain["lines"])),
        threshold=as_real(plain["threshold"]),
        slope=None if plain["slope"] is None else as_real(plain["slope"]),
    )


def _answer(plain: Plain, query: SingleQuery, domain: Domain) -> Answer:
    value, scale = plain["value"], _scale(plain["scale"])
    try:
        query.check(domain)
    except InputError:
        raise ReleaseError("A single query does not fit the domain.") from None
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MAX_COUNT:
        raise ReleaseError("The answer of a single query is not a count.")
    return Answer(query, value, scale, as_fraction(plain["rho"]))


def _scores(plain: Plain, shelf: Shelf, domain: Domain) -> ScoreMeasurement:
    candidates = tuple(_clique(c, domain) for c in as_list(plain["candidates"]))
    values = shelf.get(plain["values"])
    terms = {as_text(name): shelf.get(where) for name, where in plain["terms"].items()}
    arrays = [values, *terms.values()]
    fits = all(v.dtype == np.float64 and v.shape == (len(candidates),) for v in arrays)
    if not candidates or not fits or not all(np.isfinite(v).all() for v in arrays):
        raise ReleaseError("Noisy scores do not fit their candidates.")
    return ScoreMeasurement(
        candidates=candidates,
        values=values,
        scale=_scale(plain["scale"]),
        sensitivity=as_number(plain["sensitivity"]),
        rho=as_fraction(plain["rho"]),
        score=as_text(plain["score"]),
        terms=terms,
    )


def _column_answer(plain: Plain, shelf: Shelf) -> ColumnAnswer:
    values = shelf.get(plain["values"])
    try:
        query = column_query_from_dict(plain["query"])
    except InputError:
        raise ReleaseError("The query of a column answer is damaged.") from None
    if values.dtype != np.int64 or values.shape != (query.size,):
        raise ReleaseError("The answer of a column query does not fit it.")
    scale, rho = _scale(plain["scale"]), as_fraction(plain["rho"])
    return ColumnAnswer(as_text(plain["column"]), query, values, scale, rho)


def _discovery(plain: Plain, shelf: Shelf) -> Discovery:
    values = tuple(as_text(v) for v in as_list(plain["values"]))
    counts, listed = shelf.get(plain["counts"]), as_whole(plain["listed"])
    plain_texts = all(0 < len(v) <= 200 and min(v) >= " " for v in values)
    if not plain_texts or len(set(values)) < len(values) or listed > len(values):
        raise ReleaseError("The discovered values of a column are damaged.")
    if counts.dtype != np.int64 or counts.shape != (len(values) + 1,):
        raise ReleaseError("The counts of discovered values do not fit them.")
    scale, rho, delta = (
        _scale(plain["scale"]),
        as_fraction(plain["rho"]),
        as_fraction(plain["delta"]),
    )
    column, threshold = as_text(plain["column"]), as_whole(plain["threshold"])
    return Discovery(column, values, counts, listed, threshold, scale, rho, delta)


def _half_space_selection(plain: Plain, domain: Domain) -> HalfSpaceSelection:
    queries = tuple(_half_space(q, domain) for q in as_list(plain["queries"]))
    number = as_whole(plain["number"])
    try:
        for query in queries:
            query.check(domain)
    except InputError:
        raise ReleaseError("A half-space does not fit the domain.") from None
    if number >= len(queries):
        raise ReleaseError("A choice does not fit its half-spaces.")
    return HalfSpaceSelection(
        queries,
        number,
        epsilon=as_number(plain["epsilon"]),
        sensitivity=as_number(plain["sensitivity"]),
        rho=as_fraction(plain["rho"]),
    )


def _queries(plain: object, shelf: Shelf, domain: Domain, before: Sequence[Entry]) -> QueryFamily:
    """Return the queries of a choice, which are stated here or in an earlier choice."""
    if isinstance(plain, dict):
        cliques = tuple(_clique(c, domain) for c in as_list(plain["cliques"]))
        try:
            return QueryFamily(
                domain, cliques, {as_text(a): shelf.get(name) for a, name in plain["sets"].items()}
            )
        except InputError:
            raise ReleaseError("The queries of a choice do not fit the domain.") from None
    earlier = before[place] if (place := as_whole(plain)) < len(before) else None
    if not isinstance(earlier, QuerySelection):
        raise ReleaseError("A choice does not say among which queries it was made.")
    return earlier.queries


def _query_selection(plain: Plain, queries: QueryFamily) -> QuerySelection:
    number, without = (
        as_whole(plain["number"]),
        frozenset(as_whole(n) for n in as_list(plain["without"])),
    )
    if number >= len(queries) or number in without or any(n >= len(queries) for n in without):
        raise ReleaseError("A choice does not fit its queries.")
    if plain["sign"] not in (1, -1) or not isinstance(plain["signed"], bool):
        raise ReleaseError("A choice has no sign.")
    return QuerySelection(
        queries=queries,
        number=number,
        sign=int(plain["sign"]),
        epsilon=as_number(plain["epsilon"]),
        sensitivity=as_number(plain["sensitivity"]),
        rho=as_fraction(plain["rho"]),
        signed=plain["signed"],
        without=without,
    )


def _clique(value: object, domain: Domain) -> Clique:
    names = tuple(as_text(v) for v in as_list(value))
    if any(n not in domain for n in names) or domain.clique(names) != names:
        raise ReleaseError(
            "A marginal names columns that are not in the schema, or not in its order."
        )
    return names


def _scale(value: object) -> float:
    scale = as_number(value)
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise ReleaseError(f"A noise scale is not from {MIN_SCALE:g} to {MAX_SCALE:g}.")
    return scale


def _are_terms(values: AnyArray) -> bool:
    sizes = np.abs(values.astype(np.float64))
    return bool(((sizes == 0) | ((sizes >= MIN_TERM) & (sizes <= MAX_TERM))).all())


def _are_scales(scales: AnyArray) -> bool:
    """Return whether all are noise scales of public marginals; an infinite one marks a cell without evidence."""
    # The largest scale of a public marginal's cell: its square is still a finite number.
    max_public_scale = 2.0**500
    return bool((((scales >= MIN_SCALE) & (scales <= max_public_scale)) | (scales == np.inf)).all())
