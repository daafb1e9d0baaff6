"""Places of tables: what a resumed run compares, and what its journal holds of the table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from margrave.errors import LedgerError
from margrave.resuming import place_of


def begun(table: Any) -> dict[str, Any]:
    return {"facts": place_of(table, {}, "j", same_table=False)}


def goes_on(table: Any, stored: dict[str, Any]) -> bool:
    return place_of(table, stored, "j", same_table=False) == stored["facts"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two files, written before any run."""
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x\n1\n")
    time.sleep(0.02)  # the clock of a file system ticks every few milliseconds
    return tmp_path


def _added(folder: Path) -> None:
    (folder / "c.csv").touch()


def _removed(folder: Path) -> None:
    (folder / "b.csv").unlink()


@pytest.mark.parametrize("change", [_added, _removed])
@pytest.mark.parametrize("pattern", ["", "*.csv"])
def test_a_folder_and_a_pattern_are_the_files_in_them(
    folder: Path, change: Callable[[Path], None], pattern: str
) -> None:
    table = str(folder / pattern)
    stored = begun(table)
    assert goes_on(table, stored)
    change(folder)
    with pytest.raises(LedgerError, match="another table"):
        goes_on(table, stored)


def test_a_file_of_a_folder_that_is_written_again_is_refused(folder: Path) -> None:
    stored = begun(folder)
    time.sleep(0.02)
    (folder / "b.csv").write_text("x\n1\n")
    os.utime(folder / "b.csv", (0, 0))  # its time of change remains
    with pytest.raises(LedgerError, match="written or moved there"):
        goes_on(folder, stored)


@pytest.mark.parametrize("address", ["duckdb:{}?table=x", "{}.xlsx?sheet=x"])
def test_another_table_or_sheet_of_a_file_is_refused(folder: Path, address: str) -> None:
    one = address.format(folder / "a")
    stored = begun(one)
    assert goes_on(one, stored)
    with pytest.raises(LedgerError, match="another table"):
        goes_on(one.replace("=x", "=y"), stored)


def test_frames_are_not_distinguished_but_a_file_is_no_frame(folder: Path) -> None:
    one, other = pa.table({"x": [1]}), pa.table({"x": [1, 2]})
    assert goes_on(other, begun(one))
    with pytest.raises(LedgerError, match="another table"):
        goes_on(str(folder / "a.csv"), begun(one))


def test_the_journal_holds_salted_hashes_and_the_time_of_the_run(folder: Path) -> None:
    one, other = begun(folder)["facts"], begun(folder)["facts"]
    assert set(one) == {"table", "files", "begun"}
    assert one["table"] != other["table"]
    assert one["files"] is None
    assert abs(one["begun"] - time.time_ns()) < 60e9
