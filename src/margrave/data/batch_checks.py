"""The checks of the first scan: policies, persons, and the counts of single columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from margrave.data.batch_codes import Piece
from margrave.data.hash_counts import HashCounts
from margrave.data.row_hash import RowKey
from margrave.marginal.counting import Tally
from margrave.schema import Preflight, Schema
from margrave.schema.person_check import PersonCheck, normalize_identifier
from margrave.types import Clique, IntArray


class Checks:
    """Counts of the first scan, for the custodian and the gate.

    Args:
        schema: The schema.
        key: The secret key of hashes.
    """

    def __init__(self, schema: Schema, key: RowKey) -> None:
        nothing = pa.table({c.name: pa.nulls(0, pa.string()) for c in schema.columns})
        self.found: Preflight = schema.read(nothing)[1]
        self.persons = None if schema.person is None else HashCounts()
        self._alike, self._key = HashCounts(), key
        columns: Sequence[Clique] = [(), *((a,) for a in schema.domain)]
        self._columns = Tally(schema.domain, columns)

    def add(self, piece: Piece) -> None:
        """Add the rows of a piece."""
        self.found = self.found + piece.found
        self._columns.add(piece.codes)
        if self.persons is None:
            return
        named = piece.names.is_valid().to_numpy(zero_copy_only=False)
        new = self.persons.add(piece.persons[named])
        names = piece.names.drop_null().filter(pa.array(new)).to_pylist()
        self._alike.add(self._key.of_texts(pa.array(map(normalize_identifier, names), pa.string())))

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
        return replace(self.found, persons=self.person_check())

    def rows_within(self, limit: int) -> int:
        """Return the number of rows if each person keeps at most ``limit``."""
        assert self.persons is not None
        return int(np.minimum(self.persons.counts(), limit).sum())
