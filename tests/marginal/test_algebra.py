"""The algebra of marginals against plain loops: axes, lattice, interactions, simplex, repeated answers."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import logsumexp

from margrave.errors import InputError
from margrave.marginal import lattice, project_array
from margrave.marginal.axes import expand_axes, logsumexp_onto, multiply_along
from margrave.marginal.lattice import marginals_of
from margrave.marginal.residual import degrees_of_freedom, reconstruct, residual, subsets
from margrave.marginal.simplex import clip_and_rescale, project_to_simplex, rake, shares_within
from margrave.models.precision_means import PrecisionMeans, column_mean
from margrave.types import Clique, FloatArray

NAMES = ("a", "b", "c", "d")
shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def table_of(sizes: list[int], seed: int = 0) -> tuple[Clique, FloatArray]:
    return NAMES[: len(sizes)], np.random.default_rng(seed).random(sizes)


# Axes.


@settings(max_examples=40, derandomize=True, deadline=None)
@given(sizes=shapes)
def test_axes_go_by_name(sizes: list[int]) -> None:
    clique, table = table_of(sizes)
    for k in range(len(clique) + 1):
        for onto in permutations(clique, k):
            equation = f"{''.join(clique)}->{''.join(onto)}"
            expected = np.einsum(equation, table)
            found = project_array(table, clique, onto)
            assert_allclose(found, expected)
            assert_allclose(
                expand_axes(found, onto, clique) * np.ones(table.shape),
                np.einsum(f"{''.join(onto)},{''.join(clique)}->{''.join(clique)}", found, np.ones(table.shape)),
            )  # fmt: skip


def test_axes_before_the_named_ones_stay_first() -> None:
    batch = np.arange(12.0).reshape(2, 3, 2)
    assert expand_axes(batch, ("a", "b"), ("b", "c", "a")).shape == (2, 2, 1, 3)
    assert np.array_equal(
        expand_axes(batch, ("a", "b"), ("b", "c", "a"))[:, :, 0], batch.transpose(0, 2, 1)
    )


def test_a_sum_onto_other_attributes_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be summed down"):
        project_array(np.ones((2, 2)), ("a", "b"), ("a", "c"))


def test_log_sums_hold_zeros_and_values_that_overflow() -> None:
    table = np.random.default_rng(1).normal(size=(3, 2, 4)) * 900
    table[1] = -np.inf
    found = logsumexp_onto(table, ("a", "b", "c"), ("a",))
    assert_allclose(found, logsumexp(table, axis=(1, 2)))
    assert found[1] == -np.inf
    assert logsumexp_onto(table, ("a", "b", "c"), ("a", "b", "c")) is table


def test_factors_of_other_attributes_are_ignored() -> None:
    table = np.random.default_rng(2).random((2, 3))
    factors = {"b": np.array([1.0, 2.0, 3.0]), "z": np.array([9.0])}
    assert_allclose(multiply_along(table, ("a", "b"), factors), table * factors["b"])


# Lattice.


@settings(max_examples=60, derandomize=True, deadline=None)
@given(sizes=shapes, direct=st.integers(0, 20), whole=st.booleans(), data=st.data())
def test_many_marginals_are_those_of_single_sums(
    sizes: list[int], direct: int, whole: bool, data: st.DataObject
) -> None:
    clique, table = table_of(sizes)
    counts = np.rint(table * 100).astype(np.int64) if whole else table
    orders = [o for k in range(len(clique) + 1) for o in permutations(clique, k)]
    asked = data.draw(st.lists(st.sampled_from(orders), max_size=12))
    before = counts.copy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lattice, "MAX_DIRECT_CELLS", direct)
        found = marginals_of({clique: counts}, asked)
    assert list(found) == list(dict.fromkeys(asked))
    for own, values in found.items():
        assert values.dtype == counts.dtype
        assert_allclose(values, project_array(counts, clique, own), rtol=1e-12)
        values += 1  # an array of its own
    assert np.array_equal(counts, before)


def test_each_marginal_comes_from_the_smallest_table() -> None:
    large, small = np.ones((4, 5, 6)), 2 * np.ones((5, 6))
    found = marginals_of({("a", "b", "c"): large, ("b", "c"): small}, [("b",), ("a",), ("b", "c")])
    assert found[("b",)].tolist() == [12.0] * 5
    assert found[("a",)].tolist() == [30.0] * 4
    assert found["b", "c"].tolist() == small.tolist()


# Interactions.


@settings(max_examples=40, derandomize=True, deadline=None)
@given(sizes=shapes)
def test_interactions_put_together_are_the_marginal(sizes: list[int]) -> None:
    clique, table = table_of(sizes)
    parts = {s: residual(project_array(table, clique, s)) for s in subsets(clique)}
    assert_allclose(reconstruct(parts, clique, table.shape), table)
    assert sum(degrees_of_freedom(p.shape) for p in parts.values()) == table.size
    for one, other in combinations(parts, 2):
        spread = [reconstruct({s: parts[s]}, clique, table.shape) for s in (one, other)]
        assert abs(float((spread[0] * spread[1]).sum())) < 1e-12
    for part in parts.values():
        for axis in range(part.ndim):
            assert_allclose(part.sum(axis=axis), 0.0, atol=1e-12)


# Simplex.


@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.lists(st.floats(-3, 3), min_size=2, max_size=6))
def test_the_projection_is_the_nearest_distribution(values: list[float]) -> None:
    y = np.array(values)
    found = project_to_simplex(y)
    solved = minimize(
        lambda x: float(((x - y) ** 2).sum()),
        np.full(len(y), 1 / len(y)),
        jac=lambda x: 2 * (x - y),
        bounds=[(0, None)] * len(y),
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        method="SLSQP",
    )
    assert found.min() >= 0.0
    assert found.sum() == pytest.approx(1.0)
    assert ((found - y) ** 2).sum() <= solved.fun + 1e-9


def test_the_positive_part_and_shares_of_groups() -> None:
    assert clip_and_rescale(np.array([-1.0, -2.0])).tolist() == [0.5, 0.5]
    assert clip_and_rescale(np.array([1e308, 1e308, -1.0])).tolist() == [0.5, 0.5, 0.0]
    groups = np.array([1, 0, 1, 2, 2, 2])
    shares = shares_within(np.array([3.0, 7.0, 1.0, -1.0, 0.0, -5.0]), groups)
    assert_allclose(shares, [0.75, 1.0, 0.25, 1 / 3, 1 / 3, 1 / 3])


def test_raking_reaches_the_columns_and_keeps_odds_ratios_and_zeros() -> None:
    table = np.array([[4.0, 2.0, 0.0], [1.0, 3.0, 5.0]])
    columns = {"a": np.array([10.0, 20.0]), "b": np.array([6.0, 9.0, 15.0])}
    found = rake(table, ("a", "b"), columns, sweeps=200)
    assert_allclose(found.sum(axis=1), columns["a"], rtol=1e-6)
    assert_allclose(found.sum(axis=0), columns["b"], rtol=1e-6)
    odds = [t[0, 0] * t[1, 1] / (t[0, 1] * t[1, 0]) for t in (table, found)]
    assert odds[0] == pytest.approx(odds[1])
    assert found[0, 2] == 0.0
    assert table[0, 0] == 4.0


# Repeated answers.


def test_repeated_answers_are_averaged_by_precision() -> None:
    means = PrecisionMeans[str]()
    for key, value, variance in (("x", 4.0, 1.0), ("y", 1.0, 2.0), ("x", 8.0, 3.0)):
        means.add(key, np.array([value / variance]), np.array([1 / variance]))
    means.add_cell("z", (2,), (1,), 5.0, 2.0)
    assert [key for key, *_ in means] == ["x", "y", "z"]
    found = {key: (mean.tolist(), precision.tolist()) for key, mean, precision in means}
    assert found["x"] == ([pytest.approx(5.0)], [pytest.approx(4 / 3)])
    assert found["z"] == ([0.0, 5.0], [0.0, 0.25])
    means.move_to_end("x")
    assert [key for key, *_ in means][-1] == "x"


def test_a_column_from_several_marginals_has_the_least_variance() -> None:
    """The weights of least squares: a pair's sums over four codes have four times the variance."""
    one, pair = np.array([10.0, 20.0]), np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 5.0, 5.0, 5.0]])
    mean, precision = column_mean(
        "a",
        [(("a",), one, np.full(2, 2.0)), (("a", "b"), pair, np.full((2, 4), 1.0))],
    )
    assert_allclose(mean, (one / 4 + pair.sum(axis=1) / 4) / (1 / 4 + 1 / 4))
    assert_allclose(precision, 0.5)
    unknown = np.array([[np.inf, 1.0], [1.0, 1.0]])
    mean, precision = column_mean("a", [(("a", "b"), pair[:, :2], unknown)])
    assert_allclose(precision, [0.0, 0.5])
    assert_allclose(mean, [0.0, 10.0])
