"""Workbooks written by hand: the least of .xlsx, .xlsm, .xlsb, .ods and .xls that readers open."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from tests.support.old_excel import old_workbook

Sheets = Mapping[str, Sequence[Sequence[Any]]]
HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
ODF = "urn:oasis:names:tc:opendocument:xmlns"


def write_workbook(path: Path, sheets: Sheets) -> Path:
    """Write sheets of cells: texts, numbers, truth values, dates, times and None."""
    if path.suffix == ".xls":
        path.write_bytes(old_workbook(sheets, _serial))
        return path
    writers = {".xlsx": _xlsx, ".xlsm": _xlsx, ".xlsb": _xlsb, ".ods": _ods}
    members = writers[path.suffix](sheets)
    if path.suffix == ".xlsm":
        plain = "openxmlformats-officedocument.spreadsheetml.sheet.main"
        types = str(members["[Content_Types].xml"]).replace(
            plain, "ms-excel.sheet.macroEnabled.main"
        )
        members = {**members, "[Content_Types].xml": types}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def _xlsx(sheets: Sheets) -> dict[str, str]:
    numbers = range(1, len(sheets) + 1)
    sheet = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {"workbook": "sheet.main", "styles": "styles"} | {
        f"worksheets/sheet{i}": "worksheet" for i in numbers
    }
    types = "".join(
        f'<Override PartName="/xl/{part}.xml" ContentType="{sheet}.{kind}+xml"/>'
        for part, kind in parts.items()
    )
    named = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{i}" r:id="r{i}"/>'
        for i, name in zip(numbers, sheets, strict=True)
    )
    links = "".join(
        f'<Relationship Id="r{i}" Type="{OFFICE}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in numbers
    )
    styles = f'<Relationship Id="s" Type="{OFFICE}/styles" Target="styles.xml"/>'
    root = f'<Relationship Id="r" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
    found = {
        "[Content_Types].xml": '<Default Extension="rels" '
        f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>{types}',
        "_rels/.rels": root,
        "xl/_rels/workbook.xml.rels": links + styles,
        "xl/workbook.xml": f"<sheets>{named}</sheets>",
        "xl/styles.xml": '<cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14"/>'
        '<xf numFmtId="22"/></cellXfs>',
    }
    outer = {
        "[Content_Types].xml": f'Types xmlns="{PACKAGE}/content-types"',
        "_rels/.rels": f'Relationships xmlns="{PACKAGE}/relationships"',
        "xl/_rels/workbook.xml.rels": f'Relationships xmlns="{PACKAGE}/relationships"',
        "xl/workbook.xml": f'workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"',
        "xl/styles.xml": f'styleSheet xmlns="{MAIN}"',
    }
    for i, rows in zip(numbers, sheets.values(), strict=True):
        name = f"xl/worksheets/sheet{i}.xml"
        lines = (
            f'<row r="{r}">{"".join(_cell(v, f"{_letters(c)}{r}") for c, v in enumerate(row))}</row>'
            for r, row in enumerate(rows, 1)
        )
        found[name] = f"<sheetData>{''.join(lines)}</sheetData>"
        outer[name] = f'worksheet xmlns="{MAIN}"'
    return {n: f"{HEAD}<{outer[n]}>{text}</{outer[n].split()[0]}>" for n, text in found.items()}


def _letters(column: int) -> str:
    first, last = divmod(column, 26)
    return ("" if first == 0 else _letters(first - 1)) + chr(ord("A") + last)


def _cell(value: Any, place: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    style = ""
    if isinstance(value, date):
        style = f' s="{2 if isinstance(value, datetime) else 1}"'
        value = _serial(value)
    return f'<c r="{place}"{style}><v>{value!r}</v></c>'


def _serial(value: date) -> float:
    moment = value if isinstance(value, datetime) else datetime(*value.timetuple()[:3])
    return (moment - datetime(1899, 12, 30)).total_seconds() / 86400


def _xlsb(sheets: Sheets) -> dict[str, bytes]:
    numbers = range(1, len(sheets) + 1)
    links = "".join(
        f'<Relationship Id="r{i}" Type="{OFFICE}/worksheet" Target="worksheets/sheet{i}.bin"/>'
        for i in numbers
    )
    bundle = b"".join(
        _record(156, struct.pack("<II", 0, i) + _wide(f"r{i}") + _wide(name))
        for i, name in zip(numbers, sheets, strict=True)
    )
    formats = b"".join(_record(47, struct.pack("<HH12x", 0, n)) for n in (0, 14, 22))
    found = {
        "xl/_rels/workbook.bin.rels": f'{HEAD}<Relationships xmlns="{PACKAGE}/relationships">'
        f"{links}</Relationships>".encode(),
        "xl/workbook.bin": _record(131) + _record(143) + bundle + _record(144) + _record(132),
        "xl/styles.bin": _record(278)
        + _record(617, struct.pack("<I", 3))
        + formats
        + _record(618)
        + _record(279),
    }
    for i, rows in zip(numbers, sheets.values(), strict=True):
        cells = b"".join(
            _record(0, struct.pack("<I13x", r))
            + b"".join(_binary(v, c) for c, v in enumerate(row) if v is not None)
            for r, row in enumerate(rows)
        )
        last = struct.pack("<IIII", 0, max(len(rows) - 1, 0), 0, max(map(len, rows), default=1) - 1)
        found[f"xl/worksheets/sheet{i}.bin"] = (
            _record(129) + _record(148, last) + _record(145) + cells + _record(146) + _record(130)
        )
    return found


def _record(kind: int, content: bytes = b"") -> bytes:
    return _varint(kind, kind > 127) + _varint(len(content), len(content) > 127) + content


def _varint(value: int, more: bool) -> bytes:
    low = bytes([value & 127 | (128 if more else 0)])
    return low + _varint(value >> 7, value >> 7 > 127) if more else low


def _wide(text: str) -> bytes:
    coded = text.encode("utf-16-le")
    return struct.pack("<I", len(coded) // 2) + coded


def _binary(value: Any, column: int) -> bytes:
    style = (2 if isinstance(value, datetime) else 1) if isinstance(value, date) else 0
    head = struct.pack("<II", column, style)
    if isinstance(value, bool):
        return _record(4, head + bytes([value]))
    if isinstance(value, str):
        return _record(6, head + _wide(value))
    number = _serial(value) if isinstance(value, date) else float(value)
    return _record(5, head + struct.pack("<d", number))


def _ods(sheets: Sheets) -> dict[str, str]:
    spaces = " ".join(f'xmlns:{n}="{ODF}:{n}:1.0"' for n in ("office", "table", "text"))
    tables = "".join(
        f"<table:table table:name={quoteattr(name)}>"
        + "".join(f"<table:table-row>{''.join(map(_ods_cell, r))}</table:table-row>" for r in rows)
        + "</table:table>"
        for name, rows in sheets.items()
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    entry = f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
    return {
        "mimetype": kind,
        "META-INF/manifest.xml": f'{HEAD}<manifest:manifest xmlns:manifest="{ODF}:manifest:1.0">'
        f"{entry}</manifest:manifest>",
        "content.xml": f"{HEAD}<office:document-content {spaces}><office:body><office:spreadsheet>"
        f"{tables}</office:spreadsheet></office:body></office:document-content>",
    }


def _ods_cell(value: Any) -> str:
    if value is None:
        return "<table:table-cell/>"
    if isinstance(value, bool):
        kind = f'office:value-type="boolean" office:boolean-value="{str(value).lower()}"'
    elif isinstance(value, str):
        kind = 'office:value-type="string"'
    elif isinstance(value, date):
        kind = f'office:value-type="date" office:date-value="{value.isoformat()}"'
    else:
        kind = f'office:value-type="float" office:value="{value!r}"'
    return f"<table:table-cell {kind}><text:p>{escape(str(value))}</text:p></table:table-cell>"
