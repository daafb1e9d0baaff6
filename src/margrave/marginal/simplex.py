"""From noisy numbers to distributions: projection, clipping, and proportional fitting."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from margrave.marginal.axes import expand_axes, other_axes
from margrave.types import Attribute, Clique, FloatArray, IntArray


def project_to_simplex(values: FloatArray) -> FloatArray:
    """Return the nearest distribution in least squares: non-negative numbers that sum to 1.

    One amount is subtracted from all values, and what falls below 0 becomes 0.

    Args:
        values: Finite numbers, in an array of any shape.

    Returns:
        An array of the same shape.

    Example:
        >>> project_to_simplex(np.array([0.7, -0.2, 0.6])).round(6).tolist()
        [0.55, 0.0, 0.45]

    References:
        Held, Wolfe, Crowder (1974), Validation of subgradient optimization.
    """
    values = values - values.max()  # changes nothing else, and keeps huge values exact
    falling = np.sort(values, axis=None)[::-1]
    lowered = (np.cumsum(falling) - 1.0) / np.arange(1, falling.size + 1)
    amount = lowered[np.flatnonzero(falling > lowered)[-1]]
    return np.asarray(np.maximum(values - amount, 0.0), dtype=np.float64)


def clip_and_rescale(values: FloatArray) -> FloatArray:
    """Return the positive part of a vector, scaled to sum to 1; equal shares if nothing is positive.

    Example:
        >>> clip_and_rescale(np.array([3.0, -2.0, 1.0])).tolist()
        [0.75, 0.0, 0.25]
    """
    kept = np.maximum(values, 0.0)
    top = float(kept.max())
    if not top > 0.0:
        return np.full(len(values), 1.0 / len(values))
    kept /= top
    return np.asarray(kept / kept.sum(), dtype=np.float64)


def shares_within(counts: FloatArray, groups: IntArray) -> FloatArray:
    """Return each code's share of its group, by the positive part of the counts.

    Args:
        counts: One number per code.
        groups: The group of each code: 0, 1, …, none of them empty.

    Returns:
        One share per code. They sum to 1 in each group, and are equal if no count there is positive.

    Example:
        >>> shares_within(np.array([3.0, 1.0, 0.0, -1.0]), np.array([0, 0, 1, 1])).tolist()
        [0.75, 0.25, 0.5, 0.5]
    """
    positive = np.maximum(counts, 0.0)
    sums, members = np.bincount(groups, weights=positive), np.bincount(groups)
    scaled = positive / np.where(sums > 0, sums, 1.0)[groups]
    return np.where(sums[groups] > 0, scaled, 1.0 / members[groups])


def rake(
    table: FloatArray,
    clique: Clique,
    columns: Mapping[Attribute, FloatArray],
    *,
    sweeps: int,
) -> FloatArray:
    """Scale a table to given one-way marginals by iterative proportional fitting.

    Args:
        table: Non-negative numbers with one axis per attribute of ``clique``.
        clique: The attributes of the axes.
        columns: The one-way marginal of each attribute of the clique.
        sweeps: How often each column is fitted in turn.

    Returns:
        A new table. Zeros stay zero, so a code without any cell above 0 keeps the count 0.

    References:
        Deming, Stephan (1940).
    """
    values = table.copy()
    for _ in range(sweeps):
        for a in clique:
            sums = values.sum(axis=other_axes(clique, (a,)))
            factors = np.divide(columns[a], sums, out=np.ones_like(sums), where=sums > 0)
            values *= expand_axes(factors, (a,), clique)
    return values
