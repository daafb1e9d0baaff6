"""Constraints that name columns to learn: they rule out cells whose values they all rule out, and fail before a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import margrave
from margrave.accounting import AddRemoveRow
from margrave.data import read_table
from margrave.errors import InputError, SchemaError
from margrave.learning_stage import budget_for
from margrave.mechanisms import PrivBayes
from margrave.privacy import protect
from margrave.run import Run
from margrave.schema import (
    Allowed,
    Categorical,
    Constraint,
    Depends,
    Impossible,
    Integer,
    Learn,
    Ordered,
    Real,
    Schema,
)
from margrave.schema.learn import likely_domain
from tests.support.strategies import seeded

TOWNS = ("York", "Hull", "Bonn", "Kiel")
STATES = ("England", "Germany")
OPEN = [Learn("town", "categorical"), Learn("age", "integer"), Learn("year", "integer")]
STATE = Categorical("state", STATES, missing=True)
IN = dict(zip(TOWNS, ("England", "England", "Germany", "Germany"), strict=True))
Judge = Callable[[dict[str, Any]], bool]


def town(*discovered: str) -> Categorical:
    return Categorical("town", discovered, other=True, missing=True)


def number(name: str, low: int, high: int, edges: list[int] | None = None) -> Integer:
    return Integer(name, low, high, edges=edges or [], missing=True)


# Each constraint with the columns it names, and the judgment of a row without missing values.
RULES: list[tuple[Constraint, Judge]] = [
    (
        Impossible({"town": ["York", "Bonn"], "age": [(None, 3), 5, 6]}),
        lambda r: not (r["town"] in ("York", "Bonn") and (r["age"] <= 3 or r["age"] in (5, 6))),
    ),
    (
        Allowed(["town", "age"], [("York", (0, 4)), ("Kiel", 9), ("Hull", (2, None))]),
        lambda r: (
            (r["town"], r["age"] <= 4) == ("York", True)
            or (r["town"], r["age"]) == ("Kiel", 9)
            or (r["town"] == "Hull" and r["age"] >= 2)
        ),
    ),
    (Depends("town", "state", IN), lambda r: IN.get(r["town"], r["state"]) == r["state"]),
    (
        Depends("age", "state", {(0, 4): "England", 5: "Germany", 7: "England"}),
        lambda r: {**dict.fromkeys((0, 1, 2, 3, 4, 7), "England"), 5: "Germany"}.get(
            r["age"], r["state"]
        ) == r["state"],
    ),
    (Depends("state", "town", {"England": "Hull", "Germany": "Bonn"}),
     lambda r: r["town"] == {"England": "Hull", "Germany": "Bonn"}[r["state"]]),
    (Ordered(["age", "year"]), lambda r: r["age"] <= r["year"]),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "holds"), RULES)
@given(
    found=st.sets(st.sampled_from(TOWNS)),
    edges=st.tuples(*[st.sets(st.integers(1, 9), max_size=4)] * 2),
)
@seeded(40)
def test_a_cell_is_ruled_out_if_all_its_values_are(
    rule: Constraint, holds: Judge, found: set[str], edges: tuple[set[int], set[int]]
) -> None:
    learned = [
        town(*sorted(found or {"Oslo"})),
        number("age", 0, 9, sorted(edges[0])),
        number("year", 0, 9, sorted(edges[1])),
    ]
    schema = Schema([*OPEN, STATE], constraints=[rule]).with_learned(learned)
    values = {
        "town": [*TOWNS, "Oslo", "Rom"],
        "age": range(10),
        "year": range(10),
        "state": STATES,
    }
    names = list(rule.columns)
    if not schema.constraints:  # the learned columns leave nothing possible: no value may
        assert not any(
            holds(dict(zip(names, row, strict=True)))
            for row in product(*(values[n] for n in names))
        )
        return
    ((_, zeros),) = schema.constraint_zeros
    possible = {z.clique: z.possible for z in zeros}[tuple(names)]
    expected = np.zeros(possible.shape, dtype=np.bool_)
    codes = {n: schema.column(n).encode(pa.array(list(values[n]))).codes for n in names}
    for row in product(*(range(len(values[n])) for n in names)):
        own = {n: values[n][i] for n, i in zip(names, row, strict=True)}
        expected[tuple(codes[n][i] for n, i in zip(names, row, strict=True))] |= holds(own)
    inner = tuple(slice(0, -1) for _ in names)  # without missing values, which violate nothing
    assert (possible[inner] == expected[inner]).all()


def test_values_beyond_learned_bounds_count_as_the_nearest_cell() -> None:
    rule = Allowed(["age", "state"], [((70, 90), "England"), (-5, "Germany")])
    schema = Schema([*OPEN, STATE], constraints=[rule])
    made = schema.with_learned([town("York"), number("age", 0, 60, [30]), number("year", 0, 9)])
    ((_, (zeros,)),) = made.constraint_zeros
    assert zeros.possible[:2, :2].tolist() == [[False, True], [True, False]]


def test_the_open_category_is_ruled_out_only_if_no_listed_value_is_in_it() -> None:
    rule = Allowed(["town", "state"], list(IN.items()))
    schema = Schema([*OPEN, STATE], constraints=[rule])
    rest = [number("age", 0, 9), number("year", 0, 9)]
    for found, other in ((("Hull", "York", "Bonn", "Kiel"), False), (("Hull",), True)):
        ((_, (zeros,)),) = schema.with_learned([town(*found), *rest]).constraint_zeros
        assert zeros.possible[len(found), 1] == other
    ruled = Schema(OPEN, constraints=[Impossible({"town": "other"})])
    made = ruled.with_learned([town("York"), *rest])
    assert made.domain.possible(("town",)) == 3


def test_before_learning_a_constraint_joins_its_columns_and_rules_out_nothing() -> None:
    schema = Schema([*OPEN, STATE], constraints=[Depends("town", "state", IN)])
    (zeros,) = schema.domain.zeros
    assert (zeros.clique, zeros.possible.all()) == (("town", "state"), True)
    likely = likely_domain(schema.domain, schema.to_learn)
    assert likely.zeros[0].possible.shape == likely.shape(("town", "state"))
    assert Schema.from_toml(schema.to_toml()) == schema
    checked = schema.preflight(pa.table({"town": ["York"], "age": [1], "year": [2], "state": [""]}))
    assert not checked.constraints  # no row can be judged yet
    with pytest.raises(InputError, match="impossible combinations"):  # before anything is spent
        Run(
            schema=schema,
            budget=budget_for(schema, 1, 1e-6),
            mechanism=PrivBayes.as_published(),
        )


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Depends("town", "state", IN, "refuse"), "refuses rows"),
        (Depends("town", "state", {"York": "Wales"}), "which it cannot hold"),
        (Depends("state", "town", {"England": "York"}), "has no line for"),
        (Impossible({"age": "old"}), "which it cannot hold"),
        (Impossible({"town": ("A", "B")}), "has no order"),
        (Ordered(["age", "town"]), "no order to keep"),
        (Ordered(["age", "state"]), "no order to keep"),
        (Ordered(["age", "day"]), "cannot be compared"),
        (Ordered(["age", "year", "cost"]), "no learned real numbers"),
    ],
)
def test_what_cannot_hold_whatever_is_learned_is_refused_before(
    rule: Constraint, words: str
) -> None:
    columns = [*OPEN, STATE, Learn("day", "date"), Learn("cost", "real")]
    with pytest.raises(SchemaError, match=words) as caught:
        Schema(columns, constraints=[rule])
    assert caught.value.remedy


def test_what_leaves_no_row_possible_is_dropped_and_so_is_what_names_a_column_left_out() -> None:
    rules = [
        Ordered(["age", "year"]),
        Depends("town", "state", IN),
        Impossible({"age": (0, 4), "state": "England"}),
    ]
    schema = Schema([*OPEN, STATE], constraints=rules)
    late = schema.with_learned([town("York"), number("age", 20, 30), number("year", 0, 9)])
    assert late.constraints == tuple(rules[1:])
    only = Schema([*OPEN, Real("x", 0, 1)], constraints=[rules[0], Impossible({"age": (9, None)})])
    made = only.with_learned([number("age", 9, 9), number("year", 9, 20)])
    assert made.constraints == (rules[0],)
    assert made.ignore == ("town",)
    assert schema.with_learned([number("age", 0, 9)]).constraints == (rules[2],)
    kept = Schema.from_toml(late.to_toml())
    assert (kept, kept.hash()) == (late, late.hash())


def test_a_run_learns_columns_that_constraints_name() -> None:
    rng = np.random.default_rng(1)
    rows = 4000
    at = rng.integers(0, 4, rows)
    came = rng.integers(0, 300, rows)
    left = came + rng.integers(0, 60, rows)
    day = [date(2018, 1, 1) + timedelta(int(d)) for d in range(400)]
    table = pa.table({
        "town": [TOWNS[i] for i in at],
        "state": [IN[TOWNS[i]] for i in at],
        "came": [day[d] for d in came],
        "left": [day[d] for d in left],
    })  # fmt: skip
    columns = [Learn("town", "categorical"), STATE, Learn("came", "date"), Learn("left", "date")]
    rules = [Depends("town", "state", IN), Ordered(["came", "left"])]
    schema = Schema(columns, constraints=rules)
    release = margrave.synthesize(
        table, schema, epsilon=3.0, delta=1e-6, seed=1, mechanism="independent"
    )
    assert release.schema.constraints == tuple(rules)
    drawn = release.sample(1000, seed=1).to_pylist()
    both = [(r["came"], r["left"]) for r in drawn if r["came"] and r["left"]]
    assert both
    assert all(came <= left for came, left in both)
    assert {(r["town"], r["state"]) for r in drawn if r["town"] in IN and r["state"]} <= set(
        IN.items()
    )
    assert release.verify().holds
    assert all(c["impossible"] > 0 for c in release.certificate()["constraints"])


def test_the_gate_adopts_no_schema_with_other_constraints() -> None:
    columns, rules = (
        [Learn("age", "integer"), STATE],
        [Impossible({"age": (0, 4), "state": "England"})],
    )
    schema = Schema(columns, constraints=rules)
    rows = pa.table({"age": [1, 9] * 50, "state": ["Germany", "England"] * 50})
    made = schema.with_learned([number("age", 0, 9, [5])])
    budget = margrave.Budget.approx(1.0, 1e-6)
    with protect(read_table(rows, schema), unit=AddRemoveRow(), budget=budget) as private:
        with pytest.raises(InputError, match="not the gate's"):
            private.adopt(replace(made, constraints=()))
        private.adopt(made)
        assert private.domain.possible(("age", "state")) == 8


def test_a_run_says_which_constraint_it_dropped() -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"a": rng.integers(500, 600, 3000), "b": rng.integers(0, 50, 3000)})
    schema = Schema(
        [Learn("a", "integer"), Learn("b", "integer")], constraints=[Ordered(["a", "b"])]
    )
    said: list[str] = []
    # So large a budget that no range is learned too wide: at 5, one in a hundred reaches below every b.
    run = Run(
        schema=schema, budget=margrave.Budget.approx(1e4, 1e-6), seed=1, mechanism="independent"
    )
    release = run.synthesize(table, on_custodian=said.append)
    assert release.schema.constraints == ()
    assert any("ordered (a, b)" in sentence for sentence in said)
