"""Propagation: the junction tree's marginals and partition function are those of plain enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose

from margrave.domain import Domain
from margrave.errors import ReleaseError
from margrave.models import GraphicalModel
from margrave.models.graphical import propagation
from margrave.models.graphical.junction_tree import JunctionTree
from margrave.models.graphical.propagation import Calibration
from margrave.types import Clique, FloatArray
from tests.support.strategies import Toy, domain_of, random_potentials, seeded, toys

TOTAL = 37.5


def close(actual: FloatArray, expected: FloatArray, rtol: float = 1e-9) -> None:
    """Relative to every cell on its own: impossible cells are exactly zero, rare ones are as precise as common ones."""
    assert actual.shape == expected.shape
    assert_allclose(actual, expected, rtol=rtol, atol=0.0)


def calibrated(
    domain: Domain, potentials: dict[Clique, FloatArray], total: float = TOTAL
) -> tuple[dict[Clique, FloatArray], float]:
    """Every factor's own marginal and log Σ Π factors, from one calibration."""
    cliques = list(potentials)
    program = Calibration(JunctionTree.of(domain, cliques), cliques)
    buffer = program.buffer()
    for clique, axes, start in zip(cliques, program.factor_axes, program.starts, strict=True):
        values = np.exp(np.transpose(potentials[clique], [clique.index(a) for a in axes]))
        buffer[start : start + values.size] = values.ravel()
    log_partition, _ = program.calibrate(buffer, total)
    marginals = {}
    for clique, axes, start, size in zip(
        cliques, program.factor_axes, program.starts, program.sizes, strict=True
    ):
        at = program.marginals + start
        values = buffer[at : at + size].reshape(domain.shape(axes))
        marginals[clique] = np.transpose(values, [axes.index(a) for a in clique])
    return marginals, log_partition


def agrees_with_enumeration(toy: Toy) -> None:
    marginals, log_partition = calibrated(toy.domain, toy.potentials)
    if not toy.possible:
        assert log_partition == -np.inf
        assert not any(values.any() for values in marginals.values())
        return
    assert log_partition == pytest.approx(toy.log_partition, rel=1e-9, abs=1e-9)
    for clique, values in marginals.items():
        close(values, toy.marginal(clique, TOTAL))


@seeded(120)
@given(toy=toys())
def test_calibration_is_enumeration(toy: Toy) -> None:
    agrees_with_enumeration(toy)


@pytest.mark.parametrize("workers", [2, 3, 7])
@seeded(40)
@given(toy=toys())
def test_calibration_is_enumeration_when_every_walk_is_split(workers: int, toy: Toy) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(propagation, "MIN_SPLIT_CELLS", 1)
        patch.setattr(propagation, "_workers", lambda: workers)
        agrees_with_enumeration(toy)


@seeded(80)
@given(toy=toys())
def test_a_model_projects_onto_its_nodes_as_enumeration_does(toy: Toy) -> None:
    if not toy.possible:
        with pytest.raises(ReleaseError):
            GraphicalModel(toy.domain, TOTAL, toy.potentials)
        return
    model = GraphicalModel(toy.domain, TOTAL, toy.potentials)
    assert model.log_partition == pytest.approx(toy.log_partition, rel=1e-9, abs=1e-9)
    for node in model.tree.cliques:
        for k in range(1, len(node) + 1):
            for clique in combinations(node, k):
                close(np.asarray(model.project(clique).values), toy.marginal(clique, TOTAL))


@seeded(40)
@given(toy=toys())
def test_a_split_model_projects_as_enumeration_does(toy: Toy) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(propagation, "MIN_SPLIT_CELLS", 1)
        patch.setattr(propagation, "_workers", lambda: 3)
        if toy.possible:
            model = GraphicalModel(toy.domain, TOTAL, toy.potentials)
            for node in model.tree.cliques:
                close(np.asarray(model.project(node).values), toy.marginal(node, TOTAL))


@pytest.mark.parametrize(
    ("dims", "strides", "parts", "axis"),
    [
        ([2, 40], [100, 0], 2, 0),
        ([3, 40], [0, 0], 2, 1),  # 2 and 1 are far from even
        ([11, 2], [0, 0], 2, 0),  # 6 and 5 are even enough
        ([2, 5, 30], [0, 0, 0], 8, 2),  # 30 in eight: the longest is 4
        ([4, 4], [0, 100], 2, 1),  # parts of axis 0 would add the same 400 cells
        ([3, 4], [400, 100], 2, 1),
        ([1, 4], [0, 100], 2, 1),
        ([1, 4], [0, 0], 2, 0),  # two parts would cost as much as one
    ],
)
def test_walks_are_split_evenly_and_share_few_outputs(
    dims: list[int], strides: list[int], parts: int, axis: int
) -> None:
    length = 100  # of the cells side by side, which is no axis to split
    spans = length + np.array(strides) @ (np.array(dims) - 1)
    found = propagation._split_axis(
        np.array(dims), length * int(np.prod(dims)), np.array([strides]), np.array([spans]), parts
    )
    assert found == axis


