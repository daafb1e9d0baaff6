"""The mechanisms against their papers: every scale, epsilon, weight, candidate and score of a run, worked out again.

The formulas here are written from the papers, in floating point and independently of the mechanisms; what a run did is
read from its transcript, its true scores from behind the gate, and its models from a fit that keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, product, takewhile
from typing import Any

import numpy as np
import pytest

from margrave.accounting import AddRemoveRow, Budget, ReplaceRow, Unit
from margrave.domain import Domain
from margrave.errors import ModelTooLargeError
from margrave.marginal import LinearMap, Marginal
from margrave.mechanisms import AIM, MST, MWEMPGM, GaussianMechanism, Independent, Mechanism
from margrave.mechanisms.parts import opening
from margrave.mechanisms.parts.budget import split
from margrave.mechanisms.parts.penalty import budget_factor
from margrave.models import Fit, GraphicalFit, GraphicalModel, Model, projected_error
from margrave.models.graphical.junction_tree import JunctionTree
from margrave.privacy import SeededRandomness
from margrave.release import Release
from margrave.testing.replay import Chosen, Recorder
from margrave.transcript import Measurement, Selection, Transcript
from margrave.types import Clique, FloatArray
from margrave.workload import Workload
from tests.support.conformance import memory_table, run_on, some_rows, uneven
from tests.support.rounds import WrappedFit

SIZES = {"a": 3, "b": 4, "c": 2, "d": 5}
DOMAIN = Domain.of(SIZES)
TABLE = memory_table(SIZES, some_rows(SIZES, 700, seed=11))
TRUTH = TABLE.count([c for k in (1, 2, 3, 4) for c in combinations(DOMAIN.attributes, k)])
RHO = 0.05
BUDGET = Budget.zcdp(RHO)
UNITS = pytest.mark.parametrize("unit", [AddRemoveRow(), ReplaceRow()], ids=str)
SEEDS = pytest.mark.parametrize("seed", range(4))


def near(value: float) -> Any:
    """Equal but for rounding."""
    return pytest.approx(value, rel=1e-9)


class Kept(WrappedFit):
    """A fit that keeps its models, each with the number of measurements it was made from."""

    def __init__(self, fit: Fit) -> None:
        super().__init__(fit)
        self.models: list[tuple[int, Any]] = []
        self.before: list[Any] = []

    def update(self, state: Any, transcript: Transcript, **more: Any) -> Any:
        after = super().update(state, transcript, **more)
        self._keep(state, transcript, after.estimate)
        return after

    def finish(self, state: Any, transcript: Transcript, **more: Any) -> Any:
        model = super().finish(state, transcript, **more)
        self._keep(state, transcript, model)
        return model

    def _keep(self, state: Any, transcript: Transcript, model: Any) -> None:
        self.models.append((len(transcript.measurements), model))
        self.before.append(state.estimate)


def ran(
    mechanism: Mechanism, unit: Unit, seed: int, budget: Budget = BUDGET
) -> tuple[Release, list[Chosen]]:
    """A run, and its true scores."""
    source = Recorder(SeededRandomness(seed))
    release = run_on(mechanism, TABLE, unit, budget, source, seed=seed)
    return release, [step for step in source.steps if isinstance(step, Chosen)]


def sigma_of(rho: float, unit: Unit) -> float:
    """The scale at which one marginal costs rho: rho = Δ² / (2 sigma²), Δ² = 1, or 2 where a row is replaced."""
    return math.sqrt((2 if isinstance(unit, ReplaceRow) else 1) / (2 * rho))


def gap(model: Model, clique: Clique) -> float:
    """||M_r(D) − M_r(p)||_1."""
    return float(np.abs(TRUTH[clique] - np.asarray(model.project(clique).values)).sum())


def check_scores(
    step: Chosen, expected: Sequence[float], epsilon: float, sensitivity: float
) -> None:
    """The scores behind the gate are those of the paper up to a constant, at the temperature epsilon / (2 Δ).

    Estimates are rounded to multiples of 2^-10, so a score may be off by half of that a cell.
    """
    assert step.scores is not None
    assert step.temperature is not None
    exponents = np.array([float(step.temperature * s) for s in step.scores])
    wanted = np.array(expected) * epsilon / (2 * sensitivity)
    slack = 2.0**-11 * DOMAIN.cells() * epsilon / 2
    assert exponents == pytest.approx(wanted, rel=1e-6, abs=slack)


def tree_size(cliques: Collection[Clique]) -> int:
    """JT-SIZE, in cells."""
    return JunctionTree.of(DOMAIN, cliques).cells()


# AIM (McKenna, Mullins, Sheldon, Miklau 2022), Algorithms 2 to 4.


def aim_rounds(release: Release, fit: Kept) -> list[tuple[Selection, Measurement, Model, Model]]:
    """Each round's choice and measurement, and the models before and after it."""
    entries = [e for e in release.transcript if isinstance(e, Selection | Measurement)]
    starts = next(i for i, e in enumerate(entries) if isinstance(e, Selection))
    models = [model for _, model in fit.models[:-1]]  # the last is the release's own
    chosen, measured = entries[starts::2], entries[starts + 1 :: 2]
    assert len(models) == len(chosen) + 1 == len(measured) + 1
    return [
        (s, m, before, after)
        for s, m, (before, after) in zip(chosen, measured, pairwise(models), strict=True)
        if isinstance(s, Selection) and isinstance(m, Measurement)
    ]


