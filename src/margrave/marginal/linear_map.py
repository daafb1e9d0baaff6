"""Linear maps of marginals: sums over groups of codes, prefixes, contrasts and weighted sums of cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np

from margrave.domain import Domain
from margrave.errors import InputError, ModelTooLargeError
from margrave.types import AnyArray, Attribute, Clique, FloatArray, IntArray


class Norms(NamedTuple):
    """The largest L1 norm and the largest squared L2 norm among some changes of an answer."""

    l1: int
    l2_squared: int


@dataclass(frozen=True, eq=False)
class LinearMap:
    """A whole-number linear map of a marginal, one factor per attribute (a Kronecker product).

    ``groups[a][code]`` is the group (0, 1, …) of a code of attribute ``a``: the answers are sums over
    groups. ``matrices[a]`` has one row per answer and one column per code of ``a``. An attribute has at
    most one of the two; without any its codes stay as they are. Attributes outside a clique are
    ignored. Weights that are not whole numbers are given over a common denominator, and so are the
    answers then.

    Groups partition the cells, so one record is counted in one cell of the answer, as in the marginal
    itself. A matrix may count a record in many answers: ``one_row`` and ``two_rows`` say how far.

    Example:
        >>> prefixes = LinearMap.prefixes(Domain.of({"age": 3, "sex": 2}), ["age"])
        >>> prefixes.apply(("age", "sex"), np.array([[5, 4], [3, 2], [9, 9]])).tolist()
        [[5, 4], [8, 6], [17, 15]]
    """

    groups: Mapping[Attribute, IntArray] = field(default_factory=dict)
    matrices: Mapping[Attribute, IntArray] = field(default_factory=dict)

    @staticmethod
    def prefixes(domain: Domain, attributes: Iterable[Attribute]) -> LinearMap:
        """Return the map to "at most this code" of some ordered attributes."""
        return LinearMap(matrices={a: np.tri(domain.size(a), dtype=np.int64) for a in attributes})

    @staticmethod
    def residual(domain: Domain, clique: Clique) -> LinearMap:
        """Return the map to the interactions of a clique, times its number of cells.

        The answers are whole numbers: Π size_a times what ``marginal.residual.residual`` returns.
        """
        sizes = {a: domain.size(a) for a in clique}
        ones = {a: np.ones((n, n), dtype=np.int64) for a, n in sizes.items()}
        return LinearMap(
            matrices={a: n * np.eye(n, dtype=np.int64) - ones[a] for a, n in sizes.items()}
        )

    @property
    def is_identity(self) -> bool:
        """True if every cell is an answer."""
        return not self.groups and not self.matrices

    @property
    def is_partition(self) -> bool:
        """True if every record is counted in exactly one answer: cells, or groups of them."""
        return not self.matrices

    @property
    def is_counts(self) -> bool:
        """True if every answer is a number of records: all weights are 0 or 1."""
        return all(((m == 0) | (m == 1)).all() for m in self.matrices.values())

    @property
    def max_weight(self) -> int:
        """The largest weight of a cell in an answer."""
        return prod(_magnitude(m) for m in self.matrices.values())

    @property
    def key(self) -> bytes:
        """Bytes that are equal for equal maps, and differ for others."""
        named = [(a, b"=", g) for a, g in self.groups.items()]
        named += [(a, b"*", m) for a, m in self.matrices.items()]
        ordered = sorted(named, key=lambda item: item[0])
        return b"|".join(a.encode() + sign + values.tobytes() for a, sign, values in ordered)

    def within(self, clique: Clique) -> LinearMap:
        """Return the map without the attributes that the clique does not have.

        Example:
            >>> LinearMap({"age": np.array([0, 1, 1]), "sex": np.array([0, 0])}).within(("age",)).groups
            {'age': array([0, 1, 1])}
        """
        if all(a in clique for a in (*self.groups, *self.matrices)):
            return self
        groups, matrices = (
            {a: values for a, values in factors.items() if a in clique}
            for factors in (self.groups, self.matrices)
        )
        return LinearMap(groups, matrices)

    def domain(self, domain: Domain) -> Domain:
        """Return the domain of answers: one code per answer along each attribute."""
        return Domain.of({a: self._answers(a, domain.size(a)) for a in domain})

    def _answers(self, attribute: Attribute, size: int) -> int:
        if attribute in self.matrices:
            return len(self.matrices[attribute])
        return int(self.groups[attribute].max()) + 1 if attribute in self.groups else size

    def rows(self, attribute: Attribute, size: int) -> IntArray:
        """Return the factor of an attribute of so many codes as a matrix, whatever it is."""
        if attribute in self.matrices:
            return self.matrices[attribute]
        groups = self.groups.get(attribute, np.arange(size))
        return np.asarray(groups == np.arange(int(groups.max()) + 1)[:, None], dtype=np.int64)

    def classes(self, attribute: Attribute, size: int) -> IntArray:
        """Return a number for each code of an attribute; codes that no answer separates share one."""
        if attribute in self.matrices:
            return np.unique(self.matrices[attribute], axis=1, return_inverse=True)[1].reshape(-1)
        return self.groups.get(attribute, np.arange(size))

    def apply(self, clique: Clique, values: AnyArray) -> AnyArray:
        """Return the answers on a marginal's values, one axis per attribute of the clique."""
        for axis, attribute in enumerate(clique):
            if attribute in self.groups:
                groups = self.groups[attribute]
                shape = (*values.shape[:axis], int(groups.max()) + 1, *values.shape[axis + 1 :])
                summed = np.zeros(shape, dtype=values.dtype)
                place: Any = (*(slice(None),) * axis, groups)
                np.add.at(summed, place, values)
                values = summed
            elif attribute in self.matrices:
                values = _along(self.matrices[attribute], values, axis)
        return np.ascontiguousarray(values)

    def spread(self, clique: Clique, answer: FloatArray) -> FloatArray:
        """Return the transpose of ``apply``: each cell gets the weighted sum of its answers."""
        for axis, attribute in enumerate(clique):
            if attribute in self.groups:
                answer = np.take(answer, self.groups[attribute], axis=axis)
            elif attribute in self.matrices:
                answer = _along(self.matrices[attribute].T, answer, axis)
        return np.ascontiguousarray(answer)

    def squared(self) -> LinearMap:
        """Return the map with every weight squared: it takes variances of cells to those of answers."""
        return LinearMap(self.groups, {a: m * m for a, m in self.matrices.items()})

    def total_weights(self, clique: Clique, shape: tuple[int, ...]) -> FloatArray | None:
        """Return the weights with which the answers add up to the number of records.

        Args:
            clique: The attributes of the marginal.
            shape: The number of answers along each axis.

        Returns:
            An array of this shape, of the least norm; None if the answers do not determine the number.
        """
        weights: FloatArray = np.ones(())
        for attribute, answers in zip(clique, shape, strict=True):
            own: FloatArray = np.ones(answers)
            if attribute in self.matrices:
                matrix = self.matrices[attribute].astype(np.float64)
                own = np.asarray(np.linalg.lstsq(matrix.T, np.ones(matrix.shape[1]), rcond=None)[0])
                if not np.allclose(matrix.T @ own, 1.0, atol=1e-9):
                    return None
            weights = np.multiply.outer(weights, own)
        return weights

    def one_row(self) -> Norms:
        """Return how far the answers move if one row comes or goes, at most: exact."""
        columns = [np.abs(m) for m in self.matrices.values()]
        return Norms(
            prod(int(m.sum(axis=0).max()) for m in columns),
            prod(int((m * m).sum(axis=0).max()) for m in columns),
        )

    def two_rows(self, domain: Domain) -> Norms:
        """Return how far the answers move if one row takes the place of another, at most.

        The squared L2 norm is exact. The L1 norm is exact if one attribute has a matrix; for more it
        is twice that of one row, an upper bound.

        Args:
            domain: The attributes of the marginal.

        Raises:
            ModelTooLargeError: If several large matrices would have to be searched together.
        """
        return Norms(self._two_rows_l1(domain), self._two_rows_l2_squared(domain))

    def others_vary(self, domain: Domain) -> bool:
        """Return whether two rows can differ in the answers of an attribute without a matrix."""
        return any(self._answers(a, domain.size(a)) > 1 for a in domain if a not in self.matrices)

    def _two_rows_l1(self, domain: Domain) -> int:
        twice = 2 * self.one_row().l1
        (attribute, *more) = self.matrices
        if more or self.others_vary(domain):
            return twice
        columns = self.matrices[attribute].T
        return max(int(np.abs(columns - column).sum(axis=1).max()) for column in columns)

    def _two_rows_l2_squared(self, domain: Domain) -> int:
        """Return max p + q − 2 g over pairs of cells: their squared norms p, q, and their inner
        product g.

        All three are products over attributes, and p, q are never negative. So among pairs of codes
        with the same g only those matter for which no other pair has a larger p and q.
        """
        triples = np.array([[1, 1, 1], [1, 1, 0]] if self.others_vary(domain) else [[1, 1, 1]])
        for matrix in self.matrices.values():
            own = _pairs(matrix)
            if len(triples) * len(own) > MAX_PAIRS:
                raise ModelTooLargeError(
                    "The sensitivity of this map takes too long to find under replacement.",
                    remedy="Give matrices to fewer columns, or protect with a unit of adding or"
                    " removing.",
                )
            triples = _undominated((triples[:, None] * own[None]).reshape(-1, 3))
        return int((triples[:, 0] + triples[:, 1] - 2 * triples[:, 2]).max())

    def check(self, domain: Domain) -> None:
        """Raise ``InputError`` unless the factors fit the domain and stay exact in 64-bit integers."""
        # Largest weight of a map: answers of up to 2^41 records are exact in 64 bits.
        max_weight = 1 << 20
        # Largest squared norm of a column of a map, for the same reason.
        max_norm = 1 << 60
        for attribute, groups in self.groups.items():
            fits = groups.shape == (domain.size(attribute),)
            whole = np.issubdtype(groups.dtype, np.integer)
            if not fits or not whole or int(groups.min()) < 0 or attribute in self.matrices:
                raise InputError(
                    f"The query's groups of {attribute!r} are not one number, 0 or more, per code."
                )
        for attribute, matrix in self.matrices.items():
            fits = matrix.ndim == 2 and matrix.shape[1:] == (domain.size(attribute),)
            if not fits or matrix.dtype != np.int64 or not matrix.any():
                raise InputError(
                    f"The query's matrix of {attribute!r} is not a matrix of 64-bit integers with one"
                    " column per code and a weight other than 0."
                )
        # one factor after the other, so that no product is formed of factors that are too large
        weights = [_magnitude(m) for m in self.matrices.values()]
        answers = [len(m) for m in self.matrices.values()]
        if prod(weights) > max_weight or prod(answers) * prod(weights) ** 2 > max_norm:
            raise InputError(
                "The weights of a linear map are too large to be exact.",
                remedy=f"Their product over the columns is {max_weight:,} at most.",
            )


