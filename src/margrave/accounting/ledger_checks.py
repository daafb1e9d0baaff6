"""Checks of an open ledger: names, units, room under the cap, and releases that contradict it."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from shlex import quote
from unicodedata import normalize

from margrave._card import counted
from margrave.account import Account
from margrave.accounting.budget import max_epsilon
from margrave.accounting.ledger_state import DatasetState, learning_delta, visible_delta
from margrave.accounting.open_ledger import OpenLedger
from margrave.errors import BudgetError, InputError, did_you_mean
from margrave.unit import Unit, parse_unit, unit_name


def dataset_of(books: OpenLedger, dataset: str | None) -> DatasetState:
    """Return a data set that has a cap, without its runs, or raise ``InputError``."""
    names = ", ".join(repr(n) for n in books.state.datasets) or "none"
    if dataset is None:
        raise InputError(
            f"A ledger is given without saying which data set of it this is: {names}.",
            remedy="Name it: --dataset ID, in Python dataset=.",
        )
    if dataset not in books.state.datasets:
        raise InputError(
            f"{books.path} has no data set {dataset!r}.",
            remedy=f"{did_you_mean(dataset, books.state.datasets)}The ledger has: {names}. To set a cap for a new data"
            f" set: margrave ledger init {quote(str(books.path))} --dataset {quote(str(dataset))} --unit UNIT"
            " --epsilon E --delta D.",
        )
    return books.state.datasets[dataset]


def contradiction(books: OpenLedger, account: Account) -> str:
    """Return a sentence if the ledger lacks the lines that a release was made under, else an empty text."""
    if account.ledger is None:
        return "It was made without a ledger."
    identity, lines = account.ledger.id, account.ledger.lines
    if identity != books.identity:
        return f"It was made under another ledger, {identity}: this one is {books.identity}."
    if lines > books.lines:
        return (
            f"It was made when the ledger had {counted(lines, 'line')}, and the ledger ends at {books.lines}: it was"
            " cut or put back to an older state."
        )
    event, head = books.line(lines)
    if head != account.ledger.head:
        return f"Line {lines} is not the one that it was made under: the ledger was rewritten."
    run = books.state.runs.get(event.get("run", ""))
    if run is None or run.debits[: len(account.debits)] != account.debits:
        return f"Its debits are not those of the run that line {lines} is of."
    return ""


def check_new(books: OpenLedger, name: str, *, replace: bool) -> None:
    """Refuse a second cap, unless nothing was charged against the first and ``replace`` asks for it."""
    if name not in books.state.datasets:
        alike = similar_name(name, books.state.datasets)
        if alike is not None:
            raise InputError(
                f"{books.path} has a cap for {alike!r}, which differs from {name!r} only by case, blanks or the form of"
                " its letters.",
                remedy=f"Two caps for one table bound nothing: name it {alike!r}, or give another table another name.",
            )
        return
    if books.state.charged[name]:
        raise InputError(
            f"{books.path} has a cap for {name!r} already, and runs are charged against it.",
            remedy="From its first run on a cap stays as it is.",
        )
    if not replace:
        raise InputError(
            f"{books.path} has a cap for {name!r} already; nothing is charged against it.",
            remedy="To set another in its place, say so: --replace, in Python replace=True.",
        )


def similar_name(name: str, names: Iterable[str]) -> str | None:
    """Return the first of the names that is the same up to case, blanks and the form of its letters."""
    return next((n for n in names if _folded(n) == _folded(name)), None)


def check_room(
    books: OpenLedger,
    dataset: str | None,
    unit: Unit,
    rho: Fraction,
    delta: float | None = None,
    threshold_delta: Fraction = Fraction(0),
) -> str:
    """Return the data set's name if it has a cap for this unit that leaves room."""
    state = dataset_of(books, dataset)
    if state.unit != unit_name(unit):
        replaceable = "" if books.state.charged[state.dataset] else (
            " Nothing is charged yet: --replace sets one for this unit instead."
        )  # fmt: skip
        raise InputError(
            f"The cap of {dataset!r} is for the unit to {parse_unit(state.unit)}; this run's unit is to {unit}.",
            remedy="Keep to that unit. A cap for this one under another name (margrave ledger init) does not bound the"
            " two together: both are spent on the same rows, and docs/ledger.md gives what they come to."
            + replaceable,
        )
    if rho > state.cap.room - books.state.charged[state.dataset]:
        raise _no_room(books.state.dataset(state.dataset), rho, delta or state.cap.conversion_delta)
    left = state.cap.threshold_room - books.state.charged_delta[state.dataset]
    if threshold_delta > left:
        raise BudgetError(
            f"The cap of {state.dataset!r} leaves delta = {visible_delta(left, state.cap):.6g} for thresholds; this"
            f" run, which learns categories, needs {float(threshold_delta):.6g}.",
            remedy=_threshold_remedy(books, state, threshold_delta, visible_delta(left, state.cap)),
        )
    return state.dataset


