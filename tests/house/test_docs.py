"""The worked examples of the documentation run and give what the pages state."""

from __future__ import annotations

import itertools
import json
import math
import re
import sys
import types
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import margrave
from margrave.accounting import AddRemoveRow, Budget
from margrave.accounting.budget import epsilon_for
from margrave.cli.options import parse_workload
from margrave.mechanisms import MECHANISMS
from margrave.models import FAMILIES
from margrave.planning import plan_of
from margrave.privacy import protect
from margrave.schema import Boolean, Categorical, Date, Integer, Real, Schema
from tests.support.pages import GUIDES, ROOT, blocks


def test_the_readme_and_the_quick_start_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    register = pd.DataFrame(
        {"age": rng.integers(100, size=400), "sex": rng.choice(["F", "M"], 400, p=[0.7, 0.3])}
    )
    visits = register.assign(stay=rng.random(400) * 30, outcome=rng.random(400) < 0.3)
    visits.to_csv("visits.csv", index=False)
    columns = [Integer("age", 0, 99, bins=5), Categorical("sex", ["F", "M"])]
    columns += [Real("stay", 0.0, 30.0, bins=4), Boolean("outcome")]
    Schema(columns).save("visits.toml")
    names: dict[str, Any] = {"pandas": pd, "register": register}
    making, analyzing = blocks(ROOT / "README.md", "python")
    with monkeypatch.context() as base:  # pandas comes with extras alone
        base.setitem(sys.modules, "pandas", None)
        exec(making, names)
    exec(analyzing.replace('C(sex)")', 'C(sex)"), m=3'), names)
    assert "C(sex)[T.M]" in capsys.readouterr().out
    Path("visits.margrave").unlink()
    for script in blocks(ROOT / "docs" / "quickstart.md", "python"):
        exec(script, names)
    assert names["counts"].values.shape == (5, 2)
    assert names["release"].account.rho_spent == names["release"].account.rho_budget


def test_the_pages_count_the_mechanisms_and_link_to_files_of_the_repository() -> None:
    words = {28: "twenty-eight", 29: "twenty-nine", 30: "thirty"}
    readme, index = ROOT / "README.md", ROOT / "docs" / "index.md"
    assert f"{words[len(MECHANISMS) - 1]} others are built in" in readme.read_text("utf-8")
    assert f"{words[len(MECHANISMS)]} mechanisms" in index.read_text("utf-8")
    for page in (readme, index):
        links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
        generated = {"research/leaderboard.md"}
        assert [p for p in links if not (page.parent / p).exists() and p not in generated] == []


def test_the_mechanism_of_the_guide_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = types.ModuleType("star")
    monkeypatch.setitem(sys.modules, "star", module)
    module.__dict__["__name__"] = "star"
    exec(blocks(GUIDES / "mechanism.md", "python")[0], module.__dict__)
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
    _, choosing, _, counts, _ = blocks(GUIDES / "mechanism.md", "python")
    schema = Schema.coded({"a": 2, "b": 3, "c": 2})
    rows = margrave.read_table(pa.table({"a": [0, 1, 1], "b": [0, 1, 2], "c": [0, 0, 1]}), schema)
    workload, fit, rng = (
        margrave.Workload.all_kway(schema.domain, 2),
        margrave.models.GraphicalFit(),
        np.random.default_rng(0),
    )
    own = types.SimpleNamespace(fit=fit, rounds=2, alpha=Fraction(1, 2))
    for script in (choosing, counts):
        with protect(rows, unit=AddRemoveRow(), budget=Budget.approx(1.0, 1e-6)) as private:
            names: dict[str, Any] = {
                "private": private, "domain": schema.domain, "workload": workload, "self": own, "rng": rng,
                "candidates": workload.cliques, "relevance": workload.weights, "scale": 3.0, "share": private.rho / 2,
            }  # fmt: skip
            exec(script, names)
            assert private.remaining == 0
            assert names["model"].project(("a", "b")).values.shape == (2, 3)
            if script == choosing:
                noise = {
                    r: names["expected_noise"](3.0, schema.domain.possible(r))
                    for r in workload.cliques
                }
                assert noise.keys() == names["estimates"].keys()


def test_the_choice_by_dependence_of_the_guide_runs() -> None:
    script = blocks(GUIDES / "mechanism.md", "python")[2]
    schema = Schema.coded({"age": 3, "sex": 2, "job": 3})
    rows = margrave.read_table(pa.table({a: [0, 1, 1] for a in schema.domain}), schema)
    with protect(rows, unit=AddRemoveRow(), budget=Budget.approx(1.0, 1e-6)) as private:
        names = {"private": private, "domain": schema.domain, "share": private.rho}
        exec(script, names)
        assert names["chosen"] in names["candidates"]
        assert private.remaining == 0


