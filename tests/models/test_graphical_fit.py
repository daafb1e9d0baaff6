"""Estimation: the stated optimum, an honest certificate, and the right treatment of repeats, groups and warm starts."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from margrave.domain import Domain, StructuralZeros
from margrave.errors import InputError, ReleaseError
from margrave.marginal import TOTAL, LinearMap, LinearQuery
from margrave.models import GraphicalFit, GraphicalModel, MergedCodesModel
from margrave.models.graphical.estimation import minimize
from margrave.models.graphical.fit import Problem
from margrave.models.graphical.state import GraphicalState
from margrave.models.terms import Term, common_groups, terms_of
from margrave.transcript import Answer, Measurement, PublicTotal, Transcript
from margrave.types import Clique, FloatArray
from tests.support.explicit import Explicit, allowed, entropy_of, graphical, joint_of, loss_of
from tests.support.strategies import (
    domain_of,
    generators,
    marginal_of,
    measurement,
    seeded,
    some_cliques,
    some_domain,
)

EXACT = GraphicalFit(steps=1, tolerance=1e-9, empty_below=0.0, max_calibrations=5000, rake=False)


def rng_of(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@st.composite
def problems(draw: st.DrawFn, widest: float = 10.0) -> tuple[Domain, Transcript]:
    """A tiny domain, perhaps with impossible cells, and noisy answers of unequal scales that no table has exactly."""
    rng = draw(generators())
    domain = some_domain(rng, 4, 3)
    if len(domain) > 1 and rng.random() < 0.4:
        clique = domain.clique(rng.choice(domain.attributes, size=2, replace=False).tolist())
        possible = rng.random(domain.shape(clique)) < 0.6
        possible.flat[rng.integers(possible.size)] = True
        domain = Domain(domain.attributes, domain.sizes, (StructuralZeros(clique, possible),))
    cliques = some_cliques(domain, rng, 5)
    rows = int(rng.choice([5, 60, 2000]))
    weights = rng.gamma(0.3, size=domain.sizes) + 1e-6
    table = rng.multinomial(
        rows, (weights * allowed(domain)).ravel() / (weights * allowed(domain)).sum()
    )
    noisy = []
    for clique in cliques:
        scale = float(np.exp(rng.uniform(0.0, np.log(widest))))
        truth = marginal_of(domain, table.reshape(domain.sizes), clique)
        noisy.append(measurement(clique, truth + rng.normal(scale=scale, size=truth.shape), scale))
    singles = []
    for clique in some_cliques(domain, rng, 3) if rng.random() < 0.4 else ():
        scale = float(np.exp(rng.uniform(0.0, np.log(widest))))
        cell = tuple(int(rng.integers(domain.size(a))) for a in clique)
        truth = marginal_of(domain, table.reshape(domain.sizes), clique)[cell]
        query = LinearQuery(clique, tuple((code,) for code in cell))
        singles.append(Answer(query, round(truth + rng.normal(scale=scale)), scale, Fraction(1, 9)))
    public = (PublicTotal(rows),) if rng.random() < 0.5 or singles else ()
    return domain, Transcript((*noisy, *singles, *public))


# ------------------------------------------------------------------------------------------------- the optimum


@pytest.mark.parametrize("shrinkage", [0.1, 0.3, 1.0])
@seeded(60)
@given(problem=problems())
def test_the_fit_is_the_optimum_of_the_stated_objective(
    shrinkage: float, problem: tuple[Domain, Transcript]
) -> None:
    domain, transcript = problem
    fit = GraphicalFit(
        shrinkage=shrinkage,
        steps=1,
        tolerance=1e-6,
        empty_below=0.0,
        max_calibrations=2_000,
        rake=False,
    )
    model = graphical(fit(domain, transcript, rng=rng_of()))
    terms = terms_of(domain, transcript.measurements, transcript.answers)
    if not terms:
        return
    explicit = Explicit(domain, terms, transcript.total(), entropy_of(fit, terms))
    joint = joint_of(model)
    best = explicit.optimum()
    slack = 1e-9 * max(1.0, abs(best))
    assert -1e-6 * max(1.0, abs(best)) <= explicit.value(joint) - best
    assert explicit.value(joint) - best <= 1e-6 * sum(t.values.size for t in terms) + slack
    for clique in (t.clique for t in terms):
        assert_allclose(model.project(clique).values, marginal_of(domain, joint, clique), rtol=1e-9)
    for zeros in domain.zeros:
        assert not marginal_of(domain, joint, zeros.clique)[~zeros.possible].any()


@seeded(40)
@given(problem=problems(), shrinkage=st.sampled_from([0.1, 0.5, 3.0]))
def test_the_certified_gap_is_honest_wherever_it_stops(
    problem: tuple[Domain, Transcript], shrinkage: float
) -> None:
    """P(point) − optimum ≤ gap, −entropy · F ≤ optimum, and the gap is the difference of the two, at every stop."""
    domain, transcript = problem
    terms, total = terms_of(domain, transcript.measurements), transcript.total()
    if not terms:
        return
    entropy = entropy_of(GraphicalFit(shrinkage=shrinkage), terms)
    explicit = Explicit(domain, terms, total, entropy)
    best = explicit.optimum()
    tiny = 1e-6 * max(1.0, abs(best))
    for most in (1, 2, 4, 7, 15, 60):
        whole = Problem(domain, terms, total, entropy)
        solution = minimize(whole.objective, whole.start(None), gap=1e-10, max_calibrations=most)
        assert solution.calibrations <= most
        value = explicit.value(
            joint_of(GraphicalModel(domain, total, whole.potentials(solution.point)))
        )
        # F leaves out the constant ||y / scale||² / 2 of the loss
        constant = sum(float(((t.values / t.scales) ** 2).sum()) / 2 for t in terms)
        # nor has it the part of the loss that no distribution can lower: where measurements contradict each other
        contradiction = constant - float(whole.white @ whole.white) / 2
        dual = contradiction - entropy * solution.value
        assert value - best <= solution.gap + tiny
        assert dual <= best + tiny
        impossible = bool(
            domain.zeros
        )  # measured cells that are impossible keep potentials of their own
        assert (
            solution.gap
            == pytest.approx(value - dual, rel=1e-6, abs=1e-9 * max(constant, abs(value)))
            or impossible
        )
        assert solution.converged == (solution.gap <= 1e-10)


def test_more_calibrations_never_cost_accuracy() -> None:
    domain = domain_of([4, 3, 5])
    table = rng_of(3).multinomial(500, rng_of(3).dirichlet(np.full(60, 0.2))).reshape(4, 3, 5)
    noisy = [
        measurement(c, marginal_of(domain, table, c), 2.0)
        for c in combinations(domain.attributes, 2)
    ]
    terms = terms_of(domain, noisy)
    values = []
    for most in (1, 3, 10, 30, 100):
        problem = Problem(domain, terms, 500.0, 0.1)
        values.append(
            minimize(
                problem.objective,
                problem.start(None),
                gap=1e-12,
                max_calibrations=most,
            ).value
        )
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]


# ------------------------------------------------------------------------------------------- what is reproduced


def test_answers_without_noise_are_reproduced() -> None:
    """Each cell to within a tenth of a record, with a chain, a loop, and cells that are empty."""
    domain = domain_of([3, 4, 2, 3])
    rng = rng_of(7)
    table = rng.multinomial(2_000, rng.dirichlet(np.full(72, 0.3))).reshape(domain.sizes)
    for cliques in (
        [("c0", "c1"), ("c1", "c2"), ("c2", "c3")],
        [("c0", "c1"), ("c1", "c2"), ("c2", "c3"), ("c0", "c3")],
        [("c0", "c1", "c2"), ("c1", "c2", "c3")],
    ):
        noisy = tuple(measurement(c, marginal_of(domain, table, c), 0.01) for c in cliques)
        model = EXACT(domain, Transcript(noisy), rng=rng_of())
        for clique in cliques:
            assert_allclose(
                model.project(clique).values, marginal_of(domain, table, clique), atol=0.1
            )
        assert model.total == pytest.approx(2_000)


def test_the_default_fit_explains_noisy_answers_to_within_their_noise() -> None:
    """At the optimum the loss is about a half per cell and no more; far from it, many times that."""
    domain = domain_of([6, 5, 4, 7])
    rng = rng_of(8)
    table = rng.multinomial(20_000, rng.dirichlet(np.full(domain.cells(), 0.2))).reshape(
        domain.sizes
    )
    noisy = []
    for clique in combinations(domain.attributes, 2):
        truth = marginal_of(domain, table, clique)
        noisy.append(measurement(clique, truth + rng.normal(scale=10.0, size=truth.shape), 10.0))
    model = GraphicalFit()(domain, Transcript(tuple(noisy)), rng=rng_of())
    loss = loss_of([np.asarray(model.project(m.clique).values) for m in noisy], noisy)
    cells = sum(m.values.size for m in noisy)
    assert loss < 0.75 * cells
    assert (
        loss_of([np.full(m.values.shape, 20_000 / m.values.size) for m in noisy], noisy)
        > 50 * cells
    )


def test_repeats_are_averaged_with_weights_one_over_variance() -> None:
    domain = domain_of([3, 2])
    first = np.array([[10, 3], [0, 7], [22, 5]])
    apart = np.array([[5, -5], [10, 0], [-15, 5]])
    twice = [measurement(("c0", "c1"), first, 1.0), measurement(("c0", "c1"), first + apart, 2.0)]
    (term,) = terms_of(domain, twice)
    assert_allclose(term.values, first + apart / 5, rtol=1e-12)
    assert_allclose(term.scales, np.full((3, 2), np.sqrt(0.8)), rtol=1e-12)
    one = Transcript(
        (measurement(("c0", "c1"), first + apart // 5, float(np.sqrt(0.8))), PublicTotal(50))
    )
    both = Transcript((*twice, PublicTotal(50)))
    a, b = graphical(EXACT(domain, one, rng=rng_of())), graphical(EXACT(domain, both, rng=rng_of()))
    assert_allclose(joint_of(a), joint_of(b), rtol=1e-5, atol=1e-5)


def test_the_order_and_the_repetition_of_entries_change_nothing() -> None:
    domain = domain_of([3, 2, 4])
    rng = rng_of(5)
    noisy = [
        measurement(c, rng.integers(-3, 40, domain.shape(c)), s)
        for c, s in ((("c0", "c1"), 1.0), (("c1", "c2"), 4.0), (("c0", "c1"), 2.0), (("c2",), 1.5))
    ]
    a = graphical(EXACT(domain, Transcript((PublicTotal(100), *noisy)), rng=rng_of()))
    b = graphical(EXACT(domain, Transcript((*reversed(noisy), PublicTotal(100))), rng=rng_of()))
    assert_allclose(joint_of(a), joint_of(b), rtol=1e-3, atol=1e-4)


def test_what_was_not_measured_is_independent() -> None:
    domain = domain_of([3, 4, 2])
    noisy = measurement(("c0", "c1"), np.arange(12).reshape(3, 4), 0.1)
    model = EXACT(domain, Transcript((noisy, PublicTotal(66))), rng=rng_of())
    pair = np.asarray(model.project(("c0", "c2")).values)
    assert_allclose(pair, np.outer(pair.sum(1), pair.sum(0)) / 66, rtol=1e-9)
    assert_allclose(pair.sum(0), [33, 33], rtol=1e-9)


def test_an_empty_transcript_gives_the_uniform_model() -> None:
    model = GraphicalFit()(domain_of([2, 3]), Transcript((PublicTotal(60),)), rng=rng_of())
    assert_allclose(model.project(("c0", "c1")).values, np.full((2, 3), 10.0))
    assert GraphicalFit()(domain_of([2]), Transcript(), rng=rng_of()).total == 1.0


def test_the_total_is_the_transcripts() -> None:
    domain = domain_of([2, 3])
    noisy = (measurement(("c0",), [40, 70], 3.0), measurement(("c1",), [50, 30, 20], 1.0))
    assert (
        GraphicalFit()(domain, Transcript(noisy), rng=rng_of()).total == Transcript(noisy).total()
    )
    public = GraphicalFit()(domain, Transcript((*noisy, PublicTotal(77))), rng=rng_of())
    assert public.total == 77.0
    assert float(np.sum(public.project(("c1",)).values)) == pytest.approx(77.0)
    negative = GraphicalFit()(
        domain, Transcript((measurement(("c0",), [-40, -7], 3.0),)), rng=rng_of()
    )
    assert negative.total == 1.0
    assert (np.asarray(negative.project(("c0",)).values) > 0).all()


@pytest.mark.parametrize(
    "bad",
    [
        {"shrinkage": 0.0},
        {"shrinkage": -1.0},
        {"tolerance": 0.0},
        {"max_calibrations": 0},
        {"steps": 0},
    ],
)
def test_bad_settings_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError):
        GraphicalFit(**bad)  # type: ignore[arg-type]


def test_steps_lead_to_pure_least_squares() -> None:
    """The pull towards the last step's solution fades: the loss falls to the least that any table has."""
    domain = domain_of([3, 4, 2])
    rng = rng_of(13)
    table = rng.multinomial(400, rng.dirichlet(np.full(24, 0.3))).reshape(domain.sizes)
    noisy = []
    for clique, scale in ((("c0", "c1"), 4.0), (("c1", "c2"), 2.0), (("c0", "c2"), 8.0)):
        truth = marginal_of(domain, table, clique)
        noisy.append(measurement(clique, truth + rng.normal(scale=scale, size=truth.shape), scale))
    transcript = Transcript((PublicTotal(400), *noisy))
    terms = terms_of(domain, noisy)
    best = Explicit(domain, terms, 400.0, 1e-6).optimum()

    def loss(steps: int) -> float:
        fit = GraphicalFit(tolerance=1e-6, max_calibrations=500, steps=steps)
        return Explicit(domain, terms, 400.0, 0.0).value(
            joint_of(graphical(fit(domain, transcript, rng=rng_of())))
        )

    losses = [loss(1), loss(4), loss(40)]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > best + 0.05
    assert best - 1e-2 < losses[-1] < best + 0.05


