"""Rewrite a product of factors with smaller numbers in them.

Contradictory noise on overlapping cliques makes potentials that cancel in the product but grow
without bound one by one. Exponentiated separately they leave the range of floats. A function of
shared attributes can belong to either factor, so moving it changes no product.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from margrave.types import Clique, FloatArray


def rebalance(potentials: Mapping[Clique, FloatArray]) -> dict[Clique, FloatArray]:
    """Return potentials with the same sum over every record.

    Of two that overlap, the smaller one is at most 0 on the shared attributes.
    """
    moved = {clique: theta.copy() for clique, theta in potentials.items()}
    order = sorted(moved, key=lambda c: moved[c].size)
    for i, small in enumerate(order):
        larger = [c for c in order[i + 1 :] if not set(c).isdisjoint(small)]
        for large in sorted(larger, key=lambda c: -len(set(c) & set(small))):
            private = tuple(axis for axis, a in enumerate(small) if a not in large)
            top = moved[small].max(axis=private, keepdims=True)
            moved[small] -= np.where(
                np.isfinite(top), top, 0.0
            )  # what is impossible stays so, in both
            shape = [n if a in small else 1 for a, n in zip(large, moved[large].shape, strict=True)]
            moved[large] += top.reshape(shape)
    return moved
