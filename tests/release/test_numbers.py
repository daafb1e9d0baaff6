"""Numbers with their uncertainty: intervals hold as often as they say, and what cannot be used is marked."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from margrave.accounting import AddRemovePerson, AddRemoveRow, Budget
from margrave.bounds.gls import Unbiased
from margrave.bounds.noisy_counts import NoisyCounts
from margrave.cli.numbers import marked_words, show_headlines
from margrave.data import MemoryTable
from margrave.domain import Codes
from margrave.errors import InputError
from margrave.marginal import LinearMap
from margrave.mechanisms import AIM, Independent
from margrave.models import GraphicalFit, NoModel
from margrave.privacy import SeededRandomness
from margrave.ratios import figure
from margrave.release import Release
from margrave.release.beyond_bounds import (
    beyond_bounds,
    beyond_bounds_words,
    bounds_of_another_run_words,
    possible_limits,
)
from margrave.release.number import ColumnNumber
from margrave.release.numbers import (
    category_words,
    clipping_remedy,
    clipping_words,
    headlines,
    numbers_of,
    numbers_table,
    open_ends_words,
    rare_groups,
)
from margrave.schema import (
    Categorical,
    ColumnSource,
    Date,
    Integer,
    Learn,
    Real,
    Schema,
)
from margrave.transcript import Discovery, Measurement, PublicTotal, Transcript
from tests.support import fake_model
from tests.support.conformance import run_on
from tests.support.noise import consistent, discrete
from tests.support.strategies import measurement

COLUMNS = [
    Integer("rooms", 0, 9, missing=True),
    Categorical("kind", ["flat", "house", "boat"]),
]
SCHEMA = Schema(COLUMNS)
COUNTS = np.array(  # rooms, the last row missing, by kind
    [[0, 0, 0], [90, 5, 1], [300, 60, 0], [250, 180, 2], [60, 240, 0], [9, 120, 0],
     [0, 40, 0], [0, 11, 0], [0, 0, 0], [0, 4, 0], [70, 20, 5]]
)  # fmt: skip
SCALE = 12.0


def numbers(
    schema: Schema, transcript: Transcript, model: Any = None
) -> dict[tuple[str, str], ColumnNumber]:
    absent = NoModel(schema.domain, 1.0, "it is not needed")
    found = numbers_of(schema, transcript, absent if model is None else model, 0.9)
    return {(n.column, n.statistic): n for n in found}


def exact(schema: Schema, counts: dict[str, Any], scale: float = 1.0) -> Transcript:
    """Measurements of single columns in which the noise happens to be 0."""
    return Transcript(tuple(measurement((a,), c, scale) for a, c in counts.items()))


def truths() -> dict[tuple[str, str], float]:
    """The real numbers of the table of counts."""
    rooms = COUNTS.sum(axis=1)
    values = np.repeat(np.arange(10.0), rooms[:10])
    found = {("rooms", "mean"): values.mean(), ("rooms", "total"): values.sum()}
    for name, q in (("q05", 0.05), ("q25", 0.25), ("q50", 0.5), ("q75", 0.75), ("q95", 0.95)):
        found["rooms", name] = float(np.quantile(values, q, method="inverted_cdf"))
    found["rooms", "missing"] = rooms[10] / COUNTS.sum()
    for kind, count in zip(("flat", "house", "boat"), COUNTS.sum(axis=0), strict=True):
        found["kind", f"share of {kind}"] = count / COUNTS.sum()
    return found


def misses(trials: int, public: bool, claimed: float = 1.0) -> dict[tuple[str, str], int]:
    """Count the intervals without the truth, over measurements of the pair and of both columns."""
    rng = np.random.default_rng(11)
    counted = dict.fromkeys(truths(), 0)
    for _ in range(trials):
        entries: list[Any] = [PublicTotal(int(COUNTS.sum()))] if public else []
        for clique, whole, scale in (
            (("rooms",), COUNTS.sum(axis=1), SCALE),
            (("kind",), COUNTS.sum(axis=0), 2 * SCALE),
            (("rooms", "kind"), COUNTS, SCALE),
        ):
            noisy = whole + discrete(rng, scale, whole.shape)
            entries.append(measurement(clique, noisy, scale * claimed))
        found = numbers(SCHEMA, Transcript(tuple(entries)))
        assert found.keys() == counted.keys()
        for key, truth in truths().items():
            low, high = found[key].low, found[key].high
            assert low is not None
            assert high is not None
            counted[key] += not low - 1e-9 <= truth <= high + 1e-9
    return counted


@pytest.mark.parametrize("public", [False, True])
def test_intervals_hold_as_often_as_they_say(public: bool) -> None:
    """Those of means and totals not much more often: they are as narrow as the noise lets them be."""
    trials = 200
    counted = misses(trials, public)
    assert all(consistent(missed, trials, 0.1) for missed in counted.values()), counted
    for key in (("rooms", "mean"), ("rooms", "total"), ("kind", "share of flat")):
        assert counted[key] >= 0.03 * trials, counted


def test_half_the_noise_is_caught() -> None:
    trials = 200
    counted = misses(trials, public=False, claimed=0.5)
    assert not consistent(counted["rooms", "mean"], trials, 0.1), counted
    assert not consistent(counted["kind", "share of flat"], trials, 0.1), counted


@pytest.mark.slow
@pytest.mark.parametrize("public", [False, True])
def test_intervals_hold_in_many_runs(public: bool) -> None:
    trials = 10_000
    counted = misses(trials, public)
    assert all(consistent(missed, trials, 0.1) for missed in counted.values()), counted


def gate_misses(mechanism: Any, runs: int) -> dict[tuple[str, str], int]:
    """Count the 90 % intervals without the truth, over whole runs with seeded noise."""
    places = np.nonzero(COUNTS)
    codes = np.repeat(np.array(places), COUNTS[places], axis=1)
    table = MemoryTable(SCHEMA, Codes(SCHEMA.domain, codes))
    counted = dict.fromkeys(truths(), 0)
    for seed in range(runs):
        budget, noise = Budget.approx(1.0, 1e-9), SeededRandomness(seed)
        release = run_on(mechanism, table, AddRemoveRow(), budget, noise)
        for n in release.numbers(level=0.9, details=True).to_pylist():
            truth = truths()[n["column"], n["statistic"]]
            counted[n["column"], n["statistic"]] += not n["low"] - 1e-9 <= truth <= n["high"] + 1e-9
    return counted


def test_intervals_of_whole_runs_hold() -> None:
    counted = gate_misses(Independent(), 40)
    assert all(consistent(missed, 40, 0.1) for missed in counted.values()), counted
    means = counted["rooms", "mean"] + counted["rooms", "total"] + counted["kind", "share of flat"]
    assert 0 < means < 40, "they would fail with half of the noise, and with twice as much"


@pytest.mark.slow
def test_intervals_of_whole_runs_of_an_adaptive_mechanism_hold() -> None:
    counted = gate_misses(AIM(), 400)
    assert all(consistent(missed, 400, 0.1) for missed in counted.values()), counted


def test_the_deviation_of_a_weighted_sum_is_that_of_least_squares() -> None:
    """Against the covariance that ordinary matrices give."""
    sizes = COUNTS.shape
    transcript = Transcript((
        measurement(("rooms", "kind"), COUNTS, 3.0),
        measurement(("rooms",), COUNTS.sum(axis=1), 5.0),
        measurement(("kind",), COUNTS.sum(axis=0), 4.0),
    ))  # fmt: skip
    eye, rows, columns = np.eye(COUNTS.size), np.eye(sizes[0]), np.eye(sizes[1])
    sums = np.kron(rows, np.ones(sizes[1]))
    design = np.vstack([eye / 3.0, sums / 5.0, np.kron(np.ones(sizes[0]), columns) / 4.0])
    whole = np.linalg.inv(design.T @ design)
    rng = np.random.default_rng(0)
    for clique, project in ((("rooms", "kind"), eye), (("rooms",), sums)):
        estimate = Unbiased(SCHEMA.domain, transcript).estimate(clique)
        assert estimate is not None
        right = project @ whole @ project.T
        one, other = rng.normal(size=(2, len(right)))
        shape = estimate.values.shape
        found = estimate.covariance(one.reshape(shape), other.reshape(shape))
        assert found == pytest.approx(one @ right @ other)
        assert estimate.deviation(np.eye(len(right))[1].reshape(shape)) == pytest.approx(
            estimate.spread
        )


def long_tail(n: int) -> Any:
    """Loans with a long tail, and the edges that grow by round steps of a draft."""
    rng = np.random.default_rng(4)
    edges = [s * 10.0**k for k in range(1, 6) for s in (1, 2, 3, 5, 7)]
    amount = np.minimum(rng.lognormal(5.5, 1.6, n), 999_999.0)
    kind = rng.choice(["car", "home", "other"], n)
    columns = [
        Real("amount", 0, 1_000_000, edges=edges),
        Categorical("kind", ["car", "home", "other"]),
    ]
    age = rng.normal(45, 14, n).clip(0, 99).astype(int)
    table = pa.table({"amount": amount, "kind": kind, "age": age})
    return Schema([*columns, Integer("age", 0, 99)]), table


def test_a_mean_that_noise_in_a_long_tail_makes_useless_is_marked() -> None:
    schema, table = long_tail(20_000)
    codes = schema.encode(table)

    def released(fit: GraphicalFit) -> Release:
        randomness, budget = SeededRandomness(2), Budget.approx(1.0, 1e-9)
        source = MemoryTable(schema, codes)
        return run_on(AIM(fit=fit), source, AddRemoveRow(), budget, randomness)

    release = released(GraphicalFit(empty_below=0.0))
    found = {(n["column"], n["statistic"]): n for n in release.numbers(details=True).to_pylist()}
    certified = release.certificate()["numbers"]
    shares = [n for key, n in found.items() if key[1].startswith("share of ")]
    assert certified == {
        "level": 0.95,
        "rows": [n for n in release.numbers(details=True).to_pylist() if n not in shares],
    }
    assert len(certified["rows"]) == 14
    real = table["amount"].to_numpy()
    mean = found["amount", "mean"]
    assert mean["synthetic"] > 1.5 * real.mean(), "the fault that has to be marked"
    better = [
        n
        for n in released(GraphicalFit()).numbers(details=True).to_pylist()
        if n["column"] == "amount"
    ]
    (without,) = (n for n in better if n["statistic"] == "mean")
    assert abs(without["synthetic"] - real.mean()) < 0.2 * real.mean()
    assert not without["reliable"]
    assert not mean["reliable"]
    assert mean["low"] <= real.mean() <= mean["high"]
    assert not found["amount", "total"]["reliable"]
    assert found["age", "mean"]["reliable"]
    ages = table["age"].to_numpy()
    for name, q in (("q05", 0.05), ("q25", 0.25), ("q50", 0.5), ("q75", 0.75), ("q95", 0.95)):
        for column, values in (("amount", real), ("age", ages)):
            n = found[column, name]
            assert n["low"] <= np.quantile(values, q) <= n["high"] + 1, (column, name)


def test_values_at_the_ends_of_bins_are_in_the_interval() -> None:
    """Half of a bin for a mean of one bin, and less for many; whole bins for quantiles."""
    schema = Schema([Real("one", 0, 100, bins=1), Real("many", 0, 100, bins=50)])
    whole = {"one": [100_000], "many": [2_000] * 50}
    found = numbers(schema, exact(schema, whole))
    assert (found["one", "mean"].low, found["one", "mean"].high) == (0.0, 100.0)
    assert found["one", "mean"].noise == 0.0
    assert not found["one", "mean"].reliable
    many = found["many", "mean"]
    assert 0.05 < (many.bins or 0.0) < 0.2
    assert many.reliable
    q25 = found["many", "q25"]
    assert q25.low is not None
    assert q25.low <= 24.0
    assert q25.high == pytest.approx(26.0)


@pytest.mark.parametrize(
    ("column", "reliable"),
    [
        (Real("pay", 0, 12_000, bins=12), False),
        (Real("pay", 0, 12_000, bins=120), True),
        (Integer("pay", 0, 12_000, bins=12), False),
        (Integer("pay", 1, 12_000, edges=range(1_000, 12_000, 1_000)), False),
        (Integer("pay", 0, 12_000, bins=13), True),  # whose edges no round step has
    ],
)
def test_a_mean_is_not_reliable_if_all_values_may_lie_on_edges(column: Any, reliable: bool) -> None:
    """Multiples of 1,000 in bins of 1,000: the interval misses their mean by half a bin."""
    schema = Schema([column])
    found = numbers(schema, exact(schema, {"pay": [1_200.0] * column.cells.count}))
    for statistic in ("mean", "total"):
        assert found["pay", statistic].reliable is reliable
    learned = Schema([Real("pay", 0, 12_000, bins=12, mean=[6_000, 5_950, 6_050])])
    assert numbers(learned, exact(learned, {"pay": [1_200.0] * 12}))["pay", "mean"].reliable


def test_a_verdict_does_not_depend_on_the_level() -> None:
    """Narrower intervals are not a way to remove marks, nor the mark of clipping."""
    schema = Schema([Integer("x", 2_000, 2_009), Integer("y", 20, 83, bins=32), COLUMNS[1]])
    counts = {"x": [100.0] * 10, "y": [40.0] * 31 + [80.0], "kind": [700.0, 290.0, 10.0]}
    of_levels = [
        numbers_of(schema, exact(schema, counts, 12.0), NoModel(schema.domain, 1.0, "none"), level)
        for level in (0.5, 0.95, 0.99)
    ]
    narrow, usual, _ = ({(n.column, n.statistic): n for n in found} for found in of_levels)
    for found in zip(*of_levels, strict=True):
        assert len({(n.reliable, n.clipping) for n in found}) == 1
    mean = narrow["x", "mean"]
    assert mean.low is not None
    assert mean.high is not None
    assert (mean.high - mean.low) / 2 < 0.05 * np.std(np.arange(10))
    assert not usual["x", "mean"].reliable


def test_noise_does_not_widen_the_tolerance_of_a_rare_share() -> None:
    """The standard deviation is the least within the interval: a category without rows has none."""
    schema = Schema([Categorical("kind", list("abc"))])
    found = numbers(schema, exact(schema, {"kind": [2_000.0, 987.0, 13.0]}, 6.3))
    rare = found["kind", "share of c"]
    assert rare.low is not None
    assert rare.high is not None
    assert (rare.high - rare.low) / 2 < 0.05 * math.sqrt(rare.high * (1 - rare.high))
    assert not rare.reliable
    assert found["kind", "share of a"].reliable
    assert numbers(schema, exact(schema, {"kind": [2_000.0, 985.0, 15.0]}))[
        "kind", "share of c"
    ].reliable


def test_clipped_values_are_stated_apart() -> None:
    """Bounds too near: the mean is marked however small the noise, quantiles below are not."""
    schema = Schema([Integer("x", 0, 63, bins=32)])
    counts = np.array([400.0] * 31 + [4_000.0])
    found = numbers(schema, exact(schema, {"x": counts}))
    mean, low, top = (found["x", s] for s in ("mean", "q25", "q95"))
    assert mean.clipping == pytest.approx(4_000 / 16_400)
    assert not mean.reliable
    assert top.clipping == mean.clipping
    noisy = exact(schema, {"x": counts})
    (sentence,) = clipping_words(schema, noisy, list(found.values()))
    assert "of the records are in an end bin" in sentence
    assert "raise high in the schema of the next release" in sentence
    assert not top.reliable
    assert low.clipping == 0.0
    assert low.reliable
    refuse = Schema([Integer("x", 0, 63, bins=32, outside="refuse")])
    assert numbers(refuse, exact(refuse, {"x": counts}))["x", "mean"].reliable
    cited = replace(schema, sources={"x": ColumnSource(cite="Code book, p. 12")})
    assert numbers(cited, noisy)["x", "mean"].reliable


def test_the_remedy_of_clipping_names_the_ends_that_show_it() -> None:
    schema = Schema([Integer("x", 20, 83, bins=32)])
    inner = [400.0] * 30
    for ends, keys in (
        ((4_000.0, 400.0), "lower low in"),
        ((400.0, 4_000.0), "raise high in"),
        ((4_000.0, 4_000.0), "lower low and raise high in"),
    ):
        noisy = exact(schema, {"x": np.array([ends[0], *inner, ends[1]])})
        assert keys in clipping_remedy(schema, noisy, "x")


@pytest.mark.parametrize(
    ("shares", "doubtful"),
    [
        ([5, 2, 3, 4, 8, 10, 15, 20, 13, 20], False),  # the answers of a scale
        ([20, 5, 3, 4, 8, 10, 10, 5, 5, 30], False),
        ([35, 22, 14, 9, 6, 4, 3, 2, 1, 4], True),  # a count that is cut off
    ],
)
def test_the_ends_of_a_short_scale_are_ordinary_answers(
    shares: list[float], doubtful: bool
) -> None:
    schema = Schema([Integer("score", 1, 10)])
    found = numbers(schema, exact(schema, {"score": 200 * np.array(shares, dtype=float)}))
    assert bool(found["score", "mean"].clipping) is doubtful


@pytest.mark.parametrize(("low", "reliable"), [(0, True), (2_000, False)])
def test_a_share_of_the_value_counts_near_zero_alone(low: int, reliable: bool) -> None:
    """Noise of 0.07 standard deviations is within 5 % of a value near zero, not of a year."""
    schema = Schema([Integer("x", low, low + 9)])
    found = numbers(schema, exact(schema, {"x": [100.0] * 10}, 11.0))["x", "mean"]
    assert found.low is not None
    assert found.high is not None
    assert 0.05 * np.std(np.arange(10)) < (found.high - found.low) / 2 < 0.05 * 4.5
    assert found.reliable is reliable


@pytest.mark.parametrize(("scale", "reliable"), [(2.0, True), (5.0, True), (12.0, False)])
def test_a_total_may_always_be_off_by_a_share_of_it(scale: float, reliable: bool) -> None:
    """Most of its error is that of the row count, which standard deviations of the values do not measure."""
    schema = Schema([Integer("x", 2_000, 2_009)])
    total = numbers(schema, exact(schema, {"x": [100.0] * 10}, scale))["x", "total"]
    assert total.estimate is not None
    assert total.low is not None
    off = total.estimate - total.low
    assert off > 1_000 * 0.05 * np.std(np.arange(10))
    assert (off < 0.05 * total.estimate) is reliable
    assert total.reliable is reliable


def test_the_rule_of_a_reliable_number_is_said_in_plain_words() -> None:
    found = [*numbers(SCHEMA, exact(SCHEMA, {"rooms": [9.0] * 11}, SCALE)).values()]
    words = marked_words([n for n in found if not n.reliable], found)
    assert "are not reliable. A reliable number is off by at most 5 % or 0.05 standard" in words
    assert (
        "such as years or shares above 90 %, only the standard deviations count, except in totals."
        in words
    )


def test_a_standard_deviation_made_of_noise_is_not_a_tolerance() -> None:
    """One empty cell far out, in which noise leaves a few records."""
    schema = Schema([Real("x", 0, 1_000_000, edges=[1, 2, 3, 999_999])])
    noisy = [40_000.0, 20_000.0, 10_000.0, 0.0, 60.0]
    found = numbers(schema, exact(schema, {"x": noisy}, 60.0))["x", "mean"]
    assert not found.reliable


def test_a_quantile_is_not_held_to_a_spread_that_one_wide_bin_makes() -> None:
    """Evenly drawn, the values of the last bin spread widely; the middle half shows how near the others are."""
    schema = Schema([Real("x", 0, 1_000_000, edges=[200, 400, 600, 5_000])])
    found = numbers(schema, exact(schema, {"x": [300.0, 900.0, 700.0, 80.0, 60.0]}, 4.0))
    q05 = found["x", "q05"]
    assert (q05.low, q05.estimate) == (0.0, pytest.approx(68.0))
    assert q05.high == pytest.approx(200.0)
    assert not q05.reliable


def test_a_quantile_that_may_lie_beyond_a_learned_bound_has_an_open_end() -> None:
    """Only if so many rows may be hidden, or nobody knows how many, and the bound is not public."""
    own = Real("price", 0, 100, bins=10, mean=[20, 18, 30])  # at most 8 % of the rows
    few = replace(own, mean=[20, 18, 23])  # at most 1 %
    counts = [300.0, 900.0, 600.0, 300.0, 100.0, 100.0, 100.0, 100.0, 100.0, 200.0]

    def q95(column: Real, **source: Any) -> ColumnNumber:
        schema = Schema([column], sources={"price": ColumnSource(of="learned", **source)})
        return numbers(schema, exact(schema, {"price": counts}))["price", "q95"]

    assert q95(own).high == q95(replace(own, mean=())).high == math.inf
    assert q95(own).interval == "90 to beyond 100"
    assert q95(own).to_dict()["high"] is None
    assert not q95(own).reliable
    (sentence,) = open_ends_words([q95(own)])
    assert sentence.startswith("price: 95 % quantile may lie beyond a learned bound.")
    for closed in (q95(few), q95(own, public=["high"])):
        assert (closed.high, closed.interval) == (100.0, "90 to 100")
        assert not open_ends_words([closed])
    below = Real("loss", -100, 0, bins=10)
    schema = Schema([below], sources={"loss": ColumnSource(of="learned")})
    q05 = numbers(schema, exact(schema, {"loss": counts[::-1]}))["loss", "q05"]
    assert (q05.low, q05.interval) == (-math.inf, "beyond -100 to -90")


def test_a_mean_under_bounds_that_another_run_learned_is_marked() -> None:
    column, counts = Integer("stay", 0, 9), [900.0] * 10
    learned = ColumnSource(of="learned")
    for source, reliable in (
        (ColumnSource(), True),
        (learned, False),
        (replace(learned, public=["high"]), True),
    ):
        schema = Schema([column], sources={"stay": source})
        found = numbers(schema, exact(schema, {"stay": counts}))
        assert found["stay", "mean"].reliable is found["stay", "total"].reliable is reliable
        assert found["stay", "q25"].reliable
        assert bool(bounds_of_another_run_words(schema, ["stay"])) is not reliable


def test_a_quantile_of_a_group_may_have_all_hidden_rows_beyond_it() -> None:
    column = Real("price", 0, 100, bins=10, mean=[20, 18, 23])
    sources = {"price": ColumnSource(of="learned")}
    counts = np.zeros((10, 3), dtype=np.int64)
    counts[1:4], counts[9] = [3000, 900, 100], [600, 180, 20]
    found = grouped(
        Transcript((measurement(("price", "kind"), counts, 1.0),)),
        Schema([column, COLUMNS[1]], sources=sources),
    )
    assert found["q95", "kind = flat"].high == 100.0
    assert found["q95", "kind = boat"].high == math.inf


def test_synthetic_rows_that_differ_are_marked() -> None:
    schema = Schema([Integer("a", 0, 2)])
    transcript = exact(schema, {"a": [500.0, 300.0, 200.0]})
    right = fake_model.TableModel(schema.domain, np.array([500.0, 300.0, 200.0]))
    wrong = fake_model.TableModel(schema.domain, np.array([200.0, 300.0, 500.0]))
    assert numbers(schema, transcript, right)["a", "mean"].reliable
    marked = numbers(schema, transcript, wrong)["a", "mean"]
    assert not marked.reliable
    assert marked.synthetic == pytest.approx(1.3)
    assert marked.estimate == pytest.approx(0.7)


def test_a_column_that_was_not_measured_has_no_interval() -> None:
    transcript = Transcript((measurement(("kind",), COUNTS.sum(axis=0), 2.0),))
    found = numbers(SCHEMA, transcript)
    mean = found["rooms", "mean"]
    assert (mean.estimate, mean.low, mean.high, mean.reliable) == (None, None, None, False)
    assert mean.words == "unknown (not measured)"
    assert found["kind", "share of flat"].reliable


def test_all_missing_or_lost_in_noise_has_the_whole_range() -> None:
    schema = Schema([Integer("a", 5, 8, missing=True)])
    found = numbers(schema, exact(schema, {"a": [0.0, -3.0, 2.0, 0.0, 900.0]}, 20.0))
    mean = found["a", "mean"]
    assert (mean.estimate, mean.low, mean.high, mean.reliable) == (None, 5.0, 8.0, False)
    assert found["a", "q50"].low == 5.0
    assert found["a", "q50"].high == 8.0
    assert found["a", "missing"].estimate == 1.0


def test_dates_are_in_words_and_have_no_total() -> None:
    schema = Schema([Date("visit", date(2020, 1, 1), date(2020, 12, 31), bins=24)])
    found = numbers(schema, exact(schema, {"visit": [500.0] * 24}))
    assert ("visit", "total") not in found
    mean = found["visit", "mean"]
    assert mean.text.startswith("2020-07-0")
    assert mean.reliable
    assert mean.estimate == pytest.approx((date(2020, 7, 1) - date(1970, 1, 1)).days, abs=2)
    frame = numbers_table([mean], grouped=False, details=False, texts=True)
    assert frame.column_names[-2:] == ["text", "interval"]
    assert frame["text"][0].as_py() == mean.text


def test_a_frame_with_dates_gives_them_in_words() -> None:
    schema = Schema([Date("visit", date(2020, 1, 1), date(2020, 12, 31), bins=24), *COLUMNS])
    rows = pa.table({"visit": [date(2020, 7, 1)] * 9, "rooms": [3] * 9, "kind": ["flat"] * 9})
    budget, noise = Budget.approx(9.0, 1e-9), SeededRandomness(1)
    table = MemoryTable(schema, schema.encode(rows))
    release = run_on(Independent(), table, AddRemoveRow(), budget, noise)
    found = release.numbers().to_pylist()
    assert all("interval" in n for n in found)
    assert next(n for n in found if n["statistic"] == "q50")["text"].startswith("2020-")
    assert "interval" not in release.numbers(columns=["rooms"]).column_names


def test_the_frame_has_the_columns_and_the_level_is_checked() -> None:
    release = fake_model.release()
    short = ["column", "statistic", "estimate", "low", "high", "reliable"]
    assert release.numbers().column_names == short
    assert release.numbers(by="job").column_names == [*short[:2], "group", *short[2:]]
    frame = release.numbers(details=True)
    assert frame.column_names == [
        *short, "text", "interval", "noise", "bins", "beyond_below", "beyond_above", "clipping",
        "synthetic",
    ]  # fmt: skip
    assert frame.schema.field("low").type == pa.float64()
    assert frame.schema.field("reliable").type == pa.bool_()
    assert frame["statistic"].to_pylist()[:2] == ["share of 0", "share of 1"]
    json.dumps(frame.to_pylist(), allow_nan=False)
    narrow, wide = (
        [n for n in release.numbers(level=level, details=True).to_pylist() if n["column"] != "job"]
        for level in (0.5, 0.99)
    )
    assert len(narrow) == 7
    assert all(
        w["low"] <= n["low"] <= n["high"] <= w["high"] for n, w in zip(narrow, wide, strict=True)
    )
    with pytest.raises(InputError):
        release.numbers(level=1.0)


def test_a_printed_frame_shows_each_number_with_its_interval_and_verdict() -> None:
    with pd.option_context("display.width", 80, "display.max_columns", 0):
        head, *lines = repr(fake_model.release().numbers(as_="pandas")).splitlines()
    assert head.split() == ["column", "statistic", "estimate", "low", "high", "reliable"]
    assert all(len(line) <= 80 and "..." not in line for line in lines)


def test_an_interval_in_words_is_not_rounded_to_one_point() -> None:
    """A mean year, and a share of 40 in a million."""
    born = Integer("born", 1950, 1999, bins=50)
    schema = Schema([born, Categorical("rare", ["no", "yes"])])
    counts = {"born": [20_000 + (i == 7) for i in range(50)], "rare": [999_960, 40]}
    found = numbers(schema, exact(schema, counts, 2.0))
    for mean in (
        found["born", "mean"],
        found["rare", "share of yes"],
        found["rare", "share of no"],
    ):
        assert mean.low is not None
        assert mean.high is not None
        low, high = (float(end.strip(" %").replace(",", "")) for end in mean.interval.split(" to "))
        scale = 1 if mean.statistic == "mean" else 100
        assert low == pytest.approx(scale * mean.low, abs=scale * (mean.high - mean.low) / 4)
        assert high == pytest.approx(scale * mean.high, abs=scale * (mean.high - mean.low) / 4)
    assert found["born", "mean"].text == "1,974.5"
    assert found["rare", "share of yes"].text == "0.0040 %"


def test_a_bin_that_ends_at_zero_ends_there_in_words() -> None:
    """The greatest value of [-0.6, 0) is the one before 0, which nobody wrote."""
    schema = Schema([Real("x", -0.6, 0.6, bins=2)])
    found = numbers(schema, exact(schema, {"x": [500.0, 0.0]}))
    assert found["x", "q50"].interval == "-0.6 to 0"


def test_noise_and_values_beyond_learned_bounds_are_stated_apart() -> None:
    learned = [
        Real("cost", 0, 1000, bins=4, mean=[100, 90, 130]),
        Real("loss", -500, 100, bins=4, mean=[-50, -64, -42]),
        Real("declared", 0, 1000, bins=4),
        Real("even", -10, 10, bins=4, mean=[0, -1, 1]),  # its two ends cannot be told apart
    ]
    cost, loss, declared, even = map(beyond_bounds, learned)
    assert cost is not None
    assert (cost.below, cost.above, cost.noise) == pytest.approx((0, 20, 10))
    assert loss is not None
    assert (loss.below, loss.above, loss.noise) == pytest.approx((7.5, 1.5, 6.5))
    assert declared is even is None
    schema = Schema(learned)
    entries = exact(schema, {c.name: [50, 30, 20, 10] for c in learned}, scale=20.0)
    found = numbers_of(schema, entries, NoModel(schema.domain, 1.0, "it is not needed"), 0.95)
    sentences = beyond_bounds_words(schema, found)
    assert [s.partition(":")[0] for s in sentences] == ["cost", "loss"]
    factor = NoisyCounts(Unbiased(schema.domain, entries).estimate(("cost",)), 0.95).deviations
    noise, above, room = (figure(v * factor / 1.96, 3) for v in (10, 30, 20))
    assert f"reaches {noise} below the estimate and {above} above it." in sentences[0]
    assert f"Noise is {noise} on either side. The rest, {room} above, is room" in sentences[0]
    of_one_group = [replace(n, group="ward = a") for n in found if n.column == "cost"]
    (of_groups,) = beyond_bounds_words(schema, of_one_group, by="ward")
    assert "one group of ward" in of_groups
    assert not any(
        c.isdigit() for c in of_groups
    )  # the figures of all rows are not those of a group
    schema = Schema(learned[:1])
    mean = numbers(schema, exact(schema, {"cost": [50, 30, 20, 10]}))["cost", "mean"]
    assert None not in (mean.noise, mean.high, mean.low)
    assert (mean.high - 100, 100 - mean.low) == pytest.approx((3 * mean.noise, mean.noise))  # type: ignore[operator]


def width_of_parts(n: ColumnNumber) -> float:
    parts = (n.noise, n.bins, n.beyond_below, n.beyond_above)
    assert None not in parts
    noise, bins, below, above = (float(part or 0.0) for part in parts)
    assert min(noise, bins, below, above) >= -1e-9
    return 2 * noise + 2 * bins + below + above


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("by", [None, "kind"])
def test_the_parts_of_an_interval_add_up_to_it(level: float, by: str | None) -> None:
    """Of every statistic, also where a bound or a natural end cuts the interval, or it is open."""
    counts = [900.0, 600.0, 300.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 200.0]
    means = {"cost": [30, 26, 48], "loss": [-90, -99, -80], "flat": [40, 30, 52]}
    own = [
        Real("cost", 0, 100, bins=10, mean=means["cost"]),
        Real("loss", -150, 50, bins=10, mean=means["loss"]),
        Real("flat", -10, 90, bins=10, mean=means["flat"]),
        Real("price", 0, 100, bins=10),
        Date("day", date(2020, 1, 1), date(2021, 12, 31), bins=10, mean=[18300, 18290, 18600]),
    ]
    learned = ColumnSource(of="learned")
    sources = {c.name: learned for c in own if c.mean}
    sources["flat"] = replace(learned, public=["high"])
    sources["price"] = learned
    schema = Schema([*own, COLUMNS[1]], sources=sources)
    tables = {c.name: np.outer(counts, [0.96, 0.03, 0.01]).astype(np.int64) for c in own}
    entries = Transcript(
        tuple(measurement((name, "kind"), table, 30.0) for name, table in tables.items())
    )
    absent = NoModel(schema.domain, 1.0, "it is not needed")
    found = numbers_of(schema, entries, absent, level, by=by)
    for n in found:
        assert n.high is not None
        assert n.low is not None
        assert width_of_parts(n) == pytest.approx(n.high - n.low), (n.column, n.statistic, n.group)
    cost = next(n for n in found if (n.column, n.statistic) == ("cost", "mean"))
    total = next(n for n in found if (n.column, n.statistic) == ("cost", "total"))
    for n in (cost, total):  # hidden values are the largest part, and not noise
        assert n.beyond_above is not None
        assert n.noise is not None
        assert n.beyond_above > n.noise
        assert n.beyond_below == pytest.approx(0.0)
    assert any(n.is_open for n in found)
    if by is None:
        (words, *_) = beyond_bounds_words(schema, found, level)
        assert cost.high is not None
        assert cost.estimate is not None
        assert f"and {figure(cost.high - cost.estimate, 3)} above it." in words
        assert f"The rest, {figure(cost.beyond_above or 0.0, 3)} above, is room" in words


def test_no_number_lies_below_a_natural_end() -> None:
    """A lower bound of 0 closes the intervals of means, totals and quantiles alike, learned or not."""
    counts = np.zeros((10, 3), dtype=np.int64)
    counts[0] = [900, 40, 10]
    entries = Transcript((measurement(("price", "kind"), counts, 12.0),))
    column = Real("price", 0, 100, bins=10, mean=[5, -3, 9])
    schema = Schema([column, COLUMNS[1]], sources={"price": ColumnSource(of="learned")})
    found = [*grouped(entries, schema).values(), *numbers(schema, entries).values()]
    lows = {(n.statistic, n.group): n.low for n in found if n.column == "price"}
    assert len(lows) > 20
    assert all(low is None or low >= 0.0 for low in lows.values())


def test_a_flat_column_is_not_taken_for_clipped() -> None:
    """A year in twelve bins: the noise of the bin beside the first is not a trend that ends there."""
    schema = Schema([Date("day", date(2024, 1, 1), date(2024, 12, 31), bins=12)])
    counts = [4486, 3353, 4402, 4351, 4516, 5136, 4470, 3703, 4224, 4694, 4011, 4686]
    assert numbers(schema, exact(schema, {"day": counts}, 350.0))["day", "mean"].clipping == 0.0
    assert numbers(schema, exact(schema, {"day": [9000, *counts[1:]]}, 350.0))[
        "day", "mean"
    ].clipping


def test_public_bounds_cut_the_intervals_of_means_and_totals() -> None:
    """Learned bounds cut nothing, but a bound that was declared before does, and so does a natural end."""
    counts = np.zeros((10, 3), dtype=np.int64)
    counts[0] = [5_000, 40, 10]
    entries = Transcript((measurement(("price", "kind"), counts, 12.0),))
    column = Real("price", -10, 90, bins=10, mean=[-5, -13, -1])
    natural = Real("price", 0, 100, bins=10, mean=[5, -3, 9])
    learned = ColumnSource(of="learned")
    public = replace(learned, public=["low"])
    for own, source, cut in (
        (column, learned, False),
        (column, public, True),
        (natural, learned, True),
    ):
        schema = Schema([own, COLUMNS[1]], sources={"price": source})
        found = [n for n in grouped(entries, schema).values() if n.statistic in ("mean", "total")]
        found += [n for (_, s), n in numbers(schema, entries).items() if s in ("mean", "total")]
        lows = [n.low for n in found if n.low is not None and n.statistic == "mean"]
        assert (min(lows) >= own.low) == cut
        totals = [n.low for n in found if n.low is not None and n.statistic == "total"]
        assert own is column or min(totals) >= 0.0
        assert all(n.low <= n.estimate for n in found if n.estimate is not None)  # type: ignore[operator]
    schema = Schema([Real("price", 0, 100, bins=10), COLUMNS[1]])
    size = numbers(schema, entries)["price", "total"]
    assert size.low is not None
    assert size.low >= 0.0
    opened = Schema([Learn("price", "real", low=-10.0), Learn("debt", "real", high=0.0)])
    made = opened.with_learned([column, Real("debt", -9, -1)])
    assert [made.sources[n].public for n in ("price", "debt")] == [("low",), ()]
    assert possible_limits(column, made.sources) == (-10.0, math.inf)


def test_measurements_that_merge_codes_are_left_out() -> None:
    """Codes counted together have no counts of their own."""
    groups = LinearMap({"rooms": np.array([0, 0, 1, 1, 2, 2, 3, 3, 3, 3, 4])})
    whole: Measurement = measurement(("rooms",), [1.0, 2.0, 3.0, 4.0, 5.0], 2.0, groups)
    assert numbers(SCHEMA, Transcript((whole,)))["rooms", "mean"].low is None


def grouped(transcript: Transcript, schema: Schema = SCHEMA, level: float = 0.9) -> Any:
    absent = NoModel(schema.domain, 1.0, "it is not needed")
    found = numbers_of(schema, transcript, absent, level, by="kind")
    return {(n.statistic, n.group): n for n in found}


def test_the_numbers_of_groups_have_intervals_of_their_own() -> None:
    rng, trials = np.random.default_rng(12), 60
    values, kinds = np.arange(10.0), ("flat", "house")
    truth = {
        kind: float(values @ COUNTS[:10, k] / COUNTS[:10, k].sum()) for k, kind in enumerate(kinds)
    }
    missed = dict.fromkeys(kinds, 0)
    for _ in range(trials):
        noisy = COUNTS + discrete(rng, SCALE, COUNTS.shape)
        alone = COUNTS.sum(axis=1) + discrete(rng, SCALE, (11,))
        entries = (
            measurement(("rooms", "kind"), noisy, SCALE),
            measurement(("rooms",), alone, SCALE),
        )
        found = grouped(Transcript(entries))
        for kind in kinds:
            one = found["mean", f"kind = {kind}"]
            assert one.column == "rooms"
            missed[kind] += not one.low <= truth[kind] <= one.high
    assert all(consistent(m, trials, 0.1) for m in missed.values()), missed
    assert sum(missed.values()) > 0, missed


def test_groups_that_may_have_no_rows_are_those_within_three_deviations() -> None:
    counts = {"kind": [100, 31, 29]}
    assert rare_groups(SCHEMA, exact(SCHEMA, counts, 10.0), "kind") == ("kind = boat",)
    assert rare_groups(SCHEMA, exact(SCHEMA, counts, 40.0), "kind") == (
        "kind = flat",
        "kind = house",
        "kind = boat",
    )
    assert rare_groups(SCHEMA, exact(SCHEMA, {"rooms": COUNTS.sum(axis=1)}), "kind") == ()


def test_a_slice_of_an_estimate_has_the_errors_of_its_cells() -> None:
    entries = (measurement(("rooms", "kind"), COUNTS, 5.0), measurement(("kind",), [1, 2, 3], 2.0))
    whole = Unbiased(SCHEMA.domain, Transcript(entries)).estimate(("rooms", "kind"))
    assert whole is not None
    part, rng = whole.slice("kind", 1), np.random.default_rng(0)
    one, other = rng.normal(size=(2, 11))
    wide = [np.zeros(whole.values.shape) for _ in range(2)]
    wide[0][:, 1], wide[1][:, 1] = one, other
    assert part.values.tolist() == whole.values[:, 1].tolist()
    assert part.covariance(one, other) == pytest.approx(whole.covariance(*wide))
    assert part.spread == pytest.approx(whole.spread)


def test_groups_that_were_not_measured_with_a_column_have_no_interval() -> None:
    found = grouped(exact(SCHEMA, {"rooms": COUNTS.sum(axis=1), "kind": COUNTS.sum(axis=0)}))
    one = found["mean", "kind = flat"]
    assert (one.estimate, one.reliable, one.interval) == (None, False, "not measured")


def test_a_group_of_a_learned_column_may_hold_all_values_beyond_its_bounds() -> None:
    column = Real("price", 0, 100, bins=10, mean=[20, 18, 23])
    schema = Schema([column, COLUMNS[1]])
    counts = np.zeros((10, 3), dtype=np.int64)
    counts[1:4] = [3000, 900, 100]
    found = grouped(Transcript((measurement(("price", "kind"), counts, 1.0),)), schema)
    small, large = (found["mean", f"kind = {k}"] for k in ("boat", "flat"))
    plain = grouped(
        Transcript((measurement(("price", "kind"), counts, 1.0),)),
        Schema([Real("price", 0, 100, bins=10, outside="refuse"), COLUMNS[1]]),
    )["mean", "kind = flat"]
    assert large.high == pytest.approx(plain.high + 1.0 * 4000 / 3000, rel=0.01)  # above adds 1
    assert small.high - small.estimate > 30
    assert not small.reliable


def test_hidden_values_of_a_group_are_shared_among_its_values_and_not_among_its_missing_ones() -> (
    None
):
    """Of 9,100 values 1 % may lie beyond the bound, at 100 and more: all of them may be among the 100 of the boats."""
    column = Real("price", 0, 100, bins=10, missing=True, mean=[20, 18, 23])
    schema = Schema([column, COLUMNS[1]])
    counts = np.zeros((11, 3), dtype=np.int64)
    counts[1:4] = [[3000, 0, 30], [3000, 0, 30], [3000, 0, 40]]
    counts[10, 2] = 900
    found = grouped(Transcript((measurement(("price", "kind"), counts, 1.0),)), schema)
    assert found["mean", "kind = boat"].beyond_above == pytest.approx(9100 / 100 * 1.0)
    assert found["total", "kind = boat"].beyond_above == pytest.approx(9100 * 1.0)


def test_groups_are_of_one_column() -> None:
    absent = NoModel(SCHEMA.domain, 1.0, "it is not needed")
    first, second = SCHEMA.domain.attributes[:2]
    one, listed = (numbers_of(SCHEMA, Transcript(()), absent, 0.9, by=b) for b in (first, [first]))
    assert one == listed
    for several in ((first, second), [first, second], f"{first},{second}", []):
        with pytest.raises(InputError, match="columns, and takes one"):
            numbers_of(SCHEMA, Transcript(()), absent, 0.9, by=several)
    with pytest.raises(InputError, match=rf"--by {second} --where {first}=0 .*By\(Mean"):
        numbers_of(SCHEMA, Transcript(()), absent, 0.9, by=f"{second},{first}")


def test_unknown_groups_are_refused() -> None:
    with pytest.raises(InputError, match="kin"):
        numbers_of(
            SCHEMA, Transcript(()), NoModel(SCHEMA.domain, 1.0, "it is not needed"), 0.9, by="kin"
        )


def test_a_column_makes_no_groups_of_its_own_numbers_or_without_values() -> None:
    schema = Schema([Learn("age", "integer"), COLUMNS[1]])
    for of, columns, by, words in (
        (SCHEMA, ["kind"], "kind", "columns names 'kind' alone, which makes the groups"),
        (schema, None, "age", "No values were learned of column 'age'"),
    ):
        absent = NoModel(of.domain, 1.0, "it is not needed")
        with pytest.raises(InputError, match=words):
            numbers_of(of, Transcript(()), absent, 0.9, columns, by)


def test_numbers_of_a_unit_of_persons_say_that_rows_were_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    plain = fake_model.release()
    cut = replace(plain, account=replace(plain.account, unit=AddRemovePerson(3)))
    note = cut.account.left_out
    assert "of at most 3 rows of each person" in note
    assert "the whole table can differ by more than the intervals say" in note
    assert cut.numbers(as_="pandas").attrs == {"note": note}
    assert cut.numbers(as_="arrow").schema.metadata == {b"note": note.encode()}
    assert plain.numbers(as_="pandas").attrs == {}
    assert note in str(cut._facts().notes)
    show_headlines(cut, headlines(numbers_of(cut.schema, cut.transcript, cut.model, 0.95)))
    assert note in capsys.readouterr().out
    page = cut.report().html
    assert note in page
    assert "holds the number of the rows that were kept" in page
    assert "the number of the real table" not in page
    assert "the counts of the rows that were kept within" in page
    assert "real counts" not in page
    assert "Totals and shares of the whole table, if persons have more than 3 rows" in page


def test_the_main_number_is_the_commonest_state_and_an_unreliable_rest_is_an_interval() -> None:
    schema = Schema([
        Categorical("weight", ["low", "high"], missing=True, other=True),
        Integer("rooms", 0, 3, missing=True),
    ])  # fmt: skip
    order = schema.column("weight").labels()
    counts = {"low": 10, "high": 12, "other": 5, "missing": 900}
    by_code = [counts["missing"] if i == len(order) - 1 else counts[n] for i, n in enumerate(order)]
    entries = exact(schema, {"weight": by_code, "rooms": [5, 5, 5, 5, 900]}, scale=4.0)
    learned = ("low", "high"), np.array([10, 12, 900])
    discovery = Discovery("weight", *learned, 0, 9, 4.0, Fraction(1, 100), Fraction(1, 10**10))
    transcript = Transcript((*entries, discovery))
    found = tuple(numbers(schema, transcript).values())
    assert [n.statistic for n in headlines(found)] == ["missing", "mean"]
    (words,) = category_words(schema, transcript, found)
    assert words.startswith("Learned: weight has 2 categories (at most 1.")


def test_a_learned_value_that_is_the_word_for_all_others_is_not_counted_as_a_category() -> None:
    schema = Schema([Categorical("job", ["cook", "other"], missing=True, other=True)])
    entries = exact(schema, {"job": [50, 900, 10]}, scale=4.0)
    learned = ("cook", "other"), np.array([50, 600, 910])
    discovery = Discovery("job", *learned, 0, 9, 4.0, Fraction(1, 100), Fraction(1, 10**10))
    transcript = Transcript((*entries, discovery))
    found = tuple(numbers(schema, transcript).values())
    one, leads = category_words(schema, transcript, found)
    assert one.startswith("Learned: job has 1 category (")
    assert one.endswith("of the rows are in other, which is also a value of the table).")
    assert "all rows whose value is other, or has no category of its own. It leads in job" in leads
