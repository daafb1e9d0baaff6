"""Alarms that a custodian has answered: kept in the schema's file, not raised again, and in no release."""

from __future__ import annotations

import warnings
import zipfile
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from click.testing import CliRunner

import margrave
from margrave.cli.main import cli, run
from margrave.data import read_table
from margrave.errors import SchemaError
from margrave.profiling import check_table
from margrave.profiling.draft import quiet_draft
from margrave.row_checks import compare_with_rows
from margrave.schema import Categorical, ColumnSource, Date, Integer, Real, Schema, Timestamp

TOWN = Categorical("town", ["York", "Hull"], missing=True)
SCHEMA = Schema([TOWN, Integer("age", 0, 9)], ignore=["patient_id"])


def rows() -> pa.Table:
    people = [f"P{i % 60:04d}" for i in range(300)]
    towns = ["York"] * 200 + ["hull"] * 100
    return pa.table({"town": towns, "age": [i % 10 for i in range(300)], "patient_id": people})


def test_an_answered_alarm_is_not_raised_again(tmp_path: Path) -> None:
    first = check_table(rows(), SCHEMA)
    assert len(first.alarms) == 2
    assert any("If they were" in note and 'add "read: age"' in note for note in first.notes)
    keys = ["values: town", "person: patient_id", "read: age"]
    for alarm in first.alarms:
        assert any(f'add "{key}" to accepted in [schema]' in alarm for key in keys)
    replace(SCHEMA, accepted=keys).save(tmp_path / "s.toml")
    answered = Schema.load(tmp_path / "s.toml")
    assert answered.accepted == tuple(keys)
    again = check_table(rows(), answered)
    assert again.alarms == ()
    assert not any("read: age" in note for note in again.notes)
    assert [note for note in again.notes if "write them alike" in note] == []
    assert any("100 values outside the schema" in note for note in again.notes)
    assert answered.preflight(rows()).alarms == ()
    one = check_table(rows(), replace(SCHEMA, accepted=keys[:1]))
    assert [alarm[:19] for alarm in one.alarms] == ["Column 'patient_id'"]


def test_a_run_asks_no_answered_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "t.toml"
    pyarrow.csv.write_csv(rows().select(["age", "town"]), path)
    words = ["synthesize", str(path), "-s", str(out), "-e", "1", "--delta", "1e-9", "--overwrite"]
    words += ["-m", "independent", "--release", str(tmp_path / "r.margrave")]
    for accepted in ((), ("read: town", "read: age")):
        town = Categorical("town", ["York", "hull"])
        Schema([town, Integer("age", 0, 9)], accepted=accepted).save(out, overwrite=True)
        assert run(words) == 0
        assert ("Were they known" in capsys.readouterr().err) is not bool(accepted)


def test_learned_categories_and_bounds_were_not_read_off_the_rows() -> None:
    table = rows().select(["age", "town"])
    listed = Schema([Categorical("town", ["York", "hull"]), Integer("age", 0, 9)])
    learned = replace(
        listed, sources={c.name: ColumnSource("learned", public=()) for c in listed.columns}
    )
    for schema, alarmed in ((listed, True), (learned, False)):
        heard: list[str] = []
        margrave.synthesize(
            table,
            schema,
            epsilon=1.0,
            delta=1e-6,
            mechanism="independent",
            on_custodian=heard.append,
        )
        assert any('add "read: town"' in sentence for sentence in heard) is alarmed
        assert any("read: age" in note for note in check_table(table, schema).notes) is alarmed


def test_bounds_of_a_column_that_numbers_its_rows_are_asked_about() -> None:
    """A draft would leave the column out; its stated bounds are those of the rows all the same."""
    table = pa.table({"place": range(1, 203), "weight": [k + 0.25 for k in range(202)]})
    schema = Schema([Integer("place", 0, 220), Real("weight", 0.0, 220.0)])
    assert "place" in quiet_draft(table, read=True).ignore
    heard: list[str] = []
    compare_with_rows(table, read_table(table, schema), schema, heard.append)
    (note,) = (n for n in check_table(table, schema).notes if "as these rows have them" in n)
    assert (len(heard), heard[0] in note) == (1, True)
    assert "as these rows have them: place, weight. " in note
    wider = Schema([Integer("place", 1, 220), Real("weight", 0.0, 221.0)])
    compare_with_rows(table, read_table(table, wider), wider, heard.append)
    assert len(heard) == 1


