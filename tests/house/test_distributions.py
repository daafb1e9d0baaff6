"""The check of wheels and source distributions finds what is missing and what is too much."""

from __future__ import annotations

import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import margrave
from tests.support.distributions import (
    NEEDED_IN_SOURCE,
    main,
    package_files,
    source_faults,
    wheel_faults,
)
from tests.support.pages import ROOT

INFO = "margrave-0.1.0.dist-info"
WHEEL = package_files() | {f"{INFO}/METADATA", f"{INFO}/RECORD", f"{INFO}/WHEEL"}
WHEEL |= {f"{INFO}/licenses/LICENSE", f"{INFO}/licenses/NOTICE", f"{INFO}/entry_points.txt"}
SOURCE = {f"margrave-0.1.0/{n}" for n in NEEDED_IN_SOURCE | {f"src/{n}" for n in package_files()}}


def test_what_belongs_in_them_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(str(tmp_path)) == 1
    with zipfile.ZipFile(tmp_path / "margrave-0.1.0-py3-none-any.whl", "w") as wheel:
        for name in WHEEL:
            wheel.writestr(name, "")
    with tarfile.open(tmp_path / "margrave-0.1.0.tar.gz", "w:gz") as source:
        for name in SOURCE:
            source.addfile(tarfile.TarInfo(name))
    capsys.readouterr()
    assert main(str(tmp_path)) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    "name",
    ["margrave/py.typed", "margrave/__init__.pyi", "margrave/api.py", f"{INFO}/licenses/NOTICE"],
)
def test_a_file_that_a_wheel_lacks_is_named(name: str) -> None:
    (fault,) = wheel_faults(WHEEL - {name})
    assert fault.startswith("missing: ")
    assert fault.endswith(name.rpartition("/")[2])


@pytest.mark.parametrize(
    "name",
    ["tests/conftest.py", "margrave/visits.csv", "margrave/data/adult.parquet", "visits.margrave"],
)
def test_a_file_that_does_not_belong_in_a_wheel_is_named(name: str) -> None:
    assert wheel_faults(WHEEL | {name}) == [f"too much: {name}"]


@pytest.mark.parametrize(
    "name", ["tests/data/visits.csv", "benchmarks/results/jam.parquet", ".venv/bin/python", "a.zip"]
)
def test_data_in_a_source_distribution_are_named(name: str) -> None:
    assert source_faults(SOURCE | {f"margrave-0.1.0/{name}"}) == [f"too much: {name}"]
    assert source_faults(SOURCE - {"margrave-0.1.0/src/margrave/py.typed"}) == [
        "missing: src/margrave/py.typed"
    ]


def test_every_file_of_the_repository_that_is_packed_belongs_there() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("needs a clone of the repository")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]
    roots = tuple(path.removeprefix("/") for path in packed["sdist"]["include"])
    left_out = tuple(path.removeprefix("/") for path in packed["sdist"]["exclude"])
    names = [
        f"margrave-0.1.0/{n}"
        for n in listed.stdout.splitlines()
        if any(n == root or n.startswith(f"{root}/") for root in roots)
        and not n.startswith(left_out)
    ]
    assert source_faults({*names, *SOURCE}) == []


def test_the_citation_names_this_version() -> None:
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {margrave.__version__}" in lines


@pytest.mark.parametrize(
    "name", ["ISSUE_TEMPLATE/bug.md", "ISSUE_TEMPLATE/question.md", "pull_request_template.md"]
)
def test_a_form_warns_never_to_paste_rows(name: str) -> None:
    assert "NEVER PASTE ROWS" in (ROOT / ".github" / name).read_text(encoding="utf-8")
