"""Rows in every format that margrave writes: it reads them back with the same codes, titles and value labels."""

from __future__ import annotations

import json
import sys
import zipfile
from dataclasses import replace
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margrave.cli.main import run
from margrave.cli.notes import stata_note
from margrave.data import file_limits, formats, read_frame, statistical_writer
from margrave.data.file_limits import FileLimits
from margrave.data.readers import open_file
from margrave.data.writer import check_format, check_holds, endings_in_words, write_table
from margrave.domain import Codes
from margrave.errors import InputError
from margrave.schema import (
    Boolean,
    Categorical,
    Coded,
    Date,
    Integer,
    Learn,
    Ordinal,
    Real,
    Schema,
    Timestamp,
)
from margrave.schema.sources import ColumnSource

ENDINGS = (
    ".parquet", ".csv", ".feather", ".arrow", ".jsonl", ".ndjson", ".xlsx", ".dta", ".sav"
)  # fmt: skip
LABELS = {"1": "female", "2": "male"}
LONG = "é" * 200
SCHEMA = Schema(
    [
        Categorical("sex", ["1", "2", "3"], missing=True),
        Ordinal("grade", ["2", "1"], missing=True),
        Categorical("ward", ["A", "Bé", "007"], missing=True, other=True),
        Boolean("ill", missing=True),
        Boolean("smokes"),
        Coded("state", 3, missing=True),
        Integer("age", 0, 99, missing=True),
        Integer("large", 0, 2**53 - 1, bins=9),
        Real("pay", -1000.0, 1000.0, edges=[0.1 + 0.2, 1 / 3, 3.0], missing=True),
        Date("born", date(1885, 1, 1), date(2020, 12, 31), bins=9, missing=True),
        Date("left", date(2020, 1, 1), date(2020, 12, 31)),
        Timestamp("seen", datetime(1899, 12, 1), datetime(2020, 1, 31), bins=40, missing=True),
        Timestamp("day", datetime(2020, 1, 1), datetime(2020, 1, 31), unit="day", missing=True),
    ],
    sources={
        "sex": ColumnSource(title="Sex of the patient", labels=LABELS),
        "grade": ColumnSource(title=LONG, labels={"1": "high", "2": LONG}),
        "ward": ColumnSource(labels={"Bé": "Bébés", "other": "=elsewhere"}),
        "ill": ColumnSource(labels={"true": "yes", "false": "no"}),
        "state": ColumnSource(title='=1+1 "quoted"', labels={"2": "south"}),
    },
)  # fmt: skip


def drawn(schema: Schema = SCHEMA, rows: int = 300) -> tuple[Codes, pa.Table]:
    """Some codes, and rows that have them."""
    rng = np.random.default_rng(3)
    sizes = {a: min(schema.domain.size(a), 1000) for a in schema.domain}
    codes = Codes.of(schema.domain, {a: rng.integers(0, sizes[a], rows) for a in sizes})
    return codes, schema.decode(codes, rng=rng)


def written(path: Path, table: pa.Table, schema: Schema | None = SCHEMA) -> str:
    """The address of the rows in a file, which is written if the library for it is installed."""
    needs = {
        ".dta": ("pyreadstat", "pandas"),
        ".sav": ("pyreadstat", "pandas"),
        ".xlsx": ("xlsxwriter", "fastexcel"),
    }
    for library in needs.get(path.suffix, ()):
        pytest.importorskip(library, reason=f"{library} is not installed")
    write_table(table, str(path), overwrite=False, schema=schema)
    if path.suffix != ".xlsx":
        return str(path)
    with zipfile.ZipFile(path) as book:
        several = any("sheet2" in name for name in book.namelist())
    return f"{path}?sheet=rows" if several else str(path)


