"""An append-only file of JSON lines, each bound to all lines before it: what ledger files and journals are written in.

The file begins with a line that names its format, version and a random identity. Every line ends with
``"chain"``: the SHA-256, in hexadecimal, of the chain of the line before and of the line itself without it. A line that
was changed, taken out, put in, doubled or moved breaks the chain and the file is refused.

A line counts once it is whole, with its line feed, and synced. What a kill, a full disk or a power cut left of a last
line is a *torn* line: it never returned from ``append``, so nothing was done on its account.
Readers leave it out and the next writer takes it away.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from margrave.errors import LedgerError
from margrave.files import sync_folder

try:
    import fcntl
except ImportError:  # not a system of the Unix family
    fcntl = None  # type: ignore[assignment]

HAS_LOCKS = fcntl is not None
"""True if this system has file locks, which a ledger and a journal need."""

VERSION = 1
OWNER_ONLY = 0o600
"""The permissions of a new file: a ledger holds names and days, a journal what is not published yet."""

PATIENCE = 60.0
"""Seconds to wait for another process that holds the file; it does for a few milliseconds at a time."""

Event = dict[str, Any]

_OPENS = b',"chain":"'
_ENDS = b'"}'
_CHAIN = len(_OPENS) + 64 + len(_ENDS)
_CHUNK = 1 << 20


class ChainedFile:
    """One open file. ``locked()`` keeps other processes out; inside it, ``news()`` reads on and ``append()`` writes.

    ``head`` is the first line once there is one. A file that is created is its owner's alone. Raises ``LedgerError``,
    which names the file and the line, for whatever is wrong with it.
    """

    def __init__(self, path: str | Path, form: str, *, write: bool, create: bool = False) -> None:
        self.path, self.form = Path(path), form
        self.head: Event | None = None
        self._chain, self._end, self._lines, self._torn = "", 0, 0, False
        self._unended = False  # whether the last line lacks its end
        self._broken = False
        self._owner, self._file = os.getpid(), -1
        flags = (os.O_RDWR | os.O_APPEND) if write else os.O_RDONLY
        self._file = self._open(flags | getattr(os, "O_CLOEXEC", 0), create=create)

    def _open(self, flags: int, *, create: bool) -> int:
        if fcntl is None:
            raise LedgerError(
                f"This system has no file locks, without which {self.path} could be written by two processes at once.",
                remedy="Run where there are: Linux, macOS, or another system of the Unix family.",
            )
        try:
            file = self._created(flags) if create else os.open(self.path, flags)
        except FileNotFoundError:
            if self.path.is_symlink():
                raise LedgerError(
                    f"{self.path} is a link to a file that is not there.", remedy="Name the file, or remove the link."
                ) from None
            raise LedgerError(f"There is no file {self.path}.") from None
        except (OSError, ValueError) as error:
            raise LedgerError(f"{self.path} cannot be opened ({_why(error)}).") from None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise LedgerError(f"{self.path} is not a plain file.", remedy="Name a file.")
        return file

    def _created(self, flags: int) -> int:
        """Open the file, or make a new one; a link that leads nowhere is not followed."""
        try:
            return os.open(self.path, flags)
        except FileNotFoundError:
            with suppress(FileExistsError):  # another process has just made it
                return os.open(self.path, flags | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        return os.open(self.path, flags)

    def close(self) -> None:
        """Let go of the file and of its lock."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        self.close()

    # One process at a time.

    @contextmanager
    def locked(self, *, shared: bool = False) -> Iterator[None]:
        """Hold the file for a moment; other processes wait, up to a minute."""
        self.lock(patience=PATIENCE, shared=shared)
        try:
            yield
        finally:
            if self._file >= 0:  # an interrupt may have closed it, and so let go, before this is come to
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def lock(self, *, patience: float = 0.0, shared: bool = False) -> None:
        """Hold the file until ``close``; ``LedgerError`` if another process does so for longer than ``patience``."""
        self._check_owner()
        until, pause = time.monotonic() + patience, 0.001
        while not self._try_lock(shared):
            if time.monotonic() >= until:
                raise LedgerError(
                    f"{self.path} is in use, by another process or by a gate that is still open.",
                    remedy="Wait until that has ended.",
                )
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
        self._check_place()

    def _try_lock(self, shared: bool) -> bool:
        try:
            fcntl.flock(self._file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise LedgerError(
                f"{self.path} cannot be locked ({_why(error)}).", remedy="Keep it on a disk that has file locks."
            ) from None
        return True

    def _check_owner(self) -> None:
        if self._owner != os.getpid():  # a lock is shared with a forked child, and keeps neither of the two out
            raise LedgerError(f"{self.path} was opened by another process.", remedy="Open it in this one.")

    def _check_place(self) -> None:
        """The name must still lead to this file: whoever writes to one that was moved away tells nobody."""
        mine = os.fstat(self._file)
        with suppress(OSError):
            there = os.stat(self.path)
            if (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino):
                return
        raise LedgerError(f"{self.path} was moved or replaced while it was in use.", remedy="Put it back.")

    # Reading.

    def news(self) -> Iterator[tuple[int, Event]]:
        """The lines after those read before, checked, with their numbers; ``head`` is set from the first.

        Call it with the lock held.
        """
        size = os.fstat(self._file).st_size
        if size < self._end:
            raise LedgerError(f"{self.path} was cut short while it was in use.", remedy="Restore it.")
        data = self._read(size)
        if self._unended and data.startswith(b"\n"):
            data, self._end, self._unended = data[1:], self._end + 1, False
        *whole, rest = data.split(b"\n")
        if rest == b"" and whole and b"\0" in whole[-1]:  # a block that a power cut left unwritten
            rest = whole.pop()
        self._torn = rest != b""
        if self.head is None and not whole:
            self._check_beginning(rest)
        for line in whole:
            yield from self._counted(line, len(line) + 1)
        if rest and rest.endswith(self._chained(rest)):  # whole but for its end: an editor takes that away
            self._unended, self._torn = True, False
            yield from self._counted(rest, len(rest))

    def _counted(self, line: bytes, length: int) -> Iterator[tuple[int, Event]]:
        """A line that takes so many bytes: the head, or an event with its number."""
        event = self._parse(line)
        self._end += length
        self._lines += 1
        if self._lines == 1:
            self._check_head(event)
            self.head = event
        else:
            yield self._lines, event

    def _chained(self, line: bytes) -> bytes:
        """How a line ends that follows on those before."""
        return _OPENS + _link(self._chain, line[:-_CHAIN] + b"}").encode() + _ENDS

    def _read(self, size: int) -> bytes:
        pieces, at = [], self._end
        while at < size and (piece := os.pread(self._file, min(_CHUNK, size - at), at)):
            pieces.append(piece)
            at += len(piece)
        return b"".join(pieces)

    def _parse(self, line: bytes) -> Event:
        number = self._lines + 1
        body = line[:-_CHAIN] + b"}"
        chain = _link(self._chain, body)
        if line[-_CHAIN:] != _OPENS + chain.encode() + _ENDS:
            if number == 1 and not line.startswith(self._beginning()):
                self._check_beginning(line)
            raise LedgerError(
                f"{self.path}, line {number}: it was changed, or lines before it were taken out, put in or moved.",
                remedy="Nothing is answered on its account. Restore the last sound copy of the file.",
            )
        try:
            event = json.loads(body, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            raise LedgerError(f"{self.path}, line {number} is not JSON.") from None
        if not isinstance(event, dict):
            raise LedgerError(f"{self.path}, line {number} is not a table of names.")
        self._chain = chain
        return event

    def _beginning(self) -> bytes:
        return f'{{"format":"{self.form}"'.encode()

    def _check_beginning(self, start: bytes) -> None:
        """A file without one whole line is ours only if it is empty, or the torn beginning of one of ours."""
        wanted = self._beginning()
        if start.strip(b"\0") and start[: len(wanted)] != wanted[: len(start)]:
            raise LedgerError(f"{self.path} is no {self.form}.", remedy="Name another file.")

    def _check_head(self, head: Event) -> None:
        if head.get("format") != self.form:
            raise LedgerError(f"{self.path} is no {self.form}.", remedy="Name another file.")
        if head.get("version") != VERSION or not isinstance(head.get("id"), str):
            raise LedgerError(
                f"{self.path} is of a version that this margrave does not know.",
                remedy="Use the margrave that wrote it, or a newer one.",
            )

    # Writing.

    def begin(self, facts: Mapping[str, Any] | None = None) -> None:
        """Write the first line of a new file, and have the file's name reach the disk. Call it with the lock held."""
        head = {"format": self.form, "version": VERSION, "id": secrets.token_hex(8), **(facts or {})}
        self.append(head)
        try:
            sync_folder(self.path.absolute().parent)
        except OSError as error:
            raise self._unwritten(error) from None
        self.head = head

    def append(self, event: Mapping[str, Any]) -> None:
        """Add a line; it is on the disk when this returns. Call it with the lock held, after ``news()``.

        If it fails, by a full disk or an interrupt, the line is taken back and this object writes no more.
        """
        self._check_owner()
        if self._broken:
            raise LedgerError(f"{self.path} could not be written a moment ago.", remedy="Open it anew.")
        try:
            body = json.dumps(event, separators=(",", ":"), allow_nan=False).encode()
        except (ValueError, TypeError):
            raise LedgerError(f"{self.path} is written in JSON, which cannot hold this question.") from None
        chain = _link(self._chain, body)
        line = (b"\n" if self._unended else b"") + body[:-1] + _OPENS + chain.encode() + _ENDS + b"\n"
        self._broken = True
        try:
            if self._torn:
                os.ftruncate(self._file, self._end)
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
        except BaseException as error:
            with suppress(OSError):
                os.ftruncate(self._file, self._end)
            if isinstance(error, OSError):
                raise self._unwritten(error) from None
            raise
        self._broken = self._torn = self._unended = False
        self._chain, self._end, self._lines = chain, self._end + len(line), self._lines + 1

    def _unwritten(self, error: OSError) -> LedgerError:
        return LedgerError(
            f"{self.path} could not be written ({_why(error)}).",
            remedy="Make room on the disk, or mend what is wrong with it.",
        )


def _link(before: str, body: bytes) -> str:
    return hashlib.sha256(before.encode() + body).hexdigest()


def _why(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or type(error).__name__


def _refuse_constant(text: str) -> float:
    raise ValueError(text)
