"""The schema's TOML file: read with an error that names line, column and remedy, and written in one form."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, replace
from typing import Any

from margrave.errors import SchemaError, did_you_mean
from margrave.schema.categorical import Categorical
from margrave.schema.column import Column
from margrave.schema.constraints import Constraint
from margrave.schema.content import SchemaContent
from margrave.schema.kinds import KINDS
from margrave.schema.learn import Learn
from margrave.schema.references import References, read_files, write_files
from margrave.schema.sources import ColumnSource, source_of
from margrave.schema.toml_constraints import read_constraint, write_constraint
from margrave.schema.toml_faults import toml_error
from margrave.schema.toml_files import categories_of
from margrave.schema.toml_text import comment, key_of, line, quoted, says

VERSION = 1


def parse(
    text: str, references: References
) -> tuple[dict[str, Any], list[Column], list[Constraint]]:
    """Parse the head (person, ignore, files, and the columns' sources), the columns, and the
    constraints.

    ``references`` reads the files that columns and constraints name; they are among ``files``.
    """
    try:
        text.encode("utf-8")
        read = tomllib.loads(
            text.removeprefix("\ufeff")
        )  # some editors write a mark of the byte order
    except UnicodeEncodeError:
        raise SchemaError("The schema is not valid Unicode.", remedy="Save it as UTF-8.") from None
    except RecursionError:
        raise SchemaError(
            "The schema is nested too deeply.", remedy="Write it as margrave schema draft does."
        ) from None
    except ValueError as error:
        raise toml_error(error, text.removeprefix("\ufeff")) from None
    unknown = sorted(set(read) - {"schema", "column", "constraint"})
    if unknown:
        raise SchemaError(
            f"The schema has an unknown entry {quoted(unknown[0])}{_near(text, unknown[0])}.",
            remedy="It has one [schema] table, a [[column]] table for each column, and [[constraint]] tables.",
        )
    head = read.get("schema", {})
    if not isinstance(head, dict):
        raise SchemaError(
            "The entry schema is not a table.", remedy="Begin the file with [schema]."
        )
    found = [_column(t, i, p, references) for i, (t, p) in enumerate(_tables(read, text, "column"))]
    constraints = [read_constraint(t, p, references) for t, p in _tables(read, text, "constraint")]
    settings = _head(head)
    columns, draft = [column for column, _ in found], settings.pop("draft")
    settings["sources"] = {c.name: replace(s, of="read") if draft else s for c, s in found}
    settings["files"] = tuple(dict.fromkeys((*references.files, *settings["files"])))
    return settings, columns, constraints


def _tables(read: Mapping[str, Any], text: str, key: str) -> list[tuple[dict[str, Any], str]]:
    tables = read.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise SchemaError(
            f"The entry {key} is not a list of tables{_near(text, key)}.",
            remedy=f"Write [[{key}]] above each {key}.",
        )
    lines = [
        i for i, at in enumerate(text.split("\n"), 1) if re.match(rf"\s*\[\[\s*{key}\s*\]\]", at)
    ]
    return [
        (t, f"Line {lines[i]}: " if len(lines) == len(tables) else "") for i, t in enumerate(tables)
    ]


def _head(table: Mapping[str, Any]) -> dict[str, Any]:
    head = ("version", "draft", "person", "person_accepts", "ignore", "accepted", "files")
    for key in table:
        if key not in head:
            raise SchemaError(
                f"[schema] has an unknown key {quoted(key)}.",
                remedy=f"{did_you_mean(key, head)}Its keys are: {', '.join(head)}.",
            )
    version = table.get("version")
    if isinstance(version, bool) or version != VERSION:
        raise SchemaError(
            "[schema] has no version that this margrave reads.",
            remedy=f"Write version = {VERSION}.",
        )
    draft, person, ignore = table.get("draft", False), table.get("person"), table.get("ignore", [])
    if not isinstance(draft, bool):
        raise SchemaError(
            "draft is not true or false.",
            remedy="Write draft = true if every value was read off the rows, else leave it out.",
        )
    if not isinstance(ignore, list):
        raise SchemaError("ignore is not a list of column names.", remedy='Write ignore = ["id"].')
    return {
        "draft": draft,
        "person": person,
        "person_accepts": table.get("person_accepts", []),
        "ignore": ignore,
        "accepted": table.get("accepted", []),
        "files": read_files(table.get("files", [])),
    }


def _column(
    table: Mapping[str, Any], position: int, place: str, references: References
) -> tuple[Column, ColumnSource]:
    name = table.get("name")
    called = f"Column {quoted(name)}" if isinstance(name, str) else f"Column number {position + 1}"
    try:
        if "name" not in table:
            raise SchemaError(f"{called}: it has no name.", remedy='Add name = "...".')
        kind = table.get("kind")
        if not isinstance(kind, str) or kind not in KINDS:
            raise SchemaError(
                f"{called}: {'it has no kind' if kind is None else 'its kind is unknown'}.",
                remedy=f"{did_you_mean(kind or '', KINDS)}Write kind = with one of: {', '.join(KINDS)}.",
            )
        learn = "learn" in table
        if learn and table.get("missing") is True:  # it holds for every learned column
            table = {key: value for key, value in table.items() if key != "missing"}
        known = keys_of(Learn if learn else KINDS[kind])
        for key in table:
            if learn and key not in known and key in keys_of(KINDS[kind]):
                raise SchemaError(
                    f"{called}: {key} contradicts learn = true, which learns it from noisy answers.",
                    remedy=f"Take {key} out; or take learn out, and declare all public values.",
                )
            if key not in known and key not in ("kind", *ColumnSource.keys):
                possible = _possible(kind, known)
                raise SchemaError(
                    f"{called}: {quoted(key)} is not a key of kind {kind}.",
                    remedy=f"{did_you_mean(key, possible)}Its keys are: {', '.join(possible)}.",
                )
        for key, entry in known.items():
            if key not in table and entry.default is MISSING:
                open_kind = key != "name" and kind in (*Learn.numbers, Categorical.kind)
                learned = " If it is not public, write learn = true." if open_kind else ""
                raise SchemaError(
                    f"{called}: it has no {key}.",
                    remedy=f"A column of kind {kind} needs {key}.{learned}",
                )
        said = {k: v for k, v in table.items() if k not in ("kind", *ColumnSource.keys)}
        if "categories" in said:
            said["categories"] = categories_of(said["categories"], str(name), references)
        made: Column = Learn(of=kind, **said) if learn else KINDS[kind](**said)
        return made, source_of(table, called)
    except SchemaError as error:
        raise SchemaError(f"{place}{error.message}", remedy=error.remedy) from None


def keys_of(of: type[Any]) -> dict[str, Field[Any]]:
    return {f.name: f for f in fields(of) if f.name != "of"}


def _near(text: str, key: str) -> str:
    for i, found in enumerate(text.split("\n"), 1):
        if found.lstrip(" \t[").startswith(key):
            return f" (line {i})"
    return ""


def _possible(kind: str, known: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys that a column may have: of its kind, of its source, and ``learn`` where it can be learned."""
    learned = ("learn",) if kind in (*Learn.numbers, Categorical.kind) else ()
    return tuple(dict.fromkeys((*known, *learned, *ColumnSource.keys)))


def write(content: SchemaContent) -> str:
    """Return the file. Settings that say nothing (false, none, an empty list) are left out."""
    head = {
        "version": VERSION,
        "person": content.person,
        "person_accepts": list(content.person_accepts),
        "ignore": list(content.ignore),
        "accepted": list(content.accepted),
        "files": write_files(content.files),
    }
    lines = [*comment(content.remarks.get("", "")), "[schema]"]
    lines += [line(k, v) for k, v in head.items() if says(v)]
    for column in content.columns:
        lines += ["", *comment(content.remarks.get(column.name, "")), "[[column]]"]
        lines += [line("name", column.name), line("kind", column.kind)]
        keys = keys_of(Learn if isinstance(column, Learn) else KINDS[column.kind])
        # the policy of a column to learn follows from its kind, and would be wrong beside another kind
        implied = ("name", "outside") if isinstance(column, Learn) else ("name",)
        rest = ((key, getattr(column, key)) for key in keys if key not in implied)
        settings = content.source(column.name).settings
        for key, value in ((k, v) for k, v in (*rest, *settings) if says(v)):
            if key == "labels" and len(str(value)) > 90:  # last, and an entry on each line
                lines += ["[column.labels]", *(line(key_of(k), v) for k, v in value.items())]
            else:
                lines.append(line(key, value))
    for constraint in content.constraints:
        lines += ["", *write_constraint(constraint)]
    return "\n".join(lines) + "\n"
