"""Counts by hash, in an open table that grows: how many rows each person or each content has."""

from __future__ import annotations

import numpy as np

from margrave._kernel import kernel
from margrave.data.row_hash import Hashes
from margrave.schema.parsing import Mask
from margrave.types import IntArray


class HashCounts:
    """Counts of hashes of 128 bits. Memory is 32 to 96 bytes per distinct hash."""

    def __init__(self) -> None:
        self._keys = np.zeros((1024, 2), dtype=np.uint64)
        self._counts = np.zeros(1024, dtype=np.int64)
        self._size = 0

    def add(self, hashes: Hashes, counts: IntArray | None = None) -> Mask:
        """Add one per hash, or ``counts``, all positive. Return True where a hash occurs for the first time."""
        self._reserve(len(hashes))
        new = np.zeros(len(hashes), dtype=np.bool_)
        each = np.ones(len(hashes), dtype=np.int64) if counts is None else counts
        _add(self._keys, self._counts, hashes, each, new)
        self._size += int(new.sum())
        return new

    def of(self, hashes: Hashes) -> IntArray:
        """Return the count of every hash, 0 for one that was never added."""
        out = np.empty(len(hashes), dtype=np.int64)
        _look_up(self._keys, self._counts, hashes, out)
        return out

    def take(self, hashes: Hashes, left: IntArray) -> Mask:
        """Return True for the first rows of every hash, as many as its entry in ``left``, and subtract them there.

        ``left`` begins as ``fresh()`` and belongs to one scan.
        """
        out = np.zeros(len(hashes), dtype=np.bool_)
        _take(self._keys, self._counts, hashes, left, out)
        return out

    def fresh(self) -> IntArray:
        """Return a copy of the counts, by place in the table."""
        return self._counts.copy()

    def counts(self) -> IntArray:
        """Return all counts, in no order."""
        return self._counts[self._counts > 0]

    def __len__(self) -> int:
        return self._size

    def _reserve(self, more: int) -> None:
        # at most two thirds of the places are taken
        wanted = len(self._counts)
        while 2 * wanted < 3 * (self._size + more):
            wanted *= 2
        if wanted > len(self._counts):
            taken = np.flatnonzero(self._counts)
            keys, counts = self._keys[taken], self._counts[taken]
            self._keys = np.zeros((wanted, 2), dtype=np.uint64)
            self._counts = np.zeros(wanted, dtype=np.int64)
            _add(self._keys, self._counts, keys, counts, np.zeros(len(keys), dtype=np.bool_))


@kernel
def _place(keys, counts, first, second):  # type: ignore[no-untyped-def]
    last = np.uint64(len(counts) - 1)
    at = first & last
    while counts[at] != 0 and (keys[at, 0] != first or keys[at, 1] != second):
        at = (at + np.uint64(1)) & last
    return at


@kernel
def _add(keys, counts, hashes, each, new):  # type: ignore[no-untyped-def]
    for i in range(len(hashes)):
        at = _place(keys, counts, hashes[i, 0], hashes[i, 1])
        if counts[at] == 0:
            keys[at, 0], keys[at, 1] = hashes[i, 0], hashes[i, 1]
            new[i] = True
        counts[at] += each[i]


@kernel
def _look_up(keys, counts, hashes, out):  # type: ignore[no-untyped-def]
    for i in range(len(hashes)):
        out[i] = counts[_place(keys, counts, hashes[i, 0], hashes[i, 1])]


@kernel
def _take(keys, counts, hashes, left, out):  # type: ignore[no-untyped-def]
    for i in range(len(hashes)):
        at = _place(keys, counts, hashes[i, 0], hashes[i, 1])
        if left[at] > 0:
            left[at] -= 1
            out[i] = True
