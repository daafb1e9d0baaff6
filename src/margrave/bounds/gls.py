"""The best unbiased estimate of a marginal from all noisy marginals, in closed form.

A marginal splits into one interaction per subset A of its columns (``marginal.residual``). Noise that is
independent and equal in all cells of a measurement stays uncorrelated between these parts. So each part
is estimated on its own, by the average over all measurements that contain A with weights 1 / variance.
Their sum is the generalized least squares estimate: no linear unbiased estimate has a smaller variance.
Measurements that merge codes of A's columns in another way are left out of A's part. Interactions that
were measured alone, and noisy row counts, are in the average too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from margrave.domain import Domain
from margrave.marginal import TOTAL, LinearMap, project_array
from margrave.marginal.residual import degrees_of_freedom, reconstruct, residual, subsets
from margrave.marginal.symmetric_maps import interactions_of
from margrave.transcript import Answer, Measurement, PublicTotal, Transcript
from margrave.types import Attribute, Clique, FloatArray, IntArray

Groups = Mapping[Attribute, IntArray]


@dataclass(frozen=True, eq=False)
class GLSEstimate:
    """A marginal estimated without bias, and what is known of its error.

    ``values`` has one axis per attribute, over groups of codes for those in ``groups``. Every cell's error has the
    standard deviation ``spread``; ``widest²`` is the largest eigenvalue of the errors' covariance. They are linear in
    the noise of ``noisy_cells`` cells, none of it of a scale below ``least_scale``. ``eigenvalues`` holds the variance
    of the errors in each interaction's subspace.
    """

    clique: Clique
    values: FloatArray
    spread: float
    widest: float
    least_scale: float
    noisy_cells: int
    groups: Groups
    eigenvalues: Mapping[Clique, float]

    def covariance(self, first: FloatArray, second: FloatArray) -> float:
        """Return the covariance of two weighted sums of the cells.

        Args:
            first: Weights, of the shape of ``values``.
            second: Weights, of the same shape.
        """
        found = 0.0
        for inner, eigenvalue in self.eigenvalues.items():
            one, other = (residual(project_array(w, self.clique, inner)) for w in (first, second))
            found += eigenvalue * float((one * other).sum()) * one.size / self.values.size
        return found

    def deviation(self, weights: FloatArray) -> float:
        """Return the standard deviation of a weighted sum of the cells."""
        return math.sqrt(max(0.0, self.covariance(weights, weights)))

    @property
    def query(self) -> LinearMap:
        """The map by which codes were merged."""
        return LinearMap(self.groups)

    def slice(self, attribute: Attribute, code: int) -> GLSEstimate:
        """Return the estimate of the cells in which one column has one code, without that column.

        The errors of these cells alone have the same form. With n codes of the column, an interaction's variance there
        is 1 / n of its own and 1 − 1 / n of that with the column.
        """
        at = self.clique.index(attribute)
        values = np.take(self.values, code, axis=at)
        rest = tuple(a for a in self.clique if a != attribute)
        share = 1.0 / self.values.shape[at]

        def with_it(inner: Clique) -> float:
            both = tuple(a for a in self.clique if a in inner or a == attribute)
            return self.eigenvalues[both]

        found = {r: share * self.eigenvalues[r] + (1.0 - share) * with_it(r) for r in subsets(rest)}
        free = {r: degrees_of_freedom(project_array(values, rest, r).shape) for r in found}
        variance = sum(found[r] * free[r] for r in found) / values.size
        widest = max((v for r, v in found.items() if free[r]), default=0.0)
        left = {a: g for a, g in self.groups.items() if a != attribute}
        return GLSEstimate(
            rest, values, math.sqrt(variance), math.sqrt(widest), self.least_scale,
            self.noisy_cells, left, found,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Part:
    """An inverse-variance average, its precision per cell, and the scales and cells of the noise in it, by source."""

    values: FloatArray
    precision: float  # infinite where it is known exactly
    used: Mapping[int, tuple[float, int]]

    def with_part(self, other: _Part) -> _Part:
        if math.isinf(self.precision):
            return self
        precision = self.precision + other.precision
        values = (self.precision * self.values + other.precision * other.values) / precision
        return _Part(values, precision, {**self.used, **other.used})


@dataclass(eq=False)
class Unbiased:
    """Estimates of the marginals that lie in a measured one. ``paper``: each from measurements of it or more alone."""

    domain: Domain
    transcript: Transcript
    paper: bool = False
    _parts: dict[tuple[Clique, tuple[bytes | None, ...]], _Part] = field(default_factory=dict)

    @cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        """Cells, or groups of codes."""
        return tuple(m for m in self.transcript.measurements if m.query.is_partition)

    @cached_property
    def _alone(self) -> Mapping[Clique, _Part]:
        """The interactions that were measured through maps, and the noisy row count; none in the paper's form."""
        found: dict[Clique, _Part] = {}
        if self.paper:
            return found
        for i, e in enumerate(self.transcript, start=len(self.measurements)):
            if isinstance(e, Measurement) and not e.query.is_partition:
                parts = list(interactions_of(e.query, e.clique, self.domain, e.values))
                noise = (e.scale, e.values.size)
            elif isinstance(e, Answer) and e.query == TOTAL:
                parts, noise = [((), np.array(float(e.value)), 1.0)], (e.scale, 1)
            else:
                continue
            for inner, values, precision in parts:
                part = _Part(values, precision / noise[0] ** 2, {i: noise})
                found[inner] = found[inner].with_part(part) if inner in found else part
        return found

    @cached_property
    def _total(self) -> float | None:
        """The public row count."""
        return next((float(e.total) for e in self.transcript if isinstance(e, PublicTotal)), None)

    @cached_property
    def _places(self) -> Mapping[Attribute, list[int]]:
        """The measurements of every attribute, by their places."""
        found: dict[Attribute, list[int]] = {}
        for i, m in enumerate(self.measurements):
            for a in m.clique:
                found.setdefault(a, []).append(i)
        return found

    def _containing(self, clique: Clique) -> list[int]:
        """Return the places of the measurements that contain a clique."""
        if not clique:
            return list(range(len(self.measurements)))
        rare = min((self._places.get(a, []) for a in clique), key=len)
        return [i for i in rare if set(clique) <= set(self.measurements[i].clique)]

    def supports(self, clique: Clique) -> bool:
        """Return True if some measurement contains it, with every code of its columns."""
        return self.groups_of(clique) == {}

    def groups_of(self, clique: Clique) -> Groups | None:
        """Return how the finest measurement of the clique merges its codes ({}: not at all); None
        without one.
        """
        above = [self.measurements[i] for i in self._containing(clique)]
        found = [{a: m.query.groups[a] for a in clique if a in m.query.groups} for m in above]
        if self._alone and all(self._knows(inner) for inner in subsets(clique)):
            found.append({})
        return max(found, key=lambda groups: self._cells(clique, groups), default=None)

    def _knows(self, inner: Clique) -> bool:
        """Return True if the interaction of all codes was measured, or is 0."""
        if inner in self._alone or not degrees_of_freedom(self.domain.shape(inner)):
            return True
        if not inner and self._total is not None:
            return True
        above = (self.measurements[i] for i in self._containing(inner))
        return any(_alike(m, inner, {}) for m in above)

    def estimate(self, clique: Clique) -> GLSEstimate | None:
        """Return the marginal at the finest resolution measured; None if no measurement contains
        it.
        """
        groups = self.groups_of(clique)
        if groups is None:
            return None
        if self.paper:
            whole = self._part(clique, groups)
            return self._made(
                clique,
                groups,
                whole.values,
                whole.precision**-0.5,
                whole.precision**-0.5,
                whole.used,
                dict.fromkeys(subsets(clique), 1.0 / whole.precision),
            )
        cells = self._cells(clique, groups)
        interactions: dict[Clique, FloatArray] = {}
        eigenvalues: dict[Clique, float] = {}
        variance, widest, used = 0.0, 0.0, dict[int, tuple[float, int]]()
        shape = LinearMap(groups).domain(self.domain).shape(clique)
        for inner in subsets(clique):
            part = self._interaction(inner, groups)
            if part is None:
                eigenvalues[inner] = 0.0
                continue
            interactions[inner] = part.values
            eigenvalues[inner] = eigenvalue = self._cells(inner, groups) / (cells * part.precision)
            multiplicity = degrees_of_freedom(part.values.shape)
            variance += eigenvalue * multiplicity / cells
            widest = max(widest, eigenvalue if multiplicity else 0.0)
            used |= part.used
        values = reconstruct(interactions, clique, shape)
        return self._made(clique, groups, values, variance**0.5, widest**0.5, used, eigenvalues)

    def _made(
        self,
        clique: Clique,
        groups: Groups,
        values: FloatArray,
        spread: float,
        widest: float,
        used: Mapping[int, tuple[float, int]],
        eigenvalues: Mapping[Clique, float],
    ) -> GLSEstimate:
        least = min((scale for scale, _ in used.values()), default=math.inf)
        noisy = max(1, sum(cells for _, cells in used.values()))
        return GLSEstimate(clique, values, spread, widest, least, noisy, groups, eigenvalues)

    def _cells(self, clique: Clique, groups: Groups) -> int:
        return LinearMap(groups).domain(self.domain.project(clique)).cells()

    def _interaction(self, inner: Clique, groups: Groups) -> _Part | None:
        """Return the average of an interaction; None if it is 0, as of columns of one code, and not measured."""
        part = None
        known = not inner and self._total is not None
        if known or any(
            _alike(self.measurements[i], inner, groups) for i in self._containing(inner)
        ):
            whole = self._part(inner, groups)
            part = _Part(residual(whole.values), whole.precision, whole.used)
        alone = None if any(a in groups for a in inner) else self._alone.get(inner)
        if alone is None or part is None:
            return part or alone
        return part.with_part(alone)

    def _part(self, clique: Clique, groups: Groups) -> _Part:
        """Return the average of all measurements that contain a clique and merge its codes just so.

        Summed down to the clique, a measurement of c cells has the variance (c / cells) · scale².
        """
        key = (clique, tuple(groups[a].tobytes() if a in groups else None for a in clique))
        if key not in self._parts:
            self._parts[key] = self._averaged(clique, groups)
        return self._parts[key]

    def _averaged(self, clique: Clique, groups: Groups) -> _Part:
        shape = LinearMap(groups).domain(self.domain).shape(clique)
        if not clique and self._total is not None and not self.paper:
            return _Part(np.array(self._total), np.inf, {})
        weighted, precision, used = np.zeros(shape), 0.0, dict[int, tuple[float, int]]()
        for i in self._containing(clique):
            m = self.measurements[i]
            if _alike(m, clique, groups):
                weight = weighted.size / (m.values.size * m.scale**2)
                weighted += weight * project_array(m.values, m.clique, clique).reshape(shape)
                precision += weight
                used[i] = (m.scale, m.values.size)
        return _Part(weighted / precision, precision, used)


def _alike(measurement: Measurement, clique: Clique, groups: Groups) -> bool:
    own = measurement.query.groups
    return all(
        (a in own) == (a in groups) and (a not in own or np.array_equal(own[a], groups[a]))
        for a in clique
    )
