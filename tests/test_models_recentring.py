"""Recentring: the mean of the models gets the shares asked for, and nothing else about a model changes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from margrave.models import ExpandedModel, GraphicalModel
from margrave.models.recentring import FURTHEST, recentred, reflected
from margrave.schema.domain import Domain, StructuralZeros
from strategies import domain_of, random_potentials

def models(domain: Domain, count: int, seed: int) -> list[GraphicalModel]:
    """Random models of a chain of three columns, not far from each other."""
    rng = np.random.default_rng(seed)
    a, b, c = domain.attributes
    cliques = [(a, b), (b, c)]
    base = random_potentials(domain, cliques, rng, spread=1.0, impossible=0.0)
    return [
        GraphicalModel(domain, 50.0, {k: t + 0.3 * rng.standard_normal(t.shape) for k, t in base.items()})
        for _ in range(count)
    ]


def joints(found: list[GraphicalModel] | list[GraphicalModel | ExpandedModel]) -> np.ndarray:
    return np.array([np.asarray(m.project(m.domain.attributes).values) / m.total for m in found])


def one_way(joint: np.ndarray, axis: int) -> np.ndarray:
    return joint.sum(axis=tuple(i for i in range(3) if i != axis))


def test_reflected_is_the_reflection_to_first_order_and_positive() -> None:
    center = np.array([0.5, 0.3, 0.2])
    for size in (1e-2, 1e-4):
        off = size * np.array([1.0, -2.0, 1.0])
        assert_allclose(reflected(center, center + off), center - off, atol=20 * size**2)
    far = reflected(np.array([0.001, 0.999]), np.array([0.2, 0.8]))
    assert 0 < far[0] < 0.2 / FURTHEST
    assert far.sum() == pytest.approx(1.0)
    assert_allclose(reflected(np.array([0.0, 1.0]), np.array([0.0, 1.0])), [0.0, 1.0])


def test_the_mean_moves_to_the_targets_and_odds_ratios_stay() -> None:
    domain = domain_of([3, 2, 4])
    before = models(domain, 12, 0)
    (center,) = models(domain, 1, 5)
    counts = {(a,): np.asarray(center.project((a,)).values) for a in domain}
    after = recentred(before, counts)
    old, new = joints(before), joints(list(after))
    missed, apart = 0.0, 0.0
    for axis, a in enumerate(domain):
        start, wanted = one_way(old.mean(axis=0), axis), counts[a,] / counts[a,].sum()
        target = reflected(wanted, start)
        missed += float(((one_way(new.mean(axis=0), axis) - target) ** 2).sum())
        apart += float(((start - target) ** 2).sum())
    assert missed < apart / 30
    ratio = np.log(new) - np.log(old)  # a sum of functions of one column each, the same for all models but a constant
    shape = ratio - ratio.mean(axis=(1, 2, 3), keepdims=True)
    assert_allclose(shape, np.broadcast_to(shape[:1], shape.shape), atol=1e-9)
    additive = sum(
        shape[0].mean(axis=tuple(i for i in range(3) if i != axis), keepdims=True) for axis in range(3)
    )
    assert_allclose(shape[0], additive, atol=1e-9)
    assert {m.total for m in after} == {50.0}


def test_models_that_are_centred_stay_where_they_are() -> None:
    domain = domain_of([3, 2, 4])
    before = models(domain, 9, 3)
    mean = joints(before).mean(axis=0)
    counts = {(a,): one_way(mean, i) for i, a in enumerate(domain)}
    assert_allclose(joints(list(recentred(before, counts))), joints(before), atol=1e-12)


def test_merged_codes_move_one_by_one() -> None:
    coarse = domain_of([2, 3, 2])
    fine = Domain(coarse.attributes, (4, 3, 2))
    groups = {fine.attributes[0]: np.array([0, 1, 1, 1])}
    rng = np.random.default_rng(2)
    before = []
    for inner in models(coarse, 8, 1):
        shares = np.concatenate([[1.0], rng.dirichlet([8.0, 5.0, 3.0])])
        before.append(ExpandedModel(fine, inner, groups, {fine.attributes[0]: shares}))
    mean = joints(list(before)).mean(axis=0)
    counts = {(a,): one_way(mean, i) for i, a in enumerate(fine)}
    first = fine.attributes[0]
    counts[first,] = counts[first,] * np.array([1.0, 1.2, 1.0, 0.8])
    after = recentred(before, counts)
    target = reflected(counts[first,] / counts[first,].sum(), one_way(mean, 0))
    assert_allclose(one_way(joints(list(after)).mean(axis=0), 0), target, atol=0.02)
    assert np.abs(one_way(mean, 0) - target).max() > 0.04


def test_what_is_impossible_stays_so() -> None:
    plain = domain_of([3, 2, 4])
    a, b, _ = plain.attributes
    possible = np.ones((3, 2), dtype=bool)
    possible[2, :] = False  # the code as a whole
    possible[0, 1] = False
    domain = Domain(plain.attributes, plain.sizes, (StructuralZeros((a, b), possible),))
    before = [
        GraphicalModel(
            domain, 9.0, {k: np.where(possible, t, -np.inf) if k == (a, b) else t for k, t in m.potentials.items()}
        )
        for m in models(plain, 6, 4)
    ]
    counts = {(c,): one_way(joints(before)[0], i) for i, c in enumerate(domain)}
    new = joints(list(recentred(before, counts)))
    assert (new[:, ~possible] == 0).all()
    assert np.isfinite(new).all()
    assert_allclose(new.sum(axis=(1, 2, 3)), 1.0)
