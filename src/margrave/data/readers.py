"""Files, read strictly: what is not clean is an error that shows none of it. CSV and Parquet are read here.

Every CSV column is read as text: no type, separator or header is guessed from rows. DuckDB's own messages quote rows,
so none is passed on.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import pyarrow as pa

from margrave._card import counted
from margrave.data import duckdb_reader
from margrave.data.csv_records import count_records
from margrave.data.duckdb_reader import MemoryLimitError
from margrave.data.formats import FormattedFile, open_format
from margrave.errors import DataError

DUCKDB, SQLITE = b"DUCK", b"SQLite format 3\0"
#: Remedy for files that a spreadsheet wrote.
EXCEL = "In Excel: Save As, CSV UTF-8 (comma delimited)."
EXPORT = "Export the table to CSV UTF-8 or Parquet, and name that file."
#: The first bytes of a file that gzip compressed.
GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class File:
    """A CSV or Parquet file that exists: its columns, for CSV the separator of its header and whether it is gzip."""

    path: Path
    columns: tuple[str, ...]
    separator: str | None = None
    compressed: bool = False

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some of its columns, some rows at a time; those of CSV as text."""
        expected = None if self.separator is None else self._rows(self.separator)
        rows = 0
        try:
            for batch in duckdb_reader.batches(self.path, self._call, columns):
                rows += batch.num_rows
                yield batch
            if expected in (rows, None):
                return
            failure = _unread(self.path)
        except MemoryLimitError:
            failure = _too_large(self.path)
        except Exception as error:  # a damaged file makes the engine raise whatever it has
            failure = _told(self.path, str(error), self)
        raise failure  # out here, so that the engine's error, which quotes rows, does not hang on it

    def rows(self) -> int | None:
        """Return the number of rows that a Parquet file states; None for CSV, which has to be read."""
        return duckdb_reader.parquet_rows(self.path) if self.separator is None else None

    @property
    def _call(self) -> str:
        if self.separator is None:
            return duckdb_reader.PARQUET
        return duckdb_reader.csv_call(self.columns, self.separator, compressed=self.compressed)

    def _rows(self, separator: str) -> int:
        """Return how many rows a CSV file has; ``DataError`` for a quote without an end and for too long a record."""
        try:
            records = count_records(self.path, separator, compressed=self.compressed)
        except (OSError, EOFError, zlib.error):
            records = None
        if records is None:
            raise _damaged(self.path)
        if records.longest > duckdb_reader.MAX_RECORD_BYTES:
            raise _too_long(self.path, f"line {records.long_line}")
        if records.unclosed is not None:
            raise _unclosed(self.path, f"line {records.unclosed}")
        return records.rows(len(self.columns))


def open_file(
    source: str | PathLike[str], expected: Sequence[str] = (), sheet: str | None = None
) -> File | FormattedFile:
    """Return a file by its path. ``expected`` column names decide the separator of an ambiguous CSV
    header; ``sheet`` names a sheet of a workbook.
    """
    path = Path(source)
    try:
        if path.exists() and not path.is_file():
            raise DataError(
                f"{path} is a pipe or a device, and a table is read more than once.",
                remedy="Write the rows to a CSV or Parquet file, and name that.",
            )
        with path.open("rb") as handle:
            magic = handle.read(64)
    except DataError:
        raise
    except OSError as error:
        unreadable = isinstance(error, PermissionError)
        raise DataError(
            f"The table {path} cannot be read: {error.strerror or 'no such file'}.",
            remedy="Ask its owner for permission." if unreadable else _elsewhere(str(path)),
        ) from None
    except ValueError:
        raise DataError("The path of the table is not a path.", remedy="Check it.") from None
    if sheet is not None and magic.startswith((b"PAR1", b"ARROW1")):
        raise no_sheets(path)
    if magic[:4] == b"PAR1":
        return _parquet(path)
    formatted = open_format(path, magic, sheet)
    if formatted is not None:
        _named(path, formatted.columns, "Rename one of the two.")
        return formatted
    foreign = _foreign(path, magic)
    if foreign is not None:
        raise foreign
    return _csv(path, expected, compressed=magic[:2] == GZIP)


