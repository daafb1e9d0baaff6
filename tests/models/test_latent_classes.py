"""Latent classes: the sampler against explicit sums and integrals, draws, and the release file."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from margrave.accounting import AddRemoveRow, Budget, ReplaceRow
from margrave.domain import Domain
from margrave.errors import InputError, ModelTooLargeError, ReleaseError
from margrave.marginal import LinearMap
from margrave.mechanisms import MST, PrivLCM
from margrave.models import FAMILIES, LatentClassFit, LatentClassModel, MixtureModel, Needs
from margrave.models.latent_classes.sampling import ClassChains, NoisyCells, Walk, largest_r_hat
from margrave.models.terms import terms_of
from margrave.privacy import SeededRandomness
from margrave.release import Release
from margrave.structural_zeros import StructuralZeros
from margrave.transcript import PublicTotal, Transcript
from margrave.types import Clique, FloatArray
from tests.support.conformance import FEW_SWEEPS, codes_of, memory_table, run_on
from tests.support.strategies import domain_of, measurement

DOMAIN = domain_of([2, 3, 2])
PAIRS: list[Clique] = list(combinations(DOMAIN.attributes, 2))


def classes_of(seed: int, count: int = 3, domain: Domain = DOMAIN) -> MixtureModel:
    """Known latent classes."""
    rng = np.random.default_rng(seed)
    blocks = [rng.dirichlet(np.ones(domain.size(a)), count) for a in domain]
    return MixtureModel(domain, 1.0, np.concatenate(blocks, axis=1), rng.dirichlet(np.ones(count)))


def noisy(model: MixtureModel, records: int, scale: float, rng: np.random.Generator) -> Transcript:
    """All pairs of that many independent records, with noise."""
    rows = model.sample(records, rng=rng, independent=True)
    found = []
    for pair in combinations(model.domain.attributes, 2):
        counts = np.zeros(model.domain.shape(pair))
        np.add.at(counts, tuple(rows.column(a) for a in pair), 1)
        values = np.rint(counts + scale * rng.standard_normal(counts.shape))
        found.append(measurement(pair, values, scale))
    return Transcript((PublicTotal(records), *found))


def problem_of(transcript: Transcript, domain: Domain, priors: tuple[float, float]) -> NoisyCells:
    terms = terms_of(domain, transcript.measurements)
    return NoisyCells(domain, terms, transcript.total(), priors)


def fitted(transcript: Transcript, domain: Domain = DOMAIN, **how: Any) -> LatentClassModel:
    model = LatentClassFit(**how)(domain, transcript, rng=np.random.default_rng(0))
    assert isinstance(model, LatentClassModel)
    return model


# The sampler.


def test_the_covariance_is_that_of_the_cells_of_all_records() -> None:
    """Every record is in one cell of each marginal; the noise adds to the variances."""
    model = classes_of(1)
    problem = problem_of(noisy(model, 50, 3.0, np.random.default_rng(0)), DOMAIN, (1.0, 0.5))
    joint = model.answer([DOMAIN.attributes])[DOMAIN.attributes]
    mean, second = np.zeros(16), np.zeros((16, 16))
    for record, chance in np.ndenumerate(joint):
        cells = np.concatenate(
            [
                np.eye(DOMAIN.cells(p))[
                    np.ravel_multi_index([record[DOMAIN.index(a)] for a in p], DOMAIN.shape(p))
                ]
                for p in PAIRS
            ]
        )
        mean += chance * cells
        second += chance * np.outer(cells, cells)
    expected = 50 * (second - np.outer(mean, mean)) + 9.0 * np.eye(16)
    assert_allclose(
        np.linalg.inv(problem.precision(model.weights, model.table.T)), expected, atol=1e-4
    )


def test_steps_keep_their_sums() -> None:
    """Products and distances that are updated step by step are those of the state."""
    problem = problem_of(
        noisy(classes_of(2), 500, 5.0, np.random.default_rng(1)), DOMAIN, (0.5, 0.5)
    )
    chains = ClassChains(problem, 4, 2, np.random.default_rng(2))
    walk = chains.walk(3, 10, adapting=True)
    for state, weights, table in zip(
        chains._states, walk.weights[:, -1], walk.tables[:, -1], strict=True
    ):
        model = MixtureModel(DOMAIN, 1.0, table, weights)
        shares = np.concatenate([v.ravel() for v in model.answer(PAIRS).values()])
        pull = chains._precision @ (problem.records * shares - problem.counts)
        assert_allclose(state[5], pull, atol=1e-3 * np.abs(pull).max())
        assert_allclose(weights @ state[4], shares, atol=1e-6)
        assert_allclose(np.add.reduceat(table, problem.starts[:-1], axis=1), 1.0)


@pytest.mark.parametrize(("scale", "prior"), [(4.0, 0.5), (40.0, 2.0), (1e6, 0.5)])
def test_the_posterior_of_one_class_is_the_integral(scale: float, prior: float) -> None:
    """A column of two codes: Dirichlet prior, normal noise around n p, as quadrature finds it."""
    domain = Domain.of({"a": 2})
    known = Transcript((PublicTotal(100), measurement(("a",), [23, 71], scale)))
    problem = problem_of(known, domain, (1.0, prior))
    chains = ClassChains(problem, 1, 4, np.random.default_rng(3))
    chains.walk(50, 10, adapting=True)
    p = chains.walk(2500, 4).tables[..., 0, 0].ravel()
    grid = (np.arange(20_000) + 0.5) / 20_000
    gaps = 100 * np.stack([grid, 1 - grid], axis=1) - problem.counts
    log = (prior - 1) * np.log(grid * (1 - grid))
    log -= 0.5 * np.einsum("ia,ab,ib->i", gaps, chains._precision, gaps)
    density = np.exp(log - log.max())
    density /= density.sum()
    mean = density @ grid
    deviation = np.sqrt(density @ (grid - mean) ** 2)
    assert p.mean() == pytest.approx(mean, abs=0.1 * deviation)
    assert p.std() == pytest.approx(deviation, rel=0.07)


def test_empty_classes_follow_their_prior() -> None:
    """Without information the weights are Dirichlet."""
    known = Transcript((PublicTotal(10), measurement(("c0", "c1"), np.zeros((2, 3)), 1e7)))
    chains = ClassChains(problem_of(known, DOMAIN, (0.7, 0.5)), 3, 4, np.random.default_rng(4))
    chains.walk(50, 10, adapting=True)
    weights = chains.walk(1500, 5).weights.reshape(-1, 3)
    assert_allclose(weights.mean(axis=0), 1 / 3, atol=0.03)
    assert_allclose(weights.var(axis=0), (1 / 3) * (2 / 3) / (3 * 0.7 + 1), rtol=0.15)


def test_a_large_r_hat_shows_chains_that_disagree() -> None:
    rng = np.random.default_rng(5)
    problem = problem_of(noisy(classes_of(3), 100, 1.0, rng), DOMAIN, (1.0, 0.5))
    tables = np.concatenate(
        [rng.dirichlet(np.ones(DOMAIN.size(a)), (2, 40, 1)) for a in DOMAIN], -1
    )
    weights = np.ones((2, 40, 1))
    assert largest_r_hat(problem, Walk(weights, tables)) < 1.2
    tables[1] = tables[1, 0]
    assert largest_r_hat(problem, Walk(weights, tables)) > 1.2


# The fit.


def test_known_classes_are_recovered() -> None:
    truth = classes_of(4)
    model = fitted(noisy(truth, 200_000, 1.0, np.random.default_rng(6)), warmup=1000, classes=5)
    assert model.facts["good"]
    for clique, shares in truth.answer([*PAIRS, *((a,) for a in DOMAIN)]).items():
        assert_allclose(model.project(clique).values / 200_000, shares, atol=0.006)
        drawn = [
            m.project(clique).values
            for m in model.posterior().draws(20, rng=np.random.default_rng(0))
        ]
        assert_allclose(np.mean(drawn, axis=0) / 200_000, shares, atol=0.006)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [3.0, 30.0, 150.0])
def test_intervals_of_cells_hold_the_truth(scale: float) -> None:
    """90 % intervals of all pairs' cells over 20 populations, whether sampling or noise dominates."""
    held = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = classes_of(100 + seed)
        model = fitted(noisy(truth, 1000, scale, rng), max_sweeps=10_000, accept=True)
        draws = [m.answer(PAIRS) for m in model.posterior().draws(400, rng=rng)]
        for clique, shares in truth.answer(PAIRS).items():
            low, high = np.quantile([d[clique] / 1000 for d in draws], [0.05, 0.95], axis=0)
            held.append(((low <= shares) & (shares <= high)).ravel())
    assert 0.82 <= np.concatenate(held).mean() <= 0.97


