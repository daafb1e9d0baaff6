"""Coordinates: an orthonormal basis of exactly what potentials can say, checked against explicit matrices."""

from __future__ import annotations

from itertools import chain, combinations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose

from margrave.domain import Domain
from margrave.models.graphical.coordinates import Coordinates
from margrave.types import Clique, FloatArray
from tests.support.strategies import seeded


def rng_of(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


Case = tuple[Domain, dict[Clique, Clique], dict[Clique, FloatArray]]


@st.composite
def cases(draw: st.DrawFn, *, even: bool = True) -> Case:
    """A domain, cliques in any order of axes, and noise scales."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    domain = Domain.of({f"c{i}": n for i, n in enumerate(sizes)})
    names = domain.attributes
    subsets = list(
        chain.from_iterable(combinations(names, k) for k in range(1, min(3, len(names)) + 1))
    )
    cliques = draw(st.lists(st.sampled_from(subsets), min_size=1, max_size=5, unique=True))
    axes = {c: tuple(draw(st.permutations(c))) for c in cliques}
    scales = {}
    for c in cliques:
        scale = np.full(domain.shape(c), draw(st.floats(0.1, 50.0)))
        if not even and draw(st.booleans()):
            scale = scale * rng_of(draw(st.integers(0, 99))).uniform(0.5, 2.0, scale.shape)
        scales[c] = scale
    return domain, axes, scales


def coordinates_of(case: Case) -> tuple[Coordinates, dict[Clique, int], int]:
    domain, axes, scales = case
    starts, cells = {}, 0
    for clique in reversed(list(axes)):  # any layout will do
        starts[clique] = cells
        cells += domain.cells(clique)
    return Coordinates(domain, axes=axes, starts=starts, scales=scales, cells=cells), starts, cells


def whitened_marginals(case: Case, starts: dict[Clique, int], cells: int) -> FloatArray:
    """The matrix from tables over the whole domain to all measured marginals, each divided by its noise."""
    domain, axes, scales = case
    matrix = np.zeros((cells, domain.cells(domain.attributes)))
    for column, index in enumerate(np.ndindex(*domain.shape(domain.attributes))):
        code = dict(zip(domain.attributes, index, strict=True))
        for clique, order in axes.items():
            shape = domain.shape(order)
            row = int(np.ravel_multi_index([code[a] for a in order], shape))
            scale = scales[clique][tuple(code[a] for a in clique)]
            matrix[starts[clique] + row, column] = 1.0 / scale
    return matrix


def as_matrix(coordinates: Coordinates) -> FloatArray:
    return np.column_stack([coordinates.to_cells(unit) for unit in np.eye(coordinates.size)])


@seeded(60)
@given(case=cases())
def test_they_are_an_orthonormal_basis_of_the_whitened_marginals(case: Case) -> None:
    coordinates, starts, cells = coordinates_of(case)
    basis = as_matrix(coordinates)
    assert_allclose(basis.T @ basis, np.eye(coordinates.size), atol=1e-12)
    matrix = whitened_marginals(case, starts, cells)
    assert np.linalg.matrix_rank(matrix) == coordinates.size
    assert_allclose(basis @ (basis.T @ matrix), matrix, atol=1e-10 * np.abs(matrix).max())


@seeded(60)
@given(case=cases(even=False), seed=st.integers(0, 999))
def test_what_they_leave_out_changes_no_distribution(case: Case, seed: int) -> None:
    coordinates, starts, cells = coordinates_of(case)
    phi = rng_of(seed).normal(size=cells)
    left_out = phi - coordinates.to_cells(coordinates.from_cells(phi))
    log_density = whitened_marginals(case, starts, cells).T @ left_out
    assert_allclose(log_density, 0.0, atol=1e-10 / min(float(s.min()) for s in case[2].values()))


@seeded(60)
@given(case=cases(even=False), seed=st.integers(0, 999))
def test_the_two_maps_are_each_others_transpose_and_keep_lengths(case: Case, seed: int) -> None:
    coordinates, _, cells = coordinates_of(case)
    rng = rng_of(seed)
    eta, phi = rng.normal(size=coordinates.size), rng.normal(size=cells)
    assert float(coordinates.to_cells(eta) @ phi) == pytest.approx(
        float(eta @ coordinates.from_cells(phi))
    )
    assert_allclose(coordinates.from_cells(coordinates.to_cells(eta)), eta, atol=1e-12)


def test_measurements_combine_with_least_variance() -> None:
    """Two tables that share a column, one with twice the noise and half the cells: weights 1 / (scale² · cells)."""
    domain = Domain.of({"a": 2, "b": 4, "c": 2})
    scales = {("a", "b"): np.full((2, 4), 1.0), ("a", "c"): np.full((2, 2), 2.0)}
    case = (domain, {c: c for c in scales}, scales)
    coordinates, starts, cells = coordinates_of(case)
    phi = np.zeros(cells)
    tables = {("a", "b"): np.zeros((2, 4)), ("a", "c"): np.zeros((2, 2))}
    tables["a", "b"][0], tables["a", "c"][0] = (
        3.0,
        10.0,
    )  # column a says 12 − 0 and 20 − 0 respectively
    for clique, table in tables.items():
        phi[starts[clique] : starts[clique] + table.size] = (table / scales[clique]).ravel()
    agreed = coordinates.to_cells(coordinates.from_cells(phi))
    at = starts["a", "b"]
    first = agreed[at : at + 8].reshape(2, 4).sum(axis=1)
    # of variances 1 · 4 cells and 4 · 2 cells a sum: weights 2 to 1
    assert_allclose(first[0] - first[1], (2 * 12.0 + 1 * 20.0) / 3)
