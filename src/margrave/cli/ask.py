"""``margrave schema ask``: the open questions of a draft, one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

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
    taken_as_public,
    with_questions,
)
from margrave.profiling.answers import (
    DraftAnswer,
    answered,
    check_value,
    declared,
    doubts_header,
    example_of,
    may_say_whose,
    schema_of_answers,
    ways_of,
    with_constraint,
)
from margrave.profiling.draft import quiet_draft
from margrave.profiling.hints import HintWords
from margrave.schema import Learn, Schema
from margrave.schema.column import Column
from margrave.schema.references import References
from margrave.schema.sources import check_bounds


@click.command("ask")
@click.argument("file", metavar="FILE")
@click.option(
    "--output", "-o", required=True, metavar="FILE", help="Where the schema goes: a TOML file."
)
@overwrite_option
def ask_command(file: str, output: str, overwrite: bool) -> None:
    """Draft a schema from FILE and ask for each column: learn it, declare what is public, or leave it out.

    Then ask about relations between columns that hold in all rows of FILE, whether they always do.

    Enter takes the answer in brackets. Answer from what is known without looking at the rows. Ctrl-D ends early: the
    answers up to there are kept, and the exit code is 1. NOT PRIVATE: the questions depend on the rows.
    """
    check_outputs({"-o": output}, overwrite=overwrite, inputs={"FILE": file})
    drafted = quiet_draft(file)
    drafted = with_questions(drafted, (), backward_rows(file, drafted))
    made, ended = ask(
        drafted,
        constraint_questions(file, drafted),
        lambda: References(Path(output).parent, file),
    )
    made.save(output, overwrite=overwrite)
    echo(
        f"\nWrote a schema of {counted(len(made.columns), 'column')} to {output}. {taken_as_public(made)}"
    )
    if ended:
        echo(
            f"The answers ended before the questions, after {ended}. {output} has these answers; all else in it is as"
            " drafted. Answer the questions in its comments there, or ask anew with --overwrite.",
            err=True,
        )
        click.get_current_context().exit(1)  # questions are open, and nothing was wrong


def ask(
    drafted: Schema, relations: Sequence[ConstraintQuestion], beside: Callable[[], References]
) -> tuple[Schema, str]:
    """Return a draft with the answers of the person at the terminal, and where these ended; "" if all were given.

    Args:
        drafted: The draft.
        relations: Questions on constraints.
        beside: Returns the files beside the schema, which may list combinations.

    Raises:
        DataError: The table has no header.
        SchemaError: All columns were left out.
    """
    for sentence in drafted.remarks.get("", "").splitlines():
        echo(_hints().hint(sentence))
    echo(
        "\nAnswer for each column: learn (under the budget), declare (state what is public), classes (its numbers are"
        " classes: learn these), apart (learn it, but not as the time since another), keep (as it is), or out (leave it"
        " out). Enter takes the answer in brackets."
    )
    person = drafted.person
    answers, ended, has_header = dict[str, DraftAnswer](), "", True
    try:
        if doubts_header(drafted):
            echo("")
            has_header = _yes("Does the first line of the file name the columns?")
        person = _person(drafted) if has_header else None
        for column in drafted.columns if has_header else ():
            if column.name != person:
                answers[column.name] = _asked(column, drafted.remarks.get(column.name, ""))
    except click.Abort:
        ended = f"{len(answers)} of {counted(len(drafted.columns), 'column')}"
    made = schema_of_answers(drafted, answers, person=person, has_header=has_header)
    left = {n: r for n, r in drafted.remarks.items() if n not in answers} if ended else {}
    made = replace(made, remarks=left)
    for relation in () if ended else relations:
        if {c.name for c in made.columns}.issuperset(relation.columns):
            try:
                made = _constrained(made, relation, beside)
            except click.Abort:
                return made, "those on the columns"
    return made, ended


def _person(drafted: Schema) -> str | None:
    """Return the person ID column that the person at the terminal states."""
    if drafted.person is not None:
        echo("")
        return drafted.person if _yes(f"Does {drafted.person!r} say whose row it is?") else None
    for name in may_say_whose(drafted):
        echo("")
        if _yes(f"Does {name!r} say whose row it is?", default=False):
            return name
    return None


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
    hint = _hints().hint(remark)
    echo(f"\n{column.name}: {column.kind}. {hint}".rstrip())
    ways = ways_of(column)
    while True:
        way = _prompt("  Answer", ways[0], choices=list(ways))
        if way != "declare" or not isinstance(column, Learn):
            short = DraftAnswer(way=way)
            if isinstance(column, Learn) and way != "out" and _hints().missing in hint:
                return _with_codes(column, short) or short
            return short
        answer = _declared(column)
        if answer is not None:
            return replace(answer, cite=_prompt("  Where is that written? (may be empty)", ""))


def _hints() -> HintWords:
    return HintWords(
        missing="name it when asked for values that stand for a missing one",
        apart='answer "apart"',
        classes='answer "classes"',
        person="Is that wrong? Then answer no when asked whose row it is.",
        again="begin again",
        file="in the schema file afterwards",
    )


def _declared(column: Learn) -> DraftAnswer | None:
    """Return a statement of the person at the terminal on the values of a column; None to choose another answer.

    Each text is checked when it is written, so a fault costs one question.
    """
    if column.of == "categorical":
        answer = _checked(
            column,
            DraftAnswer("declare"),
            "categories",
            "  All its categories, separated by commas (empty: choose another answer)",
        )
        if answer is None:
            return None
        rest = _yes("  Are there others, to be counted together?", default=False)
        return _with_missing(column, replace(answer, other=rest))
    bounds = _bounds(column)
    if bounds is None:
        return None
    answer = _with_missing(column, bounds)
    words = "  Values at which a new bin begins, separated by commas (empty: bins of equal width)"
    return _checked(column, answer, "edges", words) or answer


def _bounds(column: Learn) -> DraftAnswer | None:
    """Return the lowest and the highest value of a column; None to choose another answer."""
    example = f"in {column.unit}s since {column.since!r}" if column.since else example_of(column)
    while True:
        low = _until_read(column, f"  Its lowest value ({example}; empty: choose another answer)")
        high = low and _until_read(column, "  Its highest value (empty: choose another answer)")
        if not low or not high:
            return None
        answer = DraftAnswer("declare", low=low, high=high)
        try:
            declared(column, answer)
        except SchemaError as error:
            echo(f"  {error.message} {error.remedy}")
        else:
            return answer


def _until_read(column: Learn, words: str) -> str:
    """Return a text that is a value of the column's kind, or an empty one."""
    while text := _prompt(words, ""):
        try:
            check_value(column, text)
        except SchemaError as error:
            echo(f"  {error.message} {error.remedy}")
        else:
            break
    return text


