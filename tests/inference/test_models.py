"""Ready analyses against their textbook forms, and the formulas that they take."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf

import margrave
from margrave.errors import InputError
from margrave.formula import columns_in
from margrave.inference import (
    OLS,
    Correlation,
    Count,
    Logistic,
    Mean,
    Proportion,
    Quantile,
    analyze,
)
from margrave.inference.caveats.merged_codes import valued
from margrave.inference.columns import value_of
from margrave.inference.in_words import empty_frame
from margrave.inference.regression import check_formula
from margrave.schema import Boolean, Coded, Column, Date, Integer, Real, Schema, Timestamp


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    n = 500
    group = pd.Categorical(rng.choice(["a", "b"], n), categories=["b", "a", "never"])
    x = np.where(rng.random(n) < 0.05, np.nan, rng.normal(2.0, 1.5, n))
    odds = np.exp(-0.5 + 0.4 * np.nan_to_num(x) + 0.8 * (group == "a"))
    answer = pd.Categorical(
        np.where(rng.random(n) < odds / (1 + odds), "yes", "no"), categories=["no", "yes"]
    )
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 90, n), "D")
    return pd.DataFrame(
        {"x": x, "group": group, "answer": answer, "day": day, "zip code": rng.integers(0, 9, n)}
    )


def test_a_mean(frame: pd.DataFrame) -> None:
    x = frame.x.dropna()
    found = Mean("x")(frame)
    assert found.estimates[0] == pytest.approx(x.mean())
    assert found.variances[0] == pytest.approx(x.var() / len(x))
    with pytest.raises(InputError, match="holds no numbers"):
        Mean("group")(frame)
    with pytest.raises(ValueError, match="no record has a value of column 'x'"):
        Mean("x")(frame.assign(x=np.nan))


@pytest.mark.parametrize(
    ("column", "value"), [("group", "a"), ("answer", "yes"), ("zip code", "3"), ("zip code", 3)]
)
def test_a_proportion(frame: pd.DataFrame, column: str, value: Any) -> None:
    found = Proportion(column, value)(frame)
    count = int((frame[column].astype(str) == str(value)).sum())
    p = (count + 0.5) / 501
    assert found.estimates[0] == pytest.approx(count / 500)
    assert found.variances[0] == pytest.approx(p * (1 - p) / 500)


def test_a_proportion_of_none_keeps_some_variance(frame: pd.DataFrame) -> None:
    found = Proportion("group", "never")(frame)
    assert found.estimates[0] == 0.0
    assert 0 < found.variances[0] < 1 / 500**2


def test_the_share_of_the_missing(frame: pd.DataFrame) -> None:
    """Of all records; and what is missing counts for no share of another value."""
    truth = (frame.answer == "yes").astype(float).where(frame.index > 9)
    given = frame.assign(ill=truth, answer=frame.answer.where(frame.index > 9))
    for column in ("ill", "answer", "x"):
        found, share = Proportion(column, None)(given), given[column].isna().mean()
        assert found.names == (f"{column} missing",)
        assert found.estimates[0] == pytest.approx(share)
        assert found.variances[0] == pytest.approx(share * (1 - share) / 500, rel=0.1)
    for value in ("yes", True, "1"):
        assert Proportion("ill", value)(given).estimates[0] == pytest.approx(truth.mean())
    assert Proportion("ill", "no")(given).estimates[0] == pytest.approx(1 - truth.mean())
    schema = Schema([Boolean("ill", missing=True), Boolean("well")])
    empty = pd.DataFrame({"ill": pd.Series([], dtype=float), "well": pd.Series([], dtype=bool)})
    basis = Proportion("ill", None)(given).basis
    assert basis is not None
    assert valued(basis, schema) == ()
    Proportion("ill", None).check(empty, schema)
    Proportion("ill", "yes").check(empty, schema)
    for model, words in [
        (Proportion("well", None), "'well' lacks no value"),
        (Proportion("ill", 5), "no value 5"),
    ]:
        with pytest.raises(InputError, match=words):
            model.check(empty, schema)


def test_values_as_columns_hold_them(frame: pd.DataFrame) -> None:
    truths = pd.Series([True, False])
    assert value_of(truths, "t", "true") is True
    assert value_of(pd.Series(pd.Categorical([False, True])), "t", "TRUE") is True
    assert value_of(frame["day"], "day", "2020-01-05") == pd.Timestamp("2020-01-05")
    holed = pd.Series(pd.Categorical([False, True, None]))
    for text, truth in [
        ("yes", True),
        ("no", False),
        (1, True),
        ("0", False),
        (True, True),
        ("T", True),
    ]:
        assert value_of(truths, "t", text) is truth
        assert value_of(holed, "t", text) is truth
    for column, value, words in [
        (holed, "maybe", "true and false"),
        (frame["group"], "z", "has no value 'z'"),
        (truths, "maybe", "true and false"),
        (frame["x"], "high", "cannot hold"),
    ]:
        with pytest.raises(InputError, match=words):
            value_of(column, "c", value)


def test_a_quantile_and_its_variance() -> None:
    """The asymptotic variance p (1 − p) / (n f²), f the density at the quantile."""
    rng, variances, estimates = np.random.default_rng(3), [], []
    for _ in range(400):
        found = Quantile("x", 0.75)(pd.DataFrame({"x": rng.normal(size=400)}))
        estimates.append(float(found.estimates[0]))
        variances.append(float(found.variances[0]))
    z = 0.6744897501960817
    ideal = 0.75 * 0.25 / 400 / (math.exp(-z * z / 2) / math.sqrt(2 * math.pi)) ** 2
    assert np.mean(variances) == pytest.approx(ideal, rel=0.1)
    assert np.var(estimates) == pytest.approx(ideal, rel=0.4)
    assert np.mean(estimates) == pytest.approx(z, abs=0.02)
    assert "normal" in found.basis.notes[0]
    with pytest.raises(InputError, match="quantile"):
        Quantile("x", 1.0)


def test_a_correlation_and_its_variance() -> None:
    """That of a normal distribution, (1 − r²)² / n, which does not hold where the spread is uneven."""
    rng, r, n = np.random.default_rng(7), 0.6, 400

    def normal() -> Any:
        x = rng.normal(size=n)
        return x, r * x + np.sqrt(1 - r * r) * rng.normal(size=n)

    def uneven() -> Any:
        x = rng.normal(size=n)
        return x, x + x * rng.normal(size=n)

    for drawn, known in ((normal, (1 - r * r) ** 2 / n), (uneven, None)):
        fitted = [
            Correlation("x", "y")(pd.DataFrame(dict(zip("xy", drawn(), strict=True))))
            for _ in range(600)
        ]
        points, variances = (
            np.array([getattr(f, part)[0] for f in fitted]) for part in ("estimates", "variances")
        )
        assert variances.mean() == pytest.approx(points.var(), rel=0.3)
        assert known is None or variances.mean() == pytest.approx(known, rel=0.05)
    x, y = normal()
    frame = pd.DataFrame({"x": x, "y": y}).assign(y=lambda f: f.y.where(f.index > 5))
    assert Correlation("y", "x")(frame).estimates[0] == pytest.approx(frame.corr().loc["x", "y"])
    basis = Correlation("y", "x")(frame).basis
    assert basis is not None
    assert basis.terms["corr(y, x)"].depends_on(("y", "x"))
    with pytest.raises(InputError, match="twice"):
        Correlation("x", "x")
    with pytest.raises(InputError, match="no column 'z'"):
        Correlation("x", "z").check(frame)


def test_dates_are_numbers(frame: pd.DataFrame) -> None:
    days = frame.assign(day=(frame.day - pd.Timestamp("1970-01-01")).dt.days)
    for model in (Mean("day"), Quantile("day", 0.3)):
        found, plain = model(frame), model(days)
        assert found.estimates == pytest.approx(plain.estimates)
        assert found.variances == pytest.approx(plain.variances)
        assert (found.days, plain.days) == (True, False)
    whole = frame[["day"]]
    told = analyze(
        [whole, whole.sample(frac=1.0, replace=True, random_state=1)], Mean("day"), n=500
    )
    (row,) = (dict(zip(e.headings, e.cells(0.95), strict=True)) for e in told)
    for cell in ("estimate", "low", "high"):
        assert re.fullmatch(r"2020-\d\d-\d\d \d\d:\d\d", row[cell])
    assert re.fullmatch(r"[\d.]+ days", row["std error"])
    assert 18_262 < told["mean(day)"].estimate < 18_628, "as a number it is in days since 1970"
    assert not told.contrast({"mean(day)": 2}).days
    note = next(n for n in told.notes if "days since 1970" in n)
    low, high = re.findall(r"interval of (2020-\S+ \S+) to (2020-\S+ \S+)\.", note)[0]
    assert pd.Timestamp(low) < frame.day.mean() < pd.Timestamp(high)


def test_an_estimate_has_the_spelling_of_the_category(frame: pd.DataFrame) -> None:
    for model in (Proportion("answer", "YES"), Proportion("answer", "yes")):
        assert model(frame).names == ("answer = yes",)
    assert Count("answer", "Yes")(frame).names == ("count(answer = yes)",)
    ill = frame.assign(ill=frame.answer == "yes")
    assert Proportion("ill", "TRUE")(ill).names == ("ill = true",)


def test_truths_and_comparisons_are_outcomes_of_linear_regressions(frame: pd.DataFrame) -> None:
    given = frame.assign(ill=frame.answer == "yes", one=(frame.answer == "yes").astype(float))
    given["holed"] = pd.Categorical([None, *given.ill[1:]], categories=[False, True])
    plain = OLS("one ~ group")(given)
    for outcome in ("ill", "answer == 'yes'"):
        found = OLS(f"{outcome} ~ group")(given)
        assert found.names == plain.names
        assert found.estimates == pytest.approx(plain.estimates)
    holed = OLS("holed ~ group")(given)
    assert holed.estimates == pytest.approx(OLS("one ~ group")(given.iloc[1:]).estimates)


def in_types_of_ones_own(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The frame as analysts have it: texts and truths as objects, as pandas' own texts, as nullable types."""
    truth = (frame.answer == "yes").astype(object).where(frame.index > 3, None)
    given = frame.assign(ill=truth)[["x", "group", "answer", "ill", "zip code"]]
    texts = given.assign(group=frame.group.astype(object), answer=frame.answer.astype(object))
    return {
        "given": given.assign(ill=pd.Categorical(truth, categories=[False, True])),
        "objects": texts,
        "texts": texts.assign(group=texts.group.astype("str"), answer=texts.answer.astype("str")),
        "nullable": texts.convert_dtypes(),
    }