AIM_FORMS: dict[str, tuple[dict[str, Any], int, float, Workload]] = {
    "as in the paper": ({"penalty": "full"}, 16 * 4, 0.9, Workload.all_kway(DOMAIN, 3)),
    "another workload": (
        {"workload": uneven(DOMAIN), "rounds": 24, "alpha": Fraction(3, 4), "penalty": "full"},
        24, 0.75, uneven(DOMAIN),
    ),
    "a small model": (
        {"max_model_mb": 60 / 131072, "rounds": 20, "penalty": "full"}, 20, 0.9, Workload.all_kway(DOMAIN, 3),
    ),
    "the noise that survives": ({"rounds": 24}, 24, 0.9, Workload.all_kway(DOMAIN, 3)),
}  # fmt: skip


@SEEDS
@UNITS
@pytest.mark.parametrize("form", AIM_FORMS)
def test_aim_follows_its_paper(form: str, unit: Unit, seed: int) -> None:
    options, rounds, alpha, workload = AIM_FORMS[form]
    fit = Kept(GraphicalFit())
    release, steps = ran(AIM(**options, fit=fit), unit, seed)
    delta = 2 if isinstance(unit, ReplaceRow) else 1

    # sigma_0 = sqrt(T / (2 alpha rho)) and epsilon_0 = sqrt(8 (1 − alpha) rho / T), for a row added or removed
    sigma = sigma_of(alpha * RHO / rounds, unit)
    epsilon = math.sqrt(8 * (1 - alpha) * RHO / rounds)
    if unit == AddRemoveRow():
        assert sigma == near(math.sqrt(rounds / (2 * alpha * RHO)))
    cost = alpha * RHO / rounds
    starts = release.transcript.measurements[: len(DOMAIN)]
    assert [m.clique for m in starts] == [(a,) for a in DOMAIN]
    assert [m.scale for m in starts] == [near(sigma)] * len(DOMAIN)
    assert fit.models[0][0] == len(DOMAIN)
    used, measured = cost * len(DOMAIN), [m.clique for m in starts]

    weight = {
        r: sum(c * len(set(r) & set(s)) for s, c in workload.weights.items())
        for r in workload.closure()
    }
    max_cells = options.get("max_model_mb", 80) * 2**20 / 8
    done = aim_rounds(release, fit)
    for t, ((choice, measurement, before, after), step) in enumerate(zip(done, steps, strict=True)):
        last = RHO - used <= 2 * cost * (1 / alpha) * (1 + 1e-9)
        if last:
            # epsilon = sqrt(8 (1 − alpha) (rho − rho_used)), sigma = sqrt(1 / (2 alpha (rho − rho_used)))
            cost = alpha * (RHO - used)
            sigma, epsilon = sigma_of(cost, unit), math.sqrt(8 * (1 - alpha) * (RHO - used))
        used += cost / alpha
        assert last == (t == len(done) - 1), "the last round is the one that spends what is left"
        assert measurement.scale == near(sigma)
        assert choice.epsilon == near(epsilon)

        # C_t = { r in W+ : JT-SIZE(r_1 ... r_{t−1}, r) <= rho_used / rho · MAX-SIZE }, or no larger than it is
        room = max(used / RHO * max_cells, tree_size(measured)) * (1 + 1e-9)
        assert set(choice.candidates) == {r for r in weight if tree_size([*measured, r]) <= room}
        # q_r = w_r (||M_r(D) − M_r(p_{t−1})||_1 − sqrt(2 / pi) sigma_t n_r), Delta_t = max w_r
        noise = {r: math.sqrt(2 / math.pi) * sigma * DOMAIN.cells(r) for r in choice.candidates}
        if "penalty" not in options:  # ours: what is left of it once answers have been made counts
            noise = projected_error(
                {r: before.project(r).values for r in choice.candidates}, sigma, DOMAIN
            )
        assert choice.terms["weight"] == near([weight[r] for r in choice.candidates])
        assert choice.terms["penalty"] == near(list(noise.values()))
        largest = max(weight[r] for r in choice.candidates)
        assert choice.sensitivity == near(largest * delta)
        scores = [weight[r] * (gap(before, r) - noise[r]) for r in choice.candidates]
        check_scores(step, scores, epsilon, largest * delta)

        assert measurement.clique == choice.chosen
        assert measurement.query.is_identity
        measured.append(choice.chosen)
        # anneal: ||M_r(p_t) − M_r(p_{t−1})||_1 <= sqrt(2 / pi) sigma_t n_r doubles epsilon and halves sigma
        new, old = (np.asarray(model.project(choice.chosen).values) for model in (after, before))
        if np.abs(new - old).sum() <= noise[choice.chosen]:
            epsilon, sigma, cost = 2 * epsilon, sigma / 2, 4 * cost
    assert used == near(RHO)
    assert release.account.rho_spent == BUDGET.rho
    assert release.model is fit.models[-1][1]


