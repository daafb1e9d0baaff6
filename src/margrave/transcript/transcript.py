"""The transcript: entries in their order, by kind, and the row count that they estimate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from margrave.marginal import TOTAL
from margrave.transcript.column_answer import ColumnAnswer
from margrave.transcript.discovery import Discovery
from margrave.transcript.entries import (
    Answer,
    Entry,
    Measurement,
    Plain,
    PublicReading,
    PublicTotal,
    QuerySelection,
    ScoreMeasurement,
    Selection,
)
from margrave.types import Clique


@dataclass(frozen=True, eq=False)
class Transcript:
    """Answers, choices and public facts, in order. Adding two transcripts appends the second."""

    entries: tuple[Entry, ...] = ()

    def __add__(self, other: Transcript) -> Transcript:
        return Transcript(self.entries + other.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def to_dict(self) -> Plain:
        """Return all entries in their order, under "entries", as plain data that fits in JSON.

        A measured marginal has ``measured`` (the columns), ``values``, ``scale``, ``rho`` and
        ``groups``; the answer of a query ``asked`` and ``value``; a choice ``selected`` and the
        number of ``candidates``; a public marginal ``read``, ``values`` and ``scales``. The schema
        gives the meaning of codes.

        Privacy:
            None spent: a release holds the same.

        >>> import numpy as np
        >>> from fractions import Fraction
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
        """The private selections among marginals."""
        return tuple(e for e in self.entries if isinstance(e, Selection))

    @property
    def readings(self) -> tuple[PublicReading, ...]:
        """The public marginals."""
        return tuple(e for e in self.entries if isinstance(e, PublicReading))

    @property
    def evidence(self) -> tuple[Measurement | PublicReading, ...]:
        """The marginals with noise, and the public marginals."""
        return tuple(e for e in self.entries if isinstance(e, Measurement | PublicReading))

    @property
    def query_selections(self) -> tuple[QuerySelection, ...]:
        """The private selections among linear queries."""
        return tuple(e for e in self.entries if isinstance(e, QuerySelection))

    @property
    def scores(self) -> tuple[ScoreMeasurement, ...]:
        """The noisy scores."""
        return tuple(e for e in self.entries if isinstance(e, ScoreMeasurement))

    @property
    def counts_something(self) -> bool:
        """True if it has a count other than the row count."""
        return bool(self.evidence) or any(a.query != TOTAL for a in self.answers)

    @property
    def counted(self) -> tuple[Clique, ...]:
        """The cliques of all marginals and queries, each once; without those of the row count."""
        asked = (a.query.clique for a in self.answers if a.query != TOTAL)
        return tuple(dict.fromkeys([*(e.clique for e in self.evidence), *asked]))

    @property
    def column_answers(self) -> tuple[ColumnAnswer, ...]:
        """The noisy answers about raw columns."""
        return tuple(e for e in self.entries if isinstance(e, ColumnAnswer))

    @property
    def discoveries(self) -> tuple[Discovery, ...]:
        """The frequent values of open columns."""
        return tuple(e for e in self.entries if isinstance(e, Discovery))

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The measured cliques, each once."""
        return tuple(dict.fromkeys(m.clique for m in self.measurements))

    def total(self) -> float:
        """Return the row count: public, or the minimum-variance unbiased estimate from noisy totals.

        The cells of each measurement sum to a total with variance cells · scale², and a query can
        have asked for it. The result is at least 1, so that a model exists.
        """
        for entry in self.entries:
            if isinstance(entry, PublicTotal):
                return max(1.0, float(entry.total))
        totals = self._totals()
        weight = sum(1.0 / variance for _, variance in totals)
        return (
            max(1.0, sum(total / variance for total, variance in totals) / weight)
            if totals
            else 1.0
        )

    def total_deviation(self) -> float:
        """Return the standard deviation of ``total()``: 0 if it is public, infinite if it is unknown."""
        if any(isinstance(e, PublicTotal) for e in self.entries):
            return 0.0
        weight = sum(1.0 / variance for _, variance in self._totals())
        return weight**-0.5 if weight > 0 else math.inf

    def _totals(self) -> list[tuple[float, float]]:
        """Return every noisy row count with its variance."""
        totals = [
            (float(m.values.sum()), m.values.size * m.scale**2)
            for m in self.measurements
            if m.query.is_partition
        ]
        for m in self.measurements:
            weights = (
                None if m.query.is_partition else m.query.total_weights(m.clique, m.values.shape)
            )
            if weights is not None:
                totals.append(
                    (float((weights * m.values).sum()), float((weights**2).sum()) * m.scale**2)
                )
        return totals + [(float(a.value), a.scale**2) for a in self.answers if a.query == TOTAL]
