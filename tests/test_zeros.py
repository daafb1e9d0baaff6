"""Structural zeros through the whole library: models against enumeration, and no violating row from any mechanism."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from margrave.accounting import AddRemoveRow, Budget
from margrave.cli.main import cli
from margrave.data import MemoryTable
from margrave.domain import Codes, Domain
from margrave.errors import ModelTooLargeError, ReleaseError
from margrave.marginal import HalfSpace
from margrave.mechanisms import AIM, MST, GaussianMechanism, Independent
from margrave.models import (
    CELLS_PER_MB,
    AnswersFit,
    EntropyProjectionFit,
    Fit,
    GraphicalFit,
    GraphicalModel,
    MergedCodesModel,
)
from margrave.models.graphical import logspace, propagation
from margrave.models.graphical import model as models
from margrave.models.graphical.drawing_order import all_steps
from margrave.models.graphical.junction_tree import JunctionTree
from margrave.models.graphical.logspace import conditionals, log_calibrate, marginal_of
from margrave.privacy import SeededRandomness, protect
from margrave.release import Release
from margrave.schema import Categorical, Depends, Impossible, Integer, Ordered, Schema
from margrave.structural_zeros import StructuralZeros, any_possible, count_possible
from margrave.testing.replay import Recorder, ReplayRandomness, loss_replay
from margrave.transcript import PublicTotal, Transcript
from margrave.types import Clique
from tests.support.conformance import (
    CASES,
    FEW_PARTICLES,
    NO_RECORDS,
    SIZES,
    codes_of,
    keeps_zeros,
    measures,
    pairs,
    run_on,
    some_rows,
)
from tests.support.explicit import allowed, graphical, joint_of
from tests.support.first_cases import slow_but_first
from tests.support.strategies import (
    domain_of,
    generators,
    log_sum,
    measurement,
    random_potentials,
    seeded,
    some_cliques,
    some_domain,
    spread_sum,
)
from tests.support.strategies import marginal_of as summed
from tests.support.tiny_table import TinySchema, TinyTable


def rng_of(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def with_zeros(domain: Domain, rng: np.random.Generator, share: float = 0.5) -> Domain:
    """The domain with up to four random declarations that some record satisfies together."""
    record = [int(rng.integers(s)) for s in domain.sizes]
    zeros = []
    for clique in some_cliques(domain, rng, 4):
        possible = rng.random(domain.shape(clique)) >= share
        possible[tuple(record[domain.index(a)] for a in clique)] = True
        zeros.append(StructuralZeros(clique, possible))
    return Domain(domain.attributes, domain.sizes, tuple(zeros))


def violating(domain: Domain, codes: Codes) -> int:
    """How many records have an impossible combination."""
    wrong = np.zeros(len(codes), dtype=bool)
    for z in domain.zeros:
        wrong |= ~z.possible[tuple(codes.column(a) for a in z.clique)]
    return int(wrong.sum())


# Counting what is possible.


@seeded(150)
@given(rng=generators())
def test_possible_combinations_are_counted(rng: np.random.Generator) -> None:
    domain = with_zeros(some_domain(rng, 6, 4), rng)
    for clique in (domain.attributes, *some_cliques(domain, rng, 4)):
        inside = [z for z in domain.zeros if set(z.clique) <= set(clique)]
        part = Domain(clique, domain.shape(clique), tuple(inside))
        assert domain.possible(clique) == int(allowed(part).sum())
    assert any_possible(domain.zeros, domain.size)


@seeded(100)
@given(rng=generators())
def test_contradictions_are_found(rng: np.random.Generator) -> None:
    plain = some_domain(rng, 4, 3)
    zeros = []
    for clique in some_cliques(plain, rng, 6, 2):
        possible = rng.random(plain.shape(clique)) > 0.6
        possible.flat[rng.integers(possible.size)] = True
        zeros.append(StructuralZeros(clique, possible))
    domain = Domain(plain.attributes, plain.sizes, tuple(zeros))
    assert any_possible(zeros, domain.size) == bool(allowed(domain).any())


def test_too_large_a_table_is_bounded_from_above(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(20):
        domain = with_zeros(domain_of([4, 4, 4, 4]), rng_of(seed))
        exact = int(allowed(domain).sum())
        with monkeypatch.context() as patch:
            patch.setattr("margrave.structural_zeros.MAX_JOINED", 16)
            bound = count_possible(domain.zeros, domain.attributes, domain.size)
        assert exact <= bound <= domain.cells()


@seeded(60)
@given(rng=generators())
def test_sizes_agree_and_count_no_less_than_what_is_visited(rng: np.random.Generator) -> None:
    domain = with_zeros(some_domain(rng, 7, 5), rng)
    cliques, fit = some_cliques(domain, rng, 4), GraphicalFit()
    candidates = some_cliques(domain, rng, 6)
    found = fit.sizes_with(domain, cliques, candidates)
    assert found.tolist() == [fit.cells(domain, [*cliques, c]) for c in candidates]
    tree = JunctionTree.of(domain, [*cliques, *(z.clique for z in domain.zeros)])
    assert tree.cells() >= sum(domain.possible(c) for c in tree.cliques)
    assert tree.cells() >= max((domain.cells(z.clique) for z in domain.zeros), default=0)
    if not domain.zeros:
        assert tree.cells() == sum(domain.cells(c) for c in tree.cliques)


def test_a_dependent_column_costs_nothing_beside_what_determines_it() -> None:
    follows = np.arange(200)[:, None] // 10 == np.arange(20)
    domain = Domain.of(
        {"city": 200, "state": 20, "x": 50}, [StructuralZeros(("city", "state"), follows)]
    )
    plain = Domain(domain.attributes, domain.sizes)
    whole = [("city", "state", "x")]
    assert GraphicalFit().cells(plain, whole) == 200 * 20 * 50
    assert GraphicalFit().cells(domain, whole) == 200 * 50
    assert GraphicalFit().sizes_with(domain, [("city", "x")], [("state", "x")]).tolist() == [
        200 * 50
    ]


# The model.


@pytest.mark.parametrize("step", [1e9, 0.0], ids=["small axes first", "constrained axes first"])
@pytest.mark.parametrize("large", [1, 10**9], ids=["split", "whole"])
@seeded(40)
@given(rng=generators())
def test_the_model_is_the_product_wherever_zeros_allow(
    step: float, large: int, rng: np.random.Generator
) -> None:
    domain = with_zeros(some_domain(rng, 6, 4), rng)
    cliques: list[Clique] = some_cliques(domain, rng, 5)
    potentials = random_potentials(domain, cliques, rng)
    for z in domain.zeros:
        inside = np.where(z.possible, potentials.get(z.clique, 0.0), -np.inf)
        potentials[z.clique] = inside
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(propagation, "STEP", step)
        patch.setattr(propagation, "MIN_SPLIT_CELLS", large)
        model = GraphicalModel(domain, 100.0, potentials)
        joint = joint_of(model)
        assert not joint[~allowed(domain)].any()
        assert model.log_partition == pytest.approx(
            log_sum(spread_sum(domain, potentials)), rel=1e-9, abs=1e-9
        )
        for clique in [c for k in (1, 2, 3) for c in combinations(domain.attributes, k)]:
            values = np.asarray(model.project(clique).values)
            wanted = summed(domain, joint, clique)
            assert_allclose(values, wanted, rtol=1e-9, atol=1e-12)
            assert not values[wanted == 0].any()
        for rows in (1, 7, 200):
            assert violating(domain, model.sample(rows, rng=rng)) == 0


@seeded(80)
@given(rng=generators(), spread=st.sampled_from([1.0, 1e3, 1e6]))
def test_logarithms_agree_with_enumeration(rng: np.random.Generator, spread: float) -> None:
    """However far apart potentials are: the joint is exact where it is within the reach of floats."""
    domain = some_domain(rng, 5, 4)
    potentials = random_potentials(
        domain, some_cliques(domain, rng, 5), rng, spread=spread, impossible=0.2
    )
    log_joint = spread_sum(domain, potentials)
    if not np.isfinite(log_joint).any():
        return
    tree = JunctionTree.of(domain, list(potentials))
    log_partition, tables = log_calibrate(tree, potentials)
    assert log_partition == pytest.approx(log_sum(log_joint), rel=1e-9, abs=1e-9)
    joint = np.exp(log_joint - log_sum(log_joint))
    for clique in potentials:
        assert_allclose(marginal_of(tree, tables, clique), summed(domain, joint, clique), atol=1e-9)
    rebuilt = spread_sum(domain, conditionals(tree, tables))
    assert_allclose(np.exp(rebuilt), joint, atol=1e-9)


def test_potentials_that_cancel_only_where_records_are_possible() -> None:
    """b follows from a; the columns' potentials are a thousand times what floats can hold, with opposite signs."""
    follows = np.arange(4)[:, None] // 2 == np.arange(2)
    domain = Domain.of({"a": 4, "b": 2}, [StructuralZeros(("a", "b"), follows)])
    far = np.array([0.0, 4e5])
    potentials = {
        ("a",): np.array([0.0, np.log(2.0), np.log(3.0), np.log(4.0)]) + far[[0, 0, 1, 1]],
        ("b",): -far,
        ("a", "b"): np.where(follows, 0.0, -np.inf),
    }
    model = GraphicalModel(domain, 100.0, potentials)
    assert_allclose(model.project(("a",)).values, [10, 20, 30, 40], rtol=1e-6)
    assert_allclose(
        model.condition({"b": [1]}).project(("a",)).values, [0, 0, 300 / 7, 400 / 7], rtol=1e-6
    )


