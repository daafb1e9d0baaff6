"""One category for texts that differ in case or blanks alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import margrave
from margrave.errors import SchemaError
from margrave.profiling import draft_schema
from margrave.schema import Categorical, Learn, Schema

TEXTS = ["New York", "new  york", " NEW YORK", "Basel", "basle", None]


def test_spellings_become_one_category() -> None:
    column = Categorical("town", ["New York", "Basel"], other=True, missing=True, same="case")
    assert column.encode(pa.array(TEXTS)).codes.tolist() == [0, 0, 0, 1, 2, 3]
    plain = Categorical("town", ["New York", "Basel"], other=True, missing=True)
    assert plain.encode(pa.array(TEXTS)).codes.tolist() == [0, 2, 2, 1, 2, 3]


def test_an_exact_text_comes_first() -> None:
    column = Categorical("code", ["1", "one"], same="case", other=True)
    assert column.encode(pa.array(["1.0", "ONE", "two"])).codes.tolist() == [0, 1, 2]


@pytest.mark.parametrize("same", ["words", "yes", ["a"], {"a": 1}, {"": "a"}, {"b": "a", "a": "c"}])
def test_other_rules_are_refused(same: Any) -> None:
    with pytest.raises(SchemaError, match="same"):
        Categorical("town", ["a"], same=same)
    with pytest.raises(SchemaError, match="same"):
        Learn("town", "categorical", same=same)


def test_contradictions_are_refused() -> None:
    with pytest.raises(SchemaError, match="are one by same"):
        Categorical("town", ["Basel", "BASEL"], same="case")
    with pytest.raises(SchemaError, match="only categories"):
        Learn("price", "real", same="case")


def test_a_list_of_spellings_gives_their_categories() -> None:
    names = {"Basle": "Basel", " Bâle ": "Basel", "N.Y.": "New York"}
    column = Categorical("town", ["New York", "Basel"], other=True, same=names)
    texts = pa.array(["Basle", " N.Y. ", "Bâle", "Basel", "Zug", "basle"])
    assert column.encode(texts).codes.tolist() == [1, 0, 1, 1, 2, 2]
    sort = Learn("sort", "categorical", same={"a b": "ab"})
    schema = Schema([column, sort])
    assert Schema.from_toml(schema.to_toml()) == schema
    assert schema.hash() != Schema([replace(column, same=None), sort]).hash()
    with pytest.raises(SchemaError, match="which is not listed"):
        replace(column, same={"Basle": "Bern"})
    with pytest.raises(SchemaError, match="'Basel' is a category"):
        replace(column, same={"Basel": "New York"})


def test_spellings_of_a_list_are_learned_as_one() -> None:
    table = pa.table({"sex": ["m", "male", "f", "female", "x"] * 400, "n": [1, 2] * 1000})
    names = {"m": "male", "f": "female", "xx": "rare"}
    schema = Schema([Learn("sex", "categorical", same=names), Learn("n", "integer")])
    release = margrave.synthesize(table, schema, epsilon=3.0, delta=1e-6, seed=1)
    column = release.schema.column("sex")
    assert isinstance(column, Categorical)
    assert list(column.categories) == ["female", "male", "x"]
    assert column.same == {"m": "male", "f": "female"}
    assert release.verify().holds


BOTH: Any = ["case", {"N.Y.": "New York", " Bâle": "BASEL", "Big Apple": "New York"}]


def test_case_and_a_list_of_spellings_at_once() -> None:
    column = Categorical("town", ["New York", "Basel"], other=True, same=BOTH)
    texts = ["n.y.", "NEW  york", "big  APPLE", "bâle", "basel", "Zug", "N.Y.C."]
    assert column.encode(pa.array(texts)).codes.tolist() == [0, 0, 0, 1, 1, 2, 2]
    open_column = Learn("town", "categorical", categories=("N.Y.", "Bern"), same=BOTH)
    assert open_column.categories == ("new york", "bern")
    assert open_column.texts(pa.array(texts)).to_pylist()[:5] == ["new york"] * 3 + ["basel"] * 2
    for schema in (Schema([column]), Schema([open_column])):
        again = Schema.from_toml(schema.to_toml())
        assert (again, again.hash()) == (schema, schema.hash())
    assert Categorical("town", ["a"], same=["case", {}]) == Categorical("town", ["a"], same="case")
    assert Categorical("town", ["Basel"], same=["case", {"BASEL": "Basel"}]).size == 1


@pytest.mark.parametrize(
    ("same", "words"),
    [
        (["case"], "not a rule"),
        (["words", {"a": "b"}], "not a rule"),
        (["case", "case"], "not a rule"),
        (["case", {"b": "Basel", "BASEL": "york"}], "another category"),
        (["case", {"b": "Basel", "B ": "York"}], "two categories"),
        (["case", {"b": "Bern"}], "which is not listed"),
        (["case", {"york": "Basel"}], "is a category"),
    ],
)
def test_contradictions_of_both_are_refused(same: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Categorical("town", ["Basel", "York"], same=same)


def test_both_are_learned_as_one_beside_public_categories() -> None:
    texts = ["M", "m ", "male", "MALE", "F", "female", "x"] * 300
    table = pa.table({"sex": texts, "n": [1, 2] * 1050})
    same: Any = ["case", {"m": "Male", "f": "Female", "d": "Divers"}]
    sex = Learn("sex", "categorical", categories=("Female",), same=same)
    schema = Schema([sex, Learn("n", "integer")])
    release = margrave.synthesize(
        table, schema, epsilon=3.0, delta=1e-6, seed=1, mechanism="independent"
    )
    column = release.schema.column("sex")
    assert isinstance(column, Categorical)
    assert list(column.categories) == ["female", "male", "x"]
    assert column.same == ("case", {"m": "Male", "f": "Female"})
    share = np.mean([v == "male" for v in release.sample(2000, seed=1)["sex"].to_pylist()])
    assert abs(float(share) - 4 / 7) < 0.1
    assert Schema.from_toml(release.schema.to_toml()) == release.schema
    assert release.verify().holds


def test_the_file_keeps_it() -> None:
    columns = [
        Categorical("town", ["Basel"], same="case"),
        Learn("sort", "categorical", same="case"),
    ]
    made = Schema(columns)
    assert Schema.from_toml(made.to_toml()) == made
    assert made.to_toml().count('same = "case"') == 2
    assert made.hash() != Schema([Categorical("town", ["Basel"]), columns[1]]).hash()


def test_the_draft_asks_and_spellings_are_learned_as_one() -> None:
    rng = np.random.default_rng(1)
    texts = rng.choice(["Flat", "flat ", "FLAT", "House", "house"], 3000)
    table = pa.table({"kind": texts, "rooms": rng.integers(1, 9, 3000)})
    assert 'same = "case"' in draft_schema(table).remarks["kind"]
    schema = Schema([Learn("kind", "categorical", same="case"), Learn("rooms", "integer")])
    release = margrave.synthesize(table, schema, epsilon=2.0, delta=1e-6, seed=1)
    column = release.schema.column("kind")
    assert isinstance(column, Categorical)
    assert list(column.categories) == ["flat", "house"]
    share = np.mean([v == "flat" for v in release.sample(3000, seed=1)["kind"].to_pylist()])
    assert abs(float(share) - 0.6) < 0.15
    assert release.verify().holds
