"""Files written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any

from margrave.errors import InputError

#: The longest file name: file systems take 255 bytes, and the temporary file beside it has a longer name.
MAX_NAME_BYTES = 200
#: Bytes of a schema, policy or workload.
MAX_INPUT_BYTES = 64 << 20

BOOKS = {b'{"format":"margrave-ledger"': "ledger", b'{"format":"margrave-journal"': "journal"}
"""How files begin that no output may replace: what was spent, and what was answered, would be forgotten."""


def read_input(path: str | Path) -> bytes:
    """Return the content of a small file that a person wrote, such as a schema. Raise ``OSError`` beyond a limit.

    A device such as /dev/zero has no end.
    """
    with open(path, "rb") as file:
        content = file.read(MAX_INPUT_BYTES + 1)
    if len(content) > MAX_INPUT_BYTES:
        raise OSError(errno.EFBIG, f"larger than {MAX_INPUT_BYTES >> 20} MiB")
    return content


def check_output(path: str | Path, *, overwrite: bool) -> Path:
    """The path, if it can be written: its folder exists and is writable, and no file stands there unless ``overwrite``.

    A ledger or journal is never replaced. Called before anything is spent, so that a long run does not end at a door
    that was shut all along.
    """
    target = Path(path)
    if len(os.fsencode(target.name)) > MAX_NAME_BYTES or "\0" in str(target):
        raise InputError(
            f"The file name {target.name[:40]!r}... is not usable.",
            remedy=f"Name a file in at most {MAX_NAME_BYTES} bytes, without the character NUL.",
        )
    if os.path.isdir(target):
        raise InputError(f"{target} is a folder.", remedy="Name a file.")
    if not os.path.isdir(target.parent):
        raise InputError(f"The folder {target.parent} does not exist.", remedy="Make it first.")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"The folder {target.parent} cannot be written to.", remedy="Name another.")
    if target.exists() and not overwrite:
        raise InputError(
            f"{target} exists already.",
            remedy="Name another file, or ask to overwrite it: --overwrite, in Python overwrite=True.",
        )
    if target.exists():
        _check_replaceable(target)
    return target


def check_ending(path: str | Path, ending: str, option: str | None = None) -> None:
    """A file's ending is what tells people, and other commands, what it is."""
    if Path(path).suffix.lower() != ending:
        said = path if option is None else f"{option} {path}"
        raise InputError(f"{said} does not end in {ending}.", remedy=f"Name it so: {Path(path).stem}{ending}.")


def same_file(one: str | PathLike[str], other: str | PathLike[str]) -> bool:
    """Whether two names lead to one file, by whatever links, or would if it were there."""
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):  # one of the two is not there
        return os.path.realpath(one) == os.path.realpath(other)


def path_of(table: Any) -> Path | None:
    """Where a table is read from; None for a frame."""
    return Path(table) if isinstance(table, str | PathLike) else None


def _check_replaceable(target: Path) -> None:
    """Refuse to replace what is no plain file, and a ledger or journal."""
    if not target.is_file():  # a pipe would not let go of its reader
        raise InputError(f"{target} is no plain file.", remedy="Name a file.")
    try:
        with target.open("rb") as handle:
            start = handle.read(max(map(len, BOOKS)))
    except OSError:
        raise InputError(f"{target} cannot be looked into, so it is not replaced.", remedy="Name another.") from None
    for beginning, what in BOOKS.items():
        if start.startswith(beginning):
            raise InputError(
                f"{target} is a {what} of margrave's, which no output replaces: what it says was spent would be"
                " forgotten.",
                remedy="Name another file.",
            )


@contextmanager
def written_whole(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary path beside ``path``, moved onto it when the block ends well and removed when it does not.

    A reader sees the old file or the whole new one, also after a power cut: bytes reach the disk before the name does.
    """
    target = check_output(path, overwrite=overwrite)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        yield temporary
        _sync(temporary, os.O_RDWR)
        os.replace(temporary, target)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise InputError(
            f"{target} could not be written ({why}).", remedy="Nothing of it was kept."
        ) from None
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder reach the disk, so that a file made in it is there after a power cut."""
    _sync(folder, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    try:
        handle = os.open(path, flags)
    except PermissionError:  # some systems do not open folders
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
