"""How good a result is, for every contender by the same functions. NumPy only; nothing here is private."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from common.loss import measurement_loss as measurement_loss
from numpy.typing import NDArray

Codes = NDArray[np.int64]
"""One row of codes per column."""


def workload_error(real: Codes, synthetic: Codes, sizes: Sequence[int], degree: int) -> float:
    """The mean over all marginals of `degree` columns of sum |p_real - p_synthetic|: 0 is equal, 2 is disjoint."""
    check(synthetic, sizes)
    cliques = list(combinations(range(len(sizes)), degree))
    return float(np.mean([marginal_distance(real, synthetic, sizes, clique) for clique in cliques]))


def marginal_distance(left: Codes, right: Codes, sizes: Sequence[int], clique: Sequence[int]) -> float:
    """The L1 distance between the shares of two tables in the cells of one clique."""
    return float(np.abs(shares(left, sizes, clique) - shares(right, sizes, clique)).sum())


def shares(codes: Codes, sizes: Sequence[int], clique: Sequence[int]) -> NDArray[np.float64]:
    """The share of the records in every cell of a clique, flat."""
    shape = tuple(sizes[a] for a in clique)
    flat = np.ravel_multi_index(tuple(codes[a] for a in clique), shape)
    counts = np.bincount(flat, minlength=int(np.prod(shape)))
    return np.asarray(counts / codes.shape[1], dtype=np.float64)


def check(codes: Codes, sizes: Sequence[int]) -> None:
    """Records outside the public domain are no result."""
    if codes.shape[1] == 0:
        raise ValueError("no records")
    for position, (column, size) in enumerate(zip(codes, sizes, strict=True)):
        if column.min() < 0 or column.max() >= size:
            raise ValueError(f"column {position} holds codes outside 0..{size - 1}")


def model_distance(
    codes: Codes, sizes: Sequence[int], marginals: Sequence[tuple[Sequence[int], NDArray[np.float64]]]
) -> float:
    """The mean L1 distance between records and the marginals of the model they were drawn from."""
    distances = []
    for clique, values in marginals:
        expected = np.asarray(values, dtype=np.float64).ravel()
        distances.append(np.abs(shares(codes, sizes, clique) - expected / expected.sum()).sum())
    return float(np.mean(distances))