@pytest.mark.parametrize("types", ["objects", "texts", "nullable"])
def test_frames_of_ones_own_need_no_categories(frame: pd.DataFrame, types: str) -> None:
    """A text may be an object, and a truth with missing values too."""
    frames = in_types_of_ones_own(frame)
    for model in (
        Proportion("group", "a"), Proportion("ill", "yes"), Mean("x"), OLS("x ~ C(group, Treatment('a'))"),
        OLS("ill ~ x"), OLS("x ~ ill"), Logistic("answer ~ x"), Logistic("group ~ x", success="a"),
        Logistic("ill ~ x"),
    ):  # fmt: skip
        expected, found = model(frames["given"]), model(frames[types])
        assert found.names == expected.names
        assert found.estimates == pytest.approx(expected.estimates)
        assert found.variances == pytest.approx(expected.variances)
    with pytest.raises(InputError, match=r"has no value 'z'\. Its values: a, b"):
        Proportion("group", "z")(frames[types])
    with pytest.raises(InputError, match="not a number"):
        OLS("answer ~ x")(frames[types])


def test_values_that_the_schema_does_not_hold() -> None:
    january = Date("day", date(2020, 1, 1), date(2020, 1, 31))
    schema = Schema([Integer("ill", 0, 1), january, Boolean("smokes")])
    types = {"ill": pd.Series([], dtype="int64"), "day": pd.Series([], dtype="datetime64[ns]")}
    empty = pd.DataFrame({**types, "smokes": pd.Series([], dtype=bool)})
    for model in (
        Proportion("ill", 1), Proportion("ill", "0"), Proportion("day", "2020-01-05"),
        Proportion("smokes", "yes"), Logistic("ill ~ smokes", success=1), OLS("smokes ~ ill"),
    ):  # fmt: skip
        model.check(empty, schema)
    for model, words in [
        (Proportion("ill", 5), "The value 5 of column 'ill' is above the upper bound, 1"),
        (Proportion("ill", "5"), "Give a value from 0 to 1"),
        (Proportion("ill", 0.5), "'ill' holds whole numbers, and 0.5 is not one. It has 0, 1"),
        (Proportion("ill", "True"), "'ill' holds whole numbers, and 'True' is not one"),
        (Proportion("day", "2021-01-05"), "column 'day' is above the upper bound"),
        (Logistic("ill ~ smokes", success=7), "The value 7 of column 'ill' is above"),
        (Proportion("smokes", "maybe"), "true or false"),
    ]:
        with pytest.raises(InputError, match=words):
            model.check(empty, schema)


