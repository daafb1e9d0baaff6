"""Sampling: randomized rounding is as close to the model as rounding allows, without bias; the impossible stays out."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import binomtest

from margrave.domain import Codes, Domain
from margrave.marginal.counting import count_cliques
from margrave.models import GraphicalModel
from margrave.models.sampling import deal
from margrave.types import Clique, FloatArray, IntArray
from tests.support.strategies import Toy, domain_of, random_potentials, seeded, toys

FALSE_ALARM = 1e-6
"""The chance that a test of this file fails on correct code, where it draws at random at all."""


class Biased(np.random.Generator):
    """A generator whose uniforms are all one half: rounding to nearest, which is not randomized."""

    def random(self, size: object = None, *args: object, **kwargs: object) -> FloatArray:  # type: ignore[override]
        return np.full(size, 0.5)  # type: ignore[call-overload,no-any-return]


def count(codes: Codes, clique: Clique) -> IntArray:
    return count_cliques(codes, [clique])[clique]


# ---------------------------------------------------------------------------------------------- one column


@pytest.mark.parametrize("seed", range(5))
def test_every_code_gets_its_expected_number_rounded_up_or_down(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.gamma(0.3, size=(40, 7)) * (rng.random((40, 7)) < 0.7)
    table[:, 3] += 1e-3
    groups = rng.integers(0, 40, 3_000)
    column = deal(groups, table, rng)
    counts = np.zeros(table.shape)
    np.add.at(counts, (groups, column), 1)
    sizes = np.bincount(groups, minlength=40)
    expected = sizes[:, None] * table / table.sum(1, keepdims=True)
    assert (np.abs(counts - expected) < 1.0 + 1e-6).all()
    assert (counts[table == 0.0] == 0).all()
    assert np.array_equal(counts.sum(1), sizes)


def test_whole_expectations_are_met_exactly() -> None:
    column = deal(
        np.zeros(12, dtype=np.int64), np.array([[1.0, 0.0, 3.0, 2.0]]), np.random.default_rng(0)
    )
    assert np.bincount(column, minlength=4).tolist() == [2, 0, 6, 4]


def roundings(rng: np.random.Generator, repetitions: int) -> float:
    """The smallest p-value, times how many there are, of the number of times that each code was rounded up.

    A code of expectation m + f gets m + 1 records with probability f exactly, so that number is binomial.
    """
    weights = np.array([0.9, 2.2, 0.05, 3.25, 1.6])
    n, worst = 11, 1.0
    expected = n * weights / weights.sum()
    ups = np.zeros(5, dtype=np.int64)
    for _ in range(repetitions):
        counts = np.bincount(deal(np.zeros(n, dtype=np.int64), weights[None], rng), minlength=5)
        up = counts - np.floor(expected)
        assert set(up) <= {0, 1}
        ups += up.astype(np.int64)
    for got, chance in zip(ups, expected - np.floor(expected), strict=True):
        worst = min(worst, binomtest(int(got), repetitions, float(chance)).pvalue)
    return worst * 5


def test_rounding_is_unbiased() -> None:
    assert roundings(np.random.default_rng(1), 4_000) > FALSE_ALARM


def test_the_check_of_bias_notices_rounding_to_nearest() -> None:
    assert roundings(Biased(np.random.PCG64(1)), 4_000) < FALSE_ALARM


# ---------------------------------------------------------------------------------------------- a whole model


@seeded(60)
@given(toy=toys())
def test_each_family_is_rounded_once(toy: Toy) -> None:
    """Given the records' parents, every code has its expected number of them to within one: never more, never less.

    So any marginal inside a family is within one record per rounding of the model, where independent draws would be
    off by the square root of the count. Impossible records never appear.
    """
    if not toy.possible:
        return
    model = GraphicalModel(toy.domain, 1.0, toy.potentials)
    for rows in (0, 1, 2, 5_000):
        codes = model.sample(rows, rng=np.random.default_rng(rows))
        assert len(codes) == rows
        assert codes.domain == toy.domain
        table = count(codes, toy.domain.attributes)
        assert not table[~np.isfinite(toy.log_joint)].any()
        for attribute, parents in zip(model.tree.order, model.tree.parents, strict=True):
            family = (*parents, attribute)
            expected = toy.marginal(family, 1.0)
            above = expected.sum(axis=-1, keepdims=True)
            given_parents = np.divide(expected, above, out=np.zeros_like(expected), where=above > 0)
            clique = toy.domain.clique(family)
            counts = np.transpose(count(codes, clique), [clique.index(a) for a in family])
            wanted = counts.sum(axis=-1, keepdims=True) * given_parents
            assert np.abs(counts - wanted).max() < 1.0 + 1e-6


def test_measured_marginals_are_within_a_few_records_of_the_model() -> None:
    """A chain of 8 columns, 50,000 records: all cells of measured pairs within 3 records, where chance gives dozens."""
    model, pairs = chain(50_000)
    codes = model.sample(rng=np.random.default_rng(3))
    for pair in pairs:
        apart = np.abs(count(codes, pair) - np.asarray(model.project(pair).values))
        assert apart.max() < 3.0
    independent = np.random.default_rng(3).poisson(np.asarray(model.project(pairs[0]).values))
    assert np.abs(independent - model.project(pairs[0]).values).max() > 10.0


def test_the_number_of_records_is_what_was_asked_or_the_total() -> None:
    domain = domain_of([3, 2])
    model = GraphicalModel(
        domain, 41.6, random_potentials(domain, [("c0", "c1")], np.random.default_rng(0))
    )
    assert len(model.sample(rng=np.random.default_rng(0))) == 42
    for rows in (0, 1, 7, 1_000):
        codes = model.sample(rows, rng=np.random.default_rng(0))
        assert len(codes) == rows
        assert count(codes, ("c0", "c1")).sum() == rows


def test_the_same_seed_gives_the_same_records() -> None:
    model, _ = chain(500)
    first = model.sample(rng=np.random.default_rng(5)).values
    assert np.array_equal(first, model.sample(rng=np.random.default_rng(5)).values)
    assert not np.array_equal(first, model.sample(rng=np.random.default_rng(6)).values)


def chain(total: float, columns: int = 8, size: int = 10) -> tuple[GraphicalModel, list[Clique]]:
    """Each column is its neighbor's code or one next to it: what the exact marginals of such a table are fitted by."""
    domain = domain_of([size] * columns)
    near = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    pairs: list[Clique] = list(pairwise(domain.attributes))
    rng = np.random.default_rng(17)
    potentials = {p: rng.normal(scale=0.5, size=near.shape) - 1.2 * near for p in pairs}
    return GraphicalModel(domain, total, potentials), pairs