def test_a_name_that_a_format_cannot_hold_is_no_reason_to_pay_again(tmp_path: Path) -> None:
    rows = pa.table({"with": ["1", "2"]})
    with pytest.raises(InputError, match="cannot hold a column named 'with'") as refused:
        write_table(rows, str(tmp_path / "rows.dta"), overwrite=False)
    assert "Name a .parquet or .csv file, and rename the column in the rows." in str(
        refused.value.remedy
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_row_is_read_back_with_its_codes(tmp_path: Path, ending: str) -> None:
    codes, table = drawn()
    frame = read_frame(written(tmp_path / f"rows{ending}", table))
    assert frame.column_names == table.column_names
    again = SCHEMA.for_reading_output().read(frame)[0]
    for name in SCHEMA.domain:
        assert again.column(name).tolist() == codes.column(name).tolist(), name


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("schema", [SCHEMA, None])
def test_a_table_without_rows_and_one_of_missing_values_alone(
    tmp_path: Path, ending: str, schema: Schema | None
) -> None:
    table = drawn()[1]
    nothing = pa.table({n: pa.nulls(3, table.schema.field(n).type) for n in table.column_names})
    missing = read_frame(written(tmp_path / f"missing{ending}", nothing, schema))
    assert missing.column_names == table.column_names
    for name, column in zip(missing.column_names, missing.columns, strict=True):
        assert set(column.to_pylist()) <= {None, ""}, name
    assert missing.num_rows == (3 if ending != ".xlsx" else 0)  # empty rows are not rows there
    empty = tmp_path / f"empty{ending}"
    address = written(empty, table.slice(0, 0), schema)
    if "json" in ending:
        assert empty.read_bytes() == b""
    else:
        assert read_frame(address).column_names == table.column_names


TEXTS = [
    "", " ", "a 'b' \"c\"", "two\nlines\r\nand a tab\t", "=1+1", "+cmd|' /C calc'!A0", "http://a.b", "<r>&</r>", "007",
    "1e5", "true", "_x0041_", "日本 🎉", "\x07", None, "x" * 3000,
]  # fmt: skip


@pytest.mark.parametrize("ending", ENDINGS)
def test_odd_values_stay_as_they_are(tmp_path: Path, ending: str) -> None:
    """Rows as ``sample --complete`` has them: columns of any type, and values beyond the schema."""
    moments = [
        datetime(1850, 1, 1, 23, 59, 59),
        datetime(1900, 1, 1),
        datetime(1900, 3, 1, 0, 0, 1),
        None,
    ]
    many = -(-len(TEXTS) // 4)
    number = [0.1 + 0.2, -1e299, float("nan"), None]
    table = pa.table({
        "text": pa.array(TEXTS).dictionary_encode(),
        "moment": pa.array(moments * many, pa.timestamp("ns")),
        "zoned": pa.array([datetime(2020, 1, 1, 23, tzinfo=UTC)] * 16, pa.timestamp("us", "America/New_York")),
        "day": pa.array([None if m is None else m.date() for m in moments * many], pa.date64()),
        "time": pa.array([time(23, 59, 1)] * 16),
        "number": pa.array(number * many),
        "single": pa.array([0.1, 0.5, None, 2.0] * many, pa.float32()),
        "whole": pa.array([2**53, -3, None, 10**9] * many),
        "nothing": pa.nulls(16),
        "last": [1] * 16,
    })  # fmt: skip
    schema = Schema([
        Categorical("text", [t for t in TEXTS if t and t.strip()], missing=True),
        Timestamp("moment", datetime(1850, 1, 1), datetime(1950, 1, 1), bins=4000, missing=True),
        Timestamp("zoned", datetime(2020, 1, 1), datetime(2020, 1, 3), unit="hour"),
        Date("day", date(1850, 1, 1), date(1950, 1, 1), missing=True),
        Categorical("time", ["23:59:01"]),
        Real("number", -1e299, 10.0, edges=[0.1 + 0.2, 1.0], missing=True),
        Real("single", 0.0, 2.0, edges=[0.3, 1.0], missing=True),
        Integer("whole", -3, 2**53 - 1, edges=[0, 10**9, 2**53 - 2], outside="clip", missing=True),
        Categorical("nothing", ["x"], missing=True),
        Integer("last", 0, 1),
    ])  # fmt: skip
    again = schema.read(read_frame(written(tmp_path / f"rows{ending}", table, None)))[0]
    expected = schema.read(table)[0]
    for name in schema.domain:
        assert again.column(name).tolist() == expected.column(name).tolist(), name


def test_json_lines_are_objects_with_null_and_iso_8601(tmp_path: Path) -> None:
    table = pa.table({
        "é": ["a\u2028b", None], "n": [1, None], "day": [date(2020, 1, 2), None],
        "seen": pa.array([datetime(2020, 1, 2, 3, 4, 5), None], pa.timestamp("us")), "ok": [True, None],
    })  # fmt: skip
    write_table(table, str(tmp_path / "rows.jsonl"), overwrite=False)
    lines = (tmp_path / "rows.jsonl").read_text("utf-8").split("\n")
    assert [json.loads(line) for line in lines[:-1]] == [
        {"é": "a\u2028b", "n": 1, "day": "2020-01-02", "seen": "2020-01-02T03:04:05", "ok": True},
        dict.fromkeys(table.column_names),
    ]
    assert lines[-1] == ""


@pytest.mark.parametrize("ending", [".dta", ".sav"])
def test_titles_and_labels_come_back_by_schema_import(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    written(tmp_path / f"rows{ending}", drawn()[1])
    found = tmp_path / "found.toml"
    assert run(["schema", "import", str(tmp_path / f"rows{ending}"), "-o", str(found)]) == 0
    again = Schema.load(found)
    columns = {c.name: c for c in again.columns}
    assert again.source("sex").title == "Sex of the patient"
    assert again.source("sex").labels == LABELS
    assert again.source("state").title == '=1+1 "quoted"'
    assert columns["sex"].labels() == ["1", "2", "3", "(missing)"]
    assert again.source("ill").labels == {"0": "no", "1": "yes"}
    assert again.source("smokes").labels == {"0": "false", "1": "true"}
    limit, size = {".dta": (80, len), ".sav": (255, lambda text: len(text.encode()))}[ending]
    title = again.source("grade").title
    assert title.endswith("é…")
    assert limit - 2 < size(title) <= limit
    assert again.source("grade").labels["2"][:50] == LONG[:50]
    assert {n: columns[n].kind for n in ("age", "large", "born", "seen", "day")} == {
        "age": "integer", "large": "integer" if ending == ".sav" else "real",
        "born": "date", "seen": "timestamp", "day": "date",
    }  # fmt: skip
    if ending == ".sav":
        assert columns["grade"].kind == "ordinal"
        assert again.source("ward").labels == {"Bé": "Bébés", "other": "=elsewhere"}


def test_a_workbook_has_titles_and_labels_as_texts(tmp_path: Path) -> None:
    written(tmp_path / "rows.xlsx", drawn()[1])
    described = read_frame(f"{tmp_path / 'rows.xlsx'}?sheet=columns").to_pylist()
    assert {
        "name": "sex",
        "title": "Sex of the patient",
        "code": "1",
        "label": "female",
    } in described
    assert {"name": "age", "title": None, "code": None, "label": None} in described
    with zipfile.ZipFile(tmp_path / "rows.xlsx") as book:
        sheets = b"".join(book.read(f"xl/worksheets/sheet{i}.xml") for i in (1, 2)).decode()
        assert "yyyy-mm-dd hh:mm:ss" in book.read("xl/styles.xml").decode()
    assert "=elsewhere" in sheets
    assert "<f>" not in sheets
    assert "hyperlink" not in sheets
    plain = Schema([Integer("age", 0, 9)])
    assert written(tmp_path / "one.xlsx", drawn(plain)[1], plain).endswith("one.xlsx")


def refusal(path: str, schema: Schema, rows: int | None = None) -> str:
    with pytest.raises(InputError) as raised:
        check_holds(path, schema, rows)
    return str(raised.value)


@pytest.mark.parametrize(
    ("path", "schema", "says"),
    [
        ("r.dta", Schema.coded({"hours-per-week": 2}), "Stata cannot hold a column named 'hours-per-week'"),
        ("r.dta", Schema.coded({"a" * 33: 2}), "at most 32"),
        ("r.dta", Schema([Boolean("a" * 30)]), "29 with value labels"),
        ("r.dta", Schema.coded({"str12": 2}), "not a word of Stata's"),
        ("r.dta", Schema([Date("born", date(99, 1, 1), date(1999, 1, 1))]), "dates before 0100-01-01"),
        ("r.dta", Schema([Categorical("town", ["a\0b"])]), "the character NUL"),
        ("r.sav", Schema([Learn("é" * 33, "real")]), "at most 64 bytes"),
        ("r.sav", Schema.coded({"To": 2}), "not a word of SPSS's"),
        ("r.sav", Schema([Date("b", date(1582, 10, 14), date(1999, 1, 1))]), "dates before 1582-10-15"),
        ("r.sav", Schema([Categorical("town", ["日" * 10_000, "🎉" * 9000])]), "more than 32,767 bytes"),
    ],
)  # fmt: skip
def test_a_schema_that_a_format_cannot_hold_is_refused(
    path: str, schema: Schema, says: str
) -> None:
    said = refusal(path, schema)
    assert says in said
    assert ".parquet or .csv file" in said.replace("Name", "name")
    check_holds("r.csv", schema)
    check_holds("r.parquet", schema)


@pytest.mark.parametrize(
    ("limits", "most"),
    [(file_limits.stata_limits(), 32_767), (file_limits.excel_limits(), 16_384)],
    ids=["Stata", "Excel"],
)
def test_more_columns_than_a_format_holds_are_refused(limits: FileLimits, most: int) -> None:
    assert limits.max_columns == most
    schema, fewer = Schema.coded({"a": 2, "b": 2, "c": 2}), replace(limits, max_columns=2)
    with pytest.raises(InputError, match="holds 2 columns"):
        file_limits.check_schema(fewer, schema, None)
    file_limits.check_schema(replace(limits, max_columns=3), schema, None)


def test_names_that_differ_in_case_are_one_in_spss() -> None:
    schema = Schema.coded({"age": 2, "AGE": 2})
    assert "'age' and 'AGE' have one name" in refusal("r.sav", schema)
    check_holds("r.dta", schema)


def test_more_rows_than_a_sheet_holds_are_refused(tmp_path: Path) -> None:
    schema = Schema.coded({"age": 2})
    check_holds("r.xlsx", schema, 1_048_575)
    assert "1,048,576 rows would be written. Draw fewer" in refusal("r.xlsx", schema, 1_048_576)
    pytest.importorskip("xlsxwriter", reason="xlsxwriter is not installed")
    table = pa.table({"age": np.zeros(1_048_576, np.int64)})
    with pytest.raises(InputError, match="Draw fewer"):
        write_table(table, str(tmp_path / "r.xlsx"), overwrite=False, schema=schema)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("ending", "values", "says"),
    [
        (".dta", pa.array([float("inf")]), "infinite"),
        (".sav", pa.array([2**53 + 1]), r"whole number beyond 2\^53"),
        (".xlsx", pa.array(["x" * 32_768]), "more than 32,767 characters"),
        (".sav", pa.array(["x" * 32_768]), "more than 32,767 bytes"),
        (".dta", pa.array(["a\0b"]), "NUL"),
        (".sav", pa.array([date(1500, 1, 1)]), "before 1582-10-15"),
        (".jsonl", pa.array([[1, 2]]), "values of the type list"),
        (".jsonl", pa.array([float("-inf")]), "infinite"),
    ],
)
def test_values_that_a_format_cannot_hold_leave_nothing_written(
    tmp_path: Path, ending: str, values: pa.Array, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        written(tmp_path / f"rows{ending}", pa.table({"x": values}), None)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "command",
    [
        "sample r.margrave",
        "marginals r.margrave",
        "synthesize t.csv --accept-draft -e 1 --delta 1e-9",
    ],
)
def test_commands_refuse_an_ending_before_they_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([*command.split(), "-o", "rows.sas7bdat"]) == 2
    said = capsys.readouterr().err
    assert f"rows.sas7bdat does not end in {endings_in_words()}. Name it so: rows.parquet." in said
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("ending", "library"), [(".dta", "pyreadstat"), (".sav", "pandas"), (".xlsx", "xlsxwriter")]
)
def test_a_library_that_is_not_installed_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, ending: str, library: str
) -> None:
    if ending != ".xlsx":
        pytest.importorskip("pyreadstat", reason="pyreadstat is not installed")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=r"not installed.*pip install 'margrave\[formats\]'"):
        check_format(f"rows{ending}")
    check_format("rows.csv")


