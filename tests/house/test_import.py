"""``import margrave`` is light, and the names at the top are all there."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest

import margrave

HEAVY = (
    "numpy",
    "numba",
    "duckdb",
    "opendp",
    "pyarrow",
    "narwhals",
    "click",
    "rich",
    "jax",
    "torch",
    "pandas",
)


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


def test_importing_loads_nothing_heavy() -> None:
    loaded = run("import sys, margrave; print(' '.join(sys.modules))").stdout.split()
    assert "margrave" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_importing_is_quick() -> None:
    run("import margrave")  # compiled once

    def seconds(code: str) -> float:
        start = time.perf_counter()
        run(code)
        return time.perf_counter() - start

    bare = min(seconds("pass") for _ in range(3))
    ours = min(seconds("import margrave") for _ in range(3))
    assert ours - bare < 0.5  # some 10 ms on a quiet machine


@pytest.mark.parametrize("name", margrave.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(margrave, name) is not None


def test_the_table_of_names_says_what_the_types_say() -> None:
    assert sorted(margrave.__all__) == sorted(margrave._HOME)
    tree = ast.parse(Path(margrave.__file__).read_text(encoding="utf-8"))
    for_types = {
        alias.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {name: home for name, home in for_types.items() if home != "margrave"} == margrave._HOME
    assert {name for name, home in for_types.items() if home == "margrave"} <= set(margrave._PARTS)


@pytest.mark.parametrize("part", margrave._PARTS)
def test_every_part_is_there_without_an_import_of_its_own(part: str) -> None:
    """In a process that has imported nothing but the package; each is a public name of the folder, or module."""
    assert (
        run(f"import margrave; print(margrave.{part}.__name__)").stdout.strip()
        == f"margrave.{part}"
    )
    assert part in dir(margrave)
    assert getattr(margrave, part).__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        margrave.nonsense  # noqa: B018
    assert "synthesize" in dir(margrave)
