"""DualQuery and FEM against their papers: prices, the law of each choice, and what the oracle is asked."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from margrave.accounting import (
    AddRemovePerson,
    AddRemoveRow,
    Budget,
    ReplacePerson,
    ReplaceRow,
    Unit,
)
from margrave.data import MemoryTable
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.evaluation import evaluate
from margrave.marginal import TOTAL, QueryFamily
from margrave.mechanisms import FEM, DualQuery
from margrave.mechanisms.parts import signed
from margrave.mechanisms.parts.budget import TOTAL_BUDGET_SHARE, measure_total
from margrave.mechanisms.parts.default_rounds import MAX_ROUNDS
from margrave.mechanisms.parts.growing_rounds import uniform
from margrave.models import BestResponse
from margrave.models.best_response import milp
from margrave.planning import plan_of
from margrave.privacy import SeededRandomness, protect
from margrave.privacy.exponential import epsilon_of, price_of
from margrave.release import Release
from margrave.report import render
from margrave.schema import Schema
from margrave.testing.replay import Chosen, Recorder
from margrave.workload import Workload
from tests.support.conformance import SIZES, memory_table, run_on, some_rows

MOVED: dict[Unit, int] = {
    AddRemoveRow(): 1,
    ReplaceRow(): 1,
    AddRemovePerson(3): 3,
    ReplacePerson(2): 2,
}
"""How far one count moves, by unit."""
EVERY_UNIT = pytest.mark.parametrize("unit", MOVED, ids=str)
BUDGET = Budget.zcdp(Fraction(1, 3))
ROWS = some_rows(SIZES, 60)
TABLE = memory_table(SIZES, ROWS, range(60))


def table_for(unit: Unit) -> MemoryTable:
    """The same rows; persons are named where the unit needs them."""
    return TABLE if isinstance(unit, AddRemovePerson | ReplacePerson) else memory_table(SIZES, ROWS)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """What the oracle was asked, and the records that it found."""
    heard: list[tuple[Any, Any]] = []

    class Heard(BestResponse):
        def best(self, objective: Any, *, rng: np.random.Generator) -> Any:
            found = super().best(objective, rng=rng)
            heard.append((objective, found.rows))
            return found

    monkeypatch.setattr(signed, "BestResponse", Heard)
    return heard


@pytest.mark.parametrize("seed", range(3))
def test_scores_rest_on_the_noisy_number_of_records(seed: int) -> None:
    """The true one would tell it, in every estimate that a choice is scored with."""
    table = memory_table(SIZES, ROWS)
    with protect(
        table, unit=AddRemoveRow(), budget=BUDGET, randomness=SeededRandomness(seed)
    ) as private:
        found = measure_total(private)
        (answer,) = private.transcript.answers
        assert answer.query == TOTAL
        assert found == private.transcript.total() == pytest.approx(answer.value)
        assert answer.value != table.rows()


def recorded(mechanism: Any, unit: Unit, seed: int = 0) -> tuple[Release, list[Chosen]]:
    """A release, and the choices behind the gate."""
    source = Recorder(SeededRandomness(seed))
    release = run_on(mechanism, table_for(unit), unit, BUDGET, source)
    return release, [s for s in source.steps if isinstance(s, Chosen)]


def predicates(queries: QueryFamily) -> list[Any]:
    """Each query and then each complement, as 0/1 over rows."""
    rows = np.array(ROWS)
    counted = []
    for query in (queries[i] for i in range(len(queries))):
        inside = np.ones(len(rows), dtype=bool)
        for a, codes in zip(query.clique, query.codes, strict=True):
            inside &= np.isin(rows[:, list(SIZES).index(a)], codes)
        counted.append(inside.mean())
    return counted


def on(row: Any, queries: QueryFamily) -> Any:
    """Each query on one record."""
    return np.array(
        [
            float(
                all(row[list(SIZES).index(a)] in c for a, c in zip(q.clique, q.codes, strict=True))
            )
            for q in (queries[i] for i in range(len(queries)))
        ]
    )


# Prices.


@pytest.mark.parametrize(("temperature", "moved", "times"), [(1, 1, 1), (Fraction(3, 7), 2, 5)])
def test_a_price_buys_its_temperature(temperature: Any, moved: int, times: int) -> None:
    """The gate's temperature for a price is epsilon / (2 moved); and the price is what an eighth of its square says."""
    rho = price_of(Fraction(temperature), moved, times)
    assert float(epsilon_of(rho / times) / (2 * moved)) == pytest.approx(
        float(temperature), rel=1e-12
    )


