"""The second accountant: it computes from a release what the gate must have charged, and compares.

It shares no code with the gate's prices. It reads the unit, the noise scales, the queries and the epsilons of the
choices, and nothing else, and computes in exact fractions

    noisy marginal     rho = L2² / (2 scale²)          L2² = k², or 2 k² where a unit replaces its rows
    noisy count        rho = (k · most)² / (2 scale²)   most = 1, or 1,000,000 for a smooth half-space
    private selection  rho = epsilon² / 8

for a unit of at most k rows. Merged codes do not change a price: a row still counts in one cell. A public total is free
where the number of rows is public; a public marginal is free where the certificate names its public table.

The release must then say the same: each price, the debits in the transcript's order, their sum against the budget,
and epsilon against rho and delta. Two relative tolerances apply. A stated price may exceed the computed one by
``PRICE_SLACK``, since the gate rounds noise scales up. Epsilon may be short by ``EPSILON_SLACK``, since the best order
of the conversion is searched numerically.

A release that verifies may still be forged as a whole: noisy counts, choices and the model are taken as they stand.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple

from margrave.marginal import HalfSpace, LinearQuery, Query
from margrave.schema import Schema
from margrave.transcript import (
    Account,
    Answer,
    Debit,
    Entry,
    Measurement,
    PublicReading,
    PublicTotal,
    QuerySelection,
    Selection,
    Transcript,
)

PRICE_SLACK = Fraction(1, 2**40)
EPSILON_SLACK = Fraction(1, 10**9)
#: Prices below this are lost in the rounding of floats.
MIN_PRICE = Fraction(1, 2**900)
#: Budgets from here on do not fit a float.
MAX_BUDGET = 1e300
#: A record's largest number in a half-space with a slope.
MAX_SMOOTH_COUNT = 1_000_000
SOUND_SAMPLER = "discrete Gaussian by OpenDP "

_UNIT = re.compile(r"(add or remove|replace) one (?:row|person of at most (?:1 row|([2-9]|[1-9][0-9]{1,6}) rows))")

Paid = Measurement | Answer | Selection | QuerySelection


@dataclass(frozen=True)
class Verification:
    """The result of recomputing a release's account.

    ``findings`` are the contradictions, one sentence each. ``notes`` say what a reader should know besides. ``private``
    repeats what the account says of the noise.
    """

    findings: tuple[str, ...]
    notes: tuple[str, ...]
    private: bool

    @property
    def holds(self) -> bool:
        """Return True if nothing contradicts the account and its noise was private."""
        return self.private and not self.findings

    def to_dict(self) -> dict[str, Any]:
        """Plain data that fits in JSON."""
        return {
            "holds": self.holds,
            "private": self.private,
            "findings": list(self.findings),
            "notes": list(self.notes),
        }


class Moves(NamedTuple):
    """The changes between neighboring tables: of a marginal in L1 and squared L2, and of a single count."""

    l1: int
    l2_squared: int
    single: int


def verify_account(
    schema: Schema, transcript: Transcript, account: Account, config: Mapping[str, Any]
) -> Verification:
    """Recompute an account from its transcript. **Privacy:** none spent."""
    findings = [*_of_unit(account.unit, schema, transcript, config)]
    moves = moves_of(account.unit)
    if moves is not None:
        for place, entry in enumerate(transcript, 1):
            findings += (f"Entry {place} of the transcript {why}" for why in _of_entry(entry, moves, config))
    unanswered = account.debits[-1:] if _ends_unanswered(account, transcript, config) else ()
    findings += _of_debits(account.debits[: len(account.debits) - len(unanswered)], transcript)
    findings += _of_budget(account)
    findings += _of_description(account, config)
    notes = [f"The run failed before the last debit ({d.what}) was answered." for d in unanswered]
    return Verification(tuple(findings), (*notes, *_notes(account, transcript)), account.private)


def moves_of(unit: str) -> Moves | None:
    """The sensitivities of a unit that is given in the certificate's words; None for other words.

    >>> moves_of("replace one person of at most 3 rows")
    Moves(l1=6, l2_squared=18, single=3)
    """
    match = _UNIT.fullmatch(unit)
    if match is None or (k := int(match[2] or 1)) > 1_000_000:
        return None
    sides = 2 if match[1] == "replace" else 1
    return Moves(l1=sides * k, l2_squared=sides * k * k, single=k)


def _of_unit(unit: str, schema: Schema, transcript: Transcript, config: Mapping[str, Any]) -> Iterator[str]:
    if moves_of(unit) is None:
        yield f"The unit of privacy is {unit!r}, which is not one of margrave's units."
        return
    if "person" in unit and schema.person is None:
        yield "The unit is a person, but the schema does not name a person ID column."
    totals = sum(isinstance(e, PublicTotal) for e in transcript)
    size_is_public = unit == "replace one row"
    if totals and not size_is_public:
        yield f"The transcript has a public row count, which is private under the unit to {unit}."
    if size_is_public and (totals != 1 or not isinstance(transcript.entries[0], PublicTotal)):
        yield "Under the unit to replace one row the transcript starts with the row count, once; this one does not."
    public = config.get("public")
    if isinstance(public, Mapping) and public.get("same_records") and not size_is_public:
        yield f"Columns of the private records are public under the unit to replace one row only, not to {unit}."


def _of_entry(entry: Entry, moves: Moves, config: Mapping[str, Any]) -> Iterator[str]:
    match entry:
        case PublicTotal():
            return
        case PublicReading():
            tables = [config.get(name) for name in ("public", "refit_public")]
            if entry.source not in [t.get("sha256") for t in tables if isinstance(t, Mapping)]:
                yield "reads a public table that the configuration does not name."
        case Measurement():
            if type(entry.query) is not Query:
                yield "is of an unknown kind of query."
            yield from _of_price(entry.rho, moves.l2_squared / _twice_square(entry.scale))
        case Answer():
            if type(entry.query) not in (LinearQuery, HalfSpace):
                yield "is of an unknown kind of query."
            smooth = isinstance(entry.query, HalfSpace) and entry.query.slope is not None
            reach = moves.single * (MAX_SMOOTH_COUNT if smooth else 1)
            yield from _of_price(entry.rho, reach * reach / _twice_square(entry.scale))
        case Selection():
            yield from _of_price(entry.rho, Fraction(entry.epsilon) ** 2 / 8)
            yield from _of_sensitivity(entry, moves)
        case QuerySelection():
            yield from _of_price(entry.rho, Fraction(entry.epsilon) ** 2 / 8)
            if entry.sensitivity != moves.single:
                yield f"states the sensitivity {entry.sensitivity:g}; one count changes by {moves.single} at most."


def _twice_square(scale: float) -> Fraction:
    return 2 * Fraction(scale) ** 2


def _of_price(stated: Fraction, price: Fraction) -> Iterator[str]:
    if stated < price:
        yield f"states rho = {brief(stated)}, less than its price, rho = {brief(price)}."
    elif stated - price > price * PRICE_SLACK + MIN_PRICE:
        yield f"states rho = {brief(stated)}, more than its price, rho = {brief(price)}."


def _of_sensitivity(choice: Selection, moves: Moves) -> Iterator[str]:
    """A marginal's gap moves with its weight; one that may be read instead moves twice, with either distance."""
    if choice.vouched:
        return
    weights = choice.terms.get("weight")
    if weights is None:
        yield "is a choice by an unknown score that nobody vouched for."
        return
    readable = set(choice.readable)
    sides = [2 if r in readable else 1 for r in choice.candidates]
    least = moves.l1 * max(float(w) * s for w, s in zip(weights, sides, strict=True))
    if not choice.sensitivity >= least * (1 - 2.0**-50):
        yield f"states the sensitivity {choice.sensitivity:g}; its weights imply {least:g}."


