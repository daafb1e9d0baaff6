"""``margrave studio``."""

from __future__ import annotations

import webbrowser
from contextlib import suppress

import click

from margrave.cli.terminal import echo
from margrave.studio import launch


@click.command("studio")
@click.argument("file", metavar="[FILE]", required=False)
@click.option(
    "--folder",
    default="margrave-studio",
    show_default=True,
    metavar="DIR",
    help="Where answers, ledger, journals and outputs are kept.",
)
@click.option(
    "--port",
    type=int,
    default=0,
    show_default="a free one",
    help="The port on 127.0.0.1, between 1024 and 65535.",
)
@click.option("--no-browser", is_flag=True, help="Print the address only.")
def studio_command(file: str | None, folder: str, port: int, no_browser: bool) -> None:
    """Open a page in your browser that leads from FILE to a release.

    The page is served by this machine to this machine alone. Nothing is uploaded or sent. Answers are kept in the
    folder, so a studio continues where it was stopped, and a run that was interrupted pays nothing twice.
    """

    def show(address: str) -> None:
        echo(f"The studio is at {address}")
        echo("The address works once, in one browser. Ctrl-C stops the studio. A run continues.")
        if not no_browser:
            webbrowser.open(address)

    with suppress(KeyboardInterrupt):
        launch(file, folder=folder, port=port, on_address=show)
    echo("The studio has stopped. A run in progress continues.")
