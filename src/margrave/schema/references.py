"""The files that a schema names: read from its own folder only, within limits, and kept by name and hash."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO

from margrave._io import files_of, same_file
from margrave.errors import SchemaError
from margrave.schema.toml_text import quoted

#: Bytes that all references of one schema may read together. A file named twice counts twice.
MAX_REFERENCED_BYTES = 64 << 20

GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class ReferencedFile:
    """A file that values of a schema were read from: its name relative to the schema, its SHA-256 and its bytes.

    ``path`` is where it was found; None for a schema that was written back to TOML or into a release.
    """

    name: str
    sha256: str
    size: int
    path: Path | None = field(default=None, compare=False, repr=False)

    def holds(self, table: Path) -> bool:
        """Return True if the file is the table, by any link, or has the same bytes (unpacked, if by gzip)."""
        if self.path is not None and same_file(self.path, table):
            return True
        try:
            return self._same_bytes(table)
        except (
            OSError,
            EOFError,
            ValueError,
        ):  # whoever reads the table reports what is wrong with it
            return False

    def _same_bytes(self, table: Path) -> bool:
        if not stat.S_ISREG(table.stat().st_mode):
            return False
        with table.open("rb") as file:
            packed = file.read(2) == GZIP
            file.seek(0)
            if not packed:
                return table.stat().st_size == self.size and self._is(file)
            with gzip.open(file) as unpacked:
                return self._is(unpacked)

    def _is(self, file: BinaryIO | gzip.GzipFile) -> bool:
        content = file.read(self.size + 1)
        return len(content) == self.size and hashlib.sha256(content).hexdigest() == self.sha256


class References:
    """The files beside one schema, read while it is loaded. ``folder`` is None for a schema that is not from a file.

    ``table`` is the private table: a file that is the same is refused before any of its values is looked at, since an
    error about them would be a fact about the rows.
    """

    def __init__(self, folder: Path | None = None, table: Any = None) -> None:
        self._folder, self._table = folder, table
        self._left = MAX_REFERENCED_BYTES
        self.files: tuple[ReferencedFile, ...] = ()

    def read(self, name: str, whose: str) -> bytes:
        """Return the content of a file; ``whose`` says what names it. Raise ``SchemaError`` for any but a plain file.

        The file lies in the schema's folder or below it, also after all links are followed.
        """
        if self._folder is None:
            raise SchemaError(
                f"{whose} names the file {quoted(name)}, but this schema is not read from a folder.",
                remedy="Load the schema from its file, which stands beside it.",
            )
        named = f"The file {quoted(name)} of {whose[0].lower()}{whose[1:]}"
        if not _is_inside(name):
            raise _outside(named)
        try:
            path = (self._folder / name).resolve(strict=True)
            if not path.is_relative_to(self._folder.resolve(strict=True)):
                raise _outside(named)
            content = self._content(path, named)
        except SchemaError:
            raise
        except (OSError, RuntimeError, ValueError):  # a loop of links is a RuntimeError
            raise SchemaError(
                f"{named} cannot be read.",
                remedy="Put it into the schema's folder, as a file that you may read.",
            ) from None
        found = ReferencedFile(name, hashlib.sha256(content).hexdigest(), len(content), path)
        check_apart((found,), self._table)
        self.files = tuple(dict.fromkeys((*self.files, found)))
        return content

    def _content(self, path: Path, named: str) -> bytes:
        flags = (
            os.O_RDONLY
            | getattr(os, "O_NONBLOCK", 0)
            | getattr(os, "O_NOFOLLOW", 0)
            | getattr(os, "O_BINARY", 0)
        )
        with os.fdopen(
            os.open(path, flags), "rb"
        ) as file:  # a pipe without a writer must not stop it
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SchemaError(f"{named} is not a regular file.", remedy="Name a CSV file.")
            content = file.read(self._left + 1)
        self._left -= len(content)
        if self._left < 0:
            raise SchemaError(
                f"{named} is too large: the files that a schema names have at most"
                f" {MAX_REFERENCED_BYTES >> 20} MiB together.",
                remedy="Keep only the columns that the schema needs.",
            )
        return content


def _is_inside(name: str) -> bool:
    """Return True if a path is relative and names no parent, on this system and on any other."""
    max_name_characters = 300
    if not name.strip() or len(name) > max_name_characters or not name.isprintable():
        return False
    windows = PureWindowsPath(name)
    parts = (*windows.parts, *PurePosixPath(name).parts)
    return not (windows.drive or windows.root or name.startswith("/") or ".." in parts)


def _outside(named: str) -> SchemaError:
    return SchemaError(
        f"{named} is not in the schema's folder.",
        remedy="Copy it there, and give its path from the schema, without '..' and without a leading '/'.",
    )


def check_apart(files: Sequence[ReferencedFile], table: Any) -> None:
    """Raise ``SchemaError`` if one of the files is the table, which all who see the schema would see.

    ``table`` is a path, a folder, a pattern or an address; a data frame has no file to compare.
    """
    tables = files_of(table)
    for file in files:
        if any(map(file.holds, tables)):
            raise SchemaError(
                f"The schema was read from {quoted(file.name)}, which is the private table: its values would be"
                " published as they are.",
                remedy="Name a file of values that are public, such as a code book.",
            )


def write_files(files: Sequence[ReferencedFile]) -> list[dict[str, Any]]:
    """Return the files as the ``files`` of a schema's head."""
    return [{"name": f.name, "sha256": f.sha256, "bytes": f.size} for f in files]


def read_files(plain: Any) -> tuple[ReferencedFile, ...]:
    """Return the files that the head of a schema lists; ``SchemaError`` for any other form than margrave writes."""
    if not isinstance(plain, list) or not all(map(_is_file, plain)):
        raise SchemaError(
            "files in [schema] is not a list of files with their hashes.",
            remedy="Take it out: margrave writes it for the files that a schema was read from.",
        )
    return tuple(ReferencedFile(f["name"], f["sha256"], f["bytes"]) for f in plain)


def _is_file(plain: Any) -> bool:
    if not isinstance(plain, dict) or set(plain) != {"name", "sha256", "bytes"}:
        return False
    name, sha256, size = plain["name"], plain["sha256"], plain["bytes"]
    texts = isinstance(name, str) and isinstance(sha256, str) and type(size) is int
    return (
        texts
        and _is_inside(name)
        and re.fullmatch("[0-9a-f]{64}", sha256) is not None
        and size >= 0
    )
