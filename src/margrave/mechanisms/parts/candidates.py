"""The candidates that a round scores: all, or those of a shortlist."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from margrave.domain import Domain
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.shortlist import Shortlist
from margrave.models import Answerer, projected_error
from margrave.privacy import Private
from margrave.types import Clique, FloatArray, Generator
from margrave.workload import Workload


@dataclass(frozen=True)
class EveryCandidate:
    """All candidates, as in the paper of AIM.

    Args:
        candidates: The candidates.
    """

    candidates: Collection[Clique]

    def pick(
        self,
        capacity: Capacity,
        measured: Collection[Clique],
        share: float,
        scale: float,
        rng: Generator,
    ) -> list[Clique]:
        """Return those that keep the model within a share of its size or do not enlarge it."""
        return capacity.within(self.candidates, measured, share)

    def note(
        self,
        estimates: Mapping[Clique, FloatArray],
        noise: Mapping[Clique, float],
        scale: float,
        selected: Clique,
        learned: float,
    ) -> None:
        """Do nothing: no score ranks a later round."""


@dataclass(frozen=True)
class Scoring:
    """The number of candidates that a round scores, and the marginals that a run counts for them.

    Args:
        workload: The workload, whose closure are the candidates.
        domain: The domain.
        shortlist: The number of candidates that a round scores, and 0 for all. None means 64 if there are more
            than ``scored_at_most``, and else all.
        scored_at_most: The number of candidates up to which all are scored by default; a tenth of it if they have
            more than ``many_cells`` together.
    """

    workload: Workload
    domain: Domain
    shortlist: int | None
    scored_at_most: float

    #: Cells of marginals that are counted for a run with a shortlist, beside columns and pairs.
    max_counted_cells: ClassVar[int] = 1 << 25
    #: Cells above which scoring a few hundred candidates takes most of a run's time.
    many_cells: ClassVar[int] = 1_000_000

    @property
    def per_round(self) -> int:
        """The number of candidates that a round scores; 0 for all."""
        candidates = len(self.workload.closure())
        if self.shortlist is None:
            most = self.scored_at_most / (10 if self._cells > self.many_cells else 1)
            return 64 if candidates > most else 0
        return self.shortlist if self.shortlist < candidates else 0

    @property
    def counts_all(self) -> bool:
        """True if all candidates are counted when a run begins."""
        return not self.per_round or self._cells <= self.max_counted_cells

    @cached_property
    def _cells(self) -> int:
        return sum(map(self.domain.cells, self.workload.closure()))

    def counted_first(self) -> Collection[Clique]:
        """Return all candidates, or columns, pairs and purposes if a shortlist leaves others out."""
        candidates = self.workload.closure()
        if self.counts_all:
            return candidates
        return [*self.workload.first, *(r for r in candidates if len(r) <= 2)]

    def counted_cells(self) -> int | None:
        """Return the cells that a shortlist leaves to be counted at most; None for all."""
        if self.counts_all:
            return None
        return max(self.max_counted_cells, sum(map(self.domain.cells, self.counted_first())))

    def begin(
        self,
        private: Private,
        weights: Mapping[Clique, float],
        model: Answerer,
        left: Domain,
        scale: float,
    ) -> EveryCandidate | Shortlist:
        """Return the candidates of a run. A shortlist measures the scores of pairs, and counts its candidates.

        Args:
            private: The gate.
            weights: The candidates with their weights.
            model: The model of the columns.
            left: The codes that the model distinguishes.
            scale: The noise scale of the first round.

        Privacy:
            ``Shortlist.score_share`` of what remains with a shortlist, and else none.
        """
        if not self.per_round:
            return EveryCandidate(list(weights))
        columns = model.answer([r for r in weights if len(r) == 1])
        errors = projected_error(columns, scale, left)
        shortlist = Shortlist(private.domain, weights, columns, errors, self.per_round)
        shortlist.measure(private)
        if not self.counts_all:
            # Later rounds have less noise: a quarter of it is that of two doublings.
            private.prepare(shortlist.limit(self.max_counted_cells, scale / 4))
        return shortlist
