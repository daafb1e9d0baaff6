"""The genetic search: its loss by brute force, children told from their parents, and what it finds."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

from margrave.domain import Codes, Domain
from margrave.errors import InputError
from margrave.marginal import TOTAL, LinearMap, LinearQuery
from margrave.marginal.counting import count_cliques
from margrave.models import GeneticFit, Needs, empirical
from margrave.models.best_response.blocks import Blocks
from margrave.models.genetic import kernels, search
from margrave.models.genetic.fit import FEWEST, MOST, _choices
from margrave.models.genetic.search import Limits, evolve, evolve_queries
from margrave.models.genetic.statistics import Statistics, columns_of
from margrave.structural_zeros import StructuralZeros, violating
from margrave.transcript import Answer, Entry, Measurement, PublicReading, PublicTotal, Transcript
from margrave.types import Clique

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4, "d": 5})
ORDERED = StructuralZeros(("c", "d"), np.arange(4)[:, None] <= np.arange(5))
CHAINED = StructuralZeros(
    ("a", "c"), np.array([[True, True, False, True], [True, False, True, True]])
)
RULED = Domain(DOMAIN.attributes, DOMAIN.sizes, (ORDERED, CHAINED))
RHO = Fraction(1)


def table(rows: int = 500, seed: int = 0, domain: Domain = DOMAIN) -> Codes:
    """Possible records whose columns hang together."""
    rng = np.random.default_rng(seed)
    level = rng.random(20 * rows)
    values = np.array(
        [np.minimum(k - 1, k * (level + rng.random(20 * rows)) / 2) for k in domain.sizes]
    ).astype(int)
    possible = ~violating(domain.zeros, lambda a: values[domain.index(a)], 20 * rows)
    return Codes(domain, values[:, possible][:, :rows])


def measured(
    codes: Codes, clique: Clique, scale: float, seed: int = 0, query: LinearMap | None = None
) -> Measurement:
    query = query or LinearMap()
    counts = query.apply(clique, count_cliques(codes, [clique])[clique])
    noise = np.round(scale * np.random.default_rng(seed).standard_normal(counts.shape)).astype(
        np.int64
    )
    return Measurement(clique, counts + noise, scale, RHO, query)


def pairs(codes: Codes, scale: float) -> Transcript:
    """Every pair with its own noise, and the number of records, which is public."""
    found = [
        measured(codes, c, scale, i) for i, c in enumerate(combinations(codes.domain.attributes, 2))
    ]
    return Transcript((PublicTotal(len(codes)), *found))


MERGED = LinearMap({"c": np.array([0, 1, 1, 0]), "b": np.array([0, 0, 1])})
ENTRIES: tuple[Entry, ...] = (
    PublicTotal(480),
    measured(table(), ("a", "b"), 2.0, 1),
    measured(table(), ("b", "c", "d"), 5.0, 2),
    measured(table(), ("b", "c"), 3.0, 3, MERGED),
    measured(table(), ("d",), 1.0, 4),
    PublicReading(("a", "d"), np.linspace(0, 90, 10).reshape(2, 5), np.full((2, 5), 7.0), "hash"),
    Answer(LinearQuery(("a", "c"), ((1,), (2,))), 40, 2.5, RHO),
    Answer(LinearQuery(("c", "d"), ((0, 2), (1, 2, 4))), 120, 1.5, RHO),
    Answer(LinearQuery(("a", "b", "d"), ((0,), (0, 1), (3,))), 15, 4.0, RHO),
    Answer(TOTAL, 470, 1.0, RHO),
)


def loss_by_hand(codes: Codes, entries: tuple[Entry, ...], total: float) -> float:
    """Σ (n / m · q(X) − answer)² / scale², straight from the records."""
    loss, step = 0.0, total / len(codes)
    for entry in entries:
        if isinstance(entry, Measurement | PublicReading):
            counts = entry.query.apply(
                entry.clique, count_cliques(codes, [entry.clique])[entry.clique]
            )
            loss += float(((step * counts - entry.values) ** 2).sum()) / entry.scale**2
        elif isinstance(entry, Answer) and entry.query != TOTAL:
            columns = zip(entry.query.clique, entry.query.codes, strict=True)
            inside = np.all([np.isin(codes.column(a), c) for a, c in columns], axis=0).sum()
            loss += float(step * inside - entry.value) ** 2 / entry.scale**2
    return loss


def rows_of(domain: Domain, sites: Blocks, seed: int, records: int = 70) -> Any:
    return _choices(domain, sites, table(records, seed, domain), np.random.default_rng(0))


@pytest.mark.parametrize("domain", [DOMAIN, RULED], ids=["free", "ruled"])
def test_the_loss_is_that_of_the_answers(domain: Domain) -> None:
    sites = Blocks.of(domain)
    statistics = Statistics.of(domain, sites, Transcript(ENTRIES), records=70, hold=0.0)
    for seed in range(3):
        rows = rows_of(domain, sites, seed)
        codes = Codes.of(domain, sites.columns(rows))
        assert statistics.loss(rows) == pytest.approx(loss_by_hand(codes, ENTRIES, 480.0))


def test_what_was_asked_twice_is_one_answer_of_both() -> None:
    """Merging changes the loss by what does not depend on the records."""
    twice = (
        *ENTRIES,
        measured(table(), ("a", "b"), 3.0, 9),
        Answer(LinearQuery(("d",), ((0, 1),)), 90, 2.0, RHO),
    )
    twice = (*twice, Answer(LinearQuery(("d",), ((0, 1),)), 95, 3.0, RHO))
    twice = (*twice, measured(table(), ("b", "c"), 2.0, 8, MERGED))
    sites = Blocks.of(DOMAIN)
    statistics = Statistics.of(DOMAIN, sites, Transcript(twice), records=70, hold=0.0)
    apart = [
        statistics.loss(rows) - loss_by_hand(Codes.of(DOMAIN, sites.columns(rows)), twice, 480.0)
        for rows in (rows_of(DOMAIN, sites, seed) for seed in range(4))
    ]
    assert apart == pytest.approx([apart[0]] * 4)
    whole = [("a", "b"), ("b", "c", "d"), ("d",), ("a", "d"), ("a", "c")]
    assert (
        len(statistics.values) == sum(map(DOMAIN.cells, whole)) + 4 + 3 + 4 + 2
    )  # groups, and sets of codes


def test_columns_are_the_mean_of_all_marginals_that_hold_them() -> None:
    found = columns_of(DOMAIN, Transcript(ENTRIES).evidence, 480.0)
    own = [m for m in ENTRIES if isinstance(m, Measurement | PublicReading) and "d" in m.clique]
    sums = [m.values.sum(axis=tuple(i for i, a in enumerate(m.clique) if a != "d")) for m in own]
    precisions = np.array([1 / (m.values.size / 5 * m.scale**2) for m in own])
    mean = (precisions @ np.array(sums)) / precisions.sum()
    np.testing.assert_allclose(found["d"][0], mean + (480 - mean.sum()) / 5)
    assert found["d"][1] == 1.0
    assert found["c"][0].sum() == pytest.approx(480)
    whole = ENTRIES[2]
    assert isinstance(whole, Measurement)  # the other marginal with column c merges its codes
    along = whole.values.sum(axis=(0, 2))
    np.testing.assert_allclose(found["c"][0], along + (480 - along.sum()) / 4)


@pytest.mark.parametrize("domain", [DOMAIN, RULED], ids=["free", "ruled"])
@pytest.mark.parametrize("crossover", [0.0, 0.5, 1.0])
def test_a_generation_knows_what_it_gained(domain: Domain, crossover: float) -> None:
    sites = Blocks.of(domain)
    statistics = Statistics.of(domain, sites, Transcript(ENTRIES), records=70, hold=3.0)
    rows, rng = rows_of(domain, sites, 1), np.random.default_rng(0)
    before, gains = statistics.loss(rows), statistics.gains(rows)
    turns, state = search._turns(statistics), search._seed(rng)
    tried = np.empty(100, dtype=np.int64)
    changes = [
        kernels.generation(
            rows, rng.permutation(70), crossover, statistics.layout, gains, turns, state, tried
        )
        for _ in range(3)
    ]
    assert all(change <= 0 for change in changes)
    assert sum(changes) < 0
    assert statistics.loss(rows) == pytest.approx(before + sum(changes))
    np.testing.assert_allclose(gains, statistics.gains(rows), atol=1e-8)


def test_a_mutation_takes_the_best_of_all_codes() -> None:
    sites = Blocks.of(DOMAIN)
    statistics = Statistics.of(DOMAIN, sites, Transcript(ENTRIES), records=70, hold=0.0)
    scratch = np.empty(99, dtype=np.int64), np.empty(99), np.empty(99, dtype=np.int64)
    for record, site in [(0, 0), (3, 1), (7, 2), (11, 3), (12, 3)]:
        rows = rows_of(DOMAIN, sites, 2)
        losses = []
        for choice in range(DOMAIN.sizes[site]):
            other = rows.copy()
            other[record, site] = choice
            losses.append(statistics.loss(other))
        before, gains, turns = (
            statistics.loss(rows),
            statistics.gains(rows),
            search._turns(statistics),
        )
        state = np.zeros(1, dtype=np.uint64)
        change = kernels._mutate(
            rows[record], site, statistics.layout, gains, turns, state, *scratch
        )
        assert before + change == pytest.approx(min(losses))
        assert statistics.loss(rows) == pytest.approx(min(losses))


@pytest.mark.parametrize(
    ("mutations", "crossovers", "elite"), [(30, 0, 1), (20, 20, 2), (0, 40, 3), (10, 10, 5)]
)
def test_the_paper_search_keeps_its_books(mutations: int, crossovers: int, elite: int) -> None:
    sites = Blocks.of(RULED)
    statistics = Statistics.of(RULED, sites, Transcript(ENTRIES), records=70, hold=0.0)
    start = np.array([rows_of(RULED, sites, seed) for seed in range(elite)])
    rows = np.concatenate([start, start])
    gains, turns = np.array([statistics.gains(r) for r in rows]), search._turns(statistics)
    losses = np.array([statistics.loss(r) for r in start])
    slots = np.argsort(losses)
    losses, state = losses[slots], search._seed(np.random.default_rng(1))
    first = losses.copy()
    for _ in range(40):
        kernels.evolve(
            rows, gains, turns, losses, slots, 3, mutations, crossovers, statistics.layout, state
        )
        assert len(set(slots.tolist())) == elite
        assert losses.tolist() == sorted(losses)
        for loss, slot in zip(losses, slots, strict=True):
            assert statistics.loss(rows[slot]) == pytest.approx(loss)
            np.testing.assert_allclose(gains[slot], statistics.gains(rows[slot]), atol=1e-8)
    assert losses[0] < 0.9 * first[0]


def test_the_elite_are_the_best_of_parents_and_children() -> None:
    """One generation against all children that it can have: the least of many draws is the best of them."""
    domain = Domain.of({"a": 2, "b": 2})
    sites, codes = Blocks.of(domain), Codes(domain, np.array([[0, 0, 1, 1], [0, 1, 1, 1]]))
    statistics = Statistics.of(domain, sites, pairs(codes, 1.0), records=4, hold=0.0)
    rows = np.zeros((1, 4, 2), dtype=np.int64)
    children = []
    for record in range(4):
        for site in range(2):
            child = rows[0].copy()
            child[record, site] = 1
            children.append(statistics.loss(child))
    found = evolve(
        statistics,
        rows,
        Limits(1, 1, 0.0),
        mutations=400,
        crossovers=0,
        rng=np.random.default_rng(0),
    )
    assert statistics.loss(found[0]) == pytest.approx(min(children))


def test_crossovers_bring_entries_of_the_others() -> None:
    """Without mutations, a code that none of the elite has never comes."""
    sites, codes = Blocks.of(DOMAIN), table(100)
    statistics = Statistics.of(DOMAIN, sites, pairs(codes, 1.0), records=30, hold=0.0)
    start = np.zeros((2, 30, 4), dtype=np.int64)
    start[1, :, 3] = 2
    found = evolve(
        statistics,
        start,
        Limits(200, 200, 0.0),
        mutations=0,
        crossovers=50,
        rng=np.random.default_rng(0),
    )
    assert set(np.unique(found[0][:, 3])) == {0, 2}
    assert not found[0][:, :3].any()


@pytest.mark.parametrize(
    "fit",
    [
        GeneticFit(),
        GeneticFit(
            records=500,
            population=2,
            generations=20_000,
            window=500,
            tolerance=1e-3,
            one_way_weight=0.0,
        ),
    ],
    ids=["default", "paper"],
)
def test_exact_answers_are_found_again(fit: GeneticFit) -> None:
    codes = table()
    model = fit(DOMAIN, pairs(codes, 0.01), rng=np.random.default_rng(0))
    for clique, counts in count_cliques(codes, list(combinations(DOMAIN, 2))).items():
        assert np.abs(model.project(clique).values - counts).sum() < 0.02 * 500


def test_it_is_nearer_to_the_truth_than_its_answers_are() -> None:
    codes = table(3000)
    transcript = pairs(codes, 40.0)
    model = GeneticFit()(DOMAIN, transcript, rng=np.random.default_rng(0))
    found, noise = 0.0, 0.0
    for m in transcript.measurements:
        truth = count_cliques(codes, [m.clique])[m.clique]
        found += float(np.abs(model.project(m.clique).values - truth).sum())
        noise += float(np.abs(m.values - truth).sum())
    assert found < 0.9 * noise


def test_holding_keeps_columns_from_flattening() -> None:
    """Most cells are empty: the positive part of their noise draws records away from the few that are not."""
    domain = Domain.of({"a": 20, "b": 20, "c": 20})
    rng = np.random.default_rng(0)
    codes = Codes(domain, np.minimum(rng.geometric(0.5, (3, 2000)) - 1, 19))
    found = {}
    for hold in (0.0, 10.0):
        model = GeneticFit(one_way_weight=hold)(
            domain, pairs(codes, 10.0), rng=np.random.default_rng(1)
        )
        found[hold] = sum(
            np.abs(model.project((a,)).values - np.bincount(codes.column(a), minlength=20)).sum()
            for a in domain
        )
    assert found[10.0] < 0.8 * found[0.0]


@pytest.mark.parametrize("elite", [None, 2])
def test_no_record_is_ever_impossible(elite: int | None) -> None:
    codes = table(400, 3, RULED)
    fit = GeneticFit(population=elite, records=300, generations=200)
    for warm in (
        None,
        empirical(table(300, 4), 400.0),
    ):  # a model that knows nothing of the constraints
        model = fit.estimate(RULED, pairs(codes, 20.0), rng=np.random.default_rng(0), warm=warm)
        found = model.sample(rng=np.random.default_rng(0))
        assert not violating(RULED.zeros, found.column, len(found)).any()
        assert np.unique(found.values, axis=1).shape[1] > 20


def test_constraints_that_it_cannot_keep_are_refused() -> None:
    nothing = Domain.of(
        {"a": 2, "b": 2},
        [
            StructuralZeros(("a", "b"), np.eye(2, dtype=bool)),
            StructuralZeros(("a", "b"), ~np.eye(2, dtype=bool)),
        ],
    )
    with pytest.raises(InputError, match="No record satisfies"):
        GeneticFit().check(nothing, Needs(cliques=[("a",)]))
    names = [f"x{i}" for i in range(22)]
    ordered = [
        StructuralZeros(pair, np.array([[True, True], [False, True]])) for pair in pairwise(names)
    ]
    with pytest.raises(InputError, match="more combinations"):
        GeneticFit().check(Domain.of(dict.fromkeys(names, 2), ordered), Needs())


def test_it_goes_on_from_a_model() -> None:
    codes, rng = table(2000), np.random.default_rng(0)
    transcript = pairs(codes, 5.0)
    sites = Blocks.of(DOMAIN)
    statistics = Statistics.of(DOMAIN, sites, transcript, records=2000, hold=0.0)
    one = GeneticFit(generations=1, one_way_weight=0.0)
    losses = [
        statistics.loss(
            _choices(
                DOMAIN,
                sites,
                one.estimate(DOMAIN, transcript, rng=rng, warm=warm).sample(rng=rng),
                rng,
            )
        )
        for warm in (None, empirical(codes, 2000.0))
    ]
    assert losses[1] < 0.5 * losses[0]


def test_how_many_records_there_are() -> None:
    codes = table(5)
    assert GeneticFit().cells(DOMAIN, [("a", "b"), ("a", "b")]) == MOST * 4 + 12
    assert GeneticFit(records=7).sizes_with(DOMAIN, [("a",)], [("a",), ("b",)]).tolist() == [
        32.0,
        38.0,
    ]
    for records, expected in ((None, FEWEST), (7, 7)):
        model = GeneticFit(records=records)(DOMAIN, pairs(codes, 1.0), rng=np.random.default_rng(0))
        weights = model.places.weights * expected
        np.testing.assert_allclose(weights, np.round(weights), atol=1e-9)
        assert model.total == 5.0


def test_nothing_known_is_every_record_alike() -> None:
    model = GeneticFit(records=6000)(RULED, Transcript(), rng=np.random.default_rng(0))
    counts = count_cliques(model.sample(6000, rng=np.random.default_rng(0)), [("a", "c", "d")])[
        "a", "c", "d"
    ]
    possible = CHAINED.possible[:, :, None] & ORDERED.possible
    assert (counts > 0).tolist() == possible.tolist()
    assert np.ptp(counts[possible]) <= 1


def test_columns_of_more_codes_than_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = table(800)
    monkeypatch.setattr(search, "SIBLINGS", 2)
    few = GeneticFit(init_from_columns=False)(
        DOMAIN, pairs(codes, 0.01), rng=np.random.default_rng(0)
    )
    for clique, counts in count_cliques(codes, list(combinations(DOMAIN, 2))).items():
        assert np.abs(few.project(clique).values - counts).sum() < 0.1 * 800


def test_a_seed_repeats_it() -> None:
    one, two, three = (
        GeneticFit(population=elite)(DOMAIN, pairs(table(), 5.0), rng=np.random.default_rng(seed))
        .state()
        .arrays
        for elite, seed in ((None, 0), (None, 0), (None, 1))
    )
    assert {k: v.tolist() for k, v in one.items()} == {k: v.tolist() for k, v in two.items()}
    assert one["records"].tolist() != three["records"].tolist()


def test_it_stops_when_little_is_gained() -> None:
    sites = Blocks.of(DOMAIN)
    statistics = Statistics.of(DOMAIN, sites, pairs(table(), 5.0), records=500, hold=0.0)
    rows, losses = rows_of(DOMAIN, sites, 5, 500), []
    for tolerance in (0.5, 0.05, 0.0):
        found = evolve_queries(
            statistics, rows, Limits(60, 2, tolerance), crossover=0.1, rng=np.random.default_rng(0)
        )
        losses.append(statistics.loss(found))
    assert losses[0] > losses[1] >= losses[2]  # the last gains are small, and may be none
    none = evolve_queries(
        statistics, rows, Limits(60, 2, 0.999), crossover=0.1, rng=np.random.default_rng(0)
    )
    two = evolve_queries(
        statistics, rows, Limits(2, 9, 0.0), crossover=0.1, rng=np.random.default_rng(0)
    )
    assert none.tolist() == two.tolist()


@pytest.mark.parametrize(
    "wrong",
    [
        {"records": 0}, {"generations": 0}, {"window": 0}, {"population": 0}, {"mutations": -1},
        {"mutations": 0, "crossovers": 0}, {"crossover": 1.5}, {"tolerance": 1.0}, {"one_way_weight": -1.0},
        {"one_way_weight": float("inf")},
    ],
)  # fmt: skip
def test_parameters_that_make_no_search(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="genetic search"):
        GeneticFit(**wrong)


def test_impossible_records_start_as_possible_ones() -> None:
    codes, sites = table(300, 4), Blocks.of(RULED)
    assert violating(RULED.zeros, codes.column, 300).any()
    rows = _choices(RULED, sites, codes, np.random.default_rng(0))
    assert ((rows >= 0) & (rows < [len(site.choices) for site in sites.sites])).all()
    kept = ~violating(RULED.zeros, codes.column, 300)
    assert (
        Codes.of(RULED, sites.columns(rows)).values[:, kept].tolist()
        == codes.values[:, kept].tolist()
    )
