"""A table that is read again for every count: encode a batch, tally it, drop it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import final

import numpy as np

from margrave.data.batch_checks import Checks, warn_of_values
from margrave.data.batch_codes import Found, Piece, Reading, Totals
from margrave.data.batch_persons import bound_rows
from margrave.data.batch_scans import Open, Scans
from margrave.data.persons import warn_of_persons
from margrave.data.row_hash import Hashes, RowKey, digest_of
from margrave.data.unshareable import Unshareable
from margrave.data.value_counts import PointCounts, QueryCounts, TextCounts
from margrave.domain import Codes, Domain
from margrave.error_sanitizer import hide_rows
from margrave.errors import DataError, InputError
from margrave.marginal.counting import Tally
from margrave.schema import Schema
from margrave.schema.column_queries import ColumnQuery
from margrave.types import AnyArray, Clique, IntArray


@final
class BatchTable(Unshareable):
    """A table that holds no rows: each count reads its source again, batch by batch.

    ``read_table`` returns one for a source that is too large for memory. The source must give the same rows in each
    scan, in any order; a scan of other rows raises ``DataError``. Memory is that of the counts and two batches, and up
    to 200 bytes per person.

    >>> import pyarrow as pa
    >>> rows = pa.table({"a": [0, 1, 1]})
    >>> table = BatchTable.read(lambda columns: rows.select(columns).to_batches(), Schema.coded({"a": 2}))
    >>> table
    BatchTable(1 column)
    >>> table.count([("a",)])["a",].tolist()
    [1, 2]
    """

    __slots__ = ("_checks", "_reading", "_rows", "_scans", "_values")

    def __init__(self, scans: Scans, reading: Reading, checks: Checks, rows: int) -> None:
        self._scans, self._reading, self._checks, self._rows = scans, reading, checks, rows
        self._values: dict[str, PointCounts | TextCounts] = {}

    @staticmethod
    @hide_rows
    def read(open_batches: Open, schema: Schema, *, total: bool = False) -> BatchTable:
        """Return the table of batches, after one scan that checks all rows.

        Args:
            open_batches: Returns the Arrow batches of the named columns, from the beginning.
            schema: The schema.
            total: No value raises an error or a warning; rows without a person are left out.

        Raises:
            DataError: As ``read_table`` does.

        Privacy:
            None spent. The table is true data, for the gate.
        """
        return BatchTable.over(Scans(open_batches), schema, total=total)

    @staticmethod
    def over(scans: Scans, schema: Schema, *, total: bool = False) -> BatchTable:
        """Return the table of scans, after the first one. See ``read``."""
        reading = Reading(schema, RowKey(), named_only=total)
        checks = Checks(schema, reading.key)
        totals = scans.run(reading, checks)
        if not total:
            warn_of_values(checks.found_rows.require())
            if (persons := checks.person_check()) is not None:
                warn_of_persons(persons, schema.accepted)
        return BatchTable(scans, reading, checks, totals.counted)

    @property
    def schema(self) -> Schema:
        """The public schema."""
        return self._reading.learned or self._reading.schema

    @property
    def domain(self) -> Domain:
        """The schema's domain."""
        return self.schema.domain

    @hide_rows
    def count(self, cliques: Iterable[Clique]) -> dict[Clique, IntArray]:
        """Return true counts by one scan, for the gate only. Single columns are counted when the table is read.

        Raises:
            DataError: If the rows are not those of the first scan.

        Privacy:
            NOT private.
        """
        wanted = list(dict.fromkeys(cliques))
        if self._reading.bound is None and self._reading.learned is None:
            counted = self._checks.columns()
            if all(c in counted for c in wanted):
                return {c: counted[c] for c in wanted}
        marginals = _Marginals(self.domain, wanted)
        self._scan(marginals)
        return marginals.tally.counts()

    def rows(self) -> int:
        """Return the true number of rows, for the gate and the custodian only."""
        return self._rows

    @hide_rows
    def holds(self, codes: Codes) -> bool:
        """Return True if these are its own records, in any order, on the columns of both; for the
        custodian only. One scan, if there are as many.
        """
        if len(codes) != self._rows:
            return False
        records = _Records(self._reading.key, [self.domain.index(a) for a in codes.domain])
        self._scan(records)
        return bool((records.digest == _records_digest(self._reading.key, codes.values)).all())

    @hide_rows
    def bounded(self, rows_per_person: int) -> BatchTable:
        """Return at most ``rows_per_person`` rows of each person, chosen uniformly at random.

        The choice has the law of ``MemoryTable.bounded``. It is made by keyed hashes, whose secret is the operating
        system's and lasts as long as the table: every scan counts the same rows.
        """
        if rows_per_person < 1:
            raise InputError(
                "A person keeps at least one row.", remedy="Give a bound of 1 or more."
            )
        persons, before = self._checks.persons, self._reading.bound
        if persons is None:
            raise DataError(
                "The table does not say whose its rows are.",
                remedy="Name the schema's column of persons, and read the table with it.",
            )
        limit = rows_per_person if before is None else min(rows_per_person, before.limit)
        whole = replace(self._reading, bound=None)
        reading = replace(whole, bound=bound_rows(persons, limit, whole, self._scans))
        return BatchTable(self._scans, reading, self._checks, self._checks.rows_within(limit))

    @hide_rows
    def tally_column(self, column: str, query: ColumnQuery) -> IntArray:
        """Return the true answer of a query about a number, date or time to learn, for the gate only."""
        points = self._raw(column)
        assert isinstance(points, PointCounts)
        if (found := points.totals()) is not None:
            return query.tally(*found)
        counts = QueryCounts(column, query)
        self._scan(counts)
        return counts.answer

    @hide_rows
    def value_counts(self, column: str) -> tuple[AnyArray, IntArray]:
        """Return the distinct texts of a column to learn and their counts, the last of nulls; for the gate only."""
        texts = self._raw(column)
        assert isinstance(texts, TextCounts)
        return texts.totals()

    def recoded(self, schema: Schema) -> BatchTable:
        """Return the table with the codes of a schema whose learned columns are declared, for the gate only."""
        reading = replace(self._reading, learned=schema)
        return BatchTable(self._scans, reading, self._checks, self._rows)

    def _raw(self, column: str) -> PointCounts | TextCounts:
        """Return the distinct values of a column to learn; those of all such columns take one scan together."""
        if not self._values:
            self._values = {
                c.name: PointCounts(c.name) if c.is_number else TextCounts(c.name)
                for c in self._reading.schema.to_learn
            }
            self._scan(*self._values.values())
        return self._values[column]

    def _scan(
        self, *consumers: _Marginals | _Records | PointCounts | TextCounts | QueryCounts
    ) -> Totals:
        return self._scans.run(self._reading, *consumers)

    def __repr__(self) -> str:
        n = len(self.schema.columns)
        return f"BatchTable({n} column{'s' if n > 1 else ''})"


