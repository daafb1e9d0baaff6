"""The chance that a threshold lets a value of one unit alone pass, recomputed without the gate's code."""

from __future__ import annotations

import numpy as np


def release_chance(rows: int, scale: float, threshold: int) -> float:
    """Return the largest chance that a value which only one unit has reaches a threshold.

    Args:
        rows: The most rows of a unit.
        scale: The noise scale, in records.
        threshold: The threshold.

    Returns:
        The maximum over partitions of up to 30 rows, above that a bound on it. It is 1 if a unit
        reaches the threshold without noise, or the scale is above 1e5 records.
    """
    if threshold <= rows or scale > 1e5:
        return 1.0
    gap = threshold - rows
    reach = 40 * scale  # beyond it the discrete Gaussian has less mass than any delta, 1e-300
    if gap > reach + 1:
        return 0.0
    half = np.arange(1, int(reach) + 2, dtype=np.float64)
    mass = 1 + 2 * np.exp(-((half / scale) ** 2) / 2).sum()
    exact = rows <= 30
    values = gap + np.arange(int(reach) + 2 + (rows if exact else 0), dtype=np.float64)
    weights = np.exp(-((values / scale) ** 2) / 2)
    tails = np.cumsum(weights[::-1])[::-1] / mass  # of gap, gap + 1, ...
    if not exact:
        return float(min(1.0, rows * tails[0]))
    of_rows = tails[:rows][::-1]  # of a value with 1, 2, ... rows
    worst = np.zeros(rows + 1)
    for r in range(1, rows + 1):
        rest = worst[r - 1 :: -1][:r]
        worst[r] = (of_rows[:r] + rest - of_rows[:r] * rest).max()
    return float(worst[rows])
