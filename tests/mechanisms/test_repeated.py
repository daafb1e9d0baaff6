"""Repeated runs: shares of one budget, runs that see their own answers alone, and intervals from their spread."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import margrave
from margrave.accounting import AddRemoveRow, Budget, ReplaceRow
from margrave.data import MemoryTable
from margrave.domain import Codes, Domain
from margrave.errors import InputError, ReleaseError
from margrave.inference import combine, wald
from margrave.inference.combine import total_covariance
from margrave.inference.fitted import Fitted
from margrave.mechanisms import (
    AIM,
    MST,
    NAPSUMQ,
    AIMPub,
    GaussianMechanism,
    Independent,
    Mechanism,
    Repeated,
)
from margrave.mechanisms.parts.serving import serving
from margrave.models import GraphicalFit, MixtureModel
from margrave.models.families import FAMILIES
from margrave.models.repeated import RepeatedModel
from margrave.privacy import SeededRandomness
from margrave.release import Release
from margrave.schema import Schema
from tests.support.conformance import run_on

SCHEMA = Schema.coded({"a": 2, "b": 2, "c": 3})
BUDGET = Budget.approx(1.0, 1e-6)


def table(n: int, seed: int) -> MemoryTable:
    """Rows in which b depends on a."""
    rng = np.random.default_rng(seed)
    a = rng.random(n) < 0.4
    b = rng.random(n) < np.where(a, 0.6, 0.3)
    columns = {"a": a, "b": b, "c": rng.integers(0, 3, n)}
    codes = Codes.of(SCHEMA.domain, {k: v.astype(np.int64) for k, v in columns.items()})
    return MemoryTable(SCHEMA, codes)


def run(mechanism: Mechanism, n: int = 500, unit: Any = None, seed: int = 0) -> Release:
    return run_on(mechanism, table(n, seed), unit or ReplaceRow(), BUDGET, SeededRandomness(seed))


def test_it_counts_what_a_run_counts_and_serves_purposes_as_a_run_does() -> None:
    domain = Domain.of({f"x{i}": 40 for i in range(30)})
    aim = AIM()
    runs = Repeated(mechanism=aim, runs=2)
    assert runs.counted_first(domain) == aim.counted_first(domain)
    assert runs.counted_cells(domain) == aim.counted_cells(domain) is not None
    served = serving(runs, ["count by a, b"], SCHEMA.domain)
    assert isinstance(served, Repeated)
    assert served.mechanism.workload is not None
    assert served.mechanism.workload.purposes == ("count by a, b",)


@dataclass(frozen=True, kw_only=True)
class Listening(Independent):
    """Notes what a run sees when it begins and ends."""

    name = "listening"

    def run(self, private: Any, **more: Any) -> Release:
        before = (private.rho, private.remaining, len(private.transcript))
        made = super().run(private, **more)
        SEEN.append((*before, private.remaining, len(private.transcript)))
        return made


SEEN: list[tuple[Any, ...]] = []


@pytest.mark.parametrize(("unit", "known"), [(AddRemoveRow(), 0), (ReplaceRow(), 1)], ids=str)
def test_a_run_has_its_share_and_sees_its_own_answers_alone(unit: Any, known: int) -> None:
    SEEN.clear()
    release = run(Repeated(mechanism=Listening(), runs=3), unit=unit)
    share, columns = BUDGET.rho / 3, len(SCHEMA.domain)
    assert [(share, share, known, Fraction(0), known + columns)] * 3 == SEEN
    assert release.account.rho_spent == BUDGET.rho
    assert len(release.transcript) == known + 3 * columns


def test_the_model_is_the_mean_of_the_runs() -> None:
    release = run(Repeated(mechanism=AIM(), runs=3))
    model = release.model
    assert isinstance(model, RepeatedModel)
    parts = [m.project(("a", "b")).values for m in model.models]
    np.testing.assert_allclose(release.marginal(("a", "b")).values, np.mean(parts, axis=0))
    rng = np.random.default_rng(0)
    for independent in (False, True):
        codes = model.sample(20_000, rng=rng, independent=independent)
        share = np.bincount(codes.column("a") * 2 + codes.column("b"), minlength=4) / 20_000
        np.testing.assert_allclose(share, np.mean(parts, axis=0).ravel() / model.total, atol=0.03)
    assert model.sample(0, rng=rng).values.shape[1] == 0


def product(*first: float) -> MixtureModel:
    """A product model of 100 records with this distribution of a, in which b is the same as a's odds."""
    p = np.array([*first, *first, 0.2, 0.3, 0.5])
    return MixtureModel(SCHEMA.domain, 100.0, p[None, :])


def test_conditions_and_completions_follow_bayes() -> None:
    model = RepeatedModel([product(0.9, 0.1), product(0.2, 0.8)])
    given = model.condition({"a": [1], "c": [0, 1]})
    np.testing.assert_allclose(given.weights, [1 / 9, 8 / 9])
    np.testing.assert_allclose(
        given.project(("b",)).values / given.total, [0.9 / 9 + 1.6 / 9, 6.5 / 9]
    )
    rows = Codes.of(SCHEMA.domain.project(["a"]), {"a": np.ones(40_000, dtype=np.int64)})
    whole = model.complete(rows, rng=np.random.default_rng(0))
    assert (whole.column("a") == 1).all()
    assert whole.column("b").mean() == pytest.approx(6.5 / 9, abs=0.02)