class _Marginals:
    """Counts of cliques."""

    def __init__(self, domain: Domain, cliques: Sequence[Clique]) -> None:
        self._made_of = domain, cliques
        self.tally = Tally(domain, cliques)

    def add(self, piece: Piece) -> None:
        """Add the rows of a piece."""
        self.tally.add(piece.codes)

    def maker(self) -> Callable[[], _Marginals]:
        """Return a function that makes one without rows."""
        return partial(_Marginals, *self._made_of)

    def found(self) -> Found:
        """Return the counts."""
        return Found(self.tally.cells())

    def absorb(self, found: Found) -> None:
        """Add the counts of other rows."""
        self.tally.add_cells(found.sums)


class _Records:
    """A digest of the records on some columns."""

    def __init__(self, key: RowKey, columns: Sequence[int]) -> None:
        self._key, self._columns = key, list(columns)
        self.digest: Hashes = np.zeros(2, dtype=np.uint64)

    def add(self, piece: Piece) -> None:
        """Add the rows of a piece."""
        self.digest = self.digest + _records_digest(self._key, piece.codes.values[self._columns])

    def maker(self) -> Callable[[], _Records]:
        """Return a function that makes one without rows."""
        return partial(_Records, self._key, self._columns)

    def found(self) -> Found:
        """Return the digest."""
        return Found(self.digest.view(np.int64))

    def absorb(self, found: Found) -> None:
        """Add the digest of other rows."""
        self.digest = self.digest + found.sums.view(np.uint64)


def _records_digest(key: RowKey, values: AnyArray) -> Hashes:
    return digest_of(key.of_words(values, np.empty((0, values.shape[1]), dtype=np.uint64)))
