"""Analyses of several data sets: what a fit may return, what is set aside, what is told, and how often it is right."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf
from scipy import stats

import margrave
from margrave.errors import InputError
from margrave.inference import (
    OLS,
    Analysis,
    Fitted,
    Logistic,
    Mean,
    Proportion,
    Quantile,
    analyze,
    analyze_posterior,
    combine,
)
from margrave.inference.datasets import EXTERNAL, Frames
from margrave.inference.fitted import estimable, read_fit
from margrave.inference.names import no_estimate
from margrave.marginal import IDENTITY
from margrave.release import Draws
from margrave.release.conditional import Conditional
from margrave.schema import Boolean, Integer, Schema
from tests.release.test_draws import by_hand
from tests.support.exact_posterior import SCHEMA, release_of

CORRECTED = (
    "The bias that refits of the release show was taken off each estimate, and widens its interval."
)
UNCORRECTED = (
    "The bias that refits of the release show was left in each estimate, and no interval includes it"
    " (bias_correct=False, --no-bias-correct)."
)
SHARES = np.random.default_rng(4).dirichlet(np.full(SCHEMA.domain.cells(), 2.0))


def tables(m: int = 12, rows: int = 200, seed: int = 0) -> list[pa.Table]:
    rng = np.random.default_rng(seed)
    return [
        pa.table(
            {
                "x": rng.normal(c, 1.0, rows),
                "y": rng.normal(size=rows),
                "z": rng.choice(["a", "b"], rows),
            }
        )
        for c in rng.normal(1.0, 0.1, m)
    ]


def means(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[["x", "y"]]


FORMS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "series": lambda f: (means(f).mean(), means(f).var() / len(f)),
    "dicts": lambda f: (dict(means(f).mean()), dict(means(f).var()[::-1] / len(f))),
    "one dict": lambda f: {c: (f[c].mean(), f[c].var() / len(f)) for c in ("x", "y")},
    "a named covariance": lambda f: (means(f).mean(), means(f).cov() / len(f)),
    "a covariance in another order": lambda f: (means(f).mean(), f[["y", "x"]].cov() / len(f)),
    "arrays": lambda f: (means(f).mean().to_numpy(), means(f).var().to_numpy() / len(f)),
    "array and covariance": lambda f: (
        means(f).mean().to_numpy(),
        (means(f).cov() / len(f)).to_numpy(),
    ),
    "fitted": lambda f: Fitted.of(("x", "y"), means(f).mean(), means(f).cov() / len(f)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_result(form: str) -> None:
    given = tables()
    found = analyze(given, FORMS[form], n=200)
    assert found.names == (("q1", "q2") if "array" in form else ("x", "y"))
    for j, column in enumerate(("x", "y")):
        q = [np.mean(t[column].to_numpy()) for t in given]
        v = [np.var(t[column].to_numpy(), ddof=1) / 200 for t in given]
        expected = combine(q, v, rows=200, total=200)
        assert found.estimates[j].estimate == pytest.approx(expected.estimate)
        assert found.estimates[j].variance == pytest.approx(expected.variance)
        assert found.estimates[j].df == pytest.approx(expected.df)
    assert (found.covariances is not None) == ("covariance" in form or form == "fitted")


def test_a_statsmodels_result() -> None:
    found = analyze(tables(), lambda f: smf.ols("y ~ x + z", f).fit(), n=200)
    assert found.names == ("Intercept", "z[T.b]", "x")
    one = smf.ols("y ~ x + z", Frames.of_tables(_as_draws(tables())).of(tables()[0])).fit()
    assert found.points[0] == pytest.approx(one.params.to_numpy())
    assert found.covariances is not None
    assert found.covariances[0] == pytest.approx(one.cov_params().to_numpy())


def _as_draws(given: list[pa.Table]) -> Any:
    from margrave.inference.datasets import Tables

    return Tables.of(given, None)


@pytest.mark.parametrize(
    "wrong",
    [
        3.0,
        "text",
        (1.0, 2.0, 3.0),
        ([1.0, 2.0], [1.0]),
        ([[1.0]], [1.0]),
        (["a"], [1.0]),
        {"a": 1.0},
        {},
        ({"a": 1.0}, {"b": 1.0}),
        (pd.Series({"a": 1.0}), pd.DataFrame([[1.0]], index=["b"], columns=["b"])),
    ],
    ids=str,
)
def test_other_results_are_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="Return "):
        read_fit(wrong)


@pytest.mark.parametrize(
    "test",
    [
        lambda f: stats.pearsonr(f.x, f.y),
        lambda f: stats.ttest_ind(f.x, f.y),
        lambda f: stats.linregress(f.x, f.y),
        lambda f: stats.chi2_contingency([[20, 30], [25, 25]]),
        lambda f: {"x": (f.x.mean(), 0.01), "r": stats.pearsonr(f.x, f.y)},
    ],
)
def test_results_of_tests_are_refused(test: Callable[[pd.DataFrame], Any]) -> None:
    """They are tuples, and passed for an estimate with its variance."""
    with pytest.raises(
        InputError, match=r"a test, and its p-value is not a variance\. .*\.var\(\) / len\(a\)"
    ):
        analyze(tables(), test, n=200)


def test_a_name_twice_is_refused() -> None:
    with pytest.raises(InputError, match="two estimates named 'a'"):
        analyze(tables(), lambda f: Fitted(("a", "a"), np.zeros(2), np.ones(2)), n=10)


# --- frames


def test_levels_are_those_of_the_schema_in_every_data_set() -> None:
    frames, rng = Frames.of_schema(SCHEMA), np.random.default_rng(0)
    only_a = SHARES.reshape(SCHEMA.domain.sizes).copy()
    only_a[[0, 2]] = 0.0  # nobody in c, which is the first level, or in b
    draws = release_of(only_a.ravel() / only_a.sum(), 300, 0.0, rng).draws(2, seed=1)
    frame = frames.of(draws[0])
    assert list(frame.group.cat.categories) == ["c", "a", "b"]
    assert set(frame.group.dropna()) == {"a"}
    assert frame.group.isna().any()
    assert frame.grade.cat.ordered
    assert frame.x.between(0.0, 4.0).all()
    assert (
        frame.group.astype(object).where(frame.group.notna(), None).tolist()
        == draws[0]["group"].to_pylist()
    )


def test_levels_are_those_of_all_tables_together() -> None:
    given = [
        pa.table({"z": ["b", "b"]}),
        pa.table({"z": pa.array(["a", None]).dictionary_encode()}),
    ]
    frames = Frames.of_tables(_as_draws(given))
    assert frames.levels == {"z": (("a", "b"), False)}
    assert frames.of(given[1]).z.isna().tolist() == [False, True]


def test_dates_truths_and_missing_numbers() -> None:
    table = pa.table(
        {
            "day": pa.array([18262, None], pa.date32()),
            "seen": pa.array([True, None]),
            "sure": pa.array([True, False]),
            "k": pa.array([1, None], pa.int64()),
        }
    )
    frame = Frames({}).of(table)
    assert frame.day.dtype.kind == "M"
    assert frame.day[0] == pd.Timestamp("2020-01-01")
    assert frame.seen.dtype == np.dtype("float64")
    assert frame.seen[0] == 1.0
    assert frame.sure.dtype == np.dtype(bool)
    assert frame.k.dtype == np.dtype("float64")
    assert frame.isna().sum().tolist() == [1, 1, 0, 1]


def test_types_are_those_of_the_schema_whether_values_are_missing_or_not() -> None:
    columns = {"seen": [True, False], "k": [1, 2], "sure": [True, False], "i": [1, 2]}
    schema = Schema(
        [
            Boolean("seen", missing=True),
            Integer("k", 0, 3, missing=True),
            Boolean("sure"),
            Integer("i", 0, 3),
        ]
    )
    types = ["float64", "float64", "bool", "int64"]
    holed = pa.table({**columns, "seen": [True, None], "k": [None, 2]})
    for table in (pa.table(columns), holed):
        frame = Frames.of_schema(schema).of(table)
        assert [str(t) for t in frame.dtypes] == types
        assert frame.seen.mean() == (0.5 if table is not holed else 1.0)
        frames = Frames.of_tables(_as_draws([pa.table(columns), holed]))
        assert [str(t) for t in frames.of(table).dtypes] == types


# --- what is set aside


def test_a_category_that_a_data_set_lacks_is_left_out_there() -> None:
    given = tables(20)
    given[3] = given[3].set_column(2, "z", pa.array(["a"] * 200))  # nobody in b
    given[7] = given[7].set_column(2, "z", pa.array(["b"] * 200))  # nobody in a, the reference
    found = analyze(given, lambda f: smf.ols("y ~ x + z", f).fit(), n=200)
    assert {e.name: e.used for e in found} == {"Intercept": 19, "z[T.b]": 18, "x": 20}
    assert np.isnan(found.points).sum(axis=0).tolist() == [1, 2, 0]
    text = "Intercept, z[T.b]: up to 2 of 20 data sets do not determine"
    assert sum(n.startswith(text) for n in found.notes) == 1
    kept = np.delete(found.points[:, 1], [3, 7])
    assert found["z[T.b]"].estimate == pytest.approx(kept.mean())
    assert np.abs(kept).max() < 1.0
    assert found.test(["z[T.b]", "x"]).df[0] == 2.0


def test_estimable_columns() -> None:
    one = np.ones(6)
    a, b = np.array([1.0, 1, 0, 0, 0, 0]), np.array([0.0, 0, 1, 1, 1, 1])
    x = np.arange(6.0) ** 2
    alone, independent = estimable(np.stack([one, a, b, x, 0 * one], axis=1))
    assert alone.tolist() == [False, False, False, True, False]
    assert independent.sum() == 3
    assert independent[3]
    assert not independent[4]
    assert estimable(np.stack([one, a, 1e9 * x], axis=1))[0].all()


def wild(frame: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """An estimate that blows up on some data sets, told by their first value, and one that does not."""
    blown = frame.x.iloc[0] > 1.8
    return {
        "wild": (25.0, 1e8) if blown else (1.0 + frame.x.mean(), 0.01),
        "tame": (frame.y.mean(), 0.01),
    }


def test_an_estimate_that_blew_up_gets_no_interval_unless_dropped() -> None:
    given = tables(30)
    blown = sum(t["x"][0].as_py() > 1.8 for t in given)
    assert 0 < blown < 15
    found = analyze(given, wild, n=200)
    assert not found["wild"].has_interval
    assert found["wild"].used == 30 - blown
    assert found["tame"].has_interval
    assert any(n.startswith(f"wild: {blown} of 30") and "No interval" in n for n in found.notes)
    assert np.isnan(found.summary().loc["wild", "low"])
    with pytest.raises(InputError, match="wild has no interval"):
        found.test()
    dropped = analyze(given, wild, n=200, on_unstable="drop")
    kept = [1.0 + np.mean(t["x"].to_numpy()) for t in given if t["x"][0].as_py() <= 1.8]
    assert dropped["wild"].estimate == pytest.approx(np.mean(kept))
    assert (dropped["wild"].used, dropped["wild"].data_sets) == (30 - blown, 30)
    assert any("left out" in n for n in dropped.notes)


def faulty(fault: Any) -> Callable[[pd.DataFrame], Any]:
    """A fit that returns a fault where the first value is large, and means elsewhere."""
    return lambda f: (
        fault if f.x.iloc[0] > 1.8 else {"x": (f.x.mean(), 0.01), "y": (f.y.mean(), 0.01)}
    )


@pytest.mark.parametrize("remedy", ["report", "drop"])
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"x": (np.nan, 0.01), "y": (1.0, 0.01)}, "the fit returned NaN on"),
        ({"x": (1.0, np.nan), "y": (1.0, 0.01)}, "the fit returned NaN on"),
        ({"x": (1.0, -0.01), "y": (1.0, 0.01)}, "the fit returned a negative variance on"),
    ],
    ids=["nan", "nan variance", "negative"],
)
def test_what_a_fit_should_not_return_is_told_as_such(fault: Any, words: str, remedy: Any) -> None:
    given = tables(30)
    wrong = [i for i, t in enumerate(given) if t["x"][0].as_py() > 1.8]
    found = analyze(given, faulty(fault), n=200, on_unstable=remedy)
    first = f"first on data set {wrong[0] + 1}."
    assert found.notes[0].startswith(f"x: {words} {len(wrong)} of 30 data sets, {first}")
    assert not any("stable" in n or "empty cell" in n for n in found.notes)
    assert found["x"].has_interval == (remedy == "drop")
    assert found["y"].used == 30


def test_other_names_than_before_are_told() -> None:
    given = tables(30)
    wrong = [i for i, t in enumerate(given) if t["x"][0].as_py() > 1.8]
    found = analyze(given, faulty({"z": (1.0, 0.01), "y": (1.0, 0.01)}), n=200)
    assert (
        f"x: on {len(wrong)} of 30 data sets the fit returned other names than on the rest"
        in str(found)
    )
    assert f"first on data set {wrong[0] + 1};" in found.notes[0]
    assert not any("do not determine" in n for n in found.notes)

    def fewer(frame: pd.DataFrame) -> Any:
        k = 2 if frame.x.iloc[0] > 1.8 else 3
        return [1.0] * k, [0.1] * k

    with pytest.raises(
        InputError, match=rf"3 estimates .* data set 1, and 2 on data set {wrong[0] + 1}\."
    ):
        analyze(given, fewer, n=200)


def test_a_large_unit_is_no_blow_up() -> None:
    """A mean of incomes may well have a standard deviation above 1000: what counts is to be far above the others."""
    found = analyze(
        tables(), lambda f: {"income": (1e6 * f.x.mean(), 1e12 * f.x.var() / len(f))}, n=200
    )
    assert found["income"].has_interval
    assert found["income"].bse > 1e4
    assert found.notes == (EXTERNAL,)


def test_a_fit_that_did_not_converge_is_not_trusted() -> None:
    def fit(frame: pd.DataFrame) -> Fitted:
        return Fitted(("a",), np.array([1.0]), np.array([0.1]), converged=frame.x.iloc[0] < 1.8)

    blown = sum(t["x"][0].as_py() >= 1.8 for t in tables(30))
    assert analyze(tables(30), fit, n=200)["a"].used == 30 - blown


def test_warnings_are_told_and_those_of_convergence_heeded() -> None:
    class ConvergenceWarning(UserWarning):
        pass

    def fit(frame: pd.DataFrame) -> Any:
        if frame.x.iloc[0] > 1.8:
            warnings.warn("did not settle", ConvergenceWarning, stacklevel=1)
        warnings.warn("by the way", UserWarning, stacklevel=1)
        return {"a": (frame.x.mean(), 0.01)}

    found = analyze(tables(30), fit, n=200)
    assert not found["a"].has_interval
    assert any("30 of 30 data sets: UserWarning: by the way" in n for n in found.notes)


def test_an_error_of_the_fit_names_the_data_set() -> None:
    given = tables(30)
    first = next(i for i, t in enumerate(given) if t["x"][0].as_py() > 1.8)

    def fit(frame: pd.DataFrame) -> Any:
        if frame.x.iloc[0] > 1.8:
            raise ZeroDivisionError("no luck")
        return {"a": (frame.x.mean(), 0.01)}

    with pytest.raises(
        InputError, match=rf"data set {first + 1} of 30 \(ZeroDivisionError: no luck\)"
    ):
        analyze(given, fit, n=200)
    found = analyze(given, fit, n=200, on_unstable="drop")
    assert found["a"].used < 30
    assert "ZeroDivisionError: no luck" in found.notes[0]
    with pytest.raises(InputError, match="failed on all 30 data sets"):
        analyze(given, lambda f: 1 / 0, n=200, on_unstable="drop")


def test_no_variance_is_no_interval() -> None:
    found = analyze(tables(), lambda f: {"a": (3.0, 0.0)}, n=200)
    assert not found["a"].has_interval
    assert "same value" in found.notes[0]
    unknown = analyze(tables(), lambda f: {"a": (f.x.mean(), 9.0)})
    assert "Give n" in unknown.notes[0]


# --- the whole way


def mean_of_x(frame: pd.DataFrame) -> Any:
    return {"x": (frame.x.mean(), 0.01)}


def test_tables_and_arguments_that_do_not_fit_are_refused() -> None:
    fit, rng = Mean("x"), np.random.default_rng(0)
    release = release_of(SHARES, 100, 1.0, rng)
    part: Any = Conditional(SCHEMA, None, {}, 1.0)  # type: ignore[arg-type]
    for call, words in [
        (lambda: analyze([tables()[0]], fit), "at least two tables"),
        (lambda: analyze([tables()[0], tables(rows=9)[0]], fit), "numbers of rows"),
        (lambda: analyze([tables()[0], pa.table({"x": np.zeros(200)})], fit), "same columns"),
        (lambda: analyze("release.margrave", fit), "release"),  # type: ignore[arg-type]
        (lambda: analyze(release, fit, n=100), "n is for tables"),
        (lambda: analyze(tables(), fit, 10), "m says how a release draws.*drawn already.*Leave m out"),
        (lambda: analyze(tables(), fit, rows=100), "rows says how"),
        (lambda: analyze(tables(), fit, n="many"), "n is 'many'"),  # type: ignore[arg-type]
        (lambda: analyze(tables(), fit, n=0), "n is 0"),
        (lambda: analyze(tables(), fit, seed=0), "seed says how"),
        (lambda: analyze(release.draws(3), fit, seed=5), "seed says how"),
        (lambda: analyze(release.draws(3), fit, method="posterior"), "method says how"),
        (lambda: analyze(release.draws(3), fit, n=100), "n is for tables"),
        (lambda: analyze_posterior(tables(), lambda f: f, rows=9), "rows says how"),
        (lambda: analyze(part, fit), r"Conditional.*Logistic\(\.\.\., where="),
        (lambda: analyze(release, Mean), "'Mean' is not an analysis.*such as Mean"),
        (lambda: analyze(release, "mean"), "'mean' is not understood"),  # type: ignore[arg-type]
        (lambda: analyze(release, Mean(["x"])), "no column"),  # type: ignore[arg-type]
        (lambda: analyze(release, OLS(3)), "A formula is a text, and int"),  # type: ignore[arg-type]
        (lambda: Quantile("x", "0.5"), "quantile"),  # type: ignore[arg-type]
        (lambda: analyze(release, fit, 2.5), "2.5 data sets"),  # type: ignore[arg-type]
        (lambda: analyze(release, fit, "5"), "'5' data sets"),  # type: ignore[arg-type]
        (lambda: analyze(release, fit, 5, level="high"), "level"),  # type: ignore[arg-type]
        (lambda: analyze(release, fit, 5, max_std_error=None), "max_std_error"),  # type: ignore[arg-type]
        (lambda: analyze(release, fit, 1), "at least 2"),
        (lambda: analyze(release, Mean("wage"), 5), "no column 'wage'"),
        (lambda: analyze(release, Mean("group"), 5), "holds no numbers"),
        (lambda: analyze(release, fit, 5, level=1.0), "level"),
        (lambda: analyze(release, fit, 5, on_unstable="hide"), "on_unstable"),  # type: ignore[arg-type]
        (lambda: analyze(release, fit, 5, max_std_error=0.0), "max_std_error"),
        (lambda: analyze(release, mean_of_x, 5), r"columns that the function uses.*columns=\(.*'?probe"),
        (lambda: analyze(release.draws(3), mean_of_x), "columns that the function uses"),
        (lambda: analyze(release, mean_of_x, 5, columns=("x", "wage")), "'wage', which is not a column"),
        (lambda: analyze(release, mean_of_x, 5, columns="x"), "'x', which is not a column.*columns="),
        (lambda: analyze(release, mean_of_x, 5, columns=()), "which is not a column"),
        (lambda: analyze(release, fit, 5, columns=("x",)), "columns is for functions"),
    ]:  # fmt: skip
        with pytest.raises(InputError, match=words):
            call()


def test_a_ready_model_is_checked_before_anything_is_drawn() -> None:
    class Dear:
        schema = SCHEMA

        def draws(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("data sets were drawn")

    with pytest.raises(InputError, match="no column 'wage'"):
        analyze(Dear(), Mean("wage"))


def test_seed_rows_and_method_reach_the_release() -> None:
    release, seen = release_of(SHARES, 400, 3.0, np.random.default_rng(1)), []
    first = analyze(
        release, Mean("x"), 10, seed=5, rows=50, method="mine", progress=lambda *a: seen.append(a)
    )
    again = analyze(release, Mean("x"), 10, seed=5, rows=50)
    assert (first.data_sets, first.rows, first.method) == (10, 50, "exact (mine)")
    assert np.array_equal(first.points, again.points)
    assert not np.array_equal(first.points, analyze(release, Mean("x"), 10, seed=6, rows=50).points)
    assert seen[0] == ("drawing distributions", 0.0)
    assert ("drawing distributions", 0.5) in seen
    assert seen[-1] == ("analyzing", 1.0)
    assert first.notes[-1] == "made up"
    assert [done for _, done in seen] == sorted(done for _, done in seen)
    assert first["mean(x)"].ratio == pytest.approx(50 / first.total)


def test_intervals_from_noisy_counts_cover_the_population() -> None:
    """From counts with noise to an interval: 150 real tables, coverage within five standard deviations (1e-6)."""
    rng, reps, held, naive = np.random.default_rng(8), 150, 0, 0
    shares = SHARES.reshape(SCHEMA.domain.sizes).sum(axis=(0, 1))
    schema = margrave.Schema(SCHEMA.columns[2:])
    truth = float(shares @ (np.arange(4) + 0.5))
    for _ in range(reps):
        found = analyze(
            release_of(shares, 400, 15.0, rng, schema),
            Mean("x"),
            20,
            seed=int(rng.integers(1 << 30)),
        )
        e = found["mean(x)"]
        low, high = e.conf_int()
        held += low < truth < high
        naive += abs(found.points[0, 0] - truth) < 1.96 * np.sqrt(e.within)
    assert abs(held / reps - 0.95) < 0.089
    assert naive / reps < 0.7  # one data set, taken as if it were real


def test_a_bayesian_analysis_is_mixed() -> None:
    release, rng = release_of(SHARES, 400, 3.0, np.random.default_rng(1)), np.random.default_rng(0)

    def posterior(frame: pd.DataFrame) -> Any:
        return rng.normal(frame.x.mean(), frame.x.std() / np.sqrt(len(frame)), (50, 1))

    mixed = analyze_posterior(release, posterior, 40, rows=4000, seed=3, names=["mean"])
    rule = analyze(release, Mean("x"), 40, rows=4000, seed=3)["mean(x)"]
    assert mixed.draws.shape == (2000, 1)
    assert float(mixed.draws.std()) == pytest.approx(rule.bse, rel=0.25)


def test_draws_can_be_analyzed_themselves() -> None:
    release = release_of(SHARES, 400, 3.0, np.random.default_rng(1))
    drawn = release.draws(10, seed=5, rows=50)
    found = analyze(drawn, lambda f: smf.ols("x ~ group", f).fit(), columns=("x", "group"))
    assert found.names == ("Intercept", "group[T.a]", "group[T.b]")  # c comes first in the schema
    assert np.array_equal(
        found.points, analyze(release, OLS("x ~ group"), 10, seed=5, rows=50).points, equal_nan=True
    )
    assert found.total == drawn.total


def test_a_subgroup_is_chosen_in_the_fit() -> None:
    release = release_of(SHARES, 2_000, 3.0, np.random.default_rng(1))
    model = Logistic("x > 2 ~ group")
    found = analyze(
        release, lambda frame: model(frame[frame.grade == "low"]), 10, seed=5, columns="probe"
    )
    assert found.names == ("Intercept", "group[T.a]", "group[T.b]")
    low = Frames.of_schema(SCHEMA).of(release.draws(10, seed=5)[0]).query("grade == 'low'")
    assert found.points[0] == pytest.approx(model(low).estimates)


# --- quantities that have bounds


def rare(counts: tuple[int, ...] = (2000, 1998, -30), scale: float = 40.0) -> Draws:
    """Tables by refits of one column's noisy counts, its last code drowned in noise."""
    release = by_hand({"a": 3}, (("a",), np.array(counts), scale, IDENTITY))
    return release.draws(12, method="bootstrap", seed=3)