def distances(model: GraphicalModel, pairs: list[Clique], seed: int) -> FloatArray:
    """||records − model||_1 / n for every pair of columns that no factor ties."""
    codes = model.sample(rng=np.random.default_rng(seed))
    others = [p for p in combinations(model.domain.attributes, 2) if p not in pairs]
    expected = model.answer(others)
    counts = count_cliques(codes, others)
    return np.array([float(np.abs(counts[p] - expected[p]).sum()) / len(codes) for p in others])


def in_one_order(
    groups: IntArray, table: FloatArray, rng: np.random.Generator, _: IntArray
) -> IntArray:
    """A fault: codes handed out in ascending order, to the records of a group as they come."""
    column = deal(groups, table, rng).astype(np.int64)
    handed = np.empty_like(column)
    handed[np.argsort(groups, kind="stable")] = column[np.lexsort((column, groups))]
    return handed


def shuffled(domain: Domain, columns: object, rows: int, rng: np.random.Generator) -> IntArray:
    """No spreading: records in random order."""
    return rng.permutation(rows)


def test_unmeasured_pairs_are_as_close_to_the_model_as_chance_puts_independent_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """n independent records would be some sqrt(2 · cells / (pi · n)) = 0.036 apart. Not by bounds alone: it must not
    grow with the distance between columns, as it does when records keep their rank from column to column.
    """
    model, pairs = chain(50_000)
    assert distances(model, pairs, 2).max() < 0.045
    monkeypatch.setattr("margrave.models.sampling.deal", in_one_order)
    assert distances(model, pairs, 2).max() > 0.15


