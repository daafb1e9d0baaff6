"""Scans of a Spark DataFrame: its rows are encoded and counted by its own tasks, and only totals reach the driver.

Each task holds one set of totals for all its rows. Totals that add up are cut into pieces, summed in Spark, and
collected once. Spark's accumulators are not used: they count a retried task twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from margrave.data.batch_codes import BatchFault, Reading, Totals
from margrave.data.batch_scans import Scans
from margrave.data.tasks import (
    Messages,
    absorb_messages,
    add_up,
    count_rows,
    number_persons,
    run_job,
)
from margrave.error_sanitizer import hide_rows
from margrave.errors import InputError
from margrave.frames import run_engine


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
        counted = rows.mapInArrow(count_rows(reading, makers, self.max_rows), Messages.spark)
        summed = counted.repartition("kind", "place", "chunk").mapInArrow(add_up, Messages.spark)
        return absorb_messages(run_job(summed.toArrow, "Spark"), totals)

    def _rows(self, columns: Sequence[str]) -> Any:
        """Return the columns, with moments as Spark shows them in the zone of its session."""
        chosen = [self._frame[_quoted(name)] for name in columns]
        moments = [kind for _, kind in self._frame.select(*chosen).dtypes]
        local = [
            c.cast("timestamp_ntz").alias(n) if kind == "timestamp" else c
            for c, n, kind in zip(chosen, columns, moments, strict=True)
        ]
        return self._frame.select(*local)


def _by_person(rows: Any, reading: Reading) -> Any:
    """Return the rows so that those of one person lie in one partition: the limit counts within a task."""
    fields = ", ".join(f"{_quoted(f.name)} {f.dataType.simpleString()}" for f in rows.schema.fields)
    return rows.mapInArrow(
        number_persons(reading), f"{fields}, {Messages.person} bigint"
    ).repartition(Messages.person)


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
