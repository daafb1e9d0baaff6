"""Discovery: the frequent values of an open column, at an exact price in rho and delta."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margrave.accounting import (
    AddRemovePerson,
    AddRemoveRow,
    Budget,
    ReplacePerson,
    ReplaceRow,
    Unit,
)
from margrave.accounting.thresholds import threshold_for
from margrave.data import MemoryTable, read_table
from margrave.errors import BudgetError, InputError, LedgerError
from margrave.privacy import Gaussian, Private, SeededRandomness, SystemRandomness, protect
from margrave.schema import Categorical, Integer, Learn, Schema
from margrave.testing.replay import Recorder, ReplayRandomness, loss_replay
from margrave.transcript import Discovery
from margrave.types import IntArray

UNITS = [AddRemoveRow(), ReplaceRow(), AddRemovePerson(3), ReplacePerson(3)]
EVERY_UNIT = pytest.mark.parametrize("unit", UNITS, ids=str)
BUDGET = Budget.approx(2.0, 1e-6, threshold_delta=1e-7)
RHO, DELTA = BUDGET.rho / 4, Fraction(BUDGET.threshold_delta) / 2
TOWNS = ["Bern"] * 400 + ["Basel"] * 300 + ["Zug"] * 20 + [None] * 90


def table(towns: Sequence[Any], persons: Sequence[int] | None = None) -> MemoryTable:
    columns = (Learn("town", "categorical"), Categorical("sort", ["a", "b"]))
    frame: dict[str, Any] = {"town": pa.array(list(towns), pa.string()), "sort": ["a"] * len(towns)}
    if persons is not None:
        frame["who"] = list(persons)
    own = Schema(columns, person=None if persons is None else "who")
    return read_table(pa.table(frame), own)


def opened(towns: Sequence[Any] = TOWNS, source: Any = None, **more: Any) -> Private:
    words: dict[str, Any] = {"unit": AddRemoveRow(), "budget": BUDGET, **more}
    return protect(table(towns), randomness=source or SeededRandomness(1), **words)


def discover(private: Private, listed: Sequence[str] = ()) -> Discovery:
    return private.discover("town", rho=RHO, delta=DELTA, listed=listed)


class Still:
    """Noise of 0, so that a test sees what is counted."""

    def describe(self) -> str:
        return "NOT PRIVATE: no noise"

    def gaussian(self, counts: IntArray, scale: float) -> IntArray:
        return counts.copy()

    def choose(self, scores: Sequence[int] | IntArray, temperature: Fraction) -> int:
        return 0


# Answers.


def test_values_from_the_threshold_on_are_named_in_the_order_of_their_texts() -> None:
    recorder = Recorder(SeededRandomness(1))
    private = opened(source=recorder)
    found = discover(private)
    assert found.values == ("Basel", "Bern")
    assert found.scale == Gaussian.scale_for(RHO, AddRemoveRow())
    assert found.threshold == threshold_for(AddRemoveRow(), found.scale, DELTA)
    (step,) = recorder.steps
    assert step.truth.tolist() == [300, 400, 20, 90]  # type: ignore[union-attr]
    noisy = step.answer.tolist()  # type: ignore[union-attr]
    assert found.counts.tolist() == [noisy[0], noisy[1], noisy[3]]
    assert (found.discovered, found.missing) == ({"Basel": noisy[0], "Bern": noisy[1]}, noisy[3])
    assert private.transcript.discoveries == (found,)


def test_counts_at_the_threshold_are_named_and_counts_below_are_not() -> None:
    threshold = discover(opened()).threshold
    towns = ["at"] * threshold + ["below"] * (threshold - 1)
    assert discover(opened(towns, Still())).values == ("at",)


def test_noise_decides_and_not_the_true_count() -> None:
    """A value at the threshold is named about every other time."""
    threshold = discover(opened()).threshold
    named = [
        discover(opened(["at"] * threshold, SeededRandomness(seed))).values for seed in range(60)
    ]
    assert 15 < named.count(("at",)) < 45


def test_listed_values_need_no_threshold_and_no_rows() -> None:
    found = discover(opened(source=Still()), listed=[" Zug ", "Genf", "Bern"])
    assert found.values == ("Zug", "Genf", "Bern", "Basel")
    assert found.counts.tolist() == [20, 0, 400, 300, 90]
    assert found.listed == 3
    assert found.discovered == {"Basel": 300}


def test_values_are_texts_without_blanks_around_them() -> None:
    found = discover(opened([" Bern"] * 200 + ["Bern  "] * 200 + ["  "] * 70, Still()))
    assert found.values == ("Bern",)
    assert found.counts.tolist() == [400, 70]


@pytest.mark.parametrize("odd", ["two\nlines", "bell\a", "x" * 201, "left\u202eright", "\x00?ab"])
def test_values_that_no_name_may_hold_are_left_out(odd: str) -> None:
    found = discover(opened([*TOWNS, *[odd] * 900], Still()))
    assert found.values == ("Basel", "Bern")
    assert found.counts.tolist() == [300, 400, 90]


def test_a_column_without_values() -> None:
    found = discover(opened([None] * 9, Still()))
    assert found.values == ()
    assert found.counts.tolist() == [9]


# Prices.


@EVERY_UNIT
def test_no_neighbor_loses_more_than_the_charge_and_the_worst_loses_it(unit: Unit) -> None:
    """Neighbors with the same values, so that all of the loss is in rho."""
    by_person = isinstance(unit, AddRemovePerson | ReplacePerson)
    many = 3 if by_person else 1
    base = ["Bern"] * 30 + ["Basel"] * 30 + [None] * 9
    persons = list(range(1, 1 + len(base)))

    def made(own: Sequence[Any]) -> MemoryTable:
        whole = [*base, *own]
        return table(whole, [*persons, *[999] * len(own)] if by_person else None)

    replaced = isinstance(unit, ReplaceRow | ReplacePerson)
    there = [["Basel"], [None]] if replaced else [[]]
    ratios = []
    for one in (["Bern"], [None]):
        for other in there:
            pair = made(one * many), made(other * many)
            for here, neighbor in (pair, pair[::-1]):
                loss, charge = loss_replay(discover, here, neighbor, unit, BUDGET)
                assert loss <= charge == RHO
                ratios.append(loss / charge)
    assert max(ratios) > Fraction(999, 1000)


@EVERY_UNIT
def test_values_of_a_unit_alone_are_named_with_a_chance_of_delta_at_most(unit: Unit) -> None:
    """The chance of every way in which a unit's rows can be of values that nobody else has."""
    by_person = isinstance(unit, AddRemovePerson | ReplacePerson)
    many = 3 if by_person else 1
    words: dict[str, Any] = {"unit": unit, "budget": BUDGET, "randomness": SeededRandomness(1)}
    chances = []
    for split in ([3], [2, 1], [1, 1, 1]) if by_person else ([1],):
        own = [f"own {i}" for i, rows in enumerate(split) for _ in range(rows)]
        towns = [*["Bern"] * 50, *own]
        rows = table(towns, [*range(1, 51), *[999] * len(own)] if by_person else None)
        with protect(rows, **words) as private:
            found = discover(private)
        hidden = 1.0
        for rows_of_value in split:
            hidden *= 1 - tail(found.scale, found.threshold - rows_of_value)
        chances.append(1 - hidden)
    assert len(own) == many
    assert 0.5 * float(DELTA) < max(chances) <= float(DELTA) * (1 + 1e-6)


