"""Workloads: the families, their weights, their closure, and how much of them a marginal touches."""

from __future__ import annotations

from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.workload import Workload
from tests.support.strategies import clique_lists, domain_of, domains, seeded

SIX = domain_of([2, 3, 4, 5, 6, 7])


@pytest.mark.parametrize("k", range(1, 7))
def test_all_kway_is_every_set_of_k(k: int) -> None:
    workload = Workload.all_kway(SIX, k)
    assert workload.cliques == tuple(combinations(SIX.attributes, k))
    assert len(workload.cliques) == comb(6, k)
    assert set(workload.weights.values()) == {1.0}


def test_all_kway_of_fewer_columns_is_all_the_columns() -> None:
    assert Workload.all_kway(domain_of([2, 3]), 3).cliques == (("c0", "c1"),)
    for k in (0, -1):
        with pytest.raises(InputError, match="at least 1"):
            Workload.all_kway(SIX, k)


def test_around_a_target_is_what_holds_it() -> None:
    workload = Workload.around(SIX, "c3", 3)
    assert len(workload.cliques) == comb(5, 2)
    assert all("c3" in c and len(c) == 3 for c in workload.cliques)
    assert all(c == SIX.clique(c) for c in workload.cliques)
    assert Workload.around(SIX, "c3", 1).cliques == (("c3",),)
    assert Workload.around(domain_of([2, 3]), "c1", 3).cliques == (("c0", "c1"),)
    with pytest.raises(InputError, match="nobody"):
        Workload.around(SIX, "nobody")


def test_skewed_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    domain = domain_of([2] * 15)
    first = Workload.skewed(domain, k=3, count=256, seed=4)
    assert first.weights == Workload.skewed(domain, k=3, count=256, seed=4).weights
    assert first.weights != Workload.skewed(domain, k=3, count=256, seed=5).weights
    assert set(first.cliques) <= set(combinations(domain.attributes, 3))
    assert list(first.cliques) == sorted(first.cliques, key=lambda c: [domain.index(a) for a in c])


def test_skewed_draws_triples_with_repeats_and_counts_them() -> None:
    """256 independent draws, also where there are fewer triples: weights are counts, and differ by far."""
    for columns in (5, 9, 15):
        domain = domain_of([2] * columns)
        weights = Workload.skewed(domain).weights
        assert sum(weights.values()) == 256.0
        assert all(w >= 1.0 and w == int(w) for w in weights.values())
        assert max(weights.values()) > 256 / comb(columns, 3) * 2
        assert len(weights) < min(256, comb(columns, 3) + 1)


def test_skewed_is_skewed() -> None:
    """Cliques are drawn in proportion to products of squared exponentials: some columns are in many, some in few.

    By far: over twenty seeds the busiest column is in four times as many cliques as the idlest, where even draws of
    64 cliques of 455 would make it about twice (and this is a fixed computation, not a chance).
    """
    domain = domain_of([2] * 15)
    ratios = []
    for seed in range(20):
        weights = Workload.skewed(domain, k=3, count=64, seed=seed).weights
        busy = sorted(sum(w for c, w in weights.items() if a in c) for a in domain)
        ratios.append((busy[-1] + 1) / (busy[0] + 1))
        weight = np.random.default_rng(seed).exponential(size=15) ** 2
        heavy, light = np.argsort(weight)[-5:], np.argsort(weight)[:5]
        held = [sum(w for c, w in weights.items() if domain.attributes[i] in c) for i in range(15)]
        assert sum(held[i] for i in heavy) > 2 * sum(held[i] for i in light)
    assert np.median(ratios) > 4


def test_given_cliques_take_the_domains_order_and_add_up() -> None:
    workload = Workload.of(SIX, [("c2", "c0"), ("c1",), ("c0", "c2")])
    assert dict(workload.weights) == {("c0", "c2"): 2.0, ("c1",): 1.0}
    weighted = Workload.of(SIX, {("c2", "c0"): 0.5, ("c0", "c2"): 2.0, ("c5",): 3.0})
    assert dict(weighted.weights) == {("c0", "c2"): 2.5, ("c5",): 3.0}
    with pytest.raises(InputError, match="nobody"):
        Workload.of(SIX, [("c0", "nobody")])


