"""The core of the benchmarks: the store, the runner, the command line, and what every suite owes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not part of this copy")

from benchmarks import __main__ as program
from benchmarks.core import charts, runner
from benchmarks.core import library as lib
from benchmarks.core.page import Page, fill_marks
from benchmarks.core.process import scripts
from benchmarks.core.results import View
from benchmarks.core.store import Store
from benchmarks.core.suite import (
    Case,
    Cell,
    Contender,
    Places,
    Suite,
    Table,
    Task,
    kway,
    matches,
    override,
    shares,
    suite_of,
    suites,
)
from benchmarks.core.tables import codes_of, counts

HERE = Path(program.__file__).resolve().parent
SUITES = suites()


def toy(*, fails: Iterable[str] = ()) -> tuple[Suite, list[str]]:
    """Return a suite of two contenders whose error is their repeat, and the runs it has made."""
    made: list[str] = []

    def measure(cell: Cell, places: Places) -> dict[str, Any]:
        made.append(str(cell))
        if cell.contender in fails:
            raise RuntimeError("no")
        if cell.contender == "slow":
            return {"outcome": "timed out", "why": "it took too long"}
        return {"error": float(cell.repeat), "errors_by": [1.0 / 3.0, None]}

    def cells(repeats: int | None = None) -> list[Cell]:
        return [
            Cell("t", name, {"rounds": 5} if name == "b" else {}, epsilon, r)
            for r in range(repeats or 2) for epsilon in (1.0, 0.1) for name in ("a", "b", "slow")
        ]  # fmt: skip

    task = Task("T", lambda data: Table(codes_of({"x": 2}, [np.zeros(4, int)])), kway(1))
    contenders = {name: Contender(name.upper()) for name in ("a", "b", "slow")}
    return Suite({"t": task}, contenders, cells, measure, lambda view: Page({})), made


def places(folder: Path) -> Places:
    return Places(folder, Store(folder / "toy.parquet"))


# The store


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.parquet")
    rows: list[dict[str, Any]] = [
        {"task": "t", "setting": {}, "epsilon": None, "estimates": [None, {"x": 1.5}], "n": 3},
        {"task": "u", "setting": {"rounds": 5}, "epsilon": 0.1, "errors": {"max": 0.25}},
        {"task": "u", "setting": {"eta": 2.0}, "cells": [["a", "b"], ["c"]], "dirty": False},
    ]
    for row in rows:
        store.add(row)
    found = store.rows()
    rows[0].pop("epsilon")
    assert found == rows
    assert isinstance(found[0]["n"], int)
    assert isinstance(found[1]["setting"]["rounds"], int)
    assert Store(tmp_path / "none.parquet").rows() == []


def test_rows_that_wait_are_seen_and_written_together(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    store, other = Store(path, wait_s=3600.0), Store(path)
    store.add({"task": "t", "n": 1, "epsilon": None})
    store.add({"task": "t", "n": 2, "setting": {"rounds": 5}})
    seen = store.rows()
    assert seen == [
        {"task": "t", "n": 1, "setting": {}},
        {"task": "t", "n": 2, "setting": {"rounds": 5}},
    ]
    assert not other.rows()
    assert not path.exists()
    other.add({"task": "u", "n": 3})
    store.flush()
    assert [row["n"] for row in other.rows()] == [3, 1, 2]
    assert store.rows() == other.rows()


def test_numbers_have_nine_digits_but_for_noise_scales(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.parquet")
    store.add({"error": 1 / 3, "answers": [{"scale": 1 / 3, "x": [2 / 3]}], "delta": 1e-9 / 3})
    (row,) = store.rows()
    assert row["error"] == 0.333333333
    assert row["answers"] == [{"scale": 1 / 3, "x": [0.666666667]}]
    assert row["delta"] == 1e-9 / 3


@pytest.mark.parametrize("name", SUITES)
def test_every_stored_row_is_of_its_suite(name: str) -> None:
    suite, rows = suite_of(name), Store(HERE / "results" / f"{name}.parquet").rows()
    assert rows
    contenders = {*suite.contenders, "times"}
    for row in rows:
        assert row["task"] in suite.tasks or row["task"] == "scaling"
        assert row["contender"] in contenders
        assert row["outcome"] in ("finished", "timed out", "refused", "failed", "stopped")
        assert Cell.of(row).repeat >= 0


# The runner


def test_what_is_stored_is_not_run_again(tmp_path: Path) -> None:
    suite, made = toy()
    where = places(tmp_path)
    todo = runner.left(suite.cells(None), where.store.rows())
    assert len(todo) == 12
    assert runner.run(suite, todo, where) == 0
    slow = [x for x in made if "slow" in x]
    assert len(made) == 8 + 2  # of what timed out no repeat is tried
    assert all(x.endswith("repeat 0") for x in slow)
    assert runner.left(suite.cells(None), where.store.rows()) == []
    more = runner.left(suite.cells(3), where.store.rows())
    assert {(c.contender, c.repeat) for c in more} == {("a", 2), ("b", 2)}
    again = runner.left(suite.cells(None), where.store.rows(), again=True)
    assert {c.contender for c in again} == {"slow"}
    assert len(again) == 4


def test_a_failure_is_a_row_and_the_others_run(tmp_path: Path) -> None:
    suite, _ = toy(fails=["a"])
    where = places(tmp_path)
    assert runner.run(suite, list(suite.cells(1)), where) == 2
    rows = where.store.rows()
    assert [r["outcome"] for r in rows if r["contender"] == "a"] == ["failed"] * 2
    assert {r["why"] for r in rows if r["contender"] == "a"} == {"RuntimeError: no"}
    assert [r["error"] for r in rows if r["contender"] == "b"] == [0.0, 0.0]
    assert all(len(r["commit"]) == 40 and r["machine"]["cores"] for r in rows if r.get("commit"))
    assert [r["earlier"] for r in rows if r["contender"] == "b"] == [0, 1]


def test_no_run_begins_after_the_minutes(tmp_path: Path) -> None:
    suite, made = toy()
    assert runner.run(suite, list(suite.cells(None)), places(tmp_path), minutes=0.0) == 0
    assert made == []


def test_a_run_that_needs_another_gets_it_first(tmp_path: Path) -> None:
    suite, made = toy()
    needs = SimpleNamespace(**suite.__dict__)
    needs.needs = lambda cell: (
        Cell("t", "a", {}, cell.epsilon, 0) if cell.contender == "b" else None
    )
    wanted = [Cell("t", "b", {"rounds": 5}, 1.0, r) for r in (0, 1)]
    runner.run(needs, wanted, places(tmp_path))
    assert [x.split(", ")[1] for x in made] == ["a", "b", "b"]


def test_a_run_that_takes_too_long_times_out(tmp_path: Path) -> None:
    def endless(cell: Cell, where: Places) -> dict[str, Any]:
        while True:
            pass

    suite, _ = toy()
    slow = SimpleNamespace(**{**suite.__dict__, "measure": endless})
    where = Places(tmp_path, Store(tmp_path / "toy.parquet"), timeout=0.1 - runner.GRACE_S)
    row = runner.run_cell(slow, Cell("t", "a"), where)
    assert row["outcome"] == "timed out"


# Cells


def test_cells_are_changed_and_filtered() -> None:
    suite, _ = toy()
    cells = override(suite, suite.cells(1), {"rounds": 7})
    assert {c.contender for c in cells} == {"b"}  # the others have no rounds
    assert {c.setting["rounds"] for c in cells} == {7}
    one = override(suite, suite.cells(1), {"epsilon": 0.5})
    assert [(c.contender, c.epsilon) for c in one] == [("a", 0.5), ("b", 0.5), ("slow", 0.5)]
    columns = Cell("t", "b", {"rounds": 5}, 0.1, 1).columns
    assert matches(columns, {"contender": ["a", "b"], "epsilon": ["0.1"], "rounds": ["5"]})
    assert not matches(columns, {"rounds": ["7"]})
    assert not matches(columns, {"eta": ["2"]})


@pytest.mark.parametrize("name", SUITES)
def test_cells_are_named_once_and_can_be_measured(name: str) -> None:
    suite = suite_of(name)
    cells = list(suite.cells(2))
    assert len({(c.kind, c.repeat) for c in cells}) == len(cells)
    for cell in cells:
        assert cell.task in suite.tasks or cell.task == "scaling"
        assert cell.contender in suite.contenders or cell.contender == "times"
    for who in suite.tasks.values():
        assert set(who.contenders) <= set(suite.contenders)


# The command line


def test_the_command_line_runs_lists_and_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, made = toy()
    shown = Suite(**{**suite.__dict__, "page": lambda view: Page({"n": str(len(view.all))})})
    monkeypatch.setattr(program, "suite_of", lambda name: shown)
    words = ["penalty", "--results", str(tmp_path)]
    only = ["--only", "contender=a,b", "epsilon=1"]
    assert program.main(["run", *words, *only]) == 0
    assert len(made) == 4
    capsys.readouterr()
    program.main(["list", *words, "--left"])
    left = capsys.readouterr().out.splitlines()
    assert left[0] == "t, slow, epsilon 1, repeat 0"
    assert len(left) == 8
    program.main(["list", *words, "--only", "contender=b"])
    assert "2 finished  t b epsilon 1 rounds=5" in capsys.readouterr().out
    program.main(["list", *words, "--json", "--only", "repeat=1"])
    assert [json.loads(x)["error"] for x in capsys.readouterr().out.splitlines()] == [1.0, 1.0]
    program.main(["page", *words])
    assert capsys.readouterr().out == "n:\n\n4\n"


@pytest.mark.parametrize("command", ["run", "list"])
def test_a_run_that_no_suite_has_is_refused_with_those_it_has(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    suite, made = toy()
    monkeypatch.setattr(program, "suite_of", lambda name: suite)
    words = [command, "penalty", "--results", str(tmp_path), "--only"]
    assert program.main([*words, "contender=a,c"]) == 2
    assert capsys.readouterr().err == (
        "No run of penalty has contender=c. It can be: a, b, slow.\n"
    )
    assert program.main([*words, "mechanism=a"]) == 2
    assert capsys.readouterr().err == (
        "No run of penalty has 'mechanism'. --only takes task, contender, epsilon, repeat, stage, rounds.\n"
    )
    assert not made


# Contenders


def test_every_script_says_what_it_needs_and_does() -> None:
    found = scripts()
    assert set(found) == {"dpmm", "margrave", "mbi", "opendp", "smartnoise", "torch"}
    for name, script in found.items():
        text = (HERE / "contenders" / f"run_{name}.py").read_text(encoding="utf-8")
        for job in script.jobs:
            assert f'"{job}": ' in text or job == "import"
        if name != "margrave":  # a peer is called in its own environment alone
            assert script.dependencies
            assert "margrave" not in text.replace("Nothing of margrave is used", "")


def test_no_suite_imports_a_peer() -> None:
    peers = ("dpmm", "opendp", "mbi", "torch", "polars", "snsynth")
    for path in [*(HERE / "core").glob("*.py"), *(HERE / "suites").glob("*.py")]:
        lines = path.read_text(encoding="utf-8").splitlines()
        imports = [line for line in lines if line.startswith(("import ", "from "))]
        assert not [line for line in imports if line.split()[1].split(".")[0] in peers]


# Tables and pages


def test_shares_are_those_counted_by_hand() -> None:
    codes = codes_of({"a": 2, "b": 3}, [np.array([0, 1, 1, 1]), np.array([2, 0, 0, 1])])
    found = shares(codes, (("a", "b"), ("b",))).tolist()
    assert found == [0, 0, 0.25, 0.5, 0.25, 0, 0.5, 0.25, 0.25]
    assert counts(codes, ("a", "b")).tolist() == [0, 0, 1, 2, 1, 0]
    case = Case(Task("T", lambda data: Table(codes), kway(1)), Table(codes))
    assert case.truth.tolist() == [0.25, 0.75, 0.5, 0.25, 0.25]
    assert case.delta == 1 / 16


def test_the_workload_error_is_a_mean_of_distances() -> None:
    sizes = {"a": 2, "b": 2}
    left = codes_of(sizes, [np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])])
    right = codes_of(sizes, [np.array([0, 1]), np.array([1, 1])])
    assert lib.workload_error(left, right, [("a",), ("b",)]) == pytest.approx((0.0 + 1.0) / 2)


def test_marks_of_a_page_are_filled_anew() -> None:
    page = "a\n<!-- table: x -->\nold\n<!-- end -->\nb\n"
    text = "a\n<!-- table: x -->\nnew \\1\n<!-- end -->\nb\n"
    assert fill_marks(page, {"x": "new \\1", "y": "?"}) == text


@pytest.mark.parametrize("name", [n for n in SUITES if suite_of(n).document])
def test_the_document_of_a_suite_is_what_its_page_makes_of_the_store(
    name: str, tmp_path: Path
) -> None:
    suite, docs = suite_of(name), HERE.parent / "docs" / "research"
    document = suite.document
    assert document is not None
    if name == "napsu":
        pytest.skip("its bootstraps take a minute; see the slow test")
    page = suite.page(View(suite, Store(HERE / "results" / f"{name}.parquet").rows()))
    text = (docs / f"{document}.md").read_text(encoding="utf-8")
    (tmp_path / f"{document}.md").write_text(text, encoding="utf-8")
    page.write(tmp_path, document)
    assert (tmp_path / f"{document}.md").read_text(encoding="utf-8") == text
    for mark in page.tables:
        assert text.count(f"<!-- table: {mark} -->") == 1
    for figure, svg in page.figures.items():
        path = docs / document / f"{figure}.svg"
        assert path.exists() == bool(svg)
        assert not svg or path.read_text(encoding="utf-8") == svg


def test_a_page_without_a_figure_takes_its_old_one_away(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "old.svg").write_text("<svg/>")
    (tmp_path / "x.md").write_text("")
    Page({}, {"old": "", "new": "<svg/>"}).write(tmp_path, "x")
    assert [p.name for p in (tmp_path / "x").iterdir()] == ["new.svg"]


def test_a_legend_has_the_contenders_with_colors() -> None:
    contenders = {"a": Contender("A", ("#000000", "#ffffff")), "b": Contender("B")}
    assert charts.Legend.of(contenders).colors == {"a": ("#000000", "#ffffff")}
