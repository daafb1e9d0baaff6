"""SDV's metadata, versions 1 and 2, as its library writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from margrave.codebooks.json_parts import (
    check_spelling,
    flag_of,
    not_in_schema,
    words_of,
)
from margrave.codebooks.variable import Phrase, Variable
from margrave.errors import InputError, SchemaError, did_you_mean
from margrave.schema.categorical import TRUTHS


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
    others = table.get("alternate_keys") or []
    keys = [table.get("primary_key"), *(others if isinstance(others, list) else [others])]
    listed = [name for key in keys for name in (key if isinstance(key, list) else [key])]
    for name in (n for n in listed if n is not None and n not in list(table["columns"])):
        raise InputError(
            f"The metadata has the key {name!r}, which is not one of its columns.",
            remedy=f"{did_you_mean(name, map(str, table['columns']))}Correct it.",
        )
    return [_variable(str(n), c, n in keys, ranges_public) for n, c in table["columns"].items()]


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
    if hint and sort not in (*kinds, *others) and "pii" not in facts:
        raise InputError(f"Column {name!r} has the sdtype {sort!r}.", remedy=hint.strip())
    _check_facts(name, facts)
    kind, form = kinds.get(sort, "out"), facts.get("datetime_format")
    written = str(facts.get("computer_representation", "")).lower()
    if kind == "real" and (facts.get("decimal_places") == 0 or written.startswith(("int", "uint"))):
        kind = "integer"
    if kind == "timestamp" and form is not None and not re.search(r"%[HIMSfTcX]", str(form)):
        kind = "date"
    ranges = facts if ranges_public else {}
    listed = ranges.get("order") or ranges.get("range_values") or []
    categories = words_of([v for v in listed if v is not None], f"the list of column {name!r}")
    if kind not in ("boolean", "text"):
        categories = []
    if kind == "boolean" and set(categories) <= {*TRUTHS}:
        categories = []
    return Variable(
        name, kind, "", dict.fromkeys(categories, ""), sort == "ordinal" or "order" in facts,
        ranges.get("range_min"), ranges.get("range_max"), format=form if kind in ("date", "timestamp") else None,
        identifier=is_key or flag_of(name, facts, "pii"),
        required=ranges.get("range_is_nullable") is False, notes=not_in_schema(k for k in ("order_by",) if k in facts),
    )  # fmt: skip


def _check_facts(name: str, facts: Mapping[str, Any]) -> None:
    """Raise ``SchemaError`` for facts of a column that are misspelt or not of their kind."""
    keys = (
        "sdtype", "pii", "regex_format", "datetime_format", "computer_representation", "decimal_places", "order",
        "order_by", "range_min", "range_max", "range_values", "range_is_nullable",
    )  # fmt: skip
    check_spelling(name, map(str, facts), keys, "SDV")
    form = facts.get("datetime_format")
    if form is not None and not (isinstance(form, str) and "%" in form):
        raise SchemaError(
            f"In the code book, the datetime_format of column {name!r} is not a pattern.",
            remedy='Write such as "%Y-%m-%d".',
        )
    for key in ("order", "range_values"):
        if not isinstance(facts.get(key) or [], list):
            raise SchemaError(
                f"In the code book, {key} of column {name!r} is not a list.", remedy=Phrase.CORRECT
            )
    whole, representation = facts.get("decimal_places"), facts.get("computer_representation")
    if not (whole is None or isinstance(whole, int)) or not isinstance(representation or "", str):
        raise SchemaError(
            f"In the code book, decimal_places or computer_representation of column {name!r} is not of its kind.",
            remedy='Write such as 2, and such as "Float".',
        )
    flag_of(name, facts, "range_is_nullable")
