"""The command line on folders, patterns and databases."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from margrave.cli.main import run
from margrave.data import MemoryTable
from margrave.schema import Coded, Learn, Schema

SCHEMA = Schema([Coded("a", 2), Learn("fee", "integer", low=0, high=99)])
PRICE = ["--epsilon", "1000", "--delta", "1e-5", "-m", "independent"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table in two files and the same rows in a database, none of which fits in memory."""
    rng = np.random.default_rng(0)
    rows = pa.table({"a": rng.integers(2, size=400), "fee": rng.integers(90, size=400)})
    (tmp_path / "data").mkdir()
    for i in (0, 1):
        pq.write_table(rows.slice(200 * i, 200), tmp_path / "data" / f"{i}.parquet")
    with duckdb.connect(str(tmp_path / "file.db")) as connection:
        connection.register("given", rows)
        connection.execute("CREATE TABLE visits AS SELECT * FROM given")
    SCHEMA.save(tmp_path / "schema.toml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(MemoryTable, "max_code_bytes", 0)
    return tmp_path


@pytest.mark.parametrize("source", ["data", "data/*.parquet", "duckdb:file.db?table=visits"])
def test_a_table_in_files_or_a_database(
    source: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["schema", "draft", source, "-o", "draft.toml"]) == 0
    assert run(["schema", "check", source, "--schema", "draft.toml"]) == 0
    outputs = ["-o", "out.csv", "--release", "r.margrave", "--schema", "schema.toml"]
    assert run(["synthesize", source, *outputs, *PRICE]) == 0
    assert run(["evaluate", source, "r.margrave"]) == 0
    assert "400 real" in capsys.readouterr().out
    inside = "file.db" if source.startswith("duckdb") else "data/2.parquet"
    assert (
        run(["synthesize", source, "--schema", "schema.toml", *PRICE, "-o", inside, "--overwrite"])
        != 0
    )
    if not source.startswith("duckdb"):
        said = capsys.readouterr().err
        assert "-o and FILE name the same file" in said or "files are read as one table" in said


def test_a_table_that_is_not_there_costs_nothing(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for source, words in (
        ("none/*.parquet", "No file matches"),
        ("duckdb:file.db?table=none", "has no table 'none'"),
        ("duckdb:none.db?table=visits", "no such file"),
        ("file.db", "duckdb:file.db?table=NAME"),
    ):
        assert run(["synthesize", source, "--schema", "schema.toml", *PRICE, "-o", "out.csv"]) != 0
        assert words in " ".join(capsys.readouterr().err.split())
    assert not (place / "out.csv").exists()
