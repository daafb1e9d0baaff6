"""Marginals, sums over groups of codes, and sets of cliques."""

from __future__ import annotations

from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import IDENTITY, LinearMap, Marginal, closure, covers, maximal, project_array
from margrave.types import Clique
from tests.support.strategies import (
    clique_lists,
    domain_of,
    domains,
    generators,
    seeded,
    some_cliques,
    some_domain,
)

ABC: Clique = ("a", "b", "c")
VALUES = np.random.default_rng(0).integers(-5, 100, size=(2, 3, 4))


def test_a_projection_sums_out_and_reorders() -> None:
    for k in (1, 2, 3):
        for onto in permutations(ABC, k):
            found = project_array(VALUES, ABC, onto)
            expected = np.einsum(f"abc->{''.join(onto)}", VALUES)
            assert np.array_equal(found, expected)
            assert found.dtype == VALUES.dtype
            assert found.flags.c_contiguous


def test_projecting_twice_is_projecting_once() -> None:
    marginal = Marginal(ABC, VALUES)
    for two in combinations(ABC, 2):
        for one in two:
            assert np.array_equal(
                marginal.project(two).project((one,)).values, marginal.project((one,)).values
            )
    assert marginal.project(ABC) is marginal
    assert marginal.total() == VALUES.sum() == marginal.project(("b",)).total()


def test_a_projection_onto_what_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="d"):
        Marginal(ABC, VALUES).project(("a", "d"))


# ------------------------------------------------------------------------------------------------------ groups


@st.composite
def questions(draw: st.DrawFn) -> tuple[Domain, Clique, LinearMap]:
    rng = draw(generators())
    domain = some_domain(rng, 3, 5)
    groups = {}
    for a in domain:
        if rng.random() < 0.5:
            count = rng.integers(1, domain.size(a) + 1)
            groups[a] = rng.permutation(np.arange(domain.size(a)) % count).astype(np.int64)
    return domain, (some_cliques(domain, rng, 1) or [domain.attributes])[0], LinearMap(groups)


@seeded(80)
@given(question=questions())
def test_groups_are_sums_cell_by_cell(question: tuple[Domain, Clique, LinearMap]) -> None:
    domain, clique, query = question
    values = np.random.default_rng(1).integers(0, 50, domain.shape(clique))
    answer = query.apply(clique, values)
    expected = np.zeros(query.domain(domain).shape(clique), dtype=np.int64)
    for cell in np.ndindex(*values.shape):
        inside = tuple(
            int(query.groups[a][i]) if a in query.groups else i
            for a, i in zip(clique, cell, strict=True)
        )
        expected[inside] += values[cell]
    assert np.array_equal(answer, expected)
    assert answer.dtype == values.dtype
    assert answer.sum() == values.sum()  # a partition: every record is counted once


@seeded(80)
@given(question=questions())
def test_spread_is_the_transpose_of_apply(question: tuple[Domain, Clique, LinearMap]) -> None:
    """<apply(x), z> = <x, spread(z)> for all x and z."""
    domain, clique, query = question
    rng = np.random.default_rng(2)
    x = rng.normal(size=domain.shape(clique))
    z = rng.normal(size=query.domain(domain).shape(clique))
    spread = query.spread(clique, z)
    assert spread.shape == x.shape
    assert float((query.apply(clique, x) * z).sum()) == pytest.approx(
        float((x * spread).sum()), rel=1e-9, abs=1e-9
    )


def test_the_identity_asks_for_every_cell() -> None:
    assert IDENTITY.is_identity
    assert not LinearMap({"a": np.array([0, 1])}).is_identity
    assert np.array_equal(IDENTITY.apply(ABC, VALUES), VALUES)
    assert np.array_equal(IDENTITY.spread(ABC, VALUES.astype(float)), VALUES)
    assert IDENTITY.domain(domain_of([2, 3])) == domain_of([2, 3])
    assert LinearMap({"c1": np.array([0, 1, 0])}).domain(domain_of([2, 3])) == domain_of([2, 2])


def test_one_record_moves_one_cell_by_one() -> None:
    """So the sensitivity of an answer over groups is that of the marginal."""
    query = LinearMap({"a": np.array([0, 0]), "c": np.array([1, 0, 1, 2])})
    for cell in product(range(2), range(3), range(4)):
        record = np.zeros((2, 3, 4), dtype=np.int64)
        record[cell] = 1
        moved = query.apply(ABC, VALUES + record) - query.apply(ABC, VALUES)
        assert np.abs(moved).sum() == 1


# ----------------------------------------------------------------------------------------------------- cliques


@seeded(80)
@given(data=st.data(), domain=domains())
def test_closure_maximal_and_covers_agree(data: st.DataObject, domain: Domain) -> None:
    cliques = data.draw(clique_lists(domain, most=8))
    closed, top = closure(cliques), maximal(cliques)
    assert set(top) == {c for c in cliques if not any(set(c) < set(d) for d in cliques)}
    assert [c for c in cliques if c in top] == list(top)
    assert set(closure(top)) == set(closed)
    assert len(set(closed)) == len(closed)
    for k in range(1, len(domain) + 1):
        for clique in combinations(domain.attributes, k):
            assert covers(cliques, clique) == (clique in closed)


def test_repeats_are_kept_once() -> None:
    assert maximal([("a",), ("a",), ("b",)]) == (("a",), ("b",))
    assert maximal([]) == () == closure([])
    assert not covers([], ("a",))
