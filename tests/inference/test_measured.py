"""What was never measured together is named first, and every estimate that rests on it is marked."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf

from margrave.cli.main import run
from margrave.errors import InputError
from margrave.formula import columns_in, parse
from margrave.inference import (
    OLS,
    Analysis,
    Basis,
    By,
    Correlation,
    Estimand,
    EstimateTerm,
    Fitted,
    Logistic,
    Mean,
    Proportion,
    Quantile,
    analyze,
)
from margrave.inference.regression_terms import terms_of
from margrave.marginal import LinearMap, LinearQuery
from margrave.models import GraphicalFit
from margrave.models.specs import fit_spec
from margrave.provenance import Provenance, PublicFacts
from margrave.release import Release
from margrave.release.bootstrap import Bootstrap
from margrave.release.diagnostics import counted_together, known_together, with_followers
from margrave.release.draws import ABSENT
from margrave.schema import Boolean, Categorical, Depends, Integer, Schema
from margrave.transcript import Answer, Measurement, PublicReading, Transcript
from tests.support import fake_model
from tests.support.by_hand import release_of

SCHEMA = Schema(
    [
        Integer("age", 0, 3, bins=4),
        Integer("stay", 0, 3, bins=4),
        Categorical("ward", ["a", "b"]),
        Boolean("ill"),
    ]
)
SHARES = (
    np.random.default_rng(5)
    .dirichlet(np.full(SCHEMA.domain.cells(), 3.0))
    .reshape(SCHEMA.domain.sizes)
)
OWN = PublicFacts(2_000, ("age", "ill"), "0" * 64, "a register", same_records=True)
PAIRS = [("age", "stay"), ("age", "ward"), ("stay", "ward")]


def release(
    *cliques: tuple[str, ...], extra: tuple[Any, ...] = (), schema: Schema = SCHEMA
) -> Release:
    """A release of these marginals of one table, with a little noise, and of other entries."""
    rng, names = np.random.default_rng(1), schema.domain.attributes
    entries = []
    for clique in cliques:
        axes = tuple(i for i, a in enumerate(names) if a not in clique)
        exact = 2_000 * SHARES.sum(axis=axes)
        values = np.rint(exact + rng.normal(0.0, 3.0, exact.shape)).astype(np.int64)
        entries.append(Measurement(clique, values, 3.0, Fraction(1, 18)))
    transcript = Transcript((*entries, *extra))
    model = GraphicalFit()(schema.domain, transcript, rng=np.random.default_rng(0))
    provenance = Provenance("by hand", fit=fit_spec(GraphicalFit()))
    return Release(schema, model, transcript, fake_model.account_of(transcript), provenance)


def analyzed(of: Release, fit: Any) -> Analysis:
    columns = None if isinstance(fit, Estimand) else "probe"
    return analyze(of, fit, 4, columns=columns, seed=1, method="bootstrap", bias_correct=False)


def marked(found: Analysis) -> list[str]:
    return [e.name for e in found if e.unmeasured]


def test_a_function_that_uses_a_column_left_out_is_refused_with_its_columns() -> None:
    of = release(("age", "stay"))
    uses: dict[str, Any] = {
        "attribute": lambda f: (f.stay.mean(), 1.0),
        "key": lambda f: (f["stay"].mean(), 1.0),
        "name": lambda f: (f.eval("stay").mean(), 1.0),
    }
    for fit in uses.values():
        for unstable in ("report", "drop"):
            with pytest.raises(InputError, match="data set") as refused:
                analyze(of, fit, 3, columns=("age",), on_unstable=unstable)  # type: ignore[arg-type]
            assert refused.value.remedy == (
                "The columns of its frames are age. Add 'stay' to columns, if it is a column, or pass"
                ' columns="probe".'
            )
    with pytest.raises(
        InputError, match=r"Did you mean 'stay'\? The columns of its frames are age, "
    ):
        analyze(of, lambda f: (f.sty.mean(), 1.0), 3, columns="probe")
    assert analyze(of, uses["key"], 3, columns=("age", "stay"))


def test_a_function_that_lacks_a_library_is_refused_with_its_extra() -> None:
    def fit(frame: Any) -> Any:
        raise ModuleNotFoundError("No module named 'statsmodels'", name="statsmodels")

    with pytest.raises(InputError, match=r"Install it: pip install 'margrave\[inference\]'"):
        analyze(release(("age", "stay")), fit, 3, columns=("age",))


def test_a_test_of_marked_coefficients_is_marked_with_the_reason() -> None:
    of = release(("age", "ill"), ("stay", "ill"), ("ward",))
    found, measured = (
        analyze(of, OLS(f), 12, seed=1, method="bootstrap", bias_correct=False)
        for f in ("ill ~ age + C(ward)", "ill ~ age")
    )
    terms = [n for n in found.names if n.startswith("C(ward)")]
    for names in ("C(ward)", terms, ["age", terms[0]], terms[:1]):
        test = found.test(names)
        assert test.flagged
        assert test.marked == test.names
        assert test.reasons == (found.notes[0],)
        assert "ward were never measured together" in test.reasons[0]
        assert f"[!] Not reliable: {test.names[0]}" in str(test)
        assert test.to_dict()["flagged"] is True
        assert test.to_dict()["reasons"] == [found.notes[0]]
    plain = measured.test("age")
    assert (plain.flagged, plain.marked, plain.reasons) == (False, (), ())
    assert "[!]" not in str(plain)
    assert plain.to_dict()["flagged"] is False


def test_a_pair_never_measured_is_named_first_and_its_coefficients_are_marked() -> None:
    found = analyzed(release(("age",), ("stay",), ("ward",), ("ill",)), OLS("stay ~ age"))
    assert found.notes[0].startswith(
        "[!] stay and age were never measured together: the synthetic data hold no"
    )
    assert (
        "The result for all estimates is an assumption of the model, not evidence."
        in found.notes[0]
    )
    assert marked(found) == ["Intercept", "age"]
    assert found["age"].unmeasured == (("stay", "age"),)
    assert (
        found["age"].cells(0.95)[5] == "-"
    )  # the share of privacy's noise in an assumption is unknown
    assert np.isnan(found.fmi["age"])
    assert found["age"].has_interval, "the interval is given, with its mark"
    assert ABSENT not in found.notes
    assert not any(n.startswith(ABSENT) for n in found.notes)


def test_what_was_measured_has_no_mark_and_no_note() -> None:
    found = analyzed(release(("age", "stay", "ward"), ("ill",)), OLS("stay ~ age + C(ward)"))
    assert marked(found) == []
    assert not any("measured" in n for n in found.notes)
    assert "[!]" not in str(found)
    assert not found.summary()["unmeasured"].any()


def test_one_pair_of_three_marks_what_is_about_it() -> None:
    of = release(("age", "stay"), ("age", "ward"), ("ill",))
    found = analyzed(of, OLS("stay ~ age + C(ward)"))
    assert marked(found) == ["Intercept", "C(ward)[T.a]"]
    assert "The other estimates are adjusted for it, and rest on it too." in found.notes[0]
    assert marked(analyzed(of, OLS("stay ~ age"))) == []
    both = analyzed(of, OLS("age ~ stay + C(ward)"))  # the covariates were not measured together
    assert marked(both) == ["Intercept", "C(ward)[T.a]", "stay"]
    crossed = analyzed(of, OLS("stay ~ age : C(ward)"))
    assert marked(crossed) == list(crossed.names)


def test_all_pairs_without_the_whole_is_a_milder_note() -> None:
    found = analyzed(release(*PAIRS, ("ill",)), OLS("stay ~ age + C(ward)"))
    assert marked(found) == []
    assert found.notes[0].startswith(
        "All pairs of stay, age and ward were measured, but no marginal of all"
    )


def reading(clique: tuple[str, ...], shares: Any = SHARES) -> PublicReading:
    names = SCHEMA.domain.attributes
    shown = 2_000 * shares.sum(axis=tuple(i for i, a in enumerate(names) if a not in clique))
    return PublicReading(clique, shown, np.full(shown.shape, 3.0), "0" * 64)


def test_missing_values_of_another_column_make_a_part() -> None:
    """Income is missing more often where ill and old agree, which no pair of columns shows."""
    rng, n = np.random.default_rng(3), 4_000
    old, ill = rng.integers(0, 2, n), rng.integers(0, 2, n)
    schema = Schema(
        [Integer("old", 0, 1), Integer("ill", 0, 1), Integer("income", 0, 4, missing=True)]
    )
    cliques = [("old", "ill"), ("old", "income"), ("ill", "income")]

    def of(share: float, *more: tuple[str, ...]) -> Release:
        missing = (old == ill) & (rng.random(n) < share)
        income = pd.Series(np.where(missing, np.nan, rng.integers(0, 5, n))).astype("Int64")
        return release_of(
            pd.DataFrame({"old": old, "ill": ill, "income": income}), schema, [*cliques, *more]
        )

    fit, whole = OLS("ill ~ old + income"), ("old", "ill", "income")
    found = analyzed(of(0.5), fit)
    assert marked(found) == ["Intercept", "old", "income"]
    assert found["old"].estimate > -0.1, "it is -1/3 in the records with an income"
    assert found.notes[0].startswith("[!] Records without a value are left out (income: ")
    assert "ill, old and income were never measured all at once" in found.notes[0]
    assert marked(analyzed(of(0.5), OLS("ill ~ old + income.isna()"))) == []
    assert marked(analyzed(of(0.02), fit)) == [], "too few are left out"
    assert marked(analyzed(of(0.5, whole), fit)) == []


def test_what_was_read_of_other_records_is_no_evidence() -> None:
    of = release(
        ("age",), ("stay",), ("ward",), extra=(reading(("age", "stay")), reading(("ill",)))
    )
    found = analyzed(of, OLS("stay ~ age"))
    assert marked(found) == ["Intercept", "age"]
    assert found.notes[0].startswith(
        "[!] stay and age were never measured together (known from the public table only"
    )
    (lone,) = analyzed(of, Mean("ill"))
    assert lone.unmeasured == (("ill",),)
    own = replace(
        of, provenance=replace(of.provenance, public=OWN)
    )  # public columns of the very records
    assert marked(analyzed(own, OLS("stay ~ age"))) == []


def test_readings_do_not_pull_what_was_measured() -> None:
    """A public table with another relation: it moves the release's model, and none of the data sets."""
    measured = (("age", "stay"), ("ward",), ("ill",))
    without = release(*measured).draws(3, seed=1, method="bootstrap")
    pulled = release(
        *measured, extra=(reading(("age", "stay"), SHARES[::-1]), reading(("ward", "ill")))
    )
    draws = pulled.draws(3, seed=1, method="bootstrap")
    assert "a graphical model of what was measured, without what was read" in draws.method
    assert any(n.startswith("Public marginals are of other records") for n in draws.notes)
    assert draws.read == (("age", "stay"), ("ward", "ill"))
    assert draws.together == without.together
    for left, right in zip(draws.models(), without.models(), strict=True):
        assert left.project(("age", "stay")).values == pytest.approx(
            right.project(("age", "stay")).values, abs=0.1
        )


