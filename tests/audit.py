"""Audits: attack the library on two neighbouring tables many times, and compare what was learnt with the promise.

The attacker knows both tables and sees all that is published. From how often guesses are right, with confidence
intervals, follow lower bounds on the true privacy loss. A bound above the promise is proof of a fault (but for a false
alarm, one time in a million).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from conformance import memory_table, remembering
from margrave.data import MemoryTable
from margrave.mechanisms import Mechanism
from margrave.privacy import (
    AddRemovePerson,
    AddRemoveRow,
    Budget,
    Randomness,
    SeededRandomness,
    SystemRandomness,
    Unit,
    protect,
)
from margrave.release import Release
from margrave.schema import Domain
from margrave.transcript import Transcript
from margrave.typing import Clique, FloatArray, IntArray
from replay import Chosen, Recorder, ReplayRandomness, Step

ALARM = 1e-6
"""How often a bound may be wrong."""

MU = 2.0
BUDGET = Budget.zcdp(Fraction(2), 0.01)  # rho = mu² / 2
SIZES = {"a": 2, "b": 2, "c": 2}
TOY = Domain.of(SIZES)
MANY = 64
Make = Callable[[], Mechanism]


@dataclass(frozen=True, eq=False)
class Worlds:
    """A table of three persons, all alike in all columns, and its neighbour with a fourth, different in all of them."""

    unit: Unit
    without: MemoryTable
    with_it: MemoryTable

    @functools.cache  # noqa: B019 - there are two worlds, and they last
    def counts(self, clique: Clique) -> tuple[IntArray, IntArray]:
        """The true marginals of both."""
        return self.without.count([clique])[clique], self.with_it.count([clique])[clique]


def _worlds(unit: Unit, rows: int) -> Worlds:
    alike, other = [(0, 0, 0)] * 3, [(1, 1, 1)] * rows
    persons = [0, 1, 2] if isinstance(unit, AddRemovePerson) else []
    more = [*persons, *[3] * rows] if persons else []
    return Worlds(unit, memory_table(SIZES, alike, persons), memory_table(SIZES, alike + other, more))


ROWS = _worlds(AddRemoveRow(), 1)
"""Three rows, and four. At mu = 2 the noise is about one: its law is far from continuous."""

PERSONS = _worlds(AddRemovePerson(MANY), MANY)
"""The fourth person has 64 rows, so the noise is 64 times as large, and as good as continuous."""


# What the attacker computes. Large values speak for the table with the fourth person.


def measured(transcript: Transcript, worlds: Worlds) -> float:
    """The log-likelihood ratio of the noisy marginals, exactly: the normalising constants of the two are the same."""
    ratio = 0.0
    for m in transcript.measurements:
        one, other = (m.query.apply(m.clique, counts) for counts in worlds.counts(m.clique))
        ratio += float(((other - one) * (2 * m.values - one - other)).sum()) / (2 * m.scale**2)
    for a in transcript.answers:
        one, other = (a.query.count(counts) for counts in worlds.counts(a.query.counted_in(TOY)))
        ratio += (other - one) * (2 * a.value - one - other) / (2 * a.scale**2)
    return ratio


def chosen(with_it: list[Step], without: list[Step]) -> float:
    """The log-likelihood ratio of the choices, given the scores on the two tables."""
    ratio = 0.0
    for one, other in zip(with_it, without, strict=True):
        if isinstance(one, Chosen) and isinstance(other, Chosen):
            ratio += _log_chance(one) - _log_chance(other)
    return ratio


def _log_chance(step: Chosen) -> float:
    assert step.scores is not None
    assert step.temperature is not None
    best = max(step.scores)
    exponents = np.array([float(step.temperature * (s - best)) for s in step.scores])
    return float(exponents[step.answer] - np.log(np.exp(exponents).sum()))


def printed(release: Release) -> float:
    """A black box: how many records of the release have the fourth person's codes, added up over columns."""
    return float(sum(release.marginal((a,)).values[1] for a in SIZES))


# Runs.


def _release(
    mechanism: Mechanism, worlds: Worlds, table: MemoryTable, source: Randomness, seed: int, budget: Budget = BUDGET
) -> Release:
    with protect(table, unit=worlds.unit, budget=budget, randomness=source) as private:
        return mechanism.run(private, rng=np.random.default_rng(seed))


def _noise(make: Make, table: MemoryTable, runs: int, source: Randomness) -> FloatArray:
    """The attacker's view of the noisy marginals alone, in many runs."""
    releases = (_release(make(), PERSONS, table, source, i) for i in range(runs))
    return np.array([measured(r.transcript, PERSONS) for r in releases])


def _everything(make: Make, table: MemoryTable, runs: int, source: Randomness, budget: Budget) -> FloatArray:
    """Two views a run: of the transcript, its choices weighed by a replay in the other world; and of the output."""
    return np.array([_both_views(remembering(make()), table, source, i, budget) for i in range(runs)]).T


