"""The best unbiased estimate of a marginal from all noisy marginals, in closed form.

A marginal splits into one part per subset A of its columns: what A's marginal tells beyond all smaller ones,

    M_r = Σ_{A ⊆ r} R_A ⊗ 1 / cells(r \\ A),    R_A = ⊗_{a ∈ A} (I − 1·1ᵀ / size_a) M_A.

Noise that is independent and equal in all cells of a measurement stays uncorrelated between these parts. So each part
is estimated on its own, by the average over all measurements that contain A with weights 1 / variance; put together
again that is the generalised least squares estimate, of minimum variance among all that are linear and unbiased.
Measurements that merge codes of A's columns in another way than was asked for are left out of A's part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from margrave.marginal import Query, covers, project_array
from margrave.schema.domain import Domain
from margrave.transcript import Measurement, PublicTotal, Transcript
from margrave.typing import Attribute, Clique, FloatArray, IntArray

Groups = Mapping[Attribute, IntArray]


@dataclass(frozen=True, eq=False)
class Estimate:
    """A marginal estimated without bias, and what is known of its error.

    ``values`` has one axis per attribute, over groups of codes for those in ``groups``. Every cell's error has the
    standard deviation ``spread``; ``widest²`` is the largest eigenvalue of the errors' covariance. They are linear in
    the noise of ``noisy_cells`` cells, none of it of a scale below ``least_scale``.
    """

    clique: Clique
    values: FloatArray
    spread: float
    widest: float
    least_scale: float
    noisy_cells: int
    groups: Groups

    @property
    def query(self) -> Query:
        """How the codes were merged."""
        return Query(self.groups)


@dataclass(frozen=True, eq=False)
class _Part:
    """A marginal's inverse-variance average, its precision per cell, and which measurements are in it."""

    values: FloatArray
    precision: float  # infinite where it is known exactly
    used: frozenset[int]


@dataclass(eq=False)
class Unbiased:
    """Estimates of the marginals that lie in a measured one. ``paper``: each from measurements of it or more alone."""

    domain: Domain
    transcript: Transcript
    paper: bool = False
    _parts: dict[tuple[Clique, tuple[bytes | None, ...]], _Part] = field(default_factory=dict)

    def supports(self, clique: Clique) -> bool:
        """Whether some measurement contains it, with every code of its columns."""
        return self.groups_of(clique) == {}

    def groups_of(self, clique: Clique) -> Groups | None:
        """How the finest measurement that contains the clique merges its codes (not at all: {}); None without one."""
        if not covers(self.transcript.cliques, clique):
            return None
        found = [
            {a: m.query.groups[a] for a in clique if a in m.query.groups}
            for m in self.transcript.measurements
            if set(clique) <= set(m.clique)
        ]
        return max(found, key=lambda groups: self._cells(clique, groups), default=None)

    def estimate(self, clique: Clique) -> Estimate | None:
        """The marginal at the finest resolution measured; None if no measurement contains it."""
        groups = self.groups_of(clique)
        if groups is None:
            return None
        whole = self._part(clique, groups)
        if self.paper:
            return self._made(clique, groups, whole.values, whole.precision**-0.5, whole.precision**-0.5, whole.used)
        cells = self._cells(clique, groups)
        values = np.zeros(whole.values.shape)
        variance, widest, used = 0.0, 0.0, whole.used
        for k in range(len(clique) + 1):
            for inner in combinations(clique, k):
                part = self._part(inner, groups)
                values += _spread(_residual(part.values), inner, clique, values.shape)
                eigenvalue = self._cells(inner, groups) / (cells * part.precision)
                multiplicity = int(np.prod([n - 1 for n in part.values.shape], dtype=np.int64))
                variance += eigenvalue * multiplicity / cells
                widest = max(widest, eigenvalue if multiplicity else 0.0)
                used |= part.used
        return self._made(clique, groups, values, variance**0.5, widest**0.5, used)

    def _made(
        self, clique: Clique, groups: Groups, values: FloatArray, spread: float, widest: float, used: frozenset[int]
    ) -> Estimate:
        sources = [self.transcript.measurements[i] for i in used]
        least, noisy = min(m.scale for m in sources), sum(m.values.size for m in sources)
        return Estimate(clique, values, spread, widest, least, noisy, groups)

    def _cells(self, clique: Clique, groups: Groups) -> int:
        return Query(groups).domain(self.domain.project(clique)).cells()

    def _part(self, clique: Clique, groups: Groups) -> _Part:
        """The average of all measurements that contain a clique and merge its codes just so.

        Summed down to the clique, a measurement of c cells has the variance (c / cells) · scale².
        """
        key = (clique, tuple(groups[a].tobytes() if a in groups else None for a in clique))
        if key not in self._parts:
            self._parts[key] = self._averaged(clique, groups)
        return self._parts[key]

    def _averaged(self, clique: Clique, groups: Groups) -> _Part:
        shape = Query(groups).domain(self.domain).shape(clique)
        total = next((float(e.total) for e in self.transcript if isinstance(e, PublicTotal)), None)
        if not clique and total is not None and not self.paper:
            return _Part(np.array(total), np.inf, frozenset())
        weighted, precision, used = np.zeros(shape), 0.0, []
        for i, m in enumerate(self.transcript.measurements):
            if set(clique) <= set(m.clique) and _alike(m, clique, groups):
                weight = weighted.size / (m.values.size * m.scale**2)
                weighted += weight * project_array(m.values, m.clique, clique).reshape(shape)
                precision += weight
                used.append(i)
        return _Part(weighted / precision, precision, frozenset(used))


def _alike(measurement: Measurement, clique: Clique, groups: Groups) -> bool:
    """Whether a measurement merges the codes of the clique's columns as ``groups`` does."""
    own = measurement.query.groups
    return all((a in own) == (a in groups) and (a not in own or np.array_equal(own[a], groups[a])) for a in clique)


def _residual(values: FloatArray) -> FloatArray:
    """What an array tells beyond its sums over any axis."""
    for axis in range(values.ndim):
        values = values - values.mean(axis=axis, keepdims=True)
    return values


def _spread(values: FloatArray, inner: Clique, clique: Clique, shape: tuple[int, ...]) -> FloatArray:
    """An array of the inner clique shared equally among the cells of the outer."""
    kept = [n if a in inner else 1 for a, n in zip(clique, shape, strict=True)]
    return values.reshape(kept) * (values.size / np.prod(shape, dtype=np.float64))