def test_public_columns_of_the_records_are_sampled_like_them() -> None:
    of = release(("stay",), ("ward",), extra=(reading(("age", "ill")),))
    own = replace(of.provenance, public=OWN)
    boot = Bootstrap.of(of.model, of.transcript, own, rng=np.random.default_rng(0))
    first, second = (boot.simulated(np.random.default_rng(i)).readings[0].values for i in range(2))
    assert not np.array_equal(first, second)
    assert first.sum() == pytest.approx(round(of.model.total))
    assert first.ravel() == pytest.approx(reading(("age", "ill")).values.ravel(), abs=150)


def test_single_counts_tell_in_part() -> None:
    count = Answer(LinearQuery(("age", "stay"), ((0,), (0,))), 100, 3.0, Fraction(1, 18))
    found = analyzed(
        release(("age",), ("stay",), ("ward",), ("ill",), extra=(count,)), OLS("stay ~ age")
    )
    assert marked(found) == []
    assert found.notes[0].startswith(
        "stay and age: single counts or sums alone were measured of them together"
    )


@pytest.mark.parametrize("fit", [Mean("age"), Proportion("ward", "a"), Quantile("age")], ids=str)
def test_a_column_never_measured_at_all(fit: Any) -> None:
    found = analyzed(release(("stay",), ("ill",)), fit)
    assert found.notes[0].startswith(
        f"[!] {fit.column} was never measured: the synthetic data carry no information about it"
    )
    assert marked(found) == list(found.names)
    assert marked(analyzed(release(("age",), ("ward",), ("stay", "ill")), fit)) == []


