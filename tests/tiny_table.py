"""A table of a few rows for tests of the gate: codes in a list, counted in the plainest way, and its neighbours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrave.privacy import AddRemovePerson, AddRemoveRow, ReplacePerson, ReplaceRow, Unit
from margrave.schema.column import Column
from margrave.schema.discrete import Coded
from margrave.schema.domain import Domain
from margrave.typing import Clique, IntArray


@dataclass(frozen=True)
class TinySchema:
    """What the gate asks of a schema."""

    domain: Domain
    draft: bool = False
    person: str | None = None

    def column(self, name: str) -> Column:
        """A column whose codes stand for themselves."""
        return Coded(name, self.domain.size(name))


class TinyTable:
    """Rows of codes, one tuple per row, and the person each belongs to. Counts how often it is asked."""

    def __init__(
        self, schema: TinySchema, rows: Iterable[tuple[int, ...]], persons: Iterable[int] = ()
    ) -> None:
        self.schema: Any = schema
        self.domain = schema.domain
        self.data = [tuple(row) for row in rows]
        self.persons = list(persons)
        self.scans: list[list[Clique]] = []

    def count(self, cliques: Iterable[Clique]) -> dict[Clique, IntArray]:
        asked = list(cliques)
        self.scans.append(asked)
        found = {}
        for clique in asked:
            counts = np.zeros(self.domain.shape(clique), dtype=np.int64)
            for row in self.data:
                counts[tuple(row[self.domain.index(a)] for a in clique)] += 1
            found[clique] = counts
        return found

    def rows(self) -> int:
        return len(self.data)

    def bounded(self, rows_per_person: int) -> TinyTable:
        """The first rows of each person."""
        seen: dict[int, int] = {}
        kept = []
        for i, person in enumerate(self.persons):
            seen[person] = seen.get(person, 0) + 1
            if seen[person] <= rows_per_person:
                kept.append(i)
        return TinyTable(self.schema, [self.data[i] for i in kept], [self.persons[i] for i in kept])


UNITS: list[Unit] = [AddRemoveRow(), ReplaceRow(), AddRemovePerson(3), ReplacePerson(3)]


def tiny_domain() -> Domain:
    return Domain.of({"a": 2, "b": 3, "c": 4})


def neighbours(
    unit: Unit, rng: np.random.Generator, *, worst: bool = False, rows: int = 6
) -> tuple[TinyTable, TinyTable]:
    """Two neighbouring tables of a few rows over ``tiny_domain``: random, or as far apart as the unit allows.

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
    others, one, other = some(rows), differing(True, at_most), differing(False, at_most) if replaced else []
    schema = TinySchema(domain, person="who" if by_person else None)
    owners = [1 + i // 2 for i in range(rows)]  # everybody else has two rows
    pair = [TinyTable(schema, mine + others, [0] * len(mine) + owners) for mine in (one, other)]
    return (pair[0], pair[1]) if rng.integers(2) else (pair[1], pair[0])