def test_a_share_lies_between_0_and_1() -> None:
    """The bias taken off a small share, and an interval around it, left none of it."""
    drawn = rare()

    def share(frame: pd.DataFrame) -> Any:
        p = (frame.a == 2).mean()
        return {"rare": (p, max(p * (1 - p), 1e-6) / len(frame)), "log": (np.log(p + 0.01), 0.01)}

    plain, ready = analyze(drawn, share, columns=("a",)), analyze(drawn, Proportion("a", 2))
    assert plain["rare"].estimate < 0
    assert plain["rare"].conf_int()[1] > 0.001
    given = analyze(drawn, share, columns=("a",), bounds={"rare": (0, 1)})
    for found, name in ((given, "rare"), (ready, "a = 2")):
        e = found[name]
        low, high = e.conf_int()
        assert e.estimate == low == 0.0
        assert high == pytest.approx(
            -plain["rare"].estimate + plain["rare"].conf_int()[1], rel=0.01
        )
        assert e.conf_int(0.9999) == (0.0, pytest.approx(min(1.0, e.conf_int(0.9999)[1])))
        assert e.pvalue() == pytest.approx(1.0)
        assert any(
            n.startswith(f"Impossible: {name} came out at -0.00")
            and n.endswith(", and is given as 0.")
            for n in found.notes
        )
        assert f"{name}: the interval is cut off at what is possible." in found.notes
        assert found.contrast({name: -1.0}).conf_int() == (-high, 0.0)
        assert found.test(name).pvalue == pytest.approx(1.0)
    bars = re.findall(r'class="[wr]" (?:d="M|x=")([-.\d]+)', ready.svg())
    assert len(bars) == 2
    assert len(set(bars)) == 1, "the bar of the real records begins where the interval is cut off"
    assert given["log"].estimate < 0
    assert not any("log came" in n or "log: the interval" in n for n in given.notes)
    assert (
        analyze(drawn, share, columns=("a",), bounds=(None, 1))["rare"].estimate
        == plain["rare"].estimate
    )
    least = plain["rare"].estimate
    near = analyze(drawn, share, columns=("a",), bounds={"rare": (least * 0.9999, 1)})
    assert near["rare"].estimate > least
    assert not any(n.startswith("Impossible") for n in near.notes), "both are written alike"
    for bounds in ((1, 0), (0, "1"), 3, {"rare": (0, 0)}):
        with pytest.raises(InputError, match="least and the greatest"):
            analyze(drawn, share, columns=("a",), bounds=bounds)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"bounds names 'rar'.*They are: rare, log"):
        analyze(drawn, share, columns=("a",), bounds={"rar": (0, 1)})


