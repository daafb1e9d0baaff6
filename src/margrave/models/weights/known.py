"""What a transcript says about shares of the records: single queries, and whole marginals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from margrave.marginal import IDENTITY, TOTAL, LinearQuery, Query
from margrave.models.terms import Evidence, sets_of, terms_of
from margrave.models.weights.grid import Places
from margrave.schema.domain import Domain
from margrave.transcript import Answer, Entry, Measurement, PublicReading
from margrave.typing import Clique, FloatArray


@dataclass(frozen=True, eq=False)
class NoisyMarginal:
    """The shares of a marginal's cells, or of groups of them, and the standard deviation of the noise of one."""

    clique: Clique
    shares: FloatArray
    scale: float
    query: Query = IDENTITY

    def shares_in(self, sums: FloatArray) -> FloatArray:
        """The shares that a marginal's sums say."""
        return np.asarray(self.query.apply(self.clique, sums) / sums.sum(), dtype=np.float64)

    def within(self, sums: FloatArray, least: float) -> NoisyMarginal:
        """The nearest distribution on the cells that have weight, each of which gets a little."""
        possible = self.query.apply(self.clique, sums) > 0.0
        shares = np.zeros(self.shares.shape)
        shares[possible] = np.maximum(on_simplex(self.shares[possible]), least / possible.sum())
        return replace(self, shares=shares / shares.sum())


@dataclass(frozen=True, eq=False)
class Known:
    """What was answered: of single queries, the latest first, and of whole marginals; each asked once."""

    queries: tuple[LinearQuery, ...]
    answers: FloatArray
    scales: FloatArray
    marginals: tuple[NoisyMarginal, ...]

    def __len__(self) -> int:
        return len(self.queries) + len(self.marginals)

    @property
    def cliques(self) -> list[Clique]:
        """The marginals measured whole."""
        return [m.clique for m in self.marginals]

    @staticmethod
    def of(domain: Domain, entries: Iterable[Entry], total: float) -> Known:
        """The answers among some entries, in shares of ``total`` records.

        What was asked several times is the mean of its answers, weighted by their precision. The number of records
        itself says nothing about shares.
        """
        entries = list(entries)
        asked: dict[LinearQuery, tuple[float, float]] = {}
        for a in entries:
            if isinstance(a, Answer) and a.query != TOTAL:
                query = sets_of(a.query)
                weighted, precision = asked.pop(query, (0.0, 0.0))
                asked[query] = (weighted + a.value / a.scale**2, precision + a.scale**-2)
        latest = list(reversed(asked.items()))
        sums, precisions = np.array([kept for _, kept in latest]).reshape(-1, 2).T
        measurements = [m for m in entries if isinstance(m, Measurement | PublicReading)]
        return Known(
            tuple(query for query, _ in latest),
            np.asarray(sums / precisions / total),
            np.asarray(precisions**-0.5 / total),
            (*_whole(domain, measurements, total), *_grouped(measurements, total)),
        )

    def within(self, places: Places, least: float) -> Known:
        """The same as numbers that a distribution on these places can have: between ``least`` and 1 − ``least``."""
        sums = places.marginals(self.cliques)
        marginals = tuple(m.within(sums[m.clique], least) for m in self.marginals)
        return replace(self, answers=np.clip(self.answers, least, 1.0 - least), marginals=marginals)


def _whole(domain: Domain, measurements: Sequence[Evidence], total: float) -> Iterable[NoisyMarginal]:
    for term in terms_of(domain, [m for m in measurements if m.query.is_identity]):
        yield NoisyMarginal(term.clique, term.values / total, term.scale / total)


def _grouped(measurements: Sequence[Evidence], total: float) -> Iterable[NoisyMarginal]:
    for m in measurements:
        if not m.query.is_identity:
            yield NoisyMarginal(m.clique, m.values / total, m.scale / total, m.query)


def on_simplex(values: FloatArray) -> FloatArray:
    """The nearest numbers (least squares) that are not negative and sum to one: what noise made of a distribution.

    All are lowered, or raised, by one amount, and those that fall below zero are zero.
    """
    values = values - values.max()  # the same but for that amount, and exact where noise is beyond all measure
    falling = np.sort(values, axis=None)[::-1]
    lowered = (np.cumsum(falling) - 1.0) / np.arange(1, falling.size + 1)
    amount = lowered[np.flatnonzero(falling > lowered)[-1]]
    return np.asarray(np.maximum(values - amount, 0.0), dtype=np.float64)
