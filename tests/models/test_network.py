"""Bayesian networks: the families of measured marginals, records and answers by brute force."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from margrave.domain import Codes, Domain
from margrave.errors import InputError, ModelTooLargeError, ReleaseError
from margrave.marginal import LinearMap
from margrave.marginal.axes import expand_axes
from margrave.marginal.counting import count_cliques
from margrave.models import FAMILIES, Needs, NetworkFit, NetworkModel
from margrave.models.network import ConditionalTable
from margrave.models.network.fit import families_of
from margrave.structural_zeros import StructuralZeros
from margrave.transcript import PublicTotal, Transcript
from margrave.types import Attribute, Clique, FloatArray
from tests.support.strategies import domain_of, measurement

DOMAIN = domain_of([2, 3, 2, 4])
ALL = DOMAIN.attributes
Families = list[tuple[Attribute, Clique]]
DIAMOND: Families = [("c2", ()), ("c0", ("c2",)), ("c3", ("c2",)), ("c1", ("c0", "c3"))]


def network(seed: int = 0, families: Families = DIAMOND, total: float = 1000.0) -> NetworkModel:
    """A network with random tables, some of whose probabilities are 0."""
    rng = np.random.default_rng(seed)
    conditionals = []
    for column, parents in families:
        weights = rng.gamma(0.5, size=(*DOMAIN.shape(parents), DOMAIN.size(column)))
        weights[..., 0] *= rng.random(weights.shape[:-1]) < 0.7
        table = weights / weights.sum(axis=-1, keepdims=True)
        conditionals.append(ConditionalTable(column, parents, table))
    return NetworkModel(DOMAIN, total, conditionals)


def joint(of: NetworkModel) -> FloatArray:
    """The probability of every record, by the chain rule."""
    product = np.ones(DOMAIN.sizes)
    for c in of.conditionals:
        axes = (*c.parents, c.column)
        clique = DOMAIN.clique(axes)
        product *= expand_axes(c.table.transpose([axes.index(a) for a in clique]), clique, ALL)
    return product


def exact(of: NetworkModel, cliques: Sequence[Clique], scale: float = 1e-3) -> Transcript:
    """Measurements of a network's marginals, nearly without noise, of very many records."""
    scaled = NetworkModel(DOMAIN, 1e9, of.conditionals)
    answers = scaled.answer(cliques)
    return Transcript((PublicTotal(10**9), *(measurement(c, answers[c], scale) for c in cliques)))


def fitted(transcript: Transcript, **how: Any) -> NetworkModel:
    found = NetworkFit(**how)(DOMAIN, transcript, rng=np.random.default_rng(0))
    assert isinstance(found, NetworkModel)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_answers_are_the_products_of_the_conditionals(seed: int) -> None:
    one = network(seed)
    cliques: list[Clique] = [ALL, ("c1", "c2"), ("c3",)]
    answers = one.answer(cliques)
    assert_allclose(answers[ALL], 1000 * joint(one), atol=1e-9)
    assert_allclose(answers[("c1", "c2")], 1000 * joint(one).sum(axis=(0, 3)), atol=1e-9)
    assert one.answer(cliques, rng=np.random.default_rng(0))[ALL].tolist() == answers[ALL].tolist()


@pytest.mark.parametrize("independent", [True, False])
def test_records_have_the_probabilities_of_the_network(independent: bool) -> None:
    """Within six standard deviations of independent draws; impossible records are never drawn."""
    one, n = network(3), 40_000
    rows = one.sample(n, rng=np.random.default_rng(1), independent=independent)
    counts, p = count_cliques(rows, [ALL])[ALL], joint(one)
    assert (abs(counts - n * p) <= 6 * np.sqrt(n * p * (1 - p)) + 1).all()
    assert not counts[p == 0].any()


def test_a_network_too_large_for_exact_answers_counts_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(NetworkModel, "max_tree_cells", 10)
    one = network(2)
    counted = one.answer([ALL], rng=np.random.default_rng(0))[ALL]
    assert abs(counted - 1000 * joint(one)).sum() < 20
    assert counted.sum() == pytest.approx(1000)
    with pytest.raises(ModelTooLargeError):
        one.answer([ALL])
    with pytest.raises(ModelTooLargeError):
        one.condition({"c0": [1]})


def test_conditions_and_completions_are_those_of_the_joint_distribution() -> None:
    one = network(5)
    kept = joint(one)
    kept[:, [0, 2]] = 0.0
    given = one.condition({"c1": [1]})
    assert_allclose(given.answer([ALL])[ALL], 1000 * kept / kept.sum(), atol=1e-9)
    known = Codes.of(DOMAIN.project(("c1",)), {"c1": np.ones(20_000, dtype=np.uint32)})
    rows = one.complete(known, rng=np.random.default_rng(0))
    shares = count_cliques(rows, [ALL])[ALL] / 20_000
    assert abs(shares - kept / kept.sum()).sum() < 0.05


# The fit.


