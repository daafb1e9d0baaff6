"""The transcript of a run: noisy answers, private selections and public facts.

Everything after the gate is a function of these plain values. Nothing here can reach rows. Each entry has
``describe()``, its line in a report and on a terminal, ``facts()``, its line in the certificate, and ``to_dict()``, the
facts and the answer. The last two are plain data that fits in JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from margrave._card import counted
from margrave.marginal import (
    IDENTITY,
    HalfSpace,
    LinearMap,
    LinearQuery,
    QueryFamily,
    SingleQuery,
)
from margrave.transcript.column_answer import ColumnAnswer
from margrave.transcript.description import Description, cells, one_of, plus_minus
from margrave.transcript.discovery import Discovery
from margrave.types import Clique, FloatArray, IntArray

Plain = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Measurement:
    """A noisy marginal: ``values = query(M_clique(D)) + noise``.

    Args:
        clique: The columns.
        values: Integers with one axis per column.
        scale: Standard deviation of the noise of each cell, in records.
        rho: The price (zCDP).
        query: The codes that were merged before counting, or the matrices of weighted sums of counts.
    """

    clique: Clique
    values: IntArray
    scale: float
    rho: Fraction
    query: LinearMap = IDENTITY

    def describe(self) -> Description:
        """Return its line in a report."""
        merged = " (rare values together)" if self.query.groups else ""
        weight = self.query.max_weight
        mapped = " (sums and differences of cells)" if self.query.matrices else ""
        if weight > 1:
            mapped = f" (sums of cells with weights up to {weight:,})"
        what = f"Counted {', '.join(self.clique)}{merged}{mapped}"
        return Description(what, cells(self.values.size), plus_minus(self.scale), self.rho)

    def facts(self) -> Plain:
        """Return the columns, noise scale and price; ``grouped`` are the columns whose codes were merged."""
        return {
            "measured": list(self.clique),
            "cells": int(self.values.size),
            "scale": self.scale,
            "rho": float(self.rho),
            "grouped": sorted(self.query.groups),
            **({"mapped": sorted(self.query.matrices)} if self.query.matrices else {}),
        }

    def to_dict(self) -> Plain:
        """Return the facts, the noisy counts as nested lists, and the group of each merged code.

        >>> Measurement(("sex",), np.array([31, 19]), 2.0, Fraction(1, 8)).to_dict()
        {'measured': ['sex'], 'cells': 2, 'scale': 2.0, 'rho': 0.125, 'grouped': [], 'values': [31, 19], 'groups': {}}
        """
        groups = {a: self.query.groups[a].tolist() for a in sorted(self.query.groups)}
        matrices = {a: self.query.matrices[a].tolist() for a in sorted(self.query.matrices)}
        answers = {"values": self.values.tolist(), "groups": groups}
        return {**self.facts(), **answers, **({"matrices": matrices} if matrices else {})}


@dataclass(frozen=True)
class Answer:
    """A noisy answer of one query: ``value = query(D) + noise``.

    Args:
        query: The query.
        value: The answer; in records it is ``value / query.max_contribution``.
        scale: Standard deviation of the noise of ``value``.
        rho: The price (zCDP).
    """

    query: SingleQuery
    value: int
    scale: float
    rho: Fraction

    def describe(self) -> Description:
        """Return its line in a report."""
        scale = self.scale / self.query.max_contribution
        what = f"Counted {self.query.describe}"
        return Description(what, cells(1), plus_minus(scale), self.rho)

    def facts(self) -> Plain:
        """Return the query in words, the noise scale in records, and the price."""
        return {
            "asked": self.query.describe,
            "scale": self.scale / self.query.max_contribution,
            "rho": float(self.rho),
        }

    def to_dict(self) -> Plain:
        """Return the facts, the noisy count in records, and the definition of the query."""
        return {
            **self.facts(),
            "value": self.value / self.query.max_contribution,
            "query": self.query.to_dict(),
        }


@dataclass(frozen=True, eq=False)
class Selection:
    """One private selection among marginals, by the exponential mechanism.

    Args:
        candidates: The marginals.
        chosen: One of them.
        epsilon: Parameter of the exponential mechanism.
        sensitivity: Sensitivity of the score.
        rho: The price (zCDP).
        terms: The public parts of the scores, such as weights and penalties: one number per candidate.
        readable: Candidates that could be read from public data instead of measured. Each of them
            was a candidate twice.
        public: Whether such a public marginal was chosen.
        vouched: Name of the score if its sensitivity comes from code outside the library, else empty.
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

    def describe(self) -> Description:
        """Return its line in a report."""
        what = f"Chose {', '.join(self.chosen)}{' from public data' if self.public else ''}"
        among = len(self.candidates) + len(self.readable)
        return Description(what, one_of(among), f"epsilon {self.epsilon:.3g}", self.rho)

    def facts(self) -> Plain:
        """Return the chosen marginal, the number of candidates, and the price."""
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
        """Return the facts. Candidates and terms, which can be very many, are in the attributes."""
        return self.facts()


