"""ResidualPlanner, HDMM and the Gaussian mechanism: their algebra against matrices, and their plans against others."""

from __future__ import annotations

import sys
from fractions import Fraction
from functools import reduce
from itertools import combinations, product
from math import prod, sqrt

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

import margrave
from margrave.accounting import (
    AddRemovePerson,
    AddRemoveRow,
    Budget,
    ReplacePerson,
    ReplaceRow,
    Unit,
)
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import closure
from margrave.mechanisms import HDMM, GaussianMechanism, Mechanism, ResidualPlanner
from margrave.mechanisms.parts.noise_design import (
    ERROR,
    VARIANCE,
    MarginalQuestion,
    NoiseDesign,
    NoisePlan,
    interactions,
    marginals,
)
from margrave.models import (
    CELLS_PER_MB,
    GraphicalFit,
    LeastSquaresAnswers,
    LeastSquaresFit,
    MultiplicativeWeightsFit,
)
from margrave.privacy import SeededRandomness
from margrave.schema import Schema
from margrave.types import Clique, FloatArray
from margrave.workload import Workload
from tests.support.conformance import memory_table, run_on, some_rows

SIZES = {"a": 2, "b": 3, "c": 2}
DOMAIN = Domain.of(SIZES)
ADD, REPLACE = AddRemoveRow(), ReplaceRow()
UNITS = pytest.mark.parametrize("unit", [ADD, REPLACE], ids=str)
WORKLOAD = {("a", "b"): 1.0, ("b", "c"): 0.5, ("c",): 3.0}


def sums(domain: Domain, clique: Clique) -> FloatArray:
    """The marginal as a matrix over all cells."""
    factors = [
        np.eye(n) if a in clique else np.ones((1, n))
        for a, n in zip(domain, domain.sizes, strict=True)
    ]
    return np.asarray(reduce(np.kron, factors))


def centered(domain: Domain, clique: Clique) -> FloatArray:
    """The interaction as a matrix over all cells."""
    factors = [
        np.eye(n) - 1 / n if a in clique else np.ones((1, n))
        for a, n in zip(domain, domain.sizes, strict=True)
    ]
    return np.asarray(reduce(np.kron, factors))


def test_sums_of_marginals_multiply_in_closed_form() -> None:
    """C(S) C(T) = (Π_{i∉S∪T} n_i) C(S∩T)."""
    every = [c for k in range(4) for c in combinations(DOMAIN.attributes, k)]
    gram = {c: sums(DOMAIN, c).T @ sums(DOMAIN, c) for c in every}
    for s, t in product(every, every):
        outside = prod(n for a, n in SIZES.items() if a not in {*s, *t})
        both = tuple(a for a in DOMAIN if a in s and a in t)
        assert_allclose(gram[s] @ gram[t], outside * gram[both])


def test_the_loss_is_that_of_explicit_matrices() -> None:
    """(Σ θ²) tr[(Σ θ² C(S))⁻¹ WᵀW] for all marginals of the domain, and the variance of every cell."""
    below = closure([DOMAIN.attributes])
    design = NoiseDesign(DOMAIN, WORKLOAD, marginals(below), ADD)
    w = np.vstack([c * sums(DOMAIN, r) for r, c in WORKLOAD.items()])
    for seed in range(3):
        squares = np.random.default_rng(seed).uniform(0.1, 2.0, len(below))
        gram = sum(
            s * sums(DOMAIN, r).T @ sums(DOMAIN, r) for s, r in zip(squares, below, strict=True)
        )
        inverse = np.linalg.inv(gram)
        expected = squares.sum() * np.trace(inverse @ w.T @ w)
        assert design.loss(squares) == pytest.approx(expected, rel=1e-9)
        # a scale of 1 / θ costs θ² / 2
        variances = design.variances(squares / squares.sum(), squares.sum() / 2)
        for r, variance in zip(WORKLOAD, variances, strict=True):
            assert_allclose(np.diag(sums(DOMAIN, r) @ inverse @ sums(DOMAIN, r).T), variance)


