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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from margrave._card import Card, Facts, counted
from margrave.account import Account, Debit
from margrave.domain import Domain
from margrave.marginal import HalfSpace, LinearMap, LinearQuery
from margrave.provenance import Provenance
from margrave.release.release_chance import release_chance
from margrave.schema import Schema
from margrave.schema.column_queries import ClippedSum
from margrave.transcript import (
    Answer,
    ColumnAnswer,
    Discovery,
    Entry,
    HalfSpaceSelection,
    Measurement,
    PublicReading,
    PublicTotal,
    QuerySelection,
    ScoreMeasurement,
    Selection,
    Transcript,
)
from margrave.unit import AddRemovePerson, ReplacePerson, ReplaceRow, Unit, replaces_rows

EPSILON_SLACK = Fraction(1, 10**9)
#: Budgets from here on do not fit a float.
MAX_BUDGET = 1e300
SOUND_SAMPLER = "discrete Gaussian by OpenDP "

Noisy = Measurement | Answer | ScoreMeasurement | ColumnAnswer | Discovery
Paid = Noisy | Selection | QuerySelection | HalfSpaceSelection


@dataclass(frozen=True, repr=False)
class Verification(Card):
    """The result of recomputing a release's account.

    ``findings`` are the contradictions, one sentence each. ``notes`` say what a reader should know besides. ``private``
    repeats what the account says of the noise.
    """

    findings: tuple[str, ...]
    notes: tuple[str, ...]
    private: bool

    def _facts(self) -> Facts:
        result = "the account holds" if self.holds else "THE ACCOUNT DOES NOT HOLD"
        return Facts(result, [("contradiction", text) for text in self.findings], self.notes)

    @property
    def holds(self) -> bool:
        """Return True if nothing contradicts the account and its noise was private."""
        return self.private and not self.findings

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON."""
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
    schema: Schema, transcript: Transcript, account: Account, provenance: Provenance
) -> Verification:
    """Recompute an account from its transcript. **Privacy:** none spent."""
    findings = [*_of_unit(account.unit, schema, transcript, provenance)]
    moves = moves_of(account.unit)
    for place, entry in enumerate(transcript, 1):
        findings += (
            f"Entry {place} of the transcript {why}"
            for why in _of_entry(entry, moves, provenance, account.unit, schema.domain)
        )
    unanswered = account.debits[-1:] if _ends_unanswered(account, transcript, provenance) else ()
    findings += _of_debits(account.debits[: len(account.debits) - len(unanswered)], transcript)
    findings += _of_budget(account)
    findings += _of_sampler(account)
    notes = [f"The run failed before the last debit ({d.what}) was answered." for d in unanswered]
    return Verification(tuple(findings), (*notes, *_notes(account, transcript)), account.private)


def moves_of(unit: Unit) -> Moves:
    """Return the sensitivities of a unit.

    >>> moves_of(ReplacePerson(3))
    Moves(l1=6, l2_squared=18, single=3)
    """
    sides = 2 if isinstance(unit, ReplaceRow | ReplacePerson) else 1
    k = unit.max_rows if isinstance(unit, AddRemovePerson | ReplacePerson) else 1
    return Moves(l1=sides * k, l2_squared=sides * k * k, single=k)


def map_moves(unit: Unit, query: LinearMap, marginal: Domain) -> int:
    """Return the change, in squared L2, of a map that may count a row in many answers."""
    moves = moves_of(unit)
    replaced = 0
    if isinstance(unit, ReplaceRow | ReplacePerson):
        replaced = query.two_rows(marginal).l2_squared
    alone = 0 if isinstance(unit, ReplaceRow) else query.one_row().l2_squared
    return moves.single**2 * max(replaced, alone)


def _of_unit(
    unit: Unit, schema: Schema, transcript: Transcript, provenance: Provenance
) -> Iterator[str]:
    if isinstance(unit, AddRemovePerson | ReplacePerson) and schema.person is None:
        yield "The unit is a person, but the schema does not name a person ID column."
    totals = sum(isinstance(e, PublicTotal) for e in transcript)
    size_is_public = isinstance(unit, ReplaceRow)
    if totals and not size_is_public:
        yield f"The transcript has a public row count, which is private under the unit to {unit}."
    if size_is_public and (totals != 1 or not isinstance(transcript.entries[0], PublicTotal)):
        yield "Under the unit to replace one row the transcript starts with the row count, once; this one does not."
    if provenance.same_records and not size_is_public:
        yield f"Columns of the private records are public under the unit to replace one row only, not to {unit}."


def _of_entry(
    entry: Entry, moves: Moves, provenance: Provenance, unit: Unit, domain: Domain
) -> Iterator[str]:
    # A record's largest number in a half-space with a slope.
    max_smooth_count = 1_000_000
    match entry:
        case PublicTotal():
            return
        case PublicReading():
            tables = [t for t in provenance.public_tables if t.sha256 == entry.source]
            if not tables:
                yield "reads a public table that the provenance does not name."
            elif not any(set(entry.clique) <= set(table.columns) for table in tables):
                yield "reads columns that its public table does not have."
        case Measurement():
            if type(entry.query) is not LinearMap:
                yield "is of an unknown kind of query."
            l2_squared = moves.l2_squared
            if not entry.query.is_partition:
                l2_squared = map_moves(unit, entry.query, domain.project(entry.clique))
            yield from _of_price(entry.rho, l2_squared / _twice_square(entry.scale))
        case Answer():
            if type(entry.query) not in (LinearQuery, HalfSpace):
                yield "is of an unknown kind of query."
            smooth = isinstance(entry.query, HalfSpace) and entry.query.slope is not None
            reach = moves.single * (max_smooth_count if smooth else 1)
            yield from _of_price(entry.rho, reach * reach / _twice_square(entry.scale))
        case ColumnAnswer():
            l2_squared = moves.l2_squared
            if isinstance(entry.query, ClippedSum):
                changed = (
                    entry.query.max_change if replaces_rows(unit) else entry.query.max_contribution
                )
                l2_squared = (moves.single * changed) ** 2
            yield from _of_price(entry.rho, l2_squared / _twice_square(entry.scale))
        case Discovery():
            yield from _of_price(entry.rho, moves.l2_squared / _twice_square(entry.scale))
            yield from _of_threshold(entry, moves)
        case Selection():
            yield from _of_price(entry.rho, Fraction(entry.epsilon) ** 2 / 8)
            yield from _of_sensitivity(entry, moves, unit)
        case ScoreMeasurement():
            moved = Fraction(entry.sensitivity)
            price = len(entry.candidates) * moved**2 / _twice_square(entry.scale)
            yield from _of_price(entry.rho, price)
            yield from _of_score(entry, moves, unit)
        case HalfSpaceSelection():
            yield from _of_price(entry.rho, Fraction(entry.epsilon) ** 2 / 8)
            if entry.sensitivity != moves.single:
                yield f"states the sensitivity {entry.sensitivity:g}; one count changes by {moves.single} at most."
        case QuerySelection():
            yield from _of_price(entry.rho, Fraction(entry.epsilon) ** 2 / 8)
            if entry.sensitivity != moves.single:
                yield f"states the sensitivity {entry.sensitivity:g}; one count changes by {moves.single} at most."


def _twice_square(scale: float) -> Fraction:
    return 2 * Fraction(scale) ** 2


def _of_price(stated: Fraction, price: Fraction) -> Iterator[str]:
    price_slack = Fraction(1, 2**40)
    # Prices below this are lost in the rounding of floats.
    min_price = Fraction(1, 2**900)
    if stated < price:
        yield f"states rho = {brief(stated)}, less than its price, rho = {brief(price)}."
    elif stated - price > price * price_slack + min_price:
        yield f"states rho = {brief(stated)}, more than its price, rho = {brief(price)}."


def _of_threshold(entry: Discovery, moves: Moves) -> Iterator[str]:
    if min(entry.discovered.values(), default=entry.threshold) < entry.threshold:
        yield "names a value whose count is below the threshold."
    needed = release_chance(moves.single, entry.scale, entry.threshold)
    if needed > float(entry.delta) * (1 + 1e-9):
        yield f"states delta = {float(entry.delta):.9g}; its threshold needs {needed:.9g}."


def _of_score(entry: ScoreMeasurement, moves: Moves, unit: Unit) -> Iterator[str]:
    known = {"dependence": dependence_moves(moves, unit), "marginal gap": moves.l1}
    least: float | None = known.get(entry.score)
    if least is None:
        yield f"holds scores of an unknown kind, {entry.score[:80]!r}."
    elif entry.sensitivity < least:
        yield f"states the sensitivity {entry.sensitivity:g}; its scores imply {least:g}."


def dependence_moves(moves: Moves, unit: Unit) -> int:
    """Return the change of a dependence score: 4 for each row that comes or goes, 6 for one that is
    replaced.
    """
    return moves.single * (6 if replaces_rows(unit) else 4)


def _of_sensitivity(choice: Selection, moves: Moves, unit: Unit) -> Iterator[str]:
    if choice.vouched:
        return
    weights = choice.terms.get("weight")
    if weights is None and "left" in choice.terms:
        if choice.sensitivity < dependence_moves(moves, unit):
            yield f"states the sensitivity {choice.sensitivity:g}, too little for its scores."
        return
    if weights is None:
        yield "is a choice by an unknown score that nobody vouched for."
        return
    readable = set(choice.readable)
    sides = [2 if r in readable else 1 for r in choice.candidates]
    largest = max(float(w) * s for w, s in zip(weights, sides, strict=True))
    # scores of the generalized exponential mechanism are relative to their weights
    least = moves.l1 * (1.0 if "margin" in choice.terms else largest)
    if not choice.sensitivity >= least * (1 - 2.0**-50):
        yield f"states the sensitivity {choice.sensitivity:g}; its weights imply {least:g}."


def _of_debits(debits: Sequence[Debit], transcript: Transcript) -> Iterator[str]:
    paid = [e for e in transcript if isinstance(e, Paid)]
    place = 0
    for number, debit in enumerate(debits, 1):
        if place == len(paid):
            yield f"Debit {number} ({debit.what}) pays for nothing in the transcript."
            return
        first = paid[place]
        count = debit.rho / first.rho if first.rho else Fraction(0)
        bought = paid[place : place + int(count)] if count <= len(paid) else []
        if (
            count.denominator != 1
            or len(bought) != count
            or not all(_alike(first, e) for e in bought)
            or not bought
        ):
            yield (
                f"Debit {number} ({debit.what}) is rho = {brief(debit.rho)}, which is not the price of the answers"
                f" that follow in the transcript, at rho = {brief(first.rho)} each."
            )
            return
        if debit.delta != _sum(e.delta for e in bought if isinstance(e, Discovery)):
            yield f"Debit {number} ({debit.what}) states another delta than its thresholds."
        verb = "measure" if isinstance(first, Noisy) else "choose"
        if isinstance(first, Discovery):
            verb = "discover"
        if not debit.what.startswith(f"{verb} "):
            yield f"Debit {number} is called {debit.what!r}, but it pays for a question of the kind {verb!r}."
        place += int(count)
    if place < len(paid):
        yield (
            f"The last {counted(len(paid) - place, 'answer')} of the transcript"
            f" {'was' if place == len(paid) - 1 else 'were'} not debited."
        )


def _ends_unanswered(account: Account, transcript: Transcript, provenance: Provenance) -> bool:
    if not provenance.stopped_early or not account.debits:
        return False
    answered = _sum(e.rho for e in transcript if isinstance(e, Paid))
    return _sum(d.rho for d in account.debits[:-1]) == answered


def _alike(one: Paid, other: Paid) -> bool:
    if type(one) is not type(other) or one.rho != other.rho:
        return False
    return _setting(one) == _setting(other)


def _setting(entry: Paid) -> float:
    return entry.scale if isinstance(entry, Noisy) else entry.epsilon


def _of_budget(account: Account) -> Iterator[str]:
    rho, spent = account.rho_budget, _sum(d.rho for d in account.debits)
    if spent > rho:
        yield f"The debits sum to rho = {brief(spent)}, more than the budget, rho = {brief(rho)}."
    deltas, thresholds = _sum(d.delta for d in account.debits), account.threshold_delta
    if deltas > Fraction(thresholds):
        yield f"The thresholds spend delta = {float(deltas):.9g}, more than the budget's {thresholds:g} for them."
    at = account.delta - thresholds
    if not (
        0 < at <= account.delta < 1 and 0 <= account.epsilon < MAX_BUDGET and 0 < rho < MAX_BUDGET
    ):
        yield f"The budget needs rho above 0 and epsilon from 0, both below {MAX_BUDGET:g}, and delta between 0 and 1."
    elif not implies(rho, Fraction(account.epsilon) * (1 + EPSILON_SLACK), at):
        yield (
            f"rho = {brief(rho)} does not imply epsilon = {account.epsilon:.9g} at delta = {at:g}:"
            " either is too small."
        )


def _sum(amounts: Iterator[Fraction]) -> Fraction:
    numerators: dict[int, int] = {}
    for amount in amounts:
        numerators[amount.denominator] = numerators.get(amount.denominator, 0) + amount.numerator
    return sum((Fraction(n, d) for d, n in numerators.items()), Fraction(0))


@lru_cache
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
        log_delta = (
            t_exact * slack + t_exact * t_exact.ln() - (one + t_exact) * (one + t_exact).ln()
        )
        return log_delta <= Decimal(delta).ln()


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _of_sampler(account: Account) -> Iterator[str]:
    if account.private and not account.sampler.startswith(SOUND_SAMPLER):
        yield f"The account calls the noise private, but its sampler is {account.sampler[:80]!r}."


def _notes(account: Account, transcript: Transcript) -> Iterator[str]:
    if not account.private:
        yield "The release is not private: its noise came from a source meant for tests."
    for score in dict.fromkeys(s.vouched for s in transcript.selections if s.vouched):
        yield f"The sensitivity of choices by {score} cannot be recomputed: code outside the library vouched for it."
    at = account.delta - account.threshold_delta
    if not (
        0 < at <= account.delta < 1
        and 0 < account.epsilon < MAX_BUDGET
        and 0 < account.rho_budget < MAX_BUDGET
    ):
        return
    if implies(account.rho_budget, Fraction(account.epsilon) * (1 - 1000 * EPSILON_SLACK), at):
        yield "epsilon is stated larger than rho and delta need."


def brief(rho: Fraction) -> str:
    """Format an amount of rho for a sentence."""
    return f"{float(rho):.9g}" if rho < 10**300 else "above 1e300"
