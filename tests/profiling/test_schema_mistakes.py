"""What is wrong with a custodian's first file, or first schema, is told by the draft and by the check."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from margrave.cli.main import run
from margrave.data import StreamSource, read_table
from margrave.errors import CustodianWarning, DataError, SchemaError
from margrave.profiling import check_table, draft_schema
from margrave.profiling.draft import draft as draft_either_way
from margrave.schema import Categorical, Date, Integer, Learn, Ordered, Real, Schema, Timestamp
from margrave.schema.person_check import PersonCheck
from margrave.schema.sources import ColumnSource
from tests.cli.test_cli import ok

draft = partial(draft_either_way, read=True)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def column(texts: Sequence[str | None], name: str = "x") -> Schema:
    """The draft of a column beside another."""
    return draft(pa.table({name: pa.array(texts, pa.string()), "beside": ["1"] * len(texts)}))


# Persons.


def visits(rows: int = 600, most: int = 60) -> pa.Table:
    """Few patients with many rows each; the numbers are whole ones, as incomes are."""
    rng = np.random.default_rng(5)
    who = np.concatenate([np.full(most, 31), rng.integers(100, 130, rows - most)])
    return pa.table(
        {
            "visit_id": np.arange(rows) // 2 + 7000,
            "patient_id": who,
            "age": rng.integers(0, 99, rows),
        }
    )


def test_a_draft_of_visits_protects_patients(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A patient has twenty rows: by its numbers alone the column would be drafted as a number."""
    pyarrow.csv.write_csv(visits(), "visits.csv")
    said = " ".join(ok(capsys, "schema", "draft", "visits.csv", "-o", "v.toml").split())
    assert "'patient_id' seems to say whose row it is" in said
    text = (here / "v.toml").read_text()
    assert 'person = "patient_id"' in text.splitlines()
    assert (
        run(["plan", "-s", "v.toml", "--epsilon", "1", "--delta", "1e-6", "-m", "independent"]) == 2
    )
    assert "--unit add-remove-person:K" in capsys.readouterr().err


