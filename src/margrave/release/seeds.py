"""Seeds of post-processing: they make fitting and drawing repeatable, never the noise."""

from __future__ import annotations

import numpy as np

from margrave.errors import InputError
from margrave.parameters import is_whole


def check_seed(seed: object) -> None:
    """An InputError for a seed that is neither None nor a whole number of 0 or more."""
    if not (seed is None or is_whole(seed, 0)):
        raise InputError(f"{seed!r} is no seed.", remedy="A seed is a whole number, 0 or more.")


def generator(seed: int | None) -> np.random.Generator:
    """Random numbers for post-processing, the same for the same seed."""
    check_seed(seed)
    return np.random.default_rng(seed)
