"""Weights on all cells, and on public records: every sum by brute force, every update by its formula or a solver."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

from margrave.domain import Codes, Domain
from margrave.errors import InputError, ModelTooLargeError, ReleaseError
from margrave.marginal import TOTAL, LinearMap, LinearQuery, lattice, project_array
from margrave.marginal.simplex import project_to_simplex
from margrave.models import (
    FAMILIES,
    EntropyProjectionFit,
    GraphicalFit,
    MultiplicativeWeightsFit,
    WeightsModel,
)
from margrave.models.weights.empirical_bayes import Spreads, shrunk
from margrave.models.weights.grid_support import GridSupport, Support
from margrave.models.weights.observations import Observations
from margrave.models.weights.penalized_projection import project_penalized
from margrave.models.weights.record_support import RecordSupport
from margrave.public_table import PublicTable
from margrave.structural_zeros import StructuralZeros
from margrave.transcript import Answer, Entry, Measurement, PublicTotal, Transcript
from margrave.types import AnyArray, Clique, FloatArray
from tests.support.rounds import first_round, next_round

SHAPES = ([3, 1, 4, 2, 5], [2, 2], [7], [1, 1], [4, 3, 1], [1, 6, 2, 1], [2, 2, 2, 2, 2, 2])
N = 1000


def domain_of(sizes: Sequence[int]) -> Domain:
    return Domain.of({f"c{i}": s for i, s in enumerate(sizes)})


def every_cell(domain: Domain) -> Codes:
    return Codes.of(
        domain,
        dict(zip(domain, np.unravel_index(np.arange(domain.cells()), domain.sizes), strict=True)),
    )


def places_of(kind: str, domain: Domain, weights: FloatArray) -> Support:
    flat = weights.reshape(-1).copy()
    return (
        GridSupport(domain, flat)
        if kind == "histogram"
        else RecordSupport(domain, every_cell(domain).values, flat)
    )


def mask_of(domain: Domain, query: LinearQuery) -> NDArray[np.bool_]:
    """Which cells of the domain a query counts."""
    inside = np.ones(domain.sizes, dtype=bool)
    for attribute, codes in zip(query.clique, query.codes, strict=True):
        shape = [1] * len(domain)
        shape[domain.index(attribute)] = -1
        inside &= np.isin(np.arange(domain.size(attribute)), codes).reshape(shape)
    return inside


def some_queries(domain: Domain, rng: np.random.Generator, count: int) -> list[LinearQuery]:
    """Queries of any columns, with any codes of each."""
    found = []
    for _ in range(count):
        clique = domain.clique(
            rng.choice(domain.attributes, rng.integers(1, len(domain) + 1), replace=False)
        )
        sets = [
            np.sort(rng.choice(s, rng.integers(1, s + 1), replace=False))
            for s in domain.shape(clique)
        ]
        found.append(LinearQuery(clique, tuple(tuple(s.tolist()) for s in sets)))
    return found


def every_clique(domain: Domain) -> list[Clique]:
    return [c for k in range(1, len(domain) + 1) for c in combinations(domain.attributes, k)]


# Sums and products on places.

KINDS = pytest.mark.parametrize("kind", ["histogram", "support"])


@KINDS
@pytest.mark.parametrize("sizes", SHAPES, ids=str)
def test_every_sum_and_product_is_that_of_the_full_table(kind: str, sizes: list[int]) -> None:
    rng, domain = np.random.default_rng(len(sizes)), domain_of(sizes)
    table = rng.random(sizes)
    places, queries = places_of(kind, domain, table), some_queries(domain, rng, 40)
    masks = [mask_of(domain, q) for q in queries]
    selected = places.selected_by(queries)
    for clique, sums in places.marginals(every_clique(domain)).items():
        np.testing.assert_allclose(
            sums, project_array(table, domain.attributes, clique), rtol=1e-12
        )
    np.testing.assert_allclose(selected.sums(), [table[m].sum() for m in masks], rtol=1e-12)
    for j in range(5):
        expected = [table[m & masks[j]].sum() for m in masks]
        np.testing.assert_allclose(selected.overlaps(j), expected, rtol=1e-12, atol=1e-15)
        table[masks[j]] *= 0.5 + j
        selected.scale(j, 0.5 + j)
        np.testing.assert_allclose(places.weights, table.reshape(-1), rtol=1e-12)
    for clique in every_clique(domain):
        factors = rng.random(domain.shape(clique))
        table *= factors.reshape([domain.size(a) if a in clique else 1 for a in domain])
        places.rescale(clique, factors)
    np.testing.assert_allclose(places.weights, table.reshape(-1), rtol=1e-10)


@KINDS
def test_a_pass_of_multiplicative_updates_is_the_formula(kind: str) -> None:
    """Query after query, each on the distribution that the one before left."""
    rng, domain = np.random.default_rng(3), domain_of([3, 2, 4])
    table = rng.dirichlet(np.ones(24)).reshape(3, 2, 4)
    queries, answers = some_queries(domain, rng, 12), rng.random(12)
    places, tolerances = places_of(kind, domain, table), np.where(np.arange(12) % 3, 0.0, 0.2)
    mass, moved = places.selected_by(queries).multiplicative_pass(answers, tolerances, 0.5, 1.0)
    for query, answer, tolerance in zip(queries, answers, tolerances, strict=True):
        inside = mask_of(domain, query)
        gap = answer - table[inside].sum()
        if abs(gap) > tolerance:
            table = np.where(inside, table * np.exp(gap / 2), table)
            table /= table.sum()
    assert moved
    assert mass == pytest.approx(places.weights.sum(), rel=1e-12)
    np.testing.assert_allclose(places.weights / mass, table.reshape(-1), rtol=1e-10)


def test_marginals_of_many_cliques_take_few_passes_over_the_grid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All 84 triples of nine columns: as many cells are read as in a few passes, and not in 84."""
    read: list[int] = []
    real = lattice._sum_out
    monkeypatch.setattr(
        lattice, "_sum_out", lambda t, axis: (read.append(t.size), real(t, axis))[1]
    )
    domain = domain_of([4] * 9)
    grid = GridSupport(domain, np.ones(domain.cells()))
    found = grid.marginals(combinations(domain.attributes, 3))
    assert len(found) == 84
    assert sum(read) < 12 * domain.cells()
    assert all((sums == 4**6).all() for sums in found.values())


