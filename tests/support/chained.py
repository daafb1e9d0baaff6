"""Ledgers and journals from below: their lines as SQLite has them, for tests that read or forge them."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

Row = tuple[int, str, str]


def rows(path: Path) -> list[Row]:
    """Return the lines as they are stored: number, event in JSON, head."""
    with closing(sqlite3.connect(path)) as file:
        return file.execute("SELECT * FROM line ORDER BY number").fetchall()


def events(path: Path) -> list[dict[str, Any]]:
    """Return the events of the lines."""
    return [json.loads(text) for _, text, _ in rows(path)]


def put(path: Path, lines: Sequence[Row]) -> None:
    """Replace the lines, and let the file name the last of them."""
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("DELETE FROM line")
        file.executemany("INSERT INTO line VALUES (?, ?, ?)", lines)
        last = lines[-1][2] if lines else ""
        file.execute("UPDATE meta SET lines = ?, head = ?", (len(lines), last))


def put_events(path: Path, kind: str, new: Sequence[Mapping[str, Any]]) -> None:
    """Replace the lines by these events, with a sound chain."""
    with closing(sqlite3.connect(path)) as file:
        ((identity,),) = file.execute("SELECT id FROM meta").fetchall()
    head = hashlib.sha256(f"{kind} {identity}".encode()).hexdigest()
    lines: list[Row] = []
    for number, event in enumerate(new, 1):
        text = json.dumps(event, separators=(",", ":"))
        head = hashlib.sha256((head + text).encode()).hexdigest()
        lines.append((number, text, head))
    put(path, lines)