def test_what_cannot_be_fitted_is_refused() -> None:
    merged = measurement(("c1",), [3, 4], 1.0, LinearMap({"c1": np.array([0, 0, 1])}))
    with pytest.raises(InputError, match="merged codes"):
        fitted(Transcript((PublicTotal(7), merged)))
    ruled = Domain.of({"a": 2}, zeros=[StructuralZeros(("a",), np.array([True, False]))])
    with pytest.raises(InputError, match="impossible combinations"):
        LatentClassFit().check(ruled, Needs())
    with pytest.raises(ModelTooLargeError, match="above 1,500"):
        LatentClassFit().check(domain_of([40, 40]), Needs(cliques=[("c0", "c1")]))
    with pytest.raises(InputError, match="estimates after every round"):
        LatentClassFit().check(DOMAIN, Needs(adaptive=True))
    for wrong in ({"classes": 0}, {"chains": 1}, {"code_prior": 0.0}, {"class_prior": -1.0}):
        with pytest.raises(InputError):
            LatentClassFit(**wrong)  # type: ignore[arg-type]


# The release.


def released(unit: Any, fit: LatentClassFit) -> Release:
    rows = classes_of(5).sample(400, rng=np.random.default_rng(0), independent=True)
    table = memory_table(
        dict(zip(DOMAIN, DOMAIN.sizes, strict=True)),
        [tuple(r) for r in np.stack([rows.column(a) for a in DOMAIN], axis=1).tolist()],
    )
    return run_on(PrivLCM(fit=fit), table, unit, Budget.zcdp(1), SeededRandomness(1))


