"""``margrave schema import``, ``export`` and ``grammar``: schemas from code books, and for other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import click

from margrave._card import counted
from margrave._io import check_no_folder, written_whole
from margrave.cli.options import load_schema, overwrite_option, schema_option
from margrave.cli.output import check_outputs, console, escape
from margrave.cli.terminal import echo
from margrave.codebooks import Form, export_schema, read_code_book, schema_grammar
from margrave.schema.column_check import LOOK

_output_option = click.option(
    "--output",
    "-o",
    default=None,
    metavar="FILE",
    help="Where to write it; by default it is printed.",
)


@click.command("import")
@click.argument("codebook", metavar="CODEBOOK")
@click.option(
    "--cite",
    default=None,
    metavar="TEXT",
    help="Where its public values are written down; by default its name.",
)
@click.option(
    "--ranges-public",
    is_flag=True,
    help="Ranges that programs usually read off the rows are public: those of SDV metadata, and those of DDI-Codebook"
    " that equal its statistics of the rows. They are learned otherwise.",
)
@_output_option
@overwrite_option
def import_command(
    codebook: str, cite: str | None, ranges_public: bool, output: str | None, overwrite: bool
) -> None:
    """Write the schema that CODEBOOK states. Reads no row.

    CODEBOOK is DDI-Codebook, Frictionless Table Schema, CSV on the Web, SDV Metadata V2, a REDCap data dictionary, or a
    file of Stata, SPSS or SAS (its labels alone are read). The run learns bounds and categories that CODEBOOK lacks.
    """
    check_no_folder(codebook)
    check_outputs({"-o": output}, overwrite=overwrite, inputs={"CODEBOOK": codebook})
    schema = read_code_book(codebook, cite=cite, ranges_public=ranges_public)
    if output is None:
        echo(schema.to_toml(), nl=False)
        return
    schema.save(output, overwrite=overwrite)
    to_learn = [c.name for c in schema.to_learn]
    learned = ", ".join(n for n in to_learn if not schema.source(n).cite)
    binned = ", ".join(n for n in to_learn if schema.source(n).cite)
    echo(f"Wrote a schema of {counted(len(schema.columns), 'column')} to {output}.")
    if learned:
        echo(f"Not in the code book, to be learned: {learned}.")
    if binned:
        echo(f"To be learned within what the code book states: {binned}.")
    if schema.ignore:
        echo(f"Left out: {', '.join(schema.ignore)}.")
    for name, remark in schema.remarks.items():
        if LOOK in remark:
            said = remark.partition(LOOK)[2] if not name else f" {name}: {remark}"
            console().print(escape(f"{LOOK}{said}"), style="bold red")


@click.command("export")
@schema_option
@click.option(
    "--form",
    type=click.Choice(get_args(Form)),
    required=True,
    help="table-schema (Frictionless) or sdv (Metadata V2).",
)
@_output_option
@overwrite_option
def export_command(schema_path: str, form: Form, output: str | None, overwrite: bool) -> None:
    """Write a schema as the metadata of another program."""
    check_outputs({"-o": output}, overwrite=overwrite, inputs={"--schema": schema_path})
    _write(export_schema(load_schema(schema_path, confirmed=False), form), output, overwrite)


@click.command("grammar")
@_output_option
@overwrite_option
def grammar_command(output: str | None, overwrite: bool) -> None:
    """Write the JSON Schema of schema files, with which an editor completes and checks them."""
    check_outputs({"-o": output}, overwrite=overwrite)
    _write(json.dumps(schema_grammar(), indent=2), output, overwrite)


def _write(text: str, output: str | None, overwrite: bool) -> None:
    if output is None:
        echo(text)
        return
    with written_whole(output, overwrite=overwrite) as path:
        Path(path).write_text(f"{text}\n", encoding="utf-8")
    echo(f"Wrote {output}.")
