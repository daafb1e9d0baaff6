"""From a file or frame to a table of codes: columns matched, values checked, persons numbered, all in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa

from margrave.data.files import open_file, read_frame
from margrave.data.persons import Persons
from margrave.data.table import MemoryTable
from margrave.error_sanitizer import hides_rows, shown
from margrave.errors import DataError, MargraveError
from margrave.schema import (
    Categorical,
    Codes,
    Column,
    Date,
    Integer,
    Ordinal,
    Preflight,
    Real,
    Schema,
    Timestamp,
    check_schema_given,
)
from margrave.schema.draft import draft
from margrave.schema.evidence import gather
from margrave.schema.frames import collected, columns_of, each_column, names_of
from margrave.schema.headers import question, suspected
from margrave.schema.identity import likeliest, of_persons
from margrave.schema.preflight import READ_OFF, overlooked
from margrave.typing import FloatArray, IntArray

DRAFTED_AT_MOST = 1_000_000
"""Rows beyond which a check does not draft a schema to compare: that holds the whole table."""


@hides_rows
def read_table(source: Any, schema: Schema) -> MemoryTable:
    """The table of a CSV or Parquet file (a path), or of a frame of pandas, Polars, PyArrow or DuckDB.

    A table that was read with this schema is given back as it is. Values are read by the schema's types, never by types
    seen in rows. Raises ``DataError``, before anything is spent, for a file that is not clean, for columns that are not
    those of the schema, and for values that a policy refuses. Warns (``PersonWarning``) of identifiers of persons that
    may be of nobody, or several of one person.

    **Privacy:** none is given; the table is for the gate. Errors hold counts but no value, for the custodian alone.
    """
    check_schema_given(schema)
    source = shown(source)
    if isinstance(source, MemoryTable):
        if source.schema != schema:
            raise DataError(
                "The table was read with another schema.",
                remedy="Give the schema that it was read with, or the rows themselves.",
            )
        return source
    schema.check_apart(source)
    numbering = _numbering(schema)
    pieces, persons, found = _read(source, schema, numbering)
    found.require()
    if persons is not None and numbering is not None:
        numbering.warn(persons)
    values = np.concatenate([p.values for p in pieces], axis=1)
    return MemoryTable(schema, Codes(schema.domain, values), persons)


def categories_in_rows(table: MemoryTable) -> str:
    """Return a sentence that names the columns whose listed categories all occur, with none beside them; "" if none.

    **Privacy:** NOT private: a fact about the rows, for the custodian alone.
    """
    listed = [c.name for c in table.schema.columns if isinstance(c, Categorical | Ordinal) and _all_occur(table, c)]
    return f"Every listed category occurs in the rows, in columns {', '.join(listed)}. {READ_OFF}" if listed else ""


def _all_occur(table: MemoryTable, column: Categorical | Ordinal) -> bool:
    occurring, listed = table.occurring(column.name), len(column.categories)
    return bool(occurring[:listed].all() and not occurring[listed : column.size - column.missing].any())


@hides_rows
def read_codes(source: Any, schema: Schema, columns: Sequence[str] | None = None) -> Codes:
    """The codes of a table that may lack columns: those named, or all that the schema has and the table too.

    Values, policies and errors are as for ``read_table``, and so is a column that the schema neither has nor ignores.
    The schema's column of persons may be there, and is not read.
    """
    check_schema_given(schema)
    found = _found(source, schema)
    wanted = [n for n in schema.domain if n in found] if columns is None else list(schema.domain.clique(columns))
    ignored = [*_beside(schema), *(schema.domain if columns is not None else ())]
    match_columns(found, wanted or schema.domain.attributes, ignored)
    codes, preflight = _some(source, schema, wanted, ignored)
    preflight.require()
    return codes


@hides_rows
def public_codes(
    source: Any, schema: Schema, columns: Sequence[str] | None = None, *, part: bool = False
) -> tuple[Codes, tuple[str, ...]]:
    """The codes of a public table, and what became of values that the schema does not hold, in sentences.

    A column of which the schema knows no value is an error, unless its rows may be a chosen ``part``.

    ``columns`` are those to read, and then it may have any others; without, all that the schema has and the table too,
    and one that the schema neither has nor ignores is an error: it may be one of them under another name.
    """
    found = _found(source, schema)
    wanted = [n for n in schema.domain if n in found] if columns is None else list(schema.domain.clique(columns))
    if not wanted:
        match_columns(found, schema.domain.attributes)  # its words for a table of other columns
        raise DataError("No column of the public table is to be read.", remedy="Name one at least.")
    absent = [n for n in wanted if n not in found]
    extra = [n for n in found if n not in schema.domain and n not in _beside(schema)]
    if absent:
        raise DataError(
            f"The public table has no column {_names(absent)}, which is to be read.", remedy="Name those that it has."
        )
    if extra and columns is None:
        raise DataError(
            f"The schema has no column {_names(extra)}, which the public table holds.",
            remedy="Call it as the schema does, or take it out of the public table; or name the columns to read:"
            f" --public-columns {','.join(wanted)} (in Python columns=[...]).",
        )
    codes, preflight = _some(source, schema, wanted, [n for n in found if n not in wanted])
    return codes, preflight.require(public=True, part=part).moved


def _found(source: Any, schema: Schema) -> Sequence[str]:
    """The names of the source's columns."""
    return open_file(source, [c.name for c in schema.columns]).columns if _is_path(source) else names_of(source)


