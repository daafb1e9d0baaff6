"""The schema: its TOML file, its errors, its identity."""

from __future__ import annotations

import math
import re
from dataclasses import fields, replace
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margrave.domain import Domain
from margrave.errors import InputError, SchemaError
from margrave.profiling.answers import DraftAnswer
from margrave.profiling.answers import declared as declared_by
from margrave.schema import (
    Boolean,
    Categorical,
    Coded,
    ColumnSource,
    Date,
    Integer,
    Learn,
    Ordinal,
    Real,
    Schema,
    Timestamp,
)
from margrave.schema.kinds import KINDS

FULL = """\
[schema]
version = 1
person = "patient"
ignore = ["note"]

[[column]]
name = "town"
kind = "categorical"
categories = ["York", "Hull"]
other = true
missing = true
outside = "other"

[[column]]
name = "grade"
kind = "ordinal"
categories = ["low", "high"]
outside = "refuse"

[[column]]
name = "smokes"
kind = "boolean"
missing = true
outside = "missing"

[[column]]
name = "age"
kind = "integer"
low = 0
high = 99
bins = 10
atoms = [0]
outside = "clip"
read = ["high"]
cite = "Codebook 2018, p. 12"

[[column]]
name = "price"
kind = "real"
low = 0.0
high = 10.0
edges = [1.0, 5.0]
decimals = 2
outside = "clip"

[[column]]
name = "visit"
kind = "date"
low = 2020-01-01
high = 2020-12-31
bins = 12
format = "%d/%m/%Y"
outside = "clip"

[[column]]
name = "seen"
kind = "timestamp"
low = 2020-01-01T00:00:00
high = 2020-12-31T23:00:00
bins = 32
unit = "hour"
outside = "clip"

[[column]]
name = "code"
kind = "coded"
codes = 7
outside = "refuse"
"""

OBJECTS = Schema(
    [
        Categorical("town", ["York", "Hull"], other=True, missing=True),
        Ordinal("grade", ["low", "high"]),
        Boolean("smokes", missing=True),
        Integer("age", 0, 99, bins=10, atoms=[0]),
        Real("price", 0, 10, edges=[1, 5], decimals=2),
        Date("visit", date(2020, 1, 1), date(2020, 12, 31), bins=12, format="%d/%m/%Y"),
        Timestamp("seen", datetime(2020, 1, 1), datetime(2020, 12, 31, 23), unit="hour"),
        Coded("code", 7),
    ],
    sources={"age": ColumnSource(read=["high"], cite="Codebook 2018, p. 12")},
    person="patient",
    ignore=["note"],
)


def test_the_file_and_the_objects_say_the_same() -> None:
    assert Schema.from_toml(FULL) == OBJECTS
    assert OBJECTS.to_toml() == FULL


def test_sizes_count_every_state() -> None:
    sizes = {c.name: c.size for c in OBJECTS.columns}
    assert sizes == {
        "town": 4, "grade": 2, "smokes": 3, "age": 11, "price": 3, "visit": 12, "seen": 32, "code": 7
    }  # fmt: skip
    assert OBJECTS.domain.difference(Domain.of(sizes)) is None
    assert all(len(c.labels()) == c.size for c in OBJECTS.columns)
    assert OBJECTS.column("age").labels()[:3] == ["0", "1 to 9", "10 to 19"]
    assert OBJECTS.column("price").labels() == ["[0, 1)", "[1, 5)", "[5, 10]"]
    assert OBJECTS.column("town").labels() == ["York", "Hull", "other", "(missing)"]


