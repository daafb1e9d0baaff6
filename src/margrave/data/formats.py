"""Files of other programs: Stata, SPSS, SAS, spreadsheets, JSON Lines and Arrow. Values keep their types.

Labels are not read, and of display formats only that a number is a day or time: a value is what is stored. Messages of
the libraries may quote rows, so none is passed on.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from margrave.codebooks.statistical import moment_formats, period_note, read_function
from margrave.errors import DataError, InputError, MargraveError, did_you_mean
from margrave.schema.parsing import arrow_of, parse_moment


@dataclass(frozen=True)
class FormattedFile:
    """A file in the format of another program: its columns, and how its rows are read."""

    #: Rows that are read at a time.
    chunk_rows: ClassVar[int] = 1 << 18
    path: Path
    columns: tuple[str, ...]
    stated: int | None = field(repr=False)
    read: Callable[[Sequence[str]], Iterator[pa.RecordBatch]] = field(repr=False, compare=False)
    #: Sentences for a draft on columns whose numbers the other program shows as something else.
    notes: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def rows(self) -> int | None:
        """Return the number of rows that the file states; None if it states none."""
        return self.stated

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some of its columns, some rows at a time."""
        parts = self.read(columns)  # runs in the loop below
        while (part := _checked(self.path, lambda: next(parts, None))) is not None:
            yield part


def open_format(path: Path, magic: bytes, sheet: str | None = None) -> FormattedFile | None:
    """Return a file by its beginning or its ending; None if it is in none of these formats.

    ``sheet`` names a sheet of a workbook.

    Raises:
        DataError: The file cannot be read, or it is a workbook and the sheet is not one of its sheets.
        InputError: The library that reads it is not installed.
    """
    openers: dict[str, Callable[[Path, str | None], FormattedFile]] = {
        **dict.fromkeys((".dta", ".sav", ".zsav", ".por", ".sas7bdat", ".xpt"), _statistical),
        **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), _workbook),
        **dict.fromkeys((".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"), _json_lines),
        **dict.fromkeys((".feather", ".arrow", ".ipc"), _arrow),
    }
    packed = path.suffix.lower() == ".gz"
    ending = "".join(path.suffixes[-2 if packed else -1 :]).lower()
    if magic.startswith(b"ARROW1"):
        ending = ".arrow"
    elif magic.startswith(b"\xd0\xcf\x11\xe0") or b"[Content_Types].xml" in magic:
        ending = ".xlsx"
    _check_program(path, magic, ending)
    opened = openers.get(ending)
    if opened is None:
        return None
    file: FormattedFile = _checked(path, lambda: opened(path, sheet))
    return file


def _check_program(path: Path, magic: bytes, ending: str) -> None:
    """Raise ``DataError`` if a file begins as that of another statistics program than its ending says."""
    programs = {
        b"$FL2@(#)": ("SPSS", (".sav", ".zsav")),
        b"$FL3@(#)": ("SPSS", (".zsav", ".sav")),
        b"<stata_dta>": ("Stata", (".dta",)),
        b"\0" * 12 + b"\xc2\xea\x81\x60": ("SAS", (".sas7bdat", ".sas7bcat")),
        b"HEADER RECORD*******": ("SAS", (".xpt",)),
    }
    for start, (program, endings) in programs.items():
        if magic.startswith(start) and ending not in endings:
            raise DataError(
                f"{path} is a file of {program}, which its name does not say.",
                remedy=f"Name it {path.with_suffix(endings[0]).name}.",
            )


def _statistical(path: Path, _sheet: str | None) -> FormattedFile:
    read = read_function(path)
    _, meta = read(metadataonly=True)
    stated = None if meta.number_rows is None or meta.number_rows < 0 else meta.number_rows
    record_bytes = 80
    if path.suffix.lower() == ".xpt" and path.stat().st_size % record_bytes:
        raise _damaged(path)
    forms: dict[str, str] = {}
    if path.suffix.lower() == ".dta":
        forms = {n: str(form) for n, form in meta.original_variable_types.items()}
        read = partial(read, **moment_formats(forms.values()))
    notes = {name: note for name, form in forms.items() if (note := period_note(form))}
    return FormattedFile(
        path, tuple(meta.column_names), stated, partial(_chunks, read, stated), notes
    )


