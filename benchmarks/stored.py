"""Results on disk, one JSON line a run, and the pages whose tables are made from them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Facts = dict[str, Any]


def read_lines(path: Path) -> Iterator[Facts]:
    """What a file holds, if there is one."""
    if path.exists():
        yield from (json.loads(text) for text in path.read_text().splitlines())


def append(path: Path, line: Facts) -> None:
    """One line more, its numbers to nine digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        stream.write(json.dumps(rounded(line)) + "\n")


def rounded(value: Any) -> Any:
    """Plain data; the scale of the noise and delta stay whole."""
    if isinstance(value, dict):
        return {k: v if k in ("scale", "delta") else rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def filled(page: str, tables: Mapping[str, str]) -> str:
    """The page with its tables written anew."""
    for name, text in tables.items():
        mark = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = mark.sub(lambda m, text=text: f"{m[1]}{text}\n{m[2]}", page)  # type: ignore[misc]
    return page
