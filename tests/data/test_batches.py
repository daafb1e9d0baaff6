"""Tables read batch by batch: every kind of source counts as in memory, cell by cell, and is refused alike."""

from __future__ import annotations

import copy
import gzip
import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import margrave
from margrave.accounting import AddRemoveRow, Budget
from margrave.data import BatchTable, MemoryTable, StreamSource, batch_persons, read_table
from margrave.data.batch_codes import BatchFault, Reading, Totals, encode_and_tally
from margrave.data.batch_scans import Scans
from margrave.data.persons import person_names
from margrave.data.row_hash import RowKey
from margrave.data.value_counts import PointCounts
from margrave.errors import DataError, InputError, LedgerError, PersonWarning
from margrave.privacy import protect
from margrave.profiling import check_table as check_rows
from margrave.schema import (
    Categorical,
    Coded,
    Integer,
    Learn,
    Schema,
)
from margrave.schema.column import encode_each_once
from margrave.schema.constraints import Impossible
from margrave.schema.persons import PLACEHOLDERS, person_name
from margrave.testing import check_table
from tests.support.sources import CLIQUES, OPEN, SCHEMA, check_counts, check_learned, equal, visits

SECRET = "Secretville"


def parquet(table: pa.Table, folder: Path) -> Any:
    pq.write_table(table, folder / "t.parquet", row_group_size=150)
    return folder / "t.parquet"


def csv(table: pa.Table, folder: Path) -> Any:
    pyarrow.csv.write_csv(table, folder / "t.csv")
    return str(folder / "t.csv")


def packed(table: pa.Table, folder: Path) -> Any:
    Path(csv(table, folder)).rename(folder / "plain")
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "plain").read_bytes()))
    return folder / "t.csv.gz"


def whole_folder(table: pa.Table, folder: Path) -> Any:
    (folder / "parts").mkdir()
    (folder / "parts" / "_SUCCESS").touch()
    for i, start in enumerate(range(0, max(table.num_rows, 1), 120)):
        part = table.slice(start, 120)
        columns = part.column_names[:: 1 if i % 2 else -1]  # in another order
        pq.write_table(part.select(columns), folder / "parts" / f"{i}.parquet")
    return folder / "parts"


def pattern(table: pa.Table, folder: Path) -> Any:
    whole_folder(table, folder)
    (folder / "parts" / "other.txt").write_text("not of the table")
    return str(folder / "parts" / "*.parquet")


def database(table: pa.Table, folder: Path) -> Any:
    with duckdb.connect(str(folder / "t.db")) as connection:
        connection.register("given", table)
        connection.execute('CREATE TABLE "all visits" AS SELECT * FROM given')
    return f"duckdb:{folder / 't.db'}?table=all%20visits"


def query(table: pa.Table, folder: Path) -> Any:
    return duckdb.connect().from_arrow(table).filter("true")


def lazy(table: pa.Table, folder: Path) -> Any:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    return polars.from_arrow(table).lazy()


def stream(table: pa.Table, folder: Path) -> Any:
    return StreamSource(lambda: table.to_reader(130))


def pieces(table: pa.Table, folder: Path) -> Any:
    return StreamSource(lambda: table.to_batches(130) or [table.schema.empty_table()])


SOURCES: dict[str, Callable[[pa.Table, Path], Any]] = {
    make.__name__: make
    for make in (parquet, csv, packed, whole_folder, pattern, database, query, lazy, stream, pieces)
}


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """No source fits in memory, but for frames."""
    monkeypatch.setattr(MemoryTable, "max_code_bytes", 0)


def batched(table: pa.Table, schema: Schema, **known: Any) -> BatchTable:
    return BatchTable.read(
        lambda columns: iter(
            table.select(columns).to_batches(1 << 15 if table.num_rows > 1000 else 110)
        ),
        schema,
        **known,
    )


