"""The checks of the first scan: policies, persons, and the counts of single columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from margrave.custodian import warn_custodian
from margrave.data.batch_codes import Found, Piece
from margrave.data.hash_counts import HashCounts
from margrave.data.row_hash import Hashes, RowKey
from margrave.marginal.counting import Tally
from margrave.schema import Preflight, Schema
from margrave.schema.alarms import how_to_accept
from margrave.schema.person_check import PersonCheck, normalize_identifiers
from margrave.types import Clique, IntArray


class Checks:
    """Counts of the first scan, for the custodian and the gate.

    Args:
        schema: The schema.
        key: The secret key of hashes.
    """

    def __init__(self, schema: Schema, key: RowKey) -> None:
        nothing = pa.table({name: pa.nulls(0, pa.string()) for name in schema.table_names})
        self.found_rows: Preflight = schema.read(nothing)[1]
        self.persons = None if schema.person is None else HashCounts()
        self._schema, self._key, self._alike = schema, key, HashCounts()
        self._new: list[tuple[Hashes, Hashes]] = []
        columns: Sequence[Clique] = [(), *((a,) for a in schema.domain)]
        self._columns = Tally(schema.domain, columns)

    def add(self, piece: Piece) -> None:
        """Add the rows of a piece."""
        self.found_rows = self.found_rows + piece.found
        self._columns.add(piece.codes)
        if self.persons is None:
            return
        named = piece.names.is_valid().to_numpy(zero_copy_only=False)
        new = self.persons.add(piece.persons[named])
        names = piece.names.drop_null().filter(pa.array(new))
        alike = self._key.of_texts(normalize_identifiers(names))
        self._new.append((piece.persons[named][new], alike))
        self._alike.add(alike)

    def maker(self) -> Callable[[], Checks]:
        """Return a function that makes one without rows."""
        return partial(Checks, self._schema, self._key)

    def found(self) -> Found:
        """Return the counts, and the persons with their numbers of rows.

        Guesses at lost values are not among them.
        """
        sums = np.concatenate([self.found_rows.numbers(), self._columns.cells()])
        if self.persons is None:
            return Found(sums)
        nobody = np.empty((0, 2), dtype=np.uint64)
        who = np.concatenate([nobody, *(w for w, _ in self._new)])
        alike = np.concatenate([nobody, *(a for _, a in self._new)])
        names = ("first", "second", "alike_first", "alike_second")
        words = dict(zip(names, np.hstack([who, alike]).T, strict=True))
        return Found(sums, pa.table({**words, "rows": self.persons.of(who)}))

    def absorb(self, found: Found) -> None:
        """Add the counts and persons of other rows."""
        if found.listed is not None and self.persons is not None:
            words = [found.listed[n].to_numpy() for n in found.listed.column_names]
            who, alike = np.array(words[:2]).T.copy(), np.array(words[2:4]).T.copy()
            self._alike.add(alike[self.persons.add(who, words[4])])
        if len(found.sums):
            numbers = len(self.found_rows.numbers())
            self.found_rows = self.found_rows.plus(found.sums[:numbers])
            self._columns.add_cells(found.sums[numbers:])

    def columns(self) -> dict[Clique, IntArray]:
        """Return the counts of the single columns, and of no column, as arrays of their own."""
        return {clique: counts.copy() for clique, counts in self._columns.counts().items()}

    def person_check(self) -> PersonCheck | None:
        """Return what the custodian should know of the persons; None if the schema names no person ID column."""
        if self.persons is None:
            return None
        often = self._alike.counts()
        return PersonCheck.of_counts(self.persons.counts(), int(often[often > 1].sum()))

    def preflight(self) -> Preflight:
        """Return the counts for the custodian."""
        return replace(self.found_rows, persons=self.person_check())

    def rows_within(self, limit: int) -> int:
        """Return the number of rows if each person keeps at most ``limit``."""
        assert self.persons is not None
        return int(np.minimum(self.persons.counts(), limit).sum())


def warn_of_values(found: Preflight) -> None:
    """Warn of columns of which more than a few values are not in the schema or have decimals, without a number."""
    for column in found.columns:
        alarm = column.alarm()
        if alarm is not None and alarm.key not in found.accepted:
            many = [f"have decimals, {column.of_decimals}"] if column.many_decimals else []
            many += [f"are not in the schema. {column.remedy()}"] if column.many_lost else []
            for words in many:
                warn_custodian(
                    f"Column {column.name!r}: many of its values (above 3 %) {words} margrave schema check (in Python"
                    " check_table) says how many, and what they look like. If this is as it should be,"
                    f" {how_to_accept([alarm.key])}."
                )
