"""PrivMRF against its paper: the graph, merits and usefulness, the split of the budget, and its order among others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from margrave.accounting import AddRemoveRow, Budget, ReplaceRow, Unit
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.evaluation import evaluate
from margrave.mechanisms import Independent, PrivMRF
from margrave.mechanisms.parts.budget import TOTAL_BUDGET_SHARE
from margrave.mechanisms.parts.capacity import Capacity
from margrave.mechanisms.parts.markov_graph import (
    drawn,
    first_marginals,
    markov_graph,
    merit,
    small_marginals,
)
from margrave.mechanisms.parts.noisy_scores import noisy_dependences
from margrave.mechanisms.parts.penalty import expected_noise, useful_cells
from margrave.models import CELLS_PER_MB, GraphicalFit
from margrave.models.graphical.junction_tree import JunctionTree
from margrave.privacy import SeededRandomness, protect
from margrave.release import Release
from margrave.transcript import Measurement, ScoreMeasurement, Selection
from margrave.types import Clique
from margrave.workload import Workload
from tests.support.conformance import memory_table, run_on

FIT = GraphicalFit()
UNITS = pytest.mark.parametrize("unit", [AddRemoveRow(), ReplaceRow()], ids=str)
RHO = Fraction(1, 3)


def chain(rows: int, sizes: Sequence[int], seed: int = 0) -> list[tuple[int, ...]]:
    """Rows in which each column follows the one before it four times out of five."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(sizes[0], size=rows)]
    for size in sizes[1:]:
        free = rng.integers(size, size=rows)
        columns.append(np.where(rng.random(rows) < 0.8, columns[-1] % size, free))
    return [tuple(row) for row in np.array(columns).T.tolist()]


SIZES = dict(zip("abcdef", (2, 3, 2, 4, 3, 2), strict=True))
TABLE = memory_table(SIZES, chain(4000, tuple(SIZES.values())))


def run(mechanism: PrivMRF | Independent, unit: Unit, seed: int = 0) -> Release:
    return run_on(mechanism, TABLE, unit, Budget.zcdp(RHO), SeededRandomness(seed))


# The graph.


def dependences_of(domain: Domain, rng: np.random.Generator) -> dict[Clique, float]:
    return {r: float(rng.normal(0.1, 0.2)) for r in combinations(domain.attributes, 2)}


def greedy_graph(dependences: Mapping[Clique, float], domain: Domain, most: float) -> set[Clique]:
    """The paper's rule, with the cells of every graph counted anew."""
    edges: list[Clique] = []
    while True:
        rises = {}
        now = JunctionTree.of(domain, edges).cells()
        for pair in dependences.keys() - edges:
            cells = JunctionTree.of(domain, [*edges, pair]).cells()
            rise = dependences[pair] - 1e-8 * (cells - now)
            if cells <= most and rise > 0 and dependences[pair] > 0:
                rises[pair] = rise
        if not rises:
            return set(JunctionTree.of(domain, edges).cliques)
        edges.append(max(rises, key=lambda r: rises[r]))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("wide", [1, 1500])
