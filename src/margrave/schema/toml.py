"""The schema's TOML file: read with an error that names line, column and remedy, and written in one form."""

from __future__ import annotations

import re
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import date, datetime
from typing import Any

from margrave.errors import SchemaError
from margrave.schema.column import Column
from margrave.schema.discrete import Boolean, Categorical, Coded, Ordinal
from margrave.schema.numeric import Date, Integer, Real, Timestamp

VERSION = 1
KINDS: dict[str, type[Any]] = {
    c.kind: c for c in (Categorical, Ordinal, Boolean, Integer, Real, Date, Timestamp, Coded)
}
HEAD = ("version", "draft", "person", "ignore")


def parse(text: str) -> tuple[dict[str, Any], list[Column]]:
    """What the head says (draft, person, ignore), and the columns."""
    try:
        text.encode("utf-8")
        read = tomllib.loads(text)
    except UnicodeEncodeError:
        raise SchemaError("The schema is not valid Unicode.", remedy="Save it as UTF-8.") from None
    except RecursionError:
        raise SchemaError("The schema is nested too deeply.") from None
    except ValueError as error:
        raise SchemaError(f"The schema is not valid TOML: {_short(error)}.") from None
    unknown = sorted(set(read) - {"schema", "column"})
    if unknown:
        raise SchemaError(
            f"The schema has an unknown entry {_quoted(unknown[0])}{_near(text, unknown[0])}.",
            remedy="It has one [schema] table and a [[column]] table for each column.",
        )
    head, tables = read.get("schema", {}), read.get("column", [])
    if not isinstance(head, dict):
        raise SchemaError("schema is not a table.", remedy="Begin the file with [schema].")
    if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise SchemaError("column is not a list of tables.", remedy="Write [[column]] above each column.")
    lines = _column_lines(text)
    places = [f"Line {lines[i]}: " if len(lines) == len(tables) else "" for i in range(len(tables))]
    return _head(head), [_column(t, i, p) for i, (t, p) in enumerate(zip(tables, places, strict=True))]


def _head(table: Mapping[str, Any]) -> dict[str, Any]:
    for key in table:
        if key not in HEAD:
            raise SchemaError(
                f"[schema] has an unknown key {_quoted(key)}.", remedy=f"Its keys are: {', '.join(HEAD)}."
            )
    version = table.get("version")
    if isinstance(version, bool) or version != VERSION:
        raise SchemaError(
            "[schema] has no version that this margrave reads.", remedy=f"Write version = {VERSION}."
        )
    draft, person, ignore = table.get("draft", False), table.get("person"), table.get("ignore", [])
    if not isinstance(ignore, list):
        raise SchemaError("ignore is not a list of column names.", remedy='Write ignore = ["id"].')
    return {"draft": draft, "person": person, "ignore": ignore}


def _column(table: Mapping[str, Any], position: int, place: str) -> Column:
    name = table.get("name")
    called = f"Column {_quoted(name)}" if isinstance(name, str) else f"Column number {position + 1}"
    try:
        if "name" not in table:
            raise SchemaError(f"{called}: it has no name.", remedy='Add name = "...".')
        kind = table.get("kind")
        if not isinstance(kind, str) or kind not in KINDS:
            raise SchemaError(
                f"{called}: {'it has no kind' if kind is None else 'its kind is unknown'}.",
                remedy=f"Write kind = with one of: {', '.join(KINDS)}.",
            )
        known = {f.name: f for f in fields(KINDS[kind])}
        for key in table:
            if key not in known and key != "kind":
                raise SchemaError(
                    f"{called}: {_quoted(key)} is no key of kind {kind}.",
                    remedy=f"Its keys are: {', '.join(known)}.",
                )
        for key, entry in known.items():
            if key not in table and entry.default is MISSING:
                raise SchemaError(
                    f"{called}: it has no {key}.", remedy=f"A column of kind {kind} needs {key}."
                )
        made: Column = KINDS[kind](**{k: v for k, v in table.items() if k != "kind"})
        return made
    except SchemaError as error:
        raise SchemaError(f"{place}{error.message}", remedy=error.remedy) from None


def _column_lines(text: str) -> list[int]:
    return [i for i, line in enumerate(text.split("\n"), 1) if re.match(r"\s*\[\[\s*column\s*\]\]", line)]


def _near(text: str, key: str) -> str:
    for i, line in enumerate(text.split("\n"), 1):
        if line.lstrip(" \t[").startswith(key):
            return f" (line {i})"
    return ""


def _quoted(name: str) -> str:
    return repr(name if len(name) <= 60 else f"{name[:57]}...")


def _short(error: ValueError) -> str:
    return str(error)[:200].rstrip(".").replace("\n", " ")


def write(
    columns: Sequence[Column],
    draft: bool,
    person: str | None,
    ignore: Sequence[str],
    remarks: Mapping[str, str],
) -> str:
    """The file. Settings that say nothing (false, none, an empty list) are left out."""
    head = {"version": VERSION, "draft": draft, "person": person, "ignore": list(ignore)}
    lines = [*_comment(remarks.get("", "")), "[schema]"]
    lines += [_line(k, v) for k, v in head.items() if _says(v) or k == "draft"]
    for column in columns:
        lines += ["", *_comment(remarks.get(column.name, "")), "[[column]]"]
        lines += [_line("name", column.name), _line("kind", column.kind)]
        rest = ((f.name, getattr(column, f.name)) for f in fields(KINDS[column.kind]) if f.name != "name")
        lines += [_line(k, v) for k, v in rest if _says(v)]
    return "\n".join(lines) + "\n"


def _says(value: object) -> bool:
    return value is not None and value is not False and value != [] and value != ()


def _comment(remark: str) -> list[str]:
    wrapped = (textwrap.wrap(line, 105, break_long_words=False) for line in remark.splitlines())
    return [f"# {line}" for lines in wrapped for line in lines]


def _line(key: str, value: Any) -> str:
    if isinstance(value, list | tuple) and len(str(value)) > 90:
        items = "".join(f"    {_value(v)},\n" for v in value)
        return f"{key} = [\n{items}]"
    return f"{key} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _string(value: str) -> str:
    """A basic string: the quotes, backslashes and control characters escaped."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    written = (escapes.get(c, f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c) for c in value)
    return f'"{"".join(written)}"'
