"""A SQLite VFS that reports what is about to reach the disk, so that tests can crash or deny it there.

It stands between SQLite and the system's own VFS, by ctypes. ``available()`` is False where SQLite's symbols cannot be
reached.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import subprocess
import sys
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any

FULL, IOERR_WRITE, IOERR_FSYNC, IOERR_DELETE = 13, 778, 1034, 2570

OPEN = CFUNCTYPE(
    c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p
)  # SQLite keeps the name's address
DELETE = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
WRITE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
TRUNCATE = CFUNCTYPE(c_int, c_void_p, c_int64)
SYNC = CFUNCTYPE(c_int, c_void_p, c_int)
FOLDER = CFUNCTYPE(c_int, c_char_p, POINTER(c_int))
SET_CALL = CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p)
GET_CALL = CFUNCTYPE(c_void_p, c_void_p, c_char_p)

#: Connections may outlive their test, and call into these.
ALIVE: list[object] = []


class Vfs(ctypes.Structure):
    _fields_ = [
        ("iVersion", c_int), ("szOsFile", c_int), ("mxPathname", c_int), ("pNext", c_void_p),
        ("zName", c_char_p), ("pAppData", c_void_p), ("xOpen", c_void_p), ("xDelete", c_void_p),
        ("others", c_void_p * 11), ("xSetSystemCall", c_void_p), ("xGetSystemCall", c_void_p),
        ("xNextSystemCall", c_void_p),
    ]  # fmt: skip


class Methods(ctypes.Structure):
    _fields_ = [
        ("iVersion", c_int), ("xClose", c_void_p), ("xRead", c_void_p), ("xWrite", c_void_p),
        ("xTruncate", c_void_p), ("xSync", c_void_p), ("others", c_void_p * 13),
    ]  # fmt: skip


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(_sqlite3.__file__)


def available() -> bool:
    """True if this SQLite's VFS can be wrapped."""
    try:
        return sys.platform == "linux" and hasattr(_library(), "sqlite3_vfs_register")
    except (AttributeError, OSError):
        return False


class Watched:
    """The default VFS from now on, until ``remove``.

    ``see(call, path, offset, data)`` is called before each ``write``, ``truncate``, ``sync``, ``delete`` and
    ``folder`` (a folder is synced). It returns 0 to go on, or the error code to fail with; ``wrote`` is called after.
    """

    def __init__(
        self,
        see: Callable[[str, str, int, bytes], int],
        wrote: Callable[[str, str, int, bytes], None] = lambda *_: None,
    ) -> None:
        self.see, self.wrote, self.names = see, wrote, {}  # type: ignore[var-annotated]
        ALIVE.append(self)
        self._sqlite = _library()
        self._sqlite.sqlite3_vfs_find.restype = POINTER(Vfs)
        self._below = self._sqlite.sqlite3_vfs_find(None)
        self._kept: list[Any] = []
        self._patched: dict[int, Methods] = {}
        self.vfs = Vfs.from_buffer_copy(self._below.contents)
        self.vfs.zName = b"watched"
        self.vfs.xOpen = self._pointer(OPEN(self._open))
        self.vfs.xDelete = self._pointer(DELETE(self._delete))
        get = ctypes.cast(self._below.contents.xGetSystemCall, GET_CALL)
        self._open_folder = FOLDER(get(ctypes.addressof(self._below.contents), b"openDirectory"))
        self._set_folder(self._pointer(FOLDER(self._folder)))
        self._sqlite.sqlite3_vfs_register(ctypes.byref(self.vfs), 1)

    def remove(self) -> None:
        """Give the system's VFS its place back."""
        self._sqlite.sqlite3_vfs_unregister(ctypes.byref(self.vfs))
        self._sqlite.sqlite3_vfs_register(self._below, 1)
        self._set_folder(None)

    def _set_folder(self, function: int | None) -> None:
        put = ctypes.cast(self._below.contents.xSetSystemCall, SET_CALL)
        put(ctypes.addressof(self._below.contents), b"openDirectory", function)

    def _pointer(self, function: Any) -> Any:
        self._kept.append(function)
        return ctypes.cast(function, c_void_p).value

    def _around(self, call: str, path: str, offset: int, data: bytes, go: Callable[[], int]) -> int:
        if code := self.see(call, path, offset, data):
            return code
        code = go()
        if code == 0:
            self.wrote(call, path, offset, data)
        return code

    def _open(self, _: int, name: int | None, file: int, flags: int, out: int) -> int:
        below = ctypes.cast(self._below.contents.xOpen, OPEN)
        code = below(ctypes.addressof(self._below.contents), name, file, flags, out)
        place = c_void_p.from_address(file)
        if place.value and name:
            self.names[file] = ctypes.string_at(name).decode()
            place.value = ctypes.addressof(self._methods(place.value))
        return code

    def _methods(self, address: int) -> Methods:
        if address not in self._patched:
            methods = Methods.from_buffer_copy(Methods.from_address(address))
            write, cut, sync = (
                ctypes.cast(getattr(methods, name), kind)
                for name, kind in (("xWrite", WRITE), ("xTruncate", TRUNCATE), ("xSync", SYNC))
            )

            def on_write(file: int, data: int, size: int, offset: int) -> int:
                content = ctypes.string_at(data, size)
                go = lambda: write(file, data, size, offset)  # noqa: E731
                return self._around("write", self.names[file], offset, content, go)

            def on_truncate(file: int, size: int) -> int:
                go = lambda: cut(file, size)  # noqa: E731
                return self._around("truncate", self.names[file], size, b"", go)

            def on_sync(file: int, flags: int) -> int:
                go = lambda: sync(file, flags)  # noqa: E731
                return self._around("sync", self.names[file], 0, b"", go)

            methods.xWrite = self._pointer(WRITE(on_write))
            methods.xTruncate = self._pointer(TRUNCATE(on_truncate))
            methods.xSync = self._pointer(SYNC(on_sync))
            self._patched[address] = methods
        return self._patched[address]

    def _delete(self, _: int, name: bytes, sync_folder: int) -> int:
        below = ctypes.cast(self._below.contents.xDelete, DELETE)
        address = ctypes.addressof(self._below.contents)
        go = lambda: below(address, name, sync_folder)  # noqa: E731
        return self._around("delete", name.decode(), 0, b"", go)

    def _folder(self, name: bytes, out: Any) -> int:
        go = lambda: 0 if self._open_folder(name, out) == 0 else 1  # noqa: E731
        return self._around("folder", name.decode(), 0, b"", go)


_INTERRUPTED = """
import os, signal, sys
from pathlib import Path
from margrave.accounting import Ledger
from tests.support.vfs import Watched

def die(call, path, offset, data):
    if call == "sync" and not path.endswith("-journal"):
        os.kill(os.getpid(), signal.SIGKILL)
    return 0

Watched(die)
Ledger(sys.argv[1]).record_attempt(sys.argv[2], "refused")
"""


def interrupt(ledger: Path, dataset: str) -> None:
    """Leave a ledger as a process does that is killed while it writes a line."""
    command = [sys.executable, "-c", _INTERRUPTED, str(ledger), dataset]
    assert subprocess.run(command, cwd=Path(__file__).parents[2], check=False).returncode == -9
    assert ledger.with_name(f"{ledger.name}-journal").exists()
