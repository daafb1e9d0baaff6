"""From a file or frame to a table of codes: columns matched, values checked, persons numbered, all in one pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from margrave.data.batch_checks import Checks, warn_of_values
from margrave.data.batch_codes import Reading
from margrave.data.batch_scans import Scans
from margrave.data.batch_sources import BatchSource, KeptBatches, open_source, sampled_frame
from margrave.data.batch_table import BatchTable
from margrave.data.graph_scans import GraphScans, graph_of
from margrave.data.persons import Persons, warn_of_persons
from margrave.data.raw_columns import RawColumns
from margrave.data.readers import File
from margrave.data.row_hash import RowKey
from margrave.data.spark_frames import spark_frame
from margrave.data.spark_scans import SparkScans
from margrave.data.table import MemoryTable
from margrave.domain import Codes, code_dtype
from margrave.error_sanitizer import hide_rows, reveal_table
from margrave.errors import DataError, InputError, did_you_mean
from margrave.frames import collected, columns_of, names_of
from margrave.marginal.counting import count_cliques
from margrave.schema import (
    Categorical,
    Integer,
    Ordinal,
    Preflight,
    Real,
    Schema,
    check_schema_given,
    schema_of,
)
from margrave.schema.elapsed_values import names_to_read
from margrave.schema.missing_codes import encode_with_missing_codes
from margrave.schema.parts import source_name
from margrave.schema.spellings import folded
from margrave.schema.usual_values import listed_columns
from margrave.types import Clique, FloatArray, IntArray


@hide_rows
def read_table(
    source: Any, schema: Schema | str | Path, *, total: bool = False
) -> MemoryTable | BatchTable:
    """Return the table of files (a path, a folder or a pattern), of a DuckDB database
    (``duckdb:FILE?table=NAME``), of Spark (``spark:NAME``), of a ``StreamSource``, or of a frame of pandas, Polars,
    PyArrow, DuckDB, Spark, Dask or Ray. The schema may be a file too.

    A table that was read with this schema is returned as it is. Values are read by the schema's
    types, never by types seen in rows. With ``total``, no value raises an error or a warning: each
    has the code that the schema gives it, and rows without a person are left out. A source whose
    codes and values to learn need more than ``MemoryTable.max_code_bytes`` becomes a ``BatchTable``, which reads it
    again for every count.

    Raises:
        DataError: Before anything is spent: the file is not clean, the columns are not those of the
            schema, or a policy refuses values. The error has counts but no value, for the custodian
            only.

    Warns:
        PersonWarning: Person IDs may name nobody, or several may name one person.
        CustodianWarning: More than a few values of a column are not in the schema.

    Privacy:
        None spent. The table is true data, for the gate.
    """
    source = reveal_table(source)
    schema = schema_of(schema, table=source)
    if isinstance(source, MemoryTable | BatchTable):
        if source.schema != schema:
            raise DataError(
                "The table was read with another schema.",
                remedy="Give the schema that it was read with, or the rows themselves.",
            )
        return source
    schema.check_apart(source)
    if (frame := spark_frame(source)) is not None:
        match_columns(names_of(frame), wanted_columns(schema), schema.ignore)
        return BatchTable.over(SparkScans(frame), schema, total=total)
    if (graph := graph_of(source)) is not None:
        match_columns(graph.columns, wanted_columns(schema), schema.ignore)
        return BatchTable.over(GraphScans(graph), schema, total=total)
    opened = open_source(source, wanted_columns(schema)) or source
    table = None if is_large(opened, schema) else _in_memory(opened, schema, total)
    return table or BatchTable.read(batches_of(opened, schema), schema, total=total)


def _in_memory(source: Any, schema: Schema, total: bool) -> MemoryTable | None:
    numbering = numbering_of(schema)
    raws: list[RawColumns] = []
    try:
        pieces, persons, found = read_pieces(
            source, schema, numbering, raws=raws, limit=MemoryTable.max_code_bytes
        )
    except _TooLarge:
        return None
    values = np.concatenate([p.values for p in pieces], axis=1)
    raw = RawColumns.joined(raws) if schema.to_learn else None
    if total and persons is not None:
        named = np.flatnonzero(persons >= 0)
        values, persons = values[:, named], persons[named]
        raw = None if raw is None else raw.take(named)
    if not total:
        warn_of_values(found.require())
        if persons is not None and numbering is not None:
            warn_of_persons(numbering.check(persons), schema.accepted)
    return MemoryTable(schema, Codes(schema.domain, values), persons, raw)


@hide_rows
def check_rows(source: Any, schema: Schema) -> Preflight:
    """Return the counts of values outside the schema and of persons, with guesses at lost values; for the custodian.

    Its ``drafted`` are the columns whose listed categories all occur.
    """
    numbering = numbering_of(schema)
    opened = open_source(source, wanted_columns(schema)) or source
    if not is_large(opened, schema):
        try:
            pieces, persons, found = read_pieces(
                opened, schema, numbering, causes=True, limit=MemoryTable.max_code_bytes
            )
            known = None if persons is None or numbering is None else numbering.check(persons)
            codes = Codes(schema.domain, np.concatenate([p.values for p in pieces], axis=1))
            counts = count_cliques(codes, [(c.name,) for c in listed_columns(schema.columns)])
            return replace(found, persons=known, drafted=categories_in_rows(schema, counts))
        except _TooLarge:
            pass
    reading = Reading(schema, RowKey(), causes=True)
    checks = Checks(schema, reading.key)
    Scans(batches_of(opened, schema)).run(reading, checks)
    return replace(checks.preflight(), drafted=categories_in_rows(schema, checks.columns()))


class _TooLarge(Exception):
    """A source needs more memory than a table in memory may have."""


def is_large(source: Any, schema: Schema) -> bool:
    """Return True if a source states more rows than a table in memory has; others show it when they are read."""
    batches = open_source(source, wanted_columns(schema))
    rows = None if batches is None else batches.rows()
    return rows is not None and _fixed_bytes(rows, schema) > MemoryTable.max_code_bytes


def _fixed_bytes(rows: int, schema: Schema) -> int:
    """Return the bytes of codes and of numbers to learn. Texts to learn have any length."""
    codes = len(schema.columns) * np.dtype(code_dtype(schema.domain.sizes)).itemsize
    return rows * (codes + sum(8 for c in schema.to_learn if c.is_number))


def categories_in_rows(schema: Schema, counts: Mapping[Clique, IntArray]) -> tuple[str, ...]:
    """Return the columns whose listed categories all occur, with none beside them, from the counts of single columns.

    **Privacy:** NOT private: a fact about the rows, for the custodian alone.
    """
    return tuple(c.name for c in listed_columns(schema.columns) if _all_occur(counts[c.name,], c))


def _all_occur(counts: IntArray, column: Categorical | Ordinal) -> bool:
    occurring, listed = counts > 0, len(column.categories)
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
    wanted = _shared(schema, found) if columns is None else list(schema.domain.clique(columns))
    ignored = [*_beside(schema), *(schema.table_names if columns is not None else ())]
    match_columns(found, _read_from(schema, wanted) or schema.table_names, ignored)
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
    wanted = _shared(schema, found) if columns is None else list(schema.domain.clique(columns))
    read_from = _read_from(schema, wanted)
    if not wanted:
        match_columns(found, schema.table_names)  # its words for a table of other columns
        raise DataError("No column of the public table is to be read.", remedy="Name one at least.")
    absent = [n for n in read_from if n not in found]
    extra = [n for n in found if n not in schema.table_names and n not in _beside(schema)]
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
    codes, preflight = _some(source, schema, wanted, [n for n in found if n not in read_from])
    return codes, preflight.require(public=True, part=part).changes


def _found(source: Any, schema: Schema) -> Sequence[str]:
    return columns_in(source, schema.table_names)


def _shared(schema: Schema, found: Sequence[str]) -> list[str]:
    return [c.name for c in schema.columns if source_name(c) in found]


def _read_from(schema: Schema, names: Collection[str]) -> list[str]:
    sources = (source_name(c) for c in schema.columns if c.name in names)
    return list(dict.fromkeys(sources))


def columns_in(source: Any, expected: Sequence[str] = ()) -> Sequence[str]:
    """Return the names of a table's columns."""
    batches = open_source(source, expected)
    return names_of(source) if batches is None else batches.columns


