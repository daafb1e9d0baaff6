"""Hours and weekdays of timestamps: codes of their own in questions, one column of times in tables."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest

import margrave
from margrave.accounting import AddRemoveRow, Budget
from margrave.data import BatchTable, read_table
from margrave.domain import Codes
from margrave.errors import InputError, SchemaError
from margrave.learning_stage import learn_columns
from margrave.mechanisms import MST
from margrave.privacy import Gaussian, Randomness, SeededRandomness, protect
from margrave.profiling import draft_schema
from margrave.release.conditions import codes_of
from margrave.schema import (
    ColumnSource,
    Date,
    Hour,
    Impossible,
    Learn,
    Ordered,
    Schema,
    Timestamp,
    Weekday,
)
from margrave.schema.column import Column
from margrave.testing.replay import Recorder, ReplayRandomness

BUDGET, RHO = Budget.zcdp(Fraction(2)), Fraction(1, 4)
LOW, HIGH = datetime(2024, 1, 1), datetime(2024, 12, 31, 23, 59)


def parts(name: str = "seen") -> list[Column]:
    return [Hour(f"{name}.hour", name), Weekday(f"{name}.weekday", name)]


def times(*names: str, unit: str = "minute", bins: int = 12, missing: bool = True) -> Schema:
    high = HIGH if unit == "minute" else datetime(2024, 12, 31)
    columns: list[Column] = []
    for name in names:
        columns += [Timestamp(name, LOW, high, unit=unit, bins=bins, missing=missing), *parts(name)]
    return Schema(columns)


def visits(rows: int, seed: int = 1) -> pa.Table:
    """Times in office hours of working days mostly, some of them missing."""
    rng = np.random.default_rng(seed)
    day = rng.integers(0, 364, rows)
    day -= np.where((day % 7 >= 5) & (rng.random(rows) < 0.8), 2, 0)  # 2024 begins on a Monday
    minute = rng.normal(10 * 60, 90, rows).clip(0, 1439).astype(np.int64)
    seen = np.datetime64("2024-01-01T00:00") + day * 1440 + minute
    return pa.table({"seen": pa.array(seen.astype("datetime64[us]"), mask=rng.random(rows) < 0.1)})


def shares(column: pa.ChunkedArray, part: str) -> np.ndarray:
    of = {"hour": pc.hour, "weekday": pc.day_of_week}[part]
    counts = np.bincount(of(column.drop_null()).to_numpy(), minlength=24)
    return np.asarray(counts / counts.sum())


# Reading.


@pytest.mark.parametrize(
    ("value", "hour", "weekday"),
    [
        ("2024-01-01 00:00", 0, 0),
        ("2024-12-29T23:59", 23, 6),
        ("1969-12-31 23:00", 23, 2),  # before 1970, and beyond the bounds
        ("2024-06-01T01:30+02:00", 23, 4),  # in UTC another day
        ("2024-03-31 02:30", 2, 6),  # an hour that summer time skips
        ("", 24, 7),
        (None, 24, 7),
        ("17:00", 24, 7),  # not a time: words of a part are not values
    ],
)
def test_a_part_is_that_of_the_moment(value: str | None, hour: int, weekday: int) -> None:
    codes = times("seen").encode(pa.table({"seen": pa.array([value], pa.string())}))
    assert [int(codes.column(f"seen.{p}")[0]) for p in ("hour", "weekday")] == [hour, weekday]


def test_parts_are_read_from_texts_in_the_format_of_their_column() -> None:
    schema = Schema(
        [Learn("seen", "timestamp", unit="minute", format="%d/%m/%Y %H.%M"), *parts()],
    )
    frame = pa.table({"seen": ["05/02/2024 17.30"]})
    codes = schema.encode(frame)
    assert (codes.column("seen.hour").item(), codes.column("seen.weekday").item()) == (17, 0)
    assert [c.missing for c in schema.columns] == [True] * 3
    again = Schema.from_toml(schema.to_toml())
    assert (again, again.hash()) == (schema, schema.hash())


def test_a_file_is_read_alike_in_memory_and_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, schema = visits(500), times("seen")
    path = tmp_path / "visits.csv"
    pa.csv.write_csv(frame, path)
    small = read_table(path, schema)
    monkeypatch.setattr("margrave.data.table.MemoryTable.max_code_bytes", 10)
    large = read_table(path, schema)
    assert isinstance(large, BatchTable)
    cliques = [("seen.hour", "seen.weekday"), ("seen", "seen.hour")]
    for one, other in zip(
        small.count(cliques).values(), large.count(cliques).values(), strict=True
    ):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ([Date("seen", date(2024, 1, 1), date(2024, 2, 1)), Hour("h", "seen")], "no hour"),
        ([Timestamp("seen", LOW, LOW, unit="day"), Hour("h", "seen")], "no hour"),
        ([Learn("seen", "integer"), Weekday("w", "seen")], "no weekday"),
        ([Learn("seen", "timestamp"), Hour("h", "seen"), Hour("i", "seen")], "the same part"),
        ([Learn("seen", "timestamp"), Hour("h", "h")], "part of itself"),
        ([Learn("seen", "timestamp"), Hour("h", "who")], "person ID column"),
    ],
)
def test_a_part_that_its_column_does_not_have_is_refused(columns: list[Column], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Schema(columns, person="who")


def test_the_values_of_a_column_are_counted_once_in_a_check() -> None:
    found = times("seen").preflight(pa.table({"seen": ["2024-05-05 12:00", "soon", None]}))
    assert [c.name for c in found.columns] == ["seen"]
    assert len(found.notes) == 1


# Writing.


def test_codes_come_back_as_one_column_of_times() -> None:
    schema, frame = times("seen"), visits(4000)
    codes = schema.encode(frame)
    table = schema.decode(codes, rng=np.random.default_rng(0))
    assert table.column_names == ["seen"]
    assert table["seen"].null_count == frame["seen"].null_count
    assert np.array_equal(schema.encode(table).values, codes.values)
    assert np.array_equal(schema.for_reading_output().encode(table).values, codes.values)


@pytest.mark.parametrize("bins", [1, 12, 366, 3000])
def test_the_bin_goes_first_and_parts_follow_as_far_as_it_holds_them(bins: int) -> None:
    schema, rng = times("seen", bins=bins), np.random.default_rng(bins)
    sizes = schema.domain.sizes
    drawn = Codes(schema.domain, np.array([rng.integers(0, size, 2000) for size in sizes]))
    table = schema.decode(drawn, rng=rng)
    back = schema.encode(table)
    assert np.array_equal(back.column("seen"), drawn.column("seen"))
    if bins <= 12:  # a month has every hour of every weekday
        for part in ("seen.hour", "seen.weekday"):
            missing = sizes[schema.domain.index(part)] - 1
            asked = (drawn.column(part) < missing) & (drawn.column("seen") < bins)
            assert np.array_equal(back.column(part)[asked], drawn.column(part)[asked])


def test_dates_have_weekdays() -> None:
    day = Date("day", date(2024, 1, 1), date(2024, 12, 31), bins=6)
    schema = Schema([day, Weekday("day.weekday", "day")])
    frame = pa.table(
        {"day": pa.array(np.arange("2024-01-01", "2024-12-31", dtype="datetime64[D]"))}
    )
    codes = schema.encode(frame)
    table = schema.decode(codes, rng=np.random.default_rng(1))
    assert np.array_equal(schema.encode(table).values, codes.values)


def test_ordered_times_stay_in_order_and_keep_their_parts_where_they_can() -> None:
    both = times("start", "end")
    schema = Schema(both.columns, constraints=[Ordered(["start", "end"])])
    start = visits(3000)["seen"]
    end = pc.add(start, pa.scalar(timedelta(minutes=40)))
    codes = schema.encode(pa.table({"start": start, "end": end}))
    table = schema.decode(codes, rng=np.random.default_rng(1))
    assert not pc.any(pc.less(table["end"], table["start"])).as_py()
    back = schema.encode(table)
    for name in ("start", "end"):
        assert np.array_equal(back.column(name), codes.column(name))
        for part in ("hour", "weekday"):
            same = back.column(f"{name}.{part}") == codes.column(f"{name}.{part}")
            assert same.mean() > 0.95


def test_a_part_alone_is_a_column_of_texts() -> None:
    schema = Schema([Hour("hour", "seen", missing=True)])
    frame = pa.table({"seen": ["2024-01-01 17:20", None]})
    table = schema.decode(schema.encode(frame), rng=np.random.default_rng(0))
    assert table.to_pydict() == {"hour": ["17:00", None]}
    assert schema.for_reading_output().encode(table).values.tolist() == [[17, 24]]
    assert times("seen").select(["seen.hour"]).table_names == ("seen",)


def test_conditions_and_constraints_name_parts_by_their_words() -> None:
    schema = times("seen")
    assert codes_of(schema, "seen.hour", ("08:00", 17)) == tuple(range(8, 18))
    assert codes_of(schema, "seen.weekday", ["Sunday", "monday", None]) == (0, 6, 7)
    closed = Schema(schema.columns, constraints=[Impossible({"seen.weekday": "Sunday"})])
    assert closed.domain.possible(("seen.weekday",)) == 7
    assert Schema.from_toml(closed.to_toml()) == closed


# Runs.


def test_a_draft_learns_times_with_their_parts_and_a_release_keeps_them() -> None:
    frame = visits(20_000)
    schema = draft_schema(frame)
    assert schema.domain.attributes == ("seen", "seen.hour", "seen.weekday")
    release = margrave.synthesize(
        frame, schema, mechanism=MST(), epsilon=20.0, delta=1e-9, unit="add-remove-row", seed=1
    )
    synthetic = release.sample(20_000, seed=1, as_="arrow")
    assert synthetic.column_names == ["seen"]
    for part in ("hour", "weekday"):
        apart = np.abs(shares(synthetic["seen"], part) - shares(frame["seen"], part)).sum() / 2
        assert apart < 0.02
    assert abs(synthetic["seen"].null_count / 20_000 - 0.1) < 0.02
    named = {(n["column"], n["statistic"]) for n in release.numbers(as_="arrow").to_pylist()}
    assert {("seen.hour", "share of 10:00"), ("seen.weekday", "share of Friday")} <= named


def test_the_same_answers_give_the_same_questions_and_schema_on_other_rows() -> None:
    schema = Schema([Learn("seen", "timestamp", unit="minute"), *parts()])

    def run(rows: pa.Table, randomness: Randomness) -> Schema:
        with protect(
            read_table(rows, schema), budget=BUDGET, unit=AddRemoveRow(), randomness=randomness
        ) as private:
            learn_columns(private, MST(), "drop", Fraction(0))
            private.measure([("seen.hour", "seen.weekday"), ("seen", "seen.hour")], Gaussian(RHO))
            return private.schema

    recorder = Recorder(SeededRandomness(5))
    first = run(visits(3000), recorder)
    for rows in (visits(3000, seed=9), visits(2500, seed=7)):
        replay = ReplayRandomness(recorder.steps)
        assert run(rows, replay) == first
        replay.finish()


def test_a_dropped_column_takes_its_parts_and_constraints_along() -> None:
    schema = Schema(
        [*times("seen", "left").columns, Weekday("born.day", "born")],
        constraints=[Ordered(["seen", "left"]), Impossible({"left.hour": ["03:00"]})],
        person="who", ignore=["note"], remarks={"seen": "?", "left": "!"},
        sources={"seen": ColumnSource("read"), "left": ColumnSource("learned")},
    )  # fmt: skip
    found = schema.drop("seen", "born.day")
    assert [c.name for c in found.columns] == ["left", "left.hour", "left.weekday"]
    assert found.ignore == ("note", "seen", "born")
    assert (found.person, len(found.constraints), found.remarks) == ("who", 1, {"left": "!"})
    assert list(found.sources) == ["left"]
    assert not found.draft
    part = schema.drop("left.hour")
    assert part.ignore == ("note",)
    assert part.table_names == schema.table_names
    assert len(part.constraints) == 1
    assert schema.drop() == schema
    with pytest.raises(InputError, match="There is no column 'sen'"):
        schema.drop("sen")
    with pytest.raises(SchemaError, match="no columns"):
        times("seen").drop("seen")
