"""Seed and place: what a resumed run must have in common with its beginning."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from margrave._io import files_of, part_of, path_of
from margrave.data import TableSource
from margrave.error_sanitizer import reveal_table
from margrave.errors import LedgerError


def seed_of(stored: Mapping[str, Any]) -> int:
    """Return the seed of the run to resume, whose questions must be the same; a new seed for a new
    run.
    """
    facts = stored.get("facts")
    seed = facts.get("seed") if isinstance(facts, dict) else None
    return seed if isinstance(seed, int) and seed >= 0 else secrets.randbits(63)


def place_of(
    table: Any, stored: Mapping[str, Any], journal: str | Path, *, same_table: bool
) -> dict[str, str | None]:
    """Return the place of the table as a salted hash, because answers of two tables make no release
    of either.

    A resumed run needs the same place, unless the user states that it is the same table. Frames
    have none.
    """
    facts = stored.get("facts")
    if not isinstance(facts, dict):
        return {"table": _salted(_place(table), secrets.token_hex(8))}
    if "table" not in facts:
        return {}
    begun = facts["table"]
    if begun != _salted(_place(table), str(begun).partition("$")[0]) and not same_table:
        raise LedgerError(
            f"{journal} is of a run on another table: one that stood elsewhere than {path_of(table) or 'this one'}.",
            remedy="Resume with the table that the run was begun on. If it is that table, and was moved, say so:"
            " --same-table (in Python same_table=True). Nothing was spent.",
        )
    return {"table": begun}


def _place(table: Any) -> str | None:
    given, path = reveal_table(table), path_of(table)
    if type(given) is TableSource:
        return f"{given.kind}:{given.location}"
    if path is None:
        return None
    part = part_of(table)
    places = [*map(os.path.realpath, files_of(table)), *([] if part is None else part[1:])]
    return "\n".join(places)


def _salted(place: str | None, salt: str) -> str | None:
    return None if place is None else f"{salt}${sha256(f'{salt}{place}'.encode()).hexdigest()}"
