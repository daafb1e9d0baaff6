"""Particles: points for codes, projections, steps and records, each against something plainer."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment, linprog

from margrave.accounting import Budget, ReplaceRow
from margrave.domain import Codes, Domain
from margrave.errors import InputError
from margrave.marginal import LinearMap, LinearQuery
from margrave.marginal.consistency import SignedMeasure, agreeing
from margrave.marginal.counting import count_cliques
from margrave.marginal.simplex import clip_and_rescale
from margrave.mechanisms import AIM, MST, MWEMPGM, PrivPGD
from margrave.models import ParticleFit
from margrave.models.particles import descent, kernels
from margrave.models.particles.descent import Descent, Schedule
from margrave.models.particles.embedding import Embedding, simplex
from margrave.models.particles.projection import (
    PUBLISHED,
    ProjectedLines,
    directions_of,
    on_a_line,
    projected,
    quantized,
)
from margrave.models.particles.targets import Target, signed_of, targets_of
from margrave.models.specs import fit_of_spec
from margrave.models.weights import empirical
from margrave.privacy import SeededRandomness, protect
from margrave.release import Release
from margrave.schema import Categorical, Integer, Schema
from margrave.structural_zeros import StructuralZeros, joined
from margrave.transcript import Answer, Measurement, PublicReading, PublicTotal, Transcript
from margrave.types import AnyArray, Clique, FloatArray
from tests.support.conformance import SIZES, codes_of, memory_table, pairs, some_rows

ONE = Fraction(1)
QUICK = ParticleFit(particles=1000, n_directions=40)


def measured(
    clique: Clique, values: Any, scale: float = 1.0, query: LinearMap | None = None
) -> Measurement:
    return Measurement(clique, np.asarray(values, dtype=np.int64), scale, ONE, query or LinearMap())


def known(total: int, *entries: Any) -> Transcript:
    return Transcript((PublicTotal(total), *entries))


def all_pairs(codes: Codes, scale: float = 1.0) -> Transcript:
    """The exact two-way marginals of some records."""
    counts = count_cliques(codes, combinations(codes.domain.attributes, 2))
    return known(len(codes), *(measured(c, v, scale) for c, v in counts.items()))


def records(sizes: dict[str, int], count: int, seed: int = 0) -> Codes:
    return codes_of(Domain.of(sizes), some_rows(sizes, count, seed))


# Points for codes.


def test_codes_in_order_lie_in_the_middle_of_their_share_of_the_unit_interval() -> None:
    points = Embedding.of(Domain.of({"a": 5, "b": 1})).points
    assert points["a"].ravel().tolist() == [(2 * x - 1) / 10 for x in (1, 2, 3, 4, 5)]
    assert points["b"].shape == (1, 0)


@pytest.mark.parametrize("corners", [2, 3, 7])
def test_the_corners_of_a_simplex_are_one_apart_and_in_the_unit_cube(corners: int) -> None:
    points = simplex(corners)
    assert points.shape == (corners, corners - 1)
    for one, other in combinations(points, 2):
        assert np.linalg.norm(one - other) == pytest.approx(1.0)
    assert points.min() >= 0.0
    assert points.max() <= 1.0


def test_missing_is_no_neighbor_of_any_value() -> None:
    schema = Schema([Integer("age", 0, 9, missing=True), Categorical("sex", ["f", "m"])])
    assert schema.domain.missing == {"age"}
    assert schema.domain.unordered == {"sex"}
    points = Embedding.of(schema.domain).points["age"]
    values, missing = points[:-1], points[-1]
    assert np.linalg.norm(values - missing, axis=1).min() > np.linalg.norm(values[0] - values[-1])
    assert np.diff(values[:, 0]) == pytest.approx(0.1)


@pytest.mark.parametrize("nominal", ["ordered", "equidistant"])
def test_every_record_is_nearest_to_its_own_point_even_a_little_aside(nominal: str) -> None:
    domain = Domain(("a", "b", "c"), (6, 4, 3), (), frozenset("b"), frozenset("c"))
    embedding = Embedding.of(domain, nominal)
    rng = np.random.default_rng(0)
    codes = Codes.of(domain, {a: rng.integers(0, domain.size(a), 500) for a in domain})
    aside = embedding.embed(codes) + rng.uniform(-0.04, 0.04, (embedding.dimensions, 500))
    assert (embedding.nearest(aside).values == codes.values).all()


def test_names_are_embedded_as_they_are_told_to_be() -> None:
    domain = Domain(("a", "b"), (4, 4), (), frozenset("b"))
    assert [Embedding.of(domain, kind).dimensions for kind in ("ordered", "equidistant")] == [2, 4]
    with pytest.raises(InputError, match="by_color"):
        ParticleFit(embedding="by_color")


# From signed measures to probability measures.


def nearest_by_lp(lines: ProjectedLines, shares: FloatArray) -> float:
    """The least SW1 of a probability measure to signed shares, by a linear programme: Σ gap · t, −t <= F − G <= t."""
    count, n = lines.order.shape
    rows, bounds, gaps = [], [], []
    for order, gap in zip(lines.order, lines.gaps, strict=True):
        for j in range(n - 1):
            row = np.zeros(n)
            row[order[: j + 1]] = 1.0
            rows.append(row)
            bounds.append(float(shares[order[: j + 1]].sum()))
            gaps.append(gap[j])
    above = np.hstack([np.array(rows), -np.eye(len(rows))])
    below = np.hstack([-np.array(rows), -np.eye(len(rows))])
    solved = linprog(
        np.concatenate([np.zeros(n), np.array(gaps) / count]),
        A_ub=np.vstack([above, below]), b_ub=np.concatenate([bounds, -np.array(bounds)]),
        A_eq=np.concatenate([np.ones(n), np.zeros(len(rows))])[None], b_eq=[1.0],
    )  # fmt: skip
    assert solved.status == 0
    return float(solved.fun)


def noisy(cells: int, noise: float, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(cells, 0.3)) + rng.normal(0, noise, cells)
    return np.asarray(shares + (1.0 - shares.sum()) / cells)


def grid(*sizes: int) -> FloatArray:
    domain = Domain.of({f"c{i}": s for i, s in enumerate(sizes)})
    return Embedding.of(domain).cells(domain.attributes, np.arange(domain.cells()))


def own_lines(points: FloatArray, directions: int, seed: int) -> ProjectedLines:
    """The lines that ``projected`` draws first from its generator."""
    return ProjectedLines.of(
        points, directions_of(len(points), directions, np.random.default_rng(seed))
    )


@pytest.mark.parametrize("noise", [0.01, 0.05, 1.0])
def test_a_projection_is_as_near_as_a_linear_programme_finds(noise: float) -> None:
    points, shares = grid(5, 6), noisy(30, noise, 3)
    lines = own_lines(points, 25, seed=7)
    found = projected(points, shares, np.random.default_rng(7), directions=25)
    assert found.min() >= 0.0
    assert found.sum() == pytest.approx(1.0)
    least = nearest_by_lp(lines, shares)
    assert least <= lines.distance(found, shares) + 1e-9
    assert lines.distance(found, shares) <= 1.002 * least


def by_the_paper(lines: ProjectedLines, shares: FloatArray) -> FloatArray:
    """1750 steps of Adam on logits with all directions, the rate from 0.1 by 0.8 every 100, in plain NumPy."""
    start = clip_and_rescale(shares) + 1e-9
    logits, mean, square = np.log(start / start.sum()), np.zeros(len(shares)), np.zeros(len(shares))
    back = np.argsort(lines.order, axis=1)
    for t in range(1750):
        weights = np.exp(logits - logits.max())
        weights /= weights.sum()
        signed = np.sign(np.cumsum((weights - shares)[lines.order], axis=1)) * lines.gaps
        slopes = np.cumsum(signed[:, ::-1], axis=1)[:, ::-1]
        gradient = np.take_along_axis(slopes, back, axis=1).mean(axis=0)
        step = weights * (gradient - weights @ gradient)
        mean, square = 0.9 * mean + 0.1 * step, 0.999 * square + 0.001 * step**2
        ahead = (mean / (1 - 0.9 ** (t + 1))) / (np.sqrt(square / (1 - 0.999 ** (t + 1))) + 1e-15)
        logits -= 0.1 * 0.8 ** (t // 100) * ahead
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize(("sizes", "noise"), [((12, 9), 0.003), ((12, 9), 0.03), ((4, 3, 5), 0.02)])
def test_a_projection_is_no_worse_than_the_recipe_of_the_paper(
    sizes: tuple[int, ...], noise: float
) -> None:
    points = grid(*sizes)
    shares = noisy(points.shape[1], noise, 1)
    lines = own_lines(points, 200, seed=5)
    found = projected(points, shares, np.random.default_rng(5))
    assert lines.distance(found, shares) <= 1.0005 * lines.distance(
        by_the_paper(lines, shares), shares
    )


@pytest.mark.parametrize("excess", [0.0, 0.2])
def test_the_published_projection_is_that_of_the_paper(excess: float) -> None:
    """Also of shares that do not sum to one."""
    points = grid(6, 5)
    shares = noisy(points.shape[1], 0.03, 1) + excess / points.shape[1]
    lines = own_lines(points, 30, seed=5)
    rng = np.random.default_rng(5)
    found = projected(points, shares, rng, directions=30, recipe=PUBLISHED)
    distances = [lines.distance(w, shares) for w in (found, by_the_paper(lines, shares))]
    assert distances[0] == pytest.approx(distances[1], rel=1e-3)
    assert found.sum() == pytest.approx(1.0)


def test_published_targets_are_those_of_particles() -> None:
    shares = np.array([0.5, 0.31, 0.19])
    assert quantized(shares, 10) == pytest.approx([0.5, 0.3, 0.2])
    domain = Domain.of({"a": 3, "b": 2})
    noisy_counts = Transcript(
        (measured(("a", "b"), [[40, -9], [20, 20], [9, 30]]), PublicTotal(100))
    )
    signed = [
        signed_of(domain, noisy_counts, shifted=shifted)[0].shares.sum()
        for shifted in (True, False)
    ]
    assert signed == pytest.approx([1.0, 1.1])
    (target,) = targets_of(
        Embedding.of(domain),
        noisy_counts,
        np.random.default_rng(0),
        weighted=False,
        directions=20,
        consistent=False,
        recipe=PUBLISHED,
        particles=7,
    )
    assert (target.shares * 7) == pytest.approx(np.rint(target.shares * 7))
    assert ParticleFit.of_paper().projection == PUBLISHED


@pytest.mark.parametrize("seed", range(6))
def test_a_single_column_is_projected_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    line, shares = rng.permutation(np.sort(rng.random(9))), noisy(9, 0.2, seed)
    found = on_a_line(line, shares)
    assert found.min() >= 0.0
    assert found.sum() == pytest.approx(1.0)
    lines = ProjectedLines.of(line[None], np.ones((1, 1)))
    assert lines.distance(found, shares) == pytest.approx(nearest_by_lp(lines, shares), abs=1e-9)


def test_what_is_a_distribution_already_stays() -> None:
    shares = np.random.default_rng(0).dirichlet(np.ones(42))
    found = projected(grid(6, 7), shares, np.random.default_rng(0), directions=40)
    assert np.abs(found - shares).sum() < 0.01
    assert on_a_line(np.arange(42.0), shares) == pytest.approx(shares)


# What the transcript says.


def test_repeats_are_averaged_by_their_precision_and_sum_to_one() -> None:
    domain = Domain.of({"a": 2, "b": 2})
    one, other = (
        measured(("a", "b"), [[40, 20], [20, 20]]),
        measured(("a", "b"), [[10, 30], [30, 30]], scale=2.0),
    )
    transcript = known(100, one, other)
    (signed,) = signed_of(domain, transcript)
    assert signed.shares == pytest.approx([0.34, 0.22, 0.22, 0.22])
    assert signed.scale == pytest.approx(np.sqrt(0.8))


def test_merged_codes_share_what_their_group_has() -> None:
    """As the one-way measurement has them, and equally where there is none."""
    domain = Domain.of({"a": 2, "b": 3})
    merged = measured(("a", "b"), [[30, 20], [10, 40]], query=LinearMap({"b": np.array([0, 1, 1])}))
    column = measured(("b",), [40, 45, 15])
    whole, spread = signed_of(domain, known(100, column, merged))
    assert whole.shares == pytest.approx([0.4, 0.45, 0.15])
    assert spread.shares.reshape(2, 3) == pytest.approx(
        np.array([[0.3, 0.15, 0.05], [0.1, 0.3, 0.1]])
    )
    (alone,) = signed_of(domain, known(100, merged))
    assert alone.shares.reshape(2, 3) == pytest.approx(np.array([[0.3, 0.1, 0.1], [0.1, 0.2, 0.2]]))


def signed_marginals(
    domain: Domain, cliques: list[tuple[str, ...]], rng: np.random.Generator
) -> list[SignedMeasure]:
    """Noisy marginals of any scale, each with a sum of one over the cells that can occur."""
    found = []
    for scale, clique in enumerate(cliques, start=1):
        inside = [z for z in domain.zeros if set(z.clique) <= set(clique)]
        cells = np.flatnonzero(joined(inside, clique, domain.size))
        shares = rng.normal(1.0, 0.5, len(cells))
        found.append(SignedMeasure(clique, cells, shares / shares.sum(), float(scale)))
    return found


def columns_of(domain: Domain, marginal: SignedMeasure) -> dict[str, FloatArray]:
    """What a marginal says of each of its columns."""
    whole = np.zeros([domain.size(a) for a in marginal.clique])
    whole.reshape(-1)[marginal.cells] = marginal.shares
    axes = range(whole.ndim)
    return {
        a: whole.sum(axis=tuple(j for j in axes if j != i)) for i, a in enumerate(marginal.clique)
    }


def test_marginals_agree_on_columns_by_least_squares() -> None:
    """Against the equations of the constrained minimum, solved as they stand."""
    domain = Domain.of({"a": 2, "b": 3, "c": 4})
    marginals = signed_marginals(domain, [("a", "b"), ("b", "c"), ("c", "a"), ("b",), ("a", "b", "c")],
                                 np.random.default_rng(3))  # fmt: skip
    size = sum(len(s.cells) for s in marginals)
    starts = np.cumsum([0, *(len(s.cells) for s in marginals)])
    rows: list[FloatArray] = []
    for attribute in domain:
        first: FloatArray | None = None
        for s, start in zip(marginals, starts, strict=False):
            if attribute in s.clique:
                shape = [domain.size(a) for a in s.clique]
                codes = np.indices(shape)[s.clique.index(attribute)].reshape(-1)
                own = np.zeros((domain.size(attribute), size))
                own[codes, start + np.arange(len(codes))] = 1.0
                rows += [] if first is None else list(own - first)
                first = own if first is None else first
    total = np.zeros(size)
    total[: len(marginals[0].cells)] = 1.0
    equations = np.array([*rows, total])
    wanted = np.array([*np.zeros(len(rows)), 1.0])
    scales = np.concatenate([np.full(len(s.cells), s.scale) for s in marginals])
    start = np.concatenate([s.shares for s in marginals])
    moved, *_ = np.linalg.lstsq(equations * scales, wanted - equations @ start, rcond=None)
    expected = start + scales * moved
    found = np.concatenate([s.shares for s in agreeing(domain, marginals)])
    assert found == pytest.approx(expected, abs=1e-9)
    assert np.abs(found - start).max() > 0.01


def test_marginals_agree_where_combinations_are_ruled_out() -> None:
    possible = np.array([[True, True, False], [False, True, False]])
    domain = Domain.of({"a": 2, "b": 3, "c": 3}, zeros=[StructuralZeros(("a", "b"), possible)])
    cliques = [("a", "b"), ("b", "c"), ("a", "c")]
    found = agreeing(domain, signed_marginals(domain, cliques, np.random.default_rng(1)))
    said = [columns_of(domain, s) for s in found]
    for attribute in domain:
        one, other = (c[attribute] for c in said if attribute in c)
        assert one == pytest.approx(other, abs=1e-6)
        assert one.sum() == pytest.approx(1.0)
    assert said[1]["b"][2] == pytest.approx(
        0.0, abs=1e-9
    )  # no code of the first column goes with it


def test_nothing_is_said_of_columns_that_nothing_is_known_of() -> None:
    domain = Domain.of({"a": 3})
    unknown = SignedMeasure(("a",), np.arange(3), np.array([0.5, 0.5, 0.0]), np.inf)
    (found,) = agreeing(domain, [unknown])
    assert found.shares.tolist() == [0.5, 0.5, 0.0]
    exact = SignedMeasure(("a",), np.arange(3), np.array([0.1, 0.2, 0.7]), 1.0)
    assert [s.shares.tolist() for s in agreeing(domain, [unknown, exact])] == [
        pytest.approx([0.1, 0.2, 0.7])
    ] * 2


def test_columns_have_less_noise_when_marginals_agree() -> None:
    """A column of five pairs is the mean of five sums."""
    rng = np.random.default_rng(0)
    domain = Domain.of(dict.fromkeys("abcdef", 8))
    pairs = list(combinations(domain.attributes, 2))
    apart, agreed = [], []
    for _ in range(20):
        noisy = [
            SignedMeasure(c, np.arange(64), 1 / 64 + rng.normal(0, 0.01, 64), 1.0) for c in pairs
        ]
        noisy = [replace(s, shares=s.shares + (1 - s.shares.sum()) / 64) for s in noisy]
        for errors, some in ((apart, noisy), (agreed, agreeing(domain, noisy))):
            errors += [np.square(columns_of(domain, s)[s.clique[0]] - 1 / 8).mean() for s in some]
    assert np.sqrt(np.mean(agreed) / np.mean(apart)) == pytest.approx(5**-0.5, rel=0.1)


def test_the_papers_descent_takes_each_marginal_as_it_is() -> None:
    domain = Domain.of({"a": 2, "b": 2})
    transcript = known(100, measured(("a",), [80, 20]), measured(("a", "b"), [[30, 20], [30, 20]]))
    embedding, rng = Embedding.of(domain), np.random.default_rng(0)
    for fit, expected in ((ParticleFit(), 0.7), (ParticleFit.of_paper(), 0.8)):
        column, _ = targets_of(
            embedding, transcript, rng, weighted=False, directions=9, consistent=fit.make_consistent
        )
        assert column.shares[0] == pytest.approx(expected)


def test_weights_are_inverse_variances_or_all_alike() -> None:
    domain = Domain.of({"a": 2, "b": 2, "c": 2})
    transcript = known(
        8, measured(("a", "b"), [[2, 2], [2, 2]], 1.0), measured(("b", "c"), [[2, 2], [2, 2]], 4.0)
    )
    embedding = Embedding.of(domain)
    for weighted, expected in ((True, [1.0, 1 / 16]), (False, [1.0, 1.0])):
        rng = np.random.default_rng(0)
        assert [
            t.weight
            for t in targets_of(embedding, transcript, rng, weighted=weighted, directions=9)
        ] == expected


def test_public_readings_count_and_single_queries_are_refused() -> None:
    domain = Domain.of({"a": 4})
    reading = PublicReading(("a",), np.array([10.0, 0.0, 0.0, 30.0]), np.full(4, 1.0), "sha")
    model = QUICK(domain, known(40, reading), rng=np.random.default_rng(0))
    assert model.project(("a",)).values == pytest.approx([10, 0, 0, 30], abs=1.0)
    answer = Answer(LinearQuery(("a",), ((1, 2),)), 5, 1.0, ONE)
    with pytest.raises(InputError, match="ParticleFit cannot be fitted to counts of sets of codes"):
        QUICK(domain, known(40, reading, answer), rng=np.random.default_rng(0))


# A step.


def some_targets(rng: np.random.Generator) -> list[Target]:
    points = grid(7, 5)
    return [
        Target(("a", "b"), np.array([0, 1]), points, rng.dirichlet(np.full(35, 0.3)), 1.0),
        Target(("b", "c"), np.array([1, 2]), points, rng.dirichlet(np.full(35, 0.3)), 0.5),
        Target(("c",), np.array([2]), grid(6), rng.dirichlet(np.ones(6)), 1.0),
    ]


def schedule(**changed: Any) -> Schedule:
    plain = {
        "optimizer": "transport",
        "epochs": 1,
        "batch": 3,
        "lines": None,
        "kept": 1.0,
        "rate": 1.0,
        "decay": 1.0,
    }
    return Schedule(**{**plain, **changed})


def sorted_gradient(particles: AnyArray, target: Target, direction: FloatArray) -> FloatArray:
    """m · ∇ W2² on a line, by sorting: 2 (y − the target's quantile at y's rank) along the direction."""
    line = direction @ particles[target.coordinates].astype(np.float64)
    on_line = direction @ target.points
    order = np.argsort(on_line)
    ranks = (np.argsort(np.argsort(line)) + 0.5) / len(line)
    place = np.minimum(np.searchsorted(np.cumsum(target.shares[order]), ranks), len(order) - 1)
    return np.asarray(2.0 * direction[:, None] * (line - on_line[order][place]))


@pytest.mark.parametrize("optimizer", ["transport", "adam"])
def test_gradients_are_those_of_sorting(optimizer: str) -> None:
    rng = np.random.default_rng(0)
    particles = rng.random((3, 20_000), dtype=np.float32)
    targets = some_targets(rng)
    moving = Descent(particles, targets, [], schedule(optimizer=optimizer, lines=4))
    rows = np.arange(3)
    lines = moving._lines([0, 1, 2], rows, rng)
    blocks = np.arange(particles.shape[1] // kernels.BLOCK)
    found = np.zeros((3, particles.shape[1]), dtype=np.float32)
    with descent.ThreadPoolExecutor(2) as pool:
        moving._pull(lines, blocks, found, pool)
    expected = np.zeros(found.shape)
    by_place = {(t.points.size, t.shares.size): t for t in targets}
    for t in range(len(lines.dims)):
        target = next(
            k
            for k, s in zip(targets, moving.starts, strict=False)
            if tuple(s) == tuple(lines.atoms[t, :2])
        )
        direction = lines.directions[t, : lines.dims[t]]
        expected[target.coordinates] += lines.factors[t] * sorted_gradient(
            particles, target, direction
        )
    assert len(by_place) == 2
    assert np.abs(found - expected).mean() < 0.01 * np.abs(expected).mean()


def test_a_line_s_gradient_measures_the_transport_of_the_best_assignment() -> None:
    """Σ |gradient / 2|² is m · W2², which an assignment of particles to equal atoms finds too."""
    rng = np.random.default_rng(1)
    particles = rng.random((2, 64), dtype=np.float32)
    points = rng.random((2, 64))
    target = Target(("a", "b"), np.array([0, 1]), points, np.full(64, 1 / 64), 1.0)
    moving = Descent(particles, [target], [], schedule(optimizer="adam", lines=1))
    lines = moving._lines([0], np.arange(2), rng)
    found = np.zeros((2, 64), dtype=np.float32)
    with descent.ThreadPoolExecutor(1) as pool:
        moving._pull(lines, np.arange(4), found, pool)
    one, other = lines.directions[0] @ particles, lines.directions[0] @ points
    cost = (one[:, None] - other) ** 2
    least = cost[linear_sum_assignment(cost)].sum()
    assert float((found**2).sum()) / 4 == pytest.approx(least, rel=0.02)


def test_one_step_at_rate_one_brings_a_column_to_its_target() -> None:
    rng = np.random.default_rng(0)
    particles = rng.random((1, 5000), dtype=np.float32)
    shares = np.array([0.1, 0.5, 0.0, 0.4])
    Descent(particles, [Target(("a",), np.array([0]), grid(4), shares, 1.0)], [], schedule()).run(
        rng
    )
    found = np.histogram(particles, bins=[0, 0.25, 0.5, 0.75, 1.0])[0] / 5000
    assert found == pytest.approx(shares, abs=0.002)


def test_only_what_a_step_touches_moves() -> None:
    rng = np.random.default_rng(0)
    for optimizer in ("transport", "adam"):
        before = rng.random((4, 1600), dtype=np.float32)
        after = before.copy()
        target = Target(("a", "b"), np.array([0, 2]), grid(3, 3), np.full(9, 1 / 9), 1.0)
        Descent(after, [target], [], schedule(optimizer=optimizer, kept=0.2, rate=0.1)).run(rng)
        assert (after[[1, 3]] == before[[1, 3]]).all()
        moved = (after[[0, 2]] != before[[0, 2]]).any(axis=0)
        assert moved.sum() == pytest.approx(320, abs=5)
        assert {int(m) for m in moved.reshape(-1, kernels.BLOCK).sum(axis=1) if m} <= set(
            range(14, 17)
        )


def adam_of_torch(count: int) -> list[float]:
    """Steps of lazy Adam, rate 0.1, for gradients 1, 2, 3 … on one entry: its positions."""
    mean = square = position = 0.0
    found = []
    for t in range(1, count + 1):
        mean, square = 0.9 * mean + 0.1 * t, 0.999 * square + 0.001 * t**2
        position -= 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * mean / (np.sqrt(square) + 1e-8)
        found.append(float(position))
    return found


def test_adam_is_adam() -> None:
    particles = np.zeros((2, 16), dtype=np.float32)
    moments, squares = np.zeros_like(particles), np.zeros_like(particles)
    for t, expected in enumerate(adam_of_torch(5), start=1):
        fades = (np.float32(1 - 0.9**t), np.float32(1 - 0.999**t))
        gradients = np.full((1, 16), t, dtype=np.float32)
        rows, blocks = np.array([1]), np.array([0])
        kernels.adam(
            0, 1, particles, moments, squares, blocks, rows, gradients, np.float32(0.1), fades
        )
        assert particles[1] == pytest.approx(expected, rel=1e-4)
    assert (particles[0] == 0).all()


def test_the_rate_falls_as_far_in_few_epochs_as_in_many() -> None:
    many, few = (
        schedule(epochs=1000, decay=0.75, rate=0.1),
        schedule(epochs=40, decay=0.75, rate=0.1),
    )
    assert [many.rate_at(e) for e in (0, 49, 50, 999)] == pytest.approx(
        [0.1, 0.1, 0.075, 0.1 * 0.75**19]
    )
    assert [few.rate_at(e) for e in (0, 1, 2, 39)] == pytest.approx(
        [0.1, 0.1, 0.075, 0.1 * 0.75**19]
    )


def test_the_number_of_threads_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = records({"a": 6, "b": 5, "c": 4}, 400)
    fit = replace(QUICK, particles=40_000, epochs=3)
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(descent, "THREADS", threads)
        found.append(
            fit(codes.domain, all_pairs(codes), rng=np.random.default_rng(3)).state().arrays
        )
    for other in found[1:]:
        assert all((found[0][name] == other[name]).all() for name in found[0])


# Whole fits.


def apart(codes: Codes, model: Any) -> float:
    """The mean total variation of pairs."""
    counts = count_cliques(codes, combinations(codes.domain.attributes, 2))
    return float(
        np.mean(
            [np.abs(v - model.project(c).values).sum() / 2 / len(codes) for c, v in counts.items()]
        )
    )


@pytest.mark.parametrize(
    "fit",
    [
        ParticleFit(particles=5000),
        ParticleFit(particles=5000, embedding="equidistant"),
        ParticleFit.of_paper(particles=5000, batch=1),
    ],
    ids=["transport", "equidistant", "paper"],
)
def test_exact_marginals_are_met(fit: ParticleFit) -> None:
    codes = records({"a": 8, "b": 6, "c": 2, "d": 5}, 5000)
    domain = Domain(
        codes.domain.attributes, codes.domain.sizes, (), frozenset("bd"), frozenset("a")
    )
    assert apart(codes, fit(domain, all_pairs(codes), rng=np.random.default_rng(0))) < 0.02
    fit = replace(fit, epochs=1)
    assert apart(codes, fit(domain, all_pairs(codes), rng=np.random.default_rng(0))) > 0.1


def test_larger_cliques_and_single_columns_are_met_too() -> None:
    codes = records({"a": 4, "b": 3, "c": 3}, 3000)
    counts = count_cliques(codes, [("a", "b", "c"), ("b",)])
    transcript = known(3000, *(measured(c, v) for c, v in counts.items()))
    model = ParticleFit(particles=3000, epochs=600)(
        codes.domain, transcript, rng=np.random.default_rng(0)
    )
    for clique, counted in counts.items():
        assert np.abs(model.project(clique).values - counted).sum() / 3000 < 0.04


def test_what_cannot_occur_does_not_even_under_noise() -> None:
    possible = np.triu(np.ones((6, 6), dtype=np.bool_))
    domain = Domain.of({"a": 6, "b": 6, "c": 3}, [StructuralZeros(("a", "b"), possible)])
    rng = np.random.default_rng(0)
    noise = [
        measured(c, rng.normal(10, 60, domain.shape(c)), 60.0)
        for c in combinations(domain.attributes, 2)
    ]
    model = QUICK(domain, known(500, *noise), rng=rng)
    assert (model.project(("a", "b")).values[~possible] == 0.0).all()
    sample = model.sample(2000, rng=rng)
    assert possible[sample.column("a"), sample.column("b")].all()


def test_an_impossible_particle_goes_to_the_nearest_possible_cell() -> None:
    possible = np.ones((4, 4), dtype=np.bool_)
    possible[0, :3] = False
    domain = Domain.of({"a": 4, "b": 4, "c": 2}, [StructuralZeros(("a", "b"), possible)])
    from margrave.models.particles.feasible import possible as moved

    particles = np.array([[0.10, 0.2, 0.6], [0.1, 0.7, 0.1], [0.9, 0.9, 0.1]])
    assert moved(Embedding.of(domain), particles).values.T.tolist() == [
        [1, 0, 1],
        [0, 3, 1],
        [2, 0, 0],
    ]


def test_constraints_too_wide_are_refused_before_anything_is_spent() -> None:
    sizes = dict.fromkeys("abcd", 40)
    zeros = [
        StructuralZeros((x, y), np.triu(np.ones((40, 40), dtype=np.bool_)))
        for x, y in ("ab", "bc", "cd")
    ]
    domain = Domain.of(sizes, zeros)
    with pytest.raises(InputError, match="a, b, c, d"):
        ParticleFit().cells(domain, [("a", "b")])


def test_a_warm_start_goes_on_from_the_model_before() -> None:
    codes = records({"a": 6, "b": 5, "c": 4}, 2000)
    rng = np.random.default_rng(0)
    fit = replace(QUICK, warm_epochs=1, epochs=200, rate=0.2)
    good = empirical(codes, float(len(codes)))
    warm = fit.estimate(codes.domain, all_pairs(codes), rng=rng, warm=good)
    assert apart(codes, warm) < 0.06
    assert apart(codes, replace(fit, epochs=1)(codes.domain, all_pairs(codes), rng=rng)) > 0.2


def test_a_model_of_columns_of_one_code_and_of_nothing_measured() -> None:
    domain = Domain.of({"a": 1, "b": 3})
    for transcript in (known(9), known(9, measured(("a",), [9]))):
        model = QUICK(domain, transcript, rng=np.random.default_rng(0))
        assert model.project(("b",)).values == pytest.approx([3, 3, 3], abs=0.5)


def test_sizes_tell_of_particles_and_of_marginals_that_are_large() -> None:
    domain = Domain.of({"a": 300, "b": 300, "c": 4, "d": 4})
    fit = ParticleFit(particles=1000)
    small = fit.cells(domain, [("c",)])
    assert 2 * 1000 * (0.5 * 4 * 1.5 + 2 + 1) <= small <= 2 * 1000 * 7
    assert fit.cells(domain, [("a", "b")]) > 90_000 * 44
    sizes = fit.sizes_with(domain, [("c",)], [("d",), ("a", "b"), ("c",)])
    assert sizes[1] > sizes[0] >= sizes[2] == small
    assert ParticleFit().sizes_with(domain, [("c",)], [("c", "d")])[0] == ParticleFit().cells(
        domain, [("c",)]
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"particles": 0}, {"epochs": 0}, {"update_fraction": 0.0}, {"rate": -1.0}, {"decay": 1.5},
        {"optimizer": "newton"}, {"n_projections": 0},
    ],
)  # fmt: skip
def test_parameters_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        ParticleFit(**wrong)


# Mechanisms.


def released(mechanism: Any, budget: float = 1e5) -> Release:
    table = memory_table(SIZES, some_rows(SIZES, 800))
    with protect(
        table, unit=ReplaceRow(), budget=Budget.zcdp(budget), randomness=SeededRandomness(0)
    ) as private:
        release: Release = mechanism.run(private, rng=np.random.default_rng(0))
        return release


def test_other_mechanisms_run_on_particles_and_any_release_is_refitted(tmp_path: Path) -> None:
    codes = records(SIZES, 800)
    every = pairs(codes.domain)
    for mechanism in (
        AIM(workload=every, rounds=2, fit=QUICK), MST(fit=QUICK),
        MWEMPGM(workload=every, fit=QUICK), PrivPGD(particles=1000),
    ):  # fmt: skip
        release = released(mechanism)
        for clique, counted in count_cliques(codes, release.transcript.cliques).items():
            assert np.abs(release.model.project(clique).values - counted).sum() < 0.1 * 800
    path = tmp_path / "mst.margrave"
    released(MST()).save(path)
    again = Release.load(path).refit(ParticleFit(particles=1000), seed=0)
    assert again.provenance.refit is not None
    assert again.provenance.refit.name == "particles"
    assert apart(codes, again.model) < 0.1
    assert again.sample(10, seed=0).num_rows == 10


def test_privpgd_measures_every_pair_with_the_same_noise() -> None:
    release = released(PrivPGD(fit=QUICK), budget=0.5)
    assert release.transcript.cliques == (("a", "b"), ("a", "c"), ("b", "c"))
    assert {m.rho for m in release.transcript.measurements} == {Fraction(1, 6)}
    assert len({m.scale for m in release.transcript.measurements}) == 1
    assert fit_of_spec(release.provenance.fit) == QUICK


def test_lines_of_a_frame_are_at_right_angles() -> None:
    moving = Descent(np.zeros((3, 16), dtype=np.float32), [], [], schedule(lines=128))
    directions, factor = moving._directions(100, np.random.default_rng(0))
    assert directions.shape == (128, 100)
    assert factor == 0.25
    for frame in (directions[:64], directions[64:]):
        assert frame @ frame.T == pytest.approx(np.eye(64), abs=1e-9)
