"""Weighted sums of a column's counts that were measured beside the counts, such as those for purposes.

A sum of noisy cells has the noise of each cell. A sum that was measured as one answer has that of one answer. Both
give the best linear unbiased estimate together. Weights are rounded and bounded. The counts, with their noise, give
what the weights leave of the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from margrave.bounds.gls import GLSEstimate
from margrave.domain import Domain
from margrave.marginal.symmetric_maps import interactions_of
from margrave.transcript import Measurement, Transcript
from margrave.types import Attribute, Clique, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class WeightedSums:
    """Noisy weighted sums of one column's counts, and the estimate of the counts without them.

    Args:
        estimate: The least squares estimate of a marginal of one column.
        weights: The weight of every code, one row per sum.
        answers: The noisy sums.
        variances: The variance of the noise of each; it is independent of all other noise.
        least_scale: The least noise scale of an answer among them.
        noisy_cells: The number of noisy answers among them.

    References:
        Aitken (1935), On least squares and linear combination of observations.
    """

    estimate: GLSEstimate
    weights: FloatArray
    answers: FloatArray
    variances: FloatArray
    least_scale: float
    noisy_cells: int

    def correction(self, weights: FloatArray) -> float:
        """Return what the sums add to the counts' estimate of another sum."""
        excess = self.answers - self.weights @ self.estimate.values
        return float(self._with(weights) @ np.linalg.solve(self._covariances, excess))

    def removed(self, first: FloatArray, second: FloatArray) -> float:
        """Return the part of the covariance of two sums of the counts that the sums here remove."""
        return float(self._with(first) @ np.linalg.solve(self._covariances, self._with(second)))

    def _with(self, weights: FloatArray) -> FloatArray:
        """Return the covariance of a sum of the counts with each of the sums here, by the counts."""
        return np.array([self.estimate.covariance(own, weights) for own in self.weights])

    @cached_property
    def _covariances(self) -> FloatArray:
        """The covariances of the differences between the answers and their estimates by the counts."""
        by_counts = np.array([self._with(own) for own in self.weights])
        return by_counts + np.diag(self.variances)


def weighted_sums(
    estimate: GLSEstimate,
    domain: Domain,
    transcript: Transcript,
    group: Mapping[Attribute, int] | None = None,
) -> WeightedSums | None:
    """Return the sums over one column's counts that a transcript has; None without one.

    Args:
        estimate: The estimate of the counts, of all records or of the group.
        domain: The columns.
        transcript: The noisy answers.
        group: The records with these codes of other columns; None for all records.

    Privacy:
        None spent: noisy answers only.
    """
    (column,) = estimate.clique
    group = group or {}
    weights, answers, variances, scales, cells = [], [], [], [], 0
    for m in transcript.measurements:
        if not {column, *group} <= set(m.clique) or not _weighs_alone(m, column, domain):
            continue
        if any(a in m.query.groups for a in group):
            continue
        values = np.asarray(m.values, dtype=np.float64)
        left = list(m.clique)
        for a, code in group.items():
            values = np.take(values, code, axis=left.index(a))
            left.remove(a)
        at = left.index(column)
        own = values.sum(axis=tuple(i for i in range(len(left)) if i != at))
        weights.append(m.query.matrices[column].astype(np.float64))
        answers.append(own)
        variances.append(np.full(own.size, m.scale**2 * values.size / own.size))
        scales.append(m.scale)
        cells += values.size
    if not weights:
        return None
    return WeightedSums(
        estimate, np.concatenate(weights), np.concatenate(answers), np.concatenate(variances),
        min(scales), cells,
    )  # fmt: skip


def summed_columns(m: Measurement, domain: Domain) -> Clique:
    """Return the columns of which an answer has weighted sums in place of its counts; empty for any other answer.

    Sums over one column say little of single cells, and much of the mean and the total in each group. Sums over two
    are of their products.
    """
    few = tuple(
        column
        for column, matrix in m.query.matrices.items()
        if column in m.clique and _has_few_sums(matrix)
    )
    if not few or set(m.query.matrices) & set(m.clique) != set(few):
        return ()
    uses = next(interactions_of(m.query, m.clique, domain, m.values), None)
    return domain.clique(few) if uses is None else ()


def gives_sums_alone(m: Measurement) -> bool:
    """Return True if an answer has too few weighted sums of some column to determine its marginal."""
    return any(a in m.clique and _has_few_sums(matrix) for a, matrix in m.query.matrices.items())


def _has_few_sums(matrix: IntArray) -> bool:
    # a marginal's sum is known, so that as many answers less one determine its cells
    return bool(np.linalg.matrix_rank(matrix.astype(np.float64)) < matrix.shape[1] - 1)


def _weighs_alone(m: Measurement, column: Attribute, domain: Domain) -> bool:
    """Return True if codes of the column alone have weights, and least squares does not use them already."""
    if set(m.query.matrices) & set(m.clique) != {column}:
        return False
    return next(interactions_of(m.query, m.clique, domain, m.values), None) is None
