"""Estimates by group, and several analyses of data sets that are drawn once."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import margrave
from margrave.errors import InputError
from margrave.inference import (
    OLS,
    By,
    Count,
    Estimand,
    Mean,
    Proportion,
    Quantile,
    Total,
    analyze,
    analyze_several,
)
from margrave.inference.datasets import DataSets
from margrave.inference.names import check_names
from margrave.mechanisms import GaussianMechanism
from margrave.schema import Boolean, Integer, Real, Schema, Timestamp, Weekday
from margrave.workload import Workload
from tests.support.by_hand import release_of as release_by_hand
from tests.support.exact_posterior import SCHEMA, release_of

SHARES = np.random.default_rng(4).dirichlet(np.full(SCHEMA.domain.cells(), 2.0))


def released() -> Any:
    return release_of(SHARES, 600, 3.0, np.random.default_rng(1))


@pytest.mark.parametrize("model", [Mean("x"), Proportion("grade", "low"), Quantile("x", 0.5)])
def test_a_group_is_what_the_model_gives_on_its_records(model: Any) -> None:
    """Of independent groups: the same points, and no covariance between them."""
    found = analyze(released(), By(model, "group"), 12, seed=3)
    assert [n.split(" | ")[1] for n in found.names] == ["group = c", "group = a", "group = b"]
    for level in "cab":
        of = next(e for e in found if e.name.endswith(f"group = {level}"))
        alone = analyze(
            released(),
            lambda frame, g=level: model(frame[frame.group == g]),
            12,
            seed=3,
            columns="probe",
        ).estimates[0]
        assert (of.estimate, of.variance, of.df) == pytest.approx(
            (alone.estimate, alone.variance, alone.df)
        )
    assert found.covariances is not None
    assert found.covariances[0] == pytest.approx(np.diag(np.diag(found.covariances[0])))
    first, second, _ = found
    apart = found.contrast({first.name: 1, second.name: -1})
    assert apart.estimate == pytest.approx(first.estimate - second.estimate)
    assert any("The combining rules" in n for n in found.notes) == isinstance(model, Quantile)


def test_totals_of_groups_add_up_and_share_their_sampling() -> None:
    """The variance of the sum of two groups' totals is that of the total of both."""
    frame = pd.DataFrame({"x": np.arange(400.0) % 5, "g": pd.Categorical(list("abca") * 100)})
    for model in (Total("x"), Count("g", "a"), Count("x", 3.0)):
        by, whole = By(model, "g")(frame), model(frame)
        assert by.estimates.sum() == pytest.approx(whole.estimates[0])
        assert by.covariance is not None
        assert by.covariance.sum() == pytest.approx(whole.variances[0], rel=0.1)


def test_groups_of_truths_numbers_and_the_missing() -> None:
    frame = pd.DataFrame(
        {"x": np.arange(8.0), "t": [True, False] * 4, "k": [1.0, 0.0, np.nan, 1.0] * 2}
    )
    assert By(Mean("x"), "t")(frame).names == ("mean(x) | t = false", "mean(x) | t = true")
    by = By(Mean("x"), "k")(frame)
    assert by.names == ("mean(x) | k = 0", "mean(x) | k = 1")
    assert by.estimates.tolist() == [3.0, 3.5]
    few = frame.assign(t=[True] * 7 + [False])
    assert By(Mean("x"), "t")(few).names == ("mean(x) | t = true",)
    few_basis = By(Mean("x"), "t")(few).basis
    assert few_basis is not None
    assert few_basis.columns == ("x", "t")
    with pytest.raises(ValueError, match="no group"):
        By(Mean("x"), "t")(frame[:1])


