"""A table with every kind of column, and comparisons of its counts by any engine with those in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from margrave.data import BatchTable, MemoryTable, read_table
from margrave.schema import (
    Boolean,
    Categorical,
    Coded,
    ColumnSource,
    Date,
    Hour,
    Integer,
    Ordinal,
    Real,
    Schema,
    Weekday,
)
from margrave.schema.column_queries import ClippedSum, DecimalCells, LineCells
from margrave.schema.constraints import Impossible
from margrave.schema.learn import Learn

PARTS = (Weekday("visit.weekday", "visit", missing=True), Hour("seen.hour", "seen", missing=True))
SCHEMA = Schema(
    [
        Categorical("town", ["York", "Hull"], other=True, missing=True, same="case"),
        Ordinal("grade", ["low", "mid", "high"], missing=True),
        Boolean("smokes", missing=True),
        Integer("age", 0, 99, bins=7, atoms=[0, 50], missing=True),
        Real("price", 0, 10, bins=4, missing=True),
        Date("visit", date(2020, 1, 1), date(2021, 12, 31), bins=5, missing=True),
        Coded("code", 5, missing=True),
        *PARTS,
    ],
    person="who",
    ignore=["note"],
    constraints=[Impossible({"age": (0, 13), "grade": ["high"]})],
    sources={"age": ColumnSource(missing_codes=["-4"])},
)
OPEN = Schema(
    [Learn("town", "categorical", same="case"), Learn("price", "real"), Learn("age", "integer", low=0),
     Learn("visit", "date"), Ordinal("grade", ["low", "mid", "high"], missing=True), *PARTS],
    person="who", ignore=["note", "code", "smokes"],
)  # fmt: skip
CLIQUES = [
    *combinations(SCHEMA.domain.attributes[:5], 3),
    ("visit", "code"),
    ("visit", "visit.weekday", "seen.hour"),
    ("age",),
    ("town", "code"),
    (),
]


def visits(rows: int = 300, persons: int = 60) -> pa.Table:
    """Rows of every kind of column, with values outside the schema and equal rows of one person."""
    rng = np.random.default_rng(1)

    def some(values: Sequence[Any]) -> list[Any]:
        return [values[i] for i in rng.integers(len(values), size=rows)]

    return pa.table(
        {
            "town": some(["York", " york", "HULL", "Leeds", None]),
            "grade": some(["low", "mid", "high", None]),
            "smokes": some(["yes", "no", None]),
            "age": pa.array(some([0, 50, 7, 33, 120, -4, None]), pa.int64()),
            "price": pa.array(some([0.0, 2.5, 9.99, 11.0, None]), pa.float64()),
            "visit": pa.array(some([date(2020, 2, 3), date(2021, 5, 6), None]), pa.date32()),
            "code": pa.array(some([0, 1, 4, None]), pa.int64()),
            "note": some(["x", "y"]),
            "who": [f" P{i}" for i in rng.integers(1, persons + 1, size=rows)],
            "seen": pa.array(
                some([datetime(2020, 2, 3, 4, 5), datetime(2021, 5, 6, 23, 59), None]),
                pa.timestamp("us"),
            ),
        }
    )


def equal(one: Any, other: Any, cliques: Sequence[Any]) -> bool:
    """Return True if two tables have the same counts."""
    mine, theirs = one.count(cliques), other.count(cliques)
    return all(np.array_equal(mine[c], theirs[c]) for c in cliques)


def check_counts(source: Any, rows: pa.Table) -> None:
    """Compare a source, whose rows these are, with them in memory: counts, and limits of rows per person."""
    table, memory = read_table(source, SCHEMA), read_table(rows, SCHEMA)
    assert isinstance(table, BatchTable)
    assert isinstance(memory, MemoryTable)
    assert table.rows() == memory.rows()
    assert table.domain == memory.domain
    assert equal(table, memory, CLIQUES)
    assert equal(table, memory, [("age",), ()])
    for limit in (2, 1000):
        limited, right = table.bounded(limit), memory.bounded(limit)
        assert limited.rows() == right.rows() == limited.count([()])[()]
        assert limit < 1000 or equal(limited, memory, CLIQUES)


def check_learned(source: Any, rows: pa.Table) -> None:
    """Compare the values of columns to learn, and the counts once these are declared, with those in memory."""
    memory, table = read_table(rows, OPEN), read_table(source, OPEN)
    assert isinstance(table, BatchTable)
    for one, other in ((memory, table), (memory.bounded(1000), table.bounded(1000))):
        texts, counts = other.value_counts("town")
        right, expected = one.value_counts("town")
        assert dict(zip(texts, counts[:-1], strict=True)) == dict(
            zip(right, expected[:-1], strict=True)
        )
        assert counts[-1] == expected[-1]
        assert counts.dtype == np.int64
        for ask in (LineCells((0.0, 2.5, 9.0)), DecimalCells(), ClippedSum(0.0, 8.0, 3.0)):
            for name in ("price", "age", "visit"):
                found = other.tally_column(name, ask)
                assert found.tolist() == one.tally_column(name, ask).tolist()
                assert found.dtype == np.int64
                assert found.shape == (ask.size,)
    known = [c for c in SCHEMA.columns if c.name in ("town", "price", "age", "visit")]
    learned = OPEN.with_learned(known)
    cliques = [("town", "price", "grade"), ("age", "visit"), ("visit.weekday", "seen.hour", "age")]
    assert equal(memory.recoded(learned), table.recoded(learned), cliques)
    kept = table.bounded(2).recoded(learned)
    assert (
        kept.rows()
        == memory.bounded(2).rows()
        == kept.count([("town", "age")])["town", "age"].sum()
    )
