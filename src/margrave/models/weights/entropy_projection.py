"""Entropy projection: the weights of PEP and PEP^Pub, which explain all answers.

Answers are shares of all records.
"""

from __future__ import annotations

import numpy as np

from margrave.models.weights.grid_support import Support
from margrave.models.weights.mass import MAX_MASS, SHARE_TOLERANCE, within_range
from margrave.models.weights.observations import NoisyMarginal, Observations


def project(
    places: Support, known: Observations, *, gamma: float, least: float, iterations: int
) -> None:
    """Set the share that is furthest off to its answer, until none is off by more than gamma.

    With q the share now and a the answer, the update is

        D(x) ← D(x) · exp(alpha q(x)) / Z,    exp(alpha) = a (1 − q) / ((1 − a) q)

    Of all distributions with the share a it is the one of least relative entropy to D. Cells of a
    marginal measured whole that are off are set together, in the same way: they count no record
    twice. gamma is in standard deviations of an answer's noise; answers are kept between ``least``
    and 1 − ``least``.

    References:
        Liu, Vietri, Wu (2021), Algorithm 2 (Exponential Weights Projection).
    """
    projection = Projection(places, known, gamma, least)  # D_0
    for _ in range(iterations):
        if not projection.step():  # while max_i |a_i − q_i(D_t)| > gamma
            break


class Projection:
    """The shares of all answers, kept up to date from step to step."""

    def __init__(self, places: Support, known: Observations, gamma: float, least: float) -> None:
        self.places, self.known = places, known.clip_to_support(places, least)
        self.tolerances = np.maximum(gamma * known.scales, SHARE_TOLERANCE)
        self.gamma = gamma
        self.selected = places.selected_by(known.queries)
        self.fixed = np.zeros(len(known.queries), dtype=np.bool_)
        self._look()

    def _look(self) -> None:
        self.mass = within_range(self.places, float(self.places.weights.sum()))
        self.sums = self.selected.sums()
        self.marginals = self.places.marginals(self.known.cliques)

    def step(self) -> bool:
        """Set what is furthest off beyond its tolerance, and return whether anything was."""
        query, beyond = self._worst_query()  # Choose: i ← argmax_j |a_j − q_j(D_t)|
        marginal, more = self._worst_marginal()
        if max(beyond, more) <= 0.0:
            return False
        if more > beyond:
            self._set_marginal(self.known.marginals[marginal])  # Update
        else:
            self._set_query(query)  # Update
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
            float(np.abs(m.shares - m.shares_in(self.marginals[m.clique])).max())
            - self._tolerance(m)
            for m in self.known.marginals
        ]
        worst = int(np.argmax(beyond)) if beyond else -1
        return worst, beyond[worst] if beyond else 0.0

    def _tolerance(self, m: NoisyMarginal) -> float:
        return max(self.gamma * m.scale, SHARE_TOLERANCE)

    def _set_query(self, number: int) -> None:
        both = self.selected.overlaps(number)
        inside, answer = float(both[number]), float(self.known.answers[number])
        outside, below = self.mass - inside, (1.0 - answer) * inside
        if below < self.mass / MAX_MASS**2 or outside <= SHARE_TOLERANCE * self.mass:
            self.fixed[number] = True  # it counts no possible record, or all of them
            return
        factor = answer * outside / below  # exp(alpha)
        self.selected.scale(number, factor)
        self.sums += (factor - 1.0) * both
        self.mass = outside / (1.0 - answer)
        if self.known.marginals or not 1.0 / MAX_MASS < self.mass < MAX_MASS:
            self._look()

    def _set_marginal(self, m: NoisyMarginal) -> None:
        now = m.shares_in(self.marginals[m.clique])
        off = (np.abs(m.shares - now) > self._tolerance(m)) & (now > 0.0)
        wanted, rest = m.shares[off], float(now[~off].sum())
        left = 1.0 - float(wanted.sum()) if rest > SHARE_TOLERANCE else 0.0
        factors = np.full(now.shape, left / max(rest, SHARE_TOLERANCE))
        factors[off] = wanted * ((1.0 - left) / wanted.sum()) / now[off]
        self.places.rescale(m.clique, m.query.spread(m.clique, factors))
        self._look()
