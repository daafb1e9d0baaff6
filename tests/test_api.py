"""``margrave.synthesize``: how a mechanism and a unit may be named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import margrave
from margrave import Schema
from margrave.accounting import Budget, Ledger, ReplaceRow
from margrave.data import read_table
from margrave.errors import DataError, InputError
from margrave.mechanisms import MECHANISMS, MST, Mechanism
from margrave.planning import plan_of
from margrave.privacy import protect
from margrave.provenance import Provenance
from tests.support.conformance import ALONE

SCHEMA = Schema.coded({"a": 2, "b": 3})
TABLE = pa.table({"a": np.arange(90) % 2, "b": np.arange(90) % 3})


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n == "rap-plus")) for n in ALONE]
)
def test_a_mechanism_by_its_name(name: str) -> None:
    release = margrave.synthesize(TABLE, SCHEMA, epsilon=1.0, delta=1e-6, mechanism=name)
    told = {"eta_used"} if name == "dual-query" else set()  # what the budget made of a parameter
    plain, asked = (
        p.to_dict() for p in (release.provenance, Provenance.of(MECHANISMS[name]().config()))
    )
    assert set(plain["parameters"]) - set(asked["parameters"]) == told
    for fact in told:
        del plain["parameters"][fact]
    assert plain == asked


def test_a_mechanism_with_parameters_and_the_default() -> None:
    release = margrave.synthesize(
        TABLE, SCHEMA, epsilon=1.0, delta=1e-6, mechanism=MST(rare_threshold=0.0)
    )
    assert (release.provenance.mechanism, release.provenance.parameters["rare_threshold"]) == (
        "mst",
        0.0,
    )
    assert margrave.synthesize(TABLE, SCHEMA, epsilon=1.0, delta=1e-6).provenance.mechanism == "aim"


@pytest.mark.parametrize("bad", ["chain", MST, 7, ""])
def test_what_is_no_mechanism_is_refused_with_the_names(bad: object) -> None:
    with pytest.raises(InputError, match=r"is not a mechanism.*aim, mst"):
        margrave.synthesize(TABLE, SCHEMA, epsilon=1.0, delta=1e-6, mechanism=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("absent", ["steps", "run"])
def test_a_mechanism_without_one_of_its_methods_cannot_be_made(absent: str) -> None:
    methods = {
        name: getattr(MST, name) for name in ("reads", "steps", "run", "config") if name != absent
    }
    with pytest.raises(TypeError, match=absent):
        type("Partial", (Mechanism,), methods)()
    with pytest.raises(InputError, match="'Loose' is not a mechanism"):
        margrave.synthesize(
            "nowhere.csv",
            SCHEMA,
            epsilon=1.0,
            delta=1e-6,
            mechanism=type("Loose", (), methods)(),
        )


def test_a_unit_by_its_name(tmp_path: Path) -> None:
    release = margrave.synthesize(
        TABLE, SCHEMA, epsilon=1.0, delta=1e-6, mechanism="independent", unit="replace-row"
    )
    assert release.account.unit == ReplaceRow()
    budget = Budget.approx(1.0, 1e-6)
    with protect(read_table(TABLE, SCHEMA), unit="replace-row", budget=budget) as private:
        assert private.unit == ReplaceRow()
    assert plan_of(SCHEMA.domain, MST(), budget=budget, unit="replace-row").unit == str(
        ReplaceRow()
    )
    made = Ledger(tmp_path / "l").init("d", unit="add-remove-person:5", cap=budget)
    assert made.unit == "add-remove-person:5"
    for wrong, told in (("person", "'person' is not a unit"), (5, r"AddRemovePerson\(K\)")):
        with pytest.raises(InputError, match=told):
            margrave.synthesize("nowhere.csv", SCHEMA, epsilon=1.0, delta=1e-6, unit=wrong)  # type: ignore[arg-type]


def test_a_table_that_was_read_is_taken_with_its_schema_and_no_other(tmp_path: Path) -> None:
    table, book = read_table(TABLE, SCHEMA), tmp_path / "l"
    release = margrave.synthesize(
        table, SCHEMA, epsilon=100.0, delta=1e-6, mechanism="independent", unit="replace-row"
    )
    assert np.allclose(release.model.project(("a",)).values, 45.0, atol=5.0)
    Ledger(book).init("d", unit="add-remove-row", cap=Budget.approx(2.0, 1e-6))
    other = Schema.coded({"a": 3, "b": 2})
    with pytest.raises(DataError, match="was read with another schema"):
        margrave.synthesize(
            table, other, epsilon=1.0, delta=1e-6, mechanism="independent", ledger=book, dataset="d"
        )
    assert not Ledger(book).datasets()[0].runs


@pytest.mark.parametrize("seed", [-1, 1.5, "1"])
def test_what_is_no_seed_is_refused_before_the_table_is_read(seed: Any) -> None:
    with pytest.raises(InputError, match="is not a seed"):
        margrave.synthesize("nowhere.csv", SCHEMA, epsilon=1.0, delta=1e-6, seed=seed)
