"""``margrave marginals``."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click
import pyarrow as pa

from margrave._card import counted
from margrave.cli.options import echo_json, json_option, overwrite_option, release_size_option
from margrave.cli.output import (
    check_excel_safe,
    check_outputs,
    excel_safe_option,
)
from margrave.cli.terminal import echo
from margrave.data.writer import check_format, endings_in_words, write_table
from margrave.errors import InputError
from margrave.release import Release, measurement_table, measurement_tables


@click.command("marginals")
@click.argument("release_path", metavar="RELEASE")
@click.option(
    "--output",
    "-o",
    required=True,
    metavar="FILE|FOLDER",
    help=f"Where to write them: one table of all ({endings_in_words()}), or a new folder with a Parquet file of each.",
)
@excel_safe_option
@overwrite_option
@release_size_option
@json_option
def marginals_command(
    release_path: str,
    output: str,
    excel_safe: bool,
    overwrite: bool,
    max_release_mb: float,
    as_json: bool,
) -> None:
    """Write the noisy marginals of RELEASE, as they were measured: one row per noisy count. Nothing is spent.

    Counts of one cell in several marginals differ, and counts may be negative: no model has been fitted.
    """
    folder = not Path(output).suffix
    if folder and os.path.lexists(output):
        raise InputError(f"{output} exists already.", remedy="Name a folder that is to be made.")
    if not folder:
        check_format(output)
        check_outputs({"-o": output}, overwrite=overwrite, inputs={"RELEASE": release_path})
    check_excel_safe(None if folder else output, excel_safe)
    release = Release.load(release_path, max_mb=max_release_mb)
    schema, transcript = release.schema, release.transcript
    if folder:
        tables = measurement_tables(schema, transcript)
        _write_folder(tables, Path(output), [m.clique for m in transcript.measurements])
    else:
        tables = [measurement_table(schema, transcript)]
        write_table(tables[0], output, overwrite=overwrite, excel_safe=excel_safe)
    marginals, counts = len(transcript.measurements), sum(t.num_rows for t in tables)
    single = len(transcript.answers)
    if as_json:
        facts = {"marginals": marginals, "counts": counts, "single_queries": single}
        echo_json({**facts, "output": output})
        return
    echo(f"Wrote {counted(counts, 'noisy count')} of {counted(marginals, 'marginal')} to {output}.")
    if single:
        echo(
            f"{counted(single, 'noisy answer')} of single queries {'is' if single == 1 else 'are'} not among them."
        )


def _write_folder(tables: list[pa.Table], folder: Path, cliques: list[tuple[str, ...]]) -> None:
    max_name = 80
    try:
        folder.mkdir()
    except OSError as error:
        raise InputError(
            f"The folder {folder} cannot be made ({error.strerror}).", remedy="Name another."
        ) from None
    for i, (table, clique) in enumerate(zip(tables, cliques, strict=True), 1):
        columns = re.sub(r"[^A-Za-z0-9]+", "-", "-".join(clique))[:max_name].strip("-")
        write_table(table, str(folder / f"{i:04d}-{columns}.parquet"), overwrite=False)
