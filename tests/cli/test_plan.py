"""``plan`` says beforehand, from public inputs, what the transcript shows afterwards."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margrave.accounting import AddRemoveRow, Budget, ReplaceRow
from margrave.cli.main import run
from margrave.data import read_table
from margrave.mechanisms import MECHANISMS
from margrave.planning import plan_of
from margrave.privacy import protect
from margrave.schema import Categorical, Date, Integer, Learn, Real, Schema
from margrave.workload import Workload

SCHEMA = Schema.coded({"a": 2, "b": 3, "c": 4})
BUDGET = Budget.approx(2.0, 1e-6)


def frame(rows: int, schema: Schema = SCHEMA) -> pa.Table:
    rng = np.random.default_rng(1)
    columns = {c.name: rng.integers(0, c.size, rows) for c in schema.columns}
    return pa.table({**columns, "person": 1 + rng.integers(0, rows // 4, rows)})


def test_the_figures_of_a_plan() -> None:
    made = plan_of(
        SCHEMA.domain, MECHANISMS["aim"](), budget=BUDGET, unit=AddRemoveRow(), rows=1000
    )
    assert (made.columns, made.cells, made.workload, made.counted) == (3, 24, 1, 7)
    assert (made.largest, made.largest_cells) == (("a", "b", "c"), 24)
    assert made.counted_cells == 2 + 3 + 4 + 6 + 8 + 12 + 24
    assert made.noise[-1].error == pytest.approx(np.sqrt(2 / np.pi) * made.noise[-1].scale * 24)
    assert made.noise[-1].at_most
    more = plan_of(
        SCHEMA.domain, MECHANISMS["aim"](), budget=BUDGET, unit=AddRemoveRow(), rows=10_000_000
    )
    assert more.memory_mb > made.memory_mb
    assert more.seconds > made.seconds


def test_replacing_a_row_takes_more_noise() -> None:
    one, two = (
        plan_of(SCHEMA.domain, MECHANISMS["independent"](), budget=BUDGET, unit=u).noise[0].scale
        for u in (AddRemoveRow(), ReplaceRow())
    )
    assert two / one == pytest.approx(np.sqrt(2))


def test_a_smaller_workload_is_planned_as_such() -> None:
    workload = Workload.of(SCHEMA.domain, [("a", "b")])
    made = plan_of(SCHEMA.domain, MECHANISMS["gaussian"](workload=workload), budget=BUDGET, unit=AddRemoveRow(),
                workload=workload)  # fmt: skip
    assert (made.counted, made.workload) == (1, 1)


@pytest.mark.parametrize(
    ("name", "marginals"), [("aim", 1), ("privpgd", 3), ("private-gsd", 3), ("mst", None)]
)
def test_the_workload_planned_is_the_mechanism_s_own(name: str, marginals: int | None) -> None:
    assert (
        plan_of(SCHEMA.domain, MECHANISMS[name](), budget=BUDGET, unit=AddRemoveRow()).workload
        == marginals
    )


ASKS_ALL = {"mwem-pgm", "napsu-mq"}
"""Mechanisms that measure every column, whatever their workload."""


@pytest.mark.parametrize("name", MECHANISMS)
def test_columns_that_nothing_will_be_asked_of_are_named(name: str) -> None:
    """Also one in which all records would be counted: the column with the fewest codes."""
    schema = Schema.coded({"a": 3, "b": 4, "few": 2, "d": 3})
    made = MECHANISMS[name]
    told = "workload" in {f.name for f in fields(made)}  # type: ignore[arg-type]
    workload = {"workload": Workload.of(schema.domain, [("a", "b")])} if told else {}
    planned = plan_of(schema.domain, made(**workload), budget=BUDGET, unit=AddRemoveRow())
    named = ("few",) if name == "rap-plus" else ("few", "d")  # thresholds are about all numbers
    assert planned.unasked == (named if told and name not in ASKS_ALL else ())
    assert plan_of(schema.domain, made(), budget=BUDGET, unit=AddRemoveRow()).unasked == ()


def test_the_plan_says_what_nothing_will_be_asked_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("schema.toml")
    options = ["plan", "-s", "schema.toml", "--epsilon", "1", "--delta", "1e-9"]
    assert run([*options, "--workload", "b,c"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "Nothing will be asked of a: its synthetic values will say nothing of the real ones."
        in said
    )
    assert run([*options, "--workload", "b,c", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unasked"] == ["a"]
    assert run(options) == 0
    assert "Nothing will be asked" not in capsys.readouterr().out


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("schema.toml")
    options = ["plan", "-s", "schema.toml", "--epsilon", "1", "--delta", "1e-9", "-m", name]
    assert run(options) == 0
    assert "noise a cell" in capsys.readouterr().out
    assert run([*options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mechanism"] == name
    assert found["rho"]["decimal"] == pytest.approx(0.01497, rel=1e-3)
    assert run([*options, "--workload", "around:salary"]) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["schema.toml"]


def test_a_plan_is_refused_where_the_run_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("schema.toml")
    plain = ["plan", "-s", "schema.toml", "--delta", "1e-9", "-m", "mst"]
    cap = ["--epsilon", "2", "--delta", "1e-9", "--unit", "add-remove-row"]
    assert run(["ledger", "init", "a.ledger", "--dataset", "visits", *cap]) == 0
    books = ["--ledger", "a.ledger", "--dataset", "visits"]
    before = Path("a.ledger").read_bytes()
    capsys.readouterr()
    assert run([*plain, "--epsilon", "1", *books]) == 0
    assert "leaves room" in capsys.readouterr().out
    assert run([*plain, "--epsilon", "1", *books, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cap"]["dataset"] == "visits"
    assert run([*plain, "--epsilon", "3", *books]) != 0
    assert "remains" in capsys.readouterr().err
    assert run([*plain, "--epsilon", "1", "--ledger", "a.ledger", "--dataset", "staff"]) == 2
    Path("rules.toml").write_text("[policy]\nversion = 1\nmax_epsilon = 0.5\nmax_delta = 1e-6\n")
    assert run([*plain, "--epsilon", "1", "--policy", "rules.toml"]) != 0
    assert Path("a.ledger").read_bytes() == before
    assert not list(tmp_path.glob("*.journal"))


# What a run takes.


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("fem", {}),
        ("fem", {"rounds": 3}),
        ("dual-query", {"max_nodes": 0}),
        ("dual-query", {"rounds": 4}),
        ("mwem", {"granularity": "query"}),
        ("mwem", {}),
        ("pep", {"rounds": 2}),
        ("private-gsd", {"adaptive": True, "rounds": 2}),
    ],
)
def test_the_rounds_that_an_estimate_rests_on_are_those_of_the_run(
    name: str, given: dict[str, Any]
) -> None:
    """The number of records is public here, so the plan can know all that the run knows."""
    mechanism: Any = MECHANISMS[name](**given)
    schema = replace(SCHEMA, ignore=("person",))
    with protect(read_table(frame(400), schema), unit=ReplaceRow(), budget=BUDGET) as private:
        transcript = mechanism.run(private, rng=np.random.default_rng(0)).transcript
    choices = len(transcript.query_selections) or len(
        transcript.measurements
    )  # of one marginal nothing is chosen
    each = mechanism.samples if name == "dual-query" else 1
    first = name == "dual-query"  # its first round asks nothing
    assert (
        mechanism.selection(SCHEMA.domain, BUDGET.rho, 400, ReplaceRow()).rounds
        == choices / each + first
    )


def estimate(name: str, rows: int = 1000, schema: Schema = SCHEMA, **given: Any) -> Any:
    return plan_of(
        schema.domain, MECHANISMS[name](**given), budget=BUDGET, unit=AddRemoveRow(), rows=rows
    )


def test_time_follows_what_takes_it() -> None:
    wide = Schema.coded({f"c{i}": 4 for i in range(60)})
    assert estimate("fem", rounds=150).seconds > estimate("fem", rounds=20).seconds
    assert estimate("fem", rows=100_000).seconds > estimate("fem", rows=100).seconds + 0.5, (
        "rounds by the records"
    )
    assert estimate("mst", schema=wide).seconds < 2.2 + 59 * 1770 * 50e-6, (
        "every pair is scored once"
    )
    coarse = Schema.coded({f"c{i}": 20 for i in range(9)})
    few, many = (estimate("aim", rows=n, schema=coarse).seconds for n in (1000, 3_000_000))
    assert many > 5 * few, "few rows fill no model"
    assert estimate("gem").seconds > estimate("mwem-pgm").seconds + 5, (
        "JAX is imported and compiles"
    )
    assert estimate("gem", rounds=20).seconds > estimate("gem", rounds=2).seconds + 18
    assert estimate("privpgd", rows=100_000).seconds > 3 * (estimate("privpgd").seconds - 2.2)
    assert estimate("privpgd", epochs=2000).seconds > estimate("privpgd").seconds
    assert estimate("private-gsd", schema=wide).seconds > estimate("private-gsd").seconds + 4
    assert estimate("gem").memory_mb > estimate("mwem-pgm").memory_mb + 300


def test_a_wide_plan_follows_its_columns_its_cells_and_its_limit() -> None:
    narrow, wide = (Schema.coded({f"c{i}": 20 for i in range(n)}) for n in (30, 80))
    # Few rows have no pairs that are worth their noise, and so no large model.
    few, many = (estimate("forests", schema=s, rows=100_000) for s in (narrow, wide))
    assert many.seconds > few.seconds + 2
    # Counts, and the estimates of two rounds.
    assert many.memory_mb - few.memory_mb > 4 * 8 * (3160 - 435) * 400 / 2**20
    assert (
        estimate("forests", schema=wide, rows=100_000, max_model_mb=40.0).seconds > many.seconds + 2
    )
    large, small = (
        estimate("aim", rows=100_000, schema=narrow, max_model_mb=mb).seconds for mb in (80.0, 5.0)
    )
    assert large > 3 * small


def test_memory_holds_what_a_choice_among_single_queries_takes() -> None:
    domain = Schema.coded({f"c{i}": 60 for i in range(6)})
    cells = 20 * 60**3
    few, many = (estimate(name, schema=domain).memory_mb for name in ("gaussian", "dual-query"))
    assert many - few > 100 * cells / 2**20


def test_memory_holds_a_weight_for_every_cell() -> None:
    domain = Schema.coded({f"c{i}": 10 for i in range(7)})
    assert (
        estimate("mwem", schema=domain).memory_mb
        > estimate("mst", schema=domain).memory_mb + 2 * 8 * 10**7 / 2**20
    )


def test_a_time_that_nothing_foretells_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Branch and bound may end at once or take all that it may."""
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("schema.toml")
    options = ["plan", "-s", "schema.toml", "--epsilon", "1", "--delta", "1e-9", "-m"]
    for more, told in (
        (["dual-query"], False),
        (["dual-query", "--max-nodes", "0"], True),
        (["fem"], True),
    ):
        assert run([*options, *more]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert ("unknown: the search" in said, "s of processor time" in said) == (not told, told)
        assert run([*options, *more, "--json"]) == 0
        assert (json.loads(capsys.readouterr().out)["seconds"] is not None) == told


def test_a_plan_says_how_many_rounds_so_many_records_are_worth() -> None:
    """The number at most stands beside the number that is expected; the error goes by the latter."""
    wider = Schema.coded(dict.fromkeys("abcdefgh", 2)).domain
    mechanism = MECHANISMS["rap"](workload=Workload.all_kway(wider, 3))
    few, many = (
        plan_of(wider, mechanism, budget=BUDGET, unit=ReplaceRow(), rows=n).noise[-1]
        for n in (100, 10**9)
    )
    assert (few.at_most, few.marginals, few.expected, many.expected) == (True, 56, 8, 56)
    assert few.expected_error == pytest.approx(few.error * np.sqrt(8 / 56))
    assert many.expected_error == many.error == few.error
    assert few.verdict(round(few.expected_error) + 1) is None


@pytest.mark.parametrize("name", ["independent", "mst", "aim"])
def test_columns_whose_codes_noise_will_hide_are_named(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = Schema.coded({"town": 5000, "sex": 2, "age": 10})
    weak = Budget.approx(0.1, 1e-9)

    def hidden(rows: int, budget: Budget = weak) -> list[str]:
        made = plan_of(
            wide.domain, MECHANISMS[name](), budget=budget, unit=AddRemoveRow(), rows=rows
        )
        return [h.column for h in made.hidden]

    assert hidden(50_000) == ["town"]
    assert hidden(500_000_000) == []
    assert hidden(50_000_000, Budget.approx(10.0, 1e-9)) == []
    wide.save(tmp_path / "s.toml")
    words = ["plan", "-s", str(tmp_path / "s.toml"), "-e", "0.1", "--delta", "1e-9", "-m", name]
    assert run([*words, "--unit", "add-remove-row", "--rows", "50000"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "town (5,000 codes of 10 rows on average; noise hides up to " in said
    assert "Merge codes" in said


def test_a_plan_says_that_its_rows_are_assumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = tmp_path / "s.toml"
    columns = [Integer("stay", 0, 9), Integer("ill", 0, 1)]
    Schema(columns, person="patient_no").save(schema)
    words = ["plan", "-s", str(schema), "--epsilon", "1", "--delta", "1e-9"]
    words += ["--unit", "add-remove-person:2"]
    for rows, assumed in (([], True), (["--rows", "5000"], False)):
        assert run([*words, "--for", "mean stay by ill", *rows]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert ("assumed: state yours by --rows" in shown) == assumed
        assert ("The number of rows is assumed: give yours by --rows." in shown) == assumed
        assert ("of 5,000 rows" in shown) != assumed
    assert run([*words, "--for", "mean patient_no"]) == 2
    assert "the person ID column" in " ".join(capsys.readouterr().err.split())


def test_a_plan_names_columns_whose_bins_are_too_wide(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    columns = [
        Integer("stay", 1, 14),
        Integer("age", 0, 99, bins=10),
        Real("cost", 0, 1e4, bins=20),
    ]
    columns += [Real("price", 0, 1e4)]
    columns += [Date("day", date(2020, 1, 1), date(2020, 12, 31), bins=12), Learn("wait", "real")]
    Schema(columns).save(tmp_path / "s.toml")
    words = ["plan", "-s", str(tmp_path / "s.toml"), "--epsilon", "1", "--delta", "1e-9"]
    assert run([*words, "-m", "independent"]) == 0
    assert (
        "too wide for a reliable mean of age, unless its standard deviation is above about 90, or its mean above"
        " about 90; of cost, unless its standard deviation is above about 5,000, or its mean above"
        " about 5,000; of day, unless its standard deviation is above about 99 days. In the schema, write learn = true"
    ) in capsys.readouterr().out  # whole, as the output is not a terminal
    assert run([*words, "-m", "independent", "--json"]) == 0
    named = [w["column"] for w in json.loads(capsys.readouterr().out)["wide_bins"]]
    assert named == ["age", "cost", "day"]


def test_a_plan_gives_one_remedy_for_each_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    columns = [Integer("stay", 0, 99, bins=10), Categorical("town", [str(i) for i in range(40)])]
    Schema(columns).save(tmp_path / "s.toml")
    words = ["plan", "-s", str(tmp_path / "s.toml"), "--epsilon", "0.1", "--delta", "1e-9"]
    for rows, is_hidden in (("300", True), ("30000", False)):
        assert run([*words, "-m", "independent", "--rows", rows]) == 0
        found = [line for line in capsys.readouterr().out.split("\n") if "learn" in line]
        (of_stay,) = (line for line in found if "of stay" in line)
        assert ("Fewer bins would be too wide" in of_stay) == is_hidden
        assert ("give finer edges" in of_stay) != is_hidden
        assert "Merge codes" not in of_stay
        merged = [line for line in found if "Merge codes" in line]
        assert ["of town (40 codes" in line for line in merged] == [True] * is_hidden


def test_a_plan_has_more_rounds_where_more_marginals_are_above_their_noise() -> None:
    domain, mechanism = Schema.coded(dict.fromkeys("abcdefgh", 6)).domain, MECHANISMS["aim"]()
    rounds, seconds = list[int](), list[float]()
    for epsilon, rows in ((1.0, 1_000), (1.0, 50_000), (10.0, 300_000)):
        budget = Budget.approx(epsilon, 1e-9)
        rounds.append(mechanism.selection(domain, budget.rho, rows, AddRemoveRow()).rounds)
        made = plan_of(domain, mechanism, budget=budget, unit=AddRemoveRow(), rows=rows)
        assert made.seconds is not None
        seconds.append(made.seconds)
    assert rounds == sorted(set(rounds))
    assert rounds[0] > 8
    assert rounds[-1] <= 15 * len(domain)
    assert seconds == sorted(set(seconds))


def test_a_plan_of_few_rows_has_fewer_pairs_in_its_forests() -> None:
    domain, mechanism = (
        Schema.coded({f"c{i}": 20 for i in range(40)}).domain,
        MECHANISMS["forests"](),
    )
    few, many = (
        plan_of(domain, mechanism, budget=BUDGET, unit=AddRemoveRow(), rows=rows).seconds
        for rows in (2_000, 200_000)
    )
    assert few is not None
    assert many is not None
    assert few < many / 2
