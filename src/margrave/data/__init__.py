"""Tables of sensitive rows: read from files and frames, counted for the gate."""

from margrave.data.files import read_frame
from margrave.data.reading import (
    categories_in_rows,
    check_table,
    draft_schema,
    public_codes,
    read_codes,
    read_numbers,
    read_synthetic,
    read_table,
    synthetic_codes,
)
from margrave.data.table import MemoryTable, Table

__all__ = [
    "MemoryTable",
    "Table",
    "categories_in_rows",
    "check_table",
    "draft_schema",
    "public_codes",
    "read_frame",
    "read_codes",
    "read_numbers",
    "read_synthetic",
    "read_table",
    "synthetic_codes",
]
