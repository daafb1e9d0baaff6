"""Numbers learned from noisy answers: range, bins, leaves and the interval of the mean."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from margrave.errors import InputError
from margrave.learning import LearnedNumber, learn_number
from margrave.learning.decimals import decimals_of
from margrave.learning.extent import Extent, extent_of, range_advice, range_query
from margrave.learning.hysteresis import grown
from margrave.learning.line import UnitLine
from margrave.learning.shares import least_tree_share
from margrave.learning.tail import Tail, surplus_of
from margrave.learning.tree import CountTree
from margrave.schema import Date, Integer, Learn, Real, Timestamp
from margrave.schema.column_queries import ClippedSum, DecimalCells
from margrave.transcript import ColumnAnswer
from margrave.types import FloatArray
from tests.support.noisy_columns import SimulatedColumn

RHO = Fraction(1, 5000)


def learned(
    values: FloatArray, column: Learn, seed: int = 0, rho: Fraction = RHO
) -> LearnedNumber | None:
    return learn_number(column, SimulatedColumn(values, np.random.default_rng(seed)), rho)


def some(found: LearnedNumber | None) -> LearnedNumber:
    assert found is not None
    return found


def skewed(rng: np.random.Generator) -> FloatArray:
    return np.round(np.exp(rng.normal(6, 1.2, 60_000)))


def prices(rng: np.random.Generator) -> FloatArray:
    return np.asarray(np.round(np.exp(rng.normal(3, 0.7, 60_000)), 2))


def mostly_zero(rng: np.random.Generator) -> FloatArray:
    values = np.exp(rng.normal(4, 1, 60_000))
    values[rng.random(60_000) < 0.8] = 0.0
    return np.asarray(values)


def both_signs(rng: np.random.Generator) -> FloatArray:
    return np.round(rng.normal(-3, 20, 60_000))


def years(rng: np.random.Generator) -> FloatArray:
    return np.asarray(rng.integers(1990, 2020, 60_000), dtype=np.float64)


SHAPES: list[Any] = [
    (skewed, "integer"),
    (prices, "real"),
    (mostly_zero, "real"),
    pytest.param(both_signs, "integer", marks=pytest.mark.slow),
    pytest.param(years, "integer", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("shape", "kind"), SHAPES, ids=lambda s: getattr(s, "__name__", s))
def test_intervals_of_the_mean_hold(shape: Callable[..., FloatArray], kind: str) -> None:
    holds = within = 0
    for seed in range(20):
        values = shape(np.random.default_rng(100 + seed))
        mean = some(learned(values, Learn("x", kind), seed)).mean
        low, high = mean.interval
        holds += low <= values.mean() <= high
        within += abs(mean.estimate - values.mean()) <= mean.tolerance
    assert holds >= 18
    assert within >= 19


@pytest.mark.parametrize(("shape", "kind"), SHAPES, ids=lambda s: getattr(s, "__name__", s))
def test_values_drawn_from_leaves_have_the_real_deciles(
    shape: Callable[..., FloatArray], kind: str
) -> None:
    rng = np.random.default_rng(5)
    values = shape(rng)
    column = some(learned(values, Learn("x", kind))).declared(10.0)
    codes = column.cells.locate(values)
    drawn = column.cells.draw(codes, rng)
    deciles = np.unique(np.quantile(values, np.linspace(0.1, 0.9, 9)))
    shares = [
        np.bincount(np.searchsorted(deciles, v, "right"), minlength=len(deciles) + 1) / len(v)
        for v in (values, drawn)
    ]
    assert np.abs(shares[0] - shares[1]).sum() / 2 < 0.02


def test_every_bin_holds_three_noise_scales() -> None:
    values = skewed(np.random.default_rng(1))
    found = some(learned(values, Learn("x", "integer")))
    for scale in (10.0, 200.0, 3000.0):
        column = found.declared(scale)
        starts = np.append([s[0] for s in column.cells.spans()], column.cells.edges[-1])
        mass = np.concatenate([[0], np.cumsum(found.masses)])
        sums = np.diff(mass[np.searchsorted(found.tree.edges, starts)])
        assert (sums >= 3 * scale).all() or len(sums) == 1
        assert column.size <= Learn("x", "integer").size


def test_kinds_are_declared_as_themselves() -> None:
    rng = np.random.default_rng(2)
    days = np.asarray(rng.integers(17_000, 18_000, 50_000), dtype=np.float64)
    date = some(learned(days, Learn("x", "date"))).declared(10.0)
    assert isinstance(date, Date)
    assert 2010 < date.low.year <= 2017
    assert 2019 <= date.high.year < 2030
    seconds = days * 86400
    moment = some(learned(seconds, Learn("x", "timestamp"))).declared(10.0)
    assert isinstance(moment, Timestamp)
    assert abs(moment.mean[0] - seconds.mean()) < 40 * 86400
    exact = datetime.fromtimestamp(moment.mean[0], UTC)
    assert exact.year in (2017, 2018)
    assert isinstance(some(learned(days, Learn("x", "integer"))).declared(10.0), Integer)
    real = some(learned(days / 7, Learn("x", "real"))).declared(10.0)
    assert isinstance(real, Real)
    assert real.decimals is None


@pytest.mark.parametrize(
    ("kind", "unit"), [("timestamp", 86400.0), ("timestamp", 3600.0), ("date", 1.0)]
)
def test_learned_dates_and_times_end_near_the_values(kind: str, unit: float) -> None:
    start = 19_723 * 86400.0 if kind == "timestamp" else 19_723.0  # the first of January 2024
    far = 0
    for seed in range(12):
        values = start + np.floor(365 * unit * np.random.default_rng(seed).random(20_000))
        found = some(learned(values, Learn("x", kind), seed, Fraction(1, 500)))
        low, high = found.tree.edges[[0, -1]]
        span = 365 * unit
        distance = max(abs(low - start), abs(high - start - span)) / span
        far += distance > 0.1
        places = (found.tree.edges[:-1] + found.tree.edges[1:]) / 2
        mean = float(places @ found.masses / found.masses.sum())
        assert abs(mean - values.mean()) < (0.02 if distance < 0.1 else 0.1) * span
    assert far <= 2


def test_trimmed_cells_give_their_counts_to_the_end() -> None:
    tree = CountTree(np.arange(257.0), UnitLine(0))
    truth = np.zeros(256)
    truth[100:140] = 500.0
    rng = np.random.default_rng(0)
    counts = [np.add.reduceat(truth, level[:-1]) for level in tree.levels]
    noisy = [c + rng.normal(0, 60, len(c)) for c in counts]
    masses = tree.estimate(noisy, [60.0] * len(noisy))
    own, kept = tree.trimmed(masses, noisy, [60.0] * len(noisy))
    assert 96 <= own.edges[0] <= 102
    assert 138 <= own.edges[-1] <= 144
    assert kept.sum() == pytest.approx(masses.sum())
    leaves = own.leaves(kept)
    assert (leaves[0], leaves[-1]) == (own.edges[0], own.edges[-1])
    nothing = [np.zeros(len(c)) for c in counts]
    same, unchanged = tree.trimmed(masses, nothing, [60.0] * len(noisy))
    assert same is tree
    assert unchanged is masses


@pytest.mark.parametrize("scale", [1e13, 1e-9, 1e25, -1e13])
def test_numbers_of_any_size_are_learned(scale: float) -> None:
    values = scale * np.random.default_rng(5).lognormal(0, 0.5, 20_000)
    found = some(learned(values, Learn("x", "real")))
    made = found.declared(10.0)
    assert made.low <= np.quantile(values, 0.02)
    assert np.quantile(values, 0.98) <= made.high
    low, high = found.mean.interval
    assert low < values.mean() < high
    assert high - low < abs(values.mean())


def test_large_numbers_lose_their_unit() -> None:
    for typical, decimals in ((1e8, 2), (1e15, None)):
        values = np.round(typical * np.random.default_rng(6).lognormal(0, 0.5, 20_000), 2)
        made = some(learned(values, Learn("x", "real"))).declared(10.0)
        assert isinstance(made, Real)
        assert made.decimals == decimals
        assert made.low <= values.mean() <= made.high


def test_whole_numbers_that_are_not_exact_are_not_learned() -> None:
    rng = np.random.default_rng(7)
    exact = 2.0**52 + rng.integers(0, 1000, 20_000)
    made = some(learned(exact, Learn("x", "integer"))).declared(10.0)
    assert made.low <= exact.min() <= exact.max() <= made.high
    noisy = SimulatedColumn(exact * 8, rng)
    assert learn_number(Learn("x", "integer"), noisy, RHO) is None
    assert "not exact: divide them" in range_advice("x", noisy.asked[-1])
    few = SimulatedColumn(exact[:3], rng)
    assert learn_number(Learn("x", "integer"), few, RHO) is None
    assert "rows between some value and its double" in range_advice("x", few.asked[-1])


def test_public_bounds_clip_and_need_no_range() -> None:
    values = skewed(np.random.default_rng(3))
    column = Learn("x", "integer", low=0, high=1000)
    noisy = SimulatedColumn(np.clip(values, 0, 1000), np.random.default_rng(0))
    made = some(learn_number(column, noisy, RHO)).declared(10.0)
    assert (made.low, made.high) == (0, 1000)
    assert sum(a.rho for a in noisy.asked) == RHO
    assert len(noisy.asked) == 6  # a zoom and the levels of the tree
    above = some(learned(values, Learn("x", "integer", low=0))).declared(10.0)
    assert above.low == 0


@pytest.mark.parametrize("low", [date(2024, 1, 1), date(1900, 1, 1), None])
@pytest.mark.parametrize("high", [date(2025, 12, 31), date(2100, 12, 31), None])
def test_no_date_lies_beyond_a_public_bound(low: date | None, high: date | None) -> None:
    """Noise makes the run cut its range, but not the bins. Values stay where they were seen."""
    column = Learn("x", "date", low=low, high=high)
    for seed in range(3):
        days = 19_723.0 + np.random.default_rng(seed).integers(0, 700, 3000)
        made = some(learned(days, column, seed)).declared(40.0)
        assert low in (None, made.low)
        assert high in (None, made.high)
        least, greatest = made.cells.extremes
        assert low is None or least[0] <= np.quantile(days, 0.05)
        assert high is None or greatest[-1] >= np.quantile(days, 0.95)
        drawn = made.cells.draw(made.cells.locate(days), np.random.default_rng(seed))
        assert abs(drawn.mean() - days.mean()) < 100


def test_learned_reals_end_at_their_public_bounds() -> None:
    rng = np.random.default_rng(8)
    wide = np.clip(rng.normal(26, 4, 20_000), 10, 60)
    short = np.clip(rng.normal(5, 3, 20_000), 0.25, 9.75)
    cases: list[tuple[FloatArray, float, float]] = [
        *((wide.round(decimals), 10.0, 60.0) for decimals in range(4)),
        (short.round(1), 0.25, 9.75),
        (short, 0.25, 9.75),
        (np.where(rng.random(20_000) < 0.3, 9.75, short.round(2)), 0.25, 9.75),
        (rng.integers(0, 11, 20_000) / 1.0, 0.0, 10.0),
    ]
    for values, low, high in cases:
        made = some(learned(values, Learn("x", "real", low=low, high=high))).declared(20.0)
        assert (made.low, made.high) == (low, high)
        codes = made.cells.locate(values)
        drawn = made.cells.draw(codes, rng)
        assert low <= drawn.min() <= drawn.max() <= high
        assert abs(drawn.mean() - values.mean()) < 0.05
        common = int(np.bincount(codes).argmax())
        spread = float(np.var(drawn[codes == common]))
        assert made.cells.variances[common] == pytest.approx(spread, rel=0.1, abs=1e-9)


def test_a_column_of_little_but_noise_is_not_learned() -> None:
    values = np.full(100_000, np.nan)
    values[:40] = np.random.default_rng(4).normal(0, 1000, 40)
    assert learned(values, Learn("x", "real")) is None


def test_all_of_the_budget_and_no_more() -> None:
    for kind in ("real", "integer", "timestamp"):
        values = years(np.random.default_rng(1)) * (3600 if kind == "timestamp" else 1)
        noisy = SimulatedColumn(values, np.random.default_rng(0))
        column = Learn("x", kind)
        found = some(learn_number(column, noisy, RHO))
        levels = [a.rho for a in noisy.asked if a.rho == noisy.asked[-1].rho]
        assert sum(levels) == RHO * least_tree_share(column), "as planned"
        assert kind != "timestamp" or [a.query.size for a in noisy.asked[1:3]] == [65, 65]
        assert sum(a.rho for a in noisy.asked) == RHO
        found.with_sum(noisy, Fraction(1, 100))
        assert isinstance(noisy.asked[-1].query, ClippedSum)


def test_a_sum_narrows_the_interval_and_finds_the_mean() -> None:
    values = skewed(np.random.default_rng(1))
    noisy = SimulatedColumn(values, np.random.default_rng(0))
    before = some(learn_number(Learn("x", "integer"), noisy, RHO))
    after = before.with_sum(noisy, Fraction(1, 50)).mean
    assert after.variance < before.mean.variance
    clipped = np.clip(values, None, before.tree.edges[-1] - 1).mean()
    assert abs(after.estimate - clipped) < 4 * np.sqrt(after.variance)


def test_decimals_are_those_of_all_but_a_few_values() -> None:
    rng = np.random.default_rng(1)
    for k, values in enumerate((rng.integers(0, 9, 9000), rng.integers(0, 99, 9000) / 10)):
        noisy = SimulatedColumn(values.astype(np.float64), rng)
        assert decimals_of(noisy.measure(DecimalCells(), Fraction(1, 1000))) == k
    noisy = SimulatedColumn(rng.random(9000), rng)
    assert decimals_of(noisy.measure(DecimalCells(), Fraction(1, 1000))) is None


@pytest.mark.parametrize("query", [DecimalCells(), ClippedSum(-1e300, 1e300, 0.0)])
def test_no_value_makes_a_query_warn(query: Any) -> None:
    extreme = np.array([1.7976931348623157e308, -1.7976931348623157e308, 5e-324, np.inf, np.nan])
    assert query.tally(extreme).sum() >= 1


def test_a_sum_over_a_range_that_no_step_divides_is_refused() -> None:
    assert ClippedSum(0.0, 1e-290, 0.0).max_change == ClippedSum.max_contribution
    for low, high in ((-5e-324, 5e-324), (0.0, 1e-310), (-1e-305, 1e-305)):
        with pytest.raises(InputError, match="too close together"):
            ClippedSum(low, high, 0.0)


def test_the_same_answers_teach_the_same() -> None:
    values = prices(np.random.default_rng(1))
    one, two = (some(learned(values, Learn("x", "real"))).declared(20.0) for _ in range(2))
    assert one == two


def test_seeds_grow_over_one_gap() -> None:
    counts = np.array([0, 25, 100, 5, 24, 0, 0, 30, 0], dtype=np.float64)
    assert grown(counts, 10.0, seed=4.5).tolist() == [False, True, True, True, True, *[False] * 4]
    assert not grown(counts / 10, 10.0, seed=4.5).any()


def test_a_tree_without_noise_is_the_histogram() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 1000, 200).astype(np.float64)
    tree = CountTree(np.arange(201.0), UnitLine(0))
    exact = [np.add.reduceat(truth, level[:-1]) for level in tree.levels]
    masses = tree.estimate(exact, [1e-6] * len(exact))
    assert np.allclose(masses, truth, atol=1e-3)
    assert len(tree.leaves(masses)) > 150


def test_a_flat_stretch_is_one_leaf() -> None:
    rng = np.random.default_rng(1)
    truth = np.concatenate([np.full(128, 50.0), np.zeros(128)])
    tree = CountTree(np.arange(257.0), UnitLine(0))
    counts = [np.add.reduceat(truth, level[:-1]) for level in tree.levels]
    noisy = [c + rng.normal(0, 30, len(c)) for c in counts]
    masses = tree.estimate(noisy, [30.0] * len(noisy))
    assert len(tree.leaves(masses)) < 40
    assert (masses >= 0).all()
    assert abs(masses.sum() - truth.sum()) < 4 * 30 * 2


def test_sums_from_an_end_are_those_of_its_cells() -> None:
    truth = np.random.default_rng(1).integers(0, 100, 200).astype(np.float64)
    tree = CountTree(np.arange(201.0), UnitLine(0))
    counts = [np.add.reduceat(truth, level[:-1]) for level in tree.levels]
    ones = [np.ones(len(c)) for c in counts]
    for top in (False, True):
        sums, deviations = tree._sums_from_end(counts, ones, top=top)
        assert np.allclose(sums, np.cumsum([0, *(truth[::-1] if top else truth)]))
        assert deviations.max() <= np.sqrt(3 * len(counts) + 1), "few nodes make each sum"


def test_noise_far_from_the_mass_fades() -> None:
    """In a range that is 25 times as long as the mass, less than a hundredth of the rows is drawn far from it."""
    rng = np.random.default_rng(1)
    truth = np.zeros(1024)
    truth[500:540] = 500.0
    tree = CountTree(np.arange(10_000.0, 11_025.0), UnitLine(0))
    counts = [np.add.reduceat(truth, level[:-1]) for level in tree.levels]
    far = []
    for _ in range(20):
        noisy = [c + rng.normal(0, 200, len(c)) for c in counts]
        masses = tree.estimate(noisy, [200.0] * len(noisy))
        far.append(1 - masses[480:560].sum() / masses.sum())
    assert np.median(far) < 0.01


def test_one_cell_that_noise_lifts_does_not_set_the_range() -> None:
    line = UnitLine(0)
    query = range_query(line)
    counts = np.zeros(query.size, dtype=np.int64)
    main, far = counts.size // 2 + 20, 16
    counts[main] = 20_000

    def extent(island: int) -> Extent:
        counts[far] = island
        found = extent_of(ColumnAnswer("year", query, counts.copy(), 18.0, Fraction(1)), line)
        assert found is not None
        return found

    alone = extent(0)
    assert extent(83).low == alone.low
    assert extent(83).hidden == alone.hidden + 83
    assert extent(150).low < -1e6


def test_the_noise_decides_how_far_beyond_a_bound_values_may_lie() -> None:
    silent = (0.0, np.inf)
    steep = Tail(last=4000.0, before=40_000.0, next=0.0, beyond=0.0, sigma=50.0)
    assert steep.weight(*silent) == pytest.approx(2 * np.sqrt(2) * 50 / (1 - 1.5 * np.sqrt(2) / 40))
    faded = Tail(last=200.0, before=600.0, next=0.0, beyond=0.0, sigma=50.0)
    rows = 2 * np.sqrt(2) * 50 / (1 - 0.5)
    assert faded.weight(*silent) == pytest.approx(rows * 7)
    bounded = faded.within(100.0, 300.0)
    assert bounded is not None
    assert bounded.weight(*silent) == pytest.approx(rows * 2), "no value lies beyond a public bound"
    assert faded.within(100.0, 100.0) is None
    assert faded.weight(0.0, 50.0) < faded.weight(*silent) < faded.weight(300.0, 50.0)
    assert faded.weight(1e9, 50.0) == faded.weight(1e6, 50.0), "a heap at the end is no tail"


def test_what_lies_beyond_shows_in_the_outermost_cells_of_a_tree() -> None:
    tree = CountTree(np.arange(257.0), UnitLine(0))
    truth = np.full(256, 20.0)
    truth[-1] += 300.0
    counts = [np.add.reduceat(truth, level[:-1]) for level in tree.levels]
    scales = [30.0] * len(counts)
    surplus, noise = surplus_of(tree, counts, scales, top=True)
    assert surplus == pytest.approx(300.0)
    assert noise == pytest.approx(30 * np.sqrt(4 / 3 / 2))
    assert surplus_of(tree, counts, scales, top=False)[0] == pytest.approx(0.0)


def test_no_unmarked_mean_of_a_column_with_a_rare_long_tail_misses() -> None:
    """One row in a hundred has an exponential amount in addition, whose mean is ten times the median."""
    missed = held = 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        fare = 3 + 2.6 * rng.lognormal(0.8, 0.8, 20_000) + rng.lognormal(0.5, 0.8, 20_000)
        fare = np.round(fare + (rng.random(20_000) < 0.01) * rng.exponential(120, 20_000), 2)
        mean = some(learned(fare, Learn("x", "real"), seed, Fraction(3, 10_000))).mean
        low, high = mean.interval
        held += low <= fare.mean() <= high
        missed += (high - low) / 2 <= mean.tolerance and not low <= fare.mean() <= high
    assert missed <= 2
    assert held >= 20
