"""Scans of a source that can be read again and again: each must see the same rows, in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

import pyarrow as pa

from margrave.data.batch_codes import (
    BatchFault,
    Consumer,
    Reading,
    Totals,
    encode_and_tally,
    fault_words,
)
from margrave.errors import DataError

#: Returns the batches of the columns with these names, from the beginning.
Open = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]


class Scans:
    """The scans of one source. The first one fixes the number of rows and their digest; all others are held to it."""

    #: Rows that are encoded at a time; a larger batch is cut.
    max_rows: ClassVar[int] = 1 << 17

    def __init__(self, open_batches: Open) -> None:
        self._open = open_batches
        self._fingerprint: tuple[int, int, int] | None = None

    def run(self, reading: Reading, *consumers: Consumer) -> Totals:
        """Return the totals of a scan.

        Raises:
            DataError: If a batch cannot be encoded, or the rows are not those of the first scan.
        """
        person = reading.schema.person
        columns = [*reading.schema.table_names, *([] if person is None else [person])]
        totals = Totals(consumers)
        fault = self.scan(columns, reading, totals)
        if fault is not BatchFault.NONE:
            sentence, remedy = fault_words(fault)
            raise DataError(sentence, remedy=remedy)
        if self._fingerprint is None:
            self._fingerprint = totals.fingerprint
        if totals.fingerprint != self._fingerprint:
            raise DataError(
                "The table changed between two scans: its rows are not those of the first one.",
                remedy="Let nobody write to it during the run, or make a copy; a query must give the same rows each"
                " time.",
            )
        return totals

    def scan(self, columns: Sequence[str], reading: Reading, totals: Totals) -> BatchFault:
        """Add all rows to the totals."""
        return tally_batches(self._open(columns), reading, totals, self.max_rows)


def tally_batches(
    batches: Iterator[pa.RecordBatch], reading: Reading, totals: Totals, max_rows: int
) -> BatchFault:
    """Add batches to the totals, so many rows at a time, up to the first fault."""
    for batch in batches:
        for start in range(0, batch.num_rows, max_rows):
            fault = encode_and_tally(batch.slice(start, max_rows), reading, totals)
            if fault is not BatchFault.NONE:
                return fault
    return BatchFault.NONE
