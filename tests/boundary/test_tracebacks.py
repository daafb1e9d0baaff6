"""What is raised near rows shows none of them, in tracebacks with the locals of every frame."""

from __future__ import annotations

import gzip
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import margrave
from margrave import Budget, Run
from margrave.cli.main import run
from margrave.contrib import Synthesizer
from margrave.data import (
    read_codes,
    read_frame,
    read_numbers,
    read_synthetic,
    read_table,
    synthetic_codes,
)
from margrave.data.loading import public_codes
from margrave.domain import Codes, Domain
from margrave.error_sanitizer import InternalError
from margrave.errors import DataError
from margrave.evaluation import evaluate
from margrave.profiling import check_table, draft_schema
from margrave.release.display import Display
from margrave.schema import Categorical, Impossible, Integer, Schema
from tests.support.conformance import memory_table

CANARY = "Canary-Béatrice"
NUMBER = 31415
SCHEMA = Schema(
    [
        Categorical("job", ["clerk", "nurse"], other=True),
        Integer("age", 0, 99, bins=10, missing=True),
    ],
    person="who",
)
ROWS = {
    "who": ["p1", "p2", CANARY, "p4"],
    "job": ["clerk", CANARY, "nurse", "clerk"],
    "age": ["7", str(NUMBER), "42", ""],
}


def told(error: BaseException, *, without: str) -> str:
    """All that a tool shows that captures locals, but for the frames of this file, which hold the rows themselves."""
    shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    texts = []
    for each in chained(shown):
        each.stack = traceback.StackSummary.from_list(
            [f for f in each.stack if f.filename != without]
        )
        texts.append("".join(each.format(chain=False)))
    return "\n".join([*texts, repr(error), repr(vars(error))])


def chained(shown: traceback.TracebackException | None) -> Iterator[traceback.TracebackException]:
    if shown is not None:
        yield shown
        yield from chained(shown.__cause__)
        yield from chained(shown.__context__)


def frames_behind(error: BaseException | None) -> Iterator[Any]:
    """Every frame that can be reached from an exception."""
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            yield frame
        yield from frames_behind(error.__cause__)
        error = error.__context__


def holds_rows(value: object) -> bool:
    """Whether a local is a table, an array or a list of them."""
    if isinstance(value, list | tuple):
        return any(map(holds_rows, value))
    if isinstance(value, dict):
        return any(map(holds_rows, value.values()))
    kinds = (pa.Table, pa.RecordBatch, pa.Array, pa.ChunkedArray, np.ndarray, pd.DataFrame, Codes)
    return isinstance(value, (*kinds, duckdb.DuckDBPyRelation))


def check_hidden(error: BaseException) -> None:
    text = told(error, without=__file__)
    assert CANARY not in text
    assert str(NUMBER) not in text
    assert "array(" not in text
    for frame in frames_behind(error):
        if frame.f_code.co_filename != __file__:
            assert not [name for name, value in frame.f_locals.items() if holds_rows(value)], frame


def changed(**changes: Any) -> Schema:
    columns = {c.name: c for c in SCHEMA.columns}
    columns |= {k: v for k, v in changes.items() if k in columns}
    rest = {k: v for k, v in changes.items() if k not in columns}
    return replace(SCHEMA, columns=tuple(columns.values()), **rest)


#: What is wrong with the rows, for the schema that reads them.
REFUSED: dict[str, Schema] = {
    "a value outside": changed(job=Categorical("job", ["clerk", "nurse"], outside="refuse")),
    "a number outside": changed(age=Integer("age", 0, 99, bins=10, outside="refuse", missing=True)),
    "a value that cannot be read": changed(job=Integer("job", 0, 9)),
    "a value missing": changed(age=Integer("age", 0, 99, bins=10)),
    "a row that breaks a constraint": changed(
        constraints=[Impossible({"job": ["nurse"], "age": (40, 49)}, violating="refuse")]
    ),
    "another column": replace(SCHEMA, columns=(*SCHEMA.columns, Integer("weight", 0, 9))),
    "a column too many": replace(SCHEMA, columns=SCHEMA.columns[:1]),
}


def csv_text(rows: dict[str, list[str]] = ROWS) -> str:
    return (
        "\n".join(",".join(line) for line in [list(rows), *zip(*rows.values(), strict=True)]) + "\n"
    )


def as_csv(folder: Path) -> Any:
    (folder / "t.csv").write_text(csv_text(), encoding="utf-8")
    return folder / "t.csv"


