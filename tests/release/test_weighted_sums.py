"""Means and totals of groups from counts and weighted sums together: exact covariances, and intervals that hold."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from margrave.bounds.gls import Unbiased
from margrave.bounds.noisy_counts import NoisyCounts
from margrave.bounds.weighted_sums import WeightedSums, weighted_sums
from margrave.marginal import LinearMap
from margrave.mechanisms.parts.purpose_sums import PurposeSums, _weights, _with_squares
from margrave.models import NoModel
from margrave.release.numbers import numbers_of
from margrave.schema import Categorical, Integer, Real, Schema
from margrave.transcript import Measurement, Transcript
from tests.support.noise import consistent, discrete
from tests.support.strategies import measurement

SIZE, GROUPS = 30, ("a", "b", "c")
SCHEMA = Schema([Integer("x", 0, SIZE - 1), Categorical("g", list(GROUPS))])
PAIR, CELL_NOISE, SUM_NOISE = ("x", "g"), 25.0, 280.0


def table(long_tail: bool) -> Any:
    """Return the counts of x by g: groups of 50, 40 and 10 % of 20,000 records, with means of their own."""
    x = np.arange(SIZE, dtype=float)
    middles = np.array([1.0, 2.0, 1.5]) if long_tail else np.array([14.0, 16.0, 12.0])
    shapes = np.exp(-x[:, None] / middles if long_tail else -((x[:, None] - middles) ** 2) / 32)
    return np.rint(shapes / shapes.sum(axis=0) * [10_000, 8_000, 2_000]).astype(np.int64)


def answers(rng: np.random.Generator, counts: Any, scale: float = SUM_NOISE) -> list[Measurement]:
    """Return noisy counts, then noisy sums with the weights that purposes use."""
    found = [
        measurement(("x",), counts.sum(axis=1) + discrete(rng, 90.0, (SIZE,)), 90.0),
        measurement(("g",), counts.sum(axis=0) + discrete(rng, 90.0, (3,)), 90.0),
        measurement(PAIR, counts + discrete(rng, CELL_NOISE, counts.shape), CELL_NOISE),
    ]
    sums = PurposeSums(())
    weights = _weights(SCHEMA.column("x"), found[0].values.astype(float), sums)
    several = _with_squares(weights, sums)
    noisy = weights @ counts + discrete(rng, scale, (1, 3))
    alone = several @ counts.sum(axis=1) + discrete(rng, 800.0, (2,))
    return [*found, weighted(("x",), alone, 800.0, several), weighted(PAIR, noisy, scale, weights)]


def weighted(clique: tuple[str, ...], values: Any, scale: float, weights: Any) -> Measurement:
    return Measurement(clique, values, scale, Fraction(1), LinearMap(matrices={"x": weights}))


def grouped(entries: list[Measurement], by: str | None = "g") -> dict[tuple[str, str], Any]:
    absent = NoModel(SCHEMA.domain, 1.0, "it is not needed")
    found = numbers_of(SCHEMA, Transcript(tuple(entries)), absent, 0.9, ["x"], by)
    return {(n.statistic, n.group[-1:]): n for n in found}


def sums_in(entries: list[Measurement], group: tuple[str, int] | None) -> WeightedSums | None:
    transcript = Transcript(tuple(entries))
    estimate = Unbiased(SCHEMA.domain, transcript).estimate(("x",) if group is None else PAIR)
    assert estimate is not None
    own = estimate if group is None else estimate.slice(*group)
    return weighted_sums(own, SCHEMA.domain, transcript, dict([group] if group else []))


@pytest.mark.parametrize("long_tail", [False, True])
def test_intervals_hold_and_are_narrower(long_tail: bool) -> None:
    """Every value has a bin of its own, so the intervals cover noise alone."""
    trials, counts, x = 80, table(long_tail), np.arange(SIZE, dtype=float)
    rng, missed, ratios = np.random.default_rng(21), dict[Any, int](), []
    for _ in range(trials):
        entries = answers(rng, counts)
        for k in range(len(GROUPS)):
            sums = sums_in(entries, ("g", k))
            assert sums is not None
            both, by_counts = (NoisyCounts(sums.estimate, 0.9, s) for s in (sums, None))
            mean, total = both.mean(x, np.ones(SIZE)), both.total(x)
            truth = float(x @ counts[:, k])
            for name, one, right in (
                ("mean", mean, truth / counts[:, k].sum()), ("total", total, truth)
            ):  # fmt: skip
                missed[name, k] = missed.get((name, k), 0) + (not one.low <= right <= one.high)
            other = by_counts.mean(x, np.ones(SIZE))
            ratios += [(mean.high - mean.low) / (other.high - other.low)] if k == 0 else []
    assert all(consistent(m, trials, 0.1) for m in missed.values()), missed
    assert sum(missed.values()) > 0, missed
    # what the weights of a long tail leave has the noise of the counts
    low, high = (0.3, 0.8) if long_tail else (0.1, 0.4)
    assert low < np.mean(ratios) < high


@pytest.mark.parametrize("group", [None, ("g", 1)])
def test_estimate_and_covariance_are_those_of_least_squares(group: tuple[str, int] | None) -> None:
    """Against the ordinary matrices of all answers about the counts."""
    entries = answers(np.random.default_rng(3), table(long_tail=True))
    sums = sums_in(entries, group)
    assert sums is not None
    noisy = NoisyCounts(sums.estimate, 0.95, sums)
    eye, ones = np.eye(SIZE), np.ones((1, 3))
    design = [
        np.kron(eye, ones) / 90.0, np.kron(np.ones((1, SIZE)), np.eye(3)) / 90.0,
        np.eye(3 * SIZE) / CELL_NOISE,
    ]  # fmt: skip
    by_cells = np.linalg.inv(sum(d.T @ d for d in design))
    right = sum(
        d.T @ (m.values.reshape(-1) / m.scale) for d, m in zip(design, entries, strict=False)
    )
    pick = np.kron(eye, ones if group is None else np.eye(3)[[1]])
    counts, covariance = pick @ by_cells @ right, pick @ by_cells @ pick.T
    alone, pair = entries[3:]
    if group is None:
        w = np.concatenate([alone.query.matrices["x"], pair.query.matrices["x"]])
        y = np.concatenate([alone.values, pair.values.sum(axis=1)])
        noise = np.diag([800.0**2, 800.0**2, 3 * SUM_NOISE**2])
    else:
        w, y, noise = (
            pair.query.matrices["x"],
            pair.values[:, 1],
            np.array([[SUM_NOISE**2]]),
        )
    gain = covariance @ w.T @ np.linalg.inv(w @ covariance @ w.T + noise)
    counts, covariance = counts + gain @ (y - w @ counts), covariance - gain @ w @ covariance
    one, other = np.arange(SIZE, dtype=float), np.ones(SIZE)
    assert noisy.sum_of(one) == pytest.approx(one @ counts)
    assert noisy.covariance(one, other) == pytest.approx(one @ covariance @ other)
    assert noisy.total(one).high - noisy.total(one).low == pytest.approx(
        2 * noisy.deviations * (one @ covariance @ one) ** 0.5
    )


def test_numbers_of_groups_and_of_the_whole_column_have_them() -> None:
    entries = answers(np.random.default_rng(5), table(long_tail=False))
    found, cells = grouped(entries), grouped(entries[:3])
    sums = sums_in(entries, ("g", 1))
    assert sums is not None
    total = NoisyCounts(sums.estimate, 0.9, sums).total(np.arange(SIZE, dtype=float))
    assert found["total", "b"].low == pytest.approx(total.low)
    assert all(found["mean", g].noise < 0.4 * cells["mean", g].noise for g in GROUPS)
    several, by_counts = grouped(entries, by=None), grouped(entries[:3], by=None)
    assert several["mean", ""].noise < 0.4 * by_counts["mean", ""].noise
    assert several["q50", ""] == by_counts["q50", ""]


def test_other_maps_are_left_out() -> None:
    """Sums of products, groups merged, and maps that least squares uses already."""
    counts, x = table(long_tail=False), np.arange(SIZE)[None]
    cells = answers(np.random.default_rng(6), counts)[:3]
    product = LinearMap(matrices={"x": x, "g": np.array([[0, 1, 2]])})
    merged = LinearMap({"g": np.array([0, 1, 1])}, {"x": x})
    residual = LinearMap.residual(SCHEMA.domain, ("x",))
    entries = [
        Measurement(PAIR, product.apply(PAIR, counts), 9.0, Fraction(1), product),
        Measurement(PAIR, merged.apply(PAIR, counts), 9.0, Fraction(1), merged),
        Measurement(("x",), residual.apply(("x",), counts.sum(axis=1)), 9.0, Fraction(1), residual),
    ]
    assert sums_in([*cells, *entries], ("g", 1)) is None
    found = sums_in([*cells, *entries], None)
    assert found is not None
    assert len(found.weights) == 1  # merged groups count for all records
    assert found.variances.tolist() == [2 * 81.0]


def test_the_noise_of_a_learned_group_is_stated_apart() -> None:
    schema = Schema([Real("x", 0, SIZE, bins=SIZE, mean=[15, 14, 17]), SCHEMA.column("g")])
    entries = answers(np.random.default_rng(8), table(long_tail=False))
    absent = NoModel(schema.domain, 1.0, "it is not needed")
    found = numbers_of(schema, Transcript(tuple(entries)), absent, 0.9, ["x"], "g")
    one = next(n for n in found if n.statistic == "mean")
    assert None not in (one.low, one.high, one.noise, one.bins, one.estimate)
    assert one.estimate - one.low == pytest.approx(one.noise + one.bins, rel=0.05)  # type: ignore[operator]
    assert one.high - one.estimate > 1.0 + one.noise  # type: ignore[operator]
