"""Check that the rows of a file are such as a release can draw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from margrave.error_sanitizer import hide_rows
from margrave.errors import InputError
from margrave.schema import Column, Date, Elapsed, Integer, Schema, Timestamp
from margrave.schema.numeric import UNITS
from margrave.schema.parsing import DateReader
from margrave.schema.text_moments import moments


@hide_rows
def check_drawable(path: Path, schema: Schema) -> None:
    """Raise ``InputError`` if a file has a value or a row that a release of this schema cannot draw.

    Args:
        path: A file of CSV or Parquet, with the columns of the schema.
        schema: The schema of the release.
    """
    drawn = _schema_of_drawn(schema)
    for batch in _batches(path, schema):
        table = pa.Table.from_batches([batch])
        _, found = drawn.read(table)
        for column in found.columns:
            missing = column.empty and not column.home
            if missing or column.outside or column.unreadable:
                raise _not_drawn(f"column {column.name!r} of {path} has a value")
        for name in _finer(drawn, table):
            raise _not_drawn(f"column {name!r} of {path} has a value")
        for constraint in found.constraints:
            if constraint.rows:
                raise _not_drawn(f"{path} violates constraint {constraint.name}, so it has a row")


def _not_drawn(what: str) -> InputError:
    return InputError(
        f"{what[0].upper()}{what[1:]} that the release cannot draw.",
        remedy="Name a file that was drawn from it (margrave sample RELEASE -o FILE), and not the real table.",
    )


def _schema_of_drawn(schema: Schema) -> Schema:
    """Return the schema with which drawn rows are read: their dates are ISO 8601, and none has a missing-value code."""
    read = schema.for_reading_output()
    columns: list[Column] = [
        replace(c, format=None) if isinstance(c, Date | Timestamp | Elapsed) else c
        for c in read.columns
    ]
    sources = {name: replace(s, missing_codes=()) for name, s in read.sources.items()}
    return replace(read, columns=tuple(columns), sources=sources)


def _finer(schema: Schema, table: pa.Table) -> Iterator[str]:
    """Yield the columns with a value between two that can be drawn: a part of a unit of whole numbers or times."""
    for column in schema.output_columns:
        for piece in table.column(column.name).chunks:
            if isinstance(column, Timestamp):
                points, step = moments(piece, 1, DateReader())[0], UNITS[column.unit]
            elif isinstance(column, Integer) and not isinstance(column, Elapsed):
                points, step = column.points(piece)[0], 1
            else:
                continue
            if (np.nan_to_num(points) % step != 0).any():
                yield column.name


def _batches(path: Path, schema: Schema) -> Iterator[pa.RecordBatch]:
    try:
        if path.suffix.lower() == ".parquet":
            with pa.parquet.ParquetFile(path) as file:
                yield from file.iter_batches()
            return
        texts = pa.csv.ConvertOptions(
            column_types={c.name: pa.string() for c in schema.output_columns},
            null_values=[""],
            strings_can_be_null=True,
        )
        with path.open("rb") as file, pa.csv.open_csv(file, convert_options=texts) as reader:
            yield from reader
    except (OSError, pa.ArrowException):
        raise unreadable(path) from None


def unreadable(path: Path) -> InputError:
    """Return the error for a file that is not a table in CSV or Parquet."""
    return InputError(f"The file {path} cannot be read.", remedy="Name a table in CSV or Parquet.")