@pytest.mark.slow
def test_an_interval_that_is_cut_off_covers_as_often() -> None:
    """Three codes, the last with one record in a thousand, under much more noise: 30 tables, and no limit below 0."""
    rng, held = np.random.default_rng(1), 0
    for _ in range(30):
        counts = np.rint(rng.multinomial(4000, [0.5, 0.499, 0.001]) + rng.normal(0.0, 40.0, 3))
        low, high = analyze(rare(tuple(counts)), Proportion("a", 2))["a = 2"].conf_int()
        assert low >= 0.0
        held += low <= 0.001 <= high
    assert held > 20  # at 95 %, 20 or fewer in one case of a million


# --- tables drawn elsewhere


def test_tables_of_one_distribution_are_told_of() -> None:
    """Rows of release.sample pass for tables of a posterior: nothing but their likeness gives them away."""
    rng = np.random.default_rng(2)
    one = [
        pa.table({"x": rng.normal(1.0, 1.0, 200), "g": rng.choice(["a", "b"], 200)})
        for _ in range(60)
    ]
    for fit in (Mean("x"), lambda f: {"mean(x)": (f.x.mean(), f.x.var() / len(f))}, OLS("x ~ g")):
        found = analyze(one, fit, n=200)
        assert any("differ as little as samples of one distribution" in n for n in found.notes)
        assert found.notes[-1].startswith(
            "Tables drawn elsewhere: this is right only if each comes from its own draw"
        )
        assert "release.sample" in found.notes[-1]
        assert found.fmi.isna().all()
        assert found.to_dict()["estimates"][0]["fmi_privacy"] is None
    assert "%" not in str(found).splitlines()[3]


