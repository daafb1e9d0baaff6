"""DataFrames of Spark, and tables that Spark has by name. A session is started only if the process has none.

Spark's messages may quote rows, so none is passed on. A Java process that is started here prints nothing.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any, ClassVar

from margrave._io import spark_name_of
from margrave.errors import DataError, InputError
from margrave.frames import names_of, run_engine, unlogged


def spark_frame(source: Any) -> Any | None:
    """Return the DataFrame of a source: a DataFrame of Spark, or the address ``spark:NAME``; None for anything else.

    Raises:
        InputError: pyspark or Java is not installed, or Spark is too old or does not start.
        DataError: Spark has no table of that name, or cannot open it.
    """
    kind = type(source)
    if kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame":
        check_version(source.sparkSession.version)
        _check_pandas()
        return source
    name = spark_name_of(source)
    return None if name is None else _table(name)


def spark_files(source: Any) -> list[str] | None:
    """Return the names of the files that Spark reads for a source, in order; None if it is not of Spark.

    Spark lists no files of a database or a cached frame. Files that it writes have new random names each time.
    """
    frame = spark_frame(source)
    return None if frame is None else sorted(run_engine(frame.inputFiles, frame))


def shown_columns(frame: Any, columns: Sequence[str]) -> Any:
    """Return some columns, with moments as Spark shows them in the zone of its session.

    Raises:
        DataError: A column has a type that Spark cannot give as Arrow.
    """
    chosen = frame.select(*(frame[quoted(name)] for name in columns))
    shown = []
    for name, field in zip(columns, chosen.schema.fields, strict=True):
        _check_type(name, field.dataType)
        column, moment = chosen[quoted(name)], field.dataType.simpleString() == "timestamp"
        shown.append(column.cast("timestamp_ntz").alias(name) if moment else column)
    return chosen.select(*shown)


def _check_type(name: str, kind: Any) -> None:
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        to_arrow_type(kind, timezone="UTC")
    except Exception:
        raise DataError(
            f"Spark cannot give column {name!r} as Arrow: its type is {kind.simpleString()[:60]}.",
            remedy="Cast it to another type in Spark, or leave it out: ignore in the schema.",
        ) from None


def quoted(name: str) -> str:
    """Return the name of a column as Spark's SQL spells it."""
    return f"`{name.replace('`', '``')}`"


def check_version(version: str) -> None:
    """Raise ``InputError`` unless the version of Spark is 4 or later."""
    if int(version.partition(".")[0]) < 4:
        raise InputError(
            f"This is Spark {version}, and margrave needs Spark 4 or later.",
            remedy="Write the table as Parquet files, and give their folder.",
        )


class _Conditions:
    """Names of errors of Spark."""

    absent: ClassVar = (
        "TABLE_OR_VIEW_NOT_FOUND",
        "SCHEMA_NOT_FOUND",
        "CATALOG_NOT_FOUND",
        "REQUIRES_SINGLE_PART",
    )
    name: ClassVar = ("PARSE_", "INVALID_IDENTIFIER", "INVALID_SQL_SYNTAX", "IDENTIFIER_")


def _table(name: str) -> Any:
    if not name.strip() or not name.isprintable():
        raise InputError(
            "The address of a table of Spark has no name, or a character that cannot be printed.",
            remedy="Write spark:CATALOG.SCHEMA.TABLE, or spark:TABLE.",
        )
    session = _session()
    check_version(session.version)
    condition = ""
    try:
        with unlogged():
            frame = session.table(name)
            frame.columns  # noqa: B018 - Spark Connect looks for the table here
            names_of(frame)
            return frame
    except DataError:
        raise
    except Exception as error:
        found = re.search(r"\[([A-Z]+_[A-Z_.]+)\]", str(error))
        condition = "" if found is None else found[1]
    raise _unopened(name, condition)


def _unopened(name: str, condition: str) -> DataError:
    if condition.startswith(_Conditions.absent):
        return DataError(
            f"Spark has no table {name!r}.",
            remedy="Name it with its catalog and schema: spark:CATALOG.SCHEMA.TABLE. SHOW TABLES lists the names.",
        )
    if condition.startswith(_Conditions.name):
        return DataError(
            f"{name!r} is not the name of a table of Spark.",
            remedy="Put a part with other characters than letters, digits and _ in backticks:"
            " 'spark:main.`visits-2026`'.",
        )
    return DataError(
        f"Spark could not open the table {name!r}.", remedy="Open it in Spark first: it says why."
    )


def _session() -> Any:
    library = _library()
    if (active := library.getActiveSession()) is not None:
        return active
    failure: InputError | None = None
    with _silent_start(), unlogged():
        try:
            session = library.builder.getOrCreate()
            _reach(session)
        except Exception as error:
            failure = _not_started(error)
    if failure is not None:
        raise failure
    with suppress(Exception):  # Spark Connect has no such object
        context = session.sparkContext
        context.setLogLevel("OFF")  # an error there may quote rows
        if context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
            context.pythonExec = sys.executable
    return session


def _reach(session: Any) -> None:
    """Speak to the server of Spark Connect: for about a minute, where Spark would try for ten."""
    if "SPARK_REMOTE" not in os.environ:
        return
    from pyspark.sql.connect.client.retries import DefaultPolicy

    client = session.client
    usual = client.get_retry_policies()
    client.set_retry_policies([DefaultPolicy(max_retries=6)])
    try:
        session.version  # noqa: B018 - the first word to the server
    except Exception:
        client.close()  # otherwise pyspark tries again when the process ends
        raise
    client.set_retry_policies(usual)


def _library() -> Any:
    try:
        from pyspark import __version__
        from pyspark.sql import SparkSession
    except ImportError:
        raise _lacking("pyspark") from None
    check_version(__version__)
    _check_pandas()
    return SparkSession


def _check_pandas() -> None:
    if find_spec("pandas") is None:  # pyspark wants it for Arrow too
        raise _lacking("pandas")


def _lacking(library: str) -> InputError:
    return InputError(
        f"Tables of Spark need {library}, which is not installed.",
        remedy="Install it: pip install 'margrave[spark]'.",
    )


def _not_started(error: Exception) -> InputError:
    if isinstance(error, ImportError):
        return InputError(
            "Spark Connect needs libraries that are not installed.",
            remedy="Install them: pip install 'pyspark[connect]'.",
        )
    if (server := os.environ.get("SPARK_REMOTE")) is not None:
        return InputError(
            f"Spark Connect could not reach the server of SPARK_REMOTE, {server.partition(';')[0]}.",
            remedy="Check the address, and that the server runs.",
        )
    home = os.environ.get("JAVA_HOME")
    java = which("java") if home is None else which(str(Path(home, "bin", "java")))
    if java is None:
        return InputError(
            "Spark needs Java, which was not found."
            if home is None
            else "Spark needs Java, and JAVA_HOME is a folder without it.",
            remedy="Install Java 17 or later, or name its folder in JAVA_HOME.",
        )
    return InputError(
        "Spark did not start.",
        remedy="Start it by itself: spark-sql -e 'SELECT 1' says why. Spark 4 needs Java 17 or later.",
    )


@contextmanager
def _silent_start() -> Iterator[None]:
    """Let a Java process that is started meanwhile inherit no output: Spark prints logs there."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {}
    try:
        for number in (1, 2):
            with suppress(OSError):  # it is closed
                kept[number] = os.dup(number)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for number in kept:
            os.dup2(nowhere, number)
        os.close(nowhere)
        yield
    finally:
        for number, own in kept.items():
            os.dup2(own, number)
            os.close(own)
