"""The best unbiased estimate against generalized least squares by brute force on the full table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from margrave.bounds.gls import Unbiased
from margrave.domain import Domain
from margrave.marginal import IDENTITY, LinearMap, closure
from margrave.transcript import PublicTotal, Transcript
from margrave.types import Clique
from tests.support.noise import discrete
from tests.support.strategies import measurement

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4, "d": 1})
ALL: Clique = ("a", "b", "c", "d")


def summing(clique: Clique, query: LinearMap = IDENTITY) -> Any:
    """The matrix that takes the full table to a marginal, codes merged."""
    cells = DOMAIN.cells()
    columns = np.eye(cells).reshape(cells, *DOMAIN.shape(ALL))
    axes = tuple(i + 1 for i, a in enumerate(ALL) if a not in clique)
    return np.stack(
        [query.apply(clique, column).ravel() for column in columns.sum(axis=axes)], axis=1
    )


def least_squares(transcript: Transcript, wanted: Any) -> tuple[Any, Any]:
    """The generalized least squares estimate of a linear function of the table, and its covariance."""
    rows, values = [], []
    for entry in transcript:
        if isinstance(entry, PublicTotal):
            rows.append(np.ones((1, DOMAIN.cells())) * 1e6)  # known all but exactly
            values.append(np.array([entry.total * 1e6]))
        else:
            rows.append(summing(entry.clique, entry.query) / entry.scale)
            values.append(entry.values.ravel() / entry.scale)
    design, seen = np.concatenate(rows), np.concatenate(values)
    inverse = np.linalg.pinv(design)
    null = np.eye(DOMAIN.cells()) - inverse @ design
    assert np.abs(wanted @ null).max() < 1e-6, "not estimable"
    return wanted @ inverse @ seen, wanted @ inverse @ inverse.T @ wanted.T


def drawn(cliques: list[Clique], seed: int, extra: tuple[Any, ...] = ()) -> Transcript:
    rng = np.random.default_rng(seed)
    scales = np.round(rng.uniform(1.0, 9.0, len(cliques)), 2)
    entries = [
        measurement(c, rng.integers(-5, 90, DOMAIN.shape(c)), s)
        for c, s in zip(cliques, scales, strict=True)
    ]
    return Transcript((*extra, *entries))


CASES: dict[str, list[Clique]] = {
    "one": [("a", "b")],
    "columns and a pair": [("a",), ("b",), ("c",), ("a", "b")],
    "overlapping pairs": [("a", "b"), ("b", "c"), ("a", "c"), ("c",)],
    "repeated": [("a", "b"), ("a", "b"), ("b",), ("b",), ("b", "c")],
    "all, and a column of one code": [("a", "b", "c"), ("c", "d"), ("d",), ("a", "c", "d")],
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("known", [False, True])
def test_it_is_generalized_least_squares(case: str, known: bool) -> None:
    transcript = drawn(CASES[case], seed=len(case), extra=(PublicTotal(77),) if known else ())
    unbiased = Unbiased(DOMAIN, transcript)
    for clique in closure(CASES[case]):
        values, covariance = least_squares(transcript, summing(clique))
        found = unbiased.estimate(clique)
        assert found is not None
        np.testing.assert_allclose(found.values.ravel(), values, atol=2e-4)
        np.testing.assert_allclose(np.diag(covariance), found.spread**2, atol=2e-4)
        assert np.linalg.eigvalsh(covariance).max() == pytest.approx(found.widest**2, abs=2e-4)


def test_what_is_not_measured_is_not_estimated() -> None:
    unbiased = Unbiased(DOMAIN, drawn([("a", "b")], 0))
    assert unbiased.estimate(("a", "c")) is None
    assert not unbiased.supports(("c",))
    assert unbiased.supports(("b",))


def test_the_papers_average_takes_supersets_alone_and_is_never_better() -> None:
    transcript = drawn([("a", "b"), ("b", "c"), ("b",)], 3)
    ours, paper = Unbiased(DOMAIN, transcript), Unbiased(DOMAIN, transcript, paper=True)
    ab, bc, b = transcript.measurements
    found = paper.estimate(("b",))
    assert found is not None
    weights = np.array([3 / (6 * ab.scale**2), 3 / (12 * bc.scale**2), 1 / b.scale**2])
    expected = weights @ np.stack([ab.values.sum(0), bc.values.sum(1), b.values]) / weights.sum()
    np.testing.assert_allclose(found.values, expected)
    assert found.spread == pytest.approx(weights.sum() ** -0.5)
    for clique in closure([("a", "b"), ("b", "c")]):
        left, right = ours.estimate(clique), paper.estimate(clique)
        assert left is not None
        assert right is not None
        assert left.spread <= right.spread + 1e-12
        assert left.widest <= right.widest + 1e-12
    pair, same = ours.estimate(("a", "b")), paper.estimate(("a", "b"))
    assert pair is not None
    assert same is not None
    assert pair.spread < 0.95 * same.spread  # the other measurements of b help


def test_codes_merged_by_the_measurement_are_estimated_merged() -> None:
    merged = LinearMap({"c": np.array([0, 1, 2, 2])})
    rng = np.random.default_rng(4)
    transcript = Transcript(
        (
            measurement(("c",), rng.integers(0, 9, 4), 2.0),
            measurement(("b", "c"), rng.integers(0, 9, (3, 3)), 3.0, merged),
            measurement(("b",), rng.integers(0, 9, 3), 4.0),
        )
    )
    unbiased = Unbiased(DOMAIN, transcript)
    found = unbiased.estimate(("b", "c"))
    assert found is not None
    assert found.values.shape == (3, 3)
    assert not unbiased.supports(("b", "c"))
    # c's part comes from the pair alone (the column alone keeps its codes apart), b's from both, the total from all
    pair, total = transcript.measurements[1], transcript.total()
    np.testing.assert_allclose(found.values.sum(), total)
    by_c = pair.values.sum(0) - pair.values.sum() / 3
    np.testing.assert_allclose(found.values.sum(0), by_c + total / 3)
    whole = unbiased.estimate(("c",))
    assert whole is not None
    assert whole.values.shape == (4,)
    assert whole.groups == {}


def test_a_finer_measurement_is_preferred_to_a_coarser_one() -> None:
    merged = LinearMap({"c": np.array([0, 1, 2, 2])})
    whole = measurement(("b", "c"), np.arange(12).reshape(3, 4), 50.0)
    coarse = measurement(("b", "c"), np.arange(9).reshape(3, 3), 1.0, merged)
    assert Unbiased(DOMAIN, Transcript((coarse, whole))).groups_of(("b", "c")) == {}


def test_it_is_unbiased_and_as_precise_as_it_says() -> None:
    """1,000 draws of discrete noise; 7 standard errors are under 1e-10 by chance."""
    rng = np.random.default_rng(8)
    truth = rng.integers(0, 60, DOMAIN.shape(ALL))
    cliques: list[Clique] = [("a", "b"), ("b", "c"), ("c",)]
    true = [(summing(c) @ truth.ravel()).astype(np.int64).reshape(DOMAIN.shape(c)) for c in cliques]
    errors = []
    for _ in range(1000):
        entries = []
        for clique, counts, scale in zip(cliques, true, (3.0, 5.0, 2.0), strict=True):
            entries.append(measurement(clique, counts + discrete(rng, scale, counts.shape), scale))
        found = Unbiased(DOMAIN, Transcript(tuple(entries))).estimate(("b", "c"))
        assert found is not None
        errors.append((found.values - true[1]).ravel())
    assert np.abs(np.mean(errors, axis=0)).max() < 7 * found.spread / np.sqrt(1000)
    assert np.abs(np.var(errors, axis=0) / found.spread**2 - 1).max() < 7 * np.sqrt(2 / 1000)
