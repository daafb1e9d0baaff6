"""Combining rules: by hand, and by simulation against posteriors that are exact; wrong rules are shown to fail."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from margrave.errors import InputError
from margrave.inference import Estimate, combine, mix, wald
from tests.support.exact_posterior import normal_mean

REPS = 6000
NEAR = 0.02  # seven standard deviations of a coverage over REPS: a false alarm in 1e11, or 1e6 if truly 0.94 or 0.96


def coverage(
    reps: int = REPS, *, m: int, ratio: float, noise: float
) -> tuple[float, float, float, float, float]:
    """How often intervals hold the truth: by the rule; without − v̄; by Rubin's rules; by v̄ alone; and ours' width."""
    q, v = normal_mean(np.random.default_rng(5), reps=reps, m=m, ratio=ratio, noise=noise)
    held, width = 0, []
    for row, variances in zip(q, v, strict=True):
        low, high = combine(row, variances, rows=ratio, total=1.0).conf_int(0.95)
        held += low < 0 < high
        width.append(high - low)
    mean, spread = q.mean(axis=1), (1 + 1 / m) * q.var(axis=1, ddof=1)
    t = stats.t.ppf(0.975, m - 1)
    wrong = [spread, spread + v[:, 0], v[:, 0]]
    return (
        held / reps,
        *(float((np.abs(mean) < t * np.sqrt(w)).mean()) for w in wrong),
        float(np.median(width)),
    )


@pytest.mark.parametrize(
    ("m", "ratio", "noise"), [(100, 1.0, 0.5), (100, 1.0, 4.0), (30, 10.0, 0.5)]
)
def test_intervals_cover_as_often_as_they_say(m: int, ratio: float, noise: float) -> None:
    ours, *_, width = coverage(m=m, ratio=ratio, noise=noise)
    assert abs(ours - 0.95) < NEAR
    ideal = 2 * stats.norm.ppf(0.975) * math.sqrt((1 + noise) * (1 + 1 / m) + 1 / (ratio * m))
    assert 1.0 <= width / ideal < 1.06


def test_wrong_rules_do_not() -> None:
    ours, unsubtracted, rubin, naive, _ = coverage(m=100, ratio=1.0, noise=0.5)
    assert abs(ours - 0.95) < NEAR
    assert unsubtracted > 0.95 + NEAR
    assert rubin > 0.95 + 2 * NEAR
    assert naive < 0.95 - 2 * NEAR


@pytest.mark.parametrize(("m", "ratio"), [(3, 1.0), (5, 0.1), (5, 0.001), (20, 0.3), (100, 0.1)])
def test_few_or_small_data_sets_give_wide_intervals_that_hold(m: int, ratio: float) -> None:
    """T near or below nothing: the floor and the least df keep coverage, and every interval ends somewhere."""
    ours, *_, width = coverage(2000, m=m, ratio=ratio, noise=0.2)
    assert ours > 0.95 - NEAR
    assert math.isfinite(width)


def test_the_rule_by_hand() -> None:
    q, v = [1.0, 2.0, 4.0, 5.0], [0.2, 0.4, 0.4, 0.6]
    found = combine(q, v, rows=50, total=100, name="a")
    spread = 1.25 * (10.0 / 3.0)
    assert (found.name, found.estimate, found.used, found.data_sets, found.ratio) == (
        "a",
        3.0,
        4,
        4,
        0.5,
    )
    assert found.within == pytest.approx(0.4)
    assert found.between == pytest.approx(10.0 / 3.0)
    assert found.variance == pytest.approx(spread - 0.4)
    assert found.df == pytest.approx(3 * (1 - 0.4 / spread) ** 2)  # Reiter's own form
    assert found.fmi_privacy == pytest.approx(1 - 0.5 * 0.4 / (spread - 0.4))
    low, high = found.conf_int(0.9)
    assert (low + high) / 2 == pytest.approx(3.0)
    assert high - 3.0 == pytest.approx(stats.t.ppf(0.95, found.df) * math.sqrt(found.variance))
    assert found.pvalue(1.0) == pytest.approx(
        2 * stats.t.sf(2.0 / math.sqrt(found.variance), found.df)
    )


def test_a_variance_below_that_of_the_real_records_is_raised() -> None:
    found = combine([1.0, 1.1, 0.9], [0.5, 0.5, 0.5], rows=200, total=100)
    assert found.floored
    assert found.variance == pytest.approx((2 + 3 / 3) * 0.5)
    assert found.fmi_privacy == pytest.approx(1 / 3), "the mean of three data sets has a variance"
    assert found.df == 2.0  # T exceeds what the estimates' spread holds: all of m − 1
    small = combine([1.0, 3.0, 5.0], [5.0, 5.0, 5.0], rows=10, total=100)
    assert small.variance == pytest.approx((0.1 + 1.1 / 3) * 5.0)
    assert small.df == 1.0


def test_without_the_number_of_real_records_there_is_no_floor() -> None:
    assert combine([1.0, 3.0], [0.5, 0.5]).variance == pytest.approx(1.5 * 2.0 - 0.5)
    unknown = combine([1.0, 1.1], [0.5, 0.5])
    assert math.isnan(unknown.variance)
    assert not unknown.has_interval
    assert all(math.isnan(v) for v in (*unknown.conf_int(), unknown.pvalue(), unknown.fmi_privacy))
    assert unknown.to_dict()["low"] is None


def test_the_published_rule_has_no_floor() -> None:
    q, v = [1.0, 1.9, 2.2, 2.9], [0.6, 0.5, 0.7, 0.6]
    bounded, published = (combine(q, v, rows=100, total=100, floor=f) for f in (True, False))
    spread = 1.25 * float(np.var(q, ddof=1))
    assert published.variance == pytest.approx(spread - 0.6)
    assert published.df == pytest.approx(3 * ((spread - 0.6) / spread) ** 2)
    assert bounded.variance > published.variance
    assert bounded.floored
    assert not published.floored
    negative = combine([1.0, 1.1], [0.5, 0.5], rows=100, total=100, floor=False)
    assert math.isnan(negative.variance)
    assert not negative.has_interval


def test_endless_data_sets_leave_the_spread_of_estimates() -> None:
    found = combine([1.0, 2.0, 3.0], [1e-12] * 3, rows=1e12, total=1.0)
    assert found.variance == pytest.approx(4.0 / 3.0)
    assert found.df == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("q", "v"),
    [([1.0], [1.0]), ([1.0, 2.0], [1.0]), ([1.0, math.nan], [1.0, 1.0]), ([1.0, 2.0], [1.0, -1.0])],
)
def test_what_cannot_be_combined_is_refused(q: list[float], v: list[float]) -> None:
    with pytest.raises(InputError):
        combine(q, v)
    with pytest.raises(InputError, match="level"):
        combine([1.0, 2.0], [0.1, 0.1]).conf_int(95)


# --- the bias of refits


def refits(
    rng: np.random.Generator, *, reps: int, m: int, bias: float, noise: float, own: float
) -> tuple[np.ndarray, np.ndarray]:
    """A fit that is off by ``bias`` each time, of a truth of 0: estimates from its refits' tables, and from its own.

    The release is off by bias + N(0, noise²), refits of it once more; tables add N(0, own²), the same for both kinds.
    """
    released = bias + noise * rng.normal(size=(reps, 1))
    sampled = own * rng.normal(size=(reps, m))
    return released + bias + noise * rng.normal(size=(reps, m)) + sampled, released + sampled


def test_the_bias_of_refits_is_taken_off_and_its_square_added_to_the_variance() -> None:
    q, own = ([1.0, 2.0, 4.5], [1.5, 2.0, 1.0])
    plain, found = (
        combine(q, [0.1] * 3, rows=10, total=10, center=c) for c in (None, float(np.mean(own)))
    )
    assert found.estimate == pytest.approx(2 * 1.5 - 2.5)
    assert found.bias == pytest.approx(1.0)
    assert (plain.estimate, plain.bias) == (2.5, 0.0)
    assert found.variance == pytest.approx(plain.variance + 1.0)
    assert (found.df, found.floored) == (plain.df, plain.floored)
    with pytest.raises(InputError):
        combine(q, [0.1] * 3, center=math.nan)


@pytest.mark.parametrize(("bias", "most"), [(2.0, 1.0), (0.3, 0.975)])
def test_a_biased_fit_is_covered_once_corrected(bias: float, most: float) -> None:
    """At least nominal coverage with the correction; hardly any without, where the bias is two standard deviations."""
    reps, held = 2000, {True: 0, False: 0}
    every, own = refits(np.random.default_rng(6), reps=reps, m=60, bias=bias, noise=1.0, own=0.7)
    for q, r in zip(every, own, strict=True):
        for corrected in held:
            found = combine(
                q, np.full(60, 0.49), rows=1, total=1, center=float(r.mean()) if corrected else None
            )
            low, high = found.conf_int()
            held[corrected] += low < 0 < high
    assert 0.924 < held[True] / reps <= most  # 5.3 standard deviations below the level
    assert held[False] / reps < (0.1 if bias > 1 else held[True] / reps)


@pytest.mark.parametrize("method", ["full", "proportional"])
def test_a_test_of_several_values_is_corrected_alike(method: str) -> None:
    """dᵀ (T + c cᵀ)⁻¹ d with d = 2 q̂ − q̄ − null and c = q̄ − q̂, and everything else as without a center."""
    rng = np.random.default_rng(2)
    q, center = rng.normal(1.0, 1.0, (40, 3)), np.array([0.2, 0.4, 1.1])
    each = np.diag([0.2, 0.3, 0.1])
    v = np.broadcast_to(each, (40, 3, 3))
    found, plain = (
        wald(q, v, 0.3, rows=10, total=10, method=method, center=c) for c in (center, None)
    )
    assert found.df == plain.df
    spread, bias = (1 + 1 / 40) * np.cov(q, rowvar=False), q.mean(axis=0) - center
    total = (
        spread - each
        if method == "full"
        else (np.trace(spread @ np.linalg.inv(each)) / 3 - 1) * each
    )
    d, e = center - bias - 0.3, q.mean(axis=0) - 0.3
    ratio = d @ np.linalg.solve(total + np.outer(bias, bias), d) / (e @ np.linalg.solve(total, e))
    assert found.statistic / plain.statistic == pytest.approx(ratio)


def test_a_test_of_one_value_is_the_scalar_rule() -> None:
    q, center = np.random.default_rng(3).normal(1.0, 1.0, (40, 1)), np.array([0.7])
    one = combine(q[:, 0], np.full(40, 0.2), rows=10, total=10, center=0.7)
    both = wald(q, np.full((40, 1, 1), 0.2), 0.3, rows=10, total=10, center=center)
    assert both.statistic == pytest.approx((one.estimate - 0.3) ** 2 / one.variance)
    assert both.df[1] == pytest.approx(one.df)


# --- several values at once


def rejections(
    method: str, *, k: int, m: int, ratio: float, noise: np.ndarray, shift: float = 0.0
) -> float:
    """How often a test at 5 % rejects a mean vector; it is true unless ``shift``ed."""
    rng, reps = np.random.default_rng(11), 1500
    mixing = rng.normal(size=(k, k + 3))
    sampling = mixing @ mixing.T / (k + 3)
    posterior, own = (np.linalg.cholesky(c) for c in (sampling + noise, sampling / ratio))
    covariances, count = np.broadcast_to(sampling / ratio, (m, k, k)), 0
    for _ in range(reps):
        seen = posterior @ rng.normal(size=k)
        q = seen + rng.normal(size=(m, k)) @ posterior.T + rng.normal(size=(m, k)) @ own.T
        found = wald(q, covariances, shift, rows=ratio, total=1.0, method=method)
        count += found.pvalue < 0.05
    return count / reps


LIMIT = 0.05 + 5.2 * math.sqrt(0.05 * 0.95 / 1500)  # a false alarm in ten million


def test_the_full_test_holds_its_level() -> None:
    uneven = np.diag([20.0, 0.1, 0.1, 0.1])
    even = rejections("full", k=4, m=100, ratio=1.0, noise=5 * np.eye(4))
    assert 0.02 < even < LIMIT
    assert rejections("full", k=4, m=100, ratio=1.0, noise=uneven) < LIMIT
    assert rejections("full", k=4, m=20, ratio=1.0, noise=uneven) < LIMIT
    assert rejections("full", k=2, m=50, ratio=10.0, noise=0.5 * np.eye(2), shift=6.0) > 0.5


def test_reiters_test_holds_it_where_its_assumption_does() -> None:
    assert 0.02 < rejections("proportional", k=4, m=100, ratio=10.0, noise=np.zeros((4, 4))) < LIMIT
    uneven = np.diag([20.0, 0.1, 0.1, 0.1])
    assert (
        rejections("proportional", k=4, m=100, ratio=1.0, noise=uneven) > LIMIT
    )  # as the documentation says


def test_a_test_of_one_value_is_the_t_test() -> None:
    rng = np.random.default_rng(3)
    q, v = rng.normal(1.0, 2.0, 40), np.full(40, 0.7)
    one = combine(q, v, rows=100, total=100)
    both = wald(q[:, None], v[:, None, None], 0.4, rows=100, total=100)
    assert both.df == (1.0, pytest.approx(one.df))
    assert both.pvalue == pytest.approx(one.pvalue(0.4))


def test_reiters_statistic_by_hand() -> None:
    q = np.array([[1.0, 0.0], [3.0, 2.0], [2.0, 4.0], [6.0, 2.0]])
    within = np.array([[1.0, 0.2], [0.2, 0.5]])
    found = wald(
        q, np.broadcast_to(within, (4, 2, 2)), [1.0, 1.0], rows=10, total=10, method="proportional"
    )
    d, inverse = q.mean(axis=0) - 1.0, np.linalg.inv(within)
    r = 1.25 * np.trace(np.cov(q.T) @ inverse) / 2
    assert r > 2
    assert found.statistic == pytest.approx(d @ inverse @ d / (2 * (r - 1)))
    assert found.df == (2.0, pytest.approx(4 + (6 - 4) * (1 - (1 - 2 / 6) / r) ** 2))
    assert found.pvalue == pytest.approx(stats.f.sf(found.statistic, *found.df))


def test_the_full_statistic_by_hand() -> None:
    rng = np.random.default_rng(9)
    q, within = rng.normal(size=(60, 3)) * [3.0, 2.0, 1.0], 0.1 * np.eye(3)
    found = wald(q, np.broadcast_to(within, (60, 3, 3)), rows=10, total=10)
    a = (1 + 1 / 60) * np.cov(q.T)
    t, d = a - within, q.mean(axis=0)
    ga = np.linalg.inv(t) @ a
    nu = 59 * 12 / (np.trace(ga @ ga) + np.trace(ga) ** 2)
    assert found.df == (3.0, pytest.approx(nu - 2))
    assert found.statistic == pytest.approx(d @ np.linalg.inv(t) @ d * (nu - 2) / (3 * nu))
    assert "F(3," in str(found)


def test_a_test_that_cannot_be_made_is_refused() -> None:
    q, v = np.zeros((3, 4)), np.broadcast_to(np.eye(4), (3, 4, 4))
    with pytest.raises(InputError, match="more than 3 data sets"):
        wald(q, v)
    with pytest.raises(InputError, match="shape"):
        wald(np.zeros((9, 2)), np.zeros((9, 2)))
    with pytest.raises(InputError, match="no test"):
        wald(np.zeros((9, 2)), np.broadcast_to(np.eye(2), (9, 2, 2)), method="other")
    with pytest.raises(InputError, match="singular"):
        wald(np.zeros((9, 2)), np.ones((9, 2, 2)))
    with pytest.raises(InputError, match="not positive"):
        wald(np.zeros((9, 2)), np.broadcast_to(np.eye(2), (9, 2, 2)))


# --- posteriors put together


def test_mixed_posteriors_cover_when_data_sets_are_large() -> None:
    """The mixture has the variance U + 2 / ratio: right for large data sets, and too wide for small ones."""
    rng, noise, reps = np.random.default_rng(2), 1.0, 1500
    for ratio, least, most in (
        (50.0, 0.91, 0.98),
        (1.0, 0.98, 1.0),
    ):  # the latter is 2 Φ(1.96 sqrt(2)) − 1 = 0.994
        held = 0
        for q, v in zip(*normal_mean(rng, reps=reps, m=60, ratio=ratio, noise=noise), strict=True):
            posteriors = q[:, None] + rng.normal(size=(60, 40)) * np.sqrt(v)[:, None]
            ((low, high),) = mix(list(posteriors)).interval(0.95)
            held += low < 0 < high
        assert least < held / reps <= most


def test_what_cannot_be_mixed_is_refused() -> None:
    pooled = mix([np.zeros((5, 2)), np.ones((5, 2))], ["a", "b"])
    assert pooled.draws.shape == (10, 2)
    assert pooled.mean.tolist() == [0.5, 0.5]
    with pytest.raises(InputError, match="one shape"):
        mix([np.zeros(5), np.zeros(6)])
    with pytest.raises(InputError, match="names"):
        mix([np.zeros(5), np.zeros(5)], ["a", "b"])


def test_the_share_of_privacy_stays_within_its_range() -> None:
    for variance in (0.1, 1.0, 100.0):
        share = Estimate("a", 0.0, variance, 9.0, 1.0, 1.0, 10, 10, 1.0).fmi_privacy
        assert share == pytest.approx(min(max(1 - 1 / variance, 0.0), 1.0))
