"""The checks that two neighboring tables must both pass for the promise to hold between them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from margrave.schema import Schema
from margrave.schema.constraints import name_of

NO_VALUES = pa.nulls(0, pa.string())


def preconditions(schema: Schema, preflight: str = "custodian") -> dict[str, Any]:
    """Return the checks that refuse a table by its rows: columns by what they refuse, and constraints.

    ``all_unknown`` are columns that refuse a table in which the schema knows none of their values.

    ``preflight`` is the account's. Only the custodian's refuses a table for its rows.

    A refusal is an exact fact about the rows and costs nothing, so (epsilon, delta) hold between tables that both pass.

    >>> found = preconditions(Schema.coded({"age": 3}))
    >>> found["no_rows"], found["all_unknown"], found["outside"], found["missing"], found["person"]
    (True, ['age'], ['age'], ['age'], None)
    """
    if preflight != "custodian":
        return {
            "preflight": preflight,
            "no_rows": False,
            "all_unknown": [],
            "outside": [],
            "missing": [],
            "constraints": [],
            "person": None,
        }
    return {
        "preflight": preflight,
        "no_rows": True,
        "all_unknown": [c.name for c in schema.columns],
        "outside": [c.name for c in schema.columns if c.outside == "refuse"],
        "missing": [c.name for c in schema.columns if not c.encode(NO_VALUES).home],
        "constraints": [name_of(c) for c in schema.constraints if c.violating == "refuse"],
        "person": schema.person,
    }
