"""Scans of a Spark DataFrame: its rows are encoded and counted by its own tasks, and only totals reach the driver.

Each task holds one set of totals for all its rows. Totals that add up are cut into pieces, summed in Spark, and
collected once. Spark's accumulators are not used: they count a retried task twice. A task never raises an error of
margrave's, because its text would reach logs on the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from margrave.data.batch_codes import BatchFault, Consumer, Found, Reading, Totals
from margrave.data.batch_scans import Scans, tally_batches
from margrave.data.persons import person_names
from margrave.error_sanitizer import hide_rows
from margrave.errors import DataError, InputError
from margrave.frames import columns_of, run_engine
from margrave.types import IntArray

#: Turns the batches of a partition into others.
Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def is_spark(frame: Any) -> bool:
    """Return True for a DataFrame of Spark, also by Spark Connect."""
    kind = type(frame)
    return kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame"


class SparkScans(Scans):
    """The scans of a DataFrame, each a job of Spark.

    Args:
        frame: The rows. It is run anew by each scan, and must give the same rows each time.
    """

    def __init__(self, frame: Any) -> None:
        super().__init__(lambda columns: iter(()))
        _check_version(frame)
        self._frame = frame

    @hide_rows
    def scan(self, columns: Sequence[str], reading: Reading, totals: Totals) -> BatchFault:
        """Add all rows to the totals, which Spark counts where they are."""
        rows = run_engine(lambda: self._rows(columns), self._frame)
        if reading.bound is not None:
            rows = _by_person(rows, reading)
        makers = [consumer.maker() for consumer in totals.consumers]
        tasks = _parallelism(rows)
        if tasks is not None and reading.bound is None:
            rows = rows.coalesce(tasks)
        counted = rows.mapInArrow(_tally(reading, makers, self.max_rows), _Messages.spark)
        summed = counted.repartition("kind", "place", "chunk").mapInArrow(_add_up, _Messages.spark)
        return _absorb(_run(summed.toArrow), totals)

    def _rows(self, columns: Sequence[str]) -> Any:
        """Return the columns, with moments as Spark shows them in the zone of its session."""
        chosen = [self._frame[_quoted(name)] for name in columns]
        moments = [kind for _, kind in self._frame.select(*chosen).dtypes]
        local = [
            c.cast("timestamp_ntz").alias(n) if kind == "timestamp" else c
            for c, n, kind in zip(chosen, columns, moments, strict=True)
        ]
        return self._frame.select(*local)


class _Messages:
    """Messages of tasks to the driver: a fault, a piece of sums, or a part of a list."""

    spark = "kind int, place int, chunk int, data binary"
    arrow = pa.schema(
        [("kind", pa.int32()), ("place", pa.int32()), ("chunk", pa.int32()), ("data", pa.binary())]
    )
    fault, sums, listed = 0, 1, 2
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


def _tally(reading: Reading, makers: Sequence[Callable[[], Consumer]], max_rows: int) -> Task:
    """Return the task that counts the rows of a partition."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        fault, messages = BatchFault.FAILED, list[pa.RecordBatch]()
        try:
            totals = Totals(tuple(make() for make in makers))
            fault = tally_batches(_gathered(batches, max_rows), reading, totals, max_rows)
            messages = list(_Messages.of(totals.found())) if fault is BatchFault.NONE else []
        except MemoryError:
            fault = BatchFault.MEMORY
        except Exception:
            fault = BatchFault.FAILED
        if fault is not BatchFault.NONE:
            messages = [_Messages.batch(_Messages.fault, int(fault), 0, b"")]
        yield from messages

    return count


def _gathered(batches: Iterator[pa.RecordBatch], max_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield larger batches: Spark sends a few thousand rows at a time."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if _Messages.person in batch.schema.names and batch.column(_Messages.person).null_count:
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


def _add_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add up pieces of sums with one place and chunk; pass other messages on."""
    sums: dict[tuple[int, int], IntArray] = {}
    for batch in batches:
        for message in batch.to_pylist():
            if message["kind"] != _Messages.sums:
                yield _Messages.batch(*message.values())
                continue
            cells = np.frombuffer(message["data"], dtype=np.int64)
            where = message["place"], message["chunk"]
            sums[where] = sums[where] + cells if where in sums else cells
    for (place, chunk), cells in sums.items():
        yield _Messages.batch(_Messages.sums, place, chunk, cells.tobytes())


def _absorb(messages: pa.Table, totals: Totals) -> BatchFault:
    sums: dict[int, dict[int, IntArray]] = {}
    faults = [BatchFault.NONE]
    nothing = np.zeros(0, dtype=np.int64)
    for message in messages.to_pylist():
        kind, place, data = message["kind"], message["place"], message["data"]
        if kind == _Messages.fault:
            faults.append(BatchFault(place))
        elif kind == _Messages.sums:
            sums.setdefault(place, {})[message["chunk"]] = np.frombuffer(data, dtype=np.int64)
        else:
            totals.absorb(place, Found(nothing, pa.ipc.open_stream(data).read_all()))
    for place, chunks in sums.items():
        totals.absorb(place, Found(np.concatenate([chunks[i] for i in sorted(chunks)])))
    return max(faults)


def _by_person(rows: Any, reading: Reading) -> Any:
    """Return the rows so that those of one person lie in one partition: the limit counts within a task."""
    fields = ", ".join(f"{_quoted(f.name)} {f.dataType.simpleString()}" for f in rows.schema.fields)
    return rows.mapInArrow(
        _number_persons(reading), f"{fields}, {_Messages.person} bigint"
    ).repartition(_Messages.person)


def _number_persons(reading: Reading) -> Task:
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
            yield batch.append_column(_Messages.person, numbers)

    return number


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _parallelism(frame: Any) -> int | None:
    """Return the number of tasks that run at once; None if the session does not say."""
    try:
        return int(frame.sparkSession.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no such object
        return None


def _check_version(frame: Any) -> None:
    version = str(frame.sparkSession.version)
    if int(version.partition(".")[0]) < 4:
        raise InputError(
            f"This is Spark {version}, and margrave needs Spark 4 or later.",
            remedy="Write the table as Parquet files, and give their folder.",
        )


def _run(job: Callable[[], pa.Table]) -> pa.Table:
    """Run a job of Spark. Its errors may quote rows, so none is passed on."""
    lacking = False
    try:
        return job()
    except Exception as error:
        lacking = "No module named" in str(error)
    if lacking:
        raise InputError(
            "Spark's workers lack margrave or a library of it.",
            remedy="Install margrave, in this version, where the executors run.",
        )
    raise DataError("Spark could not read the table.", remedy="Count its rows in Spark first.")
