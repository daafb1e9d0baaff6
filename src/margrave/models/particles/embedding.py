"""Codes as points: every column's codes in a space of its own, where neighbors are alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from margrave.domain import Codes, Domain
from margrave.errors import InputError
from margrave.marginal.half_space import centers
from margrave.types import AnyArray, Attribute, Clique, FloatArray, IntArray

Nominal = Literal["ordered", "equidistant"]

#: Distances computed at a time.
AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Embedding:
    """A point for every code of every column: ``points[a]`` has one row a code and one column a coordinate.

    A column with an order lies on a line, code x of k (from 0) at (2x + 1) / 2k, the middle of its kth of the unit
    interval. A state for missing has no place in that order: it stands beside the line, on a second coordinate, one
    away from the middle of it and so further from every value than any two values are from each other. Names
    (``domain.unordered``) are in order of their codes too, or, ``equidistant``, at the corners of a simplex, all one
    apart, in one dimension less than there are codes. A column of one code has no coordinates.

    >>> Embedding.of(Domain.of({"age": 4})).points["age"].ravel().tolist()
    [0.125, 0.375, 0.625, 0.875]
    """

    domain: Domain
    points: Mapping[Attribute, FloatArray]

    @staticmethod
    def of(domain: Domain, nominal: str = "ordered") -> Embedding:
        """Return the embedding of a domain; an InputError unless ``nominal`` is one of ``Nominal``."""
        check_nominal(nominal)
        apart = domain.unordered if nominal == "equidistant" else frozenset()
        return Embedding(
            domain, {a: points_of(domain.size(a), a in apart, a in domain.missing) for a in domain}
        )

    @cached_property
    def starts(self) -> dict[Attribute, int]:
        """The first coordinate of each column."""
        ends = np.cumsum([0, *(self.points[a].shape[1] for a in self.domain)])
        return {a: int(at) for a, at in zip(self.domain, ends, strict=False)}

    @property
    def dimensions(self) -> int:
        """The number of coordinates of all columns."""
        return sum(p.shape[1] for p in self.points.values())

    def coordinates(self, clique: Iterable[Attribute]) -> IntArray:
        """Return the coordinates of some columns."""
        each = [self.starts[a] + np.arange(self.points[a].shape[1]) for a in clique]
        return np.concatenate([np.empty(0, dtype=np.int64), *each])

    def cells(self, clique: Clique, cells: IntArray) -> FloatArray:
        """Return the points of some cells of a marginal, numbered as its values are: one row a
        coordinate.
        """
        codes = np.unravel_index(cells, self.domain.shape(clique))
        return np.concatenate([self.points[a][c].T for a, c in zip(clique, codes, strict=True)])

    def embed(self, codes: Codes) -> FloatArray:
        """Return records as points: one row a coordinate, one column a record."""
        return np.concatenate([self.points[a][codes.column(a)].T for a in self.domain])

    def nearest(self, particles: AnyArray) -> Codes:
        """Return the record of the nearest codes to each particle."""
        return Codes.of(self.domain, {a: self._nearest(a, particles) for a in self.domain})

    def distances(self, attribute: Attribute, particles: AnyArray) -> FloatArray:
        """Return the squared distances of particles to a column's codes: one row a particle."""
        points, own = (
            self.points[attribute],
            particles[self.coordinates([attribute])].T.astype(np.float64),
        )
        found: FloatArray = (
            (own**2).sum(axis=1)[:, None] - 2.0 * own @ points.T + (points**2).sum(axis=1)
        )
        return found

    def _nearest(self, attribute: Attribute, particles: AnyArray) -> IntArray:
        size, count = self.domain.size(attribute), particles.shape[1]
        if self.points[attribute].shape[1] == 1:
            line = particles[self.starts[attribute]]
            return np.asarray(np.clip(np.floor(line * size), 0, size - 1), dtype=np.int64)
        step = max(1, AT_ONCE // size)
        parts = [
            self.distances(attribute, particles[:, i : i + step]) for i in range(0, count, step)
        ]
        return np.concatenate([np.empty(0, dtype=np.int64), *(p.argmin(axis=1) for p in parts)])


def check_nominal(nominal: str) -> None:
    """Raise an InputError for anything but one of ``Nominal``."""
    if nominal not in get_args(Nominal):
        raise InputError(
            f"Names cannot be embedded {nominal!r}.",
            remedy='Embed them "ordered" or "equidistant".',
        )


def points_of(size: int, apart: bool, missing: bool) -> FloatArray:
    """Return the points of one column's codes."""
    if size == 1:
        return np.empty((1, 0))
    if apart:
        return simplex(size)
    values = size - missing
    line = centers(values)
    if not missing:
        return line[:, None]
    return np.stack([np.append(line, 0.5), np.append(np.zeros(values), 1.0)], axis=1)


def simplex(corners: int) -> FloatArray:
    """Return points with all distances 1, in one dimension less than their number, within the unit
    cube.

    They are the unit vectors, √2 apart, in an orthonormal basis of the directions of constant sum.
    """
    basis = np.zeros((corners, corners - 1))
    for i in range(1, corners):
        basis[:i, i - 1] = 1.0
        basis[i, i - 1] = -i
        basis[:, i - 1] /= np.sqrt(i * (i + 1.0))
    points = basis / np.sqrt(2.0)
    return np.asarray(points - points.min(axis=0), dtype=np.float64)
