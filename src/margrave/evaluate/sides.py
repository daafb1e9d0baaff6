"""The two sides of a comparison, however they are given: tables that were read, releases, frames and files."""

from __future__ import annotations

from typing import Any, TypeGuard

from margrave.data import MemoryTable, Table, read_synthetic, read_table
from margrave.errors import InputError
from margrave.release import Release
from margrave.schema import Codes, Domain, Schema

Real = Table | Any
Synthetic = Release | Table | Codes | Any
"""Either is a frame or the path of a file too, where the other side has the schema to read it with."""


def sides(real: Real, synthetic: Synthetic, rows: int | None, seed: int | None) -> tuple[Table, Table]:
    """The real table and the synthetic one: of a release ``rows`` records, drawn with ``seed``.

    As many as there are real ones where neither ``rows`` nor the release tells.
    """
    read = real_table(real, getattr(synthetic, "schema", None))
    if rows is None and isinstance(synthetic, Release) and not synthetic.size_told:
        rows = read.rows()
    return read, _synthetic_table(synthetic, read.schema, rows, seed)


def real_table(real: Real, schema: object = None) -> Table:
    """The real table; a frame or file is read with the schema, where there is one."""
    if is_table(real):
        return real
    if isinstance(real, Release | Codes) or not isinstance(schema, Schema):
        raise InputError(
            f"The real table is a {type(real).__name__}, and no table that was read.",
            remedy="Give margrave.read_table(rows, schema).",
        )
    return read_table(real, schema)


def check_codes(what: str, codes: object) -> None:
    """Raise ``InputError`` for anything but codes; ``what`` is what they are called."""
    if not isinstance(codes, Codes):
        raise InputError(
            f"{what} is a {type(codes).__name__}, and no codes.",
            remedy="Give release.codes(seed=1), or margrave.data.synthetic_codes(rows, schema) of a table.",
        )


def _synthetic_table(synthetic: Synthetic, schema: Schema, rows: int | None, seed: int | None) -> Table:
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


def is_table(given: object) -> TypeGuard[Table]:
    """Whether it is a table that was read."""
    return isinstance(getattr(given, "domain", None), Domain) and not isinstance(given, Codes)
