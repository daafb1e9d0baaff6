"""The file under a release: one zip of a JSON manifest and NumPy arrays. No pickle, and nothing read is trusted.

The same content gives the same bytes: members are in a fixed order and carry no dates.
"""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from margrave.errors import ReleaseError
from margrave.files import written_whole
from margrave.typing import AnyArray

MANIFEST = "manifest.json"
MAX_MEMBERS = 100_000
MAX_BYTES = 4 << 30
MAX_MANIFEST = 64 << 20
MAX_HEADER = 10_000
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date a zip can hold


def write_archive(
    path: str | Path, manifest: Mapping[str, Any], arrays: Mapping[str, AnyArray], *, overwrite: bool = False
) -> None:
    """Write manifest and arrays, whole or not at all."""
    with written_whole(path, overwrite=overwrite) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        text = json.dumps(manifest, indent=1, sort_keys=True, allow_nan=False)
        archive.writestr(_entry(MANIFEST), text.encode())
        for name in sorted(arrays):
            archive.writestr(_entry(_member(name)), _npy_bytes(arrays[name]))


def read_archive(path: str | Path) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Manifest and arrays; anything that is not exactly such a file is a ReleaseError."""
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = _sizes(archive)
            manifest = _manifest(archive.read(MANIFEST))
            arrays = {n[7:-4]: _array(archive.read(n)) for n in sizes if n != MANIFEST}
    except FileNotFoundError:
        raise ReleaseError(f"There is no file {path}.") from None
    except ReleaseError as error:
        raise ReleaseError(f"{path} is not a release that can be read: {error}") from None
    except (
        Exception
    ) as error:  # a file from elsewhere may break any parser in any way; it must not break the caller
        if not _is_zip(path):
            raise ReleaseError(
                f"{path} is not a release.", remedy="Name a .margrave file, as synthesize writes it by --release."
            ) from None
        why = type(error).__name__
        raise ReleaseError(
            f"{path} is not a release that can be read ({why}).", remedy="Is it whole?"
        ) from None
    return manifest, arrays


def _is_zip(path: str | Path) -> bool:
    """Whether a file begins as a zip does; one that cannot be opened may be."""
    try:
        with open(path, "rb") as handle:
            return handle.read(2) == b"PK"
    except (OSError, ValueError, TypeError):
        return True


def _entry(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, date_time=_EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
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


def _sizes(archive: zipfile.ZipFile) -> dict[str, int]:
    entries = archive.infolist()
    sizes = {e.filename: e.file_size for e in entries}
    if len(entries) > MAX_MEMBERS or len(sizes) != len(entries):
        raise ReleaseError("It has too many members, or one twice.")
    if MANIFEST not in sizes or sizes[MANIFEST] > MAX_MANIFEST or sum(sizes.values()) > MAX_BYTES:
        raise ReleaseError("It has no manifest, or is larger than any release.")
    for name in sizes:
        if name != MANIFEST and not (name.startswith("arrays/") and name.endswith(".npy")):
            raise ReleaseError("It holds something that is neither manifest nor array.")
    return sizes


def _manifest(data: bytes) -> dict[str, Any]:
    manifest = json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
    if not isinstance(manifest, dict):
        raise ReleaseError("Its manifest is not a table of names.")
    return manifest


def _refuse_constant(text: str) -> float:
    raise ReleaseError(f"Its manifest holds the number {text}.")


def _array(data: bytes) -> AnyArray:
    """One array, its header believed only where it agrees with the bytes that follow. Objects are refused."""
    stream = io.BytesIO(data)
    if npy.read_magic(stream) != (1, 0):
        raise ReleaseError("An array is of an unknown version.")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a header that NumPy has to mend was not written by us
        shape, by_column, dtype = npy.read_array_header_1_0(stream, max_header_size=MAX_HEADER)
    if dtype.kind not in "biuf" or dtype.hasobject or by_column:
        raise ReleaseError("An array holds something other than plain numbers.")
    rest = data[stream.tell() :]
    cells = 1
    for length in shape:
        cells *= int(length)
    if min(shape, default=0) < 0 or cells * dtype.itemsize != len(rest):
        raise ReleaseError("An array is not as long as its header says.")
    return np.frombuffer(rest, dtype=dtype).reshape(shape).astype(dtype.newbyteorder("="))
