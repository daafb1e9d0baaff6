"""Tables that Spark counts: cell by cell equal to memory, in any number of partitions, and silent about rows."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import margrave
from margrave.data import BatchTable, read_table
from margrave.errors import DataError
from margrave.marginal import closure
from margrave.schema import Categorical, Date, Depends, Integer, Learn, Real, Schema, Timestamp
from margrave.testing import check_table
from margrave.testing.tables import Row
from tests.support import sources

sql: Any = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

CANARY = "zebra-77341"
START, END = datetime(2024, 1, 1), datetime(2024, 12, 31, 23)
SCHEMA = Schema(
    [
        Categorical("town", ["York", "Hull"], missing=True, other=True),
        Integer("age", 0, 9, missing=True, outside="missing"),
        Real("fee", 0.0, 10.0, bins=7),
        Timestamp("seen", START, END, unit="hour", bins=12),
        Date("day", START.date(), END.date(), bins=12),
    ],
    person="who",
    ignore=["note"],
)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A session of two cores, whose zone is not UTC."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        session = (
            sql.SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.session.timeZone", "America/New_York")
            .getOrCreate()
        )
    except Exception as error:
        pytest.skip(f"Spark does not start: {type(error).__name__}")
    yield session
    session.stop()


def visits(rows: int = 3000, persons: int = 400) -> pa.Table:
    rng = np.random.default_rng(4)
    moments = rng.integers(int(START.timestamp()), int(END.timestamp()), rows)
    towns = np.array(["York", "Hull", "Bath", None], dtype=object)
    return pa.table(
        {
            "who": [f"p{i}" for i in np.minimum(rng.zipf(1.4, rows), persons)],
            "town": towns[rng.integers(0, 4, rows)].tolist(),
            "age": pa.array(rng.integers(-2, 12, rows), pa.int32()),
            "fee": rng.uniform(-1, 11, rows),
            "seen": pa.array(moments, pa.timestamp("s")),
            "day": pa.array(moments // 86400, pa.int32()).cast(pa.date32()),
            "note": ["free text"] * rows,
        }
    )


def frame_of(spark: Any, table: pa.Table, folder: Path, partitions: int) -> Any:
    import pyarrow.parquet as pq

    file = folder / "visits.parquet"
    pq.write_table(table, file, coerce_timestamps="us")
    return spark.read.parquet(str(file)).repartition(partitions)


@pytest.mark.parametrize("partitions", [1, 5, 40])
def test_counts_equal_those_in_memory(spark: Any, tmp_path: Path, partitions: int) -> None:
    # 40 partitions of few rows: some are empty, as after a filter
    rows = visits(30 if partitions == 40 else 3000)
    frame = frame_of(spark, rows, tmp_path, partitions)
    counted, held = read_table(frame, SCHEMA), read_table(rows, SCHEMA)
    assert isinstance(counted, BatchTable)
    assert counted.rows() == held.rows() == rows.num_rows
    cliques = list(closure([SCHEMA.domain.attributes[:3], ("seen", "day")]))
    expected = held.count(cliques)
    found = counted.count(cliques)
    assert all(np.array_equal(found[c], expected[c]) for c in cliques)


def test_a_limit_of_rows_keeps_as_many_as_in_memory_and_the_same_in_each_scan(
    spark: Any, tmp_path: Path
) -> None:
    rows = visits()
    counted = read_table(frame_of(spark, rows, tmp_path, 6), SCHEMA).bounded(3)
    assert counted.rows() == read_table(rows, SCHEMA).bounded(3).rows()
    cliques = [("town", "age"), ("fee", "seen")]
    once, twice = counted.count(cliques), counted.count(cliques)
    assert all(np.array_equal(once[c], twice[c]) for c in cliques)
    assert once["town", "age"].sum() == counted.rows()


def test_every_kind_of_column(spark: Any, tmp_path: Path) -> None:
    rows = sources.visits()
    frame = frame_of(spark, rows, tmp_path, 3)
    sources.check_counts(frame, rows)
    sources.check_learned(frame, rows)


def test_the_checks_of_the_library_hold(spark: Any) -> None:
    def made(schema: Schema, rows: list[Row], persons: list[int]) -> BatchTable:
        names = list(schema.domain.attributes)
        columns = {n: [r[i] for r in rows] for i, n in enumerate(names)}
        fields = [f"{n} long" for n in names]
        if schema.person is not None:
            columns[schema.person] = [f"p{p}" for p in persons]  # type: ignore[misc]
            fields.append(f"{schema.person} string")
        listed = list(zip(*columns.values(), strict=True))
        return read_table(spark.createDataFrame(listed, ", ".join(fields)), schema)

    check_table(made)


def test_policies_name_the_column_before_anything_is_spent(spark: Any, tmp_path: Path) -> None:
    rows = visits(50)
    strict = Schema(
        [Categorical("town", ["York", "Hull"]), Integer("age", 0, 9, outside="refuse")],
        ignore=["who", "fee", "seen", "day", "note"],
    )
    with pytest.raises(DataError, match="town") as caught:
        read_table(frame_of(spark, rows, tmp_path, 3), strict)
    assert "Bath" not in str(caught.value)
    wages = Schema([Integer("wage", 0, 9), *strict.columns], ignore=strict.ignore)
    with pytest.raises(DataError, match='no column "wage"'):
        read_table(frame_of(spark, rows, tmp_path, 3), wages)


def test_constraints_are_counted(spark: Any) -> None:
    schema = Schema(
        [Categorical("a", ["x", "y"]), Categorical("b", ["u", "v"])],
        constraints=[Depends("a", "b", {"x": "u", "y": "v"}, violating="refuse")],
    )
    frame = spark.createDataFrame([("x", "u"), ("x", "v")], "a string, b string")
    with pytest.raises(DataError, match="1 row"):
        read_table(frame, schema)


def test_learned_columns_and_a_whole_run(spark: Any, tmp_path: Path) -> None:
    rows = visits()
    schema = Schema(
        [Learn("fee", "real"), Learn("town", "categorical"), Integer("age", -2, 12)],
        ignore=["who", "seen", "day", "note"],
    )
    frame = frame_of(spark, rows, tmp_path, 4)
    counted, held = read_table(frame, schema), read_table(rows, schema)
    texts, right = counted.value_counts("town"), held.value_counts("town")
    assert dict(zip(*texts, strict=False)) == dict(zip(*right, strict=False))
    journal = tmp_path / "run.journal"
    made = margrave.synthesize(
        frame, schema, epsilon=20.0, delta=1e-6, mechanism="mst", journal=journal
    )
    assert not made.schema.to_learn
    fee = made.sample(seed=1)["fee"].to_numpy()
    assert abs(fee.mean() - rows["fee"].to_numpy().mean()) < 0.3
    assert set(made.schema.column("town").labels()) >= {"York", "Hull", "Bath"}


def test_a_table_that_changes_between_scans_is_refused(spark: Any, tmp_path: Path) -> None:
    rows = visits(200)
    frame = frame_of(spark, rows, tmp_path, 2)
    table = read_table(frame, SCHEMA)
    table._scans._frame = frame.limit(199)
    with pytest.raises(DataError, match="changed between two scans"):
        table.count([("town", "age")])


def test_an_engine_that_fails_shows_no_value(spark: Any, capfd: pytest.CaptureFixture[str]) -> None:
    frame = spark.createDataFrame([("3",), (CANARY,)], "age string")
    failing = frame.selectExpr("assert_true(age = '3') as check", "age").select("age", "check")
    schema = Schema([Integer("age", 0, 9)], ignore=["check"])
    with pytest.raises(DataError) as caught:
        read_table(failing.where("check is null"), schema)
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_values_that_cannot_be_encoded_stay_out_of_every_log(
    spark: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.sparkContext.setLogLevel("INFO")
    frame = spark.createDataFrame([([CANARY],), ([CANARY],)], "age array<string>")
    with pytest.raises(DataError):
        read_table(frame, Schema([Integer("age", 0, 9)]))
    spark.sparkContext.setLogLevel("ERROR")
    shown = capfd.readouterr()
    assert CANARY not in shown.err + shown.out


def test_dates_and_moments_are_those_that_the_session_shows(spark: Any) -> None:
    frame = spark.sql(
        "SELECT * FROM VALUES (timestamp'2024-01-31 22:00:00', date'2024-01-31') AS t(seen, day)"
    )
    schema = Schema(
        [
            Timestamp("seen", START, END, unit="hour", bins=8784),
            Date("day", date(2024, 1, 1), date(2024, 12, 31), bins=366),
        ]
    )
    counts = read_table(frame, schema).count([("seen",), ("day",)])
    assert int(np.flatnonzero(counts["seen",])[0]) == 30 * 24 + 22
    assert int(np.flatnonzero(counts["day",])[0]) == 30


def apart(master: str, work: str) -> None:
    """Run lines in a process of their own: one process has one session of Spark. ``frame``, ``rows`` are given."""
    program = f"""
