"""Least-squares answers: the weighted least squares of explicit matrices, and the variances of simulated noise."""

from __future__ import annotations

import json
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from margrave.bounds.gls import Unbiased
from margrave.domain import Domain
from margrave.errors import ReleaseError
from margrave.marginal import TOTAL, LinearMap
from margrave.models import FAMILIES, LeastSquaresAnswers, LeastSquaresFit
from margrave.structural_zeros import StructuralZeros
from margrave.transcript import Answer, Measurement, PublicTotal, Transcript
from margrave.types import Clique, FloatArray
from tests.support.strategies import domain_of, measurement

DOMAIN = domain_of([2, 3, 2])
CLIQUES: list[Clique] = [c for k in range(4) for c in combinations(DOMAIN.attributes, k)]
RESIDUAL = LinearMap.residual(DOMAIN, ("c0", "c1"))
ASKED: list[tuple[Clique, LinearMap, float]] = [
    (("c0", "c1"), LinearMap(), 3.0),
    (("c1", "c2"), LinearMap(), 1.5),
    (("c1",), LinearMap(), 2.0),
    (("c0", "c1"), RESIDUAL, 20.0),
    (("c0", "c2"), LinearMap.residual(DOMAIN, ("c0", "c2")), 9.0),
    (("c1", "c2"), LinearMap(), 4.0),
]


def fitted(*entries: Any, domain: Domain = DOMAIN) -> LeastSquaresAnswers:
    model = LeastSquaresFit()(domain, Transcript(entries), rng=np.random.default_rng(0))
    assert isinstance(model, LeastSquaresAnswers)
    return model


def matrix_of(clique: Clique, query: LinearMap) -> FloatArray:
    """The answers as a matrix over all cells of the domain."""
    factors = [
        query.rows(a, DOMAIN.size(a)) if a in clique else np.ones((1, DOMAIN.size(a)))
        for a in DOMAIN
    ]
    return np.asarray(reduce(np.kron, factors), dtype=float)


def noisy(truth: FloatArray, rng: np.random.Generator) -> list[Any]:
    entries: list[Any] = []
    for clique, query, scale in ASKED:
        values = matrix_of(clique, query) @ truth
        shape = tuple(len(query.rows(a, DOMAIN.size(a))) for a in clique)
        found = np.rint(values + rng.normal(scale=scale, size=values.size)).astype(np.int64)
        entries.append(measurement(clique, found.reshape(shape), scale, query.within(clique)))
    total = round(float(truth.sum()) + rng.normal(scale=5.0))
    return [*entries, Answer(TOTAL, total, 5.0, entries[0].rho)]


def design() -> tuple[FloatArray, FloatArray]:
    """All answers as one matrix, and their scales."""
    rows = [matrix_of(c, q) for c, q, _ in ASKED] + [np.ones((1, DOMAIN.cells()))]
    scales = [np.full(len(m), s) for m, s in zip(rows, [*(s for *_, s in ASKED), 5.0], strict=True)]
    return np.vstack(rows), np.concatenate(scales)


def test_the_estimate_is_weighted_least_squares_with_its_covariance() -> None:
    entries = noisy(np.arange(12.0) * 20, np.random.default_rng(1))
    model = fitted(*entries)
    matrix, scales = design()
    answers = np.concatenate([np.ravel(e.values) for e in entries[:-1]] + [[entries[-1].value]])
    information = np.linalg.pinv(matrix.T @ (matrix / scales[:, None] ** 2), rcond=1e-10)
    cells = information @ (matrix.T @ (answers / scales**2))
    for clique in [c for c in CLIQUES if len(c) < 3]:
        sums = matrix_of(clique, LinearMap())
        found = model.answer([clique])[clique]
        assert_allclose(found.reshape(-1), sums @ cells, rtol=1e-9)
        covariance = sums @ information @ sums.T
        assert_allclose(np.diag(covariance), model.variance(clique), rtol=1e-9)


def test_variances_are_those_of_simulated_noise_and_nothing_is_biased() -> None:
    """Of 600 draws each mean and variance is within 7 standard errors (under 1e-10 by chance)."""
    truth, rng, draws = np.arange(12.0) * 20, np.random.default_rng(3), 600
    wanted: list[Clique] = [("c0", "c1"), ("c0", "c2"), ("c1",), ()]
    found: dict[Clique, list[float]] = {c: [] for c in wanted}
    variances = dict[Clique, float]()
    for _ in range(draws):
        model = fitted(*noisy(truth, rng))
        for clique, values in model.answer(wanted).items():
            found[clique].append(
                float(values.flat[0] - (matrix_of(clique, LinearMap()) @ truth)[0])
            )
            variances[clique] = model.variance(clique)
    for clique, errors in found.items():
        assert abs(np.mean(errors)) < 7 * np.sqrt(variances[clique] / draws)
        rounded = variances[clique] + 0.2  # the simulated answers are rounded
        assert variances[clique] * (1 - 7 * np.sqrt(2 / draws)) < np.var(errors)
        assert np.var(errors) < rounded * (1 + 7 * np.sqrt(2 / draws))


