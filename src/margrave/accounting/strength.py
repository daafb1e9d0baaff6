"""Budgets that protect next to nothing: one place refuses them, and says in words how weak the others are."""

from __future__ import annotations

import math

from margrave.accounting.budget import MAX_STATED_EPSILON, Budget
from margrave.errors import InputError

#: Above this a run is refused.
MAX_STATED_DELTA = 1e-2
#: Above these a budget is worth a warning. Where the row count is private, such a delta must be accepted.
WEAK_EPSILON, WEAK_DELTA = 20.0, 1e-5


def delta_for_rows(rows: int) -> float:
    """Return a power of ten that is at most a thousandth of 1 in the order of the number of rows.

    >>> delta_for_rows(40_000), delta_for_rows(100_000)
    (1e-08, 1e-08)
    """
    return float(f"1e-{math.ceil(math.log10(max(rows, 100))) + 3}")


def advised_delta(rows: int | None) -> str:
    """Return which delta is advised, in a sentence.

    Args:
        rows: A public number of rows; None if none is stated.

    Privacy:
        None spent: a function of the stated number.

    Example:
        >>> advised_delta(40_000)
        'Give it: for 40,000 rows 1e-08 or less is advised.'
    """
    if rows is not None:
        return f"Give it: for {rows:,} rows {delta_for_rows(rows):g} or less is advised."
    orders = (10_000, 1_000_000)
    listed = ", ".join(f"{delta_for_rows(n):g} for up to {n:,} rows" for n in orders)
    return f"Give it, far below 1 in the order of the number of rows: {listed}."


def check_strength(
    budget: Budget,
    *,
    rows: int | None = None,
    allow_large_delta: bool = False,
    rows_are_public: bool = False,
) -> None:
    """Raise ``InputError`` for a budget that protects next to nothing. Reads no private number.

    Args:
        budget: The budget of a run.
        rows: A row count that is public: stated by the user, or public under the unit of privacy.
        allow_large_delta: Accept a delta of 1 / ``rows`` or more, or above 1e-5. A delta above 0.01 is refused all
            the same.
        rows_are_public: The unit of privacy makes the row count public, so that it is checked when it is known.

    Raises:
        InputError: epsilon is above 10,000, delta is above 0.01 or at least 1 / ``rows``, or it is above 1e-5 and the
            unit keeps the row count private.

    Privacy:
        None spent.
    """
    if budget.epsilon > MAX_STATED_EPSILON:
        raise InputError(
            f"epsilon is {budget.epsilon:.6g}, and at most {MAX_STATED_EPSILON:g} is accepted.",
            remedy="Lower epsilon: 1 is a strong promise, 10 a weak one. Nothing was spent.",
        )
    if budget.delta > MAX_STATED_DELTA:
        raise InputError(
            f"delta is {budget.delta:g}, and at most {MAX_STATED_DELTA:g} is accepted: it is about the chance that"
            " the promise fails.",
            remedy="Choose a delta far below 1 in the number of rows: 1e-9, say. Nothing was spent.",
        )
    if allow_large_delta:
        return
    accept = "Or accept it with --allow-large-delta (in Python allow_large_delta=True). Nothing was spent."
    if rows is not None and rows >= 1 / budget.delta:
        raise InputError(
            f"delta is {budget.delta:g}, which is at least 1 in {rows:,} rows: that allows publishing one"
            " whole row.",
            remedy=f"{advised_delta(rows)} {accept}",
        )
    if budget.delta > WEAK_DELTA and not rows_are_public:
        raise InputError(
            f"delta is {budget.delta:g}, and above {WEAK_DELTA:g} it may allow publishing one whole row. The number of"
            " rows is private, so no run can check that.",
            remedy=f"{advised_delta(rows)} {accept}",
        )


def weaknesses(budget: Budget) -> list[str]:
    """Return a sentence for each number of a budget that is accepted and weak."""
    found = []
    if budget.epsilon > WEAK_EPSILON:
        found.append(
            f"epsilon {budget.epsilon:g} protects little: what is published may be exp({budget.epsilon:g})"
            " times as likely with a row as without it. 1 is a strong promise, 10 a weak one."
        )
    if budget.delta > WEAK_DELTA:
        found.append(
            f"delta {budget.delta:g} is large: it is about the chance that the promise fails. Choose one far"
            " below one in the number of rows: 1e-9, say."
        )
    return found
