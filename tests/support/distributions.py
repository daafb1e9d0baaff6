"""The contents of a wheel and a source distribution: all that belongs in them, and nothing else.

`python -m tests.support.distributions dist` prints each fault of the files in a folder. `make dist` runs it.
"""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from tests.support.pages import ROOT

#: What a file of the package may be beside Python files.
DATA_FILES = (
    r"py\.typed|cli/templates/\w+\.py\.txt|\w+/templates/\w+\.(?:html|css)|studio/static/[\w.]+"
)
#: What a file of the package may be.
PACKAGE_FILES = rf"margrave/(?:[\w/]+\.pyi?|{DATA_FILES})"
METADATA_FILES = r"margrave-[^/]+\.dist-info/(?:METADATA|RECORD|WHEEL|entry_points\.txt|licenses/(?:LICENSE|NOTICE))"
#: What a file of the source distribution may be beside Python files: no table, no archive, no result of a benchmark.
SOURCE_FILES = (
    rf"(?:docs|src|tests)/.+\.(?:pyi?|md|svg)|src/margrave/(?:{DATA_FILES})|docs/trust-results\.json"
    r"|requirements/\w+\.txt|tests/(?:mutants\.toml|golden/[\w-]+\.(?:json|txt|margrave))|examples/\w+\.(?:py|toml)|mkdocs\.yml|mkdocs_\w+\.py"
    r"|(?:README|CHANGELOG|CONTRIBUTING|SECURITY)\.md|CITATION\.cff|LICENSE|NOTICE|Makefile|pyproject\.toml|PKG-INFO"
    r"|\.gitignore"
)
NEEDED_IN_SOURCE = frozenset(
    [
        "README.md",
        "CITATION.cff",
        "LICENSE",
        "NOTICE",
        "pyproject.toml",
        "PKG-INFO",
        "tests/conftest.py",
    ]
)


def package_files() -> set[str]:
    """Return the files of the package in this folder, as a wheel names them."""
    paths = (p for p in (ROOT / "src").rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return {p.relative_to(ROOT / "src").as_posix() for p in paths}


def wheel_faults(names: Iterable[str]) -> list[str]:
    """Return what is missing in a wheel with these files, and what is too much."""
    found = set(names)
    needed = package_files() | {"margrave/py.typed", "margrave/__init__.pyi"}
    extra = {n for n in found if not re.fullmatch(f"{PACKAGE_FILES}|{METADATA_FILES}", n)}
    licenses = {n.rpartition("/")[2] for n in found if "/licenses/" in n}
    return [
        *(f"missing: {n}" for n in sorted(needed - found)),
        *(f"missing: license file {n}" for n in sorted({"LICENSE", "NOTICE"} - licenses)),
        *(f"too much: {n}" for n in sorted(extra)),
    ]


def source_faults(names: Iterable[str]) -> list[str]:
    """Return what is missing in a source distribution with these files, and what is too much."""
    found = {n.partition("/")[2] for n in names}  # without the folder margrave-VERSION
    needed = NEEDED_IN_SOURCE | {f"src/{n}" for n in package_files()}
    return [
        *(f"missing: {n}" for n in sorted(needed - found)),
        *(f"too much: {n}" for n in sorted(found) if not re.fullmatch(SOURCE_FILES, n)),
    ]


def main(folder: str) -> int:
    """Print the faults of the distributions in a folder; return 1 if there are any."""
    wheels, sources = (sorted(Path(folder).glob(f"margrave-*{e}")) for e in (".whl", ".tar.gz"))
    if (len(wheels), len(sources)) != (1, 1):
        print(
            f"{folder} has {len(wheels)} wheels and {len(sources)} source distributions, not one of each."
        )
        return 1
    with zipfile.ZipFile(wheels[0]) as wheel:
        faults = [f"{wheels[0].name}: {f}" for f in wheel_faults(wheel.namelist())]
    with tarfile.open(sources[0]) as source:
        members = [m.name for m in source.getmembers() if not m.isdir()]
    faults += [f"{sources[0].name}: {f}" for f in source_faults(members)]
    print("\n".join(faults) or f"{wheels[0].name} and {sources[0].name} hold what they should.")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
