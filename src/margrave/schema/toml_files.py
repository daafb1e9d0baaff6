"""The CSV files beside a schema that hold its long lists: combinations of constraints, and categories.

No error quotes a field: the file may be one that should not have been named. Errors give its line instead.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from margrave.errors import SchemaError
from margrave.schema.references import References
from margrave.schema.toml_text import quoted


@dataclass(frozen=True, eq=False)
class Rows:
    """The header and the rows of a CSV file, and the line that each row ends in; blank lines are left out."""

    header: list[str]
    rows: list[list[str]]
    lines: list[int]


def rows_of(name: str, references: References, whose: str, expected: Collection[str] = ()) -> Rows:
    """Read a CSV file beside the schema. ``whose`` names the setting that refers to it.

    ``expected`` column names decide the separator if it is ambiguous.
    """
    content = references.read(name, whose)
    named = f"The file {quoted(name)} of {whose[0].lower()}{whose[1:]}"
    try:
        text = content.decode("utf-8-sig")
        first = io.StringIO(text, newline="").readline()
        reader = csv.reader(
            io.StringIO(text, newline=""), delimiter=_separator(first, expected), strict=True
        )
        read = [(row, reader.line_num) for row in reader]
    except (UnicodeDecodeError, csv.Error, ValueError):
        raise SchemaError(
            f"{named} cannot be read as CSV in UTF-8.",
            remedy="Write it with a header line that names the columns.",
        ) from None
    header = read[0][0] if read else []
    found = [(row, line) for row, line in read[1:] if row]
    short = next((line for row, line in found if len(row) != len(header)), None)
    if short is not None:
        raise SchemaError(
            f"{named} has too many or too few fields in line {short}.",
            remedy="One for each column.",
        )
    return Rows(header, [row for row, _ in found], [line for _, line in found])


def _separator(header: str, expected: Collection[str]) -> str:
    separators = ",;\t|"
    fields = {s: [f.strip('"') for f in header.rstrip("\r\n").split(s)] for s in separators}
    return max(separators, key=lambda s: (len(set(fields[s]) & set(expected)), len(fields[s])))


def categories_of(value: Any, column: str, references: References) -> Any:
    """Return the categories that a file lists. A value that does not name a file is returned
    unchanged.
    """
    if isinstance(value, str):
        value = {"file": value}
    if not isinstance(value, dict):
        return value
    name, wanted = value.get("file"), value.get("column")
    if (
        not isinstance(name, str)
        or not set(value) <= {"file", "column"}
        or not isinstance(wanted, str | None)
    ):
        raise SchemaError(
            f"Column {quoted(column)}: categories are neither a list nor a file.",
            remedy='Write categories = ["a", "b"], "codes.csv" or {file = "codes.csv", column = "code"}.',
        )
    try:
        found = rows_of(name, references, f"Column {quoted(column)}", [wanted or column])
    except SchemaError as error:
        if "," in name or "." not in name:
            listed = 'A list of categories is written categories = ["F", "M"].'
            raise SchemaError(error.message, remedy=f"{error.remedy} {listed}") from None
        raise
    if wanted is not None and wanted not in found.header:
        raise SchemaError(
            f"Column {quoted(column)}: the file {quoted(name)} has no column {quoted(wanted)}.",
            remedy="Its first line names its columns.",
        )
    names = [n for n in (wanted, column) if n in found.header]
    at = found.header.index(names[0]) if names else 0
    kept = [
        (row[at], line)
        for row, line in zip(found.rows, found.lines, strict=True)
        if any(map(str.strip, row))
    ]
    _check_distinct(kept, f"Column {quoted(column)}: the file {quoted(name)}")
    return [category for category, _ in kept]


def _check_distinct(categories: Sequence[tuple[str, int]], named: str) -> None:
    """Refuse a category that stands in two lines, also if blanks around it differ, which are not read."""
    seen: dict[str, int] = {}
    for category, line in categories:
        if category.strip() and (first := seen.setdefault(category.strip(), line)) != line:
            raise SchemaError(
                f"{named} has one category in lines {first} and {line}.",
                remedy="Keep one of the two.",
            )
