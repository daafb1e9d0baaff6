"""From a file or frame to a table of codes: columns matched, values checked, persons numbered, all in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa

from margrave.data.persons import Persons
from margrave.data.raw_columns import RawColumns
from margrave.data.readers import open_file
from margrave.data.table import MemoryTable
from margrave.domain import Codes
from margrave.error_sanitizer import hide_rows, reveal_table
from margrave.errors import DataError
from margrave.frames import collected, columns_of, names_of
from margrave.schema import (
    Categorical,
    Integer,
    Ordinal,
    Preflight,
    Real,
    Schema,
    check_schema_given,
)
from margrave.schema.validation import READ_OFF
from margrave.types import FloatArray, IntArray


@hide_rows
def read_table(source: Any, schema: Schema, *, total: bool = False) -> MemoryTable:
    """Return the table of a CSV or Parquet file (a path), or of a frame of pandas, Polars, PyArrow
    or DuckDB.

    A table that was read with this schema is returned as it is. Values are read by the schema's
    types, never by types seen in rows. With ``total``, no value raises an error or a warning: each
    has the code that the schema gives it, and rows without a person are left out.

    Raises:
        DataError: Before anything is spent: the file is not clean, the columns are not those of the
            schema, or a policy refuses values. The error has counts but no value, for the custodian
            only.

    Warns:
        PersonWarning: Person IDs may name nobody, or several may name one person.

    Privacy:
        None spent. The table is true data, for the gate.
    """
    check_schema_given(schema)
    source = reveal_table(source)
    if isinstance(source, MemoryTable):
        if source.schema != schema:
            raise DataError(
                "The table was read with another schema.",
                remedy="Give the schema that it was read with, or the rows themselves.",
            )
        return source
    schema.check_apart(source)
    numbering = numbering_of(schema)
    raws: list[RawColumns] = []
    pieces, persons, found = read_pieces(source, schema, numbering, raws=raws)
    values = np.concatenate([p.values for p in pieces], axis=1)
    raw = RawColumns.joined(raws) if schema.to_learn else None
    if total and persons is not None:
        named = np.flatnonzero(persons >= 0)
        values, persons = values[:, named], persons[named]
        raw = None if raw is None else raw.take(named)
    if not total:
        found.require()
        if persons is not None and numbering is not None:
            numbering.warn(persons, schema.accepted)
    return MemoryTable(schema, Codes(schema.domain, values), persons, raw)


def categories_in_rows(table: MemoryTable) -> str:
    """Return a sentence that names the columns whose listed categories all occur, with none beside them; "" if none.

    **Privacy:** NOT private: a fact about the rows, for the custodian alone.
    """
    listed = [
        c.name
        for c in table.schema.columns
        if isinstance(c, Categorical | Ordinal) and _all_occur(table, c)
    ]
    return (
        f"Every listed category occurs in the rows, in columns {', '.join(listed)}. {READ_OFF}"
        if listed
        else ""
    )


def _all_occur(table: MemoryTable, column: Categorical | Ordinal) -> bool:
    occurring, listed = table.occurring(column.name), len(column.categories)
    return bool(
        occurring[:listed].all() and not occurring[listed : column.size - column.missing].any()
    )


@hide_rows
def read_codes(source: Any, schema: Schema, columns: Sequence[str] | None = None) -> Codes:
    """Return the codes of a table that may lack columns: ``columns``, or all that it shares with
    the schema.

    Values, policies and errors are as for ``read_table``; a column that the schema neither has nor
    ignores is an error too. A person ID column may exist, and is not read.
    """
    check_schema_given(schema)
    schema.check_declared()
    found = _found(source, schema)
    wanted = (
        [n for n in schema.domain if n in found]
        if columns is None
        else list(schema.domain.clique(columns))
    )
    ignored = [*_beside(schema), *(schema.domain if columns is not None else ())]
    match_columns(found, wanted or schema.domain.attributes, ignored)
    codes, preflight = _some(source, schema, wanted, ignored)
    preflight.require()
    return codes


@hide_rows
def public_codes(
    source: Any, schema: Schema, columns: Sequence[str] | None = None, *, part: bool = False
) -> tuple[Codes, tuple[str, ...]]:
    """Return the codes of a public table, and sentences on values that the schema does not have.

    Without ``columns``, reads all columns that it shares with the schema; one that the schema
    neither has nor ignores is then an error, since it may be one of them under another name. A
    column without any value of the schema is an error unless its rows may be a selected ``part``.
    """
    schema.check_declared()
    found = _found(source, schema)
    wanted = (
        [n for n in schema.domain if n in found]
        if columns is None
        else list(schema.domain.clique(columns))
    )
    if not wanted:
        match_columns(found, schema.domain.attributes)  # its words for a table of other columns
        raise DataError("No column of the public table is to be read.", remedy="Name one at least.")
    absent = [n for n in wanted if n not in found]
    extra = [n for n in found if n not in schema.domain and n not in _beside(schema)]
    if absent:
        raise DataError(
            f"The public table has no column {_names(absent)}, which is to be read.",
            remedy="Name those that it has.",
        )
    if extra and columns is None:
        raise DataError(
            f"The schema has no column {_names(extra)}, which the public table holds.",
            remedy="Call it as the schema does, or take it out of the public table; or name the columns to read:"
            f" --public-columns {','.join(wanted)} (in Python columns=[...]).",
        )
    codes, preflight = _some(source, schema, wanted, [n for n in found if n not in wanted])
    return codes, preflight.require(public=True, part=part).changes


def _found(source: Any, schema: Schema) -> Sequence[str]:
    return (
        open_file(source, [c.name for c in schema.columns]).columns
        if is_path(source)
        else names_of(source)
    )


def _beside(schema: Schema) -> list[str]:
    return [*schema.ignore, *([] if schema.person is None else [schema.person])]


def _some(
    source: Any, schema: Schema, columns: Sequence[str], ignored: Iterable[str]
) -> tuple[Codes, Preflight]:
    known = replace(
        schema.select(columns), ignore=tuple(n for n in dict.fromkeys(ignored) if n not in columns)
    )
    pieces, _, preflight = read_pieces(source, known, causes=True)
    return Codes(known.domain, np.concatenate([p.values for p in pieces], axis=1)), preflight


@hide_rows
def read_synthetic(source: Any, schema: Schema) -> MemoryTable:
    """Return a table that margrave wrote for this schema: a path to CSV or Parquet, or a frame.

    It has no person ID column, and its dates are in ISO 8601 or the ``format`` of the real table's.

    >>> schema = Schema.coded({"age": 3})
    >>> read_synthetic(pa.table({"age": [0, 2]}), schema).rows()
    2
    """
    return MemoryTable(schema, synthetic_codes(source, schema))


@hide_rows
def synthetic_codes(source: Any, schema: Schema) -> Codes:
    """Return the codes of a table that margrave wrote for this schema. See ``read_synthetic``."""
    check_schema_given(schema)
    return Codes(
        schema.domain, read_codes(source, schema.for_reading_output(), list(schema.domain)).values
    )


@hide_rows
def read_numbers(source: Any, schema: Schema) -> dict[str, FloatArray]:
    """Return the numbers of integer and real columns as written, also beyond the bounds.

    Empty values and those that the policy turns into missing ones are left out.

    Privacy:
        NOT private; these are values of the rows, for evaluation.
    """
    numeric = [c for c in schema.columns if isinstance(c, Integer | Real)]
    pieces: dict[str, list[FloatArray]] = {c.name: [np.empty(0)] for c in numeric}
    if not numeric:
        return {}
    person = [] if schema.person is None else [schema.person]
    aside = [n for n in (*schema.ignore, *person, *schema.domain) if n not in pieces]
    for frame in _frames(source, replace(schema.select(pieces), ignore=tuple(aside))):
        found = columns_of(frame, list(pieces))
        for column in numeric:
            for piece in found[column.name]:
                points = column.points(piece)[0]
                lost = column.encode(piece).outside if column.outside == "missing" else np.False_
                pieces[column.name].append(points[np.isfinite(points) & ~lost])
    return {name: np.concatenate(listed) for name, listed in pieces.items()}


def read_pieces(
    source: Any,
    schema: Schema,
    numbering: Persons | None = None,
    *,
    causes: bool = False,
    raws: list[RawColumns] | None = None,
) -> tuple[list[Codes], IntArray | None, Preflight]:
    numbering = numbering_of(schema) if numbering is None else numbering
    pieces: list[Codes] = []
    ids: list[IntArray] = []
    found: Preflight | None = None
    for frame in _frames(source, schema):
        codes, seen = schema.read(frame, causes=causes)
        if schema.person is not None and numbering is not None:
            numbered, nameless = numbering.number(columns_of(frame, [schema.person])[schema.person])
            ids.append(numbered)
            seen = replace(seen, nameless=nameless)
        pieces.append(codes)
        if raws is not None and schema.to_learn:
            raws.append(RawColumns.of(frame, schema))
        found = seen if found is None else found + seen
    if found is None:
        nothing, found = schema.read(_empty(schema))
        pieces.append(nothing)
        if raws is not None:
            raws.append(RawColumns.of(_empty(schema), schema))
    persons = None if numbering is None else np.concatenate([np.empty(0, dtype=np.int64), *ids])
    return pieces, persons, found


def numbering_of(schema: Schema) -> Persons | None:
    return None if schema.person is None else Persons(schema.person_accepts)


def _empty(schema: Schema) -> pa.Table:
    return pa.table({c.name: pa.nulls(0, pa.string()) for c in schema.columns})


def _frames(source: Any, schema: Schema) -> Iterator[Any]:
    wanted = [c.name for c in schema.columns] + ([] if schema.person is None else [schema.person])
    if is_path(source):
        file = open_file(source, wanted)
        if (
            file.separator is not None
            and len(file.columns) == 1 < len(wanted)
            and file.columns[0] not in wanted
        ):
            raise DataError(  # not by its text, which may be a row
                f"The first line of {file.path} is a single field, and the schema has {len(wanted)} columns.",
                remedy="Is the separator another than comma, semicolon, tab or bar? Write the file with one of these.",
            )
        match_columns(file.columns, wanted, schema.ignore)
        yield from (pa.Table.from_batches([b]) for b in file.batches(wanted))
    else:
        match_columns(names_of(source), wanted, schema.ignore)
        yield collected(source, wanted)


def is_path(source: Any) -> bool:
    return isinstance(source, str | PathLike)


def match_columns(
    found: Sequence[str], expected: Sequence[str], ignored: Iterable[str] = ()
) -> None:
    """Raise ``DataError`` unless the table's columns are those of the schema, apart from ignored
    ones.
    """
    absent = [n for n in expected if n not in found]
    extra = [n for n in found if n not in expected and n not in set(ignored)]
    if extra and len(absent) == len(
        expected
    ):  # then what passes for names may be a row, which no message may quote
        raise DataError(
            "No column of the table has a name that the schema knows.",
            remedy="The first line of a CSV file names the columns: is it there? Make the two agree.",
        )
    differences = []
    if absent:
        differences.append(f"The table has no column {_names(absent)}, which the schema names.")
    if extra:
        differences.append(f"The schema has no column {_names(extra)}, which the table holds.")
    if differences:
        ignore = f" To leave columns of the table out, list them in the schema: ignore = [{_names(extra)}]."
        raise DataError(
            " ".join(differences), remedy=f"Make the two agree.{ignore if extra else ''}"
        )


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(f'"{n}"' for n in names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"
