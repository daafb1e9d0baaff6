"""Names of other libraries, wrong types and frames that are no table are answered with the form that works."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import margrave
from margrave import Budget, Ledger, Schema, draft_schema, synthesize
from margrave.errors import DataError, InputError, RefitWarning
from margrave.inference import OLS, By, Mean, Proportion, analyze
from margrave.models import LeastSquaresFit, MultiplicativeWeightsFit
from margrave.purposes import Purpose
from margrave.release import Release
from margrave.schema import Categorical, Integer

SCHEMA = Schema(
    [Integer("age", 0, 9), Integer("hours-per-week", 1, 5), Categorical("pay", ["<=50K", ">50K"])]
)


@pytest.fixture(scope="module")
def release() -> Release:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({
        "age": rng.integers(0, 10, 400), "hours-per-week": rng.integers(1, 6, 400),
        "pay": rng.choice(["<=50K", ">50K"], 400),
    })  # fmt: skip
    purposes = ["ols age ~ `hours-per-week` + C(pay)"]
    made: Release = synthesize(
        rows, SCHEMA, epsilon=50.0, delta=1e-6, purposes=purposes, seed=0, progress=False
    )
    return made


ATTRIBUTES: list[tuple[Callable[[Any], object], str]] = [
    (lambda r: Schema.from_dataframe, "margrave.draft_schema(frame)"),
    (lambda r: r.schema.to_dict, "schema.to_toml()"),
    (lambda r: r.schema.frm_toml, "Did you mean 'from_toml'?"),
    (lambda r: margrave.list_mechanisms, "margrave.mechanisms.MECHANISMS"),  # type: ignore[attr-defined]
    (lambda r: margrave.draftschema, "Did you mean 'draft_schema'?"),  # type: ignore[attr-defined]
    (lambda r: r.summary, "release.report()"),
    (lambda r: r.evaluate, "release.compare(real)"),
]

CALLS: list[tuple[Callable[[Any], object], str]] = [
    (lambda r: r.sample(5, random_state=1), "Did you mean 'seed'?"),
    (lambda r: r.sample(num_rows=5), "Did you mean 'n'?"),
    (lambda r: r.sample(conditions={}), "Did you mean 'where'?"),
    (lambda r: r.refit(model="particles"), "Did you mean 'fit'?"),
    (lambda r: r.refit("gem"), "Did you mean 'generator'?"),
    (lambda r: margrave.inference.Logit, "Use Logistic("),
    (lambda r: Budget(epsilon=1.0, delta=1e-9), "Budget.approx(epsilon, delta)"),
    (lambda r: Budget.approx("1.0", 1e-9), "epsilon is the text '1.0', not a number."),  # type: ignore[arg-type]
    (
        lambda r: Ledger("x").init("a", unit="add-remove-row", cap=2.0),
        "cap is 2.0, which is not a budget.",
    ),  # type: ignore[arg-type]
    (lambda r: By(OLS("age ~ pay"), "pay"), "and OLS is not one"),  # type: ignore[arg-type]
    (lambda r: analyze(r, Proportion("pay", ">50kk")), "Did you mean '>50K'?"),
    (lambda r: analyze(r, Mean("age", where={"age": slice(3, 4)})), "{'age': (3, 4)}"),  # type: ignore[dict-item]
    (lambda r: analyze(r, OLS("age ~ hours-per-week")), "Write `hours-per-week` in backticks."),
    (
        lambda r: Purpose.of("ols hours-per-week ~ age", SCHEMA.domain),
        "Write `hours-per-week` in backticks.",
    ),
    (lambda r: analyze(r, "share pay"), "does not name one analysis"),
]


@pytest.mark.parametrize(("name", "words"), ATTRIBUTES, ids=range(len(ATTRIBUTES)))
def test_names_that_do_not_exist(release: Release, name: Any, words: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(words)):
        name(release)


@pytest.mark.parametrize(("call", "words"), CALLS, ids=range(len(CALLS)))
def test_calls_in_the_words_of_others(release: Release, call: Any, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        call(release)


def test_a_schema_is_a_mapping_of_its_columns() -> None:
    assert SCHEMA["age"] is SCHEMA.column("age")
    assert list(SCHEMA) == list(SCHEMA.domain)
    assert "age" in SCHEMA
    assert copy.deepcopy(SCHEMA) == SCHEMA


def test_budgets_take_numbers_of_numpy() -> None:
    made = Budget.approx(np.float32(1.0), np.float64(1e-9))  # type: ignore[arg-type]
    assert made == Budget.approx(1.0, 1e-9) == copy.deepcopy(made)
    assert Budget.zcdp(np.float32(0.5)) == Budget.zcdp(0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([0, 1], "df.columns.map(str)"),
        (pd.MultiIndex.from_tuples([("a", "x"), ("b", "y")]), "a MultiIndex"),
    ],
)
def test_names_of_columns_that_are_not_text(names: Any, words: str) -> None:
    frame = pd.DataFrame({"a": range(40), "b": ["x", "y"] * 20})
    frame.columns = names
    with pytest.raises(DataError, match=re.escape(words)):
        draft_schema(frame)


def test_what_is_printed_is_short(release: Release) -> None:
    assert str(release.certificate()).splitlines()[1].split() == [
        "protected",
        "add",
        "or",
        "remove",
        "one",
        "row",
    ]
    assert str(release.bounds([("age", "pay")])).splitlines()[2].startswith("age, pay  ")
    assert repr(Ledger(Path("a") / "b")) == f"Ledger({str(Path('a') / 'b')!r})"


def test_a_purpose_is_an_analysis(release: Release) -> None:
    found = analyze(release, "mean age by pay", 3, seed=1, method="bootstrap")
    assert found.names == ("mean(age) | pay = <=50K", "mean(age) | pay = >50K")
    contrast = found.contrast(dict(zip(found.names, (1, -1), strict=True)))
    assert re.fullmatch(r"Estimate\(.*, 95 % interval .* to .*, p = .*\)", repr(contrast))


def test_a_refit_says_what_it_leaves_out(release: Release) -> None:
    assert not all(m.query.is_partition for m in release.transcript.measurements)
    with pytest.warns(
        RefitWarning, match="does not use weighted sums, which serve the means.* of the purposes: "
    ):
        again = release.refit(MultiplicativeWeightsFit(), seed=0)
    assert again.transcript is release.transcript
    assert again.sample(20, seed=0).shape[0] == 20
    with pytest.warns(RefitWarning, match="has no distribution"):
        release.refit(LeastSquaresFit())