def test_parts_have_cells_of_their_own_only_in_outputs_that_they_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(propagation, "_workers", lambda: 3)
    domain = domain_of([6, 5, 40])
    tree = JunctionTree.of(domain, [domain.attributes])
    outputs = [propagation.Slot(0, ("c0", "c2")), propagation.Slot(240, ("c1", "c2"))]
    shape = propagation.describe(tree, ("c0", "c1", "c2"), [], outputs)
    assert (shape.dims.tolist(), shape.lines.shape[1], shape.places.shape[1]) == ([6], 5, 40)
    assert shape.split.cuts == [0, 2, 4, 6]
    assert shape.split.shared.tolist() == [1]
    assert shape.split.spare == 2 * 5 * 40


def test_no_factors_at_all_is_the_uniform_distribution() -> None:
    model = GraphicalModel(domain_of([2, 3, 1]), 12.0, {})
    close(np.asarray(model.project(("c0", "c1")).values), np.full((2, 3), 2.0))
    assert model.log_partition == pytest.approx(np.log(6))


@pytest.mark.parametrize("size", [1, 2, 9])
def test_one_column(size: int) -> None:
    theta = np.random.default_rng(size).normal(size=size)
    model = GraphicalModel(domain_of([size]), TOTAL, {("c0",): theta})
    close(np.asarray(model.project(("c0",)).values), TOTAL * np.exp(theta) / np.exp(theta).sum())


def test_columns_of_one_code_between_others() -> None:
    domain = domain_of([1, 3, 1, 2, 1])
    rng = np.random.default_rng(1)
    cliques = [("c0", "c1", "c2"), ("c2", "c3"), ("c3", "c4"), ("c0",)]
    agrees_with_enumeration(Toy(domain, random_potentials(domain, cliques, rng)))


@pytest.mark.parametrize("impossible", [0.0, 0.3])
def test_a_long_chain_is_a_product_of_matrices(impossible: float) -> None:
    """150 nodes deep: marginals and log partition by transfer matrices, rescaled at each step."""
    length, size = 151, 3
    domain = domain_of([size] * length)
    rng = np.random.default_rng(4)
    pairs = list(zip(domain.attributes, domain.attributes[1:], strict=False))
    potentials = random_potentials(domain, pairs, rng, impossible=impossible)
    for theta in potentials.values():
        np.fill_diagonal(theta, 0.0)  # some record stays possible
    forward, backward, log_partition = [np.ones(size)], [np.ones(size)], 0.0
    for pair in pairs:
        step = forward[-1] @ np.exp(potentials[pair])
        log_partition += float(np.log(step.sum()))
        forward.append(step / step.sum())
    for pair in reversed(pairs):
        step = np.exp(potentials[pair]) @ backward[-1]
        backward.append(step / step.sum())
    backward.reverse()
    marginals, found = calibrated(domain, potentials)
    assert found == pytest.approx(log_partition, rel=1e-9)
    for i, pair in enumerate(pairs):
        expected = forward[i][:, None] * np.exp(potentials[pair]) * backward[i + 1]
        close(marginals[pair], TOTAL * expected / expected.sum())


def test_a_long_chain_in_a_model_answers_for_its_two_ends() -> None:
    length, size = 60, 3
    domain = domain_of([size] * length)
    pairs = list(zip(domain.attributes, domain.attributes[1:], strict=False))
    # strong ties, so that the ends still know of each other
    potentials = {
        p: 8.0 * np.eye(size) + np.random.default_rng(i).normal(size=(3, 3))
        for i, p in enumerate(pairs)
    }
    expected = np.eye(size)
    for pair in pairs:
        expected = expected @ np.exp(potentials[pair])
        expected /= expected.sum()
    assert np.abs(expected - np.outer(expected.sum(1), expected.sum(0))).max() > 0.01
    ends = GraphicalModel(domain, TOTAL, potentials).project(
        (domain.attributes[0], domain.attributes[-1])
    )
    close(np.asarray(ends.values), TOTAL * expected)


def test_potentials_may_be_far_from_zero() -> None:
    """Constants of ±2000 in a potential, which exp cannot hold, move the log partition and nothing else."""
    domain = domain_of([3, 4, 2])
    plain = random_potentials(domain, [("c0", "c1"), ("c1", "c2")], np.random.default_rng(2))
    moved = {("c0", "c1"): plain["c0", "c1"] + 2000.0, ("c1", "c2"): plain["c1", "c2"] - 2500.0}
    a, b = GraphicalModel(domain, TOTAL, plain), GraphicalModel(domain, TOTAL, moved)
    assert b.log_partition == pytest.approx(a.log_partition - 500.0, rel=1e-12)
    close(np.asarray(b.project(("c0", "c2")).values), np.asarray(a.project(("c0", "c2")).values))


