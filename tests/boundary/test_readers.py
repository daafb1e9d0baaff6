"""Files are read for what is in them: no folder's name is a column, no record is lost, nothing else is opened."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import margrave
from margrave._io import is_part_of
from margrave.cli.main import run
from margrave.data import csv_records, duckdb_reader, read_codes, read_frame, read_table
from margrave.data.loading import public_codes, read_numbers, synthetic_codes
from margrave.data.readers import open_file
from margrave.errors import DataError
from margrave.profiling import check_table, draft_schema
from margrave.schema import Categorical, Integer, Schema

SCHEMA = Schema([Categorical("sex", ["F", "M"]), Integer("age", 0, 99)])
VISITS = Schema(SCHEMA.columns, person="who")
ROWS = pa.table({"sex": ["F", "M", "F", "M"], "age": [1, 2, 3, 4], "who": ["a", "b", "c", "d"]})


def visits(folder: Path, form: str, *, without: str = "") -> Path:
    """The rows in a file of this form in this folder, maybe without a column."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = ROWS.drop_columns([without]) if without else ROWS
    path = folder / f"visits.{form}"
    if form == "parquet":
        pq.write_table(rows, path)
        return path
    lines = [rows.column_names, *zip(*rows.to_pydict().values(), strict=True)]
    text = "\n".join(",".join(map(str, line)) for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if form.endswith("gz") else text.encode())
    return path


FORMS = ["csv", "csv.gz", "parquet"]


