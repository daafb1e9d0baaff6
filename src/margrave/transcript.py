"""What is known about the table, and how: the noisy answers, the choices made, the public facts, and the account.

Everything after the gate is a function of these plain values. Nothing here can reach rows. Each entry has ``facts()``,
its line in the certificate, and ``to_dict()``, the facts and what was answered: both are plain data that fits in JSON.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.marginal import IDENTITY, TOTAL, LinearQuery, Queries, Query, SingleQuery
from margrave.typing import Clique, FloatArray, IntArray

Plain = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Measurement:
    """A marginal with noise: ``values = query(M_clique(D)) + noise``, of standard deviation ``scale`` per cell.

    ``values`` are integers with one axis per attribute; ``rho`` is what was paid (zCDP).
    """

    clique: Clique
    values: IntArray
    scale: float
    rho: Fraction
    query: Query = IDENTITY

    def facts(self) -> Plain:
        """What was measured, how noisily and at what price; ``grouped`` are the columns whose codes were merged."""
        return {
            "measured": list(self.clique),
            "cells": int(self.values.size),
            "scale": self.scale,
            "rho": float(self.rho),
            "grouped": sorted(self.query.groups),
        }

    def to_dict(self) -> Plain:
        """The facts, the noisy counts as nested lists (an axis per column), and the group of each merged code.

        >>> Measurement(("sex",), np.array([31, 19]), 2.0, Fraction(1, 8)).to_dict()
        {'measured': ['sex'], 'cells': 2, 'scale': 2.0, 'rho': 0.125, 'grouped': [], 'values': [31, 19], 'groups': {}}
        """
        groups = {a: self.query.groups[a].tolist() for a in sorted(self.query.groups)}
        return {**self.facts(), "values": self.values.tolist(), "groups": groups}


@dataclass(frozen=True)
class Answer:
    """One query with noise: ``value = query(D) + noise``, of standard deviation ``scale``; ``rho`` was paid."""

    query: SingleQuery
    value: int
    scale: float
    rho: Fraction

    def facts(self) -> Plain:
        """What was asked, in words, how noisily (in records) and at what price."""
        return {"asked": self.query.words, "scale": self.scale / self.query.most, "rho": float(self.rho)}

    def to_dict(self) -> Plain:
        """The facts, the noisy count in records, and what defines the query."""
        return {**self.facts(), "value": self.value / self.query.most, "query": self.query.plain()}


@dataclass(frozen=True, eq=False)
class Selection:
    """One private choice by the exponential mechanism with parameter ``epsilon``.

    ``terms`` are the public parts of the scores, one number per candidate (weights and penalties, say). The marginals
    in ``readable`` could be read from public data instead of measured: each was a candidate once more for that.
    ``public``: such a reading was chosen. ``vouched`` is the score's name where its sensitivity comes from code outside
    the library; it is empty for the library's own scores.
    """

    candidates: tuple[Clique, ...]
    chosen: Clique
    epsilon: float
    sensitivity: float
    rho: Fraction
    terms: Mapping[str, FloatArray] = field(default_factory=dict)
    readable: tuple[Clique, ...] = ()
    public: bool = False
    vouched: str = ""

    def facts(self) -> Plain:
        """What was chosen among how many, and at what price."""
        return {
            "selected": list(self.chosen),
            "candidates": len(self.candidates),
            "epsilon": self.epsilon,
            "sensitivity": self.sensitivity,
            "rho": float(self.rho),
            **({"to_read": self.public, "readable": len(self.readable)} if self.readable else {}),
            **({"vouched": self.vouched} if self.vouched else {}),
        }

    def to_dict(self) -> Plain:
        """The facts. Candidates and terms of their scores, which may be very many, are in the attributes."""
        return self.facts()


@dataclass(frozen=True, eq=False)
class QuerySelection:
    """One private choice among linear queries: query ``number`` of ``queries``, by the exponential mechanism.

    ``signed``: each query was a candidate twice, and the one of ``sign`` 1 says that the estimate is too low, that of
    -1 that it is too high. ``without`` are the numbers of those that were no candidates.
    """

    queries: Queries
    number: int
    sign: int
    epsilon: float
    sensitivity: float
    rho: Fraction
    signed: bool = False
    without: frozenset[int] = frozenset()

    @property
    def chosen(self) -> LinearQuery:
        """The query."""
        return self.queries[self.number]

    def facts(self) -> Plain:
        """What was chosen, in words, among how many, and at what price; with its sign where that was chosen too."""
        return {
            "selected": self.chosen.words,
            **({"sign": self.sign} if self.signed else {}),
            "candidates": (len(self.queries) - len(self.without)) * (2 if self.signed else 1),
            "epsilon": self.epsilon,
            "sensitivity": self.sensitivity,
            "rho": float(self.rho),
        }

    def to_dict(self) -> Plain:
        """The facts, and what defines the query."""
        return {**self.facts(), "query": self.chosen.plain()}


@dataclass(frozen=True, eq=False)
class Hindsight:
    """What became of the estimates that one choice was scored with: L1 distances, in records.

    ``selection`` is the choice's position among the transcript's. ``surprise`` is the distance from the chosen
    marginal's estimate to the noisy answer it then got; ``drift`` has one number per candidate, the distance from its
    estimate to the released model: NaN where a later choice had it among its candidates, where a measurement tells
    more, or where the model's exact marginal was too large. Both are functions of the noisy answers.
    """

    selection: int
    surprise: float
    drift: FloatArray


@dataclass(frozen=True, eq=False)
class PublicReading:
    """A marginal of a public table, scaled to the private number of records, taken for an estimate of the private one.

    ``scales`` says how far each cell is trusted: as if it had noise of this standard deviation; infinite where it tells
    nothing. ``source`` is the public table's sha256. Nothing was asked of the private rows for it.
    """

    clique: Clique
    values: FloatArray
    scales: FloatArray
    source: str
    query: Query = IDENTITY

    @property
    def scale(self) -> float:
        """One number for ``scales``: the root mean square of those that are finite."""
        finite = self.scales[np.isfinite(self.scales)]
        return float(np.sqrt((finite**2).mean())) if finite.size else float("inf")

    def facts(self) -> Plain:
        """What was read, and how far it is trusted."""
        return {"read": list(self.clique), "cells": int(self.values.size), "scale": self.scale}

    def to_dict(self) -> Plain:
        """The facts, the numbers read and their scales as nested lists (None for infinite), and the public table."""
        finite = np.isfinite(self.scales)
        scales = np.where(finite, self.scales.astype(object), np.array(None)).tolist()
        scale = self.scale if finite.any() else None
        numbers = {"values": self.values.tolist(), "scales": scales, "source": self.source}
        return {**self.facts(), "scale": scale, **numbers}


@dataclass(frozen=True)
class PublicTotal:
    """The number of records, where the unit of privacy makes it public (replacing a record)."""

    total: int

    def facts(self) -> Plain:
        """The number."""
        return {"public_total": self.total}

    def to_dict(self) -> Plain:
        """The number."""
        return self.facts()


Entry = Measurement | Answer | Selection | QuerySelection | PublicReading | PublicTotal


@dataclass(frozen=True, eq=False)
class Transcript:
    """The answers so far, in order. Adding two appends the second."""

    entries: tuple[Entry, ...] = ()

    def __add__(self, other: Transcript) -> Transcript:
        return Transcript(self.entries + other.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def to_dict(self) -> Plain:
        """All answers and choices in their order, under "entries": plain data that fits in JSON.

        An entry that measured a marginal has ``measured`` (the columns), ``values``, ``scale``, ``rho`` and ``groups``;
        one that answered a single query ``asked`` and ``value``; a choice ``selected`` and the number of
        ``candidates``; a public reading ``read``, ``values`` and ``scales``. Codes mean what the schema says.

        **Privacy:** none spent: it is what the release holds.

        >>> noisy = Transcript((PublicTotal(50), Measurement(("sex",), np.array([31, 19]), 2.0, Fraction(1, 8))))
        >>> [entry["values"] for entry in noisy.to_dict()["entries"] if "measured" in entry]
        [[31, 19]]
        """
        return {"entries": [entry.to_dict() for entry in self.entries]}

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The noisy marginals."""
        return tuple(e for e in self.entries if isinstance(e, Measurement))

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The noisy answers of single queries."""
        return tuple(e for e in self.entries if isinstance(e, Answer))

    @property
    def selections(self) -> tuple[Selection, ...]:
        """The private choices among marginals."""
        return tuple(e for e in self.entries if isinstance(e, Selection))

    @property
    def readings(self) -> tuple[PublicReading, ...]:
        """What was read from public data."""
        return tuple(e for e in self.entries if isinstance(e, PublicReading))

    @property
    def evidence(self) -> tuple[Measurement | PublicReading, ...]:
        """Marginals of the private table as far as they are known: with noise, or from public data."""
        return tuple(e for e in self.entries if isinstance(e, Measurement | PublicReading))

    @property
    def query_selections(self) -> tuple[QuerySelection, ...]:
        """The private choices among linear queries."""
        return tuple(e for e in self.entries if isinstance(e, QuerySelection))

    @property
    def counts_something(self) -> bool:
        """Whether it holds a number that tells of the records more than how many there are."""
        return bool(self.evidence) or any(a.query != TOTAL for a in self.answers)

    @property
    def counted(self) -> tuple[Clique, ...]:
        """The cliques of all that was counted or read, whole or in part, each once."""
        asked = (a.query.clique for a in self.answers if a.query != TOTAL)
        return tuple(dict.fromkeys([*(e.clique for e in self.evidence), *asked]))

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """What was measured, each clique once."""
        return tuple(dict.fromkeys(m.clique for m in self.measurements))

    def total(self) -> float:
        """The number of records: public, or the minimum-variance unbiased estimate from the noisy totals.

        Each measurement's cells sum to the total with variance cells · scale², and a query may have asked for it; at
        least 1, so that a model exists.
        """
        for entry in self.entries:
            if isinstance(entry, PublicTotal):
                return max(1.0, float(entry.total))
        totals = self._totals()
        weight = sum(1.0 / variance for _, variance in totals)
        return max(1.0, sum(total / variance for total, variance in totals) / weight) if totals else 1.0

    def total_deviation(self) -> float:
        """The standard deviation of ``total()`` by its noise: 0 where it is public, infinite where nothing tells it."""
        if any(isinstance(e, PublicTotal) for e in self.entries):
            return 0.0
        weight = sum(1.0 / variance for _, variance in self._totals())
        return weight**-0.5 if weight > 0 else math.inf

    def _totals(self) -> list[tuple[float, float]]:
        """Every noisy number of records, with its variance."""
        totals = [(float(m.values.sum()), m.values.size * m.scale**2) for m in self.measurements]
        return totals + [(float(a.value), a.scale**2) for a in self.answers if a.query == TOTAL]


@dataclass(frozen=True)
class Debit:
    """One line of the ledger: what was asked, and the zCDP it cost."""

    what: str
    rho: Fraction


@dataclass(frozen=True)
class Account:
    """The closed books of one release, as plain data for the certificate.

    ``unit`` is the unit of privacy in words; ``epsilon`` and ``delta`` restate ``rho_budget``; ``private`` is False
    when the noise did not come from the operating system's randomness (tests).
    """

    unit: str
    rho_budget: Fraction
    epsilon: float
    delta: float
    debits: tuple[Debit, ...]
    private: bool
    sampler: str = ""

    @property
    def rho_spent(self) -> Fraction:
        """The sum of the debits."""
        return sum((d.rho for d in self.debits), Fraction(0))

    def to_dict(self) -> Plain:
        """Plain data that fits in JSON, with exact fractions as text: ``Fraction("1/8")`` reads them.

        >>> debits = (Debit("measure sex", Fraction(1, 8)),)
        >>> Account("add or remove one row", Fraction(1), 6.2, 1e-9, debits, private=True).to_dict()["debits"]
        [{'what': 'measure sex', 'rho': '1/8'}]
        """
        return {
            "unit": self.unit,
            "rho_budget": str(self.rho_budget),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "debits": [{"what": d.what, "rho": str(d.rho)} for d in self.debits],
            "private": self.private,
            "sampler": self.sampler,
        }

    @property
    def left_out(self) -> str:
        """What no count of this release is about, in words; empty where all rows were counted."""
        if "person" not in self.unit:
            return ""
        return (
            "Before anything was counted, each person's rows beyond the unit's limit were left out at random"
            f" ({self.unit}): counts, intervals and bounds are of the rows that were kept."
        )
