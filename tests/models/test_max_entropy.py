"""The maximum-entropy model: canonical queries, moments and sufficient statistics against enumeration; the posterior
against one-dimensional integrals and closed forms."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ks_2samp, norm

from margrave.domain import Domain
from margrave.errors import InputError, ReleaseError
from margrave.marginal import LinearMap
from margrave.models import (
    FAMILIES,
    GraphicalFit,
    GraphicalModel,
    MaxEntropyFit,
    MaxEntropyModel,
    ParticleFit,
)
from margrave.models.max_entropy.canonical import Canonical
from margrave.models.max_entropy.density import LogPosterior, log_partition, moments
from margrave.models.max_entropy.diagnostics import mixing
from margrave.models.max_entropy.laplace import laplace
from margrave.models.max_entropy.nuts import Chains
from margrave.models.max_entropy.sufficient import of_canonical_queries, sufficient
from margrave.models.max_entropy.transport import fit_transport, from_cells, to_cells, weights_of
from margrave.models.max_entropy.tree import layout
from margrave.models.terms import Term
from margrave.structural_zeros import StructuralZeros
from margrave.transcript import Measurement, PublicTotal, Transcript
from margrave.types import Clique, FloatArray

ZEROS = StructuralZeros(("a", "b"), np.array([[1, 1], [0, 1], [1, 0]], dtype=bool))
CLIQUES: dict[str, tuple[Clique, ...]] = {
    "tree": (("a", "b"), ("b", "c"), ("d", "e")),
    "loop": (("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), ("e",)),
    "triple": (("a", "b", "c"), ("c", "d", "e")),
}
ONE_OF_CLIQUES = [
    pytest.param(name, marks=[pytest.mark.slow] * (name != "loop")) for name in CLIQUES
]
REFERENCE = {"a": 1, "b": 0, "c": 2, "d": 0, "e": 1}


def domain_of(*zeros: StructuralZeros) -> Domain:
    return Domain(("a", "b", "c", "d", "e"), (3, 2, 4, 3, 2), zeros)


def even(domain: Domain) -> dict[str, FloatArray]:
    return {a: np.full(domain.size(a), 1.0 / domain.size(a)) for a in domain}


def every_record(domain: Domain) -> Any:
    records = np.array(list(itertools.product(*[range(s) for s in domain.sizes])))
    possible = np.ones(len(records), dtype=bool)
    for z in domain.zeros:
        possible &= z.possible[tuple(records[:, domain.index(a)] for a in z.clique)]
    return records[possible]


def queries_of(canonical: Canonical, records: Any) -> FloatArray:
    """a(x) for each record, straight from the definition."""
    domain = canonical.domain
    columns = []
    for s in canonical.subsets:
        for v in itertools.product(*[canonical.order(a)[1:] for a in s]):
            columns.append(np.all([records[:, domain.index(a)] == c for a, c in zip(s, v)], axis=0))
    return np.array(columns, dtype=np.float64).T[:, canonical.kept]


def count(domain: Domain, records: Any, clique: Clique) -> FloatArray:
    table = np.zeros(domain.shape(clique))
    np.add.at(table, tuple(records[:, domain.index(a)] for a in clique), 1.0)
    return table


@pytest.fixture(autouse=True)
def double() -> Any:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("name", ONE_OF_CLIQUES)
@pytest.mark.parametrize("zeros", [pytest.param((), marks=pytest.mark.slow), (ZEROS,)])
def test_moments_agree_with_enumeration_and_with_derivatives(
    name: str, zeros: tuple[StructuralZeros, ...]
) -> None:
    domain = domain_of(*zeros)
    canonical = Canonical(domain, CLIQUES[name], REFERENCE)
    theta = np.random.default_rng(3).normal(size=len(canonical.kept))
    records = every_record(domain)
    a = queries_of(canonical, records)
    p = np.exp(a @ theta)
    p /= p.sum()
    expected = p @ a
    spread = (a.T * p) @ a - np.outer(expected, expected)
    laid = layout(canonical)
    mean, covariance = jax.jit(lambda t: moments(laid, t))(jnp.asarray(theta[laid.order]))
    assert np.abs(mean - expected[laid.order]).max() < 1e-12
    assert np.abs(covariance - spread[np.ix_(laid.order, laid.order)]).max() < 1e-12
    at = jnp.asarray(theta[laid.order])
    slope = jax.grad(lambda t: log_partition(laid, t))
    assert np.abs(jax.jit(slope)(at) - mean).max() < 1e-12
    assert np.abs(jax.jit(jax.jacfwd(slope))(at) - covariance).max() < 1e-12
    # the same distribution, as potentials of the graphical model
    potentials = canonical.potentials(theta)
    for z in zeros:
        potentials[z.clique] = np.where(
            z.possible, potentials.get(z.clique, np.zeros(z.possible.shape)), -np.inf
        )
    model = GraphicalModel(domain, 1.0, potentials)
    for clique in (("a", "b"), ("b", "c"), ("c", "e")):
        table = np.zeros(domain.shape(clique))
        np.add.at(table, tuple(records[:, domain.index(x)] for x in clique), p)
        assert np.abs(model.project(clique).values - table).max() < 1e-12


def test_canonical_queries_are_independent_and_say_all_that_the_marginals_say() -> None:
    for zeros in ((), (ZEROS,)):
        domain = domain_of(*zeros)
        records = every_record(domain)
        for cliques in CLIQUES.values():
            canonical = Canonical(domain, cliques, REFERENCE)
            a = np.concatenate([np.ones((len(records), 1)), queries_of(canonical, records)], axis=1)
            every = [np.ones((len(records), 1))]
            for c in cliques:
                codes = np.ravel_multi_index(
                    tuple(records[:, domain.index(x)] for x in c), domain.shape(c)
                )
                every.append(np.eye(domain.cells(c))[codes])
            rank = np.linalg.matrix_rank(a)
            assert rank == a.shape[1]
            assert np.linalg.matrix_rank(np.concatenate([a, *every], axis=1)) == rank


@pytest.mark.parametrize("zeros", [pytest.param((), marks=pytest.mark.slow), (ZEROS,)])
@pytest.mark.parametrize("public", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_without_noise_the_sufficient_statistics_are_the_counts(
    zeros: tuple[StructuralZeros, ...], public: bool
) -> None:
    domain, rng = domain_of(*zeros), np.random.default_rng(5)
    canonical = Canonical(domain, CLIQUES["loop"], REFERENCE)
    records = every_record(domain)
    drawn = records[rng.integers(0, len(records), 400)]
    scales = {c: 2.0 + i for i, c in enumerate(CLIQUES["loop"])}
    terms = [
        Term(c, count(domain, drawn, c), np.full(domain.shape(c), s)) for c, s in scales.items()
    ]
    exact = queries_of(canonical, drawn).sum(0)
    found = sufficient(canonical, terms, 400.0 if public else None)
    assert np.abs(found.mean - exact).max() < 1e-9
    assert found.total == pytest.approx(400)
    # their covariance, by simulation: sd of a variance from 1,000 draws is 4.5 %, 6 of them 27 %
    noisy = [
        sufficient(
            canonical,
            [Term(t.clique, t.values + rng.normal(0, t.scales), t.scales) for t in terms],
            400.0 if public else None,
        )
        for _ in range(1000)
    ]
    around = np.array([n.mean - n.total_slope * (n.total - 400) for n in noisy])
    assert np.abs(around.var(0) / np.diag(found.covariance) - 1).max() < 0.27
    if not public:
        assert abs(np.var([n.total for n in noisy]) / found.total_variance - 1) < 0.27


@pytest.mark.parametrize("zeros", [(), (ZEROS,)])
@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("name", CLIQUES)
def test_one_cell_for_each_canonical_query_determines_them(
    name: str, public: bool, zeros: tuple[StructuralZeros, ...]
) -> None:
    domain, rng = domain_of(*zeros), np.random.default_rng(5)
    canonical = Canonical(domain, CLIQUES[name], REFERENCE)
    records = every_record(domain)
    drawn = records[rng.integers(0, len(records), 400)]
    inner = (CLIQUES[name][0][0],)
    tables = {c: count(domain, drawn, c) for c in (*CLIQUES[name], inner)}
    terms = [Term(c, t, np.full(t.shape, 2.0)) for c, t in tables.items()]
    found = of_canonical_queries(canonical, terms, public_total=public)
    known = [np.isfinite(t.scales) for t in found]
    assert [t.clique for t in found] == list(CLIQUES[name])
    if not zeros:
        assert sum(k.sum() for k in known) == canonical.size + (0 if public else len(found))
    spoiled = [replace(t, values=np.where(k, t.values, 1e6)) for t, k in zip(found, known)]
    exact = queries_of(canonical, drawn).sum(0)
    made = sufficient(canonical, spoiled, 400.0 if public else None)
    assert np.abs(made.mean - exact).max() < 1e-9
    assert made.total == pytest.approx(400)


def test_the_noise_of_canonical_queries_is_that_of_their_cells() -> None:
    """ŝ = B (cells), so K = scale² B Bᵀ, for B from two columns by hand; all cells together say more."""
    domain = Domain(("a", "b"), (2, 2))
    canonical = Canonical(domain, (("a", "b"),), {"a": 0, "b": 0})
    term = Term(("a", "b"), np.array([[40.0, 10], [20, 30]]), np.full((2, 2), 3.0))
    few = of_canonical_queries(canonical, [term], public_total=True)
    by_cells = np.array([[1, 0, 1], [0, 1, 1], [0, 0, 1]])  # a=1, b=1, both; of cells 10, 01, 11
    some, every = (sufficient(canonical, terms, 100.0) for terms in (few, [term]))
    assert np.abs(some.covariance - 9 * by_cells @ by_cells.T).max() < 1e-9
    assert np.abs(some.mean - [50, 40, 30]).max() < 1e-9
    assert (np.diag(every.covariance) < np.diag(some.covariance) - 0.5).all()


@pytest.mark.parametrize("queries", ["all", "canonical"])
def test_a_fit_of_canonical_queries_does_not_use_the_reference_cell(queries: str) -> None:
    fit = MaxEntropyFit(sampler="laplace", reference="first", queries=queries)  # type: ignore[arg-type]
    found = [
        fit(Domain.of({"a": 2}), one_column([first, 60], 5.0, 100), rng=np.random.default_rng(0))
        for first in (40, 80)
    ]
    one, other = (model.project(("a",)).values for model in found)
    assert (np.abs(one - other).max() < 1e-6) == (queries == "canonical")


def one_column(values: list[int], scale: float, public: int | None = None) -> Transcript:
    entries: tuple[Any, ...] = () if public is None else (PublicTotal(public),)
    return Transcript((*entries, Measurement(("a",), np.array(values), scale, Fraction(1, 8))))


def on_a_grid(values: list[int], scale: float, n: int) -> tuple[FloatArray, FloatArray]:
    """The posterior of θ for one binary column, by brute force, with the prior N(0, 10²); y0 + y1 is known to be n."""
    grid = np.linspace(-60, 60, 240_001)
    p = 1 / (1 + np.exp(-grid))
    # s = n1: y1 ~ N(s, scale²) and n − y0 ~ N(s, scale²); the normal approximation of s
    estimate, variance = (values[1] + n - values[0]) / 2, scale**2 / 2
    log = norm.logpdf(estimate, n * p, np.sqrt(n * p * (1 - p) + variance)) - grid**2 / 200
    weight = np.exp(log - log.max())
    return grid, weight / weight.sum()


@pytest.mark.slow
@pytest.mark.parametrize(("values", "scale"), [([900, 110], 20.0), ([990, 12], 40.0)])
def test_nuts_draws_have_the_law_of_the_posterior(values: list[int], scale: float) -> None:
    """One parameter, against its exact law: also where noise hides whether a cell is empty (a plateau down to −20)."""
    domain = Domain(("a",), (2,))
    model = MaxEntropyFit(reference="first", warmup=300, prior=10.0)(
        domain, one_column(values, scale, 1000), rng=np.random.default_rng(2)
    )
    assert isinstance(model, MaxEntropyModel)
    assert model.facts["good"]
    grid, weight = on_a_grid(values, scale, 1000)
    below = np.interp(model.draws[:, 0], grid, np.cumsum(weight))
    # the probability integral transform is uniform; the draws count as at least 400 independent ones
    distance = np.abs(np.sort(below) - (np.arange(len(below)) + 0.5) / len(below)).max()
    assert distance < 2.5 / np.sqrt(400)
    mean = (grid * weight).sum()
    spread = np.sqrt(((grid - mean) ** 2 * weight).sum())
    assert abs(model.draws.mean() - mean) < 5 * spread / np.sqrt(400)


def test_the_laplace_approximation_is_the_mode_and_its_curvature() -> None:
    grid, weight = on_a_grid([900, 110], 20.0, 1000)
    model = MaxEntropyFit(sampler="laplace", reference="first", prior=10.0)(
        Domain(("a",), (2,)), one_column([900, 110], 20.0, 1000), rng=np.random.default_rng(2)
    )
    assert isinstance(model, MaxEntropyModel)
    top = int(np.argmax(weight))
    assert abs(model.center[0] - grid[top]) < 1e-3
    curvature = (np.log(weight[top + 40]) - 2 * np.log(weight[top]) + np.log(weight[top - 40])) / (
        40 * 5e-4
    ) ** 2
    assert model.draws.std() == pytest.approx(1 / np.sqrt(-curvature), rel=0.12)


def posterior_of(rng: np.random.Generator) -> tuple[Canonical, LogPosterior]:
    domain = Domain(("a", "b", "c"), (3, 2, 3))
    cliques: tuple[Clique, ...] = (("a", "b"), ("b", "c"))
    canonical = Canonical(domain, cliques, dict.fromkeys(domain, 0))
    counts = {c: rng.poisson(40, domain.shape(c)).astype(np.float64) for c in cliques}
    terms = [Term(c, values, np.full(values.shape, 15.0)) for c, values in counts.items()]
    return canonical, LogPosterior(layout(canonical), sufficient(canonical, terms, None), 10.0)


@pytest.mark.slow
def test_coordinates_are_a_change_of_variables() -> None:
    """The density of u is that of θ and of the sums, by the Jacobian of automatic differentiation; along axes through
    the mode it is standard normal."""
    canonical, posterior = posterior_of(np.random.default_rng(8))
    around = laplace(posterior, canonical)
    made = fit_transport(posterior, around, even(canonical.domain))
    rng = np.random.default_rng(1)

    def joint(u: jax.Array) -> jax.Array:
        """(θ, s) of u."""
        return jnp.concatenate(from_cells(posterior.layout, made.weights, made.cells(u)[0]))

    for _ in range(2):
        u = jnp.asarray(rng.normal(0, 2, made.size))
        theta, more = made.theta(u)
        both = joint(u)
        assert np.abs(both[: posterior.size] - theta).max() < 1e-9
        volume = np.linalg.slogdet(jax.jacobian(joint)(u))[1]
        of_sums = -0.5 * float(jnp.sum((both[posterior.size :] / made.sums) ** 2))
        assert volume + of_sums == pytest.approx(float(more), abs=1e-9)
    of_u = jax.jit(made.along(posterior.log_density))
    fine = jnp.linspace(-4, 4, 8001)
    offsets = jax.jit(jax.vmap(lambda x: made.cells(jnp.full(made.size, x))[0]))(fine) - made.mode
    mode = fine[np.abs(np.asarray(offsets)).argmin(axis=0)]  # where g_j = 0
    for j in range(made.size):
        values = np.array([of_u(mode.at[j].set(x)) + x**2 / 2 for x in (-2.0, -1.0, 0.0, 1.0, 2.0)])
        assert np.ptp(values) < 0.1


@pytest.mark.parametrize("name", ONE_OF_CLIQUES)
def test_cells_and_parameters_are_inverse_and_keep_volume(name: str) -> None:
    canonical = Canonical(domain_of(ZEROS), CLIQUES[name], REFERENCE)
    laid = layout(canonical)
    rng = np.random.default_rng(2)
    theta = jnp.asarray(rng.normal(0, 2, len(laid.order) + 1))
    sums = jnp.asarray(rng.normal(0, 1, laid.groups[-1].stop))
    weights = weights_of(laid, even(canonical.domain))
    c, _ = jax.jit(lambda t, s: to_cells(laid, weights, t, s))(theta, sums)
    found = jax.jit(lambda x: from_cells(laid, weights, x))(c)
    assert np.abs(found[0] - theta).max() < 1e-9
    assert np.abs(found[1] - sums).max() < 1e-9
    assert c[len(laid.order)] == theta[-1]
    jacobian = jax.jit(jax.jacfwd(lambda x: jnp.concatenate(from_cells(laid, weights, x))))(c)
    assert abs(np.linalg.slogdet(jacobian)[1]) < 1e-9


def test_a_coordinate_is_the_log_probability_of_its_cell() -> None:
    """On a tree, whatever hangs below: also of the cells of the reference code, which come last."""
    domain = domain_of()
    canonical = Canonical(domain, (("a", "b"), ("b", "c"), ("c", "d"), ("b", "e")), REFERENCE)
    laid = layout(canonical)
    theta = np.random.default_rng(2).normal(0, 2, len(canonical.kept))
    weights = weights_of(laid, even(domain))
    none = jnp.zeros(laid.groups[-1].stop)
    c = np.asarray(
        jax.jit(lambda t: to_cells(laid, weights, t, none)[0])(jnp.asarray(theta[laid.order]))
    )
    model = GraphicalModel(domain, 1.0, canonical.potentials(theta))
    told = {
        frozenset(canonical.query(canonical.kept[j]).items()): c[i]
        for i, j in enumerate(laid.order)
    }
    root = {tuple(canonical.query(canonical.kept[j])) for j in laid.order[laid.nodes[0].own]}
    checked = 0
    for clique in canonical.cliques:
        if clique in root:
            continue  # both of its columns are outside the separator
        logs = np.log(model.project(clique).values)
        for v, w in itertools.product(*[canonical.order(x)[1:] for x in clique]):
            assert abs(told[frozenset(zip(clique, (int(v), int(w))))] - logs[v, w]) < 1e-9
            checked += 1
        references = [np.delete(logs[r], s) for r, s in [[REFERENCE[x] for x in clique]]]
        references += [np.delete(logs[:, s], r) for r, s in [[REFERENCE[x] for x in clique]]]
        last = c[len(laid.order) :]
        assert any(all(np.abs(last - x).min() < 1e-9 for x in row) for row in references)
    assert checked >= 6


@pytest.mark.slow
def test_where_the_posterior_is_normal_laplace_and_nuts_agree() -> None:
    """Large counts: both must give the same means and spreads."""
    canonical, posterior = posterior_of(np.random.default_rng(8))
    large = replace(posterior, sufficient=replace(posterior.sufficient, mean=posterior.sufficient.mean * 200,
        total_slope=posterior.sufficient.total_slope, total=posterior.sufficient.total * 200))  # fmt: skip
    around = laplace(large, canonical)
    made = fit_transport(large, around, even(canonical.domain))
    chains = Chains(large, made, made.first_root(), 4, np.random.default_rng(4))
    chains.warm_up(150)
    chains.extend(300)
    drawn = chains.draws.reshape(-1, large.size)
    normal = around.draws(4000, np.random.default_rng(5))
    assert (
        np.abs(drawn.mean(0) - around.mode).max()
        < 0.2 * np.sqrt(np.diag(around.factor @ around.factor.T)).max()
    )
    for j in range(large.size):
        assert ks_2samp(drawn[::2, j], normal[:, j]).statistic < 0.12


def test_bad_chains_are_told_from_good_ones() -> None:
    rng, none = np.random.default_rng(0), np.zeros((4, 500), dtype=bool)
    good = rng.normal(size=(4, 500, 3))
    told = mixing(good, none)
    assert told.r_hat < 1.02
    assert told.effective > 1000
    apart = good.copy()
    apart[0, :, 1] += 1.0  # one chain elsewhere
    assert mixing(apart, none).r_hat > 1.05
    drift = good.copy()
    drift[:, :, 2] += np.linspace(0, 2, 500)  # all chains drift together
    assert mixing(drift, none).r_hat > 1.05
    slow = np.cumsum(good, axis=1) * 0.05 + good * 0.01
    assert mixing(slow, none).effective < 100
    stuck = good.copy()
    stuck[:, :, 0] = 1.0
    assert mixing(stuck, none).effective == 0.0


@pytest.mark.slow
def test_a_posterior_that_has_not_mixed_refuses_to_give_data_sets_unless_accepted() -> None:
    rng, domain = np.random.default_rng(2), Domain(("a",), (3,))
    few = MaxEntropyFit(max_draws=100, warmup=60, effective=1e6)
    model = few(domain, one_column([500, 400, 100], 9.0), rng=rng)
    assert isinstance(model, MaxEntropyModel)
    assert not model.facts["good"]
    with pytest.raises(ReleaseError, match="not mixed"):
        next(model.posterior().draws(2, rng=rng))
    taken = (
        FAMILIES["max-entropy"]
        .load(
            domain,
            {**model.state().facts, "posterior": {**model.facts, "good": True}},
            model.state().arrays,
        )
        .posterior()
    )
    assert taken is not None
    assert len(list(taken.draws(3, rng=rng))) == 3


def test_a_mode_that_was_not_reached_can_be_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    from margrave.models.max_entropy import laplace as where

    for limit in ("MAX_DAMPED_STEPS", "MAX_STEPS"):
        monkeypatch.setattr(where, limit, 1)
    monkeypatch.setattr(where, "ROUNDING_TOLERANCE", 0.0)
    rng, domain = np.random.default_rng(2), Domain(("a",), (3,))
    for accept in (False, True):
        fit = MaxEntropyFit(sampler="laplace", accept=accept)
        model = fit(domain, one_column([500, 400, 100], 9.0), rng=rng)
        assert isinstance(model, MaxEntropyModel)
        assert model.facts["good"] is accept
        assert "not reached" in model.facts["why"]


def test_merged_codes_get_their_shares_from_their_own_counts() -> None:
    domain = Domain(("a", "b"), (4, 2))
    groups = np.array([0, 1, 2, 2], dtype=np.int64)
    merged = LinearMap({"a": groups})
    rng = np.random.default_rng(3)
    transcript = Transcript((
        Measurement(("a",), np.array([400, 300, 60, 20]), 3.0, Fraction(1, 8)),
        Measurement(("a", "b"), np.array([[250, 150], [100, 200], [50, 30]]), 3.0, Fraction(1, 8), merged),
    ))  # fmt: skip
    model = MaxEntropyFit(sampler="laplace")(domain, transcript, rng=rng)
    held = model.posterior()
    assert held is not None
    tables = np.array([m.project(("a", "b")).values for m in held.draws(200, rng=rng)])
    share = tables[:, 2].sum(1) / tables[:, 2:].sum((1, 2))
    assert abs(share.mean() - 0.75) < 0.03
    assert 0.03 < share.std() < 0.09  # noise of 3 on 80, and sampling: sqrt(.75 · .25 / 80) = 0.048
    assert tables.sum((1, 2)) == pytest.approx(np.array(list(tables.sum((1, 2)))))
    assert tables.sum((1, 2)).std() > 0  # the number of records is not public here


def test_what_is_too_large_is_refused() -> None:
    domain = Domain(("a", "b"), (60, 60))
    assert not MaxEntropyFit().tractable(domain, [("a", "b")])
    assert MaxEntropyFit().tractable(domain, [("a",), ("b",)])
    big = Transcript(
        (Measurement(("a", "b"), np.zeros((60, 60), dtype=np.int64), 3.0, Fraction(1, 8)),)
    )
    with pytest.raises(InputError, match="This marginal is too large") as caught:
        MaxEntropyFit()(domain, big, rng=np.random.default_rng(0))
    # an analyst cannot measure again
    remedy = str(caught.value.remedy)
    assert "GraphicalFit() or ParticleFit() (--fit graphical or --fit particles)" in remedy
    assert "method='bootstrap' (margrave analyze --method bootstrap)" in remedy
    assert "draws(" not in remedy
    for fit in (GraphicalFit(), ParticleFit(particles=50)):
        assert fit(domain, big, rng=np.random.default_rng(0)).distribution() is not None


def test_a_missing_library_is_told_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "margrave.models.max_entropy.fit.find_spec", lambda name: None if name == "jax" else 1
    )
    with pytest.raises(InputError, match=r"jax[\s\S]*margrave\[inference\]"):
        MaxEntropyFit().ready()


@pytest.mark.parametrize(
    "bad",
    [{"sampler": "gibbs"}, {"reference": "last"}, {"chains": 1}, {"prior": 0.0}, {"max_draws": 3}],
)
def test_parameters_are_checked(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        MaxEntropyFit(**bad)


def test_state_and_loading_are_inverse_and_damage_is_refused() -> None:
    domain = domain_of(ZEROS)
    rng = np.random.default_rng(1)
    records = every_record(domain)
    drawn = records[rng.integers(0, len(records), 400)]
    entries = [
        Measurement(c, count(domain, drawn, c).astype(np.int64), 3.0, Fraction(1, 8))
        for c in CLIQUES["tree"]
    ]
    model = MaxEntropyFit(sampler="laplace")(domain, Transcript(tuple(entries)), rng=rng)
    state = model.state()
    again = FAMILIES[state.kind].load(domain, state.facts, state.arrays)
    assert np.array_equal(again.project(("a", "c")).values, model.project(("a", "c")).values)
    held, kept = again.posterior(), model.posterior()
    assert held is not None and kept is not None  # noqa: PT018
    first, second = (next(h.draws(1, rng=np.random.default_rng(4))) for h in (held, kept))
    assert np.array_equal(first.project(("a", "b")).values, second.project(("a", "b")).values)
    assert first.project(("a", "b")).values[~ZEROS.possible].max() == 0.0
    damages: list[Any] = [
        ({"total": -1.0}, {}), ({"total": "many"}, {}), ({"reference": {"a": 0}}, {}), ({"posterior": 3}, {}),
        ({"reference": {**state.facts["reference"], "a": 7}}, {}), ({"cliques": [["a", "z"]]}, {}),
        ({"merged": ["a"]}, {}), ({}, {"draws": state.arrays["draws"][:, 1:]}),
        ({}, {"draws": state.arrays["draws"][:0]}),
        ({}, {"totals": -state.arrays["totals"]}), ({}, {"center": state.arrays["center"] + np.nan}),
        ({}, {"center": state.arrays["center"] + 1e9}), ({"cliques": [["a", "b", "c", "d", "e"] * 4]}, {}),
    ]  # fmt: skip
    for facts, arrays in damages:
        with pytest.raises(ReleaseError):
            FAMILIES[state.kind].load(domain, {**state.facts, **facts}, {**state.arrays, **arrays})
