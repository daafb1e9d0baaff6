"""Audits: attack the library on two neighboring tables many times, and compare what was learnt with the promise.

The attacker knows both tables and sees all that is published. From how often guesses are right, with confidence
intervals, follow lower bounds on the true privacy loss. A bound above the promise is proof of a fault (but for a false
alarm, one time in a million).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from margrave.accounting import AddRemovePerson, AddRemoveRow, Budget, Unit
from margrave.data import MemoryTable
from margrave.domain import Domain
from margrave.marginal import QueryFamily
from margrave.mechanisms import Independent, Mechanism
from margrave.privacy import Private, Randomness, SeededRandomness, SystemRandomness, protect
from margrave.release import Release
from margrave.testing.replay import Chosen, Recorder
from margrave.transcript import QuerySelection, Transcript
from margrave.types import Clique, FloatArray, IntArray
from tests.support.conformance import (
    QUICK_RECORDS,
    Remembered,
    hurried,
    memory_table,
    plain,
    remembering,
)

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
    """A table of three persons, all alike in all columns, and its neighbor with a fourth, different in all of them."""

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
    return Worlds(
        unit, memory_table(SIZES, alike, persons), memory_table(SIZES, alike + other, more)
    )


ROWS = _worlds(AddRemoveRow(), 1)
"""Three rows, and four. At mu = 2 the noise is about one: its law is far from continuous."""

PERSONS = _worlds(AddRemovePerson(MANY), MANY)
"""The fourth person has 64 rows, so the noise is 64 times as large, and as good as continuous."""


# What the attacker computes. Large values speak for the table with the fourth person.


def measured(transcript: Transcript, worlds: Worlds) -> float:
    """The log-likelihood ratio of the noisy marginals, exactly: the normalizing constants of the two are the same."""
    ratio = 0.0
    for m in transcript.measurements:
        one, other = (m.query.apply(m.clique, counts) for counts in worlds.counts(m.clique))
        ratio += float(((other - one) * (2 * m.values - one - other)).sum()) / (2 * m.scale**2)
    for a in transcript.answers:
        one, other = (
            a.query.count(counts) for counts in worlds.counts(a.query.counting_clique(TOY))
        )
        ratio += (other - one) * (2 * a.value - one - other) / (2 * a.scale**2)
    return ratio


class Weighing:
    """Stands before a gate, and weighs every choice: ``ratio`` is the log-likelihood ratio of what was chosen.

    A score is public but for the counts that it is given, so whoever knows both tables works it out on both.
    """

    def __init__(self, private: Private, source: Recorder, worlds: Worlds) -> None:
        self.private, self.steps, self.worlds = private, source.steps, worlds
        self.ratio = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.private, name)

    def select(self, candidates: Iterable[Clique], score: Any, *, rho: Fraction) -> Clique:
        asked, before = list(candidates), len(self.steps)
        found = self.private.select(asked, score, rho=rho)
        self._weigh(before, [score(asked, counts).values for counts in self._counts(asked)])
        return found

    def select_query(
        self, queries: QueryFamily, score: Any, *, rho: Fraction, times: int = 1
    ) -> tuple[QuerySelection, ...]:
        before = len(self.steps)
        found = self.private.select_query(queries, score, rho=rho, times=times)
        self._weigh(
            before, [score(queries, counts)[0].tolist() for counts in self._counts(queries.cliques)]
        )
        return found

    def _counts(self, cliques: Iterable[Clique]) -> list[dict[Clique, IntArray]]:
        """The true marginals of both tables."""
        both = {c: self.worlds.counts(c) for c in cliques}
        return [{c: counts[i] for c, counts in both.items()} for i in range(2)]

    def _weigh(self, before: int, scores: list[Sequence[int]]) -> None:
        for step in self.steps[before:]:
            assert isinstance(step, Chosen)
            assert step.scores in [
                tuple(s) for s in scores
            ]  # one of the two is the table behind the gate
            self.ratio += _log_chance(step, scores[1]) - _log_chance(step, scores[0])


def _log_chance(step: Chosen, scores: Sequence[int]) -> float:
    """Of what was chosen, had these been the scores."""
    assert step.temperature is not None
    best = max(scores)
    exponents = float(step.temperature) * np.array([float(s - best) for s in scores])
    return float(exponents[step.answer] - np.log(np.exp(exponents).sum()))


def printed(release: Release) -> float:
    """A black box: how many records of the release have the fourth person's codes, added up over columns."""
    return float(sum(release.marginal((a,)).values[1] for a in SIZES))


# Runs.


FEW: dict[str, dict[str, Any]] = {
    "aim-pub": {"rounds": 2},
    "jam-pgm": {"rounds": 2},
    "gem": {"rounds": 2},
    "gem-pub": {"rounds": 2},
    "rap-plus": {"epochs": 1, "candidates": 8},
    "privsyn": {"fit": QUICK_RECORDS},
    "repeated": {"mechanism": Independent()},
}
"""Fewer rounds and smaller parts, of mechanisms with many."""


