"""Columns of a graphical model that contradict their own noisy counts are scaled to them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from margrave.domain import Domain
from margrave.marginal import LinearMap
from margrave.models import GraphicalFit
from margrave.models.graphical.model import GraphicalModel
from margrave.models.graphical.raking import noisy_columns, raked
from margrave.structural_zeros import StructuralZeros
from margrave.transcript import Measurement, Transcript
from margrave.types import AnyArray, Clique, FloatArray

DOMAIN = Domain.of({"a": 6, "b": 20, "c": 20, "d": 20, "e": 20})
#: Records of each code of "a": the rare ones are a few noise scales.
COUNTS = np.array([60_000.0, 30_000.0, 8_000.0, 800.0, 600.0, 600.0])
SCALE = 100.0


def transcript(seed: int) -> Transcript:
    """Return noisy marginals of columns of which each has three values for each rare code of "a"."""
    rng = np.random.default_rng(seed)
    given = np.full((6, 20), 1 / 20)
    given[2:] = 0.0
    for code in range(2, 6):
        given[code, rng.choice(20, 3, replace=False)] = 1 / 3

    def noisy(clique: Clique, table: AnyArray) -> Measurement:
        counts = np.rint(table + rng.normal(0, SCALE, table.shape)).astype(np.int64)
        return Measurement(clique, counts, SCALE, Fraction(1, 2))

    pair = COUNTS[:, None] * given
    triple = pair[:, :, None] * given[:, None, :]
    made = [noisy(("a",), COUNTS), *(noisy((x,), pair.sum(axis=0)) for x in "bcde")]
    made += [noisy(("a", x, y), triple) for x, y in ("bc", "bd", "be", "cd", "ce", "de")]
    return Transcript(made)


def errors(*, rake: bool) -> FloatArray:
    """Return the errors of the counts of "a" in noise scales, over runs."""
    found = []
    for seed in range(2):
        model = GraphicalFit(rake=rake)(DOMAIN, transcript(seed), rng=np.random.default_rng(0))
        found.append((model.answer([("a",)])[("a",)] - COUNTS) / SCALE)
    return np.array(found)


def test_rare_codes_of_many_marginals_have_their_noisy_counts() -> None:
    before, after = errors(rake=False), errors(rake=True)
    assert before[:, 3:].mean() > 2.0, "noise in empty cells adds up"
    assert np.abs(after).max() < 4.0
    assert abs(after[:, 3:].mean()) < 1.0


def test_a_model_without_contradiction_is_kept() -> None:
    counts = np.array([[500, 300], [200, 400]])
    answers = Transcript([
        Measurement(("a", "b"), counts, 10.0, Fraction(1, 2)),
        Measurement(("a",), np.array([810, 595]), 10.0, Fraction(1, 2)),
    ])  # fmt: skip
    domain = Domain.of({"a": 2, "b": 2})
    one, two = (
        GraphicalFit(rake=rake)(domain, answers, rng=np.random.default_rng(0))
        for rake in (False, True)
    )
    assert one.potentials.keys() == two.potentials.keys()
    for clique, theta in one.potentials.items():
        assert theta == pytest.approx(two.potentials[clique], abs=0.0)


def model_of(domain: Domain, total: float, counts: dict[str, list[float]]) -> GraphicalModel:
    """Return independent columns with these counts."""
    with np.errstate(divide="ignore"):
        return GraphicalModel(domain, total, {(a,): np.log(c) for a, c in counts.items()})


def test_scaled_columns_keep_the_total_and_what_is_impossible() -> None:
    domain = Domain.of({"a": 4, "b": 2})
    model = model_of(domain, 1000.0, {"a": [500.0, 300.0, 200.0, 0.0], "b": [400.0, 600.0]})
    noisy = {"a": (np.array([700.0, 210.0, 90.0, 50.0]), np.full(4, 1 / 100))}
    found = raked(model, noisy).answer([("a",), ("b",)])
    assert found[("a",)] == pytest.approx([700.0, 210.0, 90.0, 0.0])
    assert found[("b",)] == pytest.approx([400.0, 600.0])


def test_what_the_total_contradicts_is_taken_from_imprecise_counts() -> None:
    domain = Domain.of({"a": 3})
    model = model_of(domain, 1000.0, {"a": [300.0, 300.0, 400.0]})
    noisy = {"a": (np.array([700.0, 100.0, 400.0]), np.array([1.0, 1.0, 1e-4]))}
    found = raked(model, noisy).answer([("a",)])[("a",)]
    assert found == pytest.approx([700.0, 100.0, 200.0], abs=0.1)
    slack = {"a": (np.array([300.0, 300.0, 600.0]), np.array([1.0, 1.0, 1e-4]))}
    assert raked(model, slack) is model, "two deviations of the third count explain it"


def test_noisy_columns_are_of_independent_measurements_alone() -> None:
    zeros = StructuralZeros(("b", "c"), np.array([[True, False], [True, True]]))
    domain = Domain(("a", "b", "c"), (4, 2, 2), (zeros,))

    def measured(clique: Clique, shape: tuple[int, ...], query: LinearMap) -> Measurement:
        return Measurement(clique, np.full(shape, 10), 2.0, Fraction(1, 8), query)

    groups = {"a": np.array([0, 1, 1, 1])}
    found = noisy_columns(
        domain,
        [
            measured(("a",), (4,), LinearMap()),
            measured(("a", "b"), (2, 2), LinearMap(groups)),
            measured(("a",), (1,), LinearMap({}, {"a": np.ones((1, 4))})),
        ],
        groups,
    )
    assert found.keys() == {"a"}, "columns of structural zeros have none"
    counts, precision = found["a"]
    assert precision == pytest.approx([1 / 4 + 1 / 8, 1 / 12 + 1 / 8])
    assert counts == pytest.approx([(10 / 4 + 20 / 8) / (3 / 8), (30 / 12 + 20 / 8) / (5 / 24)])
