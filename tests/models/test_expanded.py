"""Merged codes: the model of groups with shares is what its formula says, under every question."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from margrave.domain import Domain, StructuralZeros
from margrave.errors import ReleaseError
from margrave.marginal.counting import count_cliques
from margrave.models import FAMILIES, GraphicalModel, MergedCodesModel
from margrave.types import Clique, FloatArray
from tests.support.strategies import (
    domain_of,
    generators,
    marginal_of,
    random_potentials,
    seeded,
    some_domain,
)

TOTAL = 80.0


def joint_of(model: MergedCodesModel) -> FloatArray:
    """p(x) = p_coarse(groups of x) · Π_a share_a(x_a), cell by cell."""
    coarse = np.asarray(model.coarse.project(model.domain.attributes).values)
    joint = np.zeros(model.domain.sizes)
    for cell in np.ndindex(*model.domain.sizes):
        pairs = list(zip(model.domain, cell, strict=True))
        inside = tuple(
            int(model.groups[a][code]) if a in model.groups else code for a, code in pairs
        )
        joint[cell] = coarse[inside]
        for a, code in pairs:
            joint[cell] *= model.shares[a][code] if a in model.shares else 1.0
    return joint


@st.composite
def expanded_models(draw: st.DrawFn) -> MergedCodesModel:
    """Some columns of some domain in groups, with random shares, and a random model of the groups."""
    rng = draw(generators())
    domain = some_domain(rng, 4, 5)
    groups, shares, sizes = {}, {}, []
    for attribute in domain:
        size = domain.size(attribute)
        if rng.random() < 0.5:
            count = int(rng.integers(1, size + 1))
            own = rng.permutation(np.arange(size) % count).astype(np.int64)
            weights = rng.gamma(0.5, size=size) + 1e-3
            groups[attribute], shares[attribute] = (
                own,
                weights / np.bincount(own, weights=weights)[own],
            )
            size = count
        sizes.append(size)
    coarse = domain_of(sizes)
    cliques = list(combinations(coarse.attributes, 2))[:3]
    inner = GraphicalModel(
        coarse, TOTAL, random_potentials(coarse, cliques, rng, spread=1.0, impossible=0.0)
    )
    return MergedCodesModel(domain, inner, groups, shares)


def every_clique(domain: Domain) -> list[Clique]:
    return [c for k in range(1, len(domain) + 1) for c in combinations(domain.attributes, k)]


@seeded(30)
@given(model=expanded_models())
def test_marginals_are_those_of_the_formula(model: MergedCodesModel) -> None:
    joint = joint_of(model)
    assert joint.sum() == pytest.approx(TOTAL)
    assert model.total == TOTAL
    cliques = every_clique(model.domain)
    together = model.answer(cliques)
    assert list(together) == cliques
    for clique in cliques:
        expected = marginal_of(model.domain, joint, clique)
        assert_allclose(model.project(clique).values, expected, rtol=1e-9, atol=1e-12)
        assert_allclose(together[clique], expected, rtol=1e-9, atol=1e-12)


@seeded(30)
@given(model=expanded_models(), data=st.data())
def test_conditioning_is_enumeration(model: MergedCodesModel, data: st.DataObject) -> None:
    domain = model.domain
    names = data.draw(st.lists(st.sampled_from(domain.attributes), max_size=3, unique=True))
    evidence = {
        a: data.draw(
            st.lists(st.integers(0, domain.size(a) - 1), min_size=1, max_size=3, unique=True)
        )
        for a in names
    }
    joint = joint_of(model)
    for attribute, codes in evidence.items():
        others = np.setdiff1d(np.arange(domain.size(attribute)), codes)
        np.moveaxis(joint, domain.index(attribute), 0)[others] = 0.0
    conditioned = model.condition(evidence)
    for clique in every_clique(domain):
        expected = marginal_of(domain, joint, clique) * (TOTAL / joint.sum())
        assert_allclose(conditioned.project(clique).values, expected, rtol=1e-9, atol=1e-11)
    codes = conditioned.sample(60, rng=np.random.default_rng(0))
    assert all(set(codes.column(a)) <= set(allowed) for a, allowed in evidence.items())


@seeded(20)
@given(model=expanded_models())
def test_records_are_dealt_within_their_groups(model: MergedCodesModel) -> None:
    """Given a group, each code gets its share of the records, rounded up or down."""
    codes = model.sample(3_000, rng=np.random.default_rng(1))
    assert len(codes) == 3_000
    assert codes.domain == model.domain
    for attribute, groups in model.groups.items():
        counts = count_cliques(codes, [(attribute,)])[attribute,]
        expected = np.bincount(groups, weights=counts)[groups] * model.shares[attribute]
        assert np.abs(counts - expected).max() < 1.0 + 1e-6


def merged_model() -> MergedCodesModel:
    coarse = domain_of([2, 3])
    inner = GraphicalModel(
        coarse, TOTAL, random_potentials(coarse, [("c0", "c1")], np.random.default_rng(0))
    )
    groups = {"c0": np.array([0, 1, 1, 0]), "c1": np.array([0, 1, 2, 2])}
    shares = {"c0": np.array([0.25, 0.5, 0.5, 0.75]), "c1": np.array([1.0, 1.0, 0.1, 0.9])}
    return MergedCodesModel(domain_of([4, 4]), inner, groups, shares)


def test_a_code_with_no_share_never_appears_and_cannot_be_evidence() -> None:
    model = merged_model()
    shares = {**model.shares, "c0": np.array([0.0, 1.0, 0.0, 1.0])}
    model = MergedCodesModel(model.domain, model.coarse, model.groups, shares)
    assert set(model.sample(500, rng=np.random.default_rng(0)).column("c0")) == {1, 3}
    for evidence in ({"c0": [0]}, {"c0": [0, 2]}, {"c1": []}):
        with pytest.raises(ReleaseError, match="No record"):
            model.condition(evidence)


def test_the_total_and_no_records_at_all() -> None:
    model = merged_model()
    assert len(model.sample(rng=np.random.default_rng(0))) == round(TOTAL)
    assert len(model.sample(0, rng=np.random.default_rng(0))) == 0


# --------------------------------------------------------------------------------------------------- the state


@seeded(15)
@given(model=expanded_models())
def test_state_and_load_give_identical_answers(model: MergedCodesModel) -> None:
    narrowed = model.condition({model.domain.attributes[0]: [0]})
    for original in (model, narrowed):
        state = original.state()
        again = FAMILIES[state.kind].load(
            original.domain, json.loads(json.dumps(state.facts)), state.arrays
        )
        for clique in every_clique(original.domain):
            assert np.array_equal(again.project(clique).values, original.project(clique).values)
        a, b = (m.sample(40, rng=np.random.default_rng(2)).values for m in (original, again))
        assert np.array_equal(a, b)


Facts = dict[str, Any]
MALFORMED: dict[str, Callable[[Facts, Facts], object]] = {
    "no merged columns": lambda facts, arrays: facts.pop("merged"),
    "merged is text": lambda facts, arrays: facts.update(merged="c0"),
    "an unknown column": lambda facts, arrays: facts.update(merged=["c0", "nobody"]),
    "a column is a list": lambda facts, arrays: facts.update(merged=["c0", ["c1"]]),
    "a column is a number": lambda facts, arrays: facts.update(merged=[0, 1]),
    "a column twice": lambda facts, arrays: facts.update(merged=["c0", "c0"]),
    "another kind inside": lambda facts, arrays: facts.update(coarse="answers"),
    "nothing inside": lambda facts, arrays: facts.pop("coarse_facts"),
    "text inside": lambda facts, arrays: facts.update(coarse_facts="graphical"),
    "a broken inside": lambda facts, arrays: facts["coarse_facts"].pop("cliques"),
    "an inside of another total": lambda facts, arrays: facts["coarse_facts"].update(total=-1.0),
    "no potentials": lambda facts, arrays: arrays.pop("coarse_potential0"),
    "groups missing": lambda facts, arrays: arrays.pop("groups1"),
    "shares missing": lambda facts, arrays: arrays.pop("shares0"),
    "groups too short": lambda facts, arrays: arrays.update(groups0=np.zeros(3, dtype=np.int64)),
    "groups below zero": lambda facts, arrays: arrays.update(groups0=np.array([0, 1, -1, 0])),
    "groups beyond the codes": lambda facts, arrays: arrays.update(groups0=np.array([0, 1, 4, 0])),
    "groups that are floats": lambda facts, arrays: arrays.update(groups0=np.zeros(4)),
    "a group of no codes": lambda facts, arrays: arrays.update(groups0=np.array([0, 2, 2, 0])),
    "another number of groups": lambda facts, arrays: arrays.update(groups0=np.array([0, 1, 2, 0])),
    "shares too long": lambda facts, arrays: arrays.update(shares0=np.ones(5)),
    "shares that are text": lambda facts, arrays: arrays.update(shares0=np.full(4, "a")),
    "shares below zero": lambda facts, arrays: arrays.update(
        shares0=np.array([1.25, 0.5, 0.5, -0.25])
    ),
    "shares that are not numbers": lambda facts, arrays: arrays.update(shares0=np.full(4, np.nan)),
    "shares that make up more": lambda facts, arrays: arrays.update(shares0=np.full(4, 0.75)),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_state_is_a_release_error(what: str) -> None:
    model = merged_model()
    state = model.state()
    facts, arrays = json.loads(json.dumps(state.facts)), dict(state.arrays)
    assert FAMILIES["expanded"].load(model.domain, facts, arrays).total == TOTAL
    MALFORMED[what](facts, arrays)
    with pytest.raises(ReleaseError):
        FAMILIES["expanded"].load(model.domain, facts, arrays)


def test_a_state_that_merges_a_column_with_structural_zeros_is_a_release_error() -> None:
    model = merged_model()
    zeros = StructuralZeros(("c0",), np.array([True, True, False, True]))
    state = model.state()
    with pytest.raises(ReleaseError):
        FAMILIES["expanded"].load(
            Domain(model.domain.attributes, model.domain.sizes, (zeros,)), state.facts, state.arrays
        )