def test_a_limit_on_tables_in_between() -> None:
    model = WeightsModel(GridSupport.uniform(domain_of([4, 5, 6])), N)
    assert model.answer([("c0",)], limit=124)[("c0",)].tolist() == pytest.approx([250.0] * 4)
    with pytest.raises(ModelTooLargeError, match="124 cells"):
        model.answer([("c0",)], limit=123)


# From answers to what is known.


def answered(
    queries: Sequence[LinearQuery], shares: Sequence[float], scale: float = 5.0, n: int = N
) -> list[Entry]:
    return [
        Answer(q, round(n * s), scale, Fraction(1, 9)) for q, s in zip(queries, shares, strict=True)
    ]


def transcript_of(*entries: Entry, n: int = N) -> Transcript:
    return Transcript((PublicTotal(n), *entries))


def fitted(fit: Any, domain: Domain, transcript: Transcript, state: Any = None) -> WeightsModel:
    """What is released of a transcript; after a round that follows a state, the model of that round."""
    if state is None:
        model: WeightsModel = fit(domain, transcript, rng=np.random.default_rng(0))
        return model
    after: WeightsModel = fit.model(next_round(fit, state, transcript))
    return after


def table_of(model: WeightsModel) -> FloatArray:
    """Shares of all cells."""
    return np.asarray(model.project(model.domain.attributes).values) / model.total


def test_the_nearest_distribution() -> None:
    """Against least squares by brute force on a fine grid."""
    values = np.array([0.7, -0.2, 0.6])
    a, b = np.meshgrid(np.linspace(0, 1, 501), np.linspace(0, 1, 501))
    corners = np.stack([a, b, 1 - a - b])[:, a + b <= 1]
    best = corners[:, ((corners - values[:, None]) ** 2).sum(axis=0).argmin()]
    np.testing.assert_allclose(project_to_simplex(values), best, atol=2e-3)
    assert project_to_simplex(values).sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(
        project_to_simplex(np.array([[9e18, -9e18], [0.0, 1.0]])), [[1.0, 0.0], [0.0, 0.0]]
    )


Q1, Q2 = LinearQuery(("c0",), ((0,),)), LinearQuery(("c0", "c1"), ((0, 1), (2,)))


@pytest.mark.parametrize("fit", [MultiplicativeWeightsFit(passes=1), EntropyProjectionFit()])
def test_the_number_of_records_moves_no_weight(fit: Any) -> None:
    domain = domain_of([2, 3])
    model = fitted(fit, domain, Transcript((Answer(TOTAL, 700, 3.0, Fraction(1)),)))
    assert model.total == 700
    np.testing.assert_allclose(table_of(model), 1 / 6, rtol=1e-12)


def test_what_was_asked_twice_counts_by_its_precision() -> None:
    """Answers 200 and 500, the second with twice the noise: 0.26 of the records."""
    domain = domain_of([2, 3])
    twice = [Answer(Q1, 200, 1.0, Fraction(1)), Answer(Q1, 500, 2.0, Fraction(1, 4))]
    model = fitted(EntropyProjectionFit(gamma=0.0), domain, transcript_of(*twice))
    assert table_of(model)[0].sum() == pytest.approx(0.26)


# Multiplicative weights.


def test_a_round_of_mwem_is_the_formula() -> None:
    domain = domain_of([2, 3])
    start = np.full((2, 3), 1 / 6)
    one = fitted(MultiplicativeWeightsFit(passes=0), domain, transcript_of(*answered([Q1], [0.8])))
    expected = np.where(mask_of(domain, Q1), start * np.exp((0.8 - 0.5) / 2), start)
    np.testing.assert_allclose(table_of(one), expected / expected.sum(), rtol=1e-12)


@pytest.mark.parametrize("form", [{"passes": 0}, {"passes": 1}, {"passes": 4}, {"at_once": True}])
@pytest.mark.parametrize("average", [False, True])
def test_a_cold_fit_plays_the_rounds_again(form: dict[str, Any], average: bool) -> None:
    rng, domain = np.random.default_rng(1), domain_of([3, 2, 2])
    entries = answered(some_queries(domain, rng, 6), rng.random(6))
    fit = MultiplicativeWeightsFit(**form, average=average)
    state = first_round(fit, domain, transcript_of())
    iterates = []
    for t in range(1, 7):
        state = next_round(fit, state, transcript_of(*entries[:t]))
        iterates.append(table_of(fit.model(state)))
    cold = fitted(fit, domain, transcript_of(*entries))
    np.testing.assert_allclose(
        table_of(cold), np.mean(iterates, axis=0) if average else iterates[-1], rtol=1e-9
    )
    shown = fit.finish(state, transcript_of(*entries), rng=rng)
    np.testing.assert_allclose(
        table_of(shown), np.mean(iterates, axis=0) if average else iterates[-1], rtol=1e-9
    )


def test_the_plain_form_forgets_what_past_answers_keep() -> None:
    """After a second answer the first is explained worse; where past answers are gone over, better."""
    domain = domain_of([2, 3])
    entries = answered(
        [LinearQuery(("c0",), ((0,),)), LinearQuery(("c1",), ((1,),))] * 6, [0.9, 0.7] * 6
    )
    errors = {}
    for passes in (0, 1, 10):
        table = table_of(
            fitted(MultiplicativeWeightsFit(passes=passes), domain, transcript_of(*entries))
        )
        errors[passes] = max(abs(table[0].sum() - 0.9), abs(table[:, 1].sum() - 0.7))
    assert errors[10] < errors[1] < errors[0]
    assert errors[10] < 0.02


