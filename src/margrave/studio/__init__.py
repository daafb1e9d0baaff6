"""The studio: a page in the custodian's own browser that leads from a table to a release.

It listens on this machine only, sends nothing anywhere, and keeps what it needs in one folder.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from margrave.errors import InputError


def launch(
    table: str | None = None,
    *,
    folder: str | Path = "margrave-studio",
    port: int = 0,
    on_address: Callable[[str], None],
) -> None:
    """Serve the studio until it is stopped.

    Args:
        table: The table to begin with, as ``synthesize`` takes it from a path.
        folder: The folder of the answers, the ledger, the journals and the outputs. It is made if it is missing.
        port: The port on 127.0.0.1; 0 takes a free one, and others lie between 1024 and 65535.
        on_address: Callback with the address to open. It has a token that one browser can use once.

    Raises:
        InputError: The libraries of the studio are not installed, the folder is in use or cannot be written, or the
            port is taken.

    Privacy:
        None spent by serving. A run that is confirmed on the page spends what the page states, through the same ``Run``
        as the command line. Pages for the custodian show facts about the rows, and say so.
    """
    try:
        import jinja2
        import starlette
        import uvicorn
    except ModuleNotFoundError:
        raise InputError(
            "The studio needs libraries that are not installed.",
            remedy="Install them: pip install 'margrave[studio]'.",
        ) from None
    del jinja2, starlette, uvicorn
    from margrave.studio.server import serve

    serve(table, Path(folder), port, on_address)


__all__ = ["launch"]