# ------------------------------------------------------------------------------------------------- warm starts


def three_rounds() -> tuple[Domain, list[Measurement]]:
    domain = domain_of([5, 4, 3, 6])
    rng = rng_of(11)
    table = rng.multinomial(5_000, rng.dirichlet(np.full(domain.cells(), 0.2))).reshape(
        domain.sizes
    )
    cliques: list[Clique] = [(a,) for a in domain]
    cliques += [("c0", "c1"), ("c1", "c2", "c3"), ("c0", "c3")]
    noisy = []
    for i, clique in enumerate(cliques):
        truth, scale = marginal_of(domain, table, clique), 12.0 - i
        noisy.append(measurement(clique, truth + rng.normal(scale=scale, size=truth.shape), scale))
    return domain, noisy


def test_a_warm_start_reaches_the_same_optimum() -> None:
    domain, noisy = three_rounds()
    total = PublicTotal(5_000)
    state = EXACT.init(domain, rng=rng_of())
    for known in range(4, len(noisy) + 1):
        transcript = Transcript((total, *noisy[:known]))
        cold = graphical(EXACT(domain, transcript, rng=rng_of()))
        state = EXACT.update(state, transcript, rng=rng_of())
        warm = graphical(EXACT.model(state))
        assert_allclose(joint_of(warm), joint_of(cold), rtol=1e-3, atol=1e-3)