def test_the_graph_is_the_greedy_one(seed: int, wide: int) -> None:
    """With wide columns the cells count: 1e-8 of so many is as much as the dependence of a pair."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 7, size=5) * wide
    domain = Domain(tuple("abcde"), tuple(sizes.tolist()))
    dependences = dependences_of(domain, rng)
    largest = float(np.prod(np.sort(sizes)[:3])) + float(np.sort(sizes)[-2:].prod())
    for most in (largest, math.inf):
        found = markov_graph(dependences, Capacity(FIT, domain, most / CELLS_PER_MB))
        assert set(found) == greedy_graph(dependences, domain, most)


def test_a_graph_is_no_larger_than_the_model() -> None:
    domain = Domain(tuple("abcdefgh"), (4,) * 8)
    dependences = dict.fromkeys(combinations(domain.attributes, 2), 0.3)
    limit = 700
    cliques = markov_graph(dependences, Capacity(FIT, domain, limit / CELLS_PER_MB))
    assert 350 < sum(map(domain.cells, cliques)) <= limit
    assert {a for c in cliques for a in c} == set(domain)


def test_independent_pairs_are_no_edges() -> None:
    domain = Domain(tuple("abc"), (2, 2, 2))
    noisy = {("a", "b"): -0.1, ("a", "c"): 0.0, ("b", "c"): 0.1}
    assert set(markov_graph(noisy, Capacity(FIT, domain))) == {("a",), ("b", "c")}


# Merits and useful marginals.


def test_the_merit_is_that_of_correlation_based_selection() -> None:
    upper = np.array([[0, 0.5, 0.4, -0.1], [0, 0, 0.3, 0.2], [0, 0, 0, 0.1], [0, 0, 0, 0]])
    d = upper + upper.T
    assert merit(0, [1], d) == pytest.approx(0.5)
    assert merit(0, [1, 2], d) == pytest.approx(0.9 / math.sqrt(2.3))
    assert merit(0, [1, 2, 3], d) == pytest.approx(0.8 / math.sqrt(3.6))
    assert merit(0, [1, 2], -d) == pytest.approx(-0.9 / math.sqrt(1.7))
    assert merit(0, [1], np.full((4, 4), 2.0)) == pytest.approx(2.0), "of one parent, itself"


def test_a_marginal_is_useful_up_to_the_noise_that_theta_allows() -> None:
    cells = useful_cells(48842.0, 38.0, 6.0)
    assert cells == pytest.approx(48842 / (38 * math.sqrt(2 / math.pi)) / 6)
    assert 6.0 * expected_noise(38.0, 1) * cells == pytest.approx(48842.0)


@pytest.mark.parametrize("seed", range(12))
def test_the_first_marginals_are_those_of_the_greedy_nets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = Domain(tuple("abcdef"), tuple(rng.integers(2, 6, size=6).tolist()))
    dependences = dependences_of(domain, rng)
    cliques = [("a", "b", "c", "d"), ("c", "d", "e"), ("f",)]
    useful = small_marginals(domain, cliques, 60.0, 3)
    d = np.zeros((6, 6))
    for (a, b), value in dependences.items():
        d[domain.index(a), domain.index(b)] = d[domain.index(b), domain.index(a)] = value
    best: dict[int, tuple[float, Clique]] = {}
    for clique in cliques:
        members = [domain.index(a) for a in clique]
        earlier = [max(members, key=lambda i: sum(d[i, j] for j in members))]
        while len(earlier) < len(members):
            options = [(0.0, x, ()) for x in members if x not in earlier]
            for x in members:
                for k in (1, 2):
                    for parents in combinations(earlier, k):
                        family = domain.clique([domain.attributes[i] for i in (x, *parents)])
                        if x not in earlier and family in useful:
                            options.append((merit(x, parents, d), x, family))
            value, x, family = max(options, key=lambda o: o[0])
            if value > 0 and value > best.get(x, (0.0, ()))[0]:
                best[x] = value, family
            earlier.append(x)
    families = {family for _, family in best.values()}
    alone = {(a,) for a in domain if not any(a in family for family in families)}
    found = first_marginals(domain, cliques, dependences, useful)
    assert set(found) == families | alone
    assert len(found) == len(set(found)) <= len(domain)


def test_small_marginals_lie_within_cliques() -> None:
    domain = Domain(tuple("abcd"), (2, 3, 4, 5))
    found = small_marginals(domain, [("a", "b", "c"), ("c", "d")], 12.0, 3)
    assert found == [("a", "b"), ("a", "c"), ("b", "c")]


def test_wide_tables_have_fewer_columns_in_a_marginal() -> None:
    domain = Domain(tuple(f"c{i}" for i in range(60)), (2,) * 60)
    assert max(map(len, PrivMRF().reads(domain))) == 2
    narrow = Domain(domain.attributes[:12], (2,) * 12)
    assert max(map(len, PrivMRF().reads(narrow))) == 4
    assert max(map(len, PrivMRF.as_published().reads(narrow))) == 6


def test_candidates_are_drawn_by_their_number_of_columns() -> None:
    """Pairs have a weight of 4 together, triples one of 9."""
    marginals = [("a", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("a", "b", "c"), ("b", "c", "d")]
    rng = np.random.default_rng(1)
    triples = sum(len(drawn(marginals, 1, rng)[0]) == 3 for _ in range(4000)) / 4000
    assert triples == pytest.approx(9 / 13, abs=0.03)
    assert drawn(marginals, 6, rng) == marginals
    assert len(set(drawn(marginals, 4, rng))) == 4


# The budget.


@UNITS
@pytest.mark.parametrize("noisy_scores", [False, True])
def test_the_budget_is_split_as_stated(unit: Unit, noisy_scores: bool) -> None:
    """A tenth for the graph, a tenth to select, the rest in equal parts; of what the row count leaves."""
    release = run(PrivMRF(theta=0.5, noisy_scores=noisy_scores), unit)
    known = release.transcript
    rho = RHO * (1 - TOTAL_BUDGET_SHARE if isinstance(unit, AddRemoveRow) else 1)
    dependence, *scores = (e for e in known if isinstance(e, ScoreMeasurement))
    assert dependence.score == "dependence"
    assert dependence.rho == rho / 10
    assert len(dependence.candidates) == math.comb(len(SIZES), 2)
    selecting = scores if noisy_scores else known.selections
    assert {e.score for e in scores} == ({"marginal gap"} if noisy_scores else set())
    assert sum(e.rho for e in selecting) == rho / 10
    assert len({m.rho for m in known.measurements}) == 1
    assert sum(m.rho for m in known.measurements) == rho * 8 / 10
    first = next(i for i, e in enumerate(known) if e is selecting[0])
    begun = [e for e in known.entries[:first] if isinstance(e, Measurement)]
    assert len(known.measurements) - len(begun) == int(0.8 * len(SIZES))
    moved = 1 if isinstance(unit, AddRemoveRow) else 2
    each = float(rho) * 0.8 / len(known.measurements)
    assert known.measurements[0].scale == pytest.approx(math.sqrt(moved / (2 * each)), rel=1e-6)


def test_the_largest_noisy_scores_are_measured() -> None:
    known = run(PrivMRF(theta=0.5, noisy_scores=True), AddRemoveRow()).transcript
    seen = 0
    for i, entry in enumerate(known.entries):
        if isinstance(entry, ScoreMeasurement) and entry.score == "marginal gap":
            after = known.entries[i + 1 :]
            stop = next((j for j, e in enumerate(after) if not isinstance(e, Measurement)), None)
            order = np.argsort(-entry.values, kind="stable")
            chosen = [m.clique for m in after[:stop] if isinstance(m, Measurement)]
            assert chosen == [entry.candidates[j] for j in order[: len(chosen)]]
            seen += len(chosen)
    assert seen == int(0.8 * len(SIZES))


def test_a_marginal_is_selected_once() -> None:
    known = run(PrivMRF(theta=0.2), AddRemoveRow()).transcript
    assert len(set(known.cliques)) == len(known.measurements)
    for entry, following in zip(known.entries, known.entries[1:], strict=False):
        if isinstance(entry, Selection):
            assert isinstance(following, Measurement)
            assert following.clique == entry.chosen


def test_without_useful_marginals_columns_have_the_rest() -> None:
    release = run(PrivMRF(theta=1e6), AddRemoveRow())
    assert release.transcript.cliques == tuple((a,) for a in SIZES)
    spent = sum(m.rho for m in release.transcript.measurements)
    assert spent == RHO * (1 - TOTAL_BUDGET_SHARE) * Fraction(9, 10)


def test_a_model_keeps_within_its_size() -> None:
    small = 40 / CELLS_PER_MB
    release = run(PrivMRF(theta=0.1, max_model_mb=small), AddRemoveRow())
    assert FIT.cells(TABLE.domain, release.transcript.cliques) <= 40
    assert release.account.rho_spent == RHO


def test_shares_leave_something_to_measure() -> None:
    with pytest.raises(InputError, match="leave nothing"):
        PrivMRF(graph_share=Fraction(1, 2), selection_share=Fraction(1, 2))


# What it learns.


def test_dependences_are_total_variation_distances() -> None:
    randomness = SeededRandomness(0)
    with protect(
        TABLE, unit=ReplaceRow(), budget=Budget.zcdp(Fraction(10**6)), randomness=randomness
    ) as private:
        found = noisy_dependences(private, private.rho)
    for (a, b), value in found.items():
        joint = TABLE.count([(a, b)])[(a, b)] / TABLE.rows()
        independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
        assert value == pytest.approx(0.5 * np.abs(joint - independent).sum(), abs=1e-3)


def test_a_chain_is_learned() -> None:
    """Its neighbors are measured together, and its triples are nearer than those of independent columns."""
    workload = Workload.all_kway(TABLE.domain, 3)
    releases = [run(m, ReplaceRow()) for m in (PrivMRF(), PrivMRF.as_published(), Independent())]
    errors = [evaluate(TABLE, r, workload).workload_error for r in releases]
    assert max(errors[:2]) < 0.25 * errors[2]
    together = {pair for c in releases[0].transcript.cliques for pair in combinations(c, 2)}
    assert together >= set(zip("abcde", "bcdef", strict=True))
