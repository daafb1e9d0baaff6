"""Schemas in other programs' forms, and the grammar of schema files."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from margrave.cli.main import cli
from margrave.codebooks import Form, export_schema, read_code_book, schema_grammar
from margrave.errors import InputError, SchemaError
from margrave.schema import (
    Allowed,
    Boolean,
    Categorical,
    Coded,
    ColumnSource,
    Date,
    Depends,
    Impossible,
    Integer,
    Learn,
    Ordered,
    Ordinal,
    Real,
    Schema,
    Timestamp,
)

ALL = Schema(
    [
        Categorical("town", ["York", "Hull"], missing=True),
        Categorical("job", ["clerk"], other=True, same="case"),
        Ordinal("grade", ["low", "high"]),
        Boolean("smokes", missing=True),
        Integer("age", 0, 110, bins=22),
        Real("fee", 0.0, 9.5, edges=[1.0, 2.5], atoms=[0.0], decimals=2),
        Date("born", date(1900, 1, 1), date(2020, 12, 31)),
        Timestamp("seen", datetime(2020, 1, 1), datetime(2020, 12, 31), unit="hour"),
        Coded("first", 7),
        Coded("last", 7),
        Learn("pay", "real", low=0.0),
        Learn("sort", "categorical", categories=("a",)),
    ],
    person="who",
    ignore=["note"],
    constraints=[
        Impossible({"age": (0, 14), "grade": ["high"]}),
        Depends("town", "grade", {"York": "low", "Hull": "high"}),
        Allowed(["grade", "smokes"], [["low", True], ["high", False]]),
        Ordered(["first", "last"]),
    ],
)


@pytest.mark.parametrize("form", ["table-schema", "sdv"])
def test_an_exported_schema_is_a_code_book(tmp_path: Path, form: Form) -> None:
    file = tmp_path / "exported.json"
    file.write_text(export_schema(ALL, form), encoding="utf-8")
    again = {c.name: c for c in read_code_book(file, ranges_public=True).columns}
    assert again["town"].labels() == ["York", "Hull", "(missing)"]
    assert again["grade"].kind == "ordinal"
    assert (again["age"].low, again["age"].high) == (0, 110)  # type: ignore[attr-defined]
    born = Date("born", date(1900, 1, 1), date(2020, 12, 31))
    assert (again["born"].low, again["born"].high) == (born.low, born.high)  # type: ignore[attr-defined]
    assert again["born"].missing == born.missing
    assert isinstance(again["pay"], Learn)
    assert "who" not in again


def test_values_read_off_the_rows_are_not_exported() -> None:
    marked = replace(ALL, sources={"age": ColumnSource(read=["high"])})
    with pytest.raises(SchemaError, match=r"read off the rows.*'age' .high."):
        export_schema(marked, "table-schema")


@pytest.mark.parametrize("form", ["table-schema", "sdv"])
def test_open_lists_are_learned_again_and_not_closed(tmp_path: Path, form: Form) -> None:
    file = tmp_path / "exported.json"
    file.write_text(export_schema(ALL, form), encoding="utf-8")
    again = {c.name: c for c in read_code_book(file, ranges_public=True).columns}
    assert again["job"] == Learn("job", "categorical")
    assert {c.name for c in ALL.columns if c.missing} <= {n for n, c in again.items() if c.missing}
    assert not again["grade"].missing


def test_the_metadata_of_sdv_have_decimals_and_bounds_in_the_format_of_their_column() -> None:
    found = json.loads(export_schema(ALL, "sdv"))["tables"]["table"]["columns"]
    assert found["fee"]["decimal_places"] == 2
    assert datetime.strptime(found["seen"]["range_min"], found["seen"]["datetime_format"]) == (
        datetime(2020, 1, 1)
    )


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(InputError, match="'xml' is unknown"):
        export_schema(ALL, "xml")  # type: ignore[arg-type]


def accepts(rule: dict[str, Any], value: Any) -> bool:
    """A JSON Schema validator of the keywords that the grammar uses."""
    known = {
        "$schema", "title", "type", "required", "additionalProperties", "properties", "items", "oneOf", "anyOf",
        "const", "enum", "minItems",
    }  # fmt: skip
    assert set(rule) <= known, rule
    kinds = {
        "object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
    }  # fmt: skip
    if "const" in rule and value != rule["const"]:
        return False
    if "enum" in rule and value not in rule["enum"]:
        return False
    if "oneOf" in rule and sum(accepts(r, value) for r in rule["oneOf"]) != 1:
        return False
    if "anyOf" in rule and not any(accepts(r, value) for r in rule["anyOf"]):
        return False
    if "type" in rule:
        named = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
        value_kinds = [k for k in named if isinstance(value, kinds[k])]  # type: ignore[arg-type]
        if not value_kinds or (isinstance(value, bool) and "boolean" not in named):
            return False
    if isinstance(value, dict):
        properties, rest = rule.get("properties", {}), rule.get("additionalProperties", True)
        if not set(rule.get("required", [])) <= set(value):
            return False
        for key, entry in value.items():
            if key in properties:
                if not accepts(properties[key], entry):
                    return False
            elif rest is False or (isinstance(rest, dict) and not accepts(rest, entry)):
                return False
    if isinstance(value, list):
        if len(value) < rule.get("minItems", 0):
            return False
        return all(accepts(rule.get("items", {}), entry) for entry in value)
    return True


def plain(value: Any) -> Any:
    """TOML's dates as strings, as an editor's checker takes them."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value.isoformat() if isinstance(value, date) else value


