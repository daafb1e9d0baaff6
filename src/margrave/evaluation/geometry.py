"""Measures for ordered codes: those of PrivPGD's authors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from margrave.data import Table
from margrave.domain import Codes
from margrave.errors import InputError
from margrave.evaluation.downstream import downstream_error
from margrave.evaluation.inputs import check_count
from margrave.evaluation.points import Points, comparable, points_of
from margrave.evaluation.random_queries import Ratio, counting_error, thresholding_error
from margrave.schema import Schema
from margrave.types import AnyArray, Attribute, FloatArray

DIRECTIONS = 100


@dataclass(frozen=True)
class GeometryErrors:
    """Six ways to be wrong, all 0 at best. **Not private**: every number comes from the real rows.

    Codes lie at their centers in [0, 1], ``(2 x + 1) / (2 k)``, so that columns of any size weigh alike.

    - ``covariance``: ``‖cov(D) − cov(D')‖ / ‖cov(D')‖`` in Frobenius norm;
    - ``counting``, ``thresholding``: relative errors of random boxes and half-spaces in three columns;
    - ``covariance_error``, ``counting_error``, ``thresholding_error``: the numerators of these three alone. The paper's
      tables hold numerators too: a random sample of as many rows has larger relative errors than those. That of the
      covariance is there of rows less their own mean over columns, which is less (``docs/research/transport.md``);
    - ``sliced_wasserstein``: SW₁, the mean over directions of the Wasserstein distance of projections, averaged over
      all pairs of columns;
    - ``two_way_l1``: ``Σ |p − q|`` over the cells of a pair (0 to 2), averaged over all pairs. The paper's tables call
      it TV; it is twice the total variation;
    - ``downstream``: the test error of gradient boosting trained on D', or None where no target was named.
    """

    private: ClassVar[bool] = False

    covariance: float
    counting: float
    thresholding: float
    sliced_wasserstein: float
    two_way_l1: float
    covariance_error: float
    counting_error: float
    thresholding_error: float
    downstream: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON: an infinite error is None."""
        errors: dict[str, float | None] = vars(self)
        return {name: None if e is None or math.isinf(e) else e for name, e in errors.items()}


def geometry_errors(
    real: Table,
    synthetic: Codes,
    *,
    target: Attribute | None = None,
    test: Codes | None = None,
    regression: bool = False,
    queries: int = 200,
    directions: int = DIRECTIONS,
    rng: np.random.Generator | None = None,
) -> GeometryErrors:
    """Return the six errors of one synthetic table: covariance, boxes, half-spaces, SW₁, L1, and
    learning from it.

    ``target`` and ``test``, real rows held out, are for the downstream error alone (see ``downstream_error``). A
    ``regression`` leaves out rows whose target is missing.
    ``queries`` boxes and as many half-spaces are drawn; ``rng``: None is a fixed seed, so that two synthetic tables
    are held against the same ones. ``directions`` of projections are evenly spaced.

    **Privacy:** NOT private. It reads the real rows outside the gate, for the custodian alone.

    Raises ``InputError`` for tables of other columns, without rows, or in which no box holds 5 % to 95 % of the rows;
    for a target without ``test`` or the reverse; for a regression on a column of categories; and for ``queries`` or
    ``directions`` below 1.

    >>> from margrave.data import MemoryTable
    >>> from margrave.schema import Schema
    >>> schema = Schema.coded({"a": 2, "b": 2})
    >>> codes = Codes.of(schema.domain, {"a": np.array([0, 0, 1, 1]), "b": np.array([0, 0, 0, 1])})
    >>> geometry_errors(MemoryTable(schema, codes), codes.take([0, 2, 2, 3])).two_way_l1
    0.5

    Source: Donhauser, Abad, Hulkund, Yang 2024 (PrivPGD), Section 4.1.
    """
    comparable(real, synthetic)
    _check_target(real.schema, target, test, regression)
    train = synthetic
    if target is not None and test is not None and regression:
        train, test = (_with_target(codes, real.schema, target) for codes in (synthetic, test))
    rng = np.random.default_rng(0) if rng is None else rng
    sliced, l1 = _pairs(real, synthetic, directions)
    covariance = covariance_error(real, synthetic)
    counting = counting_error(real, synthetic, queries, rng=rng)
    thresholding = thresholding_error(real, synthetic, queries, rng=rng)
    return GeometryErrors(
        covariance=covariance.relative,
        counting=counting.relative,
        thresholding=thresholding.relative,
        sliced_wasserstein=sliced,
        two_way_l1=l1,
        covariance_error=covariance.error,
        counting_error=counting.error,
        thresholding_error=thresholding.error,
        downstream=None
        if target is None or test is None
        else downstream_error(train, test, target, regression=regression, rng=rng),
    )


