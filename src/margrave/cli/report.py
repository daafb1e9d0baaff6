"""``margrave report``."""

from __future__ import annotations

import click

from margrave._io import check_ending
from margrave.cli.options import (
    echo_json,
    heading_options,
    json_option,
    overwrite_option,
    release_size_option,
)
from margrave.cli.output import check_outputs
from margrave.cli.terminal import echo
from margrave.release import Release
from margrave.report import write_report


@click.command("report")
@click.argument("release_path", metavar="RELEASE")
@click.option(
    "--output", "-o", required=True, metavar="FILE", help="Where to write the page, an HTML file."
)
@heading_options
@click.option(
    "--dataset", default="", metavar="TEXT", help="Name of the data set, in public words."
)
@overwrite_option
@release_size_option
@json_option
def report_command(
    release_path: str,
    output: str,
    title: str,
    office: str,
    dataset: str,
    overwrite: bool,
    max_release_mb: float,
    as_json: bool,
) -> None:
    """Write the report of RELEASE as one HTML page. Nothing is spent.

    The page can be published, with the title, the office and the name of the data set.
    """
    check_outputs({"-o": output}, overwrite=overwrite, inputs={"RELEASE": release_path})
    check_ending(output, ".html", "-o")
    write_report(
        Release.load(release_path, max_mb=max_release_mb),
        output,
        title=title,
        office=office,
        dataset=dataset,
        overwrite=overwrite,
    )
    if as_json:
        echo_json({"output": output})
    else:
        echo(f"Wrote the report to {output}.")
