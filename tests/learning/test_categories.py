"""Categories learned from discovered values, and releases that hold them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import margrave
from margrave.accounting import AddRemovePerson, AddRemoveRow, Budget, Unit
from margrave.cli.main import run
from margrave.data import read_table
from margrave.errors import InputError, ReleaseError, SchemaError, UnfinishedError
from margrave.learning import advice_on, categories_of
from margrave.mechanisms import Independent
from margrave.privacy import SeededRandomness, protect
from margrave.release import Release
from margrave.report.page import render
from margrave.schema import Categorical, Learn, Schema
from margrave.transcript import Discovery

COLUMN = Learn("town", "categorical")
BUDGET = Budget.approx(2.0, 1e-6, threshold_delta=1e-7)


def discovery(values: dict[str, int], listed: int = 0, **changes: Any) -> Discovery:
    counts = np.array([*values.values(), 7])
    price = {"threshold": 57, "scale": 9.0, "rho": Fraction(1, 162), "delta": Fraction(1, 10**9)}
    return Discovery("town", tuple(values), counts, listed, **(price | changes))


# The column.


def learned(found: Discovery) -> Categorical:
    column = categories_of(COLUMN, found)
    assert column is not None
    return column


def test_values_become_categories_with_other_and_missing() -> None:
    column = learned(discovery({"Basel": 130, "Bern": 200}))
    assert column == Categorical("town", ["Basel", "Bern"], other=True, missing=True)
    codes = column.encode(pa.array(["Bern", None, "Zug", "Basel"])).codes
    assert [column.labels()[c] for c in codes] == ["Bern", "(missing)", "other", "Basel"]
    assert column.size <= COLUMN.size


def test_the_most_frequent_are_kept_beside_all_listed_ones() -> None:
    frequent = {f"{i:03}": 100 + i for i in range(150)}
    column = learned(discovery(frequent))
    assert column.categories == tuple(f"{i:03}" for i in range(50, 150))
    assert column.size == COLUMN.size
    beside = learned(discovery({"Zug": 0, "Genf": -9, **frequent}, listed=2))
    assert beside.categories == ("Zug", "Genf", *(f"{i:03}" for i in range(52, 150)))


def test_equal_counts_are_kept_by_their_texts() -> None:
    column = learned(discovery({f"{i:03}": 60 for i in range(150)}))
    assert column.categories == tuple(f"{i:03}" for i in range(100))


def test_a_value_called_other_is_the_open_category() -> None:
    column = learned(discovery({"Bern": 100, "other": 90}))
    assert column.labels() == ["Bern", "other", "(missing)"]
    assert categories_of(COLUMN, discovery({"other": 90})) is None


def test_no_value_above_the_threshold_is_explained() -> None:
    found = discovery({}, threshold=428, scale=71.0)
    assert categories_of(COLUMN, found) is None
    words = advice_on(found)
    assert "A category needs a noisy count of 428" in words
    assert "with 4 times the epsilon about 107 would do" in words
    assert "with 1,000 times the delta about 339" in words
    assert learned(discovery({"Zug": 0}, listed=1)).categories == ("Zug",)


@pytest.mark.parametrize("listed", [["a\tb"], ["x" * 201], [f"{i}" for i in range(101)]])
def test_listed_categories_are_as_short_and_few_as_discovered_ones(listed: list[str]) -> None:
    with pytest.raises(SchemaError, match="it lists more than 100 categories, or one with control"):
        Learn("town", "categorical", categories=tuple(listed))


def test_a_run_says_which_epsilon_or_delta_would_do() -> None:
    rows = pa.table({"town": [f"v{i}" for i in range(900)], "sort": ["a"] * 900})
    own = Schema([COLUMN, Categorical("sort", ["a", "b"])])
    with pytest.raises(UnfinishedError, match=r"'town' lie\. .* A category needs .* with 4 times"):
        margrave.synthesize(rows, own, epsilon=1.0, delta=1e-9)


def test_a_run_without_any_threshold_is_refused_before_it_reads_rows() -> None:
    own = Schema([COLUMN, Categorical("sort", ["a", "b"])], person="who")
    budget = Budget.approx(1.0, 1e-9, 1e-10)
    margrave.Run(schema=own, budget=budget, unit=AddRemovePerson(100))
    with pytest.raises(InputError, match="no threshold shows any value"):
        margrave.Run(schema=own, budget=budget, unit=AddRemovePerson(10_000))


def test_a_plan_states_delta_for_thresholds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Schema([COLUMN, Categorical("sort", ["a", "b"])]).save(tmp_path / "s.toml")
    words = ["plan", "-s", str(tmp_path / "s.toml"), "--epsilon", "1", "--delta", "1e-9"]
    assert run(words) == 0
    assert "delta 1e-09 (1e-10 of it for thresholds)" in capsys.readouterr().out
    own = Schema([Categorical("sort", ["a", "b"])])
    plain = margrave.Run(schema=own, budget=Budget.approx(1.0, 1e-9)).plan().to_dict()
    assert "threshold_delta" not in plain


# Releases.


def made(unit: Unit, private: bool = False) -> Release:
    by_person = isinstance(unit, AddRemovePerson)
    towns = ["Bern"] * 500 + ["Basel & <b>"] * 300 + ["Zug"] + [None] * 99
    frame = {"town": pa.array(towns), "sort": ["a", "b"] * 450}
    own = Schema([COLUMN, Categorical("sort", ["a", "b"])], person="who" if by_person else None)
    rows = pa.table(frame | ({"who": list(range(1, 901))} if by_person else {}))
    source = None if private else SeededRandomness(1)
    with protect(read_table(rows, own), unit=unit, budget=BUDGET, randomness=source) as gate:
        delta = Fraction(BUDGET.threshold_delta)
        found = gate.discover("town", rho=gate.rho / 4, delta=delta, listed=["Genf"])
        town = categories_of(COLUMN, found)
        assert town is not None
        gate.adopt(replace(own, columns=(town, own.columns[1])))
        return Independent().run(gate)


@pytest.fixture(scope="module")
def release() -> Release:
    return made(AddRemoveRow(), private=True)


@pytest.fixture(scope="module")
def path(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("release") / "r.margrave"
    release.save(file)
    return file


def test_a_release_keeps_discovered_values(release: Release, path: Path) -> None:
    assert release.verify().holds
    assert release.verify().notes == ()
    again = Release.load(path)
    assert again.verify().holds
    assert again.account == release.account
    assert again.transcript.to_dict() == release.transcript.to_dict()
    (found,) = again.transcript.discoveries
    assert found.values == ("Genf", "Basel & <b>", "Bern")
    assert release.schema.columns[0].labels() == [*found.values, "other", "(missing)"]
    assert set(release.sample(500, seed=1)["town"].to_pylist()) <= {*found.values, "other", None}


def test_the_certificate_and_the_report_state_delta_and_threshold(release: Release) -> None:
    facts = release.certificate()
    assert facts["threshold_delta"] == 1e-7
    (entry,) = (e for e in facts["transcript"] if "discovered_in" in e)
    assert (entry["discovered"], entry["listed"], entry["delta"]) == (2, 1, 1e-7)
    assert facts["ledger"][0]["delta"]["exact"] == str(Fraction(1e-7))
    assert "delta" not in facts["ledger"][1]
    page = render(release)
    assert "delta 1e-07" in page
    assert "<b>" not in page.partition("Basel")[2][:20]


def test_persons_verify_too() -> None:
    found = made(AddRemovePerson(3)).verify()
    assert found.findings == ()


Change = Callable[[dict[str, Any]], Any]


def entry_of(manifest: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = next(e for e in manifest["transcript"] if e["type"] == "discovery")
    return entry


FORGERIES: dict[str, tuple[Change, str]] = {
    "a lower threshold": (
        lambda m: entry_of(m).update(threshold=entry_of(m)["threshold"] - 1),
        "its threshold needs",
    ),
    "a smaller delta in the entry": (
        lambda m: entry_of(m).update(delta=str(Fraction(1e-8))),
        "its threshold needs",
    ),
    "a debit without its delta": (
        lambda m: m["account"]["debits"][0].pop("delta"),
        "states another delta",
    ),
    "no delta for thresholds": (
        lambda m: m["account"].pop("threshold_delta"),
        "more than the budget's 0",
    ),
    "all of delta for thresholds": (
        lambda m: m["account"].update(threshold_delta=m["account"]["delta"]),
        "delta between",
    ),
    "conversion at the whole delta": (
        lambda m: m["account"].update(
            epsilon=Budget.zcdp(Fraction(m["account"]["rho_budget"]), 1e-6).epsilon
        ),
        "does not imply",
    ),
    "less noise than was paid": (
        lambda m: entry_of(m).update(scale=entry_of(m)["scale"] / 2),
        "less than its price",
    ),
    "a threshold above a count": (
        lambda m: entry_of(m).update(threshold=10_000),
        "below the threshold",
    ),
    "a debit of another kind": (
        lambda m: m["account"]["debits"][0].update(what="measure town"),
        "of the kind 'discover'",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_thresholds_are_found(name: str, path: Path, tmp_path: Path) -> None:
    change, finding = FORGERIES[name]
    with pytest.raises(ReleaseError, match=finding):
        Release.load(forged(path, change, tmp_path))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: entry_of(m)["values"].pop(),
        lambda m: entry_of(m)["values"].append("Bern"),
        lambda m: entry_of(m)["values"].__setitem__(2, "Bern\n"),
        lambda m: entry_of(m)["values"].__setitem__(2, "B" * 201),
        lambda m: entry_of(m)["values"].__setitem__(2, ""),
        lambda m: entry_of(m)["values"].__setitem__(2, 4),
        lambda m: entry_of(m).update(listed=4),
        lambda m: entry_of(m).update(threshold=-1),
        lambda m: entry_of(m).update(delta="1e-7"),
        lambda m: entry_of(m).pop("counts"),
        lambda m: m["account"].update(threshold_delta=-1e-8),
        lambda m: m["account"]["debits"][0].update(delta="x"),
    ],
)
def test_damaged_discoveries_are_refused(change: Change, path: Path, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError):
        Release.load(forged(path, change, tmp_path), verify=False)


def forged(path: Path, change: Change, folder: Path) -> Path:
    target = folder / "forged.margrave"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as out:
        manifest = json.loads(source.read("manifest.json"))
        change(manifest)
        for name in source.namelist():
            plain = json.dumps(manifest) if name == "manifest.json" else source.read(name)
            out.writestr(name, plain)
    return target


def test_the_command_verifies(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(path)]) == 0
    assert "(1e-07 of it for thresholds)" in capsys.readouterr().out