def tail(scale: float, least: int) -> float:
    values = range(least, least + int(40 * scale))
    mass = math.sqrt(2 * math.pi) * scale
    return math.fsum(math.exp(-((v / scale) ** 2) / 2) for v in values) / mass


def test_persons_are_cut_before_their_values_are_counted() -> None:
    rows = table(["Bern"] * 12, [1, 2, 3] * 4)
    with protect(rows, unit=AddRemovePerson(3), budget=BUDGET, randomness=Still()) as private:
        assert private.discover("town", rho=RHO, delta=DELTA, listed=["Bern"]).counts[0] == 9


def test_both_prices_are_charged_before_anything_is_drawn() -> None:
    class Failing(Still):
        def gaussian(self, counts: IntArray, scale: float) -> IntArray:
            raise RuntimeError(f"{counts}")

    private = opened(source=Failing())
    with pytest.raises(Exception, match="The charge stands") as caught:
        discover(private)
    assert "400" not in str(caught.value)
    account = private.account()
    assert (account.rho_spent, account.delta_spent) == (RHO, DELTA)
    (debit,) = account.debits
    assert debit.what == "discover values of town"
    assert account.to_dict()["debits"][0]["delta"] == str(DELTA)
    assert account.to_dict()["threshold_delta"] == 1e-7


def test_delta_is_never_spent_twice() -> None:
    private = opened()
    discover(private)
    assert private.remaining_delta == DELTA
    discover(private)
    with pytest.raises(BudgetError, match="would cost delta = 5e-08; 0 remains"):
        discover(private)
    assert (private.remaining, private.remaining_delta) == (BUDGET.rho / 2, 0)
    assert len(private.transcript) == 2


def test_budgets_without_delta_for_thresholds_discover_nothing() -> None:
    private = opened(budget=Budget.approx(2.0, 1e-6))
    with pytest.raises(BudgetError, match="0 remains for thresholds"):
        discover(private)
    with pytest.raises(InputError, match="Without delta no threshold"):
        private.discover("town", rho=RHO, delta=Fraction(0))
    with pytest.raises(InputError, match="not a Fraction"):
        private.discover("town", rho=RHO, delta=1e-9)  # type: ignore[arg-type]
    assert private.remaining == private.rho


