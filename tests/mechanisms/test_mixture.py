"""GEM, GEM^Pub, RAP and AIM's rounds on mixtures: what their papers claim, what they refuse, and published tables."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from margrave.accounting import AddRemoveRow, Budget, ReplaceRow
from margrave.data import MemoryTable
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import QueryFamily
from margrave.mechanisms import AIM, GEM, RAP, AIMMixture, GEMPub, Independent, Mechanism
from margrave.models import GeneratorFit, RelaxedFit
from margrave.privacy import SeededRandomness, protect
from margrave.public_table import PublicTable
from margrave.release import Release
from margrave.types import Clique, FloatArray
from margrave.workload import Workload
from tests.mechanisms.test_weights import adult, error_on
from tests.support.conformance import codes_of, memory_table, run_on, shaped, some_rows, standing_in
from tests.support.rounds import WrappedFit

FIT = GeneratorFit(hidden=(32,), latent_dim=8, components=64, rate=0.01, steps=60)
TABLE_FIT = RelaxedFit(components=64, steps=60)
MANY = {"a": 2, "b": 3, "c": 4, "d": 3, "e": 2}
ROWS = some_rows(MANY, 3000, seed=2)
TABLE = memory_table(MANY, ROWS)


def made(mechanism: Mechanism, rho: float | Fraction, table: Any = TABLE, seed: int = 0) -> Release:
    return run_on(
        mechanism, table, ReplaceRow(), Budget.zcdp(rho), SeededRandomness(seed), seed=seed
    )


def triples(domain: Domain) -> list[Clique]:
    return [domain.clique(c) for c in combinations(domain, 3)]


def errors(release: Release, table: MemoryTable) -> FloatArray:
    """Of every cell of every three-way marginal, as shares of the records."""
    cliques = triples(table.domain)
    truth, answers = table.count(cliques), release.model.answer(cliques)
    return (
        np.concatenate([np.abs(answers[c] - truth[c]).reshape(-1) for c in cliques]) / table.rows()
    )


MECHANISMS_HERE: dict[str, Mechanism] = {
    "gem": GEM(rounds=20, granularity="query", fit=FIT),
    "gem marginals": GEM(rounds=6, fit=FIT),
    "rap": RAP(rounds=7, queries_per_round=3, granularity="query", fit=TABLE_FIT),
    "rap marginals": RAP(rounds=6, fit=TABLE_FIT),
    "aim-mixture": AIMMixture(fit=TABLE_FIT),
    "aim with a network": AIM(rounds=20, fit=FIT),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS_HERE)
def test_errors_fall_with_the_budget(name: str) -> None:
    """From hardly anything to plenty, the mean error of three runs falls to a third or less."""
    poor, rich = (
        np.mean([errors(made(MECHANISMS_HERE[name], rho, seed=s), TABLE).mean() for s in range(3)])
        for rho in (1e-5, 10.0)
    )
    assert rich < poor / 3


def test_the_release_averages_the_second_half_of_the_rounds() -> None:
    """Of five rounds the last three: theta = beta theta + (1 − beta) theta_t, from the first of them."""
    seen: list[Any] = []

    class Watched(WrappedFit):
        def update(self, *question: Any, **more: Any) -> Any:
            seen.append(super().update(*question, **more))
            return seen[-1]

    fit = GeneratorFit(hidden=(8,), latent_dim=4, components=16, ema_decay=0.5, rate=0.05)
    made(standing_in(GEM(rounds=5, granularity="query"), Watched(fit)), 1.0)
    weights = [np.asarray(s.training.state.weights[-1][0], dtype=np.float64) for s in seen]
    assert len(weights) == 1 + 5
    assert not np.allclose(weights[3], weights[5])
    expected = 0.25 * weights[3] + 0.25 * weights[4] + 0.5 * weights[5]
    assert np.allclose(np.asarray(seen[-1].average[-1][0]), expected, atol=1e-5)


@pytest.mark.slow
def test_ranges_and_prefixes_are_asked_and_learned() -> None:
    queries = QueryFamily.prefixes(TABLE.domain, [("a", "c"), ("b", "c")], ["b", "c"])
    for mechanism in (
        GEM(queries=queries, rounds=12, granularity="query", fit=FIT),
        RAP(queries=queries, rounds=6, queries_per_round=2, granularity="query", fit=TABLE_FIT),
    ):
        release = made(mechanism, 100.0)
        assert all(a.query.clique in queries.cliques for a in release.transcript.answers)
        assert any(not a.query.is_cell for a in release.transcript.answers)
        off = [
            abs(a.query.count(release.model.project(a.query.clique).values) - a.value)
            for a in release.transcript.answers
        ]
        assert max(off) < 0.05 * len(ROWS)


@pytest.mark.slow
def test_public_records_help_where_the_budget_is_small() -> None:
    """Half of the records published, the other half private: the error of three runs is well below GEM's."""
    public = PublicTable(codes_of(TABLE.domain, ROWS[:1500]), "made up for the tests")
    private = memory_table(MANY, ROWS[1500:])
    fit = replace(FIT, pretraining=600)
    alone, helped, partly = (
        np.mean([errors(made(m, 1e-3, private, seed=s), private).mean() for s in range(3)])
        for m in (
            GEM(rounds=4, fit=fit),
            GEMPub(rounds=4, fit=fit, public=public),
            GEMPub(rounds=4, fit=fit, public=public.select(["a", "b", "c", "e"])),
        )
    )
    assert helped < 0.8 * alone
    assert partly < alone


