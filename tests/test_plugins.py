"""A distribution outside the repository: its mechanism and its fit by name, in certificates, and in the checks."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.csv import write_csv

import margrave
from margrave.cli.main import run
from margrave.errors import InputError
from margrave.mechanisms import MECHANISM_CATALOG, MECHANISMS
from margrave.models import FAMILIES, FIT_CATALOG
from margrave.schema import Schema
from margrave.testing import check_fit, check_mechanism
from tests.support.pages import GUIDES, blocks


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The guide's mechanism and fit as the installed distribution margrave-star 0.3."""
    site = tmp_path / "site"
    info = site / "margrave_star-0.3.dist-info"
    info.mkdir(parents=True)
    mechanism, fit = (blocks(GUIDES / f"{part}.md", "python")[0] for part in ("mechanism", "fit"))
    fit = fit.replace(
        'register_family(Family(kind="product", load=load_product))',
        'ProductFit.family = Family(kind="product", load=load_product)',
    )
    (site / "margrave_star.py").write_text(mechanism + "\n\n" + fit, "utf-8")
    (site / "margrave_broken.py").write_text("raise RuntimeError('half installed')\n", "utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: margrave-star\nVersion: 0.3\n")
    (info / "entry_points.txt").write_text(
        "[margrave.mechanisms]\nstar = margrave_star:Star\naim = margrave_star:Star\n"
        "broken = margrave_broken:Star\n[margrave.fits]\nproduct = margrave_star:ProductFit\n"
    )
    monkeypatch.syspath_prepend(site)
    yield site
    FAMILIES.pop("product", None)
    sys.modules.pop("margrave_star", None)


def rows() -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table({"a": rng.integers(2, size=200), "b": rng.integers(3, size=200)})


SCHEMA = Schema.coded({"a": 2, "b": 3})


def test_nothing_is_imported_for_built_in_names_and_lists(outside: Path) -> None:
    assert MECHANISM_CATALOG.get("aim") is margrave.mechanisms.AIM
    assert MECHANISM_CATALOG.names()[-2:] == ["broken", "star"]
    assert (
        "'aim' of the distribution margrave-star 0.3 is refused" in MECHANISM_CATALOG.collisions()
    )
    assert "product" in FIT_CATALOG.names()
    assert "margrave_star" not in sys.modules


def test_a_mechanism_and_a_fit_of_another_distribution_go_all_the_way(
    outside: Path, tmp_path: Path
) -> None:
    release = margrave.synthesize(rows(), SCHEMA, epsilon=3.0, delta=1e-6, mechanism="star", seed=0)
    assert release.certificate()["mechanism"]["name"] == "star"
    assert release.certificate()["versions"]["margrave-star"] == "0.3"
    refitted = release.refit("product", seed=0)
    refitted.save(tmp_path / "r.margrave")
    FAMILIES.pop("product")
    sys.modules.pop("margrave_star")
    again = margrave.Release.load(tmp_path / "r.margrave")
    assert again.sample(5, seed=1).equals(refitted.sample(5, seed=1))
    assert again.certificate()["versions"]["margrave-star"] == "0.3"


def test_without_the_distribution_the_release_opens_without_its_model(
    outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = margrave.synthesize(rows(), SCHEMA, epsilon=3.0, delta=1e-6, seed=0).refit("product")
    release.save(tmp_path / "r.margrave")
    FAMILIES.pop("product")
    (outside / "margrave_star.py").write_text("raise RuntimeError('half installed')\n", "utf-8")
    sys.modules.pop("margrave_star")
    assert "margrave-star 0.3" in margrave.Release.load(tmp_path / "r.margrave").model.absent


def test_the_command_line_knows_its_names_and_options(
    outside: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    SCHEMA.save(tmp_path / "schema.toml")
    write_csv(rows(), tmp_path / "t.csv")
    common = ["--schema", str(tmp_path / "schema.toml"), "--epsilon", "3", "--delta", "1e-6"]
    made = str(tmp_path / "r.margrave")
    star = ["-m", "star", "--target", "b"]
    assert run(["synthesize", str(tmp_path / "t.csv"), *common, *star, "--release", made]) == 0
    assert margrave.Release.load(made).provenance.parameters["target"] == "b"
    again = str(tmp_path / "again.margrave")
    assert run(["refit", made, "--fit", "product", "--release", again]) == 0
    assert run(["plan", *common, "-m", "aim", "--target", "b"]) != 0
    capsys.readouterr()
    assert run(["plan", *common, "-m", "broken"]) != 0
    told = capsys.readouterr().err
    assert "'broken' of the distribution margrave-star 0.3" in told
    assert "half installed" in told
    assert run(["plan", *common]) == 0, "a broken entry point does not break other commands"
    capsys.readouterr()
    assert run(["mechanisms", "--json"]) == 0
    listed = capsys.readouterr()
    assert {line["name"] for line in json.loads(listed.out)} == {*MECHANISMS, "star"}
    assert "'broken' of the distribution margrave-star 0.3" in listed.err
    assert "'aim' of the distribution margrave-star 0.3 is refused" in listed.err


def test_its_mechanism_and_fit_pass_the_checks(outside: Path) -> None:
    check_mechanism(lambda domain: MECHANISM_CATALOG.get("star")())
    check_fit(FIT_CATALOG.get("product")())


def test_the_files_of_a_new_mechanism_pass_the_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["new", "mechanism", "comet"]) == 0
    assert run(["new", "mechanism", "comet"]) != 0, "existing files are not changed"
    assert run(["new", "mechanism", "No-Name"]) != 0
    for taken in ("class", "none", "aim", "private-gsd"):
        assert run(["new", "mechanism", taken]) != 0
        assert f"Choose another name, such as my-{taken}" in capsys.readouterr().err
    assert {p.name for p in tmp_path.iterdir()} == {"comet.py", "test_comet.py"}
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, Any] = {}
    exec((tmp_path / "test_comet.py").read_text("utf-8"), names)
    names["test_comet"]()
    guide = blocks(GUIDES / "mechanism.md", "python")[0]
    assert Path("comet.py").read_text("utf-8") == guide.replace("Star", "Comet").replace(
        "star", "comet"
    )
    sys.modules.pop("comet")


def test_a_name_that_two_distributions_offer_is_refused(outside: Path) -> None:
    info = outside / "other_stars-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-stars\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[margrave.mechanisms]\nstar = other_stars:Star\n")
    both = r"offered by .*margrave-star 0\.3 and by .*other-stars 1\.2|other-stars 1\.2 and by .*margrave-star"
    with pytest.raises(InputError, match=both):
        MECHANISM_CATALOG.get("star")
    assert "margrave_star" not in sys.modules


def test_an_unknown_name_is_refused_with_the_names(outside: Path) -> None:
    with pytest.raises(InputError, match="'comet' is not a mechanism"):
        margrave.synthesize(rows(), SCHEMA, epsilon=1.0, delta=1e-6, mechanism="comet")
