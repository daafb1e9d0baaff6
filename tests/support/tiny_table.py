"""A table of a few rows for tests of the gate: codes in a list, counted in the plainest way, and its neighbors."""

from __future__ import annotations

import numpy as np

from margrave.accounting import AddRemovePerson, ReplacePerson, ReplaceRow, Unit
from margrave.domain import Domain
from margrave.testing.tables import UNITS, TinySchema, TinyTable

__all__ = ["UNITS", "TinySchema", "TinyTable", "neighbors", "tiny_domain"]


def tiny_domain() -> Domain:
    return Domain.of({"a": 2, "b": 3, "c": 4})


def neighbors(
    unit: Unit, rng: np.random.Generator, *, worst: bool = False, rows: int = 6
) -> tuple[TinyTable, TinyTable]:
    """Two neighboring tables of a few rows over ``tiny_domain``: random, or as far apart as the unit allows.

    Under units of persons, person 0 is the one that differs, with up to twice ``max_rows`` rows before the gate cuts.
    """
    domain = tiny_domain()

    def some(count: int) -> list[tuple[int, ...]]:
        return [tuple(int(rng.integers(s)) for s in domain.sizes) for _ in range(count)]

    def differing(corner: bool, at_most: int) -> list[tuple[int, ...]]:
        if worst:
            return [tuple(s - 1 for s in domain.sizes) if corner else (0,) * len(domain)] * at_most
        return some(int(rng.integers(1, at_most + 1)))

    by_person = isinstance(unit, AddRemovePerson | ReplacePerson)
    at_most = 2 * unit.max_rows if isinstance(unit, AddRemovePerson | ReplacePerson) else 1
    replaced = isinstance(unit, ReplaceRow | ReplacePerson)
    others, one, other = (
        some(rows),
        differing(True, at_most),
        differing(False, at_most) if replaced else [],
    )
    schema = TinySchema(domain, person="who" if by_person else None)
    owners = [1 + i // 2 for i in range(rows)]  # everybody else has two rows
    pair = [TinyTable(schema, mine + others, [0] * len(mine) + owners) for mine in (one, other)]
    return (pair[0], pair[1]) if rng.integers(2) else (pair[1], pair[0])
