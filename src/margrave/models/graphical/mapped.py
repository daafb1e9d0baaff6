"""Answers of linear maps in the dual problem: one whitened potential per answer.

An answer y = A m + noise of scale sigma adds ||A mu − y||² / (2 sigma²) to the loss. Its potentials phi
have one entry per answer and add Aᵀ phi / sigma to the potentials of the clique's cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from margrave.transcript import Measurement
from margrave.types import Clique, FloatArray

#: Writes the cells of a clique into a vector of all cells.
Place = Callable[[FloatArray, Clique, FloatArray], None]
#: Reads the cells of a clique from a vector of all cells.
Take = Callable[[FloatArray, Clique], FloatArray]


class MappedAnswers:
    """The answers of several linear maps, one after the other in one vector.

    Args:
        measurements: What was measured through maps with matrices.
        cells: The length of a vector of all cells.
        place: Writes a clique's cells into such a vector.
        take: Reads them.
    """

    def __init__(
        self, measurements: Sequence[Measurement], cells: int, place: Place, take: Take
    ) -> None:
        self.measurements, self.cells = measurements, cells
        self.place, self.take = place, take
        self.ends = np.cumsum([0, *(m.values.size for m in measurements)])
        self.size = int(self.ends[-1])
        self.white = self._joined([m.values / m.scale for m in measurements])

    @staticmethod
    def _joined(parts: Sequence[FloatArray]) -> FloatArray:
        return np.concatenate([np.empty(0), *(p.reshape(-1) for p in parts)])

    def to_cells(self, phi: FloatArray) -> FloatArray:
        """Return Σ Aᵀ phi / sigma: the potentials of all cells."""
        theta = np.zeros(self.cells)
        for m, first, last in zip(self.measurements, self.ends, self.ends[1:], strict=False):
            part = np.zeros(self.cells)
            answers = phi[first:last].reshape(m.values.shape) / m.scale
            self.place(part, m.clique, m.query.spread(m.clique, answers))
            theta += part
        return theta

    def from_cells(self, mu: FloatArray) -> FloatArray:
        """Return A mu / sigma: the answers that expected counts of all cells have, whitened."""
        return self._joined(
            [m.query.apply(m.clique, self.take(mu, m.clique)) / m.scale for m in self.measurements]
        )

    def variances(self, mu: FloatArray) -> FloatArray:
        """Return the variances of the whitened answers of Poisson counts with the expectations mu."""
        return self._joined(
            [
                m.query.squared().apply(m.clique, self.take(mu, m.clique)) / m.scale**2
                for m in self.measurements
            ]
        )