def test_the_certificate_names_the_public_table() -> None:
    public = PublicTable(codes_of(TABLE.domain, ROWS[:50]), "made up for the tests")
    certificate = made(GEMPub(rounds=2, fit=FIT, public=public), 1.0).certificate()
    assert any(public.sha256 in line for line in certificate["public_inputs"])


@pytest.mark.slow
def test_a_wide_table_that_no_junction_tree_holds() -> None:
    """Forty columns, every pair of which may be measured: the error is well below that of independent columns."""
    rng = np.random.default_rng(0)
    base = rng.integers(3, size=(2000, 4))
    sizes = {f"c{i:02}": 3 for i in range(40)}
    rows = np.where(
        rng.random((2000, 40)) < 0.8, base[:, np.arange(40) % 4], rng.integers(3, size=(2000, 40))
    )
    table = memory_table(sizes, [tuple(r) for r in rows.tolist()])
    pairs = Workload.all_kway(table.domain, 2)
    truth = table.count(pairs.cliques)

    def error(mechanism: Mechanism) -> float:
        answers = made(mechanism, 30.0, table).model.answer(pairs.cliques)
        return float(np.mean([np.abs(answers[c] - truth[c]).sum() / 2000 for c in pairs.cliques]))

    mixture = AIMMixture(
        workload=pairs, rounds=120, fit=RelaxedFit(components=200, steps=40, cold_steps=400)
    )
    assert error(mixture) < error(Independent()) / 2


@pytest.mark.slow
@pytest.mark.data
def test_adult_reduced_as_in_the_paper() -> None:
    """Max error of all 35 triples at epsilon 1: by single queries, by whole marginals, and RAP's box far behind."""
    table = MemoryTable(*adult())
    shared: dict[str, Any] = {"rounds": 60, "granularity": "query"}
    assert error_on(table, GEM(**shared)) < 0.03
    softmax = error_on(table, RAP(**shared))
    assert softmax < 0.03
    assert (
        error_on(
            table,
            RAP(rounds=60, queries_per_round=1, granularity="query", fit=RelaxedFit(clip=True)),
        )
        > 3 * softmax
    )
    assert error_on(table, AIMMixture()) < 0.02


# Refusals.


def refused(mechanism: Mechanism, match: str) -> None:
    with protect(shaped("two columns"), unit=AddRemoveRow(), budget=Budget.zcdp(1)) as private:
        with pytest.raises(InputError, match=match):
            mechanism.run(private, rng=np.random.default_rng(0))
        assert private.remaining == 1


def test_without_its_libraries_nothing_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "margrave.models.mixture.fit.find_spec", lambda name: None if name == "optax" else 1
    )
    for mechanism in (GEM(), RAP(), AIMMixture(), AIM(fit=GeneratorFit())):
        refused(mechanism, r"optax[\s\S]*margrave\[inference\]")


def test_without_a_public_table_or_with_a_foreign_one_nothing_is_spent() -> None:
    refused(GEMPub(), "public table")
    other = Domain.of({"x": 2})
    refused(GEMPub(public=PublicTable(codes_of(other, [(0,)]), "made up for the tests")), "'x'")


@pytest.mark.parametrize(
    "make",
    [
        lambda: GEM(rounds=0), lambda: GEM(granularity="cell"), lambda: GEM(alpha=Fraction(1)),
        lambda: GEM(alpha=float("nan")), lambda: RAP(queries_per_round=0), lambda: RAP(rounds=-1),
        lambda: RAP(granularity=""),
        lambda: AIMMixture(rounds=0),
    ],
)  # fmt: skip
def test_parameters_out_of_range_are_refused(make: Any) -> None:
    with pytest.raises(InputError):
        make()