def test_tables_of_a_posterior_are_not_told_of_as_one_distribution() -> None:
    """The chance of that is at most one in a hundred, and seeds are fixed."""
    told = 0
    for seed in range(30):
        found = analyze(tables(20, seed=seed), Mean("x"), n=200)
        told += any("as little as" in n for n in found.notes)
        assert found.notes[-1] == EXTERNAL
    assert told <= 1


# --- refits, and the bias they show


@dataclass(frozen=True)
class Refits:
    """Tables of refitted distributions, and as many of the one that was refitted."""

    tables: list[pa.Table]
    own: list[pa.Table]
    total: float = 200.0
    method: str = "refits"
    notes: tuple[str, ...] = ("refitted",)

    @property
    def rows(self) -> int:
        return int(self.tables[0].num_rows)

    def __len__(self) -> int:
        return len(self.tables)

    def __getitem__(self, i: int) -> pa.Table:
        return self.tables[i]

    def released(self) -> Any:
        return None if not self.own else replace(self, tables=self.own, own=[])


def biased(bias: float = 0.5, m: int = 30) -> Refits:
    """The release has means of 1 and 0; its refits are off by as much as it is itself."""
    rng = np.random.default_rng(3)
    spread = rng.normal(0.0, 0.1, (m, 2))

    def drawn(i: int, moved: float) -> pa.Table:
        stream = np.random.default_rng([7, i])
        x, y = (stream.normal(c, 1.0, 200) for c in (1.0, 0.0) + moved * (bias + spread[i]))
        return pa.table({"x": x, "y": y})

    return Refits([drawn(i, 1.0) for i in range(m)], [drawn(i, 0.0) for i in range(m)])


