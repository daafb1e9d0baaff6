"""Parts of JSON code books."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from margrave.codebooks.variable import Phrase
from margrave.errors import SchemaError, did_you_mean
from margrave.schema.categorical import NO, YES
from margrave.schema.parsing import number


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


def check_spelling(column: str, words: Iterable[str], known: Sequence[str], standard: str) -> None:
    """Raise ``SchemaError`` for a key that is nearly one of a standard which allows further keys."""
    # Likeness of a misspelling, between 0 and 1.
    min_likeness = 0.85
    for word in words:
        if word not in known and get_close_matches(word, known, 1, min_likeness):
            check_words(column, [word], known, "key", standard)


def kind_of(datatype: str) -> str:
    """Return the kind of variable for a Frictionless type or a CSVW datatype; "out" for others."""
    kinds = {
        "integer": "integer", "int": "integer", "long": "integer", "short": "integer", "byte": "integer",
        "year": "integer",
        "nonNegativeInteger": "integer", "positiveInteger": "integer", "unsignedInt": "integer",
        "nonPositiveInteger": "integer", "negativeInteger": "integer", "unsignedLong": "integer",
        "unsignedShort": "integer", "unsignedByte": "integer",
        "number": "real", "decimal": "real", "double": "real", "float": "real",
        "boolean": "boolean", "date": "date", "datetime": "timestamp", "dateTime": "timestamp",
        "dateTimeStamp": "timestamp", "string": "text", "any": "text", "normalizedString": "text", "token": "text",
        "gYear": "integer",
    }  # fmt: skip
    return kinds.get(datatype, "out")


def parse_json(content: str) -> Mapping[str, Any]:
    """Return the object of a JSON file."""
    try:
        found = json.loads(content, object_pairs_hook=_without_repeats)
    except SchemaError:
        raise
    except (ValueError, RecursionError) as error:
        line = f": line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise SchemaError(
            f"The code book is not valid JSON{line}.", remedy="Correct it, or export it anew."
        ) from None
    return object_of(found, "the code book")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise SchemaError(
            f"In the code book, an object has the key {twice[:40]!r} twice.",
            remedy="Keep one of the two.",
        )
    return found


def object_of(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SchemaError(f"In the code book, {what} is not an object.", remedy=Phrase.CORRECT)
    return value


def objects_of(value: Any, what: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value:
        raise SchemaError(
            f"In the code book, {what} is not a list of objects.", remedy=Phrase.CORRECT
        )
    return [object_of(v, f"an entry of {what}") for v in value]


def text_of(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value.strip():
        raise SchemaError(f"In the code book, a column has no {key}.", remedy="Give it one.")
    return value


def words_of(value: Any, what: str) -> list[str]:
    """Return a list of values as texts; true and false are in lower case, as in tables.

    >>> words_of([1, "a", True], "an enum")
    ['1', 'a', 'true']
    """
    if not isinstance(value, list) or not all(isinstance(v, str | int | float) for v in value):
        raise SchemaError(
            f"In the code book, {what} is not a list of values.", remedy=Phrase.CORRECT
        )
    return [str(v).lower() if isinstance(v, bool) else str(v) for v in value]


def names_of(value: Any, what: str) -> list[str]:
    """Return a name, or a list of names, as a list."""
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(v, str) for v in found):
        raise SchemaError(
            f"In the code book, {what} is not a list of names.", remedy=Phrase.CORRECT
        )
    return found


def flag_of(column: str, entry: Mapping[str, Any], key: str) -> bool:
    """Return whether an entry says true."""
    value = entry.get(key, False)
    if not isinstance(value, bool):
        raise SchemaError(
            f"In the code book, {key} of column {column!r} is not true or false.",
            remedy=Phrase.CORRECT,
        )
    return value


def with_labels(column: str, pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return labels by code. Raise ``SchemaError`` for a code that occurs twice with different labels."""
    found: dict[str, str] = {}
    for code, label in pairs:
        if found.setdefault(code, label) != label:
            raise SchemaError(
                f"In the code book, column {column!r} has two labels for the code {code[:40]!r}.",
                remedy="Keep one of the two.",
            )
    return found


def truths_of(false: Sequence[str], true: Sequence[str]) -> dict[str, str]:
    """Return the words of a column of true and false with their meanings; none if margrave reads them as such.

    >>> truths_of(["nein"], ["ja"]), truths_of(["N"], ["Y"])
    ({'nein': 'false', 'ja': 'true'}, {})
    """
    if {w.lower() for w in false} <= {*NO} and {w.lower() for w in true} <= {*YES}:
        return {}
    return dict.fromkeys(false, "false") | dict.fromkeys(true, "true")


def bound_of(rules: Mapping[str, Any], inclusive: Sequence[str], exclusive: str, step: int) -> Any:
    """Return a bound; one that is not a value itself gives the next whole number, if ``step`` is not 0.

    >>> bound_of({"exclusiveMinimum": 0}, ["minimum"], "exclusiveMinimum", 1)
    1
    """
    stated = next((rules[key] for key in inclusive if rules.get(key) is not None), None)
    beyond = rules.get(exclusive)
    if stated is not None or not step:
        return beyond if stated is None else stated
    value = number(None if beyond is None else str(beyond))
    return int(value) + step if value % 1 == 0 else beyond


def not_in_schema(keys: Iterable[str]) -> list[str]:
    """Return a note on keys of the code book that a schema cannot hold.

    >>> not_in_schema(["pattern"]), not_in_schema([])
    (['Not in the schema: pattern'], [])
    """
    listed = ", ".join(keys)
    return [f"Not in the schema: {listed}"] if listed else []


def label_of(entry: Mapping[str, Any]) -> str:
    said = entry.get("title") or entry.get("description") or entry.get("dc:description") or ""
    return said if isinstance(said, str) else ""