@pytest.mark.parametrize("public", [False, True])
def test_bounds_rest_on_the_same_estimates_and_variances(public: bool) -> None:
    entries = noisy(np.arange(12.0) * 20, np.random.default_rng(1))
    entries = [PublicTotal(1_320), *entries[3:5]] if public else entries
    model, unbiased = fitted(*entries), Unbiased(DOMAIN, Transcript(tuple(entries)))
    known = 0
    for clique in CLIQUES:
        if not unbiased.supports(clique):
            with pytest.raises(ReleaseError):
                model.answer([clique])
            continue
        estimate = unbiased.estimate(clique)
        assert estimate is not None
        assert_allclose(estimate.values, model.answer([clique])[clique], rtol=1e-9)
        assert estimate.spread**2 == pytest.approx(model.variance(clique))
        known += 1
    assert known == (1 if public else 7)


def test_marginals_are_consistent() -> None:
    model = fitted(*noisy(np.arange(12.0), np.random.default_rng(5)))
    pair, other, single, total = model.answer([("c0", "c1"), ("c1", "c2"), ("c1",), ()]).values()
    assert_allclose(pair.sum(axis=0), single, rtol=1e-9)
    assert_allclose(other.sum(axis=1), single, rtol=1e-9)
    assert_allclose(single.sum(), total, rtol=1e-9)


def test_a_public_total_is_met_exactly() -> None:
    pair = measurement(("c0", "c1"), [[4, -1, 7], [10, 2, 0]], 2.0)
    model = fitted(PublicTotal(30), pair)
    assert model.answer([("c0", "c1")])["c0", "c1"].sum() == pytest.approx(30.0)
    assert model.variance(()) == 0.0
    assert model.variance(("c0", "c1")) == pytest.approx(4.0 * 5 / 6)


def test_what_was_not_measured_is_refused() -> None:
    model = fitted(measurement(("c0", "c1"), [[4, -1, 7], [10, 2, 0]], 2.0))
    for clique in (("c2",), ("c0", "c2"), ("c0", "c1", "c2")):
        with pytest.raises(ReleaseError, match=r"c2.*was not measured.*Refit"):
            model.answer([clique])
        with pytest.raises(ReleaseError, match="was not measured"):
            model.variance(clique)
    only = measurement(("c0", "c1"), np.zeros((2, 3), dtype=int), 1.0, RESIDUAL)
    with pytest.raises(ReleaseError, match="was not measured"):
        fitted(only).answer([("c0", "c1")])


def test_other_maps_and_merged_codes_are_left_out() -> None:
    pair = measurement(("c0", "c1"), [[4, -1, 7], [10, 2, 0]], 2.0)
    prefixes = LinearMap.prefixes(DOMAIN, ["c1"])
    others: list[Measurement] = [
        measurement(("c1",), [1, 5, 9], 0.1, prefixes),
        measurement(("c1",), [5, 6], 0.1, LinearMap({"c1": np.array([0, 0, 1])})),
    ]
    same = fitted(pair, *others).answer([("c0", "c1")])["c0", "c1"]
    assert np.array_equal(same, fitted(pair).answer([("c0", "c1")])["c0", "c1"])


def test_impossible_cells_are_zero() -> None:
    possible = np.array([[True, False, True], [True, True, True]])
    domain = Domain.of({"c0": 2, "c1": 3}, [StructuralZeros(("c0", "c1"), possible)])
    model = fitted(measurement(("c0", "c1"), [[4, 3, 7], [10, 2, 0]], 2.0), domain=domain)
    assert model.answer([("c0", "c1")])["c0", "c1"][0, 1] == 0.0


def test_state_and_load_give_identical_answers() -> None:
    model = fitted(*noisy(np.arange(12.0), np.random.default_rng(6)))
    state = model.state()
    again = FAMILIES[state.kind].load(DOMAIN, json.loads(json.dumps(state.facts)), state.arrays)
    assert isinstance(again, LeastSquaresAnswers)
    assert again.total == model.total
    for clique in (("c0",), ("c0", "c1"), ("c0", "c2"), ()):
        assert np.array_equal(again.answer([clique])[clique], model.answer([clique])[clique])
        assert again.variance(clique) == model.variance(clique)


@pytest.mark.parametrize("fault", ["negative", "missing", "shape", "infinite", "count"])
def test_a_malformed_state_is_refused(fault: str) -> None:
    state = fitted(*noisy(np.arange(12.0), np.random.default_rng(6))).state()
    arrays = {name: values.copy() for name, values in state.arrays.items()}
    match fault:
        case "negative":
            arrays["variances"][0] = 0.0
        case "missing":
            del arrays["values0"]
        case "shape":
            arrays["values0"] = np.zeros(7)
        case "infinite":
            arrays["values0"][...] = -np.inf
        case "count":
            arrays["count"][1] = -1.0
    with pytest.raises(ReleaseError):
        FAMILIES[state.kind].load(DOMAIN, state.facts, arrays)


def test_sizes_count_each_interaction_once() -> None:
    fit = LeastSquaresFit()
    assert fit.cells(DOMAIN, [("c0", "c1"), ("c1", "c2")]) == 6 + 6 + 2 + 3 + 2 + 1
    sizes = fit.sizes_with(DOMAIN, [("c0", "c1")], [("c0",), ("c1", "c2")])
    assert sizes.tolist() == [12.0, 20.0]
