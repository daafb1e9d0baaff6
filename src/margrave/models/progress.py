"""Progress of a long fit: a callback that gets the share that is done, from 0 to 1."""

from __future__ import annotations

from collections.abc import Callable

ShareProgress = Callable[[float], None]


def no_progress(share: float) -> None:
    """Do nothing."""


def subprogress(progress: ShareProgress, start: float, end: float) -> ShareProgress:
    """Return the progress of a stage that begins and ends at these shares of the whole.

    >>> seen = []
    >>> subprogress(seen.append, 0.2, 0.6)(0.5)
    >>> seen
    [0.4]
    """
    return lambda share: progress(start + (end - start) * share)
