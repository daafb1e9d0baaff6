"""Plain values as TOML text, in one form."""

from __future__ import annotations

import re
import textwrap
from datetime import date, datetime
from typing import Any


def says(value: object) -> bool:
    """Return True if a setting says anything: false, none and an empty list do not."""
    return value is not None and value is not False and value != [] and value != ()


def comment(remark: str) -> list[str]:
    """Return a remark as lines of comment."""
    wrapped = (textwrap.wrap(row, 105, break_long_words=False) for row in remark.splitlines())
    return [f"# {row}" for rows in wrapped for row in rows]


def line(key: str, value: Any) -> str:
    """Return a setting; a long list has a line for each entry."""
    if isinstance(value, list | tuple) and len(str(value)) > 90:
        items = "".join(f"    {written(v)},\n" for v in value)
        return f"{key} = [\n{items}]"
    return f"{key} = {written(value)}"


def written(value: Any) -> str:
    """Return one value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return string(value)
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key_of(k)} = {written(v)}' for k, v in value.items())}}}"
    return repr(value)


def key_of(name: str) -> str:
    """Return a key: bare if it may be, else as a string."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else string(name)


def string(value: str) -> str:
    """Return a basic string: the quotes, backslashes and control characters escaped."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    safe = (
        escapes.get(c, f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c) for c in value
    )
    return f'"{"".join(safe)}"'


def quoted(name: str) -> str:
    """Return a name for an error message, not longer than a line."""
    return repr(name if len(name) <= 60 else f"{name[:57]}...")
