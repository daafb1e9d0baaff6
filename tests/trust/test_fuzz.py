"""Damaged files of every kind: a success or a MargraveError, and no cell of the table in any message.

The same files every time. For longer: ``python -m tests.support.fuzz csv --seconds 3600``.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from margrave.data import read_table
from margrave.domain import Domain
from margrave.errors import DataError, ReleaseError
from margrave.models import FAMILIES
from margrave.release.archive import _array
from margrave.schema import Schema
from tests.support import fuzz
from tests.support.fuzz import LOADERS, SECRET, Loader, damaged

FILES = {"schema": 400, "csv": 40, "parquet": 40, "release": 250, "posterior": 150}


@pytest.mark.parametrize("name", LOADERS)
def test_damaged_files_are_refused_without_a_word_of_them(name: str) -> None:
    tally = fuzz.fuzz(name, seconds=60, seed=11, most=FILES[name])
    assert tally.harm == ""
    assert tally.refused > FILES[name] / 4
    assert tally.read > 0  # some damage does no harm, so the files get past the first check
    assert tally.slowest < 20


def _quotes(path: Path) -> None:
    raise DataError(f"Line 3 is not clean: {path.read_bytes()[-500:]!r}")


def _chains(path: Path) -> None:
    try:
        _quotes(path)
    except DataError as error:
        raise DataError("A line is not clean.") from error


def _breaks(path: Path) -> None:
    raise KeyError("codes")


@pytest.mark.parametrize("reader", [_quotes, _chains, _breaks])
def test_harm_is_seen(reader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = LOADERS["csv"].sound
    assert SECRET.encode() in sound(random.Random(0), Path())
    monkeypatch.setitem(LOADERS, "bad", Loader("bad", sound, reader))
    tally = fuzz.fuzz("bad", seconds=5, seed=1, most=50)
    assert (SECRET if reader is not _breaks else "KeyError") in tally.harm
    assert tally.tried <= 50
    assert tally.bytes


def test_damage_is_of_every_kind() -> None:
    rng, data = random.Random(3), bytes(range(200))
    found = [damaged(data, rng) for _ in range(300)]
    assert sum(f == data for f in found) < 30
    assert (
        {len(f) > len(data) for f in found} == {len(f) < len(data) for f in found} == {True, False}
    )
    assert {damaged(b"", rng) for _ in range(50)} != {b""}


@pytest.mark.parametrize(("total", "fine"), [(1e30, True), (1e31, False), (1e308, False)])
def test_a_model_of_too_many_records_is_refused(total: float, fine: bool) -> None:
    """Found by fuzzing: counts that overflow, and shares of them that are no numbers."""
    domain, potential = Domain.of({"a": 3}), {"potential0": np.array([0.0, -np.inf, 1.0])}
    facts = {"cliques": [["a"]], "total": total}
    if fine:
        assert FAMILIES["graphical"].load(domain, facts, potential).total == total
    else:
        with pytest.raises(ReleaseError):
            FAMILIES["graphical"].load(domain, facts, potential)


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e300, -1e301])
def test_a_potential_beyond_arithmetic_is_refused(value: float) -> None:
    arrays = {"potential0": np.array([0.0, value])}
    with pytest.raises(ReleaseError):
        FAMILIES["graphical"].load(Domain.of({"a": 2}), {"cliques": [["a"]], "total": 10}, arrays)


def test_a_parquet_file_with_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """Found by fuzzing: DuckDB's bindings raise an error of another kind."""
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(pa.table({"town": ["York"], "age": [1]}), path)
    path.write_bytes(path.read_bytes().replace(b"town", b"to\xffn"))
    with pytest.raises(DataError, match="damaged"):
        read_table(path, Schema.coded({"age": 2}))


def test_a_header_that_must_be_mended_is_refused() -> None:
    """NumPy reads arrays of Python 2, with a warning; no release has any."""
    body = np.arange(3, dtype="<i8").tobytes()
    for shape, fine in (("(3,)", True), ("(3L,)", False)):
        header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}, }}".encode()
        data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + body
        if fine:
            assert _array(data).tolist() == [0, 1, 2]
        else:
            with pytest.raises((UserWarning, ReleaseError)):
                _array(data)
