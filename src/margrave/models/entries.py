"""Kinds of entries that not every fit can use: a run states what it may measure, and a fit what it can use."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any

from margrave.errors import InputError
from margrave.marginal import TOTAL, HalfSpace, LinearMap, LinearQuery, QueryFamily, SingleQuery
from margrave.transcript import Answer, Measurement, PublicReading, Transcript


class EntryKind(StrEnum):
    """A kind of entry beside whole marginals and the number of records, which every fit uses. Its value is its name."""

    MERGED = "marginals with merged codes"
    CELL = "single cells"
    SET = "counts of sets of codes"
    HALF_SPACE = "half-spaces"
    READING = "public marginals"
    COUNT_MAP = "linear maps with weights 0 and 1"
    WEIGHTED_MAP = "linear maps with other weights"


ALL = frozenset(EntryKind)


def kinds_of(transcript: Transcript) -> frozenset[EntryKind]:
    """Return the kinds of entries in a transcript."""
    found = set[EntryKind]()
    for entry in transcript:
        if isinstance(entry, PublicReading):
            found.add(EntryKind.READING)
        elif isinstance(entry, Measurement) and not entry.query.is_identity:
            found.add(_kind_of_map(entry.query))
        elif isinstance(entry, Answer) and entry.query != TOTAL:
            found.add(_kind_of(entry.query))
    return frozenset(found)


def kinds_asked(queries: QueryFamily) -> frozenset[EntryKind]:
    """Return the kinds that answers to any of these queries can have."""
    cells = all((sets.sum(axis=1) == 1).all() for sets in queries.sets.values())
    return frozenset({EntryKind.CELL if cells else EntryKind.SET})


def not_taken(fit: Any, kinds: Collection[EntryKind]) -> list[EntryKind]:
    """Return the kinds that a fit cannot use."""
    return [kind for kind in EntryKind if kind in kinds and kind not in fit.entries]


def fits_for(kinds: Collection[EntryKind]) -> dict[str, Any]:
    """Return the built-in fits that use all of these kinds and give records, by name."""
    takes_all = {n: fit for n, fit in _BUILT_IN.items() if not not_taken(fit, kinds)}
    return {n: fit for n, fit in takes_all.items() if fit.gives_records}


def register_fits(fits: Mapping[str, Any]) -> None:
    """Make the built-in fits known by name, for refusals that name another fit."""
    _BUILT_IN.update(fits)


_BUILT_IN: dict[str, Any] = {}


def check_kinds(fit: Any, transcript: Transcript) -> None:
    """Raise `InputError` if a transcript holds entries that a fit cannot use; it names a fit that can."""
    kinds = kinds_of(transcript)
    if lacking := not_taken(fit, kinds):
        name, other = next(iter(fits_for(kinds).items()))
        raise InputError(
            f"{type(fit).__name__} cannot be fitted to {' or '.join(lacking)}, which were measured.",
            remedy=f"Fit {other.__name__}() (margrave refit --fit {name}).",
        )


def _kind_of_map(query: LinearMap) -> EntryKind:
    if query.is_partition:
        return EntryKind.MERGED
    return EntryKind.COUNT_MAP if query.is_counts else EntryKind.WEIGHTED_MAP


def _kind_of(query: SingleQuery) -> EntryKind:
    if isinstance(query, HalfSpace):
        return EntryKind.HALF_SPACE
    return EntryKind.CELL if isinstance(query, LinearQuery) and query.is_cell else EntryKind.SET
