"""Noisy numbers of the same quantity, averaged with weights 1 / variance."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

import numpy as np

from margrave.marginal import project_array
from margrave.types import AnyArray, Attribute, Clique, FloatArray

K = TypeVar("K", bound=Hashable)

#: A clique, the noisy counts of its cells, and the standard deviation of each cell's noise.
Noisy = tuple[Clique, AnyArray, FloatArray]


class PrecisionMeans(Generic[K]):
    """Running precision-weighted means, one for each key, in the order in which keys first appear.

    The mean of answers y_i of variances v_i is Σ (y_i / v_i) / Σ (1 / v_i): of all unbiased linear
    combinations it has the smallest variance, 1 / Σ (1 / v_i).

    Example:
        >>> means = PrecisionMeans[str]()
        >>> means.add("age", np.array([4.0]) / 1.0, np.array([1.0]))
        >>> means.add("age", np.array([8.0]) / 3.0, np.array([1 / 3.0]))
        >>> [(key, mean.tolist(), precision.round(3).tolist()) for key, mean, precision in means]
        [('age', [5.0], [1.333])]
    """

    def __init__(self) -> None:
        self._sums: dict[K, tuple[FloatArray, FloatArray]] = {}

    def add(self, key: K, weighted: FloatArray | float, precision: FloatArray | float) -> None:
        """Add an answer: its values times their precision, and the precision 1 / variance."""
        if key in self._sums:
            known, total = self._sums[key]
            weighted, precision = known + weighted, total + precision
        self._sums[key] = np.asarray(weighted), np.asarray(precision)

    def add_cell(
        self, key: K, shape: tuple[int, ...], cell: tuple[int, ...], value: float, scale: float
    ) -> None:
        """Add the answer of one cell of an array of this shape."""
        weighted, precision = np.zeros(shape), np.zeros(shape)
        weighted[cell], precision[cell] = value / scale**2, scale**-2.0
        self.add(key, weighted, precision)

    def move_to_end(self, key: K) -> None:
        """Make a key the last one, if it has answers."""
        if key in self._sums:
            self._sums[key] = self._sums.pop(key)

    def __iter__(self) -> Iterator[tuple[K, FloatArray, FloatArray]]:
        """Yield each key with its mean, 0 where the precision is 0, and the precision of the mean."""
        for key, (weighted, precision) in self._sums.items():
            known = precision > 0.0
            mean = np.divide(weighted, precision, out=np.zeros_like(weighted), where=known)
            yield key, mean, precision


def column_mean(attribute: Attribute, noisy: Iterable[Noisy]) -> tuple[FloatArray, FloatArray]:
    """Return the precision-weighted mean of what several marginals say of one column.

    Args:
        attribute: The column.
        noisy: Marginals that contain it.

    Returns:
        One count per code, 0 where nothing is known, and the precision of each.
    """
    means = PrecisionMeans[Attribute]()
    for clique, values, scales in noisy:
        variance = project_array(scales**2, clique, (attribute,))
        counts = project_array(values, clique, (attribute,)).astype(np.float64)
        means.add(attribute, counts / variance, 1.0 / variance)
    for _, mean, precision in means:
        return mean, precision
    return np.zeros(0), np.zeros(0)