def test_more_passes_explain_more() -> None:
    rng, domain = np.random.default_rng(8), domain_of([3, 4, 2])
    truth = rng.dirichlet(np.ones(24)).reshape(3, 4, 2)
    queries = some_queries(domain, rng, 8)
    entries = answered(queries, [truth[mask_of(domain, q)].sum() for q in queries], scale=0.1)
    worst = []
    for passes in (1, 3, 10, 30, 100):
        table = table_of(
            fitted(MultiplicativeWeightsFit(passes=passes), domain, transcript_of(*entries))
        )
        worst.append(
            max(
                abs(table[mask_of(domain, q)].sum() - truth[mask_of(domain, q)].sum())
                for q in queries
            )
        )
    assert worst == sorted(worst, reverse=True)
    assert worst[-1] < 0.01


def test_answers_that_are_well_off_move_the_weights_at_once() -> None:
    """By what they were off before; what is off by less than half of the latest is left alone."""
    domain = domain_of([2, 3, 2])
    queries = [
        LinearQuery(("c0",), ((0,),)),
        LinearQuery(("c1",), ((1,),)),
        LinearQuery(("c2",), ((1,),)),
    ]
    fit = MultiplicativeWeightsFit(at_once=True)
    state = first_round(fit, domain, transcript_of())
    for told, moved in (
        ([0.9, 0.4, 0.7], (0, 2)),
        ([0.6, 0.9, 0.58], (0, 1, 2)),
        ([0.6, 0.2, 0.9], (2,)),
    ):
        entries = answered(queries, told)
        gaps = [answer - before for answer, before in zip(told, (1 / 2, 1 / 3, 1 / 2), strict=True)]
        steps = sum(gaps[i] / 2 * mask_of(domain, queries[i]) for i in moved)
        expected = np.exp(steps) / np.exp(steps).sum()
        found = fitted(fit, domain, transcript_of(*entries), state)
        np.testing.assert_allclose(table_of(found), expected, rtol=1e-12)
        other = fitted(fit, domain, transcript_of(entries[1], entries[0], entries[2]), state)
        np.testing.assert_allclose(table_of(other), expected, rtol=1e-12)


def test_many_answers_at_once_stay_within_what_floats_can_tell() -> None:
    """All 31 agree on one cell, and each moves it by e to the 47: together far beyond what a float holds."""
    domain = domain_of([32])
    entries = answered([LinearQuery(("c0",), ((0, i),)) for i in range(1, 32)], [1.0] * 31)
    fit = MultiplicativeWeightsFit(step=50.0, at_once=True)
    start = first_round(fit, domain, transcript_of())
    table = table_of(fitted(fit, domain, transcript_of(*entries), start))
    assert table[0] == pytest.approx(1.0)
    assert np.isfinite(table).all()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_marginal_measured_last_says_what_is_well_off(order: tuple[int, int]) -> None:
    domain = domain_of([2, 2])
    shares = ((0, [0.9, 0.1]), (1, [0.6, 0.4]))
    counts = {i: np.rint(np.array(v) * N).astype(np.int64) for i, v in shares}
    measured = [
        Measurement((f"c{i}",), values, 5.0, Fraction(1, 9)) for i, values in counts.items()
    ]
    fit = MultiplicativeWeightsFit(at_once=True)
    start = first_round(fit, domain, transcript_of())
    found = table_of(fitted(fit, domain, transcript_of(*(measured[i] for i in order)), start))
    tilted = [
        np.exp(np.array(v) / 2) / np.exp(np.array(v) / 2).sum() for v in ([0.4, -0.4], [0.1, -0.1])
    ]
    second = tilted[1] if order[-1] == 1 else np.full(2, 0.5)  # a tenth is less than half of four
    np.testing.assert_allclose(found, np.outer(tilted[0], second), rtol=1e-12)


def test_what_the_noise_explains_is_left_alone() -> None:
    domain = domain_of([2, 3])
    entries = answered([Q1], [0.54], scale=50.0)
    still = fitted(MultiplicativeWeightsFit(threshold=1.0), domain, transcript_of(*entries))
    np.testing.assert_allclose(table_of(still), 1 / 6, rtol=1e-12)
    moved = fitted(MultiplicativeWeightsFit(threshold=0.5), domain, transcript_of(*entries))
    assert table_of(moved)[0].sum() > 0.51


# Answers believed beside a start.


PARTS = (0.0, 0.001, 0.01, 0.03, 0.1, 0.3)


def belief(room: FloatArray, noise: FloatArray, sampling: float, gaps: FloatArray) -> FloatArray:
    """The posterior mean over the gap, where truths are of two normal distributions around the start, by a solver."""

    def densities(log_extra: float, part: float) -> tuple[FloatArray, FloatArray]:
        near, far = (room * (sampling + extra) + noise**2 for extra in (math.exp(log_extra), 1.0))
        density = [np.exp(-(gaps**2) / (2 * v)) / np.sqrt(v) for v in (near, far)]
        return (1 - part) * density[0], part * density[1]

    def unlikely(log_extra: float, part: float) -> float:
        return -float(np.log(sum(densities(log_extra, part))).sum())

    options = {"bounds": (-16.0, 0.0), "method": "bounded", "options": {"xatol": 1e-6}}
    found = [minimize_scalar(unlikely, args=(part,), **options) for part in PARTS]
    best = min(range(len(PARTS)), key=lambda i: float(found[i].fun))
    near, far = densities(found[best].x, PARTS[best])
    shares = [room * (sampling + extra) for extra in (math.exp(found[best].x), 1.0)]
    believed = [v / (v + noise**2) for v in shares]
    return np.asarray((near * believed[0] + far * believed[1]) / (near + far))


