"""Codes that are derived from a row: hours, weekdays, time elapsed and missing-value codes depend on that row alone.

Loss replay between neighbors whose first row differs shows it: a code that another row had a part in would lose more
than is charged.
"""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margrave.accounting import (
    AddRemovePerson,
    AddRemoveRow,
    Budget,
    ReplacePerson,
    ReplaceRow,
    Unit,
)
from margrave.data import MemoryTable, read_table
from margrave.learning_stage import learn_columns
from margrave.mechanisms import MST
from margrave.privacy import Gaussian, Private, Randomness, SeededRandomness, protect
from margrave.schema import (
    ColumnSource,
    Date,
    Elapsed,
    Hour,
    Integer,
    Learn,
    Schema,
    Timestamp,
    Weekday,
)
from margrave.schema.column_queries import LineCells
from margrave.testing.replay import Recorder, ReplayRandomness, loss_replay

UNITS = [AddRemoveRow(), ReplaceRow(), AddRemovePerson(2), ReplacePerson(2)]
BUDGET, RHO = Budget.zcdp(Fraction(2)), Fraction(1, 10)
CLIQUES = [
    ("came.hour",), ("came.weekday",), ("went",), ("age",), ("seen",), ("went", "came.hour"),
    ("age", "went", "came.weekday"),
]  # fmt: skip


def by_person(unit: Unit) -> bool:
    return isinstance(unit, AddRemovePerson | ReplacePerson)


def schema(unit: Unit, *, learn: bool = False) -> Schema:
    low, high = datetime(2024, 1, 1), datetime(2024, 12, 31)
    went = Elapsed("went", 0, 240, since="came", unit="hour", bins=4, missing=True)
    open_went = Learn("went", "elapsed", low=0, since="came", unit="hour")
    return Schema(
        [
            Timestamp("came", low, high, unit="minute", bins=4, missing=True),
            Hour("came.hour", "came"),
            Weekday("came.weekday", "came"),
            open_went if learn else went,
            Integer("age", 0, 9, missing=True),
            Date("seen", low.date(), high.date(), bins=3, missing=True),
        ],
        person="who" if by_person(unit) else None,
        sources={
            "age": ColumnSource(missing_codes=["-9"]),
            "seen": ColumnSource(missing_codes=["1900-01-01"]),
            "came": ColumnSource(missing_codes=["1900-01-01"]),
        },
    )


OTHERS = [
    ("2024-02-01 08:10", "2024-02-02", 3, date(2024, 2, 1), "p1"),
    ("2024-06-03 21:40", "2024-06-09", -9, date(2024, 6, 1), "p2"),
    ("1900-01-01", "2024-06-09", 5, date(1900, 1, 1), "p3"),
]
FIRST = [
    ("2024-03-05 13:30", "2024-03-06", 7, date(2024, 9, 1), "p9"),
    ("1900-01-01", "2024-03-01", -9, date(1900, 1, 1), "p9"),
    ("2024-12-31 23:59", "2020-01-01", 99, date(2030, 1, 1), "p9"),
]


def table(unit: Unit, first: list[tuple[Any, ...]], *, learn: bool = False) -> MemoryTable:
    names = ("came", "went", "age", "seen", "who")
    listed = [*first, *OTHERS]
    columns = {n: pa.array([row[i] for row in listed]) for i, n in enumerate(names)}
    if not by_person(unit):
        del columns["who"]
    return read_table(pa.table(columns), schema(unit, learn=learn))


def neighbors(unit: Unit) -> list[tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]]:
    many = 2 if by_person(unit) else 1
    if isinstance(unit, AddRemoveRow | AddRemovePerson):
        return [(end, other) for row in FIRST for end, other in (([row] * many, []), ([], [row] * many))]  # fmt: skip
    return [([a] * many, [b] * many) for a in FIRST for b in FIRST if a != b]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_no_neighbor_loses_more_than_the_charge(unit: Unit) -> None:
    def count(private: Private) -> None:
        private.measure(CLIQUES, Gaussian(RHO))

    def learn(private: Private) -> None:
        private.measure_column("went", LineCells((0.0, 10.0, 100.0)), rho=RHO)

    worst = []
    for here, there in neighbors(unit):
        for ask, open_went in ((count, False), (learn, True)):
            tables = (table(unit, rows, learn=open_went) for rows in (here, there))
            loss, charge = loss_replay(ask, *tables, unit, BUDGET)
            assert loss <= charge
            worst.append(loss / charge)
    assert max(worst) > 0.999


def test_the_same_answers_give_the_same_schema_on_other_rows() -> None:
    unit = AddRemoveRow()

    def run(rows: list[tuple[Any, ...]], randomness: Randomness) -> Schema:
        read = table(unit, rows, learn=True)
        with protect(read, budget=BUDGET, unit=unit, randomness=randomness) as private:
            learn_columns(private, MST(), "drop", Fraction(0))
            private.measure([c for c in CLIQUES if "went" not in c], Gaussian(RHO))
            return private.schema

    recorder = Recorder(SeededRandomness(5))
    first = run(FIRST * 300, recorder)
    for rows in (FIRST[::-1] * 200, FIRST[1:2], []):
        replay = ReplayRandomness(recorder.steps)
        assert run(rows, replay) == first
        replay.finish()


def test_a_row_has_the_codes_that_it_has_alone() -> None:
    unit = AddRemoveRow()
    own = schema(unit)
    names = ("came", "went", "age", "seen")
    listed = [*FIRST, *OTHERS]
    frame = pa.table({n: pa.array([row[i] for row in listed]) for i, n in enumerate(names)})
    together = own.encode(frame).values
    alone = [own.encode(frame.slice(i, 1)).values for i in range(len(listed))]
    assert np.array_equal(together, np.concatenate(alone, axis=1))
