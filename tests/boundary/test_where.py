"""Conditions, units and workloads as texts: open ranges work, and anything else is one clear error at once."""

from __future__ import annotations

import re
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import margrave.inference
from margrave import synthesize
from margrave.cli.main import run
from margrave.cli.options import parse_workload
from margrave.cli.where import MAX_CHARACTERS, MAX_VALUES, conditions
from margrave.domain import Domain
from margrave.errors import BinWarning, InputError
from margrave.inference import Mean, Proportion, analyze
from margrave.mechanisms import Independent
from margrave.release import Release
from margrave.release.conditions import codes_of, cut_of, cuts_of, in_words
from margrave.schema import Categorical, Date, Integer, Ordinal, Real, Schema
from margrave.schema.bins import Binning, Leaves
from margrave.unit import parse_unit

SCHEMA = Schema(
    [
        Categorical("sex", ["F", "M"]),
        Integer("age", 0, 99, bins=10, missing=True),
        Ordinal("grade", ["low", "mid", "high"], missing=True),
        Date("day", date(2020, 1, 1), date(2020, 12, 31), bins=12),
    ]
)


@pytest.mark.parametrize(
    ("column", "wanted", "codes"),
    [
        ("age", ("80", None), (8, 9)),
        ("age", (None, "19"), (0, 1)),
        ("age", (95, None), (9,)),
        ("age", (-5, None), tuple(range(10))),
        ("age", (None, 200), tuple(range(10))),
        ("grade", ("mid", None), (1, 2)),
        ("grade", (None, "mid"), (0, 1)),
        ("day", ("2020-11-15", None), (10, 11)),
    ],
)
def test_an_open_range_goes_to_the_end_and_leaves_out_the_missing(
    column: str, wanted: Any, codes: tuple[int, ...]
) -> None:
    assert codes_of(SCHEMA, column, wanted) == codes


def test_an_open_range_in_words() -> None:
    assert cut_of(SCHEMA, "age", ("80", None)) is None
    for wanted, whole in ((("85", None), "80 to 99"), ((None, "15"), "0 to 19")):
        cut = cut_of(SCHEMA, "age", wanted)
        assert cut is not None
        assert cut.whole == whole
    assert (
        in_words({"age": (85, None), "day": (None, "2020-02-01")})
        == "age from 85 and day up to 2020-02-01"
    )


def test_a_cut_says_how_values_are_drawn_within_its_bin() -> None:
    even = Schema([Real("cost", 0, 10, edges=[0, 10])])
    parts = Real("cost", 0, 10, edges=[0, 10], leaf_edges=[0, 5, 10], leaf_weights=[9, 1])
    for schema, how, share in (
        (even, "evenly", 0.5),
        (Schema([parts]), "with the weights of", 0.9),
    ):
        cut = cut_of(schema, "cost", (0, 5))
        assert cut is not None
        assert cut.shares[0] == pytest.approx(share)
        assert f"values are drawn {how}" in str(cut)


@pytest.mark.parametrize(
    ("column", "wanted", "words"),
    [
        ("age", (None, None), "does not have two ends"),
        ("age", ("100", None), "lies outside its bounds. Give values from 0 to 99."),
        ("day", ("2021-01-05", None), "Give values from 2020-01-01 to 2020-12-31."),
        ("age", (None, "-1"), "lies outside its bounds"),
        ("age", ("old", None), "is not a value of column 'age'"),
        ("sex", ("F", None), "has no order"),
    ],
)
def test_an_open_range_that_cannot_be_is_refused(column: str, wanted: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        codes_of(SCHEMA, column, wanted)


@pytest.mark.parametrize("text", ["40..50", "40-50", "40 .. 50", " 40 - 50"])
def test_a_range_in_a_text_is_answered_with_its_form(text: str) -> None:
    words = re.escape("{'age': (40, 50)} in Python, and age=40..50 on the command line.")
    with pytest.raises(InputError, match=words):
        codes_of(SCHEMA, "age", text)
    with pytest.raises(InputError, match=words):
        Mean("age", where={"age": text})(pd.DataFrame({"age": [10.0, 20.0]}))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("day=2020-02", "A month is a range of days: .* and day=2020-02-01..2020-02-29 on the"),
        ("day=2020", "A year is a range of days: .* and day=2020-01-01..2020-12-31 on the"),
        (
            "day=01/03/2020",
            r"Dates are written as year, month and day, such as 2020-01-01\. Give a v",
        ),
        ("day=2020-02..2020-03", "A month is a range of days"),
        ("sex=F,M", r'written --where "sex=F\|M" on the command line, and \["F", "M"\] in Python'),
        ("sex=f; m", r'written --where "sex=F\|M" on the command line'),
        ("grade=low,mid", r'written --where "grade=low\|mid"'),
    ],
)
def test_a_condition_in_another_form_is_answered_with_one_that_works(text: str, words: str) -> None:
    ((column, wanted),) = conditions([text]).items()
    with pytest.raises(InputError, match=words) as e:
        codes_of(SCHEMA, column, wanted)
    found = re.search(r"(?:and |where \")(\w+=[-\w.|]+)", str(e.value))
    for form in [found[1]] if found else []:
        assert codes_of(SCHEMA, *next(iter(conditions([form]).items())))


