"""``margrave schema ask``: the open questions of a draft, one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from margrave.cli.options import overwrite_option
from margrave.cli.output import check_outputs
from margrave.cli.terminal import echo, visible
from margrave.errors import DataError, SchemaError
from margrave.profiling import (
    ConstraintQuestion,
    constraint_questions,
    draft_schema,
    taken_as_public,
)
from margrave.profiling.header_check import REMEDY
from margrave.schema import Categorical, Date, Integer, Learn, Real, Schema, Timestamp
from margrave.schema.column import Column
from margrave.schema.parts import TimePart
from margrave.schema.references import References
from margrave.schema.sources import ColumnSource
from margrave.schema.toml_constraints import read_constraint
from margrave.schema.validation import LOOK

T = TypeVar("T")


@click.command("ask")
@click.argument("file", metavar="FILE")
@click.option(
    "--output", "-o", required=True, metavar="FILE", help="Where the schema goes: a TOML file."
)
@overwrite_option
def ask_command(file: str, output: str, overwrite: bool) -> None:
    """Draft a schema from FILE and ask for each column: learn it, declare what is public, or leave it out.

    Then ask about relations between columns that hold in all rows of FILE, whether they always do.

    Enter takes the answer in brackets. Answer from what is known without looking at the rows. NOT PRIVATE: the
    questions depend on the rows.
    """
    check_outputs({"-o": output}, overwrite=overwrite, inputs={"FILE": file})
    drafted = draft_schema(file)
    made = ask(
        drafted,
        constraint_questions(file, drafted),
        lambda: References(Path(output).parent, file),
    )
    made.save(output, overwrite=overwrite)
    echo(f"\nWrote a schema of {len(made.columns)} columns to {output}. {taken_as_public(made)}")


def ask(
    drafted: Schema, relations: Sequence[ConstraintQuestion], beside: Callable[[], References]
) -> Schema:
    """Return a draft with the answers of the person at the terminal.

    Args:
        drafted: The draft.
        relations: Questions on constraints.
        beside: Returns the files beside the schema, which may list combinations.

    Raises:
        DataError: The table has no header.
        SchemaError: All columns were left out.
    """
    for sentence in drafted.remarks.get("", "").splitlines():
        echo(sentence)
    echo(
        "\nAnswer for each column: learn (under the budget), declare (state what is public), classes (its numbers are"
        " classes: learn these), keep (as it is), or out (leave it out). Enter takes the answer in brackets."
    )
    person, ignore, accepted = drafted.person, list(drafted.ignore), list[str]()
    if any(sentence.startswith(LOOK) for sentence in drafted.remarks.get("", "").splitlines()):
        if not _yes("\nDoes the first line of the file name the columns?"):
            raise DataError("The table has no header.", remedy=REMEDY)
        accepted.append("header")
    if person is not None and not _yes(f"\nDoes {person!r} say whose row it is?"):
        ignore.append(person)
        accepted.append(f"person: {person}")
        person = None
    kept: list[Column] = []
    sources: dict[str, ColumnSource] = {}
    for column in drafted.columns:
        answered = _asked(column, drafted.remarks.get(column.name, ""))
        if answered is None:
            ignore += [] if isinstance(column, TimePart) else [column.name]
        else:
            kept.append(answered[0])
            sources[column.name] = answered[1]
    if not kept:
        raise SchemaError("All columns were left out.", remedy="Keep one at least.")
    made = Schema(kept, person=person, ignore=ignore, accepted=accepted, sources=sources)
    for relation in relations:
        if {c.name for c in kept}.issuperset(relation.columns):
            made = _constrained(made, relation, beside)
    return made


def _constrained(
    schema: Schema, relation: ConstraintQuestion, beside: Callable[[], References]
) -> Schema:
    """Return the schema with the constraint that the person at the terminal states, if any."""
    echo(f"\n{relation.words} Rows show no rule: answer from what is public.")
    names, kind = list(relation.columns), relation.kind
    while True:
        if kind == "ordered":
            table: dict[str, Any] = {kind: names}
            wanted = _yes("  Is that always true?", default=False)
        else:
            file = _prompt(
                "  If so, which CSV file in the schema's folder lists all combinations that may occur? (empty: none)",
                "",
            )
            table, wanted = {"columns": names, kind: file}, bool(file)
        if not wanted:
            return schema
        try:
            files = beside()
            added = (*schema.constraints, read_constraint(table, "", files))
            return replace(schema, constraints=added, files=(*schema.files, *files.files))
        except SchemaError as error:
            echo(f"  {error.message} {error.remedy or ''}".rstrip())


def _asked(column: Column, remark: str) -> tuple[Column, ColumnSource] | None:
    """Return a column as it was answered, with its source; None if it is left out."""
    echo(f"\n{column.name}: {column.kind}. {remark}".rstrip())
    to_learn = isinstance(column, Learn)
    ways = ["learn", "declare", "out"] if to_learn else ["keep", "out"]
    if isinstance(column, Learn) and column.of == "integer":
        ways.insert(2, "classes")
    way = _prompt("  Answer", ways[0], choices=ways)
    if way == "out":
        return None
    if way == "classes":
        return Learn(column.name, "categorical"), ColumnSource()
    if way == "declare" and isinstance(column, Learn):
        declared = _until_right(lambda: _declared(column))
        return declared, ColumnSource(cite=_prompt("  Where is that written? (may be empty)", ""))
    return column, ColumnSource()


def _declared(column: Learn) -> Column:
    """Return a column with the values that the person at the terminal states."""
    name, kind = column.name, column.of
    if kind == "categorical":
        listed = _prompt("  All its categories, separated by commas")
        rest = _yes("  Are there others, to be counted together?", default=False)
        missing = _missing()
        texts = [text.strip() for text in listed.split(",") if text.strip()]
        return Categorical(name, texts, other=rest, missing=missing)
    low, high = _prompt("  Its lowest value"), _prompt("  Its highest value")
    missing = _missing()
    if kind == "integer":
        return Integer(name, _number(low, int), _number(high, int), missing=missing)
    if kind == "real":
        return Real(name, _number(low, float), _number(high, float), missing=missing)
    if kind == "date":
        return Date(name, _day(low), _day(high), format=column.format, missing=missing)
    moments, unit = (_moment(low), _moment(high)), column.unit or "second"
    return Timestamp(name, *moments, unit=unit, format=column.format, missing=missing)


def _missing() -> bool:
    return _yes("  May values be missing?")


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


def _until_right(question: Callable[[], T]) -> T:
    """Ask until the answers make a column."""
    while True:
        try:
            return question()
        except SchemaError as error:
            echo(f"  {error.message} {error.remedy}")


def _prompt(words: str, default: str | None = None, *, choices: list[str] | None = None) -> str:
    kind: Any = click.Choice(choices) if choices else str
    shown = default != ""
    return str(click.prompt(visible(words), default=default, type=kind, show_default=shown)).strip()


def _yes(words: str, *, default: bool = True) -> bool:
    return click.confirm(visible(words), default=default)
