"""The same product of factors with smaller numbers in them.

Contradictory noise on overlapping cliques makes potentials that cancel in the product but grow without bound one by
one. Exponentiated each by itself they would leave the range of floats. What a smaller factor says of the attributes it
shares with a larger one may be said by either: moving it changes no product and brings the numbers back.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from margrave.typing import Clique, FloatArray


def balanced(potentials: Mapping[Clique, FloatArray]) -> dict[Clique, FloatArray]:
    """Potentials with the same sum over every record; of two that overlap the smaller is at most 0 on what they share.

    From small to large, each factor's maximum over the attributes that it does not share moves into every larger
    factor it overlaps with. Cost: O(pairs of overlapping cliques · cells). Cliques are in the domain's order.
    """
    moved = {clique: theta.copy() for clique, theta in potentials.items()}
    order = sorted(moved, key=lambda c: moved[c].size)
    for i, small in enumerate(order):
        larger = [c for c in order[i + 1 :] if not set(c).isdisjoint(small)]
        for large in sorted(larger, key=lambda c: -len(set(c) & set(small))):
            private = tuple(axis for axis, a in enumerate(small) if a not in large)
            top = moved[small].max(axis=private, keepdims=True)
            moved[small] -= np.where(np.isfinite(top), top, 0.0)  # what is impossible stays so, in both
            shape = [n if a in small else 1 for a, n in zip(large, moved[large].shape, strict=True)]
            moved[large] += top.reshape(shape)
    return moved
