"""Pages from stored rows: Markdown tables between marks, and SVG figures beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Page:
    """Tables by their marks in the document, and figures by their names (empty: not drawn)."""

    tables: Mapping[str, str]
    figures: Mapping[str, str] = field(default_factory=dict)

    def write(self, docs: Path, document: str) -> None:
        """Fill ``DOCUMENT.md`` in a folder, and write the figures into ``DOCUMENT/``."""
        folder, page = docs / document, docs / f"{document}.md"
        folder.mkdir(parents=True, exist_ok=True)
        for name, svg in self.figures.items():
            (folder / f"{name}.svg").unlink(missing_ok=True)
            if svg:
                (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
        page.write_text(fill_marks(page.read_text(encoding="utf-8"), self.tables), encoding="utf-8")

    def text(self) -> str:
        """Return all tables, each below its name."""
        return "\n\n".join(f"{name}:\n\n{table}" for name, table in self.tables.items() if table)


def fill_marks(page: str, tables: Mapping[str, str]) -> str:
    """Return a page whose tables, from ``<!-- table: NAME -->`` to the end mark, are replaced."""

    def replacement(text: str) -> Callable[[re.Match[str]], str]:
        return lambda mark: f"{mark[1]}{text}\n{mark[2]}"

    for name, text in tables.items():
        mark = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = mark.sub(replacement(text), page)
    return page


def markdown(head: Sequence[str], body: Sequence[Sequence[object]], rule: str = " --- |") -> str:
    """Return a table; nothing if it has no lines."""
    if not body:
        return ""
    lines = [head, *body]
    first, *rest = ["| " + " | ".join(map(str, line)) + " |" for line in lines]
    return "\n".join([first, "|" + rule * len(head), *rest])
