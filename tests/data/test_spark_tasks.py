"""What Spark's tasks run, without Spark: partitions are lists of batches, and messages are added up."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margrave.data import BatchTable, read_table
from margrave.data.batch_codes import BatchFault, Reading, Totals
from margrave.data.batch_scans import Scans
from margrave.data.spark_frames import spark_frame
from margrave.data.tasks import absorb_messages, add_up, count_rows, number_persons
from margrave.errors import DataError
from margrave.marginal import closure
from margrave.schema import Categorical, Depends, Integer, Learn, Real, Schema

SCHEMA = Schema(
    [
        Integer("a", 0, 4, missing=True),
        Categorical("b", ["x", "y"], other=True),
        Real("c", 0, 1, bins=9),
    ],
    person="who",
)


class Partitions(Scans):
    """Scans as Spark makes them, of partitions in memory: the functions of its tasks, and the shuffles by hand."""

    def __init__(self, partitions: list[pa.Table]) -> None:
        super().__init__(lambda columns: iter(()))
        self._partitions = partitions

    def scan(self, columns: Any, reading: Reading, totals: Totals) -> BatchFault:
        """Add all rows to the totals."""
        parts = [list(p.to_batches(max_chunksize=7)) for p in self._partitions]
        if reading.bound is not None:
            numbered = [b for p in parts for b in number_persons(reading)(iter(p))]
            together = pa.Table.from_batches(numbered)
            turn = np.abs(together["margrave_person"].to_numpy()) % 3
            parts = [together.filter(pa.array(turn == i)).to_batches() for i in range(3)]
        makers = [consumer.maker() for consumer in totals.consumers]
        sent = [m for p in parts for m in count_rows(reading, makers, 16)(iter(p))]
        return absorb_messages(pa.Table.from_batches(add_up(iter(sent))), totals)


def visits(rows: int = 200, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "who": [f"p{i}" for i in rng.integers(0, 40, rows)],
            "a": pa.array(rng.integers(-1, 7, rows), mask=rng.random(rows) < 0.1),
            "b": np.array(["x", "y", "z"])[rng.integers(0, 3, rows)],
            "c": rng.random(rows),
        }
    )


def partitions(table: pa.Table, number: int) -> list[pa.Table]:
    cuts = np.linspace(0, table.num_rows, number + 1).astype(int)
    return [table.slice(low, high - low) for low, high in pairwise(cuts)]


@pytest.mark.parametrize("number", [1, 4, 300])
def test_tasks_add_up_to_the_counts_in_memory(number: int) -> None:
    rows = visits()
    counted = BatchTable.over(Partitions(partitions(rows, number)), SCHEMA)
    held = read_table(rows, SCHEMA)
    cliques = list(closure([SCHEMA.domain.attributes]))
    found, expected = counted.count(cliques), held.count(cliques)
    assert counted.rows() == held.rows()
    assert all(np.array_equal(found[c], expected[c]) for c in cliques)


def test_a_limit_counts_within_tasks() -> None:
    rows = visits()
    counted = BatchTable.over(Partitions(partitions(rows, 5)), SCHEMA).bounded(2)
    assert counted.rows() == read_table(rows, SCHEMA).bounded(2).rows()
    once, twice = counted.count([("a", "b")]), counted.count([("a", "b")])
    assert once["a", "b"].sum() == counted.rows()
    assert np.array_equal(once["a", "b"], twice["a", "b"])


def test_what_is_refused_is_refused_in_the_same_words() -> None:
    strict = Schema(
        [Integer("a", 0, 4, outside="refuse"), Categorical("b", ["x", "y", "z"]), Real("c", 0, 1)],
        person="who",
        constraints=[Depends("b", "a", {"x": 1, "y": 2, "z": 3}, violating="refuse")],
    )
    with pytest.raises(DataError) as in_tasks:
        BatchTable.over(Partitions(partitions(visits(), 3)), strict)
    with pytest.raises(DataError) as in_memory:
        read_table(visits(), strict)
    assert str(in_tasks.value) == str(in_memory.value)


def test_columns_to_learn_have_the_values_of_all_tasks() -> None:
    schema = Schema([Learn("c", "real"), Learn("b", "categorical")], ignore=["who", "a"])
    counted = BatchTable.over(Partitions(partitions(visits(), 4)), schema)
    texts, counts = counted.value_counts("b")
    held = read_table(visits(), schema)
    right = dict(zip(*(v.tolist() for v in held.value_counts("b")), strict=False))
    assert dict(zip(texts.tolist(), counts.tolist(), strict=False)) == right


def test_a_table_that_changes_between_scans_is_refused() -> None:
    scans = Partitions(partitions(visits(), 2))
    table = BatchTable.over(scans, SCHEMA)
    scans._partitions = partitions(visits(seed=1), 2)
    with pytest.raises(DataError, match="changed between two scans"):
        table.count([("a", "b")])


def test_a_task_that_fails_sends_a_number_and_no_word() -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from visits(20).to_batches()
        raise RuntimeError("zebra-77341")

    reading = Reading(SCHEMA, BatchTable.over(Partitions([visits()]), SCHEMA)._reading.key)
    for batches in (failing(), iter(visits(20).drop_columns(["a"]).to_batches())):
        sent = list(count_rows(reading, [], 16)(batches))
        assert [m.column("kind")[0].as_py() for m in sent] == [0]
        assert b"zebra" not in b"".join(
            bytes(b) for m in sent for c in m.columns for b in c.buffers() if b
        )
        assert absorb_messages(pa.Table.from_batches(sent), Totals()) is not BatchFault.NONE


def test_a_person_that_cannot_be_hashed_is_a_fault_and_no_error() -> None:
    reading = BatchTable.over(Partitions([visits()]), SCHEMA)._reading
    odd = visits(1).drop_columns(["who"]).to_batches()
    numbered = list(number_persons(Reading(SCHEMA, reading.key))(iter(odd)))
    assert numbered[0].column("margrave_person").null_count == 1
    sent = list(count_rows(reading, [], 16)(iter(numbered)))
    assert sent[0].column("place")[0].as_py() == BatchFault.FAILED


def test_only_frames_of_spark_are_its_own() -> None:
    assert spark_frame(visits()) is None