def _threshold_remedy(books: OpenLedger, state: DatasetState, needed: Fraction, left: float) -> str:
    cap = state.cap
    part = max(cap.delta / 10, float(f"{float(needed):.1g}"))
    if not books.state.charged[state.dataset] and part < cap.delta:
        cap_of = f"--epsilon {cap.epsilon:g} --delta {cap.delta:g}"
        return (
            f"Nothing is charged against the cap yet, so set it anew: margrave ledger init {books.path} --dataset"
            f" {state.dataset} --unit {state.unit} {cap_of} --threshold-delta {part:g} --replace. That is for one"
            " release that learns categories: for more, give it times their number. In Python: ledger.init(...,"
            f" cap=Budget.approx({cap.epsilon:g}, {cap.delta:g}, threshold_delta={part:g}), replace=True). Or list the"
            " categories in a schema, which needs no threshold."
        )
    listed = f"{DatasetState.reuse_learned} Or list them in a schema; neither needs a threshold."
    if not left:
        return listed
    delta = learning_delta(left)
    return f"{listed} Or give the run --delta {delta:g}, a tenth of which is for thresholds."


def _no_room(state: DatasetState, rho: Fraction, delta: float) -> BudgetError:
    unfinished = state.unfinished
    fits = max_epsilon(state.remaining, delta)
    largest = (
        f"at delta {delta:g} that is epsilon {fits:g} at most"
        if fits
        else "that is too little for any run"
    )
    by_rounding = rho < state.remaining * (1 + Fraction(1, 2**40))
    waiting = (
        f" Of that, {float(sum(r.reserved for r in unfinished)):.6g} is held by unfinished runs"
        f" ({', '.join(r.run for r in unfinished[:3])}{', …' if len(unfinished) > 3 else ''})."
    )
    return BudgetError(
        f"The cap of {state.dataset!r} is rho = {float(state.cap.rho):.6g}, of which {float(state.charged):.6g} is"
        f" charged; this run needs {float(rho):.6g} and {float(state.remaining):.6g} remains: {largest}."
        f"{waiting if unfinished else ''}",
        remedy=_room_remedy(fits, bool(unfinished), by_rounding=by_rounding),
    )


def _room_remedy(fits: float, unfinished: bool, *, by_rounding: bool) -> str:
    """Return what a custodian can do under a cap that leaves too little.

    Args:
        fits: The largest epsilon of another run; 0 if the cap leaves nothing.
        unfinished: Some runs on the data set were not finished.
        by_rounding: The run misses the room by the rounding of floats.
    """
    if by_rounding:
        return (
            "It misses by the rounding of floats. State such parts of a cap as fractions, Budget.zcdp(Fraction(1, 10)),"
            " or give the run what remains, Budget.zcdp(Ledger(FILE).datasets()[0].remaining)."
        )
    close = "resume or close the unfinished runs"
    if fits:
        return f"Spend at most that{f', or {close}' if unfinished else ''}."
    if unfinished:
        return f"{close[0].upper()}{close[1:]}: closing frees what they have not spent."
    return (
        "Rows, numbers, analyses and refits of the releases that exist cost nothing. Another release of these rows"
        " weakens the promise, and whoever gave it decides that: see docs/ledger.md, When the cap is spent."
    )


def _folded(name: str) -> str:
    return normalize("NFKC", name).strip().casefold()
