"""Noisy scores, dependence, choices of half-spaces: sensitivity by brute force, price, replay, what is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margrave.accounting import (
    AddRemovePerson,
    AddRemoveRow,
    Budget,
    ReplacePerson,
    ReplaceRow,
    Unit,
    sensitivity,
)
from margrave.domain import Domain
from margrave.errors import BudgetError, InputError, MargraveError
from margrave.marginal import HalfSpace
from margrave.models import GraphicalFit
from margrave.privacy import (
    Dependence,
    Gaussian,
    HalfSpaceGap,
    MarginalGap,
    Private,
    SeededRandomness,
    protect,
)
from margrave.provenance import Provenance
from margrave.release import Release
from margrave.report import render
from margrave.testing.replay import Recorder, ReplayRandomness, loss_replay, steps_of
from margrave.transcript import HalfSpaceSelection, ScoreMeasurement, Transcript
from margrave.types import Clique, IntArray
from margrave.unit import replaces_rows
from tests.support.conformance import memory_table
from tests.support.tiny_table import UNITS, TinySchema, TinyTable, neighbors, tiny_domain

DOMAIN = tiny_domain()
PAIRS: list[Clique] = [("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c")]
BUDGET = Budget.zcdp(Fraction(10**6), 1e-9)
LEFT: dict[Clique, Clique] = {("a", "b", "c"): ("a", "c")}


def bounded(table: TinyTable) -> TinyTable:
    return table.bounded(3) if table.persons and table.schema.person else table


def by_hand(counts: IntArray, clique: Clique, left: Clique) -> Fraction:
    """‖M_AB − M_A ⊗ M_B / n‖₁, cell by cell."""
    n = int(counts.sum())
    if not n:
        return Fraction(0)
    total = Fraction(0)
    for cell in product(*map(range, counts.shape)):
        sides = []
        for side in (left, tuple(a for a in clique if a not in left)):
            where = tuple(
                c if a in side else slice(None) for a, c in zip(clique, cell, strict=True)
            )
            sides.append(int(counts[where].sum()))
        total += abs(int(counts[cell]) - Fraction(sides[0] * sides[1], n))
    return total


# Dependence.


@given(seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_the_formula_in_fractions(seed: int) -> None:
    table, _ = neighbors(UNITS[0], np.random.default_rng(seed), rows=9)
    counts, score = table.count(PAIRS), Dependence(LEFT)
    values, grid = score(PAIRS, counts)
    for clique, value in zip(PAIRS, values, strict=True):
        exact = by_hand(counts[clique], clique, LEFT.get(clique, clique[:1]))
        assert abs(value * grid - exact) <= grid / 2


@pytest.mark.parametrize("rows", [2**31 - 1, 2**31, 2**40 + 7])
def test_many_rows_are_scored_exactly_and_not_refused(rows: int) -> None:
    """A refusal would come after the charge, and the true row count would decide it."""
    table = np.array([[rows // 2, 0, 3], [1, rows - rows // 2 - 9, 5]])
    (value,), grid = Dependence()([("a", "b")], {("a", "b"): table})
    assert int(table.sum()) == rows
    assert abs(value * grid - by_hand(table, ("a", "b"), ("a",))) <= grid / 2


def test_a_half_is_rounded_up() -> None:
    """So that rounding commutes with whole numbers, which rounding to even does not."""
    rng, clique = np.random.default_rng(0), ("a", "b")
    below_even = 0
    for _ in range(200):
        table = rng.multinomial(4096, rng.dirichlet(np.ones(9))).reshape(3, 3)
        exact = by_hand(table, clique, ("a",)) * 1024
        (value,), _ = Dependence()([clique], {clique: table})
        assert value == (exact + Fraction(1, 2)).__floor__()
        below_even += exact.denominator == 2 and exact.__floor__() % 2 == 0
    assert below_even > 5


def counts_of(rows: int, sizes: tuple[int, int]) -> Iterator[IntArray]:
    """Every table of so many rows."""
    cells = list(product(*map(range, sizes)))
    for chosen in combinations_with_replacement(cells, rows):
        table = np.zeros(sizes, dtype=np.int64)
        for cell in chosen:
            table[cell] += 1
        yield table


@pytest.mark.parametrize(("sizes", "most"), [((2, 2), 7), ((2, 3), 4), ((3, 3), 3)])
def test_no_row_moves_a_dependence_further_than_four_or_six(
    sizes: tuple[int, int], most: int
) -> None:
    """All tables of few rows, all their neighbors."""
    clique = ("a", "b")

    def score(table: IntArray) -> int:
        return Dependence()([clique], {clique: table})[0][0]

    for rows in range(most + 1):
        for table in counts_of(rows, sizes):
            here, grown = score(table), []
            for cell in product(*map(range, sizes)):
                more = table.copy()
                more[cell] += 1
                grown.append(more)
                assert abs(score(more) - here) <= 4 * 1024
            for more in grown:  # one of its rows goes: the table had another row in its place
                for cell in zip(*np.nonzero(more), strict=True):
                    other = more.copy()
                    other[cell] -= 1
                    assert abs(score(other) - here) <= 6 * 1024


@pytest.mark.parametrize("unit", UNITS, ids=str)
@given(seed=st.integers(0, 2**32), worst=st.booleans(), rows=st.integers(0, 12))
@settings(max_examples=100, deadline=None)
def test_no_score_moves_further_than_it_says(unit: Unit, seed: int, worst: bool, rows: int) -> None:
    pair = neighbors(unit, np.random.default_rng(seed), worst=worst, rows=rows)
    one, other = map(bounded, pair)
    score = Dependence(LEFT, replaces_rows(unit))
    (values, grid), (others, _) = (score(PAIRS, t.count(PAIRS)) for t in (one, other))
    limit = Fraction(score.lipschitz) * sensitivity(unit).l1
    k = unit.max_rows if isinstance(unit, AddRemovePerson | ReplacePerson) else 1
    assert limit == k * (6 if replaces_rows(unit) else 4)
    assert all(abs(v - w) * grid <= limit for v, w in zip(values, others, strict=True))


# Measured at the gate.

SQUARE = Domain.of({"a": 3, "b": 3})


def square(counts: dict[tuple[int, int], int]) -> TinyTable:
    return TinyTable(TinySchema(SQUARE), [cell for cell, n in counts.items() for _ in range(n)])


def worst_rows(unit: Unit) -> tuple[TinyTable, TinyTable]:
    """Tables between which the dependence of two columns moves by nearly all that one row can."""
    if not replaces_rows(unit):
        return square({(0, 0): 2000}), square({(0, 0): 2000, (1, 1): 1})
    few = {(2, 0): 100, (0, 2): 100, (1, 1): 1, (2, 2): 9798}
    return square({**few, (0, 0): 1}), square({**few, (1, 1): 2})


def gaps() -> MarginalGap:
    estimates = {c: np.full(DOMAIN.shape(c), 0.3) for c in PAIRS}
    return MarginalGap(estimates, dict.fromkeys(PAIRS, 1.0), dict.fromkeys(PAIRS, 0.0))


def asking(private: Private) -> None:
    private.measure_scores(PAIRS, Dependence(LEFT), Gaussian(rho=Fraction(1, 3)))
    private.measure_scores(PAIRS[:2], Dependence(), Gaussian(scale=7.5))
    private.measure_scores(PAIRS, gaps(), Gaussian(scale=3.0))
    private.select(PAIRS, Dependence(LEFT), rho=Fraction(1, 5))


@pytest.mark.parametrize("worst", [False, True])
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_no_neighbors_lose_more_than_is_charged(unit: Unit, worst: bool, seed: int) -> None:
    pair = neighbors(unit, np.random.default_rng(seed), worst=worst)
    loss, charged = loss_replay(asking, *pair, unit, BUDGET)
    assert loss <= charged

    def gap_alone(private: Private) -> None:
        full = closest(pair, unit)
        private.measure_scores(PAIRS, full, Gaussian(scale=3.0))

    loss, charged = loss_replay(gap_alone, *pair, unit, BUDGET)
    assert loss <= charged
    if worst:  # all gaps move by all that a unit can move them
        assert loss == charged


def closest(pair: tuple[TinyTable, TinyTable], unit: Unit) -> MarginalGap:
    """The gaps to one of the two tables."""
    counts = bounded(pair[0]).count(PAIRS)
    return replace(gaps(), estimates={c: x.astype(np.float64) for c, x in counts.items()})


@pytest.mark.parametrize("unit", [AddRemoveRow(), ReplaceRow()], ids=str)
def test_the_worst_rows_cost_what_is_charged(unit: Unit) -> None:
    def ask(private: Private) -> None:
        private.measure_scores([("a", "b")], Dependence(), Gaussian(rho=Fraction(1, 3)))

    loss, charged = loss_replay(ask, *worst_rows(unit), unit, BUDGET)
    assert Fraction(95, 100) < loss / charged <= 1


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_what_is_kept_depends_on_the_answers_alone(unit: Unit) -> None:
    one, other = neighbors(unit, np.random.default_rng(3))
    recorder = Recorder(SeededRandomness(3))
    with protect(one, unit=unit, budget=BUDGET, randomness=recorder) as private:
        asking(private)
        first, debits = private.transcript, private.account().debits
    assert [type(s) for s in steps_of(first)] == [type(s) for s in recorder.steps]
    replay = ReplayRandomness(steps_of(first))
    with protect(other, unit=unit, budget=BUDGET, randomness=replay) as private:
        asking(private)
        assert private.transcript.to_dict() == first.to_dict()
        assert private.account().debits == debits
    replay.finish()


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_scale_and_price_are_of_all_scores_together(unit: Unit) -> None:
    table, _ = neighbors(unit, np.random.default_rng(0))
    with protect(table, unit=unit, budget=BUDGET, randomness=SeededRandomness(0)) as private:
        private.measure_scores(PAIRS, Dependence(), Gaussian(scale=7.5))
        private.measure_scores(PAIRS, Dependence(), Gaussian(rho=Fraction(1, 2)))
        (known, bought) = (e for e in private.transcript if isinstance(e, ScoreMeasurement))
        debits = [d.rho for d in private.account().debits]
    k = unit.max_rows if isinstance(unit, AddRemovePerson | ReplacePerson) else 1
    moved = k * (6 if replaces_rows(unit) else 4)
    assert known.sensitivity == moved
    assert known.rho == debits[0] == len(PAIRS) * moved**2 / (2 * Fraction(7.5) ** 2)
    assert bought.rho == debits[1] == Fraction(1, 2)
    assert bought.scale == pytest.approx(moved * len(PAIRS) ** 0.5)
    assert not known.values.flags.writeable


def test_the_noise_is_of_the_scale_that_is_stated() -> None:
    table, _ = neighbors(AddRemoveRow(), np.random.default_rng(0))
    truth, _ = Dependence()(PAIRS, table.count(PAIRS))
    errors = []
    with protect(
        table, unit=AddRemoveRow(), budget=BUDGET, randomness=SeededRandomness(0)
    ) as private:
        for _ in range(200):
            (entry,) = private.measure_scores(PAIRS, Dependence(), Gaussian(scale=5.0))
            errors += (entry.values - np.array(truth) / 1024).tolist()  # type: ignore[union-attr]
    assert np.std(errors) == pytest.approx(5.0, rel=0.1)
    assert abs(np.mean(errors)) < 1.0


def test_a_score_does_not_choose_the_unit() -> None:
    table, _ = neighbors(AddRemoveRow(), np.random.default_rng(0))
    with protect(
        table, unit=AddRemoveRow(), budget=BUDGET, randomness=SeededRandomness(0)
    ) as private:
        private.select(PAIRS, Dependence(replacement=True), rho=Fraction(1, 9))
        private.measure_scores(PAIRS, Dependence(replacement=True), Gaussian(scale=5.0))
        selection, scores = private.transcript
    assert selection.sensitivity == scores.sensitivity == 4.0  # type: ignore[union-attr]


class Sly(Dependence):
    @property
    def lipschitz(self) -> float:
        return 1e-9


NOISE, RHO = Gaussian(scale=5.0), Fraction(1)


def with_all(**parts: float) -> MarginalGap:
    return replace(gaps(), **{name: dict.fromkeys(PAIRS, x) for name, x in parts.items()})


REFUSED: list[tuple[Callable[[Private], Any], str]] = [
    (lambda p: p.measure_scores(PAIRS, Sly(), NOISE), "Dependence or MarginalGap"),
    (lambda p: p.select(PAIRS, Sly(), rho=RHO), "Dependence"),
    (lambda p: p.measure_scores([("a",)], Dependence(), NOISE), "two sides"),
    (lambda p: p.measure_scores(PAIRS, Dependence({PAIRS[0]: ("a", "b")}), NOISE), "two sides"),
    (lambda p: p.measure_scores(PAIRS, Dependence({PAIRS[0]: ("a", "c")}), NOISE), "two sides"),
    (lambda p: p.measure_scores([PAIRS[0]] * 2, Dependence(), NOISE), "twice"),
    (lambda p: p.measure_scores([], Dependence(), NOISE), "No marginal"),
    (lambda p: p.measure_scores(PAIRS, with_all(weights=2.0), NOISE), "weights or penalties"),
    (lambda p: p.measure_scores(PAIRS, with_all(penalties=1.0), NOISE), "weights or penalties"),
    (lambda p: p.measure_scores(PAIRS, Dependence(), 5.0), "noise"),  # type: ignore[arg-type]
    (lambda p: p.select_half_space([], HalfSpaceGap(np.zeros(0)), rho=RHO), "No marginal"),
    (lambda p: p.select_half_space(SPACES, HalfSpaceGap(np.zeros(2)), rho=RHO), "one estimate"),
    (lambda p: p.select_half_space(SPACES, HalfSpaceGap(np.full(3, np.inf)), rho=RHO), "finite"),
    (lambda p: p.select_half_space(MIXED, HalfSpaceGap(np.zeros(3)), rho=RHO), "differently"),
    (lambda p: p.select_half_space(["x"], HalfSpaceGap(np.zeros(1)), rho=RHO), "type str"),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("ask", "words"), REFUSED)
def test_what_is_refused_costs_nothing(ask: Callable[[Private], Any], words: str) -> None:
    table, _ = neighbors(AddRemoveRow(), np.random.default_rng(0))
    with protect(
        table, unit=AddRemoveRow(), budget=BUDGET, randomness=SeededRandomness(0)
    ) as private:
        with pytest.raises(InputError, match=words):
            ask(private)
        assert private.remaining == private.rho
        with pytest.raises(BudgetError):
            private.measure_scores(PAIRS, Dependence(), Gaussian(rho=2 * private.rho))
        assert private.remaining == private.rho


# Half-spaces.

SPACES = [
    HalfSpace.of(DOMAIN, {"a": 1.0, "b": 0.5}, 0.7),
    HalfSpace.of(DOMAIN, {"b": 1.0}, 0.4),
    HalfSpace.of(DOMAIN, {"b": -1.0, "c": 2.0}, 1.1),
]
SMOOTH = [replace(q, slope=9.0) for q in SPACES]
MIXED = [*SPACES[:2], SMOOTH[0]]


def asking_spaces(queries: list[HalfSpace]) -> Callable[[Private], None]:
    def ask(private: Private) -> None:
        score = HalfSpaceGap(np.array([3.0, 2.5, 0.25]))
        private.select_half_space(queries, score, rho=Fraction(1, 3))
        private.select_half_space(queries[::-1], score, rho=Fraction(1, 7))

    return ask


@pytest.mark.parametrize("queries", [SPACES, SMOOTH], ids=["sharp", "smooth"])
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_choice_of_half_spaces_costs_what_is_charged(
    unit: Unit, queries: list[HalfSpace]
) -> None:
    reached = Fraction(0)
    for seed in range(8):
        pair = neighbors(unit, np.random.default_rng(seed), worst=seed % 2 == 0)
        loss, charged = loss_replay(asking_spaces(queries), *pair, unit, BUDGET)
        assert loss <= charged
        reached = max(reached, loss / charged)
    # a count that goes up beside one that stays: half of what the worst scores, of both signs, can lose
    assert reached > Fraction(1, 8)


def test_the_scores_of_half_spaces_in_fractions() -> None:
    table, _ = neighbors(AddRemoveRow(), np.random.default_rng(4), rows=12)
    for queries in (SPACES, SMOOTH):
        most = queries[0].max_contribution
        counts = table.count([q.clique for q in queries])
        values, grid = HalfSpaceGap(np.array([3.0, 2.5, 0.25]))(queries, counts)
        for query, estimate, value in zip(queries, (3.0, 2.5, 0.25), values, strict=True):
            exact = abs(Fraction(int(query.count(counts[query.clique])), most) - Fraction(estimate))
            assert value * grid == exact


def test_the_half_space_that_is_furthest_off_is_chosen() -> None:
    table, _ = neighbors(AddRemoveRow(), np.random.default_rng(4), rows=12)
    counts = table.count([q.clique for q in SPACES])
    truth = np.array([q.count(counts[q.clique]) for q in SPACES], dtype=np.float64)
    with protect(
        table, unit=AddRemoveRow(), budget=BUDGET, randomness=SeededRandomness(0)
    ) as private:
        for place in range(3):
            estimates = truth.copy()
            estimates[place] += 9.0
            chosen = private.select_half_space(SPACES, HalfSpaceGap(estimates), rho=Fraction(200))
            assert (chosen.number, chosen.chosen) == (place, SPACES[place])


# What a release keeps.


def released() -> Release:
    sizes = dict(zip(DOMAIN, DOMAIN.sizes, strict=True))
    rows = [(i % 2, i % 3, (i * i) % 4) for i in range(60)]
    with protect(
        memory_table(sizes, rows), unit=ReplaceRow(), budget=BUDGET, randomness=SeededRandomness(4)
    ) as private:
        asking(private)
        asking_spaces(SPACES)(private)
        private.measure([(a,) for a in DOMAIN], Gaussian(scale=3.0))
        known = private.transcript
        model = GraphicalFit()(private.domain, known, rng=np.random.default_rng(0))
        return Release(private.schema, model, known, private.account(), Provenance("by hand"))


def test_a_saved_release_holds_scores_and_choices(tmp_path: Path) -> None:
    made = released()
    made.save(tmp_path / "a.margrave")
    back = Release.load(tmp_path / "a.margrave", verify=False)
    assert back.transcript.to_dict() == made.transcript.to_dict()
    one, other = (
        [e for e in r.transcript if isinstance(e, HalfSpaceSelection)] for r in (made, back)
    )
    assert one == other
    page = render(made)
    assert "Measured the dependence of 4 marginals" in page
    assert "1 of 3" in page


@pytest.mark.parametrize("place", range(6))
def test_an_account_that_understates_a_score_is_found_out(place: int) -> None:
    made = released()
    sound = [f for f in made.verify().findings if f.startswith("Entry")]
    assert sound == []
    asked = [e for e in made.transcript if isinstance(e, ScoreMeasurement | HalfSpaceSelection)]
    asked += list(made.transcript.selections)
    entry = asked[place]
    entries = tuple(
        replace(e, sensitivity=e.sensitivity / 2) if e is entry else e  # type: ignore[union-attr, type-var]
        for e in made.transcript
    )
    findings = replace(made, transcript=Transcript(entries)).verify().findings
    assert any("sensitivity" in f or "price" in f for f in findings)


def test_a_resumed_run_asks_for_the_same_scores(tmp_path: Path) -> None:
    table = memory_table(dict(zip(DOMAIN, DOMAIN.sizes, strict=True)), [(0, 1, 2), (1, 1, 0)])
    where: dict[str, Any] = {"unit": AddRemoveRow(), "budget": BUDGET}
    path = tmp_path / "run.journal"

    def ask(cliques: list[Clique], resume: bool) -> list[float]:
        with protect(
            table, randomness=SeededRandomness(1), journal=path, resume=resume, **where
        ) as private:
            (entry,) = private.measure_scores(cliques, Dependence(), Gaussian(scale=5.0))
            found.append(entry.values.tolist())  # type: ignore[union-attr]
            if not resume:
                raise KeyboardInterrupt
            return found[-1]

    found: list[list[float]] = []
    with pytest.raises(KeyboardInterrupt):
        ask(PAIRS, resume=False)
    assert ask(PAIRS, resume=True) == found[0]
    path.unlink()
    with pytest.raises(KeyboardInterrupt):
        ask(PAIRS, resume=False)
    with pytest.raises(MargraveError):
        ask(PAIRS[::-1], resume=True)
