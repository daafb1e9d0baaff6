"""Files of SAS that pyreadstat reads and its functions do not write: by the C library that it comes with."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from ctypes import CFUNCTYPE, c_char_p, c_double, c_int, c_long, c_size_t, c_ssize_t, c_void_p
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

TEXT, DOUBLE = 0, 5


class _Writer:
    """A writer of one file. Every function of the library takes its handle first."""

    def __init__(self, path: Path) -> None:
        module = pytest.importorskip("pyreadstat._readstat_writer", reason="no pyreadstat")
        self._library = ctypes.CDLL(module.__file__)
        if not hasattr(self._library, "readstat_begin_writing_sas7bdat"):
            pytest.skip(
                "this build of pyreadstat does not show the functions that write files of SAS"
            )
        self._written = path.open("wb")
        self._callback = CFUNCTYPE(c_ssize_t, c_void_p, c_size_t, c_void_p)(self._take)
        init = self._library.readstat_writer_init
        init.restype = c_void_p
        self.handle = init()
        self.call("set_data_writer", self._callback)

    def _take(self, data: int, size: int, _context: int) -> int:
        return self._written.write(ctypes.string_at(data, size))

    def call(self, name: str, *arguments: Any, of: Any = None, gives: Any = c_int) -> Any:
        function = getattr(self._library, f"readstat_{name}")
        function.restype = gives
        found = function(c_void_p(of or self.handle), *arguments)
        assert gives is not c_int or found == 0, (name, found)
        return found

    def close(self) -> None:
        self.call("end_writing")
        self._written.close()
        self.call("writer_free", gives=None)


def write_sas7bdat(
    path: Path, rows: Mapping[str, Sequence[Any]], formats: Mapping[str, str] | None = None
) -> Path:
    """Write columns of texts, numbers, dates, times and None; ``formats`` names the format of a column."""
    writer, n = _Writer(path), len(next(iter(rows.values())))
    formats = {name: form for name, v in rows.items() if (form := _format(v))} | dict(formats or {})
    inserts: list[Callable[[int], None]] = []
    for name, values in rows.items():
        is_text = any(isinstance(v, str) for v in values)
        width = max((len(v.encode()) for v in values if isinstance(v, str)), default=8)
        kind = TEXT if is_text else DOUBLE
        column = c_void_p(
            writer.call(
                "add_variable", c_char_p(name.encode()), kind, c_size_t(width), gives=c_void_p
            )
        )
        if name in formats:
            writer.call(
                "variable_set_format", c_char_p(formats[name].encode()), of=column.value, gives=None
            )
        inserts.append(_inserter(writer, column, values))
    writer.call("begin_writing_sas7bdat", None, c_long(n))
    for i in range(n):
        writer.call("begin_row")
        for insert in inserts:
            insert(i)
        writer.call("end_row")
    writer.close()
    return path


def _format(values: Sequence[Any]) -> str:
    if any(isinstance(v, datetime) for v in values):
        return "DATETIME"
    return "DATE" if any(isinstance(v, date) for v in values) else ""


def _number(value: Any) -> float:
    if isinstance(value, datetime):
        return (value - datetime(1960, 1, 1)).total_seconds()
    return float((value - date(1960, 1, 1)).days if isinstance(value, date) else value)


def _inserter(writer: _Writer, column: c_void_p, values: Sequence[Any]) -> Callable[[int], None]:
    def insert(i: int) -> None:
        value = values[i]
        if value is None:
            writer.call("insert_missing_value", column)
        elif isinstance(value, str):
            writer.call("insert_string_value", column, c_char_p(value.encode()))
        else:
            writer.call("insert_double_value", column, c_double(_number(value)))

    return insert


def write_sas7bcat(path: Path, formats: Mapping[str, Mapping[Any, str]]) -> Path:
    """Write a catalog of formats, each with the labels of its values, texts or numbers."""
    writer = _Writer(path)
    for name, labels in formats.items():
        is_text = all(isinstance(value, str) for value in labels)
        made = writer.call(
            "add_label_set", TEXT if is_text else DOUBLE, c_char_p(name.encode()), gives=c_void_p
        )
        for value, label in labels.items():
            coded = c_char_p(value.encode()) if is_text else c_double(value)
            function = "label_string_value" if is_text else "label_double_value"
            writer.call(function, coded, c_char_p(label.encode()), of=made, gives=None)
    writer.call("begin_writing_sas7bcat", None)
    writer.close()
    return path
