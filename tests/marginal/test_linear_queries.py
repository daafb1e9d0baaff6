"""Linear queries as data, and the gate that answers them one at a time: what they count, cost, and leave behind."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margrave.accounting import AddRemoveRow, Budget, ReplaceRow, sensitivity
from margrave.domain import Domain
from margrave.errors import BudgetError, InputError, ReleaseError
from margrave.marginal import TOTAL, LinearQuery, QueryFamily
from margrave.models import FAMILIES
from margrave.privacy import Gaussian, QueryGap, SeededRandomness, protect
from margrave.privacy.exponential import choose
from margrave.release import Release
from margrave.testing.replay import loss_replay
from margrave.transcript import Answer, PublicReading, QuerySelection, Selection, Transcript
from tests.privacy.test_choice import law, p_value
from tests.support import fake_model
from tests.support.conformance import memory_table
from tests.support.tiny_table import UNITS, TinyTable, neighbors, tiny_domain

DOMAIN = tiny_domain()
CLIQUES = [("a", "b"), ("b", "c"), ("c",)]
KINDS = {
    "cells": QueryFamily.cells(DOMAIN, CLIQUES),
    "prefixes": QueryFamily.prefixes(DOMAIN, CLIQUES, ["b", "c"]),
    "ranges": QueryFamily.ranges(DOMAIN, CLIQUES, ["c"]),
}


def by_hand(query: LinearQuery, table: TinyTable) -> int:
    """The rows that meet every condition, one by one."""
    return sum(
        all(
            row[DOMAIN.index(a)] in codes
            for a, codes in zip(query.clique, query.codes, strict=True)
        )
        for row in table.data
    )


def bounded(table: TinyTable) -> TinyTable:
    return table.bounded(3) if table.persons and table.schema.person else table


# What they count.


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_every_query_counts_the_rows_that_meet_it(kind: str, seed: int) -> None:
    queries, (table, _) = KINDS[kind], neighbors(UNITS[0], np.random.default_rng(seed))
    counts = table.count(queries.cliques)
    answers = queries.answers(counts)
    assert len(answers) == len(queries)
    for number, answer in enumerate(answers):
        query = queries[number]
        query.check(DOMAIN)
        assert answer == by_hand(query, table) == query.count(counts[query.clique])
    assert TOTAL.count(counts["c",]) == len(table.data)


def test_how_many_there_are() -> None:
    sizes = {a: DOMAIN.size(a) for a in DOMAIN}
    assert len(KINDS["cells"]) == len(KINDS["prefixes"]) == sum(DOMAIN.cells(c) for c in CLIQUES)
    runs = sizes["c"] * (sizes["c"] + 1) // 2
    assert len(KINDS["ranges"]) == sizes["a"] * sizes["b"] + sizes["b"] * runs + runs
    every = {KINDS["ranges"][i] for i in range(len(KINDS["ranges"]))}
    assert len(every) == len(KINDS["ranges"])
    assert all(KINDS["cells"][i].is_cell for i in range(len(KINDS["cells"])))
    with pytest.raises(IndexError):
        KINDS["cells"][len(KINDS["cells"])]


@pytest.mark.parametrize(
    "make",
    [
        lambda: QueryFamily.cells(DOMAIN, []),
        lambda: QueryFamily.cells(DOMAIN, [()]),
        lambda: QueryFamily.cells(DOMAIN, [("a",), ("a",)]),
        lambda: QueryFamily.cells(DOMAIN, [("nowhere",)]),
        lambda: QueryFamily(DOMAIN, (("a",),), {"a": np.ones((2, 9), dtype=np.bool_)}),
        lambda: QueryFamily(
            DOMAIN, (("a",),), {"a": np.zeros((1, DOMAIN.size("a")), dtype=np.bool_)}
        ),
        lambda: QueryFamily(
            DOMAIN, (("a",),), {"a": np.zeros((0, DOMAIN.size("a")), dtype=np.bool_)}
        ),
        lambda: QueryFamily(DOMAIN, (("a",),), {"a": [[1, 0]]}),
        lambda: QueryFamily(
            DOMAIN, (("a",),), [("a", np.ones((1, DOMAIN.size("a")), dtype=np.bool_))]
        ),
        lambda: QueryFamily.prefixes(DOMAIN, [("a", "b")], ["c"]),
        lambda: QueryFamily.ranges(DOMAIN, [("a", "b")], ["b", "c"]),
        lambda: LinearQuery(("a",), ((9,),)).check(DOMAIN),
        lambda: LinearQuery(("a",), ((),)).check(DOMAIN),
        lambda: LinearQuery(("a",), ((1, 0),)).check(DOMAIN),
        lambda: LinearQuery(("a",), ((0, 0),)).check(DOMAIN),
        lambda: LinearQuery(("b", "a"), ((0,), (0,))).check(DOMAIN),
        lambda: LinearQuery(("a", "b"), ((0,),)).check(DOMAIN),
    ],
)
def test_what_is_no_query(make: Any) -> None:
    with pytest.raises(InputError):
        make()


def test_queries_are_told_apart_by_their_hash() -> None:
    """Sets of one number and shape differ in their codes alone: a certificate must not show them alike."""
    size = DOMAIN.size("c")
    sets = {"one": np.eye(size, dtype=np.bool_), "other": np.tri(size, dtype=np.bool_)}
    made = {name: QueryFamily(DOMAIN, (("b", "c"),), {"c": found}) for name, found in sets.items()}
    hashes = {queries.hash() for queries in [*KINDS.values(), *made.values()]}
    assert len(hashes) == len(KINDS) + 2
    assert QueryFamily.prefixes(DOMAIN, CLIQUES, ["c", "b"]).hash() == KINDS["prefixes"].hash()
    one, other = (queries.facts() for queries in made.values())
    assert one.pop("sha256") != other.pop("sha256")
    assert one == other
    assert json.loads(json.dumps(one)) == one


# How far they move.


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_one_count_moves_as_far_as_said_and_no_further(unit: Any) -> None:
    reached = 0
    for seed in range(40):
        one, other = map(bounded, neighbors(unit, np.random.default_rng(seed), worst=seed % 2 == 0))
        queries = KINDS["ranges"]
        moved = queries.answers(one.count(queries.cliques)) - queries.answers(
            other.count(queries.cliques)
        )
        reached = max(reached, int(np.abs(moved).max()))
    limit = sensitivity(unit, TOTAL)
    assert reached == limit.l1
    assert limit.l2_squared == limit.l1**2


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("unit", UNITS, ids=str)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_no_score_moves_further_than_a_count(unit: Any, signed: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    queries = KINDS["prefixes"]
    score = QueryGap(
        {c: rng.uniform(-2, 6, queries.shape(c)) for c in queries.cliques},
        signed=signed,
        without=frozenset({1, 4}),
    )
    one, other = map(bounded, neighbors(unit, rng, worst=bool(rng.integers(2))))
    (values, grid), (others, same) = (
        score(queries, t.count(queries.cliques)) for t in (one, other)
    )
    assert grid == same
    limit = sensitivity(unit, TOTAL).l1
    assert all(abs(int(v) - int(w)) * grid <= limit for v, w in zip(values, others, strict=True))


@given(seed=st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_the_score_in_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    queries, (table, _) = KINDS["ranges"], neighbors(UNITS[0], rng)
    estimates = {c: rng.uniform(-2, 6, queries.shape(c)) for c in queries.cliques}
    counts, left_out = table.count(queries.cliques), frozenset({0, 3})
    flat = np.concatenate([estimates[c].ravel() for c in queries.cliques])
    expected = [
        by_hand(queries[i], table) - Fraction(round(Fraction(float(flat[i])) * 1024), 1024)
        for i in range(len(queries))
        if i not in left_out
    ]
    values, grid = QueryGap(estimates, without=left_out)(queries, counts)
    assert [int(v) * grid for v in values] == [abs(e) for e in expected]
    values, grid = QueryGap(estimates, signed=True, without=left_out)(queries, counts)
    assert [int(v) * grid for v in values] == [*expected, *(-e for e in expected)]


@pytest.mark.parametrize(
    "score",
    [
        QueryGap({}),
        QueryGap({c: np.zeros(1) for c in CLIQUES}),
        QueryGap({c: np.full(DOMAIN.shape(c), np.nan) for c in CLIQUES}),
        QueryGap({c: np.full(DOMAIN.shape(c), 1e300) for c in CLIQUES}),
        QueryGap({c: np.zeros(DOMAIN.shape(c)) for c in CLIQUES}, without=frozenset({10**6})),
        QueryGap(
            {c: np.zeros(DOMAIN.shape(c)) for c in CLIQUES},
            without=frozenset(range(len(KINDS["cells"]))),
        ),
    ],
)
def test_a_wrong_score_costs_nothing(score: QueryGap) -> None:
    table = memory_table({a: DOMAIN.size(a) for a in DOMAIN}, [(0, 0, 0)])
    with protect(
        table, unit=AddRemoveRow(), budget=Budget.zcdp(Fraction(1)), randomness=SeededRandomness(0)
    ) as p:
        with pytest.raises(InputError):
            p.select_query(KINDS["cells"], score, rho=Fraction(1, 2))
        with pytest.raises(BudgetError):
            p.measure_queries([TOTAL], Gaussian(rho=Fraction(2)))
        with pytest.raises(InputError):
            p.measure_queries([LinearQuery(("a",), ((77,),))], Gaussian(rho=Fraction(1, 2)))
        with pytest.raises(InputError):
            p.measure_queries([], Gaussian(rho=Fraction(1, 2)))
        assert p.remaining == 1


# The choice, drawn from an array.


@pytest.mark.parametrize("temperature", [Fraction(1, 3), Fraction(10**40), Fraction(1, 10**340)])
def test_an_array_of_scores_is_the_same_law(temperature: Fraction) -> None:
    scores = [0, 3, 5, 9, 10]
    bits = np.random.default_rng(2).bytes
    drawn = [choose(np.array(scores), temperature, bits) for _ in range(4000)]
    assert p_value(drawn, law(scores, temperature)) > 1e-6
    if temperature == Fraction(1, 3):
        wrong = [choose(np.array(scores), temperature * Fraction(5, 4), bits) for _ in range(4000)]
        assert p_value(wrong, law(scores, temperature)) < 1e-6


class Peek(SeededRandomness):
    """Keeps what the gate hands it: scores and temperature."""

    def __init__(self) -> None:
        super().__init__(0)
        self.seen: list[tuple[Any, Fraction]] = []

    def choose(self, scores: Any, temperature: Fraction) -> int:
        self.seen.append((np.asarray(scores).copy(), temperature))
        return super().choose(scores, temperature)


@pytest.mark.parametrize("unit", [AddRemoveRow(), ReplaceRow()], ids=str)
def test_a_choice_is_paid_at_the_sensitivity_of_one_count(unit: Any) -> None:
    """Three draws at rho / 3 each: epsilon² / 8 = rho / 3, and counts that move by 1 are multiplied by epsilon / 2."""
    queries, source, rho = KINDS["cells"], Peek(), Fraction(3, 8)
    table = memory_table({a: DOMAIN.size(a) for a in DOMAIN}, [(0, 1, 2), (1, 0, 0)])
    with protect(table, unit=unit, budget=Budget.zcdp(Fraction(1)), randomness=source) as private:
        zeros = {c: np.zeros(queries.shape(c)) for c in queries.cliques}
        found = private.select_query(queries, QueryGap(zeros), rho=rho, times=3)
        assert private.remaining == 1 - rho
        assert private.transcript.query_selections == found
    assert len(source.seen) == len(found) == 3
    for scores, temperature in source.seen:
        assert temperature * 1024 == Fraction(1, 2)  # epsilon = 1
        assert np.array_equal(
            scores, 1024 * queries.answers({c: np.abs(table.count([c])[c]) for c in CLIQUES})
        )
    assert all(s.epsilon == 1.0 and s.sensitivity == 1.0 and s.rho == Fraction(1, 8) for s in found)


def test_a_signed_choice_knows_on_which_side_the_estimate_is_wrong() -> None:
    queries = KINDS["cells"]
    table = memory_table({a: DOMAIN.size(a) for a in DOMAIN}, [(0, 0, 0)] * 50)
    for truth, sign in ((np.zeros, 1), (lambda shape: np.full(shape, 90.0), -1)):
        estimates = {c: truth(queries.shape(c)) for c in queries.cliques}
        budget = Budget.zcdp(Fraction(1000))
        with protect(
            table, unit=AddRemoveRow(), budget=budget, randomness=SeededRandomness(1)
        ) as private:
            (found,) = private.select_query(
                queries, QueryGap(estimates, signed=True), rho=Fraction(1000)
            )
        assert found.sign == sign
        assert found.signed
        assert (
            found.chosen.count(table.count([found.chosen.clique])[found.chosen.clique]) > 0
        ) == (sign > 0)


def test_answers_have_noise_of_the_stated_scale() -> None:
    table = memory_table({a: DOMAIN.size(a) for a in DOMAIN}, [(1, 1, 1)] * 20)
    asked = [TOTAL, LinearQuery(("a", "c"), ((1,), (0, 1)))] * 600
    with protect(
        table, unit=ReplaceRow(), budget=Budget.zcdp(Fraction(24)), randomness=SeededRandomness(5)
    ) as p:
        p.measure_queries(asked, Gaussian(rho=Fraction(24)))  # 1200 counts at 1/50 each: scale 5
        answers = p.transcript.answers
    assert {a.scale for a in answers} == {5.0}
    noise = np.array([a.value - 20 for a in answers]) / 5.0
    # a sum of 1200 squares of standard Gaussians, within 1e-9 on either side (Laurent and Massart)
    assert (
        1200 - 2 * np.sqrt(1200 * 20.8) < (noise**2).sum() < 1200 + 2 * np.sqrt(1200 * 20.8) + 41.6
    )


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_the_loss_never_exceeds_the_charge(unit: Any) -> None:
    queries = KINDS["ranges"]

    def run(private: Any) -> None:
        share = private.rho / 8
        estimates = {c: np.full(queries.shape(c), 2.0) for c in queries.cliques}
        for signed in (False, True):
            found = private.select_query(
                queries, QueryGap(estimates, signed=signed), rho=share, times=2
            )
            private.measure_queries([TOTAL, *(s.chosen for s in found)], Gaussian(rho=share))

    for seed in range(6):
        one, other = neighbors(unit, np.random.default_rng(seed), worst=seed % 2 == 0)
        loss, charged = loss_replay(run, one, other, unit, Budget.zcdp(Fraction(2)), seed=seed)
        assert charged == 1
        assert 0 <= loss <= charged


# What they leave behind.


def _asked() -> Release:
    made = fake_model.release()
    queries = QueryFamily.prefixes(made.schema.domain, [("age", "sex"), ("job",)], ["age"])
    half = made.account.rho_budget / 1000
    entries = (
        *made.transcript.entries,
        Answer(TOTAL, 310, 4.0, half),
        QuerySelection(queries, 3, 1, 0.5, 1.0, half, without=frozenset({0})),
        Answer(queries[3], -2, 4.0, half),
        QuerySelection(queries, 0, -1, 0.5, 1.0, half, signed=True),
        Selection(
            (("age",), ("sex",)), ("sex",), 0.5, 4.0, half, readable=(("sex",),), public=True
        ),
        PublicReading(("sex",), np.array([10.5, 20.25]), np.array([3.5, np.inf]), "f00d"),
    )
    return replace(made, transcript=Transcript(entries))


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "fake", fake_model.FAMILY)


def test_a_saved_release_holds_them(tmp_path: Path) -> None:
    made = _asked()
    path = tmp_path / "a.margrave"
    made.save(path)
    back = Release.load(path, verify=False)
    assert back.transcript.answers == made.transcript.answers
    for one, other in zip(
        back.transcript.query_selections, made.transcript.query_selections, strict=True
    ):
        assert one.queries.cliques == other.queries.cliques
        assert one.chosen == other.chosen
        for name in ("number", "sign", "epsilon", "sensitivity", "rho", "signed", "without"):
            assert getattr(one, name) == getattr(other, name)
    first, second = back.transcript.query_selections
    assert first.queries is second.queries
    (reading,) = back.transcript.readings
    assert (reading.clique, reading.scale, reading.source) == (("sex",), 3.5, "f00d")
    assert reading.values.tolist() == [10.5, 20.25]
    assert back.transcript.evidence[-1] is reading
    choice = back.transcript.selections[-1]
    assert choice.public
    assert choice.readable == (("sex",),)
    lines = json.dumps(back.certificate())
    assert '"read": ["sex"]' in lines
    assert '"asked": "all records"' in lines
    assert '"selected": "age 0-1, sex 1"' in lines


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("answer", "codes", [[99], [0]]),
        ("answer", "clique", ["nowhere"]),
        ("answer", "value", 1.5),
        ("answer", "value", 2**70),
        ("answer", "scale", 0),
        ("query-selection", "number", 10**6),
        ("query-selection", "number", 0),
        ("query-selection", "sign", 2),
        ("query-selection", "signed", "yes"),
        ("query-selection", "without", [10**6]),
        ("query-selection", "queries", 0),
        ("query-selection", "queries", 10**6),
        ("query-selection", "queries", {"cliques": [], "sets": {}}),
        ("query-selection", "queries", {"cliques": [["age"]], "sets": {"age": "missing"}}),
        ("public-reading", "scales", 0),
        ("public-reading", "clique", ["job"]),
        ("public-reading", "source", 5),
        ("public-selection", "readable", [["job"]]),
        ("public-selection", "readable", []),
        ("public-selection", "public", 1),
    ],
)
def test_a_file_is_not_believed(kind: str, field: str, value: Any) -> None:
    from margrave.release.serialization import Shelf
    from margrave.release.transcript_codec import transcript_from_plain, transcript_to_plain

    made, shelf = _asked(), Shelf()
    plain = transcript_to_plain(made.transcript, shelf)
    assert len(transcript_from_plain(plain, shelf, made.schema.domain)) == len(plain)
    fits = {
        "answer": lambda e: e["type"] == "answer" and e["clique"],
        "public-selection": lambda e: e["type"] == "selection" and e["public"],
    }.get(kind, lambda e: e["type"] == kind)
    entry = next(e for e in plain if fits(e))
    entry[field] = value
    with pytest.raises(ReleaseError):
        transcript_from_plain(plain, shelf, made.schema.domain)


def test_the_number_of_records_may_have_been_asked() -> None:
    rho = Fraction(1, 10)
    assert Transcript((Answer(TOTAL, 90, 3.0, rho),)).total() == 90
    assert Transcript(
        (Answer(TOTAL, 90, 3.0, rho), Answer(TOTAL, 100, 1.0, rho))
    ).total() == pytest.approx(99)
    assert Transcript((Answer(LinearQuery(("a",), ((0,),)), 90, 3.0, rho),)).total() == 1.0


def test_a_domain_of_many_queries_is_numbered_without_listing_them() -> None:
    domain = Domain.of({f"x{i}": 40 for i in range(20)})
    queries = QueryFamily.cells(domain, list(product(["x0"], ["x1", "x2"], ["x3", "x4"])))
    assert len(queries) == 4 * 40**3
    assert queries[40**3 + 41] == LinearQuery(("x0", "x1", "x4"), ((0,), (1,), (1,)))
