"""Write rows to files, in the format that the ending names."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from margrave._io import written_whole
from margrave.data import file_limits, statistical_writer, workbook_writer
from margrave.data.file_columns import FileColumn, file_columns, plain_times
from margrave.data.file_limits import FileLimits, check_columns, check_schema
from margrave.errors import InputError
from margrave.schema import Schema

NUMBER = r"\A[-+]?[0-9]+([.,][0-9]+)?([eE][-+]?[0-9]+)?\z"


@dataclass(frozen=True)
class RowFormat:
    """A format of rows.

    Args:
        write: Writes a table with its schema, if any, to a path.
        library: Imports the library that writes it, or raises ``InputError``.
        limits: What a file of it can hold; None if it holds every table.
        name: Its name in a list to choose from; "" if the list leaves it out.
    """

    write: Callable[[pa.Table, Schema | None, Path], None]
    library: Callable[[], object] = lambda: None
    limits: FileLimits | None = None
    name: str = ""


def check_format(path: str | None) -> None:
    """Raise ``InputError`` unless rows can be written in the format that the ending of a file names.

    Args:
        path: The file, or None.

    Raises:
        InputError: The ending is not one of those that are written, or the library that writes it is not installed.

    Privacy:
        None spent: reads the name alone.

    Example:
        >>> check_format("rows.sas7bdat")
        Traceback (most recent call last):
        ...
        margrave.errors.InputError: rows.sas7bdat does not end in .parquet, ... or .sav. Name it so: rows.parquet.
    """
    if path is not None:
        _format_of(path).library()


def check_holds(path: str | None, schema: Schema, rows: int | None = None) -> None:
    """Raise ``InputError`` if the format of the file cannot hold the schema's columns, or this number of rows.

    Args:
        path: The file, or None.
        schema: The schema of the rows, which may be learned in part.
        rows: The number of rows; None if it is not known.

    Privacy:
        None spent: reads the schema alone.

    Example:
        >>> check_holds("rows.xlsx", Schema.coded({"age": 9}), 2_000_000)
        Traceback (most recent call last):
        ...
        margrave.errors.InputError: A sheet of Excel holds 1,048,575 rows below the names, and 2,000,000 rows ...
    """
    limits = None if path is None else _format_of(path).limits
    if limits is not None:
        check_schema(limits, schema, rows)


def endings_in_words() -> str:
    """Return the endings of the files that rows are written to.

    >>> endings_in_words()
    '.parquet, .csv, .feather, .arrow, .jsonl, .ndjson, .xlsx, .dta or .sav'
    """
    *some, last = _formats()
    return f"{', '.join(some)} or {last}"


def named_formats() -> dict[str, str]:
    """Return the formats that people choose from: their endings, with their names.

    >>> named_formats()
    {'.parquet': 'Parquet', '.csv': 'CSV', '.xlsx': 'Excel', '.dta': 'Stata', '.sav': 'SPSS'}
    """
    return {ending: found.name for ending, found in _formats().items() if found.name}


def write_table(
    table: pa.Table,
    path: str,
    *,
    overwrite: bool,
    schema: Schema | None = None,
    excel_safe: bool = False,
) -> None:
    """Write rows in the format that the ending of the file names, whole or not at all.

    Args:
        table: The rows.
        path: The file.
        overwrite: Whether a file of that name is replaced.
        schema: The schema of the rows: its titles and value labels, and which times are days.
        excel_safe: Whether texts that a spreadsheet runs as formulas get an apostrophe. For CSV.

    Raises:
        InputError: The file cannot be written, or its format cannot hold the rows.

    Privacy:
        None spent: for rows that are public.
    """
    with written_whole(path, overwrite=overwrite) as temporary:
        rows = without_formulas(table) if excel_safe else table
        _format_of(path).write(rows, schema, temporary)


def without_formulas(table: pa.Table) -> pa.Table:
    """Return the table with texts and column names that no spreadsheet takes for formulas."""
    for i, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            table = table.set_column(i, field.name, _quoted(table.column(i).cast(pa.string())))
    return table.rename_columns(_quoted(pa.array(table.column_names, pa.string())).to_pylist())


def _formats() -> dict[str, RowFormat]:
    """Return the formats that rows are written in, by ending."""
    arrow, lines = RowFormat(_write_arrow), _of_columns(_write_lines, file_limits.json_limits())
    excel = _of_columns(
        workbook_writer.write_workbook, file_limits.excel_limits(), workbook_writer.library,
        name="Excel",
    )  # fmt: skip
    stata, spss = (
        _of_columns(write, limits, statistical_writer.libraries, as_numbers=True, name=name)
        for write, limits, name in (
            (statistical_writer.write_stata, file_limits.stata_limits(), "Stata"),
            (statistical_writer.write_spss, file_limits.spss_limits(), "SPSS"),
        )
    )
    return {
        ".parquet": RowFormat(_write_parquet, name="Parquet"), ".csv": RowFormat(_write_csv, name="CSV"),
        ".feather": arrow, ".arrow": arrow, ".jsonl": lines, ".ndjson": lines,
        ".xlsx": excel, ".dta": stata, ".sav": spss,
    }  # fmt: skip


def _format_of(path: str) -> RowFormat:
    found = _formats().get(Path(path).suffix.lower())
    if found is None:
        name = Path(Path(path).stem)  # rows.csv of rows.csv.gz
        inner = f"{name} or " if name.suffix.lower() in {*_formats()} - {".parquet"} else ""
        stem = name.stem if inner else name
        raise InputError(
            f"{path} does not end in {endings_in_words()}.",
            remedy=f"Name it so: {inner}{stem}.parquet.",
        )
    return found


def _of_columns(
    write: Callable[[Sequence[FileColumn], Path], None],
    limits: FileLimits,
    library: Callable[[], object] = lambda: None,
    *,
    as_numbers: bool = False,
    name: str = "",
) -> RowFormat:
    writes = partial(_write_columns, write=write, limits=limits, as_numbers=as_numbers)
    return RowFormat(writes, library, limits, name)


def _write_columns(
    table: pa.Table,
    schema: Schema | None,
    path: Path,
    *,
    write: Callable[[Sequence[FileColumn], Path], None],
    limits: FileLimits,
    as_numbers: bool,
) -> None:
    columns = file_columns(table, schema, as_numbers=as_numbers)
    check_columns(limits, columns)
    write(columns, path)


# Arrow writes to open files: it takes some paths, such as http:/x, for a URI.


def _write_parquet(table: pa.Table, _: Schema | None, path: Path) -> None:
    with path.open("wb") as file:
        pyarrow.parquet.write_table(table, file, compression="zstd")


def _write_csv(table: pa.Table, schema: Schema | None, path: Path) -> None:
    with path.open("wb") as file:
        pyarrow.csv.write_csv(plain_times(table, schema), file)


def _write_arrow(table: pa.Table, _: Schema | None, path: Path) -> None:
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with path.open("wb") as file, pa.ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table)


def _write_lines(columns: Sequence[FileColumn], path: Path) -> None:
    chunk_rows = 10_000
    names = [c.name for c in columns]
    rows = len(columns[0].values) if columns else 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for start in range(0, rows, chunk_rows):
            parts = [c.values.slice(start, chunk_rows).to_pylist() for c in columns]
            for row in zip(*parts, strict=True):
                record = dict(zip(names, row, strict=True))
                file.write(json.dumps(record, ensure_ascii=False, default=_iso) + "\n")


def _iso(value: Any) -> str:
    return str(value.isoformat())


def _quoted(texts: Any) -> Any:
    # Beginnings of texts that spreadsheets run. Apostrophes before one are kept apart from the
    # one that is added.
    formula = r"\A'*[=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]"
    runs = pc.and_not(
        pc.match_substring_regex(texts, formula), pc.match_substring_regex(texts, NUMBER)
    )
    return pc.if_else(runs, pc.binary_join_element_wise("'", texts, ""), texts)
