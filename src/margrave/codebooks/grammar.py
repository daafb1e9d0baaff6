"""The JSON Schema of schema files, with which editors complete and check them."""

from __future__ import annotations

from dataclasses import MISSING, Field
from typing import Any

from margrave.schema.kinds import KINDS
from margrave.schema.learn import Learn
from margrave.schema.sources import ColumnSource
from margrave.schema.toml import VERSION, keys_of


def schema_grammar() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of margrave's schema files.

    TOML's dates and times are strings in it, as editors read them.

    Example:
        >>> schema_grammar()["required"]
        ['schema', 'column']
    """
    names = _names()
    head = {
        "version": {"const": VERSION}, "draft": {"type": "boolean"}, "person": _text(), "person_accepts": names,
        "ignore": names, "accepted": names, "files": {"type": "array", "items": {"type": "object"}},
    }  # fmt: skip
    columns = [_column(kind, of) for kind, of in KINDS.items()]
    columns += [_column(kind, Learn, learn=True) for kind in (*Learn.numbers, "categorical")]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A margrave schema",
        "type": "object",
        "required": ["schema", "column"],
        "additionalProperties": False,
        "properties": {
            "schema": _object(head, ["version"]),
            "column": {"type": "array", "minItems": 1, "items": {"oneOf": columns}},
            "constraint": {"type": "array", "items": {"oneOf": _constraints()}},
        },
    }


def _column(kind: str, of: type[Any], *, learn: bool = False) -> dict[str, Any]:
    found = keys_of(of)
    properties = {"kind": {"const": kind}} | {key: _type(entry) for key, entry in found.items()}
    required = ["kind", *(key for key, entry in found.items() if entry.default is MISSING)]
    if learn:
        properties |= {"learn": {"const": True}, "missing": {"const": True}}
        required.append("learn")
    sources = {
        "source": {"enum": list(ColumnSource.kinds)}, "read": _names(), "cite": _text(),
        "missing_codes": _names(), "public": _names(), "title": _text(),
        "labels": {"type": "object", "additionalProperties": _text()},
    }  # fmt: skip
    return _object(properties | sources, required)


def _type(entry: Field[Any]) -> dict[str, Any]:
    written = str(entry.type)
    if entry.name == "categories":
        files = {
            "type": "object",
            "properties": {"file": _text(), "column": _text()},
            "required": ["file"],
        }
        return {"anyOf": [{"type": "array", "items": _value()}, _text(), files]}
    if entry.name == "same":
        one = [{"const": "case"}, {"type": "object", "additionalProperties": _text()}]
        return {"anyOf": [*one, {"type": "array", "items": {"anyOf": one}}]}
    if entry.name == "outside":
        return {"enum": ["clip", "other", "missing", "refuse"]}
    if written.startswith("Sequence"):
        return {"type": "array", "items": _value()}
    if written.startswith("bool"):
        return {"type": "boolean"}
    if written.startswith("int"):
        return {"type": "integer"}
    if written.startswith("float"):
        return {"type": "number"}
    return _text() if written.startswith("str") else _value()


def _constraints() -> list[dict[str, Any]]:
    violating = {"violating": {"enum": ["keep", "refuse"]}}
    names = _names(2)
    span = _object({"from": _value(), "to": _value()}, [])
    entry = {
        "anyOf": [
            _value(),
            {"type": "boolean"},
            span,
            _object({"missing": {"const": True}}, ["missing"]),
        ]
    }
    ranges = {
        "type": "object",
        "additionalProperties": {"anyOf": [entry, {"type": "array", "items": entry}]},
    }
    combinations = {"anyOf": [_text(), {"type": "array", "items": {"type": "array"}}]}
    return [
        _object({"impossible": ranges, **violating}, ["impossible"]),
        _object({"columns": names, "allowed": combinations, **violating}, ["columns", "allowed"]),
        _object({"columns": names, "depends": combinations, **violating}, ["columns", "depends"]),
        _object({"ordered": names, **violating}, ["ordered"]),
    ]


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object", "properties": properties, "required": required, "additionalProperties": False,
    }  # fmt: skip


def _text() -> dict[str, Any]:
    return {"type": "string"}


def _value() -> dict[str, Any]:
    return {"type": ["number", "string"]}


def _names(least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": _text(), "minItems": least}