@pytest.mark.parametrize("kind", ["parquet", "stream"])
@pytest.mark.parametrize(
    ("column", "least"), [(Learn("x", "real"), 8), (Learn("x", "categorical"), 36)]
)
def test_values_to_learn_count_towards_the_memory_limit(
    kind: str, column: Learn, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.arange(260) / 4 if column.is_number else ["York" * 9] * 260
    rows, schema = pa.table({"x": values}), Schema([column])
    source = SOURCES[kind](rows, tmp_path)
    for limit, kind_of in ((2 + least, BatchTable), (2 + least + 5, MemoryTable)):
        monkeypatch.setattr(MemoryTable, "max_code_bytes", limit * 260 - 1)
        assert isinstance(read_table(source, schema), kind_of)
        assert isinstance(read_table(rows, schema), MemoryTable)


# --- Every source against the table in memory -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_counts_as_in_memory(kind: str, tmp_path: Path, large: None) -> None:
    rows = visits()
    source = SOURCES[kind](rows, tmp_path)
    check_counts(source, rows)
    check_learned(source, rows)
    checked = check_rows(source, SCHEMA)
    assert replace(checked, drafted=()) == replace(check_rows(rows, SCHEMA), drafted=())


@pytest.mark.parametrize("kind", SOURCES)
def test_a_small_source_of_every_kind_is_read_into_memory(kind: str, tmp_path: Path) -> None:
    rows = visits()
    table = read_table(SOURCES[kind](rows, tmp_path), SCHEMA)
    assert isinstance(table, MemoryTable)
    assert equal(table, read_table(rows, SCHEMA), CLIQUES)


@pytest.mark.parametrize("kind", SOURCES)
def test_no_rows_and_empty_batches_are_counted(kind: str, tmp_path: Path, large: None) -> None:
    table = read_table(SOURCES[kind](visits().slice(0, 0), tmp_path), SCHEMA)
    assert table.rows() == 0
    assert table.count([("age", "town")])["age", "town"].sum() == 0


def declared(column: Any) -> Schema:
    """The schema with another declaration of one column."""
    return replace(SCHEMA, columns=[column if c.name == column.name else c for c in SCHEMA.columns])


NOBODY = pa.array(["P1", "unknown", "0", None, ""] * 60)
STRICT = Impossible({"age": (0, 13), "grade": ["high"]}, violating="refuse")
FAULTS: dict[str, tuple[pa.Table, Schema]] = {
    "values outside": (
        visits(),
        declared(Integer("age", 0, 99, bins=7, atoms=[0, 50], outside="refuse", missing=True)),
    ),
    "missing values": (visits(), declared(Coded("code", 5))),
    "spelling": (
        visits(),
        declared(Categorical("town", ["York", "Hull"], missing=True, outside="refuse")),
    ),
    "no value is known": (visits(), declared(Categorical("town", ["a", "b"], missing=True))),
    "nobody": (visits().set_column(8, "who", NOBODY), SCHEMA),
    "a constraint": (visits(), replace(SCHEMA, constraints=[STRICT])),
}


@pytest.mark.parametrize("kind", ["csv", "pattern", "stream"])
@pytest.mark.parametrize("fault", FAULTS)
def test_policies_refuse_in_the_same_words(
    fault: str, kind: str, tmp_path: Path, large: None
) -> None:
    rows, schema = FAULTS[fault]
    with pytest.raises(DataError) as right:
        read_table(rows, schema)
    with pytest.raises(DataError) as caught:
        read_table(SOURCES[kind](rows, tmp_path), schema)
    assert str(caught.value) == str(right.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    sealed = batched(rows, schema, total=True)
    assert equal(sealed, read_table(rows, schema, total=True), CLIQUES)


def test_doubts_about_persons_reach_the_custodian_in_the_same_words() -> None:
    alike = pa.table({"who": ["P1", "p1", "P01", "Q"] * 30 + ["R"] * 60, "age": [1] * 180})
    schema = Schema([Integer("age", 0, 9)], person="who")
    found = []
    for read in (read_table, batched):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            read(alike, schema)
        found.append([str(w.message) for w in caught if w.category is PersonWarning])
    assert found[0] == found[1]
    assert len(found[0]) == 2


def test_the_checks_of_tables_pass() -> None:
    def make(schema: Schema, rows: Sequence[Sequence[int]], persons: Sequence[int]) -> BatchTable:
        columns = {
            a: pa.array([r[i] for r in rows], pa.int64()) for i, a in enumerate(schema.domain)
        }
        table = pa.table(
            {**columns, str(schema.person): pa.array([f"P{p}" for p in persons], pa.string())}
        )
        return batched(table, schema)

    check_table(make)
    check_table(make, rows_per_person=1)


def test_a_table_goes_nowhere_and_shows_nothing() -> None:
    table = batched(visits(), SCHEMA)
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="sensitive"):
            leave(table)
    assert repr(table) == "BatchTable(9 columns)"


# --- A source that changes --------------------------------------------------------------------------------------------


CHANGES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a row less": lambda t: t.slice(1),
    "a row twice": lambda t: pa.concat_tables([t.slice(1), t.slice(1, 1)]),
    "values moved between rows": lambda t: t.set_column(0, "town", t["town"].take([*range(1, t.num_rows), 0])),
    "another person": lambda t: t.set_column(8, "who", pa.array(["P1"] * t.num_rows)),
    "a column less": lambda t: t.drop_columns(["code"]),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_source_that_changes_between_scans_is_refused(change: str, large: None) -> None:
    scans = [visits()]

    def opened() -> pa.RecordBatchReader:
        return scans[0].to_reader(90)

    table = read_table(StreamSource(opened), SCHEMA)
    budget = Budget.approx(1.0, 1e-6)
    with protect(table, unit="add-remove-row", budget=budget) as private:
        scans[0] = CHANGES[change](visits())
        with pytest.raises(DataError, match=r"changed between two scans|read by its engine"):
            private.prepare([("town", "age")])
        assert private.remaining == private.rho
        scans[0] = visits().take(np.random.default_rng(0).permutation(300))
        private.prepare([("town", "age")])


def test_a_stream_that_cannot_be_opened_again_is_refused() -> None:
    reader = visits().to_reader(90)
    with pytest.raises(DataError, match=r"opened the same stream twice"):
        read_table(StreamSource(lambda: reader), SCHEMA)


def test_a_cursor_of_adbc_is_opened_anew(tmp_path: Path, large: None) -> None:
    reason = "adbc-driver-sqlite is not installed"
    dbapi: Any = pytest.importorskip("adbc_driver_sqlite.dbapi", reason=reason)
    rows = visits().select(["town", "grade", "age", "price", "who"])
    schema = replace(SCHEMA.select(["town", "grade", "age", "price"]), ignore=["who"], person=None)
    with dbapi.connect(str(tmp_path / "visits.db")) as connection:
        with connection.cursor() as cursor:
            cursor.adbc_ingest("visits", rows)

        def opened() -> Iterator[Any]:
            with connection.cursor() as cursor:
                cursor.execute("SELECT * FROM visits")
                yield cursor.fetch_record_batch()

        table = read_table(StreamSource(opened), schema)
        assert isinstance(table, BatchTable)
        assert equal(table, read_table(rows, schema), list(combinations(schema.domain, 3)))
        with connection.cursor() as cursor, pytest.raises(DataError, match=r"StreamSource\(open\)"):
            read_table(cursor, schema)


# --- The function that runs where the rows are ------------------------------------------------------------------------


def test_a_batch_that_fails_gives_a_number_and_no_word(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    batch = visits().to_batches()[0]
    reading = Reading(SCHEMA, RowKey())
    assert encode_and_tally(batch, reading, Totals()) is BatchFault.NONE
    assert encode_and_tally(batch.select(["town"]), reading, Totals()) is BatchFault.COLUMNS
    for error in (ValueError(SECRET), MemoryError()):

        def fail(self: Schema, frame: Any, **known: Any) -> Any:
            raise error  # noqa: B023

        monkeypatch.setattr(Schema, "read", fail)
        fault = encode_and_tally(batch, reading, Totals())
        assert fault is (BatchFault.MEMORY if isinstance(error, MemoryError) else BatchFault.FAILED)
        with pytest.raises(DataError) as caught:
            Scans(lambda columns: iter([batch])).run(reading)
        assert SECRET not in str(caught.value)
        assert caught.value.__cause__ is None
    assert capfd.readouterr() == ("", "")


def test_hashes_are_those_of_the_reference() -> None:
    """The first vectors of SipHash-2-4 with 128 bits, by its authors: key 00 to 0f, message 00, 01, ..."""
    key = RowKey(np.frombuffer(bytes(range(16)), dtype=np.uint64))
    texts = pa.array([bytes(range(n)).decode("ascii") for n in (0, 1)])
    assert [h.tobytes().hex() for h in key.of_texts(texts)] == [
        "a3817f04ba25a8e66df67214c7550293", "da87c1d86b99af44347659119b22fc45",
    ]  # fmt: skip
    words = np.random.default_rng(0).integers(0, 9, (3, 50)).astype(np.uint16)
    none = np.empty((0, 50), dtype=np.uint64)
    one, wide = key.of_words(words, none), key.of_words(words.astype(np.uint32), none)
    assert np.array_equal(one, wide)
    assert len(np.unique(one, axis=0)) == len(np.unique(words, axis=1).T)
    assert not np.array_equal(one, RowKey().of_words(words, none))


def test_identifiers_read_by_vector_code_are_those_read_one_by_one() -> None:
    rng = np.random.default_rng(0)
    stems = [*PLACEHOLDERS, "0", "-1", "P1", "é", "\x00?", "\x00t2020-01-01", "1e5", "1E+5", "1234567890123456.0", "_",
             "a_", "0,", "", "x\u200b", "\x85", "a\nb", "-.", "12345678901234567"]  # fmt: skip
    ends = ["", "", "", " ", "\t", "\x1c", "\xa0", "-", "+", "0", ".", ","]
    texts = [
        str(rng.choice(ends)) + stems[rng.integers(len(stems))] + str(rng.choice(ends)) for _ in range(20_000)
    ]  # fmt: skip
    for accepted in ((), ("0", "-1", "unknown")):
        right = [
            person_name(t if t.strip() else None, accepted)
            for t in texts
            if not t.startswith("\x00t")
        ]
        found = person_names(pa.array([t for t in texts if not t.startswith("\x00t")]), accepted)
        assert found.to_pylist() == right
    numbers = [0, 1, -1, 100, None, -128]
    right = [person_name(None if n is None else str(n)) for n in numbers]
    assert person_names(pa.array(numbers, pa.int8())).to_pylist() == right


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int64(), pa.uint64()]
)
def test_few_whole_numbers_are_encoded_by_a_table(kind: pa.DataType) -> None:
    low = 0 if str(kind).startswith("u") else -128
    values = pa.array([None, *np.random.default_rng(0).integers(low, 128, 3000).tolist()], kind)
    for column in (*SCHEMA.columns[:4], SCHEMA.columns[6]):
        one, other = encode_each_once(column, values), column.encode(values)
        for name in ("codes", "empty", "outside", "unreadable"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), (column.name, name)


