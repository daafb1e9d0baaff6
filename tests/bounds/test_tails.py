"""How large noise can be: the two facts behind the bounds, by summation, and the bounds themselves, by simulation.

A frequency is compared with its level by the exact binomial law: sound bounds fail that once in a million.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from margrave.bounds import tail_bounds
from tests.support.noise import consistent, discrete, law

MISS = 0.05
SCALES = [0.7, 1.5, 4.0, 37.3]


@pytest.mark.parametrize("scale", [1.5, 4.0, 12.3])
@pytest.mark.parametrize("cells", [1, 30, 10_000])
def test_discrete_noise_and_a_little_more_is_all_but_gaussian(scale: float, cells: int) -> None:
    """The density of X + U against N(0, κ² scale²), summed from the definition."""
    grown = tail_bounds.inflation(scale, cells)
    if grown is None:
        assert scale**2 < 2.5
        return
    added = scale * math.sqrt(grown**2 - 1)
    values, mass = law(scale)
    points = np.linspace(-4 * scale, 4 * scale, 1001)
    density = (mass * stats.norm.pdf(points[:, None] - values, scale=added)).sum(axis=1)
    ratio = density / stats.norm.pdf(points, scale=scale * grown)
    assert cells * np.log(ratio.max()) <= tail_bounds.SLACK
    assert (
        cells * np.log(ratio.max()) > tail_bounds.SLACK / 2
    )  # and no more is added than is needed


def test_inflation_is_small_where_noise_is_large() -> None:
    assert tail_bounds.inflation(20.0, 1000) == pytest.approx(1.0, abs=2e-3)
    assert tail_bounds.inflation(200.0, 10**6) == pytest.approx(1.0, abs=2e-5)
    assert tail_bounds.inflation(0.5, 10) is None


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("cells", [1, 2, 12, 200])
def test_the_l1_norm_stays_below_its_bound(scale: float, cells: int) -> None:
    rng = np.random.default_rng(1)
    norms = np.abs(discrete(rng, scale, (4000, cells))).sum(axis=1)
    bound = tail_bounds.l1_tail(cells, scale, scale, scale, cells, MISS)
    assert consistent(int((norms > bound).sum()), 4000, MISS)
    assert bound <= tail_bounds.paper_l1_tail(cells, scale, MISS)
    if tail_bounds.inflation(scale, cells):
        assert bound < 1.45 * max(np.quantile(norms, 0.95), scale)  # and not far below it
        assert not consistent(int((norms > bound / 2).sum()), 4000, MISS)


@pytest.mark.parametrize("scale", SCALES)
def test_sums_of_noise_of_several_scales_stay_below_too(scale: float) -> None:
    """A linear map of noise of two scales, whose covariance is not a multiple of the identity."""
    rng = np.random.default_rng(2)
    maps = rng.normal(size=(6, 20)), rng.normal(size=(6, 5))
    covariance = scale**2 * maps[0] @ maps[0].T + (2 * scale) ** 2 * maps[1] @ maps[1].T
    spread, widest = (
        math.sqrt(np.diag(covariance).max()),
        math.sqrt(np.linalg.eigvalsh(covariance).max()),
    )
    noise = (
        discrete(rng, scale, (4000, 20)) @ maps[0].T
        + discrete(rng, 2 * scale, (4000, 5)) @ maps[1].T
    )
    bound = tail_bounds.l1_tail(6, spread, widest, scale, 25, MISS)
    assert consistent(int((np.abs(noise).sum(axis=1) > bound).sum()), 4000, MISS)
    single = tail_bounds.cell_tail(spread, scale, 25, MISS)
    largest = int(np.argmax(np.diag(covariance)))
    assert consistent(int((np.abs(noise[:, largest]) > single).sum()), 4000, MISS)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("miss", [0.5, 0.05, 1e-4, 1e-9])
def test_one_cell_by_summation(scale: float, miss: float) -> None:
    values, mass = law(scale)
    bound = tail_bounds.cell_tail(scale, scale, 1, miss)
    assert mass[np.abs(values) > bound].sum() <= miss
    if scale > 30:
        exact = stats.norm.isf(miss / 2) * scale
        assert bound < 1.06 * exact + 1
        assert mass[np.abs(values) > bound / 2].sum() > miss


def beneath_cases() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {
        "nothing": np.zeros(80),
        "everywhere a little": np.full(80, 0.6),
        "in one cell": np.eye(80)[0] * 100,
        "uneven": rng.normal(size=80) * rng.choice([0, 1, 6], size=80),
    }


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("case", beneath_cases())
def test_what_lies_beneath_noise(scale: float, case: str) -> None:
    x = beneath_cases()[case] * scale
    rng = np.random.default_rng(4)
    observed = np.abs(x + discrete(rng, scale, (3000, 80))).sum(axis=1)
    for beneath in (tail_bounds.l1_beneath, tail_bounds.paper_l1_beneath):
        bounds = np.array([beneath(float(o), scale, 80, MISS) for o in observed[:600]])
        assert consistent(int((bounds < np.abs(x).sum()).sum()), 600, MISS)


def test_a_dense_small_error_beneath_noise_is_hardly_overestimated_and_half_the_noise_is_caught() -> (
    None
):
    scale, cells = 50.0, 2000
    x = np.full(cells, 0.8 * scale)
    rng = np.random.default_rng(5)
    observed = np.abs(x + discrete(rng, scale, (200, cells))).sum(axis=1)
    ours = np.array([tail_bounds.l1_beneath(float(o), scale, cells, MISS) for o in observed])
    paper = np.array([tail_bounds.paper_l1_beneath(float(o), scale, cells, MISS) for o in observed])
    assert np.abs(x).sum() < np.median(ours) < 1.3 * np.abs(x).sum()
    assert np.median(ours) < 0.9 * np.median(paper)
    # a tail of half the allowance would miss far more often than it says
    planted = np.array([tail_bounds.l1_beneath(float(o), scale, cells, 0.999) for o in observed])
    assert (planted < np.median(ours)).all()


def test_nothing_at_all_beneath_noise_is_seen_to_be_little() -> None:
    scale, cells = 50.0, 2000
    rng = np.random.default_rng(6)
    observed = float(np.abs(discrete(rng, scale, cells)).sum())
    assert tail_bounds.l1_beneath(
        observed, scale, cells, MISS
    ) < 0.65 * tail_bounds.paper_l1_beneath(observed, scale, cells, MISS)
    assert tail_bounds.l1_beneath(0.0, scale, cells, MISS) == 0.0


def test_the_mean_of_a_folded_normal_and_its_inverse() -> None:
    for u in (0.0, 0.3, 1.0, 4.0):
        values = np.linspace(-12, 12, 400_001)
        mean = float((np.abs(u + values) * stats.norm.pdf(values)).sum() * (values[1] - values[0]))
        assert tail_bounds._folded(u) == pytest.approx(mean, rel=1e-6)
        assert tail_bounds._inverse_folded(mean + 1e-9) == pytest.approx(u, abs=1e-4)


@pytest.mark.parametrize("candidates", [2, 5, 300])
def test_how_far_a_choice_falls_below_the_best_exactly(candidates: int) -> None:
    """The worst case: one candidate is better than all others by just the gap."""
    epsilon, sensitivity = 0.7, 3.0
    gap = tail_bounds.choice_gap(candidates, epsilon, sensitivity, MISS)
    weight = math.exp(-epsilon * gap / (2 * sensitivity)) * (candidates - 1)
    assert weight / (1 + weight) == pytest.approx(MISS)
    assert gap < tail_bounds.paper_choice_gap(candidates, epsilon, sensitivity, MISS)
    half = math.exp(-epsilon * gap / 2 / (2 * sensitivity)) * (candidates - 1)
    assert half / (1 + half) > 0.15  # half the sensitivity would be caught


def test_there_is_no_gap_where_there_is_no_choice() -> None:
    assert tail_bounds.choice_gap(1, 0.5, 1.0, MISS) == 0.0


def test_the_papers_constants() -> None:
    """λ = 1.7, λ1 = 2.7 and λ2 = 3.7 make its 95 %."""
    assert math.sqrt(math.log(1 / MISS)) == pytest.approx(1.7, abs=0.05)
    n, scale = 7, 2.0
    expected = math.sqrt(2 * math.log(2)) * scale * n + math.sqrt(math.log(20)) * scale * math.sqrt(
        2 * n
    )
    assert tail_bounds.paper_l1_tail(n, scale, MISS) == pytest.approx(expected)
    slack = tail_bounds.paper_l1_beneath(0.0, scale, n, MISS / 2)
    assert slack == pytest.approx(2.7 * scale * math.sqrt(n), rel=0.01)
    gap = tail_bounds.paper_choice_gap(10, 2.0, 3.0, MISS / 2)
    assert gap == pytest.approx(3.0 * (math.log(10) + 3.7), rel=0.01)


def test_sign_vectors_by_enumeration() -> None:
    """The first of the two bounds rests on max over signs of z'Σz ≤ cells · widest²."""
    rng = np.random.default_rng(7)
    root = rng.normal(size=(5, 5))
    covariance = root @ root.T
    widest = float(np.linalg.eigvalsh(covariance).max())
    most = max(float(np.array(z) @ covariance @ np.array(z)) for z in product((-1, 1), repeat=5))
    assert most <= 5 * widest + 1e-9
