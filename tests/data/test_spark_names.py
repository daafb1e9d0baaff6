"""Tables of Spark by their names, without Spark: a stand-in for pyspark says what Spark would."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from margrave._io import spark_name_of
from margrave.cli.main import run
from margrave.data.spark_frames import check_version, spark_frame
from margrave.data.tasks import run_job
from margrave.errors import DataError, InputError, LedgerError
from margrave.frames import run_engine
from margrave.resuming import place_of
from margrave.schema import Coded, Schema


class Refusal(Exception):
    """An error of Spark, whose text may quote rows."""

    def __init__(self, condition: str) -> None:
        super().__init__(f"[{condition}] zebra-77341 [OTHER_WORDS]")


def stand_in(
    monkeypatch: pytest.MonkeyPatch, start: Any, version: str = "4.3.0", active: Any = None
) -> None:
    library, sql = ModuleType("pyspark"), ModuleType("pyspark.sql")
    library.__version__ = version  # type: ignore[attr-defined]
    builder = SimpleNamespace(getOrCreate=start)
    sql.SparkSession = SimpleNamespace(  # type: ignore[attr-defined]
        builder=builder, getActiveSession=lambda: active
    )
    monkeypatch.setitem(sys.modules, "pyspark", library)
    monkeypatch.setitem(sys.modules, "pyspark.sql", sql)
    monkeypatch.setattr("margrave.data.spark_frames.find_spec", lambda name: True)
    monkeypatch.delenv("SPARK_REMOTE", raising=False)


def refusing(condition: str) -> Any:
    def table(name: str) -> Any:
        raise Refusal(condition)

    return SimpleNamespace(version="4.0.1", table=table)


def failing(error: Exception) -> Any:
    def start() -> Any:
        os.write(2, b"WARN NativeCodeLoader")
        os.write(1, b":: loading settings ::")
        raise error

    return start


class Unreachable:
    """A session of Spark Connect whose server does not answer."""

    def __init__(self, calls: list[str]) -> None:
        self.client = SimpleNamespace(
            get_retry_policies=list, close=lambda: calls.append("close"),
            set_retry_policies=lambda policies: calls.append(f"retries {policies[0].max_retries}"),
        )  # fmt: skip

    @property
    def version(self) -> str:
        """The version of the server."""
        raise Refusal("CONNECT")


def test_a_server_that_does_not_answer_is_tried_for_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []
    stand_in(monkeypatch, lambda: Unreachable(calls))
    retries = ModuleType("pyspark.sql.connect.client.retries")
    retries.DefaultPolicy = SimpleNamespace  # type: ignore[attr-defined]
    for name in ("pyspark.sql.connect", "pyspark.sql.connect.client"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, retries.__name__, retries)
    monkeypatch.setenv("SPARK_REMOTE", "sc://host:15002/;token=zebra")
    with pytest.raises(InputError, match="reach the server of SPARK_REMOTE, sc://host:15002/") as e:
        spark_frame("spark:visits")
    assert "zebra" not in str(e.value)
    assert calls == ["retries 6", "close"]


def test_only_addresses_of_spark_have_a_name() -> None:
    assert spark_name_of("spark:main.`odd name`.visits") == "main.`odd name`.visits"
    assert spark_name_of(Path("spark:visits")) is None
    assert spark_frame("./spark:visits") is None


def test_without_pyspark_the_extra_is_named_and_nothing_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.chdir(tmp_path)
    Schema([Coded("a", 2)]).save("schema.toml")
    price = ["--epsilon", "1", "--delta", "1e-9", "-o", "out.csv"]
    for command in (
        ["schema", "draft", "spark:visits"],
        ["schema", "check", "spark:visits", "--schema", "schema.toml"],
        ["synthesize", "spark:visits", "--schema", "schema.toml", *price],
    ):
        assert run(command) != 0
        assert "pip install 'margrave[spark]'" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out.csv").exists()


def test_without_pandas_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, failing(AssertionError()))
    monkeypatch.setattr("margrave.data.spark_frames.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"Spark need pandas.*margrave\[spark\]"):
        spark_frame("spark:visits")


def test_an_old_spark_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_version("4.0.0")
    stand_in(monkeypatch, failing(AssertionError()), version="3.5.1")
    with pytest.raises(InputError, match=r"This is Spark 3\.5\.1, and margrave needs Spark 4"):
        spark_frame("spark:visits")


@pytest.mark.parametrize("name", ["", "  ", "a\nb"])
def test_an_address_without_a_name_starts_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, failing(AssertionError()))
    with pytest.raises(InputError, match="has no name"):
        spark_frame(f"spark:{name}")


@pytest.mark.parametrize(
    ("environment", "error", "words"),
    [
        ({"PATH": ""}, RuntimeError(), "needs Java, which was not found"),
        ({"JAVA_HOME": "/none"}, RuntimeError(), "JAVA_HOME is a folder without it"),
        ({"SPARK_REMOTE": "sc://host;token=zebra"}, RuntimeError(), "reach the server of SPARK"),
        ({"SPARK_REMOTE": "sc://host"}, ImportError(), r"pyspark\[connect\]"),
        ({"JAVA_HOME": "FOLDER"}, RuntimeError(), "Spark did not start"),
    ],
)
def test_a_spark_that_does_not_start_says_why_in_plain_words(
    environment: dict[str, str], error: Exception, words: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(0o755)
    stand_in(monkeypatch, failing(error))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    for key, value in environment.items():
        monkeypatch.setenv(key, value.replace("FOLDER", str(tmp_path)))
    with pytest.raises(InputError, match=words) as caught:
        spark_frame("spark:visits")
    assert "zebra" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("TABLE_OR_VIEW_NOT_FOUND", "Spark has no table 'a-b'"),
        ("INVALID_IDENTIFIER", "in backticks"),
        ("PARSE_SYNTAX_ERROR", "in backticks"),
        ("REQUIRES_SINGLE_PART_NAMESPACE", "Spark has no table 'a-b'"),
        ("INTERNAL_ERROR", "could not open the table 'a-b'"),
    ],
)
def test_a_table_that_does_not_open_is_named_without_the_words_of_spark(
    condition: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, None, active=refusing(condition))
    with pytest.raises(DataError, match=words) as caught:
        spark_frame("spark:a-b")
    assert "zebra" not in str(caught.value)
    assert caught.value.__context__ is None


def test_errors_that_pyspark_logs_stay_out_of_every_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    library = ModuleType("pyspark.logger")
    library.PySparkLogger = logging  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyspark.logger", library)
    own = logging.getLogger("SQLQueryContextLogger")

    def fail() -> None:
        own.error("zebra-77341")
        raise Refusal("CAST_INVALID_INPUT")

    for call in (run_engine, lambda work: run_job(work, "Spark")):
        with pytest.raises(DataError):
            call(fail)
    assert not caplog.records
    own.error("of the user's own query")
    assert len(caplog.records) == 1


def with_files(*names: str) -> Any:
    frame = SimpleNamespace(columns=["a"], inputFiles=lambda: list(names))
    return SimpleNamespace(version="4.3.0", table=lambda name: frame)


def test_a_run_goes_on_with_the_name_and_the_files_of_its_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("margrave.data.spark_frames.names_of", lambda frame: frame.columns)

    def place(name: str, stored: dict[str, Any], *files: str, same_table: bool = False) -> Any:
        stand_in(monkeypatch, None, active=with_files(*files))
        return place_of(name, stored, "j", same_table=same_table)

    begun = {"facts": place("spark:main.visits", {}, "part-1-ab", "part-0-cd")}
    assert not any(word in str(begun) for word in ("visits", "part-"))
    assert place("spark:main.visits", begun, "part-0-cd", "part-1-ab") == begun["facts"]
    with pytest.raises(LedgerError, match="another table"):
        place("spark:main.stays", begun, "part-1-ab", "part-0-cd")
    for files in (("part-1-ab",), ("part-1-ab", "part-0-ef"), ()):
        with pytest.raises(LedgerError, match=r"reads other files for spark:main\.visits"):
            place("spark:main.visits", begun, *files)
        assert place("spark:main.visits", begun, *files, same_table=True) == begun["facts"]


def test_warnings_of_pyspark_are_left_out_of_calls_of_margrave_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", ModuleType("pyspark"))

    def warn(module: str) -> None:
        warnings.warn_explicit("pandas", FutureWarning, "utils.py", 1, module=module)

    run_job(lambda: warn("pyspark.sql.pandas.utils"), "Spark")
    for outside in ("pyspark.sql.pandas.utils", "own"):
        with pytest.warns(FutureWarning):
            warn(outside)
    with pytest.warns(FutureWarning):
        run_engine(lambda: warn("own"))