def _of_debits(debits: Sequence[Debit], transcript: Transcript) -> Iterator[str]:
    """Each debit pays for the next entries, which are alike and cost the same."""
    paid = [e for e in transcript if isinstance(e, Paid)]
    place = 0
    for number, debit in enumerate(debits, 1):
        if place == len(paid):
            yield f"Debit {number} ({debit.what}) pays for nothing in the transcript."
            return
        first = paid[place]
        count = debit.rho / first.rho if first.rho else Fraction(0)
        bought = paid[place : place + int(count)] if count <= len(paid) else []
        if count.denominator != 1 or len(bought) != count or not all(_alike(first, e) for e in bought) or not bought:
            yield (
                f"Debit {number} ({debit.what}) is rho = {brief(debit.rho)}, which is not the price of the answers"
                f" that follow in the transcript, at rho = {brief(first.rho)} each."
            )
            return
        verb = "measure" if isinstance(first, Measurement | Answer) else "choose"
        if not debit.what.startswith(f"{verb} "):
            yield f"Debit {number} is called {debit.what!r}, but it pays for a question of the kind {verb!r}."
        place += int(count)
    if place < len(paid):
        yield f"The last {len(paid) - place} answers of the transcript were not debited."


def _ends_unanswered(account: Account, transcript: Transcript, config: Mapping[str, Any]) -> bool:
    """A run that failed within an answer has paid for it, and says that it stopped early."""
    if config.get("stopped_early") is not True or not account.debits:
        return False
    answered = _sum(e.rho for e in transcript if isinstance(e, Paid))
    return _sum(d.rho for d in account.debits[:-1]) == answered


