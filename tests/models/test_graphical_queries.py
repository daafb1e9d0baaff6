"""Queries: marginals outside the tree's nodes, conditioning, and the state that a release file keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from margrave.domain import Domain
from margrave.errors import ModelTooLargeError, ReleaseError
from margrave.marginal import lattice
from margrave.models import FAMILIES, GraphicalModel
from margrave.models.graphical import model as model_module
from margrave.models.graphical.variable_elimination import VariableElimination
from margrave.models.protocol import Model, ModelState
from margrave.types import Clique
from tests.support.strategies import Toy, domain_of, random_potentials, seeded, toys

TOTAL = 123.0


def every_clique(domain: Domain) -> list[Clique]:
    return [c for k in range(1, len(domain) + 1) for c in combinations(domain.attributes, k)]


def built(toy: Toy) -> GraphicalModel | None:
    return GraphicalModel(toy.domain, TOTAL, toy.potentials) if toy.possible else None


@seeded(60)
@given(toy=toys())
def test_any_marginal_is_that_of_enumeration(toy: Toy) -> None:
    model = built(toy)
    if model is None:
        return
    cliques = every_clique(toy.domain)
    together = model.answer(cliques)
    assert list(together) == cliques
    for clique in cliques:
        expected = toy.marginal(clique, TOTAL)
        assert_allclose(together[clique], expected, rtol=1e-9, atol=1e-12)
        alone = model.project(clique)
        assert alone.clique == clique
        assert_allclose(alone.values, together[clique], rtol=1e-12, atol=1e-12)


@seeded(60)
@given(toy=toys(), large=st.integers(1, 8))
def test_marginals_summed_down_together_are_those_of_enumeration(toy: Toy, large: int) -> None:
    model = built(toy)
    if model is None:
        return
    with mock.patch.object(lattice, "MAX_DIRECT_CELLS", large):
        together = model.answer(every_clique(toy.domain))
    for clique, counts in together.items():
        assert_allclose(counts, toy.marginal(clique, TOTAL), rtol=1e-9, atol=1e-12)


def test_a_large_table_is_not_read_anew_for_each_of_its_marginals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All 364 triples of a table of 16,384 cells: together they read a sixth of what each would alone."""
    domain = domain_of([2] * 14)
    table = np.random.default_rng(4).random((2,) * 14)
    model = GraphicalModel(domain, 1.0, {domain.attributes: np.log(table)})
    triples = list(combinations(domain.attributes, 3))
    read: list[int] = []
    real = lattice._sum_out
    monkeypatch.setattr(lattice, "MAX_DIRECT_CELLS", 8)
    monkeypatch.setattr(
        lattice, "_sum_out", lambda t, axis: (read.append(t.size), real(t, axis))[1]
    )
    found = VariableElimination(model, [domain.attributes, *triples], 10**9).run(triples)
    assert len(triples) <= len(read)
    assert sum(read) < len(triples) * table.size / 6
    for c in triples:
        others = tuple(i for i, a in enumerate(domain.attributes) if a not in c)
        assert_allclose(found[c], table.sum(axis=others) / table.sum(), rtol=1e-9)


@seeded(40)
@given(toy=toys(), limit=st.integers(1, 200))
def test_within_reach_are_those_that_fit_alone(toy: Toy, limit: int) -> None:
    """However they are packed: each that a plan of its own could hold, with its exact counts, and no other."""
    model = built(toy)
    if model is None:
        return
    cliques = every_clique(toy.domain)
    found = model.exact(cliques, limit)
    assert set(found) == {c for c in cliques if VariableElimination(model, [c], limit).fits}
    for clique, counts in found.items():
        assert_allclose(counts, toy.marginal(clique, TOTAL), rtol=1e-9, atol=1e-12)
    assert set(model.exact(cliques)) == set(cliques)
    cheapest = model.exact(cliques, limit, in_all=limit)
    assert VariableElimination(model, list(cheapest), limit).fits
    assert set(cheapest) <= set(found)
    cost = {c: VariableElimination(model, [c], limit).cells for c in found}
    assert bool(cheapest) == bool(found)
    assert min(cost.values(), default=0) == min((cost[c] for c in cheapest), default=0)


@seeded(30)
@given(toy=toys(), data=st.data())
def test_a_batch_in_any_order_is_the_single_answers(toy: Toy, data: st.DataObject) -> None:
    model = built(toy)
    if model is None:
        return
    cliques = data.draw(st.lists(st.sampled_from(every_clique(toy.domain)), max_size=8))
    together = model.answer(
        cliques, rng=np.random.default_rng(0)
    )  # small: exact, with or without records
    assert list(together) == list(dict.fromkeys(cliques))
    for clique, values in together.items():
        assert_allclose(values, model.project(clique).values, rtol=1e-12, atol=1e-12)