def test_the_grammar_accepts_every_kind_of_column_and_constraint() -> None:
    written = plain(tomllib.loads(ALL.to_toml()))
    assert accepts(schema_grammar(), written)


@pytest.mark.parametrize(
    "line",
    ['same = ["case", {"clerc" = "clerk"}]\nother = true', "learn = true\nmissing = true"],
)
def test_the_grammar_accepts_what_the_reader_accepts(line: str) -> None:
    head = '[schema]\nversion = 1\n[[column]]\nname = "job"\nkind = "categorical"\n'
    text = f'{head}categories = ["clerk"]\n{line}\n'
    Schema.from_toml(text)
    assert accepts(schema_grammar(), plain(tomllib.loads(text)))


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "whole"},
        {"lowest": 0},
        {"bins": "many"},
        {"outside": "drop"},
        {"learn": True, "bins": 3},
        {"source": "guessed"},
    ],
)
def test_the_grammar_refuses_what_the_reader_refuses(change: dict[str, Any]) -> None:
    column = {"name": "age", "kind": "integer", "low": 0, "high": 9} | change
    written = {"schema": {"version": 1}, "column": [column]}
    assert not accepts(schema_grammar(), written)


def test_the_three_commands(tmp_path: Path) -> None:
    run = CliRunner()
    schema, book, made = (tmp_path / n for n in ("schema.toml", "book.json", "made.toml"))
    ALL.save(schema)
    export = ["schema", "export", "--schema", str(schema), "--form", "sdv", "-o", str(book)]
    done = run.invoke(cli, export)
    assert done.exit_code == 0, done.output
    done = run.invoke(cli, ["schema", "import", str(book), "-o", str(made)])
    assert done.exit_code == 0, done.output
    assert "Not in the code book, to be learned: " in done.output
    assert [c.name for c in Schema.load(made).output_columns] == [c.name for c in ALL.columns]
    done = run.invoke(cli, ["schema", "grammar"])
    assert done.exit_code == 0
    assert json.loads(done.output) == schema_grammar()


def test_an_import_tells_what_is_learned_within_its_bounds(tmp_path: Path) -> None:
    book = tmp_path / "book.json"
    fields = [
        {"name": "crp", "type": "number", "constraints": {"minimum": 0, "maximum": 500}},
        {"name": "cost", "type": "number"},
    ]
    book.write_text(json.dumps({"fields": fields}))
    done = CliRunner().invoke(cli, ["schema", "import", str(book), "-o", str(tmp_path / "s.toml")])
    assert done.exit_code == 0, done.output
    assert "Not in the code book, to be learned: cost." in done.output
    assert "To be learned within what the code book states: crp." in done.output
