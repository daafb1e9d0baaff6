"""Checks of the rows by the custodian before a run, and sentences for the custodian after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from margrave.data import BatchTable, MemoryTable, Table, categories_in_rows
from margrave.errors import DataError, InputError
from margrave.mechanisms import Mechanism
from margrave.mechanisms.parts.checks import publics_of
from margrave.profiling.check import as_in_rows
from margrave.schema import Schema
from margrave.schema.constraints import name_of
from margrave.schema.usual_values import listed_columns
from margrave.schema.validation import as_in_rows_question

Tell = Callable[[str], None]


def check_rows(source: Table, mechanism: Mechanism) -> None:
    """Raise if the table is empty, or is not to the public tables what their attestation says."""
    if not source.rows():
        raise DataError(
            "The table has no rows: the budget would be spent on nothing.",
            remedy="Is it the right file?",
        )
    for public in publics_of(mechanism):
        if not isinstance(source, MemoryTable | BatchTable):
            raise InputError(
                "A public table is compared with the rows, and this table only counts them.",
                remedy="Give the rows themselves, or a mechanism without a public table.",
            )
        if public.same_records and not source.holds(public.codes):
            raise DataError(
                "The public columns are not those of the private table's records, and would be taken for exact.",
                remedy="Give the columns of the same records, read by the same schema, or leave --same-records out (in"
                " Python same_records). Nothing was spent.",
            )
        if not public.same_records and source.holds(public.codes):
            raise DataError(
                "The public table's records are the private ones: nobody in it would be protected.",
                remedy="Name a table of other records. Where these columns of the private records are public, say"
                " --same-records (in Python same_records=True). Nothing was spent.",
            )


def compare_with_rows(table: Any, source: Table, schema: Schema, on_custodian: Tell | None) -> None:
    """Report to the custodian the columns whose bounds or categories are those of the rows, as a check does.

    Columns that were learned, and accepted alarms, are left out. Bounds are compared for a file or a frame of at most a
    hundred thousand rows: `margrave schema check` compares those of more.
    """
    if on_custodian is None or not isinstance(source, MemoryTable | BatchTable):
        return
    max_rows = 100_000
    listed = [(c.name,) for c in listed_columns(schema.columns)]
    filled = categories_in_rows(schema, source.count(listed)) if listed else ()
    few = isinstance(source, MemoryTable) and source.rows() <= max_rows
    found = as_in_rows(table if few else source, schema, filled)
    if columns := [name for name in found if f"read: {name}" not in schema.accepted]:
        sentence = as_in_rows_question(columns)
        on_custodian(sentence)


def name_constraints_left_out(stated: Schema, learned: Schema, on_custodian: Tell | None) -> None:
    """Report to the custodian the constraints that do not hold on the learned columns."""
    if on_custodian is None:
        return
    for constraint in stated.constraints:
        if constraint not in learned.constraints:
            on_custodian(
                f"the constraint {name_of(constraint)} was left out: a column of it was not learned, or the learned"
                " columns leave no row possible with it."
            )
