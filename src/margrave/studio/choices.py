"""The choice of a mechanism, and of the public table that some mechanisms take."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from margrave._io import files_of
from margrave.api import read_public
from margrave.errors import InputError
from margrave.mechanisms import MECHANISM_CATALOG, Mechanism
from margrave.mechanisms.parts.public import takes_public
from margrave.public_table import PublicTable
from margrave.schema import Schema


@dataclass(frozen=True)
class MechanismChoice:
    """The mechanism of a run by its name, with the public table that it starts from.

    Args:
        name: The mechanism; "" for the usual one.
        public: The file of the public table; "" for none.
        attestation: Where the records of the public table come from, and why they are public. It is published.
        columns: The columns of it to read, separated by commas; "" for all that the schema has.
        same_records: Its records are the private ones, of which these columns are public.
    """

    name: str = ""
    public: str = ""
    attestation: str = ""
    columns: str = ""
    same_records: bool = False

    @property
    def takes_public(self) -> bool:
        """True if the mechanism starts from a public table."""
        return bool(self.name) and takes_public(MECHANISM_CATALOG.get(self.name))

    @property
    def files(self) -> Hashable:
        """The files of the public table, with the time and size of their last change."""
        if not (self.takes_public and self.public):
            return ()
        return state_of_files(self.public)

    def mechanism(self, schema: Schema, table: str) -> Mechanism | None:
        """Return the mechanism, or None for the usual one. A public table that it takes is read.

        Args:
            schema: The schema of the private table.
            table: The private table. It is compared by its place alone.

        Raises:
            MargraveError: The mechanism is unknown, or the public table cannot be used.

        Privacy:
            None spent. The records of the public table are not protected.
        """
        if not self.name:
            return None
        kind = cast(Any, MECHANISM_CATALOG.get(self.name))
        if not (self.takes_public and self.public):
            made: Mechanism = kind()
            return made
        started: Mechanism = kind(public=self._read(schema, table))
        return started

    def _read(self, schema: Schema, table: str) -> PublicTable:
        if schema.to_learn:
            raise InputError(
                "A public table is read with the schema's codes, and"
                f" {schema.to_learn[0].name!r} is to be learned.",
                remedy="State all columns on the page Columns, or choose a mechanism without a public table.",
            )
        if not self.attestation:
            raise InputError(
                "The public table comes without a word on why it is public.",
                remedy="Write where its records come from and who published them.",
            )
        columns = [c.strip() for c in self.columns.split(",") if c.strip()] or None
        public = read_public(
            self.public,
            schema,
            attestation=self.attestation,
            columns=columns,
            same_records=self.same_records,
        )
        public.check_apart(files_of(table), schema.domain)
        return public


def mechanism_lines() -> list[dict[str, Any]]:
    """Return each mechanism of the library: its name, what it is for, whether it takes a public table."""
    return [
        {"name": name, "use": kind.use, "public": takes_public(kind)}
        for name, kind in MECHANISM_CATALOG.built_in.items()
    ]


def policy_words() -> dict[str, str]:
    """Return what becomes of a value outside the schema, by its out-of-range policy."""
    return {
        "clip": "counted at the nearest bound",
        "other": "counted with the others",
        "missing": "counted as missing",
        "refuse": "the run stops",
    }


def state_of_files(table: str) -> Hashable:
    """Return the files of a table, with the time and size of their last change."""
    return tuple((f, *_change(f)) for f in files_of(table))


def _change(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