# The fit.


def contradiction(precise: float) -> tuple[Domain, Transcript]:
    """Rows that deny what was declared, counted with next to no noise on overlapping pairs."""
    rng = rng_of(3)
    sizes = {"a": 3, "b": 4, "c": 3, "d": 2}
    zeros = []
    for clique in (("a", "b"), ("b", "c")):
        possible = rng.random([sizes[a] for a in clique]) < 0.4
        possible[0, 0] = True
        zeros.append(StructuralZeros(clique, possible))
    domain = Domain.of(sizes, zeros)
    table = rng.multinomial(2000, np.full(72, 1 / 72)).reshape(domain.sizes)
    noisy = [
        measurement(c, summed(domain, table, c), precise)
        for c in combinations(domain.attributes, 2)
    ]
    return domain, Transcript((PublicTotal(2000), *noisy))


@pytest.mark.parametrize("precise", [3.0, 0.1, 1e-3])
def test_answers_that_deny_what_was_declared_end_in_a_model(precise: float) -> None:
    domain, transcript = contradiction(precise)
    for fit in (GraphicalFit(), GraphicalFit(steps=2, max_calibrations=200)):
        model = graphical(fit(domain, transcript, rng=rng_of()))
        joint = (
            joint_of(model)
            if precise >= 0.1
            else np.asarray(model.project(domain.attributes).values)
        )
        assert np.isfinite(joint).all()
        assert joint.sum() == pytest.approx(2000)
        assert not joint[~allowed(domain)].any()
        assert violating(domain, model.sample(1000, rng=rng_of())) == 0


