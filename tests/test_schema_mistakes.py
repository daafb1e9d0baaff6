"""What is wrong with a custodian's first file, or first schema, is told by the draft and by the check."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from margrave.cli.main import run
from margrave.data import check_table
from margrave.errors import DataError
from margrave.schema import Categorical, Integer, Schema
from margrave.schema.draft import draft
from test_cli import ok


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
    return pa.table({"visit_id": np.arange(rows) // 2 + 7000, "patient_id": who, "age": rng.integers(0, 99, rows)})


def test_a_draft_of_visits_protects_patients(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A patient has twenty rows: by its numbers alone the column would be drafted as a number."""
    pyarrow.csv.write_csv(visits(), "visits.csv")
    said = " ".join(ok(capsys, "schema", "draft", "visits.csv", "-o", "v.toml").split())
    assert "'patient_id' seems to say whose row it is" in said
    text = (here / "v.toml").read_text()
    assert 'person = "patient_id"' in text.splitlines()
    (here / "v.toml").write_text(text.replace("draft = true", "draft = false"))
    assert run(["plan", "-s", "v.toml", "--epsilon", "1", "--delta", "1e-6", "-m", "independent"]) == 2
    assert "--unit add-remove-person:K" in capsys.readouterr().err


def test_the_check_says_whose_rows_a_schema_overlooks(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pyarrow.csv.write_csv(visits(), "visits.csv")
    overlooking = Schema([Integer("age", 0, 99)], ignore=["visit_id", "patient_id"])
    overlooking.save("v.toml")
    said = " ".join(ok(capsys, "schema", "check", "visits.csv", "-s", "v.toml").split())
    assert "LOOK AT THIS FIRST. Column 'patient_id' is ignored, and looks as if it said whose row it is" in said
    assert "31 identifiers, one of them with 60 of the 600 rows" in said
    assert 'write person = "patient_id" in [schema]' in said
    assert check_table(visits(), overlooking).alarms == check_table("visits.csv", overlooking).alarms
    assert not check_table(visits(), Schema(overlooking.columns, person="patient_id", ignore=["visit_id"])).further
    once = visits().take(np.arange(0, 600, 2)).slice(0, 0)
    assert not check_table(once, overlooking).further


def test_a_number_of_its_own_in_each_row_is_left_out_by_its_name() -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"patient_id": rng.permutation(10**6)[:300], "cost": rng.permutation(10**6)[:300]})
    assert draft(table).ignore == ("patient_id",)
    assert draft(table).person is None


# Headers.


def test_a_file_without_a_header_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "t.csv").write_text("8,F,Diabetes\n" + "9,M,Asthma\n8,F,Diabetes\n" * 30)
    assert run(["schema", "draft", "t.csv", "-o", "t.toml"]) == 4
    said = capsys.readouterr().err
    assert "The table has no header: the names of columns 1, 2, 3 read as values" in said
    assert "Diabetes" not in said
    assert not (here / "t.toml").exists()


def test_a_header_that_may_be_a_row_is_asked_about(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "t.csv").write_text("region,2019,2020\n" + "north,5,7\nsouth,3,4\n" * 30)
    for words in (["-o", "t.toml"], []):
        assert run(["schema", "draft", "t.csv", *words]) == 0
        said = " ".join("".join(capsys.readouterr()).split())
        assert "LOOK AT THIS FIRST. Is this a header? It looks like a row: the names of columns 2, 3 read as" in said
    assert "# LOOK AT THIS FIRST. Is this a header?" in (here / "t.toml").read_text()
    assert "Is this a header?" in ok(capsys, "schema", "check", "t.csv", "-s", "t.toml")
    assert json.loads(ok(capsys, "schema", "draft", "t.csv", "--json"))["remarks"][0].startswith("LOOK")
    (here / "t.csv").write_text("region,y2019,y2020\n" + "north,5,7\nsouth,3,4\n" * 30)
    assert "LOOK" not in ok(capsys, "schema", "draft", "t.csv")


def test_a_name_among_its_own_values_is_asked_about() -> None:
    schema = draft(pa.table({"sex": ["F", "M"] * 20, "Asthma": ["Asthma", "Gout"] * 20, "age": ["4", "5"] * 20}))
    assert "the name of column 2 reads as a value" in schema.remarks[""]
    assert any("column 2" in a for a in check_table(pa.table({c.name: ["1"] for c in schema.columns}), schema).alarms)
    with pytest.raises(DataError, match="no header"):
        draft(pa.table({"F": ["F", "M"] * 20, "Asthma": ["Asthma", "Gout"] * 20, "4": ["4", "5"] * 20}))
    assert not check_table(pa.table({"a": ["a"]}), Schema([Categorical("a", ["b", "a b"], missing=True)])).further
