"""Fit and sample, and the interface of SDV."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import margrave
from margrave.contrib import SDVSynthesizer, Synthesizer, schema_of_sdv
from margrave.errors import (
    CustodianWarning,
    DataError,
    InputError,
    ReleaseError,
    SchemaError,
    UnfinishedError,
)
from margrave.schema import Boolean, Categorical, Hour, Integer, Learn, Ordinal, Schema, Weekday

COST: dict[str, Any] = {"epsilon": 20.0, "delta": 1e-6}
ROWS = pd.DataFrame(
    {"age": [20, 35, 50, 70] * 100, "sex": ["f", "m", "m", "f"] * 100, "id": range(400)}
)
METADATA = {
    "METADATA_SPEC_VERSION": "V2",
    "tables": {
        "visits": {
            "primary_key": "id",
            "columns": {
                "id": {"sdtype": "id"},
                "age": {"sdtype": "numerical", "range_min": 20, "range_max": 70},
                "sex": {"sdtype": "categorical", "range_values": ["f", "m"]},
            },
        }
    },
    "relationships": [],
}


def test_a_fit_spends_once() -> None:
    schema = Schema([Integer("age", 0, 99, bins=10), Categorical("sex", ["f", "m"])], ignore=["id"])
    made = Synthesizer(schema, mechanism="independent", **COST)
    assert repr(made) == "Synthesizer(not fitted)"
    with pytest.raises(DataError):
        made.fit(ROWS.drop(columns="sex"))
    assert made.fit(ROWS) is made, "what was refused before it spent may be tried again"
    rows = made.sample(25, seed=1)
    assert isinstance(rows, pd.DataFrame)
    assert len(rows) == 25
    assert made.release.account.rho_spent == made.release.account.rho_budget
    with pytest.raises(InputError, match="another fit would spend the budget again"):
        made.fit(ROWS)


@pytest.mark.parametrize("failure", [UnfinishedError("x", release=None), RuntimeError()])
def test_a_run_that_failed_after_it_spent_is_not_repeated(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise failure

    monkeypatch.setattr("margrave.contrib.synthesizer.synthesize", fail)
    made = Synthesizer(Schema([Integer("age", 0, 99)], ignore=["sex", "id"]), **COST)
    with pytest.raises(type(failure)):
        made.fit(ROWS)
    assert repr(made) == "Synthesizer(the fit failed)"
    with pytest.raises(InputError, match=r"The fit .* failed.*resume=True"):
        made.fit(ROWS)
    with pytest.raises(InputError, match=r"The fit .* failed.*resume=True"):
        made.sample(3)


def test_a_run_that_failed_leaves_its_noisy_answers() -> None:
    options: dict[str, Any] = {"epsilon": 0.05, "delta": 1e-6, "mechanism": "independent"}
    made = Synthesizer(accept_draft=True, **options)
    with pytest.raises(UnfinishedError) as failed:
        made.fit(ROWS)
    assert made.release is failed.value.release
    assert made.release.account.rho_spent
    assert repr(made) == "Synthesizer(the fit failed)"
    with pytest.raises(ReleaseError, match="has no model"):
        made.sample(3)


def test_a_draft_is_accepted_where_asked() -> None:
    made = Synthesizer(accept_draft=True, mechanism="independent", **COST).fit(ROWS)
    assert "age" in made.sample(5).columns
    assert made.release.schema.sources["age"].of == "learned"


@pytest.mark.parametrize("preflight", ["sealed", "seal"])
def test_a_sealed_run_drafts_no_schema(preflight: str, recwarn: pytest.WarningsRecorder) -> None:
    """Its caller is not the custodian, and a draft asks about the rows."""
    options: dict[str, Any] = {"preflight": preflight, "ledger": "v.ledger", "dataset": "visits"}
    with pytest.raises(InputError, match="accept_draft reads the rows for the custodian"):
        Synthesizer(accept_draft=True, **COST, **options).fit(ROWS)
    assert not [w for w in recwarn if issubclass(w.category, CustodianWarning)]


def test_a_sealed_run_has_one_error_for_every_schema(tmp_path: Path) -> None:
    secret, ledger = tmp_path / "secret.toml", tmp_path / "v.ledger"
    secret.write_text('[schema]\nversion = 1\n[[column]]\nname = "ssn"\nkind = "secret"\n')
    cap = margrave.Budget.approx(50.0, 1e-6)
    margrave.Ledger(ledger).init("visits", unit="add-remove-row", cap=cap)
    for file in (secret, tmp_path / "nowhere.toml"):
        with pytest.raises(SchemaError) as refused:
            Synthesizer(file, preflight="sealed", ledger=ledger, dataset="visits", **COST)
        assert str(refused.value).startswith("The schema is not registered for sealed runs")


def test_a_synthesizer_is_saved_and_loaded(tmp_path: Path) -> None:
    schema = Schema([Integer("age", 0, 99, bins=10), Categorical("sex", ["f", "m"])], ignore=["id"])
    made = Synthesizer(schema, mechanism="independent", **COST).fit(ROWS)
    file = tmp_path / "visits.margrave"
    made.save(file)
    with pytest.raises(InputError, match="exists already"):
        made.save(file)
    made.save(file, overwrite=True)
    loaded = Synthesizer.load(file)
    assert repr(loaded) == "Synthesizer(fitted)"
    assert loaded.schema == schema
    rows = loaded.sample(num_rows=9, as_="pandas", where={"sex": "f"}, seed=1)
    assert len(rows) == 9
    assert set(rows["sex"]) == {"f"}
    with pytest.raises(InputError, match="another fit would spend the budget again"):
        loaded.fit(ROWS)


def test_a_name_of_a_release_is_found() -> None:
    made = Synthesizer(Schema([Integer("age", 0, 99)], ignore=["sex", "id"]), **COST)
    with pytest.raises(AttributeError, match=r"It is synthesizer\.release\.numbers\."):
        made.numbers()  # type: ignore[attr-defined]
    assert repr(deepcopy(made)) == "Synthesizer(not fitted)"


def test_sdv_metadata_leaves_ranges_to_be_learned() -> None:
    schema = schema_of_sdv(METADATA)
    assert schema.ignore == ("id",)
    assert schema.columns == (Learn("age", "real"), Learn("sex", "categorical"))
    assert not schema.draft
    public = schema_of_sdv(METADATA, ranges_are_public=True)
    assert public.columns == (
        Learn("age", "real", 20.0, 70.0),
        Categorical("sex", ["f", "m"], missing=True),
    )
    one = {
        "columns": {
            "ok": {"sdtype": "boolean"},
            "day": {"sdtype": "datetime", "datetime_format": "%d.%m.%Y"},
            "at": {"sdtype": "datetime"},
            "size": {"sdtype": "ordinal", "range_values": ["s", "l"]},
            "mail": {"sdtype": "email", "pii": True},
            "n": {"sdtype": "numerical", "computer_representation": "Int64"},
        }
    }
    found = schema_of_sdv(one, ranges_are_public=True)
    assert found.columns == (
        Boolean("ok", missing=True),
        Learn("day", "date", format="%d.%m.%Y"),
        Learn("at", "timestamp"),
        Hour("at.hour", "at", missing=True),
        Weekday("at.weekday", "at", missing=True),
        Ordinal("size", ["s", "l"], missing=True),
        Learn("n", "integer"),
    )
    assert found.ignore == ("mail",)


@pytest.mark.parametrize("missing", [False, True])
def test_a_missing_value_does_not_decide_the_kind_of_a_column(missing: bool) -> None:
    rows = ROWS.copy()
    if missing:
        rows.loc[0, "age"] = None
    made = SDVSynthesizer(METADATA, mechanism="independent", **COST).fit(rows)
    assert made.release.schema.columns[0].kind == "real"


def test_the_interface_of_sdv(tmp_path: Path) -> None:
    metadata = deepcopy(METADATA)
    metadata["tables"]["visits"]["columns"]["age"]["computer_representation"] = "Int64"
    made = SDVSynthesizer(metadata, mechanism="independent", **COST)
    made.fit(ROWS)
    rows = made.sample(num_rows=30)
    assert list(rows.columns) == ["age", "sex"]
    assert str(rows["age"].dtype) == "Int64", "the metadata says that they are whole"
    assert made.get_metadata() is metadata
    made.save(tmp_path / "visits.margrave")
    assert margrave.Release.load(tmp_path / "visits.margrave").verify().holds
    loaded = SDVSynthesizer.load(tmp_path / "visits.margrave")
    assert loaded.sample(num_rows=3).num_rows == 3
    with pytest.raises(InputError, match="does not hold the metadata"):
        loaded.get_metadata()