def test_starting_at_the_optimum_takes_one_calibration() -> None:
    domain, noisy = three_rounds()
    terms = terms_of(domain, noisy)
    problem = Problem(domain, terms, 5_000.0, 0.05)
    done = minimize(problem.objective, problem.start(None), gap=1e-6, max_calibrations=5_000)
    assert done.converged
    model = GraphicalModel(domain, 5_000.0, problem.potentials(done.point))
    again = Problem(domain, terms, 5_000.0, 0.05)
    assert (
        minimize(
            again.objective,
            again.start(model),
            gap=1e-5,
            max_calibrations=100,
        ).calibrations
        == 1
    )


def test_any_model_of_the_domain_may_be_the_warm_start() -> None:
    """One with impossible cells, one of other cliques, one of merged codes: the optimum is the same."""
    domain, noisy = three_rounds()
    transcript = Transcript((PublicTotal(5_000), *noisy))
    cold = joint_of(graphical(EXACT(domain, transcript, rng=rng_of())))
    plain = GraphicalModel(domain, 5_000.0, {("c0", "c2"): rng_of(1).normal(size=(5, 3))})
    coarse = GraphicalModel(domain_of([5, 4, 3, 2]), 5_000.0, {})
    merged = MergedCodesModel(
        domain, coarse, {"c3": np.array([0, 0, 0, 1, 1, 1])}, {"c3": np.full(6, 1 / 3)}
    )
    impossible = plain.condition({"c1": [0, 2]})
    for state in (
        GraphicalState(domain, plain),
        GraphicalState(domain, impossible),
        GraphicalState(domain, coarse, merged.groups, merged.shares),
    ):
        found = EXACT.model(EXACT.update(state, transcript, rng=rng_of()))
        assert_allclose(joint_of(graphical(found)), cold, rtol=1e-3, atol=1e-3)


