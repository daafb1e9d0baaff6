"""Reading tables: every bad file is one clear error that shows no row; a table in memory shows nothing."""

from __future__ import annotations

import copy
import csv
import gzip
import os
import pickle
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import margrave
from margrave.data import MemoryTable, read_frame, read_table
from margrave.data.loading import columns_in
from margrave.data.persons import Persons
from margrave.domain import Codes, Domain
from margrave.errors import DataError, InputError, PersonWarning
from margrave.profiling import check_table, draft_schema
from margrave.schema import Categorical, Integer, Schema
from margrave.schema.parsing import ODD

SCHEMA = Schema(
    [Categorical("town", ["York", "Hull"], missing=True), Integer("age", 0, 9, missing=True)]
)
SECRET = "Secretville"


def written(folder: Path, content: bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def counts(table: MemoryTable) -> list[list[int]]:
    return table.count([("town", "age")])["town", "age"].tolist()  # type: ignore[no-any-return]


EXPECTED = np.zeros((3, 11), dtype=int)
EXPECTED[0, 1] = EXPECTED[1, 10] = EXPECTED[2, 3] = 1


def nothing_behind(error: BaseException) -> bool:
    """No engine's own error, which may quote rows, hangs on ours."""
    return error.__cause__ is None and error.__context__ is None


CLEAN = {
    "plain": b"town,age\nYork,1\nHull,\n,3\n",
    "no last line end": b"town,age\nYork,1\nHull,\n,3",
    "windows": b"town,age\r\nYork,1\r\nHull,\r\n,3\r\n",
    "byte order mark": b"\xef\xbb\xbftown,age\nYork,1\nHull,\n,3\n",
    "columns exchanged": b"age,town\n1,York\n,Hull\n3,\n",
    "semicolons": b"town;age\nYork;1\nHull;\n;3\n",
    "tabs": b"town\tage\nYork\t1\nHull\t\n\t3\n",
    "quotes": b'"town","age"\n"York","1"\n"Hull",""\n"","3.0"\n',
    "gzip": gzip.compress(b"town,age\nYork,1\nHull,\n,3\n"),
}


@pytest.mark.parametrize("form", CLEAN)
def test_clean_files_are_read(tmp_path: Path, form: str) -> None:
    path = written(tmp_path, CLEAN[form], "t.csv.gz" if form == "gzip" else "t.csv")
    table = read_table(path, SCHEMA)
    assert counts(table) == EXPECTED.tolist()
    assert counts(read_table(str(path), SCHEMA)) == EXPECTED.tolist()
    assert table.rows() == 3
    assert table.domain == SCHEMA.domain


@pytest.mark.parametrize("header", ["a&amp;,&amp;", "a,b;", "|a|,b", '";a;",b'])
def test_a_name_of_a_column_may_end_in_another_separator(tmp_path: Path, header: str) -> None:
    names = next(csv.reader([header]))
    schema = Schema((Categorical(names[0], ["York"]), Integer(names[1], 0, 3)))
    path = written(tmp_path, f"{header}\nYork,1\nYork,2\n".encode())
    assert read_table(path, schema).rows() == 2
    assert check_table(path, schema).rows == 2
    assert [*columns_in(path)] == names


def test_a_header_alone_is_an_empty_table(tmp_path: Path) -> None:
    for content in (b"town,age\n", b"town,age"):
        table = read_table(written(tmp_path, content), SCHEMA)
        assert table.rows() == 0
        assert table.count([("town",)])["town",].tolist() == [0, 0, 0]


def test_frames_and_parquet_count_alike(tmp_path: Path) -> None:
    frame = pa.table({"town": ["York", "Hull", None], "age": [1, None, 3]})
    pq.write_table(frame, tmp_path / "t.parquet")
    pq.write_table(frame, tmp_path / "odd [name] *?.pq")
    connection = duckdb.connect()
    sources = [
        frame,
        frame.to_pandas(),
        connection.from_arrow(frame),
        tmp_path / "t.parquet",
        tmp_path / "odd [name] *?.pq",
    ]
    for source in sources:
        assert counts(read_table(source, SCHEMA)) == EXPECTED.tolist()


def test_many_batches_are_one_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ages = rng.integers(0, 10, 300_000)
    frame = pa.table({"town": np.where(ages > 4, "York", "Hull"), "age": ages})
    pq.write_table(frame, tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", SCHEMA)
    assert table.count([("age",)])["age",][:10].tolist() == np.bincount(ages).tolist()
    assert table.rows() == 300_000


BAD = {
    "a short row": (
        b"town,age\nYork,1\n" + SECRET.encode() + b"\n",
        "line 3 does not have as many fields",
    ),
    "a long row": (b"town,age\nYork,1,2\n", "line 2 does not have as many fields.*quoted"),
    "rows with another separator": (
        b"town,age\nYork;1\nHull;2\n",
        "line 2 does not.*Lines 2 to 3 have 1 field each, and the header 2. Do rows and header use diff",
    ),
    "decimal commas": (
        b"town,age\nYork,1,5\nHull,2,5\n",
        "Lines 2 to 3 have 3 fields each, and the header 2.*a decimal comma",
    ),
    "a footnote": (
        b"town,age\nYork,1\nHull,2\n" + SECRET.encode() + b"\n\n",
        "line 4 does not.*It is the last line and has 1 of 2 fields: delete it if it is a total",
    ),
    "Latin-1": (
        b"town,age\nYork,1\nCaf\xe9 " + SECRET.encode() + b",2\n",
        r"not text in UTF-8 \(line 3\).*Excel",
    ),
    "Latin-1 header": (b"town,age\xe9\nYork,1\n", r"not text in UTF-8 \(line 1\)"),
    "Windows": ("town,age\nPrivat – 5€,2\n".encode("cp1252"), "iconv -f WINDOWS-1252"),
    "UTF-16": (
        "town,age\nYork,1\n".encode("utf-16"),
        "in UTF-16.*Save As, CSV UTF-8.*iconv -f UTF-16",
    ),
    "UTF-16, big end first": (b"\xfe\xff" + "town,age\n".encode("utf-16-be"), "in UTF-16"),
    "an open quote": (
        b'town,age\nYork,1\n"' + SECRET.encode() + b",2\n",
        "quote opened in line 3 is never closed",
    ),
    "mixed line ends": (
        b"town,age\nYork,1\r\nHull,2\n" + SECRET.encode() + b",3\r\n",
        "line 2 is not clean CSV",
    ),
    "mixed line ends, quotes": (
        b'town,age\n"Yo\r\nrk",1\nHull,2\r\n',
        "line 4 is not clean CSV.*one kind of line end",
    ),
    "a lone carriage return": (b"town,age\nYork,1\rHull,2\n", "line 2 is not clean CSV"),
    "nothing": (b"", "has no header"),
    "a line break in a name": (
        b'"Weight\n(kg)",age\n80,1\n',
        "header .* cannot be read.*without a line break in a name",
    ),
    "a blank header": (b"\n\n", "has no header"),
    "a nameless column": (b"town,,age\nYork,x,1\n", "Column 2 of .* has no name"),
    "a column twice": (b"town,age,town\nYork,1,York\n", "Columns 1 and 3 of .* have the same name"),
    "no header": (SECRET.encode() + b",1\nYork,2\n", "No column of the table .*is it there"),
    "no header, and a value twice": (
        (SECRET + "," + SECRET + "\n").encode(),
        "Columns 1 and 2 of .* the same name",
    ),
    "a zip archive": (b"PK\x03\x04rest", "zip archive"),
    "broken gzip": (b"\x1f\x8b" + b"rest", "damaged"),
    "broken Parquet": (b"PAR1" + SECRET.encode(), "damaged"),
    "a column too few": (b"town\nYork\n", 'The table has no column "age"'),
    "a column too many": (
        b"town,age,note\nYork,1,x\n",
        r'no column "note", which the.*ignore = \["note"\]',
    ),
    "a column exchanged for another": (
        b"town,years\nYork,1\n",
        'no column "age".*no column "years"',
    ),
    "a column under a name that is nearly its own": (
        b"town,aged,note\nYork,1,x\n",
        r"For 'age': Did you mean 'aged'\? Make the two agree.*ignore = \[\"note\"\]",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_one_clear_error(tmp_path: Path, case: str) -> None:
    content, told = BAD[case]
    with pytest.raises(DataError, match=f"(?s){told}") as raised:
        read_table(written(tmp_path, content), SCHEMA)
    assert SECRET not in str(raised.value)
    assert nothing_behind(raised.value)


def test_a_bad_row_far_down_is_found(tmp_path: Path) -> None:
    content = b"town,age\n" + b"York,1\n" * 400_000 + SECRET.encode() + b"\nYork,1\n"
    with pytest.raises(DataError, match="line 400002 does not have as many fields") as raised:
        read_table(written(tmp_path, content), SCHEMA)
    assert SECRET not in str(raised.value)
    assert nothing_behind(raised.value)


def test_an_engine_that_fails_shows_nothing() -> None:
    relation = duckdb.connect().sql(
        f"SELECT 'York' AS town, CAST('{SECRET}' || range AS INTEGER) AS age FROM range(3)"
    )
    with pytest.raises(DataError, match="could not be read by its engine") as raised:
        read_table(relation, SCHEMA)
    assert SECRET not in str(raised.value)
    assert nothing_behind(raised.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", str(tmp_path / "none.parquet")):
        with pytest.raises(DataError, match="cannot be read: No such file"):
            read_table(path, SCHEMA)
    with pytest.raises(DataError, match="is a folder without files"):
        read_table(tmp_path, SCHEMA)
    with pytest.raises(DataError, match="not a path"):
        read_table("a\0b", SCHEMA)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="is a pipe or a device"):
        read_table(tmp_path / "pipe.csv", SCHEMA)
    with pytest.raises(DataError, match=r"not a table.* int.*a path to a file"):
        read_table(3, SCHEMA)


def test_a_column_twice_in_a_frame_is_an_error() -> None:
    for twice in (
        pa.table([["York"], ["Hull"]], names=["town"] * 2),
        pd.DataFrame([[1, 2]], columns=["town"] * 2),
    ):
        with pytest.raises(
            DataError, match="not a table with distinct column names: columns 1 and 2 have the same"
        ):
            read_table(twice, SCHEMA)


def test_a_column_twice_in_a_query_or_a_parquet_file_is_an_error_too(tmp_path: Path) -> None:
    """DuckDB gives the first of the two for both, and calls the second of a file by a name that is not there."""
    query = duckdb.sql("SELECT 'York' AS town, 1 AS age, 'Hull' AS town")
    assert query.columns == ["town", "age", "town"]
    for read in (
        lambda: read_table(query, SCHEMA),
        lambda: check_table(query, SCHEMA),
        lambda: SCHEMA.encode(query),
    ):
        with pytest.raises(DataError, match="columns 1 and 3 have the same"):
            read()
    with pytest.raises(DataError, match="columns 1 and 3 have the same"):
        draft_schema(query)
    nested = {"s": pa.array([{"age": 1, "town": 2}]), "town": ["York"], "age": [1]}
    pq.write_table(
        pa.table(nested), tmp_path / "nested.parquet"
    )  # fields within a column are no columns
    assert read_table(tmp_path / "nested.parquet", Schema(SCHEMA.columns, ignore=["s"])).rows() == 1
    three = pa.table([["York"], [1], ["Hull"], [{"x": 1}]], names=["town", "age", "town", "town_1"])
    pq.write_table(three, tmp_path / "t.parquet")
    with pytest.raises(
        DataError,
        match=r"Columns 1 and 3 of .*parquet have the same name\. Rename one of the two.$",
    ):
        read_table(tmp_path / "t.parquet", SCHEMA)


def test_columns_that_an_engine_takes_for_one_are_told() -> None:
    query = duckdb.sql("SELECT 1 AS \"AGE\", 'York' AS town, 2 AS age")
    with pytest.raises(DataError, match="columns 1 and 3 have the same, but for case") as raised:
        read_table(query, Schema(SCHEMA.columns, ignore=["AGE"]))
    assert nothing_behind(raised.value)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda t: t.to_reader(), r"RecordBatchReader.*reader\.read_all\(\)"),
        (lambda t: t.to_batches()[0], r"RecordBatch\..*from_batches"),
        (lambda t: pyarrow.dataset.dataset(t), r"StreamSource\(lambda: dataset"),
        (lambda t: duckdb.connect(), r'connection\.table\("visits"\)'),
    ],
)
def test_what_holds_a_table_says_how_to_get_it(make: Any, told: str) -> None:
    with pytest.raises(DataError, match=told):
        read_table(make(pa.table({"town": ["York"], "age": [1]})), SCHEMA)


def test_databases_say_how_to_get_a_table(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 'York' AS town, 1 AS age")
    with pytest.raises(DataError, match=r"DuckDB database.*duckdb:.*t\.duckdb\?table=NAME"):
        read_table(tmp_path / "t.duckdb", SCHEMA)
    with duckdb.connect(str(tmp_path / "t.duckdb"), read_only=True) as connection:
        assert read_table(connection.table("visits"), SCHEMA).rows() == 1
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as other:
        other.execute("CREATE TABLE visits (town TEXT, age INTEGER)")
        other.commit()
    with pytest.raises(DataError, match=r"SQLite database.*COPY \(SELECT"):
        read_table(tmp_path / "t.sqlite", SCHEMA)
    ducks = Schema([Integer("animals", 0, 9), Integer("DUCK", 0, 9)])
    assert read_table(written(tmp_path, b"animals,DUCK\n1,2\n"), ducks).rows() == 1


def test_a_frame_with_other_columns_is_an_error() -> None:
    with pytest.raises(DataError, match=r'no column "age", which the schema names.*no column "b"'):
        read_table(pa.table({"town": ["York"], "b": [1]}), SCHEMA)
    ignoring = Schema(SCHEMA.columns, ignore=["b", "not there"])
    assert read_table(pa.table({"town": ["York"], "age": [3], "b": [1]}), ignoring).rows() == 1


def test_policies_are_checked_while_reading(tmp_path: Path) -> None:
    strict = Schema([Categorical("town", ["York", "Hull"]), Integer("age", 0, 9, missing=True)])
    path = written(tmp_path, f"town,age\nYork,1\n{SECRET},2\n{SECRET},77777\n".encode())
    with pytest.raises(
        DataError, match="'town': 2 values outside the schema, and its policy is 'refuse'"
    ) as raised:
        read_table(path, strict)
    assert SECRET not in str(raised.value)
    found = check_table(path, strict)
    assert (found.rows, [c.outside for c in found.columns]) == (3, [2, 1])
    assert check_table(path, SCHEMA).passed
    assert counts(read_table(path, SCHEMA))[2][9] == 1


# --- persons ----------------------------------------------------------------------------------------------------------

VISITS = Schema([Integer("age", 0, 9)], person="who")


def visits(per_person: list[int], seed: int | None = None) -> pa.Table:
    """Person i has per_person[i] rows, with the ages 0, 1, …."""
    who = np.repeat(1 + np.arange(len(per_person)), per_person)
    age = np.concatenate([np.arange(n) for n in per_person])
    order = (
        np.arange(len(who)) if seed is None else np.random.default_rng(seed).permutation(len(who))
    )
    return pa.table({"who": who[order], "age": age[order]})


def test_bounding_keeps_at_most_k_rows_of_each(tmp_path: Path) -> None:
    frame = visits([3, 1, 5, 2])
    pq.write_table(frame, tmp_path / "t.parquet")
    for source in (frame, tmp_path / "t.parquet", visits([3, 1, 5, 2], seed=3)):
        table = read_table(source, VISITS)
        assert [table.bounded(k).rows() for k in (1, 2, 3, 9)] == [4, 7, 9, 11]
        assert [table.bounded(2).bounded(1).rows(), table.rows()] == [4, 11]
    assert read_table(visits([1]).slice(0, 0), VISITS).bounded(1).rows() == 0


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_each_row_of_a_person_is_as_likely_to_stay(seed: int | None) -> None:
    table = read_table(visits([5, 1, 5], seed), VISITS)
    kept = sum(table.bounded(2).count([("age",)])["age",] for _ in range(2000))
    # Each of 5 rows stays with probability 2/5, twice 2000 times, and age 0 is also the single row's: 6 standard
    # deviations are 6 sqrt(2 * 2000 * 0.24) = 186, a false alarm rate below 1e-7.
    assert abs(kept[0] - 2000 - 1600) < 186
    assert (abs(kept[1:5] - 1600) < 186).all()


def test_bounding_is_not_repeatable_from_a_seed() -> None:
    table = read_table(visits([19] * 5), Schema([Integer("age", 0, 18)], person="who"))
    seen = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002 - it must make no difference
        seen.append(table.bounded(10).count([("age",)])["age",].tobytes())
    assert seen[0] != seen[1]


def test_persons_are_told_apart_by_their_text() -> None:
    frame = pa.table({"who": ["3", "3.0", " 3 ", "x"], "age": [1, 1, 1, 1]})
    with pytest.warns(PersonWarning, match="2 of the 3 identifiers"):
        assert read_table(frame, VISITS).bounded(1).rows() == 3  # "3.0" is another text
    numbers = pa.table({"who": [3.0, 3.0, 4.0], "age": [1, 1, 1]})
    assert read_table(numbers, VISITS).bounded(1).rows() == 2


def test_a_row_without_a_person_is_refused() -> None:
    frame = pa.table({"who": ["a", None, ""], "age": [1, 2, 3]})
    with pytest.raises(DataError, match="2 values missing in the column of persons"):
        read_table(frame, VISITS)
    with pytest.raises(DataError, match='no column "who"'):
        read_table(pa.table({"age": [1]}), VISITS)


def test_bounding_needs_persons() -> None:
    with pytest.raises(DataError, match="does not say whose"):
        read_table(pa.table({"town": ["York"], "age": [3]}), SCHEMA).bounded(1)
    with pytest.raises(InputError, match="at least one row"):
        read_table(visits([1]), VISITS).bounded(0)


# --- the table in memory ----------------------------------------------------------------------------------------------


def a_table() -> MemoryTable:
    schema = Schema.coded({"a": 2, "b": 300})
    return MemoryTable(
        schema, Codes.of(schema.domain, {"a": np.array([0, 1, 1]), "b": np.array([7, 255, 299])})
    )


def test_a_table_shows_nothing() -> None:
    assert repr(a_table()) == str(a_table()) == "MemoryTable(2 columns)"
    assert not hasattr(a_table(), "__dict__")


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_table_goes_nowhere(way: Any) -> None:
    with pytest.raises(TypeError, match="cannot be"):
        way(a_table())


def test_codes_that_do_not_fit_are_refused() -> None:
    schema = Schema.coded({"a": 2})
    other = Schema.coded({"b": 2})
    with pytest.raises(InputError, match="not of this schema"):
        MemoryTable(schema, Codes.of(other.domain, {"b": np.array([0])}))
    with pytest.raises(DataError, match="'a' holds codes outside 0 … 1"):
        MemoryTable(schema, Codes.of(schema.domain, {"a": np.array([2])}))
    with pytest.raises(InputError, match="one person per row"):
        MemoryTable(schema, Codes.of(schema.domain, {"a": np.array([1])}), np.array([1, 2]))


def test_counts_are_those_of_the_rows() -> None:
    found = a_table().count([("a", "b"), ("a",)])
    assert found["a",].tolist() == [1, 2]
    assert Counter(zip(*map(list, np.nonzero(found["a", "b"])), strict=True)) == Counter(
        [(0, 7), (1, 255), (1, 299)]
    )
    with pytest.raises(InputError, match="no column 'c'"):
        a_table().count([("c",)])


# --- whole files ------------------------------------------------------------------------------------------------------


def test_read_frame_gives_text_for_csv_and_types_for_parquet(tmp_path: Path) -> None:
    frame = read_frame(written(tmp_path, b"a,b\n01,2.50\n,x\n"))
    assert frame.to_pydict() == {"a": ["01", None], "b": ["2.50", "x"]}
    assert read_frame(written(tmp_path, b"a,b\n")).num_rows == 0
    typed = pa.table({"a": [1, None]})
    pq.write_table(typed, tmp_path / "t.parquet")
    assert read_frame(tmp_path / "t.parquet").to_pydict() == typed.to_pydict()


def test_drafting_from_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, b"town,age\n" + b"York,1\nHull,4\n" * 20)
    schema = draft_schema(path)
    assert not schema.draft
    assert [c.kind for c in schema.to_learn] == ["categorical", "integer"]
    assert schema == draft_schema(read_frame(path))
    assert read_table(path, schema).rows() == 40


def test_persons_by_bytes_are_told_apart_and_values_without_a_text_name_nobody() -> None:
    persons = Persons()
    numbers, nameless = persons.number([pa.array([b"\x00\x80", b"\x00\x81", b"\x00\x80", b"abc"])])
    assert (numbers.tolist(), nameless) == ([0, 1, 0, 2], 0)
    assert persons.number([pa.array(["abc", " abc "])])[0].tolist() == [2, 2]
    odd = pa.array([ODD, None])
    assert persons.number([odd])[0].tolist() == [-1, -1]


def test_views_of_bytes_are_one_person_and_things_without_a_value_none() -> None:
    """What has its address for a text would be a person of its own in every row, each with k rows."""
    views = [memoryview(b"Ann") for _ in range(5)]
    frame = pd.DataFrame({"town": ["York"] * 6, "age": [1] * 6, "who": [*views, bytearray(b"Ann")]})
    schema = replace(SCHEMA, person="who")
    assert read_table(frame, schema).bounded(1).rows() == 1
    frame["who"] = [object() for _ in range(6)]
    with pytest.raises(DataError):
        read_table(frame, schema)


def test_numbers_that_became_floats_name_nobody() -> None:
    """pandas does so to long identifiers as soon as one is missing, and Excel always."""
    schema = replace(SCHEMA, person="who")
    frame = pd.DataFrame({"town": ["York"] * 2, "age": [1] * 2, "who": [2.0**60, 2.0**60 + 1024]})
    with pytest.raises(DataError, match="missing in the column of persons"):
        read_table(frame, schema)
    frame["who"] = ["1.23457E+15", "1.23457E+15"]
    with pytest.raises(DataError, match="missing in the column of persons"):
        read_table(frame, schema)
    frame["who"] = ["4E17", "4e17"]  # codes in hexadecimal, say
    with pytest.warns(PersonWarning, match="2 of the 2 identifiers"):
        assert read_table(frame, schema).bounded(1).rows() == 2
    frame["who"] = [2**60, 2**60 + 1]
    assert read_table(frame, schema).bounded(1).rows() == 2


def test_a_query_is_run_once() -> None:
    """Run again for the persons, it would give its rows in another order, and k rows of each would be of anybody."""
    connection = duckdb.connect()
    connection.execute(
        "create table v as select case when i < 50 then 1 else i end as who, case when i < 50 then 'York' else 'Hull'"
        " end as town, i % 10 as age from range(2000) t(i)"
    )
    connection.execute("create sequence rows_read")
    relation = connection.sql(
        "select who, town, age + 0 * nextval('rows_read') as age from v order by random()"
    )
    with pytest.warns(PersonWarning, match="One person has 50 of the 2,000 rows"):
        table = read_table(relation, replace(SCHEMA, person="who")).bounded(1)
    assert table.count([("town",)])[("town",)].tolist() == [1, 1950, 0]
    assert connection.execute("select nextval('rows_read')").fetchone() == (2001,)


def test_a_run_runs_a_query_once() -> None:
    """What it asks of the custodian about bounds, it asks of files and frames alone."""
    connection = duckdb.connect()
    connection.execute("create sequence rows_read")
    query = connection.sql(
        "select 1 + (i % 8) + 0 * nextval('rows_read') as age from range(2000) t(i)"
    )
    schema, heard = Schema([Integer("age", 1, 8)]), list[str]()
    frame = pa.table({"age": [1 + i % 8 for i in range(2000)]})
    for table in (query, frame):
        margrave.synthesize(
            table,
            schema,
            epsilon=1.0,
            delta=1e-9,
            mechanism="independent",
            on_custodian=heard.append,
        )
    assert connection.execute("select nextval('rows_read')").fetchone() == (2001,)
    assert ["age" in sentence for sentence in heard] == [True]


def test_persons_are_whole_numbers() -> None:
    schema = replace(Schema.coded({"a": 2}), person="who")
    codes = Codes.of(schema.domain, {"a": np.array([0, 1])})
    with pytest.raises(InputError, match="whole numbers"):
        MemoryTable(schema, codes, np.array([np.nan, np.nan]))


@pytest.mark.parametrize("wrong", [[65536, 0], [-1, 0], [0.0, 1.0], [2, 0]])
def test_codes_that_are_none_do_not_wrap(wrong: list[float]) -> None:
    domain = Domain.of({"a": 2})
    with pytest.raises(DataError, match="'a'"):
        Codes.of(domain, {"a": np.array(wrong)})
    with pytest.raises(DataError, match="'a'"):
        Codes(domain, np.array([wrong]))


def test_line_ends_are_counted_in_packed_files_too(tmp_path: Path) -> None:
    content = gzip.compress(b"town,age\r\n" + b"York,1\r\n" * 30_000 + b"York,1\nYork,1\r\n")
    with pytest.raises(DataError, match="line 30002 is not clean CSV"):
        read_table(written(tmp_path, content, "t.csv.gz"), SCHEMA)
