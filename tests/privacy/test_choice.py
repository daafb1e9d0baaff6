"""Private choice: the exact distribution, the price, and OpenDP's own mechanism of the same law beside it."""

from __future__ import annotations

import os
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

from margrave.privacy.exponential import choose, epsilon_of

CASES = {
    "spread": ([0, 3, 5, 9, 10], Fraction(1, 3)),
    "ties": ([4, 4, 4], Fraction(5)),
    "negative": ([-100, -101, -99], Fraction(7, 10)),
    "far below": ([0, -(10**30), -1], Fraction(1)),
    "cold": ([10**6, 10**6 - 1, 10**6 - 3], Fraction(1, 1000)),
    "a fine grid": ([10**40, 10**40 - 10**39], Fraction(1, 10**39)),
    "one": ([5], Fraction(1)),
}


def law(scores: list[int], temperature: Fraction) -> np.ndarray:
    weights = np.array(
        [np.exp(-min(float(temperature * (max(scores) - s)), 700.0)) for s in scores]
    )
    return weights / weights.sum()


def p_value(drawn: list[int], expected: np.ndarray) -> float:
    kept = expected > 1e-12
    observed = np.bincount(drawn, minlength=expected.size)
    assert not observed[~kept].any()
    if kept.sum() == 1:
        return 1.0
    return float(
        stats.chisquare(observed[kept], expected[kept] / expected[kept].sum() * len(drawn)).pvalue
    )


@pytest.mark.parametrize("case", CASES)
def test_the_law_of_the_choice(case: str) -> None:
    scores, temperature = CASES[case]
    bits = np.random.default_rng(2).bytes
    drawn = [choose(scores, temperature, bits) for _ in range(4000)]
    assert p_value(drawn, law(scores, temperature)) > 1e-6


def test_a_temperature_off_by_a_quarter_would_be_seen() -> None:
    scores, temperature = CASES["spread"]
    bits = np.random.default_rng(2).bytes
    for factor in (Fraction(4, 5), Fraction(5, 4)):
        drawn = [choose(scores, temperature * factor, bits) for _ in range(4000)]
        assert p_value(drawn, law(scores, temperature)) < 1e-6


def test_many_candidates_of_which_few_are_good() -> None:
    scores = [0] * 20_000
    scores[777] = scores[12_345] = 10**6
    drawn = {choose(scores, Fraction(1), os.urandom) for _ in range(12)}
    assert drawn <= {777, 12_345}


def test_another_sampler_of_the_same_law() -> None:
    """OpenDP's noisy maximum with Gumbel noise is the exponential mechanism, by code that shares nothing with ours."""
    scores, temperature = CASES["spread"]
    dp.enable_features("contrib")
    theirs = dp.m.make_noisy_max(
        dp.vector_domain(dp.atom_domain(T="i64")),
        dp.linf_distance(T="i64"),
        dp.zero_concentrated_divergence(),
        scale=float(1 / temperature),
    )
    ours = np.bincount([choose(scores, temperature, os.urandom) for _ in range(3000)], minlength=5)
    other = np.bincount([theirs(scores) for _ in range(3000)], minlength=5)
    assert stats.chi2_contingency([ours, other]).pvalue > 1e-6
    assert p_value(np.repeat(np.arange(5), other).tolist(), law(scores, temperature)) > 1e-6


def test_and_of_the_same_price() -> None:
    epsilon = epsilon_of(Fraction(1, 50))
    theirs = dp.m.make_noisy_max(
        dp.vector_domain(dp.atom_domain(T="i64")),
        dp.linf_distance(T="i64"),
        dp.zero_concentrated_divergence(),
        scale=2 / float(epsilon),  # scores of sensitivity 1
    )
    assert theirs.map(1) == pytest.approx(1 / 50, rel=1e-9)


@pytest.mark.parametrize(
    "rho",
    [Fraction(1, 8), Fraction(1, 3), Fraction(1, 10**30), Fraction(10**12), Fraction(7, 1000)],
)
def test_epsilon_is_bought_in_full_and_no_more(rho: Fraction) -> None:
    epsilon = epsilon_of(rho)
    assert epsilon**2 <= 8 * rho < (epsilon * (1 + Fraction(1, 2**51))) ** 2
