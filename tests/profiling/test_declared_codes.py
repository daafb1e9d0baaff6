"""A draft of a file of SPSS takes the missing-value codes that the file declares."""

from __future__ import annotations

from pathlib import Path

import pytest

import margrave
from margrave.cli.main import run
from margrave.profiling import draft_schema
from margrave.profiling.draft import draft
from margrave.schema import Categorical, Integer, Learn

pyreadstat = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed")
pandas = pytest.importorskip("pandas", reason="pandas is not installed")

CODES = {"sex": ["9"], "smokes": ["-9"], "pay": ["-99", "-98"], "town": ["XX"]}


@pytest.fixture
def survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    frame = pandas.DataFrame(
        {
            "age": [20 + i % 60 for i in range(400)],
            "sex": [(1, 2, 9)[i % 3] for i in range(400)],
            "smokes": [(0, 1, -9)[i % 3] for i in range(400)],
            "pay": [-99 if i % 7 == 0 else 1000 + 7 * i for i in range(400)],
            "town": [("York", "Hull", "XX")[i % 3] for i in range(400)],
        }
    )
    declared = {
        "sex": [9],
        "smokes": [-9],
        "pay": [{"lo": -99, "hi": -98}],
        "town": ["XX"],
        "age": [998],
    }
    pyreadstat.write_sav(frame, "survey.sav", missing_ranges=declared)
    return "survey.sav"


@pytest.mark.filterwarnings("ignore::margrave.errors.CustodianWarning")
def test_a_draft_declares_the_codes_of_the_file(survey: str) -> None:
    schema = draft_schema(survey)
    found = {n: sorted(s.missing_codes) for n, s in schema.sources.items() if s.missing_codes}
    assert found == {n: sorted(c) for n, c in {**CODES, "age": ["998"]}.items()}
    smokes = schema.column("smokes")
    assert isinstance(smokes, Integer)
    assert (smokes.low, smokes.high, smokes.missing) == (0, 1, True)
    assert isinstance(schema.column("pay"), Learn)
    assert "a code for missing" not in schema.to_toml()
    read = draft_schema(survey, read=True)
    pay, town = read.column("pay"), read.column("town")
    assert isinstance(pay, Integer)
    assert pay.low >= 0
    assert isinstance(town, Categorical)
    assert "XX" not in town.categories


def test_a_run_on_a_draft_counts_them_as_missing(
    survey: str, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = ["--epsilon", "500", "--delta", "1e-9", "-m", "independent"]
    assert run(["synthesize", survey, "--accept-draft", *budget, "--release", "r.margrave"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert (
        "Codes for missing values: 998 in age; 9 in sex; -9 in smokes; -99, -98 in pay; XX in town"
        in said
    )
    assert "margrave schema import survey.sav reads them, and no row." in said
    rows = margrave.Release.load("r.margrave").sample(300, seed=0).to_pydict()
    assert None in rows["town"]
    assert "XX" not in rows["town"]
    assert min(v for v in rows["pay"] if v is not None) > -90


def test_a_draft_of_a_frame_declares_none() -> None:
    drafted = draft(pandas.DataFrame({"sex": [1, 2, 9] * 50, "town": ["York", "Hull", "XX"] * 50}))
    assert not any(s.missing_codes for s in drafted.sources.values())