def no_sheets(path: str | PathLike[str]) -> DataError:
    """Return the error for a sheet of a file that is not a workbook."""
    return DataError(
        f"{path} is not a workbook, so it has no sheets.",
        remedy=f"Leave ?sheet= out: {path}. Workbooks end in .xlsx, .xlsm, .xlsb, .xls or .ods.",
    )


def _elsewhere(path: str) -> str:
    address = re.match(r"[a-z0-9]{2,}:/", path)
    return "margrave reads files: download it first." if address else "Check the path."


def _foreign(path: Path, magic: bytes) -> DataError | None:
    utf_16 = (b"\xff\xfe", b"\xfe\xff")
    packers = {
        b"\x28\xb5\x2f\xfd": "zstd",
        b"\xfd7zXZ": "xz",
        b"BZh": "bzip2",
        b"\x04\x22\x4d\x18": "lz4",
    }
    programs = {
        **dict.fromkeys((".rds", ".rda", ".rdata"), "R"),
        **dict.fromkeys((".mdb", ".accdb"), "Access"),
        **dict.fromkeys((".pkl", ".pickle"), "Python's pickle"),
        **dict.fromkeys((".h5", ".hdf", ".hdf5"), "HDF5"),
        ".dbf": "dBase",
        ".orc": "ORC",
        ".avro": "Avro",
        ".sas7bcat": "SAS's labels",
    }
    if path.suffix.lower() in (".margrave", ".toml"):
        kind = "release" if path.suffix.lower() == ".margrave" else "schema"
        rows = (
            f"margrave sample {path} -o rows.parquet writes rows of it."
            if kind == "release"
            else ""
        )
        return DataError(
            f"{path} is a {kind}, not a table.", remedy=rows or "Name the table in its place."
        )
    if (program := programs.get(path.suffix.lower())) is not None:
        return DataError(
            f"{path} is a file of {program}, which is not read as a table.", remedy=EXPORT
        )
    if magic[:2] in utf_16:
        return DataError(
            f'{path} is not text in UTF-8, but in UTF-16 (as Excel\'s "Unicode text").',
            remedy=f"{EXCEL} Elsewhere: iconv -f UTF-16 -t UTF-8",
        )
    if magic[8:12] == DUCKDB and b"\0" in magic[12:20]:  # a version, where a header of CSV has text
        return DataError(
            f"{path} is a DuckDB database, and no single table.",
            remedy=f"Name one of its tables: duckdb:{path}?table=NAME.",
        )
    if magic[:16] == SQLITE:
        return DataError(
            f"{path} is an SQLite database, and no single table.",
            remedy="In DuckDB: COPY (SELECT * FROM sqlite_scan('file', 'name')) TO 'name.parquet'."
            ' In Python: pandas.read_sql("SELECT * FROM name", sqlite3.connect(file)) is one.',
        )
    if magic[:2] == b"PK":
        return DataError(f"{path} is a zip archive.", remedy="Unpack it, and name the file in it.")
    packer = next((name for start, name in packers.items() if magic.startswith(start)), None)
    if packer is not None:
        return DataError(
            f"{path} is compressed with {packer}, which margrave does not read.",
            remedy="Unpack it, or compress it with gzip.",
        )
    return None


def _parquet(path: Path) -> File:
    failure = None
    try:
        columns, written = duckdb_reader.parquet_columns(path)
    except MemoryLimitError:
        failure = _too_large(path)
    except Exception:  # an engine's own, which may quote the file
        failure = _told(path, "")
    if failure is not None:
        raise failure
    if not columns:
        raise _told(path, "")
    _named(
        path, written or columns, "Rename one of the two."
    )  # as in the file: DuckDB calls the second of two a_1
    return File(path, _named(path, columns))


