"""How far answers are believed beside the distribution that the weights start from: as far as they bear it out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from margrave.models.weights.grid import Places
from margrave.models.weights.known import Known
from margrave.typing import FloatArray

EXTRA = (0.0, *np.geomspace(1e-7, 1.0, 36).tolist())
"""How much further than by sampling the truth may lie from the start: the answers choose one."""
STRANGE = (0.0, 0.001, 0.01, 0.03, 0.1, 0.3)
"""The part of the answers of which the start knows nothing: the answers choose one."""
ANYWHERE = 1.0
"""How much further the truth of those may lie: anywhere, by p (1 − p)."""


@dataclass(frozen=True, eq=False)
class Spreads:
    """What answers are believed by, first the single queries, then each marginal: shares at the start, and spreads.

    The truth of an answer is taken to lie around its share p at the start with variance p (1 − p) spread.
    """

    shares: list[FloatArray]
    spreads: list[FloatArray]

    @staticmethod
    def of(known: Known, start: Places, sampling: float) -> Spreads:
        """What the answers tell of the start, as a mixture of two normal distributions:

            spread = sampling + extra              for most answers,
            spread = sampling + ANYWHERE           for the part ``strange`` of them

        ``sampling`` is by how much two samples of one population differ, 1/n + 1/n'. ``extra`` and ``strange`` are the
        most likely ones given all answers; an answer's spread is what gives it the posterior mean of both.

        **Privacy:** none spent; it sees noisy answers and public records.

        Source: Efron and Morris (1973), Stein's estimation rule and its competitors: an empirical Bayes approach.
        """
        sums = start.marginals(known.cliques)
        shares = [start.selected_by(known.queries).sums() / float(start.weights.sum())]
        shares += [m.shares_in(sums[m.clique]) for m in known.marginals]
        answers = [known.answers, *(m.shares for m in known.marginals)]
        scales = [known.scales, *(np.full(m.shares.shape, m.scale) for m in known.marginals)]
        told = Gaps(*map(_flat, (shares, answers, scales)))
        extra, part = told.likeliest(sampling)
        spreads = told.spreads(sampling + extra, sampling + ANYWHERE, part)
        ends = np.cumsum([p.size for p in shares])[:-1]
        return Spreads(shares, [s.reshape(p.shape) for s, p in zip(np.split(spreads, ends), shares, strict=True)])


@dataclass(frozen=True, eq=False)
class Gaps:
    """Answers beside their shares at the start, and the deviations of their noise, all in a row."""

    shares: FloatArray
    answers: FloatArray
    scales: FloatArray

    def likeliest(self, sampling: float) -> tuple[float, float]:
        """Of ``EXTRA`` and ``STRANGE`` what makes the answers most likely, where those can move at all."""
        movable = (self.shares > 0.0) & (self.shares < 1.0) & np.isfinite(self.scales)
        told = Gaps(self.shares[movable], self.answers[movable], self.scales[movable])
        far, best = told.likelihoods(sampling + ANYWHERE), (-np.inf, 0.0, 0.0)
        for extra in EXTRA:
            near = told.likelihoods(sampling + extra)
            ratio = np.exp(np.minimum(far - near, 500.0))
            sums = ((float((near + np.log1p(part * (ratio - 1.0))).sum()), part) for part in STRANGE)
            best = max(best, *((s, extra, part) for s, part in sums), key=lambda found: found[0])
        return best[1], best[2]

    def likelihoods(self, spread: float) -> FloatArray:
        """The logarithm of each answer's density, but for a constant."""
        variances = self.shares * (1.0 - self.shares) * spread + self.scales**2
        variances = np.maximum(variances, np.finfo(float).tiny)
        return np.asarray(-0.5 * (np.log(variances) + (self.answers - self.shares) ** 2 / variances))

    def spreads(self, near: float, far: float, part: float) -> FloatArray:
        """One spread for each answer in the place of two.

        With r the probability of ``far``, and w(s) = v / (v + scale²), v = p (1 − p) s, what each makes of an answer,

            w(spread) = (1 − r) w(near) + r w(far)
        """
        found = np.full(self.shares.shape, near)
        heard = np.isfinite(self.scales)
        told = Gaps(self.shares[heard], self.answers[heard], self.scales[heard])
        odds = np.exp(np.clip(told.likelihoods(near) - told.likelihoods(far), -500.0, 500.0))
        strange = part / (part + (1.0 - part) * odds)
        noise, room = told.scales**2, told.shares * (1.0 - told.shares)
        low, high = room * near + noise, room * far + noise
        weighed = np.maximum((1.0 - strange) * high + strange * low, np.finfo(float).tiny)
        found[heard] = (high * near + strange * noise * (far - near)) / weighed
        return found


def shrunk(known: Known, start: Places, sampling: float) -> Known:
    """The answers as far as they exceed their noise: with p the share at the start, and ``spread`` of ``Spreads``,

        answer ← p + w (answer − p),    w = v / (v + scale²),    v = p (1 − p) spread

    This is the posterior mean of each by itself. Noise has its due by that, so that no tolerance is left: scales are 0.

    **Privacy:** none spent; it sees noisy answers and public records.
    """
    found = Spreads.of(known, start, sampling)
    answers = [known.answers, *(m.shares for m in known.marginals)]
    scales = [known.scales, *(np.full(m.shares.shape, m.scale) for m in known.marginals)]
    first, *others = (
        p + _weight(p * (1.0 - p) * spread, s) * (a - p)
        for p, spread, a, s in zip(found.shares, found.spreads, answers, scales, strict=True)
    )
    marginals = tuple(replace(m, shares=a, scale=0.0) for m, a in zip(known.marginals, others, strict=True))
    return replace(known, answers=first, scales=np.zeros(len(first)), marginals=marginals)


def _weight(variance: FloatArray, scale: FloatArray) -> FloatArray:
    """How far an answer is believed; not at all where the start leaves no room."""
    return np.asarray(variance / np.maximum(variance + scale**2, np.finfo(float).tiny), dtype=np.float64)


def _flat(parts: list[FloatArray]) -> FloatArray:
    return np.concatenate([p.reshape(-1) for p in parts])