@pytest.mark.parametrize("ending", [".dta", ".sav"])
def test_labels_that_a_file_does_not_hold_are_named(tmp_path: Path, ending: str) -> None:
    pyreadstat = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed")
    path = tmp_path / f"rows{ending}"
    written(path, drawn()[1])
    _, facts = (pyreadstat.read_dta if ending == ".dta" else pyreadstat.read_sav)(path)
    labelled = {c.name for c in SCHEMA.columns if SCHEMA.source(c.name).labels}
    note = stata_note(str(path), SCHEMA)
    assert labelled - {*facts.variable_value_labels} == ({"ward"} if note else set())
    assert ("no value labels of ward, because Stata has none for texts" in note) is (
        ending == ".dta"
    )


@pytest.mark.parametrize("ending", [".dta", ".csv"])
def test_a_run_and_a_draw_say_which_labels_are_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    pytest.importorskip("pyreadstat", reason="pyreadstat is not installed")
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("ward\n" + "a\nb\n" * 200)
    labels = {"ward": ColumnSource(labels={"a": "surgery"})}
    Schema([Categorical("ward", ["a", "b"])], sources=labels).save("s.toml")
    words = "synthesize t.csv -s s.toml -e 9 --delta 1e-9 -m independent --release r.margrave"
    assert run([*words.split(), "-o", f"rows{ending}"]) == 0
    assert run(["sample", "r.margrave", "-o", f"more{ending}"]) == 0
    said = capsys.readouterr().err
    assert said.count("no value labels of ward") == (2 if ending == ".dta" else 0)


