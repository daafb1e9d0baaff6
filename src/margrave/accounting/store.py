"""Append-only SQLite files of chained lines, in which ledgers and journals are kept.

A line is an event in JSON. Its *head* is the SHA-256 of the previous head and of the event, so that a line that was
changed, removed, inserted or moved breaks the chain and the file is refused. The one row of ``meta`` holds the random
identity of the file, its number of lines and its last head. A file without that row is never taken for a new one.

A line counts once its transaction is committed. The rollback journal (``journal_mode=DELETE``) keeps all data in one
file at rest, and ``synchronous=EXTRA`` syncs its removal, so that a power cut cannot undo a commit.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from margrave._io import APPLICATION_ID, sync_folder
from margrave.errors import InputError, LedgerError

Event = dict[str, Any]
Line = tuple[int, Event, str]

VERSION = 1
#: Wait for another process that writes a ledger; it needs a few milliseconds.
TIMEOUT_SECONDS = 30.0

TABLES = {
    "line": "CREATE TABLE line (number INTEGER PRIMARY KEY, event TEXT NOT NULL, head TEXT NOT NULL) STRICT",
    "meta": "CREATE TABLE meta (only INTEGER PRIMARY KEY CHECK (only = 1), id TEXT NOT NULL,"
    " lines INTEGER NOT NULL, head TEXT NOT NULL) STRICT",
}
Kind = Literal["ledger", "journal"]
Mode = Literal["ro", "rw", "rwc"]


class ChainedFile:
    """An open ledger or journal. All reading and writing happens in ``with file.transaction()``.

    Args:
        path: The file.
        kind: What it must be.
        mode: SQLite's: ``ro``, ``rw``, or ``rwc`` to begin a file that is missing or empty, for its owner alone.
        hold: Keep every other process out until ``close``, instead of for a transaction.

    Raises:
        LedgerError: The file is missing, damaged, in use or of another kind.
        InputError: The folder of a file to create does not exist.
    """

    _connection: sqlite3.Connection | None = None

    def __init__(self, path: str | Path, kind: Kind, *, mode: Mode, hold: bool = False) -> None:
        pragmas = (
            "synchronous = EXTRA",
            "fullfsync = 1",  # macOS: have the disk write out its own cache too
            "cache_spill = OFF",  # nothing uncommitted reaches the file
            "trusted_schema = OFF",
        )
        self.path, self.kind, self.id = Path(path), kind, ""
        self.lines, self.head = 0, ""
        self.begun = False  # by this object
        self._mode, self._hold = mode, hold
        self._broken, self._owner = False, os.getpid()
        if sqlite3.sqlite_version_info < (3, 37):
            raise LedgerError(
                f"Ledgers and journals need SQLite 3.37, and this Python has {sqlite3.sqlite_version}.",
                remedy="Use a Python with a newer SQLite.",
            )
        self._check_file()
        uri = f"{self.path.absolute().as_uri()}?mode={mode[:2]}"
        try:
            self._connection = sqlite3.connect(
                uri, uri=True, isolation_level=None, check_same_thread=False,
                timeout=0.0 if kind == "journal" else TIMEOUT_SECONDS,
            )  # fmt: skip
            self._connection.text_factory = lambda raw: raw.decode(errors="replace")
            for pragma in (
                *pragmas,
                f"locking_mode = {'EXCLUSIVE' if hold else 'NORMAL'}",
                *(("journal_mode = DELETE",) if mode != "ro" else ()),
            ):
                self._connection.execute(f"PRAGMA {pragma}")
        except sqlite3.Error as error:
            self.close()
            raise self._explained(error) from None

    def _check_file(self) -> None:
        """Create the file if asked to, and refuse what is not a plain file."""
        try:
            if self._mode == "rwc":
                if not os.path.isdir(self.path.absolute().parent):
                    raise InputError(
                        f"The folder {self.path.parent} does not exist.", remedy="Make it first."
                    )
                self._create()
            plain = stat.S_ISREG(os.stat(self.path).st_mode)
        except InputError:
            raise
        except FileNotFoundError:
            if self.path.is_symlink():
                raise LedgerError(
                    f"{self.path} is a link to a file that is not there.",
                    remedy="Name the file, or remove the link.",
                ) from None
            raise LedgerError(
                f"There is no file {self.path}.",
                remedy="Check the path. If the file was lost, restore its last copy. For data without a cap, margrave"
                " ledger init begins a ledger.",
            ) from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            raise LedgerError(
                f"{self.path} cannot be opened ({why}).",
                remedy="Check the path. This user needs permission to read and write the file and its folder.",
            ) from None
        if not plain:
            folder = "a folder, " * self.path.is_dir()
            raise LedgerError(f"{self.path} is {folder}not a plain file.", remedy="Name a file.")

    def _create(self) -> None:
        """Make an empty file, unless there is one. A link is not followed."""
        # Permissions of a new file: a ledger holds names and days, a journal answers that are not
        # published yet.
        owner_only = 0o600
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        with suppress(FileExistsError):
            os.close(os.open(self.path, flags, owner_only))
            sync_folder(self.path.absolute().parent)

    def close(self) -> None:
        """Close the file. In a fork it stays open, because SQLite would remove the rollback journal of the parent."""
        if self._connection is not None and self._owner == os.getpid():
            self._connection.close()
        elif self._connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))  # never finalized
        self._connection = None

    def __del__(self) -> None:
        self.close()

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[list[Line]]:
        """Hold the file, and yield the lines that were added since the last transaction.

        All lines appended in the block reach the disk together when it ends. If it fails, none of them counts and
        this object does nothing more.
        """
        if self._owner != os.getpid():
            raise LedgerError(
                f"{self.path} was opened by another process.", remedy="Open it in this one."
            )
        if self._broken or self._connection is None:
            raise LedgerError(
                f"{self.path} was closed, or could not be written a moment ago.",
                remedy="Open it anew.",
            )
        self._broken = True
        try:
            self._connection.execute(
                "BEGIN" if not write else "BEGIN EXCLUSIVE" if self._hold else "BEGIN IMMEDIATE"
            )
            yield self._new_lines(write=write)
            self._connection.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                self._connection.rollback()
            if isinstance(error, sqlite3.Error):
                raise self._explained(error) from None
            raise
        self._broken = False

    def append(self, event: Mapping[str, Any]) -> Line:
        """Add a line, in a transaction, and return it."""
        try:
            text = json.dumps(event, separators=(",", ":"), allow_nan=False)
        except (ValueError, TypeError):
            raise LedgerError(f"JSON cannot hold what was to be written to {self.path}.") from None
        self.lines, self.head = self.lines + 1, _next_head(self.head, text)
        self._rows("INSERT INTO line VALUES (?, ?, ?)", self.lines, text, self.head)
        self._rows("UPDATE meta SET lines = ?, head = ?", self.lines, self.head)
        return self.lines, dict(event), self.head

    def line(self, number: int) -> tuple[Event, str]:
        """Return the event and the head of a line, in a transaction. Raise ``LedgerError`` if it does not exist."""
        for text, head in self._rows("SELECT event, head FROM line WHERE number = ?", number):
            return self._parsed(number, text), str(head)
        raise LedgerError(f"{self.path} has no line {number}.")

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        assert self._connection is not None
        return self._connection.execute(statement, values).fetchall()

    def _new_lines(self, *, write: bool) -> list[Line]:
        if not self.id and not self._opened():
            if not write:
                return []
            self._begin()
        new = []
        for number, text, head in self._rows(
            "SELECT number, event, head FROM line WHERE number > ? ORDER BY number", self.lines
        ):
            sound = type(text) is str and head == _next_head(self.head, text)
            if number != self.lines + 1 or not sound:
                raise LedgerError(
                    f"{self.path}, line {self.lines + 1}: it was changed, or lines were removed, inserted or moved.",
                    remedy=f"Nothing is answered. Restore {last_copy(self.kind)}",
                )
            self.lines, self.head = number, head
            new.append((number, self._parsed(number, text), head))
        if self._rows("SELECT id, lines, head FROM meta") != [(self.id, self.lines, self.head)]:
            raise LedgerError(
                f"{self.path} was cut short or replaced: its last line is not the one that it names.",
                remedy=f"Restore {last_copy(self.kind)}",
            )
        return new

    def _opened(self) -> bool:
        """Check that the file is of this kind, and read its identity. False for an empty file to begin."""
        tables = dict(self._rows("SELECT name, sql FROM sqlite_master"))
        if not tables and self._mode == "rwc" and self._is_empty():
            return False
        if self._rows("PRAGMA application_id") != [(APPLICATION_ID[self.kind],)]:
            raise self._not_one()
        ((version,),) = self._rows("PRAGMA user_version")
        if version != VERSION:
            raise LedgerError(
                f"{self.path} is of version {version} of the format, and this margrave reads version {VERSION}.",
                remedy="Use the margrave that wrote it.",
            )
        if self._rows("PRAGMA journal_mode") != [("delete",)]:
            raise LedgerError(
                f"{self.path} was switched to another journal mode, in which a copy of it may lack lines.",
                remedy=f"margrave ledger recover {self.path} switches it back.",
            )
        if tables != TABLES or len(rows := self._rows("SELECT id FROM meta")) != 1:
            raise self._not_one()
        self.id = str(rows[0][0])
        self.head = _next_head("", f"{self.kind} {self.id}")
        return True

    def _begin(self) -> None:
        self.begun = True
        for statement in TABLES.values():
            self._rows(statement)
        self._rows(f"PRAGMA application_id = {APPLICATION_ID[self.kind]}")
        self._rows(f"PRAGMA user_version = {VERSION}")
        self.id = secrets.token_hex(8)
        self.head = _next_head("", f"{self.kind} {self.id}")
        self._rows("INSERT INTO meta VALUES (1, ?, 0, ?)", self.id, self.head)

    def _parsed(self, number: int, text: str) -> Event:
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict):
            raise LedgerError(f"{self.path}, line {number} is not a JSON object.")
        return event

    def _is_empty(self) -> bool:
        return os.path.exists(self.path) and os.path.getsize(self.path) == 0

    def _not_one(self) -> LedgerError:
        empty = " It is empty." if self._is_empty() else ""
        return LedgerError(
            f"{self.path} is not a margrave {self.kind}.{empty}",
            remedy=f"Name another file. If it was a {self.kind}, restore {last_copy(self.kind)}",
        )

    def _explained(self, error: sqlite3.Error) -> LedgerError:
        """Say in plain words what SQLite reports. Its texts hold no value of a line."""
        name = getattr(error, "sqlite_errorname", "")
        if name == "SQLITE_NOTADB":
            return self._not_one()
        if fault := _fault(name, self.path, self.kind):
            return LedgerError(fault[0], remedy=fault[1])
        return LedgerError(
            f"{self.path} could not be {'read' if self._mode == 'ro' else 'written'} ({error}).",
            remedy="Check the disk, and that this user may write the file and its folder.",
        )


def last_copy(kind: Kind) -> str:
    """Return the end of the remedy for a damaged file."""
    if kind == "journal":
        return "the last sound copy of the file."
    return "the last sound copy of the file. Do not begin a new ledger, which would lack what was spent."


def _fault(name: str, path: Path, kind: Kind) -> tuple[str, str] | None:
    """Return the sentence and the remedy for the name of an SQLite error; the first that fits."""
    faults = {
        ("SQLITE_BUSY", "SQLITE_LOCKED"): (
            f"{path} is in use, by another process or by a gate that is still open.",
            "Wait until that has ended, or close the other program.",
        ),
        ("SQLITE_READONLY_DBMOVED",): (
            f"{path} was moved or replaced while it was in use.",
            "Put it back.",
        ),
        # A rollback journal that only a writer can apply.
        ("SQLITE_READONLY_RECOVERY", "SQLITE_READONLY_ROLLBACK"): (
            f"A run was interrupted while it wrote {path}.",
            f"margrave ledger recover {path} takes the unfinished line back, by a user who may write the file.",
        ),
        ("SQLITE_READONLY_DIRECTORY",): (
            f"{path} cannot be written, because this user may not write in its folder.",
            "Give this user write permission for the folder.",
        ),
        ("SQLITE_READONLY",): (
            f"{path} cannot be written, because this user may only read it.",
            "Give this user write permission for the file.",
        ),
        ("SQLITE_CANTOPEN", "SQLITE_PERM"): (
            f"{path} cannot be opened.",
            "Give this user permission to read and write the file and its folder.",
        ),
        ("SQLITE_CORRUPT",): (f"{path} is damaged or was cut short.", f"Restore {last_copy(kind)}"),
        ("SQLITE_FULL",): (
            f"{path} could not be written: the disk is full.",
            "Make room on the disk.",
        ),
        ("SQLITE_IOERR",): (
            f"{path} could not be read or written: the disk failed.",
            "Check the disk and its connection.",
        ),
    }
    return next((words for names, words in faults.items() if name.startswith(names)), None)


def _next_head(head: str, text: str) -> str:
    return hashlib.sha256((head + text).encode()).hexdigest()
