"""GReM-LNN: a quadratic program with bounds, least squares where nothing is negative, and nearer to the truth."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import lsq_linear

from margrave.accounting import AddRemoveRow, Budget
from margrave.domain import Domain
from margrave.errors import InputError, ReleaseError
from margrave.marginal import TOTAL, LinearMap, project_array
from margrave.mechanisms import MWEMPGM, ResidualPlanner
from margrave.models import GReMFit, LeastSquaresFit, PseudoMarginals
from margrave.privacy import SeededRandomness
from margrave.structural_zeros import StructuralZeros
from margrave.testing.gate import run_on
from margrave.testing.tables import SIZES, TinySchema, TinyTable, some_rows
from margrave.transcript import Answer, PublicTotal, Transcript
from margrave.types import Clique, FloatArray
from tests.support.strategies import domain_of, measurement

DOMAIN = domain_of([2, 3, 2, 3])
PAIRS: list[Clique] = list(combinations(DOMAIN.attributes, 2))
TREE: list[Clique] = [("c0", "c1"), ("c1", "c2"), ("c2", "c3")]
SCALES = dict(zip(PAIRS, [3.0, 5.0, 4.0, 3.0, 6.0, 2.0], strict=True))
EXACT: dict[str, Any] = {"tolerance": 1e-8, "max_steps": 20_000}
PRECISE = LinearMap.residual(DOMAIN, ("c0", "c1"))


def truth(rows: int, seed: int) -> FloatArray:
    """A sparse table: most of its cells are empty."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(DOMAIN.cells(), 0.05))
    return np.asarray(rng.multinomial(rows, shares).reshape(DOMAIN.sizes), dtype=float)


def noisy(table: FloatArray, seed: int, cliques: list[Clique] = PAIRS) -> list[Any]:
    """Marginals with noise of several scales, one of them twice."""
    rng = np.random.default_rng(seed)
    entries = []
    for clique in [*cliques, cliques[0]]:
        values = project_array(table, DOMAIN.attributes, clique)
        drawn = np.rint(values + rng.normal(scale=SCALES[clique], size=values.shape)).astype(int)
        entries.append(measurement(clique, drawn, SCALES[clique]))
    return entries


def fitted(*entries: Any, domain: Domain = DOMAIN, **options: Any) -> PseudoMarginals:
    return GReMFit(**options).estimate(domain, Transcript(entries), rng=np.random.default_rng(0))


def squares(*entries: Any, domain: Domain = DOMAIN) -> Any:
    return LeastSquaresFit()(domain, Transcript(entries), rng=np.random.default_rng(0))


@pytest.mark.parametrize("public", [False, True])
def test_on_a_tree_it_is_least_squares_over_tables_without_negative_cells(public: bool) -> None:
    """There, marginals that agree and are not negative are those of some table."""
    table = truth(30, seed=2)
    entries = [*noisy(table, 2, TREE), Answer(TOTAL, 28, 9.0, 1)]
    matrix, values = [], []
    for e in entries[:-1]:
        ones = [
            np.eye(DOMAIN.size(a)) if a in e.clique else np.ones((1, DOMAIN.size(a)))
            for a in DOMAIN
        ]
        rows = ones[0]
        for factor in ones[1:]:
            rows = np.kron(rows, factor)
        matrix.append(rows / e.scale)
        values.append(e.values.ravel() / e.scale)
    weight = 1e3 if public else 1 / 9.0
    matrix.append(np.full((1, DOMAIN.cells()), weight))
    values.append(np.array([28.0 * weight]))
    best = lsq_linear(np.vstack(matrix), np.concatenate(values), (0.0, np.inf), method="bvls").x
    entries = [*entries[:-1], PublicTotal(28)] if public else entries
    found = fitted(*entries, **EXACT)
    plain = squares(*entries).answer(TREE)
    assert min(v.min() for v in plain.values()) < -1.0
    for clique in TREE:
        expected = project_array(best.reshape(DOMAIN.sizes), DOMAIN.attributes, clique)
        assert_allclose(found.answer([clique])[clique], expected, atol=1e-3)


def test_it_is_least_squares_where_nothing_is_negative() -> None:
    table = truth(60, seed=3) + 50.0
    entries = [*noisy(table, 4), Answer(TOTAL, 1900, 20.0, 1)]
    model, plain = fitted(*entries), squares(*entries)
    for clique in [c for k in (1, 2) for c in combinations(DOMAIN.attributes, k)]:
        assert_allclose(model.answer([clique])[clique], plain.answer([clique])[clique], atol=1e-8)


