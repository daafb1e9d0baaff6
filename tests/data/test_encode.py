"""Encoding is total, row by row and the same from every engine; decoding lands in the cell it came from."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margrave.domain import Codes
from margrave.errors import DataError, InputError, SchemaError
from margrave.frames import columns_of
from margrave.schema import (
    Boolean,
    Categorical,
    Coded,
    Column,
    Date,
    Integer,
    Ordinal,
    Real,
    Schema,
    Timestamp,
)
from margrave.schema.parsing import distinct

quick = settings(max_examples=60, derandomize=True, deadline=None)


def codes(column: Column, values: list[Any], kind: pa.DataType | None = None) -> list[int]:
    return (
        Schema([column])
        .encode(pa.table({column.name: pa.array(values, kind)}))
        .column(column.name)
        .tolist()
    )


EVERY = Schema(
    [
        Categorical("town", ["York", "Hull", "3", "04"], other=True, missing=True),
        Categorical("closed", ["a", "b"]),
        Ordinal("grade", ["low", "mid", "high"], missing=True),
        Boolean("smokes", missing=True),
        Boolean("strict"),
        Integer("age", 0, 99, bins=7, atoms=[0, 50], missing=True),
        Integer("rooms", 1, 4),
        Integer("year", 1990, 2020, edges=[2000, 2010], outside="missing", missing=True),
        Real("price", 0, 10, bins=4, atoms=[0, 2.5], decimals=2),
        Real("share", -1.5, 1.5, missing=True, outside="missing"),
        Date("visit", date(2020, 1, 1), date(2021, 12, 31), bins=5, missing=True),
        Timestamp("seen", datetime(2020, 1, 1), datetime(2020, 1, 31), unit="hour", missing=True),
        Coded("code", 5, missing=True),
        Coded("bare", 3, outside="clip"),
    ]
)


# --- decode and encode again ------------------------------------------------------------------------------------------


@st.composite
def numeric_columns(draw: st.DrawFn) -> Column:
    missing = draw(st.booleans())
    style = draw(st.sampled_from(["bins", "edges"]))
    kind = draw(st.sampled_from(["integer", "real", "date", "timestamp"]))
    if kind == "real":
        bound = st.floats(-1e6, 1e6) | st.integers(-20, 20).map(float)
        low, high = sorted(draw(st.lists(bound, min_size=2, max_size=2, unique=True)))
        inside = st.floats(low, high)
        extra: dict[str, Any] = {"decimals": draw(st.none() | st.integers(0, 4))}
        make: Any = Real
    else:
        start = draw(st.integers(-1000, 1000))
        span = draw(st.integers(0, 200))

        def at(i: int) -> Any:
            if kind == "integer":
                return i
            day = date(2000, 1, 1) + timedelta(days=i)
            return day if kind == "date" else datetime(2000, 1, 1) + timedelta(hours=i)

        low, high = at(start), at(start + span)
        inside = st.integers(start, start + span).map(at)
        extra = {"unit": "hour"} if kind == "timestamp" else {}
        make = {"integer": Integer, "date": Date, "timestamp": Timestamp}[kind]
    cut: dict[str, Any] = {"bins": draw(st.integers(1, 40))}
    if style == "edges":
        cut = {"edges": sorted(draw(st.lists(inside, max_size=5, unique=True)))}
    atoms = draw(st.lists(inside, max_size=6))
    try:
        return make("x", low, high, atoms=atoms, missing=missing, **cut, **extra)
    except SchemaError:  # bounds too close for the bins drawn
        return Real("x", 0, 1, missing=missing)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(column=numeric_columns(), seed=st.integers(0, 3))
def test_a_decoded_number_lies_in_its_cell(column: Column, seed: int) -> None:
    schema = Schema([column])
    rng = np.random.default_rng(seed)
    drawn = Codes.of(schema.domain, {"x": np.repeat(np.arange(column.size), 5)})
    table = schema.decode(drawn, rng=rng)
    assert np.array_equal(schema.encode(table).values, drawn.values)
    found = schema.preflight(table).columns[0]
    assert (found.outside, found.unreadable) == (0, 0)
    assert len(column.labels()) == column.size
    assert table["x"].null_count == (5 if column.missing else 0)


@quick
@given(
    categories=st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=8, unique=True)
)
def test_a_decoded_category_is_its_own(categories: list[str]) -> None:
    for other in (False, True):
        column = Categorical("x", categories, other=other, missing=True)
        schema = Schema([column])
        every = Codes.of(schema.domain, {"x": np.arange(column.size)})
        assert np.array_equal(
            schema.encode(schema.decode(every, rng=np.random.default_rng(0))).values, every.values
        )


def test_every_kind_survives_a_round_trip_through_text() -> None:
    rng = np.random.default_rng(5)
    drawn = Codes.of(EVERY.domain, {c.name: rng.integers(0, c.size, 400) for c in EVERY.columns})
    table = EVERY.decode(drawn, rng=rng)
    assert np.array_equal(EVERY.encode(table).values, drawn.values)
    as_text = pa.table(
        {
            n: [None if v is None else str(v) for v in table[n].to_pylist()]
            for n in table.column_names
        }
    )
    assert np.array_equal(EVERY.encode(as_text).values, drawn.values)


def test_bins_are_drawn_uniformly_and_without_their_atoms() -> None:
    rng = np.random.default_rng(1)
    column = Integer("x", 0, 9, bins=1, atoms=[0, 5])
    values = np.array(column.decode(np.full(8000, 1), rng))  # cells: 0, the bin, 5
    counts = np.bincount(values, minlength=10)
    assert counts[[0, 5]].tolist() == [0, 0]
    assert (abs(counts[[1, 2, 3, 4, 6, 7, 8, 9]] - 1000) < 200).all()
    real = Real("x", 0, 1, bins=2, decimals=1)
    assert set(real.decode(np.zeros(500, dtype=np.int64), rng).to_pylist()) == {
        0.0,
        0.1,
        0.2,
        0.3,
        0.4,
    }
    assert set(real.decode(np.ones(500, dtype=np.int64), rng).to_pylist()) == {
        0.5,
        0.6,
        0.7,
        0.8,
        0.9,
        1.0,
    }
    free = np.array(Real("x", 2, 3, bins=1).decode(np.zeros(4000, dtype=np.int64), rng))
    assert abs(free.mean() - 2.5) < 0.03
    assert ((free >= 2) & (free <= 3)).all()


def test_a_bin_narrower_than_the_decimals_still_gives_values() -> None:
    column = Real("x", 0, 1, edges=[0.51, 0.52], decimals=1)
    drawn = column.decode(np.full(20, 1), np.random.default_rng(0)).to_pylist()
    assert all(0.51 <= v < 0.52 for v in drawn)


def test_a_bin_of_atoms_alone_is_no_cell() -> None:
    assert Integer("x", 1, 3, atoms=[1, 2, 3]).labels() == ["1", "2", "3"]
    assert Integer("x", 0, 9, edges=[3, 4], atoms=[3]).labels() == ["0 to 2", "3", "4 to 9"]


def test_types_follow_from_the_schema_alone() -> None:
    wanted = [pa.string()] * 3 + [pa.bool_()] * 2 + [pa.int64()] * 3 + [pa.float64()] * 2
    wanted += [pa.date32(), pa.timestamp("us"), pa.int64(), pa.int64()]
    rng = np.random.default_rng(0)
    for rows in (0, 1, 7):
        last = {c.name: np.full(rows, c.size - 1) for c in EVERY.columns}
        assert EVERY.decode(Codes.of(EVERY.domain, last), rng=rng).schema.types == wanted


def test_codes_of_another_schema_are_refused() -> None:
    with pytest.raises(InputError, match="not of this schema"):
        EVERY.decode(
            Codes.of(Schema.coded({"a": 2}).domain, {"a": np.array([0])}),
            rng=np.random.default_rng(0),
        )


# --- what a value becomes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values", [["3", "04"], [3, 4], [3.0, 4.0], ["3.0", " 4 "], [Decimal(3), Decimal("4.00")]]
)
def test_categories_of_numbers_match_in_every_type(values: list[Any]) -> None:
    column = Categorical("x", ["3", "04", "b"])
    assert codes(column, values) == [0, 1]


def test_one_fraction_does_not_unmatch_a_column() -> None:
    column = Categorical("x", [1, 2, 3], other=True)
    assert codes(column, [1.0, 2.0, 3.0, 2.5]) == [0, 1, 2, 3]


def test_an_ambiguous_number_is_not_guessed() -> None:
    column = Categorical("x", ["1", "01", "2"], other=True)
    assert codes(column, ["1", "01", "001", "1.0"]) == [0, 1, 3, 3]


def test_the_open_category_may_be_listed() -> None:
    column = Categorical("x", ["other", "a"], other=True)
    assert column.size == 2
    assert codes(column, ["a", "b", "other"]) == [1, 0, 0]


def test_truth_values() -> None:
    column = Boolean("x", missing=True)
    assert codes(column, ["true", "FALSE", "yes", "n", "1", "0", "1.0", "maybe", ""]) == [
        1,
        0,
        1,
        0,
        1,
        0,
        1,
        2,
        2,
    ]
    assert codes(column, [True, False, None]) == [1, 0, 2]
    assert codes(column, [1, 0, 7]) == [1, 0, 2]
    assert codes(Categorical("x", ["False", "True"]), [True, False]) == [1, 0]


def test_numbers_outside_are_clipped_or_missing() -> None:
    clip = Integer("x", 10, 19, bins=2, missing=True)
    assert codes(clip, [-5, 12, 1000, None, float("inf"), float("nan")]) == [0, 0, 1, 2, 2, 2]
    assert codes(clip, ["-inf", "1e400", "12.4", "x", "", "nan", "1_2"]) == [2, 2, 0, 2, 2, 2, 2]
    aside = Integer("x", 10, 19, bins=2, missing=True, outside="missing")
    assert codes(aside, [9, 10, 19, 20]) == [2, 0, 1, 2]
    assert codes(Integer("x", 0, 3), [-(2**62), 2**62, 1]) == [0, 3, 1]


def test_values_with_no_place_go_to_the_first_code() -> None:
    assert codes(Integer("x", 1, 3), ["x", None]) == [0, 0]
    assert codes(Categorical("x", ["a", "b"]), ["z", None]) == [0, 0]
    assert codes(Categorical("x", ["a"], other=True), [None]) == [1]
    assert codes(Coded("x", 3), [7, -1, 1.5, 2]) == [0, 0, 0, 2]
    assert codes(Coded("x", 3, outside="clip"), [7, -1, 2]) == [2, 0, 2]


def test_dates_of_every_form_agree() -> None:
    column = Date("x", date(2020, 1, 1), date(2020, 1, 31), bins=31, missing=True)
    day = date(2020, 1, 7)
    noon = datetime(2020, 1, 7, 12)
    forms: list[tuple[list[Any], pa.DataType | None]] = [
        ([day], pa.date32()),
        ([day], pa.date64()),
        *(([noon], pa.timestamp(u)) for u in ("s", "ms", "us", "ns")),
        ([noon.replace(tzinfo=UTC)], pa.timestamp("us", "UTC")),
        (["2020-01-07"], None),
        (["2020-01-07T23:59:59"], None),
        ([" 20200107 "], None),
        ([20200107], None),
    ]
    assert [codes(column, v, t) for v, t in forms] == [[6]] * len(forms)
    assert codes(column, ["1999-01-01", "2525-01-01", "07/01/2020", None]) == [0, 30, 31, 31]
    written = Date(
        "x", date(2020, 1, 1), date(2020, 1, 31), bins=31, format="%d/%m/%Y", missing=True
    )
    assert codes(written, ["07/01/2020", "2020-01-07"]) == [6, 31]
    far = pa.array([2**60], pa.timestamp("s"))
    assert codes(column, [date(9999, 1, 1)]) == [30]
    assert column.encode(far).codes.tolist() == [30]


def test_times_round_down_and_zones_count_in_utc() -> None:
    column = Timestamp(
        "x", datetime(1969, 12, 31, 20), datetime(1970, 1, 1, 4), unit="hour", missing=True
    )
    east = datetime(1970, 1, 1, 2, 30, tzinfo=timezone(timedelta(hours=2)))
    assert codes(column, [datetime(1970, 1, 1, 0, 59, 59), datetime(1969, 12, 31, 23, 0, 1)]) == [
        4,
        3,
    ]
    assert codes(column, [east.isoformat()]) == [4]
    assert codes(column, [east], pa.timestamp("us", "Europe/Paris")) == [4]


# --- engines ----------------------------------------------------------------------------------------------------------


def a_frame() -> pa.Table:
    return pa.table(
        {
            "town": pa.array(["York", None, "Leeds", "3"]),
            "age": pa.array([0, None, 50, 120], pa.int64()),
            "price": pa.array([0.0, 2.5, 11.0, 3.25]),
            "smokes": pa.array([True, None, False, True]),
            "visit": pa.array([date(2020, 1, 1), None, date(2021, 5, 5), date(2030, 1, 1)]),
            "seen": pa.array(
                [datetime(2020, 1, 2, 3, 4), None, datetime(2020, 1, 30), datetime(2019, 1, 1)]
            ),
            "code": pa.array([0, 4, None, 9], pa.int64()),
        }
    )


SOME = Schema([EVERY.column(n) for n in a_frame().column_names])


def test_engines_encode_alike(tmp_path: Any) -> None:
    table = a_frame()
    expected = SOME.encode(table).values
    connection = duckdb.connect()
    frames = {
        "pandas": table.to_pandas(),
        "pandas of objects": table.to_pandas().astype(object),
        "pandas of arrow": table.to_pandas(types_mapper=pd.ArrowDtype),
        "duckdb": connection.from_arrow(table),
        "chunks": pa.concat_tables([table.slice(0, 1), table.slice(1)]),
        "dictionaries": table.set_column(0, "town", table["town"].dictionary_encode()),
        "columns in another order": table.select(table.column_names[::-1]),
    }
    for name, frame in frames.items():
        assert np.array_equal(SOME.encode(frame).values, expected), name


def test_polars_encodes_alike() -> None:
    polars = pytest.importorskip("polars")
    table = a_frame()
    for frame in (polars.from_arrow(table), polars.from_arrow(table).lazy()):
        assert np.array_equal(SOME.encode(frame).values, SOME.encode(table).values)


def test_mixed_types_in_one_pandas_column() -> None:
    frame = pd.DataFrame(
        {"x": [3, "3", 3.0, None, "b", b"3", float("nan"), True, [1], date(2020, 1, 1)]},
        dtype=object,
    )
    column = Categorical("x", ["3", "b", "2020-01-01"], other=True, missing=True)
    assert Schema([column]).encode(frame).column("x").tolist() == [0, 0, 0, 4, 1, 0, 4, 3, 3, 2]


OBJECTS: dict[str, Any] = {
    "text": "a", "bytes": b"a", "bytearray": bytearray(b"a"), "memoryview": memoryview(b"a"), "not text": b"\xff",
    "int": 3, "float": 3.0, "half": 0.5, "decimal": Decimal("1.50"), "bool": True, "numpy": np.float32(0.5),
    "date": date(2020, 1, 2), "datetime": datetime(2020, 1, 2, 10), "aware": datetime(2020, 1, 2, 10, tzinfo=UTC),
    "fraction": datetime(2020, 1, 2, 10, 0, 0, 500000), "Timestamp": pd.Timestamp("2020-01-02"),
    "nanoseconds": pd.Timestamp("2020-01-02T10:00:00.000000001"), "datetime64": np.datetime64("2020-01-02", "ns"),
    "time": time(10, 30), "timedelta": timedelta(hours=1), "Timedelta": pd.Timedelta("1s"), "uuid": UUID(int=7),
    "arrow": pa.scalar("a"), "interval": pd.Interval(0, 1), "period": pd.Period("2020-01"), "nested": [1],
    "NaT": pd.NaT, "NA": pd.NA,
}  # fmt: skip
COMPANIONS: dict[str, Any] = {
    "none": None, "text": "x", "number": 7, "float": 2.5, "bytes": b"\xff", "bytearray": bytearray(b"\xff"),
    "date": date(1999, 1, 1), "datetime": datetime(1999, 1, 1, 1, 1, 1, 1), "a thing": object(),
    "German date": "01/03/2020",
}  # fmt: skip


@pytest.mark.parametrize("kind", OBJECTS)
def test_an_object_is_the_same_value_whatever_stands_beside_it(kind: str) -> None:
    value = OBJECTS[kind]
    alone = {c: text_of(pd.Series([value]), c) for c in ("text", "day", "moment", "number")}
    for name, other in COMPANIONS.items():
        both = (pd.Series([value, other]), pd.Series([value, other], dtype=object))
        for series in {str(s.dtype): s for s in both}.values():
            for column, expected in alone.items():
                assert text_of(series, column) == expected, (name, column)


def text_of(series: pd.Series[Any], column: str) -> Any:
    """What the first value of a column is read as."""
    pieces = columns_of(pd.DataFrame({"x": series}), ["x"])["x"]
    if column == "text":
        rows, texts = distinct(pieces[0])
        return texts[rows[0]]
    made: dict[str, Any] = {
        "day": Date("x", date(1990, 1, 1), date(2030, 1, 1), format="%d/%m/%Y", missing=True),
        "moment": Timestamp(
            "x", datetime(1990, 1, 1), datetime(2030, 1, 1), format="%d/%m/%Y %H:%M", missing=True
        ),
        "number": Real("x", 0, 10, missing=True),
    }
    return int(Schema([made[column]]).encode(pd.DataFrame({"x": series})).column("x")[0])


def test_moments_and_durations_are_written_alike_in_every_unit() -> None:
    moments, spans = [datetime(2020, 1, 2), datetime(2020, 1, 2, 10)], [timedelta(hours=1), None]
    for unit in ("s", "ms", "us", "ns"):
        rows, texts = distinct(pa.array(moments, pa.timestamp(unit)))
        assert [texts[r] for r in rows] == ["2020-01-02 00:00:00", "2020-01-02 10:00:00"]
        rows, texts = distinct(pa.array(spans, pa.duration(unit)))
        assert [texts[r] for r in rows] == ["3600", None]


def test_a_format_is_for_texts_and_dates_need_none() -> None:
    """One text among dates makes pandas hold objects, and 2020-05-01 is no 5th of January for it."""
    column = Date(
        "x", date(2020, 1, 1), date(2020, 12, 31), bins=12, format="%Y-%d-%m", missing=True
    )
    dates = [pd.Timestamp("2020-05-01")] * 3
    months = [Schema([column]).encode(pd.DataFrame({"x": [*dates, *more]})).column("x")[:3].tolist()
              for more in ([], ["2020-01-05"], [date(2020, 5, 1)])]  # fmt: skip
    assert months == [months[0]] * 3
    both = Schema([column]).encode(pd.DataFrame({"x": [*dates, "2020-01-05"]})).column("x")
    assert len(set(both.tolist())) == 1


# --- nothing is learnt from rows --------------------------------------------------------------------------------------

odd = (
    st.none()
    | st.text(max_size=12)
    | st.integers(-(2**63), 2**63 - 1).map(str)
    | st.floats().map(repr)
    | st.sampled_from(
        [
            "",
            " ",
            "NA",
            "-0",
            "1e999",
            "0x1",
            "٣",
            "2020-02-30",
            "2020-01-01T99",
            "true",
            "\x00",
            "😀",
        ]
    )
)


def from_rows(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in EVERY.columns]
    arrays = [pa.array(list(c), pa.string()) for c in columns]
    return pa.Table.from_arrays(arrays, names=[c.name for c in EVERY.columns])


@settings(max_examples=50, derandomize=True, deadline=None)
@given(
    rows=st.lists(st.tuples(*[odd] * len(EVERY.columns)), max_size=12),
    extra=st.tuples(*[odd] * len(EVERY.columns)),
)
def test_a_row_more_changes_no_other_and_no_type(
    rows: list[tuple[Any, ...]], extra: tuple[Any, ...]
) -> None:
    before = EVERY.encode(from_rows(rows))
    after = EVERY.encode(from_rows([extra, *rows, extra]))
    assert np.array_equal(after.values[:, 1:-1], before.values)
    assert (after.values.dtype, after.domain) == (before.values.dtype, before.domain)
    assert (before.values < np.array(EVERY.domain.sizes)[:, None]).all()
    rng = np.random.default_rng(0)
    assert EVERY.decode(after, rng=rng).schema == EVERY.decode(before, rng=rng).schema


def test_a_hundred_thousand_odd_values_raise_nothing_and_show_nowhere() -> None:
    rng = np.random.default_rng(7)
    alphabet = np.array(list("0123456789.-+eE_xnaif /:TZ\x00\x7f½٣😀,\"'[]{}truefalsyo"))
    rows = 100_000 // len(EVERY.columns) + 1
    lengths = rng.integers(0, 14, rows * len(EVERY.columns))
    letters = rng.choice(alphabet, lengths.sum())
    texts = ["".join(part) for part in np.split(letters, np.cumsum(lengths)[:-1])]
    for i in range(len(EVERY.columns)):
        texts[i * rows : i * rows + 2] = ["CANARY-31415926", "CANARY 2 7 1 8"]
    table = pa.table(
        {c.name: texts[i * rows : (i + 1) * rows] for i, c in enumerate(EVERY.columns)}
    )
    codes, found = EVERY.read(table)
    assert (codes.values.max(axis=1) < EVERY.domain.sizes).all()
    assert "CANARY" not in repr(found)
    with pytest.raises(DataError) as raised:
        found.require()
    assert "CANARY" not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1], None, []]),
        pa.array([{"a": 1}, None, {"a": None}]),
        pa.array([b"\xff\xfe", None, b"3"]),
        pa.array([timedelta(1), None, timedelta(0)]),
        pa.array([Decimal("1.5"), None, Decimal("-3")]),
        pa.array([float("nan"), float("inf"), -0.0]),
        pa.array([2**63 - 1, -(2**63), 0]),
        pa.array([2**64 - 1, 0, None], pa.uint64()),
        pa.array([2**60, None, -(2**60)], pa.timestamp("s")),
        pa.array([2**60, None, -(2**60)], pa.timestamp("s", "UTC")),
        pa.array([2**31 - 1, None, 0], pa.date32()),
        pa.array([1, None, 2], pa.time32("s")),
        pa.nulls(3),
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.array(["a", "b", "c"], pa.large_string()),
        pa.Array.from_buffers(
            pa.string(),
            3,
            [
                None,
                pa.py_buffer(np.array([0, 1, 2, 3], np.int32).tobytes()),
                pa.py_buffer(b"\xff\xfe3"),
            ],
        ),
    ],
    ids=lambda a: str(a.type),
)
def test_every_type_is_encoded_by_every_kind(array: pa.Array) -> None:
    table = pa.table({c.name: array for c in EVERY.columns})
    values = EVERY.encode(table).values
    assert values.shape == (len(EVERY.columns), 3)
    assert (values < np.array(EVERY.domain.sizes)[:, None]).all()


# --- the preflight ----------------------------------------------------------------------------------------------------


def test_the_preflight_counts_and_refuses_by_policy() -> None:
    schema = Schema(
        [
            Categorical("town", ["York"]),
            Integer("age", 0, 9),
            Integer("rooms", 0, 9, outside="refuse", missing=True),
            Integer("floor", 0, 9, outside="missing", missing=True),
        ]
    )
    table = pa.table(
        {
            "town": ["York", "Secretville", "Secretville"],
            "age": ["99999", "4", "eleven"],
            "rooms": ["88888", None, "3"],
            "floor": ["77777", "ground", None],
        }
    )
    found = schema.preflight(table)
    counts = [(c.empty, c.outside, c.unreadable) for c in found.columns]
    assert counts == [(0, 2, 0), (0, 1, 1), (1, 1, 0), (1, 1, 1)]
    assert not found.passed
    with pytest.raises(DataError) as raised:
        schema.check(table)
    told = str(raised.value)
    assert "'town': 2 values outside the schema, and its policy is 'refuse'" in told
    assert "'age': 1 value cannot be read" in told
    assert "'rooms': 1 value outside" in told
    assert "'floor'" not in told
    assert not any(
        secret in told for secret in ("Secretville", "99999", "eleven", "88888", "77777", "ground")
    )
    assert any("'floor': 1 value outside the schema, counted as missing" in n for n in found.notes)
    assert any(
        "'age': 1 value outside the schema, moved to the nearest cell" in n for n in found.notes
    )


def test_a_clean_table_passes_and_empty_values_need_a_state() -> None:
    schema = Schema([Integer("age", 0, 9)])
    assert schema.check(pa.table({"age": [1, 2]})).passed
    with pytest.raises(DataError, match=r"'age': 1 value missing. Allow missing values"):
        schema.check(pa.table({"age": [1, None]}))
    assert Schema([Integer("age", 0, 9, missing=True)]).check(pa.table({"age": [1, None]})).passed


def test_a_column_that_is_not_there_is_an_error() -> None:
    with pytest.raises(DataError, match="no column 'age'"):
        Schema([Integer("age", 0, 9)]).encode(pa.table({"Age": [1]}))
    with pytest.raises(DataError, match="not a table"):
        Schema([Integer("age", 0, 9)]).encode([1, 2, 3])
