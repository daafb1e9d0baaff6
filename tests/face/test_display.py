"""What objects show of themselves: short, escaped, and nothing private."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import margrave
from margrave import _card
from margrave.account import Debit
from margrave.accounting import Budget, Ledger
from margrave.cli.main import run
from margrave.domain import Domain
from margrave.inference import Estimate, Mean
from margrave.marginal import Marginal
from margrave.release.purposes import PurposeSupport
from margrave.schema import Categorical, ColumnSource, Elapsed, Integer, Learn, Schema
from margrave.schema.sources import read_error
from margrave.wide_bins import WideBins, wide_bins_words

NAME = "<b>&sex"
SCHEMA = Schema([Integer("age", 0, 3), Categorical(NAME, ["<i>f", "m"])])
ROWS = pa.table({"age": [0, 1, 2, 3] * 30, NAME: ["<i>f", "m", "m", "<i>f"] * 30})


@pytest.fixture(scope="module")
def release() -> margrave.Release:
    return margrave.synthesize(ROWS, SCHEMA, mechanism="mst", epsilon=20.0, delta=1e-9)


def shown(thing: Any, most: int = 400) -> str:
    """Return what a notebook shows, after checking that it is small and escaped."""
    assert len(repr(thing)) < most
    page: str = thing._repr_html_()
    assert "<b>&" not in page
    assert "<i>" not in page
    HTMLParser().feed(page)
    return page


def test_every_object_has_a_short_line_and_a_card(release: margrave.Release) -> None:
    assert repr(SCHEMA) == f"Schema(2 columns: age, {NAME})"
    assert "integer, 4 codes" in shown(SCHEMA)
    plan = margrave.plan(SCHEMA, epsilon=1.0, delta=1e-9)
    assert repr(plan) == "Plan(aim, epsilon=1, delta=1e-09, 2 columns, 100,000 rows)"
    assert "noise" in shown(plan)
    assert "noise" in str(plan)
    assert repr(release) == "Release(mst, 2 columns, epsilon=20, delta=1e-09)"
    assert "add or remove one row" in shown(release)
    marginal = release.marginal(["age", NAME])
    assert repr(marginal) == f"Marginal(age, {NAME}: 4 x 2 cells)"
    assert "&lt;i&gt;f" in shown(marginal)
    part = release.condition({"age": (1, None), NAME: "m"})
    assert repr(part) == f"Conditional(age from 1 and {NAME} = m; about {part.total:.0f} records)"
    assert "about" in shown(part)
    assert repr(release.condition({})).startswith("Conditional(no condition; about 1")
    assert "of all" in shown(release.bounds())
    assert repr(release.bounds()) == "BoundTable(3 marginals, 3 with a bound below 2)"
    assert repr(release.certificate()).startswith("Certificate(mst, epsilon=20")
    assert repr(Budget.approx(1.0, 1e-9)) == "Budget(rho=0.0149731, epsilon=1, delta=1e-09)"
    thresholds = Budget.zcdp(0.1, 1e-9, threshold_delta=1e-10)
    assert "delta=1e-09 (1e-10 of it for thresholds)" in shown(thresholds)
    account = replace(release.account, debits=(Debit("measure sex", Fraction(1, 3)),))
    assert repr(account) == ("Account(epsilon=20, delta=1e-09, rho 0.333333 of 3.59739 spent)")
    assert "<td" in shown(account)
    assert "measure sex" in shown(account)
    assert repr(account.debits[0]) == "Debit(measure sex, rho 0.333333)"
    assert account.to_dict()["debits"] == [{"what": "measure sex", "rho": "1/3"}]
    assert "sha256" in shown(release.certificate())


@pytest.mark.slow
def test_draws_purposes_and_data_sets_have_cards(release: margrave.Release, tmp_path: Path) -> None:
    draws = release.draws(2, rows=1, seed=1)
    assert repr(draws) == "Draws(2 tables of 1 record)"
    assert "drawn by" in shown(draws)
    support = PurposeSupport("mean <i>age", (("age", NAME),), 2)
    assert repr(support) == f"PurposeSupport({support.words})"
    assert "1 of 2 marginals were measured" in shown(support)
    state = Ledger(tmp_path / "ledger").init(
        "visits", unit="add-remove-row", cap=Budget.approx(1.0, 1e-9)
    )
    assert repr(state) == "DatasetState(visits: epsilon 0 of 1 charged)"
    assert "add-remove-row, since" in shown(state)


def test_one_thing_is_in_the_singular(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema, rows = Schema([Categorical("sex", ["f", "m"])]), pa.table({"sex": ["f", "m"] * 60})
    cost: dict[str, Any] = {"epsilon": 20.0, "delta": 1e-9}
    release = margrave.synthesize(rows, schema, **cost)
    schema.save(tmp_path / "s.toml")
    release.save(tmp_path / "r.margrave")
    plan, check = margrave.plan(schema, **cost), margrave.check_table(rows, schema)
    for thing in (schema, release, release.bounds(), plan, check):
        assert "(1 " in repr(thing) or ", 1 column, " in repr(thing)
    things = [schema, release, release.bounds(), plan, check, release.certificate()]
    things += [Marginal((), np.array(3.0)), release.report().html, margrave.evaluate(rows, release)]
    file = f"{tmp_path}/r.margrave"
    for i, command in enumerate(
        (
            f"plan -s {tmp_path}/s.toml --epsilon 20 --delta 1e-9",
            f"sample {file} -n 1 -o {tmp_path}/one.csv",
            f"verify {file}",
            f"certificate {file}",
            f"bounds {file}",
            f"marginals {file} -o {tmp_path}/m.csv",
        )
    ):
        assert run(command.split()) == 0, i
    shown = "\n".join([*map(str, things), *(d.what for d in release.account.debits)])
    shown += capsys.readouterr().out
    assert "choose one of 1 marginal\n" in shown
    assert re.findall(r"\b1 (?:[a-z]+ )?(?!has|is|was|of |this)[a-z]+s\b", unescape(shown)) == []


def test_one_of_a_list_is_in_the_singular() -> None:
    sources = {f"c{i}": ColumnSource(of="read") for i in range(11)}
    assert "and 1 more column." in str(read_error(sources))
    assert "of 1 more column." in wide_bins_words([WideBins(f"c{i}", 1.0) for i in range(13)])[0]
    assert Elapsed("left", 0, 2, since="came").labels() == ["0 days", "1 day", "2 days"]
    domain = Domain.of({"a": 1})
    assert (
        domain.difference(Domain.of({"a": 2})) == "column 'a' has 1 code in one and 2 in the other"
    )


def test_an_analysis_shows_its_table_and_notes_in_notebooks(release: margrave.Release) -> None:
    found = margrave.analyze(release.draws(3, seed=1, method="bootstrap"), Mean("age"))
    page = found._repr_html_()
    for text in (*Estimate.headings[:4], *found.notes, "mean(age)", "<svg"):
        assert text in unescape(page)
    HTMLParser().feed(page)


def test_a_check_says_one_row_and_the_unit_in_the_words_of_its_reader(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = Schema([Integer("age", 0, 3)], person="id")
    table = pa.table({"id": ["a"], "age": [1]})
    found = str(margrave.check_table(table, schema))
    assert "1 person, with 1 row at most." in found
    assert 'unit="add-remove-person:K"' in found
    assert "--" not in found
    schema.save(tmp_path / "s.toml")
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    assert (
        run(["schema", "check", str(tmp_path / "t.parquet"), "-s", str(tmp_path / "s.toml")]) == 0
    )
    printed = capsys.readouterr().out
    assert "--unit add-remove-person:K" in " ".join(printed.split())
    assert "1 rows" not in printed


def test_a_check_shows_counts_only_beside_the_warning() -> None:
    found = margrave.check_table(ROWS.set_column(1, NAME, [["f", "m", "m", "m"] * 30]), SCHEMA)
    assert repr(found) == "Preflight(NOT PRIVATE, 2 columns, refused)"
    assert "30 outside the schema (policy refuse)" in shown(found)
    assert "NOT PRIVATE" in shown(found)
    assert "refused" in str(found)
    assert repr(margrave.check_table(ROWS, SCHEMA)) == "Preflight(NOT PRIVATE, 2 columns, passed)"


def test_a_verification_says_first_if_the_account_holds(release: margrave.Release) -> None:
    assert repr(release.verify()) == "Verification(the account holds)"
    wrong = replace(release, account=replace(release.account, epsilon=1e-3)).verify()
    assert "DOES NOT HOLD" in repr(wrong)
    assert "either is too small" in shown(wrong)


def test_true_counts_are_not_shown() -> None:
    true = Marginal(("age",), np.array([777, 888]))
    for text in (repr(true), str(true), true._repr_html_()):
        assert "777" not in text
        assert "2 cells" in text


def test_an_evaluation_shows_numbers_only_beside_the_warning(release: margrave.Release) -> None:
    found = release.compare(ROWS, seed=1)
    assert repr(found) == "Evaluation(NOT PRIVATE, marginals: 1; print it to see the errors)"
    assert f"{found.workload_error:.4f}" in shown(found)
    assert "NOT PRIVATE" in shown(found)
    assert str(found).startswith("NOT PRIVATE")
    same = margrave.evaluate(ROWS, release, seed=1)
    assert same.workload_error == found.workload_error


def test_a_draft_does_not_show_what_was_read_off_the_rows() -> None:
    columns = [Integer("age", 0, 7919), Learn("pay", "real")]
    schema = Schema(columns, sources={"age": ColumnSource(read=("high",))})
    text = repr(schema) + str(schema) + schema._repr_html_()
    assert "7919" not in text
    assert f"{columns[0].size} codes" not in text
    assert "integer, read off the rows" in text
    assert "DRAFT" in repr(schema)
    assert "to be learned" in str(schema)


def test_a_card_of_many_facts_stays_small() -> None:
    wide = Schema([Integer(f"c{i}", 0, 1) for i in range(300)])
    assert "And 260 more." in wide._repr_html_()
    assert len(repr(wide)) < 100
    assert _card.listed(["a"], 1) == "a"


def test_charts_and_the_page_are_whole_files(release: margrave.Release, tmp_path: Path) -> None:
    for chart in (release.plot("age"), release.plot(NAME), release.plot("age", NAME)):
        shown(chart)
        chart.save(tmp_path / "chart.svg", overwrite=True)
        drawing = ElementTree.parse(tmp_path / "chart.svg").getroot()
        assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
        style = drawing.find("{http://www.w3.org/2000/svg}style")
        assert style is not None
        rules = (style.text or "").replace("@media (prefers-color-scheme: dark) {", "").split("}")
        assert all("svg.margrave" in rule for rule in rules if rule.strip())
    assert release.plot(["age", NAME]).title == f"age by {NAME}"
    page = release.report()
    assert page.html in unescape(page._repr_html_())
    assert "sandbox" in page._repr_html_()
    page.save(tmp_path / "page.html")
    margrave.write_report(release, tmp_path / "same.html")
    assert len({p.read_text(encoding="utf-8") for p in tmp_path.glob("*.html")}) == 1
    release.save(tmp_path / "r.margrave")
    margrave.write_report(str(tmp_path / "r.margrave"), tmp_path / "loaded.html")
    assert (tmp_path / "loaded.html").stat().st_size > 10_000


class Shell:
    """A notebook's display, as IPython has it."""

    def __init__(self, log: list[str]) -> None:
        self.log, self.display = log, self

    def get_ipython(self) -> Any:
        return type("ZMQInteractiveShell", (), {})()

    def __call__(self, thing: Any, *, display_id: bool) -> Any:
        return self

    def update(self, thing: Any) -> None:
        self.log.append(thing._repr_html_())


