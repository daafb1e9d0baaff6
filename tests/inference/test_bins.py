"""An analysis that is finer than the bins of its columns says so, and a mean what the bins leave open."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from fractions import Fraction
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from margrave.cli.main import run
from margrave.inference import (
    OLS,
    Analysis,
    By,
    Correlation,
    Estimand,
    Logistic,
    Mean,
    Proportion,
    Quantile,
    analyze,
    analyze_several,
)
from margrave.inference.caveats.bins import Binned
from margrave.inference.caveats.positions import Positions
from margrave.inference.columns import date_text
from margrave.inference.datasets import Frames
from margrave.inference.probe import Trial
from margrave.marginal.counting import count_cliques
from margrave.models import GraphicalFit
from margrave.models.specs import fit_spec
from margrave.provenance import Provenance
from margrave.release import Release
from margrave.schema import Boolean, Categorical, Date, Integer, Real, Schema, Timestamp
from margrave.transcript import Measurement, Transcript
from tests.support import fake_model

ROWS = 4_000
SCHEMA = Schema(
    [
        Integer("visits", 0, 20, edges=[1, 2, 3, 5]),
        Integer("age", 18, 89, bins=12),  # six years each
        Integer("children", 0, 3),
        Categorical("sex", ["F", "M"]),
        Boolean("ill"),
    ]
)


def table(rng: np.random.Generator) -> pd.DataFrame:
    age = rng.integers(18, 90, ROWS)
    ill = rng.random(ROWS) < 1 / (1 + np.exp(4 - 0.06 * age))
    return pd.DataFrame(
        {
            "visits": rng.poisson(1 + 2 * ill),
            "age": age,
            "children": rng.integers(0, 4, ROWS),
            "sex": rng.choice(["F", "M"], ROWS),
            "ill": ill,
        }
    )


def release(frame: pd.DataFrame, schema: Schema, cliques: Sequence[tuple[str, ...]]) -> Release:
    """A release of marginals of a table, with a little noise."""
    rng, codes = np.random.default_rng(1), schema.encode(frame)
    counts = count_cliques(codes, cliques)
    noisy = {
        c: np.rint(counts[c] + rng.normal(0.0, 2.0, counts[c].shape)).astype(np.int64)
        for c in cliques
    }
    transcript = Transcript(tuple(Measurement(c, v, 2.0, Fraction(1, 8)) for c, v in noisy.items()))
    model = GraphicalFit()(schema.domain, transcript, rng=np.random.default_rng(0))
    provenance = Provenance("by hand", fit=fit_spec(GraphicalFit()))
    return Release(schema, model, transcript, fake_model.account_of(transcript), provenance)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return table(np.random.default_rng(0))


@pytest.fixture(scope="module")
def made(frame: pd.DataFrame) -> Release:
    return release(
        frame, SCHEMA, [("visits", "age"), ("age", "ill"), ("visits", "sex"), ("children",)]
    )


def analyzed(of: Release, fit: Any, **more: Any) -> Analysis:
    return analyze(
        of,
        fit,
        8,
        seed=1,
        method="bootstrap",
        **{
            "columns": None if isinstance(fit, Estimand) else "probe",
            "bias_correct": False,
            **more,
        },
    )


def told(found: Analysis) -> list[str]:
    return [n for n in found.notes if "data sets draw values" in n]


def binned(found: Analysis) -> dict[str, tuple[str, ...]]:
    return {e.name: e.binned for e in found if e.binned}


@pytest.mark.parametrize("correct", [False, True])
def test_a_mean_says_what_the_bins_leave_open(
    made: Release, frame: pd.DataFrame, correct: bool
) -> None:
    found = analyze(made, Mean("visits"), 30, seed=1, method="bootstrap", bias_correct=correct)
    (note,) = told(found)
    assert note.startswith(
        "visits (the widest is 5 to 20, 75 % of the column's range): the interval"
    )
    assert found["mean(visits)"].binned == ("visits",)
    ends = found["mean(visits)"].ends
    assert ends is not None
    counts = np.bincount(SCHEMA.encode(frame).column("visits"), minlength=5) / ROWS
    assert ends == pytest.approx((counts @ [0, 1, 2, 3, 5], counts @ [0, 1, 2, 4, 20]), rel=0.03)
    low, high = found["mean(visits)"].conf_int()
    truth = 1 + 2 * frame.ill.mean()
    assert not low < truth < high, "the interval knows nothing of it"
    assert ends[0] < truth < ends[1]
    assert f"{ends[0]:.4g}, at the high ends {ends[1]:.4g}, up to " in note
    estimate, half = found["mean(visits)"].estimate, found["mean(visits)"].half_width()
    times = max(estimate - ends[0], ends[1] - estimate) / half
    assert f"{times:.2g} times half the width of its interval away. {Binned.drawn_evenly}" in note


@pytest.mark.parametrize("bias_correct", [False, True])
def test_bin_ends_are_corrected_for_bias_as_the_mean_is(made: Release, bias_correct: bool) -> None:
    """By hand: the shares of codes in all refits, and less their bias 2 p̂ − p̄."""
    draws = made.draws(6, seed=2, method="bootstrap")
    own = draws.released()
    assert own is not None

    def shares(model: Any) -> Any:
        counts = model.project(("visits",)).values
        return counts / counts.sum()

    refitted = np.mean([shares(m) for m in draws.models()], axis=0)
    released = shares(next(own.models()))
    expected = 2 * released - refitted if bias_correct else refitted
    found = analyze(draws, Mean("visits"), bias_correct=bias_correct)["mean(visits)"]
    low, high = np.array([0, 1, 2, 3, 5]), np.array([0, 1, 2, 4, 20])
    assert found.ends == pytest.approx((expected @ low, expected @ high), rel=1e-12)
    assert abs((released - refitted) @ high) > 1e-6, "the two cases differ"


@pytest.mark.parametrize(
    "fit",
    [
        Mean("children"),
        Proportion("visits", 2),
        Proportion("ill", True),
        OLS("visits ~ C(children) + sex", where={"visits": (0, 2)}),
        OLS("age > 65 ~ sex"),  # 66 begins a bin
        Logistic("ill ~ I(visits > 4) + C(sex)"),
        Logistic("visits ~ sex", success=1),
        Quantile("children"),
    ],
    ids=str,
)
def test_whole_codes_need_no_note(made: Release, fit: Any) -> None:
    found = analyzed(made, fit, on_unstable="drop")
    assert told(found) == []
    assert binned(found) == {}


@pytest.mark.parametrize(
    ("fit", "columns"),
    [
        (Proportion("visits", 3), ["visits"]),
        (Proportion("visits", 19), ["visits"]),  # though hardly any record has it
        (OLS("visits ~ age + C(sex)"), ["visits", "age"]),
        (OLS("age > 66 ~ sex"), ["age"]),
        pytest.param(Logistic("ill ~ np.log(age) + C(visits)"), ["age"], marks=pytest.mark.slow),
        (Logistic("visits ~ sex", success=4), ["visits"]),
    ],
    ids=str,
)
def test_finer_than_the_bins_has_one_note_on_all_columns(
    made: Release, fit: Any, columns: list[str]
) -> None:
    found = analyzed(made, fit, on_unstable="drop")
    (note,) = told(found)
    assert [c for c in SCHEMA.domain if f"{c} (the widest is " in note] == sorted(columns)[::-1]
    assert {c for some in binned(found).values() for c in some} == set(columns)


def test_a_category_for_each_value_is_marked_for_values_that_share_a_bin(made: Release) -> None:
    found = analyzed(made, OLS("ill ~ C(visits)"), on_unstable="drop")
    own = {f"C(visits)[T.{k}]" for k in (0, 2)}
    inside = {f"C(visits)[T.{k}]" for k in range(3, 21)}
    assert own <= set(binned(found).keys() ^ set(found.names))
    assert {e.name for e in found if e.coarse} == inside & set(found.names)
    assert len(inside & set(found.names)) > 4


@pytest.mark.parametrize(
    ("inside", "same"),
    [
        ("C(visits > 9)", "(visits > 9)"),
        ("C(np.floor(age / 10))", ""),
        ("C(pd.cut(age, [0, 40, 99]))", "pd.cut(age, [0, 40, 99])"),
    ],
)
def test_an_expression_as_a_category_is_as_fine_as_without(
    made: Release, inside: str, same: str
) -> None:
    """The values of a bin are drawn evenly, so what cuts it is not known, whatever it is written as."""
    found = analyzed(made, OLS(f"ill ~ {inside}"), on_unstable="drop")
    assert len(binned(found)) == len(found)
    if same:
        plain = analyzed(made, OLS(f"ill ~ {same}"), on_unstable="drop")
        assert [e.coarse for e in found] == [e.coarse for e in plain]


def test_coefficients_that_lean_on_a_column_are_named(made: Release) -> None:
    found = analyzed(made, OLS("children ~ age + sex"))
    assert binned(found) == {"Intercept": ("age",), "age": ("age",)}
    (note,) = told(found)
    assert "the intervals of Intercept, age hold if values are spread evenly within bins." in note
    assert found.summary()["binned"].tolist() == [
        name in ("Intercept", "age") for name in found.names
    ]


def test_the_note_of_a_learned_column_states_its_learned_distribution() -> None:
    """Draws of [0, 10) lie near 1 there, as learned, and not evenly."""
    rng = np.random.default_rng(3)
    learned = Real(
        "cost", 0, 30, edges=[10], leaf_edges=[0, 1, 10, 30], leaf_weights=[0.8, 0.1, 0.1]
    )
    frame = pd.DataFrame(
        {"cost": rng.exponential(3.0, ROWS).clip(0, 30), "age": rng.integers(0, 90, ROWS)}
    )
    of = release(frame, Schema([learned, Integer("age", 0, 89, bins=12)]), [("cost", "age")])
    assert (of.sample(500, seed=1, as_="pandas").cost < 1).mean() > 0.6
    (note,) = told(analyzed(of, Mean("cost")))
    assert (
        "the interval of mean(cost) holds if values within bins follow the learned distribution. "
        in note
    )
    assert note.endswith(Binned.drawn_as_learned)
    assert "evenly" not in note
    (note,) = told(analyzed(of, OLS("cost ~ age")))
    assert (
        "hold if values within bins are spread evenly, and those of cost follow the learned distribution. "
        in note
    )
    assert note.endswith(f"{Binned.drawn_evenly} {Binned.drawn_as_learned}")
    (note,) = told(analyzed(of, Mean("age")))
    assert note.endswith(Binned.drawn_evenly)
    (note,) = told(analyzed(of, lambda frame: {"a": (frame.cost.mean() + rng.random(), 0.01)}))
    assert (
        "is valid if values within bins are spread evenly, and those of cost follow the learned"
        in note
    )


def test_the_variance_within_learned_bins_is_that_of_the_learned_distribution() -> None:
    values = pa.table({"x": [0.05] * 900 + [9.5] * 100})
    found = {}
    for weights in ([0.9, 0.0, 0.1], [0.0, 0.0, 0.0]):  # without weights values are even
        column = Real("x", 0, 10, edges=[9], leaf_edges=[0, 0.1, 9, 10], leaf_weights=weights)
        binned = Binned.values_of(column, Frames.of_schema(Schema([column])))
        found[sum(weights)] = binned.hidden(values)
    assert found[1.0] < 0.01
    assert found[0.0] > 0.5


def test_a_relation_that_learned_bins_weaken_is_marked() -> None:
    """Within a learned bin values follow no other column, however fine the parts of its distribution are."""
    rng = np.random.default_rng(3)
    x = rng.exponential(2.0, ROWS).clip(0, 20)
    frame = pd.DataFrame({"x": x, "y": (x + rng.normal(0, 1, ROWS)).clip(-5, 25)})
    parts = np.linspace(0, 20, 201)
    weights = np.diff(-np.exp(-parts / 2))
    marked = {}
    for name, edges in (("wide", [1, 2, 4]), ("fine", parts[1:-1:2].tolist())):
        learned = Real(
            "x", 0, 20, edges=edges, leaf_edges=parts.tolist(), leaf_weights=weights.tolist()
        )
        of = release(frame, Schema([learned, Real("y", -5, 25, bins=300)]), [("x", "y")])
        marked[name] = analyzed(of, OLS("y ~ x"))["x"].coarse
    assert marked == {"wide": ("x",), "fine": ()}


def test_real_columns_have_a_note_where_it_can_matter() -> None:
    rng = np.random.default_rng(3)
    fine, long, y = rng.normal(50, 15, ROWS), rng.exponential(2.0, ROWS), rng.normal(0, 1, ROWS)
    frame = pd.DataFrame({"fine": fine, "long": long, "y": y})
    schema = Schema(
        [Real("fine", 0, 100, bins=100), Real("long", 0, 100, bins=8), Real("y", -5, 5, bins=64)]
    )
    of = release(frame, schema, [("fine", "y"), ("long", "y")])
    (note,) = told(analyzed(of, Mean("long")))
    assert "(the widest is [0, 12.5), 12 % of the column's range)" in note
    assert told(analyzed(of, OLS("y ~ fine"))) == []
    (note,) = told(analyzed(of, OLS("y ~ long")))
    assert note.startswith("long (")
    wide = release(frame[["y"]], Schema([Real("y", -5, 5, bins=640)]), [("y",)])
    assert told(analyzed(wide, Mean("y"))) == [], "its bins cannot move it out of its interval"


def long_tails(edges: Sequence[float]) -> Release:
    """Pay and spending with long tails, in the same bins; the values in a bin follow those of the other."""
    rng = np.random.default_rng(5)
    shared, own = rng.normal(size=(2, ROWS))
    pay = np.minimum(np.exp(shared), 100)
    frame = pd.DataFrame({"pay": pay, "spend": np.minimum(np.exp(shared / 2 + own), 100)})
    schema = Schema([Real(name, 0, 100, edges=list(edges)) for name in ("pay", "spend")])
    return release(frame, schema, [("pay", "spend")])


def test_bins_too_wide_for_a_long_tail_are_marked() -> None:
    """The population has 0.32 and 0.43, and no interval of the wide bins holds that."""
    wide, fine = long_tails([0.5, 1, 2, 4]), long_tails(np.geomspace(0.1, 50, 24).round(2).tolist())
    fits = [Correlation("pay", "spend"), OLS("spend ~ pay")]
    draws = [of.draws(8, seed=1, method="bootstrap") for of in (wide, fine)]
    several = [analyze_several(d, fits, bias_correct=False) for d in draws]
    for name, found, by_fine in zip(("corr(pay, spend)", "pay"), *several, strict=True):
        assert found[name].flagged
        assert set(found[name].coarse) <= {"pay", "spend"}
        text = next(str(c) for c in found.caveats if c.kind == "coarse bins")
        assert set(found[name].coarse) <= set(text.partition(":")[0].split())
        assert "bins are too wide for" in text
        assert "times half the width of its interval" in text
        assert "finer edges" in text
        assert "learn = true" in text
        low, high = found[name].conf_int()
        assert not low < {"pay": 0.43, "corr(pay, spend)": 0.32}[name] < high
        assert by_fine[name].coarse == ()


PAY = Schema(
    [
        Real("pay", 0, 1_000_000, edges=[10_000, 100_000]),
        Integer("score", 0, 20, bins=7),
        Integer("age", 20, 79, bins=10),
        Date("day", date(2020, 1, 1), date(2020, 12, 30), bins=5),
        Categorical("sex", ["F", "M"]),
    ]
)


@pytest.fixture(scope="module")
def paid() -> Release:
    """Pay in three wide bins, with most values near the low end of the second; score rises with age."""
    rng = np.random.default_rng(6)
    age, start = rng.integers(20, 80, ROWS), np.datetime64("2020-01-01")
    frame = pd.DataFrame(
        {
            "pay": np.minimum(np.exp(rng.normal(9.8, 0.8, ROWS)), 1e6),
            "score": np.clip(age // 6 + rng.integers(0, 8, ROWS), 0, 20),
            "age": age,
            "day": start + rng.integers(0, 365, ROWS).astype("timedelta64[D]"),
            "sex": rng.choice(["F", "M"], ROWS),
        }
    )
    return release(
        frame, PAY, [("pay", "sex"), ("score", "age"), ("score", "day"), ("score", "sex")]
    )


@pytest.mark.parametrize(
    "where", [(12_000, 60_000), (20_000, 90_000), (2_000, 9_000), (12_000, None)], ids=str
)
def test_a_mean_within_a_range_inside_a_wide_bin_is_marked(paid: Release, where: Any) -> None:
    """Evenly drawn values put the mean in the middle of the range, whatever the truth is."""
    found = analyzed(paid, Mean("pay", where={"pay": where}))
    (mean,) = found
    assert mean.coarse == ("pay",)
    assert mean.ends is None, "values enter and leave the range with their place in the bin"
    assert not any("inf" in n.replace("infer", "") for n in told(found))


def test_bin_ends_are_those_of_the_averaged_column(paid: Release) -> None:
    """Not those of a column that chooses rows, and in the averaged column's unit."""
    for where in ({"day": ("2020-03-10", "2020-05-20")}, {"age": (40, 52)}):
        found = analyzed(paid, Mean("score", where=where))
        (note,) = told(found)
        low, high = found["mean(score)"].ends or (np.nan, np.nan)
        assert low < found["mean(score)"].estimate < high < 21
        assert f"would be about {low:.4g}, at the high ends {high:.4g}, up to " in note
        assert f"{next(iter(where))} (the widest is " in note