def quick(name: str) -> Mechanism:
    """A mechanism as it is run on the smallest tables, thousands of times: with its defaults, but a fit that takes
    long is hurried, and many rounds are few."""
    mechanism: Mechanism = replace(hurried(plain(name, TOY)), **FEW.get(name, {}))
    return mechanism


class Shared(Remembered):
    """A fit that is asked once for each set of marginals, whatever the answers: between runs that differ in noise.

    Models then follow from the noise of an earlier run, and so do the choices. What noise tells does not depend on
    them: each marginal is as far apart in the two worlds as any other.
    """

    def key(self, transcript: Transcript, state: Any) -> tuple[object, ...]:
        return (frozenset(e.clique for e in transcript.evidence),)


def _release(
    mechanism: Mechanism, worlds: Worlds, table: MemoryTable, source: Randomness, seed: int
) -> Release:
    with protect(
        table, unit=worlds.unit, budget=BUDGET, randomness=source, allow_large_delta=True
    ) as private:
        return mechanism.run(private, rng=np.random.default_rng(seed))


def _noise(mechanism: Mechanism, table: MemoryTable, runs: int, source: Randomness) -> FloatArray:
    """The attacker's view of the noisy marginals alone, in many runs."""
    releases = (_release(mechanism, PERSONS, table, source, i) for i in range(runs))
    return np.array([measured(r.transcript, PERSONS) for r in releases])


def _everything(
    make: Make, table: MemoryTable, runs: int, source: Randomness, budget: Budget
) -> FloatArray:
    """Two views a run: of the transcript, its choices weighed by their scores in both worlds; and of the output."""
    return np.array([_both_views(make(), table, source, i, budget) for i in range(runs)]).T


def _both_views(
    mechanism: Mechanism, table: MemoryTable, source: Randomness, seed: int, budget: Budget
) -> tuple[float, float]:
    recorder = Recorder(source)
    with protect(
        table, unit=ROWS.unit, budget=budget, randomness=recorder, allow_large_delta=True
    ) as private:
        gate: Any = Weighing(private, recorder, ROWS)
        release = mechanism.run(gate, rng=np.random.default_rng(seed))
    return measured(release.transcript, ROWS) + gate.ratio, printed(release)


# What follows from them.


def largest_share(hits: float, trials: int, alarm: float) -> float:
    """The upper end of Clopper and Pearson's interval: below the true share with a chance of ``alarm`` at most."""
    return 1.0 if hits >= trials else float(stats.beta.ppf(1 - alarm, hits + 1, trials - hits))


def mu_bound(without: FloatArray, with_it: FloatArray, alarm: float = ALARM) -> float:
    """A lower bound on mu: no test of N(0, 1) against N(mu, 1) has errors that sum to less than 2 Phi(−mu / 2).

    The guess is the sign of the statistic; where it says nothing, half of an error counts. Errors of both worlds are
    pooled: their number has thinner tails than a binomial of the mean share (Hoeffding 1956).
    """
    wrong = (
        (without > 0).sum()
        + (with_it < 0).sum()
        + ((without == 0).sum() + (with_it == 0).sum()) / 2
    )
    share = largest_share(float(wrong), without.size + with_it.size, alarm)
    return max(0.0, -2 * float(stats.norm.ppf(share)))


def epsilon_bound(
    without: FloatArray, with_it: FloatArray, delta: float, alarm: float = ALARM
) -> float:
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
            for t in np.unique(
                np.quantile(sign * np.concatenate([p, q]), np.linspace(0.02, 0.98, 49))
            ):
                true, false = (float((sign * x > t).mean()) for x in (p, q))
                yield (
                    math.log(max(true - delta, 1e-9) / (false + 4 / p.size)),
                    float(t),
                    sign,
                    swapped,
                )


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
    mechanism = remembering(make(), Shared)
    transcript = _release(mechanism, PERSONS, PERSONS.with_it, SeededRandomness(0), 0).transcript
    rho = float(
        sum(e.rho for e in (*transcript.measurements, *transcript.answers))
    )  # the same in every run
    one, other = (
        _noise(mechanism, table, runs, source) for table in (PERSONS.without, PERSONS.with_it)
    )
    return Bound(mu_bound(one, other), math.sqrt(2 * rho))


def audit_loss(
    make: Make, runs: int, source: Randomness | None = None, budget: Budget = BUDGET
) -> tuple[Bound, Bound]:
    """epsilon at the budget's delta, from so many runs in each of the worlds of rows: by transcript, and by output."""
    source = SystemRandomness() if source is None else source
    views = [
        _everything(make, table, runs, source, budget) for table in (ROWS.without, ROWS.with_it)
    ]
    found = [epsilon_bound(one, other, budget.delta) for one, other in zip(*views, strict=True)]
    return Bound(found[0], budget.epsilon), Bound(found[1], budget.epsilon)
