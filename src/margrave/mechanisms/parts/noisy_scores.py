"""Noisy scores of marginals, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from margrave.mechanisms.common import two_way
from margrave.privacy import Dependence, Gaussian, MarginalGap, Private
from margrave.types import Clique


def noisy_scores(
    private: Private, marginals: Sequence[Clique], score: Dependence | MarginalGap, rho: Fraction
) -> dict[Clique, float]:
    """Measure the scores of all marginals.

    **Privacy:** rho, to the last fraction.
    """
    (entry,) = private.measure_scores(marginals, score, Gaussian(rho=rho)).scores
    return dict(zip(marginals, entry.values.tolist(), strict=True))


def noisy_dependences(private: Private, rho: Fraction) -> dict[Clique, float]:
    """Measure how far each pair of columns is from independence, in total variation distance.

    The score ``‖M_ab − M_a ⊗ M_b / n‖₁`` is divided by twice the row count of the transcript.

    **Privacy:** rho, to the last fraction.
    """
    twice = 2.0 * private.transcript.total()
    scores = noisy_scores(private, two_way(private.domain), Dependence(), rho)
    return {pair: score / twice for pair, score in scores.items()}
