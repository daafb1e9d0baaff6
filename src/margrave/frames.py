"""Columns of any data frame, as Arrow arrays. Frames of every kind that narwhals reads come through here."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
import pyarrow as pa
from narwhals.exceptions import DuplicateError

from margrave.errors import DataError, MargraveError
from margrave.schema.parsing import arrow_of, chunks

T = TypeVar("T")
Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]

STREAM = (
    "A stream can be read once only. Read it first: reader.read_all(). Or give a function that opens it anew:"
    " margrave.data.StreamSource(open)."
)
#: Remedies by the name of a type that holds a table but is not a data frame.
NOT_YET = {
    "RecordBatchReader": STREAM,
    "RecordBatch": "Make it a table: pyarrow.Table.from_batches([batch]).",
    "Dataset": "Give a function that scans it: margrave.data.StreamSource(lambda: dataset.scanner().to_reader()).",
    "Scanner": "Read it first: scanner.to_table().",
    **dict.fromkeys(
        ("Connection", "Cursor"),
        "Give a function that runs the query anew and gives Arrow batches: margrave.data.StreamSource(open).",
    ),
    "DuckDBPyConnection": 'Name a table or a query of it: connection.table("visits") or connection.sql("...").',
    "SparkSession": 'Name a table or a query of it: spark.table("visits") or spark.sql("...").',
}


def names_of(frame: Any, needed: Sequence[str] = ()) -> list[str]:
    """Return the names of a frame's columns, each of which is there once. None of the needed ones may be its index."""
    names = run_engine(lambda: _names(_wrapped(frame)), frame)
    _check_index(frame, [n for n in needed if n not in names])
    return names


def _check_index(frame: Any, absent: Sequence[str]) -> None:
    native = nw.to_native(frame, pass_through=True)
    pandas = nw.dependencies.is_pandas_dataframe(native)
    if index := [repr(n) for n in absent if pandas and n in native.index.names]:
        are = "s {} are" if len(index) > 1 else " {} is"
        raise DataError(
            f"Column{are.format(', '.join(index))} the index of the frame.",
            remedy="Pass df.reset_index().",
        )


def columns_of(frame: Any, names: Sequence[str]) -> dict[str, list[pa.Array]]:
    """Return the named columns, each in one or more pieces. Their rows stay in order."""
    return run_engine(lambda: _read(_wrapped(frame), names), frame)


def each_column(frame: Any, names: Sequence[str]) -> Iterator[tuple[str, list[pa.Array]]]:
    """Yield the named columns in turn. A query is run for several of them at a time."""
    columns_at_once = 16
    size = (
        columns_at_once
        if run_engine(lambda: isinstance(_wrapped(frame), nw.LazyFrame), frame)
        else 1
    )
    for start in range(0, len(names), size):
        yield from columns_of(frame, names[start : start + size]).items()


def release_memory() -> None:
    """Return to the system the memory that Arrow keeps for further columns: other libraries cannot use it."""
    pa.default_memory_pool().release_unused()


def collected(frame: Any, names: Sequence[str]) -> pa.Table:
    """Return the named columns, read once: a frame that is a query may give its rows in another
    order the next time.
    """
    pieces = columns_of(frame, names)
    return pa.Table.from_arrays([pa.chunked_array(p) for p in pieces.values()], names=list(pieces))


def row_count(frame: Any) -> int | None:
    """Return the true number of rows of a frame in memory; None for any other table.

    >>> row_count(pa.table({"age": [31, 64]})), row_count("visits.csv")
    (2, None)
    """
    try:
        return len(nw.from_native(frame, eager_only=True))
    except Exception:  # the reader of the table reports what is wrong with it
        return None


def reopened(frame: Any) -> Callable[[Sequence[str]], Any] | None:
    """Return a function that runs a lazy frame of Polars anew and gives its batches; None for another frame."""
    if not (nw.dependencies.is_polars_lazyframe(frame) and hasattr(frame, "collect_batches")):
        return None
    return lambda columns: frame.select(list(columns)).collect_batches()


def _wrapped(frame: Any) -> Frame:
    try:
        wrapped: Frame = nw.from_native(frame)
        return wrapped
    except TypeError:
        raise _NoFrame from None


def _names(frame: Frame) -> list[str]:
    _check_text_names(nw.to_native(frame))
    if _places(nw.to_native(frame)) is not None:
        raise DuplicateError
    return list(frame.collect_schema().names())


