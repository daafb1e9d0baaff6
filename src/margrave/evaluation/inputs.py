"""The two sides of a comparison, however they are given: tables that were read, releases, frames and files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

from margrave._fields import is_whole, shown_value
from margrave._io import path_of
from margrave.data import MemoryTable, Table, read_synthetic, read_table
from margrave.domain import Codes, Domain
from margrave.errors import DataError, InputError
from margrave.release import Release
from margrave.schema import Date, Elapsed, Learn, Schema, Timestamp
from margrave.schema.parts import TimePart

Real = Table | Any
#: Either side may be a frame or the path of a file if the other side has a schema.
Synthetic = Release | Table | Codes | Any


def opened(synthetic: Synthetic) -> Synthetic:
    """Return the release of a path that ends in ``.margrave``; anything else as it is."""
    path = _release_path(synthetic)
    return synthetic if path is None else Release.load(path)


def _release_path(value: object) -> Path | None:
    path = path_of(value)
    return path if path is not None and path.suffix.lower() == ".margrave" else None


def common_schema(synthetic: Synthetic, stated: Schema | None) -> Schema | None:
    """Return the schema that both sides are read with: a release's own, else the stated one.

    A schema stated beside a release's own sets the formats of dates, and adds columns to ignore.

    Raises:
        InputError: The stated schema is not the release's, or has columns to learn and there is no release.
    """
    own = getattr(synthetic, "schema", None)
    if not isinstance(own, Schema):
        if stated is not None and stated.to_learn:
            raise InputError(
                f"Column {stated.to_learn[0].name!r} of the schema is to be learned, so its codes have no meaning.",
                remedy="Compare with the .margrave release, or write its learned schema: margrave schema of RELEASE -o"
                " FILE (in Python release.schema).",
            )
        return stated
    if (
        stated is not None
        and not stated.to_learn
        and (difference := own.domain.difference(stated.domain))
    ):
        raise InputError(
            f"The release has another schema than schema (--schema): {difference}.",
            remedy="Give the one that it was made with, or leave it out.",
        )
    return own if stated is None else _read_as(own, stated)


def _read_as(own: Schema, stated: Schema) -> Schema:
    """Return a release's schema with the formats and ignored columns of a stated one."""
    formats = {c.name: c.format for c in stated.columns if _has_dates(c)}
    columns = [
        replace(c, format=formats[c.name]) if _has_dates(c) and c.name in formats else c
        for c in own.columns
    ]
    read = {*own.table_names, own.person}
    ignore = [n for n in dict.fromkeys((*own.ignore, *stated.ignore)) if n not in read]
    return replace(own, columns=columns, ignore=ignore)


def _has_dates(column: object) -> TypeGuard[Date | Elapsed | Learn | TimePart | Timestamp]:
    """Return whether a column is read from dates or times, whose format a schema may state."""
    return isinstance(column, Date | Elapsed | Learn | TimePart | Timestamp)


def comparison_sides(
    real: Real,
    synthetic: Synthetic,
    rows: int | None,
    seed: int | None,
    stated: Schema | None = None,
) -> tuple[Table, Table]:
    """Return the real table and the synthetic one; a release draws ``rows`` records with ``seed``.

    By default a release draws its estimated row count, or else as many as there are real rows.
    """
    schema = common_schema(synthetic, stated)
    if schema is None:
        schema = getattr(real, "schema", None)
    read = real_table(real, schema, of_release=isinstance(synthetic, Release))
    if not read.rows():
        raise InputError(
            "The real table has no rows, so there is nothing to compare.",
            remedy="Is it the right file? Give the rows that the synthetic ones stand for.",
        )
    if rows is None and isinstance(synthetic, Release) and not synthetic.row_count_is_known:
        rows = read.rows()
    return read, _with_rows(_synthetic_table(synthetic, read.schema, rows, seed))