@pytest.mark.parametrize("missing", [False, True])
def test_groups_of_truths_have_the_values_of_the_schema(missing: bool) -> None:
    rng = np.random.default_rng(0)
    schema = Schema([Real("x", 0.0, 4.0, bins=4), Boolean("t", missing=missing)])
    rows = pd.DataFrame({"x": rng.uniform(0, 4, 500), "t": rng.random(500) < 0.5})
    of = release_by_hand(rows, schema, [("x", "t")])
    fits: list[Any] = [By(Mean("x"), "t"), Proportion("t", True), OLS("x ~ C(t)")]
    by, share, ols = analyze_several(of, fits, 4, seed=0, method="bootstrap")
    groups = ["t = false", "t = true"]
    assert [n.partition(" | ")[2] for n in by.names] == groups
    assert by.summary().index.tolist() == list(by.names)
    assert share.names == ("t = true",)
    assert ols.names == ("Intercept", "C(t)[T.True]")
    stated = of.numbers(columns=["x"], by="t").to_pylist()
    assert list(dict.fromkeys(n["group"] for n in stated))[:2] == groups
    check_names(schema, By(Mean("x"), "t"), by.names)
    with pytest.raises(
        InputError, match=r"They are: mean\(x\) \| t = false, mean\(x\) \| t = true"
    ):
        check_names(schema, By(Mean("x"), "t"), ["mean(x) | t = yes"])


@pytest.mark.parametrize("model", [Mean("x"), Count("x", 2)])
def test_groups_within_bins_are_marked(model: Any) -> None:
    """In bins of a month, every hour of the day has the same drawn rows."""
    rng = np.random.default_rng(0)
    schema = Schema(
        [
            Integer("x", 0, 9),
            Timestamp("seen", datetime(2020, 1, 1), datetime(2020, 12, 31, 23), bins=12),
            Integer("age", 20, 49, bins=10),
        ]
    )
    seen = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 8784, 2_000), "h")
    x = 2 + 4 * (seen.hour >= 12) + rng.integers(0, 3, 2_000)
    rows = pd.DataFrame({"x": x, "seen": seen, "age": rng.integers(20, 50, 2_000)})
    of = release_by_hand(rows, schema, [("x", "seen"), ("x", "age")])
    for column in ("hour(seen)", "age"):
        (found,) = analyze_several(of, [By(model, column)], 4, seed=0, method="bootstrap")
        name = "seen" if column == "hour(seen)" else column
        assert all(e.coarse == (name,) for e in found if e.has_interval)


def test_groups_of_whole_numbers_are_those_of_the_schema() -> None:
    """A value that no row of a data set has counts as 0 there, as a category does."""
    rng = np.random.default_rng(0)
    schema = Schema([Integer("k", 0, 5), Integer("x", 0, 3)])
    k = rng.choice([1, 2, 5], 800, p=[0.5, 0.495, 0.005])
    rows = pd.DataFrame({"k": k, "x": rng.integers(0, 4, 800)})
    of = release_by_hand(rows, schema, [("k", "x")])
    fits: list[Any] = [By(Count("x", 1), "k"), By(Total("x"), "k"), By(Mean("x"), "k")]
    count, total, mean = analyze_several(of, fits, 20, seed=0, method="bootstrap")
    assert [n.partition(" = ")[2].rpartition(" ")[2] for n in count.names] == list("012345")
    assert all(e.used == 20 for e in (*count, *total))
    assert mean["mean(x) | k = 1"].used == 20


def test_what_makes_no_groups_is_refused_before_anything_is_drawn() -> None:
    schema = Schema(
        [
            Real("x", 0.0, 4.0, bins=4),
            Integer("age", 0, 99, bins=5),
            Integer("k", 0, 3),
            Boolean("t"),
        ]
    )
    empty = pd.DataFrame({c: pd.Series([], dtype=float) for c in ("x", "age", "k", "t")})
    for column in ("k", "t"):
        By(Mean("x"), column).check(empty, schema)
    for model, words in [
        (By(Mean("x"), "x"), "'x' holds no categories"),
        (By(Mean("x"), "age"), "'age' has 100 values, which makes no groups.*at most 50"),
        (By(Mean("x"), "z"), "no column 'z'"),
        (By(Mean("z"), "t"), "no column 'z'"),
    ]:
        with pytest.raises(InputError, match=words):
            model.check(empty, schema)
    with pytest.raises(InputError, match="no categories"):
        By(Mean("x"), "x")(pd.DataFrame({"x": [0.5, 1.5]}))
    whole = By(Mean("x"), "k")(pd.DataFrame({"x": [0.5, 1.5], "k": [1, 1]})).basis
    assert whole is not None
    assert whole.by_value == ("x", "k")