def test_a_warm_start_from_an_impossible_cell_that_was_measured_precisely() -> None:
    """The guess for a cell that the warm model holds impossible must stay finite, however unequal the scales."""
    domain, noisy = three_rounds()
    precise = measurement(("c0",), [400, 300, 2_000, 300, 2_000], 0.05)
    warm = GraphicalModel(domain, 5_000.0, {}).condition({"c0": [2, 4]})
    transcript = Transcript((PublicTotal(5_000), *noisy[1:], precise))
    fit = GraphicalFit(shrinkage=0.3, steps=1, max_calibrations=2_000)
    state = GraphicalState(domain, warm)
    model = fit.model(fit.update(state, transcript, rng=rng_of()))
    assert_allclose(model.project(("c0",)).values, precise.values, atol=1.0)


# ------------------------------------------------------------------------------------------------ merged codes


def proportional_fitting(
    domain: Domain, answers: list[tuple[Clique, LinearMap, FloatArray]], total: float
) -> FloatArray:
    """The maximum-entropy table with these exact answers: scale every answer's cells in turn until all agree."""
    x = np.full(domain.sizes, total / domain.cells())
    for _ in range(5_000):
        before = x
        for clique, query, wanted in answers:
            have = query.apply(clique, marginal_of(domain, x, clique))
            ratio = np.divide(wanted, have, out=np.zeros_like(have), where=have > 0)
            spread = query.spread(clique, ratio)
            shape = [domain.size(a) if a in clique else 1 for a in domain]
            x = x * spread.reshape(shape)
        if np.abs(x - before).max() < 1e-12 * total:
            break
    return x


