"""Check a table against a schema: what would be refused, what would be moved, and what to look at first.

**Privacy:** NOT private: true counts, for the custodian alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from margrave._card import counted
from margrave.data.batch_sources import KeptBatches, open_source, sampled_frame
from margrave.data.loading import check_rows, columns_in, wanted_columns
from margrave.error_sanitizer import hide_rows, reveal_table
from margrave.frames import each_column, release_memory, row_count
from margrave.profiling.draft import may_be_of_persons, reason_to_skip, says_whose
from margrave.profiling.header_check import columns_named_like_values, question
from margrave.profiling.identifiers import best_identifier, may_identify, of_persons
from margrave.profiling.proposals import missing_marks
from margrave.profiling.read_values import column_as_read, exact_bounds
from margrave.profiling.rounding import of_whole_period
from margrave.profiling.sentinels import without_words
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
from margrave.schema.column_profile import ColumnProfile, profile_column
from margrave.schema.elapsed import Elapsed
from margrave.schema.elapsed_values import as_written
from margrave.schema.missing_codes import stand_for_missing
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
    # Rows up to which bounds are compared, and all columns asked whose rows they are: that holds the whole table.
    max_rows = 1_000_000
    schema = schema_of(schema, table=source)
    schema.check_apart(source)
    wanted = wanted_columns(schema)
    opened = open_source(source, wanted)
    source = source if opened is None else KeptBatches(opened, max_rows)
    found = check_rows(source, schema)
    names = list(schema.table_names)
    odd = columns_named_like_values(schema.columns)
    further = [Alarm("header", question(names, odd))] if odd else []
    few = found.rows <= max_rows and not schema.draft  # a draft says so itself
    declared = _comparable(schema) if few else {}
    coded = _may_have_codes(schema)
    columns = columns_in(source, wanted) if schema.person is None else []
    whose = _Whose(schema, few=few)
    as_read = set(found.drafted)
    read = {n for n in columns if few or n in schema.ignore}.union(declared, coded)
    for profile in _profiles(source, [n for n in columns_in(source, wanted) if n in read]):
        name = profile.name
        if name in declared and declared[name] in _as_read(profile):
            as_read.add(name)
        if name in coded:
            further += _codes(profile, coded[name], schema.source(name).missing_codes)
        if name in columns:
            whose.ask(profile)
    return replace(found, drafted=_stated(schema, as_read), further=(*further, *whose.alarms()))


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
    declared = _comparable(schema) if may_read else {}
    read = {p.name for p in _profiles(source, list(declared)) if declared[p.name] in _as_read(p)}
    return _stated(schema, read.union(filled))


def _stated(schema: Schema, read: Collection[str]) -> tuple[str, ...]:
    """Return the columns that are as the rows have them and were not learned; none of a draft, which says so itself."""
    learned = learned_of(schema.sources)
    return tuple(
        c.name
        for c in schema.columns
        if not schema.draft and c.name not in learned and c.name in read
    )


def _profiles(source: Any, names: Sequence[str]) -> Iterator[ColumnProfile]:
    """Yield the profiles of some columns, of about a million rows at most."""
    if not names:
        return
    frame = source if open_source(source) is None else sampled_frame(source, names)
    for name, pieces in each_column(frame, names):
        yield profile_column(name, pieces)
    del frame
    release_memory()


def _comparable(schema: Schema) -> dict[str, object]:
    """Return what the columns declare that rows may have as well: neither learned nor usual."""
    learned = learned_of(schema.sources)
    declared = {c.name: _declared(c) for c in schema.columns if not _usual(c)}
    return {n: d for n, d in declared.items() if d is not None and n not in learned}


def _as_read(profile: ColumnProfile) -> list[object]:
    """Return what a column would declare with the bounds or categories of its rows, rounded and exact."""
    numbers = without_words(profile)[0]
    if not numbers.counts:
        return []
    column = column_as_read(numbers)
    return [_declared(column), exact_bounds(numbers, column)]


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
        return column.low, column.high
    return frozenset(column.categories) if isinstance(column, Categorical | Ordinal) else None


def _may_have_codes(schema: Schema) -> dict[str, Column]:
    lists = (Categorical.kind, Ordinal.kind)
    kinds = (Integer.kind, Real.kind, Date.kind, Timestamp.kind, Elapsed.kind, *lists)
    return {c.name: c for c in schema.columns if c.kind in kinds}


def _codes(profile: ColumnProfile, column: Column, stated: Sequence[Any]) -> list[Alarm]:
    """Return an alarm if values look like missing-value codes and are not declared."""
    is_list, texts = column.kind in (Categorical.kind, Ordinal.kind), profile.counts
    others = texts.keep(~stand_for_missing(as_written(column), texts.texts, stated))
    marks = missing_marks(replace(profile, counts=others), listed=is_list)
    if is_list:
        marks = {m: n for m, n in marks.items() if m not in getattr(column, "categories", ())}
    if not marks:
        return []
    listed = " and ".join(f"{mark} on {counted(rows, 'row')}" for mark, rows in marks.items())
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
    return [
        Alarm(
            f"codes: {column.name}",
            f"Column {column.name!r} has {listed}, {look}. Does that mean missing? Then write {how}; or leave such"
            " fields empty in the table.",
        )
    ]


class _Whose:
    """Columns that look like a person ID column, and are ignored or to be learned.

    Args:
        schema: A schema without a person ID column.
        few: Whether all columns are asked, and not the ignored ones alone.
    """

    def __init__(self, schema: Schema, *, few: bool) -> None:
        self._ignored, self._few = set(schema.ignore), few
        self._learned = {c.name for c in schema.to_learn}
        self._seen: list[tuple[ColumnProfile, bool, bool]] = []

    def ask(self, profile: ColumnProfile) -> None:
        """Keep the column's profile if it looks so."""
        numbers, says, may = without_words(profile)[0], False, False
        if self._few:
            reason = reason_to_skip(numbers)
            says = says_whose(numbers, reason)
            may = not says and may_be_of_persons(numbers, reason)
        if says or may or (profile.name in self._ignored and of_persons(profile)):
            self._seen.append((profile, says, may))

    def alarms(self) -> tuple[Alarm, ...]:
        """Return the alarm of the column that is most likely the person ID column."""
        named = best_identifier([p for p, says, _ in self._seen if says])
        doubtful = (
            {p.name for p, _, may in self._seen if may and p.name in self._learned}
            if named is None
            else {named.name}
        )
        person = best_identifier(
            [
                p
                for p, _, _ in self._seen
                if (p.name in doubtful and (of_persons(p) or may_identify(p)))
                or (p.name in self._ignored and of_persons(p))
            ]
        )
        if person is None:
            return ()
        return (overlooked_person(person, person.name in self._ignored),)