def test_a_column_that_follows_from_another_comes_with_it() -> None:
    places = [Categorical("city", ["x", "y", "z"]), Categorical("state", ["s", "t"])]
    in_state = Depends("city", "state", {"x": "s", "y": "s", "z": "t"})
    follows = Schema([*places, Integer("age", 0, 3, bins=4)], constraints=[in_state])
    assert with_followers(follows.domain, ("city", "age")) == ("city", "state", "age")
    assert with_followers(follows.domain, ("state", "age")) == ("state", "age")
    measured = Measurement(("city", "age"), np.ones((3, 4), dtype=np.int64), 1.0, Fraction(1))
    assert known_together(follows.domain, Transcript((measured,))) == (("city", "state", "age"),)


def test_sums_of_a_number_in_groups_are_not_its_marginal() -> None:
    weights = LinearMap(matrices={"age": np.array([[0, 1, 2, 3]])})
    sums = Measurement(("age", "ward"), np.ones((1, 2), dtype=np.int64), 1.0, Fraction(1), weights)
    whole = Measurement(("age", "ill"), np.ones((4, 2), dtype=np.int64), 1.0, Fraction(1))
    transcript = Transcript((sums, whole))
    assert known_together(SCHEMA.domain, transcript) == (("age", "ill"),)
    assert counted_together(SCHEMA.domain, transcript) == (("age", "ward"),)
    every = LinearMap(matrices={"age": np.tri(4, dtype=np.int64)})
    counts = Measurement(("age", "ward"), np.ones((4, 2), dtype=np.int64), 1.0, Fraction(1), every)
    assert known_together(SCHEMA.domain, Transcript((counts,))) == (("age", "ward"),)


