"""A release by itself or by its file: opened, and verified."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from margrave.error_sanitizer import short_errors
from margrave.errors import InputError
from margrave.release.archive import MAX_MB
from margrave.release.release import Release
from margrave.release.verification import Verification


def release_of(release: Release | str | Path) -> Release:
    """Return a release as it is, or load it from its file.

    Raises:
        InputError: It is neither.
        ReleaseError: As ``Release.load``.
    """
    if isinstance(release, Release):
        return release
    if not isinstance(release, str | PathLike):
        raise InputError(
            f"The release is of type {type(release).__name__}, which is not a release.",
            remedy='Give a Release, or the path of one, such as "visits.margrave".',
        )
    return Release.load(release)


@short_errors
def verify(release: Release | str | Path, *, max_mb: float = MAX_MB) -> Verification:
    """Recompute the account of a release, or of its file, and list what contradicts it.

    Args:
        release: A release, or the path of one; a file is read even if its account does not hold.
        max_mb: The most that is read of a file, decompressed, in MB.

    Returns:
        The contradictions in plain sentences, notes, and whether the account ``holds``.

    Raises:
        ReleaseError: The file is malformed.

    Privacy:
        None spent. Nobody needs the rows, the gate or the custodian for this check.
    """
    if isinstance(release, Release):
        return release.verify()
    return Release.load(release, max_mb=max_mb, verify=False).verify()
