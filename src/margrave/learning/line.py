"""The number line of a column to learn, in whole steps of its unit if it has one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrave.types import FloatArray


@dataclass(frozen=True)
class UnitLine:
    """Points that are multiples of ``10**-decimals``, or any real numbers if ``decimals`` is None.

    A coordinate is a point in units; a cell of coordinates ``[a, b)`` holds the multiples from a to b − 1.
    """

    decimals: int | None

    @property
    def is_whole(self) -> bool:
        """True if coordinates are whole numbers."""
        return self.decimals is not None

    def points(self, coordinates: FloatArray) -> FloatArray:
        """Return the points of coordinates."""
        return np.asarray(coordinates / 10.0 ** (self.decimals or 0))

    def coordinate(self, point: float) -> float:
        """Return the coordinate of a point, the nearest whole one if there is a unit."""
        at = point * 10.0 ** (self.decimals or 0)
        return float(np.rint(at)) if self.is_whole else at

    def rounded(self, coordinates: FloatArray) -> FloatArray:
        """Return distinct coordinates in order, whole if there is a unit."""
        return np.unique(np.rint(coordinates) if self.is_whole else coordinates)

    def means(self, edges: FloatArray) -> FloatArray:
        """Return the mean point of each cell, if its values are spread evenly."""
        last = edges[1:] - 1.0 if self.is_whole else edges[1:]
        return self.points((edges[:-1] + last) / 2)

    def variances(self, edges: FloatArray) -> FloatArray:
        """Return the variance of each cell's points, if its values are spread evenly."""
        widths = np.diff(edges)
        spread = (widths**2 - 1.0) / 12 if self.is_whole else widths**2 / 12
        return np.asarray(spread / 10.0 ** (2 * (self.decimals or 0)))
