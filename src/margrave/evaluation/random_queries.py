"""Random queries on three columns: boxes and half-spaces, and how far a synthetic table's answers are off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from margrave.data import Table
from margrave.domain import Codes
from margrave.errors import InputError
from margrave.evaluation.inputs import check_count
from margrave.evaluation.points import comparable, points_of
from margrave.types import Clique, FloatArray

COLUMNS = 3
#: The range of the share of real rows in a box.
MIN_BOX_SHARE, MAX_BOX_SHARE = 0.05, 0.95


class Ratio(NamedTuple):
    """An error, and the whole that it is a part of."""

    error: float
    denominator: float

    @property
    def relative(self) -> float:
        """``error / whole``: of nothing it is 0 or infinite."""
        return (
            self.error / self.denominator
            if self.denominator > 0
            else float("inf")
            if self.error > 0
            else 0.0
        )


class RandomQuery(Protocol):
    """A set of places in the unit cube of a few columns; its answer is the share of rows there."""

    @property
    def clique(self) -> Clique:
        """The columns."""
        ...

    def inside(self, places: FloatArray, real: FloatArray) -> NDArray[np.bool_]:
        """Return which of these points count; rows of the real table lie where ``real`` is
        positive.
        """
        ...


@dataclass(frozen=True, eq=False)
class RandomBox:
    """The rows between two bounds in each of its columns."""

    clique: Clique
    lower: FloatArray
    upper: FloatArray

    def inside(self, places: FloatArray, real: FloatArray) -> NDArray[np.bool_]:
        """Return which of these points lie in the box."""
        within = (self.lower[:, None] <= places) & (places <= self.upper[:, None])
        return np.asarray(within.all(axis=0))


@dataclass(frozen=True, eq=False)
class RandomHalfSpace:
    """The rows with ``<x, direction> + b > 0``, where b lies at ``at`` (0 to 1) of the range of ``<x, direction>``.

    That is the range over the real rows. The sign of b is the paper's, so that numbers compare with its tables: a
    direction whose range lies above 0 then holds all rows of both tables, one below 0 none, without any error.
    """

    clique: Clique
    direction: FloatArray
    at: float

    def inside(self, places: FloatArray, real: FloatArray) -> NDArray[np.bool_]:
        """Return which of these points lie in the half-space."""
        along = self.direction @ places
        low, high = along[real > 0].min(), along[real > 0].max()
        return np.asarray(along + (low + self.at * (high - low)) > 0)


def counting_error(
    real: Table, synthetic: Codes, queries: int = 200, *, rng: np.random.Generator
) -> Ratio:
    """Return the error of random boxes in three columns, mean |q(D') − q(D)| to mean q(D), with
    q(D) a share of the rows.

    A box has a lower bound uniform on [0, 1] and an upper bound uniform between that and 1 in each of three random
    columns (all columns, where there are fewer); those that hold less than 5 % or more than 95 % of the real rows are
    drawn again.

    **Privacy:** NOT private: it reads the real rows outside the gate. Raises ``InputError`` where no such boxes are.

    Source: Donhauser, Abad, Hulkund, Yang 2024, Section 4.1, Equation 9.
    """
    # Boxes drawn per box wanted, before the search for boxes fails.
    draws_per_box = 500
    comparable(real, synthetic)
    check_count("queries", queries)
    found: list[tuple[float, float]] = []
    for _ in range(draws_per_box):
        boxes = [_box(real, rng) for _ in range(queries)]
        found += [
            (p, q)
            for p, q in answers(real, synthetic, boxes)
            if MIN_BOX_SHARE <= p <= MAX_BOX_SHARE
        ]
        if len(found) >= queries:
            return mean_error(found[:queries])
    raise InputError(
        f"Hardly any box in {COLUMNS} columns holds 5 % to 95 % of the real rows.",
        remedy="Leave columns out that nearly always have one value.",
    )


def thresholding_error(
    real: Table, synthetic: Codes, queries: int = 200, *, rng: np.random.Generator
) -> Ratio:
    """Return the error of random half-spaces in three columns, mean |q(D') − q(D)| to mean q(D);
    see ``RandomHalfSpace``.

    Directions are uniform on the sphere of three random columns (all, where there are fewer).

    **Privacy:** NOT private: it reads the real rows outside the gate.

    Source: Donhauser, Abad, Hulkund, Yang 2024, Section 4.1, Equation 9.
    """
    comparable(real, synthetic)
    check_count("queries", queries)
    return mean_error(answers(real, synthetic, [_half_space(real, rng) for _ in range(queries)]))


def answers(
    real: Table, synthetic: Codes, queries: Sequence[RandomQuery]
) -> list[tuple[float, float]]:
    """Return the share of the real and of the synthetic rows in each query, in their order."""
    found: dict[int, tuple[float, float]] = {}
    for clique, points in points_of(real, synthetic, (q.clique for q in queries)):
        for number, query in enumerate(queries):
            if query.clique != clique:
                continue
            inside = query.inside(points.places, points.real)
            found[number] = float(points.real[inside].sum()), float(points.synthetic[inside].sum())
    return [found[number] for number in range(len(queries))]


def mean_error(answers: list[tuple[float, float]]) -> Ratio:
    """Return the mean of |synthetic − real|, and of real.

    >>> mean_error([(0.5, 0.25), (0.5, 0.5)])
    Ratio(error=0.125, denominator=0.5)
    """
    real, synthetic = np.array(answers).T
    return Ratio(float(np.abs(synthetic - real).mean()), float(real.mean()))


def _columns(real: Table, rng: np.random.Generator) -> Clique:
    d = len(real.domain)
    chosen = rng.choice(d, size=min(COLUMNS, d), replace=False)
    return tuple(real.domain.attributes[i] for i in sorted(chosen))


def _box(real: Table, rng: np.random.Generator) -> RandomBox:
    clique = _columns(real, rng)
    lower = rng.random(len(clique))
    return RandomBox(clique, lower, lower + (1.0 - lower) * rng.random(len(clique)))


def _half_space(real: Table, rng: np.random.Generator) -> RandomHalfSpace:
    clique = _columns(real, rng)
    normal = rng.standard_normal(len(clique))
    return RandomHalfSpace(clique, normal / np.linalg.norm(normal), float(rng.random()))