def _csv(path: Path, expected: Sequence[str], *, compressed: bool) -> File:
    separators = ",;\t|"
    header = _first_line(path, compressed)
    if "\0" in header or header.startswith("%PDF-"):
        raise DataError(f"{path} is not text, so it is not a CSV file.", remedy=EXPORT)
    if re.match(r"\s*<(!doctype|\?xml|html|head|body|table)\b", header, re.IGNORECASE):
        raise DataError(f"{path} is HTML or XML, which is not read as a table.", remedy=EXPORT)
    if re.match(r'\s*(\{\s*("|\}|$)|\[\s*(\{|\[|"|\]|$))', header):  # not [age],[sex]
        raise DataError(
            f"{path} is JSON, and a table is read from JSON Lines.",
            remedy="Write one object per line to a file that ends in .jsonl, each value a text, a number, true, false"
            " or null.",
        )
    if not header.strip():
        raise DataError(f"{path} has no header.", remedy="Its first line must name the columns.")
    splits = {s: _split(header, s) for s in separators}
    separator = max(splits, key=lambda s: _likelihood(splits[s], expected))
    return File(path, _named(path, splits[separator]), separator, compressed)


def _first_line(path: Path, compressed: bool) -> str:
    try:
        with gzip.open(path) if compressed else path.open("rb") as handle:
            return handle.readline(1 << 20).decode("utf-8-sig")
    except UnicodeDecodeError:
        failure = _not_utf8(path, 1)
    except (OSError, EOFError, zlib.error):
        failure = _damaged(path)
    raise failure


def _likelihood(names: Sequence[str], expected: Sequence[str]) -> tuple[int, bool, int]:
    """Return what speaks for names of columns: how many are expected, all of several are names, and their number."""
    return (
        len(set(names) & set(expected)),
        len(names) > 1 and all(n.strip() for n in names),
        len(names),
    )


def _split(header: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([header.rstrip("\r\n")], delimiter=separator, strict=True))
    except (csv.Error, StopIteration):
        return []


HEADERLESS = (
    "Rename one of the two; or has the file no header? Its first line must name the columns."
)


def _named(path: Path, columns: Sequence[str], remedy: str = HEADERLESS) -> tuple[str, ...]:
    seen: dict[str, int] = {}
    for i, name in enumerate(columns, 1):
        if not name.strip():
            raise DataError(
                f"Column {i} of {path} has no name.",
                remedy="Name it in the header, or delete it. The first line must name the columns: delete a title or"
                " another header above them.",
            )
        if name.lower() in seen:
            raise DataError(  # not by name: without a header, it would be a value
                f"Columns {seen[name.lower()]} and {i} of {path} have the same name.",
                remedy=remedy,
            )
        seen[name.lower()] = i
    if not columns:
        raise DataError(
            f"The header of {path} cannot be read.",
            remedy="Its first line must name the columns, without a line break in a name and with every quote closed,"
            " and must end in LF or CR LF.",
        )
    return tuple(columns)


def _unread(path: Path) -> DataError:
    return DataError(
        f"{path}: not all of its records could be read.",
        remedy="Write it by RFC 4180, with one kind of line end, or as a Parquet file.",
    )


def _damaged(path: Path) -> DataError:
    return DataError(
        f"{path} is damaged or not compressed as its beginning says.", remedy="Compress it anew."
    )


def _too_long(path: Path, where: str) -> DataError:
    return DataError(
        f"{path}: {where} begins a record longer than {duckdb_reader.MAX_RECORD_BYTES:,} bytes.",
        remedy="If a quote there is never closed, close it or double it; otherwise shorten the record, or write the"
        " table as a Parquet file.",
    )


def _unclosed(path: Path, where: str) -> DataError:
    return DataError(
        f"{path}: a quote opened in {where} is never closed.", remedy="Close it, or double it."
    )


def _too_large(path: Path) -> DataError:
    return DataError(
        f"{path} needs more memory to read than there is.",
        remedy="Give the machine more memory, or write the table as a Parquet file with smaller row groups.",
    )