@pytest.mark.parametrize("public", [False, True])
def test_it_is_nearer_to_the_truth_than_least_squares_whatever_the_noise(public: bool) -> None:
    """A projection onto a convex set that holds the truth: the squared error in units of the noise never grows."""
    ratios = []
    for seed in range(8):
        table = truth(40, seed)
        known = [PublicTotal(40)] if public else []
        entries = [*noisy(table, 100 + seed), *known]
        model, plain = fitted(*entries, tolerance=1e-4), squares(*entries)
        error = dict.fromkeys(("model", "plain"), 0.0)
        for e in entries[:7]:
            right = project_array(table, DOMAIN.attributes, e.clique)
            for name, answers in (("model", model), ("plain", plain)):
                values = answers.answer([e.clique])[e.clique]
                error[name] += float(((values - right) ** 2).sum()) / e.scale**2
        ratios.append(error["model"] / error["plain"])
    assert max(ratios) < 1.0
    assert np.mean(ratios) < 0.8


def test_answers_are_not_negative_and_agree() -> None:
    model = fitted(*noisy(truth(40, seed=5), 6), tolerance=1e-4)
    answers = model.answer(PAIRS)
    assert min(v.min() for v in answers.values()) == 0.0
    for a in DOMAIN:
        columns = [project_array(answers[c], c, (a,)) for c in PAIRS if a in c]
        assert_allclose(columns, np.broadcast_to(columns[0], (3, DOMAIN.size(a))), atol=0.01)


def test_interactions_of_a_planner_are_used() -> None:
    table = TinyTable(TinySchema(Domain.of(SIZES)), some_rows(SIZES, 20))
    mechanism = ResidualPlanner(fit=GReMFit())
    release = run_on(mechanism, table, AddRemoveRow(), Budget.zcdp(1), SeededRandomness(0), seed=0)
    assert any(not m.query.is_identity for m in release.transcript.measurements)
    for clique, values in release.model.answer(release.transcript.cliques).items():
        assert values.min() >= 0.0, clique
    # The interactions of a pair whose columns nobody measured say nothing about its cells.
    alone = fitted(measurement(("c0", "c1"), np.arange(6).reshape(2, 3), 1.0, PRECISE))
    assert alone.tables == {}


def test_it_serves_rounds_of_any_structure() -> None:
    table = TinyTable(TinySchema(Domain.of(SIZES)), some_rows(SIZES, 60))
    mechanism = MWEMPGM(fit=GReMFit(), max_model_mb=None, rounds=4)
    release = run_on(mechanism, table, AddRemoveRow(), Budget.zcdp(10), SeededRandomness(0), seed=0)
    wanted = list(combinations(table.domain.attributes, 2))
    assert all(v.min() >= 0.0 for v in release.model.answer(wanted).values())
    with pytest.raises(ReleaseError, match="no distribution"):
        release.model.distribution()


def test_impossible_cells_are_zero_and_the_others_make_up_for_them() -> None:
    possible = np.array([[True, False, True], [True, True, True]])
    domain = Domain.of({"c0": 2, "c1": 3}, [StructuralZeros(("c0", "c1"), possible)])
    model = fitted(
        PublicTotal(30), measurement(("c0", "c1"), [[4, 3, 7], [10, 2, 4]], 2.0), domain=domain
    )
    found = model.answer([("c0", "c1")])["c0", "c1"]
    assert_allclose(found, [[4.6, 0, 7.6], [10.6, 2.6, 4.6]], atol=0.05)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (measurement(("c1",), [5, 6], 1.0, LinearMap({"c1": np.array([0, 0, 1])})), "merged codes"),
        (
            measurement(("c1",), [1, 5, 9], 1.0, LinearMap.prefixes(DOMAIN, ["c1"])),
            "weights 0 and 1",
        ),
    ],
)
def test_other_measurements_are_refused(entry: Any, words: str) -> None:
    with pytest.raises(InputError, match=f"not .*{words}.*GraphicalFit"):
        fitted(entry)


@pytest.mark.parametrize("options", [{"tolerance": 0.0}, {"max_steps": 0}])
def test_parameters_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="tolerance > 0 and max_steps >= 1"):
        GReMFit(**options)


def test_sizes_count_each_marginal_once() -> None:
    fit = GReMFit()
    assert fit.cells(DOMAIN, [TREE[0], TREE[0], TREE[1]]) == 12
    assert fit.sizes_with(DOMAIN, [TREE[0]], [TREE[0], TREE[2]]).tolist() == [6.0, 12.0]
    wide = domain_of([2_000, 3_000])
    assert fit.sizes_with(wide, [], [wide.attributes]).tolist() == [np.inf]
