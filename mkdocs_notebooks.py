"""Run the notebooks of the documentation, and write each as a page and as a file for Jupyter.

``python mkdocs_notebooks.py`` runs all of ``docs/notebooks``; names after it run some. A notebook is a Python script in
the percent format: ``# %%`` begins a cell of code, ``# %% [markdown]`` one of text in comments.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "docs" / "notebooks"


@dataclass
class Cell:
    """One cell: its text, and after a run what it printed and the value of its last line."""

    is_code: bool
    text: str
    printed: str = ""
    shown: dict[str, str] = field(default_factory=dict)  # the value by MIME type

    def run(self, names: dict[str, Any], place: str) -> None:
        """Run the code; the value of an expression in its last line is shown."""
        tree = ast.parse(self.text)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(tree, place, "exec"), names)
            value = None
            if last is not None:
                value = eval(compile(ast.Expression(last.value), place, "eval"), names)  # noqa: S307 - our own scripts
        self.printed = out.getvalue()
        if value is not None:
            self.shown = {"text/plain": repr(value)}
            as_html = getattr(value, "_repr_html_", None)
            if as_html is not None:
                self.shown["text/html"] = as_html()

    def page(self) -> str:
        """Return the cell in Markdown."""
        if not self.is_code:
            return self.text
        parts = [f"```python\n{self.text}\n```"]
        if self.printed:
            parts.append(f"```text\n{folded(self.printed)}\n```")
        if "text/html" in self.shown:
            parts.append(f'<div style="overflow-x:auto">{self.shown["text/html"]}</div>')
        elif self.shown:
            parts.append(f"```text\n{folded(self.shown['text/plain'])}\n```")
        return "\n\n".join(parts)

    def jupyter(self, number: int) -> dict[str, Any]:
        """Return the cell in Jupyter's format."""
        cell: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}, "source": self.text}
        if not self.is_code:  # the other pages are not beside a file that somebody downloads
            text = re.sub(r"\[([^\]]+)\]\([^:)]+\)", r"\1", self.text)
            return {"cell_type": "markdown", **cell, "source": text}
        outputs: list[dict[str, Any]] = []
        if self.printed:
            outputs.append({"output_type": "stream", "name": "stdout", "text": self.printed})
        if self.shown:
            outputs.append({"output_type": "display_data", "metadata": {}, "data": self.shown})
        return {"cell_type": "code", "execution_count": None, "outputs": outputs, **cell}


def folded(text: str) -> str:
    """Return a text with its long lines broken, for pages that are narrower."""
    lines = text.rstrip().split("\n")
    return "\n".join(line if len(line) < 100 else textwrap.fill(line, 98) for line in lines)


def cells(script: str) -> list[Cell]:
    """Return the cells of a script in the percent format."""
    found: list[Cell] = []
    for part in f"\n{script}".split("\n# %%")[1:]:
        head, _, body = part.partition("\n")
        is_code = "[markdown]" not in head
        if not is_code:
            body = "\n".join(line.removeprefix("#").removeprefix(" ") for line in body.split("\n"))
        found.append(Cell(is_code, body.strip("\n")))
    return found


def run(path: Path) -> list[Cell]:
    """Run a notebook in an empty folder, and return its cells with what they show."""
    found = cells(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number, cell in enumerate(c for c in found if c.is_code):
            cell.run(names, f"{path.name}, cell {number + 1}")
    return found


def write(path: Path) -> None:
    """Run a notebook, and write its page and its file for Jupyter beside it."""
    found = run(path)
    title, *others = (cell.page() for cell in found)
    files = f"[Notebook with its results]({path.stem}.ipynb) · [Script]({path.name})"
    page = "\n\n".join([title, files, *others])
    path.with_suffix(".md").write_text(f"{page}\n", encoding="utf-8")
    notebook = {
        "cells": [cell.jupyter(number) for number, cell in enumerate(found)],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    text = json.dumps(notebook, indent=1, ensure_ascii=False)
    path.with_suffix(".ipynb").write_text(f"{text}\n", encoding="utf-8")


def main(names: list[str]) -> int:
    """Write the notebooks of these names, each in a process of its own; return 1 if one fails."""
    if len(names) == 1:
        write(FOLDER / f"{names[0]}.py")
        return 0
    names = names or sorted(path.stem for path in FOLDER.glob("*.py"))
    command = [sys.executable, __file__]
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        codes = list(pool.map(lambda name: subprocess.call([*command, name]), names))
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
