"""What a custodian meets on the way from a file to a release and back: formats, persons, bins, unreadable columns."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import margrave
from margrave.accounting.budget import Budget, max_epsilon
from margrave.cli.main import run
from margrave.data import read_synthetic, read_table
from margrave.data.loading import categories_in_rows
from margrave.data.writer import write_table
from margrave.domain import Codes
from margrave.errors import DataError, InputError
from margrave.profiling import check_table, draft_schema
from margrave.release.conditions import codes_of, cut_of
from margrave.schema import (
    Boolean,
    Categorical,
    ColumnSource,
    Date,
    Integer,
    Learn,
    Real,
    Schema,
    Timestamp,
)
from margrave.schema.person_check import PersonCheck
from margrave.unit import AddRemoveRow
from tests.cli.test_cli import ok

BUDGET = ["--epsilon", "5", "--delta", "1e-6"]

VISITS = Schema(
    [
        Integer("age", 0, 99, bins=20),
        Categorical("sex", ["F", "M"], missing=True),
        Date("admitted", date(2023, 1, 1), date(2023, 12, 31), bins=12, format="%d/%m/%Y"),
        Timestamp(
            "seen",
            datetime(2023, 1, 1),
            datetime(2023, 12, 31, 23),
            unit="hour",
            bins=12,
            format="%d.%m.%y %H:%M",
        ),
    ],
    person="patient",
    ignore=["note"],
)


def visits(n: int = 400) -> pa.Table:
    """Rows as a hospital writes them: days first, and several visits of a patient."""
    rng = np.random.default_rng(3)
    times = [
        datetime(2023, 1 + int(m), 1 + int(d), int(h))
        for m, d, h in rng.integers(0, (12, 28, 24), (n, 3))
    ]
    return pa.table(
        {
            "patient": [f"P{i:06d}" for i in rng.integers(0, n // 2, n)],
            "age": [str(a) for a in rng.integers(0, 100, n)],
            "sex": rng.choice(["F", "M"], n),
            "admitted": [t.strftime("%d/%m/%Y") for t in times],
            "seen": [t.strftime("%d.%m.%y %H:%M") for t in times],
            "note": ["fell off a horse"] * n,
        }
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the visits and their schema."""
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(visits(), "visits.csv")
    VISITS.save("good.toml")
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert run([*arguments]) not in (0, 70)
    return capsys.readouterr().err