GROUPS = {"c0": np.array([0, 1, 1, 2, 2]), "c2": np.array([1, 0, 1, 1])}


def merged_problem(scale: float) -> tuple[Domain, list[Measurement], FloatArray]:
    domain = domain_of([5, 3, 4])
    rng = rng_of(21)
    table = rng.multinomial(3_000, rng.dirichlet(np.full(60, 0.4))).reshape(domain.sizes)
    query = LinearMap(GROUPS)
    noisy = [measurement((a,), marginal_of(domain, table, (a,)), scale) for a in domain]
    for clique in (("c0", "c1"), ("c1", "c2")):
        noisy.append(
            measurement(
                clique, query.apply(clique, marginal_of(domain, table, clique)), scale, query
            )
        )
    return domain, noisy, table


def test_merged_codes_give_the_maximum_entropy_table() -> None:
    domain, noisy, _ = merged_problem(0.001)
    model = EXACT(domain, Transcript((PublicTotal(3_000), *noisy)), rng=rng_of())
    assert isinstance(model, MergedCodesModel)
    answers = [(m.clique, m.query, m.values.astype(np.float64)) for m in noisy]
    expected = proportional_fitting(domain, answers, 3_000.0)
    for k in (1, 2, 3):
        for clique in combinations(domain.attributes, k):
            assert_allclose(
                model.project(clique).values, marginal_of(domain, expected, clique), atol=0.05
            )


