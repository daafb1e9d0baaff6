"""Codes that were merged because they are rare: what is said of one of them alone is marked."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from margrave.formula import parse
from margrave.inference import (
    OLS,
    Analysis,
    By,
    Count,
    Estimand,
    Logistic,
    Mean,
    Proportion,
    analyze,
)
from margrave.inference.regression_terms import terms_of
from margrave.marginal import LinearMap
from margrave.release import Release
from margrave.release.diagnostics import merged_together
from margrave.schema import Boolean, Categorical, Integer, Schema
from margrave.transcript import Measurement, Transcript
from tests.support.by_hand import release_of

ROWS = 4_000
REGIONS = ["a", "b", "r1", "r2", "c"]
SCHEMA = Schema(
    [Categorical("region", REGIONS), Boolean("ill"), Integer("age", 0, 5), Integer("x", 0, 2)]
)
GROUPS = {"region": np.array([0, 1, 3, 3, 2])}
MARKED = "Codes that were merged because they are rare share one count"


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    region = rng.choice(REGIONS, ROWS, p=[0.4, 0.3, 0.05, 0.05, 0.2])
    ill = rng.random(ROWS) < np.where(region == "r1", 0.9, np.where(region == "r2", 0.1, 0.4))
    return pd.DataFrame(
        {
            "region": region,
            "ill": ill,
            "age": rng.integers(0, 6, ROWS),
            "x": rng.integers(0, 3, ROWS),
        }
    )


def release(pairs: Sequence[tuple[str, ...]], groups: Any = GROUPS) -> Release:
    """A release of every column, and of pairs with some codes merged."""
    return release_of(table(), SCHEMA, [*((a,) for a in SCHEMA.domain), *pairs], groups)


@pytest.fixture(scope="module")
def made() -> Release:
    return release([("region", "ill"), ("region", "age"), ("ill", "age")])


def analyzed(of: Release, fit: Any) -> Analysis:
    columns = None if isinstance(fit, Estimand) else "probe"
    return analyze(of, fit, 6, columns=columns, seed=1, method="bootstrap", bias_correct=False)


def marked(found: Analysis) -> list[str]:
    return [e.name for e in found if e.unmeasured]


def told(found: Analysis) -> list[str]:
    return [n for n in found.notes if MARKED in n]


RARE = ["C(region)[T.r1]", "C(region)[T.r2]"]
EVERY = None
FITS: list[tuple[Any, list[str] | None]] = [
    (OLS("ill ~ C(region)"), RARE),
    (Logistic("ill ~ region"), ["region[T.r1]", "region[T.r2]"]),
    (OLS("ill ~ C(region) - 1"), ["C(region)[r1]", "C(region)[r2]"]),
    (OLS("ill ~ C(region, Treatment('r1'))"), EVERY),
    (OLS("ill ~ C(region, Sum)"), [f"C(region, Sum)[S.{r}]" for r in REGIONS[:-1]]),
    (Logistic("region ~ age", success="r1"), EVERY),
    (Logistic("region ~ age", success="b"), []),
    (Logistic("region == 'r1' ~ age"), EVERY),
    (OLS("ill ~ age + I(region == 'r2')"), ["I(region == 'r2')[T.True]"]),
    (OLS("ill ~ I(region != 'b')"), []),
    (Mean("age", where={"region": "r2"}), EVERY),
    (Mean("age", where={"region": ["r1", "r2"]}), []),  # the whole group was counted
    (Mean("age", where={"region": ["a", "r2"]}), EVERY),
    (Proportion("region", "r1", where={"ill": True}), EVERY),
    (lambda f: smf.ols("age ~ C(region)", f).fit(), RARE),
    (By(Mean("age"), "region"), ["mean(age) | region = r1", "mean(age) | region = r2"]),
    (By(Mean("age", where={"region": "r1"}), "ill"), EVERY),
    (By(Count("region", "r2"), "ill"), EVERY),
]


@pytest.mark.parametrize(("fit", "names"), FITS, ids=range(len(FITS)))
def test_what_takes_a_merged_code_apart_is_marked(
    made: Release, fit: Any, names: list[str] | None
) -> None:
    found = analyzed(made, fit)
    assert marked(found) == (list(found.names) if names is None else names)
    (note,) = told(found)
    assert "region {r1, r2}" in note
    assert note.startswith("[!] ") is (names != [])
    before = found.notes[: found.notes.index(note)]
    assert all(n.startswith("[!] ") for n in before), "what decides is told first"


@pytest.mark.parametrize(
    "fit", [OLS("ill ~ age"), Proportion("region", "r1"), Mean("age")], ids=str
)
def test_an_analysis_without_the_column_is_told_nothing(made: Release, fit: Any) -> None:
    found = analyzed(made, fit)
    assert marked(found) == []
    assert told(found) == []


def test_a_function_of_ones_own_is_told_of_the_columns_that_it_joins(made: Release) -> None:
    def parts(frame: pd.DataFrame) -> Any:
        return {r: (frame.ill[frame.region == r].mean(), 0.01) for r in ("a", "r1")}

    joined = analyzed(made, parts)
    assert marked(joined) == ["r1"], "merged codes that change places move it"
    assert len(told(joined)) == 1
    assert told(analyzed(made, lambda f: {"ill": (f.ill.mean(), 0.01)})) == []


def test_values_that_were_merged_lose_their_relation() -> None:
    groups = {"age": np.array([0, 1, 2, 3, 3, 3])}
    found = analyzed(release([("ill", "age")], groups), OLS("ill ~ age"))
    assert marked(found) == list(found.names)
    (note,) = told(found)
    assert "age {3, 4, 5}" in note
    few = analyzed(release([("ill", "x")], {"x": np.array([0, 0, 1])}), OLS("ill ~ x"))
    assert marked(few) == list(few.names)
    assert told(analyzed(release([("ill", "age")], {}), OLS("ill ~ age"))) == []


def test_a_mean_whose_number_has_merged_codes_is_marked() -> None:
    """The numbers of a release have none for these groups, and call them not reliable."""
    groups = {"age": np.array([0, 1, 2, 3, 4, 4])}  # less than 5 % of the variance
    of = release([("ill", "age")], groups)
    found = analyzed(of, By(Mean("age"), "ill"))
    assert [e.unreliable for e in found] == [("age",), ("age",)]
    (note,) = (n for n in found.notes if "noisy counts alone" in n)
    assert note.startswith(
        "[!] By their noisy counts alone all 2 means are not reliable: age and ill were measured together in"
        " merged codes only"
    )
    (part,) = analyzed(of, Mean("age", where={"ill": True}))
    assert part.unreliable == ("age",)
    (alone,) = analyzed(of, Mean("age"))
    assert not alone.unreliable
    (apart,) = analyzed(of, Mean("age", where={"region": "a"}))
    assert apart.unmeasured
    assert not apart.unreliable


def test_which_codes_share_every_count() -> None:
    def of(*queries: dict[str, Any]) -> dict[str, tuple[tuple[int, ...], ...]]:
        entries = [
            Measurement(
                ("region", "ill"), np.ones((5, 2), dtype=np.int64), 1.0, Fraction(1), LinearMap(q)
            )
            for q in queries
        ]
        single = Measurement(("region",), np.ones(5, dtype=np.int64), 1.0, Fraction(1))
        return merged_together(SCHEMA.domain, Transcript((single, *entries)))

    assert of() == {}
    assert of({}) == {}
    assert of(GROUPS) == {"region": ((2, 3),)}
    assert of(GROUPS, {}) == {}, "another marginal tells them apart"
    assert of({"region": np.array([0, 0, 1, 1, 1])}, GROUPS) == {"region": ((2, 3),)}
    assert of({"region": np.array([0, 0, 1, 1, 2])}) == {"region": ((0, 1), (2, 3))}


@pytest.mark.parametrize(
    ("name", "joined", "levels"),
    [
        ("Intercept", ("y",), {}),
        ("x:C(z)[T.b]", ("y", "x", "z"), {"z": ("b", "")}),
        ("C(z)[T.it's: odd]:w[c]", ("y", "z", "w"), {"z": ("it's: odd", ""), "w": ("c",)}),
        ("C(z, Treatment(reference='x:y'))[T.b]", ("y", "z"), {"z": ("b", "x:y")}),
        ("C(z, Sum)[S.b]", ("y", "z"), {"z": None}),
        ("Q('a b')[T.c]", ("y", "a b"), {"a b": ("c", "")}),
        ("bs(x, df=4)[0]", ("y", "x"), {}),  # a spline has no levels
        ("np.log(x)", ("y", "x"), {}),
    ],
)
def test_what_a_coefficient_joins_and_compares(
    name: str, joined: tuple[str, ...], levels: dict[str, Any]
) -> None:
    formula = "y ~ bs(x, df=4) + np.log(x) + x * C(z) * w + Q('a b')"
    term = terms_of(parse(formula), (name,))[name]
    assert term.joins == joined
    assert term.levels == levels


def test_the_intercept_compares_every_reference() -> None:
    names = ("Intercept", "C(z)[T.b]", "C(w, Treatment('k'))[T.c]", "C(v, Sum)[S.a]", "x")
    tree = parse("y ~ C(z) + C(w, Treatment('k')) + C(v, Sum) + x")
    assert terms_of(tree, names)["Intercept"].levels == {"z": ("",), "w": ("k",)}


def test_values_that_a_condition_compares_are_levels() -> None:
    tree = parse("(z == 'b') | (w != 'k') ~ x + I(v == 3) + C(u == 'a')")
    names = ("Intercept", "x", "I(v == 3)[T.True]", "C(u == 'a')[T.True]")
    terms, outcome = terms_of(tree, names), {"z": ("b",), "w": ("k",)}
    own: list[dict[str, Any]] = [{}, {}, {"v": ("3",)}, {"u": ("a",)}]
    assert [terms[n].levels for n in names] == [outcome | levels for levels in own]


def test_an_unreadable_level_counts_for_all() -> None:
    tree, name = parse("y ~ C(z)"), "C(z[T.a(b]"
    assert terms_of(tree, ("C(z)[T.a](']",))["C(z)[T.a](']"].joins == ("y", "z")
    assert terms_of(tree, (name,))[name].levels == {"y": None, "z": None}