# --- Persons ----------------------------------------------------------------------------------------------------------

PLAIN = replace(Schema.coded({"a": 3}), person="who")


def test_the_rows_that_a_person_keeps_are_uniform() -> None:
    """Persons have the rows 0, 0, 0, 1: of all pairs half are (0, 0), as in memory."""
    persons = 8_000
    rows = pa.table({"a": [0, 0, 0, 1] * persons, "who": np.repeat(np.arange(1, persons + 1), 4)})
    table = batched(rows, PLAIN)
    single = table.bounded(1).count([("a",)])["a",]
    assert abs(single[1] - persons / 4) < 5 * np.sqrt(persons * 3 / 16)
    limited = table.bounded(2)
    counts = limited.count([("a",)])["a",]
    assert counts.sum() == 2 * persons == limited.rows()
    assert abs(counts[1] - persons / 2) < 5 * np.sqrt(persons / 4)
    again = table.bounded(2).count([("a",)])["a",]
    assert again.tolist() == counts.tolist(), "the choice lasts as long as the table"
    others = [batched(rows, PLAIN).bounded(2).count([("a",)])["a",].tolist() for _ in range(4)]
    assert any(other != counts.tolist() for other in others), "each is equal once in 160 times"
    assert (
        table.bounded(2).bounded(1).count([("a",)])["a",].tolist()
        == table.bounded(1).count([("a",)])["a",].tolist()
    )