def test_only_categories_to_learn_are_discovered() -> None:
    columns = [Learn("town", "categorical"), Learn("age", "integer"), Categorical("sort", ["a"])]
    rows = pa.table({"town": ["Bern"], "age": [4], "sort": ["a"]})
    read = read_table(rows, Schema(columns))
    with protect(read, unit=AddRemoveRow(), budget=BUDGET, randomness=Still()) as private:
        for name in ("age", "sort", "nope"):
            with pytest.raises(InputError, match="not a column of categories to learn"):
                private.discover(name, rho=RHO, delta=DELTA)
        for listed in ("Bern", ["Bern", " Bern"], [4], [""], ["two\nlines"]):
            with pytest.raises(InputError, match="listed value"):
                private.discover("town", rho=RHO, delta=DELTA, listed=listed)  # type: ignore[arg-type]
        assert private.remaining == private.rho
        private.adopt(
            Schema([Categorical("town", ["x"], other=True), Integer("age", 0, 9), columns[2]])
        )
        with pytest.raises(InputError, match="not a column of categories to learn"):
            discover(private)


# What leaves depends on answers alone.


def test_the_order_of_rows_changes_nothing() -> None:
    expected = discover(opened()).to_dict()
    rng = np.random.default_rng(3)
    for _ in range(5):
        shuffled = [TOWNS[i] for i in rng.permutation(len(TOWNS))]
        assert discover(opened(shuffled)).to_dict() == expected


@EVERY_UNIT
def test_the_same_answers_to_other_rows_leave_the_same(unit: Unit) -> None:
    """Other counts, other values below the threshold, and the same noisy counts."""
    by_person = isinstance(unit, AddRemovePerson | ReplacePerson)

    def made(towns: Sequence[Any]) -> MemoryTable:
        return table(towns, list(range(1, 1 + len(towns))) if by_person else None)

    recorder, rare = Recorder(SeededRandomness(2)), [t for t in TOWNS if t != "Zug"] + ["Zug"]
    with protect(made(rare), unit=unit, budget=BUDGET, randomness=recorder) as private:
        first, account = discover(private, ["Genf"]).to_dict(), private.account().to_dict()
    assert first["values"] == ["Genf", "Basel", "Bern"]
    others = ["Bern"] * 10 + ["Basel"] * 790 + ["Wil"] * 9 + [None]
    replay = ReplayRandomness(recorder.steps)
    with protect(made(others), unit=unit, budget=BUDGET, randomness=replay) as private:
        again, charged = discover(private, ["Genf"]).to_dict(), private.account().to_dict()
    replay.finish()
    assert again == first
    assert charged["debits"] == account["debits"]


# Journals and ledgers.


def interrupted(private: Private, listed: Sequence[str] = ()) -> Discovery:
    """Discover once, and fail afterwards."""
    with suppress(KeyboardInterrupt), private:
        found = discover(private, listed)
        raise KeyboardInterrupt
    return found


def test_a_resumed_run_is_given_the_same_values_and_pays_once(tmp_path: Path) -> None:
    from margrave.accounting import Ledger

    ledger = Ledger(tmp_path / "ledger")
    ledger.init("d", unit="add-remove-row", cap=Budget.zcdp(Fraction(3), 1e-5, 1e-7))
    where = {"ledger": ledger.path, "dataset": "d", "journal": tmp_path / "journal"}
    towns = [*TOWNS, *["Genève"] * 300]
    first = interrupted(opened(towns, **where), ["Zug"])
    for _ in range(2):
        with opened(towns, **where, resume=True) as private:
            assert discover(private, ["Zug"]).to_dict() == first.to_dict()
            assert private.remaining_delta == DELTA
    (state,) = ledger.datasets()
    assert (state.charged, state.charged_delta) == (RHO, DELTA)
    assert state.runs[0].debits == private.account().debits
    head = private.account().ledger
    assert head is not None
    # while the run was open, all that it had reserved was charged
    assert Fraction(head.charged_delta) == Fraction(BUDGET.threshold_delta)


def test_a_question_with_another_threshold_is_not_answered_from_the_journal(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    interrupted(opened(journal=journal))
    for price in ({"rho": RHO, "delta": DELTA / 2}, {"rho": RHO / 2, "delta": DELTA}):
        private = opened(journal=journal, resume=True)
        with pytest.raises(LedgerError, match="Question 1 differs"):
            private.discover("town", **price)
        private._books.abandon()
    private = opened(journal=journal, resume=True)
    with pytest.raises(LedgerError, match="its listed differs"):
        discover(private, ["Zug"])


def test_the_journal_keeps_plain_data(tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    with opened(journal=tmp_path / "journal") as private:
        discover(private)
    with closing(sqlite3.connect(tmp_path / "journal")) as file:
        lines = [json.loads(text) for (text,) in file.execute("SELECT event FROM line")]
    (question,) = (line["question"] for line in lines if line["event"] == "question")
    assert question["delta"] == str(DELTA)
    assert "Zug" not in json.dumps(lines)


# Noise.


def test_with_the_system_s_randomness() -> None:
    towns = [t for t in TOWNS if t != "Zug"]
    found = discover(opened([*towns, "Zug"], SystemRandomness()))
    assert found.values == ("Basel", "Bern")
    assert np.abs(found.counts - [300, 400, 90]).max() < 12 * found.scale
