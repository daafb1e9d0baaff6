"""Small tables for checks: rows of codes, counted in the plainest way, and odd shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from margrave.accounting import AddRemovePerson, AddRemoveRow, ReplacePerson, ReplaceRow, Unit
from margrave.data import MemoryTable
from margrave.domain import Codes, Domain
from margrave.schema import Schema
from margrave.schema.categorical import Coded
from margrave.schema.column import Column
from margrave.types import Clique, IntArray

Row = tuple[int, ...]


def require(holds: bool, sentence: str) -> None:
    """Raise `AssertionError` with a sentence unless a check holds."""
    if not holds:
        raise AssertionError(sentence)


@dataclass(frozen=True)
class TinySchema:
    """The part of a schema that the gate uses."""

    domain: Domain
    draft: bool = False
    person: str | None = None
    to_learn: tuple[Column, ...] = ()

    def column(self, name: str) -> Column:
        """Return a column whose codes stand for themselves."""
        return Coded(name, self.domain.size(name))

    def for_run(self) -> TinySchema:
        """Return the schema itself: all of it is public."""
        return self


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
        """Return the first rows of each person."""
        seen: dict[int, int] = {}
        kept = []
        for i, person in enumerate(self.persons):
            seen[person] = seen.get(person, 0) + 1
            if seen[person] <= rows_per_person:
                kept.append(i)
        return TinyTable(self.schema, [self.data[i] for i in kept], [self.persons[i] for i in kept])


UNITS: list[Unit] = [AddRemoveRow(), ReplaceRow(), AddRemovePerson(3), ReplacePerson(3)]


def codes_of(domain: Domain, rows: Sequence[Row]) -> Codes:
    """Return rows as codes."""
    values = np.array(rows, dtype=np.int64).reshape(len(rows), len(domain))
    return Codes.of(domain, {a: values[:, i] for i, a in enumerate(domain)})


def memory_table(
    sizes: Mapping[str, int], rows: Sequence[Row], persons: Sequence[int] = ()
) -> MemoryTable:
    """Return rows of codes as a table in memory; with ``persons``, its schema names their column."""
    schema = replace(Schema.coded(sizes), person="who" if len(persons) else None)
    return MemoryTable(
        schema, codes_of(schema.domain, rows), np.array(persons) if len(persons) else None
    )


def tiny(sizes: Mapping[str, int], rows: Sequence[Row]) -> TinyTable:
    """Return rows as a table that counts naively, one person to a row; its schema names persons."""
    schema: Any = replace(Schema.coded(sizes), person="who")
    return TinyTable(schema, rows, range(len(rows)))


def some_rows(sizes: Mapping[str, int], count: int, seed: int = 0) -> list[Row]:
    """Return rows in which columns depend on each other and low codes are common."""
    rng = np.random.default_rng(seed)
    base = rng.exponential(size=count)
    return [
        tuple(int(min(s - 1, b * s / 3 + rng.exponential() / 2)) for s in sizes.values())
        for b in base
    ]


SIZES = {"a": 2, "b": 3, "c": 4}

#: Tables that mechanisms must accept: the domain, and the number of rows.
SHAPES: dict[str, tuple[dict[str, int], int]] = {
    "empty": (SIZES, 0),
    "one row": (SIZES, 1),
    "one column": ({"only": 5}, 40),
    "two columns": ({"a": 3, "b": 2}, 40),
    "a column of one code": ({"a": 3, "constant": 1, "c": 2, "d": 2}, 40),
    "columns of one code only": ({"a": 1, "b": 1, "c": 1}, 10),
    "a wide column": ({"a": 2, "wide": 300, "c": 2}, 60),
    "five columns": ({"a": 2, "b": 3, "c": 2, "d": 4, "e": 3}, 60),
}


def shaped(name: str) -> TinyTable:
    """Return a table of ``SHAPES``, every row a person's."""
    sizes, count = SHAPES[name]
    return tiny(sizes, some_rows(sizes, count))


def by_person(unit: Unit) -> bool:
    """Return True if the unit is one of persons."""
    return isinstance(unit, AddRemovePerson | ReplacePerson)
