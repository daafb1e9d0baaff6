"""Scans of a Spark DataFrame: its rows are encoded and counted by its own tasks, and only totals reach the driver.

Each task holds one set of totals for all its rows. Totals that add up are cut into pieces, summed in Spark, and
collected once. Spark's accumulators are not used: they count a retried task twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from margrave.data.batch_codes import BatchFault, Reading, Totals
from margrave.data.batch_scans import Scans
from margrave.data.spark_frames import quoted, shown_columns
from margrave.data.tasks import (
    Messages,
    absorb_messages,
    add_up,
    count_rows,
    number_persons,
    pack_rows,
    run_job,
    unpack_rows,
)
from margrave.error_sanitizer import hide_rows
from margrave.frames import run_engine


class SparkScans(Scans):
    """The scans of a DataFrame, each a job of Spark.

    Args:
        frame: The rows. It is run anew by each scan, and must give the same rows each time.
    """

    def __init__(self, frame: Any) -> None:
        super().__init__(lambda columns: iter(()))
        self._frame = frame

    @hide_rows
    def scan(self, columns: Sequence[str], reading: Reading, totals: Totals) -> BatchFault:
        """Add all rows to the totals, which Spark counts where they are."""
        summed = run_engine(lambda: self._summed(columns, reading, totals), self._frame)
        return absorb_messages(run_job(summed.toArrow, "Spark"), totals)

    def _summed(self, columns: Sequence[str], reading: Reading, totals: Totals) -> Any:
        """Return the messages of a scan as a DataFrame."""
        rows = shown_columns(self._frame, columns)
        if reading.bound is not None:
            rows = _by_person(rows, reading)
        makers = [consumer.maker() for consumer in totals.consumers]
        tasks = _parallelism(rows)
        if tasks is not None and reading.bound is None:
            rows = rows.coalesce(tasks)
        counted = rows.mapInArrow(count_rows(reading, makers, self.max_rows), Messages.spark)
        return counted.repartition("kind", "place", "chunk").mapInArrow(add_up, Messages.spark)


def spark_batches(frame: Any, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a DataFrame, which reach the driver one partition at a time."""
    packed = shown_columns(frame, columns).mapInArrow(pack_rows, Messages.rows)
    parts = run_job(packed.toLocalIterator, "Spark")
    while (part := run_job(lambda: next(parts, None), "Spark")) is not None:
        yield from unpack_rows(part[0])


def _by_person(rows: Any, reading: Reading) -> Any:
    """Return the rows so that those of one person lie in one partition: the limit counts within a task."""
    fields = ", ".join(f"{quoted(f.name)} {f.dataType.simpleString()}" for f in rows.schema.fields)
    return rows.mapInArrow(
        number_persons(reading), f"{fields}, {Messages.person} bigint"
    ).repartition(Messages.person)


def _parallelism(frame: Any) -> int | None:
    """Return the number of tasks that run at once; None if the session does not say."""
    try:
        return int(frame.sparkSession.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no such object
        return None