def _chunks(
    read: Callable[..., Any], stated: int | None, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    rows, size, most = 0, -1, FormattedFile.chunk_rows
    while size in (-1, most) and rows != stated:
        found, _ = read(usecols=list(columns), row_offset=rows, row_limit=most)
        size = len(found[columns[0]])
        rows += size
        yield _batch([_array(found[c]) for c in columns], columns)
    if stated not in (None, rows):
        raise EOFError


def _workbook(path: Path, sheet: str | None) -> FormattedFile:
    book = _fastexcel().read_excel(str(path))
    if sheet is None and len(book.sheet_names) > 1:
        raise DataError(
            f"{path} has several sheets.", remedy=f"Name the one to read: {path}?sheet=NAME."
        )
    if sheet is not None and sheet not in book.sheet_names:
        raise DataError(
            f"{path} has no sheet {sheet!r}.",
            remedy=did_you_mean(sheet, book.sheet_names).strip()
            or "Name one that it has, with its capitals and blanks.",
        )
    name = book.sheet_names[0] if sheet is None else sheet
    # The library gives a number to a second column of one name: here, names are as in the file.
    head = book.load_sheet(name, header_row=None, n_rows=1, dtypes="string").to_arrow()
    names = tuple(column[0].as_py() or "" for column in head.columns)

    def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        # A type for a whole column would make what a cell becomes depend on others.
        readings = [
            book.load_sheet(name, dtypes=kind).to_arrow() for kind in ("string", "float", "boolean")
        ]
        places = [names.index(c) for c in columns]
        cells = (zip(*(r.column(i).to_pylist() for r in readings), strict=True) for i in places)
        yield _batch([_array([_cell(*cell) for cell in column]) for column in cells], columns)

    return FormattedFile(path, names, None, read)


def _cell(written: str | None, number: float | None, truth: bool | None) -> Any:
    """Return the value of a cell. Only numbers and truth values have a truth value."""
    if written is None:
        return None
    if truth is not None:
        return truth if written in ("true", "false") else number
    day_or_time = r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d+)?)?"
    moment = parse_moment(written) if re.fullmatch(day_or_time, written, re.ASCII) else None
    return written if moment is None else moment


def _fastexcel() -> Any:
    try:
        import fastexcel
    except ImportError:
        raise InputError(
            "Workbooks of spreadsheets need a library that is not installed.",
            remedy="Install it: pip install 'margrave[formats]'. Or save the sheet as CSV UTF-8.",
        ) from None
    return fastexcel


def _json_lines(path: Path, _sheet: str | None) -> FormattedFile:
    kinds: dict[str, set[str]] = {}
    rows = 0
    for record in _records(path):
        rows += 1
        for name, value in record.items():
            kinds.setdefault(name, set()).add(_kind(value))
    if not kinds:
        raise DataError(f"{path} has no JSON object.", remedy="Write one object per line.")
    mixed = {n for n, found in kinds.items() if "other" in found or len(found - {"null"}) > 1}

    def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        records = _records(path)
        while chunk := list(islice(records, FormattedFile.chunk_rows)):
            values = ([r.get(c) for r in chunk] for c in columns)
            arrays = [
                arrow_of(v) if c in mixed else _array(v)
                for c, v in zip(columns, values, strict=True)
            ]
            yield _batch(arrays, columns)

    return FormattedFile(path, tuple(kinds), rows, read)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    packed = path.suffix.lower() == ".gz"
    with gzip.open(path) if packed else path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _record(path, number, line)


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line.decode("utf-8-sig"), object_pairs_hook=_without_twins)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise DataError(
            f"{path}: line {number} is not a JSON object with distinct names.",
            remedy="Write one object per line, in UTF-8.",
        )
    return record


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str | bool):
        return type(value).__name__
    exact = isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**53)
    return "number" if exact else "other"


def _arrow(path: Path, _sheet: str | None) -> FormattedFile:
    def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(str(path)) as source:
            reader = pa.ipc.open_file(source)
            for i in range(reader.num_record_batches):
                batch = reader.get_batch(i)
                batch.validate(full=True)
                yield batch.select(list(columns))

    with pa.memory_map(str(path)) as source:
        names = tuple(pa.ipc.open_file(source).schema.names)
    return FormattedFile(path, names, None, read)


def _batch(arrays: list[pa.Array], columns: Sequence[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _array(values: Sequence[Any]) -> pa.Array:
    kinds = set(map(type, values)) - {type(None)}
    if len(kinds) > 1 and kinds != {int, float}:  # Arrow takes True for 1.0, and 1.0 for a moment
        return arrow_of(values)
    try:
        return _whole(pa.array(values, from_pandas=True))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return arrow_of(values)


def _whole(array: pa.Array) -> pa.Array:
    """Return floats that are all whole as integers: SPSS and spreadsheets have no others."""
    if not pa.types.is_floating(array.type):
        return array
    values = array.drop_null().to_numpy(zero_copy_only=False)
    whole = len(values) > 0 and bool(((abs(values) < 2**53) & (values == np.floor(values))).all())
    return array.cast(pa.int64()) if whole else array


def _checked(path: Path, work: Callable[[], Any]) -> Any:
    """Return the result of work by a library. Its own errors may quote rows, and end here."""
    try:
        return work()
    except (MargraveError, MemoryError):
        raise
    except BaseException as error:
        # A panic of a library in Rust is not an Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        failure = _damaged(path)
    raise failure


def _damaged(path: Path) -> DataError:
    return DataError(
        f"{path} cannot be read: it is damaged, or not what its name says.",
        remedy="Has it a password, or a date beyond the year 9999? Save it anew, or as a CSV or Parquet file.",
    )
