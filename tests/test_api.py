"""``margrave.synthesize``: how a mechanism may be named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import margrave
from conformance import ALONE
from margrave import MST, Schema
from margrave.errors import InputError
from margrave.mechanisms import MECHANISMS

SCHEMA = Schema.coded({"a": 2, "b": 3})
TABLE = pa.table({"a": np.arange(90) % 2, "b": np.arange(90) % 3})


@pytest.mark.parametrize("name", ALONE)
def test_a_mechanism_by_its_name(name: str) -> None:
    release = margrave.synthesize(TABLE, SCHEMA, epsilon=1.0, delta=1e-6, mechanism=name)
    assert release.config == MECHANISMS[name]().config()


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


@pytest.mark.parametrize("seed", [-1, 1.5, "1"])
def test_what_is_no_seed_is_refused_before_the_table_is_read(seed: Any) -> None:
    with pytest.raises(InputError, match="is no seed"):
        margrave.synthesize("nowhere.csv", SCHEMA, epsilon=1.0, delta=1e-6, seed=seed)
