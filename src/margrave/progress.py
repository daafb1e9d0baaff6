"""Progress of long calls: a bar in a terminal or a notebook, or an occasional line. Stages and fractions are public."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from html import escape
from threading import Event, Thread
from typing import Any

from margrave._compiling import watching
from margrave.errors import InputError

#: Called with a stage and the fraction done.
Callback = Callable[[str, float], None]

#: Seconds until the first line of progress without a terminal, and between lines.
FIRST, EVERY = 5.0, 30.0


@contextmanager
def reporting(progress: Callback | bool | None) -> Iterator[Callback]:
    """Yield the callback of a call's ``progress``.

    Args:
        progress: A callback as it is; False for nothing; None for a bar if there is a terminal or a
            notebook; True for that, else for a line on standard error now and then.

    Raises:
        InputError: It is something else.
    """
    if callable(progress):
        yield progress
        return
    if progress not in (None, True, False):
        raise InputError(
            f"progress is {progress!r}.",
            remedy="Give a function of a stage and a fraction, True, False, or None.",
        )
    shown: Any = _silence
    if progress is not False:
        others = _lines if progress else _silence
        shown = _notebook_bar if _notebook() else _bar if sys.stderr.isatty() else others
    with shown() as callback:
        latest = 0.0

        def update(stage: str, done: float) -> None:
            nonlocal latest
            latest = min(max(done, 0.0), 1.0)
            callback(stage, latest)

        with watching(lambda: callback("compiling (first run only)", latest)):
            yield update


@contextmanager
def _silence() -> Iterator[Callback]:
    yield lambda _stage, _done: None


@contextmanager
def _bar() -> Iterator[Callback]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=1.0)
        yield lambda stage, done: bar.update(task, description=_plain(stage), completed=done)


def _notebook() -> Any:
    """Return the IPython of a notebook that runs this; None elsewhere. Imports nothing."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return ipython if type(shell).__name__ == "ZMQInteractiveShell" else None


class _HTML:
    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text


@contextmanager
def _notebook_bar() -> Iterator[Callback]:
    seconds_between = 0.2
    handle = _notebook().display.display(_HTML(""), display_id=True)
    shown = 0.0

    def update(stage: str, done: float) -> None:
        nonlocal shown
        if time.monotonic() - shown >= seconds_between:
            shown = time.monotonic()
            bar = f'<progress max="1" value="{done:.3f}"></progress>'
            handle.update(_HTML(f"{bar} {escape(stage)}, {100 * done:.0f} %"))

    try:
        yield update
    finally:
        handle.update(_HTML(""))


@contextmanager
def _lines() -> Iterator[Callback]:
    """Yield a callback whose last call is printed every half minute, so that a log shows progress.

    A thread prints, since a single fit can take minutes. Runs of a few seconds print nothing.
    """
    latest, ended, began = ("reading", 0.0), Event(), time.monotonic()

    def update(stage: str, done: float) -> None:
        nonlocal latest
        latest = stage, done

    def write() -> None:
        wait = FIRST
        while not ended.wait(wait):
            (stage, done), wait = latest, EVERY
            seconds = time.monotonic() - began
            line = f"margrave: {_plain(stage)}, {100 * done:.0f}% done after {seconds:.0f} s\n"
            with suppress(OSError, ValueError):  # whoever read the lines has left
                sys.stderr.write(line)
                sys.stderr.flush()

    thread = Thread(target=write, daemon=True)
    thread.start()
    try:
        yield update
    finally:
        ended.set()
        thread.join(1.0)


def _plain(stage: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in stage)
