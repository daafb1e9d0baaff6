"""Files written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from margrave.errors import InputError


def check_output(path: str | Path, *, overwrite: bool) -> Path:
    """The path, if it can be written: its folder exists and is writable, and no file stands there unless ``overwrite``.

    Called before anything is spent, so that a long run does not end at a door that was shut all along.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{target} is a folder.", remedy="Name a file.")
    if not target.parent.is_dir():
        raise InputError(f"The folder {target.parent} does not exist.", remedy="Make it first.")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"The folder {target.parent} cannot be written to.", remedy="Name another.")
    if target.exists() and not overwrite:
        raise InputError(
            f"{target} exists already.",
            remedy="Name another file, or ask to overwrite it: --overwrite, in Python overwrite=True.",
        )
    return target


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