def test_what_was_measured_in_impossible_cells_plays_no_part() -> None:
    domain, transcript = contradiction(2.0)
    rng = rng_of(9)
    moved = []
    for m in transcript.measurements:
        inside = [z for z in domain.zeros if z.clique == m.clique]
        wrong = ~inside[0].possible if inside else np.zeros(m.values.shape, dtype=bool)
        moved.append(
            measurement(
                m.clique,
                np.where(wrong, rng.integers(-999, 999, m.values.shape), m.values),
                m.scale,
            )
        )
    before = GraphicalFit()(domain, transcript, rng=rng_of())
    after = GraphicalFit()(domain, Transcript((PublicTotal(2000), *moved)), rng=rng_of())
    for clique in combinations(domain.attributes, 2):
        assert np.array_equal(before.project(clique).values, after.project(clique).values)


def test_the_slow_path_and_the_fast_one_are_the_same_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    domain, transcript = contradiction(20.0)
    fast = GraphicalFit(tolerance=1e-9)(domain, transcript, rng=rng_of())
    monkeypatch.setattr(logspace, "needs_log_space", lambda potentials: True)
    monkeypatch.setattr(models, "needs_log_space", lambda potentials: True)
    slow = GraphicalFit(tolerance=1e-9)(domain, transcript, rng=rng_of())
    for clique in combinations(domain.attributes, 2):
        assert_allclose(
            slow.project(clique).values, fast.project(clique).values, rtol=1e-4, atol=1e-3
        )


