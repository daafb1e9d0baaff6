"""Import of ledgers in the earlier format: a text file of chained JSON lines."""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from pathlib import Path

from margrave.accounting.open_ledger import OpenLedger
from margrave.accounting.store import Event
from margrave.errors import InputError, LedgerError

_LINE = re.compile(rb'(\{.*),"chain":"([0-9a-f]{64})"\}')


def import_ledger(old: str | Path, new: str | Path) -> int:
    """Write the caps, runs and debits of a text ledger to a new ledger, with the same identity.

    Runs that were open stay open. Their journals are in an earlier format and cannot be resumed, so close them.

    Args:
        old: The text file; it is only read.
        new: The ledger to make.

    Returns:
        The number of lines written.

    Raises:
        LedgerError: The old file is damaged.
        InputError: The new file exists.
    """
    head, *events = _events(Path(old))
    if os.path.lexists(new):
        raise InputError(f"{new} exists already.", remedy="Name a new file.")
    books = OpenLedger(Path(new), "rwc", identity=str(head["id"]))
    try:
        with books.transaction():
            for event in events:
                books.add(event)
        return books.lines
    except BaseException:
        books.close()
        with suppress(OSError):
            Path(new).unlink()
        raise
    finally:
        books.close()


def _events(path: Path) -> list[Event]:
    """Return the first line and the events, after checking the chain. A line that was torn by a crash is left out."""
    try:
        *lines, rest = path.read_bytes().split(b"\n")
    except OSError as error:
        raise LedgerError(f"{path} cannot be read ({error.strerror}).") from None
    if _LINE.fullmatch(rest):  # only its line feed is missing
        lines.append(rest)
    if lines and b"\0" in lines[-1]:  # a block that a power cut left unwritten
        lines.pop()
    events: list[Event] = []
    chain = ""
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        body = b"" if match is None else match[1] + b"}"
        chain = hashlib.sha256(chain.encode() + body).hexdigest()
        if match is None or match[2].decode() != chain:
            raise LedgerError(
                f"{path}, line {number} was changed, or is not a line of a ledger.",
                remedy="Name a text ledger as it was written, such as a copy.",
            )
        events.append(json.loads(body))
    if not events or (events[0].get("format"), events[0].get("version")) != ("margrave-ledger", 1):
        raise LedgerError(f"{path} is not a text ledger.", remedy="Name another file.")
    return events
