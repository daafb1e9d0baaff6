"""The server of the studio: one process on 127.0.0.1, without an access log."""

from __future__ import annotations

import socket
from collections.abc import Callable
from errno import EADDRINUSE
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from margrave._io import files_of
from margrave.accounting import Budget
from margrave.errors import InputError, MargraveError
from margrave.run import Run
from margrave.schema import Integer, Schema
from margrave.studio.guard import Guard
from margrave.studio.pages import DescribingPages
from margrave.studio.project import Project
from margrave.studio.rendering import Site, go
from margrave.studio.run_pages import SpendingPages
from margrave.studio.state import FolderLock


def application(project: Project, port: int, stop: Callable[[], None]) -> Guard:
    """Return the studio as an ASGI application, behind its guard.

    Args:
        project: The project.
        port: The port that it listens on.
        stop: Stops the server.
    """
    site = Site(project)

    def home(_: Request) -> Response:
        number = project.latest()
        if number and (
            project.settings.reached == "run" or project.job(number).status().state == "running"
        ):
            return go(f"/run/{number}")
        return go(f"/{project.settings.reached}")

    def missing(_: Request, __: Exception) -> Response:
        return site.page("missing.html", code=404)

    def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, MargraveError)
        return site.page("problem.html", error=error, page=request.url.path)

    def failed(_: Request, __: Exception) -> Response:  # the guard reports the error
        return PlainTextResponse(Guard.failure_text, 500)

    static = StaticFiles(directory=Path(__file__).with_name("static"))
    handlers: dict[Any, Any] = {404: missing, 405: missing, 500: failed, MargraveError: refused}
    app = Starlette(
        routes=[
            Route("/", home),
            Route("/studio.css", lambda _: site.style()),
            *DescribingPages(site).routes(),
            *SpendingPages(site, stop).routes(),
            Mount("/static", static),
        ],
        exception_handlers=handlers,
    )
    return Guard(app, port)


def serve(table: str | None, folder: Path, port: int, on_address: Callable[[str], None]) -> None:
    """Serve the studio until it is stopped. See ``launch``."""
    folder = folder.absolute()
    with _bound(port) as listening:
        _table_to_begin(Project(folder, Path.cwd()), table)  # a refusal leaves no file
        _serve_on(listening, table, folder, on_address)


def _serve_on(
    listening: socket.socket, table: str | None, folder: Path, on_address: Callable[[str], None]
) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"The folder {folder} cannot be made ({error.strerror}).",
            remedy="Name another with --folder.",
        ) from None
    lock = FolderLock(folder / "studio.lock")
    if not lock.take(1.0):
        raise InputError(
            f"The folder {folder} is in use by another studio.",
            remedy="Go on there, or name another with --folder.",
        )
    try:
        project = Project(folder, Path.cwd())
        if named := _table_to_begin(project, table):
            project.change(table=named, reached="columns")
        servers: list[uvicorn.Server] = []

        def stop() -> None:
            for server in servers:
                server.should_exit = True

        guard = application(project, listening.getsockname()[1], stop)
        config = uvicorn.Config(
            guard,
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=2,
        )
        servers.append(uvicorn.Server(config))
        on_address(guard.address)
        Thread(target=_prepare, daemon=True).start()
        servers[0].run(sockets=[listening])
    finally:
        lock.release()


def _prepare() -> None:
    """Load the libraries of a plan, so that the first page with one does not wait for them."""
    schema = Schema([Integer("a", 0, 1), Integer("b", 0, 1)])
    Run(schema=schema, budget=Budget.approx(1.0, 1e-9)).plan(1000)


def _table_to_begin(project: Project, table: str | None) -> str:
    """Return the table that a new project begins with; "" if there is none, or the project has it."""
    if table is None:
        return ""
    named = project.path_of(table)
    if project.settings.table not in ("", named):
        raise InputError(
            f"The folder {project.folder} holds the project of {project.settings.table}.",
            remedy="For another table of the same persons start without a FILE, and pick it on the page: one folder"
            " has one ledger. For other persons name another folder with --folder.",
        )
    if project.settings.table:
        return ""
    if not any(path.exists() for path in files_of(named)):
        raise InputError(f"There is no table {table}.", remedy="Check the path.")
    return named


def _bound(port: int) -> socket.socket:
    if port and not 1024 <= port <= 65535:
        raise InputError(
            "--port lies between 1024 and 65535.", remedy="Name such a port, or leave --port out."
        )
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen()  # a browser that is early waits
    except OSError as error:
        listening.close()
        why = f"cannot be used ({error.strerror})"
        raise InputError(
            f"Port {port} {'is in use by another program' if error.errno == EADDRINUSE else why}.",
            remedy="Name another, or leave --port out.",
        ) from None
    return listening
