"""Public rows that lack columns, beside what a release says of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from margrave.domain import Codes
from margrave.errors import InputError
from margrave.frames import collected, columns_of, names_of
from margrave.models.protocol import Model
from margrave.public_table import PublicTable
from margrave.schema import (
    Categorical,
    Column,
    Date,
    Elapsed,
    Integer,
    Ordinal,
    Real,
    Schema,
    Timestamp,
)
from margrave.schema.bins import EXACT
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.elapsed_values import with_moments
from margrave.schema.numeric import UNITS, Numeric
from margrave.schema.order_sampling import Drawn
from margrave.schema.parsing import EPOCH, MARKS, Mask, distinct, plain, unmarked
from margrave.schema.parts import TimePart, source_name
from margrave.structural_zeros import projected, violating


def completed(
    schema: Schema, model: Model, rows: Any, attestation: str, rng: np.random.Generator
) -> pa.Table:
    """Return the rows as they are with all of the schema's columns; those they lack are drawn. See
    ``Release.complete``.
    """
    names = names_of(rows)
    given = schema.select(_known(schema, names))
    rows = collected(rows, names)
    codes, preflight = given.read(rows)
    preflight.require(public=True, part=True)
    public = PublicTable(codes, attestation)  # which checks the attestation
    _check(given, codes)
    _check_possible(schema, codes)
    try:
        whole = model.complete(public.codes, rng=rng)
    except InputError:
        _check_held(given, model, codes)
        raise
    _check(schema, whole)
    known = _points(given, codes, rows, rng)
    made = schema.decode(whole, rng=rng, known=known, as_numbers=True)
    pieces = columns_of(rows, names)
    for column in (c for c in given.columns if not isinstance(c, TimePart | Elapsed)):
        own = as_given(column, pieces[column.name])
        made = made.set_column(made.column_names.index(column.name), column.name, own)
    made = with_moments(made, schema.columns)
    for column in (c for c in given.columns if isinstance(c, Elapsed)):
        own = as_given(column.moments, pieces[column.name])
        made = made.set_column(made.column_names.index(column.name), column.name, own)
    for name in names:
        if name not in made.column_names:
            made = made.append_column(name, _joined(pieces[name]))
    return made


def _known(schema: Schema, found: list[str]) -> list[str]:
    known = [c.name for c in schema.columns if source_name(c) in found]
    named = schema.table_names
    lacking = {a.strip().lower(): a for a in named if a not in found}
    for name in found:
        if name not in named and (meant := lacking.get(name.strip().lower())) is not None:
            raise InputError(
                f"The rows have a column {name!r}, and the release has {meant!r}: it would be drawn beside it.",
                remedy=f"Name it {meant!r}; or give it quite another name, if it is another column.",
            )
    if not known or len(known) == len(schema.domain):
        raise InputError(
            f"The rows have {'none' if not known else 'all'} of the release's columns: {', '.join(schema.domain)}.",
            remedy="Give some of them: the others are drawn.",
        )
    return known


def _check(schema: Schema, codes: Codes) -> None:
    """Raise ``InputError`` where the schema rules a row out."""
    wrong = int(violating(schema.domain.zeros, codes.column, len(codes)).sum())
    if wrong:
        raise InputError(
            f"{wrong:,} of the rows have values that the schema declares impossible together.",
            remedy="Mend or drop these rows, or mend the schema's constraints and release anew.",
        )


def _check_possible(schema: Schema, codes: Codes) -> None:
    """Raise ``InputError`` where it rules out every value of the columns that a row lacks.

    Where that takes too large a table, the model says that it has no such records.
    """
    zeros = projected(schema.domain.zeros, codes.domain.attributes, schema.domain.size) or ()
    wrong = int(violating(zeros, codes.column, len(codes)).sum())
    if wrong:
        raise InputError(
            f"{wrong:,} of the rows have values that the schema declares impossible together, whatever the columns are"
            " that they lack.",
            remedy="Mend or drop these rows, or mend the schema's constraints and release anew.",
        )


def _check_held(schema: Schema, model: Model, codes: Codes) -> None:
    """Raise ``InputError`` for the columns that have values of which the model has no record."""
    lacking = {}
    for column in schema.columns:
        clique = (column.name,)
        rows = np.bincount(codes.column(column.name), minlength=column.size)
        absent = np.flatnonzero((rows > 0) & ~(model.answer([clique])[clique] > 0))
        if absent.size:
            lacking[column.name] = [column.labels()[i] for i in absent[:5]]
    if lacking:
        found = " and ".join(f"{a} = {' or '.join(labels)}" for a, labels in lacking.items())
        raise InputError(
            f"The model has no record with {found}, and the rows have.",
            remedy="Recode these values, or leave the column out. Values that the schema does not know count as"
            " other.",
        )


def _points(schema: Schema, codes: Codes, rows: Any, rng: np.random.Generator) -> dict[str, Drawn]:
    found = {}
    lines = [c for c in schema.columns if isinstance(c, NUMERIC_KINDS)]
    for column, pieces in zip(
        lines, [schema.pieces_of(rows, [c.name])[c.name] for c in lines], strict=True
    ):
        values, null = column.draw_points(codes.column(column.name).astype(np.int64), rng)
        points = np.concatenate([column.points(piece)[0] for piece in pieces])
        low, high = column.cells.edges[0], column.cells.edges[-1] - column.cells.whole
        inside = ~null & (points >= low) & (points <= high)
        found[column.name] = (np.where(inside, points, values), null)
    return found


def as_given(column: Column, pieces: list[pa.Array]) -> pa.ChunkedArray:
    """Return the values of a public column as they came, beyond the schema's bounds and outside its
    categories too.

    Categories are spelled as in the schema. A column of another kind has the schema's type, unless that cannot hold a
    value (half a year of age, a text among numbers): then it comes back as it was.

    >>> from margrave.schema import Categorical, Integer
    >>> as_given(Integer("age", 0, 99, missing=True), [pa.array(["12", "130", "NA"])]).to_pylist()
    [12, 130, None]
    >>> as_given(Integer("age", 0, 99, missing=True), [pa.array(["12", "unknown"])]).to_pylist()
    ['12', 'unknown']
    >>> as_given(Categorical("town", ["York"], other=True), [pa.array(["Hull", " York"])]).to_pylist()
    ['Hull', 'York']
    """
    if isinstance(column, Categorical | Ordinal):
        return pa.chunked_array([_spelt(column, p) for p in pieces], column.type)
    marked = [_without_marks(plain(p)) for p in pieces]
    if isinstance(column, NUMERIC_KINDS):
        held = all(bool(_held(column, p).all()) for p in marked)
        return (
            pa.chunked_array([_written(column, p) for p in marked], column.type)
            if held
            else _joined(pieces)
        )
    encoded = [column.encode(p) for p in marked]
    if any((e.outside | e.unreadable).any() for e in encoded):
        return _joined(pieces)
    values = [
        column.decode(e.codes, np.random.default_rng(0)) for e in encoded
    ]  # one value a code: nothing is drawn
    return pa.chunked_array(values, column.type)


def _joined(pieces: list[pa.Array]) -> pa.ChunkedArray:
    return pa.chunked_array([unmarked(plain(p)) for p in pieces])


def _spelt(column: Categorical | Ordinal, piece: pa.Array) -> pa.Array:
    encoded = column.encode(piece)
    at, texts = distinct(piece)
    known = column.decode(
        encoded.codes, np.random.default_rng(0)
    )  # one text a code: nothing is drawn
    own = pa.array(texts, pa.string()).take(pa.array(at))
    return pc.if_else(pa.array(encoded.outside | encoded.empty), own, known)


def _without_marks(piece: pa.Array) -> pa.Array:
    if not (pa.types.is_string(piece.type) or pa.types.is_large_string(piece.type)):
        return piece
    marked = pc.is_in(
        pc.utf8_lower(pc.utf8_trim_whitespace(piece)), pa.array(sorted(MARKS), piece.type)
    )
    return pc.if_else(marked, pa.scalar(None, piece.type), piece)


def _held(column: Numeric, piece: pa.Array) -> Mask:
    points, empty = column.points(piece)
    if isinstance(column, Integer):
        return np.asarray(empty | ((points == np.rint(points)) & (np.abs(points) < EXACT)))
    if isinstance(column, Real):
        return np.asarray(empty | ~np.isnan(points))
    seconds = 86400 if isinstance(column, Date) else UNITS[column.unit]
    exact = Timestamp(column.name, EPOCH, EPOCH, format=column.format).points(piece)[0]
    return np.asarray(empty | (exact == points * seconds))


def _written(column: Numeric, piece: pa.Array) -> pa.Array:
    points, empty = column.points(piece)
    return column.written(np.where(empty, 0.0, points), empty)