def test_the_bias_that_refits_show_is_taken_off() -> None:
    seen: list[float] = []
    source, fit = biased(), lambda f: (means(f).mean(), means(f).cov() / len(f))
    found = analyze(source, fit, progress=lambda _, done: seen.append(done))
    plain = analyze(source, fit, bias_correct=False)
    for j, name in enumerate("xy"):
        q, own = (
            np.array([np.mean(t[name].to_numpy()) for t in lot])
            for lot in (source.tables, source.own)
        )
        assert plain.estimates[j].estimate == pytest.approx(q.mean())
        assert found.estimates[j].estimate == pytest.approx(2 * own.mean() - q.mean())
        assert found.estimates[j].bias == pytest.approx(0.5, abs=0.1)
        assert found.estimates[j].variance == pytest.approx(
            plain.estimates[j].variance + found.estimates[j].bias ** 2
        )
    assert found.released is not None
    # with a bias of ten standard errors nothing is certain but that it is not as far again on the other side
    assert found.test(null=[0.5, -0.5]).pvalue > 0.5 > found.test(null=[1.5, 0.5]).pvalue
    assert found.test(null=[2.5, 1.5]).pvalue < 0.02
    assert plain.test(null=[1.5, 0.5]).pvalue > 0.001 > plain.test(null=[0.5, -0.5]).pvalue
    assert CORRECTED in found.notes
    assert UNCORRECTED in plain.notes
    assert CORRECTED not in plain.notes
    assert found.notes[0].startswith(
        "[!] all estimates: the bias that refits of the release show is more than 3 standard"
    )
    assert [e.label for e in found] == ["x [!]", "y [!]"]
    assert [e.label for e in plain] == ["x [!]", "y [!]"], (
        "a bias is doubtful, whether or not it is taken off"
    )
    assert plain.notes[0] == found.notes[0]
    assert plain.contrast({"x": 1, "y": 1}).flagged
    assert seen[-1] == 1.0
    assert 0.75 in seen, "half of the analyzing is done when the refits are"
    assert seen == sorted(seen)
    for correct in (True, False):
        assert not any(
            "standard errors" in n for n in analyze(biased(0.05), fit, bias_correct=correct).notes
        )
    assert found.to_dict()["estimates"][0]["bias"] == found["x"].bias