@KINDS
@pytest.mark.parametrize("off", [0.0, 1.0])
def test_answers_are_drawn_towards_the_start_as_far_as_it_is_borne_out(
    kind: str, off: float
) -> None:
    """Against the posterior mean, its variance found by a solver; a start far off draws hardly."""
    rng, domain = np.random.default_rng(12), domain_of([3, 2, 4])
    start = rng.dirichlet(np.ones(24)).reshape(3, 2, 4)
    truth = (1 - off) * start + off * rng.dirichlet(np.ones(24)).reshape(3, 2, 4)
    queries, sampling, scale = some_queries(domain, rng, 20), 1e-3, 30.0
    queries = [q for q in dict.fromkeys(queries) if not mask_of(domain, q).all()]
    entries: list[Entry] = answered(
        queries, [truth[mask_of(domain, q)].sum() for q in queries], scale=scale
    )
    pair = project_array(truth, domain.attributes, ("c0", "c2"))
    noisy = np.rint(N * pair + rng.normal(scale=scale, size=pair.shape)).astype(np.int64)
    entries.append(Measurement(("c0", "c2"), noisy, scale, Fraction(1, 9)))
    known = Observations.of(domain, entries, float(N))
    found = shrunk(known, places_of(kind, domain, 7.0 * start), sampling)

    shares = np.array([start[mask_of(domain, q)].sum() for q in known.queries])
    cells = project_array(start, domain.attributes, ("c0", "c2"))
    room = np.concatenate([shares * (1 - shares), (cells * (1 - cells)).ravel()])
    gaps = np.concatenate([known.answers - shares, (known.marginals[0].shares - cells).ravel()])
    believed = belief(room, np.full(gaps.size, scale / N), sampling, gaps)
    expected = believed * gaps
    assert np.median(believed) > 0.8 if off else np.median(believed) < 0.5
    np.testing.assert_allclose(found.answers - shares, expected[: shares.size], rtol=0.1, atol=2e-4)
    moved = (found.marginals[0].shares - cells).ravel()
    np.testing.assert_allclose(moved, expected[shares.size :], rtol=0.1, atol=2e-4)
    assert not found.scales.any()
    assert found.marginals[0].scale == 0.0


def test_an_answer_that_the_start_cannot_explain_is_believed_and_the_others_are_not() -> None:
    """Nine shares are as at the start, but for noise; of the tenth the start knows nothing."""
    domain = domain_of([2] * 10)
    queries = [LinearQuery((f"c{i}",), ((0,),)) for i in range(10)]
    noise = np.array([0.03, -0.02, 0.04, -0.03, 0.01, 0.02, -0.04, 0.03, -0.01, 0.0])
    entries = answered(queries, [*(0.5 + noise[:9]), 0.9], scale=30.0)
    known = Observations.of(domain, entries, float(N))
    moved = shrunk(known, GridSupport.uniform(domain), 1e-4).answers - 0.5
    np.testing.assert_array_less(np.abs(moved[1:]), 0.2 * np.abs(known.answers[1:] - 0.5))
    assert moved[0] == pytest.approx(0.4, rel=0.02)  # the latest comes first


def bundle(
    domain: Domain, rng: np.random.Generator, scale: float
) -> tuple[list[Entry], list[tuple[FloatArray, float]]]:
    """Answers that contradict each other, of queries and marginals; their features with the answered shares."""
    cells = int(np.prod(domain.sizes))
    queries = [
        LinearQuery(("c0",), ((0,),)),
        LinearQuery(("c0", "c1"), ((0,), (1,))),
        LinearQuery(("c2",), ((0, 2),)),
    ]
    shares = [0.7, 0.1, 0.8]
    entries = answered(queries, shares, scale=scale)
    features = [
        (mask_of(domain, q).reshape(-1).astype(float), s)
        for q, s in zip(queries, shares, strict=True)
    ]
    for clique in (("c0", "c2"), ("c1", "c2")):
        shape = domain.shape(clique)
        counts = (
            np.rint(N * rng.dirichlet(np.ones(domain.cells(clique))))
            .reshape(shape)
            .astype(np.int64)
        )
        entries.append(Measurement(clique, counts, scale, Fraction(1, 9)))
        for place in np.ndindex(*counts.shape):
            mask = (
                mask_of(domain, LinearQuery(clique, tuple((i,) for i in place)))
                .reshape(cells)
                .astype(float)
            )
            features.append((mask, counts[place] / N))
    return entries, features


@KINDS
@pytest.mark.parametrize("scale", [20.0, 80.0])
def test_answers_are_settled_where_weights_and_answers_pull_alike(kind: str, scale: float) -> None:
    """RE(D || D_0) + sum (answer - q)² / (2 b), b = noise² / spread, against a solver that knows no lambdas."""
    rng, domain = np.random.default_rng(21), domain_of([2, 3, 4])
    start = rng.dirichlet(np.ones(24)).reshape(2, 3, 4)
    entries, features = bundle(domain, rng, scale)
    places, known = places_of(kind, domain, 3.0 * start), Observations.of(domain, entries, float(N))
    spreads = [
        rng.uniform(1e-3, 1e-2, a.shape)
        for a in (known.answers, *(m.shares for m in known.marginals))
    ]
    project_penalized(places, known, Spreads([], spreads), sweeps=1000)

    found = np.concatenate(
        [spreads[0][::-1], *(s.ravel() for s in spreads[1:])]
    )  # the latest query comes first
    b, matrix = (scale / N) ** 2 / found, np.array([f for f, _ in features])
    answers = np.concatenate([known.answers[::-1], *(m.shares.ravel() for m in known.marginals)])

    def objective(logits: FloatArray) -> tuple[float, FloatArray]:
        d = np.exp(logits - logits.max())
        d /= d.sum()
        gaps, ratio = answers - matrix @ d, np.log(d / start.ravel())
        slope = ratio - matrix.T @ (gaps / b)
        return float(d @ ratio + (gaps**2 / (2 * b)).sum()), d * (slope - d @ slope)

    best = minimize(
        objective,
        np.log(start.ravel()),
        jac=True,
        method="BFGS",
        options={"gtol": 1e-9, "maxiter": 5000},
    )
    expected = np.exp(best.x - best.x.max())
    np.testing.assert_allclose(
        places.weights / places.weights.sum(), expected / expected.sum(), atol=0.004
    )
    assert np.abs(answers - matrix @ start.ravel()).max() > 0.2, (
        "the answers ask for more than a touch"
    )


