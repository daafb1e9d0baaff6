"""``import margrave`` is light, and the names at the top are all there."""

from __future__ import annotations

import subprocess
import sys
import time

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


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )


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


def test_names_at_the_top_are_few_and_begin_with_verbs() -> None:
    verbs = "draft_schema check_table plan synthesize evaluate analyze write_report verify"
    assert set(verbs.split()) < set(margrave.__all__)
    assert len(margrave.__all__) <= 32
    assert sorted(dir(margrave)) == sorted([*margrave.__all__, *margrave._PARTS, "__version__"])


def test_every_part_is_there_without_an_import_of_its_own() -> None:
    """Where nothing but the package was imported; each is a public name of the folder, or module."""
    alone = """
import sys
for part in sys.argv[1:]:
    for name in [n for n in sys.modules if n.partition(".")[0] == "margrave"]:
        del sys.modules[name]
    import margrave
    assert not [n for n in sys.modules if n.startswith(f"margrave.{part}")], part
    print(getattr(margrave, part).__name__)
"""
    names = run(alone, *margrave._PARTS).stdout.split()
    assert names == [f"margrave.{part}" for part in margrave._PARTS]
    assert set(margrave._PARTS) <= set(dir(margrave))
    assert all(getattr(margrave, part).__doc__ for part in margrave._PARTS)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        margrave.nonsense  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"'AIM'. It is margrave\.mechanisms\.AIM$"):
        margrave.AIM  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"'OLS'. It is margrave\.inference\.OLS$"):
        margrave.OLS  # type: ignore[attr-defined]  # noqa: B018
    seen = run(
        "try:\n import margrave; margrave.synthesise\nexcept AttributeError as e: print(e.name, e.obj)"
    )
    assert "synthesise <module 'margrave'" in seen.stdout, "the interpreter proposes a name"
