"""Sources that give their rows in batches, again and again: files, folders, patterns, databases, queries, streams."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from margrave._io import database_of, files_of, sheet_of
from margrave.data import duckdb_reader
from margrave.data.formats import FormattedFile
from margrave.data.readers import File, no_sheets, open_file
from margrave.data.spark_frames import spark_frame
from margrave.data.spark_scans import spark_batches
from margrave.error_sanitizer import hide_rows
from margrave.errors import DataError, InputError
from margrave.frames import names_of, reopened, run_engine

T = TypeVar("T")


class BatchSource(Protocol):
    """Rows that can be read again and again."""

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns."""
        ...

    def rows(self) -> int | None:
        """Return the number of rows if it is known without reading them."""
        ...

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of some columns, from the beginning."""
        ...


@dataclass(frozen=True)
class StreamSource:
    """A table that a function opens anew for each scan. `synthesize` takes one for a path.

    Args:
        open: Returns an object with ``__arrow_c_stream__``, or an iterable of record batches or of such objects: all
            rows, from the beginning, in any order.

    Privacy:
        None spent. The function runs where the rows are, so it is trusted with them.

    Example:
        >>> rows = pa.table({"a": [0, 1]})
        >>> StreamSource(lambda: rows.to_batches()).columns
        ['a']
    """

    open: Callable[[], Any] = field(repr=False)
    _last: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return run_engine(lambda: next(iter(_stream(self._opened())), pa.table({})).schema.names)

    def rows(self) -> None:
        """Return None: the number of rows is not known without reading them."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of some columns, from the beginning."""
        yield from each_of_engine(
            lambda: (batch.select(list(columns)) for batch in _stream(self._opened()))
        )

    def _opened(self) -> Any:
        opened = self.open()
        if isinstance(opened, pa.RecordBatchReader | Iterator):
            if any(opened is last for last in self._last):
                raise DataError(
                    "The function of a StreamSource opened the same stream twice, and a stream can be read once only.",
                    remedy="Open it within the function.",
                )
            self._last[:] = [opened]
        return opened


