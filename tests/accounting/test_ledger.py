"""The ledger: exact, written ahead, never above its limit."""

from __future__ import annotations

import threading
from fractions import Fraction

import numpy as np
import pytest

from margrave.account import Debit
from margrave.accounting import Accountant, Budget
from margrave.errors import BudgetError, InputError


def test_the_eleventh_tenth_is_refused() -> None:
    ledger = Accountant(Fraction(1))
    for _ in range(10):
        ledger.charge("a tenth", Fraction(1, 10))
    assert ledger.remaining == 0
    with pytest.raises(BudgetError, match="0 remains"):
        ledger.charge("one more", Fraction(1, 10))
    with pytest.raises(BudgetError):
        ledger.charge("the smallest thing", Fraction(1, 10**100))


def test_twenty_thousand_random_splits() -> None:
    """Shares that make up the whole are all granted, to the last bit; anything above is not."""
    rng = np.random.default_rng(5)
    overspent = refused = 0
    for _ in range(20_000):
        whole = Fraction(float(rng.uniform(1e-6, 10)))
        cuts = sorted(Fraction(float(u)) for u in rng.uniform(size=int(rng.integers(1, 6))))
        shares = [
            whole * (b - a)
            for a, b in zip([Fraction(0), *cuts], [*cuts, Fraction(1)], strict=True)
            if b > a
        ]
        ledger = Accountant(whole)
        try:
            for share in shares:
                ledger.charge("a share", share)
        except BudgetError:
            refused += 1
        try:
            ledger.charge("a crumb", Fraction(1, 2**200))
            overspent += 1
        except BudgetError:
            pass
    assert (overspent, refused) == (0, 0)


def test_a_refused_charge_changes_nothing() -> None:
    ledger = Accountant(Fraction(1))
    ledger.charge("half", Fraction(1, 2))
    with pytest.raises(BudgetError):
        ledger.charge("too much", Fraction(2, 3))
    assert ledger.spent == Fraction(1, 2)
    assert ledger.debits == (Debit("half", Fraction(1, 2)),)
    ledger.charge("the other half", Fraction(1, 2))
    assert ledger.remaining == 0


def test_threads_charging_at_once_share_one_limit() -> None:
    price, threads, tries = Fraction(1, 300), 4, 200
    for _ in range(5):
        ledger = Accountant(Fraction(1))
        granted = [0] * threads
        start = threading.Barrier(threads)

        def spend(
            i: int,
            ledger: Accountant = ledger,
            granted: list[int] = granted,
            start: threading.Barrier = start,
        ) -> None:
            start.wait()
            for _ in range(tries):
                try:
                    ledger.charge("a share", price)
                    granted[i] += 1
                except BudgetError:
                    pass

        workers = [threading.Thread(target=spend, args=(i,)) for i in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert sum(granted) == 300
        assert len(ledger.debits) == 300
        assert ledger.remaining == 0


@pytest.mark.parametrize(
    "rho", [0.1, float("nan"), "1", None, True, 0, Fraction(0), Fraction(-1, 2), np.float64(0.5)]
)
def test_only_positive_exact_amounts(rho: Fraction) -> None:
    ledger = Accountant(Fraction(1))
    with pytest.raises(InputError):
        ledger.charge("something", rho)
    with pytest.raises(InputError):
        Accountant(rho)
    assert ledger.debits == ()


def test_the_journal_is_written_before_the_charge_counts() -> None:
    written: list[Debit] = []
    ledger = Accountant(Fraction(1), on_charge=written.append)
    ledger.charge("half", Fraction(1, 2))
    with pytest.raises(BudgetError):
        ledger.charge("too much", Fraction(1))
    assert written == list(ledger.debits) == [Debit("half", Fraction(1, 2))]


def test_without_its_journal_nothing_is_charged() -> None:
    def full(debit: Debit) -> None:
        raise OSError("no space left")

    ledger = Accountant(Budget.approx(1.0, 1e-9).rho, on_charge=full)
    with pytest.raises(OSError, match="no space"):
        ledger.charge("half", ledger.limit / 2)
    assert ledger.spent == 0
    assert ledger.debits == ()
