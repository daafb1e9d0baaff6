"""Drafting with values read off the rows: it fits its own rows, and is marked key by key."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from margrave import profiling
from margrave.errors import SchemaError
from margrave.profiling import check_table
from margrave.profiling.distinct_numbers import DistinctNumbers
from margrave.profiling.draft import draft as draft_either_way
from margrave.profiling.rounding import rounded_outwards
from margrave.profiling.sentinels import sentinels
from margrave.schema import Date, Integer, Learn, Real, Schema, Timestamp

draft = partial(draft_either_way, read=True)
draft_schema = partial(profiling.draft_schema, read=True)


def a_table(rows: int = 400) -> pa.Table:
    rng = np.random.default_rng(3)
    start = datetime(2020, 3, 5, 7)
    return pa.table(
        {
            "id": np.arange(rows) + 1000,
            "name": [f"person {i} of the town" for i in range(rows)],
            "age": rng.integers(18, 88, rows),
            "month": rng.integers(1, 13, rows),
            "gain": np.where(rng.random(rows) < 0.7, 0, rng.integers(100, 99_999, rows)),
            "price": np.round(rng.random(rows) * 40, 2),
            "weight": pa.array([None if i % 9 == 0 else float(i % 50) for i in range(rows)]),
            "sex": rng.choice(["female", "male"], rows),
            "zip": [f"0{i % 30:04d}" for i in range(rows)],
            "born": [
                date(1950, 1, 2) + timedelta(days=int(d)) for d in rng.integers(0, 9000, rows)
            ],
            "seen": [start + timedelta(hours=int(h)) for h in rng.integers(0, 500, rows)],
            "ok": rng.random(rows) < 0.5,
            "answer": rng.choice(["yes", "no", "NA"], rows),
            "street": [f"street {i % 150}" for i in range(rows)],
            "empty": pa.nulls(rows),
        }
    )


def test_kinds_bounds_and_states() -> None:
    table = a_table()
    schema = draft(table)
    kinds = {c.name: c.kind for c in schema.columns}
    assert kinds == {
        "age": "integer", "month": "integer", "gain": "integer", "price": "real", "weight": "integer",
        "sex": "categorical", "zip": "categorical", "born": "date", "seen": "timestamp", "ok": "boolean",
        "seen.hour": "hour", "seen.weekday": "weekday",
        "answer": "categorical", "street": "categorical",
    }  # fmt: skip
    assert schema.draft
    assert schema.ignore == ("id", "name", "empty")
    by = {c.name: c for c in schema.columns}
    assert (by["age"].low, by["age"].high) == (15, 90)  # type: ignore[attr-defined]
    assert (by["month"].size, by["weight"].missing) == (12, True)
    assert by["gain"].atoms == (0,)  # type: ignore[attr-defined]
    assert (by["price"].decimals, by["price"].low) == (2, 0.0)  # type: ignore[attr-defined]
    assert (by["born"].low, by["born"].high.month, by["born"].high.day) == (
        date(1950, 1, 1),
        12,
        31,
    )  # type: ignore[attr-defined]
    assert by["seen"].unit == "hour"  # type: ignore[attr-defined]
    assert by["answer"].labels() == ["no", "yes", "(missing)"]
    assert by["street"].size == Learn.max_categories + 1
    assert by["street"].outside == "other"
    assert schema.check(table).passed


def test_text_columns_are_drafted_as_typed_ones_are() -> None:
    table = a_table()
    as_text = {
        n: [None if v is None else str(v) for v in table[n].to_pylist()] for n in table.column_names
    }
    assert draft(pa.table(as_text)) == draft(table)


def test_the_file_says_what_must_be_checked() -> None:
    text = draft(a_table()).to_toml()
    head, _, rest = text.partition("[schema]\n")
    head = head.replace("\n# ", " ")
    assert "A DRAFT, made from the rows" in head
    assert "take the key out of read" in head
    assert "'id' (it numbers the rows)" in head
    assert "'name' (nearly every row has a text of its own" in head
    assert "'empty' (it has no values)" in head
    assert 'read = ["low", "high", "decimals", "missing"]' in rest
    assert "draft = " not in rest
    assert "# Are low and high public?" in rest
    assert Schema.from_toml(text) == draft(a_table())


def test_a_query_is_not_run_once_a_column() -> None:
    """Forty columns in three runs of 16 at most, and the same draft as of the rows themselves."""
    rows = pa.table({f"c{i:02d}": [f"{i} {k % 3}" for k in range(60)] for i in range(40)})
    connection = duckdb.connect()
    connection.register("held", rows)
    connection.execute("create table kept as select * from held")
    seen: list[str] = []

    def look(text: str) -> bool:
        seen.append(text)
        return True

    connection.create_function("look", look, ["VARCHAR"], "BOOLEAN", side_effects=True)
    query = connection.sql("select * from kept where look(c00)")
    assert draft(query) == draft(rows)
    assert len(seen) == 3 * 60


def test_rare_texts_of_a_wide_column_do_not_enter() -> None:
    texts = [f"t{i % 150}" for i in range(1000)] + ["CANARY"]
    assert "CANARY" not in draft(pa.table({"x": texts})).to_toml()


def test_no_usable_column_is_an_error() -> None:
    with pytest.raises(SchemaError, match="Column 1: it has no values"):
        draft(pa.table({"x": pa.nulls(3)}))


def test_one_value_and_odd_values() -> None:
    schema = draft(pa.table({"a": ["7"] * 30, "b": [0.5] * 30, "c": ["2020-01-01"] * 30}))
    assert [c.kind for c in schema.columns] == ["integer", "real", "date"]
    assert schema.columns[0].size == 1


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    low=st.decimals(-(10**9), 10**9, places=3),
    width=st.decimals(0, 10**9, places=3),
)
def test_bounds_lie_outside_and_not_far(low: Decimal, width: Decimal) -> None:
    down, up = rounded_outwards(low, low + width)
    assert down <= low <= low + width <= up
    if width:
        assert up - down <= width * Decimal("1.2")


cells = (
    st.text(max_size=5)
    | st.integers().map(str)
    | st.floats().map(repr)
    | st.dates().map(str)
    | st.none()
)


@example(values=["1E20"])
@settings(max_examples=80, derandomize=True, deadline=None)
@given(values=st.lists(cells, min_size=1, max_size=40))
def test_any_column_is_drafted_into_one_that_fits_it(values: list[str | None]) -> None:
    table = pa.table({"x": pa.array(values, pa.string()), "y": ["1"] * len(values)})
    schema = draft(table)
    assert schema.preflight(table).passed
    for column in schema.columns:
        found = schema.preflight(table).columns[schema.domain.index(column.name)]
        if isinstance(column, Integer | Real | Date | Timestamp):
            assert found.outside == 0
    assert Schema.from_toml(schema.to_toml()) == schema


def test_identifiers_that_repeat_are_not_listed_and_name_persons() -> None:
    rng = np.random.default_rng(4)
    who = rng.integers(0, 60, 400)
    table = pa.table(
        {
            "visit_id": [f"V{i:06d}" for i in rng.permutation(400)],
            "patient_id": [f"P{7919 * i % 10**8:08d}" for i in who],
            "clinic": [f"{i % 25:05d}" for i in range(400)],
            "insurer": pa.array(1000 + who),
            "MemberNo": pa.array(170_000 + 13 * who),
            "income": pa.array(20_000 + 37 * who),
        }
    )
    schema = draft(table)
    assert schema.person == "patient_id"
    assert schema.ignore == ("visit_id", "MemberNo")
    text = schema.to_toml()
    assert 'person = "patient_id"' in text.splitlines()
    assert "'patient_id' seems to say whose row it is" in schema.remarks[""]
    assert not any(f'"P{7919 * i % 10**8:08d}"' in text for i in who)
    assert schema.remarks[""].count("Left out") == 2
    assert Schema.from_toml(text) == schema
    assert schema.check(table).passed
    assert "person =" not in draft(a_table()).to_toml()


def test_free_text_is_not_listed() -> None:
    notes = [f"The patient came in at {i % 60} with pains and left again" for i in range(400)]
    jobs = [f"nurse of the {i % 60}th ward" for i in range(400)]
    replies = ["I agree with all that has been said so far"] * 400
    schema = draft(pa.table({"note": notes, "job": jobs, "reply": replies}))
    assert schema.ignore == ("note",)
    assert "'note' (it is free text)" in schema.remarks[""]
    assert "left again" not in schema.to_toml()


@pytest.mark.parametrize(
    "pattern", ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d.%m.%y", "%Y%m%d", "%d %b %Y", "%Y/%m/%d"]
)
@pytest.mark.parametrize("time", ["", " %H:%M"])
def test_dates_are_drafted_in_the_way_they_are_written(pattern: str, time: str) -> None:
    moments = [datetime(2021, 3, 5, 7) + timedelta(hours=29 * i) for i in range(300)]
    table = pa.table({"seen": [m.strftime(pattern + time) for m in moments] + ["NA"]})
    schema = draft(table)
    column, *parts = schema.columns
    assert [p.kind for p in parts] == (["hour", "weekday"] if time else [])
    assert isinstance(column, Timestamp if time else Date)
    assert column.format == pattern + time
    assert schema.check(table).passed
    assert schema.preflight(table).columns[0].unreadable == 1  # the mark
    assert (column.low.year, column.low.month, column.high.year) == (2021, 3, 2022)
    assert "either way" not in schema.remarks["seen"]


def test_dates_that_can_be_read_either_way_are_asked_about() -> None:
    schema = draft(pa.table({"seen": ["03/04/2021", "05/06/2021"] * 20}))
    assert schema.columns[0].format == "%d/%m/%Y"  # type: ignore[attr-defined]
    assert "either way" in schema.remarks["seen"]
    assert draft(pa.table({"n": ["20210304", "99999999"] * 20})).columns[0].kind == "integer"


def test_numbers_with_commas_are_left_out_with_the_reason() -> None:
    schema = draft(pa.table({"weight": ["81,5", "70,25"] * 50, "age": ["4"] * 100}))
    assert schema.ignore == ("weight",)
    assert "'weight' (numbers with commas: margrave reads a decimal point" in schema.remarks[""]


def test_a_number_far_from_all_else_is_asked_about() -> None:
    rng = np.random.default_rng(0)
    ages, weights = (
        rng.integers(0, 100, 1000).tolist(),
        np.round(rng.normal(70, 10, 1000), 1).tolist(),
    )
    days = [date(2020, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 1000, 1000)]
    far = {
        "age": (
            ages + [-9] * 5 + [999] * 9,
            '-9 and 999 lie far .*low and high, missing = true and missing_codes = ."-9", "999".',
        ),
        "weight": (
            weights + [9999.0] * 14,
            "9999 lies far .*the bounds of the code book",
        ),
        "answer": ([1, 2, 3, 4, 5] * 200 + [9] * 14, "^9 lies far"),
        "seen": (
            days + [date(1900, 1, 1)] * 14,
            "1900-01-01 lies far .*the bounds of the code book",
        ),
    }
    for name, (values, told) in far.items():
        schema = draft(pa.table({name: values}))
        asked = schema.remarks[name].partition("public? ")[2].partition("moved to them. ")[2]
        asked = asked or schema.remarks[name].partition("public? ")[2]
        assert re.search(told, asked), schema.remarks[name]
        low, high = (getattr(schema.columns[0], end) for end in ("low", "high"))
        assert (
            low <= min(values) <= max(values) <= high
        )  # nothing is taken out until someone has said so
    plain = {
        "age": ages * 2, "weight": weights * 2, "rare": [*ages, 999], "balance": [a - 50 for a in ages],
        "sign": [-1, 0, 1] * 50, "cost": np.round(np.exp(rng.normal(5, 1.5, 5000)), 2).tolist(),
        "heaped": [0] * 900 + rng.integers(1, 100_000, 100).tolist(),
    }  # fmt: skip
    for name, values in plain.items():
        assert "lies far" not in draft(pa.table({name: values})).remarks[name], name


def test_words_among_numbers_are_missing_as_after_pandas(tmp_path: Path) -> None:
    """A file and what pandas makes of it are drafted alike."""
    rng = np.random.default_rng(0)
    numbers = [f"{v:.1f}" for v in rng.normal(27, 5, 2000)]
    numbers[::40], numbers[1::50] = ["unknown"] * 50, ["NA"] * 40
    (tmp_path / "t.csv").write_text("bmi\n" + "\n".join(numbers) + "\n")
    frame = pd.read_csv(tmp_path / "t.csv", na_values=["unknown"])
    frame.to_parquet(tmp_path / "t.parquet")
    file, parquet = (draft_schema(tmp_path / f"t.{ending}") for ending in ("csv", "parquet"))
    assert file.columns == parquet.columns
    assert file.columns[0].kind == "real"
    assert file.columns[0].missing
    assert (
        "Among the numbers there is 'unknown', which will count as missing." in file.remarks["bmi"]
    )
    assert check_table(tmp_path / "t.csv", file).columns[0].unreadable == 90
    for other in (
        ["unknown"] * 2_500 + numbers,
        ["3+", "4+"] * 50 + numbers,
        ["Ann", "Bo", "Cy", "Di"] * 4 + numbers,
    ):
        assert not [c for c in draft(pa.table({"bmi": other})).columns if c.kind == "real"]


def test_times_of_day_are_left_out_unless_they_are_few() -> None:
    many = [time(i % 24, i % 60) for i in range(300)]
    frame = pa.table(
        {"at": many, "seen": [f"{i % 12:02}:00" for i in range(300)], "x": ["a", "b", "c"] * 100}
    )
    made = draft(frame)
    assert made.ignore == ("at",)
    assert "times of day without a date" in made.remarks[""]
    assert made["seen"].kind == "categorical"


def test_times_past_midnight_are_not_person_ids() -> None:
    minutes = np.random.default_rng(0).integers(0, 1560, 1000)
    frame = pa.table({"at": [f"{m // 60:02}:{m % 60:02}" for m in minutes], "x": ["a", "b"] * 500})
    made = draft(frame)
    assert (made.person, made.ignore) == (None, ("at",))
    assert "times of day without a date" in made.remarks[""]


def test_numbers_with_a_word_on_a_tenth_of_the_rows_are_numbers() -> None:
    ages = ["unknown" if i % 9 == 0 else str(18 + i % 70) for i in range(900)]
    (column,) = draft(pa.table({"years": ages})).columns
    assert column.kind == "integer"


@pytest.mark.parametrize(
    ("values", "marks"),
    [
        ([12, 24, 36, 60], (0, 0)),  # the last is as common a term as any
        ([0, 1, 2, 3, 4, 9], (0, 1)),
        ([-9, 0, 1, 2, 3, 4], (1, 0)),
        ([-9, 0, 1], (1, 0)),
        ([-9, 2], (1, 0)),
        ([-9], (0, 0)),
        ([-1, 0, 1], (0, 0)),
        ([*range(18, 91), 999], (0, 1)),
        ([0, 50, 100, 150, 250], (0, 0)),
        ([0, 1, 9], (0, 1)),
        ([1, 2, 99], (0, 1)),
        ([0, 1, 8, 9], (0, 2)),
        ([1, 2, 3, 7, 8, 9], (0, 3)),
        ([*range(101), 998, 999], (0, 2)),
        ([*range(30), 77, 88, 99], (0, 3)),
        ([-99, -98, *range(-20, 41)], (2, 0)),
        ([0, 1, 4], (0, 0)),
        ([1, 9], (0, 0)),
        ([*range(11), 30, 31], (0, 0)),
        ([*range(1, 10)], (0, 0)),
    ],
)
def test_a_mark_is_twice_as_far_out_as_other_values_are_apart(
    values: list[int], marks: tuple[int, int]
) -> None:
    counts = DistinctNumbers.of(np.array(values, dtype=float), np.full(len(values), 500))
    assert sentinels(counts) == marks