def test_the_choice_depends_on_no_order_and_on_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, rng = visits(), np.random.default_rng(0)
    orders = iter([rows.take(rng.permutation(300)) for _ in range(40)])
    table = BatchTable.read(lambda c: iter(next(orders).select(c).to_batches(90)), SCHEMA)
    first = table.bounded(2)
    right = first.count(CLIQUES)
    assert all(np.array_equal(n, right[c]) for c, n in first.count(CLIQUES).items())
    monkeypatch.setattr(batch_persons.PersonRows, "max_rows", 70)
    scans: list[int] = []
    monkeypatch.setattr(Scans, "run", lambda s, *a, run=Scans.run: (scans.append(1), run(s, *a))[1])
    parts = table.bounded(2)
    assert len(scans) > 3, "a scan for each part of the persons"
    assert all(np.array_equal(n, right[c]) for c, n in parts.count(CLIQUES).items())


def test_without_a_person_nobody_else_keeps_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one key, neighbors differ by the rows of one person, of which at most the limit count."""
    rows = visits()
    monkeypatch.setattr("secrets.token_bytes", lambda n: bytes(range(n)))
    whole = batched(rows, SCHEMA).bounded(2).count(CLIQUES)
    for person in (" P1", " P7", " P33"):
        without = rows.filter(pa.compute.not_equal(rows["who"], person))
        left = batched(without, SCHEMA).bounded(2).count(CLIQUES)
        for clique in CLIQUES:
            gone = whole[clique] - left[clique]
            assert (gone >= 0).all()
            assert gone.sum() == 2


def test_a_table_without_persons_or_with_a_limit_of_nothing() -> None:
    nobody = batched(visits().drop_columns(["who"]), replace(SCHEMA, person=None))
    with pytest.raises(DataError, match="whose its rows are"):
        nobody.bounded(1)
    with pytest.raises(InputError, match="at least one row"):
        batched(visits(), SCHEMA).bounded(0)


# --- Columns to learn -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [0, 1 << 22])
def test_raw_values_are_counted_as_in_memory(points: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PointCounts, "max_points", points)
    rows = visits()
    check_learned(batched(rows, OPEN), rows)


def test_a_run_learns_from_batches(large: None) -> None:
    rows, source = visits(), StreamSource(lambda: visits().to_reader(100))
    known: dict[str, Any] = {
        "epsilon": 1e4, "delta": 1e-3, "allow_large_delta": True, "unit": "add-remove-person:40",
        "mechanism": "independent", "seed": 0,
    }  # fmt: skip
    one, other = (margrave.synthesize(t, OPEN, **known) for t in (rows, source))
    assert {c.name for c in other.schema.columns} == {c.name for c in one.schema.columns}
    assert other.schema.column("town").labels() == one.schema.column("town").labels()
    assert other.account.preflight == one.account.preflight == "custodian"


# --- Runs -------------------------------------------------------------------------------------------------------------


def test_one_scan_serves_all_that_is_prepared(large: None) -> None:
    scans: list[int] = []

    def opened() -> Iterator[pa.RecordBatch]:
        scans.append(1)
        return iter(visits().to_batches(100))

    table = read_table(StreamSource(opened), SCHEMA)
    scans.clear()
    with protect(table, unit=AddRemoveRow(), budget=Budget.approx(1.0, 1e-6)) as private:
        private.prepare([("town",), ("age",)])
        assert scans == [], "single columns are counted when the table is read"
        private.prepare(list(combinations(SCHEMA.domain.attributes, 3)))
    assert len(scans) == 1


def test_public_records_are_compared_with_batches(large: None) -> None:
    rows = visits()
    table = batched(rows, SCHEMA)
    codes = SCHEMA.encode(rows)
    order = np.random.default_rng(0).permutation(300)
    assert table.holds(codes.take(order))
    assert not table.holds(codes.take(order[1:]))
    assert not table.holds(codes.take(np.where(order == 3, 4, order)))
    public = margrave.read_public(rows, SCHEMA, attestation="made up", columns=["town", "age"])
    with pytest.raises(DataError, match="records are the private ones"):
        margrave.synthesize(
            StreamSource(lambda: rows.to_reader()), SCHEMA, epsilon=1.0, delta=1e-6, unit="add-remove-row",
            mechanism=margrave.mechanisms.AIMPub(public=public),
        )  # fmt: skip


def test_folders_patterns_and_databases_that_are_none(tmp_path: Path) -> None:
    rows = visits()
    whole_folder(rows, tmp_path)
    parts = tmp_path / "parts"
    with pytest.raises(DataError, match="No file matches"):
        read_table(tmp_path / "*.parquet", SCHEMA)
    pq.write_table(rows.drop_columns(["age"]), parts / "9.parquet")
    with pytest.raises(DataError, match=r"9\.parquet has other columns than .*0\.parquet"):
        read_table(parts, SCHEMA)
    (parts / "sex=F").mkdir()
    with pytest.raises(DataError, match="names of folders are not read as columns"):
        read_table(parts, SCHEMA)
    place = database(rows, tmp_path)
    for wrong, words in (
        (place.replace("t.db", "none.db"), "no such file"),
        (place.replace("all%20visits", "nothing"), "has no table 'nothing'"),
        (place.replace("t.db", "parts/0.parquet"), "cannot be opened as a DuckDB database"),
    ):
        with pytest.raises(DataError, match=words) as caught:
            read_table(wrong, SCHEMA)
        assert caught.value.__cause__ is None


def test_a_run_is_resumed_on_the_same_files_alone(tmp_path: Path) -> None:
    rows = visits()
    source = pattern(rows, tmp_path)
    known: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "unit": "add-remove-person:2", "mechanism": "independent",
                             "journal": tmp_path / "run.journal"}  # fmt: skip
    first = margrave.synthesize(source, SCHEMA, **known)
    again = margrave.synthesize(tmp_path / "parts" / "?.parquet", SCHEMA, resume=True, **known)
    assert again.marginal(("age",)).values.tobytes() == first.marginal(("age",)).values.tobytes()
    pq.write_table(rows, tmp_path / "parts" / "9.parquet")
    with pytest.raises(LedgerError, match="on another table"):
        margrave.synthesize(source, SCHEMA, resume=True, **known)