def test_draws_are_of_the_posterior(tmp_path: Path) -> None:
    """Tables differ in their distributions, and in their totals only if the row count is private."""
    for unit, varies in ((AddRemoveRow(), True), (ReplaceRow(), False)):
        release = released(unit, FEW_SWEEPS)
        release.save(tmp_path / "r.margrave", overwrite=True)
        draws = Release.load(tmp_path / "r.margrave").draws(4, seed=0)
        assert draws.method == "posterior: latent-class posterior, Metropolis steps"
        assert draws[1].equals(release.draws(4, seed=0)[1])
        assert len({draws.total_of(i) for i in range(4)}) == (4 if varies else 1)
        shares = [m.project(("c1",)).values / m.total for m in draws.models()]
        assert np.ptp(shares, axis=0).min() > 0


def test_chains_that_have_not_mixed_are_not_drawn_from() -> None:
    release = released(ReplaceRow(), LatentClassFit(chains=2, warmup=4, max_sweeps=1, r_hat=1.0))
    with pytest.raises(ReleaseError, match="have not mixed"):
        release.draws(2, method="posterior", seed=0)
    assert "bootstrap, as the chains have not mixed" in release.draws(2, seed=0).method


def test_other_releases_are_refitted() -> None:
    rows = [(i % 2, i % 3, (i % 2) * (i % 3 > 0)) for i in range(300)]
    table = memory_table({"a": 2, "b": 3, "c": 2}, rows)
    mechanism = MST(rare_threshold=0)
    release = run_on(mechanism, table, AddRemoveRow(), Budget.zcdp(1), SeededRandomness(0))
    model = release.refit(FEW_SWEEPS).model
    assert isinstance(model, LatentClassModel)
    assert (
        codes_of(table.domain, rows).domain == model.sample(5, rng=np.random.default_rng(0)).domain
    )


def test_a_state_is_read_back_and_a_malformed_one_is_refused() -> None:
    probabilities: FloatArray = np.tile([1, 0, 1, 0, 0, 0.5, 0.5], (4, 1)).astype(np.float32)
    facts = {"method": "Metropolis steps", "good": True}
    weights = np.array([0.3, 0.2, 0.1, 0.4])
    model = LatentClassModel(DOMAIN, 9.0, probabilities, weights, np.array([8.0, 10.0]), facts)
    state, load = model.state(), FAMILIES["latent-classes"].load
    again = load(DOMAIN, state.facts, state.arrays)
    assert isinstance(again, LatentClassModel)
    assert again.posterior().stored == 2
    assert_allclose(again.draw(1).weights, [0.2, 0.8])
    assert again.draw(1).total == 10.0
    broken: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"posterior": None}, {}),
        ({"posterior": {"method": "m"}}, {}),
        ({"posterior": {"method": "m", "good": 1}}, {}),
        ({"total": float("nan")}, {}),
        ({}, {"totals": np.array([8.0, 10.0, 3.0])}),
        ({}, {"totals": np.array([8.0, -1.0])}),
        ({}, {"totals": np.array([8.0, np.nan])}),
        ({}, {"totals": np.zeros(0)}),
        ({}, {"weights": np.array([0.1, 0.2, 0.3, 0.4])}),
        ({}, {"probabilities": probabilities[:3]}),
    ]
    for changed, arrays in broken:
        with pytest.raises(ReleaseError):
            load(DOMAIN, {**state.facts, **changed}, {**state.arrays, **arrays})
