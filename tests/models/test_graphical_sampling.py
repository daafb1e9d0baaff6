"""Sampling: randomized rounding is as close to the model as rounding allows, without bias; the impossible stays out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise
from types import FunctionType

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import binomtest

from margrave.domain import Codes, Domain
from margrave.marginal.counting import count_cliques
from margrave.models import GraphicalModel, sampling
from margrave.models.sampling import deal
from margrave.types import Clique, FloatArray, IntArray
from tests.support.strategies import Toy, domain_of, random_potentials, seeded, toys

FALSE_ALARM = 1e-6
"""The chance that a test of this file fails on correct code, where it draws at random at all."""


def with_fault(monkeypatch: pytest.MonkeyPatch, **functions: Callable[..., float]) -> None:
    """Deal with other functions in place of ``_chance`` or ``_paced``, in the interpreter."""
    scope = dict(sampling._deal.py_func.__globals__)
    own = {name: getattr(sampling, name).py_func for name in ("_chance", "_paced")}
    loop = FunctionType(sampling._deal.py_func.__code__, scope | own | functions)
    monkeypatch.setattr(sampling, "run_or_compile", lambda _, steps, *arguments: loop(*arguments))


def to_nearest(fraction: float, rest: float, extra: float) -> float:
    """A fault: rounding that is not random."""
    return float(fraction >= 0.5)


def unpaced(chance: float, ahead: float) -> float:
    """A fault: each group rounds on its own."""
    return chance


def count(codes: Codes, clique: Clique) -> IntArray:
    return count_cliques(codes, [clique])[clique]


def at_once(chance: float, ahead: float) -> float:
    """A fault: up wherever that brings the number nearest to the sum of the chances, whatever the chance."""
    return float(chance > ahead)


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
    """The smallest p-value, times how many there are, of how often each code of each group was rounded up.

    A code of expectation m + f gets m + 1 records with probability f exactly, so that number is binomial.
    """
    weights = np.array(
        [[0.9, 2.2, 0.05, 3.25, 1.6], [0.3, 0.0, 0.4, 0.2, 0.1], [1.0, 5.0, 2.0, 2.0, 1.0]]
    )
    groups = np.repeat(np.arange(3), [11, 1, 4])
    expected = np.array([[11], [1], [4]]) * weights / weights.sum(1, keepdims=True)
    ups, worst = np.zeros(weights.shape, dtype=np.int64), 1.0
    for _ in range(repetitions):
        counts = np.zeros(weights.shape)
        np.add.at(counts, (groups, deal(groups, weights, rng)), 1)
        up = counts - np.floor(expected)
        assert set(up.ravel()) <= {0, 1}
        ups += up.astype(np.int64)
    for got, chance in zip(ups.ravel(), (expected - np.floor(expected)).ravel(), strict=True):
        worst = min(worst, binomtest(int(got), repetitions, float(chance)).pvalue)
    return worst * ups.size


def test_rounding_is_unbiased_in_every_group() -> None:
    assert roundings(np.random.default_rng(1), 2_000) > FALSE_ALARM


def test_the_check_of_bias_notices_rounding_to_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    with_fault(monkeypatch, _chance=to_nearest)
    assert roundings(np.random.default_rng(1), 400) < FALSE_ALARM


def off_along_the_groups(seed: int) -> float:
    """The largest difference between records and expectations of two codes in the first groups, however many."""
    rng = np.random.default_rng(seed)
    table = rng.random((300, 2))
    groups = rng.integers(0, 300, 1_000)
    dealt = np.bincount(groups, weights=deal(groups, table, rng), minlength=300)
    expected = np.bincount(groups, minlength=300) * table[:, 1] / table.sum(1)
    return float(np.abs(np.cumsum(dealt - expected)).max())


def test_roundings_cancel_along_the_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    assert max(off_along_the_groups(seed) for seed in range(5)) < 1.0 + 1e-6
    with_fault(monkeypatch, _paced=unpaced)
    assert min(off_along_the_groups(seed) for seed in range(5)) > 2.0


def of_odd_groups() -> IntArray:
    """The numbers of records of one code in the odd ones of 1,000 groups of three records, in repeated draws.

    Each group rounds 1.5 records up or down, so of 750 expected the number has a standard deviation of 11.
    """
    groups, odd = np.repeat(np.arange(1_000), 3), np.repeat(np.arange(1_000) % 2 == 1, 3)
    rng = np.random.default_rng(4)
    return np.array(
        [np.count_nonzero(deal(groups, np.ones((1_000, 2)), rng)[odd]) for _ in range(20)]
    )


def test_roundings_do_not_follow_the_last_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert np.abs(of_odd_groups() - 750).max() < 60
    with_fault(monkeypatch, _paced=at_once)
    assert np.abs(of_odd_groups() - 750).min() > 200


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


def triples_of_one_clique() -> float:
    """Mean of ‖records − model‖_1 over the triples of eleven columns of one clique, with a record or two per cell."""
    domain = domain_of([2] * 11)
    rng = np.random.default_rng(21)
    model = GraphicalModel(
        domain, 3_000.0, {domain.attributes: rng.normal(scale=1.5, size=domain.sizes)}
    )
    triples = list(combinations(domain.attributes, 3))
    expected = model.answer(triples)
    counts = count_cliques(model.sample(rng=rng), triples)
    return float(np.mean([np.abs(counts[t] - expected[t]).sum() for t in triples]))


def test_marginals_of_few_columns_are_closer_to_the_model_than_the_roundings_of_many_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closer = triples_of_one_clique()
    with_fault(monkeypatch, _paced=unpaced)
    assert closer < 0.75 * triples_of_one_clique()


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


def test_the_check_of_the_distribution_notices_a_biased_scheme(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_fault(monkeypatch, _chance=to_nearest)
    assert firsts(a_small_model(), 5, 500, np.random.default_rng(5)) < FALSE_ALARM


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
