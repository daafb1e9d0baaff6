"""Mixtures of products: exact answers by enumeration, sampling, conditioning, state; training against plain NumPy."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import combinations, pairwise, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from margrave.domain import Codes, Domain
from margrave.errors import InputError, ReleaseError
from margrave.marginal import TOTAL, LinearMap, LinearQuery
from margrave.models import FAMILIES, GeneratorFit, MixtureModel, Model, Needs, RelaxedFit
from margrave.models.mixture.optim_jax import (
    absolute,
    pretrain,
    residuals,
    softmax,
    started,
    worst_of,
)
from margrave.models.mixture.state import RelaxedAnswers
from margrave.models.mixture.targets import members_of, targets_of
from margrave.public_table import PublicTable
from margrave.structural_zeros import StructuralZeros
from margrave.transcript import Answer, Measurement, PublicTotal, Transcript
from margrave.types import AnyArray, Clique, FloatArray
from tests.support.rounds import first_round, next_round
from tests.support.strategies import measurement

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4, "d": 2})
CELLS = list(product(*(range(s) for s in DOMAIN.sizes)))
EVERY = [DOMAIN.clique(c) for k in range(1, 5) for c in combinations(DOMAIN, k)]
STARTS = np.cumsum([0, *DOMAIN.sizes])


def some_table(components: int = 6, seed: int = 0) -> AnyArray:
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [rng.dirichlet(np.full(s, 0.5), components) for s in DOMAIN.sizes], axis=1
    )


def some_model(components: int = 6, seed: int = 0, total: float = 1000.0) -> MixtureModel:
    weights = np.random.default_rng(seed + 1).dirichlet(np.ones(components))
    return MixtureModel(DOMAIN, total, some_table(components, seed), weights)


def joint(table: AnyArray, weights: AnyArray) -> FloatArray:
    """The whole distribution, cell by cell, by the definition."""
    found = np.zeros(DOMAIN.sizes)
    for cell in CELLS:
        for row, weight in zip(table, weights, strict=True):
            found[cell] += weight * np.prod([row[STARTS[i] + code] for i, code in enumerate(cell)])
    return found


def summed(whole: FloatArray, clique: Clique) -> FloatArray:
    out = tuple(i for i, a in enumerate(DOMAIN) if a not in clique)
    return np.asarray(whole.sum(axis=out))


# The distribution.


def test_answers_are_those_of_the_distribution() -> None:
    model = some_model()
    whole = 1000.0 * joint(model.probabilities, model.weights)
    assert whole.sum() == pytest.approx(1000.0, rel=1e-6)
    together = model.answer(EVERY)
    for clique in EVERY:
        assert_allclose(together[clique], summed(whole, clique), rtol=1e-6, atol=1e-5)
        assert_allclose(model.project(clique).values, together[clique], rtol=1e-12)
        assert_allclose(together[clique].sum(), 1000.0, rtol=1e-12)


def test_marginals_agree_where_they_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last digits, also in pieces of a few components."""
    model = some_model(50)
    whole = model.project(tuple(DOMAIN)).values
    monkeypatch.setattr("margrave.models.mixture.marginals.CHUNK", 70)
    for clique in EVERY:
        assert_allclose(model.project(clique).values, summed(whole, clique), rtol=1e-12)


def test_blocks_are_scaled_and_those_without_mass_are_uniform() -> None:
    table = np.array([[2.0, 2.0, 0, 0, 0, 1, 3, 0, 0, 0, 5.0]])
    model = MixtureModel(DOMAIN, 12.0, table)
    assert model.project(("a",)).values.tolist() == [6.0, 6.0]
    assert_allclose(model.project(("b",)).values, [4.0, 4.0, 4.0])
    assert_allclose(model.project(("c", "d")).values, [[0, 3], [0, 9], [0, 0], [0, 0]])