def _beside(schema: Schema) -> list[str]:
    """The columns that a table may have and that are not synthesised."""
    return [*schema.ignore, *([] if schema.person is None else [schema.person])]


def _some(source: Any, schema: Schema, wanted: Sequence[str], ignored: Iterable[str]) -> tuple[Codes, Preflight]:
    """The codes of some columns, and what is to be known of their values."""
    known = replace(schema.only(wanted), ignore=tuple(n for n in dict.fromkeys(ignored) if n not in wanted))
    pieces, _, preflight = _read(source, known, causes=True)
    return Codes(known.domain, np.concatenate([p.values for p in pieces], axis=1)), preflight


@hides_rows
def read_synthetic(source: Any, schema: Schema) -> MemoryTable:
    """A table that margrave wrote for this schema: a path to CSV or Parquet, or a frame.

    It has no column of persons, and its dates are in ISO 8601 whatever the ``format`` of the real table's; one in that
    format is read too.

    >>> schema = Schema.coded({"age": 3})
    >>> read_synthetic(pa.table({"age": [0, 2]}), schema).rows()
    2
    """
    return MemoryTable(schema, synthetic_codes(source, schema))


@hides_rows
def synthetic_codes(source: Any, schema: Schema) -> Codes:
    """The codes of a table that margrave wrote for this schema. See ``read_synthetic``."""
    check_schema_given(schema)
    return Codes(schema.domain, read_codes(source, schema.of_output(), list(schema.domain)).values)


@hides_rows
def read_numbers(source: Any, schema: Schema) -> dict[str, FloatArray]:
    """The numbers of the columns of kind integer and real, as written: beyond the bounds too, without empty ones and
    those that the column's policy takes for missing.

    **Privacy:** none is given; these are values of the rows, for evaluation.
    """
    numeric = [c for c in schema.columns if isinstance(c, Integer | Real)]
    pieces: dict[str, list[FloatArray]] = {c.name: [np.empty(0)] for c in numeric}
    if not numeric:
        return {}
    person = [] if schema.person is None else [schema.person]
    aside = [n for n in (*schema.ignore, *person, *schema.domain) if n not in pieces]
    for frame in _frames(source, replace(schema.only(pieces), ignore=tuple(aside))):
        found = columns_of(frame, list(pieces))
        for column in numeric:
            for piece in found[column.name]:
                points = column.points(piece)[0]
                lost = column.encode(piece).outside if column.outside == "missing" else np.False_
                pieces[column.name].append(points[np.isfinite(points) & ~lost])
    return {name: np.concatenate(listed) for name, listed in pieces.items()}


@hides_rows
def check_table(source: Any, schema: Schema) -> Preflight:
    """What ``read_table`` would refuse, and how many values it would move. For the custodian alone.

    **Privacy:** NOT private: true counts.
    """
    check_schema_given(schema)
    schema.check_apart(source)
    numbering = _numbering(schema)
    _, persons, found = _read(source, schema, numbering, causes=True)
    names = [c.name for c in schema.columns]
    odd = suspected(schema.columns)
    further = [question(names, odd)] if odd else []
    found = replace(found, drafted=() if found.rows > DRAFTED_AT_MOST else _drafted(source, schema))
    if persons is None or numbering is None:
        return replace(found, further=(*further, *_overlooked(source, schema)))
    return replace(found, further=tuple(further), persons=numbering.check(persons))


