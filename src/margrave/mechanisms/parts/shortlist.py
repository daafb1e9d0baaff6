"""The few candidates that a round scores, ranked by public facts."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from fractions import Fraction
from itertools import combinations
from typing import ClassVar

import numpy as np

from margrave.domain import Domain
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.noisy_scores import noisy_scores
from margrave.mechanisms.parts.penalty import expected_noise
from margrave.privacy import MarginalGap, Private
from margrave.types import Clique, FloatArray, Generator, IntArray


class Shortlist:
    """Remembered errors of all candidates, by which each round picks a few to score.

    One noisy score per pair is measured: e_ab = ‖M_ab(D) − M_ab(independent)‖₁. With the model p that a marginal
    of both columns was last scored with, the error of a candidate r is remembered as

        sqrt( Σ_{ab ⊆ r} max(e_ab² − ‖M_ab(p) − M_ab(independent)‖₁², 0) )

    and at most as what r had to have to win the last selection that it took part in. The noise that counts
    against r is that of its last scoring. Before the first it is that of as many cells as the columns have codes
    in effect, exp(entropy).

    Args:
        domain: The columns.
        weights: The candidates, with a positive weight for each.
        columns: The model's answers for the columns, independent of each other.
        column_errors: The expected errors of these answers.
        size: The number of candidates that a round scores.

    Privacy:
        Only ``measure`` spends. Ranks follow from noisy answers and public values. So the candidates of a round
        are public, and the gate scores them anew.
    """

    #: The share of what remains of the budget that the scores of pairs cost.
    score_share: ClassVar[Fraction] = Fraction(1, 50)
    #: The share of a shortlist that was scored longest ago, whatever its rank.
    oldest_share: ClassVar[float] = 0.25
    #: Candidates whose model is sized at once, and at most in a round.
    sized_at_once: ClassVar[int] = 128
    max_sized: ClassVar[int] = 4096

    def __init__(
        self,
        domain: Domain,
        weights: Mapping[Clique, float],
        columns: Mapping[Clique, FloatArray],
        column_errors: Mapping[Clique, float],
        size: int,
    ) -> None:
        self._domain, self._columns, self._size = domain, columns, size
        self._candidates = list(weights)
        self._places = {r: i for i, r in enumerate(weights)}
        self._weights = np.array(list(weights.values()))
        self._members = _members_by_length(domain, self._candidates)
        self._left = np.zeros((len(domain), len(domain)))  # e_ab; on the diagonal a column's error
        self._moved = np.zeros_like(self._left)
        codes = np.zeros(len(domain))
        for (a,), counts in columns.items():
            i = domain.index(a)
            self._left[i, i] = column_errors[a,]
            codes[i] = _entropy(counts)
        self._cells = np.empty(len(weights))
        for places, members in self._members:
            self._cells[places] = np.exp(codes[members].sum(axis=1))
        self._total = max((float(c.sum()) for c in columns.values()), default=0.0)
        self._relative_noise = np.ones(len(weights))
        self._bounds = np.full(len(weights), np.inf)
        self._scored = np.full(len(weights), -1)
        self._sizes = np.zeros(len(weights))
        self._open = np.ones(len(weights), dtype=bool)
        self._round, self._last = 0, list[int]()

    def measure(self, private: Private) -> None:
        """Measure how far each pair of columns is from independence.

        Privacy:
            ``score_share`` of the budget that remains.
        """
        pairs = [r for r in self._candidates if len(r) == 2]
        if pairs and private.remaining > 0:
            gap = MarginalGap.plain({r: self._independent(r) for r in pairs})
            scores = noisy_scores(private, pairs, gap, private.remaining * self.score_share)
            for r, error in scores.items():
                self._left[self._index(r)] = max(error, 0.0)

    def limit(self, max_cells: float, scale: float) -> list[Clique]:
        """Return the candidates of the highest rank whose marginals have at most ``max_cells`` cells together.

        Columns and pairs are never left out. ``scale`` is the noise scale that ranks are taken at.
        """
        wide = np.array([len(r) > 2 for r in self._candidates])
        order = np.lexsort((-self._gains(scale), wide))
        cells = np.cumsum([float(self._domain.cells(self._candidates[i])) for i in order])
        self._open[order] = (cells <= max_cells) | ~wide[order]
        return [r for r, kept in zip(self._candidates, self._open, strict=True) if kept]

    def pick(
        self,
        capacity: Capacity,
        measured: Collection[Clique],
        share: float,
        scale: float,
        rng: Generator,
    ) -> list[Clique]:
        """Return the candidates of a round: those of the highest rank, and those scored longest ago.

        All keep the model within a share of its size or do not enlarge it.
        """
        limit = capacity.limit(measured, share)
        few = int(self._size * self.oldest_share)
        ranked = np.argsort(-self._gains(scale), kind="stable")
        picked = self._fitting(ranked, self._size - few, capacity, measured, limit)
        oldest = np.lexsort((rng.random(len(ranked)), self._scored))
        oldest = oldest[~np.isin(oldest, picked)]
        picked += self._fitting(oldest, few, capacity, measured, limit)
        columns = [self._places[r] for r in self._columns]
        self._last = sorted(picked) or columns  # which never enlarge the model
        self._scored[self._last] = self._round
        self._round += 1
        return [self._candidates[i] for i in self._last]

    def note(
        self,
        estimates: Mapping[Clique, FloatArray],
        noise: Mapping[Clique, float],
        scale: float,
        selected: Clique,
        learned: float,
    ) -> None:
        """Remember what a round shows of its candidates.

        Args:
            estimates: The model's answers that the candidates were scored with.
            noise: The noise that counted against each.
            scale: The noise scale of the round.
            selected: The candidate that was selected.
            learned: How far its measurement moved the model's answer for it.
        """
        won = self._weights[self._places[selected]] * max(learned - noise[selected], 0.0)
        plain = self._plain_noise(scale)
        for i in self._last:
            r = self._candidates[i]
            self._relative_noise[i] = noise[r] / max(plain[i], 1e-9)
            self._bounds[i] = noise[r] + (0.0 if r == selected else won / self._weights[i])
            for pair in combinations(r, 2):
                others = tuple(j for j, a in enumerate(r) if a not in pair)
                moved = estimates[r].sum(axis=others) - self._independent(pair)
                self._moved[self._index(pair)] = np.abs(moved).sum()

    def _gains(self, scale: float) -> FloatArray:
        left = np.maximum(self._left**2 - self._moved**2, 0.0)
        errors = np.empty(len(self._candidates))
        for places, members in self._members:
            ways = members.shape[1]
            ends = [(0, 0)] if ways == 1 else combinations(range(ways), 2)
            errors[places] = sum(left[members[:, i], members[:, j]] for i, j in ends)
        errors = np.minimum(np.sqrt(errors), self._bounds)
        gains = self._weights * (errors - self._relative_noise * self._plain_noise(scale))
        return np.where(self._open, gains, -np.inf)

    def _plain_noise(self, scale: float) -> FloatArray:
        # A projection to counts of the same sum is off by at most twice the sum.
        return np.minimum(expected_noise(scale, 1) * self._cells, 2.0 * self._total)

    def _fitting(
        self,
        order: IntArray,
        most: int,
        capacity: Capacity,
        measured: Collection[Clique],
        limit: float,
    ) -> list[int]:
        # A model only grows, so one that was too large for the limit still is.
        order = order[self._open[order] & (self._sizes[order] <= limit)][: self.max_sized]
        found: list[int] = []
        for start in range(0, len(order), self.sized_at_once):
            block = order[start : start + self.sized_at_once]
            self._sizes[block] = capacity.sizes([self._candidates[i] for i in block], measured)
            found += block[self._sizes[block] <= limit].tolist()
            if len(found) >= most:
                break
        return found[:most]

    def _independent(self, pair: Clique) -> FloatArray:
        first, second = (self._columns[a,] for a in pair)
        return np.multiply.outer(first, second) / max(self._total, 1e-9)

    def _index(self, pair: Clique) -> tuple[int, int]:
        return self._domain.index(pair[0]), self._domain.index(pair[1])


def _members_by_length(
    domain: Domain, candidates: Collection[Clique]
) -> list[tuple[IntArray, IntArray]]:
    """Return, for each number of columns, the places of these candidates and their columns' places."""
    by_length: dict[int, list[int]] = {}
    for i, r in enumerate(candidates):
        by_length.setdefault(len(r), []).append(i)
    listed, index = list(candidates), {a: i for i, a in enumerate(domain)}
    return [
        (np.array(places), np.array([[index[a] for a in listed[i]] for i in places]))
        for places in by_length.values()
    ]


def _entropy(counts: FloatArray) -> float:
    shares = np.maximum(counts, 0.0)
    shares = shares[shares > 0] / max(float(shares.sum()), 1e-9)
    return -math.fsum((shares * np.log(shares)).tolist())