def test_interactions_have_the_closed_form_of_the_paper() -> None:
    """The variances of explicit matrices at the planned scales, and the loss (Σ √(p v))² / (2 rho)."""
    plan = NoisePlan.of(DOMAIN, WORKLOAD, interactions(DOMAIN, WORKLOAD, ADD), ADD, VARIANCE)
    rho = Fraction(1, 7)
    information: FloatArray = np.zeros((DOMAIN.cells(), DOMAIN.cells()))
    cost = 0.0
    for (question, share), step in zip(plan.shares(rho), plan.steps(DOMAIN, rho, ADD), strict=True):
        clique = question.clique
        matrix = DOMAIN.cells(clique) * centered(DOMAIN, clique)  # what the gate measures
        information += matrix.T @ matrix / step.scale**2
        cost += float((matrix**2).sum(axis=0).max()) / (2 * step.scale**2)
        assert float(share) == pytest.approx((matrix**2).sum(axis=0).max() / (2 * step.scale**2))
    assert cost == pytest.approx(float(rho))
    inverse = np.linalg.pinv(information)
    design = NoiseDesign(DOMAIN, WORKLOAD, plan.questions, ADD)
    shares = np.array([float(s / rho) for _, s in plan.shares(rho)])
    loss = 0.0
    for r, variance in zip(WORKLOAD, design.variances(shares, float(rho)), strict=True):
        explicit = np.diag(sums(DOMAIN, r) @ inverse @ sums(DOMAIN, r).T)
        assert_allclose(explicit, variance, rtol=1e-9)
        loss += WORKLOAD[r] ** 2 * explicit.sum()
    p = {a: prod((SIZES[i] - 1) / SIZES[i] for i in a) for a in [(), *closure(WORKLOAD)]}
    v = {
        a: sum(
            c**2 * DOMAIN.cells(r) * p[a] / prod(SIZES[i] ** 2 for i in r if i not in a)
            for r, c in WORKLOAD.items()
            if set(a) <= set(r)
        )
        for a in p
    }
    assert loss == pytest.approx(sum(sqrt(p[a] * v[a]) for a in p) ** 2 / (2 * float(rho)))
    some = NoiseDesign(DOMAIN, WORKLOAD, marginals(closure(WORKLOAD)), ADD)
    assert design.loss(shares) <= min(
        some.loss(w) for w in np.random.default_rng(2).uniform(size=(200, 5))
    )


@pytest.mark.parametrize("clique", [("a",), ("b",), ("a", "b"), ("a", "b", "c")])
def test_prices_are_of_the_worst_neighbors(clique: Clique) -> None:
    """By brute force over rows that come, go or change, of one person with up to two."""
    columns = centered(DOMAIN, clique).T
    question = MarginalQuestion(clique, interactions=True)
    two = [0 * columns[0], *columns, *(x + y for x in columns for y in columns)]
    worst = {
        ADD: max(x @ x for x in columns),
        REPLACE: max((x - y) @ (x - y) for x in columns for y in columns),
        AddRemovePerson(max_rows=2): max(x @ x for x in two),
        ReplacePerson(max_rows=2): max((x - y) @ (x - y) for x in two for y in two),
    }
    for unit, moved in worst.items():
        assert question.price(DOMAIN, unit) == pytest.approx(float(moved))
    p, least = prod((SIZES[i] - 1) / SIZES[i] for i in clique), min(SIZES[i] for i in clique)
    assert worst[ADD] == pytest.approx(p)
    assert worst[REPLACE] == pytest.approx(2 * p * (1 + 1 / (least - 1)))


def some_problem(rng: np.random.Generator) -> tuple[Domain, dict[Clique, float]]:
    """A random domain, with columns of one code too, and a random workload."""
    domain = Domain.of({f"x{i}": int(rng.integers(1, 9)) for i in range(rng.integers(2, 5))})
    cliques: dict[Clique, float] = {}
    for _ in range(rng.integers(1, 7)):
        some = rng.choice(
            domain.attributes, size=min(len(domain), rng.integers(1, 4)), replace=False
        )
        cliques[domain.clique(some.tolist())] = float(rng.choice([0.25, 1.0, 1.0, 4.0]))
    return domain, cliques


def loss_of(
    plan: NoisePlan, domain: Domain, w: dict[Clique, float], unit: Unit, objective: str
) -> float:
    weights = np.array(plan.weights)
    return NoiseDesign(domain, w, plan.questions, unit, objective).loss(weights)


