"""Workbooks of Excel 97 to 2003 (.xls), written by hand: the least that readers open."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

SECTOR, END, FREE = 512, 0xFFFFFFFE, 0xFFFFFFFF


def old_workbook(sheets: Mapping[str, Sequence[Sequence[Any]]], serial: Any) -> bytes:
    """Return the file of some sheets; ``serial`` gives the number of a date."""
    parts = [_sheet(rows, serial) for rows in sheets.values()]
    styles = b"".join(_record(0xE0, struct.pack("<HH16x", 0, n)) for n in (0, 14, 22))
    names = [name.encode("utf-16-le") for name in sheets]
    start = len(_beginning(5) + styles + _record(10)) + sum(12 + len(name) for name in names)
    bounds = b""
    for name, part in zip(names, parts, strict=True):
        bounds += _record(0x85, struct.pack("<IHBB", start, 0, len(name) // 2, 1) + name)
        start += len(part)
    return _compound(_beginning(5) + styles + bounds + _record(10) + b"".join(parts))


def _beginning(kind: int) -> bytes:
    return _record(0x809, struct.pack("<HHHHII", 0x600, kind, 0, 0, 0, 0))


def _record(kind: int, content: bytes = b"") -> bytes:
    return struct.pack("<HH", kind, len(content)) + content


def _sheet(rows: Sequence[Sequence[Any]], serial: Any) -> bytes:
    widest = max(map(len, rows), default=0)
    cells = b"".join(
        _cell(value, r, c, serial)
        for r, row in enumerate(rows)
        for c, value in enumerate(row)
        if value is not None
    )
    size = _record(0x200, struct.pack("<IIHHH", 0, len(rows), 0, widest, 0))
    return _beginning(16) + size + cells + _record(10)


def _cell(value: Any, row: int, column: int, serial: Any) -> bytes:
    style = (2 if isinstance(value, datetime) else 1) if isinstance(value, date) else 0
    head = struct.pack("<HHH", row, column, style)
    if isinstance(value, bool):
        return _record(0x205, head + bytes([value, 0]))
    if isinstance(value, str):
        coded = value.encode("utf-16-le")
        return _record(0x204, head + struct.pack("<HB", len(coded) // 2, 1) + coded)
    number = serial(value) if isinstance(value, date) else float(value)
    return _record(0x203, head + struct.pack("<d", number))


def _compound(stream: bytes) -> bytes:
    """Return a compound file whose only stream is the workbook, in sectors that follow one another."""
    stream = stream.ljust(4096, b"\0")
    body = stream.ljust(-(-len(stream) // SECTOR) * SECTOR, b"\0")
    sectors, tables = len(body) // SECTOR, 1
    while tables * (SECTOR // 4) < sectors + 1 + tables:
        tables += 1
    first = tables + 1
    chain = [0xFFFFFFFD] * tables + [END, *range(first + 1, first + sectors), END]
    allocation = struct.pack(f"<{len(chain)}I", *chain).ljust(tables * SECTOR, b"\xff")
    listed = [*range(tables), *[FREE] * (109 - tables)]
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + struct.pack(
        "<16xHHHHH6xIIIIIIIII109I",
        *(0x3E, 3, 0xFFFE, 9, 6, 0, tables, tables, 0, 4096, END, 0, END, 0, *listed),
    )
    folder = _entry("Root Entry", 5, 1, END, 0) + _entry("Workbook", 2, FREE, first, len(stream))
    return header + allocation + folder.ljust(SECTOR, b"\0") + body


def _entry(name: str, kind: int, child: int, start: int, size: int) -> bytes:
    coded = name.encode("utf-16-le").ljust(64, b"\0")
    length = 2 * len(name) + 2
    links = struct.pack("<HBBIII36xIQ", length, kind, 1, FREE, FREE, child, start, size)
    return coded + links
