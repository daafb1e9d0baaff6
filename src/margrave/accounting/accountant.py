"""The ledger: exact sums, written before anything is drawn, never above the limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction

from margrave.account import Debit
from margrave.accounting.budget import MAX_RHO
from margrave.errors import BudgetError, InputError


class Accountant:
    """A budget of ``limit`` (zCDP), and of ``delta_limit`` for thresholds, with the debits against both.

    It is safe to charge from several threads.

    ``on_charge`` is a journal, called with each debit once it is known to fit and before it counts: if the journal
    cannot write, the charge fails, so that a record kept elsewhere never shows less than was answered.

    **Privacy:** rho-zCDP adds up, also when each question and its price depend on the answers before
    (Whitehouse et al. 2022), so the sum of the debits is the loss. Amounts are ``Fraction`` or ``int``: floats are
    refused, because ten float tenths exceed one. The deltas of thresholds add up likewise: each question is
    delta-approximately rho-zCDP (Bun and Steinke 2016).

    >>> ledger = Accountant(Fraction(1))
    >>> for _ in range(10):
    ...     ledger.charge("a tenth", Fraction(1, 10))
    >>> ledger.remaining
    Fraction(0, 1)
    """

    def __init__(
        self,
        limit: Fraction,
        on_charge: Callable[[Debit], None] | None = None,
        delta_limit: Fraction = Fraction(0),
    ) -> None:
        self._limit = exact_rho(limit, "The limit of the ledger")
        self._delta_limit = exact_delta(delta_limit, "The delta of the ledger")
        self._on_charge = on_charge
        self._debits: list[Debit] = []
        self._spent = self._spent_delta = Fraction(0)
        self._lock = threading.Lock()

    def charge(self, what: str, rho: Fraction, delta: Fraction = Fraction(0)) -> None:
        """Write a debit, or raise ``BudgetError`` and change nothing if a sum would exceed its limit."""
        price = exact_rho(rho, "The price of a question")
        debit = Debit(what, price, exact_delta(delta, "The delta of a question"))
        with self._lock:
            if self._spent + debit.rho > self._limit:
                remaining = self._limit - self._spent
                raise BudgetError(
                    f"To {what} would cost rho = {float(debit.rho):.6g}; {float(remaining):.6g} remains.",
                    remedy="Spend at most what remains, exactly: it is a Fraction.",
                )
            if self._spent_delta + debit.delta > self._delta_limit:
                left = self._delta_limit - self._spent_delta
                raise BudgetError(
                    f"To {what} would cost delta = {float(debit.delta):.6g}; {float(left):.6g} remains for thresholds.",
                    remedy="Spend at most what remains, or begin with a budget that leaves more: Budget.approx(epsilon,"
                    " delta, threshold_delta=delta / 10), say.",
                )
            if self._on_charge is not None:
                self._on_charge(debit)
            self._debits.append(debit)
            self._spent += debit.rho
            self._spent_delta += debit.delta

    @property
    def limit(self) -> Fraction:
        """The whole budget."""
        return self._limit

    @property
    def spent(self) -> Fraction:
        """The sum of the debits."""
        with self._lock:
            return self._spent

    @property
    def remaining(self) -> Fraction:
        """The part of the limit that is left, exactly."""
        with self._lock:
            return self._limit - self._spent

    @property
    def remaining_delta(self) -> Fraction:
        """The part of the delta limit that is left, exactly."""
        with self._lock:
            return self._delta_limit - self._spent_delta

    @property
    def debits(self) -> tuple[Debit, ...]:
        """The debits, in order."""
        with self._lock:
            return tuple(self._debits)


def exact_rho(rho: object, what: str) -> Fraction:
    """Return a positive amount of zCDP as a ``Fraction``. Raise ``InputError`` for a float or no
    amount.
    """
    if isinstance(rho, bool) or not isinstance(rho, int | Fraction):
        raise InputError(
            f"{what} is given as {type(rho).__name__}.",
            remedy="Give a Fraction: Fraction(1, 10), or a Fraction of what remains.",
        )
    if not 0 < rho <= MAX_RHO:
        raise InputError(
            f"{what} is not in (0, {MAX_RHO:g}].", remedy="Give a Fraction above zero."
        )
    return Fraction(rho)


def exact_delta(delta: object, what: str) -> Fraction:
    """Return a delta from 0 to 1 as a ``Fraction``. Raise ``InputError`` for a float."""
    if isinstance(delta, bool) or not isinstance(delta, int | Fraction) or not 0 <= delta < 1:
        raise InputError(
            f"{what} is not a Fraction from 0 to below 1.",
            remedy="Give a Fraction: Fraction(1e-10), or a Fraction of what remains.",
        )
    return Fraction(delta)
