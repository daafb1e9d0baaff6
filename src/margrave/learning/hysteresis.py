"""Runs of cells with mass: seeds far above the noise, grown to neighbors that are above it."""

from __future__ import annotations

import numpy as np

from margrave.schema.parsing import Mask
from margrave.types import FloatArray


def grown(counts: FloatArray, sigma: float, *, seed: float, neighbor: float = 2.0) -> Mask:
    """Return the cells that hold mass.

    Args:
        counts: Noisy counts in the order of the line, each with noise of scale ``sigma``.
        sigma: The noise scale.
        seed: A cell is a seed above so many noise scales.
        neighbor: Seeds grow to neighbors above so many noise scales, over one cell between if both
            together exceed ``neighbor · sqrt(2)``.
    """
    kept = counts > seed * sigma
    for start in np.flatnonzero(kept):
        for step in (-1, 1):
            at = int(start)
            while True:
                near, far = at + step, at + 2 * step
                if 0 <= near < len(counts) and counts[near] > neighbor * sigma:
                    at = near
                elif (
                    0 <= far < len(counts)
                    and counts[far] > 0
                    and counts[near] + counts[far] > neighbor * sigma * np.sqrt(2)
                ):
                    kept[near] = True
                    at = far
                else:
                    break
                kept[at] = True
    return np.asarray(kept)
