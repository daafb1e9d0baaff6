"""Audits at mu = 2: the library is attacked, and learns to tell no more than was promised; planted faults are caught.

False-alarm rate: one in a million for each bound. The long versions, with 5,000 runs a world, are in
tests/support/trust.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from margrave.accounting import Budget
from margrave.mechanisms import MECHANISMS, GaussianMechanism
from margrave.privacy import SeededRandomness, protect
from margrave.testing.replay import Chosen, Recorder, ReplayRandomness
from margrave.types import IntArray
from tests.support.audit import (
    BUDGET,
    MU,
    ROWS,
    Bound,
    Weighing,
    audit_loss,
    audit_noise,
    epsilon_bound,
    largest_share,
    mu_bound,
    quick,
)


class Scaled:
    """Noise of another scale than was asked for, from a seed."""

    def __init__(self, factor: float) -> None:
        self.source, self.factor = SeededRandomness(5), factor

    def describe(self) -> str:
        return "NOT PRIVATE: a planted fault"

    def gaussian(self, counts: IntArray, scale: float) -> IntArray:
        return self.source.gaussian(counts, scale * self.factor)

    def choose(self, scores: Sequence[int], temperature: Fraction) -> int:
        return self.source.choose(scores, temperature)


def test_the_promise_holds_on_transcripts() -> None:
    """And the bound comes near it: it would see a scale a seventh too small."""
    bound = audit_noise(GaussianMechanism, 4000)
    assert bound.promised == MU
    assert 0.85 * MU < bound.learnt <= MU


#: Mechanisms whose audit takes seconds.
QUICK = ("aim", "mst", "independent", "private-gsd")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in QUICK)) for n in MECHANISMS]
)
def test_every_mechanism_can_be_audited(name: str) -> None:
    make = partial(quick, name)
    assert audit_noise(make, 40).kept
    assert all(bound.kept for bound in audit_loss(make, 40))


@pytest.mark.slow
def test_a_noise_too_small_by_1_14_is_caught() -> None:
    assert not audit_noise(GaussianMechanism, 3000, Scaled(1 / 1.14)).kept


def test_lost_noise_is_caught_by_transcript_and_output() -> None:
    budget = Budget.zcdp(Fraction(1, 8), 0.01)
    assert not any(
        bound.kept for bound in audit_loss(MECHANISMS["independent"], 300, Scaled(1 / 16), budget)
    )
    assert all(
        bound.kept for bound in audit_loss(MECHANISMS["independent"], 150, Scaled(1), budget)
    )


@pytest.mark.parametrize("name", ["aim", "jam-pgm", "dual-query"])
def test_choices_weigh_what_a_replay_in_the_other_world_says(name: str) -> None:
    recorder = Recorder(SeededRandomness(4))
    with protect(
        ROWS.with_it, unit=ROWS.unit, budget=BUDGET, randomness=recorder, allow_large_delta=True
    ) as private:
        gate: Any = Weighing(private, recorder, ROWS)
        quick(name).run(gate, rng=np.random.default_rng(0))
    replay = Recorder(ReplayRandomness(recorder.steps))
    with protect(
        ROWS.without, unit=ROWS.unit, budget=BUDGET, randomness=replay, allow_large_delta=True
    ) as private:
        quick(name).run(private, rng=np.random.default_rng(0))
    pairs = [
        (a, b) for a, b in zip(recorder.steps, replay.steps, strict=True) if isinstance(a, Chosen)
    ]
    with_it, without = (
        sum(_log_chance(step) for step in steps) for steps in zip(*pairs, strict=True)
    )
    assert abs(gate.ratio) > 1e-3
    assert gate.ratio == pytest.approx(with_it - without, rel=1e-9)


def _log_chance(step: Any) -> float:
    best = max(step.scores)
    weights = [math.exp(step.temperature * (s - best)) for s in step.scores]
    return math.log(weights[step.answer] / sum(weights))


# The arithmetic of the bounds.


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (3, 10), (9, 10), (127, 1000)])
def test_the_largest_share_is_that_of_the_binomial(hits: int, trials: int) -> None:
    share = largest_share(hits, trials, 1e-3)
    assert stats.binom.cdf(hits, trials, share) == pytest.approx(1e-3, rel=1e-6)
    assert largest_share(trials, trials, 1e-3) == 1


def test_mu_is_found_where_it_is_known() -> None:
    rng = np.random.default_rng(1)
    for mu in (0.5, 2.0, 3.0):
        one, other = (rng.normal(sign * mu**2 / 2, mu, 40_000) for sign in (-1, 1))
        assert 0.9 * mu < mu_bound(one, other) < mu
    assert mu_bound(np.zeros(100), np.zeros(100)) == 0  # guessing


def test_epsilon_is_found_where_it_is_known() -> None:
    """Randomized response: the truth with odds of exp(epsilon)."""
    rng = np.random.default_rng(2)
    for epsilon in (0.5, 1.0, 3.0):
        truth = 1 / (1 + np.exp(-epsilon))
        one, other = (rng.random(40_000) < share for share in (1 - truth, truth))
        found = epsilon_bound(one.astype(float), other.astype(float), delta=1e-9)
        assert 0.8 * epsilon < found < epsilon
        assert epsilon_bound(-one.astype(float), -other.astype(float), delta=1e-9) > 0.8 * epsilon


def test_no_bound_means_no_fault() -> None:
    assert Bound(0.0, 2.0).kept
    assert not Bound(2.1, 2.0).kept
