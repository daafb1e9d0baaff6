"""Noisy scores of marginals, as numbers, and the measurement of those with the largest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from margrave.mechanisms.common import two_way
from margrave.privacy import Dependence, Gaussian, MarginalGap, Private
from margrave.types import Clique, FloatArray


def noisy_scores(
    private: Private, marginals: Sequence[Clique], score: Dependence | MarginalGap, rho: Fraction
) -> FloatArray:
    """Measure the scores of all marginals.

    **Privacy:** rho, to the last fraction.
    """
    (entry,) = private.measure_scores(marginals, score, Gaussian(rho=rho)).scores
    return entry.values


def noisy_dependences(private: Private, rho: Fraction) -> dict[Clique, float]:
    """Measure how far each pair of columns is from independence, in total variation distance.

    The score ``‖M_ab − M_a ⊗ M_b / n‖₁`` is divided by twice the row count of the transcript.

    **Privacy:** rho, to the last fraction.
    """
    pairs, twice = two_way(private.domain), 2.0 * private.transcript.total()
    values = noisy_scores(private, pairs, Dependence(), rho) / twice
    return dict(zip(pairs, values.tolist(), strict=True))


def measure_largest(
    private: Private,
    estimates: Mapping[Clique, FloatArray],
    count: int,
    *,
    selecting: Fraction,
    measuring: Fraction,
) -> None:
    """Measure the scores of all estimates, then the marginals with the largest errors.

    **Privacy:** ``count`` times ``selecting + measuring`` (zCDP).
    """
    candidates = list(estimates)
    gap = MarginalGap(
        estimates, dict.fromkeys(candidates, 1.0), penalties=dict.fromkeys(candidates, 0.0)
    )
    scores = noisy_scores(private, candidates, gap, selecting * count)
    order = np.argsort(-scores, kind="stable")
    private.measure([candidates[i] for i in order[:count]], Gaussian(rho=measuring * count))
