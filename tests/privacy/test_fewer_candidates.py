"""Selections by a score that was used before, among fewer candidates: as if all were computed anew."""

from __future__ import annotations

import gc
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from margrave.accounting import AddRemoveRow, Budget, ReplaceRow
from margrave.errors import BudgetError, InputError
from margrave.mechanisms.common import one_way, two_way
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.tree import connected_parts, joinable, spanning_tree
from margrave.models import GraphicalFit
from margrave.privacy import MarginalGap, Private, SeededRandomness, protect
from margrave.testing.replay import Chosen, Recorder
from margrave.testing.tables import memory_table, some_rows
from margrave.types import Clique

SIZES = {"a": 2, "b": 3, "c": 4, "d": 2, "e": 3}
PAIRS = list(combinations(SIZES, 2))


def opened(source: Any, unit: Any = None) -> Private:
    table = memory_table(SIZES, some_rows(SIZES, 60, seed=2))
    budget = Budget.zcdp(Fraction(5))
    return protect(table, unit=unit or AddRemoveRow(), budget=budget, randomness=source)


def gap(candidates: list[Clique], weights: list[float]) -> MarginalGap:
    """Return a score of its own penalties."""
    return MarginalGap(
        {(a, b): np.full((SIZES[a], SIZES[b]), 2.5) for a, b in candidates},
        dict(zip(candidates, weights, strict=True)),
        {r: len(r[0]) + i / 4 for i, r in enumerate(candidates)},
    )


@pytest.mark.parametrize("weights", [[1.0] * 10, [0.1 * k + 0.3 for k in range(10)], [1e-300] * 10])
def test_scores_price_and_entry_are_those_of_a_new_score(weights: list[float]) -> None:
    fewer = [PAIRS[7], PAIRS[2], PAIRS[5]]
    again, anew = Recorder(SeededRandomness(3)), Recorder(SeededRandomness(3))
    score = gap(PAIRS, weights)
    own = {r: (score.estimates[r], score.weights[r], score.penalties[r]) for r in fewer}
    narrow = MarginalGap(*({r: own[r][i] for r in fewer} for i in range(3)))
    entries = []
    for source, second in ((again, score), (anew, narrow)):
        private = opened(source, ReplaceRow())
        private.select(PAIRS, score, rho=Fraction(1))
        private.select(fewer, second, rho=Fraction(1, 3))
        entries.append(private.transcript.selections[1])
    first, other = again.steps[1], anew.steps[1]
    assert isinstance(first, Chosen)
    assert isinstance(other, Chosen)
    assert first.scores is not None
    assert other.scores is not None
    scales = [Fraction(s.temperature or 0) for s in (first, other)]
    moved = [[(q - s[0]) * t for q in s] for s, t in zip((first.scores, other.scores), scales)]
    grids = {a / b for a, b in zip(moved[0], moved[1], strict=True) if b}
    assert len(grids) <= 1  # the same scores on another grid
    assert first.answer == other.answer
    for name in ("candidates", "chosen", "epsilon", "sensitivity", "rho", "readable", "vouched"):
        assert getattr(entries[0], name) == getattr(entries[1], name)
    for name, values in entries[1].terms.items():
        assert np.array_equal(entries[0].terms[name], values)


def test_a_score_that_changed_counts_as_it_was() -> None:
    source = Recorder(SeededRandomness(3))
    private, score = opened(source), gap(PAIRS, [1.0] * 10)
    private.select(PAIRS, score, rho=Fraction(1))
    score.weights[PAIRS[0]] = 1e9  # type: ignore[index]
    score.estimates[PAIRS[0]][:] = 0.0
    private.select(PAIRS[:3], score, rho=Fraction(1))
    first, second = source.steps
    assert isinstance(first, Chosen)
    assert isinstance(second, Chosen)
    assert first.scores is not None
    assert second.scores == first.scores[:3]
    assert private.transcript.selections[1].sensitivity == 1.0