IDENTITY = LinearMap()


#: Pairs of codes that are compared at once for a sensitivity under replacement.
MAX_PAIRS = 1 << 23


def _magnitude(matrix: IntArray) -> int:
    return max(abs(int(matrix.min())), abs(int(matrix.max())))


def _along(matrix: AnyArray, values: AnyArray, axis: int) -> AnyArray:
    product = np.tensordot(matrix.astype(values.dtype), values, axes=(1, axis))
    return np.moveaxis(product, 0, axis)


def _pairs(matrix: IntArray) -> IntArray:
    columns = np.unique(matrix, axis=1)
    if columns.shape[1] ** 2 > MAX_PAIRS:
        raise ModelTooLargeError(
            "The sensitivity of this map takes too long to find under replacement.",
            remedy="Give it fewer codes, or protect with a unit of adding or removing.",
        )
    gram = columns.T @ columns
    norms = np.diag(gram)
    first, second = np.meshgrid(norms, norms, indexing="ij")
    return _undominated(np.stack([first, second, gram], axis=-1).reshape(-1, 3))


def _undominated(triples: IntArray) -> IntArray:
    p, q, g = triples.T
    ordered = triples[np.lexsort((-q, -p, g))]  # by g, the largest p first
    ranks = np.unique(ordered[:, 1], return_inverse=True)[1].reshape(-1)
    runs = np.cumsum(np.diff(ordered[:, 2], prepend=ordered[:1, 2]) != 0)
    keys = runs * (len(ordered) + 1) + ranks
    before = np.concatenate([[-1], np.maximum.accumulate(keys)[:-1]])
    return np.asarray(ordered[keys > before], dtype=np.int64)
