"""The command line's right ways: the whole path from a file to rows, and what each command says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from margrave import progress as progress_module
from margrave.cli.bounds import show_bounds
from margrave.cli.main import COMMANDS, run
from margrave.cli.numbers import _purpose
from margrave.cli.options import parse_workload
from margrave.domain import Codes, Domain
from margrave.errors import InputError, ModelTooLargeError
from margrave.evaluation import evaluate
from margrave.mechanisms import MECHANISMS
from margrave.models import FITS, GraphicalFit
from margrave.models.specs import fit_spec
from margrave.progress import reporting
from margrave.purposes import Purpose
from margrave.release import Release
from margrave.schema import Categorical, Date, Integer, Schema
from tests.support.conformance import ALONE

BUDGET = ["--epsilon", "5", "--delta", "1e-6"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with 4000 rows in which job depends on age, and their schema."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age, sex = rng.integers(0, 4, 4000), rng.integers(0, 2, 4000)
    job = np.where(rng.random(4000) < 0.9, age % 3, rng.integers(0, 3, 4000))
    text = "".join(f"{a},{s},{j}\n" for a, s, j in zip(age, sex, job, strict=True))
    (tmp_path / "table.csv").write_text("age,sex,job\n" + text)
    Schema.coded({"age": 4, "sex": 2, "job": 3}).save("schema.toml")
    return tmp_path


def ok(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    code = run([*arguments])
    said = capsys.readouterr()
    assert code == 0, said.err
    return said.out


def made(capsys: pytest.CaptureFixture[str], *extra: str) -> str:
    return ok(capsys, "synthesize", "table.csv", "-s", "schema.toml", *BUDGET, *extra)


def test_mechanisms_are_listed_with_their_use(capsys: pytest.CaptureFixture[str]) -> None:
    found = {line["name"]: line for line in json.loads(ok(capsys, "mechanisms", "--json"))}
    assert set(found) >= set(MECHANISMS)
    assert all(found[name]["for"] == kind.use != "" for name, kind in MECHANISMS.items())
    assert len({line["for"] for line in found.values()}) == len(found)
    assert found["gem-pub"]["needs_public_table"]
    assert not found["gem"]["needs_public_table"]
    assert "McKenna" in found["aim"]["papers"][0]
    shown = ok(capsys, "mechanisms")
    assert all(name in shown and len(kind.use) <= 62 for name, kind in MECHANISMS.items())


def test_numbers_have_intervals_and_marks(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = made(capsys, "--release", "r.margrave")
    assert "Means and most common categories with 95 % intervals" in said
    assert re.search(r"^sex +share of \w +5\d\.\d+ % \(\S+ % to \S+ %\)", said, re.MULTILINE), said
    release = Release.load("r.margrave")
    whole = json.loads(ok(capsys, "numbers", "r.margrave", "--json"))
    assert whole == release.numbers(details=True).to_pylist()
    ages = json.loads(ok(capsys, "numbers", "r.margrave", "--columns", "age", "--json"))
    assert ages == [n for n in whole if n["column"] == "age"]
    shown = ok(capsys, "numbers", "r.margrave", "--rows", "2")
    assert f"And {len(whole) - 2} more" in shown
    assert run(["numbers", "r.margrave", "--rows", "-1"]) != 0
    assert run(["numbers", "r.margrave", "--columns", "agee"]) != 0


def test_a_release_that_learned_nothing_says_why_it_has_no_numbers(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("few.csv").write_text("fee,cost\n" + "31.5,7\n64.25,9\n" * 10)
    assert run(["schema", "draft", "few.csv", "-o", "few.toml"]) == 0
    spent = ["--epsilon", "0.1", "--delta", "1e-6"]
    assert run(["synthesize", "few.csv", "-s", "few.toml", *spent, "--release", "r.margrave"]) != 0
    capsys.readouterr()
    assert run(["numbers", "r.margrave"]) != 0
    said = capsys.readouterr()
    assert "This release has no numbers: the run failed: The noise hides" in said.err
    assert said.out == ""
    assert json.loads(ok(capsys, "numbers", "r.margrave", "--json")) == []


def test_further_measures_are_of_the_records_that_were_compared(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(capsys, "--release", "r.margrave")
    compared: list[Codes] = []
    drawn = Release.codes

    def recorded(self: Release, *args: Any, **more: Any) -> Codes:
        compared.append(drawn(self, *args, **more))
        return compared[-1]

    monkeypatch.setattr(Release, "codes", recorded)
    runs = []
    for _ in range(2):
        ok(capsys, "evaluate", "table.csv", "r.margrave", "--geometry")
        runs.append([codes.values for codes in compared])
        compared.clear()
    first, second = runs
    assert len(first) > 1
    assert all(np.array_equal(first[0], values) for values in first)
    assert not np.array_equal(first[0], second[0])


def test_columns_that_were_not_measured_together_have_one_sentence(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(capsys, "--mechanism", "independent", "--release", "r.margrave")
    shown = " ".join(ok(capsys, "numbers", "r.margrave", "--by", "sex").split())
    assert shown == (
        "Not measured together with sex: age, job. Name the purpose when the next release is made:"
        ' --for "share age by sex".'
    )


def test_a_purpose_is_proposed_for_what_is_averaged_and_dates_are_counted() -> None:
    days = Date("admitted", date(2024, 1, 1), date(2024, 6, 30), bins=6)
    schema = Schema([days, Integer("age", 0, 99), Categorical("ward", ["a", "b"])])
    assert _purpose(schema, ["admitted", "age"], "ward") == "mean age by ward"
    assert _purpose(schema, ["admitted", "ward"], "age") == "share ward by age"
    assert _purpose(schema, ["admitted"], "ward") == "count by admitted, ward"
    for text in ("mean age by ward", "count by admitted, ward"):
        assert Purpose.of(text, schema.domain).cliques


def test_no_line_of_a_certificate_ends_in_blanks_or_is_endless(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    made(capsys, "--release", "r.margrave")
    numbers = ok(capsys, "numbers", "r.margrave").splitlines()
    certificate = ok(capsys, "certificate", "r.margrave").splitlines()
    assert [line for line in (*numbers, *certificate) if line != line.rstrip()] == []
    assert max(map(len, certificate)) <= 140
    digest = Release.load("r.margrave").certificate()["schema"]["sha256"]
    assert any(line.endswith(f"  {digest}") for line in certificate)


def test_numbers_of_groups_leave_out_those_that_may_have_no_rows(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(capsys, "--release", "r.margrave")
    shown = ok(capsys, "numbers", "r.margrave", "--by", "job", "--columns", "age")
    assert "job = " in shown
    assert "left out" not in shown
    groups = ("job = 1", "job = 2")
    monkeypatch.setattr("margrave.cli.numbers.rare_groups", lambda *_: groups)
    shown = " ".join(ok(capsys, "numbers", "r.margrave", "--by", "job", "--columns", "age").split())
    assert "job = 1" not in shown
    assert "2 groups left out, which may have no rows: the noisy count is below 3" in shown
    assert "job: 1, 2. --json has them." in shown
    assert run(["numbers", "r.margrave", "--by", "job", "age", "sex"]) == 2
    said = capsys.readouterr().err
    assert "Name the columns to show after --columns: --columns age,sex." in said
    assert "in quotes" not in said


def test_from_a_file_to_rows_release_and_report(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = made(capsys, "-o", "rows.parquet", "--release", "r.margrave", "--report", "r.html")
    assert "Spent rho" in said
    assert "epsilon 5" in said
    rows = pyarrow.parquet.read_table("rows.parquet")
    assert rows.column_names == ["age", "sex", "job"]
    assert abs(rows.num_rows - 4000) < 200
    agree = np.mean(np.asarray(rows["age"]) % 3 == np.asarray(rows["job"]))
    assert agree > 0.8  # the dependence came through: 0.33 without it
    release = Release.load("r.margrave")
    assert release.account.private
    assert release.account.rho_spent == release.account.rho_budget
    page = (here / "r.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<h1>Synthetic data: table</h1>" in page
    assert 'Report "Synthetic data: table": r.html' in said
    assert sorted(p.name for p in here.iterdir()) == [
        "r.html",
        "r.margrave",
        "rows.parquet",
        "schema.toml",
        "table.csv",
    ]


def test_columns_that_were_never_measured_together_are_told(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--title", "All jobs", "--office", "Office of Jobs", "--dataset", "Jobs 2025"]
    outputs = ["--release", "r.margrave", "--report", "r.html"]
    said = made(capsys, "--workload", "age,job;sex", *outputs, *words)
    page = (here / "r.html").read_text()
    assert "<h1>All jobs</h1>" in page
    assert all(f"<dd>{words}</dd>" in page for words in ("Jobs 2025", "Office of Jobs"))
    told = "sex was never measured together with another column"
    assert told in said
    assert "Of the 3 pairs of columns 1 was measured together." in said
    assert told in (here / "r.html").read_text()
    assert json.loads(ok(capsys, "certificate", "r.margrave", "--json"))["coverage"]["alone"] == [
        "sex"
    ]
    assert "1 of 3 pairs of columns; with no other column: sex" in ok(
        capsys, "certificate", "r.margrave"
    )
    said = made(
        capsys, "--workload", "age,job,sex", "-m", "gaussian", "--release", "whole.margrave"
    )
    assert "measured together" not in said


def test_a_workload_that_leaves_out_columns_says_so(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = made(capsys, "--workload", "age,job", "--release", "r.margrave", "--report", "r.html")
    assert "Nothing was asked of sex: its synthetic values say nothing of the real ones." in said
    assert Release.load("r.margrave").unmeasured_columns == ("sex",)
    assert "nothing asked of" in ok(capsys, "certificate", "r.margrave")
    assert "Nothing was asked of sex" in (here / "r.html").read_text()
    assert "Nothing was asked" not in made(capsys, "--release", "whole.margrave")
    assert "nothing asked of" not in ok(capsys, "certificate", "whole.margrave")


def test_rows_are_drawn_where_the_noise_hides_their_number(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The budget is spent by then, so that an error would lose it."""
    words = [
        "synthesize",
        "table.csv",
        "-s",
        "schema.toml",
        "-m",
        "mst",
        "--epsilon",
        "1e-6",
        "--delta",
        "1e-9",
    ]
    assert run([*words, "-o", "rows.csv", "--release", "r.margrave"]) == 0
    assert (
        "Warning: the noise hides how many records there are, so 1,000 rows were drawn."
        in capsys.readouterr().err
    )
    assert len((here / "rows.csv").read_text().splitlines()) == 1001
    assert run(["sample", "r.margrave", "-o", "more.csv"]) == 2
    assert "hides how many records there are" in capsys.readouterr().err
    ok(capsys, "sample", "r.margrave", "-o", "more.csv", "-n", "5")
    assert run([*words, "-o", "rows.csv", "-n", "7", "--overwrite"]) == 0
    assert "Warning" not in capsys.readouterr().err
    ok(capsys, "evaluate", "table.csv", "r.margrave", "-s", "schema.toml")