@pytest.mark.parametrize(
    ("variance", "wrong"),
    [
        (lambda x: x.var() / len(x), False),
        (lambda x: 1.7 * x.var() / len(x), False),
        (lambda x: x.std() / np.sqrt(len(x)), True),
        (lambda x: x.var(), True),
        (lambda x: stats.ttest_1samp(x, 0.9).pvalue, True),
        (lambda x: 1e-9, True),
    ],
)
def test_a_wrong_variance_is_told(variance: Callable[[pd.Series], float], wrong: bool) -> None:
    """Tables of one distribution show how much estimates vary; those of a posterior, what they vary by at least."""

    def fit(frame: pd.DataFrame) -> Any:
        return {"mean(x)": (frame.x.mean(), variance(frame.x))}

    release = release_of(SHARES, 200, 3.0, np.random.default_rng(1))
    for source in (biased(), release.draws(40, seed=2)):
        told = [
            n
            for n in analyze(source, fit, columns=("x",)).notes
            if n.startswith("mean(x): the fit returned variances of")
        ]
        assert len(told) == wrong
        assert all("the square of its standard error" in n for n in told)
        assert not any("the fit returned variances" in n for n in analyze(source, Mean("x")).notes)


def test_a_posterior_is_not_corrected() -> None:
    release, seen = release_of(SHARES, 400, 3.0, np.random.default_rng(1)), []

    def counted(frame: pd.DataFrame) -> Any:
        seen.append(len(frame))
        return {"x": (frame.x.mean(), 0.01)}

    found = analyze(release, counted, 10, seed=5, columns=("x",))
    assert (len(seen), found.released, found["x"].bias) == (10, None, 0.0)


