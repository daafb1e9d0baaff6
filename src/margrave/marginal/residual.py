r"""Split marginals into interactions (an analysis of variance), and put them together again.

The marginal on r is a sum of one part per subset A of r, the interaction of A's columns:

    M_r = Σ_{A ⊆ r} R_A ⊗ 1 / cells(r \ A),    R_A = ⊗_{a ∈ A} (I − 1·1ᵀ / size_a) M_A.

Equal, independent noise in the cells of M_r is uncorrelated between the parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, combinations
from math import prod

import numpy as np

from margrave.marginal.axes import expand_axes
from margrave.types import Clique, FloatArray


def subsets(clique: Clique) -> tuple[Clique, ...]:
    """Return every subset of a clique, smaller ones first: the empty one, then single attributes."""
    return tuple(chain.from_iterable(combinations(clique, k) for k in range(len(clique) + 1)))


def residual(values: FloatArray) -> FloatArray:
    """Return the interaction R_A of a marginal on A: the part that sums to zero along every axis.

    Example:
        >>> residual(np.array([[3.0, 1.0], [1.0, 1.0]])).tolist()
        [[0.5, -0.5], [-0.5, 0.5]]
    """
    for axis in range(values.ndim):
        values = values - values.mean(axis=axis, keepdims=True)
    return values


def degrees_of_freedom(shape: tuple[int, ...]) -> int:
    """Return the dimension of the interactions of a marginal of this shape."""
    return prod(n - 1 for n in shape)


def reconstruct(
    interactions: Mapping[Clique, FloatArray], clique: Clique, shape: tuple[int, ...]
) -> FloatArray:
    """Return the marginal that has these interactions.

    Args:
        interactions: R_A for subsets A of the clique, attributes in the clique's order. A subset that
            is not named has none.
        clique: The attributes of the marginal.
        shape: Its number of cells along each axis.

    Example:
        >>> table = np.array([[3.0, 1.0], [1.0, 1.0]])
        >>> parts = {(): np.array(6.0), ("age",): np.array([1.0, -1.0]), ("sex",): np.array([1.0, -1.0])}
        >>> parts["age", "sex"] = residual(table)
        >>> reconstruct(parts, ("age", "sex"), (2, 2)).tolist()
        [[3.0, 1.0], [1.0, 1.0]]
    """
    values = np.zeros(shape)
    cells = np.prod(shape, dtype=np.float64)
    for inner, interaction in interactions.items():
        values += expand_axes(interaction, inner, clique) * (interaction.size / cells)
    return values