def as_parquet(folder: Path) -> Any:
    pq.write_table(pa.table(ROWS), folder / "t.parquet")
    return folder / "t.parquet"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "csv": as_csv,
    "parquet": as_parquet,
    "pyarrow": lambda _: pa.table(ROWS),
    "pandas": lambda _: pd.DataFrame(ROWS),
    "duckdb": lambda _: duckdb.connect().from_arrow(pa.table(ROWS)),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_shows_no_row(tmp_path: Path, case: str, source: str) -> None:
    table, schema = SOURCES[source](tmp_path), REFUSED[case]
    with pytest.raises(DataError) as raised:
        read_table(table, schema)
    check_hidden(raised.value)
    with pytest.raises(DataError) as raised:
        margrave.synthesize(table, schema, epsilon=1.0, delta=1e-9, unit="add-remove-person:2")
    check_hidden(raised.value)
    ahead = Run(schema=schema, budget=Budget.approx(1.0, 1e-9), unit="add-remove-person:2")
    with pytest.raises(DataError) as raised:
        ahead.synthesize(table)
    check_hidden(raised.value)


def test_an_interrupted_call_holds_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C has the frames of the call, and a debugger shows what these hold."""

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "synthesize", interrupted)
    with pytest.raises(KeyboardInterrupt) as raised:
        margrave.synthesize(
            pd.DataFrame(ROWS), SCHEMA, epsilon=1.0, delta=1e-9, unit="add-remove-row"
        )
    frames = [f for f in frames_behind(raised.value) if f.f_code.co_filename != __file__]
    assert "synthesize" in [f.f_code.co_name for f in frames]
    check_hidden(raised.value)


@pytest.mark.parametrize("source", SOURCES)
def test_a_row_of_nobody_shows_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.setitem(ROWS, "who", ["", "p2", CANARY, "p4"])
    with pytest.raises(DataError, match="in the column of persons") as raised:
        read_table(SOURCES[source](tmp_path), SCHEMA)
    check_hidden(raised.value)


REFUSING = REFUSED["a value outside"]


class Compared(Display):
    """A release, as far as a comparison looks at it before it reads rows."""

    schema = REFUSING


READERS: dict[str, Callable[[Any], Any]] = {
    "read_codes": lambda t: read_codes(t, REFUSING),
    "public_codes": lambda t: public_codes(t, REFUSING),
    "read_synthetic": lambda t: read_synthetic(t, replace(REFUSING, ignore=["who"], person=None)),
    "synthetic_codes": lambda t: synthetic_codes(t, replace(REFUSING, ignore=["who"], person=None)),
    "read_numbers": lambda t: (
        read_numbers(t, REFUSED["another column"]) and read_table(t, REFUSING)
    ),
    "check_table": lambda t: check_table(t, REFUSED["another column"]),
    "evaluate": lambda t: evaluate(t, memory_table({"job": 2, "age": 11}, [(0, 0)])),
    "compare": lambda t: Compared().compare(t),
    "fit": lambda t: Synthesizer(REFUSING, epsilon=1.0, delta=1e-9, unit="add-remove-row").fit(t),
    "synthesize": lambda t: margrave.synthesize(
        t, REFUSING, epsilon=1.0, delta=1e-9, unit="add-remove-row"
    ),
    "encode": lambda t: REFUSED["another column"].encode(t),
    "check": lambda t: REFUSING.check(t),
    "preflight": lambda t: REFUSED["another column"].preflight(t),
}


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_hides_the_rows(reader: str) -> None:
    for frame in (pd.DataFrame(ROWS), pa.table(ROWS)):
        with pytest.raises(margrave.MargraveError) as raised:
            READERS[reader](frame)
        check_hidden(raised.value)


def broken_files() -> dict[str, tuple[str, bytes]]:
    whole = csv_text().encode()
    ragged = whole.replace(b"p4,clerk", b"p4,clerk,more,x")
    return {
        "a row too long": ("t.csv", ragged),
        "a quote that is not closed": ("t.csv", whole.replace(b"p4,clerk", b'p4,"clerk')),
        "another encoding": ("t.csv", whole.decode().encode("latin-1")),
        "another line end": ("t.csv", whole.replace(b"\n", b"\r\n", 2)),
        "no header": ("t.csv", whole.partition(b"\n")[2]),
        "a damaged gzip": ("t.csv.gz", gzip.compress(whole * 1000)[:-9]),
        "a damaged Parquet file": ("t.parquet", b"PAR1" + whole),
    }


@pytest.mark.parametrize("case", broken_files())
@pytest.mark.parametrize("reader", [lambda p: read_table(p, SCHEMA), read_frame, draft_schema])
def test_a_broken_file_shows_no_row(
    tmp_path: Path, case: str, reader: Callable[[Path], Any]
) -> None:
    name, content = broken_files()[case]
    (tmp_path / name).write_bytes(content)
    try:
        reader(tmp_path / name)
    except DataError as error:
        check_hidden(error)
    else:
        assert case == "no header", "any text may be a header, where no schema is known"


def test_a_damaged_row_group_shows_no_row(tmp_path: Path) -> None:
    path = as_parquet(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:8] + b"\xff" * 40 + content[48:])
    with pytest.raises(DataError) as raised:
        read_table(path, SCHEMA)
    check_hidden(raised.value)


def test_a_query_that_fails_shows_no_row() -> None:
    rows = duckdb.connect().from_arrow(pa.table(ROWS))
    with pytest.raises(DataError, match="by its engine") as raised:
        read_table(rows.query("t", "SELECT who, job, CAST(job AS INTEGER) AS age FROM t"), SCHEMA)
    check_hidden(raised.value)


# Faults of margrave itself, and of what runs behind the gate.


def failing_encode(kind: type[BaseException]) -> Callable[[Integer, pa.Array], Any]:
    encode = Integer.encode

    def fail(self: Integer, values: pa.Array) -> Any:
        if len(values):
            raise kind(f"at {values.to_pylist()}")
        return encode(self, values)

    return fail


@pytest.mark.parametrize("kind", [ValueError, RecursionError, KeyboardInterrupt, MemoryError])
def test_a_fault_near_rows_has_its_line_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    monkeypatch.setattr(Integer, "encode", failing_encode(kind))
    expected = {KeyboardInterrupt: KeyboardInterrupt, MemoryError: DataError}.get(
        kind, InternalError
    )
    with pytest.raises(expected) as raised:
        read_table(pd.DataFrame(ROWS), SCHEMA)
    check_hidden(raised.value)
    if expected is InternalError:
        assert f"({kind.__name__} in test_tracebacks.py, line " in str(raised.value)


def test_no_other_error_hangs_on_what_a_reader_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def encode(self: Integer, values: pa.Array) -> Any:
        try:
            raise ValueError(f"at {values.to_pylist()}")
        except ValueError as error:
            raise DataError("It cannot be read.") from error

    monkeypatch.setattr(Integer, "encode", encode)
    with pytest.raises(DataError, match="cannot be read") as raised:
        read_table(pd.DataFrame(ROWS), SCHEMA)
    assert raised.value.__cause__ is None
    check_hidden(raised.value)


def test_a_fault_near_rows_ends_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("schema.toml")
    monkeypatch.setattr(Integer, "encode", failing_encode(ValueError))
    assert run(["schema", "check", str(as_csv(tmp_path)), "--schema", "schema.toml"]) == 70
    err = capsys.readouterr().err
    assert "margrave failed while it read the table (ValueError in test_tracebacks.py, line" in err
    assert str(NUMBER) not in err
    monkeypatch.setenv("MARGRAVE_TRACEBACK", "1")  # whoever sets it sees rows
    with pytest.raises(ValueError, match=str(NUMBER)):
        run(["schema", "check", "t.csv", "--schema", "schema.toml"])


class Failing(margrave.mechanisms.Independent):
    """A mechanism whose code is somebody else's, and fails."""

    def run(self, private: Any, **more: Any) -> Any:
        raise LookupError("my own mistake")