def real_table(real: Real, schema: object = None, *, of_release: bool = False) -> Table:
    """Return the real table; a frame or file is read with the schema, where there is one.

    ``of_release``: the schema is a release's, which its own rows fit.
    """
    if is_table(real):
        return real
    if isinstance(real, Release) or _release_path(real) is not None:
        raise InputError(
            "A release is given as the real table.",
            remedy="The real table comes first, and the release after it: evaluate(real, release).",
        )
    if isinstance(real, Codes) or not isinstance(schema, Schema):
        raise InputError(
            f"The real table is a {type(real).__name__}, and no table that was read.",
            remedy="Give margrave.read_table(rows, schema), or name the schema: schema=...",
        )
    try:
        return read_table(real, schema)
    except DataError as error:
        found = _not_of_release(error, schema) if of_release else None
        if found is None:
            raise
        raise found from None


def _not_of_release(error: DataError, schema: Schema) -> DataError | None:
    """Return the error of rows that a release's schema does not fit; None if the table cannot be read at all."""
    if re.match(
        "(The table|The schema|No column of the table) has (no column|a name)", error.message
    ):
        words = error.message.replace("which the schema names", "which the release has")
        words = words.replace("The schema has", "The release has").replace(
            "the schema", "the release"
        )
        return DataError(
            f"These are not the rows that the release was made from. {words}",
            remedy="Give the rows that it was made from. A column that was added to them can be left out of the table.",
        )
    if not re.match(r"Column |\d", error.message):
        return None
    dates = [c.name for c in schema.columns if _has_dates(c)]
    dates = [name for name in dates if f"Column {name!r}: " in error.message]
    written = (
        f" If {', '.join(dates)} is only written in another way: margrave schema of RELEASE -o FILE.toml writes the"
        " schema of the release. Add the format to it, and give it as the schema (--schema)."
    )
    return DataError(
        f"The rows do not fit the schema of the release. {' '.join(_facts(error.message, schema))}",
        remedy="The rows that it was made from fit it: give these, or recode or leave out the others."
        f"{written if dates else ''}",
    )


def _facts(refusals: str, schema: Schema) -> Iterator[str]:
    """Yield the facts of refusals, one a line, without their remedies, which are about a schema that may change."""
    names = [f"Column {c.name!r}: " for c in schema.columns]
    for line in refusals.splitlines():
        name = next((n for n in names if line.startswith(n)), "")
        yield f"{name}{line.removeprefix(name).partition('. ')[0].removesuffix('.')}."


def check_codes(what: str, codes: object) -> None:
    """Raise ``InputError`` for anything but codes; ``what`` is what they are called."""
    if not isinstance(codes, Codes):
        raise InputError(
            f"{what} is a {type(codes).__name__}, and no codes.",
            remedy="Give release.codes(seed=1), or margrave.data.synthetic_codes(rows, schema) of a table.",
        )


def check_count(parameter: str, value: object) -> None:
    """Raise ``InputError`` unless a parameter is a whole number, 1 or more."""
    if not is_whole(value, 1):
        raise InputError(
            f"{parameter} is {shown_value(value)}.", remedy="Give a whole number, 1 or more."
        )


def _synthetic_table(
    synthetic: Synthetic, schema: Schema, rows: int | None, seed: int | None
) -> Table:
    if isinstance(synthetic, Release):
        return MemoryTable(synthetic.schema, synthetic.codes(rows, seed=seed))
    if rows is not None or seed is not None:
        raise InputError(
            "rows and seed are about records drawn from a release, and this table has its own.",
            remedy="Leave them out, or give the release.",
        )
    if isinstance(synthetic, Codes):
        return MemoryTable(schema, synthetic)
    return synthetic if is_table(synthetic) else read_synthetic(synthetic, schema)


def _with_rows(synthetic: Table) -> Table:
    if not synthetic.rows():
        raise InputError(
            "The synthetic table has no rows, so there is nothing to compare.",
            remedy="Give the table that was drawn, or the .margrave release.",
        )
    return synthetic


def is_table(value: object) -> TypeGuard[Table]:
    """Return True if it is a table that was read."""
    return isinstance(getattr(value, "domain", None), Domain) and not isinstance(value, Codes)
