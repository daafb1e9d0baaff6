"""The notice that a compiled loop is not in the cache, for displays of progress. Imports no compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident


class _Watch:
    """The function to call before compiling, and the thread that it is for."""

    call: Callable[[], None] | None = None
    thread = 0


@contextmanager
def watching(call: Callable[[], None]) -> Iterator[None]:
    """Call a function before each compilation by this thread."""
    before = _Watch.call, _Watch.thread
    _Watch.call, _Watch.thread = call, get_ident()
    try:
        yield
    finally:
        _Watch.call, _Watch.thread = before


def announce(module: str) -> None:
    """Report that a loop of this module is about to be compiled.

    Only loops of models are reported: the rows may determine which other loops run.
    """
    if _Watch.call and _Watch.thread == get_ident() and module.startswith("margrave.models"):
        _Watch.call()