def _beside(schema: Schema) -> list[str]:
    return [*schema.ignore, *([] if schema.person is None else [schema.person])]


def _some(
    source: Any, schema: Schema, columns: Sequence[str], ignored: Iterable[str]
) -> tuple[Codes, Preflight]:
    known = schema.select(columns)
    read = known.table_names
    known = replace(known, ignore=tuple(n for n in dict.fromkeys(ignored) if n not in read))
    pieces, _, preflight = read_pieces(source, known, causes=True)
    return Codes(known.domain, np.concatenate([p.values for p in pieces], axis=1)), preflight


@hide_rows
def read_synthetic(source: Any, schema: Schema) -> MemoryTable:
    """Return a table that margrave wrote for this schema: a path to a file, or a frame.

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

    Empty values, missing-value codes and values that the policy turns into missing ones are left out. A source
    too large for memory is sampled: about a million rows are read.

    Privacy:
        NOT private; these are values of the rows, for evaluation.
    """
    numeric = [c for c in schema.columns if isinstance(c, Integer | Real)]
    if not numeric:
        return {}
    names = names_to_read(schema.columns, [c.name for c in numeric])
    person = [] if schema.person is None else [schema.person]
    aside = [n for n in (*schema.ignore, *person, *schema.table_names) if n not in names]
    known = replace(schema.select(names), ignore=tuple(aside))
    try:
        if not is_large(source, schema):
            return _numbers(_frames(source, known, MemoryTable.max_code_bytes), numeric, known)
    except _TooLarge:
        pass
    return _numbers([sampled_frame(source, names)], numeric, known)