@pytest.mark.parametrize("robust", [False, True])
def test_linear_regression(frame: pd.DataFrame, robust: bool) -> None:
    found = OLS("x ~ group + Q('zip code') + day", robust=robust)(frame)
    days = frame.assign(
        day=(frame.day - pd.Timestamp("1970-01-01")).dt.days,
        group=frame.group.cat.remove_unused_categories(),
    )
    direct = smf.ols("x ~ group + Q('zip code') + day", days).fit(
        cov_type="HC1" if robust else "nonrobust"
    )
    assert set(found.names) == set(
        direct.params.index
    )  # without group[T.never], which nobody is in
    for name, estimate, variance in zip(found.names, found.estimates, found.variances, strict=True):
        assert estimate == pytest.approx(direct.params[name], rel=1e-6)
        assert variance == pytest.approx(direct.bse[name] ** 2, rel=1e-6)


@pytest.mark.parametrize(
    "right",
    [
        "C(three) * C(two)",
        "C(two):C(three)",
        "C(three):x:C(two)",
        "x * C(three) * C(two)",
        "(C(three) + x + C(two)) ** 2",
        "C(three) / x",
        "0 + C(two):C(three)",
        "C(three, Treatment('c')) : (x + C(two))",
    ],
)
def test_columns_of_interactions_have_the_names_of_statsmodels(right: str) -> None:
    """Names and columns in the order of statsmodels: a wrong order would exchange coefficients."""
    rng = np.random.default_rng(5)
    given = pd.DataFrame({"x": rng.normal(size=300), "two": rng.choice(list("pq"), 300)})
    given["three"] = rng.choice(list("abc"), 300)
    means = {"a": 0.0, "b": 2.0, "c": 5.0}
    y = given.three.map(means) * (1 + (given.two == "q")) + given.x * given.three.map(means)
    given["y"] = y + 0.1 * rng.normal(size=300)
    found, direct = OLS(f"y ~ {right}")(given), smf.ols(f"y ~ {right}", given).fit()
    assert [n.replace(" ", "") for n in found.names] == [
        n.replace(" ", "") for n in direct.params.index
    ]
    assert found.estimates == pytest.approx(direct.params.to_numpy(), rel=1e-8)
    assert found.variances == pytest.approx(direct.bse.to_numpy() ** 2, rel=1e-8)


