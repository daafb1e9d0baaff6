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
from margrave.profiling.relations import ConstraintQuestion
from margrave.schema.categorical import Categorical
from margrave.schema.column import Column
from margrave.schema.learn import Learn
from margrave.schema.numeric import Date, Integer, Real, Timestamp
from margrave.schema.parts import TimePart
from margrave.schema.references import References
from margrave.schema.schema import Schema
from margrave.schema.sources import ColumnSource
from margrave.schema.toml_constraints import read_constraint
from margrave.schema.validation import LOOK

T = TypeVar("T")


@dataclass(frozen=True)
class DraftAnswer:
    """The answer of the custodian about one column of a draft.

    Args:
        way: "learn" or "keep" takes the column as it is drafted; "classes" learns whole numbers as categories;
            "declare" states its values, which are public; "out" leaves it out.
        low, high: Its bounds, as texts.
        categories: Its categories, separated by commas.
        other: Other categories occur, and are counted together.
        missing: Values may be missing.
        cite: Where the public values are written down.
    """

    way: str = "learn"
    low: str = ""
    high: str = ""
    categories: str = ""
    other: bool = False
    missing: bool = True
    cite: str = ""


def ways_of(column: Column) -> tuple[str, ...]:
    """Return the ways in which a column of a draft can be answered, the usual one first."""
    if not isinstance(column, Learn):
        return "keep", "out"
    classes = ("classes",) if column.of == "integer" else ()
    return "learn", "declare", *classes, "out"


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
    if answer.way == "classes":
        return Learn(column.name, "categorical"), ColumnSource()
    if answer.way == "declare" and isinstance(column, Learn):
        return declared(column, answer), ColumnSource(cite=answer.cite)
    return column, ColumnSource()


def declared(column: Learn, answer: DraftAnswer) -> Column:
    """Return a column with the values that the custodian states.

    Raises:
        SchemaError: A text is not a value of the column's kind, or the bounds or categories are not usable.
    """
    name, kind, missing = column.name, column.of, answer.missing
    if kind == "categorical":
        texts = [text.strip() for text in answer.categories.split(",") if text.strip()]
        return Categorical(name, texts, other=answer.other, missing=missing)
    low, high = answer.low, answer.high
    if kind == "integer":
        return Integer(name, _number(low, int), _number(high, int), missing=missing)
    if kind == "real":
        return Real(name, _number(low, float), _number(high, float), missing=missing)
    if kind == "date":
        return Date(name, _day(low), _day(high), format=column.format, missing=missing)
    moments, unit = (_moment(low), _moment(high)), column.unit or "second"
    return Timestamp(name, *moments, unit=unit, format=column.format, missing=missing)


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
        person: The person ID column, of the draft or one of its columns; None if there is none.
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
            kept.append(found[0])
            sources[column.name] = found[1]
    if not kept:
        raise SchemaError("All columns were left out.", remedy="Keep one at least.")
    ignore = [name for name in ignore if name != person]
    return Schema(kept, person=person, ignore=ignore, accepted=accepted, sources=sources)


def doubts_header(drafted: Schema) -> bool:
    """Return True if a draft asks whether the first line of the file names the columns."""
    return any(line.startswith(LOOK) for line in drafted.remarks.get("", "").splitlines())


def with_constraint(
    schema: Schema, question: ConstraintQuestion, files: References, file: str = ""
) -> Schema:
    """Return the schema with the constraint that a question is about.

    Args:
        schema: The schema.
        question: The question, answered with yes.
        files: The files beside the schema.
        file: The CSV file that lists all combinations that may occur; not for an order.

    Raises:
        SchemaError: The file cannot be used, or the constraint does not suit the columns.
    """
    names, kind = list(question.columns), question.kind
    table: dict[str, Any] = {kind: names} if kind == "ordered" else {"columns": names, kind: file}
    added = (*schema.constraints, read_constraint(table, "", files))
    return replace(schema, constraints=added, files=(*schema.files, *files.files))


def _number(text: str, kind: Callable[[str], T]) -> T:
    return _read(text.replace(" ", ""), kind, "0, -5 or 12.5")


def _day(text: str) -> date:
    return _read(text, date.fromisoformat, "2018-12-31")


def _moment(text: str) -> datetime:
    return _read(text, datetime.fromisoformat, "2018-12-31 23:59:59")


def _read(text: str, kind: Callable[[str], T], example: str) -> T:
    try:
        return kind(text)
    except ValueError:
        raise SchemaError(
            f"{text[:40]!r} is not a value of this kind.", remedy=f"Write {example}, say."
        ) from None