import os, signal, subprocess, sys, tempfile, threading, time
os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from tests.data.test_graph_tasks import SCHEMA, equal_in_memory, equal_with_a_limit, visits
from margrave.data import read_table
session = (
    SparkSession.builder.{master}.config("spark.sql.shuffle.partitions", "2")
    .config("spark.executorEnv.PYTHONPATH", os.pathsep.join(sys.path)).getOrCreate()
)
with tempfile.TemporaryDirectory() as folder:
    rows = visits(3000)
    pq.write_table(rows, folder + "/visits.parquet")
    frame = session.read.parquet(folder + "/visits.parquet").repartition(4)
{textwrap.indent(textwrap.dedent(work), "    ")}
session.stop()
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        env=environment,
        text=True,
    )
    if "grpc" in done.stderr and "No module named" in done.stderr:
        pytest.skip("Spark Connect is not installed")
    assert done.returncode == 0, done.stderr[-2000:]


def test_spark_connect() -> None:
    apart(
        'remote("local[2]")',
        """
        table = read_table(frame, SCHEMA)
        equal_in_memory(table, rows)
        equal_with_a_limit(table, rows)
        from margrave.cli.main import run
        SCHEMA.save(folder + "/schema.toml")
        frame.createOrReplaceTempView("visits")
        assert run(["schema", "check", "spark:visits", "--schema", folder + "/schema.toml"]) == 0
        assert run(["schema", "check", "spark:stays", "--schema", folder + "/schema.toml"]) != 0
        """,
    )