def test_numbers_as_categories_have_one_reference_in_all_data_sets() -> None:
    """Their levels are the values that occur: a rare first value is the reference of some data sets alone."""
    rng = np.random.default_rng(0)
    tables = []
    for i in range(12):
        k = rng.integers(2, 6, 300)
        k[0] = 1 if i % 2 else 2
        y = 3.0 * k + rng.normal(0, 0.1, 300)
        tables.append(pd.DataFrame({"k": k, "y": y}))
    commonest = int(tables[0].k.mode()[0])
    found = analyze(tables, OLS("y ~ C(k)"), n=300)
    assert found["Intercept"].estimate == pytest.approx(3 * commonest, abs=0.1)
    for level in {2, 3, 4, 5} - {commonest}:
        estimate = found[f"C(k)[T.{level}]"]
        assert estimate.estimate == pytest.approx(3 * (level - commonest), abs=0.1)
        assert estimate.used == 12
    assert found["C(k)[T.1]"].used == 6
    words = f"The reference level of C(k) is '{commonest}': the commonest."
    assert any(n.startswith(words) for n in found.notes)
    named = analyze(tables, OLS("y ~ C(k, Treatment(3))"), n=300)
    assert named["Intercept"].estimate == pytest.approx(9, abs=0.1)
    for coding in ("Sum", "Poly", "Helmert", "Diff"):
        with pytest.raises(InputError, match="the data sets differ in them: 1, 2, 3, 4, 5 in one"):
            analyze(tables, OLS(f"y ~ C(k, {coding})"), n=300)
        assert len(analyze(tables, OLS(f"y ~ C(k, {coding})", where={"k": (2, 5)}), n=300)) == 4
    with pytest.raises(
        InputError, match=r"no record has 1, the reference of C\(k, Treatment\(1\)\)"
    ):
        analyze(tables, OLS("y ~ C(k, Treatment(1))"), n=300)
    halves = analyze(tables, OLS("y ~ C(k, Treatment(1))"), n=300, on_unstable="drop")
    assert halves["Intercept"].used == 6
    schema = Schema([Integer("k", 1, 5), Integer("y", 0, 9)])
    with pytest.raises(InputError, match="above the upper bound, 5"):
        OLS("y ~ C(k, Treatment(9))").check(tables[0].astype(int), schema)