def test_progress_is_a_bar_in_a_notebook(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    log: list[str] = []
    shell = Shell(log)
    module = type("IPython", (), {"get_ipython": staticmethod(shell.get_ipython)})()
    module.display = type("display", (), {"display": staticmethod(shell)})()
    monkeypatch.setitem(__import__("sys").modules, "IPython", module)
    margrave.synthesize(ROWS, SCHEMA, mechanism="independent", epsilon=1.0, delta=1e-9)
    assert '<progress max="1"' in log[0]
    assert log[-1] == ""
    count = len(log)
    margrave.synthesize(
        ROWS, SCHEMA, mechanism="independent", epsilon=1.0, delta=1e-9, progress=False
    )
    assert len(log) == count
    assert capsys.readouterr().err == ""


def test_progress_is_a_bar_in_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    options: dict[str, Any] = {"mechanism": "independent", "epsilon": 1.0, "delta": 1e-9}
    margrave.synthesize(ROWS, SCHEMA, **options)
    assert capsys.readouterr().err != ""
    margrave.synthesize(ROWS, SCHEMA, progress=False, **options)
    calls: list[tuple[str, float]] = []
    margrave.synthesize(ROWS, SCHEMA, progress=lambda *call: calls.append(call), **options)
    assert calls
    assert capsys.readouterr().err == ""
