"""From a code book to a schema: the file's standard is recognized by its content."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from margrave._io import read_input
from margrave.codebooks import statistical
from margrave.codebooks.csvw import read_csvw
from margrave.codebooks.ddi import read_ddi
from margrave.codebooks.frictionless import read_table_schema
from margrave.codebooks.json_parts import parse_json
from margrave.codebooks.redcap import read_redcap
from margrave.codebooks.sdv import is_sdv, read_sdv
from margrave.codebooks.variable import Variable
from margrave.errors import InputError, SchemaError
from margrave.schema import Column, ColumnSource, Schema, validators
from margrave.schema.column_check import LOOK
from margrave.schema.parts import parts_of


def read_code_book(
    path: str | PathLike[str], *, cite: str | None = None, ranges_public: bool = False
) -> Schema:
    """Return the schema that a code book states.

    Bounds and categories of the code book are taken as public and cite it. Those that it lacks are
    to be learned. Columns of times get their hours and weekdays, whose values are public anyway.
    A column whose name or label suggests persons is the person ID column. Other columns whose
    name or label suggests identifiers are under ``ignore``, and other texts without a list of values are learned.

    Args:
        path: DDI-Codebook (XML), Frictionless Table Schema or data package, CSV on the Web, SDV
            Metadata V2 (JSON), a REDCap data dictionary (CSV), or a file of Stata, SPSS or SAS,
            whose labels are read and whose rows are not.
        cite: Where the public values are written down; by default the file's name.
        ranges_public: Whether the ranges in SDV metadata are public, and those of DDI-Codebook that
            equal the statistics beside them. Programs read them off the rows, so they are left to
            be learned otherwise.

    Returns:
        A schema with the labels, and what it cannot hold, as remarks.

    Raises:
        InputError: If the file does not exist, or needs a library that is not installed.
        SchemaError: If it is not a code book of these kinds, or states no column.

    Privacy:
        Reads no row. margrave cannot check that the code book is public.

    Example:
        >>> import json, pathlib, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> file = pathlib.Path(folder.name) / "schema.json"
        >>> fields = [{"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}}]
        >>> _ = file.write_text(json.dumps({"fields": fields}))
        >>> read_code_book(file).columns[0].high
        99
        >>> folder.cleanup()
    """
    file = Path(path)
    variables = _variables(file, ranges_public=ranges_public)
    return schema_of_variables(variables, cite or f"Code book {file.name}")


def _variables(file: Path, *, ranges_public: bool) -> Sequence[Variable]:
    if statistical.reader_of(file) is not None:
        if not file.is_file():
            raise InputError(f"The file {file} does not exist.", remedy="Check the path.")
        return statistical.read_labels(file)
    try:
        read = read_input(file)
        content = read.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _no_text(file, read) from None
    except OSError as error:
        raise InputError(
            f"The code book {file} cannot be read: {error.strerror or 'no such file'}.",
            remedy="Check the path.",
        ) from None
    start = content.lstrip()[:1]
    if start == "<":
        return read_ddi(content, ranges_public=ranges_public)
    if start == "{":
        found = parse_json(content)
        if is_sdv(found):
            return read_sdv(found, ranges_public=ranges_public)
        if "tableSchema" in found or "tables" in found:
            return read_csvw(found)
        if "fields" in found or "resources" in found:
            return read_table_schema(found)
    elif start != "[" and re.search("field[ _]type", content[:1000], re.IGNORECASE):
        return read_redcap(content)
    raise _unknown(file, content)


def _no_text(file: Path, read: bytes) -> SchemaError:
    """Return the error for a file that is not text: often a release, a table or a workbook."""
    if file.suffix.lower() == ".margrave":
        return validators.no_text(file, read)
    if read.startswith((b"PAR1", b"ARROW1")):
        return _table(f"{file} is a table, not a code book.", file)
    if file.suffix.lower() in (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"):
        return SchemaError(
            f"{file} is a workbook, not a code book.",
            remedy="If a sheet of it is a REDCap data dictionary, save that sheet as CSV UTF-8. If it is the table:"
            f" margrave schema draft {file} -o schema.toml.",
        )
    return SchemaError(f"{file} is not text in UTF-8.", remedy="Save it as UTF-8.")


def _table(what: str, file: Path) -> SchemaError:
    return SchemaError(
        what, remedy=f"Make its schema with: margrave schema draft {file} -o schema.toml."
    )


def _unknown(file: Path, content: str) -> SchemaError:
    """Return the error for a text that is not a code book. It quotes nothing: the text may be rows."""
    if not content.strip():
        return SchemaError(f"The code book {file} is empty.", remedy="Name a file with content.")
    if re.search(r"^\s*\[+\s*(schema|column)\s*\]", content, re.MULTILINE):
        return SchemaError(
            f"{file} is a schema already.", remedy=f"Give it to the run: --schema {file}."
        )
    first, second, *_ = (*content.lstrip().splitlines(), "")
    if first[0] not in "<[{" and any(0 < first.count(s) <= second.count(s) for s in ",;\t|"):
        return _table(f"{file} looks like a table, not a code book.", file)
    return SchemaError(
        f"{file} is not a code book that margrave knows.",
        remedy="It reads DDI-Codebook, Frictionless Table Schema, CSV on the Web, SDV Metadata V2, REDCap data"
        " dictionaries, and the labels in files of Stata, SPSS and SAS.",
    )


def schema_of_variables(variables: Sequence[Variable], cite: str) -> Schema:
    """Return the schema of some variables, whose values are public and cite ``cite``."""
    columns: list[Column] = []
    ignore: list[str] = []
    remarks: dict[str, str] = {}
    sources: dict[str, ColumnSource] = {}
    named = sorted((v for v in variables if v.names_person), key=lambda v: v.person_rank)
    persons = [v.name for v in named]
    persons += [v.name for v in variables if v.participant]
    person = persons[0] if persons else None
    for variable in variables:
        column = variable.column
        if variable.name == person:
            continue
        if column is None or variable.names_person:
            ignore.append(variable.name)
            continue
        columns += [column, *parts_of(column, [v.name for v in variables])]
        remarks[variable.name] = variable.remark
        codes = variable.missing_codes if column.missing else ()
        cited = cite if variable.states_values else ""
        sources[variable.name] = ColumnSource(
            cite=cited, missing_codes=codes, title=variable.title, labels=variable.labels
        )
    if not columns:
        raise SchemaError(
            "The code book states no column that can be synthesized.",
            remedy="Write the schema by hand.",
        )
    remarks[""] = f"{cite}. Check that its bounds and categories were not computed from the rows."
    if questions := _questions([v for v in variables if v.name in remarks], person):
        remarks[""] += f"\n{LOOK} {' '.join(questions)}"
    return Schema(columns, person=person, ignore=ignore, remarks=remarks, sources=sources)


def _questions(variables: Sequence[Variable], person: str | None) -> list[str]:
    """Return what the custodian has to look at before the schema is used."""
    columns: dict[str, list[str]] = {}
    for variable in variables:
        for question in variable.questions:
            columns.setdefault(question, []).append(repr(variable.name))
    found = [
        f"Column{'s' if len(names) > 1 else ''} {', '.join(names)}: {question}"
        for question, names in columns.items()
    ]
    if person is not None:
        found.append(
            f"{person!r} is taken for the person ID column, so a run needs a unit of persons (--unit"
            " add-remove-person:K). Is that wrong? Then delete the line person = ..., and list the column under ignore."
        )
    return found
