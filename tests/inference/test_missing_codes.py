"""Missing-value codes of the schema in conditions and in analyses."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import margrave
from margrave import Release, Schema
from margrave.errors import InputError
from margrave.inference import By, Count, Mean, Proportion
from margrave.inference.run import analyze
from margrave.release.conditions import with_missing
from margrave.schema import Boolean, Categorical, Date, Integer
from margrave.schema.sources import ColumnSource


@pytest.fixture(scope="module")
def release() -> Release:
    rng = np.random.default_rng(3)
    visits, ill = rng.integers(0, 16, 2000), rng.integers(0, 2, 2000).astype(bool)
    visits[:600] = -9
    schema = Schema(
        [Integer("visits", 0, 15, missing=True), Boolean("ill")],
        sources={"visits": ColumnSource(missing_codes=["-9"])},
        ignore=["ward"],
    )
    table = pa.table({"visits": visits, "ill": ill, "ward": ["a", "b"] * 1000})
    made: Release = margrave.synthesize(
        table, schema, epsilon=50.0, delta=1e-9, mechanism="independent", seed=1
    )
    return made


@pytest.mark.parametrize("code", ["-9", -9, "-9.0", "", None])
def test_a_declared_missing_code_in_a_condition_means_missing(release: Release, code: Any) -> None:
    part = release.condition({"visits": code})
    assert part.total == pytest.approx(600, abs=30)
    assert release.condition({"visits": [code, 3]}).total > part.total


@pytest.mark.parametrize("code", ["01.01.1900", "1900-01-01", date(1900, 1, 1)])
def test_a_date_that_means_missing_does_so_in_a_condition_however_it_is_written(code: Any) -> None:
    seen = Date("seen", date(2020, 1, 1), date(2020, 1, 8), format="%d.%m.%Y", missing=True)
    schema = Schema([seen], sources={"seen": ColumnSource(missing_codes=["01.01.1900"])})
    assert with_missing(schema, {"seen": code}) == {"seen": None}
    assert with_missing(schema, {"seen": "2020-01-02"}) == {"seen": "2020-01-02"}


def test_a_category_with_leading_zeros_is_not_the_code_of_a_missing_value() -> None:
    schema = Schema(
        [Categorical("dx", ["09", "10"], missing=True)],
        sources={"dx": ColumnSource(missing_codes=["9"])},
    )
    assert with_missing(schema, {"dx": ["09", "9"]}) == {"dx": ["09", None]}


@pytest.mark.parametrize("value", ["-8", "missing", 16])
def test_the_error_of_another_value_names_how_missing_is_written(
    release: Release, value: Any
) -> None:
    written = r"Missing values are written \{'visits': None\} in Python, and visits= on the command"
    with pytest.raises(InputError, match=written):
        release.condition({"visits": value})
    with pytest.raises(InputError, match=written):
        analyze(release, Mean("ill", where={"visits": value}), m=2)
    with pytest.raises(InputError, match="Missing values are written"):
        analyze(release, Proportion("visits", value), m=2)


def test_a_declared_missing_code_in_an_analysis_means_missing(release: Release) -> None:
    schema, none = release.schema, Proportion("visits", None)
    assert Proportion("visits", "-9").with_missing(schema) == none
    assert By(Count("visits", -9), "ill").with_missing(schema) == By(Count("visits", None), "ill")
    found = analyze(release, Proportion("visits", "-9", where={"visits": ["-9", 3]}), m=2)
    assert found.names == ("visits missing",)
    assert found.estimates[0].estimate > 0.8


def test_an_ignored_column_is_named_as_such(release: Release) -> None:
    words = "'ward' stands under ignore in the schema: to use it, take it out of ignore"
    for name in (Proportion("ward", "a"), By(Mean("visits"), "ward"), "mean visits by ward"):
        with pytest.raises(InputError, match=words):
            analyze(release, name, m=2)
    with pytest.raises(InputError, match=words):
        release.condition({"ward": "a"})
    with pytest.raises(InputError, match="The columns are: visits, ill"):
        release.condition({"wart": "a"})