def test_a_range_that_cuts_bins_has_no_bin_ends(paid: Release) -> None:
    cut, whole = (analyzed(paid, Mean("age", where={"age": r})) for r in ((40, 52), (38, 55)))
    assert cut["mean(age)"].ends is None
    assert told(cut)[0].endswith(
        "mean(age) holds if values are spread evenly within bins. " + Binned.drawn_evenly
    )
    low, high = whole["mean(age)"].ends or (np.nan, np.nan)
    assert 38 <= low < whole["mean(age)"].estimate < high <= 55


def test_every_group_has_its_own_bin_ends(paid: Release) -> None:
    found = analyzed(paid, By(Mean("score"), "sex"))
    (note,) = told(found)
    far = {}
    for e in found:
        assert e.ends is not None
        far[e] = max(e.estimate - e.ends[0], e.ends[1] - e.estimate) / e.half_width()
    most = max(found, key=lambda e: far[e])
    assert most.ends is not None
    assert f"{most.name} would be about {most.ends[0]:.4g}, at the high ends" in note


def test_the_spread_of_a_mean_is_that_of_uniform_means_of_its_bins(
    made: Release, frame: pd.DataFrame
) -> None:
    draws = made.draws(4, seed=1, method="bootstrap")
    frames = Frames.of_schema(SCHEMA)
    for name in ("visits", "age"):
        fit, column = Mean(name), SCHEMA.column(name)
        assert isinstance(column, Integer)
        binned, table = Binned.of(column, frames), draws[0]
        assert binned is not None
        trial = Trial(fit, table, frames, fit(frames.of(table)))
        found = Positions.of(binned, trial).spread[f"mean({name})"]
        widths = binned.high - binned.low
        shares = np.bincount(binned.codes(table), minlength=len(widths)) / table.num_rows
        by_hand = np.sqrt(((shares * widths) ** 2).sum() / 12)
        assert found == pytest.approx(by_hand, rel=0.1)


