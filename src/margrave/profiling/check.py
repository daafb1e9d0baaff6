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
from margrave.profiling.answers import may_say_whose
from margrave.profiling.draft import draft_schema
from margrave.profiling.header_check import columns_named_like_values, question
from margrave.profiling.identifiers import best_identifier, may_identify, of_persons
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
from margrave.schema.person_check import overlooked_person


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
    fresh = (
        None if found.rows > max_rows or schema.draft else _fresh(source)
    )  # a draft says so itself
    found = replace(found, drafted=() if fresh is None else _drafted(fresh, schema))
    if schema.person is None:
        further += _overlooked(source, schema, fresh)
    return replace(found, further=tuple(further))


def _fresh(source: Any) -> Schema | None:
    try:
        return draft_schema(source, read=True)
    except MargraveError:  # there is nothing to draft
        return None


def _drafted(fresh: Schema, schema: Schema) -> tuple[str, ...]:
    read = {c.name: _declared(c) for c in fresh.columns}
    return tuple(
        c.name
        for c in schema.columns
        if (what := _declared(c)) is not None and what == read.get(c.name) != (Integer, 0, 1)
    )


def _declared(column: Column) -> object:
    if isinstance(column, Integer | Real | Date | Timestamp):
        return type(column), column.low, column.high
    return frozenset(column.categories) if isinstance(column, Categorical | Ordinal) else None


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
