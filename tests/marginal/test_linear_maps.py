"""Linear maps of marginals: their sensitivity, their price at the gate, what the transcript keeps, and the fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from margrave.accounting import (
    AddRemovePerson,
    AddRemoveRow,
    Budget,
    ReplacePerson,
    ReplaceRow,
    Sensitivity,
    Unit,
    sensitivity,
)
from margrave.domain import Domain
from margrave.errors import InputError, MargraveError, ModelTooLargeError
from margrave.marginal import IDENTITY, LinearMap
from margrave.marginal.residual import residual
from margrave.models import (
    EntropyProjectionFit,
    GraphicalFit,
    MultiplicativeWeightsFit,
    ParticleFit,
    RelaxedFit,
)
from margrave.models.graphical.fit import Problem
from margrave.models.terms import terms_of, unfolded
from margrave.privacy import Gaussian, MarginalGap, Private, SeededRandomness, protect
from margrave.provenance import Provenance
from margrave.release import Release
from margrave.report import render
from margrave.testing.replay import Recorder, ReplayRandomness, loss_replay
from margrave.transcript import Measurement, PublicTotal, Transcript
from margrave.types import Clique, FloatArray, IntArray
from tests.support.conformance import memory_table
from tests.support.rounds import first_round, next_round
from tests.support.tiny_table import UNITS, TinySchema, TinyTable, tiny_domain

DOMAIN = tiny_domain()
BC: Clique = ("b", "c")
BUDGET = Budget.zcdp(Fraction(10**6), 1e-9)
MAPS = {
    "prefixes": LinearMap.prefixes(DOMAIN, ["c"]),
    "prefixes of both": LinearMap.prefixes(DOMAIN, BC),
    "residual": LinearMap.residual(DOMAIN, BC),
    "weights": LinearMap(matrices={"c": np.array([[3, -1, 0, 2]])}),
    "weights and groups": LinearMap(
        {"b": np.array([0, 1, 1])}, {"c": np.array([[5, 0, 1, 1], [0, -2, 1, 4]])}
    ),
}


def changes(unit: Unit, query: LinearMap, domain: Domain) -> Iterator[tuple[Any, IntArray]]:
    """Every change of the answers between neighbors of the most rows: who comes and goes, and by how much."""
    cells = list(product(*map(range, domain.sizes)))

    def answers(cell: tuple[int, ...] | None, rows: int) -> IntArray:
        counts = np.zeros(domain.sizes, dtype=np.int64)
        if cell is not None:
            counts[cell] = rows
        return query.apply(domain.attributes, counts)

    k = unit.max_rows if isinstance(unit, AddRemovePerson | ReplacePerson) else 1
    ones: list[tuple[int, ...] | None] = [*cells]
    if not isinstance(unit, ReplaceRow):
        ones.append(None)
    others = ones if isinstance(unit, ReplaceRow | ReplacePerson) else [None]
    for one in ones:
        for other in others:
            yield (one, other), answers(one, k) - answers(other, k)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("name", MAPS)
def test_the_sensitivity_is_that_of_the_worst_neighbors(name: str, unit: Unit) -> None:
    query, domain = MAPS[name], DOMAIN.project(BC)
    moved = [change for _, change in changes(unit, query, domain)]
    found = sensitivity(unit, query, domain)
    assert found.l2_squared == max(int((m**2).sum()) for m in moved)
    l1 = max(int(np.abs(m).sum()) for m in moved)
    assert found.l1 == l1 if len(query.matrices) == 1 else found.l1 >= l1


@settings(max_examples=60, derandomize=True, deadline=None)
@given(data=st.data(), unit=st.sampled_from(UNITS))
def test_the_sensitivity_of_any_weights(data: st.DataObject, unit: Unit) -> None:
    sizes = {"a": data.draw(st.integers(1, 3)), "b": data.draw(st.integers(1, 3)), "c": 2}
    domain = Domain.of(sizes)
    weights = st.integers(-4, 4)
    mapped = data.draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, unique=True))
    matrices = {}
    for a in mapped:
        rows = st.lists(weights, min_size=sizes[a], max_size=sizes[a])
        matrices[a] = np.array(data.draw(st.lists(rows, min_size=1, max_size=3)), dtype=np.int64)
    if not all(m.any() for m in matrices.values()):
        return
    query = LinearMap(matrices=matrices)
    moved = [change for _, change in changes(unit, query, domain)]
    exact = max(int((m**2).sum()) for m in moved)
    if not exact and isinstance(unit, ReplaceRow):
        with pytest.raises(InputError, match="same answers for all tables"):
            sensitivity(unit, query, domain)
        return
    found = sensitivity(unit, query, domain)
    assert found.l2_squared == exact
    l1 = max(int(np.abs(m).sum()) for m in moved)
    assert found.l1 == l1 if len(matrices) == 1 else found.l1 >= l1


def test_prefixes_of_a_hundred_codes_are_priced_in_closed_form() -> None:
    domain = Domain.of({"age": 100, "pay": 80, "sex": 2})
    one = LinearMap.prefixes(domain, ["age"])
    alone = domain.project(["age"])
    assert sensitivity(AddRemoveRow(), one, alone) == Sensitivity(100, 100)
    assert sensitivity(ReplaceRow(), one, alone) == Sensitivity(99, 99)
    assert sensitivity(ReplaceRow(), one, domain.project(["age", "sex"])) == Sensitivity(200, 200)
    both = LinearMap.prefixes(domain, ["age", "pay"])
    found = sensitivity(ReplaceRow(), both, domain.project(["age", "pay"]))
    # the same code of one column, the first and the last of the other; or first-last against last-first
    assert found.l2_squared == max(100 * 80 - 80, 100 * 80 - 100, 100 + 80 - 2, 100 * 80 - 1)


def test_a_map_that_is_too_large_to_search_is_refused() -> None:
    domain = Domain.of(dict.fromkeys("pqr", 60))
    rng = np.random.default_rng(0)
    query = LinearMap(matrices={a: rng.integers(-9, 9, (2, 60)) for a in domain})
    assert sensitivity(AddRemoveRow(), query, domain).l2_squared > 0
    with pytest.raises(ModelTooLargeError, match="adding or removing"):
        sensitivity(ReplaceRow(), query, domain)


# What they compute.


def test_apply_spread_and_total_weights_agree() -> None:
    rng = np.random.default_rng(1)
    table = rng.integers(0, 9, (3, 4))
    for query in MAPS.values():
        answers = query.apply(BC, table)
        assert answers.dtype == np.int64
        assert answers.shape == query.domain(DOMAIN.project(BC)).sizes
        other = rng.normal(size=answers.shape)
        assert (other * answers).sum() == pytest.approx((query.spread(BC, other) * table).sum())
        matrix = np.kron(query.rows("b", 3), query.rows("c", 4))
        assert (matrix @ table.reshape(-1)).tolist() == answers.reshape(-1).tolist()
        weights = query.total_weights(BC, answers.shape)
        if weights is not None:
            assert (weights * answers).sum() == pytest.approx(table.sum())
    assert MAPS["residual"].total_weights(BC, (3, 4)) is None
    exact = residual(table.astype(np.float64)) * table.size
    assert_allclose(MAPS["residual"].apply(BC, table), exact)


def test_the_row_count_follows_from_prefixes() -> None:
    query = LinearMap.prefixes(DOMAIN, ["c"])
    entry = Measurement(("c",), np.array([10, 30, 60, 100]), 2.0, Fraction(1), query)
    transcript = Transcript((entry,))
    assert transcript.total() == pytest.approx(100.0)
    assert transcript.total_deviation() == pytest.approx(2.0)


@pytest.mark.parametrize(
    "query",
    [
        LinearMap(matrices={"c": np.ones((2, 3), dtype=np.int64)}),
        LinearMap(matrices={"c": np.ones((2, 4))}),  # type: ignore[dict-item]
        LinearMap(matrices={"c": np.zeros((2, 4), dtype=np.int64)}),
        LinearMap(matrices={"c": np.full((1, 4), 1 << 21)}),
        LinearMap(matrices={"c": np.full((1, 4), -(1 << 63))}),
        LinearMap({"c": np.array([0, 0, 1, 1])}, {"c": np.ones((1, 4), dtype=np.int64)}),
    ],
)
def test_a_map_that_does_not_fit_is_refused_before_anything_is_spent(query: LinearMap) -> None:
    with opened(AddRemoveRow(), SeededRandomness(0)) as private:
        with pytest.raises(InputError):
            private.measure([("c",)], Gaussian(scale=5.0), query=query)
        assert private.remaining == private.rho


# At the gate.


def rows_of(unit: Unit, mine: list[tuple[int, ...]]) -> TinyTable:
    by_person = isinstance(unit, AddRemovePerson | ReplacePerson)
    others = [(0, 1, 2), (1, 2, 0), (1, 0, 3)]
    schema = TinySchema(DOMAIN, person="who" if by_person else None)
    return TinyTable(schema, [*mine, *others], [0] * len(mine) + [1, 2, 3])


def opened(unit: Unit, randomness: Any, rows: list[tuple[int, ...]] | None = None) -> Private:
    table = rows_of(unit, [(0, 0, 0)] if rows is None else rows)
    return protect(table, unit=unit, budget=BUDGET, randomness=randomness)


def worst(unit: Unit, query: LinearMap) -> tuple[TinyTable, TinyTable]:
    """The two neighboring tables whose answers differ most."""
    (one, other), _ = max(
        changes(unit, query, DOMAIN.project(BC)), key=lambda found: int((found[1] ** 2).sum())
    )
    k = unit.max_rows if isinstance(unit, AddRemovePerson | ReplacePerson) else 1
    mine = [[] if cell is None else [(0, *cell)] * k for cell in (one, other)]
    return rows_of(unit, mine[0]), rows_of(unit, mine[1])


def asking(query: LinearMap) -> Callable[[Private], None]:
    def ask(private: Private) -> None:
        private.measure([BC, BC], Gaussian(rho=Fraction(1, 3)), query=query)
        private.measure([BC], Gaussian(scale=7.5), query=query)

    return ask


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("name", MAPS)
def test_the_worst_neighbors_cost_what_is_charged(name: str, unit: Unit) -> None:
    query = MAPS[name]
    loss, charged = loss_replay(asking(query), *worst(unit, query), unit, BUDGET)
    assert Fraction(999, 1000) < loss / charged <= 1


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_what_is_kept_depends_on_the_answers_alone(unit: Unit) -> None:
    query = MAPS["weights and groups"]
    recorder = Recorder(SeededRandomness(3))
    one, other = worst(unit, query)
    with protect(one, unit=unit, budget=BUDGET, randomness=recorder) as private:
        asking(query)(private)
        first = private.transcript.to_dict(), private.account().debits
    replay = ReplayRandomness(recorder.steps)
    with protect(other, unit=unit, budget=BUDGET, randomness=replay) as private:
        asking(query)(private)
        second = private.transcript.to_dict(), private.account().debits
    replay.finish()
    assert first == second


def test_marginals_that_a_map_moves_differently_are_asked_apart() -> None:
    query = LinearMap.prefixes(DOMAIN, ["c"])
    with opened(ReplaceRow(), SeededRandomness(0)) as private:
        for cliques in ([("c",), BC], [("a",), ("c",)], [("a",)]):
            with pytest.raises(InputError, match="different amounts"):
                private.measure(cliques, Gaussian(scale=5.0), query=query)
        assert private.remaining == private.rho
        assert len(private.measure([("a", "c"), BC], Gaussian(scale=5.0), query=query)) == 2


def test_a_map_that_changes_after_its_price_is_not_followed() -> None:
    class Growing(dict[str, IntArray]):
        reads = 0

        def __getitem__(self, key: str) -> IntArray:
            Growing.reads += 1
            return super().__getitem__(key) * (1 if Growing.reads < 3 else 50)

    query = LinearMap(matrices=Growing({"c": np.array([[1, 0, 2, 0]])}))
    recorder = Recorder(SeededRandomness(0))
    with opened(AddRemoveRow(), recorder) as private:
        private.measure([("c",)], Gaussian(scale=5.0), query=query)
        (entry,) = private.transcript.measurements
    truth = entry.query.apply(("c",), rows_of(AddRemoveRow(), [(0, 0, 0)]).count([("c",)])[("c",)])
    assert entry.query.matrices["c"].tolist() == [[1, 0, 2, 0]]
    assert recorder.steps[0].truth.tolist() == truth.tolist()  # type: ignore[union-attr]
    assert entry.rho == Fraction(4, 2 * 25)


def test_a_score_of_a_map_is_refused() -> None:
    query = LinearMap.prefixes(DOMAIN, ["c"])
    score = MarginalGap({("c",): np.zeros(4)}, {("c",): 1.0}, {("c",): 0.0}, query)
    with opened(AddRemoveRow(), SeededRandomness(0)) as private:
        with pytest.raises(InputError, match="many answers"):
            private.select([("c",)], score, rho=Fraction(1, 9))
        assert private.remaining == private.rho


def test_a_resumed_run_asks_for_the_same_map(tmp_path: Path) -> None:
    table = memory_table(dict(zip(DOMAIN, DOMAIN.sizes, strict=True)), [(0, 1, 2), (1, 1, 0)])
    where: dict[str, Any] = {"unit": AddRemoveRow(), "budget": BUDGET}
    path = tmp_path / "run.journal"

    def ask(query: LinearMap, resume: bool) -> list[int]:
        with protect(
            table, randomness=SeededRandomness(1), journal=path, resume=resume, **where
        ) as private:
            found = private.measure([("c",)], Gaussian(scale=5.0), query=query)
            if not resume:
                raise KeyboardInterrupt
            return list(found.measurements[0].values.tolist())

    with pytest.raises(KeyboardInterrupt):
        ask(LinearMap.prefixes(DOMAIN, ["c"]), resume=False)
    with pytest.raises(MargraveError):
        ask(LinearMap(matrices={"c": np.eye(4, dtype=np.int64)}), resume=True)


# What a release keeps.


def released() -> Release:
    sizes = dict(zip(DOMAIN, DOMAIN.sizes, strict=True))
    rows = [(i % 2, i % 3, (i * i) % 4) for i in range(60)]
    with protect(
        memory_table(sizes, rows),
        unit=ReplaceRow(),
        budget=BUDGET,
        randomness=SeededRandomness(4),
    ) as private:
        private.measure([BC], Gaussian(scale=3.0), query=MAPS["weights and groups"])
        private.measure([(a,) for a in DOMAIN], Gaussian(scale=3.0))
        known = private.transcript
        model = GraphicalFit()(private.domain, known, rng=np.random.default_rng(0))
        return Release(private.schema, model, known, private.account(), Provenance("by hand"))


def test_a_saved_release_holds_maps_and_its_account_is_checked(tmp_path: Path) -> None:
    made = released()
    made.save(tmp_path / "a.margrave")
    back = Release.load(tmp_path / "a.margrave", verify=False)
    one, other = made.transcript.measurements[0], back.transcript.measurements[0]
    assert one.query.key == other.query.key
    assert one.to_dict() == other.to_dict()
    assert other.to_dict()["mapped"] == ["c"]
    most = one.query.max_weight
    words = f"Counted b, c (rare values together) (sums of cells with weights up to {most})"
    assert words in render(made)
    assert not [f for f in back.verify().findings if "price" in f]
    cheaper = replace(one, rho=one.rho / 2)
    entries = tuple(cheaper if e is one else e for e in made.transcript)
    findings = replace(made, transcript=Transcript(entries)).verify().findings
    assert any("less than its price" in f for f in findings)


# Fits.


def observed(
    clique: Clique,
    table: FloatArray,
    query: LinearMap = IDENTITY,
    scale: float = 2.0,
    seed: int = 0,
) -> Measurement:
    others = tuple(i for i, a in enumerate(DOMAIN) if a not in clique)
    truth = query.apply(clique, table.sum(axis=others))
    noise = np.random.default_rng(seed).normal(0.0, scale, truth.shape)
    values = np.rint(truth + noise).astype(np.int64)
    return Measurement(clique, values, scale, Fraction(1, 8), query)


def some_table() -> FloatArray:
    return np.rint(300.0 * np.random.default_rng(5).gamma(0.7, 1.0, DOMAIN.sizes))


N = float(some_table().sum())


def loss(model: Any, entries: list[Measurement]) -> float:
    answers = [m.query.apply(m.clique, np.asarray(model.project(m.clique).values)) for m in entries]
    return sum(
        float((((a - m.values) / m.scale) ** 2).sum()) / 2
        for a, m in zip(answers, entries, strict=True)
    )


def test_the_gradient_of_the_dual_is_its_slope() -> None:
    table = some_table()
    plain = [observed(("a", "b"), table)]
    maps = [observed(BC, table, MAPS["weights and groups"], 3.0), observed(BC, table, MAPS["prefixes"])]  # fmt: skip
    problem = Problem(DOMAIN, terms_of(DOMAIN, plain), N, 0.3, maps)
    rng = np.random.default_rng(0)
    point = 0.1 * rng.normal(size=problem.start(None).size)
    _, gradient, _ = problem.objective(point)
    for _ in range(10):
        way = rng.normal(size=point.size)
        up, down = (problem.objective(point + s * 1e-5 * way)[0] for s in (1, -1))
        assert (up - down) / 2e-5 == pytest.approx(float(gradient @ way), rel=1e-5)


def test_a_graphical_fit_of_an_invertible_map_is_that_of_the_marginal() -> None:
    """Prefixes without noise tell what cells do: with the same table both fits find it."""
    table = some_table()
    query = LinearMap.prefixes(DOMAIN, BC)
    rng = np.random.default_rng(0)
    entries = [observed(("a", "b"), table, scale=0.1), observed(BC, table, query, scale=0.1)]
    model = GraphicalFit()(DOMAIN, Transcript((PublicTotal(int(N)), *entries)), rng=rng)
    found = np.asarray(model.project(BC).values)
    assert_allclose(found, table.sum(axis=0), atol=0.02 * N / 12)
    assert loss(model, entries) < sum(m.values.size for m in entries)


@pytest.mark.parametrize("name", MAPS)
def test_a_graphical_fit_explains_a_map_to_within_its_noise(name: str) -> None:
    table = some_table()
    query = MAPS[name]
    entries = [observed((a,), table) for a in DOMAIN]
    entries += [observed(BC, table, query, scale=5.0), observed(("a", "c"), table)]
    transcript = Transcript((PublicTotal(int(N)), *entries))
    model = GraphicalFit()(DOMAIN, transcript, rng=np.random.default_rng(0))
    assert loss(model, entries) < sum(m.values.size for m in entries)
    state = first_round(GraphicalFit(), DOMAIN, transcript)
    warm = GraphicalFit().model(next_round(GraphicalFit(), state, transcript))
    assert loss(warm, entries) < 2 * sum(m.values.size for m in entries)


@pytest.mark.parametrize(
    ("fit", "rounds"),
    [
        (MultiplicativeWeightsFit(passes=300), 1),
        (MultiplicativeWeightsFit(at_once=True), 100),  # one update a measurement
        (EntropyProjectionFit(max_iterations=100), 1),
    ],
)
def test_weights_come_near_the_answers_of_prefixes(fit: Any, rounds: int) -> None:
    table = some_table()
    prefixes = observed(BC, table, MAPS["prefixes of both"], scale=5.0)
    entries = [observed(("a",), table), *[prefixes] * rounds]
    model = fit(DOMAIN, Transcript((PublicTotal(int(N)), *entries)), rng=np.random.default_rng(0))
    found = entries[1].query.apply(BC, np.asarray(model.project(BC).values))
    before = entries[1].query.apply(BC, np.full((3, 4), N / 12))
    error = np.abs(found - entries[1].values).max()
    assert error < 0.1 * np.abs(before - entries[1].values).max()


@pytest.mark.parametrize("name", MAPS)
def test_a_mixture_comes_near_the_answers_of_a_map(name: str) -> None:
    table = some_table()
    query = MAPS[name]
    entries = [observed((a,), table) for a in DOMAIN] + [observed(BC, table, query, scale=5.0)]
    fit = RelaxedFit(components=48, steps=200, cold_steps=1500)
    model = fit(DOMAIN, Transcript((PublicTotal(int(N)), *entries)), rng=np.random.default_rng(0))
    found = query.apply(BC, np.asarray(model.project(BC).values))
    flat = N * np.multiply.outer(table.sum(axis=(0, 2)) / N, table.sum(axis=(0, 1)) / N)
    apart = np.abs(query.apply(BC, flat) - entries[-1].values).max()
    assert np.abs(found - entries[-1].values).max() < 0.5 * apart + 3 * 5.0


def test_counts_that_a_map_asks_for_are_unfolded() -> None:
    entry = observed(BC, some_table(), MAPS["prefixes"])
    answers = unfolded(DOMAIN, entry)
    assert len(answers) == 12
    assert [a.value for a in answers] == entry.values.reshape(-1).tolist()  # type: ignore[union-attr]
    assert answers[5].query.codes == ((1,), (0, 1))  # type: ignore[union-attr]
    with pytest.raises(InputError, match="weighted sums"):
        unfolded(DOMAIN, observed(BC, some_table(), MAPS["weights"]))


def test_particles_refuse_a_map_with_the_remedy() -> None:
    with pytest.raises(InputError, match="GraphicalFit"):
        ParticleFit(particles=50, epochs=2)(
            DOMAIN,
            Transcript((PublicTotal(50), observed(BC, some_table(), MAPS["prefixes"]))),
            rng=np.random.default_rng(0),
        )
