"""Frictionless Table Schemas and data packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from margrave.codebooks.json_parts import (
    bound_of,
    check_spelling,
    check_words,
    flag_of,
    kind_of,
    label_of,
    names_of,
    not_in_schema,
    object_of,
    objects_of,
    text_of,
    truths_of,
    with_labels,
    words_of,
)
from margrave.codebooks.variable import Phrase, Variable
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
        found = resources[0].get("schema") or {}
        if isinstance(found, str):
            raise SchemaError(
                "The data package names another file as the schema of its resource.",
                remedy="Import that file.",
            )
        object_of(found, "the schema of the resource")
    keys = names_of(found.get("primaryKey", []), "primaryKey")
    others = found.get("foreignKeys", [])
    others = objects_of(others, "foreignKeys") if others else []
    foreign = [n for key in others for n in names_of(key.get("fields"), "fields of a foreign key")]
    empty = _missing_codes(found, "missingValues")
    return [_field(f, keys, foreign, empty) for f in objects_of(found.get("fields"), "fields")]


def _field(
    entry: Mapping[str, Any], keys: Sequence[str], foreign: Sequence[str], empty: Mapping[str, str]
) -> Variable:
    name, rules = text_of(entry, "name"), object_of(entry.get("constraints", {}), "constraints")
    _check_words(name, entry, rules)
    kind, step = kind_of(str(entry.get("type", "string"))), int(entry.get("type") == "integer")
    form = str(entry.get("format", "default")).removeprefix("fmt:")
    if kind in ("date", "timestamp") and form not in ("default", "any") and "%" not in form:
        raise SchemaError(
            f"The code book's format of {name!r}, {form[:40]!r}, is not one that margrave reads.",
            remedy='Use "default" or a pattern such as "%d/%m/%Y".',
        )
    if kind == "text" and form in ("email", "uri", "uuid", "binary"):
        kind = "out"
    pairs, questions = _categories(name, entry, rules), []
    if kind == "boolean":
        words = [
            words_of(entry.get(key, default), f"{key} of column {name!r}")
            for key, default in (("falseValues", ["false"]), ("trueValues", ["true"]))
        ]
        pairs = truths_of(*words)
    if kind in ("date", "timestamp") and form == "any":
        questions.append(Phrase.DATES)
    written = entry.get("decimalChar", ".") != "." or entry.get("groupChar")
    if kind in ("integer", "real") and (written or entry.get("bareNumber") is False):
        questions.append(Phrase.SEPARATORS)
    lost = [k for k in ("minLength", "maxLength", "pattern", "jsonSchema") if k in rules]
    notes = not_in_schema([*lost, *(["foreignKeys"] if name in foreign else [])])
    if "missingValues" in entry:
        empty = _missing_codes(entry, f"missingValues of column {name!r}")
    return Variable(
        name, kind, label_of(entry), pairs, flag_of(name, entry, "categoriesOrdered"),
        bound_of(rules, ["minimum"], "exclusiveMinimum", step),
        bound_of(rules, ["maximum"], "exclusiveMaximum", -step),
        tuple(empty), form if kind in ("date", "timestamp") and "%" in form else None,
        identifier=[name] == keys or flag_of(name, rules, "unique"),
        required=flag_of(name, rules, "required"), notes=notes, questions=questions, missing_labels=empty,
    )  # fmt: skip


def _missing_codes(entry: Mapping[str, Any], what: str) -> dict[str, str]:
    """Return the texts that stand for a missing value, each with its label ("" if it has none)."""
    listed, labels = entry.get("missingValues", []), list[str]()
    if isinstance(listed, list):
        labels = [str(v.get("label") or "") if isinstance(v, dict) else "" for v in listed]
        listed = [v.get("value") if isinstance(v, dict) else v for v in listed]
    pairs = zip(words_of(listed, what), labels, strict=True)
    return {code: label for code, label in pairs if code.strip()}


def _categories(name: str, entry: Mapping[str, Any], rules: Mapping[str, Any]) -> dict[str, str]:
    """Return the categories with their labels; an enumeration restricts them."""
    listed, what = entry.get("categories", []), f"categories of column {name!r}"
    if isinstance(listed, list):
        pairs = [
            (c.get("value"), c.get("label")) if isinstance(c, dict) else (c, "") for c in listed
        ]
        labels = with_labels(
            name,
            zip(
                words_of([c for c, _ in pairs], what), (str(t or "") for _, t in pairs), strict=True
            ),
        )
    else:
        raise SchemaError(
            f"In the code book, {what} is not a list of values.", remedy=Phrase.CORRECT
        )
    if "enum" not in rules:
        return labels
    values = words_of(rules["enum"], f"the enum of column {name!r}")
    if labels and not set(values) <= set(labels):
        raise SchemaError(
            f"In the code book, column {name!r} has an enum with values that are not among its categories.",
            remedy="Make the two agree.",
        )
    return {code: labels.get(code, "") for code in (labels or values) if code in values}


def _check_words(name: str, entry: Mapping[str, Any], rules: Mapping[str, Any]) -> None:
    """Raise ``SchemaError`` for a type, a constraint or a key that the standard does not have."""
    types = (
        "string", "number", "integer", "boolean", "object", "array", "list", "date", "time", "datetime", "year",
        "yearmonth", "duration", "geopoint", "geojson", "any",
    )  # fmt: skip
    constraints = (
        "required", "unique", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength",
        "pattern", "enum", "jsonSchema",
    )  # fmt: skip
    keys = (
        "constraints", "missingValues", "categories", "categoriesOrdered", "type", "format", "trueValues",
        "falseValues", "decimalChar", "groupChar", "bareNumber",
    )  # fmt: skip
    check_words(name, [entry.get("type", "string")], types, "type", "Table Schema")
    check_words(name, rules, constraints, "constraint", "Table Schema")
    check_spelling(name, entry, keys, "Table Schema")
