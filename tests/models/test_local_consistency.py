"""Relaxed marginal consistency: a quadratic program over the local polytope, the graphical model on trees."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize as minimize_with_constraints

from margrave.accounting import AddRemoveRow, Budget
from margrave.domain import Domain
from margrave.errors import InputError, ModelTooLargeError, ReleaseError
from margrave.marginal import LinearMap, project_array
from margrave.mechanisms import MWEMPGM
from margrave.models import FAMILIES, GraphicalFit, LocalConsistencyFit, PseudoMarginals
from margrave.models.local_consistency.regions import RegionGraph, regions_of
from margrave.privacy import SeededRandomness
from margrave.structural_zeros import StructuralZeros
from margrave.testing.gate import run_on
from margrave.testing.tables import SIZES, TinySchema, TinyTable, some_rows
from margrave.transcript import PublicTotal, Transcript
from margrave.types import Clique, FloatArray
from tests.support.strategies import domain_of, measurement

AB, BC, AC = ("c0", "c1"), ("c1", "c2"), ("c0", "c2")
EXACT: dict[str, Any] = {"shrinkage": 0.1, "steps": 6, "tolerance": 1e-10}

#: c0 = c1 and c1 = c2 nearly always, c0 = c2 nearly never: no joint distribution is near.
CYCLE: dict[Clique, tuple[Any, float]] = {
    AB: ([[45, 5], [5, 45]], 2.0),
    BC: ([[45, 6], [4, 45]], 3.0),
    AC: ([[6, 44], [44, 6]], 1.0),
}
BINARY = domain_of([2, 2, 2])


def fitted(domain: Domain, *entries: Any, **options: Any) -> PseudoMarginals:
    fit = LocalConsistencyFit(**options)
    model = fit(domain, Transcript(entries), rng=np.random.default_rng(0))
    assert isinstance(model, PseudoMarginals)
    return model


def of_cycle(domain: Domain = BINARY, **options: Any) -> PseudoMarginals:
    entries = [measurement(c, values, scale) for c, (values, scale) in CYCLE.items()]
    return fitted(domain, PublicTotal(100), *entries, **options)


def cells_of(model: Any, cliques: Any = CYCLE) -> FloatArray:
    return np.concatenate([model.answer([c])[c].ravel() for c in cliques])


def local_polytope(total: float) -> tuple[FloatArray, FloatArray]:
    """The equations of the three tables of the cycle: their totals, and equal margins."""
    rows, cliques = [], list(CYCLE)
    for i in range(3):
        rows.append(np.kron(np.eye(3)[i], np.ones(4)))
    for a in BINARY:
        first, second = (i for i in range(3) if a in cliques[i])
        row = np.zeros((3, 2, 2))
        for i, sign in ((first, 1.0), (second, -1.0)):
            np.moveaxis(row[i], cliques[i].index(a), 0)[0] = sign
        rows.append(row.ravel())
    return np.array(rows), np.array([total] * 3 + [0.0] * 3)


def test_a_cycle_has_the_least_squares_of_the_local_polytope() -> None:
    y = np.concatenate([np.ravel(values) for values, _ in CYCLE.values()]).astype(float)
    w = np.concatenate([np.full(4, 1 / scale) for _, scale in CYCLE.values()])
    matrix, sums = local_polytope(100.0)
    best = minimize_with_constraints(
        lambda x: ((x - y) ** 2 * w**2).sum() / 2,
        np.full(12, 25.0),
        jac=lambda x: (x - y) * w**2,
        bounds=[(0, None)] * 12,
        constraints={"type": "eq", "fun": lambda x: matrix @ x - sums, "jac": lambda x: matrix},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    found = cells_of(of_cycle(**EXACT))
    assert_allclose(found, best.x, atol=1e-4)
    assert_allclose(matrix @ found, sums, atol=1e-6)
    # The joint distribution nearest to the same answers is far away.
    entries = [measurement(c, values, scale) for c, (values, scale) in CYCLE.items()]
    joint = GraphicalFit()(
        BINARY, Transcript((PublicTotal(100), *entries)), rng=np.random.default_rng(0)
    )
    assert np.abs(cells_of(joint) - y).max() > 10.0 > 2.0 > np.abs(found - y).max()


def test_one_step_minimizes_the_entropic_objective() -> None:
    shrinkage = 2.0
    y = np.concatenate([np.ravel(values) for values, _ in CYCLE.values()]).astype(float)
    w = np.concatenate([np.full(4, 1 / scale) for _, scale in CYCLE.values()])
    matrix, sums = local_polytope(100.0)
    ends = {a: next(c for c in CYCLE if a in c) for a in BINARY}
    columns = np.zeros((6, 12))
    for k, (a, clique) in enumerate(ends.items()):
        i = list(CYCLE).index(clique)
        for code in range(2):
            cell = np.zeros((3, 2, 2))
            np.moveaxis(cell[i], clique.index(a), 0)[code] = 1.0
            columns[2 * k + code] = cell.ravel()

    def objective(x: FloatArray) -> float:
        regions = np.concatenate([x, columns @ x]) / 100.0
        negentropy = (regions * np.log(np.maximum(regions, 1e-300))).sum()
        return float(((x - y) ** 2 * w**2).sum() / 2 + shrinkage / 3.0 * 100.0 * negentropy)

    best = minimize_with_constraints(
        objective,
        np.full(12, 25.0),
        bounds=[(1e-9, None)] * 12,
        constraints={"type": "eq", "fun": lambda x: matrix @ x - sums, "jac": lambda x: matrix},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    found = cells_of(of_cycle(shrinkage=shrinkage, steps=1, tolerance=1e-12))
    assert_allclose(found, best.x, atol=2e-3)


@pytest.mark.parametrize("public", [True, False])
def test_it_is_the_graphical_model_on_a_tree(public: bool) -> None:
    domain = domain_of([2, 3, 2, 2])
    entries = [
        measurement(AB, [[20, 14, 9], [20, 22, 18]], 2.0),
        measurement(BC, [[25, 12], [19, 20], [9, 18]], 3.0),
        measurement(("c2", "c3"), [[31, 20], [14, 38]], 1.5),
        measurement(("c1",), [41, 33, 26], 2.5),
    ]
    transcript = Transcript((*([PublicTotal(100)] if public else []), *entries))
    rng = np.random.default_rng(0)
    tree = GraphicalFit(empty_below=0, **EXACT)(domain, transcript, rng=rng)
    local = LocalConsistencyFit(**EXACT)(domain, transcript, rng=rng)
    cliques = transcript.cliques
    assert_allclose(cells_of(local, cliques) / 100, cells_of(tree, cliques) / 100, atol=1e-6)
    # Beyond the regions both are Markov along the tree.
    others = [AC, ("c0", "c3"), ("c0", "c1", "c3")]
    assert_allclose(cells_of(local, others), cells_of(tree, others), atol=0.02)


def test_belief_propagation_maximizes_entropy_over_the_local_polytope() -> None:
    rng = np.random.default_rng(1)
    graph = RegionGraph(regions_of(CYCLE))
    theta = {r: rng.normal(size=[2] * len(r)) for r in graph.regions}
    tables, value = graph.beliefs(theta, tolerance=0.0, max_sweeps=200)
    entropy = -sum((t * np.log(t)).sum() for t in tables.values())
    assert_allclose(sum((theta[r] * tables[r]).sum() for r in tables) + entropy, value)
    for p, c in graph.edges:
        assert_allclose(project_array(tables[p], p, c), tables[c], atol=1e-9)
    # A zero sum of the changes of any consistent direction: stationary on the polytope.
    slopes = {r: theta[r] - np.log(tables[r]) for r in tables}
    turn = np.array([[1.0, -1.0], [-1.0, 1.0]])  # keeps both margins
    for c in CYCLE:
        assert_allclose((turn * slopes[c]).sum(), 0.0, atol=1e-7)
    for a in BINARY:  # moves a column in all regions around it
        move = np.array([1.0, -1.0])
        change = (move * slopes[a,]).sum()
        for c in CYCLE:
            if a in c:
                change += (np.moveaxis(slopes[c], c.index(a), 0) * move[:, None]).sum() / 2
        assert_allclose(change, 0.0, atol=1e-7)


def test_regions_are_closed_under_intersection() -> None:
    cliques = [("a", "b", "c"), ("b", "c", "d"), ("c", "d", "e"), ("f",)]
    found = set(regions_of(cliques))
    assert found == {*cliques, ("b", "c"), ("c", "d"), ("c",)}
    assert ("a",) in regions_of([("a", "b", "c"), ("a", "b", "d"), ("a", "c", "d")])
    edges = RegionGraph(regions_of(cliques)).edges
    assert (("a", "b", "c"), ("b", "c")) in edges
    assert (("a", "b", "c"), ("c",)) not in edges


def test_sizes_are_linear_in_the_regions() -> None:
    fit, domain = LocalConsistencyFit(), domain_of([10] * 40)
    pairs = list(combinations(domain.attributes, 2))
    assert fit.cells(domain, pairs) == 100 * len(pairs) + 10 * 40
    some = pairs[:5]
    for candidate, size in zip(pairs, fit.sizes_with(domain, some, pairs), strict=True):
        assert size == fit.cells(domain, [*some, candidate])


def test_a_marginal_of_the_whole_table_is_refused() -> None:
    domain = domain_of([100] * 6)
    model = fitted(domain, PublicTotal(10))
    with pytest.raises(ModelTooLargeError, match="in no region"):
        model.project(domain.attributes)
    with pytest.raises(ModelTooLargeError, match="above 3"):
        model.answer([AB], limit=3)
    with pytest.raises(ReleaseError, match="no distribution"):
        model.distribution()
    sizes = LocalConsistencyFit().sizes_with(domain, [], [AB, domain.attributes])
    assert sizes.tolist() == [1e4, np.inf]


def test_structural_zeros_are_zero_everywhere() -> None:
    possible = np.array([[True, False], [True, True]])
    domain = Domain.of({"c0": 2, "c1": 2, "c2": 2}, [StructuralZeros(AB, possible)])
    model = of_cycle(domain)
    assert model.answer([AB])[AB][0, 1] == 0.0
    whole = model.answer([domain.attributes])[domain.attributes]
    assert not whole[0, 1].any()
    assert_allclose(whole.sum(), 100.0)
    # Without a measurement of both columns they are zero too.
    alone = fitted(domain, PublicTotal(10), measurement(("c2",), [3, 7], 1.0))
    assert alone.answer([AB])[AB][0, 1] == 0.0


def test_zeros_that_leave_nothing_possible_are_refused() -> None:
    none = [
        StructuralZeros(AB, np.array([[True, True], [False, False]])),
        StructuralZeros(AC, np.array([[False, False], [True, True]])),
    ]
    with pytest.raises(ReleaseError, match="all structural zeros at once"):
        of_cycle(Domain.of({"c0": 2, "c1": 2, "c2": 2}, none))


def test_a_marginal_beyond_the_regions_has_their_marginals() -> None:
    model = fitted(
        BINARY, PublicTotal(100), *[measurement(c, CYCLE[c][0], CYCLE[c][1]) for c in (AB, BC)]
    )
    whole = model.answer([BINARY.attributes])[BINARY.attributes]
    for c in (AB, BC):
        assert_allclose(project_array(whole, BINARY.attributes, c), model.answer([c])[c], atol=1e-6)


def test_a_warm_start_leads_to_about_the_same() -> None:
    fit, rng = LocalConsistencyFit(), np.random.default_rng(0)
    first = Transcript((PublicTotal(100), measurement(AB, *CYCLE[AB])))
    both = first + Transcript(tuple(measurement(c, *CYCLE[c]) for c in (BC, AC)))
    state = fit.update(fit.update(fit.init(BINARY, rng=rng), first, rng=rng), both, rng=rng)
    assert_allclose(cells_of(fit.model(state)), cells_of(of_cycle()), atol=1.5)


def test_groups_of_codes_are_refused() -> None:
    grouped = LinearMap({"c0": np.array([0, 0])})
    entry = measurement(AB, [[50, 50]], 1.0, grouped)
    with pytest.raises(
        InputError, match="LocalConsistencyFit cannot be fitted to marginals with merged codes"
    ):
        fitted(BINARY, entry)
    with pytest.raises(InputError, match="shrinkage"):
        LocalConsistencyFit(shrinkage=0.0)


def test_mwem_runs_with_it_and_no_limit() -> None:
    mechanism = MWEMPGM(fit=LocalConsistencyFit(), max_model_mb=None, rounds=4)
    table = TinyTable(TinySchema(Domain.of(SIZES)), some_rows(SIZES, 60))
    release = run_on(mechanism, table, AddRemoveRow(), Budget.zcdp(5), SeededRandomness(2), seed=2)
    assert isinstance(release.model, PseudoMarginals)
    cliques = list(release.transcript.cliques)
    assert len(cliques) > len(SIZES)


def test_state_and_load_give_identical_answers() -> None:
    model = of_cycle()
    state = model.state()
    again = FAMILIES[state.kind].load(BINARY, json.loads(json.dumps(state.facts)), state.arrays)
    assert isinstance(again, PseudoMarginals)
    assert again.total == model.total
    for c in (*CYCLE, BINARY.attributes, ()):
        assert np.array_equal(again.answer([c])[c], model.answer([c])[c])


@pytest.mark.parametrize("fault", ["negative", "missing", "shape", "infinite", "sum"])
def test_a_malformed_state_is_refused(fault: str) -> None:
    state = of_cycle().state()
    arrays = {name: np.array(values) for name, values in state.arrays.items()}
    match fault:
        case "negative":
            arrays["table0"][...] = [[1.5, -0.5], [0.0, 0.0]]
        case "missing":
            del arrays["table0"]
        case "shape":
            arrays["table0"] = np.zeros(7)
        case "infinite":
            arrays["table0"][...] = -np.inf
        case "sum":
            arrays["table0"] *= 2.0
    with pytest.raises(ReleaseError):
        FAMILIES[state.kind].load(BINARY, state.facts, arrays)
