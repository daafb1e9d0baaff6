"""How many records a table is drawn with: no more than can be held, and without a number about as many as there are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from margrave.errors import InputError

TOLD = 4.0
"""How many standard deviations of its noise the number of records must be: it is then known to about a quarter, and an
empty table passes for one of records three times in a hundred thousand."""

BYTES_DRAWN = 16
"""Of memory that a value takes at least while rows are drawn: its code twice, and the value."""

UNKNOWN = 1 << 40
"""Bytes of memory, where the system does not tell."""


def is_told(total: float, deviation: float) -> bool:
    """Whether noisy answers tell the number of records, with the standard deviation that their noise gives it."""
    return total >= TOLD * deviation


def check_told(total: float, deviation: float) -> None:
    """An InputError where the number of records is lost in noise: what is drawn then would be any number."""
    if not is_told(total, deviation):
        raise InputError(
            f"The noise hides how many records there are: about {total:,.0f} by the noisy answers, give or take"
            f" {deviation:,.0f}.",
            remedy="Give the number of rows to draw: sample(1000), rows=1000, or --rows 1000.",
        )


def check_room(rows: int, columns: int) -> None:
    """An InputError for more rows than the memory of this machine can hold, whatever else runs on it."""
    room = _memory() // (BYTES_DRAWN * max(1, columns))
    if rows > room:
        raise _too_many(rows, f"at most {room:,} of {columns} columns")


@contextmanager
def held(rows: int | None) -> Iterator[None]:
    """Turn running out of memory into the same InputError."""
    try:
        yield
    except MemoryError:
        raise _too_many(rows, "the memory that is free is less than these take") from None


def _too_many(rows: int | None, most: str) -> InputError:
    told = "So many rows" if rows is None else f"{rows:,} rows"
    return InputError(
        f"{told} are more than this machine can hold at once: {most}.",
        remedy="Draw fewer (--rows, in Python sample(n)), several times with other seeds if that many are needed.",
    )


def _memory() -> int:
    """The machine's memory in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not every system tells
        return UNKNOWN
