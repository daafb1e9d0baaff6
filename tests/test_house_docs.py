"""What the documentation shows is true: the worked example runs, its links lead somewhere, the commands exist."""

from __future__ import annotations

import json
import re
import sys
import types
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import fake_model
import margrave
from margrave.cli.main import cli
from margrave.cli.options import parse_workload
from margrave.privacy import AddRemoveRow, Budget, protect
from margrave.privacy.budget import epsilon_for
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


def test_the_rounds_of_the_guide_run() -> None:
    """What it shows of choosing privately and of single counts, with nothing but what stands there imported."""
    _, choosing, counts = blocks(ROOT / "docs" / "extending.md", "python")
    schema = Schema.coded({"a": 2, "b": 3, "c": 2})
    rows = margrave.read_table(pa.table({"a": [0, 1, 1], "b": [0, 1, 2], "c": [0, 0, 1]}), schema)
    workload, fit, rng = margrave.Workload.all_kway(schema.domain, 2), margrave.GraphicalFit(), np.random.default_rng(0)
    own = types.SimpleNamespace(fit=fit, rounds=2, alpha=Fraction(1, 2))
    for script in (choosing, counts):
        with protect(rows, unit=AddRemoveRow(), budget=Budget.approx(1.0, 1e-6)) as private:
            names: dict[str, Any] = {
                "private": private, "domain": schema.domain, "workload": workload, "self": own, "rng": rng,
                "candidates": workload.cliques, "relevance": workload.weights, "scale": 3.0, "share": private.rho / 2,
                "model": fit(schema.domain, private.transcript, rng=rng),
            }  # fmt: skip
            exec(script, names)
            assert private.remaining == 0
            assert names["model"].project(("a", "b")).values.shape == (2, 3)
            if script == choosing:
                noise = {r: names["expected_noise"](3.0, schema.domain.possible(r)) for r in workload.cliques}
                assert noise.keys() == names["estimates"].keys()


def test_the_comparison_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    script, answers, again = blocks(ROOT / "docs" / "comparing.md", "python")
    names: dict[str, Any] = {"__name__": "comparing"}
    exec(script.replace("range(2)", "range(1)"), names)
    exec(again, names)
    assert names["one"] is not names["two"]
    assert not names["one"].account.private
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


def test_the_workloads_and_queries_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page, names = ROOT / "docs" / "workload.md", dict[str, Any]()
    (tmp_path / "workload.txt").write_text(next(b for b in blocks(page, "") if b.startswith("#")))
    for script in blocks(page, "python"):
        exec(script, names)
    domain = names["domain"]
    assert names["stored"].weights == {("age", "ill"): 3.0, ("sex", "visits"): 1.0}
    assert names["heavy"].weights == names["stored"].weights
    assert len(names["pairs"].cliques) == 6
    assert names["around"].cliques == margrave.Workload.around(domain, "ill").cliques
    assert names["more"].weights[("age", "sex", "ill")] == 5
    assert names["ranges"][5].words == "age 0-2, ill 1"
    assert [len(names[q]) for q in ("cells", "prefixes")] == [12 * 2 + 2 * 5] * 2
    shown = re.findall(r"^\| `(?:\"([^\"]+)\"|([^`]+))`", page.read_text(encoding="utf-8"), re.MULTILINE)
    shown = [a or b for a, b in shown if b != "--workload"]
    assert len(shown) == 4
    for text in shown:
        assert parse_workload(text, domain).cliques


def test_the_papers_forms_can_be_made() -> None:
    """Every call of the tables, and a line for every mechanism."""
    lines = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    rows = [row for row in rows if row[0] not in ("mechanism", "")]
    schema = Schema.coded({"a": 2, "b": 3, "c": 2})
    public = margrave.Public(schema.encode(pa.table({"a": [0], "b": [1], "c": [0]})), "made up")
    workload = margrave.Workload.all_kway(schema.domain, 2)
    known = {name: getattr(margrave, name) for name in margrave.__all__}
    known |= {"public": public, "workload": workload, "release": fake_model.release()}
    named = set()
    for row in rows:
        assert len(row) == 4, row
        (call,) = re.findall(r"`([^`]+)`", row[2])
        made = eval(call, dict(known))  # noqa: S307
        if (name := row[0].strip("`")) in margrave.MECHANISMS:
            assert type(made) is margrave.MECHANISMS[name]
            named.add(name)
        else:
            assert not row[0].startswith("`"), name
    assert named == set(margrave.MECHANISMS)


def test_the_tables_of_the_guide_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reading, checking = blocks(ROOT / "docs" / "tables.md", "python")
    schema = Schema([Integer("age", 0, 120, bins=12), Categorical("sex", ["F", "M"])])
    schema.save("visits.toml")
    with duckdb.connect("visits.duckdb") as connection:
        made = "SELECT range % 110 AS age, if(range % 2 = 0, 'F', 'M') AS sex FROM range(330)"
        connection.execute(f"CREATE TABLE visits AS {made}")
    names: dict[str, Any] = {}
    exec(reading, names)
    assert names["rows"].rows() == 300
    assert names["release"].account.private
    exec(checking, names)
    assert names["draft"].draft
    assert names["found"].passed
    assert "DRAFT" in Path("draft.toml").read_text()
    names["connection"].close()


def test_the_public_table_of_the_guide_is_recoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (recoding,) = (b for b in blocks(ROOT / "docs" / "public.md", "python") if "open-sample" in b)
    Schema([Categorical("sex", ["F", "M"]), Integer("age", 0, 99), Integer("income", 0, 200_000)]).save("visits.toml")
    lines = "gender,age,thousands,height", "1,30,45,180", "9,40,20,170", "2,104,3,160", "2,60,250,165"
    Path("open-sample.csv").write_text("\n".join([*lines, ""]))
    names: dict[str, Any] = {}
    exec(recoding, names)
    assert names["public"].codes.column("sex").tolist() == [1, 0]
    assert names["public"].notes == (
        "The public table, column 'income': 1 of 2 values outside the schema, moved to the nearest cell.",
    )


def test_the_sums_of_the_ledger_page() -> None:
    """What yearly releases and two caps come to."""
    each, small, cap = (Budget.approx(epsilon, 1e-9).rho for epsilon in (1.0, 1.28, 3.0))
    assert 5 * small <= cap < 5 * Budget.approx(1.29, 1e-9).rho
    assert 8 * each <= cap < 9 * each
    sums = [f"{epsilon_for(rho, 1e-9):.3g}" for rho in (5 * each, 2 * cap, 5 * cap)]
    page = " ".join((ROOT / "docs" / "ledger.md").read_text(encoding="utf-8").split())
    assert f"and five come to {sums[0]}. " in page
    assert f"come to {sums[1]} for a person in both, five to {float(sums[2]):.2g}." in page


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