@KINDS
@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e6, 1e150])
def test_settled_weights_are_a_distribution_however_sure_or_vague_answers_are(
    kind: str, scale: float
) -> None:
    """Sure answers that contradict each other are met half-way, in numbers that are finite; vague ones tell nothing."""
    rng, domain = np.random.default_rng(5), domain_of([2, 3, 4])
    start = rng.dirichlet(np.ones(24)).reshape(2, 3, 4)
    entries, _ = bundle(domain, rng, scale)
    places, known = places_of(kind, domain, start), Observations.of(domain, entries, float(N))
    project_penalized(
        places, known, Spreads.of(known, places_of(kind, domain, start), 1e-3), sweeps=25
    )
    assert np.isfinite(places.weights).all()
    assert (places.weights >= 0).all()
    found = places.weights / places.weights.sum()
    if scale >= 1e6:
        np.testing.assert_allclose(found, start.ravel(), atol=1e-3)
    else:
        assert np.abs(found - start.ravel()).max() > 0.05


def test_what_the_start_has_not_is_not_believed() -> None:
    """A cell without public records stays empty, and one that all of them are in stays full, whatever is answered."""
    domain = domain_of([2, 3])
    public = PublicTable(
        Codes.of(domain, {"c0": np.array([0, 0]), "c1": np.array([0, 1])}), "made up for this test"
    )
    entries = answered([Q1, LinearQuery(("c1",), ((2,),))], [0.4, 0.5], scale=1.0)
    for fit in (
        EntropyProjectionFit(public=public, shrink=True),
        MultiplicativeWeightsFit(public=public, shrink=True),
    ):
        np.testing.assert_allclose(
            table_of(fitted(fit, domain, transcript_of(*entries))), [[0.5, 0.5, 0], [0, 0, 0]]
        )


def test_the_records_of_a_public_table_one_by_one_are_its_distribution() -> None:
    """Without those that cannot occur, and whatever the order of its columns."""
    rng = np.random.default_rng(4)
    possible = np.array([[True, True, False], [True, True, True]])
    domain = Domain.of({"a": 2, "b": 3}, zeros=[StructuralZeros(("a", "b"), possible)])
    columns = {"b": rng.integers(0, 3, 200), "a": rng.integers(0, 2, 200)}
    public = PublicTable(Codes.of(Domain.of({"b": 3, "a": 2}), columns), "made up for this test")
    each, once = RecordSupport.one_by_one(domain, public), RecordSupport.of(domain, public)
    assert each.weights.size == (~((columns["a"] == 0) & (columns["b"] == 2))).sum()
    assert once.weights.size == 5
    for clique in every_clique(domain):
        np.testing.assert_allclose(
            each.marginals([clique])[clique], once.marginals([clique])[clique], rtol=1e-12
        )


# Entropy projection.


def nearest(start: FloatArray, masks: Sequence[AnyArray], answers: AnyArray) -> FloatArray:
    """The distribution of least relative entropy to the start with these shares, by minimizing the dual."""
    features = np.array([m.reshape(-1) for m in masks], dtype=float)

    def dual(multipliers: FloatArray) -> tuple[float, FloatArray]:
        weights = start.reshape(-1) * np.exp(multipliers @ (features - answers[:, None]))
        mean = (features - answers[:, None]) @ weights / weights.sum()
        return float(np.log(weights.sum())), mean

    found = minimize(dual, np.zeros(len(masks)), jac=True, method="BFGS", options={"gtol": 1e-12})
    weights = start.reshape(-1) * np.exp(found.x @ features)
    return np.asarray((weights / weights.sum()).reshape(start.shape))


def test_one_answer_is_met_in_one_step() -> None:
    domain = domain_of([2, 3])
    fit = EntropyProjectionFit(gamma=0.0, max_iterations=1)
    table = table_of(fitted(fit, domain, transcript_of(*answered([Q2], [0.6]))))
    inside = mask_of(domain, Q2)
    np.testing.assert_allclose(table[inside], 0.6 / inside.sum(), rtol=1e-12)
    np.testing.assert_allclose(table[~inside], 0.4 / (~inside).sum(), rtol=1e-12)


@KINDS
def test_a_projection_is_that_of_a_convex_solver(kind: str) -> None:
    """With gamma at zero and answers that agree: the nearest distribution to the start, by a dual of its own."""
    rng, domain = np.random.default_rng(5), domain_of([3, 2, 4])
    truth = rng.dirichlet(np.ones(24)).reshape(3, 2, 4)
    queries = some_queries(domain, rng, 5)
    masks = [mask_of(domain, q) for q in queries]
    n = 10**9
    entries = answered(queries, [truth[m].sum() for m in masks], n=n)
    often = np.arange(1, 25) if kind == "support" else np.ones(24, dtype=int)
    public = PublicTable(
        Codes(domain, np.repeat(every_cell(domain).values, often, axis=1)), "made up for this test"
    )
    fit = EntropyProjectionFit(
        gamma=0.0, max_iterations=2000, public=public if kind == "support" else None
    )
    table = table_of(fitted(fit, domain, transcript_of(*entries, n=n)))
    start = (often / often.sum()).reshape(3, 2, 4)
    expected = nearest(start, masks, np.array([truth[m].sum() for m in masks]))
    np.testing.assert_allclose(table, expected, atol=1e-6)