@pytest.mark.parametrize(
    ("formula", "doubtful"),
    [
        ("stay ~ age * C(ward) + ill", ["Intercept", "C(ward)[T.a]", "age", "age:C(ward)[T.a]"]),
        ("stay ~ age + C(ward) + ill", []),
        ("stay ~ np.maximum(age, ill) + C(ward)", ["Intercept", "np.maximum(age, ill)"]),
        (
            "stay > 2 and ill ~ age",
            ["Intercept", "age"],
        ),  # an outcome of two columns is an interaction too
    ],
)
def test_an_interaction_needs_all_of_its_columns_at_once(formula: str, doubtful: list[str]) -> None:
    pairs = list(combinations(SCHEMA.domain.attributes, 2))
    found = analyzed(release(*pairs), OLS(formula))
    assert sorted(marked(found)) == sorted(doubtful)
    if doubtful:
        assert found.notes[0].startswith("[!] ")
        assert (
            "were never measured all at once: by construction the synthetic data hold no inter"
            in found.notes[0]
        )
    assert marked(analyzed(release(SCHEMA.domain.attributes), OLS(formula))) == []


def test_the_interaction_that_is_missing_is_named() -> None:
    found = analyzed(release(*PAIRS, ("ill",)), OLS("stay ~ age * C(ward)"))
    assert found["age:C(ward)[T.a]"].unmeasured == (("stay", "age", "ward"),)
    assert found.notes[0].startswith("[!] stay, age and ward were never measured all at once")
    assert not any("milder" in n or n.startswith("All pairs") for n in found.notes)


PARTS = [
    OLS("stay ~ age", where={"ward": "b"}),
    lambda f: OLS("stay ~ age")(f[f.ward == "b"]),
    lambda f: smf.ols("stay ~ age", f[f.ward == "b"]).fit(),
    lambda f: {
        "gap": (f.stay[(f.ward == "b") & (f.age > 1)].mean() - f.stay[(f.ward == "b")].mean(), 0.01)
    },
]


