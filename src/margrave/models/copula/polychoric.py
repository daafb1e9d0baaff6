"""Correlations of latent normal variables from noisy pairs, and a correlation matrix that has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist

import numpy as np

from margrave.types import FloatArray


def hermite_scores(shares: FloatArray, order: int) -> FloatArray:
    """Return the integrals of the normalized Hermite polynomials over the bins of a normal variable.

    Two variables of correlation r have the joint distribution Σ_k r^k c_k d_kᵀ, with c_k and d_k the integrals of
    order k of each (Mehler's formula).

    Args:
        shares: The distribution of the column.
        order: The largest order.

    Returns:
        Shape (order + 1, codes). Row 0 is the distribution.

    Example:
        >>> hermite_scores(np.array([0.5, 0.5]), 1).round(4).tolist()
        [[0.5, 0.5], [-0.3989, 0.3989]]
    """
    edges = np.array([_normal_quantile(p) for p in np.cumsum(shares)[:-1].tolist()])
    finite = np.where(np.isfinite(edges), edges, 0.0)
    density = np.where(np.isfinite(edges), np.exp(-(finite**2) / 2) / np.sqrt(2 * np.pi), 0.0)
    found, last, now = (
        [np.asarray(shares, dtype=np.float64)],
        np.zeros_like(finite),
        np.ones_like(finite),
    )
    for k in range(1, order + 1):
        reached = np.concatenate([[0.0], -now * density / np.sqrt(k), [0.0]])
        found.append(np.diff(reached))
        last, now = now, (finite * now - np.sqrt(k - 1) * last) / np.sqrt(k)
    return np.stack(found)


def _normal_quantile(p: float) -> float:
    if not 0.0 < p < 1.0:
        return -math.inf if p <= 0.0 else math.inf
    return NormalDist().inv_cdf(p)


def correlation_of(
    pair: FloatArray,
    first: FloatArray,
    second: FloatArray,
    variance: float,
    *,
    prior_variance: float,
    largest: float,
) -> float:
    """Return the latent correlation of two columns.

    It minimizes ``‖P̂ − P(r)‖² / (2 variance) + r² / (2 prior_variance)``.

    Args:
        pair: Their noisy joint distribution P̂.
        first: The scores of the column of its rows (`hermite_scores`).
        second: The scores of the column of its columns.
        variance: The variance of the error of a cell.
        prior_variance: The variance of the correlations of pairs of columns, before anything is known.
        largest: The largest absolute value of a correlation.
    """
    grid = np.linspace(-largest, largest, 401)
    product = np.einsum("ki,ij,kj->k", first, pair, second)
    both = (first @ first.T) * (second @ second.T)
    orders = len(product)
    sums = np.bincount(
        np.add.outer(np.arange(orders), np.arange(orders)).ravel(), weights=both.ravel()
    )
    powers = grid[:, None] ** np.arange(len(sums))
    loss = (powers @ sums - 2 * powers[:, :orders] @ product) / (2 * variance)
    loss += grid**2 / (2 * prior_variance)
    i = int(np.clip(np.argmin(loss), 1, len(grid) - 2))
    before, at, after = loss[i - 1 : i + 2]
    step, bend = grid[1] - grid[0], before - 2 * at + after
    move = np.clip((before - after) / (2 * bend), -1.0, 1.0) if bend > 0 else 0.0
    return float(grid[i] + move * step)


def positive_definite(matrix: FloatArray, least: float) -> FloatArray:
    """Return a correlation matrix near a symmetric matrix of unit diagonal: no eigenvalue is below about ``least``."""
    values, vectors = np.linalg.eigh(matrix)
    if values[0] >= least:
        return matrix
    raised = (vectors * np.maximum(values, least)) @ vectors.T
    scale = np.sqrt(np.diag(raised))
    return np.asarray(raised / np.outer(scale, scale))


def completed(
    size: int, known: Mapping[tuple[int, int], float], *, least: float = 1e-3, sweeps: int = 50
) -> FloatArray:
    """Return a correlation matrix with known entries, whose inverse is 0 at all others.

    Columns of unknown correlation are then independent given the others: the largest entropy. Known entries that no
    correlation matrix has are moved.

    Args:
        size: The number of columns.
        known: The known correlations by pairs of places, the smaller first.
        least: The least eigenvalue.
        sweeps: The largest number of passes over the columns.

    Returns:
        Shape (size, size).

    Example:
        >>> completed(3, {(0, 1): 0.5, (1, 2): 0.5})[0, 2].round(3)
        np.float64(0.25)

    References:
        Hastie, Tibshirani, Friedman (2009), The Elements of Statistical Learning, Algorithm 17.1.
    """
    start = np.eye(size)
    for (i, j), r in known.items():
        start[i, j] = start[j, i] = r
    target = positive_definite(start, least)
    if len(known) == size * (size - 1) // 2:
        return target
    near: list[list[int]] = [[] for _ in range(size)]
    for i, j in known:
        near[i].append(j)
        near[j].append(i)
    found, others = target.copy(), np.arange(size)
    for _ in range(sweeps):
        before = found.copy()
        for j in range(size):
            rest = others[others != j]
            weights = np.zeros(size)
            if near[j]:
                inner = found[np.ix_(near[j], near[j])]
                weights[near[j]] = np.linalg.solve(inner, target[near[j], j])
            found[rest, j] = found[j, rest] = found[np.ix_(rest, rest)] @ weights[rest]
        if np.abs(found - before).max() < 1e-6:
            break
    return positive_definite(found, least)
