"""Frictionless Table Schemas and data packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from margrave.codebooks.json_parts import (
    check_words,
    kind_of,
    label_of,
    object_of,
    objects_of,
    text_of,
)
from margrave.codebooks.variable import Variable
from margrave.errors import SchemaError


def read_table_schema(found: Mapping[str, Any]) -> list[Variable]:
    """Return the variables of a Frictionless Table Schema, or of the one resource of a data package."""
    if "resources" in found:
        resources = objects_of(found["resources"], "resources")
        if len(resources) != 1:
            raise SchemaError(
                f"The data package has {len(resources)} resources.",
                remedy="Give the Table Schema of one: the object under its schema.",
            )
        found = object_of(resources[0].get("schema"), "the schema of the resource")
    keys = found.get("primaryKey", [])
    keys = [keys] if isinstance(keys, str) else list(keys)
    empty = [str(m) for m in found.get("missingValues", []) if str(m).strip()]
    return [_field(f, keys, empty) for f in objects_of(found.get("fields"), "fields")]


def _field(entry: Mapping[str, Any], keys: Sequence[str], empty: Sequence[str]) -> Variable:
    name, rules = text_of(entry, "name"), object_of(entry.get("constraints", {}), "constraints")
    kind = kind_of(str(entry.get("type", "string")))
    _check_words(name, entry, rules)
    listed = entry.get("categories", rules.get("enum", []))
    pairs = [
        (str(c["value"]), str(c.get("label", ""))) if isinstance(c, dict) else (str(c), "")
        for c in listed
    ]
    form = entry.get("format", "default")
    written = kind in ("date", "timestamp") and str(form).startswith("%")
    return Variable(
        name, kind, label_of(entry), dict(pairs), bool(entry.get("categoriesOrdered", False)),
        rules.get("minimum"), rules.get("maximum"),
        tuple(str(m) for m in entry.get("missingValues", empty) if str(m).strip()),
        form if written else None,
        identifier=[name] == list(keys) or bool(rules.get("unique", False)),
        required=bool(rules.get("required", False)),
    )  # fmt: skip


def _check_words(name: str, entry: Mapping[str, Any], rules: Mapping[str, Any]) -> None:
    """Raise ``SchemaError`` for a type or a constraint that the standard does not have."""
    types = (
        "string", "number", "integer", "boolean", "object", "array", "list", "date", "time", "datetime", "year",
        "yearmonth", "duration", "geopoint", "geojson", "any",
    )  # fmt: skip
    constraints = (
        "required", "unique", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength",
        "pattern", "enum", "jsonSchema",
    )  # fmt: skip
    check_words(name, [entry.get("type", "string")], types, "type", "Table Schema")
    check_words(name, rules, constraints, "constraint", "Table Schema")