@pytest.mark.parametrize("fit", PARTS)
def test_a_part_of_the_records_needs_its_column_too(fit: Any) -> None:
    found = analyzed(release(*PAIRS, ("ill",)), fit)
    assert marked(found) == list(found.names)
    assert "were never measured all at once" in found.notes[0]
    assert "the odds ratios of a part of the records are those of all" in found.notes[0]
    apart = analyzed(release(("age", "stay"), ("age", "ward"), ("ill",)), fit)
    assert marked(apart) == list(apart.names)
    assert "stay and ward were never measured together" in apart.notes[0]
    whole = analyzed(release(("age", "stay", "ward"), ("ill",)), fit)
    assert marked(whole) == []
    assert not any("measured" in n for n in whole.notes)


@pytest.mark.parametrize("fit", [Mean, Quantile, lambda c, where: Proportion(c, 2, where=where)])
def test_one_column_in_a_part(fit: Any) -> None:
    of = release(("age", "stay"), ("ward",), ("ill",))
    assert marked(analyzed(of, fit("stay", where={"age": (1, 2)}))) == []
    found = analyzed(of, fit("stay", where={"ward": "b"}))
    assert marked(found) == list(found.names)
    assert found.notes[0].startswith("[!] stay and ward were never measured together")
    assert "Only records with ward = b are analyzed." in found.notes


def test_a_regression_of_ones_own_is_read_by_its_formula() -> None:
    of = release(*PAIRS, ("ill",))
    assert marked(analyzed(of, lambda f: smf.ols("stay ~ age + ward", f).fit())) == []
    crossed = analyzed(of, lambda f: smf.ols("stay ~ age * ward", f).fit())
    assert marked(crossed) == list(crossed.names)
    less = release(("age", "stay"), ("age", "ward"), ("ill",))
    assert marked(analyzed(less, lambda f: smf.ols("stay ~ age + ward", f).fit())) == [
        "Intercept",
        "ward[T.b]",
    ]


def test_a_function_of_ones_own_is_marked_where_its_columns_are_apart() -> None:
    def fit(frame: Any) -> Any:
        slope = np.polyfit(frame.age, frame.stay, 1)[0]
        return {
            "mean": (frame.age.mean(), 0.01),
            "slope": (slope, 0.01),
            "ill": (frame.ill.mean(), 0.01),
        }

    found = analyzed(release(("age",), ("stay",), ("ward",)), fit)
    assert marked(found) == ["slope", "ill"]
    assert "age and stay were never measured together" in found.notes[0]
    assert "The result for slope is an assumption" in found.notes[0]
    assert "ill was never measured" in found.notes[1]
    told = analyzed(release(("age", "stay"), ("ward",), ("ill",)), fit)
    assert marked(told) == []
    assert not any("measured" in n for n in told.notes), (
        "nothing is said of columns that it does not use"
    )


def test_a_function_that_cannot_be_tried_is_told_where_to_look() -> None:
    rng = np.random.default_rng(0)

    def fit(frame: Any) -> Any:
        return {"a": (frame.age.mean() + 0.1 * rng.random(), 0.01)}

    found = analyzed(release(("age",), ("stay",), ("ward",), ("ill",)), fit)
    assert found.notes[0].startswith(ABSENT)
    assert "no estimate is marked" in found.notes[0]
    assert "all at once, where it looks at a part of the records" in found.notes[0]
    assert "release.transcript.cliques" in found.notes[0]
    assert "release.transcript.answers" in found.notes[0]
    assert marked(found) == []
    assert not any(
        "transcript" in n for n in analyzed(release(("age", "stay", "ward", "ill")), fit).notes
    )


def test_draws_know_it_and_tables_do_not() -> None:
    of = release(("age",), ("stay",), ("ward",), ("ill",))
    draws = of.draws(4, seed=1, method="bootstrap")
    assert draws.notes[0] == ABSENT
    assert marked(analyze(draws, OLS("stay ~ age"), bias_correct=False)) == ["Intercept", "age"]
    alone = analyze(list(draws), OLS("stay ~ age"), n=2_000)
    assert marked(alone) == []
    assert not any("measured" in n for n in alone.notes)