def _checked(column: Learn, answer: DraftAnswer, field: str, words: str) -> DraftAnswer | None:
    """Return an answer with one more field, asked for until the column can be made; None if it stays empty."""
    while text := _prompt(words, ""):
        written: dict[str, Any] = {field: text}
        more = replace(answer, **written)
        try:
            if found := answered(column, more):
                check_bounds(found[0], more.codes)
        except SchemaError as error:
            echo(f"  {error.message} {error.remedy}")
        else:
            return more
    return None


def _with_missing(column: Learn, answer: DraftAnswer) -> DraftAnswer:
    """Return an answer with what the table writes for a missing value, and whether values may be missing."""
    return _with_codes(column, answer) or replace(answer, missing=_yes("  May values be missing?"))


def _with_codes(column: Learn, answer: DraftAnswer) -> DraftAnswer | None:
    """Return an answer with what the table writes for a missing value; None if it writes nothing for it."""
    words = "  Values that stand for a missing one in the table, such as -9 or 999, separated by commas (empty: none)"
    return _checked(column, replace(answer, missing=True), "missing_codes", words)


def _prompt(words: str, default: str | None = None, *, choices: list[str] | None = None) -> str:
    kind: Any = click.Choice(choices) if choices else str
    shown = default != ""
    return str(click.prompt(visible(words), default=default, type=kind, show_default=shown)).strip()


def _yes(words: str, *, default: bool = True) -> bool:
    return click.confirm(visible(words), default=default)
