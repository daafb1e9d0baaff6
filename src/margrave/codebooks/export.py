"""Schemas in the forms of other programs."""

from __future__ import annotations

import json
from datetime import date, datetime
from typing import Any, Literal

from margrave.errors import InputError
from margrave.schema import (
    Categorical,
    Coded,
    Column,
    ColumnSource,
    Date,
    Learn,
    Ordinal,
    Schema,
    Timestamp,
)
from margrave.schema.elapsed_values import as_written
from margrave.schema.numeric import Integer, Real

#: The forms that a schema can be written in.
Form = Literal["table-schema", "sdv"]


def export_schema(schema: Schema, form: Form) -> str:
    """Return a schema as the JSON of another program.

    The result describes synthetic tables: dates are in ISO 8601, missing values are empty. It has the kinds, the
    bounds and the closed lists of categories. It has no bins, point masses, units, open lists, spellings, out-of-range
    policies or constraints.

    Args:
        schema: A schema, also one with columns to learn; these have no categories in the result, and no bounds but
            the public ones.
        form: "table-schema" (Frictionless Table Schema) or "sdv" (SDV's Metadata V2).

    Raises:
        InputError: If the form is unknown.
        SchemaError: If values of the schema were read off the rows: the result could not mark them.

    Privacy:
        As public as the schema.

    Example:
        >>> from margrave.schema import Boolean
        >>> print(export_schema(Schema([Boolean("smokes")]), "table-schema"))
        {
          "fields": [
            {
              "name": "smokes",
              "type": "boolean",
              "constraints": {
                "required": true
              }
            }
          ]
        }
    """
    forms = {"table-schema": _table_schema, "sdv": _sdv}
    if form not in forms:
        raise InputError(
            f"The form {form!r} is unknown.", remedy=f"Choose one of: {', '.join(forms)}."
        )
    schema.check_not_read()
    return json.dumps(forms[form](schema), indent=2, ensure_ascii=False)


def _table_schema(schema: Schema) -> dict[str, Any]:
    columns = map(as_written, schema.output_columns)
    return {"fields": [_field(column, schema.source(column.name)) for column in columns]}


def _field(column: Column, source: ColumnSource) -> dict[str, Any]:
    rules: dict[str, Any] = {} if column.missing else {"required": True}
    found: dict[str, Any] = {"name": column.name, "type": _kinds(column)[0]}
    if source.title:
        found["title"] = source.title
    if isinstance(column, Categorical | Ordinal):
        if not getattr(column, "other", False):
            rules["enum"] = found["categories"] = list(column.categories)
            if source.labels:
                found["categories"] = [
                    {"value": c, "label": source.labels.get(c, c)} for c in column.categories
                ]
        if isinstance(column, Ordinal):
            found["categoriesOrdered"] = True
    elif isinstance(column, Coded):
        rules |= {"minimum": 0, "maximum": column.codes - 1}
    else:
        rules |= _bounds(column, "minimum", "maximum")
    return found | ({"constraints": rules} if rules else {})


def _sdv(schema: Schema) -> dict[str, Any]:
    columns = {
        column.name: _sdv_column(column) for column in map(as_written, schema.output_columns)
    }
    for name in (schema.person, *schema.ignore):
        if name is not None:
            columns[name] = {"sdtype": "id" if name == schema.person else "unknown"}
    return {
        "METADATA_SPEC_VERSION": "V2",
        "tables": {"table": {"columns": columns}},
        "relationships": [],
    }


def _sdv_column(column: Column) -> dict[str, Any]:
    found: dict[str, Any] = {"sdtype": _kinds(column)[1]}
    if isinstance(column, Date | Timestamp) or column.kind in ("date", "timestamp"):
        found["datetime_format"] = "%Y-%m-%d" if column.kind == "date" else "%Y-%m-%d %H:%M:%S"
    decimals = 0 if column.kind == "integer" else getattr(column, "decimals", None)
    if decimals is not None:
        found["decimal_places"] = decimals
    if isinstance(column, Categorical | Ordinal) and not getattr(column, "other", False):
        found["range_values"] = list(column.categories)
    if isinstance(column, Coded):
        found["range_values"] = list(range(column.codes))
    return found | _bounds(column, "range_min", "range_max") | {"range_is_nullable": column.missing}


def _bounds(column: Column, low: str, high: str) -> dict[str, Any]:
    if not isinstance(column, Integer | Real | Date | Timestamp | Learn):
        return {}
    found = {low: column.low, high: column.high}
    separator = "T" if low == "minimum" else " "  # as datetime_format has it
    return {key: _plain(value, separator) for key, value in found.items() if value is not None}


def _plain(value: Any, separator: str) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(separator, "seconds")
    return value.isoformat() if isinstance(value, date) else value


def _kinds(column: Column) -> tuple[str, str]:
    """Return the type of a Table Schema and SDV's sdtype for a kind of column."""
    return {
        "categorical": ("string", "categorical"),
        "ordinal": ("string", "ordinal"),
        "boolean": ("boolean", "boolean"),
        "integer": ("integer", "numerical"),
        "real": ("number", "numerical"),
        "date": ("date", "datetime"),
        "timestamp": ("datetime", "datetime"),
        "coded": ("integer", "categorical"),
        "hour": ("string", "ordinal"),
        "weekday": ("string", "ordinal"),
    }[column.kind]
