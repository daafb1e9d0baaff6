"""Purposes: words to marginals, workloads that serve them, and what a release says of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import margrave
from margrave.accounting import AddRemoveRow, Budget
from margrave.cli.main import run
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.inference import OLS, By, Correlation, Logistic, Mean, Quantile, Total, analyze
from margrave.inference.fitted import Estimand
from margrave.marginal import LinearMap
from margrave.mechanisms import AIM, FEM, MST, MWEM, NAPSUMQ, PrivPGD
from margrave.mechanisms.parts.serving import serving
from margrave.models import NoModel
from margrave.planning import plan_of
from margrave.provenance import Provenance
from margrave.purpose_analyses import checked_purposes
from margrave.purpose_widths import widths_of
from margrave.purposes import Purpose, first_of, open_ended, purposes_of, workload_for
from margrave.release import Release
from margrave.release.numbers import numbers_of
from margrave.release.purpose_verdicts import PurposeVerdict, purpose_verdicts, verdict_on
from margrave.release.purposes import PurposeSupport
from margrave.report import write_report
from margrave.report.verdict import verdict
from margrave.report.views import column_views
from margrave.run import Run
from margrave.schema import (
    Boolean,
    Categorical,
    Coded,
    ColumnSource,
    Date,
    Elapsed,
    Hour,
    Integer,
    Learn,
    Ordinal,
    Real,
    Schema,
    Timestamp,
    Weekday,
)
from margrave.schema.column_queries import LineCells
from margrave.schema.remedies import bins_remedy, bounds_remedy
from margrave.transcript import ColumnAnswer, Transcript
from margrave.types import Clique
from margrave.workload import Workload
from tests.support import fake_model
from tests.support.by_hand import release_of
from tests.support.strategies import measurement

DOMAIN = Domain(
    ("price", "type", "area", "sold by", "sold"),
    (20, 4, 10, 3, 2),
    unordered=frozenset({"type", "sold by"}),
)


@pytest.mark.parametrize(
    ("text", "kind", "cliques"),
    [
        ("mean price", "mean", [("price",)]),
        ("mean price by type", "mean", [("price", "type")]),
        ("average  price by type and area", "mean", [("price", "type", "area")]),
        ("median price by sold by", "quantile", [("price", "sold by")]),
        ("total area by sold by, type", "total", [("type", "area", "sold by")]),
        ("share sold by type", "share", [("type", "sold")]),
        ("share sold by", "share", [("sold by",)]),
        ("count by type, sold", "count", [("type", "sold")]),
        ("correlation area and price", "correlation", [("price", "area")]),
        ("ols price ~ 1", "ols", [("price",)]),
        ("ols price ~ area + C(type)", "ols", [("price", "area"), ("price", "type"), ("type", "area")]),
        ("ols price ~ area:C(type)", "ols", [("price", "type", "area")]),
        ("logistic sold ~ price", "logistic", [("price", "sold")]),
        ("effect of sold on price given type, area", "effect",
         [("price", "type", "sold"), ("price", "area", "sold")]),
        ("effect of sold on price", "effect", [("price", "sold")]),
    ],
)  # fmt: skip
def test_words_become_marginals(text: str, kind: str, cliques: list[Clique]) -> None:
    purpose = Purpose.of(text, DOMAIN)
    assert purpose.kind == kind
    assert set(purpose.cliques) == set(cliques)
    assert purpose.width is None


def test_a_quantile_names_its_share_of_the_rows() -> None:
    domain = Domain.of({"price": 6, "kind": 3})
    texts = ("quantile price 0.9 by kind", "quantile price .9", "median price", "quantile price")
    found = [Purpose.of(text, domain) for text in texts]
    assert [p.at for p in found] == [0.9, 0.9, 0.5, 0.5]
    assert found[0].cliques == (("price", "kind"),)
    with pytest.raises(InputError, match="not between 0 and 1"):
        Purpose.of("quantile price 90", domain)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mean cost", ["the mean of cost"]),
        ("quantile cost 0.9", []),
        ("quantile cost 0.9999", ["the 99.99 % quantile of cost"]),
        ("ols cost ~ C(ward)", ["the mean of cost"]),
        ("share ward", []),
        ("count by ward", []),
    ],
)
def test_a_purpose_takes_the_verdict_of_its_own_number(text: str, words: list[str]) -> None:
    """Values beyond a learned bound may move the mean of a cost, and no quantile within the bounds."""
    column = Real("cost", 0, 100, bins=100, mean=[30, 29, 300])
    schema = Schema([column, Categorical("ward", ["a", "b"])])
    counts = np.array([[1000] * 60 + [0] * 35 + [2] * 5, [900] * 60 + [0] * 40]).T
    entries = Transcript((measurement(("cost", "ward"), counts, 3.0),))
    absent = NoModel(schema.domain, 1.0, "it is not needed")
    release = Release(
        schema, absent, entries, fake_model.account_of(entries), Provenance("by hand")
    )
    numbers = numbers_of(schema, entries, absent, 0.95)
    assert [*verdict_on(release, PurposeSupport(text, (), 1), numbers).doubts] == words


#: Numbers of stays in three wards, and a fourth that is empty, for each of two sexes.
STAYS = np.outer(np.arange(1, 11), [400, 4, 3, 0])[:, :, None] * np.array([1, 1])


def release_for(*texts: str, scale: float = 10.0, **counts: Any) -> Release:
    """Return a release for purposes with noisy counts of columns, such as ``stay_ward``."""
    schema = Schema(
        [Integer("stay", 0, 9), Categorical("ward", list("abcd")), Categorical("sex", ["F", "M"])]
    )
    entries = Transcript(
        tuple(measurement(tuple(c.split("_")), v, scale) for c, v in counts.items())
    )
    absent = NoModel(schema.domain, 1.0, "it is not needed")
    made = replace(Provenance("by hand"), workload=Workload({("stay",): 1.0}, texts))
    return Release(schema, absent, entries, fake_model.account_of(entries), made)


def verdicts_of(release: Release) -> list[PurposeVerdict]:
    numbers = numbers_of(release.schema, release.transcript, release.model, 0.95)
    return list(purpose_verdicts(release, numbers))


@pytest.mark.parametrize(
    ("text", "statistic", "number"),
    [
        ("mean stay by ward", "mean", "the mean of stay"),
        ("total stay by ward", "total", "the total of stay"),
        ("median stay by ward", "q50", "the 50 % quantile of stay"),
    ],
)
def test_a_purpose_by_groups_takes_the_verdict_of_its_groups(
    text: str, statistic: str, number: str
) -> None:
    """The number of all rows is reliable, and that of two wards is not."""
    alone = text.removesuffix(" by ward")
    release = release_for(alone, text, stay_ward=STAYS.sum(axis=2))
    whole, grouped = verdicts_of(release)
    assert (whole.serves, whole.words) == (True, f"{alone}: its marginal was measured.")
    assert not grouped.serves
    assert grouped.words == (
        f"{text}: {number} in 2 of 4 groups of ward (b, c) is not reliable. No verdict on 1 group of ward that may have"
        " no rows: d. Fewer codes of ward, or a larger budget, lower the noise."
    )
    numbers = release.numbers(columns=["stay"], by="ward").to_pylist()
    of_groups = {n["group"]: n["reliable"] for n in numbers if n["statistic"] == statistic}
    assert {g for g, reliable in of_groups.items() if not reliable} - {*grouped.rare} == {
        "ward = b", "ward = c"
    }  # fmt: skip


def test_a_regression_takes_the_verdict_of_its_coefficients() -> None:
    """Noise in a mean is in the intervals of coefficients; groups whose cells it hides are named."""
    texts = "ols stay ~ C(ward)", "mean stay", "logistic stay > 4 ~ ward"
    few = np.outer(np.ones(10, dtype=np.int64), [40, 40, 40, 10])
    regression, mean, odds = verdicts_of(release_for(*texts, stay_ward=few))
    assert mean.doubts == ("the mean of stay",)
    assert regression.serves
    assert odds.hidden == regression.hidden == ("ward = d",)
    assert regression.words == (
        "ols stay ~ C(ward): its marginal was measured. The noise hides its coefficient of ward = d, which margrave"
        " analyze marks."
    )
    (hidden,) = verdicts_of(release_for(texts[0], stay_ward=4 * few, scale=100.0))
    assert hidden.warning == "each coefficient of ward is not reliable"


def test_a_regression_on_a_rare_outcome_is_not_served() -> None:
    text = "logistic sex ~ stay + ward"
    both = {"stay_sex": (10, 2), "ward_sex": (4, 2), "stay_ward": (10, 4)}
    counts = {name: np.full(sizes, 40_000 // np.prod(sizes)) for name, sizes in both.items()}
    (even,) = verdicts_of(release_for(text, **counts))
    assert even.doubts == ()
    for name in ("stay_sex", "ward_sex"):
        counts[name] = counts[name] * 2 * np.array([0.9995, 0.0005])
        counts[name] = counts[name].round().astype(np.int64)
    (rare,) = verdicts_of(release_for(text, **counts))
    assert rare.doubts == ("each coefficient of stay, ward (the noise hides the cells of sex = M)",)
    assert rare.remedy == "Fewer codes of stay or ward, or a larger budget, lower the noise."


def test_a_regression_on_merged_codes_is_not_served() -> None:
    schema = Schema([Integer("stay", 0, 3), Categorical("ward", list("abcd"))])
    groups = {"stay": np.array([0, 1, 2, 2]), "ward": np.array([0, 1, 2, 2])}
    alone = measurement(("stay",), np.full(4, 4000), 1.0)
    pair = replace(
        measurement(("stay", "ward"), np.full((3, 3), 1500), 1.0), query=LinearMap(groups)
    )
    entries = Transcript((alone, measurement(("ward",), np.full(4, 4000), 1.0), pair))
    absent = NoModel(schema.domain, 1.0, "it is not needed")
    release = Release(
        schema, absent, entries, fake_model.account_of(entries), Provenance("by hand")
    )
    found = verdict_on(release, PurposeSupport("ols stay ~ C(ward)", (), 1), ())
    assert found.doubts == ("each relation of stay (rare codes were merged)",)
    assert found.hidden == ("ward = c", "ward = d")


def test_sums_serve_no_purpose_that_rests_on_cells_too() -> None:
    """A correlation rests on the spread of both columns, and an interaction on each cell."""
    schema = Schema([Integer("age", 0, 9), Integer("cost", 0, 9), Categorical("ward", ["a", "b"])])
    weights = {"age": np.arange(10)[None, :], "cost": np.arange(10)[None, :]}
    pair = measurement(("age", "cost"), np.full((10, 10), 20), 50.0)
    sums = replace(
        measurement(("age", "cost"), np.array([[40_000]]), 1.0), query=LinearMap(matrices=weights)
    )
    sizes = schema.domain.size
    alone = (measurement((a,), np.full(sizes(a), 2000 // sizes(a)), 1.0) for a in schema.domain)
    others = (measurement((a, "ward"), np.full((10, 2), 100), 1.0) for a in ("age", "cost"))
    entries = Transcript((*alone, *others, pair, sums))
    absent = NoModel(schema.domain, 1.0, "it is not needed")
    made = Provenance("by hand")
    release = Release(schema, absent, entries, fake_model.account_of(entries), made)
    held = ["ols cost ~ age", "ols cost ~ age + C(ward)"]
    texts = [
        *held, "correlation age, cost", "ols cost ~ age * C(ward)", "ols log(cost + 1) ~ age",
        "ols cost ~ I(age ** 2)", "logistic cost > 4 ~ age",
    ]  # fmt: skip
    found = {}
    for text in texts:
        support = PurposeSupport(text, (), 1)
        found[text] = verdict_on(release, support, numbers_of(schema, entries, absent, 0.95))
    assert [text for text, v in found.items() if v.serves] == held
    assert found["correlation age, cost"].words == (
        "correlation age, cost: the marginal of age, cost is not reliable. Fewer codes of age or cost, or a larger"
        " budget, lower the noise."
    )


def test_noise_far_out_leaves_no_correlation_and_no_slope_on_the_column() -> None:
    cost = Real(
        "cost", 0, 1000, edges=[100, 200], leaf_edges=[0, 100, 200, 300, 600, 1000],
        leaf_weights=[0.46, 0.45, 0.081, 0.0, 0.009], mean=[118, 110, 126],
    )  # fmt: skip
    schema = Schema([Integer("age", 0, 9), cost], sources={"cost": ColumnSource("learned")})
    cells = np.outer(np.ones(10, dtype=np.int64), [2000, 2000, 400])
    query = LineCells((100.0, 200.0, 600.0))
    absent = NoModel(schema.domain, 1.0, "it is not needed")

    def judged(text: str, scale: float) -> PurposeVerdict:
        learned = ColumnAnswer("cost", query, np.zeros(query.size), scale, Fraction(1))
        entries = Transcript((learned, measurement(("age", "cost"), cells, 1.0)))
        made = Provenance("by hand")
        release = Release(schema, absent, entries, fake_model.account_of(entries), made)
        numbers = numbers_of(schema, entries, absent, 0.95)
        return verdict_on(release, PurposeSupport(text, (), 1), numbers)

    for text in ("correlation age, cost", "ols age ~ cost"):
        assert judged(text, 100.0).serves
        assert judged(text, 250.0).words == (
            f"{text}: each relation of cost (noise may have placed values far out) is not reliable. In the schema of"
            f" the next release, for cost {bounds_remedy()} Or raise the budget."
        )
    for text in ("ols cost ~ age", "ols age ~ C(cost)", "mean age"):
        assert judged(text, 250.0).serves


def test_a_width_that_the_intervals_exceed_is_not_served() -> None:
    stays = STAYS.sum(axis=2)[:, :1] * np.array([1, 1, 1, 1])
    texts = [f"{what} within {width}" for what in ("mean stay", "mean stay by ward", "share ward")
             for width in ("0.1", "0.0001")]  # fmt: skip
    found = verdicts_of(release_for(*texts, stay_ward=stays))
    assert [v.serves for v in found] == [True, False] * 3
    words = "the mean of stay within 0.0001"
    assert found[1].words == f"mean stay within 0.0001: {words} is not reliable."
    assert found[3].doubts == (f"{words} in all 4 groups of ward",)
    assert found[5].doubts == ("the main number of ward within 0.0001",)


def test_two_codes_are_not_to_become_fewer() -> None:
    few = np.outer(np.arange(1, 11), [4, 4])
    (of_two,) = verdicts_of(release_for("mean stay by sex", stay_sex=few))
    assert of_two.remedy == "A larger budget lowers the noise."


@pytest.mark.parametrize(
    "text", ["count by stay, ward", "share stay by ward", "effect of ward on stay"]
)
def test_counts_and_effects_by_merged_codes_are_not_served(text: str) -> None:
    schema = Schema([Integer("stay", 0, 3), Categorical("ward", list("abcd"))])
    groups, counts = {"ward": np.array([0, 1, 2, 2])}, np.full((4, 3), 40_000)
    pair = replace(measurement(("stay", "ward"), counts, 1.0), query=LinearMap(groups))
    plain = measurement(("stay", "ward"), np.full((4, 4), 40_000), 1.0)
    alone = measurement(("ward",), np.full(4, 160_000), 1.0)
    absent = NoModel(schema.domain, 1.0, "it is not needed")
    for entry, doubts in (
        (plain, ()),
        (pair, ("each result for rare codes of ward (they were merged)",)),
    ):
        entries = Transcript((alone, entry))
        release = Release(
            schema, absent, entries, fake_model.account_of(entries), Provenance("by hand")
        )
        assert verdict_on(release, PurposeSupport(text, (), 1), ()).doubts == doubts


def test_shares_and_groups_of_several_columns_have_verdicts_too() -> None:
    texts = "share sex by ward", "mean stay by ward, sex", "mean stay by sex"
    share, several, served = verdicts_of(release_for(*texts, stay_ward_sex=STAYS))
    assert share.doubts == ("the main number of sex in 2 of 4 groups of ward (b, c)",)
    (doubt,) = several.doubts
    assert doubt.startswith(
        "the mean of stay in 4 of 8 groups of ward, sex (ward = b and sex = F, "
    )
    assert several.rare == ("ward = d and sex = F", "ward = d and sex = M")
    assert served.serves
    assert not served.gap


def release_by_town(stay: Integer, towns: int, noise: float, of: str = "public") -> Release:
    """Return a release of stays by towns with long names: half of the rows are at either end."""
    names = [f"{i:02} of the towns with a name of many letters" for i in range(towns)]
    schema = Schema([stay, Categorical("town", names)], sources={"stay": ColumnSource(of=of)})
    counts = np.full((stay.size, towns), 500)
    entries = Transcript((measurement(("stay", "town"), counts, noise),))
    workload = Workload({("stay",): 1.0}, ("mean stay by town",))
    absent = NoModel(schema.domain, 1.0, "it is not needed")
    made = replace(Provenance("by hand"), workload=workload)
    return Release(schema, absent, entries, fake_model.account_of(entries), made)


def test_groups_that_are_not_reliable_are_named_shortly_with_one_remedy() -> None:
    public = Integer("stay", 0, 1)
    (every,) = verdicts_of(release_by_town(public, 30, 60.0))
    assert every.words == (
        "mean stay by town: the mean of stay in all 30 groups of town is not reliable. Fewer codes of town, or a larger"
        " budget, lower the noise."
    )
    (rare,) = verdicts_of(release_by_town(public, 30, 250.0))
    assert rare.words == "mean stay by town: the row count of each group is not reliable."


def test_long_values_of_groups_are_cut_and_counted() -> None:
    release = release_by_town(Integer("stay", 0, 1), 30, 30.0)
    (entry,) = release.transcript.measurements
    values = entry.values.copy()
    values[:, 0] = 10**6  # this group alone is reliable
    (found,) = verdicts_of(
        replace(release, transcript=Transcript((replace(entry, values=values),)))
    )
    (doubt,) = found.doubts
    assert doubt.startswith("the mean of stay in 29 of 30 groups of town (01 of the towns")
    assert doubt.endswith(" and 27 more)")
    assert "town = " not in found.words


def test_doubts_by_learned_bounds_have_public_bounds_as_their_remedy() -> None:
    stay = Integer("stay", 0, 1, mean=[0.5, 0.49, 0.8])
    (found,) = verdicts_of(release_by_town(stay, 3, 1.0, of="learned"))
    assert found.warning == "the mean of stay in all 3 groups of town is not reliable"
    assert found.remedy == f"In the schema of the next release, for stay {bounds_remedy()}"


def test_doubts_by_noise_in_far_bins_have_learned_bins_as_their_remedy() -> None:
    release = release_by_town(Integer("stay", 0, 1000, bins=32), 3, 30.0)
    (entry,) = release.transcript.measurements
    values = np.zeros_like(entry.values)
    values[0] = 1000
    (found,) = verdicts_of(
        replace(release, transcript=Transcript((replace(entry, values=values),)))
    )
    assert found.remedy == f"In the schema of the next release, for stay {bins_remedy()}"


def test_a_plan_does_not_contradict_the_widths_of_its_purposes() -> None:
    towns = Categorical("town", [str(i) for i in range(30)])
    schema = Schema([Learn("cost", "real"), towns, Integer("age", 18, 100)])
    planned = margrave.plan(
        schema,
        epsilon=1.0,
        delta=1e-6,
        unit="add-remove-row",
        rows=5000,
        mechanism="aim",
        purposes=["mean cost by town"],
    )
    (own,) = (n for n in planned.noise if n.for_purposes and n.is_mostly_noise(planned.rows))
    assert own.verdict(planned.rows) is None
    assert replace(own, for_purposes=False).verdict(planned.rows)
    assert planned.purposes[0].half_width < 1.0
    assert planned.verdicts is not None
    assert not {h.column for h in planned.hidden} & {*planned.verdicts.likely}


def test_a_purpose_whose_groups_have_no_numbers_is_not_served() -> None:
    text, pair = "mean stay by ward", STAYS.sum(axis=2)
    (hidden,) = verdicts_of(release_for(text, stay_ward=pair, scale=1e5))
    assert hidden.words == f"{text}: the row count of each group is not reliable."
    (apart,) = verdicts_of(release_for(text, stay=pair.sum(axis=1), ward=pair.sum(axis=0)))
    assert not apart.serves
    assert apart.words.startswith(f"{text}: its marginal was not measured.")
    assert apart.warning == (
        "each group's number of stay (no measured marginal has all codes of stay, ward together) is not reliable"
    )
    (gone,) = verdicts_of(release_for("mean cost by ward", stay_ward=pair))
    assert gone.words == "mean cost by ward: not supported, because a column of it was left out."


def test_a_report_does_not_offer_a_purpose_whose_groups_are_not_reliable() -> None:
    release = release_for("mean stay by ward", "mean stay by sex", stay_ward_sex=STAYS)
    numbers = numbers_of(release.schema, release.transcript, release.model, 0.95)
    found = verdict(release, numbers, column_views(release))
    (use,) = (t for t in found.use_for if t.startswith("mean stay by sex"))
    assert use == (
        "mean stay by sex: its marginal was measured. Take its intervals from margrave analyze, and do not use those"
        " that it marks."
    )
    assert not any(t.startswith("mean stay by ward") for t in found.use_for)
    assert any("the mean of stay in 2 of 4 groups" in t for t in found.not_for)


def test_an_open_end_of_a_learned_column_is_named_before_anything_is_spent() -> None:
    domain = Domain(("cost", "age", "ward"), (33, 9, 3), unordered=frozenset({"ward"}))
    texts = ["mean cost by ward", "quantile cost 0.9", "share ward", "ols age ~ C(ward)"]
    purposes = [Purpose.of(text, domain) for text in texts]
    (sentence,) = open_ended(purposes, [Learn("cost", "real", low=0.0)])
    assert sentence.startswith("mean cost by ward: the release learns cost without a public upper")
    assert 'Ask for "median cost by ward"' in sentence
    assert sentence.endswith(f"Or, in the schema, {bounds_remedy(['high'])}")
    assert open_ended(purposes, [Learn("cost", "real", low=0.0, high=9.0)]) == ()


def test_a_part_of_a_timestamp_is_named_by_its_function() -> None:
    schema = Schema(
        [
            Learn("seen at", "timestamp"), Hour("h", "seen at"), Learn("born", "date"),
            Weekday("born.day", "born"), Learn("cost", "real"),
        ]
    )  # fmt: skip
    domain = schema.domain
    for text, clique in (
        ("mean cost by hour(Q('seen at')) and weekday(born)", ("h", "born.day", "cost")),
        ("count by weekday(born)", ("born.day",)),
        ("share hour(`seen at`)", ("h",)),
        ("effect of weekday(born) on cost", ("born.day", "cost")),
        ("ols cost ~ C(hour(Q('seen at')))", ("h", "cost")),
        ("ols cost ~ hour(born)", ("born", "cost")),
    ):
        assert Purpose.of(text, domain).cliques == (domain.clique(clique),)
    assert Purpose.of("count by weekday(born)", domain.project(["born.day"])).columns == (
        "born.day",
    )
    with pytest.raises(InputError, match=r"no hour of 'born'.*part_of = \"born\""):
        Purpose.of("count by hour(born)", domain)
    with pytest.raises(InputError, match=r"no year of 'born'.*'born' itself"):
        Purpose.of("count by year(born)", domain)
    with pytest.raises(InputError, match="no column 'bron'"):
        Purpose.of("count by weekday(bron)", domain)


def test_larger_groups_become_their_triples() -> None:
    purpose = Purpose.of("mean price by type, area, sold", DOMAIN)
    assert len(purpose.cliques) == 4
    assert all(len(c) == 3 for c in purpose.cliques)


def test_a_width_is_read_off_the_end() -> None:
    purpose = Purpose.of("mean price by type within 0.05", DOMAIN)
    assert (purpose.width, purpose.cliques) == (0.05, (("price", "type"),))
    with pytest.raises(InputError, match="is 0"):
        Purpose.of("mean price within 0", DOMAIN)


@pytest.mark.parametrize(
    "text",
    ["mean cost", "mean price by cost", "count by cost", "mean by type", "correlation cost, price",
     "effect of cost on price", "ols price ~ cost"],
)  # fmt: skip
def test_a_column_that_is_not_there_is_named(text: str) -> None:
    with pytest.raises(InputError, match="There is no column"):
        Purpose.of(text, DOMAIN)


@pytest.mark.parametrize(
    "text",
    ["mean type", "median type by sold", "ols type ~ area", "ols log(type) ~ area"],
)  # fmt: skip
def test_categories_have_no_means(text: str) -> None:
    with pytest.raises(InputError, match="needs numbers") as caught:
        Purpose.of(text, DOMAIN)
    assert "share type" in str(caught.value)


def test_a_correlation_with_categories_has_means_by_group_in_its_place() -> None:
    with pytest.raises(InputError, match="'type' has categories") as caught:
        Purpose.of("correlation price, type", DOMAIN)
    assert 'Ask for the mean by group: "mean price by type".' in str(caught.value)


def one_of_each_kind() -> Release:
    """Return a release of one column of each kind, each measured alone."""
    rng, rows = np.random.default_rng(5), 300
    first, last = datetime(2020, 1, 6), datetime(2020, 1, 20)
    born = [first + timedelta(hours=int(h)) for h in rng.integers(0, 300, rows)]
    frame = pd.DataFrame({
        "named": rng.choice(["a", "b"], rows), "ranked": rng.choice(["1", "2", "3"], rows),
        "truth": rng.random(rows) < 0.5, "code": rng.integers(0, 3, rows),
        "whole": rng.integers(0, 9, rows), "broken": 9 * rng.random(rows), "born": born,
        "day": [b.date() for b in born], "ended": [b + timedelta(days=3) for b in born],
    })  # fmt: skip
    schema = Schema(
        [
            Categorical("named", ["a", "b"]), Ordinal("ranked", ["1", "2", "3"]), Boolean("truth"), Coded("code", 3),
            Integer("whole", 0, 8), Real("broken", 0, 9, bins=3), Date("day", date(2020, 1, 6), date(2020, 1, 20)),
            Timestamp("born", first, last, bins=3), Elapsed("ended", low=0, high=9, since="born", unit="day"),
            Hour("hour", "born"), Weekday("weekday", "born"),
        ]
    )  # fmt: skip
    return release_of(frame, schema, [(c,) for c in schema.domain])


def purposes_and_analyses(column: str, other: str) -> Iterator[tuple[str, Estimand]]:
    """Yield purposes that use a column, each with its analysis in Python."""
    yield f"mean {column}", Mean(column)
    yield f"mean {column} by named", By(Mean(column), "named")
    yield f"total {column}", Total(column)
    yield f"quantile {column} 0.9", Quantile(column, 0.9)
    for x, y in ((column, other), (other, column)):
        yield f"correlation {x}, {y}", Correlation(x, y)
        yield f"ols {x} ~ {y}", OLS(f"{x} ~ {y}")
    value = {"named": "'a'", "ranked": "'1'"}.get(column, other)
    yield f"ols {column} == {value} ~ 1", OLS(f"{column} == {value} ~ 1")
    yield f"ols {other} ~ {column} == 'Z'", OLS(f"{other} ~ {column} == 'Z'")
    yield f"logistic {column} ~ {other}", Logistic(f"{column} ~ {other}")
    level = column if column in ("named", "truth") else "named"
    for right in (
        f"{column} + {other}", f"truth | {column}", f"log({column} + 1)", f"{column} > 5 | truth", f"C({column})",
        f"C({level}, Treatment('b'))",
    ):  # fmt: skip
        yield f"ols {other} ~ {right}", OLS(f"{other} ~ {right}")


def is_accepted(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except InputError:
        return False
    return True


ANALYZED = {
    "mean code", "mean truth", "total ended", "ols named == 'a' ~ 1", "ols whole ~ truth | truth",
    "ols whole ~ C(named)", "logistic named ~ whole",
}  # fmt: skip
NOT_ANALYZED = {
    "mean ranked", "total day", "mean hour(born)", "ols ranked ~ whole", "ols whole ~ broken + whole",
    "ols whole ~ truth | named", "ols whole ~ log(named + 1)", "ols whole ~ named > 5 | truth",
    "ols whole ~ truth | broken", "ols whole ~ named == 'Z'", "logistic code ~ whole", "ols whole ~ day > 5 | truth",
}  # fmt: skip


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_a_purpose_is_accepted_if_an_analysis_gives_its_estimate(every: int) -> None:
    """One in ``every`` of the purposes, and all that are named above."""
    release = one_of_each_kind()
    domain, draws = release.schema.domain, release.draws(2, seed=1, method="bootstrap")
    names = dict(zip(domain, domain, strict=True)) | {
        part: f"{function}({column})" for (function, column), part in domain.functions.items()
    }
    analyses = {
        text: analysis
        for name, words in names.items()
        for text, analysis in purposes_and_analyses(words, "code" if name == "whole" else "whole")
        if not (name == "named" and "by named" in text)
    }
    assert analyses.keys() >= ANALYZED | NOT_ANALYZED
    tried = ANALYZED | NOT_ANALYZED | set(list(analyses)[::every])
    of_plan = {t for t in tried if is_accepted(lambda t=t: checked_purposes([t], release.schema))}
    of_analysis = {t for t in tried if is_accepted(lambda t=t: analyze(draws, analyses[t]))}
    assert of_plan == of_analysis
    assert tried >= of_plan >= ANALYZED
    assert not of_plan & NOT_ANALYZED


def test_a_purpose_is_refused_with_the_words_of_its_analysis() -> None:
    release = one_of_each_kind()
    for formula in ("whole ~ whole + code", "whole ~ code | named", "whole ~ named == 'A'"):
        with pytest.raises(InputError) as of_analysis:
            analyze(release, OLS(formula), 2)
        with pytest.raises(InputError) as of_purpose:
            checked_purposes([f"ols {formula}"], release.schema)
        text = repr(f"ols {formula}")
        said = f"The purpose {text} cannot be analyzed. {of_analysis.value}"
        assert str(of_purpose.value) == said


def test_without_the_libraries_of_analyses_purposes_are_read_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = Schema([Integer("stay", 0, 9), Categorical("ward", ["a", "b"])])
    monkeypatch.setattr("margrave.purpose_analyses.find_spec", lambda name: None)
    assert checked_purposes(["ols stay ~ log(ward)"], schema)
    with pytest.raises(InputError, match="stay is the outcome and stands on the right side too"):
        checked_purposes(["ols stay ~ ward + stay"], schema)
    with pytest.raises(InputError, match="needs numbers"):
        checked_purposes(["mean ward"], schema)


def test_a_purpose_may_name_values_that_a_run_will_learn() -> None:
    schema = Schema([
        Learn("ward", "categorical"), Learn("stay", "integer"), Learn("cost", "real"), Learn("born", "date"),
        Learn("seen", "timestamp"), Boolean("smokes", missing=True),
    ])  # fmt: skip
    served = [
        "ols stay ~ ward == 'a'", "ols stay ~ C(ward, Treatment('a')) + seen", "logistic ward ~ stay",
        "ols stay ~ C(cost > 3) * born + cost", "logistic smokes ~ hour(seen)",
        "ols cost ~ C(stay, Treatment(40))", "mean cost by ward", "logistic stay ~ cost",
    ]  # fmt: skip
    assert len(checked_purposes(served, schema)) == len(served)
    for text, words in (
        ("ols stay ~ log(ward)", "ward is not a number"), ("ols stay ~ cost | ward", "ward is not true or false"),
        ("ols stay ~ ward > 'a'", "ward has no order"), ("ols stay ~ C(cost)", "a category for every value of 'cost'"),
        ("logistic born ~ cost", "other values than 0 and 1"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=words):
            checked_purposes([text], schema)


def test_an_analysis_in_words_has_groups_by_a_part_of_a_time() -> None:
    release = one_of_each_kind()
    found = analyze(release, "mean whole by weekday(born)", 2, seed=1)
    assert found.names[0].startswith("mean(whole) | weekday(born) = ")


def test_a_part_without_its_column_makes_groups() -> None:
    """Frames of a release have the part as a column of categories in the order of the week."""
    frame = pd.DataFrame(
        {"born": [datetime(2020, 1, 6 + i % 7) for i in range(210)], "x": [0, 1, 2] * 70}
    )
    schema = Schema([Weekday("weekday", "born"), Integer("x", 0, 2)])
    release = release_of(frame, schema, [("weekday", "x")])
    assert checked_purposes(["mean x by weekday(born)", "ols x ~ C(weekday)"], schema)
    found = analyze(release, "mean x by weekday(born)", 2, seed=1)
    assert found.names[0] == "mean(x) | weekday = Monday"


def test_an_ordinal_column_has_no_mean_before_anything_is_spent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ordinal = SCHEMA.replace('"integer"\nlow = 0\nhigh = 9', '"ordinal"\ncategories = ["1", "2"]')
    (tmp_path / "houses.toml").write_text(ordinal)
    pq.write_table(houses(), tmp_path / "houses.parquet")
    common = ["-s", str(tmp_path / "houses.toml"), "--epsilon", "1", "--delta", "1e-9"]
    synthesize = ["synthesize", str(tmp_path / "houses.parquet"), *common, "-o"]
    for command in (["plan", *common], [*synthesize, str(tmp_path / "x.csv")]):
        assert run([*command, "--for", "mean area by kind"]) != 0
        assert (
            "The purpose 'mean area by kind' needs numbers, and 'area' has categories. Ask for shares: \"share area\"."
            ' Or, if its values are whole numbers, declare it in the schema with kind = "integer".'
        ) in capsys.readouterr().err
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize(
    ("text", "wrong", "remedy"),
    [
        ("correlation price, price", "names 'price' twice", "each column once"),
        ("mean price by price", "names 'price' twice", "each column once"),
        ("mean price by type, type", "names 'type' twice", "each column once"),
        ("effect of sold on sold", "names 'sold' twice", "each column once"),
        ("effect of sold on price given sold", "names 'sold' twice", "each column once"),
        ("mean price by type where sold=1 within 2", "purposes have none", '"mean price by type, sold"'),
        ("mean price where sold by=a", "purposes have none", '"mean price by sold by"'),
        ("count by type if sold=1", "purposes have none", 'Leave "if sold=1" out, and name its column'),
        ("ols price ~ area where sold=1", "purposes have none", "by --where"),
        ("share type = flat by sold", "share type covers every value", '"share type by sold"'),
        ("share area > 65", "share area covers every value", '"ols area > 65 ~ 1"'),
        ("mean price for type", "has 'for' before its groups", '"mean price by type"'),
        ("mean price within two", "the width 'two', which is not a number", '"mean price within 0.1"'),
        ("ols price ~ area within 5 %", "the width '5 %'", '"ols price ~ area within 0.1"'),
        ("correlation price area", "a comma is missing between 'price' and 'area'", '"price, area"'),
        ("count by type;sold", "a comma is missing between 'type' and 'sold'", '"type, sold"'),
        ("mean price type", "'by' is missing between 'price' and 'type'", '"price by type"'),
    ],
)  # fmt: skip
def test_words_near_to_a_purpose_are_refused_with_the_purpose(
    text: str, wrong: str, remedy: str
) -> None:
    with pytest.raises(InputError) as caught:
        Purpose.of(text, DOMAIN)
    assert wrong in caught.value.message
    assert remedy in (caught.value.remedy or "")


VISITS = Schema([
    Integer("age", 0, 99), Categorical("ward", ["surgery", "eye", "ear"], missing=True), Integer("stay", 0, 9),
    Real("cost", 0.0, 100.0), Boolean("smoker"), Categorical("sex", ["f", "m"]), Ordinal("grade", ["1", "2", "3"]),
    Date("admitted", date(2020, 1, 1), date(2020, 12, 31)), Coded("code", 3),
])  # fmt: skip


@pytest.mark.parametrize("inference", [True, False])
def test_an_effect_is_on_a_number_or_on_yes_and_no(
    inference: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not inference:
        monkeypatch.setattr("margrave.purpose_analyses.find_spec", lambda name: None)
    for outcome, formula in (
        ("ward", "ward == 'surgery' ~ smoker + age"),
        ("grade", "grade == '1' ~ smoker + age"),
        ("sex", "sex ~ smoker + age"),
    ):
        text = f"effect of smoker on {outcome} given age"
        with pytest.raises(InputError) as caught:
            checked_purposes([text], VISITS)
        assert str(caught.value) == (
            f"The purpose {text!r} has the outcome {outcome!r}, which has categories. An effect is on a number or on"
            f' yes and no. Name another outcome, or write "logistic {formula}".'
        )
        assert checked_purposes([f"logistic {formula}"], VISITS)
    for outcome in ("stay", "cost", "admitted", "code"):
        assert checked_purposes([f"effect of ward on {outcome} given smoker"], VISITS)
    assert checked_purposes(["effect of ward on smoker"], VISITS)


def test_an_effect_on_categories_is_refused_by_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "houses.toml").write_text(SCHEMA)
    plan = ["plan", "-s", str(tmp_path / "houses.toml"), "--epsilon", "1", "--delta", "1e-9"]
    assert run([*plan, "--for", "effect of area on kind"]) != 0
    said = capsys.readouterr()
    assert "An effect is on a number or on yes and no." in said.err
    assert "standard deviations of kind" not in said.out + said.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("share of surgery",
         "no column 'surgery': it is a value of 'ward'. Write \"share ward\", which covers every value."),
        ("share eye by sex", 'Write "share ward by sex", which covers every value.'),
        ("share eye by ward", 'Write "share ward", which covers every value.'),
        ("count of eye", 'Write "count by ward", which covers every value.'),
        ("share of smokers", "Did you mean 'smoker'? Write \"share COLUMN\", such as \"share ward\"."),
        ("share of the ward by sex", 'has \'of\' before its column. Write "share ward by sex".'),
        ("mean of stay by ward", 'Write "mean stay by ward".'),
        ("mean of the ward by sex",
         'Write "share ward by sex": \'ward\' has categories, which have no mean.'),
        ("quantile of stay 0.9", 'Write "quantile stay 0.9".'),
        ("count of ward", 'Write "count by ward".'),
        ("correlation stay",
         "A correlation is between two columns, and the purpose 'correlation stay' has one. Write \"correlation stay"
         ' and age".'),
        ("correlation age", 'Write "correlation age and stay".'),
    ],
)  # fmt: skip
def test_a_value_or_a_missing_column_is_refused_with_the_columns(text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        checked_purposes([text], VISITS)
    assert words in str(caught.value)


def test_without_values_a_share_is_refused_with_its_form() -> None:
    with pytest.raises(InputError, match=r'Write "share COLUMN", such as "share type"\.'):
        Purpose.of("share of flat", DOMAIN)


def test_a_text_that_is_not_an_analysis_is_refused_with_texts_of_analyses() -> None:
    release = one_of_each_kind()
    with pytest.raises(InputError, match="The analysis 'mode whole' is not understood") as caught:
        analyze(release, "mode whole")
    remedy = caught.value.remedy or ""
    assert '"quantile price 0.9"' in remedy
    assert not re.search("effect|count|share", remedy)
    with pytest.raises(InputError) as caught:
        analyze(release, "effect of truth on whole given broken")
    assert (caught.value.remedy or "").startswith(
        'An effect is a coefficient of a regression: write "ols whole ~ '
    )
    with pytest.raises(InputError, match="logistic ranked == '1' ~ truth"):
        analyze(release, "effect of truth on ranked")


def test_names_of_columns_may_have_the_words_of_other_errors() -> None:
    domain = Domain.of({"pay for work": 4, "rise if any": 3, "hours within two": 2, "a=b": 2})
    for text in ("mean pay for work by rise if any", "count by hours within two", "share a=b"):
        assert Purpose.of(text, domain).columns
    assert Purpose.of("ols price ~ type == 'flat if any'", DOMAIN).columns == ("price", "type")


@pytest.mark.parametrize("text", ["price", "effect of sold", "mode price"])
def test_what_is_not_understood_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InputError, match="is not understood") as caught:
        Purpose.of(text, DOMAIN)
    assert "mean price by type" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["ols price ~ cost", "ols price", "logistic sold ~ os.system('x')"]
)
def test_formulas_are_those_of_analyses(text: str) -> None:
    with pytest.raises(InputError):
        Purpose.of(text, DOMAIN)


def test_purposes_are_a_list_of_texts() -> None:
    with pytest.raises(InputError, match="list of texts"):
        purposes_of("mean price", DOMAIN)
    with pytest.raises(InputError, match="list of texts"):
        purposes_of([3], DOMAIN)  # type: ignore[list-item]


def test_purposes_weigh_as_much_as_all_else() -> None:
    base = Workload.all_kway(DOMAIN, 2)
    found = purposes_of(["mean price by type", "ols price ~ area + C(type)"], DOMAIN)
    made = workload_for(found, base)
    assert sum(made.weights.values()) == pytest.approx(2 * sum(base.weights.values()))
    assert made.weights["price", "type"] == pytest.approx(1 + 5 + 5 / 3)
    assert made.purposes == ("mean price by type", "ols price ~ area + C(type)")
    assert first_of(found) == (("price", "type"), ("price", "area"), ("type", "area"))


def test_columns_that_are_left_out_take_their_marginals_along() -> None:
    made = workload_for(purposes_of(["mean price by type"], DOMAIN), Workload.all_kway(DOMAIN, 2))
    left = made.within(Domain.of({"price": 20, "area": 10}))
    assert dict(left.weights) == {("price", "area"): 1.0}
    assert left.first == ()
    assert left.purposes == made.purposes


def test_a_mechanism_without_a_workload_says_so() -> None:
    alike = (MST(), PrivPGD(), FEM(), MWEM(granularity="query"))
    for mechanism in alike:
        with pytest.raises(InputError, match="same questions"):
            serving(mechanism, ["mean price"], DOMAIN)
    assert serving(MST(), [], DOMAIN) == MST()


def test_a_mechanism_that_needs_a_workload_gets_the_purposes_alone() -> None:
    made = serving(NAPSUMQ(), ["mean price by type"], DOMAIN)
    assert made.workload is not None
    assert dict(made.workload.weights) == {("price", "type"): 1.0}


def houses(rows: int = 8000) -> pa.Table:
    rng = np.random.default_rng(7)
    area, kind = rng.integers(0, 10, rows), rng.integers(0, 3, rows)
    price = np.clip(area + 3 * kind + rng.normal(0, 2, rows), 0, 19).astype(int)
    return pa.table(
        {"price": price, "area": area, "kind": [["flat", "house", "hut"][k] for k in kind]}
    )


SCHEMA = """
[schema]
version = 1
[[column]]
name = "price"
kind = "integer"
low = 0
high = 19
[[column]]
name = "area"
kind = "integer"
low = 0
high = 9
[[column]]
name = "kind"
kind = "categorical"
categories = ["flat", "house", "hut"]
"""


def test_aim_measures_what_a_purpose_rests_on_and_the_release_says_so(tmp_path: Path) -> None:
    schema = margrave.Schema.from_toml(SCHEMA)
    asked = ["mean price by kind", "ols price ~ area + C(kind)"]
    release = margrave.synthesize(houses(), schema, epsilon=1.0, delta=1e-9, purposes=asked, seed=1)
    order = list(dict.fromkeys(release.transcript.cliques))
    assert order[:6] == [
        ("price",),
        ("area",),
        ("kind",),
        ("price", "kind"),
        ("price", "area"),
        ("area", "kind"),
    ]
    assert [p.unmeasured for p in release.purposes] == [(), ()]
    assert release.certificate()["purposes"][0] == {
        "purpose": "mean price by kind", "marginals": 1, "unmeasured": []
    }  # fmt: skip
    write_report(release, tmp_path / "x.html")
    assert (
        "ols price ~ area + C(kind): all 3 marginals were measured"
        in (tmp_path / "x.html").read_text()
    )
    release.save(tmp_path / "x.margrave")
    again = Release.load(tmp_path / "x.margrave")
    assert again.purposes == release.purposes


def test_marginals_that_were_not_measured_are_named() -> None:
    schema = margrave.Schema.from_toml(SCHEMA)
    asked = ["mean price by kind", "effect of kind on price given area"]
    release = margrave.synthesize(
        houses(500), schema, epsilon=0.3, delta=1e-9, mechanism="mwem-pgm", purposes=asked, seed=1
    )
    for support in release.purposes:
        cliques = Purpose.of(support.purpose, schema.domain).cliques
        measured = [set(c) for c in release.transcript.cliques]
        assert support.unmeasured == tuple(
            c for c in cliques if not any(m >= set(c) for m in measured)
        )
        assert ("assumption" in support.words) == bool(support.unmeasured)


def test_half_widths_shrink_with_rows_and_noise_and_a_wanted_one_is_reached_at_the_stated_epsilon() -> (
    None
):
    found = purposes_of(
        ["mean price by type within 0.2", "logistic sold ~ price", "count by type"], DOMAIN
    )

    def widths(rows: int, epsilon: float) -> list[float]:
        budget = Budget.approx(epsilon, 1e-9)
        made = plan_of(DOMAIN, AIM(workload=workload_for(found, Workload.all_kway(DOMAIN, 2))),
                    budget=budget, unit="add-remove-row", rows=rows)  # fmt: skip
        return [p.half_width for p in made.purposes]

    first = widths(5000, 1.0)
    more = widths(50_000, 1.0)
    assert all(b < a for a, b in zip(first[:2], more[:2], strict=True))
    assert first[2] < more[2]  # a count varies more among more rows
    assert all(b < a for a, b in zip(first, widths(5000, 3.0), strict=True))
    made = plan_of(DOMAIN, AIM(workload=workload_for(found, Workload.all_kway(DOMAIN, 2))),
                budget=Budget.approx(1.0, 1e-9), unit="add-remove-row", rows=5000)  # fmt: skip
    epsilon = made.purposes[0].epsilon
    assert epsilon is not None
    assert widths(5000, epsilon)[0] == pytest.approx(0.2, rel=0.01)


@pytest.mark.parametrize(
    ("learned", "assumed"),
    [
        ((), "if values are spread evenly between their bounds; more if they lie closer together"),
        (("area",), "if values are normal (area is learned; a long tail makes it wider)"),
        (("price", "area"), "if values are normal (price, area are learned; a long tail makes it wider)"),
    ],
)  # fmt: skip
def test_the_half_width_of_a_correlation_is_a_coefficient(learned: Clique, assumed: str) -> None:
    (found,) = widths_of(
        purposes_of(["correlation price, area"], DOMAIN), DOMAIN, rows=1000, learned=learned, scale_of=lambda _: 1e-9,
        columns=[Integer("price", 0, 19)], rho=Fraction(1, 10), epsilon_of=lambda rho: rho,
    )  # fmt: skip
    assert found.half_width == pytest.approx(1.96 / 1000**0.5)
    assert found.words == f"about ±0.062 as a correlation coefficient, {assumed}"


def test_a_width_below_what_sampling_allows_is_reached_by_no_epsilon() -> None:
    (counts,) = widths_of(
        purposes_of(["count by type within 30"], DOMAIN), DOMAIN, rows=1000, learned=(), scale_of=lambda _: 20.0,
        rho=Fraction(1, 10), epsilon_of=lambda rho: rho,
    )  # fmt: skip
    assert (counts.half_width, counts.of) == (pytest.approx(1.96 * (400 + 187.5) ** 0.5), "rows")
    assert counts.epsilon == pytest.approx(0.1 * 400 / ((30 / 1.96) ** 2 - 187.5))
    (found,) = widths_of(
        purposes_of(["mean price by type within 0.001"], DOMAIN), DOMAIN, rows=1000, learned=(), scale_of=lambda _: 5.0,
        rho=Fraction(1, 10), epsilon_of=lambda rho: rho,
    )  # fmt: skip
    assert found.epsilon is None
    assert "at any epsilon" in found.words


def test_a_stated_half_width_of_a_count_includes_the_sampling_of_the_rows() -> None:
    """That of `Count`: the rows are drawn from a population, and each is in one of the groups."""
    rng, rows, scale, groups = np.random.default_rng(3), 5_000, 4.0, 4
    (stated,) = widths_of(purposes_of(["count by type"], DOMAIN), DOMAIN, rows=rows, learned=(),
                          scale_of=lambda _: scale, rho=Fraction(1), epsilon_of=lambda rho: rho)  # fmt: skip
    counts = rng.binomial(rows, 1 / groups, 4_000) + rng.normal(0, scale, 4_000)
    assert stated.half_width == pytest.approx(1.96 * counts.std(), rel=0.05)


def test_a_stated_half_width_is_that_of_simulated_means() -> None:
    """Groups of equal size, values spread evenly: as the plan assumes."""
    rng, rows, scale, codes, groups = np.random.default_rng(2), 20_000, 30.0, 20, 4
    (stated,) = widths_of(purposes_of(["mean price by type"], DOMAIN), DOMAIN, rows=rows, learned=(),
                          scale_of=lambda _: scale, rho=Fraction(1), epsilon_of=lambda rho: rho)  # fmt: skip
    values, errors = np.arange(codes), []
    for _ in range(600):
        counts = rng.multinomial(rows, np.full(codes * groups, 1 / (codes * groups))).reshape(
            groups, codes
        )
        noisy = counts + rng.normal(0, scale, counts.shape)
        errors.append((noisy @ values / noisy.sum(axis=1) - values.mean()) / values.std())
    assert stated.half_width == pytest.approx(1.96 * np.std(errors), rel=0.1)


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
def test_the_half_width_of_a_small_group_is_that_of_simulated_means(share: float) -> None:
    rng, rows, scale = np.random.default_rng(4), 100_000, 10.0
    (stated,) = widths_of(purposes_of(["mean price by type"], DOMAIN), DOMAIN, rows=rows, learned=(),
                          scale_of=lambda _: scale, rho=Fraction(1), epsilon_of=lambda rho: rho)  # fmt: skip
    codes = DOMAIN.size("price")
    values, errors = np.arange(codes), []
    for _ in range(600):
        counts = rng.multinomial(rows * share, np.full(codes, 1 / codes))
        noisy = counts + rng.normal(0, scale, codes)
        errors.append((noisy @ values / noisy.sum() - values.mean()) / values.std())
    assert stated.by_share[share] == pytest.approx(1.96 * np.std(errors), rel=0.15)
    assert f"of {100 * share:.0f} %" in stated.words


@pytest.mark.slow
def test_a_planned_half_width_is_within_half_of_those_of_releases() -> None:
    """Rows that are spread evenly, and a regression that is named before the run."""
    rows, formula = 8000, "price ~ area + C(kind)"
    rng = np.random.default_rng(3)
    table = pa.table({
        "price": rng.integers(0, 20, rows), "area": rng.integers(0, 10, rows),
        "kind": rng.choice(["flat", "house", "hut"], rows),
    })  # fmt: skip
    schema, given = margrave.Schema.from_toml(SCHEMA), {"epsilon": 0.5, "delta": 1e-9}
    run = Run(schema=schema, budget=Budget.approx(**given), unit=AddRemoveRow(), mechanism=AIM(),
              purposes=(f"ols {formula}",))  # fmt: skip
    (planned,) = run.plan(rows).purposes
    widest = []
    for _ in range(7):  # one release is off by up to a factor of two, by its noise
        found = analyze(run.synthesize(table), OLS(formula), m=25, seed=2)
        ends = [found[n].conf_int() for n in found.names if n.startswith("C(kind)")]
        widest.append(max(high - low for low, high in ends) / 2)
    typical = float(np.median(widest) / np.std(table["price"].to_numpy()))
    assert planned.groups == 3
    assert typical / 1.5 < planned.half_width < typical * 1.5


def test_the_command_line_takes_purposes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "houses.toml").write_text(SCHEMA)
    common = ["-s", str(tmp_path / "houses.toml"), "--delta", "1e-9"]
    one = ["plan", *common, "--epsilon", "1", "--for"]
    assert run([*one, "mean price by kind within 0.1", "--json"]) == 0
    (width,) = json.loads(capsys.readouterr().out)["purposes"]
    assert width["purpose"] == "mean price by kind within 0.1"
    assert width["epsilon"] > 0
    assert [g["share"] for g in width["by_share"]] == [0.5, 0.1, 0.02]
    assert run([*one, "mean cost by kind"]) != 0
    assert "There is no column 'cost'" in capsys.readouterr().err
    pq.write_table(houses(), tmp_path / "houses.parquet")
    out = ["-o", str(tmp_path / "x.csv"), "--for", "mean price by kind"]
    sure = [*out, "--epsilon", "4"]
    assert run(["synthesize", str(tmp_path / "houses.parquet"), *common, *sure]) == 0
    assert "Made for mean price by kind: its marginal was measured.\n" in capsys.readouterr().out
    out += ["--epsilon", "0.02", "--rows", "10", "--overwrite"]
    assert run(["synthesize", str(tmp_path / "houses.parquet"), *common, *out]) == 0
    line = next(t for t in capsys.readouterr().out.splitlines() if t.startswith("Made for"))
    groups = r"(\d of 3 groups of kind \(.*\)|all 3 groups of kind)"
    doubt = rf"(the mean of price in {groups}|the row count of each group) is"
    assert re.match(
        rf"Made for mean price by kind: its marginal was measured\. Do not use it: {doubt} not reliable\.",
        line,
    )