def _stream(opened: Any) -> Iterator[pa.RecordBatch]:
    if hasattr(opened, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(opened)
        yield pa.RecordBatch.from_pylist(
            [], schema=reader.schema
        )  # a table without rows has columns
        yield from reader
        return
    for part in opened:
        yield from [part] if isinstance(part, pa.RecordBatch) else _stream(part)


@dataclass(frozen=True)
class Files:
    """Several files of the same columns, read one after another."""

    files: tuple[File | FormattedFile, ...]

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns, as in the first file."""
        return self.files[0].columns

    def rows(self) -> int | None:
        """Return the number of rows that the files state; None if one does not."""
        found = [file.rows() for file in self.files]
        return None if None in found else sum(n or 0 for n in found)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of some columns, file by file."""
        for file in self.files:
            yield from file.batches(columns)


@dataclass(frozen=True)
class DatabaseTable:
    """A table of a DuckDB database, which is opened for reading only."""

    path: Path
    table: str
    columns: tuple[str, ...]

    def rows(self) -> int:
        """Return the number of rows."""
        return run_engine(lambda: duckdb_reader.table_rows(self.path, self.table))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of some columns."""
        yield from each_of_engine(
            lambda: duckdb_reader.table_batches(self.path, self.table, columns)
        )


@dataclass(frozen=True)
class Query:
    """A query or lazy frame of the user's, which is run anew for each scan."""

    frame: Any = field(repr=False)
    run: Callable[[Sequence[str]], Iterator[pa.RecordBatch]] = field(repr=False)

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns."""
        return names_of(self.frame)

    def rows(self) -> None:
        """Return None: the number of rows is not known without reading them."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of some columns."""
        yield from each_of_engine(lambda: self.run(columns), self.frame)


@dataclass(eq=False)
class KeptBatches:
    """A source whose first reading is kept in memory for those that follow, if it is whole and has few rows.

    Args:
        source: The source.
        max_rows: The number of rows up to which they are kept.
    """

    source: BatchSource
    max_rows: int
    _kept: list[pa.RecordBatch] = field(default_factory=list, init=False, repr=False)
    _names: frozenset[str] | None = field(default=None, init=False, repr=False)

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns."""
        return self.source.columns

    def rows(self) -> int | None:
        """Return the number of rows if it is known without reading them."""
        return self.source.rows()

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of some columns, from the beginning."""
        if self._names is not None and self._names.issuperset(columns):
            yield from (batch.select(list(columns)) for batch in self._kept)
            return
        kept, rows = list[pa.RecordBatch](), 0
        for batch in self.source.batches(columns):
            rows += batch.num_rows
            kept = [*kept, batch] if rows <= self.max_rows else []
            yield batch
        if rows <= self.max_rows:
            self._kept, self._names = kept, frozenset(columns)


def open_source(source: Any, expected: Sequence[str] = ()) -> BatchSource | None:
    """Return the batches of a table; None for a frame, whose rows are in memory.

    ``expected`` column names decide the separator of an ambiguous CSV header.
    """
    opened = File | FormattedFile | Files | DatabaseTable | Query | StreamSource | KeptBatches
    if isinstance(source, opened):
        return source
    if (frame := spark_frame(source)) is not None:
        return Query(frame, lambda c: spark_batches(frame, c))
    if isinstance(source, str | PathLike):
        database = database_of(source)
        return _paths(source, expected) if database is None else _database(*database)
    if duckdb_reader.is_query(source):
        return Query(source, lambda c: duckdb_reader.query_batches(source, c))
    if (lazy := reopened(source)) is not None:
        return Query(source, lambda c: _stream(lazy(c)))
    return None


def _paths(source: str | PathLike[str], expected: Sequence[str]) -> BatchSource:
    if not os.fspath(source):
        raise DataError(
            "The name of the table is empty.",
            remedy="Name a file, a folder of files, or a pattern such as 'data/*.parquet'.",
        )
    path, files = Path(source), files_of(source)
    if (sheet := sheet_of(source)) is not None:
        return open_file(sheet[0], expected, sheet[1])
    if files == (path,):
        return open_file(path, expected)
    if (named := re.fullmatch(r"(.+)\?sheet=.*", str(source))) is not None:
        raise no_sheets(named[1])
    if not files:
        raise DataError(
            f"{path} is a folder without files." if path.is_dir() else f"No file matches {path}.",
            remedy="Name a file, a folder of files, or a pattern such as 'data/*.parquet'.",
        )
    if any(map(os.path.isdir, files)):
        raise DataError(
            f"{path} has folders in it, and the names of folders are not read as columns.",
            remedy="Name the files: a folder without others in it, or a pattern.",
        )
    opened = tuple(open_file(file, expected) for file in files)
    for file in opened:
        if set(file.columns) != set(opened[0].columns):
            raise DataError(  # not by their names: without a header, they would be values
                f"{file.path} has other columns than {opened[0].path}.",
                remedy="Files of one table have the same columns. Name only these files, by a folder or a pattern.",
            )
    return Files(opened) if len(opened) > 1 else opened[0]


def _database(file: str, table: str) -> DatabaseTable:
    path = Path(file)
    if not path.is_file():
        raise DataError(
            f"The database {path} cannot be read: no such file.", remedy="Check the path."
        )
    try:
        columns = duckdb_reader.table_columns(path, table)
    except Exception:  # the engine's own
        columns = []
    if columns == []:
        raise DataError(
            f"{path} cannot be opened as a DuckDB database.",
            remedy="Is it one, of this version or an older one, and does no program write to it?",
        )
    if columns is None:
        raise DataError(
            f"The database {path} has no table {table!r}.",
            remedy="Name one that it has: duckdb:FILE?table=NAME.",
        )
    return DatabaseTable(path, table, tuple(columns))


def each_of_engine(work: Callable[[], Iterator[T]], frame: Any = None) -> Iterator[T]:
    """Yield what an engine yields, with its errors as in ``run_engine``."""
    parts = run_engine(work, frame)
    nothing = object()
    while (part := run_engine(lambda: next(parts, nothing), frame)) is not nothing:
        yield part  # type: ignore[misc]


@hide_rows
def read_frame(source: Any) -> pa.Table:
    """Return a whole table in files or batches (CSV as text) as an Arrow table, for drafting and for evaluation.

    Privacy:
        NOT private; these are the rows.
    """
    return _table(source)


@hide_rows
def sampled_frame(
    source: Any, columns: Sequence[str] | None = None, *, rows: int = 1_000_000
) -> pa.Table:
    """Return about so many rows at most: every so many batches, or the first ones if the source states no row count.

    Privacy:
        NOT private; these are rows.
    """
    found = open_source(source, columns or ())
    stated = None if found is None else found.rows()
    every = 1 if stated is None else -(-stated // rows)
    return _table(source, columns, max(every, 1), rows)


def _table(
    source: Any, columns: Sequence[str] | None = None, every: int = 1, most: int | None = None
) -> pa.Table:
    found = open_source(source, columns or ())
    if found is None:
        raise InputError("This is not a table in files or batches.", remedy="Give a path.")
    wanted = list(found.columns if columns is None else columns)
    pieces: list[pa.Table] = []
    for i, batch in enumerate(found.batches(wanted)):
        if i % every == 0:
            pieces.append(pa.Table.from_batches([batch]))
        if most is not None and sum(p.num_rows for p in pieces) >= most:
            break
    nothing = pa.table({c: pa.nulls(0, pa.string()) for c in wanted})
    return pa.concat_tables(pieces, promote_options="permissive") if pieces else nothing
