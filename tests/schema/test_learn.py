"""Columns to learn in the schema's file: what it says comes back, and contradictions are refused in words."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest

from margrave.errors import InputError, SchemaError
from margrave.schema import ColumnSource, Integer, Learn, Schema

HEAD = '[schema]\nversion = 1\n[[column]]\nname = "x"\n'


@pytest.mark.parametrize(
    ("keys", "column"),
    [
        ('kind = "real"\nlow = 0', Learn("x", "real", low=0)),
        (
            'kind = "integer"\nlow = 1\nhigh = 5\noutside = "clip"',
            Learn("x", "integer", low=1, high=5),
        ),
        (
            'kind = "date"\nhigh = 2020-12-31\nformat = "%d/%m/%Y"',
            Learn("x", "date", high=date(2020, 12, 31), format="%d/%m/%Y"),
        ),
        (
            'kind = "timestamp"\nunit = "hour"\nlow = 2020-01-01',
            Learn("x", "timestamp", low=datetime(2020, 1, 1), unit="hour"),
        ),
        (
            'kind = "categorical"\ncategories = ["a", "b"]',
            Learn("x", "categorical", categories=("a", "b")),
        ),
    ],
)
def test_the_file_says_it_and_comes_back(keys: str, column: Learn) -> None:
    schema = Schema.from_toml(f"{HEAD}{keys}\nlearn = true")
    assert schema.columns == schema.to_learn == (column,)
    again = Schema.from_toml(schema.to_toml())
    assert (again, again.hash()) == (schema, schema.hash())


def test_a_learned_column_may_state_its_missing_code() -> None:
    keys = '{}kind = "integer"\n{}low = 0\nhigh = 110\nlearn = true'
    plain = Schema.from_toml(keys.format(HEAD, ""))
    stated = Schema.from_toml(keys.format(HEAD, "missing = true\n"))
    assert (stated, stated.hash()) == (plain, plain.hash())
    assert stated.to_toml() == plain.to_toml()


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('kind = "real"\noutside = "refuse"', "learned bounds refuse no value"),
        ('kind = "real"\nbins = 5', "bins contradicts learn = true"),
        ('kind = "real"\nedges = [5]', "edges contradicts learn = true"),
        ('kind = "real"\natoms = [5]', "atoms contradicts learn = true"),
        ('kind = "real"\nleaf_edges = [5, 6]', "leaf_edges contradicts learn = true"),
        ('kind = "categorical"\nother = true', "other contradicts learn = true"),
        ('kind = "real"\nmissing = false', "missing contradicts learn = true"),
        ('kind = "boolean"', "its kind cannot be learned"),
        ('kind = "ordinal"', "its kind cannot be learned"),
        ('kind = "real"\nlow = 5\nhigh = 1', "low is above high"),
        ('kind = "date"\nlow = 5', "low is not a date"),
        ('kind = "categorical"\ncategories = ["a", "a"]', "listed twice"),
        ('kind = "real"\ncolor = 3', "'color' is not a key of kind real"),
    ],
)
def test_contradictions_are_refused_in_words(keys: str, words: str) -> None:
    with pytest.raises(SchemaError, match="Line 3: Column 'x'") as caught:
        Schema.from_toml(f"{HEAD}{keys}\nlearn = true")
    assert words in str(caught.value)
    assert caught.value.remedy


def test_a_kind_that_needs_a_bound_says_how_to_do_without() -> None:
    with pytest.raises(SchemaError, match=r"it has no low.*write learn = true"):
        Schema.from_toml(HEAD + 'kind = "real"')
    with pytest.raises(SchemaError) as caught:
        Schema.from_toml(HEAD + 'kind = "coded"')
    assert "learn" not in str(caught.value)


def test_declared_columns_take_the_places_of_a_drafts_and_keep_the_rest() -> None:
    draft = Schema(
        [Integer("age", 0, 87), Learn("pay", "real")],
        person="id",
        ignore=["note"],
        sources={"age": ColumnSource(read=("high",))},
        remarks={"age": "Is 87 public?", "pay": "In euros"},
    )
    schema = draft.declare(Integer("age", 0, 110))
    assert draft.draft
    assert not schema.draft
    assert schema == Schema(
        [Integer("age", 0, 110), Learn("pay", "real")], person="id", ignore=["note"]
    )
    assert schema.remarks == {"pay": "In euros"}
    with pytest.raises(InputError, match="wage"):
        draft.declare(Integer("wage", 0, 9))


def test_missing_codes_are_stated_beside_columns_or_alone_and_stay() -> None:
    draft = Schema(
        [Learn("term", "integer"), Learn("region", "categorical"), Integer("age", 0, 87)],
        sources={"age": ColumnSource(read=("high",))},
        remarks={"term": "Is -1 a code?", "age": "Is 87 public?"},
    )
    coded = draft.declare(missing_codes={"term": ["-1"]})
    assert coded.to_learn == draft.to_learn
    assert coded.sources["age"] == draft.sources["age"]
    assert coded.remarks == {"age": "Is 87 public?"}
    assert coded == Schema.from_toml(coded.to_toml())
    assert 'missing_codes = ["-1"]' in coded.to_toml()
    fixed = Learn("region", "categorical", same=("case", {"Nroth": "North"}))
    age = Integer("age", 0, 110, missing=True)
    answered = coded.declare(fixed, age, Learn("term", "real"), missing_codes={"age": ["-9"]})
    assert answered.column("region") == fixed
    assert {n: s.missing_codes for n, s in answered.sources.items()} == {
        "term": ("-1",),
        "age": ("-9",),
    }
    assert answered.declare(missing_codes={"age": [], "term": []}).sources == {}


@pytest.mark.parametrize(
    ("codes", "error", "said"),
    [
        ({"wage": ["-1"]}, InputError, "wage"),
        ({"age": ["-9"]}, SchemaError, "Write missing = true"),
        ({"pay": [-9]}, SchemaError, "Column 'pay': its missing_codes are not a list of texts"),
        ({"pay": "-9"}, SchemaError, "Column 'pay': its missing_codes are not a list of texts"),
        (["-9"], SchemaError, "missing_codes does not list codes by column"),
    ],
)
def test_missing_codes_that_do_not_fit_are_refused(
    codes: Any, error: type[Exception], said: str
) -> None:
    schema = Schema([Integer("age", 0, 87), Learn("pay", "real")])
    with pytest.raises(error, match=said):
        schema.declare(missing_codes=codes)


def test_a_name_in_place_of_a_column_leads_to_the_form_of_missing_codes() -> None:
    names: Any = ("pay", ["-1"])
    with pytest.raises(SchemaError, match="Give missing_codes="):
        Schema([Learn("pay", "real")]).declare(names[0], missing_codes=names[1])