def test_merged_codes_under_noise_are_the_merged_optimum_and_shares() -> None:
    """The coarse model is the optimum for the merged answers, a group's one-way answer having its codes' variances."""
    domain, noisy, _ = merged_problem(4.0)
    rng = rng_of(22)
    noisy = [
        measurement(m.clique, m.values + rng.normal(scale=4, size=m.values.shape), 4.0, m.query)
        for m in noisy
    ]
    model = EXACT(domain, Transcript((PublicTotal(3_000), *noisy)), rng=rng_of())
    assert isinstance(model, MergedCodesModel)
    coarse = domain_of([3, 3, 2])
    terms = []
    for m in noisy:
        if len(m.clique) == 1 and m.clique[0] in GROUPS:
            groups = GROUPS[m.clique[0]]
            sums = np.bincount(groups, weights=m.values)
            terms.append(Term(m.clique, sums, 4.0 * np.sqrt(np.bincount(groups))))
        else:
            terms.append(Term(m.clique, m.values.astype(float), np.full(m.values.shape, 4.0)))
    explicit = Explicit(coarse, terms, 3_000.0, entropy_of(EXACT, terms))
    inner = model.coarse
    assert isinstance(inner, GraphicalModel)
    assert explicit.value(joint_of(inner)) - explicit.optimum() <= 1e-6
    one_way = {m.clique[0]: np.maximum(m.values, 0) for m in noisy if len(m.clique) == 1}
    for a, groups in GROUPS.items():
        expected = one_way[a] / np.bincount(groups, weights=one_way[a])[groups]
        assert_allclose(model.shares[a], expected, rtol=1e-12)


def test_shares_come_from_all_one_way_answers_by_their_precision() -> None:
    domain = domain_of([3, 2])
    pair = measurement(
        ("c0", "c1"), [[20, 30], [26, 24]], 1.0, LinearMap({"c0": np.array([0, 1, 1])})
    )
    rough, fine = measurement(("c0",), [50, 40, 10], 2.0), measurement(("c0",), [50, 20, 30], 1.0)
    model = EXACT(domain, Transcript((rough, pair, fine)), rng=rng_of())
    assert isinstance(model, MergedCodesModel)
    assert_allclose(
        model.shares["c0"], [1.0, 24 / 50, 26 / 50], rtol=1e-12
    )  # (40 + 4 · 20) / 5 and (10 + 4 · 30) / 5


def test_codes_of_a_group_never_seen_share_it_equally() -> None:
    domain = domain_of([4, 2])
    query = LinearMap({"c0": np.array([0, 1, 1, 1])})
    pair = measurement(("c0", "c1"), [[20, 30], [6, 3]], 1.0, query)
    never = measurement(("c0",), [50, -3, 0, -1], 1.0)
    for entries in ((pair,), (pair, never)):
        model = EXACT(domain, Transcript(entries), rng=rng_of())
        values = np.asarray(model.project(("c0",)).values)
        assert_allclose(values[1:], np.full(3, values[1]), rtol=1e-12)


def test_groups_that_disagree_are_refused() -> None:
    domain = domain_of([4, 2, 2])
    one, other = (
        LinearMap({"c0": np.array([0, 1, 1, 1])}),
        LinearMap({"c0": np.array([0, 0, 1, 1])}),
    )
    merged = measurement(("c0", "c1"), [[20, 30], [6, 3]], 1.0, one)
    for conflicting in (
        measurement(("c0", "c2"), [[20, 30], [6, 3]], 1.0, other),
        measurement(("c0", "c2"), np.ones((4, 2)), 1.0),
    ):
        with pytest.raises(InputError, match="c0"):
            GraphicalFit()(domain, Transcript((merged, conflicting)), rng=rng_of())
    zeros = StructuralZeros(("c0",), np.array([True, True, True, False]))
    constrained = Domain(domain.attributes, domain.sizes, (zeros,))
    with pytest.raises(InputError, match="c0"):
        GraphicalFit()(constrained, Transcript((merged,)), rng=rng_of())
    assert common_groups(domain, [merged])["c0"].tolist() == [0, 1, 1, 1]


def test_a_column_measured_only_in_groups_is_fitted_in_groups() -> None:
    domain = domain_of([4, 2])
    query = LinearMap({"c0": np.array([0, 1, 1, 1])})
    alone = measurement(("c0",), [50, 30], 0.01, query)
    model = EXACT(domain, Transcript((alone, measurement(("c1",), [20, 60], 0.01))), rng=rng_of())
    assert_allclose(model.project(("c0",)).values, [50, 10, 10, 10], atol=0.1)
    pair = measurement(("c0", "c1"), [[20, 30], [6, 24]], 0.01, query)
    both = EXACT(domain, Transcript((alone, pair)), rng=rng_of())
    assert_allclose(both.project(("c0",)).values, [50, 10, 10, 10], atol=0.1)
    other = measurement(("c0",), [40, 40], 0.01, LinearMap({"c0": np.array([0, 0, 1, 1])}))
    with pytest.raises(InputError, match="c0"):
        EXACT(domain, Transcript((pair, other)), rng=rng_of())


