"""Weights of answers beside the distribution that the weights start from, by empirical Bayes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from margrave.models.weights.grid_support import Support
from margrave.models.weights.observations import Observations
from margrave.types import FloatArray

#: Extra variance of those answers: they may lie anywhere, by p (1 − p).
OUTLIER_SPREAD = 1.0


@dataclass(frozen=True, eq=False)
class Spreads:
    """Shares at the start and prior spreads of all answers: first the single queries, then each
    marginal.

    The truth of an answer has the prior mean p, its share at the start, and the variance p (1 − p)
    spread.
    """

    shares: list[FloatArray]
    spreads: list[FloatArray]

    @staticmethod
    def of(known: Observations, start: Support, sampling: float) -> Spreads:
        """Return the spreads by which the answers scatter around the start, as a mixture of two
        normals:

            spread = sampling + extra              for most answers,
            spread = sampling + ANYWHERE           for the part ``strange`` of them

        ``sampling`` is the variance between two samples of one population, 1/n + 1/n'. ``extra``
        and ``strange`` maximize the likelihood of all answers. An answer's spread reproduces its
        posterior mean under both.

        Privacy:
            None spent; it sees noisy answers and public records.

        References:
            Efron and Morris (1973), Stein's estimation rule and its competitors: an empirical Bayes
            approach.
        """
        sums = start.marginals(known.cliques)
        shares = [start.selected_by(known.queries).sums() / float(start.weights.sum())]
        shares += [m.shares_in(sums[m.clique]) for m in known.marginals]
        answers = [known.answers, *(m.shares for m in known.marginals)]
        scales = [known.scales, *(np.full(m.shares.shape, m.scale) for m in known.marginals)]
        gaps = Gaps(*map(_flat, (shares, answers, scales)))
        extra, part = gaps.likeliest(sampling)
        spreads = gaps.spreads(sampling + extra, sampling + OUTLIER_SPREAD, part)
        ends = np.cumsum([p.size for p in shares])[:-1]
        return Spreads(
            shares,
            [s.reshape(p.shape) for s, p in zip(np.split(spreads, ends), shares, strict=True)],
        )


@dataclass(frozen=True, eq=False)
class Gaps:
    """Answers beside their shares at the start, and the deviations of their noise, all in a row."""

    shares: FloatArray
    answers: FloatArray
    scales: FloatArray

    def likeliest(self, sampling: float) -> tuple[float, float]:
        """Return the ``EXTRA`` and ``OUTLIER_FRACTIONS`` with the largest likelihood over answers
        that can move.
        """
        # Candidates for the variance of the truth around the start beyond sampling.
        candidates = (0.0, *np.geomspace(1e-7, 1.0, 36).tolist())
        # Candidates for the fraction of answers that the start does not describe.
        outlier_fractions = (0.0, 0.001, 0.01, 0.03, 0.1, 0.3)
        movable = (self.shares > 0.0) & (self.shares < 1.0) & np.isfinite(self.scales)
        gaps = Gaps(self.shares[movable], self.answers[movable], self.scales[movable])
        far, best = gaps.likelihoods(sampling + OUTLIER_SPREAD), (-np.inf, 0.0, 0.0)
        for extra in candidates:
            near = gaps.likelihoods(sampling + extra)
            ratio = np.exp(np.minimum(far - near, 500.0))
            sums = (
                (float((near + np.log1p(part * (ratio - 1.0))).sum()), part)
                for part in outlier_fractions
            )
            best = max(best, *((s, extra, part) for s, part in sums), key=lambda found: found[0])
        return best[1], best[2]

    def likelihoods(self, spread: float) -> FloatArray:
        """Return the logarithm of each answer's density, but for a constant."""
        variances = self.shares * (1.0 - self.shares) * spread + self.scales**2
        variances = np.maximum(variances, np.finfo(float).tiny)
        return np.asarray(
            -0.5 * (np.log(variances) + (self.answers - self.shares) ** 2 / variances)
        )

    def spreads(self, near: float, far: float, part: float) -> FloatArray:
        """Return one spread for each answer in place of two."""
        found = np.full(self.shares.shape, near)
        finite = np.isfinite(self.scales)
        gaps = Gaps(self.shares[finite], self.answers[finite], self.scales[finite])
        odds = np.exp(np.clip(gaps.likelihoods(near) - gaps.likelihoods(far), -500.0, 500.0))
        strange = part / (part + (1.0 - part) * odds)
        noise, room = gaps.scales**2, gaps.shares * (1.0 - gaps.shares)
        low, high = room * near + noise, room * far + noise
        weighed = np.maximum((1.0 - strange) * high + strange * low, np.finfo(float).tiny)
        found[finite] = (high * near + strange * noise * (far - near)) / weighed
        return found


def shrunk(known: Observations, start: Support, sampling: float) -> Observations:
    """Return the answers as far as they exceed their noise: with p the share at the start, and
    ``spread`` of ``Spreads``,

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
    marginals = tuple(
        replace(m, shares=a, scale=0.0) for m, a in zip(known.marginals, others, strict=True)
    )
    return replace(known, answers=first, scales=np.zeros(len(first)), marginals=marginals)


def _weight(variance: FloatArray, scale: FloatArray) -> FloatArray:
    return np.asarray(
        variance / np.maximum(variance + scale**2, np.finfo(float).tiny), dtype=np.float64
    )


def _flat(parts: list[FloatArray]) -> FloatArray:
    return np.concatenate([p.reshape(-1) for p in parts])
