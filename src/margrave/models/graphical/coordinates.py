"""Non-redundant coordinates for the potentials of overlapping cliques.

The tables of overlapping cliques are redundant: each can represent a function of the attributes
that they share. So whitened potentials phi_r = sigma_r theta_r have directions that do not change
the distribution. Contradictory noise on shared attributes moves the potentials along these
directions, against only the weak pull of the entropy. They grow large, and a solver is slow. On
these directions the dual problem is a separate quadratic, so they can be left out.

The rest has an orthonormal basis in closed form. On each axis of a clique of ``cells_r`` cells, a
Householder reflection turns the constant vector into the first unit vector. The entries whose index
is 0 on all axes but those of s then hold the interaction of s (as in an analysis of variance).
Among the tables that contain s, only the combination with weights 1 / (sigma_r sqrt(cells_r))
changes the distribution: one coordinate in place of many. Measurements combine with the same
weights, which give the least variance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from margrave._kernel import kernel
from margrave.domain import Domain
from margrave.marginal.residual import subsets
from margrave.types import Clique, FloatArray, IntArray


class Coordinates:
    """The map between coordinates and cells of whitened potentials: phi = Q eta and eta = Qᵀ phi, with QᵀQ = 1.

    ``axes[i]`` and ``starts[i]`` say how the table of factor i lies in phi. ``scales`` gives the noise of each factor
    that was measured; where it varies from cell to cell, the factor keeps its cells as coordinates of its own.
    Factors that were not measured have none. Cost of a map: O(cells · axes of a clique).
    """

    def __init__(
        self,
        domain: Domain,
        axes: Mapping[Clique, Clique],
        starts: Mapping[Clique, int],
        scales: Mapping[Clique, FloatArray],
        cells: int,
    ) -> None:
        even = {
            c: float(s.flat[0]) for c, s in scales.items() if float(s.max()) - float(s.min()) == 0.0
        }
        self.home: IntArray = np.zeros(cells, dtype=np.int64)
        self.share = np.zeros(cells)
        precision: dict[Clique, float] = {}
        for clique, scale in even.items():
            for part in subsets(clique):
                precision[part] = precision.get(part, 0.0) + 1.0 / (scale**2 * domain.cells(clique))
        offsets: dict[Clique, int] = {}
        self.size = 0
        for part in precision:
            offsets[part] = self.size
            self.size += math.prod(domain.size(a) - 1 for a in part)
        reflections = []
        for clique in scales:
            shape = domain.shape(axes[clique])
            n = domain.cells(clique)
            where = slice(starts[clique], starts[clique] + n)
            if clique not in even:
                self.home[where] = np.arange(self.size, self.size + n)
                self.share[where] = 1.0
                self.size += n
                continue
            home, share = self.home[where].reshape(shape), self.share[where].reshape(shape)
            own = 1.0 / (even[clique] ** 2 * n)
            for part in subsets(clique):
                block = tuple(slice(1, None) if a in part else 0 for a in axes[clique])
                ordered = [a for a in axes[clique] if a in part]
                sizes = [domain.size(a) - 1 for a in part]
                numbers = np.arange(offsets[part], offsets[part] + math.prod(sizes)).reshape(sizes)
                home[block] = (
                    numbers
                    if ordered == [*part]
                    else numbers.transpose([part.index(a) for a in ordered])
                )
                share[block] = math.sqrt(own / precision[part])
            behind = n
            for size in shape:
                behind //= size
                if size > 1:
                    reflections.append((where.start, n, size, behind))
        self._reflections = np.array(reflections, dtype=np.int64).reshape(-1, 4)
        self._stride = int(self._reflections[:, 3].max(initial=1))

    def to_cells(self, eta: FloatArray) -> FloatArray:
        """Return Q eta."""
        phi: FloatArray = self.share * eta[self.home] if self.size else np.zeros(len(self.home))
        reflect(self._reflections, phi, np.empty(self._stride))
        return phi

    def from_cells(self, phi: FloatArray) -> FloatArray:
        """Return Qᵀ phi."""
        turned = phi.copy()
        reflect(self._reflections, turned, np.empty(self._stride))
        turned *= self.share
        return np.bincount(self.home, weights=turned, minlength=self.size)[: self.size].astype(
            np.float64
        )


@kernel(fast=True, error_model="numpy")
def reflect(reflections, values, room):  # type: ignore[no-untyped-def]
    """Reflect tables in place along their axes; each row is the table's start and cells, the axis' size and stride.

    The Householder reflection that exchanges the constant unit vector u and the first unit vector e: it is its own
    inverse, and maps x to x − (x_0 − u·x) / (1 − u_0) · (e − u). ``room`` has as many numbers as the largest stride.
    """
    for r in range(len(reflections)):
        start, cells = reflections[r, 0], reflections[r, 1]
        size, behind = reflections[r, 2], reflections[r, 3]
        root = np.sqrt(size)
        for first in range(start, start + cells, size * behind):
            for j in range(behind):
                room[j] = 0.0
            for i in range(size):
                at = first + i * behind
                for j in range(behind):
                    room[j] += values[at + j]
            for j in range(behind):
                mean = room[j] / root
                room[j] = (values[first + j] - mean) / (root - 1.0)
                values[first + j] = mean
            for i in range(1, size):
                at = first + i * behind
                for j in range(behind):
                    values[at + j] += room[j]
