"""Delta for thresholds: a second exact column from the budget to the ledger and its command."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from margrave.account import Debit
from margrave.accounting import Accountant, AddRemoveRow, Budget, Ledger
from margrave.accounting.budget import epsilon_for, rho_for
from margrave.cli.main import run
from margrave.data import read_table
from margrave.errors import BudgetError, InputError, LedgerError
from margrave.privacy import Private, SeededRandomness, protect
from margrave.schema import Categorical, Learn, Schema
from tests.support import chained

CAP = Budget.zcdp(Fraction(1), 1e-6, 1e-7)
DELTA = Fraction(CAP.threshold_delta)
HALF = DELTA / 2


# Budgets.


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.999])
def test_rho_implies_epsilon_at_what_thresholds_leave(epsilon: float, share: float) -> None:
    delta, part = 1e-9, share * 1e-9
    budget = Budget.approx(epsilon, delta, threshold_delta=part)
    left = budget.conversion_delta
    assert Fraction(left) <= Fraction(delta) - Fraction(part)
    assert left > (delta - part) * (1 - 1e-12)
    assert (budget.epsilon, budget.delta, budget.threshold_delta) == (epsilon, delta, part)
    assert budget.rho == Fraction(rho_for(epsilon, left)) < Budget.approx(epsilon, delta).rho
    zcdp = Budget.zcdp(budget.rho, delta, part)
    assert zcdp.epsilon == epsilon_for(budget.rho, left) > epsilon_for(budget.rho, delta)
    assert zcdp.epsilon <= epsilon * (1 + 1e-12)


def test_a_tenth_of_delta_for_thresholds_costs_little_rho() -> None:
    ratio = Budget.approx(1.0, 1e-9, 1e-10).rho / Budget.approx(1.0, 1e-9).rho
    assert Fraction(99, 100) < ratio < 1


def test_a_budget_with_the_rho_of_the_whole_delta_is_refused() -> None:
    whole = Budget.approx(1.0, 1e-9)
    with pytest.raises(InputError, match="not 1"):
        Budget(whole.rho, 1.0, 1e-9, 5e-10)
    assert Budget(whole.rho, 1.0, 1e-9) == whole


@pytest.mark.parametrize("part", [1e-9, 2e-9, -1e-12, 1e-9 - 1e-30, "x", True, None])
def test_thresholds_take_a_part_of_delta(part: Any) -> None:
    for make in (
        lambda: Budget.approx(1.0, 1e-9, part),
        lambda: Budget.zcdp(Fraction(1), 1e-9, part),
        lambda: Budget(Fraction(1, 100), 1.0, 1e-9, part),
    ):
        with pytest.raises(InputError, match="threshold_delta"):
            make()


# The accountant.


def test_both_sums_are_exact_and_neither_is_exceeded() -> None:
    ledger = Accountant(Fraction(1), delta_limit=Fraction(1, 10**9))
    for _ in range(10):
        ledger.charge("a tenth", Fraction(1, 20), Fraction(1, 10**10))
    assert (ledger.remaining, ledger.remaining_delta) == (Fraction(1, 2), 0)
    before = ledger.debits
    with pytest.raises(BudgetError, match="delta = 1e-300; 0 remains for thresholds"):
        ledger.charge("more", Fraction(1, 20), Fraction(1, 10**300))
    with pytest.raises(BudgetError, match="rho"):
        ledger.charge("more", Fraction(51, 100))
    assert ledger.debits == before
    assert before[0] == Debit("a tenth", Fraction(1, 20), Fraction(1, 10**10))
    ledger.charge("the rest", Fraction(1, 2))
    assert ledger.remaining == 0


def test_the_journal_sees_both_amounts_before_either_counts() -> None:
    written: list[tuple[Debit, Fraction]] = []
    ledger = Accountant(
        Fraction(1), lambda d: written.append((d, ledger._spent_delta)), Fraction(1, 10)
    )
    ledger.charge("a", Fraction(1, 4), Fraction(1, 20))
    assert written == [(Debit("a", Fraction(1, 4), Fraction(1, 20)), Fraction(0))]


@pytest.mark.parametrize("delta", [0.1, -1, 1, True, "1/10"])
def test_only_exact_deltas(delta: Any) -> None:
    ledger = Accountant(Fraction(1), delta_limit=Fraction(1, 2))
    with pytest.raises(InputError, match="delta"):
        ledger.charge("a", Fraction(1, 4), delta)
    with pytest.raises(InputError, match="delta"):
        Accountant(Fraction(1), delta_limit=delta)


# The ledger file.


def opened(path: Path, rho: Fraction, part: float, **more: Any) -> Private:
    own = Schema([Learn("town", "categorical"), Categorical("sort", ["a"])])
    rows = pa.table({"town": ["Bern"] * 50, "sort": ["a"] * 50})
    return protect(
        read_table(rows, own),
        unit=AddRemoveRow(),
        budget=Budget.zcdp(rho, 1e-6, part),
        randomness=SeededRandomness(1),
        ledger=path,
        dataset="d",
        **more,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Ledger(tmp_path / "ledger").init("d", unit=AddRemoveRow(), cap=CAP)
    return tmp_path / "ledger"


def test_a_run_reserves_delta_and_gives_back_what_it_did_not_spend(path: Path) -> None:
    with opened(path, Fraction(1, 4), float(DELTA)) as private:
        (state,) = Ledger(path).datasets()
        assert (state.charged_delta, state.remaining_delta) == (DELTA, 0)
        with pytest.raises(BudgetError, match="leaves delta = 0 for thresholds; this run, which"):
            opened(path, Fraction(1, 4), 1e-12)
        private.discover("town", rho=Fraction(1, 8), delta=HALF)
    (state,) = Ledger(path).datasets()
    assert (state.charged_delta, state.remaining_delta) == (HALF, HALF)
    assert state.to_dict()["charged"]["threshold_delta"]["exact"] == str(HALF)
    assert state.to_dict()["remaining"]["threshold_delta"]["exact"] == str(HALF)
    with opened(path, Fraction(1, 4), float(HALF)) as private:
        private.discover("town", rho=Fraction(1, 8), delta=HALF)
    with pytest.raises(BudgetError, match="for thresholds"):
        opened(path, Fraction(1, 4), 1e-12)
    with opened(path, Fraction(1, 4), 0.0):
        pass
    assert [e["delta"] for e in chained.events(path) if e["event"] == "debit"] == [str(HALF)] * 2


def test_a_cap_without_delta_for_thresholds_refuses_a_run_that_needs_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    Ledger(path).init("d", unit=AddRemoveRow(), cap=Budget.zcdp(Fraction(1), 1e-6))
    before = path.read_bytes()
    with pytest.raises(BudgetError, match=r"leaves delta = 0 .*--threshold-delta"):
        opened(path, Fraction(1, 4), 1e-8)
    assert path.read_bytes() == before


def test_without_thresholds_a_ledger_and_an_account_have_no_such_column(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    Ledger(path).init("d", unit=AddRemoveRow(), cap=Budget.zcdp(Fraction(1), 1e-6))
    with opened(path, Fraction(1, 4), 0.0) as private:
        pass
    plain = (
        chained.events(path),
        Ledger(path).datasets()[0].to_dict(),
        private.account().to_dict(),
    )
    words = json.dumps(plain).replace('"delta": 1e-06', "")
    assert "delta" not in words


@pytest.mark.parametrize(
    ("event", "change"),
    [
        ("debit", {"delta": str(2 * DELTA)}),
        ("debit", {"delta": "0"}),
        ("debit", {"delta": 1e-9}),
        ("open", {"delta": str(2 * DELTA)}),
        ("open", {"charged_delta": "0/1"}),
        ("close", {"charged_delta": "0/1"}),
        ("dataset", {"threshold_delta": 1e-5}),
        ("dataset", {"threshold_delta": "1e-7"}),
    ],
)
def test_lines_that_no_ledger_could_hold_are_refused(
    path: Path, event: str, change: dict[str, Any]
) -> None:
    with opened(path, Fraction(1, 4), float(DELTA)) as private:
        private.discover("town", rho=Fraction(1, 8), delta=HALF)
    rewritten = [e | change if e["event"] == event else e for e in chained.events(path)]
    chained.put_events(path, "ledger", rewritten)
    with pytest.raises(LedgerError, match="line"):
        Ledger(path).datasets()


# The command.


def test_the_command_sets_and_shows_delta_for_thresholds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ledger"
    words = ["ledger", "init", str(path), "--dataset", "d", "--unit", "add-remove-row"]
    words += ["--rho", "1", "--delta", "1e-6", "--threshold-delta", "1e-7"]
    assert run(words) == 0
    assert "delta 1e-06 (1e-07 of it for thresholds)" in capsys.readouterr().out
    (state,) = Ledger(path).datasets()
    assert state.cap.threshold_delta == pytest.approx(float(DELTA), rel=1e-14)
    with opened(path, Fraction(1, 4), float(DELTA)) as private:
        private.discover("town", rho=Fraction(1, 8), delta=HALF)
    assert run(["ledger", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "thresholds" in shown
    assert "delta 5e-08 charged, 5e-08 remains" in shown


@pytest.mark.parametrize(
    ("cap", "yearly"),
    [
        (Budget.approx(3.0, 1e-8, 5e-9), Budget.approx(1.25, 1e-8, 1e-9)),
        (Budget.approx(3.0, 1e-11, 5e-12), Budget.approx(1.25, 1e-11, 1e-12)),
        (Budget.zcdp(0.5, 1e-9, 5e-10), Budget.zcdp(0.1, 1e-9, 1e-10)),
    ],
)
def test_five_equal_parts_of_a_cap_fit_and_a_sixth_does_not(
    cap: Budget, yearly: Budget, tmp_path: Path
) -> None:
    """Floats round the parts, so that their exact sum may exceed the cap; epsilon and delta cover that."""
    ledger = Ledger(tmp_path / "visits.ledger")
    ledger.init("visits", unit="add-remove-row", cap=cap)
    part = Fraction(yearly.threshold_delta)
    assert 5 * part > Fraction(cap.threshold_delta) or 5 * yearly.rho > cap.rho
    for _ in range(5):
        ledger.begin("visits", AddRemoveRow(), yearly.rho, threshold_delta=part)
    (state,) = ledger.datasets()
    assert state.charged == 5 * yearly.rho, "all that is spent is charged"
    assert state.charged_delta == 5 * part
    assert state.charged <= cap.room
    with pytest.raises(BudgetError):
        ledger.begin("visits", AddRemoveRow(), yearly.rho, threshold_delta=part)


@pytest.mark.parametrize(
    "cap",
    [Budget.approx(3.0, 1e-9, 5e-10), Budget.zcdp(0.5, 1e-9, 5e-10), Budget.zcdp(Fraction(1, 2))],
)
def test_epsilon_and_delta_cover_the_room_of_a_cap(cap: Budget) -> None:
    at = Fraction(cap.delta) - cap.threshold_room
    assert at >= Fraction(cap.conversion_delta), "the room for thresholds is taken off delta"
    assert Budget(cap.room, cap.epsilon, cap.delta, cap.threshold_delta).epsilon == cap.epsilon


def test_a_run_that_misses_a_cap_by_a_rounding_gets_the_remedy(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "visits.ledger")
    ledger.init("visits", unit="add-remove-row", cap=Budget.zcdp(Fraction(1, 2)))
    for _ in range(4):
        ledger.begin("visits", AddRemoveRow(), Fraction(0.1))
    with pytest.raises(BudgetError, match=r"by the rounding of floats.*Fraction\(1, 10\)"):
        ledger.begin("visits", AddRemoveRow(), Fraction(0.1))
