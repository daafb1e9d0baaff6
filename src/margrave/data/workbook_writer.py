"""Rows in a workbook of Excel: a sheet of rows, in which no text is a formula, and a sheet of titles and labels."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from margrave.data.file_columns import FileColumn
from margrave.errors import InputError


def library() -> Any:
    """Return xlsxwriter.

    Raises:
        InputError: It is not installed.
    """
    try:
        import xlsxwriter
    except ImportError:
        raise InputError(
            "Workbooks of Excel are written with a library that is not installed, XlsxWriter.",
            remedy="Install it: pip install 'margrave[formats]'.",
        ) from None
    return xlsxwriter


def write_workbook(columns: Sequence[FileColumn], path: Path) -> None:
    """Write columns to the sheet "rows", and their titles and labels, if any, to the sheet "columns"."""
    xlsxwriter = library()
    from xlsxwriter.exceptions import XlsxWriterException

    with TemporaryDirectory() as folder:
        options = {
            "constant_memory": True,
            "tmpdir": folder,
            "use_zip64": True,
            "strings_to_formulas": False,
            "strings_to_urls": False,
            "strings_to_numbers": False,
        }
        book = xlsxwriter.Workbook(str(path.absolute()), options)
        try:
            _write_rows(book, columns)
            _write_columns(book, columns)
            book.close()
        except XlsxWriterException as error:
            causes = [e for e in error.args if isinstance(e, OSError)]
            raise (causes or [OSError(errno.EIO, str(error))])[0] from None


class _Exact(float):
    """A number that the library writes in full, not in sixteen digits."""

    def __format__(self, _: str) -> str:
        return repr(float(self)).upper()


def _write_rows(book: Any, columns: Sequence[FileColumn]) -> None:
    chunk_rows = 10_000
    sheet = book.add_worksheet("rows")
    writers = []
    for i, column in enumerate(columns):
        form = None
        if column.has_moments:
            time, width = ("", 12) if pa.types.is_date32(column.values.type) else (" hh:mm:ss", 20)
            form = book.add_format({"num_format": f"yyyy-mm-dd{time}"})
            sheet.set_column(i, i, width)
        writers.append(_cell_writer(book, sheet, column, form))
    for i, column in enumerate(columns):
        _write_text(book, sheet, 0, i, column.name)
    rows = len(columns[0].values) if columns else 0
    for start in range(0, rows, chunk_rows):
        parts = [_cells(c.values.slice(start, chunk_rows)) for c in columns]
        for row, cells in enumerate(zip(*parts, strict=True), start + 1):
            for i, (write, value) in enumerate(zip(writers, cells, strict=True)):
                if value is not None:
                    write(row, i, value)


def _cells(values: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(values.type):  # Excel rounds, which may be to the next day
        values = pc.floor_temporal(values, unit="millisecond")
    found: list[Any] = values.to_pylist()
    return found


def _cell_writer(
    book: Any, sheet: Any, column: FileColumn, form: Any
) -> Callable[[int, int, Any], object]:
    if column.has_texts:
        return lambda row, i, text: _write_text(book, sheet, row, i, text)
    if column.has_numbers:
        return lambda row, i, value: sheet.write_number(row, i, _Exact(value))
    if not column.has_moments:
        return lambda row, i, value: sheet.write_boolean(row, i, value)

    def write(row: int, i: int, value: date | datetime) -> None:
        # To Excel, nothing is before 1900, and February 1900 has a 29th day, which it has not to other programs.
        first_day = date(1900, 3, 1)
        day = value.date() if isinstance(value, datetime) else value
        if day < first_day:
            sheet.write_string(row, i, value.isoformat(*([" "] if value is not day else [])))
        else:
            sheet.write_datetime(row, i, value, form)

    return write


def _write_text(book: Any, sheet: Any, row: int, i: int, text: str) -> None:
    if text.startswith("<r>") and text.endswith("</r>"):  # which the library takes for markup
        sheet.write_rich_string(row, i, text[:1], book.add_format(), text[1:])
    elif text:
        sheet.write_string(row, i, text)


def _write_columns(book: Any, columns: Sequence[FileColumn]) -> None:
    if not any(c.title or c.labels for c in columns):
        return
    sheet = book.add_worksheet("columns")
    for row, cells in enumerate(_described(columns)):
        for i, text in enumerate(cells):
            _write_text(book, sheet, row, i, text)


def _described(columns: Sequence[FileColumn]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each column and each of its labels."""
    yield "name", "title", "code", "label"
    for column in columns:
        for code, label in column.labels.items() or [("", "")]:
            yield column.name, column.title, code, label
