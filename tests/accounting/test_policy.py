"""The policy file: what it forbids is refused by name, before anything is spent or written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import margrave
from margrave.accounting import (
    AddRemovePerson,
    AddRemoveRow,
    Budget,
    Ledger,
    Policy,
    ReplaceRow,
)
from margrave.errors import InputError, PolicyError
from margrave.privacy import SeededRandomness, protect
from tests.support.conformance import SIZES, memory_table

TABLE = memory_table(SIZES, [(0, 0, 0)], [1])
TEXT = """
[policy]
version = 1
max_epsilon = 1.0
max_delta = 1e-6
units = ["add-remove-row", "add-remove-person:5"]
forbidden_columns = ["SSN", "name"]
require_ledger = true
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A policy and a ledger."""
    (tmp_path / "policy.toml").write_text(TEXT)
    Ledger(tmp_path / "ledger").init("d", unit=AddRemoveRow(), cap=Budget.approx(9.0, 1e-6))
    return tmp_path


def opened(folder: Path, **changed: Any) -> None:
    settings: dict[str, Any] = {"unit": AddRemoveRow(), "budget": Budget.approx(1.0, 1e-6)}
    settings |= {"ledger": folder / "ledger", "dataset": "d", "policy": folder / "policy.toml"}
    settings |= {"table": TABLE, "journal": folder / "journal", **changed}
    with protect(settings.pop("table"), **settings):
        pass


def test_what_is_allowed(folder: Path) -> None:
    opened(folder)
    assert len(Ledger(folder / "ledger").datasets()[0].runs) == 1


@pytest.mark.parametrize(
    ("changed", "rule", "words"),
    [
        ({"budget": Budget.approx(1.0000001, 1e-6)}, "max_epsilon", "1 is the most"),
        ({"budget": Budget.approx(1.0, 2e-6)}, "max_delta", "delta is 2e-06"),
        ({"unit": ReplaceRow()}, "units", "add-remove-row, add-remove-person:5"),
        ({"unit": AddRemovePerson(4)}, "units", "the unit is add-remove-person:4"),
        ({"table": memory_table({"a": 2, " ssn": 2}, [])}, "forbidden_columns", "' ssn'"),
        ({"table": memory_table({"NAME": 2}, [])}, "forbidden_columns", "ignore"),
        ({"ledger": None, "dataset": None}, "require_ledger", "--ledger FILE --dataset ID"),
    ],
)
def test_what_is_forbidden(folder: Path, changed: dict[str, Any], rule: str, words: str) -> None:
    before = (folder / "ledger").read_bytes()
    with pytest.raises(
        PolicyError, match=rf"policy\.toml forbids .* by {rule}: .*Nothing was spent"
    ) as caught:
        opened(folder, **changed)
    assert words in str(caught.value)
    assert (folder / "ledger").read_bytes() == before
    assert not (folder / "journal").exists()


def test_a_policy_may_name_the_ledger_and_the_data_set(folder: Path) -> None:
    file = Ledger(folder / "ledger")
    file.init("other", unit=AddRemoveRow(), cap=Budget.approx(9.0, 1e-6))
    opened(folder, policy=Policy(ledger=file.identity(), dataset="d"))
    Ledger(folder / "new").init("d", unit=AddRemoveRow(), cap=Budget.approx(900.0, 1e-6))
    for changed, rule in (
        ({"ledger": folder / "new"}, "ledger"),
        ({"dataset": "other"}, "dataset"),
        ({"ledger": None, "dataset": None}, "ledger"),
    ):
        with pytest.raises(PolicyError, match=f"by {rule}: "):
            opened(folder, policy=Policy(ledger=file.identity(), dataset="d"), **changed)
    with pytest.raises(InputError, match="ledger is not a text"):
        Policy(ledger=" ")


def test_noise_that_can_be_repeated_is_for_no_policy(folder: Path) -> None:
    with pytest.raises(PolicyError, match="not the operating system's"):
        opened(folder, randomness=SeededRandomness(0))


def test_no_rules_forbid_nothing_and_columns_that_only_name_persons_are_no_columns() -> None:
    Policy().check(TABLE.schema, ReplaceRow(), Budget.approx(100.0, 0.5), ledger=None, dataset=None)
    rules = Policy(forbidden_columns=("who",))
    rules.check(TABLE.schema, AddRemoveRow(), Budget.approx(1.0, 1e-9), ledger=None, dataset=None)


def test_synthesize_asks_the_policy_before_it_reads_rows(folder: Path) -> None:
    with pytest.raises(PolicyError, match="max_epsilon"):
        margrave.synthesize(
            "nowhere.csv",
            TABLE.schema,
            epsilon=2.0,
            delta=1e-9,
            unit=AddRemoveRow(),
            policy=Policy(max_epsilon=1.0, max_delta=1e-6),
        )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not one \\[policy\\] table"),
        ("[policy]\n", "version"),
        ("[policy]\nversion = 2\n", "version"),
        ("[policy]\nversion = true\n", "version"),
        ("[policy]\nversion = 1\n[other]\n", "not one"),
        ("policy = 1\n", "not one"),
        ("[policy\n", "TOML"),
        ("\udcff", "TOML"),
        ("[policy]\nversion = 1\nmax_epsilonn = 1\n", "unknown rule 'max_epsilonn'"),
        ("[policy]\nversion = 1\nmax_epsilon = 1\n", "epsilon or delta alone"),
        ("[policy]\nversion = 1\nmax_delta = 1e-6\n", "epsilon or delta alone"),
        ("[policy]\nversion = 1\nmax_epsilon = -1\n", "max_epsilon"),
        ("[policy]\nversion = 1\nmax_epsilon = nan\n", "max_epsilon"),
        ('[policy]\nversion = 1\nmax_delta = "small"\n', "max_delta"),
        ("[policy]\nversion = 1\nmax_delta = true\n", "max_delta"),
        ('[policy]\nversion = 1\nunits = "add-remove-row"\n', "units is not a list"),
        ('[policy]\nversion = 1\nunits = ["rows"]\n', "not a unit of privacy"),
        ("[policy]\nversion = 1\nforbidden_columns = [1]\n", "forbidden_columns is not a list"),
        ("[policy]\nversion = 1\nrequire_ledger = 1\n", "require_ledger"),
    ],
)
def test_a_policy_that_is_no_policy_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=words):
        protect(TABLE, unit=AddRemoveRow(), budget=Budget.approx(1.0, 1e-9), policy=path)


def test_a_policy_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            Policy.load(path)
