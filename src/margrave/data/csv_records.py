"""Counts the records of a CSV file, to compare with the rows that DuckDB gives.

DuckDB drops a last record without an error if it is longer than a buffer, or if its quote is never closed.
"""

from __future__ import annotations

import gzip
from codecs import BOM_UTF8
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from margrave._kernel import kernel, run_or_compile
from margrave.types import IntArray

CHUNK_BYTES = 1 << 22
#: States of a scan: start of a record, start of a field, in a field without quotes, in one with, behind a quote in it.
RECORD, FIELD, BARE, QUOTED, QUOTE = range(5)
#: The numbers that a scan carries from one chunk to the next.
STATE, RECORDS, BLANKS, LENGTH, LONGEST, LINE, OPENED, AFTER_CR, LONG_LINE, RECORD_LINE, _SIZE = (
    range(11)
)


@dataclass(frozen=True)
class Records:
    """The records of a CSV file with its header, and its blank lines.

    ``longest``: the bytes of the longest record, which begins in line ``long_line``. ``unclosed``: the line in which a
    quote opens that is never closed.
    """

    count: int
    blanks: int
    longest: int
    long_line: int
    unclosed: int | None

    def rows(self, columns: int) -> int:
        """Return how many rows a table of so many columns has: a blank line is one only of a single column."""
        return self.count - 1 + (self.blanks if columns == 1 else 0)


def count_records(path: Path, separator: str, *, compressed: bool) -> Records:
    """Return the records of a CSV file. Quotes follow RFC 4180; a quote within an unquoted field is
    a character.
    """
    state = np.zeros(_SIZE, dtype=np.int64)
    state[LINE] = state[RECORD_LINE] = state[LONG_LINE] = 1
    with gzip.open(path) if compressed else path.open("rb") as file:
        if file.read(len(BOM_UTF8)) != BOM_UTF8:
            file.seek(0)
        while chunk := file.read(CHUNK_BYTES):
            scanned = np.frombuffer(chunk, dtype=np.uint8)
            run_or_compile(_scan, len(chunk), scanned, ord(separator), state)
    return _ended(state)


def _ended(state: IntArray) -> Records:
    count, longest, long_line = (int(state[i]) for i in (RECORDS, LONGEST, LONG_LINE))
    if state[STATE] != RECORD:  # the last record has no line end
        count += 1
        if state[LENGTH] > longest:
            longest, long_line = int(state[LENGTH]), int(state[RECORD_LINE])
    unclosed = int(state[OPENED]) if state[STATE] == QUOTED else None
    return Records(count, int(state[BLANKS]), longest, long_line, unclosed)


@kernel
def _scan(chunk, separator, state):  # type: ignore[no-untyped-def]
    """Carry the scan over a chunk. Line ends are LF, CR LF and CR."""
    at, length, after_cr = state[STATE], state[LENGTH], state[AFTER_CR]
    for byte in chunk:
        ends = byte == 10 or byte == 13
        second = byte == 10 and after_cr == 1
        after_cr = 1 if byte == 13 else 0
        if ends and not second:
            state[LINE] += 1
        if at == QUOTED:
            length += 1
            if byte == 34:
                at = QUOTE
        elif ends:
            if second:
                continue
            if at == RECORD:
                state[BLANKS] += 1
            else:
                state[RECORDS] += 1
                if length > state[LONGEST]:
                    state[LONGEST], state[LONG_LINE] = length, state[RECORD_LINE]
            at, length = RECORD, 0
            state[RECORD_LINE] = state[LINE]
        else:
            length += 1
            if byte == separator:
                at = FIELD
            elif byte == 34 and at != BARE:
                if at != QUOTE:
                    state[OPENED] = state[LINE]
                at = QUOTED
            else:
                at = BARE
    state[STATE], state[LENGTH], state[AFTER_CR] = at, length, after_cr
