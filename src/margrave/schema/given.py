"""A schema as an argument: the object, or the path of its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from margrave.error_sanitizer import reveal_table
from margrave.errors import InputError
from margrave.schema import validators
from margrave.schema.schema import Schema


def schema_of(schema: Schema | str | Path, *, table: Any = None) -> Schema:
    """Return a schema as it is or from its file, which must not name ``table``; else raise
    ``InputError``.
    """
    if isinstance(reveal_table(table), Schema) and not isinstance(schema, Schema):
        raise InputError(
            "The table and the schema are exchanged.",
            remedy="Give the table first, and the schema second.",
        )
    return schema if isinstance(schema, Schema) else Schema.load(schema, table=table)


def check_schema_given(schema: object) -> None:
    """Raise ``InputError`` for anything but a schema, where its path is not taken."""
    if not isinstance(schema, Schema):
        raise validators.no_schema(schema)
