"""What a custodian meets on the way from a file to a release and back: formats, persons, bins, unreadable columns."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from margrave.cli.main import run
from margrave.data import read_synthetic, read_table
from margrave.errors import DataError, InputError
from margrave.release.evidence import codes_of, widened
from margrave.schema import Categorical, Codes, Date, Integer, Real, Schema, Timestamp

BUDGET = ["--epsilon", "5", "--delta", "1e-6"]

VISITS = Schema(
    [
        Integer("age", 0, 99, bins=20),
        Categorical("sex", ["F", "M"], missing=True),
        Date("admitted", date(2023, 1, 1), date(2023, 12, 31), bins=12, format="%d/%m/%Y"),
        Timestamp(
            "seen", datetime(2023, 1, 1), datetime(2023, 12, 31, 23), unit="hour", bins=12, format="%d.%m.%y %H:%M"
        ),
    ],
    person="patient",
    ignore=["note"],
)


def visits(n: int = 400) -> pa.Table:
    """Rows as a hospital writes them: days first, and several visits of a patient."""
    rng = np.random.default_rng(3)
    times = [datetime(2023, 1 + int(m), 1 + int(d), int(h)) for m, d, h in rng.integers(0, (12, 28, 24), (n, 3))]
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


def ok(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    code = run([*arguments])
    said = capsys.readouterr()
    assert code == 0, said.err
    return said.out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert run([*arguments]) not in (0, 70)
    return capsys.readouterr().err


# Synthetic tables come back in.


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_margrave_writes_it_reads(here: Path, capsys: pytest.CaptureFixture[str], ending: str) -> None:
    rng = np.random.default_rng(1)
    codes = Codes.of(VISITS.domain, {a: rng.integers(0, VISITS.domain.size(a), 300) for a in VISITS.domain})
    rows = VISITS.decode(codes, rng=rng)
    path = f"rows.{ending}"
    (pyarrow.csv.write_csv if ending == "csv" else pa.parquet.write_table)(rows, path)
    again = read_synthetic(path, VISITS)
    assert again.count([("admitted",), ("seen",)])["seen",].tolist() == np.bincount(codes.column("seen")).tolist()
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
    assert odd.of_output().encode(rows).column("day").tolist() == [31 + 28 + 3]
    assert odd.encode(rows).column("day").tolist() == [31 + 28 + 31 + 2]
    given = VISITS.only(["admitted"])
    both = given.of_output().encode(pa.table({"admitted": ["04/03/2023", "2023-03-04", "2023-03-04T05:06:07"]}))
    assert len(set(both.column("admitted").tolist())) == 1
    assert given.of_output().to_toml() == given.to_toml()


# Conditions.


@pytest.mark.parametrize(
    "wanted", [("2023-03-01", "2023-03-31"), ("01/03/2023", "31/03/2023"), (date(2023, 3, 1), date(2023, 3, 31))]
)
def test_dates_are_asked_for_as_they_are_shown_or_in_their_format(wanted: tuple[str, str]) -> None:
    assert codes_of(VISITS, "admitted", wanted) == (1, 2)
    assert widened(VISITS, "admitted", wanted) == "2023-01-31 to 2023-04-01"


def test_an_hour_is_asked_for_as_it_is_shown() -> None:
    assert codes_of(VISITS, "seen", "2023-03-04 05:00") == codes_of(VISITS, "seen", "04.03.23 05:00")
    with pytest.raises(InputError, match="2023-01-01 00:00 to"):
        codes_of(VISITS, "seen", "March")


def test_words_for_what_a_range_takes() -> None:
    schema = Schema([Integer("age", 0, 99, bins=20, atoms=[30]), Real("cost", 0, 10, bins=4), Categorical("s", ["F"])])
    assert widened(schema, "age", ("31", "40")) == "31 to 44"
    assert widened(schema, "age", ("30", "34")) is None
    assert widened(schema, "age", "30") is None
    assert widened(schema, "age", ["30", "42"]) == "30, 40 to 44"
    assert widened(schema, "age", ("95", "400")) is None
    assert widened(schema, "cost", ("1.5", "3")) == "0 to 5"
    assert widened(schema, "s", "F") is None


def test_sample_says_which_bins_it_took(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = ok(capsys, "synthesize", "visits.csv", "-s", "good.toml", *BUDGET, "-m", "independent", "--release",
              "r.margrave", "--unit", "add-remove-person:5")  # fmt: skip
    assert "Protected" in made
    asked = ["sample", "r.margrave", "-n", "50", "-o", "few.csv", "--where", "age=30..40"]
    said = ok(capsys, *asked, "--where", "admitted=2023-03-01..2023-03-31")
    assert "age: 30 to 44, the whole of the bins that 30..40 touches." in said
    assert "admitted: 2023-01-31 to 2023-04-01, the whole of" in said
    ages = pyarrow.csv.read_csv("few.csv")["age"].to_pylist()
    assert min(ages) >= 30
    assert 40 < max(ages) <= 44
    assert json.loads(ok(capsys, *asked, "--overwrite", "--json"))["whole_bins"] == {"age": "30 to 44"}
    assert "touches" not in ok(capsys, *asked[:-1], "age=30..44", "--overwrite")