# ------------------------------------------------------------------------------------------- structural zeros


def test_impossible_cells_stay_empty_whatever_was_measured_there() -> None:
    plain = domain_of([3, 4, 2])
    possible = np.array([[1, 1, 0, 1], [0, 1, 1, 0], [1, 0, 0, 1]], dtype=bool)
    domain = Domain(plain.attributes, plain.sizes, (StructuralZeros(("c0", "c1"), possible),))
    entries = (
        measurement(("c0", "c1"), np.full((3, 4), 25), 2.0),
        measurement(("c1", "c2"), np.full((4, 2), 40), 3.0),
        PublicTotal(300),
    )
    model = graphical(GraphicalFit()(domain, Transcript(entries), rng=rng_of()))
    pair = np.asarray(model.project(("c0", "c1")).values)
    assert not pair[~possible].any()
    assert (pair[possible] > 1.0).all()
    state = GraphicalState(domain, model)
    again = GraphicalFit().model(GraphicalFit().update(state, Transcript(entries), rng=rng_of()))
    assert_allclose(again.project(("c0", "c1")).values, pair, rtol=0.05)


@pytest.mark.parametrize("precise", [0.5, 0.01])
def test_answers_that_contradict_each_other_still_give_a_model(precise: float) -> None:
    """Precise answers that no table has together, one of them where nothing is possible: a model, no warning."""
    plain = domain_of([2, 3])
    zeros = StructuralZeros(("c0", "c1"), np.array([[True, False, True], [True, False, True]]))
    for domain in (plain, Domain(plain.attributes, plain.sizes, (zeros,))):
        entries = (
            PublicTotal(1_000),
            measurement(("c1",), [0, 1_000, 0], precise),
            measurement(("c0", "c1"), [[400, 0, 100], [400, 0, 100]], precise),
            measurement(("c0",), [0, 1_000], 50.0),
        )
        for fit in (
            GraphicalFit(),
            GraphicalFit(shrinkage=0.1, steps=1),
            GraphicalFit(shrinkage=0.3),
        ):
            model = fit(domain, Transcript(entries), rng=rng_of())
            values = np.asarray(model.project(("c0", "c1")).values)
            assert np.isfinite(values).all()
            assert values.sum() == pytest.approx(1_000)


def test_a_domain_without_a_possible_record_is_a_clear_error() -> None:
    """Each constraint leaves something, together they leave nothing: the fit says so."""
    plain = domain_of([2, 2])
    left = StructuralZeros(("c0",), np.array([True, False]))
    right = StructuralZeros(("c0", "c1"), np.array([[False, False], [True, True]]))
    domain = Domain(plain.attributes, plain.sizes, (left, right))
    for fit in (GraphicalFit(steps=1), GraphicalFit()):
        with pytest.raises(ReleaseError, match="No record"):
            fit(domain, Transcript((measurement(("c1",), [3, 4], 1.0),)), rng=rng_of())
    with pytest.raises(InputError, match="nothing possible"):
        Domain(plain.attributes, plain.sizes, (StructuralZeros(("c0",), np.array([False, False])),))


# ------------------------------------------------------------------------------------------------ single cells


def _cell(clique: Clique, cell: tuple[int, ...], value: int, scale: float = 3.0) -> Answer:
    return Answer(
        LinearQuery(clique, tuple((code,) for code in cell)), value, scale, Fraction(1, 18)
    )


def test_every_cell_on_its_own_is_the_marginal() -> None:
    domain = Domain.of({"a": 2, "b": 3})
    values = np.array([[40, 3, 60], [20, 50, 10]])
    public = PublicTotal(200)
    cells = tuple(_cell(("a", "b"), at, int(values[at])) for at in product(range(2), range(3)))
    one = EXACT(domain, Transcript((public, *cells)), rng=rng_of())
    other = EXACT(domain, Transcript((public, measurement(("a", "b"), values, 3.0))), rng=rng_of())
    assert_allclose(
        one.project(("a", "b")).values, other.project(("a", "b")).values, rtol=1e-5, atol=1e-5
    )


