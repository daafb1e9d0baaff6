"""Step 4: a grid of up to 1,024 cells, finer where the mass is and around zero."""

from __future__ import annotations

import numpy as np

from margrave.learning.extent import Extent
from margrave.learning.line import UnitLine
from margrave.types import FloatArray


def grid_of(extent: Extent, line: UnitLine) -> FloatArray:
    """Return the edges of the cells of a range.

    Steps are equal in half the mass, three tenths the length, and a fifth the signed logarithm. All
    whole coordinates have a cell if there are at most 1,024 of them. Zero has one.
    """
    low, high = extent.low, extent.high
    most = 1024  # five levels of a tree with four children a node
    if line.is_whole and high - low <= most:
        return np.arange(low, high + 1)
    at = np.unique(np.concatenate([extent.edges, np.linspace(low, high, 4 * most + 1)]))
    mass = np.interp(at, extent.edges, np.concatenate([[0.0], np.cumsum(extent.counts + 1e-9)]))
    logarithm = np.arcsinh(at / (max(abs(low), abs(high)) / 1000))
    height = sum(
        weight * (h - h[0]) / (h[-1] - h[0])
        for weight, h in ((0.5, mass), (0.3, at), (0.2, logarithm))
    )
    edges = np.interp(np.linspace(0, 1, most - 1), height, at)
    edges[0], edges[-1] = low, high
    if low < 0 < high or low == 0:
        alone = [0.0, 1.0] if line.is_whole else [0.0, float(np.nextafter(0.0, 1.0))]
        edges = np.concatenate([edges, alone])
    edges = line.rounded(edges)
    return np.asarray(edges[(edges >= low) & (edges <= high)])