def _check_text_names(native: Any) -> None:
    """Raise ``DataError`` for a pandas frame with names of columns that are not text."""
    if not nw.dependencies.is_pandas_dataframe(native):
        return
    other = next((type(n).__name__ for n in native.columns if not isinstance(n, str)), None)
    if getattr(native.columns, "nlevels", 1) > 1:
        raise DataError(
            f"The table's columns have names of {native.columns.nlevels} levels (a MultiIndex). margrave needs one text"
            " for each.",
            remedy='Join them: df.columns = ["_".join(map(str, c)) for c in df.columns].',
        )
    if other is not None:
        raise DataError(
            f"The table has a column whose name is of type {other}. margrave needs texts.",
            remedy="Name the columns, or use df.columns = df.columns.map(str).",
        )


def _read(frame: Frame, names: Sequence[str]) -> dict[str, list[pa.Array]]:
    spark = (nw.Implementation.PYSPARK, nw.Implementation.PYSPARK_CONNECT)
    found = set(_names(frame))
    absent = [n for n in names if n not in found]
    if absent:
        _check_index(frame, absent)
        them = "it" if len(absent) == 1 else "them"
        raise DataError(
            f"The table has no column {', '.join(map(repr, absent))}, which the schema names.",
            remedy=f"Add {them} to the table, or take {them} out of the schema.",
        )
    chosen = frame.select(list(names))
    if (
        frame.implementation in spark
    ):  # its times are moments, which it shows in the zone of the session
        zoned = [
            n
            for n, kind in chosen.collect_schema().items()
            if getattr(kind, "time_zone", None) is not None
        ]
        chosen = chosen.with_columns(nw.col(n).dt.replace_time_zone(None) for n in zoned)
    eager = chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen
    return {name: _pieces(eager[name]) for name in names}


def _pieces(series: nw.Series[Any]) -> list[pa.Array]:
    if _objects(getattr(series.to_native(), "dtype", None)):
        return [_of_objects(series.to_list())]
    try:
        return chunks(series.to_arrow())
    except (pa.ArrowException, TypeError, ValueError):
        return [_of_objects(series.to_list())]


def _objects(kind: Any) -> bool:
    inner = getattr(getattr(kind, "categories", None), "dtype", kind)
    return bool(kind == np.dtype(object)) or str(inner).startswith(("period", "interval"))


def _of_objects(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values, pa.string(), from_pandas=True)  # quick, where all are text
    except (pa.ArrowException, TypeError, ValueError):
        return arrow_of(values)


def _places(native: Any, *, blind: bool = False) -> tuple[int, int] | None:
    if nw.dependencies.is_polars_lazyframe(
        native
    ):  # has no two, and would have to work out its names
        return None
    names = getattr(native, "column_names", None)  # of Spark Connect, an expression
    names = list(names if isinstance(names, list) else native.columns)
    names = [str(n).lower() for n in names] if blind else names
    first: dict[Any, int] = {}
    for i, name in enumerate(names, 1):
        if first.setdefault(name, i) != i:
            return first[name], i
    return None


def _twice(frame: Any, *, blind: bool = False) -> str:
    try:
        found = _places(nw.to_native(frame, pass_through=True), blind=blind)
    except Exception:  # an engine's own
        return ""
    return "" if found is None else f": columns {found[0]} and {found[1]} have the same"


class _NoFrame(Exception):
    """The argument is not a table."""


def run_engine(work: Callable[[], T], frame: Any = None) -> T:
    """Return the result of work by an engine. Its own error may quote rows, so none is passed on."""
    try:
        with unlogged():
            return work()
    except (MargraveError, MemoryError):
        raise
    except DuplicateError:
        failure = _duplicate(_twice(frame))
    except _NoFrame:
        failure = _no_table(frame)
    except Exception:
        twice = _twice(frame, blind=True)
        failure = (
            _duplicate(f"{twice}, but for case")
            if twice
            else DataError(
                "The table could not be read by its engine.",
                remedy="Try to read all of it there first.",
            )
        )
    raise failure


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep pyspark from logging its errors meanwhile: it prints their texts, which may quote rows.

    Its warnings of versions of other libraries are left out too.
    """
    library = sys.modules.get("pyspark.logger")
    names = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging")
    loggers = [] if library is None else [library.PySparkLogger.getLogger(name) for name in names]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        with warnings.catch_warnings() if "pyspark" in sys.modules else nullcontext():
            if "pyspark" in sys.modules:
                warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
            yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _duplicate(where: str) -> DataError:
    return DataError(
        f"This is not a table with distinct column names{where}.",
        remedy="Rename one of the two, or leave it out.",
    )


def _no_table(frame: Any) -> DataError:
    remedy = next((NOT_YET[c.__name__] for c in type(frame).__mro__ if c.__name__ in NOT_YET), None)
    return DataError(
        f"This is not a table that can be read: its type is {type(frame).__name__}.",
        remedy=remedy
        or "Give a path to a file, or a frame of pandas, Polars, PyArrow, DuckDB, Spark, Dask or Ray.",
    )