def test_intervals_of_quantiles_have_whole_bins(made: Release, frame: pd.DataFrame) -> None:
    """They hold the real quantile, wherever the values of a bin lie, and have no mark for wide bins."""
    for p in (0.3, 0.6):
        (e,) = found = analyzed(made, Quantile("age", p))
        assert (e.coarse, e.binned) == ((), ())
        assert e.flagged == bool(e.unreliable), "the numbers may call bins of six years too wide"
        low, high = e.conf_int()
        assert (low % 6, high % 6) == (0, 5), "ages from 18, in bins of six years"
        assert low <= np.quantile(frame.age, p) <= high
        assert any("So intervals contain whole bins." in n for n in found.notes)
    own = 6 * (e.estimate // 6)
    assert (e.pvalue(own), e.pvalue(own + 5)) == (1.0, 1.0), "as near as the bin that it is in"
    assert e.pvalue(own - 6) == e.pvalue(own - 1) < 1.0
    assert found.contrast({e.name: -2.0}).conf_int() == (-2 * high, -2 * low)
    ages = analyzed(made, By(Quantile("age"), "ill"))
    assert {edge for e in ages for edge in e.conf_int()} <= {*range(18, 90, 6), *range(23, 90, 6)}
    assert not any(e.coarse for e in ages)
    assert ages.contrast(dict(zip(ages.names, (1, -1), strict=True))).coarse == ("age",)
    cut = analyzed(made, Quantile("age", where={"age": (20, 40)}))
    assert cut.estimates[0].bins is None
    assert cut.estimates[0].coarse == ("age",)


def test_a_bin_that_ends_at_zero_ends_there() -> None:
    """The greatest value of [-1, 0) is the one before 0, which nobody wrote."""
    x = pd.DataFrame({"x": np.random.default_rng(0).uniform(-2, 2, ROWS)})
    of = release(x, Schema([Real("x", -2, 2, bins=4)]), [("x",)])
    found = analyzed(of, Quantile("x", 0.4))
    assert found.estimates[0].conf_int() == (-1, 0)
    assert str(found).splitlines()[3].split()[5:7] == ["-1", "0"]


def test_dates_are_told_as_dates() -> None:
    days = pd.date_range("2020-01-01", "2020-12-30", periods=ROWS).date
    schema = Schema([Date("day", date(2020, 1, 1), date(2020, 12, 30), bins=5)])
    found = analyzed(release(pd.DataFrame({"day": days}), schema, [("day",)]), Mean("day"))
    (note,) = told(found)
    assert "it would be about 2020-05-26 " in note
    assert "at the high ends 2020-08-06 " in note


def test_dates_beyond_nanoseconds_are_analyzed() -> None:
    day = np.datetime64("2020-01-01") + np.random.default_rng(3).integers(0, 365, ROWS)
    schema = Schema([Timestamp("seen", datetime(1600, 1, 1), datetime(2400, 1, 1), bins=400)])
    seen = pd.DataFrame({"seen": day.astype("datetime64[s]")})
    found = analyzed(release(seen, schema, [("seen",)]), Mean("seen"))
    estimate = found.estimates[0].estimate
    assert abs(estimate - 18262 - 183) < 2 * 366
    assert [date_text(d) for d in (157_054.5, -135_140.0)] == [
        "2400-01-01 12:00",
        "1600-01-01 00:00",
    ]
    assert date_text(4e6) == "day 4e+06"


def test_a_test_of_several_quantiles_with_wide_bins_is_marked(made: Release) -> None:
    found = analyzed(made, By(Quantile("age", 0.5), "ill"))
    reason = "a test of several quantiles does not take their whole bins into account."
    test, one = found.test(null=50), found.test(found.names[0], null=50)
    assert test.marked == found.names
    assert test.reasons[-1].endswith(reason)
    assert str(test).endswith(reason)
    assert not any(r.endswith(reason) for r in one.reasons)


def test_a_function_of_ones_own_has_a_note_for_what_it_takes_by_value(made: Release) -> None:
    found = analyzed(
        made, lambda frame: {"a": (frame.age.mean(), 0.01), "b": ((frame.age > 65).mean(), 0.01)}
    )
    (note,) = told(found)
    assert note.startswith("age (the widest is 18 to 23, 7 % of the column's range): the interval")
    assert binned(found) == {"a": ("age",)}  # 66 begins a bin


def test_a_function_that_cannot_be_tried_has_a_general_note(made: Release) -> None:
    rng = np.random.default_rng(0)
    found = analyzed(made, lambda frame: {"a": (frame.age.mean() + rng.random(), 0.01)})
    (note,) = told(found)
    assert note.endswith(Binned.drawn_evenly)
    assert (
        "visits (5 to 20, 75 % of the column's range); age (18 to 23, 7 % of the column's range)"
        in note
    )
    assert "children" not in note
    assert binned(found) == {}


def test_logarithms_of_bins_that_are_fine_on_the_line_itself() -> None:
    """Less than a hundredth of the variance lies within the bins, and most of that of the logarithm."""
    rng = np.random.default_rng(4)
    sex = rng.choice(["F", "M"], ROWS)
    pay = np.minimum(np.exp(10 + 0.5 * (sex == "M") + rng.normal(0, 1.0, ROWS)), 249_999)
    schema = Schema([Categorical("sex", ["F", "M"]), Real("pay", 0, 250_000, bins=50)])
    of = release(pd.DataFrame({"sex": sex, "pay": pay}), schema, [("sex", "pay")])
    assert told(analyzed(of, OLS("pay ~ sex"))) == []
    fits: list[Any] = [
        OLS("np.log1p(pay) ~ sex"),
        lambda f: {"mean log": (np.log(f.pay).mean(), np.log(f.pay).var() / len(f))},
    ]
    for fit in fits:
        found = analyzed(of, fit)
        (note,) = told(found)
        assert note.startswith("pay (")
        assert set(binned(found)) == set(found.names)


def test_tables_from_elsewhere_do_not_say(made: Release) -> None:
    draws = made.draws(4, seed=1, method="bootstrap")
    assert told(analyze(draws, Mean("visits"), bias_correct=False)) != []
    assert told(analyze(list(draws), Mean("visits"), n=ROWS)) == []


def test_columns_inside_of_categories_do_not_count() -> None:
    rng = np.random.default_rng(0)
    names = ("stay", "age", "ward", "zip code", "pay", "a b")
    frame = pd.DataFrame({name: rng.integers(1, 4, 200) for name in names})
    formula = "stay ~ age + C(ward) + C(`zip code`, Treatment(1)):np.log(pay) + `a b`"
    basis = OLS(formula)(frame).basis
    assert basis is not None
    assert basis.by_value == ("stay", "age", "pay", "a b")
    assert basis.columns == names


def test_it_is_seen_in_every_form(
    made: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    made.save("r.margrave")
    call = [
        "analyze",
        "mean",
        "r.margrave",
        "visits",
        "--m",
        "4",
        "--method",
        "bootstrap",
        "--seed",
        "1",
    ]
    assert run([*call, "--plot", "p.html"]) == 0
    words = "75 % of the column's range): the interval of "
    assert words in " ".join(capsys.readouterr().out.split())
    assert words in unescape((tmp_path / "p.html").read_text())
    assert run([*call, "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert any(n.startswith("visits (the widest is 5 to 20, ") for n in plain["notes"])
    (estimate,) = plain["estimates"]
    assert (estimate["binned"], estimate["coarse"], estimate["flagged"]) == (
        ["visits"],
        ["visits"],
        True,
    )
    assert estimate["ends"][0] < estimate["estimate"] < estimate["ends"][1]


def test_a_quantile_of_one_value_has_that_value_as_its_interval() -> None:
    hours = np.random.default_rng(0).choice([20, 40, 55, 60], 3_000, p=[0.2, 0.5, 0.2, 0.1])
    of = release(pd.DataFrame({"h": hours}), Schema([Integer("h", 1, 99, bins=99)]), [("h",)])
    found = analyzed(of, Quantile("h", 0.8))
    (estimate,) = found
    assert (estimate.estimate, *estimate.conf_int()) == (55, 55, 55)
    assert any("the interval is the bin of that value" in note for note in found.notes)
    assert np.isnan(estimate.bse)
