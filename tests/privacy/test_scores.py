"""Scores: exact, indifferent to order, and never more sensitive than they say."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margrave.accounting import AddRemoveRow, Budget, ReplaceRow, Unit, sensitivity
from margrave.errors import InputError
from margrave.marginal import IDENTITY, LinearMap, closure
from margrave.privacy import Improvement, MarginalGap, RelativeGap, SeededRandomness, protect
from margrave.privacy.scores import MAX_EXACT_TOTAL, grid_gaps
from margrave.types import FloatArray, IntArray
from tests.support.tiny_table import UNITS, TinyTable, neighbors, tiny_domain

DOMAIN = tiny_domain()
CANDIDATES = closure([DOMAIN.attributes])


MERGED = LinearMap({"b": np.array([1, 0, 1]), "c": np.array([0, 1, 1, 1])})


def random_gap(rng: np.random.Generator) -> MarginalGap:
    """Random parts, and half of the time a query that merges codes."""
    query = MERGED if rng.integers(2) else IDENTITY
    return MarginalGap(
        query=query,
        estimates={c: rng.uniform(-1, 4, query.domain(DOMAIN).shape(c)) for c in CANDIDATES},
        weights={c: float(rng.uniform(0.1, 3)) for c in CANDIDATES},
        penalties={c: float(rng.uniform(-5, 5)) for c in CANDIDATES},
    )


def by_hand(score: MarginalGap, table: TinyTable) -> list[Fraction]:
    counts = table.count(CANDIDATES)
    found = []
    for c in CANDIDATES:
        rounded = [
            Fraction(round(Fraction(float(m)) * 1024), 1024) for m in score.estimates[c].ravel()
        ]
        answer = score.query.apply(c, counts[c])
        gap = sum(abs(int(x) - m) for x, m in zip(answer.ravel(), rounded, strict=True))
        found.append(Fraction(score.weights[c]) * (gap - Fraction(score.penalties[c])))
    return found


@given(seed=st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_the_formula_in_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    score, (table, _) = random_gap(rng), neighbors(UNITS[0], rng)
    values, grid = score(CANDIDATES, table.count(CANDIDATES))
    assert [v * grid for v in values] == by_hand(score, table)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@given(seed=st.integers(0, 2**32), worst=st.booleans())
@settings(max_examples=100, deadline=None)
def test_no_score_moves_further_than_it_says(unit: object, seed: int, worst: bool) -> None:
    rng = np.random.default_rng(seed)
    score = random_gap(rng)
    one, other = (
        t.bounded(3) if t.persons and t.schema.person else t
        for t in neighbors(unit, rng, worst=worst)
    )  # type: ignore[arg-type]
    (values, grid), (others, same) = (
        score(CANDIDATES, one.count(CANDIDATES)),
        score(CANDIDATES, other.count(CANDIDATES)),
    )
    assert grid == same
    limit = Fraction(score.lipschitz) * sensitivity(unit).l1  # type: ignore[arg-type]
    assert all(abs(v - w) * grid <= limit for v, w in zip(values, others, strict=True))


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_the_sensitivity_is_attained(unit: object) -> None:
    """Not a loose bound: with the estimate at one of the two tables, some score moves by all of it."""
    reached = Fraction(0)
    limit = Fraction(sensitivity(unit).l1)  # type: ignore[arg-type]
    for seed in range(20):
        one, other = (
            t.bounded(3) if t.schema.person else t
            for t in neighbors(unit, np.random.default_rng(seed), worst=True)
        )  # type: ignore[arg-type]
        for target in (one, other):
            score = MarginalGap(
                {c: m.astype(float) for c, m in target.count(CANDIDATES).items()},
                dict.fromkeys(CANDIDATES, 1.0),
                dict.fromkeys(CANDIDATES, 0.0),
            )
            (v, grid), (w, _) = (
                score(CANDIDATES, one.count(CANDIDATES)),
                score(CANDIDATES, other.count(CANDIDATES)),
            )
            reached = max(reached, *(abs(a - b) * grid for a, b in zip(v, w, strict=True)))
    assert reached == limit


def grid_gap(counts: IntArray, model: FloatArray) -> int:
    return grid_gaps([counts], [model])[0]


@given(seed=st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_order_of_rows_and_cells_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 40_000))
    counts, model = rng.integers(0, 1000, size), rng.normal(500, 300, size)
    order = rng.permutation(size)
    assert grid_gap(counts, model) == grid_gap(counts[order], model[order])
    if size % 2 == 0:
        assert grid_gap(counts, model) == grid_gap(
            np.asfortranarray(counts.reshape(2, -1)), np.asfortranarray(model.reshape(2, -1))
        )


def test_marginals_are_taken_many_at_a_time_as_each_alone() -> None:
    """Small ones between large ones, which take several pieces, and the exact sums in whole numbers beside them."""
    rng = np.random.default_rng(1)
    sizes = [1, 3, 40_000, 2, 16_384, 16_383, 1, 1, 7, 50_000, 27]
    counts = [rng.integers(0, 1000, n) for n in sizes]
    models = [rng.normal(500, 300, n) for n in sizes]
    exact = [
        int(np.abs(1024 * x - np.rint(1024 * m).astype(np.int64)).sum())
        for x, m in zip(counts, models, strict=True)
    ]
    assert grid_gaps(counts, models) == exact
    assert [grid_gap(x, m) for x, m in zip(counts, models, strict=True)] == exact
    assert grid_gaps([], []) == []


def test_exact_up_to_the_largest_totals() -> None:
    most = int(MAX_EXACT_TOTAL) - 1
    assert (
        grid_gap(np.array([most, 0, 0]), np.array([0.0, most - 0.5, 0.25]))
        == 1024 * most + 1024 * most - 512 + 256
    )
    with pytest.raises(InputError, match="too many rows"):
        grid_gap(np.array([most, 1]), np.zeros(2))


def test_halves_round_to_even() -> None:
    grid = 2.0**-10
    assert (
        grid_gap(np.zeros(4, dtype=np.int64), np.array([0.5, 1.5, 2.5, -0.5]) * grid)
        == 0 + 2 + 2 + 0
    )


def good() -> dict[str, dict[tuple[str, ...], object]]:
    return {
        "estimates": {c: np.zeros(DOMAIN.shape(c)) for c in CANDIDATES},
        "weights": dict.fromkeys(CANDIDATES, 1.0),
        "penalties": dict.fromkeys(CANDIDATES, 0.0),
    }


def test_what_is_right_passes() -> None:
    MarginalGap(**good()).check(DOMAIN, CANDIDATES)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("weights", 0.0),
        ("weights", -1.0),
        ("weights", math.nan),
        ("weights", math.inf),
        ("penalties", math.nan),
        ("penalties", -math.inf),
        ("estimates", np.zeros((3, 2))),
        ("estimates", np.full((2, 3), math.nan)),
        ("estimates", np.array([[0, 0, 0], [0, math.inf, 0]])),
        ("estimates", np.full((2, 3), MAX_EXACT_TOTAL / 5)),
        ("estimates", np.full((2, 3), 1e308)),
    ],
)
def test_what_is_wrong_is_said_beforehand(part: str, value: object) -> None:
    parts = good()
    parts[part][("a", "b")] = value
    with pytest.raises(InputError, match="a, b"):
        MarginalGap(**parts).check(DOMAIN, CANDIDATES)  # type: ignore[arg-type]
    del parts[part][("a", "b")]
    with pytest.raises(InputError, match="a, b"):
        MarginalGap(**parts).check(DOMAIN, CANDIDATES)  # type: ignore[arg-type]


@pytest.mark.parametrize("groups", [[0, 0], [0, 0, -1], [0.0, 1.0, 1.0]])
def test_a_wrong_query_is_said_beforehand(groups: list[float]) -> None:
    score = MarginalGap(**good(), query=LinearMap({"b": np.array(groups)}))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'b'"):
        score.check(DOMAIN, CANDIDATES)


def test_terms_are_the_public_parts() -> None:
    terms = random_gap(np.random.default_rng(0)).terms(CANDIDATES[:3])
    assert set(terms) == {"weight", "penalty"}
    assert all(t.shape == (3,) for t in terms.values())


# Measured or read.


def random_improvement(rng: np.random.Generator) -> Improvement:
    """Random parts; about half of the candidates can be read."""
    return Improvement(
        estimates={c: rng.uniform(-1, 4, DOMAIN.shape(c)) for c in CANDIDATES},
        publics={c: rng.uniform(0, 4, DOMAIN.shape(c)) for c in CANDIDATES if rng.integers(2)},
        weights={c: float(rng.uniform(0.1, 3)) for c in CANDIDATES},
        penalties={c: float(rng.uniform(-5, 5)) for c in CANDIDATES},
    )


def _distance(counts: np.ndarray, model: np.ndarray) -> Fraction:
    rounded = [Fraction(round(Fraction(float(m)) * 1024), 1024) for m in model.ravel()]
    return sum((abs(int(x) - m) for x, m in zip(counts.ravel(), rounded, strict=True)), Fraction(0))


@given(seed=st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_an_improvement_in_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    score, (table, _) = random_improvement(rng), neighbors(UNITS[0], rng)
    counts = table.count(CANDIDATES)
    measured = [
        Fraction(score.weights[c])
        * (_distance(counts[c], score.estimates[c]) - Fraction(score.penalties[c]))
        for c in CANDIDATES
    ]
    readable = score.readable(CANDIDATES)
    read = [
        Fraction(score.weights[c])
        * (_distance(counts[c], score.estimates[c]) - _distance(counts[c], score.publics[c]))
        for c in readable
    ]
    assert readable == tuple(c for c in CANDIDATES if c in score.publics)
    values, grid = score(CANDIDATES, counts)
    assert [v * grid for v in values] == [*measured, *read]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_an_improvement_moves_by_twice_a_distance_and_no_further(unit: object) -> None:
    """The paper's 4 under replacement; attained where the estimate is at one table and the public data at the other."""
    reached, limit = Fraction(0), 2 * Fraction(sensitivity(unit).l1)  # type: ignore[arg-type]
    for seed in range(60):
        rng = np.random.default_rng(seed)
        one, other = (
            t.bounded(3) if t.schema.person else t
            for t in neighbors(unit, rng, worst=seed % 2 == 0)
        )  # type: ignore[arg-type]
        score = random_improvement(rng)
        if seed % 3 == 0:
            a, b = one.count(CANDIDATES), other.count(CANDIDATES)
            score = Improvement(
                {c: b[c].astype(float) for c in CANDIDATES},
                {c: a[c].astype(float) for c in CANDIDATES},
                dict.fromkeys(CANDIDATES, 1.0),
                dict.fromkeys(CANDIDATES, 0.0),
            )
        bound = Fraction(score.lipschitz) * sensitivity(unit).l1  # type: ignore[arg-type]
        (v, grid), (w, same) = (score(CANDIDATES, t.count(CANDIDATES)) for t in (one, other))
        assert grid == same
        moved = [abs(x - y) * grid for x, y in zip(v, w, strict=True)]
        assert max(moved) <= bound
        if seed % 3 == 0:
            reached = max(reached, *moved)
    assert reached == limit


