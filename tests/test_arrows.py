"""The layers of docs/design.md, enforced: every import in every module of the package, read from the syntax tree."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "margrave"

RANK = {
    "errors": 0, "error_sanitizer": 0, "typing": 0, "files": 0, "parameters": 0, "ratios": 0, "content_policy": 0,
    "schema": 0,
    "marginal": 1, "formula": 1,
    "data": 2, "workload": 2,
    "transcript": 3, "public": 3,
    "privacy": 4, "models": 4, "release": 4,
    "mechanisms": 5,
    "evaluate": 6, "inference": 6, "effort": 6, "plan": 6, "unfinished": 6,
    "api": 7, "report": 7, "cli": 7,
    "__main__": 8,
}  # fmt: skip

# Imports between equals that are meant: everything else must point to a lower rank.
BESIDE = {
    ("schema", "errors"), ("schema", "typing"), ("schema", "files"), ("files", "errors"), ("parameters", "errors"),
    ("error_sanitizer", "errors"), ("schema", "error_sanitizer"),
    ("release", "models"),  # a saved release names the kind of its model
    ("plan", "effort"),
    ("cli", "api"), ("cli", "report"),
}  # fmt: skip

# Post-processing cannot see rows because it cannot name them: not even by way of another module.
NEVER_REACHES = {
    "models": {"data", "privacy"},
    "release": {"data", "privacy"},
    "inference": {"data", "privacy"},
    "report": {"data", "privacy", "evaluate"},
    "privacy": {"models", "release"},
    "transcript": {"data", "privacy"},
    "public": {"data", "privacy"},
    "formula": {"data", "privacy"},
}
# A mechanism asks the gate; it holds no table of its own.
NEVER_IMPORTS = {"mechanisms": {"data"}}

# Third-party libraries, and the only places that may import them.
LIBRARIES = {
    "numpy": set(RANK),
    "numba": {"marginal", "models", "privacy", "data"},
    "narwhals": {"schema", "data"},
    "duckdb": {"data"},
    "pyarrow": {"schema", "data", "release", "evaluate", "inference", "api", "cli"},
    "opendp": {"privacy"},
    "click": {"cli"},
    "rich": {"cli"},
    "jax": {"models"},
    "optax": {"models"},
    "blackjax": {"models"},
    "pandas": {"inference"},
    "formulaic": {"inference"},
    "interface_meta": {"inference"},
    "scipy": {"inference", "models", "evaluate"},
    "sklearn": {"evaluate"},
    "statsmodels": {"inference"},
    "threadpoolctl": {"models"},
    "pyspark": {"data"},
}
# The command line loads each command's module, all of its own layer, when the command is called.
LOADERS = {"cli/main.py"}
# Standard modules that would open a hole: objects that run code when read, randomness that anyone can seed.
BANNED = {"pickle", "shelve", "marshal", "random", "dill", "joblib"}


def unit_of(path: Path, package: Path) -> str:
    """The folder or top-level module a file belongs to; the package's own __init__ is ''."""
    first = path.relative_to(package).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every module named by an import anywhere in the tree: functions and TYPE_CHECKING blocks included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield node.lineno, "(relative)"
            elif node.module == "margrave":
                yield from ((node.lineno, f"margrave.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, node.module or ""
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in {"import_module", "__import__"}:
                yield node.lineno, "(by name)"


def complaints(package: Path) -> list[str]:
    """What is wrong with the package's imports, one sentence each."""
    found: list[str] = []
    edges: dict[str, set[str]] = {}
    for path in sorted(package.rglob("*.py")):
        unit, where = unit_of(path, package), path.relative_to(package)
        if unit == "":
            continue  # the lazy front door, tested in test_house_import.py
        if unit not in RANK:
            found.append(f"{where}: {unit} has no place in the layers")
            continue
        for line, module in imports(ast.parse(path.read_text(encoding="utf-8"))):
            parts = module.split(".")
            if module == "(by name)" and str(where) in LOADERS:
                continue
            if module.startswith("("):
                found.append(f"{where}:{line}: an import {module}")
            elif parts[0] == "margrave":
                target = parts[1] if len(parts) > 1 else ""
                edges.setdefault(unit, set()).add(target)
                found += [f"{where}:{line}: {why}" for why in arrow(unit, target)]
            elif parts[0] in BANNED:
                found.append(f"{where}:{line}: {parts[0]} is used nowhere in margrave")
            elif parts[0] not in sys.stdlib_module_names and unit not in LIBRARIES.get(parts[0], set()):
                found.append(f"{where}:{line}: {unit} may not import {parts[0]}")
    return [*found, *unreachable(edges)]


def arrow(unit: str, target: str) -> Iterator[str]:
    """Why ``unit`` may not import ``target``, if it may not."""
    if target == "__version__":
        return
    if target not in RANK:
        yield f"{unit} imports {target or 'the package itself'}, which is no layer"
    elif unit != target and RANK[target] >= RANK[unit] and (unit, target) not in BESIDE:
        yield f"{unit} imports {target}: arrows point down only"
    elif target in NEVER_IMPORTS.get(unit, set()):
        yield f"{unit} imports {target}, which it must not name"


def unreachable(edges: dict[str, set[str]]) -> Iterator[str]:
    """Layers that reach, through any chain of imports, what they must never see."""
    for start, forbidden in NEVER_REACHES.items():
        seen: set[str] = set()
        queue = [start]
        while queue:
            for nxt in edges.get(queue.pop(), set()) - seen:
                seen.add(nxt)
                queue.append(nxt)
        yield from (f"{start} reaches {name}" for name in sorted(seen & forbidden))


def test_the_package_obeys_the_layers() -> None:
    assert complaints(PACKAGE) == []


def test_every_layer_is_known() -> None:
    units = {unit_of(p, PACKAGE) for p in PACKAGE.rglob("*.py")} - {""}
    assert units <= set(RANK), "give the new folder a rank"


PLANTS = [
    ("models/leak.py", "from margrave.data import read_table\n", "models reaches data"),
    ("models/leak.py", "def f():\n    import margrave.privacy.gate\n", "models imports privacy"),
    ("privacy/leak.py", "from margrave.models import MODELS\n", "privacy imports models"),
    ("release.py", "from margrave.privacy import protect\n", "release imports privacy"),
    ("release.py", "from margrave import data\n", "release reaches data"),
    ("inference/mix.py", "from margrave.data import Table\n", "inference reaches data"),
    ("mechanisms/aim.py", "from margrave.data import Table\n", "must not name"),
    ("schema/leak.py", "from margrave.marginal import Query\n", "arrows point down"),
    ("marginal/leak.py", "if TYPE_CHECKING:\n    import margrave.release\n", "arrows"),
    ("transcript.py", "from margrave.data import Table\n", "transcript reaches data"),
    ("models/leak.py", "from .. import data\n", "(relative)"),
    ("models/leak.py", "import importlib\nimportlib.import_module('margrave.data')\n", "(by name)"),
    ("models/leak.py", "import opendp.prelude as dp\n", "may not import opendp"),
    ("workload/leak.py", "import pandas as pd\n", "may not import pandas"),
    ("release.py", "import pickle\n", "pickle is used nowhere"),
    ("surprise/thing.py", "", "no place in the layers"),
]


@pytest.mark.parametrize(("where", "text", "complaint"), PLANTS)
def test_a_planted_wrong_import_is_caught(tmp_path: Path, where: str, text: str, complaint: str) -> None:
    planted = tmp_path / where
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text(text, encoding="utf-8")
    assert any(complaint in c for c in complaints(tmp_path)), complaints(tmp_path)


def test_a_right_import_is_not(tmp_path: Path) -> None:
    (tmp_path / "mechanisms").mkdir()
    (tmp_path / "mechanisms" / "aim.py").write_text(
        "import numpy as np\nfrom margrave.models.protocol import Fit\nfrom margrave.privacy import Private\n",
        encoding="utf-8",
    )
    assert complaints(tmp_path) == []