@EVERY_UNIT
def test_dual_query_pays_by_squares(unit: Unit) -> None:
    """Round t costs (t − 1)² / Σ k² of what the number of records leaves; the temperature is eta (t − 1) / n."""
    rounds, samples = 5, 3
    release, chosen = recorded(DualQuery(rounds=rounds, samples=samples, max_nodes=0), unit)
    debits = [d.rho for d in release.account.debits]
    left = BUDGET.rho
    if not isinstance(unit, ReplaceRow):
        assert debits.pop(0) == left * TOTAL_BUDGET_SHARE
        left *= 1 - TOTAL_BUDGET_SHARE
    assert debits == [left * Fraction(t * t, 1 + 4 + 9 + 16) for t in range(1, rounds)]
    assert len(chosen) == samples * (rounds - 1)
    n = release.transcript.total()
    eta = math.sqrt(2 * left * n**2 / (samples * MOVED[unit] ** 2 * 30))
    for i, choice in enumerate(chosen):
        assert choice.temperature is not None
        assert float(choice.temperature * 1024) == pytest.approx(
            eta * (i // samples + 1) / n, rel=1e-9
        )


@EVERY_UNIT
@pytest.mark.parametrize(
    ("rho", "records"), [(1e-6, 100.0), (0.01, 5000.0), (0.02, 48842.0), (10.0, 1e6)]
)
def test_dual_query_runs_as_many_rounds_as_its_eta_affords(
    unit: Unit, rho: float, records: float
) -> None:
    """One round more would need a smaller eta; but for the least and the most."""
    mechanism = DualQuery(eta=2.5, samples=40)
    rounds = mechanism.rounds_for(Fraction(rho), records, unit)

    def cost(t: int) -> float:
        return sum(
            40 * (2 * MOVED[unit] * 2.5 * (s - 1) / records) ** 2 / 8 for s in range(1, t + 1)
        )

    assert 2 <= rounds <= MAX_ROUNDS
    assert rounds == 2 or cost(rounds) <= rho
    assert rounds == MAX_ROUNDS or cost(rounds + 1) > rho


@EVERY_UNIT
def test_fem_pays_equal_parts(unit: Unit) -> None:
    release, chosen = recorded(FEM(rounds=6, samples=2), unit)
    debits = [d.rho for d in release.account.debits]
    left = BUDGET.rho
    if not isinstance(unit, ReplaceRow):
        assert debits.pop(0) == left * TOTAL_BUDGET_SHARE
        left *= 1 - TOTAL_BUDGET_SHARE
    assert debits == [left / 6] * 6
    for choice in chosen:
        assert choice.temperature is not None
        assert float(choice.temperature * 1024) == pytest.approx(
            math.sqrt(8 * left / 6) / (2 * MOVED[unit]), rel=1e-9
        )


# The law of a choice.


def law(choice: Chosen) -> Any:
    """The probabilities with which the gate chose: exactly those of the temperature and the scores."""
    assert choice.scores is not None
    assert choice.temperature is not None
    exponents = np.array([float(choice.temperature * s) for s in choice.scores])
    weights = np.exp(exponents - exponents.max())
    return weights / weights.sum()


def test_dual_query_draws_by_multiplicative_weights(asked: list[tuple[Any, Any]]) -> None:
    """P[q] ∝ exp(eta Σ_τ (q(D)/n − q(x_τ))), from the rows and the records found, product by product."""
    queries = QueryFamily.cells(TABLE.domain, [("a", "b"), ("c",)])
    release, chosen = recorded(
        DualQuery(queries=queries, rounds=4, samples=2, max_nodes=5), ReplaceRow()
    )
    eta = math.sqrt(2 * float(BUDGET.rho) * 60**2 / (2 * (1 + 4 + 9)))
    truth = np.array(predicates(queries))
    weights = np.ones(2 * len(queries))
    assert len(asked) == 4
    for t in range(1, 4):
        gap = truth - on(asked[t - 1][1][0], queries)
        weights = weights * np.exp(eta * np.concatenate([gap, -gap]))
        for choice in chosen[2 * (t - 1) : 2 * t]:
            # estimates lie on a grid of 1/1024 records
            assert law(choice) == pytest.approx(weights / weights.sum(), rel=1e-2, abs=1e-9)
    picked = [(e.number, e.sign) for e in release.transcript.query_selections]
    assert picked == [(c.answer % len(queries), 1 - 2 * (c.answer // len(queries))) for c in chosen]


def test_the_law_test_sees_another_eta(asked: list[tuple[Any, Any]]) -> None:
    """The same comparison fails for an eta that is a tenth off."""
    queries = QueryFamily.cells(TABLE.domain, [("a", "b"), ("c",)])
    _, chosen = recorded(DualQuery(queries=queries, rounds=4, samples=2, max_nodes=5), ReplaceRow())
    eta = 1.1 * math.sqrt(2 * float(BUDGET.rho) * 60**2 / (2 * (1 + 4 + 9)))
    gap = np.array(predicates(queries)) - on(asked[0][1][0], queries)
    weights = np.exp(eta * np.concatenate([gap, -gap]))
    assert not np.allclose(law(chosen[0]), weights / weights.sum(), rtol=1e-2)


def test_dual_query_finds_the_record_with_most_of_a_round(asked: list[tuple[Any, Any]]) -> None:
    """Each record has as many of its round's queries, and of complements, as any record can have."""
    release, _ = recorded(DualQuery(rounds=5, samples=7, max_nodes=100), ReplaceRow())
    entries = release.transcript.query_selections
    every = list(product(*(range(s) for s in SIZES.values())))
    for t, (_, rows) in enumerate(asked[1:]):
        drawn = entries[7 * t : 7 * t + 7]

        def met(row: Any, drawn: Any = drawn) -> int:
            inside = (
                all(
                    row[list(SIZES).index(a)] in c
                    for a, c in zip(e.chosen.clique, e.chosen.codes, strict=True)
                )
                for e in drawn
            )
            return sum(counted == (e.sign > 0) for counted, e in zip(inside, drawn, strict=True))

        assert met(rows[0].tolist()) == max(met(row) for row in every)
    state = release.model.state().arrays
    assert sorted(tuple(r[0].tolist()) for _, r in asked) == sorted(
        tuple(record)
        for record, weight in zip(
            state["records"].T.tolist(), state["weights"].tolist(), strict=True
        )
        for _ in range(round(5 * weight))
    )


def test_the_first_round_is_free_and_uniform(asked: list[tuple[Any, Any]]) -> None:
    """It is drawn without the gate: queries and complements alike, whatever the rows (a chi-square test)."""
    queries = QueryFamily.cells(TABLE.domain, [("a",), ("b",)])
    drawn = uniform(queries, 4000, np.random.default_rng(0))
    counts: dict[Any, int] = {}
    for pair in drawn:
        counts[pair] = counts.get(pair, 0) + 1
    assert len(counts) == 2 * len(queries)
    assert stats.chisquare(list(counts.values())).pvalue > 1e-6
    recorded(DualQuery(queries=queries, rounds=2, samples=3, max_nodes=0), ReplaceRow())
    source = Recorder(SeededRandomness(0))
    other = memory_table(SIZES, [(0, 0, 0)] * 60)
    run_on(
        DualQuery(queries=queries, rounds=2, samples=3, max_nodes=0),
        other,
        ReplaceRow(),
        BUDGET,
        source,
    )
    assert asked[0][1].tolist() == asked[2][1].tolist(), (
        "the first record of two runs on different tables"
    )


def test_fem_scores_the_last_round_and_keeps_every_query(asked: list[tuple[Any, Any]]) -> None:
    """Scores are against the records of the round before; the oracle gets all queries so far, and fresh noise."""
    queries = QueryFamily.cells(TABLE.domain, [("a", "c"), ("b",)])
    release, chosen = recorded(FEM(queries=queries, rounds=4, samples=5, sigma=2.0), ReplaceRow())
    truth = np.array(predicates(queries))
    for t in range(1, 4):
        estimate = np.mean([on(row, queries) for row in asked[t - 1][1]], axis=0)
        gaps = 60 * (truth - estimate)
        scores = chosen[t].scores
        assert scores is not None
        assert np.array(scores, dtype=float) / 1024 == pytest.approx(
            np.concatenate([gaps, -gaps]), abs=1e-3
        )
    sums: dict[Any, float] = {}
    for t, entry in enumerate(release.transcript.query_selections):
        sums[entry.chosen] = sums.get(entry.chosen, 0.0) + entry.sign
        objective = asked[t][0]
        held = dict(zip(objective.queries, objective.weights.tolist(), strict=True))
        assert held == {q: w for q, w in sums.items() if w}
    noise = [asked[t][0].bonus for t in range(4)]
    assert all(
        set(n) == set(SIZES) and n[a].shape == (5, s) for n in noise for a, s in SIZES.items()
    )
    assert len({n["a"].tobytes() for n in noise}) == 4


def test_fem_s_noise_is_exponential_with_mean_sigma(asked: list[tuple[Any, Any]]) -> None:
    """A Kolmogorov test of the noise, as a cost."""
    recorded(FEM(rounds=2, samples=400, sigma=3.0), ReplaceRow())
    costs = np.concatenate([-b.ravel() for objective, _ in asked for b in objective.bonus.values()])
    assert stats.kstest(costs, "expon", args=(0, 3.0)).pvalue > 1e-6
    assert stats.kstest(costs, "expon", args=(0, 3.3)).pvalue < 1e-6


# What comes of it.


@pytest.mark.parametrize(
    "mechanism", [DualQuery(samples=40, rounds=60, max_nodes=0), FEM(samples=40, rounds=40)]
)
def test_much_budget_makes_small_errors(mechanism: Any) -> None:
    """A third of those of uniform records at most, over all cells of three columns."""
    table = memory_table(SIZES, some_rows(SIZES, 2000))
    release = run_on(mechanism, table, AddRemoveRow(), Budget.zcdp(50), SeededRandomness(0))
    cells = table.count([("a", "b", "c")])["a", "b", "c"] / 2000
    off = np.abs(release.marginal(["a", "b", "c"]).values / release.model.total - cells).max()
    assert off < np.abs(cells - 1 / 24).max() / 3


@pytest.mark.parametrize("mechanism", [DualQuery(rounds=3, samples=2), FEM(rounds=3, samples=2)])
@pytest.mark.parametrize("unit", [AddRemoveRow(), ReplaceRow()], ids=str)
def test_a_release_without_measurements_says_so_everywhere(mechanism: Any, unit: Unit) -> None:
    release, _ = recorded(mechanism, unit)
    assert not release.transcript.counts_something
    assert [a.query for a in release.transcript.answers] == (
        [] if isinstance(unit, ReplaceRow) else [TOTAL]
    )
    assert {b.how for b in release.bounds()} == {
        "no bound: not measured, and no selection bounds it"
    }
    assert {b.records for b in release.bounds()} == {None}
    page = render(release)
    assert re.search("Chose (the complement of )?a ", page)
    assert "no bound" in page
    facts = release.certificate()
    assert sum("selected" in line for line in facts["transcript"]) == len(
        release.transcript.query_selections
    )
    found = evaluate(table_for(unit), release)
    assert found.synthetic_rows == round(release.model.total)
    steps = mechanism.steps(TABLE.domain, BUDGET.rho, unit)
    assert [(s.marginals, s.single) for s in steps] == (
        [] if isinstance(unit, ReplaceRow) else [(1, True)]
    )
    made = plan_of(TABLE.domain, mechanism, budget=BUDGET, unit=unit)
    assert made.counted == 2


# Refused before anything is spent.


@pytest.mark.parametrize(
    "make",
    [
        lambda: DualQuery(eta=0.0),
        lambda: DualQuery(eta=float("nan")),
        lambda: DualQuery(samples=0),
        lambda: DualQuery(rounds=1),
        lambda: DualQuery(max_nodes=-1),
        lambda: FEM(rounds=0),
        lambda: FEM(samples=0),
        lambda: FEM(sigma=float("inf")),
        lambda: FEM(sigma=-1.0),
        lambda: FEM(max_nodes=-1),
    ],
)
def test_parameters_out_of_range(make: Any) -> None:
    with pytest.raises(InputError):
        make()


def refused(mechanism: Any, match: str) -> None:
    budget = Budget.zcdp(1)
    with protect(
        table_for(AddRemoveRow()),
        unit=AddRemoveRow(),
        budget=budget,
        randomness=SeededRandomness(0),
    ) as gate:
        with pytest.raises(InputError, match=match):
            mechanism.run(gate, rng=np.random.default_rng(0))
        assert gate.remaining == budget.rho


@pytest.mark.parametrize("kind", [DualQuery, FEM])
def test_what_cannot_be_costs_nothing(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    other = QueryFamily.cells(Domain.of({"a": 2, "z": 9}), [("a", "z")])
    refused(kind(queries=other), "another domain")
    refused(kind(workload=Workload({("nope",): 1.0})), "nope")
    monkeypatch.setattr(milp, "find_spec", lambda name: None)
    refused(kind(max_nodes=10), "scipy")


def test_no_query_is_counted_twice() -> None:
    """Shares of records by query, against counting one by one."""
    queries = QueryFamily.ranges(Schema.coded(SIZES).domain, [("b", "c"), ("a",)], ["c"])
    rows = np.array(ROWS[:7])
    expected = np.mean([on(row, queries) for row in rows], axis=0)
    assert signed.answer_shares(queries, rows) == pytest.approx(expected)


@pytest.mark.parametrize("kind", [DualQuery, FEM])
def test_a_workload_or_queries(kind: Any) -> None:
    with pytest.raises(InputError, match="both given"):
        kind(
            workload=Workload.all_kway(TABLE.domain, 2),
            queries=QueryFamily.cells(TABLE.domain, [("a", "b")]),
        )


def test_eta_or_rounds() -> None:
    with pytest.raises(InputError, match="Give one of them"):
        DualQuery(eta=5.0, rounds=3)


@EVERY_UNIT
@pytest.mark.parametrize(
    "more", [{"eta": 0.01}, {"eta": 50.0}, {"eta": 1.0, "samples": 3}, {"rounds": 4}]
)
def test_the_certificate_tells_the_eta_that_the_budget_made(unit: Unit, more: Any) -> None:
    """P ∝ exp(eta (t − 1) / n · (q(D) − …)): epsilon / (2 s) of each choice, by which it is drawn."""
    release = run_on(
        DualQuery(max_nodes=0, **more), table_for(unit), unit, BUDGET, SeededRandomness(4)
    )
    told, records = release.provenance.parameters["eta_used"], release.transcript.total()
    samples = DualQuery(**more).samples
    choices_made = release.transcript.query_selections
    rounds = 1 + len(choices_made) // samples
    for i, choice in enumerate(choices_made):
        t = 1 + i // samples
        assert choice.epsilon / (2 * choice.sensitivity) == pytest.approx(
            told * t / records, rel=1e-9
        )
    if "eta" in more:
        assert release.provenance.parameters["eta"] == more["eta"]
        assert (told < more["eta"]) <= (rounds == 2)
    assert release.certificate()["mechanism"]["parameters"]["eta_used"] == told
