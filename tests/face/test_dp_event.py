"""The certificate as an event of dp_accounting: another accountant comes to the same epsilon."""

from __future__ import annotations

import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from dp_accounting import NonPrivateDpEvent
from dp_accounting import dp_event as events
from dp_accounting.rdp import RdpAccountant

import margrave
from margrave.account import Debit
from margrave.contrib import dp_event
from margrave.errors import InputError
from margrave.schema import Categorical, Integer, Learn, Schema
from margrave.transcript import Measurement, Selection
from tests.support.pages import ROOT, blocks

COLUMNS = [Integer("age", 0, 9), Categorical("sex", ["F", "M"]), Integer("visits", 0, 3)]


def rows() -> pa.Table:
    rng = np.random.default_rng(0)
    age, visits = rng.integers(10, size=900), rng.integers(4, size=900)
    sex = np.where(rng.random(900) < 0.6, "F", "M")
    return pa.table({"age": age, "sex": sex, "visits": visits, "id": np.arange(900) // 3 + 1})


@pytest.fixture(scope="module", params=["add-remove-row", "replace-row", "add-remove-person:3"])
def release(request: pytest.FixtureRequest) -> margrave.Release:
    of_persons = "person" in request.param
    schema = Schema(COLUMNS, **({"person": "id"} if of_persons else {"ignore": ["id"]}))
    return margrave.synthesize(
        rows(), schema, epsilon=2.0, delta=1e-6, mechanism="mst", unit=request.param, seed=0
    )


def epsilon_of(event: Any, delta: float) -> float:
    """Return the epsilon of an accountant by Rényi divergences of many orders."""
    accountant = RdpAccountant(orders=1 + np.geomspace(1e-3, 1e3, 4000))
    return float(accountant.compose(event).get_epsilon(delta))


def test_another_accountant_comes_to_the_certificates_epsilon(release: margrave.Release) -> None:
    """Both use the same conversion: the other one at the best of some orders, so it states no less."""
    account = release.account
    assert account.rho_spent == account.rho_budget
    found = epsilon_of(dp_event(release), account.delta)
    assert account.epsilon * (1 - 1e-9) <= found <= account.epsilon * (1 + 1e-4)


def test_the_check_of_the_page_runs(
    release: margrave.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    release.save("visits.margrave")
    (script,) = blocks(ROOT / "docs" / "promise.md", "python")
    names: dict[str, Any] = {}
    exec(script, names)
    found = names["accountant"].get_epsilon(release.account.delta)
    assert 2.0 * (1 - 1e-9) <= found <= 2.0 * 1.001


@pytest.mark.parametrize(
    ("epsilon", "above"), [(0.1, 0.04), (1.0, 1e-3), (3.0, 1e-3), (10.0, 1e-3)]
)
def test_the_default_orders_come_as_close_as_the_page_says(epsilon: float, above: float) -> None:
    for delta in (1e-9, 1e-6):
        rho = float(margrave.Budget.approx(epsilon, delta).rho)
        found = RdpAccountant().compose(events.ZCDpEvent(rho)).get_epsilon(delta)
        assert epsilon * (1 - 1e-9) <= found <= epsilon * (1 + above)


def test_the_event_has_every_debit_and_rounds_up(release: margrave.Release) -> None:
    event = dp_event(release)
    assert len(event.events) == len(release.account.debits)
    for leaf, debit in zip(event.events, release.account.debits, strict=True):
        assert leaf.xi == 0
        assert 0 <= Fraction(leaf.rho) - debit.rho <= debit.rho / 2**52


def test_the_event_is_of_one_unit(release: margrave.Release) -> None:
    """The scales of the noise imply the same price for a person of three rows, by hand."""
    squared = {"add or remove one row": 1, "replace one row": 2}.get(str(release.account.unit), 9)
    by_hand = 0.0
    for entry in release.transcript:
        if isinstance(entry, Measurement):
            by_hand += squared / (2 * entry.scale**2)
        elif isinstance(entry, Selection):
            by_hand += entry.epsilon**2 / 8
    assert sum(e.rho for e in dp_event(release).events) == pytest.approx(by_hand, rel=1e-9)


def test_the_file_of_a_release_is_read(release: margrave.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "visits.margrave")
    assert dp_event(tmp_path / "visits.margrave") == dp_event(release)


def test_seeded_noise_is_not_private(release: margrave.Release) -> None:
    seeded = replace(release, account=replace(release.account, private=False))
    assert dp_event(seeded) == NonPrivateDpEvent()


def test_delta_of_thresholds_is_never_left_out_silently(release: margrave.Release) -> None:
    spent = Debit("discover values of sex", Fraction(1, 1000), Fraction(1, 10**7))
    account = replace(release.account, debits=(*release.account.debits, spent))
    found = replace(release, account=account)
    with pytest.raises(InputError, match=r"spent delta = 1e-07.*delta_apart=True"):
        dp_event(found)
    assert dp_event(found, delta_apart=True).events[-1] == events.ZCDpEvent(0.001)


def test_a_release_that_learned_agrees_too() -> None:
    schema = Schema([Learn("sex", "categorical"), *COLUMNS[::2]], ignore=["id"])
    release = margrave.synthesize(rows(), schema, epsilon=2.0, delta=1e-6, mechanism="independent")
    account = release.account
    event = dp_event(release, delta_apart=True)
    left = account.delta - account.threshold_delta
    found = epsilon_of(event, left)
    assert found <= account.epsilon * (1 + 1e-4)
    if account.rho_spent == account.rho_budget:
        assert found >= account.epsilon * (1 - 1e-9)
    assert account.delta_spent <= Fraction(account.threshold_delta)


def test_a_missing_library_is_named(
    release: margrave.Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(InputError, match=r"margrave\[accounting\]"):
        dp_event(release)
