"""The checks that two neighboring tables must both pass for the promise to hold between them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from margrave.schema import Schema
from margrave.schema.constraints import name_of

NO_VALUES = pa.nulls(0, pa.string())


def preconditions(schema: Schema, preflight: str = "custodian") -> dict[str, Any]:
    """Return what would refuse a table because of its rows: columns by what they refuse, and constraints.

    ``preflight`` is the account's. Only the custodian's refuses a table for its rows.

    A refusal is an exact fact about the rows and costs nothing, so (epsilon, delta) hold between tables that both pass.

    >>> found = preconditions(Schema.coded({"age": 3}))["refused_if"]
    >>> found["no_rows"], found["value_outside_in"], found["value_missing_in"], found["row_without_person_in"]
    (True, ['age'], ['age'], None)
    """
    refused = preflight == "custodian"
    columns = schema.columns if refused else ()
    constraints = schema.constraints if refused else ()
    return {
        "preflight": preflight,
        "refused_if": {
            "no_rows": refused,
            "no_known_value_in": [c.name for c in columns],
            "value_outside_in": [c.name for c in columns if c.outside == "refuse"],
            "value_missing_in": [c.name for c in columns if not c.encode(NO_VALUES).home],
            "row_violates": [name_of(c) for c in constraints if c.violating == "refuse"],
            "row_without_person_in": schema.person if refused else None,
        },
    }