def test_saving_and_loading(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    OBJECTS.save(path)
    assert Schema.load(path) == OBJECTS
    with pytest.raises(InputError, match="exists already"):
        OBJECTS.save(path)
    OBJECTS.confirmed().save(path, overwrite=True)
    assert not Schema.load(path).draft


def test_a_schema_that_may_not_be_read_is_to_be_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("margrave.schema.schema.read_input", refused)
    with pytest.raises(SchemaError, match=r"Permission denied\. Ask its owner for permission"):
        Schema.load(tmp_path / "schema.toml")


def test_the_hash_is_of_the_content() -> None:
    assert OBJECTS.hash() == Schema.from_toml(FULL).hash()
    assert replace(OBJECTS, remarks={"": "hello"}).hash() == OBJECTS.hash()
    assert OBJECTS.confirmed().hash() != OBJECTS.hash()
    assert Schema.coded({"a": 2}).hash() != Schema.coded({"a": 3}).hash()
    assert len(OBJECTS.hash()) == 64


def test_remarks_are_comments_and_nothing_more() -> None:
    remarked = replace(
        OBJECTS, remarks={"": "line one\nline two [schema]", "age": 'a "remark"' + " long" * 60}
    )
    text = remarked.to_toml()
    assert text.startswith("# line one\n# line two")
    assert '# a "remark"' in text
    assert max(map(len, text.splitlines())) < 120
    assert Schema.from_toml(text) == OBJECTS


def test_coded_is_confirmed() -> None:
    schema = Schema.coded({"age": 32, "sex": 2})
    assert not schema.draft
    assert schema.domain.sizes == (32, 2)


printable = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(
    categories=st.lists(printable.filter(str.strip), min_size=1, max_size=5, unique=True),
    name=printable.filter(lambda s: s.isprintable() and bool(s.strip())),
    low=st.floats(-1e300, 1e300),
    width=st.floats(1e-3, 1e100),
)
def test_any_schema_survives_its_file(
    categories: list[str], name: str, low: float, width: float
) -> None:
    columns: list[Any] = [Categorical(name, categories)]
    if math.isfinite(low + width) and low + width > low and abs(low + width) <= 1e300:
        try:
            columns.append(Real(name + "2", low, low + width, bins=3))
        except SchemaError as error:  # too close for three bins
            assert "too close" in str(error)  # noqa: PT017
    schema = Schema(columns)
    assert Schema.from_toml(schema.to_toml()) == schema


def column(**changes: Any) -> str:
    """A file with one column whose lines are changed (None takes a line out)."""
    lines = {"name": '"age"', "kind": '"integer"', "low": "0", "high": "9", **changes}
    body = "\n".join(f"{k} = {v}" for k, v in lines.items() if v is not None)
    return f"[schema]\nversion = 1\n\n[[column]]\n{body}\n"


TEXTS = {
    "nothing": ("", "no version"),
    "no columns": ("[schema]\nversion = 1\n", r"no columns.*\[\[column\]\]"),
    "not TOML": ("[schema]\nversion = = 1\n", "Line 2 of the schema is not valid TOML"),
    "deep nesting": ("a = " + "[" * 100_000, "nested too deeply|not valid TOML"),
    "a huge number": ("a = " + "1" * 10_000, "not valid TOML"),
    "a lone surrogate": ("a = '\ud800'", "not valid Unicode"),
    "another version": ("[schema]\nversion = 2\n", "version = 1"),
    "a true version": ("[schema]\nversion = true\n", "version = 1"),
    "unknown head key": ("[schema]\nversion = 1\ncolor = 3\n", "unknown key 'color'.*draft"),
    "unknown table": (
        "[schema]\nversion = 1\n[columns]\n",
        r"unknown entry 'columns' \(line 3\).*\[\[column\]\]",
    ),
    "schema is a value": ("schema = 3", "The entry schema is not a table"),
    "column is a table": (
        "[schema]\nversion = 1\n[column]\nname = 'a'\n",
        "The entry column is not a list of tables",
    ),
    "draft is text": (
        "[schema]\nversion = 1\ndraft = 'no'\n" + column()[21:],
        "draft is not true or false",
    ),
    "ignore is text": (
        "[schema]\nversion = 1\nignore = 'a'\n" + column()[21:],
        "ignore is not a list",
    ),
    "ignore of numbers": (
        "[schema]\nversion = 1\nignore = [3]\n" + column()[21:],
        "column to ignore",
    ),
    "person is a column": (
        "[schema]\nversion = 1\nperson = 'age'\n" + column()[21:],
        "'age' identifies persons",
    ),
    "ignored and used": (
        "[schema]\nversion = 1\nignore = ['age']\n" + column()[21:],
        "'age' is ignored and used",
    ),
    "person and ignored": (
        "[schema]\nversion = 1\nperson = 'p'\nignore = ['p']\n" + column()[21:],
        "'p' is ignored and used",
    ),
    "a column twice": (column() + column()[21:], "'age' occurs twice"),
    "no name": (column(name=None), "Line 4: Column number 1: it has no name"),
    "a number as name": (column(name="3"), "name of a column is not usable"),
    "a blank name": (column(name='" "'), "not usable"),
    "a line break in a name": (column(name='"a\\nb"'), "not usable"),
    "no kind": (column(kind=None), "Line 4: Column 'age': it has no kind.*categorical"),
    "unknown kind": (column(kind='"int"'), "'age': its kind is unknown.*integer"),
    "unknown key": (column(color="3"), "'age': 'color' is not a key of kind integer.*atoms"),
    "no bound": (column(high=None), "'age': it has no high"),
    "bound is text": (column(low='"0"'), "'age': low is not a whole number"),
    "bound is true": (column(low="true"), "low is not a whole number"),
    "true in another case": (column(missing="True"), "has True.*writes true, in lower case"),
    "a bound that means missing": (
        column(low="-9", missing="true", missing_codes='["-9"]'),
        "its low is -9, which is one of its missing_codes",
    ),
    "bound is a fraction": (column(low="0.5"), "low is not a whole number"),
    "bound too large": (column(high="9007199254740993"), "high is out of range"),
    "bounds reversed": (column(low="10"), "'age': low is above high"),
    "no bins": (column(bins="0"), "bins is out of range"),
    "too many bins": (column(bins="99999999999"), "bins is out of range"),
    "bins and edges": (column(bins="3", edges="[3]"), "both bins and edges"),
    "edges not a list": (column(edges="3"), "edges is not a list"),
    "edges unsorted": (column(edges="[5, 3]"), "edges do not increase"),
    "edges twice": (column(edges="[5, 5]"), "edges do not increase"),
    "edges outside": (column(edges="[50]"), "edges lie outside"),
    "atoms outside": (column(atoms="[-1]"), "atoms lie outside"),
    "missing is text": (column(missing='"yes"'), "missing is not true or false"),
    "unknown policy": (
        column(outside='"drop"'),
        "'age': outside names no policy.*clip, missing, refuse",
    ),
    "missing without state": (column(outside='"missing"'), "no missing state.*missing = true"),
    "real NaN": (column(kind='"real"', low="nan"), "low is not a finite number"),
    "real inf": (column(kind='"real"', high="inf"), "high is not a finite number"),
    "real empty": (column(kind='"real"', low="9"), "low equals high"),
    "real too fine": (column(kind='"real"', low="1.0", high="1.0000000000000002"), "too close"),
    "decimals negative": (column(kind='"real"', decimals="-1"), "decimals is out of range"),
    "decimals too many": (column(kind='"real"', high="1e9", decimals="10"), "beyond the precision"),
    "date is text": (
        column(kind='"date"', low='"2020-01-01"', high="2020-02-01"),
        "low is not a date.*Write low = 2020-01-01 in a file, without quotes, or low=date\\(2020, 1, 1\\)",
    ),
    "date is a time": (
        column(kind='"date"', low="2020-01-01T00:00:00", high="2020-02-01"),
        "low is not a date",
    ),
    "a bad format": (
        column(kind='"date"', low="2020-01-01", high="2020-02-01", format='"%d/%m"'),
        "format does not describe a date",
    ),
    "a format with two days": (
        column(kind='"date"', low="2020-01-01", high="2020-02-01", format='"%d/%m/%Y %d"'),
        "format does not describe a date",
    ),
    "time with a zone": (
        column(kind='"timestamp"', low="2020-01-01T00:00:00Z", high="2020-02-01"),
        "time zone",
    ),
    "time between units": (
        column(kind='"timestamp"', low="2020-01-01T00:30:00", high="2020-02-01", unit='"hour"'),
        "low is not a multiple of its unit, the hour",
    ),
    "unknown unit": (
        column(kind='"timestamp"', low="2020-01-01", high="2020-02-01", unit='"week"'),
        "unit is unknown.*hour",
    ),
    "no categories": (
        column(kind='"categorical"', low=None, high=None, categories="[]"),
        "it has no categories",
    ),
    "categories text": (
        column(kind='"categorical"', low=None, high=None, categories='"ab"'),
        "names the file 'ab', but this schema is not read from a folder",
    ),
    "a category twice": (
        column(kind='"ordinal"', low=None, high=None, categories='["a", "b", "a"]'),
        "category 'a' is listed twice",
    ),
    "categories but for blanks": (
        column(kind='"categorical"', low=None, high=None, categories='["a", " a"]'),
        "categories 'a' and ' a' differ by blanks alone",
    ),
    "an open list of nothing": (
        column(kind='"categorical"', low=None, high=None, categories='["other"]', other="true"),
        "all that it lists is 'other', the open category",
    ),
    "an empty category": (
        column(kind='"categorical"', low=None, high=None, categories='["a", ""]'),
        "a category is empty.*missing = true",
    ),
    "a fraction as category": (
        column(kind='"categorical"', low=None, high=None, categories="[1.5]"),
        "a category is not text",
    ),
    "other without state": (
        column(kind='"categorical"', low=None, high=None, categories='["a"]', outside='"other"'),
        "no open category.*other = true",
    ),
    "coded without codes": (column(kind='"coded"', low=None, high=None), "it has no codes"),
    "coded of none": (
        column(kind='"coded"', low=None, high=None, codes="0"),
        "codes is out of range",
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_what_is_wrong_with_a_file_is_one_clear_error(case: str) -> None:
    text, told = TEXTS[case]
    with pytest.raises(SchemaError, match=f"(?s){told}"):
        Schema.from_toml(text)


def test_the_line_of_the_column_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(column() + "\n" + column(name='"b"', low="100")[21:])
    with pytest.raises(SchemaError, match=r"s\.toml: Line 11: Column 'b': low is above high"):
        Schema.load(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="cannot be read: No such file"):
        Schema.load(tmp_path / "none.toml")
    with pytest.raises(SchemaError, match="cannot be read"):
        Schema.load(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9")
    with pytest.raises(SchemaError, match="is not a schema, which is text in UTF-8"):
        Schema.load(tmp_path / "latin.toml")
    (tmp_path / "latin.toml").write_bytes(b"[schema]\nversion = 1\n# caf\xe9")
    with pytest.raises(SchemaError, match=r"not text in UTF-8 \(line 3\)\. Save it as UTF-8"):
        Schema.load(tmp_path / "latin.toml")
    (tmp_path / "loans.margrave").write_bytes(b"PK\x03\x04\xff")
    with pytest.raises(SchemaError, match=r"margrave schema of .*loans\.margrave -o loans\.toml"):
        Schema.load(tmp_path / "loans.margrave")
    with pytest.raises(SchemaError, match="not a path"):
        Schema.load("a\0b")


WORDS = [
    "[schema]", "[[column]]", "version = 1", "name = ", "kind = ", '"integer"', '"real"', '"date"', '"timestamp"',
    '"categorical"', "low = 0", "high = ", "9", "1e309", "-inf", "nan", "2020-01-01", "2020-13-01", "00:00:00",
    "bins = ", "edges = [1, 2]", "edges = [[1]]", "atoms = ", "missing = true", "outside = 3", "{a = 1}", "[", "]",
    "categories = [1, 'a']", '"""', "\\u0000", "=", "\n", "\n", "\n", "#", "x.y = 1", "codes = 4", '"coded"',
]  # fmt: skip


@settings(max_examples=400, derandomize=True, deadline=None)
@given(text=st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join) | st.text(max_size=60))
def test_any_text_is_a_schema_or_a_schema_error(text: str) -> None:
    try:
        Schema.from_toml(text)
    except SchemaError as error:
        assert str(error)  # noqa: PT017


@settings(max_examples=200, derandomize=True, deadline=None)
@given(data=st.data())
def test_a_file_with_one_place_changed_is_a_schema_or_a_schema_error(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(FULL) - 1))
    pieces = ["", "0", '"', "\n", "[", "nan", "-", "é", "true", "1e999", "\x00", "2020-01-01"]
    piece = data.draw(st.sampled_from(pieces))
    cut = data.draw(st.integers(0, 8))
    try:
        Schema.from_toml(FULL[:at] + piece + FULL[at + cut :])
    except SchemaError as error:
        assert str(error)  # noqa: PT017


def like_polars(values: list[Any]) -> Any:
    return SimpleNamespace(to_list=lambda: values)


@pytest.mark.parametrize("of", [np.array, pd.Series, pd.Index, pa.array, like_polars])
def test_arrays_and_series_are_lists_of_values(of: Any) -> None:
    assert Categorical("a", of(["x", "y"])).categories == ("x", "y")
    assert Ordinal("a", of([3, 1])).categories == ("3", "1")
    assert Integer("a", 0, 9, edges=of([3, 5]), atoms=of([9, 0])) == Integer(
        "a", 0, 9, edges=[3, 5], atoms=[0, 9]
    )
    assert hash(Real("a", 0.0, 9.0, edges=of([3, 5])))
    with pytest.raises(SchemaError, match="a category is not text"):
        Categorical("a", of([0.5]))


def test_a_list_of_numbers_of_numpy_has_categories() -> None:
    assert Categorical("a", list(np.array([3, 1]))).categories == ("3", "1")


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("integer", "9", "1"),
        ("date", "2021-01-01", "2020-01-01"),
        ("timestamp", "2021-01-01 08:00", "2020-01-01"),
    ],
)
def test_answers_in_the_wrong_order_are_refused_in_the_words_of_the_questions(
    kind: str, low: str, high: str
) -> None:
    answer = DraftAnswer("declare", low=low, high=high)
    with pytest.raises(
        SchemaError, match=r"'x': its lowest value is above its highest\. Exchange them"
    ):
        declared_by(Learn("x", kind), answer)


