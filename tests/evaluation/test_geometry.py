"""The errors that see the order of codes: against brute force over rows, closed forms, and planted differences."""

from __future__ import annotations

import json
import re
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

from margrave.cli.main import run
from margrave.data import MemoryTable
from margrave.domain import Codes
from margrave.errors import InputError
from margrave.evaluation import (
    GeometryErrors,
    counting_error,
    covariance_error,
    downstream_error,
    geometry_errors,
    random_queries,
    sliced_wasserstein,
    thresholding_error,
)
from margrave.evaluation.points import Points
from margrave.schema import Categorical, Coded, Integer, Schema

SCHEMA = Schema.coded({"a": 5, "b": 2, "c": 7, "d": 4})
DOMAIN = SCHEMA.domain


def records(rows: int, seed: int, schema: Schema = SCHEMA) -> Codes:
    """Columns that hang together, and differently for each seed."""
    rng = np.random.default_rng(seed)
    level = rng.random(rows)
    columns = {}
    for column in schema.columns:
        noisy = level * rng.uniform(0.3, 1.0) + 0.5 * rng.random(rows)
        columns[column.name] = np.minimum((noisy * column.size).astype(int), column.size - 1)
    return Codes.of(schema.domain, columns)


REAL, OTHER = records(700, 1), records(450, 2)
TABLE = MemoryTable(SCHEMA, REAL)


def embedded(codes: Codes) -> Any:
    """Every row in the unit cube, one column per attribute."""
    sizes = np.array(codes.domain.sizes)
    return ((2 * codes.values.T.astype(float) + 1) / (2 * sizes)).astype(float)


def test_the_covariance_error_is_that_of_the_rows() -> None:
    real, other = (np.cov(embedded(c).T, bias=True) for c in (REAL, OTHER))
    expected = np.linalg.norm(real - other), np.linalg.norm(other)
    assert expected[0] > 0.05 * expected[1]
    assert covariance_error(TABLE, OTHER) == pytest.approx(expected)
    assert covariance_error(TABLE, OTHER).relative == pytest.approx(expected[0] / expected[1])


@pytest.mark.parametrize("clique", list(combinations(DOMAIN, 2)))
def test_sliced_wasserstein_is_that_of_sorted_rows(clique: tuple[str, str]) -> None:
    """Rows of equal number: W1 along a direction is the mean distance of the sorted projections."""
    other = records(len(REAL), 3)
    rows = [embedded(c)[:, [DOMAIN.index(a) for a in clique]] for c in (REAL, other)]
    angles = (np.arange(100) + 0.5) * np.pi / 100
    along = [np.sort(r @ np.array([np.cos(angles), np.sin(angles)]), axis=0) for r in rows]
    expected = np.abs(along[0] - along[1]).mean()
    counts = [TABLE.count([clique])[clique], MemoryTable(SCHEMA, other).count([clique])[clique]]
    assert sliced_wasserstein(Points.of(*counts)) == pytest.approx(expected, rel=1e-12)
    # random directions, as in the paper, have the same mean
    angles = np.random.default_rng(0).uniform(0, np.pi, 4000)
    along = [np.sort(r @ np.array([np.cos(angles), np.sin(angles)]), axis=0) for r in rows]
    spread = np.abs(along[0] - along[1]).mean(axis=0)
    assert sliced_wasserstein(Points.of(*counts)) == pytest.approx(
        spread.mean(), abs=5 * spread.std() / 4000**0.5
    )


def test_sliced_wasserstein_of_a_shift() -> None:
    """Everything moved by a vector: W1 along a direction is |<vector, direction>|, its mean 2/pi of the length."""
    places = np.random.default_rng(0).random((2, 40))
    moved = places + np.array([[0.3], [-0.4]])
    both = Points(
        np.hstack([places, moved]), np.repeat([1 / 40, 0], 40), np.repeat([0, 1 / 40], 40)
    )
    assert sliced_wasserstein(both) == pytest.approx(0.5 * 2 / np.pi, rel=1e-3)


