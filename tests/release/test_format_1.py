"""Releases written in format 1 are read, and saved again in the present format."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from margrave.errors import ReleaseError
from margrave.models import GraphicalFit
from margrave.models.specs import fit_of_spec
from margrave.release import Release
from margrave.unit import AddRemovePerson, AddRemoveRow
from margrave.workload import AllKWay, Workload
from tests.support import golden

AIM_FILE = golden.FOLDER / "format-1.margrave"
PERSONS_FILE = golden.FOLDER / "format-1-persons.margrave"
"""AIMPub's release of persons, refitted from another public table."""


def manifest_of(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        found: dict[str, Any] = json.loads(archive.read("manifest.json"))
    return found


def changed(path: Path, folder: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    manifest, target = manifest_of(path), folder / "changed.margrave"
    change(manifest)
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as out:
        for name in source.namelist():
            text = json.dumps(manifest).encode()
            out.writestr(name, text if name == "manifest.json" else source.read(name))
    return target


@pytest.mark.parametrize("path", [AIM_FILE, PERSONS_FILE], ids=lambda p: p.stem)
def test_the_stored_files_are_of_format_1_and_verify(path: Path, tmp_path: Path) -> None:
    assert manifest_of(path)["version"] == 1
    made = Release.load(path)
    assert made.verify().findings == ()
    made.save(tmp_path / "new.margrave")
    assert manifest_of(tmp_path / "new.margrave")["version"] == 2
    again = Release.load(tmp_path / "new.margrave")
    assert again.certificate() == made.certificate()
    assert again.sample(20, seed=1).equals(made.sample(20, seed=1))


def test_a_release_of_format_1_is_the_one_of_the_present_format() -> None:
    old, new = Release.load(AIM_FILE), Release.load(golden.FOLDER / golden.RELEASE)
    read, present = old.certificate(), new.certificate()
    for facts in (read, present):
        facts["versions"] = None
        assert "steps=3" in facts["mechanism"]["fit"].pop("words")
    present_fit = present["mechanism"]["fit"]["parameters"]
    assert read["mechanism"]["fit"]["parameters"] == {
        **{k: v for k, v in present_fit.items() if k != "weights"},
        "empty_below": 0.0,
        "rake": False,
    }
    read["mechanism"]["fit"]["parameters"] = present_fit
    since = {
        "column_error": 0.4,
        "generalized": False,
        "shortlist": None,
    }  # parameters that are newer
    assert {k: present["mechanism"]["parameters"].pop(k) for k in since} == since
    # Estimates stop elsewhere by now, so the last rounds chose something else.
    for name, same in (("transcript", 21), ("ledger", 17)):
        first = [facts.pop(name)[:same] for facts in (read, present)]
        assert first[0] == first[1]
        assert len(first[0]) == same
    assert abs(read.pop("size") - present.pop("size")) < 20.0
    assert read == present
    assert old.account.unit == new.account.unit == AddRemoveRow()
    assert old.account.rho_spent == new.account.rho_spent == new.account.rho_budget


def test_units_are_read_from_their_words(tmp_path: Path) -> None:
    assert Release.load(PERSONS_FILE).account.unit == AddRemovePerson(3)
    one = "add or remove one person of at most 1 row"
    path = changed(PERSONS_FILE, tmp_path, lambda m: m["account"].update(unit=one))
    assert Release.load(path, verify=False).account.unit == AddRemovePerson(1)


def test_provenance_is_read_from_the_configuration() -> None:
    found = Release.load(PERSONS_FILE).provenance
    assert (found.mechanism, found.workload, found.stopped_early) == ("aim-pub", AllKWay(3), False)
    assert found.parameters == {"alpha": 0.9, "max_model_mb": 80.0, "rounds": 6}
    assert found.fit is not None
    assert found.refit is not None
    assert fit_of_spec(found.fit) == GraphicalFit(empty_below=0.0, rake=False)
    assert (found.refit.name, "public=Public(60 records" in found.refit.words) == (None, True)
    assert [t.attestation for t in found.public_tables] == [
        "a sample that was published before", "another sample",
    ]  # fmt: skip
    assert (found.public, found.refit.public) == found.public_tables
    assert found.started_from == ("age", "sex", "job")


@pytest.mark.parametrize(
    "changes",
    [
        {"workload": "most of them"}, {"workload": 3}, {"workload": [["age"]]}, {"name": None}, {"fit": "Graph()"},
        {"first_fit": {"name": 3}}, {"public": {"sha256": "0"}}, {"public": []}, {"stopped_early": "no"},
    ],
)  # fmt: skip
def test_a_malformed_configuration_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    path = changed(PERSONS_FILE, tmp_path, lambda m: m["config"].update(changes))
    with pytest.raises(ReleaseError):
        Release.load(path, verify=False)


def test_a_workload_of_marginals_and_a_run_that_stopped_are_read(tmp_path: Path) -> None:
    config = {"workload": [[["age", "sex"], 2.0]], "stopped_early": True}
    found = Release.load(changed(AIM_FILE, tmp_path, lambda m: m["config"].update(config)))
    assert isinstance(found.provenance.workload, Workload)
    assert found.provenance.workload.weights == {("age", "sex"): 2.0}
    assert found.provenance.stopped_early


@pytest.mark.parametrize(
    "words",
    ["replace one person of at most 1000001 rows", "replace one person of at most 1 rows",
     "replace one person of at most 0 rows", "replace one person of at most 03 rows", "replace one row ",
     "Replace one row", "", 3, None, "replace-row"],
)  # fmt: skip
def test_other_words_are_not_a_unit(words: object, tmp_path: Path) -> None:
    path = changed(AIM_FILE, tmp_path, lambda m: m["account"].update(unit=words))
    with pytest.raises(ReleaseError, match="not one of margrave's units"):
        Release.load(path, verify=False)


def test_a_format_to_come_is_refused(tmp_path: Path) -> None:
    shutil.copy(AIM_FILE, tmp_path / "r.margrave")
    for version in (0, 3, "1", None):
        path = changed(AIM_FILE, tmp_path, lambda m, v=version: m.update(version=v))  # type: ignore[misc]
        with pytest.raises(ReleaseError, match="version of the format"):
            Release.load(path)
