"""SDV's metadata, versions 1 and 2, as its library writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from margrave.codebooks.variable import Variable
from margrave.errors import InputError, did_you_mean


def is_sdv(found: Mapping[str, Any]) -> bool:
    """Return True for metadata of SDV: a version, or columns with an sdtype."""
    columns = found.get("columns")
    typed = isinstance(columns, Mapping) and any(
        "sdtype" in c for c in columns.values() if isinstance(c, Mapping)
    )
    return "METADATA_SPEC_VERSION" in found or typed


def read_sdv(found: Any, *, ranges_public: bool) -> list[Variable]:
    """Return the variables of the one table of SDV's metadata.

    Args:
        found: The dict, of one table or with ``tables``.
        ranges_public: Whether ranges and categories are public. SDV reads them off the rows, so
            they are left out otherwise.

    Raises:
        InputError: It is not the metadata of one table, or the table is sequential.
    """
    table = _table(found)
    if table.get("sequence_key") is not None:
        raise InputError(
            "The metadata is of a sequential table, which margrave does not synthesize.",
            remedy="Give one row for each sequence, and take sequence_key out.",
        )
    key = table.get("primary_key")
    return [_variable(str(n), c, n == key, ranges_public) for n, c in table["columns"].items()]


def _table(found: Any) -> Mapping[str, Any]:
    tables = found.get("tables") if isinstance(found, Mapping) else None
    if isinstance(tables, Mapping):
        if len(tables) != 1:
            raise InputError(
                f"The metadata is of {len(tables)} tables, and margrave synthesizes one.",
                remedy="Give the metadata of one table.",
            )
        found = next(iter(tables.values()))
    if not isinstance(found, Mapping) or not isinstance(found.get("columns"), Mapping):
        raise InputError(
            "This is not the metadata of an SDV table.",
            remedy='Give Metadata, or a dict such as {"columns": {"age": {"sdtype": "numerical"}}}.',
        )
    return found


def _variable(name: str, facts: Any, is_key: bool, ranges_public: bool) -> Variable:
    kinds = {
        "numerical": "real", "datetime": "timestamp", "categorical": "text", "ordinal": "text", "boolean": "boolean",
    }  # fmt: skip
    sort = facts.get("sdtype") if isinstance(facts, Mapping) else None
    if not isinstance(sort, str):
        raise InputError(
            f"Column {name!r} of the metadata has no sdtype.",
            remedy=f"Give one of {', '.join(kinds)}, id or unknown.",
        )
    others = ("id", "unknown")  # and the kinds of personal data, such as "email"
    hint = did_you_mean(sort, [*kinds, *others])
    if hint and sort not in (*kinds, *others):
        raise InputError(f"Column {name!r} has the sdtype {sort!r}.", remedy=hint.strip())
    kind, form = kinds.get(sort, "out"), facts.get("datetime_format")
    written = str(facts.get("computer_representation", "")).lower()
    if kind == "real" and (facts.get("decimal_places") == 0 or written.startswith(("int", "uint"))):
        kind = "integer"
    if kind == "timestamp" and form is not None and not re.search(r"%[HIMSfTcX]", str(form)):
        kind = "date"
    ranges = facts if ranges_public else {}
    return Variable(
        name, kind, "", dict.fromkeys(map(str, ranges.get("range_values", [])), ""), sort == "ordinal",
        ranges.get("range_min"), ranges.get("range_max"), format=None if form is None else str(form),
        identifier=is_key or bool(facts.get("pii", False)),
    )  # fmt: skip
