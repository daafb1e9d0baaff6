"""``margrave.synthesize``: how a mechanism and a unit may be named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import margrave
from conformance import ALONE
from margrave import MST, Schema
from margrave.data import read_table
from margrave.errors import DataError, InputError
from margrave.mechanisms import MECHANISMS
from margrave.plan import plan
from margrave.privacy import Budget, LedgerFile, ReplaceRow, protect

SCHEMA = Schema.coded({"a": 2, "b": 3})
TABLE = pa.table({"a": np.arange(90) % 2, "b": np.arange(90) % 3})


@pytest.mark.parametrize("name", ALONE)
def test_a_mechanism_by_its_name(name: str) -> None:
    release = margrave.synthesize(TABLE, SCHEMA, epsilon=1.0, delta=1e-6, mechanism=name)
    told = {"eta_used"} if name == "dual-query" else set()  # what the budget made of a parameter
    assert set(release.config) >= told
    assert {k: v for k, v in release.config.items() if k not in told} == MECHANISMS[name]().config()


def test_a_mechanism_with_parameters_and_the_default() -> None:
    release = margrave.synthesize(TABLE, SCHEMA, epsilon=1.0, delta=1e-6, mechanism=MST(rare=0.0))
    assert (release.config["name"], release.config["rare"]) == ("mst", 0.0)
    assert margrave.synthesize(TABLE, SCHEMA, epsilon=1.0, delta=1e-6).config["name"] == "aim"


@pytest.mark.parametrize("bad", ["chain", MST, 7, ""])
def test_what_is_no_mechanism_is_refused_with_the_names(bad: object) -> None:
    with pytest.raises(InputError, match=r"is no mechanism.*aim, mst"):
        margrave.synthesize(TABLE, SCHEMA, epsilon=1.0, delta=1e-6, mechanism=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("absent", ["reads", "steps", "run", "config"])
def test_a_mechanism_without_one_of_its_methods_is_refused_by_that_name(absent: str) -> None:
    methods = {name: getattr(MST, name) for name in ("reads", "steps", "run", "config") if name != absent}
    with pytest.raises(InputError, match=rf"Partial has no method {absent}\(\)\. A mechanism has"):
        margrave.synthesize("nowhere.csv", SCHEMA, epsilon=1.0, delta=1e-6, mechanism=type("Partial", (), methods)())


def test_a_unit_by_its_name(tmp_path: Path) -> None:
    release = margrave.synthesize(TABLE, SCHEMA, epsilon=1.0, delta=1e-6, mechanism="independent", unit="replace-row")
    assert release.account.unit == str(ReplaceRow())
    budget = Budget.approx(1.0, 1e-6)
    with protect(read_table(TABLE, SCHEMA), unit="replace-row", budget=budget) as private:
        assert private.unit == ReplaceRow()
    assert plan(SCHEMA.domain, MST(), budget=budget, unit="replace-row").unit == str(ReplaceRow())
    made = LedgerFile(tmp_path / "l").init("d", unit="add-remove-person:5", cap=budget)
    assert made.unit == "add-remove-person:5"
    for wrong, told in (("person", "'person' is not a unit"), (5, r"AddRemovePerson\(K\)")):
        with pytest.raises(InputError, match=told):
            margrave.synthesize("nowhere.csv", SCHEMA, epsilon=1.0, delta=1e-6, unit=wrong)  # type: ignore[arg-type]


def test_a_table_that_was_read_is_taken_with_its_schema_and_no_other(tmp_path: Path) -> None:
    table, book = read_table(TABLE, SCHEMA), tmp_path / "l"
    release = margrave.synthesize(table, SCHEMA, epsilon=100.0, delta=1e-6, mechanism="independent", unit="replace-row")
    assert np.allclose(release.model.project(("a",)).values, 45.0, atol=5.0)
    LedgerFile(book).init("d", unit="add-remove-row", cap=Budget.approx(2.0, 1e-6))
    other = Schema.coded({"a": 3, "b": 2})
    with pytest.raises(DataError, match="was read with another schema"):
        margrave.synthesize(table, other, epsilon=1.0, delta=1e-6, mechanism="independent", ledger=book, dataset="d")
    assert not LedgerFile(book).datasets()[0].runs


@pytest.mark.parametrize("seed", [-1, 1.5, "1"])
def test_what_is_no_seed_is_refused_before_the_table_is_read(seed: Any) -> None:
    with pytest.raises(InputError, match="is no seed"):
        margrave.synthesize("nowhere.csv", SCHEMA, epsilon=1.0, delta=1e-6, seed=seed)
