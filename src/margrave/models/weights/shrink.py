"""Answers drawn towards the distribution that the weights start from, as far as the answers themselves bear it out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from margrave.models.weights.grid import Places
from margrave.models.weights.known import Known
from margrave.typing import FloatArray

EXTRA = (0.0, *np.geomspace(1e-7, 10.0, 81).tolist())
"""How much further than by sampling the truth may lie from the start: the answers choose one."""


def shrunk(known: Known, start: Places, sampling: float) -> Known:
    """The answers as far as they exceed their noise: with p the share at the start,

        answer ← p + w (answer − p),    w = v / (v + scale²),    v = p (1 − p) (sampling + extra)

    This is the posterior mean where the truth is normal around the start with variance v. ``sampling`` is by how much
    two samples of one population differ, 1/n + 1/n'; what the start is off by besides, ``extra``, is the most likely
    one given all answers. Noise has its due by that, so that no tolerance is left: scales are 0.

    **Privacy:** none spent; it sees noisy answers and public records.

    Source: Efron and Morris (1973), Stein's estimation rule and its competitors: an empirical Bayes approach.
    """
    sums = start.marginals(known.cliques)
    shares = [start.selected_by(known.queries).sums() / float(start.weights.sum())]
    shares += [m.shares_in(sums[m.clique]) for m in known.marginals]
    answers = [known.answers, *(m.shares for m in known.marginals)]
    scales = [known.scales, *(np.full(m.shares.shape, m.scale) for m in known.marginals)]
    spread = sampling + _extra(_flat(shares), _flat(answers), _flat(scales), sampling)
    first, *others = (
        p + _weight(p * (1.0 - p) * spread, s) * (a - p) for p, a, s in zip(shares, answers, scales, strict=True)
    )
    marginals = tuple(replace(m, shares=a, scale=0.0) for m, a in zip(known.marginals, others, strict=True))
    return replace(known, answers=first, scales=np.zeros(len(first)), marginals=marginals)


def _extra(shares: FloatArray, answers: FloatArray, scales: FloatArray, sampling: float) -> float:
    """Of ``EXTRA`` what makes the answers most likely, where those can move that the start allows at all."""
    movable = (shares > 0.0) & (shares < 1.0) & np.isfinite(scales)
    spread_by, gaps, noise = (shares * (1.0 - shares))[movable], (answers - shares)[movable] ** 2, scales[movable] ** 2

    def unlikely(extra: float) -> float:
        variance = np.maximum(spread_by * (sampling + extra) + noise, np.finfo(float).tiny)
        return float((np.log(variance) + gaps / variance).sum())

    return float(min(EXTRA, key=unlikely))


def _weight(variance: FloatArray, scale: FloatArray) -> FloatArray:
    """How far an answer is believed; not at all where the start leaves no room."""
    return np.asarray(variance / np.maximum(variance + scale**2, np.finfo(float).tiny), dtype=np.float64)


def _flat(parts: list[FloatArray]) -> FloatArray:
    return np.concatenate([p.reshape(-1) for p in parts])
