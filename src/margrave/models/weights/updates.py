"""How noisy answers move weights: multiplicative updates, and projections onto what was answered.

Answers are shares of all records here. A whole marginal is answered by its cells at once: they are queries that count
no record twice, and what is done for one query is done for all of them in one pass.
"""

from __future__ import annotations

import numpy as np

from margrave.models.weights.grid import Places
from margrave.models.weights.known import Known, NoisyMarginal
from margrave.typing import Clique

NOTHING = 1e-12
"""A share that is zero but for rounding."""
RANGE = 1e50
"""The sum of all weights stays below this, and above its inverse."""
FAR = 100.0
"""Updates may move a weight so far, in logarithms, before the sum is looked at."""
HALF = 0.5
"""Liu et al. leave alone what is off by less than this share of what the round's own answer is off by."""


def multiply(places: Places, known: Known, *, step: float, passes: int, threshold: float) -> None:
    """Multiplicative weights: ``D(x) ← D(x) · exp(step · q(x) (answer − q(D)))``, query after query, pass after pass.

    An answer within ``threshold`` standard deviations of its noise is left alone; a pass that finds all of them so is
    the last. The cells of a marginal measured whole are updated together.
    """
    known = known.within(places, 0.0)
    selected = places.selected_by(known.queries)
    mass = float(places.weights.sum())
    for _ in range(passes):
        mass, moved = selected.weigh(known.answers, threshold * known.scales, step, mass)
        for m in known.marginals:
            sums = places.marginals([m.clique])[m.clique]
            gaps = m.shares - m.shares_in(sums)
            gaps[np.abs(gaps) <= threshold * m.scale] = 0.0
            if gaps.any():
                factors = m.query.spread(m.clique, np.exp(step * gaps))
                places.spread(m.clique, factors)
                mass, moved = float((factors * sums).sum()), True
        if not moved:
            break
        mass = within_range(places, mass)


def multiply_at_once(places: Places, known: Known, latest: Clique | None, *, step: float) -> None:
    """One multiplicative update by every answer that is off by half as much as the latest one, or more.

    All go by the shares before the update, ``D(x) ← D(x) · exp(step · Σ q(x) (answer − q(D)))``, so that their order
    says nothing. A marginal measured whole is as far off as its worst cell. ``latest`` is the marginal that was
    measured last, None where it was a single query, the first of those known.
    """
    known = known.within(places, 0.0)
    selected = places.selected_by(known.queries)
    gaps = known.answers - selected.sums() / float(places.weights.sum())
    sums = places.marginals(known.cliques)
    tables = [m.shares - m.shares_in(sums[m.clique]) for m in known.marginals]
    furthest = [float(np.abs(table).max()) for table in tables]
    of_latest = float(abs(gaps[0])) if latest is None else furthest[known.cliques.index(latest)]
    moved = 0.0
    for i in np.flatnonzero(np.abs(gaps) >= HALF * of_latest):
        selected.scale(int(i), float(np.exp(step * gaps[i])))
        moved = _kept_in_range(places, moved + step * abs(float(gaps[i])))
    for m, table, off in zip(known.marginals, tables, furthest, strict=True):
        if off >= HALF * of_latest:
            places.spread(m.clique, m.query.spread(m.clique, np.exp(step * table)))
            moved = _kept_in_range(places, moved + step * off)


def _kept_in_range(places: Places, moved: float) -> float:
    """How far weights can have moved since their sum was looked at, which is when that is far."""
    if moved <= FAR:
        return moved
    within_range(places, float(places.weights.sum()))
    return 0.0


def within_range(places: Places, mass: float) -> float:
    """The sum of the weights; they are scaled to one first where it has grown or shrunk far."""
    if 1.0 / RANGE < mass < RANGE:
        return mass
    places.weights *= 1.0 / mass
    return 1.0


def project(places: Places, known: Known, *, gamma: float, least: float, iterations: int) -> None:
    """Entropy projection: set the share that is furthest off to its answer, until none is off by more than gamma.

    With q the share now and a the answer, ``D(x) ← D(x) · exp(alpha q(x)) / Z`` makes the share
    ``q exp(alpha) / (1 − q + q exp(alpha))``, which is a where

        exp(alpha) = a (1 − q) / ((1 − a) q)

    Of all distributions with that share it is the one of least relative entropy to D. Cells of a marginal measured
    whole that are off are set together, in the same way: they count no record twice. gamma is in standard
    deviations of an answer's noise; answers are kept between ``least`` and 1 − ``least``.
    """
    projection = Projection(places, known, gamma, least)
    for _ in range(iterations):
        if not projection.step():
            break


class Projection:
    """The shares of everything answered, kept up to date from step to step."""

    def __init__(self, places: Places, known: Known, gamma: float, least: float) -> None:
        self.places, self.known = places, known.within(places, least)
        self.tolerances = np.maximum(gamma * known.scales, NOTHING)
        self.gamma = gamma
        self.selected = places.selected_by(known.queries)
        self.fixed = np.zeros(len(known.queries), dtype=np.bool_)
        self._look()

    def _look(self) -> None:
        """The sums as they are."""
        self.mass = within_range(self.places, float(self.places.weights.sum()))
        self.sums = self.selected.sums()
        self.marginals = self.places.marginals(self.known.cliques)

    def step(self) -> bool:
        """Set what is furthest off beyond its tolerance; False where nothing is."""
        query, beyond = self._worst_query()
        marginal, more = self._worst_marginal()
        if max(beyond, more) <= 0.0:
            return False
        if more > beyond:
            self._set_marginal(self.known.marginals[marginal])
        else:
            self._set_query(query)
        return True

    def _worst_query(self) -> tuple[int, float]:
        if self.fixed.all():
            return -1, 0.0
        beyond = np.abs(self.known.answers - self.sums / self.mass) - self.tolerances
        beyond[self.fixed] = -1.0
        worst = int(np.argmax(beyond))
        return worst, float(beyond[worst])

    def _worst_marginal(self) -> tuple[int, float]:
        beyond = [
            float(np.abs(m.shares - m.shares_in(self.marginals[m.clique])).max()) - self._tolerance(m)
            for m in self.known.marginals
        ]
        worst = int(np.argmax(beyond)) if beyond else -1
        return worst, beyond[worst] if beyond else 0.0

    def _tolerance(self, m: NoisyMarginal) -> float:
        return max(self.gamma * m.scale, NOTHING)

    def _set_query(self, number: int) -> None:
        both = self.selected.overlaps(number)
        inside, answer = float(both[number]), float(self.known.answers[number])
        outside, below = self.mass - inside, (1.0 - answer) * inside
        if below < self.mass / RANGE**2 or outside <= NOTHING * self.mass:  # it counts nothing that can be, or all
            self.fixed[number] = True
            return
        factor = answer * outside / below
        self.selected.scale(number, factor)
        self.sums += (factor - 1.0) * both
        self.mass = outside / (1.0 - answer)
        if self.known.marginals or not 1.0 / RANGE < self.mass < RANGE:
            self._look()

    def _set_marginal(self, m: NoisyMarginal) -> None:
        now = m.shares_in(self.marginals[m.clique])
        off = (np.abs(m.shares - now) > self._tolerance(m)) & (now > 0.0)
        wanted, rest = m.shares[off], float(now[~off].sum())
        left = 1.0 - float(wanted.sum()) if rest > NOTHING else 0.0
        factors = np.full(now.shape, left / max(rest, NOTHING))
        factors[off] = wanted * ((1.0 - left) / wanted.sum()) / now[off]
        self.places.spread(m.clique, m.query.spread(m.clique, factors))
        self._look()
