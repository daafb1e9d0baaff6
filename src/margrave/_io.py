"""Files written whole or not at all."""

from __future__ import annotations

import errno
import glob
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from margrave.errors import InputError

#: Bytes of a schema, policy or workload.
MAX_INPUT_BYTES = 64 << 20

#: SQLite's application ID of the files that no output may replace.
APPLICATION_ID = {"ledger": 0x6D674C67, "journal": 0x6D674A6E}


def read_input(path: str | Path) -> bytes:
    """Return the content of a small file that a person wrote, such as a schema. Raise ``OSError`` beyond a limit.

    A device such as /dev/zero has no end.
    """
    with open(path, "rb") as file:
        content = file.read(MAX_INPUT_BYTES + 1)
    if len(content) > MAX_INPUT_BYTES:
        raise OSError(errno.EFBIG, f"larger than {MAX_INPUT_BYTES >> 20} MiB")
    return content


def given_path(path: Any, what: str, example: str) -> Path:
    """Return a path that a caller gives. Raise ``InputError`` for an object of another kind."""
    if not isinstance(path, str | PathLike):
        raise InputError(
            f"The path of the {what} is of type {type(path).__name__}, which is not a path.",
            remedy=f'Give such as "{example}".',
        )
    return Path(path)


def check_no_folder(path: str | Path) -> None:
    """Raise ``InputError`` if an output is a folder."""
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder.", remedy="Name a file.")


def check_output(path: str | Path, *, overwrite: bool) -> Path:
    """Return the path after checking that it can be written. Called before anything is spent.

    The folder must exist and be writable, and no file may exist there unless ``overwrite``. A
    ledger or journal is never replaced.
    """
    # The longest file name: file systems take 255 bytes, and the temporary file beside it has a
    # longer name.
    max_name_bytes = 200
    target = Path(path)
    if len(os.fsencode(target.name)) > max_name_bytes or "\0" in str(target):
        raise InputError(
            f"The file name {target.name[:40]!r}... is not usable.",
            remedy=f"Name a file in at most {max_name_bytes} bytes, without the character NUL.",
        )
    check_no_folder(target)
    if file := next(
        (p for p in target.parents if os.path.exists(p) and not os.path.isdir(p)), None
    ):
        raise InputError(f"{file} is a file, not a folder.", remedy="Name another output.")
    if not os.path.isdir(target.parent):
        raise InputError(f"The folder {target.parent} does not exist.", remedy="Make it first.")
    if not os.access(target.parent, os.W_OK):
        raise InputError(
            f"The folder {target.parent} cannot be written to.", remedy="Name another."
        )
    if target.exists() and not overwrite:
        raise InputError(
            f"{target} exists already.",
            remedy="Name another file, or ask to overwrite it: --overwrite, in Python overwrite=True.",
        )
    if target.exists():
        _check_replaceable(target)
    return target


def check_ending(path: str | Path, ending: str, option: str | None = None) -> None:
    """Raise ``InputError`` unless a file name has the ending of its kind."""
    if Path(path).suffix.lower() != ending:
        said = path if option is None else f"{option} {path}"
        raise InputError(
            f"{said} does not end in {ending}.", remedy=f"Name it so: {Path(path).stem}{ending}."
        )


def same_file(one: str | PathLike[str], other: str | PathLike[str]) -> bool:
    """Return True if two names lead to one file, also by links and if it does not exist yet."""
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):  # one of the two is not there
        return os.path.realpath(one) == os.path.realpath(other)


def path_of(table: Any) -> Path | None:
    """Return the path that a table is read from; None for a frame."""
    return Path(table) if isinstance(table, str | PathLike) else None


def files_of(table: Any) -> tuple[Path, ...]:
    """Return the files that a table is read from: one, those of a folder or a pattern, a database or a workbook.

    A frame has none, nor has a pattern that no file matches.

    >>> files_of("duckdb:visits.db?table=visits")
    (PosixPath('visits.db'),)
    """
    path = path_of(table)
    if path is None:
        return ()
    if (address := part_of(table)) is not None:
        return (Path(address[0]),)
    if os.path.isdir(path):
        return tuple(sorted(p for p in path.iterdir() if not p.name.startswith((".", "_"))))
    if not os.path.lexists(path) and glob.has_magic(str(path)):
        return tuple(map(Path, sorted(glob.glob(str(path)))))
    return (path,)


