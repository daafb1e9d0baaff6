"""A table of a distribution outside the repository: opened by name, counted where its rows are, and in the checks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import margrave
from margrave.cli.main import run
from margrave.data import TABLE_CATALOG, TableSource
from margrave.error_sanitizer import DataError
from margrave.errors import InputError, LedgerError
from margrave.schema import Schema
from margrave.testing import check_table
from margrave.testing.tables import Row, TinySchema
from tests.support.pages import GUIDES, blocks

OTHERS = """


class NotItself(DuckDBFile):
    @classmethod
    def open(cls, location, schema):
        return DuckDBFile.open(location, schema)


class NoTable:
    pass
"""


@pytest.fixture(autouse=True)
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The guide's table as the installed distribution margrave-duck 0.3."""
    info = tmp_path / "site" / "margrave_duck-0.3.dist-info"
    info.mkdir(parents=True)
    example, _, opening = blocks(GUIDES / "table.md", "python")
    table = example.partition("\n\nconnection =")[0]
    (info.parent / "margrave_duck.py").write_text(f"{table}\n\n{opening}{OTHERS}", "utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: margrave-duck\nVersion: 0.3\n")
    (info / "entry_points.txt").write_text(
        "[margrave.tables]\nduck = margrave_duck:DuckDBFile\nother = margrave_duck:NotItself\n"
        "no-table = margrave_duck:NoTable\n"
    )
    monkeypatch.syspath_prepend(info.parent)
    yield
    sys.modules.pop("margrave_duck", None)


def rows() -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table({"a": rng.integers(2, size=200), "b": rng.integers(3, size=200)})


def duck_file(path: Path) -> str:
    """A DuckDB file with the table ``visits`` of these codes."""
    with duckdb.connect(str(path)) as connection:
        connection.register("given", rows())
        connection.execute("CREATE TABLE visits AS SELECT * FROM given")
    return str(path)


SCHEMA = Schema.coded({"a": 2, "b": 3})


def test_its_table_passes_the_checks(tmp_path: Path) -> None:
    kind = TABLE_CATALOG.get("duck")
    places = (str(tmp_path / f"{i}.db") for i in range(100))

    def stored(schema: TinySchema, data: list[Row], persons: list[int]) -> object:
        columns = dict(zip(schema.domain, zip(*data, strict=True) if data else (), strict=False))
        columns = {name: columns.get(name, ()) for name in schema.domain} | {"who": tuple(persons)}
        table = pa.table(columns, pa.schema([(name, pa.int64()) for name in columns]))
        place = next(places)
        with duckdb.connect(place) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE visits AS SELECT * FROM given")
        return kind.open(place, schema)

    check_table(stored)


def test_a_table_of_another_distribution_is_named_in_the_certificate(tmp_path: Path) -> None:
    source = TableSource("duck", duck_file(tmp_path / "t.db"))
    known = {"epsilon": 1e4, "delta": 1e-6, "mechanism": "independent", "seed": 0}
    release = margrave.synthesize(source, SCHEMA, **known)
    assert release.certificate()["versions"]["margrave-duck"] == "0.3"
    same = margrave.synthesize(rows(), SCHEMA, **known)
    assert "margrave-duck" not in same.certificate()["versions"]
    for clique in (("a",), ("b",)):
        off = release.marginal(clique).values - same.marginal(clique).values
        assert np.abs(off).max() < 2, "it counts what a frame counts"


def test_a_table_that_cannot_be_opened_costs_nothing(tmp_path: Path) -> None:
    known = {"epsilon": 1.0, "delta": 1e-6, "mechanism": "independent"}
    with pytest.raises(InputError, match="'comet' is not a kind of table"):
        TableSource("comet", "t.db")
    with pytest.raises(InputError, match="not a class with open"):
        TableSource("no-table", "t.db")
    location = duck_file(tmp_path / "t.db")
    with pytest.raises(InputError, match="did not open a table of its own class"):
        margrave.synthesize(TableSource("other", location), SCHEMA, **known)
    with pytest.raises(
        DataError, match=r"'duck' could not open the table \(IOException in margrave_duck\.py"
    ) as caught:
        margrave.synthesize(TableSource("duck", str(tmp_path / "none.db")), SCHEMA, **known)
    assert caught.value.__cause__ is None, "errors of code that reads rows keep no frames"
    (tmp_path / "p.csv").write_text("a,b\n0,0\n")
    public = margrave.read_public(tmp_path / "p.csv", SCHEMA, attestation="made up")
    with pytest.raises(InputError, match="is compared with the rows"):
        margrave.synthesize(
            TableSource("duck", location), SCHEMA, epsilon=1.0, delta=1e-6,
            mechanism=margrave.mechanisms.AIMPub(public=public),
        )  # fmt: skip


def test_the_command_line_opens_a_table_of_another_distribution(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    SCHEMA.save(tmp_path / "schema.toml")
    location = duck_file(tmp_path / "t.db")
    schema = str(tmp_path / "schema.toml")
    common = ["--schema", schema, *["--epsilon", "3", "--delta", "1e-6", "-m", "independent"]]
    made, journal = str(tmp_path / "r.margrave"), str(tmp_path / "run.journal")
    outputs = ["--release", made, "--journal", journal]
    assert run(["synthesize", location, "--source", "duck", *common, *outputs]) == 0
    assert margrave.Release.load(made).certificate()["versions"]["margrave-duck"] == "0.3"
    capsys.readouterr()
    assert run(["synthesize", location, "--source", "comet", *common, "--release", made]) != 0
    assert (
        "'comet' is not a kind of table. It is one of: duck, no-table, other."
        in capsys.readouterr().err
    )
    assert run(["synthesize", location, "--source", "duck", *common, "--release", location]) != 0


def test_a_run_on_another_source_is_not_resumed(tmp_path: Path) -> None:
    one, other = (duck_file(tmp_path / name) for name in ("one.db", "other.db"))
    journal = tmp_path / "run.journal"
    known = {"epsilon": 1.0, "delta": 1e-6, "mechanism": "independent", "journal": journal}
    first = margrave.synthesize(TableSource("duck", one), SCHEMA, **known)
    with pytest.raises(LedgerError, match="on another table"):
        margrave.synthesize(TableSource("duck", other), SCHEMA, resume=True, **known)
    again = margrave.synthesize(TableSource("duck", one), SCHEMA, resume=True, **known)
    assert again.marginal(("a",)).values.tobytes() == first.marginal(("a",)).values.tobytes()