@pytest.mark.parametrize("columns_first", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_families_of_a_network_give_it_back(seed: int, columns_first: bool) -> None:
    one = network(seed)
    wide = [DOMAIN.clique((*parents, a)) for a, parents in DIAMOND]
    cliques = [*([(a,) for a in ALL] if columns_first else []), *wide]
    found = fitted(exact(one, list(dict.fromkeys(cliques))))
    assert_allclose(joint(found), joint(one), atol=1e-6)


def test_every_network_is_found_again_from_its_cliques() -> None:
    """Of random networks with a parent for each column but the first: the same families, in some order."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        domain = domain_of([2] * int(rng.integers(2, 9)))
        order = rng.permutation(domain.attributes).tolist()
        families = {order[0]: ()} | {
            a: domain.clique(rng.choice(order[:i], int(rng.integers(1, min(i, 3) + 1)), False))
            for i, a in enumerate(order)
            if i
        }
        cliques = [domain.clique((*parents, a)) for a, parents in families.items()]
        found = dict(families_of(domain, cliques[1:]))
        # of the first pair, either column may be the root
        assert {domain.clique((*p, a)) for a, p in found.items() if p} == set(cliques[1:])
        seen: set[Attribute] = set()
        for a, parents in found.items():
            assert seen.issuperset(parents)
            seen.add(a)
        assert seen == set(domain)


def test_the_edges_of_a_tree_are_all_used_in_whatever_order() -> None:
    edges: list[Clique] = [("c0", "c1"), ("c2", "c3"), ("c1", "c2")]
    found = families_of(DOMAIN, [*((a,) for a in ALL), *edges])
    assert {DOMAIN.clique((*p, a)) for a, p in found if p} == set(edges)


def test_columns_measured_alone_come_last_and_others_are_uniform() -> None:
    assert families_of(DOMAIN, [("c3",), ("c1", "c2")]) == [
        ("c1", ()), ("c2", ("c1",)), ("c0", ()), ("c3", ()),
    ]  # fmt: skip
    found = fitted(Transcript((PublicTotal(10), measurement(("c3",), [4, 4, 2, 0], 1.0))))
    assert found.answer([("c1",)])[("c1",)].tolist() == pytest.approx([10 / 3] * 3)
    assert_allclose(found.answer([("c3",)])[("c3",)], [4, 4, 2, 0])


def test_a_family_averages_all_marginals_that_contain_it() -> None:
    pair = measurement(("c0", "c1"), [[10, 20, 30], [40, 50, 60]], 2.0)
    single = measurement(("c0",), [80, 140], 1.0)
    found = fitted(Transcript((PublicTotal(210), pair, single)), clip=True)
    mean = (np.array([60, 150]) / 12 + np.array([80, 140])) / (1 / 12 + 1)
    assert_allclose(found.answer([("c0",)])[("c0",)], 210 * mean / mean.sum())


def test_the_papers_tables_are_clipped_and_rescaled() -> None:
    """Each way on a pair with negative cells; parents without counts leave the column's distribution."""
    pair = measurement(("c0", "c2"), [[90, -20], [-5, -5]], 1.0)
    clipped = fitted(Transcript((PublicTotal(60), pair)), clip=True)
    assert_allclose(clipped.answer([("c0", "c2")])[("c0", "c2")], [[60, 0], [0, 0]])
    assert clipped.conditionals[1].table[1].tolist() == [1.0, 0.0]
    pair = measurement(("c0", "c2"), [[50, 30], [40, -20]], 1.0)
    clipped = fitted(Transcript((PublicTotal(100), pair)), clip=True)
    assert_allclose(clipped.answer([("c0", "c2")])[("c0", "c2")][0], [50 / 80 * 80, 30 / 80 * 80])
    nearest = fitted(Transcript((PublicTotal(100), pair)))
    assert_allclose(nearest.answer([("c2",)])[("c2",)], [90, 10], atol=1.0)  # raked to its column


def test_entries_that_it_cannot_use_are_refused() -> None:
    merged = measurement(("c1",), [3, 4], 1.0, LinearMap({"c1": np.array([0, 0, 1])}))
    with pytest.raises(InputError, match="merged codes"):
        fitted(Transcript((PublicTotal(7), merged)))
    ruled = Domain.of({"a": 2}, zeros=[StructuralZeros(("a",), np.array([True, False]))])
    with pytest.raises(InputError, match="impossible combinations"):
        NetworkFit().check(ruled, Needs())


# The release file.


def test_a_state_is_read_back_and_a_malformed_one_is_refused() -> None:
    state = network(1).state()
    load = FAMILIES["network"].load
    again = load(DOMAIN, state.facts, state.arrays)
    assert isinstance(again, NetworkModel)
    assert np.array_equal(joint(again), joint(network(1)))
    first = state.arrays["table0"]
    broken: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"order": ["c0", "c1", "c2"]}, {}),
        ({"order": ["c0", "c1", "c2", "c2"]}, {}),
        ({"order": None}, {}),
        ({"order": [[], {}, 1, 2]}, {}),
        ({"parents": [["c1"], ["c2"], ["c2"], ["c0", "c3"]]}, {}),
        ({"parents": [[], ["c2"], ["c2"], ["c3", "c0"]]}, {}),
        ({"parents": [[], ["c2"], ["c2"], ["c0", "c0"]]}, {}),
        ({"parents": [[], ["c2"], ["c2"], [["c0"]]]}, {}),
        ({"parents": [[], [], []]}, {}),
        ({"total": float("nan")}, {}),
        ({}, {"table0": first * 2}),
        ({}, {"table0": first - 1.0}),
        ({}, {"table0": np.full_like(first, np.nan)}),
        ({}, {"table0": first[:1]}),
    ]
    for facts, arrays in broken:
        with pytest.raises(ReleaseError):
            load(DOMAIN, {**state.facts, **facts}, {**state.arrays, **arrays})
