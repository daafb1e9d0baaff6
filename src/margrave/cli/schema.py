"""``margrave schema``: drafts, questions and checks, for the custodian, on this side of the gate."""

from __future__ import annotations

from dataclasses import asdict

import click
from rich.table import Table

from margrave._card import counted
from margrave.cli.ask import ask_command
from margrave.cli.notes import import_note
from margrave.cli.options import (
    echo_json,
    json_option,
    load_schema,
    overwrite_option,
    release_size_option,
    schema_option,
)
from margrave.cli.output import check_outputs, console, escape
from margrave.cli.schema_forms import export_command, grammar_command, import_command
from margrave.cli.terminal import echo, facts_of
from margrave.cli.usage import Commands
from margrave.errors import DataError
from margrave.profiling import (
    backward_rows,
    check_table,
    constraint_questions,
    taken_as_public,
    with_questions,
)
from margrave.profiling.draft import quiet_draft
from margrave.profiling.short_questions import first_questions, short_questions
from margrave.release import Release
from margrave.schema import Preflight
from margrave.schema.column_check import LOOK

_output_option = click.option(
    "--output",
    "-o",
    default=None,
    metavar="FILE",
    help="Where to write it; by default it is printed.",
)


@click.group("schema", cls=Commands)
def schema_command() -> None:
    """Make a schema from a file, a code book or a release, and check a file against one."""


schema_command.add_command(ask_command)
schema_command.add_command(import_command)
schema_command.add_command(export_command)
schema_command.add_command(grammar_command)


@schema_command.command("draft")
@click.argument("file", metavar="FILE")
@_output_option
@click.option(
    "--read",
    is_flag=True,
    help="Read bounds and categories off the rows instead of leaving them to be learned. Such a schema is refused"
    " until a person has replaced them.",
)
@overwrite_option
@json_option
def draft_command(
    file: str, output: str | None, read: bool, overwrite: bool, as_json: bool
) -> None:
    """Draft a schema from FILE: names and kinds of its columns, and questions. NOT PRIVATE: it reads the rows.

    It states 0 and 1, true and false, and low = 0 of times that follow another. Other bounds and categories are to be
    learned under the privacy budget. Write those that are public in their place.
    """
    check_outputs({"-o": output}, overwrite=overwrite, inputs={"FILE": file})
    drafted = quiet_draft(file, read=read)
    first, said = first_questions(drafted), drafted.remarks[""].splitlines()[1:]
    questions, notes = constraint_questions(file, drafted), backward_rows(file, drafted)
    drafted = with_questions(drafted, questions, notes)
    if output is not None:
        drafted.save(output, overwrite=overwrite)
    if as_json:
        echo_json(
            {
                "output": output,
                "draft": drafted.draft,
                "to_learn": [column.name for column in drafted.to_learn],
                "columns": len(drafted.columns),
                "remarks": drafted.remarks[""].splitlines()[1:],
                "toml": drafted.to_toml(),
            }
        )
    elif output is None:
        echo(drafted.to_toml(), nl=False)
        for sentence in first:
            echo(sentence, err=True)
    else:
        echo(f"Wrote a draft of {counted(len(drafted.columns), 'column')} to {output}.")
        for sentence in (*said, *notes, *([] if read else short_questions(drafted))):
            console().print(escape(sentence), style="bold red" if sentence in first else None)
        if questions:
            echo(
                f"Comments of {output} ask about {counted(len(questions), 'relation')} between columns."
            )
        if read:
            echo("Replace the keys that read lists by what is public, or by learn = true.")
    if not read and not as_json:
        echo(taken_as_public(drafted), err=True)
    if note := import_note(file):
        echo(note.strip(), err=True)


@schema_command.command("of")
@click.argument("release_path", metavar="RELEASE")
@_output_option
@overwrite_option
@release_size_option
def of_command(
    release_path: str, output: str | None, overwrite: bool, max_release_mb: float
) -> None:
    """Write the schema of RELEASE for another run, with the bounds, bins and categories that its run learned.

    Means and weights within bins stay in RELEASE: they are about its rows. The schema is as public as the release.
    """
    check_outputs({"-o": output}, overwrite=overwrite, inputs={"RELEASE": release_path})
    schema = Release.load(release_path, max_mb=max_release_mb).schema.for_run()
    if output is None:
        echo(schema.to_toml(), nl=False)
    else:
        schema.save(output, overwrite=overwrite)
        echo(f"Wrote the schema of {counted(len(schema.columns), 'column')} to {output}.")


@schema_command.command("check")
@click.argument("file", metavar="FILE")
@schema_option
@json_option
def check_command(file: str, schema_path: str, as_json: bool) -> int:
    """Count the values of FILE that lie outside the schema. NOT PRIVATE: for the custodian alone. Spends nothing."""
    not_private = "NOT PRIVATE: counted from the rows, for the custodian alone."
    schema = load_schema(schema_path, confirmed=False, table=file)
    found = check_table(file, schema)
    echo(not_private, err=True)
    error = None
    if not found.passed:
        error = DataError(
            "The table does not pass the schema.", remedy="See above; nothing was spent."
        )
    if as_json:
        sentences = {name: getattr(found, name) for name in ("alarms", "notes", "refusals")}
        facts = {"warning": not_private, "passed": found.passed, **sentences, **asdict(found)}
        echo_json({**facts, **facts_of(error)})
        return 0 if error is None else error.exit_code
    _show(found, draft=schema.draft)
    if error is not None:
        raise error
    return 0


def _show(found: Preflight, *, draft: bool) -> None:
    out = console()
    for sentence in found.alarms:
        out.print(escape(f"{LOOK} {sentence}"), style="bold red")
    table = Table(title=counted(found.rows, "row"), title_justify="left", box=None, pad_edge=False)
    for name in ("column", "missing", "outside", "unreadable", "policy"):
        table.add_column(name, justify="left" if name in ("column", "policy") else "right")
    for c in found.columns:
        table.add_row(
            escape(c.name), f"{c.empty:,}", f"{c.outside:,}", f"{c.unreadable:,}", c.policy
        )
    out.print(table)
    for k in found.constraints:
        out.print(
            escape(f"constraint {k.name}: violated by {counted(k.rows, 'row')}, policy {k.policy}")
        )
    for line in [] if found.persons is None else found.persons.lines("--unit add-remove-person:K"):
        out.print(line)
    for sentence in (*found.notes, *found.refusals):
        out.print(escape(sentence))
    if draft:
        out.print("The schema is a draft: it is refused until the keys that read lists are public.")
