"""A release file from elsewhere takes no more memory than its size allows, whatever it declares."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import margrave
import margrave.models.graphical.model as graphical_model
from margrave import _io
from margrave.accounting import Policy
from margrave.cli.main import run
from margrave.domain import Domain
from margrave.errors import DataError, InputError, ReleaseError, SchemaError
from margrave.models import FAMILIES
from margrave.models.graphical.model import MAX_TABLE_CELLS
from margrave.provenance import Provenance
from margrave.release import Release
from margrave.release.archive import MAX_RATIO
from margrave.schema import Impossible, Schema, constraint_zeros
from margrave.workload import Workload
from tests.support import fake_model

MB = 2**20


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(FAMILIES, "fake", fake_model.FAMILY)
    fake_model.release().save(tmp_path / "a.margrave")
    return tmp_path / "a.margrave"


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def rewritten(
    path: Path,
    members: dict[str, bytes],
    change: Callable[[Any], None] = lambda plain: None,
    method: int = zipfile.ZIP_DEFLATED,
) -> Path:
    target = path.with_name("bomb.margrave")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w", method) as out:
        plain = json.loads(source.read("manifest.json"))
        change(plain)
        out.writestr("manifest.json", json.dumps(plain))
        for name in source.namelist()[1:]:
            if name not in members:
                out.writestr(name, source.read(name))
        for name, data in members.items():
            out.writestr(name, data)
    return target


def taken(path: Path) -> tuple[int, Release | ReleaseError]:
    """The most bytes that reading takes at a time, and what comes of it."""
    tracemalloc.start()
    try:
        found: Release | ReleaseError = Release.load(path)
    except ReleaseError as error:
        found = error
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak, found


def test_what_the_manifest_does_not_name_is_not_decompressed(saved: Path) -> None:
    bomb = rewritten(saved, {"arrays/bomb.npy": npy(np.zeros(60 * MB // 8))})
    assert bomb.stat().st_size < 100_000
    peak, found = taken(bomb)
    assert isinstance(found, Release)
    assert peak < 4 * MB


def test_what_swells_is_refused_before_it_has(saved: Path) -> None:
    bomb = rewritten(saved, {"arrays/000000.npy": npy(np.zeros(60 * MB // 8, dtype=np.int64))})
    size = bomb.stat().st_size
    peak, found = taken(bomb)
    assert f"swells to more than {MAX_RATIO} times its size" in str(found)
    assert peak < 4 * MB + MAX_RATIO * size


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(saved: Path, method: int) -> None:
    peak, found = taken(
        rewritten(saved, {"arrays/000000.npy": npy(np.zeros(60 * MB // 8))}, method=method)
    )
    assert "in a way that releases are not" in str(found)
    assert peak < 4 * MB


def test_declared_sizes_are_not_believed(saved: Path) -> None:
    """Sizes in the directory are lowered: what comes is cut off there, and never decompressed at once."""
    name, real = b"arrays/000000.npy", 60 * MB
    bomb = rewritten(saved, {name.decode(): bytes(real)})
    data = bytearray(bomb.read_bytes())
    for place in (data.find(name) - 30 + 22, data.rfind(name) - 46 + 24):
        assert int.from_bytes(data[place : place + 4], "little") == real
        data[place : place + 4] = (100).to_bytes(4, "little")
    bomb.write_bytes(data)
    peak, found = taken(bomb)
    assert isinstance(found, ReleaseError)
    assert peak < 6 * MB


def test_a_manifest_that_swells_is_refused(saved: Path) -> None:
    def swollen(plain: Any) -> None:
        plain["provenance"]["parameters"] = {"x": ["abc" * 20] * 200_000}

    peak, found = taken(rewritten(saved, {}, swollen))
    assert "swells to more than" in str(found)
    assert peak < 10 * MB


def test_a_manifest_in_its_limits_is_read(saved: Path) -> None:
    assert isinstance(
        taken(
            rewritten(
                saved, {}, lambda plain: plain["provenance"]["parameters"].update(x=[7] * 90_000)
            )
        )[1],
        Release,
    )


def test_a_large_release_is_read_where_that_is_allowed(
    saved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ReleaseError, match=r"more than 0.001 MB. .*max_mb.*--max-release-mb"):
        Release.load(saved, max_mb=0.001)
    assert Release.load(saved, max_mb=5000).account.private is not None
    assert run(["bounds", str(saved), "--max-release-mb", "0.001"]) == 7
    assert "--max-release-mb" in capsys.readouterr().err
    assert run(["certificate", str(saved), "--max-release-mb", "5000"]) == 0


@pytest.mark.parametrize(
    "command",
    [
        ["sample", "R", "-o", "o.csv"],
        ["refit", "R", "--release", "o.margrave"],
        ["report", "R", "-o", "o.html"],
        ["certificate", "R"],
        ["bounds", "R"],
        ["analyze", "mean", "R", "age"],
        ["analyze", "several", "R", "mean age"],
    ],
)
def test_every_command_that_reads_a_release_has_the_limit(
    saved: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(saved.parent)
    named = [str(saved) if word == "R" else word for word in command]
    assert run([*named, "--max-release-mb", "0.001"]) == 7


def test_a_release_of_margraves_own_is_never_taken_for_a_bomb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros compress a thousandfold: such a release is written without compression."""
    monkeypatch.setitem(FAMILIES, "fake", fake_model.FAMILY)
    made = fake_model.release()

    class Wide(fake_model.TableModel):
        def state(self) -> Any:
            state = super().state()
            return replace(state, arrays={**state.arrays, "zeros": np.zeros(20 * MB // 8)})

    model: Any = Wide(made.schema.domain, made.model.counts)  # type: ignore[attr-defined]
    replace(made, model=model).save(tmp_path / "wide.margrave")
    assert Release.load(tmp_path / "wide.margrave").model.total == made.model.total
    made.save(tmp_path / "small.margrave")
    with zipfile.ZipFile(tmp_path / "small.margrave") as archive:
        assert {e.compress_type for e in archive.infolist()} == {zipfile.ZIP_DEFLATED}


def test_a_device_is_not_read_without_end(tmp_path: Path) -> None:
    """/dev/zero has no end: what reads a file that a person names stops at a limit."""
    if not Path("/dev/zero").exists():
        pytest.skip("there is no /dev/zero here")
    with pytest.raises(ReleaseError, match="not a regular file"):
        Release.load("/dev/zero")
    with pytest.raises(SchemaError, match="larger than 64 MiB"):
        Schema.load("/dev/zero")
    with pytest.raises(InputError, match="larger than 64 MiB"):
        Policy.load("/dev/zero")
    with pytest.raises(InputError, match="cannot be read"):
        Workload.load(Domain.of({"a": 2}), "/dev/zero")
    with pytest.raises(DataError):
        margrave.read_table("/dev/zero", Schema.coded({"a": 2}))


def test_a_small_file_cannot_name_a_model_that_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Potentials are small, and the tables of the junction tree of all pairs are not."""
    domain = Domain.of({f"c{i}": 8 for i in range(4)})
    pairs = list(combinations(domain.attributes, 2))
    arrays = {f"potential{i}": np.zeros((8, 8)) for i in range(len(pairs))}
    facts = {"cliques": [list(c) for c in pairs], "total": 100.0}
    assert FAMILIES["graphical"].load(domain, facts, arrays).total == 100.0
    monkeypatch.setattr(graphical_model, "MAX_TABLE_CELLS", 8**4 - 1)
    with pytest.raises(ReleaseError, match="tables of 4,096 cells, and at most 4,095 are read"):
        FAMILIES["graphical"].load(domain, facts, arrays)
    assert 1 << 20 < MAX_TABLE_CELLS <= 1 << 28


def test_a_schema_a_policy_and_a_workload_have_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_io, "MAX_INPUT_BYTES", 100)
    (tmp_path / "w.txt").write_text("a\n")
    assert Workload.load(Domain.of({"a": 2}), tmp_path / "w.txt").cliques == (("a",),)
    (tmp_path / "w.txt").write_text("a\n" + "#" * 100)
    with pytest.raises(InputError, match="cannot be read"):
        Workload.load(Domain.of({"a": 2}), tmp_path / "w.txt")


def test_many_large_constraints_are_refused_before_their_tables_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(constraint_zeros, "MAX_CONSTRAINT_CELLS", 20)
    columns = Schema.coded({"a": 3, "b": 3}).columns
    rules = [Impossible({"a": i, "b": i}) for i in range(3)]
    assert Schema(columns, constraints=rules[:2]).domain.zeros
    with pytest.raises(SchemaError, match="first 3 constraints have more than 20 cells"):
        Schema(columns, constraints=rules)


def test_debits_of_many_digits_are_refused_before_they_are_summed(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    manifest["account"]["debits"] *= 1 + 400 // len(manifest["account"]["debits"])
    for debit in manifest["account"]["debits"]:
        debit["rho"] = "1/1" + "0" * 3000
    members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(saved, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ReleaseError, match="more than 200,000 digits together"):
        Release.load(saved, verify=False)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"rounds": 3', '"rounds": 1e400', "holds the number 1e400"),
        ('"epsilon": 3.0', '"epsilon": 3.0, "epsilon": 4.0', "names something twice"),
    ],
)
def test_a_manifest_is_read_in_one_way_only(saved: Path, old: str, new: str, words: str) -> None:
    with zipfile.ZipFile(saved) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    assert members["manifest.json"].count(old.encode()) == 1
    members["manifest.json"] = members["manifest.json"].replace(old.encode(), new.encode())
    with zipfile.ZipFile(saved, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ReleaseError, match=words):
        Release.load(saved)


def test_parameters_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ReleaseError, match="plain data"):
        Provenance("fake", {"alpha": float("nan")})