def _check_target(
    schema: Schema, target: Attribute | None, test: Codes | None, regression: bool
) -> None:
    if (target is None) != (test is None):
        raise InputError("target and test belong together.", remedy="Give both, or neither.")
    if target is None and regression:
        raise InputError(
            "A regression needs a target.",
            remedy="Give target and test, or leave out regression.",
        )
    if target is not None and regression:
        schema.domain.index(target)
        if schema.column(target).kind == "categorical":
            raise InputError(
                f"The target {target!r} has categories without an order, and regression needs a number.",
                remedy="Leave out regression.",
            )


def _with_target(codes: Codes, schema: Schema, target: Attribute) -> Codes:
    """Return the rows whose target is a number: a missing value has a code and no place on the line."""
    column = schema.column(target)
    numbers = codes.column(target) < column.size - column.missing
    return codes.take(np.flatnonzero(numbers))


def covariance_error(real: Table, synthetic: Codes) -> Ratio:
    """Return ``‖cov(D) − cov(D')‖`` to ``‖cov(D')‖``, Frobenius norms of the covariance matrices of
    the codes' centers.

    **Privacy:** NOT private: it reads the real rows outside the gate.

    Source: Donhauser, Abad, Hulkund, Yang 2024, Section 4.1.
    """
    comparable(real, synthetic)
    domain = real.domain
    left, right = (np.zeros((len(domain), len(domain))) for _ in range(2))
    for clique, points in points_of(real, synthetic, [(a,) for a in domain]):
        i = domain.index(clique[0])
        left[i, i], right[i, i] = (
            _covariance(points.places[[0, 0]], w) for w in (points.real, points.synthetic)
        )
    for clique, points in points_of(real, synthetic, combinations(domain, 2)):
        i, j = map(domain.index, clique)
        left[i, j] = left[j, i] = _covariance(points.places, points.real)
        right[i, j] = right[j, i] = _covariance(points.places, points.synthetic)
    return Ratio(float(np.linalg.norm(left - right)), float(np.linalg.norm(right)))


def sliced_wasserstein(points: Points, directions: int = DIRECTIONS) -> float:
    """Return SW₁ of two distributions on the same points of the plane: the mean of W₁ over
    ``directions``.

        W₁ = ∫ |F(t) − G(t)| dt,   F and G the distribution functions along the direction

    Directions are evenly spaced over the half circle, which is more accurate than random ones.

    >>> corners = Points(np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    >>> round(sliced_wasserstein(corners), 3), round(2 / np.pi, 3)  # the mean of |cos|
    (0.637, 0.637)
    """
    check_count("directions", directions)
    angles = (np.arange(directions) + 0.5) * np.pi / directions
    difference = points.real - points.synthetic
    total = 0.0
    for direction in np.array([np.cos(angles), np.sin(angles)]).T:
        along = direction @ points.places
        order = np.argsort(along)
        total += float(np.abs(np.cumsum(difference[order])[:-1]) @ np.diff(along[order]))
    return total / directions


def _pairs(real: Table, synthetic: Codes, directions: int) -> tuple[float, float]:
    sliced, l1 = [0.0], [0.0]
    for _, points in points_of(real, synthetic, combinations(real.domain, 2)):
        sliced.append(sliced_wasserstein(points, directions))
        l1.append(float(np.abs(points.real - points.synthetic).sum()))
    pairs = max(1, len(l1) - 1)
    return sum(sliced) / pairs, sum(l1) / pairs


def _covariance(places: AnyArray, weights: FloatArray) -> float:
    x, y = places - (places @ weights)[:, None]
    return float((x * y) @ weights)