def test_a_spline_that_adds_up_to_the_intercept_is_refused(frame: pd.DataFrame) -> None:
    for spline, remedy in [
        ("cr(x, df=4)", r"Write cr\(x, df=4, constraints='center'\)"),
        ("bs(x, df=5, include_intercept=True)", r"Write bs\(x, df=5\)"),
    ]:
        with pytest.raises(InputError, match=remedy):
            OLS(f"`zip code` ~ {spline}")(frame)
        assert len(OLS(f"`zip code` ~ {spline} - 1")(frame).names) > 3
    assert len(OLS("`zip code` ~ cr(x, df=4, constraints='center')")(frame).names) == 5


def test_linear_regression_wants_a_number(frame: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="not a number"):
        OLS("answer ~ x")(frame)


@pytest.mark.parametrize(
    ("formula", "success", "sign"),
    [
        ("answer ~ x + group", None, 1),
        ("answer ~ x + group", "yes", 1),
        ("answer ~ x + group", "no", -1),
        ("answer == 'yes' ~ x + group", None, 1),
    ],
)
def test_logistic_regression(frame: pd.DataFrame, formula: str, success: Any, sign: int) -> None:
    found = Logistic(formula, success=success)(frame)
    plain = frame.assign(
        one=(frame.answer == "yes").astype(float), group=frame.group.cat.remove_unused_categories()
    )
    direct = smf.logit("one ~ x + group", plain).fit(disp=0)
    assert found.converged
    assert found.names == ("Intercept", "group[T.a]", "x")
    assert found.estimates == pytest.approx(
        sign * direct.params[list(found.names)].to_numpy(), rel=1e-5
    )
    assert found.variances == pytest.approx(direct.bse[list(found.names)].to_numpy() ** 2, rel=1e-5)
    assert found.estimates[2] * sign == pytest.approx(0.4, abs=0.3)


def test_a_logistic_regression_states_its_outcome_and_references(frame: pd.DataFrame) -> None:
    known = frame.copy()
    known.attrs["commonest"] = {"group": "b"}
    for success, levels in ((None, None), ("no", ("no",))):
        basis = Logistic("answer ~ group + x", success=success)(known).basis
        assert basis is not None
        assert basis.terms["x"].levels == {"answer": levels}
        assert basis.needed == ("answer", "group", "x")
        assert any(n.startswith("The reference level of group is 'b'") for n in basis.notes)


def test_missing_outcomes_are_left_out(frame: pd.DataFrame) -> None:
    whole, holed = frame.copy(), frame.copy()
    holed.loc[:99, "answer"] = np.nan
    expected = Logistic("answer ~ group")(whole.iloc[100:]).estimates
    assert Logistic("answer ~ group")(holed).estimates == pytest.approx(expected)
    assert Logistic("answer == 'yes' ~ group")(holed).estimates == pytest.approx(expected)


@pytest.mark.parametrize(
    ("outcome", "same"),
    [
        ("x.isna()", lambda f: f.x.isna()),
        ("x.notna() & `zip code` > 3", lambda f: f.x.notna() & (f["zip code"] > 3)),
        (
            "x.isna() | answer == 'yes'",
            lambda f: (f.x.isna() | (f.answer == "yes")).where(f.answer.notna()),
        ),
        ("not x.notna()", lambda f: f.x.isna()),
    ],
)
def test_what_is_missing_is_an_outcome(frame: pd.DataFrame, outcome: str, same: Any) -> None:
    """A record is left out for what is missing of other columns, and not for what the outcome asks."""
    given = frame.assign(answer=frame.answer.where(frame.index % 7 > 0))
    plain = given.assign(one=same(given).astype(float))
    for model in (OLS, Logistic):
        found, expected = model(f"{outcome} ~ group")(given), model("one ~ group")(plain)
        assert found.names == expected.names
        assert found.estimates == pytest.approx(expected.estimates)
    assert found.basis is not None
    assert set(found.basis.columns) >= {"x", "group"}


