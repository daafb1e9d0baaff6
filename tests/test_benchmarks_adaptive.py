"""The parts of benchmarks/adaptive that need no run: splits, codes, grids, the order of work, means and orderings."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margrave import Schema
from margrave.schema import Codes

pytest.importorskip("benchmarks.adaptive", reason="the benchmarks are not part of this copy")

from benchmarks.adaptive import (
    acs,
    contenders,
    errors,
    figures,
    grids,
    missing,
    names,
    orderings,
    summary,
    tables,
    tasks,
    work,
)
from run import default_data
from stored import append, filled

DATA = default_data()
needs_data = pytest.mark.skipif(
    not (DATA / "gem").is_dir(), reason="the benchmark tables are not here: set MARGRAVE_DATA"
)


def line(contender: str, setting: dict[str, Any], epsilon: float, run: int, most: float) -> dict[str, Any]:
    return {
        "contender": contender, "setting": setting, "epsilon": epsilon, "run": run, "outcome": "finished",
        "errors": {"max": most, "mean": most / 10, "rmse": most / 5},
    }  # fmt: skip


def results(*lines: dict[str, Any], task: str = "adult_reduced") -> summary.Results:
    by: dict[str, list[dict[str, Any]]] = {}
    for x in lines:
        by.setdefault(x["contender"], []).append(x)
    return summary.Results(task, by)


def five(contender: str, setting: dict[str, Any], epsilon: float, *values: float) -> list[dict[str, Any]]:
    return [line(contender, setting, epsilon, i, v) for i, v in enumerate(values)]


# Tables


def test_a_split_parts_all_rows_once_and_is_always_the_same() -> None:
    schema = Schema.coded({"row": 1003})
    codes = Codes.of(schema.domain, {"row": np.arange(1003)})
    private, public = tasks.split(codes)
    assert (len(private), len(public)) == (903, 100)
    assert sorted([*private.column("row").tolist(), *public.column("row").tolist()]) == list(range(1003))
    again, _ = tasks.split(codes)
    np.testing.assert_array_equal(private.values, again.values)
    assert public.column("row").mean() == pytest.approx(501, abs=6 * 290 / 10)  # not the first or last rows


def test_shares_are_those_counted_by_hand() -> None:
    schema = Schema.coded({"a": 2, "b": 3})
    codes = Codes.of(schema.domain, {"a": np.array([0, 1, 1, 1]), "b": np.array([2, 0, 0, 1])})
    assert tasks.shares(codes, (("a", "b"), ("b",))).tolist() == [0, 0, 0.25, 0.5, 0.25, 0, 0.5, 0.25, 0.25]


def test_the_wide_table_copies_four_fifths_of_its_values() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 3, (43, 20_000))
    wide, sizes = tasks.widened(rows, {f"c{i}": 3 for i in range(43)}, np.random.default_rng(1))
    assert wide.shape == (100, 20_000)
    assert len(sizes) == 100
    assert list(sizes)[43] == "c0_copy1"
    assert list(sizes)[99] == "c13_copy2"
    np.testing.assert_array_equal(wide[:43], rows)
    for copy, original in ((43, 0), (99, 13)):  # kept, or drawn anew and the same by chance
        assert np.mean(wide[copy] == rows[original]) == pytest.approx(0.8 + 0.2 / 3, abs=0.015)


def test_texts_and_numbers_of_the_survey_become_codes() -> None:
    known = {c.name: c for c in acs.COLUMNS}
    education, age, leaves, born = (known[n].code for n in ("education", "age", "leaves", "birthplace"))
    assert [education(x) for x in ("Grade 1", "Grade 10", "Grade 11", "Bachelor's degree")] == [1, 4, 5, 9]
    assert [age(x) for x in (17, 19, 20, 69, 70, 95)] == [0, 0, 1, 8, 9, 9]
    assert [leaves(x) for x in ("12:05 a.m. to", "1:55 a.m. to", "12:00 p.m. to", "11:59 p.m. to", "N/A (x)")] == [
        0, 0, 6, 11, 12
    ]  # fmt: skip
    assert born("Pennsylvania/PA") == 0 < born("Ohio/OH") < born("Mexico") < born("France") < born("Texas/TX")
    assert known["riders"].code(None) == known["riders"].size - 1
    with pytest.raises(ValueError, match="column 'Age' holds a missing value"):
        age(None)
    with pytest.raises(ValueError, match="column 'Education' holds a text that is none") as caught:
        education("something else")
    assert "something" not in str(caught.value)


def test_a_column_of_the_survey_is_coded_value_by_value() -> None:
    riders = next(c for c in acs.COLUMNS if c.name == "riders")
    values = pa.chunked_array([pa.array([1.0, None, 3.0]), pa.array([9.0, None])])
    assert acs.coded(values, riders).tolist() == [0, 4, 2, 3, 4]


def test_the_reduced_survey_is_small() -> None:
    sizes = acs.sizes(acs.REDUCED)
    assert (len(sizes), math.prod(sizes.values()), math.comb(len(sizes), 3)) == (15, 921_600, 455)


@needs_data
@pytest.mark.data
def test_adult_is_the_papers() -> None:
    task = tasks.adult(DATA)
    assert (task.n, len(task.cliques), task.truth.size) == (43_958, 286, 312_798)
    assert np.sum(task.truth > 0.1) == pytest.approx(487, abs=5)  # the paper counts 487
    reduced = task.publics["reduced"].domain
    assert set(reduced) == set(tasks.KNOWN_COLUMNS)
    assert sum(reduced.cells(c) for c in combinations(reduced, 3)) == 19_687  # the paper: about 20 thousand


# Errors


def test_errors_are_largest_mean_and_root_mean_square() -> None:
    found = errors.between(np.array([0.1, 0.5, 0.4]), np.array([0.1, 0.2, 0.8]))
    assert found == pytest.approx({"max": 0.4, "mean": 0.7 / 3, "rmse": math.sqrt(0.25 / 3)})
    with pytest.raises(ValueError, match="not finite"):
        errors.between(np.array([np.nan]), np.array([0.0]))


# Settings and work


def test_every_contender_has_a_name_a_colour_and_a_way_to_be_made() -> None:
    for task, those in contenders.BY_TASK.items():
        assert task in tasks.TASKS
        for name in those:
            assert name == contenders.PLAIN or name in contenders.CONTENDERS
            assert name in names.LABELS
            assert name in names.COLOURS
            assert name in work.COST


@pytest.mark.parametrize(
    ("contender", "task", "settings"),
    [("pep", "adult_reduced", 10), ("mwem", "acs_reduced", 7), ("mwem-forgetful", "acs_reduced", 9),
     ("gem", "acs", 9), ("gem", "acs_reduced", 8), ("gem", "adult", 12), ("gem-pub-ca", "acs", 9),
     ("rap", "adult", 35), ("dual-query", "adult", 20), ("aim", "adult", 0), ("fem", "adult", 0)],
)  # fmt: skip
def test_grids_are_as_large_as_the_papers(contender: str, task: str, settings: int) -> None:
    assert len(grids.grid(contender, task)) == settings
    assert len(grids.settings(contender, task)) == settings + 1


def test_defaults_come_first_then_some_of_the_grid_at_all_epsilons() -> None:
    found = work.jobs("adult_reduced", ["pep", "mst"], tasks.EPSILONS, 5)
    assert len(found) == 6 * 5 * (11 + 1)
    assert len(set(map(str, found))) == len(found)
    assert [j.contender for j in found[:3]] == ["mst", "pep", "mst"]
    assert all(not j.setting for j in found[:60])
    coarse = found[60 : 60 + 3 * 30]
    assert {j.setting["rounds"] for j in coarse} == {30, 75, 150}
    assert {j.epsilon for j in coarse[:15]} == {1.0}
    assert [j.run for j in coarse[:15:3]] == [0, 1, 2, 3, 4]


def test_rounds_may_be_named_on_the_grid_or_off_it() -> None:
    def rounds(*only: str, contender: str = "pep") -> list[object]:
        return [j.setting.get("rounds") for j in work.jobs("adult_reduced", [contender], [1.0], 1, only)]

    assert rounds("default") == [None]
    assert rounds("coarse", "40") == [30, 75, 150, 40]
    assert rounds("33") == [33]
    assert rounds("33", contender="aim") == []
    assert rounds("2", contender="rap") == [2] * 5  # with every K


def test_what_is_stored_is_not_run_again() -> None:
    wanted = work.jobs("adult_reduced", ["pep"], [1.0, 0.1], 2, ["default", "20"])
    stored = five("pep", {}, 1.0, 0.1, 0.1) + five("pep", {"rounds": 20}, 1.0, 0.1)
    assert [(j.setting, j.epsilon, j.run) for j in work.left(wanted, stored)] == [
        ({}, 0.1, 0), ({}, 0.1, 1), ({"rounds": 20}, 1.0, 1), ({"rounds": 20}, 0.1, 0), ({"rounds": 20}, 0.1, 1),
    ]  # fmt: skip
    stored[0]["outcome"] = "timed out"
    assert len(work.left(wanted, stored)) == 5  # neither it nor the other run of its kind
    assert len(work.left(wanted, stored, again=True)) == 6


# Means and orderings


def test_means_and_standard_errors() -> None:
    found = results(*five("aim", {}, 0.5, 1.0, 2.0, 6.0), *five("aim", {}, 1.0, 3.0))
    (point,) = found.default("aim", "max").values()
    assert (point.mean, point.runs) == (3.0, 3)
    assert point.error == pytest.approx(math.sqrt(7.0) / math.sqrt(3))
    assert list(found.default("aim", "max")) == [0.5]  # one run does not count


def test_tuned_is_the_best_of_the_grid_and_nothing_else() -> None:
    found = results(
        *five("pep", {}, 1.0, 0.01, 0.01), *five("pep", {"rounds": 20}, 1.0, 0.2, 0.4),
        *five("pep", {"rounds": 30}, 1.0, 0.2, 0.2), *five("pep", {"rounds": 33}, 1.0, 0.1, 0.1),
        *five("pep", {"rounds": 40}, 1.0, 0.05), *five("aim", {}, 1.0, 0.3, 0.3),
    )  # fmt: skip
    assert found.tuned("pep", "max")[1.0].setting == {"rounds": 30}
    assert found.default("pep", "max")[1.0].mean == pytest.approx(0.01)
    assert found.tuned("aim", "max")[1.0].mean == pytest.approx(0.3)


def test_an_ordering_holds_where_the_errors_say_so() -> None:
    ordering = orderings.Ordering("A ≤ B", "pep", "mwem", ("adult_reduced",), "Figure 1")

    def outcome(*gaps: float, spread: float = 0.01) -> str:
        lines = []
        for epsilon, gap in zip(tasks.EPSILONS, gaps, strict=False):
            lines += five("pep", {"rounds": 20}, epsilon, 0.2 + gap - spread, 0.2 + gap + spread)
            lines += five("mwem", {"rounds": 50}, epsilon, 0.2 - spread, 0.2 + spread)
        return orderings.compared(ordering, results(*lines), "tuned", "max").outcome

    assert outcome() == "not run"
    assert outcome(*[-0.1] * 6) == "holds"
    assert outcome(*[-0.1] * 5, 0.001) == "holds"
    assert outcome(*[0.001, -0.001] * 3) == "no difference"
    assert outcome(*[0.1] * 5, 0.001) == "does not hold"
    assert outcome(-0.1, *[0.1] * 5) == "holds at 0.1 only"
    assert outcome(-0.1, -0.05) == "holds, at 2 of 6 ε"


def test_the_ratio_of_an_ordering_is_better_over_worse() -> None:
    ordering = orderings.Ordering("A < B", "aim", "mst", ("adult_reduced",), "")
    found = results(*five("aim", {}, 1.0, 0.1, 0.1), *five("mst", {}, 1.0, 0.2, 0.2))
    said = orderings.compared(ordering, found, "tuned", "mean")
    assert said.ratios[1.0] == pytest.approx(0.5)
    assert said.measured == "1 · 0 · 0 of 6; × 0.50 to 0.50"


def test_orderings_and_figures_name_contenders_of_their_tables() -> None:
    for ordering in orderings.ORDERINGS:
        for task in ordering.tasks:
            assert {ordering.better, ordering.worse} <= set(contenders.BY_TASK[task])
    for rows in figures.layouts().values():
        for task, those, metric in (cell for row in rows for cell in row):
            assert metric in errors.METRICS
            assert set(those) & set(contenders.BY_TASK[task])


# The page


def test_what_is_stored_is_drawn_and_what_is_not_is_left_out(tmp_path: Path) -> None:
    for x in five("pep", {"rounds": 20}, 1.0, 0.25, 0.15) + five("pep", {"rounds": 20}, 0.1, 0.5, 0.5):
        append(tmp_path / "adult_reduced_pep.jsonl", x)
    drawn = figures.figures(summary.read_all(tmp_path, tasks.TASKS))
    assert set(drawn) == {"figure1", "figure3"}
    assert "PEP, ε = 1: 0.2 (0.15 to 0.25)" in drawn["figure1"]
    assert drawn["figure1"].count("<circle") == 1 + 2  # the key, and two dots
    assert "MWEM" not in drawn["figure1"]


def test_a_page_shows_what_was_run_and_lists_the_rest_once(tmp_path: Path) -> None:
    facts = {"rounds": 20, "fit_wall_s": 1.0, "fit_cpu_s": 123.4, "earlier": 0, "commit": "0" * 40, "dirty": False,
             "machine": {"cores": 2, "cpu": "one"}}  # fmt: skip
    for name in ("pep", "mwem"):
        for x in five(name, {}, 1.0, 0.25, 0.15):
            append(tmp_path / f"adult_reduced_{name}.jsonl", {**x, **facts})
    read = summary.read_all(tmp_path, tasks.TASKS)
    made, drawn = tables.tables(read, tmp_path), figures.figures(read)
    assert made["orderings"].count("\n") == 2  # a head, its line, and PEP ≤ MWEM
    assert "| PEP ≤ MWEM | ADULT (reduced) | Figure 1 | default | 0 · 1 · 0 of 6; × 1.00 to 1.00 |" in made["orderings"]
    assert "| MWEM | 2 | 0 of 7 |  | 20 | 1 | 123 | 0.2000 |" in made["runs"]
    assert "tuned" not in made["numbers"].lower()
    assert not any("not run" in text.lower() for text in made.values())
    assert "as the library sets them" in figures.captioned(drawn).lower()

    told = missing.missing(read, drawn, scaled=False)
    assert "- tables: ACS (reduced) PA, ACS (reduced) of all states, ADULT, ACS PA, ADULT*, 100 columns\n" in told
    three = "(ACS (reduced) PA, ADULT (reduced), ACS (reduced) of all states)"
    assert f"PEP ≤ MWEM (ACS (reduced) PA); PEP ≤ MWEM, as published {three}; PEP < RAP^softmax {three}" in told
    contenders_left = next(x for x in told.splitlines() if x.startswith("- contenders"))
    assert " · GEM · " in contenders_left
    assert "PEP · " not in contenders_left
    assert "ADULT (reduced), all of 17 settings" in told
    assert "- the paper's figures: 1, 2, 3, 4, 5, 6, 7, 8\n" in told


def test_marks_of_a_page_are_filled_anew() -> None:
    page = "a\n<!-- table: x -->\nold\n<!-- end -->\nb\n"
    assert filled(page, {"x": "new", "y": "?"}) == "a\n<!-- table: x -->\nnew\n<!-- end -->\nb\n"
