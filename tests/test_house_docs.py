"""What the documentation shows is true: the worked example runs, its links lead somewhere, the commands exist."""

from __future__ import annotations

import json
import re
import sys
import types
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import margrave
from margrave.cli.main import cli
from margrave.privacy import AddRemoveRow, Budget, protect
from margrave.schema import Categorical, Date, Integer, Schema

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def blocks(page: Path, language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [text for kind, text in fenced if kind == language]


def test_the_mechanism_of_the_guide_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = types.ModuleType("star")
    monkeypatch.setitem(sys.modules, "star", module)
    module.__dict__["__name__"] = "star"
    exec(blocks(ROOT / "docs" / "extending.md", "python")[0], module.__dict__)
    schema = Schema.coded({"a": 2, "b": 3, "c": 2})
    rows = pa.table({"a": [0, 1, 1], "b": [0, 1, 2], "c": [0, 0, 1]})
    with protect(
        margrave.read_table(rows, schema), unit=AddRemoveRow(), budget=Budget.approx(1.0, 1e-6)
    ) as private:
        release = module.Star(target="b").run(private)
    assert release.transcript.cliques == (("a",), ("b",), ("c",), ("a", "b"), ("b", "c"))
    assert release.account.rho_spent == release.account.rho_budget
    assert release.sample(5).num_rows == 5


def test_the_comparison_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    script, answers = blocks(ROOT / "docs" / "comparing.md", "python")
    names: dict[str, Any] = {"__name__": "comparing"}
    exec(script.replace("range(2)", "range(1)"), names)
    errors = [float(line[20:].split()[0]) for line in capsys.readouterr().out.splitlines()]
    assert len(errors) == 5
    assert max(errors) < 1
    single = names["release"]
    whole = margrave.synthesize(names["frame"], names["schema"], epsilon=1.0, delta=1e-9, mechanism="mst")
    for release in (single, whole):
        exec(answers, {**names, "release": release})
        told, kept = capsys.readouterr().out, json.loads(Path("answers.json").read_text())
        assert len(told.splitlines()) == len(release.transcript)
        assert kept["transcript"] == release.transcript.to_dict()
        assert Schema.from_toml(kept["schema"]) == names["schema"]


def test_the_schemas_of_the_guide_can_be_made(tmp_path: Path) -> None:
    page = ROOT / "docs" / "schema.md"
    (made,) = (b for b in blocks(page, "python") if "Depends(" in b)
    names: dict[str, Any] = {}
    exec(made, names)
    assert names["schema"].domain.possible(("city", "state")) == 3
    (written,) = (b for b in blocks(page, "toml") if "[[constraint]]" in b)
    columns = [
        Integer("age", 0, 110, edges=[15]),
        Categorical("marital", ["never", "married", "widowed"]),
        Categorical("city", ["York", "Hull"]),
        Categorical("zip", ["YO1", "HU1"]),
        Categorical("state", ["England"]),
        *(Date(n, date(2020, 1, 1), date(2020, 12, 31)) for n in ("admitted", "discharged")),
    ]
    (tmp_path / "city_state.csv").write_text("city,state\nYork,England\nHull,England\n")
    schema = Schema.from_toml(Schema(columns).to_toml() + written, folder=tmp_path)
    assert [c.kind for c in schema.constraints] == ["impossible", "allowed", "depends", "ordered"]
    assert [c.violating for c in schema.constraints] == ["keep", "keep", "refuse", "keep"]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_and_options_exist(page: Path) -> None:
    """Every `margrave ...` line names a command, and options, that are there."""
    text = "\n".join(blocks(page, "")).replace("\\\n", " ")
    for line in re.findall(r"^(?:\$ )?margrave (.+)$", text, re.MULTILINE):
        words = line.split("#")[0].split()
        command: Any = cli
        with cli.make_context("margrave", [], resilient_parsing=True) as context:
            while hasattr(command, "get_command") and words and not words[0].startswith("-"):
                command = command.get_command(context, words.pop(0))
                assert command is not None, line
        known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {
            "--help",
            "-h",
            "--version",
        }
        assert [w for w in words if w.startswith("-") and w not in known] == [], line


def test_files_named_in_the_guide_exist() -> None:
    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:src|tests)/[\w/]+\.py)`", text))
    new = {"src/margrave/mechanisms/star.py", "tests/test_mechanisms_star.py"}
    assert {n for n in named - new if not (ROOT / n).exists()} == set()
    assert new <= named
