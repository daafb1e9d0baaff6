"""Rows come back as the kind of frame that went in, with nothing of their types lost."""

from __future__ import annotations

import datetime
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import margrave
from margrave.errors import DataError, InputError
from margrave.schema import Boolean, Categorical, Date, Integer, Ordinal, Schema

GRADES = ["low", "mid", "high"]
SCHEMA = Schema([
    Integer("age", 0, 99, bins=10, missing=True),
    Integer("visits", 0, 9),
    Boolean("ill", missing=True),
    Ordinal("grade", GRADES),
    Categorical("sex", ["f", "m"]),
    Date("day", datetime.date(2020, 1, 1), datetime.date(2020, 12, 31), bins=4),
])  # fmt: skip


def rows() -> pd.DataFrame:
    return pd.DataFrame({
        "age": pd.array([20, 35, None, 70] * 50, dtype="Int64"),
        "visits": [0, 1, 2, 9] * 50,
        "ill": pd.array([True, False, None, True] * 50, dtype="boolean"),
        "grade": pd.Categorical(["low", "high", "mid", "high"] * 50, GRADES, ordered=True),
        "sex": ["f", "m", "m", "f"] * 50,
        "day": pd.to_datetime(["2020-01-01", "2020-02-01", "2020-06-01", "2020-12-31"] * 50),
    })  # fmt: skip


def released(table: Any) -> margrave.Release:
    return margrave.synthesize(table, SCHEMA, epsilon=50.0, delta=1e-6, mechanism="independent")


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (rows().set_index("age"), "Column 'age' is the index of the frame. Pass df.reset_index()."),
        (rows().set_index(["age", "sex"]), "Columns 'age', 'sex' are the index of the frame."),
        (rows().drop(columns="age"), 'Add "age" to the table, or take it out of the schema.'),
        (rows().drop(columns=["age", "sex"]), 'Add "age", "sex" to the table, or take them out'),
    ],
    ids=["an index", "an index of two", "a column", "two columns"],
)
def test_what_a_frame_lacks_is_named_with_its_remedy(frame: Any, words: str) -> None:
    with pytest.raises(DataError) as refused:
        released(frame)
    assert words in str(refused.value)
    with pytest.raises(DataError, match=r"the index of the frame|Add (it|them) to the table"):
        SCHEMA.encode(frame)


def test_pandas_keeps_nullable_numbers_truths_and_orders(tmp_path: Any) -> None:
    release = released(rows())
    frame = release.sample(60, seed=1)
    kinds = {name: str(kind) for name, kind in frame.dtypes.items()}
    assert kinds["age"] == "Int64"
    assert kinds["visits"] == "int64"
    assert kinds["ill"] == "boolean"
    assert kinds["day"].startswith("datetime64")
    assert frame["age"].isna().any()
    assert frame["grade"].cat.ordered
    assert list(frame["grade"].cat.categories) == GRADES
    numbers = release.numbers(as_="pandas")
    assert isinstance(numbers, pd.DataFrame)
    assert set(release.numbers(columns=["ill", "age"], as_="pandas")["column"]) == {"age", "ill"}
    release.save(tmp_path / "visits.margrave")
    loaded = margrave.Release.load(tmp_path / "visits.margrave")
    assert isinstance(loaded.sample(3), pa.Table), "a file does not hold the kind of frame"
    assert isinstance(release.numbers(), pa.Table), "a script reads new and loaded releases alike"
    assert loaded.numbers().equals(release.numbers())
    assert loaded.numbers(as_="pandas").equals(numbers)
    part = release.sample(30, where={"sex": "f", "age": (20, None)}, seed=1)
    assert set(part["sex"]) == {"f"}
    assert part["age"].min() >= 20
    assert isinstance(release.condition({"sex": "f"}).sample(3), pd.DataFrame)
    arrow = release.sample(60, as_="arrow", seed=1)
    assert isinstance(arrow, pa.Table)
    assert frame["age"].dropna().tolist() == arrow["age"].drop_null().to_pylist()
    release.save(tmp_path / "r.margrave")
    again = margrave.Release.load(tmp_path / "r.margrave")
    assert again.sample(60, seed=1).equals(arrow), "a file does not say what the table came as"


def test_arrow_and_files_come_back_as_arrow(tmp_path: Any) -> None:
    rows().to_csv(tmp_path / "rows.csv", index=False)
    assert isinstance(released(str(tmp_path / "rows.csv")).sample(5), pa.Table)
    assert isinstance(released(pa.Table.from_pandas(rows())).sample(5), pa.Table)


def test_polars_keeps_orders() -> None:
    polars = pytest.importorskip("polars")
    frame = released(polars.from_pandas(rows())).sample(20, seed=1)
    assert isinstance(frame, polars.DataFrame)
    assert frame.schema["grade"] == polars.Enum(GRADES)


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("margrave.frame_kinds.find_spec", lambda name: None)
    with pytest.raises(InputError, match="polars is not installed"):
        released(rows()).sample(3, as_="polars")
