"""Drafts of columns to learn: kinds are seen in the rows, no value is, and questions stay comments."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margrave.cli.main import run
from margrave.errors import SchemaError
from margrave.profiling import check_table, draft_schema
from margrave.profiling.draft import draft
from margrave.profiling.proposals import taken_as_public
from margrave.schema import Boolean, Hour, Integer, Learn, Schema, Weekday
from tests.cli.test_cli import ok
from tests.profiling.test_schema_draft import a_table


def one(values: Any, name: str = "x") -> tuple[Any, str]:
    """Return the column that is drafted of some values, and its remark."""
    beside = pa.array(["a", "b"] * (len(values) // 2 + 1))[: len(values)]
    schema = draft(pa.table({name: values, "beside": beside}))
    return schema.column(name), schema.remarks.get(name, "")


def test_bounds_and_categories_are_to_be_learned() -> None:
    schema = draft(a_table())
    assert {c.name: (c.kind, isinstance(c, Learn)) for c in schema.columns} == {
        "age": ("integer", True), "month": ("integer", True), "gain": ("integer", True),
        "price": ("real", True), "weight": ("integer", True), "sex": ("categorical", True),
        "zip": ("categorical", True), "born": ("date", True), "seen": ("timestamp", True),
        "seen.hour": ("hour", False), "seen.weekday": ("weekday", False),
        "ok": ("boolean", False), "answer": ("categorical", True), "street": ("categorical", True),
    }  # fmt: skip
    assert schema.column("seen").unit == "hour"  # type: ignore[attr-defined]
    assert schema.ignore == ("id", "name", "empty")
    assert not schema.draft
    schema.check_not_read()
    assert check_table(a_table(), schema).passed
    assert Schema.from_toml(schema.to_toml()) == schema


def test_no_value_of_the_rows_is_declared() -> None:
    """Two tables of the same kinds and other values have one draft."""
    table = a_table()
    other = {
        "age": pa.array(np.arange(400) % 70 + 500),
        "price": pa.array((np.arange(400) % 300) / 8),
        "sex": pa.array(["x", "y"] * 200),
        "weight": pa.array([float(i % 70) for i in range(400)]),
        "ok": pa.array([True, None] * 200),
        "born": pa.array([date(1800, 5, 5)] * 200 + [date(1801, 5, 5)] * 200),
    }
    for name, values in other.items():
        table = table.set_column(table.column_names.index(name), name, values)
    assert draft(table) == draft(a_table())
    assert draft(table).hash() == draft(a_table()).hash()


def test_the_head_says_what_is_taken_as_public() -> None:
    head = draft(a_table()).remarks[""]
    assert "takes as public the names and kinds of the columns" in head
    assert "seen in the rows" in head
    assert "A column of 0 and 1 gets these bounds, one of true and false is boolean" in head
    assert "a time since another column gets low = 0" in head
    assert (
        "Codes for missing values that a file of Stata, SPSS or SAS declares are taken too." in head
    )
    assert "Other bounds and categories are learned" in head
    assert "cite = " in head
    assert "'id' (it numbers the rows)" in head


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n", "The table has no rows"),
        ("a:b:c\n1:2:3\n", "The table has one column.*commas, semicolons, tabs or bars"),
        ("a,b\n1,2\n1,2\n", "Column 1: all rows have the same value, .*Column 2: all rows"),
    ],
)
def test_a_table_that_cannot_be_drafted_says_why(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(SchemaError, match=words):
        draft_schema(tmp_path / "t.csv")


@pytest.mark.parametrize("values", [["true", "False"] * 20, [True, None] * 20])
def test_truth_values_are_boolean(values: list[Any]) -> None:
    assert one(values)[0] == Boolean("x", missing=True)


@pytest.mark.parametrize(
    "values", [[0, 1] * 20, ["0", "1"] * 20, [0.0, 1.0] * 20, [0, None, 1, 1] * 10]
)
def test_zero_and_one_are_declared_and_stay_numbers(values: list[Any]) -> None:
    assert one(values)[0] == Integer("x", 0, 1, missing=True, outside="missing")


def test_a_few_small_whole_numbers_are_asked_about_unless_they_count() -> None:
    column, remark = one([1, 2, 3, 4, 5] * 20)
    assert column == Learn("x", "integer")
    assert 'write kind = "categorical"' in remark
    for values in ([0] * 60 + [1, 2, 3, 4] * 10, [100, 200, 300] * 20, list(range(1, 13)) * 9):
        assert one(values) == (Learn("x", "integer"), "")
    assert one([0.5, 1.0, 1.5] * 20) == (Learn("x", "real"), "")


def test_codes_are_categories_by_their_names_and_looks() -> None:
    numbers = [10_000 + 37 * (i % 60) for i in range(600)]
    assert one(numbers, "zip")[0] == Learn("zip", "categorical")
    assert one(numbers, "occ_code")[0] == Learn("occ_code", "categorical")
    assert one(numbers, "salary")[0] == Learn("salary", "integer")
    assert one([f"{n % 97:04d}" for n in numbers], "ward")[0] == Learn("ward", "categorical")
    assert one([f"A{n % 40:02d}.1" for n in numbers], "dx")[0] == Learn("dx", "categorical")


@pytest.mark.parametrize("name", ["latitude", "patient_id", "id"])
def test_real_numbers_are_never_persons(name: str) -> None:
    rng = np.random.default_rng(2)
    places = np.round(rng.uniform(40, 41, 300), 8)
    values = places[rng.integers(0, 300, 1000)]
    schema = draft(pa.table({name: values, "sex": ["f", "m"] * 500}))
    assert schema.person is None
    assert schema.column(name) == Learn(name, "real")
    long = pa.array([str(10**17 + 7919 * i) for i in rng.integers(0, 300, 1000)])
    assert draft(pa.table({"patient_id": long, "sex": ["f", "m"] * 500})).person == "patient_id"


def test_columns_of_one_value_are_left_out_with_the_reason() -> None:
    table = pa.table({"year": [2013] * 40, "sex": ["f", "m"] * 20, "seen": ["x", None] * 20})
    schema = draft(table)
    assert schema.ignore == ("year",)
    assert "'year' (all rows have the same value" in schema.remarks[""]
    assert schema.column("seen") == Learn("seen", "categorical")
    with pytest.raises(SchemaError, match="the same value"):
        draft(pa.table({"year": [2013] * 40}))


def test_lists_and_records_are_left_out_with_the_reason() -> None:
    made = draft(pa.table({"labs": [[i] for i in range(300)], "sex": ["f", "m"] * 150}))
    assert made.ignore == ("labs",)
    assert "'labs' (its values are lists, records or others that are not single" in made.remarks[""]


def test_whole_numbers_of_sixteen_digits_are_not_amounts() -> None:
    cards = [10**15 + 37**2 * i for i in range(300)]
    for values in (cards, [str(c) for c in cards]):
        made = draft(pa.table({"card": values, "sex": ["f", "m"] * 150}))
        assert made.ignore == ("card",)
    assert one([c // 10 for c in cards])[0] == Learn("x", "integer")


def test_usual_values_in_several_spellings_are_asked_about_as_spellings_first() -> None:
    remark = one(["Ja", "JA", "Nein"] * 50)[1]
    assert 'same = "case"' in remark
    assert "by its definition" not in remark


def test_a_table_without_a_column_to_draft_is_refused_with_the_reasons() -> None:
    table = pa.table({"weight": ["71,5", "80,2"] * 50, "site": ["a"] * 100})
    with pytest.raises(SchemaError) as caught:
        draft(table)
    assert "Column 1: numbers with commas: " in caught.value.message
    assert "Column 2: all rows have the same value" in caught.value.message
    assert caught.value.remedy.startswith("Choose another table. In Python or a schema file,")
    many = pa.table({f"c{i}": ["a"] * 30 for i in range(13)})
    with pytest.raises(SchemaError, match=r"Column 10: .*\. And 3 more columns\."):
        draft(many)


def test_free_text_and_identifiers_are_left_out() -> None:
    notes = [f"The patient came in at {i % 60} with pains and left again" for i in range(400)]
    visits = [f"V{i:06d}" for i in range(400)]
    schema = draft(pa.table({"note": notes, "visit": visits, "sex": ["f", "m"] * 200}))
    assert schema.ignore == ("note", "visit")
    assert "left again" not in schema.to_toml()


def test_short_notes_are_free_text_and_lists_of_categories_are_not() -> None:
    rng = np.random.default_rng(4)
    phrases = [
        "Patient stabil",
        "Allergie Penicillin",
        "Sturz am zweiten Tag",
        "Verlegung nach 2 Tagen",
    ]
    notes = [f"{phrases[i % 4]} (Dr. {rng.integers(400)})" for i in range(6000)]
    jobs = [f"Machine operators, group {i % 300}" for i in range(6000)]
    schema = draft(pa.table({"note": notes, "job": jobs}))
    assert schema.ignore == ("note",)
    assert "'note' (it is free text)" in schema.remarks[""]


@pytest.mark.parametrize(
    ("texts", "length", "ignored"),
    [(30, 54, False), (100, 150, False), (30, 201, True), (200, 54, True)],
)
def test_a_few_long_texts_on_many_rows_are_categories(
    texts: int, length: int, ignored: bool
) -> None:
    regions = [
        f"District of the River and the Valley, part {i % texts}".ljust(length, "x")
        for i in range(2000)
    ]
    schema = draft(pa.table({"region": regions, "sex": ["f", "m"] * 1000}))
    assert (schema.ignore == ("region",)) == ignored
    assert ignored or schema.column("region") == Learn("region", "categorical")


@pytest.mark.parametrize("day", ["%m/%d/%Y", "%Y-%m-%d"])
@pytest.mark.parametrize(
    ("time", "unit"),
    [("%I:%M %p", "minute"), ("%I:%M:%S %p", "second"), ("%H:%M:%S.%f", "second")],
)
def test_times_of_twelve_hours_and_with_fractions_are_read(day: str, time: str, unit: str) -> None:
    moments = [datetime(2021, 3, 5, 7, 30, 5) + timedelta(hours=29 * i) for i in range(300)]
    table = pa.table({"at": [m.strftime(f"{day} {time}") for m in moments], "b": [1, 2, 3] * 100})
    schema = draft(table)
    form = None if f"{day} {time}" == "%Y-%m-%d %H:%M:%S.%f" else f"{day} {time}"
    assert schema.column("at") == Learn("at", "timestamp", unit=unit, format=form)
    hours = schema.encode(table).column("at.hour").tolist()
    assert hours == [m.hour for m in moments]


def test_dates_without_leading_zeros_are_read() -> None:
    days = [date(2021, 1, 1) + timedelta(days=i) for i in range(300)]
    column, remark = one([f"{d.year}-{d.month}-{d.day}" for d in days])
    assert (column, remark) == (Learn("x", "date", format="%Y-%m-%d"), "")


@pytest.mark.parametrize("sign", ["-", "/"])
def test_dates_that_may_begin_with_a_year_of_two_digits_are_asked_about(sign: str) -> None:
    days = [date(2020, 1, 1) + timedelta(days=i) for i in range(1300)]
    column, remark = one([f"{d:%y{sign}%m{sign}%d}" for d in days])
    assert column == Learn("x", "date", format=f"%d{sign}%m{sign}%y")
    assert "Does the day come first" in remark
    column, remark = one([f"{d:%y{sign}%m{sign}%d}" for d in [*days, date(1998, 5, 31)]])
    assert column == Learn("x", "date", format=f"%y{sign}%m{sign}%d")


@pytest.mark.parametrize("pattern", ["", "%d/%m/%Y", "%d.%m.%y"])
@pytest.mark.parametrize(("time", "unit"), [("", ""), (" %H:%M", "minute")])
def test_dates_keep_the_way_they_are_written(pattern: str, time: str, unit: str) -> None:
    form = (pattern or "%Y-%m-%d") + time
    moments = [datetime(2021, 3, 5, 7, 30) + timedelta(hours=29 * i) for i in range(300)]
    table = pa.table({"at": [m.strftime(form) for m in moments]})
    schema = draft(table)
    expected = form if pattern else None
    assert schema.columns == (
        (
            Learn("at", "timestamp", unit=unit, format=expected),
            Hour("at.hour", "at", format=expected, missing=True),
            Weekday("at.weekday", "at", format=expected, missing=True),
        )
        if time
        else (Learn("at", "date", format=expected),)
    )
    assert schema.preflight(table).columns[0].unreadable == 0
    assert ("read as 1969 to 2068" in schema.remarks.get("at", "")) == ("%y" in pattern)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC"])
def test_times_with_a_zone_by_type_are_asked_about_as_those_with_an_offset(zone: str) -> None:
    local = [datetime(2020, 6, 1, 0, 30) + timedelta(days=i % 50) for i in range(200)]
    column, remark = one(pa.array(local, pa.timestamp("us", zone)))
    assert column == Learn("x", "timestamp", unit="minute")
    assert "a time zone and are taken in UTC" in remark
    assert "in UTC" not in one(local)[1]
    assert (
        "in UTC"
        not in one(
            pa.array([datetime(2020, 6, 1 + i % 9) for i in range(200)], pa.timestamp("us", "UTC"))
        )[1]
    )


def test_missing_value_codes_are_still_asked_about() -> None:
    ages = [*range(18, 90)] * 5 + [-9] * 20
    column, remark = one(ages)
    assert column == Learn("x", "integer")
    assert "-9 lies far from all else" in remark
    assert "leave such fields empty in the table" in remark
    assert "in place of learn = true" in remark
    assert "lies far" in one([a + 0.5 for a in ages])[1]
    assert (
        "lies far"
        in one(
            [date(2020, 1, 1) + timedelta(days=a) for a in range(80)] * 4 + [date(1900, 1, 1)] * 9
        )[1]
    )
    assert one([*range(18, 90)] * 5)[1] == ""


def test_few_codes_are_asked_about_if_they_are_very_far() -> None:
    rng = np.random.default_rng(1)
    weights = [f"{w:.1f}" for w in rng.normal(76, 20, 60_000).clip(3, 180)]
    assert "9999 lies far" in one([*weights, *["9999"] * 45])[1]
    assert "lies far" not in one([*weights, *["9999"] * 2])[1]
    assert "lies far" not in one([*weights, *["300.0"] * 3])[1]
    assert "-1 lies far" in one([*range(100)] * 600 + [-1] * 30)[1]
    assert "-1 lies far" in one([0, 1] * 50 + [-1] * 9)[1]
    assert "lies far" not in one([0, 0, 1, -1] * 50)[1]


def test_rare_texts_nearly_those_of_a_frequent_category_are_asked_about() -> None:
    often = {
        "Innere Medizin": 400,
        "Chirurgie": 300,
        "Kardiologie": 200,
        "Neurologie": 300,
        "Urologie": 280,
    }
    rare = {"Innere Med.": 4, "Chirugie": 5, "Kardoilogie": 3, "neurologie": 6, "Geriatrie": 5}
    remark = one([t for t, n in (often | rare).items() for _ in range(n)])[1]
    assert "Equal but for case or blanks: 'Neurologie' and 'neurologie'" in remark
    listed = (
        '"Chirugie" = "Chirurgie", "Innere Med." = "Innere Medizin", "Kardoilogie" = "Kardiologie"'
    )
    assert f'same = ["case", {{{listed}}}]' in remark
    assert "Then correct them in the table and draft anew." in remark
    assert "every release holds these texts, so list only those that are known without" in remark
    assert "Geriatrie" not in remark
    assert one(["A01.3"] * 900 + ["A01.4"] * 9 + ["male"] * 300 + ["mule"] * 3)[1] == ""


def test_spellings_and_marks_are_asked_about_in_comments_alone() -> None:
    texts = ["SURGERY", "Surgery", "ICU", "NA"] * 10
    column, remark = one(texts)
    assert column == Learn("x", "categorical")
    assert "'SURGERY' and 'Surgery'" in remark
    assert "Marks such as NA" in remark
    schema = draft(pa.table({"x": texts}))
    settings = [row for row in schema.to_toml().splitlines() if not row.startswith("#")]
    assert not any("ICU" in row or "Surgery" in row for row in settings)


cells = (
    st.text(max_size=5)
    | st.integers().map(str)
    | st.floats().map(repr)
    | st.dates().map(str)
    | st.none()
)


@settings(max_examples=80, derandomize=True, deadline=None)
@given(values=st.lists(cells, min_size=1, max_size=40))
def test_any_column_is_drafted_into_one_that_reads_it(values: list[str | None]) -> None:
    table = pa.table(
        {
            "x": pa.array(values, pa.string()),
            "y": ["p", "q"] * (len(values) // 2) + ["p"] * (len(values) % 2),
            "z": [str(i % 2) for i in range(len(values))],
        }
    )
    try:
        schema = draft(table)
    except SchemaError:
        return
    found = schema.preflight(table)
    assert found.passed
    assert all(c.outside == 0 for c in found.columns)
    assert Schema.from_toml(schema.to_toml()) == schema
    assert not schema.draft


def test_units_and_formats_are_said_to_be_public() -> None:
    hours = [datetime(2020, 1, 1) + timedelta(hours=7 * i % 4000) for i in range(600)]
    days = [f"{1 + i % 12:02d}/{1 + i % 9:02d}/2020" for i in range(600)]
    for second, last, unit, form in (
        (0, "05/06/2020", "hour", "%d/%m/%Y"),
        (7, "01/31/2020", "second", "%m/%d/%Y"),
    ):
        seen = [hours[0] + timedelta(seconds=second), *hours[1:]]
        sentence = taken_as_public(draft(pa.table({"seen": seen, "day": [*days[1:], last]})))
        assert (
            f" Units of times: {unit}: seen. Formats of dates and times: {form}: day." in sentence
        )


def test_values_that_a_draft_declares_are_among_what_it_takes_as_public() -> None:
    days = [f"2024-02-{1 + i:02}" for i in range(20)]
    columns = {"ill": [0, 1] * 10, "ok": [True, False] * 10, "in_date": days, "out_date": days}
    sentence = taken_as_public(draft(pa.table(columns)))
    assert " Values: 0 and 1 alone in ill; true and false alone in ok." in sentence
    assert " By their names: out_date is never before in_date." in sentence


def test_the_command_says_what_is_public_and_what_is_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(a_table().drop(["empty"]), "t.csv")
    assert run(["schema", "draft", "t.csv", "-o", "t.toml"]) == 0
    shown = capsys.readouterr()
    assert "Taken as public: the names and kinds of the columns" in shown.err
    assert Schema.load("t.toml") == draft_schema("t.csv")
    facts = json.loads(ok(capsys, "schema", "draft", "t.csv", "--json"))
    assert (facts["draft"], len(facts["to_learn"])) == (False, 11)
    said = " ".join(ok(capsys, "schema", "draft", "t.csv", "--read", "-o", "r.toml").split())
    assert "Replace the keys that read lists" in said
    assert run(["plan", "-s", "r.toml", "--epsilon", "1", "--delta", "1e-6"]) == 3
    assert "'age' (low, high, missing)" in capsys.readouterr().err
