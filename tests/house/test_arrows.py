"""The layers of docs/design.md, enforced: every import in every module of the package, read from the syntax tree."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "margrave"

RANK = {
    "errors": 0, "error_sanitizer": 0, "types": 0, "_io": 0, "_fields": 0, "_version": 0, "_front": 0, "_card": 0,
    "_other_names": 0,
    "_kernel": 0, "_compiling": 0,
    "ratios": 0, "content_policy": 0, "plugins": 0,
    "domain": 0, "structural_zeros": 0, "unit": 0,
    "schema": 1, "marginal": 1, "formula": 1, "attack_risk": 1, "progress": 1, "custodian": 1,
    "frames": 2, "frame_kinds": 2, "purpose_words": 2, "codebooks": 2,
    "data": 3, "workload": 3, "provenance": 3, "transcript": 3, "account": 3, "public_table": 3, "purposes": 3,
    "models": 4, "purpose_widths": 4, "accounting": 4, "profiling": 4,
    "privacy": 5, "bounds": 5, "learning": 5,
    "release": 6,
    "mechanisms": 7, "report": 7,
    "evaluation": 8, "inference": 8, "cost": 8, "column_noise": 8, "hidden_columns": 8,
    "wide_bins": 8, "verdict_forecast": 8,
    "planning": 8, "unfinished": 8,
    "purpose_analyses": 8, "resuming": 8, "row_checks": 8, "sealed": 8, "learning_stage": 8, "run": 8, "api": 8,
    "studio": 9, "cli": 9, "contrib": 9,
    "__main__": 10, "testing": 10,
}  # fmt: skip

# Imports between equals that are meant: everything else must point to a lower rank.
BESIDE = {
    ("_io", "errors"), ("plugins", "errors"), ("_fields", "errors"), ("error_sanitizer", "errors"),
    ("plugins", "_other_names"), ("error_sanitizer", "_other_names"),
    ("_kernel", "_compiling"), ("domain", "errors"), ("domain", "types"), ("domain", "structural_zeros"),
    ("structural_zeros", "errors"), ("structural_zeros", "types"),
    ("provenance", "workload"), ("purposes", "workload"), ("public_table", "provenance"), ("unit", "errors"),
    ("schema", "frames"),  # upward: Schema.encode takes a frame, and frames reads texts as the schema does
    ("planning", "cost"), ("planning", "hidden_columns"), ("planning", "wide_bins"), ("planning", "verdict_forecast"),
    ("verdict_forecast", "wide_bins"), ("verdict_forecast", "column_noise"),
    ("hidden_columns", "column_noise"), ("api", "learning_stage"),
    ("api", "planning"), ("purpose_analyses", "inference"), ("run", "purpose_analyses"),
    ("run", "planning"), ("run", "unfinished"), ("run", "resuming"), ("run", "row_checks"),
    ("run", "learning_stage"), ("run", "sealed"), ("api", "run"), ("api", "sealed"),
    ("cli", "studio"),
}  # fmt: skip

# Post-processing cannot see rows because it cannot name them: not even by way of another module.
NEVER_REACHES = {
    "models": {"data", "profiling", "accounting", "privacy"},
    "bounds": {"data", "profiling", "accounting", "privacy"},
    "learning": {"data", "privacy", "accounting", "profiling"},
    "release": {"data", "profiling", "accounting", "privacy"},
    "inference": {"data", "profiling", "accounting", "privacy"},
    "report": {"data", "profiling", "accounting", "privacy", "evaluation"},
    "privacy": {"models", "bounds", "release"},
    "accounting": {"data", "models", "bounds", "release", "profiling"},
    "transcript": {"data", "privacy"},
    "account": {"data", "privacy"},
    "public_table": {"data", "privacy"},
    "formula": {"data", "privacy"},
    "codebooks": {"data", "privacy", "profiling"},
}
# A mechanism asks the gate; it holds no table of its own.
NEVER_IMPORTS = {"mechanisms": {"data"}}

# Third-party libraries, and the only places that may import them.
LIBRARIES = {
    "numpy": set(RANK),
    "numba": {"_kernel"},
    "narwhals": {"frames", "frame_kinds"},
    "duckdb": {"data"},
    "pyarrow": {
        "frames",
        "frame_kinds",
        "schema",
        "data",
        "release",
        "evaluation",
        "inference",
        "api",
        "cli",
        "studio",
        "testing",
    },
    "opendp": {"privacy"},
    "click": {"cli"},
    "rich": {"cli", "progress"},
    "jax": {"models"},
    "optax": {"models"},
    "blackjax": {"models"},
    "pandas": {"inference", "frame_kinds", "data"},
    "formulaic": {"inference"},
    "interface_meta": {"inference"},
    "scipy": {"inference", "models", "evaluation", "mechanisms"},
    "sklearn": {"evaluation"},
    "statsmodels": {"inference"},
    "threadpoolctl": {"models"},
    "pyspark": {"data"},
    "dask": {"data"},
    "ray": {"data"},
    "dp_accounting": {"contrib"},
    "pyreadstat": {"codebooks"},
    "fastexcel": {"data"},
    "xlsxwriter": {"data"},
    "jinja2": {"report", "studio"},
    "markupsafe": {"report", "studio"},
    "starlette": {"studio"},
    "uvicorn": {"studio"},
}
# The command line loads each command's module, all of its own layer, when the command is called.
# A release calls the report and the comparison of higher layers, and passes what its caller gave.
LOADERS = {"cli/main.py", "_front.py"}
# Standard modules that would open a hole: objects that run code when read, randomness that anyone can seed.
BANNED = {"pickle", "shelve", "marshal", "random", "dill", "joblib"}


def unit_of(path: Path, package: Path) -> str:
    """The folder or top-level module a file belongs to; the package's own __init__ is ''."""
    first = path.relative_to(package).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a module, which nothing changes while the tests run."""
    return ast.parse(path.read_text(encoding="utf-8"))


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
            name = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
            if name in {"import_module", "__import__"}:
                yield node.lineno, "(by name)"


def complaints(package: Path) -> list[str]:
    """What is wrong with the package's imports, one sentence each."""
    found: list[str] = []
    edges: dict[str, set[str]] = {}
    for path in sorted(package.rglob("*.py")):
        unit, where = unit_of(path, package), path.relative_to(package)
        if unit == "":
            continue  # the lazy front door, tested in house/test_import.py
        if unit not in RANK:
            found.append(f"{where}: {unit} has no place in the layers")
            continue
        for line, module in imports(tree_of(path)):
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
            elif parts[0] not in sys.stdlib_module_names and unit not in LIBRARIES.get(
                parts[0], set()
            ):
                found.append(f"{where}:{line}: {unit} may not import {parts[0]}")
    return [*found, *unreachable(edges)]


