"""The adaptive suite: splits, codes, grids, the order of work, means and orderings."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margrave import PublicTable
from margrave.domain import Codes, Domain

pytest.importorskip("benchmarks", reason="the benchmarks are not part of this copy")

from benchmarks.__main__ import default_data
from benchmarks.core.results import View
from benchmarks.core.runner import left
from benchmarks.core.suite import Case, Cell, Table, Task, kway
from benchmarks.core.tables import codes_of, split
from benchmarks.suites import _adaptive_claims as claims
from benchmarks.suites import _adaptive_page as page
from benchmarks.suites import _adaptive_tables as tables
from benchmarks.suites import _survey as survey
from benchmarks.suites import adaptive

DATA = default_data()
needs_data = pytest.mark.skipif(
    not (DATA / "gem").is_dir(), reason="the benchmark tables are not here: set MARGRAVE_DATA"
)


def five(
    contender: str, setting: dict[str, Any], epsilon: float, *values: float,
    task: str = "adult_reduced",
) -> list[dict[str, Any]]:  # fmt: skip
    return [
        {"task": task, "contender": contender, "setting": setting, "epsilon": epsilon, "repeat": i,
         "outcome": "finished", "errors": {"max": v, "mean": v / 10, "rmse": v / 5}}
        for i, v in enumerate(values)
    ]  # fmt: skip


def view(*rows: dict[str, Any]) -> View:
    return View(adaptive.SUITE, rows)


def default(found: View, who: str, metric: str) -> claims.Points:
    return claims.points(found, "default", "adult_reduced", who, metric)


def tuned(found: View, who: str, metric: str) -> claims.Points:
    return claims.points(found, "tuned", "adult_reduced", who, metric)


# Tables


def test_a_split_parts_all_rows_once_and_is_always_the_same() -> None:
    codes = codes_of({"row": 1003}, [np.arange(1003)])
    private, public = split(codes, 100, 2021)
    assert (len(private), len(public)) == (903, 100)
    both = [*private.column("row").tolist(), *public.column("row").tolist()]
    assert sorted(both) == list(range(1003))
    again, _ = split(codes, 100, 2021)
    np.testing.assert_array_equal(private.values, again.values)
    assert public.column("row").mean() == pytest.approx(501, abs=6 * 290 / 10)  # not one end


def test_the_wide_table_copies_four_fifths_of_its_values() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 3, (43, 20_000))
    sizes = {f"c{i}": 3 for i in range(43)}
    wide, sizes = tables.widened(rows, sizes, np.random.default_rng(1))
    assert wide.shape == (100, 20_000)
    assert len(sizes) == 100
    assert list(sizes)[43] == "c0_copy1"
    assert list(sizes)[99] == "c13_copy2"
    np.testing.assert_array_equal(wide[:43], rows)
    for copy, original in ((43, 0), (99, 13)):  # kept, or drawn anew and the same by chance
        assert np.mean(wide[copy] == rows[original]) == pytest.approx(0.8 + 0.2 / 3, abs=0.015)


def test_texts_and_numbers_of_the_survey_become_codes() -> None:
    columns = {c.name: c for c in survey.COLUMNS}
    names = ("education", "age", "leaves", "birthplace")
    education, age, leaves, born = (columns[n].code for n in names)
    texts = ("Grade 1", "Grade 10", "Grade 11", "Bachelor's degree")
    assert [education(x) for x in texts] == [1, 4, 5, 9]
    assert [age(x) for x in (17, 19, 20, 69, 70, 95)] == [0, 0, 1, 8, 9, 9]
    hours = ("12:05 a.m. to", "1:55 a.m. to", "12:00 p.m. to", "11:59 p.m. to", "N/A (x)")
    assert [leaves(x) for x in hours] == [0, 0, 6, 11, 12]
    places = ("Pennsylvania/PA", "Ohio/OH", "Mexico", "France", "Texas/TX")
    assert [born(x) for x in places] == sorted({born(x) for x in places})
    assert born("Pennsylvania/PA") == 0
    assert born("Texas/TX") == columns["birthplace"].size - 1
    assert columns["riders"].code(None) == columns["riders"].size - 1
    with pytest.raises(ValueError, match="column 'Age' holds a missing value"):
        age(None)
    with pytest.raises(ValueError, match="column 'Education' holds a text that is none") as caught:
        education("something else")
    assert "something" not in str(caught.value)


def test_a_column_of_the_survey_is_coded_value_by_value() -> None:
    riders = next(c for c in survey.COLUMNS if c.name == "riders")
    values = pa.chunked_array([pa.array([1.0, None, 3.0]), pa.array([9.0, None])])
    assert riders.codes(values).tolist() == [0, 4, 2, 3, 4]


def test_the_reduced_survey_is_small() -> None:
    sizes = {c.name: c.size for c in survey.COLUMNS if c.name in survey.REDUCED}
    assert (len(sizes), math.prod(sizes.values()), math.comb(len(sizes), 3)) == (15, 921_600, 455)


@needs_data
@pytest.mark.data
def test_adult_is_the_papers() -> None:
    case = adaptive.TASKS["adult"].case(DATA)
    assert (case.table.n, len(case.cliques), case.truth.size) == (43_958, 286, 312_798)
    assert np.sum(case.truth > 0.1) == pytest.approx(487, abs=5)  # the paper counts 487
    reduced = case.table.publics["reduced"].domain
    assert set(reduced) == set(tables.PUBLIC_COLUMNS)
    cells = sum(reduced.cells(c) for c in combinations(reduced, 3))
    assert cells == 19_687  # the paper: about 20 thousand


# Errors


def test_errors_are_largest_mean_and_root_mean_square() -> None:
    found = adaptive.between(np.array([0.1, 0.5, 0.4]), np.array([0.1, 0.2, 0.8]))
    assert found == pytest.approx({"max": 0.4, "mean": 0.7 / 3, "rmse": math.sqrt(0.25 / 3)})
    with pytest.raises(ValueError, match="not finite"):
        adaptive.between(np.array([np.nan]), np.array([0.0]))


# Settings and work


@pytest.mark.parametrize("task", adaptive.TASKS)
def test_every_contender_can_be_made_with_every_setting_of_its_grid(task: str) -> None:
    domain = Domain.of({"a": 2, "b": 3, "c": 2})
    rows = Codes.of(domain, {a: np.zeros(4, dtype=np.int64) for a in domain})
    public = PublicTable(rows, "made up for the tests")
    table = Table(rows, dict.fromkeys(("tenth", "reduced", "us", "ca", "oh"), public))
    case = Case(Task("T", lambda data: table, kway(2)), table)
    for name in adaptive.TASKS[task].contenders:
        contender = adaptive.CONTENDERS[name]
        assert contender.colors is not None
        if contender.environment is None:
            for setting in adaptive.settings(name, task):
                assert contender.make(case, setting).config()["name"]


@pytest.mark.parametrize(
    ("contender", "task", "settings"),
    [("pep", "adult_reduced", 10), ("mwem", "acs_reduced", 7), ("mwem-forgetful", "acs_reduced", 9),
     ("gem", "acs", 9), ("gem", "acs_reduced", 8), ("gem", "adult", 12), ("gem-pub-ca", "acs", 9),
     ("rap", "adult", 35), ("dual-query", "adult", 20), ("aim", "adult", 0), ("fem", "adult", 0)],
)  # fmt: skip
def test_grids_are_as_large_as_the_papers(contender: str, task: str, settings: int) -> None:
    assert len(adaptive.CONTENDERS[contender].grid(task)) == settings
    assert len(adaptive.settings(contender, task)) == settings + 1


def cells_of(*names: str, repeats: int | None = None) -> list[Cell]:
    cells = adaptive.cells(repeats)
    return [c for c in cells if c.task == "adult_reduced" and c.contender in names]


def test_defaults_come_first_then_some_of_the_grid_at_all_epsilons() -> None:
    found = cells_of("pep", "mst")
    assert len(found) == 6 * 5 * (11 + 1)
    assert [c.contender for c in found[:3]] == ["mst", "pep", "mst"]
    assert all(not c.setting and c.stage == "default" for c in found[:60])
    coarse = found[60 : 60 + 3 * 30]
    assert {c.stage for c in coarse} == {"coarse"}
    assert {c.setting["rounds"] for c in coarse} == {30, 75, 150}
    assert {c.epsilon for c in coarse[:15]} == {1.0}
    assert [c.repeat for c in coarse[:15:3]] == [0, 1, 2, 3, 4]


def test_a_stored_setting_is_not_run_again() -> None:
    cells = [c for c in cells_of("pep", repeats=2) if c.epsilon in (1.0, 0.1)]
    cells = [c for c in cells if c.setting in ({}, {"rounds": 20})]
    rows = five("pep", {}, 1.0, 0.1, 0.1) + five("pep", {"rounds": 20}, 1.0, 0.1)
    assert [(c.setting, c.epsilon, c.repeat) for c in left(cells, rows)] == [
        ({}, 0.1, 0), ({}, 0.1, 1), ({"rounds": 20}, 1.0, 1), ({"rounds": 20}, 0.1, 0),
        ({"rounds": 20}, 0.1, 1),
    ]  # fmt: skip
    rows[0]["outcome"] = "timed out"
    assert len(left(cells, rows)) == 5  # neither it nor the other run of its kind
    assert len(left(cells, rows, again=True)) == 6


# Means and orderings


def test_means_and_standard_errors() -> None:
    found = view(*five("aim", {}, 0.5, 1.0, 2.0, 6.0), *five("aim", {}, 1.0, 3.0))
    (point,) = default(found, "aim", "max").values()
    assert point.mean == 3.0
    assert point.error == pytest.approx(math.sqrt(7.0) / math.sqrt(3))
    assert list(default(found, "aim", "max")) == [0.5]  # one run does not count


def test_tuned_is_the_best_of_the_grid_and_nothing_else() -> None:
    found = view(
        *five("pep", {}, 1.0, 0.01, 0.01), *five("pep", {"rounds": 20}, 1.0, 0.2, 0.4),
        *five("pep", {"rounds": 30}, 1.0, 0.2, 0.2), *five("pep", {"rounds": 33}, 1.0, 0.1, 0.1),
        *five("pep", {"rounds": 40}, 1.0, 0.05), *five("aim", {}, 1.0, 0.3, 0.3),
    )  # fmt: skip
    assert tuned(found, "pep", "max")[1.0].setting == {"rounds": 30}
    assert default(found, "pep", "max")[1.0].mean == pytest.approx(0.01)
    assert tuned(found, "aim", "max")[1.0].mean == pytest.approx(0.3)


def test_an_ordering_holds_where_the_errors_say_so() -> None:
    claim = claims.Claim("A ≤ B", "pep", "mwem", ("adult_reduced",), "Figure 1")

    def outcome(*gaps: float, spread: float = 0.01) -> str:
        rows = []
        for epsilon, gap in zip(claims.EPSILONS, gaps, strict=False):
            rows += five("pep", {"rounds": 20}, epsilon, 0.2 + gap - spread, 0.2 + gap + spread)
            rows += five("mwem", {"rounds": 50}, epsilon, 0.2 - spread, 0.2 + spread)
        return claims.compare(view(*rows), claim, "adult_reduced", "tuned", "max").outcome

    assert outcome() == "not run"
    assert outcome(*[-0.1] * 6) == "holds"
    assert outcome(*[-0.1] * 5, 0.001) == "holds"
    assert outcome(*[0.001, -0.001] * 3) == "no difference"
    assert outcome(*[0.1] * 5, 0.001) == "does not hold"
    assert outcome(-0.1, *[0.1] * 5) == "holds at 0.1 only"
    assert outcome(-0.1, -0.05) == "holds, at 2 of 6 ε"


def test_the_ratio_of_an_ordering_is_better_over_worse() -> None:
    claim = claims.Claim("A < B", "aim", "mst", ("adult_reduced",), "")
    found = view(*five("aim", {}, 1.0, 0.1, 0.1), *five("mst", {}, 1.0, 0.2, 0.2))
    comparison = claims.compare(found, claim, "adult_reduced", "tuned", "mean")
    assert comparison.ratios[1.0] == pytest.approx(0.5)
    assert comparison.measured == "1 · 0 · 0 of 6; × 0.50 to 0.50"


def test_orderings_and_figures_name_contenders_of_their_tables() -> None:
    for claim in claims.CLAIMS:
        for task in claim.tasks:
            assert {claim.better, claim.worse} <= set(adaptive.TASKS[task].contenders)
    for rows in page.LAYOUTS.values():
        for panel in (panel for row in rows for panel in row):
            assert panel.metric in claims.METRICS
            assert set(panel.contenders) & set(adaptive.TASKS[panel.task].contenders)


# The page


def test_what_is_stored_is_drawn_and_what_is_not_is_left_out() -> None:
    rows = five("pep", {"rounds": 20}, 1.0, 0.25, 0.15)
    rows += five("pep", {"rounds": 20}, 0.1, 0.5, 0.5)
    figures = {n: page.figure(view(*rows), n) for n in page.LAYOUTS}
    drawn = {name: svg for name, svg in figures.items() if svg}
    assert set(drawn) == {"figure1", "figure3"}
    assert "PEP, ε = 1: 0.2 (0.15 to 0.25)" in drawn["figure1"]
    assert drawn["figure1"].count("<circle") == 1 + 2  # the key, and two dots
    assert "MWEM" not in drawn["figure1"]


def test_a_page_shows_what_was_run_and_lists_the_rest_once() -> None:
    facts = {"rounds": 20, "fit_wall_s": 1.0, "fit_cpu_s": 123.4, "earlier": 0, "commit": "0" * 40, "dirty": False,
             "machine": {"cores": 2, "cpu": "one"}}  # fmt: skip
    rows = [{**x, **facts} for n in ("pep", "mwem") for x in five(n, {}, 1.0, 0.25, 0.15)]
    made = page.page(view(*rows)).tables
    assert made["orderings"].count("\n") == 2  # a head, its line, and PEP ≤ MWEM
    line = "| PEP ≤ MWEM | ADULT (reduced) | Figure 1 | default | 0 · 1 · 0 of 6; × 1.00 to 1.00 |"
    assert line in made["orderings"]
    assert "| MWEM | 2 | 0 of 7 |  | 20 | 1 | 123 | 0.2000 |" in made["runs"]
    assert "tuned" not in made["numbers"].lower()
    others = {name: text for name, text in made.items() if name != "missing"}
    assert not any("not run" in text.lower() for text in others.values())
    assert "the library's defaults" in made["figures"].lower()

    left_out = made["missing"]
    assert (
        "- tables: ACS (reduced) PA, ACS (reduced) of all states, ADULT, ACS PA, ADULT*, 100 columns\n"
        in left_out
    )
    three = "(ACS (reduced) PA, ADULT (reduced), ACS (reduced) of all states)"
    assert (
        f"PEP ≤ MWEM (ACS (reduced) PA); PEP ≤ MWEM, as published {three}; PEP < RAP^softmax {three}"
        in left_out
    )
    contenders = next(x for x in left_out.splitlines() if x.startswith("- contenders"))
    assert " · GEM · " in contenders
    assert "PEP · " not in contenders
    assert "ADULT (reduced), all of 17 settings" in left_out
    assert "- the paper's figures: 1, 2, 3, 4, 5, 6, 7, 8\n" in left_out
