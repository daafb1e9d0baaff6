"""``margrave schema draft`` and ``margrave schema check``: for the custodian, on this side of the gate."""

from __future__ import annotations

from dataclasses import asdict

import click
from rich.table import Table

from margrave.cli.options import (
    echo_json,
    json_option,
    load_schema,
    overwrite_option,
    schema_option,
)
from margrave.cli.output import check_outputs, console, escape
from margrave.cli.terminal import echo
from margrave.errors import DataError
from margrave.profiling import check_table, draft_schema, learnable, taken_as_public
from margrave.schema import Preflight, Schema
from margrave.schema.validation import LOOK


@click.group("schema")
def schema_command() -> None:
    """Draft a schema from a file, or check a file against a schema."""


@schema_command.command("draft")
@click.argument("file", metavar="FILE")
@click.option(
    "--output",
    "-o",
    default=None,
    metavar="FILE",
    help="Where to write it; by default it is printed.",
)
@click.option(
    "--learn",
    is_flag=True,
    help="Write learn = true in place of every bound and category that would be read from the rows.",
)
@overwrite_option
@json_option
def draft_command(
    file: str, output: str | None, learn: bool, overwrite: bool, as_json: bool
) -> None:
    """Draft a schema from the rows of FILE. It is NOT PRIVATE and is refused until a person has confirmed it.

    With --learn it holds nothing of the rows but the names and kinds of columns, and needs no confirmation.
    """
    check_outputs({"-o": output}, overwrite=overwrite, inputs={"FILE": file})
    drafted = draft_schema(file)
    if learn:
        _give_learnable(learnable(drafted), output, overwrite=overwrite, as_json=as_json)
        return
    if output is not None:
        drafted.save(output, overwrite=overwrite)
    said = drafted.remarks[""].splitlines()[1:]
    if as_json:
        echo_json(
            {
                "output": output,
                "draft": True,
                "columns": len(drafted.columns),
                "remarks": said,
                "toml": drafted.to_toml(),
            }
        )
    elif output is None:
        echo(drafted.to_toml(), nl=False)
        for sentence in (s for s in said if s.startswith(LOOK)):
            echo(sentence, err=True)
    else:
        echo(
            f"Wrote a draft of {len(drafted.columns)} columns to {output}. It was read from the rows."
        )
        for sentence in said:
            console().print(
                escape(sentence), style="bold red" if sentence.startswith(LOOK) else None
            )
        echo(
            "Replace what it found by what is public, then set draft = false. Where nothing is known, --learn drafts a"
            " schema whose bounds and categories a run learns."
        )


def _give_learnable(schema: Schema, output: str | None, *, overwrite: bool, as_json: bool) -> None:
    if output is not None:
        schema.save(output, overwrite=overwrite)
    if as_json:
        echo_json({"output": output, "draft": False, "toml": schema.to_toml()})
        return
    if output is None:
        echo(schema.to_toml(), nl=False)
    echo(taken_as_public(schema), err=True)


@schema_command.command("check")
@click.argument("file", metavar="FILE")
@schema_option
@json_option
def check_command(file: str, schema_path: str, as_json: bool) -> None:
    """Count the values of FILE that lie outside the schema. NOT PRIVATE: for the custodian alone. Spends nothing."""
    not_private = "NOT PRIVATE: counted from the rows, for the custodian alone."
    schema = load_schema(schema_path, confirmed=False, table=file)
    found = check_table(file, schema)
    echo(not_private, err=True)
    if as_json:
        echo_json(
            {
                "warning": not_private,
                "passed": found.passed,
                "alarms": found.alarms,
                **asdict(found),
            }
        )
    else:
        _show(found, draft=schema.draft)
    if not found.passed:
        raise DataError(
            "The table does not pass the schema.", remedy="See above; nothing was spent."
        )


def _show(found: Preflight, *, draft: bool) -> None:
    out = console()
    for sentence in found.alarms:
        out.print(escape(f"{LOOK} {sentence}"), style="bold red")
    table = Table(title=f"{found.rows:,} rows", title_justify="left", box=None, pad_edge=False)
    for name in ("column", "missing", "outside", "unreadable", "policy"):
        table.add_column(name, justify="left" if name in ("column", "policy") else "right")
    for c in found.columns:
        table.add_row(
            escape(c.name), f"{c.empty:,}", f"{c.outside:,}", f"{c.unreadable:,}", c.policy
        )
    out.print(table)
    for k in found.constraints:
        out.print(escape(f"constraint {k.name}: {k.rows:,} rows violate it, policy {k.policy}"))
    for line in [] if found.persons is None else found.persons.lines():
        out.print(line)
    for sentence in (*found.notes, *found.refusals):
        out.print(escape(sentence))
    if draft:
        out.print("The schema is a draft: it will be refused until it is confirmed.")
