"""Write rows to files of Parquet and CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from margrave._io import written_whole
from margrave.schema import Schema, Timestamp

NUMBER = r"\A[-+]?[0-9]+([.,][0-9]+)?([eE][-+]?[0-9]+)?\z"


def write_table(
    table: pa.Table,
    path: str,
    *,
    overwrite: bool,
    schema: Schema | None = None,
    excel_safe: bool = False,
) -> None:
    """Write rows to Parquet or CSV by the file's ending, whole or not at all.

    ``schema`` defines which times of a CSV file are days.
    """
    with written_whole(path, overwrite=overwrite) as temporary, temporary.open("wb") as file:
        if (
            Path(path).suffix.lower() == ".csv"
        ):  # to an open file: Arrow takes some paths, such as http:/x, for a URI
            plain = _plain_times(table, schema)
            pyarrow.csv.write_csv(without_formulas(plain) if excel_safe else plain, file)
        else:
            pyarrow.parquet.write_table(table, file, compression="zstd")


def without_formulas(table: pa.Table) -> pa.Table:
    """Return the table with texts and column names that no spreadsheet takes for formulas."""
    for i, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            table = table.set_column(i, field.name, _quoted(table.column(i).cast(pa.string())))
    return table.rename_columns(_quoted(pa.array(table.column_names, pa.string())).to_pylist())


def _quoted(texts: Any) -> Any:
    # Beginnings of texts that spreadsheets run. Apostrophes before one are kept apart from the
    # one that is added.
    formula = r"\A'*[=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]"
    runs = pc.and_not(
        pc.match_substring_regex(texts, formula), pc.match_substring_regex(texts, NUMBER)
    )
    return pc.if_else(runs, pc.binary_join_element_wise("'", texts, ""), texts)


def _plain_times(table: pa.Table, schema: Schema | None) -> pa.Table:
    known = () if schema is None else schema.columns
    days = {c.name for c in known if isinstance(c, Timestamp) and c.unit == "day"}
    for i, field in enumerate(table.schema):
        if not pa.types.is_timestamp(field.type):
            continue
        column = table.column(i)
        for kind in (
            *([pa.date32()] if field.name in days else []),
            pa.timestamp("s", field.type.tz),
        ):
            shorter = column.cast(kind, safe=False)
            if shorter.cast(field.type).equals(column):  # else some value has more to it
                table = table.set_column(i, field.name, shorter)
                break
    return table
