"""The attack risk bounds the exact risk of Gaussian noise, and little more."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from statistics import NormalDist

import pytest

from margrave.accounting import Budget
from margrave.accounting.strength import delta_for_rows
from margrave.attack_risk import attack_risk
from margrave.cli.main import run
from margrave.schema import Schema

NORMAL = NormalDist()


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.015, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("at", [1e-4, 0.01, 0.2])
def test_gaussian_noise_stays_below_the_bound(rho: float, at: float) -> None:
    mu = math.sqrt(2 * rho)  # N(0, 1) against N(mu, 1) has exactly this rho
    power = NORMAL.cdf(mu + NORMAL.inv_cdf(at))
    advantage = 2 * NORMAL.cdf(mu / 2) - 1
    risk = attack_risk(Fraction(rho), at=at)
    assert power <= risk.power <= 1
    assert advantage <= risk.advantage <= 1.7 * advantage


def test_randomized_response_stays_below_the_bound() -> None:
    # one bit kept with probability e / (1 + e): 1-DP, whose rho is its largest Rényi divergence / alpha
    p = math.e / (1 + math.e)
    orders = [1 + 2.0**k for k in range(-10, 9)]
    rho = max(
        math.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1) / a
        for a in orders
    )
    assert 2 * p - 1 <= attack_risk(Fraction(rho)).advantage


def test_it_grows_with_the_budget_and_with_thresholds() -> None:
    small, large = attack_risk(Fraction(1, 100)), attack_risk(Fraction(2, 100))
    assert small.advantage < large.advantage
    assert small.power < large.power
    assert attack_risk(Fraction(1, 100), threshold_delta=0.01).advantage > small.advantage
    assert attack_risk(Fraction(10**6)).power == 1.0
    assert "always being right" in attack_risk(Fraction(10**6)).sentence()


def test_a_plan_advises(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    path = f"{tmp_path}/s.toml"
    Schema.coded({"a": 2, "b": 3}).save(path)
    words = ["plan", "--schema", path, "--epsilon", "2", "--delta", "1e-6", "--rows", "5000"]
    assert run([*words, "--advise"]) == 0
    shown = capsys.readouterr().out
    assert "Epsilons" in shown
    assert "a delta of 1e-07 or less" in shown
    assert "is larger" in shown
    assert "the promise fails for one given row)" in " ".join(shown.split())
    assert shown.count("error of a marginal") == 2
    words_on_risk = "an attacker who wrongly accuses 1 % of those outside the table finds at most"
    assert words_on_risk in " ".join(shown.split())
    assert run([*words, "--advise", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    listed = made["advice"]["epsilons"]
    assert [e["epsilon"] for e in listed] == [0.1, 0.3, 1.0, 2.0, 3.0, 10.0]
    errors = [e["error"] for e in listed]
    assert errors == sorted(errors, reverse=True)
    assert len(set(errors)) == 6
    assert listed[3]["power"] == made["risk"]["power"]
    assert made["risk"]["power"] == attack_risk(Budget.approx(2.0, 1e-6).rho).power


def test_a_delta_that_is_not_stated_is_advised(
    tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"{tmp_path}/s.toml"
    Schema.coded({"a": 2, "b": 3}).save(path)
    words = ["--schema", path, "--epsilon", "2"]
    assert run(["plan", *words, "--rows", "5000"]) != 0
    assert "for 5,000 rows 1e-07 or less is advised." in capsys.readouterr().err
    assert run(["synthesize", f"{tmp_path}/none.csv", *words, "-o", f"{tmp_path}/o.csv"]) != 0
    assert "1e-07 for up to 10,000 rows, 1e-09 for up to 1,000,000 rows" in capsys.readouterr().err
    assert run(["plan", *words, "--rows", "5000", "--advise", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["delta"] == made["advice"]["suggested_delta"] == 1e-7


def test_a_delta_follows_the_order_of_the_rows() -> None:
    assert [delta_for_rows(n) for n in (0, 1000, 1001, 10**6)] == [1e-5, 1e-6, 1e-7, 1e-9]
