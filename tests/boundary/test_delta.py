"""Budgets that protect next to nothing are refused by synthesize, plan and protect, before anything is spent."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import margrave
from margrave.accounting import AddRemoveRow, Budget, ReplaceRow
from margrave.accounting.strength import check_strength
from margrave.cli.main import run
from margrave.data import read_table
from margrave.errors import InputError
from margrave.mechanisms import Independent
from margrave.planning import plan_of
from margrave.privacy import protect
from margrave.report.page import render
from margrave.schema import Integer, Schema

SCHEMA = Schema((Integer("n", 0, 3), Integer("m", 0, 1)))
ROWS = pa.table({"n": [0, 1, 2, 3] * 50, "m": [0, 1] * 100})
SENTENCE = "it allows publishing one whole record"


def synthesized(**options: Any) -> margrave.Release:
    settings: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-9,
        "mechanism": "independent",
        **options,
    }
    return margrave.synthesize(ROWS, SCHEMA, **settings)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1e9, 1e-9), (1.0, 0.9), (1.0, 0.011), (1.1e4, 1e-9)]
)
@pytest.mark.parametrize("allow", [True, False])
def test_absurd_budgets_are_refused_everywhere(epsilon: float, delta: float, allow: bool) -> None:
    budget = Budget.approx(epsilon, delta)
    with pytest.raises(InputError, match="Nothing was spent"):
        synthesized(epsilon=epsilon, delta=delta, allow_large_delta=allow)
    with pytest.raises(InputError, match="Nothing was spent"):
        plan_of(SCHEMA.domain, Independent(), budget=budget, unit="add-remove-row")
    with pytest.raises(InputError, match="Nothing was spent"):
        protect(
            read_table(ROWS, SCHEMA), unit=AddRemoveRow(), budget=budget, allow_large_delta=allow
        )


@pytest.mark.parametrize(("delta", "refused"), [(0.00499, False), (0.005, True), (0.01, True)])
def test_a_public_row_count_bounds_delta(delta: float, refused: bool) -> None:
    budget = Budget.approx(1.0, delta)
    table = read_table(ROWS, SCHEMA)  # 200 rows
    if not refused:
        protect(table, unit=ReplaceRow(), budget=budget).close()
        return
    with pytest.raises(InputError, match="allow_large_delta=True"):
        protect(table, unit=ReplaceRow(), budget=budget)
    with pytest.raises(InputError, match="at least 1 in 200 rows"):
        synthesized(delta=delta, unit="replace-row")
    release = synthesized(delta=delta, unit="replace-row", allow_large_delta=True)
    assert SENTENCE in release.certificate()["large_delta"]


def test_a_private_row_count_is_judged_by_the_noisy_count_alone() -> None:
    release = synthesized(epsilon=50.0, delta=0.009, allow_large_delta=True)
    assert SENTENCE in release.certificate()["large_delta"]
    assert SENTENCE in render(release)
    sound = synthesized(epsilon=50.0)
    assert "large_delta" not in sound.certificate()
    assert SENTENCE not in render(sound)


def test_a_private_row_count_is_not_read() -> None:
    class Counted:
        def __getattr__(self, name: str) -> Any:
            return getattr(read_table(ROWS, SCHEMA), name)

        def rows(self) -> int:
            raise AssertionError("the row count was read")

    table, budget = Counted(), Budget.approx(1.0, 0.009)
    protect(table, unit=AddRemoveRow(), budget=budget, allow_large_delta=True).close()  # type: ignore[arg-type]


def test_a_large_delta_must_be_accepted_where_the_row_count_is_private() -> None:
    table = read_table(ROWS, SCHEMA)
    with pytest.raises(InputError, match=r"above 1e-05 .*Nothing was spent"):
        protect(table, unit=AddRemoveRow(), budget=Budget.approx(1.0, 1.1e-5))
    with pytest.raises(InputError, match=r"above 1e-05 .*--allow-large-delta"):
        synthesized(delta=1.1e-5)
    with pytest.raises(InputError, match="above 1e-05"):
        margrave.plan(SCHEMA, epsilon=1.0, delta=1.1e-5)
    protect(table, unit=AddRemoveRow(), budget=Budget.approx(1.0, 1e-5)).close()


def test_stated_rows_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("s.toml")
    Path("t.csv").write_text("n,m\n" + "1,0\n2,1\n" * 50)
    common = [
        "-s",
        "s.toml",
        "--epsilon",
        "1",
        "-m",
        "independent",
        "--rows",
        "1000",
    ]
    small, large = ["--delta", "1e-3"], ["--delta", "0.01"]
    made = ["synthesize", "t.csv", *common, "--release"]
    assert run(["plan", *common, *small]) == 2
    assert "--allow-large-delta" in capsys.readouterr().err
    assert run([*made, "r.margrave", "--unit", "replace-row", *large]) == 2
    assert "--allow-large-delta" in capsys.readouterr().err, "the table has 100 rows"
    assert not Path("r.margrave").exists()
    assert run([*made, "rows.margrave", *small]) == 2
    said = capsys.readouterr().err
    assert "above 1e-05 it may allow publishing one whole row" in said, "--rows are synthetic rows"
    assert not Path("rows.margrave").exists()
    assert run(["plan", *common, *small, "--allow-large-delta"]) == 0
    assert run([*made, "r.margrave", *small, "--allow-large-delta"]) == 0
    assert run(["plan", *common[:-2], *small]) == 2, "a default guess is not a stated row count"
    assert "above 1e-05" in capsys.readouterr().err
    assert run(["certificate", "r.margrave", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["delta"] == 1e-3


def test_budgets_are_not_understated() -> None:
    budget = Budget.approx(1.0, 1e-9)
    for off in (9e-10, 1e-12):
        with pytest.raises(InputError, match="implies"):
            Budget(budget.rho, 1.0 - off, 1e-9)
    for epsilon in (float("nan"), -1.0):
        with pytest.raises(InputError):
            Budget(budget.rho, epsilon, 1e-9)


def test_the_check_is_exact_at_its_edges() -> None:
    check_strength(Budget.approx(1.0, 0.01), allow_large_delta=True)
    check_strength(Budget.approx(1.0, 0.01), rows=99, rows_are_public=True)
    check_strength(Budget.approx(1.0, 1e-5), rows=99_999)
    check_strength(Budget.approx(1e4, 1e-9), rows=10)
    with pytest.raises(InputError):
        check_strength(Budget.approx(1.0, 0.01), rows=100, rows_are_public=True)
    with pytest.raises(InputError, match="from 1e-06 to 10000"):
        Budget.approx(0.0, 1e-9)


def test_a_budget_made_by_hand_holds_plain_numbers() -> None:
    made = Budget(Fraction(1, 100), Fraction(5), Fraction(1, 10**9))
    assert [type(v) for v in (made.rho, made.epsilon, made.delta)] == [Fraction, float, float]
    for epsilon in (True, Decimal(5), "5"):
        with pytest.raises(InputError, match="epsilon is"):
            Budget(Fraction(1, 100), epsilon, 1e-9)  # type: ignore[arg-type]
