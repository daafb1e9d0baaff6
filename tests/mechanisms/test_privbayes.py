"""PrivBayes: sensitivities by brute force, theta-usefulness by its formula, and the questions in their order."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest

from margrave.accounting import AddRemoveRow, Budget, ReplaceRow, Unit
from margrave.domain import Domain
from margrave.marginal import TOTAL
from margrave.mechanisms import PrivBayes, privbayes
from margrave.mechanisms.parts.network_families import (
    all_families,
    binary_parents,
    family_cells,
    maximal_families,
    most_parents,
)
from margrave.mechanisms.parts.penalty import expected_noise
from margrave.models import CELLS_PER_MB, NetworkFit, NetworkModel
from margrave.privacy import Dependence, MarginalGap, SeededRandomness
from margrave.privacy.scores import Score
from margrave.release import Release
from margrave.testing.gate import run_on
from margrave.transcript import Answer, Measurement, Selection, Transcript
from margrave.types import Clique
from tests.support.conformance import memory_table
from tests.support.strategies import domain_of

UNITS: list[Unit] = [AddRemoveRow(), ReplaceRow()]
MEASURED = (Fraction(1, 50), Fraction(1, 4), Fraction(2))


def related(sizes: list[int], count: int, seed: int = 0) -> list[tuple[int, ...]]:
    """Rows whose columns each depend on the two before."""
    rng = np.random.default_rng(seed)
    columns: list[np.ndarray] = []
    for size in sizes:
        own = rng.integers(size, size=count)
        before = sum(columns[-2:], np.zeros(count, dtype=np.int64)) % size
        columns.append(np.where(rng.random(count) < 0.7, before, own))
    return list(zip(*(c.tolist() for c in columns), strict=True))


def sizes_of(sizes: list[int]) -> dict[str, int]:
    return {f"c{i}": size for i, size in enumerate(sizes)}


def released(
    mechanism: PrivBayes, sizes: list[int], rho: float, unit: Unit | None = None, count: int = 3000
) -> Release:
    table = memory_table(sizes_of(sizes), related(sizes, count))
    return run_on(mechanism, table, unit or AddRemoveRow(), Budget.zcdp(rho), SeededRandomness(3))


# Sensitivities.

FAMILY: Clique = ("a", "b", "c")


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 2, 2)])
def test_no_row_moves_a_score_of_a_column_with_two_parents_further(
    sizes: tuple[int, ...],
) -> None:
    """On all tables of three rows at most. A grid of 2^-10 rounds each score by a half at most."""
    cells = list(product(*(range(s) for s in sizes)))
    rng = np.random.default_rng(0)
    guess = {FAMILY: rng.random(sizes)}
    gap = MarginalGap(guess, {FAMILY: 1.0}, {FAMILY: 0.0})
    scores: dict[str, tuple[Score, Score]] = {
        "gap": (gap, gap),
        "dependence": (Dependence({FAMILY: ("a",)}), Dependence({FAMILY: ("a",)}, True)),
    }
    most = {"gap": [0.0, 0.0], "dependence": [0.0, 0.0]}
    for name, (score, replaced) in scores.items():
        known: dict[tuple[int, ...], float] = {}
        for n in range(5):
            for rows in combinations_with_replacement(range(len(cells)), n):
                counts = np.zeros(sizes, dtype=np.int64)
                for row in rows:
                    counts[cells[row]] += 1
                found = score([FAMILY], {FAMILY: counts})
                known[rows] = found.values[0] * float(found.grid)
        for rows, value in known.items():
            if len(rows) == 4:
                continue
            added = [known[tuple(sorted((*rows, row)))] for row in range(len(cells))]
            most[name][0] = max(most[name][0], *(abs(x - value) for x in added))
            most[name][1] = max(most[name][1], max(added) - min(added))
        for moved, l1, of_unit in zip(most[name], (1, 2), (score, replaced), strict=True):
            assert moved <= of_unit.lipschitz * l1 + 2**-10
            assert moved > 0.4 * of_unit.lipschitz * l1


# theta-usefulness.


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("rho", MEASURED)
def test_the_number_of_parents_of_nltcs_is_that_of_the_formula(rho: Fraction, unit: Unit) -> None:
    """16 binary columns and 21,574 rows: n / 2^(k + 1) ≥ theta · sigma · sqrt(2 / pi), for d − k marginals."""
    n, d, theta = 21_574, 16, 4.0
    l2_squared = 1 if unit == AddRemoveRow() else 2

    def useful(k: int) -> bool:
        sigma = math.sqrt((d - k) * l2_squared / (2 * float(rho)))
        return n / 2 ** (k + 1) >= theta * sigma * math.sqrt(2 / math.pi)

    expected = max((k for k in range(1, d) if useful(k)), default=0)
    assert binary_parents(d, theta, rho, n, unit) == expected


def test_some_numbers_of_parents_of_nltcs() -> None:
    """At rho = 1/50, 9 marginals of 2^8 cells have sigma 15: their mean count of 84 is above 4 · 12."""
    assert [binary_parents(16, 4.0, rho, 21_574, AddRemoveRow()) for rho in MEASURED] == [7, 9, 11]
    assert binary_parents(16, 4.0, Fraction(1, 10**7), 21_574, AddRemoveRow()) == 0
    assert binary_parents(16, 4.0, Fraction(1), -3.0, AddRemoveRow()) == 0


# Families.


def test_families_are_those_of_brute_force() -> None:
    domain = Domain.of({"a": 2, "b": 3, "c": 4, "d": 5, "e": 2})
    for placed in (["a"], ["c", "a"], ["b", "d", "e"], ["a", "b", "c", "d"]):
        for k, cells in product((1, 2, 3), (1, 6, 12, 24, 24.5, 60, 1000)):
            expected = {}
            for column in set(domain) - set(placed):
                sets = [
                    set(s)
                    for r in range(k + 1)
                    for s in combinations(placed, r)
                    if domain.cells((column, *s)) <= cells
                ]
                for parents in sets:
                    if parents and not any(parents < other for other in sets):
                        expected[domain.clique((column, *parents))] = (column,)
            assert maximal_families(domain, placed, k, cells) == expected
            assert set(expected) <= set(all_families(domain, k, 1000))


def test_the_number_of_families_is_bounded_by_public_numbers() -> None:
    most = {d: most_parents(domain_of([2] * d), 4) for d in (1, 2, 3, 23, 24, 33, 34, 66, 67, 300)}
    assert most == {1: 0, 2: 1, 3: 2, 23: 4, 24: 3, 33: 3, 34: 2, 66: 2, 67: 1, 300: 1}
    assert len(all_families(domain_of([2] * 23), 4, 100)) <= 50_000
    wide = domain_of([2, 40, 41, 300, 300])
    assert ("c3", "c4") not in all_families(wide, 4, 80_000)
    assert max(map(wide.cells, PrivBayes().reads(wide))) <= PrivBayes.max_cells < 80_000


# The run.


def test_each_column_is_selected_with_parents_in_the_network_and_measured_at_once() -> None:
    sizes = [2, 3, 2, 4, 2]
    mechanism = PrivBayes()
    release = released(mechanism, sizes, 0.5)
    domain, entries = release.schema.domain, list(release.transcript)
    assert [e.clique for e in entries[:5] if isinstance(e, Measurement)] == [(a,) for a in domain]
    pairs = list(zip(entries[5::2], entries[6::2], strict=True))
    assert len(pairs) == 4
    placed: set[str] = set()
    for selection, measurement in pairs:
        assert isinstance(selection, Selection)
        assert isinstance(measurement, Measurement)
        assert measurement.clique == selection.chosen
        new = [set(c) - placed for c in selection.candidates]
        if placed:
            assert all(len(columns) == 1 for columns in new)
        else:
            (root,) = set.intersection(*new)
            placed.add(root)
        placed |= set(selection.chosen)
        assert selection.rho == Fraction(1, 10) * Fraction(4, 5) * Fraction(1, 2) / 4
        mean_count = 3000 / domain.cells(measurement.clique)
        assert mean_count >= mechanism.theta * expected_noise(measurement.scale, 1)
        assert selection.sensitivity == 1.0


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_the_paper_measures_the_last_families_of_binary_columns(unit: Unit) -> None:
    """With k parents, d − k marginals of k + 1 columns, with equal noise; the network before all of them."""
    d, rho = 8, 0.02
    mechanism = PrivBayes.as_published(fit=NetworkFit())
    release = released(mechanism, [2] * d, rho, unit)
    entries, public = list(release.transcript), unit == ReplaceRow()
    assert public or entries[0].query == TOTAL
    after = Fraction(rho) * (1 if public else Fraction(49, 50))
    rows = float(release.transcript.total())
    k = binary_parents(d, 4.0, after * Fraction(7, 10), rows, unit)
    assert 1 < k < d - 2
    selections = entries[1:d]
    assert all(isinstance(e, Selection) for e in selections)
    assert {e.rho for e in selections} == {after * Fraction(3, 10) / (d - 1)}
    assert {e.sensitivity for e in selections} == {6.0 if public else 4.0}
    measured = entries[d:]
    assert [len(e.clique) for e in measured] == [k + 1] * (d - k)
    assert len({e.scale for e in measured}) == 1
    found = release.model
    assert isinstance(found, NetworkModel)
    assert sorted(len(c.parents) for c in found.conditionals) == sorted(min(i, k) for i in range(d))


def test_columns_that_can_have_no_parents_are_measured_alone() -> None:
    """Where noise hides every pair, no selection is paid, and the columns share the rest."""
    release = released(PrivBayes(), [9, 9, 9], 1e-4)
    assert not release.transcript.selections
    measured = [m.clique for m in release.transcript.measurements]
    assert measured == [("c0",), ("c1",), ("c2",)] * 2


def test_parents_follow_from_the_noisy_row_count(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spy(
        domain: Domain, theta: float, rho: Fraction, records: float, *how: Unit, **more: bool
    ) -> float:
        seen.append(records)
        return family_cells(domain, theta, rho, records, *how, **more)

    monkeypatch.setattr(privbayes, "family_cells", spy)
    for mechanism in (PrivBayes(), PrivBayes.as_published()):
        release = released(mechanism, [2, 3, 2], 1e-3)
        # the total after the first measurements, before the families
        first = [e for e in release.transcript if isinstance(e, Answer)] or list(
            release.transcript
        )[:3]
        assert seen[-1] == Transcript(tuple(first)).total()
        assert seen[-1] != 3000


@pytest.mark.parametrize("one_way_share", [Fraction(0), Fraction(1, 5)])
@pytest.mark.parametrize("score", ["gap", "dependence"])
@pytest.mark.parametrize("seed", range(3))
def test_wide_columns_are_no_parents_and_keep_no_others_apart(
    seed: int, score: str, one_way_share: Fraction
) -> None:
    """Whichever column is the first: the narrow ones have families, and the wide ones are measured alone."""
    mechanism = PrivBayes(score=score, one_way_share=one_way_share)
    table = memory_table(sizes_of([2, 90, 2, 90]), related([2, 90, 2, 90], 3000))
    budget = Budget.zcdp(0.01)
    release = run_on(mechanism, table, ReplaceRow(), budget, SeededRandomness(1), seed=seed)
    measured = [m.clique for m in release.transcript.measurements]
    if one_way_share:
        assert measured[:4] == [("c0",), ("c1",), ("c2",), ("c3",)]
        measured = measured[4:]
    assert sorted(measured) == [("c0", "c2"), ("c1",), ("c3",)]
    assert release.account.rho_spent == release.account.rho_budget


def test_a_budget_without_a_use_measures_families_again() -> None:
    """The model has no room for a pair of a wide and a narrow column: two pairs, and a column without parents."""
    rng = np.random.default_rng(0)
    wide, narrow = rng.integers(10, size=3000), rng.integers(2, size=(3000, 2))
    rows = [(w, w, *n) for w, n in zip(wide.tolist(), narrow.tolist(), strict=True)]
    table = memory_table(sizes_of([10, 10, 2, 2]), rows)
    mechanism, found = PrivBayes(max_model_mb=110 / CELLS_PER_MB), 0
    for seed in range(6):
        budget, source = Budget.zcdp(1), SeededRandomness(1)
        release = run_on(mechanism, table, ReplaceRow(), budget, source, seed=seed)
        assert release.account.rho_spent == release.account.rho_budget
        selections = release.transcript.selections
        measured = [m.clique for m in release.transcript.measurements][4:]
        if measured[0] == ("c0", "c1"):
            found += 1
            assert measured == [("c0", "c1"), ("c2", "c3"), ("c0", "c1")]
            assert [s.chosen for s in selections] == measured[:2]
    assert found


@pytest.mark.parametrize("score", ["gap", "dependence"])
def test_families_beyond_the_public_limits_are_no_candidates(score: str) -> None:
    """With a budget for which every marginal is useful."""
    sizes = [150, 150, 2, 3]
    mechanism = PrivBayes(score=score, max_parents=2)
    release = released(mechanism, sizes, 1e9)
    asked = {c for s in release.transcript.selections for c in s.candidates}
    assert asked < set(mechanism.reads(release.schema.domain))
    assert max(map(len, asked)) == 3


def test_a_small_model_has_fewer_parents() -> None:
    sizes = [4] * 5
    below_a_triple = 63 / CELLS_PER_MB
    small = released(PrivBayes(max_model_mb=below_a_triple), sizes, 5.0)
    assert {len(c) for c in small.transcript.cliques} == {1, 2}
    assert len(small.transcript.selections) >= 2
    large = released(PrivBayes(), sizes, 5.0)
    assert max(len(c) for c in large.transcript.cliques) > 2


def test_the_first_column_is_drawn_at_random() -> None:
    table = memory_table(sizes_of([2] * 4), related([2] * 4, 200))
    roots = set()
    for seed in range(12):
        budget = Budget.zcdp(1)
        release = run_on(
            PrivBayes(max_parents=1), table, ReplaceRow(), budget, SeededRandomness(0), seed=seed
        )
        (root,) = set.intersection(*map(set, release.transcript.selections[0].candidates))
        roots.add(root)
    assert len(roots) == 4
