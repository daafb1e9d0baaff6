"""Seed, place and time: what a resumed run must have in common with its beginning.

No hash of the rows is stored, because the journal would then hold a fact about them. The journal stores when the run
began, and the time of the table's files is compared with that. For a table of Spark it stores a salted hash of the
names of files: Spark gives a file that it writes a random name.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from time import time_ns
from typing import Any

from margrave._io import files_of, part_of, path_of, spark_name_of
from margrave.data import TableSource
from margrave.data.spark_frames import spark_files
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
) -> dict[str, str | int | None]:
    """Return salted hashes of the table's place and of Spark's files, and when the run began, in nanoseconds.

    A resumed run needs the same place, whose files nobody wrote to since, unless the user states that it is the same
    table: answers of two tables make no release of either. Frames have no place, and a frame of Spark has files.
    """
    facts = stored.get("facts")
    if not isinstance(facts, dict):
        return _names_of(table, secrets.token_hex(8)) | {"begun": time_ns()}
    if "table" not in facts:
        return {}
    stored_names = {key: facts.get(key) for key in ("table", "files")}
    begun, name = facts.get("begun"), path_of(table) or "this one"
    if not same_table:
        salt = str(facts["table"] or facts.get("files")).partition("$")[0]
        names = _names_of(table, salt)
        if names["table"] != stored_names["table"]:
            raise _another(
                f"{journal} is of a run on another table: one that stood elsewhere than {name}.",
                "moved",
            )
        if names["files"] != stored_names["files"]:
            raise _another(
                f"Spark reads other files for {name} than when the run of {journal} began.",
                "written again",
            )
        if not isinstance(begun, int) or _changed(table) > begun:
            raise _another(
                f"{name} was written or moved there after the run of {journal} began.",
                "written again",
            )
    return {**stored_names, "begun": begun}


def _names_of(table: Any, salt: str) -> dict[str, str | int | None]:
    """Return salted hashes of the place of a table and of the files that Spark reads for it."""
    files = spark_files(reveal_table(table))
    names = "\n".join(files) if files else None
    return {"table": _salted(_place(table), salt), "files": _salted(names, salt)}


def _another(sentence: str, done: str) -> LedgerError:
    return LedgerError(
        sentence,
        remedy=f"Resume with the table that the run was begun on. If it is that table, and was {done}, say so:"
        " --same-table (in Python same_table=True). Nothing was spent.",
    )


def _changed(table: Any) -> int:
    """Return when a file of the table was last written or moved there, in nanoseconds; 0 for a frame."""
    files = [Path(f"{f}{ending}") for f in files_of(reveal_table(table)) for ending in ("", ".wal")]
    found = [os.stat(file) for file in files if os.path.exists(file)]
    return max((max(s.st_mtime_ns, s.st_ctime_ns) for s in found), default=0)


def _place(table: Any) -> str | None:
    given, path = reveal_table(table), path_of(table)
    if type(given) is TableSource:
        return f"{given.kind}:{given.location}"
    if path is None:
        return None
    if (name := spark_name_of(given)) is not None:
        return f"spark:{name}"
    part = part_of(table)
    places = [*map(os.path.realpath, files_of(table)), *([] if part is None else part[1:])]
    return "\n".join(places)


def _salted(place: str | None, salt: str) -> str | None:
    return None if place is None else f"{salt}${sha256(f'{salt}{place}'.encode()).hexdigest()}"
