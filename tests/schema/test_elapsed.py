"""Time since another column: a number in questions, a date or time that is never too early in tables."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest

import margrave
from margrave.cli.main import run
from margrave.data import BatchTable, read_table
from margrave.domain import Codes
from margrave.errors import InputError, SchemaError
from margrave.evaluation.numeric import number_summaries
from margrave.inference import Mean
from margrave.mechanisms import MST
from margrave.profiling import backward_rows, constraint_questions, draft_schema, taken_as_public
from margrave.release import Release
from margrave.release.completion import completed
from margrave.schema import ColumnSource, Date, Elapsed, Learn, Ordered, Schema, Timestamp
from margrave.schema.column import Column
from margrave.schema.column_queries import LineCells

LOW, HIGH = datetime(2024, 1, 1), datetime(2024, 12, 31, 23, 59)


def stays(unit: str = "minute", *, low: int | None = 0, high: int = 40 * 1440) -> Schema:
    came = Timestamp("came", LOW, HIGH, unit="minute", bins=12, missing=True)
    went = Elapsed("went", -1440 if low is None else low, high, since="came", unit=unit, bins=20)
    return Schema([came, went])


def rows(number: int, seed: int = 1, *, backward: float = 0.0) -> pa.Table:
    rng = np.random.default_rng(seed)
    came = np.datetime64("2024-01-01T00:00") + rng.integers(0, 500_000, number)
    stay = rng.exponential(3000, number).astype(np.int64)
    went = came + np.where(rng.random(number) < backward, -stay - 1, stay)
    return pa.table({
        "came": pa.array(came.astype("datetime64[us]"), mask=rng.random(number) < 0.1),
        "went": pa.array(went.astype("datetime64[us]"), mask=rng.random(number) < 0.1),
    })  # fmt: skip


# Reading.


@pytest.mark.parametrize(
    ("came", "went", "unit", "code"),
    [
        ("2024-03-01 10:00", "2024-03-01 10:00", "minute", 0),
        ("2024-03-01 10:30", "2024-03-01 11:10", "hour", 1),  # each is rounded down
        ("2024-03-01 23:59", "2024-03-02", "day", 1),
        ("2024-02-28 12:00", "2024-03-01T01:00+02:00", "day", 1),  # in UTC it is the day before
        ("2024-03-02", "2024-03-01", "day", 0),  # before: clipped
        ("1800-01-01", "1800-01-03", "day", 2),  # beyond the bounds of the other column
        ("2024-03-01", "", "day", 9),
        ("", "2024-03-01", "day", 9),
        ("2024-03-01", "soon", "day", 9),
        ("2024-03-01", "1900-01-01", "day", 9),  # a missing-value code
    ],
)
def test_it_is_the_time_between_the_two_dates_of_a_row(
    came: str, went: str, unit: str, code: int
) -> None:
    schema = Schema(
        [stays().columns[0], Elapsed("went", 0, 8, since="came", unit=unit)],
        sources={"went": ColumnSource(missing_codes=["1900-01-01"])},
    )
    assert schema.column("went").missing  # as the column that it counts from
    codes = schema.encode(pa.table({"came": [came], "went": [went]}))
    assert codes.column("went").tolist() == [code]


@pytest.mark.parametrize(("policy", "refused"), [("clip", 0), ("missing", 0), ("refuse", 1)])
def test_a_policy_says_what_becomes_of_rows_that_are_too_early(policy: str, refused: int) -> None:
    went = Elapsed("went", 0, 8, since="came", missing=True, outside=policy)
    schema = Schema([stays().columns[0], went])
    found = schema.preflight(pa.table({"came": ["2024-03-04"], "went": ["2024-03-01"]}))
    assert [c.outside for c in found.columns] == [0, 1]
    assert len(found.refusals) == refused


def test_each_column_is_read_in_its_own_format_in_memory_and_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = Date("came", date(2024, 1, 1), date(2024, 12, 31), format="%d.%m.%Y", missing=True)
    went = Learn("went", "elapsed", low=0, unit="hour", since="came", format="%m/%d/%Y %H:%M")
    schema = Schema([day, went])
    path = tmp_path / "t.csv"
    table = pa.table({"came": ["28.02.2024", "", "x"], "went": ["03/01/2024 05:59"] * 3})
    pa.csv.write_csv(table, path)
    small = read_table(path, schema)
    monkeypatch.setattr("margrave.data.table.MemoryTable.max_code_bytes", 1)
    large = read_table(path, schema)
    assert isinstance(large, BatchTable)
    for read in (small, large):
        counted = read.tally_column("went", LineCells((53.0, 54.0)))
        assert counted.tolist() == [0, 1, 0, 2]
    assert Schema.from_toml(schema.to_toml()) == schema


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ([Elapsed("went", 0, 9, since="came")], "not a column of dates"),
        ([Learn("came", "integer"), Elapsed("went", 0, 9, since="came")], "not a column of dates"),
        ([*stays().columns, Elapsed("paid", 0, 9, since="went")], "not a column of dates"),
    ],
)
def test_a_start_that_is_not_a_date_is_refused(columns: list[Column], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Schema(columns)


def test_faulty_columns_and_orders_of_them_are_refused() -> None:
    with pytest.raises(SchemaError, match="only elapsed time"):
        Learn("came", "date", since="went")
    with pytest.raises(SchemaError, match="since which column"):
        Learn("went", "elapsed")
    with pytest.raises(SchemaError, match="unit is unknown"):
        Elapsed("went", 0, 9, since="came", unit="week")
    with pytest.raises(SchemaError, match="bounds keep its order"):
        Schema(stays().columns, constraints=[Ordered(["came", "went"])])


def test_it_goes_where_its_start_goes() -> None:
    schema = Schema([*stays().columns, Learn("age", "integer")])
    assert schema.drop("came").domain.attributes == ("age",)
    assert schema.drop("came").ignore == ("came", "went")
    after = Learn("went", "elapsed", since="came")
    learned = Schema([Learn("came", "date"), after, Learn("age", "integer")])
    went = Elapsed("went", 0, 9, since="came", missing=True)
    found = learned.with_learned([went, *Schema.coded({"age": 3}).columns])
    assert (found.domain.attributes, found.ignore) == (("age",), ("came", "went"))


# Writing.


def test_codes_come_back_as_times_in_order() -> None:
    schema, table = stays(), rows(3000)
    codes = schema.encode(table)
    made = schema.decode(codes, rng=np.random.default_rng(0))
    assert made.schema.types == [pa.timestamp("us")] * 2
    assert not pc.any(pc.less(made["went"], made["came"])).as_py()
    again = schema.for_reading_output().encode(made)
    assert np.array_equal(again.values, codes.values)


def test_sums_beyond_the_calendar_end_there() -> None:
    schema = stays("day", low=-10, high=4_000_000)
    codes = Codes(schema.domain, np.array([[0] * 3, [0, 19, 20]]))
    made = schema.decode(codes, rng=np.random.default_rng(0))["went"].to_pylist()
    assert made[1:] == [date(9999, 12, 31), None]


def test_a_release_tells_the_mean_stay_and_keeps_it(tmp_path: Path) -> None:
    table = rows(8000)
    went = Learn("went", "elapsed", low=0, unit="minute", since="came")
    schema = Schema([Learn("came", "timestamp", unit="minute"), went])
    release = margrave.synthesize(
        table, schema, mechanism=MST(), epsilon=20.0, delta=1e-9, unit="add-remove-row", seed=1
    )
    made = release.sample(8000, seed=1, as_="arrow")
    assert not pc.any(pc.less(made["went"], made["came"])).as_py()
    (spread,) = number_summaries(table, made, release.schema)
    assert abs(spread.synthetic.mean / spread.real.mean - 1) < 0.1
    mean = release.numbers(columns=["went"], details=True, as_="arrow").to_pylist()[0]
    assert (mean["statistic"], mean["text"].split()[1]) == ("mean", "minutes")
    analysis = margrave.analyze(release, Mean("went"), m=4, rows=2000, seed=1)
    assert abs(analysis.estimates[0].estimate / spread.real.mean - 1) < 0.2
    release.save(tmp_path / "r.margrave")
    assert Release.load(tmp_path / "r.margrave").schema == release.schema


def test_completed_rows_count_from_their_own_dates() -> None:
    schema = stays()
    release = margrave.synthesize(
        rows(2000), schema, mechanism=MST(), epsilon=20.0, delta=1e-9, unit="add-remove-row", seed=1
    )
    own = pa.table({"came": pa.array([datetime(2031, 5, 5), datetime(2024, 5, 5)] * 20)})
    model, rng = release.model.distribution(), np.random.default_rng(1)
    made = completed(schema, model, own, "public", rng)
    assert made["came"].to_pylist() == own["came"].to_pylist()
    assert not pc.any(pc.less(made["went"], made["came"])).as_py()
    with pytest.raises((InputError, SchemaError), match="came"):
        completed(schema, model, rows(9).select(["went"]), "public", rng)


# Drafts.


def admissions(seed: int = 1, *, backward: float = 0.0) -> pa.Table:
    return rows(900, seed, backward=backward).rename_columns(["admitted", "discharged"])


def test_a_draft_goes_by_names_and_not_by_rows() -> None:
    schemas = [draft_schema(admissions(backward=share)) for share in (0.0, 0.4)]
    assert schemas[0] == schemas[1]
    assert schemas[0].domain.attributes == (
        "admitted", "admitted.hour", "admitted.weekday", "discharged",
    )  # fmt: skip
    column = schemas[0].column("discharged")
    assert isinstance(column, Learn)
    assert (column.of, column.low, column.since, column.unit) == (
        "elapsed",
        0,
        "admitted",
        "minute",
    )
    assert "By their names: discharged is never before admitted." in taken_as_public(schemas[0])
    assert "Rows in which it is earlier count as 0" in schemas[0].remarks["discharged"]
    assert backward_rows(admissions(), schemas[0]) == ()
    (said,) = backward_rows(admissions(backward=0.4), schemas[1])
    assert "rows 'discharged' is before 'admitted'" in said


def test_other_names_are_asked_about_also_across_kinds() -> None:
    table = rows(900)
    days = table.set_column(1, "went", table["went"].cast(pa.date32()))
    for made in (table, days):
        schema = draft_schema(made)
        assert all(c.kind != "elapsed" for c in schema.columns)
        (question,) = constraint_questions(made, schema)
        assert (question.kind, question.columns) == ("elapsed", ("came", "went"))
        assert 'kind = "elapsed", since = "came" and low = 0' in question.remark
    assert constraint_questions(rows(900, backward=0.01), draft_schema(table)) == ()


def test_an_accepted_draft_has_no_stay_that_ends_before_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out, released = (tmp_path / n for n in ("t.csv", "o.parquet", "r.margrave"))
    pa.csv.write_csv(admissions(backward=0.05), path)
    words = ["synthesize", str(path), "--accept-draft", "--epsilon", "5", "--delta", "1e-9"]
    words += ["-m", "independent", "-o", str(out), "--release", str(released)]
    assert run(words) == 0
    said = capsys.readouterr().err
    assert "By their names: discharged is never before admitted." in said
    assert "NOT PRIVATE, for the custodian alone: In " in said
    made = pa.parquet.read_table(out)
    assert made.column_names == ["admitted", "discharged"]
    assert not pc.any(pc.less(made["discharged"], made["admitted"])).as_py()
    assert run(["schema", "of", str(released), "-o", str(tmp_path / "s.toml")]) == 0
    assert run(["evaluate", str(path), str(out), "-s", str(tmp_path / "s.toml")]) == 0