@pytest.mark.parametrize("unit", [ADD, pytest.param(REPLACE, marks=pytest.mark.slow)], ids=str)
def test_no_plan_is_above_equal_noise(unit: Unit) -> None:
    """Nor is ResidualPlanner's above HDMM's, or the Gaussian mechanism's above PrivSyn's split."""
    gained = 0
    for seed in range(10):
        domain, weights = some_problem(np.random.default_rng(seed))
        workload, near = Workload.of(domain, weights), 1 + 1e-6
        asked = marginals(workload.weights)
        if not NoiseDesign(domain, weights, asked, unit).parts:
            continue
        equal = NoisePlan(asked, (1.0,) * len(asked))
        gaussian = GaussianMechanism(workload=workload)
        split = GaussianMechanism(workload=workload, overlaps=False)
        losses = {
            (name, objective): loss_of(plan, domain, weights, unit, objective)
            for objective in (VARIANCE, ERROR)
            for name, plan in {
                "equal": equal,
                "hdmm": HDMM(workload=workload).plan(domain, unit),
                "planner": ResidualPlanner(workload=workload, objective=objective).plan(
                    domain, unit
                ),
                "gaussian": gaussian.plan(domain, unit),
                "split": split.plan(domain, unit),
            }.items()
        }
        assert losses["hdmm", VARIANCE] <= losses["equal", VARIANCE] * near
        assert losses["planner", VARIANCE] <= losses["hdmm", VARIANCE] * near
        assert (
            losses["gaussian", ERROR] <= min(losses["split", ERROR], losses["equal", ERROR]) * near
        )
        assert losses["planner", ERROR] <= losses["gaussian", ERROR] * near
        gained += losses["planner", VARIANCE] < 0.95 * losses["equal", VARIANCE]
    assert gained >= 4


def test_the_optimum_is_that_of_the_multiplicative_iteration() -> None:
    """Against another algorithm: θ_S ← θ_S √(slope), rescaled, on pairs of columns of uneven sizes."""
    domain = Domain.of({"a": 2, "b": 3, "c": 7, "d": 5})
    weights = dict.fromkeys(combinations(domain.attributes, 2), 1.0)
    design = NoiseDesign(domain, weights, marginals(closure(weights)), ADD)
    shares = np.full(len(design.questions), 1 / len(design.questions))
    precision, variance = design.precision.toarray(), design.variance.toarray()
    v = variance.T @ np.array([domain.cells(r) for r in weights])
    for _ in range(3000):
        shares = shares * np.sqrt(precision @ (v / (precision.T @ shares) ** 2))
        shares /= shares.sum()
    assert design.loss(design.best()) == pytest.approx(design.loss(shares), rel=1e-6)


def test_more_questions_help_under_replacement() -> None:
    """Interactions by themselves pay for moves that no row makes at once."""
    domain = Domain.of(dict.fromkeys("abcd", 2))
    weights = dict.fromkeys(combinations(domain.attributes, 2), 1.0)
    alone = tuple(q for q in interactions(domain, weights, REPLACE) if q.interactions)
    losses = [
        NoiseDesign(domain, weights, questions, REPLACE)
        for questions in (interactions(domain, weights, REPLACE), marginals(weights), alone)
    ]
    both, whole, single = (design.loss(design.best()) for design in losses)
    assert both < 0.99 * whole < whole < 0.99 * single


def test_columns_of_many_codes_have_whole_marginals() -> None:
    domain = Domain.of({"a": 2, "b": 300})
    plan = ResidualPlanner(workload=Workload.of(domain, [("a", "b")])).plan(domain, ADD)
    kinds = {(q.clique, q.interactions) for q in plan.questions}
    assert (("a", "b"), False) in kinds
    assert not any(whole for clique, whole in kinds if "b" in clique)


@UNITS
def test_released_errors_have_the_stated_variance(unit: Unit) -> None:
    """Over 120 runs the mean square of all errors is within 7 standard errors of the stated variance."""
    rows = some_rows(SIZES, 300, seed=3)
    table, runs = memory_table(SIZES, rows), 120
    workload = Workload.of(DOMAIN, [("a", "b"), ("b", "c")])
    truth = table.count(workload.cliques)
    ratios = []
    for seed in range(runs):
        mechanism = ResidualPlanner(workload=workload)
        release = run_on(mechanism, table, unit, Budget.zcdp(0.01), SeededRandomness(seed))
        assert isinstance(release.model, LeastSquaresAnswers)
        for r, values in release.model.answer(workload.cliques).items():
            ratios.append(float(((values - truth[r]) ** 2).mean() / release.model.variance(r)))
    assert abs(np.mean(ratios) - 1) < 7 * np.std(ratios) / sqrt(len(ratios) / 2)