def test_refits_and_their_counterparts_are_used_together() -> None:
    """What blew up on one of the two is left out on both; so is what the fit failed on."""
    source = biased(m=12)
    strange = {id(source.tables[2]): 1, id(source.own[5]): 1}
    first = {id(t): t["x"][0].as_py() for t in (*source.tables, *source.own)}

    def fit(frame: pd.DataFrame) -> Any:
        marked = [i for i, x in first.items() if x == frame.x.iloc[0]]
        return {
            "x": (frame.x.mean(), 1e8 if strange.get(marked[0]) else 0.01),
            "y": (frame.y.mean(), 0.01),
        }

    assert not analyze(source, fit)["x"].has_interval
    found = analyze(source, fit, on_unstable="drop")
    kept = [i for i in range(12) if i not in (2, 5)]
    q, own = (
        np.array([np.mean(lot[i]["x"].to_numpy()) for i in kept])
        for lot in (source.tables, source.own)
    )
    assert (found["x"].used, found["y"].used) == (10, 12)
    assert found["x"].estimate == pytest.approx(2 * own.mean() - q.mean())

    def failing(frame: pd.DataFrame) -> Any:
        if frame.x.iloc[0] == source.own[3]["x"][0].as_py():
            raise ZeroDivisionError("no luck")
        return {"x": (frame.x.mean(), 0.01)}

    with pytest.raises(InputError, match="data set 4 of 12"):
        analyze(source, failing)
    assert analyze(source, failing, on_unstable="drop")["x"].used == 11


def test_an_estimand_says_what_a_data_set_lacks() -> None:
    """The remedy is not to correct the fit, which is not the caller's."""
    empty, full = pa.table({"x": pa.nulls(9, pa.float64())}), pa.table({"x": np.arange(9.0)})
    with pytest.raises(InputError) as told:
        analyze([full, empty, full], Mean("x"), n=9)
    assert str(told.value).startswith(
        "The fit failed on data set 2 of 3 (no record has a value of column 'x'). Analyze another column or"
    )
    assert analyze([full, empty, full], Mean("x"), n=9, on_unstable="drop")["mean(x)"].used == 2
    with pytest.raises(InputError) as told:
        analyze([empty, empty], Mean("x"), n=9, on_unstable="drop")
    assert str(told.value).startswith(
        "The fit failed on all 2 data sets (no record has a value of column 'x'). Analyze another column"
    )


# --- what an analysis shows


@pytest.fixture(scope="module")
def shown() -> Analysis:
    return analyze(tables(20), lambda f: smf.ols("y ~ x + z", f).fit(), n=200, level=0.9)


def test_the_table(shown: Analysis) -> None:
    table = shown.summary()
    assert list(table.columns) == [
        "params", "bse", "low", "high", "df", "pvalues", "fmi", "used", "unmeasured", "below_noise",
        "mostly_noise", "unreliable", "coarse", "binned", "clipped",
        "flagged",
    ]  # fmt: skip
    assert "<th" in shown._repr_html_().partition("</svg>")[2]
    assert "<th>p-value</th>" in shown.html()
    e, row = shown["x"], table.loc["x"]
    assert row.params == e.estimate
    assert (row.low, row.high) == e.conf_int(0.9)
    assert row.high - row.params == pytest.approx(stats.t.ppf(0.95, e.df) * e.bse)
    wider = shown.conf_int(0.99)
    assert (wider.high > table.high).all()
    assert shown.summary(null=row.params).loc["x", "pvalues"] == pytest.approx(1.0)
    assert len(shown) == 3
    assert [e.name for e in shown] == list(table.index)
    with pytest.raises(InputError, match="no estimate 'w'"):
        shown["w"]
    assert "20 data sets" in str(shown)
    assert "z[T.b]" in str(shown)


def test_results_as_of_statsmodels(shown: Analysis) -> None:
    """The same numbers as Series and frames, and a covariance whose contrasts and tests agree."""
    names = list(shown.names)
    assert list(shown.params.index) == list(shown.bse.index) == names
    for e in shown:
        assert (shown.params[e.name], shown.bse[e.name]) == (e.estimate, e.bse)
        assert (shown.pvalues[e.name], shown.fmi[e.name]) == pytest.approx(
            (e.pvalue(), e.fmi_privacy), nan_ok=True
        )
        assert tuple(shown.conf_int().loc[e.name]) == e.conf_int(0.9)
    covariance = shown.cov_params()
    assert list(covariance.index) == list(covariance.columns) == names
    assert np.sqrt(np.diag(covariance)) == pytest.approx(shown.bse.to_numpy())
    assert np.linalg.eigvalsh(covariance.to_numpy())[0] > 0
    plain = analyze(tables(), FORMS["series"], n=200)
    with pytest.raises(InputError, match="covariance"):
        plain.cov_params()
    alone = analyze(tables(), FORMS["series"], n=200, bounds=None)
    assert alone.summary().index.name == "name"
    source = biased()
    found = analyze(source, FORMS["a named covariance"])
    q, own = (
        np.array([[np.mean(t[c].to_numpy()) for c in "xy"] for t in lot])
        for lot in (source.tables, source.own)
    )
    assert found.covariances is not None
    bias = q.mean(axis=0) - own.mean(axis=0)
    total = (1 + 1 / 30) * np.cov(q.T) - found.covariances.mean(axis=0) + np.outer(bias, bias)
    assert found.cov_params().to_numpy() == pytest.approx(total, rel=1e-6)


def test_an_estimate_without_an_interval_has_no_covariance() -> None:
    given = tables(30)
    found = analyze(given, lambda f: (pd.Series(wild_pair(f)), np.diag([1e8, 0.01])), n=200)
    assert not found["wild"].has_interval
    covariance = found.cov_params()
    assert covariance.isna().to_numpy().tolist() == [[True, True], [True, False]]
    assert covariance.loc["tame", "tame"] == found["tame"].variance


def wild_pair(frame: pd.DataFrame) -> dict[str, float]:
    return {"wild": np.nan if frame.x.iloc[0] > 1.8 else 1.0, "tame": frame.y.mean()}


def test_tests_of_several(shown: Analysis) -> None:
    both = shown.test(["x", "z[T.b]"], null={"x": shown["x"].estimate})
    assert both.names == ("x", "z[T.b]")
    assert 0.0 < both.pvalue <= 1.0
    assert shown.test("x").pvalue == pytest.approx(shown["x"].pvalue())
    assert shown.test(["x"], null=[9.0]).pvalue < 1e-6
    plain = analyze(tables(20), FORMS["series"], n=200)
    assert plain.test("x").pvalue == pytest.approx(plain["x"].pvalue())
    assert plain.test("x").df == (1.0, plain["x"].df)
    with pytest.raises(InputError, match="covariance"):
        plain.test()
    with pytest.raises(InputError, match=r"given for 'xx', which is not tested\. Tested are: x\."):
        shown.test(["x"], null={"xx": 5.0})
    with pytest.raises(InputError, match="null values"):
        shown.test(["x", "z[T.b]"], null=[1.0, 2.0, 3.0])


