"""The oracle against brute force: the best record, bounds that hold, and records that are possible."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import LinearQuery
from margrave.models.best_response import BestResponse, Objective, blocks, milp, search
from margrave.models.best_response.blocks import Blocks
from margrave.models.best_response.coordinate_ascent import CoordinateAscent
from margrave.models.best_response.milp import solve
from margrave.structural_zeros import StructuralZeros


def every_row(domain: Domain) -> Any:
    """All possible records, in the plainest way."""
    rows = np.array(list(product(*(range(s) for s in domain.sizes))))
    for zeros in domain.zeros:
        rows = rows[zeros.possible[tuple(rows[:, domain.index(a)] for a in zeros.clique)]]
    return rows


def worth(
    domain: Domain,
    weighted: list[tuple[LinearQuery, float]],
    bonus: dict[str, Any],
    row: Any,
    i: int,
) -> float:
    """A record's value, query by query."""
    value = sum(b[i][row[domain.index(a)]] for a, b in bonus.items())
    for query, weight in weighted:
        pairs = zip(query.clique, query.codes, strict=True)
        value += weight * all(row[domain.index(a)] in codes for a, codes in pairs)
    return float(value)


def drawn_problem(seed: int) -> tuple[Domain, list[tuple[LinearQuery, float]], dict[str, Any]]:
    """A small domain, with structural zeros every second time; queries of both signs; a bonus every third time."""
    rng = np.random.default_rng(seed)
    many = int(rng.integers(2, 6))
    plain = Domain.of({f"c{i}": int(rng.integers(1, 5)) for i in range(many)})

    def some() -> tuple[str, ...]:
        k = int(rng.integers(1, min(3, many) + 1))
        return plain.clique(rng.choice(list(plain), k, replace=False).tolist())

    zeros = []
    for clique in [some() for _ in range(2)] if seed % 2 else []:
        possible = rng.random(plain.shape(clique)) < 0.7
        possible[(0,) * len(clique)] = True
        zeros.append(StructuralZeros(clique, possible))
    weighted = []
    for clique in [some() for _ in range(int(rng.integers(1, 12)))]:
        widths = [
            int(rng.integers(1, plain.size(a) + 1)) if rng.random() < 0.4 else 1 for a in clique
        ]
        codes = (
            sorted(rng.choice(plain.size(a), w, replace=False).tolist())
            for a, w in zip(clique, widths)
        )
        weighted.append((LinearQuery(clique, tuple(map(tuple, codes))), float(rng.integers(-3, 4))))
    bonus = {a: -rng.exponential(1, (3, plain.size(a))) for a in plain} if seed % 3 == 0 else {}
    return Domain.of(dict(zip(plain, plain.sizes)), zeros), weighted, bonus


@pytest.mark.parametrize("seed", range(30))
def test_the_best_record_is_that_of_brute_force(seed: int) -> None:
    domain, weighted, bonus = drawn_problem(seed)
    objective, rows = Objective.of(domain, weighted, bonus), every_row(domain)
    best = [
        max(worth(domain, weighted, bonus, r, i) for r in rows) for i in range(objective.problems)
    ]
    shift = sum(
        w for q, w in weighted if all(len(c) == domain.size(a) for a, c in zip(q.clique, q.codes))
    )
    found = BestResponse(domain, starts=1, nodes=1000, gap=0.0).best(
        objective, rng=np.random.default_rng(seed)
    )
    assert found.values + shift == pytest.approx(best, abs=1e-6)
    assert (found.gaps < 1e-6).all()
    assert [
        worth(domain, weighted, bonus, r, i) for i, r in enumerate(found.rows)
    ] == pytest.approx(best, abs=1e-6)
    assert all(r.tolist() in rows.tolist() for r in found.rows)
    quick = BestResponse(domain, starts=4).best(objective, rng=np.random.default_rng(seed))
    assert all(r.tolist() in rows.tolist() for r in quick.rows)
    assert (quick.bounds + shift >= np.array(best) - 1e-9).all()
    assert quick.values == pytest.approx(objective.values(quick.rows))


