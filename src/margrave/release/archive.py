"""The file under a release: one zip of a JSON manifest and NumPy arrays. No pickle, and nothing read is trusted.

The same content gives the same bytes: members are in a fixed order and carry no dates. Reading decompresses the
manifest and the arrays that it names, nothing else, and stops at limits that do not depend on the sizes that the file
declares.
"""

from __future__ import annotations

import io
import json
import math
import os
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from margrave._io import written_whole
from margrave.errors import ReleaseError
from margrave.types import AnyArray

MANIFEST = "manifest.json"
#: Megabytes of a release that are read by default, decompressed, manifest and arrays together.
MAX_MB = 1024.0
#: Bytes decompressed for each byte of the file at most.
MAX_RATIO = 200


def write_archive(
    path: str | Path,
    manifest: Mapping[str, Any],
    arrays: Mapping[str, AnyArray],
    *,
    overwrite: bool = False,
) -> None:
    """Write manifest and arrays, whole or not at all; uncompressed if ``open_archive`` would refuse the ratio."""
    text = json.dumps(manifest, indent=1, sort_keys=True, allow_nan=False).encode()
    with written_whole(path, overwrite=overwrite) as temporary:
        for compressed in (True, False):
            with zipfile.ZipFile(temporary, "w") as archive:
                archive.writestr(_entry(MANIFEST, compressed), text)
                for name in sorted(arrays):
                    archive.writestr(_entry(_member(name), compressed), _npy_bytes(arrays[name]))
                sizes = {e.filename: e.file_size for e in archive.infolist()}
            room = _Room(os.path.getsize(temporary), float("inf"))
            if room.fits(sizes[MANIFEST], manifest=True) and room.fits(sum(sizes.values())):
                break


#: Returns an array of the file by its name. Raises ReleaseError if it is missing or unreadable.
Fetch = Callable[[str], AnyArray]


@contextmanager
def open_archive(
    path: str | Path, max_mb: float = MAX_MB
) -> Iterator[tuple[dict[str, Any], Fetch]]:
    """Yield the manifest and a reader of arrays by name; each array can be read once.

    Raises:
        ReleaseError: The file is not a release, or it decompresses to more than ``max_mb`` or
            ``MAX_RATIO`` times its size.
    """
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe may have no end
        raise ReleaseError(f"{path} is not a regular file.", remedy="Name a release file.")
    try:
        with zipfile.ZipFile(path) as archive:
            names = _names(archive)
            room = _Room(os.path.getsize(path), max_mb)
            manifest = _manifest(room.read(archive, MANIFEST))

            def fetch(name: str) -> AnyArray:
                if _member(name) not in names:
                    raise ReleaseError("An array named in the manifest is missing.")
                return _array(room.read(archive, _member(name)))

            yield manifest, fetch
    except FileNotFoundError:
        raise ReleaseError(f"There is no file {path}.", remedy="Check the path.") from None
    except ReleaseError as error:
        fault = f"{error.message[:1].lower()}{error.message[1:]}"
        raise ReleaseError(
            f"{path} is not a release that can be read: {fault}",
            remedy=error.remedy or "Copy it anew from where it was made.",
        ) from None
    except Exception as error:  # a file from elsewhere may break any parser in any way; it must not break the caller
        if not _is_zip(path):
            raise ReleaseError(
                f"{path} is not a release.",
                remedy="Name a .margrave file, as synthesize writes it by --release.",
            ) from None
        what = {
            MemoryError: ("takes more memory than there is", "Give the machine more memory."),
            PermissionError: ("may not be read by you", "Ask for permission to read it."),
        }.get(type(error), ("is cut off or was altered", "Copy it anew from where it was made."))
        raise ReleaseError(f"{path} {what[0]}.", remedy=what[1]) from None


