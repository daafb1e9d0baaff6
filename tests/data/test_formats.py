"""The same table from files of every format: one code for one value, and one sentence for what cannot be read."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from margrave.cli.main import run
from margrave.codebooks import read_code_book
from margrave.data import BatchTable, MemoryTable, formats, read_codes, read_frame, read_table
from margrave.data.readers import open_file
from margrave.errors import DataError, InputError, MargraveError
from margrave.profiling import check_table, draft_schema
from margrave.schema import Boolean, Categorical, Date, Integer, Real, Schema, Timestamp
from tests.support.sas import write_sas7bdat
from tests.support.workbooks import write_workbook

SECRET = "Canary-7719283"
SCHEMA = Schema(
    [
        Categorical("town", ["York", "Hull", "007"], missing=True),
        Categorical("grade", ["1", "2", "999"], missing=True),
        Integer("age", 0, 99, missing=True),
        Real("pay", 0.0, 1000.0, bins=7, outside="missing", missing=True),
        Boolean("ill", missing=True),
        Date("born", date(1900, 1, 1), date(2020, 12, 31), bins=9, missing=True),
        Timestamp("seen", datetime(2020, 1, 1), datetime(2020, 1, 31), unit="hour", missing=True),
    ],
    person="who",
)  # fmt: skip
ROWS: dict[str, list[Any]] = {
    "town": ["York", "Hull", "007", None, "York"],
    "grade": [1, 2, None, 999, 1],
    "age": [0, 99, None, 31, 8],
    "pay": [0.1, 2.5, None, 999.99, 3.0],
    "ill": [True, False, None, True, False],
    "born": [date(1901, 7, 13), date(2020, 12, 31), None, date(1999, 1, 1), date(1970, 1, 1)],
    "seen": [
        datetime(2020, 1, 2, 3, 4, 5),
        datetime(2020, 1, 31),
        None,
        datetime(2020, 1, 2, 23, 59, 59),
        datetime(2020, 1, 1),
    ],
    "who": [f"p{i}" for i in (1, 2, 3, 1, 2)],
}
TABLE = pa.table(ROWS)


def statistical(path: Path, rows: dict[str, list[Any]] = ROWS) -> Path:
    """The rows in a file of Stata, SPSS or SAS."""
    pyreadstat = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    numbers = {"grade", "age", "pay", "ill"}
    frame = pandas.DataFrame({
        n: pandas.Series(v, dtype="float64" if n in numbers else object) for n, v in rows.items()
    })  # fmt: skip
    if path.suffix == ".dta":
        pyreadstat.write_dta(frame, str(path))
    elif path.suffix == ".xpt":
        pyreadstat.write_xport(frame, str(path))
    else:
        missing = {"grade": [999]} if "grade" in rows else {}
        pyreadstat.write_sav(
            frame, str(path), missing_ranges=missing, compress=path.suffix == ".zsav"
        )
    return path


def workbook(path: Path, rows: dict[str, list[Any]] = ROWS) -> Path:
    """The rows in the only sheet of a workbook."""
    pytest.importorskip("fastexcel", reason="fastexcel is not installed")
    return write_workbook(path, {"Visits": [list(rows), *zip(*rows.values(), strict=True)]})


def json_lines(path: Path, rows: dict[str, list[Any]] = ROWS) -> Path:
    """The rows as objects, without what is empty."""
    lines = [
        json.dumps({n: v for n, v in zip(rows, row, strict=True) if v is not None}, default=str)
        for row in zip(*rows.values(), strict=True)
    ]
    text = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def arrow(path: Path, rows: dict[str, list[Any]] = ROWS) -> Path:
    """The rows in a file of Arrow."""
    pyarrow.feather.write_feather(
        pa.table(rows), str(path), compression="zstd" if path.suffix == ".feather" else None
    )
    return path


def sas(path: Path, rows: dict[str, list[Any]] = ROWS) -> Path:
    """The rows in a file of SAS."""
    return write_sas7bdat(path, rows)


WRITERS: dict[str, Callable[..., Path]] = {
    ".dta": statistical, ".sav": statistical, ".zsav": statistical, ".xpt": statistical,
    ".sas7bdat": sas,
    ".xlsx": workbook, ".xlsm": workbook, ".xlsb": workbook, ".xls": workbook, ".ods": workbook,
    ".jsonl": json_lines, ".ndjson.gz": json_lines,
    ".feather": arrow, ".arrow": arrow,
}  # fmt: skip


@pytest.mark.parametrize("ending", WRITERS)
def test_every_value_has_the_code_that_it_has_in_parquet(tmp_path: Path, ending: str) -> None:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    expected = read_codes(tmp_path / "t.parquet", SCHEMA)
    path = WRITERS[ending](tmp_path / f"t{ending}")
    found = read_codes(path, SCHEMA)
    for name in SCHEMA.domain:
        assert found.column(name).tolist() == expected.column(name).tolist(), name
    assert read_table(path, SCHEMA).bounded(1).rows() == 3
    assert set(open_file(path).columns) == set(ROWS)


def test_portable_files_of_spss_are_read_and_a_cut_one_is_refused(tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    rows = {"TOWN": ["York", "Hull"] * 40, "AGE": list(range(80))}  # it has names in capitals only
    pyreadstat.write_por(pandas.DataFrame(rows), str(tmp_path / "t.por"))
    assert read_frame(tmp_path / "t.por").to_pydict() == rows
    content = (tmp_path / "t.por").read_bytes()
    (tmp_path / "t.por").write_bytes(content[: len(content) * 2 // 3])
    with pytest.raises(DataError, match="damaged"):
        read_frame(tmp_path / "t.por")


def test_stata_days_are_dates_in_every_display_and_periods_are_numbers_with_a_note(
    tmp_path: Path,
) -> None:
    pyreadstat = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    day, moment = date(1960, 4, 10), datetime(1960, 1, 1, 0, 1)
    expected: dict[str, tuple[str, Any]] = {
        "plain": ("%td", day), "shown": ("%tdDD/NN/CCYY", day), "left": ("%-td", day),
        "at": ("%tcDDmonCCYY_HH:MM:SS", moment), "leap": ("%tC", moment),
        "week": ("%tw", 100), "month": ("%tmCCYY-NN", 100), "quarter": ("%tq", 100), "half": ("%th", 100),
        "trading": ("%tbnyse", 100), "year": ("%ty", 100), "number": ("%9.0g", 100),
    }  # fmt: skip
    stored = {n: [60_000.0 if v is moment else 100.0] * 30 for n, (_, v) in expected.items()}
    numbers = pandas.DataFrame({n: [*v[1:], v[0] + 60_000] for n, v in stored.items()})
    forms = {name: form for name, (form, _) in expected.items()}
    pyreadstat.write_dta(numbers, str(tmp_path / "t.dta"), variable_format=forms)
    found = read_frame(tmp_path / "t.dta").slice(0, 1).to_pylist()
    assert found == [{name: value for name, (_, value) in expected.items()}]
    noted = {"week", "month", "quarter", "half", "trading"}
    for remarks in (
        draft_schema(tmp_path / "t.dta").remarks,
        read_code_book(tmp_path / "t.dta").remarks,
    ):
        assert {n for n, remark in remarks.items() if "as Stata stores it" in remark} == noted
    assert "months since January 1960" in remarks["month"]
    kinds = {c.name: c.kind for c in read_code_book(tmp_path / "t.dta").columns}
    assert (kinds["shown"], kinds["at"], kinds["month"]) == ("date", "timestamp", "integer")


@pytest.mark.parametrize("ending", WRITERS)
def test_rows_pass_the_edges_of_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    rows = {"age": list(range(23)), "town": [f"t{i}" for i in range(23)]}
    path = WRITERS[ending](tmp_path / f"t{ending}", rows)
    for size in (1, 5, 22, 23, 24):
        monkeypatch.setattr(formats.FormattedFile, "chunk_rows", size)
        found = read_frame(path)
        assert found.to_pydict() == rows, size
        assert found.schema.field("age").type == pa.int64()


@pytest.mark.parametrize("ending", [".dta", ".sav", ".zsav", ".xpt"])
def test_rows_that_the_library_loses_are_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    path = statistical(tmp_path / f"t{ending}")
    if ending == ".xpt":  # states no number of rows, and its records have 80 bytes
        path.write_bytes(path.read_bytes()[:-7])
    else:
        read = formats.read_function

        def losing(file: Path) -> Any:
            whole = read(file)

            def call(**options: Any) -> Any:
                found, meta = whole(**options)
                return {n: v[:-1] for n, v in found.items()}, meta

            return call

        monkeypatch.setattr(formats, "read_function", losing)
    with pytest.raises(DataError, match="damaged"):
        read_frame(path)


@pytest.mark.parametrize("ending", WRITERS)
def test_a_table_larger_than_memory_counts_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    path = WRITERS[ending](tmp_path / f"t{ending}")
    memory = read_table(path, SCHEMA)
    monkeypatch.setattr(MemoryTable, "max_code_bytes", 0)
    monkeypatch.setattr(formats.FormattedFile, "chunk_rows", 2)
    table = read_table(path, SCHEMA)
    assert isinstance(table, BatchTable)
    cliques = [("town", "age"), ("grade", "born"), ("seen", "pay", "ill")]
    for one, other in ((table, memory), (table.bounded(9), memory.bounded(9))):
        assert one.rows() == other.rows()
        mine, theirs = one.count(cliques), other.count(cliques)
        assert all((mine[c] == theirs[c]).all() for c in mine)


@pytest.mark.parametrize("ending", [e for e in WRITERS if "json" not in e])
def test_a_file_without_rows_has_columns(tmp_path: Path, ending: str) -> None:
    found = read_frame(WRITERS[ending](tmp_path / f"t{ending}", {"town": [], "age": []}))
    assert (found.column_names, found.num_rows) == (["town", "age"], 0)


def nothing_behind(error: BaseException) -> bool:
    return error.__cause__ is None and error.__context__ is None


def whole(path: Path) -> list[pa.RecordBatch]:
    file = open_file(path)
    return list(file.batches(file.columns))


def refusal(read: Callable[[Path], Any], path: Path) -> MargraveError | None:
    try:
        read(path)
    except MargraveError as error:
        return error
    return None


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda b: b[: len(b) * 2 // 3],
    "text": lambda b: f"who,town\n{SECRET},York\n".encode(),
    "empty": lambda b: b"",
    "a changed middle": lambda b: b[: len(b) // 3] + b"\xff" * 200 + b[len(b) // 3 + 200 :],
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("ending", WRITERS)
def test_a_damaged_file_is_one_plain_sentence_without_a_cell(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], ending: str, damage: str
) -> None:
    path = WRITERS[ending](tmp_path / f"t{ending}", {**ROWS, "town": [SECRET] * 5})
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    for read in (whole, read_frame, draft_schema, lambda p: read_table(p, SCHEMA)):
        error = refusal(read, path)
        if error is None:  # of formats without checksums
            assert damage == "a changed middle"
            continue
        assert isinstance(error, DataError)
        assert SECRET not in str(error)
        assert nothing_behind(error)
    assert SECRET not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("ending", "program", "name"),
    [(".sav", "SPSS", ".dta"), (".zsav", "SPSS", ".csv"), (".dta", "Stata", ".sav"), (".xpt", "SAS", ".dta")],
)  # fmt: skip
def test_a_file_under_the_name_of_another_program_says_what_it_is(
    tmp_path: Path, ending: str, program: str, name: str
) -> None:
    path = WRITERS[ending](tmp_path / f"t{ending}", {**ROWS, "town": [SECRET] * 5})
    wrong = path.rename(tmp_path / f"t{name}")
    with pytest.raises(DataError, match=rf"is a file of {program}, which.*Name it t\{ending}\.$"):
        read_frame(wrong)


def test_a_sheet_is_named_where_there_are_several(tmp_path: Path) -> None:
    pytest.importorskip("fastexcel", reason="fastexcel is not installed")
    one = [["town", "age"], ["York", 7]]
    sheets = {"May 2020": one, "June": [["town", "age"], ["Hull", 8], [SECRET, 1]]}
    for ending in (".xlsx", ".xlsb", ".ods"):
        path = write_workbook(tmp_path / f"t{ending}", sheets)
        with pytest.raises(
            DataError, match=rf"has several sheets. Name the one.*t{ending}\?sheet=NAME"
        ) as raised:
            read_frame(path)
        assert SECRET not in str(raised.value)
        assert nothing_behind(raised.value)
        assert read_frame(f"{path}?sheet=May%202020").to_pylist() == [{"town": "York", "age": 7}]
        assert read_frame(f"{path}?sheet=June").num_rows == 2
        with pytest.raises(DataError, match="has no sheet 'July'"):
            read_frame(f"{path}?sheet=July")
        with pytest.raises(DataError, match=r"has no sheet 'june'\. Did you mean 'June'"):
            read_frame(f"{path}?sheet=june")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "no-such.csv", "named.xlsx"])
def test_only_a_workbook_has_sheets(tmp_path: Path, name: str) -> None:
    table = pa.table({"town": ["York"]})
    (tmp_path / "t.csv").write_text("town\nYork\n")
    for parquet in ("t.parquet", "named.xlsx"):
        pq.write_table(table, tmp_path / parquet)
    with pytest.raises(DataError, match=f"{name} is not a workbook, so it has no sheets. Leave"):
        read_frame(f"{tmp_path / name}?sheet=May")


@pytest.mark.parametrize(
    "content",
    [
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + SECRET.encode(),  # also one with a password
        b"PK\x03\x04\x14\x00\x06\x00" + b"\0" * 22 + b"[Content_Types].xml" + SECRET.encode(),
        b"PK\x03\x04" + SECRET.encode(),
    ],
)
def test_a_damaged_workbook_is_one_sentence_under_any_name(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("fastexcel", reason="fastexcel is not installed")
    for name in (
        "t.xls",
        "t.XLSX",
        "t.xlsm",
        "t.ods",
        "t.xlsb",
        *(["t.csv"] if len(content) > 20 else []),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(
            DataError, match=rf"{name} cannot be read: it is damaged.*password"
        ) as raised:
            read_frame(tmp_path / name)
        assert SECRET not in str(raised.value)
        assert nothing_behind(raised.value)


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (["town", None], "Column 2 of .* has no name"),
        (["Town", "town"], "Columns 1 and 2 of .* the same name"),
        ([], "header"),
    ],
)
def test_a_header_of_a_sheet_is_read_strictly(tmp_path: Path, head: list[Any], says: str) -> None:
    pytest.importorskip("fastexcel", reason="fastexcel is not installed")
    rows = [head, ["York", 7]] if head else []
    with pytest.raises(DataError, match=says):
        read_frame(write_workbook(tmp_path / "t.xlsx", {"One": rows}))


ODD: list[Any] = [
    3, 2.5, 0.1 + 0.2, 1 / 3, 1e-7, 2**53 - 1, 1e20, True, "true", "York", "007", "1.50", "-0",
    "13.07.1901", datetime(2020, 1, 2, 3, 4, 5, 678000), datetime(1901, 7, 13), None,
]  # fmt: skip


@pytest.mark.parametrize(
    "ending",
    [
        ".xlsx",
        ".jsonl",
        *(pytest.param(e, marks=pytest.mark.slow) for e in (".xlsb", ".xls", ".ods")),
    ],
)
def test_what_a_cell_becomes_depends_on_no_other(tmp_path: Path, ending: str) -> None:
    """Each value alone, beside each other value, and after three thousand of another type."""
    values = [v for v in ODD if not (ending == ".jsonl" and isinstance(v, date))]
    texts = ["3", "2.5", "true", "York", "007", "1.50", "2020-01-02 03:04:05.678"]

    def codes(columns: list[list[Any]]) -> list[list[list[int]]]:
        names = [f"c{i}" for i in range(len(columns))]
        path = WRITERS[ending](tmp_path / f"t{ending}", dict(zip(names, columns, strict=True)))
        if ending == ".jsonl":  # with null, so that no column is absent
            rows = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
            path.write_text("\n".join(map(json.dumps, rows)))
        frame = read_frame(path)
        kinds = [
            lambda n: Categorical(n, texts, other=True, missing=True),
            lambda n: Real(n, 0.0, 1.0, edges=[0.3, 1 / 3], missing=True),
            lambda n: Integer(n, 0, 2**53 - 1, edges=[3, 4, 2**53 - 2], missing=True),
            lambda n: Date(n, date(1900, 1, 1), date(2020, 12, 31), bins=99, format="%d.%m.%Y", missing=True),
            lambda n: Boolean(n, missing=True),
        ]  # fmt: skip
        schemas = [Schema([kind(n) for n in names]) for kind in kinds]
        encoded = [schema.read(frame)[0] for schema in schemas]
        return [[e.column(n).tolist() for e in encoded] for n in names]

    alone = [[kind[0] for kind in column] for column in codes([[v] for v in values])]
    pairs = [(i, j) for i in range(len(values)) for j in range(len(values))]
    for (i, j), found in zip(pairs, codes([[values[i], values[j]] for i, j in pairs]), strict=True):
        assert found == [list(two) for two in zip(alone[i], alone[j], strict=True)], values[i]
    firsts = [7, "text", 2.5, True, *([] if ending == ".jsonl" else [date(2020, 1, 1)])]
    # A last row without a cell is not a row of a workbook.
    for found in codes([[first] * 3000 + values + [1] for first in firsts]):
        assert [kind[3000:-1] for kind in found] == [
            list(kind) for kind in zip(*alone, strict=True)
        ]
    exact = pa.table({"c0": pa.array([v for v in values if isinstance(v, float)])})
    schema = Schema([Real("c0", 0.0, 1.0, edges=[0.3, 1 / 3], missing=True)])
    floats = [a[1] for a, v in zip(alone, values, strict=True) if isinstance(v, float)]
    assert schema.encode(exact).column("c0").tolist() == floats


@pytest.mark.parametrize(
    "line",
    [f'{{"a": "{SECRET}"', f'["{SECRET}"]', f'{{"a": 1, "a": "{SECRET}"}}', "\udcff", "[" * 100_000],
)  # fmt: skip
def test_a_line_that_is_not_an_object_is_named_by_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(f'{{"a": 1}}\n\n{line}\n', encoding="utf-8", errors="surrogateescape")
    with pytest.raises(DataError, match="line 3 is not a JSON object") as raised:
        read_frame(path)
    assert SECRET not in str(raised.value)
    assert nothing_behind(raised.value)


def test_numbers_of_json_are_exact(tmp_path: Path) -> None:
    values: list[Any] = [1, 2**53 + 1, 10**30, 1.0, "1.0", True, [1], None]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps({"a": v, "b": v}) for v in values))
    found = read_frame(path)["a"].to_pylist()
    assert found[:6] == ["1", str(2**53 + 1), str(10**30), "1", "1.0", "true"]
    assert found[7] is None


@pytest.mark.parametrize(("ending", "module"), [(".sav", "pyreadstat"), (".xlsx", "fastexcel")])
def test_a_missing_library_is_named_before_anything_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, module: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    (tmp_path / f"t{ending}").write_bytes(SECRET.encode())
    with pytest.raises(
        InputError, match=r"library that is not installed.*margrave\[formats\]"
    ) as raised:
        read_table(tmp_path / f"t{ending}", SCHEMA)
    assert nothing_behind(raised.value)


@pytest.mark.parametrize("ending", [".sav", ".xlsx", ".jsonl", ".feather"])
def test_every_command_takes_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = {n: v * 20 for n, v in ROWS.items() if n in ("town", "age", "who")}
    table = str(WRITERS[ending](Path(f"t{ending}"), rows))
    Schema([SCHEMA.column(n) for n in ("town", "age")], person="who").save("schema.toml")
    assert run(["schema", "draft", table]) == 0
    said = capsys.readouterr()
    assert 'name = "age"' in said.out or "[columns.age]" in said.out
    assert ("margrave schema import t.sav" in said.err) is (ending == ".sav")
    assert run(["schema", "check", table, "--schema", "schema.toml"]) == 0
    budget = ["--epsilon", "9", "--delta", "1e-9", "--unit", "add-remove-person:9"]
    made = ["-o", "s.csv", "-n", "50", "--mechanism", "independent"]
    assert run(["synthesize", table, "--schema", "schema.toml", *budget, *made]) == 0
    assert run(["evaluate", table, "s.csv", "--schema", "schema.toml"]) == 0
    assert check_table(table, Schema.load("schema.toml")).passed


def test_files_of_a_folder_may_have_several_formats(tmp_path: Path) -> None:
    json_lines(tmp_path / "a.jsonl", {"town": ["York"], "age": [1]})
    arrow(tmp_path / "b.feather", {"town": ["Hull"], "age": [2]})
    assert read_frame(tmp_path).to_pylist() == [
        {"town": "York", "age": 1},
        {"town": "Hull", "age": 2},
    ]
    shutil.copy(tmp_path / "b.feather", tmp_path / "c.csv")  # by its beginning
    assert read_frame(tmp_path / "c.csv").num_rows == 1


@pytest.mark.parametrize("ending", [".xlsx", ".xlsb", ".ods"])
def test_a_table_may_begin_anywhere_on_its_sheet(tmp_path: Path, ending: str) -> None:
    pytest.importorskip("fastexcel", reason="fastexcel is not installed")
    rows = [[], [], [None, "town", "age"], [None, "York", 7], [], [None, "Hull", 8]]
    found = read_frame(write_workbook(tmp_path / f"t{ending}", {"One": rows}))
    assert found.to_pydict() == {"town": ["York", None, "Hull"], "age": [7, None, 8]}
