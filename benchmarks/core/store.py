"""Results on disk: one Parquet file per suite, one row per run."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Row = dict[str, Any]

EXACT = ("scale", "delta")
"""Fields that keep all their digits; other numbers are stored to nine."""


class Store:
    """The runs of one suite.

    A row has the columns of its cell (``task``, ``contender``, ``setting``, ``epsilon``,
    ``repeat``), of its origin (``date``, ``commit``, ``dirty``, ``version``, ``machine``,
    ``load``), its ``outcome``, and whatever the suite measures. Nested values are Arrow structs
    and lists, so that other tools can query them.

    The whole file is written anew each time, and read again only after it changed. Where many runs
    take milliseconds, ``wait_s`` holds rows back so long and writes them together; ``flush`` writes
    those that wait.
    """

    def __init__(self, path: Path, *, wait_s: float = 0.0) -> None:
        self.path, self.wait_s = path, wait_s
        self._waiting: list[Row] = []
        self._written = time.monotonic()
        self._read: tuple[Any, list[Row]] = (None, [])

    def rows(self) -> list[Row]:
        """Return the rows, oldest first. A missing value is absent from its row."""
        return [*self._stored(), *self._waiting]

    def add(self, row: Row) -> None:
        """Append one row. Several processes may add to the same file."""
        self._waiting.append(as_read(nine_digits(row)))
        if time.monotonic() - self._written >= self.wait_s:
            self.flush()

    def flush(self) -> None:
        """Write the rows that wait."""
        if self._waiting:
            with self._locked():
                self.write(self.rows())
            self._waiting, self._written = [], time.monotonic()

    def _stored(self) -> list[Row]:
        if not self.path.exists():
            return []
        found = self.path.stat()
        stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
        if stamp != self._read[0]:
            self._read = stamp, [as_read(row) for row in pq.read_table(self.path).to_pylist()]
        return self._read[1]

    def write(self, rows: Sequence[Row]) -> None:
        """Replace the file, in one step, by these rows."""
        names = dict.fromkeys(name for row in rows for name in row)
        clean = [without_nulls(row) for row in rows]
        table = pa.table({name: pa.array([row.get(name) for row in clean]) for name in names})
        fill_marks = [name for name in table.column_names if table[name].null_count < len(rows)]
        partial = self.path.with_suffix(".partial")
        pq.write_table(table.select(fill_marks), partial, compression="zstd")
        partial.replace(self.path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def as_read(row: Row) -> Row:
    """Return a row without missing values, but with its setting."""
    known = without_nulls(row)
    return {**known, "setting": known.get("setting", {})}


def without_nulls(value: Any) -> Any:
    """Return a value without the empty entries of its dictionaries, at any depth."""
    if isinstance(value, dict):
        entries = {key: without_nulls(entry) for key, entry in value.items() if entry is not None}
        return {key: entry for key, entry in entries.items() if entry != {}}
    return [without_nulls(entry) for entry in value] if isinstance(value, list) else value


def nine_digits(value: Any) -> Any:
    """Return plain data whose numbers have nine digits, except the fields of ``EXACT``."""
    if isinstance(value, dict):
        return {key: v if key in EXACT else nine_digits(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [nine_digits(entry) for entry in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value
