"""Tasks that count rows where they are, for engines that run functions on parts of a table.

A task sends its totals as small messages, which are added up elsewhere. It never raises an error: an engine prints the
errors of its workers, and their text may quote rows. It sends the number of a fault instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from margrave.data.batch_codes import BatchFault, Consumer, Found, Reading, Totals
from margrave.data.batch_scans import tally_batches
from margrave.data.persons import person_names
from margrave.errors import DataError, InputError
from margrave.frames import columns_of, unlogged
from margrave.types import IntArray

T = TypeVar("T")
#: Turns the batches of a part of a table into others.
Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Messages:
    """Messages of tasks to the driver: a fault, a piece of sums, or a part of a list."""

    spark = "kind int, place int, chunk int, data binary"
    arrow = pa.schema(
        [("kind", pa.int32()), ("place", pa.int32()), ("chunk", pa.int32()), ("data", pa.binary())]
    )
    fault, sums, listed = 0, 1, 2
    #: Messages of rows.
    rows = "data binary"
    #: The column of the person's hash, by which rows with a limit are distributed.
    person = "margrave_person"

    @classmethod
    def batch(cls, *message: Any) -> pa.RecordBatch:
        """Return one message."""
        columns = [
            pa.array([value], field.type) for value, field in zip(message, cls.arrow, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=cls.arrow)

    @classmethod
    def of(cls, found: Sequence[Found]) -> Iterator[pa.RecordBatch]:
        """Yield the totals in messages of about 1 MB."""
        cells, rows = 1 << 17, 1 << 15
        for place, part in enumerate(found):
            for chunk, start in enumerate(range(0, len(part.sums), cells)):
                yield cls.batch(cls.sums, place, chunk, part.sums[start : start + cells].tobytes())
            listed = pa.table({}) if part.listed is None else part.listed
            for chunk, start in enumerate(range(0, listed.num_rows, rows)):
                yield cls.batch(cls.listed, place, chunk, _bytes(listed.slice(start, rows)))


def count_rows(reading: Reading, makers: Sequence[Callable[[], Consumer]], max_rows: int) -> Task:
    """Return the task that counts the rows of a partition."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        fault, messages = BatchFault.FAILED, list[pa.RecordBatch]()
        try:
            totals = Totals(tuple(make() for make in makers))
            fault = tally_batches(_gathered(batches, max_rows), reading, totals, max_rows)
            messages = list(Messages.of(totals.found())) if fault is BatchFault.NONE else []
        except MemoryError:
            fault = BatchFault.MEMORY
        except Exception:
            fault = BatchFault.FAILED
        if fault is not BatchFault.NONE:
            messages = [Messages.batch(Messages.fault, int(fault), 0, b"")]
        yield from messages

    return count


def _gathered(batches: Iterator[pa.RecordBatch], max_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield larger batches: Spark sends a few thousand rows at a time."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if Messages.person in batch.schema.names and batch.column(Messages.person).null_count:
            raise ValueError
        waiting.append(batch)
        if sum(b.num_rows for b in waiting) >= max_rows:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches).combine_chunks()
    found = table.to_batches()
    return found[0] if found else batches[0]


def add_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add up pieces of sums with one place and chunk; pass other messages on."""
    sums: dict[tuple[int, int], IntArray] = {}
    for batch in batches:
        for message in batch.to_pylist():
            if message["kind"] != Messages.sums:
                yield Messages.batch(*message.values())
                continue
            cells = np.frombuffer(message["data"], dtype=np.int64)
            where = message["place"], message["chunk"]
            sums[where] = sums[where] + cells if where in sums else cells
    for (place, chunk), cells in sums.items():
        yield Messages.batch(Messages.sums, place, chunk, cells.tobytes())


def absorb_messages(messages: pa.Table, totals: Totals) -> BatchFault:
    sums: dict[int, dict[int, IntArray]] = {}
    faults = [BatchFault.NONE]
    nothing = np.zeros(0, dtype=np.int64)
    for message in messages.to_pylist():
        kind, place, data = message["kind"], message["place"], message["data"]
        if kind == Messages.fault:
            faults.append(BatchFault(place))
        elif kind == Messages.sums:
            sums.setdefault(place, {})[message["chunk"]] = np.frombuffer(data, dtype=np.int64)
        else:
            totals.absorb(place, Found(nothing, pa.ipc.open_stream(data).read_all()))
    for place, chunks in sums.items():
        totals.absorb(place, Found(np.concatenate([chunks[i] for i in sorted(chunks)])))
    return max(faults)


def number_persons(reading: Reading) -> Task:
    """Return the task that adds a keyed hash of each row's person; null if it fails."""

    def number(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            try:
                person = reading.schema.person or ""
                pieces = columns_of(pa.Table.from_batches([batch]), [person])[person]
                names = [person_names(p, reading.schema.person_accepts) for p in pieces]
                hashes = reading.key.of_texts(
                    pa.concat_arrays([pa.nulls(0, pa.large_string()), *names])
                )
                numbers = pa.array(hashes[:, 0].view(np.int64))
            except Exception:
                numbers = pa.nulls(batch.num_rows, pa.int64())
            yield batch.append_column(Messages.person, numbers)

    return number


def pack_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield each batch as one message."""
    for batch in batches:
        data = pa.array([_bytes(pa.Table.from_batches([batch]))], pa.binary())
        yield pa.RecordBatch.from_arrays([data], names=["data"])


def unpack_rows(data: bytes) -> list[pa.RecordBatch]:
    """Return the rows of a message."""
    rows: pa.Table = pa.ipc.open_stream(data).read_all()
    return list(rows.to_batches())


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def run_job(job: Callable[[], T], engine: str) -> T:
    """Run a job of an engine. Its errors may quote rows, so none is passed on."""
    lacking = False
    try:
        with unlogged():
            return job()
    except Exception as error:
        signs = (
            "No module named",
            "must be installed",
            "PYTHON_VERSION_MISMATCH",
            "Cannot run program",
        )
        lacking = any(sign in str(error) for sign in signs)
    if lacking:
        raise InputError(
            f"The workers of {engine} lack margrave or a library of it, or have another version of Python.",
            remedy="Install margrave, in this version, where they run.",
        )
    raise DataError(
        f"{engine} could not read the table.",
        remedy=f"Read all its rows and columns in {engine} first, which says why.",
    )