def test_a_text_of_two_columns_values_is_not_a_list() -> None:
    with pytest.raises(InputError, match="It has F, M") as e:
        codes_of(SCHEMA, "sex", "F,old")
    assert "Several values" not in str(e.value)


def test_an_analysis_takes_open_ranges() -> None:
    frame = pd.DataFrame(
        {"age": [10.0, 20.0, 30.0, 40.0, np.nan], "pay": [1.0, 2.0, 3.0, 5.0, 100.0]}
    )
    assert Mean("pay", where={"age": (30, None)})(frame).estimates[0] == 4.0
    assert Mean("pay", where={"age": (None, 20)})(frame).estimates[0] == 1.5
    with pytest.raises(InputError, match="does not have two ends"):
        Mean("pay", where={"age": (None, None)})(frame)


@pytest.fixture(scope="module")
def release_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = pd.DataFrame({"sex": ["F", "M"] * 50, "age": list(range(100)), "grade": ["low"] * 100})
    rows["day"] = pd.Timestamp("2020-03-04")
    path = tmp_path_factory.mktemp("made") / "r.margrave"
    synthesize(rows, SCHEMA, epsilon=50.0, delta=1e-6, mechanism=Independent()).save(path)
    return path


def test_open_ranges_on_the_command_line(
    release_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    sample = ["sample", str(release_file), "-n", "50", "--seed", "1", "--overwrite", "-o", "o.csv"]
    for text, low, high in [("age=80..", 80, 99), ("age=..30", 0, 30), (" age = 80 .. ", 80, 99)]:
        assert run([*sample, "--where", text]) == 0
        ages = pd.read_csv("o.csv").age
        assert ages.between(low, high).all(), text
    assert "Note: age up to 30 cuts a bin" in capsys.readouterr().err
    mean = [
        "analyze",
        "mean",
        str(release_file),
        "age",
        "--m",
        "4",
        "--method",
        "bootstrap",
        "--seed",
        "1",
    ]
    assert run([*mean, "--where", "age=80.."]) == 0
    assert "Only records with age from 80 are analyzed." in " ".join(
        capsys.readouterr().out.split()
    )
    several = [
        "analyze",
        "several",
        str(release_file),
        "mean age --where age=..30",
        *mean[4:],
        "--where",
        "age=80..",
    ]
    assert run(several) == 0
    assert "age up to 30" in " ".join(capsys.readouterr().out.split()), (
        "an analysis's own goes before"
    )


def test_calls_in_other_words_are_answered_with_the_form(release_file: Path, capsys: Any) -> None:
    release = Release.load(release_file)
    mean = Mean("age")
    for call, words in (
        (lambda: release.numbers(statistics=["mean"]), "columns, by, level, details, as_"),
        (lambda: release.numbers("age"), "numbers() takes no argument without a name"),
        (lambda: release.plot("age", by="sex"), 'plot("stay", "ward")'),
        (lambda: analyze(release, mean, where={"sex": "F"}), 'Mean("stay", where={"ward": "b"})'),  # type: ignore[call-arg]
        (lambda: margrave.inference.Median, 'Use Quantile("stay", 0.5).'),
    ):
        with pytest.raises(InputError, match=re.escape(words)):
            call()
    assert run(["analyze", "median", "r.margrave", "age"]) == 2
    assert "margrave analyze quantile RELEASE COLUMN 0.5" in capsys.readouterr().err


def test_a_range_that_cuts_a_bin_is_answered_by_its_share_and_says_so(release_file: Path) -> None:
    release = Release.load(release_file)
    with pytest.warns(
        BinWarning, match=r"age from 11 to 13 cuts a bin.* exact: 10 to 19\."
    ) as found:
        part = release.condition({"age": (11, 13), "sex": "F"})
    assert found[0].filename == __file__
    whole = release.condition({"age": (10, 19), "sex": "F"})
    assert whole.notes == ()
    assert part.total == pytest.approx(0.3 * whole.total)
    assert part.marginal(["age"]).values[1] == pytest.approx(
        0.3 * whole.marginal(["age"]).values[1]
    )
    assert part.marginal(["grade"]).values.sum() == pytest.approx(part.total)
    rows = part.sample(600, as_="pandas", seed=1)
    assert len(rows) == 600
    assert sorted(rows.age.unique()) == [11, 12, 13]
    assert rows.age.value_counts().min() > 120
    assert part.sample(as_="pandas", seed=1).age.between(11, 13).all()
    with pytest.warns(BinWarning), pytest.raises(InputError, match="at least 0"):
        release.sample(-1, where={"age": (11, 13)})
    days = ("2020-03-02", "2020-03-08")
    (cut,) = cuts_of(SCHEMA, {"day": days})
    with pytest.warns(BinWarning):
        two, one = (
            release.condition({"age": (5, 14), "day": days}),
            release.condition({"age": (5, 14)}),
        )
    assert 0.1 < cut.shares[2] < 0.3
    day = release.marginal(["day"]).values
    assert two.total == pytest.approx(one.total * cut.shares[2] * day[2] / day.sum())


def test_an_analysis_names_the_bins_that_its_range_cuts(release_file: Path) -> None:
    release = Release.load(release_file)
    found = analyze(
        release, Proportion("sex", "F", where={"age": (11, 13)}), 4, seed=1, method="bootstrap"
    )
    assert any("age from 11 to 13 cuts a bin" in n and "10 to 19" in n for n in found.notes)
    found = analyze(
        release, Proportion("sex", "F", where={"age": (10, 19)}), 4, seed=1, method="bootstrap"
    )
    assert not any("cuts a bin" in n for n in found.notes)


def test_a_range_between_two_values_is_refused() -> None:
    with pytest.raises(InputError, match="range for column 'age' has no value") as refused:
        codes_of(SCHEMA, "age", (45.5, 45.9))
    assert "The bin has the values 40 to 49." in str(refused.value)
    assert codes_of(SCHEMA, "age", (45.5, 46)) == codes_of(SCHEMA, "age", (45, 45)) == (4,)


def test_values_that_stand_for_their_bin() -> None:
    schema = Schema([Real("cost", 0, 10, edges=[2.5, 5]), Integer("age", 0, 99, bins=10)])
    (cost, age) = cuts_of(schema, {"cost": 3.0, "age": [11, 12]})
    assert str(cost) == "cost = 3.0 stands for the whole of its bin: [2.5, 5)."
    assert age.shares[1] == pytest.approx(0.2)
    assert cut_of(schema, "cost", (0, 5)) is None, "an end at an edge takes nothing of the next bin"
    assert codes_of(schema, "cost", (0, 5)) == (0, 1)


@given(st.integers(0, 40), st.integers(0, 40), st.booleans(), st.booleans(), st.integers(0, 3))
@settings(max_examples=20, deadline=None)
def test_the_share_of_a_range_is_that_of_drawn_values(
    a: int, b: int, whole: bool, leaves: bool, atom: int
) -> None:
    parts = Leaves(np.array([0.0, 3.0, 10.0, 15.0, 41.0]), np.array([2.0, 1.0, 0.0, 0.0]))
    cells = Binning(
        np.array([0.0, 10.0, 41.0]), np.array([4.0 * atom]), whole, leaves=parts if leaves else None
    )
    low, high = min(a, b), max(a, b)
    found, rng = cells.shares(low, high), np.random.default_rng(0)
    for code in range(cells.count):
        drawn = cells.draw(np.full(3_000, code), rng)
        inside = ((drawn >= low) & (drawn <= high)).mean()
        assert found[code] == pytest.approx(inside, abs=0.06)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["age"], "is not a condition"),
        (["=3"], "is not a condition"),
        ([""], "is not a condition"),
        (["age=.."], "is not a range"),
        (["age=1..2..3"], "is not a range"),
        (["age=1..2|4..5"], "is not a range"),
        (["age=1..", "age=..5"], "names column 'age' twice"),
        (["age=100.."], "lies outside its bounds"),
        (["age=__import__('os').system('touch made').."], "is not a value of column 'age'"),
        (["sex=F.."], "has no order"),
        (["age=" + "9" * 5_000 + ".."], ""),
        (["age=" + "|".join(["1"] * (MAX_VALUES + 1))], "at most 1,000 are allowed"),
        (["x" * (MAX_CHARACTERS + 1)], "at most 60,000 are allowed"),
    ],
)
def test_what_is_not_a_condition_is_refused(
    texts: list[str],
    words: str,
    release_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    monkeypatch.chdir(tmp_path)
    options = [part for text in texts for part in ("--where", text)]
    assert run(["sample", str(release_file), "-n", "5", "-o", "o.csv", *options]) == 2
    said = capsys.readouterr().err
    assert words in " ".join(said.split())
    assert len(said) < 1_000
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=80) | st.from_regex(r"age=[-0-9.|a-e]{0,30}", fullmatch=True))
def test_any_text_is_a_condition_or_an_input_error(text: str) -> None:
    try:
        held = conditions([text])
        assert all(
            codes_of(SCHEMA, column, wanted)
            for column, wanted in held.items()
            if column in SCHEMA.domain
        )
    except InputError:
        return


DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4})


@pytest.mark.parametrize(
    "text", ["replace-person:" + "9" * 5_000, "x" * 10**6, "add-remove-person:\u00b2", "eval(1)"]
)
def test_what_is_not_a_unit_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a unit of privacy") as refused:
        parse_unit(text)
    assert len(str(refused.value)) < 500


def test_workloads_of_any_length_are_read_or_refused() -> None:
    start = time.process_time()
    assert parse_workload(";".join(["a,b", "b,c"] * 200), DOMAIN).cliques == (
        ("a", "b"),
        ("b", "c"),
    )
    for text in (
        "around:a:" + "9" * 5_000, "x" * 5_000, "a\0b", "a,b;" * 99 + "__import__('os')", "all-" + "9" * 5_000 + "way",
    ):  # fmt: skip
        with pytest.raises(InputError):
            parse_workload(text, DOMAIN)
    assert time.process_time() - start < 1.0
