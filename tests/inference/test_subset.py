"""Ready models of a part of the records."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from margrave.cli.main import run
from margrave.errors import InputError
from margrave.inference import (
    OLS,
    By,
    Correlation,
    Count,
    Logistic,
    Mean,
    Proportion,
    Quantile,
    Total,
    analyze,
)
from margrave.inference.datasets import ROWS, TOTAL
from margrave.inference.subset import in_words
from margrave.release import Release
from margrave.release.draws import Draws
from margrave.schema import (
    Boolean,
    Categorical,
    ColumnSource,
    Integer,
    Ordinal,
    Real,
    Schema,
    Timestamp,
)
from tests.support.by_hand import release_of
from tests.support.whole_draws import WholeDraws

SCHEMA = Schema(
    [
        Categorical("ward", ["a", "b", "c"]),
        Ordinal("grade", ["low", "mid", "high"]),
        Boolean("ill"),
        Integer("age", 0, 5, bins=3, missing=True),
    ]
)


@pytest.fixture(scope="module")
def release() -> Release:
    rng, n = np.random.default_rng(0), 3_000
    columns: dict[str, Any] = {
        "ward": rng.choice(["a", "b", "c"], n),
        "grade": rng.choice(["low", "mid", "high"], n),
    }
    age = pd.Series(rng.integers(0, 6, n)).where(rng.random(n) < 0.9)
    frame = pd.DataFrame({**columns, "ill": rng.random(n) < 0.2 + 0.1 * age.fillna(0), "age": age})
    return release_of(frame, SCHEMA, [SCHEMA.domain.attributes])


@pytest.fixture(scope="module")
def draws(release: Release) -> Draws:
    return WholeDraws.of(release.draws(4, seed=1, method="bootstrap"))


WHERE: list[tuple[dict[str, Any], Any]] = [
    ({"ward": "b"}, lambda f: f[f.ward == "b"]),
    ({"ward": ["a", "c"], "ill": "yes"}, lambda f: f[(f.ward != "b") & f.ill.astype(bool)]),
    ({"grade": ("low", "mid")}, lambda f: f[f.grade.isin(["low", "mid"])]),
    ({"age": (2, "3")}, lambda f: f[f.age.between(2, 3)]),
    ({"age": None}, lambda f: f[f.age.isna()]),
    ({"age": [0, None]}, lambda f: f[f.age.isna() | (f.age == 0)]),
]


@pytest.mark.parametrize(("where", "chosen"), WHERE)
def test_it_is_the_analysis_of_those_records(
    draws: Draws, where: dict[str, Any], chosen: Any
) -> None:
    fit, plain = Proportion("ill", True, where=where), Proportion("ill", True)
    found, other = (
        analyze(draws, f, columns=c, bias_correct=False)
        for f, c in ((fit, None), (lambda frame: plain(chosen(frame)), "probe"))
    )
    assert found.points == pytest.approx(other.points)
    assert f"Only records with {in_words(where)} are analyzed." in found.notes


def test_every_ready_model_takes_a_part(draws: Draws) -> None:
    where = {"ward": ["a", "b"]}
    fits = [Mean("age", where=where), Quantile("age", 0.5, where=where), Proportion("ill", True, where=where),
            OLS("age ~ ill", where=where), Logistic("ill ~ age", where=where)]  # fmt: skip
    for fit in fits:
        assert analyze(draws, fit, bias_correct=False).points == pytest.approx(
            analyze(
                draws,
                lambda f, fit=fit: type(fit)(**{**vars(fit), "where": None})(f[f.ward != "c"]),
                columns="probe",
            ).points
        )


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ({"word": "b"}, "There is no column 'word'"),
        ({"ward": "d"}, "Column 'ward' has no value 'd'"),
        ({"ward": ("a", "b")}, "Column 'ward' has no order"),
        ({"age": (1, 2, 3)}, "does not have two ends"),
        ({"age": 77}, "77 of column 'age' is above the upper bound"),
        ({"ward": []}, "No value is given"),
        ({"ward": None}, "ward"),
        ("ward == 'b'", "where is \"ward == 'b'\""),
    ],
)
def test_a_part_that_cannot_be_is_refused_first(draws: Draws, where: Any, why: str) -> None:
    with pytest.raises(InputError, match=why.replace("(", r"\(")):
        analyze(draws, Mean("age", where=where))


@pytest.fixture(scope="module")
def labelled(release: Release) -> Release:
    labels = {
        "ward": {"a": "Heart", "b": "Lung", "c": "Lung"},
        "grade": {"low": "mid", "mid": "Middle"},
        "ill": {"true": "yes", "false": "well"},
    }
    sources = {name: ColumnSource(labels=own) for name, own in labels.items()}
    return replace(release, schema=replace(SCHEMA, sources=sources))


@pytest.mark.parametrize(
    ("where", "remedy"),
    [
        ({"ward": "heart"}, "'heart' is the label of a: write a in its place."),
        ({"ward": ["b", "Lung"]}, "'Lung' is the label of b and c: write b or c in its place."),
        ({"grade": ("low", "Middle")}, "'Middle' is the label of mid: write mid in its place."),
        ({"ill": "well"}, "'well' is the label of false: write false in its place."),
        ({"ward": "x"}, "It has a, b, c."),
    ],
)
def test_the_label_of_a_value_is_named_as_such(labelled: Release, where: Any, remedy: str) -> None:
    with pytest.raises(InputError) as caught:
        analyze(labelled, Mean("age", where=where), 2)
    assert str(caught.value).endswith(remedy)


def test_the_label_of_a_value_has_no_share(labelled: Release) -> None:
    logistic = Logistic("ward ~ age", success="Heart")
    for fit in (Proportion("ward", "Heart"), Count("ward", "Heart"), logistic):
        with pytest.raises(InputError, match="'Heart' is the label of a: write a in its place"):
            analyze(labelled, fit, 2)


def test_a_value_that_is_also_a_label_is_the_value(labelled: Release) -> None:
    both = {"grade": "mid", "ill": "yes"}
    found = analyze(labelled, Mean("age", where=both), 2, seed=1, method="bootstrap")
    assert any(
        "grade = mid, ill = yes" in n or "grade = mid and ill = yes" in n for n in found.notes
    )


@pytest.mark.parametrize(
    ("fit", "codes"),
    [
        (By(Mean("age"), "ward"), "ward a = Heart, b = Lung, c = Lung"),
        (OLS("age ~ C(ward)"), "ward a = Heart, b = Lung, c = Lung"),
        (OLS("age ~ 1", where={"ward": "a", "ill": True}), "ward a = Heart; ill true = yes"),
        (Proportion("grade", "mid"), "grade mid = Middle"),
        (Logistic("ill ~ age"), "ill true = yes, false = well"),
    ],
    ids=str,
)
def test_codes_have_their_labels_in_a_note(labelled: Release, fit: Any, codes: str) -> None:
    found = analyze(labelled, fit, 2, seed=1, method="bootstrap")
    assert str(found).count(f"Note: Codes: {codes}.") == 1
    assert not any("Heart" in name for name in found.names)


@pytest.mark.parametrize("fit", [Mean("age"), By(Mean("age"), "grade")], ids=str)
def test_estimates_without_codes_with_labels_have_no_such_note(labelled: Release, fit: Any) -> None:
    schema = replace(SCHEMA, sources={"ward": ColumnSource(labels={"a": "Heart"})})
    found = analyze(replace(labelled, schema=schema), fit, 2, seed=1, method="bootstrap")
    assert not any(note.startswith("Codes: ") for note in found.notes)


def test_at_most_ten_codes_of_a_column_are_listed() -> None:
    wards = [str(i) for i in range(13)]
    sources = {"ward": ColumnSource(labels={w: f"Ward {w} {'x' * 99}" for w in wards})}
    schema = Schema([Categorical("ward", wards), Integer("age", 0, 5)], sources=sources)
    frame = pd.DataFrame({"ward": wards * 40, "age": np.arange(520) % 6})
    found = analyze(
        release_of(frame, schema, [("ward", "age")]), By(Mean("age"), "ward"), 2, seed=1, method="bootstrap"
    )  # fmt: skip
    (note,) = (n for n in found.notes if n.startswith("Codes: "))
    assert note.endswith("9 = Ward 9 ... and 3 more.")


@pytest.mark.parametrize(
    "fit",
    [
        Mean("patient"),
        Mean("age", where={"patient": "1"}),
        By(Mean("age"), "patient"),
        OLS("age ~ C(patient)"),
        "mean age by patient",
    ],
    ids=str,
)
def test_the_person_id_column_is_named_as_such(draws: Draws, fit: Any) -> None:
    known = replace(draws, schema=replace(draws.schema, person="patient"))
    with pytest.raises(InputError, match=r"'patient'.*the person ID column"):
        analyze(known, fit)


def test_a_single_value_of_real_numbers_or_times_is_refused() -> None:
    """Hardly any drawn record has it. A value with a bin of its own, and a range, are taken."""
    ends = (datetime(2020, 1, 1), datetime(2020, 12, 31))
    schema = Schema([Real("pay", 0.0, 100.0, edges=[0.0, 50.0, 100.0]), Timestamp("seen", *ends)])
    empty = pd.DataFrame(
        {"pay": pd.Series([], dtype=float), "seen": pd.Series([], dtype="datetime64[us]")}
    )
    for fit, why in [
        (Mean("pay", where={"seen": datetime(2020, 5, 1)}), r"--where seen=LOW\.\.HIGH"),
        (Total("pay", where={"pay": 30}), r"pay = 30 asks for a single value.*where=\{'pay': \(low, high\)\}"),
        (Count("pay", 30), r'Use a condition: in OLS\("pay > 3 ~ 1"\)'),
    ]:  # fmt: skip
        with pytest.raises(InputError, match=why):
            fit.check(empty, schema)
    Mean("pay", where={"pay": (30, 40), "seen": ("2020-05-01", None)}).check(empty, schema)


def test_an_empty_part_is_an_error_of_that_data_set() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0], "g": [0, 0]})
    with pytest.raises(ValueError, match="no record has g = 1"):
        Mean("x", where={"g": 1})(frame)


def test_half_a_bin_has_a_note(draws: Draws) -> None:
    (note,) = (
        n for n in analyze(draws, Mean("ill", where={"age": (0, 2)})).notes if "nothing finer" in n
    )
    assert note.startswith("age (")
    assert not any(
        "nothing finer" in n for n in analyze(draws, Mean("ill", where={"age": (0, 3)})).notes
    )


def test_a_range_beyond_the_bounds_has_a_note(draws: Draws) -> None:
    words = "age from 4 to 130 goes beyond the upper bound: no value of the release lies above 5."
    assert words in analyze(draws, Mean("ill", where={"age": (4, 130)})).notes
    for inside in ((4, 5), (4, None)):
        notes = analyze(draws, Mean("ill", where={"age": inside})).notes
        assert not any("beyond the" in n for n in notes)


def test_on_the_command_line(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    release.save("r.margrave")
    words = [
        "analyze",
        "proportion",
        "r.margrave",
        "ill",
        "yes",
        "--m",
        "4",
        "--method",
        "bootstrap",
        "--seed",
        "1",
    ]
    assert run([*words, "--where", "ward=a|b", "--where", "age=2..5", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    fit = Proportion("ill", "yes", where={"ward": ["a", "b"], "age": (2, 5)})
    expected = analyze(release, fit, 4, seed=1, method="bootstrap")
    assert told["estimates"][0]["estimate"] == pytest.approx(expected.estimates[0].estimate)
    assert run([*words, "--where", "word=b"]) != 0
    assert "There is no column 'word'" in capsys.readouterr().err


def test_totals_of_a_part_count_the_others_as_nothing() -> None:
    """N is that of all records; of 4 rows for 40 records, the two of ward a stand for 20."""
    frame = pd.DataFrame(
        {"ward": pd.Categorical(["a", "a", "b", "c"]), "age": [1.0, 3.0, 8.0, 9.0]}
    )
    for total in (4.0, 40.0):
        frame.attrs = {} if total == 4.0 else {TOTAL: total, ROWS: 4}
        assert Total("age", where={"ward": "a"})(frame).estimates.tolist() == [total]
        assert Count("ward", "b", where={"age": (0, 8)})(frame).estimates.tolist() == [total / 4]
        assert Count("ward", "a", where={"ward": "b"})(frame).estimates.tolist() == [0.0]
        by = By(Total("age", where={"age": (0, 8)}), "ward")(frame)
        assert (
            dict(zip(by.names, by.estimates, strict=True))["total(age) | ward = b"] == 2.0 * total
        )
    basis = Total("age", where={"ward": "a"})(frame).basis
    assert basis is not None
    assert basis.columns == ("age", "ward")
    other = frame.assign(bill=[2.0, 5.0, 1.0, 7.0])
    whole = Correlation("age", "bill")(other[other.ward != "c"]).estimates
    assert (
        Correlation("age", "bill", where={"ward": ["a", "b"]})(other).estimates.tolist()
        == whole.tolist()
    )
