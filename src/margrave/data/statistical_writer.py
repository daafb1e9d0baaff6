"""Rows in files of Stata and SPSS: titles as labels of variables, labels as value labels, missing as system-missing."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from margrave.codebooks.statistical import library
from margrave.data.file_columns import FileColumn
from margrave.errors import InputError
from margrave.types import AnyArray


@dataclass(frozen=True)
class Dialect:
    """Dates, labels and texts as files of one program hold them.

    Args:
        first_day: The day that dates and times count from.
        day, second: What a day and a second count.
        formats: The display formats of days, moments, and whole numbers of more than nine digits.
        has_text_labels: Whether texts may have value labels.
        max_title, max_label: The largest title and value label.
        size: Returns the size of a title or label.
    """

    first_day: date
    day: float
    second: float
    formats: tuple[str, str, str]
    has_text_labels: bool
    max_title: int
    max_label: int
    size: Callable[[str], int]


def libraries() -> tuple[Any, Any]:
    """Return pyreadstat and pandas.

    Raises:
        InputError: One of them is not installed.
    """
    pyreadstat = library()
    try:
        import pandas
    except ImportError:
        raise InputError(
            "Files of Stata and SPSS are written with pandas, which is not installed.",
            remedy="Install it: pip install 'margrave[formats]'.",
        ) from None
    return pyreadstat, pandas


def write_stata(columns: Sequence[FileColumn], path: Path) -> None:
    """Write columns to a file of Stata 14 or later."""
    dialect = Dialect(
        date(1960, 1, 1), 1, 1000, ("%td", "%tc", "%17.0g"),
        has_text_labels=False, max_title=80, max_label=1000, size=len,
    )  # fmt: skip
    pyreadstat, _ = libraries()
    frame, options = _frame(columns, dialect)
    with _complete(path, columns, pyreadstat.read_dta, b"</stata_dta>"):
        pyreadstat.write_dta(frame, str(path.absolute()), version=14, **options)


def write_spss(columns: Sequence[FileColumn], path: Path) -> None:
    """Write columns to a file of SPSS."""
    dialect = Dialect(
        date(1582, 10, 14), 86400, 1, ("DATE11", "DATETIME20", "F17.0"),
        has_text_labels=True, max_title=255, max_label=120, size=lambda text: len(text.encode()),
    )  # fmt: skip
    pyreadstat, _ = libraries()
    frame, options = _frame(columns, dialect)
    levels = {c.name: c.level for c in columns}
    with _complete(path, columns, pyreadstat.read_sav, b""):
        pyreadstat.write_sav(frame, str(path.absolute()), variable_measure=levels, **options)


def shortened(text: str, limit: int, size: Callable[[str], int]) -> str:
    """Return a text of at most the size, with an ellipsis for what is left out.

    >>> shortened("Age in years", 9, len), shortened("Âge", 4, lambda text: len(text.encode()))
    ('Age in y…', 'Âge')
    """
    if size(text) <= limit:
        return text
    kept = text[:limit]
    while size(f"{kept}…") > limit:
        kept = kept[:-1]
    return f"{kept}…"


def _frame(columns: Sequence[FileColumn], dialect: Dialect) -> tuple[Any, dict[str, Any]]:
    _, pandas = libraries()
    held = {c.name: _held(c, dialect) for c in columns}
    return pandas.DataFrame({name: values for name, (values, _) in held.items()}), {
        "column_labels": {
            c.name: shortened(c.title, dialect.max_title, dialect.size) for c in columns if c.title
        },
        "variable_value_labels": {
            c.name: labels for c in columns if (labels := _value_labels(c, dialect))
        },
        "variable_format": {name: form for name, (_, form) in held.items() if form},
    }


def _held(column: FileColumn, dialect: Dialect) -> tuple[Any, str]:
    """Return values as pandas holds them, and their display format; "" for the library's own."""
    _, pandas = libraries()
    values, (day, moment, long) = column.values, dialect.formats
    if column.has_texts:  # both programs take an empty text for a missing one
        return pandas.array(pc.fill_null(values, "").to_pylist(), dtype="string"), ""
    missing = values.is_null().to_numpy(zero_copy_only=False)
    since = (date(1970, 1, 1) - dialect.first_day).days
    if pa.types.is_floating(values.type):
        numbers, form = _filled(values), ""
    elif pa.types.is_date32(values.type):
        numbers, form = (
            (_filled(values.cast(pa.int32()).cast(pa.int64())) + since) * dialect.day,
            day,
        )
    elif pa.types.is_timestamp(values.type):  # both programs show milliseconds at most
        milliseconds = _filled(values.cast(pa.int64())) // 1000
        numbers, form = (milliseconds + since * 86_400_000) * (dialect.second / 1000), moment
    else:
        numbers, form = _filled(values.cast(pa.int64())), long
        if (np.abs(numbers) < 10**9).all():
            return pandas.arrays.IntegerArray(numbers.astype(np.int32), missing), ""
    return np.where(missing, np.nan, numbers), form


def _filled(numbers: pa.Array) -> AnyArray:
    return np.asarray(pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False))


def _value_labels(column: FileColumn, dialect: Dialect) -> dict[Any, str]:
    """Return the label of every category, if one has a label: then a reader sees all categories in the file."""
    values = column.values
    if pa.types.is_boolean(values.type):
        found: Mapping[Any, str] = {
            code: column.labels.get(word, word) for code, word in enumerate(("false", "true"))
        }
    elif not column.labels:
        return {}
    else:
        listed = {text: text for text in column.categories} | dict(column.labels)
        if pa.types.is_integer(values.type):
            found = {int(text): label for text, label in listed.items()}
        elif column.has_texts and dialect.has_text_labels:
            # The library makes a column as wide as its values in bytes and its categories in characters. A category
            # that is wider has no row.
            width = max(pc.max(pc.binary_length(values)).as_py() or 1, *map(len, listed))
            found = {text: label for text, label in listed.items() if len(text.encode()) <= width}
        else:
            return {}
    return {
        code: shortened(label, dialect.max_label, dialect.size) for code, label in found.items()
    }


@contextmanager
def _complete(
    path: Path, columns: Sequence[FileColumn], read: Callable[..., Any], end: bytes
) -> Iterator[None]:
    """Raise ``OSError`` if the block fails, or the end of the file is not there: the library misses some full disks."""
    pyreadstat, _ = libraries()
    errors = (pyreadstat.PyreadstatError, pyreadstat.ReadstatError)
    rows = len(columns[0].values)
    try:
        yield
    except errors as error:
        raise OSError(errno.EIO, str(error)) from None
    last = {"row_offset": rows - 1, "row_limit": 1} if rows else {"metadataonly": True}
    try:
        found, _ = read(str(path.absolute()), output_format="dict", **last)
        is_whole = len(found[columns[0].name]) == min(rows, 1)
    except errors:
        is_whole = False
    if is_whole:
        with path.open("rb") as file:
            file.seek(-len(end), os.SEEK_END)
            is_whole = file.read() == end
    if not is_whole:
        raise OSError(errno.ENOSPC, "the disk may be full")
