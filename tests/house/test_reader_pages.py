"""The pages for users with a job: figures about epsilon, recipes for analysts, quoted messages."""

from __future__ import annotations

import ast
import math
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import margrave
from margrave.accounting import Budget
from margrave.accounting.budget import epsilon_for
from margrave.accounting.strength import delta_for_rows
from margrave.attack_risk import attack_risk
from margrave.cli.main import run
from margrave.inference import OLS, Mean, analyze
from margrave.schema import Categorical, Integer, Schema
from tests.support.pages import ROOT, blocks
from tests.support.whole_draws import WholeDraws

DOCS = ROOT / "docs"
SCHEMA = Schema(
    [
        Integer("age", 70, 89),
        Categorical("sex", ["F", "M"]),
        Integer("stay", 0, 5),
        Categorical("ward", ["a", "b", "c"]),
    ]
)


def tables(page: str) -> list[list[list[str]]]:
    """Return the cells of the tables of a page, without their heads."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    return [
        [[c.strip() for c in line.strip("|").split("|")] for line in table.splitlines()[2:]]
        for table in found
    ]


def up(value: float, digits: int = 1) -> str:
    """Return a figure rounded up, as the page states bounds."""
    return f"{math.ceil(round(value * 10**digits, 6)) / 10**digits:.{digits}f}"


def test_the_figures_about_epsilon() -> None:
    by_epsilon, by_rows, by_releases = tables("epsilon.md")
    for epsilon, advantage, even, power in by_epsilon:
        risk = attack_risk(Budget.approx(float(epsilon), 1e-9).rho)
        assert advantage == f"{up(100 * risk.advantage)} %"
        assert even == f"{up(50 + 50 * risk.advantage)} of 100"
        assert power == f"{up(100 * risk.power)} of 100"
    for rows, delta in by_rows:
        assert float(delta) == delta_for_rows(int(rows.replace(",", "")))
    one = Budget.approx(1.0, 1e-9).rho
    for releases, epsilon, advantage in by_releases:
        rho = int(releases) * one
        assert float(epsilon) == float(up(epsilon_for(rho, 1e-9), 2))
        assert advantage == f"{up(100 * attack_risk(rho).advantage)} %"
    page = " ".join((DOCS / "epsilon.md").read_text(encoding="utf-8").split())
    more = (Budget.approx(1.0, 1e-6).rho / one) ** 0.5 - 1
    assert f"needs {100 * more:.0f} % more noise than 1e-6" in page
    sums = epsilon_for(25 * one, 1e-9), epsilon_for(400 * one, 1e-9)
    assert f"means {up(sums[0], 2)} for the person" in page
    assert f"advantage of {100 * attack_risk(25 * one).advantage:.0f} %" in page
    assert f"At twenty rows it is {up(sums[1])}," in page


def test_the_advice_of_the_page_is_that_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("visits.toml")
    names: dict[str, Any] = {}
    exec(*blocks(DOCS / "epsilon.md", "python"), names)
    assert names["plan"].risk == attack_risk(Budget.approx(1.0, 1e-9).rho)
    (shown,) = blocks(DOCS / "epsilon.md", "text")
    command = "plan --schema visits.toml --epsilon 1 --delta 1e-9 --rows 40000 --advise"
    assert f"margrave {command}" in (DOCS / "epsilon.md").read_text(encoding="utf-8")
    assert run(command.split()) == 0
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    for line in shown.splitlines():
        assert line.split() in printed
    for line in shown.splitlines()[1:]:
        epsilon, advantage, found = (line.split()[i] for i in (0, -4, -2))
        risk = attack_risk(Budget.approx(float(epsilon), 1e-9).rho)
        assert (advantage, found) == (up(100 * risk.advantage), up(100 * risk.power))


def test_the_figures_for_boards() -> None:
    page = " ".join((DOCS / "boards.md").read_text(encoding="utf-8").split())
    right, at_3, at_10 = (
        math.ceil(50 + 50 * attack_risk(Budget.approx(e, 1e-9).rho).advantage) for e in (1, 3, 10)
    )
    assert f"at most {right} of 100 cases" in page
    assert f"At epsilon 3 it is {at_3}, at epsilon 10 it is {at_10}." in page
    assert "advantage of at most [10.2] points" in page


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the names after the export of the page for analysts, in a folder with its files."""
    folder = tmp_path_factory.mktemp("analysts")
    rng = np.random.default_rng(0)
    age, sex = rng.integers(100, size=3000), rng.choice(["F", "M"], 3000)
    visits = pd.DataFrame({"age": age, "sex": sex, "stay": rng.random(3000) * (10 + age / 5)})
    schema = Schema([c for c in SCHEMA.columns if c.name != "ward"])
    release = margrave.synthesize(visits, schema, epsilon=3.0, delta=1e-9, seed=0)
    release.save(folder / "visits.margrave")
    calling, exporting, combining = blocks(DOCS / "analysts.md", "python")
    few = "release.draws(8, seed=1)"
    names: dict[str, Any] = {"folder": folder}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        calling = calling.replace('C(sex)"))', 'C(sex)"), m=4)')
        exec(calling.replace('"sex")', '"sex"), m=4'), names)
        exec(exporting.replace("release.draws(100, seed=1)", few), names)
        exec(combining, names)
    return names


def test_the_recipe_in_pandas_gives_the_interval_of_analyze(recipes: dict[str, Any]) -> None:
    stay, center = recipes["stay"], recipes["center"]
    ratio = recipes["draws"].rows / recipes["draws"].total
    found = recipes["combine"](stay.mean(), stay.var() / stay.count(), center, ratio)
    result = analyze(WholeDraws.of(recipes["draws"]), Mean("stay"))
    assert np.allclose(found, [*result.params, *result.conf_int().to_numpy()[0]], rtol=1e-6)


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_the_recipe_in_r_gives_the_interval_of_analyze(recipes: dict[str, Any]) -> None:
    (recipe,) = blocks(DOCS / "analysts.md", "r")
    printing = "write(combine(found['q', ], found['v', ], center), '', 3)"
    command = ["Rscript", "--vanilla", "-e", f"{recipe}\n{printing}"]
    done = subprocess.run(
        command, cwd=recipes["folder"], capture_output=True, text=True, check=True
    )
    found = [float(x) for x in done.stdout.splitlines()[-1].split()]
    result = analyze(WholeDraws.of(recipes["draws"]), OLS("stay ~ age + sex"))
    expected = [result.params["age"], *result.conf_int().loc["age"]]
    assert np.allclose(found, expected, rtol=1e-4)


def literals(source: str) -> list[str]:
    """Return the texts of a module, with an ellipsis for every value in them."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "…" for p in node.values]
            found.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return found


def test_quoted_messages_are_those_of_the_library() -> None:
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^\*\*`(.+)`\*\*$", page, re.MULTILINE)
    texts = [
        text
        for path in (ROOT / "src" / "margrave").rglob("*.py")
        for text in literals(path.read_text(encoding="utf-8"))
    ]
    assert len(quoted) >= 15
    for quote in quoted:
        # a sentence may be joined from texts, so each part between two values is looked for
        parts = [p for p in (q.strip(" :") for q in re.split(r"…|(?<=\.) ", quote)) if len(p) > 8]
        missing = [part for part in parts if not any(part in text for text in texts)]
        assert parts, quote
        assert not missing, (quote, missing)


def test_values_in_a_message_are_ellipses() -> None:
    assert literals('f"Column {name!r}: {n} values"')[0] == "Column …: … values"