def test_a_projection_comes_no_closer_than_gamma_asks() -> None:
    """Within the tolerance nothing moves; beyond it all answers end within it, and the error falls on the way."""
    rng, domain = np.random.default_rng(6), domain_of([3, 2, 4])
    truth = rng.dirichlet(np.ones(24)).reshape(3, 2, 4)
    queries = some_queries(domain, rng, 12)
    shares = np.array([truth[mask_of(domain, q)].sum() for q in queries])
    entries = answered(queries, shares, scale=10.0)

    def errors(gamma: float, steps: int) -> FloatArray:
        fit = EntropyProjectionFit(gamma=gamma, max_iterations=steps)
        model = fitted(
            fit, domain, transcript_of(*entries), first_round(fit, domain, transcript_of())
        )
        found = table_of(model)
        return np.array(
            [abs(found[mask_of(domain, q)].sum() - s) for q, s in zip(queries, shares, strict=True)]
        )

    assert errors(2.0, 500).max() <= 2.0 * 10.0 / N + 1e-3  # answers are whole numbers
    far = fitted(EntropyProjectionFit(gamma=1e6), domain, transcript_of(*entries))
    np.testing.assert_allclose(table_of(far), 1 / 24, rtol=1e-12)
    worst = [errors(0.5, steps).max() for steps in (0 + 1, 5, 25, 200)]
    assert worst == sorted(worst, reverse=True)


def relative_entropy(one: FloatArray, other: FloatArray) -> float:
    return float((one * np.log(one / other)).sum())


def test_every_step_of_a_projection_comes_closer_to_every_table_that_explains_the_answers() -> None:
    """The Pythagorean theorem of relative entropy: so the error cannot stay above gamma for ever."""
    rng, domain = np.random.default_rng(7), domain_of([3, 2, 4])
    truth = rng.dirichlet(np.ones(24)).reshape(3, 2, 4)
    queries = some_queries(domain, rng, 6)
    n = 10**9
    entries = answered(queries, [truth[mask_of(domain, q)].sum() for q in queries], n=n)
    fit = EntropyProjectionFit(gamma=0.0, max_iterations=1)
    state, distance = first_round(fit, domain, transcript_of(n=n)), np.inf
    for _ in range(30):
        state = next_round(fit, state, transcript_of(*entries, n=n))
        closer = relative_entropy(truth, table_of(fit.model(state)))
        assert closer <= distance + 1e-9
        distance = closer


@pytest.mark.parametrize("value", [-400, 0, 1000, 5000])
def test_answers_that_no_share_can_be(value: int) -> None:
    domain = domain_of([2, 3])
    for fit in (EntropyProjectionFit(gamma=0.0), MultiplicativeWeightsFit()):
        table = table_of(fitted(fit, domain, transcript_of(Answer(Q1, value, 5.0, Fraction(1)))))
        assert np.isfinite(table).all()
        assert (table[0].sum() > 0.5) == (value > 500)
        assert table.min() > 0.0


def test_answers_that_contradict_each_other_break_nothing() -> None:
    """Disjoint queries that each claim nearly all records, again and again."""
    domain = domain_of([4, 3])
    entries = answered([LinearQuery(("c0",), ((i,),)) for i in range(4)], [1.0] * 4)
    fit = EntropyProjectionFit(gamma=0.0, max_iterations=1000)
    model = fitted(fit, domain, transcript_of(*entries))
    assert np.isfinite(table_of(model)).all()
    assert table_of(model).sum() == pytest.approx(1.0)
    many = MultiplicativeWeightsFit(passes=500)
    np.testing.assert_allclose(table_of(fitted(many, domain, transcript_of(*entries))).sum(), 1.0)


def test_the_tolerance_of_the_paper_holds_for_all_noise_at_once() -> None:
    """4,000 times 200 normal numbers: at most 5 % of the times is one of them beyond it, and it is not too wide."""
    bound = EntropyProjectionFit.gamma_of_paper(200, 0.05)
    beyond = (np.abs(np.random.default_rng(0).normal(size=(4000, 200))).max(axis=1) > bound).mean()
    assert 0.001 < beyond <= 0.05


# Whole marginals.


def measured(
    domain: Domain, truth: FloatArray, clique: Clique, scale: float = 3.0, n: int = N, seed: int = 0
) -> Entry:
    exact = n * project_array(truth, domain.attributes, clique)
    noise = np.random.default_rng(seed).normal(0, scale, exact.shape)
    return Measurement(clique, np.rint(exact + noise).astype(np.int64), scale, Fraction(1, 9))


FITS = pytest.mark.parametrize(
    "fit", [MultiplicativeWeightsFit(passes=150), EntropyProjectionFit()], ids=["mwem", "pep"]
)


@FITS
def test_a_refit_of_a_tree_of_pairs_explains_it(fit: Any) -> None:
    """As the graphical model does: all columns, then a tree, as MST measures them."""
    rng, domain, n = np.random.default_rng(2), domain_of([3, 4, 2, 3]), 20_000
    truth = rng.dirichlet(np.full(72, 0.5)).reshape(domain.sizes)
    cliques: list[Clique] = [
        ("c0",),
        ("c1",),
        ("c2",),
        ("c3",),
        ("c0", "c1"),
        ("c1", "c2"),
        ("c1", "c3"),
    ]
    transcript = transcript_of(
        *(measured(domain, truth, c, 20.0, n, i) for i, c in enumerate(cliques)), n=n
    )
    model = fitted(fit, domain, transcript)
    best = GraphicalFit()(domain, transcript, rng=rng)
    for clique in cliques:
        exact = project_array(truth, domain.attributes, clique)
        off = np.abs(np.asarray(model.project(clique).values) / n - exact)
        assert off.max() < 5 * 20.0 / n
        np.testing.assert_allclose(
            model.project(clique).values, best.project(clique).values, atol=0.02 * n
        )


def test_merged_codes_are_explained_too() -> None:
    domain, n = domain_of([4, 3]), 10_000
    groups = LinearMap({"c0": np.array([0, 1, 1, 1])})
    values = np.array([[1000, 500, 500], [3000, 2000, 3000]])
    entry = Measurement(("c0", "c1"), values, 1.0, Fraction(1), groups)
    for fit in (EntropyProjectionFit(gamma=0.0), MultiplicativeWeightsFit(passes=400)):
        table = table_of(fitted(fit, domain, transcript_of(entry, n=n)))
        np.testing.assert_allclose(groups.apply(("c0", "c1"), table) * n, values, atol=0.01 * n)
        np.testing.assert_allclose(table[1], table[3], rtol=1e-9)