def test_aim_anneals_and_learns_and_is_held_to_its_size() -> None:
    """The runs above take both branches: without that, they would prove little."""
    factors, refused = set(), 0
    for form, seed in product(AIM_FORMS, range(4)):
        release, _ = ran(AIM(**AIM_FORMS[form][0]), AddRemoveRow(), seed)
        scales = [m.scale for m in release.transcript.measurements[len(DOMAIN) : -1]]
        factors |= {round(one / other, 6) for one, other in pairwise(scales)}
        candidates = [len(s.candidates) for s in release.transcript.selections]
        refused += min(candidates) < max(candidates)
    assert factors == {1.0, 2.0}
    assert refused > 0


def test_aim_has_room_for_its_first_columns() -> None:
    """However few rounds are asked for, the one-way marginals and one round are paid for."""
    release, _ = ran(AIM(rounds=1), AddRemoveRow(), 0)
    assert release.transcript.measurements[0].scale == near(sigma_of(0.9 * RHO / 5, AddRemoveRow()))
    assert len(release.transcript.selections) >= 1


def test_aim_measures_only_columns_of_its_workload() -> None:
    release, _ = ran(AIM(workload=Workload.of(DOMAIN, [("a", "c")])), AddRemoveRow(), 0)
    assert {a for m in release.transcript.measurements for a in m.clique} == {"a", "c"}


@pytest.mark.parametrize("mechanism", [AIM, MWEMPGM])
def test_each_round_starts_from_the_last_and_the_release_from_nothing(
    mechanism: type[AIM | MWEMPGM],
) -> None:
    """So that the release is what a refit of its transcript gives."""
    fit = Kept(GraphicalFit())
    release, _ = ran(mechanism(fit=fit), AddRemoveRow(), 0)
    assert fit.before == [None, *(model for _, model in fit.models[:-2]), None]
    again = release.refit(GraphicalFit(), seed=0)
    for clique in combinations(DOMAIN.attributes, 2):
        assert np.array_equal(again.marginal(clique).values, release.marginal(clique).values)


# MST (McKenna, Miklau, Sheldon 2021), Section 4.