@pytest.mark.parametrize("wrong", [[], [PAIRS[0], PAIRS[0]], [("a", "nope")]])
def test_wrong_candidates_are_refused_as_before(wrong: list[Clique]) -> None:
    private, score = opened(SeededRandomness(3)), gap(PAIRS, [1.0] * 10)
    private.select(PAIRS, score, rho=Fraction(1))
    with pytest.raises(InputError):
        private.select(wrong, score, rho=Fraction(1))
    with pytest.raises(BudgetError):
        private.select(PAIRS[:2], score, rho=Fraction(9))
    assert private.remaining == 4


def test_more_candidates_than_before_are_scored_anew() -> None:
    source, score = Recorder(SeededRandomness(3)), gap(PAIRS, [1.0] * 10)
    private = opened(source)
    for candidates in (PAIRS[:4], PAIRS, PAIRS[3:5]):
        private.select(candidates, score, rho=Fraction(1))
    assert [len(s.scores or ()) for s in source.steps if isinstance(s, Chosen)] == [4, 10, 2]
    every, fewer = (s.scores for s in source.steps[1:] if isinstance(s, Chosen))
    assert every is not None
    assert fewer == every[3:5]


def test_no_score_is_left_after_closing() -> None:
    private = opened(SeededRandomness(3))
    private.select(PAIRS, gap(PAIRS, [1.0] * 10), rho=Fraction(1))
    counts = private._counts
    assert len(counts.scores[0]) == 10
    private.close()
    assert len(counts.scores[0]) == 0
    assert counts.scored is None
    assert not any(isinstance(x, np.ndarray) for x in gc.get_referents(counts))


@pytest.mark.parametrize("limit_mb", [1.0, 8 * 30 / 2**20])
def test_a_tree_is_that_of_a_new_score_for_every_edge(limit_mb: float) -> None:
    """The rule written out: the second limit has no room for some pairs."""
    domain = opened(SeededRandomness(0)).domain
    estimates = {(a, b): np.full((SIZES[a], SIZES[b]), 3.0) for a, b in PAIRS}
    capacity = Capacity(GraphicalFit(), domain, limit_mb)
    assert capacity.holds_any_forest() == (limit_mb == 1.0)
    for seed in range(5):
        private = opened(SeededRandomness(seed))
        found = spanning_tree(private, estimates, Fraction(1, 10), capacity=capacity)
        plain, tree = opened(SeededRandomness(seed)), list[Clique]()
        edges = joinable(domain, [], estimates)
        for _ in range(edges):
            part = connected_parts(domain, tree)
            joining = [r for r in PAIRS if part[r[0]] != part[r[1]]]
            joining = capacity.up_to(capacity.cells(), joining, [*one_way(domain), *tree])
            if not joining:
                break
            ones, none = dict.fromkeys(joining, 1.0), dict.fromkeys(joining, 0.0)
            score = MarginalGap({r: estimates[r] for r in joining}, ones, none)
            tree.append(plain.select(joining, score, rho=Fraction(1, 10) / edges))
        assert found == tree
        assert [s.candidates for s in private.transcript.selections] == [
            s.candidates for s in plain.transcript.selections
        ]


@pytest.mark.parametrize("seed", range(3))
def test_no_forest_is_larger_than_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    fit = GraphicalFit()
    for _ in range(20):
        sizes = {f"c{i}": int(rng.integers(2, 9)) for i in range(int(rng.integers(1, 9)))}
        domain = memory_table(sizes, []).schema.domain
        pairs, forest = two_way(domain), list[Clique]()
        for i in rng.permutation(len(pairs)):
            part = connected_parts(domain, forest)
            if part[pairs[i][0]] != part[pairs[i][1]] and rng.random() < 0.9:
                forest.append(pairs[i])
        assert fit.cells(domain, [*one_way(domain), *forest]) <= fit.max_forest_cells(domain)
    narrow = replace(domain, sizes=(1, *domain.sizes[1:]))
    assert fit.max_forest_cells(narrow) == np.inf
