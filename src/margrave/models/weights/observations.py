"""The answers of a transcript as shares of the records: single queries, and whole marginals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from margrave.domain import Domain
from margrave.marginal import IDENTITY, TOTAL, LinearMap, LinearQuery
from margrave.marginal.simplex import project_to_simplex
from margrave.models.precision_means import PrecisionMeans
from margrave.models.terms import Evidence, sets_of, terms_of, unfolded
from margrave.models.weights.grid_support import Support
from margrave.transcript import Answer, Entry, Measurement, PublicReading
from margrave.types import Clique, FloatArray


@dataclass(frozen=True, eq=False)
class NoisyMarginal:
    """The shares of a marginal's cells, or of groups of them, and the standard deviation of the noise of one."""

    clique: Clique
    shares: FloatArray
    scale: float
    query: LinearMap = IDENTITY

    def shares_in(self, sums: FloatArray) -> FloatArray:
        """Return the shares that a marginal's sums say."""
        return np.asarray(self.query.apply(self.clique, sums) / sums.sum(), dtype=np.float64)

    def clip_to_support(self, sums: FloatArray, least: float) -> NoisyMarginal:
        """Return the nearest distribution on the cells that have weight, each of which gets a
        little.
        """
        possible = self.query.apply(self.clique, sums) > 0.0
        shares = np.zeros(self.shares.shape)
        shares[possible] = np.maximum(
            project_to_simplex(self.shares[possible]), least / possible.sum()
        )
        return replace(self, shares=shares / shares.sum())


@dataclass(frozen=True, eq=False)
class Observations:
    """The answers: of single queries, the latest first, and of whole marginals; each once."""

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
    def of(domain: Domain, entries: Iterable[Entry], total: float) -> Observations:
        """Return the answers among some entries, as shares of ``total`` records.

        Repeated answers are averaged, weighted by their precision. The number of records is left
        out: it determines no share.
        """
        entries = [x for entry in entries for x in unfolded(domain, entry)]
        asked = PrecisionMeans[LinearQuery]()
        for a in entries:
            if isinstance(a, Answer) and a.query != TOTAL:
                query = sets_of(a.query)
                asked.move_to_end(query)
                asked.add(query, a.value / a.scale**2, a.scale**-2)
        latest = list(asked)[::-1]
        means = np.array([float(mean) for _, mean, _ in latest])
        precisions = np.array([float(precision) for *_, precision in latest])
        measurements = [m for m in entries if isinstance(m, Measurement | PublicReading)]
        return Observations(
            tuple(query for query, *_ in latest),
            np.asarray(means / total),
            np.asarray(precisions**-0.5 / total),
            (*_whole(domain, measurements, total), *_grouped(measurements, total)),
        )

    def clip_to_support(self, places: Support, least: float) -> Observations:
        """Return the same as numbers that a distribution on these places can have: between
        ``least`` and 1 − ``least``.
        """
        sums = places.marginals(self.cliques)
        marginals = tuple(m.clip_to_support(sums[m.clique], least) for m in self.marginals)
        return replace(self, answers=np.clip(self.answers, least, 1.0 - least), marginals=marginals)


def _whole(
    domain: Domain, measurements: Sequence[Evidence], total: float
) -> Iterable[NoisyMarginal]:
    for term in terms_of(domain, [m for m in measurements if m.query.is_identity]):
        yield NoisyMarginal(term.clique, term.values / total, term.scale / total)


def _grouped(measurements: Sequence[Evidence], total: float) -> Iterable[NoisyMarginal]:
    for m in measurements:
        if not m.query.is_identity:
            yield NoisyMarginal(m.clique, m.values / total, m.scale / total, m.query)
