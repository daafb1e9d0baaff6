"""Discrete Gaussian noise by inversion of its law, fast enough for thousands of repetitions; and frequencies judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats


def law(scale: float) -> tuple[Any, Any]:
    """Integers within thirteen standard deviations, and their probabilities."""
    reach = int(13 * scale) + 2
    values = np.arange(-reach, reach + 1)
    mass = np.exp(-(values**2) / (2 * scale**2))
    return values, mass / mass.sum()


def discrete(rng: np.random.Generator, scale: float, shape: int | Sequence[int]) -> Any:
    """Independent draws of it."""
    values, mass = law(scale)
    drawn = np.searchsorted(np.cumsum(mass), rng.random(shape))
    return values[np.minimum(drawn, len(values) - 1)]


def consistent(misses: int, trials: int, miss: float) -> bool:
    """Whether so many misses are believable of what fails with probability ``miss`` at most: once in a million not."""
    return bool(stats.binom.sf(misses - 1, trials, miss) > 1e-6)
