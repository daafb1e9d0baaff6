"""What a long search is to tell while it goes on: the share of it that is done, as far as that can be known."""

from __future__ import annotations

from collections.abc import Callable

Told = Callable[[float], None]


def silent(share: float) -> None:
    """Tells nobody."""


def part(told: Told, start: float, end: float) -> Told:
    """Tells of a stage, which begins and ends at these shares of the whole.

    >>> seen = []
    >>> part(seen.append, 0.2, 0.6)(0.5)
    >>> seen
    [0.4]
    """
    return lambda share: told(start + (end - start) * share)
