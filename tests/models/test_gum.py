"""GUM: what consistency promises, against least squares; the moves of records, and where they end."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

from margrave.domain import Codes, Domain
from margrave.errors import InputError
from margrave.marginal import LinearMap, LinearQuery, project_array
from margrave.marginal.counting import count_cliques
from margrave.models import GUMFit, Needs
from margrave.models.best_response.blocks import Blocks
from margrave.models.gum import kernels
from margrave.models.gum.consistency import agreeing, consistent, norm_sub, shared_sets
from margrave.models.gum.targets import CountTarget, WorkOrder, possible_cells
from margrave.models.gum.update import Chooser, PassSchedule, gradual_update
from margrave.models.terms import Term
from margrave.structural_zeros import StructuralZeros, violating
from margrave.transcript import Answer, Measurement, PublicTotal, Transcript
from margrave.types import Clique, FloatArray

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4, "d": 5, "e": 2})
ORDERED = StructuralZeros(("c", "d"), np.arange(4)[:, None] <= np.arange(5))
RULED = Domain(DOMAIN.attributes, DOMAIN.sizes, (ORDERED,))
PAIRS = list(combinations(DOMAIN, 2))


def table(rows: int = 4000, seed: int = 0, domain: Domain = DOMAIN) -> Codes:
    """Possible records whose columns hang together."""
    rng = np.random.default_rng(seed)
    level = rng.random(8 * rows)
    values = np.array(
        [np.minimum(k - 1, k * (level + rng.random(8 * rows)) / 2) for k in domain.sizes]
    ).astype(int)
    possible = ~violating(domain.zeros, lambda a: values[domain.index(a)], 8 * rows)
    return Codes(domain, values[:, possible][:, :rows])


def noisy(codes: Codes, cliques: Sequence[Clique], scale: float, seed: int = 0) -> Transcript:
    rng = np.random.default_rng(seed)
    counts = count_cliques(codes, cliques)
    found = [
        Measurement(
            c,
            counts[c] + np.round(scale * rng.standard_normal(counts[c].shape)).astype(np.int64),
            max(scale, 0.1),
            Fraction(1),
        )
        for c in cliques
    ]
    return Transcript((PublicTotal(len(codes)), *found))


def some_terms(cliques: Sequence[Clique], seed: int = 0) -> list[Term]:
    """Return noise with scales far apart."""
    rng = np.random.default_rng(seed)
    terms = []
    for c in cliques:
        values = rng.normal(5.0, 4.0, DOMAIN.shape(c))
        terms.append(Term(c, values, np.full(values.shape, rng.uniform(0.3, 5.0))))
    return terms


def apart(cliques: Sequence[Clique], values: Sequence[FloatArray]) -> float:
    """Return the largest difference of two marginals on what they share."""
    worst = 0.0
    for (c, x), (d, y) in combinations(list(zip(cliques, values, strict=True)), 2):
        common = tuple(a for a in c if a in d)
        worst = max(
            worst, float(np.abs(project_array(x, c, common) - project_array(y, d, common)).max())
        )
    return worst


# Consistency.

TANGLED: list[list[Clique]] = [
    PAIRS,
    [("a",), ("b",), ("a", "b", "c"), ("b", "c", "d"), ("c", "d", "e"), ("a", "e")],
    [("a", "b", "c", "d"), ("b", "c", "d", "e"), ("a", "c", "e"), ("d",)],
    [("a", "b"), ("c", "d")],
    list(combinations(DOMAIN, 3)),
]


@pytest.mark.parametrize("cliques", TANGLED)
def test_shared_sets_are_all_intersections(cliques: list[Clique]) -> None:
    sets = {frozenset(c) for c in cliques}
    found = {a & b for a, b in combinations(sets, 2)}
    while more := {a & b for a, b in combinations(found | sets, 2)} - found - sets:
        found |= more
    shared = [frozenset(s) for s in shared_sets(DOMAIN, cliques)]
    assert {s for s in shared if s} == {s for s in found | (sets & set(shared)) if s}
    assert [len(s) for s in shared] == sorted(len(s) for s in shared)


@pytest.mark.parametrize("cliques", TANGLED)
def test_all_that_marginals_share_agrees(cliques: list[Clique]) -> None:
    values = agreeing(DOMAIN, some_terms(cliques), 77.0, {})
    assert apart(cliques, values) < 1e-9
    assert max(abs(v.sum() - 77.0) for v in values) < 1e-9


def least_squares(terms: Sequence[Term], total: float) -> list[FloatArray]:
    """Return the nearest marginals, in noise scales, that agree and sum to the total."""
    sizes = [t.values.size for t in terms]
    starts = np.cumsum([0, *sizes])
    rows, right = [], []
    for i, t in enumerate(terms):
        row = np.zeros(starts[-1])
        row[starts[i] : starts[i + 1]] = 1.0
        rows.append(row)
        right.append(total)
        for j in range(i):
            common = tuple(a for a in t.clique if a in terms[j].clique)
            for cell in np.ndindex(*DOMAIN.shape(common)):
                row = np.zeros(starts[-1])
                for k, sign in ((i, 1.0), (j, -1.0)):
                    at: list[Any] = [slice(None)] * len(terms[k].clique)
                    for a, code in zip(common, cell, strict=True):
                        at[terms[k].clique.index(a)] = code
                    mask = np.zeros(terms[k].values.shape)
                    mask[tuple(at)] = sign
                    row[starts[k] : starts[k + 1]] = mask.reshape(-1)
                rows.append(row)
                right.append(0.0)
    y = np.concatenate([t.values.reshape(-1) for t in terms])
    variance = np.concatenate([t.scales.reshape(-1) ** 2 for t in terms])
    a, b = np.array(rows), np.array(right)
    x = y + variance * (a.T @ (np.linalg.pinv(a * variance @ a.T) @ (b - a @ y)))
    return [
        x[s : s + n].reshape(t.values.shape) for s, n, t in zip(starts, sizes, terms, strict=False)
    ]


@pytest.mark.parametrize(
    "cliques",
    [
        [("a", "b"), ("b", "c")],
        [("b",), ("a", "b"), ("b", "c", "d"), ("b", "e")],
        [("a", "b", "c"), ("b", "c", "d")],
        [("a", "b"), ("a", "b", "c"), ("a", "b", "d")],
    ],
)
def test_inverse_variances_are_least_squares(cliques: list[Clique]) -> None:
    """Where all marginals share the same set, one average is the optimum."""
    terms = some_terms(cliques, seed=3)
    for mine, best in zip(
        agreeing(DOMAIN, terms, 40.0, {}), least_squares(terms, 40.0), strict=True
    ):
        assert np.abs(mine - best).max() < 1e-8


def subtract_by_hand(values: FloatArray, total: float) -> FloatArray:
    """Norm-Sub in the words of the paper."""
    found = values.copy()
    for _ in range(1000):
        found = np.maximum(found, 0.0)
        positive = found > 0
        found[positive] -= (found.sum() - total) / positive.sum()
    return found


@pytest.mark.parametrize("seed", range(5))
def test_norm_sub(seed: int) -> None:
    values = np.random.default_rng(seed).normal(2.0, 5.0, (3, 4))
    total = max(1.0, float(values.sum()))
    found = norm_sub(values, total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total, abs=1e-9)
    assert np.abs(found - subtract_by_hand(values, total)).max() < 1e-9
    kept = np.array([[1, 0, 1, 1]] * 3)
    assert not norm_sub(values, total, kept)[kept == 0].any()
    assert np.allclose(norm_sub(found, total), found)


@pytest.mark.parametrize("domain", [DOMAIN, RULED], ids=["free", "ruled"])
def test_targets_are_nearly_counts_of_one_table(domain: Domain) -> None:
    codes = table(domain=domain)
    counts = count_cliques(codes, PAIRS)
    rng = np.random.default_rng(0)
    terms = [
        Term(c, counts[c] + rng.normal(0, 40.0, counts[c].shape), np.full(counts[c].shape, 40.0))
        for c in PAIRS
    ]
    blocks = Blocks.listed(domain)
    possible = {c: possible_cells(domain, blocks, c) for c in PAIRS}
    assert int(possible["c", "d"].sum()) == (domain.possible(("c", "d")))
    made = consistent(domain, terms, len(codes), possible, rounds=50)
    assert min(t.values.min() for t in made) >= 0
    assert all(t.values.sum() == pytest.approx(len(codes)) for t in made)
    assert apart(PAIRS, [t.values for t in made]) < 2.0
    assert all(not t.values[possible[t.clique] == 0].any() for t in made)
    errors = [
        sum(np.abs(t.values - counts[t.clique]).sum() for t in some) for some in (terms, made)
    ]
    assert errors[1] < 0.7 * errors[0]


# The moves.


@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_as_many_records_come_as_go(alpha: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        counts = rng.multinomial(200, rng.dirichlet(np.full(12, 0.5)))
        targets = rng.multinomial(200, rng.dirichlet(np.full(12, 0.5))).astype(float)
        added, freed = np.empty_like(counts), np.empty_like(counts)
        moved = kernels.find_moves(counts, targets, alpha, rng.random(), added, freed)
        assert added.sum() == moved <= freed.sum() <= moved + 1
        gap = targets - counts
        most = np.minimum(gap, alpha * np.where(counts > 0, counts, targets))
        assert (np.abs(added - np.maximum(most, 0)) < 1).all()
        assert (freed <= counts).all()
        assert not freed[gap >= 0].any()
        if alpha == 1.0:
            assert (
                np.abs(counts - freed + added - targets)[counts > 0] <= np.abs(gap)[counts > 0]
            ).all()


def test_records_are_taken_evenly_from_their_cells() -> None:
    rng = np.random.default_rng(1)
    cells = rng.permutation(np.repeat(np.arange(3), [10, 20, 30]))
    counts, copies, freed = np.array([10, 20, 30]), np.array([4, 0, 0]), np.array([0, 5, 30])
    times = np.zeros(60)
    for _ in range(2000):
        donors, places = np.empty(4, dtype=np.int64), np.empty(35, dtype=np.int64)
        uniform = rng.random(60, dtype=np.float32)
        assert kernels.find_records(cells, counts, copies, freed, uniform, donors, places) == (
            4,
            35,
        )
        assert np.bincount(cells[places], minlength=3).tolist() == freed.tolist()
        assert (cells[donors] == 0).all()
        times[donors] += 1
        times[places] += 1
    for cell, chance in ((0, 0.4), (1, 0.25), (2, 1.0)):
        assert np.abs(times[cells == cell] / 2000 - chance).max() < 0.05


def test_choices_of_a_part_follow_their_weights() -> None:
    chooser = Chooser.of(np.array([1, 0, 1, 0, 1]), np.array([1.0, 2.0, 3.0, 2.0, 4.0]))
    drawn = chooser.draw(np.repeat([0, 1], 8000), np.random.default_rng(0))
    assert set(drawn[:8000]) == {1, 3}
    shares = np.bincount(drawn[8000:], minlength=5) / 8000
    assert np.abs(shares - [1 / 8, 0, 3 / 8, 0, 4 / 8]).max() < 0.02


def order_of(cliques: Sequence[Clique]) -> WorkOrder:
    blocks = Blocks.listed(DOMAIN)
    ones = {c: np.ones(DOMAIN.shape(c)) for c in cliques}
    return WorkOrder.of(
        [CountTarget.of(DOMAIN, blocks, Term(c, ones[c], ones[c])) for c in cliques]
    )


def test_columns_of_one_marginal_are_appended_and_parts_made_apart() -> None:
    tree = order_of([("a", "b"), ("b", "c"), ("b", "d"), ("e",), ("b",)])
    assert tree.groups == ()
    assert len(tree.appended) == 5
    cycle = order_of([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("e",)])
    assert [len(g) for g in cycle.groups] == [3]
    assert sorted(t for t, _ in cycle.appended) == [3, 4]


def test_parts_that_share_no_column_are_independent() -> None:
    """Copies of whole records would tie them together."""
    six = Domain.of(dict.fromkeys("uvwxyz", 3))
    codes = Codes(six, np.repeat(np.arange(3), 1000)[None, :].repeat(6, axis=0))
    cliques = [*combinations("uvw", 2), *combinations("xyz", 2)]
    model = GUMFit()(six, noisy(codes, cliques, 0.0), rng=np.random.default_rng(0))
    assert np.abs(model.project(("u", "x")).values - 3000 / 9).max() < 60
    assert np.abs(model.project(("u", "v")).values - 1000 * np.eye(3)).max() < 60


# Where it ends.


def distances(cliques: Sequence[Clique], transcript: Transcript, **fit: Any) -> dict[Clique, float]:
    model = GUMFit(**fit)(DOMAIN, transcript, rng=np.random.default_rng(2))
    counts = {m.clique: m.values for m in transcript.measurements}
    return {c: float(np.abs(model.project(c).values - counts[c]).sum()) for c in cliques}


def test_every_measured_marginal_comes_nearer() -> None:
    transcript = noisy(table(), PAIRS, 0.0)
    start, end = distances(PAIRS, transcript, passes=0), distances(PAIRS, transcript)
    assert all(end[c] < 0.5 * start[c] for c in PAIRS)
    assert sum(end.values()) < 0.03 * len(PAIRS) * 4000


def test_passes_come_nearer_on_average() -> None:
    codes, blocks = table(), Blocks.listed(DOMAIN)
    counts = count_cliques(codes, PAIRS)
    targets = [
        CountTarget.of(DOMAIN, blocks, Term(c, counts[c].astype(float), np.ones(counts[c].shape)))
        for c in PAIRS
    ]
    rng = np.random.default_rng(0)
    start = np.array([rng.permutation(codes.column(a)) for a in DOMAIN]).T.astype(np.int32)
    weights = [np.ones(n) for n in DOMAIN.sizes]
    mean = []
    for passes in (0, 1, 4, 40):
        rows = gradual_update(start, targets, weights, PassSchedule(passes, 1.0, 0.84, 5), rng)
        made = [np.bincount(t.cells(rows), minlength=t.counts.size) for t in targets]
        errors = [
            np.abs(m - t.counts.reshape(-1)).sum() for m, t in zip(made, targets, strict=True)
        ]
        mean.append(np.mean(errors) / len(codes))
    assert all(after < before for before, after in pairwise(mean))
    assert mean[-1] < 0.03


def test_a_tree_needs_no_pass() -> None:
    tree = [("a", "b"), ("b", "c"), ("c", "d"), ("c", "e")]
    end = distances(tree, noisy(table(), tree, 0.0), passes=0)
    assert max(end.values()) < 0.01 * 4000


def test_structural_zeros_are_kept() -> None:
    codes = table(domain=RULED)
    cliques = [("a", "b"), ("b", "c"), ("a", "c"), ("a", "d"), ("d", "e"), ("a", "e")]
    transcript = noisy(codes, cliques, 5.0)
    model = GUMFit()(RULED, transcript, rng=np.random.default_rng(0))
    assert not model.project(("c", "d")).values[~ORDERED.possible].any()
    for c, counts in count_cliques(codes, cliques).items():
        assert np.abs(model.project(c).values - counts).sum() < 0.06 * len(codes)


def test_merged_codes_follow_their_own_column() -> None:
    codes = table()
    merged = LinearMap({"d": np.array([0, 1, 2, 2, 2])})
    counts = count_cliques(codes, [("d",), ("a", "d"), ("b", "d"), ("a", "b")])
    found = [Measurement(("d",), counts["d",], 0.1, Fraction(1))]
    for c in (("a", "d"), ("b", "d"), ("a", "b")):
        query = merged.within(c)
        found.append(Measurement(c, query.apply(c, counts[c]), 0.1, Fraction(1), query))
    transcript = Transcript((PublicTotal(len(codes)), *found))
    model = GUMFit()(DOMAIN, transcript, rng=np.random.default_rng(0))
    assert np.abs(model.project(("d",)).values - counts["d",]).sum() < 0.03 * len(codes)
    both = merged.apply(("a", "d"), model.project(("a", "d")).values - counts["a", "d"])
    assert np.abs(both).sum() < 0.03 * len(codes)


def test_the_number_of_records() -> None:
    transcript = noisy(table(1500), PAIRS, 3.0)
    for records, support in ((None, 1500), (64, 64)):
        model = GUMFit(records=records, passes=1)(DOMAIN, transcript, rng=np.random.default_rng(0))
        shares = model.places.weights * support  # type: ignore[attr-defined]
        assert np.abs(shares - np.round(shares)).max() < 1e-9
        assert model.total == 1500


def test_what_it_cannot_use_is_refused() -> None:
    answer = Answer(LinearQuery(("a",), ((1,),)), 3, 1.0, Fraction(1))
    with pytest.raises(InputError, match="GUMFit cannot be fitted to single cells"):
        GUMFit()(DOMAIN, Transcript((answer,)), rng=np.random.default_rng(0))
    names = [f"x{i}" for i in range(22)]
    rule = np.array([[True, True], [False, True]])
    chain = [StructuralZeros(pair, rule) for pair in pairwise(names)]
    with pytest.raises(InputError, match="more combinations"):
        GUMFit().check(Domain.of(dict.fromkeys(names, 2), chain), Needs())


@pytest.mark.parametrize(
    "wrong",
    [{"records": 0}, {"passes": -1}, {"alpha": 0.0}, {"alpha": 1.5}, {"decay": 0.0}, {"period": 0}],
)
def test_parameters_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="GUMFit needs"):
        GUMFit(**wrong)
