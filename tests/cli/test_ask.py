"""``margrave schema ask``: answers become a schema, and wrong ones are asked again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from margrave.cli.main import cli
from margrave.schema import Categorical, Date, Integer, Learn, Real, Schema

ROWS = 40


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "visits.parquet"
    columns = {
        "cost": [1.5 * i for i in range(ROWS)],
        "grade": [1 + i % 5 for i in range(ROWS)],
        "ward": ["north", "south"] * (ROWS // 2),
        "day": [f"2018-03-{1 + i % 28:02d}" for i in range(ROWS)],
        "ill": [0, 1] * (ROWS // 2),
    }
    pq.write_table(pa.table(columns), path)
    return path


def asked(table: Path, *answers: str) -> tuple[Result, Schema | None]:
    out = table.with_name("visits.toml")
    words = ["schema", "ask", str(table), "-o", str(out)]
    result = CliRunner().invoke(cli, words, input="".join(f"{a}\n" for a in answers))
    return result, Schema.load(out) if out.exists() else None


def test_enter_keeps_the_draft(table: Path) -> None:
    result, made = asked(table, "", "", "", "", "")
    assert made is not None, result.output
    assert not made.draft
    assert [c.name for c in made.to_learn] == ["cost", "grade", "ward", "day"]
    assert isinstance(made.column("ill"), Integer)
    assert "Taken as public" in result.output


def test_what_is_declared_is_public_with_its_cite(table: Path) -> None:
    cost = ("declare", "0", "500", "", "n", "100, 250", "Tariff 2018, p. 3")
    ward = ("declare", "north, south , east", "y", "", "n", "")
    day = ("declare", "2018-01-01", "2018-12-31", "1900-01-01", "", "")
    result, made = asked(table, *cost, "classes", *ward, *day, "out")
    assert made is not None, result.output
    cost_column, grade, ward_column, day_column = made.columns
    assert isinstance(cost_column, Real)
    assert (cost_column.low, cost_column.high, cost_column.missing) == (0.0, 500.0, False)
    assert made.accepted == ("read: cost",)
    assert cost_column.edges == (100.0, 250.0)
    assert made.sources["day"].missing_codes == ("1900-01-01",)
    assert made.sources["cost"].cite == "Tariff 2018, p. 3"
    assert isinstance(grade, Learn)
    assert grade.of == "categorical"
    assert isinstance(ward_column, Categorical)
    assert (list(ward_column.categories), ward_column.other) == (["north", "south", "east"], True)
    assert isinstance(day_column, Date)
    assert day_column.missing
    assert made.ignore == ("ill",)


def test_codes_that_mean_missing_are_asked_for_where_a_column_is_learned(tmp_path: Path) -> None:
    path, costs = tmp_path / "costs.csv", [*range(100, 700), *[99999] * 40]
    path.write_text("cost\n" + "".join(f"{c}\n" for c in costs), encoding="utf-8")
    result, made = asked(path, "learn", "99999")
    assert made is not None, result.output
    assert "name it when asked for values that stand for a missing one" in result.output
    assert (made.to_learn[0].name, made.source("cost").missing_codes) == ("cost", ("99999",))


def test_wrong_answers_are_asked_again_one_by_one(table: Path) -> None:
    wrong = ("perhaps", "declare", "lots", "9", "5", "0", "500", "0", "-1", "y", "700", "", "")
    result, made = asked(table, *wrong, "", "", "", "")
    assert made is not None, result.output
    column = made.column("cost")
    assert isinstance(column, Real)
    assert (column.low, column.high) == (0.0, 500.0)
    assert made.sources["cost"].missing_codes == ("-1",)
    assert "'lots' is not a value of this kind" in result.output
    assert "its low is 0.0, which is one of its missing_codes" in result.output
    assert result.output.count("Its lowest value") == 3


def test_an_empty_answer_leads_back_to_the_choice(table: Path) -> None:
    result, made = asked(table, "declare", "", "learn", "", "", "declare", "01/02/2018", "", "", "")
    assert made is not None, result.output
    assert len(made.to_learn) == 4
    assert "Its lowest value (a number; empty: choose another answer)" in result.output
    assert "Write a date, as 2018-12-31." in result.output
    assert "\\x0a" not in result.output


def test_times_are_asked_for_by_their_unit_and_hints_are_answers(tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    times = [f"2018-03-{1 + i % 28:02d} 10:{i % 60:02d}" for i in range(400)]
    notes = ["Seen by Dr Ada Lovelace on the ward at noon", "well", "ill", "worse"]
    table = {"at": times, "age": [-9 if i % 9 == 0 else 20 + i % 60 for i in range(400)]}
    pq.write_table(pa.table(table | {"note": notes * 100}), path)
    moments = ("declare", "2018-01-01 00:00", "2018-12-31 23:59:59")
    right = ("2018-01-01 00:00", "2018-12-31 23:59", "", "y", "", "")
    result, made = asked(path, *moments, *right, "", "", "", "-9", "out")
    assert made is not None, result.output
    assert "a time, as 2018-12-31 23:59;" in result.output
    assert "not a multiple of its unit, the minute" in result.output
    assert "name it when asked for values" in result.output
    assert made.source("age").missing_codes == ("-9",)
    assert "= true" not in result.output
    assert "May one name or describe a person?" in result.output
    assert "note" in made.ignore


def test_answers_are_kept_where_they_end(table: Path) -> None:
    result, made = asked(table, "out", "declare", "1", "5", "", "n", "", "Protocol", "learn")
    assert made is not None
    assert result.exit_code == 1
    assert "The answers ended before the questions, after 3 of 5 columns." in result.output
    assert "or ask anew with --overwrite" in result.output
    assert made.ignore == ("cost",)
    assert made.column("grade") == Integer("grade", 1, 5)
    assert [c.name for c in made.to_learn] == ["ward", "day"]
    text = table.with_name("visits.toml").read_text()
    assert "bins = " not in text  # fewer values than bins
    table.with_name("visits.toml").unlink()
    result, made = asked(table)
    assert made is not None
    assert result.exit_code == 1
    assert "The answers ended before the questions, after 0 of 5 columns." in result.output
    drafted = table.with_name("visits.toml").read_text()
    assert drafted.count("# ") > 2, "all questions are still in it"


def test_what_is_stated_is_not_called_0_or_1(table: Path) -> None:
    grade = ("declare", "a few", "1", "5", "", "n", "", "")
    result, _ = asked(table, "", *grade, "", "", "")
    assert (
        "(0 or 1: ill; categorical: ward; date: day; integer: grade; real: cost)" in result.output
    )
    assert "Its lowest value (a whole number; empty" in result.output
    assert "'a few' is not a value of this kind. Write a whole number." in result.output
    assert "120" not in result.output


def test_a_column_of_many_codes_is_asked_for_whose_row_it_is(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    holders = [54_321 + 7 * (i % 300) for i in range(700)]
    pq.write_table(pa.table({"holder": holders, "ill": [0, 1] * 350}), path)
    result, made = asked(path, "y", "")
    assert made is not None, result.output
    assert "LOOK AT THIS FIRST. Does 'holder' say whose row it is?" in result.output
    assert (made.person, [c.name for c in made.columns]) == ("holder", ["ill"])
    path.with_name("visits.toml").unlink()
    _, made = asked(path, "", "", "")
    assert made is not None
    assert (made.person, [c.name for c in made.columns]) == (None, ["holder", "ill"])


def test_leaving_all_out_is_refused(table: Path) -> None:
    result, made = asked(table, *["out"] * 5)
    assert made is None
    assert "All columns were left out" in str(result.exception)


def test_a_person_id_column_that_is_none_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    people = [f"p{i // 2:03d}" for i in range(100)]
    pq.write_table(pa.table({"patient_id": people, "cost": [0.5 * i for i in range(100)]}), path)
    _, made = asked(path, "y", "")
    assert made is not None
    assert made.person == "patient_id"
    path.with_name("visits.toml").unlink()
    _, made = asked(path, "n", "")
    assert made is not None
    assert (made.person, made.ignore) == (None, ("patient_id",))