@SEEDS
@UNITS
@pytest.mark.parametrize("rare", [0.0, 12.0])
def test_mst_follows_its_paper(rare: float, unit: Unit, seed: int) -> None:
    fit = Kept(GraphicalFit())
    release, steps = ran(MST(rare_threshold=rare, fit=fit), unit, seed)
    d = len(DOMAIN)
    singles, edges = release.transcript.measurements[:d], release.transcript.measurements[d:]
    choices = release.transcript.selections
    # a third of the budget for the columns, for the choices and for the edges, exactly
    third = BUDGET.rho / 3
    for group in (singles, choices, edges):
        assert sum(e.rho for e in group) == third
    assert [m.clique for m in singles] == [(a,) for a in DOMAIN]
    assert [m.scale for m in singles] == [near(sigma_of(RHO / 3 / d, unit))] * d
    assert [m.scale for m in edges] == [near(sigma_of(RHO / 3 / (d - 1), unit))] * (d - 1)
    # a spanning tree, grown by choices among the pairs that join two of its parts
    tree = [c.chosen for c in choices]
    assert [m.clique for m in edges] == tree
    assert len(set(tree)) == d - 1
    independent = fit.models[0][1]
    assert fit.models[0][0] == d
    query = LinearMap({a: groups for m in edges for a, groups in m.query.groups.items()})
    merged = set() if rare == 0.0 else merged_columns(singles, rare)
    assert [set(m.query.groups) for m in edges] == [merged & set(m.clique) for m in edges]
    assert set(query.groups) == merged  # the tree has every column
    for i, (choice, step) in enumerate(zip(choices, steps, strict=True)):
        part = parts(tree[:i])
        joining = [r for r in combinations(DOMAIN.attributes, 2) if part[r[0]] != part[r[1]]]
        assert list(choice.candidates) == joining
        epsilon = math.sqrt(8 * RHO / 3 / (d - 1))
        assert choice.epsilon == near(epsilon)
        # ||M_ab(D) − M_ab(independent)||_1, of merged codes
        scores = [
            np.abs(
                query.apply(r, TRUTH[r]) - query.apply(r, np.asarray(independent.project(r).values))
            ).sum()
            for r in joining
        ]
        check_scores(step, scores, epsilon, 2 if isinstance(unit, ReplaceRow) else 1)
    assert len(set(parts(tree).values())) == 1


def merged_columns(singles: Sequence[Measurement], rare: float) -> set[str]:
    """The columns with two or more codes below so many noise scales."""
    return {m.clique[0] for m in singles if (m.values < rare * m.scale).sum() >= 2}


def parts(edges: Sequence[Clique]) -> dict[str, frozenset[str]]:
    """The connected part that each column is in."""
    part = {a: frozenset([a]) for a in DOMAIN}
    for a, b in edges:
        joined = part[a] | part[b]
        part |= dict.fromkeys(joined, joined)
    return part


def test_mst_merges_what_is_rare() -> None:
    """Rare codes share the last group, others keep their order; the one-way marginals tell them apart."""
    merged = 0
    for seed in range(4):
        release, _ = ran(MST(rare_threshold=12.0), AddRemoveRow(), seed)
        edges = release.transcript.measurements[len(DOMAIN) :]
        for m in release.transcript.measurements[: len(DOMAIN)]:
            (a,) = m.clique
            groups = next(e for e in edges if a in e.clique).query.groups.get(a)
            rare = m.values < 12.0 * m.scale
            if rare.sum() < 2:
                assert groups is None
                continue
            merged += 1
            assert groups is not None
            assert groups[rare].tolist() == [len(rare) - rare.sum()] * int(rare.sum())
            assert groups[~rare].tolist() == list(range(int((~rare).sum())))
            assert release.marginal([a]).values.shape == (SIZES[a],)
    assert merged > 0


