"""Value labels on some of a column's values only, labels of missing codes, and names and labels of persons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from margrave.cli.main import run
from margrave.codebooks import read_code_book
from margrave.codebooks.value_labels import list_all_values
from margrave.codebooks.variable import Variable
from margrave.schema import Categorical, Learn, Ordinal
from margrave.schema.person_names import names_a_key, names_persons

ENDS = {0.0: "very unhappy", 10.0: "very happy"}


def saved(folder: Path, columns: dict[str, Any], ending: str = ".sav", **options: Any) -> Path:
    """Write a file of SPSS or Stata."""
    pyreadstat = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    file = folder / f"umfrage{ending}"
    write = pyreadstat.write_sav if ending == ".sav" else pyreadstat.write_dta
    write(pandas.DataFrame(columns), str(file), **options)
    return file


@pytest.mark.parametrize("ending", [".sav", ".dta"])
def test_a_scale_labelled_at_its_ends_is_learned_and_asked_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    file = saved(
        tmp_path,
        {name: [0.0, 3.0, 10.0] for name in ("happy", "trust", "sex")},
        ending,
        variable_value_labels={
            "happy": ENDS,
            "trust": ENDS | {99.0: "keine Angabe"},
            "sex": {1.0: "m", 2.0: "f", 9.0: "not known"},
        },
        **({"variable_measure": {"happy": "ordinal"}} if ending == ".sav" else {}),
    )
    schema = read_code_book(file)
    assert schema.columns == (
        Learn("happy", "real"),
        Learn("trust", "real"),
        Categorical("sex", ["1", "2", "9"], missing=True),
    )
    assert schema.sources["trust"].missing_codes == ("99",)
    assert schema.remarks["happy"] == "0 = very unhappy. 10 = very happy"
    assert schema.remarks["trust"].startswith("No value: 99 (keine Angabe). 0 = very unhappy")
    question = "LOOK AT THIS FIRST. Columns 'happy', 'trust': The code book labels only some values"
    assert question in schema.remarks[""]
    assert run(["schema", "import", str(file), "-o", str(tmp_path / "s.toml")]) == 0
    assert question in " ".join(capsys.readouterr().out.split())


def test_values_between_the_labelled_ends_are_in_the_synthetic_rows(tmp_path: Path) -> None:
    file = saved(
        tmp_path,
        {"happy": [0.0, 3.0, 7.0, 10.0] * 500, "land": [40.0, 276.0, 756.0, 40.0] * 500},
        variable_value_labels={"happy": ENDS, "land": {40.0: "Austria", 276.0: "Germany"}},
        variable_measure={"happy": "ordinal", "land": "nominal"},
        variable_format={"happy": "F2.0"},
    )
    read_code_book(file).save(tmp_path / "s.toml")
    words = [
        "-s",
        str(tmp_path / "s.toml"),
        "--epsilon",
        "9",
        "--delta",
        "1e-6",
        "--unit",
        "replace-row",
    ]
    rows = tmp_path / "rows.csv"
    assert run(["synthesize", str(file), *words, "-m", "independent", "-o", str(rows)]) == 0
    happy, land = zip(
        *(line.split(",") for line in rows.read_text().replace('"', "").split()[1:]), strict=True
    )
    assert {"3", "7"} < set(happy)
    assert set(land) >= {"40", "276", "756"}


def test_a_nominal_column_with_some_labels_is_learned_as_categories(tmp_path: Path) -> None:
    lands = {40.0: "Austria", 276.0: "Germany"}
    file = saved(
        tmp_path,
        {"land": [40.0, 756.0], "day": [13923360000.0] * 2, "grade": [1.0, 2.0]},
        variable_value_labels={
            "land": lands,
            "day": ENDS,
            "grade": {1.0: "low", 2.0: "high", 7.0: "other"},
        },
        variable_measure={"land": "nominal", "day": "nominal", "grade": "ordinal"},
        variable_format={"day": "DATE11"},
    )
    assert read_code_book(file).columns == (
        Learn("land", "categorical"),
        Learn("day", "date"),
        Ordinal("grade", ["1", "2", "7"], missing=True),
    )


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"0": "no", "1": "yes"}, True),
        ({"1": "a", "2": "b", "3": "c"}, True),
        ({"-1": "worse", "0": "same", "1": "better"}, True),
        ({"1": "m", "2": "f", "98": "don't know", "99": "refused"}, True),
        ({"-8": "Frage nicht im Bogen", "-1": "keine Angabe", "1": "m", "2": "f"}, True),
        ({"1": "a", "2": "b", "9": "Sonstiges"}, True),
        ({"0.5": "half", "1": "whole"}, True),
        ({"0": "low", "5": "middle", "10": "high"}, False),
        ({"1": "trifft nicht zu", "7": "trifft zu"}, False),
        ({"1": "trifft zu", "7": "trifft nicht zu"}, False),
        ({"-5": "left", "5": "right"}, False),
        ({"0": "none", "99": "refused"}, False),
        ({"97": "weiß nicht", "98": "keine Angabe"}, False),
        ({"96": "less than monthly", "97": "never"}, False),
        ({"90": "90 or more"}, False),
        ({}, False),
    ],
)  # fmt: skip
def test_labels_list_all_values_if_codes_have_no_gap(
    labels: dict[str, str], expected: bool
) -> None:
    assert list_all_values(labels) is expected


def test_ddi_with_labels_of_some_values_keeps_its_valid_range(tmp_path: Path) -> None:
    listed = "".join(
        f'<catgry missing="{"Y" if code == 99 else "N"}"><catValu>{code}</catValu><labl>{label}</labl></catgry>'
        for code, label in {0: "low", 10: "high", 99: "refused"}.items()
    )
    form, valid = '<varFormat type="numeric"/>', '<valrng><range min="0" max="10"/></valrng>'
    book = "".join(
        f'<var name="{name}" intrvl="discrete">{span}{listed}{form}</var>'
        for name, span in (("a", valid), ("b", ""))
    )
    file = tmp_path / "book.xml"
    file.write_text(f"<codeBook><dataDscr>{book}</dataDscr></codeBook>")
    schema = read_code_book(file)
    assert [type(c).__name__ for c in schema.columns] == ["Integer", "Learn"]
    assert "Column 'b': The code book labels only some values" in schema.remarks[""]
    assert schema.remarks["b"] == "No value: 99 (refused). 0 = low. 10 = high"


def test_labels_of_missing_codes_are_in_the_comment_also_of_stata(tmp_path: Path) -> None:
    file = saved(
        tmp_path,
        {"sex": [1.0, 2.0]},
        variable_value_labels={"sex": {1.0: "m", 2.0: "f", 9.0: "keine Angabe"}},
        missing_ranges={"sex": [{"lo": 8, "hi": 9}]},
    )
    assert read_code_book(file).remarks["sex"] == "No value: 9 (keine Angabe), 8"
    file = saved(
        tmp_path,
        {"income": [1, "a", 2]},
        ".dta",
        variable_value_labels={"income": {"a": "refused"}},
        missing_user_values={"income": ["a"]},
    )
    schema = read_code_book(file)
    assert schema.remarks["income"] == "No value: .a (refused)"
    assert not schema.source("income").missing_codes


@pytest.mark.parametrize(
    "name",
    [
        "persnr", "pers_nr", "PersNr", "pnr", "idnr", "hhnr", "hh_id", "kennnummer", "lfdnr", "lfd_nr", "vpnr",
        "resp_id", "steuer_id", "befragten_id", "VP-Code", "Versuchspersonennummer", "Lfd. Nr.", "Nr. der Person",
        "Respondent's ID",
    ],
)  # fmt: skip
def test_names_of_numbers_of_persons_in_surveys(name: str) -> None:
    assert names_a_key(name)
    assert names_persons(name)


@pytest.mark.parametrize(
    "name",
    [
        "paid", "grid", "valid", "acid", "period", "order_id", "hotel_id", "hotel_id_nr", "respiratory_id",
        "response_id", "postnr", "hausnr", "plannr", "spnr", "hh_size", "pnr_count", "pers_income", "steuerklasse",
        "kennzahl", "num_members", "number_inpatient", "valid_no", "Alter der Person",
        "Number of persons in the household",
    ],
)  # fmt: skip
def test_other_names_are_not_of_numbers_of_persons(name: str) -> None:
    assert not names_a_key(name)


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("Personennummer", True),
        ("Laufende Nummer", True),
        ("Patient", True),
        ("Alter der Person", False),
        ("Do you know your account number", False),
        ("Income", False),
    ],
)
def test_the_label_suggests_persons_as_the_name_does(label: str, expected: bool) -> None:
    assert Variable("v1", "integer", label).names_person is expected
    assert not Variable("v1", "integer", label, {"1": "yes"}).names_person


def test_the_best_of_several_columns_of_persons_is_the_person_id_column(tmp_path: Path) -> None:
    numbers = {name: [1.0, 2.0] for name in ("lfdnr", "v7", "persnr", "age")}
    texts = {name: ["a", "b"] for name in ("Name", "vorname", "beruf", "email")}
    file = saved(
        tmp_path, numbers | texts, column_labels={"v7": "Haushaltsnummer", "age": "Alter der Person"}
    )  # fmt: skip
    schema = read_code_book(file)
    assert (schema.person, schema.ignore) == (
        "persnr",
        ("lfdnr", "v7", "Name", "vorname", "email"),
    )
    assert [c.name for c in schema.columns] == ["age", "beruf"]
