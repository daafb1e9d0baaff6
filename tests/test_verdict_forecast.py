"""Forecasts of the verdicts of a release, against the verdicts that releases give."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import margrave
from margrave.accounting import Budget
from margrave.cli.main import run
from margrave.inference import By, Mean, analyze
from margrave.mechanisms import AIM
from margrave.planning import plan_of
from margrave.release.numbers import headlines, numbers_of
from margrave.schema import Categorical, Integer, Learn, Schema
from margrave.schema.remedies import bins_remedy
from margrave.verdict_forecast import VerdictForecast

SCHEMA = Schema(
    [
        Integer("stay", 0, 60),
        Integer("age", 0, 99),
        Categorical("ward", list("abcdef")),
        Categorical("sex", ["F", "M"]),
    ]
)
GIVEN = {"delta": 1e-6, "unit": "add-remove-row"}


def visits(rows: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({
        "stay": np.minimum(rng.poisson(3, rows), 60), "age": np.clip(rng.normal(50, 12, rows), 0, 99).astype(int),
        "ward": rng.choice(list("abcdef"), rows), "sex": rng.choice(["F", "M"], rows),
    })  # fmt: skip


def reliable(release: margrave.Release) -> set[str]:
    numbers = numbers_of(release.schema, release.transcript, release.model, 0.95)
    return {n.column for n in headlines(numbers) if n.reliable}


@pytest.mark.parametrize(("epsilon", "rows"), [(0.05, 2_000), (0.3, 3_000), (3.0, 60_000)])
def test_a_forecast_is_what_a_release_says(epsilon: float, rows: int) -> None:
    given = {"epsilon": epsilon, "mechanism": "independent", **GIVEN}
    forecast = margrave.plan(SCHEMA, rows=rows, **given).verdicts
    assert forecast is not None
    found = reliable(margrave.synthesize(visits(rows), SCHEMA, seed=2, **given))
    assert abs(len(found) - len(forecast.likely)) <= 1
    assert len({*forecast.likely} ^ found) <= 1


@pytest.mark.parametrize(("epsilon", "learns"), [(0.5, False), (1.0, True)])
def test_a_forecast_counts_rounds_that_select_marginals(epsilon: float, learns: bool) -> None:
    """Rounds have most of the budget, so their marginals decide the verdict of each column."""
    rows, codes = 4_000, {"ward": "abcdef", "sex": "FM", "town": "uvwx", "plan": "pqr"}
    given = {"epsilon": epsilon, **GIVEN}
    schema = Schema([
        Learn(name, "categorical") if learns else Categorical(name, list(values))
        for name, values in codes.items()
    ])  # fmt: skip
    forecast = margrave.plan(schema, rows=rows, **given).verdicts
    assert forecast is not None
    rng = np.random.default_rng(1)
    falling = {name: np.arange(len(values), 0, -1.0) for name, values in codes.items()}
    table = pa.table({
        name: rng.choice(list(values), rows, p=falling[name] / falling[name].sum())
        for name, values in codes.items()
    })  # fmt: skip
    found = reliable(margrave.synthesize(table, schema, seed=3, **given))
    assert len(found) >= 3
    assert len({*forecast.likely} ^ found) <= 1


@pytest.mark.parametrize(
    ("mechanism", "epsilon"),
    [("independent", 0.3), ("independent", 0.45), ("independent", 0.6), ("aim", 1.0)],
)
def test_similar_columns_near_the_bar_are_forecast_as_a_range(
    mechanism: str, epsilon: float
) -> None:
    """In a release they are not all reliable at the same epsilon: values differ, and so do the rounds they are in."""
    rows, names, rng = 3_000, [f"c{i:02}" for i in range(25)], np.random.default_rng(1)
    schema = Schema([Categorical(name, list("abcd")) for name in names])
    given = {"epsilon": epsilon, "mechanism": mechanism, **GIVEN}
    forecast = margrave.plan(schema, rows=rows, **given).verdicts
    assert forecast is not None
    low, high = forecast.expected
    assert high - low >= 4
    assert forecast.share == f"{low} to {high} of 25"
    assert f"{low} to {high} of 25 columns are likely to be reliable" in forecast.words
    table = pa.table({
        name: rng.choice(list("abcd"), rows, p=rng.dirichlet([2] * 4)) for name in names
    })  # fmt: skip
    found = reliable(margrave.synthesize(table, schema, seed=3, **given))
    assert low - 3 <= len(found) <= high + 3


TO_LEARN = Schema([
    Learn("cost", "real"),
    *(Learn(name, "categorical") for name in ("ward", "town", "sex")),
    Integer("age", 0, 99),
])  # fmt: skip


@pytest.mark.parametrize("schema", [SCHEMA, TO_LEARN], ids=["declared", "to learn"])
def test_what_most_columns_need_is_what_a_plan_then_forecasts(schema: Schema) -> None:
    """More rows and a larger budget learn more categories and bins, so the forecast is made again there."""

    def forecast(epsilon: float, rows: int) -> VerdictForecast:
        planned = margrave.plan(schema, epsilon=epsilon, rows=rows, **GIVEN).verdicts
        assert planned is not None
        return planned

    def is_most(planned: VerdictForecast) -> bool:
        assert ("most are" in planned.words) != (2 * planned.expected[0] > len(schema.columns))
        return "most are" not in planned.words

    few = forecast(0.3, 3_000)
    epsilon, rows = few.epsilon_for_most, few.rows_for_most
    assert epsilon is not None
    assert rows is not None
    assert f"From about epsilon {epsilon:g} or {rows:,} rows on most are." in few.words
    assert is_most(forecast(epsilon, 3_000))
    assert is_most(forecast(0.3, rows))
    assert not is_most(forecast(0.9 * epsilon, 3_000))
    assert not is_most(forecast(0.3, int(0.9 * rows)))
    between = forecast(math.sqrt(0.3 * epsilon), 3_000)
    assert between.epsilon_for_most == epsilon


@pytest.mark.parametrize(
    ("schema", "epsilon", "rows", "found"),
    [
        (SCHEMA, 1.0, 50, "Neither epsilon 20 nor 100 times the rows is enough for most."),
        (SCHEMA, 20.0, 1, "Not even 100 times the rows is enough for most."),
        (TO_LEARN, 1.0, 100, "From about 4,400 rows on most are. Epsilon 20 is not enough."),
    ],
)
def test_a_forecast_says_if_no_epsilon_or_number_of_rows_is_enough(
    schema: Schema, epsilon: float, rows: int, found: str
) -> None:
    planned = margrave.plan(schema, epsilon=epsilon, rows=rows, **GIVEN).verdicts
    assert planned is not None
    assert planned.words.partition("reliable. ")[2] == found


def test_a_budget_of_no_epsilon_has_a_forecast() -> None:
    """A tiny rho implies an epsilon of 0. A delta for thresholds is not used without categories to learn."""
    budget = Budget.zcdp(Fraction(1, 10**12), 1e-5, threshold_delta=1e-6)
    assert budget.epsilon == 0
    planned = plan_of(
        SCHEMA.domain, AIM(), budget=budget, unit="add-remove-row", rows=300_000, schema=SCHEMA
    ).verdicts
    assert planned is not None
    assert planned.epsilon_for_most is not None


def test_columns_to_learn_need_more_rows_if_an_end_is_open() -> None:
    def rows_for(column: Learn) -> int:
        planned = margrave.plan(Schema([column]), epsilon=1.0, rows=300, **GIVEN).verdicts
        assert planned is not None
        assert planned.rows_for_most is not None
        return planned.rows_for_most

    closed, open_ended = Learn("cost", "real", low=0, high=9), Learn("cost", "real", low=0)
    assert rows_for(open_ended) > 2 * rows_for(closed)
    assert rows_for(Learn("town", "categorical")) > 100


def test_bins_that_are_too_wide_are_never_forecast_as_reliable() -> None:
    wide = Schema([Integer("cost", 0, 999_999, bins=4), Categorical("ward", ["A", "B"])])
    planned = margrave.plan(wide, epsilon=10.0, rows=10**9, **GIVEN).verdicts
    assert planned is not None
    assert (planned.likely, planned.never) == (("ward",), ("cost",))
    assert (planned.rows_for_most, planned.epsilon_for_most) == (None, None)
    assert planned.words.endswith(
        f" cost: no budget is likely to make its mean reliable with these bins. In the schema, {bins_remedy()}"
    )


def test_a_plan_gives_the_remedy_on_bins_once() -> None:
    wide = Schema([Integer("cost", 0, 999_999, bins=4), Categorical("ward", ["A", "B"])])
    planned = margrave.plan(wide, epsilon=10.0, rows=10**9, **GIVEN)
    assert str(planned).count(bins_remedy()) == 1
    assert planned.verdicts is not None
    assert "no budget" in planned.verdicts.words_beside(())
    assert "no budget" not in planned.verdicts.words_beside(planned.wide_bins)


def test_a_mechanism_without_measurements_has_no_forecast() -> None:
    planned = margrave.plan(SCHEMA, epsilon=1.0, rows=1000, mechanism="dual-query", **GIVEN)
    assert planned.verdicts is None


def test_the_command_line_begins_with_the_forecast_and_compares_epsilons_by_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    SCHEMA.save(tmp_path / "s.toml")
    words = ["plan", "-s", str(tmp_path / "s.toml"), "--epsilon", "0.1", "--rows", "3000"]
    words += ["--delta", "1e-6", "--unit", "add-remove-row", "--advise"]
    assert run(words) == 0
    shown = capsys.readouterr().out
    assert " ".join(shown.split()).startswith(
        "At epsilon 0.1 and about 3,000 rows: none of 4 columns is likely to be reliable. From about"
    )
    table = shown[shown.index("Epsilons") :].splitlines()
    assert table[1].split()[:3] == ["epsilon", "likely", "reliable"]
    likely = [line.split()[1:4] for line in table[2:7]]
    assert likely[0] == ["0", "of", "4"]
    assert len({n for n, *_ in likely}) > 2
    assert run([*words, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["verdicts"]["likely"] == []
    counts = [e["likely_reliable"] for e in made["advice"]["epsilons"]]
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]


def test_a_planned_mean_is_stated_in_the_unit_of_its_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A standard deviation that the plan cannot know means nothing to a reader."""
    SCHEMA.save(tmp_path / "s.toml")
    words = ["plan", "-s", str(tmp_path / "s.toml"), "--epsilon", "1", "--rows", "3000"]
    words += ["--delta", "1e-6", "--unit", "add-remove-row", "--for", "mean stay by ward"]
    assert run(words) == 0
    shown = " ".join(capsys.readouterr().out.split())
    line = shown[shown.index("mean stay by ward: about") :].partition(". ")[0]
    assert "in the unit of stay" in line
    assert (
        "if values are spread evenly from 0 to 60, up to twice that if the mean is near an end"
        in line
    )
    assert "standard deviations" not in line
    learned = Schema([Learn("stay", "integer", low=0), Categorical("ward", ["a", "b"])])
    (width,) = margrave.plan(
        learned, epsilon=1.0, rows=3000, purposes=["mean stay by ward"], **GIVEN
    ).purposes
    assert width.of == "standard deviations of stay"
    assert "stay is learned, so its unit is not known here" in width.words


@pytest.mark.slow
def test_a_planned_mean_holds_for_a_skewed_column() -> None:
    """Few values of a wide range occur. The plan does not know that, and noise is in all of them."""
    rows, given = 3000, {"epsilon": 0.5, "purposes": ["mean stay by ward"], **GIVEN}
    (planned,) = margrave.plan(SCHEMA, rows=rows, **given).purposes
    widths = []
    for seed in range(5):
        release = margrave.synthesize(visits(rows, seed), SCHEMA, seed=seed, **given)
        found = analyze(release, By(Mean("stay"), "ward"), m=25, seed=1)
        ends = [found[name].conf_int() for name in found.names]
        widths.append(float(np.nanmedian([(high - low) / 2 for low, high in ends])))
    typical = float(np.median(widths))
    assert typical / 2 < planned.half_width < 2 * typical
