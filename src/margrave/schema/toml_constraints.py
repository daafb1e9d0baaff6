"""The [[constraint]] tables of a schema's TOML file, and the CSV files beside it that hold long lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from margrave.errors import SchemaError
from margrave.schema.constraint_values import Element
from margrave.schema.constraints import Allowed, Constraint, Depends, Impossible, Ordered
from margrave.schema.references import References
from margrave.schema.toml_files import rows_of
from margrave.schema.toml_text import line, quoted, string, written

RANGE = ("from", "to")


def read_constraint(table: Mapping[str, Any], place: str, references: References) -> Constraint:
    """Return one constraint. Raise ``SchemaError`` for every fault of it."""
    try:
        return _read(table, references)
    except SchemaError as error:
        raise SchemaError(f"{place}{error.message}", remedy=error.remedy) from None


def _read(table: Mapping[str, Any], references: References) -> Constraint:
    # Keys of the table of each kind of constraint.
    keys = {
        "impossible": ("impossible", "violating"),
        "allowed": ("columns", "allowed", "violating"),
        "depends": ("columns", "depends", "violating"),
        "ordered": ("ordered", "violating"),
    }
    kinds = [k for k in keys if k in table]
    if len(kinds) != 1:
        raise SchemaError(
            "A constraint is not of one kind.", remedy=f"Give it one of the keys {', '.join(keys)}."
        )
    (kind,) = kinds
    for key in table:
        if key not in keys[kind]:
            raise SchemaError(
                f"A constraint {kind!r} has an unknown key {quoted(key)}.",
                remedy=f"Its keys are: {', '.join(keys[kind])}.",
            )
    policy, said = table.get("violating", "keep"), table[kind]
    if kind == "ordered":
        return Ordered(said, policy)
    if kind == "impossible":
        if not isinstance(said, Mapping):
            raise SchemaError(
                "impossible is not a table.",
                remedy="Write impossible = {age = {to = 14}, smokes = true}.",
            )
        return Impossible({c: _spoken(v) for c, v in said.items()}, policy)
    columns = table.get("columns")
    if not isinstance(columns, list) or not all(isinstance(c, str) for c in columns):
        raise SchemaError(
            f"A constraint {kind!r} names no columns.", remedy='Write columns = ["city", "zip"].'
        )
    rows = (
        _from_file(said, columns, references) if isinstance(said, str) else _from_list(said, kind)
    )
    if kind == "allowed":
        return Allowed(columns, rows, policy)
    return _depends(columns, rows, policy)


def _depends(columns: Sequence[str], rows: Sequence[Sequence[Element]], policy: str) -> Depends:
    if len(columns) != 2 or any(len(row) != 2 for row in rows):
        raise SchemaError(
            "A constraint 'depends' is not about two columns.",
            remedy='Write columns = ["city", "state"] and depends = [["York", "England"], ...].',
        )
    table: dict[Element, Element] = {}
    for given, follows in rows:
        if table.setdefault(given, follows) != follows:
            raise SchemaError(
                f"Column {columns[0]!r}: the table of {columns[1]!r} has two lines for one value.",
                remedy="Keep one; where several values are possible, write allowed instead of depends.",
            )
    return Depends(columns[0], columns[1], table, policy)


def _from_list(rows: Any, kind: str) -> list[list[Element]]:
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise SchemaError(
            f"{kind} is neither a list of combinations nor a file.",
            remedy=f'Write {kind} = [["York", "YO1"], ...] or {kind} = "file.csv".',
        )
    return [[_element(v) for v in row] for row in rows]


def _from_file(
    name: str, columns: Sequence[str], references: References
) -> list[tuple[Element, ...]]:
    found = rows_of(name, references, "A constraint", columns)
    if sorted(found.header) != sorted(columns):
        raise SchemaError(
            f"The file {quoted(name)} of a constraint does not have the columns {', '.join(columns)}.",
            remedy="Its first line names exactly these.",
        )
    order = [found.header.index(c) for c in columns]
    return [tuple(row[i] if row[i].strip() else None for i in order) for row in found.rows]


def _spoken(value: Any) -> Any:
    return [_element(v) for v in value] if isinstance(value, list) else _element(value)


def _element(value: Any) -> Any:
    # A value that no constraint accepts.
    unreadable = object()
    if not isinstance(value, Mapping):
        return unreadable if isinstance(value, list) else value
    if dict(value) == {"missing": True}:
        return None
    if (
        value
        and set(value) <= set(RANGE)
        and not any(isinstance(v, dict | list) for v in value.values())
    ):
        return (value.get("from"), value.get("to"))
    raise SchemaError(
        "An entry of a constraint is not a value, a range or missing.",
        remedy="Write a value, {from = 0, to = 14}, or {missing = true}.",
    )


def write_constraint(constraint: Constraint) -> list[str]:
    """Return the TOML lines of a constraint's table. Values from a file are written out."""
    lines = ["[[constraint]]"]
    if isinstance(constraint, Ordered):
        lines.append(line("ordered", constraint.columns))
    elif isinstance(constraint, Allowed):
        lines += [line("columns", constraint.columns), *_combinations("allowed", constraint.rows)]
    elif isinstance(constraint, Depends):
        lines += [
            line("columns", constraint.columns),
            *_combinations("depends", constraint.table.items()),
        ]
    if constraint.violating != "keep":
        lines.append(line("violating", constraint.violating))
    if isinstance(constraint, Impossible):
        lines.append("[constraint.impossible]")
        for column, said in constraint.where.items():
            key = column if re.fullmatch("[A-Za-z0-9_-]+", column) else string(column)
            values = _said(said[0]) if len(said) == 1 else f"[{', '.join(map(_said, said))}]"
            lines.append(f"{key} = {values}")
    return lines


def _combinations(key: str, rows: Iterable[Sequence[Element]]) -> list[str]:
    return [f"{key} = [", *(f"    [{', '.join(map(_said, row))}]," for row in rows), "]"]


def _said(found: Element) -> str:
    if found is None:
        return "{missing = true}"
    if isinstance(found, tuple):
        ends = (
            f"{key} = {written(end)}"
            for key, end in zip(RANGE, found, strict=True)
            if end is not None
        )
        return f"{{{', '.join(ends)}}}"
    return written(found)
