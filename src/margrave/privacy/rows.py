"""Reads of the table behind the gate: counts, and columns to learn until a schema takes their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from margrave.data import LearnableTable, Table
from margrave.domain import Domain
from margrave.errors import DataError, InputError
from margrave.privacy.requests.discover import Discover
from margrave.schema.column_queries import ColumnQuery
from margrave.types import AnyArray, Clique, IntArray

if TYPE_CHECKING:
    from margrave.schema import Schema


def check_learned(schema: Schema, cliques: Sequence[Clique]) -> None:
    """Raise ``InputError`` if a marginal has a column whose codes have no meaning yet."""
    to_learn = {c.name for c in schema.to_learn}
    for name in to_learn.intersection(a for clique in cliques for a in clique) if to_learn else ():
        raise InputError(
            f"{name!r} is to be learned, so it has no codes to count yet. Nothing was spent.",
            remedy="Learn it, and let the gate adopt the learned schema first.",
        )


def check_adoption(schema: Schema, learned: Schema) -> Schema:
    """Return ``schema`` with its columns to learn declared as in ``learned``, or left out.

    Raise ``InputError`` if ``learned`` differs from it in more than the stated sources.
    """
    to_learn = {c.name for c in schema.to_learn}
    if not to_learn:
        raise InputError("The gate has no columns to learn, so it adopts no schema.")
    expected = schema.with_learned(c for c in learned.columns if c.name in to_learn)
    own = ("columns", "person", "person_accepts", "ignore", "constraints")
    same = all(getattr(learned, key) == getattr(expected, key) for key in own)
    if learned.to_learn or not same:
        raise InputError(
            "The schema is not the gate's with its columns to learn declared or ignored.",
            remedy="Make it by schema.with_learned(columns).",
        )
    return expected


def tally(table: Table | None, column: str, query: ColumnQuery | None) -> dict[Clique, AnyArray]:
    """Return the true answers of a query about a raw column, or all its values and their counts. For the gate only."""
    if not isinstance(table, LearnableTable):
        raise DataError(
            "The table counts codes only, so its columns cannot be learned.",
            remedy="Give the rows themselves, as a file or a frame, or declare the columns.",
        )
    if query is None:
        values, counts = table.value_counts(column)
        return {Discover.values_key: values, Discover.counts_key: counts}
    answers = table.tally_column(column, query)
    if answers.dtype != np.int64 or answers.shape != (query.size,):
        raise DataError("The column is tallied in the wrong shape or type.")
    return {(column,): answers}


def adopted(table: Table | None, schema: Schema) -> Table:
    """Return the table with the codes of another schema. For the gate only."""
    assert isinstance(table, LearnableTable)
    return table.recoded(schema)


def scan(table: Table | None, cliques: Sequence[Clique], domain: Domain) -> dict[Clique, IntArray]:
    """Return the true counts of some cliques, read-only. For the gate only."""
    assert table is not None
    found = table.count(cliques)
    counts = {clique: found[clique].view() for clique in cliques}
    for clique, values in counts.items():
        if values.dtype != np.int64 or values.shape != domain.shape(clique):
            raise DataError("The table counts in the wrong shape or type.")
        values.flags.writeable = False
    return counts
