"""``margrave sample``."""

from __future__ import annotations

import click

from margrave._card import counted
from margrave.cli.notes import stata_note
from margrave.cli.options import echo_json, json_option, overwrite_option, release_size_option
from margrave.cli.output import (
    check_excel_safe,
    check_outputs,
    excel_safe_option,
)
from margrave.cli.terminal import echo
from margrave.cli.where import conditions
from margrave.data import read_frame
from margrave.data.loading import public_codes
from margrave.data.writer import check_format, endings_in_words, write_table
from margrave.errors import InputError
from margrave.release import Release


@click.command("sample")
@click.argument("release_path", metavar="RELEASE")
@click.option(
    "--rows",
    "-n",
    type=int,
    default=None,
    help="Number of rows (default: the estimated row count).",
)
@click.option(
    "--output",
    "-o",
    required=True,
    metavar="FILE",
    help=f"Where to write them: {endings_in_words()}. .dta and .sav have titles and value labels.",
)
@excel_safe_option
@click.option(
    "--where",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Only rows like this: VALUE, several as A|B, or a range LOW..HIGH, LOW.. or ..HIGH. Numbers and dates"
    " (2020-12-31, or in the schema's format) that cut a bin take their share of it. May be repeated.",
)
@click.option(
    "--complete",
    metavar="FILE",
    default=None,
    help="Public rows to complete: a table with some of the columns.",
)
@click.option(
    "--attestation",
    metavar="TEXT",
    default=None,
    help="Where those rows come from and why they are public.",
)
@click.option("--seed", type=int, default=None, help="Makes the rows repeatable.")
@overwrite_option
@release_size_option
@json_option
def sample_command(
    release_path: str,
    rows: int | None,
    output: str,
    excel_safe: bool,
    where: tuple[str, ...],
    complete: str | None,
    attestation: str | None,
    seed: int | None,
    overwrite: bool,
    max_release_mb: float,
    as_json: bool,
) -> None:
    """Draw rows from RELEASE. Nothing is spent."""
    check_format(output)
    check_excel_safe(output, excel_safe)
    check_outputs(
        {"-o": output},
        overwrite=overwrite,
        inputs={"RELEASE": release_path, "--complete": complete},
    )
    other_rows = bool(where) or rows is not None
    if other_rows if complete is not None else attestation is not None:
        raise InputError(
            "--complete takes its rows from the file, and --attestation belongs to it.",
            remedy="Leave out --rows and --where, or --complete and --attestation.",
        )
    release = Release.load(release_path, max_mb=max_release_mb)
    held, notes = conditions(where), list[str]()
    if complete is not None:
        known = read_frame(complete)
        table = release.complete(known, attestation=attestation or "", seed=seed)
        names = [a for a in release.schema.domain if a in known.column_names]
        _, moved = public_codes(known, release.schema, names, part=True)
        for note in moved:
            echo(
                f"Note: {note} The rows keep their own; what is drawn beside them goes by that.",
                err=True,
            )
    else:
        part = release.condition(held) if held else None
        notes = [] if part is None else list(part.notes)
        table = (part or release).sample(rows, seed=seed)
    if note := stata_note(output, release.schema):
        echo(f"Note: {note}", err=True)
    write_table(table, output, overwrite=overwrite, schema=release.schema, excel_safe=excel_safe)
    if as_json:
        facts = {"rows": table.num_rows, "columns": table.num_columns, "output": output}
        echo_json({**facts, **({"notes": notes} if notes else {})})
    else:
        echo(f"Wrote {counted(table.num_rows, 'row')} to {output}.")