def test_without_anything_to_read_an_improvement_is_a_gap() -> None:
    rng = np.random.default_rng(4)
    gap, (table, _) = random_gap(rng), neighbors(UNITS[0], rng)
    estimates = {c: rng.uniform(0, 4, DOMAIN.shape(c)) for c in CANDIDATES}
    plain = MarginalGap(estimates, gap.weights, gap.penalties)
    score = Improvement(estimates, {}, gap.weights, gap.penalties)
    counts = table.count(CANDIDATES)
    assert score(CANDIDATES, counts) == plain(CANDIDATES, counts)
    assert score.lipschitz == plain.lipschitz
    score.check(DOMAIN, CANDIDATES)
    wrong = Improvement(estimates, {CANDIDATES[0]: np.zeros(99)}, gap.weights, gap.penalties)
    with pytest.raises(InputError):
        wrong.check(DOMAIN, CANDIDATES)


# The generalized exponential mechanism.


def random_relative(rng: np.random.Generator) -> RelativeGap:
    """Random parts, with weights that differ by powers of ten."""
    gap = random_gap(rng)
    estimates = {c: rng.uniform(-1, 4, DOMAIN.shape(c)) for c in CANDIDATES}
    weights = {c: w * 10.0 ** int(rng.integers(-2, 3)) for c, w in gap.weights.items()}
    return RelativeGap(estimates, weights, gap.penalties, margin=float(rng.uniform(0, 9)))