def test_the_gap_is_told_where_the_search_is_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds hold whether or not the record is the best: here the search finds nothing and proves little."""
    domain = Domain.of({"a": 3, "b": 3})
    cells = [
        (LinearQuery(("a", "b"), ((i,), (j,))), float(i + j)) for i in range(3) for j in range(3)
    ]
    monkeypatch.setattr(search, "solve", lambda *_, **__: (None, 4.5))
    monkeypatch.setattr(CoordinateAscent, "climb", lambda self, rows, rng: np.zeros_like(rows))
    monkeypatch.setattr(Objective, "bound", property(lambda self: np.array([9.0])))
    found = BestResponse(domain, starts=1, nodes=1).best(
        Objective.of(domain, cells), rng=np.random.default_rng(0)
    )
    assert (found.values[0], found.bounds[0], found.gaps[0]) == (0.0, 4.5, 4.5)


def test_programming_finds_what_ascent_from_nowhere_misses() -> None:
    """One cell of eight columns is worth 3, and each of its codes alone costs 1: no single step leads there."""
    domain = Domain.of(dict.fromkeys("abcdefgh", 3))
    cell = LinearQuery(tuple("abcdefgh"), ((2,),) * 8)
    single = [(LinearQuery((a,), ((2,),)), -0.25) for a in "abcdefgh"]
    objective = Objective.of(domain, [(cell, 3.0), *single])
    row, bound = solve(objective, nodes=1000)
    assert row is not None
    assert row.tolist() == [2] * 8
    assert bound == pytest.approx(1.0)
    planted = BestResponse(domain, starts=2).best(objective, rng=np.random.default_rng(0))
    assert planted.values[0] == pytest.approx(1.0), (
        "every second start lies in a query that is wanted"
    )


@pytest.mark.parametrize("above", [0.5, 1.5])
def test_only_what_is_better_is_asked_for(above: float) -> None:
    domain = Domain.of({"a": 2, "b": 2})
    objective = Objective.of(domain, [(LinearQuery(("a", "b"), ((1,), (1,))), 1.0)])
    row, bound = solve(objective, nodes=100, above=above)
    if above < 1:
        assert row is not None
        assert row.tolist() == [1, 1]
        assert bound == pytest.approx(1.0)
    else:
        assert row is None
        assert bound == above


def test_what_makes_no_difference_is_uniform() -> None:
    """The codes of a column that nothing names, and those that a query does not tell apart: a chi-square each."""
    domain = Domain.of({"a": 4, "b": 3})
    objective = Objective.of(domain, [(LinearQuery(("a",), ((1, 2, 3),)), 2.0)])
    for nodes in (0, 10):
        oracle, rng = BestResponse(domain, starts=1, nodes=nodes), np.random.default_rng(1)
        rows = np.array([oracle.best(objective, rng=rng).rows[0] for _ in range(1200)])
        counts = np.zeros((4, 3))
        np.add.at(counts, (rows[:, 0], rows[:, 1]), 1)
        assert counts[0].sum() == 0
        assert stats.chisquare(counts[1:].ravel()).pvalue > 1e-6


def test_a_seed_gives_the_same_records() -> None:
    domain, weighted, bonus = drawn_problem(3)
    objective = Objective.of(domain, weighted, bonus)
    one, two = (
        BestResponse(domain, nodes=50).best(objective, rng=np.random.default_rng(5))
        for _ in range(2)
    )
    assert one.rows.tolist() == two.rows.tolist()


# Structural zeros.


def chained() -> Domain:
    """Three columns in a chain of functional dependencies, and one that is free."""
    city = np.zeros((6, 3), dtype=bool)
    city[np.arange(6), np.arange(6) // 2] = True
    state = np.zeros((3, 2), dtype=bool)
    state[np.arange(3), np.arange(3) % 2] = True
    zeros = [StructuralZeros(("city", "state"), city), StructuralZeros(("state", "land"), state)]
    return Domain.of({"city": 6, "state": 3, "land": 2, "free": 2}, zeros)


def test_columns_held_together_change_together() -> None:
    domain = chained()
    found = Blocks.of(domain)
    assert found.free
    assert [s.clique for s in found.sites] == [("city", "state", "land"), ("free",)]
    drawn = found.uniform(6000, np.random.default_rng(0))
    possible = every_row(domain).tolist()
    counts = np.array([(drawn == row).all(axis=1).sum() for row in possible])
    assert counts.sum() == 6000
    assert (np.abs(counts - 6000 / len(possible)) < 6 * math.sqrt(6000 / len(possible))).all()


@pytest.mark.parametrize("nodes", [0, 100])
def test_where_they_are_too_many_no_record_is_impossible_either(
    nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each column and each declaration is a site then; a start comes from programming."""
    monkeypatch.setattr(blocks, "MAX_JOINED", 20)
    domain = chained()
    assert not Blocks.of(domain).free
    objective = Objective.of(
        domain, [(LinearQuery(("city",), ((5,),)), 1.0), (LinearQuery(("free",), ((1,),)), 1.0)]
    )
    oracle = BestResponse(domain, starts=3, nodes=nodes)
    oracle.ready()
    found = oracle.best(objective, rng=np.random.default_rng(2))
    assert found.rows[0].tolist() in every_row(domain).tolist()
    assert not nodes or found.values[0] == 2.0
    drawn = oracle.random(20, np.random.default_rng(3))
    assert all(row in every_row(domain).tolist() for row in drawn.tolist())


# Refused before anything is asked.


def test_a_missing_solver_is_told_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milp, "find_spec", lambda name: None)
    domain = Domain.of({"a": 2})
    with pytest.raises(InputError, match="scipy"):
        BestResponse(domain, nodes=1).ready()
    BestResponse(domain, nodes=0).ready()


@pytest.mark.parametrize("listed", [1, 100])
def test_constraints_that_nothing_satisfies_are_told_beforehand(
    listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the combinations are few enough to be listed, or programming has to find out."""
    monkeypatch.setattr(blocks, "MAX_JOINED", listed)
    same, other = np.eye(2, dtype=bool), ~np.eye(2, dtype=bool)
    domain = Domain.of(
        {"a": 2, "b": 2, "c": 2},
        [
            StructuralZeros(("a", "b"), same),
            StructuralZeros(("b", "c"), same),
            StructuralZeros(("a", "c"), other),
        ],
    )
    with pytest.raises(InputError, match="satisfies all constraints"):
        BestResponse(domain).ready()


def test_equal_queries_are_one() -> None:
    domain = Domain.of({"a": 3, "b": 2})
    cell, all_of_b = LinearQuery(("a",), ((1,),)), LinearQuery(("a", "b"), ((1,), (0, 1)))
    objective = Objective.of(
        domain, [(cell, 1.0), (all_of_b, 2.0), (LinearQuery(("b",), ((0, 1),)), 5.0)]
    )
    assert objective.queries == (cell,)
    assert objective.weights.tolist() == [3.0]
    assert Objective.of(domain, [(cell, 1.0), (cell, -1.0)]).queries == ()