def test_an_executor_that_is_killed_changes_no_count() -> None:
    apart(
        'master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")',
        """
        table = read_table(frame, SCHEMA)
        session.sparkContext.setLogLevel("OFF")
        def kill():
            time.sleep(0.5)
            children = subprocess.run(["pgrep", "-g", str(os.getpgrp()), "-f", "CoarseGrainedExecutorBackend"],
                                      capture_output=True, text=True).stdout.split()
            os.kill(int(children[-1]), signal.SIGKILL)
        killer = threading.Thread(target=kill)
        killer.start()
        for _ in range(3):
            equal_in_memory(table, rows)
        killer.join()
        equal_with_a_limit(table, rows)
        """,
    )


def test_a_driver_that_is_killed_pays_nothing_twice(tmp_path: Path) -> None:
    """The run dies when it has measured, and a second session goes on by the journal."""
    for name in ("killed", "resumed"):
        apart(
            'master("local[2]").config("spark.ui.enabled", "false")',
            f"""
            import margrave
            from pathlib import Path
            from margrave.accounting import Budget, Ledger
            folder, resume = Path({str(tmp_path)!r}), {name == "resumed"}
            ledger = Ledger(folder / "spent.ledger")
            if not resume:
                ledger.init("visits", unit="add-remove-person:5", cap=Budget.approx(2.0, 1e-6))
            def die(*step):
                if not resume:
                    os._exit(0)
            made = margrave.synthesize(
                frame, SCHEMA, epsilon=1.0, delta=1e-6, unit="add-remove-person:5", mechanism="aim",
                ledger=ledger.path, dataset="visits", journal=folder / "run.journal",
                resume=resume, progress=die, same_table=resume,
            )
            assert resume
            (books,) = ledger.datasets()
            assert books.charged == made.account.rho_spent
            assert books.unfinished == ()
            """,
        )
