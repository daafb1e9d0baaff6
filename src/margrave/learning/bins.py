"""Step 8: bins for the joint marginals, each with at least three noise scales of mass."""

from __future__ import annotations

import numpy as np

from margrave.types import FloatArray, IntArray


def bins_of(masses: FloatArray, means: FloatArray, scale: float, most: int) -> IntArray:
    """Return the first cell of every bin, and the number of cells.

    Args:
        masses: The estimated count of each cell.
        means: The mean point of each cell.
        scale: The noise scale of a cell of the mechanism's first measurements.
        most: The most bins.
    """
    total = masses.sum()
    if total <= 0 or len(masses) == 1:
        return np.array([0, len(masses)])
    mean = (masses * means).sum() / total
    weight = 0.6 * masses / total
    reach = np.abs(means - mean) * np.sqrt(masses)
    if reach.sum() > 0:
        weight = weight + 0.4 * reach / reach.sum()
    height = np.cumsum(weight) / weight.sum()
    # a cell of more than a step is a bin alone
    starts = np.unique(np.searchsorted(height, np.arange(1, most) / most * (1 - 1e-12)))
    heavy = np.flatnonzero(weight / weight.sum() > 1 / most)
    starts = np.unique(np.concatenate([[0], starts, heavy, heavy + 1]))
    edges = np.append(starts[starts < len(masses)], len(masses))
    return _merged(edges, masses, 3 * scale, most)


def _merged(edges: IntArray, masses: FloatArray, least: float, most: int) -> IntArray:
    """Merge the smallest bin with its smaller neighbor until all are large and few enough."""
    sums = list(np.add.reduceat(masses, edges[:-1]))
    at = list(edges)
    while len(sums) > 1 and (min(sums) < least or len(sums) > most):
        i = int(np.argmin(sums))
        left = i > 0 and (i == len(sums) - 1 or sums[i - 1] <= sums[i + 1])
        j = i - 1 if left else i
        sums[j : j + 2] = [sums[j] + sums[j + 1]]
        del at[j + 1]
    return np.array(at)
