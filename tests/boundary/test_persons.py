"""Identifiers of persons: one form for each, placeholders name nobody, and doubts reach the custodian."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import margrave
import margrave.cli.main
from margrave.cli.main import run
from margrave.data import read_table
from margrave.errors import DataError, PersonWarning, SchemaError
from margrave.profiling import check_table
from margrave.schema import Integer, Schema

SCHEMA = Schema([Integer("age", 0, 9)], person="who")
ACUTE = "Jos\u00e9"


def persons(who: Any, schema: Schema = SCHEMA) -> int:
    """How many persons a table has: its rows once each person keeps one."""
    return read_table(pa.table({"who": who, "age": [1] * len(who)}), schema).bounded(1).rows()


ONE_PERSON = {
    "composed and decomposed": [ACUTE, unicodedata.normalize("NFD", ACUTE)],
    "a zero width space": ["P1", "P\u200b1", "\u200bP1"],
    "a joiner and a soft hyphen": ["P1", "P\u200d1", "P\u00ad1"],
    "a mark of the byte order": ["P1", "\ufeffP1"],
    "marks of direction": ["P1", "\u200eP1\u200f", "\u202aP1\u202c"],
    "control characters": ["P1", "P1\x00", "P1\x00\x00", "\x01P1", "P\x7f1"],
    "marks that are not seen": ["P1", "P1\ufe0f", "P\u034f1", "P1\U000e0100"],
    "blanks of every kind": ["P1", " P1\t", "\u00a0P1\u2003", "P1\u200b "],
}


@pytest.mark.parametrize("case", ONE_PERSON)
def test_one_identifier_written_in_several_ways_is_one_person(case: str) -> None:
    assert persons(ONE_PERSON[case]) == 1


def test_other_identifiers_stay_apart() -> None:
    with pytest.warns(PersonWarning, match="4 of the 5 identifiers"):
        assert persons(["P1", "p1", "P01", "\uff30\uff11", "P 1"]) == 5


NOBODY = [
    "unknown", "Unknown", "UNKNOWN", "none", "None", "nil", "n/a", "N/A", "#N/A", "NA", "nan", "NaT", "NULL", "(null)",
    "\\N", "missing", "undefined", "?", "-", "--", ".", "...", "*", "_", "", " ", "\u200b", "\u2014", "0", "00000",
    "0.0", "-0", "-1", "-9", "-99", "-1.0", " unknown ", "un\u200bknown", "unbekannt", "not available", "#VALUE!",
]  # fmt: skip


@pytest.mark.parametrize("text", NOBODY)
def test_a_placeholder_names_nobody(text: str) -> None:
    with pytest.raises(
        DataError, match=r'2 values missing in the column of persons.*person_accepts = \["0"\]'
    ):
        persons(["P1", text, text])


@pytest.mark.parametrize(
    "zeros", [[0, 1, 0], [0.0, 1.0, 0.0], [-1, 1, -1], np.array([0, 1, 0], np.uint8)]
)
def test_a_placeholder_among_numbers_too(zeros: Any) -> None:
    with pytest.raises(DataError, match="2 values missing in the column of persons"):
        persons(zeros)


@pytest.mark.parametrize(
    "text",
    [
        "999",
        "9999999",
        "99",
        "1",
        "007",
        "P0",
        "0A",
        "Noone",
        "Nonesuch",
        "A-1",
        "1-1",
        "Null, Ann",
        "N",
    ],
)
def test_what_registers_use_is_a_person(text: str) -> None:
    assert persons(["P1", text, text]) == 2


def test_a_placeholder_that_is_declared_is_a_person(tmp_path: Path) -> None:
    schema = replace(SCHEMA, person_accepts=["0", "-1", " unknown "])
    assert persons([0, 1, -1, 0, 1, -1], schema) == 3
    assert persons(["unknown", "un\u200bknown", "P1"], schema) == 2
    with pytest.raises(DataError, match="1 value missing in the column of persons"):
        persons(["unknown", "none"], schema)
    schema.save(tmp_path / "schema.toml")
    assert 'person_accepts = ["0", "-1", "unknown"]' in (tmp_path / "schema.toml").read_text(
        encoding="utf-8"
    )
    assert Schema.load(tmp_path / "schema.toml") == schema != SCHEMA
    assert schema.hash() != SCHEMA.hash()
    assert "person_accepts" not in SCHEMA.to_toml()


WRONG: dict[str, tuple[str, str]] = {
    "an identifier": (
        'person = "who"\nperson_accepts = ["NHS-7719283"]',
        "Text 1 of person_accepts is not taken for",
    ),
    "no list": ('person = "who"\nperson_accepts = "0"', "not a list of texts"),
    "numbers": ('person = "who"\nperson_accepts = [0]', "not a list of texts"),
    "no persons": ('person_accepts = ["0"]', "names no column of persons"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_declared_is_checked(case: str) -> None:
    """An identifier in the schema would be published, and no message quotes it."""
    head, told = WRONG[case]
    text = f'[schema]\nversion = 1\n{head}\n[[column]]\nname = "age"\nkind = "integer"\nlow = 0\nhigh = 9\n'
    with pytest.raises(SchemaError, match=told) as raised:
        Schema.from_toml(text)
    assert "NHS" not in str(raised.value)


SHORT_FLOATS: dict[str, Callable[[Path, str], Any]] = {
    "pyarrow": lambda _, kind: pa.table({"who": np.array([1, 2], kind), "age": [1, 2]}),
    "pandas": lambda _, kind: pd.DataFrame({"who": np.array([1, 2], kind), "age": [1, 2]}),
    "a dictionary": lambda _, kind: pa.table(
        {"who": pa.array(np.array([1, 2], kind)).dictionary_encode(), "age": [1, 2]}
    ),
}


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("source", ["pyarrow", "pandas"])
def test_short_floats_are_no_identifiers(tmp_path: Path, source: str, kind: str) -> None:
    table = SHORT_FLOATS[source](tmp_path, kind)
    with pytest.raises(DataError, match=rf"floats of {kind[-2:]} bits.*as text"):
        read_table(table, SCHEMA)


def test_short_floats_in_files_and_queries(tmp_path: Path) -> None:
    pq.write_table(SHORT_FLOATS["pyarrow"](tmp_path, "float32"), tmp_path / "t.parquet")
    query = duckdb.connect().sql("SELECT 16777217::FLOAT AS who, 1 AS age")
    for source in (
        tmp_path / "t.parquet",
        query,
        SHORT_FLOATS["a dictionary"](tmp_path, "float32"),
    ):
        with pytest.raises(DataError, match="floats of 32 bits"):
            read_table(source, SCHEMA)
        with pytest.raises(DataError, match="floats of 32 bits"):
            check_table(source, SCHEMA)
    assert persons([1.0, 2.0]) == 2


# --- doubts -----------------------------------------------------------------------------------------------------------

ALIKE = ["P1", "p1", "P01", "\uff30\uff11", *map(str, range(100, 140))]
OFTEN = ["999"] * 30 + list(map(str, range(100, 140)))
DOUBTS = {
    "alike": (ALIKE, "4 of the 44 identifiers of persons equal another"),
    "often": (OFTEN, "One person has 30 of"),
}


@pytest.mark.parametrize("case", DOUBTS)
def test_doubts_are_told_where_a_table_is_read(case: str) -> None:
    who, told = DOUBTS[case]
    frame = pa.table({"who": who, "age": [1] * len(who)})
    assert any(alarm.startswith(told) for alarm in check_table(frame, SCHEMA).alarms)
    with pytest.warns(PersonWarning, match=told):
        read_table(frame, SCHEMA)
    with pytest.warns(PersonWarning, match=told):
        release = margrave.synthesize(
            frame, SCHEMA, epsilon=1.0, delta=1e-9, unit="add-remove-person:3"
        )
    assert told[:12] not in str(release.certificate())


@pytest.mark.parametrize("options", [[], ["--json"]])
@pytest.mark.parametrize("case", DOUBTS)
def test_doubts_are_told_by_the_command_and_are_in_no_output(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    case: str,
    options: list[str],
) -> None:
    who, told = DOUBTS[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(
        "who,age\n" + "".join(f"{w},1\n" for w in who), encoding="utf-8"
    )
    SCHEMA.save("schema.toml")
    outputs = ["-o", "rows.csv", "--release", "r.margrave", "--report", "r.html", "-n", "5"]
    unit = [
        "--unit",
        "add-remove-person:2",
        "--epsilon",
        "1",
        "--delta",
        "1e-9",
        "--mechanism",
        "independent",
    ]
    for _ in range(2):  # every time, not once
        arguments = [
            "synthesize",
            "t.csv",
            "--schema",
            "schema.toml",
            *unit,
            *outputs,
            *options,
            "--overwrite",
        ]
        assert run(arguments) == 0
        out, err = capsys.readouterr()
        assert err.count(f"LOOK AT THIS FIRST. {told}") == 1
        assert "NOT PRIVATE" in err
        assert told not in out
    for name in ("rows.csv", "r.margrave", "r.html"):
        assert told.encode() not in (tmp_path / name).read_bytes()


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        (Schema([Integer("age", 0, 9)], ignore=["note", "patient_id"]), "ignored"),
        (Schema([Integer("age", 0, 9)], ignore=["id", "client", "PatientID"]), "ignored"),
        (Schema([Integer("age", 0, 9), Integer("patient_id", 0, 99)]), "synthesized"),
        (Schema([Integer("age", 0, 9)], ignore=["note", "id", "zip"]), ""),
        (Schema([Integer("age", 0, 9)], ignore=["mrn"], accepted=["person: mrn"]), ""),
        (Schema([Integer("age", 0, 9)], ignore=["mrn"], person="who"), ""),
    ],
    ids=["ignored", "best name", "synthesized", "other names", "accepted", "has persons"],
)
def test_a_name_of_persons_that_the_schema_does_not_use_is_noted_without_a_row(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    schema: Schema,
    named: str,
) -> None:
    """``plan`` has no table; ``synthesize`` says it before it looks for its table."""
    monkeypatch.chdir(tmp_path)
    schema.save("schema.toml")
    words = [
        "--schema",
        "schema.toml",
        "--epsilon",
        "1",
        "--delta",
        "1e-9",
        "--unit",
        "replace-row",
    ]
    assert run(["plan", *words, "-m", "independent"]) == 0
    planned = capsys.readouterr()
    assert run(["synthesize", "none.csv", *words, "-m", "independent", "-o", "o.csv"]) == 4
    for said in (planned.err, capsys.readouterr().err):
        assert said.count("LOOK AT THIS FIRST.") == bool(named)
        if named:
            name = "PatientID" if "PatientID" in schema.ignore else "patient_id"
            assert (
                f"Column {name!r} is {named}, and its name suggests that it says whose row it is."
                in said
            )
            assert f'write person = "{name}" in [schema]' in said
            assert f'add "person: {name}" to accepted' in said


def test_other_warnings_are_shown_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(*_: Any, **__: Any) -> int:
        warnings.warn("something else", RuntimeWarning, stacklevel=1)
        return 0

    monkeypatch.setattr(margrave.cli.main.cli, "main", warn)
    monkeypatch.setenv("MARGRAVE_TRACEBACK", "1")
    with pytest.raises(RuntimeWarning, match="something else"):  # an error in tests, as everywhere
        run(["plan"])
    with pytest.warns(RuntimeWarning, match="something else"):
        run(["plan"])


def test_few_rows_of_each_raise_no_doubt() -> None:
    read_table(pa.table({"who": [f"P{i % 30}" for i in range(90)], "age": [1] * 90}), SCHEMA)
