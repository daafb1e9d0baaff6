"""Convergence of chains: rank-normalized split R̂ and effective sample sizes, for every coordinate."""

from __future__ import annotations

from dataclasses import dataclass

import blackjax.diagnostics
import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from margrave.types import AnyArray, FloatArray


@dataclass(frozen=True)
class Mixing:
    """The worst coordinate's R̂ and effective sample size, and the share of draws whose trajectory diverged."""

    r_hat: float
    effective: float
    diverged: float

    def good(self, r_hat: float, effective: float, diverged: float) -> bool:
        """Return True if all three are finite and within their limits."""
        return bool(
            self.r_hat <= r_hat and self.effective >= effective and self.diverged <= diverged
        )


def mixing(draws: FloatArray, diverged: AnyArray) -> Mixing:
    """Return the diagnostics of draws of shape (chains, draws, coordinates).

    Each coordinate's draws are replaced by normal scores of their ranks, which makes heavy tails
    visible. Each chain is split into halves, so that a drifting chain disagrees with itself.

    References:
        Vehtari, Gelman, Simpson, Carpenter, Bürkner (2021), Rank-normalization, folding, and
        localization.
    """
    half = draws.shape[1] // 2
    split = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    ranks = rankdata(split.reshape(-1, split.shape[-1]), axis=0)
    scores = ndtri((ranks - 0.375) / (len(ranks) + 0.25)).reshape(split.shape)
    if (
        np.ptp(split, axis=(0, 1)).min(initial=1.0) == 0.0
    ):  # a chain that does not move has not mixed
        return Mixing(float("inf"), 0.0, float(diverged.mean()))
    r_hat = np.asarray(blackjax.diagnostics.potential_scale_reduction(scores))
    effective = np.asarray(blackjax.diagnostics.effective_sample_size(scores))
    return Mixing(
        float(r_hat.max(initial=1.0)),
        float(effective.min(initial=float(split.shape[0] * half))),
        float(diverged.mean()),
    )
