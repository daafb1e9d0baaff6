"""The one function that says how well fitted marginals agree with noisy ones, for every contender."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def measurement_loss(fitted: Sequence[Array], noisy: Sequence[Array], sigma: float) -> float:
    """sum_i ||fitted_i - noisy_i||^2 / (2 sigma^2), in double precision whatever the contender computes in."""
    total = 0.0
    for mu, y in zip(fitted, noisy, strict=True):
        difference = np.asarray(mu, dtype=np.float64).ravel() - np.asarray(y, dtype=np.float64).ravel()
        total += float(difference @ difference)
    return total / (2.0 * sigma**2)
