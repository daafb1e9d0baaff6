"""Check a table against a schema: what would be refused, what would be moved, and what to look at first.

**Privacy:** NOT private: true counts, for the custodian alone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from margrave._card import counted
from margrave.data.batch_sources import KeptBatches, open_source, sampled_frame
from margrave.data.loading import check_rows, columns_in, wanted_columns
from margrave.error_sanitizer import hide_rows, reveal_table
from margrave.errors import MargraveError
from margrave.frames import each_column, row_count
from margrave.profiling.answers import may_say_whose
from margrave.profiling.draft import quiet_draft
from margrave.profiling.header_check import columns_named_like_values, question
from margrave.profiling.identifiers import best_identifier, may_identify, of_persons
from margrave.profiling.proposals import missing_marks
from margrave.profiling.rounding import of_whole_period
from margrave.schema import (
    Categorical,
    Column,
    Date,
    Integer,
    Learn,
    Ordinal,
    Preflight,
    Real,
    Schema,
    Timestamp,
    schema_of,
)
from margrave.schema.alarms import Alarm
from margrave.schema.column_profile import profile_column
from margrave.schema.person_check import overlooked_person
from margrave.schema.sources import learned_of
from margrave.schema.toml_text import written
from margrave.schema.usual_values import are_usual_categories, is_usual_range


@hide_rows
def check_table(source: Any, schema: Schema | str | Path) -> Preflight:
    """Return the number of values that ``read_table`` would refuse or change. For the custodian only.

    Args:
        source: A path to a file, or a frame.
        schema: The schema, or its file. It may be a draft.

    Privacy:
        NOT private: true counts.
    """
    # Rows up to which a check drafts a schema to compare, which holds the whole table.
    max_rows = 1_000_000
    schema = schema_of(schema, table=source)
    schema.check_apart(source)
    opened = open_source(source, wanted_columns(schema))
    source = source if opened is None else KeptBatches(opened, max_rows)
    found = check_rows(source, schema)
    names = list(schema.table_names)
    odd = columns_named_like_values(schema.columns)
    further = [Alarm("header", question(names, odd))] if odd else []
    fresh = (
        None if found.rows > max_rows or schema.draft else _fresh(source)
    )  # a draft says so itself
    found = replace(found, drafted=_as_in_rows(fresh, schema, found.drafted))
    further += _codes(source, schema)
    if schema.person is None:
        further += _overlooked(source, schema, fresh)
    return replace(found, further=tuple(further))


def _fresh(source: Any) -> Schema | None:
    try:
        return quiet_draft(source, read=True)
    except MargraveError:  # there is nothing to draft
        return None


@hide_rows
def as_in_rows(source: Any, schema: Schema, filled: Collection[str]) -> tuple[str, ...]:
    """Return the columns whose bounds or categories are those of the rows, as ``check_table`` does. For the custodian.

    Bounds are compared for a file or a frame in memory. A query is not run again.

    Args:
        source: A table whose rows fit in memory.
        schema: A confirmed schema.
        filled: The columns whose listed categories all occur.

    Privacy:
        NOT private: facts about the rows.
    """
    source = reveal_table(source)
    may_read = isinstance(source, str | Path) or row_count(source) is not None
    drafts = may_read and bool(_comparable(schema))
    return _as_in_rows(_fresh(source) if drafts else None, schema, filled)


def _as_in_rows(fresh: Schema | None, schema: Schema, filled: Collection[str]) -> tuple[str, ...]:
    """Return columns that are filled, or as a fresh draft has them; none of a draft, which says so itself."""
    read = {} if fresh is None else {c.name: _declared(c) for c in fresh.columns}
    comparable = {c.name for c in _comparable(schema)}

    def is_drafted(column: Column) -> bool:
        return column.name in comparable and _declared(column) == read.get(column.name)

    learned = learned_of(schema.sources)
    return tuple(
        c.name
        for c in schema.columns
        if not schema.draft and c.name not in learned and (c.name in filled or is_drafted(c))
    )


def _comparable(schema: Schema) -> list[Column]:
    """Return the columns that a draft of the rows may declare as the schema does: neither learned nor usual ones."""
    learned = learned_of(schema.sources)
    return [
        c
        for c in schema.columns
        if c.name not in learned and _declared(c) is not None and not _usual(c)
    ]


def _usual(column: Column) -> bool:
    """Return True for bounds and categories that many tables have, so that they say nothing of these rows."""
    if isinstance(column, Categorical | Ordinal):
        return are_usual_categories(column.categories)
    if isinstance(column, Date | Timestamp):
        return of_whole_period(column.low, column.high)
    return isinstance(column, Integer | Real) and is_usual_range(
        column.name, column.low, column.high
    )


def _declared(column: Column) -> object:
    if isinstance(column, Integer | Real | Date | Timestamp):
        return type(column), column.low, column.high
    return frozenset(column.categories) if isinstance(column, Categorical | Ordinal) else None


def _codes(source: Any, schema: Schema) -> list[Alarm]:
    """Return an alarm for each column with values that look like missing-value codes and are not declared."""
    lists = (Categorical.kind, Ordinal.kind)
    kinds = (Integer.kind, Real.kind, Date.kind, Timestamp.kind, *lists)
    columns = {c.name: c for c in schema.columns if c.kind in kinds}
    names = list(columns)
    if not names:
        return []
    frame = source if open_source(source) is None else sampled_frame(source, names)
    alarms = []
    for name, pieces in each_column(frame, names):
        column, is_list = columns[name], columns[name].kind in lists
        stated = (
            *schema.source(name).missing_codes,
            *(getattr(column, "categories", None) or ()),
        )
        found = missing_marks(profile_column(name, pieces), listed=is_list)
        marks = {m: n for m, n in found.items() if m not in stated}
        if marks:
            listed = " and ".join(
                f"{mark} on {counted(rows, 'row')}" for mark, rows in marks.items()
            )
            look, public = (
                (
                    f"which {'looks like a code' if len(marks) == 1 else 'look like codes'}",
                    "categories",
                )
                if is_list
                else ("far from all else or alone below zero", "bounds")
            )
            codes = f"missing_codes = {written(list(marks))}"
            how = (
                f"{codes} beside learn = true"
                if isinstance(column, Learn)
                else f"missing = true and {codes} with public {public}"
            )
            alarms.append(
                Alarm(
                    f"codes: {name}",
                    f"Column {name!r} has {listed}, {look}. Does that mean missing? Then write {how}; or leave such"
                    " fields empty in the table.",
                )
            )
    return alarms


def _overlooked(source: Any, schema: Schema, fresh: Schema | None) -> tuple[Alarm, ...]:
    doubtful = set() if fresh is None else {fresh.person, *may_say_whose(fresh)}
    doubtful &= {c.name for c in schema.to_learn} | ({fresh.person} if fresh is not None else set())
    columns = [n for n in columns_in(source) if n in schema.ignore or n in doubtful]
    if not columns:
        return ()
    frame = source if open_source(source) is None else sampled_frame(source, columns)
    person = best_identifier(
        [
            e
            for n, pieces in each_column(frame, columns)
            if of_persons(e := profile_column(n, pieces)) or (n in doubtful and may_identify(e))
        ]
    )
    return () if person is None else (overlooked_person(person, person.name in schema.ignore),)
