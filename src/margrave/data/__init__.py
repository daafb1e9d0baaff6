"""Tables of sensitive rows: read from files and frames, counted for the gate."""

from margrave.data.loading import (
    categories_in_rows,
    public_codes,
    read_codes,
    read_numbers,
    read_synthetic,
    read_table,
    synthetic_codes,
)
from margrave.data.readers import read_frame
from margrave.data.sources import TABLE_CATALOG, TableSource
from margrave.data.table import MemoryTable, Table

__all__ = [
    "TABLE_CATALOG",
    "MemoryTable",
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