def test_a_truth_as_an_outcome_of_statsmodels_is_told_of(frame: pd.DataFrame) -> None:
    given = [frame.assign(ill=frame["zip code"] > 4)[["x", "ill"]]] * 2
    with pytest.raises(
        InputError, match=r'must be a number there: .*astype\(int\).*Logistic\("ill ~ age"\)'
    ):
        analyze(given, lambda f: smf.logit("ill ~ x", f).fit(disp=0), n=500)


def test_parts_of_dates_and_pandas_in_formulas(frame: pd.DataFrame) -> None:
    given = frame.assign(
        day=frame.day.where(frame.index > 20), k=frame["zip code"].where(frame.index > 20)
    )
    y = (given.day + pd.Timedelta(days=330)).dt.year
    plain = given.assign(m=given.day.dt.month, w=given.day.dt.day_of_week, y=y).dropna(
        subset=["day"]
    )
    plain = plain.astype({"m": int, "w": int, "y": int, "k": int})
    for parts, columns in [
        ("C(month(day)) + weekday(day)", "C(m) + w"), ("year(day + 330) + C(k)", "y + C(k)"),
        ("pd.cut(k, [-1, 4, 9])", "C(k > 4)"),
    ]:  # fmt: skip
        model = OLS(f"x ~ {parts}")
        model.check(given)
        found, expected = model(given), OLS(f"x ~ {columns}")(plain)
        assert found.estimates == pytest.approx(expected.estimates)
        assert not any(".0]" in n for n in found.names)
        assert any(
            found.basis.terms[n].depends_on(("x", "day" if "day" in parts else "k"))
            for n in found.names[1:]
        )
    times = given.assign(day=given.day + pd.to_timedelta(given.index % 7 * 60 + 59, unit="m"))
    hours = plain.assign(h=times.day.dt.hour)
    found, expected = (
        m(f) for m, f in ((OLS("x ~ C(hour(day))"), times), (OLS("x ~ C(h)"), hours))
    )
    assert found.estimates == pytest.approx(expected.estimates)
    with pytest.raises(InputError, match=r"days since 1970 in formulas. Write C\(year\(visit\)\)"):
        OLS("x ~ C(day.dt.year)").check(given)


def test_a_separated_outcome_is_told(frame: pd.DataFrame) -> None:
    parted = frame.assign(answer=np.where(frame.group == "a", 1, frame["zip code"] % 2))
    with pytest.warns(Warning, match="converge"):
        assert not Logistic("answer ~ group")(parted).converged
    constant = frame.assign(answer=0)
    found = analyze(
        [
            constant[["x", "answer"]].dropna().iloc[:400],
            constant[["x", "answer"]].dropna().iloc[50:450],
        ],
        Logistic("answer ~ x"),
        n=400,
    )
    assert not any(e.has_interval for e in found)
    assert "no stable estimate" in found.notes[0]


def test_outcomes_that_are_not_two_values(frame: pd.DataFrame) -> None:
    for formula, success, words in [
        ("group ~ x", None, "3 values"),
        ("x ~ group", None, "other values than 0 and 1"),
        ("x + 1 ~ group", None, "not a comparison"),
        ("x > 1 ~ group", "yes", "Leave success out"),
        ("x ** ~ group", None, "a number was expected"),
        ("group ~ x", "d", "has no value"),
    ]:
        with pytest.raises(InputError, match=words):
            Logistic(formula, success=success)(frame)


def test_a_comparison_is_proposed_with_a_number_as_people_write_it() -> None:
    schema = Schema([Real("cost", 0, 10_000, bins=4), Integer("pay", 0, 4_000_000, bins=4)])
    rows = empty_frame(schema)
    for formula, words in (
        ("cost ~ pay", "cost > 5000 ~ pay"),
        ("pay ~ cost", "pay > 2000000 ~ cost"),
    ):
        with pytest.raises(InputError) as refused:
            Logistic(formula).check(rows, schema)
        assert f'such as "{words}"' in str(refused.value)
        Logistic(words).check(rows, schema)