def test_large_batches_may_be_counted_in_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the exact limit and with an rng, counts come from dealt records and are scaled to the total."""
    domain = domain_of([4, 5, 3, 6])
    pairs = [("c0", "c1"), ("c1", "c2"), ("c2", "c3")]
    model = GraphicalModel(
        domain, TOTAL, random_potentials(domain, pairs, np.random.default_rng(0), spread=1.0)
    )
    wanted = list(combinations(domain.attributes, 2))
    exact = model.answer(wanted)
    monkeypatch.setattr(model_module, "EXACT_CELLS", 1)
    counted = model.answer(wanted, rng=np.random.default_rng(1))
    assert any(not np.allclose(counted[c], exact[c], rtol=1e-9) for c in wanted)
    for clique in wanted:
        assert counted[clique].sum() == pytest.approx(TOTAL)
        assert np.abs(counted[clique] - exact[clique]).sum() / TOTAL < 0.02
    # without an rng the answer is exact, whatever it takes
    again = model.answer(wanted)
    assert all(np.array_equal(again[c], exact[c]) for c in wanted)


def test_a_marginal_that_takes_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = domain_of([4] * 8)
    model = GraphicalModel(domain, TOTAL, {(a,): np.zeros(4) for a in domain})
    assert model.project(domain.attributes).values.size == 4**8
    monkeypatch.setattr(model_module, "PROJECT_CELLS", 1_000)
    with pytest.raises(ModelTooLargeError, match="fewer columns"):
        model.project(domain.attributes)
    with pytest.raises(ModelTooLargeError):
        model.answer([domain.attributes])


# ---------------------------------------------------------------------------------------------- conditioning


@seeded(60)
@given(toy=toys(), data=st.data())
def test_conditioning_is_enumeration(toy: Toy, data: st.DataObject) -> None:
    model = built(toy)
    if model is None:
        return
    domain = toy.domain
    names = data.draw(st.lists(st.sampled_from(domain.attributes), max_size=3, unique=True))
    evidence = {
        a: data.draw(
            st.lists(st.integers(0, domain.size(a) - 1), min_size=1, max_size=3, unique=True)
        )
        for a in names
    }
    joint = toy.joint(TOTAL)
    for attribute, codes in evidence.items():
        others = np.setdiff1d(np.arange(domain.size(attribute)), codes)
        np.moveaxis(joint, domain.index(attribute), 0)[others] = 0.0
    if joint.sum() == 0.0:
        with pytest.raises(ReleaseError):
            model.condition(evidence)
        return
    conditioned = model.condition(evidence)
    assert conditioned.total == TOTAL
    for clique in every_clique(domain):
        axes = tuple(i for i, a in enumerate(domain) if a not in clique)
        expected = joint.sum(axis=axes) * (TOTAL / joint.sum())
        assert_allclose(conditioned.project(clique).values, expected, rtol=1e-9, atol=1e-11)
    assert_allclose(
        model.project(domain.attributes[:1]).values,
        toy.marginal(domain.attributes[:1], TOTAL),
        rtol=1e-9,
    )


def test_conditioning_twice_is_conditioning_on_both() -> None:
    domain = domain_of([3, 4, 2])
    potentials = random_potentials(domain, [("c0", "c1"), ("c1", "c2")], np.random.default_rng(0))
    model = GraphicalModel(domain, TOTAL, potentials)
    once = model.condition({"c0": [0, 2], "c2": [1]})
    twice = model.condition({"c0": [0, 1, 2]}).condition({"c2": [1]}).condition({"c0": [0, 2]})
    assert_allclose(
        twice.project(("c0", "c1")).values, once.project(("c0", "c1")).values, rtol=1e-12
    )


def test_impossible_evidence_is_a_release_error() -> None:
    domain = domain_of([2, 3, 2])
    model = GraphicalModel(
        domain, TOTAL, {("c0", "c1"): np.array([[0.0, 0.0, -np.inf], [0.0, -np.inf, 0.0]])}
    )
    for evidence in ({"c0": [0], "c1": [2]}, {"c0": []}, {"c0": [0, 1], "c1": []}):
        with pytest.raises(ReleaseError, match="No record"):
            model.condition(evidence)
    narrowed = model.condition({"c0": [0]})
    with pytest.raises(ReleaseError, match="No record"):
        narrowed.condition({"c0": [1]})


# --------------------------------------------------------------------------------------------------- the state


def through_json(state: ModelState) -> ModelState:
    """What a file keeps: facts as JSON, arrays apart."""
    return ModelState(
        state.kind,
        json.loads(json.dumps(state.facts)),
        {k: v.copy() for k, v in state.arrays.items()},
    )


def reload(model: Model) -> Model:
    state = through_json(model.state())
    return FAMILIES[state.kind].load(model.domain, state.facts, state.arrays)


@seeded(40)
@given(toy=toys())
def test_state_and_load_give_identical_answers(toy: Toy) -> None:
    model = built(toy)
    if model is None:
        return
    again = reload(model)
    assert again.total == model.total
    for clique in every_clique(toy.domain):
        assert np.array_equal(again.project(clique).values, model.project(clique).values)
    a, b = (m.sample(50, rng=np.random.default_rng(4)).values for m in (model, again))
    assert np.array_equal(a, b)


def test_a_conditioned_model_survives_too() -> None:
    domain = domain_of([3, 4])
    model = GraphicalModel(
        domain, TOTAL, random_potentials(domain, [("c0", "c1")], np.random.default_rng(0))
    )
    narrowed = model.condition({"c1": [0, 3]})
    assert np.array_equal(
        reload(narrowed).project(("c0", "c1")).values, narrowed.project(("c0", "c1")).values
    )


Facts = dict[str, Any]
Arrays = dict[str, Any]


def put(key: str, value: object) -> Callable[[Facts, Arrays], None]:
    def change(facts: Facts, arrays: Arrays) -> None:
        facts[key] = value

    return change


def put_array(key: str, value: object) -> Callable[[Facts, Arrays], None]:
    def change(facts: Facts, arrays: Arrays) -> None:
        arrays[key] = value

    return change


def drop(facts: Facts, arrays: Arrays) -> None:
    arrays.pop("potential0")


MALFORMED: dict[str, Callable[[Facts, Arrays], None]] = {
    "no cliques": lambda facts, arrays: facts.pop("cliques"),
    "no total": lambda facts, arrays: facts.pop("total"),
    "cliques are text": put("cliques", "c0"),
    "a clique is text": put("cliques", ["c0", "c1"]),
    "a clique is a number": put("cliques", [3, 4]),
    "a clique is nothing": put("cliques", [None, None]),
    "a clique of no columns": put("cliques", [[], ["c1", "c2"]]),
    "a name is a list": put("cliques", [[["c0"], "c1"], ["c1", "c2"]]),
    "a name is a table": put("cliques", [[{}, "c1"], ["c1", "c2"]]),
    "an unknown column": put("cliques", [["c0", "nobody"], ["c1", "c2"]]),
    "a column twice": put("cliques", [["c0", "c0"], ["c1", "c2"]]),
    "another order": put("cliques", [["c1", "c0"], ["c1", "c2"]]),
    "a clique twice": put("cliques", [["c0", "c1"], ["c0", "c1"]]),
    "one clique too many": put("cliques", [["c0", "c1"], ["c1", "c2"], ["c0"]]),
    "the total is text": put("total", "12"),
    "the total is nothing": put("total", None),
    "the total is true": put("total", True),
    "the total is not a number": put("total", float("nan")),
    "the total is infinite": put("total", float("inf")),
    "the total is negative": put("total", -3.0),
    "an array missing": drop,
    "another shape": put_array("potential0", np.zeros((3, 2))),
    "fewer axes": put_array("potential0", np.zeros(6)),
    "no axes": put_array("potential0", np.zeros(())),
    "whole numbers": put_array("potential0", np.zeros((2, 3), dtype=np.int64)),
    "single precision": put_array("potential0", np.zeros((2, 3), dtype=np.float32)),
    "text in an array": put_array("potential0", np.full((2, 3), "a")),
    "complex numbers": put_array("potential0", np.zeros((2, 3), dtype=np.complex128)),
    "not a number inside": put_array("potential0", np.array([[0.0, np.nan, 0.0], [0.0, 0.0, 0.0]])),
    "plus infinity inside": put_array(
        "potential0", np.array([[0.0, np.inf, 0.0], [0.0, 0.0, 0.0]])
    ),
    "nothing is possible": put_array("potential0", np.full((2, 3), -np.inf)),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_state_is_a_release_error(what: str) -> None:
    domain = domain_of([2, 3, 2])
    potentials = random_potentials(domain, [("c0", "c1"), ("c1", "c2")], np.random.default_rng(0))
    state = through_json(GraphicalModel(domain, TOTAL, potentials).state())
    facts, arrays = dict(state.facts), dict(state.arrays)
    assert FAMILIES[state.kind].load(domain, facts, arrays).total == TOTAL
    MALFORMED[what](facts, arrays)
    with pytest.raises(ReleaseError):
        FAMILIES[state.kind].load(domain, facts, arrays)


def test_the_state_of_another_domain_is_a_release_error() -> None:
    domain = domain_of([2, 3, 2])
    potentials = random_potentials(domain, [("c0", "c1")], np.random.default_rng(0))
    state = GraphicalModel(domain, TOTAL, potentials).state()
    for other in (domain_of([3, 3, 2]), domain_of([2]), Domain.of({"a": 2, "b": 3})):
        with pytest.raises(ReleaseError):
            FAMILIES["graphical"].load(other, state.facts, state.arrays)