def test_records_whose_parents_have_lost_their_mass_do_not_break_the_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted: a conditional without mass deals any code. Such records are replaced by others."""
    follows = np.arange(4)[:, None] // 2 == np.arange(2)
    domain = Domain.of({"a": 4, "b": 2}, [StructuralZeros(("a", "b"), follows)])
    model = GraphicalModel(domain, 100.0, {("a", "b"): np.where(follows, 0.0, -np.inf)})
    whole = list(model._conditionals(all_steps(model.tree)))
    broken = [(name, np.zeros_like(t) if parents else t, parents) for name, t, parents in whole]
    monkeypatch.setattr(model, "_conditionals", lambda steps: broken)
    drawn = model.sample(400, rng=rng_of())
    assert len(drawn) == 400
    assert violating(domain, drawn) == 0


# Mechanisms.

SCHEMA = Schema(
    [
        Integer("age", 0, 99, edges=[15, 40]),
        Categorical("marital", ["never", "married", "widowed"], missing=True),
        Categorical("city", [f"city {i}" for i in range(8)]),
        Categorical("state", ["north", "south"]),
        Integer("first", 0, 19, bins=4),
        Integer("last", 0, 19, bins=5, missing=True),
    ],
    constraints=[
        Impossible({"age": (0, 14), "marital": ["married", "widowed"]}),
        Depends("city", "state", {f"city {i}": "north" if i < 5 else "south" for i in range(8)}),
        Ordered(["first", "last"]),
    ],
)


def some_codes(schema: Schema, rows: int, seed: int = 0) -> Codes:
    """Rows that know nothing of the constraints: many violate one."""
    rng = rng_of(seed)
    skewed = {a: (rng.random(rows) ** 2 * schema.domain.size(a)).astype(int) for a in schema.domain}
    return Codes.of(schema.domain, skewed)


def bad_rows(table: pa.Table) -> int:
    """Rows that violate a constraint of ``SCHEMA``, judged on values."""
    wrong = 0
    for row in table.to_pylist():
        young = row["age"] <= 14 and row["marital"] in ("married", "widowed")
        elsewhere = (int(row["city"][5:]) < 5) != (row["state"] == "north")
        backwards = row["last"] is not None and row["last"] < row["first"]
        wrong += young or elsewhere or backwards
    return wrong


def roomy(case: str) -> Any:
    """The case on ``SCHEMA``; one with a tight limit gets room for the constraints, which come with any model."""
    mechanism: Any = CASES[case](SCHEMA.domain)
    limit = mechanism.config().get("max_model_mb")
    least = 1.1 * GraphicalFit().cells(SCHEMA.domain, [(a,) for a in SCHEMA.domain]) / CELLS_PER_MB
    return mechanism if limit is None else replace(mechanism, max_model_mb=max(limit, least))


@pytest.mark.parametrize(
    "case", slow_but_first(c for c in CASES if c not in NO_RECORDS and keeps_zeros(c))
)
def test_no_mechanism_gives_a_row_that_violates_a_constraint(case: str, tmp_path: Path) -> None:
    budgets = ((1, 30),) if " " in case else ((0, 1), (1, 30))
    for seed, rho in budgets:
        table = MemoryTable(SCHEMA, some_codes(SCHEMA, 300, seed))
        release = run_on(
            roomy(case), table, AddRemoveRow(), Budget.zcdp(rho), SeededRandomness(seed)
        )
        release.save(tmp_path / f"{seed}.margrave")
        again = Release.load(tmp_path / f"{seed}.margrave")
        for one in (release, again):
            assert [bad_rows(one.sample(400, seed=s)) for s in range(3)] == [0, 0, 0]
            assert bad_rows(one.sample(1, seed=9)) == 0
            try:
                young = one.condition({"age": (0, 14)}).sample(300, seed=1)
            except ReleaseError:
                assert not measures(case), "only a few records may have nobody so young among them"
            else:
                assert bad_rows(young) == 0
                assert set(young["marital"].to_pylist()) <= {"never", None}
            for z in SCHEMA.domain.zeros:
                assert not np.asarray(one.marginal(z.clique).values)[~z.possible].any()
        if measures(case):
            asked = [a.query for a in release.transcript.answers if a.query.clique]
            fit: Fit = GraphicalFit(shrinkage=1.0)
            if any(isinstance(q, HalfSpace) for q in asked):
                fit = FEW_PARTICLES
            elif not all(q.is_cell for q in asked):
                fit = EntropyProjectionFit()
            assert release.refit(fit).sample(200, seed=1).num_rows == 200


def test_merged_codes_stay_apart_from_constrained_columns() -> None:
    sizes = {"a": 6, "wide": 40, "c": 6}
    possible = rng_of(1).random((6, 6)) < 0.5
    possible[:, 0] = True
    domain = Domain.of(sizes, [StructuralZeros(("a", "c"), possible)])
    rows = some_rows(sizes, 200)
    for seed in range(5):
        table, budget = TinyTable(TinySchema(domain), rows), Budget.zcdp(Fraction(1, 2))
        release = run_on(MST(), table, AddRemoveRow(), budget, SeededRandomness(seed))
        assert isinstance(release.model, MergedCodesModel)
        assert set(release.model.groups) == {"wide"}
        assert violating(domain, release.model.sample(2000, rng=rng_of(seed))) == 0
        kept = release.model.condition({"wide": [0, 1, 30], "a": [1, 2]})
        assert violating(domain, kept.sample(500, rng=rng_of(seed))) == 0


@pytest.mark.parametrize("rho", [10**4, 10**8])
def test_a_contradiction_never_ends_in_an_error_after_spending(rho: int) -> None:
    for seed in (3, 4):
        rng = rng_of(seed)
        sizes = {"a": 3, "b": 4, "c": 3, "d": 2}
        zeros = []
        for clique in (("a", "b"), ("b", "c")):
            possible = rng.random([sizes[a] for a in clique]) < 0.4
            possible[0, 0] = True
            zeros.append(StructuralZeros(clique, possible))
        domain = Domain.of(sizes, zeros)
        rows = [tuple(int(rng.integers(s)) for s in sizes.values()) for _ in range(500)]
        table = TinyTable(TinySchema(domain), rows)
        fit = GraphicalFit(max_calibrations=60)
        few = AIM(workload=pairs(domain), rounds=8, fit=fit)
        for mechanism in (GaussianMechanism(workload=pairs(domain), fit=fit), few):
            release = run_on(
                mechanism, table, AddRemoveRow(), Budget.zcdp(rho), SeededRandomness(seed)
            )
            assert violating(domain, release.model.sample(500, rng=rng_of(seed))) == 0


def test_constraints_too_large_for_a_model_are_found_before_anything_is_spent() -> None:
    table = MemoryTable(SCHEMA, some_codes(SCHEMA, 50))
    for mechanism in (
        Independent(max_model_mb=3e-4),
        AIM(max_model_mb=3e-4),
        MST(max_model_mb=3e-4),
    ):
        gate = protect(
            table, unit=AddRemoveRow(), budget=Budget.zcdp(1), randomness=SeededRandomness(0)
        )
        with gate as private, pytest.raises(ModelTooLargeError, match="and its constraints has"):
            mechanism.run(private)
        assert private.account().rho_spent == 0


def test_answers_are_nothing_where_nothing_can_be() -> None:
    domain, transcript = contradiction(1.0)
    answers = AnswersFit()(domain, transcript, rng=rng_of())
    for z in domain.zeros:
        values = np.asarray(answers.project(z.clique).values)
        assert not values[~z.possible].any()
        assert values[z.possible].any()


def test_a_file_cannot_bring_back_what_cannot_occur() -> None:
    domain, transcript = contradiction(5.0)
    state = GraphicalFit()(domain, transcript, rng=rng_of()).state()
    arrays = {name: np.nan_to_num(values, neginf=0.0) for name, values in state.arrays.items()}
    loaded = models.load_graphical(domain, state.facts, arrays)
    assert violating(domain, loaded.sample(2000, rng=rng_of())) == 0


# Privacy.

ZEROS = [
    StructuralZeros(("a", "b"), np.array([[True, True, False], [False, True, True]])),
    StructuralZeros(("c",), np.array([True, True, False, True])),
]


@pytest.mark.parametrize("case", slow_but_first(c for c in CASES if keeps_zeros(c)))
def test_an_impossible_row_changes_counts_and_nothing_else(case: str, tmp_path: Path) -> None:
    """Given the same noisy answers, every byte of the release is the same with and without the row."""
    schema = Schema.coded(SIZES)
    schema = Schema(
        schema.columns, constraints=[Impossible({"a": 0, "b": 2}), Impossible({"c": 2})]
    )
    rows = some_rows(SIZES, 40, seed=3)
    recorder, unit, budget = Recorder(SeededRandomness(1)), AddRemoveRow(), Budget.zcdp(1)
    run_on(
        CASES[case](schema.domain),
        MemoryTable(schema, codes_of(schema.domain, rows)),
        unit,
        budget,
        recorder,
    )
    left = set()
    for i, table in enumerate((rows, [*rows, (0, 2, 2)], [])):
        replay = ReplayRandomness(recorder.steps)
        source = MemoryTable(schema, codes_of(schema.domain, table))
        release = run_on(CASES[case](schema.domain), source, unit, budget, replay)
        replay.finish()
        release.save(tmp_path / f"{i}.margrave")
        left.add(((tmp_path / f"{i}.margrave").read_bytes(), json.dumps(release.certificate())))
    assert len(left) == 1


@pytest.mark.parametrize("case", ["aim", "mst", "mwem-pgm", "independent", "gaussian"])
def test_the_loss_between_neighbors_is_within_the_charge_when_the_row_is_impossible(
    case: str,
) -> None:
    domain = Domain.of(SIZES, ZEROS)
    rows = some_rows(SIZES, 12, seed=2)
    for extra in ((0, 2, 2), (1, 0, 0), (1, 1, 1)):
        one, two = (TinyTable(TinySchema(domain), r) for r in (rows, [*rows, extra]))
        loss, charged = loss_replay(
            lambda private: CASES[case](domain).run(private, rng=rng_of()),
            one,
            two,
            AddRemoveRow(),
            Budget.zcdp(1),
        )
        assert 0 < loss <= charged == 1


def test_the_certificate_lists_every_constraint_with_its_hash() -> None:
    release = run_on(
        Independent(),
        MemoryTable(SCHEMA, some_codes(SCHEMA, 50)),
        AddRemoveRow(),
        Budget.zcdp(1),
        SeededRandomness(0),
    )
    facts = release.certificate()
    listed = facts["constraints"]
    told = ["impossible (age, marital)", "depends (city, state)", "ordered (first, last)"]
    assert [c["what"] for c in listed] == told
    assert [(c["impossible"], c["combinations"]) for c in listed[:2]] == [(2, 12), (8, 16)]
    assert len({c["sha256"] for c in listed}) == 3
    for c in listed:
        assert any(c["sha256"] in line and c["what"] in line for line in facts["public_inputs"])
    other = Schema(
        SCHEMA.columns, constraints=[Impossible({"age": (0, 14), "marital": ["married"]})]
    )
    release = run_on(
        Independent(),
        MemoryTable(other, some_codes(other, 50)),
        AddRemoveRow(),
        Budget.zcdp(1),
        SeededRandomness(0),
    )
    assert release.certificate()["constraints"][0]["sha256"] != listed[0]["sha256"]


def test_the_command_line_tells_the_custodian_how_many_rows_violate(tmp_path: Path) -> None:
    SCHEMA.save(tmp_path / "schema.toml")
    (tmp_path / "rows.csv").write_text(
        "age,marital,city,state,first,last\n3,married,city 1,south,0,1\n50,never,city 1,north,19,0\n"
    )
    arguments = [
        "schema",
        "check",
        str(tmp_path / "rows.csv"),
        "--schema",
        str(tmp_path / "schema.toml"),
    ]
    shown = CliRunner().invoke(cli, arguments)
    assert shown.exit_code == 0, shown.output
    assert "constraint impossible (age, marital): violated by 1 row" in shown.output
    told = json.loads(CliRunner().invoke(cli, [*arguments, "--json"]).stdout)
    assert [c["rows"] for c in told["constraints"]] == [1, 1, 1]