def test_names_in_formulas() -> None:
    columns = ["y", "x", "zip code", "age"]
    assert str(check_formula("np.log(y)~C(x,Treatment(reference=1))*bs(age, 3)-1", columns)) == (
        "np.log(y) ~ C(x, Treatment(1)) * bs(age, df=3) - 1"
    )
    tree = check_formula("`zip code` > 3 and not x ~ age", columns)
    assert (columns_in(tree.left), columns_in(tree.right)) == (("zip code", "x"), ("age",))
    assert check_formula("y ~ Q('zip code')", columns)
    for formula, words in [
        ("y ~ x + agee", "names 'agee', which is not a column.*The columns are: y, x"),
        ("wage ~ x", "names 'wage'"),
        ("y ~ Q('zip')", "names 'zip'"),
        ("y", "at character 2: '~' after the outcome was expected"),
        ("y ~", "at character 4: a column"),
        ("y ~ x ~ x", "at character 7: an operator or the end was expected"),
        ("y ~ C(x", r"at character 8: '\)' was expected"),
    ]:
        with pytest.raises(InputError, match=words):
            check_formula(formula, columns)


def test_models_say_what_is_missing() -> None:
    empty = pd.DataFrame(
        {"x": pd.Series([], dtype=float), "g": pd.Categorical([], categories=["a", "b"])}
    )
    for model in (Mean("x"), Proportion("g", "a"), Quantile("x"), OLS("x ~ g"), Logistic("g ~ x")):
        model.check(empty)
    with pytest.raises(InputError, match="'w'"):
        Logistic("g ~ w").check(empty)


def test_a_coefficient_is_found_in_any_spelling(frame: pd.DataFrame) -> None:
    given = [frame[["x", "group", "zip code"]]] * 2
    found = analyze(given, OLS('x ~ C( group,Treatment(reference="a") ) + `zip code`'), n=500)
    assert found.names == ("Intercept", "C(group, Treatment('a'))[T.b]", "Q('zip code')")
    assert found['C(group, Treatment("a"))[T.b]'] is found.estimates[1]
    assert found["`zip code`"] is found['Q("zip code")']
    assert found.test(['C(group, Treatment("a"))']).names == ("C(group, Treatment('a'))[T.b]",)
    with pytest.raises(InputError, match="There is no estimate 'C"):
        found["C(group)[T.b]"]


def test_a_reference_with_quotes_of_its_own_names_a_term() -> None:
    rng = np.random.default_rng(0)
    answers = rng.choice(["Don't know", "yes", r"a\b"], 300)
    table = pd.DataFrame({"a": answers, "x": rng.normal(size=300)})
    given = [table.sample(frac=1, replace=True, random_state=i) for i in range(6)]
    for reference in ("Don't know", r"a\\b"):
        term = f'C(a, Treatment("{reference}"))'
        found = analyze(given, OLS(f"x ~ {term}"), n=300)
        assert found.test([term]).names == found.names[1:]
        assert found[f"{term}[T.yes]"] is found.estimates[2]


def test_terms_that_do_not_fit_the_columns_are_found_first(frame: pd.DataFrame) -> None:
    empty = frame.assign(k=frame.x).iloc[:0]
    for right, words in [
        ("np.log(group)", "group is not a number"),
        ("C(group, Treatment('z'))", "has no value 'z'. Its values: b, a, never"),
        ("(group > 'a')", "has no order"),
        ("C(group == 'z')", "has no value 'z'"),
        (
            "C(group, Treatment('Never'))",
            r"has no value 'Never'. Did you mean 'never'\? Its values: b, a, never",
        ),
        ("C(k & group)", "group is not true or false"),
        ("(k == 'a')", "k does not hold texts"),
        ("C(day > 'soon')", "day holds dates"),
    ]:
        for model in (OLS(f"x ~ {right}"), Logistic(f"answer ~ {right}")):
            with pytest.raises(InputError, match=words):
                model.check(empty)