@pytest.mark.parametrize("weights", ["x", ["x", "z[T.b]"], ("x",)])
def test_a_contrast_without_weights_is_refused_with_an_example(
    shown: Analysis, weights: Any
) -> None:
    with pytest.raises(InputError) as refused:
        shown.contrast(weights)
    example = re.search(r"such as contrast\((.*)\)\.$", str(refused.value))
    assert example is not None
    assert shown.contrast(ast.literal_eval(example[1])).has_interval


def test_a_contrast_with_the_reference_level_says_what_it_is() -> None:
    known = ["Intercept", "ward[T.b]", "ward[T.c]"]
    words = (
        "A reference level has none: the coefficients of the other levels are differences from it."
    )
    assert words in str(no_estimate("ward[T.a]", known).remedy)
    assert words not in str(no_estimate("wards", known).remedy)


def test_a_contrast_is_what_the_fit_would_have_given(shown: Analysis) -> None:
    """The difference of two means, taken after or inside of the fit."""
    names = ["x", "y"]

    def both(frame: pd.DataFrame) -> Any:
        return frame[names].mean(), frame[names].cov() / len(frame)

    def difference(frame: pd.DataFrame) -> Any:
        d = 2.0 * frame.x - frame.y
        return {"2 x - y": (d.mean(), d.var() / len(d))}

    for source, n in ((tables(), 200), (biased(), None)):
        found, expected = analyze(source, both, n=n), analyze(source, difference, n=n)["2 x - y"]
        one = found.contrast({"x": 2, "y": -1})
        assert (one.name, one.used, one.data_sets) == ("2 x - y", found.data_sets, found.data_sets)
        for part in ("estimate", "variance", "df", "within", "bias"):
            assert getattr(one, part) == pytest.approx(getattr(expected, part))
        assert one.conf_int() == pytest.approx(expected.conf_int())
        assert one.pvalue() == pytest.approx(expected.pvalue())
    plain = analyze(tables(), FORMS["series"], n=200)
    assert plain.contrast({"x": -2.0}, name="less").conf_int() == pytest.approx(
        tuple(-2.0 * v for v in reversed(plain["x"].conf_int()))
    )
    assert plain.contrast({"x": -2.0}).name == "-2 x"
    for call, words in [
        (lambda: plain.contrast({"x": 1, "y": -1}), "covariance"),
        (lambda: shown.contrast({}), "No names are given to weigh"),
        (lambda: shown.contrast({"w": 1}), "no estimate 'w'"),
        (lambda: shown.contrast({"x": "1"}), "Weights are numbers"),  # type: ignore[dict-item]
        (lambda: shown.contrast({"x": 0}), "not all of them 0"),
    ]:
        with pytest.raises(InputError, match=words):
            call()


def test_caveats_are_records() -> None:
    """Notes are their texts, the decisive ones first and marked; each names its estimates and its check."""
    found = analyze(biased(), lambda f: {"x": (f.x.mean(), f.x.var() / len(f)), "n": (len(f), 9.0)})
    assert found.notes == tuple(map(str, found.caveats))
    decisive = [c.decisive for c in found.caveats]
    assert decisive == sorted(decisive, reverse=True)
    assert [n.startswith("[!] ") for n in found.notes] == decisive
    by_kind = {c.kind: c for c in found.caveats}
    assert by_kind["bias"].names == ("x",)
    assert by_kind["bias"].decisive
    assert {c.names for c in found.caveats if not c.decisive} >= {()}
    dropped = analyze(tables(30), wild, n=200, on_unstable="drop")
    assert {c.kind: c.names for c in dropped.caveats}["unstable"] == ("wild",)


def test_plain_data(shown: Analysis) -> None:
    plain = shown.to_dict()
    assert (plain["level"], plain["data_sets"], plain["rows"], plain["total"]) == (
        0.9,
        20,
        200,
        200.0,
    )
    assert plain["estimates"][2]["name"] == "x"
    assert plain["estimates"][2]["low"] == shown["x"].conf_int(0.9)[0]


def test_a_singular_design_behind_plain_numbers_is_heeded() -> None:
    """The coefficient of an empty category is 0 with variance 0 to a pseudo-inverse: it must not be taken for one."""
    given = tables(20)
    given[3] = given[3].set_column(2, "z", pa.array(["a"] * 200))

    def fit(frame: pd.DataFrame) -> Any:
        result = smf.ols("y ~ x + z", frame).fit()
        return dict(result.params), dict(result.bse**2)

    found = analyze(given, fit, n=200)
    assert not found["z[T.b]"].has_interval


def test_frames_after_the_first_have_only_the_columns_of_the_analyses() -> None:
    rng = np.random.default_rng(0)
    tables = [
        pa.table({"x": rng.normal(size=40), "ward": ["a", "b"] * 20, "note": ["n"] * 40})
        for _ in range(4)
    ]
    seen: list[list[str]] = []

    class Spied(Mean):
        def __call__(self, frame: pd.DataFrame) -> Fitted:
            seen.append(list(frame.columns))
            return super().__call__(frame)

    analyze(tables, Spied("x", where={"ward": "a"}), n=40)
    assert seen[:4] == [["x", "ward", "note"], *[["x", "ward"]] * 3]
    # a function may choose records before it calls an estimand
    found = analyze(tables, lambda frame: Mean("x")(frame[frame["ward"] == "a"]), n=40)
    assert found.names == ("mean(x)",)