def test_several_analyses_draw_once_and_give_what_each_gives_alone() -> None:
    release, drawn = released(), []

    def changing(frame: pd.DataFrame) -> Any:
        frame["x"] = 0.0
        return {"n": (frame.group.notna().mean(), 0.25 / len(frame))}

    class Counting:
        schema = SCHEMA

        def draws(self, *given: Any, **options: Any) -> DataSets:
            drawn.append(given)
            return release.draws(*given, **options)  # type: ignore[no-any-return]

    fits = [changing, Mean("x"), By(Mean("x"), "grade"), OLS("x ~ grade")]
    several = analyze_several(Counting(), fits, 10, seed=2, level=0.9, columns=("group",))
    assert len(drawn) == 1
    for fit, found in zip(fits, several, strict=True):
        columns = None if isinstance(fit, Estimand) else ("group",)
        alone = analyze(release, fit, 10, seed=2, level=0.9, columns=columns)
        assert found.to_dict() == alone.to_dict()
    for fits_given, words in [
        ([], "not a list of analyses"),
        (Mean("x"), "not a list of analyses"),
        ([Mean("x"), 3], "3 is not an analysis"),
    ]:
        with pytest.raises(InputError, match=words):
            analyze_several(release, fits_given, 10)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no column 'w'"):
        analyze_several(Counting(), [Mean("x"), Mean("w")], 10)
    assert len(drawn) == 1


def visits() -> Any:
    """Draws of costs with the weekday of a visit, whose own marginals hold neither."""
    low, high = datetime(2024, 1, 1), datetime(2024, 1, 28)
    schema = Schema(
        [
            Timestamp("visit", low, high, unit="hour", bins=4),
            Weekday("visit.weekday", "visit"),
            Integer("cost", 0, 9, bins=10),
        ]
    )
    rng = np.random.default_rng(2)
    day = rng.integers(0, 27, 600)
    visit = np.datetime64(low, "s") + day * 86400 + rng.integers(0, 24, 600) * 3600
    table = pa.table({"visit": visit, "cost": np.clip(day % 7 + rng.integers(0, 3, 600), 0, 9)})
    release = margrave.synthesize(
        table, schema=schema, epsilon=20, delta=1e-9, mechanism=GaussianMechanism(
            workload=Workload.of(schema.domain, [("visit.weekday", "cost"), ("visit",)])
        ),
    )  # fmt: skip
    return release.refit("graphical").draws(6, method="bootstrap", seed=1)


def test_an_analysis_by_weekday_rests_on_the_part_and_not_on_its_column() -> None:
    draws = visits()
    found = analyze(draws, By(Mean("cost"), "weekday(visit)"))
    assert found.names[0] == "mean(cost) | weekday(visit) = Monday"
    assert len(found.names) == 7
    assert not any(e.unmeasured for e in found)
    slope = analyze(draws, OLS("cost ~ C(weekday(visit))"))
    assert not any(e.unmeasured for e in slope)
    assert not any("visit" in e.binned for e in slope)
    for fit in (OLS("cost ~ visit"), OLS("cost ~ hour(visit)"), By(Mean("cost"), "hour(visit)")):
        apart = analyze(draws, fit)
        assert any(("cost", "visit") in e.unmeasured for e in apart), fit
        assert any("visit" in e.binned for e in apart), fit

    def by_hand(frame: pd.DataFrame) -> Any:
        late = frame[frame.visit.dt.weekday > 4]
        return late.cost.mean(), late.cost.var() / len(late)

    assert not analyze(draws, by_hand, columns=("cost", "visit.weekday"))["estimate"].unmeasured
    with pytest.raises(InputError, match="'cost' has no weekday"):
        analyze(draws, By(Mean("cost"), "weekday(cost)"))
    with pytest.raises(InputError, match="There is no column"):
        analyze(draws, By(Mean("cost"), "weekday(vist)"))
