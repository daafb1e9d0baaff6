"""Spark as a door: what pyspark's own frames are read as. Skipped where pyspark, or the Java below it, is not."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from margrave.cli.main import run
from margrave.data import read_table
from margrave.errors import DataError
from margrave.profiling import draft_schema
from margrave.schema import Categorical, Date, Integer, Schema, Timestamp

sql: Any = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
]  # pyspark's own warnings, of many kinds

CANARY = "zebra-77341"
START, END = datetime(2024, 1, 1), datetime(2024, 12, 31, 23)
SCHEMA = Schema([
    Categorical("town", ["York", "Hull"], missing=True),
    Integer("age", 0, 9),
    Timestamp("seen", START, END, unit="hour", bins=8784),
    Date("day", START.date(), END.date(), bins=366),
])  # fmt: skip


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A session whose zone is neither UTC nor, most likely, this machine's."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        session = (
            sql.SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.session.timeZone", "America/New_York")
            .getOrCreate()
        )
    except Exception as error:
        pytest.skip(f"Spark does not start: {type(error).__name__}")
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def visits(spark: Any) -> Any:
    return spark.sql(
        "SELECT * FROM VALUES ('York', 3, timestamp'2024-01-31 22:00:00', timestamp'2024-01-31 22:00:00'),"
        " (NULL, 4, timestamp'2024-07-01 00:00:00', timestamp'2024-06-30 23:00:00') AS t(town, age, seen, day)"
    )


def test_times_are_those_of_the_session_as_in_pandas(spark: Any) -> None:
    frame = visits(spark)
    assert dict(frame.dtypes)["seen"] == "timestamp"  # a moment, and not timestamp_ntz
    local = {"seen": [datetime(2024, 1, 31, 22), datetime(2024, 7, 1)]}
    local["day"] = [datetime(2024, 1, 31, 22), datetime(2024, 6, 30, 23)]
    wanted = SCHEMA.encode(pa.table({"town": ["York", None], "age": [3, 4], **local})).values
    assert SCHEMA.encode(frame).values.tolist() == wanted.tolist()
    assert SCHEMA.encode(frame.toPandas()).values.tolist() == wanted.tolist()
    plain = frame.withColumn("seen", frame["seen"].cast("timestamp_ntz"))
    assert SCHEMA.encode(plain).values.tolist() == wanted.tolist()
    assert (
        SCHEMA.encode(frame.toArrow()).values.tolist() != wanted.tolist()
    )  # in UTC, as all times with a zone


def test_a_table_and_a_draft_of_it(spark: Any) -> None:
    frame = visits(spark)
    assert read_table(frame, SCHEMA).rows() == 2
    drafted = draft_schema(frame.union(frame))
    whole = [c for c in drafted.columns if c.name in frame.columns]
    assert [(c.name, c.kind, c.missing) for c in whole] == [
        ("town", "categorical", True), ("age", "integer", True), ("seen", "timestamp", True),
        ("day", "timestamp", True),
    ]  # fmt: skip
    assert read_table(frame.where("age < 0"), SCHEMA).rows() == 0


def test_columns_of_one_name_are_told(spark: Any) -> None:
    frame = visits(spark)
    with pytest.raises(DataError, match="columns 2 and 5 have the same"):
        read_table(frame.select("*", (frame["age"] + 1).alias("age")), SCHEMA)
    with pytest.raises(DataError, match="columns 2 and 5 have the same, but for case"):
        read_table(
            frame.select("*", frame["age"].alias("AGE")), Schema(SCHEMA.columns, ignore=["AGE"])
        )
    with pytest.raises(DataError, match=r"spark\.table"):
        read_table(spark, SCHEMA)


def test_commands_take_a_table_by_its_name(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = spark.range(600).selectExpr(
        "IF(id % 3 = 0, 'York', 'Hull') AS town",
        "CAST(id % 9 AS INT) AS age",
        f"'{CANARY}' AS note",
    )
    rows.createOrReplaceTempView("visits")
    Schema(SCHEMA.columns[:2], ignore=["note"]).save("schema.toml")
    schema = ["--schema", "schema.toml"]
    price = ["--epsilon", "1000", "--delta", "1e-5", "-m", "independent", "--release", "r.margrave"]
    assert run(["schema", "draft", "spark:visits", "-o", "draft.toml"]) == 0
    assert run(["schema", "check", "spark:visits", *schema]) == 0
    assert run(["synthesize", "spark:visits", *schema, *price, "-o", "out.csv"]) == 0
    assert run(["evaluate", "spark:visits", "r.margrave"]) == 0
    assert "600 real" in capfd.readouterr().out
    refused = [*schema, *price, "--overwrite"]
    for table, words in (
        ("none", "has no table 'none'"),
        ("main.none.visits", "has no table"),
        ("odd-name", "in backticks"),
        ("visits where age = 1", "in backticks"),
        ("`odd name`", "has no table"),
    ):
        assert run(["synthesize", f"spark:{table}", *refused]) != 0
        assert words in " ".join(capfd.readouterr().err.split()), table


def test_no_row_of_a_table_that_fails_is_shown(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    spark.range(9).selectExpr(
        f"CAST(concat('{CANARY}', id) AS INT) AS age"
    ).createOrReplaceTempView("bad")
    Schema([Integer("age", 0, 9)]).save("schema.toml")
    assert run(["schema", "draft", "spark:bad"]) != 0
    assert run(["schema", "check", "spark:bad", "--schema", "schema.toml"]) != 0
    shown = capfd.readouterr()
    assert "Spark could not read the table" in shown.err
    assert CANARY not in shown.err + shown.out


def test_a_type_that_arrow_lacks_is_named(spark: Any) -> None:
    frame = spark.sql("SELECT make_interval(1) AS age")
    with pytest.raises(DataError, match="column 'age' as Arrow: its type is interval"):
        read_table(frame, Schema([Integer("age", 0, 9)]))
