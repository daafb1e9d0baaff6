"""Constraints: what is declared in values holds of codes, survives the file, and of rows nothing but counts is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrave import read_table
from margrave.domain import Codes
from margrave.errors import DataError, SchemaError
from margrave.profiling import check_table
from margrave.schema import (
    Allowed,
    Boolean,
    Categorical,
    Coded,
    Constraint,
    Date,
    Depends,
    Impossible,
    Integer,
    Ordered,
    Ordinal,
    Real,
    Schema,
    Timestamp,
)
from tests.support.strategies import seeded

AGE = Integer("age", 0, 110, edges=[15, 18, 65])
MARITAL = Categorical("marital", ["never", "married", "widowed"], missing=True)
CITY = Categorical("city", ["York", "Hull", "Bonn"], other=True)
STATE = Categorical("state", ["England", "Germany"], missing=True)
GRADE = Ordinal("grade", ["low", "middle", "high"])
FIRST, LAST = (
    Date(n, date(2020, 1, 1), date(2020, 12, 31), bins=5, missing=True) for n in ("first", "last")
)


def allowed(columns: Sequence[Any], constraint: Constraint) -> set[tuple[str, ...]]:
    """The combinations of labels that a constraint leaves possible, by the domain of a schema that has it."""
    schema = Schema(columns, constraints=[constraint])
    (zeros,) = schema.domain.zeros
    labels = [schema.column(a).labels() for a in zeros.clique]
    return {
        tuple(w[i] for w, i in zip(labels, at, strict=True)) for at in np.argwhere(zeros.possible)
    }


# What is declared.


def test_impossible_combinations_are_all_combinations_of_the_values() -> None:
    found = allowed([AGE, MARITAL], Impossible({"marital": ["married", "widowed"], "age": (0, 14)}))
    every = set(product(AGE.labels(), MARITAL.labels()))
    assert every - found == {("0 to 14", "married"), ("0 to 14", "widowed")}
    several = allowed(
        [AGE, MARITAL], Impossible({"age": [(None, 14), (65, None)], "marital": None})
    )
    assert every - several == {("0 to 14", "(missing)"), ("65 to 110", "(missing)")}
    assert allowed([AGE], Impossible({"age": (15, 64)})) == {("0 to 14",), ("65 to 110",)}


def test_allowed_combinations_are_the_only_ones_and_missing_goes_with_what_it_could_be() -> None:
    rows = [("York", "England"), ("Bonn", "Germany"), ("Bonn", "England")]
    found = allowed([CITY, STATE], Allowed(["city", "state"], rows))
    assert found == {*rows, ("York", "(missing)"), ("Bonn", "(missing)")}
    listed = allowed([CITY, STATE], Allowed(["city", "state"], [*rows, ("Hull", None)]))
    assert listed == {*rows, ("Hull", "(missing)")}
    both = [Categorical("a", ["x", "y"], missing=True), Categorical("b", ["x", "y"], missing=True)]
    gone = "(missing)"
    assert allowed(both, Allowed(["a", "b"], [("x", "y")])) == {
        ("x", "y"),
        ("x", gone),
        (gone, "y"),
        (gone, gone),
    }


def test_a_dependency_fixes_the_value_and_leaves_the_open_category_free() -> None:
    found = allowed(
        [CITY, STATE],
        Depends("city", "state", {"York": "England", "Hull": "England", "Bonn": "Germany"}),
    )
    known = {("York", "England"), ("Hull", "England"), ("Bonn", "Germany")}
    states = ["England", "Germany", "(missing)"]
    assert found == known | {(c, "(missing)") for c, _ in known} | {("other", s) for s in states}
    ages = {(0, 14): "never", (15, 64): "married", (65, 110): "widowed"}
    with pytest.raises(SchemaError, match=r"'15 to 17'"):
        allowed(
            [AGE, MARITAL], Depends("age", "marital", {(0, 14): "never", (18, None): "married"})
        )
    assert ("15 to 17", "married") in allowed([AGE, MARITAL], Depends("age", "marital", ages))


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (Integer("a", 0, 9, bins=3), Integer("b", -5, 12, bins=4, atoms=[3, 9])),
        (Integer("a", 0, 9, bins=3, atoms=[0, 9]), Integer("b", 0, 9, edges=[9], atoms=[9])),
        (Coded("a", 6), Coded("b", 4)),
        (Ordinal("a", list("uvwx")), Ordinal("b", list("uvwx"))),
    ],
)
def test_an_order_rules_out_exactly_the_bins_in_which_no_two_values_keep_it(
    first: Any, last: Any
) -> None:
    found = allowed([first, last], Ordered(["a", "b"]))
    if first.kind == "integer":
        values = [(c, v) for c in (first, last) for v in range(c.low, c.high + 1)]
    else:
        values = [
            (c, v)
            for c in (first, last)
            for v in (range(c.codes) if c.kind == "coded" else c.categories)
        ]
    label = {(c.name, v): c.labels()[c.encode(pa.array([v])).codes[0]] for c, v in values}
    mine, yours = ([v for c, v in values if c is w] for w in (first, last))
    assert found == {(label["a", x], label["b", y]) for x, y in product(mine, yours) if x <= y}


def test_constraints_on_the_same_columns_hold_together() -> None:
    one, two = (
        Impossible({"age": (0, 14), "marital": "married"}),
        Impossible({"marital": "widowed", "age": (0, 17)}),
    )
    schema = Schema([AGE, MARITAL], constraints=[one, two])
    (zeros,) = schema.domain.zeros
    assert np.argwhere(~zeros.possible).tolist() == [[0, 1], [0, 2], [1, 2]]


# Errors, each with the column and a remedy.

TABLE = {"York": "England", "Hull": "England", "Bonn": "Germany"}


@pytest.mark.parametrize(
    ("columns", "constraint", "words"),
    [
        ([AGE], lambda: Impossible({"height": (0, 1)}), "'height', which the schema does not have"),
        (
            [AGE, MARITAL],
            lambda: Impossible({"age": (0, 14), "marital": ["single"]}),
            "'marital'.*'single'.*It has",
        ),
        (
            [AGE, MARITAL],
            lambda: Impossible({"age": (0, 10), "marital": "married"}),
            "'age'.*part of.*0 to 14.*edges",
        ),
        ([AGE], lambda: Impossible({"age": 15}), "'age'.*part of the bin 15 to 17"),
        ([AGE], lambda: Impossible({"age": (120, 130)}), "'age'.*outside its bounds"),
        ([AGE], lambda: Impossible({"age": (14, 0)}), "'age'.*ends before it begins"),
        ([AGE], lambda: Impossible({"age": None}), "'age'.*missing = true"),
        ([AGE], lambda: Impossible({"age": "old"}), "'age'.*'old'"),
        ([AGE], lambda: Impossible({"age": []}), "'age'.*no value"),
        ([MARITAL], lambda: Impossible({"marital": ("never", "widowed")}), "'marital'.*no order"),
        ([AGE], lambda: Ordered(["age", "height"]), "'height', which the schema does not have"),
        (
            [AGE],
            lambda: Depends("height", "age", {1: (0, 14)}),
            "'height', which the schema does not have",
        ),
        (
            [GRADE],
            lambda: Impossible({"grade": ("low", "high")}),
            "impossible .grade. leaves nothing possible",
        ),
        ([AGE], lambda: Impossible({}), "names no column"),
        ([CITY, STATE], lambda: Allowed(["city"], [("York",)]), "two or more columns"),
        ([CITY, STATE], lambda: Allowed(["city", "state"], []), "city, state.*no combinations"),
        (
            [CITY, STATE],
            lambda: Allowed(["city", "state"], [("York",)]),
            "combination 1 does not have 2 values",
        ),
        (
            [CITY, STATE],
            lambda: Allowed(["city", "state"], [("York", "Mars")]),
            "'state'.*in combination 1",
        ),
        (
            [CITY, STATE],
            lambda: Depends("city", "state", {"York": "England"}),
            "'city'.*no line for category 2",
        ),
        (
            [CITY, STATE],
            lambda: Depends("city", "state", {**TABLE, " York": "Germany"}),
            "'city'.*two lines",
        ),
        ([CITY, STATE], lambda: Ordered(["city", "state"]), "'city'.*no order"),
        ([AGE, FIRST], lambda: Ordered(["age", "first"]), "'first'.*cannot be compared.*'age'"),
        ([AGE], lambda: Ordered(["age", "age"]), "each once"),
        ([AGE], lambda: Impossible({"age": (0, 14)}, violating="drop"), "violating.*keep, refuse"),
        ([Real("x", 0, 9)], lambda: Impossible({"x": float("nan")}), "'x'.*not a value"),
        ([FIRST], lambda: Impossible({"first": (0, 1)}), "'first'.*names 0"),
        (
            [Coded("a", 4000), Coded("b", 4000)],
            lambda: Allowed(["a", "b"], [(0, 0)]),
            "'a'.*16,000,000 combinations.*fewer",
        ),
        (
            [Integer("a", 0, 9, atoms=[3]), Integer("b", 0, 9), Integer("c", 0, 9)],
            lambda: Ordered(["a", "b", "c"]),
            "'a'.*no atoms",
        ),
    ],
)
def test_errors_name_the_column_and_a_remedy(
    columns: list[Any], constraint: Any, words: str
) -> None:
    with pytest.raises(SchemaError, match=words) as caught:
        Schema(columns, constraints=[constraint()])
    assert caught.value.remedy


def test_constraints_that_leave_no_row_are_refused_and_the_last_straw_is_named() -> None:
    a, b, c = (Coded(n, 2) for n in "abc")
    chain = [
        Depends("a", "b", {0: 0, 1: 1}),
        Depends("b", "c", {0: 1, 1: 0}),
        Depends("c", "a", {0: 0, 1: 1}),
    ]
    assert Schema([a, b, c], constraints=chain[:2]).domain.zeros
    with pytest.raises(SchemaError, match=r"depends \(c, a\) and those before it leave no row"):
        Schema([a, b, c], constraints=chain)
    with pytest.raises(SchemaError, match=r"'a'.*two orders"):
        Schema([a, b, c], constraints=[Ordered(["a", "b"]), Ordered(["c", "a"])])
    with pytest.raises(SchemaError, match="A constraint is not of a known kind"):
        Schema([a], constraints=["a"])  # type: ignore[list-item]


# The file.

FULL = [
    Impossible({"age": (0, 14), "marital": ["married", None]}, violating="refuse"),
    Allowed(["city", "state"], [("York", "England"), ("Bonn", None), ("Bonn", "Germany")]),
    Depends("grade", "smokes", {"low": True, ("middle", "high"): False}),
    Ordered(["first", "last"]),
    Impossible({"seen at": (datetime(2020, 1, 1, 12), None), "hours": [0, (8.0, 24.0)]}),
]
EVERY = [
    AGE,
    MARITAL,
    CITY,
    STATE,
    GRADE,
    Boolean("smokes"),
    FIRST,
    LAST,
    Timestamp("seen at", datetime(2020, 1, 1), datetime(2020, 1, 1, 23), unit="hour", bins=2),
    Real("hours", 0, 24, bins=3, atoms=[0]),
]


def test_the_file_says_it_all_and_in_one_form() -> None:
    schema = Schema(EVERY, constraints=FULL)
    again = Schema.from_toml(schema.to_toml())
    assert again == schema
    assert again.to_toml() == schema.to_toml()
    assert again.hash() == schema.hash() != Schema(EVERY).hash()
    for one, other in zip(schema.domain.zeros, again.domain.zeros, strict=True):
        assert one.clique == other.clique
        assert np.array_equal(one.possible, other.possible)
    assert Schema(EVERY).to_toml() in schema.to_toml()


def test_a_list_in_a_file_beside_the_schema(tmp_path: Path) -> None:
    head = Schema([CITY, AGE, STATE]).to_toml()
    named = '[[constraint]]\ncolumns = ["city", "state"]\nallowed = "list.csv"\n'
    (tmp_path / "schema.toml").write_text(head + named)
    (tmp_path / "list.csv").write_text("state,city\nEngland,York\n,Hull\n")
    schema = Schema.load(tmp_path / "schema.toml")
    assert schema.constraints == (
        Allowed(["city", "state"], [("York", "England"), ("Hull", None)]),
    )
    assert Schema.from_toml(schema.to_toml()) == schema  # the file's content is in the schema now
    with pytest.raises(SchemaError, match=r"'list.csv'.*not read from a folder"):
        Schema.from_toml(head + named)
    bad = {
        "": "does not have the columns city, state",
        "city\nYork\n": "does not have the columns city, state",
        "city,state\nYork\n": "fields in line 2",
        "city,state\nYork,Mars\n": "'state'.*in combination 1",
        'city,state\n"York': "cannot be read",
    }
    for text, words in bad.items():
        (tmp_path / "list.csv").write_text(text)
        with pytest.raises(SchemaError, match=words):
            Schema.load(tmp_path / "schema.toml")
    (tmp_path / "list.csv").unlink()
    with pytest.raises(SchemaError, match=r"'list.csv'.*cannot be read"):
        Schema.load(tmp_path / "schema.toml")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("[[constraint]]", "not of one kind"),
        ('[[constraint]]\nordered = ["a", "b"]\nimpossible = {a = 1}', "not of one kind"),
        ('[[constraint]]\nordered = ["age", "grade"]\nwhen = 1', "unknown key 'when'"),
        ("[[constraint]]\nordered = 3", "two or more columns"),
        ("[[constraint]]\nimpossible = 3", "not a table"),
        ("[[constraint]]\nimpossible = {age = {above = 3}}", "from = 0"),
        ("[[constraint]]\nimpossible = {age = [[1]]}", "not a value"),
        ('[[constraint]]\nallowed = [["York", "England"]]', "names no columns"),
        ('[[constraint]]\ncolumns = ["city", "state"]\nallowed = [3]', "neither a list"),
        ('[[constraint]]\ncolumns = ["city"]\ndepends = [["York"]]', "two columns"),
        (
            '[[constraint]]\ncolumns = ["city", "state"]\ndepends = [["York", "England"], ["York", "Bonn"]]',
            "two lines",
        ),
        ("[constraint]\nordered = 3", "not a list of tables"),
    ],
)
def test_errors_in_the_file(written: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words) as caught:
        Schema.from_toml(Schema(EVERY).to_toml() + written)
    assert caught.value.remedy


def test_an_error_in_the_file_names_the_line() -> None:
    head = Schema(EVERY).to_toml()
    with pytest.raises(SchemaError, match=f"Line {head.count(chr(10)) + 1}: "):
        Schema.from_toml(head + "[[constraint]]\nordered = 3\n")


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 120),
    st.floats(allow_nan=True),
    st.text(max_size=3),
    st.sampled_from([*CITY.labels(), *STATE.labels(), *MARITAL.labels(), "low", "age", "first"]),
    st.dates(date(2019, 1, 1), date(2021, 12, 31)),
    st.datetimes(datetime(2019, 12, 31), datetime(2020, 1, 2)),
)
ELEMENTS = st.one_of(SCALARS, st.tuples(SCALARS, SCALARS))
NAMES = st.sampled_from([c.name for c in EVERY] + ["nobody"])


@st.composite
def declarations(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(["impossible", "allowed", "depends", "ordered"]))
    names = draw(st.lists(NAMES, min_size=1, max_size=3))
    if kind == "ordered":
        return lambda: Ordered(names)
    if kind == "impossible":
        where = {n: draw(st.one_of(ELEMENTS, st.lists(ELEMENTS, max_size=3))) for n in names}
        return lambda: Impossible(where)
    if kind == "allowed":
        rows = draw(st.lists(st.tuples(*[ELEMENTS] * len(names)), max_size=3))
        return lambda: Allowed(names, rows)
    table = draw(st.dictionaries(ELEMENTS, ELEMENTS, max_size=3))
    return lambda: Depends(names[0], names[-1], table)


@seeded(400)
@given(made=declarations())
def test_any_declaration_is_a_schema_error_or_a_schema_that_survives_its_file(made: Any) -> None:
    try:
        schema = Schema(EVERY, constraints=[made()])
    except SchemaError:
        return
    again = Schema.from_toml(schema.to_toml())
    assert again.to_toml() == schema.to_toml()
    for one, other in zip(schema.domain.zeros, again.domain.zeros, strict=True):
        assert np.array_equal(one.possible, other.possible)


# Rows.


def rows_of(schema: Schema, count: int, seed: int) -> Codes:
    """Random records without an impossible combination."""
    rng = np.random.default_rng(seed)
    codes = Codes.of(
        schema.domain, {a: rng.integers(schema.domain.size(a), size=count) for a in schema.domain}
    )
    right = np.ones(count, dtype=bool)
    for z in schema.domain.zeros:
        right &= z.possible[tuple(codes.column(a) for a in z.clique)]
    return codes.take(np.flatnonzero(right))


def moment(bins: int, name: str, **more: Any) -> Timestamp:
    return Timestamp(
        name, datetime(2020, 1, 1), datetime(2020, 1, 3), unit="minute", bins=bins, **more
    )


ORDERS: dict[str, list[Any]] = {
    "dates": [FIRST, LAST],
    "numbers": [
        Integer("a", 0, 20, bins=2, atoms=[10]),
        Real("b", 0, 20, bins=3, atoms=[0, 10], missing=True),
    ],
    "decimals": [Real("a", 0, 1, bins=7, decimals=1), Real("b", 0, 1, bins=3, decimals=1)],
    "one point": [Integer("a", 10, 20, bins=1), Integer("b", 0, 10, bins=1)],
    "a real point": [Real("a", 10, 20, bins=1), Real("b", 0, 10, bins=1)],
    "an atom in the way": [Integer("a", 5, 9, bins=1), Integer("b", 0, 9, bins=1, atoms=[5, 7])],
    "times": [moment(3, "a"), moment(4, "b", missing=True), moment(5, "c"), moment(1, "d")],
    "a chain of integers": [
        Integer("a", 10, 30, bins=2),
        Integer("b", 0, 40, bins=1),
        Integer("c", 0, 10, bins=1),
    ],
}


@pytest.mark.parametrize("name", ORDERS)
def test_values_keep_the_order_and_their_bins(name: str) -> None:
    columns = ORDERS[name]
    schema = Schema(columns, constraints=[Ordered([c.name for c in columns])])
    codes = rows_of(schema, 4000, 1)
    assert len(codes) > 100
    decoded = schema.decode(codes, rng=np.random.default_rng(2))
    for row in decoded.to_pylist():
        known = [v for v in row.values() if v is not None]
        assert known == sorted(known)
    assert np.array_equal(schema.encode(decoded).values, codes.values)


def test_two_values_of_one_bin_are_drawn_evenly_from_the_pairs_in_order() -> None:
    columns = [Integer("a", 0, 2, bins=1), Integer("b", 0, 2, bins=1)]
    schema = Schema(columns, constraints=[Ordered(["a", "b"])])
    count = 60_000
    codes = Codes.of(schema.domain, {a: np.zeros(count, dtype=int) for a in "ab"})
    drawn = schema.decode(codes, rng=np.random.default_rng(3))
    pairs = np.zeros((3, 3))
    np.add.at(pairs, (drawn["a"].to_numpy(), drawn["b"].to_numpy()), 1)
    # six pairs: each count within six standard deviations (one false alarm in 10^8)
    assert (abs(pairs[np.triu_indices(3)] - count / 6) < 6 * np.sqrt(count * 5 / 36)).all()
    assert pairs.sum() == count


def test_the_preflight_counts_rows_and_only_a_policy_refuses_them() -> None:
    kept = Schema([AGE, MARITAL], constraints=[Impossible({"age": (0, 14), "marital": "married"})])
    rows = pa.table({"age": [3, 14, 15, 40], "marital": ["married", "married", "married", None]})
    found = kept.preflight(rows)
    assert [(c.name, c.policy, c.rows) for c in found.constraints] == [
        ("impossible (age, marital)", "keep", 2)
    ]
    assert found.passed
    assert any("2 rows violate" in note for note in found.notes)
    assert (
        read_table(rows, kept).count([("age", "marital")])["age", "marital"][0, 1] == 2
    )  # they stay in the counts
    strict: Any = replace(kept.constraints[0], violating="refuse")  # type: ignore[type-var]
    refused = Schema(kept.columns, constraints=[strict])
    with pytest.raises(
        DataError, match=r"2 rows violate the constraint impossible .age, marital., and its policy"
    ):
        read_table(rows, refused)
    assert check_table(rows.slice(2), refused).passed
    assert (found + found).constraints[0].rows == 4


def test_a_misspelt_category_is_proposed_unless_it_may_come_from_a_file(tmp_path: Path) -> None:
    ward = Categorical("ward", ["surgery", "medicine"])
    with pytest.raises(SchemaError, match=r"'surgey', which.*Did you mean 'surgery'\? It has"):
        Schema([ward, AGE], constraints=[Impossible({"age": (0, 14), "ward": ["surgey"]})])
    with pytest.raises(SchemaError, match=r"'unlike', which it cannot hold\. It has"):
        Schema([ward], constraints=[Impossible({"ward": "unlike"})])
    (tmp_path / "wards.csv").write_text("ward\nsurgery\nmedicine\n")
    head = '[schema]\nversion = 1\n[[column]]\nname = "ward"\nkind = "categorical"\n'
    end = 'categories = "wards.csv"\n[[constraint]]\nimpossible = {ward = "surgey"}\n'
    (tmp_path / "s.toml").write_text(head + end)
    with pytest.raises(SchemaError, match=r"'surgey', which it cannot hold\. It has"):
        Schema.load(tmp_path / "s.toml")
