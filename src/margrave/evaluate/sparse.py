"""Random queries on three columns: boxes and half-spaces, and how far a synthetic table's answers are off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from margrave.data import Table
from margrave.errors import InputError
from margrave.evaluate.points import comparable, points_of
from margrave.schema import Codes
from margrave.typing import Clique, FloatArray

COLUMNS = 3
LEAST, MOST = 0.05, 0.95
"""The shares of the real rows that a box holds."""
DRAWS = 500
"""So many times as many boxes as are wanted are drawn before it is said that there are none."""


class Ratio(NamedTuple):
    """An error, and the whole that it is a part of."""

    error: float
    whole: float

    @property
    def relative(self) -> float:
        """``error / whole``: of nothing it is 0 or infinite."""
        return self.error / self.whole if self.whole > 0 else float("inf") if self.error > 0 else 0.0


class SparseQuery(Protocol):
    """A set of places in the unit cube of a few columns; its answer is the share of rows there."""

    @property
    def clique(self) -> Clique:
        """The columns."""
        ...

    def inside(self, places: FloatArray, real: FloatArray) -> NDArray[np.bool_]:
        """Which of these places count; where ``real`` is positive lie rows of the real table."""
        ...


@dataclass(frozen=True, eq=False)
class Box:
    """The rows between two bounds in each of its columns."""

    clique: Clique
    lower: FloatArray
    upper: FloatArray

    def inside(self, places: FloatArray, real: FloatArray) -> NDArray[np.bool_]:
        """Which of these places lie in it."""
        within = (self.lower[:, None] <= places) & (places <= self.upper[:, None])
        return np.asarray(within.all(axis=0))


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """The rows with ``<x, direction> + b > 0``, where b lies at ``at`` (0 to 1) of the range of ``<x, direction>``.

    That is the range over the real rows. The sign of b is the paper's, so that numbers compare with its tables: a
    direction whose range lies above 0 then holds all rows of both tables, one below 0 none, without any error.
    """

    clique: Clique
    direction: FloatArray
    at: float

    def inside(self, places: FloatArray, real: FloatArray) -> NDArray[np.bool_]:
        """Which of these places lie in it."""
        along = self.direction @ places
        low, high = along[real > 0].min(), along[real > 0].max()
        return np.asarray(along + (low + self.at * (high - low)) > 0)


def counting_error(real: Table, synthetic: Codes, queries: int = 200, *, rng: np.random.Generator) -> Ratio:
    """The error of random boxes in three columns, mean |q(D') − q(D)| to mean q(D), with q(D) a share of the rows.

    A box has a lower bound uniform on [0, 1] and an upper bound uniform between that and 1 in each of three random
    columns (all columns, where there are fewer); those that hold less than 5 % or more than 95 % of the real rows are
    drawn again.

    **Privacy:** NOT private: it reads the real rows outside the gate. Raises ``InputError`` where no such boxes are.

    Source: Donhauser, Abad, Hulkund, Yang 2024, Section 4.1, Equation 9.
    """
    comparable(real, synthetic)
    found: list[tuple[float, float]] = []
    for _ in range(DRAWS):
        boxes = [_box(real, rng) for _ in range(queries)]
        found += [(p, q) for p, q in answers(real, synthetic, boxes) if LEAST <= p <= MOST]
        if len(found) >= queries:
            return mean_error(found[:queries])
    raise InputError(
        f"Hardly any box in {COLUMNS} columns holds 5 % to 95 % of the real rows.",
        remedy="Leave columns out that nearly always have one value.",
    )


def thresholding_error(real: Table, synthetic: Codes, queries: int = 200, *, rng: np.random.Generator) -> Ratio:
    """The error of random half-spaces in three columns, mean |q(D') − q(D)| to mean q(D); see ``HalfSpace``.

    Directions are uniform on the sphere of three random columns (all, where there are fewer).

    **Privacy:** NOT private: it reads the real rows outside the gate.

    Source: Donhauser, Abad, Hulkund, Yang 2024, Section 4.1, Equation 9.
    """
    comparable(real, synthetic)
    return mean_error(answers(real, synthetic, [_half_space(real, rng) for _ in range(queries)]))


def answers(real: Table, synthetic: Codes, queries: Sequence[SparseQuery]) -> list[tuple[float, float]]:
    """The share of the real and of the synthetic rows in each query, in their order."""
    found: dict[int, tuple[float, float]] = {}
    for clique, points in points_of(real, synthetic, (q.clique for q in queries)):
        for number, query in enumerate(queries):
            if query.clique != clique:
                continue
            inside = query.inside(points.places, points.real)
            found[number] = float(points.real[inside].sum()), float(points.synthetic[inside].sum())
    return [found[number] for number in range(len(queries))]


def mean_error(answers: list[tuple[float, float]]) -> Ratio:
    """The mean of |synthetic − real|, and of real.

    >>> mean_error([(0.5, 0.25), (0.5, 0.5)])
    Ratio(error=0.125, whole=0.5)
    """
    real, synthetic = np.array(answers).T
    return Ratio(float(np.abs(synthetic - real).mean()), float(real.mean()))


def _columns(real: Table, rng: np.random.Generator) -> Clique:
    """Three columns at random, or all."""
    d = len(real.domain)
    chosen = rng.choice(d, size=min(COLUMNS, d), replace=False)
    return tuple(real.domain.attributes[i] for i in sorted(chosen))


def _box(real: Table, rng: np.random.Generator) -> Box:
    clique = _columns(real, rng)
    lower = rng.random(len(clique))
    return Box(clique, lower, lower + (1.0 - lower) * rng.random(len(clique)))


def _half_space(real: Table, rng: np.random.Generator) -> HalfSpace:
    clique = _columns(real, rng)
    normal = rng.standard_normal(len(clique))
    return HalfSpace(clique, normal / np.linalg.norm(normal), float(rng.random()))
