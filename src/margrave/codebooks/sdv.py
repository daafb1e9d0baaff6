"""SDV's Metadata V2, as its library writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from margrave.codebooks.json_parts import object_of
from margrave.codebooks.variable import Variable
from margrave.errors import SchemaError


def read_sdv(found: Mapping[str, Any], *, ranges_public: bool) -> list[Variable]:
    """Return the variables of the one table of SDV's Metadata V2, whose ranges SDV reads off the rows."""
    tables = object_of(found.get("tables", {"": found}), "tables")
    if len(tables) != 1:
        raise SchemaError(
            f"The metadata describe {len(tables)} tables.",
            remedy="margrave synthesizes one table; give metadata with that table alone.",
        )
    (table,) = (object_of(t, "the table") for t in tables.values())
    key = table.get("primary_key")
    columns = object_of(table.get("columns"), "columns")
    return [_sdv(n, object_of(c, n), n == key, not ranges_public) for n, c in columns.items()]


def _sdv(name: str, entry: Mapping[str, Any], is_key: bool, from_rows: bool) -> Variable:
    sort = entry.get("sdtype")
    kinds = {
        "numerical": "real",
        "datetime": "timestamp",
        "categorical": "text",
        "ordinal": "text",
        "boolean": "boolean",
    }
    kind = kinds.get(str(sort), "out")
    low, high = entry.get("range_min"), entry.get("range_max")
    if sort == "numerical" and entry.get("decimal_places") == 0:
        kind = "integer"
    form = entry.get("datetime_format")
    if sort == "datetime" and form is not None and not re.search(r"%[HIMSfT]", str(form)):
        kind = "date"
    listed = dict.fromkeys(map(str, entry.get("range_values", [])), "")
    stated = low is not None or high is not None or bool(listed)
    return Variable(
        name, kind, "", listed, sort == "ordinal", low, high,
        format=None if form is None else str(form),
        identifier=is_key or sort == "id" or bool(entry.get("pii", False)),
        from_rows=stated and from_rows,
    )  # fmt: skip
