"""The certificate names what both tables of the promise must pass: exactly what refuses a table by its rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from html import unescape
from pathlib import Path

import pyarrow as pa
import pytest

from margrave import read_table
from margrave.cli.main import run
from margrave.errors import DataError
from margrave.mechanisms import Independent
from margrave.release.preconditions import preconditions
from margrave.report import render
from margrave.report.wording import conditions
from margrave.row_checks import check_rows
from margrave.schema import (
    Boolean,
    Categorical,
    Coded,
    Column,
    Date,
    Impossible,
    Integer,
    Ordinal,
    Real,
    Schema,
    Timestamp,
)
from tests.support import fake_model

CLERK = ["clerk", "nurse"]

COLUMNS: list[tuple[Column, str, str]] = [
    (Categorical("a", CLERK), "clerk", "cook"),
    (Categorical("a", CLERK, other=True), "clerk", "cook"),
    (Categorical("a", CLERK, missing=True), "clerk", "cook"),
    (Categorical("a", CLERK, missing=True, outside="refuse"), "clerk", "cook"),
    (Categorical("a", CLERK, other=True, outside="refuse"), "clerk", "cook"),
    (Ordinal("a", CLERK), "clerk", "cook"),
    (Ordinal("a", CLERK, missing=True), "clerk", "cook"),
    (Boolean("a"), "true", "maybe"),
    (Boolean("a", missing=True), "true", "maybe"),
    (Integer("a", 0, 9), "5", "10"),
    (Integer("a", 0, 9, outside="refuse"), "5", "10"),
    (Integer("a", 0, 9, missing=True, outside="missing"), "5", "10"),
    (Real("a", 0.0, 9.0, bins=3), "5.5", "9.5"),
    (Real("a", 0.0, 9.0, bins=3, missing=True, outside="refuse"), "5.5", "9.5"),
    (Date("a", date(2020, 1, 1), date(2020, 12, 31), bins=4), "2020-05-05", "2021-05-05"),
    (Timestamp("a", datetime(2020, 1, 1), datetime(2020, 12, 31), unit="day", bins=4), "2020-05-05", "2021-05-05"),
    (Coded("a", 3), "1", "3"),
    (Coded("a", 3, outside="clip"), "1", "3"),
    (Coded("a", 3, missing=True), "1", "3"),
]  # fmt: skip
"""Kinds and policies, each with a value that the schema has and one outside of it."""


def refused(schema: Schema, values: Sequence[str], **others: Sequence[str]) -> bool:
    try:
        read_table(pa.table({"a": values, **others}), schema)
    except DataError:
        return True
    return False


@pytest.mark.parametrize(("column", "inside", "outside"), COLUMNS, ids=lambda x: repr(x)[:60])
def test_a_column_is_named_if_its_rows_can_refuse_the_table(
    column: Column, inside: str, outside: str
) -> None:
    schema = Schema((column,))
    found = preconditions(schema)["refused_if"]
    assert not refused(schema, [inside] * 3)
    assert refused(schema, [inside, outside]) == (found["value_outside_in"] == ["a"])
    assert refused(schema, [inside, ""]) == (found["value_missing_in"] == ["a"])
    assert refused(schema, [outside] * 12) == (found["no_known_value_in"] == ["a"])


def test_a_table_without_rows_is_refused_and_so_it_is_said() -> None:
    schema = Schema((Categorical("a", CLERK),))
    empty = read_table(pa.table({"a": pa.array([], pa.string())}), schema)
    with pytest.raises(DataError, match="no rows"):
        check_rows(empty, Independent())
    assert preconditions(schema)["refused_if"]["no_rows"]
    for schema_refuses in (True, False):
        found = preconditions(schema)
        found["refused_if"]["no_rows"] = schema_refuses
        assert ("the table has rows" in conditions(found, 1)) == schema_refuses


@pytest.mark.parametrize("policy", ["keep", "refuse"])
def test_a_constraint_is_named_if_its_rows_can_refuse_the_table(policy: str) -> None:
    impossible = Impossible({"a": "nurse", "b": "nurse"}, violating=policy)
    schema = Schema((Categorical("a", CLERK), Categorical("b", CLERK)), constraints=(impossible,))
    found = preconditions(schema)["refused_if"]["row_violates"]
    assert (
        refused(schema, ["clerk", "nurse"], b=["clerk", "nurse"])
        == bool(found)
        == (policy == "refuse")
    )
    assert all("a" in name and "b" in name for name in found)


def test_a_column_of_persons_is_named() -> None:
    schema = Schema((Categorical("a", CLERK),), person="who")
    assert preconditions(schema)["refused_if"]["row_without_person_in"] == "who"
    assert refused(schema, ["clerk", "clerk"], who=["p1", ""])


def test_the_report_and_the_certificate_show_them() -> None:
    release = fake_model.release()
    strict = replace(release, schema=replace(release.schema, person="patient"))
    found = strict.certificate()["preconditions"]
    assert json.loads(json.dumps(found)) == found
    told = conditions(found, len(strict.schema.columns))
    assert "every row has a person in patient" in told
    assert told in unescape(render(strict))


def test_the_command_line_shows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Schema((Categorical("age", CLERK), Integer("sex", 0, 3))).save("schema.toml")
    Path("table.csv").write_text("age,sex\nclerk,1\nnurse,2\n", encoding="utf-8")
    options = [
        "-s",
        "schema.toml",
        "-e",
        "1",
        "--delta",
        "1e-9",
        "-m",
        "independent",
        "--release",
        "r.margrave",
    ]
    assert run(["synthesize", "table.csv", *options]) == 0
    capsys.readouterr()
    assert run(["certificate", "r.margrave", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["preconditions"]
    assert found == {
        "preflight": "custodian",
        "refused_if": {
            "no_rows": True,
            "no_known_value_in": ["age", "sex"],
            "value_outside_in": ["age"],
            "value_missing_in": ["age", "sex"],
            "row_violates": [],
            "row_without_person_in": None,
        },
    }
    assert run(["certificate", "r.margrave"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "no value of age lies outside the schema; no value of any column is missing" in shown