def test_mst_that_merges_nothing_keeps_codes_of_negative_counts() -> None:
    """Noise makes counts of empty codes negative, and below zero noise scales."""
    sizes = {"a": 30, "b": 3}
    table = memory_table(sizes, np.zeros((50, 2), dtype=np.int64))
    release = run_on(
        MST(rare_threshold=0.0), table, AddRemoveRow(), BUDGET, SeededRandomness(0), seed=0
    )
    singles, edges = release.transcript.measurements[:2], release.transcript.measurements[2:]
    assert (singles[0].values < 0).sum() >= 2
    assert [m.clique for m in edges] == [("a", "b")]
    assert not any(m.query.groups for m in release.transcript.measurements)


def test_mst_finds_the_best_tree_when_noise_is_nothing() -> None:
    release, _ = ran(MST(rare_threshold=0.0), AddRemoveRow(), 0, Budget.zcdp(10**7))
    total = TABLE.rows()

    def dependence(pair: Clique) -> float:
        a, b = (TRUTH[x,] for x in pair)
        return float(np.abs(TRUTH[pair] - np.outer(a, b) / total).sum())

    pairs = list(combinations(DOMAIN.attributes, 2))
    trees = [t for t in combinations(pairs, 3) if len(set(parts(t).values())) == 1]
    best = max(trees, key=lambda t: sum(map(dependence, t)))
    assert {s.chosen for s in release.transcript.selections} == set(best)


def test_mst_of_one_column_spends_all_on_it() -> None:
    table = memory_table({"only": 4}, some_rows({"only": 4}, 50))
    release = run_on(MST(), table, AddRemoveRow(), BUDGET, SeededRandomness(1))
    (measurement,) = release.transcript.entries
    assert isinstance(measurement, Measurement)
    assert measurement.rho == BUDGET.rho


# MWEM+PGM (McKenna, Mullins, Sheldon, Miklau 2022, Algorithm 1).


@SEEDS
@UNITS
@pytest.mark.parametrize("start", [True, False])
@pytest.mark.parametrize("rounds", [None, 7])
def test_mwem_pgm_follows_its_paper(rounds: int | None, start: bool, unit: Unit, seed: int) -> None:
    fit = Kept(GraphicalFit())
    workload = Workload.all_kway(DOMAIN, 2)
    mechanism = MWEMPGM(
        workload=workload, rounds=rounds, measure_one_way=start, max_model_mb=None, fit=fit
    )
    release, steps = ran(mechanism, unit, seed)
    t = len(DOMAIN) if rounds is None else rounds
    first = release.transcript.measurements[: len(DOMAIN)] if start else ()
    later, choices = release.transcript.measurements[len(first) :], release.transcript.selections
    assert len(later) == len(choices) == len(steps) == t
    # epsilon = 2 sqrt(rho / T), sigma = sqrt(T / rho): half of a round chooses, half measures
    each = RHO / (t + start)
    assert [m.scale for m in later] == [near(sigma_of(each / 2, unit))] * t
    if not start and unit == AddRemoveRow():
        assert later[0].scale == near(math.sqrt(t / RHO))
        assert choices[0].epsilon == near(2 * math.sqrt(RHO / t))
    assert [m.clique for m in first] == ([(a,) for a in DOMAIN] if start else [])
    assert [m.scale for m in first] == [near(sigma_of(each / len(DOMAIN), unit))] * len(first)
    epsilon, delta = math.sqrt(8 * each / 2), 2 if isinstance(unit, ReplaceRow) else 1
    for choice, measurement, step, (_, model) in zip(
        choices, later, steps, fit.models, strict=False
    ):
        assert choice.candidates == workload.cliques
        assert choice.chosen == measurement.clique
        assert (choice.epsilon, choice.sensitivity) == (near(epsilon), delta)
        # q_r = ||M_r(D) − M_r(p_{t−1})||_1 − n_r
        assert set(choice.terms["weight"]) == {1.0}
        assert choice.terms["penalty"].tolist() == [DOMAIN.cells(r) for r in choice.candidates]
        check_scores(
            step, [gap(model, r) - DOMAIN.cells(r) for r in choice.candidates], epsilon, delta
        )
    assert release.account.rho_spent == BUDGET.rho
    assert len(fit.models) == t + 2