@pytest.mark.parametrize(
    "mechanism",
    [
        pytest.param(m, marks=[pytest.mark.slow] * (m in ("rap-plus", "aim-mixture", "gem")))
        for m in ALONE
    ],
)
def test_every_mechanism_by_name(
    here: Path, capsys: pytest.CaptureFixture[str], mechanism: str
) -> None:
    out = json.loads(made(capsys, "-m", mechanism, "--release", "r.margrave", "--json"))
    assert out["certificate"]["mechanism"]["name"] == mechanism
    assert out["outputs"] == {"--release": "r.margrave"}
    assert out["certificate"]["private"] is True


def test_overwriting_when_asked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "r.margrave").write_text("old")
    made(capsys, "-m", "independent", "--release", "r.margrave", "--overwrite")
    assert Release.load("r.margrave").provenance.mechanism == "independent"


def test_a_run_that_keeps_no_release_says_so_before(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for kept, says in ((["--release", "r.margrave"], False), ([], True)):
        capsys.readouterr()
        own = ["-m", "independent", "-o", "rows.csv", "--overwrite", *kept]
        assert run(["synthesize", "table.csv", "-s", "schema.toml", *BUDGET, *own]) == 0
        assert ("Note: This run keeps no release." in capsys.readouterr().err) is says


def test_rows_and_seed_and_csv(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(
        capsys,
        "-m",
        "independent",
        "--rows",
        "17",
        "-o",
        "rows.csv",
        "--release",
        "r.margrave",
        "--seed",
        "1",
    )
    assert pyarrow.csv.read_csv("rows.csv").num_rows == 17
    ok(capsys, "sample", "r.margrave", "-n", "50", "-o", "a.csv", "--seed", "3")
    ok(capsys, "sample", "r.margrave", "-n", "50", "-o", "b.csv", "--seed", "3")
    assert (here / "a.csv").read_bytes() == (here / "b.csv").read_bytes()


def test_sampling_a_part(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(capsys, "--release", "r.margrave")
    ok(
        capsys,
        "sample",
        "r.margrave",
        "-n",
        "80",
        "-o",
        "a.csv",
        "--where",
        "sex=1",
        "--where",
        "age=1..2",
    )
    rows = pyarrow.csv.read_csv("a.csv")
    assert rows.num_rows == 80
    assert set(rows["sex"].to_pylist()) == {1}
    assert set(rows["age"].to_pylist()) <= {1, 2}
    out = ok(
        capsys, "sample", "r.margrave", "-n", "30", "-o", "b.csv", "--where", "job=0|2", "--json"
    )
    assert json.loads(out)["rows"] == 30
    assert set(pyarrow.csv.read_csv("b.csv")["job"].to_pylist()) <= {0, 2}


@pytest.mark.parametrize("where", ["sex", "salary=3", "sex=7", "age=3..1", "age=x..y"])
def test_sampling_a_part_that_is_none(
    here: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    made(capsys, "-m", "independent", "--release", "r.margrave")
    assert run(["sample", "r.margrave", "-o", "a.csv", "--where", where]) == 2
    assert not (here / "a.csv").exists()


def test_public_rows_are_completed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(capsys, "--release", "r.margrave")
    Path("register.csv").write_text("sex,age\n1,2\n0,1\n1,0\n")
    said = ["--complete", "register.csv", "--attestation", "the public register"]
    ok(capsys, "sample", "r.margrave", "-o", "a.csv", *said)
    rows = pyarrow.csv.read_csv("a.csv")
    assert rows.column_names == ["age", "sex", "job"]
    assert (rows["sex"].to_pylist(), rows["age"].to_pylist()) == ([1, 0, 1], [2, 1, 0])
    for wrong in (said[:2], said[2:], [*said, "-n", "3"], [*said, "--where", "sex=1"]):
        assert run(["sample", "r.margrave", "-o", "b.csv", *wrong]) == 2
        assert not (here / "b.csv").exists()


def test_the_bounds(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(capsys, "--release", "r.margrave")
    release = Release.load("r.margrave")
    plain = json.loads(ok(capsys, "bounds", "r.margrave", "--json"))
    assert plain == [b.to_dict() for b in release.bounds()]
    assert {tuple(b["clique"]) for b in plain} >= {("age",), ("age", "job"), ("age", "sex", "job")}
    (one,) = json.loads(
        ok(
            capsys,
            "bounds",
            "r.margrave",
            "--columns",
            "job, age",
            "--level",
            "0.5",
            "--joint",
            "--json",
        )
    )
    assert one == release.bounds([("age", "job")], level=0.5, joint=True)[0].to_dict()
    shown = ok(capsys, "bounds", "r.margrave", "--rows", "2")
    assert "95 % (each on its own)" in " ".join(shown.split())
    assert "And 5 looser ones" in shown


def test_bounds_that_say_nothing_are_counted_and_not_listed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(capsys, "--release", "r.margrave")
    release = Release.load("r.margrave")
    wide = [replace(b, share=2.5 if len(b.clique) == 3 else b.share) for b in release.bounds()]
    show_bounds(tuple(wide), 40, "")
    shown = " ".join(capsys.readouterr().out.split())
    assert "No useful bound exists for 1 of 7 marginals" in shown
    assert "2 or more" not in shown
    (one,) = (b for b in wide if len(b.clique) == 3)
    show_bounds((one,), 40, "")
    assert "2 or more" in capsys.readouterr().out


def test_bounds_of_nonsense_are_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(capsys, "--release", "r.margrave")
    for wrong in (
        ["--level", "1.5"],
        ["--columns", "nobody"],
        ["--columns", ","],
        ["--rows", "-1"],
    ):
        assert run(["bounds", "r.margrave", *wrong]) == 2
    assert run(["bounds", "none.margrave"]) == 7


def test_the_certificate_of_single_queries(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was counted and what was chosen, in words, line by line."""
    made(capsys, "--release", "r.margrave", "-m", "pep", "--granularity", "query", "--rounds", "2")
    shown = " ".join(ok(capsys, "certificate", "r.margrave").split())
    assert "1 Counted all records, 1 cell, ±" in shown
    for choice, answer in ((2, 3), (4, 5)):
        assert re.search(rf"{choice} Chose age \d, sex \d, job \d, 1 of 24, epsilon", shown)
        assert re.search(rf"{answer} Counted age \d, sex \d, job \d, 1 cell, ±", shown)


def test_the_certificate(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(capsys, "-m", "independent", "--release", "r.margrave")
    facts = json.loads(ok(capsys, "certificate", "r.margrave", "--json"))
    assert facts == Release.load("r.margrave").certificate()
    shown = ok(capsys, "certificate", "r.margrave")
    for words in (
        "add or remove one row",
        facts["rho"]["spent"]["exact"],
        "Counted age",
        "independent",
    ):
        assert words in shown


def test_the_report_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(capsys, "-m", "independent", "--release", "r.margrave")
    assert json.loads(ok(capsys, "report", "r.margrave", "-o", "r.html", "--json")) == {
        "output": "r.html"
    }
    assert "The promise" in (here / "r.html").read_text()


def test_evaluating(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(capsys, "-o", "rows.csv", "--release", "r.margrave")
    for synthetic in ("rows.csv", "r.margrave"):
        assert run(["evaluate", "table.csv", synthetic, "-s", "schema.toml", "--json"]) == 0
        said = capsys.readouterr()
        assert "NOT PRIVATE" in said.err
        found = json.loads(said.out)
        assert found["private"] is False
        assert "NOT PRIVATE" in found["warning"]
        assert 0 < found["workload_error"] < 0.3
    shown = ok(
        capsys, "evaluate", "table.csv", "table.csv", "-s", "schema.toml", "--workload", "all-2way"
    )
    assert "NOT PRIVATE" in shown
    assert "0.0000 over 3 marginals" in shown


def test_one_column_has_no_pairs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "one.csv").write_text("age\n" + "0\n1\n" * 30)
    Schema.coded({"age": 4}).save("one.toml")
    words = ["evaluate", "one.csv", "one.csv", "-s", "one.toml", "--geometry"]
    shown = ok(capsys, *words)
    assert "one-way  " in shown
    assert not {"two-way", "SW1 of pairs", "L1 of pairs"} & set(re.split(r"  +|\n", shown))
    found = json.loads(ok(capsys, *words, "--json"))
    assert found["total_variation"] == {"one_way_mean": 0.0, "two_way_mean": None}
    compared = evaluate("one.csv", "one.csv", schema="one.toml")
    assert "one-way" in str(compared)
    assert "two-way" not in f"{compared} {compared._repr_html_()}"


def test_an_evaluation_of_a_release_repeats_with_a_seed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(capsys, "-m", "independent", "-o", "rows.csv", "--release", "r.margrave")
    call = ["evaluate", "table.csv", "r.margrave", "-s", "schema.toml", "--json", "-n", "70"]
    found = []
    for seed in ("1", "1", "2"):
        assert run([*call, "--seed", seed]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1] != found[2]
    assert found[0]["synthetic_rows"] == 70
    for more in (["--rows", "70"], ["--seed", "1"]):
        assert run(["evaluate", "table.csv", "rows.csv", "-s", "schema.toml", *more]) == 2
        assert "SYNTHETIC is a table" in capsys.readouterr().err
    Path("empty.csv").write_text(f"{Path('rows.csv').read_text().splitlines()[0]}\n")
    assert run(["evaluate", "table.csv", "empty.csv", "-s", "schema.toml"]) == 2
    assert "The synthetic table has no rows, so there is nothing" in capsys.readouterr().err


def test_drafting_and_checking_a_schema(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drafted = Schema.from_toml(ok(capsys, "schema", "draft", "table.csv"))
    assert not drafted.draft
    assert drafted.to_learn
    assert [c.name for c in drafted.columns] == ["age", "sex", "job"]
    ok(capsys, "schema", "draft", "table.csv", "-o", "draft.toml")
    assert Schema.load("draft.toml") == drafted
    assert run(["schema", "draft", "table.csv", "-o", "draft.toml"]) == 2
    assert "4,000 rows" in ok(capsys, "schema", "check", "table.csv", "-s", "schema.toml")
    assert (
        json.loads(ok(capsys, "schema", "check", "table.csv", "-s", "schema.toml", "--json"))[
            "passed"
        ]
        is True
    )


def test_checking_a_table_that_does_not_pass(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "table.csv").write_text("age,sex,job\n1,1,1\n9,1,1\n")
    assert run(["schema", "check", "table.csv", "-s", "schema.toml"]) == 4
    said = capsys.readouterr()
    assert "'age': 1 value outside" in said.out
    assert "NOT PRIVATE" in said.err
    assert run(["schema", "check", "table.csv", "-s", "schema.toml", "--json"]) == 4
    found = json.loads(capsys.readouterr().out)
    assert (found["passed"], found["exit_code"]) == (False, 4)
    assert found["error"] == "The table does not pass the schema."
    assert "'age': 1 value outside" in found["refusals"][0]


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    out = ok(capsys, "--help")
    for name in COMMANDS:
        assert name in out
        assert "Usage" in ok(capsys, name, "--help")


def test_help_is_quick_to_load() -> None:
    code = "import sys; from margrave.cli.main import run; run(['--help']); print('\\n'.join(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numba", "duckdb", "opendp", "pyarrow", "numpy"} & set(loaded)


def test_the_module_runs_too(here: Path) -> None:
    command = [sys.executable, "-m", "margrave.cli", "certificate", "none.margrave"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 7
    assert done.stderr.startswith("Error: ")


DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4, "d": 5})


@pytest.mark.parametrize(
    ("text", "cliques"),
    [
        ("all-1way", [("a",), ("b",), ("c",), ("d",)]),
        ("all-4way", [("a", "b", "c", "d")]),
        ("around:b:2", [("a", "b"), ("b", "c"), ("b", "d")]),
        ("around:a", [("a", "b", "c"), ("a", "b", "d"), ("a", "c", "d")]),
        ("b, a ;d", [("a", "b"), ("d",)]),
        ("c", [("c",)]),
    ],
)
def test_workloads_by_name(text: str, cliques: list[tuple[str, ...]]) -> None:
    assert list(parse_workload(text, DOMAIN).cliques) == cliques


@pytest.mark.parametrize("text", ["all-9way", "all-5way", "around:b:5"])
def test_a_workload_of_more_columns_than_there_are_is_refused(text: str) -> None:
    """It ran as another one, of all columns at once, without a word."""
    with pytest.raises(InputError, match="and the schema has 4"):
        parse_workload(text, DOMAIN)
    assert parse_workload(None, Domain.of({"a": 2, "b": 3})).cliques == (("a", "b"),)


def test_workloads_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "w.txt"
    path.write_text("# what matters\na, b = 2.5\nc\n\nb, a\n")
    assert parse_workload(str(path), DOMAIN).weights == {("a", "b"): 3.5, ("c",): 1.0}
    path.write_text("a = heavy\n")
    with pytest.raises(InputError, match="Line 1 of the workload"):
        parse_workload(str(path), DOMAIN)


def test_a_workload_too_long_is_refused_at_once() -> None:
    wide = Domain.of({f"c{i}": 2 for i in range(400)})
    with pytest.raises(InputError, match="too many"):
        parse_workload("all-3way", wide)


@pytest.mark.parametrize(
    ("first", "quiet"), [(progress_module.FIRST, False), (0.02, True)], ids=["short", "quiet"]
)
def test_progress_is_silent_without_a_terminal_in_short_runs_and_where_asked(
    first: float, quiet: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress_module, "FIRST", first)
    with reporting(not quiet) as progress:
        progress("measuring", 0.5)
        time.sleep(0.1)
    said: Any = capsys.readouterr()
    assert said.err == said.out == ""


def test_progress_without_a_terminal_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stage and the share done, also where a fit tells nothing for long; none after the end."""
    monkeypatch.setattr(progress_module, "FIRST", 0.02)
    monkeypatch.setattr(progress_module, "EVERY", 0.02)
    err, patience = "", time.monotonic() + 30
    with reporting(True) as progress:
        while "reading, 0% done" not in err and time.monotonic() < patience:
            time.sleep(0.02)
            err += capsys.readouterr().err
        progress("measuring", 0.504)
        while err.count("measuring, 50% done") < 2 and time.monotonic() < patience:
            time.sleep(0.02)
            err += capsys.readouterr().err
    err += capsys.readouterr().err
    before, after = (
        rf"(margrave: {words} done after \d+ s\n)" for words in ("reading, 0%", "measuring, 50%")
    )
    assert re.fullmatch(f"{before}+{after}{{2,}}", err)
    time.sleep(0.1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("mechanism", "told"), [("fem", "Chose "), ("mwem", "Counted ")])
def test_certificates_tell_choices_of_single_counts_and_their_answers(
    mechanism: str, told: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each entry in its own words, whichever kind it is."""
    more = ["--granularity", "query"] if mechanism == "mwem" else []
    said = made(
        capsys,
        "-m",
        mechanism,
        "--rounds",
        "3",
        *more,
        "--release",
        "r.margrave",
        "--report",
        "r.html",
    )
    assert "1 single count " in said or "4 single counts" in said
    shown = " ".join(ok(capsys, "certificate", "r.margrave").split())
    words = [e.chosen.describe for e in Release.load("r.margrave").transcript.query_selections]
    assert len(words) == 3
    signs = [e.sign for e in Release.load("r.margrave").transcript.query_selections]
    named = [
        f"the complement of {w}" if sign < 0 else w for w, sign in zip(words, signs, strict=True)
    ]
    assert all(
        f"Chose {w}, 1 of {48 if mechanism == 'fem' else 24}," in shown for w in named
    )  # with the complements
    assert "Counted all records, 1 cell, ±" in shown
    assert told in shown
    assert "single counts" in ok(capsys, "evaluate", "table.csv", "r.margrave", "-s", "schema.toml")


@pytest.mark.parametrize("name", ["graphical", "histogram", "particles", "genetic", "gum"])
def test_a_release_is_fitted_anew(
    name: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(
        capsys,
        "--release",
        "r.margrave",
        "--mechanism",
        "privpgd",
        "--particles",
        "500",
        "--epochs",
        "5",
    )
    before = (here / "r.margrave").read_bytes()
    said = ok(
        capsys, "refit", "r.margrave", "--fit", name, "--release", "new.margrave", "--seed", "3"
    )
    assert "Nothing was spent" in said
    assert (here / "r.margrave").read_bytes() == before
    old, new = Release.load("r.margrave"), Release.load("new.margrave")
    assert new.account == old.account
    assert new.provenance.refit == fit_spec(FITS[name]())
    joined = {m.clique: m.values for m in old.transcript.measurements}
    found = new.model.answer(joined)
    assert max(np.abs(found[c] - joined[c]).max() for c in joined) < 4000 * 0.02


def test_a_model_that_is_too_large_is_refused(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(capsys, "--release", "r.margrave")
    assert run(["refit", "r.margrave", "--release", "n.margrave"]) == 0
    assert "s of processor time and" in capsys.readouterr().err
    Path("n.margrave").unlink()
    assert run(["refit", "r.margrave", "--release", "n.margrave", "--max-model-mb", "0.00001"]) == 6
    assert "--fit particles" in capsys.readouterr().err
    assert not Path("n.margrave").exists()
    with pytest.raises(ModelTooLargeError):
        Release.load("r.margrave").refit(GraphicalFit(), max_model_mb=1e-5)