@given(seed=st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_relative_scores_are_the_formula_rounded_down(seed: int) -> None:
    rng = np.random.default_rng(seed)
    score, (table, _) = random_relative(rng), neighbors(UNITS[0], rng)
    raised = {c: p + score.margin for c, p in score.penalties.items()}
    q = by_hand(MarginalGap(score.estimates, score.weights, raised), table)
    w = [Fraction(score.weights[c]) for c in CANDIDATES]
    exact = [
        min((a - b) / (v + u) for b, u in zip(q, w, strict=True)) for a, v in zip(q, w, strict=True)
    ]
    values, grid = score(CANDIDATES, table.count(CANDIDATES))
    assert [Fraction(v) * grid for v in values] == [
        Fraction(math.floor(e * 1024), 1024) for e in exact
    ]
    assert max(values) == 0


@pytest.mark.parametrize("unit", UNITS, ids=str)
@given(seed=st.integers(0, 2**32), worst=st.booleans())
@settings(max_examples=100, deadline=None)
def test_relative_scores_move_by_the_l1_change_at_most(unit: Unit, seed: int, worst: bool) -> None:
    rng = np.random.default_rng(seed)
    score, limit = random_relative(rng), sensitivity(unit).l1
    one, other = (
        t.bounded(3) if t.persons and t.schema.person else t
        for t in neighbors(unit, rng, worst=worst)
    )
    (values, grid), (others, _) = (score(CANDIDATES, t.count(CANDIDATES)) for t in (one, other))
    assert max(abs(v - w) * grid for v, w in zip(values, others, strict=True)) <= limit


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_the_gate_prices_relative_scores_by_the_unit_alone(unit: Unit) -> None:
    """The largest weight, 3000, has no part in it; an uneven weight does not hide the worst candidate."""
    table, _ = neighbors(unit, np.random.default_rng(0))
    one, other, *_ = [c for c in CANDIDATES if len(c) == 1]
    far = {one: np.full(DOMAIN.shape(one), 5000.0), other: np.zeros(DOMAIN.shape(other))}
    score = RelativeGap(far, {one: 1.0, other: 3000.0}, dict.fromkeys(far, 0.0))
    budget = Budget.zcdp(Fraction(1, 8))
    with protect(table, unit=unit, budget=budget, randomness=SeededRandomness(0)) as private:
        private.select([one, other], score, rho=private.rho)
        (entry,) = private.transcript.selections
    assert (entry.sensitivity, entry.epsilon) == (sensitivity(unit).l1, 1.0)
    assert entry.terms["margin"].tolist() == [0.0, 0.0]


def test_the_margin_of_the_paper() -> None:
    """2 ln(k / 0.05) / epsilon, with epsilon = 1 at rho = 1/8, in units of the L1 sensitivity."""
    for unit, moved in ((AddRemoveRow(), 1), (ReplaceRow(), 2)):
        expected = 2 * moved * math.log(10 / 0.05)
        assert RelativeGap.margin_for(10, Fraction(1, 8), unit) == pytest.approx(expected)
