"""Titles of columns and labels of categories: kept by every step, and shown wherever a release is."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import margrave
from margrave.codebooks import export_schema, read_code_book
from margrave.errors import DataError, SchemaError
from margrave.evaluation import evaluate
from margrave.release import Release
from margrave.release.catalog_entry import croissant
from margrave.schema import (
    Boolean,
    Categorical,
    ColumnSource,
    Integer,
    Learn,
    Ordinal,
    Schema,
)

LABELS = {"1": "female", "2": "male"}
WARDS = {code: f"the ward of department {code}, {code * 20}" for code in "abcd"}
SCHEMA = Schema(
    [
        Categorical("sex", ["1", "2"]),
        Ordinal("ward", list(WARDS), missing=True),
        Integer("age", 0, 3),
    ],
    sources={
        "sex": ColumnSource(title="Sex of the patient", labels=LABELS),
        "ward": ColumnSource(labels=WARDS),
    },
)
TABLE = pa.table({"sex": ["1", "2"] * 60, "ward": ["a", "b", None] * 40, "age": [0, 1, 2, 3] * 30})


@pytest.fixture(scope="module")
def release() -> Release:
    return margrave.synthesize(TABLE, SCHEMA, epsilon=5.0, delta=1e-6, seed=1)


def test_the_file_has_them_on_a_line_or_on_a_line_each() -> None:
    written = SCHEMA.to_toml()
    assert 'title = "Sex of the patient"\nlabels = {1 = "female", 2 = "male"}\n' in written
    assert f'[column.labels]\na = "{WARDS["a"]}"\n' in written
    assert Schema.from_toml(written) == SCHEMA


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('title = ["a"]', "title is not a text of at most 1,000 characters"),
        ('labels = ["female"]', "labels do not give each category a text"),
        ('labels = {1 = ""}', "labels do not give each category a text"),
        ('labels = {one = "female"}', "labels name 'one', which is not one of its categories"),
        ('label = {1 = "female"}', "Did you mean 'labels'"),
    ],
)
def test_others_are_refused(keys: str, words: str) -> None:
    head = '[schema]\nversion = 1\n[[column]]\nname = "sex"\nkind = "categorical"\ncategories = ["1"]\n'
    with pytest.raises(SchemaError) as refused:
        Schema.from_toml(head + keys)
    assert words in f"{refused.value.message} {refused.value.remedy}"


def test_a_number_has_no_labels() -> None:
    with pytest.raises(SchemaError, match="it has labels, and no categories"):
        Schema([Integer("age", 0, 9)], sources={"age": ColumnSource(labels={"0": "newborn"})})


def test_another_declaration_keeps_those_of_categories_that_are_left() -> None:
    declared = SCHEMA.declare(Categorical("sex", ["2", "3"]))
    assert declared.source("sex") == ColumnSource(title="Sex of the patient", labels={"2": "male"})
    assert not SCHEMA.declare(Boolean("sex")).source("sex").labels
    assert SCHEMA.drop("ward").source("sex") == SCHEMA.select(["sex"]).source("sex")


def test_a_table_of_labels_is_recognized() -> None:
    table = pa.table({"sex": ["Female", "male"] * 60, "ward": ["a"] * 120, "age": [0] * 120})
    with pytest.raises(DataError, match="All look like the label of a category: write the categor"):
        SCHEMA.check(table)


def test_learned_categories_have_their_labels() -> None:
    open_schema = Schema(
        [Learn("sex", "categorical")], sources={"sex": ColumnSource(title="Sex", labels=LABELS)}
    )
    (learned,) = [
        open_schema.with_learned([Categorical("sex", ["2"], other=True, missing=True)]).source(
            "sex"
        )
    ]
    assert (learned.of, learned.title, learned.labels) == ("learned", "Sex", {"2": "male"})


def test_a_release_shows_them(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "r.margrave")
    loaded = Release.load(tmp_path / "r.margrave")
    assert loaded.schema.source("ward").labels == WARDS
    shares = [n["statistic"] for n in loaded.numbers().to_pylist() if n["column"] == "sex"]
    assert shares == ["share of 1 (female)", "share of 2 (male)"]
    groups = set(loaded.numbers(columns=["age"], by=["sex"]).column("group").to_pylist())
    assert groups == {"sex = 1 (female)", "sex = 2 (male)"}
    page = loaded.report().html
    assert "Sex of the patient" in page
    assert "1 (female)" in page
    assert set(loaded.sample(50).column("sex").to_pylist()) <= {"1", "2"}, "rows hold codes"


def test_an_analysis_finds_the_number_of_a_labelled_group(release: Release) -> None:
    found = margrave.analyze(release, margrave.inference.Proportion("sex", "1"), seed=1)
    assert not any("share of" in note for note in found.notes)


def test_evaluation_and_catalog_show_them(release: Release, tmp_path: Path) -> None:
    rows = release.sample(120, seed=1)
    pa.parquet.write_table(rows, tmp_path / "rows.parquet")
    assert "1 (female)" in evaluate(TABLE, rows, schema=SCHEMA).report().html
    entry = json.loads(
        croissant(
            release, [tmp_path / "rows.parquet"], name="visits", license="CC0", creator="Office", url="https://a.example"
        )
    )  # fmt: skip
    values, *_, rows_set = entry["recordSet"]
    assert [v["values1/meaning"] for v in values["data"]] == ["female", "male"]
    assert rows_set["field"][0]["description"].startswith("Sex of the patient. Categorical")


def test_table_schema_takes_them_out_and_in(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text(export_schema(SCHEMA, "table-schema"), encoding="utf-8")
    found = read_code_book(file, cite="p. 1").source("sex")
    assert found == ColumnSource(cite="p. 1", title="Sex of the patient", labels=LABELS)
