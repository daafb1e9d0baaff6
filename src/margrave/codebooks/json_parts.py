"""Parts of JSON code books."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from margrave.errors import SchemaError, did_you_mean


def check_words(
    column: str, words: Iterable[object], known: Sequence[str], what: str, standard: str
) -> None:
    """Raise ``SchemaError`` for a word that a standard does not have: a misspelling would lose what it states."""
    for word in words:
        if word not in known:
            raise SchemaError(
                f"In the code book, column {column!r} has the {what} {str(word)[:40]!r}, which is not one of"
                f" {standard}.",
                remedy=f"{did_you_mean(word, known)}Correct it.",
            )


def kind_of(datatype: str) -> str:
    """Return the kind of variable for a Frictionless type or a CSVW datatype; "out" for others."""
    kinds = {
        "integer": "integer", "int": "integer", "long": "integer", "short": "integer", "byte": "integer",
        "year": "integer",
        "nonNegativeInteger": "integer", "positiveInteger": "integer", "unsignedInt": "integer",
        "number": "real", "decimal": "real", "double": "real", "float": "real",
        "boolean": "boolean", "date": "date", "datetime": "timestamp", "dateTime": "timestamp",
        "dateTimeStamp": "timestamp", "string": "text", "any": "text", "normalizedString": "text", "token": "text",
        "gYear": "integer",
    }  # fmt: skip
    return kinds.get(datatype, "out")


def parse_json(content: str) -> Mapping[str, Any]:
    """Return the object of a JSON file."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise SchemaError("The code book is not valid JSON.") from None
    return object_of(found, "the code book")


def object_of(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SchemaError(f"In the code book, {what} is not an object.")
    return value


def objects_of(value: Any, what: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value:
        raise SchemaError(f"In the code book, {what} is not a list of objects.")
    return [object_of(v, f"an entry of {what}") for v in value]


def text_of(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value.strip():
        raise SchemaError(f"In the code book, a column has no {key}.")
    return value


def label_of(entry: Mapping[str, Any]) -> str:
    said = entry.get("title") or entry.get("description") or entry.get("dc:description") or ""
    return said if isinstance(said, str) else ""