def test_a_run_keeps_its_release_if_the_rows_do_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyreadstat", reason="pyreadstat is not installed")
    pytest.importorskip("pandas", reason="pandas is not installed")
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("age\n" + "1\n2\n" * 200)
    Schema([Integer("age", 0, 9)]).save("s.toml")
    words = "synthesize t.csv -s s.toml -e 9 --delta 1e-9 -m independent --release r.margrave"
    command = words.split()
    Schema.coded({"body mass": 9}).save("wrong.toml")
    wrong = [*command[:3], "wrong.toml", *command[4:]]
    assert run([*wrong, "-o", "rows.dta"]) == 2
    assert {p.name for p in tmp_path.iterdir()} == {"t.csv", "s.toml", "wrong.toml"}

    def full(*_: Any, **__: Any) -> None:
        raise statistical_writer.libraries()[0].PyreadstatError("Unable to write data")

    with monkeypatch.context() as patch:
        patch.setattr("pyreadstat.write_dta", full)
        assert run([*command, "-o", "rows.dta"]) == 2
    said = capsys.readouterr().err
    assert "rows.dta could not be written (Unable to write data)" in said
    assert not Path("rows.dta").exists()
    assert run(["sample", "r.margrave", "-n", "20", "-o", "rows.dta"]) == 0
    assert open_file("rows.dta").rows() == 20


@pytest.mark.parametrize("ending", [".dta", ".sav"])
def test_a_file_that_the_library_cut_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    pyreadstat = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed")
    pytest.importorskip("pandas", reason="pandas is not installed")
    name = {".dta": "write_dta", ".sav": "write_sav"}[ending]
    write = getattr(pyreadstat, name)

    def cut(frame: Any, path: str, **options: Any) -> None:
        write(frame, path, **options)
        Path(path).write_bytes(Path(path).read_bytes()[:-9])

    monkeypatch.setattr(pyreadstat, name, cut)
    with pytest.raises(InputError, match="could not be written"):
        write_table(drawn()[1], str(tmp_path / f"rows{ending}"), overwrite=False, schema=SCHEMA)
    assert not [*tmp_path.iterdir()]


def test_what_is_written_is_read() -> None:
    """The endings that are written are among those that are read."""
    text = Path(formats.__file__).read_text() + ".parquet .csv"
    assert all(ending in text for ending in ENDINGS)
    assert endings_in_words() == f"{', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