@FITS
def test_single_queries_and_marginals_together(fit: Any) -> None:
    rng, domain, n = np.random.default_rng(4), domain_of([3, 4, 2]), 50_000
    truth = rng.dirichlet(np.ones(24)).reshape(domain.sizes)
    queries = some_queries(domain, rng, 4)
    shares = [truth[mask_of(domain, q)].sum() for q in queries]
    entries = [measured(domain, truth, ("c0", "c1"), 5.0, n), *answered(queries, shares, 5.0, n)]
    table = table_of(fitted(fit, domain, transcript_of(*entries, n=n)))
    assert np.abs(table.sum(axis=2) - truth.sum(axis=2)).max() < 0.01
    assert (
        max(abs(table[mask_of(domain, q)].sum() - s) for q, s in zip(queries, shares, strict=True))
        < 0.01
    )


def test_the_cells_of_a_marginal_move_at_once_as_single_queries_would() -> None:
    domain = domain_of([2, 3])
    entry = Measurement(("c1",), np.array([200, 300, 500]), 1.0, Fraction(1))
    table = table_of(fitted(MultiplicativeWeightsFit(passes=1), domain, transcript_of(entry)))
    expected = np.exp((np.array([0.2, 0.3, 0.5]) - 1 / 3) / 2)
    np.testing.assert_allclose(table.sum(axis=0), expected / expected.sum(), rtol=1e-12)


# Structural zeros.


def with_zeros() -> tuple[Domain, NDArray[np.bool_]]:
    possible = np.array([[True, False, True], [True, True, False]])
    single = np.array([True, False])
    zeros = [StructuralZeros(("c1", "c0"), possible.T), StructuralZeros(("c2",), single)]
    return Domain.of({"c0": 2, "c1": 3, "c2": 2}, zeros), possible[:, :, None] & single


@FITS
def test_what_cannot_occur_has_no_weight(fit: Any) -> None:
    domain, possible = with_zeros()
    rng = np.random.default_rng(0)
    entries = [
        measured(
            domain, np.full((2, 3, 2), 1 / 12), ("c0", "c1")
        ),  # of rows that deny the constraints
        *answered(
            [Q1, LinearQuery(("c2",), ((1,),)), LinearQuery(("c2",), ((0,),))], [0.3, 0.2, 0.7]
        ),
    ]
    model = fitted(fit, domain, transcript_of(*entries))
    table = table_of(model)
    assert (table[~possible] == 0).all()
    assert (table[possible] > 0).all()
    drawn = model.sample(500, rng=rng)
    assert possible[tuple(drawn.column(a).astype(int) for a in domain)].all()


def test_public_records_that_cannot_occur_have_no_weight() -> None:
    domain, possible = with_zeros()
    public = PublicTable(every_cell(domain), "made up for this test")
    places = RecordSupport.of(domain, public)
    assert len(places.weights) == possible.sum()
    impossible = PublicTable(
        every_cell(domain).take(np.flatnonzero(~possible.reshape(-1))), "made up for this test"
    )
    with pytest.raises(InputError, match="declares impossible"):
        RecordSupport.of(domain, impossible)


# Public records.


def test_public_records_are_weighted_by_how_often_they_stand_there() -> None:
    domain = domain_of([3, 2])
    rows = np.array([[2, 0, 2, 2, 1], [1, 0, 1, 0, 1]])
    places = RecordSupport.of(domain, PublicTable(Codes(domain, rows), "made up for this test"))
    found = {
        tuple(r): w for r, w in zip(places.values.T.tolist(), places.weights.tolist(), strict=True)
    }
    assert found == pytest.approx({(2, 1): 0.4, (0, 0): 0.2, (2, 0): 0.2, (1, 1): 0.2})


def test_public_columns_may_come_in_another_order() -> None:
    domain = Domain.of({"a": 3, "b": 2})
    other = Domain.of({"b": 2, "a": 3})
    codes = Codes(other, np.array([[0, 1], [2, 0]]))
    places = RecordSupport.of(domain, PublicTable(codes, "made up for this test"))
    assert sorted(map(tuple, places.values.T.tolist())) == [(0, 1), (2, 0)]
    with pytest.raises(InputError, match="no column 'b'"):
        RecordSupport.of(domain, PublicTable(codes, "made up for this test").select(["a"]))


def test_only_public_records_are_drawn_and_answers_move_them() -> None:
    domain = domain_of([3, 2])
    rows = np.array([[2, 0, 2, 2, 1], [1, 0, 1, 0, 1]])
    public = PublicTable(Codes(domain, rows), "made up for this test")
    model = fitted(
        EntropyProjectionFit(public=public, gamma=0.0),
        domain,
        transcript_of(*answered([Q1], [0.5])),
    )
    table = table_of(model)
    np.testing.assert_allclose(table, [[0.5, 0], [0, 0.125], [0.125, 0.25]], rtol=1e-9)
    codes = model.sample(80, rng=np.random.default_rng(0))
    drawn = np.zeros((3, 2))
    np.add.at(drawn, (codes.column("c0"), codes.column("c1")), 1)
    np.testing.assert_array_equal(drawn, table * 80)


# The model.


