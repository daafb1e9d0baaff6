"""A seeded release, its certificate and every help text are those in ``tests/golden/``, written by ``golden.py``."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from margrave.release import Release
from tests.support import golden

TOLERANCE = 1e-9
"""Relative: estimates are sums in floating point, whose last bits differ between processors."""


def members(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the manifest of a release file without versions, and its arrays."""
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        arrays = {
            name: np.load(io.BytesIO(archive.read(name)))
            for name in archive.namelist()
            if name.endswith(".npy")
        }
    del manifest["versions"]
    return manifest, arrays


def close(new: Any, old: Any) -> bool:
    """Return whether two pieces of plain data are equal, numbers with a fraction to ``TOLERANCE``."""
    if isinstance(new, dict) and isinstance(old, dict):
        return new.keys() == old.keys() and all(close(new[k], old[k]) for k in old)
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(map(close, new, old))
    if type(new) is float and type(old) is float:
        return new == pytest.approx(old, rel=TOLERANCE, abs=TOLERANCE)
    return type(new) is type(old) and bool(new == old)


@pytest.fixture(scope="module")
def made() -> Release:
    return golden.release()


def test_a_seeded_release_has_the_stored_content(made: Release, tmp_path: Path) -> None:
    made.save(tmp_path / "new.margrave")
    new, old = members(tmp_path / "new.margrave"), members(golden.FOLDER / golden.RELEASE)
    assert close(new[0], old[0])
    assert new[1].keys() == old[1].keys()
    for name, array in old[1].items():
        assert new[1][name].dtype == array.dtype, name
        np.testing.assert_allclose(
            new[1][name], array, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name
        )


def test_the_same_release_gives_the_same_bytes(made: Release, tmp_path: Path) -> None:
    made.save(tmp_path / "one.margrave")
    golden.release().save(tmp_path / "two.margrave")
    assert (tmp_path / "one.margrave").read_bytes() == (tmp_path / "two.margrave").read_bytes()


def test_the_certificate_is_the_stored_one(made: Release) -> None:
    stored = json.loads((golden.FOLDER / golden.CERTIFICATE).read_text(encoding="utf-8"))
    assert close(golden.certificate(made), stored)


def test_every_help_text_is_the_stored_one() -> None:
    assert golden.help_texts() == (golden.FOLDER / golden.HELP).read_text(encoding="utf-8")


def test_the_comparison_notices_what_differs() -> None:
    assert close({"a": [1.0, "x"]}, {"a": [1.0 + 1e-12, "x"]})
    assert not close({"a": [1.0, "x"]}, {"a": [1.0 + 1e-6, "x"]})
    assert not close({"a": 1}, {"a": True})
    assert not close({"a": 1}, {"a": 1, "b": 2})
    assert not close([1, 2], [1])
