"""The sum of all weights, kept within the range of floating point."""

from __future__ import annotations

from margrave.models.weights.grid_support import Support

#: A share below is zero but for rounding.
SHARE_TOLERANCE = 1e-12

#: The sum of all weights stays below this, and above its inverse.
MAX_MASS = 1e50


def within_range(places: Support, mass: float) -> float:
    """Return the sum of the weights; scale them to one first if it has grown or shrunk far."""
    if 1.0 / MAX_MASS < mass < MAX_MASS:
        return mass
    places.weights *= 1.0 / mass
    return 1.0