def _drafted(source: Any, schema: Schema) -> tuple[str, ...]:
    """The columns whose bounds or categories are a draft's of the same rows: read off them, maybe."""
    if schema.draft:  # which says so itself
        return ()
    try:
        fresh = {c.name: _told(c) for c in draft_schema(source).columns}
    except MargraveError:  # there is nothing to draft
        return ()
    return tuple(c.name for c in schema.columns if (what := _told(c)) is not None and what == fresh.get(c.name))


def _told(column: Column) -> object:
    """What a draft reads off the rows, of a column: bounds or categories. None of kinds that have neither."""
    if isinstance(column, Integer | Real | Date | Timestamp):
        return type(column), column.low, column.high
    return frozenset(column.categories) if isinstance(column, Categorical | Ordinal) else None


def _overlooked(source: Any, schema: Schema) -> tuple[str, ...]:
    """The column that is ignored though it looks as if it said whose row it is, in a sentence."""
    ignored = [n for n in (open_file(source).columns if _is_path(source) else names_of(source)) if n in schema.ignore]
    if not ignored:
        return ()
    frame = open_file(source).read(ignored) if _is_path(source) else source
    person = likeliest([e for n, pieces in each_column(frame, ignored) if of_persons(e := gather(n, pieces))])
    return () if person is None else (overlooked(person),)


@hides_rows
def draft_schema(source: Any) -> Schema:
    """A draft schema of a file or frame, for a person to check. See ``margrave.schema.draft``.

    **Privacy:** NOT private: its bounds and categories are those of the rows. The gate refuses it until confirmed.
    """
    return draft(read_frame(source) if _is_path(source) else source)


def _read(
    source: Any, schema: Schema, numbering: Persons | None = None, *, causes: bool = False
) -> tuple[list[Codes], IntArray | None, Preflight]:
    numbering = _numbering(schema) if numbering is None else numbering
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
        found = seen if found is None else found + seen
    if found is None:
        nothing, found = schema.read(_empty(schema))
        pieces.append(nothing)
    persons = None if numbering is None else np.concatenate([np.empty(0, dtype=np.int64), *ids])
    return pieces, persons, found


def _numbering(schema: Schema) -> Persons | None:
    return None if schema.person is None else Persons(schema.person_accepts)


def _empty(schema: Schema) -> pa.Table:
    return pa.table({c.name: pa.nulls(0, pa.string()) for c in schema.columns})


def _frames(source: Any, schema: Schema) -> Iterator[Any]:
    """The source in pieces that hold the columns of the schema."""
    wanted = [c.name for c in schema.columns] + ([] if schema.person is None else [schema.person])
    if _is_path(source):
        file = open_file(source, wanted)
        if file.separator is not None and len(file.columns) == 1 < len(wanted) and file.columns[0] not in wanted:
            raise DataError(  # not by its text, which may be a row
                f"The first line of {file.path} is a single field, and the schema has {len(wanted)} columns.",
                remedy="Is the separator another than comma, semicolon, tab or bar? Write the file with one of these.",
            )
        match_columns(file.columns, wanted, schema.ignore)
        yield from (pa.Table.from_batches([b]) for b in file.batches(wanted))
    else:
        match_columns(names_of(source), wanted, schema.ignore)
        yield collected(source, wanted)


def _is_path(source: Any) -> bool:
    return isinstance(source, str | PathLike)


def match_columns(found: Sequence[str], wanted: Sequence[str], ignored: Iterable[str] = ()) -> None:
    """``DataError`` unless the table's columns are those of the schema, but for ignored ones."""
    absent = [n for n in wanted if n not in found]
    extra = [n for n in found if n not in wanted and n not in set(ignored)]
    if extra and len(absent) == len(wanted):  # then what passes for names may be a row, which no message may quote
        raise DataError(
            "No column of the table has a name that the schema knows.",
            remedy="The first line of a CSV file names the columns: is it there? Make the two agree.",
        )
    told = []
    if absent:
        told.append(f"The table has no column {_names(absent)}, which the schema names.")
    if extra:
        told.append(f"The schema has no column {_names(extra)}, which the table holds.")
    if told:
        ignore = f" To leave columns of the table out, list them in the schema: ignore = [{_names(extra)}]."
        raise DataError(" ".join(told), remedy=f"Make the two agree.{ignore if extra else ''}")


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(f'"{n}"' for n in names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"