def test_the_check_says_whose_rows_a_schema_overlooks(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pyarrow.csv.write_csv(visits(), "visits.csv")
    overlooking = Schema([Integer("age", 0, 99)], ignore=["visit_id", "patient_id"])
    overlooking.save("v.toml")
    said = " ".join(ok(capsys, "schema", "check", "visits.csv", "-s", "v.toml").split())
    assert (
        "LOOK AT THIS FIRST. Column 'patient_id' is ignored, and looks as if it said whose row it is"
        in said
    )
    assert "31 identifiers, one of them with 60 of the 600 rows" in said
    assert 'write person = "patient_id" in [schema]' in said
    assert (
        check_table(visits(), overlooking).alarms == check_table("visits.csv", overlooking).alarms
    )
    assert not check_table(
        visits(), Schema(overlooking.columns, person="patient_id", ignore=["visit_id"])
    ).further
    once = visits().take(np.arange(0, 600, 2)).slice(0, 0)
    assert not check_table(once, overlooking).further


def test_the_share_of_the_rows_that_count_is_said_plainly() -> None:
    _, shares = PersonCheck.of(np.array([0, 0, 1])).lines("--unit add-remove-person:K")
    start = "Share of the rows that count, by the most rows that a person keeps (--unit"
    assert shares.startswith(start)
    assert "66.67 % with 1, 100 % with 2" in shares


def test_a_number_of_its_own_in_each_row_is_left_out_by_its_name() -> None:
    rng = np.random.default_rng(1)
    table = pa.table(
        {"patient_id": rng.permutation(10**6)[:300], "cost": rng.permutation(10**6)[:300]}
    )
    assert draft(table).ignore == ("patient_id",)
    assert draft(table).person is None


@pytest.mark.parametrize(
    "name",
    ["patient_nbr", "case_no", "PATNR", "MemberNumber", "id_paciente", "acct_num", "Fallnummer"],
)
def test_names_of_numbers_of_persons(name: str) -> None:
    """A patient has many rows; one of them is on 40."""
    schema = draft(visits().rename_columns(["visit", name, "age"]))
    assert schema.person == name


def holders() -> pa.Table:
    """Numbers of persons under a name that does not say so, beside incomes and codes of jobs."""
    rng = np.random.default_rng(5)
    numbers, rows = rng.integers(10**5, 10**7, 500), 1500
    return pa.table(
        {
            "holder": numbers[rng.integers(0, 500, rows)],
            "income": rng.integers(10**4, 10**5, 500)[rng.integers(0, 500, rows)],
            "grant": np.where(rng.random(rows) < 0.5, 0, numbers[rng.integers(0, 500, rows)]),
            "age": rng.integers(0, 99, rows),
            "ill": [0, 1, 0] * (rows // 3),
        }
    )


def test_codes_that_may_be_persons_are_asked_about_first(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pyarrow.csv.write_csv(holders(), "t.csv")
    question = "LOOK AT THIS FIRST. Does 'holder' say whose row it is?"
    said = " ".join(ok(capsys, "schema", "draft", "t.csv", "-o", "t.toml").split())
    assert (said.count(question), said.count("whose row it is")) == (1, 1)
    assert f"# {question}" in (here / "t.toml").read_text()
    assert draft_either_way(holders()).person is None
    schema = Schema.load("t.toml")
    (alarm,) = check_table("t.csv", schema).alarms
    assert alarm.startswith("Column 'holder' is synthesized, and looks as if it said whose row")
    assert not check_table("t.csv", replace(schema, accepted=["person: holder"])).alarms
    words = ["synthesize", "t.csv", "--accept-draft", "--epsilon", "9", "--delta", "1e-6"]
    assert run([*words, "-m", "independent", "-o", "rows.csv"]) == 0
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith(f"NOT PRIVATE, for the custodian alone: {question}")


def test_a_date_is_no_identifier(here: Path) -> None:
    days = [date(2020, 1, 1 + i % 28) for i in range(28)]
    texts = [*map(str, days), *(d.strftime("%d.%m.%Y") for d in days)]
    table = pa.table({"admitted": texts * 20, "age": [1, 2] * 560})
    assert not check_table(table, Schema([Integer("age", 0, 9)], ignore=["admitted"])).alarms


def test_a_run_asks_for_codes_that_mean_missing_before_it_spends(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    glucose = [*range(60, 160)] * 5 + [-9] * 20
    pyarrow.csv.write_csv(pa.table({"glucose": glucose, "ill": [0, 1] * 260}), "t.csv")
    words = ["synthesize", "t.csv", "--accept-draft", "--epsilon", "9", "--delta", "1e-6"]
    assert run([*words, "-m", "independent", "-o", "rows.csv"]) == 0
    said = capsys.readouterr()
    asked = said.err.partition("Taken as public")[0]
    assert "Is a value of glucose a code for missing? Learning counts it as a value." in asked
    assert "-9" not in asked
    assert "margrave schema ask t.csv" in asked
    assert "Learned bounds: glucose" in said.out
    assert "beyond a learned bound count as that bound" in " ".join(said.out.split())


def test_few_values_under_a_key_are_codes() -> None:
    rng = np.random.default_rng(5)
    table = pa.table({"source_id": rng.integers(1, 27, 900), "stays": rng.integers(1, 27, 900)})
    assert [c.kind for c in draft_either_way(table).columns] == ["categorical", "integer"]


# Headers.


def test_a_file_without_a_header_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "t.csv").write_text("8,F,Diabetes\n" + "9,M,Asthma\n8,F,Diabetes\n" * 30)
    assert run(["schema", "draft", "t.csv", "-o", "t.toml"]) == 4
    said = capsys.readouterr().err
    assert "The table has no header: the names of columns 1, 2, 3 read as values" in said
    assert "Diabetes" not in said
    assert not (here / "t.toml").exists()


def test_a_header_that_may_be_a_row_is_asked_about(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "t.csv").write_text("region,2019,2020\n" + "north,5,7\nsouth,3,4\n" * 30)
    for words in (["-o", "t.toml"], []):
        assert run(["schema", "draft", "t.csv", *words]) == 0
        said = " ".join("".join(capsys.readouterr()).split())
        assert (
            "LOOK AT THIS FIRST. Is this a header? It looks like a row: the names of columns 2, 3 read as"
            in said
        )
    assert "# LOOK AT THIS FIRST. Is this a header?" in (here / "t.toml").read_text()
    assert "Is this a header?" in ok(capsys, "schema", "check", "t.csv", "-s", "t.toml")
    assert json.loads(ok(capsys, "schema", "draft", "t.csv", "--json"))["remarks"][0].startswith(
        "LOOK"
    )
    (here / "t.csv").write_text("region,y2019,y2020\n" + "north,5,7\nsouth,3,4\n" * 30)
    assert "LOOK" not in ok(capsys, "schema", "draft", "t.csv")


@pytest.mark.parametrize("head", ["Visits of 2024\nage;cost\n", "age^cost\n"])
def test_a_header_of_one_field_above_rows_of_several_is_refused_with_the_likely_causes(
    here: Path, head: str
) -> None:
    (here / "t.csv").write_text(head + "20;1,5\n30;2,5\n" * 50)
    with pytest.raises(DataError, match=r"delete a title or comment .*semicolons"):
        draft_schema("t.csv")


@pytest.mark.parametrize("name", ["Weight\n(kg)", " ", "x" * 301])
def test_a_name_that_no_schema_can_hold_is_refused_by_its_place(name: str) -> None:
    with pytest.raises(
        DataError, match="The name of column 2 of the table is blank, longer"
    ) as caught:
        draft(pa.table({"age": [1, 2, 3] * 50, name: [4, 5, 6] * 50}))
    assert caught.value.remedy == "Rename it in the table."


def test_a_name_among_its_own_values_is_asked_about() -> None:
    schema = draft(
        pa.table(
            {"sex": ["F", "M"] * 20, "Asthma": ["Asthma", "Gout"] * 20, "age": ["4", "5"] * 20}
        )
    )
    assert "the name of column 2 reads as a value" in schema.remarks[""]
    assert any(
        "column 2" in a
        for a in check_table(pa.table({c.name: ["1"] for c in schema.columns}), schema).alarms
    )
    with pytest.raises(DataError, match="no header"):
        draft(
            pa.table(
                {"F": ["F", "M"] * 20, "Asthma": ["Asthma", "Gout"] * 20, "4": ["4", "5"] * 20}
            )
        )
    assert not check_table(
        pa.table({"a": ["a"]}), Schema([Categorical("a", ["b", "a b"], missing=True)])
    ).further


# Numbers and dates that would be misread.


def test_dots_between_thousands_are_not_taken_for_decimals() -> None:
    schema = column(["871", "12.345", "1.204", "-310"] * 10)
    assert schema.ignore == ("x",)
    assert "'x' (numbers with dots between thousands, it seems" in schema.remarks[""]
    assert column(["1.204.000", "12.345"] * 10).ignore == ("x",)
    asked = column(["3.250", "2.980"] * 10)
    assert asked.columns[0].kind == "real"
    assert "with a dot for thousands?" in asked.remarks["x"]
    for sound in (["0.871", "12.345"], ["12.345", "12.5"], ["12.345", "1204"], ["871", "204"]):
        assert column(sound * 10).ignore == ()
        assert "thousands" not in column(sound * 10).remarks["x"]
    typed = draft(
        pa.table({"x": [12.345, 871.0] * 10})
    )  # these are numbers, however they would be written
    assert "thousands" not in "".join(typed.remarks.values())


def test_commas_among_points_are_told_as_commas() -> None:
    assert "'x' (numbers with commas" in column(["2,345.00", "12.50", "7"] * 20).remarks[""]


@pytest.mark.parametrize("way", ["{}%", "{} kg", "{}kg", "{},5 mmol", "<{}", "$ {}", "{:,}"])
def test_numbers_with_signs_are_left_out_with_the_reason(way: str) -> None:
    values = [way.format(n).replace(",5 ", ".5 ").replace(",", " ") for n in range(0, 4000, 37)] * 5
    made = draft_either_way(pa.table({"weight": values, "sex": ["f", "m", "m", "f", "f"] * 109}))
    assert made.ignore == ("weight",)
    assert "'weight' (numbers with a unit or another sign (kg, %, <)" in made.remarks[""]
    schema = Schema([Integer("weight", 0, 4000, missing=True)], ignore=["sex"])
    found = check_table(pa.table({"weight": values, "sex": values}), schema)
    assert any("number with other signs (a unit, <, >, blanks" in a for a in found.alarms)


@pytest.mark.parametrize("way", ["{} {}", "B{}{}", "{}{}W", "Ward {} {}"])
def test_codes_with_signs_are_not_taken_for_numbers(way: str) -> None:
    values = [way.format(100 + i % 40, 300 + i % 40) for i in range(800)]
    made = draft_either_way(pa.table({"ward": values, "sex": ["f", "m"] * 400}))
    assert "numbers with a unit" not in made.remarks[""]


def test_dates_in_several_ways_are_not_listed_as_categories() -> None:
    days = [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2023" for i in range(60)]
    for odd in ("2023-04-05", "unknown", "03/2023"):
        for texts in (days, [f"{d} 10:30" for d in days], ["05.06.2023"] * 60):
            schema = column([*texts, *[odd] * 5])
            assert schema.ignore == ("x",)
            assert "'x' (most are dates, but not all are written in one way" in schema.remarks[""]
    assert column([*days, "NA", ""]).columns[0].kind == "date"


def test_numbers_with_a_few_words_among_them_are_not_called_identifiers() -> None:
    schema = column([*[str(i * 7 % 1000 + 0.5) for i in range(200)], "<5"])
    assert "'x' (most are numbers, but some cannot be read as one" in schema.remarks[""]
    codes = column([*[f"{i % 60}.5" for i in range(400)], "V27"])
    assert codes.columns[0].kind == "categorical"
    assert "Most are numbers: should all be?" in codes.remarks["x"]
    assert "Most are numbers" not in column(["1", "2", "3+"] * 20).remarks["x"]


def test_categories_that_differ_by_case_alone_are_told() -> None:
    said = column(["SURGERY", "Surgery", "ICU", "general  ward", "general ward"] * 10).remarks["x"]
    assert (
        "Equal but for case or blanks: 'SURGERY' and 'Surgery'; 'general  ward' and 'general ward'."
        in said
    )
    assert "Equal" not in column(["SURGERY", "ICU"] * 20).remarks["x"]
    wide = [f"street {i % 150}" for i in range(1000)]
    assert "CANARY" not in column([*wide, "CANARY", "canary"]).to_toml()


# Times and years.


def test_times_with_an_offset_are_drafted_as_they_are_read() -> None:
    table = pa.table({"at": [f"2024-{m:02d}-01T00:00+02:00" for m in range(1, 13)] * 3})
    schema = draft(table)
    assert schema.preflight(table).columns[0].outside == 0
    assert schema.columns[0].low.month == 12  # type: ignore[attr-defined]
    assert "taken in UTC" in schema.remarks["at"]
    for without in ("2024-03-01T00:00", "2024-03-01T05:00Z"):
        assert "UTC" not in draft(pa.table({"at": [without] * 3})).remarks["at"]


@pytest.mark.parametrize(
    ("last", "unit"), [("23:00", "hour"), ("23:59", "minute"), ("23:59:59", "second")]
)
def test_the_last_hour_of_the_last_day_is_within_the_bounds(last: str, unit: str) -> None:
    table = pa.table({"at": ["2024-01-01 05:00", *[f"2024-03-31 {last}"] * 30]})
    schema = draft(table)
    assert schema.columns[0].unit == unit  # type: ignore[attr-defined]
    assert schema.preflight(table).columns[0].outside == 0


def test_years_of_two_digits_are_asked_about() -> None:
    assert "read as 1969 to 2068" in column(["31.12.68", "01.02.69"] * 20, "born").remarks["born"]
    assert "1969" not in column(["31.12.1968", "01.02.1969"] * 20, "born").remarks["born"]


# Columns of little use.


def test_costs_get_edges_that_grow_and_keep_their_mean() -> None:
    rng = np.random.default_rng(2)
    cost = np.round(rng.lognormal(7, 1.5, 3000), 2)
    for rows in (cost, np.rint(cost)):
        table = pa.table({"cost": rows})
        schema = draft(table)
        (found,) = schema.columns
        assert 10 < len(found.edges) < 32  # type: ignore[attr-defined]
        assert "It has a long tail" in schema.remarks["cost"]
        back = schema.decode(schema.encode(table), rng=rng)["cost"].to_numpy()
        assert abs(back.mean() / rows.mean() - 1) < 0.08
        assert np.allclose(
            np.quantile(back, [0.25, 0.5, 0.75]), np.quantile(rows, [0.25, 0.5, 0.75]), rtol=0.15
        )
        assert Schema.from_toml(schema.to_toml()) == schema
    even = draft(pa.table({"cost": rng.integers(0, 1000, 3000), "owed": -cost}))
    assert all(c.edges is None for c in even.columns)  # type: ignore[attr-defined]


def test_a_column_of_one_value_is_told() -> None:
    for value in ("7", "7.5", "north", "true", "2024-01-01"):
        assert "All rows have the same value" in column([value] * 30).remarks["x"]
        assert "same" not in column([value, None] * 30).remarks["x"]  # empty or not tells something


def test_marks_in_an_open_list_are_told() -> None:
    wide = [f"street {i % 150}" for i in range(1000)]
    assert "Marks such as NA become 'other'" in column([*wide, "NA"]).remarks["x"]
    assert "Marks" not in column([*wide, ""]).remarks["x"]


# What the check says of values that are lost.


LOOSE = Schema([
    Real("cost", 0, 10_000, bins=10, missing=True),
    Categorical("ward", ["surgery", "internal medicine"], missing=True),
    Categorical("town", ["York"], other=True, missing=True),
    Date("seen", date(2023, 1, 1), date(2023, 12, 31), bins=12, format="%d.%m.%Y", missing=True),
    Integer("count", 0, 9, missing=True),
])  # fmt: skip


def lossy(lost: int, rows: int = 100) -> pa.Table:
    """So many rows of each column that the schema cannot read."""
    odd = {
        "cost": "2,345",
        "ward": "Internal  Medicine",
        "town": "YORK",
        "seen": "2023-04-05",
        "count": "<5",
    }
    even = {"cost": "2345", "ward": "surgery", "town": "York", "seen": "05.04.2023", "count": "5"}
    return pa.table({c: [odd[c]] * lost + [even[c]] * (rows - lost) for c in odd})


def test_a_few_per_cent_of_lost_values_are_told_with_what_they_look_like() -> None:
    told = check_table(lossy(4), LOOSE).alarms
    looks = [
        "a number with a comma",
        *["a listed category but for"] * 2,
        "a date written in another",
    ]
    assert len(told) == 5
    for sentence, name, look in zip(
        told, LOOSE.domain, [*looks, "a number with other signs"], strict=True
    ):
        assert sentence.startswith(
            f"Column {name!r}: 4 % of its values are not in the schema, counted as"
        )
        assert f"All look like {look}" in sentence
    assert not check_table(lossy(3), LOOSE).alarms
    assert all("look like" in n for n in check_table(lossy(3), LOOSE).notes)
    assert LOOSE.preflight(lossy(4)).alarms == told


def test_values_beyond_the_bounds_raise_an_alarm_though_they_are_moved_there() -> None:
    table = pa.table({"cost": [200.0] * 4 + [5.0] * 96})
    for column, bounds in (
        (Real("cost", 0, 100), "0.0 to 100.0"),
        (Learn("cost", "real", high=100), "any to 100.0"),
    ):
        schema = Schema([column])
        (alarm,) = check_table(table, schema).alarms
        assert alarm.startswith(
            "Column 'cost': 4 % of its values are not in the schema, moved to the nearest cell."
            f" Its bounds are {bounds}: correct low and high"
        )
        with pytest.warns(CustodianWarning, match="'cost': many of its values.*moved to these bo"):
            read_table(table, schema)
        for quiet, rows in (
            (replace(schema, accepted=["values: cost"]), table),
            (schema, table.slice(2)),
        ):
            assert not any("values" in a for a in check_table(rows, quiet).alarms)
            with warnings.catch_warnings():
                warnings.simplefilter("error", CustodianWarning)
                read_table(rows, quiet)


def test_decimals_in_a_column_of_whole_numbers_raise_an_alarm() -> None:
    remedy = 'rounded to whole numbers. If the decimals matter, write kind = "real"'
    for column in (Integer("a", 0, 9), Learn("a", "integer")):
        schema = Schema([column])
        for values in (
            pa.array([i / 10 for i in range(11)]),
            pa.array([str(i / 10) for i in range(11)] * 3),
        ):
            table = pa.table({"a": values})
            found = check_table(table, schema)
            (alarm,) = found.alarms
            assert alarm.startswith(f"Column 'a': 81.82 % of its values have decimals, {remedy}")
            few = found.columns[0]
            assert few.decimals == len(values) * 9 // 11
            assert few.in_words() == f"{few.decimals} with decimals, rounded"
            assert any(f"{few.decimals} values have decimals, {remedy}" in n for n in found.notes)
            with pytest.warns(CustodianWarning, match=r"many of its values \(above 3 %\) have dec"):
                read_table(table, schema)
        whole = pa.table({"a": ["3.0", "4", "4e0", "2.0000000000000004", "7.00"] * 20})
        assert check_table(whole, schema).columns[0].in_words() == "all values match"
        one = check_table(pa.table({"a": [2.5] + [3.0] * 99}), schema)
        assert not one.alarms
        assert one.notes[0].startswith(
            "Column 'a': 1 value has decimals, rounded to whole numbers."
        )


def test_decimals_and_values_beyond_the_bounds_are_both_named() -> None:
    table = pa.table({"a": [0.1, 0.2, 0.3, 9.5]})
    (alarm,) = check_table(table, Schema([Integer("a", 0, 9)])).alarms
    assert "100 % of its values have decimals" in alarm
    assert "25 % of its values are not in the schema" in alarm
    codes = Schema(
        [Integer("a", 0, 9, missing=True)], sources={"a": ColumnSource(missing_codes=["9.5"])}
    )
    assert check_table(table, codes).columns[0].decimals == 3


def test_a_declared_code_is_not_asked_about_however_it_is_written() -> None:
    table = pa.table({"x": ["-1.0"] * 40 + ["5"] * 100 + ["60"] * 400})
    column = Categorical("x", ["5", "60"], missing=True)
    assert check_table(table, Schema([column])).further
    declared = Schema([column], sources={"x": ColumnSource(missing_codes=["-1"])})
    assert not check_table(table, declared).further


def test_a_file_that_may_not_be_read_is_not_said_to_be_elsewhere(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "t.csv").write_text("x\n1\n")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(
        DataError, match=r"t\.csv cannot be read: Permission.* Ask its owner for per"
    ):
        read_table("t.csv", LOOSE)


def test_numbers_that_cannot_be_read_are_not_said_to_be_missing() -> None:
    table = pa.table({"cost": ["7,5"] * 5 + ["7.5"] * 5})
    schema = Schema([Real("cost", 0, 100)])
    with pytest.raises(
        DataError, match=r"5 values cannot.* a decimal point, not a comma.*check"
    ) as error:
        read_table(table, schema)
    assert "If they stand for missing values" in str(error.value)
    with pytest.warns(
        CustodianWarning, match="count as missing. Numbers have a decimal point, not a comma"
    ):
        read_table(table, Schema([replace(schema.columns[0], missing=True)]))


def test_marks_for_missing_values_are_no_alarm() -> None:
    table = pa.table({c: ["NA"] * 40 + [v] * 60 for c, (v, *_) in lossy(0).to_pydict().items()})
    found = check_table(table, LOOSE)
    assert not found.alarms
    assert (
        "40 values unreadable, counted as missing. All look like a mark for a missing value"
        in " ".join(found.notes)
    )
    assert (
        "'town': 40 values of these look like a mark for a missing value, such as NA, and count as 'other'"
        in (" ".join(found.notes))
    )


def test_causes_are_told_apart_and_none_is_made_up() -> None:
    mixed = ["2,345"] * 30 + ["NA"] * 30 + ["n/k"] * 30 + ["1"] * 10
    (alarm,) = check_table(pa.table({"cost": mixed}), LOOSE.select(["cost"])).alarms
    assert "60 % of its values" in alarm
    assert (
        "Numbers have a decimal point" in alarm
    )  # what half of them look like is not what most do
    closed = Schema([Categorical("ward", ["surgery"])])
    (refusal,) = check_table(pa.table({"ward": ["SURGERY"] * 9 + ["surgery"]}), closed).refusals
    assert "All look like a listed category" in refusal


def test_a_run_looks_for_no_causes(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are facts of rows, for the custodian's check alone."""
    monkeypatch.setattr(
        "margrave.schema.schema.count_causes", lambda *_: pytest.fail("a cause was looked for")
    )
    assert read_table(lossy(40), LOOSE).rows() == 100


def test_causes_of_typed_columns_and_pieces() -> None:
    whole = pa.chunked_array([pa.array(["surgery", "SURGERY"]), pa.array(["Surgery", None])])
    coded = pa.chunked_array([c.dictionary_encode() for c in whole.chunks])
    for ward in (whole, coded):
        found = LOOSE.select(["ward"]).preflight(pa.table({"ward": ward})).columns[0]
        assert (found.outside, dict(found.causes)) == (2, {"alike": 2})
    numbers = pa.table({"ward": [1, 2, None]})
    assert not LOOSE.select(["ward"]).preflight(numbers).columns[0].causes


def test_spellings_of_one_person_are_counted(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = Schema([Integer("age", 0, 9)], person="who")
    who = ["P0001", "p0001", "7", "00000007", "7.0", "P2", "Q2", " P2 ", "10", "100"]
    table = pa.table({"who": who, "age": [1] * len(who)})
    assert check_table(table, schema).persons.alike == 5  # type: ignore[union-attr]
    (alarm,) = check_table(table, schema).alarms
    assert alarm.startswith(
        "5 of the 9 identifiers of persons equal another but for case, leading zeros or '.0'."
    )
    assert not check_table(table.slice(5), schema).alarms
    pyarrow.csv.write_csv(table, "t.csv")
    schema.save("t.toml")
    facts = json.loads(ok(capsys, "schema", "check", "t.csv", "-s", "t.toml", "--json"))
    assert (facts["persons"]["alike"], facts["alarms"]) == (5, [alarm])


# Files beside the schema.


def coded(folder: Path, said: str, book: str | bytes, kind: str = "categorical") -> Schema:
    (folder / "icd.csv").write_bytes(book if isinstance(book, bytes) else book.encode())
    head = f'[schema]\nversion = 1\n\n[[column]]\nname = "diagnosis"\nkind = "{kind}"\n'
    (folder / "s.toml").write_text(f"{head}categories = {said}\n")
    return Schema.load(folder / "s.toml")


@pytest.mark.parametrize(
    ("said", "book"),
    [
        ('"icd.csv"', "code,text\nA00,Cholera\nA01,Typhoid\n"),
        ('"icd.csv"', "text,diagnosis\nCholera,A00\nTyphoid,A01\n"),
        ('"icd.csv"', 'code;text\r\n"A00";Cholera, so called\r\n\r\nA01;Typhoid\r\n;\r\n'),
        ('"icd.csv"', "\ufeffcode\nA00\nA01\n"),
        ('{file = "icd.csv", column = "code"}', "diagnosis,code\nx,A00\nx,A01\n"),
    ],
)
@pytest.mark.parametrize("kind", ["categorical", "ordinal"])
def test_categories_come_from_a_code_book(tmp_path: Path, said: str, book: str, kind: str) -> None:
    schema = coded(tmp_path, said, book, kind)
    assert schema.columns[0].categories == ("A00", "A01")  # type: ignore[attr-defined]
    assert 'categories = ["A00", "A01"]' in schema.to_toml()
    assert Schema.from_toml(schema.to_toml()).hash() == schema.hash()


def test_a_code_book_that_is_none_is_told(tmp_path: Path) -> None:
    bad = {
        (
            '{file = "icd.csv", column = "code"}',
            "icd\nA00\n",
        ): "'diagnosis'.*'icd.csv' has no column 'code'",
        ('"none.csv"', "icd\nA00\n"): "'none.csv' of column 'diagnosis' cannot be read",
        (
            '"icd.csv"',
            "icd,text\nA00\n",
        ): "'icd.csv' of column 'diagnosis' has too many or too few fields in line 2",
        (
            '"icd.csv"',
            "icd\nA00\nA00\n",
        ): "'diagnosis': the file 'icd.csv' has one category in lines 2 and 3",
        ('"icd.csv"', ""): "'diagnosis': it has no categories",
        ('{column = "code"}', ""): "'diagnosis': categories are neither a list nor a file",
        (
            '{file = "icd.csv", colum = "code"}',
            "icd\nA00\n",
        ): "'diagnosis': categories are neither a list nor a file",
        ("3", ""): "'diagnosis': categories is not a list",
    }
    for (said, book), words in bad.items():
        with pytest.raises(SchemaError, match=words):
            coded(tmp_path, said, book)
    coded(tmp_path, '"icd.csv"', "icd\nA00\n")
    with pytest.raises(
        SchemaError, match=r"Column 'diagnosis' names the file 'icd.csv', but .* from a folder"
    ):
        Schema.from_toml((tmp_path / "s.toml").read_text())


def test_a_schema_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(LOOSE.to_toml(), encoding="utf-8-sig")
    assert Schema.load(tmp_path / "s.toml") == LOOSE
    assert Schema.from_toml("\ufeff" + LOOSE.to_toml()) == LOOSE


# Orders.


def test_a_date_and_a_time_that_are_put_in_order_say_how() -> None:
    first, last = datetime(2023, 1, 1), datetime(2023, 12, 31, 23)
    day = Date("admitted", first.date(), last.date())
    left = Timestamp("left", first, last, unit="hour")
    for columns, words in [
        ([day, left], '\'left\'.*Write kind = "date" for both .*or "timestamp" with one unit'),
        ([replace(left, name="admitted"), replace(left, unit="minute")], "Give both one unit"),
    ]:
        with pytest.raises(
            SchemaError, match=f"{words}.*keep the second as the time since the first"
        ):
            Schema(columns, constraints=[Ordered(["admitted", "left"])])
    both = [day, Date("left", first.date(), last.date())]
    assert Schema(both, constraints=[Ordered(["admitted", "left"])]).constraints


def test_an_evaluation_shows_that_a_mean_is_off(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = Schema([Real("cost", 0, 100, bins=2), Integer("n", 0, 9)], person="p", ignore=["note"])
    schema.save("s.toml")
    rows = {"cost": [5.0, 5.0], "n": [1, 2]}
    pyarrow.csv.write_csv(pa.table({**rows, "p": ["a", "b"], "note": ["x", "y"]}), "t.csv")
    pyarrow.csv.write_csv(pa.table({**rows, "cost": [10.0, 30.0]}), "rows.csv")
    said = " ".join(ok(capsys, "evaluate", "t.csv", "rows.csv", "-s", "s.toml").split())
    assert "cost 5 20 +300.0 % 5 5 5 15 20 25" in said
    assert run(["evaluate", "t.csv", "rows.csv", "-s", "s.toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["numbers"][0]["real"]["mean"] == 5


def test_a_check_reads_a_source_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, read, readings = visits(), StreamSource.batches, list[Sequence[str]]()

    def counted(source: StreamSource, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        readings.append(columns)
        yield from read(source, columns)

    monkeypatch.setattr(StreamSource, "batches", counted)
    schema = Schema([Integer("age", 0, 98), Integer("visit_id", 0, 9999)], person="patient_id")
    found = check_table(StreamSource(lambda: rows.to_batches(max_chunksize=100)), schema)
    assert found == check_table(rows, schema)
    assert readings == [["age", "visit_id", "patient_id"]]
