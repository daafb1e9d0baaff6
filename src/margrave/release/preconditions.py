"""The checks that two neighboring tables must both pass for the promise to hold between them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from margrave.schema import Schema
from margrave.schema.constraints import name_of

NO_VALUES = pa.nulls(0, pa.string())


def preconditions(schema: Schema, preflight: str = "custodian") -> dict[str, Any]:
    """Return the checks that refuse a table by its rows: columns by what they refuse, and constraints.

    ``preflight`` is the account's. Only the custodian's refuses a table for its rows.

    A refusal is an exact fact about the rows and costs nothing, so (epsilon, delta) hold between tables that both pass.

    >>> preconditions(Schema.coded({"age": 3}))
    {'preflight': 'custodian', 'outside': ['age'], 'missing': ['age'], 'constraints': [], 'person': None}
    """
    if preflight != "custodian":
        return {
            "preflight": preflight,
            "outside": [],
            "missing": [],
            "constraints": [],
            "person": None,
        }
    return {
        "preflight": preflight,
        "outside": [c.name for c in schema.columns if c.outside == "refuse"],
        "missing": [c.name for c in schema.columns if not c.encode(NO_VALUES).home],
        "constraints": [name_of(c) for c in schema.constraints if c.violating == "refuse"],
        "person": schema.person,
    }