# Synthetic tables come back in.


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_margrave_writes_it_reads(
    here: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    rng = np.random.default_rng(1)
    codes = Codes.of(
        VISITS.domain, {a: rng.integers(0, VISITS.domain.size(a), 300) for a in VISITS.domain}
    )
    rows = VISITS.decode(codes, rng=rng)
    path = f"rows.{ending}"
    (pyarrow.csv.write_csv if ending == "csv" else pa.parquet.write_table)(rows, path)
    again = read_synthetic(path, VISITS)
    assert (
        again.count([("admitted",), ("seen",)])["seen",].tolist()
        == np.bincount(codes.column("seen")).tolist()
    )
    assert read_synthetic(rows, VISITS).rows() == 300
    assert "NOT PRIVATE" in ok(capsys, "evaluate", "visits.csv", path, "-s", "good.toml")


def test_the_real_table_is_read_by_its_format_alone(here: Path) -> None:
    assert read_table("visits.csv", VISITS).rows() == 400
    iso = visits().set_column(3, "admitted", pa.array(["2023-03-04"] * 400))
    with pytest.raises(DataError, match="'admitted'"):
        read_table(iso, VISITS)


def test_a_synthetic_table_in_the_format_is_read_and_iso_comes_first() -> None:
    odd = Schema([Date("day", date(2023, 1, 1), date(2023, 12, 31), bins=365, format="%Y-%d-%m")])
    rows = pa.table({"day": ["2023-03-04"]})
    assert odd.for_reading_output().encode(rows).column("day").tolist() == [31 + 28 + 3]
    assert odd.encode(rows).column("day").tolist() == [31 + 28 + 31 + 2]
    given = VISITS.select(["admitted"])
    both = given.for_reading_output().encode(
        pa.table({"admitted": ["04/03/2023", "2023-03-04", "2023-03-04T05:06:07"]})
    )
    assert len(set(both.column("admitted").tolist())) == 1
    assert given.for_reading_output().to_toml() == given.to_toml()


TIMES = Schema(
    [
        Timestamp(
            "seen", datetime(2023, 1, 1), datetime(2023, 12, 31, 23, 59), unit="minute", bins=12
        ),
        Timestamp("day", datetime(2023, 1, 1), datetime(2023, 12, 31), unit="day", bins=12),
        Date("admitted", date(2023, 1, 1), date(2023, 12, 31), bins=12),
    ]
)


def test_times_in_csv_have_no_empty_fraction(here: Path) -> None:
    rng = np.random.default_rng(1)
    codes = Codes.of(TIMES.domain, {a: rng.integers(0, 12, 300) for a in TIMES.domain})
    rows = TIMES.decode(codes, rng=rng)
    write_table(rows, "rows.csv", overwrite=False, schema=TIMES)
    _, *lines = (here / "rows.csv").read_text().splitlines()
    assert all(
        re.fullmatch(r"2023-\d\d-\d\d \d\d:\d\d:00,2023-\d\d-\d\d,2023-\d\d-\d\d", line)
        for line in lines
    )
    again = read_synthetic("rows.csv", TIMES)
    for a in TIMES.domain:
        assert (
            again.count([(a,)])[a,].tolist() == np.bincount(codes.column(a), minlength=12).tolist()
        )


def test_times_with_more_to_them_keep_it(here: Path) -> None:
    fine = [datetime(2023, 1, 1, 2, 3, 4, 500_000), None]
    table = pa.table({"seen": fine, "day": [datetime(2023, 1, 1, 5), None], "n": [1, 2]})
    write_table(table, "rows.csv", overwrite=False, schema=TIMES)
    assert (here / "rows.csv").read_text().splitlines()[1:] == [
        "2023-01-01 02:03:04.500000,2023-01-01 05:00:00,1", ",,2"
    ]  # fmt: skip
    write_table(table, "rows.parquet", overwrite=False, schema=TIMES)
    assert pa.parquet.read_table("rows.parquet").schema == table.schema


# Conditions.


def test_a_category_is_found_whatever_its_case() -> None:
    schema = Schema(
        [Categorical("ward", ["ICU", "Surgery"]), Categorical("odd", ["x", "X", "Y"], other=True)]
    )
    assert codes_of(schema, "ward", "icu") == codes_of(schema, "ward", "ICU") == (0,)
    assert codes_of(schema, "ward", ["surgery", "icu"]) == (0, 1)
    assert codes_of(schema, "odd", "x") == (0,)
    assert codes_of(schema, "odd", "X") == (1,)
    assert codes_of(schema, "odd", "y") == (2,)
    both = Schema([Categorical("odd", ["Xy", "XY"])])
    for wrong in ("xy", "z"):
        with pytest.raises(InputError, match="no value"):
            codes_of(both, "odd", wrong)


@pytest.mark.parametrize(
    "wanted",
    [
        ("2023-03-01", "2023-03-31"),
        ("01/03/2023", "31/03/2023"),
        (date(2023, 3, 1), date(2023, 3, 31)),
    ],
)
def test_dates_are_asked_for_as_they_are_shown_or_in_their_format(wanted: tuple[str, str]) -> None:
    assert codes_of(VISITS, "admitted", wanted) == (1, 2)
    cut = cut_of(VISITS, "admitted", wanted)
    assert cut is not None
    assert cut.whole == "2023-01-31 to 2023-04-01"


def test_an_hour_is_asked_for_as_it_is_shown() -> None:
    assert codes_of(VISITS, "seen", "2023-03-04 05:00") == codes_of(
        VISITS, "seen", "04.03.23 05:00"
    )
    with pytest.raises(InputError, match="2023-01-01 00:00 to"):
        codes_of(VISITS, "seen", "March")


def test_words_for_what_a_range_takes() -> None:
    schema = Schema(
        [
            Integer("age", 0, 99, bins=20, atoms=[30]),
            Real("cost", 0, 10, bins=4),
            Categorical("s", ["F"]),
        ]
    )
    for column, wanted, whole in [
        ("age", ("31", "40"), "31 to 44"),
        ("age", ("30", "34"), None),
        ("age", "30", None),
        ("age", ["30", "42"], "30, 40 to 44"),
        ("age", ("95", "400"), None),
        ("cost", ("1.5", "3"), "0 to 5"),
        ("s", "F", None),
    ]:
        cut = cut_of(schema, column, wanted)
        assert (None if cut is None else cut.whole) == whole


def test_sample_says_which_bins_it_cut(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = ok(capsys, "synthesize", "visits.csv", "-s", "good.toml", *BUDGET, "-m", "independent", "--release",
              "r.margrave", "--unit", "add-remove-person:5")  # fmt: skip
    assert "Protected" in made
    asked = ["sample", "r.margrave", "-n", "50", "-o", "few.csv", "--where", "age=30..40"]
    assert run([*asked, "--where", "admitted=2023-03-01..2023-03-31"]) == 0
    said = capsys.readouterr().err
    assert "Note: age from 30 to 40 cuts a bin" in said
    assert "exact: 30 to 44." in said
    assert "exact: 2023-01-31 to 2023-04-01." in said
    ages = pyarrow.csv.read_csv("few.csv")["age"].to_pylist()
    assert min(ages) >= 30
    assert max(ages) <= 40
    (note,) = json.loads(ok(capsys, *asked, "--overwrite", "--json"))["notes"]
    assert note.startswith("age from 30 to 40 cuts a bin")
    assert run([*asked[:-1], "age=30..44", "--overwrite"]) == 0
    assert "cuts" not in capsys.readouterr().err


# Persons.


@pytest.mark.parametrize("command", [["synthesize", "visits.csv", "-o", "rows.csv"], ["plan"]])
def test_a_column_of_persons_wants_a_unit(
    here: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    words = [*command, "-s", "good.toml", *BUDGET, "-m", "independent"]
    said = refused(capsys, *words)
    assert "--unit add-remove-person:K" in said
    assert "--unit add-remove-row" in said
    assert not (here / "rows.csv").exists()
    assert "add or remove one row" in ok(capsys, *words, "--unit", "add-remove-row")
    said = ok(
        capsys,
        *words,
        "--unit",
        "add-remove-person:3",
        *(["--overwrite"] if command[0] == "synthesize" else []),
    )
    assert "one person of at most 3 rows" in said


def test_a_unit_of_rows_says_what_it_is_to_persons(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "synthesize",
        "visits.csv",
        "-s",
        "good.toml",
        *BUDGET,
        "-m",
        "independent",
        "--overwrite",
    ]
    said = ok(capsys, *words, "--release", "r.margrave", "--unit", "add-remove-row")
    assert "A person with several rows is protected less" in said
    assert "protected less" in " ".join(ok(capsys, "certificate", "r.margrave").split())
    assert "protected less" not in ok(
        capsys, *words, "--release", "r.margrave", "--unit", "add-remove-person:3"
    )
    assert "protected less" not in " ".join(ok(capsys, "certificate", "r.margrave").split())


def test_evaluate_says_that_persons_were_cut(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One patient with most of the rows: the difference was put down to noise."""
    who = [f"P{max(0, i - 200)}" for i in range(400)]
    pyarrow.csv.write_csv(visits().set_column(0, "patient", pa.array(who)), "visits.csv")
    words = [
        "synthesize",
        "visits.csv",
        "-s",
        "good.toml",
        *BUDGET,
        "-m",
        "independent",
        "-o",
        "rows.csv",
    ]
    ok(capsys, *words, "--unit", "add-remove-person:2", "--release", "r.margrave")
    evaluate = ["evaluate", "visits.csv", "r.margrave", "-s", "good.toml", "-n", "200"]
    told = "Further rows were left out at random before anything was counted."
    assert told in " ".join(ok(capsys, *evaluate).split())
    assert told in json.loads(ok(capsys, *evaluate, "--json"))["note"]
    of_tables = " ".join(
        ok(capsys, "evaluate", "visits.csv", "rows.csv", "-s", "good.toml").split()
    )
    assert "may be that cut and not noise. Give the .margrave release" in of_tables


def test_without_a_unit_python_refuses_persons_too(here: Path) -> None:
    with pytest.raises(InputError, match="'patient' is a person ID column"):
        margrave.synthesize("visits.csv", VISITS, epsilon=1.0, delta=1e-6, mechanism="independent")
    plain = replace(VISITS, person=None, ignore=["note", "patient"])
    release = margrave.synthesize(
        "visits.csv", plain, epsilon=1.0, delta=1e-6, mechanism="independent"
    )
    assert release.account.unit == AddRemoveRow()


def test_a_mark_for_a_missing_person_is_nobody() -> None:
    """Taken as one person, the rows of many would count beside those they have under their names."""
    rows = visits().set_column(
        0, "patient", pa.array([f"P{i}" for i in range(397)] + ["N/A", " na ", "?"])
    )
    with pytest.raises(DataError, match="3 values missing in the column of persons, or marked so"):
        read_table(rows, VISITS)


def test_the_check_counts_persons(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    who = [f"P{i // 4}" for i in range(360)] + ["NOBODY7"] * 40
    pyarrow.csv.write_csv(visits().set_column(0, "patient", pa.array(who)), "visits.csv")
    said = ok(capsys, "schema", "check", "visits.csv", "-s", "good.toml")
    assert said.startswith("LOOK AT THIS FIRST. One person has 40 of the 400 rows.")
    assert "91 persons, with 40 rows at most." in said
    assert "22.75 % with 1, 45.5 % with 2" in " ".join(said.split())  # 91 and 182 of 400
    assert "NOBODY7" not in said
    facts = json.loads(ok(capsys, "schema", "check", "visits.csv", "-s", "good.toml", "--json"))
    assert facts["persons"]["kept"]["5"] == (4 * 90 + 5) / 400
    assert len(facts["alarms"]) == 1
    pyarrow.csv.write_csv(visits(), "visits.csv")
    assert "LOOK" not in ok(capsys, "schema", "check", "visits.csv", "-s", "good.toml")
    replace(VISITS, person=None, ignore=["note", "patient"]).save("good.toml", overwrite=True)
    said = ok(capsys, "schema", "check", "visits.csv", "-s", "good.toml")
    assert "Column 'patient' is ignored" in said
    assert "persons, with" not in said


def test_one_of_many_rows_among_many_persons_is_asked_about() -> None:
    """Two rows in a hundred, where the others have four each; not one who is the first of many that have some."""
    rng = np.random.default_rng(0)
    usual = rng.integers(0, 5000, 20_000)
    (alarm,) = PersonCheck.of(np.concatenate([usual, np.full(400, 5000)])).alarms()
    assert alarm.words.startswith(
        "One person has 400 of the 20,400 rows, and 99 % of the others have 10 at most."
    )
    heavy = np.repeat(np.arange(5000), np.minimum(1 + rng.geometric(0.1, 5000), 200))
    for fine in (
        usual,
        heavy,
        np.concatenate([usual, np.full(60, 5000)]),
        np.arange(500),
        np.repeat(0, 19),
    ):
        assert not list(PersonCheck.of(fine).alarms())


# Columns that the schema cannot read.

FORGOTTEN = Schema(
    [
        Date("admitted", date(2023, 1, 1), date(2023, 12, 31), bins=12, missing=True),
        Real("weight", 0, 200, bins=10, missing=True),
        Boolean("smokes", missing=True),
    ]
)
UNREAD = {
    "admitted": (["31/12/2023", "01/02/2023", None], 'format = "%d/%m/%Y"'),
    "weight": (["81,5", "70,25", ""], "decimal point"),
    "smokes": (["ja", "nein", "ja"], "true, 1, yes, t, y and false, 0, no, f, n, in either case"),
}


@pytest.mark.parametrize("column", UNREAD)
def test_a_column_that_cannot_be_read_at_all_is_refused(
    column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good: dict[str, list[str | None]] = {
        "admitted": ["2023-01-01", "x", "x"], "weight": ["1.5", "x", "x"], "smokes": ["yes", "x", "x"]
    }  # fmt: skip
    assert read_table(pa.table(good), FORGOTTEN).rows() == 3  # one value that can be read is enough
    values, words = UNREAD[column]
    monkeypatch.setattr(
        "margrave.run.protect", lambda *_, **__: pytest.fail("the gate was reached")
    )
    with pytest.raises(DataError) as raised:
        margrave.synthesize(pa.table({**good, column: values}), FORGOTTEN, epsilon=1.0, delta=1e-6)
    assert f"{column!r}: not one of its values can be read" in str(raised.value)
    assert words in str(raised.value)
    assert not any(str(v) in str(raised.value) for v in values if v)
    empty = pa.table({**good, column: pa.nulls(3, pa.string())})
    assert read_table(empty, FORGOTTEN).rows() == 3  # a column that is empty says so


def test_a_format_that_no_value_has_is_told_by_itself() -> None:
    days = Schema([Date("admitted", date(2023, 1, 1), date(2023, 12, 31), format="%d/%m/%Y")])
    with pytest.raises(DataError) as raised:
        read_table(pa.table({"admitted": ["2023-04-20", "2023-05-02"]}), days)
    told = str(raised.value)
    assert (
        'They are not written as format = "%d/%m/%Y" says: give the format that they have' in told
    )
    assert "margrave schema check" in told


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (Categorical("x", ["yes", "no"], missing=True), ["Yes", "No"] * 5),
        (Categorical("x", ["yes", "no"], other=True), [True, False] * 5),
        (Real("x", 10, 70, missing=True, outside="missing"), [999] * 10),
        (Date("x", date(2023, 1, 1), date(2023, 12, 31)), [date(2022, 1, 1)] * 10),
    ],
)
def test_a_column_of_which_the_schema_knows_no_value_is_refused(
    column: Any, values: list[Any]
) -> None:
    known = "its values is one that the schema knows|the values that can be read lies in its bounds"
    with pytest.raises(DataError, match=f"'x': not one of ({known})"):
        read_table(pa.table({"x": values}), Schema([column]))
    assert (
        read_table(pa.table({"x": values[:9]}), Schema([column])).rows() == 9
    )  # so few may well be such


def test_the_check_names_columns_that_are_as_drafted(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the mark taken out, nothing else would show that a bound was read off the rows."""
    rows = {
        "age": list(range(23, 71)) * 2,
        "town": ["York", "Hull", "Bath"] * 32,
        "ill": [True, False] * 48,
    }
    pyarrow.csv.write_csv(pa.table(rows), "t.csv")
    drafted = draft_schema(pa.table(rows), read=True)
    assert check_table(pa.table(rows), drafted).drafted == ()
    confirmed = drafted.confirmed()
    assert set(check_table(pa.table(rows), confirmed).drafted) == {"age", "town"}
    columns = [Integer("age", 0, 120, bins=12) if c.name == "age" else c for c in confirmed.columns]
    replace(confirmed, columns=columns).save("mine.toml")
    said = " ".join(ok(capsys, "schema", "check", "t.csv", "-s", "mine.toml").split())
    assert "Bounds or categories as these rows have them: town" in said


def test_a_run_asks_about_the_columns_that_a_check_asks_about(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bounds and categories alike, in one list; a column that a draft leaves out is on it too."""
    notes = [f"Note {i % 150} on a long stay in the ward of the hospital" for i in range(600)]
    rows = {"age": [23 + i % 30 for i in range(600)], "town": ["York", "Hull", "Bath"] * 200}
    pyarrow.csv.write_csv(pa.table({**rows, "note": notes}), "t.csv")
    columns = [
        Integer("age", 23, 52),
        Categorical("town", ["Bath", "Hull", "York"]),
        Categorical("note", sorted(set(notes))),
    ]
    question = "Bounds or categories as these rows have them: {}. Were they known without looking?"
    for accepted, names in (([], "age, town, note"), (["read: age", "read: town"], "note")):
        Schema(columns, accepted=accepted).save("s.toml", overwrite=True)
        said = " ".join(ok(capsys, "schema", "check", "t.csv", "-s", "s.toml").split())
        assert question.format(names) in said
        words = ["synthesize", "t.csv", "-s", "s.toml", "--epsilon", "5", "--delta", "1e-9"]
        assert (
            run([*words, "--mechanism", "independent", "--release", "r.margrave", "--overwrite"])
            == 0
        )
        assert question.format(names) in " ".join(capsys.readouterr().err.split())


def test_the_check_is_silent_about_bounds_that_many_tables_have() -> None:
    days = [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(336)]
    born = [f"{1931 + i % 90}-02-03" for i in range(336)]
    rows = {"seen": days, "born": born, "surgery": ["ja", "nein"] * 168}
    rows["percent"] = [str(i % 101) for i in range(336)]
    confirmed = draft_schema(pa.table(rows), read=True).confirmed()
    assert check_table(pa.table(rows), confirmed).drafted == ("born",)


@pytest.mark.parametrize("learned", [True, False])
def test_the_check_asks_about_codes_until_they_are_declared(learned: bool) -> None:
    rng = np.random.default_rng(3)
    weights = [f"{w:.1f}" for w in rng.normal(76, 20, 60_000).clip(3, 180)] + ["9999"] * 45
    table = pa.table({"weight": weights})
    kind = {"missing": True, "outside": "missing"}
    column = Learn("weight", "real") if learned else Real("weight", 0.0, 300.0, **kind)
    (alarm,) = check_table(table, Schema([column])).alarms
    assert "Column 'weight' has 9999 on 45 rows" in alarm
    assert 'add "codes: weight" to accepted' in alarm
    assert not check_table(table, Schema([column], accepted=["codes: weight"])).alarms
    declared = {"weight": ColumnSource(missing_codes=["9999"])}
    assert not check_table(table, Schema([column], sources=declared)).alarms


def test_values_that_are_readable_and_all_outside_are_told_from_unreadable_ones() -> None:
    table = pa.table({"day": [f"2023-03-{d:02d}" for d in range(1, 29)]})
    schema = Schema([Date("day", date(2024, 1, 1), date(2024, 12, 31))])
    with pytest.raises(DataError, match="lies in its bounds, 2024-01-01 to 2024-12-31") as refused:
        read_table(table, schema)
    assert "format" not in str(refused.value)
    other = pa.table({"day": [f"{d:02d}/03/2024" for d in range(1, 29)]})
    with pytest.raises(DataError, match=r"can be read as its kind, date\..*format"):
        read_table(other, schema)


def test_a_table_without_rows_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Schema.coded({"age": 3}).save("age.toml")
    (here / "empty.csv").write_text("age\n")
    said = refused(
        capsys,
        "synthesize",
        "empty.csv",
        "-s",
        "age.toml",
        *BUDGET,
        "-o",
        "rows.csv",
        "-m",
        "independent",
    )
    assert "The table has no rows" in said
    assert run(["schema", "check", "empty.csv", "-s", "age.toml"]) == 4
    said = " ".join(capsys.readouterr().out.split())
    assert "LOOK AT THIS FIRST. The table has no rows." in said
    assert "The table has no rows: the budget would be spent on nothing. Is it the right" in said


def test_the_check_says_first_what_is_mostly_unread(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {
        "admitted": ["01/02/2023", "02/02/2023", "2023-02-02"],
        "weight": [1, 2, 3],
        "smokes": ["yes", "x", "y"],
    }
    pyarrow.csv.write_csv(pa.table(rows), "t.csv")
    FORGOTTEN.save("f.toml")
    said = " ".join(ok(capsys, "schema", "check", "t.csv", "-s", "f.toml").split())
    assert said.startswith(
        "LOOK AT THIS FIRST. Column 'admitted': 66.67 % of its values are not in the schema"
    )
    assert "LOOK AT THIS FIRST. Column 'smokes': 33.33 % of its values" in said
    assert said.count("LOOK") == 2


# Words.


def test_a_full_ledger_says_what_would_fit(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "-s",
        "good.toml",
        "-m",
        "independent",
        "--unit",
        "add-remove-row",
        "--ledger",
        "l",
        "--dataset",
        "v",
    ]
    ok(
        capsys,
        "ledger",
        "init",
        "l",
        "--dataset",
        "v",
        "--epsilon",
        "1",
        "--delta",
        "1e-9",
        "--unit",
        "add-remove-row",
    )
    said = refused(capsys, "plan", *words, "--epsilon", "3", "--delta", "1e-6")
    found = re.search(r"at delta 1e-06 that is epsilon (\S+) at most", said)
    assert found is not None
    assert 0.5 < float(found[1]) < 1  # one rho is a smaller epsilon at a larger delta
    ok(capsys, "plan", *words, "--epsilon", found[1], "--delta", "1e-6")
    refused(capsys, "plan", *words, "--epsilon", str(float(found[1]) * 1.01), "--delta", "1e-6")
    assert "a run of epsilon 1 at delta 1e-09 would fit" in " ".join(
        ok(capsys, "ledger", "show", "l").split()
    )


@given(rho=st.fractions(Fraction(1, 10**12), 100), delta=st.sampled_from([1e-12, 1e-9, 1e-6, 1e-3]))
@settings(max_examples=100, derandomize=True, deadline=None)
def test_what_is_said_to_fit_does(rho: Fraction, delta: float) -> None:
    epsilon = max_epsilon(rho, delta)
    if epsilon:
        assert Budget.approx(epsilon, delta).rho <= rho < Budget.approx(1.02 * epsilon, delta).rho
    else:
        assert Budget.approx(1e-6, delta).rho > rho


@pytest.mark.parametrize(
    ("epsilon", "delta", "warned"), [("20", "1e-5", 0), ("21", "1e-9", 1), ("30", "0.01", 2)]
)
def test_weak_promises_are_warned_of(
    here: Path, capsys: pytest.CaptureFixture[str], epsilon: str, delta: str, warned: int
) -> None:
    words = [
        "-s",
        "good.toml",
        "--epsilon",
        epsilon,
        "--delta",
        delta,
        "-m",
        "independent",
        "--unit",
        "add-remove-row",
        "--allow-large-delta",
    ]
    assert run(["plan", *words]) == 0
    assert capsys.readouterr().err.count("Warning: ") == warned
    assert run(["synthesize", "visits.csv", *words, "-o", "r.csv"]) == 0
    assert capsys.readouterr().err.count("Warning: ") == warned


def test_a_plan_says_what_is_too_noisy(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "-s", "good.toml", "--delta", "1e-9", "--unit", "add-remove-row", "-m", "aim"]
    said = " ".join(ok(capsys, *words, "--epsilon", "0.01", "--rows", "400").split())
    assert (
        "chosen marginals: too noisy to be of use with 400 rows: fewer codes or more budget."
        in said
    )
    assert "over 100 %" in said.partition("of 400 rows")[2]
    assert "too noisy" not in ok(capsys, *words, "--epsilon", "5", "--rows", "1000000")
    # what chooses for itself takes smaller marginals than the typical one, and says so
    said = " ".join(ok(capsys, *words, "--epsilon", "1", "--rows", "4000").split())
    assert (
        "chosen marginals: typical ones are too noisy with 4,000 rows, so smaller are taken" in said
    )


def test_a_table_is_no_release(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "visits.csv is not a release. Name a .margrave file" in refused(
        capsys, "certificate", "visits.csv"
    )
    (here / "half.margrave").write_bytes(b"PK\x03\x04 and no more")
    assert "is cut off or was altered" in refused(capsys, "certificate", "half.margrave")


def test_another_separator_or_no_header_is_asked_about(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (here / "visits.csv").read_text()
    (here / "odd.csv").write_text(text.replace(",", "^").replace('"', ""))
    said = refused(capsys, "schema", "check", "odd.csv", "-s", "good.toml")
    assert "a single field, and the schema has 5 columns. Is the separator another" in said
    assert "P0" not in said
    (here / "odd.csv").write_text("7,York,York\n8,Hull,York\n")
    said = refused(capsys, "schema", "check", "odd.csv", "-s", "good.toml")
    assert "or has the file no header?" in said
    assert "York" not in said


def test_help_has_the_basic_options_first(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("synthesize", "plan"):
        said = ok(capsys, command, "--help")
        said = said[said.index("Options:\n") :]
        words = [
            "Options:",
            "--epsilon",
            "--json",
            "Books and rules:",
            "  --ledger",
            "Public table:",
        ]
        places = [
            said.index(w)
            for w in (*words, "  --attestation", "Options of single mechanisms", "--rare-threshold")
        ]
        assert places == sorted(places)
        assert said.count("--max-model-mb") == 1


def test_python_runs_the_package() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "margrave", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("margrave, version")


def test_an_existing_file_is_overwritten_on_request_alone(here: Path) -> None:
    with pytest.raises(InputError, match="in Python overwrite=True"):
        VISITS.save("good.toml")


@pytest.mark.parametrize(
    ("name", "low", "high", "usual"),
    [
        ("day", 1, 31, True),
        ("birthMonth", 1, 12, True),
        ("hour", 0, 23, True),
        ("weekday", 1, 7, True),
        ("stay", 1, 31, False),
        ("day", 1, 30, False),
    ],
)
def test_the_check_is_silent_about_bounds_of_the_calendar(
    name: str, low: int, high: int, usual: bool
) -> None:
    rows = pa.table({name: [low + i % (high - low + 1) for i in range(40 * (high - low))]})
    found = check_table(rows, Schema([Integer(name, low, high)]))
    assert found.drafted == (() if usual else (name,))


def test_the_check_is_silent_about_the_days_of_the_week() -> None:
    days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    rows = pa.table({"day": days * 30, "town": ["York", "Hull", "Bath"] * 70})
    schema = Schema([Categorical("day", days), Categorical("town", ["York", "Hull", "Bath"])])
    assert check_table(rows, schema).drafted == ("town",)
    counts = read_table(rows, schema).count([("day",), ("town",)])
    assert categories_in_rows(schema, counts) == ("town",)


def test_values_that_are_the_word_for_all_others_are_noted() -> None:
    rows = pa.table({"job": ["cook"] * 50 + ["other"] * 20 + ["smith"] * 5})
    named = Schema([Categorical("job", ["cook", "other"], other=True)])
    open_one = Schema([Categorical("job", ["cook"], other=True)])
    note = "Column 'job': 20 values are 'other' in the table, and the unlisted ones count as the same category."
    assert any(note in said for said in check_table(rows, open_one).notes)
    assert not any("same category" in said for said in check_table(rows, named).notes)
    apart = Schema([Categorical("job", ["cook", "smith"], other=True)])
    assert not any("same category" in said for said in check_table(rows, apart).notes)
