"""The exact privacy loss of runs between neighboring tables, compared with what was charged."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from margrave.accounting import (
    AddRemovePerson,
    AddRemoveRow,
    Budget,
    ReplacePerson,
    ReplaceRow,
    Unit,
)
from margrave.domain import Domain
from margrave.errors import MargraveError
from margrave.mechanisms import Mechanism
from margrave.privacy import SeededRandomness, protect
from margrave.release import Release
from margrave.testing.gate import GateCall, MakeMechanism, WatchedGate
from margrave.testing.replay import Recorder, ReplayRandomness, Step
from margrave.testing.tables import SIZES, Row, TinySchema, TinyTable, by_person, require

DOMAIN = Domain.of(SIZES)
EVERY_CELL = list(product(*(range(size) for size in DOMAIN.sizes)))
BUDGETS = [Budget.zcdp(Fraction(1, 2)), Budget.approx(1.0, 1e-9), Budget.zcdp(30)]

#: The rows of each owner.
Owned = list[list[Row]]


def check_loss(
    make: MakeMechanism, unit: Unit, seed: int, *, recordings: int = 3, neighbors: int = 4
) -> None:
    """Check that no question, and no run, loses more between neighbors than it is charged.

    Args:
        make: Returns the mechanism for ``DOMAIN``.
        unit: The unit of privacy.
        seed: Seed of the tables and of the noise.
        recordings: Number of random tables, besides one with neighbors as far away as can be.
        neighbors: Number of random neighbors of each random table.

    Raises:
        AssertionError: With the exact loss over the charge, if it is above 1.
    """
    rng, mechanism = np.random.default_rng(seed), make(DOMAIN)
    pairs = [far_apart(unit, rng)]
    for _ in range(recordings):
        owned = drawn_owners(unit, rng)
        pairs.append((owned, [drawn_neighbor(unit, owned, rng) for _ in range(neighbors)]))
    for i, pair in enumerate(pairs):
        for kind, ratio in ratios(mechanism, unit, [pair], BUDGETS[i % len(BUDGETS)], seed + i):
            require(
                ratio <= 1,
                f"Between neighbors {unit}, a {kind} loses {float(ratio):.6g} times its charge.",
            )


def rows_at_most(unit: Unit) -> int:
    """Return the most rows of one owner in a table, before the gate cuts."""
    return 2 * unit.max_rows if isinstance(unit, AddRemovePerson | ReplacePerson) else 1


def of_owners(unit: Unit, owned: Owned) -> TinyTable:
    """Return a table of the rows of each owner: a person, or a single row."""
    schema = TinySchema(DOMAIN, person="who" if by_person(unit) else None)
    owners = [owner for owner, rows in enumerate(owned) for _ in rows]
    return TinyTable(schema, [row for rows in owned for row in rows], owners)


def drawn_rows(unit: Unit, rng: np.random.Generator) -> list[Row]:
    many = int(rng.integers(1, rows_at_most(unit) + 1))
    if rng.integers(2):
        return [EVERY_CELL[rng.integers(len(EVERY_CELL))]] * many
    return [EVERY_CELL[i] for i in rng.integers(len(EVERY_CELL), size=many)]


def drawn_owners(unit: Unit, rng: np.random.Generator) -> Owned:
    return [drawn_rows(unit, rng) for _ in range(int(rng.integers(1, 9)))]


def drawn_neighbor(unit: Unit, owned: Owned, rng: np.random.Generator) -> Owned:
    """Return a neighbor with one owner more, one fewer, or another in one's place."""
    replaced = isinstance(unit, ReplaceRow | ReplacePerson)
    removed = replaced or bool(rng.integers(2))
    left = list(owned)
    if removed:
        left.pop(rng.integers(len(left)))
    return [*left, drawn_rows(unit, rng)] if replaced or not removed else left


def far_apart(unit: Unit, rng: np.random.Generator) -> tuple[Owned, list[Owned]]:
    """Return a table and its most distant neighbors.

    All rows of an owner appear in one cell, or move there from another.
    """
    others = [[EVERY_CELL[i]] for i in rng.integers(len(EVERY_CELL), size=4)]
    somewhere = [[cell] * rows_at_most(unit) for cell in EVERY_CELL]
    if isinstance(unit, AddRemoveRow | AddRemovePerson):
        return others, [[*others, there] for there in somewhere]
    start = int(rng.integers(len(EVERY_CELL)))
    return [*others, somewhere[start]], [
        [*others, t] for i, t in enumerate(somewhere) if i != start
    ]


def recorded(
    mechanism: Any, table: TinyTable, unit: Unit, budget: Budget, seed: int
) -> tuple[list[Step], Release, Fraction]:
    """Return the answers of a run with the true answers, its release, and its charge."""
    source = Recorder(SeededRandomness(seed))
    with protect(table, unit=unit, budget=budget, randomness=source) as private:
        release: Release = mechanism.run(private, rng=np.random.default_rng(seed))
        return source.steps, release, budget.rho - private.remaining


def replayed(
    mechanism: Any, steps: list[Step], table: TinyTable, unit: Unit, budget: Budget, seed: int
) -> tuple[list[GateCall], Fraction]:
    """Return the questions of the same run on another table, and the loss between the two."""
    replay = ReplayRandomness(steps)
    with protect(table, unit=unit, budget=budget, randomness=replay) as private:
        gate: Any = WatchedGate(private, lambda: replay.loss)
        try:
            mechanism.run(gate, rng=np.random.default_rng(seed))
        except MargraveError:
            replay.finish()  # says what differs, if that is why
            raise
    replay.finish()
    questions: list[GateCall] = gate.questions
    return questions, replay.loss


def ratios(
    mechanism: Mechanism,
    unit: Unit,
    pairs: Iterable[tuple[Owned, list[Owned]]],
    budget: Budget,
    seed: int = 0,
) -> list[tuple[str, Fraction]]:
    """Return loss over charge for every question of every pair, and for each run as a whole."""
    found = []
    for one, others in pairs:
        steps, _, charged = recorded(mechanism, of_owners(unit, one), unit, budget, seed)
        for other in others:
            questions, loss = replayed(mechanism, steps, of_owners(unit, other), unit, budget, seed)
            require(
                sum(q.charged for q in questions) == charged,
                "On a neighbor, the same answers are charged otherwise.",
            )
            found += [(q.kind, share(q.loss, q.charged)) for q in questions]
            found.append(("run", share(loss, charged)))
    return found


def share(loss: Fraction, charged: Fraction) -> Fraction:
    """Return loss over charge; 10^9 for a loss without a charge."""
    return loss / charged if charged else Fraction(10**9 if loss else 0)


def worst(found: list[tuple[str, Fraction]], kind: str) -> Fraction:
    return max((ratio for what, ratio in found if what == kind), default=Fraction(0))