def database_of(table: Any) -> tuple[str, str] | None:
    """Return the file and the table of an address of DuckDB; None for anything else.

    >>> database_of("duckdb:visits.db?table=all%20visits"), database_of("visits.db")
    (('visits.db', 'all visits'), None)
    """
    found = re.fullmatch(r"duckdb:(.+)\?table=([^&]+)", table) if isinstance(table, str) else None
    return None if found is None else (found[1], unquote(found[2]))


def sheet_of(table: Any) -> tuple[str, str] | None:
    """Return the file and the sheet of an address in a workbook; None for anything else.

    >>> sheet_of("visits.xlsx?sheet=May%202020"), sheet_of("visits.xlsx")
    (('visits.xlsx', 'May 2020'), None)
    """
    pattern = r"(?i)(.+\.(?:xls[xmb]?|ods))\?sheet=([^&]+)"
    found = re.fullmatch(pattern, table) if isinstance(table, str) else None
    return None if found is None else (found[1], unquote(found[2]))


def spark_name_of(table: Any) -> str | None:
    """Return the name of a table of Spark in its address; None for anything else.

    >>> spark_name_of("spark:main.health.visits"), spark_name_of("visits.csv")
    ('main.health.visits', None)
    """
    scheme = "spark:"
    spark = isinstance(table, str) and table.startswith(scheme)
    return table.removeprefix(scheme) if spark else None


def part_of(table: Any) -> tuple[str, str] | None:
    """Return the file and the table or sheet of an address; None for anything else."""
    return database_of(table) or sheet_of(table)


def name_of(table: str) -> str:
    """Return the name of a file or folder without its endings, or of a table; "" if it is not one line.

    >>> name_of("data/visits.csv.gz"), name_of("duckdb:all.db?table=visits"), name_of("spark:main.visits")
    ('visits', 'visits', 'visits')
    """
    database, sheet = database_of(table), sheet_of(table)
    path = Path(sheet[0] if sheet else os.path.abspath(table))
    if not path.exists() and glob.has_magic(path.name):
        path = path.parent
    name = database[1] if database else Path(path.name.removesuffix(".gz")).stem
    if (address := spark_name_of(table)) is not None:
        name = address.rpartition(".")[2].strip("`")
    return name if name.isprintable() and len(name) <= 200 else ""


def is_part_of(path: str | PathLike[str], table: Any) -> bool:
    """Return True if a file is one that a table is read from, or would be once it exists.

    >>> is_part_of("visits/3.csv", "visits/*.csv"), is_part_of("rows.csv", "visits/*.csv")
    (True, False)
    """
    source = path_of(table)
    if source is None:
        return False
    if any(same_file(path, file) for file in files_of(table)):
        return True
    if os.path.isdir(source):
        return same_file(Path(path).parent, source)
    pattern = not os.path.lexists(source) and glob.has_magic(str(source))
    return pattern and fnmatch(os.path.abspath(path), os.path.abspath(source))


def _check_replaceable(target: Path) -> None:
    if not target.is_file():  # a pipe would not let go of its reader
        raise InputError(f"{target} is not a regular file.", remedy="Name a file.")
    try:
        with target.open("rb") as handle:
            start = handle.read(72)
    except OSError:
        raise InputError(
            f"{target} cannot be looked into, so it is not replaced.", remedy="Name another."
        ) from None
    for what in APPLICATION_ID:
        if _is_own(start, what):
            raise InputError(
                f"{target} is a {what} of margrave's, which no output replaces: what it says was spent would be"
                " forgotten.",
                remedy="Name another file.",
            )


def is_own(path: str | PathLike[str], what: str) -> bool:
    """Return True if a file is a "ledger" or a "journal" by its first bytes."""
    with open(path, "rb") as handle:
        return _is_own(handle.read(72), what)


def _is_own(start: bytes, what: str) -> bool:
    number = APPLICATION_ID[what].to_bytes(4, "big")
    return start.startswith(b"SQLite format 3\0") and start[68:72] == number


@contextmanager
def written_whole(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; move it onto ``path`` on success, and remove it on
    failure.

    A reader sees the old file or the whole new one, also after a power cut: the content reaches the
    disk before the name does.
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
            f"{target} could not be written ({why}).",
            remedy="Nothing of it was kept. Name a file elsewhere.",
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