@pytest.mark.parametrize("source", SOURCES)
def test_a_mechanism_that_fails_keeps_its_traceback_and_shows_no_row(
    tmp_path: Path, source: str
) -> None:
    table = SOURCES[source](tmp_path)
    with pytest.raises(LookupError, match="my own mistake") as raised:
        margrave.synthesize(
            table, SCHEMA, epsilon=1.0, delta=1e-9, unit="add-remove-person:2", mechanism=Failing()
        )
    assert any(
        f.f_code.co_filename == __file__ and f.f_code.co_name == "run"
        for f in frames_behind(raised.value)
    )
    check_hidden(raised.value)


def test_codes_and_tables_do_not_show_their_rows() -> None:
    codes = Codes.of(Domain.of({"a": NUMBER + 1}), {"a": np.array([NUMBER, 7])})
    assert "array(" not in repr(codes)
    assert "7" not in repr(read_table(pa.table(ROWS), SCHEMA))


def test_the_check_would_see_a_row() -> None:
    def reading(table: Any) -> None:
        raise DataError(f"There are {len(table)} rows.")

    for rows in (pd.DataFrame(ROWS), pa.table(ROWS), CANARY, np.array([1, 2])):
        with pytest.raises(DataError) as raised:
            reading(rows)
        shown = told(raised.value, without="")
        assert CANARY in shown or "array(" in shown
        assert holds_rows(rows) or rows is CANARY
