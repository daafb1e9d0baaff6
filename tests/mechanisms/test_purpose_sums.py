"""Sums for purposes: what is asked, with which weights, at which price."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from margrave.accounting import AddRemoveRow, ReplaceRow, Unit
from margrave.domain import Domain
from margrave.marginal import LinearMap
from margrave.mechanisms import AIM
from margrave.mechanisms.parts.purpose_sums import PurposeSums, _weights
from margrave.mechanisms.parts.serving import serving
from margrave.models import GraphicalFit, MaxEntropyFit
from margrave.models.empty_codes import WithoutEmpty, non_empty
from margrave.privacy import SeededRandomness
from margrave.purpose_widths import widths_of
from margrave.purposes import purposes_of
from margrave.schema import Categorical, Integer
from margrave.testing.gate import run_on
from margrave.testing.runs import BUDGET
from margrave.testing.tables import TinySchema, TinyTable
from margrave.transcript import Measurement, PublicTotal, Transcript

DOMAIN = Domain(
    ("price", "type", "area", "sold"), (6, 3, 5, 2), unordered=frozenset({"type", "sold"})
)


def asked_for(*texts: str) -> list[tuple[tuple[str, ...], tuple[str, ...], int]]:
    mechanism = serving(AIM(), texts, DOMAIN)
    assert isinstance(mechanism, AIM)
    return [
        tuple(s) for s in PurposeSums.of(mechanism.workload_on(DOMAIN), DOMAIN, mechanism.fit).asked
    ]  # type: ignore[misc]


def test_means_and_regressions_ask_for_sums_and_other_purposes_for_none() -> None:
    assert asked_for("mean price by type") == [
        (("price",), ("price",), 1), (("price", "type"), ("price",), 4)
    ]  # fmt: skip
    assert asked_for("ols price ~ area + C(type)") == [
        (("price",), ("price",), 1), (("area",), ("area",), 1), (("type", "area"), ("area",), 1),
        (("price", "type"), ("price",), 4), (("price", "area"), ("price", "area"), 4),
    ]  # fmt: skip
    assert asked_for("logistic sold ~ price", "count by type", "median price by type") == []
    workload = serving(AIM(), ["mean price"], DOMAIN).workload
    assert workload is not None
    assert PurposeSums.of(workload, DOMAIN, MaxEntropyFit()).asked == ()


def test_weights_are_distances_from_the_mean_and_bounded() -> None:
    sums, column = PurposeSums(()), Integer("price", 0, 50, edges=[1, 2, 3, 40], missing=True)
    counts = np.array([100.0, 300.0, 100.0, -4.0, 9.0, 50.0])
    (weights,) = _weights(column, counts, sums)
    assert weights.tolist()[-1] == 0  # missing
    assert weights.min() < 0 < weights.max() == sums.max_weight
    assert np.abs(weights).max() <= sums.max_weight
    assert not _weights(Categorical("type", ["a", "b"]), np.ones(2), sums).any()
    assert not _weights(Integer("one", 3, 3), np.ones(1), sums).any()


def rows() -> list[tuple[int, ...]]:
    rng = np.random.default_rng(2)
    area = rng.integers(5, size=400)
    price = np.minimum(area + rng.integers(2, size=400), 5)
    columns = price, rng.integers(3, size=400), area, area % 2
    return list(zip(*(c.tolist() for c in columns), strict=True))


@pytest.mark.parametrize("unit", [AddRemoveRow(), ReplaceRow()], ids=str)
def test_sums_cost_their_share_and_are_no_noisier_than_planned(unit: Unit) -> None:
    mechanism = serving(AIM(rounds=12), ["ols price ~ area + C(type)"], DOMAIN)
    assert isinstance(mechanism, AIM)
    table = TinyTable(TinySchema(DOMAIN), rows())
    release = run_on(mechanism, table, unit, BUDGET, SeededRandomness(1))
    measured = [m for m in release.transcript.measurements if m.query.matrices]
    assert sum(m.rho for m in measured) == PurposeSums.max_share * BUDGET.rho
    planned = [s for s in mechanism.steps(DOMAIN, BUDGET.rho, unit) if s.sums]
    scales = [s.scale for s in planned for _ in s.cliques]
    assert [m.clique for m in measured] == [c for s in planned for c in s.cliques]
    for m, scale in zip(measured, scales, strict=True):
        assert 0.2 * scale < m.scale <= scale
        assert "sums of cells with weights up to" in m.describe().what


def test_few_sums_take_less() -> None:
    whole = Fraction(1)
    for purpose, share in (
        ("mean price", Fraction(1, 32)),
        ("mean price by type", Fraction(5, 32)),
    ):
        mechanism = serving(AIM(), [purpose], DOMAIN)
        assert isinstance(mechanism, AIM)
        sums = PurposeSums.of(mechanism.workload_on(DOMAIN), DOMAIN, mechanism.fit)
        assert sums.rho(whole) == share


def test_the_model_has_the_sums_that_were_measured() -> None:
    values = np.array([[0, 30], [30, 0]])
    entries = (
        PublicTotal(60),
        Measurement(("a", "b"), np.full((2, 2), 15), 500.0, Fraction(1)),
        Measurement(("a", "b"), np.array([[-60]]), 0.1, Fraction(1), LinearMap(
            matrices={a: np.array([[-1, 1]]) for a in "ab"})),
    )  # fmt: skip
    domain = Domain.of({"a": 2, "b": 2})
    model = GraphicalFit(steps=5)(domain, Transcript(entries), rng=np.random.default_rng(0))
    assert np.abs(model.project(("a", "b")).values - values).max() < 2.0


def test_a_sum_keeps_no_empty_code() -> None:
    domain = Domain.of({"a": 4, "b": 2})
    counts, query = np.array([90, 80, 0, 0]), LinearMap(matrices={"a": np.array([[-2, 2, 3, 9]])})
    transcript = Transcript((
        PublicTotal(170), Measurement(("a",), counts, 1.0, Fraction(1)),
        Measurement(("a",), np.array([-20]), 1.0, Fraction(1), query),
    ))  # fmt: skip
    kept = non_empty(domain, transcript, 2.0)
    assert kept["a"].tolist() == [True, True, False, False]
    left = WithoutEmpty(kept).evidence(transcript).measurements[1]
    assert (left.values.tolist(), left.query.matrices["a"].tolist()) == ([-20], [[-2, 2]])


def test_the_planned_half_width_is_that_of_simulated_slopes() -> None:
    domain, scale, n = Domain.of({"x": 40, "y": 40}), 30.0, 20_000
    (stated,) = widths_of(purposes_of(["ols y ~ x"], domain), domain, rows=n, learned=(), scale_of=lambda _: 1e6,
                          sum_scale_of=lambda _: scale, rho=Fraction(1), epsilon_of=lambda rho: rho)  # fmt: skip
    rng, z = np.random.default_rng(1), (np.arange(40) - 19.5) / np.std(np.arange(40))
    slopes = []
    for _ in range(400):
        x, y = z[rng.integers(40, size=(2, n))]
        slopes.append((x @ y + rng.normal(0, scale * z.max() ** 2)) / n)
    assert stated.half_width == pytest.approx(1.96 * np.std(slopes), rel=0.25)
    assert math.isfinite(stated.half_width)