def _alike(one: Paid, other: Paid) -> bool:
    if type(one) is not type(other) or one.rho != other.rho:
        return False
    return _setting(one) == _setting(other)


def _setting(entry: Paid) -> float:
    return entry.scale if isinstance(entry, Measurement | Answer) else entry.epsilon


def _of_budget(account: Account) -> Iterator[str]:
    rho, spent = account.rho_budget, _sum(d.rho for d in account.debits)
    if spent > rho:
        yield f"The debits sum to rho = {brief(spent)}, more than the budget, rho = {brief(rho)}."
    if not (0 < account.delta < 1 and 0 <= account.epsilon < MAX_BUDGET and 0 < rho < MAX_BUDGET):
        yield f"The budget needs rho above 0 and epsilon from 0, both below {MAX_BUDGET:g}, and delta between 0 and 1."
    elif not implies(rho, Fraction(account.epsilon) * (1 + EPSILON_SLACK), account.delta):
        yield (
            f"rho = {brief(rho)} does not imply epsilon = {account.epsilon:.9g} at delta = {account.delta:g}:"
            " either is too small."
        )


def _sum(amounts: Iterator[Fraction]) -> Fraction:
    """The sum of fractions of few denominators, in linear time."""
    numerators: dict[int, int] = {}
    for amount in amounts:
        numerators[amount.denominator] = numerators.get(amount.denominator, 0) + amount.numerator
    return sum((Fraction(n, d) for d, n in numerators.items()), Fraction(0))


def implies(rho: Fraction, epsilon: Fraction, delta: float) -> bool:
    """Return whether rho-zCDP implies (epsilon, delta)-differential privacy.

    The order alpha = 1 + t gives ``log delta = t((1 + t) rho − epsilon) + t log t − (1 + t) log(1 + t)``. Every t gives
    a true statement. The derivative ``(1 + 2t) rho − epsilon + log(t / (1 + t))`` increases in t; its zero is the best.
    Source: Canonne, Kamath, Steinke 2020, Proposition 12.
    """
    about, bound = float(rho), float(epsilon)
    low, high = -80.0, 80.0  # of log t
    for _ in range(80):
        middle = (low + high) / 2
        t = math.exp(middle)
        slope = (1 + 2 * t) * about - bound + middle - math.log1p(t)
        low, high = (middle, high) if slope < 0 else (low, middle)
    with localcontext(Context(prec=50)):
        t_exact, one = Decimal(math.exp(low)), Decimal(1)
        slack = (one + t_exact) * _decimal(rho) - _decimal(epsilon)
        log_delta = t_exact * slack + t_exact * t_exact.ln() - (one + t_exact) * (one + t_exact).ln()
        return log_delta <= Decimal(delta).ln()


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _of_description(account: Account, config: Mapping[str, Any]) -> Iterator[str]:
    if account.private and not account.sampler.startswith(SOUND_SAMPLER):
        yield f"The account calls the noise private, but its sampler is {account.sampler[:80]!r}."
    if not isinstance(config.get("name", ""), str):
        yield "The configuration has a name of the mechanism that is not text."
    for name in ("public", "refit_public"):
        table = config.get(name)
        if table is not None and not (isinstance(table, Mapping) and isinstance(table.get("attestation"), str)):
            yield "The configuration has a public table without an attestation."


def _notes(account: Account, transcript: Transcript) -> Iterator[str]:
    if not account.private:
        yield "The release is not private: its noise came from a source meant for tests."
    for score in dict.fromkeys(s.vouched for s in transcript.selections if s.vouched):
        yield f"The sensitivity of choices by {score} cannot be recomputed: code outside the library vouched for it."
    if not (0 < account.delta < 1 and 0 < account.epsilon < MAX_BUDGET and 0 < account.rho_budget < MAX_BUDGET):
        return
    if implies(account.rho_budget, Fraction(account.epsilon) * (1 - 1000 * EPSILON_SLACK), account.delta):
        yield "epsilon is stated larger than rho and delta need."


def brief(rho: Fraction) -> str:
    """Format an amount of rho for a sentence."""
    return f"{float(rho):.9g}" if rho < 10**300 else "above 1e300"