def _both_views(
    mechanism: Any, table: MemoryTable, source: Randomness, seed: int, budget: Budget
) -> tuple[float, float]:
    recorder = Recorder(source)
    release = _release(mechanism, ROWS, table, recorder, seed, budget)
    replay = Recorder(ReplayRandomness(recorder.steps))
    other = ROWS.without if table is ROWS.with_it else ROWS.with_it
    _release(mechanism, ROWS, other, replay, seed, budget)
    steps = (recorder.steps, replay.steps) if table is ROWS.with_it else (replay.steps, recorder.steps)
    return measured(release.transcript, ROWS) + chosen(*steps), printed(release)


# What follows from them.


def largest_share(hits: float, trials: int, alarm: float) -> float:
    """The upper end of Clopper and Pearson's interval: below the true share with a chance of ``alarm`` at most."""
    return 1.0 if hits >= trials else float(stats.beta.ppf(1 - alarm, hits + 1, trials - hits))


def mu_bound(without: FloatArray, with_it: FloatArray, alarm: float = ALARM) -> float:
    """A lower bound on mu: no test of N(0, 1) against N(mu, 1) has errors that sum to less than 2 Phi(−mu / 2).

    The guess is the sign of the statistic; where it says nothing, half of an error counts. Errors of both worlds are
    pooled: their number has thinner tails than a binomial of the mean share (Hoeffding 1956).
    """
    wrong = (without > 0).sum() + (with_it < 0).sum() + ((without == 0).sum() + (with_it == 0).sum()) / 2
    share = largest_share(float(wrong), without.size + with_it.size, alarm)
    return max(0.0, -2 * float(stats.norm.ppf(share)))


def epsilon_bound(without: FloatArray, with_it: FloatArray, delta: float, alarm: float = ALARM) -> float:
    """A lower bound on epsilon at this delta: ``P[S] ≤ exp(epsilon) Q[S] + delta`` for every event S.

    S is "the statistic is above t", or below; which, and t, is settled on the first fifth of the runs and judged on
    the others.
    """
    cut = without.size // 5
    _, threshold, sign, swapped = max(_events(without[:cut], with_it[:cut], delta))
    rest = (without[cut:], with_it[cut:]) if swapped else (with_it[cut:], without[cut:])
    hits, misses = (int((sign * x > threshold).sum()) for x in rest)
    surely = 1 - largest_share(rest[0].size - hits, rest[0].size, alarm / 2)
    at_most = largest_share(misses, rest[1].size, alarm / 2)
    return max(0.0, math.log((surely - delta) / at_most)) if surely > delta else 0.0


def _events(
    without: FloatArray, with_it: FloatArray, delta: float
) -> Iterator[tuple[float, float, float, bool]]:
    """How well each event does, roughly (a little is added to small shares), its threshold, sign and likelier world."""
    for swapped, (p, q) in ((False, (with_it, without)), (True, (without, with_it))):
        for sign in (1.0, -1.0):
            for t in np.unique(np.quantile(sign * np.concatenate([p, q]), np.linspace(0.02, 0.98, 49))):
                true, false = (float((sign * x > t).mean()) for x in (p, q))
                yield math.log(max(true - delta, 1e-9) / (false + 4 / p.size)), float(t), sign, swapped


# Audits.


@dataclass(frozen=True)
class Bound:
    """What was learnt, at least, and what was promised, at most."""

    learnt: float
    promised: float

    @property
    def kept(self) -> bool:
        """The promise, as far as this can tell."""
        return self.learnt <= self.promised


def audit_noise(make: Make, runs: int, source: Randomness | None = None) -> Bound:
    """mu, from the noisy marginals of so many runs in each of the worlds of persons.

    Every marginal moves by 64 in one cell, whichever are chosen, so the log-likelihood ratio is a sum of Gaussians
    whose variance in all is 2 · (the rho that was measured with): a test of N(0, 1) against N(mu, 1), mu² = 2 rho.
    """
    source = SystemRandomness() if source is None else source
    transcript = _release(make(), PERSONS, PERSONS.with_it, SeededRandomness(0), 0).transcript
    rho = float(sum(m.rho for m in transcript.measurements))  # the same in every run
    one, other = (_noise(make, table, runs, source) for table in (PERSONS.without, PERSONS.with_it))
    return Bound(mu_bound(one, other), math.sqrt(2 * rho))


def audit_loss(
    make: Make, runs: int, source: Randomness | None = None, budget: Budget = BUDGET
) -> tuple[Bound, Bound]:
    """epsilon at the budget's delta, from so many runs in each of the worlds of rows: by transcript, and by output."""
    source = SystemRandomness() if source is None else source
    views = [_everything(make, table, runs, source, budget) for table in (ROWS.without, ROWS.with_it)]
    found = [epsilon_bound(one, other, budget.delta) for one, other in zip(*views, strict=True)]
    return Bound(found[0], budget.epsilon), Bound(found[1], budget.epsilon)