def test_the_fit_of_the_guide_is_a_stranger_that_can_do_everything(
    tmp_path: Path,
) -> None:
    """Synthesize, plan, save, load, draw and analyze with a model and a fit that the library does not know."""
    names: dict[str, Any] = {"__name__": "product"}
    try:
        for script in blocks(GUIDES / "fit.md", "python"):
            exec(script, names)
        stranger = names["ProductFit"]()
        rng = np.random.default_rng(0)
        rows = pa.table({"a": rng.integers(2, size=400), "b": rng.integers(3, size=400)})
        schema = Schema.coded({"a": 2, "b": 3})
        for mechanism in (
            margrave.mechanisms.AIM(fit=stranger, rounds=6),
            margrave.mechanisms.GEM(fit=stranger, rounds=3),
            margrave.mechanisms.RAP(fit=stranger, rounds=3),
            margrave.mechanisms.NAPSUMQ(fit=stranger),
            margrave.mechanisms.MST(fit=stranger, rare_threshold=0.0),
        ):
            release = margrave.synthesize(
                rows, schema, epsilon=3.0, delta=1e-6, mechanism=mechanism, seed=0
            )
            assert release.model.state().kind == "product"
        release.save(tmp_path / "r.margrave")
        again = margrave.Release.load(tmp_path / "r.margrave")
        assert again.sample(5, seed=1).equals(release.sample(5, seed=1))
        assert len(again.draws(3, seed=0, method="bootstrap")) == 3
        draws = again.draws(5, seed=0, method="bootstrap")
        found = margrave.analyze(draws, margrave.inference.Mean("a"))
        assert 0 < found.params.iloc[0] < 1
        quick, slow = (
            plan_of(
                schema.domain,
                margrave.mechanisms.AIM(fit=fit),
                budget=Budget.approx(1.0, 1e-6),
                unit=AddRemoveRow(),
            )
            for fit in (stranger, margrave.models.GraphicalFit())
        )
        assert quick.seconds is not None
        assert slow.seconds is not None
        assert quick.seconds < slow.seconds
    finally:
        FAMILIES.pop("product", None)


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
    whole = margrave.synthesize(
        names["frame"], names["schema"], epsilon=1.0, delta=1e-9, mechanism="mst"
    )
    for release in (single, whole):
        exec(answers, {**names, "release": release})
        told, kept = capsys.readouterr().out, json.loads(Path("answers.json").read_text())
        assert len(told.splitlines()) == len(release.transcript)
        assert kept["transcript"] == release.transcript.to_dict()
        assert Schema.from_toml(kept["schema"]) == names["schema"]


def test_the_workloads_and_queries_of_the_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert names["ranges"][5].describe == "age 0-2, ill 1"
    assert [len(names[q]) for q in ("cells", "prefixes")] == [12 * 2 + 2 * 5] * 2
    shown = re.findall(
        r"^\| `(?:\"([^\"]+)\"|([^`]+))`", page.read_text(encoding="utf-8"), re.MULTILINE
    )
    shown = [a or b for a, b in shown if b != "--workload"]
    assert len(shown) == 4
    for text in shown:
        assert parse_workload(text, domain).cliques


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
    assert names["draft"].to_learn
    assert names["report"].passed
    assert "DRAFT" in Path("draft.toml").read_text()
    names["connection"].close()


def test_the_public_table_of_the_guide_is_recoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (recoding,) = (b for b in blocks(ROOT / "docs" / "public.md", "python") if "open-sample" in b)
    Schema(
        [Categorical("sex", ["F", "M"]), Integer("age", 0, 99), Integer("income", 0, 200_000)]
    ).save("visits.toml")
    lines = (
        "gender,age,thousands,height",
        "1,30,45,180",
        "9,40,20,170",
        "2,104,3,160",
        "2,60,250,165",
    )
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
    learning = Budget.approx(3.0, 1e-9, 5e-10).rho
    most = max(Budget.approx(1.25, 1e-9, part).rho for part in (0.0, 1e-10))
    assert 5 * most <= learning < 5 * Budget.approx(1.27, 1e-9, 1e-10).rho
    sums = [math.ceil(100 * epsilon_for(rho, 1e-9)) / 100 for rho in (5 * each, 2 * cap, 5 * cap)]
    page = " ".join((ROOT / "docs" / "ledger.md").read_text(encoding="utf-8").split())
    assert f"and five come to {sums[0]}. " in page
    assert f"come to {sums[1]} for a person in both, five to {sums[2]}." in page


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


def test_the_score_of_the_guide_runs_and_has_its_sensitivity() -> None:
    names: dict[str, Any] = {"__name__": "guide"}
    for script in blocks(GUIDES / "score.md", "python"):
        exec(script, names)
    assert names["private"].account().rho_spent == names["private"].rho
    assert names["chosen"] in names["candidates"]
    assert names["model"].project(("b",)).values.shape == (3,)
    score, clique = names["RowsOutsideLargestCell"](), ("a", "b")
    (selection,) = names["private"].transcript.selections
    assert selection.vouched == "guide.RowsOutsideLargestCell"
    for cells in itertools.product(range(4), repeat=3):
        before = np.array(cells)
        for place in range(3):
            after = before + np.eye(3, dtype=np.int64)[place]
            (low,), (high,) = (score([clique], {clique: c}).values for c in (before, after))
            assert abs(high - low) <= score.lipschitz


def test_the_table_of_the_guide_counts_where_the_rows_are() -> None:
    names: dict[str, Any] = {"__name__": "guide"}
    for script in blocks(GUIDES / "table.md", "python"):
        exec(script, names)
    table, release = names["table"], names["release"]
    assert table.rows() == 600
    assert table.count([("sex", "ward")])["sex", "ward"].tolist() == [[100] * 3] * 2
    assert table.bounded(2).rows() == 400
    assert release.account.rho_spent == release.account.rho_budget
    assert release.sample(5).num_rows == 5
    names["connection"].close()