def test_boxes_and_half_spaces_are_counted_as_rows_are() -> None:
    rng = np.random.default_rng(5)
    boxes = [random_queries._box(TABLE, rng) for _ in range(60)]
    halves = [random_queries._half_space(TABLE, rng) for _ in range(60)]
    rows = [embedded(c) for c in (REAL, OTHER)]
    for box, shares in zip(boxes, random_queries.answers(TABLE, OTHER, boxes), strict=True):
        at = [DOMAIN.index(a) for a in box.clique]
        counted = [
            ((box.lower <= r[:, at]) & (r[:, at] <= box.upper)).all(axis=1).mean() for r in rows
        ]
        assert shares == pytest.approx(counted)
    assert len({h.clique for h in halves}) == 4
    for half, shares in zip(halves, random_queries.answers(TABLE, OTHER, halves), strict=True):
        along = [r[:, [DOMAIN.index(a) for a in half.clique]] @ half.direction for r in rows]
        b = along[0].min() + half.at * np.ptp(along[0])
        assert shares == pytest.approx([float((x + b > 1e-12).mean()) for x in along])
        assert np.linalg.norm(half.direction) == pytest.approx(1)


def test_the_boxes_hold_some_of_the_real_rows_and_not_nearly_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept: list[float] = []
    monkeypatch.setattr(
        random_queries,
        "mean_error",
        lambda found: kept.extend(p for p, _ in found) or random_queries.Ratio(0, 1),
    )
    counting_error(TABLE, OTHER, 300, rng=np.random.default_rng(0))
    assert len(kept) == 300
    assert 0.05 <= min(kept) < 0.1
    assert 0.5 < max(kept) <= 0.95


def test_the_relative_error_by_hand() -> None:
    assert random_queries.mean_error([(0.5, 0.4), (0.25, 0.3)]) == pytest.approx((0.075, 0.375))
    assert random_queries.mean_error([(0.5, 0.4), (0.25, 0.3)]).relative == pytest.approx(
        0.15 / 0.75
    )
    assert random_queries.mean_error([(0.0, 0.0)]).relative == 0.0
    assert random_queries.mean_error([(0.0, 0.1)]).relative == float("inf")


def test_l1_is_twice_the_total_variation() -> None:
    schema = Schema.coded({"a": 2, "b": 2})
    apart = Codes.of(schema.domain, {"a": np.array([0, 0, 1]), "b": np.array([0, 0, 0])})
    away = Codes.of(schema.domain, {"a": np.array([0, 1]), "b": np.array([1, 1])})
    found = geometry_errors(MemoryTable(schema, apart), away)
    assert found.two_way_l1 == pytest.approx(2.0)  # nothing in common
    assert found.downstream is None


def test_a_table_is_no_way_from_itself_and_the_order_of_codes_counts() -> None:
    same = geometry_errors(TABLE, REAL, target="b", test=OTHER)
    assert (same.covariance, same.counting, same.thresholding) == (0, 0, 0)
    assert (same.covariance_error, same.counting_error, same.thresholding_error) == (0, 0, 0)
    assert (same.sliced_wasserstein, same.two_way_l1) == (0, 0)
    assert 0 < (same.downstream or 0) < 0.5
    low, near, far = (
        Codes(DOMAIN, np.vstack([np.full((1, 700), a), REAL.values[1:]])) for a in (0, 1, 4)
    )
    one, two = (geometry_errors(MemoryTable(SCHEMA, low), moved) for moved in (near, far))
    assert (
        one.two_way_l1 == two.two_way_l1 == pytest.approx(1.0)
    )  # three of six pairs have nothing in common
    # a fifth of the way, or four, along a column of three pairs: 2 / pi of that in the mean over directions
    assert one.sliced_wasserstein == pytest.approx(0.2 * 2 / np.pi / 2, rel=1e-3)
    assert two.sliced_wasserstein == pytest.approx(0.8 * 2 / np.pi / 2, rel=1e-3)
    assert GeometryErrors.private is False


def test_the_queries_are_the_same_for_two_synthetic_tables() -> None:
    assert geometry_errors(TABLE, OTHER) == geometry_errors(TABLE, OTHER)
    one, other = (
        geometry_errors(TABLE, OTHER),
        geometry_errors(TABLE, OTHER, rng=np.random.default_rng(1)),
    )
    assert 0 < one.counting_error < one.counting  # a mean of shares, and what it is of their mean
    assert one.covariance_error == covariance_error(TABLE, OTHER).error
    assert other.counting != geometry_errors(TABLE, OTHER).counting
    assert other.two_way_l1 == geometry_errors(TABLE, OTHER).two_way_l1


