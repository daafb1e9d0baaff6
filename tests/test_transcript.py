"""The transcript: answers in order, and the number of records that they tell."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from margrave.account import Account, Debit
from margrave.domain import Domain
from margrave.marginal import HalfSpace, LinearMap, LinearQuery, QueryFamily
from margrave.transcript import (
    Answer,
    Measurement,
    PublicReading,
    PublicTotal,
    QuerySelection,
    Selection,
    Transcript,
)
from margrave.unit import AddRemoveRow
from tests.support.strategies import measurement

ONE = measurement(("a",), [30, 20], 2.0)
TWO = measurement(("a", "b"), [[10, 12, 9], [8, 7, 6]], 1.0)
CHOICE = Selection((("a",), ("a", "b")), ("a", "b"), 0.5, 1.0, Fraction(1, 32))


def test_a_public_total_is_believed_wherever_it_stands() -> None:
    assert Transcript((PublicTotal(77), ONE)).total() == 77.0
    assert Transcript((ONE, CHOICE, PublicTotal(77), TWO)).total() == 77.0


def test_one_measurement_tells_the_sum_of_its_cells() -> None:
    assert Transcript((ONE,)).total() == pytest.approx(50.0)
    assert Transcript((CHOICE, TWO)).total() == pytest.approx(52.0)


def test_several_are_averaged_by_the_variance_of_their_sums() -> None:
    """Variances 2 · 4 = 8 and 6 · 1 = 6."""
    assert Transcript((ONE, TWO)).total() == pytest.approx((50 / 8 + 52 / 6) / (1 / 8 + 1 / 6))


def test_an_answer_over_groups_counts_its_own_cells() -> None:
    grouped = measurement(("b",), [40, 8], 1.0, LinearMap({"b": np.array([0, 0, 1])}))
    assert Transcript((ONE, grouped)).total() == pytest.approx((50 / 8 + 48 / 2) / (1 / 8 + 1 / 2))


def test_a_total_is_at_least_one() -> None:
    assert Transcript().total() == 1.0
    assert Transcript((PublicTotal(0), ONE)).total() == 1.0
    assert Transcript((CHOICE,)).total() == 1.0
    assert Transcript((measurement(("a",), [-30, 2], 5.0),)).total() == 1.0
    assert Transcript((measurement(("a",), [0, 0], 5.0),)).total() == 1.0


def test_the_total_is_unbiased_and_as_precise_as_it_says() -> None:
    """4,000 draws; 7 standard errors are under 1e-10 by chance, and an even average would miss by a factor of 3."""
    rng = np.random.default_rng(0)
    truth = np.full((2, 3), 500.0)
    found = []
    for _ in range(4_000):
        coarse = measurement(("a",), truth.sum(1) + rng.normal(scale=100.0, size=2), 100.0)
        fine = measurement(("a", "b"), truth + rng.normal(scale=20.0, size=(2, 3)), 20.0)
        found.append(Transcript((coarse, fine)).total() - 3_000.0)
    expected = 1.0 / (1 / (2 * 100.0**2) + 1 / (6 * 20.0**2))
    assert abs(np.mean(found)) < 7 * np.sqrt(expected / 4_000)
    assert abs(np.var(found) / expected - 1) < 7 * np.sqrt(2 / 4_000)


def test_adding_appends_and_changes_neither() -> None:
    first, second = Transcript((ONE, CHOICE)), Transcript((TWO, ONE))
    both = first + second
    assert list(both) == [ONE, CHOICE, TWO, ONE]
    assert (len(first), len(second), len(both)) == (2, 2, 4)
    assert both.measurements == (ONE, TWO, ONE)
    assert both.selections == (CHOICE,)
    assert both.cliques == (("a",), ("a", "b"))
    assert not len(Transcript())


def test_every_entry_is_plain_data_with_what_was_answered() -> None:
    domain = Domain.of({"a": 2, "b": 3})
    groups = LinearMap({"b": np.array([0, 1, 1])})
    cell = LinearQuery(("a", "b"), ((1,), (0, 2)))
    smooth = HalfSpace.of(domain, {"a": 1.0}, 0.5, slope=2.0)
    queries = QueryFamily.cells(domain, [("a", "b")])
    scales = np.array([2.0, np.inf])
    transcript = Transcript((
        PublicTotal(50),
        Measurement(("a", "b"), np.array([[12, -2], [9, 31]]), 2.0, Fraction(1, 8), groups),
        Answer(cell, 7, 4.0, Fraction(1, 32)),
        Answer(smooth, 2_500_000, 4e6, Fraction(1, 32)),
        CHOICE,
        replace(CHOICE, readable=(("a",),), chosen=("a",), public=True),
        QuerySelection(queries, 5, -1, 0.5, 1.0, Fraction(1, 32), signed=True, without=frozenset({1, 2})),
        QuerySelection(queries, 5, 1, 0.5, 1.0, Fraction(1, 32)),
        PublicReading(("a",), np.array([30.5, 19.5]), scales, "c0ffee"),
        PublicReading(("a",), np.array([30.5, 19.5]), np.full(2, np.inf), "c0ffee"),
    ))  # fmt: skip
    plain = transcript.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    total, measured, answer, smoothly, choice, read, signed, unsigned, reading, nothing = plain[
        "entries"
    ]
    assert total == {"public_total": 50}
    assert measured["measured"] == ["a", "b"]
    assert measured["values"] == [[12, -2], [9, 31]]
    assert (measured["scale"], measured["rho"]) == (2.0, 0.125)
    assert measured["groups"] == {"b": [0, 1, 1]}
    assert (answer["asked"], answer["value"], answer["scale"]) == ("a 1, b 0 or 2", 7, 4.0)
    assert answer["query"] == {"clique": ["a", "b"], "codes": [[1], [0, 2]]}
    assert (smoothly["value"], smoothly["scale"]) == (
        2.5,
        4.0,
    )  # in records, not in millionths of one
    assert (choice["selected"], choice["candidates"]) == (["a", "b"], 2)
    assert (read["selected"], read["to_read"], read["readable"]) == (["a"], True, 1)
    assert (signed["selected"], signed["candidates"], signed["sign"]) == ("a 1, b 2", 8, -1)
    assert unsigned["candidates"] == 6
    assert "sign" not in unsigned
    assert (reading["values"], reading["scales"], reading["source"]) == (
        [30.5, 19.5],
        [2.0, None],
        "c0ffee",
    )
    assert nothing["scale"] is None


def test_an_account_is_plain_data_in_exact_fractions() -> None:
    debits = (Debit("a third", Fraction(1, 3)), Debit("a seventh", Fraction(1, 7)))
    plain = Account(AddRemoveRow(), Fraction(1), 1.0, 1e-9, debits, private=True).to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert sum(Fraction(d["rho"]) for d in plain["debits"]) == Fraction(10, 21)
    assert (plain["unit"], plain["rho_budget"], plain["private"]) == (
        "add-remove-row",
        "1",
        True,
    )


def test_an_account_adds_up_exactly() -> None:
    debits = tuple(Debit("a tenth", Fraction(1, 10)) for _ in range(3))
    account = Account(AddRemoveRow(), Fraction(1), 1.0, 1e-9, debits, private=True)
    assert account.rho_spent == Fraction(3, 10)
    assert Account(AddRemoveRow(), Fraction(1), 1.0, 1e-9, (), private=True).rho_spent == 0