@pytest.mark.parametrize(
    ("unit", "last"), [("second", "23:59:59"), ("hour", "23:00:00"), ("day", "00:00:00")]
)
def test_a_date_as_the_highest_time_is_the_end_of_its_day(unit: str, last: str) -> None:
    day = date(2020, 12, 31)
    declared = Timestamp("seen", date(2020, 1, 1), day, unit=unit)  # type: ignore[arg-type]
    answer = DraftAnswer("declare", low="2020-01-01", high="2020-12-31")
    answered = declared_by(Learn("seen", "timestamp", unit=unit), answer)
    for column in (declared, answered, Learn("seen", "timestamp", high=day, unit=unit)):
        assert str(column.high) == f"2020-12-31 {last}"
    frame = pa.table({"seen": ["2020-12-31 18:00", "2020-01-01"]})
    assert Schema([declared]).preflight(frame).notes == ()


def test_wrong_objects_are_schema_errors_too() -> None:
    with pytest.raises(SchemaError, match="low is not a whole number"):
        Integer("a", "0", 3)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="time zone"):
        Timestamp("a", datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 2))
    with pytest.raises(SchemaError, match="categories is not a list"):
        Categorical("a", 3)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="format does not describe"):
        Date("a", date(2020, 1, 1), date(2020, 1, 2), format=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no column 'b'"):
        Schema.coded({"a": 2}).column("b")


def test_the_examples_of_the_reference_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (Path(__file__).parents[2] / "docs" / "schema.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(toml|python)\n(.*?)```", text, re.DOTALL)
    assert [kind for kind, _ in blocks] == ["toml", "toml", "python", "python"]
    schema = Schema.from_toml(blocks[0][1])
    assert (schema.draft, schema.person, schema.ignore) == (False, "patient_id", ("note",))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(blocks[3][1], names)
    assert Schema.load("schema.toml") == names["schema"]
    known = {f.name for kind in KINDS.values() for f in fields(kind)}
    assert all(f"`{key}`" in text or f"`{key} = " in text for key in known)


def test_no_edges_are_one_bin_in_the_file_too() -> None:
    column = Integer("x", 0, 100, edges=[])
    assert column == Integer("x", 0, 100, bins=1)
    schema = Schema([column])
    assert Schema.from_toml(schema.to_toml()) == schema