@dataclass(frozen=True, eq=False)
class QuerySelection:
    """One private selection among linear queries, by the exponential mechanism.

    Args:
        queries: The queries.
        number: Number of the chosen query.
        sign: 1 if the estimate is too low, -1 if it is too high.
        epsilon: Parameter of the exponential mechanism.
        sensitivity: Sensitivity of the score.
        rho: The price (zCDP).
        signed: Whether each query was a candidate twice, once with each sign.
        without: Numbers of the queries that were not candidates.
    """

    queries: QueryFamily
    number: int
    sign: int
    epsilon: float
    sensitivity: float
    rho: Fraction
    signed: bool = False
    without: frozenset[int] = frozenset()

    @property
    def chosen(self) -> LinearQuery:
        """The chosen query."""
        return self.queries[self.number]

    def describe(self) -> Description:
        """Return its line in a report."""
        complement = "the complement of " if self.signed and self.sign == -1 else ""
        among = (len(self.queries) - len(self.without)) * (2 if self.signed else 1)
        what = f"Chose {complement}{self.chosen.describe}"
        return Description(what, one_of(among), f"epsilon {self.epsilon:.3g}", self.rho)

    def facts(self) -> Plain:
        """Return the chosen query in words, its sign if that was chosen, the number of candidates, and the price."""
        return {
            "selected": self.chosen.describe,
            **({"sign": self.sign} if self.signed else {}),
            "candidates": (len(self.queries) - len(self.without)) * (2 if self.signed else 1),
            "epsilon": self.epsilon,
            "sensitivity": self.sensitivity,
            "rho": float(self.rho),
        }

    def to_dict(self) -> Plain:
        """Return the facts and the definition of the query."""
        return {**self.facts(), "query": self.chosen.to_dict()}


@dataclass(frozen=True, eq=False)
class ScoreMeasurement:
    """Scores of some marginals with noise: ``values`` in records, one per candidate.

    ``score`` is "dependence" or "marginal gap"; ``scale`` is the standard deviation of the noise of
    each; ``sensitivity`` is how far one score moves between neighbors; ``rho`` was paid for all.
    ``terms`` are public parts of the scores, one number per candidate: for the dependence "left", the
    columns of one side as a sum of 2^i over their places i in the candidate.
    """

    candidates: tuple[Clique, ...]
    values: FloatArray
    scale: float
    sensitivity: float
    rho: Fraction
    score: str
    terms: Mapping[str, FloatArray] = field(default_factory=dict)

    def describe(self) -> Description:
        """Return its line in a report."""
        what = f"Measured the {self.score} of {counted(len(self.candidates), 'marginal')}"
        return Description(what, cells(self.values.size), plus_minus(self.scale), self.rho)

    def facts(self) -> Plain:
        """Return what was measured, how noisily (in records) and at what price."""
        return {
            "scored": [list(c) for c in self.candidates],
            "score": self.score,
            "scale": self.scale,
            "sensitivity": self.sensitivity,
            "rho": float(self.rho),
        }

    def to_dict(self) -> Plain:
        """Return the facts and the noisy scores."""
        return {**self.facts(), "values": self.values.tolist()}