def test_mwem_pgm_keeps_to_its_size() -> None:
    """Candidates are those that fit beside what was measured; if none does, columns alone."""
    room = 40
    mechanism = MWEMPGM(workload=Workload.all_kway(DOMAIN, 3), rounds=4, max_model_mb=room / 131072)
    release, _ = ran(mechanism, AddRemoveRow(), 0)
    measured = [(a,) for a in DOMAIN]
    for choice in release.transcript.selections:
        fitting = [
            r for r in combinations(DOMAIN.attributes, 3) if tree_size([*measured, r]) <= room
        ]
        assert list(choice.candidates) == (fitting or [(a,) for a in DOMAIN])
        measured.append(choice.chosen)


def test_mwem_pgm_falls_back_on_columns_it_announced() -> None:
    """With a uniform start and nothing else that fits, columns are measured; they were announced to the table."""
    mechanism = MWEMPGM(
        workload=Workload.all_kway(DOMAIN, 3), measure_one_way=False, max_model_mb=15 / 131072
    )
    release, _ = ran(mechanism, AddRemoveRow(), 0)
    assert {m.clique for m in release.transcript.measurements} <= {(a,) for a in DOMAIN}
    assert set(release.transcript.cliques) <= set(mechanism.reads(DOMAIN))


# The Gaussian mechanism (Zhang et al. 2021, PrivSyn, Section 4.2) and independent columns.


@UNITS
def test_gaussian_shares_follow_the_paper(unit: Unit) -> None:
    """rho_r is in proportion to (c_r n_r)^(2/3)."""
    workload = uneven(DOMAIN)
    release, _ = ran(GaussianMechanism.as_published(workload=workload), unit, 0)
    measured = release.transcript.measurements
    assert tuple(m.clique for m in measured) == workload.cliques
    powers = {r: (c * DOMAIN.cells(r)) ** (2 / 3) for r, c in workload.weights.items()}
    for m in measured:
        share = RHO * powers[m.clique] / sum(powers.values())
        assert float(m.rho) == near(share)
        assert m.scale == near(sigma_of(share, unit))
    assert sum(m.rho for m in measured) == BUDGET.rho


def test_gaussian_shares_are_the_best() -> None:
    """Σ c_r n_r sigma_r, the expected workload error, grows whichever way the shares are moved."""
    weights = [c * DOMAIN.cells(r) for r, c in uneven(DOMAIN).weights.items()]
    shares = np.array([float(s) for s in split(Fraction(1, 20), [w ** (2 / 3) for w in weights])])

    def error(rho: FloatArray) -> float:
        return float((np.array(weights) / np.sqrt(2 * rho)).sum())

    rng = np.random.default_rng(0)
    for _ in range(200):
        moved = shares * np.exp(0.05 * rng.normal(size=len(shares)))
        assert error(moved * shares.sum() / moved.sum()) >= error(shares)


def test_split_gives_everything_away() -> None:
    """To the last Fraction, however the weights lie; nobody gets nothing."""
    rng = np.random.default_rng(1)
    for _ in range(500):
        weights = rng.lognormal(sigma=6, size=int(rng.integers(1, 40))).tolist()
        rho = Fraction(int(rng.integers(1, 10**9)), int(rng.integers(1, 10**9)))
        shares = split(rho, weights)
        assert sum(shares) == rho
        assert min(shares) > 0


@UNITS
def test_independent_measures_columns_alike(unit: Unit) -> None:
    release, steps = ran(Independent(), unit, 0)
    assert [m.clique for m in release.transcript.measurements] == [(a,) for a in DOMAIN]
    assert [m.scale for m in release.transcript.measurements] == [near(sigma_of(RHO / 4, unit))] * 4
    assert steps == []
    pair = release.marginal(["a", "d"]).values
    a, d = (release.marginal([x]).values for x in "ad")
    assert pair == pytest.approx(np.outer(a, d) / release.model.total)