def test_a_function_that_is_infinite_somewhere_is_an_error_of_that_data_set(
    frame: pd.DataFrame,
) -> None:
    frame = frame.assign(y=frame.x)
    given = frame.assign(x=np.where(frame.index == 3, 0.0, frame.x.abs()))
    with pytest.raises(
        ValueError, match=r"np.log\(x\) is infinite for a record: use a function that is finite"
    ):
        OLS("y ~ np.log(x)")(given)
    negative = frame.assign(x=np.where(frame.index < 9, -1.0, frame.x.abs() + 1.0))
    kept = negative[(negative.index >= 9)]
    assert OLS("y ~ np.log(x)")(negative).estimates == pytest.approx(
        OLS("y ~ np.log(x)")(kept).estimates
    )


@pytest.mark.parametrize(
    ("column", "remedy"),
    [
        (Real("cost", 0, 9, bins=3), r"C\(pd.cut\(cost, "),
        (Timestamp("cost", datetime(2020, 1, 1), datetime(2020, 1, 3)), r"C\(hour\(cost\)\)"),
    ],
)
def test_a_category_of_every_real_number_or_time_is_refused(column: Column, remedy: str) -> None:
    schema = Schema([column, Real("y", 0, 1)])
    frame = pd.DataFrame({"cost": [1.5, 2.5], "y": [0.5, 0.6]})
    with pytest.raises(InputError, match=f"a category for every value of 'cost'. .*{remedy}"):
        OLS("y ~ C(cost)").check(frame, schema)


def test_the_reference_of_numbers_is_that_of_the_release_whatever_the_seed() -> None:
    """Three values are nearly as common: a data set alone may have any of them the most often."""
    k = np.repeat([0, 1, 2], [1000, 1010, 1000])
    table = pa.table({"k": k, "y": np.tile([0, 1], 1505)})
    schema = Schema([Integer("k", 0, 2), Integer("y", 0, 1)])
    release = margrave.synthesize(table, schema, epsilon=1e4, delta=1e-9, mechanism="mst", seed=1)
    for seed in range(6):
        found = analyze(release, OLS("y ~ C(k)"), m=3, seed=seed)
        assert {e.name for e in found} == {"Intercept", "C(k)[T.0]", "C(k)[T.2]"}


def test_an_outcome_of_several_categories_is_compared_one_at_a_time() -> None:
    frame = pd.DataFrame({"ward": pd.Categorical(["a", "b", "c"]), "x": [1.0, 2.0, 3.0]})
    with pytest.raises(
        InputError, match=r"Compare one of its values .*: margrave analyze"
    ) as caught:
        OLS("ward ~ x")(frame)
    formula = "\"ward == 'a' ~ x\""
    assert f"logistic RELEASE {formula} (in Python Logistic({formula}))." in str(caught.value)


@pytest.mark.parametrize(
    ("column", "comparison"),
    [
        (Integer("y", 0, 11), "y > 5"),
        (Real("y", 0.0, 5.0), "y > 2.5"),
        (Date("y", date(2020, 1, 1), date(2020, 1, 31)), "y > '2020-01-16'"),
        (Coded("y", 4), "y > 2"),
    ],
)
def test_a_logistic_outcome_of_numbers_has_a_comparison_in_the_middle_of_its_range(
    column: Column, comparison: str
) -> None:
    schema = Schema([column, Real("x", 0.0, 1.0)])
    with pytest.raises(InputError) as caught:
        Logistic("y ~ x").check(empty_frame(schema), schema)
    assert f'such as "{comparison} ~ x".' in str(caught.value)
    Logistic(f"{comparison} ~ x").check(empty_frame(schema), schema)


def test_an_outcome_does_not_explain_itself(frame: pd.DataFrame) -> None:
    frame = frame.assign(y=frame.x + 1.0)
    for formula in (
        "x ~ y + x",
        "x ~ C(x > 2)",
        "np.log(x) ~ x",
        "x > 2 ~ bs(x, df=4)",
        "x - y ~ x + y",
    ):
        for model in (OLS(formula), Logistic(formula)):
            with pytest.raises(
                InputError, match=r"on the right side too. Leave (it|them) out there"
            ):
                model.check(frame.iloc[:0])
    for formula in ("x - y ~ x", "hour(day) ~ weekday(day)", "x ~ y + x - x"):
        OLS(formula).check(frame.iloc[:0])