class _Room:
    """The number of bytes that may still be decompressed of a file."""

    def __init__(self, file_bytes: int, max_mb: float) -> None:
        self._max_mb, self._file_bytes = max_mb, file_bytes
        self._taken = 0

    def fits(self, size: int, *, manifest: bool = False) -> bool:
        """Return whether a member of that size may be read."""
        return self._why_not(size, manifest=manifest) is None

    def read(self, archive: zipfile.ZipFile, name: str) -> bytearray:
        """Return a member, decompressed a piece at a time."""
        # Bytes decompressed at a time: a member may hold more than it declares.
        piece_bytes = 1 << 20
        entry = archive.getinfo(name)
        if (
            entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            or entry.flag_bits & 1
        ):
            raise ReleaseError("A member is compressed in a way that releases are not.")
        data = bytearray()
        self._check(entry.file_size, name)
        with archive.open(entry) as stream:
            while piece := stream.read(piece_bytes):
                data += piece
                self._check(len(data), name)
        self._taken += len(data)
        return data

    def _check(self, size: int, name: str) -> None:
        if error := self._why_not(size, manifest=name == MANIFEST):
            raise error

    def _why_not(self, size: int, *, manifest: bool) -> ReleaseError | None:
        # Bytes that may be decompressed whatever the ratio.
        free_bytes = 1 << 20
        # The share of ``MAX_MB`` for the manifest.
        manifest_share = 1 / 16
        # ``MAX_RATIO`` of the manifest: its parsed text takes many times its length.
        max_manifest_ratio = 50
        largest = self._max_mb * 2**20 * (manifest_share if manifest else 1)
        if not self._taken + size <= largest:  # nan too
            return ReleaseError(
                f"It takes more than {self._max_mb:g} MB.",
                remedy="If it is your own, allow more: Release.load(path, max_mb=...), or --max-release-mb.",
            )
        ratio = max_manifest_ratio if manifest else MAX_RATIO
        if self._taken + size > free_bytes + ratio * self._file_bytes:
            return ReleaseError(
                f"It swells to more than {ratio} times its size, as no release does."
            )
        return None


def _is_zip(path: str | Path) -> bool:
    try:
        with open(path, "rb") as handle:
            return handle.read(2) == b"PK"
    except (OSError, ValueError, TypeError):
        return True


def _entry(name: str, compressed: bool) -> zipfile.ZipInfo:
    epoch = (1980, 1, 1, 0, 0, 0)  # the first date a zip can hold
    info = zipfile.ZipInfo(name, date_time=epoch)
    info.compress_type = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    info.create_system = 3
    info.external_attr = 0o644 << 16
    return info


def _member(name: str) -> str:
    return f"arrays/{name}.npy"


def _npy_bytes(array: AnyArray) -> bytes:
    buffer = io.BytesIO()
    plain = np.ascontiguousarray(array).reshape(array.shape)
    npy.write_array(
        buffer, plain.astype(plain.dtype.newbyteorder("<"), copy=False), (1, 0), allow_pickle=False
    )
    return buffer.getvalue()


def _names(archive: zipfile.ZipFile) -> frozenset[str]:
    max_members = 100_000
    entries = archive.infolist()
    names = frozenset(e.filename for e in entries)
    if len(entries) > max_members or len(names) != len(entries):
        raise ReleaseError("It has too many members, or one twice.")
    if MANIFEST not in names:
        raise ReleaseError("It has no manifest.")
    for name in names:
        if name != MANIFEST and not (name.startswith("arrays/") and name.endswith(".npy")):
            raise ReleaseError("It holds something that is neither manifest nor array.")
    return names


def _manifest(data: bytearray) -> dict[str, Any]:
    manifest = json.loads(
        data.decode("utf-8"),
        parse_constant=_refuse_constant,
        parse_float=_finite,
        object_pairs_hook=_each_once,
    )
    if not isinstance(manifest, dict):
        raise ReleaseError("Its manifest is not a table of names.")
    return manifest


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_constant(text)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that stands twice: another reader of the file would take the other one."""
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ReleaseError("Its manifest names something twice.")
    return table


def _refuse_constant(text: str) -> float:
    raise ReleaseError(f"Its manifest holds the number {text}.")


def _array(data: bytearray) -> AnyArray:
    max_header = 10_000
    stream = io.BytesIO(data[: max_header + 10])
    if npy.read_magic(stream) != (1, 0):
        raise ReleaseError("An array is of an unknown version.")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a header that NumPy has to mend was not written by us
        shape, by_column, dtype = npy.read_array_header_1_0(stream, max_header_size=max_header)
    if dtype.kind not in "biuf" or dtype.hasobject or by_column:
        raise ReleaseError("An array holds something other than plain numbers.")
    start, cells = stream.tell(), 1
    for length in shape:
        cells *= int(length)
    if min(shape, default=0) < 0 or cells * dtype.itemsize != len(data) - start:
        raise ReleaseError("An array is not as long as its header says.")
    return (
        np.frombuffer(data, dtype=dtype, offset=start)
        .reshape(shape)
        .astype(dtype.newbyteorder("="))
    )
