"""Tables: what is counted by the gate. In memory, a table is its codes."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import ClassVar, Protocol, final, runtime_checkable

import numpy as np

from margrave.data.raw_columns import RawColumns
from margrave.data.unshareable import Unshareable
from margrave.domain import Codes, Domain
from margrave.errors import DataError, InputError
from margrave.marginal.counting import count_cliques
from margrave.schema import Schema
from margrave.schema.column_queries import ColumnQuery
from margrave.types import AnyArray, Clique, IntArray


@runtime_checkable
class Table(Protocol):
    """Sensitive rows, known by one question: how many lie in each cell of these cliques.

    An engine that counts where the rows are need only answer that, in as few scans as it can.
    """

    @property
    def schema(self) -> Schema:
        """The public schema."""
        ...

    @property
    def domain(self) -> Domain:
        """The schema's domain."""
        ...

    def count(self, cliques: Iterable[Clique]) -> dict[Clique, IntArray]:
        """Return true counts: one int64 array per clique, with an axis per attribute. For the gate
        only.
        """
        ...

    def rows(self) -> int:
        """Return the true number of rows. For the gate and the custodian only."""
        ...

    def bounded(self, rows_per_person: int) -> Table:
        """Return the table with at most ``rows_per_person`` rows of each person."""
        ...


@runtime_checkable
class LearnableTable(Table, Protocol):
    """A table whose open columns can be learned: it also counts raw values.

    The columns are those of ``schema.to_learn``. Values are points of a line (``Learn.points``) or texts
    (``Learn.texts``).
    """

    def tally_column(self, column: str, query: ColumnQuery) -> IntArray:
        """Return the true answer of a query about a number, date or time. For the gate only."""
        ...

    def value_counts(self, column: str) -> tuple[AnyArray, IntArray]:
        """Return the distinct texts of a column of categories and their counts, and behind these the count of missing
        values. For the gate only.
        """
        ...

    def recoded(self, schema: Schema) -> Table:
        """Return the table with the codes of a schema in which the columns are declared or left out."""
        ...


@final
class MemoryTable(Unshareable):
    """A table as codes in memory. It shows nothing of its rows, and cannot be copied or pickled.

    ``persons`` are whole numbers, one per row: rows of one person have the same.

    >>> schema = Schema.coded({"a": 2})
    >>> table = MemoryTable(schema, Codes.of(schema.domain, {"a": np.array([0, 1, 1])}))
    >>> table
    MemoryTable(1 column)
    >>> table.count([("a",)])["a",].tolist()
    [1, 2]
    """

    #: Bytes of codes and of values to learn up to which a source is read into memory; a larger one is read again for
    #: every count.
    max_code_bytes: ClassVar[int] = 1 << 30
    __slots__ = ("_codes", "_persons", "_schema", "raw")

    def __init__(
        self,
        schema: Schema,
        codes: Codes,
        persons: AnyArray | None = None,
        raw: RawColumns | None = None,
    ) -> None:
        if difference := schema.domain.difference(codes.domain):
            raise InputError(
                f"The codes are not of this schema: {difference}.",
                remedy="Encode the rows with it.",
            )
        if persons is not None and persons.shape != (len(codes),):
            raise InputError("There is not one person per row.")
        if persons is not None and not np.issubdtype(persons.dtype, np.integer):
            raise InputError(
                f"Persons are whole numbers, not {persons.dtype}.", remedy="Number them."
            )
        self._schema, self._codes, self._persons = schema, codes, persons
        #: Values of the columns to learn, for the gate only.
        self.raw = raw

    @property
    def schema(self) -> Schema:
        """The public schema."""
        return self._schema

    @property
    def domain(self) -> Domain:
        """The schema's domain."""
        return self._schema.domain

    def count(self, cliques: Iterable[Clique]) -> dict[Clique, IntArray]:
        """Return true counts, for the gate only.

        Privacy:
            NOT private.
        """
        return count_cliques(self._codes, cliques)

    def rows(self) -> int:
        """Return the true number of rows, for the gate and the custodian only."""
        return len(self._codes)

    def holds(self, codes: Codes) -> bool:
        """Return True if these are its own records, in any order, on the columns of both; for the
        custodian only.
        """
        if len(codes) != len(self._codes):
            return False
        rows = [self._codes.domain.index(a) for a in codes.domain]
        mine, theirs = self._codes.values[rows], codes.values
        if any(
            not np.array_equal(np.sort(m), np.sort(t)) for m, t in zip(mine, theirs, strict=True)
        ):
            return False  # mostly, and sooner
        return np.array_equal(mine[:, np.lexsort(mine)], theirs[:, np.lexsort(theirs)])

    def bounded(self, rows_per_person: int) -> MemoryTable:
        """Return at most ``rows_per_person`` rows of each person, chosen uniformly at random.

        The choice for one person does not depend on other persons' rows or their order, so removing
        a person changes that person's rows alone. It uses the operating system's randomness: with a
        seed, whoever knows the seed could find out which rows were left out.
        """
        if rows_per_person < 1:
            raise InputError(
                "A person keeps at least one row.", remedy="Give a bound of 1 or more."
            )
        if self._persons is None:
            raise DataError(
                "The table does not say whose its rows are.",
                remedy="Name the schema's column of persons, and read the table with it.",
            )
        keys = np.frombuffer(
            secrets.token_bytes(8 * len(self._codes)), dtype=np.uint64
        )  # each row's own
        kept = _first_of_each(self._persons, np.argsort(keys), rows_per_person)
        raw = None if self.raw is None else self.raw.take(kept)
        return MemoryTable(self._schema, self._codes.take(kept), self._persons[kept], raw)

    def tally_column(self, column: str, query: ColumnQuery) -> IntArray:
        """Return the true answer of a query about a number, date or time to learn, for the gate only."""
        return query.tally(self._raw.points[column])

    def value_counts(self, column: str) -> tuple[AnyArray, IntArray]:
        """Return the distinct texts of a column to learn and their counts, the last of nulls; for the gate only."""
        return self._raw.value_counts(column)

    @property
    def _raw(self) -> RawColumns:
        if self.raw is None:
            raise DataError(
                "The table has no values to encode.", remedy="Give the rows themselves."
            )
        return self.raw

    def recoded(self, schema: Schema) -> MemoryTable:
        """Return the table with the codes of a schema whose learned columns are declared, for the gate only."""
        codes = self._raw.recoded(self._codes, self._schema, schema)
        return MemoryTable(schema, codes, self._persons)

    def __repr__(self) -> str:
        n = len(self._schema.columns)
        return f"MemoryTable({n} column{'s' if n > 1 else ''})"


def _first_of_each(persons: AnyArray, order: AnyArray, k: int) -> AnyArray:
    shuffled = persons[order]
    grouped = np.argsort(shuffled, kind="stable")
    begins = np.flatnonzero(np.diff(shuffled[grouped], prepend=shuffled[grouped][:1] - 1))
    lengths = np.diff(begins, append=len(order))
    within = np.arange(len(order)) - np.repeat(begins, lengths)
    return np.sort(order[grouped[within < k]])
