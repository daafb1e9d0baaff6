"""Limits of the rows of a person over batches: a uniform choice that depends on no order.

Per person the rows with the smallest keys are kept. The key of a row is a keyed hash of the person, the content and the
occurrence among equal rows, so keys of different rows are independent and uniform to all who do not know the secret.
Equal rows are exchangeable: a scan keeps the first ones of each content, as many as the choice has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from margrave.data.batch_codes import BoundRows, Found, Piece, Reading
from margrave.data.batch_scans import Scans
from margrave.data.hash_counts import HashCounts
from margrave.data.row_hash import Hashes, RowKey
from margrave.schema.parsing import Mask
from margrave.types import IntArray


def bound_rows(persons: HashCounts, limit: int, reading: Reading, scans: Scans) -> BoundRows:
    """Return the rows of persons with more than ``limit`` that are kept. A scan reads ``max_rows`` of
    their rows.
    """
    counts = persons.counts()
    over = int(counts[counts > limit].sum())
    parts = max(-(-over // PersonRows.max_rows), 1)
    kept = HashCounts()
    for part in range(parts if over else 0):
        rows = PersonRows(persons, limit, part, parts)
        scans.run(reading, rows)
        _choose(rows, limit, reading.key, kept)
    return BoundRows(persons, kept, limit)


class PersonRows:
    """The hashes of rows of persons that have more than ``limit``, in one part of all persons."""

    #: Rows whose hashes are sorted at once: about 1 GiB. Below 2^24, which leaves 40 bits for their keys.
    max_rows: ClassVar[int] = 12_000_000

    def __init__(self, persons: HashCounts, limit: int, part: int, parts: int) -> None:
        self._counts, self._limit, self._part, self._parts = persons, limit, part, parts
        self.persons: list[Hashes] = []
        self.rows: list[Hashes] = []

    def add(self, piece: Piece) -> None:
        """Add the rows of a piece."""
        mine = piece.persons[:, 1] % np.uint64(self._parts) == self._part
        mine &= self._counts.of(piece.persons) > self._limit
        self.persons.append(piece.persons[mine, 0])
        self.rows.append(piece.hashes[mine])

    def maker(self) -> Callable[[], PersonRows]:
        """Return a function that makes one without rows."""
        return partial(PersonRows, self._counts, self._limit, self._part, self._parts)

    def found(self) -> Found:
        """Return the hashes."""
        rows = np.concatenate([np.empty((0, 2), dtype=np.uint64), *self.rows])
        persons = np.concatenate([np.empty(0, dtype=np.uint64), *self.persons])
        listed = pa.table({"person": persons, "first": rows[:, 0], "second": rows[:, 1]})
        return Found(np.zeros(0, dtype=np.int64), listed)

    def absorb(self, found: Found) -> None:
        """Add the hashes of other rows."""
        if found.listed is not None:
            person, first, second = (c.to_numpy() for c in found.listed.columns)
            self.persons.append(person)
            self.rows.append(np.array([first, second]).T.copy())


def _choose(found: PersonRows, limit: int, key: RowKey, kept: HashCounts) -> None:
    persons, rows = np.concatenate(found.persons), np.concatenate(found.rows)
    found.persons.clear()
    found.rows.clear()
    # rows whose first words alone are equal are taken for different ones: their persons still keep few enough
    order = np.argsort(rows[:, 0])
    persons, rows = persons[order], rows[order]
    starts = np.ones(len(rows), dtype=np.bool_)
    starts[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    chosen = _smallest(persons, key.of_occurrences(rows, _within(starts)), limit)
    run = np.cumsum(starts) - 1
    copies = np.bincount(run[chosen], minlength=int(run[-1]) + 1)
    kept.add(rows[starts][copies > 0], copies[copies > 0].astype(np.int64))


def _smallest(persons: Hashes, keys: Hashes, limit: int) -> Mask:
    """Return True for the ``limit`` rows of each person with the smallest keys, of which 40 bits are compared."""
    numbers = np.unique(persons, return_inverse=True)[1].astype(np.uint64)
    both = numbers << np.uint64(40) | keys >> np.uint64(24)
    order = np.argsort(both)
    starts = np.ones(len(order), dtype=np.bool_)
    starts[1:] = np.diff(both[order] >> np.uint64(40)) > 0
    chosen = np.zeros(len(order), dtype=np.bool_)
    chosen[order[_within(starts) < limit]] = True
    return chosen


def _within(starts: Mask) -> IntArray:
    """Return the position of each row in its run; ``starts`` marks the first rows of runs."""
    at = np.flatnonzero(starts)
    lengths = np.diff(at, append=len(starts))
    return np.arange(len(starts)) - np.repeat(at, lengths)