def test_the_least_and_the_greatest_value_are_asked_about() -> None:
    days = [date(2021, 3, 9) + timedelta(days=7 * k) for k in range(300)]
    table = pa.table(
        {
            "age": [3 + k % 95 for k in range(300)],
            "pay": [1038 + 200 * k for k in range(300)],
            "rate": [0.25 + k for k in range(300)],
            "day": days,
            "at": [datetime(2021, 3, 9, 4) + timedelta(hours=90 * k) for k in range(300)],
        }
    )
    exact = Schema(
        [
            Integer("age", 3, 97),
            Real("pay", 1038.0, 1038.0 + 200 * 299),  # whole numbers, declared with decimals
            Real("rate", 0.25, 299.25),
            Date("day", days[0], days[-1]),
            Timestamp("at", datetime(2021, 3, 9, 4), datetime(2024, 4, 3, 10), unit="hour"),
        ]
    )
    (note,) = (n for n in check_table(table, exact).notes if "as these rows have them" in n)
    assert "as these rows have them: age, pay, rate, day, at. " in note
    one_off = Schema(
        [
            Integer("age", 3, 98),
            Real("pay", 1037.0, 1038.0 + 200 * 299),
            Real("rate", 0.25, 299.5),
            Date("day", days[0], days[-1] + timedelta(days=1)),
            Timestamp("at", datetime(2021, 3, 9, 3), datetime(2024, 4, 3, 10), unit="hour"),
        ]
    )
    assert not any("as these rows have them" in n for n in check_table(table, one_off).notes)


def test_answers_about_persons_hold_for_runs_too() -> None:
    table = pa.table({"who": ["p1", "P1", *["p2"] * 40], "age": [1] * 42})
    schema = Schema([Integer("age", 0, 9)], person="who")
    with pytest.warns(margrave.errors.PersonWarning):
        read_table(table, schema)
    answered = replace(schema, accepted=["identifiers", "rows of one person"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(table, answered)
    assert check_table(table, answered).alarms == ()


@pytest.mark.parametrize("accepted", ["header", ["values"], ["values: salary"], [3], ["town"]])
def test_other_answers_are_refused(accepted: object) -> None:
    with pytest.raises(SchemaError, match="accepted"):
        replace(SCHEMA, accepted=accepted)


def test_no_release_and_no_hash_holds_an_answered_alarm(tmp_path: Path) -> None:
    answered = replace(SCHEMA, accepted=["values: town"])
    assert (answered, answered.hash()) == (SCHEMA, SCHEMA.hash())
    assert "accepted" in answered.to_toml()
    words = {"epsilon": 1.0, "delta": 1e-6, "mechanism": "independent"}
    release = margrave.synthesize(rows(), answered, **words)  # type: ignore[arg-type]
    assert "accepted" not in release.schema.to_toml()
    release.save(tmp_path / "r.margrave")
    with zipfile.ZipFile(tmp_path / "r.margrave") as archive:
        assert all(b"values: town" not in archive.read(name) for name in archive.namelist())


def test_questions_of_ask_are_answered_for_checks_too(tmp_path: Path) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "t.toml"
    table = rows().append_column("2018", pa.array(["a", "b"] * 150))
    pyarrow.csv.write_csv(table, path)
    words = ["schema", "ask", str(path), "-o", str(out)]
    result = CliRunner().invoke(cli, words, input="n\n")
    assert "no header" in str(result.exception)
    CliRunner().invoke(cli, words, input="y\nn\n" + "\n" * 9)
    made = Schema.load(out)
    assert made.accepted == ("header", "person: patient_id")
    assert check_table(path, made).alarms == ()
    assert run(["schema", "check", str(path), "-s", str(out)]) == 0