def test_a_file_has_a_marginal_a_line(tmp_path: Path) -> None:
    path = tmp_path / "workload.txt"
    path.write_text("# what matters\nc2, c0 = 2.5\n\nc1\nc0,c2\n", encoding="utf-8")
    assert Workload.load(SIX, path).weights == {("c0", "c2"): 3.5, ("c1",): 1.0}
    path.write_text("c0 = heavy\n", encoding="utf-8")
    with pytest.raises(InputError, match="Line 1 of the workload") as refused:
        Workload.load(SIX, path)
    assert "heavy" not in str(refused.value)
    path.write_bytes(b"\xff\xfe")
    for unread in (path, tmp_path / "nowhere", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            Workload.load(SIX, unread)


@pytest.mark.parametrize(
    "weight", [0.0, -1.0, float("nan"), float("inf"), 1e-101, 1e101, "a", "3", None, True]
)
def test_weights_are_positive_and_finite(weight: Any) -> None:
    for made in (lambda: Workload.of(SIX, {("c0",): weight}), lambda: Workload({("c0",): weight})):
        with pytest.raises(InputError, match="c0"):
            made()


def test_a_marginal_of_a_column_with_itself_is_refused() -> None:
    for made in (
        lambda: Workload.of(SIX, [("c1", "c0", "c1")]),
        lambda: Workload.of(SIX, [iter(["c1", "c1"])]),
        lambda: Workload.of(SIX, {("c1", "c1"): 2.0}),
        lambda: Workload({("c1", "c1"): 1.0}),
    ):
        with pytest.raises(InputError, match="'c1' twice"):
            made()
    assert Workload.of(SIX, [iter(["c1", "c0"])]).cliques == (("c0", "c1"),)


@pytest.mark.parametrize("given", [5, "all-3way", [5], ["c0"], None])
def test_what_lists_no_marginals_is_refused(given: Any) -> None:
    with pytest.raises(InputError):
        Workload.of(SIX, given)


@pytest.mark.parametrize("k", [2.0, 2.5, "2", True, None])
def test_families_take_whole_numbers(k: Any) -> None:
    for family in (Workload.all_kway, Workload.skewed, lambda d, k: Workload.around(d, "c0", k)):
        with pytest.raises(InputError, match="whole number"):
            family(SIX, k)
    for more in ({"count": 2.5}, {"count": 0}, {"seed": -1}, {"seed": "a"}):
        with pytest.raises(InputError, match="whole numbers"):
            Workload.skewed(SIX, 2, **more)  # type: ignore[arg-type]
    assert Workload.all_kway(SIX, np.int64(2)).cliques == Workload.all_kway(SIX, 2).cliques  # type: ignore[arg-type]


def test_a_workload_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="empty"):
        Workload.of(SIX, [])
    with pytest.raises(InputError, match="no columns"):
        Workload.of(SIX, [()])
    with pytest.raises(InputError, match="no columns"):
        Workload.all_kway(Domain.of({}), 2)


@seeded(60)
@given(data=st.data(), domain=domains())
def test_the_closure_is_every_part_of_every_clique(data: st.DataObject, domain: Domain) -> None:
    cliques = data.draw(clique_lists(domain)) or [domain.attributes[:1]]
    closed = Workload.of(domain, cliques).closure()
    parts = {p for c in cliques for k in range(1, len(c) + 1) for p in combinations(c, k)}
    assert set(closed) == parts
    assert len(closed) == len(parts)
    assert [len(c) for c in closed] == sorted(len(c) for c in closed)


@seeded(60)
@given(data=st.data(), domain=domains())
def test_relevance_is_the_weighted_overlap(data: st.DataObject, domain: Domain) -> None:
    cliques = data.draw(clique_lists(domain)) or [domain.attributes[:1]]
    weights = {c: float(i + 1) / 4 for i, c in enumerate(cliques)}
    workload = Workload.of(domain, weights)
    for clique in workload.closure():
        expected = sum(w * sum(a in s for a in clique) for s, w in weights.items())
        assert workload.relevance(clique) == pytest.approx(expected, rel=1e-12)
    assert workload.relevance(()) == 0.0


def test_families_too_large_to_list_are_refused_by_name() -> None:
    wide = domain_of([2] * 200)
    for family, k in (
        (Workload.all_kway, 3),
        (Workload.skewed, 3),
        (lambda d, k: Workload.around(d, "c0", k), 5),
    ):
        with pytest.raises(InputError, match="200 columns are too many to count"):
            family(wide, k)
    assert len(Workload.around(wide, "c7").cliques) == 199 * 198 / 2
    assert len(Workload.all_kway(wide, 2).cliques) == 19_900


def test_a_workload_is_checked_on_a_domain_once() -> None:
    domain, other = Domain.of({"a": 2, "b": 3}), Domain.of({"a": 2})
    stated = Workload({("b", "a"): 2.0}, ("mean b by a",), (("a", "b"),))
    checked = Workload.of(domain, stated)
    assert Workload.of(domain, stated) is checked
    assert dict(checked.weights) == {("a", "b"): 2.0}
    assert (checked.purposes, checked.first) == (stated.purposes, stated.first)
    with pytest.raises(InputError, match="'b'"):
        Workload.of(other, stated)