def test_a_cell_that_was_asked_alone_moves_only_what_it_must() -> None:
    """The rest keeps its proportions: that is the distribution of highest entropy."""
    domain = Domain.of({"a": 2, "b": 3})
    transcript = Transcript((PublicTotal(1000), _cell(("a", "b"), (1, 2), 700, 0.1)))
    fit = GraphicalFit()
    start = fit.init(domain, rng=rng_of())
    for state in (start, fit.update(start, Transcript((PublicTotal(1000),)), rng=rng_of())):
        model = fit.model(fit.update(state, transcript, rng=rng_of()))
        found = np.asarray(model.project(("a", "b")).values)
        assert found[1, 2] == pytest.approx(700, abs=1.0)
        assert_allclose(np.delete(found.ravel(), 5), 60, atol=0.5)


def test_sets_of_codes_are_refused_and_the_total_is_no_cell() -> None:
    domain = Domain.of({"a": 3, "b": 2})
    prefix = Answer(LinearQuery(("a",), ((0, 1),)), 5, 1.0, Fraction(1, 2))
    with pytest.raises(InputError, match="counts of sets of codes"):
        GraphicalFit()(domain, Transcript((PublicTotal(10), prefix)), rng=rng_of())
    total = Answer(TOTAL, 500, 1.0, Fraction(1, 2))
    assert GraphicalFit()(domain, Transcript((total,)), rng=rng_of()).total == 500


def test_cells_of_merged_codes_are_refused() -> None:
    domain = Domain.of({"a": 3, "b": 2})
    merged = LinearMap({"a": np.array([0, 1, 1])})
    noisy = Measurement(("a", "b"), np.array([[5, 6], [7, 8]]), 1.0, Fraction(1, 2), merged)
    for clique, fine in ((("a",), False), (("b",), True)):
        transcript = Transcript((PublicTotal(26), noisy, _cell(clique, (1,), 14, 0.1)))
        if fine:
            values = GraphicalFit()(domain, transcript, rng=rng_of()).project(("b",)).values
            assert values[1] == pytest.approx(14, abs=0.5)
        else:
            with pytest.raises(InputError, match="merge"):
                GraphicalFit()(domain, transcript, rng=rng_of())


def test_weights_by_scale_are_those_of_aim_s_paper() -> None:
    """The mean of two measurements has the weights 1 / scale; the row count keeps 1 / scale²."""
    domain = Domain.of({"a": 3})
    first, second = np.array([400.0, 300, 300]), np.array([460.0, 280, 320])
    noisy = Transcript(
        (measurement(("a",), first, 2.0), measurement(("a",), second, 8.0), PublicTotal(1000))
    )
    for weights, power in (("variance", 2), ("scale", 1)):
        fit = GraphicalFit(steps=16, tolerance=1e-9, empty_below=0.0, weights=weights, rake=False)  # type: ignore[arg-type]
        own = np.array([2.0, 8.0]) ** -power
        mean = (own[0] * first + own[1] * second) / own.sum()
        expected = mean - (mean.sum() - 1000) / 3
        found = fit(domain, noisy, rng=rng_of()).project(("a",)).values
        assert_allclose(found, expected, atol=0.5)
    without = Transcript(noisy.entries[:2])
    by_scale, usual = GraphicalFit(weights="scale"), GraphicalFit()
    totals = [f(domain, without, rng=rng_of()).total for f in (by_scale, usual)]
    assert totals[0] == totals[1] == without.total()


def test_equal_scales_have_equal_weights() -> None:
    domain = Domain.of({"a": 2, "b": 3})
    table = np.array([[50.0, 20, 30], [10, 40, 60]])
    noisy = Transcript(
        tuple(measurement(c, t, 3.0) for c, t in ((("a",), table.sum(1)), (("a", "b"), table)))
    )
    fits = [EXACT, GraphicalFit(**{**vars(EXACT), "weights": "scale"})]
    one, other = (f(domain, noisy, rng=rng_of()).project(("a", "b")).values for f in fits)
    assert_allclose(one, other, atol=1e-9)
