"""Encode a batch of rows and add it to the totals of a scan: the one function that runs where the rows are.

It depends on a batch and on the instructions alone, holds no rows afterwards, and never raises: an engine that prints
exceptions of its workers would print rows. It returns a number instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from margrave.data.hash_counts import HashCounts
from margrave.data.persons import person_names
from margrave.data.raw_columns import RawColumns
from margrave.data.row_hash import Hashes, RowKey, digest_of
from margrave.domain import Codes
from margrave.frames import columns_of
from margrave.schema import Preflight, Schema
from margrave.schema.parsing import Mask
from margrave.types import AnyArray, IntArray


class BatchFault(IntEnum):
    """The outcome of a batch. After a fault the totals are void."""

    NONE = 0
    COLUMNS = 1
    MEMORY = 2
    FAILED = 3


@dataclass(frozen=True)
class BoundRows:
    """The rows of persons that have more than ``limit``, by the hash of their content: at most ``limit`` each."""

    persons: HashCounts
    rows: HashCounts
    limit: int


@dataclass(frozen=True)
class Reading:
    """The instructions of a scan.

    Args:
        schema: The schema that the rows were checked by.
        key: The secret key of row hashes.
        learned: The schema whose codes are counted, if columns were learned since.
        bound: The rows to which persons are limited.
        named_only: Rows without a person are left out.
        causes: Guess at lost values, for the custodian's check.
    """

    schema: Schema
    key: RowKey
    learned: Schema | None = None
    bound: BoundRows | None = None
    named_only: bool = False
    causes: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Piece:
    """Some encoded rows, with the counts ``found`` in their whole batch.

    Without a person ID column ``persons`` and ``names`` are empty.
    """

    codes: Codes
    raw: RawColumns
    hashes: Hashes
    persons: Hashes
    names: pa.Array
    found: Preflight

    def where(self, kept: Mask) -> Piece:
        """Return some of the rows."""
        rows = np.flatnonzero(kept)
        named = rows if len(self.persons) else rows[:0]
        return Piece(
            self.codes.take(rows),
            self.raw.take(rows),
            self.hashes[rows],
            self.persons[named],
            self.names.take(pa.array(named)),
            self.found,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Found:
    """The totals of a consumer on some of the rows: numbers that add up, and distinct things with their counts."""

    sums: IntArray
    listed: pa.Table | None = None


class Consumer(Protocol):
    """Totals of one kind: marginals, values of a raw column, checks."""

    def add(self, piece: Piece) -> None:
        """Add the rows that count."""
        ...

    def maker(self) -> Callable[[], Consumer]:
        """Return a function that makes such a consumer without rows, elsewhere."""
        ...

    def found(self) -> Found:
        """Return the totals so far."""
        ...

    def absorb(self, found: Found) -> None:
        """Add the totals of another such consumer. Sums come once; what is listed comes in any number of parts."""
        ...


@dataclass(eq=False, repr=False)
class Totals:
    """The totals of a scan.

    ``rows`` and ``digest`` are of all rows, in any order; ``counted`` rows reach the consumers.
    """

    consumers: tuple[Consumer, ...] = ()
    rows: int = 0
    counted: int = 0
    digest: Hashes = field(default_factory=lambda: np.zeros(2, dtype=np.uint64))
    left: IntArray | None = None

    @property
    def fingerprint(self) -> tuple[int, int, int]:
        """The number of rows and the sum of their hashes."""
        return self.rows, int(self.digest[0]), int(self.digest[1])

    def found(self) -> list[Found]:
        """Return its own totals, and those of each consumer."""
        own = np.concatenate([[self.rows, self.counted], self.digest.view(np.int64)])
        return [Found(own.astype(np.int64)), *(c.found() for c in self.consumers)]

    def absorb(self, place: int, found: Found) -> None:
        """Add the totals at a place of what another scan's ``found`` returned."""
        if place:
            self.consumers[place - 1].absorb(found)
        else:
            self.rows += int(found.sums[0])
            self.counted += int(found.sums[1])
            self.digest = self.digest + found.sums[2:].view(np.uint64)

    def add(self, piece: Piece, reading: Reading) -> None:
        """Add the rows of a piece."""
        self.rows += len(piece.codes)
        self.digest = self.digest + digest_of(piece.hashes)
        kept = self._counting(piece, reading)
        piece = piece if kept is None else piece.where(kept)
        self.counted += len(piece.codes)
        for consumer in self.consumers:
            consumer.add(piece)

    def _counting(self, piece: Piece, reading: Reading) -> Mask | None:
        kept = None
        if reading.named_only and len(piece.persons):
            kept = piece.names.is_valid().to_numpy(zero_copy_only=False)
        if reading.bound is None:
            return kept
        bound = reading.bound
        free = bound.persons.of(piece.persons) <= bound.limit
        free = free if kept is None else free & kept
        if self.left is None:
            self.left = bound.rows.fresh()
        over = np.flatnonzero(~free if kept is None else kept & ~free)
        free[over] = bound.rows.take(piece.hashes[over], self.left)
        return free


def encode_and_tally(batch: pa.RecordBatch, reading: Reading, into: Totals) -> BatchFault:
    """Encode a batch and add it to the totals. Return a fault instead of raising an error.

    Privacy:
        None spent. The totals are true counts, for the gate.
    """
    try:
        needed = [*reading.schema.table_names]
        needed += [] if reading.schema.person is None else [reading.schema.person]
        if not set(needed) <= set(batch.schema.names):
            return BatchFault.COLUMNS
        into.add(_encoded(pa.Table.from_batches([batch]), reading), reading)
    except MemoryError:
        return BatchFault.MEMORY
    except Exception:
        return BatchFault.FAILED
    return BatchFault.NONE


def _encoded(frame: pa.Table, reading: Reading) -> Piece:
    schema = reading.schema
    codes, found = schema.read(frame, causes=reading.causes)
    raw = RawColumns.of(frame, schema)
    further: list[AnyArray] = raw.words(reading.key)
    names, persons = pa.nulls(0, pa.large_string()), np.empty((0, 2), dtype=np.uint64)
    if schema.person is not None:
        pieces = columns_of(frame, [schema.person])[schema.person]
        names = pa.concat_arrays([names, *(person_names(p, schema.person_accepts) for p in pieces)])
        persons = reading.key.of_texts(names)
        persons[names.is_null().to_numpy(zero_copy_only=False)] = 0
        found = replace(found, nameless=names.null_count)
        further += [persons[:, 0], persons[:, 1]]
    words = np.array(further, dtype=np.uint64).reshape(len(further), len(codes))
    hashes = reading.key.of_words(codes.values, words)
    if reading.learned is not None:
        codes = raw.recoded(codes, schema, reading.learned)
    return Piece(codes, raw, hashes, persons, names, found)


def fault_words(fault: BatchFault) -> tuple[str, str]:
    """Return the sentence and the remedy of a fault."""
    words: dict[Any, tuple[str, str]] = {
        BatchFault.COLUMNS: ("A batch of the table lacks a column.", "Give batches of one schema."),
        BatchFault.MEMORY: (
            "The table needs more memory than there is.",
            "Give the machine more memory, or the table smaller batches.",
        ),
    }
    other = ("A batch of the table could not be encoded.", "Try to read all of it by its engine.")
    return words.get(fault, other)
