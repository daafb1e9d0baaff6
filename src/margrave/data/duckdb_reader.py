"""The library's only use of DuckDB: a connection that reads one file or database, and queries of users.

The path of a file says nothing about its rows: names of folders such as ``sex=F`` are not read as columns. The
connection opens the named file alone, loads no extension, writes no temporary file and prints no progress.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

#: Bytes of one record of a CSV file. A longer one is refused.
MAX_RECORD_BYTES = 1 << 24
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 2,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "temp_directory": "",
}
#: Options of every reader: columns come from the file alone, each by its own name.
FILE_ALONE = "hive_partitioning = false, filename = false, union_by_name = false"
PARQUET = f"read_parquet(?, {FILE_ALONE})"


class MemoryLimitError(Exception):
    """The file needs more memory than DuckDB has."""


def csv_call(columns: Sequence[str], separator: str, *, compressed: bool) -> str:
    """Return the call that reads a CSV file whose header has these columns, all as text.

    ``parallel = false``: the parallel scanner refuses quoted line ends at the edges of its buffers. Either scanner may
    drop the last record without an error: compare the rows with ``csv_records``.
    """
    types = ", ".join(f"{identifier(c)}: 'VARCHAR'" for c in columns)
    return (
        f"read_csv(?, auto_detect = false, header = true, delim = '{separator}', quote = '\"', escape = '\"',"
        f" columns = {{{types}}}, strict_mode = true, null_padding = false, ignore_errors = false,"
        f" encoding = 'utf-8', compression = '{'gzip' if compressed else 'none'}', parallel = false,"
        f" max_line_size = {MAX_RECORD_BYTES}, {FILE_ALONE})"
    )


def batches(path: Path, call: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read some columns of a file, some rows at a time."""
    query = f"SELECT {', '.join(map(identifier, columns))} FROM {call}"
    with connected(path) as connection:
        yield from _batches(connection.sql(query, params=[_plain_path(path)]))


def parquet_rows(path: Path) -> int:
    """Return the number of rows that the end of a Parquet file states."""
    with connected(path) as connection:
        found = connection.execute(
            "SELECT sum(num_rows) FROM parquet_file_metadata(?)", [_plain_path(path)]
        )
        return int((found.fetchone() or (0,))[0])


def table_columns(path: Path, table: str) -> list[str] | None:
    """Return the columns of a table or view in a database; None if there is none of that name."""
    with connected(path, database=True) as connection:
        names = connection.execute("SELECT table_name FROM information_schema.tables").fetchall()
        return connection.table(identifier(table)).columns if (table,) in names else None


def table_batches(path: Path, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read some columns of a table in a database, some rows at a time."""
    query = f"SELECT {', '.join(map(identifier, columns))} FROM {identifier(table)}"
    with connected(path, database=True) as connection:
        yield from _batches(connection.sql(query))


def table_rows(path: Path, table: str) -> int:
    """Return the number of rows of a table in a database."""
    with connected(path, database=True) as connection:
        found = connection.execute(f"SELECT count(*) FROM {identifier(table)}").fetchone()
        return int((found or (0,))[0])


def is_query(frame: object) -> bool:
    """Return True for a query or table of a connection of the user's."""
    return isinstance(frame, duckdb.DuckDBPyRelation)


def query_batches(relation: Any, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Run a query in its own connection, and read some of its columns, some rows at a time."""
    if len({name.lower() for name in relation.columns}) < len(relation.columns):
        raise ValueError("columns of one name but for case, of which the first is given for both")
    yield from _batches(relation.select(*map(duckdb.ColumnExpression, columns)))


def _batches(relation: duckdb.DuckDBPyRelation) -> Iterator[pa.RecordBatch]:
    batch_rows = 131_072
    yield from relation.to_arrow_reader(batch_rows)


def parquet_columns(path: Path) -> tuple[list[str], list[str]]:
    """Return the names of a Parquet file's columns: as DuckDB calls them, and as the file has them."""
    with connected(path) as connection:
        columns = connection.sql(f"SELECT * FROM {PARQUET}", params=[_plain_path(path)]).columns
        nodes = connection.execute(
            "SELECT name, num_children FROM parquet_schema(?)", [_plain_path(path)]
        )
        return columns, _outermost(nodes.fetchall())


def identifier(name: str) -> str:
    """Return the name of a column, quoted."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def connected(path: Path, *, database: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a connection that can read this file, or the tables of this database, and do nothing else."""
    # Set once the connection is open, in this order: nothing can be set after the last.
    locks = (
        "enable_progress_bar = false",
        "enable_external_access = false",
        "lock_configuration = true",
    )
    try:
        opened = (str(path), True) if database else (":memory:", False)
        with duckdb.connect(*opened, config=SETTINGS) as connection:
            if not database:
                allowed = [str(path.absolute()), _plain_path(path)]
                connection.execute("SET allowed_paths = ?", [allowed])
            for lock in locks:
                connection.execute(f"SET {lock}")
            yield connection
    except duckdb.OutOfMemoryException:
        raise MemoryLimitError from None


def _plain_path(path: Path) -> str:
    """Return the path with the signs that DuckDB takes for patterns made plain."""
    return re.sub(r"([\[*?])", r"[\1]", str(path.absolute()))


def _outermost(nodes: Sequence[tuple[str, int | None]]) -> list[str]:
    """Return the names of the outermost fields of a tree: the root, then each node before its children."""
    names, inside = [], 0
    for name, children in nodes[1:]:
        if inside == 0:
            names.append(name)
        inside += (children or 0) - (inside > 0)
    return names
