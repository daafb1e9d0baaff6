"""The matching subsample: its closed form against enumeration and simulation, and its place in an evaluation."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margrave.bounds.matching_subsample import Subsampling, mean_deviation
from margrave.data import read_table
from margrave.evaluation import evaluate
from margrave.schema import Schema
from margrave.workload import Workload


@pytest.mark.parametrize("k", [1, 2, 7, 40])
@pytest.mark.parametrize("p", [0.0, 1e-3, 0.2, 0.5, 0.9, 1.0])
def test_the_mean_deviation_by_enumeration(k: int, p: float) -> None:
    mass = [math.comb(k, x) * p**x * (1 - p) ** (k - x) for x in range(k + 1)]
    expected = sum(m * abs(x / k - p) for x, m in enumerate(mass))
    assert mean_deviation(k, np.array([p]))[0] == pytest.approx(expected, abs=1e-12)


def test_many_draws_are_off_as_the_normal_law_says() -> None:
    p = np.array([1e-4, 0.03, 0.5])
    for k in (10**7, 10**10):
        normal = np.sqrt(2 / np.pi * p * (1 - p) / k)
        np.testing.assert_allclose(mean_deviation(k, p), normal, rtol=2e-3)


SIZES = {"a": 3, "b": 4, "c": 2}
SCHEMA = Schema.coded(SIZES)
RNG = np.random.default_rng(0)
COLUMNS = {a: np.minimum(RNG.geometric(0.4, 700) - 1, n - 1) for a, n in SIZES.items()}
WORKLOAD = Workload.of(SCHEMA.domain, {("a", "b"): 2.0, ("c",): 0.5, ("a", "b", "c"): 1.0})


def table(rows: Any) -> Any:
    return read_table(pa.table({a: pa.array(v[rows]) for a, v in COLUMNS.items()}), SCHEMA)


def closed_form() -> Subsampling:
    real = table(np.arange(700))
    found = Subsampling(700)
    for clique, counts in real.count(WORKLOAD.cliques).items():
        found.add(counts, WORKLOAD.weights[clique] / 3.5)
    return found


@pytest.mark.parametrize("k", [5, 60, 700])
def test_the_expected_error_of_a_resampled_table_by_simulation(k: int) -> None:
    """300 resampled tables; six standard errors are a false alarm in 500 million."""
    rng = np.random.default_rng(k)
    real = table(np.arange(700))
    errors = [
        evaluate(real, table(rng.integers(0, 700, k)), WORKLOAD).workload_error for _ in range(300)
    ]
    error = closed_form().error(k)
    assert abs(np.mean(errors) - error) < 6 * np.std(errors) / np.sqrt(300)
    assert abs(np.mean(errors) - closed_form().error(2 * k)) > 6 * np.std(errors) / np.sqrt(
        300
    )  # it would be seen


def test_the_matching_number_of_rows_is_the_least() -> None:
    form = closed_form()
    errors = [form.error(k) for k in range(1, 400)]
    assert all(a >= b - 1e-12 for a, b in pairwise(errors))
    for error in (1.0, 0.3, 0.101, 0.07):
        found = form.matching(error)
        assert found is not None
        assert form.error(found) <= error * (1 + 1e-8)
        assert found == 1 or form.error(found - 1) > error


def test_more_rows_than_there_are_may_be_needed() -> None:
    found = closed_form().matching(closed_form().error(10_000))
    assert found is not None
    assert 700 < found <= 10_000


def test_no_number_matches_what_is_perfect_or_empty() -> None:
    assert closed_form().matching(0.0) is None
    assert Subsampling(0).matching(0.5) is None
    assert Subsampling(0).error(3) == 0.0


def test_rows_all_alike_need_one() -> None:
    form = Subsampling(9)
    form.add(np.array([0, 9]), 1.0)
    assert form.matching(0.0) == 1


def test_an_evaluation_tells_the_price_and_is_marked_not_private() -> None:
    real, half = table(np.arange(700)), table(np.random.default_rng(1).integers(0, 700, 350))
    found = evaluate(real, half, WORKLOAD)
    assert found.matching_rows == closed_form().matching(found.workload_error)
    assert found.matching_share is not None
    assert 0.25 < found.matching_share < 1.0  # it is one draw of 0.5
    assert f"a random {100 * found.matching_share:.3g} % of the real rows" in str(found)
    plain = found.to_dict()
    assert plain["matching_subsample"] == {
        "rows": found.matching_rows,
        "share": found.matching_share,
    }
    assert plain["private"] is False
    assert str(found).startswith("NOT PRIVATE")


def test_nothing_matches_a_table_with_itself() -> None:
    real = table(np.arange(700))
    found = evaluate(real, real, WORKLOAD)
    assert found.matching_rows is found.matching_share is None
    assert "no random sample" in found.equivalent_sample_size()


def test_a_match_of_more_than_ten_times_the_real_rows_is_a_number_of_draws() -> None:
    schema = Schema.coded({"a": 2})
    real, other = (
        read_table(pa.table({"a": [0] * n + [1] * m}), schema) for n, m in ((5, 5), (501, 499))
    )
    found = evaluate(real, other)
    assert found.matching_share is not None
    assert found.matching_share > 10
    words = f"as accurate as {found.matching_rows:,} random draws of the real rows"
    assert found.equivalent_sample_size() == words


def test_cells_of_equal_counts_are_taken_together_and_empty_ones_left_out() -> None:
    form = Subsampling(12)
    form.add(np.array([[3, 3, 0], [0, 6, 0]]), 2.0)
    one, other = mean_deviation(5, np.array([0.25, 0.5]))
    assert form.error(5) == pytest.approx(2 * (2 * one + other))