@pytest.mark.parametrize("independent", [False, True])
def test_records_follow_the_distribution(independent: bool) -> None:
    """60,000 records: no cell of the whole table is off by six standard errors (one in ten million by chance)."""
    model, rows = some_model(), 60_000
    codes = model.sample(rows, rng=np.random.default_rng(5), independent=independent)
    counts = np.zeros(DOMAIN.sizes)
    np.add.at(counts, tuple(codes.values.astype(int)), 1)
    chances = joint(model.probabilities, model.weights)
    assert (
        np.abs(counts - rows * chances) <= 6 * np.sqrt(rows * chances * (1 - chances)) + 3
    ).all()
    one = np.abs(counts.sum(axis=(1, 2, 3)) - rows * summed(chances, ("a",))).max()
    if not independent:
        assert one < 10, "dealt out, a column's codes come nearly as often as expected"
    assert len(model.sample(rng=np.random.default_rng(0))) == 1000
    with pytest.raises(InputError):
        model.sample(-1, rng=np.random.default_rng(0))


def test_conditioning_is_bayes() -> None:
    model = some_model()
    whole = joint(model.probabilities, model.weights)
    kept = whole.copy()
    kept[1], kept[:, :, [0, 3]] = 0.0, 0.0
    given = model.condition({"a": [0], "c": [1, 2]})
    assert given.total == model.total
    for clique in EVERY:
        assert_allclose(
            given.project(clique).values,
            1000.0 * summed(kept, clique) / kept.sum(),
            rtol=1e-5,
            atol=1e-6,
        )
    again = given.condition({"c": [1]})
    assert_allclose(again.project(("c",)).values, [0, 1000.0, 0, 0])


def test_evidence_that_no_record_has_is_refused() -> None:
    model = MixtureModel(DOMAIN, 10.0, np.array([[1.0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0]]))
    with pytest.raises(InputError, match="no records"):
        model.condition({"a": [1]})
    with pytest.raises(InputError, match="no code"):
        model.condition({"a": [2]})


# The state.


def reread(model: Model) -> Model:
    state = model.state()
    return FAMILIES[state.kind].load(model.domain, state.facts, state.arrays)


def test_state_and_back() -> None:
    for model in (
        some_model(),
        some_model().condition({"b": [0, 2]}),
        MixtureModel(DOMAIN, 0.0, some_table()),
    ):
        again = reread(model)
        assert again.total == model.total
        for clique in EVERY:
            assert again.project(clique).values.tobytes() == model.project(clique).values.tobytes()
        assert (
            again.state().arrays["weights"].tobytes() == model.state().arrays["weights"].tobytes()
        )


def test_a_trained_model_s_state_holds_the_mixture_alone() -> None:
    model = GeneratorFit(hidden=(4,), components=8, cold_steps=2)(
        DOMAIN, TRANSCRIPT, rng=np.random.default_rng(0)
    )
    state = model.state()
    assert set(state.arrays) == {"probabilities", "weights"}
    assert set(state.facts) == {"total"}


def spoiled(**changes: Any) -> tuple[dict[str, object], dict[str, AnyArray]]:
    state = some_model().state()
    facts, arrays = dict(state.facts), dict(state.arrays)
    for name, value in changes.items():
        (facts if name == "total" else arrays)[name] = value
    return facts, arrays


