"""Print text of schemas and releases so that it cannot steer a terminal."""

from __future__ import annotations

import json
import re
from typing import Any

import click

from margrave.errors import MargraveError

#: Characters that steer a terminal or turn text around: all controls, line separators, surrogates, and marks of
#: direction.
_STEERING = (
    "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
)
STEERING = re.compile(f"[{_STEERING}]")
#: The same but for line feeds, which lines of our own end with.
STEERING_IN_LINES = re.compile(f"(?!\n)[{_STEERING}]")


def visible(text: str, pattern: re.Pattern[str] = STEERING) -> str:
    """Return text without characters that steer a terminal: each is written as its escape.

    >>> visible("a\\x1b[2J\\u202eb")
    'a\\\\x1b[2J\\\\u202eb'
    """
    return pattern.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print lines without steering characters."""
    click.echo(visible(text, STEERING_IN_LINES), err=err, nl=nl)


def error_facts(message: str, remedy: str | None, code: int) -> dict[str, Any]:
    """Return an error as plain data, for ``--json``."""
    return {"error": message, "remedy": remedy, "exit_code": code}


def facts_of(error: MargraveError | None) -> dict[str, Any]:
    """Return an error as plain data beside the result that it is about; none for None."""
    return {} if error is None else error_facts(error.message, error.remedy, error.exit_code)


def json_text(value: object) -> str:
    """Return JSON whose texts hold no steering character."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return STEERING_IN_LINES.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
