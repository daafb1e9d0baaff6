"""PrivSyn: its noise against simulation, its selection against brute force, and how it spends."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

import margrave
from margrave.accounting import AddRemoveRow, Budget, ReplaceRow
from margrave.domain import Domain
from margrave.mechanisms import PrivSyn
from margrave.mechanisms.common import two_way
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.dense_pairs import (
    allocation,
    dense_pairs,
    join_pairs,
    total_noise,
)
from margrave.models import GraphicalFit, GUMFit
from margrave.privacy import Gaussian, SeededRandomness
from margrave.release import Release
from margrave.schema import Schema
from margrave.transcript import Measurement, PublicTotal, ScoreMeasurement
from margrave.types import Clique
from tests.support.conformance import memory_table, run_on

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4, "d": 6})
PAIRS = two_way(DOMAIN)
ROOM = Capacity(GUMFit(records=100), DOMAIN, 100.0)
FAST = GUMFit(passes=5)


def made(
    mechanism: PrivSyn, unit: AddRemoveRow | ReplaceRow, rho: float = 4.0, rows: int = 800
) -> Release:
    """Release a table in which a, b and c depend on each other, and d on nothing."""
    rng = np.random.default_rng(0)
    level = rng.random(rows)
    columns = [
        np.minimum(k - 1, k * (level + 0.2 * rng.random(rows))).astype(int) for k in (2, 3, 4)
    ]
    records = [
        *zip(*(c.tolist() for c in columns), rng.integers(6, size=rows).tolist(), strict=True)
    ]
    sizes = dict(zip(DOMAIN.attributes, DOMAIN.sizes, strict=True))
    return run_on(
        mechanism, memory_table(sizes, records), unit, Budget.zcdp(rho), SeededRandomness(1)
    )


def test_the_noise_of_a_selection_by_simulation() -> None:
    rng = np.random.default_rng(0)
    weights = allocation(DOMAIN, PAIRS)
    scale, runs = 3.0, 4000
    shares = np.array([*weights.values()]) / sum(weights.values())
    drawn = [
        np.abs(rng.normal(0.0, scale / np.sqrt(s), (runs, DOMAIN.cells(r)))).sum()
        for r, s in zip(PAIRS, shares, strict=True)
    ]
    assert sum(drawn) / runs == pytest.approx(total_noise(scale, weights.values()), rel=0.01)


def test_no_other_shares_have_less_noise() -> None:
    """psi_r = cells_r · sqrt(1 / (pi rho_r)) under adding or removing a row, as in the paper."""
    rho, cells = Fraction(1, 3), np.array([DOMAIN.cells(r) for r in PAIRS])

    def noise(shares: np.ndarray) -> float:
        return float((cells / np.sqrt(np.pi * float(rho) * shares)).sum())

    weights = np.array([*allocation(DOMAIN, PAIRS).values()])
    best = noise(weights / weights.sum())
    scale = Gaussian.scale_for(rho, AddRemoveRow())
    assert total_noise(scale, weights) == pytest.approx(best)
    rng = np.random.default_rng(0)
    assert all(noise(rng.dirichlet(20 * weights / weights.max())) >= best for _ in range(300))


def objective(dependence: dict[Clique, float], scale: float, chosen: Sequence[Clique]) -> float:
    noise = total_noise(scale, allocation(DOMAIN, chosen).values()) if chosen else 0.0
    return noise + sum(value for r, value in dependence.items() if r not in chosen)


@pytest.mark.parametrize("seed", range(6))
def test_no_single_pair_improves_a_selection(seed: int) -> None:
    """And with four columns the greedy search is within a quarter of the best selection."""
    rng = np.random.default_rng(seed)
    dependence = dict(zip(PAIRS, (100 * rng.exponential(size=len(PAIRS))).tolist(), strict=True))
    scale = float(rng.uniform(0.2, 6.0))
    chosen = dense_pairs(DOMAIN, dependence, scale, ROOM)
    assert {a for r in chosen for a in r} == set(DOMAIN)
    found = objective(dependence, scale, chosen)
    others = [r for r in PAIRS if r not in chosen]
    assert all(objective(dependence, scale, [*chosen, r]) >= found for r in others)
    covering = [
        s
        for k in range(1, len(PAIRS) + 1)
        for s in combinations(PAIRS, k)
        if {a for r in s for a in r} == set(DOMAIN)
    ]
    assert found <= 1.25 * min(objective(dependence, scale, s) for s in covering)


def test_without_signal_every_column_still_has_a_pair() -> None:
    dependence = dict.fromkeys(PAIRS, 0.0) | {("a", "d"): 2.0, ("b", "d"): 1.0, ("c", "d"): 3.0}
    assert dense_pairs(DOMAIN, dependence, 100.0, ROOM) == [("a", "d"), ("b", "d"), ("c", "d")]
    assert dense_pairs(DOMAIN, dependence, 100.0, Capacity(GraphicalFit(), DOMAIN, 1e-6)) == []


def test_pairs_join_into_cliques() -> None:
    pairs = [r for r in two_way(Domain.of(dict.fromkeys("abcdef", 2))) if "f" not in r or "e" in r]
    joined = join_pairs(pairs, list(combinations("abcdef", 3)))
    assert joined == [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "e"), ("c", "d"), ("c", "e"),
                      ("d", "e"), ("e", "f")]  # fmt: skip


@pytest.mark.parametrize("unit", [AddRemoveRow(), ReplaceRow()], ids=str)
def test_a_tenth_a_tenth_and_the_rest(unit: AddRemoveRow | ReplaceRow) -> None:
    release = made(PrivSyn(fit=FAST), unit)
    known = [e for e in release.transcript if not isinstance(e, PublicTotal)]
    scores, *measured = known
    assert isinstance(scores, ScoreMeasurement)
    assert scores.rho == Fraction(4, 10)
    assert scores.candidates == tuple(PAIRS)
    assert scores.sensitivity == (6 if isinstance(unit, ReplaceRow) else 4)
    marginals = [m for m in measured if isinstance(m, Measurement)]
    assert [m.clique for m in marginals[:4]] == [(a,) for a in DOMAIN]
    assert sum(m.rho for m in marginals[:4]) == Fraction(4, 10)
    pairs = marginals[4:]
    assert sum(m.rho for m in pairs) == Fraction(32, 10)
    assert {("a", "b"), ("a", "c"), ("b", "c")} <= {m.clique for m in pairs}
    first = pairs[0]
    for m in pairs:
        ratio = (m.values.size / first.values.size) ** (2 / 3)
        assert float(m.rho / first.rho) == pytest.approx(ratio)
    public = isinstance(unit, ReplaceRow)
    assert (release.model.total == 800) is public
    assert release.model.total == pytest.approx(release.transcript.total())


def test_a_cycle_becomes_a_clique() -> None:
    release = made(PrivSyn(clique_columns=3, fit=FAST), AddRemoveRow())
    assert ("a", "b", "c") in release.transcript.cliques
    few = made(PrivSyn(clique_columns=3, clique_cells=24, fit=FAST), AddRemoveRow())
    assert ("a", "b", "c") not in few.transcript.cliques


def test_the_release_is_near_the_table_and_fits_anew() -> None:
    release = made(PrivSyn(), AddRemoveRow(), rho=100.0)
    noisy = {m.clique: m.values for m in release.transcript.measurements}
    for other in (release, release.refit("gum", seed=1), release.refit("graphical", seed=1)):
        assert all(np.abs(other.marginal(c).values - noisy[c]).sum() < 0.08 * 800 for c in noisy)


def test_selection_by_noisy_scores_is_noted() -> None:
    schema = Schema.coded({"a": 2, "b": 2, "c": 2})
    rows = pa.table({n: [0, 1, 1, 0] * 50 for n in ("a", "b", "c")})
    release = margrave.synthesize(
        rows, schema, epsilon=2.0, delta=1e-6, mechanism="privsyn", seed=1
    )
    assert len(release.transcript.scores) == 1
    notes = release.draws(2, rows=10, seed=1, method="bootstrap").notes
    assert any("by noisy answers about the same records" in n for n in notes)