def test_impossible_cells_that_leave_no_record_are_refused() -> None:
    domain = domain_of([2, 2])
    never = {
        ("c0",): np.array([0.0, -np.inf]),
        ("c0", "c1"): np.array([[-np.inf, -np.inf], [0.0, 0.0]]),
    }
    with pytest.raises(ReleaseError, match="No record"):
        GraphicalModel(domain, TOTAL, never)
    with pytest.raises(ReleaseError, match="c1"):
        GraphicalModel(domain, TOTAL, {("c1",): np.full(2, -np.inf)})


def a_larger_model(seed: int) -> tuple[Domain, dict[Clique, FloatArray]]:
    rng = np.random.default_rng(seed)
    domain = domain_of(rng.integers(5, 12, size=10).tolist())
    triples = list(combinations(domain.attributes, 3))
    cliques = [triples[i] for i in rng.choice(len(triples), 6, replace=False)]
    return domain, random_potentials(domain, cliques, rng, spread=1.0, impossible=0.05)


@pytest.mark.parametrize("seed", [0, 1])
def test_split_and_unsplit_walks_agree_on_a_larger_model(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain, potentials = a_larger_model(seed)
    assert JunctionTree.of(domain, list(potentials)).cells() > 5_000
    monkeypatch.setattr(propagation, "_workers", lambda: 3)
    monkeypatch.setattr(propagation, "MIN_SPLIT_CELLS", 10**15)
    whole, log_whole = calibrated(domain, potentials)
    monkeypatch.setattr(propagation, "MIN_SPLIT_CELLS", 1)
    split, log_split = calibrated(domain, potentials)
    again, log_again = calibrated(domain, potentials)
    assert log_split == pytest.approx(log_whole, rel=1e-12)
    assert log_split == log_again
    for clique in potentials:
        close(split[clique], whole[clique], rtol=1e-10)
        assert np.array_equal(split[clique], again[clique])  # whichever thread was first
        assert split[clique].sum() == pytest.approx(TOTAL)


@pytest.mark.parametrize("sizes", [[2] * 14, [2, 3] * 5, [1, 2, 3, 40, 2, 1]])
@pytest.mark.parametrize("parts", [1, 3])
def test_axes_taken_for_one_give_what_each_alone_gives(
    sizes: list[int], parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(len(sizes))
    domain = domain_of(sizes)
    triples = list(combinations(domain.attributes, 3))
    cliques = [triples[i] for i in rng.choice(len(triples), 14, replace=False)]
    potentials = random_potentials(domain, cliques, rng, spread=1.0, impossible=0.05)
    monkeypatch.setattr(propagation, "LINE", 1)
    monkeypatch.setattr(propagation, "MAX_TILE", 1)
    alone, log_alone = calibrated(domain, potentials)
    if parts > 1:
        monkeypatch.setattr(propagation, "_workers", lambda: parts)
        monkeypatch.setattr(propagation, "MIN_SPLIT_CELLS", 1)
    for line, least, most in (
        (1, 8, 60),
        (32, 128, 4096),
        (200, 128, 4096),
        (10**6, 1, 10**6),
        (1, 10**6, 10**6),
    ):
        monkeypatch.setattr(propagation, "LINE", line)
        monkeypatch.setattr(propagation, "MIN_TILE", least)
        monkeypatch.setattr(propagation, "MAX_TILE", most)
        program = Calibration(JunctionTree.of(domain, cliques), cliques)
        lengths = [w.places.shape[1] for w in program.walks]
        tiles = [w.places.shape[1] * w.lines.shape[1] for w in program.walks]
        assert max(lengths) > max(sizes) or line <= 4 * max(sizes)
        assert max(tiles) <= most
        assert max(tiles) > max(sizes) or least <= max(sizes)
        together, log_together = calibrated(domain, potentials)
        assert log_together == pytest.approx(log_alone, rel=1e-12)
        for clique in cliques:
            close(together[clique], alone[clique], rtol=1e-10)
            assert together[clique].sum() == pytest.approx(TOTAL)


def test_marginals_that_share_columns_agree_on_a_larger_model() -> None:
    domain, potentials = a_larger_model(2)
    marginals, _ = calibrated(domain, potentials)
    for attribute in domain:
        seen = [
            np.moveaxis(m, c.index(attribute), 0).reshape(domain.size(attribute), -1).sum(1)
            for c, m in marginals.items()
            if attribute in c
        ]
        for values in seen[1:]:
            close(values, seen[0])