TABLE = some_table().astype(np.float32)
SPOILED = {
    "total": [None, -1.0, float("nan"), True, "9", 1e31],
    "weights": [
        np.zeros(6), np.full(6, np.nan), np.full(6, 2.0), -np.ones(6), np.ones(5), np.ones((6, 1)),
        np.ones(6, dtype=np.float32), np.zeros(0),
    ],
    "probabilities": [
        TABLE.astype(np.float64), TABLE[:, :-1], TABLE[:5], TABLE[0], -TABLE, TABLE + 1, np.full_like(TABLE, np.nan),
        np.full_like(TABLE, np.inf), TABLE.astype(complex),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"), [(n, v) for n, values in SPOILED.items() for v in values]
)
def test_a_malformed_state_is_refused(name: str, value: object) -> None:
    with pytest.raises(ReleaseError):
        FAMILIES["mixture"].load(DOMAIN, *spoiled(**{name: value}))


def test_a_state_without_its_arrays_or_with_constraints_is_refused() -> None:
    facts, arrays = spoiled()
    for name in arrays:
        with pytest.raises(ReleaseError):
            FAMILIES["mixture"].load(DOMAIN, facts, {n: a for n, a in arrays.items() if n != name})
    zeros = StructuralZeros(("a",), np.array([True, False]))
    with pytest.raises(ReleaseError, match="constraints"):
        FAMILIES["mixture"].load(Domain(DOMAIN.attributes, DOMAIN.sizes, (zeros,)), facts, arrays)


WITHOUT = """
import sys
sys.modules["jax"] = sys.modules["optax"] = None
import numpy as np
from margrave import Release
release = Release.load(sys.argv[1])
print(release.sample(5, seed=0).num_rows, release.marginal(["a"]).values.sum() > 0)
print(release.condition({"a": 0}).sample(3, seed=0).num_rows)
"""


def test_a_saved_release_is_sampled_without_jax(tmp_path: Any) -> None:
    from margrave.accounting import AddRemoveRow, Budget
    from margrave.privacy import SeededRandomness
    from tests.support.conformance import CASES, memory_table, run_on, some_rows

    sizes = dict(zip(DOMAIN, DOMAIN.sizes, strict=True))
    table = memory_table(sizes, some_rows(sizes, 40))
    release = run_on(
        CASES["gem"](table.domain), table, AddRemoveRow(), Budget.zcdp(1), SeededRandomness(0)
    )
    release.save(tmp_path / "r.margrave")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(tmp_path / "r.margrave")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["5", "True", "3"]), done.stderr


# Answers and losses, in JAX, against enumeration.

PAIR = measurement(("a", "c"), np.arange(8).reshape(2, 4) * 10, 2.0)
THREE = measurement(("a", "b", "c"), np.arange(24).reshape(2, 3, 4), 4.0)
FOUR = measurement(tuple(DOMAIN), np.arange(48).reshape(2, 3, 4, 2), 8.0)
ONE = measurement(("b",), [50, 20, 30], 1.0)
MERGED = Measurement(("b", "c"), np.array([[11, 22], [33, 44]]), 3.0, PAIR.rho, LinearMap(
    {"b": np.array([0, 1, 1]), "c": np.array([0, 0, 1, 0])}
))  # fmt: skip
ASKED = [
    LinearQuery(("a", "b", "d"), ((1,), (2,), (0,))),
    LinearQuery(("b", "c"), ((0, 1), (1, 2, 3))),
    LinearQuery(("a", "b", "c", "d"), ((0,), (0, 2), (3,), (1,))),
    LinearQuery(("c",), ((2,),)),
    TOTAL,
]
ANSWERS = [Answer(q, 7 * i + 3, 2.0, PAIR.rho) for i, q in enumerate(ASKED)]
TRANSCRIPT = Transcript((PublicTotal(100), ONE, PAIR, THREE, FOUR, MERGED, *ANSWERS))


def expected_misses(whole: FloatArray) -> list[float]:
    """Every answer less the distribution's, by the definition; whole is scaled to 1."""
    found = []
    for m in (ONE, PAIR, THREE, FOUR, MERGED):
        found += list(np.ravel(m.values / 100 - m.query.apply(m.clique, summed(whole, m.clique))))
    found += [
        a.value / 100 - float(a.query.count(summed(whole, a.query.clique))) for a in ANSWERS[:-1]
    ]
    return found