@UNITS
def test_intervals_have_the_stated_variance(unit: Unit) -> None:
    table = memory_table(SIZES, some_rows(SIZES, 300, seed=3))
    release = run_on(ResidualPlanner(), table, unit, Budget.zcdp(1e-4), SeededRandomness(1))
    assert isinstance(release.model, LeastSquaresAnswers)
    for clique in closure([DOMAIN.attributes]):
        found = release.intervals(clique)
        assert_allclose(found.estimate, release.model.answer([clique])[clique], atol=1e-4)
        assert found.half_width == pytest.approx(
            1.96 * sqrt(release.model.variance(clique)), rel=0.02
        )


def test_uneven_weights_and_another_fit_make_records() -> None:
    table = memory_table(SIZES, some_rows(SIZES, 300, seed=3))
    workload = Workload.of(DOMAIN, WORKLOAD)
    mechanism = ResidualPlanner(workload=workload, objective=ERROR, fit=GraphicalFit())
    release = run_on(mechanism, table, ADD, Budget.zcdp(10**6), SeededRandomness(1))
    assert len(release.model.distribution().sample(50, rng=np.random.default_rng(0))) == 50
    for clique, counts in table.count(workload.cliques).items():
        assert np.abs(release.marginal(clique).values - counts).sum() < 3
    assert release.account.rho_spent == 10**6


def test_a_fit_that_takes_no_maps_is_refused_before_anything_is_spent() -> None:
    mechanism = ResidualPlanner(fit=MultiplicativeWeightsFit())
    with pytest.raises(InputError, match="cannot be fitted to linear maps with other weights"):
        mechanism.check(DOMAIN, ADD)


# HDMM within a size.


def test_the_smallest_weights_that_do_not_fit_are_left_out() -> None:
    domain = Domain.of({"a": 2, "b": 3, "c": 4, "d": 5})
    workload, fit = Workload.all_kway(domain, 3), GraphicalFit()
    whole = HDMM(workload=workload, max_model_mb=None).plan(domain, ADD)
    assert HDMM(workload=workload).plan(domain, ADD) == whole
    room = 70
    small = HDMM(workload=workload, max_model_mb=room / CELLS_PER_MB).plan(domain, ADD)
    assert fit.cells(domain, small.cliques) <= room < fit.cells(domain, whole.cliques)
    weight = dict(zip(whole.cliques, whole.weights, strict=True))
    first = max(
        (r for r in whole.cliques if fit.cells(domain, [*((a,) for a in domain), r]) <= room),
        key=lambda r: weight[r],
    )
    assert any(set(first) <= set(r) for r in small.cliques)
    assert {a for r in small.cliques for a in r} == set(domain)


def test_hdmm_alone_answers_by_least_squares() -> None:
    table = memory_table(SIZES, some_rows(SIZES, 300, seed=3))
    mechanism = HDMM.as_published("(HDMM)")
    assert mechanism.fit == LeastSquaresFit()
    release = run_on(mechanism, table, ADD, Budget.zcdp(1), SeededRandomness(0))
    assert isinstance(release.model, LeastSquaresAnswers)


@pytest.mark.parametrize(
    "mechanism",
    [HDMM(), ResidualPlanner(), GaussianMechanism()],
    ids=lambda m: m.name,
)
def test_a_workload_too_large_to_plan_is_refused_at_once(mechanism: Mechanism) -> None:
    domain = Domain.of({f"c{i}": 2 for i in range(120)})
    with pytest.raises(InputError, match=r"280,840 marginals.*forests"):
        mechanism.check(domain, AddRemoveRow())


@pytest.mark.parametrize("name", ["gaussian", "residual-planner", "hdmm"])
def test_without_scipy_the_extra_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    rows, own = pa.table({"a": [0, 1, 1], "b": [1, 0, 1]}), Schema.coded({"a": 2, "b": 2})
    with pytest.raises(InputError, match=r"needs scipy.* pip install 'margrave\[inference\]'"):
        margrave.synthesize(rows, own, epsilon=1.0, delta=1e-6, mechanism=name)
