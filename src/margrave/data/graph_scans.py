"""Scans of a Dask DataFrame or a Ray Dataset: its workers encode and count its parts, and only totals come back.

Each part of the table is one task, whose totals are added up by further tasks, eight at a time. A unit of persons
needs the rows of one person in one task: each part is split by a keyed hash of the person, and task i counts piece i of
every part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from margrave.data.batch_codes import BatchFault, Reading, Totals
from margrave.data.batch_scans import Scans
from margrave.data.tasks import (
    Messages,
    Task,
    absorb_messages,
    add_up,
    count_rows,
    number_persons,
    run_job,
)
from margrave.error_sanitizer import hide_rows
from margrave.frames import collected, names_of, run_engine


class TaskGraph(Protocol):
    """A table in parts, and the engine that runs functions on them. A part is known by a handle."""

    name: str

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        ...

    def parts(self, columns: Sequence[str]) -> list[Any]:
        """Return the parts of the table with these columns."""
        ...

    def run(self, function: Callable[..., Any], *parts: Any) -> Any:
        """Return the handle of the function's result on some parts."""
        ...

    def split(self, function: Callable[[Any], list[Any]], part: Any, pieces: int) -> list[Any]:
        """Return the handles of the pieces that the function makes of a part."""
        ...

    def result(self, part: Any) -> pa.Table:
        """Return what a handle stands for."""
        ...


class DaskGraph:
    """A DataFrame of Dask, whose parts are frames of pandas."""

    name = "Dask"

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return names_of(self._frame)

    def parts(self, columns: Sequence[str]) -> list[Any]:
        """Return the partitions."""
        return list(self._frame[list(columns)].to_delayed())

    def run(self, function: Callable[..., Any], *parts: Any) -> Any:
        """Return the handle of the function's result."""
        return self._delayed(function)(*parts)

    def split(self, function: Callable[[Any], list[Any]], part: Any, pieces: int) -> list[Any]:
        """Return the handles of the pieces of a part."""
        return list(self._delayed(function, nout=pieces)(part))

    def result(self, part: Any) -> pa.Table:
        """Run the graph, on a cluster if the session is connected to one."""
        return part.compute()

    def _delayed(self, function: Callable[..., Any], **options: Any) -> Any:
        from dask import delayed

        return delayed(function, pure=False, traverse=False, **options)


class RayGraph:
    """A Dataset of Ray, whose parts are blocks of Arrow. It is executed anew by each scan."""

    name = "Ray"

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return run_engine(lambda: list(self._dataset.columns() or ()))

    def parts(self, columns: Sequence[str]) -> list[Any]:
        """Execute the dataset, and return its blocks, which stay in Ray's store."""
        return list(self._dataset.select_columns(list(columns)).to_arrow_refs())

    def run(self, function: Callable[..., Any], *parts: Any) -> Any:
        """Start the function on a worker."""
        return self._remote(function).remote(*parts)

    def split(self, function: Callable[[Any], list[Any]], part: Any, pieces: int) -> list[Any]:
        """Start the function that makes the pieces of a part."""
        found = self._remote(function, num_returns=pieces).remote(part)
        return list(found) if pieces > 1 else [self.run(_only, found)]

    def result(self, part: Any) -> pa.Table:
        """Wait for a result."""
        import ray

        return ray.get(part)

    def _remote(self, function: Callable[..., Any], **options: Any) -> Any:
        import ray

        return ray.remote(lambda *parts: function(*parts)).options(**options)


def graph_of(table: Any) -> TaskGraph | None:
    """Return the tasks of a DataFrame of Dask or a Dataset of Ray; None for another table."""
    kinds = {c.__module__.partition(".")[0] + "." + c.__name__ for c in type(table).__mro__}
    if "dask.DataFrame" in kinds:
        return DaskGraph(table)
    return RayGraph(table) if "ray.Dataset" in kinds else None


class GraphScans(Scans):
    """The scans of a table in parts, each a graph of tasks.

    Args:
        graph: The table and its engine. Its parts are read anew by each scan, and must have the same rows each time.
    """

    def __init__(self, graph: TaskGraph) -> None:
        super().__init__(lambda columns: iter(()))
        self._graph = graph

    @hide_rows
    def scan(self, columns: Sequence[str], reading: Reading, totals: Totals) -> BatchFault:
        """Add all rows to the totals, which the workers count where they are."""
        makers = [consumer.maker() for consumer in totals.consumers]
        task = count_rows(reading, makers, self.max_rows)
        return absorb_messages(
            run_job(lambda: self._counted(columns, reading, task), self._graph.name), totals
        )

    def _counted(self, columns: Sequence[str], reading: Reading, task: Task) -> pa.Table:
        run, parts = self._graph.run, self._graph.parts(columns)
        if reading.bound is None:
            together = [[part] for part in parts]
        else:
            number = partial(_by_person, columns, number_persons(reading), len(parts))
            split = [self._graph.split(number, part, len(parts)) for part in parts]
            together = [list(pieces) for pieces in zip(*split, strict=True)]
            columns = [*columns, Messages.person]
        totals = [run(partial(_on_parts, columns, task), *pieces) for pieces in together]
        while len(totals) > 1:
            totals = [run(_sum, *totals[i : i + 8]) for i in range(0, len(totals), 8)]
        return self._graph.result(run(_sum, *totals))


def _on_parts(columns: Sequence[str], task: Task, *parts: Any) -> pa.Table:
    """Return the messages of a task on some parts. A part that cannot be read is a fault of the task's."""
    batches = (batch for part in parts for batch in collected(part, columns).to_batches())
    return pa.Table.from_batches(task(batches), schema=Messages.arrow)


def _by_person(columns: Sequence[str], number: Task, pieces: int, part: Any) -> list[pa.Table]:
    """Return the rows of a part in pieces by the hash of the person; all in the first if one cannot be hashed."""
    try:
        rows = collected(part, columns)
        nothing = pa.RecordBatch.from_pylist([], schema=rows.schema)
        rows = pa.Table.from_batches(number(iter([nothing, *rows.to_batches()])))
        persons = rows[Messages.person]
        turns = np.zeros(len(persons)) if persons.null_count else persons.to_numpy() % pieces
        return [rows.filter(pa.array(turns == i)) for i in range(pieces)]
    except Exception:
        return [pa.table({})] * pieces  # no columns: a fault of the task that counts them


def _sum(*tables: pa.Table) -> pa.Table:
    batches = (batch for table in tables for batch in table.to_batches())
    return pa.Table.from_batches(add_up(batches), schema=Messages.arrow)


def _only(pieces: list[Any]) -> Any:
    return pieces[0]
