"""Check a table against a schema: what would be refused, what would be moved, and what to look at first.

**Privacy:** NOT private: true counts, for the custodian alone.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from margrave.data.batch_sources import open_source, sampled_frame
from margrave.data.loading import check_rows, columns_in
from margrave.error_sanitizer import hide_rows
from margrave.errors import MargraveError
from margrave.frames import each_column
from margrave.profiling.draft import draft_schema
from margrave.profiling.header_check import columns_named_like_values, question
from margrave.profiling.identifiers import best_identifier, of_persons
from margrave.schema import (
    Categorical,
    Column,
    Date,
    Integer,
    Ordinal,
    Preflight,
    Real,
    Schema,
    Timestamp,
    schema_of,
)
from margrave.schema.alarms import Alarm
from margrave.schema.column_profile import profile_column
from margrave.schema.person_check import ignored_person


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
    found = check_rows(source, schema)
    names = list(schema.table_names)
    odd = columns_named_like_values(schema.columns)
    further = [Alarm("header", question(names, odd))] if odd else []
    found = replace(found, drafted=() if found.rows > max_rows else _drafted(source, schema))
    if schema.person is None:
        further += _overlooked(source, schema)
    return replace(found, further=tuple(further))


def _drafted(source: Any, schema: Schema) -> tuple[str, ...]:
    if schema.draft:  # which says so itself
        return ()
    try:
        fresh = {c.name: _declared(c) for c in draft_schema(source, read=True).columns}
    except MargraveError:  # there is nothing to draft
        return ()
    return tuple(
        c.name
        for c in schema.columns
        if (what := _declared(c)) is not None and what == fresh.get(c.name) != (Integer, 0, 1)
    )


def _declared(column: Column) -> object:
    if isinstance(column, Integer | Real | Date | Timestamp):
        return type(column), column.low, column.high
    return frozenset(column.categories) if isinstance(column, Categorical | Ordinal) else None


def _overlooked(source: Any, schema: Schema) -> tuple[Alarm, ...]:
    ignored = [n for n in columns_in(source) if n in schema.ignore]
    if not ignored:
        return ()
    frame = source if open_source(source) is None else sampled_frame(source, ignored)
    person = best_identifier(
        [
            e
            for n, pieces in each_column(frame, ignored)
            if of_persons(e := profile_column(n, pieces))
        ]
    )
    return () if person is None else (ignored_person(person),)