def _numbers(
    frames: Iterable[pa.Table], numeric: Sequence[Integer | Real], schema: Schema
) -> dict[str, FloatArray]:
    pieces: dict[str, list[FloatArray]] = {c.name: [np.empty(0)] for c in numeric}
    for frame in frames:
        found = schema.pieces_of(frame, list(pieces))
        for column in numeric:
            for piece in found[column.name]:
                points = column.points(piece)[0]
                stated = schema.source(column.name).missing_codes
                encoded = encode_with_missing_codes(column, piece, stated)
                lost = encoded.outside if column.outside == "missing" else np.False_
                pieces[column.name].append(points[np.isfinite(points) & ~encoded.empty & ~lost])
    return {name: np.concatenate(listed) for name, listed in pieces.items()}


def read_pieces(
    source: Any,
    schema: Schema,
    numbering: Persons | None = None,
    *,
    causes: bool = False,
    raws: list[RawColumns] | None = None,
    limit: int | None = None,
) -> tuple[list[Codes], IntArray | None, Preflight]:
    numbering = numbering_of(schema) if numbering is None else numbering
    pieces: list[Codes] = []
    ids: list[IntArray] = []
    found: Preflight | None = None
    for frame in _frames(source, schema, limit, raws):
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
    return pa.table({name: pa.nulls(0, pa.string()) for name in schema.table_names})


def _frames(
    source: Any, schema: Schema, limit: int | None = None, raws: Sequence[RawColumns] | None = None
) -> Iterator[pa.Table]:
    """Yield the rows of a source in pieces. Raise ``_TooLarge`` if it can be read again and exceeds the limit."""
    wanted, rows, texts = wanted_columns(schema), 0, 0
    opened = open_source(source, wanted)
    if opened is None:
        match_columns(names_of(source, wanted), wanted, schema.ignore)
        yield collected(source, wanted)
        return
    for batch in batches_of(opened, schema)(wanted):
        rows += batch.num_rows
        yield pa.Table.from_batches([batch])
        texts += raws[-1].text_bytes if raws else 0
        if limit is not None and _fixed_bytes(rows, schema) + texts > limit:
            raise _TooLarge


def batches_of(source: Any, schema: Schema) -> Callable[[Sequence[str]], Iterator[pa.RecordBatch]]:
    """Return the function that reads the batches of a source, whose columns are those of the schema."""
    batches = open_source(source, wanted_columns(schema))
    if batches is None:
        raise InputError("This table is in memory.", remedy="Give read_table the frame.")
    _match(batches, schema)
    return batches.batches


def _match(batches: BatchSource, schema: Schema) -> None:
    wanted = wanted_columns(schema)
    batches = batches.source if isinstance(batches, KeptBatches) else batches
    if (
        isinstance(batches, File)
        and batches.separator is not None
        and len(batches.columns) == 1 < len(wanted)
        and batches.columns[0] not in wanted
    ):
        raise DataError(  # not by its text, which may be a row
            f"The first line of {batches.path} is a single field, and the schema has {len(wanted)} columns."
            " Is the separator another than comma, semicolon, tab or bar, or are there words above the names of the"
            " columns?",
            remedy="Write the file with one of these separators. Delete a title or comment above the names.",
        )
    match_columns(batches.columns, wanted, schema.ignore)


def wanted_columns(schema: Schema) -> list[str]:
    """Return the names of the table's columns that are read, that of the person ID column included."""
    return [*schema.table_names, *([] if schema.person is None else [schema.person])]


def match_columns(
    found: Sequence[str], expected: Sequence[str], ignored: Iterable[str] = ()
) -> None:
    """Raise ``DataError`` unless the table's columns are those of the schema, apart from ignored ones."""
    absent = [n for n in expected if n not in found]
    extra = [n for n in found if n not in expected and n not in set(ignored)]
    # what passes for names may then be a row, which no message may quote
    if extra and len(absent) == len(expected):
        raise DataError(
            "No column of the table has a name that the schema knows.",
            remedy="Is it the right file, or sheet of a workbook? The first line of either names the columns: is it"
            " there? A frame names them by text, in one level. Make the two agree.",
        )
    differences = []
    if absent:
        differences.append(f"The table has no column {_names(absent)}, which the schema names.")
    if extra:
        differences.append(f"The schema has no column {_names(extra)}, which the table holds.")
    if differences:
        alike = {folded(n) for n in absent} & {folded(n) for n in extra}
        if alike:
            differences.append("Two of these differ in blanks or capitals alone.")
        guesses = {n: f"For {n!r}: {guess}" for n in absent if (guess := did_you_mean(n, extra))}
        lacking = [n for n in absent if n not in guesses]
        them = "it" if len(lacking) == 1 else "them"
        add = f"Add {_names(lacking)} to the table, or take {them} out of the schema."
        others = [n for n in extra if not any(f"mean {n!r}?" in g for g in guesses.values())]
        ignore = f" To leave columns of the table out, list them in the schema: ignore = [{_names(others)}]."
        raise DataError(
            " ".join(differences),
            remedy=f"{''.join(guesses.values())}{add if lacking else 'Make the two agree.'}{ignore if others else ''}",
        )


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(f'"{n}"' for n in names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"