@KINDS
def test_sampling_conditioning_and_answers(kind: str) -> None:
    rng, domain = np.random.default_rng(0), domain_of([3, 2, 4])
    table = rng.dirichlet(np.ones(24)).reshape(3, 2, 4)
    model = WeightsModel(places_of(kind, domain, table), 500.0)
    even = model.sample(rng=rng)
    assert len(even) == 500
    drawn = np.zeros(domain.sizes)
    np.add.at(drawn, tuple(even.column(a) for a in domain), 1)
    assert np.abs(drawn - 500 * table).max() < 1.0
    many = model.sample(200_000, rng=rng, independent=True)
    counted = np.zeros(domain.sizes)
    np.add.at(counted, tuple(many.column(a) for a in domain), 1)
    assert np.abs(counted / 200_000 - table).max() < 6 * 0.5 / np.sqrt(200_000)
    assert np.abs(counted - 200_000 * table).max() > 1.0  # not by even rounding
    part = model.condition({"c0": [0, 2], "c2": [3]})
    kept = table * 0
    kept[[0, 2], :, 3] = table[[0, 2], :, 3]
    np.testing.assert_allclose(
        part.project(domain.attributes).values, 500 * kept / kept.sum(), rtol=1e-12
    )
    assert part.total == 500.0
    with pytest.raises(InputError, match="no code 7"):
        model.condition({"c0": [7]})
    with pytest.raises(InputError, match="cannot be drawn"):
        model.sample(-1, rng=rng)


def test_a_condition_that_no_public_record_meets() -> None:
    domain = domain_of([3, 2])
    model = fitted(
        EntropyProjectionFit(public=PublicTable(Codes(domain, np.array([[0], [1]])), "made up")),
        domain,
        transcript_of(),
    )
    with pytest.raises(ReleaseError, match="satisfy all conditions"):
        model.condition({"c0": [2]})


@pytest.mark.parametrize("average", [False, True])
@KINDS
def test_a_state_comes_back_as_it_was(kind: str, average: bool) -> None:
    domain = domain_of([3, 2])
    public = PublicTable(every_cell(domain).take(np.array([0, 2, 3, 3])), "made up for this test")
    fit = MultiplicativeWeightsFit(average=average, public=public if kind == "support" else None)
    model = fitted(fit, domain, transcript_of(*answered([Q1], [0.7])))
    state = model.state()
    again = FAMILIES[kind].load(domain, state.facts, state.arrays)
    for clique in every_clique(domain):
        assert again.project(clique).values.tobytes() == model.project(clique).values.tobytes()
    assert again.state().facts == state.facts
    assert set(again.state().arrays) == set(state.arrays)


def bad(name: str, change: Any) -> tuple[str, Any]:
    return name, change


MALFORMED = [
    bad("weights", None),
    bad("weights", lambda w: w[:-1]),
    bad("weights", lambda w: w.astype(np.float32)),
    bad("weights", lambda w: -w),
    bad("weights", lambda w: w * 0),
    bad("weights", lambda w: w * np.nan),
    bad("weights", lambda w: w - np.inf),
    bad("weights", lambda w: w * 1e299),
    bad("total", -1.0),
    bad("total", 1e31),
]
RECORDS = [
    bad("records", None),
    bad("records", lambda r: r[:-1]),
    bad("records", lambda r: r[:, :0]),
    bad("records", lambda r: r + np.uint16(3)),
    bad("records", lambda r: r.astype(np.int64)),
    bad("records", lambda r: r.reshape(-1)),
]


@pytest.mark.parametrize(
    ("kind", "name", "change"), [(k, n, c) for k in ("histogram", "support") for n, c in MALFORMED]
    + [("support", n, c) for n, c in RECORDS]
)  # fmt: skip
def test_a_malformed_state_is_refused(kind: str, name: str, change: Any) -> None:
    domain = domain_of([3, 2])
    public = PublicTable(every_cell(domain), "made up for this test")
    fit = MultiplicativeWeightsFit(average=True, public=public if kind == "support" else None)
    state = fitted(fit, domain, transcript_of(*answered([Q1], [0.7]))).state()
    facts, arrays = dict(state.facts), dict(state.arrays)
    assert FAMILIES[kind].load(domain, facts, arrays).total == N
    if name in facts:
        facts[name] = change
    elif change is None:
        del arrays[name]
    else:
        arrays[name] = change(arrays[name])
    with pytest.raises(ReleaseError):
        FAMILIES[kind].load(domain, facts, arrays)


@KINDS
def test_a_file_gives_no_weight_to_what_cannot_occur(kind: str) -> None:
    domain, possible = with_zeros()
    free = Domain.of({"c0": 2, "c1": 3, "c2": 2})
    state = WeightsModel(places_of(kind, free, np.full((2, 3, 2), 1 / 12)), 60.0).state()
    table = np.asarray(
        FAMILIES[kind].load(domain, state.facts, state.arrays).project(domain.attributes).values
    )
    assert (table[~possible] == 0).all()
    assert table.sum() == pytest.approx(60.0)
    assert state.arrays["weights"].min() > 0, "what was read is not changed"


@pytest.mark.parametrize(
    "make",
    [
        lambda: MultiplicativeWeightsFit(step=0.0),
        lambda: MultiplicativeWeightsFit(step=float("nan")),
        lambda: MultiplicativeWeightsFit(passes=-1),
        lambda: MultiplicativeWeightsFit(at_once=True, passes=3),
        lambda: MultiplicativeWeightsFit(at_once=True, threshold=1.0),
        lambda: MultiplicativeWeightsFit(threshold=-0.1),
        lambda: EntropyProjectionFit(gamma=-1.0),
        lambda: EntropyProjectionFit(gamma=float("inf")),
        lambda: EntropyProjectionFit(max_iterations=0),
    ],
)
def test_parameters_out_of_range(make: Any) -> None:
    with pytest.raises(InputError):
        make()


def test_sizes() -> None:
    domain = domain_of([3, 2])
    public = PublicTable(every_cell(domain).take(np.array([0, 2])), "made up for this test")
    assert MultiplicativeWeightsFit().cells(domain, []) == 6
    assert MultiplicativeWeightsFit(average=True).cells(domain, []) == 12
    assert EntropyProjectionFit().cells(domain, [("c0",)]) == 6
    assert (
        EntropyProjectionFit(public=public).cells(domain, []) == 6
    )  # two weights, and two codes for each
    assert EntropyProjectionFit().sizes_with(domain, [], [("c0",), ("c1",)]).tolist() == [6.0, 6.0]