@pytest.mark.parametrize("mechanism", [AIM, MWEMPGM])
def test_marginals_out_of_reach_of_the_model_do_not_end_a_run(
    mechanism: type[AIM | MWEMPGM], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Joining far columns of a large model can take more memory than there is: a guess, not an answer, is lost."""
    refused: list[int] = []
    exact = GraphicalModel.project

    def project(model: GraphicalModel, clique: Clique) -> Marginal:
        if model.tree.node_of(clique) is None:
            refused.append(len(clique))
            raise ModelTooLargeError("too large")
        return exact(model, clique)

    monkeypatch.setattr(GraphicalModel, "project", project)
    release, _ = ran(mechanism(), AddRemoveRow(), 0)
    assert refused
    assert release.account.rho_spent == BUDGET.rho


# AIM on few rows.


def few_rows(budget: Budget, **options: Any) -> tuple[Release, int]:
    """AIM's release of 300 rows, and how often it measured each column alone before anything else."""
    sizes = {"a": 12, "b": 3, "c": 9, "d": 20}
    table = memory_table(sizes, some_rows(sizes, 300, seed=2))
    release = run_on(AIM(**options), table, AddRemoveRow(), budget, SeededRandomness(1))
    begun = list(
        takewhile(lambda c: len(c) == 1, (m.clique for m in release.transcript.measurements))
    )
    assert release.account.rho_spent == budget.rho
    return release, len(begun) // len(sizes)


def test_columns_of_few_rows_have_the_whole_budget() -> None:
    budget = Budget.zcdp(Fraction(1, 1000))
    release, times = few_rows(budget)
    assert times == 2
    assert not release.transcript.selections
    first, again = release.transcript.measurements[0].rho, release.transcript.measurements[-1].rho
    assert first == Fraction(9, 10) * budget.rho / 64
    assert (first + again) * 4 == budget.rho


@pytest.mark.parametrize(("rho", "factor"), [(Fraction(1, 24), 8), (Fraction(1, 4), 4)])
def test_rounds_after_columns_of_few_rows_begin_with_half_the_budget_of_a_column(
    rho: Fraction, factor: int
) -> None:
    """There are 64 rounds and four columns, so that eight times the budget is half of the whole."""
    release, times = few_rows(Budget.zcdp(rho))
    assert times == 2
    first, again, chosen = (release.transcript.measurements[i].rho for i in (0, 4, 8))
    assert (first + again) / first == factor
    assert chosen == factor // 2 * first
    assert len(release.transcript.measurements) < 8 + 64 / (factor // 2)


@pytest.mark.parametrize(
    ("needed", "for_twice", "factor", "start"),
    [(2, 1, 2, 1), (8, 4, 8, 4), (16, 4, 8, 4), (64, 8, Fraction(160, 9), None)],
)
def test_columns_have_half_of_the_budget_at_most_or_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
    needed: int,
    for_twice: int,
    factor: Fraction,
    start: int | None,
) -> None:
    """Sixteen times the budget of the columns is the whole; a factor of 8 for twice the error is above two fifths."""

    def given(columns: Any, scale: float, error: float, domain: Domain) -> int:
        return needed if error < 0.3 * 300 else for_twice

    monkeypatch.setattr(opening, "budget_factor", given)
    measured = few_rows(Budget.zcdp(Fraction(1, 6)))[0].transcript.measurements
    assert (measured[0].rho + measured[4].rho) / measured[0].rho == factor
    begun = measured[8].rho / measured[0].rho if len(measured) > 8 else None
    assert begun == start


def test_columns_are_measured_once_if_their_error_is_small_or_does_not_matter() -> None:
    assert few_rows(Budget.zcdp(Fraction(20)))[1] == 1
    assert few_rows(Budget.zcdp(Fraction(1, 24)), column_error=None)[1] == 1
    assert few_rows(Budget.zcdp(Fraction(1, 24)), rounds=15)[1] == 1, "fewer than four per column"
    assert AIM.as_published().column_error is None


@pytest.mark.parametrize("error", [0.5, 5.0, 50.0])
def test_the_factor_of_the_budget_is_the_least_power_of_two(error: float) -> None:
    domain = Domain(("a", "b"), (5, 3))
    estimates = {("a",): np.full(5, 20.0), ("b",): np.array([90.0, 10.0, 0.0])}

    def mean_error(factor: float) -> float:
        return float(np.mean([*projected_error(estimates, 30.0 / factor**0.5, domain).values()]))

    factor = budget_factor(estimates, 30.0, error, domain)
    assert factor & (factor - 1) == 0
    assert mean_error(factor) <= error
    assert factor == 1 or mean_error(factor / 2) > error
