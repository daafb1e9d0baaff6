"""Answers of the custodian to the questions of a draft, and the schema that they make.

**Privacy:** answers are statements on what is public. Only their faults are reported here, never a value of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, TypeVar

from margrave.errors import DataError, SchemaError
from margrave.profiling.header_check import REMEDY
from margrave.profiling.messages import Remark, whose_question
from margrave.profiling.relations import ConstraintQuestion
from margrave.profiling.time_pairs import apart, with_elapsed_after
from margrave.schema.categorical import Categorical
from margrave.schema.column import Column
from margrave.schema.column_check import LOOK
from margrave.schema.elapsed import Elapsed, since_of
from margrave.schema.learn import Learn
from margrave.schema.numeric import Date, Integer, Real, Timestamp
from margrave.schema.parsing import at_midnight
from margrave.schema.parts import TimePart, parts_of
from margrave.schema.references import References
from margrave.schema.schema import Schema
from margrave.schema.sources import ColumnSource
from margrave.schema.toml_constraints import read_constraint
from margrave.schema.validators import column_error

T = TypeVar("T")


@dataclass(frozen=True)
class DraftAnswer:
    """The answer of the custodian about one column of a draft.

    Args:
        way: "learn" or "keep" takes the column as it is drafted; "classes" learns whole numbers as categories;
            "apart" learns the time since another column as a date or time of its own; "declare" states its values,
            which are public; "out" leaves it out.
        low, high: Its bounds, as texts.
        categories: Its categories, separated by commas.
        other: Other categories occur, and are counted together.
        missing: Values may be missing.
        missing_codes: Values of the table that stand for a missing one, separated by commas; also of a column to learn.
        edges: The values at which a new bin begins, separated by commas; empty for bins of equal width.
        cite: Where the public values are written down.
        outside: The out-of-range policy of stated values; "" for the usual one of its kind.
    """

    way: str = "learn"
    low: str = ""
    high: str = ""
    categories: str = ""
    other: bool = False
    missing: bool = True
    cite: str = ""
    missing_codes: str = ""
    edges: str = ""
    outside: str = ""

    @property
    def codes(self) -> tuple[str, ...]:
        """The missing-value codes."""
        return tuple(_listed(self.missing_codes))

    def lacks(self, column: Column) -> str:
        """Return what a statement on a column does not give yet, in words; "" if nothing."""
        if self.way != "declare" or not isinstance(column, Learn):
            return ""
        if column.of == "categorical":
            return "" if _listed(self.categories) else "its categories"
        return "" if self.low and self.high else "its lowest and its highest value"


def ways_of(column: Column) -> tuple[str, ...]:
    """Return the ways in which a column of a draft can be answered, the usual one first."""
    if not isinstance(column, Learn):
        return "keep", "out"
    further = {"integer": ("classes",), Elapsed.kind: ("apart",)}.get(column.of, ())
    return "learn", "declare", *further, "out"


def answered(column: Column, answer: DraftAnswer) -> tuple[Column, ColumnSource] | None:
    """Return a column by its answer, with its source; None if it is left out.

    Raises:
        SchemaError: The answer does not suit the column, or a text is not a value of its kind.
    """
    if answer.way not in ways_of(column):
        raise SchemaError(
            f"Column {column.name!r} cannot be answered by {answer.way[:40]!r}.",
            remedy=f"Choose one of: {', '.join(ways_of(column))}.",
        )
    if answer.way == "out":
        return None
    if not isinstance(column, Learn):
        return column, ColumnSource()
    if answer.way == "declare":
        return declared(column, answer), ColumnSource(cite=answer.cite, missing_codes=answer.codes)
    learned = {"classes": Learn(column.name, "categorical"), "apart": apart(column)}
    return learned.get(answer.way, column), ColumnSource(missing_codes=answer.codes)


def declared(column: Learn, answer: DraftAnswer) -> Column:
    """Return a column with the values that the custodian states.

    Raises:
        SchemaError: A text is not a value of the column's kind, or the bounds or categories are not usable.
    """
    name, kind = column.name, column.of
    missing = answer.missing or bool(answer.codes) or answer.outside == "missing"
    other, outside = answer.other or answer.outside == "other", answer.outside
    if lacking := answer.lacks(column):
        raise SchemaError(
            f"Column {name!r}: {lacking} must be stated.",
            remedy="Write what is public, or learn it under the budget.",
        )
    if kind == "categorical":
        listed = _listed(answer.categories)
        return Categorical(name, listed, other=other, missing=missing, outside=outside)
    try:
        return _ranged(column, answer, missing)
    except _ReadError as error:
        raise SchemaError(f"Column {name!r}: {error.message}", remedy=error.remedy) from None


def _ranged(column: Learn, answer: DraftAnswer, missing: bool) -> Column:
    name, kind = column.name, column.of
    listed = (answer.low, answer.high, *_listed(answer.edges))
    low, high, *edges = (_value(column, text) for text in listed)
    first, last = (at_midnight(v) if isinstance(v, date) else v for v in (low, high))
    if first > last:
        raise column_error(name, "its lowest value is above its highest.", "Exchange them.")
    if kind in (Integer.kind, Elapsed.kind):
        if column.since is not None:
            return Elapsed(
                name, low, high, edges=edges or None, since=column.since, unit=column.unit or "day",
                format=column.format, missing=missing, outside=answer.outside,
            )  # fmt: skip
        return Integer(
            name, low, high, edges=edges or None, missing=missing, outside=answer.outside
        )
    if kind == "real":
        return Real(name, low, high, edges=edges or None, missing=missing, outside=answer.outside)
    if kind == "date":
        return Date(
            name,
            low,
            high,
            edges=edges or None,
            format=column.format,
            missing=missing,
            outside=answer.outside,
        )
    return Timestamp(
        name,
        low,
        high,
        edges=edges or None,
        unit=column.unit or "second",
        format=column.format,
        missing=missing,
        outside=answer.outside,
    )


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def schema_of_answers(
    drafted: Schema,
    answers: Mapping[str, DraftAnswer],
    *,
    person: str | None,
    has_header: bool = True,
) -> Schema:
    """Return the schema that answers to a draft make.

    Args:
        drafted: The draft.
        answers: An answer for each column; a column without one stays as it is drafted.
        person: The person ID column, of the draft or one of its columns; None for no such column.
        has_header: The first line of the file names the columns.

    Raises:
        DataError: The table has no header.
        SchemaError: An answer does not suit its column, or all columns were left out.
    """
    accepted, ignore = list[str](), list(drafted.ignore)
    if doubts_header(drafted):
        if not has_header:
            raise DataError("The table has no header.", remedy=REMEDY)
        accepted.append("header")
    if drafted.person is not None and drafted.person != person:
        ignore.append(drafted.person)
        accepted.append(f"person: {drafted.person}")
    kept: list[Column] = []
    sources: dict[str, ColumnSource] = {}
    for column in drafted.columns:
        if column.name == person:
            continue
        found = answered(column, answers.get(column.name, DraftAnswer(way=ways_of(column)[0])))
        if found is None:
            ignore += [] if isinstance(column, TimePart) else [column.name]
        else:
            kept += [found[0], *_own_parts(column, found[0], drafted)]
            sources[column.name] = found[1]
            accepted += [f"read: {column.name}"] if found[1].cite else []
    names = {c.name for c in kept}
    kept = [apart(c) if since_of(c) and since_of(c) not in names else c for c in kept]
    if not kept:
        raise SchemaError("All columns were left out.", remedy="Keep one at least.")
    ignore = [name for name in ignore if name != person]
    return Schema(kept, person=person, ignore=ignore, accepted=accepted, sources=sources)


def _own_parts(before: Column, column: Column, drafted: Schema) -> list[Column]:
    """Return the hour and weekday of a time that the draft has as the time since another."""
    names = [c.name for c in drafted.columns]
    return parts_of(column, names) if before.kind == Elapsed.kind else []


def doubts_header(drafted: Schema) -> bool:
    """Return True if a draft asks whether the first line of the file names the columns."""
    return any(
        line.startswith(f"{LOOK} {Remark.HEADER}")
        for line in drafted.remarks.get("", "").splitlines()
    )


def may_say_whose(drafted: Schema) -> tuple[str, ...]:
    """Return the columns of which a draft asks whether they say whose row it is, though no name says so."""
    asked = drafted.remarks.get("", "").splitlines()
    return tuple(
        n for n in (*drafted.table_names, *drafted.ignore) if f"{LOOK} {whose_question(n)}" in asked
    )


def with_constraint(
    schema: Schema, question: ConstraintQuestion, files: References, file: str = ""
) -> Schema:
    """Return the schema with the constraint that a question is about.

    Of two dates or times that are to be learned, the second is kept as the time since the first.

    Args:
        schema: The schema.
        question: The question, answered with yes.
        files: The files beside the schema.
        file: The CSV file that lists all combinations that may occur; not for an order.

    Raises:
        SchemaError: The file cannot be used, or the constraint does not suit the columns.
    """
    names, kind = list(question.columns), question.kind
    if kind == Elapsed.kind and isinstance(schema.column(names[1]), Learn):
        return replace(schema, columns=with_elapsed_after(schema.columns, {names[1]: names[0]}))
    kind = "ordered" if kind == Elapsed.kind else kind  # both are declared
    table: dict[str, Any] = {kind: names} if kind == "ordered" else {"columns": names, kind: file}
    added = (*schema.constraints, read_constraint(table, "", files))
    return replace(schema, constraints=added, files=(*schema.files, *files.files))


def example_of(column: Learn) -> str:
    """Return how a value of a column of numbers, dates or times is written in an answer.

    Example:
        >>> example_of(Learn("admitted", "timestamp", unit="minute")), example_of(Learn("age", "integer"))
        ('a time, as 2018-12-31 23:59', 'a whole number')
    """
    if column.of == Date.kind or (column.of == Timestamp.kind and column.unit == "day"):
        return "a date, as 2018-12-31"
    if column.of == Timestamp.kind:
        times = {"hour": "23:00", "minute": "23:59", "second": "23:59:59"}
        return f"a time, as 2018-12-31 {times[column.unit or 'second']}"
    return "a number" if column.of == Real.kind else "a whole number"


def check_value(column: Learn, text: str) -> None:
    """Raise ``SchemaError`` unless a text is a value of a column of numbers, dates or times."""
    try:
        _value(column, text)
    except _ReadError as error:
        raise SchemaError(f"Column {column.name!r}: {error.message}", remedy=error.remedy) from None


def _value(column: Learn, text: str) -> Any:
    readers: Mapping[str, Callable[[str], Any]] = {
        Date.kind: date.fromisoformat,
        Timestamp.kind: _time_or_day,
        Real.kind: lambda t: float(t.replace(" ", "")),
    }
    reader = readers.get(column.of, lambda t: int(t.replace(" ", "")))
    return _read(text, reader, example_of(column))


def _time_or_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return datetime.fromisoformat(text)


def _read(text: str, kind: Callable[[str], T], example: str) -> T:
    try:
        return kind(text)
    except ValueError:
        raise _ReadError(
            f"{text[:40]!r} is not a value of this kind.", remedy=f"Write {example}."
        ) from None


class _ReadError(SchemaError):
    """A text that is not a value of its kind."""