@pytest.mark.parametrize("wide", [False, True])
def test_what_targets_lack_is_by_enumeration(wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One-way, pairs (as a matrix, or in tiles), tiles of three and four columns, merged codes, sets of codes."""
    if wide:
        monkeypatch.setattr("margrave.models.mixture.targets.MANY_CODES", 1)
    table = some_table()
    targets = targets_of(DOMAIN, TRANSCRIPT, weighted=False)
    assert (targets.pairs is None) == wide
    padded = np.zeros((targets.members.shape[0], 6), dtype=np.float32)
    padded[: table.shape[1]] = table.T
    found = residuals(jnp.asarray(padded), targets)
    lacking = np.concatenate([np.asarray(m)[np.asarray(w) > 0] for m, w in found])
    expected = expected_misses(joint(table, np.full(6, 1 / 6)))
    assert_allclose(np.sort(lacking), np.sort(expected), atol=2e-6)
    assert float(worst_of(found)) == pytest.approx(np.abs(expected).max(), abs=2e-6)
    for threshold in (0.0, 0.05, 0.1):
        missed = [abs(x) for x in expected if abs(x) >= threshold]
        assert float(absolute(found, jnp.float32(threshold))) == pytest.approx(
            np.mean(missed), abs=2e-6
        )


def test_weights_are_the_inverse_of_the_noise() -> None:
    targets = targets_of(DOMAIN, TRANSCRIPT, weighted=True)
    seen = {
        float(w) for part in targets if hasattr(part, "weights") for w in np.ravel(part.weights)
    }
    assert seen == {0.0, 1.0, 0.5, 0.25, 0.125} | {float(np.float32(1 / 3))}


def test_gradients_are_those_of_differences() -> None:
    """Of the loss through the softmax and all kinds of targets, in 64 bits, against central differences."""
    targets = targets_of(DOMAIN, TRANSCRIPT, weighted=True)
    with jax.enable_x64(True):
        logits = jnp.asarray(np.random.default_rng(3).normal(size=(4, targets.members.shape[0])))
        members = jnp.asarray(targets.members, dtype=jnp.float64)

        @jax.jit
        def loss(x: jax.Array) -> jax.Array:
            return absolute(residuals(softmax(x, members).T, targets), jnp.zeros(()))

        slope, small = np.asarray(jax.jit(jax.grad(loss))(logits)), 1e-5
        for at in [(0, 0), (1, 3), (2, 7), (3, 10)]:
            step = np.zeros(logits.shape)
            step[at] = small
            moved = (float(loss(logits + step)) - float(loss(logits - step))) / (2 * small)
            assert slope[at] == pytest.approx(moved, rel=1e-4, abs=1e-8)
        assert not slope[:, sum(DOMAIN.sizes) :].any()


def test_softmax_is_one_in_every_block_and_stays_finite() -> None:
    logits = np.zeros((3, 32), dtype=np.float32)
    logits[1, 0], logits[1, 2], logits[2, 5] = 1e4, -1e4, -1e4
    found = np.asarray(softmax(jnp.asarray(logits), jnp.asarray(members_of(DOMAIN))))
    for start, stop in pairwise(STARTS):
        assert_allclose(found[:, start:stop].sum(axis=1), 1.0, rtol=1e-6)
    assert not found[:, STARTS[-1] :].any()
    assert found[1, 0] > 0.999


# Rounds: the threshold, and the average of weights.


def grown(*answers: int) -> Transcript:
    cells = [LinearQuery(("a", "b"), ((i % 2,), (i % 3,))) for i in range(len(answers))]
    return Transcript(
        (
            PublicTotal(100),
            *(Answer(q, v, 1.0, PAIR.rho) for q, v in zip(cells, answers, strict=True)),
        )
    )


def test_a_round_stops_once_no_answer_is_missed_by_the_threshold() -> None:
    """gamma_t = threshold · e_t, e_t the running average of the largest errors of new answers: restated in NumPy."""
    fit = GeneratorFit(
        hidden=(16,),
        components=32,
        rate=0.01,
        steps=500,
        active_threshold=0.5,
        error_ema=0.25,
        kl_weight=0.0,
    )
    rng = np.random.default_rng(0)
    state = fit.update(fit.init(DOMAIN, rng=rng), grown(), rng=rng)
    answers, average = [], None
    for value in (60, 5, 20, 12):
        before = fit.model(state)
        answers.append(value)
        newest = grown(*answers).answers[-1]
        error = abs(value - newest.query.count(before.project(("a", "b")).values)) / 100
        average = error if average is None else 0.25 * average + 0.75 * error
        state = fit.update(state, grown(*answers), rng=rng)
        assert state.training.error == pytest.approx(average, rel=1e-5)
        found = fit.model(state).answer([("a", "b")])["a", "b"]
        off = [abs(a.value - a.query.count(found)) / 100 for a in grown(*answers).answers]
        assert max(off) < 0.5 * average + 1e-6
        assert max(off) > 0.1 * average, "and no further than that"


def test_without_anything_missed_no_weight_moves() -> None:
    fit = GeneratorFit(hidden=(4,), components=8, active_threshold=1.5)
    before = first_round(fit, DOMAIN, grown())
    after = next_round(fit, before, grown(30), seed=1)
    for old, new in zip(
        jax.tree.leaves(before.training.state.weights),
        jax.tree.leaves(after.training.state.weights),
        strict=True,
    ):
        assert np.asarray(old).tobytes() == np.asarray(new).tobytes()


def test_a_round_does_not_cost_what_was_known() -> None:
    """A pair of codes that public records lack is asked for: the anchor holds the other columns while it is learned."""
    rows = Codes.of(DOMAIN, {a: np.repeat([0, 1], [600, 400]) for a in DOMAIN})
    query, away = LinearQuery(("a", "b"), ((0,), (2,))), {}
    asked = Transcript((PublicTotal(100), Answer(query, 20, 1.0, PAIR.rho)))
    for anchor in (0.0, 0.4):
        fit = GeneratorFit(
            hidden=(16,),
            components=32,
            rate=0.01,
            public=PublicTable(rows, "made up"),
            pretraining=150,
            kl_weight=anchor,
        )
        rng = np.random.default_rng(0)
        state = fit.update(fit.init(DOMAIN, rng=rng), grown(), rng=rng)
        before, after = fit.model(state), fit.model(fit.update(state, asked, rng=rng))
        assert (
            query.count(before.project(("a", "b")).values)
            < 1
            < 15
            < query.count(after.project(("a", "b")).values)
        )
        away[anchor] = float(
            np.abs(after.project(("c", "d")).values - before.project(("c", "d")).values).sum()
        )
    assert away[0.4] < 0.2 * away[0.0]  # 0.3 records of 100, against 18


def test_an_answer_below_zero_is_met_by_none() -> None:
    """No distribution gives it: a round that went on for its sake would move everything else."""
    fit = GeneratorFit(
        hidden=(16,), components=32, rate=0.01, steps=500, active_threshold=0.5, error_ema=0.0
    )
    rng = np.random.default_rng(0)
    query = LinearQuery(("a", "b"), ((0,), (0,)))
    whole = Transcript((PublicTotal(100), Answer(query, -30, 1.0, PAIR.rho)))
    targets = targets_of(DOMAIN, whole, weighted=False)
    assert targets.queries is not None
    assert targets.queries.values[0] == 0.0
    state = fit.update(fit.init(DOMAIN, rng=rng), grown(), rng=rng)
    model = fit.model(fit.update(state, whole, rng=rng))
    assert 0.0 <= query.count(model.project(("a", "b")).values) < 25.0


def test_weights_are_averaged_exponentially() -> None:
    """Over the rounds of the second half, from the first of them."""
    fit = GeneratorFit(hidden=(4,), components=8, ema_decay=0.75)
    state, plain = first_round(fit, DOMAIN, grown()), None
    for t, done in enumerate((0.25, 0.5, 0.75, 1.0)):
        state = next_round(fit, state, grown(*[40] * (t + 1)), done=done)
        matrix = np.asarray(state.training.state.weights[0][0], dtype=np.float64)
        if done > 0.5:
            plain = matrix if plain is None else 0.75 * plain + 0.25 * matrix
        else:
            assert state.average is None
    assert_allclose(np.asarray(state.average[0][0]), plain, rtol=1e-5, atol=1e-6)


def test_noise_is_drawn_anew_only_where_asked() -> None:
    for resample in (False, True):
        fit = GeneratorFit(hidden=(4,), components=8, resample=resample)
        rng = np.random.default_rng(0)
        before = fit.update(fit.init(DOMAIN, rng=rng), grown(), rng=rng)
        after = fit.update(before, grown(40), rng=rng)
        one, other = (np.asarray(s.training.state.noise) for s in (before, after))
        assert (one.tobytes() == other.tobytes()) == (not resample)


# Fits.


def exact_answers(model: MixtureModel, cliques: list[Clique], scale: float = 0.5) -> Transcript:
    """The model's marginals as if measured, nearly without noise."""
    found = model.answer(cliques)
    measured = [measurement(c, np.rint(found[c]).astype(int), scale) for c in cliques]
    return Transcript((PublicTotal(round(model.total)), *measured))


@pytest.mark.parametrize(
    "fit",
    [GeneratorFit(hidden=(64,), components=100, rate=0.003), RelaxedFit(components=100, rate=0.05)],
)
def test_exact_answers_are_learned(fit: GeneratorFit | RelaxedFit) -> None:
    """A total variation of a few per cent on the marginals measured: one-way, pairs and of three columns."""
    truth = some_model(3, seed=7, total=10_000.0)
    cliques: list[Clique] = [("a",), ("b", "c"), ("a", "c", "d")]
    model = fit(DOMAIN, exact_answers(truth, cliques), rng=np.random.default_rng(0))
    for clique in cliques:
        gap = np.abs(model.project(clique).values - truth.project(clique).values).sum() / 2e4
        assert gap < 0.03
        assert model.project(clique).values.min() >= 0


def test_a_box_learns_answers_as_products_of_its_entries() -> None:
    """Within a per cent; the distribution that is released comes less near, which is RAP's weakness."""
    truth = some_model(3, seed=7, total=10_000.0)
    fit = RelaxedFit(components=100, rate=0.01, clip=True, steps=1000, active_threshold=0.0)
    rng = np.random.default_rng(0)
    state = fit.update(fit.init(DOMAIN, rng=rng), Transcript((PublicTotal(10_000),)), rng=rng)
    cliques: list[Clique] = [("a",), ("b", "c"), ("a", "c", "d")]
    model = fit.model(fit.update(state, exact_answers(truth, cliques), rng=rng))
    for clique in cliques:
        assert np.abs(model.answer([clique])[clique] - truth.project(clique).values).max() < 100


def test_a_box_answers_by_its_entries_and_is_released_as_a_distribution() -> None:
    fit = RelaxedFit(components=5, clip=True, steps=2)
    state = next_round(fit, first_round(fit, DOMAIN, grown()), grown(90))
    model = fit.model(state)
    entries = np.asarray(state.training.state.weights)[:, : STARTS[-1]]
    assert entries.min() < 0
    assert np.abs(entries).max() <= 1
    raw = 100 * (entries[:, [0]].T @ entries[:, 2:5]).ravel() / 5
    assert_allclose(model.answer([("a", "b")])["a", "b"][0], raw, rtol=1e-5, atol=1e-5)
    released = fit.finish(state, grown(90), rng=np.random.default_rng(0))
    positive = np.maximum(entries[:, :2], 0)
    sums = positive.sum(axis=1, keepdims=True)
    shares = np.where(sums > 0, positive / np.where(sums > 0, sums, 1), 0.5)
    assert_allclose(released.project(("a",)).values, 100 * shares.mean(axis=0), rtol=1e-5)
    assert (
        reread(released).project(("b",)).values.tobytes()
        == released.project(("b",)).values.tobytes()
    )


def test_between_rounds_answers_are_the_model_s_to_single_precision() -> None:
    table = some_table().astype(np.float32)
    rough, exact = RelaxedAnswers(DOMAIN, 1e5, table), MixtureModel(DOMAIN, 1e5, table)
    for clique in EVERY:
        assert_allclose(
            rough.answer([clique])[clique], exact.project(clique).values, rtol=1e-5, atol=0.05
        )


def records(rows: int = 500) -> Codes:
    rng = np.random.default_rng(1)
    a = rng.integers(2, size=rows)
    return Codes.of(DOMAIN, {"a": a, "b": a + rng.integers(2, size=rows), "c": 3 * a, "d": 1 - a})


@pytest.mark.parametrize("columns", [tuple(DOMAIN), ("a", "c", "d"), ("a", "c")])
@pytest.mark.parametrize(
    "fit", [GeneratorFit(hidden=(32,), components=60), RelaxedFit(components=60)]
)
def test_pretraining_teaches_what_is_public(fit: Any, columns: Clique) -> None:
    """All columns or some: their marginals are learned, without any noisy answer."""
    public = PublicTable(records(), "made up for tests").select(columns)
    nothing = Transcript((PublicTotal(500),))
    errors = []
    for steps in (1, 600):
        taught = replace(fit, public=public, pretraining=steps)
        model = taught(DOMAIN, nothing, rng=np.random.default_rng(0))
        found = model.project(("a", "c")).values / 500
        truth = np.zeros((2, 4))
        np.add.at(
            truth,
            (public.codes.column("a").astype(int), public.codes.column("c").astype(int)),
            1 / 500,
        )
        errors.append(float(np.abs(found - truth).sum()))
    assert errors[0] > 0.5
    assert errors[1] < 0.1


@pytest.mark.slow
def test_tiles_of_public_marginals_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many tiles are seen some at a time; all of them are learned in the end."""
    monkeypatch.setattr("margrave.models.mixture.optim_jax.LESSON", 1)
    whole = measurement(tuple(DOMAIN), np.eye(48)[17].reshape(DOMAIN.sizes) * 1000, 1.0)
    targets = targets_of(DOMAIN, Transcript((PublicTotal(1000), whole)), weighted=False)
    assert len(targets.left) > 1
    start = started(
        np.zeros((8, targets.members.shape[0]), np.float32), np.zeros((1, 1), np.float32), 0
    )
    jax.clear_caches()  # the size of a lesson is compiled in
    found = pretrain(
        start, targets, np.int32(150), np.float32(0.2), kind="softmax", loss="absolute", resample=False
    )  # fmt: skip
    jax.clear_caches()
    table = np.asarray(softmax(found.weights, jnp.asarray(targets.members)))
    model = MixtureModel(DOMAIN, 1.0, table[:, : STARTS[-1]])
    assert model.project(tuple(DOMAIN)).values.reshape(-1)[17] > 0.9


# Refusals.


def test_a_missing_library_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "margrave.models.mixture.fit.find_spec", lambda name: None if name == "jax" else 1
    )
    for fit in (GeneratorFit(), RelaxedFit()):
        with pytest.raises(InputError, match=r"jax[\s\S]*margrave\[inference\]"):
            fit.check(DOMAIN, Needs())


def test_zeros_and_foreign_public_tables_are_refused() -> None:
    zeros = StructuralZeros(("a",), np.array([True, False]))
    with pytest.raises(InputError, match="impossible"):
        GeneratorFit().check(Domain(DOMAIN.attributes, DOMAIN.sizes, (zeros,)), Needs())
    public = PublicTable(records(), "made up for tests")
    with pytest.raises(InputError, match="public table"):
        RelaxedFit(public=public).check(Domain.of({"a": 2, "b": 3}), Needs())


@pytest.mark.parametrize(
    "make",
    [
        lambda: GeneratorFit(hidden=(0,)), lambda: GeneratorFit(components=0), lambda: GeneratorFit(rate=0.0),
        lambda: GeneratorFit(ema_decay=1.0), lambda: GeneratorFit(active_threshold=float("nan")),
        lambda: GeneratorFit(kl_weight=-1.0),
        lambda: RelaxedFit(init_scale=0.0), lambda: RelaxedFit(components=0), lambda: RelaxedFit(rate=-1.0),
        lambda: RelaxedFit(error_ema=1.0),
        lambda: RelaxedFit(steps=0),
    ],
)  # fmt: skip
def test_parameters_out_of_range_are_refused(make: Any) -> None:
    with pytest.raises(InputError):
        make()


def test_the_size_is_the_mixture_s_whatever_is_measured() -> None:
    fit = GeneratorFit(components=10)
    assert fit.cells(DOMAIN, []) == fit.cells(DOMAIN, EVERY) == 110
    assert fit.sizes_with(DOMAIN, [], EVERY).tolist() == [110.0] * len(EVERY)


def test_training_leaves_jax_s_precision_alone() -> None:
    """The maximum-entropy posterior needs 64 bits in the same process, and this 32."""
    before = jnp.asarray(1.0).dtype
    fit = RelaxedFit(components=4, cold_steps=2)
    fit(DOMAIN, TRANSCRIPT, rng=np.random.default_rng(0))
    assert jnp.asarray(1.0).dtype == before
    with jax.enable_x64(True):
        state = first_round(fit, DOMAIN, TRANSCRIPT)
        assert np.asarray(state.training.state.weights).dtype == np.float32
        assert jnp.asarray(1.0).dtype == jnp.float64
