"""The CSV files beside a schema that hold its long lists: combinations of constraints, and categories."""

from __future__ import annotations

import csv
from collections.abc import Collection
from pathlib import Path
from typing import Any

from margrave.errors import SchemaError
from margrave.schema.toml_text import quoted

SEPARATORS = ",;\t|"


def rows_of(
    name: str, folder: Path | None, whose: str, expected: Collection[str] = ()
) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a CSV file beside the schema. ``whose`` says what names it.

    ``expected`` names of columns tell the separator where it is in doubt.
    """
    if folder is None:
        raise SchemaError(
            f"{whose} names the file {quoted(name)}, but this schema is not read from a folder.",
            remedy="Load the schema from its file, which stands beside it.",
        )
    try:
        with (folder / name).open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            lines = list(csv.reader(file, delimiter=_separator(first, expected), strict=True))
    except (OSError, UnicodeDecodeError, csv.Error, ValueError):
        raise SchemaError(
            f"The file {quoted(name)} of {whose[0].lower()}{whose[1:]} cannot be read as CSV in UTF-8.",
            remedy="Put it beside the schema, with a header line that names the columns.",
        ) from None
    header, rows = (lines[0], [r for r in lines[1:] if r]) if lines else ([], [])
    short = next((i for i, row in enumerate(rows, 1) if len(row) != len(header)), None)
    if short is not None:
        raise SchemaError(
            f"The file {quoted(name)} of {whose[0].lower()}{whose[1:]} has too many or too few fields in row {short}.",
            remedy="One for each column.",
        )
    return header, rows


def _separator(header: str, expected: Collection[str]) -> str:
    fields = {s: [f.strip('"') for f in header.rstrip("\r\n").split(s)] for s in SEPARATORS}
    return max(SEPARATORS, key=lambda s: (len(set(fields[s]) & set(expected)), len(fields[s])))


def categories_of(said: Any, column: str, folder: Path | None) -> Any:
    """The categories that a file holds, as a list; what names no file is given back as it is.

    They are in the file's column of the name that is given, or of the schema's column, or else in its first.
    """
    if isinstance(said, str):
        said = {"file": said}
    if not isinstance(said, dict):
        return said
    name, wanted = said.get("file"), said.get("column")
    if not isinstance(name, str) or not set(said) <= {"file", "column"} or not isinstance(wanted, str | None):
        raise SchemaError(
            f"Column {quoted(column)}: categories are neither a list nor a file.",
            remedy='Write categories = ["a", "b"], "codes.csv" or {file = "codes.csv", column = "code"}.',
        )
    header, rows = rows_of(name, folder, f"Column {quoted(column)}", [wanted or column])
    if wanted is not None and wanted not in header:
        raise SchemaError(
            f"Column {quoted(column)}: the file {quoted(name)} has no column {quoted(wanted)}.",
            remedy="Its first line names its columns.",
        )
    names = [n for n in (wanted, column) if n in header]
    at = header.index(names[0]) if names else 0
    return [row[at] for row in rows if any(field.strip() for field in row)]
