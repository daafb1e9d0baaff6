"""Real against synthetic: the figures by hand, and the mark that they are not private."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from margrave.data import read_numbers, read_table
from margrave.errors import DataError, InputError, ReleaseError
from margrave.evaluation import (
    Evaluation,
    Spread,
    best_mixture_error,
    downstream_error,
    evaluate,
    geometry_errors,
    model_errors,
    number_summaries,
    query_errors,
)
from margrave.marginal import QueryFamily
from margrave.provenance import Provenance
from margrave.schema import Categorical, Coded, ColumnSource, Date, Integer, Real, Schema
from margrave.unit import AddRemovePerson
from margrave.workload import Workload
from tests.support import fake_model

SCHEMA = Schema.coded({"a": 2, "b": 2})
DOMAIN = SCHEMA.domain


def table(rows: list[tuple[int, int]]) -> Any:
    a, b = zip(*rows, strict=True) if rows else ((), ())
    return read_table(
        pa.table({"a": pa.array(a, pa.int64()), "b": pa.array(b, pa.int64())}), SCHEMA
    )


REAL = table([(0, 0), (0, 0), (0, 1), (1, 1)])
SYNTHETIC = table([(0, 0), (1, 1)])  # half as many: scaled to four


def test_the_workload_error_by_hand() -> None:
    workload = Workload.of(DOMAIN, {("a",): 3.0, ("a", "b"): 1.0})
    found = evaluate(REAL, SYNTHETIC, workload)
    # shares of (a, b): real .5 .25 0 .25, synthetic .5 0 0 .5; of a: real .75 .25, synthetic .5 .5
    assert found.errors == {("a",): pytest.approx(0.5), ("a", "b"): pytest.approx(0.5)}
    assert found.workload_error == pytest.approx((3 * 0.5 + 1 * 0.5) / 4)
    assert found.one_way == {"a": pytest.approx(0.25), "b": pytest.approx(0.0)}
    assert found.two_way == {("a", "b"): pytest.approx(0.25)}
    assert (found.real_rows, found.synthetic_rows) == (4, 2)
    summary = found.columns[0]
    assert (summary.name, summary.value) == ("a", "0")
    assert (summary.real_share, summary.synthetic_share) == (0.75, 0.5)


def test_a_table_is_no_way_from_itself() -> None:
    found = evaluate(REAL, REAL)
    assert found.workload_error == 0
    assert found.mean_one_way == found.mean_two_way == 0
    assert list(found.errors) == [("a", "b")]  # all three-way marginals of two columns


def test_the_furthest_comes_first() -> None:
    found = evaluate(REAL, table([(1, 0)]), Workload.of(DOMAIN, [("a",), ("b",)]))
    assert [c for c, _ in found.worst()] == [("a",), ("b",)]
    assert found.worst(1) == [(("a",), pytest.approx(1.5))]


def test_a_table_without_rows_is_refused_on_either_side() -> None:
    with pytest.raises(InputError, match="The real table has no rows"):
        evaluate(table([]), SYNTHETIC)
    with pytest.raises(InputError, match="The synthetic table has no rows"):
        evaluate(REAL, table([]))


DATED = Schema(
    [
        Date("seen", date(2022, 1, 1), date(2022, 12, 31), bins=4),
        Categorical("ward", ["a", "b"]),
        Integer("stay", 0, 3),
    ]
)


def dated(pattern: str, wards: str = "ab") -> pa.Table:
    """Rows with a date and a ward."""
    days = [date(2022, 1, 1) + timedelta(days=i) for i in range(300)]
    wards = [wards[i % len(wards)] for i in range(300)]
    return pa.table(
        {
            "seen": [d.strftime(pattern) for d in days],
            "ward": wards,
            "stay": [i % 4 for i in range(300)],
        }
    )


def test_a_schema_beside_a_release_says_how_its_cells_are_read() -> None:
    release = fake_model.release(schema=DATED)
    found = evaluate(dated("%Y-%m-%d"), release, seed=1)
    with pytest.raises(
        DataError, match=r"^The rows do not fit the schema of the release\. Column"
    ) as e:
        evaluate(dated("%d/%m/%Y"), release)
    assert "If seen is only written in another way: margrave schema of RELEASE" in str(e.value)
    day, *others = DATED.columns
    other = replace(DATED, columns=[replace(day, format="%d/%m/%Y"), *others], ignore=["id"])
    rows = dated("%d/%m/%Y").append_column("id", pa.array(range(300)))
    again = evaluate(rows, release, schema=other, seed=1)
    assert again.to_dict() == found.to_dict()
    assert [c.name for c in again.columns] == ["seen", "ward", "stay"]


def test_rows_that_are_not_those_of_a_release_are_named_as_such() -> None:
    release = fake_model.release(schema=DATED)
    for rows, words in (
        (pa.table({"ward": ["a"], "stay": [1], "sex": ["f"]}),
         'The table has no column "seen", which the release has.'),
        (pa.table({"town": ["a"]}), "No column of the table has a name that the release knows."),
    ):  # fmt: skip
        with pytest.raises(
            DataError, match=r"^These are not the rows that the release was made"
        ) as e:
            evaluate(rows, release)
        assert words in str(e.value)
        assert "schema" not in str(e.value)
    for compare in (
        evaluate,
        lambda r, m: model_errors(r, m, QueryFamily.cells(DATED.domain, [("stay",)])),
    ):
        with pytest.raises(DataError, match=r"^The rows do not fit the schema") as e:
            compare(dated("%Y-%m-%d", "abc"), release)  # type: ignore[operator]
        words = "Column 'ward': 100 values outside the schema, and its policy is 'refuse'."
        assert words in str(e.value)
        assert "Widen" not in str(e.value)
        assert "written in another way" not in str(e.value)
    with pytest.raises(DataError, match=r"nowhere\.csv"):
        evaluate("nowhere.csv", release)


def test_a_release_is_compared_by_its_records() -> None:
    release = fake_model.release()
    rng = np.random.default_rng(0)
    frame = pa.table({c.name: rng.integers(0, c.size, 3000) for c in release.schema.columns})
    found = evaluate(read_table(frame, release.schema), release)
    assert found.synthetic_rows == 300
    assert 0.1 < found.workload_error < 2


def three_columns(n: int = 500) -> pa.Table:
    """Rows for the schema of the release that is made up for tests."""
    rng = np.random.default_rng(0)
    return pa.table({c.name: rng.integers(0, c.size, n) for c in fake_model.SCHEMA.columns})


def test_a_seed_repeats_an_evaluation_and_rows_are_as_asked() -> None:
    release, real = fake_model.release(), read_table(three_columns(), fake_model.SCHEMA)
    found = evaluate(real, release, seed=3)
    assert found.to_dict() == evaluate(real, release, seed=3).to_dict()
    assert found.to_dict() != evaluate(real, release, seed=4).to_dict()
    assert found.to_dict() != evaluate(real, release).to_dict()
    assert evaluate(real, release, rows=40).synthetic_rows == 40
    queries = QueryFamily.cells(release.schema.domain, [("age", "sex")])
    first, again = (query_errors(real, release, queries, rows=70, seed=3) for _ in range(2))
    assert first == again != query_errors(real, release, queries, rows=70, seed=4)


def test_a_side_that_was_not_read_is_read_with_the_schema_of_the_other() -> None:
    release, frame = fake_model.release(), three_columns()
    real = read_table(frame, release.schema)
    expected = evaluate(real, release, seed=3).to_dict()
    assert evaluate(frame, release, seed=3).to_dict() == expected
    for drawn in (release.sample(seed=3), release.codes(seed=3)):
        assert evaluate(real, drawn).to_dict() == expected
    queries = QueryFamily.cells(release.schema.domain, [("age", "sex")])
    assert model_errors(frame, release, queries) == model_errors(real, release.model, queries)
    assert query_errors(real, release.sample(seed=3), queries) == query_errors(
        frame, release, queries, seed=3
    )


def test_a_list_of_marginals_is_a_workload() -> None:
    release, real = fake_model.release(), read_table(three_columns(), fake_model.SCHEMA)
    pairs = [("sex", "age"), ("job",)]
    assert list(evaluate(real, release, pairs).errors) == [("age", "sex"), ("job",)]
    weights = {("age", "sex"): 3.0, ("job",): 1.0}
    weighted = Workload.of(real.domain, weights)
    assert (
        evaluate(real, release, weights, seed=1).to_dict()
        == evaluate(real, release, weighted, seed=1).to_dict()
    )


@pytest.mark.parametrize(
    ("compare", "told"),
    [
        (
            lambda real, frame, r, q: evaluate(frame, frame),
            r"is a Table, .* Give margrave\.read_table\(",
        ),
        (
            lambda real, frame, r, q: evaluate(r, real),
            r"evaluate\(real, release\)",
        ),
        (
            lambda real, frame, r, q: evaluate("visits.MARGRAVE", frame),
            r"evaluate\(real, release\)",
        ),
        (lambda real, frame, r, q: model_errors(frame, r.model, q), r"Give margrave\.read_table\("),
        (
            lambda real, frame, r, q: geometry_errors(frame, r.codes()),
            r"Give margrave\.read_table\(",
        ),
        (
            lambda real, frame, r, q: geometry_errors(real, r),
            r"is a Release, .* Give release\.codes",
        ),
        (
            lambda real, frame, r, q: geometry_errors(real, frame),
            r"is a Table, .*synthetic_codes\(rows, schema\)",
        ),
        (
            lambda real, frame, r, q: downstream_error(r, r.codes(), "age"),
            r"to train on is a Release",
        ),
        (lambda real, frame, r, q: best_mixture_error(frame, None), r"Give margrave\.read_table\("),
        (
            lambda real, frame, r, q: evaluate(real, real, seed=1),
            "rows and seed are about records drawn",
        ),
        (
            lambda real, frame, r, q: query_errors(real, frame, q, rows=9),
            "rows and seed are about records drawn",
        ),
        (lambda real, frame, r, q: evaluate(real, r, rows=2.5), "2.5 rows cannot be drawn"),
        (lambda real, frame, r, q: evaluate(real, r, seed=-1), "-1 is not a seed"),
        (
            lambda real, frame, r, q: evaluate(real, r, "all-3way"),
            "workload cannot be made of a str",
        ),
        (
            lambda real, frame, r, q: evaluate(real, r, queries=[("age",)]),
            r"QueryFamily\.cells\(schema.domain",
        ),
        (
            lambda real, frame, r, q: query_errors(real, r, [("age",)]),
            r"QueryFamily\.cells\(schema.domain",
        ),
        (
            lambda real, frame, r, q: model_errors(real, r.sample(), q),
            r"Table is not a model.*release\.model",
        ),
    ],
)
def test_what_cannot_be_compared_is_told_in_words(compare: Any, told: str) -> None:
    release, frame = fake_model.release(), three_columns()
    queries = QueryFamily.cells(release.schema.domain, [("age", "sex")])
    with pytest.raises(InputError, match=told):
        compare(read_table(frame, release.schema), frame, release, queries)


def test_large_workloads_are_counted_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluate(REAL, SYNTHETIC).to_dict()
    monkeypatch.setattr("margrave.evaluation.queries.BATCH_CELLS", 1)
    assert evaluate(REAL, SYNTHETIC).to_dict() == whole


def test_two_schemas_do_not_compare() -> None:
    other = read_table(pa.table({"a": [0], "c": [0]}), Schema.coded({"a": 2, "c": 2}))
    with pytest.raises(InputError, match="same schema"):
        evaluate(REAL, other)


def test_a_marginal_too_large_is_named() -> None:
    schema = Schema.coded({"a": 20_000, "b": 20_000})
    wide = read_table(pa.table({"a": [0], "b": [0]}), schema)
    with pytest.raises(InputError, match="a, b has 400000000 cells"):
        evaluate(wide, wide)


def test_it_says_that_it_is_not_private() -> None:
    found = evaluate(REAL, SYNTHETIC)
    assert Evaluation.private is False
    assert found.to_dict()["private"] is False
    assert found.to_dict()["warning"].startswith("NOT PRIVATE")
    assert str(found).startswith("NOT PRIVATE")


def test_a_release_does_not_take_it() -> None:
    with pytest.raises(ReleaseError, match="plain data"):
        Provenance("fake", {"evaluation": evaluate(REAL, SYNTHETIC)})
    with pytest.raises(ReleaseError, match="has a Provenance"):
        replace(fake_model.release(), provenance={"evaluation": evaluate(REAL, SYNTHETIC)})


def test_means_and_quartiles_show_what_shares_of_bins_hide(tmp_path: Path) -> None:
    """All rows lie in the first bin, and so do the synthetic ones: no total variation, and four times the mean."""
    columns = [
        Real("cost", 0, 100, bins=2, missing=True),
        Integer("n", 0, 9),
        Categorical("w", ["a"]),
    ]
    schema = Schema(columns, person="p")
    rows = {
        "w": ["a"] * 4,
        "n": ["1", "2", "3", "12"],
        "cost": ["5", "5", "", "x"],
        "p": ["1", "2", "3", "4"],
    }
    drawn = pa.table({"cost": [10.0, 20.0, 30.0, None], "n": [2, 2, 2, 2], "w": ["a"] * 4})
    pyarrow.csv.write_csv(pa.table(rows), tmp_path / "t.csv")
    for real in (pa.table(rows), tmp_path / "t.csv"):
        cost, n = number_summaries(real, drawn, schema)
        assert (cost.real, n.real) == (
            Spread(5, 5, 5, 5),
            Spread(4.5, 1.75, 2.5, 5.25),
        )  # 12 as it is written
        assert (cost.synthetic, n.synthetic) == (Spread(20, 15, 20, 25), Spread(2, 2, 2, 2))
        assert (cost.name, cost.off) == ("cost", 3.0)
    empty = pa.table({**rows, "cost": [""] * 4})
    assert number_summaries(empty, drawn, schema)[0].real is None
    assert number_summaries(empty, drawn, schema)[0].off is None


def test_numbers_that_stand_for_missing_are_no_numbers() -> None:
    schema = Schema(
        [Integer("age", 0, 99, bins=10, missing=True, outside="missing"), Integer("size", 0, 9)]
    )
    frame = pa.table({"age": [10, 20, -9, None], "size": [1, 2, 3, 99]})
    found = read_numbers(frame, schema)
    assert found["age"].tolist() == [10, 20]
    assert found["size"].tolist() == [1, 2, 3, 99]  # moved to the last cell, which is worth seeing


@pytest.mark.parametrize("low", [0, -20])
def test_missing_value_codes_are_no_numbers(low: int) -> None:
    columns = [Integer("age", low, 99, bins=9, missing=True), Real("pay", low, 99, missing=True)]
    sources = {c.name: ColumnSource(missing_codes=("-9",)) for c in columns}
    frame = pa.table({"age": [10, 20, -9, None], "pay": ["1.5", "-9.0", "", "-9"]})
    found = number_summaries(frame, frame, Schema(columns, sources=sources))
    assert [n.real for n in found] == [Spread(15, 12.5, 15, 17.5), Spread(1.5, 1.5, 1.5, 1.5)]


def test_an_evaluation_of_rows_has_their_numbers() -> None:
    schema = Schema([Integer("age", 0, 4), Coded("sex", 2), Real("job", 0, 3, bins=3)])
    release, frame = fake_model.release(schema=schema), three_columns()
    found = evaluate(frame, release, seed=3)
    ages = release.sample(seed=3)["age"].to_numpy()
    assert [n.name for n in found.numbers] == ["age", "job"]
    assert found.numbers[0].synthetic == Spread.of(ages)
    assert found.to_dict()["numbers"][0]["synthetic"]["mean"] == ages.mean()
    assert f"mean of age: {found.numbers[0].real.mean:.6g} real" in str(found)  # type: ignore[union-attr]
    assert evaluate(read_table(frame, schema), release, seed=3).numbers == ()


def test_counts_and_values_are_of_one_draw_without_a_seed() -> None:
    schema = Schema([Integer("age", 0, 4), Coded("sex", 2), Real("job", 0, 3, bins=3)])
    found = evaluate(three_columns(), fake_model.release(schema=schema))
    of_counts = float(found.pictures.shares["age"][1][:5] @ np.arange(5))
    spread = found.numbers[0].synthetic
    assert spread is not None
    assert spread.mean == pytest.approx(of_counts)


def test_the_cut_of_persons_rows_is_not_put_down_to_noise() -> None:
    plain = fake_model.release()
    real = read_table(plain.sample(50, seed=1), plain.schema)
    assert evaluate(real, plain).note == ""
    assert "note" not in evaluate(real, plain).to_dict()
    cut = replace(plain, account=replace(plain.account, unit=AddRemovePerson(5)))
    found = evaluate(real, cut)
    assert "of at most 5 rows of each person. Further rows were left out at random" in found.note
    assert "is that cut and not noise" in found.note
    assert found.note in str(found)
    assert found.to_dict()["note"] == found.note
    persons = replace(plain.schema, person="patient")
    rows = plain.sample(50, seed=1)
    of_persons = read_table(
        rows.append_column("patient", pa.array([f"P{i // 2}" for i in range(50)])), persons
    )
    note = evaluate(of_persons, rows).note  # a table does not tell
    assert "may be that cut" in note
    assert note.endswith("Give the .margrave release in place of the table to find out.")
    assert (
        evaluate(of_persons, replace(plain, schema=persons)).note == ""
    )  # this release does: its unit is a row