def test_one_and_two_columns() -> None:
    schema = Schema.coded({"a": 6, "b": 5})
    for names in (["a"], ["a", "b"]):
        some = schema.select(names)
        real, other = records(90, 1, some), records(80, 2, some)
        found = geometry_errors(MemoryTable(some, real), other)
        assert 0 < found.counting < 2
        assert (found.thresholding > 0) == (
            len(names) == 2
        )  # with the paper's sign all rows of one column, or none
        assert (found.two_way_l1 > 0) == (len(names) == 2)


def test_one_value_has_no_box() -> None:
    schema = Schema.coded({"a": 3})
    constant = Codes.of(schema.domain, {"a": np.ones(20, dtype=int)})
    with pytest.raises(InputError, match="Hardly any box"):
        counting_error(MemoryTable(schema, constant), constant, 5, rng=np.random.default_rng(0))
    half = thresholding_error(
        MemoryTable(schema, constant), constant, 5, rng=np.random.default_rng(0)
    )
    assert half.error == half.relative == 0
    assert covariance_error(MemoryTable(schema, constant), constant) == (0, 0)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InputError, match="same schema"):
        geometry_errors(TABLE, records(9, 0, Schema.coded({"a": 5})))
    with pytest.raises(InputError, match="no rows"):
        geometry_errors(TABLE, REAL.take([]))
    with pytest.raises(InputError, match="no rows"):
        geometry_errors(MemoryTable(SCHEMA, REAL.take([])), REAL)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"queries": 0}, "queries is 0. Give a whole number"),
        ({"directions": 0}, "directions is 0. Give a whole number"),
        ({"target": "b"}, "target and test belong together"),
        ({"test": OTHER}, "target and test belong together"),
        ({"regression": True}, "A regression needs a target"),
        ({"target": "z", "test": OTHER, "regression": True}, "no column 'z'"),
    ],
)
def test_arguments_that_would_be_ignored_or_divide_by_zero_are_refused(
    options: dict[str, Any], expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        geometry_errors(TABLE, OTHER, **options)


def test_a_regression_on_categories_without_an_order_is_refused() -> None:
    schema = Schema([Categorical("town", ["x", "y", "z"]), Coded("b", 2)])
    codes = Codes.of(schema.domain, {"town": np.array([0, 1, 2]), "b": np.array([0, 1, 1])})
    with pytest.raises(InputError, match="'town' has categories without an order"):
        geometry_errors(
            MemoryTable(schema, codes), codes, target="town", test=codes, regression=True
        )


def test_a_missing_target_has_no_place_in_a_regression() -> None:
    pytest.importorskip("sklearn")
    schema = Schema([Coded("stay", 5, missing=True), Coded("b", 2)])
    full = Codes.of(schema.domain, {"stay": np.array([1, 1, 1, 1]), "b": np.array([0, 1, 1, 0])})
    some = Codes.of(schema.domain, {"stay": np.array([1, 5, 5, 1]), "b": np.array([0, 1, 1, 0])})
    found = geometry_errors(
        MemoryTable(schema, full), some, target="stay", test=some, regression=True
    )
    assert found.downstream == 0.0


def test_an_infinite_error_fits_in_json() -> None:
    constant = Codes(DOMAIN, np.ones_like(REAL.values))
    found = geometry_errors(TABLE, constant)
    assert found.covariance == float("inf")
    plain = found.to_dict()
    assert plain["covariance"] is None
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_learning_from_the_rows_themselves_beats_noise() -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    rows = np.array([rng.integers(0, k, 600) for k in DOMAIN.sizes])
    rows[2] = np.where(rng.random(600) < 0.8, np.minimum(rows[0] + rows[1], 6), rows[2])
    train, test = Codes(DOMAIN, rows[:, :400]), Codes(DOMAIN, rows[:, 400:])
    shuffled = Codes(DOMAIN, np.array([rng.permutation(row) for row in train.values]))
    assert 0.1 < downstream_error(train, test, "c") < 0.3  # a fifth of the rows say nothing
    for regression in (False, True):
        good = downstream_error(train, test, "c", regression=regression)
        bad = downstream_error(shuffled, test, "c", regression=regression)
        assert good < 0.7 * bad
        assert good == downstream_error(train, test, "c", regression=regression)
    truth = test.column("c").astype(float)
    assert downstream_error(shuffled, test, "c", regression=True) > 0.8 * truth.var()


def test_one_class_is_learnt_as_it_is() -> None:
    ones = Codes(
        DOMAIN,
        np.vstack([REAL.values[:1], np.ones((1, 700), dtype=REAL.values.dtype), REAL.values[2:]]),
    )
    assert downstream_error(ones, REAL, "b") == pytest.approx(float((REAL.column("b") != 1).mean()))


def test_downstream_refuses_what_it_cannot_learn() -> None:
    with pytest.raises(InputError, match="no column besides 'a'"):
        downstream_error(*(records(9, 0, Schema.coded({"a": 5})) for _ in range(2)), "a")
    with pytest.raises(InputError, match="no column 'z'"):
        downstream_error(REAL, OTHER, "z")
    with pytest.raises(InputError, match="no rows"):
        downstream_error(REAL, OTHER.take([]), "a")
    with pytest.raises(InputError, match="same schema"):
        downstream_error(REAL, records(9, 0, Schema.coded({"a": 5})), "a")


def test_without_scikit_learn_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(InputError, match=r"margrave\[evaluate\]"):
        downstream_error(REAL, OTHER, "a")


def test_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("schema.toml")
    for name, codes in (("real.csv", REAL), ("synthetic.csv", OTHER), ("test.csv", records(90, 1))):
        pyarrow.csv.write_csv(SCHEMA.decode(codes, rng=np.random.default_rng(0)), name)
    call = ["evaluate", "real.csv", "synthetic.csv", "-s", "schema.toml"]
    assert run([*call, "--geometry", "--json"]) == 0
    said = capsys.readouterr()
    assert "NOT PRIVATE" in said.err
    assert json.loads(said.out)["geometry"] == geometry_errors(TABLE, OTHER).to_dict()
    assert run([*call, "--target", "b", "--test", "test.csv"]) == 0
    assert "Measures for ordered codes" not in capsys.readouterr().out
    assert run([*call, "--target", "b", "--test", "test.csv", "--geometry"]) == 0
    said = capsys.readouterr()
    assert "SW1 of pairs" in said.out
    assert "of the norm of the synthetic rows' covariances" in said.out
    prediction = said.out.partition("\nPrediction of b, trained on the synthetic rows\n")[2]
    assert re.fullmatch(r"misclassified  0\.\d{4} of the test rows \(0 to 1\)\n", prediction)
    assert run([*call, "--target", "b", "--test", "test.csv", "--regression"]) == 0
    found = capsys.readouterr().out
    assert re.search(r"\nmean squared error  \d\.\d{4} in squared codes\n$", found)
    assert run([*call, "--target", "b"]) == 2
    assert run([*call, "--target", "z", "--test", "test.csv"]) == 2
    assert "z" in capsys.readouterr().err


def test_a_number_as_target_has_a_hint_of_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    Schema([Integer("age", 0, 9), Integer("ill", 0, 1)]).save("schema.toml")
    Path("r.csv").write_text("age,ill\n" + "".join(f"{i % 10},{i % 2}\n" for i in range(60)))
    call = ["evaluate", "r.csv", "r.csv", "-s", "schema.toml", "--test", "r.csv"]
    for more, hinted in ((["age"], True), (["age", "--regression"], False), (["ill"], False)):
        assert run([*call, "--target", *more]) == 0
        out = " ".join(capsys.readouterr().out.split())
        hint = "age is a number, and a row counts as misclassified if its bin is another."
        assert (hint in out) == hinted


def test_the_command_line_refuses_a_regression_without_a_number_before_it_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Schema([Categorical("town", ["x", "y", "z"]), Coded("b", 2)]).save("schema.toml")
    call = ["evaluate", "no.csv", "nor.csv", "-s", "schema.toml", "--regression"]
    assert run(call) == 2
    assert "Give --target and --test, or leave --regression out." in capsys.readouterr().err
    assert run([*call, "--target", "town", "--test", "not.csv"]) == 2
    assert "'town', whose categories have no order" in capsys.readouterr().err
