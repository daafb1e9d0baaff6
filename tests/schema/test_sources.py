"""Where the values of a schema come from: what was read off the rows is refused, key by key."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margrave.accounting import AddRemoveRow, Budget
from margrave.data import read_table
from margrave.data.raw_columns import RawColumns
from margrave.errors import InputError, SchemaError
from margrave.mechanisms import Independent
from margrave.privacy import SeededRandomness, protect
from margrave.release import Release
from margrave.run import Run
from margrave.schema import (
    Boolean,
    Categorical,
    ColumnSource,
    Date,
    Hour,
    Integer,
    Learn,
    Ordinal,
    Real,
    Schema,
    Timestamp,
)

COLUMNS = [Integer("age", 0, 99), Categorical("town", ["York", "Hull"]), Boolean("ill")]
HEAD = '[schema]\nversion = 1\n[[column]]\nname = "age"\nkind = "integer"\nlow = 0\nhigh = 99\n'


def test_a_source_is_public_unless_the_file_says_otherwise() -> None:
    schema = Schema.from_toml(HEAD)
    assert (schema.sources, schema.draft) == ({}, False)
    assert Schema.from_toml(HEAD + 'source = "public"\nread = []\n') == schema
    assert "source" not in schema.to_toml()
    schema.check_not_read()


@pytest.mark.parametrize(
    ("keys", "source", "draft"),
    [
        ('source = "read"', ColumnSource("read"), True),
        ('read = ["high", "kind"]', ColumnSource(read=["high", "kind"]), True),
        ('cite = "Codebook, p. 12"', ColumnSource(cite="Codebook, p. 12"), False),
        (
            'source = "learned"\ncite = "release of 2020"',
            ColumnSource("learned", cite="release of 2020"),
            False,
        ),
    ],
)
def test_the_file_says_it_and_comes_back(keys: str, source: ColumnSource, draft: bool) -> None:
    schema = Schema.from_toml(HEAD + keys)
    assert (schema.sources, schema.draft) == ({"age": source}, draft)
    again = Schema.from_toml(schema.to_toml())
    assert (again, again.hash()) == (schema, schema.hash())
    assert schema != Schema.from_toml(HEAD)
    assert schema.hash() != Schema.from_toml(HEAD).hash()


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('source = "guessed"', "source is unknown. Choose one of: public, learned, read"),
        ("source = 3", "source is unknown"),
        ('read = "high"', "read is not a list of keys"),
        ("read = 3", "read is not a list of keys"),
        ("read = [3]", "read is not a list of keys"),
        ("cite = 3", "cite is not a text"),
    ],
)
def test_faulty_sources_are_refused(keys: str, words: str) -> None:
    with pytest.raises(SchemaError, match=r"Line 3: Column 'age'") as caught:
        Schema.from_toml(HEAD + keys)
    assert words in str(caught.value)


def test_a_category_is_no_missing_code() -> None:
    answers = Categorical("answer", ["1", "2", "9"], missing=True)
    with pytest.raises(
        SchemaError, match="'9' is one of its categories, and one of its missing_codes"
    ):
        Schema([answers], sources={"answer": ColumnSource(missing_codes=["9"])})
    kept = Schema([answers], sources={"answer": ColumnSource(missing_codes=["99"])})
    assert kept.encode(pa.table({"answer": ["9", "99"]})).column("answer").tolist() == [2, 3]


def test_only_keys_of_the_column_can_have_been_read() -> None:
    with pytest.raises(SchemaError, match=r"Column 'age': read lists 'categories'.*low, high"):
        Schema.from_toml(HEAD + 'read = ["categories"]')
    with pytest.raises(SchemaError, match="'bins', which is not one of its keys"):
        Schema([Learn("x", "real")], sources={"x": ColumnSource(read=["bins"])})
    assert Schema([Learn("x", "real", low=3)], sources={"x": ColumnSource(read=["low"])}).draft
    with pytest.raises(SchemaError, match="'x', which is not a column"):
        Schema(COLUMNS, sources={"x": ColumnSource()})


def test_what_was_read_is_refused_by_column_and_key() -> None:
    sources = {"age": ColumnSource(read=["low", "high"]), "town": ColumnSource("read")}
    schema = Schema(COLUMNS, sources=sources)
    with pytest.raises(SchemaError) as caught:
        schema.check_not_read()
    said = str(caught.value)
    assert "'age' (low, high), 'town' (all keys)." in said
    assert "write the public value" in said
    assert "write learn = true" in said
    assert "ill" not in said
    with pytest.raises(SchemaError, match=r"'age' \(low, high\)"):
        Run(schema=schema, budget=Budget.approx(1.0, 1e-9))
    table = read_table(pa.table({"age": [3], "town": ["York"], "ill": ["no"]}), schema)
    with pytest.raises(SchemaError, match="read off the rows"):
        protect(table, unit=AddRemoveRow(), budget=Budget.approx(1.0, 1e-9))
    schema.select(["ill"]).check_not_read()
    with pytest.raises(SchemaError):
        schema.select(["age"]).check_not_read()


def test_a_file_can_mark_all_of_it_at_once() -> None:
    marked = Schema.from_toml(HEAD.replace("version = 1", "version = 1\ndraft = true"))
    assert marked.sources == {"age": ColumnSource("read")}
    assert Schema.from_toml(HEAD.replace("version = 1", "version = 1\ndraft = false")).sources == {}
    both = HEAD.replace("version = 1", "version = 1\ndraft = false") + 'read = ["low"]'
    assert Schema.from_toml(both).draft  # the mark of the key stands


def test_confirming_takes_every_value_as_public() -> None:
    sources = {
        "age": ColumnSource("read", cite="form 7"),
        "town": ColumnSource(read=["categories"]),
    }
    confirmed = Schema(COLUMNS, sources=sources, remarks={"": "a"}).confirmed()
    assert confirmed.sources == {"age": ColumnSource(cite="form 7")}
    assert (confirmed.draft, confirmed.remarks) == (False, {})


def test_a_learned_column_takes_its_place_and_says_so() -> None:
    schema = Schema(
        [Learn("price", "real", low=0), Boolean("ill"), Learn("rank", "integer", low=1)],
        sources={
            "price": ColumnSource(cite="price law"),
            "ill": ColumnSource(cite="form 7"),
            "rank": ColumnSource(cite="form 8"),
        },
        ignore=["note"],
    )
    learned = schema.with_learned([Real("price", 0, 9, missing=True)])
    assert [c.kind for c in learned.columns] == ["real", "boolean"]
    assert (learned.to_learn, learned.ignore) == ((), ("note", "rank"))
    assert learned.sources == {
        "price": ColumnSource("learned", cite="price law", public=["low"]),
        "ill": ColumnSource(cite="form 7"),
    }


def test_a_gate_adopts_learned_columns_with_their_source_and_no_other_change() -> None:
    schema = Schema(
        [Learn("price", "real"), Boolean("ill"), Learn("rank", "integer", low=1)],
        sources={"rank": ColumnSource(cite="form 8")},
    )
    table = read_table(pa.table({"price": [1.0, 2], "ill": ["no", "yes"], "rank": [1, 2]}), schema)
    with protect(table, unit=AddRemoveRow(), budget=Budget.approx(1.0, 1e-9)) as gate:
        learned = schema.with_learned([Real("price", 0, 9, missing=True)])
        with pytest.raises(InputError, match="with_learned"):
            gate.adopt(replace(learned, ignore=[]))
        gate.adopt(replace(learned, sources={"ill": ColumnSource(cite="made up")}))
        assert gate.schema.sources == {"price": ColumnSource("learned")}


def released(schema: Schema) -> Release:
    rows = pa.table({"age": [3, 40] * 50, "town": ["York", "Hull"] * 50, "ill": ["no", "yes"] * 50})
    table = read_table(rows, schema)
    budget = Budget.approx(1.0, 1e-9)
    with protect(table, unit=AddRemoveRow(), budget=budget, randomness=SeededRandomness(1)) as gate:
        return Independent().run(gate, rng=np.random.default_rng(1), progress=None)


def test_the_certificate_lists_sources_and_cites(tmp_path: Path) -> None:
    sources = {"age": ColumnSource(cite="Codebook 2018, p. 12"), "town": ColumnSource("learned")}
    made = released(Schema(COLUMNS, sources=sources))
    made.save(tmp_path / "r.margrave")
    facts = json.loads(json.dumps(Release.load(tmp_path / "r.margrave").certificate()))
    assert facts["schema"]["sources"] == {
        "age": {"source": "public", "cite": "Codebook 2018, p. 12"},
        "town": {"source": "learned"},
    }
    assert "the values of column age, cited from Codebook 2018, p. 12" in facts["public_inputs"]
    assert "sources" not in released(Schema(COLUMNS)).certificate()["schema"]


def test_a_release_holds_no_remark_of_a_draft(tmp_path: Path) -> None:
    """Remarks speak of the rows, and a draft of columns to learn is not refused."""
    schema = replace(Schema(COLUMNS), remarks={"": "CANARY", "town": "CANARY"})
    released(schema).save(tmp_path / "r.margrave")
    assert "CANARY" not in Release.load(tmp_path / "r.margrave").schema.to_toml()
    assert b"CANARY" not in (tmp_path / "r.margrave").read_bytes()
    with zipfile.ZipFile(tmp_path / "r.margrave") as archive:
        assert all(b"CANARY" not in archive.read(name) for name in archive.namelist())


@pytest.mark.parametrize(
    ("kind", "form", "codes", "written", "missing"),
    [
        ("date", "%d.%m.%Y", ["1900-01-01"], ["01.01.1900", "1.1.1900", "05.05.2020"], [0, 1]),
        ("date", "%d.%m.%Y", ["01.01.1900"], ["1.1.1900", "02.01.1900"], [0]),
        ("timestamp", None, ["1900-01-01"], ["1900-01-01 00:00:00", "1900-01-02 00:00"], [0]),
        ("timestamp", None, ["9999-12-31"], [datetime(9999, 12, 31, 23, 59), datetime.max], [0, 1]),
        ("timestamp", None, ["1900-01-01 23:59"], ["1900-01-01 23:58", "1900-01-01 23:59"], [1]),
    ],
)
def test_a_date_that_means_missing_equals_every_way_to_write_it(
    kind: str, form: str | None, codes: list[str], written: list[Any], missing: list[int]
) -> None:
    first, last = datetime(1800, 1, 1), datetime(2100, 1, 1)
    declared = (
        Date("seen", first.date(), last.date(), format=form, missing=True)
        if kind == "date"
        else Timestamp("seen", first, last, missing=True)
    )
    parts = [] if kind == "date" else [Hour("seen.hour", "seen")]
    frame = pa.table({"seen": written})
    for column in (declared, Learn("seen", kind, format=form)):
        schema = Schema([column, *parts], sources={"seen": ColumnSource(missing_codes=codes)})
        for own, read in zip(schema.columns, schema.encode(frame).values, strict=True):
            assert np.flatnonzero(read == own.size - 1).tolist() == missing
    points = RawColumns.of(frame, schema).points["seen"]
    assert np.flatnonzero(np.isnan(points)).tolist() == missing


@pytest.mark.parametrize(
    ("column", "code"),
    [
        (Date("seen", date(1900, 1, 1), date(2020, 1, 1), format="%d.%m.%Y", missing=True), "01.01.1900"),
        (Timestamp("seen", datetime(1900, 1, 1, 8), datetime(2020, 1, 1), missing=True), "1900-01-01"),
        (Learn("seen", "timestamp", high=datetime(2020, 1, 1)), "2020-01-01"),
    ],
)  # fmt: skip
def test_a_bound_that_is_a_missing_code_however_it_is_written_is_refused(
    column: Any, code: str
) -> None:
    with pytest.raises(SchemaError, match=r"Column 'seen': its .* is one of its missing_codes"):
        Schema([column], sources={"seen": ColumnSource(missing_codes=[code])})


@pytest.mark.parametrize(
    "values",
    [
        pa.array([Decimal(-9), Decimal(5)], pa.decimal128(10, 0)),
        pa.array(["-9", "5"], pa.string_view()),
        pa.array(["-9", "5"]).dictionary_encode(),
        pa.RunEndEncodedArray.from_arrays([1, 2], [-9, 5]),
    ],
    ids=lambda values: str(values.type),
)
def test_missing_codes_of_a_column_to_learn_are_read_in_every_type(values: pa.Array) -> None:
    schema = Schema([Learn("age", "integer")], sources={"age": ColumnSource(missing_codes=["-9"])})
    points = RawColumns.of(pa.table({"age": values}), schema).points["age"]
    assert np.isnan(points).tolist() == [True, False]


@pytest.mark.parametrize(
    ("code", "listed", "values", "missing"),
    [
        ("9", ["09", "10"], ["09", "9", "9.0", "10"], [1, 2]),
        ("09", ["9", "10"], ["09", "9", "10"], [0]),
        ("09", ["08", "10"], [9, 8, 10], [0]),  # as pandas reads 09
    ],
)
def test_a_category_is_not_the_missing_code_of_the_same_number(
    code: str, listed: list[str], values: list[Any], missing: list[int]
) -> None:
    frame = pa.table({"ward": values})
    columns = [Categorical("ward", listed, missing=True), Ordinal("ward", listed, missing=True)]
    for column in columns:
        schema = Schema([column], sources={"ward": ColumnSource(missing_codes=[code])})
        read, check = schema.read(frame)
        assert np.flatnonzero(read.column("ward") == 2).tolist() == missing
        assert check.columns[0].empty == len(missing)


def test_a_text_with_leading_zeros_is_learned_beside_a_missing_code_of_the_same_number() -> None:
    sources = {"ward": ColumnSource(missing_codes=["9"])}
    raw = RawColumns.of(
        pa.table({"ward": ["09", "9", "9.0"]}),
        Schema([Learn("ward", "categorical")], sources=sources),
    )
    assert raw.texts["ward"].to_pylist() == ["09", None, None]


def test_missing_codes_count_as_missing_whatever_the_policy() -> None:
    codes = ColumnSource(missing_codes=["-9", "9999-01-01", "unknown"])
    columns = [
        Integer("age", 0, 99, missing=True, outside="refuse"),
        Categorical("town", ["York"], other=True, missing=True),
        Timestamp("seen", datetime(2020, 1, 1), datetime(2020, 12, 31), missing=True),
        Hour("seen.hour", "seen"),
    ]
    schema = Schema(columns, sources=dict.fromkeys(("age", "town", "seen"), codes))
    assert Schema.from_toml(schema.to_toml()) == schema
    assert schema.to_toml().count("missing_codes = ") == 3
    table = pa.table({
        "age": [-9, 5] * 20, "town": ["unknown", "Hull", "unknown", "York"] * 10,
        "seen": ["9999-01-01", "2020-02-01 07:00"] * 20,
    })  # fmt: skip
    read, check = schema.read(table)
    assert check.passed
    assert not check.alarms
    assert [(c.empty, c.outside, c.unreadable) for c in check.columns] == [
        (20, 0, 0), (20, 10, 0), (20, 0, 0),
    ]  # fmt: skip
    for column in schema.columns:
        assert (read.column(column.name)[::2] == column.size - 1).all()
    assert (read.column("seen.hour")[1::2] == 7).all()
    with pytest.raises(SchemaError, match="no missing state"):
        Schema([Integer("age", 0, 9)], sources={"age": codes})
    open_columns = Schema([Learn("age", "integer")], sources={"age": codes})
    assert Schema.from_toml(open_columns.to_toml()) == open_columns
    with pytest.raises(SchemaError, match="its low is -9"):
        Schema([Learn("age", "integer", low=-9)], sources={"age": codes})
    with pytest.raises(SchemaError, match="not a list of texts"):
        ColumnSource(missing_codes="-9")