@dataclass(frozen=True)
class HalfSpaceSelection:
    """One private selection among half-spaces, by the exponential mechanism: ``queries[number]``."""

    queries: tuple[HalfSpace, ...]
    number: int
    epsilon: float
    sensitivity: float
    rho: Fraction

    @property
    def chosen(self) -> HalfSpace:
        """The half-space."""
        return self.queries[self.number]

    def describe(self) -> Description:
        """Return its line in a report."""
        what = f"Chose {self.chosen.describe}"
        return Description(what, one_of(len(self.queries)), f"epsilon {self.epsilon:.3g}", self.rho)

    def facts(self) -> Plain:
        """Return what was chosen, in words, among how many, and at what price."""
        return {
            "selected": self.chosen.describe,
            "candidates": len(self.queries),
            "epsilon": self.epsilon,
            "sensitivity": self.sensitivity,
            "rho": float(self.rho),
        }

    def to_dict(self) -> Plain:
        """Return the facts, and what defines the half-space."""
        return {**self.facts(), "query": self.chosen.to_dict()}


@dataclass(frozen=True, eq=False)
class Hindsight:
    """The L1 distances, in records, of the estimates that one choice was scored with.

    Both are functions of the noisy answers.

    Args:
        selection: Position of the choice among the transcript's choices.
        surprise: Distance from the chosen marginal's estimate to the noisy answer that followed.
        drift: For each candidate the distance from its estimate to the released model. It is NaN if
            the candidate took part in a later choice, if a measurement contains it, or if the
            model's exact marginal was too large.
    """

    selection: int
    surprise: float
    drift: FloatArray


@dataclass(frozen=True, eq=False)
class PublicReading:
    """A public marginal, scaled to the private row count, as an estimate of the private marginal.

    No question was put to the private rows for it.

    Args:
        clique: The columns.
        values: Counts with one axis per column.
        scales: For each cell the standard deviation of the noise that it is trusted like; infinite
            for a cell without information.
        source: The sha256 of the public table.
        query: The codes that were merged.
    """

    clique: Clique
    values: FloatArray
    scales: FloatArray
    source: str
    query: LinearMap = IDENTITY

    @property
    def scale(self) -> float:
        """The root mean square of the finite ``scales``."""
        finite = self.scales[np.isfinite(self.scales)]
        return float(np.sqrt((finite**2).mean())) if finite.size else float("inf")

    def describe(self) -> Description:
        """Return its line in a report."""
        what = f"Read {', '.join(self.clique)} from public data"
        return Description(what, cells(self.values.size), f"as if {plus_minus(self.scale)}")

    def facts(self) -> Plain:
        """Return the columns and the scale."""
        return {"read": list(self.clique), "cells": int(self.values.size), "scale": self.scale}

    def to_dict(self) -> Plain:
        """Return the facts, the counts and scales as nested lists (None for infinite), and the source."""
        finite = np.isfinite(self.scales)
        scales = np.where(finite, self.scales.astype(object), np.array(None)).tolist()
        scale = self.scale if finite.any() else None
        numbers = {"values": self.values.tolist(), "scales": scales, "source": self.source}
        return {**self.facts(), "scale": scale, **numbers}


@dataclass(frozen=True)
class PublicTotal:
    """The row count, which is public under the unit of replacing a row."""

    total: int

    def describe(self) -> Description:
        """Return its line in a report."""
        return Description(f"{counted(self.total, 'record')}, public under this unit", "", "")

    def facts(self) -> Plain:
        """Return the row count."""
        return {"public_total": self.total}

    def to_dict(self) -> Plain:
        """Return the row count."""
        return self.facts()


Entry = (
    Measurement
    | Answer
    | ScoreMeasurement
    | Selection
    | QuerySelection
    | HalfSpaceSelection
    | PublicReading
    | PublicTotal
    | ColumnAnswer
    | Discovery
)