def test_a_combination_that_no_run_holds() -> None:
    model = RepeatedModel([product(1.0, 0.0), product(1.0, 0.0)])
    rows = Codes.of(SCHEMA.domain.project(["a"]), {"a": np.array([0, 1])})
    with pytest.raises(InputError, match="no record"):
        model.complete(rows, rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="no record"):
        model.condition({"a": [1]})


def test_a_file_holds_all_runs(tmp_path: Path) -> None:
    release = run(Repeated(mechanism=MST(), runs=2))
    release.save(tmp_path / "r.margrave")
    loaded = Release.load(tmp_path / "r.margrave")
    assert loaded.draws(seed=1)[1].equals(release.draws(seed=1)[1])
    state = release.model.state()
    for facts in (
        {},
        {**state.facts, "kinds": ["repeated", "repeated"]},
        {**state.facts, "kinds": ["nothing", "graphical"]},
        {**state.facts, "kinds": ["answers", "graphical"]},
        {**state.facts, "facts": [1, 2]},
    ):
        with pytest.raises(ReleaseError):
            FAMILIES["repeated"].load(SCHEMA.domain, facts, state.arrays)
    worse = {**state.arrays, "weights": np.array([-1.0, 2.0])}
    with pytest.raises(ReleaseError, match="malformed"):
        FAMILIES["repeated"].load(SCHEMA.domain, state.facts, worse)


def test_there_are_as_many_draws_as_runs() -> None:
    release = run(Repeated(mechanism=MST(), runs=3))
    draws = release.draws(seed=0)
    assert (len(draws), draws.runs, draws.released()) == (3, 3, None)
    assert "3 independent runs" in draws.method
    assert not any("selected" in note for note in draws.notes)
    with pytest.raises(InputError, match="each of the 3 runs gives one"):
        release.draws(4)
    assert len(release.draws(4, method="bootstrap")) == 4


def test_the_rule_of_independent_runs() -> None:
    q = np.array([1.0, 2.0, 3.0, 6.0, 4.0, 5.0])
    v = np.array([0.1, 0.2, 0.3, 0.2, 0.2, 0.2])
    found = combine(q, v, rows=100, total=200, runs=True)
    b, t = q.var(ddof=1), q.var(ddof=1) / 6 + 0.5 * 0.2
    assert (found.estimate, found.variance) == pytest.approx((3.5, t))
    assert found.df == pytest.approx(5 * (t / (b / 6)) ** 2)
    assert not np.isfinite(combine(q, v, runs=True).variance)
    covariances = v[:, None, None]
    same = wald(q[:, None], covariances, 0.0, rows=100, total=200, runs=True)
    assert same.pvalue == pytest.approx(found.pvalue())
    assert total_covariance(
        q[:, None], covariances, rows=100, total=200, runs=True
    ) == pytest.approx(t)
    with pytest.raises(InputError, match="numbers of records"):
        wald(q[:, None], covariances, runs=True)
    more = np.stack([q, q**2], axis=1), np.stack([np.eye(2)] * 6)
    with pytest.raises(InputError, match="independent runs"):
        wald(*more, rows=1, total=1, method="proportional", runs=True)


@pytest.mark.parametrize(
    ("inner", "words"),
    [
        (lambda: Repeated(), "repeats a Repeated"),
        (lambda: AIMPub(), "public table"),
        (lambda: NAPSUMQ(), "intervals from one run"),
        (lambda: GaussianMechanism(), "no distribution"),
    ],
)
def test_mechanisms_that_are_not_repeated(inner: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Repeated(mechanism=inner())


def test_one_run_is_not_repeated() -> None:
    with pytest.raises(InputError, match="at least 2"):
        Repeated(runs=1)


def slope(frame: Any) -> Fitted:
    """Return the shares of b among rows with and without a, and their difference."""
    groups = [frame.b[frame.a.astype(int) == k].astype(float) for k in (0, 1)]
    p = np.array([g.mean() for g in groups])
    v = np.array([g.var(ddof=1) / len(g) for g in groups])
    return Fitted.of(("without", "with", "difference"), np.array([*p, p[1] - p[0]]),
                     np.diag([*v, v.sum()]))  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("runs", [2, 5])
def test_intervals_hold_the_truth_as_often_as_they_say(runs: int) -> None:
    """Of 200 tables of 1,000 rows; noise and sampling are of like size."""
    inner = NAPSUMQ(fit=GraphicalFit())
    repeats, hit, width = 200, np.zeros(3), np.zeros(3)
    for seed in range(repeats):
        release = run(Repeated(mechanism=inner, runs=runs), 1000, AddRemoveRow(), seed)
        found = margrave.analyze(release, slope, columns=("a", "b"), seed=seed)
        ends = found.conf_int().to_numpy()
        truth = np.array([0.3, 0.6, 0.3])
        hit += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        width += ends[:, 1] - ends[:, 0]
    assert (hit / repeats >= 0.88).all()
    assert (width / repeats < 0.3).all()