@pytest.mark.parametrize(
    ("coefficient", "apart", "leans"),
    [
        ("C(ward)[T.age]", ("stay", "ward"), True),
        ("C(ward)[T.age]", ("stay", "age"), False),  # a level named like a column
        ("np.log(age)", ("stay", "age"), True),
        ("Q('zip code')", ("stay", "zip code"), True),
        ("C(ward)[T.it's])]", ("stay", "age"), True),  # unreadable: better marked than not
        ("Intercept", ("age", "ward"), True),
        ("C(ward)[T.a]", ("stay", "ill"), True),  # both in the outcome
    ],
)
def test_which_coefficients_lean_on_a_pair(
    coefficient: str, apart: tuple[str, ...], leans: bool
) -> None:
    formula = "stay > 2 and ill ~ np.log(age) + Q('zip code') + C(ward)"
    tree = parse(formula)
    assert terms_of(tree, (coefficient,))[coefficient].depends_on(apart) is leans
    assert columns_in(tree.left) == ("stay", "ill")


def test_it_is_seen_in_every_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    release(("age",), ("stay",), ("ward",), ("ill",)).save("r.margrave")
    words = [
        "analyze",
        "ols",
        "r.margrave",
        "stay ~ age",
        "--m",
        "4",
        "--method",
        "bootstrap",
        "--seed",
        "1",
    ]
    assert run([*words, "--plot", "p.html"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "age [!]" in shown
    assert "[!] may be off by far more than its interval says" in shown
    assert "p-value: of the hypothesis that the value is 0" in shown
    page = (tmp_path / "p.html").read_text()
    assert page.count("age [!]") == 2  # the plot and the table
    assert "[!]: see the notes" in page
    assert run([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [e["unmeasured"] for e in told["estimates"]] == [[["stay", "age"]], [["stay", "age"]]]
    assert told["notes"][0].startswith("[!] stay and age were never measured together")


def test_a_long_name_keeps_its_mark() -> None:
    found = analyzed(release(("age",), ("stay",), ("ward",), ("ill",)), OLS("stay ~ age"))
    long = replace(found, estimates=(replace(found["age"], name="x" * 60),))
    assert "\N{HORIZONTAL ELLIPSIS} [!]<" in long.svg()


def test_the_columns_of_a_part_belong_to_every_coefficient() -> None:
    """A coefficient in one ward is about the relation of ward with the outcome, and with its own term."""
    terms = terms_of(parse("stay ~ age + ill"), ("Intercept", "age", "ill"), ("ward",))
    assert terms["Intercept"].joins == ("stay", "ward")
    assert terms["age"].joins == terms["age"].columns == ("stay", "age", "ward")
    for pair in (("stay", "ward"), ("age", "ward"), ("ill", "ward")):
        assert terms["age"].depends_on(pair), pair
    assert not terms["age"].depends_on(("stay", "ill"))
    fit = OLS("stay ~ age", where={"ward": "b"})
    found = analyzed(release(("age", "stay"), ("ward",), ("ill",)), fit)
    assert found["age"].unmeasured == (
        ("stay", "ward"),
        ("age", "ward"),
        ("stay", "age", "ward"),
    )
    assert found["Intercept"].unmeasured == found["age"].unmeasured
    lone = analyzed(release(("age", "stay"), ("ill",)), fit)
    assert [e.unmeasured[0] for e in lone] == [("ward",), ("ward",)]
    assert lone.notes[0].startswith("[!] ward was never measured")


NAMED: list[tuple[tuple[str, ...], list[str]]] = [
    (("stay", "age"), []),
    (("stay", "age", "ward"), ["Intercept", "age"]),
]


@pytest.mark.parametrize(("columns", "doubtful"), NAMED)
def test_a_function_is_checked_by_the_columns_that_are_named(
    columns: tuple[str, ...], doubtful: list[str]
) -> None:
    calls = []

    def fit(frame: Any) -> Any:
        calls.append(1)
        return OLS("stay ~ age")(frame)

    of = release(("age", "stay"), ("ward",), ("ill",))
    found = analyze(of, fit, 4, columns=columns, seed=1, method="bootstrap", bias_correct=False)
    assert marked(found) == doubtful
    assert found.caveats[0].decisive == bool(doubtful)
    assert len(calls) <= 4 * 2 + 4, "it is not probed: two lots of data sets, and its bins"


def test_a_function_gets_the_columns_that_are_named() -> None:
    got = []

    def fit(frame: Any) -> Any:
        got.append(tuple(frame.columns))
        return frame.stay.mean(), frame.stay.var() / len(frame)

    of = release(("age", "stay"), ("ward",), ("ill",))
    analyze(of, fit, 2, columns=("stay", "age"), seed=1, method="bootstrap", bias_correct=False)
    assert set(got) == {("age", "stay")}
    with pytest.raises(InputError, match="KeyError: 'ward'") as error:
        analyze(
            of, lambda f: (len(f["ward"]), 1.0), 2, columns=("stay",), seed=1, method="bootstrap"
        )
    assert "Add 'ward' to columns" in str(error.value.remedy)


def test_an_estimand_of_ones_own_states_its_columns() -> None:
    class Spread(Estimand):
        def check(self, frame: Any, schema: Any = None) -> None:
            if "stay" not in frame.columns:
                raise InputError("no column 'stay'")

        def __call__(self, frame: Any) -> Fitted:
            name, columns = "spread", ("stay", "age")
            basis = Basis(columns, {name: EstimateTerm(columns, columns)}, notes=("By hand.",))
            return Fitted((name,), frame[["stay"]].var().to_numpy(), np.ones(1), basis=basis)

    found = analyzed(release(("age",), ("stay",), ("ward",)), Spread())
    assert found["spread"].unmeasured == (("stay", "age"),)
    assert "By hand." in found.notes
    assert {c.kind for c in found.caveats if c.decisive} == {"unmeasured"}


def test_every_estimand_says_what_it_takes() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "y": rng.normal(size=60)})
    frame["g"] = pd.Categorical(rng.choice(["a", "b"], 60))
    for fit, columns, conditions in [
        (Mean("x", where={"g": "a"}), ("x", "g"), (("g", "a"),)),
        (Proportion("g", "a"), ("g",), (("g", "a"),)),
        (Correlation("x", "y"), ("x", "y"), ()),
        (By(Mean("x"), "g"), ("x", "g"), ()),
        (OLS("x ~ y", where={"g": "a"}), ("x", "y", "g"), (("g", "a"),)),
        (Logistic("g ~ y", success="b"), ("g", "y"), (("g", "b"),)),
    ]:
        fitted = fit(frame)
        assert fitted.basis is not None
        assert fitted.basis.columns == columns
        assert fitted.basis.conditions == conditions
        assert set(fitted.basis.terms) == set(fitted.names)


def test_the_reference_is_the_commonest_level_unless_the_formula_names_one() -> None:
    draws = release(("age", "stay", "ward"), ("ill",)).draws(3, seed=1, method="bootstrap")
    center = draws.released()
    assert center is not None
    counts = next(center.models()).project(("ward",)).values
    assert draws.commonest["ward"] == "b" == ["a", "b"][int(np.argmax(counts[:2]))]
    found, named = (
        analyze(draws, OLS(f"stay ~ age + {ward}"))
        for ward in ("C(ward)", "C(ward, Treatment('a'))")
    )
    assert set(found.names) == {"Intercept", "age", "C(ward)[T.a]"}
    assert any(n.startswith("The reference level of C(ward) is 'b'") for n in found.notes)
    assert not any("reference level" in n for n in named.notes)
    np.testing.assert_allclose(
        found["C(ward)[T.a]"].estimate, -named["C(ward, Treatment('a'))[T.b]"].estimate
    )


def test_tables_drawn_elsewhere_have_one_reference() -> None:
    rng = np.random.default_rng(0)
    words = [rng.choice(["x", "y", "z"], 200, p=p) for p in ([0.5, 0.1, 0.4], [0.1, 0.2, 0.7])]
    tables = [pa.table({"w": w, "v": rng.normal(size=200)}) for w in words]
    found = analyze(tables, OLS("v ~ w"), n=200)
    assert set(found.names) == {"Intercept", "w[T.x]", "w[T.y]"}
