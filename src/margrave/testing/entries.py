"""Transcripts that hold each kind of entry, for `check_fit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from margrave.accounting import AddRemoveRow, Budget
from margrave.marginal import HalfSpace, LinearMap, LinearQuery
from margrave.models.entries import EntryKind
from margrave.privacy import Gaussian, Private, SeededRandomness, protect
from margrave.testing.tables import SIZES, TinyTable
from margrave.transcript import PublicReading, Transcript

ONE_WAY = [(name,) for name in SIZES]


def _map(private: Private, query: LinearMap) -> Transcript:
    return private.measure([("b", "c")], Gaussian(rho=private.remaining), query=query)


def _query(private: Private, query: LinearQuery | HalfSpace) -> Transcript:
    return private.measure_queries([query], Gaussian(rho=private.remaining))


def _reading(private: Private) -> Transcript:
    values = np.arange(12.0).reshape(3, 4)
    return Transcript((PublicReading(("b", "c"), values, np.full((3, 4), 5.0), "0" * 64),))


KINDS: Mapping[EntryKind, Callable[[Private], Transcript]] = {
    EntryKind.MERGED: lambda p: _map(p, LinearMap({"b": np.array([1, 0, 1])})),
    EntryKind.COUNT_MAP: lambda p: _map(p, LinearMap.prefixes(p.domain, ["c"])),
    EntryKind.WEIGHTED_MAP: lambda p: _map(p, LinearMap.residual(p.domain, ("b", "c"))),
    EntryKind.CELL: lambda p: _query(p, LinearQuery(("a", "c"), ((1,), (2,)))),
    EntryKind.SET: lambda p: _query(p, LinearQuery(("a", "c"), ((1,), (0, 2)))),
    EntryKind.HALF_SPACE: lambda p: _query(p, HalfSpace.of(p.domain, {"a": 0.6, "c": 0.4}, 0.5)),
    EntryKind.READING: _reading,
}


def transcript_with(kind: EntryKind, table: TinyTable, seed: int) -> Transcript:
    """Return the one-way marginals of a table over ``SIZES``, then an entry of a kind."""
    randomness, budget = SeededRandomness(seed), Budget.zcdp(2)
    with protect(table, unit=AddRemoveRow(), budget=budget, randomness=randomness) as private:
        known = private.measure(ONE_WAY, Gaussian(rho=private.rho / 2))
        return known + KINDS[kind](private)
