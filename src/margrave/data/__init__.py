"""Tables of sensitive rows: read from files and frames, counted for the gate."""

from margrave.data.batch_sources import StreamSource, read_frame
from margrave.data.batch_table import BatchTable
from margrave.data.loading import (
    categories_in_rows,
    public_codes,
    read_codes,
    read_numbers,
    read_synthetic,
    read_table,
    synthetic_codes,
)
from margrave.data.sources import TABLE_CATALOG, TableSource
from margrave.data.table import LearnableTable, MemoryTable, Table

__all__ = [
    "TABLE_CATALOG",
    "BatchTable",
    "LearnableTable",
    "MemoryTable",
    "StreamSource",
    "Table",
    "TableSource",
    "categories_in_rows",
    "public_codes",
    "read_frame",
    "read_codes",
    "read_numbers",
    "read_synthetic",
    "read_table",
    "synthetic_codes",
]
