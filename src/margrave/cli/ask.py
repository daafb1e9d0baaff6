"""``margrave schema ask``: the open questions of a draft, one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from margrave._card import counted
from margrave.cli.options import overwrite_option
from margrave.cli.output import check_outputs
from margrave.cli.terminal import echo, visible
from margrave.errors import SchemaError
from margrave.profiling import (
    ConstraintQuestion,
    backward_rows,
    constraint_questions,
    draft_schema,
    taken_as_public,
    with_questions,
)
from margrave.profiling.answers import (
    DraftAnswer,
    declared,
    doubts_header,
    schema_of_answers,
    ways_of,
    with_constraint,
)
from margrave.schema import Learn, Schema
from margrave.schema.column import Column
from margrave.schema.references import References

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
    drafted = with_questions(drafted, (), backward_rows(file, drafted))
    made = ask(
        drafted,
        constraint_questions(file, drafted),
        lambda: References(Path(output).parent, file),
    )
    made.save(output, overwrite=overwrite)
    echo(
        f"\nWrote a schema of {counted(len(made.columns), 'column')} to {output}. {taken_as_public(made)}"
    )


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
        " classes: learn these), apart (learn it, but not as the time since another), keep (as it is), or out (leave it"
        " out). Enter takes the answer in brackets."
    )
    person = drafted.person
    has_header = not doubts_header(drafted) or _yes(
        "\nDoes the first line of the file name the columns?"
    )
    if has_header and person is not None and not _yes(f"\nDoes {person!r} say whose row it is?"):
        person = None
    answers = dict[str, DraftAnswer]()
    for column in drafted.columns if has_header else ():
        answers[column.name] = _asked(column, drafted.remarks.get(column.name, ""))
    made = schema_of_answers(drafted, answers, person=person, has_header=has_header)
    for relation in relations:
        if {c.name for c in made.columns}.issuperset(relation.columns):
            made = _constrained(made, relation, beside)
    return made


def _constrained(
    schema: Schema, relation: ConstraintQuestion, beside: Callable[[], References]
) -> Schema:
    """Return the schema with the constraint that the person at the terminal states, if any."""
    echo(f"\n{relation.words} Rows show no rule: answer from what is public.")
    while True:
        file = ""
        if relation.kind in ("ordered", "elapsed"):
            wanted = _yes("  Is that always true?", default=False)
        else:
            file = _prompt(
                "  If so, which CSV file in the schema's folder lists all combinations that may occur? (empty: none)",
                "",
            )
            wanted = bool(file)
        if not wanted:
            return schema
        try:
            return with_constraint(schema, relation, beside(), file)
        except SchemaError as error:
            echo(f"  {error.message} {error.remedy or ''}".rstrip())


def _asked(column: Column, remark: str) -> DraftAnswer:
    """Return the answer of the person at the terminal about a column."""
    echo(f"\n{column.name}: {column.kind}. {remark}".rstrip())
    ways = ways_of(column)
    way = _prompt("  Answer", ways[0], choices=list(ways))
    if way == "declare" and isinstance(column, Learn):
        answer = _until_right(lambda: _declared(column))
        return replace(answer, cite=_prompt("  Where is that written? (may be empty)", ""))
    return DraftAnswer(way=way)


def _declared(column: Learn) -> DraftAnswer:
    """Return a statement of the person at the terminal on the values of a column."""
    if column.of == "categorical":
        listed = _prompt("  All its categories, separated by commas")
        rest = _yes("  Are there others, to be counted together?", default=False)
        answer = _with_missing(DraftAnswer("declare", categories=listed, other=rest))
    else:
        units = f" ({column.unit}s since {column.since!r})" if column.since else ""
        low, high = _prompt(f"  Its lowest value{units}"), _prompt(f"  Its highest value{units}")
        answer = _with_missing(DraftAnswer("declare", low=low, high=high))
        edges = _prompt(
            "  Values at which a new bin begins, separated by commas (empty: bins of equal width)",
            "",
        )
        answer = replace(answer, edges=edges)
    declared(column, answer)
    return answer


def _with_missing(answer: DraftAnswer) -> DraftAnswer:
    """Return an answer with what the table writes for a missing value."""
    codes = _prompt(
        "  Values that stand for a missing one in the table, such as -9 or 999, separated by commas (empty: none)",
        "",
    )
    if codes:
        return replace(answer, missing=True, missing_codes=codes)
    return replace(answer, missing=_yes("  May values be missing?"))


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