@pytest.mark.parametrize("form", FORMS)
def test_a_folder_is_no_column(tmp_path: Path, form: str) -> None:
    """Every reader: the table's own columns, below folders that are named as columns are."""
    path = visits(tmp_path / "sex=F" / "age=7" / "who=one" / "further=1", form)
    table = read_table(path, VISITS)
    assert table.count([("sex",), ("age",)])["sex",].tolist() == [2, 2]
    assert table.bounded(1).rows() == 4
    for codes in (
        read_codes(path, VISITS),
        public_codes(path, VISITS)[0],
        read_codes(path, VISITS, ["sex"]),
        synthetic_codes(visits(tmp_path / "sex=M", form, without="who"), SCHEMA),
    ):
        assert codes.column("sex").tolist() == [0, 1, 0, 1]
    assert read_numbers(path, VISITS)["age"].tolist() == [1, 2, 3, 4]
    assert open_file(path).columns == ("sex", "age", "who")
    assert read_frame(path)["sex"].to_pylist() == ["F", "M", "F", "M"]
    assert check_table(path, VISITS).persons is not None
    assert [c.name for c in draft_schema(path).columns][:2] == ["sex", "age"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("lacking", ["sex", "who"])
def test_a_folder_stands_in_for_no_column(tmp_path: Path, form: str, lacking: str) -> None:
    path = visits(tmp_path / f"{lacking}=F", form, without=lacking)
    for read in (read_table, check_table):
        with pytest.raises(DataError, match=f'no column "{lacking}"'):
            read(path, VISITS)
    assert lacking not in read_frame(path).column_names


def test_a_table_that_was_written_in_folders_lacks_their_column(tmp_path: Path) -> None:
    """As Spark and others write one: the column is in the path alone, so the file is refused, and a query is read."""
    pq.write_to_dataset(ROWS, tmp_path, partition_cols=["sex"])
    path = next((tmp_path / "sex=F").glob("*.parquet"))
    with pytest.raises(DataError, match='no column "sex"'):
        read_table(path, VISITS)
    query = duckdb.connect().sql(
        f"SELECT * FROM read_parquet('{tmp_path}/*/*.parquet', hive_partitioning = true)"
    )
    assert read_table(query, VISITS).count([("sex",)])["sex",].tolist() == [2, 2]


@pytest.mark.parametrize("form", FORMS)
def test_a_release_is_of_the_rows_and_not_of_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = visits(Path("sex=F"), form, without="who")
    SCHEMA.save("schema.toml")
    release = margrave.synthesize(path, SCHEMA, epsilon=1e4, delta=1e-9, mechanism="independent")
    assert Counter(release.sample(4, seed=1)["sex"].to_pylist()) == {"F": 2, "M": 2}
    budget = ["--epsilon", "1e4", "--delta", "1e-9", "--mechanism", "independent"]
    assert (
        run(
            [
                "synthesize",
                str(path),
                "--schema",
                "schema.toml",
                *budget,
                "-o",
                "rows.csv",
                "-n",
                "4",
            ]
        )
        == 0
    )
    assert Counter(read_frame("rows.csv")["sex"].to_pylist()) == {"F": 2, "M": 2}


def test_names_that_duckdb_gives_to_its_own_columns_are_the_files(tmp_path: Path) -> None:
    names = ["filename", "rowid", "file_row_number", "file_index"]
    (tmp_path / "t.csv").write_text(f"{','.join(names)}\na,b,c,d\n", encoding="utf-8")
    pq.write_table(
        pa.table({n: [v] for n, v in zip(names, "abcd", strict=True)}), tmp_path / "t.parquet"
    )
    for file in ("t.csv", "t.parquet"):
        assert read_frame(tmp_path / file).to_pylist() == [dict(zip(names, "abcd", strict=True))]


# --- the connection -----------------------------------------------------------------------------------------


FORBIDDEN = [
    "SELECT * FROM read_csv('{other}')",
    "SELECT * FROM read_text('{other}')",
    "SELECT * FROM read_csv('{folder}/*.csv')",
    "COPY (SELECT 1) TO '{folder}/written.csv'",
    "ATTACH '{folder}/t.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET threads = 1",
    "SET enable_external_access = true",
    "SET temp_directory = '{folder}'",
    "RESET allowed_paths",
]


@pytest.mark.parametrize("query", FORBIDDEN)
def test_the_connection_opens_one_file_and_changes_nothing(tmp_path: Path, query: str) -> None:
    for name in ("t.csv", "other.csv"):
        (tmp_path / name).write_text("a\n1\n", encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    with duckdb_reader.connected(tmp_path / "t.csv") as connection:
        assert connection.sql(
            "SELECT * FROM read_csv(?)", params=[str(tmp_path / "t.csv")]
        ).fetchall()
        with pytest.raises(duckdb.Error):
            connection.execute(
                query.format(other=tmp_path / "other.csv", folder=tmp_path)
            ).fetchall()
    assert sorted(tmp_path.iterdir()) == before


def test_what_the_connection_is_set_to(tmp_path: Path) -> None:
    wanted = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "temp_directory": "",
        "enable_progress_bar": False,
        "enable_external_access": False,
        "lock_configuration": True,
    }
    with duckdb_reader.connected(tmp_path / "t.csv") as connection:
        for name, value in wanted.items():
            row = connection.execute("SELECT current_setting(?)", [name]).fetchone()
            assert row == (value,), name


def test_only_one_module_uses_duckdb() -> None:
    source = Path(margrave.__file__).parent
    users = [
        p.name for p in source.rglob("*.py") if "\nimport duckdb\n" in p.read_text(encoding="utf-8")
    ]
    assert users == ["duckdb_reader.py"]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_too_little_memory_is_one_sentence_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(duckdb_reader.SETTINGS, "memory_limit", "1MB")
    path = tmp_path / f"t.{form}"
    rows = pa.table({"a": np.arange(300_000).astype(str), "b": np.arange(300_000).astype(str)})
    if form == "parquet":
        pq.write_table(rows, path)
    else:
        path.write_text("a,b\n" + "".join(f"{i},{i}\n" for i in range(300_000)), encoding="utf-8")
    with pytest.raises(
        DataError, match=r"needs more memory to read than there is.*smaller row groups"
    ) as raised:
        read_frame(path)
    assert raised.value.__context__ is None
    assert list(tmp_path.iterdir()) == [path]


ODD_NAMES = [
    "a b.csv",
    "it's.csv",
    'say "x", y.csv',
    "[a]*?.csv",
    "ä=ö.csv",
    "{1,2}.csv",
    "%20.csv",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_any_name_is_one_file(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "o'dd, [x] *?"
    folder.mkdir()
    (folder / "a.csv").write_text("a\nwrong\n", encoding="utf-8")
    (folder / name).write_text("a\n1\n", encoding="utf-8")
    (tmp_path / "link.csv").symlink_to(folder / name)
    monkeypatch.chdir(folder)
    for path in (
        folder / name,
        Path(name),
        folder / ".." / folder.name / name,
        tmp_path / "link.csv",
    ):
        assert read_frame(path)["a"].to_pylist() == ["1"]


# --- compressed files ---------------------------------------------------------------------------------------


def test_a_compressed_file_is_read_whatever_its_name(tmp_path: Path) -> None:
    plain = b"sex,age\nF,1\nM,2\n"
    packed = {
        "packed.csv": gzip.compress(plain),
        "two.csv": gzip.compress(plain[:12]) + gzip.compress(plain[12:]),
    }
    for name, content in {**packed, "plain.csv.gz": plain, "plain.gz": plain}.items():
        (tmp_path / name).write_bytes(content)
        assert read_table(tmp_path / name, SCHEMA).rows() == 2, name


@pytest.mark.parametrize(
    ("program", "packed"),
    [
        ("bzip2", bz2.compress(b"sex,age\nF,1\n")),
        ("xz", lzma.compress(b"sex,age\nF,1\n")),
        ("zstd", pa.compress(b"sex,age\nF,1\n", codec="zstd", asbytes=True)),
        ("lz4", pa.compress(b"sex,age\nF,1\n", codec="lz4", asbytes=True)),
    ],
)
def test_another_compression_is_named(tmp_path: Path, program: str, packed: bytes) -> None:
    (tmp_path / "t.csv").write_bytes(packed)
    with pytest.raises(DataError, match=f"compressed with {program}.*with gzip"):
        read_table(tmp_path / "t.csv", SCHEMA)


@pytest.mark.parametrize("damage", ["cut", "a wrong sum", "something behind it", "a changed byte"])
def test_a_damaged_archive_is_refused(tmp_path: Path, damage: str) -> None:
    rng = random.Random(5)
    packed = gzip.compress(
        b"sex,age\n" + b"".join(b"F,%d\n" % rng.randrange(100) for _ in range(50_000))
    )
    middle = len(packed) // 2
    content = {
        "cut": packed[:middle],
        "a wrong sum": packed[:-8] + b"\0\0\0\0" + packed[-4:],
        "something behind it": packed + b"more",
        "a changed byte": packed[:middle] + bytes([packed[middle] ^ 85]) + packed[middle + 1 :],
    }[damage]
    (tmp_path / "t.csv.gz").write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        read_table(tmp_path / "t.csv.gz", SCHEMA)


# --- every record is read -----------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> int:
    """Records of so many bytes at most, and buffers of sixteen times as many."""
    monkeypatch.setattr(duckdb_reader, "MAX_RECORD_BYTES", 64)
    return 64


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("size", [60, 70, 1000, 1040, 5000])
@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_long_record_does_not_vanish(
    tmp_path: Path, small: int, size: int, place: int, quoted: bool, end: str
) -> None:
    records = ["1,2", "3,4", "5,6"]
    records.insert(place, f'"{"x" * (size - 4)}",7' if quoted else f"{'x' * (size - 2)},7")
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b", *records]) + end, encoding="utf-8")
    if size <= small:
        assert read_frame(path).num_rows == 4
    else:
        with pytest.raises(
            DataError, match=rf"line {place + 2} begins a record longer than 64 bytes.*Parquet"
        ):
            read_frame(path)


def test_rows_that_the_engine_loses_are_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3,4\n", encoding="utf-8")
    read = duckdb_reader.batches
    monkeypatch.setattr(
        duckdb_reader, "batches", lambda *call: (b.slice(0, b.num_rows - 1) for b in read(*call))
    )
    with pytest.raises(DataError, match="not all of its records could be read"):
        read_frame(path)


def random_field(rng: random.Random, size: int) -> str:
    length = rng.choice([size // 2, size, 20 * size]) if rng.random() < 0.01 else rng.randrange(8)
    text = "".join(rng.choice("xyz1 ") for _ in range(length))
    if rng.random() < 0.3:
        pieces = [text, *rng.choices(["\n", ",", '""', "\r\n", "a"], k=rng.randrange(3))]
        rng.shuffle(pieces)
        return f'"{"".join(pieces)}"'
    return f'{text}z"y' if rng.random() < 0.05 else text


@pytest.mark.parametrize("seed", range(8))
def test_every_record_is_read_or_the_file_is_refused(tmp_path: Path, small: int, seed: int) -> None:
    """Random records across the edges of small buffers, against another reader: none is lost, none is changed."""
    rng, path, outcomes = random.Random(seed), tmp_path / "t.csv", Counter[str]()
    for _ in range(60):
        end = rng.choice(["\n", "\r\n"])
        lines = [[random_field(rng, small) for _ in range(2)] for _ in range(rng.randrange(1, 60))]
        text = end.join(["a,b", *map(",".join, lines)]) + rng.choice(["", end, end + end])
        text += rng.choice(["", "", '1,"never closed'])
        path.write_text(text, encoding="utf-8", newline="")
        try:
            found = [[v or "" for v in row.values()] for row in read_frame(path).to_pylist()]
        except DataError:
            outcomes["refused"] += 1
            continue
        assert found == [r for r in csv.reader(io.StringIO(text, newline=""), strict=True) if r][1:]
        outcomes["read"] += 1
    assert outcomes["read"] > 10 < outcomes["refused"]


def test_blank_lines_are_rows_of_a_single_column_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for text, rows in [("a,b\n\n1,2\n\n\n", 1), ("a\n\n1\n\n", 3), ("a\r\n\r\n1", 2), ("a", 0)]:
        for content in (text, "\ufeff" + text):
            path.write_text(content, encoding="utf-8", newline="")
            assert read_frame(path).num_rows == rows, repr(text)


@pytest.mark.slow
def test_a_last_record_beyond_the_engines_buffer_is_refused(tmp_path: Path) -> None:
    """As files really are read: 270 MB, of which DuckDB alone gives three rows without an error."""
    path = tmp_path / "t.csv"
    with path.open("wb") as file:
        file.write(b"a,b\n1,2\n3,4\n5,6\n")
        for _ in range(270):
            file.write(b"x" * 1_000_000)
        file.write(b",8\n")
    with pytest.raises(DataError, match="line 5 begins a record longer than 16,777,216 bytes"):
        read_frame(path)


def test_line_numbers_and_lengths_pass_the_edges_of_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'a,b\r\n1,"x\r\ny"\r\n\r\n"q""q",3\r\n4,"open\r\n5')
    found: set[Any] = set()
    for size in range(1, 40):
        monkeypatch.setattr(csv_records, "CHUNK_BYTES", size)
        found.add(csv_records.count_records(path, ",", compressed=False))
    assert found == {csv_records.Records(count=4, blanks=1, longest=10, long_line=6, unclosed=6)}


def test_a_header_of_names_in_brackets_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("[sex],[age]\nF,1\n", encoding="utf-8")
    assert open_file(path, []).columns == ("[sex]", "[age]")
    path.write_text('[["sex", "age"], ["F", 1]]\n', encoding="utf-8")
    with pytest.raises(DataError, match="is JSON"):
        open_file(path, [])


def test_a_file_that_is_named_like_a_pattern_is_one_file(tmp_path: Path) -> None:
    path = visits(tmp_path, "csv").rename(tmp_path / "*.csv")
    assert not is_part_of(tmp_path / "rows.csv", path)
    assert is_part_of(path, path)
    assert is_part_of(tmp_path / "rows.csv", tmp_path / "r*.csv")
