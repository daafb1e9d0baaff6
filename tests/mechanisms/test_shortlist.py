"""The shortlist of AIM: its price, its ranks, its room, and what a run counts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from margrave.accounting import AddRemoveRow, Budget
from margrave.domain import Domain
from margrave.mechanisms import AIM, AIMMixture
from margrave.mechanisms.parts.candidates import Scoring
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.shortlist import Shortlist
from margrave.models import GraphicalFit
from margrave.privacy import SeededRandomness, protect
from margrave.release import Release
from margrave.testing.gate import SpyTable, WatchedGate
from margrave.transcript import ScoreMeasurement
from margrave.types import Clique, FloatArray
from margrave.workload import Workload
from tests.support.conformance import memory_table, run_on

NAMES = ("a", "b", "c", "d", "e", "f")
SIZES = dict.fromkeys(NAMES, 3)
DOMAIN = Domain.of(SIZES)
UNIFORM = {(a,): np.full(3, 300.0) for a in NAMES}


def rows(count: int = 900) -> list[tuple[int, ...]]:
    """Pairs a b, c d and e f of columns that nearly agree."""
    rng = np.random.default_rng(3)
    codes = rng.integers(3, size=(count, 6))
    for i in (1, 3, 5):
        same = rng.random(count) < 0.9
        codes[same, i] = codes[same, i - 1]
    return [tuple(row) for row in codes.tolist()]


TABLE = memory_table(SIZES, rows())


def made(mechanism: AIM, rho: float = 1.0) -> Release:
    return run_on(mechanism, TABLE, AddRemoveRow(), Budget.zcdp(rho), SeededRandomness(1))


def of_errors(errors: dict[Clique, float], size: int = 8) -> Shortlist:
    """A shortlist with these errors of pairs, as if they had been measured."""
    workload = Workload.all_kway(DOMAIN, 3)
    weights = {r: workload.relevance(r) for r in workload.closure()}
    shortlist = Shortlist(DOMAIN, weights, UNIFORM, dict.fromkeys(UNIFORM, 0.0), size)
    for pair, error in errors.items():
        shortlist._left[shortlist._index(pair)] = error
    return shortlist


def picked(shortlist: Shortlist, max_model_mb: float = 1.0) -> list[Clique]:
    capacity = Capacity(GraphicalFit(), DOMAIN, max_model_mb)
    return shortlist.pick(capacity, list(UNIFORM), 1.0, 1.0, np.random.default_rng(0))


def test_scores_of_pairs_cost_a_fiftieth_after_the_columns() -> None:
    release = made(AIM(shortlist=5, rounds=60, column_error=None))
    scores = [e for e in release.transcript if isinstance(e, ScoreMeasurement)]
    assert [len(e.candidates) for e in scores] == [15]
    debits = [debit.rho for debit in release.account.debits]
    columns = Fraction(9, 10) * 6 / 60
    assert debits[0] == columns
    assert debits[1] == (1 - columns) / 50
    assert sum(debits) == 1
    assert {len(s.candidates) for s in release.transcript.selections} == {5}


def test_few_candidates_are_all_scored_as_in_the_paper() -> None:
    of_15, of_16, of_27 = (Domain.of({f"c{i}": 2 for i in range(p)}) for p in (15, 16, 27))
    assert AIM().scoring(of_15).per_round == AIM().scoring(of_16).per_round == 0
    assert AIM().scoring(of_27).per_round == 64
    assert AIM.as_published().scoring(of_27).per_round == 0
    assert AIM(shortlist=0).scoring(of_27).per_round == 0
    assert AIMMixture().scoring(of_27).per_round == 0
    assert not any(isinstance(e, ScoreMeasurement) for e in made(AIM()).transcript)


@pytest.mark.parametrize(("columns", "codes", "scored"), [(12, 17, 0), (13, 14, 0), (13, 16, 64)])
def test_a_few_hundred_candidates_have_a_shortlist_if_they_are_large(
    columns: int, codes: int, scored: int
) -> None:
    domain = Domain.of({f"c{i}": codes for i in range(columns)})
    assert AIM().scoring(domain).per_round == scored
    assert (
        AIMMixture().scoring(domain).per_round == AIM.as_published().scoring(domain).per_round == 0
    )


def test_candidates_of_dependent_pairs_come_first() -> None:
    found = picked(of_errors({("a", "b"): 500.0, ("c", "d"): 300.0}))
    first = [r for r in found if {"a", "b"} <= set(r)]
    assert len(found) == 8
    assert len(first) >= 4  # the pair, and with each other column
    assert ("a", "b", "c") in found


def test_what_the_model_explains_or_a_selection_bounds_comes_later() -> None:
    def after(estimates: dict[Clique, FloatArray], selected: Clique) -> list[Clique]:
        shortlist = of_errors({("a", "b"): 500.0, ("c", "d"): 300.0}, size=4)
        known = picked(shortlist)
        independent = {r: np.full((3,) * len(r), 900.0 / 3 ** len(r)) for r in known}
        noise = dict.fromkeys(known, 1.0)
        shortlist.note(independent | estimates, noise, 1.0, selected, 0.0)
        return picked(shortlist)[:3]

    agreeing = np.zeros((3, 3))
    np.fill_diagonal(agreeing, 300.0)
    explained = {r: np.multiply.outer(agreeing, np.full(3, 1 / 3)) for r in [("a", "b", "c")]}
    before = picked(of_errors({("a", "b"): 500.0, ("c", "d"): 300.0}, size=4))
    assert any({"a", "b"} <= set(r) for r in before)
    assert all({"c", "d"} & set(r) for r in after(explained, before[0]) if r in before)


def test_a_shortlist_has_room_in_the_model() -> None:
    columns = 6 * 3
    tight = 8 * (columns + 9) / 2**20  # a pair more than the columns
    found = picked(of_errors({("a", "b"): 500.0}), tight)
    assert found
    assert max(map(len, found)) <= 2
    assert picked(of_errors({}), 8 * 1 / 2**20)  # columns, if there is room for nothing


def test_candidates_beyond_the_cells_are_left_out_by_rank() -> None:
    shortlist = of_errors({("a", "b"): 500.0})
    kept = shortlist.limit(6 * 3 + 15 * 9 + 4 * 27, 1.0)
    assert [len(r) for r in kept].count(1) == 6
    assert [len(r) for r in kept].count(2) == 15
    assert {r for r in kept if len(r) == 3} == {("a", "b", x) for x in "cdef"}
    assert set(picked(shortlist)) <= set(kept)


def test_wide_marginals_are_counted_in_a_second_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = 6 * 3 + 15 * 9 + 4 * 27
    monkeypatch.setattr(Scoring, "max_counted_cells", cells)
    spy = SpyTable(TABLE)
    randomness = SeededRandomness(1)
    with protect(
        spy, unit=AddRemoveRow(), budget=Budget.zcdp(1.0), randomness=randomness
    ) as private:
        gate: Any = WatchedGate(private)
        spy.gate = gate
        AIM(shortlist=5, column_error=None).run(gate, rng=np.random.default_rng(0))
    assert spy.scans == 2
    assert sum(map(DOMAIN.cells, spy.counted)) <= cells