def _told(path: Path, message: str, file: File | None = None) -> DataError:
    found = re.search(r"CSV Error on Line: (\d+)", message)
    line = int(found[1]) if found else None
    if "unicode" in message.lower() or "utf-8" in message.partition("\n")[0].lower():
        return _not_utf8(path, line)
    if line is None and "CSV" in message:
        line = _odd_line_end(path)
    where = "a line" if line is None else f"line {line}"
    if "Maximum line size" in message:
        return _too_long(path, where)
    if "Expected Number of Columns" in message:
        return DataError(
            f"{path}: {where} does not have as many fields as the header.",
            remedy=_fields_remedy(file, line),
        )
    if "quote" in message.partition("Possible")[0]:
        return _unclosed(path, where)
    if line is not None or "CSV" in message:
        return DataError(
            f"{path}: {where} is not clean CSV.",
            remedy="Write it by RFC 4180, with one kind of line end.",
        )
    return DataError(
        f"{path} cannot be read: it is damaged, or not a CSV or Parquet file.",
        remedy="Save it anew.",
    )


def _fields_remedy(file: File | None, line: int | None) -> str:
    """Return what to do about a line whose number of fields is not that of the header."""
    max_lines = 1000
    remedy = "Complete it; a field that contains the separator or a line break must be quoted."
    if file is None or file.separator is None:
        return remedy
    if len(file.columns) == 1:
        return (
            "The header is a single field: delete a title or comment above the names, or write the file"
            " with commas, semicolons, tabs or bars between the fields."
        )
    first, last, end = set[int](), "", 0
    opener = gzip.open if file.compressed else open
    try:
        with opener(file.path, "rt", encoding="utf-8", errors="replace") as lines:
            for number, text in enumerate(lines, 1):
                if text.strip():
                    last, end = text, number
                if 1 < number <= max_lines and text.strip():
                    first.add(len(_split(text, file.separator)))
    except (OSError, EOFError, zlib.error):
        return remedy
    header, fields = len(file.columns), len(_split(last, file.separator))
    if end > 2 and len(first) == 1 and (each := first.pop()) not in (0, header):
        have = f"Lines 2 to {min(end, max_lines):,} have {counted(each, 'field')} each, and the header {header}."
        if each == 1:
            return (
                f"{have} Do rows and header use different separators? Export the table again with one, and with quotes"
                " around a name that contains it."
            )
        return (
            f"{have} Do rows use another separator than the header, have numbers a decimal comma, or do rows end in a"
            " separator? Export the table again with one separator, and with quotes around a field that contains it."
        )
    if line == end and 0 < fields < header:
        return (
            f"It is the last line and has {fields} of {header} fields: delete it if it is a total or a footnote, else"
            " complete it."
        )
    return remedy


def _odd_line_end(path: Path) -> int | None:
    """Return the first line that ends in another way than the header, if a file has several kinds
    of line end.

    Line breaks within quotes are part of a field, and count only as lines.
    """
    first, line, quoted = b"", 0, False
    try:
        with path.open("rb") as handle:
            packed = handle.read(2) == GZIP
        with gzip.open(path) if packed else path.open("rb") as rows:
            for row in rows:
                for piece in row.splitlines(keepends=True):
                    line, quoted = line + 1, quoted ^ (piece.count(b'"') % 2 == 1)
                    end = piece[len(piece.rstrip(b"\r\n")) :]
                    first = first or end
                    if end and end != first and not quoted:
                        return line
    except (OSError, EOFError, zlib.error):
        pass
    return None


def _not_utf8(path: Path, line: int | None) -> DataError:
    where = "" if line is None else f" (line {line})"
    return DataError(
        f"{path} is not text in UTF-8{where}.",
        remedy=f"{EXCEL} Elsewhere: iconv -f WINDOWS-1252 -t UTF-8, or from whatever encoding it is in.",
    )