def test_spread_records_are_closer_to_the_model_than_shuffled_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, pairs = chain(50_000)
    spread = np.mean([distances(model, pairs, seed).mean() for seed in range(4)])
    monkeypatch.setattr("margrave.models.sampling.spread_order", shuffled)
    by_chance = np.mean([distances(model, pairs, seed).mean() for seed in range(4)])
    assert spread < 0.9 * by_chance


def firsts(model: GraphicalModel, rows: int, repetitions: int, rng: np.random.Generator) -> float:
    """The smallest corrected p-value of how often the first of ``rows`` records falls in each cell of the domain.

    Records are exchangeable, and cells get their expected number on average, so that number is binomial.
    """
    expected = np.asarray(model.project(model.domain.attributes).values) / model.total
    seen = np.zeros(expected.shape, dtype=np.int64)
    for _ in range(repetitions):
        seen[tuple(model.sample(rows, rng=rng).values[:, 0])] += 1
    assert not seen[expected == 0.0].any()
    possible = expected > 0.0
    found = zip(seen[possible], expected[possible], strict=True)
    tests = [binomtest(int(k), repetitions, float(p)).pvalue for k, p in found]
    return min(tests) * len(tests)


def a_small_model() -> GraphicalModel:
    domain = domain_of([2, 3, 2])
    rng = np.random.default_rng(8)
    potentials = random_potentials(domain, [("c0", "c1"), ("c1", "c2")], rng, spread=0.7)
    potentials["c0", "c1"][1, 2] = -np.inf
    return GraphicalModel(domain, 1.0, potentials)


@pytest.mark.parametrize("rows", [1, 5])
def test_a_record_is_distributed_as_the_model_says(rows: int) -> None:
    assert firsts(a_small_model(), rows, 1_500, np.random.default_rng(rows)) > FALSE_ALARM


def test_the_check_of_the_distribution_notices_a_biased_scheme() -> None:
    assert firsts(a_small_model(), 5, 1_500, Biased(np.random.PCG64(5))) < FALSE_ALARM


def test_sampling_from_a_conditioned_model_keeps_the_evidence() -> None:
    model, _ = chain(2_000)
    given_codes = model.condition({"c2": [4], "c6": [3, 5]}).sample(rng=np.random.default_rng(0))
    assert set(given_codes.column("c2")) == {4}
    assert set(given_codes.column("c6")) <= {3, 5}
    assert len(given_codes) == 2_000


def test_independent_records_have_the_models_probabilities_and_the_spread_of_a_multinomial() -> (
    None
):
    domain = Domain(("a", "b", "c"), (3, 2, 4))
    rng = np.random.default_rng(11)
    cliques = [("a", "b"), ("b", "c")]
    model = GraphicalModel(domain, 500.0, {c: rng.normal(0, 1, domain.shape(c)) for c in cliques})
    expected = model.project(("a", "c")).values / 500.0
    counts = np.array(
        [
            count_cliques(model.sample(500, rng=rng, independent=True), [("a", "c")])[("a", "c")]
            for _ in range(2000)
        ]
    )
    spread = 500 * expected * (1 - expected)
    assert np.abs(counts.mean(0) - 500 * expected).max() < 6 * np.sqrt(spread.max() / 2000)
    ratio = counts.var(0) / spread  # each is a chi-square over 1,999 degrees of freedom: sd 0.032
    assert np.abs(ratio - 1).max() < 0.2
    dealt = np.array(
        [count_cliques(model.sample(500, rng=rng), [("a", "c")])[("a", "c")] for _ in range(300)]
    )
    assert (
        dealt.var(0) / spread
    ).mean() < 0.5  # what the dealt records are for, and why they do not serve here
