"""``margrave croissant``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from margrave._io import written_whole
from margrave.cli.options import echo_json, json_option, overwrite_option, release_size_option
from margrave.cli.output import check_outputs
from margrave.cli.terminal import echo
from margrave.release import Release, croissant


@click.command("croissant")
@click.argument("release_path", metavar="RELEASE")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--output", "-o", required=True, metavar="FILE", help="Where to write the description (JSON)."
)
@click.option("--name", required=True, help="The name of the data set.")
@click.option("--license", required=True, metavar="URL", help="The address of the license.")
@click.option("--creator", required=True, help="The organization that publishes it.")
@click.option("--url", required=True, help="The page of the data set.")
@click.option("--description", default="", help="Sentences on the data set.")
@click.option("--cite", default="", help="The citation of the data set.")
@click.option(
    "--published",
    type=click.DateTime(["%Y-%m-%d"]),
    default=None,
    metavar="DAY",
    help="The day of publication (default: today).",
)
@overwrite_option
@release_size_option
@json_option
def croissant_command(
    release_path: str,
    files: tuple[str, ...],
    output: str,
    name: str,
    license: str,
    creator: str,
    url: str,
    description: str,
    cite: str,
    published: datetime | None,
    overwrite: bool,
    max_release_mb: float,
    as_json: bool,
) -> None:
    """Describe published tables FILE..., drawn from RELEASE, for catalogs of data sets. Nothing is spent.

    The description is JSON-LD in Croissant 1.0: files with their SHA-256, columns, categories, and the promise.
    """
    inputs = {"RELEASE": release_path, **{f"FILE {f}": f for f in files}}
    check_outputs({"-o": output}, overwrite=overwrite, inputs=inputs)
    release = Release.load(release_path, max_mb=max_release_mb)
    day = None if published is None else published.date()
    texts = {"name": name, "license": license, "creator": creator, "url": url}
    words = {"description": description, "cite": cite}
    text = croissant(release, files, **texts, **words, published=day)
    with written_whole(output, overwrite=overwrite) as path:
        Path(path).write_text(f"{text}\n", encoding="utf-8")
    noun = "table" if len(files) == 1 else "tables"
    if as_json:
        echo_json({"output": output, "files": len(files)})
    else:
        echo(f"Wrote the description of {len(files):,} {noun} to {output}.")