def modules(package: Path) -> dict[str, Path]:
    """Return every module of the package by its dotted name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = ("margrave", *path.relative_to(package).with_suffix("").parts)
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def file_edges(package: Path) -> dict[str, set[str]]:
    """Return which modules each module imports, function-level and TYPE_CHECKING imports included.

    The package's own ``__init__`` is left out: it names everything and loads it when asked.
    """
    files = modules(package)
    edges = {}
    for name, path in files.items():
        targets = set()
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                whole = [f"{node.module}.{alias.name}" for alias in node.names]
                targets |= {t if t in files else node.module for t in whole}
            elif isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
        edges[name] = (targets & files.keys()) - {name, "margrave"}
    return edges


def cycle(edges: dict[str, set[str]]) -> list[str]:
    """Return the modules of one import cycle in order, or nothing."""
    left = {name: set(targets) for name, targets in edges.items()}
    while free := [name for name, targets in left.items() if not targets & left.keys()]:
        for name in free:
            del left[name]
    path: list[str] = []
    here = min(left, default="")
    while here and here not in path:
        path.append(here)
        here = min(left[here] & left.keys())
    return path[path.index(here) :] if here else []


def class_names(package: Path) -> list[str]:
    return [
        node.name
        for path in sorted(package.rglob("*.py"))
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
    ]


def test_no_class_name_stands_twice(tmp_path: Path) -> None:
    names = class_names(PACKAGE)
    assert len(names) > 200
    assert {n for n in names if names.count(n) > 1} == set()
    (tmp_path / "two.py").write_text("class A: ...\nclass A: ...\n", encoding="utf-8")
    assert class_names(tmp_path) == ["A", "A"], "and it would be seen"


def test_files_form_no_cycle() -> None:
    assert cycle(file_edges(PACKAGE)) == []


def test_a_planted_cycle_of_files_is_found(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "fit.py").write_text(
        "def f():\n    from margrave.models.model import M\n", encoding="utf-8"
    )
    (tmp_path / "models" / "model.py").write_text(
        "if TYPE_CHECKING:\n    from margrave.models import fit\n", encoding="utf-8"
    )
    (tmp_path / "models" / "free.py").write_text(
        "from margrave.models import model\n", encoding="utf-8"
    )
    assert cycle(file_edges(tmp_path)) == ["margrave.models.fit", "margrave.models.model"]


def arrow(unit: str, target: str) -> Iterator[str]:
    """Why ``unit`` may not import ``target``, if it may not."""
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
    ("privacy/leak.py", "from margrave.models import FAMILIES\n", "privacy reaches models"),
    ("release.py", "from margrave.privacy import protect\n", "release reaches privacy"),
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
def test_a_planted_wrong_import_is_caught(
    tmp_path: Path, where: str, text: str, complaint: str
) -> None:
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
